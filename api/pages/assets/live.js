// Saves the reload: while the page is seen, a stream tells when it has changed, and the
// page fetches itself and replaces what differs. Without this module it says the same.

const main = document.querySelector('main[data-live]');
let source, revision, retry, fetching = false, again = false, failures = 0, refusals = 0, heard = Date.now();

// backOff is how long to wait after failures in a row, in milliseconds: longer each time, and
// not at the same time as all other pages.
const backOff = count => Math.min(30_000, 1000 * 2 ** count) * (0.75 + Math.random() / 2);

// morph makes one node like another, and keeps what is the same: focus, scroll and text
// that is being typed. What a person has opened stays open.
function morph(from, to) {
  if (from.isEqualNode(to)) return;
  if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName || from.id !== to.id) {
    from.replaceWith(document.importNode(to, true));
    return;
  }
  if (from.nodeType !== Node.ELEMENT_NODE) {
    from.nodeValue = to.nodeValue;
    return;
  }
  if (from.matches('form') && from.contains(document.activeElement)) return;
  const opened = from.nodeName === 'DETAILS';
  for (const { name } of [...from.attributes]) if (!to.hasAttribute(name) && !(opened && name === 'open')) from.removeAttribute(name);
  for (const { name, value } of to.attributes) if (from.getAttribute(name) !== value && !(opened && name === 'open')) from.setAttribute(name, value);
  children(from, to);
}

// children matches the children of two nodes: those with an ID by it, others in order.
function children(from, to) {
  const named = new Map([...from.children].filter(e => e.id).map(e => [e.id, e]));
  let at = from.firstChild;
  for (const wanted of to.childNodes) {
    const same = wanted.id ? named.get(wanted.id) : at;
    if (!same || (!wanted.id && same.id)) {
      from.insertBefore(document.importNode(wanted, true), at);
      continue;
    }
    if (same !== at) from.insertBefore(same, at);
    at = same.nextSibling;
    morph(same, wanted);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

async function refresh() {
  if (fetching) {
    again = true;
    return;
  }
  fetching = true;
  clearTimeout(retry);
  try {
    const answer = await fetch(location.href, { headers: { Accept: 'text/html' }, cache: 'no-store', signal: AbortSignal.timeout(30_000) });
    if (!answer.ok) throw new Error(answer.status);
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const fresh = page.querySelector('main[data-live]');
    if (!fresh) throw new Error('signed out');
    document.title = page.title;
    children(main, fresh);
    revision = fresh.dataset.revision;
    main.dataset.revision = revision;
    heard = Date.now();
    failures = 0;
    stale('');
  } catch {
    // The change that was told may have been the last one: nothing else would ask again.
    retry = setTimeout(() => document.hidden || refresh(), backOff(failures++));
    stale(`Not up to date: last read at ${new Date(heard).toLocaleTimeString()}. Reload the page.`);
  }
  fetching = false;
  if (again) {
    again = false;
    refresh();
  }
}

function stale(words) {
  const place = document.getElementById('stale');
  if (!place || place.textContent === words) return;
  place.textContent = words;
  place.hidden = !words;
}

function connect() {
  const stream = source = new EventSource(`/live?subject=${encodeURIComponent(main.dataset.live)}&since=${encodeURIComponent(revision)}`);
  stream.addEventListener('open', () => refusals = 0);
  stream.addEventListener('revision', event => {
    if (event.data !== revision) refresh();
  });
  // Browsers connect again by themselves after a break, but not after a refusal.
  stream.addEventListener('error', () => {
    if (stream.readyState !== EventSource.CLOSED || stream !== source) return;
    source = undefined;
    setTimeout(() => document.hidden || (source ?? connect()), backOff(refusals++));
  });
}

// A hidden page gives its connection back: browsers allow six per host.
function disconnect() {
  source?.close();
  source = undefined;
}

if (main) {
  revision = main.dataset.revision;
  connect();
  document.addEventListener('visibilitychange', () => document.hidden ? disconnect() : source ?? connect());
  addEventListener('pagehide', disconnect);
  addEventListener('pageshow', event => event.persisted && !source && connect());
  // Times grow old by themselves; where there is no stream, this is all that updates.
  setInterval(() => {
    if (document.hidden) return;
    if (!source || Date.now() - heard > 30_000) refresh();
  }, 10_000);
}

// Saves the reload: while the page is seen, a stream tells when it has changed, and the
// page fetches itself and replaces what differs. Without this module it says the same.

const main = document.querySelector('main[data-live]');
let source, revision, retry, fetching = false, again = false, ended = false, failures = 0, refusals = 0, heard = Date.now();

// backOff is how long to wait after failures in a row, in milliseconds: longer each time, and
// not at the same time as all other pages.
const backOff = count => Math.min(30_000, 1000 * 2 ** count) * (0.75 + Math.random() / 2);

// morph makes one node like another of its kind, and keeps what is the same: focus, scroll
// and text that is being typed. What a person has opened stays open.
function morph(from, to) {
  if (from.isEqualNode(to)) return;
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

// Space between elements is told apart from text: it comes and goes with what follows it.
const space = node => node.nodeType === Node.TEXT_NODE && !node.nodeValue.trim();
const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && (a.id ?? '') === (b.id ?? '');

// children matches the children of two nodes: those with an ID by it, others by their kind
// and order. What goes on matching stays where it is, so that it keeps the focus; the rest
// is put around it.
function children(from, to) {
  const wanted = [...to.childNodes].filter(node => !space(node));
  const ids = new Set(wanted.map(node => node.id).filter(Boolean));
  for (const old of [...from.children]) if (old.id && !ids.has(old.id)) old.remove();
  const named = new Map([...from.children].filter(e => e.id).map(e => [e.id, e]));
  const skip = node => {
    while (node && space(node)) node = node.nextSibling;
    return node;
  };
  let at = skip(from.firstChild);
  const drop = () => {
    const next = skip(at.nextSibling);
    at.remove();
    at = next;
  };
  wanted.forEach((node, n) => {
    let same = node.id ? named.get(node.id) : undefined;
    if (same && !alike(same, node)) {
      if (same === at) at = skip(at.nextSibling);
      same.remove();
      same = undefined;
    }
    if (same && same !== at) {
      // Moving it would take its focus away: what stands before it goes instead, and comes
      // back when its turn is there.
      if (same.parentNode === from && same.contains(document.activeElement)) while (at && at !== same) drop();
      else from.insertBefore(same, at);
    }
    if (!node.id) {
      // What nothing here wants any more makes room for what stands behind it.
      while (at && !at.id && !alike(at, node) && !wanted.slice(n).some(later => alike(at, later))) drop();
      if (at && alike(at, node)) same = at;
    }
    if (same) {
      at = skip(same.nextSibling);
      morph(same, node);
      return;
    }
    if (node.previousSibling && space(node.previousSibling)) from.insertBefore(document.importNode(node.previousSibling), at);
    from.insertBefore(document.importNode(node, true), at);
  });
  while (at) drop();
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
    const fresh = page.querySelector('main[data-live], main[data-ended]');
    if (!fresh) throw new Error('signed out');
    document.title = page.title;
    children(main, fresh);
    document.getElementById('shown')?.replaceChildren(page.getElementById('shown')?.textContent ?? '');
    heard = Date.now();
    failures = 0;
    stale('');
    if (fresh.dataset.live) {
      revision = fresh.dataset.revision;
      main.dataset.revision = revision;
    } else {
      end();
    }
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

// end lets go of a page of which nothing changes any more: that is no break, and nothing is asked again.
function end() {
  ended = true;
  again = false;
  delete main.dataset.live;
  main.dataset.ended = '';
  disconnect();
}

function stale(words) {
  const place = document.getElementById('stale');
  if (!place || place.textContent === words) return;
  place.textContent = words;
  place.hidden = !words;
}

function connect() {
  if (ended) return;
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
  if (!document.hidden) connect();
  document.addEventListener('visibilitychange', () => document.hidden ? disconnect() : source ?? connect());
  addEventListener('pagehide', disconnect);
  addEventListener('pageshow', event => event.persisted && !document.hidden && (source ?? connect()));
  // Times grow old by themselves; where there is no stream, this is all that updates.
  setInterval(() => {
    if (document.hidden || ended) return;
    if (!source || Date.now() - heard > 30_000) refresh();
  }, 10_000);
}

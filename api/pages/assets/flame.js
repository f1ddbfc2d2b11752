// Zooms and searches in a flame graph without loading the page anew, and tells what is pointed at. Without this module,
// the links, the form and the titles of the frames say the same.

const section = () => document.getElementById('flames');
// asked counts what was asked for: only the latest answer is shown.
let asked = 0;

// show replaces the graph by the one at an address of this page.
async function show(address, then) {
  const mine = ++asked;
  try {
    const answer = await fetch(address, { headers: { Accept: 'text/html' } });
    if (!answer.ok) throw new Error(answer.status);
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const fresh = page.getElementById('flames');
    if (!fresh) throw new Error('signed out');
    if (mine !== asked) return;
    section().replaceWith(document.importNode(fresh, true));
    listen();
    then?.();
  } catch {
    if (mine === asked) location.assign(address); // the browser says what is wrong
  }
}

// go shows an address and keeps it in the history of the browser.
function go(address, then) {
  show(address, () => {
    history.pushState(null, '', address);
    then?.();
  });
}

const typeOf = address => new URLSearchParams(address.search).get('type');

const frameOf = target => target instanceof Element ? target.closest('svg.flame svg') : null;

// tell writes what a frame is below the graph; touching and the keyboard show no titles.
function tell(target) {
  const title = frameOf(target)?.querySelector('title')?.textContent;
  const place = document.getElementById('told');
  if (title && place) place.textContent = title;
}

// mark marks the frames whose names contain a text, while it is being typed.
function mark(text) {
  const wanted = text.trim().toLowerCase();
  for (const frame of document.querySelectorAll('svg.flame svg:not(.others)')) {
    const title = frame.querySelector('title').textContent;
    const found = title.slice(0, title.lastIndexOf(': ')).toLowerCase().includes(wanted);
    frame.classList.toggle('found', wanted !== '' && found);
    frame.classList.toggle('passed', wanted !== '' && !found);
  }
}

function listen() {
  const graph = section();
  const own = graph.querySelector('svg.flame');
  graph.addEventListener('click', event => {
    const link = event.target instanceof Element ? event.target.closest('a[href]') : null;
    if (!link || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const address = new URL(link.getAttribute('href'), location.href);
    // Another type of samples changes the whole page.
    if (address.pathname !== location.pathname || typeOf(address) !== typeOf(location)) return;
    event.preventDefault();
    const keyboard = event.detail === 0;
    go(address.href, () => keyboard && section().querySelector('#zoomed a, svg.flame a')?.focus());
  });
  own?.addEventListener('pointerover', event => tell(event.target));
  own?.addEventListener('focusin', event => tell(event.target.querySelector('svg') ?? event.target));
  const form = graph.querySelector('form.search');
  form.addEventListener('input', () => mark(form.elements.q.value));
  form.addEventListener('submit', event => {
    event.preventDefault();
    const address = new URL(form.getAttribute('action'), location.href);
    for (const [name, value] of new FormData(form)) if (value) address.searchParams.set(name, value);
    go(address.href, () => section().querySelector('#q').focus());
  });
}

if (section()) {
  listen();
  addEventListener('popstate', () => show(location.href));
}

// Reads charts to whoever points at them or moves through them by keys, and turns a drag into
// an address. Without this module, the table, the values and the links say the same.

const charts = [...document.querySelectorAll('figure[data-history]')];

// retry is how long values that could not be read are not asked for again, in milliseconds.
const retry = 5000;

// leastDrag is how far a pointer moves in a drag, in pixels: a click or a touch may tremble.
const leastDrag = 8;

// prefixes are those with which values of a unit are read easily, the largest first, as on axes.
const prefixes = {
  sec: [[1, 's'], [1e-3, 'ms'], [1e-6, 'µs'], [1e-9, 'ns']],
  B: [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']],
};

// amount writes a value of a line with its unit.
function amount(line, value) {
  if (line.relative) return `${Number(value.toPrecision(6))} × the start`;
  const [size, unit] = line.unit === 'ns' ? [value * 1e-9, 'sec'] : [value, line.unit ?? ''];
  const known = prefixes[unit] ?? [[1, unit]];
  const [factor, sign] = known.find(([least]) => Math.abs(size) >= least || (size === 0 && least === 1)) ?? known.at(-1);
  return `${Number((size / factor).toPrecision(6))} ${sign}`.trim();
}

// signed writes a change in percent, with its sign.
const signed = change => `${change > 0 ? '+' : ''}${(100 * change).toFixed(2)} %`;

// Chart is one figure: its drawing, and its values once somebody asks for them.
class Chart {
  constructor(figure) {
    this.figure = figure;
    this.svg = figure.querySelector('svg.chart');
    const [left, right, from, to] = figure.dataset.plot.split(' ').map(Number);
    Object.assign(this, { left, right, from, to, at: -1, marked: -1, begun: null, last: null });
    this.tip = Object.assign(document.createElement('div'), { className: 'tip', hidden: true });
    this.told = document.createElement('div');
    this.told.setAttribute('role', 'status');
    this.offers = document.createElement('div');
    this.tip.append(this.told, this.offers);
    // What it offers may be pressed: the drawing keeps the focus, whose loss would hide it.
    this.tip.addEventListener('mousedown', event => event.preventDefault());
    this.tip.addEventListener('focusout', event => this.leave(event));
    this.tip.addEventListener('keydown', event => {
      if (event.key !== 'Escape') return;
      this.svg.focus();
      this.hide();
    });
    this.svg.after(this.tip);
    [this.shade, this.cross] = ['marked', 'cross'].map(name => {
      const path = document.createElementNS(this.svg.namespaceURI, 'path');
      path.setAttribute('class', name);
      this.svg.append(path);
      return path;
    });
    this.svg.tabIndex = 0;
    this.svg.addEventListener('pointermove', event => this.move(event));
    this.svg.addEventListener('pointerdown', event => this.press(event));
    this.svg.addEventListener('pointerup', event => this.release(event));
    // A finger leaves with each touch; what it has shown stays until the next.
    this.svg.addEventListener('pointerleave', event => event.pointerType !== 'touch' && this.begun === null && this.hide());
    this.svg.addEventListener('pointercancel', () => { this.begun = null; this.hide(); });
    this.svg.addEventListener('keydown', event => this.key(event));
    this.svg.addEventListener('blur', event => this.leave(event));
  }

  // load reads the values once, however often it is called.
  load() {
    this.loading ??= fetch(this.figure.dataset.history, { headers: { Accept: 'application/json' } })
      .then(answer => answer.ok ? answer.json() : Promise.reject(new Error(answer.statusText)))
      .then(history => {
        const byDate = new URLSearchParams(location.search).get('x') === 'date';
        // Where each artifact is along x.
        this.places = history.artifacts.map((artifact, i) => byDate ? Math.floor(Date.parse(artifact.at) / 1000) : i);
        this.history = history;
      })
      .catch(() => { setTimeout(() => { this.loading = undefined; }, retry); });
    return this.loading;
  }

  // nearest is the artifact nearest to a pointer.
  nearest(event) {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    const x = this.from + (point.x - this.left) / (this.right - this.left) * (this.to - this.from);
    let best = 0;
    for (let i = 1; i < this.places.length; i++) if (Math.abs(this.places[i] - x) < Math.abs(this.places[best] - x)) best = i;
    return best;
  }

  // move shows the artifact under a pointer, unless that has gone on meanwhile.
  async move(event) {
    this.last = event;
    await this.load();
    if (this.last !== event || !this.history?.artifacts.length) return;
    this.show(this.nearest(event));
    if (this.begun !== null && this.dragged(event)) this.mark(this.nearest(this.begun));
  }

  // dragged reports whether a pointer has moved since it was pressed.
  dragged(event) {
    return Math.abs(event.clientX - this.begun.clientX) >= leastDrag;
  }

  // press begins a drag, which may end outside of the drawing and before the values are there.
  press(event) {
    if (event.button !== 0 || !event.isPrimary) return;
    this.begun = event;
    this.svg.setPointerCapture(event.pointerId);
    this.move(event);
  }

  // release goes to the part that was dragged over, or to the comparison of the point, which
  // it pins with Shift. A finger or a pen reads by touching and moving, so that all this is only
  // offered to it.
  async release(event) {
    const begun = this.begun;
    if (begun?.pointerId !== event.pointerId) return;
    const dragged = this.dragged(event);
    this.begun = null;
    await this.load();
    if (!this.history?.artifacts.length) return;
    const [from, to] = [this.nearest(begun), this.nearest(event)];
    if (event.pointerType === 'mouse') return this.go(dragged ? this.part(from, to) : event.shiftKey ? this.pinning(from) : this.comparison(from));
    this.show(to);
    if (dragged) this.mark(from);
    this.offerAll();
  }

  // go follows an address, if there is one.
  go(address) {
    if (address) location.assign(address);
  }

  // offerAll adds to what is told where one gets from it.
  offerAll() {
    const { request } = this.history.artifacts[this.at];
    const page = request && `/requests/${encodeURIComponent(request)}`;
    const part = this.marked < 0 ? null : this.part(this.marked, this.at);
    const ways = [
      [part, `Show only these ${Math.abs(this.at - this.marked) + 1} artifacts`], [this.comparison(this.at), 'Compare'],
      [this.pinning(this.at), this.pinned(this.at) ? 'Release' : 'Pin'], [page, 'Request'], [page && `${page}/again`, 'Measure again'],
    ];
    this.offers.replaceChildren(...ways.filter(([address]) => address).map(([href, textContent]) => Object.assign(document.createElement('a'), { href, textContent })));
  }

  // part is the address of the page with the artifacts between two, both among them.
  part(one, other) {
    if (one === other) return null;
    const [from, to] = [one, other].sort((a, b) => a - b);
    const address = new URL(location.href);
    address.searchParams.set('from', this.history.artifacts[from].tag);
    address.searchParams.set('to', this.history.artifacts[to].tag);
    return address;
  }

  // pinned reports whether others are compared with an artifact.
  pinned(i) {
    return new URLSearchParams(location.search).get('pin') === this.history.artifacts[i].tag;
  }

  // pinning is the address of the page on which others are compared with an artifact, or no
  // longer are.
  pinning(i) {
    const address = new URL(location.href);
    if (this.pinned(i)) address.searchParams.delete('pin');
    else address.searchParams.set('pin', this.history.artifacts[i].tag);
    return address;
  }

  // comparison is the address of that of an artifact with the pinned one, or the one before it.
  comparison(i) {
    const against = new URLSearchParams(location.search).get('pin') ?? this.history.artifacts[i - 1]?.tag;
    const tag = this.history.artifacts[i].tag;
    if (!against || against === tag) return null;
    const address = new URL('compare', location.href.split('?')[0]);
    address.searchParams.set('a', against);
    address.searchParams.set('b', tag);
    return address;
  }

  async key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (event.altKey || event.ctrlKey || event.metaKey) return; // the browser's own, such as going back
    if (event.key === 'Escape') return this.hide();
    if (step === undefined && event.key !== 'Enter' && event.key !== 'p') return;
    event.preventDefault();
    await this.load();
    const last = (this.history?.artifacts.length ?? 0) - 1;
    if (last < 0) return;
    if (step === undefined && this.at < 0) return;
    if (event.key === 'p') return this.go(this.pinning(this.at));
    if (event.key === 'Enter') return this.go(this.marked < 0 ? this.comparison(this.at) : this.part(this.marked, this.at));
    const from = this.at < 0 ? last + 1 : this.at; // one step leads to the newest
    const begun = !event.shiftKey ? -1 : this.marked < 0 ? this.at : this.marked;
    this.show(Math.max(0, Math.min(last, from + step)));
    this.mark(begun);
    this.offerAll();
  }

  // x is the column of an artifact.
  x(i) {
    return Math.round(this.left + (this.places[i] - this.from) / (this.to - this.from) * (this.right - this.left));
  }

  // mark shades the part between an artifact and the one that is told, and tells its length.
  mark(begun) {
    if (begun < 0 || begun === this.at) return;
    this.marked = begun;
    this.shade.setAttribute('d', `M${this.x(begun)} 0H${this.x(this.at)}V${this.svg.viewBox.baseVal.height}H${this.x(begun)}z`);
    this.told.append(Object.assign(document.createElement('div'), { textContent: `${Math.abs(this.at - begun) + 1} artifacts are marked` }));
  }

  // show tells what the chart has of an artifact.
  show(i) {
    this.at = i;
    const { artifacts, charts: [chart] } = this.history;
    const artifact = artifacts[i];
    this.cross.setAttribute('d', `M${this.x(i)} 0V${this.svg.viewBox.baseVal.height}`);
    const said = [[artifact.tag, artifact.releases?.join(', '), artifact.subject, artifact.author, artifact.dated && artifact.at.slice(0, 10)].filter(Boolean).join(' · ')];
    for (const line of chart?.lines ?? []) {
      const k = line.at.indexOf(i);
      const failed = line.failures?.find(failure => failure.at === i);
      if (failed) said.push(`${line.name}: failed, ${failed.reason}`);
      if (k < 0) continue;
      const begins = line.breaks?.find(one => one.at === i);
      const confirmed = line.changes?.find(one => one.at === i);
      const change = k > 0 && !begins && line.values[k - 1] ? ` (${signed(line.values[k] / line.values[k - 1] - 1)})` : '';
      const band = line.low && line.high ? `, quartiles ${amount(line, line.low[k])} to ${amount(line, line.high[k])}` : '';
      said.push(`${line.name}: ${amount(line, line.values[k])}${change}, n ${line.n[k]}${band}`);
      if (begins) said.push(`${line.name} begins anew: ${begins.reason}`);
      if (confirmed) said.push(`${line.name}: confirmed ${signed(confirmed.change)} against ${confirmed.against}`);
    }
    this.told.replaceChildren(...said.map(text => Object.assign(document.createElement('div'), { textContent: text })));
    this.offers.replaceChildren();
    this.unmark();
    this.tip.hidden = false;
  }

  unmark() {
    this.marked = -1;
    this.shade.removeAttribute('d');
  }

  // leave hides what is told once the focus is elsewhere.
  leave(event) {
    if (event.relatedTarget !== this.svg && !this.tip.contains(event.relatedTarget)) this.hide();
  }

  hide() {
    this.at = -1;
    this.last = null;
    this.tip.hidden = true;
    this.cross.removeAttribute('d');
    this.unmark();
  }
}

for (const figure of charts) new Chart(figure);

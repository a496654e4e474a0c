// What all views share: the facts, elements, texts of numbers, colours, and what is chosen.
const facts = JSON.parse(document.getElementById('facts').textContent);
const byId = id => document.getElementById(id);
const state = { method: 0, stage: 0, node: -1 };
const views = []; // {id, label, count, show}

// An element; text is only ever set as text, since names come from the model.
function el(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
    else if (key === 'style') Object.assign(e.style, value);
    else if (value !== undefined && value !== null && value !== false) e.setAttribute(key, value === true ? '' : value);
  }
  for (const child of children.flat(Infinity)) if (child !== undefined && child !== null && child !== '') e.append(child);
  return e;
}

function bytes(n) {
  if (n < 1024) return n + ' B';
  const units = ['KiB', 'MiB', 'GiB', 'TiB'];
  let i = -1;
  do { n /= 1024; i++; } while (n >= 1024 && i < 3);
  return n.toFixed(n < 10 ? 2 : 1) + ' ' + units[i];
}
function amount(n) {
  if (n < 1e4) return String(n);
  for (const [size, unit] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']])
    if (n >= size) return (n / size).toFixed(n / size < 10 ? 2 : 1) + ' ' + unit;
  return String(n);
}
const percent = (part, whole) => !whole ? '0 %' : part && part < whole / 100 ? '< 1 %' : Math.round(100 * part / whole) + ' %';
const plural = (n, what) => n + ' ' + what + (n === 1 ? '' : 's');
const shortOp = op => op.replace(/^[a-z_]+::/, '').replace(/\.[A-Za-z_]+$/, '').replace(/^_+/, '');
const sum = (items, of) => items.reduce((total, item) => total + of(item), 0);

// --- colours ---

const root = document.documentElement;
let colours = {};
function readColours() {
  const style = getComputedStyle(root);
  colours = {};
  for (const name of ['bg', 'card', 'ink', 'soft', 'line', 'accent', 'kernel', 'kernel-line', 'gone', 'gone-line', 'edge', 'end', 'end-line', 'warn'])
    colours[name] = style.getPropertyValue('--' + name).trim();
}
const hue = number => (214 + (number - 1) * 137.5) % 360;
const tone = (number, which) => `hsl(${hue(number).toFixed(0)}, ${root.classList.contains('dark') ? '42%' : '65%'}, ` +
  (root.classList.contains('dark') ? { light: '24%', fill: '36%', line: '66%' } : { light: '90%', fill: '76%', line: '44%' })[which] + ')';
const swatch = (fill, line) => el('span', { class: 'swatch', 'aria-hidden': 'true', style: { background: fill, borderColor: line } });
const delegateSwatch = number => swatch(tone(number, 'fill'), tone(number, 'line'));

const prefersDark = matchMedia('(prefers-color-scheme: dark)');
let theme = null; // 'light' or 'dark' where it was chosen
function applyTheme() {
  root.classList.toggle('dark', theme ? theme === 'dark' : prefersDark.matches);
  root.style.colorScheme = root.classList.contains('dark') ? 'dark' : 'light';
  readColours();
  redraw();
}

// --- the method that is shown ---

const method = () => facts.methods[state.method];
function stageNodes(stage) {
  const named = stage.same_as ? method().stages.find(s => s.name === stage.same_as) : stage;
  return named.nodes;
}
const nodesNow = () => stageNodes(method().stages[state.stage]);
const lastNodes = () => stageNodes(method().stages[method().stages.length - 1]);

// The place that a place was made from in the end, by number.
function rootPlace(places, number) {
  for (let i = 0; i < 64 && places[number] && places[number].from; i++) number = places[number].from;
  return number;
}
const placeOf = node => node.place ? method().places[node.place] : {};
// What to call a node: by the model, or by its value.
const nodeName = node => placeOf(node).name || node.name || '';
const backendOf = number => (method().delegates[number - 1] || {}).backend || '';

// 'delegate', 'kernel', 'end' (inputs and outputs), or 'gone': folded, or part of another node.
function fate(node) {
  if (node.op === 'input' || node.op === 'output' || node.op === 'state') return { kind: 'end' };
  if (node.delegate) return { kind: 'delegate', number: node.delegate };
  const place = placeOf(node);
  if (state.stage >= method().stages.findIndex(s => s.name === 'to_backend')) return { kind: 'kernel' }; // what was delegated is in the calls
  if (place.delegate) return { kind: 'delegate', number: place.delegate };
  return { kind: place.kernels ? 'kernel' : 'gone' };
}
const fills = {
  delegate: f => [tone(f.number, 'light'), tone(f.number, 'line')],
  kernel: () => [colours.kernel, colours['kernel-line']],
  end: () => [colours.end, colours['end-line']],
  gone: () => [colours.gone, colours['gone-line']],
};
const fillOf = f => fills[f.kind](f);

// A table of rows of cells; a cell is a text or an element. right: columns of numbers.
function table(heads, rows, right = []) {
  const cell = (tag, content, i) => el(tag, { class: right.includes(i) ? 'right' : null }, content === 0 ? '0' : content);
  return el('div', { class: 'scroll' }, el('table', {},
    el('thead', {}, el('tr', {}, heads.map((head, i) => cell('th', head, i)))),
    el('tbody', {}, rows.map(row => el('tr', {}, row.map((content, i) => cell('td', content, i)))))));
}
const meter = (part, whole) => el('div', { class: 'meter' }, el('i', { style: { width: (whole ? Math.min(100, 100 * part / whole) : 0) + '%' } }));
const code = text => el('code', {}, text);

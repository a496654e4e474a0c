// Size by layer: a treemap of the constants, by the names of the nodes that use them.
const MOST_CELLS = 60;
let sizePath = [];

// A tree of names; a leaf is a constant.
function sizeTree() {
  const top = { name: 'all', bytes: 0, children: new Map(), delegate: 0 };
  method().constants.forEach((constant, number) => {
    const layer = method().places[rootPlace(method().places, constant.place || 0)] || {};
    const names = (layer.name || (constant.place ? layer.op : '') || (constant.delegate ? 'delegate ' + constant.delegate : 'other')).split(/[/.]+/).filter(Boolean);
    let at = top;
    at.bytes += constant.bytes;
    for (const name of [...names, '\0' + number]) {
      if (!at.children.has(name)) at.children.set(name, { name, bytes: 0, children: new Map(), delegate: constant.delegate || 0 });
      at = at.children.get(name);
      at.bytes += constant.bytes;
    }
    at.constant = constant;
  });
  return top;
}
// Down to where there is a choice.
function collapse(tree) {
  let at = tree, names = [];
  while (at.children.size === 1 && !at.constant) { at = at.children.values().next().value; names.push(at.name); }
  return { at, names };
}
const leafName = leaf => leaf.constant ? leaf.constant.name || leaf.constant.type : leaf.name;

// Squarified (Bruls, Huizing, van Wijk: Squarified Treemaps, 2000): [item, x, y, w, h] in a box.
function squarify(items, x, y, w, h) {
  const out = [];
  let rest = items.filter(i => i.bytes > 0), total = sum(rest, i => i.bytes);
  while (rest.length && w > 0 && h > 0) {
    const side = Math.min(w, h), scale = w * h / total;
    let row = 1, rowBytes = rest[0].bytes;
    const worst = (bytes, count) => { const s = bytes * scale; return Math.max(side * side * rest[0].bytes * scale / (s * s), s * s / (side * side * rest[count - 1].bytes * scale)); };
    while (row < rest.length && worst(rowBytes + rest[row].bytes, row + 1) <= worst(rowBytes, row)) rowBytes += rest[row++].bytes;
    const thick = rowBytes * scale / side;
    let along = 0;
    for (const item of rest.slice(0, row)) {
      const length = item.bytes * scale / thick;
      out.push(w >= h ? [item, x, y + along, thick, length] : [item, x + along, y, length, thick]);
      along += length;
    }
    if (w >= h) { x += thick; w -= thick; } else { y += thick; h -= thick; }
    total -= rowBytes;
    rest = rest.slice(row);
  }
  return out;
}

function sortedChildren(tree) {
  const all = [...tree.children.values()].sort((a, b) => b.bytes - a.bytes);
  if (all.length <= MOST_CELLS) return all;
  const rest = all.splice(MOST_CELLS - 1);
  return [...all, { name: `${rest.length} smaller ones`, bytes: sum(rest, c => c.bytes), children: new Map(), delegate: 0 }];
}

// Of a cell within a cell: without what it has in common with those beside it.
function partName(part) {
  const { at, names } = collapse(part);
  return at.constant ? leafName(at) : [part.name, ...names].join('/');
}

function cellButton([cell, x, y, w, h], i, whole) {
  const inner = collapse(cell), text = [leafName(cell), ...inner.names.map(n => n.startsWith('\0') ? '' : n)].filter(Boolean).join('/').replace(/^\0\d+/, '');
  const label = (text || leafName(inner.at)) + ', ' + bytes(cell.bytes) + ', ' + percent(cell.bytes, whole);
  const parts = inner.at.children.size > 1 && w > 70 && h > 56 ? squarify(sortedChildren(inner.at), 2, 34, w - 6, h - 38) : [];
  return el('button', { type: 'button', title: label, 'aria-label': label, style: { left: x + 'px', top: y + 'px', width: w + 'px', height: h + 'px', background: tone(i + 1, 'fill') },
    onclick: () => openCell(cell, inner) },
    parts.map(([part, px, py, pw, ph]) => el('i', { style: { left: px + 'px', top: py + 'px', width: pw + 'px', height: ph + 'px', background: tone(i + 1, 'light') } }, pw > 60 && ph > 18 ? partName(part) + (pw > 130 ? ', ' + bytes(part.bytes) : '') : '')),
    w > 44 && h > 18 ? el('span', {}, el('b', {}, text || leafName(inner.at)), h > 34 ? bytes(cell.bytes) : '') : '');
}
function openCell(cell, inner) {
  if (inner.at.children.size > 1) { sizePath = [...sizePath, cell.name, ...inner.names]; return showSize(); }
  const leaf = inner.at.constant || cell.constant;
  if (leaf && leaf.place) showNode(0, n => n.place && rootPlace(method().places, n.place) === rootPlace(method().places, leaf.place));
}

function showSize() {
  const box = byId('view-size'), all = method().constants;
  if (!all.length) return box.replaceChildren(el('div', { class: 'empty' }, 'This method has no constants.'));
  let at = sizeTree();
  const whole = at.bytes;
  const crumbs = [el('button', { class: 'link', type: 'button', onclick: () => { sizePath = []; showSize(); } }, 'all')];
  sizePath.forEach((name, i) => {
    at = at.children.get(name) || at;
    crumbs.push(' / ', el('button', { class: 'link', type: 'button', onclick: () => { sizePath = sizePath.slice(0, i + 1); showSize(); } }, name));
  });
  const map = el('div', { class: 'treemap', id: 'treemap' });
  const rows = [...all].sort((a, b) => b.bytes - a.bytes).slice(0, 25).map(c => [
    c.name || '', c.place ? el('button', { class: 'link', type: 'button', onclick: () => openCell({}, { at: { children: new Map(), constant: c } }) },
      method().places[rootPlace(method().places, c.place)].name || method().places[c.place].op || 'node') : '',
    code(c.type), bytes(c.bytes), percent(c.bytes, whole), c.delegate ? el('span', {}, delegateSwatch(c.delegate), String(c.delegate)) : '']);
  const code_bytes = sum(method().delegates, d => d.code_bytes);
  box.replaceChildren(
    el('div', { class: 'card' }, el('h2', {}, `Size by layer: ${bytes(at.bytes)} of weights` + (at.bytes < whole ? ` of ${bytes(whole)}` : '')),
      code_bytes ? el('p', { class: 'soft' }, `Besides, the code of ${plural(method().delegates.length, 'delegate')} has ${bytes(code_bytes)}.`) : '',
      el('div', { class: 'crumbs' }, crumbs), map),
    el('div', { class: 'card' }, el('h2', {}, 'The largest constants'), table(['constant', 'used by', 'type', 'bytes', 'share', 'delegate'], rows, [3, 4])));
  const size = map.getBoundingClientRect();
  map.replaceChildren(...squarify(sortedChildren(at), 0, 0, size.width, size.height).map((cell, i) => cellButton(cell, i, whole)));
}
views.push({ id: 'size', label: 'Size', show: showSize });

// What is known of the node that is chosen.
function nodeLink(i, nodes) {
  const node = nodes[i];
  return el('button', { class: 'link', type: 'button', onclick: () => goTo(i) }, (titleOf(node) + ' ' + nodeName(node)).trim());
}
const list = (head, items, most = 12) => items.length ? [el('h3', {}, head), el('ul', {}, items.slice(0, most).map(i => el('li', {}, i)),
  items.length > most ? el('li', { class: 'soft' }, `and ${items.length - most} more`) : null)] : [];
function pairs(entries) {
  const known = entries.filter(([, value]) => value !== undefined && value !== '' && value !== null);
  return known.length ? el('dl', {}, known.map(([key, value]) => [el('dt', {}, key), el('dd', {}, value)])) : null;
}

function fateBadge(node) {
  const f = fate(node), [fill, line] = fillOf(f);
  const place = placeOf(node);
  const text = f.kind === 'delegate' ? `Delegate ${f.number}${backendOf(f.number) ? ' · ' + backendOf(f.number) : ''}` + (place.kernels && !node.delegate ? ', and ' + plural(place.kernels, 'kernel call') : '') : f.kind === 'end' ? node.op
    : f.kind === 'kernel' ? (place.kernels > 1 ? plural(place.kernels, 'portable kernel call') : 'Portable kernel') : 'Computed ahead, or part of other nodes';
  return el('span', { class: 'badge', style: { background: fill, borderColor: line } }, text);
}

// The pieces of memory that the results of the node lie in: of the stage at hand, or of what it became.
function blocksOf(node, number) {
  const blocks = method().memory.blocks, last = lastNodes();
  if (nodesNow() === last) return blocks.filter(b => b.node === number);
  const places = method().places, place = node.place && rootPlace(places, node.place);
  return blocks.filter(b => { const n = last[b.node]; return place ? n.place && rootPlace(places, n.place) === place : n.op === node.op && n.name === node.name; });
}
const overlaps = (a, b) => a.arena === b.arena && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
function memoryItems(node, number) {
  return blocksOf(node, number).map(b => {
    const others = method().memory.blocks.filter(o => o !== b && o.bytes && overlaps(o, b)).length;
    return el('span', {}, `${bytes(b.bytes)} at ${b.offset} of arena ${b.arena}, in use from ${b.first} to ${b.last}` +
      (others ? `; ${plural(others, 'other tensor')} ${others === 1 ? 'lies' : 'lie'} there at other times. ` : '. '),
      el('button', { class: 'link', type: 'button', onclick: () => { memoryAt = b.first; choose('memory'); } }, 'Show'));
  });
}

function errorOf(node) {
  const values = (method().quantization || { values: [] }).values;
  const found = values.find(v => node.place && v.place && rootPlace(method().places, v.place) === rootPlace(method().places, node.place));
  return found && found.own_sqnr !== null ? `${found.own_sqnr} dB from this node, ${found.sqnr} dB in all` : undefined;
}

function refusalBox(node) {
  const r = refusalOf(node);
  return r && el('div', { class: 'refused' }, el('b', {}, `${r.backend} leaves it: ${r.group.rule}`), el('div', {}, r.group.message),
    pairs(Object.entries(r.node.values || {}).map(([k, v]) => [k, code(String(v))])), r.group.advice ? el('div', {}, 'Try: ', r.group.advice) : null);
}

function showDetails() {
  const box = byId('details'), node = layout && layout.nodes[state.node];
  box.classList.toggle('idle', !node);
  if (!node) {
    box.replaceChildren(el('h2', {}, 'No node is chosen'), el('p', { class: 'soft' }, 'Click or tap a node, search for one, or go from node to node with the arrow keys.'));
    return;
  }
  const place = placeOf(node), names = [];
  for (let n = place.from, i = 0; n && i < 8; n = method().places[n].from, i++) names.push(method().places[n].name || method().places[n].op || '');
  const nodes = layout.nodes;
  box.replaceChildren(
    el('button', { class: 'plain close', type: 'button', 'aria-label': 'Close', onclick: () => selectNode(-1) }, '✕'),
    el('h2', {}, titleOf(node)), el('code', { class: 'soft' }, node.op), el('div', {}, fateBadge(node)),
    refusalBox(node) || '',
    pairs([['node', place.name], ['ONNX', place.op && place.op + (place.index === undefined ? '' : ', number ' + place.index)], ['value', node.name],
      ['source', place.origin], ['within', place.scope], ['made from', names.filter(Boolean).join(', ')],
      ['type', (node.out || []).length ? el('span', {}, node.out.map((t, i) => [i ? ', ' : '', code(t)])) : ''],
      ['work', node.work && amount(node.work) + ' multiply-adds'], ['error', errorOf(node)]]) || '',
    ...list('Memory', memoryItems(node, state.node), 6),
    ...(node.args ? [el('h3', {}, 'Arguments'), pairs(Object.entries(node.args).map(([k, v]) => [k, code(v)]))] : []),
    ...list('Constants', (node.weights || []).map(w => el('span', {}, w.name || 'constant', ' ', code(w.type), ' ', bytes(w.bytes)))),
    ...list('Operands', [...new Set(node.in || [])].map(i => nodeLink(i, nodes))),
    ...list('Used by', layout.users[state.node].map(i => nodeLink(i, nodes))));
}

// Refusals by rule, and the error of quantization by layer.
let refusals = new Map(); // by place

function prepareRefusals() {
  refusals = new Map();
  const places = method().places;
  for (const b of method().backends || [])
    for (const group of b.refusals)
      for (const node of group.nodes)
        for (const place of node.place ? [node.place, rootPlace(places, node.place)] : [])
          if (!refusals.has(place)) refusals.set(place, { backend: b.backend, group, node });
}
const refusalOf = node => {
  const f = node.place && fate(node).kind;
  return f === 'kernel' || f === 'gone' ? refusals.get(node.place) || refusals.get(rootPlace(method().places, node.place)) : undefined;
};

function refusalGroup(backend, group) {
  const values = n => Object.entries(n.values || {}).map(([k, v]) => k + '=' + v).join('  ');
  const ops = [...new Set(group.nodes.map(n => shortOp(n.op)))];
  const rows = group.nodes.slice(0, 200).map(n => [
    el('button', { class: 'link', type: 'button', onclick: () => showNode(edgeStage(), k => k.place === n.place && k.op === n.op) },
      (n.place && (method().places[n.place].name || method().places[n.place].op)) || shortOp(n.op)),
    code(n.op), code(values(n)), n.work ? amount(n.work) : '']);
  return el('details', { class: 'group' },
    el('summary', {}, el('b', {}, plural(group.nodes.length, 'node')), ' ', code(group.rule), ' ', group.message,
      el('div', { class: 'soft' }, ops.slice(0, 6).join(', ') + (ops.length > 6 ? ', …' : '') + (backend.work && group.work ? `; ${percent(group.work, backend.work)} of the work` : '')),
      group.advice ? el('div', {}, 'Try: ', group.advice) : null),
    el('div', {}, table(['node', 'op', 'what failed', 'work'], rows, [3]),
      group.nodes.length > 200 ? el('p', { class: 'soft' }, `and ${group.nodes.length - 200} more`) : null));
}
const edgeStage = () => Math.max(0, method().stages.findIndex(s => s.name === 'edge'));

function showRefusals() {
  const box = byId('view-refusals'), list = method().backends || [];
  if (!list.length) return box.replaceChildren(el('div', { class: 'empty' }, 'No backend was named, so none could refuse a node. ', code('etc backends'), ' lists them.'));
  box.replaceChildren(...list.map(b => [
    el('div', { class: 'card' }, el('h2', {}, `${b.backend} takes ${b.taken} of ${b.taken + b.left} nodes`),
      meter(b.taken, b.taken + b.left),
      b.left ? '' : el('p', { class: 'soft' }, 'It refuses none.')),
    b.refusals.map(group => refusalGroup(b, group))]).flat(3));
  const first = box.querySelector('details');
  if (first) first.open = true;
}
views.push({ id: 'refusals', label: 'Refusals', show: showRefusals, count: () => sum(method().backends || [], b => b.left) });

// --- quantization ---

const decibel = x => x === null || x === undefined ? 'exact' : x.toFixed(1);
function showQuantization() {
  const box = byId('view-quantization'), q = method().quantization;
  if (!q) return box.replaceChildren(el('div', { class: 'empty' }, 'Nothing was compared: the report has the error of each layer with ', code('--quantize'), ' and samples of ', code('--calibrate'), '.'));
  const bar = x => meter(x === null ? 0 : Math.max(0, 60 - x), 60);
  const rows = q.values.map(v => [
    v.place ? el('button', { class: 'link', type: 'button', onclick: () => showNode(0, n => n.place && rootPlace(method().places, n.place) === rootPlace(method().places, v.place)) }, v.node) : v.node,
    v.value || '', v.output_sqnr === null ? '' : decibel(v.output_sqnr), bar(v.output_sqnr), decibel(v.own_sqnr), decibel(v.sqnr),
    v.cosine === null ? '' : v.cosine.toFixed(4)]);
  box.replaceChildren(
    el('div', { class: 'card' }, el('h2', {}, 'The outputs'), el('p', { class: 'soft' }, `The quantized model beside the one in floats, on ${plural(q.samples, 'sample')}: signal to noise in dB, more is better.`),
      table(['output', 'dB', 'cosine'], q.outputs.map(o => [o.output, decibel(o.sqnr), o.cosine === null ? '' : o.cosine.toFixed(4)]), [1, 2])),
    el('div', { class: 'card' }, el('h2', {}, 'Layer by layer, the worst first'),
      el('p', { class: 'soft' }, '‘Output’ is what the worst output has when this node alone is quantized. ‘Own’ is what the node adds to its value: its weights and the rounding of its result. ‘All’ is what has piled up there. The longer the bar, the worse.'),
      table(['node', 'value', 'output dB', '', 'own dB', 'all dB', 'cosine'], rows, [2, 4, 5, 6])));
}
views.push({ id: 'quantization', label: 'Quantization', show: showQuantization, hidden: () => !method().quantization });

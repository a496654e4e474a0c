// Where nodes are drawn: layers by the longest path from the inputs, few crossings within layers (barycentres), and positions
// that are as near to those of the neighbours as the order allows (isotonic regression). Linear in nodes and edges but for sorting.
const NODE_WIDTH = 178, NODE_HEIGHT = 64, LAYER_GAP = 38, NODE_GAP = 26, BEND_WIDTH = 14;
const LONG_EDGE = 24; // layers; longer edges are only drawn in full from a node that is chosen
const SWEEPS = 3, ALIGN_SWEEPS = 4;

function findLayers(nodes, users) {
  const layer = new Int32Array(nodes.length);
  nodes.forEach((node, i) => { for (const from of node.in || []) layer[i] = Math.max(layer[i], layer[from] + 1); });
  // What has no operands stands right above its first user.
  for (let i = nodes.length - 1; i >= 0; i--)
    if (!(nodes[i].in || []).length && users[i].length) layer[i] = Math.max(0, users[i].reduce((least, u) => Math.min(least, layer[u]), Infinity) - 1);
  return layer;
}

// Items are nodes, then bends: places where an edge passes a layer between those of its ends.
function makeItems(nodes, layer) {
  const items = { layer: Array.from(layer), up: nodes.map(() => []), down: nodes.map(() => []), segments: [], long: [] };
  const link = (a, b, from, to) => {
    items.down[a].push(b);
    items.up[b].push(a);
    (items.segments[items.layer[a]] ||= []).push({ a, b, from, to });
  };
  nodes.forEach((node, to) => {
    for (const from of new Set(node.in || [])) {
      if (layer[to] - layer[from] > LONG_EDGE) { items.long.push({ from, to }); continue; }
      let last = from;
      for (let l = layer[from] + 1; l < layer[to]; l++) {
        const bend = items.layer.push(l) - 1;
        items.up.push([]);
        items.down.push([]);
        link(last, bend, from, to);
        last = bend;
      }
      link(last, to, from, to);
    }
  });
  return items;
}

function orderLayers(items) {
  const layers = [];
  items.layer.forEach((l, i) => (layers[l] ||= []).push(i));
  for (let l = 0; l < layers.length; l++) layers[l] ||= [];
  const at = new Float64Array(items.layer.length);
  const number = layer => layer.forEach((item, i) => { at[item] = i; });
  layers.forEach(number);
  const sweep = (layer, near) => {
    if (layer.length < 2) return;
    const key = new Map(layer.map(i => [i, near[i].length ? sum(near[i], k => at[k]) / near[i].length : at[i]]));
    layer.sort((a, b) => key.get(a) - key.get(b) || at[a] - at[b]);
    number(layer);
  };
  for (let s = 0; s < SWEEPS; s++) {
    for (let l = 1; l < layers.length; l++) sweep(layers[l], items.up);
    for (let l = layers.length - 2; l >= 0; l--) sweep(layers[l], items.down);
  }
  return layers;
}

// Positions in a layer, in order and apart, with the least squares of distances to what is wanted.
function alignLayer(layer, wanted, width, x) {
  const blocks = [];
  let offset = 0;
  layer.forEach((item, i) => {
    if (i) offset += (width(layer[i - 1]) + width(item)) / 2 + NODE_GAP;
    blocks.push({ total: wanted(item) - offset, count: 1 });
    while (blocks.length > 1) {
      const b = blocks[blocks.length - 1], a = blocks[blocks.length - 2];
      if (a.total / a.count <= b.total / b.count) break;
      a.total += b.total;
      a.count += b.count;
      blocks.pop();
    }
  });
  let at = 0, i = 0;
  offset = 0;
  for (const block of blocks)
    for (let k = 0; k < block.count; k++, i++) {
      if (i) offset += (width(layer[i - 1]) + width(layer[i])) / 2 + NODE_GAP;
      x[layer[i]] = at = block.total / block.count + offset;
    }
}

function layoutGraph(nodes) {
  const users = nodes.map(() => []);
  nodes.forEach((node, i) => { for (const from of new Set(node.in || [])) users[from].push(i); });
  const items = makeItems(nodes, findLayers(nodes, users));
  const layers = orderLayers(items);
  const width = item => item < nodes.length ? NODE_WIDTH : BEND_WIDTH;
  const x = new Float64Array(items.layer.length);
  const near = list => item => list[item].length ? sum(list[item], k => x[k]) / list[item].length : x[item];
  for (let s = 0; s < ALIGN_SWEEPS; s++) {
    for (const layer of layers) alignLayer(layer, near(items.up), width, x);
    for (let l = layers.length - 1; l >= 0; l--) alignLayer(layers[l], near(items.down), width, x);
  }
  let left = Infinity, right = -Infinity;
  for (const v of x) { left = Math.min(left, v); right = Math.max(right, v); }
  if (!x.length) left = right = 0;
  return { nodes, users, layers, x, layer: items.layer, segments: items.segments, long: items.long,
    left: left - NODE_WIDTH / 2, right: right + NODE_WIDTH / 2, height: layers.length * (NODE_HEIGHT + LAYER_GAP) };
}
const layerTop = layer => layer * (NODE_HEIGHT + LAYER_GAP);

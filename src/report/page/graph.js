// The graph of a stage on a canvas. Only what is visible is drawn.
const canvas = byId('graph'), minimap = byId('minimap'), paper = canvas.getContext('2d');
const camera = { x: 0, y: 0, scale: 1 }; // the point of the graph in the middle of the canvas
const LEAST_SCALE = .001, MOST_SCALE = 2.5;
let layout = null, overview = null, frame = 0, neighbours = new Set();

function sizeCanvas(c) {
  const ratio = devicePixelRatio || 1, box = c.getBoundingClientRect();
  const w = Math.max(1, Math.round(box.width * ratio)), h = Math.max(1, Math.round(box.height * ratio));
  if (c.width !== w || c.height !== h) { c.width = w; c.height = h; }
  return { ratio, width: box.width, height: box.height };
}

// --- drawing ---

function redraw() {
  overview = null;
  if (!frame) frame = requestAnimationFrame(draw);
}
function moved() { if (!frame) frame = requestAnimationFrame(draw); }

function visibleLayers(view) {
  const half = view.height / 2 / camera.scale, row = NODE_HEIGHT + LAYER_GAP;
  return [Math.max(0, Math.floor((camera.y - half) / row) - 1), Math.min(layout.layers.length - 1, Math.ceil((camera.y + half) / row))];
}

function drawEdge(x1, y1, x2, y2) {
  const middle = (y1 + y2) / 2;
  paper.moveTo(x1, y1);
  if (Math.abs(x1 - x2) < .5) paper.lineTo(x2, y2);
  else paper.bezierCurveTo(x1, middle, x2, middle, x2, y2);
}

// A segment of an edge; bends pass their layer upright.
function drawSegment(s) {
  const { x, layer, nodes } = layout;
  const top = layerTop(layer[s.a]) + NODE_HEIGHT, bottom = layerTop(layer[s.b]);
  drawEdge(x[s.a], top, x[s.b], bottom);
  if (s.b >= nodes.length) { paper.moveTo(x[s.b], bottom); paper.lineTo(x[s.b], bottom + NODE_HEIGHT); }
}

function drawEdges(first, last) {
  const chosen = [];
  paper.lineWidth = Math.max(1.2, .7 / camera.scale);
  paper.strokeStyle = colours.edge;
  paper.beginPath();
  for (let l = first; l <= last; l++)
    for (const s of layout.segments[l] || [])
      if (s.from === state.node || s.to === state.node) chosen.push(s);
      else drawSegment(s);
  for (const e of layout.long) drawStub(e, first, last);
  paper.stroke();
  paper.lineWidth = Math.max(2.4, 1.6 / camera.scale);
  paper.strokeStyle = colours.accent;
  paper.beginPath();
  chosen.forEach(drawSegment);
  for (const e of layout.long)
    if (e.from === state.node || e.to === state.node)
      drawEdge(layout.x[e.from], layerTop(layout.layer[e.from]) + NODE_HEIGHT, layout.x[e.to], layerTop(layout.layer[e.to]));
  paper.stroke();
}

// Of an edge over many layers: where it leaves and where it arrives.
function drawStub(e, first, last) {
  const from = layout.layer[e.from], to = layout.layer[e.to];
  if (from >= first && from <= last) {
    paper.moveTo(layout.x[e.from] + NODE_WIDTH / 4, layerTop(from) + NODE_HEIGHT);
    paper.lineTo(layout.x[e.from] + NODE_WIDTH / 4, layerTop(from) + NODE_HEIGHT + 9);
  }
  if (to >= first && to <= last) {
    paper.moveTo(layout.x[e.to] - NODE_WIDTH / 4, layerTop(to) - 9);
    paper.lineTo(layout.x[e.to] - NODE_WIDTH / 4, layerTop(to));
  }
}

function fitText(text, width, fromEnd) {
  const most = Math.floor(width);
  if (text.length <= most) return text;
  return fromEnd ? '…' + text.slice(text.length - most + 1) : text.slice(0, most - 1) + '…';
}

function drawNode(i) {
  const node = layout.nodes[i], f = fate(node), [fill, line] = fillOf(f);
  const x = layout.x[i] - NODE_WIDTH / 2, y = layerTop(layout.layer[i]), chosen = i === state.node;
  paper.beginPath();
  paper.roundRect(x, y, NODE_WIDTH, NODE_HEIGHT, f.kind === 'end' ? NODE_HEIGHT / 2 : 8);
  paper.fillStyle = fill;
  paper.fill();
  paper.lineWidth = chosen ? 3 : neighbours.has(i) ? 2 : 1;
  paper.strokeStyle = chosen || neighbours.has(i) ? colours.accent : line;
  paper.stroke();
  if (camera.scale < .22) return;
  if (refusalOf(node)) {
    paper.beginPath();
    paper.arc(x + NODE_WIDTH - 10, y + 10, 4, 0, 7);
    paper.fillStyle = colours.warn;
    paper.fill();
  }
  const left = f.kind === 'end' ? x + 20 : x + 10;
  paper.fillStyle = colours.ink;
  paper.font = '600 13px system-ui, sans-serif';
  paper.fillText(fitText(f.kind === 'end' ? node.op + ' ' + (node.name || '') : titleOf(node), 22, false), left, y + (f.kind === 'end' ? 28 : 20));
  if (camera.scale < .38) return;
  paper.fillStyle = colours.soft;
  paper.font = '11px system-ui, sans-serif';
  if (f.kind === 'end') return paper.fillText(fitText((node.out || [''])[0], 24, false), left, y + 46);
  paper.fillText(fitText(nodeName(node), 25, true), left, y + 37);
  paper.fillText(fitText((node.out || [''])[0] || '', 27, false), left, y + 53);
}

const titleOf = node => node.op.endsWith('call_delegate') ? 'delegate ' + (node.delegate || '') : shortOp(node.op);

function draw() {
  frame = 0;
  if (byId('view-graph').hidden || !layout) return;
  const view = sizeCanvas(canvas);
  paper.setTransform(1, 0, 0, 1, 0, 0);
  paper.clearRect(0, 0, canvas.width, canvas.height);
  const k = camera.scale * view.ratio;
  paper.setTransform(k, 0, 0, k, canvas.width / 2 - camera.x * k, canvas.height / 2 - camera.y * k);
  const [first, last] = visibleLayers(view), half = view.width / 2 / camera.scale + NODE_WIDTH;
  drawEdges(Math.max(0, first - 1), last);
  for (let l = first; l <= last; l++)
    for (const i of layout.layers[l])
      if (i < layout.nodes.length && Math.abs(layout.x[i] - camera.x) < half) drawNode(i);
  drawMinimap(view);
}

// --- the strip that shows all of it ---

function miniScale(view) {
  return { sx: (view.width - 6) / Math.max(1, layout.right - layout.left), sy: view.height / Math.max(1, layout.height) };
}
function drawMinimap(main) {
  const view = sizeCanvas(minimap), { sx, sy } = miniScale(view), c = minimap.getContext('2d');
  if (!overview || overview.width !== minimap.width || overview.height !== minimap.height) {
    overview = document.createElement('canvas');
    overview.width = minimap.width;
    overview.height = minimap.height;
    const o = overview.getContext('2d');
    o.scale(view.ratio, view.ratio);
    layout.nodes.forEach((node, i) => {
      o.fillStyle = fillOf(fate(node))[1];
      o.fillRect(3 + (layout.x[i] - NODE_WIDTH / 2 - layout.left) * sx, layerTop(layout.layer[i]) * sy, Math.max(2, NODE_WIDTH * sx), Math.max(1, NODE_HEIGHT * sy));
    });
  }
  c.setTransform(1, 0, 0, 1, 0, 0);
  c.clearRect(0, 0, minimap.width, minimap.height);
  c.drawImage(overview, 0, 0);
  c.scale(view.ratio, view.ratio);
  const h = Math.max(8, main.height / camera.scale * sy);
  c.strokeStyle = colours.accent;
  c.lineWidth = 2;
  c.strokeRect(1, camera.y * sy - h / 2, view.width - 2, h);
}

// --- moving ---

function clampCamera() {
  camera.scale = Math.min(MOST_SCALE, Math.max(LEAST_SCALE, camera.scale));
  camera.x = Math.min(layout.right, Math.max(layout.left, camera.x));
  camera.y = Math.min(layout.height, Math.max(0, camera.y));
}
function zoomBy(factor, px, py) {
  const box = canvas.getBoundingClientRect();
  const dx = (px === undefined ? 0 : px - box.left - box.width / 2), dy = (py === undefined ? 0 : py - box.top - box.height / 2);
  const before = camera.scale;
  camera.scale = Math.min(MOST_SCALE, Math.max(LEAST_SCALE, camera.scale * factor));
  camera.x += dx / before - dx / camera.scale;
  camera.y += dy / before - dy / camera.scale;
  clampCamera();
  moved();
}
function fitAll() {
  const box = canvas.getBoundingClientRect(), wide = layout.right - layout.left + 120;
  camera.scale = Math.min(1, box.width / wide, box.height / (layout.height + 60));
  camera.x = (layout.left + layout.right) / 2 + 26 / camera.scale;
  camera.y = layout.height / 2;
  clampCamera();
  moved();
}
// All of it where that can be read, else its begin.
function firstView() {
  const box = canvas.getBoundingClientRect();
  fitAll();
  if (camera.scale > .45) return;
  const extents = layout.layers.map(layer => layer.length ? layout.x[layer[layer.length - 1]] - layout.x[layer[0]] : 0).sort((a, b) => a - b);
  camera.scale = Math.min(1, Math.max(.55, box.width / (extents[Math.floor(extents.length * .9)] + NODE_WIDTH + 140)));
  const first = layout.layers[0] || [];
  const middle = first.filter(i => i < layout.nodes.length).map(i => layout.x[i]);
  camera.x = middle.length ? middle[middle.length >> 1] : 0;
  camera.y = box.height / 2 / camera.scale - 40;
  clampCamera();
  moved();
}
function centreOn(i) {
  camera.scale = Math.max(camera.scale, .6);
  camera.x = layout.x[i];
  camera.y = layerTop(layout.layer[i]) + NODE_HEIGHT / 2;
  const box = canvas.getBoundingClientRect(), details = byId('details').getBoundingClientRect();
  if (details.width && details.top > box.top && details.left < box.right) // on a phone the details cover what is below
    camera.y += Math.max(0, box.bottom - details.top) / 2 / camera.scale;
  moved();
}

function nodeAt(px, py) {
  const box = canvas.getBoundingClientRect();
  const x = camera.x + (px - box.left - box.width / 2) / camera.scale, y = camera.y + (py - box.top - box.height / 2) / camera.scale;
  const layer = layout.layers[Math.floor(y / (NODE_HEIGHT + LAYER_GAP))] || [];
  const found = layer.find(i => i < layout.nodes.length && Math.abs(layout.x[i] - x) <= NODE_WIDTH / 2 && y - layerTop(layout.layer[i]) <= NODE_HEIGHT);
  return found === undefined ? -1 : found;
}

// --- pointers ---

const pointers = new Map();
let dragged = 0, pinch = 0;
canvas.addEventListener('pointerdown', e => {
  canvas.setPointerCapture(e.pointerId);
  pointers.set(e.pointerId, { x: e.clientX, y: e.clientY });
  if (pointers.size === 1) dragged = 0;
  pinch = 0;
});
canvas.addEventListener('pointermove', e => {
  const p = pointers.get(e.pointerId);
  if (!p) return;
  const dx = e.clientX - p.x, dy = e.clientY - p.y;
  dragged += Math.abs(dx) + Math.abs(dy);
  p.x = e.clientX;
  p.y = e.clientY;
  const [a, b] = pointers.values();
  if (b) {
    const apart = Math.hypot(a.x - b.x, a.y - b.y);
    if (pinch) zoomBy(apart / pinch, (a.x + b.x) / 2, (a.y + b.y) / 2);
    pinch = apart;
  }
  camera.x -= dx / camera.scale / pointers.size;
  camera.y -= dy / camera.scale / pointers.size;
  clampCamera();
  moved();
});
function lift(e) {
  if (pointers.delete(e.pointerId) && !pointers.size && dragged < 6 && e.type === 'pointerup') selectNode(nodeAt(e.clientX, e.clientY));
  pinch = 0;
}
canvas.addEventListener('pointerup', lift);
canvas.addEventListener('pointercancel', lift);
canvas.addEventListener('wheel', e => {
  e.preventDefault();
  if (e.ctrlKey || e.metaKey) return zoomBy(Math.exp(-e.deltaY / (e.deltaMode ? 20 : 250)), e.clientX, e.clientY);
  const unit = e.deltaMode ? 30 : 1;
  camera.x += (e.shiftKey ? e.deltaY : e.deltaX) * unit / camera.scale;
  camera.y += (e.shiftKey ? 0 : e.deltaY) * unit / camera.scale;
  clampCamera();
  moved();
}, { passive: false });
canvas.addEventListener('dblclick', e => zoomBy(1.6, e.clientX, e.clientY));
function minimapTo(e) {
  if (e.type === 'pointermove' && !(e.buttons & 1)) return;
  const box = minimap.getBoundingClientRect();
  camera.y = (e.clientY - box.top) / miniScale(box).sy;
  clampCamera();
  moved();
}
minimap.addEventListener('pointerdown', e => { minimap.setPointerCapture(e.pointerId); minimapTo(e); });
minimap.addEventListener('pointermove', minimapTo);
byId('zoom-in').addEventListener('click', () => zoomBy(1.4));
byId('zoom-out').addEventListener('click', () => zoomBy(1 / 1.4));
byId('zoom-fit').addEventListener('click', fitAll);

// --- the keyboard ---

function beside(i, step) {
  const layer = layout.layers[layout.layer[i]].filter(k => k < layout.nodes.length);
  return layer[layer.indexOf(i) + step];
}
function nextByKey(key) {
  const i = state.node, last = layout.nodes.length - 1;
  if (key === 'Home') return 0;
  if (key === 'End') return last;
  if (i < 0) return key.startsWith('Arrow') ? 0 : undefined;
  if (key === 'ArrowUp') return (layout.nodes[i].in || [])[0];
  if (key === 'ArrowDown') return layout.users[i][0];
  if (key === 'ArrowLeft') return beside(i, -1);
  return key === 'ArrowRight' ? beside(i, 1) : undefined;
}
canvas.addEventListener('keydown', e => {
  if (e.ctrlKey || e.altKey || e.metaKey || !layout.nodes.length) return;
  const to = nextByKey(e.key);
  if (to !== undefined) { selectNode(to); centreOn(to); }
  else if (e.key === '+' || e.key === '=') zoomBy(1.3);
  else if (e.key === '-') zoomBy(1 / 1.3);
  else if (e.key === '0') fitAll();
  else if (e.key === 'Enter' && state.node >= 0) byId('details').focus();
  else if (e.key === 'Escape') selectNode(-1);
  else if (!e.key.startsWith('Arrow')) return;
  e.preventDefault();
});

// --- choosing ---

function selectNode(i) {
  state.node = i;
  neighbours = new Set(i < 0 ? [] : [...(layout.nodes[i].in || []), ...layout.users[i]]);
  showDetails();
  if (i >= 0) byId('said').textContent = `${titleOf(layout.nodes[i])} ${nodeName(layout.nodes[i])}, ${(layout.nodes[i].out || []).join(', ')}`;
  moved();
}
function goTo(i) { selectNode(i); centreOn(i); }

// Shows the node of the last stage, or of a place, in the graph.
function showNode(stage, find) {
  chooseStage(stage);
  choose('graph');
  const i = nodesNow().findIndex(find);
  if (i >= 0) goTo(i);
  canvas.focus({ preventScroll: true });
}

function chooseStage(i) {
  const kept = state.node >= 0 && layout ? layout.nodes[state.node] : null, before = layout && layout.nodes;
  state.stage = i;
  const nodes = nodesNow();
  if (before !== nodes) layout = layoutGraph(nodes);
  [...byId('stages').children].forEach((b, k) => b.setAttribute('aria-pressed', String(k === i)));
  const stage = method().stages[i];
  byId('stage-note').textContent = `${stage.summary.charAt(0).toUpperCase() + stage.summary.slice(1)}. ${plural(countNodes(stage), 'node')}${stage.same_as ? ', as after ' + stage.same_as : ''}. ` +
    (matchMedia('(pointer: coarse)').matches ? 'Drag to move, pinch to zoom.' : 'Scroll or drag to move, Ctrl and scroll to zoom.');
  showLegend();
  overview = null;
  if (before === nodes) return selectNode(state.node);
  selectNode(kept ? sameNode(kept, nodes) : -1);
  if (byId('view-graph').hidden) needsView = true;
  else if (state.node >= 0) centreOn(state.node);
  else firstView();
}
let needsView = true;

// The node of another stage that the same node of the model became.
function sameNode(node, nodes) {
  const places = method().places, place = node.place && rootPlace(places, node.place);
  return nodes.findIndex(n => place ? n.place && rootPlace(places, n.place) === place : n.op === node.op && n.name === node.name);
}

function showLegend() {
  const kinds = new Map();
  for (const node of nodesNow()) { const f = fate(node); kinds.set(f.kind + (f.number || ''), f); }
  const text = f => f.kind === 'delegate' ? `delegate ${f.number}` : f.kind === 'kernel' ? 'portable kernels' : f.kind === 'end' ? 'inputs, outputs' : 'computed ahead, or part of other nodes';
  const list = [...kinds.values()].sort((a, b) => (a.number || 999) - (b.number || 999));
  const shown = list.filter(f => f.kind !== 'delegate' || f.number <= 6);
  byId('legend').replaceChildren(...shown.map(f => el('span', {}, swatch(...fillOf(f)), text(f))),
    list.length > shown.length ? el('span', {}, `and ${list.length - shown.length} delegates more`) : '');
}

function showGraph() {
  sizeCanvas(canvas);
  if (needsView) { needsView = false; firstView(); }
  moved();
}
function prepareGraph() {
  byId('stages').replaceChildren(...method().stages.map((stage, i) => el('button', { type: 'button', 'aria-pressed': 'false', title: stage.summary, class: stage.same_as ? 'same' : null,
    onclick: () => chooseStage(i) }, stage.name, el('small', {}, countNodes(stage)))));
  layout = null;
  state.node = -1;
  needsView = true;
  chooseStage(0);
}
new ResizeObserver(moved).observe(canvas);
views.push({ id: 'graph', label: 'Graph', show: showGraph });

// Memory over time: every tensor a block, its place in the arena upwards, its lifetime to the right.
let memoryAt = null, memoryArena = null, memoryParts = null;
const CURVE = 74; // height of the curve of what is in use

const memoryBlocks = () => method().memory.blocks.filter(b => b.arena === memoryArena && b.bytes);
const aliveAt = t => method().memory.blocks.filter(b => b.bytes && b.first <= t && t <= b.last).sort((a, b) => b.bytes - a.bytes);

// Bytes in use at each time, of all arenas.
function usage() {
  const m = method().memory, change = new Float64Array(m.end + 2);
  for (const b of m.blocks) { change[b.first] += b.bytes; change[b.last + 1] -= b.bytes; }
  let live = 0;
  return Array.from(change.slice(0, m.end + 1), c => live += c);
}

function timeText(t) {
  const m = method(), first = m.inputs.length + firstNode();
  if (t === 0) return 'before the first instruction';
  if (t >= m.memory.end) return 'after the last instruction';
  const node = lastNodes()[first + t - 1];
  return `at instruction ${t} of ${m.memory.end - 1}, ${titleOf(node)} ${nodeName(node)}`.trim();
}
const firstNode = () => lastNodes().filter(n => n.op === 'state').length;
const blockName = b => b.name || nodeName(lastNodes()[b.node]) || shortOp(lastNodes()[b.node].op);

function drawMemory() {
  const c = byId('memory');
  if (!c || byId('view-memory').hidden) return;
  const view = sizeCanvas(c), p = c.getContext('2d'), m = method().memory;
  const arena = m.arenas.find(a => a.id === memoryArena) || { bytes: 1 };
  const left = 4, right = view.width - 4, top = CURVE + 12, bottom = view.height - 4;
  const x = t => left + (right - left) * t / (m.end + 1), y = offset => bottom - (bottom - top) * offset / Math.max(1, arena.bytes);
  p.setTransform(view.ratio, 0, 0, view.ratio, 0, 0);
  p.clearRect(0, 0, view.width, view.height);
  p.fillStyle = colours.bg;
  p.fillRect(left, top, right - left, bottom - top);
  const used = usage(), most = used.reduce((a, b) => Math.max(a, b), 1);
  p.beginPath();
  p.moveTo(left, CURVE);
  used.forEach((n, t) => { p.lineTo(x(t), CURVE - (CURVE - 8) * n / most); p.lineTo(x(t + 1), CURVE - (CURVE - 8) * n / most); });
  p.lineTo(right, CURVE);
  p.fillStyle = colours.accent + '44';
  p.fill();
  p.strokeStyle = colours.accent;
  p.lineWidth = 1.2;
  p.stroke();
  const fillsOf = memoryFills();
  for (const b of memoryBlocks()) {
    const alive = b.first <= memoryAt && memoryAt <= b.last, [fill, line] = fillsOf(b);
    const x1 = x(b.first), w = Math.max(1.5, x(b.last + 1) - x1), y1 = y(b.offset + b.bytes), h = Math.max(1, y(b.offset) - y1);
    p.globalAlpha = alive ? 1 : .65;
    p.fillStyle = fill;
    p.fillRect(x1, y1, w, h);
    p.strokeStyle = line;
    p.lineWidth = alive ? 1.5 : .8;
    p.strokeRect(x1 + .5, y1 + .5, Math.max(.5, w - 1), Math.max(.5, h - 1));
    if (w > 60 && h > 15) {
      p.fillStyle = colours.ink;
      p.font = '11px system-ui, sans-serif';
      p.fillText(fitText(blockName(b), w / 6.4, true), x1 + 4, y1 + h / 2 + 4);
    }
    p.globalAlpha = 1;
  }
  p.strokeStyle = colours.warn;
  p.lineWidth = 2;
  p.beginPath();
  p.moveTo(x(memoryAt + .5), 0);
  p.lineTo(x(memoryAt + .5), view.height);
  p.stroke();
  memoryParts = { x, y, left, right, end: m.end };
}
// As in the last stage.
function fateOfBlock(b) {
  const node = lastNodes()[b.node];
  if (node.op === 'input' || node.op === 'state') return { kind: 'end' };
  if (node.delegate) return { kind: 'delegate', number: node.delegate };
  return { kind: 'kernel' };
}
// Kernels by op, in colours that no delegate has.
function memoryFills() {
  const ops = [...new Set(lastNodes().map(n => n.op))], first = method().delegates.length + 1;
  return b => {
    const f = fateOfBlock(b), number = first + ops.indexOf(lastNodes()[b.node].op);
    return f.kind === 'kernel' ? [tone(number, 'light'), tone(number, 'line')] : fillOf(f);
  };
}

function memoryTable() {
  const alive = aliveAt(memoryAt), total = sum(alive, b => b.bytes);
  const rows = alive.slice(0, 40).map(b => [
    el('button', { class: 'link', type: 'button', onclick: () => showNode(method().stages.length - 1, n => n === lastNodes()[b.node]) }, blockName(b)),
    shortOp(lastNodes()[b.node].op), code(b.type), bytes(b.bytes), percent(b.bytes, total), `${b.first}–${b.last}`]);
  return [el('h2', {}, `${plural(alive.length, 'tensor')}, ${bytes(total)}, in use ${timeText(memoryAt)}`),
    table(['tensor', 'made by', 'type', 'bytes', 'share', 'in use'], rows, [3, 4, 5]),
    alive.length > 40 ? el('p', { class: 'soft' }, `and ${alive.length - 40} smaller ones`) : ''];
}

function setTime(t) {
  const end = method().memory.end;
  memoryAt = Math.min(end, Math.max(0, t));
  byId('time').value = memoryAt;
  byId('time-table').replaceChildren(...memoryTable());
  drawMemory();
}

// The arena that holds most at the peak.
function fullestArena() {
  const m = method().memory, held = a => sum(m.peak.blocks.map(i => m.blocks[i]).filter(b => b.arena === a.id), b => b.bytes);
  return m.arenas.reduce((most, a) => held(a) > held(most) ? a : most).id;
}

function arenaText(count, total, peak) {
  if (count > 1) return `The ${count} arenas have ${bytes(total)} together; each has room for the time when it is fullest itself.`;
  return total - peak <= peak / 50 ? `The arena of ${bytes(total)} is as small as that allows.`
    : `The arena of ${bytes(total)} has ${bytes(total - peak)} more, in gaps between tensors.`;
}

function peakText() {
  const m = method().memory, total = sum(m.arenas, a => a.bytes), alive = m.peak.blocks.map(i => m.blocks[i]).sort((a, b) => b.bytes - a.bytes);
  const largest = alive.slice(0, 3).map(b => `${blockName(b)} (${bytes(b.bytes)})`).join(', ');
  return `The peak is ${bytes(m.peak.bytes)}, ${timeText(m.peak.at)}: ${plural(alive.length, 'tensor')} are in use there at once` +
    (largest ? `, the largest ${alive.length > 1 ? 'ones ' : ''}${largest}. ` : '. ') + arenaText(m.arenas.length, total, m.peak.bytes);
}

function showMemory() {
  const m = method().memory, box = byId('view-memory');
  if (!m.blocks.length) return box.replaceChildren(el('div', { class: 'empty' }, 'No tensor of this method has planned memory.'));
  if (memoryAt === null) memoryAt = m.peak.at;
  if (!m.arenas.some(a => a.id === memoryArena)) memoryArena = fullestArena();
  const arenaName = a => (a.name || 'arena ' + a.id) + ', ' + bytes(a.bytes) + (a.limit ? ' of ' + bytes(a.limit) : '');
  box.replaceChildren(
    el('div', { class: 'card' }, el('h2', {}, 'Memory over time'), el('p', { id: 'peak-text' }, peakText()),
      m.arenas.length > 1 ? el('label', {}, 'Show ', el('select', { onchange: e => { memoryArena = +e.target.value; drawMemory(); } },
        m.arenas.map(a => el('option', { value: a.id, selected: a.id === memoryArena }, arenaName(a))))) : null,
      el('canvas', { id: 'memory', role: 'img', 'aria-label': peakText(), onpointerdown: pickTime, onpointermove: e => { if (e.buttons & 1) pickTime(e); } }),
      el('div', { class: 'slider' },
        el('label', { for: 'time' }, 'Instruction'),
        el('input', { type: 'range', id: 'time', min: 0, max: m.end, value: memoryAt, oninput: e => setTime(+e.target.value) }),
        el('button', { class: 'pick', type: 'button', onclick: () => setTime(m.peak.at) }, 'Go to the peak')),
      el('p', { class: 'soft' }, 'Above: bytes in use' + (m.arenas.length > 1 ? ', of all arenas' : '') + '. Below: where each tensor lies in the arena, and how long.')),
    el('div', { class: 'card', id: 'time-table' }));
  setTime(memoryAt);
}
function pickTime(e) {
  const box = byId('memory').getBoundingClientRect(), p = memoryParts;
  setTime(Math.floor((e.clientX - box.left - p.left) / (p.right - p.left) * (p.end + 1)));
}
addEventListener('resize', drawMemory);
views.push({ id: 'memory', label: 'Memory', show: showMemory });

// The first view: figures, what to try next, stages, inputs and outputs, delegates.
function figure(value, label, more) {
  return el('div', { class: 'figure' }, el('b', {}, value), el('span', {}, label), more);
}

// '--option' in a sentence stands out.
function withOptions(text) {
  return text.split(/(--[a-z][\w-]*(?: (?:xnnpack(?::[\w=+@/*-]+)?|DB|int\d[\w-]*|\w+[=:][^\s;]+))?)/).map(part => part.startsWith('--') ? code(part) : part);
}

function stageRows() {
  const most = Math.max(1, ...method().stages.map(s => stageNodes(s).length));
  return method().stages.map((stage, i) => [
    el('button', { class: 'link', type: 'button', onclick: () => { chooseStage(i); choose('graph'); } }, stage.name),
    stage.summary + (stage.same_as ? ' (nothing changed)' : ''),
    countNodes(stage), meter(stageNodes(stage).length, most)]);
}
const countNodes = stage => stageNodes(stage).filter(n => !['input', 'output', 'state'].includes(n.op)).length;

// What the backend expected all calls of a delegate to save, by its number; null: it did not say.
function savedBy(number) {
  const all = method().backends.flatMap(b => b.delegates).filter(d => d.delegate === number && d.saved_ns_estimate !== undefined);
  return all.length ? sum(all, d => d.saved_ns_estimate - d.spent_ns_estimate) : null;
}
const time = ns => ns < 1e3 ? ns.toFixed(0) + ' ns' : ns < 1e6 ? (ns / 1e3).toFixed(1) + ' µs' : (ns / 1e6).toFixed(1) + ' ms';

function delegateRows() {
  return method().delegates.map((d, i) => [
    el('span', {}, el('span', { class: 'keep' }, delegateSwatch(i + 1), 'Delegate ' + (i + 1)), el('div', { class: 'soft' }, d.backend)),
    d.calls,
    d.nodes === undefined ? '?' : d.nodes,
    d.work === undefined ? '' : amount(d.work),
    d.constant_bytes === undefined ? '' : bytes(d.constant_bytes),
    d.packed_bytes_estimate === undefined ? '' : bytes(d.packed_bytes_estimate + d.workspace_bytes_estimate),
    savedBy(i + 1) === null ? '' : time(savedBy(i + 1))]);
}

function showSummary() {
  const p = facts.program, f = facts.figures, m = method();
  const ends = items => items.map(x => [x.name || '', code(x.type), x.bytes === undefined ? '' : bytes(x.bytes)]);
  byId('view-summary').replaceChildren(
    el('div', { class: 'figures' },
      figure(bytes(p.file_bytes), 'program file'),
      figure(bytes(p.weight_bytes), 'weights'),
      figure(bytes(p.arena_bytes), 'memory for tensors'),
      (p.banks || []).map(b => figure(bytes(b.bytes), 'of it in ' + b.name + (b.limit === undefined || b.methods > 1 ? '' : ', which has ' + bytes(b.limit)))),
      f.packed_bytes_estimate || f.workspace_bytes_estimate
        ? figure('≈ ' + bytes(f.packed_bytes_estimate + f.workspace_bytes_estimate), 'more memory in delegates') : null,
      figure(String(p.kernel_calls), 'kernel calls'),
      figure(String(p.delegate_calls), 'delegate calls'),
      f.work ? figure(percent(f.work - f.kernel_work, f.work), 'of ' + amount(f.work) + ' multiply-adds in delegates') : null),
    el('div', { class: 'columns' },
      el('div', {},
        el('div', { class: 'card' }, el('h2', {}, 'What to try next'),
          facts.next.length ? el('ul', { class: 'next' }, facts.next.map(text => el('li', {}, withOptions(text))))
            : el('p', { class: 'soft' }, 'Nothing stands out.')),
        el('div', { class: 'card' }, el('h2', {}, 'Inputs and outputs'),
          table(['input', 'type', 'at most'], ends(m.inputs), [2]), el('p', {}),
          table(['output', 'type', 'at most'], ends(m.outputs), [2]))),
      el('div', {},
        el('div', { class: 'card' }, el('h2', {}, 'Stages'), table(['stage', 'what it does', 'nodes', ''], stageRows(), [2])),
        m.delegates.length ? el('div', { class: 'card' }, el('h2', {}, 'Delegates'),
          table(['', 'calls', 'nodes', 'multiply-adds', 'weights', '≈ memory', '≈ saves'], delegateRows(), [1, 2, 3, 4, 5, 6])) : null,
        el('div', { class: 'card' }, el('h2', {}, 'How it was made'),
          el('p', {}, 'Model ', code(m.model), ', method ', code(m.name), ', etc ' + facts.etc + '.'),
          m.options.length ? el('p', {}, 'Options: ', m.options.map(o => [code('--' + o.replace('=', ' ')), ' '])) : null))));
}
views.push({ id: 'summary', label: 'Summary', show: showSummary });

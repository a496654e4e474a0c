// The box that finds nodes by the names of the model, of values, and by op.
const search = byId('search'), found = byId('found');
const MOST_FOUND = 60;
let hits = [], hit = -1;

function findNodes(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean), out = [];
  if (!words.length) return out;
  layout.nodes.forEach((node, i) => {
    const place = placeOf(node);
    const all = [node.op, titleOf(node), place.name, place.op, node.name].join('\n').toLowerCase();
    if (words.every(w => all.includes(w))) out.push({ i, exact: (place.name || node.name || '').toLowerCase() === text.trim().toLowerCase() });
  });
  return out.sort((a, b) => b.exact - a.exact).map(x => x.i);
}
function markHit(to) {
  hit = to;
  [...found.children].forEach((li, i) => {
    li.setAttribute('aria-selected', String(i === hit));
    if (i === hit) li.scrollIntoView({ block: 'nearest' });
  });
  if (hit >= 0) search.setAttribute('aria-activedescendant', 'hit-' + hit);
  else search.removeAttribute('aria-activedescendant');
}
function showFound(open) {
  found.hidden = !open;
  search.setAttribute('aria-expanded', String(open));
}
function updateSearch() {
  hits = findNodes(search.value);
  const items = hits.slice(0, MOST_FOUND).map((n, i) => el('li', { role: 'option', id: 'hit-' + i, 'aria-selected': 'false',
    onpointerdown: e => { e.preventDefault(); jump(i); } }, el('b', {}, titleOf(layout.nodes[n])), ' ' + nodeName(layout.nodes[n])));
  if (hits.length > MOST_FOUND) items.push(el('li', { class: 'soft', 'aria-disabled': 'true' }, `and ${hits.length - MOST_FOUND} more`));
  if (search.value.trim() && !hits.length) items.push(el('li', { class: 'soft', 'aria-disabled': 'true' }, 'No node has that name.'));
  found.replaceChildren(...items);
  markHit(-1);
  showFound(search.value.trim() !== '');
  byId('said').textContent = search.value.trim() ? plural(hits.length, 'node') + ' found' : '';
}
function jump(i) {
  if (hits[i] === undefined) return;
  markHit(i);
  goTo(hits[i]);
  showFound(false);
}
search.addEventListener('input', updateSearch);
search.addEventListener('focus', () => { if (search.value.trim()) updateSearch(); });
search.addEventListener('blur', () => showFound(false));
search.addEventListener('keydown', e => {
  const most = Math.min(hits.length, MOST_FOUND);
  if (e.key === 'ArrowDown') { showFound(true); markHit(most ? (hit + 1) % most : -1); }
  else if (e.key === 'ArrowUp') markHit(most ? (hit - 1 + most) % most : -1);
  else if (e.key === 'Enter') jump(!found.hidden && hit >= 0 ? hit : found.hidden && hit >= 0 ? (hit + 1) % most : 0); // again: the next one
  else if (e.key === 'Escape') { search.value = ''; updateSearch(); canvas.focus(); }
  else return;
  e.preventDefault();
});

// Views as tabs, the method, light and dark.
function choose(id) {
  for (const view of views) {
    const chosen = view.id === id, tab = byId('tab-' + view.id);
    byId('view-' + view.id).hidden = !chosen;
    tab.setAttribute('aria-selected', String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    if (chosen) tab.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }
  views.find(view => view.id === id).show();
  history.replaceState(null, '', '#/' + id); // no id of an element, which would be scrolled to
}

function viewNow() {
  const id = location.hash.slice(2), view = views.find(v => v.id === id && !(v.hidden && v.hidden()));
  return view ? id : 'summary';
}

function makeTabs() {
  byId('tabs').replaceChildren(...views.map(view => {
    const n = view.count ? view.count() : 0;
    return el('button', { type: 'button', role: 'tab', id: 'tab-' + view.id, 'aria-controls': 'view-' + view.id, 'aria-selected': 'false',
      hidden: view.hidden ? view.hidden() : false, onclick: () => choose(view.id) }, view.label, n ? el('span', { class: 'n' }, n) : '');
  }));
}
byId('tabs').addEventListener('keydown', e => {
  const tabs = [...byId('tabs').children].filter(t => !t.hidden), at = tabs.indexOf(document.activeElement);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[e.key];
  if (at < 0 || to === undefined) return;
  const tab = tabs[(to + tabs.length) % tabs.length];
  tab.focus();
  tab.click();
  e.preventDefault();
});
addEventListener('keydown', e => {
  if (e.key !== '/' || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
  choose('graph');
  search.focus();
  e.preventDefault();
});

function chooseMethod(i) {
  state.method = i;
  memoryAt = null;
  sizePath = [];
  prepareRefusals();
  prepareGraph();
  makeTabs();
  choose(viewNow());
}

byId('theme').addEventListener('click', () => { theme = root.classList.contains('dark') ? 'light' : 'dark'; applyTheme(); showAgain(); });
prefersDark.addEventListener('change', () => { applyTheme(); showAgain(); });
function showAgain() {
  showLegend();
  showDetails();
  choose(viewNow());
}

document.title = facts.program.file + ' · etc report';
byId('title').textContent = facts.program.file;
byId('method-box').hidden = facts.methods.length < 2;
byId('method').replaceChildren(...facts.methods.map((m, i) => el('option', { value: i }, m.name)));
byId('method').addEventListener('change', e => chooseMethod(+e.target.value));
applyTheme();
chooseMethod(0);

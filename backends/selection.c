/* See selection.h. */
#include "backends/selection.h"

#include "support/text.h"

bool selection_next(StrView *rest, StrView *term) {
  if (!rest->data || rest->size == 0)
    return false;
  const char *plus = memchr(rest->data, '+', rest->size);
  *term = (StrView){rest->data, plus ? (size_t)(plus - rest->data) : rest->size};
  size_t used = term->size + !!plus;
  *rest = (StrView){rest->data + used, rest->size - used};
  return true;
}

StrView selection_local_name(StrView name) {
  for (size_t i = 0; i + 1 < name.size; i++)
    if (name.data[i] == ':' && name.data[i + 1] == ':')
      return (StrView){name.data + i + 2, name.size - i - 2};
  return name;
}

bool selection_names_op(StrView term, OpId op) {
  const OpSchema *schema = op_schema(op);
  return sv_eq(term, schema->full) || sv_eq(term, schema->name) ||
         sv_eq(term, selection_local_name(schema->full)) ||
         sv_eq(term, selection_local_name(schema->name));
}

static bool names_node(StrView term) { return term.size > 1 && term.data[0] == '@'; }

bool selection_names_operator(StrView term) {
  return term.size && term.data[0] >= 'A' && term.data[0] <= 'Z';
}

static bool term_selects(StrView term, const Graph *g, NodeId n) {
  StrView star;
  if (names_node(term))
    return text_match((StrView){term.data + 1, term.size - 1}, node_place(g, n).node, &star);
  if (selection_names_operator(term))
    return sv_eq(term, node_place(g, n).op);
  return selection_names_op(term, (OpId)g->nodes[n].op);
}

bool selection_term_known(const Backend *backend, StrView term) {
  for (unsigned op = 1; op < op_count(); op++)
    if (backend->knows((OpId)op) && selection_names_op(term, (OpId)op))
      return true;
  return names_node(term);
}

const char *selection_nearest(const Backend *backend, StrView term, Arena *arena) {
  const char *names[OP_COUNT];
  size_t count = 0;
  bool global = selection_local_name(term).size != term.size,
       overload = term.size && memchr(term.data, '.', term.size);
  for (unsigned op = 1; op < op_count(); op++) {
    if (selection_names_op(term, (OpId)op))
      return NULL;
    if (!backend->knows((OpId)op))
      continue;
    const OpSchema *schema = op_schema((OpId)op);
    StrView name = overload ? schema->full : schema->name;
    names[count++] = arena_strdup(arena, global ? name : selection_local_name(name));
  }
  return text_nearest(term, names, count);
}

StrView selection_of_node(StrView selection, const Graph *g, NodeId n) {
  StrView term;
  while (selection_next(&selection, &term))
    if (term_selects(term, g, n))
      return term;
  return (StrView){0};
}

static bool selects_any(StrView term, const Graph *g) {
  for (FOR_NODES(g, n))
    if (term_selects(term, g, n))
      return true;
  return false;
}

/* The nearest name of a node where the term has no star. */
static void hint_node(Diag *d, StrView term, const Graph *g) {
  Arena scratch = {0};
  if (!names_node(term) || memchr(term.data, '*', term.size))
    return;
  const char **names = ARENA_ARRAY(&scratch, const char *, g->node_count);
  size_t count = 0;
  for (FOR_NODES(g, n))
    if (node_place(g, n).node.size)
      names[count++] = arena_strdup(&scratch, node_place(g, n).node);
  (void)diag_hint_nearest(d, (StrView){term.data + 1, term.size - 1}, names, count);
  arena_release(&scratch);
}

void selection_warn_unused(DiagSink *sink, const char *option, const char *setting,
                           StrView selection, const Graph *g) {
  StrView term;
  DiagPlace place = DIAG_NOWHERE;
  place.option = sv_from(option);
  while (selection_next(&selection, &term)) {
    if (!(names_node(term) || selection_names_operator(term)) || selects_any(term, g))
      continue;
    Diag *d = diag_begin(sink, DIAG_SELECTION_UNUSED, place);
    diag_message(d, "%s=" SV_FMT ": no node of '" SV_FMT "' has that %s", setting, SV_ARG(term),
                 SV_ARG(graph_name(g)), names_node(term) ? "name" : "operator");
    hint_node(d, term, g);
    (void)diag_end(d);
  }
}

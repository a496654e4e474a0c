/* See signature.h. */
#include "pipeline/signature.h"

#include "ir/text.h"

static SignatureItem item_of(const Graph *g, ValueId v, NameId name) {
  bool known = v && v < g->value_count && g->values[v].type < g->type_count;
  return (SignatureItem){name, known ? *value_type(g, v) : (Type){.kind = TYPE_NONE}};
}

static SignatureItems inputs_of(const Graph *g, Arena *arena) {
  SignatureItem *items = ARENA_ARRAY(arena, SignatureItem, (size_t)g->input_count + 1);
  for (uint32_t i = 0; i < g->input_count; i++) {
    ValueId v = g->inputs[i];
    items[i] = item_of(g, v, v < g->value_count ? g->values[v].name : 0);
  }
  return (SignatureItems){items, g->input_count};
}

static SignatureItems outputs_of(const Graph *g, Arena *arena) {
  uint32_t count = graph_output_count(g);
  SignatureItem *items = ARENA_ARRAY(arena, SignatureItem, (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++)
    items[i] = item_of(g, graph_output(g, i), graph_output_name(g, i));
  return (SignatureItems){items, count};
}

Signature signature_of(const Graph *g, Arena *arena) {
  return (Signature){g->name, g->level, inputs_of(g, arena), outputs_of(g, arena)};
}

/* Sizes that vary may be written as other expressions: whether these are equal is not always
 * known. */
static bool same_type(const Type *a, const Type *b) {
  bool same =
      a->kind == b->kind && a->dtype == b->dtype && a->order == b->order && a->rank == b->rank;
  for (uint32_t i = 0; same && a->kind == TYPE_TENSOR && i < a->rank; i++)
    same = a->dims[i] == b->dims[i] || (!sym_is_const(a->dims[i]) && !sym_is_const(b->dims[i]));
  return same;
}

static const char *type_text(const Graph *g, const Type *t, Arena *arena) {
  StrBuf text = {0};
  type_print(g, t, &text);
  const char *kept = arena_printf(arena, "%s", strbuf_cstr(&text));
  strbuf_release(&text);
  return kept;
}

static const char *items_change(const Graph *g, const char *what, SignatureItems was,
                                SignatureItems is, Arena *arena) {
  if (is.count != was.count)
    return arena_printf(arena, "has %u %ss, not %u", is.count, what, was.count);
  for (uint32_t i = 0; i < is.count; i++) {
    const SignatureItem *old = &was.items[i], *now = &is.items[i];
    StrView name = intern_get(&g->ctx->names, old->name);
    if (now->name != old->name)
      return arena_printf(arena, "has another %s %u than '" SV_FMT "'", what, i, SV_ARG(name));
    if (!same_type(&now->type, &old->type))
      return arena_printf(arena, "has %s %u '" SV_FMT "' of type %s, not %s", what, i, SV_ARG(name),
                          type_text(g, &now->type, arena), type_text(g, &old->type, arena));
  }
  return NULL;
}

const char *signature_change(const Signature *before, const Graph *g, Arena *arena) {
  if (g->name != before->name)
    return "has another name";
  if (g->level != before->level)
    return arena_printf(arena, "says that it is at another level than %s",
                        level_name(before->level));
  const char *change = items_change(g, "input", before->inputs, inputs_of(g, arena), arena);
  return change ? change : items_change(g, "output", before->outputs, outputs_of(g, arena), arena);
}

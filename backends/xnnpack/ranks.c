/* Keeps dims of 1 that an operand of one element adds.
 *
 * XNNPACK makes one table of functions that follow each other between values of 8 bits
 * (xnn_subgraph_fuse_unary_quantized_into_lut of its subgraph.c). It takes a product or sum with a
 * constant of one element for such a function, and the result for one of the shape of the other
 * operand: dims that the constant adds in front are lost. A constant that is reshaped while the
 * graph runs is none for it. */
#include "backends/xnnpack/lower.h"

typedef struct Ranks {
  XnnLowering *l;
  bool *of_codes;  /* by XnnId: computed of codes by functions */
  XnnId *reshaped; /* by XnnId of a constant; 0: not yet, since no result is value 0 */
} Ranks;

static bool is_of_codes(const Ranks *r, XnnId id) {
  const XnnValue *v = &r->l->x.values[id];
  return r->of_codes[id] || (!v->data && xnn_element_size(v->datatype) == 1);
}

static bool is_number(const XnnValue *v) {
  return v->data && xnn_dims_count(v->dims, v->rank) == 1;
}

/* A function of each element: one operand or two of floats or codes, and no lists. */
static bool is_function(const XnnNode *n) {
  const char *fields = xnn_node_rows[n->kind].fields;
  return xnn_broadcasts(n->kind) ||
         (strchr(fields, 'i') == strrchr(fields, 'i') && !strpbrk(fields, "bnv"));
}

static XnnId reshaped_number(Ranks *r, XnnId number) {
  static const uint32_t ones[XNN_MAX_RANK] = {1, 1, 1, 1, 1, 1};
  if (!r->reshaped[number]) {
    XnnId made = xl_temp_like(r->l, number);
    xl_reshape_inferred(r->l, number, ones, xl_rank(r->l, number), made);
    r->reshaped[number] = made;
  }
  return r->reshaped[number];
}

/* Operand i of n, if it is a number that adds dims to what was computed of codes. */
static void keep_operand(Ranks *r, XnnNode *n, uint32_t i) {
  const XnnValue *values = r->l->x.values;
  XnnId number = n->fields[i], other = n->fields[1 - i];
  if (is_number(&values[number]) && is_of_codes(r, other) &&
      values[number].rank > values[other].rank)
    n->fields[i] = reshaped_number(r, number);
}

static void add(Ranks *r, XnnNode n) {
  const char *fields = xnn_node_rows[n.kind].fields;
  XnnId out = n.fields[strcspn(fields, "o")];
  if (is_function(&n))
    for (uint32_t i = 0; fields[i]; i++)
      r->of_codes[out] |= fields[i] == 'i' && is_of_codes(r, n.fields[i]);
  for (uint32_t i = 0; i < 2 && xnn_broadcasts(n.kind); i++)
    keep_operand(r, &n, i);
  if (xl_ok(r->l))
    xnn_add_node(&r->l->x, &n);
}

void xl_keep_ranks(XnnLowering *l, Arena *scratch) {
  XnnGraph *x = &l->x;
  uint32_t count = x->node_count;
  XnnNode *old = ARENA_ARRAY(scratch, XnnNode, (size_t)count + 1);
  Ranks r = {.l = l,
             .of_codes = ARENA_ARRAY(scratch, bool, (size_t)x->value_count + 1),
             .reshaped = ARENA_ARRAY(scratch, XnnId, (size_t)x->value_count + 1)};
  if (count)
    memcpy(old, x->nodes, count * sizeof *old);
  x->node_count = 0;
  for (uint32_t i = 0; i < count && xl_ok(l); i++) {
    x->debug_handle = old[i].debug_handle;
    add(&r, old[i]);
  }
}

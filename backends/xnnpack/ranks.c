/* Keeps dims of 1 that an operand of one element adds.
 *
 * XNNPACK makes one table of functions that follow each other between values of 8 bits
 * (xnn_subgraph_fuse_unary_quantized_into_lut of its subgraph.c). It takes a product or sum with a
 * constant of one element for such a function, and the result for one of the shape of the other
 * operand: dims that the constant adds in front are lost. It does not take a constant that is
 * reshaped while the graph runs for one. */
#include "backends/xnnpack/lower.h"

typedef struct Ranks {
  XnnLowering *l;
  bool *of_codes;  /* by XnnId: computed of codes by functions */
  bool *to_codes;  /* codes are computed of it by functions */
  XnnId *reshaped; /* by XnnId of a constant; 0: not yet, since no result is value 0 */
} Ranks;

/* A value of 8 bits that is no constant. */
static bool is_codes(const Ranks *r, XnnId id) {
  const XnnValue *v = &r->l->x.values[id];
  return !v->data && xnn_element_size(v->datatype) == 1;
}

static bool is_number(const XnnValue *v) {
  return v->data && xnn_dims_count(v->dims, v->rank) == 1;
}

/* A function of each element: one operand or two of floats or codes, and no lists. */
static bool is_function(const XnnNode *n) {
  const char *fields = xnn_fields(n);
  return xnn_broadcasts(n->kind) ||
         (strchr(fields, 'i') == strrchr(fields, 'i') && !strpbrk(fields, "bnv"));
}

static void find_functions(Ranks *r, const XnnNode *nodes, uint32_t count) {
  for (XnnId v = 0; v < r->l->x.value_count; v++)
    r->of_codes[v] = r->to_codes[v] = is_codes(r, v);
  for (uint32_t i = 0; i < count; i++) {
    const char *fields = xnn_fields(&nodes[i]);
    for (uint32_t k = 0; fields[k] && is_function(&nodes[i]); k++)
      r->of_codes[xnn_result(&nodes[i])] |= fields[k] == 'i' && r->of_codes[nodes[i].fields[k]];
  }
  for (uint32_t i = count; i-- > 0;) {
    const char *fields = xnn_fields(&nodes[i]);
    for (uint32_t k = 0; fields[k] && is_function(&nodes[i]); k++)
      if (fields[k] == 'i')
        r->to_codes[nodes[i].fields[k]] |= r->to_codes[xnn_result(&nodes[i])];
  }
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

/* Operand i of n, if it is a number that adds dims between codes. */
static void keep_operand(Ranks *r, XnnNode *n, uint32_t i) {
  const XnnValue *values = r->l->x.values;
  XnnId number = n->fields[i], other = n->fields[1 - i];
  if (r->of_codes[other] && r->to_codes[xnn_result(n)] && is_number(&values[number]) &&
      values[number].rank > values[other].rank)
    n->fields[i] = reshaped_number(r, number);
}

void xl_keep_ranks(XnnLowering *l, Arena *scratch) {
  XnnGraph *x = &l->x;
  uint32_t count, values = x->value_count;
  XnnNode *old = xnn_take_nodes(x, &count, scratch);
  Ranks r = {.l = l,
             .of_codes = ARENA_ARRAY(scratch, bool, (size_t)values + 1),
             .to_codes = ARENA_ARRAY(scratch, bool, (size_t)values + 1),
             .reshaped = ARENA_ARRAY(scratch, XnnId, (size_t)values + 1)};
  find_functions(&r, old, count);
  for (uint32_t i = 0; i < count && xl_ok(l); i++) {
    x->debug_handle = old[i].debug_handle;
    for (uint32_t k = 0; k < 2 && xnn_broadcasts(old[i].kind); k++)
      keep_operand(&r, &old[i], k);
    xnn_add_node(x, &old[i]);
  }
}

/* Keeps graphs away from three faults of XNNPACK's fusion of elementwise functions on 8-bit values.
 *
 * XNNPACK replaces a chain of such functions, from 8-bit codes to 8-bit codes, by one lookup table
 * of 256 entries (xnn_subgraph_fuse_unary_quantized_into_lut in its subgraph.c). Wrong there, in
 * what ExecuTorch 1.4.1 has:
 *
 * - A sum or product with a constant of one element counts as a function of the other operand, and
 *   the result gets the shape of that operand: dims of size 1 that only the constant has are lost.
 *   A constant that is reshaped at run time does not count as one: keep_operand reshapes it.
 * - A chain of more than TABLE_FUNCTIONS functions becomes a table of a table, and the first one is
 *   freed twice (mended by XNNPACK's 09767002). A slice of all elements ends a chain: limit_row.
 * - Value 0 of the graph, the first argument of the delegate, is mistaken for a value computed in
 *   the chain, and a null pointer is read, where a sum or product with it can be broadcast to the
 *   256 entries. A slice of it is not mistaken: limit_row. */
#include "backends/xnnpack/lower.h"

enum { TABLE_FUNCTIONS = 10 }; /* XNN_MAX_UNARY_FUSION_NODES */

typedef struct Tables {
  XnnLowering *l;
  XnnId count;     /* of values, before any was added here */
  bool *of_codes;  /* by XnnId: codes, or computed from codes by functions alone */
  bool *to_codes;  /* by XnnId: codes, or codes are computed from it by functions alone */
  uint8_t *row;    /* by XnnId: length of the chain of functions that ends in it */
  XnnId *reshaped; /* by XnnId of a constant; 0: not yet, since no result is value 0 */
} Tables;

/* A value of 8 bits that is no constant. */
static bool is_codes(const Tables *t, XnnId id) {
  const XnnValue *v = &t->l->x.values[id];
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

static void find_functions(Tables *t, const XnnNode *nodes, uint32_t count) {
  for (XnnId v = 0; v < t->l->x.value_count; v++)
    t->of_codes[v] = t->to_codes[v] = is_codes(t, v);
  for (uint32_t i = 0; i < count; i++) {
    const char *fields = xnn_fields(&nodes[i]);
    for (uint32_t k = 0; fields[k] && is_function(&nodes[i]); k++)
      t->of_codes[xnn_result(&nodes[i])] |= fields[k] == 'i' && t->of_codes[nodes[i].fields[k]];
  }
  for (uint32_t i = count; i-- > 0;) {
    const char *fields = xnn_fields(&nodes[i]);
    for (uint32_t k = 0; fields[k] && is_function(&nodes[i]); k++)
      if (fields[k] == 'i')
        t->to_codes[nodes[i].fields[k]] |= t->to_codes[xnn_result(&nodes[i])];
  }
}

static XnnId reshaped_number(Tables *t, XnnId number) {
  static const uint32_t ones[XNN_MAX_RANK] = {1, 1, 1, 1, 1, 1};
  if (!t->reshaped[number]) {
    XnnId made = xl_temp_like(t->l, number);
    xl_reshape_inferred(t->l, number, ones, xl_rank(t->l, number), made);
    t->reshaped[number] = made;
  }
  return t->reshaped[number];
}

/* Reshapes operand i of n at run time, if it is a constant of one element with more dims than the
 * other operand, in a chain between codes. */
static void keep_operand(Tables *t, XnnNode *n, uint32_t i) {
  const XnnValue *values = t->l->x.values;
  XnnId number = n->fields[i], other = n->fields[1 - i];
  if (t->of_codes[other] && t->to_codes[xnn_result(n)] && is_number(&values[number]) &&
      values[number].rank > values[other].rank)
    n->fields[i] = reshaped_number(t, number);
}

/* A copy of v that ends the chain: a slice of all elements; of a scalar, which XNNPACK cannot
 * slice, a reshape. */
static XnnId apart(Tables *t, XnnId v) {
  static const uint32_t all[XNN_MAX_RANK]; /* from 0, of size 0: to the end */
  XnnId made = xl_temp_like(t->l, v);
  if (xl_rank(t->l, v) > 0)
    xl_slice_dims(t->l, v, xl_rank(t->l, v), all, all, made);
  else
    xl_reshape_inferred(t->l, v, all, 0, made);
  return made;
}

/* Whether it is the first argument of the delegate, and can be broadcast to the 256 entries. */
static bool is_taken_for_inside(const Tables *t, XnnId id) {
  const XnnValue *v = &t->l->x.values[id];
  uint32_t last = v->rank ? v->dims[v->rank - 1] : 1;
  return v->external == 1 && v->is_input && (last == 1 || last == 256);
}

/* Ends the chains of the operands of n, if n would be one function too many. */
static void limit_row(Tables *t, XnnNode *n) {
  const char *fields = xnn_fields(n);
  uint8_t longest = 0;
  XnnId result = xnn_result(n);
  if (!is_function(n) || !t->of_codes[result] || !t->to_codes[result])
    return;
  for (uint32_t k = 0; fields[k]; k++) {
    XnnId v = n->fields[k];
    if (fields[k] != 'i' || v >= t->count)
      continue;
    if (t->row[v] == TABLE_FUNCTIONS || (xnn_broadcasts(n->kind) && is_taken_for_inside(t, v)))
      n->fields[k] = apart(t, v);
    else
      longest = t->row[v] > longest ? t->row[v] : longest;
  }
  t->row[result] = longest + 1;
}

void xl_fit_tables(XnnLowering *l, Arena *scratch) {
  XnnGraph *x = &l->x;
  uint32_t count, values = x->value_count;
  XnnNode *old = xnn_take_nodes(x, &count, scratch);
  Tables t = {.l = l,
              .count = values,
              .of_codes = ARENA_ARRAY(scratch, bool, (size_t)values + 1),
              .to_codes = ARENA_ARRAY(scratch, bool, (size_t)values + 1),
              .row = ARENA_ARRAY(scratch, uint8_t, (size_t)values + 1),
              .reshaped = ARENA_ARRAY(scratch, XnnId, (size_t)values + 1)};
  find_functions(&t, old, count);
  for (uint32_t i = 0; i < count && xl_ok(l); i++) {
    x->debug_handle = old[i].debug_handle;
    for (uint32_t k = 0; k < 2 && xnn_broadcasts(old[i].kind); k++)
      keep_operand(&t, &old[i], k);
    limit_row(&t, &old[i]);
    xnn_add_node(x, &old[i]);
  }
}

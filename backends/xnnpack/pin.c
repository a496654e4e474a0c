/* Keeps results from being written over operands that are broadcast in some calls only.
 *
 * XNNPACK writes the result of an elementwise node over the first operand of the same size that no
 * other node reads, where one node reads the result
 * (optimize_tensor_allocation_for_in_place_operations of its runtime.c). It plans so by the sizes
 * of the first call, and plans anew only when a value exceeds the size that it was declared with,
 * which is the upper bound here. An operand [1, n] of a result [b, n] has that size while b is 1:
 * in a later call with a larger b the result is written over what is still to be read, and beyond
 * it. So an operand that always has the size of the result goes first, if the result may have its
 * place; else another node reads the operand that is broadcast. */
#include "backends/xnnpack/lower.h"

/* The size of a value along the axis that is `back` from the end. */
static uint32_t size_of(const XnnValue *v, uint32_t back) {
  return back <= v->rank ? v->dims[v->rank - back] : 1;
}

static bool may_be_one(const XnnValue *v, uint32_t back) {
  return size_of(v, back) == 1 || (!v->data && v->may_be_one >> (v->rank - back) & 1);
}

/* What is known of the operands of a sum and the like holds of the result. */
static void narrow_result(XnnGraph *x, const XnnNode *n) {
  XnnValue *out = &x->values[n->fields[2]];
  for (uint32_t back = 1; xnn_broadcasts(n->kind) && back <= out->rank; back++)
    if (!may_be_one(&x->values[n->fields[0]], back) || !may_be_one(&x->values[n->fields[1]], back))
      out->may_be_one &= (uint8_t) ~(1u << (out->rank - back));
}

/* Smaller than the result, but perhaps not in all calls. */
static bool is_smaller_sometimes(const XnnValue *v, const XnnValue *other, const XnnValue *out) {
  bool smaller = false;
  for (uint32_t back = 1; back <= out->rank; back++) {
    if (size_of(v, back) == out->dims[out->rank - back])
      continue;
    if (!may_be_one(out, back) || !may_be_one(other, back))
      return false;
    smaller = true;
  }
  return smaller;
}

/* Whether the result could have the place of operand i in calls where they have one size. */
static bool may_be_replaced(const XnnGraph *x, const XnnNode *n, const uint32_t *uses, uint32_t i) {
  const XnnValue *in = &x->values[n->fields[i]], *out = &x->values[n->fields[2]];
  return !in->data && !in->external && !out->external && uses[n->fields[i]] == 1;
}

/* Whether the result must not have the place of operand i. */
static bool is_unsafe(const XnnGraph *x, const XnnNode *n, const uint32_t *uses, uint32_t i) {
  return may_be_replaced(x, n, uses, i) &&
         is_smaller_sometimes(&x->values[n->fields[i]], &x->values[n->fields[1 - i]],
                              &x->values[n->fields[2]]);
}

/* Whether operand i always has the shape of the result, which may have its place. */
static bool is_safe(const XnnGraph *x, const XnnNode *n, const uint32_t *uses, uint32_t i) {
  const XnnValue *in = &x->values[n->fields[i]], *out = &x->values[n->fields[2]];
  bool same = in->rank == out->rank && in->dynamic == out->dynamic;
  return same && may_be_replaced(x, n, uses, i) &&
         memcmp(in->dims, out->dims, in->rank * sizeof *in->dims) == 0;
}

static bool commutes(const XnnNode *n) {
  return n->kind == XNN_ADD || n->kind == XNN_MULTIPLY || n->kind == XNN_MINIMUM ||
         n->kind == XNN_MAXIMUM;
}

static uint32_t *count_uses(const XnnGraph *x, Arena *scratch) {
  uint32_t *uses = ARENA_ARRAY(scratch, uint32_t, (size_t)x->value_count + 1);
  for (uint32_t i = 0; i < x->node_count; i++) {
    const char *fields = xnn_fields(&x->nodes[i]);
    for (uint32_t k = 0; fields[k]; k++)
      if ((fields[k] == 'i' || fields[k] == 'b') && x->nodes[i].fields[k] != XNN_NONE)
        uses[x->nodes[i].fields[k]]++;
  }
  return uses;
}

/* Makes an operand the first one that always has the shape of the result; false when none has. */
static bool order_operands(const XnnGraph *x, XnnNode *n, const uint32_t *uses) {
  if (is_safe(x, n, uses, 0))
    return true;
  if (!commutes(n) || !is_safe(x, n, uses, 1))
    return false;
  XnnId first = n->fields[0];
  n->fields[0] = n->fields[1];
  n->fields[1] = first;
  return true;
}

/* -0 whatever the operand holds: a sum with it changes no number. */
static XnnId zero_of_floats(XnnLowering *l, XnnId in) {
  const float negative_zero = -0.0F;
  XnnId unit = xl_temp_like(l, in), zero = xl_temp_like(l, in);
  xl_clamp(l, in, 0, 1, unit);
  xl_binary(l, XNN_MULTIPLY, unit, xl_floats(l, 0, NULL, &negative_zero), zero);
  return zero;
}

/* Codes of 0 with the parameters of the result: a sum with them is rounded by a ratio of 1. */
static XnnId zero_of_codes(XnnLowering *l, XnnId in, XnnId out) {
  XnnValue as = l->x.values[out];
  XnnId zero = xl_temp_like(l, in);
  xnn_set_scale(&l->x, zero, as.scale, as.zero_point);
  xl_binary(l, XNN_MULTIPLY, in, xl_equal_codes(l, 0, NULL, 0, as.scale / l->x.values[in].scale),
            zero);
  return zero;
}

/* out = made + a zero that is computed of the operand. (Nodes without a result that is used would
 * be dropped.) */
static void read_again(XnnLowering *l, XnnId in, XnnId made, XnnId out) {
  bool floats = l->x.values[out].datatype == XNN_FP32;
  XnnId zero = floats ? zero_of_floats(l, in) : zero_of_codes(l, in, out);
  xl_binary(l, XNN_ADD, made, zero, out);
}

/* Whether the result must be kept from a place that it could have. */
static bool needs_readers(const XnnGraph *x, XnnNode *n, const uint32_t *uses) {
  if (!xnn_broadcasts(n->kind))
    return false;
  uint8_t type = x->values[n->fields[2]].datatype;
  return (type == XNN_FP32 || type == XNN_QINT8) &&
         (is_unsafe(x, n, uses, 0) || is_unsafe(x, n, uses, 1)) && !order_operands(x, n, uses);
}

/* Adds n, whose result is made anew as the sum of it and a zero of each operand to keep. */
static void add_with_readers(XnnLowering *l, XnnNode n, const uint32_t *uses) {
  XnnId out = n.fields[2], made = xl_temp_like(l, out);
  bool both = is_unsafe(&l->x, &n, uses, 0) && is_unsafe(&l->x, &n, uses, 1);
  XnnId last = n.fields[is_unsafe(&l->x, &n, uses, 1) ? 1 : 0];
  n.fields[2] = made;
  xnn_add_node(&l->x, &n);
  if (both) {
    made = xl_temp_like(l, out);
    read_again(l, n.fields[0], n.fields[2], made);
  }
  read_again(l, last, made, out);
}

void xl_pin_broadcast(XnnLowering *l, Arena *scratch) {
  XnnGraph *x = &l->x;
  if (!xnn_has_dynamic_dims(x))
    return;
  uint32_t count, *uses = count_uses(x, scratch);
  XnnNode *old = xnn_take_nodes(x, &count, scratch);
  for (uint32_t i = 0; i < count; i++)
    narrow_result(x, &old[i]);
  for (uint32_t i = 0; i < count && xl_ok(l); i++) {
    x->debug_handle = old[i].debug_handle;
    if (needs_readers(x, &old[i], uses))
      add_with_readers(l, old[i], uses);
    else
      xnn_add_node(x, &old[i]);
  }
}

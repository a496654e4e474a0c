/* Keeps operands that are broadcast apart from results, where sizes vary.
 *
 * XNNPACK writes the result of an elementwise node over an operand of the same size that no other
 * node reads. It plans so at the first call. An operand [1, n] of a result [b, n] has that size
 * while b is 1: in a later call with a larger b the result is written beyond the operand's place,
 * over other values. A second reader keeps the
 * operand. */
#include <float.h>

#include "backends/xnnpack/lower.h"

static bool broadcasts(const XnnNode *n) {
  static const XnnNodeKind kinds[] = {XNN_ADD,     XNN_SUBTRACT, XNN_MULTIPLY, XNN_DIV,
                                      XNN_MINIMUM, XNN_MAXIMUM,  XNN_PRELU};
  for (size_t i = 0; i < COUNT_OF(kinds); i++)
    if (n->kind == kinds[i])
      return true;
  return false;
}

static bool is_internal(const XnnValue *v) { return !v->data && !v->external; }

/* Smaller than the result, but perhaps not in all calls. Dims are aligned at the last one; those of
 * a value without marks may all vary. */
static bool is_smaller_sometimes(const XnnValue *v, const XnnValue *out) {
  bool smaller = false;
  for (uint32_t i = 1; i <= out->rank; i++) {
    uint32_t has = i <= v->rank ? v->dims[v->rank - i] : 1, axis = out->rank - i;
    if (has == out->dims[axis])
      continue;
    if (out->dynamic && !(out->dynamic >> axis & 1))
      return false;
    smaller = true;
  }
  return smaller;
}

/* The operand whose place the result could have in some calls only; XNN_NONE: none. */
static XnnId unsafe_operand(const XnnGraph *x, const XnnNode *n, const uint32_t *uses, uint32_t i) {
  const XnnValue *in = &x->values[n->fields[i]], *out = &x->values[n->fields[2]];
  if (!broadcasts(n) || !is_internal(in) || !is_internal(out) || in->datatype != XNN_FP32 ||
      uses[n->fields[i]] != 1)
    return XNN_NONE;
  return is_smaller_sometimes(in, out) ? n->fields[i] : XNN_NONE;
}

static uint32_t *count_uses(const XnnGraph *x, Arena *scratch) {
  uint32_t *uses = ARENA_ARRAY(scratch, uint32_t, (size_t)x->value_count + 1);
  for (uint32_t i = 0; i < x->node_count; i++) {
    const char *fields = xnn_node_rows[x->nodes[i].kind].fields;
    for (uint32_t k = 0; fields[k]; k++)
      if ((fields[k] == 'i' || fields[k] == 'b') && x->nodes[i].fields[k] != XNN_NONE)
        uses[x->nodes[i].fields[k]]++;
  }
  return uses;
}

static bool has_dynamic_dims(const XnnGraph *x) {
  bool dynamic = false;
  for (XnnId v = 0; v < x->value_count; v++)
    dynamic |= x->values[v].dynamic != 0;
  return dynamic;
}

/* out = made + a zero that is computed from the operand: XNNPACK drops readers without a result. */
static void read_again(XnnLowering *l, XnnId in, XnnId made, XnnId out) {
  XnnId zero = xl_temp_like(l, in);
  xl_clamp(l, in, 0, FLT_MIN, zero);
  xl_binary(l, XNN_ADD, made, zero, out);
}

void xl_pin_broadcast(XnnLowering *l, Arena *scratch) {
  XnnGraph *x = &l->x;
  if (!has_dynamic_dims(x))
    return;
  uint32_t count = x->node_count, *uses = count_uses(x, scratch);
  XnnNode *old = ARENA_ARRAY(scratch, XnnNode, (size_t)count + 1);
  memcpy(old, x->nodes, count * sizeof *old);
  x->node_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    XnnNode n = old[i];
    XnnId in = unsafe_operand(x, &n, uses, 0), out = n.fields[2];
    in = in == XNN_NONE ? unsafe_operand(x, &n, uses, 1) : in;
    if (in != XNN_NONE)
      n.fields[2] = xl_temp_like(l, out);
    *xnn_node(x, (XnnNodeKind)n.kind, n.fields, (uint32_t)strlen(xnn_node_rows[n.kind].fields)) = n;
    if (in != XNN_NONE)
      read_again(l, in, n.fields[2], out);
  }
}

/* Integers that arrive from outside, and choices by booleans. XNNPACK has no booleans: they
 * come into the delegate as the bytes that they are, 8 bits with scale 1, and become the numbers 0
 * and 1.
 *
 * where(c, a, b) with numbers a and b is arithmetic on those. A tensor is chosen without
 * multiplying it, so that what is not chosen may be infinite:
 *   where(c, a, number) = max(min(a, u), v), u = where(c, inf, number), v = where(c, -inf, number)
 * Infinite numbers are quotients by the flag: c / (1 - c) is 0 or inf. A NaN that is chosen becomes
 * infinite and zeros lose their sign, so conditions that were computed from floats, which may be
 * there to tell such numbers apart, are left to the portable kernel. */
#include <float.h>
#include <math.h>

#include "backends/xnnpack/lower.h"
#include "ir/match.h"

static XnnDatatype whole_datatype(DType dtype) {
  return dtype == DTYPE_I32 ? XNN_INT32 : dtype == DTYPE_I8 ? XNN_QINT8 : XNN_QUINT8;
}

XnnId xl_integers(XnnLowering *l, ValueId v) {
  Quantization q;
  if (xl_ok(l) && xl_codes(l->g, v, &q))
    xl_refuse(l, XNN_RULE_QUANTIZATION, R_STR("supported", "quantize,dequantize"));
  if (!xl_ok(l) || xl_has_plain(l, v))
    return xl_ok(l) ? xl_plain(l, v) : XNN_NONE;
  uint32_t dims[XNN_MAX_RANK], rank = xl_dims(l, v, DT(BOOL) | DT(U8) | DT(I8) | DT(I32), dims);
  DType dtype = value_dtype(l->g, v);
  if (value_is_const(l->g, v) && dtype != DTYPE_BOOL)
    xl_refuse(l, XNN_RULE_ELEMENT_TYPE, R_STR("dtype", dtype_name(dtype)),
              R_STR("argument", "constant"));
  if (!xl_ok(l))
    return XNN_NONE;
  if (value_is_const(l->g, v)) {
    uint64_t count = xl_elements(l, v);
    const uint8_t *bits = value_constant(l->g, v)->data;
    float *flags = ARENA_ARRAY(l->arena, float, count);
    for (uint64_t i = 0; i < count && !l->trial; i++)
      flags[i] = bits[i] != 0;
    return xl_floats(l, rank, dims, flags);
  }
  XnnId whole = xnn_value(&l->x, whole_datatype(dtype), rank, dims),
        floats = xl_temp(l, rank, dims);
  xl_input(l, v, whole);
  xl_unary(l, XNN_CONVERT, whole, floats);
  xl_set_plain(l, v, floats);
  return floats;
}

/* sum + a * number, where sum may still be absent. */
static XnnId add_scaled(XnnLowering *l, XnnId sum, XnnId a, double number) {
  if (number != 1)
    a = xl_scaled(l, a, number);
  if (sum == XNN_NONE)
    return a;
  XnnId next = xl_temp_like(l, a);
  xl_binary(l, XNN_ADD, sum, a, next);
  return next;
}

/* The part of a choice that is `number` where flag is 1 and 0 elsewhere. */
static XnnId add_where(XnnLowering *l, XnnId sum, XnnId flag, XnnId other, double number) {
  if (number == 0)
    return sum;
  if (!isinf(number))
    return add_scaled(l, sum, flag, number);
  XnnId quotient = xl_temp_like(l, flag);
  xl_binary(l, XNN_DIV, flag, other, quotient);
  return add_scaled(l, sum, quotient, number > 0 ? 1 : -1);
}

/* A constant condition makes a constant. */
static XnnId constant_numbers(XnnLowering *l, ValueId condition, float yes, float no) {
  uint32_t dims[XNN_MAX_RANK], rank = xl_dims(l, condition, DT(BOOL), dims);
  if (!xl_ok(l))
    return XNN_NONE;
  uint64_t count = xl_elements(l, condition);
  float *values = l->trial ? NULL : ARENA_ARRAY(l->arena, float, count);
  for (uint64_t i = 0; i < count && values; i++)
    values[i] = value_constant(l->g, condition)->data[i] ? yes : no;
  return xl_floats(l, rank, dims, values);
}

/* where(condition, yes, no), in the dims of the condition; made once for a partition. */
static XnnId numbers(XnnLowering *l, ValueId condition, float yes, float no) {
  for (uint32_t i = 0; i < l->mask_count; i++) {
    const XnnMask *m = &l->masks[i];
    if (m->condition == condition && m->yes == yes && m->no == no)
      return m->id;
  }
  XnnId id = XNN_NONE;
  if (value_is_const(l->g, condition)) {
    id = constant_numbers(l, condition, yes, no);
  } else {
    XnnId flag = xl_integers(l, condition), other = xl_temp_like(l, flag);
    uint32_t rank = value_rank(l->g, condition);
    xl_binary(l, XNN_SUBTRACT, xl_number(l, 1, rank), flag, other);
    id = add_where(l, id, flag, other, (double)yes);
    id = add_where(l, id, other, flag, (double)no);
    if (id == XNN_NONE) /* 0 or 0 */
      id = add_scaled(l, id, flag, 0);
  }
  if (xl_ok(l) && l->mask_count < COUNT_OF(l->masks))
    l->masks[l->mask_count++] = (XnnMask){.condition = condition, .yes = yes, .no = no, .id = id};
  return id;
}

/* v as one number that is no NaN. */
static bool one_number(const Graph *g, ValueId v, float *number) {
  double value;
  if (!match_number(g, v, &value) || isnan(value))
    return false;
  *number = (float)value;
  return true;
}

/* where(condition, x, number), or with keep false where(condition, number, x), into out. */
static void choose(XnnLowering *l, ValueId condition, bool keep, XnnId x, float number, XnnId out) {
  float inf = INFINITY;
  /* Nothing is below the lowest number, but for -inf: softmax makes nothing of either. */
  bool lowest = number <= -FLT_MAX, highest = number >= FLT_MAX;
  XnnId limited = lowest || highest ? out : xl_temp_like(l, out);
  if (!highest)
    xl_binary(l, XNN_MINIMUM, x,
              keep ? numbers(l, condition, inf, number) : numbers(l, condition, number, inf),
              limited);
  if (!lowest)
    xl_binary(l, XNN_MAXIMUM, highest ? x : limited,
              keep ? numbers(l, condition, -inf, number) : numbers(l, condition, number, -inf),
              out);
}

enum { CONDITION_NODES = 64 };

/* Floats that are integers, which are no NaN and no -0. */
static bool are_integers(const Graph *g, ValueId v) {
  v = match_unviewed(g, v);
  NodeId cast = match_op(g, v, OP_TO_COPY);
  return value_is_const(g, v) || (cast && !dtype_is_float(value_dtype(g, node_value(g, cast, 0))));
}

/* Whether v, integers or booleans, is computed from floats; also when that takes long to see.
 */
static bool from_floats(const Graph *g, ValueId v, uint32_t *budget) {
  NodeId def = value_def(g, v);
  if (!def)
    return false;
  if (*budget == 0)
    return true;
  --*budget;
  FOR_OPERANDS(g, def, w, {
    if (w && value_type(g, w)->kind == TYPE_TENSOR &&
        (dtype_is_float(value_dtype(g, w)) ? !are_integers(g, w) : from_floats(g, w, budget)))
      return true;
  })
  return false;
}

/* A temporary for what condition chooses from x: with the dims of both. */
static XnnId temp_for(XnnLowering *l, ValueId condition, XnnId x) {
  if (!xl_ok(l))
    return XNN_NONE;
  XnnValue v = l->x.values[x];
  uint32_t own = value_rank(l->g, condition), rank = own > v.rank ? own : v.rank,
           dims[XNN_MAX_RANK];
  for (uint32_t i = 0; i < rank; i++) { /* from the last */
    uint32_t c = i < own ? xl_dim(l, condition, own - 1 - i) : 1,
             d = i < v.rank ? v.dims[v.rank - 1 - i] : 1;
    dims[rank - 1 - i] = c > d ? c : d;
  }
  return xl_temp(l, rank, dims);
}

/* y = chosen, which may lack leading dims of 1 that a number has. */
static void finish(XnnLowering *l, XnnId chosen, ValueId y) {
  static const uint32_t ones[] = {1, 1, 1, 1, 1, 1};
  static const float zero = 0;
  XnnId out = xl_result(l, y);
  xl_binary(l, XNN_ADD, chosen, xl_floats(l, value_rank(l->g, y), ones, &zero), out);
}

static void choose_or_number(XnnLowering *l, NodeId n, bool keep, float number) {
  ValueId condition = node_value(l->g, n, 0), y = node_result(l->g, n, 0);
  XnnId x = xl_plain(l, node_value(l->g, n, keep ? 1 : 2)), chosen = temp_for(l, condition, x);
  bool whole = xl_ok(l) && l->x.values[chosen].rank == value_rank(l->g, y);
  if (whole)
    xl_set_plain(l, y, chosen);
  choose(l, condition, keep, x, number, chosen);
  if (!whole)
    finish(l, chosen, y);
}

void lower_where(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  ValueId condition = node_value(g, n, 0), a = node_value(g, n, 1), b = node_value(g, n, 2),
          y = node_result(g, n, 0);
  uint32_t budget = CONDITION_NODES;
  if (xl_prelu(l, n))
    return;
  if (value_rank(g, y) > XNN_MAX_RANK)
    xl_refuse(l, XNN_RULE_RANK_LIMIT, R_INT("rank", value_rank(g, y)));
  if (l->trial && from_floats(g, condition, &budget)) /* later, a cast may be within a delegate */
    xl_refuse(l, XNN_RULE_CONDITION, R_STR("argument", "condition"));
  float yes = 0, no = 0;
  bool number_a = one_number(g, a, &yes), number_b = one_number(g, b, &no);
  if (number_a && number_b) {
    finish(l, numbers(l, condition, yes, no), y);
  } else if (number_a || number_b) {
    choose_or_number(l, n, number_b, number_b ? no : yes);
  } else {
    XnnId from_a = xl_plain(l, a), from_b = xl_plain(l, b), first = temp_for(l, condition, from_a),
          second = temp_for(l, condition, from_b);
    choose(l, condition, true, from_a, 0, first);
    choose(l, condition, false, from_b, 0, second);
    xl_binary(l, XNN_ADD, first, second, xl_result(l, y));
  }
}

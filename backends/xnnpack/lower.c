/* What the functions of lower.def share; see lower.h. */
#include "backends/xnnpack/plan.h"

#include "ir/transform.h"
#include "ops/delegate.h"
#include "support/half.h"

#include <stdarg.h>

/* Constants of float16 with more elements stay float16 in the file, and are converted in each run.
 */
enum { LARGE_CONSTANT = 4096 };

void xl_init(XnnLowering *l, Graph *g, XnnCpu cpu, Arena *arena) {
  *l = (XnnLowering){.g = g, .arena = arena, .cpu = cpu};
  xnn_init(&l->x);
}

void xl_release(XnnLowering *l) {
  xnn_release(&l->x);
  places_release(&l->places);
  xfree(l->inputs);
  xfree(l->transposes);
  xfree(l->joins);
  xfree(l->splits);
}

void xl_reset(XnnLowering *l, bool trial) {
  xnn_clear(&l->x);
  places_clear(&l->places);
  l->input_count = l->transpose_count = l->mask_count = l->split_count = l->count_count = 0;
  l->node = l->blame = 0;
  l->transposes_for = TRANSPOSE_INSIDE;
  l->takes_codes = false;
  l->trial = trial;
  l->alone = false;
  l->refusal = (Refusal){0};
}

Refusal xl_refusal(XnnRule rule) {
  static const Refusal rules[XNN_RULES] = {
#define XNN_RULE(id, name, message, advice) {name, message, NULL, 0, advice},
#include "backends/xnnpack/rules.def"
#undef XNN_RULE
  };
  return rules[rule];
}

bool xl_refuse_for(XnnLowering *l, XnnRule rule, const RefusalValue *values, uint32_t count) {
  if (!xl_ok(l))
    return false;
  RefusalValue *kept = ARENA_ARRAY(l->arena, RefusalValue, count);
  memcpy(kept, values, count * sizeof *kept);
  l->refusal = xl_refusal(rule);
  l->refusal.values = kept;
  l->refusal.value_count = count;
  return false;
}

/* --- values --- */

void xl_set_plain(XnnLowering *l, ValueId v, XnnId id) {
  if (xl_ok(l))
    places_make(&l->places, v)->plain = id + 1;
}

void xl_set_nhwc(XnnLowering *l, ValueId v, XnnId id) {
  if (xl_ok(l))
    places_make(&l->places, v)->nhwc = id + 1;
}

uint32_t xl_dim(XnnLowering *l, ValueId v, uint32_t i) {
  int64_t upper = sym_upper(&l->g->syms, value_dim(l->g, v, i));
  return upper > INT32_MAX ? (xl_refuse(l, XNN_RULE_SIZE_LIMIT, R_INT("dim", i)), 1u)
                           : (uint32_t)upper;
}

static bool is_half(const XnnLowering *l, ValueId v) { return value_dtype(l->g, v) == DTYPE_F16; }

uint32_t xl_dims(XnnLowering *l, ValueId v, DTypeSet types, uint32_t dims[XNN_MAX_RANK]) {
  const Type *t = value_type(l->g, v);
  if (t->kind != TYPE_TENSOR || !dtype_in((DType)t->dtype, types)) {
    bool floats = t->kind == TYPE_TENSOR && dtype_is_float((DType)t->dtype);
    xl_refuse(l, floats ? XNN_RULE_FLOAT_TYPE : XNN_RULE_ELEMENT_TYPE,
              R_STR("dtype", t->kind == TYPE_TENSOR ? dtype_name((DType)t->dtype) : "scalar"));
    return 0;
  }
  if (t->rank > XNN_MAX_RANK) {
    xl_refuse(l, XNN_RULE_RANK_LIMIT, R_INT("rank", t->rank));
    return 0;
  }
  for (uint32_t i = 0; i < t->rank && xl_ok(l); i++) {
    if (sym_upper(&l->g->syms, t->dims[i]) < 1)
      xl_refuse(l, XNN_RULE_MAY_BE_EMPTY, R_INT("dim", i));
    dims[i] = xl_dim(l, v, i);
  }
  return t->rank;
}

static uint32_t dims_of(XnnLowering *l, ValueId v, uint32_t dims[XNN_MAX_RANK]) {
  Quantization q;
  bool codes = (l->takes_codes || is_quantize(l->g, value_def(l->g, v))) && xl_codes(l->g, v, &q);
  return xl_dims(l, v, DT(F32) | DT(F16) | (codes ? DT(I8) | DT(U8) : 0), dims);
}

static void mark_dim(XnnValue *value, uint32_t axis, SymInt dim, const SymTable *t) {
  value->dynamic |= (uint8_t)((uint32_t)!sym_is_const(dim) << axis);
  value->may_be_one |= (uint8_t)((uint32_t)(sym_lower(t, dim) <= 1) << axis);
}

static XnnId new_value(XnnLowering *l, ValueId v, bool nhwc, XnnDatatype datatype) {
  uint32_t dims[XNN_MAX_RANK], placed[XNN_MAX_RANK], rank = dims_of(l, v, dims);
  if (!xl_ok(l))
    return XNN_NONE;
  for (uint32_t i = 0; i < rank; i++)
    placed[nhwc ? xl_nhwc_axis(i, rank) : i] = dims[i];
  XnnId id = xnn_value(&l->x, datatype, rank, placed);
  l->x.values[id].may_be_one = 0;
  for (uint32_t i = 0; i < rank; i++)
    mark_dim(&l->x.values[id], nhwc ? xl_nhwc_axis(i, rank) : i, value_dim(l->g, v, i),
             &l->g->syms);
  Quantization q;
  if (xl_codes(l->g, v, &q))
    xl_set_codes(l, id, &q);
  return id;
}

XnnId xl_result(XnnLowering *l, ValueId v) {
  XnnId id = new_value(l, v, false, XNN_FP32);
  xl_set_plain(l, v, id);
  return id;
}

XnnId xl_result_nhwc(XnnLowering *l, ValueId v) {
  XnnId id = xl_has_layouts(l->g, v) ? new_value(l, v, true, XNN_FP32) : XNN_NONE;
  xl_set_nhwc(l, v, id);
  return id;
}

static XnnId converted(XnnLowering *l, XnnId id, XnnDatatype to) {
  XnnId out = xl_temp_like(l, id);
  if (xl_ok(l))
    l->x.values[out].datatype = (uint8_t)to;
  xl_unary(l, XNN_CONVERT, id, out);
  return out;
}

XnnId xl_rounded(XnnLowering *l, XnnId id) {
  return converted(l, converted(l, id, XNN_FP16), XNN_FP32);
}

XnnId xl_constant_operand(XnnLowering *l, ValueId v, uint32_t rank, const uint32_t *dims,
                          const uint32_t *perm) {
  bool half = is_half(l, v) && xl_elements(l, v) > LARGE_CONSTANT;
  XnnId id = xl_permuted_constant(l, v, rank, dims, perm, half);
  return half ? converted(l, id, XNN_FP32) : id;
}

void xl_input(XnnLowering *l, ValueId v, XnnId id) {
  xnn_make_external(&l->x, id, true);
  POOL_PUSH(l->inputs, l->input_count, l->input_capacity, v);
}

XnnId xl_from_outside(XnnLowering *l, ValueId v) {
  XnnId id = new_value(l, v, false, is_half(l, v) ? XNN_FP16 : XNN_FP32);
  Quantization q;
  if (!xl_ok(l))
    return XNN_NONE;
  if (xl_codes(l->g, v, &q))
    return xl_codes_in(l, v, id);
  xl_input(l, v, id);
  return is_half(l, v) ? converted(l, id, XNN_FP32) : id;
}

const uint32_t xl_straight_axes[XNN_MAX_RANK] = {0, 1, 2, 3, 4, 5};

XnnId xl_filter(XnnLowering *l, ValueId v) {
  uint32_t dims[XNN_MAX_RANK], rank = dims_of(l, v, dims);
  if (!is_constant_or_codes(l->g, v))
    xl_refuse(l, XNN_RULE_RUNTIME_WEIGHTS, R_STR("argument", "weight-or-bias"));
  if (!xl_ok(l))
    return XNN_NONE;
  if (!value_is_const(l->g, v))
    return xl_dequantized_constant(l, v, rank, dims, xl_straight_axes);
  return xnn_constant(&l->x, is_half(l, v) ? XNN_FP16 : XNN_FP32, rank, dims, (XnnData){.v = v});
}

bool xl_is_image(XnnLowering *l, ValueId v) {
  uint32_t rank = value_rank(l->g, v);
  return rank == 4 || xl_refuse(l, XNN_RULE_RANK, R_INT("rank", rank), R_INT("needed", 4));
}

XnnId xl_temp(XnnLowering *l, uint32_t rank, const uint32_t *dims) {
  return xl_ok(l) ? xnn_value(&l->x, XNN_FP32, rank, dims) : XNN_NONE;
}

uint32_t xl_upper(XnnLowering *l, SymInt size) {
  int64_t most = sym_upper(&l->g->syms, size);
  if (most > INT32_MAX)
    xl_refuse(l, XNN_RULE_SIZE_LIMIT, R_INT("elements", most));
  return xl_ok(l) ? (uint32_t)most : 1;
}

XnnId xl_sym_temp(XnnLowering *l, uint32_t rank, const SymInt *dims) {
  uint32_t sizes[XNN_MAX_RANK] = {0};
  for (uint32_t i = 0; i < rank && xl_ok(l); i++) {
    sizes[i] = xl_upper(l, dims[i]);
    if (sizes[i] < 1)
      xl_refuse(l, XNN_RULE_MAY_BE_EMPTY, R_INT("dim", i));
  }
  XnnId made = xl_temp(l, rank, sizes);
  if (!xl_ok(l))
    return made;
  l->x.values[made].may_be_one = 0;
  for (uint32_t i = 0; i < rank; i++)
    mark_dim(&l->x.values[made], i, dims[i], &l->g->syms);
  return made;
}

XnnId xl_temp_of(XnnLowering *l, const XnnValue *like) {
  XnnId made = xl_temp(l, like->rank, like->dims);
  if (xl_ok(l))
    l->x.values[made].dynamic = like->dynamic;
  return made;
}

XnnId xl_temp_like(XnnLowering *l, XnnId id) {
  return xl_ok(l) ? xnn_value_like(&l->x, (XnnDatatype)l->x.values[id].datatype, id) : XNN_NONE;
}

uint32_t xl_rank(const XnnLowering *l, XnnId id) { return xl_ok(l) ? l->x.values[id].rank : 0; }

/* --- constants --- */

uint64_t xl_elements(XnnLowering *l, ValueId v) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < value_rank(l->g, v); i++)
    count *= xl_dim(l, v, i);
  return count;
}

static void halves_to_floats(const uint8_t *from, float *to, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    uint16_t bits;
    memcpy(&bits, from + i * sizeof bits, sizeof bits);
    to[i] = half_to_float(bits);
  }
}

const float *xl_constant_floats(XnnLowering *l, ValueId v) {
  const Constant *c = value_constant(l->g, v);
  NodeId codes = dequantized_constant(l->g, v);
  if (l->trial || !xl_ok(l) || (!c && !codes))
    return NULL;
  uint64_t count = xl_elements(l, v);
  float *copy = arena_alloc(l->arena, count * sizeof *copy + 1);
  if (codes)
    dequantize_constant(l->g, codes, copy);
  else if (is_half(l, v))
    halves_to_floats(c->data, copy, count);
  else
    memcpy(copy, c->data, c->size);
  return copy;
}

XnnId xl_made_constant(XnnLowering *l, bool half, uint32_t rank, const uint32_t *dims,
                       const void *values) {
  if (!xl_ok(l))
    return XNN_NONE;
  int64_t sizes[XNN_MAX_RANK];
  uint64_t size = half ? sizeof(uint16_t) : sizeof(float);
  for (uint32_t i = 0; i < rank; i++)
    size *= (uint64_t)(sizes[i] = dims[i]);
  ValueId v = 0;
  if (!l->trial)
    v = graph_add_constant(
        l->g, graph_tensor_type(l->g, half ? DTYPE_F16 : DTYPE_F32, rank, sizes, ORDER_CONTIGUOUS),
        (Constant){.data = values, .size = size}, 0);
  return xnn_constant(&l->x, half ? XNN_FP16 : XNN_FP32, rank, dims, (XnnData){.v = v});
}

XnnId xl_floats(XnnLowering *l, uint32_t rank, const uint32_t *dims, const float *values) {
  if (!xl_ok(l))
    return XNN_NONE;
  uint64_t count = xnn_dims_count(dims, rank);
  float *copy = NULL;
  if (!l->trial && values) {
    copy = arena_alloc(&l->g->arena, count * sizeof *copy);
    memcpy(copy, values, count * sizeof *copy);
  }
  return xl_made_constant(l, false, rank, dims, copy);
}

XnnId xl_ones(XnnLowering *l, uint32_t rank, const uint32_t *dims) {
  uint64_t count = xnn_dims_count(dims, rank);
  float *values = l->trial || !xl_ok(l) ? NULL : ARENA_ARRAY(l->arena, float, count);
  for (uint64_t i = 0; i < count && values; i++)
    values[i] = 1;
  return xl_floats(l, rank, dims, values);
}

XnnId xl_number(XnnLowering *l, double number, uint32_t rank) {
  float value = (float)number;
  uint32_t one = 1;
  return xl_floats(l, rank ? 1 : 0, &one, &value);
}

const XnnOrder *xl_order(XnnLowering *l, size_t element, uint32_t rank, const uint32_t *dims,
                         const uint32_t *perm) {
  if (l->trial || permutation_keeps_order(rank, dims, perm))
    return NULL;
  XnnOrder *made = ARENA_NEW(l->arena, XnnOrder);
  made->element = (uint32_t)element;
  made->rank = rank;
  memcpy(made->dims, dims, rank * sizeof *dims);
  memcpy(made->perm, perm, rank * sizeof *perm);
  return made;
}

XnnId xl_permuted_constant(XnnLowering *l, ValueId v, uint32_t rank, const uint32_t *dims,
                           const uint32_t *perm, bool half) {
  if (!xl_ok(l))
    return XNN_NONE;
  size_t size = half ? sizeof(uint16_t) : sizeof(float);
  XnnDatatype datatype = half ? XNN_FP16 : XNN_FP32;
  if (!half && !value_is_const(l->g, v))
    return xl_dequantized_constant(l, v, rank, dims, perm);
  if (half == is_half(l, v)) /* the same bytes, put in order when the program is written */
    return xnn_constant(&l->x, datatype, rank, dims,
                        (XnnData){v, xl_order(l, size, rank, dims, perm)});
  if (l->trial)
    return xl_made_constant(l, half, rank, dims, NULL);
  /* The floats are gone after the pass: nobody keeps what is made of them but in `values`. */
  Constant straight = {.data = (const uint8_t *)xl_constant_floats(l, v),
                       .size = size * xnn_dims_count(dims, rank)};
  Constant permuted = constant_permuted(l->g, straight, (uint32_t)size, rank, dims, perm);
  uint8_t *values = arena_alloc(&l->g->arena, straight.size + 1);
  constant_read(&permuted, 0, straight.size, values);
  return xl_made_constant(l, half, rank, dims, values);
}

/* --- nodes --- */

/* What varies of an operand varies of the result, whose last dims belong to those of the operand:
 * values that no value of the graph stands for are not marked otherwise. */
static void mark_dynamic(XnnLowering *l, XnnId in, XnnId out) {
  const XnnValue *from = &l->x.values[in];
  XnnValue *to = &l->x.values[out];
  for (uint32_t i = 0; i < from->rank && i < to->rank; i++)
    if (from->dynamic >> (from->rank - 1 - i) & 1)
      to->dynamic |= (uint8_t)(1U << (to->rank - 1 - i));
}

void xl_unary(XnnLowering *l, XnnNodeKind kind, XnnId in, XnnId out) {
  if (!xl_ok(l))
    return;
  XNN_ADD_NODE(&l->x, kind, in, out, 0);
  mark_dynamic(l, in, out);
}

void xl_binary(XnnLowering *l, XnnNodeKind kind, XnnId a, XnnId b, XnnId out) {
  if (!xl_ok(l))
    return;
  XNN_ADD_NODE(&l->x, kind, a, b, out, 0);
  mark_dynamic(l, a, out);
  mark_dynamic(l, b, out);
}

XnnId xl_scaled(XnnLowering *l, XnnId in, double factor) {
  XnnId out = xl_temp_like(l, in);
  xl_binary(l, XNN_MULTIPLY, in, xl_number(l, factor, xl_rank(l, in)), out);
  return out;
}

void xl_transpose(XnnLowering *l, XnnId in, const uint32_t *perm, uint32_t rank, XnnId out) {
  if (!xl_ok(l))
    return;
  POOL_PUSH(l->transposes, l->transpose_count, l->transpose_capacity,
            (XnnTranspose){l->node, out, l->transposes_for});
  for (uint32_t i = 0; i < rank; i++)
    if (l->x.values[in].dynamic >> perm[i] & 1)
      l->x.values[out].dynamic |= (uint8_t)(1U << i);
  uint32_t vector = xnn_vector(&l->x, perm, rank);
  XNN_ADD_NODE(&l->x, XNN_STATIC_TRANSPOSE, rank, vector, in, out, 0)->vector_count = (uint8_t)rank;
}

/* XNNPACK makes limits a part of the convolution or pool before them, also through copies and other
 * limits. Where zero lies outside of them it then fails in each run, and transposed convolutions
 * read what is not there. Limits of the negated value it leaves alone. */
void xl_clamp(XnnLowering *l, XnnId in, float low, float high, XnnId out) {
  if (!xl_ok(l))
    return;
  bool hidden = (low > 0 || high < 0) && l->x.values[in].follows_window;
  XnnId from = hidden ? xl_temp_like(l, in) : in, to = hidden ? xl_temp_like(l, in) : out;
  if (hidden)
    xl_unary(l, XNN_NEGATE, in, from);
  XnnNode *node = XNN_ADD_NODE(&l->x, XNN_CLAMP, from, to, 0);
  node->limited = true;
  node->limit_low = hidden ? -high : low;
  node->limit_high = hidden ? -low : high;
  if (hidden)
    xl_unary(l, XNN_NEGATE, to, out);
}

void xl_reshape(XnnLowering *l, XnnId in, const SymInt *dims, uint32_t rank, XnnId out) {
  uint32_t shape[XNN_MAX_RANK], varying = 0;
  for (uint32_t i = 0; i < rank && i < XNN_MAX_RANK && xl_ok(l); i++) {
    bool fixed = sym_is_const(dims[i]);
    varying += !fixed;
    shape[i] = fixed ? (uint32_t)dims[i] : 0; /* 0: follows from the other dims */
  }
  if (rank > XNN_MAX_RANK)
    xl_refuse(l, XNN_RULE_RANK_LIMIT, R_INT("rank", rank));
  else if (varying > 1)
    xl_refuse(l, XNN_RULE_VARYING, R_INT("varying-dims", varying), R_INT("supported", 1));
  if (!xl_ok(l))
    return;
  XnnId origin = l->x.values[in].origin;
  if (origin)
    in = origin - 1;
  if (!varying)
    l->x.values[out].origin = in + 1;
  uint32_t vector = xnn_vector(&l->x, shape, rank);
  XNN_ADD_NODE(&l->x, XNN_STATIC_RESHAPE, rank, vector, in, out, 0)->vector_count = (uint8_t)rank;
}

XnnId xl_reshaped(XnnLowering *l, XnnId in, const SymInt *dims, uint32_t rank) {
  XnnId out = xl_sym_temp(l, rank, dims);
  xl_reshape(l, in, dims, rank, out);
  return out;
}

XnnId xl_origin(const XnnLowering *l, XnnId id) {
  XnnId origin = xl_ok(l) ? l->x.values[id].origin : 0;
  return origin ? origin - 1 : id;
}

void xl_reshape_to(XnnLowering *l, XnnId in, ValueId like, XnnId out) {
  SymInt dims[XNN_MAX_RANK];
  uint32_t rank = value_rank(l->g, like);
  for (uint32_t i = 0; i < rank && i < XNN_MAX_RANK; i++)
    dims[i] = value_dim(l->g, like, i);
  xl_reshape(l, in, dims, rank, out);
}

void xl_fully_connected(XnnLowering *l, XnnId x, XnnId filter, XnnId bias, uint32_t flags,
                        XnnId out) {
  if (xl_ok(l))
    XNN_ADD_NODE(&l->x, XNN_FULLY_CONNECTED, x, filter, bias, out, flags);
}

/* --- whole nodes --- */

static const struct {
  XnnLowerFn *function;
  XnnLayouts layouts;
  XnnWork work;
} rows[OP_COUNT] = {
#define XNN_LOWER(op, function, layouts, work)                                                     \
  [OP_##op] = {function, XL_##layouts, XNN_WORK_##work},
#include "backends/xnnpack/lower.def"
#undef XNN_LOWER
};

XnnWork xl_work(OpId op) { return rows[op].work; }
bool xl_knows(OpId op) { return rows[op].function != NULL; }
XnnLayouts xl_layouts(OpId op) { return rows[op].layouts; }

/* Whether n computes on codes as such: in a delegate those are between nodes that quantize and
 * dequantize. Other bytes are numbers, as those of images are. */
static bool computes_on_codes(const Graph *g, NodeId n) {
  Quantization q;
  if (is_quantize(g, n) || is_dequantize(g, n))
    return false;
  bool found = xl_codes(g, node_result(g, n, 0), &q);
  FOR_OPERANDS(g, n, v, found = found || (v && xl_codes(g, v, &q));)
  return found;
}

bool xl_node(XnnLowering *l, NodeId n) {
  XnnLowerFn *function = rows[node_cget(l->g, n)->op].function;
  SymInt guard;
  l->node = n;
  if (function && computes_on_codes(l->g, n))
    xl_refuse(l, XNN_RULE_ELEMENT_TYPE, R_STR("dtype", "codes"));
  else if (function && !xl_guard(l->g, n, &guard))
    l->refusal = xl_refusal(XNN_RULE_EMPTY_OPERAND);
  else if (function)
    function(l, n);
  else
    l->refusal = xl_refusal(XNN_RULE_NO_NODE);
  return xl_ok(l);
}

void xl_output(XnnLowering *l, ValueId v) {
  if (!xl_has_plain(l, v) && !xl_has_nhwc(l, v) && !xl_has_permuted(l, v) && !xl_is_moved(l, v))
    xl_refuse(l, XNN_RULE_COMPANY, R_INT("value", v));
  XnnId id = xl_plain(l, v);
  if (xl_ok(l) && is_half(l, v))
    id = converted(l, id, XNN_FP16);
  if (xl_ok(l))
    id = xl_codes_out(l, v, id);
  if (!xl_ok(l))
    return;
  const XnnValue *value = &l->x.values[id];
  if (value->external || value->data) {
    XnnId copy = xl_temp_like(l, id);
    xl_unary(l, XNN_COPY, id, copy);
    id = copy;
  }
  xnn_make_external(&l->x, id, false);
}

/* Ops that make tensors from numbers: shape rules, and what the runtime refuses. Without a dtype
 * argument the result has the type of the fill value (i64, f32 or bool), f32 for zeros, ones and
 * random numbers. Reference kernels: create_kernels.c. */
#include "ops/ops.h"
#include "ops/shape_util.h"

#include <math.h>

/* full (size, fill_value, dtype); ones, zeros, rand, randn (size, dtype). */
Status shape_full(Graph *g, NodeId n) {
  bool filled = node_cget(g, n)->op == OP_FULL;
  IntList size;
  DType dtype, natural = DTYPE_F32;
  TRY(arg_int_list(g, n, 0, &size));
  if (size.count > MAX_RANK)
    return bad_arg(g, n, "argument 'size' has %u entries, at most %u are possible", size.count,
                   MAX_RANK);
  if (filled)
    TRY(arg_scalar_kind(g, n, 1, &natural));
  TRY(arg_dtype(g, n, filled ? 2 : 1, natural, &dtype));
  if (op_has_trait(node_cget(g, n)->op, OP_RANDOM) && !dtype_is_float(dtype))
    return bad_dtype(g, n, "random numbers cannot be %s", dtype_name(dtype));
  Dims d = dims_make(size.v, size.count);
  for (uint32_t k = 0; k < d.rank; k++)
    TRY(shape_at_least(g, n, d.d[k], 0, "a dimension"));
  return shape_result(g, n, 0, dtype, &d);
}

Status shape_full_like(Graph *g, NodeId n) {
  DType dtype, kind;
  TRY(arg_scalar_kind(g, n, 1, &kind));
  TRY(arg_dtype(g, n, 2, operand_dtype(g, n, 0), &dtype));
  Dims d = operand_dims(g, n, 0);
  return shape_result(g, n, 0, dtype, &d);
}

Status shape_scalar_tensor(Graph *g, NodeId n) {
  DType dtype, natural;
  Dims d = {0};
  TRY(arg_scalar_kind(g, n, 0, &natural));
  TRY(arg_dtype(g, n, 1, natural, &dtype));
  return shape_result(g, n, 0, dtype, &d);
}

/* --- arange --- */

/* Length of a range over integers, as an expression. */
static Status int_range(Graph *g, NodeId n, const SymInt v[3], SymInt *length) {
  SymTable *t = &g->syms;
  if (!sym_is_const(v[2]))
    return bad_arg(g, n, "argument 'step' must be a constant");
  if (v[2] == 0)
    return bad_arg(g, n, "argument 'step' must not be 0");
  bool up = v[2] > 0;
  SymInt span = up ? sym_sub(t, v[1], v[0]) : sym_sub(t, v[0], v[1]);
  TRY(shape_at_least(g, n, span, 0,
                     "the distance from 'start' to 'end' in the direction of 'step'"));
  *length = sym_ceildiv(t, span, up ? v[2] : sym_sub(t, 0, v[2]));
  return STATUS_OK;
}

static Status float_range(Graph *g, NodeId n, const double v[3], SymInt *length) {
  double count = ceil((v[1] - v[0]) / v[2]);
  if (!(count >= 0 && count < 0x1p53))
    return bad_arg(g, n, "a range from %g to %g in steps of %g does not end", v[0], v[1], v[2]);
  *length = int_clamped(count, 0, INT64_MAX);
  return STATUS_OK;
}

/* The length is known only while running: the symbol made when the rule first ran is kept. */
static SymInt unknown_length(Graph *g, NodeId n) {
  TypeId type = value_get(g, node_result(g, n, 0))->type;
  if (type && type_get(g, type)->kind == TYPE_TENSOR && type_get(g, type)->rank == 1)
    return type_get(g, type)->dims[0];
  return sym_symbol(&g->syms, SV(""), 0, INT32_MAX, true);
}

/* arange (end, dtype); arange.start_step (start, end, step, dtype). */
/* Start, end and step of a range. */
typedef struct Range {
  SymInt ints[3];
  double floats[3];
  bool whole, literal,
      known; /* all of them: no float; a number in the text; known when compiling */
} Range;

/* Argument i is number `slot` of the range. */
static Status read_bound(Graph *g, NodeId n, uint32_t i, uint32_t slot, Range *r) {
  const Arg *arg = node_arg(g, n, i);
  DType kind;
  TRY(arg_scalar_kind(g, n, i, &kind));
  r->whole = r->whole && kind != DTYPE_F32;
  if (arg->kind == ARG_VALUE) {
    const Type *t = value_type(g, node_value(g, n, i));
    r->literal = false;
    r->known = r->known && t->kind == TYPE_INT && t->rank == 1;
    r->ints[slot] = r->known ? t->dims[0] : 0;
    return STATUS_OK;
  }
  r->ints[slot] = arg->kind == ARG_FLOAT ? 0 : arg->i;
  r->literal = r->literal && (arg->kind == ARG_FLOAT || sym_is_const(arg->i));
  r->floats[slot] = node_scalar(g, n, i);
  return STATUS_OK;
}

Status shape_arange(Graph *g, NodeId n) {
  bool stepped = node_cget(g, n)->op == OP_ARANGE_START_STEP;
  SymInt length;
  Range r = {{0, 0, 1}, {0, 0, 1}, .whole = true, .literal = true, .known = true};
  for (uint32_t i = 0; i < (stepped ? 3u : 1u); i++)
    TRY(read_bound(g, n, i, stepped ? i : 1, &r));
  DType dtype;
  TRY(arg_dtype(g, n, stepped ? 3 : 1, r.whole ? DTYPE_I64 : DTYPE_F32, &dtype));
  if (dtype == DTYPE_BOOL)
    return bad_dtype(g, n, "a range cannot be bool");
  if (r.whole && r.known)
    TRY(int_range(g, n, r.ints, &length));
  else if (r.literal)
    TRY(float_range(g, n, r.floats, &length));
  else
    length = unknown_length(g, n);
  Dims d = dims_make(&length, 1);
  return shape_result(g, n, 0, dtype, &d);
}

/* --- what the runtime refuses --- */

/* Other factories also make u16 and u32; a scalar tensor and full_like do not. */
const char *check_full(const Graph *g, NodeId n, Arena *arena) {
  (void)arena;
  OpId op = node_cget(g, n)->op;
  DType dtype = value_dtype(g, node_result(g, n, 0));
  bool fixed = op == OP_ZEROS || op == OP_ONES;
  DTypeSet more = fixed || op == OP_FULL ? DT(U16) | DT(U32) : 0;
  if (!dtype_in(dtype, DTS_REAL_BOOL | more))
    return "the element type is not supported";
  if (!fixed && !scalar_fits(g, n, op == OP_SCALAR_TENSOR ? 0 : 1, dtype))
    return "the value is not in the range of the element type";
  return NULL;
}

const char *check_arange(const Graph *g, NodeId n, Arena *arena) {
  (void)arena;
  for (uint32_t i = 0; i < op_schema(node_cget(g, n)->op)->arg_count; i++)
    if (node_arg(g, n, i)->kind == ARG_BOOL)
      return "start, end and step must be numbers";
  return dtype_in(value_dtype(g, node_result(g, n, 0)), DTS_REAL)
             ? NULL
             : "the element type is not supported";
}

/* Shared parts of the shape rules (shape_util.h). Result dtypes follow torch's type promotion
 * (torch.result_type) with the one difference of the ExecuTorch kernels that 0-d tensors take full
 * part in it. */
#include "ops/shape_util.h"

#include "ir/text.h"

#include <float.h>
#include <math.h>

/* Dims above this are taken for overflow: no tensor of the runtime has them, and sums of two still
 * fit. */
#define DIM_MAX ((int64_t)1 << 48)
#define BYTES_MAX ((uint64_t)1 << 50)

StrView arg_name(const Graph *g, NodeId n, uint32_t i) {
  return op_schema(node_cget(g, n)->op)->args[i].name;
}

/* --- arguments --- */

static Status bad_kind(Graph *g, NodeId n, uint32_t i, const char *wanted) {
  StrView name = arg_name(g, n, i);
  return bad_arg(g, n, "argument '" SV_FMT "' must be %s", SV_ARG(name), wanted);
}

/* The run-time scalar given as an argument, NULL when it is something else. */
static const Type *scalar_type_of(const Graph *g, const Arg *arg) {
  if (arg->kind != ARG_VALUE)
    return NULL;
  ValueId v = g->uses[arg->at].value;
  if (!v || v >= g->value_count)
    return NULL;
  const Type *t = value_type(g, v);
  return t->kind == TYPE_INT || t->kind == TYPE_FLOAT || t->kind == TYPE_BOOL ? t : NULL;
}

Status arg_int(Graph *g, NodeId n, uint32_t i, SymInt *out) {
  const Arg *arg = node_arg(g, n, i);
  const Type *t = scalar_type_of(g, arg);
  if (arg->kind == ARG_INT || arg->kind == ARG_BOOL)
    *out = arg->i;
  else if (t && t->kind == TYPE_INT && t->rank == 1)
    *out = t->dims[0];
  else
    return bad_kind(g, n, i, t ? "a number that is known before running" : "an integer");
  return STATUS_OK;
}

Status arg_const_int(Graph *g, NodeId n, uint32_t i, int64_t *out) {
  TRY(arg_int(g, n, i, out));
  return sym_is_const(*out) ? STATUS_OK : bad_kind(g, n, i, "a constant");
}

Status arg_int_list(Graph *g, NodeId n, uint32_t i, IntList *out) {
  const Arg *arg = node_arg(g, n, i);
  out->count = 0;
  if (arg->kind == ARG_NONE)
    return STATUS_OK;
  if (arg->kind == ARG_INT) {
    out->count = 1;
    out->v[0] = arg->i;
    return STATUS_OK;
  }
  if (arg->kind != ARG_INTS && arg->kind != ARG_VALUES)
    return bad_kind(g, n, i, "a list of integers");
  if (arg->count > COUNT_OF(out->v))
    return bad_kind(g, n, i, "a list of at most 32 numbers");
  for (uint32_t k = 0; k < arg->count; k++) {
    if (arg->kind == ARG_INTS) {
      out->v[k] = g->ints[arg->at + k];
      continue;
    }
    ValueId v = g->uses[arg->at + k].value;
    const Type *t = v && v < g->value_count ? value_type(g, v) : NULL;
    if (!t || t->kind != TYPE_INT || t->rank != 1)
      return bad_kind(g, n, i, "a list of integers known before running");
    out->v[k] = t->dims[0];
  }
  out->count = arg->count;
  return STATUS_OK;
}

Status arg_spatial(Graph *g, NodeId n, uint32_t i, uint32_t count, int64_t fill, SymInt *out) {
  IntList list;
  TRY(arg_int_list(g, n, i, &list));
  if (list.count != count && list.count != 1 && !(list.count == 0 && fill >= 0)) {
    StrView name = arg_name(g, n, i);
    return bad_arg(g, n, "argument '" SV_FMT "' has %u entries, expected 1 or %u", SV_ARG(name),
                   list.count, count);
  }
  for (uint32_t k = 0; k < count; k++)
    out[k] = list.count == 0 ? fill : list.v[list.count == 1 ? 0 : k];
  return STATUS_OK;
}

bool arg_flag(const Graph *g, NodeId n, uint32_t i) {
  const Arg *arg = node_arg(g, n, i);
  return (arg->kind == ARG_BOOL || arg->kind == ARG_INT) && arg->i != 0;
}

Status arg_scalar_kind(Graph *g, NodeId n, uint32_t i, DType *out) {
  const Arg *arg = node_arg(g, n, i);
  const Type *t = scalar_type_of(g, arg);
  if (arg->kind == ARG_BOOL || (t && t->kind == TYPE_BOOL))
    *out = DTYPE_BOOL;
  else if (arg->kind == ARG_INT || (t && t->kind == TYPE_INT))
    *out = DTYPE_I64;
  else if (arg->kind == ARG_FLOAT || t)
    *out = DTYPE_F32;
  else
    return bad_kind(g, n, i, "a number");
  return STATUS_OK;
}

/* whole: v stands for an integer of 64 bits, which a double may round up to 2^63. */
static bool number_fits(double v, bool whole, DType dtype) {
  if (dtype_is_float(dtype)) {
    double max = dtype == DTYPE_F16 ? 65504.0 : dtype == DTYPE_F64 ? DBL_MAX : (double)FLT_MAX;
    if (dtype == DTYPE_BF16)
      max = 0x1.fep127;
    return isinf(v) || isnan(v) || (v >= -max && v <= max);
  }
  if (!dtype_is_int(dtype))
    return true;
  unsigned bits = dtype_size(dtype) * 8;
  if (!dtype_is_unsigned(dtype))
    bits--;
  double max = ldexp(1.0, (int)bits); /* 2^bits: the first value that does not fit */
  return dtype_is_unsigned(dtype) ? v > -max && v < max
                                  : v >= -max && (bits == 63 && whole ? true : v < max);
}

bool scalar_fits(const Graph *g, NodeId n, uint32_t i, DType dtype) {
  const Arg *arg = node_arg(g, n, i);
  if (arg->kind != ARG_INT && arg->kind != ARG_FLOAT)
    return true;
  if (arg->kind == ARG_FLOAT)
    return number_fits(arg->f, false, dtype);
  return number_fits((double)sym_lower(&g->syms, arg->i), true, dtype) &&
         number_fits((double)sym_upper(&g->syms, arg->i), true, dtype);
}

Status arg_dtype(Graph *g, NodeId n, uint32_t i, DType natural, DType *out) {
  const Arg *arg = node_arg(g, n, i);
  *out = natural;
  if (arg->kind == ARG_NONE)
    return STATUS_OK;
  if ((arg->kind != ARG_DTYPE && arg->kind != ARG_INT) || arg->i < 0 || arg->i >= DTYPE_NONE ||
      !dtype_size((DType)arg->i))
    return bad_kind(g, n, i, "an element type");
  *out = (DType)arg->i;
  return STATUS_OK;
}

/* --- dims --- */

Status shape_axis(Graph *g, NodeId n, int64_t dim, uint32_t rank, uint32_t *out) {
  int64_t limit = rank ? (int64_t)rank : 1;
  if (!sym_is_const(dim) || dim < -limit || dim >= limit) {
    const char *text = dim_text(g, dim);
    return shape_error(g, n, DIAG_AXIS_RANGE,
                       "dimension %s is out of range for a tensor of rank %u", text, rank);
  }
  *out = (uint32_t)wrap_dim(dim, (uint32_t)limit);
  return STATUS_OK;
}

Status arg_axis(Graph *g, NodeId n, uint32_t i, uint32_t rank, uint32_t *out) {
  int64_t dim = 0;
  TRY(arg_const_int(g, n, i, &dim));
  return shape_axis(g, n, dim, rank, out);
}

Status shape_axes(Graph *g, NodeId n, uint32_t arg, uint32_t rank, bool empty_is_all,
                  uint32_t *set) {
  IntList list;
  TRY(arg_int_list(g, n, arg, &list));
  *set = 0;
  if (list.count == 0 && empty_is_all)
    *set = ((uint32_t)1 << rank) - 1;
  for (uint32_t k = 0; k < list.count; k++) {
    uint32_t axis = 0;
    TRY(shape_axis(g, n, list.v[k], rank, &axis));
    if (*set >> axis & 1)
      return shape_error(g, n, DIAG_AXIS_RANGE, "dimension %u is listed twice", axis);
    *set |= (uint32_t)1 << axis;
  }
  return STATUS_OK;
}

void shape_assume(Graph *g, NodeId n, ConstraintKind kind, SymInt lhs, SymInt rhs) {
  for (uint32_t i = 0; i < g->constraint_count; i++) {
    const Constraint *c = &g->constraints[i];
    if (c->kind == kind && c->lhs == lhs && c->rhs == rhs)
      return;
  }
  graph_add_constraint(
      g, (Constraint){.kind = kind, .lhs = lhs, .rhs = rhs, .loc = node_cget(g, n)->loc});
}

/* "'x' (f32[batch, 7])", or the type alone of what the model has no name for. */
static const char *value_text(Graph *g, ValueId v) {
  StrBuf text = {0};
  StrView name = value_name(g, v);
  if (name.size)
    strbuf_printf(&text, "'" SV_FMT "' (", SV_ARG(name));
  type_print(g, value_type(g, v), &text);
  strbuf_append(&text, name.size ? SV(")") : SV(""));
  return strbuf_keep(&text, &g->arena).data;
}

Status shape_one_dtype(Graph *g, NodeId n, ValueId a, ValueId b) {
  DType x = value_dtype(g, a), y = value_dtype(g, b);
  return x == y ? STATUS_OK
                : bad_dtype(g, n, "operands are %s and %s, expected one type", dtype_name(x),
                            dtype_name(y));
}

Status shape_equal_of(Graph *g, NodeId n, SizeOf x, SizeOf y) {
  if (x.size != y.size && sym_known_eq(&g->syms, x.size, y.size) == 0)
    return bad_shape(g, n, "%s of %s and %s of %s differ: %s and %s", x.what, value_text(g, x.v),
                     y.what, value_text(g, y.v), dim_text(g, x.size), dim_text(g, y.size));
  return shape_equal(g, n, x.size, y.size, "");
}

Status shape_equal(Graph *g, NodeId n, SymInt a, SymInt b, const char *what) {
  if (a == b)
    return STATUS_OK;
  int known = sym_known_eq(&g->syms, a, b);
  if (known == 0) {
    const char *left = dim_text(g, a), *right = dim_text(g, b);
    return bad_shape(g, n, "%s differ: %s and %s", what, left, right);
  }
  if (known < 0)
    shape_assume(g, n, CONSTRAINT_EQ, a, b);
  return STATUS_OK;
}

Status shape_at_least(Graph *g, NodeId n, SymInt a, SymInt b, const char *what) {
  int known = sym_known_le(&g->syms, b, a);
  if (known == 0) {
    const char *left = dim_text(g, a), *right = dim_text(g, b);
    return bad_shape(g, n, "%s is %s, must be at least %s", what, left, right);
  }
  if (known < 0)
    shape_assume(g, n, CONSTRAINT_GE, a, b);
  return STATUS_OK;
}

Status shape_broadcast(Graph *g, NodeId n, Dims *acc, const Dims *b) {
  Dims wide = acc->rank >= b->rank ? *acc : *b;
  const Dims *slim = acc->rank >= b->rank ? b : acc;
  uint32_t shift = wide.rank - slim->rank;
  for (uint32_t i = 0; i < slim->rank; i++) {
    SymInt x = wide.d[shift + i], y = slim->d[i];
    if (y == 1 || x == y)
      continue;
    if (x != 1)
      TRY(shape_equal(g, n, x, y, "dimensions to broadcast"));
    if (x == 1 || sym_is_const(y))
      wide.d[shift + i] = y;
  }
  *acc = wide;
  return STATUS_OK;
}

Status shape_broadcasts_to(Graph *g, NodeId n, const Dims *from, const Dims *to, const char *what) {
  if (from->rank > to->rank)
    return bad_shape(g, n, "%s has rank %u, more than the result's %u", what, from->rank, to->rank);
  for (uint32_t i = 0; i < from->rank; i++)
    if (from->d[i] != 1)
      TRY(shape_equal(g, n, from->d[i], to->d[to->rank - from->rank + i], what));
  return STATUS_OK;
}

Dims dims_reduce(const Dims *in, uint32_t set, bool keepdim) {
  Dims out = {0};
  for (uint32_t i = 0; i < in->rank; i++) {
    if (!(set >> i & 1))
      out.d[out.rank++] = in->d[i];
    else if (keepdim)
      out.d[out.rank++] = 1;
  }
  return out;
}

SymInt dims_numel(Graph *g, const Dims *d) { return sym_product(&g->syms, d->d, d->rank); }

Status shape_window(Graph *g, NodeId n, const Window *w, SymInt *out) {
  SymTable *t = &g->syms;
  SymInt span = sym_add(t, sym_mul(t, w->dilation, sym_sub(t, w->kernel, 1)), 1);
  SymInt padded = sym_add(t, w->in, sym_add(t, w->pad_begin, w->pad_end));
  /* with ceil_mode the only window may reach past the end by less than a stride */
  SymInt reach = w->ceil_mode ? sym_add(t, padded, w->stride - 1) : padded;
  TRY(shape_at_least(g, n, reach, span, "the padded size under the kernel's window"));
  SymInt room = sym_sub(t, padded, span);
  if (!w->ceil_mode) {
    *out = sym_add(t, sym_floordiv(t, room, w->stride), 1);
    return STATUS_OK;
  }
  SymInt size = sym_add(t, sym_ceildiv(t, room, w->stride), 1);
  /* drop the last window when it would start behind input and left padding: size - 1 <= (in + begin
   * - 1) / stride */
  SymInt last = sym_sub(t, sym_add(t, w->in, w->pad_begin), 1);
  *out = sym_min(t, size, sym_add(t, sym_floordiv(t, last, w->stride), 1));
  return STATUS_OK;
}

/* --- results --- */

Status shape_result(Graph *g, NodeId n, uint32_t i, DType dtype, const Dims *d) {
  uint64_t bytes = dtype_size(dtype);
  if (!bytes)
    return bad_dtype(g, n, "the result has no element type");
  for (uint32_t k = 0; k < d->rank; k++) {
    SymInt dim = d->d[k];
    if (sym_upper(&g->syms, dim) < 0)
      return bad_shape(g, n, "dimension %u of the result would be negative", k);
    if (sym_lower(&g->syms, dim) > DIM_MAX)
      return shape_error(g, n, DIAG_SHAPE_OVERFLOW, "dimension %u of the result is too large", k);
  }
  for (uint32_t k = 0; k < d->rank;
       k++) /* empty dims count as 1: the others must make sense on their own */
    if (sym_is_const(d->d[k]) &&
        (!mul_u64(bytes, (uint64_t)max_i64(d->d[k], 1), &bytes) || bytes > BYTES_MAX))
      return shape_error(g, n, DIAG_SHAPE_OVERFLOW, "the result has too many elements");
  result_tensor(g, n, i, dtype, d->rank, d->d);
  return STATUS_OK;
}

Status shape_result_dims(Graph *g, NodeId n, const Dims *d) {
  return shape_result(g, n, 0, operand_dtype(g, n, 0), d);
}

Status shape_promote(Graph *g, NodeId n, DType a, DType b, DType *out) {
  *out = dtype_promote(a, b);
  if (*out == DTYPE_NONE)
    return bad_dtype(g, n, "%s and %s have no common element type", dtype_name(a), dtype_name(b));
  return STATUS_OK;
}

DType dtype_with_scalar(DType tensor, DType scalar) {
  if (scalar == DTYPE_F32)
    return dtype_to_float(tensor);
  if (scalar == DTYPE_I64 && tensor == DTYPE_BOOL)
    return DTYPE_I64;
  return tensor;
}

DType dtype_to_float(DType t) { return t == DTYPE_BOOL || dtype_is_int(t) ? DTYPE_F32 : t; }
DType dtype_to_sum(DType t) { return t == DTYPE_BOOL || dtype_is_int(t) ? DTYPE_I64 : t; }

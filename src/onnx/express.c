/* Short forms of the builder; see express.h. */
#include "onnx/express.h"

#include <math.h>

#include "ir/match.h"
#include "onnx/data_sizes.h"

#include "onnx/import_state.h"

double int_least(DType dtype) {
  return dtype_is_unsigned(dtype) ? 0 : -ldexp(1, 8 * (int)dtype_size(dtype) - 1);
}

double int_most(DType dtype) {
  return ldexp(1, 8 * (int)dtype_size(dtype) - !dtype_is_unsigned(dtype)) - 1;
}

ArgIn zero_arg(DType dtype) { return dtype_is_float(dtype) ? A_FLOAT(0) : A_INT(0); }

ValueId ex_unary(Import *im, OpId op, ValueId x) { return build_unary(&im->b, op, x); }

ValueId ex_binary(Import *im, OpId op, ValueId x, ValueId y) {
  return build_binary(&im->b, op, x, y);
}

ValueId ex_number(Import *im, ValueId like, double number) {
  return build_scalar(&im->b, ex_dtype(im, like), number);
}

ValueId ex_with(Import *im, OpId op, ValueId x, double number) {
  bool neutral = ((op == OP_ADD_TENSOR || op == OP_SUB_TENSOR) && number == 0) ||
                 ((op == OP_MUL_TENSOR || op == OP_DIV_TENSOR) && number == 1);
  return neutral ? x : ex_binary(im, op, x, ex_number(im, x, number));
}

ValueId ex_int(Import *im, int64_t number) { return build_scalar_int(&im->b, DTYPE_I64, number); }

ValueId ex_pow(Import *im, ValueId x, double exponent) {
  return build(&im->b, OP_POW_TENSOR_SCALAR, A_VAL(x), A_FLOAT(exponent));
}

ValueId ex_where(Import *im, ValueId condition, ValueId x, ValueId y) {
  return build(&im->b, OP_WHERE_SELF, A_VAL(condition), A_VAL(x), A_VAL(y));
}

ValueId ex_clamp(Import *im, ValueId x, double low, double high) {
  return build(&im->b, OP_CLAMP, A_VAL(x), A_FLOAT(low), A_FLOAT(high));
}

ValueId ex_cast(Import *im, ValueId x, DType to) { return build_cast(&im->b, x, to); }

ValueId ex_widen(Import *im, ValueId x) {
  DType dtype = ex_dtype(im, x);
  return ex_cast(im, x, dtype_is_half(dtype) ? DTYPE_F32 : dtype);
}

ValueId ex_matmul(Import *im, ValueId x, ValueId y) {
  bool plain = ex_rank(im, x) == 2 && ex_rank(im, y) == 2;
  return ex_binary(im, plain ? OP_MM : OP_MATMUL, x, y);
}

ValueId ex_linear(Import *im, ValueId x, ValueId w, ValueId bias) {
  return build(&im->b, OP_LINEAR, A_VAL(x), A_VAL(w), A_OPT(bias));
}

ValueId ex_reduce(Import *im, OpId op, ValueId x, const int64_t *axes, uint32_t count, bool keep) {
  if (op == OP_SUM_DIM_INTLIST)
    return build(&im->b, op, A_VAL(x), A_INTS(axes, count), A_BOOL(keep), A_DTYPE(ex_dtype(im, x)));
  return build(&im->b, op, A_VAL(x), A_INTS(axes, count), A_BOOL(keep));
}

ValueId ex_reduce_dims(Import *im, OpId op, ValueId x, uint32_t first, uint32_t end, bool keep) {
  int64_t axes[MAX_RANK];
  uint32_t count = 0;
  for (uint32_t i = first; i < end; i++)
    axes[count++] = i;
  return count ? ex_reduce(im, op, x, axes, count, keep) : x;
}

ValueId ex_reduce_one(Import *im, OpId op, ValueId x, int64_t axis, bool keep) {
  return ex_reduce(im, op, x, &axis, 1, keep);
}

ValueId ex_sum(Import *im, ValueId x, int64_t axis, bool keep) {
  return ex_reduce_one(im, OP_SUM_DIM_INTLIST, x, axis, keep);
}

ValueId ex_argmax(Import *im, ValueId x, int64_t axis, bool keep) {
  return build(&im->b, OP_ARGMAX, A_VAL(x), A_INT(axis), A_BOOL(keep));
}

ValueId ex_topk(Import *im, ValueId x, SymInt k, int64_t axis, bool largest) {
  return build(&im->b, OP_TOPK, A_VAL(x), A_INT(k), A_INT(axis), A_BOOL(largest), A_BOOL(true));
}

ValueId ex_swish(Import *im, ValueId x, double alpha) {
  if (alpha == 1)
    return ex_unary(im, OP_SILU, x);
  return ex_mul(im, x, ex_unary(im, OP_SIGMOID, ex_times(im, x, alpha)));
}

ValueId ex_softmax(Import *im, ValueId x, int64_t axis) {
  return build(&im->b, OP_SOFTMAX, A_VAL(x), A_INT(axis), A_BOOL(false));
}

ValueId ex_log_softmax(Import *im, ValueId x, int64_t axis) {
  if (ex_dtype(im, x) != DTYPE_F64)
    return build(&im->b, OP_LOG_SOFTMAX, A_VAL(x), A_INT(axis), A_BOOL(false));
  ValueId shifted = ex_sub(im, x, ex_reduce_one(im, OP_AMAX, x, axis, true)),
          sum = ex_sum(im, ex_unary(im, OP_EXP, shifted), axis, true);
  return ex_sub(im, shifted, ex_unary(im, OP_LOG, sum));
}

/* --- shapes --- */

uint32_t ex_rank(const Import *im, ValueId x) {
  return import_ok(im) && x ? value_rank(im->g, x) : 0;
}

SymInt ex_dim(const Import *im, ValueId x, uint32_t i) {
  return i < ex_rank(im, x) ? value_dim(im->g, x, i) : 0;
}

int64_t ex_fixed(Import *im, ValueId x, uint32_t i) {
  if (i >= ex_rank(im, x))
    return 0;
  SymInt d = ex_dim(im, x, i);
  if (sym_is_const(d))
    return d;
  import_fail(im, DIAG_UNSUPPORTED_FEATURE, "%s needs a fixed size of dimension %u",
              im->node->op_type, i);
  return 0;
}

DType ex_dtype(const Import *im, ValueId x) {
  return import_ok(im) && x ? value_dtype(im->g, x) : DTYPE_F32;
}

ValueId ex_view(Import *im, ValueId x, const SymInt *dims, uint32_t rank) {
  return build_view(&im->b, x, dims, rank);
}

ValueId ex_expand(Import *im, ValueId x, const SymInt *dims, uint32_t rank) {
  return build_expand(&im->b, x, dims, rank);
}

ValueId ex_permute(Import *im, ValueId x, const int64_t *perm) {
  return build_permute(&im->b, x, perm);
}

ValueId ex_permute_of(Import *im, ValueId x, const int64_t *perm, uint32_t count) {
  if (ex_rank(im, x) != count)
    return import_fail(im, DIAG_INPUT_RANK, "a tensor of rank %u is permuted as one of rank %u",
                       ex_rank(im, x), count);
  return ex_permute(im, x, perm);
}

ValueId ex_slice(Import *im, ValueId x, uint32_t dim, SymInt start, SymInt end) {
  return build_slice(&im->b, x, dim, start, end, 1);
}

ValueId ex_select(Import *im, ValueId x, uint32_t dim, int64_t index) {
  SymInt dims[MAX_RANK];
  uint32_t rank = ex_rank(im, x);
  for (uint32_t i = 0, k = 0; i < rank; i++)
    if (i != dim)
      dims[k++] = ex_dim(im, x, i);
  return rank ? ex_view(im, ex_slice(im, x, dim, index, index + 1), dims, rank - 1) : 0;
}

ValueId ex_cat(Import *im, const ValueId *items, uint32_t count, uint32_t dim) {
  if (count == 1)
    return items[0];
  return build(&im->b, OP_CAT, A_VALS(items, count), A_INT(dim));
}

ValueId ex_move_dim(Import *im, ValueId x, uint32_t from, uint32_t to) {
  int64_t perm[MAX_RANK];
  uint32_t rank = ex_rank(im, x), k = 0;
  for (uint32_t i = 0; i < rank; i++) {
    if (k == to)
      perm[k++] = from;
    if (i != from)
      perm[k++] = i;
  }
  if (k < rank)
    perm[k] = from;
  return ex_permute(im, x, perm);
}

ValueId ex_unsqueeze(Import *im, ValueId x, uint32_t dim) {
  return build_unsqueeze(&im->b, x, dim);
}

/* An integer argument; false when the number cannot be one. */
static bool arg_from_float(double number, ArgIn *arg) {
  *arg = A_INT(0);
  return sym_from_float(number, &arg->i);
}

ValueId ex_full(Import *im, DType dtype, const SymInt *dims, uint32_t rank, double value) {
  ArgIn number = dtype_is_float(dtype) ? A_FLOAT(value) : A_BOOL(value != 0);
  if (!dtype_in(dtype, DTS_REAL_BOOL) ||
      (dtype_is_int(dtype) && !arg_from_float(trunc(value), &number)))
    return build_expand(&im->b, build_scalar(&im->b, dtype, value), dims, rank);
  return build(&im->b, OP_FULL, A_INTS(dims, rank), number, A_DTYPE(dtype));
}

ValueId ex_filled(Import *im, DType dtype, Dims shape, double value) {
  return ex_full(im, dtype, shape.d, shape.rank, value);
}

ValueId ex_arange(Import *im, SymInt n) {
  return build(&im->b, OP_ARANGE, A_INT(n), A_DTYPE(DTYPE_I64));
}

ValueId ex_size(Import *im, SymInt n) {
  return sym_is_const(n) ? ex_int(im, n)
                         : build(&im->b, OP_SCALAR_TENSOR, A_INT(n), A_DTYPE(DTYPE_I64));
}

/* --- what several operators share --- */

ValueId ex_rms_norm(Import *im, ValueId x, uint32_t axis, DType work, double epsilon) {
  Dims s = shape_of(im, x);
  uint32_t count = axis < s.rank ? s.rank - axis : 0;
  ValueId wide = ex_cast(im, x, work);
  ValueId y = build(&im->b, OP_RMS_NORM, A_VAL(wide), A_INTS(s.d + s.rank - count, count), A_NONE,
                    A_FLOAT(epsilon));
  return ex_cast(im, y, ex_dtype(im, x));
}

ValueId ex_group_norm(Import *im, ValueId x, ValueId weight, ValueId bias, int64_t groups,
                      double epsilon) {
  Dims s = shape_of(im, x);
  if (s.rank < 2)
    return import_fail(im, DIAG_INPUT_RANK, "the input has rank %u, 2 or more are needed", s.rank);
  x = s.rank == 2 ? ex_unsqueeze(im, x, 2) : x; /* the kernel wants positions */
  ValueId y = build(&im->b, OP_NATIVE_GROUP_NORM, A_VAL(x), A_OPT(weight), A_OPT(bias),
                    A_INT(s.d[0]), A_INT(s.d[1]), A_INT(shape_product(im, s.d + 2, s.rank - 2)),
                    A_INT(groups), A_FLOAT(epsilon));
  return s.rank == 2 ? ex_view_as(im, y, s) : y;
}

Dims shape_of(const Import *im, ValueId v) {
  return import_ok(im) ? value_dims(im->g, v) : (Dims){0};
}

SymInt shape_product(Import *im, const SymInt *dims, uint32_t count) {
  return sym_product(&im->g->syms, dims, count);
}

ValueId ex_view_as(Import *im, ValueId x, Dims shape) { return build_view_as(&im->b, x, shape); }

void ex_set_shape(Import *im, ValueId v, Dims shape) {
  if (import_ok(im))
    value_set_type(
        im->g, v, graph_tensor_type(im->g, ex_dtype(im, v), shape.rank, shape.d, ORDER_CONTIGUOUS));
}

ValueId ex_scalar(Import *im, ValueId x) { return ex_view(im, x, NULL, 0); }

ValueId ex_flat(Import *im, ValueId x) {
  Dims s = shape_of(im, x);
  return EX_VIEW(im, x, shape_product(im, s.d, s.rank));
}

ValueId ex_rows(Import *im, ValueId x, uint32_t axis) {
  Dims s = shape_of(im, x);
  uint32_t at = axis < s.rank ? axis : s.rank;
  return EX_VIEW(im, x, shape_product(im, s.d, at), shape_product(im, s.d + at, s.rank - at));
}

/* Name i of a node; "" without one. */
static const char *name_at(char *const *names, size_t count, uint32_t i) {
  return i < count && names[i] ? names[i] : "";
}

enum { NODES_MAX = 64, NUMBERS_MAX = 16 };

/* Whether v is computed from no other input than *source, which is set to the first one. */
static bool from_one_input(const Graph *g, ValueId v, uint32_t *nodes_left, ValueId *source) {
  NodeId n = value_def(g, v);
  if (value_is_const(g, v))
    return true;
  if (!n) {
    bool first = !*source && value_cget(g, v)->kind == VALUE_INPUT;
    *source = first ? v : *source;
    return *source == v;
  }
  if (!*nodes_left)
    return false;
  --*nodes_left;
  FOR_OPERANDS(g, n, operand, {
    if (operand && !from_one_input(g, operand, nodes_left, source))
      return false;
  })
  return true;
}

/* The input of the model that v is computed from, if it is only one, of a few numbers that one can
 * give; else 0. */
static ValueId input_behind(const Graph *g, ValueId v) {
  uint32_t nodes_left = NODES_MAX;
  ValueId source = 0;
  if (!v || !from_one_input(g, v, &nodes_left, &source) || !source)
    return 0;
  const Type *t = value_type(g, source);
  return type_is_static(t) && dims_count(t->dims, 0, t->rank) <= NUMBERS_MAX ? source : 0;
}

ValueId fail_not_known(Import *im, uint32_t input, const char *what) {
  if (!import_ok(im))
    return 0;
  if (im->state->sizes)
    im->state->sizes->stopped = true;
  const char *name = name_at(im->node->input, im->node->n_input, input);
  const char *output = name_at(im->node->output, im->node->n_output, 0);
  ValueId v = in(im, input), source = input_behind(im->g, v);
  if (v && value_is_const(im->g, v) && !dtype_is_int(ex_dtype(im, v)))
    return import_fail(im, DIAG_INPUT_TYPE, "%s (input '%s') is %s, integers are wanted", what,
                       name, dtype_name(ex_dtype(im, v)));
  if (v && value_is_const(im->g, v) && ex_rank(im, v) == 1)
    return import_fail(im, DIAG_INPUT_RANK, "%s (input '%s') has %lld entries, more than are read",
                       what, name, (long long)ex_dim(im, v, 0));
  const char *hint =
      source ? arena_printf(&im->scratch, "give %s when lowering: --value %s=VALUE",
                            source == v ? "it" : "the input that it depends on",
                            shell_word(&im->scratch, intern_get(&im->ctx->names,
                                                                value_cget(im->g, source)->name)))
             : "make it a constant, or run ONNX shape inference so that the output's shape is "
               "declared";
  return build_fail_hint(
      &im->b, DIAG_INPUT_NOT_CONST, hint,
      "%s (input '%s') is computed at run time, and output '%s' declares no fixed size", what, name,
      output);
}

bool types_agree(Import *im, ValueId a, ValueId b) {
  DType x = ex_dtype(im, a), y = ex_dtype(im, b);
  if (x != y)
    import_fail(im, DIAG_DTYPE_MISMATCH, "'%s' is %s and '%s' is %s, %s needs one type",
                name_at(im->node->input, im->node->n_input, 0), dtype_name(x),
                name_at(im->node->input, im->node->n_input, 1), dtype_name(y), im->node->op_type);
  return import_ok(im);
}

bool shape_input(Import *im, uint32_t i, uint32_t first, const char *what, Dims *shape,
                 bool *known) {
  Ints values;
  *shape = (Dims){0};
  ValueId list = in(im, i);
  *known = in_ints(im, i, &values);
  if (list && ex_rank(im, list) != 1) {
    import_fail(im, DIAG_INPUT_RANK, "%s is a tensor of rank %u, not a list", what,
                ex_rank(im, list));
  } else if (*known && values.count > MAX_RANK) {
    import_fail(im, DIAG_RANK_LIMIT, "%s has %u entries, the runtime allows %d dimensions", what,
                values.count, MAX_RANK);
  } else if (*known) {
    *shape = dims_make(values.at, values.count);
  } else if (import_ok(im) && !out_declared_dims(im, 0, shape)) {
    *known = data_sizes(im, list, first, what, shape);
    if (!*known)
      fail_not_known(im, i, what);
  }
  return import_ok(im);
}

ValueId ex_flip(Import *im, ValueId x, uint32_t axis) {
  int64_t dims[] = {axis};
  return build(&im->b, OP_FLIP, A_VAL(x), A_INTS(dims, 1));
}

ValueId ex_index_select(Import *im, ValueId x, uint32_t axis, ValueId index) {
  return build(&im->b, OP_INDEX_SELECT, A_VAL(x), A_INT(axis), A_VAL(index));
}

ValueId ex_look_up(Import *im, ValueId vector, ValueId index) {
  ValueId picked = ex_index_select(im, vector, 0, ex_flat(im, index));
  return ex_view_as(im, picked, shape_of(im, index));
}

ValueId ex_pick(Import *im, ValueId x, int64_t dim, SymInt index) {
  return build(&im->b, OP_SELECT_COPY_INT, A_VAL(x), A_INT(dim), A_INT(index));
}

ValueId ex_put_row(Import *im, ValueId rows, ValueId row, SymInt number) {
  return build(&im->b, OP_ET_COPY_INDEX, A_VAL(rows), A_VAL(row), A_INT(number));
}

ValueId ex_element(Import *im, ValueId vector, int64_t i) { return ex_pick(im, vector, 0, i); }

ValueId ex_pad(Import *im, ValueId x, uint32_t from_last, SymInt before, SymInt behind) {
  return build_pad(&im->b, x, -1 - (int64_t)from_last, before, behind);
}

ValueId ex_gather(Import *im, ValueId x, int64_t dim, ValueId index) {
  return build(&im->b, OP_GATHER, A_VAL(x), A_INT(dim), A_VAL(index));
}

ValueId ex_scatter(Import *im, ValueId x, int64_t dim, ValueId index, ValueId source) {
  return build(&im->b, OP_SCATTER_SRC, A_VAL(x), A_INT(dim), A_VAL(index), A_VAL(source));
}

ValueId ex_cat2(Import *im, ValueId a, ValueId b, uint32_t axis) {
  ValueId parts[] = {a, b};
  return ex_cat(im, parts, 2, axis);
}

ValueId ex_along_axis(Import *im, ValueId vector, uint32_t axis, uint32_t rank) {
  Dims s = {.rank = rank};
  for (uint32_t i = 0; i < rank; i++)
    s.d[i] = i == axis ? ex_dim(im, vector, 0) : 1;
  return ex_view_as(im, vector, s);
}

ValueId ex_wrap_index(Import *im, ValueId index, SymInt size) {
  Ints known;
  ValueId wide = build_cast(&im->b, index, DTYPE_I64);
  bool negative = true;
  if (value_ints(im, wide, &known)) {
    negative = false;
    for (uint32_t i = 0; i < known.count; i++)
      negative |= sym_lower(&im->g->syms, known.at[i]) < 0;
  }
  double least, most;
  if (!negative || (import_ok(im) && match_clamped(im->g, wide, &least, &most) && least >= 0))
    return wide;
  NodeId expand = value_def(im->g, wide);
  if (expand && node_cget(im->g, expand)->op == OP_EXPAND_COPY) { /* each number but once */
    Dims s = shape_of(im, wide);
    ValueId once = ex_wrap_index(im, node_value(im->g, expand, 0), size);
    return build_expand(&im->b, once, s.d, s.rank);
  }
  /* -1 where it is negative, else 0: a comparison and a selection take five times as long. */
  ValueId sign = build(&im->b, OP_BITWISE_RIGHT_SHIFT_TENSOR_SCALAR, A_VAL(wide), A_INT(63));
  if (sym_is_const(size))
    return build(&im->b, OP_SUB_TENSOR, A_VAL(wide), A_VAL(sign), A_INT(size));
  return ex_sub(im, wide, ex_mul(im, sign, ex_size(im, size)));
}

ValueId ex_row_index(Import *im, ValueId x, uint32_t axis, ValueId index) {
  if (!import_ok(im))
    return 0;
  Dims from = shape_of(im, x), at = shape_of(im, index);
  NodeId expand = value_def(im->g, index);
  ValueId once = expand && node_cget(im->g, expand)->op == OP_EXPAND_COPY
                     ? node_value(im->g, expand, 0)
                     : index;
  uint32_t added = at.rank - ex_rank(im, once); /* dims that expand put before */
  for (uint32_t i = 0; i < at.rank; i++) {
    SymInt size = i < added ? 1 : ex_dim(im, once, i - added);
    if (i == axis ? size != at.d[i] : size != 1 || at.d[i] != from.d[i])
      return 0;
  }
  return EX_VIEW(im, once, at.d[axis]);
}

ValueId ex_component(Import *im, ValueId indices, uint32_t k) {
  if (!import_ok(im))
    return 0;
  Dims s = shape_of(im, indices);
  bool only = s.d[s.rank - 1] == 1;
  s.rank--;
  return only ? ex_view_as(im, indices, s) : ex_pick(im, indices, s.rank, k);
}

ValueId ex_floor_mod(Import *im, ValueId a, ValueId b) {
  ValueId quotient = ex_floor_div(im, a, b);
  return ex_sub(im, a, ex_mul(im, quotient, b));
}

static bool axes_list(Import *im, Ints values, uint32_t rank, Axes *axes) {
  axes->known = true;
  axes->count = values.count;
  for (uint32_t i = 0; i < values.count && import_ok(im); i++) {
    uint32_t axis = import_axis(im, values.at[i], rank);
    if (axes->set >> axis & 1)
      import_fail(im, DIAG_AXIS_RANGE, "axis %lld is listed twice", (long long)values.at[i]);
    if (!import_ok(im))
      return false;
    axes->list[i] = axis;
    axes->set |= (uint32_t)1 << axis;
  }
  return import_ok(im);
}

bool axes_read(Import *im, int64_t input_since, uint32_t rank, Axes *axes) {
  Ints values;
  *axes = (Axes){0};
  if (!import_ok(im))
    return false;
  if (im->opset < input_since) {
    axes->given = attr_ints(im, "axes", &values);
    return import_ok(im) && (!axes->given || axes_list(im, values, rank, axes));
  }
  ValueId v = in(im, 1);
  axes->given = v != 0;
  if (!v || in_consts(im, 1, &values))
    return import_ok(im) && (!v || axes_list(im, values, rank, axes));
  axes->run = v;
  SymInt length = ex_rank(im, v) ? ex_dim(im, v, 0) : 1;
  if (sym_is_const(length) && length > MAX_RANK)
    return import_fail(im, DIAG_RANK_LIMIT, "there are %lld axes, the runtime allows %d dimensions",
                       (long long)length, MAX_RANK);
  if (!sym_is_const(length) || length < 0)
    return import_fail(im, DIAG_INPUT_NOT_CONST, "the number of axes is not known when lowering");
  axes->count = (uint32_t)length;
  axes->known = axes->count == 0;
  return true;
}

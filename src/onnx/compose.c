/* Short forms for translators; see compose.h. */
#include "onnx/compose.h"

Shape shape_of(const Import *im, ValueId v) {
  Shape s = {0};
  if (!import_ok(im) || !v)
    return s;
  const Type *t = vt(im, v);
  s.rank = t->rank;
  for (uint32_t i = 0; i < s.rank; i++)
    s.d[i] = t->dims[i];
  return s;
}

SymInt shape_product(Import *im, const SymInt *dims, uint32_t count) {
  SymInt product = 1;
  for (uint32_t i = 0; i < count; i++)
    product = sym_mul(&im->g->syms, product, dims[i]);
  return product;
}

ValueId view_as(Import *im, ValueId v, const Shape *shape) {
  return import_ok(im) ? build_view(&im->b, v, shape->d, shape->rank) : 0;
}

ValueId fail_not_known(Import *im, const char *what) {
  return import_fail(im, DIAG_INPUT_NOT_CONST,
                     "%s is computed at run time and output 0 declares no shape: make it a "
                     "constant, or run ONNX shape inference so that the output's shape is declared",
                     what);
}

bool shape_input(Import *im, uint32_t i, const char *what, Shape *shape, bool *known) {
  const SymInt *values;
  uint32_t count;
  *shape = (Shape){0};
  ValueId list = in(im, i);
  *known = in_ints(im, i, &values, &count);
  if (list && value_rank(im->g, list) != 1) {
    import_fail(im, DIAG_INPUT_RANK, "%s is a tensor of rank %u, not a list", what,
                value_rank(im->g, list));
  } else if (*known && count > MAX_RANK) {
    import_fail(im, DIAG_INPUT_RANK, "%s has %u entries, the runtime allows %d dimensions", what,
                count, MAX_RANK);
  } else if (*known) {
    shape->rank = count;
    memcpy(shape->d, values, count * sizeof *values);
  } else if (import_ok(im) && !out_declared_dims(im, 0, shape->d, &shape->rank)) {
    fail_not_known(im, what);
  }
  return import_ok(im);
}

ValueId op1(Import *im, OpId op, ValueId a) {
  return import_ok(im) ? build(&im->b, op, A_VAL(a)) : 0;
}

ValueId op2(Import *im, OpId op, ValueId a, ValueId b) {
  return import_ok(im) ? build(&im->b, op, A_VAL(a), A_VAL(b)) : 0;
}

ValueId op2_number(Import *im, OpId op, ValueId a, double number) {
  return import_ok(im) ? op2(im, op, a, build_scalar(&im->b, value_dtype(im->g, a), number)) : 0;
}

ValueId op_where(Import *im, ValueId condition, ValueId a, ValueId b) {
  return import_ok(im) ? build(&im->b, OP_WHERE_SELF, A_VAL(condition), A_VAL(a), A_VAL(b)) : 0;
}

ValueId op_flip(Import *im, ValueId x, uint32_t axis) {
  int64_t dims[] = {axis};
  return import_ok(im) ? build(&im->b, OP_FLIP, A_VAL(x), A_INTS(dims, 1)) : 0;
}

ValueId op_reduce(Import *im, OpId op, ValueId x, uint32_t axis, bool keepdim) {
  int64_t dims[] = {axis};
  if (!import_ok(im))
    return 0;
  if (op == OP_SUM_DIM_INTLIST)
    return build(&im->b, op, A_VAL(x), A_INTS(dims, 1), A_BOOL(keepdim),
                 A_DTYPE(value_dtype(im->g, x)));
  return build(&im->b, op, A_VAL(x), A_INTS(dims, 1), A_BOOL(keepdim));
}

ValueId op_index_select(Import *im, ValueId x, uint32_t axis, ValueId index) {
  return import_ok(im) ? build(&im->b, OP_INDEX_SELECT, A_VAL(x), A_INT(axis), A_VAL(index)) : 0;
}

ValueId vector_element(Import *im, ValueId vector, int64_t i) {
  return import_ok(im) ? build(&im->b, OP_SELECT_COPY_INT, A_VAL(vector), A_INT(0), A_INT(i)) : 0;
}

ValueId cut(Import *im, ValueId x, uint32_t axis, SymInt begin, SymInt end) {
  return import_ok(im) ? build_slice(&im->b, x, axis, begin, end, 1) : 0;
}

ValueId join2(Import *im, ValueId a, ValueId b, uint32_t axis) {
  ValueId parts[] = {a, b};
  return import_ok(im) ? build(&im->b, OP_CAT, A_VALS(parts, 2), A_INT(axis)) : 0;
}

ValueId filled(Import *im, DType dtype, const Shape *shape, double number) {
  if (!import_ok(im))
    return 0;
  if (!dtype_in(dtype, DTS_REAL_BOOL))
    return build_expand(&im->b, build_scalar(&im->b, dtype, number), shape->d, shape->rank);
  ArgIn value = dtype_is_float(dtype) ? A_FLOAT(number)
                : dtype == DTYPE_BOOL ? A_BOOL(number != 0)
                                      : A_INT((int64_t)number);
  return build(&im->b, OP_FULL, A_INTS(shape->d, shape->rank), value, A_DTYPE(dtype));
}

ValueId counting(Import *im, SymInt n) {
  return import_ok(im) ? build(&im->b, OP_ARANGE, A_INT(n), A_DTYPE(DTYPE_I64)) : 0;
}

ValueId along_axis(Import *im, ValueId vector, uint32_t axis, uint32_t rank) {
  Shape s = {.rank = rank};
  if (!import_ok(im))
    return 0;
  for (uint32_t i = 0; i < rank; i++)
    s.d[i] = i == axis ? value_dim(im->g, vector, 0) : 1;
  return view_as(im, vector, &s);
}

ValueId size_tensor(Import *im, SymInt n) { return build_syms(im, &n, 1, true); }

ValueId wrap_index(Import *im, ValueId index, SymInt size) {
  const SymInt *known;
  uint32_t count;
  if (!import_ok(im))
    return 0;
  ValueId wide = build_cast(&im->b, index, DTYPE_I64);
  bool negative = true;
  if (value_ints(im, wide, &known, &count)) {
    negative = false;
    for (uint32_t i = 0; i < count; i++)
      negative |= sym_lower(&im->g->syms, known[i]) < 0;
  }
  if (!negative)
    return wide;
  ValueId below = op2_number(im, OP_LT_TENSOR, wide, 0);
  return op_where(im, below, op2(im, OP_ADD_TENSOR, wide, size_tensor(im, size)), wide);
}

ValueId floor_mod(Import *im, ValueId a, ValueId b) {
  ValueId quotient = op2(im, OP_FLOOR_DIVIDE, a, b);
  return op2(im, OP_SUB_TENSOR, a, op2(im, OP_MUL_TENSOR, quotient, b));
}

static bool axes_list(Import *im, const int64_t *values, uint32_t count, uint32_t rank,
                      Axes *axes) {
  axes->known = true;
  axes->count = count;
  for (uint32_t i = 0; i < count && import_ok(im); i++) {
    uint32_t axis = import_axis(im, values[i], rank);
    if (import_ok(im) && (axes->set >> axis & 1))
      import_fail(im, DIAG_AXIS_RANGE, "axis %lld is listed twice", (long long)values[i]);
    if (!import_ok(im))
      return false;
    axes->list[i] = axis;
    axes->set |= (uint32_t)1 << axis;
  }
  return import_ok(im);
}

bool axes_read(Import *im, int64_t input_since, uint32_t input, uint32_t rank, Axes *axes) {
  const int64_t *values;
  uint32_t count;
  *axes = (Axes){0};
  if (!import_ok(im))
    return false;
  if (im->opset < input_since) {
    axes->given = attr_ints(im, "axes", &values, &count);
    return import_ok(im) && (!axes->given || axes_list(im, values, count, rank, axes));
  }
  ValueId v = in(im, input);
  axes->given = v != 0;
  if (!v || in_consts(im, input, &values, &count))
    return import_ok(im) && (!v || axes_list(im, values, count, rank, axes));
  axes->run = v;
  SymInt length = value_rank(im->g, v) ? value_dim(im->g, v, 0) : 1;
  if (!sym_is_const(length) || length < 0 || length > MAX_RANK) {
    import_fail(im, DIAG_INPUT_NOT_CONST, "the number of axes is not known when lowering");
    return false;
  }
  axes->count = (uint32_t)length;
  axes->known = axes->count == 0;
  return true;
}

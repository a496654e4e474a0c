/* Short forms of the builder; see express.h. */
#include "onnx/express.h"

ValueId ex_unary(Import *im, OpId op, ValueId x) {
  return import_ok(im) ? build(&im->b, op, A_VAL(x)) : 0;
}

ValueId ex_binary(Import *im, OpId op, ValueId x, ValueId y) {
  return import_ok(im) ? build(&im->b, op, A_VAL(x), A_VAL(y)) : 0;
}

ValueId ex_number(Import *im, ValueId like, double number) {
  return import_ok(im) ? build_scalar(&im->b, value_dtype(im->g, like), number) : 0;
}

ValueId ex_with(Import *im, OpId op, ValueId x, double number) {
  bool neutral = ((op == OP_ADD_TENSOR || op == OP_SUB_TENSOR) && number == 0) ||
                 ((op == OP_MUL_TENSOR || op == OP_DIV_TENSOR) && number == 1);
  return neutral ? x : ex_binary(im, op, x, ex_number(im, x, number));
}

ValueId ex_add(Import *im, ValueId x, ValueId y) { return ex_binary(im, OP_ADD_TENSOR, x, y); }
ValueId ex_sub(Import *im, ValueId x, ValueId y) { return ex_binary(im, OP_SUB_TENSOR, x, y); }
ValueId ex_mul(Import *im, ValueId x, ValueId y) { return ex_binary(im, OP_MUL_TENSOR, x, y); }
ValueId ex_div(Import *im, ValueId x, ValueId y) { return ex_binary(im, OP_DIV_TENSOR, x, y); }

ValueId ex_where(Import *im, ValueId condition, ValueId x, ValueId y) {
  return import_ok(im) ? build(&im->b, OP_WHERE_SELF, A_VAL(condition), A_VAL(x), A_VAL(y)) : 0;
}

ValueId ex_clamp(Import *im, ValueId x, double low, double high) {
  return import_ok(im) ? build(&im->b, OP_CLAMP, A_VAL(x), A_FLOAT(low), A_FLOAT(high)) : 0;
}

ValueId ex_cast(Import *im, ValueId x, DType to) {
  return import_ok(im) ? build_cast(&im->b, x, to) : 0;
}

ValueId ex_matmul(Import *im, ValueId x, ValueId y) {
  bool plain = ex_rank(im, x) == 2 && ex_rank(im, y) == 2;
  return ex_binary(im, plain ? OP_MM : OP_MATMUL, x, y);
}

ValueId ex_reduce(Import *im, OpId op, ValueId x, const int64_t *axes, uint32_t count, bool keep) {
  return import_ok(im) ? build(&im->b, op, A_VAL(x), A_INTS(axes, count), A_BOOL(keep)) : 0;
}

ValueId ex_reduce_one(Import *im, OpId op, ValueId x, int64_t axis, bool keep) {
  return ex_reduce(im, op, x, &axis, 1, keep);
}

ValueId ex_softmax(Import *im, ValueId x, int64_t axis) {
  return import_ok(im) ? build(&im->b, OP_SOFTMAX, A_VAL(x), A_INT(axis), A_BOOL(false)) : 0;
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
  SymInt d = value_dim(im->g, x, i);
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
  return import_ok(im) ? build_view(&im->b, x, dims, rank) : 0;
}

ValueId ex_expand(Import *im, ValueId x, const SymInt *dims, uint32_t rank) {
  return import_ok(im) ? build_expand(&im->b, x, dims, rank) : 0;
}

ValueId ex_permute(Import *im, ValueId x, const int64_t *perm) {
  return import_ok(im) ? build_permute(&im->b, x, perm) : 0;
}

ValueId ex_slice(Import *im, ValueId x, uint32_t dim, SymInt start, SymInt end) {
  return import_ok(im) ? build_slice(&im->b, x, dim, start, end, 1) : 0;
}

ValueId ex_select(Import *im, ValueId x, uint32_t dim, int64_t index) {
  SymInt dims[MAX_RANK];
  uint32_t rank = ex_rank(im, x);
  for (uint32_t i = 0, k = 0; i < rank; i++)
    if (i != dim)
      dims[k++] = value_dim(im->g, x, i);
  return rank ? ex_view(im, ex_slice(im, x, dim, index, index + 1), dims, rank - 1) : 0;
}

ValueId ex_cat(Import *im, const ValueId *items, uint32_t count, uint32_t dim) {
  if (count == 1)
    return items[0];
  return import_ok(im) ? build(&im->b, OP_CAT, A_VALS(items, count), A_INT(dim)) : 0;
}

ValueId ex_unsqueeze(Import *im, ValueId x, uint32_t dim) {
  return import_ok(im) ? build_unsqueeze(&im->b, x, dim) : 0;
}

ValueId ex_full(Import *im, DType dtype, const SymInt *dims, uint32_t rank, double value) {
  if (!import_ok(im))
    return 0;
  return build(&im->b, OP_FULL, A_INTS(dims, rank),
               dtype_is_float(dtype) ? A_FLOAT(value) : A_INT((int64_t)value), A_DTYPE(dtype));
}

ValueId ex_arange(Import *im, SymInt n) {
  return import_ok(im) ? build(&im->b, OP_ARANGE, A_INT(n), A_DTYPE(DTYPE_I64)) : 0;
}

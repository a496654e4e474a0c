/* Gemm and MatMul. */
#include "onnx/express.h"

static ValueId transposed(Import *im, ValueId m) { return EX_PERMUTE(im, m, 1, 0); }

/* alpha * a b + beta * c; the factors are integers for integers, where they can be. */
static ValueId product_and_sum(Import *im, ValueId a, ValueId b, ValueId c, double alpha,
                               double beta) {
  SymInt whole_alpha, whole_beta;
  bool whole = !dtype_is_float(ex_dtype(im, a)) && sym_from_float(alpha, &whole_alpha) &&
               sym_from_float(beta, &whole_beta);
  return build(&im->b, OP_ADDMM, A_VAL(c), A_VAL(a), A_VAL(b),
               whole ? A_INT(whole_beta) : A_FLOAT(beta),
               whole ? A_INT(whole_alpha) : A_FLOAT(alpha));
}

/* One number for each row of b, as aten::linear takes it. */
static bool is_column_bias(Import *im, ValueId c, ValueId b) {
  return ex_rank(im, c) == 1 && ex_dim(im, c, 0) == ex_dim(im, b, 0);
}

/* alpha * a' * b' + beta * c. A weight stored as [N, K] with a bias is aten::linear; else addmm. */
static ValueId product(Import *im, ValueId a, ValueId b, ValueId c) {
  double alpha = attr_float(im, "alpha", 1), beta = attr_float(im, "beta", 1), number;
  bool trans_a = attr_flag(im, "transA", false), trans_b = attr_flag(im, "transB", false);
  if (ex_rank(im, a) != 2 || ex_rank(im, b) != 2)
    return import_fail(im, DIAG_INPUT_RANK, "Gemm takes matrices, the inputs have rank %u and %u",
                       ex_rank(im, a), ex_rank(im, b));
  if (trans_a)
    a = transposed(im, a);
  if (c && (beta == 0 || (one_double(im, c, &number) && number == 0)))
    c = 0;
  if (trans_b && alpha == 1 && (!c || (beta == 1 && is_column_bias(im, c, b))))
    return ex_linear(im, a, b, c);
  if (trans_b)
    b = transposed(im, b);
  if (!c)
    return ex_times(im, ex_mm(im, a, b), alpha);
  return product_and_sum(im, a, b, c, alpha, beta);
}

/* Integers with factors that are no integers are multiplied as doubles, then truncated. */
ValueId ex_gemm(Import *im) {
  ValueId a = in_required(im, 0), b = in_required(im, 1), c = in(im, 2);
  double alpha = attr_float(im, "alpha", 1), beta = attr_float(im, "beta", 1);
  SymInt whole;
  DType own = ex_dtype(im, a);
  if (dtype_is_float(own) || (sym_from_float(alpha, &whole) && sym_from_float(beta, &whole)))
    return product(im, a, b, c);
  c = c ? ex_cast(im, c, DTYPE_F64) : 0;
  b = ex_cast(im, b, DTYPE_F64);
  return ex_cast(im, product(im, ex_cast(im, a, DTYPE_F64), b, c), own);
}

void translate_gemm(Import *im) { out(im, 0, ex_gemm(im)); }

void translate_matmul(Import *im) {
  ValueId a = in_required(im, 0), b = in_required(im, 1);
  if (types_agree(im, a, b))
    out(im, 0, ex_matmul(im, a, b));
}

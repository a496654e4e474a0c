/* Binary operators of opsets 1 to 6: no numpy broadcasting, but a second operand that fits a run of
 * the first one's dims from `axis` on when `broadcast` is set (ONNX Add-1, Add-6, …: without axis
 * the run is at the end). */
#include "onnx/express.h"

typedef struct LegacyRow {
  const char *onnx;
  OpId op;
} LegacyRow;

static const LegacyRow legacy_rows[] = {
    {"Add", OP_ADD_TENSOR},    {"And", OP_LOGICAL_AND}, {"Equal", OP_EQ_TENSOR},
    {"Greater", OP_GT_TENSOR}, {"Less", OP_LT_TENSOR},  {"Mul", OP_MUL_TENSOR},
    {"Or", OP_LOGICAL_OR},     {"Sub", OP_SUB_TENSOR},  {"Xor", OP_LOGICAL_XOR},
};

/* The second operand with ones behind it, so that numpy's rule puts it where the attributes say. */
static ValueId placed(Import *im, ValueId a, ValueId b) {
  if (!import_ok(im) || !attr_has(im, "axis") || !attr_flag(im, "broadcast", false))
    return b;
  uint32_t rank = ex_rank(im, a), own = ex_rank(im, b),
           axis = import_axis(im, attr_int(im, "axis", 0), rank ? rank : 1);
  if (axis + own > rank)
    return import_fail(im, DIAG_ATTR_VALUE, "axis %u with %u dimensions does not fit rank %u", axis,
                       own, rank);
  SymInt dims[MAX_RANK];
  for (uint32_t i = 0; i < rank - axis; i++)
    dims[i] = i < own ? ex_dim(im, b, i) : 1;
  return ex_view(im, b, dims, rank - axis);
}

static bool legacy_operands(Import *im, ValueId *a, ValueId *b) {
  *a = in_required(im, 0);
  *b = in_required(im, 1);
  (void)types_agree(im, *a, *b);
  *b = placed(im, *a, *b);
  return import_ok(im);
}

void translate_legacy_binary(Import *im) {
  ValueId a, b;
  if (!legacy_operands(im, &a, &b))
    return;
  StrView name = onnx_text(im->node->op_type);
  for (size_t i = 0; i < COUNT_OF(legacy_rows); i++)
    if (sv_eq_str(name, legacy_rows[i].onnx)) {
      out(im, 0, ex_binary(im, legacy_rows[i].op, a, b));
      return;
    }
  BUG("'%s' has no row", im->node->op_type);
}

void translate_legacy_div(Import *im) {
  ValueId a, b;
  if (!legacy_operands(im, &a, &b))
    return;
  bool whole = !dtype_is_float(ex_dtype(im, a));
  out(im, 0,
      whole ? build(&im->b, OP_DIV_TENSOR_MODE, A_VAL(a), A_VAL(b), A_STR("trunc"))
            : ex_div(im, a, b));
}

void translate_legacy_pow(Import *im) {
  ValueId a, b;
  if (legacy_operands(im, &a, &b))
    out(im, 0, ex_binary(im, OP_POW_TENSOR_TENSOR, a, b));
}

/* A slope of one dim is per channel (dim 1), not the last dim. */
void translate_legacy_prelu(Import *im) {
  ValueId x = in_required(im, 0), slope = in_required(im, 1);
  if (!import_ok(im))
    return;
  uint32_t rank = ex_rank(im, x);
  if (ex_rank(im, slope) == 1 && rank > 2 && ex_dim(im, slope, 0) != 1) {
    SymInt dims[MAX_RANK];
    for (uint32_t i = 0; i < rank - 1; i++)
      dims[i] = i == 0 ? ex_dim(im, slope, 0) : 1;
    slope = ex_view(im, slope, dims, rank - 1);
  }
  out(im, 0, ex_binary(im, OP_PRELU, x, slope));
}

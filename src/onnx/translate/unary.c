/* Operators with one input that are one ATen op of the same meaning. */
#include "onnx/translate.h"

typedef struct UnaryRow {
  const char *onnx;
  OpId op;
} UnaryRow;

static const UnaryRow unary_rows[] = {
    {"Abs", OP_ABS},
    {"Acos", OP_ACOS},
    {"Acosh", OP_ACOSH},
    {"Asin", OP_ASIN},
    {"Asinh", OP_ASINH},
    {"Atan", OP_ATAN},
    {"Atanh", OP_ATANH},
    {"Ceil", OP_CEIL},
    {"Cos", OP_COS},
    {"Cosh", OP_COSH},
    {"Erf", OP_ERF},
    {"Exp", OP_EXP},
    {"Floor", OP_FLOOR},
    {"IsNaN", OP_ISNAN},
    {"Log", OP_LOG},
    {"Neg", OP_NEG},
    {"Not", OP_LOGICAL_NOT},
    {"Reciprocal", OP_RECIPROCAL},
    {"Relu", OP_RELU},
    {"Round", OP_ROUND},
    {"Sigmoid", OP_SIGMOID},
    {"Sign", OP_SIGN},
    {"Sin", OP_SIN},
    {"Sinh", OP_SINH},
    {"Sqrt", OP_SQRT},
    {"Tan", OP_TAN},
    {"Tanh", OP_TANH},
    {"BitwiseNot", OP_BITWISE_NOT},
    {"HardSwish", OP_HARDSWISH},
    {"Softplus", OP_SOFTPLUS},
    {"Mish", OP_MISH},
};

void translate_unary(Import *im) {
  StrView name = onnx_text(im->node->op_type);
  for (size_t i = 0; i < COUNT_OF(unary_rows); i++)
    if (sv_eq_str(name, unary_rows[i].onnx)) {
      ValueId x = in_required(im, 0);
      out(im, 0, build(&im->b, unary_rows[i].op, A_VAL(x)));
      return;
    }
  BUG("'%s' has no row", im->node->op_type);
}

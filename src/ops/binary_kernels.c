/* Reference kernels of the elementwise ops of two or three tensors. Rounding, the sign of
 * remainders and what division by zero gives are those of kernels/portable/cpu/util/math_util.h of
 * ExecuTorch 1.4.1; where C leaves an integer operation undefined it wraps. */
#include "ops/elementwise.h"
#include "ops/ops.h"
#include "ops/scalar.h"

#include <math.h>

#define BINARY(name, X32, X64, XI)                                                                 \
  EW_DEFINE2(name##_f32, float, float, X32)                                                        \
  EW_DEFINE2(name##_f64, double, double, X64)                                                      \
  EW_DEFINE2(name##_i64, int64_t, int64_t, XI)
#define U(x) ((uint64_t)(x))

/* f[0] / i[0] is alpha. */
BINARY(plus, a + (float)job->f[0] * b, a + job->f[0] * b, U(a) + U(job->i[0]) * U(b))
BINARY(sub, a - (float)job->f[0] * b, a - job->f[0] * b, U(a) - U(job->i[0]) * U(b))
BINARY(rsub, b - (float)job->f[0] * a, b - job->f[0] * a, U(b) - U(job->i[0]) * U(a))
BINARY(times, a *b, a *b, U(a) * U(b))
EW_DEFINE2(div_f32, float, float, a / b)
EW_DEFINE2(div_f64, double, double, a / b)
/* As the runtime's optimized kernel divides by one element (kernels/optimized/cpu/op_div.cpp). */
EW_DEFINE2(times_reciprocal_f32, float, float, a *(1 / b))
EW_DEFINE2(times_reciprocal_f64, double, double, a *(1 / b))
EW_DEFINE2(atan2_f32, float, float, atan2f(a, b))
EW_DEFINE2(atan2_f64, double, double, atan2(a, b))
EW_DEFINE2(pow_f32, float, float, powf(a, b))
EW_DEFINE2(pow_f64, double, double, pow(a, b))
EW_DEFINE2(div_trunc_f32, float, float, truncf(a / b))
EW_DEFINE2(div_trunc_f64, double, double, trunc(a / b))
EW_DEFINE2(fmod_f32, float, float, fmodf(a, b))
EW_DEFINE2(fmod_f64, double, double, fmod(a, b))
#define MAX_OF(a, b) ((a) != (a) ? (a) : (b) != (b) ? (b) : (a) < (b) ? (b) : (a))
#define MIN_OF(a, b) ((a) != (a) ? (a) : (b) != (b) ? (b) : (b) < (a) ? (b) : (a))
BINARY(maximum, MAX_OF(a, b), MAX_OF(a, b), job->is_unsigned ? MAX_OF(U(a), U(b)) : U(MAX_OF(a, b)))
BINARY(minimum, MIN_OF(a, b), MIN_OF(a, b), job->is_unsigned ? MIN_OF(U(a), U(b)) : U(MIN_OF(a, b)))

#define FLOOR_DIVIDE(T, FMOD, a, b)                                                                \
  if ((b) == 0)                                                                                    \
    return signbit(a) ? -(T)INFINITY : (T)INFINITY;                                                \
  T mod = FMOD(a, b), div = ((a)-mod) / (b);                                                       \
  return mod != 0 && (signbit(b) != 0) != (signbit(mod) != 0) ? div - 1 : div;
static inline float floor_divide32(float a, float b) { FLOOR_DIVIDE(float, fmodf, a, b) }
static inline double floor_divide64(double a, double b){
    FLOOR_DIVIDE(double, fmod, a, b)} EW_DEFINE2(floor_divide_f32, float, float,
                                                 floor_divide32(a, b))
    EW_DEFINE2(floor_divide_f64, double, double, floor_divide64(a, b))

        static inline float remainder32(float a, float b) {
  float rem = fmodf(a, b);
  return (a < 0) != (b < 0) && rem != 0 ? rem + b : rem;
}
/* The kernel keeps the remainder of doubles in a float. */
static inline double remainder64(double a, double b) {
  float rem = (float)fmod(a, b);
  return (double)((a < 0) != (b < 0) && rem != 0 ? (float)((double)rem + b) : rem);
}
EW_DEFINE2(remainder_f32, float, float, remainder32(a, b))
EW_DEFINE2(remainder_f64, double, double, remainder64(a, b))

/* Integer quotients; a zero divisor is refused. */
#define INT_DIVISION(name, XU, XS)                                                                 \
  static bool name(const EwJob *job, const void *const *in, void *out, size_t count) {             \
    const int64_t *pa = in[0], *pb = in[1];                                                        \
    int64_t *po = out;                                                                             \
    for (size_t n = 0; n < count; n++) {                                                           \
      int64_t a = pa[n], b = pb[n];                                                                \
      if (b == 0)                                                                                  \
        return false;                                                                              \
      po[n] = job->is_unsigned ? (int64_t)(XU) : (XS);                                             \
    }                                                                                              \
    return true;                                                                                   \
  }
INT_DIVISION(div_trunc_i64, U(a) / U(b), int_quotient(a, b))
INT_DIVISION(floor_divide_i64, U(a) / U(b), int_floor_quotient(a, b))
INT_DIVISION(rest_i64, U(a) % U(b), int_rest(a, b))

static const EwRow ARITH_ROWS[] = {
    {OP_ADD_SCALAR, plus_f32, plus_f64, plus_i64},
    {OP_ADD_TENSOR, plus_f32, plus_f64, plus_i64},
    {OP_ATAN2, atan2_f32, atan2_f64, NULL},
    {OP_DIV_SCALAR, div_f32, div_f64, NULL},
    {OP_DIV_TENSOR, div_f32, div_f64, NULL},
    {OP_FLOOR_DIVIDE, floor_divide_f32, floor_divide_f64, floor_divide_i64},
    {OP_FMOD_SCALAR, fmod_f32, fmod_f64, rest_i64},
    {OP_FMOD_TENSOR, fmod_f32, fmod_f64, rest_i64},
    {OP_MAXIMUM, maximum_f32, maximum_f64, maximum_i64},
    {OP_MINIMUM, minimum_f32, minimum_f64, minimum_i64},
    {OP_MUL_SCALAR, times_f32, times_f64, times_i64},
    {OP_MUL_TENSOR, times_f32, times_f64, times_i64},
    {OP_POW_SCALAR, pow_f32, pow_f64, NULL},
    {OP_POW_TENSOR_SCALAR, pow_f32, pow_f64, NULL},
    {OP_POW_TENSOR_TENSOR, pow_f32, pow_f64, NULL},
    {OP_REMAINDER_SCALAR, remainder_f32, remainder_f64, rest_i64},
    {OP_REMAINDER_TENSOR, remainder_f32, remainder_f64, rest_i64},
    {OP_RSUB_SCALAR, rsub_f32, rsub_f64, rsub_i64},
    {OP_SUB_SCALAR, sub_f32, sub_f64, sub_i64},
    {OP_SUB_TENSOR, sub_f32, sub_f64, sub_i64},
};
/* With a rounding mode. */
static const EwRow TRUNC_ROW = {OP_DIV_TENSOR_MODE, div_trunc_f32, div_trunc_f64, div_trunc_i64};
static const EwRow FLOOR_ROW = {OP_DIV_TENSOR_MODE, floor_divide_f32, floor_divide_f64,
                                floor_divide_i64};
static const EwRow RECIPROCAL_ROW = {OP_DIV_TENSOR, times_reciprocal_f32, times_reciprocal_f64,
                                     NULL};
static const EwRow PLAIN_ROW = {OP_DIV_TENSOR_MODE, div_f32, div_f64, NULL};

/* Dtype that arguments 0 and 1 (tensors or Scalars) are brought to. */
static DType common_dtype(const Kernel *k) {
  const Tensor *a = kernel_tensor(k, 0), *b = kernel_tensor(k, 1);
  if (a && b)
    return dtype_promote(a->dtype, b->dtype);
  const KernelArg *scalar = &k->args[a ? 1 : 0];
  DType dtype = a ? a->dtype : b->dtype;
  bool whole = dtype == DTYPE_BOOL || dtype_is_int(dtype);
  if (scalar->kind == ARG_FLOAT && whole)
    return DTYPE_F32;
  return scalar->kind == ARG_INT && dtype == DTYPE_BOOL ? DTYPE_I64 : dtype;
}

static EwOperand operand(const Kernel *k, uint32_t i, EwType type) {
  const Tensor *t = kernel_tensor(k, i);
  return t ? ew_tensor(t, type) : ew_scalar(k, i, type);
}

/* Runs job->fn on arguments 0 and 1. */
static Status run2(Kernel *k, EwJob *job, EwType type) {
  if (!job->fn)
    return kernel_error(k, "no reference kernel for these element types");
  job->in[0] = operand(k, 0, type);
  job->in[1] = operand(k, 1, type);
  job->in_count = 2;
  job->out = k->results[0];
  return ew_run(job) ? STATUS_OK : kernel_error(k, "integer division by zero");
}

static bool divides_by_reciprocal(const Kernel *k) {
  const Tensor *a = kernel_tensor(k, 0), *b = kernel_tensor(k, 1);
  return k->as_runtime && k->op == OP_DIV_TENSOR && a->dtype == b->dtype &&
         dtype_is_float(a->dtype) && dtype_size(a->dtype) > 2 && tensor_numel(a) != 1 &&
         tensor_numel(b) == 1;
}

static EwFn *arith_fn(const Kernel *k, EwType type) {
  const EwRow *row = NULL;
  if (k->op == OP_DIV_TENSOR_MODE || k->op == OP_DIV_SCALAR_MODE) {
    StrView mode = k->args[2].kind == ARG_STR ? k->args[2].str : SV("");
    row = sv_eq_str(mode, "floor")   ? &FLOOR_ROW
          : sv_eq_str(mode, "trunc") ? &TRUNC_ROW
                                     : &PLAIN_ROW;
    return ew_find(row, 1, row->op, type);
  }
  if (divides_by_reciprocal(k))
    return ew_find(&RECIPROCAL_ROW, 1, k->op, type);
  return ew_find(ARITH_ROWS, COUNT_OF(ARITH_ROWS), k->op, type);
}

Status kern_arith(Kernel *k) {
  DType common = common_dtype(k);
  if (common == DTYPE_NONE)
    return kernel_error(k, "the operands have no common element type");
  EwType type = ew_type(common);
  EwJob job = {.fn = arith_fn(k, type), .f = {1}, .i = {1}, .is_unsigned = common == DTYPE_U64};
  if (!job.fn && type == EW_I64) { /* true division of integers and atan2 are in float, powers in
                                      double as the kernel has it */
    bool power =
        k->op == OP_POW_SCALAR || k->op == OP_POW_TENSOR_SCALAR || k->op == OP_POW_TENSOR_TENSOR;
    type = power ? EW_F64 : EW_F32;
    job.fn = arith_fn(k, type);
  }
  job.out_type = type;
  bool modal = k->op == OP_DIV_TENSOR_MODE || k->op == OP_DIV_SCALAR_MODE;
  if (k->arg_count > 2 && !modal) {
    EwOperand alpha = ew_scalar(k, 2, type);
    job.f[0] = alpha.f;
    job.i[0] = alpha.i;
  }
  return run2(k, &job, type);
}

/* --- comparison and logic --- */

#define COMPARE(name, OP)                                                                          \
  EW_DEFINE2(name##_f32, float, uint8_t, a OP b)                                                   \
  EW_DEFINE2(name##_f64, double, uint8_t, a OP b)                                                  \
  EW_DEFINE2(name##_i64, int64_t, uint8_t, job->is_unsigned ? U(a) OP U(b) : a OP b)
COMPARE(eq, ==)
COMPARE(ge, >=)
COMPARE(gt, >)
COMPARE(le, <=)
COMPARE(lt, <)
COMPARE(ne, !=)

static const EwRow COMPARE_ROWS[] = {
    {OP_EQ_SCALAR, eq_f32, eq_f64, eq_i64}, {OP_EQ_TENSOR, eq_f32, eq_f64, eq_i64},
    {OP_GE_SCALAR, ge_f32, ge_f64, ge_i64}, {OP_GE_TENSOR, ge_f32, ge_f64, ge_i64},
    {OP_GT_SCALAR, gt_f32, gt_f64, gt_i64}, {OP_GT_TENSOR, gt_f32, gt_f64, gt_i64},
    {OP_LE_SCALAR, le_f32, le_f64, le_i64}, {OP_LE_TENSOR, le_f32, le_f64, le_i64},
    {OP_LT_SCALAR, lt_f32, lt_f64, lt_i64}, {OP_LT_TENSOR, lt_f32, lt_f64, lt_i64},
    {OP_NE_SCALAR, ne_f32, ne_f64, ne_i64}, {OP_NE_TENSOR, ne_f32, ne_f64, ne_i64},
};

Status kern_compare(Kernel *k) {
  DType common = common_dtype(k);
  if (common == DTYPE_NONE)
    return kernel_error(k, "the operands have no common element type");
  EwType type = ew_type(common);
  EwJob job = {.fn = ew_find(COMPARE_ROWS, COUNT_OF(COMPARE_ROWS), k->op, type),
               .out_type = EW_BOOL,
               .is_unsigned = common == DTYPE_U64};
  return run2(k, &job, type);
}

EW_DEFINE2(and_bool, uint8_t, uint8_t, a &b)
EW_DEFINE2(or_bool, uint8_t, uint8_t, a | b)
EW_DEFINE2(xor_bool, uint8_t, uint8_t, a ^ b)

Status kern_logical(Kernel *k) {
  EwJob job = {.fn = k->op == OP_LOGICAL_AND  ? and_bool
                     : k->op == OP_LOGICAL_OR ? or_bool
                                              : xor_bool,
               .out_type = EW_BOOL};
  return run2(k, &job, EW_BOOL);
}

/* i[0]: bits of the type. */
static inline int64_t shift_left(int64_t a, int64_t b, int64_t bits) {
  return b < 0 || b >= bits ? 0 : (int64_t)(U(a) << b);
}
static inline int64_t shift_right(int64_t a, int64_t b, int64_t bits, bool is_unsigned) {
  int64_t by = b < 0 || b >= bits ? bits - (is_unsigned ? 0 : 1) : b;
  if (is_unsigned)
    return by >= 64 ? 0 : (int64_t)(U(a) >> by);
  return a < 0 ? ~(int64_t)(U(~a) >> by) : (int64_t)(U(a) >> by);
}
EW_DEFINE2(bit_and, int64_t, int64_t, a &b)
EW_DEFINE2(bit_or, int64_t, int64_t, a | b)
EW_DEFINE2(bit_xor, int64_t, int64_t, a ^ b)
EW_DEFINE2(bit_left, int64_t, int64_t, shift_left(a, b, job->i[0]))
EW_DEFINE2(bit_right, int64_t, int64_t, shift_right(a, b, job->i[0], job->is_unsigned))

static const EwRow BIT_ROWS[] = {
    {OP_BITWISE_AND_SCALAR, NULL, NULL, bit_and},
    {OP_BITWISE_AND_TENSOR, NULL, NULL, bit_and},
    {OP_BITWISE_LEFT_SHIFT_TENSOR, NULL, NULL, bit_left},
    {OP_BITWISE_LEFT_SHIFT_TENSOR_SCALAR, NULL, NULL, bit_left},
    {OP_BITWISE_OR_SCALAR, NULL, NULL, bit_or},
    {OP_BITWISE_OR_TENSOR, NULL, NULL, bit_or},
    {OP_BITWISE_RIGHT_SHIFT_TENSOR, NULL, NULL, bit_right},
    {OP_BITWISE_RIGHT_SHIFT_TENSOR_SCALAR, NULL, NULL, bit_right},
    {OP_BITWISE_XOR_SCALAR, NULL, NULL, bit_xor},
    {OP_BITWISE_XOR_TENSOR, NULL, NULL, bit_xor},
};

Status kern_bitwise(Kernel *k) {
  DType common = common_dtype(k);
  EwType type = ew_type(common);
  if (type != EW_I64 || common == DTYPE_NONE)
    return kernel_error(k, "the operands must be integers or bool");
  EwJob job = {.fn = ew_find(BIT_ROWS, COUNT_OF(BIT_ROWS), k->op, type),
               .out_type = type,
               .i = {(int64_t)dtype_size(common) * 8},
               .is_unsigned = dtype_is_unsigned(common) || common == DTYPE_BOOL};
  return run2(k, &job, type);
}

/* --- three operands --- */

#define SELECT(name, T)                                                                            \
  static bool name(const EwJob *job, const void *const *in, void *out, size_t count) {             \
    const uint8_t *c = in[0];                                                                      \
    const T *a = in[1], *b = in[2];                                                                \
    T *o = out;                                                                                    \
    (void)job;                                                                                     \
    for (size_t n = 0; n < count; n++)                                                             \
      o[n] = c[n] ? a[n] : b[n];                                                                   \
    return true;                                                                                   \
  }
SELECT(select_f32, float)
SELECT(select_f64, double)
SELECT(select_i64, int64_t)

/* yes where the tensor condition holds, else no. */
static Status select_run(Kernel *k, const Tensor *condition, EwOperand yes, EwOperand no,
                         EwType type) {
  EwJob job = {.fn = type == EW_F32   ? select_f32
                     : type == EW_F64 ? select_f64
                                      : select_i64,
               .in = {ew_tensor(condition, EW_BOOL), yes, no},
               .in_count = 3,
               .out_type = type,
               .out = k->results[0]};
  ew_run(&job);
  return STATUS_OK;
}

Status kern_where(Kernel *k) {
  EwType type = ew_type(k->results[0]->dtype);
  return select_run(k, kernel_tensor(k, 0), ew_tensor(kernel_tensor(k, 1), type),
                    ew_tensor(kernel_tensor(k, 2), type), type);
}

Status kern_masked_fill(Kernel *k) {
  EwType type = ew_type(k->results[0]->dtype);
  return select_run(k, kernel_tensor(k, 1), ew_scalar(k, 2, type),
                    ew_tensor(kernel_tensor(k, 0), type), type);
}

#define CLAMP_TENSOR(name, T)                                                                      \
  static bool name(const EwJob *job, const void *const *in, void *out, size_t count) {             \
    const T *x = in[0], *low = in[1], *high = in[2];                                               \
    T *o = out;                                                                                    \
    for (size_t n = 0; n < count; n++) {                                                           \
      T v = x[n];                                                                                  \
      v = job->flags[0] ? MAX_OF(v, low[n]) : v;                                                   \
      o[n] = job->flags[1] ? MIN_OF(v, high[n]) : v;                                               \
    }                                                                                              \
    return true;                                                                                   \
  }
CLAMP_TENSOR(clamp_tensor_f32, float)
CLAMP_TENSOR(clamp_tensor_f64, double)
CLAMP_TENSOR(clamp_tensor_i64, int64_t)
CLAMP_TENSOR(clamp_tensor_u64, uint64_t)

Status kern_clamp_tensor(Kernel *k) {
  EwType type = ew_type(k->results[0]->dtype);
  EwJob job = {.fn = type == EW_F32   ? clamp_tensor_f32
                     : type == EW_F64 ? clamp_tensor_f64
                                      : clamp_tensor_i64,
               .in_count = 3,
               .out_type = type,
               .out = k->results[0]};
  if (k->results[0]->dtype == DTYPE_U64)
    job.fn = clamp_tensor_u64;
  for (uint32_t i = 0; i < 3; i++) {
    const Tensor *t = kernel_tensor(k, i);
    if (i)
      job.flags[i - 1] = t != NULL;
    job.in[i] = t ? ew_tensor(t, type) : (EwOperand){.type = type};
  }
  ew_run(&job);
  return STATUS_OK;
}

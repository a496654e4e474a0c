/* Reference kernels of the elementwise ops of one tensor. Formulas and the treatment of NaN are
 * those of kernels/portable/cpu (op_relu, op_sign, op_elu, op_gelu, op_logit) of ExecuTorch 1.4.1.
 */
#include "ops/elementwise.h"
#include "ops/ops.h"

#include <math.h>

#define UNARY_FLOAT(name, X32, X64)                                                                \
  EW_DEFINE1(name##_f32, float, float, X32)                                                        \
  EW_DEFINE1(name##_f64, double, double, X64)

UNARY_FLOAT(acos, acosf(a), acos(a))
UNARY_FLOAT(acosh, acoshf(a), acosh(a))
UNARY_FLOAT(asin, asinf(a), asin(a))
UNARY_FLOAT(asinh, asinhf(a), asinh(a))
UNARY_FLOAT(atan, atanf(a), atan(a))
UNARY_FLOAT(atanh, atanhf(a), atanh(a))
UNARY_FLOAT(cos, cosf(a), cos(a))
UNARY_FLOAT(cosh, coshf(a), cosh(a))
UNARY_FLOAT(erf, erff(a), erf(a))
UNARY_FLOAT(exp, expf(a), exp(a))
UNARY_FLOAT(expm1, expm1f(a), expm1(a))
UNARY_FLOAT(log, logf(a), log(a))
UNARY_FLOAT(log10, log10f(a), log10(a))
UNARY_FLOAT(log1p, log1pf(a), log1p(a))
UNARY_FLOAT(log2, log2f(a), log2(a))
UNARY_FLOAT(reciprocal, 1.0f / a, 1.0 / a)
UNARY_FLOAT(rsqrt, 1.0f / sqrtf(a), 1.0 / sqrt(a))
UNARY_FLOAT(sigmoid, 1.0f / (1.0f + expf(-a)), 1.0 / (1.0 + exp(-a)))
UNARY_FLOAT(sin, sinf(a), sin(a))
UNARY_FLOAT(sinh, sinhf(a), sinh(a))
UNARY_FLOAT(sqrt, sqrtf(a), sqrt(a))
UNARY_FLOAT(tan, tanf(a), tan(a))
UNARY_FLOAT(tanh, tanhf(a), tanh(a))

static const EwRow FLOAT_ROWS[] = {
    {OP_ACOS, acos_f32, acos_f64, NULL},    {OP_ACOSH, acosh_f32, acosh_f64, NULL},
    {OP_ASIN, asin_f32, asin_f64, NULL},    {OP_ASINH, asinh_f32, asinh_f64, NULL},
    {OP_ATAN, atan_f32, atan_f64, NULL},    {OP_ATANH, atanh_f32, atanh_f64, NULL},
    {OP_COS, cos_f32, cos_f64, NULL},       {OP_COSH, cosh_f32, cosh_f64, NULL},
    {OP_ERF, erf_f32, erf_f64, NULL},       {OP_EXP, exp_f32, exp_f64, NULL},
    {OP_EXPM1, expm1_f32, expm1_f64, NULL}, {OP_LOG, log_f32, log_f64, NULL},
    {OP_LOG10, log10_f32, log10_f64, NULL}, {OP_LOG1P, log1p_f32, log1p_f64, NULL},
    {OP_LOG2, log2_f32, log2_f64, NULL},    {OP_RECIPROCAL, reciprocal_f32, reciprocal_f64, NULL},
    {OP_RSQRT, rsqrt_f32, rsqrt_f64, NULL}, {OP_SIGMOID, sigmoid_f32, sigmoid_f64, NULL},
    {OP_SIN, sin_f32, sin_f64, NULL},       {OP_SINH, sinh_f32, sinh_f64, NULL},
    {OP_SQRT, sqrt_f32, sqrt_f64, NULL},    {OP_TAN, tan_f32, tan_f64, NULL},
    {OP_TANH, tanh_f32, tanh_f64, NULL},
};

/* Runs fn over tensor argument 0 in the given type. */
static Status run1(Kernel *k, EwJob *job, EwType type) {
  if (!job->fn)
    return kernel_error(k, "no reference kernel for %s", dtype_name(kernel_tensor(k, 0)->dtype));
  job->in[0] = ew_tensor(kernel_tensor(k, 0), type);
  job->in_count = 1;
  job->out = k->results[0];
  ew_run(job);
  return STATUS_OK;
}

static Status run_same(Kernel *k, EwFn *f32, EwFn *f64, EwJob job) {
  EwType type = ew_type(kernel_tensor(k, 0)->dtype) == EW_F64 ? EW_F64 : EW_F32;
  job.fn = type == EW_F64 ? f64 : f32;
  job.out_type = type;
  return run1(k, &job, type);
}

Status kern_unary_float(Kernel *k) {
  return run_same(k, ew_find(FLOAT_ROWS, COUNT_OF(FLOAT_ROWS), k->op, EW_F32),
                  ew_find(FLOAT_ROWS, COUNT_OF(FLOAT_ROWS), k->op, EW_F64), (EwJob){0});
}

/* --- same type --- */

#define NEGATED(a) ((int64_t)(0 - (uint64_t)(a)))
EW_DEFINE1(abs_f32, float, float, fabsf(a))
EW_DEFINE1(abs_f64, double, double, fabs(a))
EW_DEFINE1(abs_i64, int64_t, int64_t, a < 0 ? NEGATED(a) : a)
EW_DEFINE1(not_i64, int64_t, int64_t, job->flags[0] ? !a : ~a)
EW_DEFINE1(ceil_f32, float, float, ceilf(a))
EW_DEFINE1(ceil_f64, double, double, ceil(a))
EW_DEFINE1(floor_f32, float, float, floorf(a))
EW_DEFINE1(floor_f64, double, double, floor(a))
EW_DEFINE1(round_f32, float, float, rintf(a))
EW_DEFINE1(round_f64, double, double, rint(a))
EW_DEFINE1(trunc_f32, float, float, truncf(a))
EW_DEFINE1(trunc_f64, double, double, trunc(a))
EW_DEFINE1(neg_f32, float, float, -a)
EW_DEFINE1(neg_f64, double, double, -a)
EW_DEFINE1(neg_i64, int64_t, int64_t, NEGATED(a))
EW_DEFINE1(relu_f32, float, float, a < 0 ? 0.0f : a)
EW_DEFINE1(relu_f64, double, double, a < 0 ? 0.0 : a)
EW_DEFINE1(relu_i64, int64_t, int64_t, a < 0 ? 0 : a)
EW_DEFINE1(sign_f32, float, float, a != a ? a : (float)((a > 0) - (a < 0)))
EW_DEFINE1(sign_f64, double, double, a != a ? a : (double)((a > 0) - (a < 0)))
EW_DEFINE1(sign_i64, int64_t, int64_t, (a > 0) - (a < 0))
EW_DEFINE1(same_i64, int64_t, int64_t, a)
/* u64 values are never negative, whatever their bits say as i64. */
EW_DEFINE1(sign_u64, int64_t, int64_t, a != 0)

static const EwRow SAME_ROWS[] = {
    {OP_ABS, abs_f32, abs_f64, abs_i64},        {OP_BITWISE_NOT, NULL, NULL, not_i64},
    {OP_CEIL, ceil_f32, ceil_f64, same_i64},    {OP_FLOOR, floor_f32, floor_f64, same_i64},
    {OP_NEG, neg_f32, neg_f64, neg_i64},        {OP_RELU, relu_f32, relu_f64, relu_i64},
    {OP_ROUND, round_f32, round_f64, same_i64}, {OP_SIGN, sign_f32, sign_f64, sign_i64},
    {OP_TRUNC, trunc_f32, trunc_f64, same_i64},
};

Status kern_unary_same(Kernel *k) {
  DType dtype = kernel_tensor(k, 0)->dtype;
  EwType type = ew_type(dtype);
  EwJob job = {.fn = ew_find(SAME_ROWS, COUNT_OF(SAME_ROWS), k->op, type),
               .out_type = type,
               .flags = {dtype == DTYPE_BOOL}};
  if (dtype == DTYPE_U64 && k->op == OP_SIGN)
    job.fn = sign_u64;
  else if (dtype == DTYPE_U64 && (k->op == OP_ABS || k->op == OP_RELU))
    job.fn = same_i64;
  return run1(k, &job, type);
}

EW_DEFINE1(isinf_f32, float, uint8_t, isinf(a) != 0)
EW_DEFINE1(isinf_f64, double, uint8_t, isinf(a) != 0)
EW_DEFINE1(isnan_f32, float, uint8_t, a != a)
EW_DEFINE1(isnan_f64, double, uint8_t, a != a)
EW_DEFINE1(never_i64, int64_t, uint8_t, a != a)
EW_DEFINE1(zero_f32, float, uint8_t, a == 0)
EW_DEFINE1(zero_f64, double, uint8_t, a == 0)
EW_DEFINE1(zero_i64, int64_t, uint8_t, a == 0)

static const EwRow BOOL_ROWS[] = {
    {OP_ISINF, isinf_f32, isinf_f64, never_i64},
    {OP_ISNAN, isnan_f32, isnan_f64, never_i64},
    {OP_LOGICAL_NOT, zero_f32, zero_f64, zero_i64},
};

Status kern_unary_bool(Kernel *k) {
  EwType type = ew_type(kernel_tensor(k, 0)->dtype);
  EwJob job = {.fn = ew_find(BOOL_ROWS, COUNT_OF(BOOL_ROWS), k->op, type), .out_type = EW_BOOL};
  return run1(k, &job, type);
}

/* --- with parameters --- */

EW_DEFINE1(elu_f32, float, float,
           a <= 0 ? expm1f(a * (float)job->f[2]) * (float)job->f[0] : a * (float)job->f[1])
EW_DEFINE1(elu_f64, double, double, a <= 0 ? expm1(a * job->f[2]) * job->f[0] : a * job->f[1])

Status kern_elu(Kernel *k) {
  double alpha = kernel_scalar(k, 1), scale = kernel_scalar(k, 2),
         input_scale = kernel_scalar(k, 3);
  return run_same(k, elu_f32, elu_f64, (EwJob){.f = {alpha * scale, scale, input_scale}});
}

#define SQRT_HALF 0.70710678118654752440
#define SQRT_2_PI 0.79788456080286535588 /* sqrt(2 / pi) */
EW_DEFINE1(gelu_f32, float, float, 0.5f * a * (1.0f + erff(a * (float)SQRT_HALF)))
EW_DEFINE1(gelu_f64, double, double, 0.5 * a * (1.0 + erf(a * SQRT_HALF)))
EW_DEFINE1(gelu_tanh_f32, float, float,
           0.5f * a * (1.0f + tanhf((float)SQRT_2_PI * (a + 0.044715f * a * a * a))))
EW_DEFINE1(gelu_tanh_f64, double, double,
           0.5 * a * (1.0 + tanh(SQRT_2_PI * (a + 0.044715 * a * a * a))))

Status kern_gelu(Kernel *k) {
  bool by_tanh = k->args[1].kind == ARG_STR && sv_eq_str(k->args[1].str, "tanh");
  return run_same(k, by_tanh ? gelu_tanh_f32 : gelu_f32, by_tanh ? gelu_tanh_f64 : gelu_f64,
                  (EwJob){0});
}

EW_DEFINE1(leaky_f32, float, float, a > 0 ? a : a * (float)job->f[0])
EW_DEFINE1(leaky_f64, double, double, a > 0 ? a : a * job->f[0])

Status kern_leaky_relu(Kernel *k) {
  return run_same(k, leaky_f32, leaky_f64, (EwJob){.f = {kernel_scalar(k, 1)}});
}

#define LIMITED(a, lo, hi) ((a) < (lo) ? (lo) : (a) > (hi) ? (hi) : (a))
EW_DEFINE1(logit_f32, float, float, logf(a / (1.0f - a)))
EW_DEFINE1(logit_f64, double, double, log(a / (1.0 - a)))
static inline float logit_limit_f32(float a, float eps) { return LIMITED(a, eps, 1.0f - eps); }
static inline double logit_limit_f64(double a, double eps) { return LIMITED(a, eps, 1.0 - eps); }
EW_DEFINE1(logit_eps_f32, float, float,
           logf(logit_limit_f32(a, (float)job->f[0]) /
                (1.0f - logit_limit_f32(a, (float)job->f[0]))))
EW_DEFINE1(logit_eps_f64, double, double,
           log(logit_limit_f64(a, job->f[0]) / (1.0 - logit_limit_f64(a, job->f[0]))))

Status kern_logit(Kernel *k) {
  if (k->args[1].kind == ARG_NONE)
    return run_same(k, logit_f32, logit_f64, (EwJob){0});
  return run_same(k, logit_eps_f32, logit_eps_f64, (EwJob){.f = {kernel_scalar(k, 1)}});
}

/* Bounds: f[0], f[1] or i[0], i[1]; flags say which are given, LEAST and MOST stand for others.
 * max(x, low) first, then min(x, high); NaN x stays, a NaN bound wins. The second loop is all that
 * is needed without NaN bounds, and the compiler vectorizes it. */
#define CLAMPED(T, LO, HI, LEAST, MOST)                                                            \
  const T *p = in[0];                                                                              \
  T *o = out, low = job->flags[0] ? (LO) : (LEAST), high = job->flags[1] ? (HI) : (MOST);          \
  if (low != low || high != high) {                                                                \
    for (size_t n = 0; n < count; n++)                                                             \
      o[n] = p[n] != p[n] ? p[n] : low != low ? low : high;                                        \
    return true;                                                                                   \
  }                                                                                                \
  for (size_t n = 0; n < count; n++) {                                                             \
    T v = p[n];                                                                                    \
    v = v < low ? low : v;                                                                         \
    o[n] = v > high ? high : v;                                                                    \
  }                                                                                                \
  return true;

static bool clamp_f32(const EwJob *job, const void *const *in, void *out, size_t count) {
  CLAMPED(float, (float)job->f[0], (float)job->f[1], -INFINITY, INFINITY)
}
static bool clamp_f64(const EwJob *job, const void *const *in, void *out, size_t count) {
  CLAMPED(double, job->f[0], job->f[1], -(double)INFINITY, (double)INFINITY)
}
static bool clamp_i64(const EwJob *job, const void *const *in, void *out, size_t count) {
  CLAMPED(int64_t, job->i[0], job->i[1], INT64_MIN, INT64_MAX)
}
static bool clamp_u64(const EwJob *job, const void *const *in, void *out, size_t count) {
  CLAMPED(uint64_t, job->i[0] < 0 ? 0 : (uint64_t)job->i[0],
          job->i[1] < 0 ? 0 : (uint64_t)job->i[1], 0, UINT64_MAX)
}

static Status clamp_between(Kernel *k, EwType type) {
  EwJob job = {.out_type = type};
  for (uint32_t b = 0; b < 2; b++) {
    job.flags[b] = k->args[1 + b].kind != ARG_NONE;
    if (!job.flags[b])
      continue;
    EwOperand bound = ew_scalar(k, 1 + b, type);
    job.f[b] = bound.f;
    job.i[b] = bound.i;
  }
  job.fn = type == EW_F32 ? clamp_f32 : type == EW_F64 ? clamp_f64 : clamp_i64;
  if (type == EW_I64 && kernel_tensor(k, 0)->dtype == DTYPE_U64)
    job.fn = clamp_u64;
  return run1(k, &job, type);
}

Status kern_clamp(Kernel *k) { return clamp_between(k, ew_type(k->results[0]->dtype)); }
Status kern_hardtanh(Kernel *k) { return clamp_between(k, ew_type(kernel_tensor(k, 0)->dtype)); }

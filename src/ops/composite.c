/* Ops without a kernel in the runtime, element by element: activations and prelu. They stand for
 * what importers and fusion passes recognise, and are decomposed before the edge level. Formulas
 * are torch's. */
#include <math.h>

#include "ops/elementwise.h"
#include "ops/ops.h"
#include "ops/shape_util.h"

/* --- shape rules --- */

/* The weight broadcasts against self from the right, as in ONNX (torch wants one entry a channel).
 */
Status shape_prelu(Graph *g, NodeId n) {
  ValueId self = node_value(g, n, 0), weight = node_value(g, n, 1);
  Dims dims = value_dims(g, self), slope = value_dims(g, weight);
  if (value_dtype(g, self) != value_dtype(g, weight))
    return bad_dtype(g, n, "self is %s, the weight %s", dtype_name(value_dtype(g, self)),
                     dtype_name(value_dtype(g, weight)));
  TRY(shape_broadcasts_to(g, n, &slope, &dims, "weight"));
  return shape_result(g, n, 0, value_dtype(g, self), &dims);
}

/* An activation of floats. */
Status shape_activation(Graph *g, NodeId n) {
  ValueId self = node_value(g, n, 0);
  if (!dtype_is_float(value_dtype(g, self)))
    return bad_dtype(g, n, "self is %s, must be a float type", dtype_name(value_dtype(g, self)));
  Dims dims = value_dims(g, self);
  return shape_result_dims(g, n, &dims);
}

/* --- kernels --- */

#define COMPOSITE(name, X32, X64)                                                                  \
  EW_DEFINE1(name##_f32, float, float, X32)                                                        \
  EW_DEFINE1(name##_f64, double, double, X64)

static float softplus32(float x, float beta, float threshold) {
  return x * beta > threshold ? x : log1pf(expf(x * beta)) / beta;
}
static double softplus64(double x, double beta, double threshold) {
  return x * beta > threshold ? x : log1p(exp(x * beta)) / beta;
}
/* NaN passes. */
static float clamp6_32(float x) { return x < 0 ? 0 : x > 6 ? 6 : x; }
static double clamp6_64(double x) { return x < 0 ? 0 : x > 6 ? 6 : x; }

COMPOSITE(silu, a / (1.0f + expf(-a)), a / (1.0 + exp(-a)))
COMPOSITE(hardswish, a *clamp6_32(a + 3.0f) / 6.0f, a *clamp6_64(a + 3.0) / 6.0)
COMPOSITE(hardsigmoid, clamp6_32(a + 3.0f) / 6.0f, clamp6_64(a + 3.0) / 6.0)
COMPOSITE(softplus, softplus32(a, (float)job->f[0], (float)job->f[1]),
          softplus64(a, job->f[0], job->f[1]))
COMPOSITE(mish, a *tanhf(softplus32(a, 1.0f, 20.0f)), a *tanh(softplus64(a, 1.0, 20.0)))
COMPOSITE(square, a *a, a *a)
EW_DEFINE1(square_i64, int64_t, int64_t, (uint64_t)a *(uint64_t)a)
EW_DEFINE2(prelu_f32, float, float, a >= 0 ? a : b * a)
EW_DEFINE2(prelu_f64, double, double, a >= 0 ? a : b * a)
EW_DEFINE2(prelu_i64, int64_t, int64_t, a >= 0 ? (uint64_t)a : (uint64_t)b * (uint64_t)a)

static const EwRow ROWS[] = {
    {OP_SILU, silu_f32, silu_f64, NULL},
    {OP_HARDSWISH, hardswish_f32, hardswish_f64, NULL},
    {OP_HARDSIGMOID, hardsigmoid_f32, hardsigmoid_f64, NULL},
    {OP_SOFTPLUS, softplus_f32, softplus_f64, NULL},
    {OP_MISH, mish_f32, mish_f64, NULL},
    {OP_SQUARE, square_f32, square_f64, square_i64},
    {OP_PRELU, prelu_f32, prelu_f64, prelu_i64},
};

/* Runs the op's function over the first count arguments, which must broadcast to the result. */
static Status run(Kernel *k, EwJob *job, uint32_t count) {
  const Tensor *out = k->results[0];
  EwType type = ew_type(out->dtype);
  job->fn = ew_find(ROWS, COUNT_OF(ROWS), k->op, type);
  job->in_count = count;
  job->out_type = type;
  job->out = k->results[0];
  if (!job->fn || !dtype_in(out->dtype, DTS_REAL))
    return kernel_error(k, "no reference kernel for %s", dtype_name(out->dtype));
  for (uint32_t i = 0; i < count; i++) {
    const Tensor *t = kernel_tensor(k, i);
    bool fits = t && t->dtype == out->dtype && t->rank <= out->rank && (i || t->rank == out->rank);
    for (uint32_t d = 0; fits && d < t->rank; d++) {
      int64_t to = out->dims[out->rank - t->rank + d];
      fits = t->dims[d] == to || (i && t->dims[d] == 1);
    }
    if (!fits)
      return kernel_error(k, "operand %u does not fit the result", i);
    job->in[i] = ew_tensor(t, type);
  }
  ew_run(job);
  return STATUS_OK;
}

Status kern_silu(Kernel *k) { return run(k, &(EwJob){0}, 1); }

Status kern_hardswish(Kernel *k) { return run(k, &(EwJob){0}, 1); }

Status kern_hardsigmoid(Kernel *k) { return run(k, &(EwJob){0}, 1); }

Status kern_mish(Kernel *k) { return run(k, &(EwJob){0}, 1); }

Status kern_square(Kernel *k) { return run(k, &(EwJob){0}, 1); }

Status kern_prelu(Kernel *k) { return run(k, &(EwJob){0}, 2); }

Status kern_softplus(Kernel *k) {
  return run(k, &(EwJob){.f = {kernel_scalar(k, 1), kernel_scalar(k, 2)}}, 1);
}

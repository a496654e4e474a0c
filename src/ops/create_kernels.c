/* Reference kernels of the ops that make tensors from numbers. Ranges are start + i * step in
 * double, cast to the element type, as in kernels/portable/cpu/util/arange_util.cpp of
 * ExecuTorch 1.4.1. Random numbers come from a fixed seed: a run can be repeated. */
#include "ops/kernel.h"
#include "ops/ops.h"
#include "support/random.h"

#include <math.h>

/* Every element of t is the given Scalar. */
static void fill(Tensor *t, const KernelArg *value) {
  int64_t count = tensor_numel(t);
  if (!count)
    return;
  if (value->kind == ARG_FLOAT)
    tensor_store(t, 0, value->f);
  else
    tensor_store_int(t, 0, value->i);
  size_t filled = dtype_size(t->dtype), bytes = (size_t)tensor_bytes(t);
  char *data = t->data;
  while (filled < bytes) { /* doubling copies */
    size_t part = filled < bytes - filled ? filled : bytes - filled;
    memcpy(data + filled, data, part);
    filled += part;
  }
}

Status kern_full(Kernel *k) {
  KernelArg number = {.kind = ARG_INT, .i = k->op == OP_ONES};
  fill(k->results[0], k->op == OP_FULL ? &k->args[1] : &number);
  return STATUS_OK;
}

Status kern_full_like(Kernel *k) {
  fill(k->results[0], &k->args[1]);
  return STATUS_OK;
}

Status kern_scalar_tensor(Kernel *k) {
  fill(k->results[0], &k->args[0]);
  return STATUS_OK;
}

/* Length of an integer range; -1 when it does not end. */
static int64_t int_length(int64_t start, int64_t end, int64_t step) {
  if (step == 0)
    return -1;
  bool backwards = step > 0 ? end < start : end > start;
  uint64_t span = step > 0 ? (uint64_t)end - (uint64_t)start : (uint64_t)start - (uint64_t)end;
  uint64_t by = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
  uint64_t length = span / by + (span % by != 0);
  return backwards || length > INT64_MAX ? -1 : (int64_t)length;
}

Status kern_arange(Kernel *k) {
  const KernelArg one = {.kind = ARG_INT, .i = 1}, zero = {.kind = ARG_INT};
  bool stepped = k->op == OP_ARANGE_START_STEP;
  const KernelArg *args[3] = {stepped ? &k->args[0] : &zero, &k->args[stepped ? 1 : 0],
                              stepped ? &k->args[2] : &one};
  double v[3];
  bool whole = true;
  for (int i = 0; i < 3; i++) {
    whole = whole && args[i]->kind != ARG_FLOAT;
    v[i] = args[i]->kind == ARG_FLOAT ? args[i]->f : (double)args[i]->i;
  }
  int64_t length = -1;
  double count = ceil((v[1] - v[0]) / v[2]);
  if (whole)
    length = int_length(args[0]->i, args[1]->i, args[2]->i);
  else if (count >= 0 && count < 0x1p53)
    length = int_clamped(count, 0, INT64_MAX);
  if (length < 0)
    return kernel_error(k, "a range from %g to %g in steps of %g does not end", v[0], v[1], v[2]);
  Tensor *out = k->results[0];
  TRY(kernel_resize(k, 0, 1, &length));
  if (whole && !dtype_is_float(out->dtype)) { /* exact beyond 2^53 */
    uint64_t next = (uint64_t)args[0]->i;
    for (int64_t i = 0; i < length; i++, next += (uint64_t)args[2]->i)
      tensor_store_int(out, i, (int64_t)next);
    return STATUS_OK;
  }
  for (int64_t i = 0; i < length; i++)
    tensor_store(out, i, v[0] + (double)i * v[2]);
  return STATUS_OK;
}

Status kern_random(Kernel *k) {
  uint64_t state = 0;
  Tensor *out = k->results[0];
  int64_t count = tensor_numel(out);
  for (int64_t i = 0; i < count; i++)
    tensor_store(out, i, k->op == OP_RANDN ? random_normal(&state) : random_unit(&state));
  return STATUS_OK;
}

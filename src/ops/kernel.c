/* Helpers of the reference kernels: element access by dtype, strides, errors. Conversions are C's
 * where C defines them and saturate where it does not (float to integer), so that no model can make
 * them undefined. */
#include "ops/kernel.h"

#include <math.h>

#include "support/half.h"
#include "support/number.h"

int64_t tensor_numel(const Tensor *t) { return dims_count(t->dims, 0, t->rank); }

uint64_t tensor_bytes(const Tensor *t) { return (uint64_t)tensor_numel(t) * dtype_size(t->dtype); }

double kernel_scalar(const Kernel *k, uint32_t i) {
  const KernelArg *arg = &k->args[i];
  return arg->kind == ARG_FLOAT ? arg->f : (double)arg->i;
}

Status kernel_error(Kernel *k, const char *format, ...) {
  va_list args;
  va_start(args, format);
  Status status = diag_vreport(k->sink, DIAG_RUN_KERNEL, k->place, "", format, args);
  va_end(args);
  return status;
}

Status kernel_run(Kernel *k) {
  const OpSchema *schema = op_schema(k->op);
  for (uint32_t i = 0; i < schema->arg_count; i++) {
    const SchemaArg *s = &schema->args[i];
    if (s->type == ST_TENSOR && !s->list && !(s->optional && k->args[i].kind == ARG_NONE) &&
        !kernel_tensor(k, i))
      return kernel_error(k, "argument %u is not a tensor", i);
  }
  return op_row(k->op)->kernel(k);
}

Status kernel_resize(Kernel *k, uint32_t i, uint32_t rank, const int64_t *dims) {
  Tensor *t = k->results[i];
  uint64_t bytes = dtype_size(t->dtype);
  for (uint32_t d = 0; d < rank; d++)
    if (rank > MAX_RANK || dims[d] < 0 || !mul_u64(bytes, (uint64_t)dims[d], &bytes))
      return kernel_error(k, "the result has an impossible shape");
  if (bytes > t->capacity)
    return kernel_error(k, "the result needs %llu bytes, but its bound allows only %llu",
                        (unsigned long long)bytes, (unsigned long long)t->capacity);
  t->rank = rank;
  if (rank)
    memcpy(t->dims, dims, rank * sizeof *dims);
  return STATUS_OK;
}

/* --- conversion --- */

double tensor_load(const Tensor *t, int64_t i) {
  switch ((int)t->dtype) {
  case DTYPE_F32:
    return (double)((const float *)t->data)[i];
  case DTYPE_F64:
    return ((const double *)t->data)[i];
  case DTYPE_F16:
    return (double)half_to_float(((const uint16_t *)t->data)[i]);
  case DTYPE_BF16:
    return (double)bfloat_to_float(((const uint16_t *)t->data)[i]);
  case DTYPE_U64:
    return (double)((const uint64_t *)t->data)[i];
  default:
    return (double)tensor_load_int(t, i);
  }
}

int64_t tensor_load_int(const Tensor *t, int64_t i) {
  switch ((int)t->dtype) {
  case DTYPE_BOOL:
    return ((const uint8_t *)t->data)[i] != 0;
  case DTYPE_U8:
    return ((const uint8_t *)t->data)[i];
  case DTYPE_I8:
    return ((const int8_t *)t->data)[i];
  case DTYPE_I16:
    return ((const int16_t *)t->data)[i];
  case DTYPE_U16:
    return ((const uint16_t *)t->data)[i];
  case DTYPE_I32:
    return ((const int32_t *)t->data)[i];
  case DTYPE_U32:
    return ((const uint32_t *)t->data)[i];
  case DTYPE_I64:
  case DTYPE_U64:
    return ((const int64_t *)t->data)[i];
  case DTYPE_F16:
  case DTYPE_BF16:
  case DTYPE_F32:
  case DTYPE_F64:
    return int_clamped(tensor_load(t, i), INT64_MIN, INT64_MAX);
  default:
    return 0;
  }
}

void tensor_store_int(Tensor *t, int64_t i, int64_t value) {
  switch ((int)t->dtype) {
  case DTYPE_BOOL:
    ((uint8_t *)t->data)[i] = value != 0;
    break;
  case DTYPE_U8:
  case DTYPE_I8:
    ((uint8_t *)t->data)[i] = (uint8_t)value;
    break;
  case DTYPE_I16:
  case DTYPE_U16:
    ((uint16_t *)t->data)[i] = (uint16_t)value;
    break;
  case DTYPE_I32:
  case DTYPE_U32:
    ((uint32_t *)t->data)[i] = (uint32_t)value;
    break;
  case DTYPE_I64:
  case DTYPE_U64:
    ((int64_t *)t->data)[i] = value;
    break;
  case DTYPE_F32:
    ((float *)t->data)[i] = (float)value;
    break;
  default:
    tensor_store(t, i, (double)value);
  }
}

void tensor_store(Tensor *t, int64_t i, double value) {
  switch ((int)t->dtype) {
  case DTYPE_F32:
    ((float *)t->data)[i] = (float)value;
    break;
  case DTYPE_F64:
    ((double *)t->data)[i] = value;
    break;
  case DTYPE_F16:
    ((uint16_t *)t->data)[i] = half_from_double(value);
    break;
  case DTYPE_BF16:
    ((uint16_t *)t->data)[i] = bfloat_from_float((float)value);
    break;
  case DTYPE_BOOL:
    ((uint8_t *)t->data)[i] = value != 0;
    break;
  case DTYPE_U8:
    ((uint8_t *)t->data)[i] = (uint8_t)int_clamped(value, 0, UINT8_MAX);
    break;
  case DTYPE_I8:
    ((int8_t *)t->data)[i] = (int8_t)int_clamped(value, INT8_MIN, INT8_MAX);
    break;
  case DTYPE_U16:
    ((uint16_t *)t->data)[i] = (uint16_t)int_clamped(value, 0, UINT16_MAX);
    break;
  case DTYPE_I16:
    ((int16_t *)t->data)[i] = (int16_t)int_clamped(value, INT16_MIN, INT16_MAX);
    break;
  case DTYPE_U32:
    ((uint32_t *)t->data)[i] = (uint32_t)int_clamped(value, 0, UINT32_MAX);
    break;
  case DTYPE_I32:
    ((int32_t *)t->data)[i] = (int32_t)int_clamped(value, INT32_MIN, INT32_MAX);
    break;
  case DTYPE_I64:
    ((int64_t *)t->data)[i] = int_clamped(value, INT64_MIN, INT64_MAX);
    break;
  case DTYPE_U64:
    ((uint64_t *)t->data)[i] = uint_clamped(value);
    break;
  default:
    break;
  }
}

/* --- strides --- */

void strides_of(const Tensor *t, int64_t *strides) {
  uint64_t step = 1;
  for (uint32_t i = t->rank; i-- > 0;) {
    strides[i] = (int64_t)step;
    step *= (uint64_t)t->dims[i];
  }
}

void strides_broadcast(const Tensor *t, uint32_t to_rank, const int64_t *to_dims,
                       int64_t *strides) {
  int64_t own[MAX_RANK];
  strides_of(t, own);
  for (uint32_t i = 0; i < to_rank; i++)
    strides[i] = 0;
  for (uint32_t i = 0; i < t->rank && i < to_rank; i++) {
    uint32_t from = t->rank - 1 - i, to = to_rank - 1 - i;
    strides[to] = t->dims[from] == to_dims[to] && t->dims[from] != 1 ? own[from] : 0;
  }
}

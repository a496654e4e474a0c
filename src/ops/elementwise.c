/* The block loop of the elementwise kernels (elementwise.h). Dims that all operands step through
 * alike are merged first, so that blocks are filled in long runs. */
#include "ops/elementwise.h"

#include <stdatomic.h>

#include "support/half.h"
#include "support/parallel.h"

EwType ew_type(DType dtype) {
  if (dtype == DTYPE_F64)
    return EW_F64;
  return dtype_is_float(dtype) ? EW_F32 : EW_I64;
}

EwOperand ew_tensor(const Tensor *t, EwType type) { return (EwOperand){.tensor = t, .type = type}; }

EwOperand ew_scalar(const Kernel *k, uint32_t i, EwType type) {
  const KernelArg *arg = &k->args[i];
  EwOperand o = {.type = type, .f = kernel_scalar(k, i), .i = arg->kind == ARG_FLOAT ? 0 : arg->i};
  if (arg->kind == ARG_FLOAT) {
    Tensor number = {.dtype = DTYPE_F64, .data = &o.f};
    o.i = tensor_load_int(&number, 0);
  }
  if (type == EW_BOOL)
    o.i = o.f != 0;
  return o;
}

EwFn *ew_find(const EwRow *rows, size_t count, OpId op, EwType type) {
  for (size_t i = 0; i < count; i++)
    if (rows[i].op == op)
      return type == EW_F32 ? rows[i].f32 : type == EW_F64 ? rows[i].f64 : rows[i].i64;
  return NULL;
}

/* --- conversion of runs --- */

#define RUN(D, S, X)                                                                               \
  case DTYPE_##D: {                                                                                \
    const S *p = (const S *)t->data + at;                                                          \
    for (size_t i = 0; i < count; i++) {                                                           \
      const S v = p[(int64_t)i * stride];                                                          \
      dst[i] = X;                                                                                  \
    }                                                                                              \
    return;                                                                                        \
  }
#define RUN_INTS(X)                                                                                \
  RUN(BOOL, uint8_t, X)                                                                            \
  RUN(U8, uint8_t, X)                                                                              \
  RUN(I8, int8_t, X)                                                                               \
  RUN(I16, int16_t, X)                                                                             \
  RUN(U16, uint16_t, X)                                                                            \
  RUN(I32, int32_t, X) RUN(U32, uint32_t, X) RUN(I64, int64_t, X) RUN(U64, uint64_t, X)

/* count elements of t from element at on, stride apart, as floats; and so on for the other types.
 */
static void load_f32(const Tensor *t, int64_t at, int64_t stride, float *dst, size_t count) {
  switch ((int)t->dtype) {
    RUN_INTS((float)v)
    RUN(F16, uint16_t, half_to_float(v))
    RUN(BF16, uint16_t, bfloat_to_float(v))
    RUN(F32, float, v)
    RUN(F64, double, (float)v)
  default:
    memset(dst, 0, count * sizeof *dst);
  }
}

static void load_f64(const Tensor *t, int64_t at, int64_t stride, double *dst, size_t count) {
  switch ((int)t->dtype) {
    RUN_INTS((double)v)
    RUN(F16, uint16_t, (double)half_to_float(v))
    RUN(BF16, uint16_t, (double)bfloat_to_float(v))
    RUN(F32, float, (double)v)
    RUN(F64, double, v)
  default:
    memset(dst, 0, count * sizeof *dst);
  }
}

static void load_i64(const Tensor *t, int64_t at, int64_t stride, int64_t *dst, size_t count) {
  switch ((int)t->dtype) {
    RUN(U8, uint8_t, v)
    RUN(I8, int8_t, v)
    RUN(I16, int16_t, v)
    RUN(U16, uint16_t, v)
    RUN(I32, int32_t, v)
    RUN(U32, uint32_t, v)
    RUN(I64, int64_t, v)
    RUN(U64, uint64_t, (int64_t)v)
    RUN(BOOL, uint8_t, v != 0)
  default:
    for (size_t i = 0; i < count; i++)
      dst[i] = tensor_load_int(t, at + (int64_t)i * stride);
  }
}

static void load_bool(const Tensor *t, int64_t at, int64_t stride, uint8_t *dst, size_t count) {
  switch ((int)t->dtype) {
    RUN_INTS(v != 0)
    RUN(F16, uint16_t, (v & 0x7fff) != 0)
    RUN(BF16, uint16_t, (v & 0x7fff) != 0)
    RUN(F32, float, v != 0)
    RUN(F64, double, v != 0)
  default:
    memset(dst, 0, count);
  }
}

static size_t buffer_size(EwType type) {
  return type == EW_F32 ? sizeof(float) : type == EW_BOOL ? sizeof(uint8_t) : sizeof(int64_t);
}

static void load_run(const EwOperand *o, int64_t at, int64_t stride, void *buffer, size_t begin,
                     size_t count) {
  char *dst = (char *)buffer + begin * buffer_size(o->type);
  if (o->type == EW_F32)
    load_f32(o->tensor, at, stride, (float *)(void *)dst, count);
  else if (o->type == EW_F64)
    load_f64(o->tensor, at, stride, (double *)(void *)dst, count);
  else if (o->type == EW_I64)
    load_i64(o->tensor, at, stride, (int64_t *)(void *)dst, count);
  else
    load_bool(o->tensor, at, stride, (uint8_t *)dst, count);
}

void ew_load(const Tensor *t, EwType type, int64_t at, int64_t stride, void *buffer, size_t count) {
  EwOperand o = ew_tensor(t, type);
  load_run(&o, at, stride, buffer, 0, count);
}

static void fill_scalar(const EwOperand *o, void *buffer) {
  for (size_t i = 0; i < EW_BLOCK; i++)
    if (o->type == EW_F32)
      ((float *)buffer)[i] = (float)o->f;
    else if (o->type == EW_F64)
      ((double *)buffer)[i] = o->f;
    else if (o->type == EW_I64)
      ((int64_t *)buffer)[i] = o->i;
    else
      ((uint8_t *)buffer)[i] = o->i != 0;
}

#define STORE_LOOP(S, D, X)                                                                        \
  {                                                                                                \
    const S *p = src;                                                                              \
    D *dst = (D *)t->data + at;                                                                    \
    for (size_t i = 0; i < count; i++) {                                                           \
      const S v = p[i];                                                                            \
      dst[i] = X;                                                                                  \
    }                                                                                              \
    return;                                                                                        \
  }

static void store_floats(Tensor *t, int64_t at, const float *src, size_t count) {
  if (t->dtype == DTYPE_F32)
    STORE_LOOP(float, float, v)
  if (t->dtype == DTYPE_F16)
    STORE_LOOP(float, uint16_t, half_from_float(v))
  if (t->dtype == DTYPE_BF16)
    STORE_LOOP(float, uint16_t, bfloat_from_float(v))
  for (size_t i = 0; i < count; i++)
    tensor_store(t, at + (int64_t)i, (double)src[i]);
}

static void store_ints(Tensor *t, int64_t at, const int64_t *src, size_t count) {
  if (t->dtype == DTYPE_I64)
    STORE_LOOP(int64_t, int64_t, v)
  if (t->dtype == DTYPE_I32)
    STORE_LOOP(int64_t, uint32_t, (uint32_t)v)
  for (size_t i = 0; i < count; i++)
    tensor_store_int(t, at + (int64_t)i, src[i]);
}

static void store_block(const EwJob *job, int64_t at, const void *src, size_t count) {
  Tensor *t = job->out;
  if (job->out_type == EW_F32) {
    store_floats(t, at, src, count);
  } else if (job->out_type == EW_I64) {
    store_ints(t, at, src, count);
  } else if (job->out_type == EW_F64) {
    for (size_t i = 0; i < count; i++)
      tensor_store(t, at + (int64_t)i, ((const double *)src)[i]);
  } else {
    for (size_t i = 0; i < count; i++)
      tensor_store_int(t, at + (int64_t)i, ((const uint8_t *)src)[i]);
  }
}

/* --- the loop --- */

typedef struct EwPlan {
  const EwJob *job;
  uint32_t rank; /* of the merged dims */
  int64_t dims[MAX_RANK];
  int64_t strides[EW_INPUTS][MAX_RANK];
  bool constant[EW_INPUTS]; /* one value for all elements */
  bool direct[EW_INPUTS];   /* the operand's memory is the buffer */
  bool direct_out;
  int64_t numel;
  atomic_bool failed;
} EwPlan;

static bool same_form(DType dtype, EwType type) {
  return (dtype == DTYPE_F32 && type == EW_F32) || (dtype == DTYPE_F64 && type == EW_F64) ||
         ((dtype == DTYPE_I64 || dtype == DTYPE_U64) && type == EW_I64);
}

/* Whether dim `last` of every operand continues in dim i without a gap. */
static bool mergeable(const EwPlan *p, uint32_t last, uint32_t i) {
  for (uint32_t k = 0; k < p->job->in_count; k++)
    if (p->strides[k][last] != p->strides[k][i] * p->dims[i])
      return false;
  return true;
}

/* Drops dims of size 1 and joins neighbours that every operand walks through without a gap. */
static void plan_merge_dims(EwPlan *p) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < p->rank; i++) {
    if (p->dims[i] == 1)
      continue;
    bool merge = count && mergeable(p, count - 1, i);
    uint32_t to = merge ? count - 1 : count++;
    p->dims[to] = merge ? p->dims[to] * p->dims[i] : p->dims[i];
    for (uint32_t k = 0; k < p->job->in_count; k++)
      p->strides[k][to] = p->strides[k][i];
  }
  p->rank = count;
}

static void plan_make(EwPlan *p, const EwJob *job) {
  const Tensor *out = job->out;
  *p = (EwPlan){.job = job, .rank = out->rank, .numel = tensor_numel(out)};
  memcpy(p->dims, out->dims, sizeof p->dims);
  for (uint32_t k = 0; k < job->in_count; k++) {
    const Tensor *t = job->in[k].tensor;
    if (t)
      strides_broadcast(t, out->rank, out->dims, p->strides[k]);
    p->constant[k] = !t || tensor_numel(t) == 1;
  }
  plan_merge_dims(p);
  if (p->rank == 0) {
    p->rank = 1;
    p->dims[0] = 1;
  }
  for (uint32_t k = 0; k < job->in_count; k++)
    p->direct[k] = !p->constant[k] && p->rank == 1 && p->strides[k][0] == 1 &&
                   same_form(job->in[k].tensor->dtype, job->in[k].type);
  p->direct_out = same_form(out->dtype, job->out_type) ||
                  (out->dtype == DTYPE_BOOL && job->out_type == EW_BOOL);
}

/* Elements [at, at + count) of operand k into buffer. */
static void gather(const EwPlan *p, uint32_t k, int64_t at, size_t count, void *buffer) {
  int64_t index[MAX_RANK], rest = at, offset = 0;
  const int64_t *strides = p->strides[k];
  for (uint32_t i = p->rank; i-- > 0;) {
    index[i] = rest % p->dims[i];
    rest /= p->dims[i];
    offset += index[i] * strides[i];
  }
  uint32_t inner = p->rank - 1;
  for (size_t done = 0; done < count;) {
    size_t run = (size_t)min_i64(p->dims[inner] - index[inner], (int64_t)(count - done));
    load_run(&p->job->in[k], offset, strides[inner], buffer, done, run);
    done += run;
    index[inner] += (int64_t)run;
    offset += (int64_t)run * strides[inner];
    for (uint32_t i = inner; i > 0 && index[i] == p->dims[i]; i--) {
      offset += strides[i - 1] - p->dims[i] * strides[i];
      index[i] = 0;
      index[i - 1]++;
    }
  }
}

static void run_blocks(void *user, size_t begin, size_t end) {
  EwPlan *p = user;
  const EwJob *job = p->job;
  int64_t buffers[EW_INPUTS + 1][EW_BLOCK]; /* 8 bytes an element fit every type */
  const void *in[EW_INPUTS] = {0};
  for (uint32_t k = 0; k < job->in_count; k++) {
    in[k] = buffers[k];
    if (!job->in[k].tensor)
      fill_scalar(&job->in[k], buffers[k]);
    else if (p->constant[k])
      load_run(&job->in[k], 0, 0, buffers[k], 0, EW_BLOCK);
  }
  for (size_t block = begin; block < end; block++) {
    int64_t at = (int64_t)block * EW_BLOCK;
    size_t count = (size_t)min_i64(EW_BLOCK, p->numel - at);
    for (uint32_t k = 0; k < job->in_count; k++) {
      if (p->direct[k])
        in[k] = (const char *)job->in[k].tensor->data + (size_t)at * buffer_size(job->in[k].type);
      else if (!p->constant[k])
        gather(p, k, at, count, buffers[k]);
    }
    void *out = p->direct_out ? (char *)job->out->data + (size_t)at * buffer_size(job->out_type)
                              : (char *)buffers[EW_INPUTS];
    if (!job->fn(job, in, out, count))
      atomic_store(&p->failed, true);
    if (!p->direct_out)
      store_block(job, at, out, count);
  }
}

bool ew_run(const EwJob *job) {
  EwPlan plan;
  plan_make(&plan, job);
  if (plan.numel == 0)
    return true;
  size_t blocks = (size_t)((plan.numel + EW_BLOCK - 1) / EW_BLOCK);
  parallel_for(blocks, 16, run_blocks, &plan);
  return !atomic_load(&plan.failed);
}

/* --- whole tensors --- */

EW_DEFINE1(copy_f32, float, float, a)
EW_DEFINE1(copy_f64, double, double, a)
EW_DEFINE1(copy_i64, int64_t, int64_t, a)

void tensor_convert(const Tensor *from, Tensor *to) {
  EwType type = ew_type(from->dtype);
  if (from->dtype == DTYPE_U64 && dtype_is_float(to->dtype)) /* which i64 does not hold */
    type = to->dtype == DTYPE_F64 ? EW_F64 : EW_F32;
  EwJob job = {.fn = type == EW_F32   ? copy_f32
                     : type == EW_F64 ? copy_f64
                                      : copy_i64,
               .in = {ew_tensor(from, type)},
               .in_count = 1,
               .out_type = type,
               .out = to};
  ew_run(&job);
}

DType compute_dtype(DType dtype) {
  EwType type = ew_type(dtype);
  return type == EW_F32 ? DTYPE_F32 : type == EW_F64 ? DTYPE_F64 : DTYPE_I64;
}

Tensor kernel_in_dtype(Kernel *k, const Tensor *t, DType dtype) {
  if (!t)
    return (Tensor){.dtype = dtype};
  if (t->dtype == dtype)
    return *t;
  Tensor copy = *t;
  copy.dtype = dtype;
  copy.data = arena_alloc(k->scratch, tensor_bytes(&copy));
  tensor_convert(t, &copy);
  return copy;
}

Tensor kernel_result_in_dtype(Kernel *k, uint32_t i, DType dtype) {
  Tensor t = *k->results[i];
  if (t.dtype != dtype) {
    t.dtype = dtype;
    t.capacity = tensor_bytes(&t);
    t.data = arena_alloc(k->scratch, t.capacity);
  }
  return t;
}

void kernel_store_result(Kernel *k, uint32_t i, const Tensor *computed) {
  if (computed->data != k->results[i]->data)
    tensor_convert(computed, k->results[i]);
}

/* Quantization: quantize and dequantize per tensor and per channel, as the operators
 * QuantizeLinear and DequantizeLinear of ONNX round: x / scale, half to even, plus the zero point,
 * saturated. (The kernels of the runtime's quantized library multiply by the reciprocal of the
 * scale.) */
#include <math.h>

#include "ops/elementwise.h"
#include "ops/move.h"
#include "ops/ops.h"
#include "ops/quantized.h"
#include "ops/shape_util.h"
#include "support/number.h"

/* Where the arguments are. */
enum { PER_TENSOR_SCALE = 1, PER_TENSOR_ZERO, PER_TENSOR_MIN, PER_TENSOR_MAX, PER_TENSOR_DTYPE };
enum { AFFINE_BLOCK = 1, AFFINE_SCALE, AFFINE_ZERO, AFFINE_DTYPE, AFFINE_MIN, AFFINE_MAX };
enum { CHOOSE_MIN = 1, CHOOSE_MAX };
enum { SCALES = 1, ZEROS, AXIS, PER_CHANNEL_MIN, PER_CHANNEL_MAX, PER_CHANNEL_DTYPE };

/* --- shape rules --- */

static const DTypeSet codes = DT(U8) | DT(I8) | DT(I16) | DT(I32);

/* Range and element type, arguments `first` and behind. */
static Status check_range(Graph *g, NodeId n, uint32_t first, DType *dtype) {
  int64_t low, high;
  TRY(arg_const_int(g, n, first, &low));
  TRY(arg_const_int(g, n, first + 1, &high));
  TRY(arg_dtype(g, n, first + 2, DTYPE_NONE, dtype));
  if (!dtype_in(*dtype, codes))
    return bad_dtype(g, n, "values cannot be quantized to %s", dtype_name(*dtype));
  unsigned bits = 8 * (unsigned)dtype_size(*dtype);
  int64_t span = (int64_t)1 << bits, least = *dtype == DTYPE_U8 ? 0 : -span / 2;
  if (low < least || high >= least + span || low >= high)
    return bad_arg(g, n, "the range %lld to %lld does not fit %s", (long long)low, (long long)high,
                   dtype_name(*dtype));
  return STATUS_OK;
}

static Status check_scale(Graph *g, NodeId n) {
  const Arg *scale = node_arg(g, n, PER_TENSOR_SCALE);
  int64_t zero;
  if (scale->kind != ARG_FLOAT || !isfinite(scale->f) || (float)scale->f != scale->f)
    return bad_arg(g, n, "the scale must be a finite float");
  TRY(arg_const_int(g, n, PER_TENSOR_ZERO, &zero));
  return zero < INT32_MIN || zero > INT32_MAX ? bad_arg(g, n, "zero point %lld", (long long)zero)
                                              : STATUS_OK;
}

/* The floats that are quantized, or the codes that are not any more. */
static Status check_input(Graph *g, NodeId n, DType dtype) {
  DType own = operand_dtype(g, n, 0);
  if (own != dtype)
    return bad_dtype(g, n, "the input is %s, not %s", dtype_name(own), dtype_name(dtype));
  return STATUS_OK;
}

static bool makes_codes(OpId op) { return op_has_trait(op, OP_QUANTIZE); }

static Status result_of(Graph *g, NodeId n, DType dtype) {
  bool quantizes = makes_codes(node_cget(g, n)->op);
  TRY(check_input(g, n, quantizes ? DTYPE_F32 : dtype));
  Dims d = operand_dims(g, n, 0);
  return shape_result(g, n, 0, quantizes ? dtype : DTYPE_F32, &d);
}

Status shape_quantize_per_tensor(Graph *g, NodeId n) {
  DType dtype;
  TRY(check_range(g, n, PER_TENSOR_MIN, &dtype));
  TRY(check_scale(g, n));
  return result_of(g, n, dtype);
}

static Status check_parameter(Graph *g, NodeId n, uint32_t i, DType dtype, uint32_t rank) {
  ValueId v = node_value(g, n, i);
  StrView name = arg_name(g, n, i);
  if (value_dtype(g, v) == dtype && value_rank(g, v) == rank)
    return STATUS_OK;
  return bad_dtype(g, n, "'" SV_FMT "' is %s of rank %u, not %s of rank %u", SV_ARG(name),
                   dtype_name(value_dtype(g, v)), value_rank(g, v), dtype_name(dtype), rank);
}

/* Argument i, if it is there, has an entry of that type for each of `size` channels. */
static Status check_vector(Graph *g, NodeId n, uint32_t i, DType dtype, SymInt size) {
  ValueId v = node_value(g, n, i);
  if (!v)
    return STATUS_OK;
  TRY(check_parameter(g, n, i, dtype, 1));
  return shape_equal(g, n, value_dim(g, v, 0), size, "entries of a parameter and channels");
}

Status shape_quantize_per_channel(Graph *g, NodeId n) {
  DType dtype;
  int64_t dim;
  uint32_t axis;
  TRY(check_range(g, n, PER_CHANNEL_MIN, &dtype));
  ValueId x = node_value(g, n, 0);
  TRY(arg_const_int(g, n, AXIS, &dim));
  TRY(shape_axis(g, n, dim, value_rank(g, x), &axis));
  if (value_rank(g, x) == 0)
    return bad_shape(g, n, "a number has no channels");
  TRY(check_vector(g, n, SCALES, DTYPE_F32, value_dim(g, x, axis)));
  TRY(check_vector(g, n, ZEROS, DTYPE_I64, value_dim(g, x, axis)));
  return result_of(g, n, dtype);
}

/* Scale and zero point are numbers that arrive at run time. */
Status shape_quantize_dynamic(Graph *g, NodeId n) {
  DType dtype;
  TRY(check_range(g, n, PER_TENSOR_MIN, &dtype));
  TRY(check_parameter(g, n, PER_TENSOR_SCALE, DTYPE_F32, 0));
  TRY(check_parameter(g, n, PER_TENSOR_ZERO, DTYPE_I64, 0));
  return result_of(g, n, dtype);
}

/* One number for each row: the dims of x with the last one 1. */
static Status check_rows(Graph *g, NodeId n, uint32_t i, DType dtype, const Dims *x) {
  TRY(check_parameter(g, n, i, dtype, x->rank));
  Dims own = operand_dims(g, n, i);
  for (uint32_t d = 0; d < x->rank; d++)
    TRY(shape_equal(g, n, own.d[d], d + 1 == x->rank ? 1 : x->d[d],
                    "rows of a parameter and of the input"));
  return STATUS_OK;
}

Status shape_quantize_per_token(Graph *g, NodeId n) {
  DType dtype;
  TRY(check_range(g, n, PER_TENSOR_MIN, &dtype));
  Dims x = operand_dims(g, n, 0);
  if (x.rank == 0)
    return bad_shape(g, n, "a number has no rows");
  TRY(check_rows(g, n, PER_TENSOR_SCALE, DTYPE_F32, &x));
  TRY(check_rows(g, n, PER_TENSOR_ZERO, DTYPE_I64, &x));
  return result_of(g, n, dtype);
}

Status shape_choose_per_token(Graph *g, NodeId n) {
  DType dtype;
  TRY(check_input(g, n, DTYPE_F32));
  TRY(arg_dtype(g, n, 1, DTYPE_NONE, &dtype));
  Dims d = operand_dims(g, n, 0);
  if (d.rank == 0 || dtype != DTYPE_I8)
    return bad_arg(g, n, "rows are quantized to i8");
  d.d[d.rank - 1] = 1;
  TRY(shape_result(g, n, 0, DTYPE_F32, &d));
  return shape_result(g, n, 1, DTYPE_I64, &d);
}

/* The dim that is cut into blocks; the others have blocks of 1. */
static Status block_axis(Graph *g, NodeId n, ValueId x, uint32_t *axis) {
  IntList blocks;
  bool found = false;
  TRY(arg_int_list(g, n, AFFINE_BLOCK, &blocks));
  if (blocks.count != value_rank(g, x) || blocks.count >= MAX_RANK)
    return bad_arg(g, n, "%u sizes of blocks for rank %u", blocks.count, value_rank(g, x));
  for (uint32_t i = 0; i < blocks.count; i++) {
    if (!sym_is_const(blocks.v[i]) || blocks.v[i] < 1 || (blocks.v[i] > 1 && found))
      return bad_arg(g, n, "blocks must be those of one dim");
    if (blocks.v[i] == 1)
      continue;
    found = true;
    *axis = i;
  }
  return found ? STATUS_OK : bad_arg(g, n, "there is no block of more than 1");
}

static Status check_blocks(Graph *g, NodeId n, uint32_t i, DTypeSet types, ValueId x) {
  IntList blocks;
  ValueId v = node_value(g, n, i);
  TRY(arg_int_list(g, n, AFFINE_BLOCK, &blocks));
  if (!v)
    return STATUS_OK;
  StrView name = arg_name(g, n, i);
  if (!dtype_in(value_dtype(g, v), types) || value_rank(g, v) != value_rank(g, x))
    return bad_dtype(g, n, "'" SV_FMT "' is %s of rank %u", SV_ARG(name),
                     dtype_name(value_dtype(g, v)), value_rank(g, v));
  for (uint32_t d = 0; d < blocks.count; d++) {
    int64_t whole;
    SymInt own = value_dim(g, v, d), dim = value_dim(g, x, d);
    if (!sym_is_const(own) || !sym_is_const(dim) || !mul_i64(own, blocks.v[d], &whole) ||
        whole != dim)
      return bad_shape(g, n, "'" SV_FMT "' has not one entry for each block", SV_ARG(name));
  }
  return STATUS_OK;
}

Status shape_dequantize_affine(Graph *g, NodeId n) {
  uint32_t axis;
  DType dtype;
  ValueId x = node_value(g, n, 0);
  TRY(block_axis(g, n, x, &axis));
  TRY(arg_dtype(g, n, AFFINE_DTYPE, DTYPE_NONE, &dtype));
  TRY(check_input(g, n, dtype));
  if (!dtype_in(dtype, DT(I8) | DT(U8)))
    return bad_dtype(g, n, "blocks of %s", dtype_name(dtype));
  TRY(check_blocks(g, n, AFFINE_SCALE, DT(F32), x));
  TRY(check_blocks(g, n, AFFINE_ZERO, DT(I8) | DT(U8), x));
  Dims d = value_dims(g, x);
  return shape_result(g, n, 0, DTYPE_F32, &d);
}

Status shape_choose_qparams(Graph *g, NodeId n) {
  int64_t low, high;
  Dims none = {0};
  TRY(check_input(g, n, DTYPE_F32));
  TRY(arg_const_int(g, n, CHOOSE_MIN, &low));
  TRY(arg_const_int(g, n, CHOOSE_MAX, &high));
  if (low < INT16_MIN || high > UINT16_MAX || low >= high || high - low > UINT16_MAX)
    return bad_arg(g, n, "the range %lld to %lld", (long long)low, (long long)high);
  TRY(shape_result(g, n, 0, DTYPE_F32, &none));
  return shape_result(g, n, 1, DTYPE_I64, &none);
}

/* --- kernels --- */

static bool quantize(const EwJob *job, const void *const *in, void *out, size_t count) {
  const float *x = in[0], *scale = in[1], *zero = in[2];
  float *y = out, low = (float)job->f[0], high = (float)job->f[1];
  for (size_t i = 0; i < count; i++) {
    float code = rintf(x[i] / scale[i]) + zero[i];
    y[i] = code < low ? low : code > high ? high : code;
  }
  return true;
}

/* The runtime's kernel: the reciprocal in f32, codes as 64-bit integers, of which what is not
 * finite or too large is the least. */
static bool quantize_as_runtime(const EwJob *job, const void *const *in, void *out, size_t count) {
  const float *x = in[0], *scale = in[1], *zero = in[2];
  float *y = out, low = (float)job->f[0], high = (float)job->f[1];
  for (size_t i = 0; i < count; i++) {
    float code = rintf(x[i] * (1.0F / scale[i]));
    if (!(fabsf(code) < 0x1p63F))
      code = -0x1p63F;
    code += zero[i];
    y[i] = code < low ? low : code > high ? high : code;
  }
  return true;
}

static bool dequantize(const EwJob *job, const void *const *in, void *out, size_t count) {
  const float *x = in[0], *scale = in[1], *zero = in[2];
  float *y = out;
  (void)job;
  for (size_t i = 0; i < count; i++)
    y[i] = (x[i] - zero[i]) * scale[i];
  return true;
}

static Status run(Kernel *k, EwOperand scale, EwOperand zero, uint32_t range) {
  const Tensor *x = kernel_tensor(k, 0);
  TRY(kernel_expect(k, 0, x->rank, x->dims));
  EwJob job = {.fn = !makes_codes(k->op) ? dequantize
                     : k->as_runtime     ? quantize_as_runtime
                                         : quantize,
               .in = {ew_tensor(x, EW_F32), scale, zero},
               .in_count = 3,
               .out_type = EW_F32,
               .out = k->results[0],
               .f = {kernel_scalar(k, range), kernel_scalar(k, range + 1)}};
  ew_run(&job);
  return STATUS_OK;
}

Status kern_quantize_per_tensor(Kernel *k) {
  return run(k, ew_scalar(k, PER_TENSOR_SCALE, EW_F32), ew_scalar(k, PER_TENSOR_ZERO, EW_F32),
             PER_TENSOR_MIN);
}

/* A vector along the axis of x. */
static Tensor spread(const Tensor *vector, const Tensor *x, uint32_t axis) {
  Tensor t = *vector;
  t.rank = x->rank - axis;
  t.dims[0] = tensor_numel(vector);
  for (uint32_t i = 1; i < t.rank; i++)
    t.dims[i] = 1;
  return t;
}

Status kern_quantize_per_channel(Kernel *k) {
  const Tensor *x = kernel_tensor(k, 0), *scales = kernel_tensor(k, SCALES),
               *zeros = kernel_tensor(k, ZEROS);
  uint32_t axis;
  TRY(kernel_dim(k, k->args[AXIS].i, x->rank, &axis));
  if (x->rank == 0 || tensor_numel(scales) != x->dims[axis] ||
      (zeros && tensor_numel(zeros) != x->dims[axis]))
    return kernel_error(k, "there is not one scale and zero point for each channel");
  Tensor by = spread(scales, x, axis), from = zeros ? spread(zeros, x, axis) : (Tensor){0};
  EwOperand zero = {.type = EW_F32};
  return run(k, ew_tensor(&by, EW_F32), zeros ? ew_tensor(&from, EW_F32) : zero, PER_CHANNEL_MIN);
}

Status kern_quantize_dynamic(Kernel *k) {
  const Tensor *scale = kernel_tensor(k, PER_TENSOR_SCALE),
               *zero = kernel_tensor(k, PER_TENSOR_ZERO);
  return run(k, ew_tensor(scale, EW_F32), ew_tensor(zero, EW_F32), PER_TENSOR_MIN);
}

/* As the document of DynamicQuantizeLinear has it. */
static float choose(const float *x, int64_t count, float qmin, float qmax, float *scale) {
  float low = 0, high = 0;
  for (int64_t i = 0; i < count; i++) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  *scale = high - low == 0 ? 1 : (high - low) / (qmax - qmin);
  float zero = rintf(qmin - low / *scale);
  return zero < qmin ? qmin : zero > qmax ? qmax : zero;
}

Status kern_choose_qparams(Kernel *k) {
  float scale;
  const Tensor *x = kernel_tensor(k, 0);
  float zero = choose(x->data, tensor_numel(x), (float)kernel_scalar(k, CHOOSE_MIN),
                      (float)kernel_scalar(k, CHOOSE_MAX), &scale);
  tensor_store(k->results[0], 0, (double)scale);
  tensor_store_int(k->results[1], 0, int_clamped((double)zero, INT16_MIN, UINT16_MAX));
  return STATUS_OK;
}

Status kern_choose_per_token(Kernel *k) {
  const Tensor *x = kernel_tensor(k, 0);
  int64_t length = x->rank ? x->dims[x->rank - 1] : 1, rows = length ? tensor_numel(x) / length : 0;
  for (int64_t i = 0; i < rows; i++) {
    float scale,
        zero = choose((const float *)x->data + i * length, length, INT8_MIN, INT8_MAX, &scale);
    tensor_store(k->results[0], i, (double)scale);
    tensor_store_int(k->results[1], i, int_clamped((double)zero, INT8_MIN, INT8_MAX));
  }
  return STATUS_OK;
}

/* A tensor of one scale or zero point for each block of `axis`, where element i of x has its own.
 */
typedef struct Blocks {
  int64_t block, dim, inner;
} Blocks;

static int64_t block_at(const Blocks *b, int64_t i) {
  int64_t row = i / b->inner % b->dim, outer = i / b->inner / b->dim;
  return (outer * (b->dim / b->block) + row / b->block) * b->inner + i % b->inner;
}

static void dequantize_blocks(const Tensor *x, const Tensor *scales, const Tensor *zeros,
                              int64_t block, uint32_t axis, float *out) {
  Blocks b = {block, x->dims[axis], dims_count(x->dims, axis + 1, x->rank)};
  int64_t count = tensor_numel(x);
  for (int64_t i = 0; i < count; i++) {
    int64_t at = block_at(&b, i), zero = zeros ? tensor_load_int(zeros, at) : 0;
    out[i] = (float)(tensor_load_int(x, i) - zero) * ((const float *)scales->data)[at];
  }
}

Status kern_dequantize_affine(Kernel *k) {
  const Tensor *x = kernel_tensor(k, 0), *scales = kernel_tensor(k, AFFINE_SCALE);
  TRY(kernel_expect(k, 0, x->rank, x->dims));
  const KernelArg *blocks = &k->args[AFFINE_BLOCK];
  uint32_t axis = 0;
  while (axis + 1 < x->rank && blocks->ints[axis] == 1)
    axis++;
  dequantize_blocks(x, scales, kernel_tensor(k, AFFINE_ZERO), blocks->ints[axis], axis,
                    k->results[0]->data);
  return STATUS_OK;
}

/* --- nodes, read and made --- */

Quantization quantization_of(const Graph *g, NodeId n) {
  OpId op = node_cget(g, n)->op;
  bool rows = op == OP_QUANTIZE_PER_TOKEN || op == OP_DEQUANTIZE_PER_TOKEN,
       channels = op == OP_QUANTIZE_PER_CHANNEL || op == OP_DEQUANTIZE_PER_CHANNEL,
       blocks = op == OP_DEQUANTIZE_AFFINE;
  uint32_t low = blocks     ? AFFINE_MIN
                 : channels ? PER_CHANNEL_MIN
                            : PER_TENSOR_MIN,
           scale = blocks ? AFFINE_SCALE : SCALES;
  Quantization q = {.dtype = (DType)node_arg(g, n, blocks ? AFFINE_DTYPE : low + 2)->i,
                    .low = node_int(g, n, low),
                    .high = node_int(g, n, low + 1),
                    .rows = rows};
  if (op == OP_QUANTIZE_PER_TENSOR || op == OP_DEQUANTIZE_PER_TENSOR) {
    q.scale = (float)node_scalar(g, n, PER_TENSOR_SCALE);
    q.zero = node_int(g, n, PER_TENSOR_ZERO);
    return q;
  }
  q.scales = node_value(g, n, scale);
  q.zeros = node_value(g, n, scale + 1);
  q.dynamic = !blocks && !channels;
  if (channels)
    q.axis = (uint32_t)wrap_dim(node_int(g, n, AXIS), value_rank(g, node_result(g, n, 0)));
  if (blocks) {
    const int64_t *sizes = node_ints(g, n, AFFINE_BLOCK);
    while (q.axis + 1 < node_list_count(g, n, AFFINE_BLOCK) && sizes[q.axis] == 1)
      q.axis++;
    q.block = sizes[q.axis];
  }
  return q;
}

static bool equal_values(const Graph *g, ValueId a, ValueId b) {
  const Constant *x = a ? value_constant(g, a) : NULL, *y = b ? value_constant(g, b) : NULL;
  if (a == b)
    return true;
  return x && y && x->size == y->size && memcmp(x->data, y->data, x->size) == 0;
}

bool quantization_equal(const Graph *g, const Quantization *a, const Quantization *b) {
  return a->dtype == b->dtype && a->low == b->low && a->high == b->high && a->scale == b->scale &&
         a->zero == b->zero && a->axis == b->axis && a->dynamic == b->dynamic &&
         equal_values(g, a->scales, b->scales) && equal_values(g, a->zeros, b->zeros);
}

NodeId moved_dequantize(const Graph *g, ValueId v) {
  NodeId n = value_def(g, v);
  while (n &&
         (op_has_trait(node_cget(g, n)->op, OP_VIEW) || node_cget(g, n)->op == OP_PERMUTE_COPY))
    n = value_def(g, node_value(g, n, 0));
  return is_dequantize(g, n) ? n : 0;
}

NodeId dequantized_constant(const Graph *g, ValueId v) {
  NodeId n = v ? value_def(g, v) : 0;
  if (!is_dequantize(g, n) || !value_is_const(g, node_value(g, n, 0)))
    return 0;
  Quantization q = quantization_of(g, n);
  bool known = !q.dynamic && (!q.scales || value_is_const(g, q.scales)) &&
               (!q.zeros || value_is_const(g, q.zeros));
  return known ? n : 0;
}

static ValueId build_blocks(Builder *b, ValueId x, const Quantization *q) {
  int64_t blocks[MAX_RANK];
  uint32_t rank = value_rank(b->g, x);
  for (uint32_t i = 0; i < rank; i++)
    blocks[i] = i == q->axis ? q->block : 1;
  return build(b, OP_DEQUANTIZE_AFFINE, A_VAL(x), A_INTS(blocks, rank), A_VAL(q->scales),
               A_OPT(q->zeros), A_DTYPE(q->dtype), A_INT(q->low), A_INT(q->high),
               A_DTYPE(DTYPE_F32));
}

static ValueId build_conversion(Builder *b, ValueId x, const Quantization *q, bool quantizes) {
  if (b->status != STATUS_OK)
    return 0;
  if (q->block)
    return build_blocks(b, x, q);
  enum {
    TENSOR,
    RUN_TIME,
    ROWS,
    CHANNELS
  } kind = q->rows      ? ROWS
           : q->dynamic ? RUN_TIME
           : q->scales  ? CHANNELS
                        : TENSOR;
  static const OpId ops[][2] = {
      [TENSOR] = {OP_DEQUANTIZE_PER_TENSOR, OP_QUANTIZE_PER_TENSOR},
      [RUN_TIME] = {OP_DEQUANTIZE_PER_TENSOR_TENSOR, OP_QUANTIZE_PER_TENSOR_TENSOR},
      [ROWS] = {OP_DEQUANTIZE_PER_TOKEN, OP_QUANTIZE_PER_TOKEN},
      [CHANNELS] = {OP_DEQUANTIZE_PER_CHANNEL, OP_QUANTIZE_PER_CHANNEL}};
  ArgIn args[8] = {A_VAL(x)};
  uint32_t count = 1;
  args[count++] = kind == TENSOR ? A_FLOAT((double)q->scale) : A_VAL(q->scales);
  args[count++] = kind == TENSOR ? A_INT(q->zero) : A_OPT(q->zeros);
  if (kind == CHANNELS)
    args[count++] = A_INT(q->axis);
  args[count++] = A_INT(q->low);
  args[count++] = A_INT(q->high);
  args[count++] = A_DTYPE(q->dtype);
  if (!quantizes)
    args[count++] = kind == ROWS ? A_DTYPE(DTYPE_F32) : A_NONE;
  return build_args(b, ops[kind][quantizes], args, count);
}

Quantization build_dynamic(Builder *b, ValueId x, DType dtype) {
  int64_t low = dtype == DTYPE_U8 ? 0 : INT8_MIN;
  Quantization q = {.dtype = dtype, .low = low, .high = low + UINT8_MAX, .dynamic = true};
  if (b->status == STATUS_OK)
    q.scales = build(b, OP_CHOOSE_QPARAMS_TENSOR, A_VAL(x), A_INT(q.low), A_INT(q.high), A_FLOAT(0),
                     A_DTYPE(dtype));
  q.zeros = q.scales ? q.scales + 1 : 0;
  return q;
}

Quantization build_rows(Builder *b, ValueId x) {
  Quantization q = {
      .dtype = DTYPE_I8, .low = INT8_MIN, .high = INT8_MAX, .dynamic = true, .rows = true};
  if (b->status == STATUS_OK)
    q.scales = build(b, OP_CHOOSE_QPARAMS_PER_TOKEN, A_VAL(x), A_DTYPE(DTYPE_I8));
  q.zeros = q.scales ? q.scales + 1 : 0;
  return q;
}

ValueId build_quantize(Builder *b, ValueId x, const Quantization *q) {
  return build_conversion(b, x, q, true);
}

ValueId build_dequantize(Builder *b, ValueId x, const Quantization *q) {
  return build_conversion(b, x, q, false);
}

/* Data in a file may lie anywhere: kernels get an aligned copy. */
static Tensor tensor_of(const Graph *g, ValueId v, Arena *scratch) {
  const Constant *c = value_constant(g, v);
  Tensor t = {.dtype = value_dtype(g, v), .rank = value_rank(g, v), .capacity = c->size};
  for (uint32_t i = 0; i < t.rank; i++)
    t.dims[i] = value_dim(g, v, i);
  t.data = (void *)(uintptr_t)c->data;
  if ((uintptr_t)c->data % dtype_size(t.dtype)) {
    t.data = arena_alloc(scratch, (size_t)c->size + 1);
    memcpy(t.data, c->data, (size_t)c->size);
  }
  return t;
}

static void dequantize_with(const Graph *g, NodeId n, float *out, Arena *scratch) {
  Quantization q = quantization_of(g, n);
  Tensor x = tensor_of(g, node_value(g, n, 0), scratch), y = x, scales, zeros;
  y.dtype = DTYPE_F32;
  y.data = out;
  if (q.block) {
    scales = tensor_of(g, q.scales, scratch);
    if (q.zeros)
      zeros = tensor_of(g, q.zeros, scratch);
    dequantize_blocks(&x, &scales, q.zeros ? &zeros : NULL, q.block, q.axis, out);
    return;
  }
  EwOperand scale = {.type = EW_F32, .f = (double)q.scale},
            zero = {.type = EW_F32, .f = (double)q.zero};
  if (q.scales) {
    scales = tensor_of(g, q.scales, scratch);
    scales = spread(&scales, &x, q.axis);
    scale = ew_tensor(&scales, EW_F32);
  }
  if (q.zeros) {
    zeros = tensor_of(g, q.zeros, scratch);
    zeros = spread(&zeros, &x, q.axis);
    zero = ew_tensor(&zeros, EW_F32);
  }
  ew_run(&(EwJob){.fn = dequantize,
                  .in = {ew_tensor(&x, EW_F32), scale, zero},
                  .in_count = 3,
                  .out_type = EW_F32,
                  .out = &y});
}

void dequantize_constant(const Graph *g, NodeId n, float *out) {
  Arena scratch = {0};
  dequantize_with(g, n, out, &scratch);
  arena_release(&scratch);
}

/* See run.h. Runs the nodes in the order of the graph, each on f32 (or i32) with the reference
 * kernels of the op table where an op means the same; float16 is rounded after each node. */
#include "backends/xnnpack/run.h"

#include <math.h>

#include "backends/xnnpack/check.h"
#include "backends/xnnpack/run_internal.h"

void xr_run_fail(Runner *r, const char *what) {
  if (!r->fault)
    r->fault = what;
}

/* --- memory --- */

static Tensor make(Runner *r, Arena *arena, DType dtype, uint32_t rank, const int64_t *dims,
                   uint64_t *used) {
  Tensor t = {.dtype = dtype, .rank = rank};
  uint64_t bytes = dtype_size(dtype), total;
  bool fits = true;
  for (uint32_t i = 0; i < rank; i++) {
    t.dims[i] = dims[i];
    fits = fits && dims[i] >= 0 && mul_u64(bytes, (uint64_t)dims[i], &bytes);
  }
  fits = fits && add_u64(bytes, r->live + r->temporary, &total) && total <= r->call->memory;
  if (!fits) {
    xr_run_fail(r, "running this needs more memory than there is");
    return t;
  }
  *used += bytes;
  t.capacity = bytes;
  t.data = arena_alloc(arena, bytes);
  return t;
}

Tensor xr_temp(Runner *r, DType dtype, uint32_t rank, const int64_t *dims) {
  return make(r, &r->scratch, dtype, rank, dims, &r->temporary);
}

static DType dtype_of(uint32_t datatype) { return (DType)xr_datatype(datatype)->dtype; }

static void release(Runner *r, uint32_t id) {
  if (r->remaining[id] && --r->remaining[id])
    return;
  r->live -= r->owned[id];
  r->owned[id] = 0;
  arena_release(&r->memory[id]);
}

/* --- kernels --- */

void xr_kernel(Runner *r, OpId op, const KernelArg *args, uint32_t count, Tensor *out) {
  if (count != op_schema(op)->arg_count)
    BUG("%u arguments for '%s'", count, op_row(op)->id);
  if (r->fault)
    return;
  Tensor *results[] = {out};
  Kernel k = {.op = op,
              .args = args,
              .arg_count = count,
              .results = results,
              .result_count = 1,
              .scratch = &r->scratch,
              .memory = r->call->memory - r->live,
              .sink = &r->sink,
              .place = DIAG_NOWHERE};
  if (op_row(op)->kernel(&k) != STATUS_OK)
    xr_run_fail(r, "its kernel refuses the operands");
}

static Tensor converted(Runner *r, const Tensor *t, DType dtype) {
  if (t->dtype == dtype || r->fault)
    return *t;
  Tensor out = xr_temp(r, dtype, t->rank, t->dims);
  KernelArg args[] = {K_TENSOR(t), K_NONE, K_NONE, K_NONE};
  xr_kernel(r, OP_TO_COPY, args, COUNT_OF(args), &out);
  return out;
}

/* --- kinds --- */

static const OpId plain_ops[] = {
    [XR_Abs] = OP_ABS,
    [XR_Ceiling] = OP_CEIL,
    [XR_Clamp] = OP_CLONE,
    [XR_Copy] = OP_CLONE,
    [XR_Cos] = OP_COS,
    [XR_Div] = OP_DIV_TENSOR,
    [XR_Exp] = OP_EXP,
    [XR_Floor] = OP_FLOOR,
    [XR_Hardswish] = OP_HARDSWISH,
    [XR_Log] = OP_LOG,
    [XR_Maximum] = OP_MAXIMUM,
    [XR_Minimum] = OP_MINIMUM,
    [XR_Multiply] = OP_MUL_TENSOR,
    [XR_Negate] = OP_NEG,
    [XR_ReciprocalSquareRoot] = OP_RSQRT,
    [XR_Sigmoid] = OP_SIGMOID,
    [XR_Sin] = OP_SIN,
    [XR_SquareRoot] = OP_SQRT,
    [XR_Tanh] = OP_TANH,
};

static void run_unary(Runner *r, const XrNode *n, const Tensor *x, Tensor *out) {
  if (n->kind == XR_Square) {
    KernelArg args[] = {K_TENSOR(x), K_TENSOR(x)};
    xr_kernel(r, OP_MUL_TENSOR, args, COUNT_OF(args), out);
  } else if (n->kind == XR_Gelu) {
    KernelArg args[] = {K_TENSOR(x), K_STRING("none")};
    xr_kernel(r, OP_GELU, args, COUNT_OF(args), out);
  } else if (n->kind == XR_Softmax) {
    KernelArg args[] = {K_TENSOR(x), K_INT(-1), K_INT(0)};
    xr_kernel(r, OP_SOFTMAX, args, COUNT_OF(args), out);
  } else if (n->kind == XR_ELU) {
    KernelArg args[] = {K_TENSOR(x), K_FLOAT((double)n->number), K_FLOAT(1), K_FLOAT(1)};
    xr_kernel(r, OP_ELU, args, COUNT_OF(args), out);
  } else if (n->kind == XR_LeakyReLU) {
    KernelArg args[] = {K_TENSOR(x), K_FLOAT((double)n->number)};
    xr_kernel(r, OP_LEAKY_RELU, args, COUNT_OF(args), out);
  } else if (n->kind == XR_GlobalAvgPooling2d) {
    const int64_t dims[] = {x->rank - 3, x->rank - 2};
    KernelArg args[] = {K_TENSOR(x), K_INTS(dims, 2), K_INT(out->rank == x->rank), K_NONE};
    xr_kernel(r, OP_MEAN_DIM, args, COUNT_OF(args), out);
  } else if (n->kind == XR_Convert) {
    xr_run_convert(r, x, out);
  } else {
    KernelArg args[] = {K_TENSOR(x), K_NONE};
    OpId op = plain_ops[n->kind];
    xr_kernel(r, op, args, op == OP_CLONE ? 2 : 1, out);
  }
}

/* x where it is positive, else x times the slope. */
static void run_prelu(Runner *r, const Tensor *x, const Tensor *slope, Tensor *out) {
  Tensor below = xr_temp(r, x->dtype, x->rank, x->dims), above = below,
         scaled = xr_temp(r, x->dtype, out->rank, out->dims);
  above = xr_temp(r, x->dtype, x->rank, x->dims);
  KernelArg negative[] = {K_TENSOR(x), K_NONE, K_FLOAT(0)},
            positive[] = {K_TENSOR(x), K_FLOAT(0), K_NONE},
            times[] = {K_TENSOR(&below), K_TENSOR(slope)},
            sum[] = {K_TENSOR(&above), K_TENSOR(&scaled), K_INT(1)};
  xr_kernel(r, OP_CLAMP, negative, COUNT_OF(negative), &below);
  xr_kernel(r, OP_CLAMP, positive, COUNT_OF(positive), &above);
  xr_kernel(r, OP_MUL_TENSOR, times, COUNT_OF(times), &scaled);
  xr_kernel(r, OP_ADD_TENSOR, sum, COUNT_OF(sum), out);
}

/* t with its last two dims exchanged. */
static Tensor permuted(Runner *r, const Tensor *t) {
  uint32_t perm[XR_MAX_RANK];
  for (uint32_t i = 0; i < t->rank; i++)
    perm[i] = i;
  perm[t->rank - 2] = t->rank - 1;
  perm[t->rank - 1] = t->rank - 2;
  return xr_permuted(r, t, perm);
}

static void run_binary(Runner *r, const XrNode *n, const Tensor *a, const Tensor *b, Tensor *out) {
  if (n->kind == XR_PReLU) {
    run_prelu(r, a, b, out);
  } else if (n->kind == XR_Add || n->kind == XR_Subtract) {
    KernelArg args[] = {K_TENSOR(a), K_TENSOR(b), K_INT(1)};
    xr_kernel(r, n->kind == XR_Add ? OP_ADD_TENSOR : OP_SUB_TENSOR, args, COUNT_OF(args), out);
  } else if (n->kind == XR_BatchMatrixMultiply) {
    Tensor right = n->flags & 1 ? permuted(r, b) : *b;
    KernelArg args[] = {K_TENSOR(a), K_TENSOR(&right)};
    xr_kernel(r, OP_MATMUL, args, COUNT_OF(args), out);
  } else {
    KernelArg args[] = {K_TENSOR(a), K_TENSOR(b)};
    xr_kernel(r, plain_ops[n->kind], args, COUNT_OF(args), out);
  }
}

void xr_run_product(Runner *r, const XrNode *n, const Tensor *in, Tensor *out) {
  Tensor filter = n->flags & 1 ? permuted(r, &in[1]) : in[1];
  KernelArg args[] = {K_TENSOR(&in[0]), K_TENSOR(&filter), K_NONE};
  if (n->inputs[2] != XR_NONE)
    args[2] = K_TENSOR(&in[2]);
  xr_kernel(r, OP_LINEAR, args, COUNT_OF(args), out);
}

void xr_compute(Runner *r, const XrNode *n, const Tensor *in, Tensor *out) {
  switch (xr_form(n->kind)) {
  case XR_FORM_UNARY:
  case XR_FORM_UNARY_NUMBER:
    run_unary(r, n, &in[0], out);
    return;
  case XR_FORM_BINARY:
    run_binary(r, n, &in[0], &in[1], out);
    return;
  case XR_FORM_PRODUCT:
    xr_run_product(r, n, in, out);
    return;
  case XR_FORM_CONVOLUTION:
    xr_run_convolution(r, n, in, out);
    return;
  case XR_FORM_POOL:
    xr_run_pool(r, n, &in[0], out);
    return;
  case XR_FORM_POSITION:
    xr_run_positions(r, n, &in[0], out);
    return;
  case XR_FORM_RESIZE:
    xr_run_resize(r, n, &in[0], out);
    return;
  default:
    xr_run_move(r, n, in, out);
  }
}

void xr_limit(Runner *r, const XrNode *n, Tensor *t) {
  Tensor limited = xr_temp(r, t->dtype, t->rank, t->dims);
  KernelArg args[] = {K_TENSOR(t), K_FLOAT((double)n->low), K_FLOAT((double)n->high)};
  xr_kernel(r, OP_CLAMP, args, COUNT_OF(args), &limited);
  *t = limited;
}

/* --- the graph --- */

const uint8_t *xr_constant_bytes(const Runner *r, uint32_t constant) {
  const XrConstant *k = &r->x->constants[constant];
  return k->key.data ? r->c.data[constant]->data : r->x->region + k->offset;
}

/* Brings constants to where kernels want them. */
static Tensor constant(Runner *r, uint32_t id) {
  const XrValue *v = &r->x->values[id];
  const XrConstant *k = &r->x->constants[v->constant];
  const uint8_t *bytes = xr_constant_bytes(r, v->constant);
  Tensor t = {.dtype = dtype_of(v->datatype), .rank = v->rank, .capacity = k->size};
  for (uint32_t i = 0; i < v->rank; i++)
    t.dims[i] = v->dims[i];
  if (v->datatype == XR_QCINT4 || v->datatype == XR_QBINT4)
    t.dims[1] = (t.dims[1] + 1) / 2;
  t.data = (void *)(uintptr_t)bytes;
  if ((uintptr_t)bytes % 16 == 0)
    return t;
  Tensor copy = xr_temp(r, t.dtype, t.rank, t.dims);
  if (!r->fault)
    memcpy(copy.data, bytes, k->size);
  return copy;
}

static Tensor operand(Runner *r, uint32_t id, DType dtype) {
  if (id == XR_NONE)
    return (Tensor){0};
  Tensor t = r->x->values[id].constant ? constant(r, id) : r->values[id];
  return converted(r, &t, dtype);
}

static void store_output(Runner *r, uint32_t id) {
  uint32_t external = r->x->values[id].external;
  Tensor *out = external == XR_NONE ? NULL : &r->call->outputs[external - r->call->input_count];
  const Tensor *from = &r->values[id];
  if (!out || r->fault)
    return;
  Tensor wide = converted(r, from, out->dtype);
  for (uint32_t i = 0; i < out->rank; i++)
    if (wide.dims[i] > out->dims[i])
      xr_run_fail(r, "an output is larger than its bound");
  if (r->fault)
    return;
  memcpy(out->dims, wide.dims, sizeof out->dims);
  memcpy(out->data, wide.data, tensor_bytes(&wide));
}

Tensor *xr_result(Runner *r, uint32_t id) {
  const XrShape *shape = &r->c.shapes[id];
  Tensor *value = &r->values[id];
  *value = make(r, &r->memory[id], dtype_of(r->x->values[id].datatype), shape->rank, shape->dims,
                &r->owned[id]);
  r->live += r->owned[id];
  return value;
}

static void finish_result(Runner *r, uint32_t id) {
  store_output(r, id);
  if (r->remaining[id] == 0)
    release(r, id);
}

/* On f32 or i32; float16 is rounded at the end. */
static void run_plain(Runner *r, const XrNode *n, const Tensor *in, DType used) {
  const XrShape *shape = &r->c.shapes[n->output];
  Tensor *value = xr_result(r, n->output);
  bool rounded = value->dtype != used && n->kind != XR_Convert, aside = n->limited || rounded;
  Tensor out = aside ? xr_temp(r, used, shape->rank, shape->dims) : *value;
  if (!r->fault)
    xr_compute(r, n, in, &out);
  if (n->limited)
    xr_limit(r, n, &out);
  if (rounded) {
    KernelArg args[] = {K_TENSOR(&out), K_NONE, K_NONE, K_NONE};
    xr_kernel(r, OP_TO_COPY, args, COUNT_OF(args), value);
  } else if (aside && !r->fault) {
    memcpy(value->data, out.data, tensor_bytes(&out));
  }
}

static bool is_quantized(const Runner *r, uint32_t id) {
  return id != XR_NONE && xr_scheme(r->x->values[id].datatype) != XR_PLAIN;
}

static void run_node(Runner *r, const XrNode *n) {
  DType kept = dtype_of(r->x->values[n->output].datatype),
        used = kept == DTYPE_I32 ? DTYPE_I32 : DTYPE_F32;
  bool quantized = is_quantized(r, n->output);
  Tensor in[XR_MAX_INPUTS];
  for (uint32_t i = 0; i < n->input_count; i++)
    quantized = quantized || is_quantized(r, n->inputs[i]);
  for (uint32_t i = 0; i < n->input_count; i++) {
    DType own = n->inputs[i] == XR_NONE ? used : dtype_of(r->x->values[n->inputs[i]].datatype);
    in[i] = operand(r, n->inputs[i], quantized || n->kind == XR_Convert ? own : used);
  }
  if (quantized) {
    Tensor *value = xr_result(r, n->output);
    if (!r->fault)
      xr_run_quantized(r, n, in, value);
  } else {
    run_plain(r, n, in, used);
  }
  finish_result(r, n->output);
  if (n->positions != XR_NONE)
    finish_result(r, n->positions);
  for (uint32_t i = 0; i < n->input_count; i++)
    if (n->inputs[i] != XR_NONE)
      release(r, n->inputs[i]);
}

static void run_nodes(Runner *r, Arena *arena) {
  const XrGraph *x = r->x;
  for (uint32_t i = 0; i < x->node_count; i++)
    for (uint32_t k = 0; k < x->nodes[i].input_count; k++)
      if (x->nodes[i].inputs[k] != XR_NONE)
        r->remaining[x->nodes[i].inputs[k]]++;
  for (uint32_t id = 0; id < x->value_count; id++)
    if (x->values[id].flags == XR_INPUT)
      r->values[id] = r->call->inputs[x->values[id].external];
  for (uint32_t i = 0; i < x->node_count && !r->fault; i++) {
    run_node(r, &x->nodes[i]);
    arena_reset(&r->scratch);
    r->temporary = 0;
    if (r->fault)
      r->fault = arena_printf(arena, "node %u (%s): %s", i, xr_name(x->nodes[i].kind), r->fault);
  }
}

const char *xr_run(const DelegateCall *call, Arena *arena) {
  XrGraph x;
  const char *fault = xr_read(call->blob, call->blob_size, arena, &x);
  if (fault)
    return fault;
  size_t count = (size_t)x.value_count + 1;
  Runner r = {.x = &x,
              .call = call,
              .values = ARENA_ARRAY(arena, Tensor, count),
              .memory = ARENA_ARRAY(arena, Arena, count),
              .owned = ARENA_ARRAY(arena, uint64_t, count),
              .remaining = ARENA_ARRAY(arena, uint32_t, count)};
  /* The sizes of outputs are bounds. */
  DelegateCall unsized = *call;
  unsized.outputs = ARENA_ARRAY(arena, Tensor, (size_t)call->output_count + 1);
  for (uint32_t i = 0; i < call->output_count; i++) {
    unsized.outputs[i] = call->outputs[i];
    for (uint32_t k = 0; k < MAX_RANK; k++)
      unsized.outputs[i].dims[k] = XR_UNKNOWN;
  }
  fault = xr_check(&r.c, &x, &unsized, arena);
  if (fault)
    return fault;
  diag_sink_init_silent(&r.sink);
  arena_init(&r.scratch);
  for (uint32_t id = 0; id < x.value_count; id++)
    arena_init(&r.memory[id]);
  run_nodes(&r, arena);
  for (uint32_t id = 0; id < x.value_count; id++)
    arena_release(&r.memory[id]);
  arena_release(&r.scratch);
  diag_sink_release(&r.sink);
  return r.fault;
}

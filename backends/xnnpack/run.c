/* See run.h. Runs the nodes in the order of the graph, each on f32 (or i32) with the reference
 * kernels of the op table where an op means the same; float16 is rounded after each node. */
#include "backends/xnnpack/run.h"

enum { FLAG_TRANSPOSED = 1 }; /* the second operand of a product */

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
  XrSlot *slot = &r->slots[id];
  if (slot->remaining && --slot->remaining)
    return;
  r->live -= slot->owned;
  slot->owned = 0;
  arena_release(&slot->memory);
}

/* --- kernels --- */

static KernelArg default_of(const SchemaArg *arg) {
  const ArgIn *value = &arg->default_value;
  KernelArg out = {.kind = value->kind, .i = value->i};
  if (!arg->has_default || value->count)
    BUG("argument '" SV_FMT "' is needed", SV_ARG(arg->name));
  if (value->kind == ARG_FLOAT)
    out.f = value->f;
  else if (value->kind == ARG_STR)
    out.str = value->str;
  return out;
}

void xr_kernel(Runner *r, OpId op, const KernelArg *args, uint32_t count, Tensor *out) {
  const OpSchema *schema = op_schema(op);
  KernelArg all[SCHEMA_MAX_ARGS];
  Tensor *results[SCHEMA_MAX_RESULTS];
  if (r->fault)
    return;
  for (uint32_t i = 0; i < schema->arg_count; i++)
    all[i] = i < count ? args[i] : default_of(&schema->args[i]);
  for (uint32_t i = 0; i < schema->result_count; i++)
    results[i] = &out[i];
  Kernel k = {.op = op,
              .args = all,
              .arg_count = schema->arg_count,
              .results = results,
              .result_count = schema->result_count,
              .scratch = &r->scratch,
              .memory = r->call->memory - r->live,
              .sink = &r->sink,
              .place = DIAG_NOWHERE};
  if (kernel_run(&k) != STATUS_OK)
    xr_run_fail(r, "its kernel refuses the operands");
}

Tensor xr_converted(Runner *r, const Tensor *t, DType dtype) {
  if (t->dtype == dtype || r->fault)
    return *t;
  Tensor out = xr_temp(r, dtype, t->rank, t->dims);
  XR_KERNEL(r, OP_TO_COPY, &out, K_TENSOR(t));
  return out;
}

void xr_permute(Runner *r, const Tensor *t, const uint32_t *perm, Tensor *out) {
  int64_t dims[XR_MAX_RANK];
  for (uint32_t i = 0; i < t->rank; i++)
    dims[i] = perm[i];
  XR_KERNEL(r, OP_PERMUTE_COPY, out, K_TENSOR(t), K_INTS(dims, t->rank));
}

Tensor xr_permuted(Runner *r, const Tensor *t, const uint32_t *perm) {
  int64_t dims[XR_MAX_RANK];
  for (uint32_t i = 0; i < t->rank; i++)
    dims[i] = t->dims[perm[i]];
  Tensor out = xr_temp(r, t->dtype, t->rank, dims);
  xr_permute(r, t, perm, &out);
  return out;
}

/* --- kinds --- */

/* t with its last two dims exchanged. */
static Tensor exchanged(Runner *r, const Tensor *t) {
  uint32_t perm[XR_MAX_RANK];
  for (uint32_t i = 0; i < t->rank; i++)
    perm[i] = i + 2 < t->rank ? i : 2 * t->rank - 3 - i;
  return xr_permuted(r, t, perm);
}

/* The op of the table that computes the same. */
static void run_op(Runner *r, const XrNode *n, const Tensor *in, Tensor *out) {
  KernelArg args[XR_MAX_INPUTS];
  Tensor second;
  uint32_t count = n->input_count;
  for (uint32_t i = 0; i < count; i++)
    args[i] = in[i].data ? K_TENSOR(&in[i]) : K_NONE;
  if (n->flags & FLAG_TRANSPOSED) {
    second = exchanged(r, &in[1]);
    args[1] = K_TENSOR(&second);
  }
  if (xr_form(n->kind) == XR_FORM_UNARY_NUMBER)
    args[count++] = K_FLOAT((double)n->number);
  xr_kernel(r, xr_kind(n->kind)->op, args, count, out);
}

/* x where it is positive, else x times the slope. */
static void run_prelu(Runner *r, const Tensor *x, const Tensor *slope, Tensor *out) {
  Tensor positive = xr_temp(r, DTYPE_BOOL, x->rank, x->dims),
         scaled = xr_temp(r, x->dtype, out->rank, out->dims);
  XR_KERNEL(r, OP_GT_SCALAR, &positive, K_TENSOR(x), K_FLOAT(0));
  XR_KERNEL(r, OP_MUL_TENSOR, &scaled, K_TENSOR(x), K_TENSOR(slope));
  XR_KERNEL(r, OP_WHERE_SELF, out, K_TENSOR(&positive), K_TENSOR(x), K_TENSOR(&scaled));
}

/* To integers XNNPACK rounds half to even. */
static void run_convert(Runner *r, const Tensor *x, Tensor *out) {
  Tensor whole = *x;
  if (out->dtype == DTYPE_I32 && dtype_is_float(x->dtype)) {
    whole = xr_temp(r, x->dtype, x->rank, x->dims);
    XR_KERNEL(r, OP_ROUND, &whole, K_TENSOR(x));
  }
  XR_KERNEL(r, OP_TO_COPY, out, K_TENSOR(&whole));
}

/* Slices are padded by less than nothing. The op lists the last dim first. */
static void run_pad(Runner *r, const XrNode *n, const Tensor *x, Tensor *out) {
  int64_t pads[2 * XR_MAX_RANK];
  for (uint32_t i = 0; i < x->rank; i++) {
    int64_t *at = &pads[2 * (x->rank - 1 - i)];
    at[0] = xr_form(n->kind) == XR_FORM_SLICE ? -(int64_t)n->first[i] : n->first[i];
    at[1] = out->dims[i] - x->dims[i] - at[0];
  }
  XR_KERNEL(r, OP_CONSTANT_PAD_ND, out, K_TENSOR(x), K_INTS(pads, 2 * x->rank),
            K_FLOAT((double)n->number));
}

static void run_join(Runner *r, const XrNode *n, const Tensor *in, Tensor *out) {
  Tensor *parts[XR_MAX_INPUTS];
  for (uint32_t i = 0; i < n->input_count; i++)
    parts[i] = (Tensor *)(uintptr_t)&in[i];
  KernelArg list = {.kind = ARG_VALUES, .count = n->input_count, .tensors = parts};
  XR_KERNEL(r, OP_CAT, out, list, K_INT((int32_t)n->axis));
}

static void run_function(Runner *r, const XrNode *n, const Tensor *in, Tensor *out) {
  const int64_t image[] = {in->rank - 3, in->rank - 2};
  switch (n->kind) {
  case XR_Square:
    XR_KERNEL(r, OP_MUL_TENSOR, out, K_TENSOR(in), K_TENSOR(in));
    return;
  case XR_Softmax:
    XR_KERNEL(r, OP_SOFTMAX, out, K_TENSOR(in), K_INT(-1), K_INT(0));
    return;
  case XR_GlobalAvgPooling2d:
    XR_KERNEL(r, OP_MEAN_DIM, out, K_TENSOR(in), K_INTS(image, 2), K_INT(out->rank == in->rank));
    return;
  case XR_PReLU:
    run_prelu(r, &in[0], &in[1], out);
    return;
  case XR_Convert:
    run_convert(r, in, out);
    return;
  default:
    xr_run_fail(r, "a kind that cannot be run");
  }
}

void xr_compute(Runner *r, const XrNode *n, const Tensor *in, Tensor *out) {
  if (r->fault)
    return;
  switch (xr_form(n->kind)) {
  case XR_FORM_CONVOLUTION:
    xr_run_convolution(r, n, in, out);
    return;
  case XR_FORM_POOL:
    xr_run_pool(r, n, in, out);
    return;
  case XR_FORM_POSITION:
    xr_run_positions(r, n, in, out);
    return;
  case XR_FORM_RESIZE:
    xr_run_resize(r, n, in, out);
    return;
  case XR_FORM_RESHAPE:
    memcpy(out->data, in->data, tensor_bytes(out));
    return;
  case XR_FORM_TRANSPOSE:
    xr_permute(r, in, n->first, out);
    return;
  case XR_FORM_SLICE:
  case XR_FORM_PAD:
    run_pad(r, n, in, out);
    return;
  case XR_FORM_JOIN:
    run_join(r, n, in, out);
    return;
  default:
    (xr_kind(n->kind)->op ? run_op : run_function)(r, n, in, out);
  }
}

void xr_limit(Runner *r, const XrNode *n, const Tensor *t, Tensor *out) {
  XR_KERNEL(r, OP_CLAMP, out, K_TENSOR(t), K_FLOAT((double)n->low), K_FLOAT((double)n->high));
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
  Tensor t = r->x->values[id].constant ? constant(r, id) : r->slots[id].tensor;
  return xr_converted(r, &t, dtype);
}

static void store_output(Runner *r, uint32_t id) {
  uint32_t external = r->x->values[id].external;
  if (external == XR_NONE || r->fault)
    return;
  Tensor *out = &r->call->outputs[external - r->call->input_count],
         wide = xr_converted(r, &r->slots[id].tensor, out->dtype);
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
  XrSlot *slot = &r->slots[id];
  slot->tensor = make(r, &slot->memory, dtype_of(r->x->values[id].datatype), shape->rank,
                      shape->dims, &slot->owned);
  r->live += slot->owned;
  return &slot->tensor;
}

static void finish_result(Runner *r, uint32_t id) {
  store_output(r, id);
  if (r->slots[id].remaining == 0)
    release(r, id);
}

/* On f32 or i32; float16 is rounded at the end. */
static void run_plain(Runner *r, const XrNode *n, const Tensor *in, DType used) {
  Tensor *value = xr_result(r, n->output), full = *value, limited = *value;
  bool rounded = value->dtype != used && n->kind != XR_Convert;
  if (rounded || n->limited)
    full = xr_temp(r, used, value->rank, value->dims);
  xr_compute(r, n, in, &full);
  if (n->limited) {
    if (rounded)
      limited = xr_temp(r, used, value->rank, value->dims);
    xr_limit(r, n, &full, &limited);
    full = limited;
  }
  if (rounded)
    XR_KERNEL(r, OP_TO_COPY, value, K_TENSOR(&full));
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
        r->slots[x->nodes[i].inputs[k]].remaining++;
  for (uint32_t id = 0; id < x->value_count; id++)
    if (x->values[id].flags == XR_INPUT)
      r->slots[id].tensor = r->call->inputs[x->values[id].external];
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
  Runner r = {
      .x = &x, .call = call, .slots = ARENA_ARRAY(arena, XrSlot, (size_t)x.value_count + 1)};
  fault = xr_check(&r.c, &x, call, arena);
  if (fault)
    return fault;
  diag_sink_init_silent(&r.sink);
  run_nodes(&r, arena);
  for (uint32_t id = 0; id < x.value_count; id++)
    arena_release(&r.slots[id].memory);
  arena_release(&r.scratch);
  diag_sink_release(&r.sink);
  return r.fault;
}

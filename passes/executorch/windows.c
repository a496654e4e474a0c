/* See windows.h.
 *
 *   x -> constant_pad_nd -> as_strided_copy [C, taps, N, places] -> mm (bmm for groups) -> add bias
 *
 * Where x is padded anyway, the bias costs no kernel: the padding gets one more channel, and all of
 * it is not 0 but the power of two EPSILON. The weight of the further channel is bias / EPSILON at
 * one tap, so the product has exactly the bias; what EPSILON adds at the borders, 1e-30 times the
 * weights, is far below the rounding of floats. */
#include "passes/executorch/windows.h"

#include <math.h>

#include "ir/match.h"
#include "passes/executorch/liveness.h"
#include "passes/executorch/views.h"
#include "passes/executorch/window_parts.h"
#include "support/number.h"

#define EPSILON 0x1p-100     /* EPSILON and bias / EPSILON must be normal floats */
enum { BIAS_MAX = 1 << 20 }; /* of a bias that is divided by it */

static void read_list(const Graph *g, NodeId n, uint32_t arg, uint32_t count, int64_t *out) {
  for (uint32_t i = 0; i < count; i++)
    out[i] = node_entry(g, n, arg, i, 0);
}

/* The bias is small enough to be a weight of EPSILON, and that spares a kernel. */
static bool wants_bias_row(const Graph *g, const Windows *w) {
  if (!w->bias || !w->pads || w->geometry.groups != 1 || value_dtype(g, w->bias) != DTYPE_F32 ||
      !value_is_const(g, w->weight) || !value_is_const(g, w->bias) ||
      value_constant(g, w->weight)->size > WEIGHTS_MAX)
    return false;
  const uint8_t *data = value_constant(g, w->bias)->data;
  for (int64_t i = 0; i < value_dim(g, w->bias, 0); i++)
    if (!(fabsf(float_at(data, (uint64_t)i)) < BIAS_MAX))
      return false;
  return true;
}

int64_t windows_phases(const Geometry *y) {
  int64_t phases = 1;
  for (uint32_t i = 0; i < y->spatial; i++)
    phases *= y->phases[i];
  return phases;
}

bool windows_are_permuted(const Geometry *y) { return y->batch != 1 || windows_phases(y) != 1; }

/* Bytes and products at the largest sizes; false when they cannot be told in 63 bits. */
static bool count_costs(const Graph *g, Windows *w) {
  const SymTable *t = &g->syms;
  Geometry *y = &w->geometry;
  uint64_t batch = (uint64_t)sym_upper(t, y->batch), places = (uint64_t)sym_upper(t, y->places);
  uint64_t channels = (uint64_t)windows_channels(w), size = dtype_size(value_dtype(g, y->x));
  uint64_t padded = 0, columns = 0;
  bool ok = mul_u64(channels, batch, &padded) && mul_u64(padded, (uint64_t)y->taps, &columns) &&
            mul_u64(columns, places, &columns) &&
            mul_u64(columns, (uint64_t)(w->out / y->groups), &w->work) &&
            mul_u64(columns, size, &columns) && mul_u64(padded, size, &padded);
  for (uint32_t i = 0; i < y->spatial; i++)
    ok = ok && mul_u64(padded,
                       (uint64_t)sym_upper(t, value_dim(g, y->x, 2 + i)) +
                           (uint64_t)(y->before[i] + y->after[i]),
                       &padded);
  w->extra = !ok || y->direct ? 0 : columns + (w->pads ? padded : 0);
  uint64_t result = type_bytes_upper(g, value_type(g, w->result));
  if (windows_are_permuted(y) && w->extra < result) /* the product as well */
    w->extra = result;
  return ok && columns < UINT64_MAX / 8 && padded < UINT64_MAX / 8;
}

/* One sample whose windows are single elements or all that there is. */
static bool is_direct(const Graph *g, const Windows *w) {
  const Geometry *y = &w->geometry;
  bool each = y->taps == 1, all = y->places == 1;
  for (uint32_t i = 0; i < y->spatial; i++) {
    each = each && y->stride[i] == 1;
    all = all && y->kernel[i] == value_dim(g, y->x, 2 + i);
  }
  return y->batch == 1 && !w->pads && (each || all);
}

static bool can_be_read(const Graph *g, const Windows *w) {
  ValueId x = w->geometry.x;
  uint32_t rank = value_rank(g, x);
  DType dtype = value_dtype(g, x);
  return rank >= 3 && rank <= 2 + WINDOW_DIMS_MAX && windows_have(dtype) &&
         sym_is_const(value_dim(g, x, 1)) && type_is_static(value_type(g, w->weight)) &&
         value_dtype(g, w->weight) == dtype && (!w->bias || value_dtype(g, w->bias) == dtype) &&
         type_bytes_upper(g, value_type(g, x)) <= UINT32_MAX &&
         type_bytes_upper(g, value_type(g, w->result)) <= UINT32_MAX;
}

static void read_plain(const Graph *g, NodeId n, Windows *w) {
  Geometry *y = &w->geometry;
  read_list(g, n, 3, y->spatial, y->stride);
  read_list(g, n, 4, y->spatial, y->before);
  read_list(g, n, 4, y->spatial, y->after);
  read_list(g, n, 5, y->spatial, y->dilation);
  for (uint32_t i = 0; i < y->spatial; i++) {
    y->kernel[i] = value_dim(g, w->weight, 2 + i);
    y->size[i] = value_dim(g, w->result, 2 + i);
    y->phases[i] = 1;
  }
}

static bool has_constant_weights(const Graph *g, const Windows *w) {
  return value_is_const(g, w->weight) && (!w->bias || value_is_const(g, w->bias));
}

bool windows_read(Graph *g, NodeId n, Windows *w) {
  *w = (Windows){.weight = node_value(g, n, 1), .bias = node_value(g, n, 2)};
  w->geometry.x = node_value(g, n, 0);
  w->result = node_result(g, n, 0);
  if (!can_be_read(g, w))
    return false;
  Geometry *y = &w->geometry;
  y->spatial = value_rank(g, y->x) - 2;
  y->batch = value_dim(g, y->x, 0);
  y->in = value_dim(g, y->x, 1);
  w->out = value_dim(g, w->weight, 0);
  y->groups = node_int(g, n, 8);
  y->taps = y->places = 1;
  w->transposed = node_bool(g, n, 6);
  if (!w->transposed)
    read_plain(g, n, w);
  else if (!has_constant_weights(g, w) || !transposed_read(g, n, w))
    return false;
  y->x = match_zero_pad(g, y->x, y->spatial, y->before, y->after);
  for (uint32_t i = 0; i < y->spatial; i++) {
    y->taps *= y->kernel[i];
    y->places = sym_mul(&g->syms, y->places, y->size[i]);
    w->pads |= y->before[i] > 0 || y->after[i] > 0;
  }
  if (y->in < 1 || w->out < 1 || y->taps < 1)
    return false;
  y->direct = is_direct(g, w);
  y->bias_row = wants_bias_row(g, w);
  return count_costs(g, w);
}

Windows windows_of_sample(const Graph *g, const Windows *w) {
  Windows one = *w;
  one.geometry.batch = 1;
  (void)count_costs(g, &one); /* less than those of all */
  return one;
}

/* Bytes besides x and the result: the channels of a part, padded; its columns; and the product,
 * while the sum of those before is in the memory of the result. */
static uint64_t bytes_of_part(const Graph *g, const Windows *w) {
  const Geometry *y = &w->geometry;
  uint64_t x = type_bytes_upper(g, value_type(g, y->x)) / (uint64_t)y->in * (uint64_t)w->part,
           result = type_bytes_upper(g, value_type(g, w->result)) / (uint64_t)w->out *
                    (uint64_t)windows_out_of(w, w->part);
  return w->extra + max_u64(x, result) + 3 * PLAN_ALIGNMENT;
}

Windows windows_in_parts(const Graph *g, const Windows *w, int64_t parts) {
  Windows some = *w;
  Geometry *y = &some.geometry;
  int64_t unit = y->groups == 1 ? 1 : y->in / y->groups;
  y->bias_row = y->direct = 0;
  some.part = (y->in / unit + parts - 1) / parts * unit;
  (void)count_costs(g, &some); /* less than those of all */
  some.extra = bytes_of_part(g, &some);
  some.work = w->work / (uint64_t)parts;
  return some;
}

ValueId windows_padded(Builder *b, const Windows *w) {
  const Geometry *y = &w->geometry;
  int64_t pads[2 * WINDOW_DIMS_MAX + 2] = {0};
  if (!w->pads)
    return y->x;
  for (uint32_t i = 0; i < y->spatial; i++) {
    pads[2 * i] = y->before[y->spatial - 1 - i];
    pads[2 * i + 1] = y->after[y->spatial - 1 - i];
  }
  pads[2 * y->spatial + 1] = y->bias_row;
  return build(b, OP_CONSTANT_PAD_ND, A_VAL(y->x), A_INTS(pads, 2 * (y->spatial + y->bias_row)),
               A_FLOAT(y->bias_row ? EPSILON : 0));
}

ValueId windows_columns(Builder *b, const Windows *w) {
  const Geometry *y = &w->geometry;
  if (y->direct)
    return build_et_view(b, y->x, (SymInt[]){y->in * y->taps, y->places}, 2);
  ValueId x = windows_padded(b, w);
  if (!x)
    return 0;
  SymTable *t = &b->g->syms;
  SymInt size[2 + 2 * WINDOW_DIMS_MAX] = {y->in + y->bias_row};
  SymInt stride[2 + 2 * WINDOW_DIMS_MAX], step = 1;
  uint32_t batch = 1 + y->spatial, rank = 2 + 2 * y->spatial;
  size[batch] = y->batch;
  for (uint32_t i = y->spatial; i-- > 0;) {
    size[1 + i] = y->kernel[i];
    stride[1 + i] = sym_mul(t, step, y->dilation[i]);
    size[batch + 1 + i] = y->size[i];
    stride[batch + 1 + i] = sym_mul(t, step, y->stride[i]);
    step = sym_mul(t, step, value_dim(b->g, x, 2 + i));
  }
  stride[0] = step;
  stride[batch] = sym_mul(t, step, value_dim(b->g, x, 1));
  x = build(b, OP_AS_STRIDED_COPY, A_VAL(x), A_INTS(size, rank), A_INTS(stride, rank),
            A_INT(y->offset));
  return build_et_view(b, x, (SymInt[]){size[0] * y->taps, sym_mul(t, y->batch, y->places)}, 2);
}

/* [out, (in + 1) * taps]: the weight, and the bias at the first tap of the last channel. */
static ValueId weight_and_bias(Graph *g, const Windows *w) {
  size_t row = (size_t)(w->geometry.in * w->geometry.taps), taps = (size_t)w->geometry.taps;
  size_t rows = (size_t)w->out, bytes = rows * (row + taps) * sizeof(float);
  float *data = arena_calloc(&g->arena, rows, (row + taps) * sizeof(float));
  const uint8_t *weight = value_constant(g, w->weight)->data;
  const uint8_t *bias = value_constant(g, w->bias)->data;
  for (size_t r = 0; r < rows; r++) {
    float *to = data + r * (row + taps);
    memcpy(to, weight + r * row * sizeof(float), row * sizeof(float));
    memcpy(to + row, bias + r * sizeof(float), sizeof(float));
    to[row] = (float)((double)to[row] / EPSILON);
  }
  SymInt dims[] = {w->out, (SymInt)(row + taps)};
  TypeId type = graph_tensor_type(g, DTYPE_F32, 2, dims, ORDER_CONTIGUOUS);
  Constant constant = {.data = (uint8_t *)data, .size = bytes};
  return graph_add_constant(g, type, constant, value_cget(g, w->weight)->name);
}

/* The weight as the product takes it: with the bias, a matrix, or one a group. */
static ValueId weight_matrix(Builder *b, const Windows *w) {
  const Geometry *y = &w->geometry;
  int64_t length = y->in / y->groups * y->taps;
  if (y->bias_row)
    return weight_and_bias(b->g, w);
  if (y->groups == 1)
    return build_reshaped(b, w->weight, (SymInt[]){w->out, length}, 2);
  return build_reshaped(b, w->weight, (SymInt[]){y->groups, w->out / y->groups, length}, 3);
}

ValueId windows_matmul(Builder *b, const Windows *w, ValueId columns) {
  const Geometry *y = &w->geometry;
  if (!columns)
    return 0;
  if (y->groups == 1)
    return build(b, OP_MM, A_VAL(w->matrix), A_VAL(columns));
  SymInt places = sym_mul(&b->g->syms, y->batch, y->places);
  int64_t length = y->in / y->groups * y->taps;
  ValueId x = build_et_view(b, columns, (SymInt[]){y->groups, length, places}, 3);
  return build_et_view(b, build(b, OP_BMM, A_VAL(w->matrix), A_VAL(x)), (SymInt[]){w->out, places},
                       2);
}

void windows_weights(Builder *b, Windows *w) {
  if (w->transposed)
    transposed_constants(b->g, w);
  if (w->part)
    window_parts_weights(b->g, w);
  else
    w->matrix = weight_matrix(b, w);
  if (w->bias && !w->geometry.bias_row)
    w->column = build_reshaped(b, w->bias, (SymInt[]){w->out, 1}, 2);
}

/* The product as samples, channels, and windows with their phases:
 * [M, phases, N, windows] -> [N, M, windows and phases in turn]; [M, N, places] -> [N, M, places]
 */
static ValueId in_order(Builder *b, const Windows *w, ValueId v) {
  const Geometry *y = &w->geometry;
  int64_t phases = windows_phases(y), perm[2 + 2 * WINDOW_DIMS_MAX] = {1, 0, 2};
  SymInt dims[2 + 2 * WINDOW_DIMS_MAX] = {w->out / phases, y->batch, y->places};
  uint32_t rank = 3, batch = 1 + y->spatial;
  if (phases > 1) {
    rank = 2 + 2 * y->spatial;
    perm[0] = batch;
    perm[1] = 0;
    dims[batch] = y->batch;
    for (uint32_t i = 0; i < y->spatial; i++) {
      dims[1 + i] = y->phases[i];
      dims[batch + 1 + i] = y->size[i];
      perm[2 + 2 * i] = batch + 1 + i;
      perm[3 + 2 * i] = 1 + i;
    }
  }
  v = build_et_view(b, v, dims, rank);
  return v ? build_permute(b, v, perm) : 0;
}

ValueId windows_result(Builder *b, const Windows *w, ValueId product) {
  const Geometry *y = &w->geometry;
  ValueId v = product;
  if (w->column && v)
    v = build(b, OP_ADD_TENSOR, A_VAL(v), A_VAL(w->column));
  if (v && windows_are_permuted(y))
    v = in_order(b, w, v);
  if (!v || b->status != STATUS_OK)
    return 0;
  SymInt dims[2 + WINDOW_DIMS_MAX] = {y->batch};
  dims[1] = w->out / windows_phases(y);
  for (uint32_t i = 0; i < y->spatial; i++)
    dims[2 + i] = sym_mul(&b->g->syms, y->size[i], y->phases[i]);
  return build_et_view(b, v, dims, 2 + y->spatial);
}

/* Transposed convolutions as windows (windows.h).
 *
 *   y[o] = sum over i, t of x[i] w[t], where o + padding = i * s + t
 *
 * With o = q * s + r and i = q + j, the tap is t = r + padding - j * s: each q is a window over
 * x[q + j] for the j that give taps for some r, and gives s results, one for each phase r. Where a
 * phase has no tap for a j, its weight is 0. */
#include "passes/executorch/windows.h"

enum { WASTE_MAX = 3 }; /* times the taps of a dim, with the zeros */

/* One dim; false when its windows would be mostly zeros, or not known here. */
static bool read_dim(Graph *g, NodeId n, Windows *w, uint32_t i) {
  Geometry *y = &w->geometry;
  SymTable *t = &g->syms;
  SymInt length = value_dim(g, y->x, 2 + i), size = value_dim(g, w->result, 2 + i);
  int64_t taps = value_dim(g, w->weight, 2 + i), s = node_entry(g, n, 3, i, 0),
          p = node_entry(g, n, 4, i, 0);
  SymInt more = sym_sub(t, size, sym_mul(t, length, s)); /* than s for each element of x */
  if (!sym_is_const(more) || sym_lower(t, size) < 1 || s < 1 || more % s != 0 || p < 0 ||
      p >= taps || node_entry(g, n, 5, i, 0) != 1)
    return false;
  int64_t first = -((taps - 1 - p) / s), last = (s - 1 + p) / s;
  int64_t after = more / s + last;
  y->phases[i] = s;
  y->stride[i] = y->dilation[i] = 1;
  y->kernel[i] = last - first + 1;
  y->size[i] = sym_add(t, length, more / s);
  y->before[i] = -first;
  y->after[i] = after > 0 ? after : 0;
  w->tap[i] = p - first * s;
  return y->kernel[i] * s <= WASTE_MAX * taps;
}

bool transposed_read(Graph *g, NodeId n, Windows *w) {
  Geometry *y = &w->geometry;
  if (y->groups != 1)
    return false;
  uint64_t weight = (uint64_t)y->in * dtype_size(value_dtype(g, y->x));
  for (uint32_t i = 0; i < y->spatial; i++)
    if (!read_dim(g, n, w, i) || !mul_u64(weight, (uint64_t)(y->kernel[i] * y->phases[i]), &weight))
      return false;
  uint64_t channels = (uint64_t)value_dim(g, w->weight, 1);
  if (!mul_u64(weight, channels, &weight) || weight > INT64_MAX ||
      (weight > WEIGHTS_MAX && weight > value_constant(g, w->weight)->size))
    return false;
  w->out = (int64_t)channels * windows_phases(y);
  return true;
}

static ValueId constant(Graph *g, ValueId like, uint32_t rank, const SymInt *dims, uint8_t *data,
                        size_t size) {
  TypeId type = graph_tensor_type(g, value_dtype(g, like), rank, dims, ORDER_CONTIGUOUS);
  return graph_add_constant(g, type, (Constant){.data = data, .size = size},
                            value_cget(g, like)->name);
}

/* The element of the weight for a product of a window and one of its elements, both counted in the
 * order of dims; -1 for 0. */
static int64_t tap_at(const Graph *g, const Windows *w, int64_t product, int64_t place) {
  const Geometry *y = &w->geometry;
  int64_t at = 0, size = 1;
  for (uint32_t i = y->spatial; i-- > 0;) {
    int64_t phase = product % y->phases[i], step = place % y->kernel[i];
    int64_t taps = value_dim(g, w->weight, 2 + i);
    int64_t t = phase + w->tap[i] - step * y->phases[i];
    if (t < 0 || t >= taps)
      return -1;
    at += t * size;
    size *= taps;
    product /= y->phases[i];
    place /= y->kernel[i];
  }
  int64_t channels = value_dim(g, w->weight, 1);
  return (place * channels + product) * size + at;
}

void transposed_constants(Graph *g, Windows *w) {
  const Geometry *y = &w->geometry;
  size_t size = dtype_size(value_dtype(g, y->x)), phases = (size_t)windows_phases(y);
  int64_t row = y->in * y->taps;
  const uint8_t *data = value_constant(g, w->weight)->data;
  uint8_t *weight = arena_calloc(&g->arena, (size_t)(w->out * row), size);
  for (int64_t k = 0; k < w->out; k++)
    for (int64_t i = 0; i < row; i++) {
      int64_t at = tap_at(g, w, k, i);
      if (at >= 0)
        memcpy(weight + (size_t)(k * row + i) * size, data + (size_t)at * size, size);
    }
  if (w->bias) {
    const uint8_t *from = value_constant(g, w->bias)->data;
    uint8_t *bias = arena_calloc(&g->arena, (size_t)w->out, size);
    for (size_t i = 0; i < (size_t)w->out; i++)
      memcpy(bias + i * size, from + i / phases * size, size);
    w->bias = constant(g, w->bias, 1, &w->out, bias, (size_t)w->out * size);
  }
  SymInt dims[2 + WINDOW_DIMS_MAX] = {w->out, y->in};
  memcpy(dims + 2, y->kernel, y->spatial * sizeof *dims);
  w->weight = constant(g, w->weight, 2 + y->spatial, dims, weight, (size_t)(w->out * row) * size);
}

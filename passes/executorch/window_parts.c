/* See window_parts.h.
 *
 *   v = mm(weight of part 0, columns of part 0)
 *   v = add(v, mm(weight of part 1, columns of part 1))    and so on
 *
 * What add_.out writes over its operand needs no memory. Weights are constants here: each part has
 * its columns of the matrix, which are laid out while the file is written. */
#include "passes/executorch/window_parts.h"

#include "ir/transform.h"

static int64_t channels_of(const Windows *w, int64_t number) {
  return min_i64(w->part, w->geometry.in - number * w->part);
}

/* Of [out, in, taps] the channels of that part, or of groups the rows that are theirs. */
static ValueId matrix_of(Graph *g, const Windows *w, int64_t number) {
  const Geometry *y = &w->geometry;
  DType dtype = value_dtype(g, w->weight);
  const Constant *whole = value_lazy_constant(g, w->weight);
  SymInt channels = channels_of(w, number), first = number * w->part;
  uint64_t size = dtype_size(dtype), taps = (uint64_t)y->taps;
  Constant part;
  if (y->groups == 1) {
    const uint64_t sizes[2] = {(uint64_t)w->out, (uint64_t)y->in * taps};
    part = constant_columns(g, *whole, (uint32_t)size, sizes, (uint64_t)first * taps,
                            (uint64_t)channels * taps);
    SymInt dims[] = {w->out, channels * y->taps};
    return graph_add_constant(g, graph_tensor_type(g, dtype, 2, dims, ORDER_CONTIGUOUS), part, 0);
  }
  int64_t own = y->in / y->groups, out = w->out / y->groups;
  SymInt dims[] = {channels / own, out, own * y->taps};
  uint64_t group = (uint64_t)(out * own) * taps * size;
  uint32_t rank = dims[0] == 1 ? 2 : 3; /* mm or bmm */
  whole = value_constant(g, w->weight);
  part = constant_run(*whole, (uint64_t)(first / own) * group, (uint64_t)dims[0] * group);
  return graph_add_constant(g, graph_tensor_type(g, dtype, rank, dims + 3 - rank, ORDER_CONTIGUOUS),
                            part, 0);
}

void window_parts_weights(Graph *g, Windows *w) {
  int64_t count = window_parts_count(w);
  ValueId *matrices = ARENA_ARRAY(&g->arena, ValueId, count);
  for (int64_t i = 0; i < count; i++)
    matrices[i] = matrix_of(g, w, i);
  w->matrices = matrices;
}

static Windows window_part(Builder *b, const Windows *w, int64_t number) {
  Graph *g = b->g;
  Windows part = *w;
  Geometry *y = &part.geometry;
  int64_t channels = channels_of(w, number), first = number * w->part;
  part.part = 0;
  part.matrix = w->matrices[number];
  if (y->groups > 1) {
    part.out = windows_out_of(w, channels);
    y->groups = channels / (y->in / y->groups);
  }
  y->in = channels;
  if (w->pads) {
    y->x = build_slice(b, y->x, 1, first, first + channels, 1);
    return part;
  }
  SymInt plane = first; /* the columns begin further down */
  for (uint32_t i = 0; i < y->spatial; i++)
    plane = sym_mul(&g->syms, plane, value_dim(g, y->x, 2 + i));
  y->offset = sym_add(&g->syms, y->offset, plane);
  return part;
}

/* With the rows of that part. */
static ValueId add_groups(Builder *b, const Windows *w, ValueId all, int64_t number, ValueId part) {
  const Geometry *y = &w->geometry;
  if (!all) {
    SymInt dims[2] = {w->out, sym_mul(&b->g->syms, y->batch, y->places)};
    all = build(b, OP_FULL, A_INTS(dims, 2), A_INT(0), A_DTYPE(value_dtype(b->g, y->x)));
  }
  int64_t first = number * windows_out_of(w, w->part);
  int64_t rows = windows_out_of(w, channels_of(w, number));
  return build(b, OP_SLICE_SCATTER, A_VAL(all), A_VAL(part), A_INT(0), A_INT(first),
               A_INT(first + rows), A_INT(1));
}

/* The convolution of the band that begins at that row of the result, alone. */
static Windows band_of(Builder *b, const Windows *whole, ValueId x, const RowBand *rows) {
  SymTable *t = &b->g->syms;
  Windows w = *whole;
  Geometry *y = &w.geometry;
  y->x = x;
  y->direct = 0;
  w.pads = false;
  y->size[0] = y->places = rows->count;
  SymInt offset = sym_mul(t, rows->first, y->stride[0]);
  for (uint32_t i = 0; i < y->spatial; i++)
    y->before[i] = y->after[i] = 0;
  for (uint32_t i = 1; i < y->spatial; i++) {
    y->places = sym_mul(t, y->places, y->size[i]);
    offset = sym_mul(t, offset, value_dim(b->g, x, 2 + i));
  }
  y->offset = sym_add(t, y->offset, offset);
  return w;
}

/* [out, N * places] of one part, or of all that there is. */
static ValueId product_of(Builder *b, const Windows *w, const RowBand *rows) {
  if (!rows)
    return windows_matmul(b, w, windows_columns(b, w));
  const Windows band = band_of(b, w, windows_padded(b, w), rows);
  return windows_matmul(b, &band, windows_columns(b, &band));
}

ValueId window_parts_build(Builder *b, const Windows *w, const RowBand *rows) {
  const Windows whole = rows ? band_of(b, w, w->geometry.x, rows) : *w;
  ValueId all = w->part ? 0 : product_of(b, w, rows);
  int64_t count = w->part ? window_parts_count(w) : 0;
  for (int64_t i = 0; i < count && b->status == STATUS_OK; i++) {
    const Windows one = window_part(b, w, i);
    ValueId part = product_of(b, &one, rows);
    if (w->geometry.groups > 1)
      all = add_groups(b, &whole, all, i, part);
    else
      all = all ? build_binary(b, OP_ADD_TENSOR, all, part) : part;
  }
  return all && b->status == STATUS_OK ? windows_result(b, &whole, all) : 0;
}

/* See window_rows.h.
 *
 *   p = constant_pad_nd(x)
 *   y = full
 *   for each band: y = slice_scatter(y, product(as_strided_copy(p, its first row)))
 *
 * In parts, each band pads the channels of each part.
 *
 * All bands are of one size, that of the result where that is smaller, so that the last begins
 * where it ends with the result, and computes some rows again. */
#include "passes/executorch/window_rows.h"

#include "passes/executorch/liveness.h"
#include "passes/executorch/window_parts.h"

enum {
  ROWS_MAX = 64,
  PLACES_MAX = 1024,   /* in a band of a line */
  BYTES_A_PRODUCT = 32 /* that are copied: 20 take the time of a product on two CPUs */
};

/* Bytes of x with so many channels, padded if w is. */
static uint64_t bytes_of_x(const Graph *g, const Windows *w, int64_t channels, bool padded) {
  const Geometry *y = &w->geometry;
  uint64_t bytes = (uint64_t)sym_upper(&g->syms, y->batch) * (uint64_t)channels *
                   dtype_size(value_dtype(g, y->x));
  for (uint32_t i = 0; i < y->spatial; i++)
    bytes *= (uint64_t)(sym_upper(&g->syms, value_dim(g, y->x, 2 + i)) +
                        (padded ? y->before[i] + y->after[i] : 0));
  return align_up(bytes, PLAN_ALIGNMENT);
}

/* Besides, in a band of that many rows; where its order is another one, the product is there twice,
 * in parts beside the sum of those before, which have x padded one by one. */
static uint64_t bytes_of_band(const Graph *g, const Windows *w, uint64_t rows, uint64_t padded) {
  const BandBytes b = window_band_bytes(g, w, (int64_t)rows);
  bool twice = windows_are_permuted(&w->geometry) && b.product > b.columns;
  if (!w->part)
    return padded + b.product + (twice ? b.product : b.columns);
  uint64_t own = w->pads ? bytes_of_x(g, w, w->part, false) : 0;
  return b.product + max_u64(max_u64(own, b.columns) + padded, b.columns + b.product);
}

/* Products whose time is that of copying what a band copies: all of the result, which
 * slice_scatter copies to where it is, and in parts all of x. */
static uint64_t copies(const Graph *g, const Windows *w) {
  uint64_t bytes = type_bytes_upper(g, value_type(g, w->result));
  if (w->part && w->pads)
    bytes += 2 * type_bytes_upper(g, value_type(g, w->geometry.x));
  return bytes / BYTES_A_PRODUCT;
}

Bands window_rows(const Graph *g, const Windows *w, uint64_t room, uint64_t freed) {
  const Geometry *y = &w->geometry;
  const SymTable *t = &g->syms;
  uint64_t result = type_bytes_upper(g, value_type(g, w->result)), padded = 0,
           most = (uint64_t)sym_upper(t, y->size[0]), parts = 1;
  if (w->part)
    parts = (uint64_t)window_parts_count(w);
  if (w->pads)
    padded = bytes_of_x(g, w, windows_channels(w), true);
  bool fits = w->part || padded <= room + result; /* before there is a result */
  if (w->pads && !w->part)
    room += freed;
  uint64_t rows = min_u64(most, y->spatial == 1 ? PLACES_MAX : ROWS_MAX);
  while (rows && bytes_of_band(g, w, rows, padded) > room)
    rows--;
  if (!fits || !rows || rows == most ||
      w->work * parts / most * rows < parts * BAND_PRODUCTS_MIN + copies(g, w))
    return (Bands){0};
  return (Bands){
      .count = (uint32_t)((most + rows - 1) / rows), .rows = (int64_t)rows, .loop = true};
}

ValueId window_rows_build(Builder *b, const Windows *w, int64_t most) {
  Graph *g = b->g;
  SymTable *t = &g->syms;
  SymInt all = w->geometry.size[0], rows = sym_lower(t, all) < most ? sym_min(t, all, most) : most;
  const Type type = *value_type(g, w->result);
  Windows padded = *w;
  if (!w->part) {
    padded.geometry.x = windows_padded(b, w);
    padded.pads = false;
  }
  ValueId y = build(b, OP_FULL, A_INTS(type.dims, type.rank), A_INT(0), A_DTYPE((DType)type.dtype)),
          number = build(b, OP_LOOP, A_INT(sym_ceildiv(t, all, most)), A_OPT(0), A_VALS(&y, 1));
  if (b->status != STATUS_OK)
    return 0;
  SymInt first = value_type(g, number)->dims[0];
  if (most > 1)
    first = sym_min(t, sym_mul(t, first, most), sym_max(t, 0, sym_sub(t, all, most)));
  ValueId value = window_parts_build(b, &padded, &(RowBand){rows, first});
  int64_t phases = w->geometry.phases[0];
  first = sym_mul(t, first, phases);
  y = build(b, OP_SLICE_SCATTER, A_VAL(number + 1), A_VAL(value), A_INT(2), A_INT(first),
            A_INT(sym_add(t, first, sym_mul(t, rows, phases))), A_INT(1));
  return build(b, OP_NEXT, A_OPT(0), A_VALS(&y, 1));
}

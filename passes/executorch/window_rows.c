/* See window_rows.h.
 *
 *   p = constant_pad_nd(x)
 *   y = full
 *   for each band: y = slice_scatter(y, product(as_strided_copy(p, its first row)))
 *
 * All bands are of one size, that of the result where that is smaller, so that the last begins
 * where it ends with the result, and computes some rows again. */
#include "passes/executorch/window_rows.h"

#include "passes/executorch/liveness.h"

enum {
  ROWS_MAX = 64,
  PLACES_MAX = 1024,   /* in a band of a line */
  BYTES_A_PRODUCT = 32 /* of the result, which slice_scatter copies to where it is: 20 bytes take
                          the time of a product on two CPUs */
};

/* Of the padded x; 0 where it needs no padding. Nothing overflows: windows_read has computed as
 * much for all rows. */
static uint64_t padded_bytes(const Graph *g, const Windows *w) {
  const Geometry *y = &w->geometry;
  uint64_t bytes = (uint64_t)sym_upper(&g->syms, y->batch) * (uint64_t)(y->in + y->bias_row) *
                   dtype_size(value_dtype(g, y->x));
  for (uint32_t i = 0; i < y->spatial; i++)
    bytes *=
        (uint64_t)(sym_upper(&g->syms, value_dim(g, y->x, 2 + i)) + y->before[i] + y->after[i]);
  return w->pads ? align_up(bytes, PLAN_ALIGNMENT) : 0;
}

/* Besides, in a band of that many rows; where its order is another one, the product is there twice.
 */
static uint64_t band_bytes(const Graph *g, const Windows *w, uint64_t rows) {
  const BandBytes b = window_band_bytes(g, w, (int64_t)rows);
  bool twice = windows_are_permuted(&w->geometry) && b.product > b.columns;
  return b.product + (twice ? b.product : b.columns);
}

Bands window_rows(const Graph *g, const Windows *w, uint64_t room, uint64_t freed) {
  const Geometry *y = &w->geometry;
  const SymTable *t = &g->syms;
  uint64_t result = type_bytes_upper(g, value_type(g, w->result)), padded = padded_bytes(g, w),
           most = (uint64_t)sym_upper(t, y->size[0]);
  bool fits = padded <= room + result; /* before there is a result */
  uint64_t rows = min_u64(most, y->spatial == 1 ? PLACES_MAX : ROWS_MAX);
  while (rows && padded + band_bytes(g, w, rows) > room + (w->pads ? freed : 0))
    rows--;
  if (!fits || !rows || rows == most ||
      w->work / most * rows < BAND_PRODUCTS_MIN + result / BYTES_A_PRODUCT)
    return (Bands){0};
  return (Bands){
      .count = (uint32_t)((most + rows - 1) / rows), .rows = (int64_t)rows, .loop = true};
}

/* The convolution of the band that begins at that row of the result, alone. */
static Windows band_from(Builder *b, const Windows *whole, ValueId x, SymInt rows, SymInt first) {
  SymTable *t = &b->g->syms;
  Windows w = *whole;
  Geometry *y = &w.geometry;
  y->x = x;
  y->direct = 0;
  w.pads = false;
  y->size[0] = y->places = rows;
  y->offset = sym_mul(t, first, y->stride[0]);
  for (uint32_t i = 0; i < y->spatial; i++)
    y->before[i] = y->after[i] = 0;
  for (uint32_t i = 1; i < y->spatial; i++) {
    y->places = sym_mul(t, y->places, y->size[i]);
    y->offset = sym_mul(t, y->offset, value_dim(b->g, x, 2 + i));
  }
  return w;
}

ValueId window_rows_build(Builder *b, const Windows *w, int64_t most) {
  Graph *g = b->g;
  SymTable *t = &g->syms;
  SymInt all = w->geometry.size[0], rows = sym_lower(t, all) < most ? sym_min(t, all, most) : most;
  const Type type = *value_type(g, w->result);
  ValueId x = windows_padded(b, w),
          y = build(b, OP_FULL, A_INTS(type.dims, type.rank), A_INT(0), A_DTYPE((DType)type.dtype)),
          number = build(b, OP_LOOP, A_INT(sym_ceildiv(t, all, most)), A_OPT(0), A_VALS(&y, 1));
  if (b->status != STATUS_OK)
    return 0;
  SymInt first = value_type(g, number)->dims[0];
  if (most > 1)
    first = sym_min(t, sym_mul(t, first, most), sym_max(t, 0, sym_sub(t, all, most)));
  const Windows band = band_from(b, w, x, rows, first);
  ValueId columns = windows_columns(b, &band), value = windows_product(b, &band, columns);
  int64_t phases = w->geometry.phases[0];
  first = sym_mul(t, first, phases);
  y = build(b, OP_SLICE_SCATTER, A_VAL(number + 1), A_VAL(value), A_INT(2), A_INT(first),
            A_INT(sym_add(t, first, sym_mul(t, rows, phases))), A_INT(1));
  return build(b, OP_NEXT, A_OPT(0), A_VALS(&y, 1));
}

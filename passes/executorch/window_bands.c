/* See window_bands.h.
 *
 *   y = full                          or x itself, when it is not needed any more
 *   rows of x -> columns -> product   for each band
 *   y = slice_scatter(y, product)
 *
 * slice_scatter writes over its operand (OpRow.alias), so that there is one y. Where that is x, the
 * rows of x that the next band needs are copied before this band is written; a result of less
 * channels is that of x without the last ones. Long rows are cut instead, those of a
 * recording with a row for each electrode. */
#include "passes/executorch/window_bands.h"

#include "passes/executorch/liveness.h"
#include "passes/executorch/window_parts.h"
#include "passes/executorch/window_rows.h"

enum { COUNT_MAX = 64 };

/* What band `first`..`first + rows` reads of x. */
typedef struct Rows {
  int64_t begin, end;   /* within x */
  int64_t above, below; /* zeros around them */
} Rows;

/* Elements of x along a dim that so many windows next to each other read. */
static int64_t reach(const Geometry *y, uint32_t axis, int64_t windows) {
  return (windows - 1) * y->stride[axis] + (y->kernel[axis] - 1) * y->dilation[axis] + 1;
}

static Rows rows_of(const Graph *g, const Windows *w, uint32_t axis, int64_t first, int64_t rows) {
  const Geometry *y = &w->geometry;
  int64_t size = value_dim(g, y->x, 2 + axis), begin = first * y->stride[axis] - y->before[axis];
  int64_t end = begin + reach(y, axis, rows);
  Rows r = {begin > 0 ? begin : 0, end < size ? end : size};
  r.above = r.begin - begin;
  r.below = end - r.end;
  return r;
}

static int64_t rows_from(const Windows *w, Bands bands, int64_t first) {
  int64_t left = w->geometry.size[bands.axis] - first;
  return left < bands.rows ? left : bands.rows;
}

/* Each band reads something of x, not zeros alone. */
static bool all_read_x(const Graph *g, const Windows *w, Bands bands) {
  for (int64_t first = 0; first < w->geometry.size[bands.axis]; first += bands.rows) {
    Rows r = rows_of(g, w, bands.axis, first, rows_from(w, bands, first));
    if (r.begin >= r.end)
      return false;
  }
  return true;
}

/* Whether a band has its rows of x cut out: to be padded, or as their offset in x is no constant.
 */
static bool cuts_rows(const Graph *g, const Windows *w, uint32_t axis) {
  bool cuts = w->pads;
  for (uint32_t i = axis + 1; i < w->geometry.spatial; i++)
    cuts |= !sym_is_const(value_dim(g, w->geometry.x, 2 + i));
  return cuts;
}

static BandBytes band_bytes(const Graph *g, const Windows *w, uint32_t axis, int64_t rows) {
  const Geometry *y = &w->geometry;
  uint64_t places =
      (uint64_t)rows * (uint64_t)sym_upper(&g->syms, y->batch) * dtype_size(value_dtype(g, y->x));
  for (uint32_t i = 0; i < y->spatial; i++)
    places *= i == axis ? 1 : (uint64_t)sym_upper(&g->syms, y->size[i]);
  uint64_t columns = places * (uint64_t)windows_channels(w) * (uint64_t)y->taps,
           product = places * (uint64_t)w->out;
  return (BandBytes){align_up(columns, PLAN_ALIGNMENT), align_up(product, PLAN_ALIGNMENT)};
}

BandBytes window_band_bytes(const Graph *g, const Windows *w, int64_t rows) {
  return band_bytes(g, w, 0, rows);
}

/* The most bytes in use beside x and the result. Nothing overflows: windows_read has computed as
 * much for all rows. */
static uint64_t bytes_of_band(const Graph *g, const Windows *w, Bands bands) {
  const Geometry *y = &w->geometry;
  const SymTable *t = &g->syms;
  uint64_t sample = (uint64_t)sym_upper(t, y->batch) * dtype_size(value_dtype(g, y->x));
  uint64_t channels = (uint64_t)windows_channels(w), places = (uint64_t)bands.rows;
  uint64_t plain = (uint64_t)reach(y, bands.axis, bands.rows), padded = plain;
  for (uint32_t i = 0; i < y->spatial; i++) {
    if (i == bands.axis)
      continue;
    uint64_t length = (uint64_t)sym_upper(t, value_dim(g, y->x, 2 + i));
    plain *= length;
    padded *= length + (uint64_t)(y->before[i] + y->after[i]);
    places *= (uint64_t)sym_upper(t, y->size[i]);
  }
  const BandBytes bytes = band_bytes(g, w, bands.axis, bands.rows);
  uint64_t slice =
      cuts_rows(g, w, bands.axis) ? align_up(sample * (uint64_t)y->in * plain, PLAN_ALIGNMENT) : 0;
  padded = w->pads ? align_up(sample * channels * padded, PLAN_ALIGNMENT) : 0;
  uint64_t columns = bytes.columns, product = bytes.product;
  bool permuted = windows_are_permuted(y);
  uint64_t other =
      permuted ? max_u64(slice, product) : slice; /* rows to come, or the other order */
  uint64_t need =
      max_u64(max_u64(slice + padded, padded + columns), product + max_u64(columns, other));
  if (w->part) { /* of the slice some channels, while there is the sum of those before */
    uint64_t some = w->pads ? align_up(sample * channels * plain, PLAN_ALIGNMENT) : 0;
    need = max_u64(max_u64(some, columns) + padded, columns + product);
    need += slice + product;
  }
  if (!bands.over_x || w->out == y->in)
    return need;
  uint64_t widened = align_up(sample * (uint64_t)y->in * places, PLAN_ALIGNMENT);
  return max_u64(need, product + widened + slice);
}

bool window_bands_fit_over_x(const Graph *g, const Windows *w) {
  const Geometry *y = &w->geometry;
  const Type *x = value_type(g, y->x), *t = value_type(g, w->result);
  return y->stride[0] == 1 && windows_phases(y) == 1 && x->dtype == t->dtype && w->out <= y->in &&
         x->dims[0] == t->dims[0] &&
         memcmp(x->dims + 2, t->dims + 2, y->spatial * sizeof *x->dims) == 0;
}

/* The fewest bands along that dim. */
static Bands bands_along(const Graph *g, const Windows *w, Bands bands, uint64_t room) {
  const Geometry *y = &w->geometry;
  int64_t all = y->size[bands.axis];
  if (!sym_is_const(all) || !sym_is_const(value_dim(g, y->x, 2 + bands.axis)))
    return (Bands){0};
  for (uint32_t count = 2;
       count <= COUNT_MAX && count <= all && w->work / count >= BAND_PRODUCTS_MIN; count++) {
    bands.rows = (all + count - 1) / count;
    bands.count = (uint32_t)((all + bands.rows - 1) / bands.rows);
    if (bands.over_x && bands.rows < y->before[0])
      break;
    if (bytes_of_band(g, w, bands) <= room && all_read_x(g, w, bands))
      return bands;
  }
  return (Bands){0};
}

Bands window_bands(const Graph *g, const Windows *w, bool over_x, uint64_t room) {
  Bands rows = bands_along(g, w, (Bands){.over_x = over_x}, room);
  if (rows.count || over_x || w->geometry.spatial < 2)
    return rows;
  return bands_along(g, w, (Bands){.axis = 1}, room);
}

/* The convolution of one band alone; `from` has the rows of x that it reads. */
static Windows band_at(Builder *b, const Windows *whole, ValueId from, Bands bands, int64_t first) {
  Graph *g = b->g;
  Windows w = *whole;
  Geometry *y = &w.geometry;
  int64_t count = rows_from(whole, bands, first);
  Rows rows = rows_of(g, whole, bands.axis, first, count);
  y->size[bands.axis] = count;
  y->direct = 0;
  y->places = 1;
  y->before[bands.axis] = rows.above;
  y->after[bands.axis] = rows.below;
  for (uint32_t i = 0; i < y->spatial; i++)
    y->places = sym_mul(&g->syms, y->places, y->size[i]);
  if (cuts_rows(g, whole, bands.axis)) {
    y->x = build_slice(b, from, 2 + bands.axis, rows.begin, rows.end, 1);
    w.pads = y->bias_row;
    for (uint32_t i = 0; i < y->spatial; i++)
      w.pads |= y->before[i] > 0 || y->after[i] > 0;
    return w;
  }
  y->x = from; /* the columns begin further down */
  y->offset = rows.begin;
  for (uint32_t i = bands.axis + 1; i < y->spatial; i++)
    y->offset *= value_dim(g, whole->geometry.x, 2 + i);
  return w;
}

/* What the bands are written over. */
static ValueId start(Builder *b, const Windows *w, Bands bands) {
  Dims dims = value_dims(b->g, w->result);
  if (bands.over_x)
    return w->geometry.x;
  dims.d[0] = w->geometry.batch; /* of one sample, perhaps */
  return build(b, OP_FULL, A_INTS(dims.d, dims.rank), A_INT(0),
               A_DTYPE(value_dtype(b->g, w->result)));
}

/* y with the rows of that band. */
static ValueId write_band(Builder *b, const Windows *w, Bands bands, ValueId y, ValueId band,
                          int64_t first) {
  int64_t phases = w->geometry.phases[bands.axis], end = first + rows_from(w, bands, first);
  if (bands.over_x && band) /* as many channels as x */
    band = build_pad(b, band, 1, 0, w->geometry.in - value_dim(b->g, band, 1));
  if (b->status != STATUS_OK)
    return 0;
  return build(b, OP_SLICE_SCATTER, A_VAL(y), A_VAL(band), A_INT(2 + bands.axis),
               A_INT(first * phases), A_INT(end * phases), A_INT(1));
}

static ValueId build_rows(Builder *b, const Windows *w, Bands bands) {
  ValueId x = w->geometry.x, y = start(b, w, bands);
  bool cuts = cuts_rows(b->g, w, bands.axis);
  Windows next = band_at(b, w, x, bands, 0);
  int64_t all = w->geometry.size[bands.axis];
  for (int64_t first = 0, end; first < all && b->status == STATUS_OK; first = end) {
    Windows band = next;
    ValueId value = window_parts_build(b, &band, NULL);
    end = first + rows_from(w, bands, first);
    bool last = end == all;
    if (!last && cuts)
      next = band_at(b, w, bands.over_x ? y : x, bands, end);
    y = write_band(b, w, bands, y, value, first);
    if (!last && !cuts)
      next = band_at(b, w, bands.over_x ? y : x, bands, end);
  }
  if (bands.over_x && b->status == STATUS_OK)
    y = build_slice(b, y, 1, 0, w->out, 1);
  return b->status == STATUS_OK ? y : 0;
}

/* The samples one after the other, each in bands of its own. */
static ValueId build_samples(Builder *b, const Windows *w, Bands bands) {
  Windows one = windows_of_sample(b->g, w);
  Bands rows = bands;
  rows.samples = 0;
  ValueId y = start(b, w, bands);
  for (int64_t i = 0; i < bands.samples && b->status == STATUS_OK; i++) {
    one.geometry.x = build_slice(b, w->geometry.x, 0, i, i + 1, 1);
    ValueId value = bands.count > 1 ? build_rows(b, &one, rows) : window_parts_build(b, &one, NULL);
    if (b->status == STATUS_OK)
      y = build(b, OP_SLICE_SCATTER, A_VAL(y), A_VAL(value), A_INT(0), A_INT(i), A_INT(i + 1),
                A_INT(1));
  }
  return b->status == STATUS_OK ? y : 0;
}

ValueId window_bands_build(Builder *b, const Windows *w, Bands bands) {
  if (bands.loop)
    return window_rows_build(b, w, bands.rows);
  if (bands.samples)
    return build_samples(b, w, bands);
  return bands.count > 1 ? build_rows(b, w, bands) : window_parts_build(b, w, NULL);
}

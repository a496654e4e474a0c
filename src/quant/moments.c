/* See moments.h. */
#include "quant/moments.h"

#include <math.h>

#include "interp/interp.h"
#include "ops/gemm.h"
#include "quant/conv_windows.h"

typedef struct Collection {
  const Graph *g;
  const Moments *list;
  const uint32_t *index; /* by value: 1 + its first place in list, or 0 */
  const uint32_t *next;  /* by place: 1 + the next one of the same value, or 0 */
} Collection;

static uint64_t row_size(const Moments *m) { return m->groups * m->columns; }

/* Adds the products of all columns of a window of a group, of rows that are finite. */
static void add_window(const Moments *m, const float *rows, uint64_t count, uint64_t group,
                       uint64_t begin) {
  uint64_t width = moments_width(m->columns), left = m->columns - begin,
           column = group * m->columns + begin;
  int64_t n = (int64_t)(left < width ? left : width);
  Gemm product = {.dtype = DTYPE_F32,
                  .trans_a = true,
                  .m = n,
                  .n = n,
                  .k = (int64_t)count,
                  .alpha = 1,
                  .beta = 1,
                  .a = rows + column,
                  .lda = (int64_t)row_size(m),
                  .b = rows + column,
                  .ldb = (int64_t)row_size(m),
                  .c = m->sums + column * width,
                  .ldc = (int64_t)width};
  gemm(&product);
}

static bool is_finite(const float *row, uint64_t columns) {
  for (uint64_t i = 0; i < columns; i++)
    if (!isfinite(row[i]))
      return false;
  return true;
}

static void add_rows(const Moments *m, const float *x, uint64_t rows) {
  uint64_t size = row_size(m);
  for (uint64_t begin = 0, end; begin < rows; begin = end + 1) {
    for (end = begin; end < rows && is_finite(x + end * size, size);)
      end++;
    for (uint64_t group = 0; end > begin && group < m->groups; group++)
      for (uint64_t at = 0; at < m->columns; at += OBSERVE_WINDOW)
        add_window(m, x + begin * size, end - begin, group, at);
  }
}

/* Which of `total` rows is the i-th that is taken: those of multiples of the golden ratio are
 * spread evenly however many there are (Knuth, volume 3, 6.4). */
static uint64_t pick(const Moments *m, uint64_t i, uint64_t total) {
  const uint64_t golden = 0x9E3779B97F4A7C15; /* of 2^64 */
  if (m->most == 0 || total <= m->most)
    return i;
  return ((i * golden) >> 32) * total >> 32;
}

static uint64_t picked(const Moments *m, uint64_t total) {
  return m->most == 0 || total < m->most ? total : m->most;
}

enum { CHUNK = 1 << 18 }; /* elements that are gathered at a time */

/* Writes row i of what a user of rows has. */
typedef void FillRow(const void *user, uint64_t i, float *row);

/* Of `total` rows as many as m takes. */
static void add_picked(const Moments *m, uint64_t total, FillRow *fill, const void *user) {
  uint64_t size = row_size(m), most = CHUNK / size + 1, rows = picked(m, total);
  float *some = xrealloc(NULL, most * size * sizeof *some);
  for (uint64_t begin = 0; begin < rows; begin += most) {
    uint64_t count = rows - begin < most ? rows - begin : most;
    for (uint64_t i = 0; i < count; i++)
      fill(user, pick(m, begin + i, total), some + i * size);
    add_rows(m, some, count);
  }
  xfree(some);
}

typedef struct Windows {
  ConvWindows w;
  const float *data;
} Windows;

static void fill_window(const void *user, uint64_t i, float *row) {
  const Windows *w = user;
  conv_window(&w->w, w->data, (int64_t)i, row);
}

static void add_windows(const Graph *g, const Moments *m, const Tensor *t) {
  Windows w = {.data = t->data};
  if (conv_windows(&w.w, g, m->window, t) && (uint64_t)(w.w.channels * w.w.taps) == row_size(m))
    add_picked(m, (uint64_t)w.w.count, fill_window, &w);
}

static void fill_row(const void *user, uint64_t i, float *row) {
  const Tensor *t = user;
  uint64_t columns = (uint64_t)t->dims[t->rank - 1];
  memcpy(row, (const float *)t->data + i * columns, columns * sizeof *row);
}

static void add_matrix(const Moments *m, const Tensor *t) {
  if (t->rank == 0 || t->dims[t->rank - 1] != (int64_t)m->columns)
    return;
  uint64_t total = (uint64_t)tensor_numel(t) / m->columns;
  if (picked(m, total) == total)
    add_rows(m, t->data, total);
  else
    add_picked(m, total, fill_row, t);
}

static void watch(void *user, ValueId v, Tensor *t) {
  const Collection *c = user;
  for (uint32_t i = c->index[v]; i && t->dtype == DTYPE_F32; i = c->next[i - 1]) {
    const Moments *m = &c->list[i - 1];
    if (m->window)
      add_windows(c->g, m, t);
    else
      add_matrix(m, t);
  }
}

/* Runs the next sample, if there is one, and adds to the sums of c; NULL: to none. */
static Status run_next(DataSet *set, MadeSamples *made, DiagSink *sink, Collection *c,
                       Arena *sample, bool *more) {
  const Graph *g = made->g;
  arena_reset(sample);
  Tensor *inputs = ARENA_ARRAY(sample, Tensor, g->input_count + 1);
  TRY(set ? dataset_next(set, sample, inputs, more)
          : made_samples_next(made, sample, inputs, more, sink));
  return *more ? interp_watch(g, inputs, g->input_count, sink, c ? watch : NULL, c) : STATUS_OK;
}

/* Chooses sizes for which the model runs: symbols may have to fit each other where nothing says so,
 * as the length of a mask that is that of the tokens and the cache together. Where no choice is
 * right, the first one stays, and what is wrong with it is reported later. */
static void fit_sizes(MadeSamples *made, Arena *sample) {
  static const int64_t divisors[] = {1, 4, INT64_MAX};
  Status status = STATUS_INVALID;
  DiagSink silent;
  diag_sink_init_silent(&silent);
  for (size_t i = 0; i < COUNT_OF(divisors) && status != STATUS_OK; i++) {
    bool more;
    made_samples_restart(made, divisors[i]);
    status = run_next(NULL, made, &silent, NULL, sample, &more);
    made_samples_restart(made, status == STATUS_OK ? divisors[i] : 1);
  }
  diag_sink_release(&silent);
}

static Status run_all(DataSet *set, MadeSamples *made, DiagSink *sink, Collection *c,
                      Arena *sample) {
  bool more = true;
  Status status = STATUS_OK;
  for (uint64_t k = 0; status == STATUS_OK && more; k++) {
    status = run_next(set, made, sink, c, sample, &more);
    if (status != STATUS_OK && set && more)
      dataset_refused(set, k);
  }
  return status;
}

Status moments_run(const Graph *g, const Moments *list, uint32_t count, DataSet *set,
                   DiagSink *sink) {
  Arena arena = {0}, sample = {0};
  uint32_t *index = ARENA_ARRAY(&arena, uint32_t, g->value_count),
           *next = ARENA_ARRAY(&arena, uint32_t, (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++) {
    next[i] = index[list[i].value];
    index[list[i].value] = i + 1;
  }
  MadeSamples made;
  made_samples_init(&made, g, &arena);
  if (!set && g->syms.symbol_count)
    fit_sizes(&made, &sample);
  Status status = run_all(set, &made, sink, &(Collection){g, list, index, next}, &sample);
  arena_release(&sample);
  arena_release(&arena);
  return status;
}

/* See moments.h. */
#include "quant/moments.h"

#include <math.h>

#include "interp/interp.h"
#include "ops/gemm.h"

typedef struct Collection {
  const Moments *list;
  const uint32_t *index; /* by value: 1 + its place in list, or 0 */
} Collection;

/* Adds the products of all columns of a window, of rows that are finite. */
static void add_window(const Moments *m, const float *rows, uint64_t count, uint64_t begin) {
  uint64_t width = moments_width(m->columns), left = m->columns - begin;
  int64_t n = (int64_t)(left < width ? left : width);
  Gemm product = {.dtype = DTYPE_F32,
                  .trans_a = true,
                  .m = n,
                  .n = n,
                  .k = (int64_t)count,
                  .alpha = 1,
                  .beta = 1,
                  .a = rows + begin,
                  .lda = (int64_t)m->columns,
                  .b = rows + begin,
                  .ldb = (int64_t)m->columns,
                  .c = m->sums + begin * width,
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
  for (uint64_t begin = 0, end; begin < rows; begin = end + 1) {
    for (end = begin; end < rows && is_finite(x + end * m->columns, m->columns);)
      end++;
    for (uint64_t at = 0; end > begin && at < m->columns; at += OBSERVE_WINDOW)
      add_window(m, x + begin * m->columns, end - begin, at);
  }
}

static void watch(void *user, ValueId v, Tensor *t) {
  const Collection *c = user;
  const Moments *m = c->index[v] ? &c->list[c->index[v] - 1] : NULL;
  if (m && t->dtype == DTYPE_F32 && t->rank && t->dims[t->rank - 1] == (int64_t)m->columns)
    add_rows(m, t->data, (uint64_t)tensor_numel(t) / m->columns);
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
  for (bool more = true; more;)
    TRY(run_next(set, made, sink, c, sample, &more));
  return STATUS_OK;
}

Status moments_run(const Graph *g, const Moments *list, uint32_t count, DataSet *set,
                   DiagSink *sink) {
  Arena arena = {0}, sample = {0};
  uint32_t *index = ARENA_ARRAY(&arena, uint32_t, g->value_count);
  for (uint32_t i = 0; i < count; i++)
    index[list[i].value] = i + 1;
  MadeSamples made;
  made_samples_init(&made, g, &arena);
  if (!set && g->syms.symbol_count)
    fit_sizes(&made, &sample);
  Status status = run_all(set, &made, sink, &(Collection){list, index}, &sample);
  arena_release(&sample);
  arena_release(&arena);
  return status;
}

/* See compare.h. Threads take samples one after the other; each runs the graph in floats and keeps
 * the values that are compared, then the quantized graph, then that once more, with all values that
 * were quantized set to those in floats. Sums of a sample are added in the order of the samples. */
#include "quant/compare.h"

#include <math.h>
#include <pthread.h>

#include "interp/interp.h"
#include "support/parallel.h"

typedef struct Comparison {
  Compare *c;
  DataSet *set;
  DiagSink *sink;
  ObserveProgress *progress;
  uint32_t *kept; /* by value of the plain graph: 1 + its place in Worker.kept */
  uint32_t kept_count;
  uint32_t *first, *next; /* by value of the quantized graph: 1 + its first pair; by pair */
  ValueId *forced;        /* by value of the quantized graph: the value in floats */
  pthread_mutex_t lock;
  pthread_cond_t added;
  uint64_t samples, done; /* taken, and added to the sums */
  bool failed, data_failed;
  struct Worker *workers;
} Comparison;

typedef struct Worker {
  Comparison *o;
  DiagSink sink; /* drops its text: a failed sample runs again to report */
  Arena arena;   /* of one sample */
  Tensor *inputs, *kept;
  CompareSums *all, *own; /* of one sample, by pair */
  bool forcing;
  uint64_t sample;
  Status status;
} Worker;

/* --- sums --- */

static bool same_shape(const Tensor *a, const Tensor *b) {
  return dims_same(a->dims, a->rank, b->dims, b->rank);
}

static void add_element(CompareSums *sums, double x, double y) {
  if (!isfinite(x))
    return;
  sums->signal += x * x;
  sums->noise += (x - y) * (x - y);
  sums->other += y * y;
  sums->product += x * y;
  sums->count++;
}

static void add_tensor(CompareSums *sums, const Tensor *plain, const Tensor *quantized) {
  int64_t count = tensor_numel(plain);
  if (!plain->data || !same_shape(plain, quantized)) /* of sizes that data decide */
    return;
  if (plain->dtype != DTYPE_F32 || quantized->dtype != DTYPE_F32) {
    for (int64_t i = 0; i < count; i++)
      add_element(sums, tensor_load(plain, i), tensor_load(quantized, i));
    return;
  }
  const float *x = plain->data, *y = quantized->data;
  for (int64_t i = 0; i < count; i++)
    add_element(sums, (double)x[i], (double)y[i]);
}

static void add_sums(CompareSums *into, const CompareSums *from) {
  into->signal += from->signal;
  into->noise += from->noise;
  into->other += from->other;
  into->product += from->product;
  into->count += from->count;
}

double compare_sqnr(const CompareSums *sums) {
  if (sums->count == 0 || isnan(sums->noise))
    return NAN;
  return sums->noise == 0 ? INFINITY : 10 * log10(sums->signal / sums->noise);
}

double compare_cosine(const CompareSums *sums) {
  if (sums->count == 0 || isnan(sums->noise))
    return NAN;
  if (sums->signal == 0 || sums->other == 0)
    return sums->signal == sums->other ? 1 : 0;
  return sums->product / (sqrt(sums->signal) * sqrt(sums->other));
}

/* --- one sample --- */

static void keep(void *user, ValueId v, Tensor *tensor) {
  Worker *w = user;
  uint32_t place = w->o->kept[v];
  if (!place)
    return;
  Tensor *to = &w->kept[place - 1];
  uint64_t size = tensor_bytes(tensor);
  *to = *tensor;
  to->data = arena_alloc(&w->arena, (size_t)size + 1);
  to->capacity = size;
  if (size)
    memcpy(to->data, tensor->data, (size_t)size);
}

static void compare(void *user, ValueId v, Tensor *tensor) {
  Worker *w = user;
  const Comparison *o = w->o;
  CompareSums *sums = w->forcing ? w->own : w->all;
  for (uint32_t i = o->first[v]; i; i = o->next[i - 1]) {
    const ComparePair *pair = &o->c->pairs[i - 1];
    if (!w->forcing || !pair->output)
      add_tensor(&sums[i - 1], &w->kept[o->kept[pair->plain] - 1], tensor);
  }
  if (!w->forcing || !o->forced[v])
    return;
  const Tensor *from = &w->kept[o->kept[o->forced[v]] - 1];
  if (from->data && from->dtype == tensor->dtype && same_shape(from, tensor) && from->capacity)
    memcpy(tensor->data, from->data, (size_t)from->capacity);
}

static Status run_sample(Worker *w, DiagSink *sink) {
  const Compare *c = w->o->c;
  uint32_t count = c->plain->input_count;
  w->kept = ARENA_ARRAY(&w->arena, Tensor, w->o->kept_count + 1);
  w->all = ARENA_ARRAY(&w->arena, CompareSums, c->pair_count + 1);
  w->own = ARENA_ARRAY(&w->arena, CompareSums, c->pair_count + 1);
  w->forcing = false;
  TRY(interp_watch(c->plain, w->inputs, count, sink, keep, w));
  TRY(interp_watch(c->quantized, w->inputs, count, sink, compare, w));
  w->forcing = true;
  return interp_watch(c->quantized, w->inputs, count, sink, compare, w);
}

/* --- samples --- */

/* False when there is none left, or something failed. */
static bool take_sample(Worker *w) {
  Comparison *o = w->o;
  bool more = false;
  arena_reset(&w->arena);
  memory_lock(&o->lock);
  w->inputs = ARENA_ARRAY(&w->arena, Tensor, o->c->plain->input_count + 1);
  if (!o->failed && dataset_next(o->set, &w->arena, w->inputs, &more) != STATUS_OK) {
    o->data_failed = o->failed = true;
    more = false;
    pthread_cond_broadcast(&o->added);
  }
  w->sample = o->samples;
  o->samples += more;
  memory_unlock(&o->lock);
  return more;
}

/* Waits until the samples before were added, then adds this one. */
static void finish_sample(Worker *w) {
  Comparison *o = w->o;
  pthread_mutex_lock(&o->lock);
  if (w->status != STATUS_OK)
    o->failed = true;
  while (!o->failed && o->done < w->sample)
    pthread_cond_wait(&o->added, &o->lock);
  for (uint32_t i = 0; i < o->c->pair_count && !o->failed; i++) {
    add_sums(&o->c->pairs[i].all, &w->all[i]);
    add_sums(&o->c->pairs[i].own, &w->own[i]);
  }
  o->done++;
  if (o->progress)
    o->progress->done++;
  pthread_cond_broadcast(&o->added);
  pthread_mutex_unlock(&o->lock);
}

static void run_samples(void *user) {
  Worker *w = user;
  diag_sink_init_silent(&w->sink);
  while (w->status == STATUS_OK && take_sample(w)) {
    w->status = run_sample(w, &w->sink);
    finish_sample(w);
  }
  diag_sink_release(&w->sink);
}

/* Without memory for a sample, those behind it do not wait for it. */
static void give_up(Comparison *o) {
  pthread_mutex_lock(&o->lock);
  o->failed = true;
  pthread_cond_broadcast(&o->added);
  pthread_mutex_unlock(&o->lock);
}

static void work(void *user, size_t begin, size_t end) {
  Comparison *o = user;
  for (size_t i = begin; i < end; i++) {
    o->workers[i].o = o;
    size_t failed = memory_try(run_samples, &o->workers[i]);
    if (failed) {
      give_up(o);
      memory_fail(failed);
    }
  }
}

/* The first sample that failed runs once more, for its messages. */
static Status report_failure(Comparison *o, unsigned workers) {
  Worker *first = NULL;
  for (unsigned i = 0; i < workers; i++)
    if (o->workers[i].status != STATUS_OK && (!first || o->workers[i].sample < first->sample))
      first = &o->workers[i];
  if (!first)
    return o->data_failed ? STATUS_INVALID : STATUS_OK;
  if (o->data_failed)
    return first->status;
  Status again = run_sample(first, o->sink);
  if (again != STATUS_OK)
    dataset_refused(o->set, first->sample);
  return again == STATUS_OK ? first->status : again;
}

static void keep_value(Comparison *o, ValueId v) {
  if (!o->kept[v])
    o->kept[v] = ++o->kept_count;
}

static void make_tables(Comparison *o, Arena *arena) {
  const Compare *c = o->c;
  o->kept = ARENA_ARRAY(arena, uint32_t, c->plain->value_count);
  o->first = ARENA_ARRAY(arena, uint32_t, c->quantized->value_count);
  o->forced = ARENA_ARRAY(arena, ValueId, c->quantized->value_count);
  o->next = ARENA_ARRAY(arena, uint32_t, c->pair_count + 1);
  for (uint32_t i = 0; i < c->pair_count; i++) {
    ComparePair *pair = &c->pairs[i];
    pair->all = pair->own = (CompareSums){0};
    keep_value(o, pair->plain);
    o->next[i] = o->first[pair->quantized];
    o->first[pair->quantized] = i + 1;
    if (!pair->output && value_def(c->quantized, pair->quantized))
      o->forced[pair->quantized] = pair->plain;
  }
  for (uint32_t i = 0; i < c->force_count; i++) {
    keep_value(o, c->forces[i].plain);
    o->forced[c->forces[i].quantized] = c->forces[i].plain;
  }
}

Status compare_run(Compare *c, DataSet *set, ObserveProgress *progress, DiagSink *sink) {
  Arena arena = {0};
  Comparison o = {.c = c, .set = set, .sink = sink, .progress = progress};
  uint64_t samples = dataset_count(set);
  unsigned workers = parallel_threads();
  if (workers > samples)
    workers = samples ? (unsigned)samples : 1;
  o.workers = ARENA_ARRAY(&arena, Worker, workers);
  make_tables(&o, &arena);
  pthread_mutex_init(&o.lock, NULL);
  pthread_cond_init(&o.added, NULL);
  if (progress)
    progress->total = samples;
  parallel_for(workers, 1, work, &o);
  Status status = report_failure(&o, workers);
  for (unsigned i = 0; i < workers; i++)
    arena_release(&o.workers[i].arena);
  pthread_cond_destroy(&o.added);
  pthread_mutex_destroy(&o.lock);
  arena_release(&arena);
  return status;
}

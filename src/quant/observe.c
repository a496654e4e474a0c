/* See observe.h. Threads take samples from the data set one after the other; each counts values in
 * working memory of its own and adds them to the statistics of all under the lock of the value, so
 * that memory grows with the values and not with values times threads. */
#include "quant/observe.h"

#include <pthread.h>
#include <stdatomic.h>

#include "interp/interp.h"
#include "support/parallel.h"

enum { LOCKS = 64 };

typedef struct Observation {
  Graph *g;
  DataSet *set;
  DiagSink *sink;
  uint32_t *index; /* by value: 1 + its place in stats, or 0 */
  Stats *stats;
  ObserveProgress *progress;
  pthread_mutex_t read, locks[LOCKS]; /* read: the data set and sink; locks: stats */
  uint64_t samples;                   /* taken so far */
  atomic_bool failed;
  bool data_failed; /* reported already */
  struct Worker *workers;
} Observation;

/* What a thread works with. */
typedef struct Worker {
  Observation *o;
  StatsScratch *scratch;
  DiagSink sink; /* drops its text: a failed sample runs again to report */
  Arena arena;   /* of one sample */
  Tensor *inputs;
  uint64_t sample;
  Status status;
} Worker;

/* --- values --- */

bool observe_accepts(const Graph *g, ValueId v) {
  const Value *value = value_cget(g, v);
  const Type *type = value_type(g, v);
  NodeId def = value_def(g, v);
  if (def && node_cget(g, def)->op == OP_OBSERVE) /* a mark, which is no value of its own */
    return false;
  return (value->kind == VALUE_INPUT || value->kind == VALUE_RESULT) && type->kind == TYPE_TENSOR &&
         dtype_is_float((DType)type->dtype);
}

ValueId *observe_values(const Graph *g, Arena *arena, uint32_t *count) {
  ValueId *values = ARENA_ARRAY(arena, ValueId, g->value_count);
  *count = 0;
  for (uint32_t i = 0; i < g->input_count; i++)
    if (observe_accepts(g, g->inputs[i]))
      values[(*count)++] = g->inputs[i];
  for (FOR_NODES(g, n))
    for (uint32_t i = 0; i < node_cget(g, n)->result_count; i++)
      if (observe_accepts(g, node_result(g, n, i)))
        values[(*count)++] = node_result(g, n, i);
  return values;
}

/* Channels of a convolution's result, which equalization needs the extremes of; 0 for others. */
static uint32_t channels_of(const Graph *g, ValueId v) {
  NodeId n = value_def(g, v);
  const Type *type = value_type(g, v);
  if (!n || node_cget(g, n)->op != OP_CONVOLUTION || type->rank < 2 ||
      !sym_is_const(type->dims[1]) || type->dims[1] > UINT16_MAX)
    return 0;
  return (uint32_t)type->dims[1];
}

/* --- one sample --- */

static void take_values(Worker *w, Stats *stats, pthread_mutex_t *lock, const Tensor *t) {
  const float *values = t->data;
  uint64_t count = (uint64_t)tensor_numel(t), at = 0;
  if (count <= STATS_FEW) {
    memory_lock(lock);
    stats_add(stats, w->scratch, values, count);
    memory_unlock(lock);
    at = count;
  }
  while (at < count) {
    uint64_t part = count - at < STATS_COUNT_MAX ? count - at : STATS_COUNT_MAX;
    stats_count(w->scratch, values + at, part);
    at += part;
    memory_lock(lock);
    stats_flush(stats, w->scratch);
    memory_unlock(lock);
  }
  if (stats->channels == 0 || t->rank < 2 || t->dims[1] != stats->channels)
    return;
  memory_lock(lock);
  stats_add_channels(stats, values, (uint64_t)t->dims[0],
                     (uint64_t)dims_count(t->dims, 2, t->rank));
  memory_unlock(lock);
}

static void watch(void *user, ValueId v, Tensor *tensor) {
  Worker *w = user;
  uint32_t index = w->o->index[v];
  if (!index)
    return;
  pthread_mutex_t *lock = &w->o->locks[index % LOCKS];
  if (tensor->dtype == DTYPE_F32) {
    take_values(w, &w->o->stats[index - 1], lock, tensor);
    return;
  }
  Tensor wide = *tensor;
  int64_t count = tensor_numel(tensor);
  wide.dtype = DTYPE_F32;
  wide.capacity = (uint64_t)count * sizeof(float);
  wide.data = xrealloc(NULL, wide.capacity ? wide.capacity : 1);
  for (int64_t i = 0; i < count; i++)
    ((float *)wide.data)[i] = (float)tensor_load(tensor, i);
  take_values(w, &w->o->stats[index - 1], lock, &wide);
  xfree(wide.data);
}

/* --- samples --- */

/* False when there is none left, or something failed. */
static bool take_sample(Worker *w) {
  Observation *o = w->o;
  bool more = false;
  arena_reset(&w->arena);
  memory_lock(&o->read);
  w->inputs = ARENA_ARRAY(&w->arena, Tensor, o->g->input_count + 1);
  if (!atomic_load(&o->failed)) {
    if (dataset_next(o->set, &w->arena, w->inputs, &more) != STATUS_OK) {
      o->data_failed = true;
      atomic_store(&o->failed, true);
      more = false;
    }
    w->sample = o->samples;
    o->samples += more;
  }
  memory_unlock(&o->read);
  return more;
}

static void count_done(Observation *o) {
  memory_lock(&o->read);
  if (o->progress)
    o->progress->done++;
  memory_unlock(&o->read);
}

static void work(void *user, size_t begin, size_t end) {
  Observation *o = user;
  for (size_t i = begin; i < end; i++) {
    Worker *w = &o->workers[i];
    w->o = o;
    w->scratch = stats_scratch_new();
    diag_sink_init_silent(&w->sink);
    while (w->status == STATUS_OK && take_sample(w)) {
      w->status = interp_watch(o->g, w->inputs, o->g->input_count, &w->sink, watch, w);
      count_done(o);
    }
    if (w->status != STATUS_OK)
      atomic_store(&o->failed, true);
    stats_scratch_free(w->scratch);
    diag_sink_release(&w->sink);
  }
}

/* The first sample that failed runs once more, for its messages. Samples before it were all taken
 * before it, so that it is the same one each time. */
static Status report_failure(Observation *o, unsigned workers) {
  const Worker *first = NULL;
  for (unsigned i = 0; i < workers; i++)
    if (o->workers[i].status != STATUS_OK && (!first || o->workers[i].sample < first->sample))
      first = &o->workers[i];
  if (!first)
    return o->data_failed ? STATUS_INVALID : STATUS_OK;
  if (o->data_failed)
    return first->status;
  Status again = interp_watch(o->g, first->inputs, o->g->input_count, o->sink, NULL, NULL);
  if (again != STATUS_OK)
    dataset_refused(o->set, first->sample);
  return again == STATUS_OK ? first->status : again;
}

Status observe(Graph *g, const ValueId *values, uint32_t count, DataSet *set, Stats *stats,
               ObserveProgress *progress, DiagSink *sink) {
  Arena arena = {0};
  Observation o = {.g = g, .set = set, .sink = sink, .stats = stats, .progress = progress};
  uint64_t samples = dataset_count(set);
  unsigned workers = parallel_threads();
  if (workers > samples)
    workers = samples ? (unsigned)samples : 1;
  o.workers = ARENA_ARRAY(&arena, Worker, workers);
  o.index = ARENA_ARRAY(&arena, uint32_t, g->value_count);
  for (uint32_t i = 0; i < count; i++) {
    stats_init(&stats[i], channels_of(g, values[i]));
    o.index[values[i]] = i + 1;
  }
  pthread_mutex_init(&o.read, NULL);
  for (unsigned i = 0; i < LOCKS; i++)
    pthread_mutex_init(&o.locks[i], NULL);
  if (progress)
    progress->total = samples;
  parallel_for(workers, 1, work, &o);
  Status status = report_failure(&o, workers);
  for (unsigned i = 0; i < workers; i++)
    arena_release(&o.workers[i].arena);
  pthread_mutex_destroy(&o.read);
  for (unsigned i = 0; i < LOCKS; i++)
    pthread_mutex_destroy(&o.locks[i]);
  arena_release(&arena);
  return status;
}

/* See observe.h. Each thread counts values in working memory of its own and adds them to the
 * statistics of all under the lock of the value, so that memory grows with the values and not with
 * values times threads. */
#include "quant/observe.h"

#include <pthread.h>

#include "interp/interp.h"

enum { LOCKS = 64 };

typedef struct Observation {
  Graph *g;
  uint32_t *index; /* by value: 1 + its place in stats, or 0 */
  Stats *stats;
  pthread_mutex_t locks[LOCKS]; /* of stats */
} Observation;

/* What a thread counts with. */
typedef struct Counter {
  Observation *o;
  StatsScratch *scratch;
} Counter;

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

static void take_values(Counter *c, Stats *stats, pthread_mutex_t *lock, const Tensor *t) {
  const float *values = t->data;
  uint64_t count = (uint64_t)tensor_numel(t), at = 0;
  if (count <= STATS_FEW) {
    memory_lock(lock);
    stats_add(stats, c->scratch, values, count);
    memory_unlock(lock);
    at = count;
  }
  while (at < count) {
    uint64_t part = count - at < STATS_COUNT_MAX ? count - at : STATS_COUNT_MAX;
    stats_count(c->scratch, values + at, part);
    at += part;
    memory_lock(lock);
    stats_flush(stats, c->scratch);
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
  Counter *c = user;
  Observation *o = c->o;
  uint32_t index = o->index[v];
  if (!index)
    return;
  pthread_mutex_t *lock = &o->locks[index % LOCKS];
  if (tensor->dtype == DTYPE_F32) {
    take_values(c, &o->stats[index - 1], lock, tensor);
    return;
  }
  Tensor wide = *tensor;
  int64_t count = tensor_numel(tensor);
  wide.dtype = DTYPE_F32;
  wide.capacity = (uint64_t)count * sizeof(float);
  wide.data = xrealloc(NULL, wide.capacity ? wide.capacity : 1);
  for (int64_t i = 0; i < count; i++)
    ((float *)wide.data)[i] = (float)tensor_load(tensor, i);
  take_values(c, &o->stats[index - 1], lock, &wide);
  xfree(wide.data);
}

static Status run_sample(SampleWorker *w, DiagSink *sink, bool again) {
  const SampleLoop *loop = w->loop;
  Counter *c = w->own;
  c->o = loop->user;
  if (again)
    return interp_watch(c->o->g, w->inputs, loop->input_count, sink, NULL, NULL);
  if (!c->scratch)
    c->scratch = stats_scratch_new();
  return interp_watch(c->o->g, w->inputs, loop->input_count, sink, watch, c);
}

static void free_scratch(SampleWorker *w) {
  Counter *c = w->own;
  stats_scratch_free(c->scratch);
}

Status observe(Graph *g, const ValueId *values, uint32_t count, DataSet *set, Stats *stats,
               SampleProgress *progress, DiagSink *sink) {
  Arena arena = {0};
  Observation o = {.g = g, .stats = stats};
  const SampleLoop loop = {.input_count = g->input_count,
                           .own_size = sizeof(Counter),
                           .user = &o,
                           .run = run_sample,
                           .end = free_scratch};
  o.index = ARENA_ARRAY(&arena, uint32_t, g->value_count);
  for (uint32_t i = 0; i < count; i++) {
    stats_init(&stats[i], channels_of(g, values[i]));
    o.index[values[i]] = i + 1;
  }
  for (unsigned i = 0; i < LOCKS; i++)
    pthread_mutex_init(&o.locks[i], NULL);
  Status status = samples_run(&loop, set, progress, sink);
  for (unsigned i = 0; i < LOCKS; i++)
    pthread_mutex_destroy(&o.locks[i]);
  arena_release(&arena);
  return status;
}

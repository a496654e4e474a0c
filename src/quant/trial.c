/* See trial.h. A thread runs a sample by all trials, one after the other; noise is added in the
 * order of the samples. */
#include "quant/trial.h"

#include <math.h>

#include "interp/interp.h"
#include "support/number.h"
#include "support/parallel.h"

typedef struct Sums {
  double signal, noise;
} Sums;

typedef struct Sample {
  Tensor *inputs;
  Sums *sums; /* by trial and output */
  Status status;
} Sample;

typedef struct Trials {
  const Graph *g;
  Trial *list;
  uint32_t count, output_count, sample_count;
  uint32_t **place; /* by trial, by value: 1 + its place in the list of the trial, or 0 */
  uint32_t *output; /* by value: 1 + its place among the outputs, or 0 */
  Sample *samples;
} Trials;

/* One run of one sample. */
typedef struct Run {
  const Trials *t;
  const Trial *trial; /* NULL: in floats */
  const uint32_t *place;
  Arena *arena;
  Tensor *outputs; /* in floats */
  Sums *sums;      /* by output */
} Run;

static void round_values(const TrialRounding *r, Tensor *t) {
  float *x = t->data, inverse = 1 / r->scale;
  float low = (float)(r->low - r->zero), high = (float)(r->high - r->zero);
  int64_t count = tensor_numel(t);
  for (int64_t i = 0; i < count; i++) {
    float code = x[i] * inverse;
    code = code > low ? code : low;
    code = code < high ? code : high;
    x[i] = round_small_f32(code) * r->scale;
  }
}

static void keep_output(Run *run, uint32_t k, const Tensor *t) {
  Tensor *to = &run->outputs[k];
  uint64_t size = tensor_bytes(t);
  *to = *t;
  to->data = arena_alloc(run->arena, (size_t)size + 1);
  if (size)
    memcpy(to->data, t->data, (size_t)size);
}

static void add_output(Run *run, uint32_t k, const Tensor *t) {
  const Tensor *plain = &run->outputs[k];
  int64_t count = tensor_numel(t);
  if (!plain->data || !dtype_is_float((DType)t->dtype) || tensor_numel(plain) != count)
    return;
  for (int64_t i = 0; i < count; i++) {
    double x = tensor_load(plain, i), y = tensor_load(t, i);
    if (!isfinite(x))
      continue;
    run->sums[k].signal += x * x;
    run->sums[k].noise += isfinite(y) ? (x - y) * (x - y) : INFINITY;
  }
}

static void watch(void *user, ValueId v, Tensor *t) {
  Run *run = user;
  uint32_t place = run->trial ? run->place[v] : 0, output = run->t->output[v];
  if (place && t->dtype == DTYPE_F32)
    round_values(&run->trial->list[place - 1], t);
  if (output && run->trial)
    add_output(run, output - 1, t);
  else if (output)
    keep_output(run, output - 1, t);
}

static Status run_sample(const Trials *t, Sample *s, DiagSink *sink) {
  const Graph *g = t->g;
  Arena arena = {0};
  Run run = {.t = t, .arena = &arena, .outputs = ARENA_ARRAY(&arena, Tensor, t->output_count + 1)};
  Status status = interp_watch(g, s->inputs, g->input_count, sink, watch, &run);
  for (uint32_t k = 0; k < t->count && status == STATUS_OK; k++) {
    run.trial = &t->list[k];
    run.place = t->place[k];
    run.sums = s->sums + (size_t)k * t->output_count;
    status = interp_watch(g, s->inputs, g->input_count, sink, watch, &run);
  }
  arena_release(&arena);
  return status;
}

static void work(void *user, size_t begin, size_t end) {
  Trials *t = user;
  DiagSink sink; /* drops its text: a failed sample runs again to report */
  diag_sink_init_silent(&sink);
  for (size_t i = begin; i < end; i++)
    t->samples[i].status = run_sample(t, &t->samples[i], &sink);
  diag_sink_release(&sink);
}

static void make_tables(Trials *t, Arena *arena) {
  const Graph *g = t->g;
  t->place = ARENA_ARRAY(arena, uint32_t *, t->count + 1);
  t->output = ARENA_ARRAY(arena, uint32_t, g->value_count);
  for (uint32_t i = 0; i < t->output_count; i++)
    t->output[graph_output(g, i)] = i + 1;
  for (uint32_t k = 0; k < t->count; k++) {
    t->place[k] = ARENA_ARRAY(arena, uint32_t, g->value_count);
    for (uint32_t i = 0; i < t->list[k].count; i++)
      if (value_def(g, t->list[k].list[i].value))
        t->place[k][t->list[k].list[i].value] = i + 1;
  }
}

static Status read_samples(Trials *t, DataSet *set, Arena *arena) {
  uint64_t most = dataset_count(set);
  bool more = true;
  t->samples = ARENA_ARRAY(arena, Sample, (size_t)most + 1);
  while (t->sample_count < most) {
    Sample *s = &t->samples[t->sample_count];
    s->inputs = ARENA_ARRAY(arena, Tensor, t->g->input_count + 1);
    s->sums = ARENA_ARRAY(arena, Sums, (size_t)t->count * t->output_count + 1);
    TRY(dataset_next(set, arena, s->inputs, &more));
    if (!more)
      break;
    t->sample_count++;
  }
  return STATUS_OK;
}

static void add_noise(Trials *t) {
  for (uint32_t k = 0; k < t->count; k++) {
    t->list[k].noise = 0;
    for (uint32_t o = 0; o < t->output_count; o++) {
      Sums all = {0, 0};
      for (uint32_t i = 0; i < t->sample_count; i++) {
        const Sums *own = &t->samples[i].sums[(size_t)k * t->output_count + o];
        all.signal += own->signal;
        all.noise += own->noise;
      }
      t->list[k].noise += all.signal > 0 ? all.noise / all.signal : all.noise;
    }
  }
}

Status trial_run(const Graph *g, Trial *trials, uint32_t count, DataSet *set, DiagSink *sink) {
  Arena arena = {0};
  Trials t = {.g = g, .list = trials, .count = count, .output_count = graph_output_count(g)};
  make_tables(&t, &arena);
  Status status = read_samples(&t, set, &arena);
  if (status == STATUS_OK)
    parallel_for(t.sample_count, 1, work, &t);
  for (uint32_t i = 0; i < t.sample_count && status == STATUS_OK; i++)
    if (t.samples[i].status != STATUS_OK)
      status = run_sample(&t, &t.samples[i], sink);
  if (status == STATUS_OK)
    add_noise(&t);
  arena_release(&arena);
  return status;
}

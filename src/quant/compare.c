/* See compare.h. A thread runs the graph in floats and keeps the values that are compared, then the
 * quantized graph, then that once more, with all values that were quantized set to those in floats.
 * Sums of a sample are added in the order of the samples. */
#include "quant/compare.h"

#include <math.h>
#include <stdlib.h>

#include "interp/interp.h"

/* Effects: samples, runs for each sample that is compared, and pairs of a sample, at most; of pairs
 * more than both of these the noisiest. */
enum { EFFECT_SAMPLES = 16, EFFECT_RUNS = 4, EFFECT_PAIRS = 64 };

typedef struct Comparison {
  Compare *c;
  uint64_t effect_step; /* effects are measured on one of so many samples; 0: on none */
  uint64_t effect_pairs;
  uint32_t *outputs, *next_output; /* by value of the plain graph: 1 + its first pair that is an
                                      output; by pair */
  uint32_t *kept;                  /* by value of the plain graph: 1 + its place in Sample.kept */
  uint32_t kept_count;
  uint32_t *first, *next; /* by value of the quantized graph: 1 + its first pair; by pair */
  ValueId *forced;        /* by value of the quantized graph: the value in floats */
} Comparison;

/* Of the sample that a thread runs. */
typedef struct Sample {
  const Comparison *o;
  Arena *arena;
  Tensor *kept;
  CompareSums *all, *own; /* by pair */
  Tensor *noisy;          /* by pair: the value with its own noise; NULL: effects are not wanted */
  double *effects;        /* by pair */
  CompareSums *outputs;   /* by pair that is an output, of a run with one noisy value */
  uint32_t one;           /* the pair of that */
  bool forcing;
} Sample;

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

double compare_effect(const ComparePair *pair) {
  if (pair->effect_samples == 0)
    return NAN;
  return pair->effect == 0 ? INFINITY : -10 * log10(pair->effect / (double)pair->effect_samples);
}

static double or_infinite(double sqnr) { return isnan(sqnr) ? INFINITY : sqnr; }

int compare_damage(const ComparePair *a, const ComparePair *b) {
  double effects[] = {or_infinite(compare_effect(a)), or_infinite(compare_effect(b))};
  double owns[] = {or_infinite(compare_sqnr(&a->own)), or_infinite(compare_sqnr(&b->own))};
  int order = ORDER(effects[0], effects[1]);
  return order ? order : ORDER(owns[0], owns[1]);
}

/* --- one sample --- */

static Tensor copy_of(Arena *arena, const Tensor *tensor) {
  Tensor copy = *tensor;
  uint64_t size = tensor_bytes(tensor);
  copy.data = arena_alloc(arena, (size_t)size + 1);
  copy.capacity = size;
  if (size)
    memcpy(copy.data, tensor->data, (size_t)size);
  return copy;
}

static void overwrite(Tensor *tensor, const Tensor *from) {
  if (from->data && from->dtype == tensor->dtype && same_shape(from, tensor) && from->capacity)
    memcpy(tensor->data, from->data, (size_t)from->capacity);
}

static void keep(void *user, ValueId v, Tensor *tensor) {
  Sample *s = user;
  uint32_t place = s->o->kept[v];
  if (place)
    s->kept[place - 1] = copy_of(s->arena, tensor);
}

static void compare(void *user, ValueId v, Tensor *tensor) {
  Sample *s = user;
  const Comparison *o = s->o;
  CompareSums *sums = s->forcing ? s->own : s->all;
  for (uint32_t i = o->first[v]; i; i = o->next[i - 1]) {
    const ComparePair *pair = &o->c->pairs[i - 1];
    if (!s->forcing || !pair->output)
      add_tensor(&sums[i - 1], &s->kept[o->kept[pair->plain] - 1], tensor);
    if (s->forcing && s->noisy && !pair->output)
      s->noisy[i - 1] = copy_of(s->arena, tensor);
  }
  if (s->forcing && o->forced[v])
    overwrite(tensor, &s->kept[o->kept[o->forced[v]] - 1]);
}

/* In a run in floats: makes one value noisy, and sums up what comes of it. */
static void disturb(void *user, ValueId v, Tensor *tensor) {
  Sample *s = user;
  const Compare *c = s->o->c;
  if (c->pairs[s->one].plain == v)
    overwrite(tensor, &s->noisy[s->one]);
  for (uint32_t i = s->o->outputs[v]; i; i = s->o->next_output[i - 1])
    add_tensor(&s->outputs[i - 1], &s->kept[s->o->kept[v] - 1], tensor);
}

static double noise_of(const CompareSums *sums) {
  return sums->signal > 0 ? sums->noise / sums->signal : sums->noise > 0 ? INFINITY : 0;
}

static int compare_noise(const void *a, const void *b) {
  const double *x = a, *y = b;
  return ORDER(*y, *x);
}

/* What no more than `most` values of the sample have or exceed; 0 where there are not more. */
static double noise_limit(const Sample *s, uint64_t most) {
  uint32_t count = s->o->c->pair_count;
  double *all = ARENA_ARRAY(s->arena, double, count);
  if (count <= most)
    return 0;
  for (uint32_t i = 0; i < count; i++)
    all[i] = noise_of(&s->own[i]);
  qsort(all, count, sizeof *all, compare_noise);
  return all[most - 1];
}

static Status measure_effects(Sample *s, SampleWorker *worker, DiagSink *sink) {
  const Compare *c = s->o->c;
  double limit = noise_limit(s, s->o->effect_pairs);
  for (s->one = 0; s->one < c->pair_count; s->one++) {
    Tensor *noisy = &s->noisy[s->one]; /* not of outputs; inputs are only read */
    if (!value_def(c->plain, c->pairs[s->one].plain) || noise_of(&s->own[s->one]) < limit)
      noisy->data = NULL;
    if (!noisy->data)
      continue;
    memset(s->outputs, 0, c->pair_count * sizeof *s->outputs);
    TRY(interp_watch(c->plain, worker->inputs, worker->loop->input_count, sink, disturb, s));
    for (uint32_t i = 0; i < c->pair_count; i++)
      if (s->outputs[i].signal > 0)
        s->effects[s->one] = fmax(s->effects[s->one], s->outputs[i].noise / s->outputs[i].signal);
  }
  return STATUS_OK;
}

static Status run_sample(SampleWorker *worker, DiagSink *sink, bool again) {
  (void)again;
  const Comparison *o = worker->loop->user;
  const Compare *c = o->c;
  Arena *arena = &worker->arena;
  uint32_t count = worker->loop->input_count;
  Sample *s = worker->own;
  *s = (Sample){.o = o,
                .arena = arena,
                .kept = ARENA_ARRAY(arena, Tensor, o->kept_count + 1),
                .all = ARENA_ARRAY(arena, CompareSums, c->pair_count + 1),
                .own = ARENA_ARRAY(arena, CompareSums, c->pair_count + 1),
                .effects = ARENA_ARRAY(arena, double, c->pair_count)};
  bool effects = o->effect_step && worker->sample % o->effect_step == o->effect_step / 2;
  TRY(interp_watch(c->plain, worker->inputs, count, sink, keep, s));
  TRY(interp_watch(c->quantized, worker->inputs, count, sink, compare, s));
  s->forcing = true;
  if (effects) {
    s->noisy = ARENA_ARRAY(arena, Tensor, c->pair_count);
    s->outputs = ARENA_ARRAY(arena, CompareSums, c->pair_count);
  }
  TRY(interp_watch(c->quantized, worker->inputs, count, sink, compare, s));
  return effects ? measure_effects(s, worker, sink) : STATUS_OK;
}

static void add_sample(SampleWorker *worker) {
  const Sample *s = worker->own;
  const Compare *c = s->o->c;
  for (uint32_t i = 0; i < c->pair_count; i++) {
    add_sums(&c->pairs[i].all, &s->all[i]);
    add_sums(&c->pairs[i].own, &s->own[i]);
    if (s->noisy && s->noisy[i].data) {
      c->pairs[i].effect += s->effects[i];
      c->pairs[i].effect_samples++;
    }
  }
}

/* --- all samples --- */

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
  o->outputs = ARENA_ARRAY(arena, uint32_t, c->plain->value_count);
  o->next_output = ARENA_ARRAY(arena, uint32_t, c->pair_count);
  for (uint32_t i = 0; i < c->pair_count; i++) {
    ComparePair *pair = &c->pairs[i];
    pair->all = pair->own = (CompareSums){0};
    pair->effect = 0;
    pair->effect_samples = 0;
    keep_value(o, pair->plain);
    o->next[i] = o->first[pair->quantized];
    o->first[pair->quantized] = i + 1;
    if (!pair->output && value_def(c->quantized, pair->quantized))
      o->forced[pair->quantized] = pair->plain;
    if (pair->output) {
      o->next_output[i] = o->outputs[pair->plain];
      o->outputs[pair->plain] = i + 1;
    }
  }
  for (uint32_t i = 0; i < c->force_count; i++) {
    keep_value(o, c->forces[i].plain);
    o->forced[c->forces[i].quantized] = c->forces[i].plain;
  }
}

Status compare_run(Compare *c, DataSet *set, SampleProgress *progress, DiagSink *sink) {
  Arena arena = {0};
  Comparison o = {.c = c};
  const SampleLoop loop = {.input_count = c->plain->input_count,
                           .own_size = sizeof(Sample),
                           .user = &o,
                           .run = run_sample,
                           .add = add_sample};
  make_tables(&o, &arena);
  uint64_t count = dataset_count(set), runs = count * EFFECT_RUNS,
           some = runs / (c->pair_count + 1) + 1;
  o.effect_pairs = runs > EFFECT_PAIRS ? runs : EFFECT_PAIRS;
  if (c->effects) {
    o.effect_step = (count - 1) / min_u64(some, EFFECT_SAMPLES) + 1;
    c->effect_samples = (count - 1) / o.effect_step + 1;
  }
  Status status = samples_run(&loop, set, progress, sink);
  arena_release(&arena);
  return status;
}

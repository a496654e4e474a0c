/* Ranges of the values that `annotate` marked: from a run over samples, or from the statistics of
 * an earlier one. Values of one range are taken together. */
#include "quant/observe.h"

#include <math.h>
#include <stdlib.h>

#include "ops/quantized.h"
#include "passes/pass.h"
#include "passes/quantize/moments.h"
#include "passes/quantize/ranges.h"
#include "passes/quantize/roles.h"
#include "passes/quantize/scales.h"
#include "quant/stats_file.h"
#include "quant/trial.h"
#include "support/number.h"

/* Ranges are numbered anew from 0, since a graph may give them any numbers; the order is of no
 * consequence. */
static void number_ranges(const Graph *g, Watches *w, Arena *arena) {
  uint64_t *numbers = ARENA_ARRAY(arena, uint64_t, (size_t)w->count + 1);
  for (uint32_t i = 0; i < w->count; i++)
    numbers[i] = (uint64_t)node_int(g, w->list[i].node, OBSERVE_RANGE);
  qsort(numbers, w->count, sizeof *numbers, compare_u64);
  for (uint32_t i = 0; i < w->count; i++)
    if (i == 0 || numbers[i] != numbers[w->ranges - 1])
      numbers[w->ranges++] = numbers[i];
  for (uint32_t i = 0; i < w->count; i++) {
    uint64_t own = (uint64_t)node_int(g, w->list[i].node, OBSERVE_RANGE);
    const uint64_t *at = bsearch(&own, numbers, w->ranges, sizeof *numbers, compare_u64);
    w->list[i].range = at ? (uint32_t)(at - numbers) : 0;
  }
}

static Watches find_watches(const Graph *g, Arena *arena) {
  Watches w = {.list = ARENA_ARRAY(arena, Watch, g->node_count)};
  for (FOR_NODES(g, n)) {
    if (node_cget(g, n)->op != OP_OBSERVE || !node_absent(g, n, OBSERVE_AXIS) ||
        !node_absent(g, n, OBSERVE_LOW))
      continue;
    w.list[w.count++] = (Watch){.node = n, .value = node_value(g, n, 0)};
  }
  number_ranges(g, &w, arena);
  return w;
}

/* Pads that nothing but maxima see: where they are below all elements they may be any number, and
 * none above 0 is below them. */
static bool is_neutral_pad(const Graph *g, const Watch *w, NodeId pad) {
  ValueId y = node_result(g, w->node, 0);
  for (UseId u = first_use(g, y); u; u = g->uses[u].next)
    if (node_cget(g, g->uses[u].node)->op != OP_MAX_POOL2D_WITH_INDICES)
      return false;
  return first_use(g, y) && node_scalar(g, pad, 2) <= 0;
}

/* The result of an op that only moves elements has the range of its operand. */
static bool follows(const Graph *g, const Watch *w) {
  NodeId def = value_def(g, w->value), from;
  if (!def || quant_role(g, def) != ROLE_MOVE ||
      (node_cget(g, def)->op == OP_CONSTANT_PAD_ND && !is_neutral_pad(g, w, def)))
    return false;
  from = value_def(g, node_value(g, def, 0));
  return from && node_cget(g, from)->op == OP_OBSERVE &&
         node_int(g, from, OBSERVE_RANGE) == node_int(g, w->node, OBSERVE_RANGE);
}

/* --- ranges --- */

static void add_constant(Stats *stats, const Graph *g, ValueId v, Arena *arena) {
  const Constant *c = value_constant(g, v);
  float *copy = arena_alloc(arena, c->size + 1);
  StatsScratch *scratch = stats_scratch_new();
  memcpy(copy, c->data, c->size);
  stats_add(stats, scratch, copy, c->size / sizeof(float));
  stats_scratch_free(scratch);
}

/* Beyond these a function does not change (visibly, in 8 bits): what is further out is cut off, so
 * that the codes are spent on what matters. */
static bool saturation(OpId op, double *low, double *high) {
  *low = -INFINITY;
  *high = INFINITY;
  switch (op) {
  case OP_RELU:
    *low = 0;
    return true;
  case OP_HARDSWISH:
    *low = -3;
    return true;
  case OP_HARDSIGMOID:
    *low = -3;
    *high = 3;
    return true;
  case OP_SIGMOID:
    *low = -8;
    *high = 8;
    return true;
  case OP_TANH:
    *low = -4;
    *high = 4;
    return true;
  case OP_GELU:
    *low = -4;
    return true;
  default:
    return false;
  }
}

/* Limits the range to what all users of the value can tell apart. */
static void limit(const Graph *g, const Watch *w, Range *wanted) {
  Range seen = {0, 0};
  ValueId v = node_result(g, w->node, 0);
  for (UseId u = first_use(g, v); u; u = g->uses[u].next) {
    NodeId user = g->uses[u].node;
    double low, high;
    if (user == NODE_OUTPUT || !saturation(node_cget(g, user)->op, &low, &high)) {
      *wanted = (Range){-INFINITY, INFINITY};
      return;
    }
    seen.low = fmin(seen.low, low);
    seen.high = fmax(seen.high, high);
  }
  wanted->low = fmin(wanted->low, seen.low);
  wanted->high = fmax(wanted->high, seen.high);
}

static Range *find_limits(Graph *g, const Watches *w, Arena *arena) {
  Range *limits = ARENA_ARRAY(arena, Range, (size_t)w->ranges + 1);
  for (uint32_t i = 0; i < w->count; i++) {
    const Watch *at = &w->list[i];
    limit(g, at, &limits[at->range]);
    if (value_is_const(g, at->value))
      add_constant(&w->stats[at->range], g, at->value, arena);
  }
  return limits;
}

/* By watch; of values that were never seen, low is greater than high. Values of one range are
 * marked alike. */
static Range *find_ranges(const Graph *g, const Watches *w, const Range *limits,
                          const RangeOptions *options, Arena *arena) {
  Range *ranges = ARENA_ARRAY(arena, Range, (size_t)w->count + 1);
  uint32_t *first = ARENA_ARRAY(arena, uint32_t, (size_t)w->ranges + 1); /* 1 + watch */
  for (uint32_t i = 0; i < w->count; i++) {
    const Watch *at = &w->list[i];
    RangeOptions own = *options;
    own.qmin = (int32_t)node_int(g, at->node, OBSERVE_MIN);
    own.qmax = (int32_t)node_int(g, at->node, OBSERVE_MAX);
    own.symmetric = node_bool(g, at->node, OBSERVE_SYMMETRIC);
    uint32_t same = first[at->range];
    first[at->range] = same ? same : i + 1;
    ranges[i] = (Range){1, 0};
    if (w->stats[at->range].count == 0)
      continue;
    ranges[i] = same ? ranges[same - 1] : stats_range(&w->stats[at->range], &own);
    ranges[i].low = fmax(ranges[i].low, limits[at->range].low);
    ranges[i].high = fmin(ranges[i].high, limits[at->range].high);
  }
  return ranges;
}

static uint64_t set_ranges(Graph *g, const Watches *w, const Range *ranges) {
  uint64_t set = 0;
  for (uint32_t i = 0; i < w->count; i++) {
    if (ranges[i].low > ranges[i].high)
      continue;
    node_set_arg(g, w->list[i].node, OBSERVE_LOW, A_FLOAT(ranges[i].low));
    node_set_arg(g, w->list[i].node, OBSERVE_HIGH, A_FLOAT(ranges[i].high));
    set++;
  }
  return set;
}

/* --- trials --- */

/* Rounding errors cancel each other out in the sums that follow. What is cut off does not: it is
 * always too small, and in some networks it is what matters (the token of a transformer that stands
 * for the whole image). How often it counts is found by trying. */
static const double cut_weights[] = {1, 10, 100};
/* A few samples tell the noise to some 2 dB, while it is mostly the least by the first: others must
 * have half of it. */
#define CLEARLY_LESS 0.5

enum { TRIAL_SAMPLES = 8 };

static Trial trial_of(const Graph *g, const Watches *w, Arena *arena) {
  Trial t = {.list = ARENA_ARRAY(arena, TrialRounding, (size_t)w->count + 1)};
  for (uint32_t i = 0; i < w->count; i++) {
    NodeId n = w->list[i].node;
    if (node_absent(g, n, OBSERVE_LOW))
      continue;
    Quantization q = observed_quantization(g, n);
    t.list[t.count++] = (TrialRounding){node_result(g, n, 0), q.scale, q.zero, q.low, q.high};
  }
  return t;
}

static Status run_trials(PassContext *p, const Graph *g, Trial *trials, uint32_t count) {
  DataSet *set = NULL;
  TRY(dataset_open_some(&set, g, p->options->quantize->data, TRIAL_SAMPLES, p->sink));
  Status status = trial_run(g, trials, count, set, p->sink);
  dataset_close(set);
  return status;
}

/* Of the ranges by each of cut_weights the first, or those that change the outputs least. */
static Status try_ranges(PassContext *p, Graph *g, const Watches *w, const Range *limits,
                         const Range **ranges) {
  enum { COUNT = COUNT_OF(cut_weights) };
  RangeOptions options = p->options->quantize->range;
  Trial trials[COUNT];
  const Range *by[COUNT];
  uint32_t best = 0;
  for (uint32_t k = 0; k < COUNT; k++) {
    options.cut_weight = cut_weights[k];
    by[k] = find_ranges(g, w, limits, &options, p->scratch);
    set_ranges(g, w, by[k]);
    trials[k] = trial_of(g, w, p->scratch);
  }
  TRY(run_trials(p, g, trials, COUNT));
  for (uint32_t k = 1; k < COUNT; k++)
    if (trials[k].noise < trials[best].noise * (best ? 1 : CLEARLY_LESS))
      best = k;
  *ranges = by[best];
  return STATUS_OK;
}

static Status choose_ranges(PassContext *p, Graph *g, const Watches *w) {
  const QuantOptions *q = p->options->quantize;
  const Range *limits = find_limits(g, w, p->scratch), *ranges;
  if (q->range.method == RANGE_AUTO && q->data)
    TRY(try_ranges(p, g, w, limits, &ranges));
  else
    ranges = find_ranges(g, w, limits, &q->range, p->scratch);
  pass_count(p, "values", set_ranges(g, w, ranges));
  return STATUS_OK;
}

/* --- statistics --- */

/* The values that statistics are needed of. */
static ValueId *values_of(const Graph *g, const Watches *w, Arena *arena, uint32_t **ranges,
                          uint32_t *count) {
  ValueId *values = ARENA_ARRAY(arena, ValueId, (size_t)w->count + 1);
  *ranges = ARENA_ARRAY(arena, uint32_t, (size_t)w->count + 1);
  *count = 0;
  for (uint32_t i = 0; i < w->count; i++) {
    if (value_is_const(g, w->list[i].value) || follows(g, &w->list[i]))
      continue;
    (*ranges)[*count] = w->list[i].range;
    values[(*count)++] = w->list[i].value;
  }
  return values;
}

static Status run_samples(PassContext *p, Graph *g, Watches *w, const ValueId *values,
                          uint32_t count, const uint32_t *ranges) {
  DataSet *set = NULL;
  TRY(dataset_open(&set, g, p->options->quantize->data, (DataShard){0, 1}, p->sink));
  Stats *own = ARENA_ARRAY(p->scratch, Stats, (size_t)count + 1);
  Status status = observe(g, values, count, set, own, NULL, p->sink);
  if (status == STATUS_OK &&
      !p->options->quantize->kept) /* else it was said in the first of several runs */
    dataset_warn_constant(set);
  for (uint32_t i = 0; i < count; i++) {
    if (status == STATUS_OK)
      stats_merge_values(&w->stats[ranges[i]], &own[i]);
    stats_release(&own[i]);
  }
  dataset_close(set);
  return status;
}

static Status read_ranges(PassContext *p, Graph *g, Watches *w, const ValueId *values,
                          uint32_t count, const uint32_t *ranges) {
  const QuantOptions *q = p->options->quantize;
  const Stats **own = ARENA_ARRAY(p->scratch, const Stats *, (size_t)count + 1);
  StatsFile file;
  TRY(stats_read(&file, p->sink, q->ranges));
  Status status = stats_of_model(&file, q->model_hash, p->sink);
  if (status == STATUS_OK)
    status = stats_match(&file, g, values, count, own, p->sink);
  for (uint32_t i = 0; i < count && status == STATUS_OK; i++)
    stats_merge_values(&w->stats[ranges[i]], own[i]);
  stats_file_release(&file);
  return status;
}

Status pass_observe(PassContext *p, Graph *g) {
  const QuantOptions *q = p->options->quantize;
  if (!q || (!q->data && !q->ranges && !q->made_up))
    return STATUS_OK;
  if (!q->ranges)
    TRY(observe_moments(p, g));
  if (q->made_up)
    return STATUS_OK;
  Watches w = find_watches(g, p->scratch);
  uint32_t *ranges, count;
  ValueId *values = values_of(g, &w, p->scratch, &ranges, &count);
  if (w.count == 0 && !q->ranges) /* statistics must be of this model all the same */
    return STATUS_OK;
  w.stats = ARENA_ARRAY(p->scratch, Stats, (size_t)w.ranges + 1);
  for (uint32_t i = 0; i < w.ranges; i++)
    stats_init(&w.stats[i], 0);
  Status status = q->ranges ? read_ranges(p, g, &w, values, count, ranges)
                            : run_samples(p, g, &w, values, count, ranges);
  if (status == STATUS_OK) {
    share_joined_ranges(g, &w, p->scratch);
    status = choose_ranges(p, g, &w);
  }
  for (uint32_t i = 0; i < w.ranges; i++)
    stats_release(&w.stats[i]);
  return status;
}

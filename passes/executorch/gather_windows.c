/* Convolutions with overlapping windows as matrix products: one as_strided_copy lays the elements
 * of every window into a column ("im2col"), the weight times the columns is the convolution
 * (windows.c has how).
 *
 * Why: as in convolution_to_matmul.c. Measured on the wheel's kernels of ExecuTorch 1.4.1: 3 x 3,
 * 16 to 16 channels, 40 x 40, is 23 ms as convolution, while pad and columns take 0.15 ms; a
 * ResNet-8 with all windows gathered went from 290 ms to 0.6 ms (tests/bench/latency.py compares).
 *
 * Which: the columns need taps times the memory of x, therefore only where they fit below what the
 * program would need without writing results over operands, as the official exporter plans it. A
 * gathered convolution is two to four kernels; that it is one less kernel as it was is no reason to
 * leave it: SqueezeNet 1.1 takes 138 ms in 110 kernels, and 7 s in 67 with its convolutions. Only
 * where so few fit that they are little work, and less than a tenth of all, they stay as they are.
 * f16 and bf16 are gathered whatever they need: the convolution kernel adds up in that type; a
 * small U-Net is off by 0.05 then; the products add up in floats.
 *
 * Symbolic sizes count with their upper bounds. Transposed convolutions stay. */
#include "passes/executorch/liveness.h"
#include "passes/executorch/sink_biases.h"
#include "passes/executorch/views.h"
#include "passes/executorch/window_bands.h"
#include "passes/pass.h"

enum {
  WORTH = 1000,     /* products, 20 us as convolution: more than the calls cost */
  LEAST_SHARE = 10, /* one of so many products must be in what is gathered, */
  FEW = 1 << 20,    /* or so many, 20 ms */
  NEAR = 8          /* convolutions between two that share columns */
};

typedef struct Candidate {
  Windows w;
  NodeId node;
  uint32_t position;
  Bands bands;     /* if not all windows are gathered at once */
  ValueId columns; /* of all windows, once it is rewritten */
} Candidate;

typedef struct Choice {
  Candidate *candidates;
  uint32_t count;
  Liveness live;
  uint64_t *use;  /* bytes in use while each node runs, by position from 1 */
  uint64_t limit; /* bytes */
} Choice;

/* f16 and bf16: sums of few terms are exact enough. */
static bool loses_precision(const Graph *g, const Windows *w) {
  const Geometry *y = &w->geometry;
  return dtype_size(value_dtype(g, y->x)) == 2 && y->in / y->groups * y->taps > 16;
}

static uint64_t *bytes_in_use(const Liveness *l, Arena *scratch, uint64_t *peak) {
  uint64_t *use = ARENA_ARRAY(scratch, uint64_t, l->end + 2);
  for (uint32_t i = 0; i < l->span_count; i++) {
    use[l->spans[i].first] += align_up(l->spans[i].size, PLAN_ALIGNMENT);
    use[l->spans[i].last + 1] -= align_up(l->spans[i].size, PLAN_ALIGNMENT);
  }
  *peak = use[0];
  for (uint32_t i = 1; i <= l->end; i++) {
    use[i] += use[i - 1];
    *peak = use[i] > *peak ? use[i] : *peak;
  }
  return use;
}

static Status measure_memory(Graph *g, Arena *scratch, Choice *c) {
  Liveness apart;
  uint64_t peak;
  TRY(liveness_compute(g, scratch, (LivenessOptions){.in_place = true}, &c->live));
  c->use = bytes_in_use(&c->live, scratch, &peak);
  TRY(liveness_compute(g, scratch, (LivenessOptions){0}, &apart));
  c->limit = liveness_bound(&apart, PLAN_ALIGNMENT, scratch);
  c->limit = c->limit > peak ? c->limit : peak;
  return STATUS_OK;
}

/* Leaves those that precision wants. */
static void leave_others(const Graph *g, Choice *c) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < c->count; i++)
    if (loses_precision(g, &c->candidates[i].w))
      c->candidates[kept++] = c->candidates[i];
  c->count = kept;
}

/* Nothing reads x, nor what lies in its memory, behind the convolution. */
static bool ends_with(const Choice *c, const Candidate *i) {
  uint32_t span = c->live.span_of[i->w.geometry.x];
  return span && span <= c->live.span_count && c->live.spans[span - 1].last == i->position;
}

static Bands find_bands(const Graph *g, const Choice *c, const Candidate *i) {
  uint64_t use = c->use[i->position], room = c->limit - use;
  if (window_bands_fit_over_x(g, &i->w) && ends_with(c, i)) {
    uint64_t result = type_bytes_upper(g, value_type(g, i->w.result));
    Bands bands = window_bands(g, &i->w, true, room + align_up(result, PLAN_ALIGNMENT));
    if (bands.count)
      return bands;
  }
  return window_bands(g, &i->w, false, room);
}

/* Whether it is worth while, at once or in bands. */
static bool choose_bands(const Graph *g, const Choice *c, Candidate *i) {
  if (i->w.work < WORTH)
    return false;
  if (c->use[i->position] + i->w.extra <= c->limit)
    return true;
  i->bands = find_bands(g, c, i);
  return i->bands.count;
}

static void find_candidates(Graph *g, Arena *scratch, Choice *c) {
  uint32_t position = 0, convolutions = 0;
  double work = 0, gathered = 0;
  for (FOR_NODES(g, n))
    convolutions += node_cget(g, n)->op == OP_CONVOLUTION;
  c->candidates = ARENA_ARRAY(scratch, Candidate, convolutions);
  for (FOR_NODES(g, n)) {
    position++;
    Candidate *i = &c->candidates[c->count];
    if (node_cget(g, n)->op != OP_CONVOLUTION || !windows_read(g, n, &i->w))
      continue;
    i->node = n;
    i->position = position;
    work += (double)i->w.work;
    i->bands = (Bands){0};
    if (choose_bands(g, c, i) || loses_precision(g, &i->w)) {
      gathered += (double)i->w.work;
      c->count++;
    }
  }
  if (gathered < FEW && gathered * LEAST_SHARE < work)
    leave_others(g, c);
}

/* The columns that another convolution has gathered shortly before, if they may live so long. */
static ValueId gathered_before(const Choice *c, uint32_t at) {
  const Candidate *wanted = &c->candidates[at];
  for (uint32_t i = at; i-- > 0 && at - i <= NEAR;) {
    const Candidate *other = &c->candidates[i];
    if (!other->columns || memcmp(&other->w.geometry, &wanted->w.geometry, sizeof(Geometry)) != 0)
      continue;
    uint32_t position = other->position;
    while (position <= wanted->position && c->use[position] + wanted->w.extra <= c->limit)
      position++;
    return position > wanted->position ? other->columns : 0;
  }
  return 0;
}

static void rewrite(Builder *b, Choice *c, uint32_t at) {
  Graph *g = b->g;
  Candidate *i = &c->candidates[at];
  b->before = i->node;
  b->loc = node_cget(g, i->node)->loc;
  ValueId x = node_value(g, i->node, 0);
  if (!windows_read(g, i->node, &i->w)) /* anew: x may be the result of one that was rewritten */
    return;
  windows_constants(g, &i->w);
  ValueId value;
  if (i->bands.count) {
    value = window_bands_build(b, &i->w, i->bands);
  } else {
    i->columns = gathered_before(c, at);
    if (!i->columns)
      i->columns = windows_columns(b, &i->w);
    value = windows_product(b, &i->w, i->columns);
  }
  if (b->status != STATUS_OK)
    return;
  graph_replace_value(g, i->w.result, value);
  graph_remove_node(g, i->node);
  if (x != i->w.geometry.x) /* its padding is ours now */
    graph_remove_node(g, value_def(g, x));
}

static Status gather(Graph *g, Arena *scratch, uint64_t *count) {
  Choice c = {0};
  Builder b = builder_make(g, 0, 0);
  TRY(measure_memory(g, scratch, &c));
  find_candidates(g, scratch, &c);
  for (uint32_t i = 0; i < c.count && b.status == STATUS_OK; i++)
    rewrite(&b, &c, i);
  *count = c.count;
  return b.status;
}

Status pass_gather_windows(PassContext *p, Graph *g) {
  uint64_t count, gone;
  TRY(gather(g, p->scratch, &count));
  pass_count(p, "convolutions", count);
  if (!count)
    return STATUS_OK;
  TRY(sink_biases(g, p->scratch, &gone));
  pass_count(p, "biases", gone);
  return STATUS_OK;
}

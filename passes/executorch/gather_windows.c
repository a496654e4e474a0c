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
 * gathered convolution is two to four kernels. The further calls are worth it: SqueezeNet 1.1 takes
 * 138 ms in 110 calls instead of 7 s in 67. Exception: where what fits is less than a tenth of all
 * products, and little work, nothing is gathered. Those that do not fit are gathered in bands of
 * rows or columns (window_bands.c), as many as it takes to need no more memory than the rest does:
 * a U-Net of 16 MiB went from 8.3 s to below 1 s. Where one row is too much and much is to be
 * computed, the samples, or parts of the input channels (window_parts.c), are gathered one after
 * the other: a DeepLab with ranges of height and width went from 8.6 to 0.17 s. Such work may need
 * more memory, too, from a 64th to an eighth, or a fourth where it is very much, and twice as much
 * in programs below 4 MiB; what one takes more is there for all. A network with 128 to 128 channels
 * at 160 x 160, which fill all memory, takes 0.5 s and 27.5 MiB instead of 19 s and 25; 128 to 256
 * channels on images of 10 x 10 take 6 ms and 854 KiB instead of 0.6 s and 600; a pose network 0.8
 * ms and 187 KiB instead of 15 and 160. Images of one row are gathered as lines (window_lines.c).
 * i32, which ConvInteger adds up in, is gathered as well, where float_products.c left it.
 *
 * Symbolic sizes count with their upper bounds; bands of a symbolic number of rows are a loop
 * (window_rows.c): a ResNet-18 for 64 to 224 pixels went from 2 s to 60 ms. */
#include "passes/executorch/liveness.h"
#include "passes/executorch/sink_biases.h"
#include "passes/executorch/views.h"
#include "passes/executorch/window_lines.h"
#include "passes/executorch/window_rows.h"
#include "passes/source/weight_codes.h"

enum {
  LEAST_SHARE = 10, /* one of so many products must be in what is gathered, */
  FEW = 1 << 20,    /* or so many, 20 ms */
  MUCH = 1 << 19,   /* 2 to 10 ms */
  VERY_MUCH = 1 << 21,
  NEAR = 8,               /* convolutions between two that share columns */
  SAMPLES_MAX = 16,       /* that are gathered one after the other */
  PARTS_MAX = 64,         /* that are gathered one after the other, in all bands */
  BYTES_OF_PRODUCT = 600, /* in the file, with its columns, */
  BYTES_OF_FILE = 2,      /* of which so many are worth a byte of memory */
  SPARE = 8,              /* the part of the free memory that bands leave if they can: tensors of
                             several sizes leave gaps */
  /* The part of all memory that bands of much work take on top if they fit nowhere: at least, */
  LEAST_MORE = 64,
  MORE = 8,          /* at most, */
  MUCH_MORE = 4,     /* at most for very much work; */
  SMALL = 4 << 20,   /* programs of fewer bytes than these may take twice as much. */
  ENORMOUS = 1 << 23 /* 60 ms and more */
};

typedef struct Candidate {
  Windows w;
  NodeId node;
  uint32_t position;
  bool at_once;
  Bands bands;     /* otherwise */
  ValueId columns; /* of all windows, once it is rewritten */
} Candidate;

typedef struct Choice {
  Candidate *candidates;
  uint32_t count;
  Liveness live;
  uint64_t *use;  /* bytes in use while each node runs, by position from 1 */
  uint64_t limit; /* bytes, of all windows at once */
  uint64_t need;  /* bytes that are in use at one time anyway: the limit of bands */
  uint64_t more;  /* bytes beyond these that bands may take that fit nowhere else */
  bool is_full;   /* no more than what others take already */
} Choice;

/* Weights that are widened count as constants: divide_weights finds out where they fit. */
static Status measure_memory(Graph *g, Arena *scratch, Choice *c) {
  Liveness apart;
  WidenedWeight *weights;
  uint32_t count = widened_weights(g, scratch, &weights);
  TRY(liveness_compute(g, scratch, (LivenessOptions){.in_place = true}, &c->live));
  widened_weights_discount(g, weights, count, &c->live);
  c->use = liveness_in_use(&c->live, scratch, &c->need);
  TRY(liveness_compute(g, scratch, (LivenessOptions){0}, &apart));
  widened_weights_discount(g, weights, count, &apart);
  c->limit = liveness_bound(&apart, PLAN_ALIGNMENT, scratch);
  c->limit = c->limit > c->need ? c->limit : c->need;
  return STATUS_OK;
}

/* Groups of several samples and transposed convolutions get no memory but what is needed anyway, as
 * bands. */
static bool may_need_more(const Windows *w) {
  return !w->transposed && (w->geometry.groups == 1 || w->geometry.batch == 1);
}

static uint64_t planned_bytes(const Graph *g, ValueId v) {
  return align_up(type_bytes_upper(g, value_type(g, v)), PLAN_ALIGNMENT);
}

/* The last node that reads x or what lies in its memory; 0: its memory is not planned, as that of a
 * constant. */
static uint32_t last_reader(const Choice *c, ValueId x) {
  uint32_t span = c->live.span_of[x];
  return span && span <= c->live.span_count ? c->live.spans[span - 1].last : 0;
}

/* dies: x is not needed any more. */
static Bands fit(const Graph *g, const Candidate *i, uint64_t room, bool dies) {
  Bands bands = {0};
  if (i->w.work >= PRODUCTS_MIN && i->w.extra <= room)
    return (Bands){.count = 1};
  if (!sym_is_const(i->w.geometry.size[0]))
    return window_rows(g, &i->w, room, dies ? planned_bytes(g, i->w.geometry.x) : 0);
  if (dies && window_bands_fit_over_x(g, &i->w))
    bands = window_bands(g, &i->w, true, room + planned_bytes(g, i->w.result));
  return bands.count ? bands : window_bands(g, &i->w, false, room);
}

/* The samples one after the other: a copy of one, and of its result, besides. */
static Bands fit_samples(const Graph *g, const Candidate *i, uint64_t room) {
  SymInt batch = i->w.geometry.batch;
  if (i->w.work < ENORMOUS || !sym_is_const(batch) || batch < 2 || batch > SAMPLES_MAX ||
      !sym_is_const(i->w.geometry.size[0]))
    return (Bands){0};
  uint64_t own =
      (planned_bytes(g, i->w.geometry.x) + planned_bytes(g, i->w.result)) / (uint64_t)batch +
      2 * PLAN_ALIGNMENT;
  Candidate one = *i;
  one.w = windows_of_sample(g, &i->w);
  Bands bands = own <= room ? fit(g, &one, room - own, false) : (Bands){0};
  bands.samples = batch;
  return bands;
}

/* In parts, each with its bands, for what fits nowhere otherwise. */
static Bands fit_parts(const Graph *g, const Candidate *i, uint64_t room) {
  const Windows *w = &i->w;
  const Geometry *y = &w->geometry;
  int64_t most = min_i64(y->groups == 1 ? y->in : y->groups, PARTS_MAX);
  if (y->direct || !value_is_const(g, w->weight))
    return (Bands){0};
  for (int64_t parts = 2; parts <= most; parts++) {
    Candidate one = *i;
    one.w = windows_in_parts(g, w, parts);
    Bands bands = fit(g, &one, room, false);
    bands.parts = parts;
    if (bands.count && (bands.loop || bands.count * parts <= PARTS_MAX))
      return bands;
  }
  return (Bands){0};
}

static uint64_t file_bytes(Bands bands) {
  uint64_t products = (uint64_t)(bands.parts ? bands.parts : 1) * (bands.loop ? 1 : bands.count);
  return products * (uint64_t)(bands.samples ? bands.samples : 1) * BYTES_OF_PRODUCT;
}

/* Where there is much work, in bands of samples or parts, too, or with more than `room`, which
 * raises c->more: in the way that takes the least bytes of memory and of the file. */
static Bands fit_beyond(const Graph *g, Choice *c, const Candidate *i, uint64_t room, bool dies) {
  uint32_t most = i->w.work >= VERY_MUCH ? MUCH_MORE : MORE;
  uint64_t least = UINT64_MAX, needs = 0;
  Bands best = {0};
  if (i->w.work < MUCH)
    return best;
  if (c->need < SMALL)
    most /= 2;
  if (c->is_full)
    most = 2 * LEAST_MORE;
  for (uint32_t part = 2 * LEAST_MORE; part >= most; part /= 2) {
    uint64_t more = part > LEAST_MORE ? 0 : c->need / part;
    Bands bands = fit(g, i, room + more, dies);
    if (!bands.count)
      bands = fit_samples(g, i, room + more);
    if (!bands.count)
      bands = fit_parts(g, i, room + more);
    uint64_t bytes = BYTES_OF_FILE * max_u64(more, c->more) + file_bytes(bands);
    if (!bands.count || bytes >= least)
      continue;
    best = bands;
    least = bytes;
    needs = more;
  }
  c->more = max_u64(c->more, needs);
  return best;
}

/* Bands in the memory that nothing else needs. Where padding is taken in, x stays up to here in the
 * place of the padded x. */
static Bands find_bands(const Graph *g, Choice *c, const Candidate *i) {
  uint64_t room = c->need - c->use[i->position];
  ValueId x = i->w.geometry.x, padded = node_value(g, i->node, 0);
  uint32_t last = last_reader(c, x);
  bool dies = last == i->position;
  if (x != padded) {
    dies = last && last == c->live.spans[c->live.span_of[padded] - 1].first;
    room += planned_bytes(g, padded) - (dies ? planned_bytes(g, x) : 0);
  }
  Bands bands = fit(g, i, room - room / SPARE, dies);
  if (!bands.count)
    bands = fit(g, i, room, dies);
  return bands.count ? bands : fit_beyond(g, c, i, room, dies);
}

/* Finds out how each candidate is gathered; those that are not go. What fits at once is counted as
 * memory that is needed anyway before bands are fitted in. */
static void choose(const Graph *g, Choice *c) {
  double work = 0, gathered = 0;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < c->count; i++) {
    Candidate *a = &c->candidates[i];
    uint64_t use = c->use[a->position] + a->w.extra;
    a->at_once = a->w.work >= PRODUCTS_MIN && use <= c->limit && may_need_more(&a->w);
    if (a->at_once && use > c->need)
      c->need = use;
  }
  for (uint32_t i = 0; i < c->count; i++) {
    Candidate *a = &c->candidates[i];
    work += (double)a->w.work;
    if (!a->at_once)
      a->bands = find_bands(g, c, a);
    if (!a->at_once && !a->bands.count)
      continue;
    gathered += (double)a->w.work;
    c->candidates[kept++] = *a;
  }
  c->count = gathered < FEW && gathered * LEAST_SHARE < work ? 0 : kept;
}

static void find_candidates(Graph *g, Arena *scratch, Choice *c) {
  uint32_t position = 0, convolutions = 0;
  for (FOR_NODES(g, n))
    convolutions += node_cget(g, n)->op == OP_CONVOLUTION;
  c->candidates = ARENA_ARRAY(scratch, Candidate, convolutions);
  for (FOR_NODES(g, n)) {
    Candidate i = {.node = n, .position = ++position};
    if (node_cget(g, n)->op == OP_CONVOLUTION && windows_read(g, n, &i.w))
      c->candidates[c->count++] = i;
  }
}

/* The columns that another convolution has gathered shortly before, if they may live so long. */
static ValueId gathered_before(const Choice *c, uint32_t at) {
  const Candidate *wanted = &c->candidates[at];
  for (uint32_t i = at; i-- > 0 && at - i <= NEAR;) {
    const Candidate *other = &c->candidates[i];
    if (!other->columns || !may_need_more(&other->w) || other->at_once != wanted->at_once ||
        other->position > wanted->position || /* nodes were put in another order */
        memcmp(&other->w.geometry, &wanted->w.geometry, sizeof(Geometry)) != 0)
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
  if (!i->at_once && !i->bands.count)
    return;
  if (i->bands.parts)
    i->w = windows_in_parts(g, &i->w, i->bands.parts);
  windows_weights(b, &i->w);
  ValueId value;
  if (!i->at_once && (i->bands.count > 1 || i->bands.samples || i->bands.parts)) {
    value = window_bands_build(b, &i->w, i->bands);
  } else {
    i->columns = gathered_before(c, at);
    if (!i->columns)
      i->columns = windows_columns(b, &i->w);
    value = windows_result(b, &i->w, windows_matmul(b, &i->w, i->columns));
  }
  if (b->status != STATUS_OK)
    return;
  graph_replace_value(g, i->w.result, value);
  graph_remove_node(g, i->node);
  if (x != i->w.geometry.x) /* its padding is ours now */
    graph_remove_node(g, value_def(g, x));
}

/* Those that are gathered at once, or the others, in bands. */
static Status rewrite_all(Graph *g, Choice *c, bool at_once) {
  Builder b = builder_make(g, 0, 0);
  for (uint32_t i = 0; i < c->count && b.status == STATUS_OK; i++)
    if (c->candidates[i].at_once == at_once)
      rewrite(&b, c, i);
  return b.status;
}

/* Bands for those that are left, now that it is known how much memory the rest needs, in the order
 * that it will have. */
static Status fit_bands(PassContext *p, Graph *g, Choice *c) {
  uint32_t *positions = ARENA_ARRAY(p->scratch, uint32_t, g->node_count), position = 0;
  TRY(pass_schedule_nodes(p, g));
  TRY(measure_memory(g, p->scratch, c));
  for (FOR_NODES(g, n))
    positions[n] = ++position;
  c->more = 0;
  for (uint32_t i = 0; i < c->count; i++) {
    Candidate *a = &c->candidates[i];
    if (a->at_once)
      continue;
    a->position = positions[a->node];
    windows_read(g, a->node, &a->w); /* anew: x may be the result of one that was rewritten */
    a->bands = find_bands(g, c, a);
  }
  c->need += c->more; /* what one takes more is there for all: fewer bands */
  c->is_full = true;
  for (uint32_t i = 0; i < c->count && c->more; i++) {
    Candidate *a = &c->candidates[i];
    if (!a->at_once && a->bands.count)
      a->bands = find_bands(g, c, a);
  }
  return rewrite_all(g, c, false);
}

static Status gather(PassContext *p, Graph *g, uint64_t *count) {
  Choice c = {0};
  find_candidates(g, p->scratch, &c);
  *count = c.count;
  if (!c.count)
    return STATUS_OK;
  TRY(measure_memory(g, p->scratch, &c));
  choose(g, &c);
  *count = c.count;
  TRY(rewrite_all(g, &c, true));
  for (uint32_t i = 0; i < c.count; i++)
    if (!c.candidates[i].at_once)
      return fit_bands(p, g, &c);
  return STATUS_OK;
}

Status pass_gather_windows(PassContext *p, Graph *g) {
  uint64_t count, gone;
  TRY(window_lines(g));
  TRY(transposed_lines(g));
  TRY(gather(p, g, &count));
  pass_count(p, "convolutions", count);
  if (!count)
    return STATUS_OK;
  TRY(sink_biases(g, p->scratch, &gone));
  pass_count(p, "biases", gone);
  return STATUS_OK;
}

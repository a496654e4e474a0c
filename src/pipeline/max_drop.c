/* See max_drop.h. The order of the nodes comes from one comparison with everything quantized: first
 * those whose noise alone makes the outputs worst. How many of them it takes is found by halving,
 * each time with a new calibration: what is left in floats changes the ranges of the rest. */
#include "pipeline/max_drop.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "passes/quantize/pairs.h"
#include "pipeline/settings.h"
#include "support/text.h"

enum { NAMES_MAX = 10, WORST_MAX = 3 };
#define DROP_MAX 200.0

/* A node that can stay in floats. */
typedef struct Candidate {
  NodeId node;
  const ComparePair *pair; /* of the comparison with everything quantized */
} Candidate;

typedef struct Search {
  Session *s;
  Method *method;
  MethodOptions *options;
  Graph *g;
  const Graph *plain;
  Arena arena;
  Candidate *list;
  uint32_t count;
  double sqnr; /* the least of all outputs, of the last trial; NaN without outputs of floats */
} Search;

EtcStatus session_set_max_drop(Session *s, StrView value) {
  double drop;
  if (text_parse_double(value, &drop) && drop > 0 && drop <= DROP_MAX) {
    settings_options(s)->max_drop = drop;
    return ETC_OK;
  }
  return session_usage(s, "--max-drop", "give a number of dB above 0 and at most 200, such as 40",
                       "--max-drop does not take '" SV_FMT "'", SV_ARG(value));
}

static int compare_candidates(const void *a, const void *b) {
  const Candidate *x = a, *y = b;
  int order = compare_damage(x->pair, y->pair);
  return order ? order : ORDER(x->node, y->node);
}

static void list_candidates(Search *r, const Compare *c, const NodeId *nodes) {
  r->list = ARENA_ARRAY(&r->arena, Candidate, (size_t)c->pair_count + 1);
  for (uint32_t i = 0; i < c->pair_count; i++) {
    NodeId n = nodes[i];
    if (n >= r->plain->node_count) /* rows of a table, which a new node makes */
      n = value_def(r->plain, c->pairs[i].plain);
    if (n && !c->pairs[i].output)
      r->list[r->count++] = (Candidate){n, &c->pairs[i]};
  }
  qsort(r->list, r->count, sizeof *r->list, compare_candidates);
}

/* By node: the first `kept` candidates. */
static bool *first_candidates(const Search *r, uint32_t kept) {
  bool *floats = ARENA_ARRAY(&r->s->arena, bool, r->plain->node_count);
  for (uint32_t i = 0; i < kept; i++)
    floats[r->list[i].node] = true;
  return floats;
}

/* Quantizes all but the first `kept` candidates, compares, and undoes it. */
static Status try_kept(Search *r, uint32_t kept) {
  Session *s = r->s;
  Compare c;
  NodeId *nodes;
  DataSet *set = NULL;
  QuantOptions *q = &r->options->quantize;
  q->kept = r->list ? first_candidates(r, kept) : NULL;
  q->kept_count = r->plain->node_count;
  TRY(manager_quantize(&r->s->manager, r->g));
  find_pairs(r->plain, r->g, &r->arena, &c, &nodes);
  TRY(dataset_open(&set, r->g, options_samples(r->options), (DataShard){0, 1}, &s->sink));
  c.effects = r->list == NULL;
  Status status = compare_run(&c, set, NULL, &s->sink);
  dataset_close(set);
  r->sqnr = NAN;
  for (uint32_t i = 0; i < c.pair_count; i++)
    if (c.pairs[i].output)
      r->sqnr = fmin(r->sqnr, compare_sqnr(&c.pairs[i].all));
  if (status == STATUS_OK && !r->list)
    list_candidates(r, &c, nodes);
  graph_restore(r->g, r->plain);
  return status;
}

static bool is_near(const Search *r) { return r->sqnr >= r->options->max_drop; }

/* sqnr: with everything quantized. */
static Status refuse(const Search *r, double sqnr) {
  Diag *d = diag_begin(&r->s->sink, DIAG_QUANT_DROP, context_place(&r->s->ctx));
  if (isnan(r->sqnr))
    diag_message(d, "no output of '" SV_FMT "' can be compared", SV_ARG(graph_name(r->g)));
  else
    diag_message(d,
                 "the outputs have %.1f dB, and %.1f dB with %" PRIu32
                 " nodes in floats, all there "
                 "are to try",
                 sqnr, r->sqnr, r->count);
  return diag_end(d);
}

/* The least number of candidates in floats that is enough, found by halving. */
static Status search(Search *r, uint32_t *kept) {
  uint32_t low = 0, high; /* too few, and enough */
  *kept = 0;
  TRY(try_kept(r, 0));
  if (is_near(r))
    return STATUS_OK;
  double sqnr = r->sqnr, reached;
  high = r->count;
  TRY(try_kept(r, high));
  if (!is_near(r))
    return refuse(r, sqnr);
  reached = r->sqnr;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    TRY(try_kept(r, middle));
    if (is_near(r)) {
      high = middle;
      reached = r->sqnr;
    } else {
      low = middle;
    }
  }
  r->sqnr = reached;
  *kept = high;
  return STATUS_OK;
}

/* --- what was found --- */

static void write_node(const Search *r, NodeId n, StrBuf *out) {
  const Loc *loc = &r->plain->locs[node_cget(r->plain, n)->loc];
  if (loc->name)
    strbuf_append_printable(out, intern_get(&r->g->ctx->names, loc->name));
  else
    strbuf_append(out, op_schema(node_cget(r->plain, n)->op)->full);
}

static void write_text(const Search *r, uint32_t kept) {
  StrBuf text = {0};
  if (isinf(r->sqnr))
    strbuf_append(&text, SV("no noise is left"));
  else
    strbuf_printf(&text, "SQNR %.1f dB", r->sqnr);
  strbuf_printf(&text, ", %" PRIu32 " of %" PRIu32 " nodes in floats", kept, r->count);
  uint32_t shown = r->s->sink.verbose || kept <= NAMES_MAX ? kept : NAMES_MAX;
  for (uint32_t i = 0; i < shown; i++) {
    strbuf_append(&text, i ? SV(", ") : SV(": "));
    write_node(r, r->list[i].node, &text);
  }
  if (shown < kept)
    strbuf_printf(&text, " and %" PRIu32 " more (-v)", kept - shown);
  if (isinf(r->sqnr) && kept)
    strbuf_append(&text, SV("; a smaller --max-drop quantizes more"));
  r->s->program.kept_text = strbuf_keep(&text, &r->s->arena).data;
}

/* What a budget is told: the SQNR, and the nodes that are quantized and cost most. */
static void record(const Search *r, uint32_t kept) {
  StrBuf text = {0};
  for (uint32_t i = kept; i < r->count && i < kept + WORST_MAX; i++) {
    strbuf_append(&text, i > kept ? SV(", ") : SV(""));
    write_node(r, r->list[i].node, &text);
    double own = compare_sqnr(&r->list[i].pair->own);
    strbuf_printf(&text, " %.1f dB", isnan(own) ? INFINITY : own);
  }
  r->method->sqnr = r->sqnr;
  r->method->worst = strbuf_keep(&text, &r->s->arena).data;
}

static Status find_kept(Search *r) {
  uint32_t kept = 0;
  TRY(search(r, &kept));
  r->options->quantize.kept = first_candidates(r, kept);
  write_text(r, kept);
  record(r, kept);
  return STATUS_OK;
}

static Status measure(Search *r) {
  TRY(try_kept(r, 0));
  record(r, 0);
  return STATUS_OK;
}

/* Runs it with a copy of the method's graph as it is before nodes are quantized; the graph is what
 * it was then. */
static Status with_plain(Session *s, Method *m, Status run(Search *r)) {
  Graph *g = m->graph;
  Search r = {.s = s, .method = m, .options = m->options, .g = g};
  m->options->quantize.kept = NULL;
  const Graph *original = graph_snapshot(g, &r.arena);
  Status status = manager_prepare_quantize(&s->manager, g);
  r.plain = graph_snapshot(g, &r.arena);
  if (status == STATUS_OK)
    status = run(&r);
  graph_restore(g, original); /* the passes give new nodes the same handles again */
  arena_release(&r.arena);
  return status;
}

Status session_find_kept(Session *s, Method *m) { return with_plain(s, m, find_kept); }

Status session_measure_sqnr(Session *s, Method *m) { return with_plain(s, m, measure); }

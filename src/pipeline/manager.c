/* Passes know nothing of levels, verification, printing or timing: it is all here, once.
 *
 * Passes are deterministic, so that a crash needs no snapshot: the number of the pass run, which
 * --bisect-limit takes as well, is enough to stop right before it. */
#include "pipeline/manager.h"

#include "ir/text.h"
#include "ir/trace.h"
#include "ir/verify.h"
#include "pipeline/signature.h"
#include "support/clock.h"
#include "support/json.h"

void manager_init(Manager *m, DiagSink *sink, Facts *facts) {
  *m = (Manager){.sink = sink, .facts = facts, .stage = STAGE_COUNT};
  m->options.pass = PASS_OPTIONS_DEFAULT;
  m->options.bisect_limit = -1;
#ifndef NDEBUG
  m->options.verify_each = true;
  m->options.roundtrip = true;
#endif
}

void manager_release(Manager *m) {
  arena_release(&m->scratch);
  strbuf_release(&m->checked);
}

static bool named(const PassNames *list, const char *name) {
  for (uint32_t i = 0; i < list->count; i++)
    if (strcmp(list->names[i], name) == 0 || strcmp(list->names[i], "all") == 0)
      return true;
  return false;
}

static void print_text(const Manager *m, StrBuf *text) {
  if (m->options.print && text->size)
    m->options.print(m->options.print_user, text->data, text->size);
  strbuf_release(text);
}

static void print_graph(const Manager *m, const Graph *g, const char *when, const PassRow *row) {
  StrBuf text = {0};
  strbuf_printf(&text, "// %s %s (%s)\n", when, row->name, stage_name(row->stage));
  graph_print(g, (PrintOptions){.full_constants = m->options.full_constants, .locations = true},
              &text);
  print_text(m, &text);
}

static void print_bisect(const Manager *m, const PassRun *run) {
  StrBuf text = {0};
  strbuf_printf(&text, "bisect: %s pass (%u) %s on method '",
                run->skipped ? "NOT running" : "running", m->facts->run_count, run->row->name);
  strbuf_append_escaped(&text, run->method);
  strbuf_append(&text, SV("'\n"));
  print_text(m, &text);
}

/* Our own fault, or that of a plug-in, found by a check after a pass. */
static Status pass_fault(const Manager *m, const PassRow *row, const char *fault, StrView detail) {
  Diag *d = diag_begin(m->sink, row->plugin ? DIAG_PLUGIN_FAULT : DIAG_INTERNAL, DIAG_NOWHERE);
  if (row->plugin)
    diag_message(d, "pass '%s' of plug-in '%s' left a graph that %s", row->name, row->plugin,
                 fault);
  else
    diag_message(d, "pass '%s' (run %u) left a graph that %s", row->name, m->facts->run_count,
                 fault);
  if (detail.size)
    diag_note(d, SV_FMT, SV_ARG(detail));
  return diag_end(d);
}

static Status parse_and_compare(const Manager *m, Graph *g, const PassRow *row, StrView text) {
  StrBuf where = {0};
  Graph **graphs = NULL;
  uint32_t count = 0;
  Status status = graph_parse(g->ctx, text, SV("<round trip>"), g, &graphs, &count);
  if (status != STATUS_OK)
    status = pass_fault(m, row, "cannot be parsed from its own text", (StrView){0});
  else if (count != 1 || graph_differs(g, graphs[0], &where))
    status = pass_fault(m, row, "is not the same after a round trip through text",
                        (StrView){strbuf_cstr(&where), where.size});
  for (uint32_t i = 0; i < count; i++)
    graph_free(graphs[i]);
  strbuf_release(&where);
  return status;
}

/* Most passes change nothing: a text that was checked before is not parsed again. */
static Status check_roundtrip(Manager *m, Graph *g, const PassRow *row) {
  StrBuf text = {0};
  graph_print(g, (PrintOptions){.locations = true}, &text);
  StrView now = {strbuf_cstr(&text), text.size};
  bool checked = sv_eq(now, (StrView){strbuf_cstr(&m->checked), m->checked.size});
  Status status = checked ? STATUS_OK : parse_and_compare(m, g, row, now);
  strbuf_release(&m->checked);
  m->checked = text;
  return status;
}

bool manager_accepts(const PassRow *row, Level level) {
  if (row->level_in == level)
    return true;
  return row->level_in == row->level_out && level > row->level_in && level <= LEVEL_EDGE;
}

static Status check_level(const Manager *m, const Graph *g, const PassRow *row) {
  if (manager_accepts(row, g->level))
    return STATUS_OK;
  return diag_report(m->sink, DIAG_IR_VERIFY, DIAG_NOWHERE,
                     "pass '%s' takes a graph of level %s, this one is at level %s", row->name,
                     level_name(row->level_in), level_name(g->level));
}

static PassRun *add_run(Manager *m, const PassRow *row, const Graph *g) {
  PassRun *run = facts_add_run(m->facts);
  *run = (PassRun){.row = row,
                   .stage = m->stage < STAGE_COUNT ? m->stage : row->stage,
                   .method = graph_name(g),
                   .nodes_before = g->live_nodes};
  run->nodes_after = g->live_nodes;
  const ManagerOptions *o = &m->options;
  run->skipped = row->skippable &&
                 (named(&o->skip, row->name) ||
                  (o->bisect && o->bisect_limit >= 0 && m->facts->run_count > o->bisect_limit));
  if (o->bisect && row->skippable)
    print_bisect(m, run);
  return run;
}

void manager_enter(Manager *m, StageId stage) {
  if (m->options.progress)
    m->options.progress->stage = stage_name(stage);
}

static Status execute(Manager *m, Graph *g, PassRun *run) {
  PassProgress *progress = m->options.progress;
  PassContext context = {.sink = m->sink,
                         .scratch = &m->scratch,
                         .options = &m->options.pass,
                         .facts = m->facts,
                         .plugin = progress ? &progress->plugin : NULL};
  if (progress) {
    progress->stage = stage_name(run->stage);
    progress->number = m->facts->run_count;
    progress->pass = run->row->name;
  }
  if (g->trace)
    g->trace->run = m->facts->run_count;
  uint64_t begin = clock_ns();
  pass_enter(&context, run->row->plugin);
  g->in_pass = true;
  Status status = run->row->run(&context, g);
  g->in_pass = false;
  status = pass_leave(&context, "pass", run->row->name, status);
  run->seconds = clock_seconds_since(begin);
  arena_reset(&m->scratch);
  if (progress)
    progress->pass = NULL;
  run->changed = context.changed;
  run->nodes_after = g->live_nodes;
  memcpy(run->stats, context.stats, sizeof run->stats);
  run->stat_count = context.stat_count;
  if (status == STATUS_OK && !run->row->plugin && run->row->level_out > g->level)
    g->level = run->row->level_out;
  return status;
}

static bool is_backed_symbol(const SymTable *t, SymInt size) {
  return !sym_is_const(size) && sym_expr(t, size)->kind == SYM_SYMBOL &&
         !sym_expr(t, size)->unbacked;
}

/* Whether a constraint behind the known ones fixes a dim of an input: if the model wanted that, it
 * would have been narrowed when it was imported. */
static bool fixes_sizes(const Graph *g, uint32_t known) {
  bool fixes = false;
  for (uint32_t i = known; i < g->constraint_count; i++) {
    const Constraint *c = &g->constraints[i];
    fixes = fixes || (c->kind == CONSTRAINT_EQ &&
                      ((is_backed_symbol(&g->syms, c->lhs) && sym_is_const(c->rhs)) ||
                       (is_backed_symbol(&g->syms, c->rhs) && sym_is_const(c->lhs))));
  }
  return fixes;
}

/* What a pass of a plug-in must leave as it was. */
static Status check_signature(const Manager *m, const Graph *g, const PassRow *row,
                              const Signature *before, Arena *arena) {
  const char *change = row->plugin ? signature_change(before, g, arena) : NULL;
  return change ? pass_fault(m, row, change, (StrView){0}) : STATUS_OK;
}

/* No pass may fix sizes. What else the options ask to be checked after one; that of a plug-in is
 * verified in any case. constraints: how many the graph had before. */
static Status check_graph(Manager *m, Graph *g, const PassRow *row, uint32_t constraints) {
  const ManagerOptions *o = &m->options;
  if (fixes_sizes(g, constraints))
    return pass_fault(m, row, "fixes a size that varied before", (StrView){0});
  bool verify = row->plugin || (o->verify_each && !o->verify_never);
  if (verify && graph_verify(g, row->name) != STATUS_OK)
    return pass_fault(m, row, "breaks the rules of its level", (StrView){0});
  return o->roundtrip ? check_roundtrip(m, g, row) : STATUS_OK;
}

/* A graph of which a plug-in has broken what the checks rely on may end them: that is told as a
 * crash of its pass. */
static void blame_pass(Manager *m, const PassRow *row, bool on) {
  PassProgress *progress = m->options.progress;
  if (!progress || !row->plugin)
    return;
  progress->pass = on ? row->name : NULL;
  progress->plugin = on ? row->plugin : NULL;
}

static Status run_and_check(Manager *m, Graph *g, PassRun *run) {
  const ManagerOptions *o = &m->options;
  const PassRow *row = run->row;
  Arena arena = {0};
  Signature before = {0};
  uint32_t constraints = g->constraint_count;
  if (row->plugin)
    before = signature_of(g, &arena);
  Status status = execute(m, g, run);
  blame_pass(m, row, true);
  bool print = named(&o->print_after, row->name) || (o->print_changed && run->changed);
  if (status == STATUS_OK && print)
    print_graph(m, g, "after", row);
  if (status == STATUS_OK)
    status = check_signature(m, g, row, &before, &arena);
  if (status == STATUS_OK)
    status = check_graph(m, g, row, constraints);
  blame_pass(m, row, false);
  arena_release(&arena);
  return status;
}

Status manager_run_pass(Manager *m, Graph *g, const PassRow *row) {
  const ManagerOptions *o = &m->options;
  if (m->stopped || (row->for_backends && !backends_want_pass(&o->pass, row->name)))
    return STATUS_OK;
  TRY(check_level(m, g, row));
  PassRun *run = add_run(m, row, g);
  if (!run->skipped) {
    if (named(&o->print_before, row->name))
      print_graph(m, g, "before", row);
    TRY(run_and_check(m, g, run));
  }
  if (o->stop_after && strcmp(o->stop_after, row->name) == 0)
    m->stopped = true;
  return STATUS_OK;
}

/* annotate is the first pass that chooses; it and what follows may run on a copy again and again.
 */
static Status run_quantize(Manager *m, Graph *g, bool chosen) {
  const PassRow *annotate = pass_find(SV("annotate"));
  for (uint32_t i = 0; i < pass_table_size; i++)
    if (pass_table[i].stage == STAGE_QUANTIZE && (&pass_table[i] >= annotate) == chosen)
      TRY(manager_run_pass(m, g, &pass_table[i]));
  return STATUS_OK;
}

Status manager_prepare_quantize(Manager *m, Graph *g) { return run_quantize(m, g, false); }

Status manager_quantize(Manager *m, Graph *g) { return run_quantize(m, g, true); }

/* The passes that the user put right before `row`, or with NULL behind all of the stage. */
static Status run_added(Manager *m, Graph *g, StageId stage, const PassRow *row,
                        const AddedPasses *added) {
  for (uint32_t i = 0; i < added->count; i++) {
    const AddedPass *one = &added->items[i];
    if (one->stage == stage && one->before == row)
      TRY(manager_run_pass(m, g, one->row));
  }
  return STATUS_OK;
}

static Status run_stage_passes(Manager *m, Graph *g, StageId stage, const AddedPasses *added) {
  for (uint32_t i = 0; i < pass_table_size; i++) {
    if (pass_table[i].stage != stage)
      continue;
    TRY(run_added(m, g, stage, &pass_table[i], added));
    TRY(manager_run_pass(m, g, &pass_table[i]));
  }
  return run_added(m, g, stage, NULL, added);
}

Status manager_run_stage(Manager *m, Graph *g, StageId stage, const AddedPasses *added) {
  m->stage = stage;
  Status status = run_stage_passes(m, g, stage, added);
  m->stage = STAGE_COUNT;
  TRY(status);
  if (m->stopped)
    return STATUS_OK;
  if (g->level < stage_level(stage))
    g->level = stage_level(stage);
  if (m->options.verify_never)
    return STATUS_OK;
  return graph_verify_changed(g, stage_name(stage));
}

/* One object a line, as messages are. */
static void print_times_json(const Manager *m, StrBuf *out) {
  for (uint32_t i = 0; i < m->facts->run_count; i++) {
    const PassRun *run = &m->facts->runs[i];
    JsonWriter w;
    json_init(&w, out, false);
    json_open_object(&w);
    json_named_uint(&w, "number", i + 1);
    json_named_string(&w, "pass", sv_from(run->row->name));
    json_named_string(&w, "stage", sv_from(stage_name(run->stage)));
    json_named_string(&w, "method", run->method);
    json_named_double(&w, "seconds", run->seconds);
    json_named_uint(&w, "nodes_before", run->nodes_before);
    json_named_uint(&w, "nodes_after", run->nodes_after);
    json_named_bool(&w, "changed", run->changed);
    json_named_bool(&w, "skipped", run->skipped);
    json_named_object(&w, "statistics");
    for (uint32_t k = 0; k < run->stat_count; k++) {
      json_named_uint(&w, run->stats[k].name, run->stats[k].count);
    }
    json_close_object(&w);
    json_close_object(&w);
    strbuf_append_char(out, '\n');
  }
}

static void print_stats(const PassRun *run, StrBuf *out) {
  const char *between = "  ";
  for (uint32_t k = 0; k < run->stat_count; k++) {
    if (run->stats[k].count == 0)
      continue;
    strbuf_printf(out, "%s%llu %s", between, (unsigned long long)run->stats[k].count,
                  run->stats[k].name);
    between = ", ";
  }
}

void manager_print_times(const Manager *m, bool json, StrBuf *out) {
  if (json) {
    print_times_json(m, out);
    return;
  }
  double total = 0;
  strbuf_append(out, SV("  no  stage          pass                           ms    nodes\n"));
  for (uint32_t i = 0; i < m->facts->run_count; i++) {
    const PassRun *run = &m->facts->runs[i];
    total += run->seconds;
    strbuf_printf(out, "%4u  %-13s  %-24s %8.3f  %7u -> %u%s", i + 1, stage_name(run->stage),
                  run->row->name, run->seconds * 1e3, run->nodes_before, run->nodes_after,
                  run->skipped ? "  skipped" : "");
    print_stats(run, out);
    strbuf_append_char(out, '\n');
  }
  strbuf_printf(out, "      total                                   %8.3f\n", total * 1e3);
}

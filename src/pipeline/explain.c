/* See explain.h. */
#include "pipeline/explain.h"

#include <inttypes.h>
#include <stdlib.h>

#include "ops/work.h"
#include "support/json.h"

enum { MAX_RULES_SHOWN = 8, MAX_OPS_NAMED = 3 };

/* The nodes that one rule leaves out. */
typedef struct RuleCount {
  const Refusal *first;
  uint32_t nodes;
  uint64_t work;              /* multiply-adds, see ops/work.h */
  StrView ops[MAX_OPS_NAMED]; /* operators of the model, the first ones */
  uint32_t op_count;          /* how many there are, one more than named at most */
} RuleCount;

/* The numbers of one backend. */
typedef struct Tally {
  uint32_t taken, left;
  uint64_t taken_work; /* multiply-adds of what is delegated */
  RuleCount *rules;    /* in the order in which they came */
  uint32_t rule_count;
} Tally;

/* What is told: a backend's part of a delegation. */
typedef struct Telling {
  Session *s;
  Arena scratch;
  const Graph *g;
  const BackendFact *b;
  Tally tally;
} Telling;

static void count_op(RuleCount *r, StrView op) {
  for (uint32_t i = 0; i < r->op_count && i < MAX_OPS_NAMED; i++)
    if (sv_eq(r->ops[i], op))
      return;
  if (r->op_count < MAX_OPS_NAMED)
    r->ops[r->op_count] = op;
  if (r->op_count <= MAX_OPS_NAMED)
    r->op_count++;
}

static void count_left(Tally *t, const Graph *g, const NodeFact *n) {
  uint32_t i = 0;
  while (i < t->rule_count && strcmp(t->rules[i].first->rule, n->refusal.rule) != 0)
    i++;
  if (i == t->rule_count)
    t->rules[t->rule_count++] = (RuleCount){.first = &n->refusal};
  RuleCount *r = &t->rules[i];
  StrView op = graph_place(g, n->loc).op;
  t->left++;
  r->nodes++;
  r->work = work_plus(r->work, n->work);
  count_op(r, op.size ? op : op_schema(n->op)->full);
}

static void tally(Telling *t) {
  const BackendFact *b = t->b;
  t->tally = (Tally){.rules = ARENA_ARRAY(&t->scratch, RuleCount, (size_t)b->node_count + 1)};
  for (uint32_t i = 0; i < b->node_count; i++) {
    const NodeFact *n = &b->nodes[i];
    if (n->partition) {
      t->tally.taken++;
      t->tally.taken_work = work_plus(t->tally.taken_work, n->work);
    } else {
      count_left(&t->tally, t->g, n);
    }
  }
}

/* --- values --- */

void explain_append_values(StrBuf *out, const Refusal *r) {
  for (uint32_t i = 0; i < r->value_count; i++) {
    const RefusalValue *v = &r->values[i];
    strbuf_printf(out, "%s%s=", i ? " " : "", v->name);
    switch (v->kind) {
    case REFUSAL_INT:
      strbuf_printf(out, "%" PRId64, v->i);
      break;
    case REFUSAL_FLOAT:
      strbuf_printf(out, "%g", v->f);
      break;
    case REFUSAL_TEXT:
      strbuf_append(out, v->text);
      break;
    }
  }
}

void explain_json_values(JsonWriter *w, const Refusal *r) {
  for (uint32_t i = 0; i < r->value_count; i++) {
    const RefusalValue *v = &r->values[i];
    json_key(w, v->name);
    switch (v->kind) {
    case REFUSAL_INT:
      json_int(w, v->i);
      break;
    case REFUSAL_FLOAT:
      json_double(w, v->f);
      break;
    case REFUSAL_TEXT:
      json_string(w, v->text);
      break;
    }
  }
}

/* --- messages --- */

static void say_left(const Telling *t, const NodeFact *n) {
  const Refusal *r = &n->refusal;
  StrBuf values = {0};
  explain_append_values(&values, r);
  Diag *diag = diag_begin(&t->s->sink, DIAG_DELEGATE_LEFT_OUT, graph_place(t->g, n->loc));
  diag_message(diag, "%s leaves '" SV_FMT "' (%s): %s%s%s", t->b->backend->name,
               SV_ARG(op_schema(n->op)->full), r->rule, r->message, values.size ? ": " : "",
               strbuf_cstr(&values));
  diag_hint(diag, "%s", r->advice);
  (void)diag_end(diag);
  strbuf_release(&values);
}

/* Most work first, then most nodes. */
static int compare_rules(const void *a, const void *b) {
  const RuleCount *const *x = a, *const *y = b;
  int order = ORDER((*y)->work, (*x)->work);
  order = order ? order : ORDER((*y)->nodes, (*x)->nodes);
  return order ? order : strcmp((*x)->first->rule, (*y)->first->rule);
}

static void note_rule(Diag *diag, uint64_t work, const RuleCount *r) {
  StrBuf text = {0};
  strbuf_printf(&text, "%" PRIu32 " node%s on portable kernels", r->nodes,
                r->nodes == 1 ? " stays" : "s stay");
  if (work)
    strbuf_printf(&text, ", %u %% of the multiplications", work_percent(r->work, work));
  strbuf_printf(&text, " (%s): %s: ", r->first->rule, r->first->message);
  for (uint32_t i = 0; i < r->op_count; i++) {
    strbuf_append(&text, i ? SV(", ") : SV(""));
    strbuf_append_printable(&text, i < MAX_OPS_NAMED ? r->ops[i] : SV("..."));
  }
  strbuf_printf(&text, "%s%s", r->first->advice[0] ? "; " : "", r->first->advice);
  diag_note(diag, "%s", strbuf_cstr(&text));
  strbuf_release(&text);
}

/* Those that the backend made, whether or not their code could be made. */
static uint32_t partition_count(const BackendFact *b, Arena *scratch) {
  uint32_t most = 0, count = 0;
  for (uint32_t i = 0; i < b->node_count; i++)
    most = b->nodes[i].partition > most ? b->nodes[i].partition : most;
  bool *seen = ARENA_ARRAY(scratch, bool, (size_t)most + 1);
  for (uint32_t i = 0; i < b->node_count; i++) {
    uint32_t partition = b->nodes[i].partition;
    count += partition && !seen[partition];
    seen[partition] = true;
  }
  return count;
}

static void say_numbers(Telling *t, uint32_t delegates) {
  const Tally *y = &t->tally;
  uint64_t work = t->b->work;
  const RuleCount **rules = ARENA_ARRAY(&t->scratch, const RuleCount *, (size_t)y->rule_count + 1);
  for (uint32_t i = 0; i < y->rule_count; i++)
    rules[i] = &y->rules[i];
  qsort(rules, y->rule_count, sizeof *rules, compare_rules);
  Diag *diag = diag_begin(&t->s->sink, DIAG_DELEGATE_SUMMARY, DIAG_NOWHERE);
  const char *share = work ? arena_printf(&t->scratch, ", %u %% of the multiplications",
                                          work_percent(y->taken_work, work))
                           : "";
  diag_message(
      diag, "%s takes %" PRIu32 " of %" PRIu32 " nodes of '" SV_FMT "' in %" PRIu32 " delegate%s%s",
      t->b->backend->name, y->taken, y->taken + y->left, SV_ARG(graph_name(t->g)), delegates,
      delegates == 1 ? "" : "s", share);
  for (uint32_t i = 0; i < y->rule_count && i < MAX_RULES_SHOWN; i++)
    note_rule(diag, work, rules[i]);
  if (y->rule_count > MAX_RULES_SHOWN)
    diag_note(diag, "%" PRIu32 " more rules", y->rule_count - MAX_RULES_SHOWN);
  if (!t->s->sink.verbose && y->rule_count)
    diag_hint(diag, "-v lists the nodes");
  (void)diag_end(diag);
}

static void say_delegate(const Telling *t, const DelegateFact *d) {
  Diag *diag = diag_begin(&t->s->sink, DIAG_DELEGATE_SUMMARY, DIAG_NOWHERE);
  diag_message(diag,
               "delegate %" PRIu32 " of %s in '" SV_FMT "' has %" PRIu32 " transpose%s %" PRIu64
               " bytes",
               d->partition, t->b->backend->name, SV_ARG(graph_name(t->g)), d->transpose_count,
               d->transpose_count == 1 ? ", which moves" : "s, which move", d->transposed_bytes);
  for (uint32_t kind = 0; kind < TRANSPOSE_REASONS; kind++) {
    StrBuf line = {0};
    if (delegate_print_transposes(&line, d->transposes, d->transpose_count, kind))
      diag_note(diag, "%s", strbuf_cstr(&line));
    strbuf_release(&line);
  }
  (void)diag_end(diag);
}

static void say_no_backend(Session *s, const DelegationFact *d) {
  Diag *diag = diag_begin(&s->sink, DIAG_DELEGATE_SUMMARY, DIAG_NOWHERE);
  diag_message(
      diag, "no backend is named: all nodes of '" SV_FMT "' (%" PRIu32 ") run on portable kernels",
      SV_ARG(graph_name(d->graph)), d->node_count);
  diag_hint(diag, "name one: --backend xnnpack ('etc backends' lists them)");
  (void)diag_end(diag);
}

/* --- JSON --- */

static void begin_line(JsonWriter *w, StrBuf *out, const Telling *t) {
  json_init(w, out, false);
  json_open_object(w);
  json_named_string(w, "backend", sv_from(t->b ? t->b->backend->name : ""));
  json_named_string(w, "method", graph_name(t->g));
}

static void end_line(JsonWriter *w, StrBuf *out) {
  json_close_object(w);
  strbuf_append_char(out, '\n');
}

static void node_line(StrBuf *out, const Telling *t, const NodeFact *n) {
  DiagPlace place = graph_place(t->g, n->loc);
  JsonWriter w;
  begin_line(&w, out, t);
  json_named_string(&w, "node", place.node);
  json_named_string(&w, "op", place.op);
  json_named_int(&w, "index", place.index);
  json_named_string(&w, "aten", op_schema(n->op)->full);
  if (n->partition) {
    json_named_uint(&w, "delegate", n->partition);
  } else {
    json_named_string(&w, "rule", sv_from(n->refusal.rule));
    json_named_string(&w, "message", sv_from(n->refusal.message));
    json_named_object(&w, "values");
    explain_json_values(&w, &n->refusal);
    json_close_object(&w);
    json_named_string(&w, "advice", sv_from(n->refusal.advice));
  }
  end_line(&w, out);
}

static void numbers_line(StrBuf *out, const Telling *t, uint32_t delegates) {
  const Tally *y = &t->tally;
  JsonWriter w;
  begin_line(&w, out, t);
  json_named_uint(&w, "delegates", delegates);
  json_named_uint(&w, "taken", y->taken);
  json_named_uint(&w, "left", y->left);
  json_named_object(&w, "rules");
  for (uint32_t i = 0; i < y->rule_count; i++)
    json_named_uint(&w, y->rules[i].first->rule, y->rules[i].nodes);
  json_close_object(&w);
  end_line(&w, out);
}

static void delegate_line(StrBuf *out, const Telling *t, const DelegateFact *d) {
  JsonWriter w;
  begin_line(&w, out, t);
  json_named_uint(&w, "delegate", d->partition);
  json_named_uint(&w, "transposes", d->transpose_count);
  json_named_uint(&w, "transposed_bytes", d->transposed_bytes);
  delegate_json_transposes(&w, d->transposes, d->transpose_count);
  end_line(&w, out);
}

static void print(const Session *s, StrBuf *text) {
  const ManagerOptions *o = &s->manager.options;
  if (o->print && text->size)
    o->print(o->print_user, text->data, text->size);
  strbuf_release(text);
}

static void print_json(const Telling *t, uint32_t delegates) {
  StrBuf json = {0};
  for (uint32_t i = 0; i < t->b->node_count; i++)
    node_line(&json, t, &t->b->nodes[i]);
  numbers_line(&json, t, delegates);
  for (uint32_t i = 0; i < t->b->delegate_count; i++)
    delegate_line(&json, t, &t->b->delegates[i]);
  print(t->s, &json);
}

/* The same of a graph for which no backend is named. */
static void print_json_none(Session *s, const DelegationFact *d) {
  Telling t = {.s = s, .g = d->graph, .tally = {.left = d->node_count}};
  StrBuf json = {0};
  numbers_line(&json, &t, 0);
  print(s, &json);
}

static void tell_backend(Session *s, const DelegationFact *d, const BackendFact *b) {
  Telling t = {.s = s, .g = d->graph, .b = b};
  tally(&t);
  uint32_t delegates = partition_count(b, &t.scratch);
  for (uint32_t i = 0; s->sink.verbose && i < b->node_count; i++)
    if (!b->nodes[i].partition)
      say_left(&t, &b->nodes[i]);
  say_numbers(&t, delegates);
  for (uint32_t i = 0; s->sink.verbose && i < b->delegate_count; i++)
    say_delegate(&t, &b->delegates[i]);
  if (s->explain_json)
    print_json(&t, delegates);
  arena_release(&t.scratch);
}

/* --- the table --- */

/* A row: how many nodes each backend takes, and how many are left. */
static void table_row(StrBuf *out, StrView name, const uint32_t *counts, const DelegationFact *d) {
  strbuf_printf(out, "  %-44.*s", (int)name.size, name.data);
  for (uint32_t i = 0; i < d->backend_count; i++)
    strbuf_printf(out, "  %*" PRIu32, (int)strlen(d->backends[i].backend->name), counts[i]);
  strbuf_printf(out, "  %8" PRIu32 "\n", counts[d->backend_count]);
}

static void print_table(const Session *s, const DelegationFact *d) {
  uint32_t columns = d->backend_count + 1;
  Arena scratch = {0};
  StrBuf out = {0};
  uint32_t *counts = ARENA_ARRAY(&scratch, uint32_t, (size_t)OP_COUNT * columns),
           *total = ARENA_ARRAY(&scratch, uint32_t, columns);
  for (uint32_t i = 0; i < d->backend_count; i++)
    for (uint32_t k = 0; k < d->backends[i].node_count; k++)
      if (d->backends[i].nodes[k].partition)
        counts[(size_t)d->backends[i].nodes[k].op * columns + i]++;
  strbuf_append_within(&out, "'", graph_name(d->graph), "': delegated and not, by op\n");
  strbuf_printf(&out, "  %-44s", "op");
  for (uint32_t i = 0; i < d->backend_count; i++)
    strbuf_printf(&out, "  %s", d->backends[i].backend->name);
  strbuf_append(&out, SV("  portable\n"));
  for (uint32_t op = OP_OUTPUT + 1; op < op_count(); op++) {
    uint32_t *row = &counts[(size_t)op * columns];
    row[columns - 1] = d->kernels[op];
    bool any = false;
    for (uint32_t i = 0; i < columns; i++) {
      any |= row[i] != 0;
      total[i] += row[i];
    }
    if (any)
      table_row(&out, op_schema((OpId)op)->full, row, d);
  }
  table_row(&out, SV("all"), total, d);
  print(s, &out);
  arena_release(&scratch);
}

void session_explain(Session *s) {
  const Facts *f = &s->program.facts;
  for (; s->explained < f->delegation_count; s->explained++) {
    const DelegationFact *d = &f->delegations[s->explained];
    if (d->kernels && !d->backend_count && s->sink.explain)
      say_no_backend(s, d);
    if (d->kernels && !d->backend_count && s->explain_json)
      print_json_none(s, d);
    for (uint32_t i = 0; i < d->backend_count; i++)
      tell_backend(s, d, &d->backends[i]);
    if (d->kernels && s->explain_table)
      print_table(s, d);
  }
}

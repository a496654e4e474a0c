/* See explain.h. */
#include "passes/to_backend/explain.h"

#include <inttypes.h>
#include <stdlib.h>

#include "ops/work.h"
#include "support/json.h"
#include "support/text.h"

enum { MAX_RULES_SHOWN = 8, MAX_OPS_NAMED = 3 };

/* The nodes that one rule leaves out. */
typedef struct RuleCount {
  const Refusal *first;
  uint32_t nodes;
  uint64_t work;              /* multiply-adds, see ops/work.h */
  StrView ops[MAX_OPS_NAMED]; /* operators of the model, the first ones */
  uint32_t op_count;          /* how many there are, one more than named at most */
} RuleCount;

/* The numbers of one graph. */
typedef struct Tally {
  uint32_t delegates, taken, left;
  uint64_t work, taken_work; /* multiply-adds of all nodes; of those that are delegated */
  RuleCount *rules;          /* in the order in which they came */
  uint32_t rule_count;
} Tally;

static bool left(const Graph *g, const Refusal *refusals, NodeId n) {
  return !g->nodes[n].tag && refusals[n].rule;
}

static void count_op(RuleCount *r, StrView op) {
  for (uint32_t i = 0; i < r->op_count && i < MAX_OPS_NAMED; i++)
    if (sv_eq(r->ops[i], op))
      return;
  if (r->op_count < MAX_OPS_NAMED)
    r->ops[r->op_count] = op;
  if (r->op_count <= MAX_OPS_NAMED)
    r->op_count++;
}

static void count_left(Tally *t, const Graph *g, const Refusal *refusal, NodeId n, uint64_t work) {
  uint32_t i = 0;
  while (i < t->rule_count && strcmp(t->rules[i].first->rule, refusal->rule) != 0)
    i++;
  if (i == t->rule_count)
    t->rules[t->rule_count++] = (RuleCount){.first = refusal};
  RuleCount *r = &t->rules[i];
  StrView op = node_place(g, n).op;
  t->left++;
  r->nodes++;
  r->work = work_plus(r->work, work);
  count_op(r, op.size ? op : op_schema(g->nodes[n].op)->full);
}

static Tally tally(PassContext *p, const Graph *g, const Refusal *refusals) {
  Tally t = {.rules = ARENA_ARRAY(p->scratch, RuleCount, (size_t)g->live_nodes + 1)};
  uint32_t tags = 0;
  for (FOR_NODES(g, n))
    tags = g->nodes[n].tag > tags ? g->nodes[n].tag : tags;
  bool *seen = ARENA_ARRAY(p->scratch, bool, (size_t)tags + 1);
  for (FOR_NODES(g, n)) {
    uint32_t tag = g->nodes[n].tag;
    uint64_t work = node_work(g, n);
    t.work = work_plus(t.work, work);
    if (tag) {
      t.taken++;
      t.taken_work = work_plus(t.taken_work, work);
      t.delegates += !seen[tag];
      seen[tag] = true;
    }
    if (left(g, refusals, n))
      count_left(&t, g, &refusals[n], n, work);
  }
  return t;
}

/* --- messages --- */

static void say_left(PassContext *p, const Graph *g, const Backend *backend, const Refusal *r,
                     NodeId n) {
  StrView name = op_schema(g->nodes[n].op)->full;
  Diag *diag = diag_begin(p->sink, DIAG_DELEGATE_LEFT_OUT, node_place(g, n));
  diag_message(diag, "%s leaves '" SV_FMT "' (%s): %s%s%s", backend->name, SV_ARG(name), r->rule,
               r->message, r->values[0] ? ": " : "", r->values);
  diag_hint(diag, "%s", r->advice);
  (void)diag_end(diag);
}

/* Most work first, then most nodes. */
static int compare_rules(const void *a, const void *b) {
  const RuleCount *const *x = a, *const *y = b;
  if ((*x)->work != (*y)->work)
    return (*x)->work < (*y)->work ? 1 : -1;
  if ((*x)->nodes != (*y)->nodes)
    return (*x)->nodes < (*y)->nodes ? 1 : -1;
  return strcmp((*x)->first->rule, (*y)->first->rule);
}

static void note_rule(Diag *diag, const Tally *t, const RuleCount *r) {
  StrBuf text;
  strbuf_init(&text);
  strbuf_printf(&text, "%" PRIu32 " left", r->nodes);
  if (t->work)
    strbuf_printf(&text, ", %u %% of the work", work_percent(r->work, t->work));
  strbuf_printf(&text, " (%s): %s: ", r->first->rule, r->first->message);
  for (uint32_t i = 0; i < r->op_count; i++) {
    strbuf_append(&text, i ? SV(", ") : SV(""));
    strbuf_append_printable(&text, i < MAX_OPS_NAMED ? r->ops[i] : SV("..."));
  }
  strbuf_printf(&text, "%s%s", r->first->advice[0] ? "; " : "", r->first->advice);
  diag_note(diag, "%s", strbuf_cstr(&text));
  strbuf_release(&text);
}

static void say_numbers(PassContext *p, const Graph *g, const Backend *backend, const Tally *t) {
  StrView method = intern_get(&g->ctx->names, g->name);
  const RuleCount **rules = ARENA_ARRAY(p->scratch, const RuleCount *, (size_t)t->rule_count + 1);
  for (uint32_t i = 0; i < t->rule_count; i++)
    rules[i] = &t->rules[i];
  qsort(rules, t->rule_count, sizeof *rules, compare_rules);
  Diag *diag = diag_begin(p->sink, DIAG_DELEGATE_SUMMARY, DIAG_NOWHERE);
  const char *share = t->work ? arena_printf(p->scratch, ", %u %% of the work",
                                             work_percent(t->taken_work, t->work))
                              : "";
  diag_message(
      diag, "%s takes %" PRIu32 " of %" PRIu32 " nodes of '" SV_FMT "' in %" PRIu32 " delegate%s%s",
      backend->name, t->taken, t->taken + t->left, SV_ARG(method), t->delegates,
      t->delegates == 1 ? "" : "s", share);
  for (uint32_t i = 0; i < t->rule_count && i < MAX_RULES_SHOWN; i++)
    note_rule(diag, t, rules[i]);
  if (t->rule_count > MAX_RULES_SHOWN)
    diag_note(diag, "%" PRIu32 " more rules", t->rule_count - MAX_RULES_SHOWN);
  if (!p->sink->verbose && t->rule_count)
    diag_hint(diag, "-v lists the nodes");
  (void)diag_end(diag);
}

void explain_no_backend(PassContext *p, const Graph *g) {
  Diag *diag = diag_begin(p->sink, DIAG_DELEGATE_SUMMARY, DIAG_NOWHERE);
  diag_message(diag,
               "no backend is named: all %" PRIu32 " nodes of '" SV_FMT "' run on portable kernels",
               g->live_nodes, SV_ARG(intern_get(&g->ctx->names, g->name)));
  diag_hint(diag, "name one: --backend xnnpack ('etc backends' lists them)");
  (void)diag_end(diag);
}

/* --- JSON --- */

/* The bytes of the first "name=value" of a list; a value may hold spaces, a name does not. */
static size_t first_value(const char *values) {
  size_t size = strcspn(values, " ");
  while (values[size] && strcspn(values + size + 1, "=") >= strcspn(values + size + 1, " "))
    size += 1 + strcspn(values + size + 1, " ");
  return size;
}

/* "name=value name=value" as an object; numbers as such. */
static void values_object(JsonWriter *w, Arena *scratch, const char *values) {
  json_open_object(w);
  while (*values) {
    size_t size = first_value(values), name = strcspn(values, "=");
    if (name >= size)
      BUG("'%s' is no list of values", values);
    StrView value = {values + name + 1, size - name - 1};
    double number;
    json_key(w, arena_strdup(scratch, (StrView){values, name}));
    if (text_parse_double(value, &number))
      json_double(w, number);
    else
      json_string(w, value);
    values += size + (values[size] == ' ');
  }
  json_close_object(w);
}

static void begin_line(JsonWriter *w, StrBuf *out, const Graph *g, const Backend *backend) {
  json_init(w, out, false);
  json_open_object(w);
  json_named_string(w, "backend", sv_from(backend->name));
  json_named_string(w, "method", intern_get(&g->ctx->names, g->name));
}

static void end_line(JsonWriter *w, StrBuf *out) {
  json_close_object(w);
  strbuf_append_char(out, '\n');
}

static void node_line(StrBuf *out, PassContext *p, const Graph *g, const Backend *backend,
                      const Refusal *r, NodeId n) {
  DiagPlace place = node_place(g, n);
  JsonWriter w;
  begin_line(&w, out, g, backend);
  json_named_string(&w, "node", place.node);
  json_named_string(&w, "op", place.op);
  json_key(&w, "index");
  json_int(&w, place.index);
  json_named_string(&w, "aten", op_schema(g->nodes[n].op)->full);
  if (g->nodes[n].tag) {
    json_named_uint(&w, "delegate", g->nodes[n].tag);
  } else {
    json_named_string(&w, "rule", sv_from(r->rule));
    json_named_string(&w, "message", sv_from(r->message));
    json_key(&w, "values");
    values_object(&w, p->scratch, r->values);
    json_named_string(&w, "advice", sv_from(r->advice));
  }
  end_line(&w, out);
}

static void numbers_line(StrBuf *out, const Graph *g, const Backend *backend, const Tally *t) {
  JsonWriter w;
  begin_line(&w, out, g, backend);
  json_named_uint(&w, "delegates", t->delegates);
  json_named_uint(&w, "taken", t->taken);
  json_named_uint(&w, "left", t->left);
  json_key(&w, "rules");
  json_open_object(&w);
  for (uint32_t i = 0; i < t->rule_count; i++) {
    json_named_uint(&w, t->rules[i].first->rule, t->rules[i].nodes);
  }
  json_close_object(&w);
  end_line(&w, out);
}

void explain_delegation(PassContext *p, const Graph *g, const Backend *backend,
                        const Refusal *refusals) {
  Tally t = tally(p, g, refusals);
  StrBuf json;
  strbuf_init(&json);
  for (FOR_NODES(g, n)) {
    if (left(g, refusals, n))
      say_left(p, g, backend, &refusals[n], n);
    if (p->options->explain_json && (g->nodes[n].tag || left(g, refusals, n)))
      node_line(&json, p, g, backend, &refusals[n], n);
  }
  say_numbers(p, g, backend, &t);
  if (p->options->explain_json && p->print) {
    numbers_line(&json, g, backend, &t);
    p->print(p->print_user, json.data, json.size);
  }
  strbuf_release(&json);
}

static void say_code(PassContext *p, const Graph *g, const Backend *backend, uint32_t tag,
                     const DelegateCode *code, uint64_t bytes) {
  StrView method = intern_get(&g->ctx->names, g->name);
  Diag *diag = diag_begin(p->sink, DIAG_DELEGATE_SUMMARY, DIAG_NOWHERE);
  diag_message(diag,
               "delegate %" PRIu32 " of %s in '" SV_FMT "' has %" PRIu32
               " transpose%s, which move %" PRIu64 " bytes",
               tag, backend->name, SV_ARG(method), code->transpose_count,
               code->transpose_count == 1 ? "" : "s", bytes);
  for (uint32_t kind = 0; kind < DELEGATE_MOVES; kind++) {
    StrBuf line;
    strbuf_init(&line);
    if (delegate_print_transposes(&line, code->transposes, code->transpose_count, kind))
      diag_note(diag, "%s", strbuf_cstr(&line));
    strbuf_release(&line);
  }
  (void)diag_end(diag);
}

void explain_code(PassContext *p, const Graph *g, const Backend *backend, uint32_t tag,
                  const DelegateCode *code) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < code->transpose_count; i++)
    bytes += code->transposes[i].bytes;
  if (p->sink->verbose)
    say_code(p, g, backend, tag, code, bytes);
  if (!p->options->explain_json || !p->print)
    return;
  StrBuf json;
  JsonWriter w;
  strbuf_init(&json);
  begin_line(&w, &json, g, backend);
  json_named_uint(&w, "delegate", tag);
  json_named_uint(&w, "transposes", code->transpose_count);
  json_named_uint(&w, "transposed_bytes", bytes);
  delegate_json_transposes(&w, code->transposes, code->transpose_count);
  end_line(&w, &json);
  p->print(p->print_user, json.data, json.size);
  strbuf_release(&json);
}

/* --- the table --- */

ExplainTable explain_table_begin(PassContext *p) {
  ExplainTable t = {0};
  if (!p->options || !p->options->explain_table || !p->print)
    return t;
  t.columns = p->options->backend_count + 1;
  t.counts = ARENA_ARRAY(p->scratch, uint32_t, (size_t)OP_COUNT * t.columns);
  return t;
}

void explain_table_add(ExplainTable *t, const Graph *g, uint32_t backend) {
  for (FOR_NODES(g, n))
    if (t->counts && g->nodes[n].tag)
      t->counts[(size_t)g->nodes[n].op * t->columns + backend]++;
}

static void table_row(StrBuf *out, StrView name, const uint32_t *counts, const ExplainTable *t,
                      const PassContext *p) {
  strbuf_printf(out, "  %-44.*s", (int)name.size, name.data);
  for (uint32_t i = 0; i < t->columns; i++) {
    bool last = i + 1 == t->columns;
    int width = last ? 8 : (int)strlen(p->options->backends[i].backend->name);
    strbuf_printf(out, "  %*" PRIu32, width, counts[i]);
  }
  strbuf_append_char(out, '\n');
}

void explain_table_end(ExplainTable *t, PassContext *p, const Graph *g) {
  if (!t->counts)
    return;
  for (FOR_NODES(g, n))
    if (!op_has_trait(g->nodes[n].op, OP_DELEGATE))
      t->counts[(size_t)g->nodes[n].op * t->columns + t->columns - 1]++;
  StrBuf out;
  strbuf_init(&out);
  strbuf_append(&out, SV("'"));
  strbuf_append_printable(&out, intern_get(&g->ctx->names, g->name));
  strbuf_append(&out, SV("': delegated and not, by op\n"));
  strbuf_printf(&out, "  %-44s", "op");
  for (uint32_t i = 0; i + 1 < t->columns; i++)
    strbuf_printf(&out, "  %s", p->options->backends[i].backend->name);
  strbuf_append(&out, SV("  portable\n"));
  uint32_t *total = ARENA_ARRAY(p->scratch, uint32_t, t->columns);
  for (uint32_t op = OP_OUTPUT + 1; op < OP_COUNT; op++) {
    const uint32_t *counts = &t->counts[(size_t)op * t->columns];
    bool any = false;
    for (uint32_t i = 0; i < t->columns; i++) {
      any |= counts[i] != 0;
      total[i] += counts[i];
    }
    if (any)
      table_row(&out, op_schema((OpId)op)->full, counts, t, p);
  }
  table_row(&out, SV("all"), total, t, p);
  p->print(p->print_user, out.data, out.size);
  strbuf_release(&out);
}

/* See explain.h. */
#include "passes/to_backend/explain.h"

#include <inttypes.h>

#include "support/json.h"
#include "support/text.h"

typedef struct RuleCount {
  const char *rule;
  uint32_t nodes;
} RuleCount;

/* The numbers of one graph. */
typedef struct Tally {
  uint32_t delegates, taken, left;
  RuleCount *rules; /* in the order in which they came */
  uint32_t rule_count;
} Tally;

static bool left(const Graph *g, const Refusal *refusals, NodeId n) {
  return !g->nodes[n].tag && refusals[n].rule;
}

static Tally tally(PassContext *p, const Graph *g, const Refusal *refusals) {
  Tally t = {.rules = ARENA_ARRAY(p->scratch, RuleCount, (size_t)g->live_nodes + 1)};
  uint32_t tags = 0;
  for (FOR_NODES(g, n))
    tags = g->nodes[n].tag > tags ? g->nodes[n].tag : tags;
  bool *seen = ARENA_ARRAY(p->scratch, bool, (size_t)tags + 1);
  for (FOR_NODES(g, n)) {
    uint32_t tag = g->nodes[n].tag, i = 0;
    if (tag) {
      t.taken++;
      t.delegates += !seen[tag];
      seen[tag] = true;
    }
    if (!left(g, refusals, n))
      continue;
    t.left++;
    while (i < t.rule_count && strcmp(t.rules[i].rule, refusals[n].rule) != 0)
      i++;
    if (i == t.rule_count)
      t.rules[t.rule_count++] = (RuleCount){.rule = refusals[n].rule};
    t.rules[i].nodes++;
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

static void say_numbers(PassContext *p, const Graph *g, const Backend *backend, const Tally *t) {
  StrView method = intern_get(&g->ctx->names, g->name);
  Diag *diag = diag_begin(p->sink, DIAG_DELEGATE_SUMMARY, DIAG_NOWHERE);
  diag_message(
      diag, "%s takes %" PRIu32 " of %" PRIu32 " nodes of '" SV_FMT "' in %" PRIu32 " delegate%s",
      backend->name, t->taken, t->taken + t->left, SV_ARG(method), t->delegates,
      t->delegates == 1 ? "" : "s");
  for (uint32_t i = 0; i < t->rule_count; i++)
    diag_note(diag, "%" PRIu32 " left: %s", t->rules[i].nodes, t->rules[i].rule);
  (void)diag_end(diag);
}

/* --- JSON --- */

static void member(JsonWriter *w, const char *key, StrView value) {
  json_key(w, key);
  json_string(w, value);
}

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
  member(w, "backend", sv_from(backend->name));
  member(w, "method", intern_get(&g->ctx->names, g->name));
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
  member(&w, "node", place.node);
  member(&w, "op", place.op);
  json_key(&w, "index");
  json_int(&w, place.index);
  member(&w, "aten", op_schema(g->nodes[n].op)->full);
  if (g->nodes[n].tag) {
    json_key(&w, "delegate");
    json_uint(&w, g->nodes[n].tag);
  } else {
    member(&w, "rule", sv_from(r->rule));
    member(&w, "message", sv_from(r->message));
    json_key(&w, "values");
    values_object(&w, p->scratch, r->values);
    member(&w, "advice", sv_from(r->advice));
  }
  end_line(&w, out);
}

static void numbers_line(StrBuf *out, const Graph *g, const Backend *backend, const Tally *t) {
  JsonWriter w;
  begin_line(&w, out, g, backend);
  json_key(&w, "delegates");
  json_uint(&w, t->delegates);
  json_key(&w, "taken");
  json_uint(&w, t->taken);
  json_key(&w, "left");
  json_uint(&w, t->left);
  json_key(&w, "rules");
  json_open_object(&w);
  for (uint32_t i = 0; i < t->rule_count; i++) {
    json_key(&w, t->rules[i].rule);
    json_uint(&w, t->rules[i].nodes);
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
  say_code(p, g, backend, tag, code, bytes);
  if (!p->options->explain_json || !p->print)
    return;
  StrBuf json;
  JsonWriter w;
  strbuf_init(&json);
  begin_line(&w, &json, g, backend);
  json_key(&w, "delegate");
  json_uint(&w, tag);
  json_key(&w, "transposes");
  json_uint(&w, code->transpose_count);
  json_key(&w, "transposed_bytes");
  json_uint(&w, bytes);
  delegate_json_transposes(&w, code->transposes, code->transpose_count);
  end_line(&w, &json);
  p->print(p->print_user, json.data, json.size);
  strbuf_release(&json);
}

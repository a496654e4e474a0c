/* See rewrite.h. */
#include "ir/rewrite.h"

#include "ir/op.h"
#include "ir/text.h"
#include "ir/trace.h"

static void name_cause(Graph *g, const char *rule, NodeId at) {
  if (!g->trace)
    return;
  g->trace->rule = rule;
  g->trace->at = at;
}

/* A value of another type than the result: a rule of ours does not apply, one of a plug-in is
 * wrong.
 */
static Status refuse_type(const Graph *g, NodeId n, ValueId value, const char *rule) {
  DiagSink *sink = g->ctx->sink;
  if (!sink->plugin)
    return STATUS_OK;
  StrBuf types = {0};
  type_describe(g, value_type(g, value), &types);
  strbuf_append(&types, SV(" for a result of the type "));
  type_describe(g, value_type(g, node_result(g, n, 0)), &types);
  Status status =
      diag_report(sink, DIAG_PLUGIN_FAULT, node_place(g, n),
                  "the rule '%s' gives a value of the type %s", rule, strbuf_cstr(&types));
  strbuf_release(&types);
  return status;
}

static bool apply(Builder *b, NodeId n, RewriteFn *rule, const char *name) {
  Graph *g = b->g;
  b->before = n;
  b->loc = node_cget(g, n)->loc;
  ValueId result = node_result(g, n, 0), value = rule(b, n);
  if (!value || b->status != STATUS_OK)
    return false;
  if (!value_same_type(g, value, result)) {
    b->status = refuse_type(g, n, value, name);
    return false;
  }
  if (value == result) {
    TRACE(g, .kind = TRACE_EDITED, .node = n);
    return true;
  }
  graph_replace_value(g, result, value);
  if (node_unused(g, n, 0))
    graph_remove_node(g, n);
  return true;
}

/* The rules by op: where the first of an op is, counted from 1; 0: there is none. Most nodes are of
 * ops that no rule is for. */
typedef struct FirstRules {
  uint16_t of[OP_COUNT];
} FirstRules;

static FirstRules find_first(const Rewriter *r) {
  FirstRules first = {{0}};
  for (uint32_t i = r->rule_count; i-- > 0;) {
    if (r->rules[i].op != OP_NONE)
      first.of[r->rules[i].op] = (uint16_t)(i + 1);
    for (uint32_t op = 0; r->rules[i].op == OP_NONE && op < OP_COUNT; op++)
      first.of[op] = (uint16_t)(i + 1);
  }
  return first;
}

/* Tries the rules at n from that one on; whether one applied. */
static bool visit(Builder *b, NodeId n, const Rewriter *r, uint32_t from) {
  OpId op = node_cget(b->g, n)->op;
  bool applied = false;
  for (uint32_t i = from; i < r->rule_count && b->status == STATUS_OK && !applied; i++) {
    const RewriteRule *rule = &r->rules[i];
    if (rule->op != op && rule->op != OP_NONE)
      continue;
    const char *name = rule->name ? rule->name : r->name;
    name_cause(b->g, name, n);
    applied = apply(b, n, rule->rewrite, name);
    r->counts[i] += applied;
  }
  name_cause(b->g, NULL, 0);
  return applied;
}

Status rewrite_graph(Graph *g, const Rewriter *r) {
  Builder b = builder_make(g, 0, 0);
  b.fold = r->fold;
  b.fold_data = r->fold_data;
  b.data = r->data;
  FirstRules first = find_first(r);
  for (NodeId n = g->first, next; n && b.status == STATUS_OK; n = next) {
    NodeId before = node_cget(g, n)->prev;
    next = node_cget(g, n)->next;
    uint32_t from = first.of[node_cget(g, n)->op];
    bool replaced = from && visit(&b, n, r, from - 1) && node_cget(g, n)->op == OP_NONE;
    if (replaced && r->revisit)
      next = before ? node_cget(g, before)->next : g->first;
  }
  return b.status;
}

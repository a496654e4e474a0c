/* The walk of all recover_* passes. */
#include "passes/source/recover.h"

bool recover_fits(const Graph *g, NodeId n, ValueId x) {
  return value_cget(g, x)->type == value_cget(g, node_result(g, n, 0))->type &&
         dtype_is_float(value_dtype(g, x));
}

NodeId recover_lone_norm(const Graph *g, ValueId v, OpId op) {
  NodeId n = match_op_once(g, v, op);
  return n && node_result(g, n, 0) == v && !value_cget(g, v + 1)->use_count &&
                 !value_cget(g, v + 2)->use_count
             ? n
             : 0;
}

static bool try_row(Builder *b, NodeId n, const RecoverRow *row) {
  Graph *g = b->g;
  b->before = n;
  b->loc = node_cget(g, n)->loc;
  ValueId value = row->recover(b, n), result = node_result(g, n, 0);
  if (!value || b->status != STATUS_OK || value_cget(g, value)->type != value_cget(g, result)->type)
    return false;
  value_get(g, value)->name = value_cget(g, result)->name;
  graph_replace_uses(g, result, value);
  return true;
}

Status recover_run(PassContext *p, Graph *g, const RecoverRow *rows, uint32_t count) {
  Builder b = builder_make(g, 0, 0);
  for (NodeId n = g->first, next; n && b.status == STATUS_OK; n = next) {
    next = node_cget(g, n)->next;
    for (uint32_t i = 0; i < count && b.status == STATUS_OK; i++)
      if (node_cget(g, n)->op == rows[i].root && try_row(&b, n, &rows[i])) {
        pass_count(p, rows[i].name, 1);
        break;
      }
  }
  return b.status;
}

/* Rows that are added at run-time indices (messages between the nodes of a graph, summed for each
 * node) become columns: scatter_by_pooling (executorch) adds along the last dim only. That stands
 * here so that backends can take the transposes. */
#include "passes/executorch/scatter_by_pooling.h"
#include "passes/pass.h"

static ValueId columns(Builder *b, ValueId v, int64_t rows, int64_t size) {
  ValueId matrix = build_view(b, v, (SymInt[]){rows, size}, 2);
  return build_permute(b, matrix, (int64_t[]){1, 0});
}

static ValueId rewrite(Builder *b, NodeId n) {
  Graph *g = b->g;
  IndexedSum s;
  if (!read_indexed_sum(g, n, &s) || s.axis != 0 || value_rank(g, s.self) == 1)
    return 0;
  ValueId at[2] = {0, build_view(b, s.index, &s.count, 1)};
  ValueId self = columns(b, s.self, s.entries, s.rows),
          values = columns(b, s.values, s.count, s.rows),
          y = build(b, OP_INDEX_PUT, A_VAL(self), A_VALS(at, 2), A_VAL(values), A_BOOL(true));
  return build_view_as(b, build_permute(b, y, (int64_t[]){1, 0}), value_dims(g, s.self));
}

Status pass_permute_scatters(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_INDEX_PUT, rewrite, "sums"}};
  return pass_rewrite(p, g, rules, COUNT_OF(rules));
}

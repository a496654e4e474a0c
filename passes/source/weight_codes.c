/* See weight_codes.h.
 *
 * Measured on the wheel's kernels of ExecuTorch 1.4.1, ns for each element of a weight of 256 x
 * 1024: widened 0.5, times the scale of its row 0.65, multiplied with 16 columns 1.0, with 64 2.0,
 * with 256 5.8. Kernels without vector instructions multiply for 1 ns and more a column. */
#include "passes/source/weight_codes.h"

#include <stdlib.h>

#include "ops/work.h"

/* Products of two numbers in all of the graph for each element that is widened. */
enum { USES = 32 };

static bool is_widening(const Graph *g, NodeId n) {
  if (node_cget(g, n)->op != OP_TO_COPY || value_dtype(g, node_result(g, n, 0)) != DTYPE_F32)
    return false;
  ValueId codes = node_value(g, n, 0);
  return value_is_const(g, codes) && dtype_in(value_dtype(g, codes), DT(I8) | DT(U8)) &&
         value_lazy_constant(g, codes)->size >= WIDENED_LEAST;
}

bool widening_step(const Graph *g, NodeId n) {
  switch (node_cget(g, n)->op) {
  case OP_VIEW_COPY:
  case OP_ET_VIEW:
    return true;
  case OP_MUL_TENSOR:
    return value_is_const(g, node_value(g, n, 1));
  case OP_SUB_TENSOR:
    return value_is_const(g, node_value(g, n, 1)) && node_scalar(g, n, 2) == 1;
  default:
    return false;
  }
}

/* Whether v is a weight of n that its kernels, or those that passes make of it, read as it is;
 * that of linear is transposed (linear_to_matmul), so that each scale must belong to a row. */
static bool is_weight(const Graph *g, NodeId n, ValueId v) {
  switch (node_cget(g, n)->op) {
  case OP_CONVOLUTION:
    return node_value(g, n, 1) == v && !node_bool(g, n, op_arg_index(OP_CONVOLUTION, "transposed"));
  case OP_LINEAR:
  case OP_MM:
  case OP_BMM:
  case OP_MATMUL:
    return node_value(g, n, 0) == v || node_value(g, n, 1) == v;
  case OP_ADDMM:
    return node_value(g, n, 1) == v || node_value(g, n, 2) == v;
  default:
    return false;
  }
}

bool widening_by_row(const Graph *g, ValueId by, ValueId x) {
  Dims dims = value_dims(g, by);
  return dims.rank && dims.rank == value_rank(g, x) && dims.d[0] == value_dim(g, x, 0) &&
         dims_count(dims.d, 1, dims.rank) == 1;
}

/* Whether there is one zero point and scale for each row, or for all. */
static bool scaled_by_row(const Graph *g, ValueId weight, NodeId widening) {
  for (NodeId n = value_def(g, weight); n != widening; n = value_def(g, node_value(g, n, 0))) {
    OpId op = node_cget(g, n)->op;
    if (op != OP_MUL_TENSOR && op != OP_SUB_TENSOR)
      continue;
    ValueId by = node_value(g, n, 1);
    if (value_rank(g, by) && !widening_by_row(g, by, node_value(g, n, 0)))
      return false;
  }
  return true;
}

/* The weight that n widens; 0 when others than steps and products, or several at once, use it. */
static ValueId weight_of(const Graph *g, NodeId n) {
  ValueId v = node_result(g, n, 0);
  for (NodeId user; (user = value_only_user(g, v)) && widening_step(g, user);)
    v = node_result(g, user, 0);
  for (UseId u = first_use(g, v); u; u = g->uses[u].next)
    if (g->uses[u].node == NODE_OUTPUT || !is_weight(g, g->uses[u].node, v) ||
        (node_cget(g, g->uses[u].node)->op == OP_LINEAR && !scaled_by_row(g, v, n)))
      return 0;
  return first_use(g, v) ? v : 0;
}

static void find_readers(const Graph *g, const uint32_t *position, WidenedWeight *w) {
  for (UseId u = first_use(g, w->weight); u; u = g->uses[u].next) {
    NodeId reader = g->uses[u].node;
    if (position[reader] > position[w->reader])
      w->reader = reader;
    w->readers++;
    w->uses = work_plus(w->uses, node_work(g, reader) / w->elements);
  }
}

uint32_t widened_weights(const Graph *g, Arena *scratch, WidenedWeight **list) {
  uint32_t count = 0, at = 0;
  uint32_t *position = NULL;
  *list = NULL;
  for (FOR_NODES(g, n)) {
    WidenedWeight w = {.node = n, .weight = is_widening(g, n) ? weight_of(g, n) : 0};
    if (!w.weight)
      continue;
    if (!*list) {
      *list = ARENA_ARRAY(scratch, WidenedWeight, g->node_count);
      position = ARENA_ARRAY(scratch, uint32_t, g->node_count);
      for (FOR_NODES(g, k))
        position[k] = ++at;
    }
    w.elements = value_lazy_constant(g, node_value(g, n, 0))->size;
    find_readers(g, position, &w);
    (*list)[count++] = w;
  }
  return count;
}

void widened_weights_discount(const Graph *g, const WidenedWeight *list, uint32_t count,
                              Liveness *live) {
  for (uint32_t i = 0; i < count; i++)
    for (ValueId v = list[i].weight;; v = node_value(g, value_def(g, v), 0)) {
      uint32_t span = live->span_of[v];
      if (span && span <= live->span_count)
        live->spans[span - 1].size = 0;
      if (value_def(g, v) == list[i].node)
        break;
    }
}

/* Moves n and the steps behind it in front of their reader. */
static void sink(Graph *g, NodeId n, NodeId reader) {
  while (n != reader) {
    NodeId next = value_only_user(g, node_result(g, n, 0));
    graph_move_before(g, n, reader);
    n = next;
  }
}

static int by_uses(const void *a, const void *b) {
  const WidenedWeight *x = a, *y = b;
  if (x->uses != y->uses)
    return x->uses > y->uses ? -1 : 1;
  return x->node < y->node ? -1 : x->node > y->node;
}

bool *weight_codes(const PassContext *p, Graph *g) {
  WidenedWeight *list;
  uint32_t count = p->options->backend_count ? 0 : widened_weights(g, p->scratch, &list);
  uint64_t work = 0;
  if (!count)
    return NULL;
  for (FOR_NODES(g, n))
    work = work_plus(work, node_work(g, n));
  qsort(list, count, sizeof *list, by_uses);
  bool *stays = ARENA_ARRAY(p->scratch, bool, g->node_count);
  uint64_t paid = work / USES;
  for (uint32_t i = 0; i < count && list[i].elements <= paid; i++) {
    if (list[i].readers > 1)
      continue;
    paid -= list[i].elements;
    stays[list[i].node] = true;
    sink(g, list[i].node, list[i].reader);
  }
  return stays;
}

/* Widened weights (passes/source/weight_codes.h) where there is memory for them.
 *
 * The f32 of a weight need memory while it is read. Where they fit below what everything else needs
 * at one time, they stay. Else, where the weight is the left operand of a product, as those of
 * convolutions are, the product is divided: each part has some rows of the weight, and the parts
 * are widened one after the other. Weights that do not fit in parts either become f32 in the file.
 *
 * So the arena is that of the model with weights in f32: gather_windows, which fills the memory
 * that nothing else needs, knows nothing of these. */
#include "interp/fold.h"
#include "passes/executorch/liveness.h"
#include "passes/executorch/views.h"
#include "passes/source/weight_codes.h"

enum {
  PARTS_MAX = 32,
  PART_LEAST = 1 << 10, /* elements, for each reader: the calls of a part take some 600 bytes */
  PART_USES = 8         /* of each element of a part, each time that it is widened */
};

typedef struct Weights {
  Graph *g;
  WidenedWeight *list;
  uint32_t count;
  const uint64_t *use, *others; /* bytes in use while each node runs, by position from 1: in all,
                                   and without the f32 of weights */
  uint32_t *position;           /* by node */
  uint64_t limit;               /* the most of others */
  FoldChain fold;
  uint64_t divided;
} Weights;

static uint64_t value_bytes(const Graph *g, ValueId v) {
  return type_bytes_upper(g, value_type(g, v));
}

static Status measure_memory(Weights *all, Arena *scratch) {
  Graph *g = all->g;
  Liveness live;
  uint64_t peak;
  uint32_t position = 0;
  TRY(liveness_compute(g, scratch, (LivenessOptions){.in_place = true}, &live));
  all->use = liveness_in_use(&live, scratch, &peak);
  widened_weights_discount(g, all->list, all->count, &live);
  all->others = liveness_in_use(&live, scratch, &all->limit);
  all->position = ARENA_ARRAY(scratch, uint32_t, g->node_count);
  for (FOR_NODES(g, n))
    all->position[n] = ++position;
  return STATUS_OK;
}

/* --- parts --- */

/* Rows [begin, end) of the left operand of a product. */
typedef struct Part {
  Builder b;
  SymInt rows, begin, end;
} Part;

static bool is_left_operand(const Graph *g, ValueId v) {
  for (UseId u = first_use(g, v); u; u = g->uses[u].next)
    if (node_cget(g, g->uses[u].node)->op != OP_MM || node_value(g, g->uses[u].node, 0) != v)
      return false;
  return true;
}

/* Each reader widens the parts anew, which must be used often enough. */
static bool divisible(const Graph *g, const WidenedWeight *w) {
  SymInt rows = value_rank(g, w->weight) ? value_dim(g, w->weight, 0) : 0;
  if (w->uses / w->readers < PART_USES || !is_left_operand(g, w->weight) ||
      value_lazy_constant(g, node_value(g, w->node, 0))->transform)
    return false;
  for (NodeId n = value_def(g, w->weight); n != w->node; n = value_def(g, node_value(g, n, 0)))
    if (value_dim(g, node_value(g, n, 0), 0) != rows)
      return false;
  return true;
}

/* Of the largest result of a reader, bytes. */
static uint64_t result_bytes(const Graph *g, ValueId weight) {
  uint64_t most = 0;
  for (UseId u = first_use(g, weight); u; u = g->uses[u].next)
    most = max_u64(most, value_bytes(g, node_result(g, g->uses[u].node, 0)));
  return most;
}

/* In how many parts w is to be widened within the limit; 0: in none. */
static uint32_t parts_within(const Weights *all, const WidenedWeight *w) {
  const Graph *g = all->g;
  uint64_t most = 0, others = 0, own = value_bytes(g, w->weight);
  for (uint32_t i = all->position[w->node]; i <= all->position[w->reader]; i++) {
    most = max_u64(most, all->use[i]);
    others = max_u64(others, all->others[i]);
  }
  if (most <= all->limit)
    return 1;
  uint64_t room = all->limit - others;
  if (!divisible(g, w) || result_bytes(g, w->weight) > room)
    return 0;
  uint64_t least = (uint64_t)PART_LEAST * w->readers;
  for (uint32_t parts = 2; parts <= PARTS_MAX && w->elements / parts >= least; parts *= 2)
    if (own / parts <= room)
      return parts;
  return 0;
}

static ValueId rows_of_constant(Part *p, ValueId v) {
  Graph *g = p->b.g;
  Dims dims = value_dims(g, v);
  dims.d[0] = p->end - p->begin;
  const Constant *whole = value_constant(g, v);
  uint64_t row = whole->size / (uint64_t)p->rows;
  Constant bytes = constant_run(*whole, row * (uint64_t)p->begin, row * (uint64_t)dims.d[0]);
  TypeId type = graph_tensor_type(g, value_dtype(g, v), dims.rank, dims.d, ORDER_CONTIGUOUS);
  return graph_add_constant(g, type, bytes, 0);
}

/* The rows of v, which is the weight or a step on the way to it. */
static ValueId part_of(Part *p, ValueId v) {
  Graph *g = p->b.g;
  NodeId n = value_def(g, v);
  OpId op = node_cget(g, n)->op;
  if (op == OP_TO_COPY)
    return build_cast(&p->b, rows_of_constant(p, node_value(g, n, 0)), value_dtype(g, v));
  ValueId x = part_of(p, node_value(g, n, 0));
  if (op == OP_VIEW_COPY || op == OP_ET_VIEW) {
    Dims dims = value_dims(g, v);
    dims.d[0] = p->end - p->begin;
    return build_et_view(&p->b, x, dims.d, dims.rank);
  }
  ValueId by = node_value(g, n, 1);
  bool by_row = value_rank(g, by) == value_rank(g, v) && value_rank(g, by) > 0 &&
                value_dim(g, by, 0) == p->rows;
  return build_binary(&p->b, op, x, by_row ? rows_of_constant(p, by) : by);
}

/* Removes the nodes that nothing uses, from the one that makes v back to the first. */
static void remove_unused(Graph *g, ValueId v, NodeId first) {
  for (NodeId n = value_def(g, v), before; n && node_unused(g, n, 0); n = before) {
    before = n == first ? 0 : value_def(g, node_value(g, n, 0));
    graph_remove_node(g, n);
  }
}

/* Puts a concatenation of the results of parts in the place of n, which reads the weight. */
static Status divide_reader(Graph *g, const WidenedWeight *w, NodeId n, uint32_t count) {
  ValueId parts[PARTS_MAX], x = node_value(g, n, 1);
  Part p = {.b = builder_make(g, n, node_cget(g, n)->loc), .rows = value_dim(g, w->weight, 0)};
  uint32_t made = 0;
  for (SymInt step = (p.rows + count - 1) / count; p.end < p.rows && p.b.status == STATUS_OK;) {
    p.begin = p.end;
    p.end = min_i64(p.begin + step, p.rows);
    ValueId part = part_of(&p, w->weight);
    parts[made++] = build_binary(&p.b, OP_MM, part, x);
  }
  ValueId joined = build(&p.b, OP_CAT, A_VALS(parts, made), A_INT(0));
  TRY(p.b.status);
  graph_replace_value(g, node_result(g, n, 0), joined);
  graph_remove_node(g, n);
  return STATUS_OK;
}

static Status divide(Graph *g, const WidenedWeight *w, uint32_t count) {
  for (UseId u; (u = first_use(g, w->weight));)
    TRY(divide_reader(g, w, g->uses[u].node, count));
  remove_unused(g, w->weight, w->node);
  return STATUS_OK;
}

static Status fit(Weights *all, const WidenedWeight *w, bool may_fold) {
  Graph *g = all->g;
  uint32_t parts = parts_within(all, w);
  if (parts > 1) {
    all->divided++;
    return divide(g, w, parts);
  }
  if (!parts && may_fold && w->elements * (sizeof(float) - 1) <= FOLD_LIMIT_DEFAULT) {
    fold_chain(&all->fold, value_def(g, w->weight));
    remove_unused(g, w->weight, w->node);
  }
  return all->fold.b.status;
}

Status pass_divide_weights(PassContext *p, Graph *g) {
  Weights all = {.g = g};
  Status status = STATUS_OK;
  all.count = widened_weights(g, p->scratch, &all.list);
  if (!all.count)
    return STATUS_OK;
  TRY(measure_memory(&all, p->scratch));
  fold_chain_init(&all.fold, g, p->scratch);
  for (uint32_t i = 0; i < all.count && status == STATUS_OK; i++)
    status = fit(&all, &all.list[i], !p->options->fold_limit);
  fold_chain_release(&all.fold);
  pass_count(p, "weights divided", all.divided);
  pass_count(p, "nodes folded", all.fold.folded);
  return status;
}

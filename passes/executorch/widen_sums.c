/* Convolutions, average pools and large products of f16 and bf16 compute in f32.
 *
 * Why: the runtime's kernels convolution.out and avg_pool2d.out add up in the element type
 * (ExecuTorch 1.4.1, portable): a sum of ones stands still at 2048, of bf16 at 256. So these are
 * converted whatever it costs, and the result is rounded once, as in ONNX Runtime. Products add up
 * in f32, but take 1.6 ns for each product of two numbers, those of f32 (OpenBLAS) a twentieth:
 * they are converted where that is faster and where arena and constants together stay below what
 * they would be if all of the model were f32. */
#include "ops/work.h"
#include "passes/executorch/liveness.h"
#include "passes/pass.h"

enum {
  WIDER = 2,          /* f32 to f16 */
  CONVERSION = 2,     /* products of f16 in the time in which an element is converted */
  PRODUCTS_MIN = 4000 /* 6 us, the calls */
};

static double elements(const Graph *g, ValueId v) {
  return (double)type_bytes_upper(g, value_type(g, v)) / sizeof(uint16_t);
}

/* Operands and result of n, elements. */
static double converted(const Graph *g, NodeId n) {
  double sum = elements(g, node_result(g, n, 0));
  FOR_OPERANDS(g, n, v, { sum += elements(g, v); })
  return sum;
}

/* Whether n is a product that is faster in f32. */
static bool gains(const Graph *g, NodeId n) {
  OpId op = node_cget(g, n)->op;
  return (op == OP_MM || op == OP_ADDMM || op == OP_BMM || op == OP_LINEAR) &&
         (double)node_work(g, n) >= CONVERSION * converted(g, n) + PRODUCTS_MIN;
}

static bool must_widen(const Graph *g, NodeId n) {
  OpId op = node_cget(g, n)->op;
  return op == OP_CONVOLUTION || op == OP_AVG_POOL2D;
}

static ValueId as_f32(void *user, ValueId v) { return build_cast(user, v, DTYPE_F32); }

static Status widen(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId result = node_result(g, n, 0);
  b->before = n;
  b->loc = node_cget(g, n)->loc;
  ValueId wide = build_retyped(b, n, DTYPE_F32, as_f32, b);
  ValueId narrow = build_cast(b, wide, value_dtype(g, result));
  TRY(b->status);
  graph_replace_value(g, result, narrow);
  graph_remove_node(g, n);
  return STATUS_OK;
}

static bool is_candidate(const Graph *g, NodeId n) {
  return (must_widen(g, n) || gains(g, n)) && dtype_is_half(value_dtype(g, node_result(g, n, 0)));
}

static bool has_candidates(const Graph *g) {
  for (FOR_NODES(g, n))
    if (is_candidate(g, n))
      return true;
  return false;
}

/* What of the memory that is in use while n runs its copies take the place of, bytes: operands that
 * nothing reads later, and the result. */
static double replaced(const Graph *g, const Liveness *live, NodeId n, uint32_t position) {
  double sum = elements(g, node_result(g, n, 0)) * sizeof(uint16_t);
  uint32_t before = 0;
  FOR_OPERANDS(g, n, v, {
    uint32_t span = live->span_of[v];
    if (span && span <= live->span_count && span != before &&
        live->spans[span - 1].last == position)
      sum += (double)live->spans[span - 1].size;
    before = span;
  })
  return sum;
}

/* What f32 would need more for the constants, bytes. */
static double constants_of_halves(const Graph *g) {
  double sum = 0;
  for (ValueId v = 1; v < g->value_count; v++)
    if (value_is_const(g, v) && value_cget(g, v)->use_count && dtype_is_half(value_dtype(g, v)))
      sum += (double)value_lazy_constant(g, v)->size;
  return sum;
}

/* Fills nodes, which has room for all, with those to convert. */
static Status choose(Graph *g, Arena *scratch, NodeId *nodes, uint32_t *count) {
  Liveness live;
  uint64_t need;
  uint32_t position = 0;
  TRY(liveness_compute(g, scratch, (LivenessOptions){.in_place = true}, &live));
  const uint64_t *use = liveness_in_use(&live, scratch, &need);
  double limit = WIDER * (double)need + constants_of_halves(g);
  for (FOR_NODES(g, n)) {
    position++;
    if (!is_candidate(g, n))
      continue;
    double needed =
        (double)use[position] - replaced(g, &live, n, position) + converted(g, n) * sizeof(float);
    if (must_widen(g, n) || needed <= limit)
      nodes[(*count)++] = n;
  }
  return STATUS_OK;
}

Status pass_widen_sums(PassContext *p, Graph *g) {
  uint32_t count = 0;
  Builder b = builder_make(g, 0, 0);
  if (!has_candidates(g)) /* what memory is in use takes longer to find out */
    return STATUS_OK;
  NodeId *nodes = ARENA_ARRAY(p->scratch, NodeId, g->node_count);
  TRY(choose(g, p->scratch, nodes, &count));
  for (uint32_t i = 0; i < count; i++)
    TRY(widen(&b, nodes[i]));
  pass_count(p, "nodes", count);
  return STATUS_OK;
}

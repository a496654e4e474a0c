/* Convolutions, average pools and large products of f16 and bf16 compute in f32.
 *
 * Why: the runtime's kernels convolution.out and avg_pool2d.out add up in the element type
 * (ExecuTorch 1.4.1, portable): a sum of ones stands still at 2048, of bf16 at 256. So these are
 * converted whatever it costs, and the result is rounded once, as in ONNX Runtime. Products add up
 * in f32, but take 1.6 ns for each product of two numbers, those of f32 (OpenBLAS) a twentieth:
 * they are converted where that is faster and where arena and constants together stay below what
 * they would be if all of the model were f32. A constant weight too large for that, as in a model
 * that has few others, becomes several constants of some columns each, which are converted and
 * multiplied one after the other. */
#include "ir/transform.h"
#include "ops/work.h"
#include "passes/executorch/liveness.h"
#include "passes/pass.h"

enum {
  WIDER = 2,           /* f32 to f16 */
  CONVERSION = 2,      /* products of f16 in the time in which an element is converted */
  PRODUCTS_MIN = 4000, /* 6 us, the calls */
  COLUMNS = 32,        /* of a part, or a multiple */
  PARTS_MAX = 32
};

/* A node to compute in f32. */
typedef struct Widening {
  NodeId node;
  uint32_t columns; /* of the weight that are converted at a time; 0: all */
} Widening;

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

/* n, which multiplies by a constant, in parts of so many columns; in its own type. */
static ValueId widen_parts(Builder *b, NodeId n, uint32_t columns) {
  Graph *g = b->g;
  ValueId w = node_value(g, n, 1), x = build_cast(b, node_value(g, n, 0), DTYPE_F32),
          parts[PARTS_MAX];
  DType narrow = value_dtype(g, w);
  uint32_t count = 0;
  uint64_t sizes[] = {(uint64_t)value_dim(g, w, 0), (uint64_t)value_dim(g, w, 1)};
  for (uint64_t begin = 0; begin < sizes[1]; begin += columns) {
    uint64_t own = min_u64(columns, sizes[1] - begin);
    SymInt dims[] = {(SymInt)sizes[0], (SymInt)own};
    Constant bytes =
        constant_columns(g, *value_lazy_constant(g, w), dtype_size(narrow), sizes, begin, own);
    ValueId part = graph_add_constant(g, graph_tensor_type(g, narrow, 2, dims, ORDER_CONTIGUOUS),
                                      bytes, 0),
            wide = build_cast(b, part, DTYPE_F32), product = build_binary(b, OP_MM, x, wide);
    parts[count++] = build_cast(b, product, narrow);
  }
  return build(b, OP_CAT, A_VALS(parts, count), A_INT(1));
}

static Status widen(Builder *b, const Widening *w) {
  Graph *g = b->g;
  NodeId n = w->node;
  ValueId result = node_result(g, n, 0), narrow;
  b->before = n;
  b->loc = node_cget(g, n)->loc;
  if (w->columns) {
    narrow = widen_parts(b, n, w->columns);
  } else {
    ValueId wide = build_again(b, n, DTYPE_F32, as_f32, b);
    narrow = build_cast(b, wide, value_dtype(g, result));
  }
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

/* The constant matrix by which n multiplies and that can be taken apart, or 0. */
static ValueId divisible_weight(const Graph *g, NodeId n) {
  ValueId w = node_cget(g, n)->op == OP_MM ? node_value(g, n, 1) : 0;
  bool fits = w && value_is_const(g, w) && value_dim(g, w, 1) > COLUMNS &&
              sym_lower(&g->syms, value_dim(g, node_value(g, n, 0), 0)) > 0; /* for cat */
  return fits ? w : 0;
}

/* How many columns of the weight of n may be converted at a time within so many bytes; 0: none. */
static uint32_t columns_within(const Graph *g, NodeId n, double bytes) {
  ValueId w = divisible_weight(g, n);
  if (!w)
    return 0;
  uint64_t all = (uint64_t)value_dim(g, w, 1);
  double x = elements(g, node_value(g, n, 0)), y = elements(g, node_result(g, n, 0)),
         always = x * sizeof(float) + y * sizeof(uint16_t), /* and the parts of the result */
      column = (elements(g, w) + y) / (double)all * sizeof(float);
  for (uint64_t parts = 2; parts <= PARTS_MAX; parts++) {
    uint64_t columns = align_up((all + parts - 1) / parts, COLUMNS);
    if (columns < all && always + column * (double)columns <= bytes)
      return (uint32_t)columns;
  }
  return 0;
}

/* What uses one weight in parts takes the same parts, and leaves no use of the whole: the constant
 * would be there twice. Removes the products of which that is not true. */
static uint32_t share_parts(const Graph *g, Arena *scratch, Widening *list, uint32_t count) {
  uint32_t *uses = ARENA_ARRAY(scratch, uint32_t, g->value_count),
           *columns = ARENA_ARRAY(scratch, uint32_t, g->value_count), kept = 0;
  for (uint32_t i = 0; i < count; i++) {
    ValueId w = divisible_weight(g, list[i].node);
    uses[w]++;
    if (list[i].columns && (!columns[w] || list[i].columns < columns[w]))
      columns[w] = list[i].columns;
  }
  for (uint32_t i = 0; i < count; i++) {
    ValueId w = divisible_weight(g, list[i].node);
    bool all = w && uses[w] == value_cget(g, w)->use_count;
    if (list[i].columns && !all)
      continue;
    list[kept] = list[i];
    list[kept++].columns = all ? columns[w] : 0;
  }
  return kept;
}

/* Fills list, which has room for all nodes, with those to convert. */
static Status choose(Graph *g, Arena *scratch, Widening *list, uint32_t *count) {
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
    double rest = limit - (double)use[position] + replaced(g, &live, n, position);
    bool whole = must_widen(g, n) || converted(g, n) * sizeof(float) <= rest;
    uint32_t columns = whole ? 0 : columns_within(g, n, rest);
    if (whole || columns)
      list[(*count)++] = (Widening){n, columns};
  }
  *count = share_parts(g, scratch, list, *count);
  return STATUS_OK;
}

Status pass_widen_sums(PassContext *p, Graph *g) {
  uint32_t count = 0;
  Builder b = builder_make(g, 0, 0);
  if (!has_candidates(g)) /* what memory is in use takes longer to find out */
    return STATUS_OK;
  Widening *list = ARENA_ARRAY(p->scratch, Widening, g->node_count);
  TRY(choose(g, p->scratch, list, &count));
  for (uint32_t i = 0; i < count; i++)
    TRY(widen(&b, &list[i]));
  pass_count(p, "nodes", count);
  return STATUS_OK;
}

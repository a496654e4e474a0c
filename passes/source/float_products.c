/* Products of small integers (MatMulInteger, ConvInteger) as products of floats:
 *
 *     matmul(i32(codes) - i32(zero), i32(W))   =>   matmul(f32(codes) - f32(zero), f32(W)) as i32
 *
 * and where the result is made f32 next, as models do to scale it, it is that f32 already.
 *
 * Why: the runtime multiplies matrices of integers term by term, 1.2 ns each, those of floats with
 * a BLAS, a thirtieth (ExecuTorch 1.4.1, x86-64), and backends take floats. The numbers stay the
 * same: f32 holds all integers up to 2^24, so that sums which cannot become larger are exact in any
 * order. Longer ones are computed in parts, which are added up as i32. */
#include "ir/match.h"
#include "passes/pass.h"
#include "passes/source/integer_weights.h"

enum {
  EXACT = 1 << 24, /* f32 has a significand of 24 bits */
  PARTS_MAX = 64,
  DEPTH_MAX = 8 /* of nodes that an operand is followed through */
};

/* --- what values an operand can have --- */

typedef struct Interval {
  int32_t least, most;
} Interval;

static double magnitude(Interval r) {
  return -(double)r.least > (double)r.most ? -(double)r.least : (double)r.most;
}

static bool interval_of_dtype(DType t, Interval *r) {
  if (!dtype_in(t, DT(BOOL) | DT(U8) | DT(I8)))
    return false;
  *r = t == DTYPE_BOOL ? (Interval){0, 1}
       : t == DTYPE_U8 ? (Interval){0, UINT8_MAX}
                       : (Interval){INT8_MIN, INT8_MAX};
  return true;
}

static bool interval_of_weights(const Graph *g, const IntegerWeights *w, Interval *r) {
  *r = (Interval){0, 0};
  int32_t numbers[INTEGER_RUN];
  for (uint64_t first = 0; first < w->count; first += INTEGER_RUN) {
    uint64_t count = min_u64(INTEGER_RUN, w->count - first);
    if (!integer_weights_get(g, w, first, count, numbers))
      return false;
    for (uint64_t i = 0; i < count; i++) {
      r->least = numbers[i] < r->least ? numbers[i] : r->least;
      r->most = numbers[i] > r->most ? numbers[i] : r->most;
    }
  }
  return magnitude(*r) < EXACT;
}

static bool moves(OpId op) {
  return op == OP_VIEW_COPY || op == OP_PERMUTE_COPY || op == OP_SLICE_COPY_TENSOR ||
         op == OP_EXPAND_COPY;
}

static bool interval_of(const Graph *g, ValueId v, uint32_t depth, Interval *r);

/* Of the result of n, i32. */
static bool interval_of_result(const Graph *g, NodeId n, uint32_t depth, Interval *r) {
  OpId op = node_cget(g, n)->op;
  Interval a, b;
  if (!interval_of(g, node_value(g, n, 0), depth, &a))
    return false;
  if (op == OP_TO_COPY || moves(op))
    *r = a;
  else if (match_op(g, node_result(g, n, 0), OP_SUB_TENSOR) &&
           interval_of(g, node_value(g, n, 1), depth, &b))
    *r = (Interval){a.least - b.most, a.most - b.least};
  else if (op == OP_CONSTANT_PAD_ND && node_scalar(g, n, 2) == 0)
    *r = (Interval){a.least < 0 ? a.least : 0, a.most > 0 ? a.most : 0};
  else
    return false;
  return magnitude(*r) < EXACT;
}

static bool follows(OpId op) {
  return op == OP_TO_COPY || op == OP_SUB_TENSOR || op == OP_CONSTANT_PAD_ND || moves(op);
}

/* The integers of v lie in *r. False: not known, or not in those of f32. */
static bool interval_of(const Graph *g, ValueId v, uint32_t depth, Interval *r) {
  NodeId n = value_def(g, v);
  IntegerWeights w;
  if (interval_of_dtype(value_dtype(g, v), r))
    return true;
  if (!dtype_is_int(value_dtype(g, v)) || depth == DEPTH_MAX)
    return false;
  if (integer_weights_read(g, v, &w)) {
    *r = (Interval){-UINT8_MAX, UINT8_MAX};
    return value_dtype(g, w.codes) != DTYPE_I32 || interval_of_weights(g, &w, r);
  }
  return n && follows(node_cget(g, n)->op) && interval_of_result(g, n, depth + 1, r);
}

/* --- how large a sum can become --- */

/* A product of integers. */
typedef struct Product {
  NodeId node;
  bool convolves;
  int64_t terms; /* of a sum: rows of a matrix, or channels */
  Interval x, w;
  IntegerWeights weights; /* codes 0: not constant, or of more than two dims */
  uint64_t outer, inner;  /* constant weights are [outer, terms, inner] */
} Product;

/* Adds |w| of the row of `inner` weights from `first` on, to one sum or to one for each. */
static void add_row(const Graph *g, const Product *p, uint64_t first, int64_t *sums) {
  int32_t numbers[INTEGER_RUN];
  for (uint64_t at = 0; at < p->inner; at += INTEGER_RUN) {
    uint64_t count = min_u64(INTEGER_RUN, p->inner - at);
    integer_weights_get(g, &p->weights, first + at, count, numbers);
    for (uint64_t i = 0; i < count; i++)
      sums[p->convolves ? 0 : at + i] += numbers[i] < 0 ? -(int64_t)numbers[i] : numbers[i];
  }
}

/* The largest sum of |w| over the terms from..to for one column; magnitudes without constant
 * weights. */
static double largest_sum(const Graph *g, Arena *scratch, const Product *p, uint64_t from,
                          uint64_t to) {
  if (!p->weights.codes)
    return magnitude(p->w) * (double)(to - from) * (double)p->inner;
  uint64_t terms = (uint64_t)p->terms, columns = p->convolves ? p->outer : p->inner;
  int64_t *sums = ARENA_ARRAY(scratch, int64_t, (size_t)columns + 1), largest = 0;
  for (uint64_t o = 0; o < p->outer; o++)
    for (uint64_t k = from; k < to; k++)
      add_row(g, p, (o * terms + k) * p->inner, &sums[o]);
  for (uint64_t c = 0; c < columns; c++)
    largest = max_i64(largest, sums[c]);
  return (double)largest;
}

/* The first term of part i of `parts`. */
static int64_t part_start(const Product *p, int64_t parts, int64_t i) {
  return p->terms / parts * i + min_i64(i, p->terms % parts);
}

static bool parts_are_exact(const Graph *g, Arena *scratch, const Product *p, int64_t parts) {
  for (int64_t i = 0; i < parts; i++) {
    double sum = largest_sum(g, scratch, p, (uint64_t)part_start(p, parts, i),
                             (uint64_t)part_start(p, parts, i + 1));
    if (!(sum * magnitude(p->x) < EXACT))
      return false;
  }
  return true;
}

/* Some parts whose sums are exact, as few as there can be if all terms are alike; 0: too many. */
static int64_t exact_parts(const Graph *g, Arena *scratch, const Product *p) {
  int64_t most = p->convolves && node_int(g, p->node, 8) != 1 ? 1 : min_i64(PARTS_MAX, p->terms);
  double one = magnitude(p->x) * magnitude(p->w),
         sum = one * (double)p->terms * (double)(p->convolves ? p->inner : 1);
  if (sum >= EXACT && one < EXACT)
    sum = magnitude(p->x) * largest_sum(g, scratch, p, 0, (uint64_t)p->terms);
  if (sum < EXACT)
    return 1;
  if (!(sum / EXACT < PARTS_MAX))
    return 0;
  for (int64_t parts = (int64_t)(sum / EXACT) + 1; parts <= most; parts++)
    if (parts_are_exact(g, scratch, p, parts))
      return parts;
  return 0;
}

/* [outer, terms, inner] of the weights of a product; false when one is not known. */
static bool read_sizes(const Graph *g, ValueId w, Product *p) {
  uint32_t rank = value_rank(g, w), at = p->convolves ? 1 : rank - 2;
  const SymInt *dims = value_type(g, w)->dims;
  for (uint32_t i = 0; i < rank; i++)
    if ((i == at || p->convolves) && !sym_is_const(dims[i]))
      return false;
  p->terms = dims[at];
  p->outer = p->convolves ? (uint64_t)dims[0] : 1;
  p->inner = p->convolves ? (uint64_t)dims_count(dims, 2, rank) : 1;
  if ((!p->convolves && rank != 2) || !integer_weights_read(g, w, &p->weights))
    p->weights.codes = 0;
  else if (!p->convolves)
    p->inner = (uint64_t)dims[1];
  return true;
}

/* Whether n is a product of integers whose intervals are known. */
static bool read_product(const Graph *g, NodeId n, Product *p) {
  ValueId x = node_value(g, n, 0), w = node_value(g, n, 1);
  *p = (Product){.node = n, .convolves = node_cget(g, n)->op == OP_CONVOLUTION};
  if (value_dtype(g, node_result(g, n, 0)) != DTYPE_I32 || value_rank(g, x) == 0 ||
      value_rank(g, w) < 2)
    return false;
  if (p->convolves && (node_bool(g, n, 6) || !node_absent(g, n, 2))) /* transposed, with a bias */
    return false;
  return read_sizes(g, w, p) && interval_of(g, x, 0, &p->x) && interval_of(g, w, 0, &p->w);
}

/* --- building --- */

/* v, whose range is known, as f32. */
static ValueId as_floats(Builder *b, ValueId v, uint32_t depth) {
  Graph *g = b->g;
  NodeId n = value_def(g, v);
  OpId op = n ? node_cget(g, n)->op : OP_NONE;
  if (depth == DEPTH_MAX || !follows(op) || value_dtype(g, v) != DTYPE_I32)
    return build_cast(b, v, DTYPE_F32);
  ValueId x = as_floats(b, node_value(g, n, 0), depth + 1);
  if (!x || op == OP_TO_COPY)
    return x;
  if (op == OP_CONSTANT_PAD_ND)
    return build(b, op, A_VAL(x), node_arg_in(g, n, 1, &g->arena), A_FLOAT(0));
  if (op != OP_SUB_TENSOR)
    return build_on(b, n, &A_VAL(x), 1);
  ValueId y = as_floats(b, node_value(g, n, 1), depth + 1);
  return build_binary(b, op, x, y);
}

/* The sums over part i of the terms, as f32. */
static ValueId build_part(Builder *b, const Product *p, ValueId x, ValueId w, int64_t parts,
                          int64_t i) {
  Graph *g = b->g;
  if (parts > 1) {
    int64_t x_dim = p->convolves ? 1 : value_rank(g, x) - 1,
            w_dim = p->convolves ? 1 : value_rank(g, w) - 2, from = part_start(p, parts, i),
            to = part_start(p, parts, i + 1);
    x = build_slice(b, x, x_dim, from, to, 1);
    w = build_slice(b, w, w_dim, from, to, 1);
  }
  return b->status == STATUS_OK ? build_on(b, p->node, (const ArgIn[]){A_VAL(x), A_VAL(w)}, 2) : 0;
}

/* What converts the result of n to f32 is y. */
static void replace_conversions(Graph *g, NodeId n, ValueId y) {
  for (UseId u = first_use(g, node_result(g, n, 0)); u; u = g->uses[u].next) {
    NodeId user = g->uses[u].node;
    if (node_cget(g, user)->op == OP_TO_COPY &&
        value_type(g, node_result(g, user, 0)) == value_type(g, y))
      graph_replace_value(g, node_result(g, user, 0), y);
  }
}

static ValueId rewrite(Builder *b, NodeId n) {
  Graph *g = b->g;
  Product p;
  int64_t parts = read_product(g, n, &p) ? exact_parts(g, b->data, &p) : 0;
  if (!parts)
    return 0;
  ValueId x = as_floats(b, node_value(g, n, 0), 0), w = as_floats(b, node_value(g, n, 1), 0),
          sum = 0;
  for (int64_t i = 0; i < parts && b->status == STATUS_OK; i++) {
    ValueId y = build_part(b, &p, x, w, parts, i);
    if (parts == 1 && y)
      replace_conversions(g, n, y);
    y = build_cast(b, y, DTYPE_I32);
    sum = sum ? build_binary(b, OP_ADD_TENSOR, sum, y) : y;
  }
  return sum;
}

Status pass_float_products(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_MATMUL, rewrite, "products"},
                                      {OP_MM, rewrite, "products"},
                                      {OP_BMM, rewrite, "products"},
                                      {OP_CONVOLUTION, rewrite, "convolutions"}};
  Rewriter r = {.rules = rules, .rule_count = COUNT_OF(rules), .data = p->scratch};
  return pass_rewriter(p, g, &r);
}

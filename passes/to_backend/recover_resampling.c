/* Sums of weighted gathers along one axis, as resizing with antialiasing or cubics has them:
 *   index_select(x, axis, places) * weights + index_select(x, axis, places') * weights' + ...
 * with constant places and weights are a product of x with a banded matrix. For backends they
 * become one, in blocks of neighbouring results, which leave out most of the zeros beside the band:
 *   cat(matmul(slice(x, axis), block), ...)    blocks on the left where the axis is not the last
 * A gather reads each tap anew and is a kernel; slices and products are neither. The runtime's own
 * products take longer than its gathers, so it is for backends alone. */
#include "ir/match.h"
#include "passes/pass.h"

enum {
  BLOCK = 16,         /* results that share a product, twice as many where the axis grows: 8 to 64
                         were timed; kernels compute 16 columns at once */
  FEWEST = 1024,      /* elements of a result that is worth the nodes */
  SHORTEST_ROW = 8,   /* behind the axis: elements that a kernel computes at once */
  LONGEST_AXIS = 4096 /* the matrix is made as a whole first */
};

typedef struct Tap {
  ValueId x, places, weights; /* weights: 0 for ones */
  uint32_t axis;
} Tap;

/* x as [outer, in, inner], the sum as [outer, out, inner]. */
typedef struct Resampling {
  Tap first;
  SymInt outer;
  int64_t in, out, inner;
  float *matrix; /* [in, out] */
} Resampling;

static bool is_along(const Graph *g, ValueId weights, uint32_t rank, uint32_t axis, SymInt length) {
  uint32_t own = value_rank(g, weights);
  for (uint32_t i = 0; i < own; i++)
    if (value_dim(g, weights, i) != (i + rank - own == axis ? length : 1))
      return false;
  return value_is_const(g, weights) && own <= rank && own + axis >= rank &&
         value_dtype(g, weights) == DTYPE_F32;
}

/* v as a gather that perhaps is weighted. */
static bool read_tap(const Graph *g, ValueId v, Tap *tap) {
  *tap = (Tap){0};
  NodeId product = match_op_once(g, v, OP_MUL_TENSOR);
  if (product) {
    v = node_value(g, product, 0);
    tap->weights = node_value(g, product, 1);
  }
  NodeId gather = match_op_once(g, v, OP_INDEX_SELECT);
  if (!gather || value_dtype(g, v) != DTYPE_F32)
    return false;
  tap->x = node_value(g, gather, 0);
  tap->axis = (uint32_t)node_int(g, gather, 1);
  tap->places = node_value(g, gather, 2);
  return value_is_const(g, tap->places) && value_dtype(g, tap->places) == DTYPE_I64 &&
         (!tap->weights ||
          is_along(g, tap->weights, value_rank(g, v), tap->axis, value_dim(g, v, tap->axis)));
}

static bool same_axis(const Tap *a, const Tap *b) { return a->x == b->x && a->axis == b->axis; }

/* Is v a term of a longer sum, which is looked at in its place? */
static bool goes_on(const Graph *g, ValueId v, const Tap *tap) {
  NodeId n = value_only_user(g, v);
  Tap other;
  return n && node_cget(g, n)->op == OP_ADD_TENSOR &&
         match_op(g, node_result(g, n, 0), OP_ADD_TENSOR) &&
         read_tap(g, node_value(g, n, 1), &other) && same_axis(tap, &other);
}

/* One dim before the axis, as a batch, may be dynamic. */
static bool read_sizes(Graph *g, ValueId y, Resampling *r) {
  Dims x = value_dims(g, r->first.x);
  uint32_t dynamic = 0;
  r->outer = r->inner = 1;
  for (uint32_t i = 0; i < x.rank; i++) {
    bool known = sym_is_const(x.d[i]);
    dynamic += !known;
    if (x.d[i] == 0 || (!known && i >= r->first.axis) || dynamic > 1)
      return false;
    if (i < r->first.axis)
      r->outer = sym_mul(&g->syms, r->outer, x.d[i]);
    else if (i > r->first.axis)
      r->inner *= x.d[i];
  }
  r->in = x.d[r->first.axis];
  r->out = value_dim(g, y, r->first.axis);
  return r->in <= LONGEST_AXIS && r->out <= LONGEST_AXIS && r->out > 0 &&
         sym_lower(&g->syms, r->outer) * r->out * r->inner >= FEWEST &&
         (r->inner == 1 || r->inner >= SHORTEST_ROW);
}

static bool add_tap(const Graph *g, const Tap *tap, Resampling *r) {
  const int64_t *places = (const void *)value_constant(g, tap->places)->data;
  const float *weights = tap->weights ? (const void *)value_constant(g, tap->weights)->data : NULL;
  for (int64_t i = 0; i < r->out; i++) {
    if (places[i] < 0 || places[i] >= r->in)
      return false;
    r->matrix[places[i] * r->out + i] += weights ? weights[i] : 1;
  }
  return true;
}

/* The sum that n ends, of two taps or more. */
static bool read_sum(Builder *b, NodeId n, Resampling *r) {
  Graph *g = b->g;
  ValueId y = node_result(g, n, 0);
  if (match_op(g, y, OP_ADD_TENSOR) != n || !read_tap(g, node_value(g, n, 1), &r->first) ||
      goes_on(g, y, &r->first) || !read_sizes(g, y, r))
    return false;
  r->matrix = arena_calloc(b->data, (size_t)(r->in * r->out), sizeof(float));
  Tap tap = r->first;
  ValueId rest = node_value(g, n, 0);
  while (add_tap(g, &tap, r)) {
    if (read_tap(g, rest, &tap) && same_axis(&tap, &r->first))
      return add_tap(g, &tap, r);
    NodeId sum = match_op_once(g, rest, OP_ADD_TENSOR);
    if (!sum || !read_tap(g, node_value(g, sum, 1), &tap) || !same_axis(&tap, &r->first))
      return false;
    rest = node_value(g, sum, 0);
  }
  return false;
}

/* The rows of the matrix from *begin to *end are those not zero in columns first to end_column. */
static void find_rows(const Resampling *r, int64_t first, int64_t beyond, int64_t *begin,
                      int64_t *end) {
  *begin = r->in, *end = 0;
  for (int64_t i = 0; i < r->in; i++)
    for (int64_t k = first; k < beyond; k++)
      if (r->matrix[i * r->out + k] != 0) {
        *begin = min_i64(*begin, i);
        *end = i + 1;
      }
  if (*begin >= *end) /* nothing but zeros, which still want an operand */
    *begin = 0, *end = 1;
}

/* Results first to beyond, x being [outer, in, inner] or, for the last axis, [outer, in]. */
static ValueId block_of(Builder *b, const Resampling *r, ValueId x, int64_t first, int64_t beyond) {
  int64_t begin, end, columns = beyond - first;
  find_rows(r, first, beyond, &begin, &end);
  bool left = r->inner > 1; /* then the transposed block is the operand on the left */
  int64_t rows = end - begin, dims[] = {left ? columns : rows, left ? rows : columns};
  float *block = arena_alloc(b->data, (size_t)(rows * columns) * sizeof(float));
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < columns; k++)
      block[left ? k * rows + i : i * columns + k] = r->matrix[(begin + i) * r->out + first + k];
  ValueId part = build_slice(b, x, 1, begin, end, 1),
          weights = build_const(b, DTYPE_F32, 2, dims, block);
  return build(b, OP_MATMUL, A_VAL(left ? weights : part), A_VAL(left ? part : weights));
}

static ValueId product(Builder *b, NodeId n) {
  Resampling r;
  if (!read_sum(b, n, &r))
    return 0;
  uint32_t rank = r.inner > 1 ? 3 : 2, count = 0;
  SymInt dims[] = {r.outer, r.in, r.inner};
  ValueId x = build_view(b, r.first.x, dims, rank), parts[LONGEST_AXIS / BLOCK];
  int64_t block = r.out > r.in ? 2 * BLOCK : BLOCK;
  for (int64_t i = 0; i < r.out; i += block)
    parts[count++] = block_of(b, &r, x, i, min_i64(i + block, r.out));
  ValueId y = count == 1 ? parts[0] : build(b, OP_CAT, A_VALS(parts, count), A_INT(1));
  return build_view_as(b, y, value_dims(b->g, node_result(b->g, n, 0)));
}

Status pass_recover_resampling(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_ADD_TENSOR, product, "products"}};
  Rewriter r = {.rules = rules, .rule_count = COUNT_OF(rules), .data = p->scratch};
  return pass_rewriter(p, g, &r);
}

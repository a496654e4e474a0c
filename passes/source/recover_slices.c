/* slice_scatter from index_put whose indices count along the dims: what exporters write for the
 * assignment x[:, 1:, ::2] = y. Slices are copied as blocks, and backends take them.
 *
 * The index of a dim is a number, or begin, begin + step, ... along one dim of the indices, and the
 * same along their other dims; the dims along which they count have the order of x's. */
#include "ir/match.h"
#include "passes/pass.h"

enum { DEPTH_MAX = 16, MAX_ELEMENTS = 1 << 22 };
static const int64_t position_max = (int64_t)1 << 31; /* products of two do not overflow */

#define NOWHERE UINT32_MAX

/* Element i of an integer tensor is begin + step * (its position along the axis). */
typedef struct Count {
  int64_t begin, step;
  uint32_t axis; /* NOWHERE: all elements are `begin` */
} Count;

static bool counts(const Graph *g, ValueId v, uint32_t depth, Count *out);

static bool in_range(int64_t i) { return i > -position_max && i < position_max; }

static int64_t load(const Constant *c, uint64_t i) {
  int64_t element;
  memcpy(&element, c->data + i * sizeof element, sizeof element);
  return element;
}

/* The first axis along which elements differ is the one, if there is any. */
static bool constant_counts(const Graph *g, ValueId v, Count *out) {
  const Constant *c = value_lazy_constant(g, v);
  const Type *t = value_type(g, v);
  uint64_t count = c->size / sizeof(int64_t), stride = count, along = 1;
  if (c->transform || t->dtype != DTYPE_I64 || count == 0 || count > MAX_ELEMENTS ||
      !in_range(load(c, 0)))
    return false;
  *out = (Count){load(c, 0), 0, NOWHERE};
  for (uint32_t i = 0; i < t->rank && out->axis == NOWHERE; i++) {
    along = (uint64_t)t->dims[i];
    stride /= along;
    int64_t next = along > 1 ? load(c, stride) : out->begin;
    if (next != out->begin)
      *out = (Count){out->begin, in_range(next) ? next - out->begin : 0, i};
  }
  for (uint64_t i = 0; i < count; i++) {
    int64_t at = out->axis == NOWHERE ? 0 : (int64_t)(i / stride % along);
    if (load(c, i) != out->begin + out->step * at)
      return false;
  }
  return true;
}

/* The axis counted from the last one, where broadcast shapes meet. */
static uint32_t from_last(const Graph *g, ValueId v, uint32_t axis) {
  return axis == NOWHERE ? NOWHERE : value_rank(g, v) - axis;
}

static bool arithmetic_counts(const Graph *g, NodeId n, uint32_t depth, Count *out) {
  ValueId x = node_value(g, n, 0), y = node_value(g, n, 1);
  bool product = node_cget(g, n)->op == OP_MUL_TENSOR;
  Count a, b;
  if ((!product && node_scalar(g, n, 2) != 1) || !counts(g, x, depth, &a) ||
      !counts(g, y, depth, &b))
    return false;
  uint32_t first = from_last(g, x, a.axis), second = from_last(g, y, b.axis);
  if (first != NOWHERE && second != NOWHERE && (product || first != second))
    return false;
  uint32_t last = first == NOWHERE ? second : first;
  out->axis = last == NOWHERE ? NOWHERE : value_rank(g, node_result(g, n, 0)) - last;
  out->begin = product ? a.begin * b.begin : a.begin + b.begin;
  out->step = product ? a.step * b.begin + b.step * a.begin : a.step + b.step;
  return in_range(out->begin) && in_range(out->step);
}

/* The axis of y that has the place of axis `axis` of x among the dims that are not 1; NOWHERE where
 * these differ. */
static uint32_t axis_of_view(const Graph *g, ValueId x, ValueId y, uint32_t axis) {
  uint32_t found = NOWHERE, k = 0;
  for (uint32_t i = 0; i <= value_rank(g, x); i++) {
    while (k < value_rank(g, y) && value_dim(g, y, k) == 1)
      k++;
    if (i == value_rank(g, x))
      break;
    if (value_dim(g, x, i) == 1)
      continue;
    if (k == value_rank(g, y) || value_dim(g, x, i) != value_dim(g, y, k))
      return NOWHERE;
    found = i == axis ? k : found;
    k++;
  }
  return k == value_rank(g, y) ? found : NOWHERE;
}

/* One of the tensors of size 1 that cat joins. */
static bool component_counts(const Graph *g, NodeId n, uint32_t depth, Count *out) {
  NodeId cat = match_op(g, node_value(g, n, 0), OP_CAT);
  int64_t axis = node_int(g, n, 1), i = node_int(g, n, 2),
          rank = value_rank(g, node_value(g, n, 0));
  if (!cat || node_int(g, cat, 1) != axis || axis < 0 || axis >= rank || i < 0 ||
      i >= node_list_count(g, cat, 0))
    return false;
  for (uint32_t k = 0; k < node_list_count(g, cat, 0); k++)
    if (value_dim(g, node_list_value(g, cat, 0, k), (uint32_t)axis) != 1)
      return false;
  if (!counts(g, node_list_value(g, cat, 0, (uint32_t)i), depth, out))
    return false;
  if (out->axis != NOWHERE && out->axis > (uint32_t)axis)
    out->axis--;
  return true;
}

static bool arange_counts(const Graph *g, NodeId n, Count *out) {
  bool from_zero = node_cget(g, n)->op == OP_ARANGE;
  *out = (Count){0, 1, 0};
  for (uint32_t i = 0; i < 3 && !from_zero; i++) {
    const Arg *arg = node_arg(g, n, i);
    if (i != 1 && (arg->kind != ARG_INT || !sym_is_const(node_int(g, n, i))))
      return false;
  }
  if (!from_zero)
    *out = (Count){node_int(g, n, 0), node_int(g, n, 2), 0};
  return value_dtype(g, node_result(g, n, 0)) == DTYPE_I64 && in_range(out->begin) &&
         in_range(out->step);
}

/* The elements of an expanded tensor or of a view, by those of its operand. */
static bool moved_counts(const Graph *g, NodeId n, uint32_t depth, Count *out) {
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  if (!counts(g, x, depth, out))
    return false;
  if (out->axis == NOWHERE)
    return true;
  out->axis = node_cget(g, n)->op == OP_EXPAND_COPY
                  ? out->axis + value_rank(g, y) - value_rank(g, x)
                  : axis_of_view(g, x, y, out->axis);
  return out->axis != NOWHERE;
}

static bool node_counts(const Graph *g, ValueId v, uint32_t depth, Count *out) {
  NodeId n = value_def(g, v);
  switch (n ? node_cget(g, n)->op : OP_NONE) {
  case OP_ARANGE:
  case OP_ARANGE_START_STEP:
    return arange_counts(g, n, out);
  case OP_ADD_TENSOR:
  case OP_MUL_TENSOR:
    return arithmetic_counts(g, n, depth, out);
  case OP_SELECT_COPY_INT:
    return component_counts(g, n, depth, out);
  case OP_EXPAND_COPY:
  case OP_VIEW_COPY:
    return moved_counts(g, n, depth, out);
  default:
    return false;
  }
}

static bool counts(const Graph *g, ValueId v, uint32_t depth, Count *out) {
  if (depth == 0 || value_dtype(g, v) != DTYPE_I64)
    return false;
  if (value_is_const(g, v) ? !constant_counts(g, v, out) : !node_counts(g, v, depth - 1, out))
    return false;
  if (out->axis != NOWHERE && value_dim(g, v, out->axis) == 1)
    out->axis = NOWHERE;
  return true;
}

/* --- what is written --- */

/* The positions of each dim of x that are written. */
typedef struct Block {
  ValueId x;
  uint32_t rank;
  struct {
    int64_t begin, step;
    SymInt size;
    bool whole;
  } dims[MAX_RANK];
} Block;

static void add_whole(const Graph *g, Block *b, uint32_t i) {
  b->dims[i].step = 1;
  b->dims[i].size = value_dim(g, b->x, i);
  b->dims[i].whole = true;
}

/* `size` positions of dim i of x; negative ones count from the end. */
static bool add_dim(const Graph *g, Block *b, uint32_t i, Count c, SymInt size) {
  SymInt extent = value_dim(g, b->x, i);
  if (c.begin == 0 && c.step == 1 && size == extent) {
    add_whole(g, b, i);
    return true;
  }
  if (!sym_is_const(size) || !sym_is_const(extent) || size < 1 || !in_range(size))
    return false;
  int64_t step = size == 1 ? 1 : c.step, last = c.begin + step * (size - 1),
          from = c.begin < 0 && last < 0 ? extent : 0;
  if (step < 1 || c.begin + from < 0 || last + from >= extent)
    return false;
  b->dims[i].begin = c.begin + from;
  b->dims[i].step = step;
  b->dims[i].size = size;
  b->dims[i].whole = size == extent;
  return true;
}

/* Are all dims of v from `first` on, and before `end`, of size 1? */
static bool are_ones(const Graph *g, ValueId v, uint32_t first, uint32_t end) {
  for (; first < end; first++)
    if (value_dim(g, v, first) != 1)
      return false;
  return true;
}

/* The dims along which the indices count come in order, and their others are of size 1. */
static bool block_of(const Graph *g, NodeId n, Block *b) {
  uint32_t tuple = node_list_count(g, n, 1), next = 0;
  ValueId first = tuple ? node_list_value(g, n, 1, 0) : 0;
  *b = (Block){.x = node_value(g, n, 0), .rank = value_rank(g, node_value(g, n, 0))};
  if (!first || tuple > b->rank)
    return false;
  for (uint32_t i = 0; i < tuple; i++) {
    ValueId index = node_list_value(g, n, 1, i);
    Count c;
    if (!index || !value_same_type(g, index, first) || !counts(g, index, DEPTH_MAX, &c))
      return false;
    bool one = c.axis == NOWHERE;
    if (!one && (c.axis < next || !are_ones(g, first, next, c.axis)))
      return false;
    if (!add_dim(g, b, i, c, one ? 1 : value_dim(g, first, c.axis)))
      return false;
    next = one ? next : c.axis + 1;
  }
  for (uint32_t i = tuple; i < b->rank; i++)
    add_whole(g, b, i);
  return are_ones(g, first, next, value_rank(g, first));
}

static int64_t end_of(const Block *block, uint32_t i) {
  return block->dims[i].begin + block->dims[i].step * (block->dims[i].size - 1) + 1;
}

static ValueId slice(Builder *b, const Block *block, ValueId x, uint32_t i) {
  return build(b, OP_SLICE_COPY_TENSOR, A_VAL(x), A_INT(i), A_INT(block->dims[i].begin),
               A_INT(end_of(block, i)), A_INT(block->dims[i].step));
}

/* x with y over the block, from dim i on. */
static ValueId scatter(Builder *b, const Block *block, ValueId x, ValueId y, uint32_t i) {
  while (i < block->rank && block->dims[i].whole)
    i++;
  if (i == block->rank)
    return y;
  bool last = true;
  for (uint32_t k = i + 1; k < block->rank; k++)
    last &= block->dims[k].whole;
  if (!last)
    y = scatter(b, block, slice(b, block, x, i), y, i + 1);
  return build(b, OP_SLICE_SCATTER, A_VAL(x), A_VAL(y), A_INT(i), A_INT(block->dims[i].begin),
               A_INT(end_of(block, i)), A_INT(block->dims[i].step));
}

/* The values have the dims of the indices, then those of x that have no index. */
static bool values_fit(const Graph *g, NodeId n, const Block *block) {
  ValueId index = node_list_value(g, n, 1, 0), values = node_value(g, n, 2);
  uint32_t tuple = node_list_count(g, n, 1), rank = value_rank(g, index);
  if (value_rank(g, values) != rank + block->rank - tuple)
    return false;
  for (uint32_t i = 0; i < value_rank(g, values); i++)
    if (value_dim(g, values, i) !=
        (i < rank ? value_dim(g, index, i) : value_dim(g, block->x, i - rank + tuple)))
      return false;
  return true;
}

static ValueId assignment(Builder *b, NodeId n) {
  Graph *g = b->g;
  Block block;
  if (!block_of(g, n, &block) || !values_fit(g, n, &block))
    return 0;
  SymInt dims[MAX_RANK];
  for (uint32_t i = 0; i < block.rank; i++)
    dims[i] = block.dims[i].size;
  ValueId y = build_view(b, node_value(g, n, 2), dims, block.rank);
  if (node_bool(g, n, 3)) {
    ValueId old = block.x;
    for (uint32_t i = 0; i < block.rank; i++)
      old = block.dims[i].whole ? old : slice(b, &block, old, i);
    y = build(b, OP_ADD_TENSOR, A_VAL(old), A_VAL(y), A_INT(1));
  }
  return scatter(b, &block, block.x, y, 0);
}

Status pass_recover_slices(PassContext *p, Graph *g) {
  static const RewriteRule rows[] = {{OP_INDEX_PUT, assignment, "assignments"}};
  return pass_rewrite(p, g, rows, COUNT_OF(rows));
}

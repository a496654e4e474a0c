/* Copies that visit their operand in regular steps, as as_strided_copy.
 *
 * Why: the kernels of permute_copy, and of slices, selections and repetitions of single elements,
 * find each element's place anew or copy elements by calls of memcpy: 3 to 6 ns an element
 * (ExecuTorch 1.4.1, x86-64). as_strided_copy has a loop: 0.4 to 0.9 ns. Dims that follow each
 * other in both tensors are walked as one. Slices of long rows stay: memcpy is as fast there. */
#include "passes/executorch/views.h"
#include "passes/pass.h"

enum { BYTES_MIN = 512, RUN_MAX = 16 }; /* of the result; elements that are copied together */

typedef struct StridedWalk {
  uint32_t rank;
  SymInt size[MAX_RANK], stride[MAX_RANK];
  int64_t offset;
} StridedWalk;

static StridedWalk whole(Graph *g, ValueId v) {
  StridedWalk w = {.rank = value_rank(g, v)};
  SymInt stride = 1;
  for (uint32_t i = w.rank; i-- > 0;) {
    w.size[i] = value_dim(g, v, i);
    w.stride[i] = stride;
    stride = sym_mul(&g->syms, stride, w.size[i]);
  }
  return w;
}

/* Joins dims that are walked as one, and drops those of size 1. */
static void join_dims(Graph *g, StridedWalk *w) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < w->rank; i++) {
    if (w->size[i] == 1)
      continue;
    if (n && w->stride[n - 1] == sym_mul(&g->syms, w->size[i], w->stride[i]))
      w->size[n - 1] = sym_mul(&g->syms, w->size[n - 1], w->size[i]);
    else
      w->size[n++] = w->size[i];
    w->stride[n - 1] = w->stride[i];
  }
  w->rank = n;
}

/* The walk in the place of n; 0 where the kernel of n is as fast. */
static ValueId copied(Builder *b, NodeId n, StridedWalk *w) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  const Type *from = value_type(g, x), *to = value_type(g, y);
  if (type_bytes_upper(g, to) < BYTES_MIN || from->order != ORDER_CONTIGUOUS ||
      to->order != ORDER_CONTIGUOUS ||
      !dtype_in((DType)from->dtype, op_row(OP_AS_STRIDED_COPY)->dtypes))
    return 0;
  if (type_is_static(to))
    join_dims(g, w);
  ValueId walk = build(b, OP_AS_STRIDED_COPY, A_VAL(x), A_INTS(w->size, w->rank),
                       A_INTS(w->stride, w->rank), A_INT(w->offset));
  Dims dims = value_dims(g, y);
  return w->rank == dims.rank ? walk : build_et_view(b, walk, dims.d, dims.rank);
}

static ValueId permute(Builder *b, NodeId n) {
  Graph *g = b->g;
  StridedWalk from = whole(g, node_value(g, n, 0)), w = {.rank = from.rank};
  const SymInt *perm = node_ints(g, n, 1);
  for (uint32_t i = 0; i < w.rank; i++) {
    int64_t k = wrap_dim(perm[i], w.rank);
    w.size[i] = from.size[k];
    w.stride[i] = from.stride[k];
  }
  return copied(b, n, &w);
}

/* The axis of argument 1. */
static uint32_t axis_of(const Graph *g, NodeId n) {
  return (uint32_t)wrap_dim(node_int(g, n, 1), value_rank(g, node_value(g, n, 0)));
}

static bool in_short_runs(const StridedWalk *from, uint32_t axis) {
  return sym_is_const(from->stride[axis]) && from->stride[axis] < RUN_MAX;
}

static ValueId slice(Builder *b, NodeId n) {
  Graph *g = b->g;
  StridedWalk w = whole(g, node_value(g, n, 0));
  uint32_t axis = axis_of(g, n);
  SymInt start = node_int_or(g, n, 2, 0), step = node_int(g, n, 4);
  if (!in_short_runs(&w, axis) || !type_is_static(value_type(g, node_result(g, n, 0))) ||
      !type_is_static(value_type(g, node_value(g, n, 0))))
    return 0;
  start = start < 0 ? start + w.size[axis] : start;
  w.offset = start * w.stride[axis];
  w.stride[axis] *= step;
  w.size[axis] = value_dim(g, node_result(g, n, 0), axis);
  return start >= 0 ? copied(b, n, &w) : 0;
}

static ValueId select_one(Builder *b, NodeId n) {
  Graph *g = b->g;
  StridedWalk w = whole(g, node_value(g, n, 0));
  uint32_t axis = axis_of(g, n);
  SymInt index = node_int(g, n, 2);
  if (!in_short_runs(&w, axis) || !sym_is_const(index) ||
      !type_is_static(value_type(g, node_value(g, n, 0))))
    return 0;
  w.offset = (index < 0 ? index + w.size[axis] : index) * w.stride[axis];
  w.size[axis] = 1;
  return copied(b, n, &w);
}

static ValueId expand(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  StridedWalk from = whole(g, x), w = whole(g, y);
  uint32_t added = w.rank - from.rank, last = 0;
  for (uint32_t i = 0; i < w.rank; i++) {
    bool repeated = i < added || from.size[i - added] != w.size[i];
    last = repeated ? i : last;
    w.stride[i] = repeated ? 0 : from.stride[i - added];
  }
  StridedWalk to = whole(g, y);
  return type_is_static(value_type(g, y)) && in_short_runs(&to, last) ? copied(b, n, &w) : 0;
}

/* Between [groups, r, r, height, width] and [groups, height, r, width, r]. */
static ValueId shuffle(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  bool apart = node_cget(g, n)->op == OP_PIXEL_UNSHUFFLE;
  if (!type_is_static(value_type(g, x)))
    return 0;
  Dims blocks = value_dims(g, apart ? y : x);
  SymInt r = node_int(g, n, 1), height = blocks.d[blocks.rank - 2],
         width = blocks.d[blocks.rank - 1], area = height * width, all = 1;
  for (uint32_t i = 0; i < blocks.rank; i++)
    all *= blocks.d[i];
  if (all == 0)
    return 0;
  SymInt groups = all / (area * r * r), pixels = area * r * r;
  StridedWalk w =
      apart
          ? (StridedWalk){5,
                          {groups, r, r, height, width},
                          {pixels, width * r, 1, width * r * r, r},
                          0}
          : (StridedWalk){5, {groups, height, r, width, r}, {pixels, width, area * r, 1, area}, 0};
  return copied(b, n, &w);
}

Status pass_strided_copies(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {
      {OP_PERMUTE_COPY, permute, "permutes"},         {OP_SLICE_COPY_TENSOR, slice, "slices"},
      {OP_SELECT_COPY_INT, select_one, "selections"}, {OP_EXPAND_COPY, expand, "repetitions"},
      {OP_PIXEL_SHUFFLE, shuffle, "shuffles"},        {OP_PIXEL_UNSHUFFLE, shuffle, "shuffles"}};
  return pass_rewrite(p, g, rules, COUNT_OF(rules));
}

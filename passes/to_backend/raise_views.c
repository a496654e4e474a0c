/* For backends: removes views that join or split several dynamic dims, where what is between them
 * can be computed without.
 *
 * The runtime's products take two or three dims, so that leading dims are joined in front of a
 * product and split again behind it; exporters write the same. XNNPACK multiplies with any number
 * of leading dims, but its reshape works out one dynamic size at most. With a, b and h dynamic:
 *   view(mm(view(x, [a*b, K]), W), [a, b, N])                            =>  matmul(x, W)
 *   view(bmm(view(x, [a*h, M, K]), view(y, [a*h, K, N])), [a, h, M, N])  =>  matmul(x, y)
 *
 * Two rules do this:
 * - raise_split: a view splits a dim. The value that it splits is computed once more with that dim
 *   split, and so are its operands, back to the view that joined the dims. Softmax, elementwise
 * ops, permutations and the like may be in between.
 * - sink_join: an operand of a bmm is a view that joins its leading dims. The product is computed
 * on the dims as they were, and the result is joined. Views whose result has one dynamic dim at
 * most stay as they are. */
#include "ir/match.h"
#include "passes/pass.h"

enum { MAX_VISITS = 128 };

/* One attempt to compute a value with a dim split. */
typedef struct Raise {
  Builder *b;
  const SymInt *parts; /* the sizes into which the dim is split */
  uint32_t count, visits;
  bool trial; /* builds nothing: a result other than 0 only says that it can be done */
} Raise;

/* Dims of which the first have been used up by the dims of a view. */
typedef struct Remaining {
  const Dims *dims;
  uint32_t at; /* the dim that is used now */
  SymInt left; /* what is left of it, times dims behind it that were needed as well */
} Remaining;

/* Uses up the elements of a dim of that size; false when that takes a part of a dynamic dim. */
static bool use_up(Remaining *r, SymInt size) {
  const Dims *from = r->dims;
  while (r->left != size && size != 1 && !sym_const_divides(size, r->left)) {
    SymInt next = r->at + 1 < from->rank ? from->d[r->at + 1] : 0;
    if (r->left != 1 && next != 1 &&
        !(sym_const_divides(r->left, size) && sym_const_divides(next, size / r->left)))
      return false;
    if (++r->at >= from->rank)
      return false;
    r->left = r->left == 1 ? next : r->left * next;
  }
  if (r->left == size)
    r->left = ++r->at < from->rank ? from->d[r->at] : 1;
  else if (size != 1)
    r->left /= size;
  return true;
}

/* Whether backends support a view between these shapes: each dynamic dim stays a dim of its own, or
 * there is one at most. */
static bool is_supported(const Dims *from, const Dims *to) {
  uint32_t dynamic = 0;
  for (uint32_t k = 0; k < to->rank; k++)
    dynamic += !sym_is_const(to->d[k]);
  if (dynamic <= 1)
    return true;
  Remaining r = {.dims = from, .left = from->rank ? from->d[0] : 1};
  for (uint32_t k = 0; k < to->rank; k++)
    if (!use_up(&r, to->d[k]))
      return false;
  return true;
}

/* The shape with the parts in the place of the dim; false when it has too many dims then. */
static bool split_shape(const Raise *r, const Dims *s, uint32_t dim, Dims *out) {
  if (s->rank + r->count - 1 > MAX_RANK)
    return false;
  *out = *s;
  out->rank = s->rank + r->count - 1;
  memcpy(out->d + dim, r->parts, r->count * sizeof *r->parts);
  memcpy(out->d + dim + r->count, s->d + dim + 1, (s->rank - dim - 1) * sizeof *s->d);
  return true;
}

/* v computed with the parts in the place of the dim, which is their product; 0 when that cannot be
 * done. Never for results other than the first. */
static ValueId raised(Raise *r, ValueId v, uint32_t dim);

/* The arguments of a node, of which some are changed before the op is built again. */
typedef struct Call {
  NodeId n;
  uint32_t count;
  ArgIn args[SCHEMA_MAX_ARGS];
} Call;

static Call call_of(Raise *r, NodeId n) {
  Graph *g = r->b->g;
  Call a = {.n = n, .count = op_schema(node_cget(g, n)->op)->arg_count};
  for (uint32_t i = 0; i < a.count; i++)
    a.args[i] = node_arg_in(g, n, i, &g->arena);
  return a;
}

/* Builds op on these arguments in front of the node that they are of. */
static ValueId built(Raise *r, const Call *a, OpId op, uint32_t count) {
  r->b->before = a->n;
  r->b->loc = node_cget(r->b->g, a->n)->loc;
  return build_args(r->b, op, a->args, count);
}

/* The same op on operand `arg` with the dim split. */
static ValueId raised_operand(Raise *r, NodeId n, uint32_t arg, uint32_t dim) {
  ValueId x = raised(r, node_value(r->b->g, n, arg), dim);
  if (!x || r->trial)
    return x;
  Call a = call_of(r, n);
  a.args[arg] = A_VAL(x);
  return built(r, &a, node_cget(r->b->g, n)->op, a.count);
}

/* A view of the same value with more dims. Where backends do not support that one, either, and
 * the view keeps the dims up to this one, its operand is split as well. */
static ValueId raised_view(Raise *r, NodeId n, uint32_t dim) {
  Graph *g = r->b->g;
  ValueId x = node_value(g, n, 0);
  Dims from = value_dims(g, x), own = value_dims(g, node_result(g, n, 0)), to;
  if (!split_shape(r, &own, dim, &to))
    return 0;
  if (!is_supported(&from, &to)) {
    if (from.rank <= dim || memcmp(from.d, own.d, (dim + 1) * sizeof *from.d) != 0)
      return 0;
    x = raised(r, x, dim);
    if (x && !r->trial && value_dim(g, x, dim) != r->parts[0])
      return 0; /* a size of 1, which broadcasts */
  }
  if (!x || r->trial)
    return x;
  r->b->before = n;
  r->b->loc = node_cget(g, n)->loc;
  return build_view_as(r->b, x, to);
}

/* Ops that no backend supports stay as they are, and a view behind them splits the dim: the
 * runtime's view supports any number of dynamic dims. */
static ValueId split_behind(Raise *r, NodeId n, uint32_t dim) {
  Dims own = value_dims(r->b->g, node_result(r->b->g, n, 0)), to;
  if (!split_shape(r, &own, dim, &to))
    return 0;
  if (r->trial)
    return node_result(r->b->g, n, 0);
  r->b->before = node_cget(r->b->g, n)->next;
  r->b->loc = node_cget(r->b->g, n)->loc;
  return build_view_as(r->b, node_result(r->b->g, n, 0), to);
}

/* A repeat that makes copies along the first part only: the first part becomes a dim of 1, which
 * the products and elementwise ops that follow broadcast. */
static ValueId raised_repeat(Raise *r, NodeId n, uint32_t dim) {
  Graph *g = r->b->g;
  ValueId x = node_value(g, n, 0);
  Dims own = value_dims(g, x), to;
  if (own.rank != value_rank(g, node_result(g, n, 0)) || r->count != 2 ||
      own.d[dim] != r->parts[1] || !split_shape(r, &own, dim, &to))
    return 0;
  for (uint32_t i = 0; i < own.rank; i++)
    if (node_ints(g, n, 1)[i] != (i == dim ? r->parts[0] : 1))
      return 0;
  if (r->trial)
    return x;
  to.d[dim] = 1;
  r->b->before = n;
  r->b->loc = node_cget(g, n)->loc;
  return build_view_as(r->b, x, to);
}

static ValueId raised_permute(Raise *r, NodeId n, uint32_t dim) {
  Graph *g = r->b->g;
  uint32_t rank = value_rank(g, node_result(g, n, 0)), more = r->count - 1, count = 0;
  int64_t old[MAX_RANK], perm[MAX_RANK];
  for (uint32_t i = 0; i < rank; i++)
    old[i] = node_ints(g, n, 1)[i] + (node_ints(g, n, 1)[i] < 0 ? rank : 0);
  ValueId x = rank + more <= MAX_RANK ? raised(r, node_value(g, n, 0), (uint32_t)old[dim]) : 0;
  if (!x || r->trial)
    return x;
  for (uint32_t i = 0; i < rank; i++)
    for (uint32_t k = 0; k < (i == dim ? r->count : 1); k++)
      perm[count++] = old[i] + k + (old[i] > old[dim] ? more : 0);
  r->b->before = n;
  r->b->loc = node_cget(g, n)->loc;
  return build_permute(r->b, x, perm);
}

/* mm, bmm, linear and matmul, as a matmul or linear with one more leading dim. */
static ValueId raised_product(Raise *r, NodeId n, uint32_t dim) {
  Graph *g = r->b->g;
  OpId op = node_cget(g, n)->op;
  if (op == OP_LINEAR || op == OP_MATMUL)
    return dim + 1 < value_rank(g, node_value(g, n, 0)) && value_rank(g, node_value(g, n, 1)) == 2
               ? raised_operand(r, n, 0, dim)
               : 0;
  ValueId x = dim == 0 ? raised(r, node_value(g, n, 0), 0) : 0, y = node_value(g, n, 1);
  if (x && op == OP_BMM)
    y = raised(r, y, 0);
  if (!x || !y || r->trial)
    return x && y ? x : 0;
  Call a = {.n = n, .args = {A_VAL(x), A_VAL(y)}};
  return built(r, &a, OP_MATMUL, 2);
}

/* Softmax and slices work along the dim that argument 1 names: any other may be split. */
static ValueId raised_along(Raise *r, NodeId n, uint32_t dim) {
  Graph *g = r->b->g;
  uint32_t rank = value_rank(g, node_result(g, n, 0));
  int64_t along = node_int(g, n, 1) + (node_int(g, n, 1) < 0 ? rank : 0);
  ValueId x = along == dim ? 0 : raised(r, node_value(g, n, 0), dim);
  if (!x || r->trial)
    return x;
  Call a = call_of(r, n);
  a.args[0] = A_VAL(x);
  a.args[1] = A_INT(along + (along > dim ? r->count - 1 : 0));
  return built(r, &a, node_cget(g, n)->op, a.count);
}

/* Elementwise ops: operands that have the dim are split, the others broadcast over it. */
static ValueId raised_elements(Raise *r, NodeId n, uint32_t dim) {
  Graph *g = r->b->g;
  uint32_t rank = value_rank(g, node_result(g, n, 0));
  Call a = call_of(r, n);
  for (uint32_t i = 0; i < a.count; i++) {
    if (a.args[i].kind == ARG_INTS) /* an order of the dims */
      return 0;
    ValueId v = a.args[i].kind == ARG_VALUE ? (ValueId)a.args[i].i : 0;
    uint32_t own = v ? value_rank(g, v) : 0;
    bool broadcast = true;
    for (uint32_t k = 0; k < own && k + rank <= dim + own; k++)
      broadcast &= value_dim(g, v, k) == 1;
    if (broadcast)
      continue;
    v = value_dim(g, v, dim + own - rank) == 1 ? 0 : raised(r, v, dim + own - rank);
    if (!v)
      return 0;
    a.args[i] = A_VAL(v);
  }
  return r->trial ? node_result(g, n, 0) : built(r, &a, node_cget(g, n)->op, a.count);
}

typedef ValueId RaisedFn(Raise *r, NodeId n, uint32_t dim);

/* A norm over trailing dims: those in front of them may be split. */
static ValueId raised_norm(Raise *r, NodeId n, uint32_t dim) {
  Graph *g = r->b->g;
  return dim + node_list_count(g, n, 1) < value_rank(g, node_result(g, n, 0))
             ? raised_operand(r, n, 0, dim)
             : 0;
}

/* A gather that the view splits directly has nothing to gain. */
static ValueId raised_gather(Raise *r, NodeId n, uint32_t dim) {
  return r->visits > 1 ? split_behind(r, n, dim) : 0;
}

static RaisedFn *function_of(OpId op) {
  static const struct {
    OpId op;
    RaisedFn *raised;
  } rows[] = {
      {OP_VIEW_COPY, raised_view},
      {OP_GATHER, raised_gather},
      {OP_INDEX_TENSOR, raised_gather},
      {OP_REPEAT, raised_repeat},
      {OP_PERMUTE_COPY, raised_permute},
      {OP_MM, raised_product},
      {OP_BMM, raised_product},
      {OP_LINEAR, raised_product},
      {OP_MATMUL, raised_product},
      {OP_SOFTMAX, raised_along},
      {OP_LOG_SOFTMAX, raised_along},
      {OP_SLICE_COPY_TENSOR, raised_along},
      {OP_NATIVE_LAYER_NORM, raised_norm},
  };
  for (size_t i = 0; i < COUNT_OF(rows); i++)
    if (rows[i].op == op)
      return rows[i].raised;
  return op_has_trait(op, OP_ELEMENTWISE) ? raised_elements : NULL;
}

static ValueId raised(Raise *r, ValueId v, uint32_t dim) {
  Graph *g = r->b->g;
  NodeId n = value_def(g, v);
  if (++r->visits > MAX_VISITS || r->b->status != STATUS_OK || !n || v != node_result(g, n, 0))
    return 0;
  OpId op = node_cget(g, n)->op;
  bool moves = op == OP_VIEW_COPY || op == OP_PERMUTE_COPY || op == OP_GATHER ||
               op == OP_INDEX_TENSOR || op == OP_REPEAT;
  if (!moves && value_cget(g, v)->use_count > 1) /* it would be computed twice */
    return 0;
  RaisedFn *f = function_of(op);
  return f ? f(r, n, dim) : 0;
}

/* The first dim in which the shapes differ, when `to` splits it: its parts are dims [begin, begin +
 * count) of `to`. */
static bool find_parts(Graph *g, const Dims *from, const Dims *to, uint32_t *begin,
                       uint32_t *count) {
  uint32_t i = 0;
  while (i < from->rank && i < to->rank && from->d[i] == to->d[i])
    i++;
  SymInt product = 1;
  for (uint32_t k = i; i < from->rank && k < to->rank; k++) {
    product = sym_mul(&g->syms, product, to->d[k]);
    if (k > i && product == from->d[i]) {
      *begin = i;
      *count = k + 1 - i;
      return true;
    }
  }
  return false;
}

/* bmm(view(x), y) whose view joins leading dims: the product of x, and the join behind it. */
static ValueId sink_join(Builder *b, NodeId n) {
  Graph *g = b->g;
  NodeId view = match_op(g, node_value(g, n, 0), OP_VIEW_COPY);
  if (!view)
    return 0;
  Dims own = value_dims(g, node_result(g, view, 0)), from = value_dims(g, node_value(g, view, 0)),
       to = value_dims(g, node_result(g, n, 0));
  uint32_t dim, count;
  if (is_supported(&from, &own) || !find_parts(g, &own, &from, &dim, &count) || dim != 0)
    return 0;
  Raise r = {.b = b, .parts = from.d, .count = count, .trial = true};
  if (!raised_product(&r, n, 0))
    return 0;
  r.trial = false;
  r.visits = 0;
  ValueId y = raised_product(&r, n, 0);
  b->before = n;
  return y && value_dim(g, y, 0) == from.d[0] ? build_view_as(b, y, to) : 0;
}

/* view(v) that splits a dim of v: v computed with that dim split. */
static ValueId raise_split(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0);
  Dims from = value_dims(g, x), to = value_dims(g, node_result(g, n, 0)), parts;
  uint32_t dim, count;
  if (is_supported(&from, &to) || !find_parts(g, &from, &to, &dim, &count))
    return 0;
  Raise r = {.b = b, .parts = to.d + dim, .count = count, .trial = true};
  if (!split_shape(&r, &from, dim, &parts) || !is_supported(&parts, &to) || !raised(&r, x, dim))
    return 0;
  r.trial = false;
  r.visits = 0;
  ValueId y = raised(&r, x, dim);
  b->before = n;
  return y ? build_view_as(b, y, to) : 0;
}

Status pass_raise_views(PassContext *p, Graph *g) {
  static const RewriteRule rows[] = {{OP_VIEW_COPY, raise_split, "views raised"},
                                     {OP_BMM, sink_join, "views sunk"}};
  return pass_rewrite(p, g, rows, COUNT_OF(rows));
}

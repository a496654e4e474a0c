/* Views that split a dim that varies into several, moved up to where these were joined, and those
 * that join them for a product moved behind it, so that neither is left:
 *   view(mm(view(x, [a*b, K]), W), [a, b, N])        -> matmul(x, W)
 *   view(bmm(view(x, [a*h, M, K]), view(y, [a*h, K, N])), [a, h, M, N]) -> matmul(x, y)
 * and over what else computes each of their parts for itself.
 *
 * Why: backends take any leading dims, but no views of which two or more dims vary in another way
 * than before. They come from products with leading dims, for which the runtime has no kernel, and
 * from exporters. Where one dim varies at most, all stays as it is. */
#include "ir/match.h"
#include "passes/pass.h"

enum { MAX_VISITS = 128 };

typedef struct Raise {
  Builder *b;
  const SymInt *parts; /* what the dim is split into */
  uint32_t count, visits;
  bool trial; /* nothing is built: results only say whether it can be */
} Raise;

/* Whether a view keeps the dims that vary as they are, or leaves one at most. */
static bool is_plain(const Dims *from, const Dims *to) {
  uint32_t open = 0, i = 0;
  SymInt left = from->rank ? from->d[0] : 1;
  for (uint32_t k = 0; k < to->rank; k++)
    open += !sym_is_const(to->d[k]);
  for (uint32_t k = 0; k < to->rank && open > 1; k++) {
    SymInt size = to->d[k];
    while (left != size && size != 1) {
      SymInt next = i + 1 < from->rank ? from->d[i + 1] : 0;
      if (sym_const_divides(size, left))
        break;
      if (left != 1 && next != 1 &&
          !(sym_const_divides(left, size) && sym_const_divides(next, size / left)))
        return false;
      if (++i >= from->rank)
        return false;
      left = left == 1 ? next : left * next;
    }
    if (left == size)
      left = ++i < from->rank ? from->d[i] : 1;
    else if (size != 1)
      left /= size;
  }
  return true;
}

/* With the parts in the place of the dim. */
static bool split_shape(const Raise *r, const Dims *s, uint32_t dim, Dims *out) {
  if (s->rank + r->count - 1 > MAX_RANK)
    return false;
  *out = *s;
  out->rank = s->rank + r->count - 1;
  memcpy(out->d + dim, r->parts, r->count * sizeof *r->parts);
  memcpy(out->d + dim + r->count, s->d + dim + 1, (s->rank - dim - 1) * sizeof *s->d);
  return true;
}

/* v with the parts in the place of the dim, which is their product; 0: there is no way. */
static ValueId raised(Raise *r, ValueId v, uint32_t dim);

/* Node n once more, before itself, with other arguments. */
typedef struct Again {
  NodeId n;
  uint32_t count;
  ArgIn args[SCHEMA_MAX_ARGS];
} Again;

static Again again(Raise *r, NodeId n) {
  Graph *g = r->b->g;
  Again a = {.n = n, .count = op_schema(node_cget(g, n)->op)->arg_count};
  for (uint32_t i = 0; i < a.count; i++)
    a.args[i] = node_arg_in(g, n, i, &g->arena);
  return a;
}

static ValueId built(Raise *r, const Again *a, OpId op, uint32_t count) {
  r->b->before = a->n;
  r->b->loc = node_cget(r->b->g, a->n)->loc;
  return build_args(r->b, op, a->args, count);
}

/* The same op with tensor `arg` raised. */
static ValueId raised_operand(Raise *r, NodeId n, uint32_t arg, uint32_t dim) {
  ValueId x = raised(r, node_value(r->b->g, n, arg), dim);
  if (!x || r->trial)
    return x;
  Again a = again(r, n);
  a.args[arg] = A_VAL(x);
  return built(r, &a, node_cget(r->b->g, n)->op, a.count);
}

static ValueId raised_view(Raise *r, NodeId n, uint32_t dim) {
  Graph *g = r->b->g;
  ValueId x = node_value(g, n, 0);
  Dims from = value_dims(g, x), own = value_dims(g, node_result(g, n, 0)), to;
  if (!split_shape(r, &own, dim, &to))
    return 0;
  if (!is_plain(&from, &to)) {
    if (from.rank <= dim || memcmp(from.d, own.d, (dim + 1) * sizeof *from.d) != 0)
      return 0;
    x = raised(r, x, dim);
    if (x && !r->trial && value_dim(g, x, dim) != r->parts[0])
      return 0; /* it broadcasts */
  }
  if (!x || r->trial)
    return x;
  r->b->before = n;
  r->b->loc = node_cget(g, n)->loc;
  return build_view_as(r->b, x, to);
}

/* What no backend computes is seen in another way behind it. */
static ValueId viewed(Raise *r, NodeId n, uint32_t dim) {
  Dims own = value_dims(r->b->g, node_result(r->b->g, n, 0)), to;
  if (!split_shape(r, &own, dim, &to))
    return 0;
  if (r->trial)
    return node_result(r->b->g, n, 0);
  r->b->before = node_cget(r->b->g, n)->next;
  r->b->loc = node_cget(r->b->g, n)->loc;
  return build_view_as(r->b, node_result(r->b->g, n, 0), to);
}

/* Copies along the first part: left to the products and sums that broadcast them. */
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

/* mm, bmm and linear: a product with the leading dims of its first operand. */
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
  Again a = {.n = n, .args = {A_VAL(x), A_VAL(y)}};
  return built(r, &a, OP_MATMUL, 2);
}

/* Along a dim: argument 1 says which. */
static ValueId raised_along(Raise *r, NodeId n, uint32_t dim) {
  Graph *g = r->b->g;
  uint32_t rank = value_rank(g, node_result(g, n, 0));
  int64_t along = node_int(g, n, 1) + (node_int(g, n, 1) < 0 ? rank : 0);
  ValueId x = along == dim ? 0 : raised(r, node_value(g, n, 0), dim);
  if (!x || r->trial)
    return x;
  Again a = again(r, n);
  a.args[0] = A_VAL(x);
  a.args[1] = A_INT(along + (along > dim ? r->count - 1 : 0));
  return built(r, &a, node_cget(g, n)->op, a.count);
}

/* Each element by itself: operands that have the dim are raised, the others broadcast over it. */
static ValueId raised_elements(Raise *r, NodeId n, uint32_t dim) {
  Graph *g = r->b->g;
  uint32_t rank = value_rank(g, node_result(g, n, 0));
  Again a = again(r, n);
  for (uint32_t i = 0; i < a.count; i++) {
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

static ValueId raised(Raise *r, ValueId v, uint32_t dim) {
  Graph *g = r->b->g;
  NodeId n = value_def(g, v);
  if (++r->visits > MAX_VISITS || r->b->status != STATUS_OK || !n || v != node_result(g, n, 0))
    return 0;
  switch (node_cget(g, n)->op) {
  case OP_VIEW_COPY:
    return raised_view(r, n, dim);
  case OP_GATHER:
  case OP_INDEX_TENSOR:
    return r->visits > 1 ? viewed(r, n, dim) : 0;
  case OP_REPEAT:
    return raised_repeat(r, n, dim);
  case OP_PERMUTE_COPY:
    return raised_permute(r, n, dim);
  case OP_MM:
  case OP_BMM:
  case OP_LINEAR:
  case OP_MATMUL:
    return raised_product(r, n, dim);
  case OP_SOFTMAX:
  case OP_LOG_SOFTMAX:
  case OP_SLICE_COPY_TENSOR:
    return raised_along(r, n, dim);
  case OP_NATIVE_LAYER_NORM:
    return dim + node_list_count(g, n, 1) < value_rank(g, v) ? raised_operand(r, n, 0, dim) : 0;
  case OP_ADD_TENSOR:
  case OP_SUB_TENSOR:
  case OP_MUL_TENSOR:
  case OP_DIV_TENSOR:
  case OP_MAXIMUM:
  case OP_MINIMUM:
  case OP_WHERE_SELF:
  case OP_CLAMP:
  case OP_RELU:
  case OP_GELU:
  case OP_SIGMOID:
  case OP_TANH:
  case OP_ELU:
  case OP_LEAKY_RELU:
  case OP_NEG:
  case OP_EXP:
  case OP_POW_TENSOR_SCALAR:
  case OP_RSQRT:
  case OP_TO_COPY:
    return raised_elements(r, n, dim);
  default:
    return 0;
  }
}

/* The dim of `from` that `to` has in parts, which are dims [begin, begin + count) of it. */
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

/* x is `from` seen in another way, with dim 0 from several of it: a product of that dim keeps them,
 * and is seen in the other way behind it. */
static ValueId sink(Builder *b, NodeId n) {
  Graph *g = b->g;
  NodeId view = match_op(g, node_value(g, n, 0), OP_VIEW_COPY);
  if (!view)
    return 0;
  Dims own = value_dims(g, node_result(g, view, 0)), from = value_dims(g, node_value(g, view, 0)),
        to = value_dims(g, node_result(g, n, 0));
  uint32_t dim, count;
  if (is_plain(&from, &own) || !find_parts(g, &own, &from, &dim, &count) || dim != 0)
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

static ValueId raise(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0);
  Dims from = value_dims(g, x), to = value_dims(g, node_result(g, n, 0)), parts;
  uint32_t dim, count;
  if (is_plain(&from, &to) || !find_parts(g, &from, &to, &dim, &count))
    return 0;
  Raise r = {.b = b, .parts = to.d + dim, .count = count, .trial = true};
  if (!split_shape(&r, &from, dim, &parts) || !is_plain(&parts, &to) || !raised(&r, x, dim))
    return 0;
  r.trial = false;
  r.visits = 0;
  ValueId y = raised(&r, x, dim);
  b->before = n;
  return y ? build_view_as(b, y, to) : 0;
}

Status pass_raise_views(PassContext *p, Graph *g) {
  static const RewriteRule rows[] = {{OP_VIEW_COPY, raise, "views raised"},
                                    {OP_BMM, sink, "views sunk"}};
  return p->options && p->options->backend_count ? pass_rewrite(p, g, rows, COUNT_OF(rows))
                                                 : STATUS_OK;
}

/* Mixtures of experts of com.microsoft. Which experts a token goes through is known only while
 * running, so it goes through all of them: the first layers of all experts are one product of many
 * columns; the second layers are one, too, of as many rows, which sums the experts because what
 * goes in was multiplied by their shares, 0 for those that the router did not choose. */
#include "onnx/express.h"

typedef enum Activation { RELU, GELU, SILU, SWIGLU, IDENTITY } Activation;

/* One layer of all experts. */
typedef struct Layer {
  ValueId weights;       /* [experts, rows, columns], or 0 */
  ValueId bias;          /* [experts, rows], or 0 */
  int64_t rows, columns; /* of an expert */
} Layer;

typedef struct Experts {
  int64_t count;
  Activation activation;
  Layer first, gate, second;
  ValueId x;     /* [tokens, hidden] */
  ValueId share; /* [tokens, experts] */
} Experts;

/* --- the router --- */

/* How many experts are better than each [tokens, experts]; of equal ones the last is the best. */
static ValueId ranks(Import *im, ValueId scores) {
  ValueId own = ex_unsqueeze(im, scores, 2), other = ex_unsqueeze(im, scores, 1),
          at = ex_arange(im, ex_dim(im, scores, 1)), row = ex_unsqueeze(im, at, 1);
  ValueId later = ex_gt(im, at, row), equal = ex_and(im, ex_eq(im, other, own), later);
  ValueId better = ex_or(im, ex_gt(im, other, own), equal);
  return ex_sum(im, ex_cast(im, better, DTYPE_F32), 2, false);
}

/* Probabilities of the k best experts, 0 for the others. */
static ValueId shares(Import *im, ValueId scores, int64_t count) {
  int64_t k = attr_int(im, "k", 1);
  DType dtype = ex_dtype(im, scores);
  scores = ex_widen(im, scores);
  if (k < 1 || k > count)
    import_fail(im, DIAG_ATTR_VALUE, "k is %lld of %lld experts", (long long)k, (long long)count);
  ValueId share = ex_softmax(im, scores, 1);
  if (k < count) {
    ValueId chosen = ex_with(im, OP_LT_TENSOR, ranks(im, scores), (double)k);
    share = ex_where(im, chosen, share, ex_number(im, share, 0));
  }
  if (attr_flag(im, "normalize_routing_weights", false))
    share = ex_div(im, share, ex_sum(im, share, 1, true));
  return ex_cast(im, share, dtype);
}

/* --- the layers --- */

/* Every second row of each expert, from `first` on, or one half of them. */
static Layer half(Import *im, const Layer *all, int64_t first, bool neighbours, int64_t count) {
  Layer y = {.rows = all->rows / 2, .columns = all->columns};
  SymInt pair = neighbours ? 2 : y.rows, pairs = neighbours ? y.rows : 2;
  uint32_t dim = neighbours ? 2 : 1;
  y.weights = EX_VIEW(im, all->weights, count, pairs, pair, ex_dim(im, all->weights, 2));
  y.weights = ex_select(im, y.weights, dim, first);
  if (all->bias)
    y.bias = ex_select(im, EX_VIEW(im, all->bias, count, pairs, pair), dim, first);
  return y;
}

/* SwiGLU whose two layers are the rows of one. */
static void split_first(Import *im, Experts *e) {
  enum { APART, NEIGHBOURS, HALVES };
  int64_t fusion = e->activation == SWIGLU ? attr_int(im, "swiglu_fusion", APART) : APART;
  if (fusion < APART || fusion > HALVES)
    import_fail(im, DIAG_ATTR_VALUE, "swiglu_fusion is %lld, not 0, 1 or 2", (long long)fusion);
  if (e->activation == SWIGLU && !e->gate.weights == (fusion == APART))
    import_fail(im, DIAG_INPUT_COUNT,
                "swiglu has its second factor either in the rows of "
                "fc1_experts_weights (swiglu_fusion 1, 2) or in "
                "fc3_experts_weights (0)");
  if (fusion != APART && e->first.rows % 2)
    import_fail(im, DIAG_SHAPE_MISMATCH, "%lld rows of fc1_experts_weights are not pairs",
                (long long)e->first.rows);
  if (fusion == APART || !import_ok(im))
    return;
  Layer all = e->first;
  e->first = half(im, &all, 0, fusion == NEIGHBOURS, e->count);
  e->gate = half(im, &all, 1, fusion == NEIGHBOURS, e->count);
}

/* A layer of all experts side by side: [tokens, experts * rows]. */
static ValueId apply(Import *im, const Experts *e, const Layer *l) {
  int64_t all = e->count * l->rows;
  ValueId bias = l->bias ? EX_VIEW(im, l->bias, all) : 0;
  return ex_linear(im, e->x, EX_VIEW(im, l->weights, all, ex_dim(im, l->weights, 2)), bias);
}

/* swiglu(g, l) = g sigmoid(alpha g) (l + beta), where both have a limit. */
static ValueId swiglu(Import *im, ValueId g, ValueId l) {
  double alpha = attr_float(im, "activation_alpha", 1), beta = attr_float(im, "activation_beta", 0);
  if (attr_has(im, "swiglu_limit")) {
    double limit = attr_float(im, "swiglu_limit", 0);
    if (!(limit >= 0))
      import_fail(im, DIAG_ATTR_VALUE, "swiglu_limit is %g", limit);
    g = ex_with(im, OP_MINIMUM, g, limit);
    l = ex_clamp(im, l, -limit, limit);
  }
  g = ex_swish(im, g, alpha);
  return ex_mul(im, g, ex_plus(im, l, beta));
}

static ValueId activate(Import *im, const Experts *e, ValueId x, ValueId gate) {
  if (e->activation == SWIGLU)
    return swiglu(im, x, gate);
  if (e->activation == RELU)
    x = ex_unary(im, OP_RELU, x);
  if (e->activation == GELU)
    x = build(&im->b, OP_GELU, A_VAL(x), A_STR("tanh")); /* as ONNX Runtime's kernel */
  if (e->activation == SILU)
    x = ex_unary(im, OP_SILU, x);
  return gate ? ex_mul(im, x, gate) : x;
}

/* The sum of the second layers of x [tokens, experts * inner]. */
static ValueId sum_second(Import *im, const Experts *e, ValueId x) {
  const Layer *l = &e->second;
  SymInt tokens = ex_dim(im, x, 0);
  ValueId parts = EX_VIEW(im, x, tokens, e->count, l->columns);
  parts = ex_mul(im, parts, ex_unsqueeze(im, e->share, 2));
  parts = EX_VIEW(im, parts, tokens, e->count * l->columns);
  ValueId w = EX_PERMUTE(im, l->weights, 1, 0, 2);
  ValueId y = ex_linear(im, parts, EX_VIEW(im, w, l->rows, e->count * l->columns), 0);
  return l->bias ? ex_add(im, y, ex_mm(im, e->share, l->bias)) : y;
}

/* --- inputs --- */

static Layer read_layer(Import *im, uint32_t input, bool needed, const char *name) {
  Layer l = {.weights = needed ? in_required(im, input) : in(im, input), .bias = in(im, input + 1)};
  if (l.weights && ex_rank(im, l.weights) != 3)
    import_fail(im, DIAG_INPUT_RANK, "%s_experts_weights has rank %u, not 3", name,
                ex_rank(im, l.weights));
  if (l.bias && !l.weights)
    import_fail(im, DIAG_INPUT_COUNT, "%s_experts_bias has no weights beside it", name);
  if (l.weights) {
    l.rows = ex_fixed(im, l.weights, 1);
    l.columns = ex_fixed(im, l.weights, 2);
  }
  return l;
}

/* Whether weights and bias of a layer have these sizes. */
static void check_layer(Import *im, const Experts *e, const Layer *l, int64_t rows, int64_t columns,
                        const char *name) {
  if (!l->weights || !import_ok(im))
    return;
  bool fit = ex_dim(im, l->weights, 0) == e->count && l->rows == rows && l->columns == columns;
  if (fit && l->bias)
    fit = ex_rank(im, l->bias) == 2 && ex_dim(im, l->bias, 0) == e->count &&
          ex_dim(im, l->bias, 1) == rows;
  if (!fit)
    import_fail(
        im, DIAG_SHAPE_MISMATCH,
        "weights or bias of %s are not those of %lld experts with %lld rows of %lld columns", name,
        (long long)e->count, (long long)rows, (long long)columns);
}

static void check(Import *im, const Experts *e, ValueId scores) {
  int64_t hidden = ex_fixed(im, e->x, 1), inner = e->second.columns;
  check_layer(im, e, &e->first, inner, hidden, "fc1");
  check_layer(im, e, &e->second, hidden, inner, "fc2");
  check_layer(im, e, &e->gate, inner, hidden, "fc3");
  SymInt tokens = ex_dim(im, e->x, 0), rows = ex_dim(im, scores, 0);
  bool known = sym_is_const(tokens) && sym_is_const(rows);
  if (ex_rank(im, scores) != 2 || ex_dim(im, scores, 1) != e->count || (known && rows != tokens))
    import_fail(im, DIAG_SHAPE_MISMATCH, "router_probs is not [tokens, %lld]", (long long)e->count);
}

void translate_moe(Import *im) {
  ValueId x = in_required(im, 0), scores = in_required(im, 1);
  Dims shape = shape_of(im, x);
  Experts e = {.activation = (Activation)attr_choice(im, "activation_type", "relu",
                                                     "relu|gelu|silu|swiglu|identity")};
  attr_refuse(im, "use_sparse_mixer");
  if (shape.rank != 2 && shape.rank != 3)
    import_fail(im, DIAG_INPUT_RANK, "input has rank %u, not 2 or 3", shape.rank);
  if (!import_ok(im))
    return;
  e.x = shape.rank == 3 ? ex_rows(im, x, 2) : x;
  e.first = read_layer(im, 2, true, "fc1");
  e.second = read_layer(im, 4, true, "fc2");
  e.gate = read_layer(im, 6, false, "fc3");
  e.count = ex_fixed(im, e.first.weights, 0);
  split_first(im, &e);
  check(im, &e, scores);
  if (!import_ok(im))
    return;
  e.share = shares(im, scores, e.count);
  ValueId gate = e.gate.weights ? apply(im, &e, &e.gate) : 0;
  ValueId y = activate(im, &e, apply(im, &e, &e.first), gate);
  out(im, 0, ex_view_as(im, sum_second(im, &e, y), &shape));
}

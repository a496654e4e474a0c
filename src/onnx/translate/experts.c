/* Mixtures of experts of com.microsoft. Which experts a token goes through is known only while
 * running. Where few tokens leave many experts out, each expert is a branch that runs when some
 * token goes through it. Else all tokens go through all of them: the first layers of all experts
 * are one product of many columns; the second layers are one, too, of as many rows, which sums the
 * experts because what goes in was multiplied by their shares, 0 for those that the router did not
 * choose. */
#include <stdio.h>

#include "onnx/translate/quantized.h"

enum {
  BRANCHES_MAX = 1024,      /* experts that are a branch each, at most */
  BRANCH_WEIGHTS = 1 << 14, /* fewer weights take less time than the branch */
  BRANCH_TOKENS = 4         /* with more tokens for each expert it is rare that one is left out */
};

typedef enum Fusion { NOT_FUSED, INTERLEAVED, CONTIGUOUS } Fusion; /* numbers of the schema */
typedef enum Activation { RELU, GELU, SILU, SWIGLU, IDENTITY } Activation;

/* One layer of all experts. With a scale for each block of a row the weights are codes of some
 * bits, packed along the rows. */
typedef struct Layer {
  ValueId weights;       /* [experts, rows, columns], codes: [experts, rows, bytes]; or 0 */
  ValueId bias;          /* [experts, rows], or 0 */
  ValueId scales, zeros; /* [experts, rows, blocks], or 0 */
  int64_t rows, columns; /* of an expert */
  int64_t bits, size;    /* of a code, of a block */
} Layer;

typedef struct Experts {
  int64_t count;
  Activation activation;
  Fusion fusion;
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

/* What the k best experts count, 0 for the others. Without values of its own (0) that is the
 * probability, of all experts or, with `among`, of those that were chosen. */
static ValueId shares(Import *im, ValueId scores, ValueId values, int64_t count, bool among) {
  int64_t k = attr_int(im, "k", 1);
  scores = ex_widen(im, scores);
  if (k < 1 || k > count)
    import_fail(im, DIAG_ATTR_VALUE, "k is %lld of %lld experts", (long long)k, (long long)count);
  ValueId share = values ? ex_widen(im, values) : ex_softmax(im, scores, 1);
  if (k < count) {
    ValueId chosen = ex_with(im, OP_LT_TENSOR, ranks(im, scores), (double)k);
    share = ex_where(im, chosen, share, ex_number(im, share, 0));
  }
  if (attr_flag(im, "normalize_routing_weights", false) || (among && !values))
    share = ex_div(im, share, ex_sum(im, share, 1, true));
  return share;
}

/* --- the layers --- */

/* Of v [experts, rows, …] every second row of each expert, from `first` on, or one half of them. */
static ValueId half_rows(Import *im, ValueId v, int64_t first, bool interleaved) {
  Dims s = shape_of(im, v);
  if (!v || !import_ok(im))
    return 0;
  SymInt rows = s.d[1] / 2, split[] = {s.d[0], interleaved ? rows : 2, interleaved ? 2 : rows, 1};
  split[3] = s.rank == 3 ? s.d[2] : 1;
  return ex_select(im, ex_view(im, v, split, s.rank + 1), interleaved ? 2 : 1, first);
}

static Layer half(Import *im, const Layer *all, int64_t first, bool interleaved) {
  Layer y = *all;
  y.rows /= 2;
  y.weights = half_rows(im, all->weights, first, interleaved);
  y.bias = half_rows(im, all->bias, first, interleaved);
  y.scales = half_rows(im, all->scales, first, interleaved);
  y.zeros = half_rows(im, all->zeros, first, interleaved);
  return y;
}

static void read_fusion(Import *im, Experts *e) {
  int64_t fusion = e->activation == SWIGLU ? attr_int(im, "swiglu_fusion", NOT_FUSED) : NOT_FUSED;
  if (fusion < NOT_FUSED || fusion > CONTIGUOUS)
    import_fail(im, DIAG_ATTR_VALUE, "swiglu_fusion is %lld, not 0, 1 or 2", (long long)fusion);
  if (e->activation == SWIGLU && !e->gate.weights == (fusion == NOT_FUSED))
    import_fail(im, DIAG_INPUT_COUNT,
                "swiglu has its second factor either in the rows of "
                "fc1_experts_weights (swiglu_fusion 1, 2) or in "
                "fc3_experts_weights (0)");
  if (fusion != NOT_FUSED && e->first.rows % 2)
    import_fail(im, DIAG_SHAPE_MISMATCH, "%lld rows of fc1_experts_weights are not pairs",
                (long long)e->first.rows);
  if (import_ok(im))
    e->fusion = (Fusion)fusion;
}

/* SwiGLU whose two layers are the rows of one. */
static void split_first(Import *im, Experts *e) {
  if (e->fusion == NOT_FUSED)
    return;
  Layer all = e->first;
  e->first = half(im, &all, 0, e->fusion == INTERLEAVED);
  e->gate = half(im, &all, 1, e->fusion == INTERLEAVED);
}

/* x times the transpose of a layer, all of whose experts make one matrix of these sizes. */
static ValueId product(Import *im, const Layer *l, ValueId x, int64_t rows, int64_t columns,
                       ValueId bias) {
  if (!l->scales)
    return ex_linear(im, x, EX_VIEW(im, l->weights, rows, columns), bias);
  int64_t count = columns / l->size, bytes = l->size * l->bits / 8;
  Blocks w = {rows, columns, l->size, l->bits, count, bytes};
  w.packed = EX_VIEW(im, l->weights, rows, count * bytes);
  w.scales = EX_VIEW(im, l->scales, rows, count);
  w.zeros = l->zeros ? EX_VIEW(im, l->zeros, rows, count) : 0;
  return blocks_linear(im, &w, x, bias);
}

/* A layer of all experts side by side: [tokens, experts * rows]. */
static ValueId apply(Import *im, const Experts *e, const Layer *l) {
  int64_t all = e->count * l->rows;
  ValueId bias = l->bias ? EX_VIEW(im, l->bias, all) : 0;
  return product(im, l, e->x, all, l->columns, bias);
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
  Layer l = e->second;
  SymInt tokens = ex_dim(im, x, 0);
  ValueId parts = EX_VIEW(im, x, tokens, e->count, l.columns);
  parts = ex_mul(im, parts, ex_unsqueeze(im, e->share, 2));
  parts = EX_VIEW(im, parts, tokens, e->count * l.columns);
  if (e->count > 1) {
    l.weights = EX_PERMUTE(im, l.weights, 1, 0, 2);
    l.scales = l.scales ? EX_PERMUTE(im, l.scales, 1, 0, 2) : 0;
    l.zeros = l.zeros ? EX_PERMUTE(im, l.zeros, 1, 0, 2) : 0;
  }
  ValueId y = product(im, &l, parts, l.rows, e->count * l.columns, 0);
  return l.bias ? ex_add(im, y, ex_mm(im, e->share, l.bias)) : y;
}

/* All tokens through all experts: [tokens, hidden]. */
static ValueId all_experts(Import *im, Experts *e) {
  split_first(im, e);
  ValueId gate = e->gate.weights ? apply(im, e, &e->gate) : 0;
  return sum_second(im, e, activate(im, e, apply(im, e, &e->first), gate));
}

/* --- a branch an expert --- */

static Layer layer_of(Import *im, const Layer *all, int64_t i) {
  Layer y = *all;
  y.weights = y.weights ? ex_slice(im, y.weights, 0, i, i + 1) : 0;
  y.bias = y.bias ? ex_slice(im, y.bias, 0, i, i + 1) : 0;
  y.scales = y.scales ? ex_slice(im, y.scales, 0, i, i + 1) : 0;
  y.zeros = y.zeros ? ex_slice(im, y.zeros, 0, i, i + 1) : 0;
  return y;
}

static ValueId one_expert(Import *im, const Experts *e, int64_t i) {
  Experts one = *e;
  one.count = 1;
  one.first = layer_of(im, &e->first, i);
  one.gate = layer_of(im, &e->gate, i);
  one.second = layer_of(im, &e->second, i);
  one.share = ex_slice(im, e->share, 1, i, i + 1);
  return all_experts(im, &one);
}

/* Whether some experts are likely to be left out, and large enough that this gains time. */
static bool leaves_out(Import *im, const Experts *e, int64_t k) {
  SymInt tokens = ex_dim(im, e->x, 0);
  bool large = e->first.rows * e->first.columns >= BRANCH_WEIGHTS;
  return k < e->count && e->count <= BRANCHES_MAX && large &&
         (!sym_is_const(tokens) || tokens * k < BRANCH_TOKENS * e->count);
}

static ValueId chosen_experts(Import *im, const Experts *e) {
  ValueId used = ex_with(im, OP_NE_TENSOR, e->share, 0),
          any = build(&im->b, OP_ANY_DIM, A_VAL(used), A_INT(0), A_BOOL(false)),
          sum = ex_full(im, ex_dtype(im, e->x), (SymInt[]){ex_dim(im, e->x, 0), e->second.rows}, 2,
                        0);
  for (int64_t i = 0; i < e->count && import_ok(im); i++) {
    (void)ex_unary(im, OP_IF, ex_element(im, any, i));
    ValueId y = ex_add(im, sum, one_expert(im, e, i));
    (void)build_args(&im->b, OP_ELSE, NULL, 0);
    sum = build(&im->b, OP_ENDIF, A_VALS(&y, 1), A_VALS(&sum, 1));
  }
  return sum;
}

/* --- inputs --- */

/* A layer whose weights and bias are at these inputs. */
static Layer read_layer(Import *im, uint32_t weights, uint32_t bias, const char *name) {
  Layer l = {.weights = in(im, weights), .bias = in(im, bias)};
  if (l.weights && ex_rank(im, l.weights) != 3)
    import_fail(im, DIAG_INPUT_RANK, "%s_experts_weights has rank %u, not 3", name,
                ex_rank(im, l.weights));
  if (l.bias && !l.weights)
    import_fail(im, DIAG_INPUT_COUNT, "%s_experts_bias has no weights beside it", name);
  if (!l.weights || !import_ok(im))
    return l;
  int64_t count = ex_fixed(im, l.weights, 0);
  l.rows = ex_fixed(im, l.weights, 1);
  l.columns = ex_fixed(im, l.weights, 2);
  bool fit = count > 0 && l.rows > 0 && l.columns > 0 && count <= INT32_MAX &&
             l.rows <= INT32_MAX && l.columns <= INT32_MAX;
  if (!fit)
    import_fail(im, DIAG_SHAPE_MISMATCH,
                "%s_experts_weights are %lld matrices of %lld rows and %lld columns", name,
                (long long)count, (long long)l.rows, (long long)l.columns);
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

static void check_scores(Import *im, const Experts *e, ValueId scores, const char *name) {
  SymInt tokens = ex_dim(im, e->x, 0), rows = ex_dim(im, scores, 0);
  bool known = sym_is_const(tokens) && sym_is_const(rows);
  if (ex_rank(im, scores) != 2 || ex_dim(im, scores, 1) != e->count || (known && rows != tokens))
    import_fail(im, DIAG_SHAPE_MISMATCH, "%s is not [tokens, %lld]", name, (long long)e->count);
}

/* Reads the tokens; their shape is that of the result. */
static bool begin(Import *im, Experts *e) {
  ValueId x = in_required(im, 0), weights = in_required(im, 2);
  uint32_t rank = ex_rank(im, x);
  e->activation =
      (Activation)attr_choice(im, "activation_type", "relu", "relu|gelu|silu|swiglu|identity");
  attr_refuse(im, "use_sparse_mixer");
  if (rank != 2 && rank != 3)
    import_fail(im, DIAG_INPUT_RANK, "input has rank %u, not 2 or 3", rank);
  e->x = rank == 3 ? ex_rows(im, x, 2) : x;
  e->count = ex_fixed(im, weights, 0);
  return import_ok(im);
}

/* Computes what was read. values: what the experts count, or 0. */
static void finish(Import *im, Experts *e, ValueId values, bool among) {
  ValueId x = in_required(im, 0), scores = in_required(im, 1);
  DType dtype = ex_dtype(im, x);
  read_fusion(im, e);
  int64_t hidden = ex_fixed(im, e->x, 1), inner = e->second.columns,
          first = e->fusion == NOT_FUSED ? inner : 2 * inner;
  check_layer(im, e, &e->first, first, hidden, "fc1");
  check_layer(im, e, &e->second, hidden, inner, "fc2");
  check_layer(im, e, &e->gate, inner, hidden, "fc3");
  check_scores(im, e, scores, "router_probs");
  if (values)
    check_scores(im, e, values, "router_weights");
  if (!import_ok(im))
    return;
  e->share = ex_cast(im, shares(im, scores, values, e->count, among), ex_dtype(im, e->x));
  bool branches = leaves_out(im, e, attr_int(im, "k", 1));
  ValueId y = ex_cast(im, branches ? chosen_experts(im, e) : all_experts(im, e), dtype);
  out(im, 0, ex_view_as(im, y, shape_of(im, x)));
}

void translate_moe(Import *im) {
  Experts e = {0};
  (void)in_required(im, 4);
  if (!begin(im, &e))
    return;
  e.first = read_layer(im, 2, 3, "fc1");
  e.second = read_layer(im, 4, 5, "fc2");
  e.gate = read_layer(im, 6, 7, "fc3");
  finish(im, &e, 0, false);
}

/* --- codes --- */

/* Zero points by block, packed along the blocks of a row or, when a row is one block, along the
 * rows. */
static ValueId read_zeros(Import *im, const Experts *e, const Layer *l, ValueId zeros,
                          const char *name) {
  int64_t blocks = l->columns / l->size;
  uint32_t rank = ex_rank(im, zeros);
  int64_t last = rank == 2 ? l->rows : blocks, bytes = (last * l->bits + 7) / 8;
  bool fit = (rank == 3 || (rank == 2 && blocks == 1)) && ex_dim(im, zeros, 0) == e->count &&
             (rank == 2 || ex_dim(im, zeros, 1) == l->rows) &&
             ex_dim(im, zeros, rank - 1) == bytes && ex_dtype(im, zeros) == DTYPE_U8;
  if (!fit)
    return import_fail(
        im, DIAG_SHAPE_MISMATCH,
        "%s_zero_points are not bytes for %lld experts with %lld rows of %lld blocks", name,
        (long long)e->count, (long long)l->rows, (long long)blocks);
  zeros = ex_slice(im, blocks_zeros(im, zeros, l->bits), rank - 1, 0, last);
  return EX_VIEW(im, zeros, e->count, l->rows, blocks);
}

/* The layer at `input`: codes, scales and bias. */
static Layer read_codes(Import *im, const Experts *e, uint32_t input, uint32_t zeros,
                        const char *name) {
  char bits[32];
  Layer l = read_layer(im, input, input + 2, name);
  ValueId scales = in(im, input + 1);
  (void)snprintf(bits, sizeof bits, "%s_expert_weight_bits", name);
  l.bits = attr_int(im, bits, attr_int(im, "expert_weight_bits", 4));
  if (l.bits != 2 && l.bits != 4 && l.bits != 8)
    import_fail(im, DIAG_ATTR_VALUE, "%s has weights of %lld bits, not 2, 4 or 8", name,
                (long long)l.bits);
  if (!l.weights || !import_ok(im))
    return l;
  l.columns *= 8 / l.bits;
  l.size = attr_int(im, "block_size", 0);
  l.size = l.size ? l.size : l.columns;
  if (l.size < 1 || l.columns % l.size || l.size % (8 / l.bits))
    import_fail(im, DIAG_ATTR_VALUE, "block_size %lld does not divide %lld columns of %s",
                (long long)l.size, (long long)l.columns, name);
  if (!scales)
    import_fail(im, DIAG_INPUT_COUNT, "%s has no scales", name);
  if (ex_dtype(im, l.weights) != DTYPE_U8)
    import_fail(im, DIAG_INPUT_TYPE, "%s_experts_weights are %s, not u8", name,
                dtype_name(ex_dtype(im, l.weights)));
  if (!import_ok(im))
    return l;
  scales = EX_VIEW(im, scales, e->count, l.rows, l.columns / l.size);
  l.scales = ex_cast(im, scales, DTYPE_F32);
  l.bias = l.bias ? ex_cast(im, l.bias, DTYPE_F32) : 0;
  l.zeros = in(im, zeros) ? read_zeros(im, e, &l, in(im, zeros), name) : 0;
  return l;
}

/* Without router_weights ONNX Runtime's kernel has shares whose sum is 1, whatever
 * normalize_routing_weights says. */
void translate_qmoe(Import *im) {
  Experts e = {0};
  (void)in_required(im, 5);
  if (!sv_eq_str(attr_str(im, "quant_type", "int"), "int"))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "only quant_type 'int' is supported");
  if (attr_int(im, "weights_prepacked", -1) > 0)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "weights prepacked for a GPU are not supported");
  if (!begin(im, &e))
    return;
  e.x = ex_cast(im, e.x, DTYPE_F32);
  e.first = read_codes(im, &e, 2, 11, "fc1");
  e.second = read_codes(im, &e, 5, 12, "fc2");
  e.gate = read_codes(im, &e, 8, 13, "fc3");
  finish(im, &e, in(im, 14), true);
}

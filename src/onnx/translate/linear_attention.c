/* Attention without a softmax over all keys, and what stands around it in such models:
 * LinearAttention, CausalConvWithState, SwiGLU; and FlexAttention of ai.onnx.preview. */
#include <math.h>

#include "onnx/translate/attention_parts.h"
#include "onnx/translate/spatial.h"

enum { TOKENS_MAX = 4096 };

/* --- LinearAttention --- */

typedef struct LinearAttention {
  int64_t groups, repeat; /* key heads, query heads a key head */
  int64_t tokens, key_size, value_size;
  SymInt batch, all; /* all = batch * groups */
  bool gating, delta;
  DType dtype;
  ValueId query, key, value; /* f32 [tokens, all, repeat | 1, size] */
  ValueId decay, beta;       /* f32 [tokens, all, key_size | 1, 1], [tokens, all, 1, 1] */
  ValueId state;             /* f32 [all, key_size, value_size] */
} LinearAttention;

/* [B, T, heads * size] -> [T, B * groups, heads / groups, size] in f32. */
static ValueId by_token(Import *im, const LinearAttention *a, ValueId x, int64_t heads,
                        int64_t size) {
  if (ex_rank(im, x) != 3 || ex_dim(im, x, 2) != heads * size)
    return import_fail(im, DIAG_SHAPE_MISMATCH, "an input does not fit %lld heads of size %lld",
                       (long long)heads, (long long)size);
  ValueId four = EX_VIEW(im, x, a->batch, a->tokens, heads, size);
  four = EX_PERMUTE(im, ex_cast(im, four, DTYPE_F32), 1, 0, 2, 3);
  return EX_VIEW(im, four, a->tokens, a->all, heads / a->groups, size);
}

static void read_gates(Import *im, LinearAttention *a) {
  ValueId decay = in(im, 4), beta = in(im, 5);
  if (a->gating != (decay != 0) || a->delta != (beta != 0))
    import_fail(im, DIAG_INPUT_COUNT, "update_rule wants %s decay and %s beta input",
                a->gating ? "a" : "no", a->delta ? "a" : "no");
  if (decay) {
    int64_t wide = ex_fixed(im, decay, 2),
            size = wide == a->groups ? 1 : a->key_size; /* per head or per element of the key */
    ValueId rows = by_token(im, a, decay, a->groups, size);
    a->decay = ex_unary(im, OP_EXP, EX_VIEW(im, rows, a->tokens, a->all, size, 1));
  }
  if (beta && ex_fixed(im, beta, 2) == 1 && a->groups > 1)
    beta = EX_EXPAND(im, beta, a->batch, a->tokens, a->groups);
  if (beta)
    a->beta = by_token(im, a, beta, a->groups, 1);
}

static void read_rule(Import *im, LinearAttention *a) {
  enum {
    LINEAR,
    GATED,
    DELTA,
    GATED_DELTA
  } rule = attr_choice(im, "update_rule", "gated_delta", "linear|gated|delta|gated_delta");
  a->gating = rule == GATED || rule == GATED_DELTA;
  a->delta = rule == DELTA || rule == GATED_DELTA;
}

static bool linear_read(Import *im, LinearAttention *a) {
  ValueId q = in_required(im, 0), k = in_required(im, 1), v = in_required(im, 2), past = in(im, 3);
  int64_t heads = attr_int_required(im, "q_num_heads"),
          groups = attr_int_required(im, "kv_num_heads");
  *a = (LinearAttention){.groups = groups, .dtype = ex_dtype(im, q)};
  read_rule(im, a);
  if (ex_rank(im, q) != 3 || ex_rank(im, v) != 3)
    import_fail(im, DIAG_INPUT_RANK, "query and value must have rank 3");
  int64_t q_wide = ex_fixed(im, q, 2), v_wide = ex_fixed(im, v, 2);
  a->tokens = ex_fixed(im, q, 1);
  if (groups < 1 || heads < 1 || heads % groups || q_wide % heads || v_wide % groups)
    import_fail(im, DIAG_ATTR_VALUE, "%lld query and %lld key heads do not fit the inputs",
                (long long)heads, (long long)groups);
  if (a->tokens < 1 || a->tokens > TOKENS_MAX)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "%lld tokens would be unrolled, at most %d are "
                "supported",
                (long long)a->tokens, TOKENS_MAX);
  if (!import_ok(im))
    return false;
  a->repeat = heads / groups;
  a->key_size = q_wide / heads;
  a->value_size = v_wide / groups;
  a->batch = ex_dim(im, q, 0);
  a->all = sym_mul(&im->g->syms, a->batch, groups);
  double scale = attr_float(im, "scale", 0);
  a->query = ex_times(im, by_token(im, a, q, heads, a->key_size),
                      scale == 0 ? 1 / sqrt((double)a->key_size) : scale);
  a->key = by_token(im, a, k, groups, a->key_size);
  a->value = by_token(im, a, v, groups, a->value_size);
  if (past)
    a->state = EX_VIEW(im, ex_cast(im, past, DTYPE_F32), a->all, a->key_size, a->value_size);
  read_gates(im, a);
  return import_ok(im);
}

/* The state after token t, and what its queries [all, repeat, key_size] read. */
static ValueId linear_step(Import *im, LinearAttention *a, int64_t t) {
  ValueId key = ex_select(im, a->key, 0, t), value = ex_select(im, a->value, 0, t);
  ValueId state = a->state;
  if (state && a->decay)
    state = ex_mul(im, state, ex_select(im, a->decay, 0, t));
  if (a->delta) {
    if (state)
      value = ex_sub(im, value, ex_bmm(im, key, state));
    value = ex_mul(im, value, ex_select(im, a->beta, 0, t));
  }
  ValueId column = EX_VIEW(im, key, a->all, a->key_size, 1);
  ValueId product = ex_mul(im, column, value);
  a->state = state ? ex_add(im, state, product) : product;
  return ex_bmm(im, ex_select(im, a->query, 0, t), a->state);
}

void translate_linear_attention(Import *im) {
  LinearAttention a;
  if (!linear_read(im, &a))
    return;
  ValueId past = in(im, 3);
  DType state_dtype = past ? ex_dtype(im, past) : a.dtype;
  ValueId *rows = ARENA_ARRAY(&im->scratch, ValueId, (size_t)a.tokens);
  for (int64_t t = 0; t < a.tokens && import_ok(im); t++)
    rows[t] = ex_unsqueeze(im, linear_step(im, &a, t), 0);
  ValueId y = ex_cat(im, rows, (uint32_t)a.tokens, 0); /* [T, B * groups, repeat, size] */
  y = EX_VIEW(im, y, a.tokens, a.batch, a.groups * a.repeat * a.value_size);
  out(im, 0, ex_cast(im, EX_PERMUTE(im, y, 1, 0, 2), a.dtype));
  ValueId state = EX_VIEW(im, a.state, a.batch, a.groups, a.key_size, a.value_size);
  out(im, 1, ex_cast(im, state, state_dtype));
}

/* --- CausalConvWithState --- */

void translate_causal_conv_with_state(Import *im) {
  ValueId x = in_required(im, 0), weight = in_required(im, 1), bias = in(im, 2), past = in(im, 3);
  bool activated = attr_choice(im, "activation", "none", "silu|swish|none") < 2;
  if (ex_rank(im, x) != 3 || ex_rank(im, weight) != 3)
    import_fail(im, DIAG_INPUT_RANK, "input and weight must have rank 3");
  int64_t size = ex_fixed(im, weight, 2), channels = ex_fixed(im, x, 1);
  ValueId whole = size < 2 ? x : past ? ex_cat2(im, past, x, 2) : ex_pad(im, x, 0, size - 1, 0);
  const Window taps = {.rank = 1, .stride = {1}, .dilation = {1}};
  ValueId y = window_convolve(im, whole, weight, bias, &taps, channels);
  DType dtype = ex_dtype(im, x);
  if (activated) {
    ValueId wide = ex_cast(im, y, dtype == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32);
    y = ex_cast(im, ex_unary(im, OP_SILU, wide), dtype);
  }
  out(im, 0, y);
  SymInt length = ex_dim(im, whole, 2);
  if (out_wanted(im, 1))
    out(im, 1, ex_slice(im, whole, 2, sym_sub(&im->g->syms, length, size - 1), length));
}

/* --- SwiGLU --- */

void translate_swiglu(Import *im) {
  ValueId gate = in_required(im, 0), linear = in_required(im, 1);
  out(im, 0, ex_mul(im, ex_swish(im, gate, attr_float(im, "alpha", 1)), linear));
}

/* --- FlexAttention --- */

/* x through the subgraph of this name, or x. */
static ValueId modified(Import *im, const char *name, ValueId x) {
  const Onnx__GraphProto *graph = attr_graph(im, name);
  Binding result = {0};
  if (!graph)
    return x;
  if (!import_inline(im, graph, &(Binding){.kind = BIND_VALUE, .value = x}, 1, &result, 1))
    return 0;
  if (result.kind != BIND_VALUE || !value_same_type(im->g, result.value, x))
    return import_fail(im, DIAG_SHAPE_MISMATCH, "'%s' changes the shape or element type", name);
  return result.value;
}

void translate_flex_attention(Import *im) {
  ValueId q = in_required(im, 0), k = in_required(im, 1), v = in_required(im, 2);
  if (ex_rank(im, q) != 4 || ex_rank(im, k) != 4 || ex_rank(im, v) != 4)
    import_fail(im, DIAG_INPUT_RANK, "Q, K and V must have rank 4");
  DType dtype = ex_dtype(im, q),
        work = attention_precision(im, dtype == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32);
  int64_t size = ex_fixed(im, q, 3);
  double scale = attr_has(im, "scale") ? attr_float(im, "scale", 1) : 1 / sqrt((double)size);
  bool half = dtype_size(dtype) == 2; /* half types are scaled on both sides, to stay in range */
  q = ex_times(im, q, half ? sqrt(scale) : scale);
  k = half ? ex_times(im, k, sqrt(scale)) : k;
  ValueId scores = modified(im, "score_mod", ex_cast(im, attention_scores(im, q, k), work));
  ValueId weights = scores ? modified(im, "prob_mod", ex_softmax(im, scores, -1)) : 0;
  if (!weights) { /* a subgraph has failed, which is reported */
    out_binding(im, 0, (Binding){.kind = BIND_POISON});
    return;
  }
  out(im, 0, ex_cast(im, attention_mix(im, weights, ex_cast(im, v, work)), ex_dtype(im, v)));
}

/* What LinearAttention takes as decay and beta, computed in f32. */
void translate_linear_attention_gate(Import *im) {
  ValueId a = in_required(im, 0), b = in(im, 3);
  ValueId sum = ex_add(im, ex_cast(im, a, DTYPE_F32), in_required(im, 1)),
          decay = ex_mul(im, ex_unary(im, OP_SOFTPLUS, sum), in_required(im, 2));
  out(im, 0, ex_cast(im, decay, ex_dtype(im, a)));
  if (!b && out_wanted(im, 1))
    import_fail(im, DIAG_INPUT_COUNT, "the output beta needs the input b");
  if (b && out_wanted(im, 1))
    out(im, 1, ex_cast(im, ex_unary(im, OP_SIGMOID, ex_cast(im, b, DTYPE_F32)), ex_dtype(im, b)));
}

/* Attention (opset 23 on), RotaryEmbedding. Attention follows the operator's document step by step,
 * with rounding to the input's type where it says so; what a constant mask settles is not computed
 * while running. */
#include <math.h>

#include "onnx/translate/attention_parts.h"

typedef struct Attention {
  ValueId q, k, v; /* [B, heads, length, size]; k and v with the past in front */
  ValueId past;    /* past_key or 0 */
  bool packed;     /* 3-D inputs, 3-D output */
  DType dtype;
} Attention;

static bool read_inputs(Import *im, Attention *a) {
  ValueId q = in_required(im, 0), k = in_required(im, 1), v = in_required(im, 2);
  ValueId past_value = in(im, 5);
  *a = (Attention){.past = in(im, 4), .packed = ex_rank(im, q) == 3};
  int64_t q_heads = attr_int(im, "q_num_heads", 0), kv_heads = attr_int(im, "kv_num_heads", 0);
  if (!a->past != !past_value)
    import_fail(im, DIAG_INPUT_COUNT, "past_key and past_value must be given together");
  a->q = attention_split_heads(im, q, q_heads);
  a->k = attention_split_heads(im, k, kv_heads);
  a->v = attention_split_heads(im, v, kv_heads);
  a->dtype = ex_dtype(im, a->q);
  if (a->past && past_value) {
    a->k = ex_cat2(im, a->past, a->k, 2);
    a->v = ex_cat2(im, past_value, a->v, 2);
  }
  return import_ok(im);
}

/* Of heads whose size is known only while running; queries and keys are each divided by the root of
 * the root. */
static ValueId scores_of_size(Import *im, const Attention *a, SymInt size) {
  ValueId number = ex_cast(im, ex_size(im, size), DTYPE_F32);
  ValueId root = ex_cast(im, ex_pow(im, number, 0.25), a->dtype);
  ValueId keys = ex_div(im, a->k, root);
  return attention_scores(im, ex_div(im, a->q, root), keys);
}

/* Queries and keys are each scaled by the root, which keeps half types in range; wider types need
 * one product only. */
static ValueId scaled_scores(Import *im, const Attention *a) {
  SymInt size = ex_dim(im, a->q, 3);
  if (!attr_has(im, "scale") && !sym_is_const(size))
    return scores_of_size(im, a, size);
  double scale = attr_has(im, "scale") ? attr_float(im, "scale", 1) : 1 / sqrt((double)size);
  if (dtype_size(a->dtype) != 2)
    return attention_scores(im, ex_times(im, a->q, scale), a->k);
  double root = sqrt(scale);
  ValueId keys = ex_times(im, a->k, root);
  return attention_scores(im, ex_times(im, a->q, root), keys);
}

/* The mask input, its last dim filled up with hidden keys. */
static void read_mask(Import *im, const Attention *a, AttentionMask *mask) {
  ValueId given = in(im, 3);
  if (!given)
    return;
  bool logical = ex_dtype(im, given) == DTYPE_BOOL;
  uint32_t rank = ex_rank(im, given);
  SymInt keys = ex_dim(im, a->k, 2), own = rank ? ex_dim(im, given, rank - 1) : 1,
         missing = sym_sub(&im->g->syms, keys, own);
  if (own != 1 && sym_known_lt(&im->g->syms, 0, missing) == 1)
    given =
        build_pad_with(&im->b, given, -1, 0, missing, logical ? A_BOOL(false) : A_FLOAT(-INFINITY));
  if (logical)
    mask->allowed = given;
  else
    mask->bias = ex_cast(im, given, a->dtype);
}

/* Causality, window and padding. */
static void position_mask(Import *im, const Attention *a, AttentionMask *mask) {
  ValueId valid = in(im, 6), offset;
  bool causal = attr_flag(im, "is_causal", false);
  int64_t left = attr_int(im, "left_window_size", -1),
          right = attr_int(im, "right_window_size", -1);
  if (left < -1 || right < -1 || left > INT32_MAX || right > INT32_MAX)
    import_fail(im, DIAG_ATTR_VALUE, "window sizes %lld and %lld", (long long)left,
                (long long)right);
  SymInt queries = ex_dim(im, a->q, 2), keys = ex_dim(im, a->k, 2);
  valid = valid ? ex_cast(im, valid, DTYPE_I64) : 0;
  if (valid && !a->past)
    offset = ex_sub(im, valid, ex_size(im, queries));
  else
    offset = ex_size(im, a->past ? ex_dim(im, a->past, 2) : 0);
  ValueId band = attention_band(im, queries, keys, offset, left, causal ? 0 : right);
  mask->allowed = attention_and(im, mask->allowed, band);
  if (valid && (!causal || a->past)) { /* a causal query sees no key beyond its own place */
    ValueId column = EX_VIEW(im, valid, ex_dim(im, valid, 0), 1, 1, 1);
    mask->allowed = attention_and(im, mask->allowed, ex_lt(im, ex_arange(im, keys), column));
  }
}

ValueId attention_soft_cap(Import *im, ValueId scores) {
  double cap = attr_float(im, "softcap", 0);
  if (cap == 0)
    return scores;
  return ex_times(im, ex_unary(im, OP_TANH, ex_with(im, OP_DIV_TENSOR, scores, cap)), cap);
}

DType attention_precision(Import *im, DType otherwise) {
  DType dtype = attr_dtype(im, "softmax_precision", otherwise);
  if (!dtype_is_float(dtype))
    import_fail(im, DIAG_ATTR_VALUE, "softmax_precision is %s, no floating-point type",
                dtype_name(dtype));
  return import_ok(im) ? dtype : otherwise;
}

void translate_attention(Import *im) {
  Attention a;
  if (!read_inputs(im, &a))
    return;
  out(im, 1, a.k);
  out(im, 2, a.v);
  AttentionMask mask = {0};
  read_mask(im, &a, &mask);
  position_mask(im, &a, &mask);
  ValueId stages[4];
  stages[0] = scaled_scores(im, &a);
  stages[1] = attention_soft_cap(im, stages[0]);
  stages[2] = attention_apply(im, stages[1], mask);
  DType precise = attention_precision(im, a.dtype);
  ValueId weights = ex_softmax(im, ex_cast(im, stages[2], precise), -1);
  weights = attention_clear_rows(im, weights, mask);
  stages[3] = weights = ex_cast(im, weights, a.dtype);
  int64_t mode = attr_int(im, "qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3)
    import_fail(im, DIAG_ATTR_VALUE, "qk_matmul_output_mode is %lld", (long long)mode);
  if (import_ok(im))
    out(im, 3, stages[mode]);
  ValueId y = attention_mix(im, weights, a.v);
  out(im, 0, a.packed ? attention_merge_heads(im, y) : y);
}

/* --- rotary embedding --- */

/* [positions, D] rows by position, or the caches as they are: [B, S, D] -> [B, 1, S, D] or, for
 * packed inputs, [B, S, 1, D]. */
static ValueId rotary_cache(Import *im, ValueId cache, ValueId positions, bool packed) {
  if (positions) {
    SymInt batch = ex_dim(im, positions, 0), steps = ex_dim(im, positions, 1),
           size = ex_dim(im, cache, 1);
    cache = ex_index_select(im, cache, 0, ex_flat(im, positions));
    cache = EX_VIEW(im, cache, batch, steps, size);
  }
  return ex_unsqueeze(im, cache, packed ? 2 : 1);
}

/* Pairs (x1, x2): halves of the last dim, or interleaved. */
static void rotary_pairs(Import *im, ValueId x, SymInt half, bool interleaved, ValueId pair[2]) {
  SymInt size = sym_mul(&im->g->syms, half, 2);
  for (uint32_t i = 0; i < 2 && import_ok(im); i++)
    pair[i] = interleaved ? build_slice(&im->b, x, 3, i, size, 2)
                          : ex_slice(im, x, 3, i ? half : 0, i ? size : half);
}

/* Rotates the first `size` elements of the last dim of [.., .., .., D]. */
static ValueId rotary_apply(Import *im, ValueId x, ValueId cosines, ValueId sines, SymInt size,
                            bool interleaved) {
  ValueId pair[2] = {0};
  SymInt half = attention_share(im, size, 2), whole = ex_dim(im, x, 3);
  Dims s = shape_of(im, x);
  rotary_pairs(im, x, half, interleaved, pair);
  ValueId lost = ex_mul(im, sines, pair[1]), real = ex_sub(im, ex_mul(im, cosines, pair[0]), lost),
          turned = ex_mul(im, cosines, pair[1]),
          imaginary = ex_add(im, ex_mul(im, sines, pair[0]), turned);
  if (interleaved) {
    ValueId left = ex_unsqueeze(im, real, 4), right = ex_unsqueeze(im, imaginary, 4),
            both = ex_cat2(im, left, right, 4);
    s.d[3] = size;
    ValueId rotated = ex_view_as(im, both, s);
    return size == whole ? rotated : ex_cat2(im, rotated, ex_slice(im, x, 3, size, whole), 3);
  }
  ValueId items[3] = {real, imaginary, size == whole ? 0 : ex_slice(im, x, 3, size, whole)};
  return ex_cat(im, items, size == whole ? 2 : 3, 3);
}

ValueId attention_rotate(Import *im, ValueId x, const Rotary *r) {
  int64_t whole = ex_fixed(im, x, 3);
  if (r->size < 2 || r->size % 2 || r->size > whole)
    return import_fail(im, DIAG_ATTR_VALUE, "%lld of %lld elements of a head cannot be rotated",
                       (long long)r->size, (long long)whole);
  ValueId sines = rotary_cache(im, r->sines, r->positions, true),
          cosines = rotary_cache(im, r->cosines, r->positions, true);
  return rotary_apply(im, x, cosines, sines, r->size, r->neighbours);
}

/* How much of each head is rotated: all of it without an attribute. Of a head whose size varies
 * that is as much as the caches have columns for, if these are known. */
static SymInt rotary_size(Import *im, ValueId x, ValueId cosines) {
  SymInt size = attr_int(im, "rotary_embedding_dim", 0), whole = ex_dim(im, x, 3);
  uint32_t rank = ex_rank(im, cosines);
  SymInt half = rank ? ex_dim(im, cosines, rank - 1) : 0;
  if (size == 0 && !sym_is_const(whole) && sym_is_const(half)) {
    size = 2 * half;
    graph_add_constraint(im->g, (Constraint){CONSTRAINT_EQ, whole, size, im->b.loc});
    return size;
  }
  size = size ? size : whole;
  if (sym_is_const(size) && (size < 2 || size % 2 || sym_known_lt(&im->g->syms, whole, size) == 1))
    import_fail(im, DIAG_ATTR_VALUE, "rotary_embedding_dim %lld with a head size of %lld",
                (long long)size, (long long)sym_upper(&im->g->syms, whole));
  return size;
}

static void rotary(Import *im, ValueId cosines, ValueId sines, ValueId positions, int64_t heads) {
  ValueId x = in_required(im, 0);
  bool packed = ex_rank(im, x) == 3, interleaved = attr_flag(im, "interleaved", false);
  if (!packed && ex_rank(im, x) != 4)
    import_fail(im, DIAG_INPUT_RANK, "X has rank %u, not 3 or 4", ex_rank(im, x));
  ValueId four = x;
  SymInt wide = packed ? ex_dim(im, x, 2) : 0;
  if (packed && (heads < 1 || (sym_is_const(wide) && wide % heads)))
    import_fail(im, DIAG_ATTR_VALUE, "num_heads %lld does not divide %lld", (long long)heads,
                (long long)wide);
  else if (packed) /* heads stay behind the steps: a view */
    four =
        EX_VIEW(im, x, ex_dim(im, x, 0), ex_dim(im, x, 1), heads, attention_share(im, wide, heads));
  SymInt size = rotary_size(im, four, cosines);
  cosines = rotary_cache(im, cosines, positions, packed);
  sines = rotary_cache(im, sines, positions, packed);
  ValueId y = rotary_apply(im, four, cosines, sines, size, interleaved);
  out(im, 0, ex_view_as(im, y, shape_of(im, x)));
}

void translate_rotary_embedding(Import *im) {
  rotary(im, in_required(im, 1), in_required(im, 2), in(im, 3), attr_int(im, "num_heads", 0));
}

/* com.microsoft: positions are input 1, one for each token or the first token's for all; without
 * num_heads the caches tell the size of a head. */
void translate_microsoft_rotary_embedding(Import *im) {
  ValueId x = in_required(im, 0), positions = in_required(im, 1);
  if (ex_rank(im, positions) == 1) {
    uint32_t steps_dim = ex_rank(im, x) == 3 ? 1 : 2;
    ValueId steps = ex_arange(im, ex_dim(im, x, steps_dim));
    positions = ex_add(im, ex_cast(im, positions, DTYPE_I64), steps);
    positions = EX_EXPAND(im, positions, ex_dim(im, x, 0), ex_dim(im, x, steps_dim));
  }
  ValueId cosines = in_required(im, 2);
  int64_t heads = attr_int(im, "num_heads", 0), half = ex_fixed(im, cosines, 1);
  if (heads == 0 && ex_rank(im, x) == 3 && half > 0)
    heads = ex_fixed(im, x, 2) / (2 * half);
  rotary(im, cosines, in_required(im, 3), positions, heads);
}

enum { STREAMS = 3 }; /* of positions: time, height, width */

/* The stream that each column of the caches is taken of: sections one after the other, or, in
 * `mixed` ones, columns 3 k + 1 and 3 k + 2 of the first ones, as many as the sections of height
 * and width have. */
static bool rotary_streams(Import *im, int64_t half, bool mixed, int64_t *stream) {
  Ints sections;
  int64_t end = 0;
  if (!attr_ints(im, "mrope_section", &sections) || sections.count != STREAMS ||
      sections.at[0] < 0 || sections.at[1] < 0 || sections.at[2] < 0)
    return import_fail(im, DIAG_ATTR_VALUE, "mrope_section must have three numbers, none below 0"),
           false;
  for (uint32_t i = 0; i < STREAMS && !mixed; i++)
    for (int64_t k = 0; k < sections.at[i] && end < half; k++)
      stream[end++] = i;
  for (; mixed && end < half; end++)
    stream[end] = end % STREAMS && end / STREAMS < sections.at[end % STREAMS] ? end % STREAMS : 0;
  if (end < half)
    import_fail(im, DIAG_ATTR_VALUE, "mrope_section has %lld columns of %lld", (long long)end,
                (long long)half);
  return import_ok(im);
}

/* Rows of a cache by the positions [3, B, S], each column by its stream: [B, S, half]. */
static ValueId rotary_by_stream(Import *im, ValueId cache, ValueId positions,
                                const int64_t *stream) {
  SymInt batch = ex_dim(im, positions, 1), steps = ex_dim(im, positions, 2);
  int64_t half = ex_fixed(im, cache, 1);
  ValueId all = ex_index_select(im, cache, 0, ex_flat(im, positions)), chosen = 0,
          streams = build_const_ints(&im->b, stream, (uint32_t)half);
  all = EX_VIEW(im, all, STREAMS, batch, steps, half);
  for (uint32_t i = 0; i < STREAMS; i++) {
    ValueId one = ex_select(im, all, 0, i);
    chosen = chosen ? ex_where(im, ex_with(im, OP_EQ_TENSOR, streams, i), one, chosen) : one;
  }
  return chosen;
}

/* com.microsoft: a token has three positions, and each column of its row of the caches is that of
 * one of them (M-RoPE of Qwen2-VL and later). */
void translate_microsoft_mrotary_embedding(Import *im) {
  ValueId positions = in_required(im, 1), cosines = in_required(im, 2), sines = in_required(im, 3);
  int64_t half = ex_fixed(im, cosines, 1);
  attr_refuse(im, "is_packed_batching");
  if (ex_rank(im, positions) != 3 || ex_dim(im, positions, 0) != STREAMS)
    import_fail(im, DIAG_INPUT_RANK, "position_ids must have the shape [3, batch, sequence]");
  if (!import_ok(im))
    return;
  int64_t *stream = ARENA_ARRAY(&im->scratch, int64_t, (size_t)half);
  if (!rotary_streams(im, half, attr_flag(im, "mrope_layout", false), stream))
    return;
  double scale = attr_float(im, "scale", 1);
  cosines = ex_times(im, rotary_by_stream(im, cosines, positions, stream), scale);
  sines = ex_times(im, rotary_by_stream(im, sines, positions, stream), scale);
  rotary(im, cosines, sines, 0, attr_int(im, "num_heads", 0));
}

/* GroupQueryAttention of com.microsoft. Past and present are either a cache of a fixed size, into
 * which the new keys are written at the place that seqlens_k tells, or the present grows by the new
 * keys; the declared size of the output present_key decides which. Caches of which the operator
 * drops what is behind the window (sliding_window_cache) may grow as well: nothing looks there. */
#include <math.h>

#include "onnx/import_state.h"
#include "onnx/translate/attention_parts.h"

typedef struct GroupQuery {
  ValueId q, k, v; /* [B, S, heads, size] at first; k, v later [B, heads, length, size] */
  ValueId past[2]; /* keys and values, or 0 */
  ValueId before;  /* entries of the past that count: 0-d or [B], i64 */
  SymInt batch, steps, length;
  int64_t heads, groups, size;
  bool same; /* the past counts whole, for all batch entries */
} GroupQuery;

/* [B, S, n * size] -> [B, S, n, size]. */
static ValueId by_heads(Import *im, ValueId x, int64_t n, int64_t size) {
  if (ex_rank(im, x) != 3 || ex_dim(im, x, 2) != (SymInt)(n * size))
    return import_fail(im, DIAG_SHAPE_MISMATCH,
                       "an input is not of shape [batch, length, %lld * %lld]", (long long)n,
                       (long long)size);
  return EX_VIEW(im, x, ex_dim(im, x, 0), ex_dim(im, x, 1), n, size);
}

static bool read_heads(Import *im, GroupQuery *a) {
  ValueId q = in_required(im, 0), k = in(im, 1), v = in(im, 2);
  a->heads = attr_int_required(im, "num_heads");
  a->groups = attr_int_required(im, "kv_num_heads");
  if (!k != !v)
    import_fail(im, DIAG_INPUT_COUNT, "key and value must be given together");
  bool fit = a->groups > 0 && a->heads > 0 && a->heads <= 1 << 20 && a->heads % a->groups == 0;
  if (!fit)
    return import_fail(im, DIAG_ATTR_VALUE, "%lld query heads for %lld key heads",
                       (long long)a->heads, (long long)a->groups);
  int64_t wide = ex_rank(im, q) == 3 ? ex_fixed(im, q, 2) : 0,
          parts = k ? a->heads : a->heads + 2 * a->groups;
  if (wide <= 0 || wide % parts)
    import_fail(im, DIAG_ATTR_VALUE, "%lld heads do not divide a hidden size of %lld",
                (long long)parts, (long long)wide);
  if (!import_ok(im))
    return false;
  a->size = wide / parts;
  a->batch = ex_dim(im, q, 0), a->steps = ex_dim(im, q, 1);
  if (!k) {
    int64_t end = a->heads * a->size, more = a->groups * a->size;
    k = ex_slice(im, q, 2, end, end + more);
    v = ex_slice(im, q, 2, end + more, end + 2 * more);
    q = ex_slice(im, q, 2, 0, end);
  }
  a->q = by_heads(im, q, a->heads, a->size);
  a->k = by_heads(im, k, a->groups, a->size);
  a->v = by_heads(im, v, a->groups, a->size);
  return import_ok(im);
}

static void refuse(Import *im) {
  attr_refuse(im, "kv_cache_bit_width");
  if (attr_flag(im, "sliding_window_cache", false) && !im->options->whole_caches)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "a cache that holds a window of the past (sliding_window_cache) is supported by "
                "--derive llm only");
  if (in(im, 12) || in(im, 13))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "quantized caches are not supported");
  if (out_wanted(im, 3))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "the output output_qk is not supported");
}

/* Whether the host passes the past: it is neither a state nor made by --derive llm. */
static bool host_passes(const Import *im) {
  const ImportOptions *o = im->options;
  StrView past = onnx_text(im->node->input[3]);
  return !o->whole_caches && !(o->is_state && o->is_state(o->is_state_user, past));
}

/* onnxruntime-genai passes buffers of a fixed size also where past and present have dims of
 * different names. */
static void warn_growth(Import *im) {
  if (im->state->growth_told || !import_ok(im) || !host_passes(im))
    return;
  im->state->growth_told = true;
  (void)diag_report(im->ctx->sink, DIAG_CACHE_GROWS, graph_place(im->g, im->b.loc),
                    "the present is the past with the new tokens behind it: seqlens_k is not read");
}

/* Finds how long the present is, and where the new keys go. */
static void read_past(Import *im, GroupQuery *a) {
  SymTable *t = &im->g->syms;
  Dims declared;
  ValueId lengths = in_required(im, 5);
  a->past[0] = in(im, 3), a->past[1] = in(im, 4);
  if (!a->past[0] != !a->past[1])
    import_fail(im, DIAG_INPUT_COUNT, "past_key and past_value must be given together");
  for (uint32_t i = 0; i < 2 && import_ok(im) && a->past[i]; i++)
    if (ex_rank(im, a->past[i]) != 4 || ex_dtype(im, a->past[i]) != ex_dtype(im, a->q))
      import_fail(im, DIAG_SHAPE_MISMATCH,
                  "past_key and past_value are tensors [batch, heads, length, size] of the type of "
                  "the query");
  a->length = a->steps;
  a->same = true;
  a->before = ex_size(im, 0);
  if (!a->past[0])
    return;
  SymInt past = ex_dim(im, a->past[0], 2);
  bool buffer = out_declared_dims(im, 1, &declared) && declared.rank == 4 && declared.d[2] == past;
  a->length = buffer ? past : sym_add(t, past, a->steps);
  a->same = !buffer && a->batch == 1;
  if (a->same) {
    warn_growth(im);
    a->before = ex_size(im, past);
    return;
  }
  ValueId end = ex_plus(im, ex_cast(im, lengths, DTYPE_I64), 1);
  end = EX_VIEW(im, end, a->batch);
  ValueId before = ex_sub(im, end, ex_size(im, a->steps));
  a->before = ex_max(im, before, ex_number(im, before, 0)); /* a padded prompt */
}

/* Positions of the new tokens [B, S] or [1, S]. */
static ValueId positions(Import *im, const GroupQuery *a) {
  ValueId given = in(im, 9), steps = ex_arange(im, a->steps);
  if (given)
    return ex_cast(im, given, DTYPE_I64);
  if (ex_rank(im, a->before) == 0)
    return ex_unsqueeze(im, ex_add(im, steps, a->before), 0);
  return ex_add(im, EX_VIEW(im, a->before, a->batch, 1), steps);
}

/* RMS norm of each head. */
static ValueId head_norm(Import *im, ValueId x, ValueId weight) {
  double epsilon = attr_float(im, "qk_norm_epsilon", (double)1e-6f);
  return ex_mul(im, ex_rms_norm(im, x, 3, DTYPE_F32, epsilon), weight);
}

static void prepare(Import *im, GroupQuery *a) {
  ValueId cosines = in(im, 7), sines = in(im, 8), q_norm = in(im, 14), k_norm = in(im, 15);
  bool neighbours = attr_flag(im, "rotary_interleaved", false);
  if (!q_norm != !k_norm)
    import_fail(im, DIAG_INPUT_COUNT, "q_norm_weight and k_norm_weight must be given together");
  if (q_norm) {
    a->q = head_norm(im, a->q, q_norm);
    a->k = head_norm(im, a->k, k_norm);
  }
  if (attr_flag(im, "do_rotary", false)) {
    if (!cosines || !sines)
      import_fail(im, DIAG_INPUT_COUNT, "do_rotary needs cos_cache and sin_cache");
    Rotary r = {.cosines = cosines, .sines = sines, .neighbours = neighbours};
    r.size = 2 * ex_fixed(im, cosines, 1);
    r.positions = positions(im, a);
    a->q = attention_rotate(im, a->q, &r);
    a->k = attention_rotate(im, a->k, &r);
  }
  a->q = EX_PERMUTE(im, a->q, 0, 2, 1, 3);
  a->k = EX_PERMUTE(im, a->k, 0, 2, 1, 3);
  a->v = EX_PERMUTE(im, a->v, 0, 2, 1, 3);
}

/* The past with x [B, heads, S, size] behind what counts of it. */
static ValueId extended(Import *im, const GroupQuery *a, ValueId past, ValueId x) {
  SymTable *t = &im->g->syms;
  if (!past || !import_ok(im))
    return x;
  if (a->same)
    return ex_cat2(im, past, x, 2);
  SymInt rows = sym_mul(t, a->batch, a->groups), more = sym_sub(t, a->length, ex_dim(im, past, 2));
  past = ex_pad(im, past, 1, 0, more);
  ValueId step = ex_arange(im, a->steps),
          place = ex_add(im, EX_VIEW(im, a->before, a->batch, 1, 1), step);
  place = EX_EXPAND(im, place, a->batch, a->groups, a->steps);
  ValueId row = EX_VIEW(im, ex_arange(im, rows), rows, 1);
  place = EX_VIEW(im, place, rows, a->steps);
  ValueId list[] = {row, place};
  ValueId flat = EX_VIEW(im, past, rows, a->length, a->size),
          fresh = EX_VIEW(im, x, rows, a->steps, a->size);
  ValueId y =
      build(&im->b, OP_INDEX_PUT, A_VAL(flat), A_VALS(list, 2), A_VAL(fresh), A_BOOL(false));
  return EX_VIEW(im, y, a->batch, a->groups, a->length, a->size);
}

/* What may be seen: no future, `local_window_size` keys back. */
static AttentionMask visible(Import *im, const GroupQuery *a) {
  int64_t window = attr_int(im, "local_window_size", -1), left = window > 0 ? window - 1 : -1;
  bool causal = attr_flag(im, "causal", true);
  if (window < -1 || window > INT32_MAX || (!causal && window != -1))
    import_fail(im, DIAG_ATTR_VALUE, "local_window_size is %lld", (long long)window);
  if (causal)
    return (AttentionMask){.allowed = attention_band(im, a->steps, a->length, a->before, left, 0)};
  if (a->same)
    return (AttentionMask){0};
  ValueId end = ex_add(im, a->before, ex_size(im, a->steps));
  ValueId column = EX_VIEW(im, end, a->batch, 1, 1, 1);
  return (AttentionMask){.allowed = ex_lt(im, ex_arange(im, a->length), column)};
}

/* Softmax whose sum counts one more score for each head: head_sink, or 0. */
static ValueId sunk_softmax(Import *im, const GroupQuery *a, ValueId scores) {
  ValueId sink = in(im, 11);
  if (!sink && attr_int(im, "smooth_softmax", 0) != 1)
    return ex_softmax(im, scores, -1);
  SymInt keys = ex_dim(im, scores, 3);
  ValueId column = sink ? EX_VIEW(im, sink, 1, a->heads, 1, 1) : ex_number(im, scores, 0);
  column = EX_EXPAND(im, column, a->batch, a->heads, a->steps, 1);
  ValueId all = ex_softmax(im, ex_cat2(im, scores, column, 3), -1);
  return ex_slice(im, all, 3, 0, keys);
}

void translate_group_query_attention(Import *im) {
  GroupQuery a = {0};
  refuse(im);
  if (!import_ok(im) || !read_heads(im, &a))
    return;
  read_past(im, &a);
  prepare(im, &a);
  a.k = extended(im, &a, a.past[0], a.k);
  a.v = extended(im, &a, a.past[1], a.v);
  double scale = attr_float(im, "scale", 0);
  scale = scale == 0 ? 1 / sqrt((double)a.size) : scale;
  ValueId scores = attention_soft_cap(im, attention_scores(im, ex_times(im, a.q, scale), a.k));
  ValueId added = in(im, 10);
  scores = added ? ex_add(im, scores, added) : scores;
  scores = attention_apply(im, scores, visible(im, &a));
  ValueId y = attention_mix(im, sunk_softmax(im, &a, scores), a.v);
  out(im, 0, attention_merge_heads(im, y));
  out(im, 1, a.k);
  out(im, 2, a.v);
}

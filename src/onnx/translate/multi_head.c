/* Attention, MultiHeadAttention, DecoderMaskedMultiHeadAttention of com.microsoft. Their masks are
 * added to the scores: a hidden key gets mask_filter_value, a large negative number, so that a row
 * whose keys are all hidden is the softmax of its scores, as ONNX Runtime computes it. Keys in the
 * future get minus infinity. */
#include <math.h>

#include "onnx/translate/attention_parts.h"
#include "onnx/translate/quantized.h"

/* What the operators come down to. */
typedef struct Core {
  ValueId q, k, v;        /* [B, heads, length, size], the past in front of k and v */
  ValueId padding, added; /* mask of keys; added to the scores; 0 = absent */
  ValueId scores;         /* result: what is given to softmax */
  SymInt past;            /* length of the past */
  bool causal;
} Core;

/* --- masks --- */

/* Vectors of lengths [B], or of ends and beginnings [2 * B]. */
static ValueId visible_by_length(Import *im, ValueId mask, SymInt batch, SymInt keys) {
  SymInt count = ex_dim(im, mask, 0);
  bool begins = count == sym_mul(&im->g->syms, 2, batch);
  if (!begins && count != batch)
    return import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                       "a mask that is a vector has one or two entries for each batch entry; "
                       "cumulated lengths are not supported");
  ValueId wide = ex_cast(im, mask, DTYPE_I64), place = ex_arange(im, keys);
  ValueId ends = begins ? ex_slice(im, wide, 0, 0, batch) : wide;
  ValueId seen = ex_lt(im, place, EX_VIEW(im, ends, batch, 1, 1, 1));
  if (!begins)
    return seen;
  ValueId first = EX_VIEW(im, ex_slice(im, wide, 0, batch, count), batch, 1, 1, 1);
  return attention_and(im, seen, ex_ge(im, place, first));
}

/* Which keys may be seen, to broadcast to [B, heads, S, T]. */
static ValueId visible(Import *im, const Core *c) {
  ValueId mask = c->padding;
  SymInt batch = ex_dim(im, c->q, 0), queries = ex_dim(im, c->q, 2), keys = ex_dim(im, c->k, 2);
  switch (ex_rank(im, mask)) {
  case 1:
    return visible_by_length(im, mask, batch, keys);
  case 2:
    mask = EX_VIEW(im, mask, ex_dim(im, mask, 0), 1, 1, ex_dim(im, mask, 1));
    break;
  case 3:
    mask = ex_unsqueeze(im, mask, 1);
    break;
  case 4: /* the whole square of positions: the rows of the queries */
    mask = ex_slice(im, mask, 2, c->past, sym_add(&im->g->syms, c->past, queries));
    mask = ex_slice(im, mask, 3, 0, keys);
    break;
  default:
    return import_fail(im, DIAG_INPUT_RANK, "the mask has rank %u, 1 to 4 are possible",
                       ex_rank(im, mask));
  }
  return ex_gt(im, mask, ex_number(im, mask, 0));
}

/* No query sees a key beyond its own place, but the last one, which sees all where there are more
 * keys than the past and the queries: ONNX Runtime hides nothing from it. */
static ValueId places_seen(Import *im, const Core *c) {
  SymTable *t = &im->g->syms;
  SymInt queries = ex_dim(im, c->q, 2), keys = ex_dim(im, c->k, 2);
  ValueId band = attention_band(im, queries, keys, ex_size(im, c->past), -1, 0);
  if (sym_upper(t, sym_sub(t, keys, sym_add(t, c->past, queries))) <= 0)
    return band;
  ValueId row = EX_VIEW(im, ex_arange(im, queries), queries, 1);
  return ex_or(im, band, ex_ge(im, row, ex_size(im, sym_sub(t, queries, 1))));
}

static ValueId masked_scores(Import *im, const Core *c, ValueId scores) {
  if (c->padding) {
    ValueId hidden = ex_number(im, scores, attr_float(im, "mask_filter_value", -10000));
    ValueId seen = visible(im, c);
    scores = ex_add(im, scores, ex_where(im, seen, ex_number(im, scores, 0), hidden));
  }
  if (c->added)
    scores = ex_add(im, scores, c->added);
  if (c->causal)
    scores = attention_apply(im, scores, (AttentionMask){.allowed = places_seen(im, c)});
  return scores;
}

/* [B, S, heads * size of v]; leaves the scores in c. */
static ValueId attend(Import *im, Core *c) {
  int64_t size = ex_fixed(im, c->q, 3);
  double scale = attr_float(im, "scale", 0);
  ValueId q = ex_times(im, c->q, scale == 0 ? 1 / sqrt((double)size) : scale);
  c->scores = masked_scores(im, c, attention_scores(im, q, c->k));
  return attention_merge_heads(im, attention_mix(im, ex_softmax(im, c->scores, -1), c->v));
}

/* --- Attention --- */

/* The sizes of q, k and v in `all` columns. */
static bool hidden_sizes(Import *im, int64_t all, int64_t sizes[3]) {
  Ints given;
  bool named = attr_ints(im, "qkv_hidden_sizes", &given);
  for (uint32_t i = 0; i < 3; i++)
    sizes[i] = named && given.count == 3 ? given.at[i] : all / 3;
  bool fit = (!named || given.count == 3) && sizes[0] > 0 && sizes[0] == sizes[1] && sizes[2] > 0 &&
             sizes[0] <= all && sizes[2] <= all && 2 * sizes[0] + sizes[2] == all;
  if (!fit)
    import_fail(im, DIAG_ATTR_VALUE,
                "%lld columns are not those of queries, keys and values; see qkv_hidden_sizes",
                (long long)all);
  return import_ok(im);
}

/* The parts stand side by side in the last dim of x. */
static void split_hidden(Import *im, ValueId x, ValueId part[3]) {
  int64_t sizes[3], begin = 0;
  if (!hidden_sizes(im, ex_fixed(im, x, 2), sizes))
    return;
  for (uint32_t i = 0; i < 3; begin += sizes[i++])
    part[i] = ex_slice(im, x, 2, begin, begin + sizes[i]);
}

/* From the projected input [B, S, q + k + v] on: outputs 0 and 1. */
static void attend_projected(Import *im, ValueId projected, ValueId mask, ValueId past,
                             ValueId added) {
  int64_t heads = attr_int_required(im, "num_heads"), sizes[3], begin = 0;
  ValueId part[3] = {0};
  attr_refuse(im, "do_rotary|past_present_share_buffer");
  if (!hidden_sizes(im, ex_fixed(im, projected, 2), sizes))
    return;
  for (uint32_t i = 0; i < 3; begin += sizes[i++])
    part[i] = attention_split_heads(im, ex_slice(im, projected, 2, begin, begin + sizes[i]), heads);
  Core c = {.q = part[0], .k = part[1], .v = part[2], .padding = mask, .added = added};
  c.causal = attr_flag(im, "unidirectional", false);
  if (past) {
    if (ex_rank(im, past) != 5 || ex_dim(im, past, 0) != 2)
      import_fail(im, DIAG_SHAPE_MISMATCH, "past is not of shape [2, batch, heads, length, size]");
    c.past = ex_dim(im, past, 3);
    c.k = ex_cat2(im, ex_select(im, past, 0, 0), c.k, 2);
    c.v = ex_cat2(im, ex_select(im, past, 0, 1), c.v, 2);
  }
  out(im, 0, attend(im, &c));
  ValueId keys = ex_unsqueeze(im, c.k, 0), values = ex_unsqueeze(im, c.v, 0);
  if (out_wanted(im, 1))
    out(im, 1, ex_cat2(im, keys, values, 0));
}

void translate_microsoft_attention(Import *im) {
  ValueId x = in_required(im, 0), weight = in_required(im, 1), bias = in(im, 2);
  if (ex_rank(im, x) != 3 || ex_rank(im, weight) != 2)
    import_fail(im, DIAG_INPUT_RANK, "input and weights have rank %u and %u, not 3 and 2",
                ex_rank(im, x), ex_rank(im, weight));
  ValueId projected = ex_matmul(im, x, weight);
  projected = bias ? ex_add(im, projected, bias) : projected;
  attend_projected(im, projected, in(im, 3), in(im, 4), in(im, 5));
}

/* The projection is a product of integers. */
void translate_qattention(Import *im) {
  ValueId sums =
      quantized_product(im, in_required(im, 0), in(im, 6), in_required(im, 1), in(im, 7));
  ValueId scale = ex_mul(im, in_required(im, 3), in_required(im, 4));
  ValueId projected =
      ex_add(im, ex_mul(im, ex_cast(im, sums, DTYPE_F32), scale), in_required(im, 2));
  attend_projected(im, projected, in(im, 5), in(im, 8), 0);
}

/* --- MultiHeadAttention --- */

/* Where the inputs of the two operators are. */
typedef struct Places {
  uint32_t bias, padding, added, past_key, past_value, end;
} Places;

/* The parts [batch, length, hidden] of one input [batch, length, heads, count, size]. */
static void unpack_parts(Import *im, ValueId packed, int64_t heads, uint32_t count,
                         ValueId *parts) {
  if (ex_dim(im, packed, 3) != count || ex_dim(im, packed, 2) != heads)
    import_fail(im, DIAG_SHAPE_MISMATCH, "the packed input is not [batch, length, %lld, %u, size]",
                (long long)heads, count);
  for (uint32_t i = 0; i < count; i++) {
    ValueId x = ex_select(im, packed, 3, i);
    parts[i] = EX_VIEW(im, x, ex_dim(im, x, 0), ex_dim(im, x, 1),
                       sym_mul(&im->g->syms, ex_dim(im, x, 2), ex_dim(im, x, 3)));
  }
}

/* q, k and v as [B, length, heads * size], or k and v that are keys and values of heads already. */
static bool read_parts(Import *im, int64_t heads, ValueId part[3]) {
  ValueId q = in_required(im, 0), k = in(im, 1), v = in(im, 2);
  bool all = ex_rank(im, q) == 5;
  if (all || ex_rank(im, k) == 5) {
    if (v || (all && k))
      import_fail(im, DIAG_INPUT_COUNT, "packed keys and values are given twice");
    part[0] = q;
    unpack_parts(im, all ? q : k, heads, all ? 3 : 2, all ? part : part + 1);
    return import_ok(im);
  }
  part[0] = q, part[1] = k, part[2] = v;
  if (!k && !v && ex_rank(im, q) == 3)
    split_hidden(im, q, part);
  if (!part[1] || !part[2])
    import_fail(im, DIAG_INPUT_COUNT, "key and value must be given together");
  return import_ok(im);
}

static void multi_head(Import *im, const Places *at, bool causal) {
  ValueId bias = in(im, at->bias), past_key = in(im, at->past_key),
          past_value = in(im, at->past_value), part[3] = {0};
  int64_t heads = attr_int_required(im, "num_heads"), begin = 0;
  for (uint32_t i = at->end; i < in_count(im); i++)
    if (in(im, i) && i != at->bias)
      import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                  "caches shared by past and present, and beams, are not supported (input %u)", i);
  if (!past_key != !past_value)
    import_fail(im, DIAG_INPUT_COUNT, "past_key and past_value must be given together");
  if (!import_ok(im) || !read_parts(im, heads, part))
    return;
  for (uint32_t i = 0; i < 3; i++) {
    if (ex_rank(im, part[i]) == 3 && bias) {
      int64_t wide = ex_fixed(im, part[i], 2);
      part[i] = ex_add(im, part[i], ex_slice(im, bias, 0, begin, begin + wide));
      begin += wide;
    }
    part[i] = attention_split_heads(im, part[i], heads);
  }
  Core c = {.q = part[0], .k = part[1], .v = part[2], .causal = causal};
  c.padding = in(im, at->padding);
  c.added = in(im, at->added);
  if (past_key) {
    c.past = ex_dim(im, past_key, 2);
    c.k = ex_cat2(im, past_key, c.k, 2);
    c.v = ex_cat2(im, past_value, c.v, 2);
  }
  out(im, 0, attend(im, &c));
  out(im, 1, c.k);
  out(im, 2, c.v);
  out(im, 3, c.scores);
}

void translate_multi_head_attention(Import *im) {
  static const Places places = {
      .bias = 3, .padding = 4, .added = 5, .past_key = 6, .past_value = 7, .end = 8};
  multi_head(im, &places, attr_flag(im, "unidirectional", false));
}

/* One new token: nothing is in the future. */
void translate_decoder_masked_attention(Import *im) {
  static const Places places = {
      .bias = 10, .padding = 3, .added = 4, .past_key = 5, .past_value = 6, .end = 7};
  attr_refuse(im, "past_present_share_buffer");
  multi_head(im, &places, false);
}

/* What the attention operators share: heads, masks of positions, softmax with fully masked rows. */
#ifndef ETC_ONNX_ATTENTION_H
#define ETC_ONNX_ATTENTION_H

#include "onnx/express.h"

/* size / parts, a size that must be a multiple. */
SymInt attention_share(Import *im, SymInt size, SymInt parts);
/* [B, S, heads * D] or [B, heads, S, D] -> [B, heads, S, D]. heads is read for rank 3 only. */
ValueId attention_split_heads(Import *im, ValueId x, int64_t heads);
/* [B, heads, S, D] -> [B, S, heads * D] */
ValueId attention_merge_heads(Import *im, ValueId x);
/* q [B, Hq, S, D] times k [B, Hkv, T, D] transposed: [B, Hq, S, T]. Hq is a multiple of Hkv; query
 * head h uses key head h / (Hq / Hkv), which is a view of the queries, so that keys are not
 * repeated. */
ValueId attention_scores(Import *im, ValueId q, ValueId k);
/* Scores within the attribute softcap. */
ValueId attention_soft_cap(Import *im, ValueId scores);
/* The attribute softmax_precision. */
DType attention_precision(Import *im, DType otherwise);
/* weights [B, Hq, S, T] times v [B, Hkv, T, Dv]: [B, Hq, S, Dv]. */
ValueId attention_mix(Import *im, ValueId weights, ValueId v);

/* What may be seen: allowed (bool, true = seen) and bias (added), both broadcast to the scores; 0 =
 * absent. */
typedef struct AttentionMask {
  ValueId allowed, bias;
} AttentionMask;
/* Both conditions; 0 stands for "everything". */
ValueId attention_and(Import *im, ValueId a, ValueId b);
ValueId attention_apply(Import *im, ValueId scores, AttentionMask mask);
/* Rows of weights without a key that may be seen become zeros (softmax made them NaN). Nothing is
 * built when the mask is constant and has no such row. */
ValueId attention_clear_rows(Import *im, ValueId weights, AttentionMask mask);
/* Which keys j of `keys` the queries 0 <= i < queries may see, with p = offset + i: j <= p + right
 * and j >= p - left; a negative bound is none. offset: 0-d or [B] i64 tensor. Result [queries,
 * keys] or [B, 1, queries, keys]; 0 when there is no bound. */
ValueId attention_band(Import *im, SymInt queries, SymInt keys, ValueId offset, int64_t left,
                       int64_t right);

typedef struct Rotary {
  ValueId cosines, sines; /* [positions, size / 2] */
  ValueId positions;      /* [B, S] or [1, S] */
  int64_t size;           /* elements of a head that are rotated: the first ones */
  bool neighbours;        /* pairs are adjacent elements (2i, 2i + 1), not (i, i + size / 2) */
} Rotary;
/* Rotates the heads of x [B, S, heads, D] by the angles of their positions. */
ValueId attention_rotate(Import *im, ValueId x, const Rotary *r);

#endif

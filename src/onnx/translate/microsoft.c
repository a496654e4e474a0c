/* Operators of com.microsoft that stand beside those of the standard: older names, other defaults,
 * small formulas. */
#include <math.h>

#include "onnx/express.h"

enum { NGRAM_MAX = 64 };

/* As the standard's operator at one of its versions. */
static void at_opset(Import *im, int64_t opset, void (*translate)(Import *)) {
  int64_t own = im->opset;
  im->opset = opset;
  translate(im);
  im->opset = own;
}

void translate_microsoft_pad(Import *im) { at_opset(im, 13, translate_pad); }

void translate_microsoft_linear_attention(Import *im) {
  attr_refuse(im, "state_window"); /* which the standard's operator does not have */
  at_opset(im, 27, translate_linear_attention);
}

void translate_microsoft_causal_conv(Import *im) {
  attr_refuse(im, "state_window|channels_last");
  if (attr_int(im, "ndim", 1) != 1 || attr_int(im, "dilation", 1) != 1)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "only ndim 1 and dilation 1 are supported");
  at_opset(im, 27, translate_causal_conv_with_state);
}

void translate_expand_dims(Import *im) {
  ValueId x = in_required(im, 0);
  int64_t axis = 0;
  if (!one_const(im, in(im, 1), &axis))
    import_fail(im, DIAG_INPUT_NOT_CONST, "the axis is not known when lowering");
  out(im, 0, ex_unsqueeze(im, x, import_axis(im, axis, ex_rank(im, x) + 1)));
}

/* Windows of one dim as a new last dim. */
void translate_unfold_tensor(Import *im) {
  ValueId x = in_required(im, 0);
  int64_t size = attr_int_required(im, "size"), step = attr_int(im, "step", 1);
  uint32_t dim = import_axis(im, attr_int(im, "dim", -1), ex_rank(im, x));
  out(im, 0, build(&im->b, OP_UNFOLD_COPY, A_VAL(x), A_INT(dim), A_INT(size), A_INT(step)));
}

/* Distances of all pairs of rows. */
void translate_cdist(Import *im) {
  ValueId a = in_required(im, 0), b = in_required(im, 1);
  StrView metric = attr_str(im, "metric", "sqeuclidean");
  bool root = sv_eq_str(metric, "euclidean");
  if (!root && !sv_eq_str(metric, "sqeuclidean"))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "the metric '" SV_FMT "' is not supported",
                SV_ARG(metric));
  ValueId columns = ex_unsqueeze(im, b, 0),
          difference = ex_sub(im, ex_unsqueeze(im, a, 1), columns);
  ValueId y = ex_sum(im, ex_mul(im, difference, difference), 2, false);
  out(im, 0, root ? ex_unary(im, OP_SQRT, y) : y);
}

/* Where the last `count` tokens of a sequence stand in it, with one more behind them: bools
 * [B, length - count]; 0 for no tokens. */
static ValueId last_tokens_at(Import *im, ValueId ids, int64_t count) {
  SymTable *t = &im->g->syms;
  SymInt places = sym_sub(t, ex_dim(im, ids, 1), count);
  ValueId found = 0;
  for (int64_t i = 0; i < count; i++) {
    ValueId here = ex_slice(im, ids, 1, i, sym_add(t, places, i)),
            last = ex_slice(im, ids, 1, sym_add(t, places, i), sym_add(t, places, i + 1)),
            equal = ex_eq(im, here, last);
    found = found ? ex_and(im, found, equal) : equal;
  }
  return found;
}

/* The scores of tokens that would end a sequence of `ngram_size` tokens that is there already
 * become -infinity: where the last tokens but one are found, the one behind them. */
void translate_ngram_repeat_block(Import *im) {
  ValueId ids = in_required(im, 0), scores = in_required(im, 1);
  int64_t size = attr_int_required(im, "ngram_size");
  SymTable *t = &im->g->syms;
  SymInt length = ex_dim(im, ids, 1);
  if (ex_rank(im, ids) != 2 || ex_rank(im, scores) != 2)
    import_fail(im, DIAG_INPUT_RANK, "input_ids and scores must have rank 2");
  if (size < 1 || size > NGRAM_MAX)
    import_fail(im, DIAG_ATTR_VALUE, "ngram_size is %lld, not 1 to %d", (long long)size, NGRAM_MAX);
  if (!import_ok(im))
    return;
  if (sym_upper(t, length) < size) {
    out(im, 0, scores);
    return;
  }
  if (sym_lower(t, length) < size) {
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "sequences may be shorter than ngram_size; let the range of their length begin "
                "at %lld",
                (long long)size);
    return;
  }
  ValueId found = last_tokens_at(im, ids, size - 1);
  ValueId next = ex_cast(im, ex_slice(im, ids, 1, size - 1, length), DTYPE_I64),
          hits = found ? ex_cast(im, found, DTYPE_F32)
                       : ex_full(im, DTYPE_F32, shape_of(im, next).d, 2, 1);
  ValueId none = ex_filled(im, DTYPE_F32, shape_of(im, scores), 0),
          counts = build(&im->b, OP_SCATTER_ADD, A_VAL(none), A_INT(1), A_VAL(next), A_VAL(hits));
  ValueId never = ex_number(im, scores, -INFINITY);
  out(im, 0, ex_where(im, ex_with(im, OP_GT_TENSOR, counts, 0), never, scores));
}

/* Scores and labels of classifiers and regressors (classic.h). */
#include "onnx/translate/classic.h"
#include "onnx/labels.h"

PostTransform post_read(Import *im) {
  return (PostTransform)attr_choice(im, "post_transform", "NONE",
                                    "NONE|LOGISTIC|SOFTMAX|SOFTMAX_ZERO|PROBIT");
}

/* Scores of 0 take no part in the softmax and stay 0. */
static ValueId softmax_zero(Import *im, ValueId scores) {
  ValueId part = ex_with(im, OP_GT_TENSOR, ex_unary(im, OP_ABS, scores), 1e-7),
          most = ex_reduce_one(im, OP_AMAX, scores, 1, true),
          e = ex_unary(im, OP_EXP, ex_sub(im, scores, most)),
          rest = ex_mul(im, scores, ex_unary(im, OP_EXP, ex_unary(im, OP_NEG, most))),
          sum = ex_sum(im, ex_where(im, part, e, ex_number(im, scores, 0)), 1, true);
  return ex_div(im, ex_where(im, part, e, rest), sum);
}

/* sqrt(2) erfinv(2 x - 1) by the approximation of Winitzki ("A handy approximation for the error
 * function and its inverse", 2008), with the digits of ONNX Runtime. */
static ValueId probit(Import *im, ValueId x) {
  const double a = 0.147, pi = 3.14159;
  ValueId y = ex_minus(im, ex_times(im, x, 2), 1), one = ex_number(im, y, 1),
          above = ex_add(im, one, y),
          log = ex_unary(im, OP_LOG, ex_mul(im, ex_sub(im, one, y), above)),
          v = ex_plus(im, ex_times(im, log, 0.5), 2 / (pi * a)), scaled = ex_times(im, log, 1 / a),
          root = ex_unary(im, OP_SQRT, ex_sub(im, ex_mul(im, v, v), scaled)),
          size = ex_unary(im, OP_SQRT, ex_sub(im, root, v));
  size = ex_times(im, size, 1.41421356);
  ValueId negative = ex_unary(im, OP_NEG, size);
  return ex_where(im, ex_with(im, OP_LT_TENSOR, y, 0), negative, size);
}

ValueId post_apply(Import *im, PostTransform post, ValueId scores) {
  switch (post) {
  case POST_LOGISTIC:
    return ex_unary(im, OP_SIGMOID, scores);
  case POST_SOFTMAX:
    return ex_softmax(im, scores, 1);
  case POST_SOFTMAX_ZERO:
    return softmax_zero(im, scores);
  case POST_PROBIT:
    return probit(im, scores);
  case POST_NONE:
  default:
    return scores;
  }
}

ValueId post_single(Import *im, PostTransform post, ValueId score) {
  return post == POST_PROBIT ? probit(im, score) : score;
}

ValueId post_two(Import *im, PostTransform post, ValueId score, bool complement) {
  if (post == POST_PROBIT)
    return import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                       "post_transform PROBIT of a single score leaves the score of the other "
                       "class undefined in ONNX Runtime");
  bool logistic = post == POST_LOGISTIC;
  ValueId other = complement && !logistic ? ex_sub(im, ex_number(im, score, 1), score)
                                          : ex_unary(im, OP_NEG, score),
          both = ex_cat2(im, other, score, 1);
  return logistic ? ex_unary(im, OP_SIGMOID, both) : both;
}

/* --- labels --- */

bool classes_read(Import *im, const char *numbers, Classes *classes) {
  static const char strings[] = "classlabels_strings";
  Texts names;
  Ints listed;
  *classes = (Classes){0};
  if (attr_strs(im, strings, &names) && names.count) {
    int64_t *codes = ARENA_ARRAY(&im->scratch, int64_t, names.count);
    const Labels *labels = labels_make(im, names.at, names.count, codes);
    *classes = (Classes){names.count, codes, labels};
  } else if (attr_exact_ints(im, numbers, &listed) && listed.count) {
    *classes = (Classes){listed.count, listed.at, NULL};
  } else {
    import_fail(im, DIAG_ATTR_MISSING, "attribute '%s' or '%s' is missing", numbers, strings);
  }
  return import_ok(im);
}

void classes_note(Import *im, const Classes *classes) {
  StrBuf text = {0};
  for (uint32_t i = 0; i < classes->count && i < LABELS_SHOWN && !classes->labels; i++)
    strbuf_printf(&text, "%s%lld", i ? ", " : "", (long long)classes->numbers[i]);
  if (classes->labels)
    labels_list(&text, classes->labels, false);
  Diag *d = diag_begin(im->ctx->sink, DIAG_MAP_TENSOR, graph_place(im->g, im->b.loc));
  diag_message(d, "the maps from labels to scores become the tensor of scores [N, %u]",
               classes->count);
  diag_note(d, "its columns are those of the labels %s", strbuf_cstr(&text));
  (void)diag_end(d);
  strbuf_release(&text);
}

static bool counts_up(const Classes *classes) {
  for (uint32_t i = 0; i < classes->count; i++)
    if (classes->numbers[i] != i)
      return false;
  return true;
}

void classes_out(Import *im, const Classes *classes, ValueId index) {
  if (!counts_up(classes))
    index =
        ex_index_select(im, build_const_ints(&im->b, classes->numbers, classes->count), 0, index);
  out_labels(im, index, classes->labels);
}

void classes_out_two(Import *im, const Classes *classes, ValueId second) {
  classes_out(im, classes, ex_cast(im, second, DTYPE_I64));
}

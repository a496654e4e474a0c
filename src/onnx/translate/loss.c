/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: the class axis is dim 1, labels choose one
 * element of it by gather; ignored labels have weight 0. */
#include "onnx/express.h"

typedef struct Loss {
  ValueId labels;  /* i64 [N, d1, …], ignored ones replaced by 0 */
  ValueId weights; /* of each sample, 0 when all are 1 */
} Loss;

static Loss read_labels(Import *im, ValueId scores) {
  Loss loss = {.labels = in_required(im, 1)};
  ValueId classes = in(im, 2), ignored = 0;
  if (ex_rank(im, scores) != ex_rank(im, loss.labels) + 1)
    import_fail(im, DIAG_INPUT_RANK, "scores have rank %u, labels %u", ex_rank(im, scores),
                ex_rank(im, loss.labels));
  loss.labels = ex_cast(im, loss.labels, DTYPE_I64);
  if (attr_has(im, "ignore_index")) {
    int64_t ignore = attr_int(im, "ignore_index", 0);
    ignored = build(&im->b, OP_EQ_SCALAR, A_VAL(loss.labels), A_INT(ignore));
    loss.labels = ex_where(im, ignored, ex_number(im, loss.labels, 0), loss.labels);
  }
  if (classes)
    loss.weights = ex_look_up(im, classes, loss.labels);
  if (ignored) {
    ValueId weights = loss.weights ? loss.weights : ex_number(im, scores, 1);
    loss.weights = ex_where(im, ignored, ex_number(im, scores, 0), weights);
  }
  return loss;
}

static ValueId total(Import *im, OpId op, ValueId x) {
  return ex_reduce_dims(im, op, x, 0, ex_rank(im, x), false);
}

static ValueId likelihood_loss(Import *im, ValueId log_scores) {
  enum { NONE, SUM, MEAN } reduction = attr_choice(im, "reduction", "mean", "none|sum|mean");
  Loss loss = read_labels(im, log_scores);
  ValueId chosen = ex_gather(im, log_scores, 1, ex_unsqueeze(im, loss.labels, 1));
  ValueId sample = ex_view_as(im, chosen, shape_of(im, loss.labels));
  ValueId weighted = loss.weights ? ex_mul(im, sample, loss.weights) : sample;
  ValueId negative;
  if (reduction == NONE)
    return ex_unary(im, OP_NEG, weighted);
  if (reduction == SUM)
    negative = total(im, OP_SUM_DIM_INTLIST, weighted);
  else if (!loss.weights)
    negative = total(im, OP_MEAN_DIM, weighted);
  else {
    ValueId weights = total(im, OP_SUM_DIM_INTLIST, loss.weights);
    negative = ex_div(im, total(im, OP_SUM_DIM_INTLIST, weighted), weights);
  }
  return ex_unary(im, OP_NEG, negative);
}

void translate_nll_loss(Import *im) { out(im, 0, likelihood_loss(im, in_required(im, 0))); }

void translate_softmax_cross_entropy(Import *im) {
  ValueId scores = in_required(im, 0);
  if (ex_rank(im, scores) < 2)
    import_fail(im, DIAG_INPUT_RANK, "scores have rank %u, 2 or more are needed",
                ex_rank(im, scores));
  ValueId log_scores = ex_log_softmax(im, scores, 1);
  out(im, 0, likelihood_loss(im, log_scores));
  out(im, 1, log_scores);
}

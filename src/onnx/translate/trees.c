/* TreeEnsembleRegressor, TreeEnsembleClassifier and TreeEnsemble of ai.onnx.ml, as ONNX Runtime
 * computes them (trees.h). */
#include <math.h>

#include "onnx/translate/trees.h"

/* The samples in the type that tests compare in: f64 stays, all others are f32. */
static ValueId read_samples(Import *im, Trees *t) {
  ValueId x = in_required(im, 0);
  t->wide = ex_dtype(im, x) == DTYPE_F64;
  x = classic_rows(im, ex_cast(im, x, t->wide ? DTYPE_F64 : DTYPE_F32));
  int64_t features = ex_fixed(im, x, 1);
  if (features > UINT32_MAX / 4)
    import_fail(im, DIAG_INPUT_RANK, "the input has %lld features", (long long)features);
  t->features = (uint32_t)features;
  return x;
}

/* Double splits of f32 samples: all is computed in f64. */
static ValueId fit_samples(Import *im, const Trees *t, ValueId x) {
  return t->wide ? ex_cast(im, x, DTYPE_F64) : x;
}

static ValueId base_row(Import *im, const Trees *t, DType dtype) {
  ValueId row = build_const(&im->b, DTYPE_F64, 1, (int64_t[]){t->base.count}, t->base.at);
  return ex_cast(im, row, dtype);
}

static bool all_voted(const Trees *t, const TreeVoted *voted) {
  for (uint32_t i = 0; i < t->results; i++)
    if (voted[i] != VOTED_ALWAYS)
      return false;
  return true;
}

/* --- regression --- */

/* A target without a vote is 0, whatever its base value. */
static ValueId regression(Import *im, const Trees *t, ValueId x, PostTransform post, DType to) {
  if (t->base.count && t->base.count != t->results)
    return import_fail(im, DIAG_ATTR_VALUE, "there are %u base values for %u targets",
                       t->base.count, t->results);
  bool plain = all_voted(t, trees_voted(im, t)) ||
               (!t->base.count && (t->aggregate == TREES_SUM || t->aggregate == TREES_AVERAGE));
  ValueId voted = 0, y = trees_walk(im, t, fit_samples(im, t, x), plain ? NULL : &voted, NULL);
  if (t->base.count)
    y = ex_add(im, y, base_row(im, t, ex_dtype(im, y)));
  if (t->base.count && voted)
    y = ex_where(im, voted, y, ex_number(im, y, 0));
  y = ex_cast(im, y, to);
  return t->results == 1 ? post_single(im, post, y) : post_apply(im, post, y);
}

/* Of one target ONNX Runtime takes the first weight of a leaf: exporters write the number of a leaf
 * once for each class. */
static void keep_first_votes(Import *im, Trees *t) {
  bool *has_vote = ARENA_ARRAY(&im->scratch, bool, t->node_count);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < t->vote_count; i++) {
    TreeVote vote = t->votes[i];
    if (has_vote[vote.node])
      continue;
    has_vote[vote.node] = true;
    t->votes[kept++] = vote;
  }
  t->vote_count = kept;
}

void translate_tree_regressor(Import *im) {
  Trees t = {0};
  ValueId x = read_samples(im, &t);
  int64_t targets = attr_int(im, "n_targets", 1);
  if (targets < 1 || targets > INT32_MAX)
    import_fail(im, DIAG_ATTR_VALUE, "'n_targets' is %lld", (long long)targets);
  PostTransform post = post_read(im);
  t.results = (uint32_t)targets;
  if (!trees_read(im, &t, "target"))
    return;
  if (t.results == 1)
    keep_first_votes(im, &t);
  out(im, 0, regression(im, &t, x, post, DTYPE_F32));
}

/* The standard numbers SOFTMAX 1 and LOGISTIC 2, ONNX Runtime the other way round. */
void translate_tree_ensemble(Import *im) {
  static const PostTransform posts[] = {POST_NONE, POST_LOGISTIC, POST_SOFTMAX, POST_SOFTMAX_ZERO,
                                        POST_PROBIT};
  Trees t = {0};
  ValueId x = read_samples(im, &t);
  DType dtype = ex_dtype(im, in(im, 0));
  int64_t targets = attr_int_required(im, "n_targets"), post = attr_int(im, "post_transform", 0);
  if (targets < 1 || targets > INT32_MAX)
    import_fail(im, DIAG_ATTR_VALUE, "'n_targets' is %lld", (long long)targets);
  if (post < 0 || post >= (int64_t)COUNT_OF(posts))
    import_fail(im, DIAG_ATTR_VALUE, "'post_transform' is %lld", (long long)post);
  t.results = (uint32_t)targets;
  if (trees_read_ensemble(im, &t))
    out(im, 0, regression(im, &t, x, posts[post], dtype));
}

/* --- classification --- */

typedef struct Classifier {
  Trees t;
  Classes classes;
  PostTransform post;
  const TreeVoted *voted;
} Classifier;

/* The two scores of two classes, or only the first when *single. *weight: what decides. A score
 * without a vote is 0, and so is its base value; with base values the second score is made of the
 * votes for the first class. */
static ValueId score_pair(Import *im, const Classifier *c, ValueId sums, bool *single,
                          ValueId *weight) {
  bool second = c->voted[1] == VOTED_ALWAYS, first = c->voted[0] != VOTED_NEVER;
  ValueId a = ex_slice(im, sums, 1, 0, 1), b = ex_slice(im, sums, 1, 1, 2), zero = ex_sub(im, b, b);
  *single = false;
  if (c->t.base.count == 2 && second) {
    b = ex_plus(im, a, c->t.base.at[1]);
    a = first ? ex_unary(im, OP_NEG, b) : zero;
  } else if (c->t.base.count == 2) {
    a = ex_plus(im, a, c->t.base.at[0]);
    b = ex_sub(im, a, a);
  } else {
    a = c->t.base.count == 1 && first ? ex_plus(im, a, c->t.base.at[0]) : a;
    *single = !second;
  }
  *weight = second ? b : a;
  return *single ? a : ex_cat2(im, a, b, 1);
}

/* Only votes for one class: their sum decides, against 0.5 when none is negative. */
static void two_classes(Import *im, const Classifier *c, ValueId sums) {
  bool unsure = c->voted[1] == VOTED_SOMETIMES ||
                (c->t.base.count && c->voted[0] == VOTED_SOMETIMES && c->voted[1] == VOTED_ALWAYS);
  if (unsure || c->t.base.count > 2 || !c->t.vote_count)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "two classes, and some samples get votes for both and some do not: ONNX Runtime "
                "scores them in different ways");
  bool positive = true, single, one_kind = c->voted[0] == VOTED_NEVER || c->voted[1] == VOTED_NEVER;
  for (uint32_t i = 0; i < c->t.vote_count; i++)
    positive &= c->t.votes[i].weight >= 0;
  ValueId weight = 0, scores = ex_cast(im, score_pair(im, c, sums, &single, &weight), DTYPE_F32);
  ValueId yes = ex_with(im, OP_GT_TENSOR, weight, one_kind && positive ? 0.5 : 0);
  const int64_t plain[2] = {0, 1};
  Classes classes = c->classes;
  if (!one_kind) /* 0 and 1, whatever the labels are */
    classes.numbers = plain;
  yes = EX_VIEW(im, yes, ex_dim(im, sums, 0));
  classes_out_two(im, &classes, yes);
  out(im, 1, single ? post_two(im, c->post, scores, positive) : post_apply(im, c->post, scores));
}

/* One class: the label says whether its score is positive. */
static void one_class(Import *im, const Classifier *c, ValueId score) {
  if (c->classes.labels || c->t.base.count > 1)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "a single class with a string as label, or with %u base values", c->t.base.count);
  score = c->t.base.count ? ex_plus(im, score, c->t.base.at[0]) : score;
  ValueId yes = EX_VIEW(im, ex_with(im, OP_GT_TENSOR, score, 0), ex_dim(im, score, 0));
  out(im, 0, ex_cast(im, yes, DTYPE_I64));
  out(im, 1, post_single(im, c->post, ex_cast(im, score, DTYPE_F32)));
}

/* Classes without a vote do not win, unless there are base values. winner: the class is known by
 * leaf, or 0; a forest of several outputs uses nothing else of trees that have a class a leaf. */
static void many_classes(Import *im, const Classifier *c, ValueId sums, ValueId voted,
                         ValueId winner) {
  if (c->t.base.count && c->t.base.count != c->t.results)
    import_fail(im, DIAG_ATTR_VALUE, "there are %u base values for %u classes", c->t.base.count,
                c->t.results);
  ValueId scores = sums;
  if (c->t.base.count)
    scores = sums = ex_add(im, sums, base_row(im, &c->t, ex_dtype(im, sums)));
  else if (voted)
    sums = ex_where(im, voted, sums, ex_number(im, sums, -INFINITY));
  classes_out(im, &c->classes, winner ? winner : ex_argmax(im, sums, 1, false));
  out(im, 1, post_apply(im, c->post, ex_cast(im, scores, DTYPE_F32)));
}

void translate_tree_classifier(Import *im) {
  Classifier c = {0};
  ValueId x = read_samples(im, &c.t);
  c.post = post_read(im);
  if (!import_ok(im) || !classes_read(im, "classlabels_int64s", &c.classes))
    return;
  c.t.results = c.classes.count;
  if (!trees_read(im, &c.t, "class"))
    return;
  c.t.aggregate = TREES_SUM;
  c.voted = trees_voted(im, &c.t);
  bool by_votes = c.t.results > 2 && !c.t.base.count, uncertain = !all_voted(&c.t, c.voted);
  ValueId voted = 0, winner = 0;
  ValueId sums = trees_walk(im, &c.t, fit_samples(im, &c.t, x),
                            by_votes && uncertain ? &voted : NULL, by_votes ? &winner : NULL);
  if (c.t.results == 1)
    one_class(im, &c, sums);
  else if (c.t.results == 2)
    two_classes(im, &c, sums);
  else
    many_classes(im, &c, sums, voted, winner);
}

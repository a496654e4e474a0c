/* SVMRegressor and SVMClassifier of ai.onnx.ml, as ONNX Runtime computes them. */
#include "onnx/translate/classic.h"

enum { CLASSES_MAX = 4096, COEFFICIENTS_MAX = 1 << 26, PROBABILITY_CLASSES_MAX = 64 };

typedef struct Svm {
  Floats vectors, coefficients, rho, prob_a, prob_b;
  Ints per_class;
  int64_t features, vector_count;
  Classes classes;
  PostTransform post;
} Svm;

/* --- kernels --- */

static ValueId power(Import *im, ValueId x, double degree) {
  if (degree == 2)
    return ex_mul(im, x, x);
  if (degree == 3)
    return ex_mul(im, ex_mul(im, x, x), x);
  return ex_pow(im, x, degree);
}

/* exp(-gamma |x - v|^2), from differences: squares and products of large features lose digits. */
static ValueId radial(Import *im, ValueId x, ValueId v, double gamma) {
  ValueId distance = build(&im->b, OP_CDIST_FORWARD, A_VAL(x), A_VAL(v), A_FLOAT(2), A_NONE);
  return ex_unary(im, OP_EXP, ex_times(im, ex_mul(im, distance, distance), -gamma));
}

/* The kernel of samples x and `count` vectors: [N, count]. */
static ValueId kernel_of(Import *im, const Svm *s, ValueId x) {
  enum {
    LINEAR,
    POLY,
    RBF,
    SIGMOID
  } kind = attr_choice(im, "kernel_type", "LINEAR", "LINEAR|POLY|RBF|SIGMOID");
  Floats params;
  double gamma = 0, offset = 0, degree = 0;
  if (attr_floats(im, "kernel_params", &params) && params.count >= 3) {
    gamma = (double)params.at[0];
    offset = (double)params.at[1];
    degree = (double)params.at[2];
  } else if (params.count) {
    import_fail(im, DIAG_ATTR_VALUE, "'kernel_params' has %u numbers instead of 3", params.count);
  }
  ValueId v = classic_floats(im, s->vectors.at, 2, (int64_t[]){s->vector_count, s->features});
  if (kind == RBF)
    return radial(im, x, v, gamma);
  ValueId dot = ex_linear(im, x, v, 0);
  if (kind == LINEAR)
    return dot;
  dot = ex_plus(im, ex_times(im, dot, gamma), offset);
  return kind == POLY ? power(im, dot, degree) : ex_unary(im, OP_TANH, dot);
}

/* x W' + bias, the same bias for all rows when there is one. */
static ValueId weighted(Import *im, ValueId x, const float *w, int64_t rows, int64_t columns,
                        const float *bias, bool shared) {
  float *all = ARENA_ARRAY(&im->scratch, float, (uint64_t)rows);
  for (int64_t i = 0; i < rows; i++)
    all[i] = bias[shared ? 0 : i];
  ValueId weights = classic_floats(im, w, 2, (int64_t[]){rows, columns}),
          offset = classic_floats(im, all, 1, &rows);
  return ex_linear(im, x, weights, offset);
}

static void check_vectors(Import *im, const Svm *s) {
  uint32_t given = s->vectors.count;
  if (import_ok(im) && (s->features < 1 || given / s->features < s->vector_count))
    import_fail(im, DIAG_ATTR_VALUE, "%u numbers are no %lld support vectors of %lld features",
                given, (long long)s->vector_count, (long long)s->features);
}

static bool read_common(Import *im, Svm *s, ValueId x) {
  s->features = ex_fixed(im, x, 1);
  if (!attr_floats(im, "coefficients", &s->coefficients) || !s->coefficients.count ||
      s->coefficients.count > COEFFICIENTS_MAX || !attr_floats(im, "rho", &s->rho) || !s->rho.count)
    import_fail(im, DIAG_ATTR_VALUE, "'coefficients' or 'rho' is missing, or too long");
  return import_ok(im);
}

/* --- regression --- */

void translate_svm_regressor(Import *im) {
  Svm s = {0};
  ValueId x = classic_samples(im), y;
  if (!read_common(im, &s, x))
    return;
  s.vector_count = attr_int(im, "n_supports", 0);
  if (s.vector_count > 0) {
    (void)attr_floats(im, "support_vectors", &s.vectors);
    check_vectors(im, &s);
    if (s.coefficients.count < s.vector_count)
      import_fail(im, DIAG_ATTR_VALUE, "there are %u coefficients for %lld support vectors",
                  s.coefficients.count, (long long)s.vector_count);
    y = weighted(im, kernel_of(im, &s, x), s.coefficients.at, 1, s.vector_count, s.rho.at, true);
  } else {
    if (s.coefficients.count != s.features)
      import_fail(im, DIAG_ATTR_VALUE, "there are %u coefficients for %lld features",
                  s.coefficients.count, (long long)s.features);
    y = weighted(im, x, s.coefficients.at, 1, s.features, s.rho.at, true);
  }
  if (attr_flag(im, "one_class", false)) {
    ValueId outlier = ex_number(im, y, -1), inlier = ex_number(im, y, 1);
    y = ex_where(im, ex_with(im, OP_GT_TENSOR, y, 0), inlier, outlier);
  }
  out(im, 0, y);
}

/* --- probabilities --- */

/* The method of Wu, Lin and Weng ("Probability estimates for multi-class classification by pairwise
 * coupling", 2004, algorithm 2) on each sample: p [N, C] and the samples still at work [N, 1]. */
typedef struct Coupling {
  uint32_t classes;
  ValueId q; /* [N, C, C] */
  ValueId p, active;
} Coupling;

/* One class i of an iteration; diff is 0 for samples that are done, which changes nothing. */
static void couple_class(Import *im, Coupling *c, uint32_t i, ValueId *qp, ValueId *pqp) {
  float *unit = ARENA_ARRAY(&im->scratch, float, c->classes);
  unit[i] = 1;
  ValueId row = ex_select(im, c->q, 1, i), qii = ex_slice(im, row, 1, i, i + 1),
          qpi = ex_slice(im, *qp, 1, i, i + 1), diff = ex_div(im, ex_sub(im, *pqp, qpi), qii),
          step = ex_where(im, c->active, diff, ex_number(im, diff, 0)),
          scale = ex_plus(im, step, 1), twice = ex_times(im, qpi, 2),
          more = ex_add(im, ex_mul(im, step, qii), twice),
          one = classic_floats(im, unit, 1, (int64_t[]){c->classes});
  *pqp = ex_div(im, ex_div(im, ex_add(im, *pqp, ex_mul(im, step, more)), scale), scale);
  *qp = ex_div(im, ex_add(im, *qp, ex_mul(im, step, row)), scale);
  c->p = ex_div(im, ex_add(im, c->p, ex_mul(im, step, one)), scale);
}

/* One iteration; what it gives is whether another one is needed. */
static ValueId couple(Import *im, Coupling *c) {
  double eps = (double)(0.005F / (float)c->classes);
  ValueId qp = ex_sum(im, ex_mul(im, c->q, ex_unsqueeze(im, c->p, 1)), 2, false),
          pqp = ex_sum(im, ex_mul(im, c->p, qp), 1, true),
          error = ex_reduce_one(im, OP_AMAX, ex_unary(im, OP_ABS, ex_sub(im, qp, pqp)), 1, true);
  c->active = ex_and(im, c->active, ex_with(im, OP_GE_TENSOR, error, eps));
  for (uint32_t i = 0; i < c->classes; i++)
    couple_class(im, c, i, &qp, &pqp);
  return ex_unary(im, OP_ANY, c->active);
}

/* p after up to 100 iterations. */
static ValueId coupled(Import *im, Coupling *c) {
  SymInt samples = ex_dim(im, c->q, 0);
  ValueId equal = ex_full(im, DTYPE_F32, (SymInt[]){samples, c->classes}, 2,
                          (double)(1.0F / (float)c->classes)),
          active = ex_full(im, DTYPE_BOOL, (SymInt[]){samples, 1}, 2, 1),
          states[2] = {equal, active};
  ValueId first = build(&im->b, OP_LOOP, A_INT(100), A_NONE, A_VALS(states, 2));
  c->p = first + 1;
  c->active = first + 2;
  for (uint32_t i = 0; i < 2; i++)
    ex_set_shape(im, first + 1 + i, shape_of(im, states[i]));
  ValueId again = couple(im, c);
  states[0] = c->p;
  states[1] = c->active;
  return build(&im->b, OP_NEXT, A_VAL(again), A_VALS(states, 2));
}

/* Row and column of each pair i < j in a matrix [C, C], as two constants: r [P, C C] puts the
 * probability of pair p at (i, j), and its complement at (j, i). */
static ValueId pair_matrix(Import *im, ValueId r, uint32_t classes) {
  uint64_t pairs = (uint64_t)classes * (classes - 1) / 2, cells = (uint64_t)classes * classes;
  int64_t *index = ARENA_ARRAY(&im->scratch, int64_t, cells);
  uint32_t pair = 0;
  for (uint32_t i = 0; i < classes; i++)
    index[i * classes + i] = (int64_t)(2 * pairs); /* 0 */
  for (uint32_t i = 0; i + 1 < classes; i++)
    for (uint32_t j = i + 1; j < classes; j++, pair++) {
      index[i * classes + j] = pair;
      index[j * classes + i] = (int64_t)(pairs + pair);
    }
  ValueId complement = ex_sub(im, ex_number(im, r, 1), r), zero = ex_slice(im, r, 1, 0, 1);
  zero = ex_sub(im, zero, zero);
  ValueId parts[] = {r, complement, zero};
  ValueId all = ex_cat(im, parts, 3, 1);
  ValueId flat = ex_index_select(im, all, 1, build_const_ints(&im->b, index, (uint32_t)cells));
  return EX_VIEW(im, flat, ex_dim(im, r, 0), classes, classes);
}

/* Q: -r(j, i) r(i, j) beside the diagonal, which has the sums of r(j, i)^2. */
static ValueId coupling_matrix(Import *im, ValueId r, uint32_t classes) {
  uint64_t count = (uint64_t)classes * classes;
  float *eye = ARENA_ARRAY(&im->scratch, float, count);
  for (uint32_t i = 0; i < classes; i++)
    eye[i * classes + i] = 1;
  ValueId matrix = pair_matrix(im, r, classes);
  ValueId transposed = EX_PERMUTE(im, matrix, 0, 2, 1),
          sums = ex_sum(im, ex_mul(im, transposed, transposed), 2, true),
          one = classic_floats(im, eye, 2, (int64_t[]){classes, classes});
  ValueId products = ex_mul(im, matrix, transposed);
  return ex_sub(im, ex_mul(im, sums, one), products);
}

static ValueId probabilities(Import *im, const Svm *s, ValueId pair_scores) {
  int64_t pairs = (int64_t)s->classes.count * (s->classes.count - 1) / 2;
  ValueId a = classic_floats(im, s->prob_a.at, 1, &pairs),
          b = classic_floats(im, s->prob_b.at, 1, &pairs),
          x = ex_unary(im, OP_NEG, ex_add(im, ex_mul(im, pair_scores, a), b)),
          r = ex_clamp(im, ex_unary(im, OP_SIGMOID, x), (double)1.0e-7F, (double)(1 - 1.0e-7F));
  Coupling c = {.classes = s->classes.count, .q = coupling_matrix(im, r, s->classes.count)};
  return coupled(im, &c);
}

/* --- classification --- */

/* The decision of each pair of classes i < j: coefficients of the vectors of i against j, and of
 * those of j against i. */
static ValueId pair_scores(Import *im, const Svm *s, ValueId kernel) {
  uint32_t classes = s->classes.count, pair = 0;
  uint64_t pairs = (uint64_t)classes * (classes - 1) / 2, size, vectors = (uint64_t)s->vector_count;
  if (!mul_u64(pairs, vectors, &size) || size > COEFFICIENTS_MAX)
    return import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                       "%u classes and %lld support vectors are too many", classes,
                       (long long)s->vector_count);
  float *w = ARENA_ARRAY(&im->scratch, float, size + 1);
  uint64_t *start = ARENA_ARRAY(&im->scratch, uint64_t, (uint64_t)classes + 1);
  for (uint32_t i = 0; i < classes; i++)
    start[i + 1] = start[i] + (uint64_t)s->per_class.at[i];
  for (uint32_t i = 0; i + 1 < classes; i++)
    for (uint32_t j = i + 1; j < classes; j++, pair++) {
      for (uint64_t v = start[i]; v < start[i + 1]; v++)
        w[pair * vectors + v] = s->coefficients.at[(j - 1) * vectors + v];
      for (uint64_t v = start[j]; v < start[j + 1]; v++)
        w[pair * vectors + v] = s->coefficients.at[i * vectors + v];
    }
  return weighted(im, kernel, w, (int64_t)pairs, s->vector_count, s->rho.at, false);
}

/* Each pair has a vote: for i when its decision is positive, else for j. */
static ValueId winners(Import *im, const Svm *s, ValueId scores) {
  uint32_t classes = s->classes.count, pair = 0;
  int64_t pairs = (int64_t)classes * (classes - 1) / 2, count = pairs * classes;
  float *w = ARENA_ARRAY(&im->scratch, float, (uint64_t)count),
        *otherwise = ARENA_ARRAY(&im->scratch, float, classes);
  for (uint32_t i = 0; i + 1 < classes; i++)
    for (uint32_t j = i + 1; j < classes; j++, pair++) {
      w[i * (uint64_t)pairs + pair] = 1;
      w[j * (uint64_t)pairs + pair] = -1;
      otherwise[j] += 1;
    }
  ValueId positive = ex_cast(im, ex_with(im, OP_GT_TENSOR, scores, 0), DTYPE_F32),
          votes = weighted(im, positive, w, classes, pairs, otherwise, false);
  return ex_argmax(im, votes, 1, false);
}

static void by_vectors(Import *im, const Svm *s, ValueId x) {
  ValueId scores = pair_scores(im, s, kernel_of(im, s, x));
  classes_out(im, &s->classes, winners(im, s, scores));
  if (s->prob_a.count)
    out(im, 1, post_apply(im, s->post, probabilities(im, s, scores)));
  else if (s->classes.count == 2)
    out(im, 1, post_two(im, s->post, scores, s->post != POST_NONE));
  else
    out(im, 1, post_apply(im, s->post, scores));
}

/* Without support vectors: a row of coefficients for each class. */
static void by_rows(Import *im, const Svm *s, ValueId x) {
  uint32_t classes = s->classes.count;
  if (s->coefficients.count != s->features * classes)
    import_fail(im, DIAG_ATTR_VALUE, "there are %u coefficients for %lld features of %u classes",
                s->coefficients.count, (long long)s->features, classes);
  ValueId scores = weighted(im, x, s->coefficients.at, classes, s->features, s->rho.at, true);
  ValueId best = ex_argmax(im, scores, 1, false);
  bool positive = true;
  for (uint32_t i = 0; i < s->coefficients.count; i++)
    positive &= s->coefficients.at[i] >= 0;
  if (classes == 2 && !s->prob_a.count) {
    ValueId most = ex_reduce_one(im, OP_AMAX, scores, 1, false),
            second = ex_with(im, positive ? OP_GE_TENSOR : OP_GT_TENSOR, most, positive ? 0.5 : 0);
    best = ex_where(im, second, ex_number(im, best, 1), best);
  }
  classes_out(im, &s->classes, best);
  out(im, 1, classes == 1 ? post_single(im, s->post, scores) : post_apply(im, s->post, scores));
}

static void read_probabilities(Import *im, Svm *s, uint64_t pairs) {
  if (!attr_floats(im, "prob_a", &s->prob_a) || !s->prob_a.count)
    return;
  (void)attr_floats(im, "prob_b", &s->prob_b);
  if (s->prob_a.count != s->prob_b.count || s->prob_b.count < pairs)
    import_fail(im, DIAG_ATTR_VALUE, "'prob_a' has %u numbers and 'prob_b' %u", s->prob_a.count,
                s->prob_b.count);
  else if (s->classes.count > PROBABILITY_CLASSES_MAX)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "probabilities of more than %d classes",
                PROBABILITY_CLASSES_MAX);
}

static void check_classes(Import *im, const Svm *s, uint64_t pairs) {
  uint32_t listed = s->per_class.count;
  uint64_t classes = s->classes.count, vectors = (uint64_t)s->vector_count;
  if (listed != classes || classes < 2)
    import_fail(im, DIAG_ATTR_VALUE, "'vectors_per_class' has %u numbers for %llu classes", listed,
                (unsigned long long)classes);
  else if (s->coefficients.count < (classes - 1) * vectors || s->rho.count < pairs)
    import_fail(im, DIAG_ATTR_VALUE,
                "there are %u coefficients and %u numbers in 'rho' for %llu classes",
                s->coefficients.count, s->rho.count, (unsigned long long)classes);
}

/* Sums up the vectors of all classes. */
static void count_vectors(Import *im, Svm *s) {
  for (uint32_t i = 0; i < s->per_class.count && import_ok(im); i++) {
    if (s->per_class.at[i] < 0 || s->per_class.at[i] > COEFFICIENTS_MAX)
      import_fail(im, DIAG_ATTR_VALUE, "class %u has %lld support vectors", i,
                  (long long)s->per_class.at[i]);
    s->vector_count += s->per_class.at[i];
    if (s->vector_count > COEFFICIENTS_MAX)
      import_fail(im, DIAG_ATTR_VALUE, "there are too many support vectors");
  }
}

void translate_svm_classifier(Import *im) {
  Svm s = {.post = post_read(im)};
  ValueId x = classic_samples(im);
  if (!classes_read(im, "classlabels_ints", &s.classes) || !read_common(im, &s, x))
    return;
  if (s.classes.count > CLASSES_MAX)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "there are %u classes", s.classes.count);
  (void)attr_ints(im, "vectors_per_class", &s.per_class);
  count_vectors(im, &s);
  uint64_t pairs = (uint64_t)s.classes.count * (s.classes.count - 1) / 2;
  read_probabilities(im, &s, pairs);
  if (s.vector_count > 0) {
    (void)attr_floats(im, "support_vectors", &s.vectors);
    check_vectors(im, &s);
    check_classes(im, &s, pairs);
  }
  if (import_ok(im) && s.vector_count > 0)
    by_vectors(im, &s, x);
  else if (import_ok(im))
    by_rows(im, &s, x);
}

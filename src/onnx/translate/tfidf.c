/* TfIdfVectorizer over numbers: counts of n-grams, where the items of one may stand up to
 * max_skip_count apart (equally far). Every n-gram is compared at every place at once; a constant
 * matrix carries the counts to their output columns. Unigrams have no gaps and are counted once. */
#include "onnx/express.h"

enum { TFIDF_MAX = 1 << 24 };

typedef struct Tfidf {
  ValueId x; /* [B, L] */
  SymInt batch;
  int64_t length, outputs;
  int64_t least, most, skips; /* sizes of n-grams, gaps */
  Ints pool, starts, columns;
  Floats weights;
} Tfidf;

static bool lengths_fit(const Tfidf *f) {
  return f->least >= 1 && f->most >= f->least && f->most <= 64 && f->skips >= 0 &&
         f->skips <= 4096 && f->starts.count <= 64;
}

static void count_outputs(Import *im, Tfidf *f) {
  for (uint32_t i = 0; i < f->columns.count && import_ok(im); i++) {
    if (f->columns.at[i] < 0 || f->columns.at[i] >= TFIDF_MAX)
      import_fail(im, DIAG_ATTR_VALUE, "ngram_indexes has %lld", (long long)f->columns.at[i]);
    else
      f->outputs = max_i64(f->outputs, f->columns.at[i] + 1);
  }
}

static bool tfidf_read(Import *im, Tfidf *f) {
  ValueId x = in_required(im, 0);
  *f = (Tfidf){.least = attr_int_required(im, "min_gram_length"),
               .most = attr_int_required(im, "max_gram_length"),
               .skips = attr_int_required(im, "max_skip_count")};
  if (!attr_ints(im, "pool_int64s", &f->pool))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "only pool_int64s is supported, not strings");
  if (!attr_ints(im, "ngram_counts", &f->starts) || !attr_ints(im, "ngram_indexes", &f->columns))
    import_fail(im, DIAG_ATTR_MISSING, "ngram_counts and ngram_indexes are required");
  attr_floats(im, "weights", &f->weights);
  uint32_t rank = ex_rank(im, x);
  if (rank < 1 || rank > 2)
    import_fail(im, DIAG_INPUT_RANK, "the input has rank %u, not 1 or 2", rank);
  if (!lengths_fit(f))
    import_fail(im, DIAG_ATTR_VALUE, "n-grams of %lld to %lld with gaps up to %lld",
                (long long)f->least, (long long)f->most, (long long)f->skips);
  f->length = ex_fixed(im, x, rank == 2 ? 1 : 0);
  f->batch = rank == 2 ? ex_dim(im, x, 0) : 1;
  count_outputs(im, f);
  f->x = EX_VIEW(im, x, f->batch, f->length);
  return import_ok(im);
}

/* The pool's part of size n: from *first on, *count n-grams; *id is the number of the first. */
static bool pool_part(Import *im, const Tfidf *f, int64_t n, int64_t *first, int64_t *count,
                      int64_t *id) {
  *count = *id = *first = 0;
  for (int64_t size = 1; size <= n && size <= f->starts.count; size++) {
    int64_t begin = f->starts.at[size - 1],
            end = size < f->starts.count ? f->starts.at[size] : (int64_t)f->pool.count;
    if (begin < 0 || end < begin || end > f->pool.count || (end - begin) % size)
      return import_fail(im, DIAG_ATTR_VALUE, "ngram_counts does not fit the pool");
    *id += *count;
    *first = begin;
    *count = (end - begin) / size;
  }
  if (n > f->starts.count)
    *count = 0;
  if (*id + *count > f->columns.count)
    import_fail(im, DIAG_ATTR_VALUE, "ngram_indexes has %u entries, fewer than n-grams",
                f->columns.count);
  return import_ok(im);
}

/* How often each of `count` n-grams of size n occurs: [B, count] f32. */
static ValueId occurrences(Import *im, const Tfidf *f, int64_t n, int64_t first, int64_t count) {
  ValueId *matches = ARENA_ARRAY(&im->scratch, ValueId, (size_t)f->skips + 1);
  int64_t *items = ARENA_ARRAY(&im->scratch, int64_t, (size_t)count);
  uint32_t found = 0;
  for (int64_t step = 1; step <= (n == 1 ? 1 : f->skips + 1) && import_ok(im); step++) {
    int64_t places = f->length - step * (n - 1);
    if (places < 1)
      break;
    ValueId all = 0;
    for (int64_t k = 0; k < n && import_ok(im); k++) {
      for (int64_t i = 0; i < count; i++)
        items[i] = f->pool.at[first + i * n + k];
      ValueId wanted = EX_VIEW(im, build_const_ints(&im->b, items, (uint32_t)count), count, 1);
      ValueId here = ex_slice(im, f->x, 1, k * step, k * step + places);
      wanted = ex_cast(im, wanted, ex_dtype(im, f->x));
      ValueId equal = ex_eq(im, EX_VIEW(im, here, f->batch, 1, places), wanted);
      all = all ? ex_and(im, all, equal) : equal;
    }
    matches[found++] = all;
  }
  if (!found)
    return ex_full(im, DTYPE_F32, (SymInt[]){f->batch, count}, 2, 0);
  ValueId hits = ex_cast(im, ex_cat(im, matches, found, 2), DTYPE_F32);
  return ex_sum(im, hits, 2, false);
}

/* [grams, outputs]: where each n-gram of `ids` goes, times the weight of the column. */
static ValueId column_matrix(Import *im, const Tfidf *f, const int64_t *ids, int64_t grams,
                             bool weighted) {
  if (grams > TFIDF_MAX / max_i64(f->outputs, 1))
    return import_fail(im, DIAG_UNSUPPORTED_FEATURE, "%lld n-grams and %lld columns are too many",
                       (long long)grams, (long long)f->outputs);
  float *values = ARENA_ARRAY(&im->scratch, float, (size_t)(grams * f->outputs));
  memset(values, 0, (size_t)(grams * f->outputs) * sizeof *values);
  for (int64_t i = 0; i < grams; i++) {
    int64_t column = f->columns.at[ids[i]];
    values[i * f->outputs + column] =
        weighted && column < f->weights.count ? f->weights.at[column] : 1;
  }
  return build_const(&im->b, DTYPE_F32, 2, (int64_t[]){grams, f->outputs}, values);
}

/* Counts of all n-grams: [B, grams], and their numbers. */
static ValueId all_counts(Import *im, const Tfidf *f, int64_t *ids, int64_t *grams) {
  ValueId parts[64] = {0};
  uint32_t found = 0;
  *grams = 0;
  for (int64_t n = f->least; n <= f->most && import_ok(im); n++) {
    int64_t first, count, id;
    if (!pool_part(im, f, n, &first, &count, &id) || count == 0)
      continue;
    for (int64_t i = 0; i < count; i++)
      ids[*grams + i] = id + i;
    *grams += count;
    parts[found++] = occurrences(im, f, n, first, count);
  }
  return found ? ex_cat(im, parts, found, 1) : 0;
}

void translate_tfidf_vectorizer(Import *im) {
  Tfidf f;
  uint32_t mode = attr_choice(im, "mode", "TF", "TF|IDF|TFIDF");
  bool idf = mode == 1, product = mode == 2;
  if (!tfidf_read(im, &f))
    return;
  int64_t *ids = ARENA_ARRAY(&im->scratch, int64_t, (size_t)f.columns.count + 1), grams;
  ValueId counts = all_counts(im, &f, ids, &grams), y;
  if (!counts)
    y = ex_full(im, DTYPE_F32, (SymInt[]){f.batch, f.outputs}, 2, 0);
  else
    y = ex_mm(im, counts, column_matrix(im, &f, ids, grams, product));
  if (idf) {
    y = ex_cast(im, ex_with(im, OP_GT_TENSOR, y, 0), DTYPE_F32);
    float *weights = ARENA_ARRAY(&im->scratch, float, (size_t)f.outputs + 1);
    for (int64_t i = 0; i < f.outputs; i++)
      weights[i] = i < f.weights.count ? f.weights.at[i] : 1;
    if (f.weights.count)
      y = ex_mul(im, y, build_const(&im->b, DTYPE_F32, 1, (int64_t[]){f.outputs}, weights));
  }
  out(im, 0, ex_rank(im, in(im, 0)) == 1 ? EX_VIEW(im, y, f.outputs) : y);
}

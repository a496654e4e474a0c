/* Features of classic machine learning (ai.onnx.ml): scaling, encoding, selecting. */
#include <math.h>

#include "onnx/translate/classic.h"
#include "onnx/translate/control.h"

enum { FEATURES_MAX = 1 << 24, TWICE_MAX = 4096 };

/* Input i as f32. */
static ValueId classic_input(Import *im, uint32_t i) {
  ValueId x = in_required(im, i);
  return x ? ex_cast(im, x, DTYPE_F32) : 0;
}

ValueId classic_floats(Import *im, const float *values, uint32_t rank, const int64_t *dims) {
  return build_const(&im->b, DTYPE_F32, rank, dims, values);
}

ValueId classic_rows(Import *im, ValueId x) {
  if (ex_rank(im, x) == 1)
    x = EX_VIEW(im, x, 1, ex_dim(im, x, 0));
  if (ex_rank(im, x) != 2)
    import_fail(im, DIAG_INPUT_RANK, "the input has rank %u, not 2", ex_rank(im, x));
  return x;
}

ValueId classic_samples(Import *im) { return classic_rows(im, classic_input(im, 0)); }

/* The last dim, where the features are. */
static int64_t features_of(Import *im, ValueId x) {
  if (ex_rank(im, x) == 0)
    import_fail(im, DIAG_INPUT_RANK, "the input has no features");
  return ex_fixed(im, x, ex_rank(im, x) - 1);
}

/* A list of one number for all features or one for each; 0 when it is absent. */
static ValueId by_feature(Import *im, const char *name, int64_t features) {
  Floats values;
  if (!attr_floats(im, name, &values))
    return 0;
  if (values.count != 1 && values.count != features) {
    import_fail(im, DIAG_ATTR_VALUE, "'%s' has %u numbers for %lld features", name, values.count,
                (long long)features);
    return 0;
  }
  return classic_floats(im, values.at, 1, (int64_t[]){values.count});
}

void translate_scaler(Import *im) {
  ValueId x = classic_input(im, 0);
  int64_t features = features_of(im, x);
  ValueId offset = by_feature(im, "offset", features), scale = by_feature(im, "scale", features);
  x = offset ? ex_sub(im, x, offset) : x;
  out(im, 0, scale ? ex_mul(im, x, scale) : x);
}

/* Rows whose norm is 0 stay as they are. */
void translate_normalizer(Import *im) {
  ValueId x = classic_input(im, 0), norm = 0;
  enum { MAX, L1, L2 } kind = attr_choice(im, "norm", "MAX", "MAX|L1|L2");
  uint32_t rank = ex_rank(im, x);
  if (rank == 0)
    import_fail(im, DIAG_INPUT_RANK, "the input has no features");
  if (kind == MAX)
    norm = ex_reduce_one(im, OP_AMAX, x, (int64_t)rank - 1, true);
  else if (kind == L1)
    norm = ex_sum(im, ex_unary(im, OP_ABS, x), (int64_t)rank - 1, true);
  else
    norm = ex_unary(im, OP_SQRT, ex_sum(im, ex_mul(im, x, x), (int64_t)rank - 1, true));
  ValueId none = ex_is(im, norm, 0);
  out(im, 0, ex_div(im, x, ex_where(im, none, ex_number(im, norm, 1), norm)));
}

void translate_binarizer(Import *im) {
  ValueId x = in_required(im, 0);
  out(im, 0,
      ex_cast(im, ex_with(im, OP_GT_TENSOR, x, attr_float(im, "threshold", 0)), ex_dtype(im, x)));
}

void translate_array_feature_extractor(Import *im) {
  ValueId x = in_required(im, 0), index = in_required(im, 1);
  Dims s = shape_of(im, x);
  if (s.rank == 0)
    import_fail(im, DIAG_INPUT_RANK, "the input has no features");
  index = ex_flat(im, index);
  x = s.rank == 1 ? EX_VIEW(im, x, 1, s.d[0]) : x;
  out(im, 0, ex_index_select(im, x, ex_rank(im, x) - 1, index));
}

/* A list of one integer for all features or one for each. */
static ValueId ints_by_feature(Import *im, const char *name, int64_t features) {
  Ints values;
  if (!attr_exact_ints(im, name, &values) || !values.count)
    return 0;
  values.count = values.count == features ? values.count : 1;
  return build_const_ints(&im->b, values.at, values.count);
}

/* As in ONNX Runtime, as many values as there are features are one for each, of any other number of
 * values the first is for all. */
void translate_imputer(Import *im) {
  ValueId x = in_required(im, 0);
  int64_t features = features_of(im, x);
  bool whole = !dtype_is_float(ex_dtype(im, x));
  Floats floats = {0};
  ValueId imputed = 0, missing;
  if (whole)
    imputed = ints_by_feature(im, "imputed_value_int64s", features);
  else if (attr_floats(im, "imputed_value_floats", &floats) && floats.count)
    imputed =
        classic_floats(im, floats.at, 1, (int64_t[]){floats.count == features ? floats.count : 1});
  if (!imputed)
    import_fail(im, DIAG_ATTR_MISSING, "there are no imputed values of the input's type");
  int64_t replaced = 0;
  (void)attr_exact_int(im, "replaced_value_int64", &replaced);
  double number = attr_float(im, "replaced_value_float", 0);
  if (whole)
    missing = ex_eq(im, x, ex_cast(im, ex_int(im, replaced), ex_dtype(im, x)));
  else
    missing = isnan(number) ? ex_ne(im, x, x) : ex_is(im, x, number);
  out(im, 0, ex_where(im, missing, ex_cast(im, imputed, ex_dtype(im, x)), x));
}

/* Ends the call with an error when some element has no category. */
static void refuse_unknown(Import *im, ValueId y) {
  uint32_t last = ex_rank(im, y) ? ex_rank(im, y) - 1 : 0;
  ValueId known = ex_reduce_one(im, OP_AMAX, y, last, false);
  known = ex_reduce_dims(im, OP_AMIN, known, 0, last, false);
  control_fail_if(im, ex_is(im, known, 0), "unknown category, and zeros is 0");
}

/* Categories [C] as the last dim of x, with a dim added: 1 where they are equal. Floats are cut off
 * to integers first. Of a category that is listed twice the last counts. */
void translate_one_hot_encoder(Import *im) {
  ValueId x = in_required(im, 0);
  Ints categories;
  if (!attr_exact_ints(im, "cats_int64s", &categories) || !categories.count) {
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "the categories are strings: the runtime has no tensors of strings; encode them as "
                "integers before the program runs");
    return;
  }
  ValueId known = build_const_ints(&im->b, categories.at, categories.count),
          equal = ex_eq(im, ex_unsqueeze(im, ex_cast(im, x, DTYPE_I64), ex_rank(im, x)), known);
  float *last = ARENA_ARRAY(&im->scratch, float, categories.count);
  bool twice = false;
  for (uint32_t i = 0; i < categories.count; i++) {
    last[i] = 1;
    for (uint32_t k = i + 1; k < categories.count && categories.count <= TWICE_MAX; k++)
      if (categories.at[k] == categories.at[i])
        last[i] = 0;
    twice |= last[i] == 0;
  }
  ValueId y = ex_cast(im, equal, DTYPE_F32);
  if (!attr_flag(im, "zeros", true))
    refuse_unknown(im, y);
  out(im, 0, twice ? ex_mul(im, y, classic_floats(im, last, 1, (int64_t[]){categories.count})) : y);
}

/* [rows, features]; a vector is one row. */
static ValueId as_rows(Import *im, ValueId x) {
  Dims s = shape_of(im, x);
  if (s.rank < 2)
    return EX_VIEW(im, x, 1, s.rank ? s.d[0] : 1);
  return EX_VIEW(im, x, s.d[0], shape_product(im, s.d + 1, s.rank - 1));
}

/* The inputs side by side, each cut or filled with zeros to its number of features. */
void translate_feature_vectorizer(Import *im) {
  Ints sizes;
  if (!attr_ints(im, "inputdimensions", &sizes) || sizes.count != in_count(im) || !sizes.count) {
    import_fail(im, DIAG_ATTR_VALUE, "'inputdimensions' has %u numbers for %u inputs", sizes.count,
                in_count(im));
    return;
  }
  ValueId *parts = ARENA_ARRAY(&im->scratch, ValueId, 2 * (uint64_t)sizes.count);
  uint32_t used = 0;
  for (uint32_t i = 0; i < sizes.count && import_ok(im); i++) {
    ValueId x = as_rows(im, classic_input(im, i));
    SymInt rows = ex_dim(im, x, 0);
    int64_t have = ex_fixed(im, x, 1);
    int64_t size = sizes.at[i];
    if (size < 0 || size > FEATURES_MAX)
      import_fail(im, DIAG_ATTR_VALUE, "'inputdimensions' has the number %lld", (long long)size);
    if (have && size)
      parts[used++] = have > size ? ex_slice(im, x, 1, 0, size) : x;
    if (have < size)
      parts[used++] = ex_full(im, DTYPE_F32, (SymInt[]){rows, size - have}, 2, 0);
  }
  if (!used)
    import_fail(im, DIAG_ATTR_VALUE, "'inputdimensions' are all 0");
  out(im, 0, used == 1 ? parts[0] : ex_cat(im, parts, used, 1));
}

/* A map from labels to scores for each sample: the runtime has none, the scores are what is left.
 */
void translate_zip_map(Import *im) {
  Classes classes;
  ValueId x = in_required(im, 0);
  if (!classes_read(im, "classlabels_int64s", &classes))
    return;
  if (ex_fixed(im, x, ex_rank(im, x) - 1) != classes.count) {
    import_fail(im, DIAG_ATTR_VALUE, "there are %u labels for %lld scores", classes.count,
                (long long)ex_fixed(im, x, ex_rank(im, x) - 1));
    return;
  }
  classes_note(im, &classes);
  out(im, 0, x);
}

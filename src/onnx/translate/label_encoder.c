/* LabelEncoder of ai.onnx.ml: a table of keys and values, versions 1, 2 and 4. */
#include <math.h>
#include <stdio.h>

#include "onnx/file/tensor.h"
#include "onnx/translate/classic.h"
#include "onnx/labels.h"

enum { DENSE_MAX = 1 << 16 };

/* A list of numbers or strings; the others are NULL. */
typedef struct Column {
  DType dtype; /* DTYPE_NONE: strings */
  uint32_t count;
  const int64_t *whole;
  const double *real;
  const StrView *strings;
} Column;

static bool column_tensor(Import *im, const char *name, Column *c) {
  const Onnx__TensorProto *t = attr_tensor(im, name);
  if (!t)
    return false;
  if (t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__STRING) {
    Texts texts;
    bool fine = tensor_texts(im, t, &texts);
    *c = (Column){.dtype = DTYPE_NONE, .count = texts.count, .strings = texts.at};
    return fine;
  }
  ValueId v = import_tensor(im, t, 0);
  c->dtype = ex_dtype(im, v);
  Doubles real = {0};
  Ints whole = {0};
  bool known = dtype_is_float(c->dtype) ? value_doubles(im, v, &real) : value_consts(im, v, &whole);
  c->real = real.at;
  c->whole = whole.at;
  c->count = real.count + whole.count;
  if (known)
    return true;
  return import_fail(im, DIAG_ATTR_VALUE, "attribute '%s' is not a tensor of numbers or strings",
                     name);
}

/* "keys" or "values". */
static bool column_read(Import *im, const char *what, Column *c) {
  char name[32];
  Ints whole;
  Doubles real;
  Texts strings;
  *c = (Column){0};
  snprintf(name, sizeof name, "%s_int64s", what);
  if (attr_exact_ints(im, name, &whole) && whole.count) {
    *c = (Column){.dtype = DTYPE_I64, .count = whole.count, .whole = whole.at};
    return true;
  }
  snprintf(name, sizeof name, "%s_floats", what);
  if (attr_doubles(im, name, &real) && real.count) {
    *c = (Column){.dtype = DTYPE_F32, .count = real.count, .real = real.at};
    return true;
  }
  snprintf(name, sizeof name, "%s_strings", what);
  if (attr_strs(im, name, &strings) && strings.count) {
    *c = (Column){.dtype = DTYPE_NONE, .count = strings.count, .strings = strings.at};
    return true;
  }
  snprintf(name, sizeof name, "%s_tensor", what);
  if (column_tensor(im, name, c))
    return true;
  return import_fail(im, DIAG_ATTR_MISSING, "the node has no '%s_…' attribute", what);
}

/* One element of the type of `values`: what a key that is not in the table becomes. */
static void column_default(Import *im, const Column *values, Column *c) {
  *c = (Column){.dtype = values->dtype, .count = 1};
  if (attr_has(im, "default_tensor")) {
    if (column_tensor(im, "default_tensor", c) && (c->count != 1 || c->dtype != values->dtype))
      import_fail(im, DIAG_ATTR_VALUE, "'default_tensor' is not one element of the values' type");
  } else if (values->strings) {
    StrView *text = ARENA_ARRAY(&im->scratch, StrView, 1);
    *text = attr_str(im, "default_string", "_Unused");
    c->strings = text;
  } else if (values->real) {
    double *number = ARENA_ARRAY(&im->scratch, double, 1);
    *number = attr_float(im, "default_float", -0.0);
    c->real = number;
  } else {
    int64_t *number = ARENA_ARRAY(&im->scratch, int64_t, 1);
    if (!attr_exact_int(im, "default_int64", number))
      *number = -1;
    c->whole = number;
  }
}

/* --- the table --- */

/* Row i of the table is rows[i] of the values; VALUE of values->count is the default. */
typedef struct Encoder {
  Column keys, values, otherwise;
} Encoder;

/* A list of numbers in this type. */
static ValueId number_constant(Import *im, const Column *c, DType dtype) {
  int64_t count = c->count;
  ValueId wide = c->real ? build_const(&im->b, DTYPE_F64, 1, &count, c->real)
                         : build_const_ints(&im->b, c->whole, c->count);
  return ex_cast(im, wide, dtype);
}

static ValueId picked_numbers(Import *im, const Encoder *e, const uint32_t *rows, uint32_t count) {
  const Column *known = &e->values, *otherwise = &e->otherwise;
  double *real = ARENA_ARRAY(&im->scratch, double, (uint64_t)count + 1);
  int64_t *whole = ARENA_ARRAY(&im->scratch, int64_t, (uint64_t)count + 1);
  for (uint32_t i = 0; i < count && known->real; i++)
    real[i] = rows[i] < known->count ? known->real[rows[i]] : otherwise->real[0];
  for (uint32_t i = 0; i < count && !known->real; i++)
    whole[i] = rows[i] < known->count ? known->whole[rows[i]] : otherwise->whole[0];
  const Column picked = {.count = count, .real = known->real ? real : NULL, .whole = whole};
  return number_constant(im, &picked, known->dtype);
}

static ValueId string_constant(Import *im, const Encoder *e, const uint32_t *rows, uint32_t count,
                               const Labels **labels) {
  uint32_t known = e->values.count;
  StrView *names = ARENA_ARRAY(&im->scratch, StrView, (uint64_t)known + 1);
  int64_t *codes = ARENA_ARRAY(&im->scratch, int64_t, (uint64_t)known + 1),
          *picked = ARENA_ARRAY(&im->scratch, int64_t, (uint64_t)count + 1);
  memcpy(names, e->values.strings, known * sizeof *names);
  names[known] = e->otherwise.strings[0];
  *labels = labels_make(im, names, known + 1, codes);
  for (uint32_t i = 0; i < count; i++)
    picked[i] = codes[rows[i]];
  return build_const_ints(&im->b, picked, count);
}

/* Binds the output to the rows of the table at `at`, of any shape. */
static void look_up(Import *im, const Encoder *e, const uint32_t *rows, uint32_t count,
                    ValueId at) {
  const Labels *labels = NULL;
  ValueId table = e->values.strings ? string_constant(im, e, rows, count, &labels)
                                    : picked_numbers(im, e, rows, count);
  out_labels(im, ex_look_up(im, table, at), labels);
}

/* --- keys --- */

/* The labels of the input among the keys: both are numbered by one list, the keys first. */
static void by_label(Import *im, const Encoder *e, ValueId x, const Labels *labels) {
  uint32_t keys = e->keys.count, count = labels->count, known = 0;
  uint64_t all = (uint64_t)keys + count;
  StrView *names = ARENA_ARRAY(&im->scratch, StrView, all + 1);
  int64_t *codes = ARENA_ARRAY(&im->scratch, int64_t, all + 1);
  uint32_t *first = ARENA_ARRAY(&im->scratch, uint32_t, (uint64_t)keys + 1),
           *rows = ARENA_ARRAY(&im->scratch, uint32_t, (uint64_t)count + 1);
  if (all > UINT32_MAX)
    return;
  memcpy(names, e->keys.strings, keys * sizeof *names);
  if (count)
    memcpy(names + keys, labels->names, count * sizeof *names);
  (void)labels_make(im, names, (uint32_t)all, codes);
  for (uint32_t i = 0; i < keys; i++)
    if (codes[i] == known)
      first[known++] = i;
  for (uint32_t i = 0; i < count; i++)
    rows[i] = codes[keys + i] < known ? first[codes[keys + i]] : e->values.count;
  look_up(im, e, rows, count, x);
}

/* Integers that lie close: a table from the least to the greatest, after the row of all others. */
static bool by_number(Import *im, const Encoder *e, ValueId x) {
  int64_t low = INT64_MAX, high = INT64_MIN;
  for (uint32_t i = 0; i < e->keys.count; i++) {
    low = min_i64(low, e->keys.whole[i]);
    high = max_i64(high, e->keys.whole[i]);
  }
  if (!e->keys.count || low < -DENSE_MAX || high > DENSE_MAX)
    return false;
  uint32_t span = (uint32_t)(high - low) + 1;
  uint32_t *rows = ARENA_ARRAY(&im->scratch, uint32_t, (uint64_t)span + 1);
  for (uint32_t i = 0; i <= span; i++)
    rows[i] = e->values.count;
  for (uint32_t i = e->keys.count; i-- > 0;)
    rows[e->keys.whole[i] - low + 1] = i;
  x = ex_cast(im, x, DTYPE_I64);
  ValueId below = ex_with(im, OP_LE_TENSOR, x, (double)high),
          inside = ex_and(im, ex_with(im, OP_GE_TENSOR, x, (double)low), below),
          at = ex_where(im, inside, x, ex_number(im, x, (double)(low - 1)));
  look_up(im, e, rows, span + 1, ex_minus(im, at, (double)(low - 1)));
  return true;
}

/* NaN is a key from version 4 on. */
static ValueId equal_keys(Import *im, const Encoder *e, ValueId x) {
  ValueId wide = ex_unsqueeze(im, x, ex_rank(im, x)),
          equal = ex_eq(im, wide, number_constant(im, &e->keys, ex_dtype(im, x)));
  bool *nans = ARENA_ARRAY(&im->scratch, bool, (uint64_t)e->keys.count + 1), any = false;
  for (uint32_t i = 0; i < e->keys.count && e->keys.real && im->opset >= 4; i++)
    any |= nans[i] = isnan(e->keys.real[i]);
  if (!any)
    return equal;
  ValueId key = build_const(&im->b, DTYPE_BOOL, 1, (int64_t[]){e->keys.count}, nans);
  return ex_or(im, equal, ex_and(im, ex_ne(im, wide, wide), key));
}

/* The first equal key; after all keys comes one that is more than unequal and less than equal. */
static void by_comparison(Import *im, const Encoder *e, ValueId x) {
  uint32_t *rows = ARENA_ARRAY(&im->scratch, uint32_t, (uint64_t)e->keys.count + 1);
  for (uint32_t i = 0; i <= e->keys.count; i++)
    rows[i] = i;
  ValueId equal = ex_cast(im, equal_keys(im, e, x), DTYPE_F32);
  Dims column = shape_of(im, equal);
  if (!import_ok(im))
    return;
  column.d[column.rank - 1] = 1;
  equal = ex_cat2(im, equal, ex_filled(im, DTYPE_F32, column, 0.5), column.rank - 1);
  look_up(im, e, rows, e->keys.count + 1, ex_argmax(im, equal, column.rank - 1, false));
}

/* Version 1: a list of strings, from which an integer becomes a string and a string its index. */
static bool read_first_version(Import *im, Encoder *e, bool from_strings) {
  Texts strings;
  if (!attr_strs(im, "classes_strings", &strings) || !strings.count)
    return false;
  int64_t *index = ARENA_ARRAY(&im->scratch, int64_t, strings.count);
  for (uint32_t i = 0; i < strings.count; i++)
    index[i] = i;
  Column names = {.count = strings.count, .strings = strings.at, .dtype = DTYPE_NONE},
         numbers = {.count = strings.count, .whole = index, .dtype = DTYPE_I64};
  e->keys = from_strings ? names : numbers;
  e->values = from_strings ? numbers : names;
  return true;
}

void translate_label_encoder(Import *im) {
  Encoder e = {0};
  ValueId x = in_required(im, 0);
  const Labels *labels = in_labels(im, 0);
  if (!(im->opset < 2 && read_first_version(im, &e, labels != NULL)) &&
      (!column_read(im, "keys", &e.keys) || !column_read(im, "values", &e.values)))
    return;
  if (e.keys.count != e.values.count) {
    import_fail(im, DIAG_ATTR_VALUE, "there are %u keys for %u values", e.keys.count,
                e.values.count);
    return;
  }
  column_default(im, &e.values, &e.otherwise);
  if ((e.keys.strings != NULL) != (labels != NULL))
    import_fail(im, DIAG_ATTR_VALUE, "the keys and the input are not both strings or numbers");
  if (!import_ok(im))
    return;
  if (labels)
    by_label(im, &e, x, labels);
  else if (!e.keys.whole || !by_number(im, &e, x))
    by_comparison(im, &e, x);
}

/* Normalisations of com.microsoft: of sums, of groups of channels, of embeddings. */
#include "onnx/express.h"
#include "onnx/translate/quantized.h"

/* --- normalisations of a sum --- */

/* input + skip (+ bias), which is also output 3. */
static ValueId skip_sum(Import *im, ValueId bias) {
  ValueId sum = ex_add(im, in_required(im, 0), in_required(im, 1));
  sum = bias ? ex_add(im, sum, bias) : sum;
  out(im, 3, sum);
  return sum;
}

/* Outputs 1 and 2 are for training. onnxscript names them where nothing uses them; ONNX Runtime's
 * kernel for CPUs leaves them unset. */
static void skip_statistics(Import *im, ValueId sum, ValueId inverse) {
  uint32_t rank = ex_rank(im, sum);
  if (!out_wanted(im, 1) && !out_wanted(im, 2))
    return;
  out(im, 1, ex_reduce_dims(im, OP_MEAN_DIM, ex_cast(im, sum, DTYPE_F32), rank - 1, rank, true));
  out(im, 2, inverse);
}

void translate_skip_layer_norm(Import *im) {
  ValueId gamma = in_required(im, 2), beta = in(im, 3), sum = skip_sum(im, in(im, 4));
  uint32_t rank = ex_rank(im, sum);
  if (rank < 1)
    return;
  SymInt last[] = {ex_dim(im, sum, rank - 1)};
  ValueId y = build(&im->b, OP_NATIVE_LAYER_NORM, A_VAL(sum), A_INTS(last, 1), A_VAL(gamma),
                    A_OPT(beta), A_FLOAT(attr_float(im, "epsilon", (double)1e-12f)));
  out(im, 0, y);
  if (y)
    skip_statistics(im, sum, node_result(im->g, value_def(im->g, y), 2));
}

/* RMS norm over the dims from `axis` on, times the scale. */
static ValueId rms(Import *im, ValueId x, ValueId scale, uint32_t axis, double epsilon) {
  DType work = ex_dtype(im, x) == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
  return ex_mul(im, ex_rms_norm(im, x, axis, work, epsilon), scale);
}

/* 1 / sqrt(mean of squares + epsilon). */
static ValueId inverse_rms(Import *im, ValueId x, uint32_t axis, double epsilon) {
  ValueId wide = ex_cast(im, x, DTYPE_F32), squares = ex_mul(im, wide, wide),
          mean = ex_reduce_dims(im, OP_MEAN_DIM, squares, axis, ex_rank(im, x), true);
  return ex_unary(im, OP_RSQRT, ex_plus(im, mean, epsilon));
}

void translate_skip_rms_norm(Import *im) {
  ValueId scale = in_required(im, 2), sum = skip_sum(im, in(im, 3));
  uint32_t rank = ex_rank(im, sum), last = rank ? rank - 1 : 0;
  double epsilon = attr_float(im, "epsilon", (double)1e-12f);
  out(im, 0, rms(im, sum, scale, last, epsilon));
  if (import_ok(im) && out_wanted(im, 2))
    skip_statistics(im, sum, inverse_rms(im, sum, last, epsilon));
}

void translate_simplified_layer_norm(Import *im) {
  ValueId x = in_required(im, 0), scale = in_required(im, 1);
  uint32_t axis = import_axis(im, attr_int(im, "axis", -1), ex_rank(im, x));
  double epsilon = attr_float(im, "epsilon", (double)1e-5f);
  out(im, 0, rms(im, x, scale, axis, epsilon));
  if (out_wanted(im, 1))
    out(im, 1, inverse_rms(im, x, axis, epsilon));
}

/* RMS norm of each group of as many columns as the scale has, times an activation of the gate. */
void translate_gated_rms_norm(Import *im) {
  ValueId x = in_required(im, 0), scale = in_required(im, 1), gate = in_required(im, 2);
  Dims s = shape_of(im, x), groups = s;
  int64_t size = ex_fixed(im, scale, 0);
  bool sigmoid = attr_choice(im, "activation", "silu", "sigmoid|silu|swish") == 0;
  int64_t wide = s.rank ? ex_fixed(im, x, s.rank - 1) : 0;
  if (size < 1 || wide % size || s.rank + 1 > MAX_RANK)
    import_fail(im, DIAG_SHAPE_MISMATCH, "%lld columns are not in groups of %lld", (long long)wide,
                (long long)size);
  if (!import_ok(im))
    return;
  groups.d[s.rank - 1] = wide / size;
  groups.d[groups.rank++] = size;
  DType dtype = ex_dtype(im, x);
  x = ex_view_as(im, ex_cast(im, x, DTYPE_F32), groups);
  gate = ex_cast(im, gate, DTYPE_F32);
  ValueId y = rms(im, x, ex_cast(im, scale, DTYPE_F32), groups.rank - 1,
                  attr_float(im, "epsilon", (double)1e-5f));
  ValueId opened = ex_unary(im, sigmoid ? OP_SIGMOID : OP_SILU, gate);
  out(im, 0, ex_cast(im, ex_mul(im, ex_view_as(im, y, s), opened), dtype));
}

/* --- groups of channels --- */

/* x with channels in front, y back where they were; activation 1 is silu. */
static void group_norm(Import *im, ValueId x) {
  ValueId gamma = in_required(im, 1), beta = in_required(im, 2);
  int64_t groups = attr_int_required(im, "groups"), activation = attr_int(im, "activation", 0);
  bool last = attr_flag(im, "channels_last", true);
  uint32_t rank = ex_rank(im, x);
  if (rank != 4 || activation < 0 || activation > 1)
    import_fail(im, rank != 4 ? DIAG_INPUT_RANK : DIAG_ATTR_VALUE,
                "the input has rank %u, not 4, or activation %lld is neither 0 nor 1", rank,
                (long long)activation);
  DType dtype = ex_dtype(im, x);
  x = ex_cast(im, last ? EX_PERMUTE(im, x, 0, 3, 1, 2) : x, DTYPE_F32);
  gamma = ex_cast(im, gamma, DTYPE_F32), beta = ex_cast(im, beta, DTYPE_F32);
  double epsilon = attr_float(im, "epsilon", (double)1e-5f);
  ValueId y = ex_group_norm(im, x, gamma, beta, groups, epsilon);
  y = activation ? ex_unary(im, OP_SILU, y) : y;
  out(im, 0, ex_cast(im, last ? EX_PERMUTE(im, y, 0, 2, 3, 1) : y, dtype));
}

void translate_microsoft_group_norm(Import *im) { group_norm(im, in_required(im, 0)); }

/* Of x + skip + bias, which is also output 1; skip may be one number a channel. */
void translate_skip_group_norm(Import *im) {
  ValueId x = in_required(im, 0), skip = in_required(im, 3), bias = in(im, 4);
  bool last = attr_flag(im, "channels_last", true);
  if (ex_rank(im, skip) == 2) {
    SymInt n = ex_dim(im, skip, 0), c = ex_dim(im, skip, 1);
    skip = last ? EX_VIEW(im, skip, n, 1, 1, c) : EX_VIEW(im, skip, n, c, 1, 1);
  }
  ValueId sum = ex_add(im, x, skip);
  if (bias)
    sum = ex_add(im, sum, ex_along_axis(im, bias, last ? 3 : 1, 4));
  out(im, 1, sum);
  group_norm(im, sum);
}

/* --- embeddings --- */

/* A tensor of numbers, or of quantized ones when there is a scale. */
typedef struct Table {
  ValueId values, scale, zero;
} Table;

typedef enum { WORD, POSITION, SEGMENT, GAMMA, BETA, TABLES } TableKind;

static ValueId real(Import *im, const Table *t, ValueId values) {
  return t->scale ? quantized_real(im, values, t->scale, t->zero, 0) : values;
}

/* Rows of a table [n, hidden] by ids [B, S] or [1, S]: only these become real numbers. */
static ValueId rows_of(Import *im, const Table *t, ValueId ids) {
  if (ex_rank(im, t->values) != 2 || ex_rank(im, ids) != 2)
    return import_fail(im, DIAG_INPUT_RANK, "embeddings and ids have rank %u and %u, not 2",
                       ex_rank(im, t->values), ex_rank(im, ids));
  return real(im, t, ex_binary(im, OP_EMBEDDING, t->values, ids));
}

/* How many entries of each row of the mask are 1; none without a mask. */
static ValueId counted(Import *im, ValueId mask, ValueId ids) {
  SymInt batch[] = {ex_dim(im, ids, 0)};
  if (!mask)
    return ex_full(im, DTYPE_I32, batch, 1, 0);
  ValueId ones = ex_cast(im, ex_is(im, mask, 1), DTYPE_I32);
  return ex_cast(im, ex_sum(im, ones, 1, false), DTYPE_I32);
}

static ValueId embedding_sum(Import *im, const Table *tables, ValueId positions) {
  ValueId ids = in_required(im, 0), segments = in(im, 1);
  if (!segments != !tables[SEGMENT].values)
    import_fail(im, DIAG_INPUT_COUNT, "segment ids and embeddings must be given together");
  ValueId sum = rows_of(im, &tables[WORD], ids);
  const Table *place = &tables[POSITION];
  if (positions)
    sum = ex_add(im, sum, rows_of(im, place, positions));
  else
    sum = ex_add(im, sum, real(im, place, ex_slice(im, place->values, 0, 0, ex_dim(im, ids, 1))));
  return segments ? ex_add(im, sum, rows_of(im, &tables[SEGMENT], segments)) : sum;
}

static void embed(Import *im, const Table *tables, ValueId positions) {
  ValueId ids = in_required(im, 0), mask = in(im, 7), sum = embedding_sum(im, tables, positions);
  SymInt hidden[] = {ex_dim(im, sum, 2)};
  double epsilon = attr_float(im, "epsilon", (double)1e-12f);
  ValueId gamma = real(im, &tables[GAMMA], tables[GAMMA].values),
          beta = real(im, &tables[BETA], tables[BETA].values);
  out(im, 0,
      build(&im->b, OP_NATIVE_LAYER_NORM, A_VAL(sum), A_INTS(hidden, 1), A_VAL(gamma), A_VAL(beta),
            A_FLOAT(epsilon)));
  if (out_wanted(im, 1))
    out(im, 1, counted(im, mask, ids));
  out(im, 2, sum);
}

void translate_embed_layer_norm(Import *im) {
  Table tables[TABLES] = {0};
  for (uint32_t i = 0; i < TABLES; i++)
    tables[i].values = i == SEGMENT ? in(im, 2 + i) : in_required(im, 2 + i);
  embed(im, tables, in(im, 8));
}

void translate_qembed_layer_norm(Import *im) {
  Table tables[TABLES] = {0};
  for (uint32_t i = 0; i < TABLES; i++)
    if (i != SEGMENT || in(im, 2 + i))
      tables[i] = (Table){in_required(im, 2 + i), in_required(im, 8 + i), in_required(im, 13 + i)};
  embed(im, tables, 0);
}

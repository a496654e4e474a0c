/* Normalisations and softmax. */
#include "onnx/express.h"

/* --- softmax --- */

/* Softmax of one axis (opset 13), or of everything from axis on as one (before). */
void translate_softmax(Import *im) {
  ValueId x = in_required(im, 0);
  uint32_t rank = ex_rank(im, x);
  int64_t axis = attr_int(im, "axis", im->opset >= 13 ? -1 : 1);
  if (im->opset >= 13 || axis != rank) /* else rows of nothing: each element alone */
    axis = import_axis(im, axis, rank ? rank : 1);
  bool flat = im->opset < 13 && axis + 1 != rank;
  ValueId y = flat ? ex_rows(im, x, (uint32_t)axis) : x;
  axis = flat ? 1 : axis;
  y = im->op == OP_LOG_SOFTMAX ? ex_log_softmax(im, y, axis) : ex_softmax(im, y, axis);
  out(im, 0, flat ? ex_view(im, y, vt(im, x)->dims, rank) : y);
}

/* --- batch norm --- */

/* (x - mean) / sqrt(var + eps) * scale + bias with statistics of the batch, and the running ones
 * moved by momentum. */
static void batch_norm_training(Import *im, ValueId given, ValueId scale, ValueId bias,
                                ValueId mean, ValueId var) {
  ValueId x = ex_widen(im, given);
  uint32_t rank = ex_rank(im, x), count = 0;
  int64_t axes[MAX_RANK];
  for (uint32_t i = 0; i < rank; i++)
    if (i != 1)
      axes[count++] = i;
  double eps = attr_float(im, "epsilon", (double)1e-5f),
         momentum = attr_float(im, "momentum", (double)0.9f);
  DType dtype = ex_dtype(im, x);
  ValueId batch_mean = ex_reduce(im, OP_MEAN_DIM, x, axes, count, false),
          centred = ex_sub(im, x, ex_along_axis(im, batch_mean, 1, rank)),
          squares = ex_mul(im, centred, centred),
          batch_var = ex_reduce(im, OP_MEAN_DIM, squares, axes, count, false),
          stable = ex_add(im, batch_var, ex_number(im, x, eps)), gain = ex_cast(im, scale, dtype),
          rate = ex_unary(im, OP_RSQRT, stable), inverse = ex_mul(im, rate, gain),
          factor = ex_along_axis(im, inverse, 1, rank),
          shift = ex_along_axis(im, ex_cast(im, bias, dtype), 1, rank);
  ValueId y = ex_add(im, ex_mul(im, centred, factor), shift);
  out(im, 0, ex_cast(im, y, ex_dtype(im, given)));
  ValueId running[] = {mean, var}, fresh[] = {batch_mean, batch_var},
          saved[] = {batch_mean, rate}; /* of versions below 14, as ONNX Runtime gives them */
  for (uint32_t i = 0; i < 2 && import_ok(im); i++) {
    out(im, 3 + i, saved[i]);
    ValueId kept = ex_mul(im, running[i], ex_number(im, running[i], momentum)),
            latest = ex_cast(im, fresh[i], ex_dtype(im, running[i])),
            added = ex_mul(im, latest, ex_number(im, latest, 1 - momentum));
    out(im, 1 + i, ex_add(im, kept, added));
  }
}

void translate_batch_norm(Import *im) {
  ValueId x = in_required(im, 0), scale = in_required(im, 1), bias = in_required(im, 2),
          mean = in_required(im, 3), var = in_required(im, 4);
  if (ex_rank(im, x) < 2)
    import_fail(im, DIAG_INPUT_RANK, "BatchNormalization needs rank 2 or more, the input has %u",
                ex_rank(im, x));
  bool each_element = im->opset < 9 && !attr_flag(im, "spatial", true);
  /* From version 7 to 13 it is the outputs that say what is meant. */
  bool training = im->opset >= 14
                      ? attr_flag(im, "training_mode", false)
                      : out_wanted(im, 1) && !(im->opset < 7 && attr_flag(im, "is_test", false));
  if (training) {
    if (each_element)
      import_fail(im, DIAG_UNSUPPORTED_FEATURE, "training with spatial=0 is not supported");
    else
      batch_norm_training(im, x, scale, bias, mean, var);
    return;
  }
  DType dtype = ex_dtype(im, x);
  scale = ex_cast(im, scale, dtype), bias = ex_cast(im, bias, dtype),
  mean = ex_cast(im, mean, dtype), var = ex_cast(im, var, dtype);
  double epsilon = attr_float(im, "epsilon", (double)1e-5f);
  if (each_element) { /* the statistics have the shape of one sample */
    ValueId factor = ex_div(im, scale, ex_unary(im, OP_SQRT, ex_plus(im, var, epsilon)));
    out(im, 0, ex_add(im, ex_mul(im, ex_sub(im, x, mean), factor), bias));
  } else
    out(im, 0,
        build(&im->b, OP_NATIVE_BATCH_NORM_LEGIT_NO_TRAINING, A_VAL(x), A_VAL(scale), A_VAL(bias),
              A_VAL(mean), A_VAL(var), A_FLOAT(0.1), A_FLOAT(epsilon)));
}

/* --- layer norm, RMS norm --- */

/* A weight that broadcasts to the trailing dims, exactly of that shape. */
static ValueId shaped_weight(Import *im, ValueId w, const SymInt *dims, uint32_t count,
                             DType dtype) {
  return w ? ex_expand(im, ex_cast(im, w, dtype), dims, count) : 0;
}

/* With stash_type 1 the mean and 1 / deviation are float32, as ONNX says. f16 is computed in
 * float32 where they are wanted, as the kernel does, which would give them as f16; f64 stays f64,
 * and these two results are cast. */
void translate_layer_norm(Import *im) {
  ValueId x = in_required(im, 0), scale = in(im, 1), bias = in(im, 2);
  Dims s = shape_of(im, x);
  uint32_t axis = import_axis(im, attr_int(im, "axis", -1), s.rank), count = s.rank - axis;
  const SymInt *dims = s.d + axis;
  DType dtype = ex_dtype(im, x);
  bool stats = out_wanted(im, 1) || out_wanted(im, 2);
  DType stats_dtype = attr_int(im, "stash_type", 1) == 1 ? DTYPE_F32 : dtype,
        work = stats && dtype != DTYPE_F64 ? stats_dtype : dtype;
  x = ex_cast(im, x, work);
  scale = shaped_weight(im, scale, dims, count, work);
  bias = shaped_weight(im, bias, dims, count, work);
  ValueId y = build(&im->b, OP_NATIVE_LAYER_NORM, A_VAL(x), A_INTS(dims, count), A_OPT(scale),
                    A_OPT(bias), A_FLOAT(attr_float(im, "epsilon", (double)1e-5f)));
  out(im, 0, ex_cast(im, y, dtype));
  out(im, 1, ex_cast(im, y + 1, stats_dtype)); /* the mean */
  out(im, 2, ex_cast(im, y + 2, stats_dtype)); /* 1 / deviation */
}

void translate_rms_norm(Import *im) {
  ValueId x = in_required(im, 0), scale = in_required(im, 1);
  uint32_t axis = import_axis(im, attr_int(im, "axis", -1), ex_rank(im, x));
  DType dtype = ex_dtype(im, x),
        work = attr_int(im, "stash_type", 1) == 1 && dtype != DTYPE_F64 ? DTYPE_F32 : dtype;
  ValueId y = ex_rms_norm(im, x, axis, work, attr_float(im, "epsilon", (double)1e-5f));
  out(im, 0, ex_mul(im, y, scale));
}

/* --- group and instance norm --- */

void translate_instance_norm(Import *im) {
  ValueId x = in_required(im, 0), scale = in_required(im, 1), bias = in_required(im, 2);
  if (ex_rank(im, x) < 2)
    import_fail(im, DIAG_INPUT_RANK, "the input has rank %u, 2 or more are needed", ex_rank(im, x));
  else if (!sym_is_const(ex_dim(im, x, 1)))
    import_fail(im, DIAG_INPUT_NOT_CONST, "InstanceNormalization needs a fixed number of channels");
  out(im, 0,
      ex_group_norm(im, x, scale, bias, ex_dim(im, x, 1),
                    attr_float(im, "epsilon", (double)1e-5f)));
}

/* Opset 18 has scale and bias per group, 21 per channel. */
static ValueId per_channel(Import *im, ValueId v, int64_t groups, SymInt channel_count) {
  if (im->opset >= 21)
    return v;
  if (!sym_is_const(channel_count) || groups < 1 || channel_count % groups)
    return import_fail(im, DIAG_ATTR_VALUE, "num_groups %lld does not divide the channels",
                       (long long)groups);
  ValueId column = EX_VIEW(im, v, groups, 1);
  return EX_VIEW(im, EX_EXPAND(im, column, groups, channel_count / groups), channel_count);
}

void translate_group_norm(Import *im) {
  ValueId x = in_required(im, 0), scale = in_required(im, 1), bias = in_required(im, 2);
  int64_t groups = attr_int_required(im, "num_groups");
  if (ex_rank(im, x) < 2) {
    import_fail(im, DIAG_INPUT_RANK, "GroupNormalization needs rank 2 or more, the input has %u",
                ex_rank(im, x));
    return;
  }
  DType dtype = ex_dtype(im, x),
        work = im->opset >= 21 && attr_int(im, "stash_type", 1) == 1 && dtype != DTYPE_F64
                   ? DTYPE_F32
                   : dtype;
  SymInt channel_count = ex_dim(im, x, 1);
  scale = per_channel(im, ex_cast(im, scale, work), groups, channel_count);
  bias = per_channel(im, ex_cast(im, bias, work), groups, channel_count);
  ValueId y = ex_group_norm(im, ex_cast(im, x, work), scale, bias, groups,
                            attr_float(im, "epsilon", (double)1e-5f));
  out(im, 0, ex_cast(im, y, dtype));
}

/* --- others --- */

/* x / max(norm_p over axis, tiny): a zero vector stays zero. */
void translate_lp_normalization(Import *im) {
  ValueId given = in_required(im, 0), x = ex_widen(im, given);
  int64_t p = attr_int(im, "p", 2);
  int64_t axis = import_axis(im, attr_int(im, "axis", -1), ex_rank(im, x));
  if (p != 1 && p != 2)
    import_fail(im, DIAG_ATTR_VALUE, "p is %lld, not 1 or 2", (long long)p);
  ValueId terms = p == 1 ? ex_unary(im, OP_ABS, x) : ex_mul(im, x, x);
  ValueId norm = build(&im->b, OP_SUM_DIM_INTLIST, A_VAL(terms), A_INTS(&axis, 1), A_BOOL(true));
  norm = p == 2 ? ex_unary(im, OP_SQRT, norm) : norm;
  ValueId zero = build(&im->b, OP_EQ_SCALAR, A_VAL(norm), A_INT(0));
  ValueId divisor = ex_where(im, zero, ex_number(im, x, 1), norm);
  out(im, 0, ex_cast(im, ex_div(im, x, divisor), ex_dtype(im, given)));
}

/* The dims that are normalized together: attribute axes, before opset 9 all of four but the
 * channels unless across_channels. Without axes those that the tensor has, as in ONNX Runtime. */
static Ints normalized_axes(Import *im, uint32_t rank) {
  static const int64_t usual[] = {0, 2, 3}, all[] = {0, 1, 2, 3};
  Ints axes;
  if (im->opset >= 9 && attr_ints(im, "axes", &axes))
    return axes;
  axes = (Ints){usual, COUNT_OF(usual)};
  if (im->opset < 9 && attr_flag(im, "across_channels", false))
    axes = (Ints){all, COUNT_OF(all)};
  while (axes.count && axes.at[axes.count - 1] >= rank)
    axes.count--;
  return axes;
}

/* (x - mean) / (sqrt(mean(x^2) - mean^2) + 1e-9), as the document's function body has it; before
 * opset 9 also the dividend alone. */
void translate_mean_variance_normalization(Import *im) {
  ValueId given = in_required(im, 0), x = ex_widen(im, given);
  Ints axes = normalized_axes(im, ex_rank(im, x));
  ValueId y = ex_sub(im, x, ex_reduce(im, OP_MEAN_DIM, x, axes.at, axes.count, true));
  if (im->opset >= 9 || attr_flag(im, "normalize_variance", true)) {
    ValueId squares = ex_mul(im, y, y),
            var = ex_reduce(im, OP_MEAN_DIM, squares, axes.at, axes.count, true);
    y = ex_div(im, y, ex_plus(im, ex_unary(im, OP_SQRT, var), 1e-9));
  }
  out(im, 0, ex_cast(im, y, ex_dtype(im, given)));
}

/* x / (bias + alpha / size * sum of squares over `size` neighbouring channels) ^ beta: the sum is
 * an average pool over channels with zeros beyond, counted in full. */
void translate_lrn(Import *im) {
  ValueId given = in_required(im, 0), x = ex_widen(im, given);
  int64_t size = attr_int_required(im, "size");
  double alpha = attr_float(im, "alpha", (double)1e-4f), beta = attr_float(im, "beta", 0.75),
         bias = attr_float(im, "bias", 1);
  Dims s = shape_of(im, x);
  if (s.rank < 2 || size < 1 || size > 10000) {
    import_fail(im, s.rank < 2 ? DIAG_INPUT_RANK : DIAG_ATTR_VALUE,
                "LRN of a tensor of rank %u with size %lld", s.rank, (long long)size);
    return;
  }
  SymInt inner = shape_product(im, s.d + 2, s.rank - 2);
  ValueId plane = EX_VIEW(im, ex_mul(im, x, x), s.d[0], 1, s.d[1], inner);
  int64_t before = (size - 1) / 2, after = size - 1 - before;
  ValueId mean = build(&im->b, OP_AVG_POOL2D, A_VAL(ex_pad(im, plane, 1, before, after)),
                       A_INTS(((SymInt[]){size, 1}), 2), A_INTS(((SymInt[]){1, 1}), 2));
  ValueId factor = ex_number(im, x, alpha), scaled = ex_mul(im, ex_view_as(im, mean, s), factor);
  ValueId power = ex_pow(im, ex_add(im, scaled, ex_number(im, x, bias)), beta);
  out(im, 0, ex_cast(im, ex_div(im, x, power), ex_dtype(im, given)));
}

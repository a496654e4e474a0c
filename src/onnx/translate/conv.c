/* Conv and ConvTranspose: aten::convolution in 1, 2 or 3 dimensions. */
#include "onnx/express.h"
#include "onnx/translate/spatial.h"

ValueId window_convolve(Import *im, ValueId x, ValueId weight, ValueId bias, const Window *w,
                        int64_t group) {
  const int64_t none[SPATIAL_MAX] = {0};
  return build(&im->b, OP_CONVOLUTION, A_VAL(x), A_VAL(weight), A_OPT(bias), W_ARG(w->stride, w),
               W_ARG(w->begin, w), W_ARG(w->dilation, w), A_BOOL(false), W_ARG(none, w),
               A_INT(group));
}

static void check_ranks(Import *im, ValueId x, ValueId weight) {
  if (ex_rank(im, weight) != ex_rank(im, x))
    import_fail(im, DIAG_INPUT_RANK, "input has rank %u, weight %u", ex_rank(im, x),
                ex_rank(im, weight));
}

ValueId window_convolution(Import *im, ValueId x, ValueId weight, ValueId bias) {
  Window w;
  check_ranks(im, x, weight);
  int64_t group = attr_int(im, "group", 1);
  if (!window_read(im, x, vt(im, weight)->dims + 2, &w))
    return 0;
  if (!window_symmetric(&w))
    x = window_pad(im, x, &w, zero_arg(ex_dtype(im, x)));
  return window_convolve(im, x, weight, bias, &w, group);
}

void translate_conv(Import *im) {
  ValueId x = in_required(im, 0), weight = in_required(im, 1), bias = in(im, 2);
  out(im, 0, window_convolution(im, x, weight, bias));
}

typedef struct Transposed {
  Window w;
  int64_t output_padding[SPATIAL_MAX];
  int64_t crop_begin[SPATIAL_MAX], crop_end[SPATIAL_MAX]; /* of the result with no padding */
} Transposed;

/* Total padding of one dim: output_shape, or auto_pad SAME (output = input * stride), decides it;
 * else the pads. With strides beyond the kernel SAME pads nothing, as ONNX Runtime has it, so that
 * the output is smaller than the document says. */
static void transposed_pads(Import *im, ValueId x, Transposed *t, uint32_t i, AutoPad pad,
                            const int64_t *output_shape) {
  const Window *w = &t->w;
  SymInt size = ex_dim(im, x, 2 + i);
  int64_t extent = (w->kernel[i] - 1) * w->dilation[i] + 1;
  if (!output_shape && pad != PAD_SAME_UPPER && pad != PAD_SAME_LOWER) {
    t->crop_begin[i] = w->begin[i];
    t->crop_end[i] = w->end[i];
    return;
  }
  if (output_shape && !sym_is_const(size)) {
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "output_shape with a symbolic input size");
    return;
  }
  int64_t total = output_shape
                      ? w->stride[i] * (size - 1) + t->output_padding[i] + extent - output_shape[i]
                      : t->output_padding[i] + extent - w->stride[i];
  if (total < 0) { /* the output is larger than the sum: more output padding at the end */
    t->output_padding[i] -= output_shape ? total : 0;
    total = 0;
  }
  t->crop_begin[i] = pad == PAD_SAME_UPPER ? total / 2 : total - total / 2;
  t->crop_end[i] = total - t->crop_begin[i];
}

static bool read_transposed(Import *im, ValueId x, ValueId weight, Transposed *t) {
  Ints values, output_shape;
  *t = (Transposed){0};
  AutoPad pad = attr_auto_pad(im);
  if (!window_read(im, x, vt(im, weight)->dims + 2, &t->w))
    return false;
  bool given = attr_ints(im, "output_padding", &values),
       shaped = attr_ints(im, "output_shape", &output_shape);
  if ((given && values.count != t->w.rank) ||
      (shaped && output_shape.count != t->w.rank && output_shape.count != t->w.rank + 2))
    return import_fail(im, DIAG_ATTR_VALUE, "'%s' has the wrong length for %u spatial dimensions",
                       shaped ? "output_shape" : "output_padding", t->w.rank);
  for (uint32_t i = 0; i < t->w.rank && import_ok(im); i++) {
    t->output_padding[i] = given ? values.at[i] : 0;
    if (t->output_padding[i] < 0 || t->output_padding[i] > INT32_MAX)
      import_fail(im, DIAG_ATTR_VALUE, "output_padding is %lld", (long long)t->output_padding[i]);
    else
      transposed_pads(im, x, t, i, pad,
                      shaped ? output_shape.at + (output_shape.count - t->w.rank) : NULL);
  }
  return import_ok(im);
}

/* The kernel takes equal pads on both sides and output padding below the stride; everything else is
 * cut out of a larger result, or (output padding beyond the stride) filled with the bias, which a
 * crop cannot make: that case is refused. */
void translate_conv_transpose(Import *im) {
  ValueId x = in_required(im, 0), weight = in_required(im, 1), bias = in(im, 2);
  Transposed t;
  check_ranks(im, x, weight);
  int64_t group = attr_int(im, "group", 1);
  if (!read_transposed(im, x, weight, &t))
    return;
  const Window *w = &t.w;
  int64_t padding[SPATIAL_MAX], extra[SPATIAL_MAX];
  for (uint32_t i = 0; i < w->rank; i++) {
    padding[i] = min_i64(t.crop_begin[i], t.crop_end[i]);
    t.crop_begin[i] -= padding[i];
    t.crop_end[i] -= padding[i];
    int64_t cancel =
        min_i64(t.output_padding[i], t.crop_end[i]); /* padding that the crop would cut again */
    extra[i] = t.output_padding[i] - cancel;
    t.crop_end[i] -= cancel;
    if (extra[i] >= w->stride[i] && extra[i] >= w->dilation[i])
      import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                  "output padding %lld is not below stride %lld or dilation %lld",
                  (long long)extra[i], (long long)w->stride[i], (long long)w->dilation[i]);
  }
  ValueId y =
      build(&im->b, OP_CONVOLUTION, A_VAL(x), A_VAL(weight), A_OPT(bias), W_ARG(w->stride, w),
            W_ARG(padding, w), W_ARG(w->dilation, w), A_BOOL(true), W_ARG(extra, w), A_INT(group));
  for (uint32_t i = 0; i < w->rank && import_ok(im); i++)
    y = build_slice(&im->b, y, 2 + i, t.crop_begin[i],
                    sym_sub(&im->g->syms, ex_dim(im, y, 2 + i), t.crop_end[i]), 1);
  out(im, 0, y);
}

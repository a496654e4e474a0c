/* Experimental operators of opset 1, which ended with opset 10. The ONNX documents no longer have
 * them: meaning, defaults and refusals are those of ONNX Runtime. */
#include "onnx/express.h"

/* Input 0, of floats; those of 16 bits as f32, so that no step leaves their range. */
static ValueId wide_floats(Import *im) {
  ValueId x = in_required(im, 0);
  if (import_ok(im) && !dtype_is_float(ex_dtype(im, x)))
    import_fail(im, DIAG_INPUT_TYPE, "input 0 is %s, not float", dtype_name(ex_dtype(im, x)));
  return ex_widen(im, x);
}

/* The result in the element type of input 0. */
static void out_narrow(Import *im, ValueId y) {
  out(im, 0, ex_cast(im, y, ex_dtype(im, in(im, 0))));
}

static void scaled(Import *im, const char *factor, const char *shift) {
  ValueId x = ex_times(im, wide_floats(im), attr_float(im, factor, 1));
  out_narrow(im, shift ? ex_plus(im, x, attr_float(im, shift, 0)) : x);
}

void translate_affine(Import *im) { scaled(im, "alpha", "beta"); }
void translate_scale(Import *im) { scaled(im, "scale", NULL); }

/* alpha * op(beta * x). */
void translate_scaled_unary(Import *im) {
  ValueId x = wide_floats(im);
  double alpha = attr_float_required(im, "alpha"), beta = attr_float_required(im, "beta");
  out_narrow(im, ex_times(im, ex_unary(im, im->op, ex_times(im, x, beta)), alpha));
}

/* Whether x is a batch of images; fails otherwise. */
static bool images(Import *im, ValueId x) {
  if (import_ok(im) && ex_rank(im, x) != 4)
    import_fail(im, DIAG_INPUT_RANK, "input 0 has rank %u, not 4", ex_rank(im, x));
  return import_ok(im);
}

/* scale * x + bias, which has a number for each channel. */
void translate_image_scaler(Import *im) {
  ValueId x = wide_floats(im);
  double factor = attr_float(im, "scale", 1);
  Floats bias;
  bool given = attr_floats(im, "bias", &bias);
  if (!images(im, x))
    return;
  if (!given || ex_fixed(im, x, 1) != (int64_t)bias.count) {
    import_fail(im, DIAG_ATTR_VALUE, "'bias' has %u numbers for %lld channels", bias.count,
                (long long)ex_fixed(im, x, 1));
    return;
  }
  ValueId numbers = build_const(&im->b, DTYPE_F32, 4, (int64_t[]){1, bias.count, 1, 1}, bias.at),
          shift = ex_cast(im, numbers, ex_dtype(im, x)), wide = ex_times(im, x, factor);
  out_narrow(im, ex_add(im, wide, shift));
}

/* Rows or columns of images from `begin` on, up to `end`, both inside. */
static ValueId cropped(Import *im, ValueId x, uint32_t dim, SymInt begin, SymInt end) {
  SymTable *t = &im->g->syms;
  SymInt size = ex_dim(im, x, dim);
  if (sym_known_lt(t, end, begin) == 1 || sym_known_lt(t, size, end) == 1)
    return import_fail(im, DIAG_ATTR_VALUE, "the crop exceeds axis %u of the image", dim);
  graph_add_constraint(im->g, (Constraint){CONSTRAINT_GE, end, begin, im->b.loc});
  graph_add_constraint(im->g, (Constraint){CONSTRAINT_GE, size, end, im->b.loc});
  return ex_slice(im, x, dim, begin, end);
}

static bool sizes_of(Import *im, const char *name, uint32_t count, Ints *sizes) {
  bool right = attr_ints(im, name, sizes) && sizes->count == count;
  for (uint32_t i = 0; right && i < count; i++)
    right = sizes->at[i] >= 0 && sizes->at[i] <= INT32_MAX;
  return right;
}

/* border: left, top, right, bottom; scale: height and width of the result, instead of the last two
 * of these. */
void translate_crop(Import *im) {
  ValueId x = in_required(im, 0);
  Ints border, size;
  bool sized = attr_has(im, "scale");
  if (!images(im, x))
    return;
  if (!sizes_of(im, "border", 4, &border) || (sized && !sizes_of(im, "scale", 2, &size))) {
    import_fail(im, DIAG_ATTR_VALUE, "'border' is not four sizes, or 'scale' not two");
    return;
  }
  for (uint32_t i = 0; i < 2; i++) { /* height, width */
    SymInt begin = border.at[1 - i],
           end = sized ? begin + size.at[i]
                       : sym_sub(&im->g->syms, ex_dim(im, x, 2 + i), border.at[3 - i]);
    x = cropped(im, x, 2 + i, begin, end);
  }
  out(im, 0, x);
}

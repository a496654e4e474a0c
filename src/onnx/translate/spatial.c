/* Windows of convolutions and pools; see spatial.h. Formulas of padding: ONNX operator documents of
 * Conv and AveragePool. */
#include "onnx/express.h"
#include "ir/text.h"
#include "onnx/translate/spatial.h"

AutoPad attr_auto_pad(Import *im) {
  static const AutoPad pads[] = {PAD_EXPLICIT, PAD_VALID, PAD_SAME_UPPER, PAD_SAME_LOWER};
  if (!attr_str(im, "auto_pad", "").size)
    return PAD_EXPLICIT;
  return pads[attr_choice(im, "auto_pad", "", "NOTSET|VALID|SAME_UPPER|SAME_LOWER")];
}

bool attr_list(Import *im, const char *name, uint32_t count, int64_t fill, int64_t least,
               int64_t *list) {
  Ints values;
  bool given = attr_ints(im, name, &values);
  if (!given && fill < least)
    import_fail(im, DIAG_ATTR_MISSING, "attribute '%s' is missing", name);
  if (given && values.count != count)
    import_fail(im, DIAG_ATTR_VALUE, "'%s' has %u entries, %u are wanted", name, values.count,
                count);
  for (uint32_t i = 0; i < count && import_ok(im); i++) {
    list[i] = given ? values.at[i] : fill;
    if (list[i] < least || list[i] > INT32_MAX)
      import_fail(im, DIAG_ATTR_VALUE, "'%s' has entry %lld, not one from %lld to %d", name,
                  (long long)list[i], (long long)least, INT32_MAX);
  }
  return import_ok(im);
}

static void read_kernel(Import *im, const SymInt *weight, Window *w) {
  if (!weight || attr_has(im, "kernel_shape"))
    attr_list(im, "kernel_shape", w->rank, 0, 1, w->kernel);
  for (uint32_t i = 0; weight && i < w->rank && import_ok(im); i++) {
    if (attr_has(im, "kernel_shape") && w->kernel[i] != weight[i])
      import_fail(im, DIAG_ATTR_VALUE,
                  "'kernel_shape' has entry %lld, the weight has size %s there",
                  (long long)w->kernel[i], dim_text(im->g, weight[i]));
    w->kernel[i] = weight[i];
    if (!sym_is_const(weight[i]) || weight[i] < 1 || weight[i] > INT32_MAX)
      import_fail(im, DIAG_SHAPE_MISMATCH, "the weight has kernel size %s",
                  dim_text(im->g, weight[i]));
  }
}

/* SAME: as many outputs as ceil(size / stride), the last window ends at or beyond the last element.
 * What depends on a dynamic size is written so that the pads are known not to be negative, and the
 * padded size comes out as extent + stride * (outputs - 1). */
static void same_pads(Import *im, SymInt size, AutoPad pad, Window *w, uint32_t i) {
  SymTable *t = &im->g->syms;
  int64_t extent = window_extent(w, i), stride = w->stride[i];
  SymInt before = sym_sub(t, size, 1), last = sym_mul(t, sym_floordiv(t, before, stride), stride),
         total = sym_sub(t, sym_add(t, last, extent), size),
         same = sym_sub(t, extent - 1, sym_mod(t, before, stride));
  if (extent < stride)
    same = total = sym_max(t, 0, total);
  SymInt half = sym_floordiv(t, same, 2), rest = sym_sub(t, total, half);
  w->begin[i] = pad == PAD_SAME_UPPER ? half : rest;
  w->end[i] = pad == PAD_SAME_UPPER ? rest : half;
}

static bool is_pad(SymInt pad) { return !sym_is_const(pad) || (pad >= 0 && pad <= INT32_MAX); }

static void read_pads(Import *im, ValueId x, Window *w) {
  AutoPad pad = attr_auto_pad(im);
  bool same = pad == PAD_SAME_UPPER || pad == PAD_SAME_LOWER;
  Ints pads;
  bool given = attr_ints(im, "pads", &pads);
  if (pad == PAD_EXPLICIT && given && pads.count != 2 * w->rank)
    import_fail(im, DIAG_ATTR_VALUE, "'pads' has %u entries for %u spatial dimensions", pads.count,
                w->rank);
  w->ceil = w->ceil && !same; /* as many outputs either way */
  for (uint32_t i = 0; i < w->rank && import_ok(im); i++) {
    w->begin[i] = w->end[i] = 0;
    if (same)
      same_pads(im, ex_dim(im, x, 2 + i), pad, w, i);
    else if (pad == PAD_EXPLICIT && given) {
      w->begin[i] = pads.at[i];
      w->end[i] = pads.at[i + w->rank];
    }
    if (!is_pad(w->begin[i]) || !is_pad(w->end[i]))
      import_fail(im, DIAG_ATTR_VALUE,
                  "'pads' has entries %lld and %lld for axis %u, not from 0 to %d",
                  (long long)w->begin[i], (long long)w->end[i], 2 + i, INT32_MAX);
  }
}

bool window_read(Import *im, ValueId x, const SymInt *kernel, Window *w) {
  *w = (Window){0};
  uint32_t rank = ex_rank(im, x);
  if (rank < 3 || rank > 2 + SPATIAL_MAX)
    return import_fail(im, DIAG_INPUT_RANK, "input has rank %u, 3 to %d are supported", rank,
                       2 + SPATIAL_MAX);
  w->rank = rank - 2;
  w->ceil = attr_flag(im, "ceil_mode", false);
  read_kernel(im, kernel, w);
  attr_list(im, "strides", w->rank, 1, 1, w->stride);
  attr_list(im, "dilations", w->rank, 1, 1, w->dilation);
  if (import_ok(im))
    read_pads(im, x, w);
  return import_ok(im);
}

bool window_symmetric(const Window *w) {
  for (uint32_t i = 0; i < w->rank; i++)
    if (!sym_is_const(w->begin[i]) || w->begin[i] != w->end[i])
      return false;
  return true;
}

ValueId window_pad(Import *im, ValueId x, Window *w, ArgIn value) {
  SymInt pads[2 * SPATIAL_MAX]; /* last dim first, as ATen wants */
  bool any = false;
  for (uint32_t i = 0; i < w->rank; i++) {
    uint32_t at = 2 * (w->rank - 1 - i);
    pads[at] = w->begin[i];
    pads[at + 1] = w->end[i];
    any |= w->begin[i] || w->end[i];
    w->begin[i] = w->end[i] = 0;
  }
  return any && import_ok(im)
             ? build(&im->b, OP_CONSTANT_PAD_ND, A_VAL(x), A_INTS(pads, 2 * w->rank), value)
             : x;
}

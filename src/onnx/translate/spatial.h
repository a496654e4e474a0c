/* What Conv, ConvTranspose and the pools share: attributes of windows that slide over the trailing
 * dims of N, C, D1, D2, … tensors. */
#ifndef ETC_ONNX_SPATIAL_H
#define ETC_ONNX_SPATIAL_H

#include "onnx/translate.h"

#define SPATIAL_MAX 3

typedef struct Window {
  uint32_t rank; /* spatial dims, 1 to 3 */
  int64_t kernel[SPATIAL_MAX], stride[SPATIAL_MAX], dilation[SPATIAL_MAX];
  SymInt begin[SPATIAL_MAX], end[SPATIAL_MAX]; /* pads: numbers, but with auto_pad SAME (or where
                                                  ceil_mode is written out) of a dynamic size;
                                                  not set for ConvTranspose with auto_pad */
  bool ceil;
} Window;

typedef enum AutoPad { PAD_EXPLICIT, PAD_SAME_UPPER, PAD_SAME_LOWER, PAD_VALID } AutoPad;
AutoPad attr_auto_pad(Import *im);
/* An attribute of `count` entries from `least` on; absent: all `fill`, or an error when that is
 * less. */
bool attr_list(Import *im, const char *name, uint32_t count, int64_t fill, int64_t least,
               int64_t *list);

/* Reads kernel_shape (or takes `kernel`, the weight's dims, when given: both must agree), strides,
 * dilations, pads, auto_pad and ceil_mode for input x of rank 2 + spatial. Fails on wrong lengths,
 * non-positive entries and negative pads. */
bool window_read(Import *im, ValueId x, const SymInt *kernel, Window *w);
/* The elements along dim i from the first to the last of a window. */
static inline int64_t window_extent(const Window *w, uint32_t i) {
  return (w->kernel[i] - 1) * w->dilation[i] + 1;
}
/* True when begin and end are equal numbers on every dim: what the kernels can do themselves. */
bool window_symmetric(const Window *w);
/* x with all of w's pads added as elements of this value (constant_pad_nd), w's pads set to 0. */
ValueId window_pad(Import *im, ValueId x, Window *w, ArgIn value);
/* The convolution of x with these weights, bias may be 0, by the strides, pads and dilations of w.
 */
ValueId window_convolve(Import *im, ValueId x, ValueId weight, ValueId bias, const Window *w,
                        int64_t group);
/* The convolution that the current node's attributes describe; bias may be 0. */
ValueId window_convolution(Import *im, ValueId x, ValueId weight, ValueId bias);
/* The pools that they describe; window_max binds output 1, the indices, where it is wanted.
 * count_ceil: what ceil_mode lets a window reach beyond the pads counts as pads do, as in ONNX
 * Runtime's pools of codes (ONNX's AveragePool does not count it). */
ValueId window_average(Import *im, ValueId x, bool count_ceil);
ValueId window_max(Import *im, ValueId x);
/* One entry a dim as INTS arguments. */
#define W_ARG(array, w) A_INTS(array, (w)->rank)

#endif

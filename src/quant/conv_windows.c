/* See conv_windows.h. */
#include "quant/conv_windows.h"

enum { STRIDE = 3, PADDING, DILATION, TRANSPOSED }; /* arguments of aten::convolution */

/* Lists of one number are for all dims. */
static int64_t spatial_arg(const Graph *g, NodeId n, uint32_t arg, uint32_t d) {
  uint32_t count = node_list_count(g, n, arg);
  return count ? node_ints(g, n, arg)[d < count ? d : count - 1] : arg != PADDING;
}

bool conv_windows(ConvWindows *w, const Graph *g, NodeId n, const Tensor *x) {
  const Type *weight = value_type(g, node_value(g, n, 1));
  if (x->rank < 3 || x->rank > 5 || weight->rank != x->rank || !type_is_static(weight) ||
      node_bool(g, n, TRANSPOSED))
    return false;
  *w = (ConvWindows){.channels = x->dims[1], .taps = 1, .count = x->dims[0]};
  for (uint32_t k = 0, from = 5 - x->rank; k < 3; k++) {
    bool there = k >= from;
    uint32_t d = k - from;
    w->size[k] = there ? x->dims[2 + d] : 1;
    w->kernel[k] = there ? weight->dims[2 + d] : 1;
    w->stride[k] = there ? spatial_arg(g, n, STRIDE, d) : 1;
    w->pad[k] = there ? spatial_arg(g, n, PADDING, d) : 0;
    w->dilation[k] = there ? spatial_arg(g, n, DILATION, d) : 1;
    int64_t room = w->size[k] + 2 * w->pad[k] - w->dilation[k] * (w->kernel[k] - 1) - 1;
    w->result[k] = room < 0 || w->stride[k] < 1 ? 0 : room / w->stride[k] + 1;
    w->taps *= w->kernel[k];
    w->count *= w->result[k];
  }
  return true;
}

/* Where the tap reads along one dim; -1: in the padding. */
static int64_t read_at(const ConvWindows *w, uint32_t d, int64_t place, int64_t tap) {
  int64_t at = place * w->stride[d] - w->pad[d] + tap * w->dilation[d];
  return at < w->size[d] ? at : -1;
}

void conv_window(const ConvWindows *w, const float *x, int64_t i, float *out) {
  int64_t area = w->size[0] * w->size[1] * w->size[2], x_place = i % w->result[2],
          y_place = i / w->result[2] % w->result[1],
          z_place = i / w->result[2] / w->result[1] % w->result[0],
          image = i / w->result[2] / w->result[1] / w->result[0];
  x += image * w->channels * area;
  for (int64_t t = 0; t < w->taps; t++) {
    int64_t z = read_at(w, 0, z_place, t / w->kernel[2] / w->kernel[1]),
            y = read_at(w, 1, y_place, t / w->kernel[2] % w->kernel[1]),
            column = read_at(w, 2, x_place, t % w->kernel[2]);
    bool inside = z >= 0 && y >= 0 && column >= 0;
    int64_t at = (z * w->size[1] + y) * w->size[2] + column;
    for (int64_t c = 0; c < w->channels; c++)
      out[c * w->taps + t] = inside ? x[c * area + at] : 0;
  }
}

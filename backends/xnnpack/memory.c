/* See memory.h. The rules are those of XNNPACK in ExecuTorch 1.4.1, seen from outside, with the
 * tiles of its AVX-512 kernels; other CPUs have smaller ones. Compared with the growth of the
 * anonymous memory of a process. */
#include "backends/xnnpack/memory.h"

#include "backends/xnnpack/workspace.h"
#include "ops/work.h"

enum {
  CHANNEL_TILE = 16, /* output channels that a kernel computes at once: packed weights are padded */
  POINTER = 8        /* bytes: kernels of convolutions find their operands by pointers */
};

static uint64_t elements(const XrValue *v) {
  uint64_t count = 1;
  for (uint8_t i = 0; i < v->rank; i++)
    count = work_times(count, v->dims[i]);
  return count;
}

static uint64_t last_dim(const XrValue *v, uint32_t from_end) {
  return v->rank >= from_end ? v->dims[v->rank - from_end] : 1;
}

static uint64_t taps(const XrWindow *w) { return work_times(w->kernel[0], w->kernel[1]); }

static uint64_t work_of(const XrGraph *x, const XrNode *n) {
  const XrValue *in = &x->values[n->inputs[0]], *out = &x->values[n->output];
  switch (xr_form(n->kind)) {
  case XR_FORM_CONVOLUTION:
    return n->kind == XR_ConvTranspose2d
               ? work_times(elements(in), work_times(taps(&n->window), n->window.group_out))
               : work_times(elements(out), work_times(taps(&n->window), n->window.group_in));
  case XR_FORM_PRODUCT:
    return work_times(elements(out), last_dim(in, 1));
  case XR_FORM_BINARY:
    return n->kind == XR_BatchMatrixMultiply ? work_times(elements(out), last_dim(in, 1)) : 0;
  default:
    return 0;
  }
}

uint64_t xr_work(const XrGraph *x) {
  uint64_t work = 0;
  for (uint32_t i = 0; i < x->node_count; i++)
    work = work_plus(work, work_of(x, &x->nodes[i]));
  return work;
}

/* --- packed weights --- */

/* Of `groups` matrices: a bias and a column for each output channel, and its scale. */
static uint64_t packed_matrices(uint64_t groups, uint64_t rows, uint64_t channels,
                                const XrValue *filter) {
  XrValue column = {.datatype = filter->datatype, .rank = 1, .dims = {1}};
  uint64_t padded = align_up(channels, CHANNEL_TILE), own = 4, bits;
  if (rows > UINT32_MAX)
    return UINT64_MAX;
  column.dims[0] = (uint32_t)rows;
  own += xr_value_bytes(&column, &bits) ? bits : UINT32_MAX;
  if (filter->datatype == XR_QBINT4)
    own += xr_scale_bytes(filter) / (filter->dims[0] ? filter->dims[0] : 1);
  else if (xr_scheme(filter->datatype) != XR_PLAIN)
    own += 4;
  return work_times(groups, work_times(padded, own));
}

static uint64_t packed_node(const XrGraph *x, const XrNode *n) {
  bool product = xr_form(n->kind) == XR_FORM_PRODUCT || n->kind == XR_BatchMatrixMultiply;
  if (!product && !xr_has(n->kind, XR_WEIGHTED))
    return 0;
  const XrValue *filter = &x->values[n->inputs[1]];
  const XrWindow *w = &n->window;
  if (product) {
    uint64_t rows = last_dim(&x->values[n->inputs[0]], 1),
             channels = last_dim(&x->values[n->output], 1), one = work_times(rows, channels);
    return packed_matrices(one ? elements(filter) / one : 0, rows, channels, filter);
  }
  if (n->kind == XR_DepthwiseConv2d)
    return packed_matrices(1, taps(w), work_times(w->groups, w->group_out), filter);
  return packed_matrices(w->groups, work_times(taps(w), w->group_in), w->group_out, filter);
}

static bool is_packed_once(const XrGraph *x, const XrNode *n) {
  return n->input_count > 1 && x->values[n->inputs[1]].constant;
}

uint64_t xr_packed(const XrGraph *x) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < x->node_count; i++)
    if (is_packed_once(x, &x->nodes[i]))
      bytes = work_plus(bytes, packed_node(x, &x->nodes[i]));
  return bytes;
}

uint64_t xr_packed_each_call(const XrGraph *x, const XrNode *n) {
  return n->input_count > 1 && !is_packed_once(x, n) ? packed_node(x, n) : 0;
}

/* --- workspace --- */

/* Pointers to the operands of a convolution whose windows overlap. */
static uint64_t own_bytes(const XrGraph *x, const XrNode *n) {
  const XrValue *out = &x->values[n->output];
  const XrWindow *w = &n->window;
  if (xr_form(n->kind) != XR_FORM_CONVOLUTION)
    return 0;
  if (taps(w) == 1 || out->rank != 4)
    return 0;
  /* Windows of a depthwise kernel share those of the columns in which they overlap. */
  uint64_t columns = n->kind == XR_DepthwiseConv2d && w->dilation[1] == 1
                         ? min_i64(w->stride[1], w->kernel[1])
                         : w->kernel[1];
  return work_times(work_times(out->dims[1], out->dims[2]),
                    work_times(work_times(columns, w->kernel[0]), POINTER));
}

uint64_t xr_workspace(const XrGraph *x, Arena *arena) {
  uint64_t own = 0;
  for (uint32_t i = 0; i < x->node_count; i++)
    own = work_plus(own, own_bytes(x, &x->nodes[i]));
  return work_plus(xr_workspace_values(x, arena), own);
}

/* aten::convolution with three spatial dims, which the runtime has no kernel for, as one with two.
 *
 * A window that is long in depth alone is one of an image with the depth as its height and all
 * places of a plane as its width: [N, C, D, H * W].
 *
 * Where each channel has a kernel of its own, its taps in depth are convolutions of planes, whose
 * results are added. That is for backends, which have kernels for these: of the runtime's kernels
 * it would take more calls.
 *
 * Averages are such kernels, too, of one number: they become pools of faces and of the depth.
 *
 * Otherwise the depth taps of each output plane are gathered next to each other (index_select by a
 * constant index) and become input channels. [N, C, D, H, W] -> [N, C, D', K, H, W] -> [N * D',
 * C * K, H, W]; the weight [M, C / g, K, h, w] is [M, C / g * K, h, w] without moving a byte, and
 * groups stay together. Where the depth is known only as a range, the index is computed while
 * running.
 *
 * A transposed convolution gathers too. Output planes s * q + r, s being the stride in depth, meet
 * every s-th tap of the kernel, others for each r: each r is a convolution of its own, and their
 * planes are interleaved. Taps that no input plane reaches take one of zeros. Each r is one of
 * stride 1 whose taps go back from the plane q + c, so that the index can be computed while
 * running, too. */
#include <float.h>
#include <math.h>

#include "ir/match.h"
#include "passes/core/decompose.h"
#include "support/number.h"

enum { TAPS_MAX = 1 << 20, PHASES_MAX = 8, SUMMED_MAX = 16 };

typedef struct Depth {
  SymInt in, out; /* plain numbers, or sizes */
  int64_t taps, stride, padding, dilation;
  int64_t phase, step; /* of a part: its output planes, and its taps, are step apart */
} Depth;

static bool is_fixed(const Depth *d) { return sym_is_const(d->in) && sym_is_const(d->out); }

/* The first tap of the kernel that a phase meets: the others have zeros between the planes. */
static int64_t first_tap(const Depth *d) { return (d->phase + d->padding) % d->step; }

/* The input plane of tap k of output plane o; `in` stands for zeros. */
static int64_t plane_of(const Depth *d, bool transposed, int64_t o, int64_t k) {
  if (transposed) {
    k = first_tap(d) + k * d->step;
    o = d->phase + o * d->step;
  }
  int64_t at =
      transposed ? o + d->padding - k * d->dilation : o * d->stride - d->padding + k * d->dilation;
  if (transposed && at >= 0)
    at = at % d->stride ? d->in : at / d->stride;
  return at < 0 || at >= d->in ? d->in : at;
}

/* The taps of all output planes one behind the other. */
static ValueId fixed_taps(Builder *b, ValueId x, const Depth *d, bool transposed) {
  uint32_t count = (uint32_t)(d->out * d->taps);
  int64_t *planes = ARENA_ARRAY(&b->g->arena, int64_t, count);
  bool zeros = false, same = d->taps == 1 && d->out == d->in;
  for (uint32_t i = 0; i < count; i++) {
    planes[i] = plane_of(d, transposed, i / d->taps, i % d->taps);
    zeros |= planes[i] == d->in;
    same &= planes[i] == i;
  }
  if (same)
    return x;
  x = build_pad(b, x, 2, 0, zeros);
  ValueId index = build_const_ints(b, planes, count);
  return build(b, OP_INDEX_SELECT, A_VAL(x), A_INT(2), A_VAL(index));
}

/* Where the first output plane of a transposed part begins: the input plane of its first tap. */
static int64_t first_plane(const Depth *d) {
  return (d->phase + d->padding - first_tap(d)) / d->step;
}

/* Output planes that a transposed part has beyond those of the input. */
static bool planes_beyond(SymTable *t, const Depth *d, int64_t *out) {
  SymInt more = sym_sub(t, d->out, d->in);
  *out = sym_is_const(more) ? more : 0;
  return sym_is_const(more);
}

/* As fixed_taps; a transposed part has stride 1 and goes back from tap to tap. */
static ValueId dynamic_taps(Builder *b, ValueId x, const Depth *d, bool transposed) {
  int64_t before = d->padding, after = d->padding, first = transposed ? first_plane(d) : 0;
  if (d->taps == 1 && d->in == d->out && !first && !before)
    return x;
  int64_t *taps = ARENA_ARRAY(&b->g->arena, int64_t, (size_t)d->taps);
  int64_t back = (d->taps - 1) * d->dilation;
  if (transposed && planes_beyond(&b->g->syms, d, &after)) {
    before = max_i64(back - first, 0);
    after = max_i64(after + first, 0);
    first += before;
  }
  for (int64_t k = 0; k < d->taps; k++)
    taps[k] = transposed ? first - k * d->dilation : k * d->dilation;
  x = build_pad(b, x, 2, before, after);
  ValueId index = build(b, OP_ARANGE, A_INT(d->out), A_DTYPE(DTYPE_I64));
  ValueId stride = build_scalar_int(b, DTYPE_I64, transposed ? 1 : d->stride);
  ValueId offsets = build_const_ints(b, taps, (uint32_t)d->taps);
  index = build_view(b, build_binary(b, OP_MUL_TENSOR, index, stride), (SymInt[]){d->out, 1}, 2);
  index = build_binary(b, OP_ADD_TENSOR, index, offsets);
  index = build_view(b, index, (SymInt[]){sym_mul(&b->g->syms, d->out, d->taps)}, 1);
  return build(b, OP_INDEX_SELECT, A_VAL(x), A_INT(2), A_VAL(index));
}

/* [N, C, D, H, W] -> [N * D', C * K, H, W] */
static ValueId gather_taps(Builder *b, ValueId x, const Depth *d, bool transposed) {
  Graph *g = b->g;
  SymInt dims[5];
  memcpy(dims, value_type(g, x)->dims, sizeof dims);
  x = is_fixed(d) ? fixed_taps(b, x, d, transposed) : dynamic_taps(b, x, d, transposed);
  if (b->status != STATUS_OK)
    return 0;
  SymInt n = dims[0], c = dims[1], h = dims[3], w = dims[4];
  x = build_view(b, x, (SymInt[]){n, c, d->out, d->taps, h, w}, 6);
  x = build_permute(b, x, (int64_t[]){0, 2, 1, 3, 4, 5});
  SymInt batch = sym_mul(&g->syms, n, d->out), channels = sym_mul(&g->syms, c, d->taps);
  return build_view(b, x, (SymInt[]){batch, channels, h, w}, 4);
}

static ValueId flat_weight(Builder *b, ValueId weight, bool transposed) {
  SymInt d[5];
  memcpy(d, value_type(b->g, weight)->dims, sizeof d);
  if (!transposed)
    return build_view(b, weight, (SymInt[]){d[0], sym_mul(&b->g->syms, d[1], d[2]), d[3], d[4]}, 4);
  weight = build_permute(b, weight, (int64_t[]){0, 2, 1, 3, 4});
  return build_view(b, weight, (SymInt[]){sym_mul(&b->g->syms, d[0], d[2]), d[1], d[3], d[4]}, 4);
}

typedef struct Conv3 {
  NodeId n;
  ValueId x, weight, bias;
  SymInt result[5], stride[2], padding[2], dilation[2], extra[2], groups;
  bool transposed;
  Depth depth;
} Conv3;

static bool is_column(const Graph *g, const Conv3 *c) {
  for (uint32_t i = 0; i < 2; i++)
    if (value_dim(g, c->weight, 3 + i) != 1 || c->stride[i] != 1 || c->padding[i] || c->extra[i] ||
        !sym_is_const(value_dim(g, c->x, 3 + i)))
      return false;
  return true;
}

static bool has_phases(const Depth *d) {
  return d->stride > 1 && d->stride <= PHASES_MAX && d->dilation == 1 && d->stride <= d->taps;
}

/* Output planes of each phase, of which the last ones may be too many. */
static SymInt planes_of_phase(SymTable *t, const Depth *d) {
  SymInt more = sym_sub(t, d->out, sym_mul(t, d->in, d->stride));
  return sym_is_const(more) ? sym_add(t, d->in, sym_ceildiv(t, more, d->stride))
                            : sym_ceildiv(t, d->out, d->stride);
}

/* Whether a transposed convolution over a dynamic depth can be computed by phases of stride 1. */
static bool has_dynamic_phases(Graph *g, const Depth *d) {
  Depth phase = *d;
  int64_t more;
  if (has_phases(d))
    phase.out = planes_of_phase(&g->syms, d);
  else if (d->stride != 1)
    return false;
  return planes_beyond(&g->syms, &phase, &more) && sym_lower(&g->syms, phase.out) >= 1;
}

static bool read_conv(Graph *g, NodeId n, Conv3 *c) {
  *c = (Conv3){.n = n,
               .x = node_value(g, n, 0),
               .weight = node_value(g, n, 1),
               .bias = node_value(g, n, 2),
               .groups = node_int(g, n, 8),
               .transposed = node_bool(g, n, 6)};
  if (value_rank(g, c->x) != 5)
    return false;
  memcpy(c->result, value_type(g, node_result(g, n, 0))->dims, sizeof c->result);
  SymInt taps = value_dim(g, c->weight, 2);
  Depth *d = &c->depth;
  *d = (Depth){.in = value_dim(g, c->x, 2), .out = c->result[2], .taps = taps, .step = 1};
  if (!sym_is_const(taps) || !sym_is_const(c->result[1]) || sym_lower(&g->syms, d->out) < 1 ||
      taps < 1 || sym_upper(&g->syms, d->out) > TAPS_MAX / taps)
    return false; /* stays, and is refused for want of a kernel */
  d->stride = node_entry(g, n, 3, 0, 0);
  d->padding = node_entry(g, n, 4, 0, 0);
  d->dilation = node_entry(g, n, 5, 0, 0);
  for (uint32_t i = 0; i < 2; i++) {
    c->stride[i] = node_entry(g, n, 3, 1 + i, 0);
    c->padding[i] = node_entry(g, n, 4, 1 + i, 0);
    c->dilation[i] = node_entry(g, n, 5, 1 + i, 0);
    c->extra[i] = node_entry(g, n, 7, 1 + i, 0);
  }
  return is_fixed(d) || !c->transposed || is_column(g, c) || has_dynamic_phases(g, d);
}

/* --- windows in depth alone --- */

static ValueId column_convolution(Builder *b, const Conv3 *c) {
  Graph *g = b->g;
  SymInt x[5], w[5];
  memcpy(x, value_type(g, c->x)->dims, sizeof x);
  memcpy(w, value_type(g, c->weight)->dims, sizeof w);
  const Depth *d = &c->depth;
  ValueId image = build_view(b, c->x, (SymInt[]){x[0], x[1], x[2], x[3] * x[4]}, 4),
          weight = build_view(b, c->weight, (SymInt[]){w[0], w[1], w[2], 1}, 4);
  ValueId y = build(b, OP_CONVOLUTION, A_VAL(image), A_VAL(weight), A_OPT(c->bias),
                    A_INTS(((SymInt[]){d->stride, 1}), 2), A_INTS(((SymInt[]){d->padding, 0}), 2),
                    A_INTS(((SymInt[]){d->dilation, 1}), 2), A_BOOL(c->transposed),
                    A_INTS(((SymInt[]){node_entry(g, c->n, 7, 0, 0), 0}), 2), A_INT(c->groups));
  return build_view(b, y, c->result, 5);
}

/* --- kernels of single channels --- */

static bool is_depthwise(const Builder *b, const Conv3 *c) {
  const Graph *g = b->g;
  const Depth *d = &c->depth;
  const bool *for_backends = b->data;
  bool fixed = is_fixed(d) && sym_is_const(value_dim(g, c->x, 0));
  return *for_backends && fixed && !c->transposed && c->groups > 1 &&
         value_dim(g, c->weight, 1) == 1 && d->taps > 1 && d->taps <= SUMMED_MAX &&
         value_is_const(g, c->weight) && value_dtype(g, c->weight) == DTYPE_F32;
}

/* Planes [N * D, C, H, W] with those of zeros that the taps reach: of one image around it, of
 * several one at the end. */
static ValueId with_zeros(Builder *b, ValueId planes, const Depth *d, SymInt images) {
  int64_t last = (d->out - 1) * d->stride + (d->taps - 1) * d->dilation - d->padding,
          before = images == 1 ? d->padding : 0, after = last < d->in ? 0 : last - d->in + 1;
  if (images > 1)
    after = d->padding > 0 || after > 0;
  return build_pad(b, planes, 0, before, after);
}

/* The planes that tap k meets, of all images: [N * D', C, H, W]. */
static ValueId planes_of_tap(Builder *b, ValueId planes, const Depth *d, SymInt images, int64_t k) {
  int64_t first = k * d->dilation;
  if (images == 1)
    return build_slice(b, planes, 0, first, first + (d->out - 1) * d->stride + 1, d->stride);
  uint32_t count = (uint32_t)(images * d->out);
  int64_t *index = ARENA_ARRAY(&b->g->arena, int64_t, count);
  for (uint32_t i = 0; i < count; i++) {
    int64_t plane = plane_of(d, false, i % d->out, k);
    index[i] = plane == d->in ? images * d->in : i / d->out * d->in + plane;
  }
  ValueId at = build_const_ints(b, index, count);
  return build(b, OP_INDEX_SELECT, A_VAL(planes), A_INT(0), A_VAL(at));
}

static ValueId depthwise_convolution(Builder *b, const Conv3 *c) {
  Graph *g = b->g;
  const Depth *d = &c->depth;
  SymInt x[5], w[5];
  memcpy(x, value_type(g, c->x)->dims, sizeof x);
  memcpy(w, value_type(g, c->weight)->dims, sizeof w);
  ValueId in_order = build_permute(b, c->x, (int64_t[]){0, 2, 1, 3, 4});
  ValueId planes = build_view(b, in_order, (SymInt[]){x[0] * d->in, x[1], x[3], x[4]}, 4);
  planes = with_zeros(b, planes, d, x[0]);
  ValueId sum = 0;
  for (int64_t k = 0; k < d->taps && b->status == STATUS_OK; k++) {
    ValueId tap = build_slice(b, c->weight, 2, k, k + 1, 1);
    ValueId flat = build_view(b, tap, (SymInt[]){w[0], w[1], w[3], w[4]}, 4);
    ValueId met = planes_of_tap(b, planes, d, x[0], k);
    ValueId part = build(b, OP_CONVOLUTION, A_VAL(met), A_VAL(flat), A_OPT(k ? 0 : c->bias),
                         A_INTS(c->stride, 2), A_INTS(c->padding, 2), A_INTS(c->dilation, 2),
                         A_BOOL(false), A_INTS(c->extra, 2), A_INT(c->groups));
    sum = k ? build(b, OP_ADD_TENSOR, A_VAL(sum), A_VAL(part)) : part;
  }
  return sum;
}

/* --- averages --- */

static bool is_dense(const Conv3 *c) {
  bool dense = !c->transposed && !c->depth.padding && c->depth.dilation == 1;
  for (uint32_t i = 0; i < 2; i++)
    dense = dense && !c->padding[i] && c->dilation[i] == 1;
  return dense;
}

/* v is a constant of f32 that are all this number. Not of bytes that would have to be computed to
 * answer that. */
static bool is_of_one_number(const Graph *g, ValueId v, double *number) {
  const Constant *c = value_lazy_constant(g, v);
  if (!c || c->transform || c->size == 0 || value_dtype(g, v) != DTYPE_F32)
    return false;
  *number = (double)float_at(c->data, 0);
  return match_filled(g, v, *number);
}

/* A kernel of one number, as an average pool is imported: the number, times the elements of a
 * window, or 0. For backends, which average images faster than they multiply planes. */
static double average_of_boxes(const Builder *b, const Conv3 *c) {
  const Graph *g = b->g;
  const bool *for_backends = b->data;
  double number, face = (double)value_dim(g, c->weight, 3) * (double)value_dim(g, c->weight, 4);
  bool fixed = is_fixed(&c->depth) && sym_is_const(c->result[3]) && sym_is_const(c->result[4]),
       each = value_dim(g, c->weight, 1) == 1 && c->result[1] == value_dim(g, c->x, 1),
       box = c->depth.taps > 1 && face > 1; /* of others one convolution is left */
  if (!*for_backends || !fixed || !each || !box || c->bias || !is_dense(c) ||
      !is_of_one_number(g, c->weight, &number))
    return 0;
  return number * face * (double)c->depth.taps;
}

static ValueId average(Builder *b, ValueId image, const SymInt kernel[2], const SymInt stride[2]) {
  SymInt none[] = {0, 0};
  return build(b, OP_AVG_POOL2D, A_VAL(image), A_INTS(kernel, 2), A_INTS(stride, 2),
               A_INTS(none, 2), A_BOOL(false), A_BOOL(true));
}

/* Of the face of each plane, then of these along the depth. */
static ValueId boxes_convolution(Builder *b, const Conv3 *c, double factor) {
  Graph *g = b->g;
  const Depth *d = &c->depth;
  SymInt x[5];
  memcpy(x, value_type(g, c->x)->dims, sizeof x);
  SymInt face[] = {value_dim(g, c->weight, 3), value_dim(g, c->weight, 4)},
         planes[] = {x[0], sym_mul(&g->syms, x[1], x[2]), x[3], x[4]},
         columns[] = {x[0], x[1], x[2], c->result[3] * c->result[4]};
  ValueId y = average(b, build_view(b, c->x, planes, 4), face, c->stride);
  y = average(b, build_view(b, y, columns, 4), (SymInt[]){d->taps, 1}, (SymInt[]){d->stride, 1});
  y = build_view(b, y, c->result, 5);
  if (fabs(factor - 1) < FLT_EPSILON)
    return y;
  return build_binary(b, OP_MUL_TENSOR, y, decompose_number(b, y, factor));
}

/* --- planes --- */

/* The convolution of the planes that d describes, [N * D', M, H', W']. */
static ValueId plane_convolution(Builder *b, const Conv3 *c, const Depth *d, ValueId weight) {
  ValueId planes = gather_taps(b, c->x, d, c->transposed);
  ValueId flat = flat_weight(b, weight, c->transposed);
  return build(b, OP_CONVOLUTION, A_VAL(planes), A_VAL(flat), A_OPT(c->bias), A_INTS(c->stride, 2),
               A_INTS(c->padding, 2), A_INTS(c->dilation, 2), A_BOOL(c->transposed),
               A_INTS(c->extra, 2), A_INT(c->groups));
}

/* Planes of all phases, interleaved: [N, D', M, H', W']; 0 where each tap meets every plane, or
 * there are phases without taps. */
static ValueId interleaved_phases(Builder *b, const Conv3 *c) {
  Graph *g = b->g;
  Depth d = c->depth;
  d.step = d.stride;
  if (!c->transposed || !has_phases(&d))
    return 0;
  ValueId phases[PHASES_MAX];
  SymInt each = planes_of_phase(&g->syms, &d), rows = sym_mul(&g->syms, c->result[0], each),
         m = c->result[1], h = c->result[3], w = c->result[4];
  d.out = each;
  for (d.phase = 0; d.phase < d.stride; d.phase++) {
    int64_t first = first_tap(&d);
    d.taps = (c->depth.taps - first + d.stride - 1) / d.stride;
    ValueId weight = build_slice(b, c->weight, 2, first, c->depth.taps, d.stride);
    ValueId y = plane_convolution(b, c, &d, weight);
    phases[d.phase] = build_view(b, y, (SymInt[]){rows, 1, m, h, w}, 5);
  }
  ValueId y = build(b, OP_CAT, A_VALS(phases, (uint32_t)d.stride), A_INT(1));
  y = build_view(b, y, (SymInt[]){c->result[0], sym_mul(&g->syms, each, d.stride), m, h, w}, 5);
  return build_slice(b, y, 1, 0, c->depth.out, 1);
}

ValueId decompose_convolution(Builder *b, NodeId n) {
  Conv3 c;
  if (!read_conv(b->g, n, &c))
    return 0;
  if (is_column(b->g, &c))
    return column_convolution(b, &c);
  double factor = average_of_boxes(b, &c);
  if (factor != 0)
    return boxes_convolution(b, &c, factor);
  ValueId y = interleaved_phases(b, &c);
  if (!y && b->status == STATUS_OK) {
    y = is_depthwise(b, &c) ? depthwise_convolution(b, &c)
                            : plane_convolution(b, &c, &c.depth, c.weight);
    y = build_view(b, y,
                   (SymInt[]){c.result[0], c.result[2], c.result[1], c.result[3], c.result[4]}, 5);
  }
  return build_permute(b, y, (int64_t[]){0, 2, 1, 3, 4});
}

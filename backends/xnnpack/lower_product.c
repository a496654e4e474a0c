/* Convolutions of constant weights as products.
 *
 * XNNPACK's loop for kernels of several taps takes 2.4 times as long as the one for products on
 * CPUs with AVX2, whatever the sizes: as ExecuTorch 1.4.1 is built, one of its ten sums is in
 * memory there. With AVX-512 both are equally fast, and the copies are lost. So a convolution is a
 * product where that gains much more with AVX2 than it loses with AVX-512: for many output
 * channels.
 *
 * BY_WINDOWS: what all taps meet is next to each other. BY_PATCHES: the same where windows neither
 * overlap nor leave gaps, so that each element only changes its place. BY_ROWS: what the taps of a
 * row of the kernel meet is; the product gives the rows of the kernel each a result of its own, and
 * these are shifted and added. That copies a third of the image's elements, and three times the
 * result's.
 *
 * Where the copies would take much memory, the result is computed in strips, whose copies take the
 * place of each other; but XNNPACK packs the weights for each strip. */
#include <math.h>

#include "backends/xnnpack/convolution.h"

enum {
  MOST_TAPS = 9,        /* that are joined, or rows of a kernel */
  CACHED = 3 << 20,     /* bytes of which copies stay in caches */
  FAR = 2,              /* times as long each copy takes of more */
  MOST_BYTES = 4 << 20, /* of copies and further weights, or as many as image and result take and */
  MOST_OF_WEIGHTS = 4,  /* so many times the weights */
  MOST_STRIPS = 25,     /* two steps of joining five */
  BYTES_OF_STRIP = 1500, /* of nodes in the file */
  LEAST_CHANNELS = 16,   /* of the image: copies of fewer take longer than what they hold */
  LONG_RUN = 16,         /* elements next to each other that are moved as fast as they are joined */
  EIGHT = 8              /* outputs beyond sixteens that CPUs without AVX-512 compute slowly */
};
#define MOST_LOSS 1.4  /* with AVX-512; on Arm, where a product takes longer, it is less */
#define LEAST_GAIN 1.1 /* by which an estimate must be better */

/* ns for one input channel and tap of 16 outputs, in one node and as a product. */
static const struct {
  double node, product;
} with_avx512 = {0.3, 0.3},   /* a Xeon, of what tests/bench/convolutions.py shows */
    with_avx2 = {1.03, 0.44}; /* Zen 3: 31 and 73 GFLOP/s, of 64 to 512 channels */

typedef enum Way { BY_NODE, BY_WINDOWS, BY_ROWS, BY_PATCHES } Way;

/* What a way takes: copies in ns, sixteens of outputs for one input channel and tap. */
typedef struct Cost {
  double copies, products;
} Cost;

/* What a convolution may be. */
typedef struct Choice {
  bool rows;       /* BY_ROWS */
  uint32_t strips; /* at most */
} Choice;

typedef struct Plan {
  Way way;
  uint32_t strips;
  Cost cost;
} Plan;

static double far(double elements) { return elements * sizeof(float) > CACHED ? FAR : 1; }

static double image_of(const Windows *w, double batch) {
  return batch * w->in[0] * w->in[1] * w->c->in_channels;
}

static double result_of(const Windows *w, double batch) {
  return batch * w->out[0] * w->out[1] * w->c->out_channels;
}

static double padded_image(const Windows *w, double batch) {
  return w->before[0] || w->before[1] ? image_of(w, batch) * TIME_READ : 0;
}

/* --- by windows --- */

static double elements_of_windows(const Windows *w, double batch) {
  const Convolution *c = w->c;
  return batch * w->out[0] * w->out[1] * c->kernel[0] * c->kernel[1] * c->in_channels;
}

static Cost cost_of_windows(const Windows *w, double batch, uint32_t strips) {
  const Convolution *c = w->c;
  uint32_t taps = c->kernel[0] * c->kernel[1];
  double gathered = elements_of_windows(w, batch),
         each = taps > 1 ? TIME_READ + TIME_COPIED : TIME_READ,
         copies = (gathered * each + padded_image(w, batch)) * far(gathered / strips);
  return (Cost){copies + (double)strips * taps * TIME_SMALL_NODE,
                gathered * sixteens(c->out_channels)};
}

/* --- by rows --- */

/* Rows of the image that windows begin in. */
static double rows_met(const Windows *w, uint32_t strips) {
  const Convolution *c = w->c;
  return w->out[0] + (double)strips * (c->kernel[0] - 1) * c->dilation[0];
}

static double elements_of_rows(const Windows *w, double batch, uint32_t strips) {
  const Convolution *c = w->c;
  return batch * rows_met(w, strips) * w->out[1] *
         (c->kernel[1] * c->in_channels + c->kernel[0] * c->out_channels);
}

static Cost cost_of_rows(const Windows *w, double batch, uint32_t strips) {
  const Convolution *c = w->c;
  uint32_t rows = c->kernel[0], columns = c->kernel[1];
  double places = batch * rows_met(w, strips) * w->out[1],
         gathered = places * columns * c->in_channels, results = places * rows * c->out_channels,
         each = columns > 1 ? TIME_READ + TIME_COPIED : 0,
         added = (rows * TIME_COPIED + (rows - 1) * TIME_ADDED) * results / rows,
         copies = (gathered * each + padded_image(w, batch)) * far(gathered / strips);
  return (Cost){copies + added * far(results / strips) +
                    (double)strips * (columns + 2 * rows) * TIME_SMALL_NODE,
                gathered * sixteens((uint64_t)rows * c->out_channels)};
}

/* --- by patches --- */

static Cost cost_of_patches(const Windows *w, double batch) {
  const Convolution *c = w->c;
  double image = image_of(w, batch),
         each = c->kernel[1] * c->in_channels >= LONG_RUN ? TIME_COPIED : TIME_MOVED,
         moved = c->kernel[0] > 1 ? image * each * far(image) : 0;
  return (Cost){moved + 2 * TIME_SMALL_NODE, image * sixteens(c->out_channels)};
}

static bool are_patches(const Windows *w) {
  const Convolution *c = w->c;
  bool are = true;
  for (uint32_t i = 0; i < 2; i++)
    are = are && c->kernel[i] == c->stride[i] && c->padding[i] == 0 &&
          (c->kernel[i] == 1 || c->dilation[i] == 1) && w->in[i] == w->out[i] * c->stride[i];
  return are;
}

/* --- which way --- */

static uint32_t dim_of_strips(const Windows *w) { return w->in[0] == 1; }

/* For the memory's sake; elements: of all that a way makes beside image and result. */
static bool fits(const Windows *w, double batch, double elements, uint32_t strips) {
  const Convolution *c = w->c;
  double taps = (double)c->kernel[0] * c->kernel[1],
         weights = taps * c->in_channels * c->out_channels,
         most = MOST_OF_WEIGHTS * weights + image_of(w, batch) + result_of(w, batch);
  return elements / strips + (strips - 1) * weights <= fmax(MOST_BYTES / sizeof(float), most);
}

static bool can_be_windows(const Windows *w, double batch, uint32_t strips) {
  const Convolution *c = w->c;
  return c->kernel[0] * c->kernel[1] <= MOST_TAPS &&
         fits(w, batch, elements_of_windows(w, batch), strips);
}

static bool can_be_rows(const Windows *w, double batch, uint32_t strips) {
  const Convolution *c = w->c;
  return c->kernel[0] > 1 && c->kernel[0] <= MOST_TAPS && c->kernel[1] <= MOST_TAPS &&
         c->stride[0] == 1 && dim_of_strips(w) == 0 &&
         fits(w, batch, elements_of_rows(w, batch, strips), strips);
}

static double time_with_avx2(Cost cost) { return cost.products * with_avx2.product + cost.copies; }

static double time_with_avx512(Cost cost) {
  return cost.products * with_avx512.product + cost.copies;
}

static void take_faster(XnnCpu cpu, Plan *best, Way way, uint32_t strips, Cost cost) {
  double (*time_of)(Cost) = cpu == XNN_CPU_AVX512 ? time_with_avx512 : time_with_avx2;
  if (best->way == BY_NODE || time_of(cost) < time_of(best->cost))
    *best = (Plan){way, strips, cost};
}

/* Image and result are copied once more; and further nodes make the file larger. */
static Cost cost_of_strips(const Windows *w, double batch, uint32_t strips, Cost cost) {
  double image = image_of(w, batch), result = result_of(w, batch);
  if (strips == 1)
    return cost;
  cost.copies += image * TIME_READ * far(image) + result * TIME_COPIED * far(result) +
                 (double)strips * BYTES_OF_STRIP * TIME_OF_STEPS;
  return cost;
}

/* The fastest way by windows or rows of windows; BY_NODE when there is none. */
static Plan find_gathered(XnnCpu cpu, const Windows *w, double batch, Choice choice) {
  uint32_t size = w->out[dim_of_strips(w)], most = size < choice.strips ? size : choice.strips;
  Plan best = {.way = BY_NODE};
  for (uint32_t s = 1; s <= most; s++) {
    if (can_be_windows(w, batch, s))
      take_faster(cpu, &best, BY_WINDOWS, s,
                  cost_of_strips(w, batch, s, cost_of_windows(w, batch, s)));
    if (choice.rows && can_be_rows(w, batch, s))
      take_faster(cpu, &best, BY_ROWS, s, cost_of_strips(w, batch, s, cost_of_rows(w, batch, s)));
  }
  return best;
}

/* Where the CPU is not said, a loss with AVX-512 counts twice. */
static bool gains(XnnCpu cpu, const Windows *w, double batch, Cost cost) {
  double node = cost_of_windows(w, batch, 1).products,
         loss = time_with_avx512(cost) / (node * with_avx512.node),
         gain = node * with_avx2.node / time_with_avx2(cost);
  switch (cpu) {
  case XNN_CPU_AVX2:
    return gain > LEAST_GAIN;
  case XNN_CPU_AVX512:
    return loss * LEAST_GAIN < 1;
  default:
    return loss < MOST_LOSS && gain > loss * loss;
  }
}

static Plan fastest(XnnCpu cpu, const Windows *w, double batch, Choice choice) {
  const Convolution *c = w->c;
  uint32_t beyond = c->out_channels % 16;
  Plan plan = {.way = BY_NODE, .strips = 1};
  if (beyond > 0 && beyond <= EIGHT)
    return plan;
  if (are_patches(w))
    plan = (Plan){BY_PATCHES, 1, cost_of_patches(w, batch)};
  else if (c->in_channels >= LEAST_CHANNELS)
    plan = find_gathered(cpu, w, batch, choice);
  if (plan.way != BY_NODE && !gains(cpu, w, batch, plan.cost))
    plan.way = BY_NODE;
  return plan;
}

static bool is_product(const Convolution *c) {
  return c->kernel[0] == 1 && c->kernel[1] == 1 && c->stride[0] == 1 && c->stride[1] == 1;
}

static Plan plan_of(const XnnLowering *l, const Windows *w, SymInt batch, Choice choice) {
  return fastest(l->cpu, w, (double)sym_upper(&l->g->syms, batch), choice);
}

/* --- nodes --- */

/* The product of an image [n, h, w, length] and the weights, permuted and seen as [outputs, 1, 1,
 * length]. */
static void add_product(XnnLowering *l, XnnId image, XnnId weights, XnnId bias, uint32_t outputs,
                        uint32_t length, XnnId out) {
  const uint32_t dims[] = {outputs, 1, 1, length};
  ConvolutionNode node = {.kind = XNN_CONV2D,
                          .kernel = {1, 1},
                          .stride = {1, 1},
                          .dilation = {1, 1},
                          .groups = 1,
                          .in_channels = length,
                          .out_channels = outputs};
  if (xl_ok(l))
    memcpy(l->x.values[weights].dims, dims, sizeof dims);
  xl_convolution_node(l, &node, image, weights, bias, out);
}

/* The windows as pixels of an image: the product with all weights of each output. */
static void by_pixels(XnnLowering *l, const Windows *w, SymInt batch, XnnId windows, XnnId weights,
                      XnnId bias, XnnId out) {
  const Convolution *c = w->c;
  uint32_t length = c->kernel[0] * c->kernel[1] * c->in_channels;
  SymInt pixels[] = {batch, w->out[0], w->out[1], length};
  add_product(l, xl_reshaped(l, windows, pixels, 4), weights, bias, c->out_channels, length, out);
}

/* Patches of an image in NHWC next to each other. */
static XnnId patches_of(XnnLowering *l, const Windows *w, SymInt batch, XnnId in) {
  const Convolution *c = w->c;
  const uint32_t perm[] = {0, 1, 3, 2, 4};
  uint32_t rows = c->kernel[0], run = c->kernel[1] * c->in_channels;
  SymInt lines[] = {batch, w->out[0], rows, w->out[1], run},
         patches[] = {batch, w->out[0], w->out[1], rows, run};
  if (rows == 1)
    return in;
  XnnId seen = xl_reshaped(l, in, lines, 5), moved = xl_sym_temp(l, 5, patches);
  xl_transpose(l, seen, perm, 5, moved);
  return moved;
}

static XnnId gathered(XnnLowering *l, Way way, Windows *w, SymInt batch, XnnId in) {
  SymInt dims[WINDOW_RANK];
  if (way == BY_PATCHES)
    return patches_of(l, w, batch, in);
  return xl_windows_of(l, w, xl_window_view(l, w, batch, in), dims);
}

/* The weights in the order that perm brings [outputs, channels, rows, columns] to. */
static XnnId permuted_weights(XnnLowering *l, NodeId n, const Convolution *c,
                              const uint32_t perm[4]) {
  ValueId weight = node_value(l->g, n, 1);
  const uint32_t own[] = {c->out_channels, c->in_channels, c->kernel[0], c->kernel[1]};
  uint32_t filter[] = {own[perm[0]], own[perm[1]], own[perm[2]], own[perm[3]]};
  return xl_permuted_constant(l, weight, 4, filter, perm, value_dtype(l->g, weight) == DTYPE_F16);
}

static XnnId bias_of(XnnLowering *l, NodeId n) {
  ValueId bias = node_value(l->g, n, 2);
  return bias ? xl_filter(l, bias) : XNN_NONE;
}

/* The bias for the results of the first row of the kernel, zeros for the others. */
static XnnId bias_of_first_row(XnnLowering *l, ValueId bias, const Convolution *c) {
  uint32_t count = c->kernel[0] * c->out_channels;
  if (!bias || !xl_ok(l))
    return XNN_NONE;
  int32_t *from = ARENA_ARRAY(l->arena, int32_t, (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++)
    from[i] = i < c->out_channels ? (int32_t)i : XL_NO_ELEMENT;
  return xl_picked_constant(l, bias, true, 1, &count, from);
}

/* The part of all results, [n, rows, columns, kernel's rows * outputs], that row r of the kernel
 * gives the result. */
static XnnId part_of_row(XnnLowering *l, const Windows *w, uint32_t r, XnnId all, XnnId out) {
  const Convolution *c = w->c;
  const uint32_t offsets[] = {0, r * c->dilation[0], 0, r * c->out_channels},
                 sizes[] = {0, w->out[0], 0, c->out_channels};
  XnnId part = xl_temp_like(l, out);
  xl_slice_dims(l, all, 4, offsets, sizes, part);
  return part;
}

static void by_rows(XnnLowering *l, NodeId n, const Windows *whole, SymInt batch, XnnId in,
                    XnnId out) {
  const Convolution *c = whole->c;
  Convolution row = *c;
  Windows w = *whole;
  SymInt dims[WINDOW_RANK];
  uint32_t rows = c->kernel[0], length = c->kernel[1] * c->in_channels,
           outputs = rows * c->out_channels,
           filter[] = {rows, c->out_channels, c->kernel[1], c->in_channels};
  w.c = &row;
  row.kernel[0] = row.dilation[0] = 1;
  w.out[0] = whole->out[0] + (rows - 1) * c->dilation[0];
  XnnId windows = xl_windows_of(l, &w, xl_window_view(l, &w, batch, in), dims);
  SymInt seen[] = {batch, w.out[0], w.out[1], length},
         made[] = {batch, w.out[0], w.out[1], outputs};
  XnnId image = xl_reshaped(l, windows, seen, 4), all = xl_sym_temp(l, 4, made),
        weights = xl_permuted_constant(l, node_value(l->g, n, 1), 4, filter,
                                       (uint32_t[]){2, 0, 3, 1}, false);
  add_product(l, image, weights, bias_of_first_row(l, node_value(l->g, n, 2), c), outputs, length,
              all);
  XnnId sum = part_of_row(l, whole, 0, all, out);
  for (uint32_t r = 1; r < rows; r++) {
    XnnId next = r + 1 == rows ? out : xl_temp_like(l, out);
    xl_binary(l, XNN_ADD, sum, part_of_row(l, whole, r, all, out), next);
    sum = next;
  }
}

static void one_strip(XnnLowering *l, NodeId n, Way way, Windows *w, SymInt batch, XnnId in,
                      XnnId out) {
  static const uint32_t channels_last[] = {0, 2, 3, 1};
  if (way == BY_ROWS)
    by_rows(l, n, w, batch, in, out);
  else
    by_pixels(l, w, batch, gathered(l, way, w, batch, in),
              permuted_weights(l, n, w->c, channels_last), bias_of(l, n), out);
}

/* Part of an image: `size` rows (dim 0) or columns (dim 1) from begin on. */
static XnnId part_of_image(XnnLowering *l, XnnId in, uint32_t dim, uint32_t begin, uint32_t size) {
  if (!xl_ok(l))
    return in;
  XnnValue like = l->x.values[in];
  like.dims[1 + dim] = size;
  XnnId part = xl_temp(l, like.rank, like.dims);
  xl_slice(l, in, 1 + dim, like.rank, begin, size, part);
  return part;
}

/* What places begin to end - 1 of the result read of the image: sets begin to its first row. */
static Windows windows_of_strip(const Windows *whole, uint32_t dim, uint32_t *begin, uint32_t end) {
  const Convolution *c = whole->c;
  Windows w = *whole;
  int64_t first = (int64_t)*begin * c->stride[dim] - whole->before[dim],
          last = (int64_t)(end - 1) * c->stride[dim] - whole->before[dim] +
                 (int64_t)(c->kernel[dim] - 1) * c->dilation[dim];
  w.out[dim] = end - *begin;
  w.before[dim] = (uint32_t)max_i64(-first, 0);
  *begin = (uint32_t)max_i64(first, 0);
  w.in[dim] = (uint32_t)(min_i64(last + 1, whole->in[dim]) - *begin);
  return w;
}

static void in_strips(XnnLowering *l, NodeId n, const Plan *plan, Windows *whole, SymInt batch,
                      XnnId in, XnnId out) {
  XnnId parts[MOST_STRIPS];
  uint32_t dim = dim_of_strips(whole), size = whole->out[dim], count = plan->strips;
  if (count == 1 || !xl_ok(l)) {
    one_strip(l, n, plan->way, whole, batch, in, out);
    return;
  }
  for (uint32_t i = 0; i < count; i++) {
    uint32_t begin = size * i / count, end = size * (i + 1) / count;
    Windows w = windows_of_strip(whole, dim, &begin, end);
    XnnValue like = l->x.values[out];
    like.dims[1 + dim] = w.out[dim];
    parts[i] = xl_temp(l, like.rank, like.dims);
    one_strip(l, n, plan->way, &w, batch, part_of_image(l, in, dim, begin, w.in[dim]), parts[i]);
  }
  xl_concatenate(l, parts, count, 1 + dim, out);
}

/* Whether a product could take its place; sets the sizes and the batch. */
static bool is_candidate(XnnLowering *l, NodeId n, const Convolution *c, Windows *w,
                         SymInt *batch) {
  *batch = value_dim(l->g, node_value(l->g, n, 0), 0);
  return xl_ok(l) && !c->transposed && c->groups == 1 && !is_product(c) &&
         value_is_const(l->g, node_value(l->g, n, 1)) && xl_whole_windows(l, n, c, w);
}

bool xl_by_planar_patches(XnnLowering *l, NodeId n, const Convolution *c) {
  static const uint32_t perm[] = {0, 2, 4, 1, 3, 5}, channels_first[] = {0, 1, 2, 3};
  ValueId x = node_value(l->g, n, 0);
  Windows w;
  SymInt batch;
  if (c->rank != 2 || xl_has_nhwc(l, x) || xl_has_permuted(l, x) || xl_is_moved(l, x) ||
      !is_candidate(l, n, c, &w, &batch) ||
      plan_of(l, &w, batch, (Choice){.strips = 1}).way != BY_PATCHES)
    return false;
  SymInt planes[] = {batch, c->in_channels, w.out[0], c->kernel[0], w.out[1], c->kernel[1]},
         patches[6];
  for (uint32_t i = 0; i < 6; i++)
    patches[i] = planes[perm[i]];
  XnnId view = xl_reshaped(l, xl_plain(l, x), planes, 6), moved = xl_sym_temp(l, 6, patches);
  xl_transpose(l, view, perm, 6, moved);
  by_pixels(l, &w, batch, moved, permuted_weights(l, n, c, channels_first), bias_of(l, n),
            xl_result_nhwc(l, node_result(l->g, n, 0)));
  return true;
}

bool xl_by_product(XnnLowering *l, NodeId n, const Convolution *c, XnnId in, XnnId out) {
  Windows w;
  ValueId weight = node_value(l->g, n, 1), bias = node_value(l->g, n, 2);
  SymInt batch;
  if (!is_candidate(l, n, c, &w, &batch))
    return false;
  bool floats = value_dtype(l->g, weight) == DTYPE_F32 && (!bias || value_is_const(l->g, bias));
  Plan plan = plan_of(l, &w, batch, (Choice){.rows = floats, .strips = MOST_STRIPS});
  if (plan.way == BY_NODE)
    return false;
  in_strips(l, n, &plan, &w, batch, in, out);
  return true;
}

void xl_node_or_product(XnnLowering *l, const ConvolutionNode *node, bool floats, SymInt batch,
                        XnnId in, XnnId weights, XnnId bias, XnnId out) {
  if (!xl_ok(l))
    return;
  const uint32_t *from = l->x.values[in].dims, *to = l->x.values[out].dims;
  Convolution c = {.rank = 2,
                   .stride = {node->stride[0], node->stride[1]},
                   .dilation = {node->dilation[0], node->dilation[1]},
                   .kernel = {node->kernel[0], node->kernel[1]},
                   .in_channels = node->in_channels,
                   .out_channels = node->out_channels};
  Windows w = {.c = &c,
               .in = {from[1], from[2]},
               .out = {to[1], to[2]},
               .before = {node->before[0], node->before[1]}};
  Plan plan = {.way = BY_NODE};
  if (floats && node->kind == XNN_CONV2D && node->groups == 1 && !is_product(&c))
    plan = plan_of(l, &w, batch, (Choice){.strips = 1});
  if (plan.way == BY_NODE)
    xl_convolution_node(l, node, in, weights, bias, out);
  else
    by_pixels(l, &w, batch, gathered(l, plan.way, &w, batch, in), weights, bias, out);
}

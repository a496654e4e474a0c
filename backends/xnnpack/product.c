/* Which convolutions are products; see lower_product.c. All costs are ns of one thread. */
#include <math.h>

#include "backends/xnnpack/product.h"

enum {
  MOST_ROWS = 9,         /* of a kernel, and columns */
  CACHED = 3 << 20,      /* bytes of which copies stay in caches */
  FAR = 2,               /* times as long each copy takes of more */
  MOST_BYTES = 4 << 20,  /* that copies and further weights may always take; beyond that no more */
  MOST_OF_WEIGHTS = 4,   /* than image, result and so many times the weights */
  BYTES_OF_STRIP = 2500, /* of nodes in the file */
  FEW_STRIPS = 25,       /* where the CPU is not said */
  LEAST_CHANNELS = 16,   /* of the image: copies of fewer take longer than what they hold */
  LONG_RUN = 16          /* elements next to each other that are moved as fast as they are joined */
};
#define MOST_LOSS 1.12 /* with AVX-512; on Arm, where a product takes longer, it is less */
#define WEIGHT_OF_LOSS 1.75
#define LEAST_GAIN 1.1 /* by which an estimate must be better */

/* ns for one input channel and tap of 16 outputs, in one node and as a product. */
static const struct {
  double node, product;
} with_avx512 = {0.3, 0.3},   /* a Xeon, of what tests/bench/convolutions.py shows */
    with_avx2 = {1.03, 0.44}; /* Zen 3: 31 and 73 GFLOP/s, of 64 to 512 channels */

/* What a way takes: copies in ns, sixteens of outputs for one input channel and tap. */
typedef struct Cost {
  double copies, products;
} Cost;

typedef struct Plan {
  ProductPlan plan;
  Cost cost;
} Plan;

static double far(double elements) { return elements * sizeof(float) > CACHED ? FAR : 1; }

static double image_of(const ProductJob *j) {
  return j->batch * j->w->in[0] * j->w->in[1] * j->w->c->in_channels;
}

static double result_of(const ProductJob *j) {
  return j->batch * j->w->out[0] * j->w->out[1] * j->w->c->out_channels;
}

/* Strips of single images read nothing twice. */
static uint32_t axis_of_strips(const ProductJob *j) {
  if (j->fixed && j->batch > 1)
    return 0;
  return j->w->in[0] > 1 ? 1 : 2;
}

static double padded_image(const ProductJob *j) {
  return j->w->before[0] || j->w->before[1] ? image_of(j) * TIME_READ : 0;
}

/* --- by windows --- */

static double elements_of_windows(const ProductJob *j) {
  const Windows *w = j->w;
  const Convolution *c = w->c;
  return j->batch * w->out[0] * w->out[1] * c->kernel[0] * c->kernel[1] * c->in_channels;
}

static Cost cost_of_windows(const ProductJob *j, uint32_t strips) {
  const Windows *w = j->w;
  const Convolution *c = w->c;
  uint32_t taps = c->kernel[0] * c->kernel[1];
  double gathered = elements_of_windows(j), each = taps > 1 ? TIME_READ + TIME_COPIED : TIME_READ,
         copies = (gathered * each + padded_image(j)) * far(gathered / strips);
  return (Cost){copies + (double)strips * taps * TIME_SMALL_NODE,
                gathered * sixteens(c->out_channels)};
}

/* --- by rows --- */

/* Rows of the image that windows begin in. */
static double rows_met(const ProductJob *j, uint32_t strips) {
  const Windows *w = j->w;
  const Convolution *c = w->c;
  double parts = axis_of_strips(j) == 1 ? strips : 1;
  return w->out[0] + parts * (c->kernel[0] - 1) * c->dilation[0];
}

static double elements_of_rows(const ProductJob *j, uint32_t strips) {
  const Windows *w = j->w;
  const Convolution *c = w->c;
  return j->batch * rows_met(j, strips) * w->out[1] *
         (c->kernel[1] * c->in_channels + c->kernel[0] * c->out_channels);
}

static Cost cost_of_rows(const ProductJob *j, uint32_t strips) {
  const Windows *w = j->w;
  const Convolution *c = w->c;
  uint32_t rows = c->kernel[0], columns = c->kernel[1];
  double places = j->batch * rows_met(j, strips) * w->out[1],
         gathered = places * columns * c->in_channels, results = places * rows * c->out_channels,
         each = columns > 1 ? TIME_READ + TIME_COPIED : 0,
         added = (rows * TIME_COPIED + (rows - 1) * TIME_ADDED) * results / rows,
         copies = (gathered * each + padded_image(j)) * far(gathered / strips);
  return (Cost){copies + added * far(results / strips) +
                    (double)strips * (columns + 2 * rows) * TIME_SMALL_NODE,
                gathered * sixteens((uint64_t)rows * c->out_channels)};
}

/* --- by patches --- */

static Cost cost_of_patches(const ProductJob *j) {
  const Windows *w = j->w;
  const Convolution *c = w->c;
  double image = image_of(j),
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

/* --- by picks --- */

static double elements_of_copies(const ProductJob *j) {
  return image_of(j) * j->w->c->kernel[0] * j->w->c->kernel[1];
}

static Cost cost_of_picks(const ProductJob *j) {
  const Convolution *c = j->w->c;
  uint32_t taps = c->kernel[0] * c->kernel[1], levels = taps > XL_JOINED_AT_ONCE ? 2 : 1;
  double wide = elements_of_copies(j), gathered = elements_of_windows(j),
         weights = (double)taps * taps * c->in_channels * sizeof(float),
         copies = wide * levels * TIME_COPIED * far(wide) +
                  gathered * xl_depthwise_time(taps) * far(gathered);
  return (Cost){copies + weights * TIME_OF_BYTE + (2 + levels) * TIME_SMALL_NODE,
                gathered * sixteens(c->out_channels)};
}

/* --- which way --- */

/* For the memory's sake; elements: of all that a way makes beside image and result. */
static bool fits(const ProductJob *j, double elements, uint32_t strips) {
  const Windows *w = j->w;
  const Convolution *c = w->c;
  double taps = (double)c->kernel[0] * c->kernel[1],
         weights = taps * c->in_channels * c->out_channels,
         most = MOST_OF_WEIGHTS * weights + image_of(j) + result_of(j);
  return elements / strips + (strips - 1) * weights <= fmax(MOST_BYTES / sizeof(float), most);
}

static bool can_be_windows(const ProductJob *j, uint32_t strips) {
  const Windows *w = j->w;
  const Convolution *c = w->c;
  return c->kernel[0] * c->kernel[1] <= TAPS_AT_ONCE && fits(j, elements_of_windows(j), strips);
}

static bool can_be_rows(const ProductJob *j, uint32_t strips) {
  const Windows *w = j->w;
  const Convolution *c = w->c;
  return c->kernel[0] > 1 && c->kernel[0] <= MOST_ROWS && c->kernel[1] <= MOST_ROWS &&
         c->stride[0] == 1 && w->in[0] > 1 && fits(j, elements_of_rows(j, strips), strips);
}

static bool can_be_picks(const ProductJob *j) {
  uint32_t taps = j->w->c->kernel[0] * j->w->c->kernel[1];
  return j->floats && taps > 1 && taps <= DEPTHWISE_TAPS &&
         fits(j, elements_of_copies(j) + elements_of_windows(j), 1);
}

static double time_with_avx2(Cost cost) { return cost.products * with_avx2.product + cost.copies; }

static double time_with_avx512(Cost cost) {
  return cost.products * with_avx512.product + cost.copies;
}

/* Image and result are copied once more; and further nodes make the file larger. */
static Cost cost_of_strips(const ProductJob *j, uint32_t strips, Cost cost) {
  double image = image_of(j), result = result_of(j);
  if (strips == 1)
    return cost;
  cost.copies += image * TIME_READ * far(image) + result * TIME_COPIED * far(result) +
                 (double)strips * BYTES_OF_STRIP * TIME_OF_STEPS;
  return cost;
}

static void take_faster(const ProductJob *j, Plan *best, ProductWay way, uint32_t strips,
                        Cost cost) {
  double (*time_of)(Cost) = j->cpu == XNN_CPU_AVX512 ? time_with_avx512 : time_with_avx2;
  cost = cost_of_strips(j, strips, cost);
  if (best->plan.way == BY_NODE || time_of(cost) < time_of(best->cost))
    *best = (Plan){{way, strips, axis_of_strips(j)}, cost};
}

static uint32_t most_strips(const ProductJob *j) {
  const uint32_t sizes[] = {(uint32_t)j->batch, j->w->out[0], j->w->out[1]};
  uint32_t most = j->cpu == XNN_CPU_AVX2 ? MOST_STRIPS : FEW_STRIPS;
  return !j->strips ? 1 : (uint32_t)min_i64(sizes[axis_of_strips(j)], most);
}

/* The fastest way by windows or rows of windows; BY_NODE where none is possible. */
static Plan find_gathered(const ProductJob *j) {
  Plan best = {{.way = BY_NODE}, {0}};
  if (j->varying) {
    if (can_be_picks(j))
      take_faster(j, &best, BY_PICKS, 1, cost_of_picks(j));
    return best;
  }
  for (uint32_t s = 1; s <= most_strips(j); s++) {
    if (can_be_windows(j, s))
      take_faster(j, &best, BY_WINDOWS, s, cost_of_windows(j, s));
    if (j->floats && can_be_rows(j, s))
      take_faster(j, &best, BY_ROWS, s, cost_of_rows(j, s));
  }
  return best;
}

/* Where the CPU is not said, a loss with AVX-512 counts more than a gain: there are more CPUs that
 * lose, and copies take memory. */
static bool gains(const ProductJob *j, Cost cost) {
  double node = cost_of_windows(j, 1).products,
         loss = time_with_avx512(cost) / (node * with_avx512.node),
         gain = node * with_avx2.node / time_with_avx2(cost);
  switch (j->cpu) {
  case XNN_CPU_AVX2:
    return gain > LEAST_GAIN;
  case XNN_CPU_AVX512:
    return loss * LEAST_GAIN < 1;
  default:
    return loss < MOST_LOSS && gain > pow(loss, WEIGHT_OF_LOSS);
  }
}

static bool is_product(const Convolution *c) {
  return c->kernel[0] == 1 && c->kernel[1] == 1 && c->stride[0] == 1 && c->stride[1] == 1;
}

uint32_t xl_few_beyond(uint32_t outputs) {
  uint32_t beyond = outputs % 16;
  return beyond <= 8 ? beyond : 0;
}

ProductPlan xl_plan_product(const ProductJob *j) {
  const Convolution *c = j->w->c;
  Plan best = {{.way = BY_NODE}, {0}};
  if (is_product(c) || xl_few_beyond(c->out_channels) > 0)
    return best.plan;
  if (!j->varying && are_patches(j->w))
    best = (Plan){{BY_PATCHES, 1, 0}, cost_of_patches(j)};
  else if (c->in_channels >= LEAST_CHANNELS)
    best = find_gathered(j);
  return best.plan.way != BY_NODE && gains(j, best.cost) ? best.plan : (ProductPlan){BY_NODE, 1, 0};
}

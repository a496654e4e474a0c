/* Cross-layer equalization: between two products, through ReLU and what else commutes with positive
 * factors, a channel may be divided by a number on one side and multiplied on the other. The
 * numbers are chosen so that each channel has weights of the same size on both sides: channels that
 * are much smaller than others would otherwise get few of the codes of a tensor.
 *
 * The method is that of Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias
 * Correction" (2019): s = sqrt(r1 / r2), over all pairs until nothing changes any more. */
#include <math.h>

#include "ir/builder.h"
#include "ir/match.h"
#include "passes/pass.h"

enum { SWEEPS = 16, STEPS_MAX = 8 };
#define SETTLED 0.01 /* of the logarithm of a factor */
/* Of the factors of a pair. Most networks as they are trained stay as they are: 1 dB better. */
#define SPREAD_MIN 2.0
#define FACTOR_MAX 1e6

/* The channels of a weight: element i is of channel i / inner % count / repeat. Where nothing is
 * behind the channels, inner is 1. */
typedef struct Side {
  NodeId node;
  float *data; /* of the weight, a copy */
  ValueId weight;
  uint64_t size, inner, count, repeat;
  float *bias; /* of the first node of a pair; NULL: none */
} Side;

typedef struct Pair {
  Side from, to;
  uint64_t channels;
} Pair;

typedef struct Pairs {
  Graph *g;
  Arena *arena;
  Pair *list;
  uint32_t count;
  float **copies; /* by value: data of constants that change */
} Pairs;

static bool is_float_const(const Graph *g, ValueId v) {
  return v && value_is_const(g, v) && value_dtype(g, v) == DTYPE_F32 && value_used_once(g, v);
}

/* --- finding pairs --- */

/* The weight of n as it lies, and whether its dims are swapped; 0: not one that may be changed. */
static ValueId weight_of(const Graph *g, NodeId n, bool *swapped) {
  ValueId w = node_value(g, n, 1);
  NodeId permute = match_op_once(g, w, OP_PERMUTE_COPY);
  *swapped = permute && node_cget(g, n)->op == OP_LINEAR && value_rank(g, w) == 2 &&
             node_ints(g, permute, 1)[0] % 2 != 0;
  if (*swapped)
    w = node_value(g, permute, 0);
  return is_float_const(g, w) ? w : 0;
}

static bool is_product(const Graph *g, NodeId n) {
  OpId op = node_cget(g, n)->op;
  return op == OP_LINEAR || (op == OP_CONVOLUTION && !node_bool(g, n, 6));
}

static Side side_of(const Graph *g, NodeId n, ValueId w, uint32_t axis) {
  Side s = {.node = n, .weight = w, .repeat = 1};
  s.size = value_constant(g, w)->size / sizeof(float);
  s.count = (uint64_t)value_dim(g, w, axis);
  s.inner = (uint64_t)dims_count(value_type(g, w)->dims, axis + 1, value_rank(g, w));
  return s;
}

/* As the first of a pair: by output channels. */
static bool as_first(const Graph *g, NodeId n, Side *s) {
  bool swapped;
  ValueId w = is_product(g, n) ? weight_of(g, n, &swapped) : 0;
  if (!w)
    return false;
  ValueId bias = node_value(g, n, 2);
  *s = side_of(g, n, w, swapped);
  return !bias || is_float_const(g, bias);
}

/* As the second: by input channels, of which each is `places` columns of a linear. Grouped
 * convolutions only where each channel is a group. */
static bool as_second(const Graph *g, NodeId n, uint64_t channels, uint64_t places, Side *s) {
  bool swapped;
  ValueId w = is_product(g, n) ? weight_of(g, n, &swapped) : 0;
  if (!w)
    return false;
  bool conv = node_cget(g, n)->op == OP_CONVOLUTION;
  uint64_t groups = conv ? (uint64_t)node_int(g, n, 8) : 1;
  if (groups == 1) {
    *s = side_of(g, n, w, !swapped);
    s->repeat = places;
    return s->count == channels * places;
  }
  *s = side_of(g, n, w, 0);
  if (groups != channels || s->count % channels)
    return false;
  s->repeat = s->count / channels;
  return true;
}

/* A mean over dims behind the channels. */
static bool keeps_channels(const Graph *g, NodeId n) {
  for (uint32_t i = 0; i < node_list_count(g, n, 1); i++) {
    int64_t dim = node_ints(g, n, 1)[i];
    if (dim == 0 || dim == 1 || dim + value_rank(g, node_value(g, n, 0)) <= 1)
      return false;
  }
  return node_list_count(g, n, 1) > 0;
}

/* A view of [n, c, h, w] as [n, c * h * w], and the number of places, h * w; 0: another view. */
static uint64_t flattened_places(const Graph *g, NodeId n) {
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  if (value_rank(g, x) <= 2 || value_rank(g, y) != 2 || value_dim(g, x, 0) != value_dim(g, y, 0))
    return 0;
  SymInt channels = value_dim(g, x, 1), columns = value_dim(g, y, 1);
  if (channels == columns)
    return 1;
  bool known = sym_is_const(channels) && sym_is_const(columns) && channels > 0;
  return known ? (uint64_t)(columns / channels) : 0;
}

/* Zeros beside the places. */
static bool pads_zeros(const Graph *g, NodeId n) {
  return node_scalar(g, n, 2) == 0 &&
         node_list_count(g, n, 1) + 4 <= 2 * value_rank(g, node_value(g, n, 0));
}

/* Ops f with f(s x) = s f(x) for a positive s a channel, the channels staying dim 1. */
static bool commutes(const Graph *g, NodeId n) {
  switch (node_cget(g, n)->op) {
  case OP_RELU:
  case OP_LEAKY_RELU:
  case OP_PRELU:
  case OP_AVG_POOL2D:
  case OP_ADAPTIVE_AVG_POOL2D:
  case OP_MAX_POOL2D_WITH_INDICES:
  case OP_UPSAMPLE_NEAREST2D_VEC:
  case OP_UPSAMPLE_BILINEAR2D_VEC:
    return true;
  case OP_CLAMP:
    return !node_absent(g, n, 1) && node_scalar(g, n, 1) == 0 && node_absent(g, n, 2);
  case OP_MEAN_DIM:
    return keeps_channels(g, n);
  case OP_CONSTANT_PAD_ND:
    return pads_zeros(g, n);
  case OP_VIEW_COPY:
    return flattened_places(g, n) > 0;
  default:
    return false;
  }
}

/* Whether the channels of an operand or result are on the dim that its product expects. */
static bool channels_fit(const Graph *g, ValueId v, bool linear) {
  return value_rank(g, v) >= 2 && (!linear || value_rank(g, v) == 2);
}

/* Whether n stands between two products. rows: channels are last, where only functions commute. */
static bool passes_on(const Graph *g, NodeId n, bool rows) {
  OpId op = node_cget(g, n)->op;
  bool function = op == OP_RELU || op == OP_LEAKY_RELU || op == OP_CLAMP;
  return commutes(g, n) && (!rows || function);
}

/* places: how many columns each channel is there. */
static NodeId second_of(const Graph *g, NodeId first, uint64_t *places) {
  *places = 1;
  ValueId v = node_result(g, first, 0);
  bool linear = node_cget(g, first)->op == OP_LINEAR;
  bool rows = linear && value_rank(g, v) != 2;
  for (uint32_t step = 0; step < STEPS_MAX; step++) {
    NodeId user = value_only_user(g, v);
    if (!user || node_arg(g, user, 0)->kind != ARG_VALUE || node_value(g, user, 0) != v)
      return 0;
    if (is_product(g, user)) {
      bool to_linear = node_cget(g, user)->op == OP_LINEAR;
      return rows ? (to_linear ? user : 0) : channels_fit(g, v, to_linear) ? user : 0;
    }
    if (!passes_on(g, user, rows))
      return 0;
    if (node_cget(g, user)->op == OP_VIEW_COPY)
      *places = flattened_places(g, user);
    v = node_result(g, user, 0);
  }
  return 0;
}

/* A copy of a constant that will change, one however many pairs it is in. */
static float *copy_of(Pairs *p, ValueId v) {
  const Constant *c = value_constant(p->g, v);
  if (!p->copies[v]) {
    p->copies[v] = arena_alloc(&p->g->arena, c->size + 1);
    memcpy(p->copies[v], c->data, c->size);
  }
  return p->copies[v];
}

static void find_pairs(Pairs *p) {
  Graph *g = p->g;
  p->list = ARENA_ARRAY(p->arena, Pair, g->live_nodes + 1);
  for (FOR_NODES(g, n)) {
    Pair pair;
    uint64_t places;
    NodeId to = as_first(g, n, &pair.from) ? second_of(g, n, &places) : 0;
    if (!to || !as_second(g, to, pair.from.count, places, &pair.to))
      continue;
    ValueId bias = node_value(g, n, 2);
    pair.channels = pair.from.count;
    pair.from.data = copy_of(p, pair.from.weight);
    pair.from.bias = bias ? copy_of(p, bias) : NULL;
    pair.to.data = copy_of(p, pair.to.weight);
    p->list[p->count++] = pair;
  }
}

/* --- factors --- */

enum { LANES = 8 };

static float largest_of(const float *x, uint64_t count) {
  float lanes[LANES] = {0}, most = 0;
  uint64_t i = 0;
  for (; i + LANES <= count; i += LANES)
    for (uint32_t k = 0; k < LANES; k++)
      lanes[k] = fabsf(x[i + k]) > lanes[k] ? fabsf(x[i + k]) : lanes[k];
  for (; i < count; i++)
    most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
  for (uint32_t k = 0; k < LANES; k++)
    most = lanes[k] > most ? lanes[k] : most;
  return most;
}

/* The runs of `inner` elements of one channel each, in order. */
static uint64_t run_count(const Side *s) { return s->inner ? s->size / s->inner : 0; }

/* Channels that lie beside each other. */
static bool is_row(const Side *s) { return s->count && s->inner == 1 && s->repeat == 1; }

static void largest_of_rows(const Side *s, double *restrict out) {
  const float *restrict x = s->data;
  for (uint64_t row = 0; row < s->size / s->count; row++, x += s->count)
    for (uint64_t c = 0; c < s->count; c++) {
      double size = fabs((double)x[c]);
      out[c] = size > out[c] ? size : out[c];
    }
}

static void largest(const Side *s, double *out, uint64_t channels) {
  memset(out, 0, channels * sizeof *out);
  if (is_row(s)) {
    largest_of_rows(s, out);
    return;
  }
  for (uint64_t run = 0, c = 0; run < run_count(s); run++, c = c + 1 < s->count ? c + 1 : 0) {
    double x = (double)largest_of(s->data + run * s->inner, s->inner);
    double *own = &out[c / s->repeat];
    *own = x > *own ? x : *own;
  }
}

static void scale_run(float *x, uint64_t count, double factor, bool divide) {
  for (uint64_t i = 0; i < count; i++)
    x[i] = (float)(divide ? (double)x[i] / factor : (double)x[i] * factor);
}

static void scale_rows(const Side *s, const double *restrict by, bool divide) {
  float *restrict x = s->data;
  for (uint64_t row = 0; row < s->size / s->count; row++, x += s->count)
    for (uint64_t c = 0; c < s->count; c++)
      x[c] = (float)(divide ? (double)x[c] / by[c] : (double)x[c] * by[c]);
}

static void scale(const Side *s, const double *by, bool divide) {
  if (is_row(s))
    scale_rows(s, by, divide);
  else
    for (uint64_t run = 0, c = 0; run < run_count(s); run++, c = c + 1 < s->count ? c + 1 : 0)
      scale_run(s->data + run * s->inner, s->inner, by[c / s->repeat], divide);
  for (uint64_t c = 0; s->bias && c < s->count; c++)
    s->bias[c] = (float)((double)s->bias[c] / by[c]);
}

/* Divides one side by the factors, and multiplies the other. Returns the largest logarithm of one;
 * 0 where all are so much alike that nothing is done. */
static double balance(const Pair *p, Arena *arena) {
  double *a = ARENA_ARRAY(arena, double, p->channels + 1),
         *b = ARENA_ARRAY(arena, double, p->channels + 1), most = 0, least = INFINITY, greatest = 0;
  largest(&p->from, a, p->channels);
  largest(&p->to, b, p->channels);
  for (uint64_t c = 0; c < p->channels; c++) {
    double s = a[c] > 0 && b[c] > 0 ? sqrt(a[c] / b[c]) : 1;
    a[c] = isfinite(s) ? fmin(fmax(s, 1 / FACTOR_MAX), FACTOR_MAX) : 1;
    most = fmax(most, fabs(log(a[c])));
    least = fmin(least, a[c]);
    greatest = fmax(greatest, a[c]);
  }
  if (greatest < SPREAD_MIN * least)
    return 0;
  scale(&p->from, a, true);
  scale(&p->to, a, false);
  return most;
}

/* --- the graph --- */

static void replace_constant(Pairs *p, ValueId v) {
  Graph *g = p->g;
  ValueId to = graph_add_constant(
      g, value_cget(g, v)->type,
      (Constant){.data = (const void *)p->copies[v], .size = value_constant(g, v)->size},
      value_cget(g, v)->name);
  graph_replace_uses(g, v, to);
}

Status pass_equalize(PassContext *c, Graph *g) {
  if (!c->options->quantize || c->options->quantize->scheme != QUANT_INT8)
    return STATUS_OK;
  Pairs p = {.g = g, .arena = c->scratch};
  uint32_t values = g->value_count;
  p.copies = ARENA_ARRAY(c->scratch, float *, values);
  find_pairs(&p);
  double most = 1;
  for (uint32_t sweep = 0; p.count && sweep < SWEEPS && most > SETTLED; sweep++) {
    most = 0;
    for (uint32_t i = 0; i < p.count; i++)
      most = fmax(most, balance(&p.list[i], c->scratch));
  }
  for (ValueId v = 1; v < values; v++)
    if (p.copies[v])
      replace_constant(&p, v);
  pass_count(c, "pairs", p.count);
  return STATUS_OK;
}

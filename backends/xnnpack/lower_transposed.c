/* Transposed convolutions as ordinary ones, whose kernels are faster in XNNPACK.
 *
 * With stride s, the elements s * q + r of a result are a phase of it for each r below s. Each
 * phase is an ordinary convolution of stride 1 with every s-th tap of the kernel, backwards, so
 * that no product is computed twice and no weight is stored twice. Phases next to each other whose
 * taps and padding agree are the channels of one convolution. Results are interleaved by joining
 * channels: [n, h, w, (phase, c)] has the elements of [n, h, w * phases, c] in order.
 *
 * Few channels, of which XNNPACK computes 16 at a time, are better computed for all phases at once:
 * where the stride divides the kernel by one convolution on an image that is some rows larger, of
 * whose result the rest is cut off, else by one that reads what any of the phases reads, with zeros
 * for the taps that a phase does not have.
 * What is cheapest is taken, in each of the two dims.
 *
 * One of the sizes may be dynamic, which a reshape can infer; see lower_transposed_dynamic.c for
 * several. */
#include "backends/xnnpack/convolution.h"

enum {
  MAX_PARTS = 16,
  LEAST_CHANNELS = 4, /* of an image for taps of zeros: each tap takes time by itself, too */
};

#define DOUBT 1.25 /* times what taps of zeros seem to cost: they must be clearly faster */

/* Phases of one dim that are channels of one convolution. */
typedef struct Part {
  uint32_t count;         /* phases */
  int64_t first;          /* the first tap of the kernel, of the first phase */
  uint32_t taps;          /* of each */
  uint32_t before, after; /* padding */
} Part;

/* One dim of the result: phases * length elements, of which some are cut off in front. */
typedef struct Axis {
  Part parts[MAX_PARTS];
  uint32_t count, phases, length, skipped;
  uint32_t size;     /* of the result */
  uint32_t step;     /* from tap to tap: the stride */
  uint32_t dilation; /* of each part; 1 if it has a stride */
} Axis;

typedef enum Grouping {
  EACH_PHASE, /* is a part */
  LIKE_PHASES,
  ALL_PHASES, /* on a larger image */
  ALL_TAPS,   /* of all phases, for each of them */
  GROUPINGS
} Grouping;

typedef struct Phases {
  const Convolution *c;
  ValueId weight, bias;
  bool half;
  SymInt batch;
  uint32_t in[2];   /* upper bounds */
  SymInt length[2]; /* of the phases */
  bool dynamic[2];  /* which one of them is */
  Axis axis[2];
} Phases;

/* --- which phases --- */

static bool add_part(Axis *a, Grouping grouping, Part p, bool follows) {
  Part *last = a->count ? &a->parts[a->count - 1] : NULL;
  if (last && follows && grouping == LIKE_PHASES && last->taps == p.taps &&
      last->before == p.before) {
    last->count++;
    return true;
  }
  if (a->count == MAX_PARTS)
    return false;
  a->parts[a->count++] = p;
  return true;
}

/* All phases of an image of `in` elements, as one part. */
static bool join_phases(Axis *a, uint32_t in, uint32_t kernel, uint32_t padding) {
  uint32_t taps = kernel / a->step;
  if (kernel % a->step || a->dilation > 1 || a->phases != a->step)
    return false;
  a->length = in + taps - 1;
  a->skipped = padding;
  a->count = 1;
  a->parts[0] = (Part){a->step, 0, taps, taps - 1, taps - 1};
  return (uint64_t)a->length * a->step >= (uint64_t)padding + a->size;
}

/* All phases with the taps that meet what any of them reads. */
static bool join_taps(Axis *a, uint32_t in, uint32_t kernel, uint32_t padding) {
  int64_t first = 0, last = 0, stride = a->step; /* inputs beside element q of a phase */
  for (uint32_t r = 0; r < a->phases; r++) {
    uint32_t tap = (r + padding) % a->step, shift = (r + padding) / a->step;
    if (tap >= kernel)
      continue;
    first = min_i64(first, (int64_t)shift - (kernel - 1 - tap) / a->step);
    last = max_i64(last, shift);
  }
  int64_t after = (int64_t)a->length + last - in, taps = last - first + 1;
  if (a->dilation > 1 || after < 0)
    return false;
  a->count = 1;
  a->parts[0] = (Part){.count = a->phases,
                       .first = (int64_t)padding - stride * (first + taps - 1),
                       .taps = (uint32_t)taps,
                       .before = (uint32_t)-first,
                       .after = (uint32_t)after};
  return true;
}

/* A part for each phase, or for those next to each other that are alike. */
static bool split_phases(Axis *a, uint32_t in, uint32_t kernel, uint32_t padding,
                         Grouping grouping) {
  uint32_t stride = a->step;
  for (uint32_t r = 0; r < a->phases; r++) {
    /* Element stride * q + r meets inputs q + shift - t by taps first + stride * t. */
    uint32_t first = (r + padding) % stride, shift = (r + padding) / stride;
    if (first >= kernel)
      return false;
    uint32_t taps = (kernel - first + stride - 1) / stride, reach = (taps - 1) * a->dilation;
    if (reach < shift || a->length + shift < in)
      return false; /* it begins or ends inside of the image */
    Part part = {1, first, taps, reach - shift, a->length + shift - in};
    if (!add_part(a, grouping, part, first > 0))
      return false;
  }
  return true;
}

/* XNNPACK's slices have no dynamic sizes. */
static bool can_crop(const Phases *p, uint32_t i, const Axis *a) {
  return !p->dynamic[i] || a->length * a->phases == a->size;
}

static bool group_phases(const Phases *p, uint32_t i, Grouping grouping, Axis *a) {
  const Convolution *c = p->c;
  uint32_t in = p->in[i], kernel = c->kernel[i], padding = c->padding[i];
  if (grouping == ALL_PHASES)
    return join_phases(a, in, kernel, padding);
  if (grouping == ALL_TAPS)
    return c->in_channels >= LEAST_CHANNELS && join_taps(a, in, kernel, padding);
  return split_phases(a, in, kernel, padding, grouping);
}

/* False when the dim cannot be computed by phases. */
static bool split_axis(const Phases *p, uint32_t i, Grouping grouping, Axis *a) {
  const Convolution *c = p->c;
  uint32_t size = p->axis[i].size;
  /* Windows of a single element do not meet. */
  bool single = p->in[i] == 1 && !c->adjust[i] && c->dilation[i] == 1 && !p->dynamic[i];
  uint32_t stride = single ? c->kernel[i] : c->stride[i];
  *a = (Axis){.size = size, .step = stride, .dilation = c->dilation[i]};
  if (stride == 0 || (stride > 1 && a->dilation > 1))
    return false;
  a->length = (size + stride - 1) / stride;
  a->phases = a->length == 1 ? size : stride;
  if (p->dynamic[i] && a->phases != stride)
    return false;
  return group_phases(p, i, grouping, a) && can_crop(p, i, a);
}

/* --- what it costs --- */

static double cost_of(const Phases *p, const Axis axis[2]) {
  const Convolution *c = p->c;
  uint32_t in = c->in_channels / c->groups, out = c->out_channels / c->groups;
  double places = (double)axis[0].length * axis[1].length, cost = 0;
  double floats = places * axis[0].phases * axis[1].phases * c->out_channels, weights = 0;
  bool turns = false;
  for (uint32_t i = 0; i < axis[0].count; i++)
    for (uint32_t k = 0; k < axis[1].count; k++) {
      const Part *h = &axis[0].parts[i], *w = &axis[1].parts[k];
      cost += TIME_NODE + places * h->taps * w->taps * in * c->groups *
                              sixteens((uint64_t)h->count * w->count * out) * TIME_PRODUCT;
      weights += (double)h->count * h->taps * w->count * w->taps * in * c->out_channels;
      turns |= h->count > 1;
    }
  weights -= (double)c->kernel[0] * c->kernel[1] * in * c->out_channels;
  cost += weights > 0 ? weights * sizeof(float) * TIME_OF_STEPS : 0;
  for (uint32_t i = 0; i < 2; i++) {
    cost += axis[i].count > 1 ? TIME_NODE + floats * TIME_COPIED : 0;
    if (axis[i].length * axis[i].phases > axis[i].size)
      cost += TIME_NODE + floats * TIME_COPIED;
  }
  return cost + (turns ? TIME_NODE + floats * TIME_MOVED : 0);
}

/* Whether XNNPACK has loops for all parts. */
static bool has_loops(const Convolution *c, const Axis axis[2]) {
  uint32_t most[2] = {0, 0};
  for (uint32_t i = 0; i < 2; i++)
    for (uint32_t k = 0; k < axis[i].count; k++)
      most[i] = axis[i].parts[k].taps > most[i] ? axis[i].parts[k].taps : most[i];
  return !xl_has_one_input_a_group(c) || (uint64_t)most[0] * most[1] <= DEPTHWISE_TAPS;
}

/* The cheapest way to group the phases; false when none is possible. */
static bool choose(Phases *p) {
  double best = 0;
  Axis axis[2], chosen[2];
  bool found = false;
  Grouping most =
      p->c->groups > 1 ? LIKE_PHASES : GROUPINGS; /* channels of a group stay together */
  for (Grouping h = EACH_PHASE; h < most; h++)
    for (Grouping w = EACH_PHASE; w < most; w++) {
      if (!split_axis(p, 0, h, &axis[0]) || !split_axis(p, 1, w, &axis[1]) ||
          !has_loops(p->c, axis))
        continue;
      double cost = cost_of(p, axis) * (h == ALL_TAPS || w == ALL_TAPS ? DOUBT : 1);
      if (found && cost >= best)
        continue;
      best = cost;
      found = true;
      memcpy(chosen, axis, sizeof axis);
    }
  if (found)
    memcpy(p->axis, chosen, sizeof chosen);
  return found;
}

/* --- operands --- */

/* Where the weights of a part are read: element (row phase, column phase, output, row, column,
 * input) of the convolution. */
typedef struct Source {
  const Phases *p;
  const Part *part[2];
} Source;

/* The tap of the kernel that is tap t of a phase, counted in the order of the image; there may be
 * none. */
static int64_t tap_of(const Source *s, uint32_t i, uint32_t phase, uint32_t t) {
  return s->part[i]->first + phase + (int64_t)s->p->axis[i].step * (s->part[i]->taps - 1 - t);
}

/* The inputs of one output channel at one tap, or for depthwise kernels the outputs at one tap. */
static int32_t *find_run(const Source *s, uint32_t output, int64_t row, int64_t column,
                         int32_t *to) {
  const Convolution *c = s->p->c;
  bool inside = row >= 0 && row < c->kernel[0] && column >= 0 && column < c->kernel[1];
  uint32_t in = c->in_channels / c->groups, out = c->out_channels / c->groups;
  uint64_t taps = (uint64_t)c->kernel[0] * c->kernel[1],
           tap = inside ? (uint64_t)row * c->kernel[1] + (uint64_t)column : 0;
  bool depthwise = xl_has_one_input_a_group(c);
  uint64_t first = depthwise ? 0 : (uint64_t)(output / out) * in * out + output % out;
  uint64_t step = depthwise ? 1 : out, count = depthwise ? c->out_channels : in;
  for (uint64_t i = 0; i < count; i++)
    *to++ = inside ? (int32_t)((first + i * step) * taps + tap) : XL_NO_ELEMENT;
  return to;
}

/* Which weight each one of the part is. */
static void find_weights(const Source *s, int32_t *to) {
  const Convolution *c = s->p->c;
  const Part *h = s->part[0], *w = s->part[1];
  uint32_t outputs = xl_has_one_input_a_group(c) ? 1 : c->out_channels;
  uint64_t count = (uint64_t)h->count * w->count * outputs;
  for (uint64_t i = 0; i < count; i++) {
    uint32_t column_phase = (uint32_t)(i / outputs % w->count),
             row_phase = (uint32_t)(i / outputs / w->count);
    for (uint32_t y = 0; y < h->taps; y++)
      for (uint32_t x = 0; x < w->taps; x++)
        to = find_run(s, (uint32_t)(i % outputs), tap_of(s, 0, row_phase, y),
                      tap_of(s, 1, column_phase, x), to);
  }
}

/* The whole kernel, with a tap of its own for each phase: only the order of its dims changes, which
 * is done when the program is written. */
static XnnId whole_filter(XnnLowering *l, const Phases *p) {
  const Convolution *c = p->c;
  uint32_t kh = c->kernel[0], kw = c->kernel[1], in = c->in_channels, out = c->out_channels;
  XnnId id = xl_permuted_constant(l, p->weight, 4, (uint32_t[]){kh, kw, out, in},
                                  (uint32_t[]){2, 3, 1, 0}, p->half);
  if (xl_ok(l))
    memcpy(l->x.values[id].dims, (uint32_t[]){kh * kw * out, 1, 1, in}, 4 * sizeof(uint32_t));
  return id;
}

static XnnId filter(XnnLowering *l, const Phases *p, const Part *h, const Part *w) {
  const Convolution *c = p->c;
  bool whole = h->taps == 1 && w->taps == 1 && h->first == 0 && w->first == 0 &&
               h->count == c->kernel[0] && w->count == c->kernel[1];
  if (whole && c->groups == 1 && value_is_const(l->g, p->weight))
    return whole_filter(l, p);
  bool depthwise = xl_has_one_input_a_group(c);
  uint32_t outputs = h->count * w->count * c->out_channels;
  uint32_t dims[] = {depthwise ? 1 : outputs, h->taps, w->taps,
                     depthwise ? outputs : c->in_channels / c->groups};
  int32_t *from = NULL;
  if (!l->trial) {
    from = ARENA_ARRAY(l->arena, int32_t, (size_t)dims[0] * dims[1] * dims[2] * dims[3] + 1);
    find_weights(&(Source){p, {h, w}}, from);
  }
  return xl_picked_constant(l, p->weight, false, 4, dims, from);
}

/* The bias of each phase. */
static XnnId bias_of(XnnLowering *l, const Phases *p, uint32_t phases) {
  if (!p->bias)
    return XNN_NONE;
  if (phases == 1)
    return xl_filter(l, p->bias);
  return xl_repeated_bias(l, p->bias, phases * p->c->out_channels);
}

/* --- nodes --- */

/* The phases of a part as channels, on an image of so many places. */
static XnnId convolved(XnnLowering *l, const Phases *p, const Part *h, const Part *w, XnnId in,
                       const SymInt places[2]) {
  const Convolution *c = p->c;
  uint32_t phases = h->count * w->count;
  ConvolutionNode node = {.kind = xl_has_one_input_a_group(c) ? XNN_DEPTHWISE_CONV2D : XNN_CONV2D,
                          .before = {h->before, w->before},
                          .after = {h->after, w->after},
                          .kernel = {h->taps, w->taps},
                          .stride = {1, 1},
                          .dilation = {p->axis[0].dilation, p->axis[1].dilation},
                          .groups = c->groups,
                          .in_channels = c->in_channels,
                          .out_channels = phases * c->out_channels};
  SymInt dims[] = {p->batch, places[0], places[1], node.out_channels};
  ConvolutionValues v = {.in = in, .weights = filter(l, p, h, w)};
  v.bias = bias_of(l, p, phases);
  v.out = xl_sym_temp(l, 4, dims);
  bool fixed = sym_is_const(places[0]) && sym_is_const(places[1]);
  xl_node_or_product(l, &node, fixed && value_is_const(l->g, p->weight), p->batch, &v);
  return v.out;
}

/* The parts of some rows as [n, h, phases of rows * w, phases of columns * c]. */
static XnnId rows_of(XnnLowering *l, const Phases *p, const Part *h, XnnId in) {
  const Axis *wide = &p->axis[1];
  SymInt height = p->length[0], width = p->length[1],
         line = (SymInt)wide->phases * p->c->out_channels;
  SymInt split[] = {p->batch, height, width, h->count, line},
         permuted[] = {p->batch, height, h->count, width, line},
         joined[] = {p->batch, height, sym_mul(&l->g->syms, width, h->count), line};
  XnnId items[MAX_PARTS], rows;
  for (uint32_t i = 0; i < wide->count; i++) {
    items[i] = convolved(l, p, h, &wide->parts[i], in, (const SymInt[]){height, width});
    SymInt dims[] = {p->batch, height, width, h->count,
                     (SymInt)wide->parts[i].count * p->c->out_channels};
    if (h->count > 1)
      items[i] = xl_reshaped(l, items[i], dims, 5);
  }
  rows = items[0];
  if (wide->count > 1) {
    rows = h->count > 1 ? xl_sym_temp(l, 5, split) : xl_sym_temp(l, 4, joined);
    xl_concatenate(l, items, wide->count, h->count > 1 ? 4 : 3, rows);
  }
  if (h->count == 1)
    return rows;
  if (wide->length > 1) {
    XnnId in_order = xl_sym_temp(l, 5, permuted);
    xl_transpose(l, rows, (uint32_t[]){0, 1, 3, 2, 4}, 5, in_order);
    rows = in_order;
  }
  return xl_reshaped(l, rows, joined, 4);
}

/* Cuts off what is beyond the result in one dim of [n, h, w, c]. */
static XnnId cropped(XnnLowering *l, const Phases *p, uint32_t i, XnnId in, SymInt dims[4]) {
  const Axis *a = &p->axis[i];
  if (a->phases * a->length == a->size)
    return in;
  dims[1 + i] = a->size;
  XnnId out = xl_sym_temp(l, 4, dims);
  xl_slice(l, in, 1 + i, a->skipped, a->size, out);
  return out;
}

/* --- the whole --- */

/* Of weights that are there. */
static bool read_operands(XnnLowering *l, NodeId n, const Convolution *c, Phases *p) {
  Graph *g = l->g;
  *p = (Phases){.c = c,
                .weight = node_value(g, n, 1),
                .bias = node_value(g, n, 2),
                .batch = value_dim(g, node_value(g, n, 0), 0)};
  p->half = value_dtype(g, p->weight) == DTYPE_F16;
  return xl_elements(l, p->weight) <= INT32_MAX && !(p->half && xl_has_one_input_a_group(c));
}

/* Of which one is dynamic at most. */
static bool read_sizes(XnnLowering *l, NodeId n, Phases *p) {
  const Convolution *c = p->c;
  ValueId x = node_value(l->g, n, 0);
  uint32_t out[2], dynamic = !sym_is_const(p->batch);
  for (uint32_t i = 0; i < 2; i++) {
    SymInt size = c->rank == 1 && i == 0 ? 1 : value_dim(l->g, x, c->rank + i);
    p->in[i] = xl_upper(l, size);
    p->length[i] = size;
    p->dynamic[i] = !sym_is_const(size);
    dynamic += p->dynamic[i];
    int64_t reach = (int64_t)(c->kernel[i] - 1) * c->dilation[i] + 1 + c->adjust[i];
    p->axis[i].size =
        (uint32_t)((int64_t)c->stride[i] * (p->in[i] - 1) + reach - 2 * (int64_t)c->padding[i]);
  }
  return xl_ok(l) && (dynamic <= 1 || xl_image_sizes(l, n, c, p->in, out));
}

bool xl_by_phases(XnnLowering *l, NodeId n, const Convolution *c, XnnId in, XnnId out) {
  Phases p;
  if (!xl_ok(l))
    return false;
  if (!read_operands(l, n, c, &p) || !read_sizes(l, n, &p) || !choose(&p))
    return xl_by_dynamic_phases(l, n, c, in, out);
  SymTable *syms = &l->g->syms;
  const Axis *high = &p.axis[0], *wide = &p.axis[1];
  for (uint32_t i = 0; i < 2; i++) /* a result has a fixed number of phases more than the image */
    p.length[i] = sym_add(syms, p.length[i], (SymInt)p.axis[i].length - p.in[i]);
  SymInt line = (SymInt)wide->phases * c->out_channels,
         columns = sym_mul(syms, p.length[1], wide->phases);
  XnnId items[MAX_PARTS];
  for (uint32_t i = 0; i < high->count; i++)
    items[i] = rows_of(l, &p, &high->parts[i], in);
  XnnId rows = items[0];
  if (high->count > 1) {
    SymInt joined[] = {p.batch, p.length[0], sym_mul(syms, p.length[1], high->phases), line};
    rows = xl_sym_temp(l, 4, joined);
    xl_concatenate(l, items, high->count, 2, rows);
  }
  SymInt dims[] = {p.batch, sym_mul(syms, p.length[0], high->phases), columns, c->out_channels};
  XnnId whole = xl_reshaped(l, rows, dims, 4);
  whole = cropped(l, &p, 1, cropped(l, &p, 0, whole, dims), dims);
  xl_unary(l, XNN_COPY, whole, out);
  return true;
}

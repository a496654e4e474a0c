/* Pieces of depthwise kernels.
 *
 * XNNPACK has loops for depthwise kernels of some numbers of taps. One of fewer taps runs as the
 * next larger one, one of more than the largest as a convolution of one channel in each group, ten
 * times slower. A sum of pieces costs an addition each. Pieces are rows times columns of the
 * kernel: neighbours, which want the image without the rows or columns that they do not read, a
 * copy; or those of a distance, whose columns XNNPACK wants more pointers for. */
#include "backends/xnnpack/convolution.h"

/* Measured costs of an element of the result, in hundredths of a nanosecond: of the loops, ... */
static const struct {
  uint32_t taps, cost;
} loops[] = {{3, 18}, {4, 22}, {9, 44}, {DEPTHWISE_TAPS, 122}};

enum {
  NO_LOOP = 46, /* ... of a tap without a loop, */
  ADDITION = 9, /* of adding a piece, */
  CROPS = 12,   /* of leaving out rows, */
  CROPS_COLUMNS = 20,
  DISTANT = 10,      /* hundredths of a loop, for columns at a distance, */
  MOST_OUTPUTS = 4,  /* for a channel: of one concatenation */
  WORTH_CUTTING = 85 /* hundredths of the cost of the whole that pieces may have. */
};

/* How rows or columns are divided. */
typedef struct Division {
  uint32_t count; /* of taps in each part, but for the last ones */
  bool distant;   /* every so many-th, or neighbours */
} Division;

static uint32_t part_count(uint32_t taps, Division d) { return (taps + d.count - 1) / d.count; }

/* Part i of t. */
static Taps part(Taps t, Division d, uint32_t i) {
  uint32_t parts = part_count(t.count, d);
  if (d.distant)
    return (Taps){t.first + i * t.step, (t.count - i + parts - 1) / parts, t.step * parts};
  uint32_t begin = i * d.count;
  return (Taps){t.first + begin * t.step, (uint32_t)min_i64(d.count, t.count - begin), t.step};
}

static uint64_t loop_cost(uint64_t taps) {
  for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
    if (taps <= loops[i].taps)
      return loops[i].cost;
  return taps * NO_LOOP;
}

/* What the image without rows or columns costs; UINT64_MAX when it cannot be cut so. */
static uint64_t crop_cost(const Convolution *c, const Piece *p, uint32_t dim, uint32_t in) {
  int64_t before = min_i64(xl_piece_before(c, p, dim), 0),
          after = min_i64(xl_piece_after(c, p, dim), 0);
  if (before + after == 0)
    return 0;
  if (in + before + after < 1) /* also where its size is not known: 0 */
    return UINT64_MAX;
  return dim ? CROPS_COLUMNS : CROPS;
}

double xl_depthwise_time(uint32_t taps) { return (double)loop_cost(taps) / 100; }

/* The pieces, those of the same columns together, and what they cost; UINT64_MAX when they cannot
 * be, or cost as much as what is known. */
static uint64_t divide(const Convolution *c, const Piece *whole, const Division by[2],
                       const uint32_t in[2], uint64_t known, Piece *pieces, uint32_t *count) {
  uint32_t rows = part_count(whole->taps[0].count, by[0]),
           columns = part_count(whole->taps[1].count, by[1]);
  uint64_t cost = 0;
  *count = 0;
  if ((uint64_t)rows * columns > MAX_PIECES)
    return UINT64_MAX;
  for (uint32_t k = 0; k < columns; k++)
    for (uint32_t i = 0; i < rows; i++) {
      Piece *p = &pieces[(*count)++];
      p->taps[0] = part(whole->taps[0], by[0], i);
      p->taps[1] = part(whole->taps[1], by[1], k);
      uint64_t crops[] = {crop_cost(c, p, 0, in[0]), crop_cost(c, p, 1, in[1])},
               loop = loop_cost((uint64_t)p->taps[0].count * p->taps[1].count);
      if (crops[0] == UINT64_MAX || crops[1] == UINT64_MAX)
        return UINT64_MAX;
      cost += crops[0] + (i ? 0 : crops[1]) + (i || k ? ADDITION : 0) + loop;
      if (columns > 1 && by[1].distant)
        cost += loop * DISTANT / 100;
      if (cost >= known)
        return UINT64_MAX;
    }
  return cost;
}

uint32_t xl_depthwise_pieces(const Convolution *c, const Piece *p, const uint32_t in[2],
                             uint32_t least, Piece *pieces) {
  Piece tried[MAX_PIECES];
  uint32_t count = 1, rows = p->taps[0].count, columns = p->taps[1].count, made;
  uint64_t taps = (uint64_t)rows * columns, best = loop_cost(taps) * WORTH_CUTTING / 100;
  pieces[0] = *p;
  for (uint32_t r = 1; taps >= least && r <= rows && r <= DEPTHWISE_TAPS; r++)
    for (uint32_t k = 1; k <= columns && r * k <= DEPTHWISE_TAPS; k++)
      for (uint32_t forms = 0; forms < 4; forms++) {
        const Division by[] = {{r, forms & 1}, {k, forms >> 1}};
        uint64_t cost = divide(c, p, by, in, best, tried, &made);
        if (cost == UINT64_MAX)
          continue;
        best = cost;
        count = made;
        memcpy(pieces, tried, made * sizeof *tried);
      }
  return count;
}

/* [rows, channels] -> [rows, outputs, channels] -> [rows, channels, outputs]. */
XnnId xl_repeat_channels(XnnLowering *l, NodeId n, Convolution *c, XnnId in) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0);
  uint32_t outputs = c->out_channels / c->in_channels, inner = c->in_channels;
  XnnId copies[MOST_OUTPUTS];
  if (!xl_ok(l) || !c->depthwise || outputs == 1 || outputs > MOST_OUTPUTS ||
      !value_is_const(g, node_value(g, n, 1)) || xl_dynamic_dim_count(g, x) > 1)
    return in;
  SymInt rows = sym_mul(&g->syms, value_dim(g, x, 0), value_dim(g, x, 2)),
         wide[] = {value_dim(g, x, 0), 1, value_dim(g, x, 2), c->out_channels};
  if (c->rank == 2) {
    rows = sym_mul(&g->syms, rows, value_dim(g, x, 3));
    wide[1] = value_dim(g, x, 2);
    wide[2] = value_dim(g, x, 3);
  }
  SymInt flat[] = {rows, 1, inner}, joined[] = {rows, outputs, inner},
         permuted[] = {rows, inner, outputs};
  XnnId one = xl_sym_temp(l, 3, flat), all = xl_sym_temp(l, 3, joined),
        split = xl_sym_temp(l, 3, permuted), image = xl_sym_temp(l, 4, wide);
  for (uint32_t i = 0; i < outputs; i++)
    copies[i] = one;
  xl_reshape(l, in, flat, 3, one);
  xl_concatenate(l, copies, outputs, 1, all);
  xl_transpose(l, all, (uint32_t[]){0, 2, 1}, 3, split);
  xl_reshape(l, split, wide, 4, image);
  c->in_channels = c->groups = c->out_channels;
  return image;
}

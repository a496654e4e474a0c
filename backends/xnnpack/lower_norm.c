/* Group norm and instance norm. On images in NHWC the means over height and width are pools, and
 * the means of groups are over what these leave; elsewhere the rows of [batch, groups, rest] are
 * normalised. */
#include "backends/xnnpack/lower.h"

/* A constant of [channels] as one that varies along dim 1 of a tensor of that rank. */
static XnnId per_channel(XnnLowering *l, ValueId v, uint32_t rank) {
  if (!is_constant_or_codes(l->g, v)) {
    xl_refuse(l, XNN_RULE_RUNTIME_WEIGHTS, R_STR("argument", "per-channel"));
    return XNN_NONE;
  }
  uint32_t dims[XNN_MAX_RANK] = {xl_dim(l, v, 0), 1, 1, 1, 1, 1};
  return xl_floats(l, rank - 1, dims, xl_constant_floats(l, v));
}

typedef struct GroupNorm {
  ValueId x, y, weight, bias;
  SymInt batch;
  uint32_t groups, channels;
  double eps;
} GroupNorm;

/* The mean of each group plus offset, from means of the channels [batch, 1, 1, channels], against
 * which it broadcasts. */
static XnnId group_means(XnnLowering *l, const GroupNorm *n, XnnId means, double offset) {
  uint32_t width = n->channels / n->groups, batch = xl_dim(l, n->x, 0);
  XnnId spread = xl_temp_like(l, means);
  if (!xl_ok(l))
    return XNN_NONE;
  if (width == 1) {
    if (offset == 0)
      return means;
    xl_binary(l, XNN_ADD, means, xl_number(l, offset, 4), spread);
    return spread;
  }
  XnnId split = XL_TEMP(l, batch, n->groups, width), whole = XL_TEMP(l, batch, n->groups, width);
  xl_reshape(l, means, (SymInt[]){n->batch, n->groups, width}, 3, split);
  XnnId mean = xl_row_sums(l, split, NULL, 1.0 / width, offset);
  xl_binary(l, XNN_MULTIPLY, mean, xl_ones(l, 3, (uint32_t[]){1, 1, width}), whole);
  xl_reshape(l, whole, (SymInt[]){n->batch, 1, 1, n->channels}, 4, spread);
  return spread;
}

/* (x - mean) * (weight / deviation) + bias. */
static void image_norm(XnnLowering *l, const GroupNorm *n) {
  XnnId in = xl_nhwc(l, n->x), out = xl_result_nhwc(l, n->y);
  XnnId mean = group_means(l, n, xl_image_means(l, in), 0), centered = xl_temp_like(l, in),
        square = xl_temp_like(l, in);
  xl_binary(l, XNN_SUBTRACT, in, mean, centered);
  xl_unary(l, XNN_SQUARE, centered, square);
  XnnId variance = group_means(l, n, xl_image_means(l, square), n->eps),
        factor = xl_temp_like(l, variance);
  xl_unary(l, XNN_RECIPROCAL_SQUARE_ROOT, variance, factor);
  if (n->weight) {
    XnnId weighted = xl_temp_like(l, factor);
    xl_binary(l, XNN_MULTIPLY, factor, xl_plain(l, n->weight), weighted);
    factor = weighted;
  }
  xl_scale_and_shift(l, centered, factor, n->bias ? xl_plain(l, n->bias) : XNN_NONE, out);
}

static void row_norm(XnnLowering *l, const GroupNorm *n) {
  Graph *g = l->g;
  uint32_t rank = value_rank(g, n->x), rest = 1;
  for (uint32_t i = 1; i < rank; i++) {
    if (!sym_is_const(value_dim(g, n->x, i)))
      xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", i));
    rest *= xl_dim(l, n->x, i);
  }
  XnnId in = xl_plain(l, n->x), out = xl_result(l, n->y);
  if (!xl_ok(l))
    return;
  SymInt rows[] = {n->batch, n->groups, rest / n->groups};
  XnnId grouped = XL_TEMP(l, xl_dim(l, n->x, 0), n->groups, rest / n->groups);
  xl_reshape(l, in, rows, 3, grouped);
  XnnId flat = xl_normalized(l, grouped, rows, n->eps), back = xl_temp_like(l, in);
  xl_reshape_to(l, flat, n->x, back);
  XnnId shift = n->bias ? per_channel(l, n->bias, rank) : XNN_NONE;
  xl_scale_and_shift(l, back, n->weight ? per_channel(l, n->weight, rank) : XNN_NONE, shift, out);
}

void lower_group_norm(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  GroupNorm norm = {.x = node_value(g, n, 0),
                    .y = node_result(g, n, 0),
                    .weight = node_value(g, n, 1),
                    .bias = node_value(g, n, 2),
                    .batch = value_dim(g, node_value(g, n, 0), 0),
                    .groups = (uint32_t)node_int(g, n, 6),
                    .eps = node_scalar(g, n, 7)};
  if (!xl_results_unused(l, n, 1))
    return;
  if (!sym_is_const(value_dim(g, norm.x, 1)))
    xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", 1));
  norm.channels = xl_dim(l, norm.x, 1);
  if (!xl_ok(l))
    return;
  bool image = value_rank(g, norm.x) == 4;
  bool varies =
      image && !(sym_is_const(value_dim(g, norm.x, 2)) && sym_is_const(value_dim(g, norm.x, 3)));
  if (image && (xl_in_nhwc(l, norm.y) || varies))
    image_norm(l, &norm);
  else
    row_norm(l, &norm);
}

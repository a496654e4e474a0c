/* Sums and means over windows of neighbouring channels, as local response norms have them:
 *   view(avg_pool2d(constant_pad_nd(view(x, [N, 1, C, rest]), ..), [k, 1]), dims of x),
 * also with views of more dims, or with a convolution of one channel instead of the pool (and its
 * sum divided by k), become convolutions of lines of channels:
 *   permute(view(convolution(view(permute(x), [N * rest, 1, C]), [1, 1, k])))
 * Backends that keep the channels last have these lines as they lie, and compute many elements at a
 * time. The runtime's kernels do not, so it is for backends alone. */
#include "ir/match.h"
#include "passes/pass.h"

enum { MOST_TAPS = 64 };

typedef struct Windows {
  NodeId node; /* that computes them */
  ValueId x;   /* [N, C, ...] */
  int64_t taps, before, after;
  float weights[MOST_TAPS];
} Windows;

static bool all_are(const Graph *g, NodeId n, uint32_t arg, int64_t value) {
  const int64_t *entries = node_ints(g, n, arg);
  for (uint32_t i = 0; i < node_list_count(g, n, arg); i++)
    if (entries[i] != value)
      return false;
  return true;
}

/* A mean over [k, 1], one window at each place. */
static bool read_pool(const Graph *g, NodeId n, Windows *w) {
  if (node_list_count(g, n, 1) != 2 || node_ints(g, n, 1)[1] != 1 || node_bool(g, n, 4) ||
      node_list_count(g, n, 2) == 0 || !all_are(g, n, 2, 1) || !all_are(g, n, 3, 0) ||
      !node_absent(g, n, 6))
    return false;
  w->taps = node_ints(g, n, 1)[0];
  for (int64_t i = 0; i < w->taps && i < MOST_TAPS; i++)
    w->weights[i] = 1.0f / (float)w->taps;
  return true;
}

/* The same with any weights. */
static bool read_convolution(Graph *g, NodeId n, Windows *w) {
  ValueId weight = node_value(g, n, 1);
  if (!node_absent(g, n, 2) || !all_are(g, n, 3, 1) || !all_are(g, n, 4, 0) ||
      !all_are(g, n, 5, 1) || node_bool(g, n, 6) || node_int(g, n, 8) != 1 ||
      !value_is_const(g, weight) || value_dtype(g, weight) != DTYPE_F32 ||
      value_rank(g, weight) != 4 || value_dim(g, weight, 0) != 1 || value_dim(g, weight, 1) != 1 ||
      value_dim(g, weight, 3) != 1 || value_dim(g, weight, 2) > MOST_TAPS)
    return false;
  w->taps = value_dim(g, weight, 2);
  memcpy(w->weights, value_constant(g, weight)->data, (size_t)w->taps * sizeof(float));
  return true;
}

/* padded, [N, 1, C + pads, ...], as zeros around the channels of w->x. */
static bool read_channels(const Graph *g, ValueId padded, Windows *w) {
  NodeId pad = match_op(g, match_unviewed(g, padded), OP_CONSTANT_PAD_ND);
  if (value_rank(g, padded) != 4 || value_dim(g, padded, 1) != 1 || !pad ||
      node_scalar(g, pad, 2) != 0)
    return false;
  SymInt batch = value_dim(g, padded, 0), channels = value_dim(g, padded, 2);
  ValueId whole = node_result(g, pad, 0), inner = node_value(g, pad, 0);
  uint32_t rank = value_rank(g, whole), entries = node_list_count(g, pad, 1);
  if (rank < 3 || entries != 2 * (rank - 2) || value_dim(g, whole, 0) != batch ||
      value_dim(g, whole, 1) != 1 || value_dim(g, whole, 2) != channels)
    return false;
  const int64_t *pads = node_ints(g, pad, 1);
  for (uint32_t i = 0; i + 2 < entries; i++)
    if (pads[i] != 0)
      return false;
  w->before = pads[entries - 2];
  w->after = pads[entries - 1];
  w->x = match_unviewed(g, inner);
  return value_rank(g, w->x) >= 3 && value_dim(g, w->x, 0) == batch &&
         value_dim(g, w->x, 1) == value_dim(g, inner, 2);
}

/* Symbolic pads are below 0. */
static bool fits(const Graph *g, const Windows *w) {
  uint32_t varying = 0;
  for (uint32_t i = 0; i < value_rank(g, w->x); i++)
    varying += !sym_is_const(value_dim(g, w->x, i));
  return varying <= 1 && sym_is_const(value_dim(g, w->x, 1)) && value_dtype(g, w->x) == DTYPE_F32 &&
         w->taps <= MOST_TAPS && w->before >= 0 && w->after >= 0 &&
         w->before + w->after + 1 == w->taps;
}

/* The windows that v is a view of, perhaps divided by their size. */
static bool find_windows(Graph *g, ValueId v, Windows *w) {
  NodeId division = match_op_once(g, v, OP_DIV_TENSOR);
  if (division)
    v = match_unviewed(g, node_value(g, division, 0));
  NodeId pool = match_op_once(g, v, OP_AVG_POOL2D), sum = match_op_once(g, v, OP_CONVOLUTION);
  if (!(pool && read_pool(g, pool, w)) && !(sum && read_convolution(g, sum, w)))
    return false;
  w->node = pool ? pool : sum;
  if (!read_channels(g, node_value(g, w->node, 0), w) || !fits(g, w))
    return false;
  if (!division)
    return true;
  for (int64_t i = 0; i < w->taps; i++)
    w->weights[i] /= (float)w->taps;
  return match_filled(g, node_value(g, division, 1), (double)w->taps);
}

/* With as many zeros before the taps as behind them, which is what a convolution pads with. */
static ValueId weights_of(Builder *b, const Windows *w, int64_t padding) {
  float taps[2 * MOST_TAPS] = {0};
  memcpy(taps + padding - w->before, w->weights, (size_t)w->taps * sizeof(float));
  int64_t dims[] = {1, 1, 2 * padding + 1};
  return build_const(b, DTYPE_F32, 3, dims, taps);
}

static ValueId lines(Builder *b, NodeId n) {
  Graph *g = b->g;
  Windows w = {0};
  if (!find_windows(g, match_unviewed(g, node_value(g, n, 0)), &w) || !match_fits(g, n, w.x))
    return 0;
  Dims x = value_dims(g, w.x);
  SymInt last[MAX_RANK], places = 1, line[3];
  int64_t there[MAX_RANK], back[MAX_RANK];
  for (uint32_t i = 0; i < x.rank; i++) {
    there[i] = i == 0 ? 0 : i + 1 < x.rank ? i + 1 : 1;
    back[i] = i == 0 ? 0 : i == 1 ? x.rank - 1 : i - 1;
    last[i] = x.d[there[i]];
    places = i == 1 ? places : sym_mul(&g->syms, places, x.d[i]);
  }
  line[0] = places, line[1] = 1, line[2] = x.d[1];
  int64_t padding = w.before > w.after ? w.before : w.after;
  ValueId weights = weights_of(b, &w, padding);
  ValueId rows = build_view(b, build_permute(b, w.x, there), line, 3);
  ValueId sums =
      build(b, OP_CONVOLUTION, A_VAL(rows), A_VAL(weights), A_NONE, A_INTS(((int64_t[]){1}), 1),
            A_INTS(&padding, 1), A_INTS(((int64_t[]){1}), 1), A_BOOL(false),
            A_INTS(((int64_t[]){0}), 1), A_INT(1));
  return build_permute(b, build_view(b, sums, last, x.rank), back);
}

Status pass_recover_channel_windows(PassContext *p, Graph *g) {
  static const RewriteRule rows[] = {{OP_VIEW_COPY, lines, "windows"}};
  return pass_rewrite(p, g, rows, COUNT_OF(rows));
}

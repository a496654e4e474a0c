/* Takes biases out: what is added to the result of a matrix product is moved through the nodes that
 * follow until it meets another bias, into which it is added when the program is compiled.
 *
 *   W2 (x + b) + c    =  W2 x + (W2 b + c)
 *   (x + b) + (y + c) =  x + (y + (b + c))
 *   relu(x + b)       =  clamp(x, min = -b) + b
 *
 * Why: a convolution or linear as a product is two kernels, of which the second only adds a number
 * to each channel. In inverted bottlenecks and residual networks of 1x1 convolutions most of them
 * can go.
 *
 * How: "the offset of v" is what v lacks once the bias in front of it is gone. It is one number for
 * each channel; element i of a value is in channel i / inner % channels, which views do not change.
 * Starting at the bias, the pass follows every use: each node either computes its result's offset
 * from its operand's (views, sums, relu, clamp, means over the places of a channel, windows without
 * padding, products with constants), or is a bias that absorbs the offset. If any use is neither,
 * the bias stays. That is found out first, without numbers; then the same walk computes them.
 * Offsets are computed in double precision and rounded once. Only f32; dynamic shapes stay. */
#include "passes/executorch/sink_biases.h"

#include "ir/builder.h"
#include "ir/match.h"
#include "ir/transform.h"
#include "passes/executorch/views.h"
#include "passes/pass.h"
#include "support/number.h"
#include "support/parallel.h"

enum {
  ACTIONS_MAX = 64,
  VISITS_MAX = 192,    /* of one bias */
  LANES = 8,           /* sums of a row */
  GRAIN = 1 << 20,     /* products that are worth a thread, some 0.3 ms */
  WORK_MAX = 100000000 /* products and visits of the pass, some 0.1 s */
};

typedef struct Offset {
  uint64_t channels, inner;
  double *values; /* NULL while only the paths are looked at, which do not depend on them */
} Offset;

/* A change to a node, made once all uses are known to be taken care of. */
typedef struct Action {
  NodeId node;
  uint32_t arg; /* of a sum: the operand that is its bias; of relu and clamp: 0 */
  Offset offset;
} Action;

typedef struct Sink {
  Graph *g;
  Arena *scratch; /* for one bias */
  Action actions[ACTIONS_MAX];
  NodeId visited[VISITS_MAX];
  uint32_t action_count, visit_count;
  uint64_t work;
} Sink;

static uint64_t count_of(const Graph *g, ValueId v) {
  const Type *t = value_type(g, v);
  uint64_t count = 1;
  for (uint32_t i = 0; i < t->rank; i++)
    if (!sym_is_const(t->dims[i]) || !mul_u64(count, (uint64_t)t->dims[i], &count))
      return 0;
  return count;
}

static float constant_at(const Graph *g, ValueId v, uint64_t i) {
  return float_at(value_constant(g, v)->data, i);
}

/* The dim of v whose indices are the channels; its rank when there is no such dim. */
static uint32_t channel_dim(const Graph *g, ValueId v, const Offset *o) {
  const Type *t = value_type(g, v);
  uint64_t inner = 1;
  for (uint32_t i = t->rank; i-- > 0; inner *= (uint64_t)t->dims[i])
    if ((uint64_t)t->dims[i] == o->channels && inner == o->inner)
      return i;
  return t->rank;
}

/* Whether constant c, an operand of a sum with the shape of v, is one number for each channel. Sets
 * all of *o but the values. */
static bool reads_as_offset(const Graph *g, ValueId c, ValueId v, Offset *o) {
  const Type *t = value_type(g, c), *sum = value_type(g, v);
  uint64_t inner = 1;
  if (!value_is_const(g, c) || t->dtype != DTYPE_F32 || t->rank > sum->rank)
    return false;
  *o = (Offset){0};
  for (uint32_t i = 0; i < t->rank; i++) {
    uint32_t from = t->rank - 1 - i;
    if (t->dims[from] != 1 && o->channels)
      return false;
    if (t->dims[from] != 1)
      *o = (Offset){.channels = (uint64_t)t->dims[from], .inner = inner};
    inner *= (uint64_t)sum->dims[sum->rank - 1 - i];
  }
  return o->channels != 0;
}

/* The values of a constant that reads_as_offset() has accepted. */
static void read_values(Sink *s, ValueId c, Offset *o) {
  o->values = ARENA_ARRAY(s->scratch, double, o->channels);
  for (uint64_t i = 0; i < o->channels; i++)
    o->values[i] = (double)constant_at(s->g, c, i);
}

/* The index of the constant operand of a sum, if one is. */
static uint32_t bias_operand(const Graph *g, NodeId n) {
  return value_is_const(g, node_value(g, n, 1)) ? 1 : 0;
}

static bool act(Sink *s, NodeId n, uint32_t arg, const Offset *o) {
  if (s->action_count == ACTIONS_MAX)
    return false;
  s->actions[s->action_count++] = (Action){.node = n, .arg = arg, .offset = *o};
  return true;
}

static bool sinks(Sink *s, ValueId v, Offset o);

/* --- products: the offset of the result is the constant operand times the offset --- */

/* next += w^T o; reads the weights once, in the order of memory. */
static void add_columns(const uint8_t *weights, const Offset *o, uint64_t length,
                        const Offset *next) {
  uint64_t places = length / o->channels, columns = next->channels;
  double *restrict sums = next->values;
  for (uint64_t k = 0; k < length; k++, weights += columns * sizeof(float)) {
    double factor = o->values[k / places];
    for (uint64_t i = 0; i < columns; i++)
      sums[i] += (double)float_at(weights, i) * factor;
  }
}

/* Rows of a matrix times factors. */
typedef struct RowSums {
  const uint8_t *weights;
  const double *factors;
  uint64_t length;
  double *sums;
} RowSums;

/* In LANES sums, as one alone would wait for every addition. */
static double sum_row(const uint8_t *weights, const double *factors, uint64_t length) {
  double lanes[LANES] = {0}, sum = 0;
  uint64_t at = 0;
  for (; at + LANES <= length; at += LANES)
    for (uint64_t i = 0; i < LANES; i++)
      lanes[i] += (double)float_at(weights, at + i) * factors[at + i];
  for (uint64_t i = 0; i < LANES; i++)
    sum += lanes[i];
  for (; at < length; at++)
    sum += (double)float_at(weights, at) * factors[at];
  return sum;
}

static void sum_rows(void *user, size_t begin, size_t end) {
  const RowSums *w = user;
  for (size_t i = begin; i < end; i++)
    w->sums[i] = sum_row(w->weights + i * w->length * sizeof(float), w->factors, w->length);
}

/* next = w o. */
static void add_rows(Sink *s, const uint8_t *weights, const Offset *o, uint64_t length,
                     const Offset *next) {
  double *factors = ARENA_ARRAY(s->scratch, double, length);
  uint64_t places = length / o->channels;
  for (uint64_t at = 0; at < length; at++)
    factors[at] = o->values[at / places];
  RowSums w = {weights, factors, length, next->values};
  parallel_for(next->channels, GRAIN / length + 1, sum_rows, &w);
}

static void multiply(Sink *s, const uint8_t *weights, bool from_left, const Offset *o,
                     uint64_t length, const Offset *next) {
  if (from_left)
    add_columns(weights, o, length, next);
  else
    add_rows(s, weights, o, length, next);
}

/* mm with a constant. The offset must be the same for all rows (columns) of the other operand. */
static bool through_product(Sink *s, NodeId n, ValueId v, const Offset *o) {
  const Graph *g = s->g;
  ValueId left = node_value(g, n, 0), right = node_value(g, n, 1), w = v == right ? left : right;
  bool from_left = v == left;
  if (left == right || !value_is_const(g, w) || value_dtype(g, w) != DTYPE_F32)
    return false;
  uint64_t length = (uint64_t)value_dim(g, right, 0);
  uint64_t rows = (uint64_t)value_dim(g, left, 0), columns = (uint64_t)value_dim(g, right, 1);
  s->work += o->values ? 0 : length * (from_left ? columns : rows);
  if (s->work > WORK_MAX || length % o->channels != 0 ||
      o->inner != (from_left ? 1 : columns) * (length / o->channels))
    return false;
  Offset next = {.channels = from_left ? columns : rows, .inner = from_left ? 1 : columns};
  if (o->values) {
    next.values = ARENA_ARRAY(s->scratch, double, next.channels);
    const Constant *weights = value_constant(g, w);
    constant_fetch_pages(weights);
    multiply(s, weights->data, from_left, o, length, &next);
  }
  return sinks(s, node_result(g, n, 0), next);
}

/* Whether the other operand of a sum is, behind views, the result of a bias: that absorbs the
 * offset. Nothing else may use it. */
static bool into_other_bias(Sink *s, ValueId other, const Offset *o) {
  const Graph *g = s->g;
  NodeId n = value_def(g, other);
  while (n && value_used_once(g, other) && node_is_view(s->g, n)) {
    other = node_value(g, n, 0);
    n = value_def(g, other);
  }
  if (!n || !match_op_once(g, other, OP_ADD_TENSOR))
    return false;
  Offset own;
  uint32_t at = bias_operand(g, n);
  return reads_as_offset(g, node_value(g, n, at), other, &own) && own.channels == o->channels &&
         own.inner == o->inner && act(s, n, at, o);
}

/* A sum: a bias absorbs the offset. A sum of two values has the offset, too; where that cannot be
 * moved on, the bias of the other operand absorbs it. */
static bool through_sum(Sink *s, NodeId n, ValueId v, const Offset *o) {
  const Graph *g = s->g;
  ValueId a = node_value(g, n, 0), b = node_value(g, n, 1), other = v == a ? b : a;
  ValueId r = node_result(g, n, 0);
  Offset own;
  if (a == b || node_scalar(g, n, 2) != 1 || !value_same_type(g, v, r))
    return false;
  if (value_is_const(g, other))
    return reads_as_offset(g, other, r, &own) && own.channels == o->channels &&
           own.inner == o->inner && act(s, n, v == a, o);
  uint32_t actions = s->action_count, visits = s->visit_count;
  if (!value_same_type(g, other, r))
    return false;
  if (sinks(s, r, *o))
    return true;
  s->action_count = actions;
  s->visit_count = visits;
  return into_other_bias(s, other, o);
}

/* relu and clamp get their bounds less the offset, which their result has then. */
static bool through_clamp(Sink *s, NodeId n, ValueId v, const Offset *o) {
  return channel_dim(s->g, v, o) < value_rank(s->g, v) && act(s, n, 0, o) &&
         sinks(s, node_result(s->g, n, 0), *o);
}

/* The mean over all places of a channel. */
static bool through_mean(Sink *s, NodeId n, ValueId v, const Offset *o) {
  const Graph *g = s->g;
  uint32_t rank = value_rank(g, v), channel = channel_dim(g, v, o), seen = 0;
  if (channel == rank || node_absent(g, n, 1) || value_dtype(g, node_result(g, n, 0)) != DTYPE_F32)
    return false;
  for (uint32_t i = 0; i < node_list_count(g, n, 1); i++)
    seen |= 1u << wrap_dim(node_ints(g, n, 1)[i], rank);
  uint32_t places = ((1u << rank) - 1) & ~((1u << (channel + 1)) - 1);
  return seen == places &&
         sinks(s, node_result(g, n, 0), (Offset){o->channels, .inner = 1, .values = o->values});
}

/* Windows that stay within their channel. */
static bool through_windows(Sink *s, NodeId n, ValueId v, const Offset *o) {
  const Graph *g = s->g;
  uint32_t rank = node_list_count(g, n, 1);
  const SymInt *size = node_ints(g, n, 1), *stride = node_ints(g, n, 2);
  uint64_t all = count_of(g, node_result(g, n, 0)), reach = 0;
  if (rank == 0 || node_absent(g, n, 3) || node_int(g, n, 3) != 0 || all == 0 ||
      (uint64_t)size[0] != o->channels || (uint64_t)stride[0] != o->inner ||
      count_of(g, v) != o->channels * o->inner)
    return false;
  for (uint32_t i = 1; i < rank; i++)
    reach += (uint64_t)(size[i] - 1) * (uint64_t)stride[i];
  return reach < o->inner && sinks(s, node_result(g, n, 0),
                                   (Offset){o->channels, all / o->channels, .values = o->values});
}

/* Whether node n, a user of v, can do with v less the offset. */
static bool through(Sink *s, NodeId n, ValueId v, const Offset *o) {
  switch (node_cget(s->g, n)->op) {
  case OP_MM:
    return through_product(s, n, v, o);
  case OP_ADD_TENSOR:
    return through_sum(s, n, v, o);
  case OP_RELU:
  case OP_CLAMP:
    return through_clamp(s, n, v, o);
  case OP_MEAN_DIM:
    return through_mean(s, n, v, o);
  case OP_AS_STRIDED_COPY:
    return through_windows(s, n, v, o);
  default:
    return node_is_view(s->g, n) && value_dtype(s->g, node_result(s->g, n, 0)) == DTYPE_F32 &&
           sinks(s, node_result(s->g, n, 0), *o);
  }
}

/* Whether all users of v can do with v less the offset; adds what is to be done to the actions.
 * A node that is reached on two ways would have the offset of both: refused. */
static bool sinks(Sink *s, ValueId v, Offset o) {
  const Graph *g = s->g;
  if (!value_cget(g, v)->use_count || !count_of(g, v))
    return false;
  for (UseId u = first_use(g, v); u; u = g->uses[u].next) {
    NodeId n = g->uses[u].node;
    for (uint32_t i = 0; i < s->visit_count; i++)
      if (s->visited[i] == n)
        return false;
    s->work += !o.values;
    if (s->visit_count == VISITS_MAX || s->work > WORK_MAX)
      return false;
    s->visited[s->visit_count++] = n;
    if (!through(s, n, v, &o))
      return false;
  }
  return true;
}

/* The constant plus + sign * offset, which broadcasts along the channels of v. */
static ValueId channel_constant(Builder *b, ValueId v, const Offset *o, double sign, double plus) {
  int64_t dims[MAX_RANK] = {0};
  uint32_t rank = value_rank(b->g, v), channel = channel_dim(b->g, v, o);
  float *data = arena_alloc(&b->g->arena, o->channels * sizeof *data);
  for (uint64_t i = 0; i < o->channels; i++)
    data[i] = (float)(plus + sign * o->values[i]);
  for (uint32_t i = channel; i < rank; i++)
    dims[i - channel] = i == channel ? (int64_t)o->channels : 1;
  return build_const(b, DTYPE_F32, rank - channel, dims, data);
}

/* relu or clamp becomes a clamp whose bounds are less the offset. */
static void lower_bounds(Builder *b, const Action *a) {
  Graph *g = b->g;
  NodeId n = a->node;
  b->before = n;
  b->loc = node_cget(g, n)->loc;
  ValueId x = node_value(g, n, 0), r = node_result(g, n, 0);
  bool relu = node_cget(g, n)->op == OP_RELU;
  bool has_min = relu || !node_absent(g, n, 1), has_max = !relu && !node_absent(g, n, 2);
  ValueId min =
      !has_min ? 0 : channel_constant(b, x, &a->offset, -1, relu ? 0 : node_scalar(g, n, 1));
  ValueId max = !has_max ? 0 : channel_constant(b, x, &a->offset, -1, node_scalar(g, n, 2));
  ValueId y = build(b, OP_CLAMP_TENSOR, A_VAL(x), A_OPT(min), A_OPT(max));
  if (b->status != STATUS_OK)
    return;
  graph_replace_value(g, r, y);
  graph_remove_node(g, n);
}

/* A bias absorbs the offset. */
static void raise_constant(Builder *b, const Action *a) {
  Graph *g = b->g;
  ValueId c = node_value(g, a->node, a->arg);
  const Type *t = value_type(g, c);
  float *data = arena_alloc(&g->arena, a->offset.channels * sizeof *data);
  for (uint64_t i = 0; i < a->offset.channels; i++)
    data[i] = (float)((double)constant_at(g, c, i) + a->offset.values[i]);
  ValueId sum = build_const(b, DTYPE_F32, t->rank, t->dims, data);
  if (b->status == STATUS_OK)
    node_set_arg(g, a->node, a->arg, A_VAL(sum));
}

/* Removes the bias n, if all that uses its result can do without. */
static bool sink(Sink *s, Builder *b, NodeId n) {
  Graph *g = s->g;
  uint32_t at = bias_operand(g, n);
  ValueId x = node_value(g, n, 1 - at), r = node_result(g, n, 0);
  Offset o;
  s->action_count = s->visit_count = 0;
  if (node_scalar(g, n, 2) != 1 || !value_same_type(g, x, r) || value_dtype(g, r) != DTYPE_F32 ||
      !count_of(g, r) || !reads_as_offset(g, node_value(g, n, at), r, &o) || !sinks(s, r, o))
    return false;
  s->action_count = s->visit_count = 0;
  read_values(s, node_value(g, n, at), &o);
  if (!sinks(s, r, o)) /* the same paths, now with the values */
    return false;
  for (uint32_t i = 0; i < s->action_count && b->status == STATUS_OK; i++) {
    OpId op = node_cget(g, s->actions[i].node)->op;
    (op == OP_ADD_TENSOR ? raise_constant : lower_bounds)(b, &s->actions[i]);
  }
  if (b->status != STATUS_OK)
    return false;
  graph_replace_uses(g, r, x);
  graph_remove_node(g, n);
  return true;
}

Status sink_biases(Graph *g, Arena *scratch, uint64_t *count) {
  Builder b = builder_make(g, 0, 0);
  Arena values = {0};
  Sink *s = ARENA_NEW(scratch, Sink);
  s->g = g;
  s->scratch = &values;
  *count = 0;
  for (NodeId n = g->last, before; n && b.status == STATUS_OK; n = before) {
    before = node_cget(g, n)->prev; /* what changes stands behind */
    if (node_cget(g, n)->op == OP_ADD_TENSOR)
      *count += sink(s, &b, n);
    arena_reset(&values);
  }
  arena_release(&values);
  return b.status;
}

Status pass_sink_biases(PassContext *p, Graph *g) {
  uint64_t gone;
  TRY(sink_biases(g, p->scratch, &gone));
  pass_count(p, "biases", gone);
  return STATUS_OK;
}

/* See moments.h. */
#include "passes/quantize/moments.h"

#include "ir/transform.h"
#include "ops/quantized.h"
#include "passes/quantize/roles.h"
#include "quant/moments.h"

enum {
  CODES_MAX = 1 << 20, /* of a weight of 8 bits: they are kept in memory */
  TAPS_MAX = 4608,     /* 512 channels of 3x3 */
  ROWS = 4096,         /* of all samples, for weights of 8 bits */
  SAMPLES = 16,        /* that they are taken from */
  CONV_TRANSPOSED = 6, /* arguments of aten::convolution */
  CONV_GROUPS = 8
};

/* A product with a weight that is marked. */
typedef struct Mark {
  NodeId node;
  uint64_t hash[2]; /* of the contents of the weight, and the axis of its channels */
  uint32_t weight;  /* the first mark of an equal weight */
  uint32_t operand; /* its place in the list of moments */
} Mark;

typedef struct Marks {
  Graph *g;
  Mark *list;
  Moments *operands;
  ValueId *made; /* by operand: its moments as a constant, or 0 */
  uint32_t count, operand_count;
  uint32_t *place;    /* by value: 1 + its place in operands of linears, or 0 */
  uint32_t *products; /* by Mark.weight */
} Marks;

/* Whether the product takes the weight in the order of its channels. */
static bool takes_channels(const Graph *g, NodeId n, NodeId product) {
  return node_cget(g, product)->op == OP_LINEAR ? node_value(g, product, 1) == node_result(g, n, 0)
                                                : node_cget(g, product)->op == OP_CONVOLUTION &&
                                                      !node_bool(g, product, CONV_TRANSPOSED);
}

/* Of one product alone, in the order of its channels, and neither large nor of one column. */
static bool is_channels(const Graph *g, NodeId n, NodeId product) {
  ValueId w = node_value(g, n, 0);
  uint64_t size = (uint64_t)dims_count(value_type(g, w)->dims, 0, value_rank(g, w)),
           channels = (uint64_t)value_dim(g, w, 0), columns = channels ? size / channels : 0;
  return takes_channels(g, n, product) && value_used_once(g, w) &&
         wrap_dim(node_int(g, n, OBSERVE_AXIS), value_rank(g, w)) == 0 && columns > 1 &&
         columns <= TAPS_MAX && size <= CODES_MAX;
}

/* The product with the weight that is marked at n, of 4 bits or, with channels, of 8; 0: its codes
 * are the nearest ones. */
static NodeId marked_product(const Graph *g, NodeId n, bool channels) {
  if (node_cget(g, n)->op != OP_OBSERVE || node_absent(g, n, OBSERVE_AXIS) ||
      !node_absent(g, n, OBSERVE_MOMENTS) || !value_is_const(g, node_value(g, n, 0)))
    return 0;
  NodeId product = quant_product_of(g, n);
  if (!product)
    return 0;
  if (node_int(g, n, OBSERVE_RANGE) <= 0)
    return channels && is_channels(g, n, product) ? product : 0;
  return value_rank(g, node_value(g, n, 0)) == 2 && node_cget(g, product)->op == OP_LINEAR ? product
                                                                                           : 0;
}

static uint32_t add_operand(Marks *m, Moments own) {
  own.sums = ARENA_ARRAY(&m->g->arena, float, own.groups *own.columns *moments_width(own.columns));
  m->operands[m->operand_count++] = own;
  return m->operand_count - 1;
}

/* Operands of linears are those of several. */
static uint32_t operand_of(Marks *m, ValueId x, uint64_t columns) {
  if (!m->place[x])
    m->place[x] = add_operand(m, (Moments){.value = x, .groups = 1, .columns = columns}) + 1;
  return m->place[x] - 1;
}

static uint32_t windows_of(Marks *m, NodeId product, ValueId w) {
  const Graph *g = m->g;
  uint64_t columns = (uint64_t)dims_count(value_type(g, w)->dims, 1, value_rank(g, w));
  return add_operand(m, (Moments){.value = node_value(g, product, 0),
                                  .window = product,
                                  .groups = (uint64_t)node_int(g, product, CONV_GROUPS),
                                  .columns = columns});
}

/* By contents: each step of an unrolled loop may have a copy of its own. */
static void number_weight(Marks *m, Mark *mark, ValueId w, uint32_t axis) {
  constant_hash128(value_lazy_constant(m->g, w), axis, mark->hash);
  mark->weight = 0;
  while (memcmp(m->list[mark->weight].hash, mark->hash, sizeof mark->hash) != 0)
    mark->weight++;
  m->products[mark->weight]++;
}

static Marks find_marks(Graph *g, bool channels, Arena *arena) {
  Marks m = {.g = g,
             .list = ARENA_ARRAY(arena, Mark, g->node_count),
             .operands = ARENA_ARRAY(arena, Moments, g->node_count),
             .made = ARENA_ARRAY(arena, ValueId, g->node_count),
             .place = ARENA_ARRAY(arena, uint32_t, g->value_count),
             .products = ARENA_ARRAY(arena, uint32_t, g->node_count)};
  for (FOR_NODES(g, n)) {
    NodeId product = marked_product(g, n, channels);
    if (!product)
      continue;
    ValueId x = node_value(g, product, 0), w = node_value(g, n, 0);
    uint32_t axis = (uint32_t)wrap_dim(node_int(g, n, OBSERVE_AXIS), value_rank(g, w)),
             operand = node_cget(g, product)->op == OP_CONVOLUTION
                           ? windows_of(&m, product, w)
                           : operand_of(&m, x, (uint64_t)value_dim(g, w, 1 - axis));
    m.list[m.count] = (Mark){.node = n, .operand = operand};
    number_weight(&m, &m.list[m.count++], w, axis);
  }
  return m;
}

/* The rows of a sample that are taken. */
static void limit_windows(Marks *m, uint64_t total) {
  uint64_t samples = total < SAMPLES ? total : SAMPLES;
  for (uint32_t i = 0; i < m->operand_count; i++)
    m->operands[i].most = ROWS / (samples ? samples : 1);
}

static ValueId constant_of(Graph *g, const Moments *m) {
  uint64_t width = moments_width(m->columns), rows = m->groups * m->columns;
  SymInt dims[] = {(SymInt)rows, (SymInt)width};
  TypeId type = graph_tensor_type(g, DTYPE_F32, 2, dims, ORDER_CONTIGUOUS);
  Constant c = {.data = (const void *)m->sums, .size = rows * width * sizeof *m->sums};
  return graph_add_constant(g, type, c, 0);
}

/* The moments of all products with a weight, added up: it must have the same codes in each, so that
 * it is stored once. */
static ValueId sum_of(const Marks *m, uint32_t weight, uint64_t columns) {
  uint64_t count = columns * moments_width(columns);
  Moments sum = {.groups = 1, .columns = columns, .sums = ARENA_ARRAY(&m->g->arena, float, count)};
  for (uint32_t i = 0; i < m->count; i++)
    for (uint64_t k = 0; m->list[i].weight == weight && k < count; k++)
      sum.sums[k] += m->operands[m->list[i].operand].sums[k];
  return constant_of(m->g, &sum);
}

static void set_moments(const Marks *m, Arena *arena) {
  ValueId *sums = ARENA_ARRAY(arena, ValueId, m->count);
  for (uint32_t i = 0; i < m->count; i++) {
    const Mark *at = &m->list[i];
    const Moments *own = &m->operands[at->operand];
    ValueId *made = m->products[at->weight] > 1 ? &sums[at->weight] : &m->made[at->operand];
    if (!*made)
      *made = made == &m->made[at->operand] ? constant_of(m->g, own)
                                            : sum_of(m, at->weight, own->columns);
    node_set_arg(m->g, at->node, OBSERVE_MOMENTS, A_VAL(*made));
  }
}

static void report_made_up(PassContext *p) {
  DiagPlace place = DIAG_NOWHERE;
  place.option = SV("--calibrate");
  Diag *d = diag_begin(p->sink, DIAG_DATA_VALUE, place);
  diag_message(d, "the model does not run on random samples");
  diag_hint(d, "give samples: --calibrate PATH");
  (void)diag_end(d);
}

Status observe_moments(PassContext *p, Graph *g) {
  const QuantOptions *q = p->options->quantize;
  bool channels = q->scheme == QUANT_INT8 && q->data && q->range.method == RANGE_AUTO;
  Marks m = find_marks(g, channels, p->scratch);
  DataSet *set = NULL; /* of made-up samples */
  if (m.count == 0)
    return STATUS_OK;
  if (channels) /* some samples, by which nearly as much is known */
    TRY(dataset_open_some(&set, g, q->data, SAMPLES, p->sink));
  else if (q->data)
    TRY(dataset_open(&set, g, q->data, (DataShard){0, 1}, p->sink));
  if (channels)
    limit_windows(&m, dataset_total(set));
  Status status = moments_run(g, m.operands, m.operand_count, set, p->sink);
  dataset_close(set);
  if (status == STATUS_OK)
    set_moments(&m, p->scratch);
  else if (!q->data)
    report_made_up(p);
  pass_count(p, "weights", status == STATUS_OK ? m.count : 0);
  return status;
}

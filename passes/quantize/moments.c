/* See moments.h. */
#include "passes/quantize/moments.h"

#include "ops/quantized.h"
#include "passes/quantize/roles.h"
#include "quant/moments.h"

/* A product with a weight that is marked. */
typedef struct Mark {
  NodeId node;
  uint32_t weight;  /* 2 * its value + the axis of its channels */
  uint32_t operand; /* its place in the list of moments */
} Mark;

typedef struct Marks {
  Graph *g;
  Mark *list;
  Moments *operands;
  ValueId *made; /* by operand: its moments as a constant, or 0 */
  uint32_t count, operand_count;
  uint32_t *place;    /* by value: 1 + its place in operands, or 0 */
  uint32_t *products; /* by Mark.weight */
} Marks;

/* The product with the weight that is marked at n; 0: it is not one of 4 bits, or of no product. */
static NodeId product_of_blocks(const Graph *g, NodeId n) {
  if (node_cget(g, n)->op != OP_OBSERVE || node_absent(g, n, OBSERVE_AXIS) ||
      !node_absent(g, n, OBSERVE_MOMENTS) || node_int(g, n, OBSERVE_RANGE) <= 0 ||
      !value_is_const(g, node_value(g, n, 0)) || value_rank(g, node_value(g, n, 0)) != 2)
    return 0;
  NodeId product = quant_product_of(g, n);
  return product && node_cget(g, product)->op == OP_LINEAR ? product : 0;
}

static uint32_t operand_of(Marks *m, ValueId x, uint64_t columns) {
  if (!m->place[x]) {
    float *sums = ARENA_ARRAY(&m->g->arena, float, columns *moments_width(columns));
    m->operands[m->operand_count++] = (Moments){x, columns, sums};
    m->place[x] = m->operand_count;
  }
  return m->place[x] - 1;
}

static Marks find_marks(Graph *g, Arena *arena) {
  Marks m = {.g = g,
             .list = ARENA_ARRAY(arena, Mark, g->node_count),
             .operands = ARENA_ARRAY(arena, Moments, g->node_count),
             .made = ARENA_ARRAY(arena, ValueId, g->node_count),
             .place = ARENA_ARRAY(arena, uint32_t, g->value_count),
             .products = ARENA_ARRAY(arena, uint32_t, 2 * (size_t)g->value_count)};
  for (FOR_NODES(g, n)) {
    NodeId product = product_of_blocks(g, n);
    if (!product)
      continue;
    ValueId x = node_value(g, product, 0), w = node_value(g, n, 0);
    uint32_t axis = (uint32_t)wrap_dim(node_int(g, n, OBSERVE_AXIS), 2);
    uint64_t columns = (uint64_t)value_dim(g, w, 1 - axis);
    m.list[m.count] = (Mark){n, 2 * w + axis, operand_of(&m, x, columns)};
    m.products[m.list[m.count++].weight]++;
  }
  return m;
}

static ValueId constant_of(Graph *g, const Moments *m) {
  uint64_t width = moments_width(m->columns);
  SymInt dims[] = {(SymInt)m->columns, (SymInt)width};
  TypeId type = graph_tensor_type(g, DTYPE_F32, 2, dims, ORDER_CONTIGUOUS);
  Constant c = {.data = (const void *)m->sums, .size = m->columns * width * sizeof *m->sums};
  return graph_add_constant(g, type, c, 0);
}

/* The moments of all products with a weight, added up: it must have the same codes in each, so that
 * it is stored once. */
static ValueId sum_of(const Marks *m, uint32_t weight, uint64_t columns) {
  uint64_t count = columns * moments_width(columns);
  Moments sum = {.columns = columns, .sums = ARENA_ARRAY(&m->g->arena, float, count)};
  for (uint32_t i = 0; i < m->count; i++)
    for (uint64_t k = 0; m->list[i].weight == weight && k < count; k++)
      sum.sums[k] += m->operands[m->list[i].operand].sums[k];
  return constant_of(m->g, &sum);
}

static void set_moments(const Marks *m, Arena *arena) {
  ValueId *sums = ARENA_ARRAY(arena, ValueId, 2 * (size_t)m->g->value_count);
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
  Marks m = find_marks(g, p->scratch);
  const char *data = p->options->quantize->data;
  DataSet *set = NULL; /* of made-up samples */
  if (m.count == 0)
    return STATUS_OK;
  if (data)
    TRY(dataset_open(&set, g, data, (DataShard){0, 1}, p->sink));
  Status status = moments_run(g, m.operands, m.operand_count, set, p->sink);
  dataset_close(set);
  if (status == STATUS_OK)
    set_moments(&m, p->scratch);
  else if (!data)
    report_made_up(p);
  pass_count(p, "weights", status == STATUS_OK ? m.count : 0);
  return status;
}

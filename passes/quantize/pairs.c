/* Passes of the stage leave the nodes where they were and add quantize and dequantize around them,
 * so that handles say what belongs together. Only rows of quantized tables are made by new nodes,
 * which have the location of the old. */
#include "passes/quantize/pairs.h"

#include "ir/region.h"
#include "ops/quantized.h"
#include "passes/quantize/roles.h"

typedef struct Pairing {
  const Graph *plain, *g;
  Compare *c;
  NodeId *nodes;
  CompareForce *forces;
  ValueId *rows; /* by location: a value of the plain graph, of a table's rows */
  bool *live;    /* by node: outputs depend on it; passes leave what they replaced */
  bool *part;    /* by node: a clamp whose result stands for another node */
  Regions regions;
} Pairing;

static bool is_compared(const Graph *g, ValueId v) {
  const Type *t = value_type(g, v);
  return t->kind == TYPE_TENSOR && dtype_is_float((DType)t->dtype);
}

/* Outside of branches and loops, in which a value may be there several times, or never. */
static bool runs_once(const Pairing *p, NodeId n) {
  return !p->regions.any || (p->regions.scope[n] == 0 && p->regions.partner[n] == 0);
}

static bool survives(const Pairing *p, NodeId n) {
  return n < p->plain->node_count && node_cget(p->plain, n)->op == node_cget(p->g, n)->op;
}

/* What stands for v behind its rounding by a fixed range, or 0. */
static ValueId rounded(const Graph *g, ValueId v) {
  for (UseId u = first_use(g, v); u; u = g->uses[u].next) {
    NodeId n = g->uses[u].node;
    if (n == NODE_OUTPUT || !is_quantize(g, n) || quantization_of(g, n).dynamic)
      continue;
    ValueId codes = node_result(g, n, 0);
    UseId use = first_use(g, codes);
    NodeId user = use ? g->uses[use].node : 0;
    if (user && user != NODE_OUTPUT && is_dequantize(g, user))
      return node_result(g, user, 0);
  }
  return 0;
}

/* The node that dequantizes operand v; 0: none does. */
static NodeId dequantized_by(const Graph *g, ValueId v) {
  NodeId def = v ? value_def(g, v) : 0;
  if (def && node_cget(g, def)->op == OP_PERMUTE_COPY)
    def = value_def(g, node_value(g, def, 0));
  return is_dequantize(g, def) ? def : 0;
}

typedef struct Operands {
  bool quantized; /* there are any */
  bool own;       /* and their rounding is that of the node: weights, ranges at run time */
} Operands;

static Operands operands_of(const Graph *g, NodeId n) {
  Operands o = {false, false};
  FOR_OPERANDS(g, n, v, {
    NodeId by = dequantized_by(g, v);
    o.quantized = o.quantized || by;
    o.own = o.own ||
            (by && (value_is_const(g, node_value(g, by, 0)) || quantization_of(g, by).dynamic));
  })
  return o;
}

/* Somebody reads v without its rounding. */
static bool read_plain(const Graph *g, ValueId v) {
  for (UseId u = first_use(g, v); u; u = g->uses[u].next)
    if (g->uses[u].node == NODE_OUTPUT || !is_quantize(g, g->uses[u].node))
      return true;
  return false;
}

static void add_pair(Pairing *p, ValueId plain, ValueId quantized, NodeId n, bool output) {
  p->nodes[p->c->pair_count] = n;
  p->c->pairs[p->c->pair_count++] =
      (ComparePair){.plain = plain, .quantized = quantized, .output = output};
}

static void add_force(Pairing *p, ValueId plain, ValueId quantized) {
  p->forces[p->c->force_count++] = (CompareForce){plain, quantized};
}

/* The clamp that is a part of the node that makes v. */
static NodeId clamp_behind(const Pairing *p, ValueId v) {
  const Graph *g = p->g;
  NodeId user = value_only_user(g, v);
  bool clamps =
      user && survives(p, user) && runs_once(p, user) && quant_role(p->plain, user) == ROLE_CLAMP;
  return clamps ? user : 0;
}

static void pair_result(Pairing *p, NodeId n, ValueId v, Operands o) {
  const Graph *g = p->g;
  ValueId point = rounded(g, v);
  NodeId clamp = o.quantized && !point ? clamp_behind(p, v) : 0;
  if (clamp) {
    p->part[clamp] = true;
    v = node_result(g, clamp, 0);
    point = rounded(g, v);
  }
  bool moves = quant_role(p->plain, n) == ROLE_MOVE;
  if (point)
    add_force(p, v, point);
  if (!moves && (o.own || point))
    add_pair(p, v, point && !(o.own && read_plain(g, v)) ? point : v, n, false);
}

static bool same_type(const Pairing *p, ValueId plain, ValueId v) {
  const Type *a = value_type(p->plain, plain), *b = value_type(p->g, v);
  return is_compared(p->g, v) && a->dtype == b->dtype &&
         dims_same(a->dims, a->rank, b->dims, b->rank);
}

static void pair_node(Pairing *p, NodeId n) {
  const Graph *g = p->g;
  if (is_quantize(g, n) || is_dequantize(g, n) || p->part[n] || !p->live[n] || !runs_once(p, n))
    return;
  if (survives(p, n)) {
    Operands o = operands_of(g, n);
    for (uint32_t i = 0; i < node_cget(g, n)->result_count; i++)
      if (is_compared(g, node_result(g, n, i)))
        pair_result(p, n, node_result(g, n, i), o);
    return;
  }
  ValueId v = node_result(g, n, 0);
  LocId loc = node_cget(g, n)->loc;
  ValueId rows = loc < p->plain->loc_count ? p->rows[loc] : 0;
  if (!rows || node_cget(g, n)->op != OP_MUL_TENSOR || !same_type(p, rows, v))
    return;
  ValueId point = rounded(g, v);
  if (point)
    add_force(p, rows, point);
  add_pair(p, rows, point ? point : v, n, false);
}

static bool is_used(const Pairing *p, NodeId n) {
  const Graph *g = p->g;
  for (uint32_t i = 0; i < node_cget(g, n)->result_count; i++)
    for (UseId u = first_use(g, node_result(g, n, i)); u; u = g->uses[u].next)
      if (g->uses[u].node == NODE_OUTPUT || p->live[g->uses[u].node])
        return true;
  return false;
}

static void find_live(Pairing *p, Arena *arena) {
  const Graph *g = p->g;
  p->live = ARENA_ARRAY(arena, bool, g->node_count);
  for (NodeId n = g->last; n; n = node_cget(g, n)->prev)
    p->live[n] = op_has_trait(node_cget(g, n)->op, OP_CONTROL | OP_EFFECT) || is_used(p, n);
}

/* What was chosen from tables whose nodes are gone, by location. */
static void find_rows(Pairing *p, Arena *arena) {
  const Graph *plain = p->plain;
  p->rows = ARENA_ARRAY(arena, ValueId, (size_t)plain->loc_count + 1);
  for (FOR_NODES(plain, n)) {
    ValueId v = node_result(plain, n, 0);
    bool gone = value_cget(p->g, v)->kind != VALUE_RESULT || value_def(p->g, v) != n;
    if (gone && quant_role(plain, n) == ROLE_TABLE && is_compared(plain, v) && runs_once(p, n))
      p->rows[node_cget(plain, n)->loc] = v;
  }
  p->rows[0] = 0;
}

static void pair_outputs(Pairing *p) {
  for (uint32_t i = 0; i < graph_output_count(p->plain); i++) {
    ValueId plain = graph_output(p->plain, i), v = graph_output(p->g, i);
    if (is_compared(p->plain, plain) && is_compared(p->g, v))
      add_pair(p, plain, v, 0, true);
  }
}

void find_pairs(const Graph *plain, const Graph *g, Arena *arena, Compare *c, NodeId **nodes) {
  uint32_t most = g->value_count + graph_output_count(plain);
  NodeId at;
  *c = (Compare){.plain = plain, .quantized = g};
  Pairing p = {.plain = plain, .g = g, .c = c};
  c->pairs = ARENA_ARRAY(arena, ComparePair, most);
  c->forces = p.forces = ARENA_ARRAY(arena, CompareForce, most);
  *nodes = p.nodes = ARENA_ARRAY(arena, NodeId, most);
  p.part = ARENA_ARRAY(arena, bool, g->node_count);
  if (!regions_find(g, arena, &p.regions, &at)) {
    find_live(&p, arena);
    find_rows(&p, arena);
    for (uint32_t i = 0; i < g->input_count; i++) {
      ValueId v = g->inputs[i], point = is_compared(g, v) ? rounded(g, v) : 0;
      if (point)
        add_pair(&p, v, point, 0, false);
    }
    for (FOR_NODES(g, n))
      pair_node(&p, n);
  }
  pair_outputs(&p);
}

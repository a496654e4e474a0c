/* Which values become integers.
 *
 * Products (convolution, linear, batches) are computed in integers. Between them, arithmetic,
 * functions and joins are, when one of their operands comes from such a node and what they make
 * goes to one: integers then flow from product to product without a conversion. What leads to ops
 * that stay in floats (norms, softmax, outputs) is computed in floats, where it costs little and
 * loses nothing: the sums of residual branches before a norm, for one. Moves follow their operand.
 *
 * Each value that is quantized gets a node `observe` behind it, with the number of its range:
 * values of one range share scale and zero point. All users of an
 * integer node read its result through it; of the result of a float node only integer users do. A
 * clamp behind a node is a part of it, so that what is observed is what is left.
 *
 * Where small values count, as in divisors, all stays in floats (precise.c).
 *
 * Only weights are quantized in loops, where what was rounded comes back in each iteration, and of
 * the last product before a loop or an output. */
#include "backends/selection.h"
#include "ir/builder.h"
#include "ir/region.h"
#include "ops/quantized.h"
#include "passes/pass.h"
#include "passes/quantize/blocks.h"
#include "passes/quantize/precise.h"
#include "passes/quantize/roles.h"
#include "passes/source/weight_codes.h"

enum {
  DEPTH_MAX = 8,
  WEIGHT_LARGE = 4096, /* bytes */
  TABLE_SAVES = 1024 /* bytes; the nodes of its rows, three more, take half of that in a program */
};

typedef struct Plan {
  Graph *g;
  Arena *arena;
  uint8_t *role; /* by node: QuantRole */
  bool *integer; /* by node */
  bool *looped;  /* by node: in a loop */
  Precise precise;
  bool *floats;   /* by node: it computes in floats, also with a weight that is quantized */
  NodeId *clamp;  /* by node: the clamp that is a part of it; 0: none */
  bool *absorbed; /* by node: a clamp that is a part of another node */
  bool *wanted_as_integer; /* by value: by a node that is or may be integer */
  bool *made_by_integer;   /* by value */
  bool *symmetric;         /* by value, of the first of a range */
  ValueId *range;          /* by value: another of its range, or itself */
  uint32_t *number;        /* by value, of the first of a range: its number, from 1; 0: none yet */
  uint32_t numbers;
} Plan;

static Plan make_plan(Graph *g, Arena *arena) {
  Plan p = {.g = g, .arena = arena};
  p.role = ARENA_ARRAY(arena, uint8_t, g->node_count);
  p.integer = ARENA_ARRAY(arena, bool, g->node_count);
  p.looped = ARENA_ARRAY(arena, bool, g->node_count);
  p.precise = find_precise(g, arena);
  p.floats = ARENA_ARRAY(arena, bool, g->node_count);
  p.clamp = ARENA_ARRAY(arena, NodeId, g->node_count);
  p.absorbed = ARENA_ARRAY(arena, bool, g->node_count);
  p.wanted_as_integer = ARENA_ARRAY(arena, bool, g->value_count);
  p.made_by_integer = ARENA_ARRAY(arena, bool, g->value_count);
  p.symmetric = ARENA_ARRAY(arena, bool, g->value_count);
  p.range = ARENA_ARRAY(arena, ValueId, g->value_count);
  p.number = ARENA_ARRAY(arena, uint32_t, g->value_count);
  for (ValueId v = 0; v < g->value_count; v++)
    p.range[v] = v;
  return p;
}

static ValueId range_of(const Plan *p, ValueId v) {
  while (p->range[v] != v)
    v = p->range[v];
  return v;
}

static void share_range(Plan *p, ValueId a, ValueId b) {
  a = range_of(p, a);
  b = range_of(p, b);
  p->range[b] = a;
  p->symmetric[a] = p->symmetric[a] || p->symmetric[b];
}

/* --- who computes in integers --- */

static bool may_clamp(QuantRole role) {
  return role == ROLE_PRODUCT || role == ROLE_ARITHMETIC || role == ROLE_BATCH;
}

static void find_loops(Plan *p) {
  Regions regions;
  NodeId at;
  if (regions_find(p->g, p->arena, &regions, &at) || !regions.any)
    return;
  for (FOR_NODES(p->g, n))
    p->looped[n] = region_outermost_loop(p->g, &regions, n, 0) != 0;
}

static bool is_product(QuantRole role) { return role == ROLE_PRODUCT || role == ROLE_BATCH; }
static bool passes_on(QuantRole role) { return role == ROLE_MOVE || role == ROLE_JOIN; }

/* What n makes goes into loops and nowhere else, as it is, through moves, or joined with more. */
static bool feeds_loops(const Plan *p, NodeId n, uint32_t depth) {
  const Graph *g = p->g;
  ValueId y = node_result(g, n, 0);
  for (UseId u = first_use(g, y); u; u = g->uses[u].next) {
    NodeId user = g->uses[u].node;
    if (user == NODE_OUTPUT)
      return false;
    if (p->looped[user])
      continue;
    if (depth == DEPTH_MAX || !passes_on(quant_role(g, user)) || !feeds_loops(p, user, depth + 1))
      return false;
  }
  return first_use(g, y) != 0;
}

/* A linear of one row that makes outputs of the graph and nothing else. Its time is that of reading
 * the weights, which are integers either way; in floats neither what it takes nor the outputs are
 * rounded. */
static bool is_head(const Graph *g, NodeId n) {
  ValueId y = node_result(g, n, 0);
  for (uint32_t i = 0; i + 1 < value_rank(g, y); i++)
    if (value_dim(g, y, i) != 1)
      return false;
  for (UseId u = first_use(g, y); u; u = g->uses[u].next)
    if (g->uses[u].node != NODE_OUTPUT)
      return false;
  return true;
}

/* Products with probabilities, most of which are less than a step of 8 bits. */
static bool takes_softmax(const Graph *g, NodeId n) {
  bool product = is_product(quant_role(g, n));
  NodeId def = product ? value_def(g, node_value(g, n, 0)) : 0;
  while (def && quant_role(g, def) == ROLE_MOVE)
    def = value_def(g, node_value(g, def, 0));
  return def && node_cget(g, def)->op == OP_SOFTMAX;
}

/* Whether n has a weight that is worth quantizing where it computes in floats. */
static bool has_large_weight(const Graph *g, NodeId n) {
  QuantWeight w;
  return quant_weight(g, n, quant_role(g, n), &w) &&
         value_lazy_constant(g, w.constant)->size >= WEIGHT_LARGE;
}

/* Whether the options, the backends, or what is made of its result keep n and its weight in floats.
 */
static bool stays_out(PassContext *c, const Plan *p, NodeId n) {
  const QuantOptions *o = c->options->quantize;
  return !backends_quantize(c, p->g, n) || (o->kept && n < o->kept_count && o->kept[n]) ||
         selection_of_node(o->floats, p->g, n).size > 0 || precise_makes_spectrum(&p->precise, n);
}

/* Whether n is computed in floats for what is divided by its result. */
static bool makes_divisor(const Plan *p, NodeId n) {
  DivisorPart part = precise_divisor(&p->precise, n);
  return part == DIVISOR_WHOLE || (part == DIVISOR_WITHIN && !is_product(quant_role(p->g, n)));
}

static void find_roles(PassContext *c, Plan *p) {
  Graph *g = p->g;
  const QuantOptions *options = c->options->quantize;
  bool by_ranges = options->scheme == QUANT_INT8; /* activations; else by rows, or not at all */
  for (FOR_NODES(g, n)) {
    bool fine = by_ranges && (takes_softmax(g, n) || makes_divisor(p, n)),
         out = stays_out(c, p, n) || (fine && !has_large_weight(g, n)),
         linear = node_cget(g, n)->op == OP_LINEAR,
         tail = by_ranges && linear && (is_head(g, n) || feeds_loops(p, n, 0));
    p->role[n] = out ? ROLE_FLOAT : (uint8_t)quant_role(g, n);
    p->floats[n] =
        p->looped[n] || tail || fine || selection_of_node(options->weight_only, g, n).size > 0;
  }
}

/* Limits that belong to the node before them. */
static void find_clamps(Plan *p) {
  Graph *g = p->g;
  for (FOR_NODES(g, n)) {
    ValueId y = node_result(g, n, 0);
    NodeId user = may_clamp((QuantRole)p->role[n]) ? value_only_user(g, y) : 0;
    if (!user || p->role[user] != ROLE_CLAMP)
      continue;
    p->clamp[n] = user;
    p->absorbed[user] = true;
  }
}

static uint32_t result_count(const Plan *p, NodeId n) {
  return p->clamp[n] ? 1 : node_cget(p->g, n)->result_count;
}
static ValueId result_of(const Plan *p, NodeId n, uint32_t i) {
  return p->clamp[n] ? node_result(p->g, p->clamp[n], 0) : node_result(p->g, n, i);
}

static bool any_wanted(const Plan *p, NodeId n) {
  for (uint32_t i = 0; i < result_count(p, n); i++)
    if (p->wanted_as_integer[result_of(p, n, i)])
      return true;
  return false;
}

static bool any_made(const Plan *p, NodeId n, QuantRole role) {
  for (uint32_t k = 0; k < quant_operand_count(p->g, n, role); k++)
    if (p->made_by_integer[quant_operand(p->g, n, role, k)])
      return true;
  return false;
}

static void find_wanted(Plan *p) {
  Graph *g = p->g;
  for (NodeId n = g->last; n; n = node_cget(g, n)->prev) {
    QuantRole role = (QuantRole)p->role[n];
    if (p->absorbed[n] || p->floats[n] || (!is_product(role) && !any_wanted(p, n)))
      continue;
    for (uint32_t k = 0; k < quant_operand_count(g, n, role); k++)
      p->wanted_as_integer[quant_operand(g, n, role, k)] = true;
  }
}

static void find_integers(Plan *p) {
  Graph *g = p->g;
  for (FOR_NODES(g, n)) {
    QuantRole role = (QuantRole)p->role[n];
    if (p->absorbed[n] || p->floats[n] || role == ROLE_FLOAT || role == ROLE_TABLE)
      continue;
    p->integer[n] =
        is_product(role) || (any_made(p, n, role) && (role == ROLE_MOVE || any_wanted(p, n)));
    for (uint32_t i = 0; p->integer[n] && i < result_count(p, n); i++)
      p->made_by_integer[result_of(p, n, i)] = true;
  }
}

/* Moves keep codes as they are; the second operand of a batch of products has zero point 0. What
 * joins have in common depends on the ranges that are observed. */
static void find_ranges(Plan *p) {
  Graph *g = p->g;
  for (FOR_NODES(g, n)) {
    QuantRole role = (QuantRole)p->role[n];
    if (!p->integer[n])
      continue;
    if (role == ROLE_BATCH)
      p->symmetric[range_of(p, node_value(g, n, 1))] = true;
    for (uint32_t i = 0; role == ROLE_MOVE && i < node_cget(g, n)->result_count; i++)
      share_range(p, node_value(g, n, 0), node_result(g, n, i));
  }
}

/* --- nodes --- */

static void replace_operand(Graph *g, NodeId n, ValueId from, ValueId to, Arena *arena) {
  for (uint32_t i = 0; i < node_cget(g, n)->arg_count; i++) {
    ArgIn arg = node_arg_in(g, n, i, arena);
    if (arg.kind == ARG_VALUE && arg.i == from) {
      node_set_arg(g, n, i, A_VAL(to));
    } else if (arg.kind == ARG_VALUES) {
      ValueId *values = ARENA_ARRAY(arena, ValueId, (size_t)arg.count + 1);
      for (uint32_t k = 0; k < arg.count; k++)
        values[k] = arg.values[k] == from ? to : arg.values[k];
      node_set_arg(g, n, i, A_VALS(values, arg.count));
    }
  }
}

static uint32_t number_of(Plan *p, ValueId v) {
  ValueId first = range_of(p, v);
  if (!p->number[first])
    p->number[first] = ++p->numbers;
  return p->number[first];
}

static ValueId observe(Plan *p, ValueId v, NodeId before, LocId loc, Status *status) {
  Builder b = builder_make(p->g, before, loc);
  bool symmetric = p->symmetric[range_of(p, v)];
  ValueId seen = build(&b, OP_OBSERVE, A_VAL(v), A_INT(number_of(p, v)), A_NONE,
                       A_INT(symmetric ? -INT8_MAX : INT8_MIN), A_INT(INT8_MAX), A_BOOL(symmetric),
                       A_NONE, A_NONE, A_NONE);
  *status = b.status;
  return seen;
}

/* A value that is not used by integer nodes alone. */
static Status observe_operand(Plan *p, ValueId v, ValueId *seen, uint32_t seen_count) {
  Graph *g = p->g;
  NodeId def = value_def(g, v), before = def ? node_cget(g, def)->next : g->first;
  Status status;
  LocId loc = def ? node_cget(g, def)->loc : 0;
  ValueId to = observe(p, v, before, loc, &status);
  TRY(status);
  if (v < seen_count)
    seen[v] = to;
  if (!p->made_by_integer[v])
    return STATUS_OK;
  graph_replace_uses(g, v, to);
  node_set_arg(g, value_def(g, to), 0, A_VAL(v));
  return STATUS_OK;
}

static Status observe_node(Plan *p, NodeId n, ValueId *seen, uint32_t count) {
  Graph *g = p->g;
  QuantRole role = (QuantRole)p->role[n];
  for (uint32_t k = 0; k < quant_operand_count(g, n, role); k++) {
    ValueId v = quant_operand(g, n, role, k);
    Status status = STATUS_OK;
    if (v >= count) /* observed: it is what a node on integers makes */
      continue;
    if (value_is_const(g, v)) {
      ValueId to = observe(p, v, n, node_cget(g, n)->loc, &status);
      TRY(status);
      replace_operand(g, n, v, to, p->arena);
      continue;
    }
    if (!seen[v])
      TRY(observe_operand(p, v, seen, count));
    replace_operand(g, n, v, seen[v], p->arena);
  }
  for (uint32_t i = 0; i < result_count(p, n); i++) {
    ValueId y = result_of(p, n, i);
    if (value_cget(g, y)->use_count)
      TRY(observe_operand(p, y, seen, count));
  }
  return STATUS_OK;
}

/* Matrices that are to have 4 bits. */
typedef struct Blocks {
  uint32_t wanted, uneven; /* uneven: whose rows no whole blocks fill */
  NodeId first;            /* of these */
  SymInt columns;          /* its */
} Blocks;

/* The size of the blocks of a weight, in 4 bits; 0: channels, in 8 bits. */
static uint32_t block_of(const Plan *p, NodeId n, const QuantWeight *w, const QuantOptions *o,
                         Blocks *seen) {
  if (o->scheme != QUANT_INT4_WEIGHT_ONLY || node_cget(p->g, n)->op != OP_LINEAR ||
      is_head(p->g, n))
    return 0;
  SymInt columns = value_dim(p->g, w->constant, w->permute ? 0 : 1);
  seen->wanted++;
  if (columns > 0 && columns % o->block == 0)
    return o->block;
  if (seen->uneven++ == 0) {
    seen->first = n;
    seen->columns = columns;
  }
  return 0;
}

static void warn_uneven(const PassContext *c, const Graph *g, const Blocks *seen) {
  const QuantOptions *o = c->options->quantize;
  if (!seen->uneven || o->kept) /* else it was said in the first of several runs */
    return;
  Diag *d = diag_begin(c->sink, DIAG_BLOCKS_UNEVEN, node_place(g, seen->first));
  diag_message(d,
               "%u of %u matrices get weights of 8 bits: blocks of %u do not divide their rows, "
               "here of %lld",
               seen->uneven, seen->wanted, o->block, (long long)seen->columns);
  if (seen->columns % QUANT_BLOCK_LEAST == 0)
    diag_hint(d, "choose blocks that do: --quantize int4-weight-only:N");
  else
    diag_hint(d, "rows of a multiple of %d elements can have 4 bits", QUANT_BLOCK_LEAST);
  (void)diag_end(d);
}

static Status observe_weight(Plan *p, NodeId n, const QuantWeight *w, uint32_t block) {
  Graph *g = p->g;
  static const int64_t swap[] = {1, 0};
  Builder b = builder_make(g, n, node_cget(g, n)->loc);
  ValueId seen =
      build(&b, OP_OBSERVE, A_VAL(w->constant), A_INT(block), A_INT(w->axis),
            A_INT(block ? BLOCK_CODE_MIN : -INT8_MAX), A_INT(block ? BLOCK_CODE_MAX : INT8_MAX),
            A_BOOL(true), A_NONE, A_NONE, A_NONE);
  if (w->permute)
    seen = build_permute(&b, seen, swap);
  if (b.status == STATUS_OK)
    node_set_arg(g, n, w->operand, A_VAL(seen));
  return b.status;
}

/* The rows that a linear takes, quantized by the range that each has at run time. */
static Status quantize_rows(Plan *p, NodeId n, ValueId *seen) {
  Graph *g = p->g;
  ValueId x = node_value(g, n, 0);
  NodeId def = value_def(g, x);
  Builder b = builder_make(g, def ? node_cget(g, def)->next : g->first, node_cget(g, n)->loc);
  if (!seen[x]) {
    Quantization q = build_rows(&b, x);
    ValueId codes = build_quantize(&b, x, &q);
    seen[x] = build_dequantize(&b, codes, &q);
  }
  if (b.status == STATUS_OK)
    node_set_arg(g, n, 0, A_VAL(seen[x]));
  return b.status;
}

/* Whether a table is so much smaller as codes and scales of its rows. */
static bool saves_enough(const Graph *g, ValueId table) {
  uint64_t size = value_lazy_constant(g, table)->size;
  return size - size / sizeof(float) >=
         TABLE_SAVES + (uint64_t)value_dim(g, table, 0) * sizeof(float);
}

/* Whether the weight of n, which computes in floats, is quantized. Backends compute floats times
 * codes of rows alone, and would make floats of weights of convolutions; portable kernels widen
 * large ones in each call. */
static bool has_lone_codes(const PassContext *c, const Graph *g, NodeId n, const QuantWeight *w) {
  if (node_cget(g, n)->op == OP_LINEAR)
    return true;
  return c->options->quantize->scheme != QUANT_INT8_DYNAMIC && c->options->backend_count == 0 &&
         !node_bool(g, n, op_arg_index(OP_CONVOLUTION, "transposed")) &&
         value_lazy_constant(g, w->constant)->size >= WIDENED_LEAST * sizeof(float);
}

/* Whether the weight of n is quantized. Rows of tables lose more in 8 bits than all else does when
 * activations are quantized at run time. */
static bool has_codes(const PassContext *c, const Plan *p, NodeId n, const QuantWeight *w) {
  QuantScheme scheme = c->options->quantize->scheme;
  if (p->role[n] == ROLE_TABLE)
    return scheme != QUANT_INT8_DYNAMIC && saves_enough(p->g, w->constant);
  bool alone = scheme != QUANT_INT8 || p->floats[n];
  return alone ? has_lone_codes(c, p->g, n, w) : p->integer[n];
}

static Status observe_nodes(PassContext *c, Plan *p) {
  Graph *g = p->g;
  const QuantOptions *options = c->options->quantize;
  uint32_t count = g->value_count, node_count = g->node_count;
  ValueId *seen = ARENA_ARRAY(p->arena, ValueId, count);
  bool weights_only = options->scheme != QUANT_INT8;
  uint64_t nodes = 0, weights = 0;
  Blocks blocks = {0};
  for (FOR_NODES(g, n)) {
    QuantWeight w;
    if (n >= node_count) /* put here by this loop */
      continue;
    QuantRole role = (QuantRole)p->role[n];
    bool codes = quant_weight(g, n, role, &w) && has_codes(c, p, n, &w);
    if (codes) {
      TRY(observe_weight(p, n, &w, block_of(p, n, &w, options, &blocks)));
      weights++;
    }
    if (codes && options->scheme == QUANT_INT8_DYNAMIC && role == ROLE_PRODUCT && !p->floats[n])
      TRY(quantize_rows(p, n, seen));
    if (!p->integer[n] || weights_only)
      continue;
    TRY(observe_node(p, n, seen, count));
    nodes++;
  }
  warn_uneven(c, g, &blocks);
  pass_count(c, "nodes", nodes);
  pass_count(c, "weights", weights);
  return STATUS_OK;
}

Status pass_annotate(PassContext *c, Graph *g) {
  if (!c->options->quantize)
    return STATUS_OK;
  const QuantOptions *options = c->options->quantize;
  if (!options->kept) { /* else it was said in the first of several runs */
    selection_warn_unused(c->sink, "--quantize-config", "float", options->floats, g);
    selection_warn_unused(c->sink, "--quantize-config", "weight-only", options->weight_only, g);
  }
  Plan p = make_plan(g, c->scratch);
  find_loops(&p);
  find_roles(c, &p);
  find_clamps(&p);
  find_wanted(&p);
  find_integers(&p);
  find_ranges(&p);
  return observe_nodes(c, &p);
}

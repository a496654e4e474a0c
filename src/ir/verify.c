/* The verifier, see verify.h. What can be checked by looking at pools and the op table is here;
 * what follows from the memory plan is in verify_plan.c.
 *
 * Structure is checked before anything relies on it: when the pools themselves are inconsistent,
 * the later checks are left out. Shape rules run on the graph itself, with the types that are there
 * as their start, so that a rule that makes symbols (nonzero) finds its own again; the old types
 * are put back afterwards. */
#include "ir/verify.h"

#include "ir/builder.h"
#include "ir/region.h"
#include "ir/text.h"
#include "ir/verify_plan.h"
#include "support/bitset.h"

#define MAX_FAULTS 20

typedef struct Verifier {
  Graph *g;
  const char *after;
  Arena arena;
  uint32_t *position; /* by node: place in the order, from 1 */
  Bitset operands;    /* uses that are operands of nodes in the order */
  Regions regions;
  uint64_t operand_count;
  uint32_t faults;
} Verifier;

/* --- reports --- */

static void fault(Verifier *v, NodeId n, const char *format, ...) ETC_PRINTF(3, 4);
static void fault(Verifier *v, NodeId n, const char *format, ...) {
  if (v->faults++ >= MAX_FAULTS)
    return;
  Graph *g = v->g;
  bool known = n > 0 && n < g->node_count && g->nodes[n].loc < g->loc_count;
  DiagPlace place = known ? node_place(g, n) : context_place(g->ctx);
  Diag *d = diag_begin(g->ctx->sink, DIAG_IR_VERIFY, place);
  va_list args;
  va_start(args, format);
  diag_vmessage(d, "", format, args);
  va_end(args);
  if (known) {
    StrBuf text = {0};
    node_print(g, n, &text);
    diag_note(d, "%s", strbuf_cstr(&text));
    strbuf_release(&text);
  }
  StrView name = graph_name(g);
  diag_note(d, "in graph '" SV_FMT "' at level %s%s%s", SV_ARG(name), level_name(g->level),
            v->after ? ", after " : "", v->after ? v->after : "");
  (void)diag_end(d);
}

static void plan_fault(void *user, ValueId value, const char *message) {
  Verifier *v = user;
  fault(v, value_def(v->g, value), "%s", message);
}

/* --- the order list and the operands --- */

static bool in_pool(uint64_t at, uint64_t count, uint64_t size) {
  return at <= size && count <= size - at;
}

/* Every node of the order once, links in both directions, ops of the table. */
static bool check_order(Verifier *v) {
  Graph *g = v->g;
  uint32_t count = 0;
  NodeId before = 0;
  for (NodeId n = g->first; n; before = n, n = g->nodes[n].next) {
    if (n <= NODE_OUTPUT || n >= g->node_count || v->position[n] || g->nodes[n].prev != before) {
      fault(v, 0, "the list of nodes is damaged at node %u", n);
      return false;
    }
    v->position[n] = ++count;
    const Node *node = &g->nodes[n];
    if (node->op <= OP_OUTPUT || node->op >= op_count()) {
      fault(v, 0, "node %u has no op of the table", n);
      return false;
    }
    if (!in_pool(node->first_arg, node->arg_count, g->arg_count) ||
        node->arg_count != op_schema(node->op)->arg_count || node->loc >= g->loc_count) {
      fault(v, 0, "node %u (%s) has arguments or a location that do not exist", n,
            op_row(node->op)->id);
      return false;
    }
  }
  if (g->last != before || g->live_nodes != count)
    fault(v, 0, "the list of nodes ends at %u with %u nodes, not at %u with %u", before, count,
          g->last, g->live_nodes);
  return v->faults == 0;
}

static const char *const kind_names[] = {"none",  "value",  "values", "int",    "ints",
                                         "float", "floats", "bool",   "string", "dtype"};

/* Whether the lists of an argument lie inside their pools. */
static bool arg_in_pool(const Graph *g, const Arg *arg) {
  switch ((ArgKind)arg->kind) {
  case ARG_VALUE:
    return in_pool(arg->at, 1, g->use_count);
  case ARG_VALUES:
    return in_pool(arg->at, arg->count, g->use_count);
  case ARG_INTS:
    return in_pool(arg->at, arg->count, g->int_count);
  case ARG_FLOATS:
    return in_pool(arg->at, arg->count, g->float_count);
  case ARG_STR:
    return arg->i >= 0 && arg->i <= g->ctx->names.count;
  case ARG_DTYPE:
    return arg->i >= 0 && arg->i < DTYPE_NONE && dtype_size((DType)arg->i);
  case ARG_NONE:
  case ARG_INT:
  case ARG_FLOAT:
  case ARG_BOOL:
    return true;
  }
  return false;
}

/* One operand: belongs to the node, names a value that is there and is defined before. */
static bool check_operand(Verifier *v, NodeId n, UseId u) {
  Graph *g = v->g;
  const Use *use = &g->uses[u];
  if (use->value == 0)
    return true;
  if (use->node != n || use->value >= g->value_count ||
      g->values[use->value].kind == VALUE_UNUSED || bitset_has(&v->operands, u)) {
    fault(v, n, "an operand is not a value of this graph");
    return false;
  }
  bitset_add(&v->operands, u);
  v->operand_count++;
  NodeId def = value_def(g, use->value);
  if (def && (def >= g->node_count || !v->position[def])) {
    fault(v, n, "an operand is the result of a removed node");
    return false;
  }
  if (def && n != NODE_OUTPUT && v->position[def] >= v->position[n])
    fault(v, n, "an operand is used before it is defined");
  return true;
}

/* A value defined in a branch or a loop is not used outside. */
static bool check_scope(Verifier *v, NodeId n, uint32_t i, ValueId value) {
  const Regions *r = &v->regions;
  if (!r->any || !value || !value_def(v->g, value) ||
      region_within(r, region_of_argument(v->g, r, n, i),
                    region_of_results(v->g, r, value_def(v->g, value))))
    return true;
  fault(v, n, "an operand is defined in a branch or loop that has ended");
  return false;
}

static bool check_operands(Verifier *v, NodeId n) {
  Graph *g = v->g;
  bool ok = true;
  for (uint32_t i = 0; i < g->nodes[n].arg_count; i++) {
    const Arg *arg = node_arg(g, n, i);
    if (!arg_in_pool(g, arg)) {
      fault(v, n, "argument %u is damaged", i);
      return false;
    }
    for (uint32_t k = 0; k < arg_operand_count(arg); k++)
      ok &= check_operand(v, n, arg->at + k) && check_scope(v, n, i, g->uses[arg->at + k].value);
  }
  return ok;
}

static bool check_regions(Verifier *v) {
  NodeId at = 0;
  const char *wrong = regions_find(v->g, &v->arena, &v->regions, &at);
  if (wrong)
    fault(v, at, "the marker %s", wrong);
  return !wrong;
}

static bool check_output_node(Verifier *v) {
  const Graph *g = v->g;
  if (g->node_count <= NODE_OUTPUT || g->nodes[NODE_OUTPUT].op != OP_OUTPUT ||
      g->nodes[NODE_OUTPUT].arg_count != 2 ||
      !in_pool(g->nodes[NODE_OUTPUT].first_arg, 2, g->arg_count)) {
    fault(v, 0, "the output node is damaged");
    return false;
  }
  const Arg *values = node_arg(g, NODE_OUTPUT, 0), *names = node_arg(g, NODE_OUTPUT, 1);
  if (values->kind == ARG_NONE && names->kind == ARG_NONE)
    return true; /* outputs were never set */
  if (values->kind != ARG_VALUES || names->kind != ARG_INTS || values->count != names->count) {
    fault(v, 0, "the output node is damaged");
    return false;
  }
  if (!check_operands(v, NODE_OUTPUT))
    return false;
  for (uint32_t i = 0; i < values->count; i++)
    if (!graph_output(g, i))
      fault(v, 0, "output %u has no value", i);
  return true;
}

/* --- values --- */

static bool sym_exists(const Graph *g, SymInt s) {
  return sym_is_const(s) || (uint64_t)(s - SYM_BAND) < g->syms.count;
}

static const char *type_fault(const Graph *g, const Type *t) {
  if (t->kind > TYPE_BOOL)
    return "has no type";
  if (t->rank > MAX_RANK || (t->kind != TYPE_TENSOR && t->rank > 1))
    return "has too many dimensions";
  for (uint32_t i = 0; i < t->rank; i++)
    if (!sym_exists(g, t->dims[i]))
      return "has a dimension that names no symbol";
  if (t->kind != TYPE_TENSOR)
    return NULL;
  if (!dtype_size((DType)t->dtype))
    return "has no element type";
  if (t->order > ORDER_CHANNELS_LAST || (t->order == ORDER_CHANNELS_LAST && t->rank != 4))
    return "has an order of dimensions that only tensors of 4 dimensions have";
  for (uint32_t i = 0; i < t->rank; i++)
    if (sym_upper(&g->syms, t->dims[i]) < 0)
      return "has a negative dimension";
  return NULL;
}

static const char *state_fault(const Graph *g, ValueId id) {
  const Value *value = &g->values[id];
  const Type *t = &g->types[value->type];
  if (value->def >= g->state_count || g->states[value->def].value != id)
    return "is a state that the graph does not list";
  if (t->kind != TYPE_TENSOR || !type_is_static(t) || type_bytes_upper(g, t) == UINT64_MAX)
    return "is a state whose type is not a tensor of known size";
  ConstId initial = g->states[value->def].initial;
  if (initial &&
      (initial >= g->constant_count || g->constants[initial].size != type_bytes_upper(g, t)))
    return "is a state whose first contents have another size than its type";
  return NULL;
}

static const char *constant_fault(const Graph *g, ConstId id, const Type *t) {
  if (id >= g->constant_count || id == 0)
    return "is a constant without data";
  if (t->kind != TYPE_TENSOR || !type_is_static(t))
    return "is a constant whose type is not a tensor of known size";
  const Constant *c = &g->constants[id];
  if (c->size != type_bytes_upper(g, t))
    return "is a constant whose data have another size than its type";
  return c->data || c->transform || !c->size ? NULL : "is a constant without data";
}

static const char *value_fault(const Graph *g, ValueId id) {
  const Value *value = &g->values[id];
  const Type *t = &g->types[value->type];
  const char *wrong = type_fault(g, t);
  if (wrong)
    return wrong;
  if (value->storage >= g->storage_count)
    return "has a place in memory that does not exist";
  if (value->kind == VALUE_INPUT && (value->def >= g->input_count || g->inputs[value->def] != id))
    return "is an input that the graph does not list";
  if (value->kind == VALUE_STATE)
    return state_fault(g, id);
  return value->kind == VALUE_CONST ? constant_fault(g, value->def, t) : NULL;
}

/* Uses of a value: linked in both directions, as many as counted, all of them operands. */
static uint64_t check_uses(Verifier *v, ValueId id) {
  const Graph *g = v->g;
  uint32_t count = 0;
  UseId before = 0;
  for (UseId u = g->values[id].first_use; u; before = u, u = g->uses[u].next, count++)
    if (u >= g->use_count || count >= g->values[id].use_count || g->uses[u].value != id ||
        g->uses[u].prev != before || !bitset_has(&v->operands, u)) {
      fault(v, 0, "the list of uses of value %u is damaged", id);
      return count;
    }
  if (count != g->values[id].use_count)
    fault(v, 0, "value %u is used %u times, not %u times", id, count, g->values[id].use_count);
  return count;
}

static void check_inputs_and_states(Verifier *v) {
  const Graph *g = v->g;
  for (uint32_t i = 0; i < g->state_count; i++)
    if (g->states[i].value >= g->value_count || g->values[g->states[i].value].kind != VALUE_STATE)
      fault(v, 0, "state %u is not a state value", i);
  for (uint32_t i = 0; i < g->input_count; i++)
    if (g->inputs[i] >= g->value_count || g->values[g->inputs[i]].kind != VALUE_INPUT ||
        g->values[g->inputs[i]].def != i)
      fault(v, 0, "input %u is not an input value", i);
}

static void check_values(Verifier *v) {
  Graph *g = v->g;
  uint64_t uses = 0;
  for (ValueId id = 1; id < g->value_count; id++) {
    const Value *value = &g->values[id];
    if (value->kind == VALUE_UNUSED)
      continue;
    NodeId def = value_def(g, id);
    const char *wrong = value->type >= g->type_count ? "has no type" : value_fault(g, id);
    if (value->kind == VALUE_RESULT && (def >= g->node_count || !v->position[def]))
      wrong = "is the result of a removed node";
    if (wrong)
      fault(v, def, "value %u %s", id, wrong);
    uses += check_uses(v, id);
  }
  if (uses != v->operand_count && !v->faults)
    fault(v, 0, "%llu uses are linked for %llu operands", (unsigned long long)uses,
          (unsigned long long)v->operand_count);
  check_inputs_and_states(v);
}

/* --- states --- */

/* What an op has written: reading an older result in that memory would give the new contents. */
static void check_fresh(Verifier *v, NodeId n, const uint32_t *written, const uint32_t *seen) {
  const Graph *g = v->g;
  FOR_OPERANDS(g, n, id, {
    ValueId state = id ? value_state(g, id) : 0;
    if (state && seen[id] != written[state])
      fault(v, n, "an operand is a state as it was before it was written");
  })
}

static void check_states(Verifier *v) {
  const Graph *g = v->g;
  if (!g->state_count)
    return;
  uint32_t *written = ARENA_ARRAY(&v->arena, uint32_t, g->value_count); /* by state: how often */
  uint32_t *seen = ARENA_ARRAY(&v->arena, uint32_t, g->value_count);    /* by value: written then */
  for (FOR_NODES(g, n)) {
    check_fresh(v, n, written, seen);
    const Node *node = node_cget(g, n);
    ValueId shared = node_shared_operand(g, n), state = shared ? value_state(g, shared) : 0;
    if (!state)
      continue;
    written[state] += op_has_trait(node->op, OP_EFFECT);
    for (uint32_t i = 0; i < node->result_count; i++)
      seen[node->first_result + i] = written[state];
  }
  check_fresh(v, NODE_OUTPUT, written, seen);
}

static void check_results(Verifier *v, NodeId n) {
  const Graph *g = v->g;
  const Node *node = node_cget(g, n);
  const OpSchema *schema = op_schema(node->op);
  if (!in_pool(node->first_result, node->result_count, g->value_count) ||
      (!schema->result_list && node->result_count != schema->result_count)) {
    fault(v, 0, "node %u (%s) has %u results", n, op_row(node->op)->id, node->result_count);
    return;
  }
  for (uint32_t i = 0; i < node->result_count; i++) {
    const Value *value = value_cget(g, node->first_result + i);
    if (value->kind != VALUE_RESULT || value->def != n || value->result != i)
      fault(v, 0, "result %u of node %u (%s) belongs to another node", i, n, op_row(node->op)->id);
  }
}

/* --- arguments against the schema --- */

static bool is_scalar(SchemaType type) {
  return type == ST_INT || type == ST_FLOAT || type == ST_BOOL || type == ST_SCALAR;
}

/* A value as an argument or list element: a tensor, or a number that is known while running. */
static bool value_fits(const Graph *g, ValueId id, SchemaType type) {
  switch (value_type(g, id)->kind) {
  case TYPE_TENSOR:
    return type == ST_TENSOR;
  case TYPE_INT:
    return type == ST_INT || type == ST_SCALAR;
  case TYPE_FLOAT:
    return type == ST_FLOAT || type == ST_SCALAR;
  case TYPE_BOOL:
    return type == ST_BOOL || type == ST_SCALAR;
  default:
    return false;
  }
}

static bool kind_fits(ArgKind kind, const SchemaArg *s) {
  static const ArgKind single[] = {
      [ST_TENSOR] = ARG_VALUE, [ST_INT] = ARG_INT,    [ST_FLOAT] = ARG_FLOAT,
      [ST_BOOL] = ARG_BOOL,    [ST_SCALAR] = ARG_INT, [ST_STR] = ARG_STR,
      [ST_DTYPE] = ARG_DTYPE,  [ST_LAYOUT] = ARG_INT, [ST_MEMORY_FORMAT] = ARG_INT,
      [ST_DEVICE] = ARG_INT};
  static const ArgKind list[] = {
      [ST_TENSOR] = ARG_VALUES, [ST_INT] = ARG_INTS, [ST_FLOAT] = ARG_FLOATS};
  if (kind == ARG_NONE)
    return s->optional;
  if (s->list)
    return s->type <= ST_FLOAT && (kind == list[s->type] || kind == ARG_VALUES);
  if (s->type == ST_SCALAR && (kind == ARG_FLOAT || kind == ARG_BOOL))
    return true;
  return kind == single[s->type] || (kind == ARG_VALUE && is_scalar(s->type));
}

static bool elements_fit(const Graph *g, const Arg *arg, const SchemaArg *s) {
  if (arg->kind == ARG_INT)
    return sym_exists(g, arg->i);
  for (uint32_t i = 0; arg->kind == ARG_INTS && i < arg->count; i++)
    if (!sym_exists(g, g->ints[arg->at + i]))
      return false;
  for (uint32_t i = 0; i < arg_operand_count(arg); i++) {
    ValueId id = g->uses[arg->at + i].value;
    if (id ? !value_fits(g, id, s->type) : !s->element_optional)
      return false;
  }
  return true;
}

static bool check_args(Verifier *v, NodeId n) {
  const Graph *g = v->g;
  const OpSchema *schema = op_schema(node_cget(g, n)->op);
  uint32_t before = v->faults;
  for (uint32_t i = 0; i < schema->arg_count; i++) {
    const Arg *arg = node_arg(g, n, i);
    const SchemaArg *s = &schema->args[i];
    if (!kind_fits((ArgKind)arg->kind, s))
      fault(v, n, "argument '" SV_FMT "' is of kind %s, which the schema does not allow",
            SV_ARG(s->name), kind_names[arg->kind]);
    else if (!elements_fit(g, arg, s))
      fault(v, n, "argument '" SV_FMT "' holds a value that the schema does not allow",
            SV_ARG(s->name));
  }
  return v->faults == before;
}

/* --- types by the shape rules --- */

/* Types by the rule, in place of the present ones; false when the rule refuses the node. */
static bool run_shape_rule(Graph *g, NodeId n, TypeId *types, uint32_t count) {
  uint32_t constraints = g->constraint_count;
  bool ok = shape_run(g, n) == STATUS_OK;
  g->constraint_count = constraints; /* checking assumes nothing new */
  for (uint32_t i = 0; i < count; i++) {
    Value *value = value_get(g, node_result(g, n, i));
    TypeId computed = value->type;
    value->type = types[i];
    types[i] = computed;
  }
  return ok;
}

/* The rules give contiguous results; the order is a choice of the passes. */
static bool types_agree(const Graph *g, TypeId a, TypeId b) {
  const Type *x = &g->types[a], *y = &g->types[b];
  return a == b || (x->kind == TYPE_TENSOR && y->kind == TYPE_TENSOR && x->dtype == y->dtype &&
                    x->order != y->order && dims_same(x->dims, x->rank, y->dims, y->rank));
}

static void type_mismatch(Verifier *v, NodeId n, uint32_t i, TypeId computed) {
  Graph *g = v->g;
  StrBuf text = {0};
  type_print(g, type_get(g, computed), &text);
  fault(v, n, "result %u does not have the type that follows from the operands: %s", i,
        strbuf_cstr(&text));
  strbuf_release(&text);
}

static void check_types(Verifier *v, NodeId n) {
  Graph *g = v->g;
  uint32_t count = g->nodes[n].result_count;
  TypeId few[8], *types = count <= COUNT_OF(few) ? few : ARENA_ARRAY(&v->arena, TypeId, count);
  for (uint32_t i = 0; i < count; i++)
    types[i] = value_cget(g, node_result(g, n, i))->type;
  if (!op_row(g->nodes[n].op)->shape)
    return;
  if (!run_shape_rule(g, n, types, count)) {
    fault(v, n, "the shape rule does not take the operands");
    return;
  }
  for (uint32_t i = 0; i < count; i++)
    if (!types_agree(g, types[i], value_cget(g, node_result(g, n, i))->type))
      type_mismatch(v, n, i, types[i]);
}

static void check_level(Verifier *v, NodeId n) {
  OpId op = v->g->nodes[n].op;
  if (!op_allowed_at(op, v->g->level))
    fault(v, n, "'" SV_FMT "' is not allowed at level %s", SV_ARG(op_schema(op)->full),
          level_name(v->g->level));
}

static void check_node(Verifier *v, NodeId n) {
  check_level(v, n);
  if (check_args(v, n))
    check_types(v, n);
}

static void verify_all(Verifier *v) {
  Graph *g = v->g;
  v->position = ARENA_ARRAY(&v->arena, uint32_t, g->node_count);
  v->operands = bitset_make(&v->arena, g->use_count);
  if (!check_order(v) || !check_regions(v) || !check_output_node(v))
    return;
  bool ok = true;
  for (FOR_NODES(g, n)) {
    ok &= check_operands(v, n);
    check_results(v, n);
  }
  if (!ok)
    return;
  check_values(v);
  if (v->faults)
    return;
  for (FOR_NODES(g, m))
    check_node(v, m);
  check_states(v);
  if (v->faults == 0 && g->level == LEVEL_EXECUTORCH && g->arena_size_count > 0)
    verify_plan(g, plan_fault, v);
}

/* The rule that a graph can break without a change to it, when its level is raised. */
static void verify_levels(Verifier *v) {
  for (FOR_NODES(v->g, n))
    check_level(v, n);
}

static Status verify(Graph *g, const char *after, void (*check)(Verifier *v)) {
  Verifier v = {.g = g, .after = after};
  check(&v);
  arena_release(&v.arena);
  if (v.faults == 0)
    g->verified = g->edits;
  if (v.faults > MAX_FAULTS)
    (void)diag_report(g->ctx->sink, DIAG_IR_VERIFY, DIAG_NOWHERE, "%u more faults",
                      v.faults - MAX_FAULTS);
  return v.faults ? STATUS_INVALID : STATUS_OK;
}

Status graph_verify(Graph *g, const char *after) { return verify(g, after, verify_all); }

Status graph_verify_changed(Graph *g, const char *after) {
  bool changed = g->edits != g->verified || g->level == LEVEL_EXECUTORCH; /* places are no edits */
  return verify(g, after, changed ? verify_all : verify_levels);
}

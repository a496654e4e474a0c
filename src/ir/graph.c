/* The pools of a graph: nodes, values, uses, arguments. See graph.h for the invariants. */
#include "ir/graph.h"

#include "ir/op.h"
#include "ir/trace.h"
#include "ir/transform.h"

void context_init(Context *ctx, DiagSink *sink) {
  *ctx = (Context){.sink = sink};
  intern_init(&ctx->names);
}

typedef struct ContextFile {
  MappedFile file;
  struct ContextFile *next;
} ContextFile;

MappedFile *context_file(Context *ctx) {
  ContextFile *f = ARENA_NEW(&ctx->arena, ContextFile);
  f->file.fd = -1;
  f->next = ctx->files;
  ctx->files = f;
  return &f->file;
}

void context_release(Context *ctx) {
  for (ContextFile *f = ctx->files; f; f = f->next)
    file_unmap(&f->file);
  intern_release(&ctx->names);
  arena_release(&ctx->arena);
}

/* Appends one zeroed element to a pool and gives its index. */
#define POOL_ADD(g, items, count, capacity)                                                        \
  ((g)->items =                                                                                    \
       pool_reserve((g)->items, &(g)->capacity, (uint64_t)(g)->count + 1, sizeof *(g)->items),     \
   memset(&(g)->items[(g)->count], 0, sizeof *(g)->items), (g)->count++)

/* Of value 0: code that goes on after a failure may read them (builder.h). */
static const SymInt absent_dims[MAX_RANK] = {0};

Graph *graph_new(Context *ctx, StrView name) {
  Graph *g = xrealloc(NULL, sizeof *g);
  *g = (Graph){.ctx = ctx,
               .name = intern_add(&ctx->names, name),
               .arena_excess = ARENA_UNPROVEN,
               .verified = EDITS_UNVERIFIED};
  g->trace = ctx->traced ? trace_new() : NULL;
  POOL_ADD(g, nodes, node_count, node_capacity); /* handle 0 of each pool means none */
  POOL_ADD(g, values, value_count, value_capacity);
  POOL_ADD(g, uses, use_count, use_capacity);
  POOL_ADD(g, types, type_count, type_capacity);
  POOL_ADD(g, constants, constant_count, constant_capacity);
  POOL_ADD(g, locs, loc_count, loc_capacity);
  POOL_ADD(g, storages, storage_count, storage_capacity);
  POOL_ADD(g, args, arg_count, arg_capacity);
  g->types[0].kind = TYPE_NONE;
  g->types[0].dims = absent_dims;
  g->locs[0].index = -1;
  NodeId output = POOL_ADD(g, nodes, node_count, node_capacity);
  g->nodes[output].op = OP_OUTPUT;
  g->nodes[output].first_arg = POOL_ADD(g, args, arg_count, arg_capacity);
  g->nodes[output].arg_count = 2; /* values, then names as ints */
  POOL_ADD(g, args, arg_count, arg_capacity);
  return g;
}

void graph_free(Graph *g) {
  if (!g)
    return;
  if (g->in_pass)
    BUG("a pass frees the graph that it runs on");
  void *pools[] = {g->nodes,  g->values,     g->uses,        g->args,  g->ints,
                   g->floats, g->types,      g->constants,   g->locs,  g->storages,
                   g->inputs, g->type_slots, g->constraints, g->states};
  for (size_t i = 0; i < COUNT_OF(pools); i++)
    xfree(pools[i]);
  trace_free(g->trace);
  transforms_release(g->transforms);
  sym_release(&g->syms);
  arena_release(&g->arena);
  xfree(g);
}

/* --- uses --- */

static void use_link(Graph *g, UseId u, ValueId v, NodeId n) {
  Use *use = &g->uses[u];
  *use = (Use){.value = v, .node = n};
  if (!v)
    return;
  Value *value = &g->values[v];
  use->next = value->first_use;
  if (use->next)
    g->uses[use->next].prev = u;
  value->first_use = u;
  value->use_count++;
}

static void use_unlink(Graph *g, UseId u) {
  Use *use = &g->uses[u];
  if (use->value) {
    if (use->prev)
      g->uses[use->prev].next = use->next;
    else
      g->values[use->value].first_use = use->next;
    if (use->next)
      g->uses[use->next].prev = use->prev;
    if (--g->values[use->value].use_count == 0)
      TRACE(g, .kind = TRACE_RELEASED, .value = use->value, .node = use->node);
  }
  *use = (Use){0};
}

StrView graph_name(const Graph *g) { return intern_get(&g->ctx->names, g->name); }

StrView value_name(const Graph *g, ValueId v) {
  return intern_get(&g->ctx->names, value_cget(g, v)->name);
}

void graph_replace_uses(Graph *g, ValueId from, ValueId to) {
  if (from == to)
    return;
  UseId last = 0;
  for (UseId u = g->values[from].first_use; u; u = g->uses[u].next) {
    g->uses[u].value = to;
    last = u;
  }
  if (!last)
    return;
  g->edits++;
  TRACE(g, .kind = TRACE_REPLACED, .value = from, .to = to);
  Value *old = &g->values[from], *new = &g->values[to];
  g->uses[last].next = new->first_use;
  if (new->first_use)
    g->uses[new->first_use].prev = last;
  new->first_use = old->first_use;
  new->use_count += old->use_count;
  old->first_use = 0;
  old->use_count = 0;
}

void graph_replace_value(Graph *g, ValueId from, ValueId to) {
  Value *new = &g->values[to];
  if (new->kind == VALUE_RESULT && !new->name)
    new->name = g->values[from].name;
  graph_replace_uses(g, from, to);
}

void graph_replace_results(Graph *g, NodeId n, ValueId first) {
  for (uint32_t i = 0; i < g->nodes[n].result_count; i++)
    graph_replace_value(g, node_result(g, n, i), first + i);
}

void value_set_type(Graph *g, ValueId v, TypeId type) {
  g->edits += g->values[v].type != type;
  g->values[v].type = type;
}

/* --- values --- */

ValueId graph_add_input(Graph *g, TypeId type, NameId name) {
  ValueId v = POOL_ADD(g, values, value_count, value_capacity);
  g->edits++;
  g->values[v] = (Value){.type = type, .kind = VALUE_INPUT, .name = name, .def = g->input_count};
  POOL_PUSH(g->inputs, g->input_count, g->input_capacity, v);
  return v;
}

ValueId graph_add_state(Graph *g, TypeId type, ConstId initial, NameId name) {
  ValueId v = POOL_ADD(g, values, value_count, value_capacity);
  g->edits++;
  g->values[v] = (Value){.type = type, .kind = VALUE_STATE, .name = name, .def = g->state_count};
  POOL_ADD(g, states, state_count, state_capacity);
  g->states[g->state_count - 1] = (State){.value = v, .initial = initial};
  return v;
}

void graph_remove_input(Graph *g, uint32_t position) {
  ValueId v = g->inputs[position];
  if (g->values[v].use_count)
    BUG("input %u is still used", position);
  g->values[v].kind = VALUE_UNUSED;
  g->edits++;
  for (uint32_t i = position; i + 1 < g->input_count; i++) {
    g->inputs[i] = g->inputs[i + 1];
    g->values[g->inputs[i]].def = i;
  }
  g->input_count--;
}

ValueId node_shared_operand(const Graph *g, NodeId n) {
  OpId op = g->nodes[n].op;
  if (op == OP_ET_VIEW || (op_has_trait(op, OP_VIEW) && !op_row(op)->out))
    return node_value(g, n, 0);
  const OpSchema *schema = op_schema(op);
  for (uint32_t i = 0; i < schema->arg_count; i++)
    if (schema->args[i].mutated)
      return node_value(g, n, i);
  return 0;
}

ValueId value_state(const Graph *g, ValueId v) {
  while (v && g->values[v].kind == VALUE_RESULT)
    v = node_shared_operand(g, g->values[v].def);
  return v && g->values[v].kind == VALUE_STATE ? v : 0;
}

ConstId graph_add_data(Graph *g, Constant bytes) {
  ConstId c = POOL_ADD(g, constants, constant_count, constant_capacity);
  g->constants[c] = bytes;
  return c;
}

ValueId graph_add_constant(Graph *g, TypeId type, Constant bytes, NameId name) {
  ConstId c = graph_add_data(g, bytes);
  ValueId v = POOL_ADD(g, values, value_count, value_capacity);
  g->values[v] = (Value){.type = type, .kind = VALUE_CONST, .name = name, .def = c};
  return v;
}

ValueId graph_add_constant_copy(Graph *g, TypeId type, const void *data, uint64_t size) {
  uint8_t *copy = arena_alloc(&g->arena, size);
  if (size)
    memcpy(copy, data, size);
  return graph_add_constant(g, type, (Constant){.data = copy, .size = size}, 0);
}

/* --- arguments --- */

static uint32_t ints_add(Graph *g, const int64_t *values, uint32_t count) {
  g->ints =
      pool_reserve(g->ints, &g->int_capacity, (uint64_t)g->int_count + count, sizeof *g->ints);
  if (count)
    memcpy(g->ints + g->int_count, values, count * sizeof *values);
  g->int_count += count;
  return g->int_count - count;
}

static UseId uses_add(Graph *g, const ValueId *values, uint32_t count, NodeId n) {
  g->uses =
      pool_reserve(g->uses, &g->use_capacity, (uint64_t)g->use_count + count, sizeof *g->uses);
  UseId first = g->use_count;
  g->use_count += count;
  for (uint32_t i = 0; i < count; i++)
    use_link(g, first + i, values[i], n);
  return first;
}

static Arg arg_store(Graph *g, NodeId n, ArgIn in) {
  Arg arg = {.kind = (uint8_t)in.kind, .count = in.count};
  switch (in.kind) {
  case ARG_NONE:
    break;
  case ARG_VALUE:
    arg.at = uses_add(g, &(ValueId){(ValueId)in.i}, 1, n);
    break;
  case ARG_VALUES:
    arg.at = uses_add(g, in.values, in.count, n);
    break;
  case ARG_INTS:
    arg.at = ints_add(g, in.ints, in.count);
    break;
  case ARG_FLOATS:
    g->floats = pool_reserve(g->floats, &g->float_capacity, (uint64_t)g->float_count + in.count,
                             sizeof *g->floats);
    if (in.count)
      memcpy(g->floats + g->float_count, in.floats, in.count * sizeof *in.floats);
    arg.at = g->float_count;
    g->float_count += in.count;
    break;
  case ARG_STR:
    arg.i = intern_add(&g->ctx->names, in.str);
    break;
  case ARG_FLOAT:
    arg.f = in.f;
    break;
  case ARG_INT:
  case ARG_BOOL:
  case ARG_DTYPE:
    arg.i = in.i;
    break;
  }
  return arg;
}

static void arg_drop(Graph *g, const Arg *arg) {
  if (arg->kind == ARG_VALUE)
    use_unlink(g, arg->at);
  for (uint32_t i = 0; arg->kind == ARG_VALUES && i < arg->count; i++)
    use_unlink(g, arg->at + i);
}

void node_set_arg(Graph *g, NodeId n, uint32_t index, ArgIn in) {
  uint32_t at = g->nodes[n].first_arg + index;
  Arg old = g->args[at];
  arg_drop(g, &old);
  Arg arg = arg_store(g, n, in);
  g->args[at] = arg;
  g->edits++;
}

ArgIn node_arg_in(const Graph *g, NodeId n, uint32_t index, Arena *arena) {
  const Arg *arg = node_arg(g, n, index);
  ArgIn in = {.kind = (ArgKind)arg->kind, .count = arg->count};
  switch (in.kind) {
  case ARG_VALUE:
    in.i = g->uses[arg->at].value;
    break;
  case ARG_VALUES: {
    ValueId *values = ARENA_ARRAY(arena, ValueId, arg->count);
    for (uint32_t i = 0; i < arg->count; i++)
      values[i] = g->uses[arg->at + i].value;
    in.values = values;
    break;
  }
  case ARG_INTS: {
    SymInt *ints = ARENA_ARRAY(arena, SymInt, arg->count);
    if (arg->count)
      memcpy(ints, g->ints + arg->at, arg->count * sizeof *ints);
    in.ints = ints;
    break;
  }
  case ARG_FLOATS: {
    double *floats = ARENA_ARRAY(arena, double, arg->count);
    if (arg->count)
      memcpy(floats, g->floats + arg->at, arg->count * sizeof *floats);
    in.floats = floats;
    break;
  }
  case ARG_STR:
    in.str = intern_get(&g->ctx->names, (NameId)arg->i);
    break;
  case ARG_FLOAT:
    in.f = arg->f;
    break;
  case ARG_NONE:
  case ARG_INT:
  case ARG_BOOL:
  case ARG_DTYPE:
    in.i = arg->i;
    break;
  }
  return in;
}

/* --- nodes --- */

static void node_link(Graph *g, NodeId n, NodeId before) {
  Node *node = &g->nodes[n];
  g->edits++;
  node->next = before;
  node->prev = before ? g->nodes[before].prev : g->last;
  *(node->prev ? &g->nodes[node->prev].next : &g->first) = n;
  *(before ? &g->nodes[before].prev : &g->last) = n;
}

static void node_unlink(Graph *g, NodeId n) {
  Node *node = &g->nodes[n];
  g->edits++;
  *(node->prev ? &g->nodes[node->prev].next : &g->first) = node->next;
  *(node->next ? &g->nodes[node->next].prev : &g->last) = node->prev;
  node->prev = node->next = 0;
}

NodeId graph_add_node(Graph *g, NodeId before, OpId op, const ArgIn *args, uint32_t arg_count,
                      uint32_t result_count, LocId loc) {
  const OpSchema *schema = op_schema(op);
  if (arg_count > schema->arg_count)
    BUG("%u arguments for %s", arg_count, op_row(op)->schema);
  NodeId n = POOL_ADD(g, nodes, node_count, node_capacity);
  uint32_t first_arg = g->arg_count;
  g->args = pool_reserve(g->args, &g->arg_capacity, (uint64_t)first_arg + schema->arg_count,
                         sizeof *g->args);
  g->arg_count += schema->arg_count;
  g->nodes[n] = (Node){.op = op,
                       .arg_count = (uint16_t)schema->arg_count,
                       .result_count = (uint16_t)result_count,
                       .first_arg = first_arg,
                       .loc = loc};
  for (uint32_t i = 0; i < schema->arg_count; i++) {
    Arg arg = arg_store(g, n, i < arg_count ? args[i] : schema->args[i].default_value);
    g->args[first_arg + i] = arg;
  }
  g->nodes[n].first_result = g->value_count;
  for (uint32_t i = 0; i < result_count; i++) {
    ValueId v = POOL_ADD(g, values, value_count, value_capacity);
    g->values[v] = (Value){.kind = VALUE_RESULT, .def = n, .result = (uint16_t)i};
  }
  node_link(g, n, before);
  g->live_nodes++;
  TRACE(g, .kind = TRACE_BUILT, .node = n, .op = op, .loc = loc);
  return n;
}

void graph_remove_node(Graph *g, NodeId n) {
  Node *node = &g->nodes[n];
  for (uint32_t i = 0; i < node->result_count; i++) {
    if (g->values[node->first_result + i].use_count)
      BUG("removing node %u whose result %u is still used", n, i);
    g->values[node->first_result + i].kind = VALUE_UNUSED;
  }
  TRACE(g, .kind = TRACE_REMOVED, .node = n, .value = node->first_result,
        .to = node->first_result + node->result_count);
  for (uint32_t i = 0; i < node->arg_count; i++)
    arg_drop(g, &g->args[node->first_arg + i]);
  node_unlink(g, n);
  *node = (Node){0};
  g->live_nodes--;
}

void graph_move_before(Graph *g, NodeId n, NodeId before) {
  if (n == before)
    return;
  node_unlink(g, n);
  node_link(g, n, before);
}

void graph_set_outputs(Graph *g, const ValueId *values, uint32_t count, const NameId *names) {
  int64_t *wide = ARENA_ARRAY(&g->arena, int64_t, count);
  for (uint32_t i = 0; i < count; i++)
    wide[i] = names ? names[i] : 0;
  node_set_arg(g, NODE_OUTPUT, 0, A_VALS(values, count));
  node_set_arg(g, NODE_OUTPUT, 1, A_INTS(wide, count));
}

uint32_t graph_output_count(const Graph *g) { return node_list_count(g, NODE_OUTPUT, 0); }
ValueId graph_output(const Graph *g, uint32_t i) { return node_list_value(g, NODE_OUTPUT, 0, i); }
NameId graph_output_name(const Graph *g, uint32_t i) {
  return (NameId)node_ints(g, NODE_OUTPUT, 1)[i];
}

StrView graph_output_text(const Graph *g, uint32_t i) {
  return intern_get(&g->ctx->names, graph_output_name(g, i));
}

int graph_find_output(const Graph *g, StrView name) {
  for (uint32_t i = 0; i < graph_output_count(g); i++)
    if (sv_eq(name, graph_output_text(g, i)))
      return (int)i;
  return -1;
}

/* --- readers --- */

bool value_is_output(const Graph *g, ValueId v) {
  UseId u = first_use(g, v);
  while (u && g->uses[u].node != NODE_OUTPUT)
    u = g->uses[u].next;
  return u != 0;
}

bool node_unused(const Graph *g, NodeId n, uint32_t first) {
  for (uint32_t i = first; i < g->nodes[n].result_count; i++)
    if (g->values[node_result(g, n, i)].use_count)
      return false;
  return true;
}

static const Arg *arg_of_kind(const Graph *g, NodeId n, uint32_t i, ArgKind kind) {
  const Arg *arg = node_arg(g, n, i);
  if (arg->kind != kind)
    BUG("argument %u of %s has kind %d, wanted %d", i, op_row(g->nodes[n].op)->id, arg->kind,
        (int)kind);
  return arg;
}

ValueId node_value(const Graph *g, NodeId n, uint32_t i) {
  return node_absent(g, n, i) ? 0 : g->uses[arg_of_kind(g, n, i, ARG_VALUE)->at].value;
}
uint32_t node_list_count(const Graph *g, NodeId n, uint32_t i) {
  return i < g->nodes[n].arg_count ? node_arg(g, n, i)->count : 0;
}
ValueId node_list_value(const Graph *g, NodeId n, uint32_t i, uint32_t k) {
  return g->uses[arg_of_kind(g, n, i, ARG_VALUES)->at + k].value;
}
SymInt node_int(const Graph *g, NodeId n, uint32_t i) { return arg_of_kind(g, n, i, ARG_INT)->i; }
const SymInt *node_ints(const Graph *g, NodeId n, uint32_t i) {
  const Arg *arg = node_arg(g, n, i);
  return arg->kind == ARG_INTS && g->ints ? g->ints + arg->at : NULL;
}
int64_t node_entry(const Graph *g, NodeId n, uint32_t i, uint32_t k, int64_t otherwise) {
  uint32_t count = node_list_count(g, n, i);
  return count ? node_ints(g, n, i)[k < count ? k : count - 1] : otherwise;
}
double node_scalar(const Graph *g, NodeId n, uint32_t i) {
  const Arg *arg = node_arg(g, n, i);
  return arg->kind == ARG_FLOAT ? arg->f : (double)arg->i;
}
bool node_bool(const Graph *g, NodeId n, uint32_t i) {
  return arg_of_kind(g, n, i, ARG_BOOL)->i != 0;
}
StrView node_str(const Graph *g, NodeId n, uint32_t i) {
  return intern_get(&g->ctx->names, (NameId)arg_of_kind(g, n, i, ARG_STR)->i);
}

/* --- places and constraints --- */

LocId graph_add_loc(Graph *g, Loc loc) {
  LocId id = POOL_ADD(g, locs, loc_count, loc_capacity);
  g->locs[id] = loc;
  return id;
}

DiagPlace graph_place(const Graph *g, LocId id) {
  const Loc *loc = &g->locs[id];
  const Intern *names = &g->ctx->names;
  return (DiagPlace){.file = g->ctx->model_path,
                     .node = intern_get(names, loc->name),
                     .op = intern_get(names, loc->op_type),
                     .graph = intern_get(names, loc->scope),
                     .origin = intern_get(names, loc->origin),
                     .index = loc->index};
}

DiagPlace node_place(const Graph *g, NodeId n) { return graph_place(g, g->nodes[n].loc); }

/* Factor i of the first term of a size, which has all that its terms have in common; 0 behind the
 * last one. */
static SymInt factor_of(const SymTable *t, SymInt size, uint32_t i) {
  if (sym_is_const(size))
    return 0;
  const SymExpr *e = sym_expr(t, size);
  if (e->kind == SYM_SUM)
    return e->constant ? 0 : factor_of(t, e->terms[0], i);
  if (e->kind == SYM_PRODUCT)
    return i < e->count ? e->terms[i] : 0;
  return i == 0 ? size : 0;
}

/* Sizes that are factors of both sides and never 0 say nothing: b * t == b * 10 is t == 10. */
static void drop_factors(SymTable *t, Constraint *c) {
  SymInt all = c->lhs, factor, lhs, rhs;
  for (uint32_t i = 0; (factor = factor_of(t, all, i)) != 0; i++)
    if (sym_expr(t, factor)->kind == SYM_SYMBOL && sym_lower(t, factor) >= 1 &&
        !sym_is_const(c->lhs) && !sym_is_const(c->rhs) && sym_exact_div(t, c->lhs, factor, &lhs) &&
        sym_exact_div(t, c->rhs, factor, &rhs) && !(sym_is_const(lhs) && sym_is_const(rhs))) {
      c->lhs = lhs;
      c->rhs = rhs;
    }
}

void graph_add_constraint(Graph *g, Constraint c) {
  if (c.kind == CONSTRAINT_EQ)
    drop_factors(&g->syms, &c);
  for (uint32_t i = 0; i < g->constraint_count; i++) {
    const Constraint *old = &g->constraints[i];
    if (old->kind == c.kind && old->lhs == c.lhs && old->rhs == c.rhs)
      return;
  }
  uint32_t at = POOL_ADD(g, constraints, constraint_count, constraint_capacity);
  g->constraints[at] = c;
}

void graph_add_origin(Graph *g, DelegateOrigin origin) {
  ARENA_PUSH(&g->arena, g->origins, g->origin_count, origin);
}

/* Origins are in the order in which their calls were built, which is that of their ids. */
const DelegateOrigin *delegate_origin(const Graph *g, NodeId call) {
  uint32_t from = 0, to = g->origin_count;
  while (from < to) {
    uint32_t middle = from + (to - from) / 2;
    if (g->origins[middle].call == call)
      return &g->origins[middle];
    if (g->origins[middle].call < call)
      from = middle + 1;
    else
      to = middle;
  }
  return NULL;
}

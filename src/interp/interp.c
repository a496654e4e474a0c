/* Walks the node list once, keeps a slot for every value, frees it after its last use.
 *
 * Kernels see dense, 16-byte aligned tensors that never overlap their results (ops/kernel.h); all
 * that makes it so is here: constants at odd addresses are copied when first used and freed after
 * their last use, a result that shares planned memory with an operand is computed aside and copied.
 * Data-dependent results are allocated at their upper bound; their real dims bind symbols. */
#include "interp/interp.h"

#include <unistd.h>

#include "interp/run.h"
#include "ops/delegate.h"
#include "support/clock.h"

enum { ALIGNMENT = 16, POISON = 0xFF };

static uint64_t machine_memory(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX;
}

static Status memory_error(Run *r, DiagPlace place, uint64_t bytes) {
  return diag_report(r->sink, DIAG_SHAPE_OVERFLOW, place,
                     "running this needs %llu more bytes of memory, with %llu in use already",
                     (unsigned long long)bytes, (unsigned long long)r->live);
}

Status run_alloc(Run *r, DiagPlace place, uint64_t bytes, void **out) {
  uint64_t total;
  if (!add_u64(r->live, bytes, &total) || total > r->limit || bytes > PTRDIFF_MAX)
    return memory_error(r, place, bytes);
  *out = xmalloc((size_t)bytes);
  r->live += bytes;
  return STATUS_OK;
}

void run_free(Run *r, Slot *slot) {
  if (!slot->owned)
    return;
  r->live -= slot->tensor.capacity;
  xfree(slot->owned);
  slot->owned = NULL;
  slot->tensor.data = NULL;
}

void run_watch(const Run *r, ValueId v) {
  if (r->watch && value_type(r->g, v)->kind == TYPE_TENSOR)
    r->watch(r->watch_user, v, &r->slots[v].tensor);
}

static bool aligned(const void *p) { return (uintptr_t)p % ALIGNMENT == 0; }

/* The tensor of an operand; a constant is brought to an aligned address when first needed, and to
 * memory of its own when it is going to be written. */
Status run_operand(Run *r, NodeId n, ValueId v, bool written, Tensor **out) {
  Slot *slot = &r->slots[v];
  *out = &slot->tensor;
  const Constant *c = value_constant(r->g, v);
  if (!c || slot->owned || (slot->tensor.data && !written))
    return STATUS_OK;
  slot->tensor = interp_static_tensor(value_type(r->g, v));
  slot->tensor.capacity = c->size;
  if (aligned(c->data) && !written) {
    slot->tensor.data = (void *)(uintptr_t)c->data;
    return STATUS_OK;
  }
  TRY(run_alloc(r, node_place(r->g, n), c->size, &slot->owned));
  slot->tensor.data = slot->owned;
  memcpy(slot->owned, c->data, (size_t)c->size);
  return STATUS_OK;
}

static Status symbolic_error(Run *r, NodeId n) {
  return diag_report(r->sink, DIAG_RUN_KERNEL, node_place(r->g, n),
                     "a size that this node needs is not known when it runs");
}

Status run_eval(Run *r, NodeId n, SymInt expr, int64_t *out) {
  if (symbols_eval(&r->symbols, expr, out))
    return STATUS_OK;
  return symbolic_error(r, n);
}

/* A list of values: tensors, or scalars that make up a list of ints. */
static Status resolve_values(Run *r, NodeId n, uint32_t index, KernelArg *out) {
  const Graph *g = r->g;
  uint32_t count = node_list_count(g, n, index);
  out->count = count;
  const SchemaArg *schema = &op_schema(g->nodes[n].op)->args[index];
  if (schema->type == ST_TENSOR) {
    out->kind = ARG_VALUES;
    out->tensors = ARENA_ARRAY(&r->scratch, Tensor *, count);
    for (uint32_t k = 0; k < count; k++) {
      ValueId v = node_list_value(g, n, index, k);
      if (v)
        TRY(run_operand(r, n, v, false, &out->tensors[k]));
    }
    return STATUS_OK;
  }
  int64_t *ints = ARENA_ARRAY(&r->scratch, int64_t, count);
  for (uint32_t k = 0; k < count; k++) {
    ValueId v = node_list_value(g, n, index, k);
    if (!v || r->slots[v].scalar.kind == ARG_NONE)
      return symbolic_error(r, n);
    ints[k] = r->slots[v].scalar.i;
  }
  out->kind = ARG_INTS;
  out->ints = ints;
  return STATUS_OK;
}

static Status resolve_value(Run *r, NodeId n, uint32_t index, KernelArg *out) {
  ValueId v = node_value(r->g, n, index);
  if (value_type(r->g, v)->kind == TYPE_TENSOR) {
    bool written = op_schema(r->g->nodes[n].op)->args[index].mutated;
    out->kind = ARG_VALUE;
    return run_operand(r, n, v, written, &out->tensor);
  }
  *out = r->slots[v].scalar;
  return out->kind == ARG_NONE ? symbolic_error(r, n) : STATUS_OK;
}

static Status resolve_arg(Run *r, NodeId n, uint32_t index, KernelArg *out) {
  const Graph *g = r->g;
  const Arg *arg = node_arg(g, n, index);
  *out = (KernelArg){.kind = (ArgKind)arg->kind, .count = arg->count};
  /* The types of a delegate's results are arguments; some sizes are known only when it has run. */
  if (op_has_trait(g->nodes[n].op, OP_DELEGATE) && index > DELEGATE_ARG_ARGS)
    return STATUS_OK;
  switch ((ArgKind)arg->kind) {
  case ARG_NONE:
    break;
  case ARG_VALUE:
    return resolve_value(r, n, index, out);
  case ARG_VALUES:
    return resolve_values(r, n, index, out);
  case ARG_INT:
    return run_eval(r, n, arg->i, &out->i);
  case ARG_INTS: {
    int64_t *ints = ARENA_ARRAY(&r->scratch, int64_t, arg->count);
    for (uint32_t k = 0; k < arg->count; k++)
      TRY(run_eval(r, n, node_ints(g, n, index)[k], &ints[k]));
    out->ints = ints;
    return STATUS_OK;
  }
  case ARG_FLOAT:
    out->f = arg->f;
    return STATUS_OK;
  case ARG_FLOATS:
    out->floats = &g->floats[arg->at];
    return STATUS_OK;
  case ARG_BOOL:
  case ARG_DTYPE:
    out->i = arg->i;
    return STATUS_OK;
  case ARG_STR:
    out->str = node_str(g, n, index);
    return STATUS_OK;
  }
  return STATUS_OK;
}

/* The dims of a result; those that only the kernel can tell get their upper bound. */
static Status result_dims(Run *r, NodeId n, const Type *type, Tensor *t, bool *bounded) {
  *t = (Tensor){.dtype = (DType)type->dtype, .rank = type->rank};
  *bounded = false;
  uint64_t bytes = dtype_size(t->dtype);
  for (uint32_t i = 0; i < type->rank; i++) {
    if (!symbols_eval(&r->symbols, type->dims[i], &t->dims[i])) {
      t->dims[i] = sym_upper(&r->g->syms, type->dims[i]);
      *bounded = true;
    }
    if (t->dims[i] < 0 || !mul_u64(bytes, (uint64_t)t->dims[i], &bytes))
      return diag_report(r->sink, DIAG_SHAPE_OVERFLOW, node_place(r->g, n),
                         "dim %u of the result cannot be %lld", i, (long long)t->dims[i]);
  }
  t->capacity = bytes;
  return STATUS_OK;
}

/* Where the plan puts the value, checked against its arena; NULL when it is not planned. */
Status run_planned(Run *r, DiagPlace place, ValueId v, uint64_t bytes, void **out) {
  *out = NULL;
  const Graph *g = r->g;
  uint32_t id = g->values[v].storage;
  if (!r->memory || !id)
    return STATUS_OK;
  const Storage *s = &g->storages[id];
  uint64_t end;
  if (s->arena == 0 || s->arena >= g->arena_size_count || !add_u64(s->offset, bytes, &end) ||
      end > g->arena_sizes[s->arena] || s->offset % ALIGNMENT)
    return diag_report(r->sink, DIAG_PLAN_INVALID, place,
                       "the plan puts %llu bytes at offset %llu of memory %u, which has %llu",
                       (unsigned long long)bytes, (unsigned long long)s->offset, s->arena,
                       s->arena < g->arena_size_count ? (unsigned long long)g->arena_sizes[s->arena]
                                                      : 0ULL);
  *out = r->memory[s->arena] + s->offset;
  return STATUS_OK;
}

static bool overlaps(const Tensor *a, const Tensor *b) {
  uintptr_t a0 = (uintptr_t)a->data, b0 = (uintptr_t)b->data;
  return a->data && b->data && a0 < b0 + tensor_bytes(b) && b0 < a0 + a->capacity;
}

static bool overlaps_operand(const Kernel *k, const Tensor *result) {
  for (uint32_t i = 0; i < k->arg_count; i++) {
    const KernelArg *arg = &k->args[i];
    if (arg->kind == ARG_VALUE && overlaps(result, arg->tensor))
      return true;
    if (arg->kind != ARG_VALUES)
      continue;
    for (uint32_t j = 0; j < arg->count; j++)
      if (arg->tensors[j] && overlaps(result, arg->tensors[j]))
        return true;
  }
  return false;
}

/* A result that is the memory of a state: written where the state is. */
static bool share_state(Run *r, NodeId n, Tensor *result) {
  ValueId shared = node_shared_operand(r->g, n);
  if (!shared || !value_state(r->g, shared))
    return false;
  result->data = r->slots[shared].tensor.data;
  result->capacity = r->slots[shared].tensor.capacity;
  return true;
}

/* A view whose operand dies here takes over its memory: no copy. */
static bool take_over(Run *r, NodeId n, const Kernel *k, Slot *result, uint64_t bytes) {
  if (r->memory || !op_has_trait(k->op, OP_VIEW) || k->args[0].kind != ARG_VALUE)
    return false;
  Slot *from = &r->slots[node_value(r->g, n, 0)];
  if (from->remaining != 1 || !from->owned || from->tensor.capacity < bytes)
    return false;
  result->owned = from->owned;
  result->tensor.data = from->owned;
  result->tensor.capacity = from->tensor.capacity;
  from->owned = NULL;
  return true;
}

/* Allocates the memory of all results. aside[i] is where the kernel must write instead of the
 * planned place, NULL when it may write there. */
static Status prepare_results(Run *r, NodeId n, Kernel *k, Tensor *aside, bool *bounded,
                              bool *taken) {
  const Graph *g = r->g;
  for (uint32_t i = 0; i < k->result_count; i++) {
    ValueId v = node_result(g, n, i);
    Slot *slot = &r->slots[v];
    const Type *type = value_type(g, v);
    k->results[i] = &slot->tensor;
    if (type->kind != TYPE_TENSOR)
      continue;
    bool some = false;
    TRY(result_dims(r, n, type, &slot->tensor, &some));
    *bounded |= some;
    uint64_t bytes = slot->tensor.capacity;
    if (share_state(r, n, &slot->tensor))
      continue;
    void *planned;
    TRY(run_planned(r, node_place(g, n), v, bytes, &planned));
    slot->tensor.data = planned;
    if (planned && op_has_trait(k->op, OP_VIEW) && k->args[0].kind == ARG_VALUE &&
        k->args[0].tensor->data == planned) {
      *taken = true; /* a view at the place of its base */
    } else if (planned && overlaps_operand(k, &slot->tensor)) {
      aside[i] = slot->tensor;
      TRY(run_alloc(r, node_place(g, n), bytes, &aside[i].data));
      k->results[i] = &aside[i];
    } else if (!planned && k->result_count == 1 && take_over(r, n, k, slot, bytes)) {
      *taken = true;
    } else if (!planned) {
      TRY(run_alloc(r, node_place(g, n), bytes, &slot->owned));
      slot->tensor.data = slot->owned;
    }
  }
  return STATUS_OK;
}

/* Brings results that were computed aside to their planned place. */
static void settle_results(Run *r, NodeId n, Kernel *k, Tensor *aside) {
  for (uint32_t i = 0; i < k->result_count; i++) {
    if (!aside[i].data)
      continue;
    Tensor *t = &r->slots[node_result(r->g, n, i)].tensor;
    memcpy(t->dims, aside[i].dims, sizeof t->dims);
    t->rank = aside[i].rank;
    memcpy(t->data, aside[i].data, (size_t)tensor_bytes(t));
    r->live -= aside[i].capacity;
    xfree(aside[i].data);
  }
}

/* What the kernel found out: dims of data-dependent results, values of scalars. */
static Status learn(Run *r, NodeId n, Kernel *k, bool bounded) {
  const Graph *g = r->g;
  for (uint32_t i = 0; i < k->result_count; i++) {
    ValueId v = node_result(g, n, i);
    Type type = *value_type(g, v);
    Slot *slot = &r->slots[v];
    if (type.kind == TYPE_TENSOR) {
      for (uint32_t d = 0; bounded && d < type.rank && type.rank == slot->tensor.rank; d++)
        TRY(symbols_bind_result(&r->symbols, n, type.dims[d], slot->tensor.dims[d]));
      continue;
    }
    slot->scalar = k->scalar_result;
    if (type.kind == TYPE_INT && type.rank == 1 && slot->scalar.kind == ARG_INT)
      TRY(symbols_bind_result(&r->symbols, n, type.dims[0], slot->scalar.i));
  }
  return STATUS_OK;
}

void run_release(Run *r, NodeId n) {
  const Graph *g = r->g;
  const Node *node = node_cget(g, n);
  FOR_OPERANDS(g, n, v, {
    if (v && r->slots[v].remaining != RUN_PINNED && --r->slots[v].remaining == 0)
      run_free(r, &r->slots[v]);
  })
  for (uint32_t i = 0; i < node->result_count; i++)
    if (r->slots[node_result(g, n, i)].remaining == 0)
      run_free(r, &r->slots[node_result(g, n, i)]);
}

static Status run_node(Run *r, NodeId n) {
  const Graph *g = r->g;
  const Node *node = node_cget(g, n);
  const OpRow *row = op_row(node->op);
  arena_reset(&r->scratch);
  if (!row->kernel)
    return diag_report(r->sink, DIAG_NOT_IMPLEMENTED, node_place(g, n),
                       "the interpreter has no kernel for " SV_FMT,
                       SV_ARG(op_schema(node->op)->full));
  uint32_t results = node->result_count;
  KernelArg *args = ARENA_ARRAY(&r->scratch, KernelArg, node->arg_count);
  Tensor *aside = ARENA_ARRAY(&r->scratch, Tensor, results);
  Kernel k = {.op = node->op,
              .args = args,
              .arg_count = node->arg_count,
              .results = ARENA_ARRAY(&r->scratch, Tensor *, results),
              .result_count = results,
              .scratch = &r->scratch,
              .memory = r->limit - r->live,
              .sink = r->sink,
              .place = node_place(g, n),
              .readers = g->ctx->readers,
              .as_runtime = g->level == LEVEL_EXECUTORCH};
  for (uint32_t i = 0; i < k.arg_count; i++)
    TRY(resolve_arg(r, n, i, &args[i]));
  bool bounded = false, taken = false;
  Status status = prepare_results(r, n, &k, aside, &bounded, &taken);
  if (status == STATUS_OK && !taken)
    status = kernel_run(&k);
  settle_results(r, n, &k, aside);
  TRY(status);
  TRY(learn(r, n, &k, bounded));
  for (uint32_t i = 0; i < results; i++)
    run_watch(r, node_result(g, n, i));
  run_release(r, n);
  return STATUS_OK;
}

/* Inputs are borrowed, or copied to their planned place. */
static Status place_inputs(Run *r, const Tensor *inputs) {
  const Graph *g = r->g;
  for (uint32_t i = 0; i < g->input_count; i++) {
    Slot *slot = &r->slots[g->inputs[i]];
    slot->tensor = inputs[i];
    slot->tensor.capacity = tensor_bytes(&inputs[i]);
    void *planned;
    TRY(run_planned(r, DIAG_NOWHERE, g->inputs[i], slot->tensor.capacity, &planned));
    if (planned) {
      memcpy(planned, inputs[i].data, (size_t)slot->tensor.capacity);
      slot->tensor.data = planned;
    }
    run_watch(r, g->inputs[i]);
  }
  return STATUS_OK;
}

/* States are worked on where they are, or at their planned place and copied back at the end. */
static Status place_states(Run *r) {
  const Graph *g = r->g;
  for (uint32_t i = 0; i < g->state_count; i++) {
    ValueId v = g->states[i].value;
    void *planned;
    Tensor *t = &r->slots[v].tensor;
    *t = r->states[i];
    TRY(run_planned(r, DIAG_NOWHERE, v, t->capacity, &planned));
    if (planned) {
      memcpy(planned, t->data, (size_t)t->capacity);
      t->data = planned;
    }
  }
  return STATUS_OK;
}

static void keep_states(Run *r) {
  for (uint32_t i = 0; i < r->g->state_count; i++) {
    const Tensor *t = &r->slots[r->g->states[i].value].tensor;
    if (t->data && t->data != r->states[i].data)
      memcpy(r->states[i].data, t->data, (size_t)t->capacity);
  }
}

static Status collect_outputs(Run *r, Arena *arena, Tensor *outputs) {
  for (uint32_t i = 0; i < graph_output_count(r->g); i++) {
    ValueId v = graph_output(r->g, i);
    if (value_type(r->g, v)->kind != TYPE_TENSOR) {
      outputs[i] = interp_scalar_tensor(&r->slots[v].scalar, arena);
      continue;
    }
    Tensor *from;
    TRY(run_operand(r, NODE_OUTPUT, v, false, &from));
    outputs[i] = *from;
    uint64_t bytes = tensor_bytes(from);
    outputs[i].capacity = bytes;
    outputs[i].data = arena_alloc(arena, (size_t)bytes);
    memcpy(outputs[i].data, from->data, (size_t)bytes);
  }
  return STATUS_OK;
}

static Status make_arenas(Run *r) {
  const Graph *g = r->g;
  if (g->arena_size_count <= 1)
    return STATUS_OK;
  r->memory = ARENA_ARRAY(&r->arena, uint8_t *, g->arena_size_count);
  for (uint32_t i = 1; i < g->arena_size_count; i++) {
    void *memory = NULL;
    uint64_t size = g->arena_sizes[i];
    if (size > r->limit)
      return memory_error(r, DIAG_NOWHERE, size);
    TRY(run_alloc(r, DIAG_NOWHERE, size, &memory));
    memset(memory, POISON, (size_t)size);
    r->memory[i] = memory;
  }
  return STATUS_OK;
}

static Status run_nodes(Run *r) {
  for (NodeId n = r->g->first; n;) {
    if (op_has_trait(node_cget(r->g, n)->op, OP_CONTROL)) {
      TRY(control_step(r, n, &n));
      continue;
    }
    TRY(control_enter(r, n));
    uint64_t begin = r->trace ? clock_ns() : 0;
    TRY(run_node(r, n));
    if (r->trace)
      r->trace(r->trace_user, n, begin, clock_ns());
    n = r->g->nodes[n].next;
  }
  return STATUS_OK;
}

static Status run_all(Run *r, const Tensor *inputs, uint32_t count, Arena *arena, Tensor *outputs) {
  TRY(symbols_bind_inputs(&r->symbols, inputs, count));
  TRY(make_arenas(r));
  TRY(place_inputs(r, inputs));
  TRY(place_states(r));
  TRY(control_prepare(r));
  Status status = run_nodes(r);
  keep_states(r);
  TRY(status);
  return outputs ? collect_outputs(r, arena, outputs) : STATUS_OK;
}

static Status make_states(const Graph *g, Arena *arena, DiagSink *sink, Tensor **states) {
  uint64_t total = 0;
  *states = ARENA_ARRAY(arena, Tensor, g->state_count);
  for (uint32_t i = 0; i < g->state_count; i++) {
    Tensor *t = &(*states)[i];
    ConstId initial = g->states[i].initial;
    *t = interp_static_tensor(value_type(g, g->states[i].value));
    t->capacity = tensor_bytes(t);
    if (!add_u64(total, t->capacity, &total) || total > machine_memory())
      return diag_report(sink, DIAG_SHAPE_OVERFLOW, DIAG_NOWHERE,
                         "the states need more memory than there is");
    t->data = arena_calloc(arena, (size_t)t->capacity, 1);
    if (initial && t->capacity)
      memcpy(t->data, constant_made(&g->constants[initial])->data, (size_t)t->capacity);
  }
  return STATUS_OK;
}

Status interp_states(const Graph *g, Arena *arena, Tensor **states) {
  return make_states(g, arena, g->ctx->sink, states);
}

/* r has the graph, the sink, the states and the watch. */
static Status run_graph(Run *r, const Tensor *inputs, uint32_t input_count, Arena *arena,
                        Tensor *outputs) {
  const Graph *g = r->g;
  r->limit = machine_memory();
  r->slots = ARENA_ARRAY(&r->arena, Slot, g->value_count);
  for (uint32_t v = 0; v < g->value_count; v++)
    r->slots[v].remaining = g->values[v].use_count;
  r->symbols = symbols_make(g, &r->arena);
  r->symbols.sink = r->sink;
  Status status = run_all(r, inputs, input_count, arena, outputs);
  for (uint32_t v = 0; v < g->value_count; v++)
    run_free(r, &r->slots[v]);
  for (uint32_t i = 1; r->memory && i < g->arena_size_count; i++)
    xfree(r->memory[i]);
  arena_release(&r->scratch);
  arena_release(&r->arena);
  return status;
}

Status interp_run(Graph *g, const Tensor *inputs, uint32_t input_count, Arena *arena,
                  Tensor *outputs) {
  Tensor *states;
  TRY(interp_states(g, arena, &states));
  const InterpCall call = {inputs, input_count, states, outputs, NULL, NULL};
  return interp_call(g, &call, arena);
}

Status interp_call(Graph *g, const InterpCall *call, Arena *arena) {
  Run r = {.g = g,
           .sink = g->ctx->sink,
           .states = call->states,
           .trace = call->trace,
           .trace_user = call->trace_user};
  return run_graph(&r, call->inputs, call->input_count, arena, call->outputs);
}

Status interp_watch(const Graph *g, const Tensor *inputs, uint32_t input_count, DiagSink *sink,
                    InterpWatch *watch, void *user) {
  Run r = {.g = g, .sink = sink, .watch = watch, .watch_user = user};
  Arena arena = {0};
  Status status = make_states(g, &arena, sink, &r.states);
  if (status == STATUS_OK)
    status = run_graph(&r, inputs, input_count, &arena, NULL);
  arena_release(&arena);
  return status;
}

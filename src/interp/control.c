/* Branches and loops of the interpreter, see run.h and ir/region.h.
 *
 * Values of a region are made anew each time that it runs: a result that is still there is freed
 * first, and symbols that an iteration bound are unbound before the next. States are copied, all of
 * them aside first when one may be the operand of another. */
#include "interp/run.h"

#define STEPS_MAX                                                                                  \
  10000000 /* as many instructions as the runtime executes (runtime/executor/method.cpp) */

static Status no_end(Run *r, NodeId n) {
  return diag_report(r->sink, DIAG_RUN_KERNEL, node_place(r->g, n),
                     "more than %d nodes have run: the runtime stops here", STEPS_MAX);
}

/* Uses within a loop of values from outside it come back in each iteration. */
static void pin_operands(Run *r, NodeId n) {
  const Graph *g = r->g;
  FOR_OPERANDS(g, n, v, {
    if (!v)
      continue;
    NodeId outer = region_of_results(g, &r->regions, value_def(g, v));
    if (region_outermost_loop(g, &r->regions, n, outer))
      r->slots[v].remaining = RUN_PINNED;
  })
}

Status control_prepare(Run *r) {
  NodeId at = 0;
  const char *wrong = regions_find(r->g, &r->arena, &r->regions, &at);
  if (wrong)
    return diag_report(r->sink, DIAG_RUN_KERNEL, node_place(r->g, at), "the marker %s", wrong);
  if (!r->regions.any)
    return STATUS_OK;
  r->loops = ARENA_ARRAY(&r->arena, LoopRun *, r->g->node_count);
  for (FOR_NODES(r->g, n))
    pin_operands(r, n);
  return STATUS_OK;
}

/* The results of n are going to be made, maybe once more. */
static void renew_results(Run *r, NodeId n) {
  const Node *node = node_cget(r->g, n);
  for (uint32_t i = 0; i < node->result_count; i++) {
    ValueId v = node->first_result + i;
    Slot *slot = &r->slots[v];
    run_free(r, slot);
    if (slot->remaining != RUN_PINNED)
      slot->remaining = r->g->values[v].use_count;
  }
}

Status control_enter(Run *r, NodeId n) {
  if (!r->regions.any)
    return STATUS_OK;
  if (++r->steps > STEPS_MAX)
    return no_end(r, n);
  renew_results(r, n);
  return STATUS_OK;
}

/* --- values that markers return --- */

/* Room for a copy of from in the slot of v: its planned place, or memory up to the bound of its
 * type, since a row may be added to it. */
static Status make_room(Run *r, NodeId n, ValueId v, const Tensor *from) {
  Slot *slot = &r->slots[v];
  uint64_t bytes = tensor_bytes(from), upper = type_bytes_upper(r->g, value_type(r->g, v));
  void *planned;
  if (upper != UINT64_MAX && upper > bytes)
    bytes = upper;
  TRY(run_planned(r, node_place(r->g, n), v, tensor_bytes(from), &planned));
  slot->tensor = *from;
  slot->tensor.capacity = bytes;
  slot->tensor.data = planned;
  if (planned)
    return STATUS_OK;
  TRY(run_alloc(r, node_place(r->g, n), bytes, &slot->owned));
  slot->tensor.data = slot->owned;
  return STATUS_OK;
}

/* Binds what the real sizes say about the symbols of v. */
static Status bind_sizes(Run *r, NodeId n, ValueId v) {
  Type type = *value_type(r->g, v);
  const Tensor *t = &r->slots[v].tensor;
  for (uint32_t i = 0; i < type.rank; i++)
    TRY(symbols_bind_result(&r->symbols, n, type.dims[i], t->dims[i]));
  return STATUS_OK;
}

/* Copies operands `from` of marker n to the results `first`, … of marker `to`. */
static Status hand_on(Run *r, NodeId n, uint32_t arg, NodeId to, ValueId first) {
  const Graph *g = r->g;
  uint32_t count = node_list_count(g, n, arg);
  Tensor *copies = ARENA_ARRAY(&r->scratch, Tensor, count);
  for (uint32_t k = 0; k < count; k++) {
    Tensor *from;
    TRY(run_operand(r, n, node_list_value(g, n, arg, k), false, &from));
    copies[k] = *from;
    copies[k].data = arena_alloc(&r->scratch, (size_t)tensor_bytes(from) + 1);
    memcpy(copies[k].data, from->data, (size_t)tensor_bytes(from));
  }
  renew_results(r, to); /* which may be operands */
  for (uint32_t k = 0; k < count; k++) {
    Tensor from = copies[k];
    Slot *slot = &r->slots[first + k];
    TRY(make_room(r, to, first + k, &from));
    memcpy(slot->tensor.data, from.data, (size_t)tensor_bytes(&from));
    TRY(bind_sizes(r, to, first + k));
    run_watch(r, first + k);
  }
  return STATUS_OK;
}

static Status condition_holds(Run *r, NodeId n, uint32_t arg, bool *holds) {
  Tensor *t;
  ValueId v = node_value(r->g, n, arg);
  *holds = true;
  if (!v)
    return STATUS_OK;
  TRY(run_operand(r, n, v, false, &t));
  for (int64_t i = 0; i < tensor_numel(t); i++)
    *holds &= tensor_load_int(t, i) != 0;
  return STATUS_OK;
}

/* --- loops --- */

static LoopRun *loop_run(Run *r, NodeId loop) {
  const Symbols *s = &r->symbols;
  if (!r->loops[loop]) {
    LoopRun *run = r->loops[loop] = ARENA_NEW(&r->arena, LoopRun);
    run->bound = ARENA_ARRAY(&r->arena, bool, (size_t)s->g->syms.symbol_count + 1);
    run->checked = ARENA_ARRAY(&r->arena, bool, (size_t)s->g->constraint_count + 1);
  }
  LoopRun *run = r->loops[loop];
  memcpy(run->bound, s->bound, s->g->syms.symbol_count * sizeof *s->bound);
  memcpy(run->checked, s->checked, s->g->constraint_count * sizeof *s->checked);
  return run;
}

static Status read_trip(Run *r, NodeId n, int64_t *trip) {
  const Arg *arg = node_arg(r->g, n, 0);
  *trip = INT64_MAX;
  if (arg->kind == ARG_INT)
    return run_eval(r, n, arg->i, trip);
  if (arg->kind == ARG_VALUE)
    *trip = r->slots[node_value(r->g, n, 0)].scalar.i;
  return STATUS_OK;
}

/* Begins an iteration with the operands of marker n. */
static Status begin_iteration(Run *r, NodeId loop, NodeId n, uint32_t arg) {
  ValueId number = node_result(r->g, loop, 0);
  LoopRun *run = r->loops[loop];
  memcpy(r->symbols.bound, run->bound, r->g->syms.symbol_count * sizeof *run->bound);
  memcpy(r->symbols.checked, run->checked, r->g->constraint_count * sizeof *run->checked);
  r->slots[number].scalar = (KernelArg){.kind = ARG_INT, .i = run->iteration};
  TRY(symbols_bind_result(&r->symbols, loop, value_type(r->g, number)->dims[0], run->iteration));
  return hand_on(r, n, arg, loop, number + 1);
}

/* Goes on with another iteration, or behind the loop, with the operands of marker n. */
static Status go_on(Run *r, NodeId loop, NodeId n, uint32_t arg, bool holds, NodeId *next) {
  NodeId end = r->regions.partner[loop];
  const LoopRun *run = r->loops[loop];
  if (holds && run->iteration < run->trip) {
    *next = r->g->nodes[loop].next;
    return begin_iteration(r, loop, n, arg);
  }
  *next = r->g->nodes[end].next;
  return hand_on(r, n, arg, end, node_cget(r->g, end)->first_result);
}

static Status run_loop(Run *r, NodeId n, NodeId *next) {
  LoopRun *run = loop_run(r, n);
  bool holds;
  run->iteration = 0;
  TRY(read_trip(r, n, &run->trip));
  TRY(condition_holds(r, n, 1, &holds));
  TRY(go_on(r, n, n, 2, holds, next));
  run_release(r, n);
  return STATUS_OK;
}

static Status run_next(Run *r, NodeId n, NodeId *next) {
  NodeId loop = r->regions.partner[n];
  bool holds;
  TRY(condition_holds(r, n, 0, &holds));
  r->loops[loop]->iteration++;
  return go_on(r, loop, n, 1, holds, next);
}

/* --- branches --- */

static Status end_branch(Run *r, NodeId end, uint32_t arg, NodeId *next) {
  *next = r->g->nodes[end].next;
  return hand_on(r, end, arg, end, node_cget(r->g, end)->first_result);
}

static Status run_if(Run *r, NodeId n, NodeId *next) {
  bool holds;
  TRY(condition_holds(r, n, 0, &holds));
  *next = r->g->nodes[holds ? n : r->regions.partner[n]].next;
  run_release(r, n);
  return STATUS_OK;
}

/* --- errors --- */

static Status fail(Run *r, NodeId n, uint32_t message) {
  return diag_report(r->sink, DIAG_RUN_KERNEL, node_place(r->g, n), SV_FMT,
                     SV_ARG(node_str(r->g, n, message)));
}

static Status require(Run *r, NodeId n, NodeId *next) {
  const Arg *condition = node_arg(r->g, n, 0);
  bool holds = condition->kind == ARG_VALUE ? r->slots[node_value(r->g, n, 0)].scalar.i != 0
                                            : condition->i != 0;
  *next = r->g->nodes[n].next;
  run_release(r, n);
  return holds ? STATUS_OK : fail(r, n, 1);
}

Status control_step(Run *r, NodeId n, NodeId *next) {
  arena_reset(&r->scratch);
  if (++r->steps > STEPS_MAX)
    return no_end(r, n);
  switch ((enum Op)node_cget(r->g, n)->op) {
  case OP_IF:
    return run_if(r, n, next);
  case OP_ELSE: /* reached by the branch before it */
    return end_branch(r, r->regions.partner[n], 0, next);
  case OP_ENDIF:
    return end_branch(r, n, 1, next);
  case OP_LOOP:
    return run_loop(r, n, next);
  case OP_FAIL:
    return fail(r, n, 0);
  case OP_REQUIRE:
    return require(r, n, next);
  default:
    return run_next(r, n, next);
  }
}

/* Brings the operands of the markers that end branches and iterations, and of those that begin
 * loops, to where their results are: each is copied right before the marker, and the planner gives
 * all copies and the result one place. After that a marker is nothing but jumps.
 *
 * No copy is made of a state that an iteration leaves alone or only adds a row to, nor of a new
 * state that can be computed where the old one is: no one reads that later than what computes it,
 * which may write over it. A copy may be written over a state that another copy still has to read
 * (two states that change places), so whatever lies in the memory of a state is copied aside first.
 * A state that begins as a tensor of no elements is filled, not copied: a constant without bytes
 * has no place in a program. */
#include "ir/builder.h"
#include "ir/region.h"
#include "ops/delegate.h"
#include "ops/work.h"
#include "passes/executorch/liveness.h"
#include "passes/executorch/views.h"
#include "passes/pass.h"

/* The value whose memory v lies in. */
static ValueId memory_of(Graph *g, ValueId v) {
  for (;;) {
    ValueId base = view_base(g, v);
    NodeId n = value_def(g, base);
    if (!n || node_cget(g, n)->op != OP_ET_COPY_INDEX)
      return base;
    v = node_value(g, n, 0);
  }
}

/* The state that v is, with rows added to it at most. */
static ValueId state_of(const Graph *g, ValueId v) {
  for (NodeId n = value_def(g, v); n && node_cget(g, n)->op == OP_ET_COPY_INDEX;
       n = value_def(g, v))
    v = node_value(g, n, 0);
  return v;
}

static ValueId copy(Builder *b, ValueId v) {
  const Type *t = value_type(b->g, v);
  if (b->status != STATUS_OK || !value_is_const(b->g, v) || type_bytes_upper(b->g, t))
    return build(b, OP_CLONE, A_VAL(v));
  return build(b, OP_FULL, A_INTS(t->dims, t->rank), A_INT(0), A_DTYPE(t->dtype));
}

enum { IN_PLACE_MAX = 64 }; /* states of a loop that are looked at for it */

typedef struct Copies {
  PassContext *p;
  Graph *g;
  Regions regions;
  uint32_t *position; /* by node, of those that were there before */
  uint32_t known;     /* so many */
  uint64_t made;
} Copies;

/* Copies list argument i of n before `before`. keep: the operands that stay, may be NULL. */
static Status copy_list(Copies *c, NodeId n, uint32_t i, NodeId before, const bool *keep) {
  Graph *g = c->g;
  Builder b = builder_make(g, before, g->nodes[n].loc);
  uint32_t count = node_list_count(g, n, i);
  ValueId *values = ARENA_ARRAY(c->p->scratch, ValueId, count);
  for (uint32_t k = 0; k < count; k++) {
    values[k] = node_list_value(g, n, i, k);
    if (keep && keep[k])
      continue;
    values[k] = copy(&b, values[k]);
    c->made++;
  }
  TRY(b.status);
  node_set_arg(g, n, i, A_VALS(values, count));
  return STATUS_OK;
}

/* --- new states in the place of the old ones --- */

typedef struct Place {
  Graph *g;
  ValueId value;
} Place;

static bool lies_in_state(void *user, ValueId v) {
  const Place *s = user;
  return memory_of(s->g, v) == s->value;
}

/* The last node of the loop that reads each state: their positions, by state. */
static uint32_t *last_reads(Copies *c, NodeId loop, NodeId next, uint32_t count) {
  Graph *g = c->g;
  uint32_t *last = ARENA_ARRAY(c->p->scratch, uint32_t, (size_t)count + 1);
  ValueId first = node_result(g, loop, 1);
  uint32_t position = c->position[loop];
  for (NodeId n = g->nodes[loop].next; n != g->nodes[next].next; n = g->nodes[n].next) {
    /* What was put in reads no later than what it was put before. */
    uint32_t here = n < c->known ? c->position[n] : position + 1;
    position = n < c->known ? here : position;
    FOR_OPERANDS(g, n, v, {
      ValueId memory = v ? memory_of(g, v) : 0;
      if (memory >= first && memory - first < count)
        last[memory - first] = here;
    })
  }
  return last;
}

/* May v, which the loop makes of `state` for the next iteration, be computed in its place? last:
 * where that is read last. */
static bool replaces(Copies *c, NodeId loop, ValueId state, ValueId v, uint32_t last) {
  Graph *g = c->g;
  NodeId n = value_def(g, v);
  if (!n || n >= c->known || c->regions.scope[n] != loop || last > c->position[n] ||
      op_has_trait(node_cget(g, n)->op, OP_CONTROL) || node_shared_operand(g, n) ||
      memory_of(g, v) != v || !value_same_type(g, v, state))
    return false;
  if (last < c->position[n])
    return true;
  Place s = {g, state};
  if (op_has_trait(node_cget(g, n)->op, OP_DELEGATE))
    return delegate_may_overwrite(g, n, value_cget(g, v)->result, lies_in_state, &s, c->p->scratch);
  return v == node_result(g, n, 0) && liveness_may_overwrite(g, n, v, lies_in_state, &s);
}

static bool is_listed(const ValueId *values, uint32_t count, ValueId v) {
  for (uint32_t i = 0; i < count; i++)
    if (values[i] == v)
      return true;
  return false;
}

/* A condition that is a state is read by the marker, after the new state was written over it: it is
 * copied aside, unless the state stays. */
static void settle_condition(Copies *c, Builder *b, NodeId n, NodeId loop, const bool *keep) {
  Graph *g = c->g;
  if (node_absent(g, n, 0))
    return;
  ValueId condition = node_value(g, n, 0), state = memory_of(g, condition);
  if (value_def(g, state) != loop || keep[value_cget(g, state)->result - 1])
    return;
  node_set_arg(g, n, 0, A_VAL(build(b, OP_CLONE, A_VAL(condition))));
  c->made++;
}

/* Operands that lie in the memory of a state are copied aside, but those that stay in their own. */
static Status settle_next(Copies *c, NodeId n, NodeId loop) {
  Graph *g = c->g;
  Builder b = builder_make(g, n, g->nodes[n].loc);
  uint32_t count = node_list_count(g, n, 1);
  ValueId *values = ARENA_ARRAY(c->p->scratch, ValueId, count);
  bool *keep = ARENA_ARRAY(c->p->scratch, bool, count);
  const uint32_t *last = last_reads(c, loop, n, count);
  for (uint32_t k = 0; k < count; k++) {
    ValueId v = values[k] = node_list_value(g, n, 1, k), state = node_result(g, loop, 1 + k);
    keep[k] = state_of(g, v) == state || (k < IN_PLACE_MAX && !is_listed(values, k, v) &&
                                          replaces(c, loop, state, v, last[k]));
    if (keep[k] || value_def(g, memory_of(g, v)) != loop)
      continue;
    values[k] = build(&b, OP_CLONE, A_VAL(v));
    c->made++;
  }
  settle_condition(c, &b, n, loop, keep);
  TRY(b.status);
  node_set_arg(g, n, 1, A_VALS(values, count));
  return copy_list(c, n, 1, n, keep);
}

/* --- how much is certain to be executed --- */

#define INSTRUCTIONS_MAX                                                                           \
  10000000 /* in one run: runtime/executor/method.cpp of ExecuTorch 1.4.1                          \
            */

/* How often a loop runs for certain: 0 unless nothing but a fixed number ends it. */
static uint64_t sure_iterations(const Graph *g, const Regions *r, NodeId loop) {
  const Arg *trip = node_arg(g, loop, 0);
  bool fixed = trip->kind == ARG_INT && sym_is_const(trip->i) && trip->i > 0 &&
               node_absent(g, loop, 1) && node_absent(g, r->partner[loop], 0);
  return fixed ? (uint64_t)trip->i : 0;
}

/* Reports a program that the runtime is certain to stop before its end. What stands in branches
 * does not count. */
static Status check_work(const Graph *g, const Regions *r, Arena *scratch) {
  uint64_t *factor = ARENA_ARRAY(scratch, uint64_t, g->node_count); /* by marker */
  uint64_t total = 0;
  for (FOR_NODES(g, n)) {
    uint64_t here = r->scope[n] ? factor[r->scope[n]] : 1;
    OpId op = node_cget(g, n)->op;
    factor[n] = op == OP_LOOP ? work_times(here, sure_iterations(g, r, n)) : 0;
    if (op == OP_LOOP) /* its own jumps and counting */
      here = work_times(factor[n], 4);
    total = here > UINT64_MAX - total ? UINT64_MAX : total + here;
    if (total > INSTRUCTIONS_MAX)
      return diag_report(
          g->ctx->sink, DIAG_TOO_LARGE, node_place(g, n),
          "the program would execute more than %d instructions, at which the runtime "
          "stops",
          INSTRUCTIONS_MAX);
  }
  return STATUS_OK;
}

static void number_nodes(Copies *c) {
  uint32_t count = 0;
  c->known = c->g->node_count;
  c->position = ARENA_ARRAY(c->p->scratch, uint32_t, c->known);
  for (FOR_NODES(c->g, n))
    c->position[n] = ++count;
}

Status pass_legalize_control(PassContext *p, Graph *g) {
  Copies c = {.p = p, .g = g};
  const Regions *r = &c.regions;
  NodeId at;
  const char *wrong = regions_find(g, p->scratch, &c.regions, &at);
  if (wrong)
    BUG("the marker %s", wrong);
  if (!r->any)
    return STATUS_OK;
  TRY(check_work(g, r, p->scratch));
  number_nodes(&c);
  for (NodeId n = g->first; n; n = g->nodes[n].next) {
    OpId op = node_cget(g, n)->op;
    if (op == OP_LOOP)
      TRY(copy_list(&c, n, 2, n, NULL));
    else if (op == OP_NEXT)
      TRY(settle_next(&c, n, r->partner[n]));
    if (op != OP_ENDIF)
      continue;
    TRY(copy_list(&c, n, 0, r->partner[r->partner[n]], NULL));
    TRY(copy_list(&c, n, 1, n, NULL));
  }
  pass_count(p, "copies", c.made);
  return STATUS_OK;
}

/* Brings the operands of the markers that end branches and iterations, and of those that begin
 * loops, to where their results are: each is copied right before the marker, and the planner gives
 * all copies and the result one place. After that a marker is nothing but jumps.
 *
 * No copy is made of a state that an iteration leaves alone or only adds a row to. A copy may be
 * written over a state that another copy still has to read (two states that change places), so
 * whatever lies in the memory of a state is copied aside first. A state that begins as a tensor of
 * no elements is filled, not copied: a constant without bytes has no place in a program. */
#include "ir/builder.h"
#include "ir/region.h"
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

typedef struct Copies {
  PassContext *p;
  Graph *g;
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

/* Operands that lie in the memory of a state are copied aside, but those that stay in their own. */
static Status settle_next(Copies *c, NodeId n, NodeId loop) {
  Graph *g = c->g;
  Builder b = builder_make(g, n, g->nodes[n].loc);
  uint32_t count = node_list_count(g, n, 1);
  ValueId *values = ARENA_ARRAY(c->p->scratch, ValueId, count);
  bool *keep = ARENA_ARRAY(c->p->scratch, bool, count);
  for (uint32_t k = 0; k < count; k++) {
    ValueId v = values[k] = node_list_value(g, n, 1, k);
    keep[k] = state_of(g, v) == node_result(g, loop, 1 + k);
    if (keep[k] || value_def(g, memory_of(g, v)) != loop)
      continue;
    values[k] = build(&b, OP_CLONE, A_VAL(v));
    c->made++;
  }
  TRY(b.status);
  node_set_arg(g, n, 1, A_VALS(values, count));
  return copy_list(c, n, 1, n, keep);
}

/* --- how much is certain to be executed --- */

#define INSTRUCTIONS_MAX                                                                           \
  10000000 /* in one run: runtime/executor/method.cpp of ExecuTorch 1.4.1                          \
            */

static uint64_t times(uint64_t a, uint64_t b) {
  uint64_t product;
  return mul_u64(a, b, &product) ? product : UINT64_MAX;
}

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
    factor[n] = op == OP_LOOP ? times(here, sure_iterations(g, r, n)) : 0;
    if (op == OP_LOOP) /* its own jumps and counting */
      here = times(factor[n], 4);
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

Status pass_legalize_control(PassContext *p, Graph *g) {
  Copies c = {.p = p, .g = g};
  Regions r;
  NodeId at;
  const char *wrong = regions_find(g, p->scratch, &r, &at);
  if (wrong)
    BUG("the marker %s", wrong);
  if (r.any)
    TRY(check_work(g, &r, p->scratch));
  for (NodeId n = r.any ? g->first : 0; n; n = g->nodes[n].next) {
    OpId op = node_cget(g, n)->op;
    if (op == OP_LOOP)
      TRY(copy_list(&c, n, 2, n, NULL));
    else if (op == OP_NEXT)
      TRY(settle_next(&c, n, r.partner[n]));
    if (op != OP_ENDIF)
      continue;
    TRY(copy_list(&c, n, 0, r.partner[r.partner[n]], NULL));
    TRY(copy_list(&c, n, 1, n, NULL));
  }
  pass_count(p, "copies", c.made);
  return STATUS_OK;
}

/* Gives every output a value of its own: an output that is a constant, an input, a state, the same
 * value as an earlier output, or a view of one of these becomes a copy. So does what is written
 * into a state and is the memory of a state itself.
 *
 * Why: a constant lies in read-only memory and has no place in the arena, and hosts may keep, or
 * write into, one output without expecting that another one, or their input, changes with it. The
 * copies stand at the end, where an input usually dies: the planner then lays the copy over it, and
 * it costs no memory. Copies of states stand before the first state is written: views of them will
 * share their memory. */
#include "ir/builder.h"
#include "passes/executorch/views.h"
#include "passes/pass.h"
#include "support/bitset.h"

/* The first node that gives a state new contents; 0 when there is none. Making the memory of a
 * state a tensor of its present size is not that. */
static NodeId first_write(const Graph *g) {
  for (FOR_NODES(g, n)) {
    ValueId shared = g->state_count ? node_shared_operand(g, n) : 0;
    if (!shared || !op_has_trait(node_cget(g, n)->op, OP_EFFECT) || !value_state(g, shared))
      continue;
    if (node_cget(g, n)->op != OP_RESIZE_ || g->values[shared].kind != VALUE_STATE)
      return n;
  }
  return 0;
}

static Status copy_sources(Graph *g, NodeId before, uint64_t *copies) {
  for (NodeId n = before; n; n = g->nodes[n].next) {
    ValueId src = node_cget(g, n)->op == OP_COPY_ ? node_value(g, n, 1) : 0;
    if (!src || !value_state(g, node_value(g, n, 0)) || !value_state(g, view_base(g, src)))
      continue;
    Builder b = builder_make(g, before, g->nodes[n].loc);
    ValueId copy = build(&b, OP_CLONE, A_VAL(src));
    TRY(b.status);
    node_set_arg(g, n, 1, A_VAL(copy));
    ++*copies;
  }
  return STATUS_OK;
}

Status pass_legalize_outputs(PassContext *p, Graph *g) {
  uint32_t count = graph_output_count(g);
  ValueId *outputs = ARENA_ARRAY(p->scratch, ValueId, count);
  NameId *names = ARENA_ARRAY(p->scratch, NameId, count);
  Bitset taken = bitset_make(p->scratch, g->value_count);
  uint64_t copies = 0;
  NodeId write = first_write(g);
  TRY(copy_sources(g, write, &copies));
  for (uint32_t i = 0; i < count; i++) {
    ValueId v = outputs[i] = graph_output(g, i);
    names[i] = graph_output_name(g, i);
    if (value_type(g, v)->kind != TYPE_TENSOR)
      continue;
    ValueId base = view_base(g, v);
    bool state = value_state(g, base) != 0;
    if (g->values[base].kind == VALUE_RESULT && !state && !bitset_has(&taken, base)) {
      bitset_add(&taken, base);
      continue;
    }
    NodeId def = value_def(g, v);
    Builder b = builder_make(g, state ? write : 0, def ? g->nodes[def].loc : 0);
    outputs[i] = build(&b, OP_CLONE, A_VAL(v));
    TRY(b.status);
    g->values[outputs[i]].name = names[i];
    copies++;
  }
  if (copies)
    graph_set_outputs(g, outputs, count, names);
  pass_count(p, "copies", copies);
  return STATUS_OK;
}

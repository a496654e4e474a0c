/* See host_buffers.h.
 *
 * The address of a tensor without a place is known when the program runs. A view of it is a call of
 * et_view, which hands the address on. What shares memory without a call needs a place: results of
 * another element type, operands of branches and loops, what is written in place. Such an input is
 * copied at the start, such an output at the end. */
#include "passes/executorch/host_buffers.h"

#include "ir/builder.h"

/* Whether node n makes v share memory with another value, other than by et_view. */
static bool shares_memory(const Graph *g, NodeId n, ValueId v) {
  OpId op = node_cget(g, n)->op;
  if (op_has_trait(op, OP_CONTROL))
    return true;
  return op != OP_ET_VIEW && node_shared_operand(g, n) == v;
}

static bool has_sharing_use(const Graph *g, ValueId v) {
  for (UseId u = first_use(g, v); u; u = g->uses[u].next)
    if (g->uses[u].node != NODE_OUTPUT && shares_memory(g, g->uses[u].node, v))
      return true;
  return false;
}

static Status copy_inputs(Graph *g, uint64_t *copies) {
  for (uint32_t i = 0; i < g->input_count; i++) {
    ValueId in = g->inputs[i];
    if (!has_sharing_use(g, in))
      continue;
    Builder b = builder_make(g, g->first, 0);
    ValueId copy = build(&b, OP_CLONE, A_VAL(in));
    TRY(b.status);
    graph_replace_uses(g, in, copy);
    node_set_arg(g, value_def(g, copy), 0, A_VAL(in));
    ++*copies;
  }
  return STATUS_OK;
}

/* Whether the kernel that makes v can write it where the host wants it. */
static bool can_be_host(const Graph *g, ValueId v) {
  NodeId n = value_def(g, v);
  return n && g->values[v].kind == VALUE_RESULT && !op_has_trait(node_cget(g, n)->op, OP_CONTROL) &&
         !node_shared_operand(g, n) && !has_sharing_use(g, v);
}

static Status copy_outputs(Graph *g, Arena *scratch, uint64_t *copies) {
  uint32_t count = graph_output_count(g);
  ValueId *outputs = ARENA_ARRAY(scratch, ValueId, count);
  NameId *names = ARENA_ARRAY(scratch, NameId, count);
  for (uint32_t i = 0; i < count; i++) {
    ValueId v = outputs[i] = graph_output(g, i);
    names[i] = graph_output_name(g, i);
    if (value_type(g, v)->kind != TYPE_TENSOR || can_be_host(g, v))
      continue;
    Builder b = builder_make(g, 0, 0);
    outputs[i] = build(&b, OP_CLONE, A_VAL(v));
    TRY(b.status);
    g->values[outputs[i]].name = names[i];
    ++*copies;
  }
  graph_set_outputs(g, outputs, count, names);
  return STATUS_OK;
}

Status host_buffers_prepare(PassContext *p, Graph *g, bool inputs, bool outputs) {
  uint64_t copies = 0;
  if (inputs)
    TRY(copy_inputs(g, &copies));
  if (outputs)
    TRY(copy_outputs(g, p->scratch, &copies));
  if (inputs || outputs)
    pass_count(p, "copies", copies);
  return STATUS_OK;
}

/* Gives every output a value of its own: an output that is a constant, an input, the same value as
 * an earlier output, or a view of one of these becomes a copy.
 *
 * Why: a constant lies in read-only memory and has no place in the arena, and hosts may keep, or
 * write into, one output without expecting that another one, or their input, changes with it. The
 * copies stand at the end, where an input usually dies: the planner then lays the copy over it, and
 * it costs no memory. */
#include "ir/builder.h"
#include "passes/executorch/views.h"
#include "passes/pass.h"
#include "support/bitset.h"

Status pass_legalize_outputs(PassContext *p, Graph *g) {
  uint32_t count = graph_output_count(g);
  ValueId *outputs = ARENA_ARRAY(p->scratch, ValueId, count);
  NameId *names = ARENA_ARRAY(p->scratch, NameId, count);
  Bitset taken = bitset_make(p->scratch, g->value_count);
  uint64_t copies = 0;
  for (uint32_t i = 0; i < count; i++) {
    ValueId v = outputs[i] = graph_output(g, i);
    names[i] = graph_output_name(g, i);
    if (value_type(g, v)->kind != TYPE_TENSOR)
      continue;
    ValueId base = view_base(g, v);
    if (g->values[base].kind == VALUE_RESULT && !bitset_has(&taken, base)) {
      bitset_add(&taken, base);
      continue;
    }
    NodeId def = value_def(g, v);
    Builder b = builder_make(g, 0, def ? g->nodes[def].loc : 0);
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

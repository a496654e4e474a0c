/* Lists that a loop appends to, as scripted models of torch write them: a state that is a sequence
 * before the loop, and to which each step inserts one tensor at the end, is a scan output of that
 * tensor, behind what was in it before. What follows sees a sequence that is stacked, of a length
 * that may be known only while running. */
#include "onnx/translate/control.h"

size_t loop_reads(const Onnx__GraphProto *graph, StrView name) {
  size_t count = 0;
  for (size_t i = 0; i < graph->n_node; i++) {
    const Onnx__NodeProto *n = graph->node[i];
    for (size_t k = 0; k < n->n_input; k++)
      count += sv_eq(onnx_text(n->input[k]), name);
    for (size_t k = 0; k < n->n_attribute; k++)
      count += n->attribute[k]->g ? loop_reads(n->attribute[k]->g, name) : 0;
  }
  for (size_t i = 0; i < graph->n_output; i++)
    count += graph->output[i] && sv_eq(onnx_text(graph->output[i]->name), name);
  return count;
}

/* The node by which the body appends to state k, and does nothing else with it; NULL: it does not.
 */
static const Onnx__NodeProto *appending(const Onnx__GraphProto *body, uint32_t k) {
  const Onnx__ValueInfoProto *before = body->input[2 + k], *after = body->output[1 + k];
  if (!before || !after || loop_reads(body, onnx_text(before->name)) != 1 ||
      loop_reads(body, onnx_text(after->name)) != 1)
    return NULL;
  for (size_t i = 0; i < body->n_node; i++) {
    const Onnx__NodeProto *n = body->node[i];
    if (n->n_output == 1 && sv_eq(onnx_text(n->output[0]), onnx_text(after->name)))
      return sv_eq_str(onnx_text(n->op_type), "SequenceInsert") && n->n_input >= 2 &&
                     (n->n_input == 2 || !onnx_text(n->input[2]).size) &&
                     sv_eq(onnx_text(n->input[0]), onnx_text(before->name))
                 ? n
                 : NULL;
  }
  return NULL;
}

static bool is_list(const Binding *state) {
  return state->kind == BIND_SEQUENCE || state->kind == BIND_STACK;
}

static void without_node(Onnx__GraphProto *body, const Onnx__NodeProto *node) {
  size_t count = 0;
  for (size_t i = 0; i < body->n_node; i++)
    if (body->node[i] != node)
      body->node[count++] = body->node[i];
  body->n_node = count;
}

void loop_lists(Import *im, RunLoop *run) {
  const Onnx__GraphProto *whole = run->body;
  Arena *arena = &im->scratch;
  size_t results = (size_t)run->state_count + run->scan_count;
  Onnx__GraphProto *body = ARENA_ARRAY(arena, Onnx__GraphProto, 1);
  Binding *states = ARENA_ARRAY(arena, Binding, run->state_count + 1);
  uint32_t *outputs = ARENA_ARRAY(arena, uint32_t, results + 1), kept = 0, lists = 0;
  *body = *whole;
  body->input = ARENA_ARRAY(arena, Onnx__ValueInfoProto *, whole->n_input);
  body->output = ARENA_ARRAY(arena, Onnx__ValueInfoProto *, whole->n_output);
  body->node = ARENA_ARRAY(arena, Onnx__NodeProto *, whole->n_node + 1);
  memcpy(body->input, whole->input, 2 * sizeof *body->input);
  memcpy(body->node, whole->node, whole->n_node * sizeof *body->node);
  body->output[0] = whole->output[0];
  for (uint32_t k = 0; k < run->state_count; k++) {
    const Onnx__NodeProto *n = is_list(&run->states[k]) ? appending(whole, k) : NULL;
    if (n) { /* from the end, in reverse */
      Onnx__ValueInfoProto *row = ARENA_ARRAY(arena, Onnx__ValueInfoProto, 1);
      row->name = n->input[1];
      without_node(body, n);
      body->output[results - lists] = row;
      outputs[results - 1 - lists++] = k;
    } else {
      states[kept] = run->states[k];
      body->input[2 + kept] = whole->input[2 + k];
      body->output[1 + kept] = whole->output[1 + k];
      outputs[kept++] = k;
    }
  }
  for (uint32_t i = 0; i < run->scan_count; i++) {
    body->output[1 + kept + i] = whole->output[1 + run->state_count + i];
    outputs[kept + i] = run->state_count + i;
  }
  body->n_input = 2 + (size_t)kept;
  run->body = body;
  run->given = run->states;
  run->states = states;
  run->state_count = kept;
  run->scan_count += lists;
  run->list_count = lists;
  run->outputs = outputs;
}

/* The list with the rows that the loop appended to it. */
static void bind_list(Import *im, uint32_t output, const Binding *before, ValueId rows) {
  bool empty = before->kind == BIND_SEQUENCE && before->count == 0;
  ValueId both[] = {empty ? rows : sequence_stack(im, before), rows};
  for (uint32_t i = 1; i < ex_rank(im, rows) && !empty && import_ok(im); i++)
    if (!both[0] || ex_rank(im, both[0]) != ex_rank(im, rows) ||
        ex_dim(im, both[0], i) != ex_dim(im, rows, i))
      import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                  "the tensors in list %u before the loop and those that it appends differ in "
                  "shape",
                  output);
  ValueId stack = empty ? rows : ex_cat(im, both, 2, 0);
  out_binding(im, output, (Binding){.kind = BIND_STACK, .value = stack});
}

void loop_bind(Import *im, const RunLoop *run, const ValueId *results) {
  uint32_t count = run->state_count + run->scan_count;
  for (uint32_t i = 0; i < count && import_ok(im); i++)
    if (i + run->list_count >= count)
      bind_list(im, run->outputs[i], &run->given[run->outputs[i]], results[i]);
    else
      out(im, run->outputs[i], results[i]);
}

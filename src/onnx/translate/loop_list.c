/* Lists that a loop carries, as scripted models of torch write them. A state that is a sequence
 * before the loop, and to which each step inserts one tensor at the end, is a scan output of that
 * tensor, behind what was in it before. What follows sees a sequence that is stacked, of a length
 * that may be known only while running. A state that each step makes anew of as many tensors, as
 * those of the layers of a decoder, is a state for each of them. */
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

/* The node of the body that makes the state k of the next step; NULL: another one hands it on. */
static const Onnx__NodeProto *maker(const Onnx__GraphProto *body, uint32_t k) {
  StrView after = body->output[1 + k] ? onnx_text(body->output[1 + k]->name) : SV("");
  for (size_t i = 0; i < body->n_node && after.size; i++) {
    const Onnx__NodeProto *n = body->node[i];
    if (n->n_output == 1 && sv_eq(onnx_text(n->output[0]), after))
      return n;
  }
  return NULL;
}

/* The node by which the body appends to state k, and does nothing else with it; NULL: it does not.
 */
static const Onnx__NodeProto *appending(const Onnx__GraphProto *body, uint32_t k) {
  const Onnx__NodeProto *n = maker(body, k);
  StrView before = body->input[2 + k] ? onnx_text(body->input[2 + k]->name) : SV("");
  bool appends = n && sv_eq_str(onnx_text(n->op_type), "SequenceInsert") && n->n_input >= 2 &&
                 (n->n_input == 2 || !onnx_text(n->input[2]).size) &&
                 sv_eq(onnx_text(n->input[0]), before) && loop_reads(body, before) == 1 &&
                 loop_reads(body, onnx_text(n->output[0])) == 1;
  return appends ? n : NULL;
}

/* The node by which the body makes state k anew, of as many tensors as it has before the loop. */
static const Onnx__NodeProto *remaking(const Onnx__GraphProto *body, uint32_t k,
                                       const Binding *state) {
  const Onnx__NodeProto *n = maker(body, k);
  bool remakes = n && sv_eq_str(onnx_text(n->op_type), "SequenceConstruct") && body->input[2 + k] &&
                 state->kind == BIND_SEQUENCE && state->count && n->n_input == state->count;
  for (uint32_t i = 0; i < state->count && remakes; i++)
    remakes = state->items[i] != 0;
  return remakes ? n : NULL;
}

static bool is_list(const Binding *state) {
  return state->kind == BIND_SEQUENCE || state->kind == BIND_STACK;
}

/* The loop as it becomes. */
typedef struct ListLoop {
  Arena *arena;
  const Onnx__GraphProto *whole;
  Onnx__GraphProto *body;
  Binding *states;
  uint32_t *outputs; /* by result: the output of the node */
  uint32_t state_count, list_count;
  uint32_t *lists;                 /* the states that are appended to */
  const Onnx__NodeProto **appends; /* and by which nodes */
} ListLoop;

static ListLoop list_loop(const RunLoop *run, Arena *arena) {
  size_t most = run->state_count;
  for (uint32_t k = 0; k < run->state_count; k++)
    most += run->states[k].kind == BIND_SEQUENCE ? run->states[k].count : 0;
  ListLoop l = {.arena = arena,
                .whole = run->body,
                .body = ARENA_NEW(arena, Onnx__GraphProto),
                .states = ARENA_ARRAY(arena, Binding, most),
                .outputs = ARENA_ARRAY(arena, uint32_t, most + run->scan_count),
                .lists = ARENA_ARRAY(arena, uint32_t, run->state_count),
                .appends = ARENA_ARRAY(arena, const Onnx__NodeProto *, run->state_count)};
  *l.body = *run->body;
  l.body->input = ARENA_ARRAY(arena, Onnx__ValueInfoProto *, 2 + most);
  l.body->output = ARENA_ARRAY(arena, Onnx__ValueInfoProto *, 1 + most + run->scan_count);
  l.body->node = ARENA_ARRAY(arena, Onnx__NodeProto *, run->state_count + run->body->n_node);
  l.body->n_node = 0;
  memcpy(l.body->input, run->body->input, 2 * sizeof *l.body->input);
  l.body->output[0] = run->body->output[0];
  return l;
}

static Onnx__ValueInfoProto *named(Arena *arena, char *name) {
  Onnx__ValueInfoProto *info = ARENA_NEW(arena, Onnx__ValueInfoProto);
  onnx__value_info_proto__init(info);
  info->name = name;
  return info;
}

static void add_state(ListLoop *l, uint32_t output, Binding before, Onnx__ValueInfoProto *input,
                      Onnx__ValueInfoProto *after) {
  uint32_t k = l->state_count++;
  l->states[k] = before;
  l->outputs[k] = output;
  l->body->input[2 + k] = input;
  l->body->output[1 + k] = after;
}

/* A state for each tensor of the list, of which the body makes the list first. */
static void spread_list(ListLoop *l, uint32_t k, const Binding *state,
                        const Onnx__NodeProto *remade) {
  Onnx__ValueInfoProto *list = l->whole->input[2 + k];
  Onnx__NodeProto *make = ARENA_NEW(l->arena, Onnx__NodeProto);
  onnx__node_proto__init(make);
  make->op_type = remade->op_type;
  make->n_input = state->count;
  make->input = ARENA_ARRAY(l->arena, char *, state->count);
  make->n_output = 1;
  make->output = &list->name;
  for (uint32_t i = 0; i < state->count; i++) {
    make->input[i] = arena_printf(l->arena, "%s[%u]", list->name, i);
    add_state(l, k, (Binding){.kind = BIND_VALUE, .value = state->items[i]},
              named(l->arena, make->input[i]), named(l->arena, remade->input[i]));
  }
  l->body->node[l->body->n_node++] = make;
}

static bool is_append(const ListLoop *l, const Onnx__NodeProto *n) {
  bool is = false;
  for (uint32_t i = 0; i < l->list_count; i++)
    is |= l->appends[i] == n;
  return is;
}

/* Behind the states the rows that the body collects: of the scan outputs, and those of lists. */
static void add_rows(ListLoop *l, const RunLoop *run) {
  Onnx__ValueInfoProto **rows = l->body->output + 1 + l->state_count;
  uint32_t *outputs = l->outputs + l->state_count;
  for (uint32_t i = 0; i < run->scan_count; i++) {
    rows[i] = l->whole->output[1 + run->state_count + i];
    outputs[i] = run->state_count + i;
  }
  for (uint32_t i = 0; i < l->list_count; i++) {
    rows[run->scan_count + i] = named(l->arena, l->appends[i]->input[1]);
    outputs[run->scan_count + i] = l->lists[i];
  }
  for (size_t i = 0; i < l->whole->n_node; i++)
    if (!is_append(l, l->whole->node[i]))
      l->body->node[l->body->n_node++] = l->whole->node[i];
}

void loop_lists(Import *im, RunLoop *run) {
  ListLoop l = list_loop(run, &im->scratch);
  for (uint32_t k = 0; k < run->state_count; k++) {
    const Binding *state = &run->states[k];
    const Onnx__NodeProto *append = is_list(state) ? appending(l.whole, k) : NULL,
                          *remade = is_list(state) ? remaking(l.whole, k, state) : NULL;
    if (append) {
      l.lists[l.list_count] = k;
      l.appends[l.list_count++] = append;
    } else if (remade) {
      spread_list(&l, k, state, remade);
    } else {
      add_state(&l, k, *state, l.whole->input[2 + k], l.whole->output[1 + k]);
    }
  }
  add_rows(&l, run);
  l.body->n_input = 2 + (size_t)l.state_count;
  l.body->n_output = 1 + (size_t)l.state_count + run->scan_count + l.list_count;
  run->body = l.body;
  run->given = run->states;
  run->states = l.states;
  run->state_count = l.state_count;
  run->scan_count += l.list_count;
  run->list_count = l.list_count;
  run->outputs = l.outputs;
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
  uint32_t count = run->state_count + run->scan_count, lists = count - run->list_count, items;
  for (uint32_t i = 0; i < count && import_ok(im); i += items) {
    uint32_t output = run->outputs[i];
    items = 1;
    if (i >= lists) {
      bind_list(im, output, &run->given[output], results[i]);
    } else if (i < run->state_count && run->given[output].kind == BIND_SEQUENCE) {
      items = run->given[output].count;
      out_sequence(im, output, results + i, items);
    } else {
      out(im, output, results[i]);
    }
  }
}

/* See plan_writer.h. One KernelCall a node, in order; the arguments in the order of the
 * out-variant's schema. */
#include "pte/plan_internal.h"

#include "ir/op.h"
#include "pte/banks.h"
#include "pte/call.h"
#include "pte/plan_writer.h"
#include "pte/ranges.h"
#include "pte/schema.h"

enum { NODE_BYTES = 96 }; /* of the program, in the mean: an instruction and a tensor */

/* Ops of one kernel share its entry. */
static int32_t operator_index(PlanWriter *p, OpId op) {
  op = op_find_out(sv_from(op_row(op)->out));
  if (p->op_index[op])
    return p->op_index[op] - 1;
  StrView name, overload;
  call_name(op, &name, &overload);
  FbRef name_ref = fb_string(p->b, name), overload_ref = fb_string(p->b, overload);
  fb_table_begin(p->b);
  fb_field_ref(p->b, OPERATOR_NAME, name_ref);
  fb_field_ref(p->b, OPERATOR_OVERLOAD, overload_ref);
  p->operators[p->operator_count++] = fb_table_end(p->b);
  p->op_index[op] = (int32_t)p->operator_count;
  return (int32_t)p->operator_count - 1;
}

static bool same_place(const Graph *g, ValueId a, ValueId b) {
  uint32_t i = g->values[a].storage, k = g->values[b].storage;
  return i && k && g->storages[i].arena == g->storages[k].arena &&
         g->storages[i].offset == g->storages[k].offset;
}

/* A view that costs nothing: the result is one more tensor at the same place, and no instruction.
 * Sizes that are only known while running need the et_view call. */
static bool write_elided_view(PlanWriter *p, NodeId n) {
  const Node *node = node_cget(p->g, n);
  if (!op_has_trait(node->op, OP_VIEW) || !type_is_static(value_type(p->g, node->first_result)))
    return false;
  ValueId from = node_value(p->g, n, 0), to = node->first_result;
  if (writes_constant(&p->values, from) && !p->g->values[to].storage) {
    write_constant_view(&p->values, to, from);
    return true;
  }
  if (!same_place(p->g, from, to))
    return false;
  write_value(&p->values, to);
  return true;
}

void plan_check_written(const PlanWriter *p, NodeId n, ValueId v) {
  if (value_is_const(p->g, v))
    BUG("node %u (%s) writes a constant", n, op_row(node_cget(p->g, n)->op)->id);
  if (value_type(p->g, v)->kind == TYPE_TENSOR && !p->g->values[v].storage &&
      node_cget(p->g, n)->op != OP_ET_VIEW && !p->is_output[v])
    BUG("result %u of %s has no place in memory", v, op_row(node_cget(p->g, n)->op)->id);
}

/* The values that receive the results; returns how many were added to args. */
static uint32_t write_outs(PlanWriter *p, NodeId n, const CallShape *shape, int32_t *args) {
  const Node *node = node_cget(p->g, n);
  if (shape->in_place >= 0 && !shape->out_count) {
    ValueId self = node_value(p->g, n, (uint32_t)shape->in_place);
    plan_check_written(p, n, self);
    for (uint32_t i = 0; i < node->result_count; i++)
      write_alias(&p->values, node->first_result + i, self);
    args[0] = write_value(&p->values, self);
    return shape->trailing ? 1 : 0;
  }
  ValueId outs[SCHEMA_MAX_RESULTS];
  ValueId *members = outs;
  if (node->result_count > SCHEMA_MAX_RESULTS)
    members = ARENA_ARRAY(p->scratch, ValueId, node->result_count);
  for (uint32_t i = 0; i < node->result_count; i++) {
    members[i] = node->first_result + i;
    plan_check_written(p, n, members[i]);
  }
  if (op_schema(node->op)->result_list) {
    args[0] = args[1] = write_tensor_list(&p->values, members, node->result_count);
    return 2;
  }
  for (uint32_t i = 0; i < node->result_count; i++)
    args[i] = write_value(&p->values, members[i]);
  if (!shape->trailing)
    return node->result_count;
  args[node->result_count] = node->result_count == 1
                                 ? args[0]
                                 : write_tensor_list(&p->values, members, node->result_count);
  return node->result_count + 1;
}

FbRef plan_instruction(PlanWriter *p, PteInstructionKind kind, FbRef member) {
  fb_table_begin(p->b);
  fb_field_union(p->b, INSTRUCTION_ARGS_TYPE, (uint8_t)kind, member);
  return fb_table_end(p->b);
}

void plan_add_call(PlanWriter *p, PteInstructionKind kind, int32_t index, const int32_t *args,
                   uint32_t count) {
  FbRef vector = fb_vector_i32(p->b, args, count);
  fb_table_begin(p->b);
  fb_field_i32(p->b, CALL_INDEX, index, 0);
  fb_field_ref(p->b, CALL_ARGS, vector);
  FbRef table = plan_instruction(p, kind, fb_table_end(p->b));
  p->figures->kernel_calls += kind == PTE_KERNEL_CALL;
  p->figures->delegate_calls += kind == PTE_DELEGATE_CALL;
  POOL_PUSH(p->instructions, p->instruction_count, p->instruction_capacity,
            (PlanInstruction){.node = p->node, .table = table});
}

void plan_call(PlanWriter *p, OpId op, const int32_t *args, uint32_t count) {
  int32_t index = operator_index(p, op);
  plan_add_call(p, PTE_KERNEL_CALL, index, args, count);
}

static void write_call(PlanWriter *p, NodeId n) {
  OpId op = node_cget(p->g, n)->op;
  if (!op_row(op)->out)
    BUG("'%s' has no kernel", op_row(op)->id);
  const OpSchema *schema = op_schema(op);
  CallShape shape = call_shape(op);
  int32_t args[SCHEMA_MAX_ARGS + SCHEMA_MAX_RESULTS + 1];
  uint32_t count = 0;
  for (; count < shape.arg_count; count++)
    args[count] = write_arg(&p->values, n, shape.args[count], &schema->args[shape.args[count]]);
  count += write_outs(p, n, &shape, args + count);
  if (count != shape.boxed_count)
    BUG("%u arguments for '%s' instead of %u", count, op_row(op)->out, shape.boxed_count);
  plan_call(p, op, args, count);
}

static FbRef write_inputs(PlanWriter *p) {
  int32_t *indices = ARENA_ARRAY(p->scratch, int32_t, p->g->input_count);
  for (uint32_t i = 0; i < p->g->input_count; i++) {
    ValueId v = p->g->inputs[i];
    if (value_type(p->g, v)->kind != TYPE_TENSOR)
      BUG("input %u is not a tensor: the runtime would compare it instead of taking it", i);
    indices[i] = write_value(&p->values, v);
  }
  return fb_vector_i32(p->b, indices, p->g->input_count);
}

static FbRef write_outputs(PlanWriter *p) {
  uint32_t count = graph_output_count(p->g);
  int32_t *indices = ARENA_ARRAY(p->scratch, int32_t, count);
  for (uint32_t i = 0; i < count; i++) {
    ValueId v = graph_output(p->g, i);
    indices[i] = write_value(&p->values, v);
  }
  return fb_vector_i32(p->b, indices, count);
}

static FbRef write_chain(PlanWriter *p) {
  for (FOR_NODES(p->g, n)) {
    p->node = n;
    if (op_has_trait(node_cget(p->g, n)->op, OP_CONTROL))
      plan_control(p, n);
    else if (op_has_trait(node_cget(p->g, n)->op, OP_DELEGATE))
      plan_delegate_call(p, n);
    else if (!write_elided_view(p, n))
      write_call(p, n);
  }
  p->node = 0;
  FbRef none = fb_vector_i32(p->b, NULL, 0);
  FbRef instructions = plan_instructions(p);
  fb_table_begin(p->b);
  fb_field_ref(p->b, CHAIN_INPUTS, none);
  fb_field_ref(p->b, CHAIN_OUTPUTS, none);
  fb_field_ref(p->b, CHAIN_INSTRUCTIONS, instructions);
  return fb_table_end(p->b);
}

/* Entry 0 is a placeholder; entry k is the arena with memory_id k. */
static FbRef write_arena_sizes(PlanWriter *p) {
  uint32_t count = p->g->arena_size_count ? p->g->arena_size_count : 1;
  int64_t *sizes = ARENA_ARRAY(p->scratch, int64_t, count);
  for (uint32_t i = 1; i < count; i++) {
    sizes[i] = (int64_t)p->g->arena_sizes[i];
    p->figures->arena_bytes += p->g->arena_sizes[i];
  }
  return fb_vector_i64(p->b, sizes, count);
}

/* All of them, also those that are only seen through tensors of another size. */
static void write_states(PlanWriter *p) {
  for (uint32_t i = 0; i < p->g->state_count; i++) {
    ValueId v = p->g->states[i].value;
    if (!p->g->values[v].storage)
      BUG("state %u has no place in memory", i);
    write_value(&p->values, v);
  }
}

/* What the format has no fields for: the ranges of dims (ranges.h), banks and alignment
 * (banks.h). */
static FbRef write_container(PlanWriter *p) {
  StrBuf ranges = {0}, banks = {0};
  ranges_print(p->g, &ranges);
  banks_print(p->g, &banks);
  FbRef container = 0;
  if (ranges.size || banks.size) {
    FbRef inputs = fb_string(p->b, (StrView){ranges.data, ranges.size}),
          outputs = fb_string(p->b, (StrView){banks.data, banks.size});
    fb_table_begin(p->b);
    fb_field_ref(p->b, CONTAINER_INPUTS, inputs);
    fb_field_ref(p->b, CONTAINER_OUTPUTS, outputs);
    container = fb_table_end(p->b);
  }
  strbuf_release(&ranges);
  strbuf_release(&banks);
  return container;
}

static FbRef write_plan(PlanWriter *p) {
  write_states(p);
  FbRef inputs = write_inputs(p), chain = write_chain(p), outputs = write_outputs(p);
  FbRef chains = fb_vector_refs(p->b, &chain, 1);
  FbRef values = fb_vector_refs(p->b, p->values.values, p->values.count);
  FbRef operators = fb_vector_refs(p->b, p->operators, p->operator_count);
  FbRef delegates = fb_vector_refs(p->b, p->delegates, p->delegate_count);
  FbRef arenas = write_arena_sizes(p);
  FbRef name = fb_string(p->b, graph_name(p->g)), container = write_container(p);
  fb_table_begin(p->b);
  fb_field_ref(p->b, PLAN_NAME, name);
  fb_field_ref(p->b, PLAN_CONTAINER_META_TYPE, container);
  fb_field_ref(p->b, PLAN_VALUES, values);
  fb_field_ref(p->b, PLAN_INPUTS, inputs);
  fb_field_ref(p->b, PLAN_OUTPUTS, outputs);
  fb_field_ref(p->b, PLAN_CHAINS, chains);
  fb_field_ref(p->b, PLAN_OPERATORS, operators);
  fb_field_ref(p->b, PLAN_DELEGATES, delegates);
  fb_field_ref(p->b, PLAN_NON_CONST_BUFFER_SIZES, arenas);
  return fb_table_end(p->b);
}

static void fill_map(const PlanWriter *p, InstructionMap *map) {
  NodeId *nodes = ARENA_ARRAY(&p->g->arena, NodeId, (size_t)p->instruction_count + 1);
  for (uint32_t i = 0; i < p->instruction_count; i++)
    nodes[i] = p->instructions[i].node;
  *map = (InstructionMap){.nodes = nodes, .count = p->instruction_count};
}

Status plan_write(FlatBuilder *b, PlanData data, Graph *g, Arena *scratch, FbRef *plan) {
  if (g->level != LEVEL_EXECUTORCH)
    BUG("emitting a graph at level %s", level_name(g->level));
  PlanWriter p = {
      .b = b, .g = g, .scratch = scratch, .segments = data.segments, .figures = data.figures};
  value_writer_init(&p.values, b, data.constants, data.initial, g, scratch);
  p.values.external = data.external;
  p.is_output = ARENA_ARRAY(scratch, bool, g->value_count);
  for (uint32_t i = 0; i < graph_output_count(g); i++)
    p.is_output[graph_output(g, i)] = true;
  p.op_index = ARENA_ARRAY(scratch, int32_t, OP_COUNT);
  p.operators = ARENA_ARRAY(scratch, FbRef, OP_COUNT);
  p.delegates = ARENA_ARRAY(scratch, FbRef, g->live_nodes);
  p.delegate_index = keymap_make(scratch, g->ctx->names.seed);
  fb_expect(b, (uint64_t)g->live_nodes * NODE_BYTES);
  plan_control_begin(&p);
  *plan = write_plan(&p);
  write_check_names(&p.values);
  Status status = p.values.status;
  if (data.map)
    fill_map(&p, data.map);
  value_writer_release(&p.values);
  xfree(p.instructions);
  return status;
}

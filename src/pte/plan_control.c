/* Control flow as jumps. The runtime has one kind, JumpFalseCall, to an instruction of the same
 * chain; with a constant condition it always jumps (runtime/executor/method.cpp of ExecuTorch
 * 1.4.1).
 *
 *   if c                     loop trip, c
 *     jump unless c: else      counter = 0 + 0
 *     …                        jump unless c: end
 *     jump: end              again:
 *   else:                      more = counter < trip
 *     …                        jump unless more: end
 *   end:                       …
 *                              jump unless next c: end
 *                              counter = counter + 1
 *                              jump: again
 *                            end:
 *
 * A jump ends the call with the error InvalidProgram when its condition is neither a bool nor a
 * tensor of bools: that is what control::fail becomes, with its message as the condition. In
 * control::require two jumps lead to it or past it:
 *
 *     jump unless c: fail
 *     jump: end
 *   fail:
 *     jump unless message
 *   end:
 *
 * The number of the iteration is the counter. What markers return was copied to its place before
 * (passes/executorch/legalize_control.c): the copies and the results are one tensor, whose sizes
 * follow what is written to it. */
#include "pte/plan_internal.h"

/* --- labels --- */

static void place_label(PlanWriter *p, uint32_t label) { p->labels[label] = p->instruction_count; }

static void jump_unless(PlanWriter *p, int32_t condition, uint32_t label) {
  p->instructions = pool_reserve(p->instructions, &p->instruction_capacity,
                                 (uint64_t)p->instruction_count + 1, sizeof *p->instructions);
  p->instructions[p->instruction_count++] =
      (PlanInstruction){.node = p->node, .condition = condition, .label = label};
}

static void jump(PlanWriter *p, uint32_t label) {
  jump_unless(p, write_bool(&p->values, false), label);
}

FbRef plan_instructions(PlanWriter *p) {
  FbRef *tables = ARENA_ARRAY(p->scratch, FbRef, p->instruction_count);
  for (uint32_t i = 0; i < p->instruction_count; i++) {
    const PlanInstruction *in = &p->instructions[i];
    tables[i] = in->table;
    if (in->table)
      continue;
    fb_table_begin(p->b);
    fb_field_i32(p->b, JUMP_CONDITION, in->condition, 0);
    fb_field_i32(p->b, JUMP_DESTINATION, (int32_t)p->labels[in->label], 0);
    tables[i] = plan_instruction(p, PTE_JUMP_FALSE_CALL, fb_table_end(p->b));
  }
  return fb_vector_refs(p->b, tables, p->instruction_count);
}

/* --- values --- */

static void share_tensors(PlanWriter *p, NodeId n) {
  Graph *g = p->g;
  ValueWriter *w = &p->values;
  OpId op = node_cget(g, n)->op;
  uint32_t list = op == OP_LOOP ? 2 : op == OP_NEXT ? 1 : 0;
  for (uint32_t k = 0; k < node_list_count(g, n, list); k++) {
    ValueId operand = node_list_value(g, n, list, k), result = node_result(g, n, k);
    if (op == OP_ENDIF) {
      write_same(w, operand, result);
      write_same(w, node_list_value(g, n, 1, k), result);
      continue;
    }
    ValueId state = node_result(g, op == OP_LOOP ? n : p->regions.partner[n], 1 + k);
    write_same(w, operand, state);
    if (op == OP_NEXT)
      write_same(w, result, state);
  }
}

void plan_control_begin(PlanWriter *p) {
  NodeId at;
  const char *wrong = regions_find(p->g, p->scratch, &p->regions, &at);
  if (wrong)
    BUG("the marker %s", wrong);
  if (!p->regions.any)
    return;
  p->label_of = ARENA_ARRAY(p->scratch, uint32_t, p->g->node_count);
  for (FOR_NODES(p->g, n)) {
    OpId op = node_cget(p->g, n)->op;
    if (op == OP_ENDIF || op == OP_LOOP || op == OP_NEXT)
      share_tensors(p, n);
    p->label_of[n] = p->label_count;
    bool two = op == OP_LOOP || op == OP_REQUIRE;
    p->label_count += two ? 2 : op == OP_IF || op == OP_ELSE || op == OP_FAIL;
  }
  p->labels = ARENA_ARRAY(p->scratch, uint32_t, p->label_count + 1);
}

/* --- markers --- */

static void begin_loop(PlanWriter *p, NodeId n) {
  ValueWriter *w = &p->values;
  Graph *g = p->g;
  uint32_t again = p->label_of[n], end = again + 1;
  int32_t counter = write_value(w, node_result(g, n, 0)), zero = write_int(w, 0);
  const Arg *trip = node_arg(g, n, 0);
  plan_call(p, OP_PRIM_ADD, (const int32_t[]){zero, zero, counter}, 3);
  if (!node_absent(g, n, 1))
    jump_unless(p, write_value(w, node_value(g, n, 1)), end);
  place_label(p, again);
  if (trip->kind == ARG_NONE)
    return;
  int32_t most =
      trip->kind == ARG_INT ? write_int(w, trip->i) : write_value(w, node_value(g, n, 0));
  int32_t more = write_slot(w, PTE_BOOL);
  plan_call(p, OP_PRIM_LT, (const int32_t[]){counter, most, more}, 3);
  jump_unless(p, more, end);
}

static void end_loop(PlanWriter *p, NodeId n) {
  ValueWriter *w = &p->values;
  NodeId loop = p->regions.partner[n];
  uint32_t again = p->label_of[loop], end = again + 1;
  int32_t counter = write_value(w, node_result(p->g, loop, 0));
  if (!node_absent(p->g, n, 0))
    jump_unless(p, write_value(w, node_value(p->g, n, 0)), end);
  plan_call(p, OP_PRIM_ADD, (const int32_t[]){counter, write_int(w, 1), counter}, 3);
  jump(p, again);
  place_label(p, end);
}

/* A jump that ends the call. */
static void fail(PlanWriter *p, NodeId n, uint32_t message, uint32_t label) {
  const SchemaArg *arg = &op_schema(node_cget(p->g, n)->op)->args[message];
  jump_unless(p, write_arg(&p->values, n, message, arg), label);
  place_label(p, label);
}

static void require(PlanWriter *p, NodeId n) {
  uint32_t label = p->label_of[n], end = label + 1;
  jump_unless(p, write_value(&p->values, node_value(p->g, n, 0)), label);
  jump(p, end);
  place_label(p, label);
  fail(p, n, 1, end);
}

void plan_control(PlanWriter *p, NodeId n) {
  const Regions *r = &p->regions;
  switch ((enum Op)node_cget(p->g, n)->op) {
  case OP_IF:
    jump_unless(p, write_value(&p->values, node_value(p->g, n, 0)), p->label_of[n]);
    return;
  case OP_ELSE:
    jump(p, p->label_of[n]);
    place_label(p, p->label_of[r->partner[r->partner[n]]]);
    return;
  case OP_ENDIF:
    place_label(p, p->label_of[r->partner[r->partner[n]]]);
    return;
  case OP_LOOP:
    begin_loop(p, n);
    return;
  case OP_FAIL:
    fail(p, n, 0, p->label_of[n]);
    return;
  case OP_REQUIRE:
    require(p, n);
    return;
  default:
    end_loop(p, n);
    return;
  }
}

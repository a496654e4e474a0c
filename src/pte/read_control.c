/* Control flow of a program, read back: jumps to the markers of ir/region.h.
 *
 * Only what plan_control.c writes is recognised: an if is a jump over a part that ends with a jump
 * over another; a loop ends with a jump back, counts its iterations, and is left by jumps in front
 * of it, at its begin and at its end. Any other jump is reported.
 *
 * Values get their SSA form as the structure is walked. What a branch or a body writes is noted in
 * a journal; at its end the values are what they were before, and those written in both branches,
 * or before a loop and in it, become results of the marker. A value that was written on one way
 * only is lost: reading it is an error. */
#include "ir/region.h"
#include "ir/builder.h"
#include "pte/call.h"
#include "pte/read_internal.h"

typedef struct Range {
  uint32_t begin, end; /* instructions; end is not in it */
} Range;

/* A loop by its instructions. */
typedef struct LoopShape {
  uint32_t first, exit; /* the counter is set; what comes after the loop */
  Range body;
  int32_t counter, trip, condition, again; /* values, -1 = none */
} LoopShape;

static Status not_ours(MethodReader *r, uint32_t at, const char *what) {
  r->instruction = at;
  return read_error(r, DIAG_PTE_UNSUPPORTED, "the jump %s", what);
}

/* --- the shape of the chain --- */

static const PteInstruction *at(const MethodReader *r, uint32_t i) {
  return &r->m->instructions[i];
}

static bool is_jump(const MethodReader *r, uint32_t i) {
  return at(r, i)->kind == PTE_JUMP_FALSE_CALL;
}

/* A jump whose condition nothing writes. */
static bool is_always(const MethodReader *r, uint32_t i) {
  if (!is_jump(r, i))
    return false;
  uint32_t condition = (uint32_t)at(r, i)->args[0];
  const PteValue *value = &r->m->values[condition];
  return value->kind == PTE_BOOL && value->i == 0 && !bitset_has(&r->written, condition);
}

static bool is_call(const MethodReader *r, uint32_t i, OpId op) {
  const PteInstruction *in = at(r, i);
  return in->kind == PTE_KERNEL_CALL && in->count == 3 &&
         op_find_out(r->m->operators[in->index]) == op;
}

static bool is_number(const MethodReader *r, int32_t index, int64_t number) {
  const PteValue *value = &r->m->values[index];
  return value->kind == PTE_INT && value->i == number && !bitset_has(&r->written, (uint32_t)index);
}

static bool jumps_to(const MethodReader *r, uint32_t i, uint32_t to) {
  return is_jump(r, i) && !is_always(r, i) && (uint32_t)at(r, i)->index == to;
}

/* A jump whose condition is a text: the runtime ends the call there. */
static bool is_failure(const MethodReader *r, uint32_t i) {
  return is_jump(r, i) && r->m->values[at(r, i)->args[0]].kind == PTE_STRING;
}

/* Jumps to and past the one that ends the call, by a number of the program: those of an if have a
 * tensor. */
static bool is_requirement(const MethodReader *r, uint32_t i, uint32_t end) {
  return end - i > 2 && is_jump(r, i) && r->m->values[at(r, i)->args[0]].kind != PTE_TENSOR &&
         jumps_to(r, i, i + 2) && is_always(r, i + 1) && (uint32_t)at(r, i + 1)->index == i + 3 &&
         is_failure(r, i + 2);
}

/* Is i the call counter = a + b? */
static bool is_count(const MethodReader *r, uint32_t i, int32_t counter, bool begins) {
  if (!is_call(r, i, OP_PRIM_ADD) || at(r, i)->args[2] != counter)
    return false;
  const int32_t *args = at(r, i)->args;
  return begins ? is_number(r, args[0], 0) && is_number(r, args[1], 0)
                : args[0] == counter && is_number(r, args[1], 1);
}

/* The loop that ends with the jump back at instruction `back`. */
static bool find_loop(const MethodReader *r, uint32_t back, LoopShape *l) {
  uint32_t head = (uint32_t)at(r, back)->index;
  *l = (LoopShape){.exit = back + 1, .trip = -1, .condition = -1, .again = -1};
  if (back < head + 1 || head == 0 || !is_call(r, back - 1, OP_PRIM_ADD))
    return false;
  l->counter = at(r, back - 1)->args[2];
  l->body = (Range){head, back - 1};
  if (!is_count(r, back - 1, l->counter, false))
    return false;
  if (is_call(r, head, OP_PRIM_LT) && at(r, head)->args[0] == l->counter && head + 2 <= back - 1 &&
      jumps_to(r, head + 1, l->exit) && at(r, head + 1)->args[0] == at(r, head)->args[2]) {
    l->trip = at(r, head)->args[1];
    l->body.begin += 2;
  }
  if (l->body.end > l->body.begin && jumps_to(r, l->body.end - 1, l->exit))
    l->again = at(r, --l->body.end)->args[0];
  l->first = head - 1;
  if (l->first > 0 && jumps_to(r, l->first, l->exit))
    l->condition = at(r, l->first--)->args[0];
  return is_count(r, l->first, l->counter, true);
}

static Status find_loops(MethodReader *r, LoopShape **loops) {
  uint32_t count = r->m->instruction_count;
  for (uint32_t i = 0; i < count; i++) {
    if (!is_jump(r, i))
      continue;
    int32_t to = at(r, i)->index;
    if (to < 0 || (uint32_t)to > count)
      return not_ours(r, i, "leads out of the program");
    if ((uint32_t)to > i)
      continue;
    LoopShape *l = ARENA_NEW(r->scratch, LoopShape);
    if (!is_always(r, i) || !find_loop(r, i, l))
      return not_ours(r, i, "back does not end a loop of the known form");
    loops[l->first] = l;
  }
  return STATUS_OK;
}

/* --- what calls write --- */

/* Adds the values to a set; of delegates none, which read_delegate_inputs knows. */
static void add_written(const MethodReader *r, const PteInstruction *in, Bitset *written) {
  if (in->kind == PTE_MOVE_CALL)
    bitset_add(written, (uint32_t)in->args[1]);
  if (in->kind != PTE_KERNEL_CALL)
    return;
  OpId op = op_find_out(r->m->operators[in->index]);
  CallShape shape = call_shape(op);
  if (in->count != shape.boxed_count)
    return; /* reported when the call is read */
  const int32_t *indices = in->args + shape.arg_count;
  uint32_t count = shape.out_count;
  if (shape.in_place >= 0) {
    indices = in->args + (shape.out_count ? shape.arg_count : (uint32_t)shape.in_place);
    count = op_schema(op)->result_count;
  } else if (op_schema(op)->result_list) {
    const PteValue *list = &r->m->values[in->args[shape.arg_count]];
    indices = list->kind == PTE_TENSOR_LIST ? list->indices : NULL;
    count = indices ? list->count : 0;
  }
  for (uint32_t i = 0; i < count; i++)
    bitset_add(written, (uint32_t)indices[i]);
}

/* --- values of regions --- */

/* A value that a region has written, and what it holds at its end. */
typedef struct Written {
  uint32_t index;
  ValueId value;
} Written;

typedef struct WrittenList {
  Written *items;
  uint32_t count;
} WrittenList;

void read_note(MethodReader *r, uint32_t index, const PteTensor *place, bool is_write) {
  if (is_write)
    bitset_remove(&r->lost, index);
  if (!r->depth)
    return;
  POOL_PUSH(r->journal, r->journal_count, r->journal_capacity,
            (JournalEntry){.index = index,
                           .is_write = is_write,
                           .current = r->current[index],
                           .base = r->base[index],
                           .place = place,
                           .at_place = place ? *read_place(r, place) : 0});
}

/* Ends a region that began when the journal had `mark` entries: gives what it has written, and puts
 * back the values from before. */
static WrittenList end_region(MethodReader *r, uint32_t mark) {
  WrittenList list = {ARENA_ARRAY(r->scratch, Written, r->journal_count - mark), 0};
  for (uint32_t i = mark; i < r->journal_count; i++) {
    const JournalEntry *e = &r->journal[i];
    if (!e->is_write || bitset_has(&r->seen, e->index))
      continue;
    bitset_add(&r->seen, e->index);
    list.items[list.count++] = (Written){e->index, r->current[e->index]};
  }
  for (uint32_t i = 0; i < list.count; i++)
    bitset_remove(&r->seen, list.items[i].index);
  while (r->journal_count > mark) {
    const JournalEntry *e = &r->journal[--r->journal_count];
    r->current[e->index] = e->current;
    r->base[e->index] = e->base;
    if (e->place)
      *read_place(r, e->place) = e->at_place;
  }
  return list;
}

/* The tensor that the value holds now, 0 when it holds none that was written. */
static ValueId tensor_now(const MethodReader *r, uint32_t index) {
  bool tensor = r->m->values[index].kind == PTE_TENSOR && !r->base[index];
  return tensor && !bitset_has(&r->lost, index) ? r->current[index] : 0;
}

static NodeId add_marker(MethodReader *r, OpId op, const ArgIn *args, uint32_t count) {
  r->loc = graph_add_loc(r->g, (Loc){.op_type = intern_add(&r->g->ctx->names, op_schema(op)->full),
                                     .index = (int32_t)r->instruction});
  return graph_add_node(r->g, 0, op, args, count, 0, r->loc);
}

static Status read_condition(MethodReader *r, int32_t index, ArgIn *out) {
  ValueId v;
  *out = A_NONE;
  if (index < 0)
    return STATUS_OK;
  if (r->m->values[index].kind != PTE_TENSOR)
    return read_error(r, DIAG_PTE_UNSUPPORTED, "the condition of a jump is not a tensor");
  TRY(read_tensor(r, (uint32_t)index, &v));
  *out = A_VAL(v);
  return STATUS_OK;
}

/* --- if --- */

/* What both branches hold of the values that one of them has written, the others are lost. */
static Status join_branches(MethodReader *r, const WrittenList branches[2]) {
  uint32_t most = branches[0].count + branches[1].count, count = 0;
  uint32_t *indices = ARENA_ARRAY(r->scratch, uint32_t, most);
  ValueId *values[2] = {ARENA_ARRAY(r->scratch, ValueId, most),
                        ARENA_ARRAY(r->scratch, ValueId, most)};
  for (uint32_t k = 0; k < 2; k++)
    for (uint32_t i = 0; i < branches[k].count; i++) {
      Written w = branches[k].items[i];
      bool first = !bitset_has(&r->seen, w.index);
      if (first) {
        bitset_add(&r->seen, w.index);
        indices[count] = w.index;
        values[0][count] = values[1][count] = tensor_now(r, w.index);
        r->position[w.index] = count++;
      }
      bool tensor = r->m->values[w.index].kind == PTE_TENSOR;
      values[k][r->position[w.index]] = tensor ? w.value : 0;
    }
  uint32_t joined = 0;
  for (uint32_t i = 0; i < count; i++) {
    bitset_remove(&r->seen, indices[i]);
    bitset_add(&r->lost, indices[i]);
    if (!values[0][i] || !values[1][i])
      continue;
    indices[joined] = indices[i];
    values[0][joined] = values[0][i];
    values[1][joined++] = values[1][i];
  }
  NodeId n = add_marker(r, OP_ENDIF,
                        (const ArgIn[]){A_VALS(values[0], joined), A_VALS(values[1], joined)}, 2);
  TRY(shape_run(r->g, n));
  for (uint32_t i = 0; i < joined; i++)
    read_define(r, indices[i], node_result(r->g, n, i));
  return STATUS_OK;
}

static Status read_range(MethodReader *r, LoopShape **loops, Range range);

static Status read_region(MethodReader *r, LoopShape **loops, Range range) {
  if (r->depth == REGION_DEPTH_MAX)
    return read_error(r, DIAG_PTE_UNSUPPORTED, "jumps are nested more than %d deep",
                      REGION_DEPTH_MAX);
  r->depth++;
  Status status = read_range(r, loops, range);
  r->depth--;
  return status;
}

static Status read_if(MethodReader *r, LoopShape **loops, uint32_t i, uint32_t end,
                      uint32_t *next) {
  uint32_t to = (uint32_t)at(r, i)->index, last = to - 1;
  if (is_always(r, i) || to > end || last <= i || !is_always(r, last))
    return not_ours(r, i, "is not that of an if");
  *next = (uint32_t)at(r, last)->index;
  if (*next < to || *next > end)
    return not_ours(r, last, "is not that of an if");
  ArgIn condition;
  WrittenList branches[2];
  TRY(read_condition(r, at(r, i)->args[0], &condition));
  NodeId n = add_marker(r, OP_IF, &condition, 1);
  TRY(shape_run(r->g, n));
  for (uint32_t k = 0; k < 2; k++) {
    uint32_t mark = r->journal_count;
    TRY(read_region(r, loops, k ? (Range){to, *next} : (Range){i + 1, last}));
    branches[k] = end_region(r, mark);
    r->instruction = k ? *next : last;
    if (k == 0)
      (void)add_marker(r, OP_ELSE, NULL, 0);
  }
  return join_branches(r, branches);
}

/* --- loops --- */

/* Values that the body writes and that are there before it: the states. */
static uint32_t find_states(MethodReader *r, const LoopShape *l, uint32_t **indices) {
  Bitset body = bitset_make(r->scratch, r->m->value_count);
  uint32_t count = 0;
  for (uint32_t i = l->body.begin; i < l->body.end; i++)
    if (at(r, i)->kind == PTE_DELEGATE_CALL)
      for (uint32_t k = read_delegate_inputs(r, at(r, i)); k < at(r, i)->count; k++)
        bitset_add(&body, (uint32_t)at(r, i)->args[k]);
    else
      add_written(r, at(r, i), &body);
  *indices = ARENA_ARRAY(r->scratch, uint32_t, r->m->value_count);
  for (uint32_t v = 0; v < r->m->value_count; v++) {
    if (!bitset_has(&body, v))
      continue;
    if (tensor_now(r, v))
      (*indices)[count++] = v;
    else
      bitset_add(&r->lost, v);
  }
  return count;
}

/* The sizes of a state of dynamic shape: those that are less than their bound may change. */
static void loosen(MethodReader *r, ValueId v, const PteTensor *t) {
  const Type *type = value_type(r->g, v);
  SymInt dims[MAX_RANK];
  if (t->dynamism == PTE_STATIC || type->rank != t->rank)
    return;
  for (uint32_t i = 0; i < t->rank; i++)
    dims[i] = type->dims[i] == t->sizes[i] ? t->sizes[i]
                                           : sym_symbol(&r->g->syms, SV(""), 0, t->sizes[i], true);
  value_set_type(r->g, v,
                 graph_tensor_type(r->g, (DType)t->dtype, t->rank, dims, ORDER_CONTIGUOUS));
}

static Status begin_loop(MethodReader *r, const LoopShape *l, const uint32_t *indices,
                         uint32_t count, NodeId *loop) {
  ArgIn args[3] = {A_NONE};
  ValueId *states = ARENA_ARRAY(r->scratch, ValueId, count);
  if (l->trip >= 0)
    TRY(read_arg(r, (uint32_t)l->trip, &op_schema(OP_LOOP)->args[0], &args[0]));
  TRY(read_condition(r, l->condition, &args[1]));
  for (uint32_t i = 0; i < count; i++)
    states[i] = r->current[indices[i]];
  args[2] = A_VALS(states, count);
  *loop = add_marker(r, OP_LOOP, args, 3);
  return shape_run(r->g, *loop);
}

/* Where both branches of the jump meet again. */
static uint32_t behind_branches(const MethodReader *r, uint32_t i) {
  uint32_t to = (uint32_t)at(r, i)->index;
  return to > i + 1 && is_always(r, to - 1) ? (uint32_t)at(r, to - 1)->index : to;
}

/* The rows that every iteration adds to a tensor bound their number: the call ends with an error
 * beyond the size of the tensor. Calls of branches and of loops within this one say nothing. */
static int64_t rows_collected(const MethodReader *r, LoopShape *const *loops, const LoopShape *l) {
  int64_t least = INT64_MAX;
  for (uint32_t i = l->body.begin; i < l->body.end;) {
    uint32_t next = i + 1;
    if (loops[i])
      next = loops[i]->exit;
    else if (is_jump(r, i) && !is_failure(r, i))
      next = behind_branches(r, i);
    else if (is_call(r, i, OP_ET_COPY_INDEX) && at(r, i)->args[2] == l->counter &&
             r->m->values[at(r, i)->args[0]].kind == PTE_TENSOR &&
             r->m->values[at(r, i)->args[0]].tensor->rank)
      least = min_i64(least, r->m->values[at(r, i)->args[0]].tensor->sizes[0]);
    i = next > i ? next : i + 1;
  }
  return least;
}

static void bound_number(MethodReader *r, ValueId number, int64_t rows) {
  Graph *g = r->g;
  if (rows < 1 || sym_upper(&g->syms, value_type(g, number)->dims[0]) < rows)
    return;
  SymInt i = sym_symbol(&g->syms, SV(""), 0, rows - 1, true);
  value_set_type(g, number, graph_scalar_type(g, TYPE_INT, i, true));
}

static Status read_loop(MethodReader *r, LoopShape **loops, const LoopShape *l) {
  uint32_t *indices, count = find_states(r, l, &indices), mark = r->journal_count;
  NodeId loop, end;
  r->instruction = l->first;
  TRY(begin_loop(r, l, indices, count, &loop));
  bound_number(r, node_result(r->g, loop, 0), rows_collected(r, loops, l));
  r->depth++;
  read_define(r, (uint32_t)l->counter, node_result(r->g, loop, 0));
  for (uint32_t i = 0; i < count; i++) {
    ValueId state = node_result(r->g, loop, 1 + i);
    loosen(r, state, r->m->values[indices[i]].tensor);
    read_define(r, indices[i], state);
  }
  r->depth--;
  TRY(read_region(r, loops, l->body));
  ArgIn args[2];
  ValueId *values = ARENA_ARRAY(r->scratch, ValueId, count);
  r->instruction = l->exit - 1;
  r->depth++; /* a view for the condition is made within the loop */
  TRY(read_condition(r, l->again, &args[0]));
  r->depth--;
  for (uint32_t i = 0; i < count; i++)
    values[i] = r->current[indices[i]];
  args[1] = A_VALS(values, count);
  end = add_marker(r, OP_NEXT, args, 2);
  TRY(shape_run(r->g, end));
  WrittenList written = end_region(r, mark);
  for (uint32_t i = 0; i < written.count; i++)
    bitset_add(&r->lost, written.items[i].index);
  for (uint32_t i = 0; i < count; i++)
    read_define(r, indices[i], node_result(r->g, end, i));
  return STATUS_OK;
}

/* A marker whose arguments are the conditions of jumps. */
static Status read_failure(MethodReader *r, OpId op, const uint32_t *jumps) {
  const OpSchema *schema = op_schema(op);
  ArgIn args[2];
  for (uint32_t i = 0; i < schema->arg_count; i++)
    TRY(read_arg(r, (uint32_t)at(r, jumps[i])->args[0], &schema->args[i], &args[i]));
  (void)add_marker(r, op, args, schema->arg_count);
  return STATUS_OK;
}

static Status read_range(MethodReader *r, LoopShape **loops, Range range) {
  for (uint32_t i = range.begin; i < range.end;) {
    const LoopShape *l = loops[i];
    r->instruction = i;
    if (l && (l->exit > range.end || l->body.end > l->exit))
      return not_ours(r, l->exit - 1, "back crosses another one");
    if (l) {
      TRY(read_loop(r, loops, l));
      i = l->exit;
    } else if (is_failure(r, i)) {
      TRY(read_failure(r, OP_FAIL, (const uint32_t[]){i}));
      i++;
    } else if (is_requirement(r, i, range.end)) {
      TRY(read_failure(r, OP_REQUIRE, (const uint32_t[]){i, i + 2}));
      i += 3;
    } else if (is_jump(r, i)) {
      TRY(read_if(r, loops, i, range.end, &i));
    } else {
      TRY(read_call(r, i));
      i++;
    }
  }
  return STATUS_OK;
}

Status read_chain(MethodReader *r) {
  uint32_t count = r->m->instruction_count;
  r->written = bitset_make(r->scratch, r->m->value_count);
  r->seen = bitset_make(r->scratch, r->m->value_count);
  r->position = ARENA_ARRAY(r->scratch, uint32_t, r->m->value_count);
  LoopShape **loops = ARENA_ARRAY(r->scratch, LoopShape *, count);
  for (uint32_t i = 0; i < count; i++)
    add_written(r, at(r, i), &r->written);
  TRY(find_loops(r, loops));
  return read_range(r, loops, (Range){0, count});
}

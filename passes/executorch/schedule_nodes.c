/* Puts nodes into an order in which less memory is in use at once, as schedule.c finds it; nothing
 * is done where that is not less than in the order at hand, which is that of the model.
 *
 * Nodes that write an operand, such as a state, keep their place: what came before stays before. So
 * the values that are read stay right, and states stay whole when a call fails before it writes
 * them. Nodes that draw random numbers stay in order. Graphs with control flow, and those with more
 * nodes than the search takes, stay as they are. */
#include "passes/executorch/planner.h"
#include "passes/executorch/schedule.h"
#include "passes/pass.h"
#include "support/bitset.h"
#include "support/keymap.h"

typedef struct Pair {
  uint32_t first, second; /* positions */
} Pair;

typedef struct Scheduler {
  Graph *g;
  Arena *scratch;
  LivenessOptions live;
  uint64_t alignment;
  NodeId *nodes;       /* in order */
  uint32_t *position;  /* by node */
  ValueId *root;       /* by value: the value whose memory it shares, or itself */
  uint32_t *buffer_of; /* by root: index + 1; 0: it has no memory in the plan */
  Pair *pairs;         /* one after the other */
  uint32_t pair_count, pair_capacity;
  uint32_t *seen; /* by position: 1 + that of the node which was last paired with it */
  ScheduleNode *out;
  ScheduleBuffer *buffers;
  uint32_t count, buffer_count;
} Scheduler;

/* --- buffers --- */

/* Adds v to the buffer of its root; false when its size has no bound. */
static bool add_value(Scheduler *s, ValueId v, bool host) {
  const Type *t = value_type(s->g, v);
  ValueId root = s->root[v];
  if (t->kind != TYPE_TENSOR || host)
    return true;
  uint64_t size = type_bytes_upper(s->g, t);
  if (size > INT64_MAX / SCHEDULE_MAX_NODES / 4)
    return false;
  if (root == v) {
    s->buffers[s->buffer_count] = (ScheduleBuffer){0};
    s->buffer_of[v] = ++s->buffer_count;
  }
  if (!s->buffer_of[root])
    return true;
  ScheduleBuffer *b = &s->buffers[s->buffer_of[root] - 1];
  size = align_up(size, s->alignment);
  b->size = size > b->size ? size : b->size;
  return true;
}

/* Roots and sizes of all values; false when there is nothing to do. */
static bool find_buffers(Scheduler *s) {
  Graph *g = s->g;
  for (ValueId v = 0; v < g->value_count; v++)
    s->root[v] = v;
  for (uint32_t i = 0; i < g->input_count; i++)
    if (!add_value(s, g->inputs[i], s->live.host_inputs))
      return false;
  for (FOR_NODES(g, n)) {
    const Node *node = node_cget(g, n);
    ValueId shared = node_shared_operand(g, n);
    if (op_has_trait(node->op, OP_CONTROL))
      return false;
    s->position[n] = s->count;
    s->nodes[s->count++] = n;
    for (ValueId v = node->first_result; v < node->first_result + node->result_count; v++) {
      s->root[v] = shared ? s->root[shared] : v;
      if (!add_value(s, v, s->live.host_outputs && value_is_output(g, v)))
        return false;
    }
  }
  for (uint32_t i = 0; i < g->input_count; i++)
    if (s->buffer_of[g->inputs[i]])
      s->buffers[s->buffer_of[g->inputs[i]] - 1].given = true;
  return true;
}

/* --- what must come before what --- */

static void add_pair(Scheduler *s, uint32_t first, uint32_t second) {
  if (s->seen[first] == second + 1)
    return;
  s->seen[first] = second + 1;
  if (s->pair_count == s->pair_capacity) {
    size_t size = s->pair_capacity * sizeof *s->pairs;
    s->pair_capacity = s->pair_capacity ? s->pair_capacity * 2 : 1024;
    s->pairs = arena_grow(s->scratch, s->pairs, size, s->pair_capacity * sizeof *s->pairs);
  }
  s->pairs[s->pair_count++] = (Pair){first, second};
  s->out[second].predecessor_count++;
}

/* Whether n must keep its place: it writes, and does not only give a state its present size. */
static bool keeps_place(const Graph *g, NodeId n) {
  const Node *node = node_cget(g, n);
  if (!op_has_trait(node->op, OP_EFFECT))
    return false;
  ValueId v = node_shared_operand(g, n);
  bool sizes = node->op == OP_RESIZE_ && g->values[v].kind == VALUE_STATE;
  return !sizes || g->uses[first_use(g, v)].next;
}

/* Sizes among the arguments are found by their expression: behind the node that computes it. */
static void add_size_pair(Scheduler *s, KeyMap *computed, SymInt size, uint32_t at) {
  uint32_t *slot;
  if (sym_is_const(size))
    return;
  uint32_t first = keymap_get(computed, &size, sizeof size, &slot);
  if (first)
    add_pair(s, first - 1, at);
}

static void add_size_pairs(Scheduler *s, KeyMap *computed, uint32_t at) {
  const Graph *g = s->g;
  const Node *node = node_cget(g, s->nodes[at]);
  for (uint32_t i = 0; i < node->arg_count; i++) {
    const Arg *arg = node_arg(g, s->nodes[at], i);
    if (arg->kind == ARG_INT)
      add_size_pair(s, computed, arg->i, at);
    for (uint32_t k = 0; arg->kind == ARG_INTS && k < arg->count; k++)
      add_size_pair(s, computed, g->ints[arg->at + k], at);
  }
  for (ValueId v = node->first_result; v < node->first_result + node->result_count; v++) {
    const Type *t = value_type(g, v);
    uint32_t *slot;
    if (t->kind == TYPE_INT && t->rank == 1 && !sym_is_const(t->dims[0]) &&
        !keymap_get(computed, &t->dims[0], sizeof t->dims[0], &slot))
      *slot = at + 1;
  }
}

static void find_pairs(Scheduler *s) {
  const Graph *g = s->g;
  uint32_t kept = 0, random = 0; /* position + 1 */
  KeyMap computed = keymap_make(s->scratch, g->ctx->names.seed);
  for (uint32_t i = 0; i < s->count; i++) {
    NodeId n = s->nodes[i];
    FOR_OPERANDS(g, n, v, {
      if (v && value_def(g, v))
        add_pair(s, s->position[value_def(g, v)], i);
    })
    add_size_pairs(s, &computed, i);
    if (kept)
      add_pair(s, kept - 1, i);
    if (keeps_place(g, n)) {
      for (uint32_t k = kept; k < i; k++)
        add_pair(s, k, i);
      kept = i + 1;
    }
    if (!op_has_trait(node_cget(g, n)->op, OP_RANDOM))
      continue;
    if (random)
      add_pair(s, random - 1, i);
    random = i + 1;
  }
}

static void list_pairs(Scheduler *s) {
  uint32_t *lists = ARENA_ARRAY(s->scratch, uint32_t, s->pair_count), at = 0;
  for (uint32_t i = 0; i < s->pair_count; i++)
    s->out[s->pairs[i].first].successor_count++;
  for (uint32_t i = 0; i < s->count; i++) {
    s->out[i].successors = lists + at;
    at += s->out[i].successor_count;
    s->out[i].successor_count = 0;
  }
  for (uint32_t i = 0; i < s->pair_count; i++) {
    ScheduleNode *n = &s->out[s->pairs[i].first];
    lists[(size_t)(n->successors - lists) + n->successor_count++] = s->pairs[i].second;
  }
}

/* --- what nodes do with buffers --- */

typedef struct InBuffer {
  const Scheduler *s;
  ValueId root;
} InBuffer;

static bool lies_in_buffer(void *user, ValueId v) {
  const InBuffer *b = user;
  return b->s->root[v] == b->root;
}

/* May the first result of n take the place of `root`? */
static bool may_take(const Scheduler *s, NodeId n, ValueId root) {
  const Node *node = node_cget(s->g, n);
  InBuffer in = {s, root};
  ValueId result = node->first_result;
  return s->live.in_place && op_row(node->op)->alias && node->result_count &&
         s->root[result] == result && s->buffer_of[result] &&
         liveness_may_overwrite(s->g, n, result, lies_in_buffer, &in);
}

static void add_use(Scheduler *s, uint32_t at, ValueId root, ScheduleUse *uses, uint32_t *user) {
  uint32_t buffer = s->buffer_of[root];
  if (!buffer || user[buffer - 1] == at + 1)
    return;
  user[buffer - 1] = at + 1;
  s->buffers[buffer - 1].uses++;
  uses[s->out[at].use_count++] = (ScheduleUse){buffer - 1, may_take(s, s->nodes[at], root)};
}

static void find_uses(Scheduler *s, uint32_t at, uint32_t *user) {
  const Graph *g = s->g;
  NodeId n = s->nodes[at];
  const Node *node = node_cget(g, n);
  uint32_t operands = 0;
  FOR_OPERANDS(g, n, v, { operands += v != 0; })
  ScheduleUse *uses = ARENA_ARRAY(s->scratch, ScheduleUse, operands);
  uint32_t *makes = ARENA_ARRAY(s->scratch, uint32_t, node->result_count);
  ScheduleNode *out = &s->out[at];
  FOR_OPERANDS(g, n, v, {
    if (v)
      add_use(s, at, s->root[v], uses, user);
  })
  for (ValueId v = node->first_result; v < node->first_result + node->result_count; v++)
    if (s->root[v] == v && s->buffer_of[v])
      makes[out->define_count++] = s->buffer_of[v] - 1;
  out->uses = uses;
  out->defines = makes;
}

static void keep_outputs(Scheduler *s) {
  Bitset kept = bitset_make(s->scratch, s->buffer_count);
  for (uint32_t i = 0; i < graph_output_count(s->g); i++) {
    ValueId v = graph_output(s->g, i);
    uint32_t buffer = s->buffer_of[s->root[v]];
    if (buffer && !bitset_has(&kept, buffer - 1)) {
      bitset_add(&kept, buffer - 1);
      s->buffers[buffer - 1].uses++;
    }
  }
  for (uint32_t i = 0; i < s->buffer_count; i++)
    s->buffers[i].given &= s->buffers[i].uses > 0;
}

/* --- the pass --- */

static Status measure(Scheduler *s, uint64_t *bytes) {
  Liveness l;
  TRY(liveness_compute(s->g, s->scratch, s->live, &l));
  *bytes = liveness_bound(&l, s->alignment, s->scratch);
  return STATUS_OK;
}

/* The order of that many positions, or as it was (NULL). */
static void set_order(Scheduler *s, const uint32_t *order) {
  for (uint32_t i = 0; i < s->count; i++)
    graph_move_before(s->g, s->nodes[order ? order[i] : i], 0);
}

static Scheduler make_scheduler(PassContext *p, Graph *g, const PassOptions *o) {
  uint32_t values = g->value_count, nodes = g->live_nodes;
  return (Scheduler){.g = g,
                     .scratch = p->scratch,
                     .live = {true, o->host_inputs, o->host_outputs},
                     .alignment = o->plan_alignment ? o->plan_alignment : PLAN_ALIGNMENT,
                     .nodes = ARENA_ARRAY(p->scratch, NodeId, nodes),
                     .position = ARENA_ARRAY(p->scratch, uint32_t, g->node_count),
                     .root = ARENA_ARRAY(p->scratch, ValueId, values),
                     .buffer_of = ARENA_ARRAY(p->scratch, uint32_t, values),
                     .seen = ARENA_ARRAY(p->scratch, uint32_t, nodes),
                     .out = ARENA_ARRAY(p->scratch, ScheduleNode, nodes),
                     .buffers = ARENA_ARRAY(p->scratch, ScheduleBuffer, values)};
}

Status pass_schedule_nodes(PassContext *p, Graph *g) {
  static const PassOptions none;
  const PassOptions *o = p->options ? p->options : &none;
  const Planner *planner = o->planner ? o->planner : &builtin_planners[0];
  if (!planner->schedule || g->live_nodes > SCHEDULE_MAX_NODES)
    return STATUS_OK;
  Scheduler s = make_scheduler(p, g, o);
  if (!find_buffers(&s))
    return STATUS_OK;
  find_pairs(&s);
  list_pairs(&s);
  uint32_t *user = ARENA_ARRAY(p->scratch, uint32_t, s.buffer_count);
  for (uint32_t i = 0; i < s.count; i++)
    find_uses(&s, i, user);
  keep_outputs(&s);
  ScheduleProblem problem = {s.out, s.buffers, s.count, s.buffer_count};
  uint32_t *order = ARENA_ARRAY(p->scratch, uint32_t, s.count);
  if (!schedule_search(&problem, p->scratch, order))
    return STATUS_OK;
  uint64_t before, after;
  TRY(measure(&s, &before));
  set_order(&s, order);
  TRY(measure(&s, &after));
  if (after >= before)
    set_order(&s, NULL);
  else
    pass_count(p, "bytes saved", before - after);
  return STATUS_OK;
}

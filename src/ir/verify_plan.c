/* See verify_plan.h.
 *
 * Views are merged with what they view into one Buffer, in use from the first definition to the
 * last use; no two of them may overlap (ir/overlap.h).
 *
 * A marker's results are one buffer with its operands. What a loop uses from outside is in use
 * until the loop ends. Both branches of an if are taken for what runs one after the other, which
 * only asks for more. */
#include "ir/verify_plan.h"

#include <inttypes.h>

#include "ir/op.h"
#include "ir/overlap.h"
#include "ir/region.h"

enum { ALIGNMENT = 16 }; /* as the runtime's kernels expect */

typedef struct Buffer {
  ValueId value;     /* the first of those that share it */
  MemoryBlock block; /* from the defining node (0: before the first) to the last user */
} Buffer;

typedef struct Checker {
  const Graph *g;
  Arena arena;
  uint32_t *position;  /* by NodeId, from 1 */
  uint32_t last;       /* position behind all nodes */
  ValueId *root;       /* by ValueId: the value whose memory it is */
  uint32_t *last_use;  /* by root ValueId */
  uint32_t *last_read; /* likewise: the last node so far, whatever loops are around it */
  Buffer *buffers;     /* in order of begin */
  uint32_t count;
  Regions regions;
  uint64_t lookups; /* of constraints, still allowed: a hostile program has many of them */
  PlanFault *report;
  void *user;
} Checker;

static const Storage *storage_of(const Graph *g, ValueId v) {
  return &g->storages[g->values[v].storage];
}

/* "result 0", "input 2"; the report says of which node. */
static const char *name_of(Checker *c, ValueId v) {
  const Value *value = value_cget(c->g, v);
  bool result = value->kind == VALUE_RESULT, state = value->kind == VALUE_STATE;
  return arena_printf(&c->arena, "%s %u",
                      result  ? "result"
                      : state ? "state"
                              : "input",
                      result ? value->result : value->def);
}

static void fault(Checker *c, ValueId v, const char *format, ...) ETC_PRINTF(3, 4);
static void fault(Checker *c, ValueId v, const char *format, ...) {
  const Storage *s = storage_of(c->g, v);
  va_list args;
  va_start(args, format);
  const char *what = arena_vprintf(&c->arena, format, args);
  va_end(args);
  const char *text =
      arena_printf(&c->arena, "the place of %s (arena %u, %" PRIu64 " bytes at %" PRIu64 ") %s",
                   name_of(c, v), s->arena, s->size, s->offset, what);
  c->report(c->user, v, text);
}

/* --- which values share memory by right --- */

static ValueId root_of(Checker *c, ValueId v) {
  while (c->root[v] != v) {
    c->root[v] = c->root[c->root[v]];
    v = c->root[v];
  }
  return v;
}

static bool same_place(const Graph *g, ValueId a, ValueId b) {
  const Storage *x = storage_of(g, a), *y = storage_of(g, b);
  return g->values[a].storage && g->values[b].storage && x->arena == y->arena &&
         x->offset == y->offset;
}

/* What result may lie in the memory of: the operand of a view, with an instruction or without, and
 * the one that an op writes and returns. 0: of none. */
static ValueId sharer(const Graph *g, NodeId n, ValueId result) {
  OpId op = node_cget(g, n)->op;
  ValueId shared = node_shared_operand(g, n),
          operand = !shared && op_has_trait(op, OP_VIEW) ? node_value(g, n, 0) : shared;
  bool together =
      operand && (op == OP_ET_VIEW || same_place(g, operand, result) || !g->values[result].storage);
  return together ? operand : 0;
}

/* n uses v: until the end of each loop around n that v is not defined in. */
static void use(Checker *c, ValueId v, NodeId n) {
  ValueId root = root_of(c, v);
  uint32_t position = n == NODE_OUTPUT ? c->last : c->position[n];
  NodeId loop = region_outermost_loop(c->g, &c->regions, n,
                                      region_of_results(c->g, &c->regions, value_def(c->g, root)));
  if (loop)
    position = c->position[c->regions.partner[loop]];
  if (position > c->last_use[root])
    c->last_use[root] = position;
  if (n != NODE_OUTPUT && c->position[n] > c->last_read[root])
    c->last_read[root] = c->position[n];
}

static void join(Checker *c, ValueId v, ValueId with) {
  ValueId later = root_of(c, v), root = root_of(c, with);
  if (later == root || !same_place(c->g, v, with))
    return;
  if (c->last_use[later] > c->last_use[root])
    c->last_use[root] = c->last_use[later];
  c->root[later] = root;
}

/* Equal dims, or dims that the calls of the program only take when they are equal. */
static bool same_dim(Checker *c, SymInt a, SymInt b) {
  const Graph *g = c->g;
  if (a == b)
    return true;
  for (uint32_t i = 0; i < g->constraint_count && c->lookups > 0; i++, c->lookups--) {
    const Constraint *k = &g->constraints[i];
    if (k->kind == CONSTRAINT_EQ && ((k->lhs == a && k->rhs == b) || (k->lhs == b && k->rhs == a)))
      return true;
  }
  return false;
}

/* Whether a result with that dim has its elements where an operand has them. A result may have none
 * where nothing is known of a size that a delegate made: it is not written then. */
static bool fits_dim(Checker *c, SymInt operand, SymInt result) {
  return same_dim(c, operand, result) || (operand == 1 && sym_upper(&c->g->syms, result) <= 1);
}

/* May the kernel of n write its result over the tensor argument arg? Result and operand must also
 * agree element by element. */
static bool may_overwrite(Checker *c, NodeId n, uint32_t arg, ValueId operand) {
  const Graph *g = c->g;
  const OpSchema *s = op_schema(node_cget(g, n)->op);
  uint32_t tensor_arg = 0;
  for (uint32_t i = 0; i < arg; i++)
    tensor_arg += s->args[i].type == ST_TENSOR;
  if (s->args[arg].list || tensor_arg >= 8 ||
      !(op_row(node_cget(g, n)->op)->alias >> tensor_arg & 1))
    return false;
  const Type *a = value_type(g, operand), *b = value_type(g, node_cget(g, n)->first_result);
  bool same = a->rank == b->rank && dtype_size((DType)a->dtype) == dtype_size((DType)b->dtype);
  for (uint32_t i = 0; same && i < a->rank; i++)
    same = fits_dim(c, a->dims[i], b->dims[i]);
  return same;
}

typedef struct InMemory {
  Checker *c;
  ValueId root;
} InMemory;

static bool lies_in_memory(void *user, ValueId v) {
  const InMemory *m = user;
  return v && root_of(m->c, v) == m->root;
}

/* Operand `next` of a marker that ends a loop is written where `state` is, which nothing but what
 * writes it may read then. */
static void check_written_over(Checker *c, ValueId next, ValueId state) {
  const Graph *g = c->g;
  NodeId n = value_def(g, next);
  InMemory memory = {c, root_of(c, state)};
  if (!n || root_of(c, next) == memory.root || !same_place(g, next, state) ||
      c->last_read[memory.root] < c->position[n])
    return;
  bool allowed = c->last_read[memory.root] == c->position[n];
  OverwriteFn *overwrites = op_row(node_cget(g, n)->op)->overwrites;
  if (allowed && overwrites) {
    allowed = overwrites(g, n, g->values[next].result, lies_in_memory, &memory, &c->arena);
  } else if (allowed) {
    FOR_ARG_OPERANDS(g, n, i, v, {
      if (lies_in_memory(&memory, v))
        allowed &= may_overwrite(c, n, i, v);
    })
  }
  if (!allowed)
    fault(c, next, "is that of a state which is read then or later");
}

static void join_result(Checker *c, ValueId result, ValueId operand) {
  if (c->g->values[result].storage && !same_place(c->g, result, operand))
    fault(c, result, "is not where the operands for it are");
  join(c, result, operand);
}

/* The results of marker n, and what they are written over. */
static void join_marked(Checker *c, NodeId n) {
  const Graph *g = c->g;
  OpId op = node_cget(g, n)->op;
  uint32_t list = op == OP_LOOP ? 2 : op == OP_NEXT ? 1 : 0;
  for (uint32_t k = 0; k < node_list_count(g, n, list); k++) {
    ValueId operand = node_list_value(g, n, list, k);
    if (op == OP_LOOP)
      join_result(c, node_result(g, n, 1 + k), operand);
    if (op == OP_NEXT)
      check_written_over(c, operand, node_result(g, c->regions.partner[n], 1 + k));
    if (op == OP_NEXT)
      join(c, operand, node_result(g, c->regions.partner[n], 1 + k));
    if (op == OP_ENDIF)
      join(c, node_list_value(g, n, 1, k), operand);
    if (op != OP_LOOP)
      join_result(c, node_result(g, n, k), operand);
  }
}

static void note_operands(Checker *c, NodeId n) {
  FOR_OPERANDS(c->g, n, v, {
    if (v)
      use(c, v, n);
  })
}

/* What a loop shows to its iterations begins in front of them: not a use within the loops around.
 */
static void note_results(Checker *c, NodeId n) {
  const Node *node = node_cget(c->g, n);
  for (uint32_t i = 0; i < node->result_count; i++) {
    ValueId v = node->first_result + i;
    if (c->root[v] == v)
      c->last_use[v] = c->last_read[v] = c->position[n];
    else
      use(c, v, n);
  }
}

static void find_lifetimes(Checker *c) {
  const Graph *g = c->g;
  for (ValueId v = 0; v < g->value_count; v++)
    c->root[v] = v;
  for (FOR_NODES(g, n))
    c->position[n] = ++c->last;
  for (FOR_NODES(g, n)) {
    const Node *node = node_cget(g, n);
    for (uint32_t i = 0; i < node->result_count; i++) {
      ValueId shared = sharer(g, n, node->first_result + i);
      c->root[node->first_result + i] = shared ? root_of(c, shared) : node->first_result + i;
    }
    note_operands(c, n);
    note_results(c, n);
    if (op_has_trait(node->op, OP_CONTROL))
      join_marked(c, n);
  }
  c->last++;
  for (uint32_t i = 0; i < graph_output_count(g); i++)
    use(c, graph_output(g, i), NODE_OUTPUT);
}

/* --- the single tensor --- */

/* What needs no place: inputs and outputs, whose memory the host can provide; views of what has
 * none (constants, memory of the host), and operands written in place. */
static bool needs_place(const Graph *g, ValueId v) {
  NodeId n = value_def(g, v);
  if (!n)
    return g->values[v].kind == VALUE_STATE;
  if (value_is_output(g, v)) /* the host may provide its memory */
    return false;
  OpId op = node_cget(g, n)->op;
  if (op_has_trait(op, OP_VIEW)) {
    ValueId base = node_value(g, n, 0);
    return op != OP_ET_VIEW && base && g->values[base].storage && !value_is_const(g, base);
  }
  for (uint32_t i = 0; i < op_schema(op)->arg_count; i++)
    if (op_schema(op)->args[i].mutated)
      return false;
  return true;
}

/* Bytes that v can have at most. What a loop writes over its state is kept to the state's type;
 * where the runtime keeps it to its place (Storage.enforced), there is no other bound. */
static uint64_t bytes_of(const Checker *c, ValueId v) {
  const Graph *g = c->g;
  const Type *t = value_type(g, v);
  if (type_is_static(t))
    return type_bytes_upper(g, t);
  if (storage_of(g, v)->enforced)
    return 0;
  for (UseId u = c->regions.any ? first_use(g, v) : 0; u; u = g->uses[u].next) {
    NodeId n = g->uses[u].node;
    const Arg *list = node_cget(g, n)->op == OP_NEXT ? node_arg(g, n, 1) : NULL;
    if (list && u >= list->at && u - list->at < list->count)
      return type_bytes_upper(
          g, value_type(g, node_result(g, c->regions.partner[n], 1 + u - list->at)));
  }
  return type_bytes_upper(g, t);
}

static void check_place(Checker *c, ValueId v) {
  const Graph *g = c->g;
  uint32_t kind = g->values[v].kind;
  if (value_type(g, v)->kind != TYPE_TENSOR || kind == VALUE_CONST || kind == VALUE_UNUSED)
    return;
  if (!g->values[v].storage) {
    if (needs_place(g, v))
      c->report(c->user, v, arena_printf(&c->arena, "%s has no place in memory", name_of(c, v)));
    return;
  }
  const Storage *s = storage_of(g, v);
  uint64_t end, bytes = bytes_of(c, v);
  if (s->arena == 0 || s->arena >= g->arena_size_count)
    fault(c, v, "is in an arena that the program does not have");
  else if (!add_u64(s->offset, s->size, &end) || end > g->arena_sizes[s->arena])
    fault(c, v, "reaches beyond its arena");
  if (bytes > s->size)
    fault(c, v, "is too small for its type, of %" PRIu64 " bytes", bytes);
  if (s->offset % ALIGNMENT)
    fault(c, v, "is not aligned to %d bytes", ALIGNMENT);
}

/* --- pairs --- */

static void add_buffer(Checker *c, ValueId v, uint32_t begin, uint32_t end, const uint64_t *size) {
  const Storage *s = storage_of(c->g, v);
  if (size[v])
    c->buffers[c->count++] = (Buffer){v, {s->offset, size[v], s->arena, begin, end}};
}

/* Buffers of nonzero size, one for each root, in order of time. */
static void make_buffers(Checker *c) {
  const Graph *g = c->g;
  uint64_t *size = ARENA_ARRAY(&c->arena, uint64_t, g->value_count);
  for (ValueId v = 1; v < g->value_count; v++) {
    ValueId root = root_of(c, v);
    uint32_t kind = g->values[v].kind;
    if (kind != VALUE_UNUSED && kind != VALUE_CONST && g->values[v].storage &&
        storage_of(g, v)->size > size[root])
      size[root] = storage_of(g, v)->size;
  }
  c->buffers = ARENA_ARRAY(&c->arena, Buffer, g->value_count);
  for (uint32_t i = 0; i < g->input_count; i++)
    add_buffer(c, g->inputs[i], 0, c->last_use[g->inputs[i]], size);
  for (uint32_t i = 0; i < g->state_count; i++) /* in use before, while and after a call */
    add_buffer(c, g->states[i].value, 0, c->last, size);
  for (FOR_NODES(g, n)) {
    const Node *node = node_cget(g, n);
    for (ValueId v = node->first_result; v < node->first_result + node->result_count; v++)
      if (c->root[v] == v)
        add_buffer(c, v, c->position[n], c->last_use[v], size);
  }
}

/* --- in-place calls --- */

/* The one operand whose memory the first result of n takes over by right, as a buffer + 1, or 0.
 * Every use of that memory by the call must be one that the kernel can overwrite. */
static uint32_t taken_over(Checker *c, const uint32_t *buffer_of, NodeId n) {
  const Graph *g = c->g;
  const Node *node = node_cget(g, n);
  if (!node->result_count || !g->values[node->first_result].storage)
    return 0;
  uint32_t found = 0;
  bool allowed = true;
  FOR_ARG_OPERANDS(g, n, i, v, {
    if (!v || !same_place(g, v, node->first_result))
      continue;
    uint32_t buffer = buffer_of[root_of(c, v)];
    if (!buffer || c->buffers[buffer - 1].block.end != c->position[n])
      continue;
    found = buffer;
    allowed &= may_overwrite(c, n, i, v);
  })
  return allowed ? found : 0;
}

/* A buffer that is taken over ends before the call, any other with the call that uses it last. */
static void end_taken_over(Checker *c) {
  uint32_t *buffer_of = ARENA_ARRAY(&c->arena, uint32_t, c->g->value_count); /* by root, + 1 */
  for (uint32_t i = 0; i < c->count; i++)
    buffer_of[c->buffers[i].value] = i + 1;
  for (FOR_NODES(c->g, n)) {
    uint32_t over = taken_over(c, buffer_of, n);
    if (over)
      c->buffers[over - 1].block.end--;
  }
}

static void report_overlap(void *user, uint32_t buffer, uint32_t with) {
  Checker *c = user;
  const Buffer *b = &c->buffers[buffer], *other = &c->buffers[with];
  NodeId def = value_def(c->g, other->value);
  const char *name = name_of(c, other->value);
  if (def)
    name = arena_printf(&c->arena, "%s of " SV_FMT, name,
                        SV_ARG(op_schema(node_cget(c->g, def)->op)->full));
  fault(c, b->value, "overlaps that of %s (%" PRIu64 " bytes at %" PRIu64 "), still in use", name,
        other->block.size, other->block.offset);
}

static void check_overlaps(Checker *c) {
  MemoryBlock *blocks = ARENA_ARRAY(&c->arena, MemoryBlock, c->count);
  for (uint32_t i = 0; i < c->count; i++)
    blocks[i] = c->buffers[i].block;
  overlap_find(blocks, c->count, c->last + 1, &c->arena, report_overlap, c);
}

void verify_plan(const Graph *g, PlanFault *report, void *user) {
  Checker c = {.g = g, .lookups = 1 << 24, .report = report, .user = user};
  NodeId at;
  if (!regions_find(g, &c.arena, &c.regions, &at)) {
    c.position = ARENA_ARRAY(&c.arena, uint32_t, g->node_count);
    c.root = ARENA_ARRAY(&c.arena, ValueId, g->value_count);
    c.last_use = ARENA_ARRAY(&c.arena, uint32_t, g->value_count);
    c.last_read = ARENA_ARRAY(&c.arena, uint32_t, g->value_count);
    find_lifetimes(&c);
    for (ValueId v = 1; v < g->value_count; v++)
      check_place(&c, v);
    make_buffers(&c);
    end_taken_over(&c);
    check_overlaps(&c);
  }
  arena_release(&c.arena);
}

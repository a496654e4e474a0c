/* Checks of the memory plan: each place exists, is large enough, and no two values that are live at
 * the same time overlap, except where one is a view of the other or an op may write over its
 * operand.
 *
 * Values that share a place that way form a group; the times in which a group holds something are
 * its segments, no two of which may overlap (overlap.h).
 *
 * Control flow: both branches of an if are taken for what runs one after the other, which only asks
 * for more. What a loop uses from outside is live until the loop ends; its states are live from
 * iteration to iteration because a marker's results lie where its operands do. */
#include "ir/verify_plan.h"

#include "ir/overlap.h"
#include "ir/region.h"

#define NONE UINT32_MAX

typedef struct Segment {
  uint32_t begin, end; /* positions of nodes, inclusive */
  uint32_t storage, group;
  ValueId value; /* the first */
  uint64_t size;
} Segment;

typedef struct Plan {
  const Graph *g;
  const uint32_t *position;
  uint32_t end; /* position after the last node */
  Arena *arena;
  PlanFault *report;
  void *user;
  uint32_t *group;   /* by storage: parent of the union-find forest */
  uint32_t *current; /* by group: its latest segment, NONE */
  Segment *segments;
  uint32_t count;
  Regions regions;
} Plan;

/* --- what a node may share --- */

static uint32_t group_of(Plan *p, uint32_t storage) {
  while (p->group[storage] != storage)
    storage = p->group[storage] = p->group[p->group[storage]];
  return storage;
}

static void group_join(Plan *p, uint32_t a, uint32_t b) {
  uint32_t x = group_of(p, a), y = group_of(p, b);
  if (x == y)
    return;
  uint32_t s = p->current[x], t = p->current[y];
  if (s == NONE || (t != NONE && p->segments[t].end > p->segments[s].end))
    p->current[x] = t;
  p->group[y] = x;
}

static bool same_place(const Graph *g, uint32_t a, uint32_t b) {
  return a && b && g->storages[a].arena == g->storages[b].arena &&
         g->storages[a].offset == g->storages[b].offset;
}

typedef enum Sharing { SHARE_NOT, SHARE_WRITE_OVER, SHARE_BYTES } Sharing;

/* How the results of node n may share the place of tensor argument `tensor` (counted among the
 * tensor arguments), which is argument i. */
static Sharing may_share(const Graph *g, NodeId n, uint32_t i, uint32_t tensor) {
  OpId op = node_cget(g, n)->op;
  if ((op_has_trait(op, OP_VIEW) && tensor == 0) || op_schema(op)->args[i].mutated)
    return SHARE_BYTES;
  return tensor < 8 && (op_row(op)->alias >> tensor & 1) ? SHARE_WRITE_OVER : SHARE_NOT;
}

/* Joins the group of result storage r with those of operands at the same place, where that is
 * allowed. */
static Sharing share_with_operands(Plan *p, NodeId n, uint32_t r) {
  const Graph *g = p->g;
  const OpSchema *schema = op_schema(node_cget(g, n)->op);
  Sharing best = SHARE_NOT;
  for (uint32_t i = 0, tensor = 0; i < schema->arg_count; i++) {
    if (schema->args[i].type != ST_TENSOR)
      continue;
    uint32_t k = tensor++;
    if (node_arg(g, n, i)->kind != ARG_VALUE)
      continue;
    ValueId v = node_value(g, n, i);
    Sharing sharing = may_share(g, n, i, k);
    if (!v || sharing == SHARE_NOT || !same_place(g, r, value_cget(g, v)->storage))
      continue;
    group_join(p, r, value_cget(g, v)->storage);
    best = sharing > best ? sharing : best;
  }
  return best;
}

/* --- markers --- */

static Sharing share_with(Plan *p, uint32_t storage, ValueId v, Sharing how) {
  if (!same_place(p->g, storage, value_cget(p->g, v)->storage))
    return SHARE_NOT;
  group_join(p, storage, value_cget(p->g, v)->storage);
  return how;
}

/* Result i of a marker, which must lie where its operands do. */
static Sharing share_with_marked(Plan *p, ValueId v) {
  const Graph *g = p->g;
  const Value *value = value_cget(g, v);
  NodeId n = value->def;
  OpId op = node_cget(g, n)->op;
  uint32_t first = op == OP_LOOP ? 1 : 0, list = op == OP_LOOP ? 2 : op == OP_NEXT ? 1 : 0;
  Sharing sharing = share_with(p, value->storage,
                               node_list_value(g, n, list, value->result - first), SHARE_BYTES);
  if (op == OP_ENDIF && sharing != SHARE_NOT)
    sharing = share_with(p, value->storage, node_list_value(g, n, 1, value->result), SHARE_BYTES);
  if (sharing == SHARE_NOT)
    p->report(p->user, n, "a result does not lie where the operands for it are");
  return sharing;
}

/* What v is written over as operand of a marker: the value of the other branch, or the state that
 * no one reads any more; 0 when it is no such operand. */
static ValueId written_over(const Plan *p, ValueId v, Sharing *how) {
  const Graph *g = p->g;
  for (UseId u = p->regions.any ? first_use(g, v) : 0; u; u = g->uses[u].next) {
    NodeId n = g->uses[u].node;
    OpId op = node_cget(g, n)->op;
    if (op != OP_ENDIF && op != OP_NEXT)
      continue;
    const Arg *list = node_arg(g, n, 1);
    if (u < list->at || u - list->at >= list->count)
      continue;
    *how = op == OP_ENDIF ? SHARE_BYTES : SHARE_WRITE_OVER;
    return op == OP_ENDIF ? node_list_value(g, n, 0, u - list->at)
                          : node_result(g, p->regions.partner[n], 1 + u - list->at);
  }
  return 0;
}

static bool reads_place(const Graph *g, NodeId n, uint32_t storage) {
  FOR_OPERANDS(g, n, v, {
    if (v && same_place(g, storage, value_cget(g, v)->storage))
      return true;
  })
  return false;
}

static Sharing sharing_of(Plan *p, ValueId v) {
  NodeId n = value_def(p->g, v);
  if (!n)
    return SHARE_NOT;
  if (op_has_trait(node_cget(p->g, n)->op, OP_CONTROL))
    return share_with_marked(p, v);
  uint32_t storage = value_cget(p->g, v)->storage;
  Sharing a = share_with_operands(p, n, storage), b = SHARE_NOT;
  ValueId over = written_over(p, v, &b);
  if (over && over != v) /* whether a delegate may, its code says (pte/verify_plan.c) */
    b = a == SHARE_NOT && !op_has_trait(node_cget(p->g, n)->op, OP_DELEGATE) &&
                reads_place(p->g, n, storage)
            ? SHARE_NOT
            : share_with(p, storage, over, b);
  return a > b ? a : b;
}

/* --- places --- */

static void place_fault(Plan *p, ValueId v, const char *what) {
  const Value *value = value_cget(p->g, v);
  const Storage *s = &p->g->storages[value->storage];
  bool result = value->kind == VALUE_RESULT;
  const char *text = arena_printf(p->arena, "the place of %s %u (arena %u, %llu bytes at %llu) %s",
                                  result                       ? "result"
                                  : value->kind == VALUE_STATE ? "state"
                                                               : "input",
                                  result ? value->result : value->def, s->arena,
                                  (unsigned long long)s->size, (unsigned long long)s->offset, what);
  p->report(p->user, value_def(p->g, v), text);
}

static bool place_exists(Plan *p, ValueId v) {
  const Graph *g = p->g;
  const Storage *s = &g->storages[value_cget(g, v)->storage];
  Sharing how = SHARE_NOT;
  ValueId over = written_over(p, v, &how); /* a state has its own bound, and is kept to it */
  bool bounded = over && how == SHARE_WRITE_OVER;
  uint64_t end, bytes = type_bytes_upper(g, value_type(g, bounded ? over : v));
  if (s->arena == 0 || s->arena >= g->arena_size_count)
    place_fault(p, v, "is in an arena that the program does not have");
  else if (s->offset % 16)
    place_fault(p, v, "is not aligned to 16 bytes");
  else if (!add_u64(s->offset, s->size, &end) || end > g->arena_sizes[s->arena])
    place_fault(p, v, "reaches beyond its arena");
  else if (bytes > s->size && !(s->enforced && !type_is_static(value_type(g, v))))
    place_fault(p, v, "is smaller than its type");
  else
    return true;
  return false;
}

static bool is_output(const Graph *g, ValueId v) {
  for (UseId u = first_use(g, v); u; u = g->uses[u].next)
    if (g->uses[u].node == NODE_OUTPUT)
      return true;
  return false;
}

/* What needs no place: inputs and outputs, whose memory the host can provide; views of what has
 * none (constants, memory of the host), and operands written in place. */
static bool needs_place(const Graph *g, ValueId v) {
  NodeId n = value_def(g, v);
  if (value_type(g, v)->kind != TYPE_TENSOR)
    return false;
  if (!n)
    return value_cget(g, v)->kind == VALUE_STATE;
  if (is_output(g, v))
    return false;
  OpId op = node_cget(g, n)->op;
  if (op_has_trait(op, OP_VIEW)) {
    ValueId base = node_value(g, n, 0);
    return op != OP_ET_VIEW && base && value_cget(g, base)->storage && !value_is_const(g, base);
  }
  for (uint32_t i = 0; i < op_schema(op)->arg_count; i++)
    if (op_schema(op)->args[i].mutated)
      return false;
  return true;
}

/* --- segments --- */

static uint32_t last_use(const Plan *p, ValueId v, uint32_t begin) {
  uint32_t end = begin;
  for (UseId u = first_use(p->g, v); u; u = p->g->uses[u].next) {
    NodeId n = p->g->uses[u].node;
    uint32_t at = n == NODE_OUTPUT ? p->end : p->position[n];
    NodeId scope = p->regions.any && n != NODE_OUTPUT ? p->regions.scope[n] : 0;
    for (; scope; scope = p->regions.scope[scope])
      if (node_cget(p->g, scope)->op == OP_LOOP && p->position[scope] > begin)
        at = p->position[p->regions.partner[scope]];
    end = at > end ? at : end;
  }
  return end;
}

static void report_placeless(Plan *p, ValueId v) {
  NodeId n = value_def(p->g, v);
  p->report(p->user, n,
            n                                          ? "a result has no place in memory"
            : value_cget(p->g, v)->kind == VALUE_STATE ? "a state has no place in memory"
                                                       : "an input has no place in memory");
}

static void add_value(Plan *p, ValueId v) {
  const Graph *g = p->g;
  uint32_t storage = value_cget(g, v)->storage;
  NodeId n = value_def(g, v);
  if (!storage && needs_place(g, v))
    report_placeless(p, v);
  if (!storage)
    return;
  if (!place_exists(p, v) || g->storages[storage].size == 0) /* no bytes: nothing to overlap */
    return;
  bool kept = g->values[v].kind == VALUE_STATE; /* in use at all times */
  uint32_t begin = n ? p->position[n] : 0, end = kept ? p->end : last_use(p, v, begin);
  Sharing sharing = sharing_of(p, v);
  uint32_t group = group_of(p, storage), latest = p->current[group];
  if (latest == NONE || p->segments[latest].end < begin) {
    p->current[group] = p->count;
    p->segments[p->count++] = (Segment){.begin = begin,
                                        .end = end,
                                        .storage = storage,
                                        .group = group,
                                        .value = v,
                                        .size = g->storages[storage].size};
    return;
  }
  Segment *s = &p->segments[latest];
  if (sharing == SHARE_NOT)
    place_fault(p, v, "holds a value that is still live");
  else if (sharing == SHARE_WRITE_OVER && s->end > begin)
    place_fault(p, v, "is that of an operand which is used later");
  s->end = end > s->end ? end : s->end;
  s->size = g->storages[storage].size > s->size ? g->storages[storage].size : s->size;
}

static void add_values(Plan *p) {
  const Graph *g = p->g;
  for (uint32_t i = 0; i < g->input_count; i++)
    add_value(p, g->inputs[i]);
  for (uint32_t i = 0; i < g->state_count; i++)
    add_value(p, g->states[i].value);
  for (FOR_NODES(g, n))
    for (uint32_t i = 0; i < node_cget(g, n)->result_count; i++)
      add_value(p, node_result(g, n, i));
}

/* --- overlaps --- */

static void report_overlap(void *user, uint32_t segment, uint32_t with) {
  Plan *p = user;
  const Segment *s = &p->segments[segment], *other = &p->segments[with];
  NodeId def = value_def(p->g, other->value);
  bool state = value_cget(p->g, other->value)->kind == VALUE_STATE;
  const char *what = def     ? op_row(node_cget(p->g, def)->op)->schema
                     : state ? "a state"
                             : "an input";
  int size = (int)strcspn(what, "(");
  place_fault(p, s->value,
              arena_printf(p->arena, "overlaps that of %.*s (%llu bytes at %llu), which is live",
                           size, what, (unsigned long long)other->size,
                           (unsigned long long)p->g->storages[other->storage].offset));
}

static void check_overlaps(Plan *p) {
  MemoryBlock *blocks = ARENA_ARRAY(p->arena, MemoryBlock, p->count);
  for (uint32_t i = 0; i < p->count; i++) {
    const Segment *s = &p->segments[i];
    const Storage *storage = &p->g->storages[s->storage];
    blocks[i] = (MemoryBlock){storage->offset, s->size, storage->arena, s->begin, s->end};
  }
  overlap_find(blocks, p->count, p->end + 1, p->arena, report_overlap, p);
}

void verify_plan(const Graph *g, const uint32_t *position, Arena *arena, PlanFault *report,
                 void *user) {
  Plan p = {.g = g, .position = position, .arena = arena, .report = report, .user = user};
  NodeId at;
  if (regions_find(g, arena, &p.regions, &at))
    return; /* reported before */
  p.end = g->live_nodes + 1;
  p.group = ARENA_ARRAY(arena, uint32_t, g->storage_count);
  p.current = ARENA_ARRAY(arena, uint32_t, g->storage_count);
  p.segments = ARENA_ARRAY(arena, Segment, g->value_count);
  for (uint32_t i = 0; i < g->storage_count; i++) {
    p.group[i] = i;
    p.current[i] = NONE;
  }
  add_values(&p);
  check_overlaps(&p);
}

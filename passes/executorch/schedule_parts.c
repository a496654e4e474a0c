/* See schedule.h. Where one node comes before or after each of the others, in any order, what runs
 * up to it and what runs behind it can be ordered on their own: the peak of the whole is the
 * greatest of the parts. Networks have such a node in nearly every layer, so parts are short, and
 * few of them have the peak. */
#include "passes/executorch/schedule.h"

#include <stdlib.h>

/* Nodes of positions from `begin` on. */
typedef struct Part {
  ScheduleProblem problem;
  uint32_t begin;
  uint64_t peak; /* in the order at hand */
} Part;

typedef struct Parts {
  const ScheduleProblem *p;
  Arena *scratch;
  Part *at;
  uint32_t count;
  /* Up to the parts that were made: */
  uint32_t *left; /* by buffer: uses to come */
  bool *made;     /* by buffer */
  uint64_t live;
  /* Of the part that is made: */
  ScheduleBuffer *buffers;
  uint32_t *local;  /* by buffer of the whole: its index in the part + 1 */
  uint32_t *global; /* and the other way round */
} Parts;

/* A node that reads nothing and waits for none would only take memory earlier if it ran earlier. */
static bool is_late(const ScheduleNode *n) {
  return n->predecessor_count == 0 && n->use_count == 0 && n->successor_count;
}

/* By position i: do all that run before lead to i, step by step, and does i lead to all that run
 * behind it? So it is when none before it has all its successors behind i, and none behind it all
 * its predecessors before i. */
static bool *find_cuts(const ScheduleProblem *p, Arena *scratch) {
  uint32_t n = p->node_count, most = 0, least = UINT32_MAX;
  bool *cut = ARENA_ARRAY(scratch, bool, n);
  uint32_t *last = ARENA_ARRAY(scratch, uint32_t, n); /* by node: its last predecessor + 1 */
  for (uint32_t i = 0; i < n; i++) {
    const ScheduleNode *node = &p->nodes[i];
    uint32_t next = UINT32_MAX;
    cut[i] = most <= i;
    for (uint32_t k = 0; k < node->successor_count; k++) {
      next = node->successors[k] < next ? node->successors[k] : next;
      if (!is_late(node))
        last[node->successors[k]] = i + 1;
    }
    most = next > most ? next : most;
  }
  for (uint32_t i = n; i-- > 0;) {
    cut[i] &= least > i;
    if (!is_late(&p->nodes[i]))
      least = last[i] < least ? last[i] : least;
  }
  return cut;
}

/* --- a part --- */

static uint32_t local_buffer(Parts *s, ScheduleProblem *part, uint32_t buffer) {
  if (!s->local[buffer]) {
    uint64_t size = s->p->buffers[buffer].size;
    part->always -= s->made[buffer] ? size : 0;
    s->buffers[part->buffer_count] = (ScheduleBuffer){.size = size, .given = s->made[buffer]};
    s->global[part->buffer_count] = buffer;
    s->local[buffer] = ++part->buffer_count;
  }
  return s->local[buffer] - 1;
}

static void copy_node(Parts *s, ScheduleProblem *part, ScheduleNode *to, const ScheduleNode *from) {
  uint32_t begin = s->at[s->count].begin, end = begin + part->node_count;
  uint32_t *successors = ARENA_ARRAY(s->scratch, uint32_t, from->successor_count),
           *defines = ARENA_ARRAY(s->scratch, uint32_t, from->define_count);
  ScheduleUse *uses = ARENA_ARRAY(s->scratch, ScheduleUse, from->use_count);
  for (uint32_t i = 0; i < from->use_count; i++) {
    uses[i] = from->uses[i];
    uses[i].buffer = local_buffer(s, part, uses[i].buffer);
    s->buffers[uses[i].buffer].uses++;
  }
  for (uint32_t i = 0; i < from->define_count; i++)
    defines[i] = local_buffer(s, part, from->defines[i]);
  to->successors = successors;
  to->uses = uses;
  to->defines = defines;
  to->use_count = from->use_count;
  to->define_count = from->define_count;
  for (uint32_t i = 0; i < from->successor_count; i++)
    if (from->successors[i] < end)
      successors[to->successor_count++] = from->successors[i] - begin;
}

/* What is in use behind the part has one use more there. */
static void end_part(Parts *s, const ScheduleProblem *part) {
  for (uint32_t i = 0; i < part->buffer_count; i++) {
    uint32_t buffer = s->global[i];
    s->left[buffer] -= s->buffers[i].uses;
    s->live -= s->buffers[i].given ? s->buffers[i].size : 0;
    if (s->left[buffer]) {
      s->live += s->buffers[i].size;
      s->buffers[i].uses++;
    }
    s->made[buffer] = true;
    s->local[buffer] = 0;
  }
}

static void make_part(Parts *s, uint32_t begin, uint32_t end) {
  const ScheduleNode *nodes = s->p->nodes + begin;
  uint32_t count = end - begin, buffers = 0;
  ScheduleNode *copies = ARENA_ARRAY(s->scratch, ScheduleNode, count);
  for (uint32_t i = 0; i < count; i++)
    buffers += nodes[i].use_count + nodes[i].define_count;
  s->buffers = ARENA_ARRAY(s->scratch, ScheduleBuffer, buffers);
  Part *part = &s->at[s->count];
  *part = (Part){{copies, s->buffers, .node_count = count, .always = s->live}, .begin = begin};
  for (uint32_t i = 0; i < count; i++)
    copy_node(s, &part->problem, &copies[i], &nodes[i]);
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < copies[i].successor_count; k++)
      copies[copies[i].successors[k]].predecessor_count++;
  end_part(s, &part->problem);
  s->count++;
}

static Parts make_parts(const ScheduleProblem *p, uint32_t *order, Arena *scratch) {
  const bool *cut = find_cuts(p, scratch);
  Parts s = {.p = p,
             .scratch = scratch,
             .at = ARENA_ARRAY(scratch, Part, p->node_count),
             .left = ARENA_ARRAY(scratch, uint32_t, p->buffer_count),
             .made = ARENA_ARRAY(scratch, bool, p->buffer_count),
             .local = ARENA_ARRAY(scratch, uint32_t, p->buffer_count),
             .global = ARENA_ARRAY(scratch, uint32_t, p->buffer_count),
             .live = p->always};
  for (uint32_t i = 0; i < p->buffer_count; i++) {
    s.left[i] = p->buffers[i].uses;
    s.made[i] = p->buffers[i].given;
    s.live += s.made[i] ? p->buffers[i].size : 0;
  }
  for (uint32_t i = 0, begin = 0; i < p->node_count; i++) {
    order[i] = i;
    if (!cut[i] && i + 1 < p->node_count)
      continue;
    make_part(&s, begin, i + 1);
    s.at[s.count - 1].peak = schedule_peak(&s.at[s.count - 1].problem, order, scratch);
    begin = i + 1;
  }
  return s;
}

/* --- all of them --- */

/* The greatest peak first. */
static int compare_parts(const void *a, const void *b) {
  const Part *x = a, *y = b;
  int by_peak = ORDER(y->peak, x->peak);
  return by_peak ? by_peak : ORDER(x->begin, y->begin);
}

bool schedule_search(const ScheduleProblem *p, Arena *scratch, uint32_t *order) {
  Parts s = make_parts(p, order, scratch);
  uint64_t least = 0, work = 0;
  bool better = false;
  for (uint32_t i = 0; i < s.count; i++) {
    uint64_t bound = schedule_bound(&s.at[i].problem);
    least = bound > least ? bound : least;
  }
  qsort(s.at, s.count, sizeof *s.at, compare_parts);
  for (uint32_t i = 0; i < s.count && s.at[i].peak > least; i++) {
    const Part *part = &s.at[i];
    uint32_t *found = ARENA_ARRAY(scratch, uint32_t, part->problem.node_count);
    if (!schedule_search_whole(&part->problem, least, scratch, found, &work))
      break;
    uint64_t peak = schedule_peak(&part->problem, found, scratch);
    least = peak > least ? peak : least;
    better = true;
    for (uint32_t k = 0; k < part->problem.node_count; k++)
      order[part->begin + k] = part->begin + found[k];
  }
  return better;
}

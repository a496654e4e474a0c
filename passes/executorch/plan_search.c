/* See plan_search.h.
 *
 * After Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
 * Learning" (ASPLOS 2023). Time is cut into sections: the largest sets of buffers that are in use
 * together. Buffers are placed from the bottom of the arena to its top, each directly upon those
 * placed before that it meets, in order of offset and, where offsets are equal, of rank: each plan
 * without needless gaps is met once. A branch ends when
 * - a section cannot hold what is left of it: of its unplaced buffers, those that cannot begin
 *   below some offset must fit between there and the capacity;
 * - it would leave a gap that one of the unplaced buffers fits into;
 * - the buffer tried is equal to one of lower rank that is not placed yet.
 * A buffer that nothing unplaced meets is placed once: another place for it changes nothing. Where
 * no unplaced buffer reaches over the border of two sections, both sides are solved on their own.
 *
 * Several rankings are tried in turn, with limits that grow: often one finds quickly what the
 * others do not. Each is tried as it is, and so that sides solved on their own are ranked anew by
 * what is left in their sections. That nothing fits is often a matter of few sections, while the
 * search gets lost in all the ways to place the others: windows of sections are tried alone, too.
 */
#include "passes/executorch/plan_search.h"

#include <stdlib.h>

enum {
  MAX_BUFFERS = 2048,
  RANKINGS = 4,
  WAYS = 2 * RANKINGS,
  FIRST_LIMIT = 256, /* work of the first attempt for each buffer */
  FIRST_WINDOW = 4   /* sections */
};

typedef struct Buffer {
  uint64_t size;
  uint32_t from, to;   /* sections, `to` excluded */
  uint32_t span, time; /* in use for so many nodes */
  uint64_t at;         /* of the entry, while it is ranked anew */
  bool twin;           /* the same size and sections as the buffer one rank below */
} Buffer;

/* A buffer that is not placed. */
typedef struct Entry {
  uint64_t at; /* the end of what is placed below it */
  uint32_t buffer;
} Entry;

/* A list of entries in order of (at, buffer) and the sections that they are in. */
typedef struct Part {
  Entry *entries;
  uint32_t count;
  uint32_t from, to;
} Part;

/* Some sections, `to` excluded. */
typedef struct Range {
  uint32_t from, to;
} Range;

/* Sections that share no buffer with others. */
typedef struct Component {
  Range range;
  bool solved;
} Component;

struct PlanSearch {
  Arena *arena;
  Buffer *rankings[RANKINGS];
  struct Ranked *ranked; /* memory for sorting */
  const uint8_t *order;  /* the keys of the present ranking */
  bool anew;             /* parts are ranked anew in the present attempt */
  Buffer *buffers;       /* those that the present part of the search places, in order of rank */
  uint32_t count, sections;
  Component *components;
  uint32_t component_count;
  uint64_t capacity;
  uint64_t work_left;     /* work until the present attempt is given up */
  uint32_t *crossing;     /* by section: unplaced buffers that are in the one after it as well */
  uint64_t *sums;         /* by section, of one check */
  uint64_t *floor_raised; /* set of buffers: those whose lowest offset rose in this step */
  Entry **levels;         /* by depth: memory for entries */
  Buffer **reranked;      /* by depth: memory for buffers that are ranked anew */
  Range impossible;       /* the window that could not be filled last; or empty */
  uint64_t *offsets;      /* by span, of the present attempt */
};

/* --- sections --- */

/* Fills s->buffers; returns the number of sections. A section ends where a buffer begins after
 * another has ended. */
static uint32_t find_sections(PlanSearch *s, const Span *spans, uint32_t count, uint32_t end) {
  uint32_t *section = ARENA_ARRAY(s->arena, uint32_t, (size_t)end + 1);
  bool *begins = ARENA_ARRAY(s->arena, bool, (size_t)end + 1);
  bool *ends = ARENA_ARRAY(s->arena, bool, (size_t)end + 1);
  for (uint32_t i = 0; i < count; i++)
    if (spans[i].size)
      begins[spans[i].first] = ends[spans[i].last + 1] = true;
  uint32_t sections = 0;
  bool ended = false;
  for (uint32_t t = 0; t <= end; t++) {
    ended |= ends[t];
    sections += begins[t] && ended;
    ended &= !begins[t];
    section[t] = sections;
  }
  for (uint32_t i = 0; i < count; i++)
    if (spans[i].size)
      s->buffers[s->count++] = (Buffer){.size = spans[i].size,
                                        .from = section[spans[i].first],
                                        .to = section[spans[i].last] + 1,
                                        .span = i,
                                        .time = spans[i].last - spans[i].first};
  return sections + 1;
}

static void count_crossing(PlanSearch *s, const Buffer *b, uint32_t change) {
  for (uint32_t k = b->from; k + 1 < b->to; k++)
    s->crossing[k] += change;
}

/* The end of the part that begins at section `from`: where no unplaced buffer reaches further. */
static uint32_t part_end(const PlanSearch *s, uint32_t from, uint32_t end) {
  while (from + 1 < end && s->crossing[from])
    from++;
  return from + 1;
}

static void find_components(PlanSearch *s) {
  s->crossing = ARENA_ARRAY(s->arena, uint32_t, s->sections);
  s->components = ARENA_ARRAY(s->arena, Component, s->sections);
  for (uint32_t i = 0; i < s->count; i++)
    count_crossing(s, &s->buffers[i], 1);
  for (uint32_t from = 0, to; from < s->sections; from = to) {
    to = part_end(s, from, s->sections);
    s->components[s->component_count++] = (Component){.range = {from, to}};
  }
}

/* --- rankings --- */

/* Bytes of the fullest section, number of sections, bytes times sections, time. */
enum { PRESSURE, LENGTH, AREA, TIME, KEYS };
enum { ORDER_KEYS = 3 };
static const uint8_t key_orders[RANKINGS][ORDER_KEYS] = {{PRESSURE, AREA, LENGTH},
                                                         {LENGTH, AREA, PRESSURE},
                                                         {PRESSURE, LENGTH, AREA},
                                                         {PRESSURE, TIME, AREA}};

typedef struct Ranked {
  uint64_t keys[ORDER_KEYS]; /* the first decides */
  Buffer buffer;
} Ranked;

static int compare_ranked(const void *a, const void *b) {
  const Ranked *x = a, *y = b;
  for (unsigned i = 0; i < ORDER_KEYS; i++)
    if (x->keys[i] != y->keys[i])
      return x->keys[i] > y->keys[i] ? -1 : 1;
  int order = ORDER(y->buffer.size, x->buffer.size);
  order = order ? order : ORDER(x->buffer.from, y->buffer.from);
  return order ? order : ORDER(x->buffer.span, y->buffer.span);
}

/* Sorts buffers by s->order, with s->sums the bytes that each section holds. */
static void rank_buffers(PlanSearch *s, Buffer *buffers, uint32_t count) {
  Ranked *ranked = s->ranked;
  for (uint32_t i = 0; i < count; i++) {
    const Buffer *b = &buffers[i];
    uint64_t value[KEYS] = {[LENGTH] = b->to - b->from, [TIME] = b->time};
    for (uint32_t k = b->from; k < b->to; k++)
      value[PRESSURE] = s->sums[k] > value[PRESSURE] ? s->sums[k] : value[PRESSURE];
    if (!mul_u64(b->size, value[LENGTH], &value[AREA]))
      value[AREA] = UINT64_MAX;
    ranked[i].buffer = *b;
    for (unsigned k = 0; k < ORDER_KEYS; k++)
      ranked[i].keys[k] = value[s->order[k]];
  }
  qsort(ranked, count, sizeof *ranked, compare_ranked);
  for (uint32_t i = 0; i < count; i++)
    buffers[i] = ranked[i].buffer;
}

/* The bytes of each section between `from` and `to`. */
static void sum_sections(PlanSearch *s, const Buffer *buffers, uint32_t count, Range range) {
  memset(s->sums + range.from, 0, (range.to - range.from) * sizeof *s->sums);
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = buffers[i].from; k < buffers[i].to; k++)
      s->sums[k] += buffers[i].size;
}

static void find_rankings(PlanSearch *s) {
  s->ranked = ARENA_ARRAY(s->arena, Ranked, s->count);
  s->sums = ARENA_ARRAY(s->arena, uint64_t, s->sections);
  sum_sections(s, s->buffers, s->count, (Range){0, s->sections});
  for (unsigned r = 0; r < RANKINGS; r++) {
    s->rankings[r] = ARENA_ARRAY(s->arena, Buffer, s->count);
    memcpy(s->rankings[r], s->buffers, s->count * sizeof *s->buffers);
    s->order = key_orders[r];
    rank_buffers(s, s->rankings[r], s->count);
  }
}

PlanSearch *plan_search_make(const Span *spans, uint32_t count, uint32_t end, Arena *arena) {
  uint32_t sized = 0;
  for (uint32_t i = 0; i < count; i++)
    sized += spans[i].size != 0;
  if (sized > MAX_BUFFERS)
    return NULL;
  PlanSearch *s = ARENA_NEW(arena, PlanSearch);
  s->arena = arena;
  s->buffers = ARENA_ARRAY(arena, Buffer, sized);
  s->sections = find_sections(s, spans, count, end);
  s->floor_raised = ARENA_ARRAY(arena, uint64_t, sized / 64 + 1);
  s->levels = ARENA_ARRAY(arena, Entry *, (size_t)sized + 1);
  s->reranked = ARENA_ARRAY(arena, Buffer *, (size_t)sized + 1);
  find_components(s);
  find_rankings(s);
  return s;
}

/* --- one step --- */

/* Merges the set s->floor_raised, `moved` buffers that now begin at `top`, into the list of `kept`
 * others; empties the set. */
static void merge_raised(PlanSearch *s, Entry *list, uint32_t kept, uint32_t moved, uint64_t top) {
  uint32_t out = kept, in, count = kept + moved;
  while (out && list[out - 1].at >= top)
    out--;
  in = out + moved;
  memmove(list + in, list + out, (kept - out) * sizeof *list);
  for (uint32_t word = 0; out < in; word++)
    for (; s->floor_raised[word]; s->floor_raised[word] &= s->floor_raised[word] - 1) {
      uint32_t buffer = word * 64 + (uint32_t)__builtin_ctzll(s->floor_raised[word]);
      while (in < count && list[in].at == top && list[in].buffer < buffer)
        list[out++] = list[in++];
      list[out++] = (Entry){top, buffer};
    }
}

static bool sections_meet(const Buffer *a, const Buffer *b) {
  return a->from < b->to && b->from < a->to;
}

/* The entries of `from` without `placed` that are in the sections of `to`, at their new offsets:
 * those which were moved up all begin where the placed one ends. Whether there are such. */
static bool copy_entries(PlanSearch *s, const Part *from, uint32_t placed, uint64_t top, Part *to) {
  const Buffer *p = &s->buffers[placed];
  uint32_t kept = 0, moved = 0;
  for (uint32_t i = 0; i < from->count; i++) {
    Entry e = from->entries[i];
    const Buffer *b = &s->buffers[e.buffer];
    if (e.buffer == placed || b->from < to->from || b->to > to->to)
      continue;
    if (e.at < top && sections_meet(b, p)) {
      s->floor_raised[e.buffer / 64] |= (uint64_t)1 << e.buffer % 64;
      moved++;
    } else {
      to->entries[kept++] = e;
    }
  }
  merge_raised(s, to->entries, kept, moved, top);
  to->count = kept + moved;
  s->work_left -= from->count < s->work_left ? from->count : s->work_left;
  return moved != 0;
}

/* Whether each section can hold what is left of it, from offset `least` on. */
static bool sections_fit(PlanSearch *s, const Part *part, uint64_t least) {
  uint64_t work = (uint64_t)part->to - part->from;
  bool fit = true;
  memset(s->sums + part->from, 0, work * sizeof *s->sums);
  for (uint32_t i = part->count; fit && i-- > 0;) {
    const Buffer *b = &s->buffers[part->entries[i].buffer];
    uint64_t at = part->entries[i].at > least ? part->entries[i].at : least, most = 0;
    for (uint32_t k = b->from; k < b->to; k++) {
      s->sums[k] += b->size;
      most = s->sums[k] > most ? s->sums[k] : most;
    }
    work += b->to - b->from + 1;
    fit = at <= s->capacity && most <= s->capacity - at;
  }
  s->work_left -= work < s->work_left ? work : s->work_left;
  return fit;
}

/* --- the search --- */

static SearchAnswer descend(PlanSearch *s, Part part, Entry last, uint32_t depth);

static Entry *level_entries(PlanSearch *s, uint32_t depth) {
  if (!s->levels[depth])
    s->levels[depth] = ARENA_ARRAY(s->arena, Entry, s->count - depth);
  return s->levels[depth];
}

/* Whether the buffer of this rank is like the one below it, so that their order does not matter. */
static bool is_twin(const Buffer *buffers, uint32_t rank) {
  const Buffer *b = &buffers[rank], *below = rank ? b - 1 : b;
  return rank && below->size == b->size && below->from == b->from && below->to == b->to;
}

static int compare_entries(const void *a, const void *b) {
  const Entry *x = a, *y = b;
  int order = ORDER(x->at, y->at);
  return order ? order : ORDER(x->buffer, y->buffer);
}

/* Solves a part above `least` with its buffers ranked by what is in it alone. */
static SearchAnswer descend_reranked(PlanSearch *s, Part part, uint64_t least, uint32_t depth) {
  Buffer *outer = s->buffers;
  if (!s->reranked[depth])
    s->reranked[depth] = ARENA_ARRAY(s->arena, Buffer, s->count - depth);
  Buffer *buffers = s->reranked[depth];
  for (uint32_t i = 0; i < part.count; i++) {
    buffers[i] = outer[part.entries[i].buffer];
    buffers[i].at = part.entries[i].at;
  }
  sum_sections(s, buffers, part.count, (Range){part.from, part.to});
  rank_buffers(s, buffers, part.count);
  for (uint32_t i = 0; i < part.count; i++) {
    buffers[i].twin = is_twin(buffers, i);
    part.entries[i] = (Entry){buffers[i].at, i};
  }
  qsort(part.entries, part.count, sizeof *part.entries, compare_entries);
  s->work_left -= 8 * part.count < s->work_left ? 8 * part.count : s->work_left;
  s->buffers = buffers;
  SearchAnswer answer = descend(s, part, (Entry){least, 0}, depth);
  s->buffers = outer;
  return answer;
}

/* Solves the parts that are left of `whole` after `placed` was placed; *moved: it has moved others
 * up. */
static SearchAnswer solve_parts(PlanSearch *s, const Part *whole, Entry placed, uint32_t depth,
                                bool *moved) {
  Entry *entries = level_entries(s, depth + 1);
  uint64_t top = placed.at + s->buffers[placed.buffer].size;
  Part part = {.entries = entries, .from = whole->from};
  for (; part.from < whole->to; part.from = part.to, part.entries += part.count) {
    part.to = part_end(s, part.from, whole->to);
    *moved |= copy_entries(s, whole, placed.buffer, top, &part);
    if (!sections_fit(s, &part, placed.at))
      return SEARCH_IMPOSSIBLE;
  }
  part = (Part){.entries = entries, .from = whole->from};
  for (Entry *end = part.entries; part.from < whole->to; part.from = part.to, part.entries = end) {
    part.to = part_end(s, part.from, whole->to);
    while (end < entries + whole->count - 1 && s->buffers[end->buffer].to <= part.to)
      end++;
    part.count = (uint32_t)(end - part.entries);
    SearchAnswer answer = !s->anew || part.count + 1 == whole->count
                              ? descend(s, part, placed, depth + 1)
                              : descend_reranked(s, part, placed.at, depth + 1);
    if (answer != SEARCH_FOUND)
      return answer;
  }
  return SEARCH_FOUND;
}

/* Places what is in `part`, above `last`. */
static SearchAnswer descend(PlanSearch *s, Part part, Entry last, uint32_t depth) {
  uint64_t height = UINT64_MAX; /* what begins at it or above leaves a gap */
  for (uint32_t i = 0; i < part.count; i++) {
    uint64_t end = part.entries[i].at + s->buffers[part.entries[i].buffer].size;
    height = end < height ? end : height;
  }
  for (uint32_t i = 0; i < part.count && part.entries[i].at < height; i++) {
    Entry e = part.entries[i];
    const Buffer *b = &s->buffers[e.buffer];
    if (e.at < last.at || (e.at == last.at && e.buffer < last.buffer) ||
        (b->twin && i && part.entries[i - 1].buffer + 1 == e.buffer))
      continue;
    if (!s->work_left)
      return SEARCH_UNDECIDED;
    bool moved = false;
    s->offsets[b->span] = e.at;
    count_crossing(s, b, -1u);
    SearchAnswer answer = solve_parts(s, &part, e, depth, &moved);
    count_crossing(s, b, 1);
    if (answer != SEARCH_IMPOSSIBLE || !moved)
      return answer;
  }
  return part.count ? SEARCH_IMPOSSIBLE : SEARCH_FOUND;
}

/* The buffers of a ranking that are in the range, cut off at its ends. */
static void pick_buffers(PlanSearch *s, const Buffer *ranking, Range range, Part *part) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    Buffer b = ranking[i];
    if (b.from >= range.to || b.to <= range.from)
      continue;
    b.from = b.from > range.from ? b.from : range.from;
    b.to = b.to < range.to ? b.to : range.to;
    s->buffers[count] = b;
    s->buffers[count].twin = is_twin(s->buffers, count);
    part->entries[count] = (Entry){0, count};
    count++;
  }
  part->count = count;
}

/* Solves a range of sections with at most `limit` of the work. way: one of WAYS, a ranking twice
 * and one more where parts are ranked anew. */
static SearchAnswer attempt(PlanSearch *s, Range range, unsigned way, uint64_t limit,
                            uint64_t *work) {
  uint64_t given = limit < *work ? limit : *work;
  Part part = {.entries = level_entries(s, 0), .from = range.from, .to = range.to};
  s->order = key_orders[way / 2];
  s->anew = way % 2;
  pick_buffers(s, s->rankings[way / 2], range, &part);
  s->work_left = given > s->count ? given - s->count : 0;
  SearchAnswer answer =
      sections_fit(s, &part, 0) ? descend(s, part, (Entry){0}, 0) : SEARCH_IMPOSSIBLE;
  *work -= given - s->work_left;
  return answer;
}

/* Windows of growing size, up to those that are not decided within the limit. Whether one of them
 * is impossible, and with it the whole. */
static bool impossible_window(PlanSearch *s, Range range, uint64_t limit, uint64_t *work) {
  bool decided = true;
  for (uint32_t size = FIRST_WINDOW; decided && size < range.to - range.from; size += size / 2)
    for (uint32_t from = range.from; *work && from + size <= range.to; from += size / 4) {
      Range window = {from, from + size};
      SearchAnswer answer = attempt(s, window, 0, limit, work);
      decided &= answer != SEARCH_UNDECIDED;
      if (answer != SEARCH_IMPOSSIBLE)
        continue;
      s->impossible = window;
      return true;
    }
  return false;
}

/* One round for a component: each way, then windows. */
static SearchAnswer try_component(PlanSearch *s, Range range, uint64_t limit, uint64_t *work) {
  for (unsigned way = 0; way < WAYS && *work; way++) {
    SearchAnswer answer = attempt(s, range, way, limit, work);
    if (answer != SEARCH_UNDECIDED)
      return answer;
  }
  uint64_t most = 2 * limit < *work ? 2 * limit : *work, left = most;
  bool impossible = impossible_window(s, range, limit / 2, &left);
  *work -= most - left;
  return impossible ? SEARCH_IMPOSSIBLE : SEARCH_UNDECIDED;
}

SearchAnswer plan_search_run(PlanSearch *s, uint64_t capacity, uint64_t *work, uint64_t *offsets) {
  uint32_t solved = 0;
  s->capacity = capacity;
  s->offsets = offsets;
  if (s->impossible.to && attempt(s, s->impossible, 0, *work / 8, work) == SEARCH_IMPOSSIBLE)
    return SEARCH_IMPOSSIBLE;
  for (uint32_t i = 0; i < s->component_count; i++)
    s->components[i].solved = false;
  for (uint64_t limit = ((uint64_t)s->count + 1) * FIRST_LIMIT;
       *work && solved < s->component_count; limit *= 2)
    for (uint32_t i = 0; i < s->component_count; i++) {
      Component *c = &s->components[i];
      if (c->solved)
        continue;
      SearchAnswer answer = try_component(s, c->range, limit, work);
      if (answer == SEARCH_IMPOSSIBLE)
        return answer;
      c->solved = answer == SEARCH_FOUND;
      solved += c->solved;
    }
  return solved < s->component_count ? SEARCH_UNDECIDED : SEARCH_FOUND;
}

/* Offsets by placing one span after the other where none of the placed ones in use at the same time
 * is (offset assignment; the problem is "dynamic storage allocation", NP-hard).
 *
 * Which spans meet in time is computed once, as lists; placing a span then looks at its own list
 * only. The order decides the result: largest first is good as a rule (Pisarchyk and Lee,
 * "Efficient memory management for deep neural net inference", 2020), others win on some graphs, so
 * several are tried, each with the lowest gap and with the tightest gap. When none reaches the
 * lower bound, the spans that stick out above it are placed earlier in the next round ("squeaky
 * wheel" optimisation: Joslin and Clements, 1999), at times from the other end of the arena: hidden
 * states of unrolled loops only fit when old ones go at one end and new ones at the other. All work
 * is counted, and stops at a limit. */
#include "ops/work.h"
#include "passes/executorch/planner.h"

#include <stdlib.h>

enum {
  MAX_MEETINGS = 1000000,   /* pairs of spans in use at the same time; with more, only the sweep is
                               done */
  MAX_WORK = 3000000,       /* pairs looked at while trying orders */
  MAX_IMPROVEMENT = 600000, /* and in rounds of improvement, about 20 ms */
  MAX_ROUNDS = 400
};

typedef enum Fit { FIT_LOWEST, FIT_TIGHTEST, FIT_HIGHEST } Fit;

typedef struct Place {
  uint64_t from, to;
} Place;

typedef struct Search {
  const Span *spans;
  uint32_t count; /* of spans */
  uint64_t bound;
  uint32_t *start;       /* by span: its part of `interferes`; count + 1 entries */
  uint32_t *interferes;  /* spans that are in use at the same time */
  uint32_t *order;       /* spans, first to be placed first */
  uint32_t placed_count; /* spans with size */
  uint64_t *key;         /* by span: greater is placed earlier */
  Place *places;         /* scratch of one placement */
  uint64_t *offsets;     /* of this round */
  uint64_t *best;        /* offsets of the best round */
  uint64_t best_total;
  uint64_t work, max_work, random;
  bool *placed;
  bool *high; /* by span: wants the highest gap */
} Search;

uint64_t planner_naive(const Span *spans, uint32_t count, uint64_t *offsets) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; i++) {
    offsets[i] = spans[i].size ? total : 0;
    total += spans[i].size;
  }
  return total;
}

/* --- interference --- */

typedef struct Start {
  uint32_t first, span;
} Start;

static int compare_starts(const void *a, const void *b) {
  const Start *s = a, *t = b;
  int order = ORDER(s->first, t->first);
  return order ? order : ORDER(s->span, t->span);
}

/* Walks all pairs that interfere: counts into start[i + 1], or, when interferes is set, fills the
 * lists with the counts as cursors. False when there are too many. */
static bool walk_interference(Search *s, const Start *starts, uint32_t *active, uint32_t *cursor) {
  uint32_t active_count = 0;
  uint64_t pairs = 0;
  for (uint32_t i = 0; i < s->placed_count; i++) {
    uint32_t span = starts[i].span, kept = 0;
    for (uint32_t k = 0; k < active_count; k++)
      if (s->spans[active[k]].last >= s->spans[span].first)
        active[kept++] = active[k];
    active_count = kept;
    pairs += active_count;
    if (pairs > MAX_MEETINGS)
      return false;
    for (uint32_t k = 0; k < active_count; k++) {
      if (s->interferes) {
        s->interferes[cursor[active[k]]++] = span;
        s->interferes[cursor[span]++] = active[k];
      } else {
        cursor[active[k]]++;
        cursor[span]++;
      }
    }
    active[active_count++] = span;
  }
  return true;
}

static bool find_meetings(Search *s, Arena *scratch) {
  Start *starts = ARENA_ARRAY(scratch, Start, s->count);
  uint32_t *active = ARENA_ARRAY(scratch, uint32_t, s->count);
  uint32_t *cursor = ARENA_ARRAY(scratch, uint32_t, s->count);
  for (uint32_t i = 0; i < s->count; i++)
    if (s->spans[i].size)
      starts[s->placed_count++] = (Start){s->spans[i].first, i};
  if (s->placed_count == 0)
    return false;
  qsort(starts, s->placed_count, sizeof *starts, compare_starts);
  s->interferes = NULL;
  if (!walk_interference(s, starts, active, cursor))
    return false;
  s->start = ARENA_ARRAY(scratch, uint32_t, (size_t)s->count + 1);
  for (uint32_t i = 0; i < s->count; i++) {
    s->start[i + 1] = s->start[i] + cursor[i];
    cursor[i] = s->start[i];
  }
  s->interferes = ARENA_ARRAY(scratch, uint32_t, s->start[s->count]);
  return walk_interference(s, starts, active, cursor);
}

/* --- placing --- */

static int compare_places(const void *a, const void *b) {
  const Place *p = a, *q = b;
  int order = ORDER(p->from, q->from);
  return order ? order : ORDER(p->to, q->to);
}

static void sort_places(Place *p, uint32_t count) {
  if (count > 24) {
    qsort(p, count, sizeof *p, compare_places);
    return;
  }
  for (uint32_t i = 1; i < count; i++) {
    Place moved = p[i];
    uint32_t k = i;
    for (; k && compare_places(&p[k - 1], &moved) > 0; k--)
      p[k] = p[k - 1];
    p[k] = moved;
  }
}

/* Whether the gap [from, to) beats the best one so far. */
static bool better_gap(Fit fit, uint64_t gap, uint64_t best) {
  return fit == FIT_TIGHTEST ? gap < best : fit == FIT_HIGHEST || best == UINT64_MAX;
}

/* The offset of a span among those placed that it interferes with: in the lowest gap that holds it,
 * the tightest, or at the upper end of the highest one below the bound; above all others if there
 * is none. */
static uint64_t find_gap(Search *s, uint32_t span, Fit fit) {
  uint32_t count = 0;
  for (uint32_t k = s->start[span]; k < s->start[span + 1]; k++) {
    uint32_t other = s->interferes[k];
    if (s->placed[other])
      s->places[count++] = (Place){s->offsets[other], s->offsets[other] + s->spans[other].size};
  }
  s->work += s->start[span + 1] - s->start[span] + 1;
  sort_places(s->places, count);
  s->places[count] = (Place){s->bound, s->bound};
  uint64_t size = s->spans[span].size, at = 0, best = 0, best_gap = UINT64_MAX;
  for (uint32_t k = 0; k <= count; k++) {
    uint64_t gap = s->places[k].from > at ? s->places[k].from - at : 0;
    if (gap >= size && better_gap(fit, gap, best_gap)) {
      best_gap = gap;
      best = fit == FIT_HIGHEST ? s->places[k].from - size : at;
      if (fit == FIT_LOWEST)
        return best;
    }
    if (k < count && s->places[k].to > at)
      at = s->places[k].to;
  }
  return best_gap == UINT64_MAX ? at : best;
}

static uint64_t place_all(Search *s, Fit fit) {
  uint64_t total = 0;
  memset(s->placed, 0, s->count * sizeof *s->placed);
  for (uint32_t i = 0; i < s->placed_count; i++) {
    uint32_t span = s->order[i];
    s->offsets[span] = find_gap(s, span, s->high[span] ? FIT_HIGHEST : fit);
    s->placed[span] = true;
    uint64_t end = s->offsets[span] + s->spans[span].size;
    total = end > total ? end : total;
  }
  if (total < s->best_total) {
    s->best_total = total;
    memcpy(s->best, s->offsets, s->count * sizeof *s->best);
  }
  return total;
}

static bool finished(const Search *s) { return s->best_total <= s->bound || s->work > s->max_work; }

/* --- orders --- */

typedef struct Keyed {
  uint64_t key, size;
  uint32_t span, first;
} Keyed;

static int compare_keyed(const void *a, const void *b) {
  const Keyed *p = a, *q = b;
  int order = ORDER(q->key, p->key);
  order = order ? order : ORDER(q->size, p->size);
  order = order ? order : ORDER(p->first, q->first);
  return order ? order : ORDER(p->span, q->span);
}

static void sort_order(Search *s, Keyed *keyed) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < s->count; i++)
    if (s->spans[i].size)
      keyed[count++] = (Keyed){s->key[i], s->spans[i].size, i, s->spans[i].first};
  qsort(keyed, count, sizeof *keyed, compare_keyed);
  for (uint32_t i = 0; i < count; i++)
    s->order[i] = keyed[i].span;
  s->work += count;
}

/* Bytes in use at the busiest time of each span. */
static void find_pressure(const Search *s, Arena *scratch, uint32_t end, uint64_t *pressure) {
  uint64_t *live = ARENA_ARRAY(scratch, uint64_t, (size_t)end + 1);
  for (uint32_t i = 0; i < s->count; i++) {
    live[s->spans[i].first] += s->spans[i].size;
    live[s->spans[i].last + 1] -= s->spans[i].size;
  }
  for (uint32_t t = 1; t <= end; t++)
    live[t] += live[t - 1];
  /* The most bytes after the span began and where it interferes with others is a maximum at some
   * beginning: its own, or that of a span it interferes with. */
  for (uint32_t i = 0; i < s->count; i++) {
    pressure[i] = live[s->spans[i].first];
    for (uint32_t k = s->start[i]; k < s->start[i + 1]; k++) {
      uint32_t at = s->spans[s->interferes[k]].first;
      if (at > s->spans[i].first && live[at] > pressure[i])
        pressure[i] = live[at];
    }
  }
}

typedef enum Order {
  ORDER_SIZE,
  ORDER_AREA,
  ORDER_PRESSURE,
  ORDER_LENGTH,
  ORDER_BEGIN,
  ORDER_END,
  ORDER_CLASS, /* by power of two of the size, then by time */
  ORDERS
} Order;

static void set_keys(Search *s, Order order, const uint64_t *pressure) {
  for (uint32_t i = 0; i < s->count; i++) {
    const Span *span = &s->spans[i];
    uint64_t length = (uint64_t)span->last - span->first + 1;
    switch (order) {
    case ORDER_SIZE:
      s->key[i] = span->size;
      break;
    case ORDER_AREA:
      s->key[i] = work_times(span->size, length);
      break;
    case ORDER_PRESSURE:
      s->key[i] = pressure[i];
      break;
    case ORDER_LENGTH:
      s->key[i] = length;
      break;
    case ORDER_CLASS:
      s->key[i] =
          ((uint64_t)(63 - __builtin_clzll(span->size | 1)) << 32) + (UINT32_MAX - span->first);
      break;
    case ORDER_BEGIN:
      s->key[i] = UINT32_MAX - (uint64_t)span->first;
      break;
    case ORDER_END:
    case ORDERS:
      s->key[i] = span->last;
      break;
    }
  }
}

/* Xorshift (Marsaglia, 2003); the same numbers in every run. */
static bool toss(Search *s) {
  s->random ^= s->random << 13;
  s->random ^= s->random >> 7;
  s->random ^= s->random << 17;
  return s->random >> 20 & 1;
}

/* What sticks out above the target comes earlier in the next round; turn: about half of it also
 * changes the end of the arena it is placed from. */
static void promote(Search *s, uint64_t target, bool turn) {
  for (uint32_t i = 0; i < s->placed_count; i++) {
    uint32_t span = s->order[i];
    s->key[span] = s->placed_count - i;
    if (s->offsets[span] + s->spans[span].size <= target)
      continue;
    s->key[span] += s->placed_count / 8 + 1;
    s->high[span] ^= turn && toss(s);
  }
}

static void improve(Search *s, Keyed *keyed, const uint64_t *pressure) {
  uint64_t begin = s->work;
  s->max_work = begin + MAX_IMPROVEMENT;
  for (unsigned order = 0; order < ORDERS && !finished(s); order++) {
    uint64_t limit = begin + MAX_IMPROVEMENT / ORDERS * (order + 1);
    set_keys(s, (Order)order, pressure);
    sort_order(s, keyed);
    for (unsigned round = 0; round < MAX_ROUNDS && s->work < limit && !finished(s); round++) {
      if (place_all(s, round % 2 ? FIT_TIGHTEST : FIT_LOWEST) <= s->bound)
        return;
      promote(s, round % 4 < 2 ? s->bound : s->best_total - 1, round % 3 == 2);
      sort_order(s, keyed);
    }
  }
}

uint64_t planner_greedy(const Span *spans, uint32_t count, uint32_t end, uint64_t bound,
                        Arena *scratch, uint64_t *offsets) {
  Search s = {.spans = spans,
              .count = count,
              .bound = bound,
              .best = offsets,
              .max_work = MAX_WORK,
              .random = 88172645463325252u};
  s.best_total = planner_sweep(spans, count, end, scratch, offsets);
  if (s.best_total <= bound || !find_meetings(&s, scratch))
    return s.best_total;
  s.order = ARENA_ARRAY(scratch, uint32_t, count);
  s.key = ARENA_ARRAY(scratch, uint64_t, count);
  s.places = ARENA_ARRAY(scratch, Place, (size_t)count + 1);
  s.high = ARENA_ARRAY(scratch, bool, count);
  s.placed = ARENA_ARRAY(scratch, bool, count);
  s.offsets = ARENA_ARRAY(scratch, uint64_t, count);
  Keyed *keyed = ARENA_ARRAY(scratch, Keyed, count);
  uint64_t *pressure = ARENA_ARRAY(scratch, uint64_t, count);
  find_pressure(&s, scratch, end, pressure);
  for (unsigned order = 0; order < ORDERS && !finished(&s); order++) {
    set_keys(&s, (Order)order, pressure);
    sort_order(&s, keyed);
    (void)place_all(&s, FIT_LOWEST);
    if (!finished(&s))
      (void)place_all(&s, FIT_TIGHTEST);
  }
  if (s.best_total > bound)
    improve(&s, keyed, pressure);
  return s.best_total;
}

/* See overlap.h. A sweep over time asks a tree of maxima, ordered by place, whether a block in use
 * reaches into the new one. */
#include "ir/overlap.h"

#include <stdlib.h>

typedef struct Place {
  uint64_t offset;
  uint32_t arena, block;
} Place;

typedef struct Sweep {
  const MemoryBlock *blocks;
  Place *places;     /* in order */
  uint32_t *rank;    /* by block: its index in places */
  uint64_t *highest; /* tree over places: ends of blocks in use; leaf i is count + i */
  uint32_t count;
} Sweep;

static int compare_places(const void *a, const void *b) {
  const Place *x = a, *y = b;
  int order = ORDER(x->arena, y->arena);
  order = order ? order : ORDER(x->offset, y->offset);
  return order ? order : ORDER(x->block, y->block);
}

static void rank_blocks(Sweep *s) {
  for (uint32_t i = 0; i < s->count; i++)
    s->places[i] = (Place){s->blocks[i].offset, s->blocks[i].arena, i};
  qsort(s->places, s->count, sizeof *s->places, compare_places);
  for (uint32_t i = 0; i < s->count; i++)
    s->rank[s->places[i].block] = i;
}

static void tree_set(Sweep *s, uint32_t rank, uint64_t value) {
  uint64_t *tree = s->highest;
  uint32_t i = rank + s->count;
  tree[i] = value;
  for (i /= 2; i > 0; i /= 2) {
    uint64_t most = tree[2 * i] > tree[2 * i + 1] ? tree[2 * i] : tree[2 * i + 1];
    if (tree[i] == most)
      return; /* and so are those above */
    tree[i] = most;
  }
}

static uint64_t tree_max(const Sweep *s, uint32_t from, uint32_t to) {
  uint64_t max = 0;
  for (uint32_t i = from + s->count, k = to + s->count; i < k; i /= 2, k /= 2) {
    if (i & 1) {
      max = s->highest[i] > max ? s->highest[i] : max;
      i++;
    }
    if (k & 1) {
      k--;
      max = s->highest[k] > max ? s->highest[k] : max;
    }
  }
  return max;
}

/* Number of places before (arena, offset). */
static uint32_t places_before(const Sweep *s, uint32_t arena, uint64_t offset) {
  uint32_t low = 0;
  for (uint32_t count = s->count; count > 0;) {
    uint32_t half = count / 2;
    const Place *m = &s->places[low + half];
    if (m->arena < arena || (m->arena == arena && m->offset < offset)) {
      low += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return low;
}

/* The first place from `from` on whose block is in use and ends above `offset`: there is one before
 * `to`. */
static uint32_t first_above(const Sweep *s, uint32_t from, uint32_t to, uint64_t offset) {
  while (to - from > 1) {
    uint32_t half = from + (to - from) / 2;
    if (tree_max(s, from, half) > offset)
      to = half;
    else
      from = half;
  }
  return from;
}

/* Lists of blocks by time, linked by index + 1, lower indices first. */
static uint32_t *list_blocks(const MemoryBlock *blocks, uint32_t count, uint32_t end, bool by_end,
                             uint32_t *next, Arena *scratch) {
  uint32_t *head = ARENA_ARRAY(scratch, uint32_t, end);
  for (uint32_t i = count; i-- > 0;) {
    uint32_t time = by_end ? blocks[i].end : blocks[i].begin;
    next[i] = head[time];
    head[time] = i + 1;
  }
  return head;
}

void overlap_find(const MemoryBlock *blocks, uint32_t count, uint32_t end, Arena *scratch,
                  OverlapReport *report, void *user) {
  Sweep s = {.blocks = blocks,
             .places = ARENA_ARRAY(scratch, Place, count),
             .rank = ARENA_ARRAY(scratch, uint32_t, count),
             .highest = ARENA_ARRAY(scratch, uint64_t, 2 * (size_t)count + 2),
             .count = count};
  uint32_t *next_begin = ARENA_ARRAY(scratch, uint32_t, count),
           *next_end = ARENA_ARRAY(scratch, uint32_t, count);
  uint32_t *begins = list_blocks(blocks, count, end, false, next_begin, scratch);
  uint32_t *ends = list_blocks(blocks, count, end, true, next_end, scratch);
  rank_blocks(&s);
  for (uint32_t t = 0; t < end; t++) {
    for (uint32_t i = begins[t]; i; i = next_begin[i - 1]) {
      const MemoryBlock *b = &blocks[i - 1];
      uint64_t top = UINT64_MAX;
      (void)add_u64(b->offset, b->size, &top);
      uint32_t from = places_before(&s, b->arena, 0), to = places_before(&s, b->arena, top);
      if (b->size && tree_max(&s, from, to) > b->offset)
        report(user, i - 1, s.places[first_above(&s, from, to, b->offset)].block);
      if (b->size)
        tree_set(&s, s.rank[i - 1], top);
    }
    for (uint32_t i = ends[t]; i; i = next_end[i - 1])
      tree_set(&s, s.rank[i - 1], 0);
  }
}

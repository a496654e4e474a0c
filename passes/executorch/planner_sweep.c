/* One sweep over time: each span takes the tightest of the free blocks at hand, the block is free
 * again after its last use and joins its neighbours.
 *
 * Free blocks hang in bins by size, four bins a power of two, so that each step takes constant time
 * however many blocks there are (the scheme of the two-level segregated fit allocator: Masmano et
 * al., "TLSF: a new dynamic memory allocator for real-time systems", 2004). */
#include "passes/executorch/planner.h"

enum { BINS = 256, BIN_SEARCH = 16 };
#define TOP ((uint64_t)1 << 63) /* size of the block above all others at the start */

typedef struct Block {
  uint64_t offset, size;
  uint32_t below, above;       /* neighbours in memory, 0 = none */
  uint32_t bin_prev, bin_next; /* free blocks of the same bin */
  bool free;
} Block;

typedef struct Sweep {
  Block *blocks;
  uint32_t block_count, spare; /* spare: recycled blocks, by bin_next */
  uint32_t bins[BINS];
  uint64_t filled[BINS / 64]; /* bit of each bin that has blocks */
} Sweep;

static uint32_t bin_of(uint64_t size) {
  if (size < 4)
    return (uint32_t)size;
  uint32_t log = 63 - (uint32_t)__builtin_clzll(size);
  return log * 4 + (uint32_t)(size >> (log - 2) & 3);
}

static void bin_add(Sweep *s, uint32_t b) {
  uint32_t bin = bin_of(s->blocks[b].size), next = s->bins[bin];
  s->blocks[b].free = true;
  s->blocks[b].bin_prev = 0;
  s->blocks[b].bin_next = next;
  if (next)
    s->blocks[next].bin_prev = b;
  s->bins[bin] = b;
  s->filled[bin / 64] |= (uint64_t)1 << bin % 64;
}

static void bin_remove(Sweep *s, uint32_t b) {
  Block *block = &s->blocks[b];
  uint32_t bin = bin_of(block->size);
  if (block->bin_prev)
    s->blocks[block->bin_prev].bin_next = block->bin_next;
  else
    s->bins[bin] = block->bin_next;
  if (block->bin_next)
    s->blocks[block->bin_next].bin_prev = block->bin_prev;
  if (!s->bins[bin])
    s->filled[bin / 64] &= ~((uint64_t)1 << bin % 64);
  block->free = false;
}

static uint32_t next_filled(const Sweep *s, uint32_t bin) {
  uint64_t word = bin < BINS ? s->filled[bin / 64] >> bin % 64 << bin % 64 : 0;
  for (uint32_t i = bin / 64; i < BINS / 64; word = ++i < BINS / 64 ? s->filled[i] : 0)
    if (word)
      return i * 64 + (uint32_t)__builtin_ctzll(word);
  return BINS;
}

/* The tightest block that fits among the first `limit` of the bin, 0 for none. */
static uint32_t search_bin(const Sweep *s, uint64_t size, uint32_t limit) {
  uint32_t best = 0;
  for (uint32_t b = s->bins[bin_of(size)]; b && limit; b = s->blocks[b].bin_next, limit--)
    if (s->blocks[b].size >= size && (!best || s->blocks[b].size < s->blocks[best].size))
      best = b;
  return best;
}

/* The tightest of a few blocks of like size, else any of the next larger bin. The block above all
 * others has room for everything, but may share its bin with many when sizes are near 2^63. */
static uint32_t find_block(const Sweep *s, uint64_t size) {
  uint32_t best = search_bin(s, size, BIN_SEARCH);
  if (best)
    return best;
  uint32_t bin = next_filled(s, bin_of(size) + 1);
  if (bin == BINS)
    best = search_bin(s, size, UINT32_MAX);
  if (best)
    return best;
  if (bin == BINS)
    BUG("the memory planner has no block of %llu bytes", (unsigned long long)size);
  return s->bins[bin];
}

static uint32_t new_block(Sweep *s) {
  uint32_t b = s->spare;
  if (b)
    s->spare = s->blocks[b].bin_next;
  else
    b = s->block_count++;
  return b;
}

static uint32_t allocate(Sweep *s, uint64_t size) {
  uint32_t b = find_block(s, size);
  bin_remove(s, b);
  if (s->blocks[b].size == size)
    return b;
  uint32_t rest = new_block(s), above = s->blocks[b].above;
  s->blocks[rest] = (Block){.offset = s->blocks[b].offset + size,
                            .size = s->blocks[b].size - size,
                            .below = b,
                            .above = above};
  if (above)
    s->blocks[above].below = rest;
  s->blocks[b].above = rest;
  s->blocks[b].size = size;
  bin_add(s, rest);
  return b;
}

/* Joins b with the block above it, which then is no more. */
static void join_above(Sweep *s, uint32_t b) {
  uint32_t gone = s->blocks[b].above, above = s->blocks[gone].above;
  s->blocks[b].size += s->blocks[gone].size;
  s->blocks[b].above = above;
  if (above)
    s->blocks[above].below = b;
  s->blocks[gone].bin_next = s->spare;
  s->spare = gone;
}

static void release(Sweep *s, uint32_t b) {
  uint32_t above = s->blocks[b].above, below = s->blocks[b].below;
  if (above && s->blocks[above].free) {
    bin_remove(s, above);
    join_above(s, b);
  }
  if (below && s->blocks[below].free) {
    bin_remove(s, below);
    join_above(s, below);
    b = below;
  }
  bin_add(s, b);
}

/* Spans in lists by time: head[t], next[span], both + 1. Larger numbers of a list come first. */
typedef struct TimeLists {
  uint32_t *begin, *next_begin, *end, *next_end;
} TimeLists;

static TimeLists make_lists(const Span *spans, uint32_t count, uint32_t end, Arena *scratch) {
  TimeLists t = {ARENA_ARRAY(scratch, uint32_t, end), ARENA_ARRAY(scratch, uint32_t, count),
                 ARENA_ARRAY(scratch, uint32_t, end), ARENA_ARRAY(scratch, uint32_t, count)};
  for (uint32_t i = 0; i < count; i++) {
    if (!spans[i].size)
      continue;
    t.next_begin[i] = t.begin[spans[i].first];
    t.begin[spans[i].first] = i + 1;
    t.next_end[i] = t.end[spans[i].last];
    t.end[spans[i].last] = i + 1;
  }
  return t;
}

uint64_t planner_sweep(const Span *spans, uint32_t count, uint32_t end, Arena *scratch,
                       uint64_t *offsets) {
  Sweep s = {.blocks = ARENA_ARRAY(scratch, Block, (size_t)count + 2), .block_count = 2};
  uint32_t *block_of = ARENA_ARRAY(scratch, uint32_t, count);
  TimeLists lists = make_lists(spans, count, end, scratch);
  uint64_t top = 0;
  s.blocks[1] = (Block){.size = TOP};
  bin_add(&s, 1);
  for (uint32_t t = 0; t < end; t++) {
    for (uint32_t i = lists.begin[t]; i; i = lists.next_begin[i - 1]) {
      uint32_t b = block_of[i - 1] = allocate(&s, spans[i - 1].size);
      uint64_t over = s.blocks[b].offset + spans[i - 1].size;
      offsets[i - 1] = s.blocks[b].offset;
      top = over > top ? over : top;
    }
    for (uint32_t i = lists.end[t]; i; i = lists.next_end[i - 1])
      release(&s, block_of[i - 1]);
  }
  return top;
}

/* A fixed-size set of small integers, words from an arena. */
#ifndef ETC_SUPPORT_BITSET_H
#define ETC_SUPPORT_BITSET_H

#include "support/arena.h"

typedef struct Bitset {
  uint64_t *words;
  uint32_t size; /* number of bits */
} Bitset;

static inline Bitset bitset_make(Arena *arena, uint32_t size) {
  return (Bitset){ARENA_ARRAY(arena, uint64_t, (size_t)size / 64 + 1), size};
}
static inline bool bitset_has(const Bitset *set, uint32_t i) {
  return set->words[i / 64] >> (i % 64) & 1;
}
static inline void bitset_add(Bitset *set, uint32_t i) {
  set->words[i / 64] |= (uint64_t)1 << (i % 64);
}
static inline void bitset_remove(Bitset *set, uint32_t i) {
  set->words[i / 64] &= ~((uint64_t)1 << (i % 64));
}

#endif

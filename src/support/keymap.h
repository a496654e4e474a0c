/* A map from short byte strings to numbers, for de-duplication. Seeded, so that no input can choose
 * its collisions; never iterated, so that the seed does not show in the output. */
#ifndef ETC_SUPPORT_KEYMAP_H
#define ETC_SUPPORT_KEYMAP_H

#include "support/arena.h"

typedef struct KeyEntry {
  uint64_t hash;
  const void *key; /* NULL: free */
  uint32_t size, value;
} KeyEntry;

typedef struct KeyMap {
  Arena *arena; /* of keys and slots */
  uint64_t seed;
  KeyEntry *slots;
  uint32_t count, slot_count;
} KeyMap;

static inline KeyMap keymap_make(Arena *arena, uint64_t seed) {
  return (KeyMap){.arena = arena, .seed = seed};
}
/* The value of a key, 0 on first sight; *slot is where to store it then (good until the next call).
 * The key is copied. */
uint32_t keymap_get(KeyMap *map, const void *key, uint32_t size, uint32_t **slot);

#endif

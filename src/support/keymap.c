/* See keymap.h. Open addressing, at most half full. */
#include "support/keymap.h"

#include <xxhash.h>

static void grow(KeyMap *map) {
  uint32_t count = map->slot_count ? map->slot_count * 2 : 256;
  KeyEntry *slots = ARENA_ARRAY(map->arena, KeyEntry, count);
  for (uint32_t i = 0; i < map->slot_count; i++) {
    if (!map->slots[i].key)
      continue;
    uint32_t at = (uint32_t)map->slots[i].hash & (count - 1);
    while (slots[at].key)
      at = (at + 1) & (count - 1);
    slots[at] = map->slots[i];
  }
  map->slots = slots;
  map->slot_count = count;
}

uint32_t keymap_get(KeyMap *map, const void *key, uint32_t size, uint32_t **slot) {
  if (map->count * 2 >= map->slot_count)
    grow(map);
  uint64_t hash = XXH3_64bits_withSeed(size ? key : "", size, map->seed);
  uint32_t at = (uint32_t)hash & (map->slot_count - 1);
  for (; map->slots[at].key; at = (at + 1) & (map->slot_count - 1)) {
    KeyEntry *e = &map->slots[at];
    if (e->hash == hash && e->size == size && (size == 0 || memcmp(e->key, key, size) == 0)) {
      *slot = &e->value;
      return e->value;
    }
  }
  void *copy = arena_alloc(map->arena, size);
  if (size)
    memcpy(copy, key, size);
  map->slots[at] = (KeyEntry){.hash = hash, .key = copy, .size = size};
  map->count++;
  *slot = &map->slots[at].value;
  return 0;
}

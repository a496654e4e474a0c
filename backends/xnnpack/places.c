/* See places.h. Items are dense; a table of values, at most half full, finds them. */
#include "backends/xnnpack/places.h"

enum { BLOCK = 4 };

void places_release(Places *p) {
  xfree(p->items);
  xfree(p->slots);
  *p = (Places){0};
}

void places_clear(Places *p) {
  for (uint32_t i = 0; i < p->count; i++)
    p->slots[p->items[i].slot] = (PlaceSlot){0};
  p->count = 0;
}

/* The slot of v, or the free one where it belongs. BLOCK neighbouring values get neighbouring
 * slots; blocks are spread over the table, since runs of values that met would make one long
 * search. */
static uint32_t slot_of(const Places *p, ValueId v) {
  uint32_t mask = p->slot_count - 1, block = v / BLOCK * 0x9e3779b1U, /* 2^32 / golden ratio */
      slot = ((block >> 16 ^ block) * BLOCK + v % BLOCK) & mask;
  while (p->slots[slot].item && p->slots[slot].v != v)
    slot = (slot + 1) & mask;
  return slot;
}

static void put(Places *p, uint32_t slot, uint32_t item) {
  p->slots[slot] = (PlaceSlot){p->items[item].v, item + 1};
  p->items[item].slot = slot;
}

static void grow(Places *p) {
  xfree(p->slots);
  p->slot_count = p->slot_count ? 2 * p->slot_count : 64;
  p->slots = xcalloc(p->slot_count * sizeof *p->slots);
  for (uint32_t i = 0; i < p->count; i++)
    put(p, slot_of(p, p->items[i].v), i);
}

const Place *places_find(const Places *p, ValueId v) {
  uint32_t item = p->slot_count ? p->slots[slot_of(p, v)].item : 0;
  return item ? &p->items[item - 1] : NULL;
}

Place *places_make(Places *p, ValueId v) {
  if (2 * p->count >= p->slot_count)
    grow(p);
  uint32_t slot = slot_of(p, v);
  if (!p->slots[slot].item) {
    p->items = pool_reserve(p->items, &p->capacity, (uint64_t)p->count + 1, sizeof *p->items);
    p->items[p->count] = (Place){.v = v};
    put(p, slot, p->count++);
  }
  return &p->items[p->slots[slot].item - 1];
}

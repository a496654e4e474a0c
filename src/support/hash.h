/* Hashes of several numbers, for tables in memory. They may change with a version: no output holds
 * one, nor depends on their order. */
#ifndef ETC_SUPPORT_HASH_H
#define ETC_SUPPORT_HASH_H

#include <stdint.h>

/* The hash h with x added; different for different h. */
static inline uint64_t hash_mix64(uint64_t h, uint64_t x) {
  h = (h ^ x * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
  return h ^ h >> 32;
}
static inline uint32_t hash_mix(uint32_t h, uint64_t x) { return (uint32_t)hash_mix64(h, x); }

/* Slots of a table for count entries: a power of two, at least 16, so that half are free. */
static inline uint32_t hash_slots(uint32_t count) {
  uint32_t slots = 16;
  while (slots / 2 < count)
    slots *= 2;
  return slots;
}

#endif

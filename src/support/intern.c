/* Open addressing with linear probing over XXH3 (https://xxhash.com). A slot holds 32 bits of the
 * hash beside the id: most misses are seen without touching the text, and growing needs no second
 * hashing. */
#include "support/intern.h"

#include <sys/random.h>
#include <time.h>
#include <xxhash.h>

enum { FIRST_SLOTS = 256 };

static uint64_t random_seed(const Intern *table) {
  uint64_t seed;
  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed)
    return seed;
  struct timespec now = {0};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)(uintptr_t)table ^ (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec;
}

void intern_init(Intern *table) { *table = (Intern){.seed = random_seed(table)}; }

void intern_release(Intern *table) {
  arena_release(&table->arena);
  xfree(table->strings);
  xfree(table->slots);
  *table = (Intern){0};
}

static uint32_t hash_text(const Intern *table, StrView text) {
  return (uint32_t)XXH3_64bits_withSeed(text.size ? text.data : "", text.size, table->seed);
}

static uint64_t make_slot(uint32_t hash, uint32_t id) { return (uint64_t)hash << 32 | id; }
static uint32_t slot_hash(uint64_t slot) { return (uint32_t)(slot >> 32); }
static uint32_t slot_id(uint64_t slot) { return (uint32_t)slot; }

/* Where text is, or the empty slot where it would go. slot_count must not be 0. */
static uint32_t find_slot(const Intern *table, StrView text, uint32_t hash) {
  uint32_t mask = table->slot_count - 1, i = hash & mask;
  for (; table->slots[i]; i = (i + 1) & mask) {
    uint64_t slot = table->slots[i];
    if (slot_hash(slot) == hash && sv_eq(table->strings[slot_id(slot)], text))
      break;
  }
  return i;
}

/* At most 2/3 of the slots are used. */
static bool has_room(uint64_t count, uint32_t slot_count) { return count + count / 2 < slot_count; }

static void grow_slots(Intern *table, uint64_t wanted) {
  uint32_t count = table->slot_count ? table->slot_count : FIRST_SLOTS;
  while (!has_room(wanted, count) && count <= UINT32_MAX / 2)
    count *= 2;
  uint32_t mask = count - 1;
  uint64_t *slots = xcalloc(count * sizeof *slots);
  for (uint32_t from = 0; from < table->slot_count; from++) {
    uint64_t slot = table->slots[from];
    if (!slot)
      continue;
    uint32_t i = slot_hash(slot) & mask;
    while (slots[i])
      i = (i + 1) & mask;
    slots[i] = slot;
  }
  xfree(table->slots);
  table->slots = slots;
  table->slot_count = count;
}

void intern_expect(Intern *table, uint64_t more) {
  uint64_t wanted = table->count + more;
  if (!has_room(wanted, table->slot_count))
    grow_slots(table, wanted);
}

uint32_t intern_add(Intern *table, StrView text) {
  if (!has_room(table->count, table->slot_count))
    grow_slots(table, table->count);
  uint32_t hash = hash_text(table, text), i = find_slot(table, text, hash);
  if (table->slots[i])
    return slot_id(table->slots[i]);
  uint32_t id = table->count + 1;
  table->strings =
      pool_reserve(table->strings, &table->capacity, (uint64_t)id + 1, sizeof *table->strings);
  table->strings[0] = SV("");
  table->strings[id] = (StrView){arena_strdup(&table->arena, text), text.size};
  table->slots[i] = make_slot(hash, id);
  table->count = id;
  return id;
}

uint32_t intern_find(const Intern *table, StrView text) {
  if (!table->slot_count)
    return 0;
  return slot_id(table->slots[find_slot(table, text, hash_text(table, text))]);
}

StrView intern_get(const Intern *table, uint32_t id) {
  if (id == 0)
    return SV("");
  if (id > table->count)
    BUG("string %u of %u", id, table->count);
  return table->strings[id];
}

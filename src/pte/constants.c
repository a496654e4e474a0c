/* See constants.h. */
#include "pte/constants.h"

#include <xxhash.h>

#include "pte/schema.h"

enum { SAMPLE = 1024 }; /* bytes at the front, the middle and the end of a constant */

void constant_pool_init(ConstantPool *pool, uint64_t seed) {
  *pool = (ConstantPool){.seed = seed};
  pool->items = pool_reserve(NULL, &pool->capacity, 1, sizeof *pool->items);
  pool->items[0] = (PooledConstant){0};
  pool->count = 1;
}

void constant_pool_release(ConstantPool *pool) {
  xfree(pool->items);
  xfree(pool->slots);
  *pool = (ConstantPool){0};
}

static void sample_key(const ConstantPool *pool, Constant c, uint64_t key[2]) {
  uint8_t sample[3 * SAMPLE];
  const uint8_t *data = c.data;
  uint64_t size = c.size;
  if (size > sizeof sample) {
    memcpy(sample, data, SAMPLE);
    memcpy(sample + SAMPLE, data + size / 2 - SAMPLE / 2, SAMPLE);
    memcpy(sample + 2 * SAMPLE, data + size - SAMPLE, SAMPLE);
    data = sample;
    size = sizeof sample;
  }
  XXH128_hash_t h = XXH3_128bits_withSeed(data, size, pool->seed);
  key[0] = h.low64 ^ c.size;
  key[1] = h.high64 ^ 1; /* never the key of a whole */
}

static void full_key(const ConstantPool *pool, Constant c, uint64_t key[2]) {
  XXH128_hash_t h = XXH3_128bits_withSeed(c.data, c.size, pool->seed);
  key[0] = h.low64;
  key[1] = h.high64;
}

static void grow(ConstantPool *pool) {
  uint32_t count = pool->slot_count ? pool->slot_count * 2 : 64;
  PoolSlot *slots = xrealloc(NULL, count * sizeof *slots);
  memset(slots, 0, count * sizeof *slots);
  for (uint32_t i = 0; i < pool->slot_count; i++) {
    if (!pool->slots[i].constant)
      continue;
    uint32_t at = (uint32_t)pool->slots[i].key[0] & (count - 1);
    while (slots[at].constant)
      at = (at + 1) & (count - 1);
    slots[at] = pool->slots[i];
  }
  xfree(pool->slots);
  pool->slots = slots;
  pool->slot_count = count;
}

bool constant_same(Constant a, Constant b) {
  return a.size == b.size &&
         (a.size == 0 || a.data == b.data || memcmp(a.data, b.data, a.size) == 0);
}

/* The slot of a key. equal_to: NULL, or the bytes that the constant in the slot must equal. */
static PoolSlot *find(ConstantPool *pool, const uint64_t key[2], const Constant *equal_to) {
  if (pool->slot_used * 2 >= pool->slot_count)
    grow(pool);
  uint32_t at = (uint32_t)key[0] & (pool->slot_count - 1);
  for (; pool->slots[at].constant; at = (at + 1) & (pool->slot_count - 1)) {
    PoolSlot *s = &pool->slots[at];
    if (s->key[0] == key[0] && s->key[1] == key[1] &&
        (!equal_to || constant_same(pool->items[s->constant].bytes, *equal_to)))
      return s;
  }
  return &pool->slots[at];
}

static void fill(ConstantPool *pool, PoolSlot *slot, const uint64_t key[2], uint32_t constant) {
  *slot = (PoolSlot){{key[0], key[1]}, constant};
  pool->slot_used++;
}

static uint32_t append(ConstantPool *pool, Constant bytes) {
  pool->items =
      pool_reserve(pool->items, &pool->capacity, (uint64_t)pool->count + 1, sizeof *pool->items);
  uint64_t offset = align_up(pool->segment_size, PTE_TENSOR_ALIGNMENT);
  pool->items[pool->count] = (PooledConstant){.bytes = bytes, .offset = offset};
  pool->segment_size = offset + bytes.size;
  return pool->count++;
}

/* The slot of the constant with these bytes, or a free one for key. */
static PoolSlot *look_up(ConstantPool *pool, Constant bytes, uint64_t key[2], bool *is_full) {
  *is_full = false;
  sample_key(pool, bytes, key);
  PoolSlot *slot = find(pool, key, NULL);
  uint32_t first = slot->constant;
  if (!first ||
      (bytes.data == pool->items[first].bytes.data && bytes.size == pool->items[first].bytes.size))
    return slot;
  if (!pool->items[first].full_key) {
    full_key(pool, pool->items[first].bytes, key);
    slot = find(pool, key, &pool->items[first].bytes);
    if (!slot->constant)
      fill(pool, slot, key, first);
    pool->items[first].full_key = true;
  }
  *is_full = true;
  full_key(pool, bytes, key);
  return find(pool, key, &bytes);
}

uint32_t constant_pool_add(ConstantPool *pool, Constant bytes) {
  uint64_t key[2];
  bool is_full;
  PoolSlot *slot = look_up(pool, bytes, key, &is_full);
  if (slot->constant)
    return slot->constant;
  uint32_t index = append(pool, bytes);
  pool->items[index].full_key = is_full;
  fill(pool, slot, key, index);
  return index;
}

uint32_t constant_pool_find(ConstantPool *pool, Constant bytes) {
  uint64_t key[2];
  bool is_full;
  return look_up(pool, bytes, key, &is_full)->constant;
}

uint32_t constant_pool_zeros(ConstantPool *pool, uint64_t size) {
  if (!pool->zeros)
    pool->zeros = append(pool, (Constant){0});
  if (size > pool->zero_size)
    pool->zero_size = size;
  return pool->zeros;
}

uint64_t constant_pool_offset(const ConstantPool *pool, uint32_t item) {
  return item && item == pool->zeros ? align_up(pool->segment_size, PTE_TENSOR_ALIGNMENT)
                                     : pool->items[item].offset;
}

uint64_t constant_pool_size(const ConstantPool *pool) {
  if (pool->zeros)
    return constant_pool_offset(pool, pool->zeros) + pool->zero_size;
  return pool->count > 1 && pool->segment_size == 0 ? PTE_TENSOR_ALIGNMENT : pool->segment_size;
}

void constant_pool_write(const ConstantPool *pool, AtomicFile *file) {
  uint64_t base = file->offset;
  for (uint32_t i = 1; i < pool->count; i++) {
    const PooledConstant *c = &pool->items[i];
    if (c->bytes.size == 0)
      continue;
    atomic_file_pad(file, base + c->offset);
    if (c->bytes.file)
      atomic_file_copy(file, c->bytes.file, c->bytes.file_offset, c->bytes.size);
    else
      atomic_file_write(file, c->bytes.data, c->bytes.size);
  }
  atomic_file_pad(file, base + constant_pool_size(pool));
}

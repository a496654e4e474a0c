/* See constants.h. */
#include "pte/constants.h"

#include <xxhash.h>

#include "ir/transform.h"
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

static void sample_key(const ConstantPool *pool, const Constant *c, uint64_t key[2]) {
  uint8_t sample[3 * SAMPLE];
  const uint8_t *data = c->data;
  uint64_t size = c->size;
  if (size > sizeof sample) {
    constant_read(c, 0, SAMPLE, sample);
    constant_read(c, size / 2 - SAMPLE / 2, SAMPLE, sample + SAMPLE);
    constant_read(c, size - SAMPLE, SAMPLE, sample + 2 * SAMPLE);
    data = sample;
    size = sizeof sample;
  } else if (c->transform) {
    constant_read(c, 0, size, sample);
    data = sample;
  }
  if (c->transform)
    constant_drop_pages(&c->transform->source);
  XXH128_hash_t h = XXH3_128bits_withSeed(data, size, pool->seed);
  key[0] = h.low64 ^ c->size;
  key[1] = h.high64 ^ 1; /* never the key of a whole */
}

static void full_key(const ConstantPool *pool, const Constant *c, uint64_t key[2]) {
  constant_hash128(c, pool->seed, key);
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

/* The slot of a key. equal_to: NULL, or the bytes that the constant in the slot must equal. */
static PoolSlot *find(ConstantPool *pool, const uint64_t key[2], const Constant *equal_to) {
  if (pool->slot_used * 2 >= pool->slot_count)
    grow(pool);
  uint32_t at = (uint32_t)key[0] & (pool->slot_count - 1);
  for (; pool->slots[at].constant; at = (at + 1) & (pool->slot_count - 1)) {
    PoolSlot *s = &pool->slots[at];
    if (s->key[0] == key[0] && s->key[1] == key[1] &&
        (!equal_to || constant_same(&pool->items[s->constant].bytes, equal_to)))
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

static bool same_place(const Constant *a, const Constant *b) {
  return a->data == b->data && a->transform == b->transform && a->size == b->size;
}

/* The slot of the constant with these bytes, or a free one for key. */
static PoolSlot *look_up(ConstantPool *pool, Constant bytes, uint64_t key[2], bool *is_full) {
  *is_full = false;
  sample_key(pool, &bytes, key);
  PoolSlot *slot = find(pool, key, NULL);
  uint32_t first = slot->constant;
  if (!first || same_place(&bytes, &pool->items[first].bytes))
    return slot;
  if (!pool->items[first].full_key) {
    full_key(pool, &pool->items[first].bytes, key);
    slot = find(pool, key, &pool->items[first].bytes);
    if (!slot->constant)
      fill(pool, slot, key, first);
    pool->items[first].full_key = true;
  }
  *is_full = true;
  full_key(pool, &bytes, key);
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

static void write_piece(void *user, const uint8_t *bytes, uint64_t size) {
  atomic_file_write(user, bytes, size);
}

void constant_write(const Constant *c, AtomicFile *file) {
  if (c->file)
    atomic_file_copy(file, c->file, c->file_offset, c->size);
  else
    constant_each(c, write_piece, file);
}

void constant_pool_write(const ConstantPool *pool, AtomicFile *file) {
  uint64_t base = file->offset;
  for (uint32_t i = 1; i < pool->count; i++) {
    const PooledConstant *c = &pool->items[i];
    if (c->bytes.size == 0)
      continue;
    atomic_file_pad(file, base + c->offset);
    constant_write(&c->bytes, file);
  }
  atomic_file_pad(file, base + constant_pool_size(pool));
}

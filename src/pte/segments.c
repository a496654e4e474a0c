/* See segments.h. */
#include "pte/segments.h"

#include <xxhash.h>

#include "ir/transform.h"
#include "pte/schema.h"

void segments_init(SegmentList *list, Arena *arena, uint64_t seed) {
  *list = (SegmentList){
      .keys = keymap_make(arena, seed), .blobs = keymap_make(arena, seed), .arena = arena};
}

void segments_release(SegmentList *list) { xfree(list->items); }

/* Returns the number of items. */
static uint32_t append(SegmentList *list, Segment segment) {
  POOL_PUSH(list->items, list->count, list->capacity, segment);
  return list->count;
}

uint32_t segments_add_blob(SegmentList *list, Constant bytes) {
  XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.data, (size_t)bytes.size, list->blobs.seed);
  uint32_t *slot, known = keymap_get(&list->blobs, &hash, sizeof hash, &slot);
  if (known && constant_same(&list->items[known - 1].bytes, &bytes))
    return SEGMENTS_FIRST - 1 + known;
  *slot = append(list, (Segment){.bytes = bytes, .alignment = PTE_SEGMENT_ALIGNMENT});
  return SEGMENTS_FIRST - 1 + *slot;
}

bool segments_add_named(SegmentList *list, StrView key, Constant bytes) {
  uint32_t *slot, known = keymap_get(&list->keys, key.data, (uint32_t)key.size, &slot);
  if (known)
    return constant_same(&list->items[known - 1].bytes, &bytes);
  list->named++;
  *slot = append(list, (Segment){.bytes = bytes,
                                 .key = arena_strdup(list->arena, key),
                                 .alignment = PTE_TENSOR_ALIGNMENT});
  return true;
}

/* Whether kernels may read the same bytes: those that are only permuted are for a delegate. */
static bool may_be_shared(const Segment *s) {
  return s->key && !(s->bytes.transform && s->bytes.transform->code == TRANSFORM_COPY);
}

uint64_t segments_place(SegmentList *list, ConstantPool *constants, uint64_t used) {
  for (uint32_t i = 0; i < list->count; i++) {
    Segment *s = &list->items[i];
    uint32_t same = may_be_shared(s) ? constant_pool_find(constants, s->bytes) : 0;
    s->shared = same != 0;
    if (s->shared) {
      s->offset = constant_pool_offset(constants, same);
      continue;
    }
    s->offset = align_up(used, s->alignment);
    used = s->offset + s->bytes.size;
  }
  return used;
}

void segments_write(const SegmentList *list, AtomicFile *file, uint64_t base) {
  for (uint32_t i = 0; i < list->count; i++) {
    const Segment *s = &list->items[i];
    if (s->shared)
      continue;
    atomic_file_pad(file, base + s->offset);
    constant_write(&s->bytes, file);
  }
}

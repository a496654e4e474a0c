/* See flatbuffer.h. */
#include "pte/flatbuffer.h"

#include "support/arena.h"
#include "support/number.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are written in host order");

void fb_init(FlatBuilder *b) { *b = (FlatBuilder){.alignment = 4}; }

void fb_release(FlatBuilder *b) {
  xfree(b->data);
  xfree(b->vtables);
  *b = (FlatBuilder){0};
}

/* Room for extra more bytes in front; false when the buffer would grow too large. */
static bool reserve(FlatBuilder *b, uint64_t extra) {
  if (b->overflow || extra > FB_MAX_SIZE - b->size) {
    b->overflow = true;
    return false;
  }
  uint64_t needed = b->size + extra;
  if (needed <= b->capacity)
    return true;
  uint64_t capacity = b->capacity ? b->capacity : 4096;
  while (capacity < needed)
    capacity *= 2;
  uint8_t *data = xrealloc(NULL, capacity);
  if (b->size)
    memcpy(data + (capacity - b->size), fb_bytes(b), b->size);
  xfree(b->data);
  b->data = data;
  b->capacity = (uint32_t)capacity;
  return true;
}

void fb_expect(FlatBuilder *b, uint64_t size) {
  if (size <= FB_MAX_SIZE - b->size)
    (void)reserve(b, size);
}

/* Takes size bytes in front; the caller reserved them. */
static uint8_t *push(FlatBuilder *b, uint32_t size) {
  b->size += size;
  return b->data + (b->capacity - b->size);
}

/* Pads with zeros so that the front is aligned once size more bytes are written. Distances from the
 * end are what is aligned: the size of the whole is made a multiple of the largest alignment at the
 * end. */
static bool align_for(FlatBuilder *b, uint64_t size, uint32_t alignment) {
  if (alignment > b->alignment)
    b->alignment = alignment;
  uint64_t misfit = (b->size + size) & (alignment - 1);
  uint32_t padding = misfit ? alignment - (uint32_t)misfit : 0;
  if (!reserve(b, padding + size))
    return false;
  if (padding)
    memset(push(b, padding), 0, padding);
  return true;
}

static void push_u32(FlatBuilder *b, uint32_t value) { memcpy(push(b, 4), &value, 4); }

/* tail: bytes after the elements, 1 for a string's NUL. */
static FbRef vector(FlatBuilder *b, const void *items, uint32_t count, uint32_t item_size,
                    uint32_t alignment, uint32_t tail) {
  if (b->in_table)
    BUG("a vector inside of a table");
  uint64_t bytes = (uint64_t)count * item_size + tail;
  if (!align_for(b, bytes, alignment < 4 ? 4 : alignment) || !reserve(b, bytes + 4))
    return 0;
  uint8_t *at = push(b, (uint32_t)bytes);
  if (count)
    memcpy(at, items, bytes - tail);
  memset(at + bytes - tail, 0, tail);
  push_u32(b, count);
  return b->size;
}

FbRef fb_string(FlatBuilder *b, StrView text) {
  if (text.size > FB_MAX_SIZE) {
    b->overflow = true;
    return 0;
  }
  return vector(b, text.data, (uint32_t)text.size, 1, 1, 1);
}
FbRef fb_vector_bytes(FlatBuilder *b, const uint8_t *items, uint32_t count, uint32_t alignment) {
  return vector(b, items, count, 1, alignment, 0);
}
FbRef fb_vector_u32(FlatBuilder *b, const uint32_t *items, uint32_t count) {
  return vector(b, items, count, 4, 4, 0);
}
FbRef fb_vector_i32(FlatBuilder *b, const int32_t *items, uint32_t count) {
  return vector(b, items, count, 4, 4, 0);
}
FbRef fb_vector_i64(FlatBuilder *b, const int64_t *items, uint32_t count) {
  return vector(b, items, count, 8, 8, 0);
}
FbRef fb_vector_f64(FlatBuilder *b, const double *items, uint32_t count) {
  return vector(b, items, count, 8, 8, 0);
}

FbRef fb_vector_refs(FlatBuilder *b, const FbRef *items, uint32_t count) {
  if (b->in_table)
    BUG("a vector inside of a table");
  uint64_t bytes = (uint64_t)count * 4;
  if (!align_for(b, bytes, 4) || !reserve(b, bytes + 4))
    return 0;
  for (uint32_t i = count; i-- > 0;)
    push_u32(b, b->size + 4 - items[i]);
  push_u32(b, count);
  return b->size;
}

void fb_table_begin(FlatBuilder *b) {
  if (b->in_table)
    BUG("a table inside of a table");
  b->in_table = true;
  b->field_count = 0;
}

static void field(FlatBuilder *b, uint16_t id, uint8_t size, bool is_ref, uint64_t bits) {
  if (!b->in_table || id >= FB_MAX_FIELDS || b->field_count == FB_MAX_FIELDS)
    BUG("field %u", id);
  b->fields[b->field_count++] = (FbField){.id = id, .size = size, .is_ref = is_ref, .bits = bits};
}

void fb_field_u8(FlatBuilder *b, uint16_t id, uint8_t value, uint8_t fallback) {
  if (value != fallback)
    field(b, id, 1, false, value);
}
void fb_field_u16(FlatBuilder *b, uint16_t id, uint16_t value, uint16_t fallback) {
  if (value != fallback)
    field(b, id, 2, false, value);
}
void fb_field_u32(FlatBuilder *b, uint16_t id, uint32_t value, uint32_t fallback) {
  if (value != fallback)
    field(b, id, 4, false, value);
}
void fb_field_i32(FlatBuilder *b, uint16_t id, int32_t value, int32_t fallback) {
  fb_field_u32(b, id, (uint32_t)value, (uint32_t)fallback);
}
void fb_field_u64(FlatBuilder *b, uint16_t id, uint64_t value, uint64_t fallback) {
  if (value != fallback)
    field(b, id, 8, false, value);
}
void fb_field_f64(FlatBuilder *b, uint16_t id, double value, double fallback) {
  fb_field_u64(b, id, double_bits(value), double_bits(fallback));
}
void fb_field_ref(FlatBuilder *b, uint16_t id, FbRef target) {
  if (target)
    field(b, id, 4, true, target);
}
void fb_field_union(FlatBuilder *b, uint16_t id, uint8_t code, FbRef target) {
  fb_field_u8(b, id, code, 0);
  fb_field_ref(b, (uint16_t)(id + 1), target);
}

/* Places the fields behind the soffset, those of 4 bytes first, then 8, 2 and 1. vtable: its two
 * heads and one entry a field id, 0 where there is no field. Returns the size of the table. */
static uint32_t lay_out(const FlatBuilder *b, uint16_t *vtable, uint32_t *vtable_size) {
  static const uint8_t order[] = {4, 8, 2, 1};
  uint32_t at = 4, entries = 0, placed = 0;
  for (uint32_t i = 0; i < b->field_count; i++)
    entries = b->fields[i].id >= entries ? b->fields[i].id + 1u : entries;
  memset(vtable, 0, (2 + entries) * sizeof *vtable);
  for (size_t k = 0; placed < b->field_count; k++) {
    for (uint32_t i = 0; i < b->field_count; i++) {
      const FbField *f = &b->fields[i];
      if (f->size != order[k])
        continue;
      at = (uint32_t)align_up(at, f->size);
      vtable[2 + f->id] = (uint16_t)at;
      at += f->size;
      placed++;
    }
  }
  *vtable_size = (2 + entries) * 2;
  vtable[0] = (uint16_t)*vtable_size;
  vtable[1] = (uint16_t)at;
  return at;
}

/* The place of an equal vtable, written before or now in front. */
static FbRef find_vtable(FlatBuilder *b, const uint16_t *vtable, uint32_t size) {
  for (uint32_t i = b->vtable_count; i-- > 0;) {
    const uint8_t *old = b->data + (b->capacity - b->vtables[i]);
    uint16_t old_size;
    memcpy(&old_size, old, 2);
    if (old_size == size && memcmp(old, vtable, size) == 0)
      return b->vtables[i];
  }
  if (!reserve(b, size))
    return 0;
  memcpy(push(b, size), vtable, size);
  POOL_PUSH(b->vtables, b->vtable_count, b->vtable_capacity, b->size);
  return b->size;
}

FbRef fb_table_end(FlatBuilder *b) {
  if (!b->in_table)
    BUG("the end of no table");
  b->in_table = false;
  uint16_t vtable[2 + FB_MAX_FIELDS];
  uint32_t vtable_size, size = lay_out(b, vtable, &vtable_size), alignment = 4;
  for (uint32_t i = 0; i < b->field_count; i++)
    if (b->fields[i].size > alignment)
      alignment = b->fields[i].size;
  if (!align_for(b, size, alignment))
    return 0;
  memset(push(b, size), 0, size);
  FbRef table = b->size;
  for (uint32_t i = 0; i < b->field_count; i++) {
    const FbField *f = &b->fields[i];
    uint32_t at = vtable[2 + f->id];
    uint64_t bits = f->is_ref ? table - at - f->bits : f->bits;
    memcpy(b->data + (b->capacity - table) + at, &bits, f->size);
  }
  FbRef vtable_at = find_vtable(b, vtable, vtable_size);
  if (!vtable_at)
    return 0;
  int32_t soffset = (int32_t)(vtable_at - table);
  memcpy(b->data + (b->capacity - table), &soffset, 4);
  b->table_count++;
  return table;
}

uint8_t *fb_finish(FlatBuilder *b, FbRef root, const char *identifier, uint32_t gap) {
  uint32_t head = 8 + gap;
  if (!root || !align_for(b, head, b->alignment))
    return NULL;
  uint8_t *at = push(b, head);
  memset(at, 0, head);
  uint32_t offset = b->size - root;
  memcpy(at, &offset, 4);
  memcpy(at + 4, identifier, 4);
  return gap ? at + 8 : NULL;
}

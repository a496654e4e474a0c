/* Writing FlatBuffers, for any schema: tables, vectors, strings, unions.
 *
 * The buffer grows from its end to its front, so that children are written before their parents and
 * all references point forward. A finished object is named by an FbRef: its distance from the end
 * of the buffer, which growth does not change. The fields of a table are collected first and laid
 * out by size when the table ends; tables with the same fields therefore share one vtable. The
 * bytes depend on nothing but the calls made.
 *
 * Format: flatbuffers.dev, "FlatBuffers internals" (little endian; uoffset and soffset of 4 bytes,
 * vtable of u16). */
#ifndef ETC_PTE_FLATBUFFER_H
#define ETC_PTE_FLATBUFFER_H

#include "support/base.h"

typedef uint32_t FbRef; /* 0: no object */

enum {
  FB_MAX_FIELDS = 20, /* XNNConv2d of the XNNPACK delegate has that many */
  FB_MAX_SIZE =
      0x7fffffff - 64 /* bytes; offsets are 31 bits wide for readers that take them as signed */
};

typedef struct FbField {
  uint16_t id;
  uint8_t size; /* 1, 2, 4 or 8 bytes */
  bool is_ref;
  uint64_t bits; /* the value, or the FbRef */
} FbField;

typedef struct FlatBuilder {
  uint8_t *data; /* capacity bytes, the last size of them are used */
  uint32_t capacity, size;
  uint32_t alignment; /* the largest asked for */
  FbField fields[FB_MAX_FIELDS];
  uint32_t field_count;
  bool in_table;
  FbRef *vtables; /* distinct ones */
  uint32_t vtable_count, vtable_capacity;
  uint32_t table_count; /* tables written: what a verifying reader counts when every table is used
                           once */
  bool overflow;        /* the buffer would pass FB_MAX_SIZE: nothing is written any more */
} FlatBuilder;

void fb_init(FlatBuilder *b);
/* About so many more bytes will come: what is there is copied once instead of with each growth. */
void fb_expect(FlatBuilder *b, uint64_t size);
void fb_release(FlatBuilder *b);

/* Vectors of count elements. Strings end with a NUL that is not counted. bytes: aligned to
 * alignment (a power of two <= 64). */
FbRef fb_string(FlatBuilder *b, StrView text);
FbRef fb_vector_bytes(FlatBuilder *b, const uint8_t *items, uint32_t count, uint32_t alignment);
FbRef fb_vector_u32(FlatBuilder *b, const uint32_t *items, uint32_t count);
FbRef fb_vector_i32(FlatBuilder *b, const int32_t *items, uint32_t count);
FbRef fb_vector_i64(FlatBuilder *b, const int64_t *items, uint32_t count);
FbRef fb_vector_f64(FlatBuilder *b, const double *items, uint32_t count);
FbRef fb_vector_refs(FlatBuilder *b, const FbRef *items, uint32_t count);

/* A table: begin, fields in any order (id as declared in the schema, each once), end. Tables do not
 * nest: children come first. A scalar equal to fallback, the schema's default, is left out; a
 * reference of 0 too. */
void fb_table_begin(FlatBuilder *b);
void fb_field_u8(FlatBuilder *b, uint16_t id, uint8_t value, uint8_t fallback);
void fb_field_u16(FlatBuilder *b, uint16_t id, uint16_t value, uint16_t fallback);
void fb_field_u32(FlatBuilder *b, uint16_t id, uint32_t value, uint32_t fallback);
void fb_field_i32(FlatBuilder *b, uint16_t id, int32_t value, int32_t fallback);
void fb_field_u64(FlatBuilder *b, uint16_t id, uint64_t value, uint64_t fallback);
void fb_field_f64(FlatBuilder *b, uint16_t id, double value,
                  double fallback); /* compared by bits */
void fb_field_ref(FlatBuilder *b, uint16_t id, FbRef target);
/* A union takes two ids: the type code at id, the value at id + 1. */
void fb_field_union(FlatBuilder *b, uint16_t id, uint8_t code, FbRef target);
FbRef fb_table_end(FlatBuilder *b);

/* Writes the root offset and the four-byte identifier in front, and between them and the rest a gap
 * of gap bytes of zeros, whose place is returned (file offset 8) for the caller to fill; NULL when
 * gap is 0 or after overflow. The size of the whole is then a multiple of the largest alignment. */
uint8_t *fb_finish(FlatBuilder *b, FbRef root, const char *identifier, uint32_t gap);
static inline const uint8_t *fb_bytes(const FlatBuilder *b) {
  return b->data + (b->capacity - b->size);
}

#endif

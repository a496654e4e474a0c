/* Reading FlatBuffers that nobody has checked.
 *
 * Every offset is checked against the buffer, and aligned as FlatBuffers' own verifier wants it,
 * before it is followed; loads go through memcpy. Nothing is checked ahead of its use. The first
 * fault is kept in the reader; after it (and for absent objects) all accessors give defaults and
 * empty vectors, so that straight code may look at the fault once at its end. */
#ifndef ETC_PTE_FLATREAD_H
#define ETC_PTE_FLATREAD_H

#include "support/base.h"

/* Tables that a reader may visit: the default of FlatBuffers' verifier, which the runtime uses. */
#define FB_MAX_VISITS 1000000

typedef struct FbReader {
  const uint8_t *data;
  uint32_t size;
  uint32_t visits;   /* tables entered so far */
  const char *fault; /* NULL: none; else what is wrong, static text */
  uint32_t fault_at; /* byte offset of the fault */
} FbReader;

typedef struct FbTable {
  FbReader *r;
  uint32_t at; /* 0: absent */
  uint32_t vtable;
  uint16_t vtable_size, size;
} FbTable;

typedef struct FbVector {
  FbReader *r;
  uint32_t at; /* of the first element */
  uint32_t count;
  bool present;
} FbVector;

FbReader fb_reader(const uint8_t *data, uint64_t size); /* size <= 2^31 - 1, else a fault */
FbTable fb_root(FbReader *r);

static inline bool fb_present(FbTable t) { return t.at != 0; }
uint8_t fb_u8(FbTable t, uint16_t id, uint8_t fallback);
uint16_t fb_u16(FbTable t, uint16_t id, uint16_t fallback);
uint32_t fb_u32(FbTable t, uint16_t id, uint32_t fallback);
int32_t fb_i32(FbTable t, uint16_t id, int32_t fallback);
uint64_t fb_u64(FbTable t, uint16_t id, uint64_t fallback);
float fb_f32(FbTable t, uint16_t id, float fallback);
double fb_f64(FbTable t, uint16_t id, double fallback);
FbTable fb_table(FbTable t, uint16_t id);
StrView fb_text(FbTable t, uint16_t id); /* absent: data NULL */
FbVector fb_tables(FbTable t,
                   uint16_t id); /* a vector of tables; more than FB_MAX_VISITS are a fault */
FbVector fb_vector(FbTable t, uint16_t id, uint32_t element_size); /* 1, 4 or 8 */

/* Elements; i < count is the caller's business (BUG). */
uint8_t fb_item_u8(FbVector v, uint32_t i);
int32_t fb_item_i32(FbVector v, uint32_t i);
uint64_t fb_item_u64(FbVector v, uint32_t i);
FbTable fb_item_table(FbVector v, uint32_t i);

#endif

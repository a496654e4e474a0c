/* The segments of a program that delegates have: their bytes, and what they find by name. Those of
 * constants and states come before. */
#ifndef ETC_PTE_SEGMENTS_H
#define ETC_PTE_SEGMENTS_H

#include "ir/graph.h"
#include "pte/constants.h"
#include "support/keymap.h"

enum { SEGMENTS_FIRST = 2 }; /* index of the first of them in the program */

typedef struct Segment {
  Constant bytes;
  const char *key;    /* of named data; NULL: the bytes of a delegate */
  uint64_t alignment; /* of its offset */
  uint64_t offset;    /* from the segment base; set by segments_place */
  bool shared;        /* lies within the segment of constants; set by segments_place */
} Segment;

typedef struct SegmentList {
  Segment *items; /* item i is segment SEGMENTS_FIRST + i */
  uint32_t count, capacity, named;
  KeyMap keys, blobs; /* blobs by hash: item + 1 */
  Arena *arena;
} SegmentList;

void segments_init(SegmentList *list, Arena *arena, uint64_t seed);
void segments_release(SegmentList *list);
/* The segment's index; equal bytes are one segment. The bytes must stay where they are until the
 * segments are written. */
uint32_t segments_add_blob(SegmentList *list, Constant bytes);
/* Names bytes, once a key. False when the key names others already. */
bool segments_add_named(SegmentList *list, StrView key, Constant bytes);
/* Offsets behind `used` bytes of constants; returns the size of the whole. Named data that a kernel
 * reads as well (an embedding that is a matrix, too) lie where constants, which start at the
 * segment base, have them: segments may overlap. */
uint64_t segments_place(SegmentList *list, ConstantPool *constants, uint64_t used);
/* Writes them; the segment base is at file offset base. */
void segments_write(const SegmentList *list, AtomicFile *file, uint64_t base);

#endif

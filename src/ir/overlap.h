/* Blocks of memory that are in use at the same time and share bytes: what no plan may have. */
#ifndef ETC_IR_OVERLAP_H
#define ETC_IR_OVERLAP_H

#include "support/arena.h"

typedef struct MemoryBlock {
  uint64_t offset, size; /* without bytes it overlaps nothing */
  uint32_t arena;
  uint32_t begin, end; /* times, both included */
} MemoryBlock;

/* `block` begins while `other` is in use and shares bytes with it. */
typedef void OverlapReport(void *user, uint32_t block, uint32_t other);

/* Reports each block, in order of begin and then of index, that overlaps one before it in that
 * order: once, with the one of them that lies lowest. Takes n log n time, also for blocks made to
 * be slow. end: greater than all times. */
void overlap_find(const MemoryBlock *blocks, uint32_t count, uint32_t end, Arena *scratch,
                  OverlapReport *report, void *user);

#endif

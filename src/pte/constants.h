/* The constants of a program: equal bytes are stored once, across all methods; each starts on a
 * multiple of 16. The first contents of its states are kept the same way, in a pool of their own.
 *
 * Most weights differ in their first bytes: a sample of each is hashed, and all of it only when a
 * sample comes again. */
#ifndef ETC_PTE_CONSTANTS_H
#define ETC_PTE_CONSTANTS_H

#include "ir/graph.h"

typedef struct PooledConstant {
  Constant bytes;
  uint64_t offset; /* in the segment */
  bool full_key;   /* also registered by the hash of all its bytes */
} PooledConstant;

typedef struct PoolSlot {
  uint64_t key[2];
  uint32_t constant; /* 0: free */
} PoolSlot;

typedef struct ConstantPool {
  uint64_t seed;
  PooledConstant *items; /* [0] is a dummy, as data_buffer_idx 0 means "no constant" */
  uint32_t count, capacity;
  PoolSlot *slots;
  uint32_t slot_used, slot_count;
  uint64_t segment_size; /* bytes */
  uint32_t zeros;        /* the item that is zero_size zeros, 0 = none yet */
  uint64_t zero_size;
} ConstantPool;

/* Writes the bytes: by the kernel's copy when they are in a file, in pieces when they are computed.
 */
void constant_write(const Constant *c, AtomicFile *file);

void constant_pool_init(ConstantPool *pool, uint64_t seed);
void constant_pool_release(ConstantPool *pool);
/* The data_buffer_idx of these bytes; they must stay where they are until the pool is written. */
uint32_t constant_pool_add(ConstantPool *pool, Constant bytes);
/* The data_buffer_idx of these bytes, or 0 where they were not added. */
uint32_t constant_pool_find(ConstantPool *pool, Constant bytes);
/* The data_buffer_idx of size zeros or more: one run of them for all. They are the last of the
 * segment, so that its size is known when all was added. */
uint32_t constant_pool_zeros(ConstantPool *pool, uint64_t size);
/* Where an item starts in the segment; when all was added. */
uint64_t constant_pool_offset(const ConstantPool *pool, uint32_t item);
/* Bytes of the segment: 0 without constants, never 0 with constants (an empty segment is refused by
 * the runtime). */
uint64_t constant_pool_size(const ConstantPool *pool);
/* Writes the segment at the file's present offset. */
void constant_pool_write(const ConstantPool *pool, AtomicFile *file);

#endif

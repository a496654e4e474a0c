/* Bump allocation in blocks. A block starts at 64 KiB and doubles up to 4 MiB; a request over a
 * quarter of that gets a block of its own, put behind the newest one so that the free space there
 * is not lost.
 *
 * In builds with AddressSanitizer the free part of a block is poisoned, so that a read or write
 * past an allocation is seen as with malloc. */
#include "support/arena.h"

#include <stdarg.h>
#include <stdio.h>

enum { ALIGNMENT = 16, BLOCK_MIN = 1 << 16, BLOCK_MAX = 1 << 22, OWN_BLOCK = BLOCK_MAX / 4 };

struct ArenaBlock {
  ArenaBlock *older;
  size_t size; /* bytes after the header */
};

/* The header takes one aligned slot, so that what follows is aligned as malloc aligns. */
#define HEADER ((sizeof(ArenaBlock) + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1))

static ArenaBlock *block_new(Arena *arena, size_t size, bool zeroed) {
  ArenaBlock *block = zeroed ? xcalloc(HEADER + size) : xmalloc(HEADER + size);
  block->older = NULL;
  block->size = size;
  arena->total += HEADER + size;
  return block;
}

static char *block_data(ArenaBlock *block) { return (char *)block + HEADER; }

static void block_free(Arena *arena, ArenaBlock *block) {
  arena->total -= HEADER + block->size;
  ASAN_UNPOISON_MEMORY_REGION(block_data(block), block->size);
  xfree(block);
}

void arena_release(Arena *arena) {
  while (arena->blocks) {
    ArenaBlock *older = arena->blocks->older;
    block_free(arena, arena->blocks);
    arena->blocks = older;
  }
  *arena = (Arena){0};
}

void arena_reset(Arena *arena) {
  if (!arena->blocks)
    return;
  ArenaBlock *kept = arena->blocks;
  while (kept->older) {
    ArenaBlock *older = kept->older;
    kept->older = older->older;
    block_free(arena, older);
  }
  if (!arena->next) { /* only a request with a block of its own was ever made */
    arena_release(arena);
    return;
  }
  arena->next = block_data(kept);
  arena->end = arena->next + kept->size;
  ASAN_POISON_MEMORY_REGION(arena->next, kept->size);
}

/* A block for one large request, behind the newest block. */
static void *alloc_own_block(Arena *arena, size_t size, bool zeroed) {
  ArenaBlock *block = block_new(arena, size, zeroed);
  if (arena->blocks) {
    block->older = arena->blocks->older;
    arena->blocks->older = block;
  } else {
    arena->blocks = block;
  }
  return block_data(block);
}

static void add_block(Arena *arena, size_t slot) {
  size_t size = arena->next ? arena->blocks->size * 2 : BLOCK_MIN;
  while (size < slot) /* at most OWN_BLOCK, so this ends below BLOCK_MAX */
    size *= 2;
  if (size > BLOCK_MAX)
    size = BLOCK_MAX;
  ArenaBlock *block = block_new(arena, size, false);
  block->older = arena->blocks;
  arena->blocks = block;
  arena->next = block_data(block);
  arena->end = arena->next + size;
  ASAN_POISON_MEMORY_REGION(arena->next, size);
}

/* What an allocation of size bytes takes in a block: at least one slot, so that pointers are
 * unique. */
static size_t slot_size(size_t size) {
  if (size > PTRDIFF_MAX - HEADER - ALIGNMENT)
    memory_fail(size);
  return size == 0 ? ALIGNMENT : (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

static void *alloc_bytes(Arena *arena, size_t size, bool zeroed) {
  size_t slot = slot_size(size);
  if (slot > OWN_BLOCK)
    return alloc_own_block(arena, slot, zeroed);
  if (slot > (size_t)(arena->end - arena->next))
    add_block(arena, slot);
  char *p = arena->next;
  arena->next += slot;
  ASAN_UNPOISON_MEMORY_REGION(p, size);
  if (zeroed)
    memset(p, 0, size);
  return p;
}

void *arena_alloc(Arena *arena, size_t size) { return alloc_bytes(arena, size, false); }

void *arena_calloc(Arena *arena, size_t count, size_t size) {
  uint64_t bytes;
  if (!mul_u64(count, size, &bytes))
    memory_fail(SIZE_MAX);
  return alloc_bytes(arena, bytes, true);
}

void *arena_grow(Arena *arena, void *old, size_t old_size, size_t new_size) {
  if (!old)
    return arena_alloc(arena, new_size);
  if (new_size <= old_size)
    return old;
  size_t old_slot = slot_size(old_size), new_slot = slot_size(new_size);
  bool is_last = arena->next && (char *)old + old_slot == arena->next;
  if (is_last && new_slot - old_slot <= (size_t)(arena->end - arena->next)) {
    arena->next += new_slot - old_slot;
    ASAN_UNPOISON_MEMORY_REGION(old, new_size);
    return old;
  }
  void *p = arena_alloc(arena, new_size);
  if (old_size)
    memcpy(p, old, old_size);
  return p;
}

void *arena_push(Arena *arena, void *items, uint32_t count, size_t size) {
  bool full = (count & (count - 1)) == 0; /* it has room for a power of two, or none */
  return full ? arena_grow(arena, items, count * size, (count ? 2 * (size_t)count : 1) * size)
              : items;
}

char *arena_strdup(Arena *arena, StrView text) {
  char *copy = arena_alloc(arena, text.size + 1);
  if (text.size)
    memcpy(copy, text.data, text.size);
  copy[text.size] = '\0';
  return copy;
}

char *arena_vprintf(Arena *arena, const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  int size = vsnprintf(NULL, 0, format, args);
  if (size < 0)
    BUG("format '%s' cannot be printed", format);
  char *text = arena_alloc(arena, (size_t)size + 1);
  vsnprintf(text, (size_t)size + 1, format, again);
  va_end(again);
  return text;
}

char *arena_printf(Arena *arena, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *text = arena_vprintf(arena, format, args);
  va_end(args);
  return text;
}

/* Bump allocation in blocks. A block starts at 64 KiB and doubles up to 4 MiB; a request over a
 * quarter of that gets a block of its own, put behind the newest one so that the free space there
 * is not lost.
 *
 * In builds with AddressSanitizer the free part of a block is poisoned, so that a read or write
 * past an allocation is seen as with malloc. Builds with ETC_TEST_ALLOC count the requests to the
 * system and can make the n-th one fail. */
#include "support/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "support/files.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_POISON 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define ARENA_POISON 1
#endif
#if defined(ARENA_POISON)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

enum { ALIGNMENT = 16, BLOCK_MIN = 1 << 16, BLOCK_MAX = 1 << 22, OWN_BLOCK = BLOCK_MAX / 4 };

struct ArenaBlock {
  ArenaBlock *older;
  size_t size; /* bytes after the header */
};

/* The header takes one aligned slot, so that what follows is aligned as malloc aligns. */
#define HEADER ((sizeof(ArenaBlock) + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1))

ETC_NORETURN static void out_of_memory(size_t size) {
  fprintf(stderr, "etc: out of memory: a request for %zu bytes failed\n", size);
  atomic_file_remove_pending();
  exit(1);
}

#ifdef ETC_TEST_ALLOC
/* Whether this request is the one that ETC_FAIL_ALLOC names; requests count from 1. */
static bool must_fail(void) {
  static uint64_t requests; /* tests with failing requests run on one thread */
  const char *text = getenv("ETC_FAIL_ALLOC");
  return __atomic_add_fetch(&requests, 1, __ATOMIC_RELAXED) ==
         (text ? strtoull(text, NULL, 10) : 0);
}
#else
static bool must_fail(void) { return false; }
#endif

/* Pages that a large request touches come one by one, each with a trip into the kernel: asked for
 * large pages it gives hundreds at once. */
static void prefer_large_pages(void *p, size_t size) {
#ifdef MADV_HUGEPAGE
  enum { LARGE_PAGE = 1 << 21 };
  uintptr_t from = align_up((uintptr_t)p, LARGE_PAGE),
            to = ((uintptr_t)p + size) & ~(uintptr_t)(LARGE_PAGE - 1);
  if (from < to)
    (void)madvise((void *)from, to - from, MADV_HUGEPAGE); /* advice: it may be refused */
#else
  (void)p, (void)size;
#endif
}

/* The one place where memory is asked of the system. old is NULL when zeroed. */
static void *request(void *old, size_t size, bool zeroed) {
  void *p = NULL;
  if (size <= PTRDIFF_MAX && !must_fail())
    p = zeroed ? calloc(1, size) : realloc(old, size);
  if (!p)
    out_of_memory(size);
  prefer_large_pages(p, size);
  return p;
}

static ArenaBlock *block_new(Arena *arena, size_t size, bool zeroed) {
  ArenaBlock *block = request(NULL, HEADER + size, zeroed);
  block->older = NULL;
  block->size = size;
  arena->total += HEADER + size;
  return block;
}

static char *block_data(ArenaBlock *block) { return (char *)block + HEADER; }

static void block_free(Arena *arena, ArenaBlock *block) {
  arena->total -= HEADER + block->size;
  ASAN_UNPOISON_MEMORY_REGION(block_data(block), block->size);
  free(block);
}

void arena_init(Arena *arena) { *arena = (Arena){0}; }

void arena_release(Arena *arena) {
  while (arena->blocks) {
    ArenaBlock *older = arena->blocks->older;
    block_free(arena, arena->blocks);
    arena->blocks = older;
  }
  arena_init(arena);
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
    out_of_memory(size);
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
    out_of_memory(SIZE_MAX);
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

void *xrealloc(void *old, size_t size) { return request(old, size ? size : 1, false); }

void xfree(void *p) { free(p); }

void *pool_reserve(void *items, uint32_t *capacity, uint64_t needed, size_t elem_size) {
  if (needed <= *capacity)
    return items;
  uint64_t grown = (uint64_t)*capacity * 2, bytes;
  if (grown < 16)
    grown = 16;
  if (grown > UINT32_MAX)
    grown = UINT32_MAX;
  if (grown < needed)
    grown = needed;
  if (grown > UINT32_MAX || !mul_u64(grown, elem_size, &bytes))
    out_of_memory(SIZE_MAX);
  items = xrealloc(items, bytes);
  *capacity = (uint32_t)grown;
  return items;
}

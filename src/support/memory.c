/* See memory.h. Each block has a header with its place in the list of its scope. With
 * AddressSanitizer the header is out of bounds for all but the functions here that touch it.
 *
 * Builds with ETC_TEST_ALLOC count the requests to the system and can make the n-th one fail. */
#include "support/memory.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "support/files.h"

typedef struct MemoryBlock {
  struct MemoryBlock *next, **link; /* link: what points here; NULL: in no list */
  MemoryScope *scope;               /* or NULL */
  void (*end)(void *block);         /* or NULL */
} MemoryBlock;

/* A multiple of what malloc aligns to. */
enum { HEADER = 32, ALIGNMENT = 16 };
_Static_assert(sizeof(MemoryBlock) <= HEADER && HEADER % ALIGNMENT == 0, "header of a block");

/* What this thread is in the middle of. */
static _Thread_local struct {
  MemoryScope *scope;
  jmp_buf *target; /* of the nearest memory_try */
  size_t failed;   /* size of the request, on the way there */
  pthread_mutex_t *locked;
} now;

/* --- failure --- */

void memory_message(size_t size, char *text, size_t room) {
  if (size == SIZE_MAX)
    snprintf(text, room, "out of memory");
  else
    snprintf(text, room, "out of memory: a request for %zu bytes failed", size);
}

void memory_fail(size_t size) {
  if (now.locked)
    pthread_mutex_unlock(now.locked);
  if (now.target) {
    now.failed = size ? size : 1;
    longjmp(*now.target, 1);
  }
  char text[80];
  memory_message(size, text, sizeof text);
  fprintf(stderr, "etc: %s\n", text);
  atomic_file_remove_pending();
  exit(1);
}

size_t memory_try(void (*body)(void *user), void *user) {
  jmp_buf here, *const target = now.target;
  pthread_mutex_t *const locked = now.locked;
  MemoryScope *const scope = now.scope;
  size_t failed = 0;
  now.target = &here;
  now.locked = NULL;
  if (setjmp(here) == 0)
    body(user);
  else
    failed = now.failed;
  now.target = target;
  now.locked = locked;
  now.scope = scope;
  return failed;
}

void memory_lock(pthread_mutex_t *mutex) {
  if (now.locked)
    BUG("a second mutex is locked");
  pthread_mutex_lock(mutex);
  now.locked = mutex;
}

void memory_unlock(pthread_mutex_t *mutex) {
  now.locked = NULL;
  pthread_mutex_unlock(mutex);
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

/* --- blocks --- */

static MemoryBlock *block_of(void *p) { return (MemoryBlock *)((char *)p - HEADER); }

MEMORY_UNCHECKED static void add_block(MemoryBlock *block, MemoryScope *scope,
                                       void (*end)(void *block)) {
  *block = (MemoryBlock){.scope = scope, .end = end};
  if (scope) {
    pthread_mutex_lock(&scope->mutex);
    block->next = scope->blocks;
    block->link = &scope->blocks;
    if (block->next)
      block->next->link = &block->next;
    scope->blocks = block;
    pthread_mutex_unlock(&scope->mutex);
  }
  ASAN_POISON_MEMORY_REGION(block, HEADER);
}

/* Returns the scope that it was in. */
MEMORY_UNCHECKED static MemoryScope *remove_block(MemoryBlock *block) {
  MemoryScope *scope = block->scope;
  if (scope) {
    pthread_mutex_lock(&scope->mutex);
    *block->link = block->next;
    if (block->next)
      block->next->link = block->link;
    pthread_mutex_unlock(&scope->mutex);
  }
  ASAN_UNPOISON_MEMORY_REGION(block, HEADER);
  return scope;
}

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

/* The one place where memory is asked of the system. */
static void *request(MemoryBlock *old, size_t size, bool zeroed, void (*end)(void *block)) {
  MemoryScope *scope = old ? remove_block(old) : now.scope;
  void *p = NULL;
  if (size <= PTRDIFF_MAX - HEADER && !must_fail())
    p = zeroed ? calloc(1, HEADER + size) : realloc(old, HEADER + size);
  if (!p && old)
    add_block(old, scope, end);
  if (!p)
    memory_fail(size);
  prefer_large_pages(p, HEADER + size);
  add_block(p, scope, end);
  return (char *)p + HEADER;
}

void *xmalloc(size_t size) { return request(NULL, size, false, NULL); }

void *xcalloc(size_t size) { return request(NULL, size, true, NULL); }

void *xrealloc(void *old, size_t size) {
  return request(old ? block_of(old) : NULL, size, false, NULL);
}

void xfree(void *p) {
  if (!p)
    return;
  MemoryBlock *block = block_of(p);
  remove_block(block);
  free(block);
}

void *memory_guard(size_t size, void (*end)(void *block)) { return request(NULL, size, true, end); }

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
    memory_fail(SIZE_MAX);
  items = xrealloc(items, bytes);
  *capacity = (uint32_t)grown;
  return items;
}

/* --- scopes --- */

void memory_scope_init(MemoryScope *scope) {
  *scope = (MemoryScope){.mutex = PTHREAD_MUTEX_INITIALIZER};
}

MemoryScope *memory_scope(void) { return now.scope; }

void memory_set_scope(MemoryScope *scope) { now.scope = scope; }

/* Takes the newest block out of the list and gives back what it guards. */
MEMORY_UNCHECKED static MemoryBlock *take_block(MemoryScope *scope) {
  MemoryBlock *block = scope->blocks;
  void (*end)(void *block) = block->end;
  remove_block(block);
  if (end)
    end((char *)block + HEADER);
  return block;
}

size_t memory_scope_run(MemoryScope *scope, void (*body)(void *user), void *user) {
  MemoryScope *before = now.scope;
  now.scope = scope;
  size_t failed = memory_try(body, user);
  now.scope = before;
  while (failed && scope->blocks)
    free(take_block(scope));
  return failed;
}

MEMORY_UNCHECKED void memory_scope_end(MemoryScope *scope) {
  for (MemoryBlock *block = scope->blocks; block; block = block->next)
    block->scope = NULL;
  scope->blocks = NULL;
}

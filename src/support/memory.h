/* Heap allocation, and what happens when it fails.
 *
 * An allocation never returns NULL. When it fails (or ETC_FAIL_ALLOC=n asked for the n-th one to
 * fail, see HACKING.md), the thread leaves all that it is in the middle of, and goes on behind the
 * nearest memory_try: for a call of the library that is the function of include/etc/etc.h, for a
 * worker the end of its part of a parallel loop, whose caller then does the same. What was left
 * has no chance to clean up; so a MemoryScope lists what was asked of the system for it, and gives
 * it back as a whole. Without a memory_try the process prints one line and exits with 1.
 *
 * Code in between has two duties. A descriptor, or memory of a library that does not ask here, is
 * kept in a block of memory_guard. A mutex under which something is allocated is taken by
 * memory_lock. */
#ifndef ETC_SUPPORT_MEMORY_H
#define ETC_SUPPORT_MEMORY_H

#include <pthread.h>

#include "support/base.h"

/* What was asked of the system for one purpose, such as a session. */
typedef struct MemoryScope {
  pthread_mutex_t mutex; /* of the list: workers allocate as well */
  struct MemoryBlock *blocks;
} MemoryScope;

void memory_scope_init(MemoryScope *scope);
/* Runs body, which allocates for the scope. Returns 0, or the size of the request that failed; then
 * all of the scope was given back. */
size_t memory_scope_run(MemoryScope *scope, void (*body)(void *user), void *user);
/* What is still there belongs to nobody from now on. */
void memory_scope_end(MemoryScope *scope);
/* The scope of this thread, or NULL. */
MemoryScope *memory_scope(void);
/* For a thread that works for another one. */
void memory_set_scope(MemoryScope *scope);

/* Runs body. Returns 0, or the size of the request that failed and ended it: then what needs
 * mending can be mended, and memory_fail goes on to the memory_try around this one. */
size_t memory_try(void (*body)(void *user), void *user);
ETC_NORETURN void memory_fail(size_t size); /* SIZE_MAX: it is not known */
/* "out of memory: a request for 64 bytes failed". */
void memory_message(size_t size, char *text, size_t room);

/* Locks a mutex that a failing allocation unlocks: one at a time for each thread. */
void memory_lock(pthread_mutex_t *mutex);
void memory_unlock(pthread_mutex_t *mutex);

/* malloc, calloc and realloc; realloc of NULL is malloc. size 0 gives a valid unique pointer. */
void *xmalloc(size_t size);
void *xcalloc(size_t size);
void *xrealloc(void *old, size_t size);
/* p may be NULL. */
void xfree(void *p);
/* size bytes of zeros, for what is no memory of ours: end gives it back when memory runs out, right
 * before the block is freed. It must not allocate or free blocks. xfree alone does not call it. */
void *memory_guard(size_t size, void (*end)(void *block));

/* Makes room for one more element in a growing array kept by xrealloc: *items has *capacity
 * elements of elem_size. */
void *pool_reserve(void *items, uint32_t *capacity, uint64_t needed, size_t elem_size);
/* One more element behind `count`, which counts it. */
#define POOL_PUSH(items, count, capacity, ...)                                                     \
  ((items) = pool_reserve((items), &(capacity), (uint64_t)(count) + 1, sizeof *(items)),           \
   (items)[(count)++] = (__VA_ARGS__))

/* In builds with AddressSanitizer bytes can be declared out of bounds. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MEMORY_POISON 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define MEMORY_POISON 1
#endif
#if defined(MEMORY_POISON)
#include <sanitizer/asan_interface.h>
#define MEMORY_UNCHECKED __attribute__((no_sanitize("address")))
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define MEMORY_UNCHECKED
#endif

#endif

/* Arenas. Everything that lives as long as a context, a graph or a pass comes from an arena and is
 * freed at once.
 *
 * An allocation never returns NULL: memory.h says what happens when there is no memory left. Sizes
 * that come from a file must be checked against what the file can hold before they get here. */
#ifndef ETC_SUPPORT_ARENA_H
#define ETC_SUPPORT_ARENA_H

#include <stdarg.h>

#include "support/memory.h"

typedef struct ArenaBlock ArenaBlock;
typedef struct Arena { /* {0}: an empty one */
  ArenaBlock *blocks;  /* newest first */
  char *next, *end;    /* free space of the newest block */
  size_t total;        /* bytes asked of the system */
} Arena;

void arena_release(Arena *arena); /* frees all; the arena is empty again */
void arena_reset(Arena *arena);   /* forgets all allocations, may keep one block for reuse */

/* size bytes, 16-byte aligned, uninitialised. size 0 gives a valid unique pointer. */
void *arena_alloc(Arena *arena, size_t size);
/* count * size bytes of zeros; a product that overflows fails as for lack of memory. */
void *arena_calloc(Arena *arena, size_t count, size_t size);
/* The bytes of old (old_size of them) in a block of new_size bytes; grows in place when old was the
 * last allocation. */
void *arena_grow(Arena *arena, void *old, size_t old_size, size_t new_size);
/* Room for one more element behind `count` of `size` bytes each in an array that was made by this
 * function alone (NULL: empty). It doubles, so that n calls move O(n) elements. */
void *arena_push(Arena *arena, void *items, uint32_t count, size_t size);
/* Appends the element, and increments count. */
#define ARENA_PUSH(arena, items, count, ...)                                                       \
  ((items) = arena_push((arena), (items), (count), sizeof *(items)),                               \
   (items)[(count)++] = (__VA_ARGS__))
/* A terminated copy of the view. */
char *arena_strdup(Arena *arena, StrView text);
char *arena_printf(Arena *arena, const char *format, ...) ETC_PRINTF(2, 3);
char *arena_vprintf(Arena *arena, const char *format, va_list args) ETC_PRINTF(2, 0);

/* ARENA_NEW(a, T) one zeroed T, ARENA_ARRAY(a, T, n) n zeroed T. */
#define ARENA_NEW(arena, type) ((type *)arena_calloc((arena), 1, sizeof(type)))
#define ARENA_ARRAY(arena, type, n) ((type *)arena_calloc((arena), (n), sizeof(type)))

#endif

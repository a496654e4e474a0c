/* Interned strings: equal text, equal id. Ids are dense, start at 1; 0 means "no string". Seeded
 * hash, so that names chosen by an attacker cannot make the table quadratic (open addressing over
 * XXH3 with a per-process seed would make ids differ between runs, so ids are given in order of
 * first use and never depend on the hash). */
#ifndef ETC_SUPPORT_INTERN_H
#define ETC_SUPPORT_INTERN_H

#include "support/arena.h"

typedef struct Intern {
  Arena arena;      /* owns the text */
  StrView *strings; /* by id, 1..count; [0] is empty */
  uint32_t count, capacity;
  uint64_t *slots;     /* hash << 32 | id, 0 = free */
  uint32_t slot_count; /* 0 or a power of two */
  uint64_t seed;
} Intern;

void intern_init(Intern *table);
void intern_release(Intern *table);
/* The id of text, made on first sight; the text is copied (and terminated). The empty string has an
 * id of its own. */
uint32_t intern_add(Intern *table, StrView text);
/* About so many more texts will come: what is there is moved once instead of with each growth. */
void intern_expect(Intern *table, uint64_t more);
/* The id of text or 0. */
uint32_t intern_find(const Intern *table, StrView text);
/* The text of an id; terminated. id 0 gives the empty view with data "". */
StrView intern_get(const Intern *table, uint32_t id);

#endif

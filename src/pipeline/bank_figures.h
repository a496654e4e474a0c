/* How much of each memory bank of --memory the methods of a program plan, for the summary and for
 * reports. */
#ifndef ETC_PIPELINE_BANK_FIGURES_H
#define ETC_PIPELINE_BANK_FIGURES_H

#include "ir/graph.h"
#include "support/json.h"

enum { BANK_FIGURES_MAX = 64 };

typedef struct BankFigure {
  char name[65];
  uint64_t bytes; /* of all methods */
  uint64_t limit; /* the largest of their capacities; UINT64_MAX: none, as of the bank of states */
  uint32_t methods; /* that have it */
} BankFigure;

typedef struct BankFigures {
  BankFigure items[BANK_FIGURES_MAX];
  uint32_t count;
} BankFigures;

/* Adds those of a planned method; nothing without --memory. The arena of its states, which comes
 * behind the banks, is called "states". */
void bank_figures_add(BankFigures *f, const Graph *g);
/* "sram 352 bytes of 1.0 KiB, dram 64 bytes of 4.0 KiB" */
void bank_figures_text(const BankFigures *f, StrBuf *out);
/* Writes the member "banks" into the current JSON object; nothing without any. */
void bank_figures_json(const BankFigures *f, JsonWriter *w);
/* One word a bank, for an entry of the cache, and back. False when they are not understood. */
void bank_figures_write(const BankFigures *f, StrBuf *out);
bool bank_figures_read(BankFigures *f, const char *text);

#endif

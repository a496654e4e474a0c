/* What is in a .pte file, as text or JSON, for `etc inspect`. Works on any readable program, also
 * on one with unknown operators or delegates. */
#ifndef ETC_PTE_INSPECT_H
#define ETC_PTE_INSPECT_H

#include "pte/program.h"
#include "support/sheet.h"

/* Memory of one method. A lower bound for any plan with these instructions: at its busiest
 * instruction the program uses tensors of that many bytes, each rounded up to 16, those at one
 * place with touching lifetimes (views, in-place results) counted once. */
typedef struct PteMemory {
  uint64_t arena;     /* sum of the arenas, bytes */
  uint64_t live_peak; /* lower bound, bytes */
} PteMemory;
PteMemory pte_method_memory(const PteMethod *m);

/* Appends the report to out. Text is safe to print on a terminal.
 *
 * For a method with inputs of dynamic shape it has the live peak at several sizes of each of their
 * dims: what the program has in use at once at that size, while its arenas stay as planned for the
 * bounds. A size that is planned by its range can be smaller than planned for even with all inputs
 * at their bounds, so the last peak may be below live_peak. Memory within delegates is not counted
 * there; what is known of it is beside it, an estimate. all: the text lists all segments, keys,
 * operators and delegates, and what the runtime takes beside the arenas (runtime_memory.h).
 */
void pte_inspect_text(const PteProgram *p, bool all, StrBuf *out);
void pte_inspect_json(const PteProgram *p, StrBuf *out);
/* Adds what is known of the program, to be compared with another. Constants have no names in most
 * programs: those are counted by their type. */
void pte_sheet(const PteProgram *p, Sheet *sheet);

#endif

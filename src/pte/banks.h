/* The names and capacities of memory banks, as text in the program.
 *
 * The format has the size of each arena and nothing else of it. A method whose memory the user gave
 * as banks (--memory) says more in encoded_out_str of its container_meta_type, which the runtime
 * does not read: "etc: sram=524288 dram=4194304" for the arenas 1 and 2. */
#ifndef ETC_PTE_BANKS_H
#define ETC_PTE_BANKS_H

#include "ir/graph.h"

/* Appends the text; nothing when the graph has no banks. */
void banks_print(const Graph *g, StrBuf *out);
/* The banks that the text names, at most `most`; NULL when it is no such text. */
MemoryBank *banks_parse(StrView text, uint32_t most, Arena *arena, uint32_t *count);

#endif

/* The names and capacities of memory banks, and the alignment of arenas, as text in the program.
 *
 * The format has the size of each arena and nothing else of it. A method whose memory the user gave
 * as banks (--memory), or aligned (--plan best:align=64), says more in encoded_out_str of its
 * container_meta_type, which the runtime does not read: "etc: 64 sram=524288 dram=4194304" for the
 * arenas 1 and 2. */
#ifndef ETC_PTE_BANKS_H
#define ETC_PTE_BANKS_H

#include "ir/graph.h"

/* Appends the text; nothing when the graph has neither of them. */
void banks_print(const Graph *g, StrBuf *out);
/* The banks that the text names, at most `most`; NULL when it names none or is no such text.
 * alignment: a power of two; 0: the text has none. */
MemoryBank *banks_parse(StrView text, uint32_t most, Arena *arena, uint32_t *count,
                        uint32_t *alignment);

#endif

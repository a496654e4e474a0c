/* The ranges of the dims of inputs, as text in the program.
 *
 * The format has one size for each dim, its upper bound, and says of a whole tensor that it is
 * dynamic. So a method with dynamic inputs says more in encoded_inp_str of its container_meta_type,
 * which the runtime does not read: "etc: [2] [1..9, 3]" for inputs f32[2] and f32[1..9, 3]. */
#ifndef ETC_PTE_RANGES_H
#define ETC_PTE_RANGES_H

#include "ir/graph.h"
#include "pte/program.h"

/* Appends the text; nothing when all inputs have fixed sizes. */
void ranges_print(const Graph *g, StrBuf *out);
/* By input and dim; NULL when the text is not one of these or does not fit the inputs. */
PteRange **ranges_parse(StrView text, const PteMethod *m, Arena *arena);

#endif

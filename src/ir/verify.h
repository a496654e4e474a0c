/* The verifier: what must hold at a level. Collects all faults (bounded), reports each at its node.
 */
#ifndef ETC_IR_VERIFY_H
#define ETC_IR_VERIFY_H

#include "ir/op.h"

/* Structure (order, use chains, kinds against the schema), types (each shape rule run again must
 * give the same types), level rules (op allowed; edge: dtypes; executorch: op has a kernel that
 * takes the call; planned: storage inside its arena, aligned, no overlap of live values). Cheap
 * enough to run after every pass: linear, no allocation that outlives it. after: name of the pass,
 * for messages. */
Status graph_verify(Graph *g, const char *after);
/* As graph_verify, for code that changes graphs by the functions of graph.h alone, as passes do: of
 * a graph that is as it was when it was verified last, it looks only at what its level allows. */
Status graph_verify_changed(Graph *g, const char *after);
/* The check before a file is written: every call against what the runtime really takes (OpRow.out,
 * dtypes, check). All faults are reported. */
Status graph_verify_kernels(Graph *g);

#endif

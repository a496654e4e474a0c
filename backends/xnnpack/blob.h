/* The bytes of a delegate: an XNNPACK graph as the released delegate reads it. */
#ifndef ETC_BACKENDS_XNNPACK_BLOB_H
#define ETC_BACKENDS_XNNPACK_BLOB_H

#include "backends/xnnpack/subgraph.h"
#include "ops/delegate.h"

#define XNN_BACKEND_ID "XnnpackBackend"

/* keys: of the named data, one for each of x->data, in order. data lives in arena; NULL when the
 * graph is too large for the format. */
typedef struct XnnBlob {
  const uint8_t *data;
  uint64_t size;
} XnnBlob;
/* transposes: of the graph, in order; for readers (reader.c), the runtime does not look at them. */
XnnBlob xnn_blob(const XnnGraph *x, const Graph *g, const char *const *keys,
                 const DelegateTranspose *transposes, uint32_t transpose_count, Arena *arena);

#endif

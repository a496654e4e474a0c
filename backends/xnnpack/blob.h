/* The bytes of a delegate: an XNNPACK graph as the released delegate reads it. */
#ifndef ETC_BACKENDS_XNNPACK_BLOB_H
#define ETC_BACKENDS_XNNPACK_BLOB_H

#include "backends/xnnpack/subgraph.h"

#define XNN_BACKEND_ID "XnnpackBackend"

/* keys: of the named data, one for each of x->data, in order. data lives in arena; NULL when the
 * graph is too large for the format. */
typedef struct XnnBlob {
  const uint8_t *data;
  uint64_t size;
} XnnBlob;
XnnBlob xnn_blob(const XnnGraph *x, const Graph *g, const char *const *keys, Arena *arena);

#endif

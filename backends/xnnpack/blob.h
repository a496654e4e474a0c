/* The bytes of a delegate: an XNNPACK graph as the released delegate reads it. */
#ifndef ETC_BACKENDS_XNNPACK_BLOB_H
#define ETC_BACKENDS_XNNPACK_BLOB_H

#include "backends/xnnpack/subgraph.h"
#include "ops/delegate.h"
#include "support/keymap.h"

#define XNN_BACKEND_ID "XnnpackBackend"

/* keys: of the named data, one for each of x->data, in order. data lives in arena; NULL when the
 * graph is too large for the format. */
typedef struct XnnBlob {
  const uint8_t *data;
  uint64_t size;
  uint32_t tables; /* bytes of the graph in it */
} XnnBlob;
/* transposes: of the graph, in order; for readers (reader.c), the runtime does not look at them. */
XnnBlob xnn_blob(const XnnGraph *x, const Graph *g, const char *const *keys,
                 const DelegateTranspose *transposes, uint32_t transpose_count, Arena *arena);

/* The blobs that were made for a graph of the IR. */
typedef struct XnnBlobs {
  KeyMap graphs; /* by hash of the graph: item + 1 */
  XnnBlob *items;
  uint32_t count;
  Arena *arena;
} XnnBlobs;
XnnBlobs *xnn_blobs(Arena *arena);
/* What was made of the graph in this blob; empty on first sight, to be filled before the next call.
 * Names of nodes do not count: equal partitions have equal bytes. */
XnnBlob *xnn_blob_made(XnnBlobs *blobs, const XnnBlob *blob);

#endif

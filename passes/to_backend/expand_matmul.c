/* matmul, which only backends have at this level, as mm and bmm where none took it. */
#include "passes/core/decompose.h"
#include "passes/executorch/rewrite.h"

Status pass_expand_matmul(PassContext *p, Graph *g) {
  return rewrite_nodes(p, g, OP_MATMUL, decompose_matmul, "products expanded");
}

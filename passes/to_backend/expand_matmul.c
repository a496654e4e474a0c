/* matmul, which only backends have at this level, as mm and bmm where none took it. */
#include "passes/core/decompose.h"
#include "passes/pass.h"

Status pass_expand_matmul(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_MATMUL, decompose_matmul, "products expanded"}};
  return pass_rewrite(p, g, rules, COUNT_OF(rules));
}

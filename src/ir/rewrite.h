/* Rewriting: the one driver of passes that put something else in the place of a node.
 *
 * A pass is a table of rules. The driver visits the nodes in order and tries the rules of each
 * node's op, in the order of the table, until one of them answers. A rule only matches and builds;
 * names, uses, and the removal of the old node are the driver's business:
 *
 *   static ValueId twice(Builder *b, NodeId n) {    x + x  =>  x * 2
 *     ValueId x = node_value(b->g, n, 0);
 *     return node_value(b->g, n, 1) == x ? build(b, OP_MUL_SCALAR, A_VAL(x), A_INT(2)) : 0;
 *   }
 *   static const RewriteRule rules[] = {{OP_ADD_TENSOR, twice, "sums"}};
 *
 * Operands stand before their users, so that a rule sees operands that are in their final form. */
#ifndef ETC_IR_REWRITE_H
#define ETC_IR_REWRITE_H

#include "ir/builder.h"

/* Builds before node n, where b stands, what is equal to the first result of n. Returns that value;
 * the first result itself when n was changed in place; or 0 when the rule does not apply. Other
 * results that are used are the rule's business (graph_replace_value). A value of another type than
 * the result is as good as 0, but an error of a rule of a plug-in. */
typedef ValueId RewriteFn(Builder *b, NodeId n);

typedef struct RewriteRule {
  OpId op; /* of the nodes that the rule looks at; OP_NONE: of any op */
  RewriteFn *rewrite;
  const char *name; /* what is counted: "products"; NULL: the name of the Rewriter */
} RewriteRule;

typedef struct Rewriter {
  const RewriteRule *rules;
  uint32_t rule_count;
  bool revisit;      /* what a rule built is visited, too */
  BuilderFold *fold; /* of the builder, with fold_data; may be NULL */
  void *fold_data;
  void *data;       /* for the rules, as b->data; may be NULL */
  const char *name; /* what is counted, for rules without a name */
  uint64_t *counts; /* by rule: how often it applied */
} Rewriter;

/* Visits every node once. Replaced nodes are removed when nothing uses a result of them. */
Status rewrite_graph(Graph *g, const Rewriter *r);

#endif

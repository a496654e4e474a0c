/* Ensembles of decision trees: what the operators of ai.onnx.ml say (trees_read.c), and how all
 * trees are walked at once (trees_walk.c). */
#ifndef ETC_ONNX_TREES_H
#define ETC_ONNX_TREES_H

#include "onnx/translate/classic.h"

typedef enum TreeMode { /* numbered as in TreeEnsemble */
                        TREE_LEQ,
                        TREE_LT,
                        TREE_GTE,
                        TREE_GT,
                        TREE_EQ,
                        TREE_NEQ,
                        TREE_MEMBER,
                        TREE_LEAF
} TreeMode;

typedef struct TreeNode {
  TreeMode mode;
  bool missing_true; /* NaN goes to the true branch */
  uint32_t feature;
  double split;
  const double *members; /* MEMBER */
  uint32_t member_count;
  bool joined; /* a node before it tests what this one did; it is a leaf that nothing leads to */
  uint32_t when_true, when_false; /* indices of nodes */
} TreeNode;

typedef struct TreeVote {
  uint32_t node, result;
  double weight;
} TreeVote;

typedef enum TreeAggregate { TREES_AVERAGE, TREES_SUM, TREES_MIN, TREES_MAX } TreeAggregate;

/* Each node that is no leaf is a root or has one parent, so the nodes are trees. */
typedef struct Trees {
  TreeNode *nodes;
  uint32_t *roots;
  TreeVote *votes;
  Doubles base;
  uint32_t node_count, root_count, vote_count, results, features;
  bool wide; /* features, splits and votes are f64; else f32 */
  TreeAggregate aggregate;
} Trees;

/* Reads the attributes of the current node. t->results, features and wide are set; `kind` is
 * "class" or "target". False after a failure. */
bool trees_read(Import *im, Trees *t, const char *kind);
/* Reads the attributes of TreeEnsemble (ai.onnx.ml 5), which give the number of results, too. */
bool trees_read_ensemble(Import *im, Trees *t);

typedef enum TreeVoted { VOTED_NEVER, VOTED_SOMETIMES, VOTED_ALWAYS } TreeVoted;
/* For each result: does each sample get a vote for it? */
TreeVoted *trees_voted(Import *im, const Trees *t);
/* The votes of all trees for samples x [N, features], aggregated: [N, results]. A result without a
 * vote is 0. *voted, unless NULL: bools [N, results] that say which have one. *winner, unless NULL,
 * is set for a single tree: the result [N] with most votes, the first of several, 0 without a
 * vote. */
ValueId trees_walk(Import *im, const Trees *t, ValueId x, ValueId *voted, ValueId *winner);

#endif

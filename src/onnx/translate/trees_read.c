/* Attributes of TreeEnsembleRegressor, TreeEnsembleClassifier and TreeEnsemble (trees.h). */
#include <stdio.h>
#include <stdlib.h>

#include "onnx/file/tensor.h"
#include "onnx/translate/trees.h"
#include "support/number.h"
#include "support/text.h"

enum { NODES_MAX = 1 << 24 };

typedef struct NodeKey {
  int64_t tree, node;
  uint32_t index;
} NodeKey;

static int by_key(const void *a, const void *b) {
  const NodeKey *x = a, *y = b;
  int order = ORDER(x->tree, y->tree);
  return order ? order : ORDER(x->node, y->node);
}

/* The node of that tree and number; `count` if the tree has no such node. */
static uint32_t find_node(const NodeKey *keys, uint32_t count, int64_t tree, int64_t node) {
  NodeKey wanted = {.tree = tree, .node = node};
  const NodeKey *found = bsearch(&wanted, keys, count, sizeof *keys, by_key);
  return found ? found->index : count;
}

/* --- attributes --- */

/* An attribute with an integer for each of `count` things. */
static const int64_t *integers(Import *im, const char *name, uint32_t count) {
  Ints values;
  if (!attr_ints(im, name, &values) || values.count != count)
    import_fail(im, DIAG_ATTR_VALUE, "'%s' has %u numbers instead of %u", name, values.count,
                count);
  return values.at;
}

/* The elements of a tensor attribute; none when it is absent. */
static Doubles tensor_numbers(Import *im, Trees *t, const char *name) {
  const Onnx__TensorProto *tensor = attr_tensor(im, name);
  Doubles values = {0};
  if (!tensor)
    return values;
  t->wide |= tensor->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE;
  if (!value_doubles(im, import_tensor(im, tensor, 0), &values))
    import_fail(im, DIAG_ATTR_VALUE, "attribute '%s' is not a tensor of numbers", name);
  return values;
}

/* The list `name` or the tensor `name`_as_tensor. */
static Doubles numbers(Import *im, Trees *t, const char *name) {
  char long_name[48];
  Doubles values;
  snprintf(long_name, sizeof long_name, "%s_as_tensor", name);
  return attr_doubles(im, name, &values) && values.count ? values
                                                         : tensor_numbers(im, t, long_name);
}

/* Attribute `name`, which must have a number for each of `count` things. */
static const double *as_many(Import *im, Doubles values, const char *name, uint32_t count) {
  if (values.count != count)
    import_fail(im, DIAG_ATTR_VALUE, "'%s' has %u numbers instead of %u", name, values.count,
                count);
  return values.at;
}

static TreeMode mode_of(Import *im, StrView name) {
  uint32_t i = text_index(name, "BRANCH_LEQ|BRANCH_LT|BRANCH_GTE|BRANCH_GT|BRANCH_EQ|BRANCH_NEQ");
  if (i > TREE_NEQ && !sv_eq_str(name, "LEAF"))
    import_fail(im, DIAG_ATTR_VALUE, "'" SV_FMT "' is not a mode of a node", SV_ARG(name));
  return i > TREE_NEQ ? TREE_LEAF : (TreeMode)i;
}

static bool begin_nodes(Import *im, Trees *t, uint64_t count) {
  if (!import_ok(im))
    return false;
  if (!count || count > NODES_MAX)
    return import_fail(
        im, DIAG_UNSUPPORTED_FEATURE,
        "the trees have %llu nodes, and 1 to %d are supported: let several operators have "
        "some of the trees each, and add what they return",
        (unsigned long long)count, NODES_MAX);
  t->node_count = (uint32_t)count;
  t->nodes = ARENA_ARRAY(&im->scratch, TreeNode, count);
  t->roots = ARENA_ARRAY(&im->scratch, uint32_t, count);
  return true;
}

/* The attributes of node i that all operators have, but for its branches. */
static void fill_node(Import *im, Trees *t, uint32_t i, int64_t feature, double split) {
  if (feature < 0 || feature >= t->features)
    import_fail(im, DIAG_ATTR_VALUE, "node %u compares feature %lld of %u", i, (long long)feature,
                t->features);
  else
    t->nodes[i].feature = (uint32_t)feature;
  t->nodes[i].split = split;
}

static const int64_t *missing_tracks(Import *im, uint32_t count) {
  Ints missing;
  if (!attr_ints(im, "nodes_missing_value_tracks_true", &missing) || !missing.count)
    return NULL;
  return integers(im, "nodes_missing_value_tracks_true", count);
}

/* --- chains --- */

/* Whether b, the false branch of a, only asks for another value of the feature with the same true
 * branch. */
static bool asks_on(const Trees *t, const TreeNode *a, const TreeNode *b, const uint32_t *parents) {
  return a->mode == TREE_EQ && b->mode == TREE_EQ && a->feature == b->feature &&
         a->when_true == b->when_true && parents[b - t->nodes] == 1 && a->split == a->split &&
         b->split == b->split;
}

static void join_chain(Import *im, Trees *t, TreeNode *head) {
  uint32_t count = 1;
  for (const TreeNode *n = head; t->nodes[n->when_false].joined; n = &t->nodes[n->when_false])
    count++;
  if (count == 1)
    return;
  double *members = ARENA_ARRAY(&im->scratch, double, count);
  members[0] = head->split;
  for (uint32_t i = 1; i < count; i++) {
    TreeNode *n = &t->nodes[head->when_false];
    members[i] = n->split;
    head->missing_true |= n->missing_true;
    head->when_false = n->when_false;
    n->mode = TREE_LEAF;
  }
  head->mode = TREE_MEMBER;
  head->members = members;
  head->member_count = count;
}

/* "Is it v?" and, if not, "is it w?" with one true branch, as converters write the categories of
 * LightGBM, become one node with a set: that branch then has one parent. */
static void join_chains(Import *im, Trees *t) {
  uint32_t *parents = ARENA_ARRAY(&im->scratch, uint32_t, t->node_count);
  for (uint32_t i = 0; i < t->node_count; i++)
    if (t->nodes[i].mode != TREE_LEAF) {
      parents[t->nodes[i].when_true]++;
      parents[t->nodes[i].when_false]++;
    }
  for (uint32_t i = 0; i < t->node_count; i++) {
    TreeNode *next = &t->nodes[t->nodes[i].when_false];
    if (next != &t->nodes[i] && asks_on(t, &t->nodes[i], next, parents))
      next->joined = true;
  }
  for (uint32_t i = 0; i < t->node_count; i++)
    if (t->nodes[i].mode == TREE_EQ && !t->nodes[i].joined)
      join_chain(im, t, &t->nodes[i]);
}

/* Marks the nodes that are a branch of another one, or were; inner nodes are so once. */
static void find_reached(Import *im, const Trees *t, bool *reached) {
  for (uint32_t i = 0; i < t->node_count && import_ok(im); i++) {
    const TreeNode *n = &t->nodes[i];
    reached[i] |= n->joined;
    if (n->mode == TREE_LEAF)
      continue;
    const uint32_t branches[2] = {n->when_true, n->when_false};
    for (uint32_t k = 0; k < 2; k++) {
      bool inner = t->nodes[branches[k]].mode != TREE_LEAF;
      if (branches[k] == i || (inner && reached[branches[k]]))
        import_fail(im, DIAG_ATTR_VALUE, "node %u is reached twice", branches[k]);
      reached[branches[k]] = true;
    }
  }
}

/* Roots are the nodes that nothing leads to when `given` is NULL. */
static void find_roots(Import *im, Trees *t, const int64_t *given, uint32_t given_count) {
  bool *reached = ARENA_ARRAY(&im->scratch, bool, t->node_count);
  if (import_ok(im))
    join_chains(im, t);
  find_reached(im, t, reached);
  for (uint32_t i = 0; i < given_count && import_ok(im); i++) {
    if (given[i] < 0 || given[i] >= t->node_count || reached[given[i]]) {
      import_fail(im, DIAG_ATTR_VALUE, "root %u is not a root of a tree, or listed before", i);
      return;
    }
    t->roots[t->root_count++] = (uint32_t)given[i];
    reached[given[i]] = true;
  }
  for (uint32_t i = 0; i < t->node_count && import_ok(im) && !given; i++)
    if (!reached[i])
      t->roots[t->root_count++] = i;
  if (!t->root_count)
    import_fail(im, DIAG_ATTR_VALUE, "the trees have no root");
}

static void add_vote(Import *im, Trees *t, uint32_t node, int64_t result, double weight) {
  if (node >= t->node_count || result < 0 || result >= t->results)
    import_fail(im, DIAG_ATTR_VALUE, "vote %u is of no node, or for no result", t->vote_count);
  else
    t->votes[t->vote_count++] = (TreeVote){node, (uint32_t)result, weight};
}

/* --- TreeEnsembleRegressor, TreeEnsembleClassifier --- */

static void read_votes(Import *im, Trees *t, const char *kind, const NodeKey *keys) {
  static const char *const suffixes[] = {"treeids", "nodeids", "ids"};
  const int64_t *lists[COUNT_OF(suffixes)];
  char name[32];
  snprintf(name, sizeof name, "%s_weights", kind);
  Doubles weights = numbers(im, t, name);
  for (uint32_t i = 0; i < COUNT_OF(suffixes); i++) {
    snprintf(name, sizeof name, "%s_%s", kind, suffixes[i]);
    lists[i] = integers(im, name, weights.count);
  }
  t->votes = ARENA_ARRAY(&im->scratch, TreeVote, (uint64_t)weights.count + 1);
  for (uint32_t i = 0; i < weights.count && import_ok(im); i++)
    add_vote(im, t, find_node(keys, t->node_count, lists[0][i], lists[1][i]), lists[2][i],
             weights.at[i]);
}

static void link_nodes(Import *im, Trees *t, const NodeKey *keys, const int64_t *tree_ids) {
  const int64_t *yes = integers(im, "nodes_truenodeids", t->node_count),
                *no = integers(im, "nodes_falsenodeids", t->node_count);
  for (uint32_t i = 0; i < t->node_count && import_ok(im); i++) {
    TreeNode *n = &t->nodes[i];
    if (n->mode == TREE_LEAF)
      continue;
    n->when_true = find_node(keys, t->node_count, tree_ids[i], yes[i]);
    n->when_false = find_node(keys, t->node_count, tree_ids[i], no[i]);
    if (n->when_true == t->node_count || n->when_false == t->node_count)
      import_fail(im, DIAG_ATTR_VALUE, "node %u leads to no node of its tree", i);
  }
}

static const NodeKey *sorted_keys(Import *im, const Trees *t, const int64_t *tree_ids) {
  const int64_t *node_ids = integers(im, "nodes_nodeids", t->node_count);
  NodeKey *keys = ARENA_ARRAY(&im->scratch, NodeKey, t->node_count);
  for (uint32_t i = 0; i < t->node_count && import_ok(im); i++)
    keys[i] = (NodeKey){tree_ids[i], node_ids[i], i};
  qsort(keys, t->node_count, sizeof *keys, by_key);
  for (uint32_t i = 1; i < t->node_count && import_ok(im); i++)
    if (by_key(&keys[i - 1], &keys[i]) == 0)
      import_fail(im, DIAG_ATTR_VALUE, "two nodes of a tree have the number %lld",
                  (long long)keys[i].node);
  return keys;
}

bool trees_read(Import *im, Trees *t, const char *kind) {
  Texts modes;
  (void)attr_strs(im, "nodes_modes", &modes);
  if (!begin_nodes(im, t, modes.count))
    return false;
  const int64_t *tree_ids = integers(im, "nodes_treeids", modes.count),
                *feature_ids = integers(im, "nodes_featureids", modes.count),
                *missing = missing_tracks(im, modes.count);
  const double *splits = as_many(im, numbers(im, t, "nodes_values"), "nodes_values", modes.count);
  t->base = numbers(im, t, "base_values");
  t->aggregate = (TreeAggregate)attr_choice(im, "aggregate_function", "SUM", "AVERAGE|SUM|MIN|MAX");
  for (uint32_t i = 0; i < modes.count && import_ok(im); i++) {
    t->nodes[i].mode = mode_of(im, modes.at[i]);
    t->nodes[i].missing_true = missing && missing[i] == 1;
    if (t->nodes[i].mode != TREE_LEAF)
      fill_node(im, t, i, feature_ids[i], splits[i]);
  }
  const NodeKey *keys = sorted_keys(im, t, tree_ids);
  link_nodes(im, t, keys, tree_ids);
  find_roots(im, t, NULL, 0);
  read_votes(im, t, kind, keys);
  return import_ok(im);
}

/* --- TreeEnsemble --- */

/* Node i of the operator is node i here, leaf i comes after all nodes. */
static uint32_t branch(Import *im, const Trees *t, uint32_t inner, int64_t to, bool leaf) {
  int64_t first = leaf ? inner : 0, count = leaf ? t->node_count - inner : inner;
  if (to >= 0 && to < count)
    return (uint32_t)(first + to);
  import_fail(im, DIAG_ATTR_VALUE, "a node leads to %s %lld of %lld", leaf ? "leaf" : "node",
              (long long)to, (long long)count);
  return 0;
}

/* The sets of all member nodes follow each other, with a NaN after each. */
static void read_members(Import *im, Trees *t, uint32_t inner) {
  uint32_t at = 0;
  Doubles members = tensor_numbers(im, t, "membership_values");
  for (uint32_t i = 0; i < inner && import_ok(im); i++) {
    TreeNode *n = &t->nodes[i];
    if (n->mode != TREE_MEMBER)
      continue;
    n->members = members.at ? &members.at[at] : NULL;
    for (; at < members.count && members.at[at] == members.at[at]; at++)
      n->member_count++;
    if (!n->member_count)
      import_fail(im, DIAG_ATTR_VALUE, "node %u has no membership values", i);
    at += at < members.count;
  }
}

static void read_inner(Import *im, Trees *t, uint32_t inner, const double *modes) {
  const int64_t *features = integers(im, "nodes_featureids", inner),
                *yes = integers(im, "nodes_truenodeids", inner),
                *no = integers(im, "nodes_falsenodeids", inner),
                *yes_leaf = integers(im, "nodes_trueleafs", inner),
                *no_leaf = integers(im, "nodes_falseleafs", inner),
                *missing = missing_tracks(im, inner);
  const double *splits = as_many(im, tensor_numbers(im, t, "nodes_splits"), "nodes_splits", inner);
  for (uint32_t i = 0; i < inner && import_ok(im); i++) {
    TreeNode *n = &t->nodes[i];
    int64_t mode;
    if (!int_exact(modes[i], &mode) || mode < TREE_LEQ || mode > TREE_MEMBER) {
      import_fail(im, DIAG_ATTR_VALUE, "%g is not a mode of a node", modes[i]);
      return;
    }
    n->mode = (TreeMode)mode;
    n->missing_true = missing && missing[i] == 1;
    fill_node(im, t, i, features[i], splits[i]);
    n->when_true = branch(im, t, inner, yes[i], yes_leaf[i] != 0);
    n->when_false = branch(im, t, inner, no[i], no_leaf[i] != 0);
  }
}

static void read_leaves(Import *im, Trees *t, uint32_t inner) {
  uint32_t leaves = t->node_count - inner;
  const int64_t *targets = integers(im, "leaf_targetids", leaves);
  const double *weights =
      as_many(im, tensor_numbers(im, t, "leaf_weights"), "leaf_weights", leaves);
  t->votes = ARENA_ARRAY(&im->scratch, TreeVote, (uint64_t)leaves + 1);
  for (uint32_t i = 0; i < leaves && import_ok(im); i++) {
    t->nodes[inner + i].mode = TREE_LEAF;
    add_vote(im, t, inner + i, targets[i], weights[i]);
  }
}

bool trees_read_ensemble(Import *im, Trees *t) {
  Ints targets, roots;
  Doubles modes = tensor_numbers(im, t, "nodes_modes");
  uint32_t inner = modes.count;
  (void)attr_ints(im, "leaf_targetids", &targets);
  (void)attr_ints(im, "tree_roots", &roots);
  int64_t how = attr_int(im, "aggregate_function", TREES_SUM);
  if (how < TREES_AVERAGE || how > TREES_MAX)
    import_fail(im, DIAG_ATTR_VALUE, "attribute 'aggregate_function' is %lld", (long long)how);
  t->aggregate = (TreeAggregate)how;
  if (!begin_nodes(im, t, (uint64_t)inner + targets.count))
    return false;
  read_leaves(im, t, inner);
  read_inner(im, t, inner, modes.at);
  read_members(im, t, inner);
  find_roots(im, t, roots.at, roots.count);
  return import_ok(im);
}

/* TreeEnsembleRegressor and TreeEnsembleClassifier of ai.onnx.ml.
 *
 * All trees are walked together, a level a step: the node where each sample stands in each tree is
 * a number [N, trees]; what the nodes hold are tables looked up by it. Leaves lead to themselves,
 * so that after as many steps as the deepest tree has levels all stand on leaves, whose votes are
 * the rows of a table [nodes, results]. */
#include <stdio.h>
#include <stdlib.h>

#include "onnx/classic.h"

enum { NODES_MAX = 1 << 20, VOTES_MAX = 1 << 24, DEPTH_MAX = 128 };

typedef struct Trees {
  uint32_t nodes, trees, results;
  int64_t *features, *when_true, *when_false, *roots;
  float *splits, *votes;
  OpId compare;
  int64_t depth;
} Trees;

typedef struct NodeKey {
  int64_t tree, node;
  uint32_t index;
} NodeKey;

static int by_key(const void *a, const void *b) {
  const NodeKey *x = a, *y = b;
  if (x->tree != y->tree)
    return x->tree < y->tree ? -1 : 1;
  return x->node < y->node ? -1 : x->node > y->node;
}

/* The node of that tree and number, -1 when there is none. */
static int64_t find_node(const NodeKey *keys, uint32_t count, int64_t tree, int64_t node) {
  NodeKey wanted = {.tree = tree, .node = node};
  const NodeKey *found = bsearch(&wanted, keys, count, sizeof *keys, by_key);
  return found ? (int64_t)found->index : -1;
}

/* An attribute with a number for each of `count` things. */
static const int64_t *numbers(Import *im, const char *name, uint32_t count) {
  const int64_t *values = NULL;
  uint32_t given = 0;
  if (import_ok(im) && (!attr_ints(im, name, &values, &given) || given != count))
    import_fail(im, DIAG_ATTR_VALUE, "'%s' has %u numbers instead of %u", name, given, count);
  return values;
}

static const float *floats(Import *im, const char *name, uint32_t count) {
  const float *values = NULL;
  uint32_t given = 0;
  if (import_ok(im) && (!attr_floats(im, name, &values, &given) || given != count))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "'%s' has %u floats instead of %u", name, given,
                count);
  return values;
}

/* The comparison of all nodes; leaves have none. */
static void read_modes(Import *im, Trees *t, const StrView *modes) {
  static const struct {
    const char *name;
    OpId op;
  } known[] = {{"BRANCH_LEQ", OP_LE_TENSOR}, {"BRANCH_LT", OP_LT_TENSOR},
               {"BRANCH_GTE", OP_GE_TENSOR}, {"BRANCH_GT", OP_GT_TENSOR},
               {"BRANCH_EQ", OP_EQ_TENSOR},  {"BRANCH_NEQ", OP_NE_TENSOR}};
  t->compare = OP_LE_TENSOR;
  const StrView *first = NULL;
  for (uint32_t i = 0; i < t->nodes && import_ok(im); i++) {
    if (sv_eq_str(modes[i], "LEAF"))
      continue;
    if (first && !sv_eq(*first, modes[i]))
      import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                  "nodes compare in different ways: " SV_FMT " and " SV_FMT, SV_ARG(*first),
                  SV_ARG(modes[i]));
    bool found = first != NULL;
    for (size_t k = 0; k < COUNT_OF(known) && !found; k++)
      if ((found = sv_eq_str(modes[i], known[k].name)))
        t->compare = known[k].op;
    if (!found)
      import_fail(im, DIAG_ATTR_VALUE, "'" SV_FMT "' is no mode of a node", SV_ARG(modes[i]));
    first = &modes[i];
  }
}

/* Where each node leads; the roots are the nodes that nothing leads to. */
static void link_nodes(Import *im, Trees *t, const StrView *modes, const NodeKey *keys,
                       const int64_t *tree_ids) {
  const int64_t *yes = numbers(im, "nodes_truenodeids", t->nodes),
                *no = numbers(im, "nodes_falsenodeids", t->nodes);
  bool *reached = ARENA_ARRAY(&im->scratch, bool, t->nodes);
  for (uint32_t i = 0; i < t->nodes && import_ok(im); i++) {
    bool leaf = sv_eq_str(modes[i], "LEAF");
    t->when_true[i] = leaf ? i : find_node(keys, t->nodes, tree_ids[i], yes[i]);
    t->when_false[i] = leaf ? i : find_node(keys, t->nodes, tree_ids[i], no[i]);
    bool loops = !leaf && (t->when_true[i] == i || t->when_false[i] == i);
    if (loops || t->when_true[i] < 0 || t->when_false[i] < 0)
      import_fail(im, DIAG_ATTR_VALUE, "node %u leads to itself or to none of its tree", i);
    else if (!leaf)
      reached[t->when_true[i]] = reached[t->when_false[i]] = true;
  }
  for (uint32_t i = 0; i < t->nodes && import_ok(im); i++)
    if (!reached[i])
      t->roots[t->trees++] = i;
  if (import_ok(im) && !t->trees)
    import_fail(im, DIAG_ATTR_VALUE, "the trees have no root");
}

/* Levels below the roots, by walking all of them together. */
static void measure_depth(Import *im, Trees *t) {
  int64_t *level = ARENA_ARRAY(&im->scratch, int64_t, t->nodes + 1),
          *next = ARENA_ARRAY(&im->scratch, int64_t, t->nodes + 1);
  uint32_t count = t->trees;
  memcpy(level, t->roots, count * sizeof *level);
  for (t->depth = 0; count && import_ok(im); t->depth++) {
    uint32_t below = 0;
    for (uint32_t i = 0; i < count; i++) {
      int64_t n = level[i];
      if (t->when_true[n] == n)
        continue;
      if (below + 2 > t->nodes || t->depth == DEPTH_MAX) {
        import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                    "a node is reached twice, or a tree has more than %d levels", DEPTH_MAX);
        return;
      }
      next[below++] = t->when_true[n];
      next[below++] = t->when_false[n];
    }
    int64_t *swap = level;
    level = next;
    next = swap;
    count = below;
  }
  t->depth--; /* the last level had only leaves */
}

/* Adds up the votes of each leaf; the attributes begin with `kind`: target or class. */
static void read_votes(Import *im, Trees *t, const char *kind, const NodeKey *keys) {
  char name[32];
  const int64_t *lists[3];
  static const char *const suffixes[] = {"treeids", "nodeids", "ids"};
  const float *weights = NULL;
  uint32_t count = 0;
  uint64_t size = 0;
  snprintf(name, sizeof name, "%s_weights", kind);
  if (!attr_floats(im, name, &weights, &count))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "'%s' is missing: only floats are supported", name);
  for (uint32_t i = 0; i < COUNT_OF(lists); i++) {
    snprintf(name, sizeof name, "%s_%s", kind, suffixes[i]);
    lists[i] = numbers(im, name, count);
  }
  if (import_ok(im) && (!mul_u64(t->nodes, t->results, &size) || size > VOTES_MAX))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "%u nodes for %u results are too many", t->nodes,
                t->results);
  if (!import_ok(im))
    return;
  t->votes = ARENA_ARRAY(&im->scratch, float, size);
  for (uint32_t i = 0; i < count && import_ok(im); i++) {
    int64_t node = find_node(keys, t->nodes, lists[0][i], lists[1][i]);
    if (node < 0 || lists[2][i] < 0 || lists[2][i] >= t->results)
      import_fail(im, DIAG_ATTR_VALUE, "vote %u is of no node, or for no result", i);
    else
      t->votes[(uint64_t)node * t->results + (uint64_t)lists[2][i]] += weights[i];
  }
}

static bool read_trees(Import *im, Trees *t, const char *kind, int64_t features) {
  StrView *modes;
  const int64_t *missing;
  uint32_t given;
  if (!import_ok(im) || !attr_strs(im, "nodes_modes", &modes, &t->nodes) || !t->nodes ||
      t->nodes > NODES_MAX) {
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "the trees have no nodes, or more than %d",
                NODES_MAX);
    return false;
  }
  if (attr_ints(im, "nodes_missing_value_tracks_true", &missing, &given))
    for (uint32_t i = 0; i < given && import_ok(im); i++)
      if (missing[i])
        import_fail(im, DIAG_UNSUPPORTED_FEATURE, "missing values are not supported");
  const int64_t *tree_ids = numbers(im, "nodes_treeids", t->nodes),
                *node_ids = numbers(im, "nodes_nodeids", t->nodes),
                *feature_ids = numbers(im, "nodes_featureids", t->nodes);
  const float *splits = floats(im, "nodes_values", t->nodes);
  int64_t **lists[] = {&t->features, &t->when_true, &t->when_false, &t->roots};
  for (uint32_t i = 0; i < COUNT_OF(lists); i++)
    *lists[i] = ARENA_ARRAY(&im->scratch, int64_t, t->nodes);
  t->splits = ARENA_ARRAY(&im->scratch, float, t->nodes);
  NodeKey *keys = ARENA_ARRAY(&im->scratch, NodeKey, t->nodes);
  for (uint32_t i = 0; i < t->nodes && import_ok(im); i++) {
    bool leaf = sv_eq_str(modes[i], "LEAF");
    if (!leaf && (feature_ids[i] < 0 || feature_ids[i] >= features))
      import_fail(im, DIAG_ATTR_VALUE, "node %u compares feature %lld of %lld", i,
                  (long long)feature_ids[i], (long long)features);
    keys[i] = (NodeKey){tree_ids[i], node_ids[i], i};
    t->features[i] = leaf ? 0 : feature_ids[i];
    t->splits[i] = leaf ? 0 : splits[i];
  }
  if (!import_ok(im))
    return false;
  qsort(keys, t->nodes, sizeof *keys, by_key);
  for (uint32_t i = 1; i < t->nodes && import_ok(im); i++)
    if (by_key(&keys[i - 1], &keys[i]) == 0)
      import_fail(im, DIAG_ATTR_VALUE, "two nodes of a tree have the number %lld",
                  (long long)keys[i].node);
  read_modes(im, t, modes);
  link_nodes(im, t, modes, keys, tree_ids);
  if (import_ok(im))
    measure_depth(im, t);
  read_votes(im, t, kind, keys);
  return import_ok(im);
}

/* Rows `at` [N, trees] of a vector, in the same shape. */
static ValueId look_up(Import *im, ValueId table, ValueId at, SymInt samples, uint32_t trees) {
  ValueId flat = EX_VIEW(im, at, sym_mul(&im->g->syms, samples, trees));
  return EX_VIEW(im, ex_index_select(im, table, 0, flat), samples, trees);
}

/* The votes of all trees, [N, trees, results]. */
static ValueId walk(Import *im, const Trees *t, ValueId x) {
  SymInt samples = ex_dim(im, x, 0);
  ValueId features = build_const_ints(&im->b, t->features, t->nodes),
          yes = build_const_ints(&im->b, t->when_true, t->nodes),
          no = build_const_ints(&im->b, t->when_false, t->nodes),
          splits = classic_floats(im, t->splits, 1, (int64_t[]){t->nodes}),
          votes = classic_floats(im, t->votes, 2, (int64_t[]){t->nodes, t->results});
  ValueId at =
      ex_expand(im, build_const_ints(&im->b, t->roots, t->trees), (SymInt[]){samples, t->trees}, 2);
  for (int64_t level = 0; level < t->depth && import_ok(im); level++) {
    ValueId column = look_up(im, features, at, samples, t->trees);
    ValueId value = import_ok(im) ? build(&im->b, OP_GATHER, A_VAL(x), A_INT(1), A_VAL(column)) : 0;
    ValueId holds = ex_binary(im, t->compare, value, look_up(im, splits, at, samples, t->trees));
    at = ex_where(im, holds, look_up(im, yes, at, samples, t->trees),
                  look_up(im, no, at, samples, t->trees));
  }
  ValueId flat = EX_VIEW(im, at, sym_mul(&im->g->syms, samples, t->trees));
  return EX_VIEW(im, ex_index_select(im, votes, 0, flat), samples, t->trees, t->results);
}

static ValueId add_base(Import *im, ValueId scores, uint32_t results) {
  const float *base;
  uint32_t count;
  if (!attr_floats(im, "base_values", &base, &count) || !count)
    return scores;
  if (count != results) {
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "there are %u base values for %u results", count,
                results);
    return 0;
  }
  return ex_add(im, scores, classic_floats(im, base, 1, (int64_t[]){count}));
}

static ValueId read_samples(Import *im) {
  ValueId x = classic_input(im, 0);
  if (import_ok(im) && value_rank(im->g, x) != 2)
    import_fail(im, DIAG_INPUT_RANK, "the input has rank %u, not 2", value_rank(im->g, x));
  return x;
}

void translate_tree_regressor(Import *im) {
  ValueId x = read_samples(im);
  int64_t features = import_ok(im) ? ex_fixed(im, x, 1) : 0, targets = attr_int(im, "n_targets", 1);
  Trees t = {.results = targets > 0 && targets < VOTES_MAX ? (uint32_t)targets : 1};
  StrView how = attr_str(im, "aggregate_function", "SUM");
  OpId op = sv_eq_str(how, "MIN")       ? OP_AMIN
            : sv_eq_str(how, "MAX")     ? OP_AMAX
            : sv_eq_str(how, "AVERAGE") ? OP_MEAN_DIM
                                        : OP_SUM_DIM_INTLIST;
  if (!read_trees(im, &t, "target", features))
    return;
  ValueId scores = ex_reduce_one(im, op, walk(im, &t, x), 1, false);
  out(im, 0, classic_transformed(im, add_base(im, scores, t.results)));
}

/* Votes for one of two classes: their sum decides, against 0.5 when none is negative. The other
 * class has what is missing to 1, or the negative of it. */
static void two_classes(Import *im, const Trees *t, ValueId x, int64_t voted) {
  const int64_t *labels;
  const float *weights;
  uint32_t label_count, weight_count;
  bool positive = attr_floats(im, "class_weights", &weights, &weight_count);
  for (uint32_t i = 0; i < weight_count && positive; i++)
    positive = weights[i] >= 0;
  if (!attr_ints(im, "classlabels_int64s", &labels, &label_count) || labels[0] != 0 ||
      labels[1] != 1)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "the labels of two classes are not 0 and 1");
  bool logistic = sv_eq_str(attr_str(im, "post_transform", "NONE"), "LOGISTIC");
  if (voted != 0 || sv_eq_str(attr_str(im, "post_transform", "NONE"), "SOFTMAX"))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "the standard and ONNX Runtime differ on two classes with votes for class 1 alone, "
                "or with SOFTMAX");
  ValueId votes = ex_reduce_one(im, OP_SUM_DIM_INTLIST, walk(im, t, x), 1, false);
  ValueId score = add_base(im, ex_slice(im, votes, 1, 0, 1), 1);
  ValueId label = ex_with(im, OP_GT_TENSOR, score, positive ? 0.5 : 0);
  ValueId other = positive && !logistic
                      ? ex_binary(im, OP_SUB_TENSOR, ex_number(im, score, 1), score)
                      : ex_unary(im, OP_NEG, score);
  out(im, 0, ex_cast(im, EX_VIEW(im, label, ex_dim(im, x, 0)), DTYPE_I64));
  out(im, 1, classic_transformed(im, ex_cat2(im, other, score, 1)));
}

void translate_tree_classifier(Import *im) {
  ValueId x = read_samples(im);
  int64_t features = import_ok(im) ? ex_fixed(im, x, 1) : 0;
  const int64_t *ids, *labels;
  uint32_t id_count = 0, count = 0;
  bool shared = attr_ints(im, "class_ids", &ids, &id_count) && id_count > 0;
  Trees t = {.results = attr_ints(im, "classlabels_int64s", &labels, &count) && count ? count : 1};
  if (!read_trees(im, &t, "class", features))
    return;
  for (uint32_t i = 1; i < id_count && shared; i++)
    shared = ids[i] == ids[0];
  if (t.results == 2 && shared) {
    two_classes(im, &t, x, ids[0]);
    return;
  }
  if (t.results == 2)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "the standard and ONNX Runtime differ on two classes with a score each");
  ValueId scores = ex_reduce_one(im, OP_SUM_DIM_INTLIST, walk(im, &t, x), 1, false);
  scores = add_base(im, scores, t.results);
  if (!import_ok(im))
    return;
  ValueId best = build(&im->b, OP_ARGMAX, A_VAL(scores), A_INT(1), A_BOOL(false));
  out(im, 0, classic_labels(im, "classlabels_int64s", best, &count));
  out(im, 1, classic_transformed(im, scores));
}

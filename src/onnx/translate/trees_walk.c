/* All trees are walked together, one level a step (trees.h).
 *
 * Every test becomes "feature <= split", chosen so that it is exact: x < v is x <= the float below
 * v; "greater" swaps the branches; equality and membership are binary searches among the limits of
 * the values. NaN fails each comparison; where it must pass, the test reads a second copy of the
 * features in which NaN is -infinity.
 *
 * Each tree then stands at an entry of a table: a feature, a split, and where the two entries that
 * follow it are. So a step is four reads by index, a test and a sum. The entry of a leaf leads to
 * itself; votes are a table with a row for each entry. Deeper trees come first, so that those that
 * have ended are left out of the steps of the others.
 *
 * The runtime's comparisons take 3 to 9 ns an element, reads by index 3, and sums, relu and casts
 * less than 1 each. Where the features and splits are finite, "feature > split" is
 * relu(feature - split) cast to bool, and the entry for a passed test stands before the one for a
 * failed test. Else it is a comparison, and the order is the other one. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "onnx/translate/trees.h"

enum { DEPTH_MAX = 4096, ENTRIES_MAX = 1 << 26 };

/* Sorted limits: between two of them the outcome of the test is the same. It changes at each. */
typedef struct Limits {
  const double *at;
  uint32_t count;
  bool first; /* the outcome up to at[0] */
  uint32_t middle;
  bool nan_low, nan_low_once; /* tests read the copy with -infinity: all, or that of `middle` */
} Limits;

typedef struct Test {
  uint32_t feature;
  double split;
  uint32_t passed, failed; /* tests, or LEAF | a node */
} Test;

typedef struct Walk {
  const Trees *t;
  Test *tests;
  uint32_t test_count;
  uint32_t *first_test; /* of each node: its tests follow each other */
  Limits *limits;       /* of each node */
  bool two_copies;
  bool by_difference; /* tests are differences, not comparisons */
  int64_t *depths;    /* of each tree, tests on the longest way from its root to a leaf */
  uint32_t *order;    /* the trees, deepest first */
} Walk;

enum { LEAF = 1U << 31 };

/* --- tests --- */

static double below(const Trees *t, double v) {
  return t->wide ? nextafter(v, -INFINITY) : (double)nextafterf((float)v, -INFINITY);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return ORDER(x, y);
}

/* Limits of "x is one of these": up to the float below each, up to each. Neighbours share one. */
static void limits_of_set(Import *im, Walk *w, Limits *l, const double *values, uint32_t count) {
  double *sorted = ARENA_ARRAY(&im->scratch, double, count + 1),
         *at = ARENA_ARRAY(&im->scratch, double, 2 * (uint64_t)count + 1);
  if (count)
    memcpy(sorted, values, count * sizeof *sorted);
  qsort(sorted, count, sizeof *sorted, by_value);
  l->at = at;
  for (uint32_t i = 0; i < count; i++) {
    double low = below(w->t, sorted[i]);
    if (i && sorted[i] == sorted[i - 1])
      continue;
    if (l->count && at[l->count - 1] == low)
      l->count--;
    else if (sorted[i] == -INFINITY)
      l->first = !l->first;
    else
      at[l->count++] = low;
    at[l->count++] = sorted[i];
  }
}

static void limits_of_split(Import *im, Limits *l, double limit, bool first) {
  double *at = ARENA_ARRAY(&im->scratch, double, 1);
  at[0] = limit;
  l->at = at;
  l->count = 1;
  l->first = first;
}

/* Chooses where a search begins, and the copy of the features that it reads, so that NaN gets the
 * outcome that it must have. In the plain copy NaN fails all tests and ends above all limits, in
 * the other one below all of them. With an even number of limits both ends have the same outcome:
 * then NaN passes the first test only, and ends right below an odd limit. */
static void route_nan(Walk *w, Limits *l, bool wanted) {
  bool top = l->first ^ (l->count & 1);
  l->middle = l->count / 2;
  l->nan_low = top != wanted && l->first == wanted;
  l->nan_low_once = top != wanted && l->first != wanted;
  if (l->nan_low_once)
    l->middle |= 1;
  w->two_copies |= l->nan_low || l->nan_low_once;
}

static void find_limits(Import *im, Walk *w, const TreeNode *n, Limits *l) {
  bool negated = n->mode == TREE_NEQ, lower = n->mode == TREE_LT || n->mode == TREE_GTE;
  double split = w->t->wide ? n->split : (double)(float)n->split;
  if (n->mode != TREE_MEMBER && isnan(split)) /* the same for all numbers */
    limits_of_split(im, l, INFINITY, negated);
  else if (lower && split == -INFINITY)
    limits_of_split(im, l, INFINITY, n->mode == TREE_GTE);
  else if (lower)
    limits_of_split(im, l, below(w->t, split), n->mode == TREE_LT);
  else if (n->mode == TREE_LEQ || n->mode == TREE_GT)
    limits_of_split(im, l, split, n->mode == TREE_LEQ);
  else {
    l->first = negated;
    limits_of_set(im, w, l, n->mode == TREE_MEMBER ? n->members : &split,
                  n->mode == TREE_MEMBER ? n->member_count : 1);
  }
  route_nan(w, l, n->missing_true || negated);
}

/* Where a branch begins. */
static uint32_t target(const Walk *w, uint32_t node) {
  return w->t->nodes[node].mode == TREE_LEAF ? LEAF | node
                                             : w->first_test[node] + w->limits[node].middle;
}

/* The tests of limits [low, high) of a node; halving keeps the depth of calls below 32. */
static uint32_t add_tests(Walk *w, uint32_t node, uint32_t low, uint32_t high, uint32_t middle) {
  const TreeNode *n = &w->t->nodes[node];
  const Limits *l = &w->limits[node];
  if (low == high)
    return target(w, l->first ^ (low & 1) ? n->when_true : n->when_false);
  bool copy = l->nan_low || (l->nan_low_once && low == 0 && high == l->count);
  uint32_t index = w->first_test[node] + middle;
  w->tests[index] =
      (Test){.feature = n->feature + (copy ? w->t->features : 0),
             .split = l->at[middle],
             .passed = add_tests(w, node, low, middle, low + (middle - low) / 2),
             .failed = add_tests(w, node, middle + 1, high, middle + 1 + (high - middle - 1) / 2)};
  return index;
}

/* How many tests in a row a sample can meet in a node. */
static int64_t height_of(const Limits *l) {
  uint32_t above = l->count - l->middle - 1, most = l->middle > above ? l->middle : above;
  int64_t height = 1;
  for (; most; most /= 2)
    height++;
  return height;
}

static void make_tests(Import *im, Walk *w) {
  const Trees *t = w->t;
  uint64_t count = 0;
  w->first_test = ARENA_ARRAY(&im->scratch, uint32_t, t->node_count);
  w->limits = ARENA_ARRAY(&im->scratch, Limits, t->node_count);
  for (uint32_t i = 0; i < t->node_count && import_ok(im); i++) {
    if (t->nodes[i].mode == TREE_LEAF)
      continue;
    find_limits(im, w, &t->nodes[i], &w->limits[i]);
    w->first_test[i] = (uint32_t)count;
    count += w->limits[i].count;
    if (count > ENTRIES_MAX)
      import_fail(im, DIAG_UNSUPPORTED_FEATURE, "the trees have more than %d tests", ENTRIES_MAX);
  }
  if (!import_ok(im))
    return;
  w->test_count = (uint32_t)count;
  w->tests = ARENA_ARRAY(&im->scratch, Test, count + 1);
  for (uint32_t i = 0; i < t->node_count; i++)
    if (t->nodes[i].mode != TREE_LEAF)
      (void)add_tests(w, i, 0, w->limits[i].count, w->limits[i].middle);
}

/* All nodes, those of one level after those of the level above; `count` is more than there are
 * nodes where a leaf is reached twice. */
typedef struct Levels {
  uint32_t *nodes, count;
  uint32_t *tree; /* by node: the tree that it is in, NO_TREE of none */
} Levels;

enum { NO_TREE = UINT32_MAX };

static Levels levels_of(const Trees *t, Arena *arena) {
  Levels all = {.nodes = ARENA_ARRAY(arena, uint32_t, 3 * (uint64_t)t->node_count),
                .tree = ARENA_ARRAY(arena, uint32_t, t->node_count)};
  for (uint32_t i = 0; i < t->node_count; i++)
    all.tree[i] = NO_TREE;
  for (uint32_t i = 0; i < t->root_count; i++) {
    all.tree[t->roots[i]] = i;
    all.nodes[all.count++] = t->roots[i];
  }
  for (uint32_t i = 0; i < all.count; i++) {
    const TreeNode *n = &t->nodes[all.nodes[i]];
    if (n->mode == TREE_LEAF)
      continue;
    all.tree[n->when_true] = all.tree[n->when_false] = all.tree[all.nodes[i]];
    all.nodes[all.count++] = n->when_true;
    all.nodes[all.count++] = n->when_false;
  }
  return all;
}

static void measure_depths(Import *im, Walk *w) {
  const Trees *t = w->t;
  Levels all = levels_of(t, &im->scratch);
  int64_t *level = ARENA_ARRAY(&im->scratch, int64_t, t->node_count);
  w->depths = ARENA_ARRAY(&im->scratch, int64_t, t->root_count);
  for (uint32_t i = 0; i < all.count && import_ok(im); i++) {
    uint32_t node = all.nodes[i], tree = all.tree[node];
    const TreeNode *n = &t->nodes[node];
    if (n->mode == TREE_LEAF)
      continue;
    int64_t below = level[node] + height_of(&w->limits[node]);
    w->depths[tree] = max_i64(w->depths[tree], below);
    level[n->when_true] = level[n->when_false] = below;
    if (below > DEPTH_MAX)
      import_fail(im, DIAG_UNSUPPORTED_FEATURE, "a tree has more than %d levels", DEPTH_MAX);
  }
}

/* Sorts by counting: how many trees have each depth is how many come before the next. */
static void order_trees(Import *im, Walk *w) {
  Arena *arena = &im->scratch;
  uint32_t count = w->t->root_count, *before = ARENA_ARRAY(arena, uint32_t, DEPTH_MAX + 2), at = 0;
  w->order = ARENA_ARRAY(arena, uint32_t, count);
  for (uint32_t i = 0; i < count && import_ok(im); i++)
    before[w->depths[i]]++;
  for (int64_t depth = DEPTH_MAX; depth >= 0; depth--) {
    uint32_t here = before[depth];
    before[depth] = at;
    at += here;
  }
  for (uint32_t i = 0; i < count && import_ok(im); i++)
    w->order[before[w->depths[i]]++] = i;
}

/* --- tables --- */

typedef struct Entries {
  uint32_t count;
  int64_t *features, *follow;
  double *splits;
  uint32_t *leaf; /* the node, or NO_LEAF */
} Entries;

enum { NO_LEAF = UINT32_MAX };

static void set_entry(const Walk *w, Entries *e, uint32_t at, uint32_t to) {
  bool leaf = (to & LEAF) != 0;
  e->leaf[at] = leaf ? to & ~LEAF : NO_LEAF;
  e->features[at] = leaf ? 0 : w->tests[to].feature;
  double none = w->by_difference ? INFINITY : (double)NAN; /* the sum of a step is `at` itself */
  e->splits[at] = leaf ? none : w->tests[to].split;
  e->follow[at] = leaf ? at : (int64_t)w->t->root_count + 2 * (int64_t)to;
}

static Entries make_entries(Import *im, const Walk *w) {
  Arena *arena = &im->scratch;
  uint32_t roots = w->t->root_count, count = roots + 2 * w->test_count;
  Entries e = {.count = count,
               .features = ARENA_ARRAY(arena, int64_t, count),
               .follow = ARENA_ARRAY(arena, int64_t, count),
               .splits = ARENA_ARRAY(arena, double, count),
               .leaf = ARENA_ARRAY(arena, uint32_t, count)};
  for (uint32_t i = 0; i < roots; i++)
    set_entry(w, &e, i, target(w, w->t->roots[w->order[i]]));
  for (uint32_t i = 0; i < w->test_count; i++) {
    set_entry(w, &e, roots + 2 * i + !w->by_difference, w->tests[i].passed);
    set_entry(w, &e, roots + 2 * i + w->by_difference, w->tests[i].failed);
  }
  return e;
}

/* A constant in the type of the features. */
static ValueId real_table(Import *im, const Walk *w, const double *values, uint32_t rank,
                          const int64_t *dims) {
  if (w->t->wide)
    return build_const(&im->b, DTYPE_F64, rank, dims, values);
  uint64_t count = rank == 2 ? (uint64_t)(dims[0] * dims[1]) : (uint64_t)dims[0];
  float *narrow = ARENA_ARRAY(&im->scratch, float, count + 1);
  for (uint64_t i = 0; i < count; i++)
    narrow[i] = (float)values[i];
  return build_const(&im->b, DTYPE_F32, rank, dims, narrow);
}

static double no_vote(const Trees *t) {
  return t->aggregate == TREES_MIN ? INFINITY : t->aggregate == TREES_MAX ? -INFINITY : 0;
}

static void cast_vote(const Trees *t, double *sum, double weight) {
  if (t->aggregate == TREES_MIN)
    *sum = weight < *sum ? weight : *sum;
  else if (t->aggregate == TREES_MAX)
    *sum = weight > *sum ? weight : *sum;
  else
    *sum += weight;
}

/* A row of votes for each entry; those of all nodes are added up first. */
static double *vote_rows(Import *im, const Walk *w, const Entries *e, bool presence) {
  const Trees *t = w->t;
  uint64_t results = t->results, of_nodes = t->node_count * results, of_rows = e->count * results;
  double *by_node = ARENA_ARRAY(&im->scratch, double, of_nodes),
         *rows = ARENA_ARRAY(&im->scratch, double, of_rows);
  double none = presence ? 0 : no_vote(t);
  for (uint64_t i = 0; i < of_nodes; i++)
    by_node[i] = none;
  for (uint32_t i = 0; i < t->vote_count; i++) {
    double *sum = &by_node[t->votes[i].node * results + t->votes[i].result];
    if (presence)
      *sum = 1;
    else
      cast_vote(t, sum, t->votes[i].weight);
  }
  for (uint32_t i = 0; i < e->count; i++)
    for (uint64_t r = 0; r < results; r++)
      rows[i * results + r] = e->leaf[i] == NO_LEAF ? none : by_node[e->leaf[i] * results + r];
  return rows;
}

/* --- the program --- */

static double largest(const Trees *t) { return t->wide ? DBL_MAX : (double)FLT_MAX; }

/* What features and splits are multiplied by, so that no difference of two of them is denormal:
 * XNNPACK takes such numbers for 0. */
static double factor(const Trees *t) {
  return t->wide ? 1 / DBL_EPSILON : (double)(1 / FLT_EPSILON);
}

/* Differences want every feature once more, made finite: as what they take less in a test, they pay
 * when there are at least half as many tests as features. */
static void choose_test(Walk *w, int64_t features) {
  int64_t met = 0;
  for (uint32_t i = 0; i < w->t->root_count; i++)
    met += w->depths[i];
  w->by_difference = features / 2 <= met;
  for (uint32_t i = 0; i < w->test_count; i++)
    w->by_difference &= fabs(w->tests[i].split) < largest(w->t) / factor(w->t);
  for (uint32_t i = 0; w->by_difference && i < w->test_count; i++)
    w->tests[i].split *= factor(w->t);
}

/* The features as the tests read them. By difference: finite, with an order to all splits, which
 * are less than the largest number, that is the same; NaN fails all tests, and passes them in the
 * second copy. */
static ValueId with_copies(Import *im, const Walk *w, ValueId x) {
  ValueId missing = ex_unary(im, OP_ISNAN, x);
  double most = w->by_difference ? largest(w->t) : INFINITY;
  ValueId low = w->two_copies ? ex_where(im, missing, ex_number(im, x, -most), x) : 0;
  if (w->by_difference)
    x = ex_where(im, missing, ex_number(im, x, most), x);
  x = low ? ex_cat2(im, x, low, 1) : x;
  return w->by_difference ? ex_clamp(im, ex_times(im, x, factor(w->t)), -most, most) : x;
}

/* What a test adds to the place of the entries behind it. */
static ValueId test(Import *im, const Walk *w, ValueId value, ValueId split) {
  ValueId second = w->by_difference
                       ? ex_cast(im, ex_unary(im, OP_RELU, ex_sub(im, value, split)), DTYPE_BOOL)
                       : ex_le(im, value, split);
  return ex_cast(im, second, DTYPE_I64);
}

/* The entries [N, trees] after the first test, which is the same for all samples. */
static ValueId first_step(Import *im, const Walk *w, const Entries *e, ValueId x) {
  int64_t trees = w->t->root_count;
  ValueId value = ex_index_select(im, x, 1, build_const_ints(&im->b, e->features, (uint32_t)trees)),
          second = test(im, w, value, real_table(im, w, e->splits, 1, &trees));
  ValueId follow = build_const_ints(&im->b, e->follow, (uint32_t)trees);
  return ex_add(im, second, follow);
}

/* What the steps read. */
typedef struct Tables {
  ValueId features, follow, splits; /* [entries] */
  ValueId x;                        /* the samples, one after the other */
  ValueId row;                      /* where each begins, [N, 1]; 0: there is one */
} Tables;

static Tables make_tables(Import *im, const Walk *w, const Entries *e, ValueId x) {
  SymInt samples = ex_dim(im, x, 0), columns = ex_dim(im, x, 1);
  int64_t count = e->count;
  Tables t = {0};
  t.features = build_const_ints(&im->b, e->features, e->count);
  t.follow = build_const_ints(&im->b, e->follow, e->count);
  t.splits = real_table(im, w, e->splits, 1, &count);
  t.x = ex_flat(im, x);
  if (!(sym_is_const(samples) && samples == 1))
    t.row = EX_VIEW(im, ex_times(im, ex_arange(im, samples), (double)columns), samples, 1);
  return t;
}

static ValueId step(Import *im, const Walk *w, const Tables *t, ValueId at) {
  ValueId column = ex_look_up(im, t->features, at);
  column = t->row ? ex_add(im, column, t->row) : column;
  ValueId value = ex_look_up(im, t->x, column),
          second = test(im, w, value, ex_look_up(im, t->splits, at));
  return ex_add(im, ex_look_up(im, t->follow, at), second);
}

/* The columns of [N, trees] in the order of the model. */
static ValueId in_order(Import *im, const Walk *w, ValueId at) {
  uint32_t count = w->t->root_count;
  int64_t *from = ARENA_ARRAY(&im->scratch, int64_t, count);
  bool same = true;
  for (uint32_t i = 0; i < count; i++) {
    from[w->order[i]] = i;
    same = same && w->order[i] == i;
  }
  return same ? at : ex_index_select(im, at, 1, build_const_ints(&im->b, from, count));
}

/* Trees that have ended wait aside once they are a quarter of those that are walked. */
static ValueId walk_down(Import *im, const Walk *w, const Entries *e, ValueId x) {
  ValueId at = first_step(im, w, e, x), ended[64],
          all[64]; /* more quarters than a count of 32 bits has */
  uint32_t width = w->t->root_count, active = width, parts = 0;
  Tables t = w->depths[w->order[0]] > 1 ? make_tables(im, w, e, x) : (Tables){0};
  for (int64_t level = 1; level < w->depths[w->order[0]] && import_ok(im); level++) {
    while (w->depths[w->order[active - 1]] <= level)
      active--;
    if (active <= width - width / 4 && active < width) {
      ended[parts++] = ex_slice(im, at, 1, active, width);
      at = ex_slice(im, at, 1, 0, active);
      width = active;
    }
    at = step(im, w, &t, at);
  }
  if (!parts)
    return in_order(im, w, at);
  all[0] = at;
  for (uint32_t i = 0; i < parts; i++)
    all[1 + i] = ended[parts - 1 - i];
  return in_order(im, w, ex_cat(im, all, parts + 1, 1));
}

static ValueId votes_at(Import *im, const Walk *w, const double *rows, uint32_t entries, ValueId at,
                        SymInt samples) {
  ValueId table = real_table(im, w, rows, 2, (int64_t[]){entries, w->t->results}),
          flat = EX_VIEW(im, at, sym_mul(&im->g->syms, samples, w->t->root_count));
  return EX_VIEW(im, ex_index_select(im, table, 0, flat), samples, w->t->root_count, w->t->results);
}

static ValueId aggregated(Import *im, const Walk *w, ValueId votes) {
  static const OpId ops[] = {[TREES_AVERAGE] = OP_SUM_DIM_INTLIST,
                             [TREES_SUM] = OP_SUM_DIM_INTLIST,
                             [TREES_MIN] = OP_AMIN,
                             [TREES_MAX] = OP_AMAX};
  ValueId y = ex_reduce_one(im, ops[w->t->aggregate], votes, 1, false);
  return w->t->aggregate == TREES_AVERAGE ? ex_with(im, OP_DIV_TENSOR, y, w->t->root_count) : y;
}

/* Of a single tree: the result with most votes where the samples end, the first of several. */
static ValueId winner_at(Import *im, const Walk *w, const Entries *e, const double *rows,
                         ValueId at) {
  const Trees *t = w->t;
  uint64_t results = t->results;
  const double *present = vote_rows(im, w, e, true);
  int64_t *best = ARENA_ARRAY(&im->scratch, int64_t, e->count);
  for (uint32_t i = 0; i < e->count; i++) {
    double most = -INFINITY;
    for (uint64_t r = 0; r < results; r++) {
      double sum = t->wide ? rows[i * results + r] : (double)(float)rows[i * results + r];
      if (present[i * results + r] == 0 || sum <= most)
        continue;
      most = sum;
      best[i] = (int64_t)r;
    }
  }
  ValueId winner = ex_look_up(im, build_const_ints(&im->b, best, e->count), at);
  return EX_VIEW(im, winner, ex_dim(im, at, 0));
}

ValueId trees_walk(Import *im, const Trees *t, ValueId x, ValueId *voted, ValueId *winner) {
  Walk w = {.t = t};
  make_tests(im, &w);
  measure_depths(im, &w);
  order_trees(im, &w);
  uint64_t cells;
  uint64_t entries = t->root_count + 2 * (uint64_t)w.test_count;
  if (!mul_u64(max_i64((int64_t)entries, t->node_count), t->results, &cells) || cells > ENTRIES_MAX)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "%llu nodes for %u results are too many",
                (unsigned long long)entries, t->results);
  if (!import_ok(im))
    return 0;
  choose_test(&w, t->features);
  Entries e = make_entries(im, &w);
  SymInt samples = ex_dim(im, x, 0);
  bool plain = !w.two_copies && !w.by_difference;
  ValueId at = walk_down(im, &w, &e, plain ? x : with_copies(im, &w, x));
  const double *rows = vote_rows(im, &w, &e, false);
  if (winner && t->root_count == 1)
    *winner = winner_at(im, &w, &e, rows, at);
  ValueId y = aggregated(im, &w, votes_at(im, &w, rows, e.count, at, samples));
  if (voted) {
    ValueId present = votes_at(im, &w, vote_rows(im, &w, &e, true), e.count, at, samples);
    *voted = ex_with(im, OP_GT_TENSOR, ex_reduce_one(im, OP_AMAX, present, 1, false), 0);
    y = ex_where(im, *voted, y, ex_number(im, y, 0));
  }
  return y;
}

/* --- which results get votes --- */

static int by_result(const void *a, const void *b) {
  const TreeVote *x = a, *y = b;
  int order = ORDER(x->result, y->result);
  return order ? order : ORDER(x->node, y->node);
}

/* How many leaves each tree has; false when a leaf is reached twice. */
static bool count_leaves(const Trees *t, const Levels *all, uint32_t *leaves) {
  uint32_t reached = 0;
  for (uint32_t i = 0; i < t->node_count; i++)
    reached += all->tree[i] != NO_TREE;
  for (uint32_t i = 0; i < all->count; i++)
    leaves[all->tree[all->nodes[i]]] += t->nodes[all->nodes[i]].mode == TREE_LEAF;
  return reached == all->count;
}

/* A result is voted for by all samples when all leaves of one tree vote for it. */
TreeVoted *trees_voted(Import *im, const Trees *t) {
  Arena *arena = &im->scratch;
  TreeVoted *voted = ARENA_ARRAY(arena, TreeVoted, t->results);
  uint32_t *leaves = ARENA_ARRAY(arena, uint32_t, t->root_count),
           *found = ARENA_ARRAY(arena, uint32_t, t->root_count);
  TreeVote *votes = ARENA_ARRAY(arena, TreeVote, (uint64_t)t->vote_count + 1);
  Levels all = levels_of(t, arena);
  bool known = count_leaves(t, &all, leaves);
  if (t->vote_count)
    memcpy(votes, t->votes, t->vote_count * sizeof *votes);
  qsort(votes, t->vote_count, sizeof *votes, by_result);
  for (uint32_t i = 0; i < t->vote_count; i++) {
    bool next = i == 0 || votes[i].result != votes[i - 1].result;
    if (next)
      memset(found, 0, t->root_count * sizeof *found);
    if (!next && votes[i].node == votes[i - 1].node)
      continue;
    uint32_t at = all.tree[votes[i].node], result = votes[i].result;
    bool leaf = t->nodes[votes[i].node].mode == TREE_LEAF && at != NO_TREE;
    if (known && leaf && ++found[at] == leaves[at])
      voted[result] = VOTED_ALWAYS;
    else if (voted[result] == VOTED_NEVER)
      voted[result] = VOTED_SOMETIMES;
  }
  return voted;
}

/* NonMaxSuppression. */
#include <float.h>
#include <math.h>

#include "onnx/data_sizes.h"
#include "onnx/express.h"

/* --- NonMaxSuppression ---
 *
 * All batches and classes (groups) at once, in a loop that ends when no group has a box left. Boxes
 * without a score above the lowest one that counts are left out first: of a detector's thousands
 * that is nearly all. Every step takes the best live score of each group and removes what overlaps
 * its box: by a matrix of all pairs of boxes, or, where that is the larger work, by comparing the
 * taken boxes with all others. Which steps found a box is known only while running, so the result
 * is picked by nonzero.
 *
 * Where the number of selections is limited, they are looked for among the top k boxes of each
 * group first (pre-NMS top k), then for the groups in which those were not enough, among all.
 */

enum {
  BOXES_MAX = 65536,
  MATRIX_MAX = 4096,
  FEW = 256,       /* scores that are not worth a selection */
  CLASSES_MIN = 8, /* classes that are worth one */
  TAKEN = 4,       /* one in so many boxes is expected to be taken where nothing else limits them */
  MANY = 4,        /* so many times the top k are worth choosing among */
  TOP_K_MIN = 128  /* best boxes of a group, at least: a step costs as much as so many */
};

/* Boxes among which a loop selects. Group g is class g % classes of batch g / classes. */
typedef struct Boxes {
  SymInt batches, classes, groups, count;
  ValueId low[2], high[2]; /* corners, [batches, count] */
  ValueId area;            /* [batches, count] */
  ValueId over;            /* penalties [batches * count, count]; 0 without a matrix */
  ValueId live;            /* scores [groups, count], -inf when gone */
} Boxes;

/* What a loop selected: scores and positions, [groups, steps]; scores are -inf from the step on at
 * which a group has no box left. */
typedef struct Selected {
  ValueId scores, boxes;
} Selected;

typedef struct Nms {
  Boxes all;
  int64_t groups, steps; /* groups of the model */
  int64_t top_k; /* of each group, among which selections are looked for first; 0: among all */
  ArgIn trip;    /* most steps */
  ValueId none;  /* whether a run-time limit is 0; 0: there is no such limit */
  ValueId kept;  /* [n], which boxes of the model these are; 0: all */
  ValueId kept_groups;      /* [n], which groups; 0: all */
  ValueId threshold, least; /* of the overlap; of the scores, 0: all count */
} Nms;

static ValueId number_input(Import *im, uint32_t i) {
  ValueId v = in(im, i);
  return v ? ex_scalar(im, v) : 0;
}

/* Calls one of the functions below for the corners and the area of boxes. */
typedef ValueId (*OfBoxes)(Import *im, const Boxes *boxes, ValueId x, ValueId index);

static Boxes each(Import *im, const Boxes *boxes, OfBoxes f, ValueId index) {
  Boxes b = *boxes;
  for (uint32_t k = 0; k < 2; k++) {
    b.low[k] = f(im, boxes, boxes->low[k], index);
    b.high[k] = f(im, boxes, boxes->high[k], index);
  }
  b.area = f(im, boxes, boxes->area, index);
  return b;
}

static ValueId emptied(Import *im, const Boxes *boxes, ValueId x, ValueId which) {
  (void)boxes;
  return ex_where(im, which, ex_number(im, x, 0), x);
}

static void read_corners(Import *im, Boxes *all, ValueId boxes) {
  bool centred = attr_flag(im, "center_point_box", false);
  ValueId own[2];
  for (uint32_t k = 0; k < 2; k++) {
    ValueId a = ex_select(im, boxes, 2, k), b = ex_select(im, boxes, 2, 2 + k);
    ValueId half = centred ? ex_times(im, b, 0.5) : 0;
    all->low[k] = centred ? ex_sub(im, a, half) : ex_min(im, a, b);
    all->high[k] = centred ? ex_add(im, a, half) : ex_max(im, a, b);
    own[k] = ex_sub(im, all->high[k], all->low[k]);
  }
  all->area = ex_mul(im, own[0], own[1]);
  /* A box without a finite area overlaps none, as an empty one. */
  ValueId wrong = ex_with(im, OP_NE_TENSOR, ex_sub(im, all->area, all->area), 0);
  *all = each(im, all, emptied, wrong);
}

static ValueId as_row(Import *im, const Boxes *boxes, ValueId x, ValueId index) {
  (void)index;
  return EX_VIEW(im, x, boxes->batches, 1, boxes->count);
}

static ValueId as_column(Import *im, const Boxes *boxes, ValueId x, ValueId index) {
  (void)index;
  return EX_VIEW(im, x, boxes->batches, boxes->count, 1);
}

/* The elements of each row of x at positions that are known to be within it, [rows, n]. Reads by
 * places in all of x take a third of the time of gather. */
static ValueId at_positions(Import *im, ValueId x, ValueId index) {
  SymInt rows = ex_dim(im, x, 0);
  if (rows != 1) {
    ValueId columns = ex_size(im, ex_dim(im, x, 1)),
            begins = ex_mul(im, ex_arange(im, rows), columns);
    index = ex_add(im, index, EX_VIEW(im, begins, rows, 1));
  }
  return ex_look_up(im, ex_flat(im, x), index);
}

/* The boxes at these positions, [groups, 1], as a column of each batch. */
static ValueId taken(Import *im, const Boxes *boxes, ValueId x, ValueId index) {
  ValueId at = EX_VIEW(im, index, boxes->batches, boxes->classes);
  return EX_VIEW(im, at_positions(im, x, at), boxes->batches, boxes->classes, 1);
}

/* What a box of a takes from the score of one of b: infinity where their common area is more than
 * the threshold allows of both together, else 0. The runtime's comparisons and selections take four
 * times as long as these sums and products. Twice 2^127 makes infinity of every normal number. */
static ValueId penalty(Import *im, const Nms *nms, const Boxes *a, const Boxes *b) {
  ValueId side[2];
  for (uint32_t k = 0; k < 2; k++) {
    ValueId end = ex_min(im, a->high[k], b->high[k]), begin = ex_max(im, a->low[k], b->low[k]);
    side[k] = ex_unary(im, OP_RELU, ex_sub(im, end, begin));
  }
  ValueId common = ex_mul(im, side[0], side[1]), both = ex_add(im, a->area, b->area);
  ValueId whole = ex_at_least(im, ex_sub(im, both, common), (double)FLT_MIN),
          excess = ex_unary(im, OP_RELU, ex_sub(im, ex_div(im, common, whole), nms->threshold));
  return ex_times(im, ex_times(im, excess, 0x1p127), 0x1p127);
}

static ValueId overlap_matrix(Import *im, const Nms *nms) {
  const Boxes *all = &nms->all;
  Boxes rows = each(im, all, as_row, 0), columns = each(im, all, as_column, 0);
  return EX_VIEW(im, penalty(im, nms, &rows, &columns),
                 sym_mul(&im->g->syms, all->batches, all->count), all->count);
}

/* Whether a matrix takes less time than comparing at each step. A pair of it was measured at 1.3 ns
 * on XNNPACK, 12 on portable kernels; a step that compares takes 2 us more than one that reads the
 * matrix, and 1.8 ns more (13) for each box of each class. */
static bool matrix_pays(const Nms *nms, int64_t boxes) {
  int64_t steps = min_i64(nms->steps, boxes / TAKEN + 1);
  return boxes <= MATRIX_MAX && 2 * boxes * boxes <= steps * (600 + 3 * nms->all.classes * boxes);
}

/* As many steps as a run-time number says, at most as there are boxes, and at least one, for the
 * runtime selects nothing from no rows: no box is left for it where the number is 0. */
static ArgIn counted_at_run(Import *im, Nms *nms, ValueId most) {
  ValueId count = ex_cast(im, ex_scalar(im, most), DTYPE_I64), one = ex_number(im, count, 1);
  nms->none = ex_lt(im, count, one);
  count = ex_max(im, ex_min(im, count, ex_size(im, nms->all.count)), one);
  return A_VAL(ex_unary(im, OP_LOCAL_SCALAR_DENSE, count));
}

/* Reads what limits the selections, and whether there is a matrix. */
static bool nms_plan(Import *im, Nms *nms) {
  SymTable *t = &im->g->syms;
  int64_t boxes = sym_upper(t, nms->all.count), most;
  ValueId limit = in(im, 2);
  if (boxes > BOXES_MAX || nms->groups > MATRIX_MAX)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "%lld boxes in %lld groups are too many, at most %d in %d", (long long)boxes,
                (long long)nms->groups, BOXES_MAX, MATRIX_MAX);
  nms->steps = limit ? boxes : 0;
  if (limit && one_const(im, limit, &most))
    nms->steps = min_i64(boxes, max_i64(most, 0));
  bool at_run = limit && !value_is_const(im->g, limit);
  nms->trip = at_run ? counted_at_run(im, nms, limit) : A_INT(nms->steps);
  return import_ok(im) && matrix_pays(nms, boxes);
}

/* Where there may be no boxes at run time, appends one with the score -inf, which is never
 * selected: a maximum over nothing would end the call. */
static void never_none(Import *im, ValueId *boxes, ValueId *scores) {
  SymInt count = ex_dim(im, *boxes, 1);
  if (sym_is_const(count) || sym_lower(&im->g->syms, count) > 0)
    return;
  const Dims box = {.d = {ex_dim(im, *boxes, 0), 1, 4}, .rank = 3},
             score = {.d = {ex_dim(im, *scores, 0), ex_dim(im, *scores, 1), 1}, .rank = 3};
  *boxes = ex_cat2(im, *boxes, ex_filled(im, ex_dtype(im, *boxes), box, 0), 1);
  *scores = ex_cat2(im, *scores, ex_filled(im, ex_dtype(im, *scores), score, -INFINITY), 2);
}

/* Keeps the boxes with a score above `least`, of whatever batch and class; also those with a NaN,
 * which hides the other scores from the maximum. */
static void keep_candidates(Import *im, Nms *nms, ValueId *boxes, ValueId *scores) {
  ValueId best = EX_VIEW(im, *scores, nms->groups, nms->all.count);
  best = nms->groups == 1 ? best : ex_reduce_one(im, OP_AMAX, best, 0, true);
  ValueId low = EX_VIEW(im, ex_le(im, best, nms->least), nms->all.count),
          hits = ex_unary(im, OP_NONZERO, ex_unary(im, OP_LOGICAL_NOT, low)),
          index = EX_VIEW(im, hits, ex_dim(im, hits, 0));
  *boxes = ex_index_select(im, *boxes, 1, index);
  *scores = ex_index_select(im, *scores, 2, index);
  never_none(im, boxes, scores);
  nms->all.count = ex_dim(im, *boxes, 1);
  nms->kept = ex_cat2(im, index, build_const_ints(&im->b, &(int64_t){0}, 1), 0);
}

/* The numbers of the rows for which `some`, [rows] bool, is true, or that of the last row where it
 * is true for no row: the runtime selects nothing from no rows. */
static ValueId rows_of(Import *im, ValueId some) {
  ValueId none = ex_unary(im, OP_LOGICAL_NOT, ex_unary(im, OP_ANY, some)),
          named = ex_cat2(im, some, EX_VIEW(im, none, 1), 0),
          hits = ex_unary(im, OP_NONZERO, named),
          last = ex_minus(im, ex_size(im, ex_dim(im, some, 0)), 1);
  return ex_min(im, EX_VIEW(im, hits, ex_dim(im, hits, 0)), last);
}

/* Keeps the classes in which a box has a score above `least`: of a detector's 80 an image shows a
 * few. With several batches the groups of a batch would differ in number. */
static void keep_classes(Import *im, Nms *nms, ValueId *scores) {
  if (nms->all.batches != 1 || nms->groups < CLASSES_MIN)
    return;
  ValueId best = EX_VIEW(im, ex_reduce_one(im, OP_AMAX, *scores, 2, true), nms->groups),
          low = ex_le(im, best, nms->least);
  nms->kept_groups = rows_of(im, ex_unary(im, OP_LOGICAL_NOT, low));
  *scores = ex_index_select(im, *scores, 1, nms->kept_groups);
  nms->all.classes = nms->all.groups = ex_dim(im, *scores, 1);
}

/* Scores of the boxes that can be taken, -inf of the others. */
static ValueId live_scores(Import *im, const Nms *nms, ValueId scores) {
  ValueId gone = ex_number(im, scores, -INFINITY);
  if (nms->least)
    scores = ex_where(im, ex_gt(im, scores, nms->least), scores, gone);
  if (nms->none)
    scores = ex_where(im, nms->none, gone, scores);
  return ex_clamp(im, scores, -INFINITY, (double)FLT_MAX); /* no infinity less infinity */
}

/* The k of the top k; 0: there is no such first loop. Of the best boxes half are expected to be
 * taken. */
static int64_t pre_nms_top_k(const Import *im, const Nms *nms) {
  int64_t most = max_i64(2 * nms->steps, TOP_K_MIN);
  bool pays = most <= sym_upper(&im->g->syms, nms->all.count) / MANY;
  return pays && nms->kept && !nms->none ? most : 0;
}

static bool nms_read(Import *im, Nms *nms) {
  ValueId boxes = in_required(im, 0), scores = in_required(im, 1);
  if (ex_rank(im, boxes) != 3 || ex_rank(im, scores) != 3)
    import_fail(im, DIAG_INPUT_RANK, "boxes and scores must have rank 3");
  if (!import_ok(im))
    return false;
  never_none(im, &boxes, &scores);
  Boxes *all = &nms->all;
  *nms = (Nms){.threshold = number_input(im, 3)};
  nms->least = number_input(im, 4);
  all->batches = ex_fixed(im, boxes, 0);
  all->classes = ex_fixed(im, scores, 1);
  all->count = ex_dim(im, boxes, 1);
  if (!import_ok(im) || !mul_i64(all->batches, all->classes, &nms->groups))
    return false;
  all->groups = nms->groups;
  bool matrix = nms_plan(im, nms);
  if (!nms->threshold)
    nms->threshold = ex_number(im, boxes, 0);
  if (nms->least && sym_upper(&im->g->syms, all->count) > FEW / max_i64(nms->groups, 1)) {
    keep_candidates(im, nms, &boxes, &scores);
    keep_classes(im, nms, &scores);
  }
  read_corners(im, all, boxes);
  nms->top_k = pre_nms_top_k(im, nms);
  if (matrix && nms->steps && all->count != 0 && !nms->top_k)
    all->over = overlap_matrix(im, nms);
  all->live = EX_VIEW(im, scores, all->groups, all->count);
  if (!nms->top_k)
    all->live = live_scores(im, nms, all->live);
  return import_ok(im);
}

/* --- The loop --- */

/* What the chosen boxes, [groups, 1], take from all scores, by the matrix. */
static ValueId penalty_by_matrix(Import *im, const Boxes *boxes, ValueId chosen) {
  ValueId index = EX_VIEW(im, chosen, boxes->groups);
  if (boxes->batches != 1) {
    int64_t *batch = ARENA_ARRAY(&im->scratch, int64_t, (size_t)boxes->groups);
    for (int64_t g = 0; g < boxes->groups; g++)
      batch[g] = g / boxes->classes;
    ValueId base = build_const_ints(&im->b, batch, (uint32_t)boxes->groups);
    index = ex_add(im, index, ex_mul(im, base, ex_size(im, boxes->count)));
  }
  return ex_index_select(im, boxes->over, 0, index);
}

/* The same by comparing them with all. */
static ValueId penalty_by_boxes(Import *im, const Nms *nms, const Boxes *boxes, ValueId chosen) {
  Boxes rows = each(im, boxes, as_row, 0), columns = each(im, boxes, taken, chosen);
  return EX_VIEW(im, penalty(im, nms, &rows, &columns), boxes->groups, boxes->count);
}

/* One selection of every group: score and box, [groups, 1]. */
static void nms_step(Import *im, const Nms *nms, Boxes *boxes, ValueId *score, ValueId *box) {
  *score = build(&im->b, OP_MAX_DIM, A_VAL(boxes->live), A_INT(1), A_BOOL(true));
  *box = *score ? *score + 1 : 0;
  ValueId penalties =
      boxes->over ? penalty_by_matrix(im, boxes, *box) : penalty_by_boxes(im, nms, boxes, *box);
  ValueId left = ex_sub(im, boxes->live, penalties);
  boxes->live =
      build(&im->b, OP_SCATTER_VALUE, A_VAL(left), A_INT(1), A_VAL(*box), A_FLOAT(-INFINITY));
}

static Selected nms_loop(Import *im, const Nms *nms, Boxes boxes) {
  const Dims none = {.d = {0, boxes.groups}, .rank = 2};
  SymInt rows = sym_symbol(&im->g->syms, SV(""), 0, nms->steps, true);
  ValueId scores = ex_filled(im, ex_dtype(im, boxes.live), none, 0),
          numbers = ex_filled(im, DTYPE_I64, none, 0), states[] = {boxes.live, scores, numbers};
  ValueId number = build(&im->b, OP_LOOP, nms->trip, A_OPT(0), A_VALS(states, COUNT_OF(states)));
  if (!import_ok(im))
    return (Selected){0};
  SymInt step = value_type(im->g, number)->dims[0];
  const Dims collected = {.d = {rows, boxes.groups}, .rank = 2};
  ValueId score, box;
  boxes.live = number + 1;
  ex_set_shape(im, number + 2, collected);
  ex_set_shape(im, number + 3, collected);
  nms_step(im, nms, &boxes, &score, &box);
  ValueId left = ex_unary(im, OP_ANY, ex_with(im, OP_NE_TENSOR, score, -INFINITY));
  states[0] = boxes.live;
  states[1] = ex_put_row(im, number + 2, EX_VIEW(im, score, boxes.groups), step);
  states[2] = ex_put_row(im, number + 3, EX_VIEW(im, box, boxes.groups), step);
  ValueId result = build(&im->b, OP_NEXT, A_OPT(left), A_VALS(states, COUNT_OF(states)));
  Selected selected = {.scores = EX_PERMUTE(im, result + 1, 1, 0)};
  selected.boxes = EX_PERMUTE(im, result + 2, 1, 0);
  return selected;
}

/* --- The top k of each group first --- */

/* Boxes of each group at these positions, [groups, n], so that each group has boxes of its own. */
static ValueId of_group(Import *im, const Boxes *boxes, ValueId x, ValueId index) {
  SymInt count = ex_dim(im, index, 1), all = sym_mul(&im->g->syms, boxes->classes, count);
  ValueId at = EX_VIEW(im, index, boxes->batches, all);
  return EX_VIEW(im, at_positions(im, x, at), boxes->groups, count);
}

/* The top k boxes of each group, in the order of the model: of equal scores the first one is
 * taken. The kernel takes any of those that are equal to the worst of them, which are left out.
 * `worst`: that score, [groups, 1], -inf where all boxes of the group are among them;
 * `index`: their positions, [groups, k]. Handing groups of few boxes over to the second loop
 * at once was measured, too: with 8,400 boxes 0.7 of the time, with 1,000 of 91 classes 1.7. */
static Boxes top_k_boxes(Import *im, const Nms *nms, ValueId *worst, ValueId *index) {
  const Boxes *all = &nms->all;
  ValueId size = ex_size(im, all->count), limit = ex_int(im, nms->top_k);
  SymInt count = data_size(im, ex_min(im, size, limit), nms->top_k);
  ValueId best = ex_topk(im, all->live, count, 1, true);
  if (!import_ok(im))
    return *all;
  SymInt before = sym_add(&im->g->syms, ex_dim(im, best, 1), -1);
  *worst = ex_slice(im, best, 1, before, ex_dim(im, best, 1));
  *index = ex_topk(im, best + 1, count, 1, false);
  Boxes boxes = each(im, all, of_group, *index);
  ValueId scores = at_positions(im, all->live, *index), better = ex_gt(im, scores, *worst);
  boxes.live = ex_where(im, better, scores, ex_number(im, scores, -INFINITY));
  boxes.live = live_scores(im, nms, boxes.live);
  boxes.batches = all->groups;
  boxes.classes = 1;
  boxes.count = count;
  return boxes;
}

static ValueId of_rows(Import *im, const Boxes *boxes, ValueId x, ValueId index) {
  (void)boxes;
  return ex_index_select(im, x, 0, index);
}

/* The boxes of the groups for which `unfinished`, [groups] bool, is true; where there is none,
 * those of the last group, all gone. */
static Boxes of_groups(Import *im, const Nms *nms, ValueId unfinished) {
  const Boxes *all = &nms->all;
  ValueId numbers = rows_of(im, unfinished);
  Boxes boxes = each(im, all, of_rows, ex_floor_div(im, numbers, ex_size(im, all->classes)));
  boxes.groups = boxes.batches = ex_dim(im, numbers, 0);
  boxes.classes = 1;
  ValueId live = live_scores(im, nms, ex_index_select(im, all->live, 0, numbers)),
          counts = EX_VIEW(im, ex_index_select(im, unfinished, 0, numbers), boxes.groups, 1);
  boxes.live = ex_where(im, counts, live, ex_number(im, live, -INFINITY));
  return boxes;
}

/* Groups of which fewer boxes than wanted were selected, and which have others, [groups, 1]; also
 * those of which all of the top k are NaN. */
static ValueId find_unfinished(Import *im, const Nms *nms, const Selected *selected,
                               ValueId worst) {
  ValueId found = ex_with(im, OP_GT_TENSOR, selected->scores, -INFINITY),
          count = ex_sum(im, ex_cast(im, found, DTYPE_I64), 1, true);
  ValueId few = ex_with(im, OP_LT_TENSOR, count, (double)nms->steps),
          more = ex_unary(im, OP_LOGICAL_NOT, ex_le(im, worst, nms->least));
  return ex_and(im, few, more);
}

/* Selects among the top k, and for the groups that need it again among all boxes, [groups, steps of
 * both]; of these two only one counts. */
static Selected nms_top_k_first(Import *im, const Nms *nms) {
  ValueId worst = 0, index = 0;
  Selected first = nms_loop(im, nms, top_k_boxes(im, nms, &worst, &index));
  if (!import_ok(im))
    return first;
  ValueId unfinished = find_unfinished(im, nms, &first, worst),
          row = EX_VIEW(im, unfinished, nms->all.groups);
  Selected second = nms_loop(im, nms, of_groups(im, nms, row));
  ValueId before = build(&im->b, OP_CUMSUM, A_VAL(ex_cast(im, row, DTYPE_I64)), A_INT(0)),
          place = ex_at_least(im, ex_minus(im, before, 1), 0),
          gone = ex_number(im, first.scores, -INFINITY),
          scores = ex_where(im, unfinished, ex_index_select(im, second.scores, 0, place), gone);
  ValueId kept = ex_where(im, unfinished, gone, first.scores),
          first_boxes = at_positions(im, index, first.boxes),
          second_boxes = ex_index_select(im, second.boxes, 0, place);
  first.scores = ex_cat2(im, kept, scores, 1);
  first.boxes = ex_cat2(im, first_boxes, second_boxes, 1);
  return first;
}

/* Batch and class of every place of [groups, steps], as [groups * steps, 2]. */
static ValueId nms_places(Import *im, const Nms *nms, SymInt steps, SymInt all) {
  int64_t *table = ARENA_ARRAY(&im->scratch, int64_t, (size_t)nms->groups * 2),
          classes = nms->groups / nms->all.batches;
  for (int64_t i = 0; i < nms->groups; i++) {
    table[2 * i] = i / classes;
    table[2 * i + 1] = i % classes;
  }
  ValueId groups = build_const(&im->b, DTYPE_I64, 3, (int64_t[]){nms->groups, 1, 2}, table);
  if (nms->kept_groups)
    groups = ex_index_select(im, groups, 0, nms->kept_groups);
  return EX_VIEW(im, EX_EXPAND(im, groups, nms->all.groups, steps, 2), all, 2);
}

void translate_non_max_suppression(Import *im) {
  Nms nms;
  if (!nms_read(im, &nms))
    return;
  if (nms.steps == 0 || nms.groups == 0 || nms.all.count == 0) {
    out(im, 0, build_const(&im->b, DTYPE_I64, 2, (int64_t[]){0, 3}, &(int64_t){0}));
    return;
  }
  Selected selected = nms.top_k ? nms_top_k_first(im, &nms) : nms_loop(im, &nms, nms.all);
  if (!import_ok(im))
    return;
  SymInt steps = ex_dim(im, selected.scores, 1), all = sym_mul(&im->g->syms, nms.all.groups, steps);
  ValueId found = ex_with(im, OP_GT_TENSOR, selected.scores, -INFINITY),
          hits = ex_unary(im, OP_NONZERO, EX_VIEW(im, found, all));
  ValueId index = EX_VIEW(im, hits, ex_dim(im, hits, 0)),
          flat = EX_VIEW(im, selected.boxes, all, 1);
  if (nms.kept)
    flat = EX_VIEW(im, ex_index_select(im, nms.kept, 0, EX_VIEW(im, flat, all)), all, 1);
  /* Joined before the selection: cat of the runtime gives no columns when there are no rows. */
  out(im, 0, ex_index_select(im, ex_cat2(im, nms_places(im, &nms, steps, all), flat, 1), 0, index));
}

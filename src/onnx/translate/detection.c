/* NonMaxSuppression. */
#include <math.h>

#include "onnx/translate/control.h"

/* --- NonMaxSuppression ---
 *
 * All batches and classes (groups) at once, in a loop that ends when no group has a box left. Boxes
 * without a score above the lowest one that counts are left out first: of a detector's thousands
 * that is nearly all. Every step takes the best live score of each group and removes what overlaps
 * its box: by a matrix of all pairs of boxes, or, where that is the larger work, by comparing the
 * taken boxes with all others. Which steps found a box is known only while running, so the result
 * is picked by nonzero.
 */

enum {
  BOXES_MAX = 65536,
  MATRIX_MAX = 4096,
  FEW = 256, /* scores that are not worth a selection */
  TAKEN = 4  /* one in so many boxes is expected to be taken where nothing else limits them */
};

typedef struct Nms {
  int64_t batches, classes, groups, steps;
  ArgIn trip;   /* most steps */
  ValueId none; /* whether a run-time limit is 0; 0: there is no such limit */
  SymInt boxes;
  ValueId kept;            /* [n], which boxes of the model these are; 0: all */
  ValueId low[2], high[2]; /* corners, [B, n] */
  ValueId area;            /* [B, n] */
  ValueId threshold;
  ValueId over; /* [B * n, n] bool; 0 without a matrix */
  ValueId live; /* scores [B * C, n], -inf when gone */
} Nms;

static ValueId number_input(Import *im, uint32_t i) {
  ValueId v = in(im, i);
  return v ? ex_scalar(im, v) : 0;
}

static void read_corners(Import *im, Nms *nms, ValueId boxes) {
  bool centred = attr_flag(im, "center_point_box", false);
  ValueId own[2];
  for (uint32_t k = 0; k < 2; k++) {
    ValueId a = ex_select(im, boxes, 2, k), b = ex_select(im, boxes, 2, 2 + k);
    ValueId half = centred ? ex_times(im, b, 0.5) : 0;
    nms->low[k] = centred ? ex_sub(im, a, half) : ex_min(im, a, b);
    nms->high[k] = centred ? ex_add(im, a, half) : ex_max(im, a, b);
    own[k] = ex_sub(im, nms->high[k], nms->low[k]);
  }
  nms->area = ex_mul(im, own[0], own[1]);
}

/* Boxes for comparison: corners and area of the same shape. */
typedef struct Boxes {
  ValueId low[2], high[2], area;
} Boxes;

static Boxes shaped(Import *im, const Nms *nms, SymInt rows, SymInt columns) {
  Boxes b;
  for (uint32_t k = 0; k < 2; k++) {
    b.low[k] = EX_VIEW(im, nms->low[k], nms->batches, rows, columns);
    b.high[k] = EX_VIEW(im, nms->high[k], nms->batches, rows, columns);
  }
  b.area = EX_VIEW(im, nms->area, nms->batches, rows, columns);
  return b;
}

/* Whether the common area is more than the threshold allows of both together. */
static ValueId overlaps(Import *im, const Nms *nms, const Boxes *a, const Boxes *b) {
  ValueId side[2];
  for (uint32_t k = 0; k < 2; k++) {
    ValueId end = ex_min(im, a->high[k], b->high[k]), begin = ex_max(im, a->low[k], b->low[k]);
    side[k] = ex_unary(im, OP_RELU, ex_sub(im, end, begin));
  }
  ValueId common = ex_mul(im, side[0], side[1]), both = ex_add(im, a->area, b->area);
  ValueId ratio = ex_div(im, common, ex_sub(im, both, common));
  return ex_gt(im, ratio, nms->threshold);
}

static ValueId overlap_matrix(Import *im, const Nms *nms) {
  Boxes rows = shaped(im, nms, 1, nms->boxes), columns = shaped(im, nms, nms->boxes, 1);
  return EX_VIEW(im, overlaps(im, nms, &rows, &columns),
                 sym_mul(&im->g->syms, nms->batches, nms->boxes), nms->boxes);
}

/* Whether a matrix takes less time than comparing at each step. A pair of it was measured at 14 ns;
 * a step that compares takes 1.4 us more than one that reads the matrix, and 21 ns more for each
 * box of each class. On portable kernels all three are about twice that. */
static bool matrix_pays(const Nms *nms, int64_t boxes) {
  int64_t steps = min_i64(nms->steps, boxes / TAKEN + 1);
  return boxes <= MATRIX_MAX && 2 * boxes * boxes <= steps * (200 + 3 * nms->classes * boxes);
}

/* As many steps as a run-time number says, at most as there are boxes, and at least one, for the
 * runtime selects nothing from no rows: no box is left for it where the number is 0. */
static ArgIn counted_at_run(Import *im, Nms *nms, ValueId most) {
  ValueId count = ex_cast(im, ex_scalar(im, most), DTYPE_I64), one = ex_number(im, count, 1);
  nms->none = ex_lt(im, count, one);
  count = ex_max(im, ex_min(im, count, ex_size(im, nms->boxes)), one);
  return A_VAL(ex_unary(im, OP_LOCAL_SCALAR_DENSE, count));
}

/* Reads what limits the selections, and whether there is a matrix. */
static bool nms_plan(Import *im, Nms *nms) {
  SymTable *t = &im->g->syms;
  int64_t boxes = sym_upper(t, nms->boxes), most;
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

/* One more box, which is never taken, where there may be none: nothing is the best of none. */
static void never_none(Import *im, ValueId *boxes, ValueId *scores) {
  SymInt count = ex_dim(im, *boxes, 1);
  if (sym_is_const(count) || sym_lower(&im->g->syms, count) > 0)
    return;
  const Dims box = {.d = {ex_dim(im, *boxes, 0), 1, 4}, .rank = 3},
             score = {.d = {ex_dim(im, *scores, 0), ex_dim(im, *scores, 1), 1}, .rank = 3};
  *boxes = ex_cat2(im, *boxes, ex_filled(im, ex_dtype(im, *boxes), &box, 0), 1);
  *scores = ex_cat2(im, *scores, ex_filled(im, ex_dtype(im, *scores), &score, -INFINITY), 2);
}

/* Keeps the boxes with a score above `least`, of whatever batch and class; also those with a NaN,
 * which hides the other scores from the maximum. */
static void keep_candidates(Import *im, Nms *nms, ValueId least, ValueId *boxes, ValueId *scores) {
  ValueId best = EX_VIEW(im, *scores, nms->groups, nms->boxes);
  best = nms->groups == 1 ? best : ex_reduce_one(im, OP_AMAX, best, 0, true);
  ValueId low = EX_VIEW(im, ex_le(im, best, least), nms->boxes),
          hits = ex_unary(im, OP_NONZERO, ex_unary(im, OP_LOGICAL_NOT, low)),
          index = EX_VIEW(im, hits, ex_dim(im, hits, 0));
  *boxes = ex_index_select(im, *boxes, 1, index);
  *scores = ex_index_select(im, *scores, 2, index);
  never_none(im, boxes, scores);
  nms->boxes = ex_dim(im, *boxes, 1);
  nms->kept = ex_cat2(im, index, build_const_ints(&im->b, &(int64_t){0}, 1), 0);
}

static bool nms_read(Import *im, Nms *nms) {
  ValueId boxes = in_required(im, 0), scores = in_required(im, 1), least = number_input(im, 4);
  if (ex_rank(im, boxes) != 3 || ex_rank(im, scores) != 3)
    import_fail(im, DIAG_INPUT_RANK, "boxes and scores must have rank 3");
  if (!import_ok(im))
    return false;
  never_none(im, &boxes, &scores);
  *nms = (Nms){.batches = ex_fixed(im, boxes, 0),
               .classes = ex_fixed(im, scores, 1),
               .boxes = ex_dim(im, boxes, 1),
               .threshold = number_input(im, 3)};
  if (!import_ok(im) || !mul_i64(nms->batches, nms->classes, &nms->groups))
    return false;
  bool matrix = nms_plan(im, nms);
  if (!nms->threshold)
    nms->threshold = ex_number(im, boxes, 0);
  if (least && sym_upper(&im->g->syms, nms->boxes) > FEW / max_i64(nms->groups, 1))
    keep_candidates(im, nms, least, &boxes, &scores);
  read_corners(im, nms, boxes);
  nms->over = matrix && nms->steps && nms->boxes != 0 ? overlap_matrix(im, nms) : 0;
  nms->live = EX_VIEW(im, scores, nms->groups, nms->boxes);
  ValueId gone = ex_number(im, nms->live, -INFINITY);
  if (least)
    nms->live = ex_where(im, ex_gt(im, nms->live, least), nms->live, gone);
  if (nms->none)
    nms->live = ex_where(im, nms->none, gone, nms->live);
  return import_ok(im);
}

/* The chosen boxes [G, 1] as places among those of all batches, [G]. */
static ValueId nms_index(Import *im, const Nms *nms, ValueId box) {
  ValueId index = EX_VIEW(im, box, nms->groups);
  if (nms->batches == 1)
    return index;
  int64_t *batch = ARENA_ARRAY(&im->scratch, int64_t, (size_t)nms->groups);
  for (int64_t g = 0; g < nms->groups; g++)
    batch[g] = g / nms->classes;
  ValueId base = build_const_ints(&im->b, batch, (uint32_t)nms->groups);
  return ex_add(im, index, ex_mul(im, base, ex_size(im, nms->boxes)));
}

/* What the chosen boxes remove, [G, n], by comparing them with all. */
static ValueId nms_compare(Import *im, const Nms *nms, ValueId index) {
  Boxes all = shaped(im, nms, 1, nms->boxes), taken = {0};
  SymInt count = sym_mul(&im->g->syms, nms->batches, nms->boxes);
  ValueId *from[] = {&all.low[0], &all.low[1], &all.high[0], &all.high[1], &all.area};
  ValueId *to[] = {&taken.low[0], &taken.low[1], &taken.high[0], &taken.high[1], &taken.area};
  for (uint32_t i = 0; i < COUNT_OF(from); i++) {
    ValueId picked = ex_index_select(im, EX_VIEW(im, *from[i], count), 0, index);
    *to[i] = EX_VIEW(im, picked, nms->batches, nms->classes, 1);
  }
  return EX_VIEW(im, overlaps(im, nms, &all, &taken), nms->groups, nms->boxes);
}

/* One selection of every group: score and box, [G, 1]. */
static void nms_step(Import *im, Nms *nms, ValueId *score, ValueId *box) {
  *score = build(&im->b, OP_MAX_DIM, A_VAL(nms->live), A_INT(1), A_BOOL(true));
  *box = *score ? *score + 1 : 0;
  ValueId index = nms_index(im, nms, *box);
  ValueId gone = nms->over ? ex_index_select(im, nms->over, 0, index) : nms_compare(im, nms, index);
  ValueId left = ex_where(im, gone, ex_number(im, nms->live, -INFINITY), nms->live);
  nms->live =
      build(&im->b, OP_SCATTER_VALUE, A_VAL(left), A_INT(1), A_VAL(*box), A_FLOAT(-INFINITY));
}

/* The best scores of all steps and their boxes, [steps, G]; those of groups that have no box left
 * are -inf. */
static void nms_loop(Import *im, Nms *nms, ValueId *scores, ValueId *boxes) {
  const Dims none = {.d = {0, nms->groups}, .rank = 2};
  SymInt rows = sym_symbol(&im->g->syms, SV(""), 0, nms->steps, true);
  ValueId states[] = {nms->live, ex_filled(im, ex_dtype(im, nms->live), &none, 0),
                      ex_filled(im, DTYPE_I64, &none, 0)};
  ValueId number = build(&im->b, OP_LOOP, nms->trip, A_OPT(0), A_VALS(states, COUNT_OF(states)));
  if (!import_ok(im))
    return;
  SymInt step = value_type(im->g, number)->dims[0];
  const Dims collected = {.d = {rows, nms->groups}, .rank = 2};
  ValueId score, box;
  nms->live = number + 1;
  ex_set_shape(im, number + 2, collected);
  ex_set_shape(im, number + 3, collected);
  nms_step(im, nms, &score, &box);
  ValueId left = ex_unary(im, OP_ANY, ex_with(im, OP_NE_TENSOR, score, -INFINITY));
  states[0] = nms->live;
  states[1] = build(&im->b, OP_ET_COPY_INDEX, A_VAL(number + 2),
                    A_VAL(EX_VIEW(im, score, nms->groups)), A_INT(step));
  states[2] = build(&im->b, OP_ET_COPY_INDEX, A_VAL(number + 3),
                    A_VAL(EX_VIEW(im, box, nms->groups)), A_INT(step));
  ValueId result = build(&im->b, OP_NEXT, A_OPT(left), A_VALS(states, COUNT_OF(states)));
  *scores = result + 1;
  *boxes = result + 2;
}

/* Batch and class of every place of [G, steps], as [G * steps, 2]. */
static ValueId nms_places(Import *im, const Nms *nms, SymInt steps, SymInt all) {
  int64_t *table = ARENA_ARRAY(&im->scratch, int64_t, (size_t)nms->groups * 2);
  for (int64_t i = 0; i < nms->groups; i++) {
    table[2 * i] = i / nms->classes;
    table[2 * i + 1] = i % nms->classes;
  }
  ValueId groups = build_const(&im->b, DTYPE_I64, 3, (int64_t[]){nms->groups, 1, 2}, table);
  return EX_VIEW(im, EX_EXPAND(im, groups, nms->groups, steps, 2), all, 2);
}

void translate_non_max_suppression(Import *im) {
  Nms nms;
  ValueId scores = 0, boxes = 0;
  if (!nms_read(im, &nms))
    return;
  if (nms.steps == 0 || nms.groups == 0 || nms.boxes == 0) {
    out(im, 0, build_const(&im->b, DTYPE_I64, 2, (int64_t[]){0, 3}, &(int64_t){0}));
    return;
  }
  nms_loop(im, &nms, &scores, &boxes);
  if (!import_ok(im))
    return;
  SymInt steps = ex_dim(im, scores, 0), all = sym_mul(&im->g->syms, nms.groups, steps);
  ValueId found = ex_with(im, OP_GT_TENSOR, EX_PERMUTE(im, scores, 1, 0), -INFINITY),
          hits = ex_unary(im, OP_NONZERO, EX_VIEW(im, found, all));
  ValueId index = EX_VIEW(im, hits, ex_dim(im, hits, 0)),
          flat = EX_VIEW(im, EX_PERMUTE(im, boxes, 1, 0), all, 1);
  if (nms.kept)
    flat = EX_VIEW(im, ex_index_select(im, nms.kept, 0, EX_VIEW(im, flat, all)), all, 1);
  /* Joined before the selection: cat of the runtime gives no columns when there are no rows. */
  out(im, 0, ex_index_select(im, ex_cat2(im, nms_places(im, &nms, steps, all), flat, 1), 0, index));
}

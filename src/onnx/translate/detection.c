/* NonMaxSuppression. */
#include <math.h>

#include "onnx/express.h"

/* --- NonMaxSuppression ---
 *
 * All batches and classes (groups) at once. Every step takes the best live score of each group and
 * removes what overlaps its box: by a matrix of all pairs of boxes, or, where that is the larger
 * work, by comparing the taken boxes with all others. Which steps found a box is known only while
 * running, so the result is picked by nonzero. */

enum { BOXES_MAX = 65536, MATRIX_MAX = 4096, SELECTIONS_MAX = 1024 };

typedef struct Nms {
  int64_t batches, classes, groups, steps;
  SymInt boxes;
  ValueId low[2], high[2]; /* corners, [B, n] */
  ValueId area;            /* [B, n] */
  ValueId threshold;
  ValueId over; /* [B * n, n] bool; true on the diagonal; 0 without a matrix */
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
  ValueId over = overlaps(im, nms, &rows, &columns), place = ex_arange(im, nms->boxes);
  ValueId self = ex_eq(im, place, EX_VIEW(im, place, nms->boxes, 1));
  over = ex_or(im, over, self);
  return EX_VIEW(im, over, sym_mul(&im->g->syms, nms->batches, nms->boxes), nms->boxes);
}

/* Whether a matrix takes less time than comparing at each step. A pair of it was measured at 14 ns;
 * a step that compares takes 1.4 us more than one that reads the matrix, and 21 ns more for each
 * box of each class. On portable kernels all three are about twice that. */
static bool matrix_pays(const Nms *nms, int64_t boxes) {
  return boxes <= MATRIX_MAX && 2 * boxes * boxes <= nms->steps * (200 + 3 * nms->classes * boxes);
}

/* Reads what limits the selections, and whether there is a matrix. */
static bool nms_plan(Import *im, Nms *nms) {
  SymTable *t = &im->g->syms;
  int64_t boxes = sym_upper(t, nms->boxes);
  int64_t most;
  if (boxes > BOXES_MAX || nms->groups > MATRIX_MAX)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "%lld boxes in %lld groups are too many, at most %d in %d", (long long)boxes,
                (long long)nms->groups, BOXES_MAX, MATRIX_MAX);
  nms->steps = boxes;
  if (!in(im, 2))
    nms->steps = 0;
  else if (one_const(im, in(im, 2), &most))
    nms->steps = min_i64(boxes, max_i64(most, 0));
  if (nms->steps > SELECTIONS_MAX)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "%lld selections would be unrolled, at most %d are supported",
                (long long)nms->steps, SELECTIONS_MAX);
  if (sym_lower(t, nms->boxes) < 1 && !sym_is_const(nms->boxes))
    graph_add_constraint(im->g, (Constraint){CONSTRAINT_GE, nms->boxes, 1, im->b.loc});
  return import_ok(im) && matrix_pays(nms, boxes);
}

static bool nms_read(Import *im, Nms *nms) {
  ValueId boxes = in_required(im, 0), scores = in_required(im, 1), least = number_input(im, 4);
  if (ex_rank(im, boxes) != 3 || ex_rank(im, scores) != 3)
    import_fail(im, DIAG_INPUT_RANK, "boxes and scores must have rank 3");
  *nms = (Nms){.batches = ex_fixed(im, boxes, 0),
               .classes = ex_fixed(im, scores, 1),
               .boxes = ex_dim(im, boxes, 1),
               .threshold = number_input(im, 3)};
  if (!import_ok(im) || !mul_i64(nms->batches, nms->classes, &nms->groups))
    return false;
  bool matrix = nms_plan(im, nms);
  if (!nms->threshold)
    nms->threshold = ex_number(im, boxes, 0);
  read_corners(im, nms, boxes);
  nms->over = matrix && nms->steps && nms->boxes != 0 ? overlap_matrix(im, nms) : 0;
  nms->live = EX_VIEW(im, scores, nms->groups, nms->boxes);
  if (least) {
    ValueId none = ex_number(im, nms->live, -INFINITY);
    nms->live = ex_where(im, ex_gt(im, nms->live, least), nms->live, none);
  }
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
static ValueId nms_compare(Import *im, const Nms *nms, ValueId box, ValueId index) {
  Boxes all = shaped(im, nms, 1, nms->boxes), taken = {0};
  SymInt count = sym_mul(&im->g->syms, nms->batches, nms->boxes);
  ValueId *from[] = {&all.low[0], &all.low[1], &all.high[0], &all.high[1], &all.area};
  ValueId *to[] = {&taken.low[0], &taken.low[1], &taken.high[0], &taken.high[1], &taken.area};
  for (uint32_t i = 0; i < COUNT_OF(from); i++) {
    ValueId picked = ex_index_select(im, EX_VIEW(im, *from[i], count), 0, index);
    *to[i] = EX_VIEW(im, picked, nms->batches, nms->classes, 1);
  }
  ValueId gone = EX_VIEW(im, overlaps(im, nms, &all, &taken), nms->groups, nms->boxes);
  return ex_or(im, gone, ex_eq(im, ex_arange(im, nms->boxes), box));
}

/* One selection of every group: score and box, [G, 1]. */
static void nms_step(Import *im, Nms *nms, ValueId *score, ValueId *box) {
  *score = build(&im->b, OP_MAX_DIM, A_VAL(nms->live), A_INT(1), A_BOOL(true));
  *box = *score ? *score + 1 : 0;
  ValueId index = nms_index(im, nms, *box);
  ValueId gone =
      nms->over ? ex_index_select(im, nms->over, 0, index) : nms_compare(im, nms, *box, index);
  nms->live = ex_where(im, gone, ex_number(im, nms->live, -INFINITY), nms->live);
}

/* Batch and class of every place of [G * steps], as [G * steps, 2]. */
static ValueId nms_places(Import *im, const Nms *nms) {
  int64_t count = nms->groups * nms->steps;
  int64_t *table = ARENA_ARRAY(&im->scratch, int64_t, (size_t)count * 2);
  for (int64_t i = 0; i < count; i++) {
    table[2 * i] = i / nms->steps / nms->classes;
    table[2 * i + 1] = i / nms->steps % nms->classes;
  }
  return build_const(&im->b, DTYPE_I64, 2, (int64_t[]){count, 2}, table);
}

void translate_non_max_suppression(Import *im) {
  Nms nms;
  if (!nms_read(im, &nms))
    return;
  if (nms.steps == 0 || nms.groups == 0 || nms.boxes == 0) {
    out(im, 0, build_const(&im->b, DTYPE_I64, 2, (int64_t[]){0, 3}, &(int64_t){0}));
    return;
  }
  ValueId *scores = ARENA_ARRAY(&im->scratch, ValueId, (size_t)nms.steps),
          *boxes = ARENA_ARRAY(&im->scratch, ValueId, (size_t)nms.steps);
  for (int64_t t = 0; t < nms.steps && import_ok(im); t++)
    nms_step(im, &nms, &scores[t], &boxes[t]);
  ValueId score = ex_cat(im, scores, (uint32_t)nms.steps, 1),
          box = ex_cat(im, boxes, (uint32_t)nms.steps, 1);
  ValueId found = ex_with(im, OP_GT_TENSOR, score, -INFINITY);
  ValueId most = ex_cast(im, number_input(im, 2), DTYPE_I64);
  if (import_ok(im) && !value_is_const(im->g, most))
    found = ex_and(im, found, ex_lt(im, ex_arange(im, nms.steps), most));
  SymInt all = nms.groups * nms.steps;
  ValueId hits = ex_unary(im, OP_NONZERO, EX_VIEW(im, found, all));
  ValueId index = EX_VIEW(im, hits, ex_dim(im, hits, 0)), flat = EX_VIEW(im, box, all, 1);
  /* Joined before the selection: cat of the runtime gives no columns when there are no rows. */
  out(im, 0, ex_index_select(im, ex_cat2(im, nms_places(im, &nms), flat, 1), 0, index));
}

/* Slice. Known starts and ends are slice_copy an axis, backwards steps a flip before. What arrives
 * at run time becomes arithmetic: entry i of an axis is start + step * i, taken by index_select,
 * for as many i as output 0 declares, or as starts and ends have between them. */
#include "onnx/data_sizes.h"
#include "onnx/translate/loop_count.h"

typedef struct SliceAxis {
  SymInt start, end;
  int64_t step;
} SliceAxis;

/* A bound against its size, clamped to [least, size + least]; one of unknown sign is taken to count
 * from the front. */
static SymInt clamp_bound(Import *im, SymInt bound, SymInt size, int64_t least) {
  SymTable *t = &im->g->syms;
  if (sym_upper(t, bound) < 0)
    bound = sym_add(t, bound, size);
  else if (sym_lower(t, bound) < 0)
    graph_add_constraint(im->g, (Constraint){CONSTRAINT_GE, bound, 0, im->b.loc});
  return sym_max(t, least, sym_min(t, bound, sym_add(t, size, least)));
}

/* The largest integer is no end for steps backwards, too, where ONNX Runtime goes on to the first
 * element: the same as an end far in front of it. */
static SymInt end_of(SymInt end, int64_t step) {
  return step < 0 && (end == INT32_MAX || end == INT64_MAX) ? INT32_MIN : end;
}

/* One row, as it is in each iteration of a loop where the end, or a step beyond the end, follows
 * the number of the iteration. Of sizes that vary that is known by the number of steps only. */
static bool is_row_of_iteration(Import *im, SymInt size, const SliceAxis *a) {
  SymTable *t = &im->g->syms;
  SymInt most = loop_most(im, a->start), behind = sym_sub(t, a->end, a->start);
  return most != a->start && a->step > 0 && sym_lower(t, a->start) >= 0 &&
         sym_lower(t, behind) >= 1 && sym_known_lt(t, most, size) == 1 &&
         (sym_upper(t, behind) <= a->step || sym_upper(t, size) <= a->step);
}

static ValueId slice_axis(Import *im, ValueId x, uint32_t axis, SliceAxis a) {
  SymTable *t = &im->g->syms;
  SymInt size = ex_dim(im, x, axis), begin, end;
  if (is_row_of_iteration(im, size, &a))
    return ex_unsqueeze(im, ex_pick(im, x, axis, a.start), axis);
  if (a.step > 0) {
    begin = clamp_bound(im, a.start, size, 0);
    end = clamp_bound(im, a.end, size, 0);
  } else {
    SymInt last = sym_sub(t, size, 1), first = clamp_bound(im, a.start, size, -1);
    if (sym_is_const(a.start) && a.start < -1) /* in front of the first element is that one */
      first = sym_max(t, first, sym_min(t, 0, last));
    begin = sym_sub(t, last, first);
    end = sym_sub(t, last, clamp_bound(im, end_of(a.end, a.step), size, -1));
    x = ex_flip(im, x, axis);
  }
  return build_slice(&im->b, x, axis, begin, sym_max(t, begin, end), a.step > 0 ? a.step : -a.step);
}

/* --- starts, ends, axes or steps that arrive at run time --- */

/* Element j of a vector as an i64 scalar. */
static ValueId element(Import *im, ValueId vector, uint32_t j) {
  return ex_cast(im, ex_element(im, vector, j), DTYPE_I64);
}

typedef struct RunSlice {
  ValueId starts, ends, axes, steps; /* axes and steps may be 0 */
  uint32_t count;
} RunSlice;

typedef struct RunEntries {
  ValueId start, end, step;
} RunEntries;

/* The entries of one dim: those of the listed axis that is this dim, or all of it with step 1. An
 * axis that arrives at run time is compared with the dim. */
static RunEntries run_axis(Import *im, const RunSlice *r, uint32_t dim, uint32_t rank) {
  RunEntries e = {.start = ex_int(im, 0)}, own;
  e.end = ex_int(im, INT64_MAX);
  e.step = ex_int(im, 1);
  for (uint32_t j = 0; j < r->count && import_ok(im); j++) {
    own.start = element(im, r->starts, j);
    own.end = element(im, r->ends, j);
    own.step = r->steps ? element(im, r->steps, j) : ex_int(im, 1);
    int64_t axis = j;
    if (!r->axes || one_const(im, element(im, r->axes, j), &axis)) {
      if (import_axis(im, axis, rank) == dim)
        e = own;
      continue;
    }
    ValueId mine = ex_is(im, ex_wrap_index(im, element(im, r->axes, j), rank), dim);
    e.start = ex_where(im, mine, own.start, e.start);
    e.end = ex_where(im, mine, own.end, e.end);
    e.step = ex_where(im, mine, own.step, e.step);
  }
  return e;
}

static ValueId run_slice_axis(Import *im, const RunSlice *r, ValueId x, uint32_t dim,
                              const Dims *declared) {
  SymInt size = ex_dim(im, x, dim);
  RunEntries e = run_axis(im, r, dim, declared->rank);
  ValueId last = ex_size(im, sym_sub(&im->g->syms, size, 1)),
          start = ex_wrap_index(im, e.start, size);
  start = ex_at_least(im, ex_min(im, start, last), 0);
  ValueId index = ex_add(im, ex_mul(im, ex_arange(im, declared->d[dim]), e.step), start);
  return ex_index_select(im, x, dim, index);
}

/* --- starts and ends of known axes, with known steps --- */

typedef struct SliceLists {
  Ints starts, ends, axes, steps;
} SliceLists;

/* As clamp_bound, of a tensor: into least..most. */
static ValueId run_bound(Import *im, ValueId bound, SymInt size, SymInt least, SymInt most) {
  bound = ex_wrap_index(im, bound, size);
  bound = ex_min(im, bound, ex_size(im, most));
  return ex_max(im, bound, ex_size(im, least));
}

/* Start and end for steps backwards, as slice_axis has them. */
static void run_bounds_backwards(Import *im, SymInt size, ValueId *start, ValueId *end) {
  SymTable *t = &im->g->syms;
  SymInt last = sym_sub(t, size, 1);
  ValueId stop = run_bound(im, *end, size, -1, last), open = ex_is(im, *end, INT32_MAX),
          largest = ex_ge(im, *end, ex_int(im, INT64_MAX));
  open = ex_or(im, open, largest);
  *start = run_bound(im, *start, size, sym_min(t, 0, last), last);
  *end = ex_where(im, open, ex_int(im, -1), stop);
}

/* Entry i is start + step * i, for as many i as are read while running, at most `most`: `by` is the
 * step without its sign, `back` how far the start is behind the end in its direction. */
static ValueId counted(Import *im, ValueId x, uint32_t axis, const RunEntries *e, ValueId back,
                       ValueId by, int64_t most) {
  ValueId count = ex_unary(im, OP_NEG, ex_floor_div(im, back, by));
  count = ex_at_least(im, count, 0);
  ValueId steps = ex_arange(im, data_size(im, count, out_bound_below(im, 0, axis, most)));
  return ex_index_select(im, x, axis, ex_add(im, ex_mul(im, steps, e->step), e->start));
}

/* The dim bounds the number of entries. */
static ValueId counted_axis(Import *im, ValueId x, uint32_t axis, int64_t step, ValueId start,
                            ValueId end) {
  SymTable *t = &im->g->syms;
  SymInt size = ex_dim(im, x, axis);
  int64_t most = sym_upper(t, size), by = step > 0 ? step : -step;
  if (step > 0) {
    start = run_bound(im, start, size, 0, size);
    end = run_bound(im, end, size, 0, size);
  } else {
    run_bounds_backwards(im, size, &start, &end);
  }
  ValueId back = step > 0 ? ex_sub(im, start, end) : ex_sub(im, end, start);
  RunEntries e = {start, end, ex_int(im, step)};
  return counted(im, x, axis, &e, back, ex_int(im, by), most / by + (most % by != 0));
}

/* The step is known only while running, and so whether it goes backwards. */
static ValueId counted_step_axis(Import *im, ValueId x, uint32_t axis, RunEntries e) {
  SymInt size = ex_dim(im, x, axis);
  ValueId start = run_bound(im, e.start, size, 0, size), end = run_bound(im, e.end, size, 0, size),
          forward = ex_with(im, OP_GT_TENSOR, e.step, 0), back = ex_sub(im, start, end);
  run_bounds_backwards(im, size, &e.start, &e.end);
  back = ex_where(im, forward, back, ex_sub(im, e.end, e.start));
  e.start = ex_where(im, forward, start, e.start);
  return counted(im, x, axis, &e, back, ex_unary(im, OP_ABS, e.step),
                 sym_upper(&im->g->syms, size));
}

/* One axis may have a start and an end that are known, beside others. */
static void counted_slice(Import *im, ValueId x, const Dims *s, const SliceLists *l,
                          uint32_t count) {
  ValueId starts = in_required(im, 1), ends = in_required(im, 2);
  uint32_t seen = 0;
  for (uint32_t j = 0; j < count && import_ok(im); j++) {
    uint32_t axis = import_axis(im, l->axes.at ? l->axes.at[j] : (int64_t)j, s->rank);
    if (seen >> axis & 1)
      import_fail(im, DIAG_AXIS_RANGE, "axis %u is sliced twice", axis);
    seen |= (uint32_t)1 << axis;
    SliceAxis a = {.step = l->steps.at ? l->steps.at[j] : 1};
    ValueId start = element(im, starts, j), end = element(im, ends, j);
    if (a.step == 0 || a.step == INT64_MIN || a.step < -INT32_MAX || a.step > INT32_MAX)
      import_fail(im, DIAG_ARG_RANGE, "the step on axis %u is %lld", axis, (long long)a.step);
    else if (one_int(im, start, &a.start) && one_int(im, end, &a.end))
      x = slice_axis(im, x, axis, a);
    else
      x = counted_axis(im, x, axis, a.step, start, end);
  }
  out(im, 0, x);
}

/* Whether a list that names a dim, or may. */
static bool may_slice(Import *im, const RunSlice *r, uint32_t dim, uint32_t rank) {
  bool may = !r->axes && dim < r->count;
  for (uint32_t j = 0; r->axes && j < r->count && import_ok(im) && !may; j++) {
    int64_t axis;
    may = !one_const(im, element(im, r->axes, j), &axis) || import_axis(im, axis, rank) == dim;
  }
  return may;
}

/* With steps known to be forward, a dim that keeps its size is kept as it is. */
static void run_slice(Import *im, ValueId x, const Dims *s, RunSlice r) {
  Dims declared;
  if (!out_declared_dims(im, 0, &declared)) {
    for (uint32_t i = 0; i < s->rank && import_ok(im); i++)
      if (may_slice(im, &r, i, s->rank))
        x = counted_step_axis(im, x, i, run_axis(im, &r, i, s->rank));
    out(im, 0, x);
    return;
  }
  if (declared.rank != s->rank)
    import_fail(im, DIAG_DIM_CONTRADICTION, "the output is declared with rank %u, not %u",
                declared.rank, s->rank);
  for (uint32_t i = 0; i < s->rank && import_ok(im); i++)
    if (r.steps || declared.d[i] != s->d[i])
      x = run_slice_axis(im, &r, x, i, &declared);
  out(im, 0, x);
}

/* --- Slice --- */

static void slice_known(Import *im, ValueId x, const Dims *s, const SliceLists *l) {
  uint32_t seen = 0;
  if (l->starts.count != l->ends.count || (l->axes.at && l->axes.count != l->starts.count) ||
      (l->steps.at && l->steps.count != l->starts.count) || l->starts.count > s->rank)
    import_fail(im, DIAG_SHAPE_MISMATCH, "starts, ends, axes and steps differ in length");
  for (uint32_t i = 0; i < l->starts.count && import_ok(im); i++) {
    uint32_t axis = import_axis(im, l->axes.at ? l->axes.at[i] : (int64_t)i, s->rank);
    SliceAxis a = {l->starts.at[i], l->ends.at[i], l->steps.at ? l->steps.at[i] : 1};
    if (seen >> axis & 1)
      import_fail(im, DIAG_AXIS_RANGE, "axis %u is sliced twice", axis);
    if (a.step == 0 || a.step == INT64_MIN) {
      import_fail(im, DIAG_ARG_RANGE, "the step on axis %u is %lld", axis, (long long)a.step);
      return;
    }
    seen |= (uint32_t)1 << axis;
    x = slice_axis(im, x, axis, a);
  }
  out(im, 0, x);
}

static bool known_axes(Import *im, SliceLists *l) {
  return (!in(im, 3) || in_consts(im, 3, &l->axes)) && (!in(im, 4) || in_consts(im, 4, &l->steps));
}

/* From opset 10 on, where lists are inputs. */
static void slice_inputs(Import *im, ValueId x, const Dims *s) {
  SliceLists l = {0};
  ValueId starts = in_required(im, 1), ends = in_required(im, 2), axes = in(im, 3),
          steps = in(im, 4);
  bool counted = known_axes(im, &l);
  if (counted && value_ints(im, starts, &l.starts) && value_ints(im, ends, &l.ends)) {
    slice_known(im, x, s, &l);
    return;
  }
  SymInt count = ex_rank(im, starts) ? ex_dim(im, starts, 0) : -1;
  if (!sym_is_const(count) && l.axes.at) /* one start for each */
    count = l.axes.count;
  Dims declared;
  counted &= (!l.axes.at || l.axes.count == count) && (!l.steps.at || l.steps.count == count) &&
             !out_declared_dims(im, 0, &declared);
  if (!sym_is_const(count) || count < 0 || count > s->rank)
    import_fail(im, DIAG_INPUT_NOT_CONST, "the number of sliced axes is not known when lowering");
  else if (counted)
    counted_slice(im, x, s, &l, (uint32_t)count);
  else
    run_slice(im, x, s, (RunSlice){starts, ends, axes, steps, (uint32_t)count});
}

void translate_slice(Import *im) {
  ValueId x = in_required(im, 0);
  Dims s = shape_of(im, x);
  SliceLists l = {0};
  if (im->opset < 10) {
    if (!attr_ints(im, "starts", &l.starts) || !attr_ints(im, "ends", &l.ends))
      import_fail(im, DIAG_ATTR_MISSING, "Slice needs 'starts' and 'ends'");
    attr_ints(im, "axes", &l.axes);
    slice_known(im, x, &s, &l);
    return;
  }
  slice_inputs(im, x, &s);
}

/* Operators that give the same elements another shape, and those that ask for shapes. All of the
 * first kind are one view_copy, which shares its operand's memory later on. */
#include "ir/text.h"
#include "onnx/express.h"

/* --- Reshape --- */

/* Size of the dim given as -1: the input's elements over the other sizes. Sizes that stand on both
 * sides are dropped first, and those that divide the rest are taken out one by one, so that
 * symbolic ones cancel. */
static SymInt inferred_size(Import *im, const Dims *from, const Dims *to, uint32_t at) {
  SymTable *t = &im->g->syms;
  bool used[MAX_RANK] = {false}, cancelled[MAX_RANK] = {false};
  SymInt above = 1, below = 1;
  cancelled[at] = true;
  for (uint32_t i = 0; i < to->rank; i++)
    for (uint32_t k = 0; k < from->rank && !cancelled[i]; k++)
      if (!used[k] && from->d[k] == to->d[i])
        cancelled[i] = used[k] = true;
  for (uint32_t k = 0; k < from->rank; k++)
    if (!used[k])
      above = sym_mul(t, above, from->d[k]);
  for (uint32_t i = 0; i < to->rank; i++)
    if (!cancelled[i] && sym_lower(t, to->d[i]) > 0 && sym_mod(t, above, to->d[i]) == 0)
      above = sym_floordiv(t, above, to->d[i]);
    else if (!cancelled[i])
      below = sym_mul(t, below, to->d[i]);
  if (below == 0)
    return 0;
  return sym_floordiv(t, above, below);
}

static void resolve_reshape(Import *im, const Dims *from, bool allow_zero, Dims *to) {
  int inferred = -1;
  for (uint32_t i = 0; i < to->rank; i++) {
    if (to->d[i] == 0 && !allow_zero) {
      if (i >= from->rank)
        import_fail(im, DIAG_SHAPE_MISMATCH,
                    "entry %u of the shape is 0, but the input has only %u dimensions", i,
                    from->rank);
      to->d[i] = from->d[i];
    } else if (to->d[i] == -1 && inferred < 0) {
      inferred = (int)i;
    } else if (sym_is_const(to->d[i]) && to->d[i] < 0) {
      import_fail(im, DIAG_SHAPE_MISMATCH, "entry %u of the shape is %lld%s", i,
                  (long long)to->d[i], to->d[i] == -1 ? " for the second time" : "");
    }
  }
  if (inferred >= 0 && import_ok(im))
    to->d[inferred] = inferred_size(im, from, to, (uint32_t)inferred);
}

void translate_reshape(Import *im) {
  ValueId x = in_required(im, 0);
  Dims from = shape_of(im, x), to = {0};
  bool known = true;
  if (im->opset < 5) {
    Ints values;
    if (!attr_ints(im, "shape", &values) || values.count > MAX_RANK) {
      import_fail(im, DIAG_ATTR_MISSING, "Reshape has no 'shape' of at most %d entries", MAX_RANK);
      return;
    }
    to = dims_make(values.at, values.count);
  } else if (!shape_input(im, 1, 0, "the new shape", &to, &known)) {
    return;
  }
  if (import_ok(im) && known)
    resolve_reshape(im, &from, attr_flag(im, "allowzero", false), &to);
  out(im, 0, ex_view_as(im, x, to));
}

/* Everything before axis is one dim, everything from it on the other. */
void translate_flatten(Import *im) {
  ValueId x = in_required(im, 0);
  uint32_t rank = ex_rank(im, x);
  int64_t axis = attr_int(im, "axis", 1);
  axis = axis == rank ? axis : import_axis(im, axis, rank); /* the rank is allowed */
  out(im, 0, ex_rows(im, x, (uint32_t)axis));
}

/* --- Squeeze, Unsqueeze --- */

/* A view of x with the dims that output 0 declares. */
static void declared_view(Import *im, ValueId x) {
  Dims to = {0};
  if (!out_declared_dims(im, 0, &to))
    fail_not_known(im, 1, "the list of axes");
  out(im, 0, ex_view_as(im, x, to));
}

void translate_squeeze(Import *im) {
  ValueId x = in_required(im, 0);
  Dims from = shape_of(im, x), to = {0};
  Axes axes;
  if (!axes_read(im, 13, from.rank, &axes))
    return;
  if (axes.given && !axes.known) {
    declared_view(im, x);
    return;
  }
  bool listed = axes.given && axes.set; /* an empty list: as without one */
  for (uint32_t i = 0; i < from.rank; i++) {
    bool drop = listed ? (axes.set >> i & 1) != 0 : from.d[i] == 1;
    if (drop && listed && sym_is_const(from.d[i]) && from.d[i] != 1)
      import_fail(im, DIAG_SHAPE_MISMATCH, "dimension %u has %lld entries, 1 is wanted", i,
                  (long long)from.d[i]);
    if (!drop)
      to.d[to.rank++] = from.d[i];
  }
  out(im, 0, ex_view_as(im, x, to));
}

void translate_unsqueeze(Import *im) {
  ValueId x = in_required(im, 0);
  Dims from = shape_of(im, x), to = {0};
  Ints values;
  bool given = im->opset < 13 ? attr_ints(im, "axes", &values) : in_consts(im, 1, &values);
  if (!given && im->opset < 13)
    import_fail(im, DIAG_ATTR_MISSING, "Unsqueeze has no 'axes'");
  if (!given) {
    declared_view(im, x);
    return;
  }
  if (from.rank + values.count > MAX_RANK)
    import_fail(im, DIAG_RANK_LIMIT, "the result would have %u dimensions, the runtime allows %d",
                from.rank + values.count, MAX_RANK);
  uint32_t set = 0;
  to.rank = from.rank + values.count;
  for (uint32_t i = 0; i < values.count && import_ok(im); i++) {
    uint32_t axis = import_axis(im, values.at[i], to.rank);
    if (set >> axis & 1)
      import_fail(im, DIAG_AXIS_RANGE, "axis %lld is listed twice", (long long)values.at[i]);
    set |= (uint32_t)1 << axis;
  }
  for (uint32_t i = 0, k = 0; i < to.rank && import_ok(im); i++)
    to.d[i] = set >> i & 1 ? 1 : from.d[k++];
  out(im, 0, ex_view_as(im, x, to));
}

/* --- Dims, Size --- */

static int64_t clamp_axis(int64_t axis, uint32_t rank) {
  axis = wrap_dim(axis, rank);
  return axis < 0 ? 0 : min_i64(axis, rank);
}

void translate_shape(Import *im) {
  ValueId x = in_required(im, 0);
  Dims s = shape_of(im, x);
  int64_t start = clamp_axis(attr_int(im, "start", 0), s.rank),
          end = clamp_axis(attr_int(im, "end", s.rank), s.rank);
  out(im, 0, build_syms(im, s.d + start, end > start ? (uint32_t)(end - start) : 0));
}

void translate_size(Import *im) {
  ValueId x = in_required(im, 0);
  Dims s = shape_of(im, x);
  out(im, 0, ex_size(im, shape_product(im, s.d, s.rank)));
}

/* --- Expand --- */

/* The number of dims of the shape, 0 when that is not known. */
static uint32_t expanded_by(Import *im, ValueId shape) {
  SymInt length = ex_rank(im, shape) == 1 ? ex_dim(im, shape, 0) : 0;
  return sym_is_const(length) && length >= 0 && length <= MAX_RANK ? (uint32_t)length : 0;
}

/* numpy/ONNX broadcast of dims; fails when they do not fit. */
static Dims broadcast(Import *im, Dims a, Dims b) {
  uint32_t rank = a.rank > b.rank ? a.rank : b.rank;
  Dims result = {.rank = rank};
  for (uint32_t i = 0; i < rank; i++) {
    SymInt x = i + a.rank >= rank ? a.d[i + a.rank - rank] : 1,
           y = i + b.rank >= rank ? b.d[i + b.rank - rank] : 1;
    int equal = sym_known_eq(&im->g->syms, x, y);
    if (x == 1 || (equal == 1 && y != 1))
      result.d[i] = y;
    else if (y == 1 || equal != 0)
      result.d[i] = x;
    else
      import_fail(im, DIAG_SHAPE_MISMATCH, "shapes do not broadcast: %s and %s at dimension %u",
                  dim_text(im->g, x), dim_text(im->g, y), i);
    if (x != 1 && y != 1 && equal < 0)
      graph_add_constraint(im->g, (Constraint){CONSTRAINT_EQ, x, y, im->b.loc});
  }
  return result;
}

void translate_expand(Import *im) {
  ValueId x = in_required(im, 0);
  Dims from = shape_of(im, x), wanted;
  bool known;
  uint32_t length = expanded_by(im, in(im, 1));
  if (!shape_input(im, 1, from.rank > length ? from.rank - length : 0, "the shape to expand to",
                   &wanted, &known))
    return;
  Dims to = broadcast(im, from, wanted);
  out(im, 0, ex_expand(im, x, to.d, to.rank));
}

/* Operators that move elements: transpose, join, split, repeat, exchange space and channels. */
#include "onnx/data_sizes.h"

void translate_transpose(Import *im) {
  ValueId x = in_required(im, 0);
  uint32_t rank = ex_rank(im, x), seen = 0;
  Ints perm;
  int64_t reversed[MAX_RANK];
  if (!attr_ints(im, "perm", &perm)) {
    for (uint32_t i = 0; i < rank; i++)
      reversed[i] = rank - 1 - i;
    perm = (Ints){reversed, rank};
  }
  for (uint32_t i = 0; i < perm.count && i < rank; i++)
    if (perm.at[i] >= 0 && perm.at[i] < rank)
      seen |= (uint32_t)1 << perm.at[i];
  if (perm.count != rank || seen != ((uint32_t)1 << rank) - 1)
    import_fail(im, DIAG_ATTR_VALUE, "'perm' is not a permutation of %u axes", rank);
  out(im, 0, ex_permute(im, x, perm.at));
}

void translate_concat(Import *im) {
  uint32_t count = in_count(im);
  ValueId *parts = ARENA_ARRAY(&im->scratch, ValueId, count);
  for (uint32_t i = 0; i < count; i++)
    parts[i] = in_required(im, i);
  for (uint32_t i = 1; i < count; i++)
    if (ex_dtype(im, parts[i]) != ex_dtype(im, parts[0]))
      import_fail(im, DIAG_DTYPE_MISMATCH, "input %u is %s, the first is %s", i,
                  dtype_name(ex_dtype(im, parts[i])), dtype_name(ex_dtype(im, parts[0])));
  int64_t axis = im->opset < 4 ? attr_int(im, "axis", 1) : attr_int_required(im, "axis");
  out(im, 0, ex_cat(im, parts, count, import_axis(im, axis, ex_rank(im, parts[0]))));
}

/* --- Split --- */

/* Sizes of the pieces when they are not listed: as equal as possible, the last one smaller. */
static void equal_sizes(Import *im, SymInt whole, uint32_t count, SymInt *sizes) {
  SymTable *t = &im->g->syms;
  int64_t outputs = im->opset >= 18 ? attr_int(im, "num_outputs", count) : count;
  if (outputs != count)
    import_fail(im, DIAG_ATTR_VALUE, "num_outputs is %lld, the node has %u outputs",
                (long long)outputs, count);
  if (im->opset < 18 && sym_is_const(whole) && whole % count != 0)
    import_fail(im, DIAG_SHAPE_MISMATCH, "%lld entries cannot be split into %u equal parts",
                (long long)whole, count);
  SymInt size = sym_ceildiv(t, whole, count);
  for (uint32_t i = 0; i < count; i++) {
    SymInt rest = sym_sub(t, whole, sym_mul(t, size, i));
    sizes[i] = i + 1 < count && sym_known_le(t, size, rest) == 1
                   ? size
                   : sym_max(t, 0, sym_min(t, size, rest));
  }
}

static void split_sizes(Import *im, SymInt whole, uint32_t axis, uint32_t count, SymInt *sizes) {
  Ints values;
  bool input = (im->opset >= 13 || im->opset < 2) && in(im, 1);
  if (input && !in_ints(im, 1, &values)) {
    for (uint32_t i = 0; i < count && import_ok(im); i++)
      if (!out_declared_dim(im, i, axis, &sizes[i]))
        sizes[i] = data_size(im, ex_element(im, in(im, 1), i),
                             out_bound_below(im, i, axis, sym_upper(&im->g->syms, whole)));
    return;
  }
  if (!input && !(im->opset < 13 && attr_ints(im, "split", &values)))
    equal_sizes(im, whole, count, sizes);
  else if (values.count != count)
    import_fail(im, DIAG_SHAPE_MISMATCH, "%u sizes for %u outputs", values.count, count);
  else
    memcpy(sizes, values.at, count * sizeof *sizes);
}

/* All pieces wanted: one split_with_sizes_copy. Else, and for small integer tensors (whose elements
 * may be known sizes), a slice each. */
void translate_split(Import *im) {
  ValueId x = in_required(im, 0);
  uint32_t count = out_count(im), wanted = 0;
  Dims s = shape_of(im, x);
  uint32_t axis = import_axis(im, attr_int(im, "axis", 0), s.rank);
  if (count == 0) /* nothing is split off */
    return;
  SymInt *sizes = ARENA_ARRAY(&im->scratch, SymInt, count);
  split_sizes(im, s.d[axis], axis, count, sizes);
  for (uint32_t i = 0; i < count; i++)
    wanted += out_wanted(im, i);
  Ints known;
  if (wanted == count && count > 1 && !value_ints(im, x, &known)) {
    ValueId first =
        build(&im->b, OP_SPLIT_WITH_SIZES_COPY, A_VAL(x), A_INTS(sizes, count), A_INT(axis));
    for (uint32_t i = 0; i < count && import_ok(im); i++)
      out(im, i, first + i);
    return;
  }
  SymInt at = 0;
  for (uint32_t i = 0; i < count && import_ok(im); i++) {
    SymInt end = sym_add(&im->g->syms, at, sizes[i]);
    if (out_wanted(im, i))
      out(im, i, ex_slice(im, x, axis, at, end));
    at = end;
  }
}

/* --- Tile --- */

/* Before opset 6: the number of copies and the axis. */
static Dims tiles_of_axis(Import *im, uint32_t rank) {
  Ints tiles, axis;
  Dims repeats = {.rank = rank};
  for (uint32_t i = 0; i < rank; i++)
    repeats.d[i] = 1;
  if (!in_consts(im, 1, &tiles) || !in_consts(im, 2, &axis)) {
    import_fail(im, DIAG_INPUT_NOT_CONST, "tiles and axis must be constants");
    return repeats;
  }
  uint32_t at = axis.count ? import_axis(im, axis.at[0], rank) : 0;
  if (import_ok(im) && tiles.count)
    repeats.d[at] = tiles.at[0];
  return repeats;
}

void translate_tile(Import *im) {
  ValueId x = in_required(im, 0);
  Dims s = shape_of(im, x), repeats;
  bool known;
  if (im->opset < 6) {
    repeats = tiles_of_axis(im, s.rank);
  } else if (!shape_input(im, 1, 0, "the list of repeats", &repeats, &known)) {
    return;
  } else if (!known) {
    for (uint32_t i = 0; i < repeats.rank && i < s.rank; i++)
      repeats.d[i] = s.d[i] == 0 ? 1 : sym_floordiv(&im->g->syms, repeats.d[i], s.d[i]);
  }
  if (repeats.rank != s.rank)
    import_fail(im, DIAG_SHAPE_MISMATCH, "%u repeats for rank %u", repeats.rank, s.rank);
  bool one = true;
  for (uint32_t i = 0; i < repeats.rank; i++)
    one &= repeats.d[i] == 1;
  out(im, 0, one ? x : build(&im->b, OP_REPEAT, A_VAL(x), A_INTS(repeats.d, repeats.rank)));
}

/* --- DepthToSpace, SpaceToDepth --- */

/* Mode CRD keeps the channel outermost, which is what pixel_shuffle does; DCR the block. */
void translate_depth_and_space(Import *im) {
  ValueId x = in_required(im, 0);
  Dims s = shape_of(im, x), split, joined;
  SymTable *t = &im->g->syms;
  int64_t b = attr_int_required(im, "blocksize");
  bool to_depth = im->op == OP_PIXEL_UNSHUFFLE,
       crd = attr_choice(im, "mode", "DCR", "DCR|CRD") == 1;
  if (s.rank != 4)
    import_fail(im, DIAG_INPUT_RANK, "the input has rank %u, 4 is wanted", s.rank);
  if (b < 1 || b > INT16_MAX)
    import_fail(im, DIAG_ATTR_VALUE, "blocksize is %lld", (long long)b);
  if (!import_ok(im))
    return;
  if (crd) {
    out(im, 0, build(&im->b, im->op, A_VAL(x), A_INT(b)));
    return;
  }
  if (to_depth) {
    SymInt rows = sym_floordiv(t, s.d[2], b), columns = sym_floordiv(t, s.d[3], b);
    split = (Dims){6, {s.d[0], s.d[1], rows, b, columns, b}};
    joined = (Dims){4, {s.d[0], sym_mul(t, s.d[1], b * b), rows, columns}};
  } else {
    SymInt channels = sym_floordiv(t, s.d[1], b * b);
    split = (Dims){6, {s.d[0], b, b, channels, s.d[2], s.d[3]}};
    joined = (Dims){4, {s.d[0], channels, sym_mul(t, s.d[2], b), sym_mul(t, s.d[3], b)}};
  }
  ValueId y = ex_view_as(im, x, split);
  y = to_depth ? EX_PERMUTE(im, y, 0, 3, 5, 1, 2, 4) : EX_PERMUTE(im, y, 0, 3, 4, 1, 5, 2);
  out(im, 0, ex_view_as(im, y, joined));
}

/* --- Trilu --- */

/* column - row >= k (upper) or <= k, as a mask of the last two dims. */
static ValueId triangle(Import *im, const Dims *s, ValueId k, bool upper) {
  ValueId row = ex_along_axis(im, ex_arange(im, s->d[s->rank - 2]), 0, 2),
          column = ex_along_axis(im, ex_arange(im, s->d[s->rank - 1]), 1, 2);
  return ex_binary(im, upper ? OP_GE_TENSOR : OP_LE_TENSOR, ex_sub(im, column, row), k);
}

void translate_trilu(Import *im) {
  ValueId x = in_required(im, 0), k = in(im, 1);
  bool upper = attr_flag(im, "upper", true);
  Dims s = shape_of(im, x);
  SymInt diagonal = 0;
  if (s.rank < 2) {
    import_fail(im, DIAG_INPUT_RANK, "the input has rank %u, at least 2 is wanted", s.rank);
    return;
  }
  if (!k || one_int(im, k, &diagonal)) {
    out(im, 0, build(&im->b, upper ? OP_TRIU : OP_TRIL, A_VAL(x), A_INT(diagonal)));
    return;
  }
  ValueId mask = triangle(im, &s, ex_scalar(im, k), upper);
  out(im, 0, ex_where(im, mask, x, ex_number(im, x, 0)));
}

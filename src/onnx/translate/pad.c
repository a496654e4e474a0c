/* Pad and CenterCropPad.
 *
 * Known pads: negative ones crop by slices first, constants are constant_pad_nd, reflections and
 * borders of the last three dims the kernels of those names; what is left, and pads that arrive at
 * run time, picks entries by index an axis at a time. */
#include "onnx/data_sizes.h"

typedef enum PadMode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP } PadMode;

typedef struct Pads {
  PadMode mode;
  SymInt begin[MAX_RANK], end[MAX_RANK];
  ValueId value; /* one element of the type of the tensor; 0 for zeros */
} Pads;

/* --- known pads --- */

/* Negative pads cut; what remains is not negative. */
static ValueId crop(Import *im, ValueId x, Pads *p) {
  SymTable *t = &im->g->syms;
  for (uint32_t i = 0; import_ok(im) && i < ex_rank(im, x); i++) {
    SymInt begin = sym_max(t, 0, sym_sub(t, 0, p->begin[i])),
           end = sym_max(t, 0, sym_sub(t, 0, p->end[i]));
    if (sym_known_lt(t, ex_dim(im, x, i), sym_add(t, begin, end)) == 1) {
      import_fail(im, DIAG_ATTR_VALUE, "negative pads cut more from dimension %u than it has", i);
      return 0;
    }
    x = ex_slice(im, x, i, begin, sym_sub(t, ex_dim(im, x, i), end));
    p->begin[i] = sym_max(t, 0, p->begin[i]);
    p->end[i] = sym_max(t, 0, p->end[i]);
  }
  return x;
}

static bool padded(const Pads *p, uint32_t i) { return p->begin[i] != 0 || p->end[i] != 0; }

static ValueId pad_nd(Import *im, ValueId x, const Pads *p, ArgIn value) {
  SymInt list[2 * MAX_RANK];
  uint32_t count = 0, rank = ex_rank(im, x);
  for (uint32_t i = 0; i < rank; i++) {
    list[count++] = p->begin[rank - 1 - i];
    list[count++] = p->end[rank - 1 - i];
  }
  while (count >= 2 && list[count - 1] == 0 && list[count - 2] == 0)
    count -= 2;
  return count ? build(&im->b, OP_CONSTANT_PAD_ND, A_VAL(x), A_INTS(list, count), value) : x;
}

/* A pad value that is known at run time only is put in with where(). */
static ValueId pad_constant(Import *im, ValueId x, const Pads *p) {
  DType dtype = ex_dtype(im, x);
  int64_t whole;
  double number;
  if (!p->value)
    return pad_nd(im, x, p, zero_arg(dtype));
  if (dtype_is_int(dtype) && one_const(im, p->value, &whole))
    return pad_nd(im, x, p, A_INT(whole));
  SymInt fill = 0;
  if (one_double(im, p->value, &number) &&
      (dtype_is_float(dtype) || sym_from_float(trunc(number), &fill)))
    return pad_nd(im, x, p, dtype_is_float(dtype) ? A_FLOAT(number) : A_INT(fill));
  ValueId inside = pad_nd(im, ex_filled(im, DTYPE_BOOL, shape_of(im, x), 1), p, A_INT(0));
  ValueId y = pad_nd(im, x, p, zero_arg(dtype));
  return ex_where(im, inside, y, ex_scalar(im, p->value));
}

/* The kernels take one or two leading dims: those before the first padded one are joined unless
 * there are two. */
static ValueId pad_kernel(Import *im, ValueId x, const Pads *p, uint32_t first) {
  static const OpId ops[2][3] = {
      {OP_REFLECTION_PAD1D, OP_REFLECTION_PAD2D, OP_REFLECTION_PAD3D},
      {OP_REPLICATION_PAD1D, OP_REPLICATION_PAD2D, OP_REPLICATION_PAD3D}};
  SymTable *t = &im->g->syms;
  Dims s = shape_of(im, x), flat = {1, {shape_product(im, s.d, first)}}, to = s;
  if (first == 2)
    flat = (Dims){2, {s.d[0], s.d[1]}};
  SymInt list[6];
  uint32_t dims = s.rank - first;
  for (uint32_t i = first; i < s.rank; i++) {
    SymInt *pair = &list[2 * (s.rank - 1 - i)];
    pair[0] = p->begin[i];
    pair[1] = p->end[i];
    flat.d[flat.rank++] = s.d[i];
    to.d[i] = sym_add(t, s.d[i], sym_add(t, pair[0], pair[1]));
  }
  ValueId y = ex_view_as(im, x, flat);
  y = build(&im->b, ops[p->mode == PAD_EDGE][dims - 1], A_VAL(y), A_INTS(list, 2 * dims));
  return ex_view_as(im, y, to);
}

/* --- by index --- */

/* Positions before 0 and beyond size - 1, brought inside as the mode has it. */
static ValueId fold_positions(Import *im, ValueId at, SymInt size, PadMode mode) {
  SymInt last = sym_sub(&im->g->syms, size, 1);
  if (mode == PAD_WRAP)
    return ex_floor_mod(im, at, ex_size(im, size));
  if (mode == PAD_REFLECT) {
    SymInt period = sym_max(&im->g->syms, 1, sym_mul(&im->g->syms, last, 2));
    at = ex_floor_mod(im, at, ex_size(im, period));
    return ex_min(im, at, ex_sub(im, ex_size(im, period), at));
  }
  return ex_at_least(im, ex_min(im, at, ex_size(im, last)), 0);
}

static ValueId pad_axis(Import *im, ValueId x, const Pads *p, uint32_t axis) {
  SymTable *t = &im->g->syms;
  SymInt size = ex_dim(im, x, axis),
         whole = sym_add(t, size, sym_add(t, p->begin[axis], p->end[axis]));
  ValueId begin = ex_size(im, p->begin[axis]), at = ex_sub(im, ex_arange(im, whole), begin);
  return ex_index_select(im, x, axis, fold_positions(im, at, size, p->mode));
}

/* May the reflection kernel do it? It takes pads below the size. */
static bool kernel_takes(Import *im, const Pads *p, const Dims *s, uint32_t first) {
  SymTable *t = &im->g->syms;
  for (uint32_t i = first; i < s->rank && p->mode == PAD_REFLECT; i++)
    if (padded(p, i) &&
        (sym_known_lt(t, p->begin[i], s->d[i]) == 0 || sym_known_lt(t, p->end[i], s->d[i]) == 0))
      return false;
  return p->mode != PAD_WRAP && s->rank - first <= 3;
}

static ValueId pad_known(Import *im, ValueId x, Pads *p) {
  x = crop(im, x, p);
  Dims s = shape_of(im, x);
  uint32_t first = 0;
  while (first < s.rank && !padded(p, first))
    first++;
  if (first == s.rank)
    return x;
  if (p->mode == PAD_CONSTANT)
    return pad_constant(im, x, p);
  if (kernel_takes(im, p, &s, first))
    return pad_kernel(im, x, p, first);
  for (uint32_t i = first; i < s.rank && import_ok(im); i++)
    if (padded(p, i))
      x = pad_axis(im, x, p, i);
  return x;
}

/* --- pads that arrive at run time --- */

typedef struct RunPads {
  ValueId list;   /* the begins of all axes, then the ends */
  ValueId axes;   /* 0: they are known, or those of all dims */
  Ints known;     /* NULL: all dims, in order */
  uint32_t count; /* of axes */
} RunPads;

/* Pad 0, the begin, or 1, the end, of a dim: that of the axis which is this dim, else 0. */
static ValueId run_pad(Import *im, const RunPads *r, uint32_t which, uint32_t dim, uint32_t rank) {
  ValueId pad = ex_int(im, 0);
  for (uint32_t j = 0; j < r->count && import_ok(im); j++) {
    uint32_t axis = r->known.at ? import_axis(im, r->known.at[j], rank) : j;
    if (!r->axes && axis != dim)
      continue;
    ValueId own = ex_cast(im, ex_element(im, r->list, which * r->count + j), DTYPE_I64);
    if (!r->axes)
      return own;
    ValueId named = ex_wrap_index(im, ex_element(im, r->axes, j), rank);
    pad = ex_where(im, ex_is(im, named, dim), own, pad);
  }
  return pad;
}

/* The sizes with the pads, which are read while running, with bounds. */
static bool run_sizes(Import *im, const RunPads *r, const Dims *s, Dims *to) {
  ValueId sizes[MAX_RANK] = {0};
  for (uint32_t i = 0; i < s->rank && import_ok(im); i++) {
    ValueId begin = run_pad(im, r, 0, i, s->rank), end = run_pad(im, r, 1, i, s->rank);
    ValueId more = ex_add(im, begin, end);
    sizes[i] = EX_VIEW(im, ex_add(im, ex_size(im, s->d[i]), more), 1);
  }
  ValueId list = ex_cat(im, sizes, s->rank, 0);
  return import_ok(im) && data_sizes(im, list, 0, "the size with its pads", to);
}

static void pad_run(Import *im, ValueId x, const Pads *p, const RunPads *r) {
  Dims s = shape_of(im, x), to = {0};
  if (!out_declared_dims(im, 0, &to) && !run_sizes(im, r, &s, &to))
    return;
  if (to.rank != s.rank) {
    import_fail(im, DIAG_DIM_CONTRADICTION, "the pads do not fit a tensor of rank %u", s.rank);
    return;
  }
  ValueId inside = 0;
  for (uint32_t i = 0; i < s.rank && import_ok(im); i++) {
    ValueId begin = run_pad(im, r, 0, i, s.rank);
    ValueId at = ex_sub(im, ex_arange(im, to.d[i]), begin);
    x = ex_index_select(im, x, i, fold_positions(im, at, s.d[i], p->mode));
    if (p->mode != PAD_CONSTANT)
      continue;
    ValueId low = ex_with(im, OP_GE_TENSOR, at, 0), high = ex_lt(im, at, ex_size(im, s.d[i]));
    ValueId here = ex_along_axis(im, ex_and(im, low, high), i, s.rank);
    inside = inside ? ex_and(im, inside, here) : here;
  }
  if (inside)
    x = ex_where(im, inside, x,
                 p->value ? ex_scalar(im, p->value) : build_scalar(&im->b, ex_dtype(im, x), 0));
  out(im, 0, x);
}

/* --- Pad --- */

/* Opset 1: attribute paddings; 2: pads and value; 11: inputs; 18: an input of axes. */
static void pad_attributes(Import *im, ValueId x, Pads *p) {
  Ints values;
  uint32_t rank = ex_rank(im, x);
  if (!attr_ints(im, im->opset < 2 ? "paddings" : "pads", &values) || values.count != 2 * rank) {
    import_fail(im, DIAG_ATTR_VALUE, "the pads are not two for each of %u dimensions", rank);
    return;
  }
  for (uint32_t i = 0; i < rank; i++) {
    p->begin[i] = values.at[i];
    p->end[i] = values.at[rank + i];
  }
  p->value = build_scalar(&im->b, ex_dtype(im, x), attr_float(im, "value", 0));
  out(im, 0, pad_known(im, x, p));
}

static bool is_pair_count(SymInt n) {
  return sym_is_const(n) && n >= 0 && n % 2 == 0 && n <= 2 * MAX_RANK;
}

void translate_pad(Import *im) {
  ValueId x = in_required(im, 0);
  Pads p = {0};
  Ints values, axes = {0};
  p.mode = (PadMode)attr_choice(im, "mode", "constant", "constant|reflect|edge|wrap");
  if (im->opset < 11) {
    pad_attributes(im, x, &p);
    return;
  }
  ValueId pads = in_required(im, 1), axis_input = in(im, 3);
  p.value = in(im, 2);
  SymInt entries = ex_rank(im, pads) == 1 ? ex_dim(im, pads, 0) : -1;
  if (!is_pair_count(entries)) {
    import_fail(im, DIAG_INPUT_RANK, "the pads are not a list of pairs");
    return;
  }
  bool axes_known = !axis_input || in_consts(im, 3, &axes);
  uint32_t rank = ex_rank(im, x), dims = axes.at ? axes.count : rank;
  if (axes_known && entries != 2 * (int64_t)dims)
    import_fail(im, DIAG_SHAPE_MISMATCH, "%lld pads for %u axes", (long long)entries, dims);
  if (!axes_known || !value_ints(im, pads, &values)) {
    pad_run(im, x, &p, &(RunPads){pads, axes_known ? 0 : axis_input, axes, (uint32_t)entries / 2});
    return;
  }
  for (uint32_t i = 0; i < dims && import_ok(im); i++) {
    uint32_t axis = axes.at ? import_axis(im, axes.at[i], rank) : i;
    p.begin[axis] = values.at[i];
    p.end[axis] = values.at[dims + i];
  }
  out(im, 0, pad_known(im, x, &p));
}

/* --- CenterCropPad --- */

/* Cuts or pads each axis evenly; of an odd rest the smaller half is at the begin. */
void translate_center_crop_pad(Import *im) {
  ValueId x = in_required(im, 0);
  Dims s = shape_of(im, x), to = s, wanted;
  bool known;
  Ints axes;
  SymTable *t = &im->g->syms;
  if (!shape_input(im, 1, 0, "the target shape", &wanted, &known))
    return;
  bool listed = attr_ints(im, "axes", &axes);
  if (wanted.rank != (known && listed ? axes.count : s.rank))
    import_fail(im, DIAG_SHAPE_MISMATCH, "%u target sizes for %u axes", wanted.rank,
                known && listed ? axes.count : s.rank);
  for (uint32_t i = 0; i < wanted.rank && import_ok(im); i++)
    to.d[known && listed ? import_axis(im, axes.at[i], s.rank) : i] = wanted.d[i];
  Pads p = {.mode = PAD_CONSTANT};
  for (uint32_t i = 0; i < s.rank && import_ok(im); i++) {
    SymInt more = sym_sub(t, to.d[i], s.d[i]), less = sym_sub(t, s.d[i], to.d[i]);
    SymInt before = sym_floordiv(t, sym_max(t, more, 0), 2),
           cropped = sym_floordiv(t, sym_max(t, less, 0), 2);
    p.begin[i] = sym_sub(t, before, cropped);
    p.end[i] = sym_sub(t, more, p.begin[i]);
  }
  out(im, 0, pad_known(im, x, &p));
}

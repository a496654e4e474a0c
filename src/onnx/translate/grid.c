/* GridSample, AffineGrid: operators over positions in images. GridSample of images is one
 * kernel; of volumes it is spelt out: coordinates, neighbours and their weights, a gather each. */
#include "onnx/express.h"

enum { GRID_DIMS_MAX = 6 };

typedef enum GridMode { GRID_LINEAR, GRID_NEAREST, GRID_CUBIC } GridMode;
typedef enum GridPadding { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION } GridPadding;

typedef struct Grid {
  ValueId x, grid;
  Dims image, points; /* of x and grid */
  uint32_t dims;      /* spatial */
  GridMode mode;
  GridPadding padding;
  bool corners;
} Grid;

/* A size plus a number, as a 0-d tensor of this type. */
static ValueId size_as(Import *im, SymInt size, int64_t more, DType dtype) {
  ValueId v = ex_size(im, sym_add(&im->g->syms, size, more));
  return ex_cast(im, v, dtype);
}

/* --- coordinates --- */

/* Coordinate reflected at low and low + span until it is inside. */
static ValueId reflect(Import *im, ValueId at, double low, ValueId span) {
  ValueId twice = ex_times(im, span, 2), off = ex_unary(im, OP_ABS, ex_plus(im, at, -low));
  ValueId rounds = ex_unary(im, OP_FLOOR, ex_div(im, off, twice));
  off = ex_sub(im, off, ex_mul(im, rounds, twice));
  return ex_plus(im, ex_min(im, off, ex_sub(im, twice, off)), low);
}

/* Positions of one spatial dim in elements, [N, points]; component 0 of the grid is the last dim.
 */
static ValueId positions(Import *im, const Grid *g, uint32_t dim) {
  DType dtype = ex_dtype(im, g->grid);
  SymInt size = g->image.d[2 + dim];
  uint32_t last = g->points.rank - 1;
  ValueId c = ex_pick(im, g->grid, last, (int64_t)g->dims - 1 - dim);
  c = EX_VIEW(im, c, g->points.d[0], shape_product(im, g->points.d + 1, last - 1));
  c = ex_plus(im, c, 1);
  if (g->corners) {
    ValueId last_place = size_as(im, size, -1, dtype);
    c = ex_mul(im, ex_times(im, c, 0.5), last_place);
  } else
    c = ex_times(im, ex_plus(im, ex_mul(im, c, size_as(im, size, 0, dtype)), -1), 0.5);
  if (g->padding == GRID_REFLECTION)
    c = g->corners ? reflect(im, c, 0, size_as(im, size, -1, dtype))
                   : reflect(im, c, -0.5, size_as(im, size, 0, dtype));
  if (g->padding != GRID_ZEROS)
    c = ex_at_least(im, ex_min(im, c, size_as(im, size, -1, dtype)), 0);
  return c;
}

/* One neighbour of all points: its index in the flat volume, its weight, and whether it is inside.
 */
typedef struct Neighbour {
  ValueId index, weight, inside; /* [N, points]; weight 0: all ones */
} Neighbour;

static void add_dim(Import *im, const Grid *g, uint32_t dim, ValueId at, ValueId weight,
                    Neighbour *n) {
  SymInt size = g->image.d[2 + dim];
  DType dtype = ex_dtype(im, g->grid);
  ValueId before_end = ex_lt(im, at, size_as(im, size, 0, dtype)),
          inside = ex_and(im, ex_with(im, OP_GE_TENSOR, at, 0), before_end);
  at = ex_at_least(im, ex_min(im, at, size_as(im, size, -1, dtype)), 0);
  at = ex_cast(im, at, DTYPE_I64);
  n->index = n->index ? ex_add(im, ex_mul(im, n->index, ex_size(im, size)), at) : at;
  n->inside = n->inside ? ex_and(im, n->inside, inside) : inside;
  if (weight)
    n->weight = n->weight ? ex_mul(im, n->weight, weight) : weight;
}

/* Elements of x at the neighbour, times its weight: [N, C, points]. */
static ValueId take(Import *im, const Grid *g, const Neighbour *n) {
  const Dims *s = &g->image;
  Dims row = {3, {ex_dim(im, n->index, 0), 1, ex_dim(im, n->index, 1)}};
  ValueId x = EX_VIEW(im, g->x, s->d[0], s->d[1], shape_product(im, s->d + 2, g->dims)),
          index = ex_view_as(im, n->index, row);
  index = EX_EXPAND(im, index, row.d[0], s->d[1], row.d[2]);
  ValueId y = ex_gather(im, x, 2, index);
  if (n->weight)
    y = ex_mul(im, y, ex_view_as(im, n->weight, row));
  if (g->padding != GRID_ZEROS)
    return y;
  ValueId zero = build_scalar(&im->b, ex_dtype(im, g->x), 0);
  return ex_where(im, ex_view_as(im, n->inside, row), y, zero);
}

/* Sum over the 2^dims corners around each point, or the nearest one. */
static void sample_volume(Import *im, const Grid *g) {
  ValueId at[GRID_DIMS_MAX], base[GRID_DIMS_MAX], y = 0;
  bool nearest = g->mode == GRID_NEAREST;
  for (uint32_t d = 0; d < g->dims && import_ok(im); d++) {
    at[d] = positions(im, g, d);
    base[d] = ex_unary(im, nearest ? OP_ROUND : OP_FLOOR, at[d]);
  }
  for (uint32_t corner = 0; corner < (nearest ? 1u : 1u << g->dims) && import_ok(im); corner++) {
    Neighbour n = {0};
    for (uint32_t d = 0; d < g->dims; d++) {
      bool high = corner >> d & 1;
      ValueId here = high ? ex_plus(im, base[d], 1) : base[d];
      ValueId distance = nearest ? 0 : ex_unary(im, OP_ABS, ex_sub(im, at[d], here));
      add_dim(im, g, d, here, nearest ? 0 : ex_plus(im, ex_times(im, distance, -1), 1), &n);
    }
    ValueId part = take(im, g, &n);
    y = y ? ex_add(im, y, part) : part;
  }
  Dims to = {2, {g->image.d[0], g->image.d[1]}};
  for (uint32_t i = 1; i + 1 < g->points.rank; i++)
    to.d[to.rank++] = g->points.d[i];
  out(im, 0, ex_view_as(im, y, to));
}

void translate_grid_sample(Import *im) {
  Grid g = {.x = in_required(im, 0), .grid = in_required(im, 1)};
  g.image = shape_of(im, g.x);
  g.points = shape_of(im, g.grid);
  uint32_t mode = attr_choice(im, "mode", im->opset < 20 ? "bilinear" : "linear",
                              "linear|nearest|cubic|bilinear|bicubic");
  g.mode = mode < 3 ? (GridMode)mode : mode == 3 ? GRID_LINEAR : GRID_CUBIC;
  g.padding = (GridPadding)attr_choice(im, "padding_mode", "zeros", "zeros|border|reflection");
  g.corners = attr_flag(im, "align_corners", false);
  g.dims = g.image.rank - 2;
  if (g.image.rank < 3 || g.dims > GRID_DIMS_MAX || g.points.rank != g.image.rank) {
    import_fail(im, DIAG_SHAPE_MISMATCH, "a grid of rank %u does not fit an input of rank %u",
                g.points.rank, g.image.rank);
    return;
  }
  SymInt *coordinates = &g.points.d[g.points.rank - 1];
  if (sym_known_eq(&im->g->syms, *coordinates, g.dims) == 0) {
    import_fail(im, DIAG_SHAPE_MISMATCH, "the last dim of the grid must be %u", g.dims);
    return;
  }
  if (*coordinates != g.dims)
    graph_add_constraint(im->g, (Constraint){CONSTRAINT_EQ, *coordinates, g.dims, im->b.loc});
  DType dtype = ex_dtype(im, g.x);
  g.grid = ex_cast(im, g.grid, dtype);
  if (g.dims == 2 && dtype_is_float(dtype))
    out(im, 0,
        build(&im->b, OP_GRID_SAMPLER_2D, A_VAL(g.x), A_VAL(g.grid), A_INT(g.mode),
              A_INT(g.padding), A_BOOL(g.corners)));
  else if (g.mode == GRID_CUBIC || !dtype_is_float(dtype))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "cubic sampling of other than images, and sampling of integers, is not supported");
  else
    sample_volume(im, &g);
}

/* --- AffineGrid --- */

/* Centres (or corners) of `size` cells over -1 … 1, as an f64 vector. The corner of a single cell
 * is 1, as in ONNX Runtime. */
static ValueId cell_positions(Import *im, SymInt size, bool corners) {
  ValueId at = ex_cast(im, ex_arange(im, size), DTYPE_F64), n = size_as(im, size, 0, DTYPE_F64);
  if (!corners)
    return ex_plus(im, ex_div(im, ex_plus(im, ex_times(im, at, 2), 1), n), -1);
  ValueId last = ex_plus(im, n, -1), left = ex_times(im, ex_sub(im, at, last), 2);
  return ex_plus(im, ex_div(im, left, ex_at_least(im, last, 1)), 1);
}

/* theta [N, dims, dims + 1] times the homogeneous coordinates of every cell of the output. */
void translate_affine_grid(Import *im) {
  ValueId theta = in_required(im, 0);
  Dims size;
  bool known, corners = attr_flag(im, "align_corners", false);
  if (!shape_input(im, 1, 0, "the size of the grid", &size, &known))
    return;
  uint32_t skip = known ? 2 : 1, dims = size.rank - 2;
  if (size.rank < 3 || dims > 3 || ex_rank(im, theta) != 3) {
    import_fail(im, DIAG_INPUT_RANK, "the grid has %u sizes, theta rank %u", size.rank,
                ex_rank(im, theta));
    return;
  }
  DType dtype = ex_dtype(im, theta);
  SymInt cells = shape_product(im, size.d + skip, dims);
  Dims column = {3, {1, cells, 1}}, space = {dims, {0}};
  memcpy(space.d, size.d + skip, dims * sizeof *space.d);
  ValueId parts[4];
  for (uint32_t i = 0; i < dims; i++) {
    uint32_t axis = dims - 1 - i; /* x, the last dim, comes first */
    ValueId at = ex_along_axis(im, cell_positions(im, space.d[axis], corners), axis, dims);
    at = ex_expand(im, at, space.d, dims);
    parts[i] = ex_cast(im, ex_view_as(im, at, column), dtype);
  }
  parts[dims] = ex_filled(im, dtype, column, 1);
  ValueId base = build(&im->b, OP_CAT, A_VALS(parts, dims + 1), A_INT(2));
  SymInt all[] = {ex_dim(im, theta, 0), cells, dims + 1};
  base = ex_expand(im, base, all, 3);
  ValueId transposed = EX_PERMUTE(im, theta, 0, 2, 1);
  Dims to = {1, {all[0]}};
  for (uint32_t i = 0; i < dims; i++)
    to.d[to.rank++] = space.d[i];
  to.d[to.rank++] = dims;
  out(im, 0, ex_view_as(im, ex_bmm(im, base, transposed), to));
}

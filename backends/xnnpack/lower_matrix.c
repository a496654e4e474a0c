/* Matrix products, and what is computed with their help: sums over the last dim are products with
 * a column, which need no reshape and so take any dims that vary. */
#include <inttypes.h>

#include "backends/xnnpack/lower.h"

static XnnId bias_of(XnnLowering *l, ValueId bias) {
  if (!bias)
    return XNN_NONE;
  if (!is_constant_or_codes(l->g, bias))
    xl_refuse(l, XNN_RULE_RUNTIME_WEIGHTS, R_STR("argument", "bias"));
  else if (value_rank(l->g, bias) != 1)
    xl_refuse(l, XNN_RULE_WEIGHT_RANK, R_INT("bias-rank", value_rank(l->g, bias)),
              R_INT("supported", 1));
  return xl_filter(l, bias);
}

/* A static matrix as a filter. */
static XnnId filter_of(XnnLowering *l, ValueId v) {
  if (value_rank(l->g, v) != 2)
    xl_refuse(l, XNN_RULE_WEIGHT_RANK, R_INT("weight-rank", value_rank(l->g, v)),
              R_INT("supported", 2));
  return xl_filter(l, v);
}

/* in, with the dims that it has as a value. */
static void back(XnnLowering *l, XnnId in, XnnId out) {
  SymInt dims[XNN_MAX_RANK];
  uint32_t rank = xl_rank(l, out);
  for (uint32_t i = 0; i < rank; i++)
    dims[i] = l->x.values[out].dims[i];
  xl_reshape(l, in, dims, rank, out);
}

/* x times a matrix. Rows that come from a reshape are taken before it: mostly the result goes back
 * to the dims that they had. */
static void rows_times(XnnLowering *l, XnnId in, XnnId filter, XnnId bias, uint32_t flags,
                       XnnId out) {
  XnnId origin = xl_origin(l, in);
  if (!xl_ok(l))
    return;
  XnnValue from = l->x.values[origin], like = l->x.values[in], to = l->x.values[out];
  if (origin == in || from.rank == 0 || from.dims[from.rank - 1] != like.dims[like.rank - 1]) {
    xl_fully_connected(l, in, filter, bias, flags, out);
    return;
  }
  from.dims[from.rank - 1] = to.dims[to.rank - 1];
  XnnId wide = xl_temp(l, from.rank, from.dims);
  xl_fully_connected(l, origin, filter, bias, flags, wide);
  back(l, wide, out);
}

/* x times weights [out, in], or [in, out] with flag TRANSPOSE_WEIGHTS, which may arrive at run
 * time: then without a bias, which XNNPACK would lose. Known ones are stored as [out, in], which
 * XNNPACK packs faster when it loads them. */
static void product(XnnLowering *l, ValueId x, ValueId weight, XnnId bias, uint32_t flags,
                    XnnId out) {
  XnnId in = xl_rows(l, x).id, filter = XNN_NONE;
  if (!is_constant_or_codes(l->g, weight)) {
    filter = xl_plain(l, weight);
  } else if (flags && value_rank(l->g, weight) == 2) {
    uint32_t dims[] = {xl_dim(l, weight, 1), xl_dim(l, weight, 0)}, permuted[] = {1, 0};
    filter =
        xl_permuted_constant(l, weight, 2, dims, permuted, value_dtype(l->g, weight) == DTYPE_F16);
    flags = 0;
  } else {
    filter = filter_of(l, weight);
  }
  rows_times(l, in, filter, bias, flags, out);
}

/* A new value for the result y of a node that takes rows of x. Where y has to be plain in the end,
 * and is larger than x (scores of a vocabulary), x is what is brought into that order. */
static XnnId result_of_rows(XnnLowering *l, ValueId x, ValueId y) {
  if (xl_has_permuted(l, x) && !xl_is_quantized_at_run(l->g, x) && xl_is_output(l, y) &&
      xl_elements(l, y) > xl_elements(l, x)) {
    Permuted t = xl_permuted(l, x);
    if (!xl_is_unmerged(&t, value_rank(l->g, x)))
      (void)xl_plain(l, x);
  }
  return xl_has_permuted(l, x) ? xl_result_permuted(l, y, xl_rows(l, x)) : xl_result(l, y);
}

/* A bias that the product cannot take. */
static void add_bias(XnnLowering *l, XnnId product, XnnId bias, double beta, XnnId out) {
  xl_binary(l, XNN_ADD, product, beta == 1 ? bias : xl_scaled(l, bias, beta), out);
}

static bool fits_product(const Graph *g, ValueId weight, ValueId bias) {
  return is_constant_or_codes(g, weight) && is_constant_or_codes(g, bias) &&
         value_rank(g, bias) == 1;
}

void lower_linear(XnnLowering *l, NodeId n) {
  ValueId x = node_value(l->g, n, 0), weight = node_value(l->g, n, 1),
          bias = node_value(l->g, n, 2), y = node_result(l->g, n, 0);
  if (!bias || fits_product(l->g, weight, bias)) {
    XnnId out = result_of_rows(l, x, y);
    product(l, x, weight, bias_of(l, bias), 0, out);
    return;
  }
  XnnId out = result_of_rows(l, x, y), bare = xl_temp_like(l, out);
  product(l, x, weight, XNN_NONE, 0, bare);
  add_bias(l, bare, xl_plain(l, bias), 1, out);
}

/* beta * bias + alpha * x @ weight. */
void lower_addmm(XnnLowering *l, NodeId n) {
  ValueId bias = node_value(l->g, n, 0), x = node_value(l->g, n, 1),
          weight = node_value(l->g, n, 2), y = node_result(l->g, n, 0);
  double beta = node_scalar(l->g, n, 3), alpha = node_scalar(l->g, n, 4);
  if (xl_has_permuted(l, x) && value_rank(l->g, bias) > 1)
    xl_plain(l, x); /* the bias has rows in that order */
  XnnId out = result_of_rows(l, x, y);
  if (alpha == 1 && beta == 1 && fits_product(l->g, weight, bias)) {
    product(l, x, weight, bias_of(l, bias), XNN_FLAG_TRANSPOSE_WEIGHTS, out);
    return;
  }
  XnnId bare = xl_temp_like(l, out);
  product(l, x, weight, XNN_NONE, XNN_FLAG_TRANSPOSE_WEIGHTS, bare);
  if (alpha != 1)
    bare = xl_scaled(l, bare, alpha);
  if (beta == 0)
    xl_unary(l, XNN_COPY, bare, out);
  else
    add_bias(l, bare, xl_plain(l, bias), beta, out);
}

void lower_mm(XnnLowering *l, NodeId n) {
  ValueId x = node_value(l->g, n, 0);
  product(l, x, node_value(l->g, n, 1), XNN_NONE, XNN_FLAG_TRANSPOSE_WEIGHTS,
          result_of_rows(l, x, node_result(l->g, n, 0)));
}

/* Whether v was left with its last two dims, in this order or the other, last in memory. */
static bool has_matrices(XnnLowering *l, ValueId v, bool permuted, Permuted *t) {
  uint32_t rank = value_rank(l->g, v);
  if (is_constant_or_codes(l->g, v) || !xl_has_permuted(l, v))
    return false;
  *t = xl_permuted(l, v);
  uint32_t stored = xl_rank(l, t->id);
  return !t->more[rank - 1] && t->axis[rank - 2 + permuted] + 2u + t->more[rank - 2] == stored &&
         t->axis[rank - 1 - permuted] + 1u == stored && !(permuted && t->more[rank - 2]);
}

/* Transposes a value that is stored unmerged so that its dims are in order in memory, extra axes in
 * front; its rows may stay unmerged. */
static void order_matrices(XnnLowering *l, ValueId v) {
  uint32_t rank = value_rank(l->g, v), perm[XNN_MAX_RANK] = {0}, count = 0;
  if (!xl_has_permuted(l, v))
    return;
  Permuted t = xl_permuted(l, v), to = t;
  if (!xl_is_unmerged(&t, rank))
    return;
  (void)xl_whole_axis(l, &t, rank - 1);
  for (uint32_t a = 0; a < xl_rank(l, t.id); a++)
    if (xl_is_extra_axis(&t, rank, a))
      perm[count++] = a;
  for (uint32_t i = 0; i < rank; i++) {
    to.axis[i] = (uint8_t)count;
    xl_push_axes(&t, i, perm, &count);
  }
  xl_permute_axes(l, &to, perm, count);
  xl_set_permuted(l, v, to);
}

typedef struct ProductOrder {
  Permuted first;  /* the order in which the product is computed */
  Permuted second; /* if transposed: the second operand as it is stored, its matrices transposed */
  bool transposed;
} ProductOrder;

/* The product of x and y is computed in the order of one of them. False: there is no such order. */
static bool order_of_product(XnnLowering *l, ValueId x, ValueId y, uint32_t rank, ProductOrder *o) {
  Permuted *first = &o->first, *second = &o->second;
  o->transposed = has_matrices(l, y, true, second);
  order_matrices(l, x);
  if (has_matrices(l, x, false, first)) {
    o->transposed = o->transposed && xl_rank(l, first->id) == xl_rank(l, second->id) &&
                    memcmp(first->axis, second->axis, rank - 2) == 0 &&
                    memcmp(first->more, second->more, rank - 2) == 0;
    return true;
  }
  if (!o->transposed)
    return has_matrices(l, y, false, first);
  *first = *second;
  first->axis[rank - 2] = second->axis[rank - 1];
  first->axis[rank - 1] = second->axis[rank - 2];
  return true;
}

static bool has_more_axes(XnnLowering *l, ValueId v, uint32_t stored) {
  return xl_has_permuted(l, v) && xl_rank(l, xl_permuted(l, v).id) > stored;
}

/* The matrices of the second operand are contiguous, also where the rows of the first are unmerged.
 */
static void straighten_second(XnnLowering *l, ValueId y, uint32_t rank, uint32_t stored) {
  if (!xl_has_permuted(l, y))
    return;
  Permuted own = xl_permuted(l, y);
  if (xl_rank(l, own.id) > stored || own.more[rank - 1] || own.more[rank - 2])
    (void)xl_plain(l, y);
}

/* Products of matrices whose leading dims lie in another order in memory, or with more of size 1:
 * that of one operand, which the other is brought into. The second may be transposed there. */
static bool permuted_products(XnnLowering *l, ValueId x, ValueId y, ValueId out) {
  uint32_t rank = value_rank(l->g, out);
  ProductOrder o;
  if (value_rank(l->g, x) != rank || value_rank(l->g, y) != rank ||
      !order_of_product(l, x, y, rank, &o))
    return false;
  Permuted first = o.first;
  uint32_t stored = xl_rank(l, first.id);
  if (xl_is_unmerged(&first, rank))
    straighten_second(l, y, rank, stored);
  if (has_more_axes(l, x, stored) || has_more_axes(l, y, stored))
    return false;
  Permuted right = first; /* whose rows are one axis */
  right.axis[rank - 2] = (uint8_t)(stored - 2);
  right.more[rank - 2] = 0;
  XnnId a = xl_in_order(l, x, first, rank),
        b = o.transposed ? o.second.id : xl_in_order(l, y, right, rank),
        result = xl_result_permuted(l, out, first);
  if (xl_ok(l))
    XNN_ADD_NODE(&l->x, XNN_BATCH_MATRIX_MULTIPLY, a, b, result,
                 o.transposed ? XNN_FLAG_TRANSPOSE_B : 0);
  return true;
}

/* What in was before a dim of 1 in front of it was taken away; in itself otherwise. */
static XnnId with_batch(const XnnLowering *l, XnnId in) {
  XnnId origin = xl_origin(l, in);
  if (!xl_ok(l))
    return in;
  const XnnValue *wide = &l->x.values[origin], *narrow = &l->x.values[in];
  bool fits = wide->rank == narrow->rank + 1 && wide->dims[0] == 1 &&
              memcmp(wide->dims + 1, narrow->dims, narrow->rank * sizeof *wide->dims) == 0;
  return fits ? origin : in;
}

static bool is_apart(XnnLowering *l, ValueId v) {
  if (!xl_has_permuted(l, v))
    return false;
  Permuted t = xl_permuted(l, v);
  return xl_is_unmerged(&t, value_rank(l->g, v));
}

/* The second operand of products. A constant of f32 XNNPACK packs once, one of f16 it would convert
 * and pack in each call. */
static XnnId matrices(XnnLowering *l, ValueId v) {
  uint32_t dims[XNN_MAX_RANK];
  if (!value_is_const(l->g, v) || value_dtype(l->g, v) != DTYPE_F16)
    return xl_plain(l, v);
  uint32_t rank = xl_dims(l, v, DT(F16), dims);
  return xl_permuted_constant(l, v, rank, dims, xl_straight_axes, false);
}

/* Exporters drop a leading dim of 1 for bmm and add it again behind it: multiplying in rank 4 makes
 * both views cancel. */
void lower_bmm(XnnLowering *l, NodeId n) {
  ValueId x = node_value(l->g, n, 0), y = node_value(l->g, n, 1);
  if ((is_apart(l, x) || is_apart(l, y)) && permuted_products(l, x, y, node_result(l->g, n, 0)))
    return;
  XnnId a = xl_plain(l, x), b = matrices(l, y), out = xl_result(l, node_result(l->g, n, 0)),
        wide_a = with_batch(l, a), wide_b = with_batch(l, b);
  if (!xl_ok(l) || (wide_a == a && wide_b == b)) {
    xl_binary(l, XNN_BATCH_MATRIX_MULTIPLY, a, b, out);
    return;
  }
  uint32_t dims[XNN_MAX_RANK] = {1};
  memcpy(dims + 1, l->x.values[out].dims, 3 * sizeof *dims);
  XnnId wide = xl_temp(l, 4, dims);
  xl_binary(l, XNN_BATCH_MATRIX_MULTIPLY, wide_a, wide_b, wide);
  back(l, wide, out);
}

/* x [..., M, K] times a matrix or [..., K, N]. */
void lower_matmul(XnnLowering *l, NodeId n) {
  ValueId x = node_value(l->g, n, 0), y = node_value(l->g, n, 1), out = node_result(l->g, n, 0);
  if (value_rank(l->g, x) < 2 || value_rank(l->g, y) < 2)
    xl_refuse(l, XNN_RULE_RANK, R_INT("rank", 1), R_INT("least", 2));
  else if (value_rank(l->g, y) == 2)
    product(l, x, y, XNN_NONE, XNN_FLAG_TRANSPOSE_WEIGHTS, result_of_rows(l, x, out));
  else if (!permuted_products(l, x, y, out)) {
    XnnId result = xl_result(l, out), right = matrices(l, y);
    xl_binary(l, XNN_BATCH_MATRIX_MULTIPLY, xl_plain(l, x), right, result);
  }
}

/* XNNPACK packs a column padded to 16 columns, and computes 16: that of a long row would be larger
 * than the row. Sums of pieces, which it computes place by place, take two thirds of the time from
 * these lengths on. */
enum { LONG_ROW = 256, MOST_PIECE = 64, LEAST_PIECE = 16 };

/* The length of the pieces in which a long row is summed up; 0: it has no such divisor. */
static uint32_t piece_of(uint32_t length) {
  uint32_t piece = MOST_PIECE;
  while (piece >= LEAST_PIECE && length % piece)
    piece--;
  return piece >= LEAST_PIECE ? piece : 0;
}

/* The sum of pieces, place by place, which is a mean over the height of images [pieces, 1, piece],
 * and then the sum of that. */
static XnnId sums_of_pieces(XnnLowering *l, XnnId in, const SymInt *dims, uint32_t piece,
                            double factor, double offset) {
  uint32_t rank = xl_rank(l, in), count = (uint32_t)dims[rank - 1] / piece;
  SymInt rows = 1, sums[XNN_MAX_RANK];
  memcpy(sums, dims, rank * sizeof *dims);
  sums[rank - 1] = piece;
  for (uint32_t i = 0; i + 1 < rank; i++)
    rows = sym_mul(&l->g->syms, rows, dims[i]);
  SymInt split[] = {rows, count, 1, piece};
  XnnId pieces = xl_sym_temp(l, 4, split), flat = xl_sym_temp(l, rank, sums);
  xl_reshape(l, in, split, 4, pieces);
  xl_reshape(l, xl_image_means(l, pieces), sums, rank, flat);
  return xl_row_sums(l, flat, sums, factor * count, offset);
}

static bool can_split_rows(const XnnLowering *l, XnnId in, const SymInt *dims) {
  uint32_t rank = xl_rank(l, in), varying = 0;
  for (uint32_t i = 0; dims && i < rank; i++)
    varying += !sym_is_const(dims[i]);
  return dims && rank < XNN_MAX_RANK && varying <= 1 && sym_is_const(dims[rank - 1]);
}

XnnId xl_row_sums(XnnLowering *l, XnnId in, const SymInt *dims, double factor, double offset) {
  if (!xl_ok(l))
    return XNN_NONE;
  XnnValue value = l->x.values[in];
  uint32_t length = value.dims[value.rank - 1], filter[] = {1, length}, one = 1,
           piece = length >= LONG_ROW && can_split_rows(l, in, dims) ? piece_of(length) : 0;
  if (piece)
    return sums_of_pieces(l, in, dims, piece, factor, offset);
  float *column = ARENA_ARRAY(l->arena, float, length), shift = (float)offset;
  for (uint32_t i = 0; i < length; i++)
    column[i] = (float)factor;
  value.dims[value.rank - 1] = 1;
  XnnId out = xl_temp(l, value.rank, value.dims);
  XnnId bias = offset != 0 ? xl_floats(l, 1, &one, &shift) : XNN_NONE;
  xl_fully_connected(l, in, xl_floats(l, 2, filter, column), bias, 0, out);
  return out;
}

XnnId xl_normalized(XnnLowering *l, XnnId in, const SymInt *dims, double eps) {
  if (!xl_ok(l))
    return XNN_NONE;
  XnnValue value = l->x.values[in];
  double share = 1.0 / value.dims[value.rank - 1];
  XnnId mean = xl_row_sums(l, in, dims, share, 0), centered = xl_temp_like(l, in),
        square = xl_temp_like(l, in), out = xl_temp_like(l, in);
  xl_binary(l, XNN_SUBTRACT, in, mean, centered);
  xl_unary(l, XNN_SQUARE, centered, square);
  XnnId variance = xl_row_sums(l, square, dims, share, eps), factor = xl_temp_like(l, variance);
  xl_unary(l, XNN_RECIPROCAL_SQUARE_ROOT, variance, factor);
  xl_binary(l, XNN_MULTIPLY, centered, factor, out);
  return out;
}

void xl_scale_and_shift(XnnLowering *l, XnnId in, XnnId weight, XnnId bias, XnnId out) {
  if (weight != XNN_NONE) {
    XnnId scaled = bias == XNN_NONE ? out : xl_temp_like(l, in);
    xl_binary(l, XNN_MULTIPLY, in, weight, scaled);
    in = scaled;
  }
  if (bias != XNN_NONE)
    xl_binary(l, XNN_ADD, in, bias, out);
  else if (weight == XNN_NONE)
    xl_unary(l, XNN_COPY, in, out);
}

bool xl_results_unused(XnnLowering *l, NodeId n, uint32_t first) {
  for (uint32_t i = first; i < node_cget(l->g, n)->result_count; i++)
    if (value_cget(l->g, node_result(l->g, n, i))->use_count)
      return xl_refuse(l, XNN_RULE_RESULT_USED, R_INT("result", i));
  return true;
}

/* v with its last `count` dims as one, normalized over it. */
static XnnId normalized_rows(XnnLowering *l, ValueId v, uint32_t count, double eps) {
  uint32_t rank = value_rank(l->g, v), sizes[XNN_MAX_RANK];
  SymInt dims[XNN_MAX_RANK];
  if (count == 1 && xl_has_permuted(l, v))
    return xl_normalized(l, xl_rows(l, v).id, NULL, eps);
  XnnId in = count == 1 ? xl_rows(l, v).id : xl_plain(l, v);
  if (!xl_ok(l))
    return in;
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t to = i < rank - count ? i : rank - count;
    dims[to] =
        i > to ? sym_mul(&l->g->syms, dims[to], value_dim(l->g, v, i)) : value_dim(l->g, v, i);
    sizes[to] = i > to ? sizes[to] * xl_dim(l, v, i) : xl_dim(l, v, i);
  }
  if (count == 1)
    return xl_normalized(l, in, dims, eps);
  XnnId out = xl_temp(l, rank - count + 1, sizes);
  xl_reshape(l, in, dims, rank - count + 1, out);
  return xl_normalized(l, out, dims, eps);
}

/* in, reshaped to the dims of v. */
static XnnId reshaped_to(XnnLowering *l, XnnId in, ValueId v) {
  uint32_t rank = value_rank(l->g, v), sizes[XNN_MAX_RANK] = {0};
  SymInt dims[XNN_MAX_RANK];
  for (uint32_t i = 0; i < rank; i++) {
    dims[i] = value_dim(l->g, v, i);
    sizes[i] = xl_dim(l, v, i);
  }
  XnnId out = xl_temp(l, rank, sizes);
  xl_reshape(l, in, dims, rank, out);
  return out;
}

void lower_layer_norm(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), weight = node_value(g, n, 2), bias = node_value(g, n, 3),
          y = node_result(g, n, 0);
  uint32_t rank = value_rank(g, x), count = node_list_count(g, n, 1);
  if (!xl_results_unused(l, n, 1))
    return;
  for (uint32_t i = rank - count; i < rank; i++)
    if (!sym_is_const(value_dim(g, x, i)))
      xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", i));
  if (rank > XNN_MAX_RANK || count == 0)
    xl_refuse(l, XNN_RULE_RANK, R_INT("rank", rank), R_INT("dims", count));
  if (!xl_ok(l))
    return;
  XnnId rows = normalized_rows(l, x, count, node_scalar(g, n, 4));
  if (count > 1)
    rows = reshaped_to(l, rows, x);
  XnnId result = result_of_rows(l, x, y), shift = bias ? xl_plain(l, bias) : XNN_NONE;
  xl_scale_and_shift(l, rows, weight ? xl_plain(l, weight) : XNN_NONE, shift, result);
}

/* Softmax is over the last dim of memory; another is brought there and back. */
void lower_softmax(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  uint32_t rank = value_rank(g, x), perm[XNN_MAX_RANK] = {0};
  if (xl_has_permuted(l, x) && xl_axis(node_int(g, n, 1), rank) == rank - 1) {
    Permuted t = xl_rows(l, x);
    xl_unary(l, XNN_SOFTMAX, t.id, xl_result_permuted(l, y, t));
    return;
  }
  if (xl_has_permuted(l, x))
    xl_plain(l, x);
  if (rank == 0)
    xl_refuse(l, XNN_RULE_RANK, R_INT("rank", 0), R_INT("least", 1));
  XnnInOut io = xl_in_out(l, x, y);
  if (!xl_ok(l))
    return;
  uint32_t axis = io.at.axis[xl_axis(node_int(g, n, 1), rank)];
  rank = xl_rank(l, io.in);
  if (axis == rank - 1) {
    xl_unary(l, XNN_SOFTMAX, io.in, io.out);
    return;
  }
  uint32_t dims[XNN_MAX_RANK];
  for (uint32_t i = 0; i < rank; i++)
    perm[i] = i == axis ? rank - 1 : i == rank - 1 ? axis : i;
  for (uint32_t i = 0; i < rank; i++)
    dims[i] = l->x.values[io.in].dims[perm[i]];
  XnnId moved = xl_temp(l, rank, dims), soft = xl_temp(l, rank, dims);
  xl_transpose(l, io.in, perm, rank, moved);
  xl_unary(l, XNN_SOFTMAX, moved, soft);
  xl_transpose(l, soft, perm, rank, io.out);
}

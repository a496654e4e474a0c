/* Images are resized to dynamic sizes by gathers of columns and of rows, and sums of those:
 *   upsample_bilinear2d(x [n, c, h, w])  ->  for x as [n, h, w, c], along w, then along h:
 *     index_select(x, i) * (1 - f) + index_select(x, j) * f
 * where column k of the result is i[k] + f[k] of x, and j the next one. The runtime's kernel takes
 * 10 ns for an element, a gather copies 4 elements of a row in one; the sums and permutes are those
 * of a backend (ExecuTorch 1.4.1). Of few channels [n, c, w, h], then [n, c, h, w] are gathered.
 * Known sizes, and multiples, a backend resizes to itself. Columns of images that are gathered for
 * themselves, as nearest ones by size are, are gathered in these orders, too. */
#include "ir/builder.h"
#include "ir/match.h"
#include "passes/pass.h"

enum {
  FEW_CHANNELS = 8,
  LEAST_ELEMENTS = 1 << 14, /* of the result: 0.15 ms */
  LARGEST_DENOMINATOR = 16  /* of a given scale */
};

/* One dim of the image: place k of the result is place k * numerator / denominator of x. */
typedef struct Line {
  SymInt in, out, numerator, denominator;
} Line;

typedef struct Resized {
  ValueId x, y;
  bool bilinear, corners;
  Line line[2]; /* height, width */
} Resized;

/* --- which --- */

static bool read_scale(const Graph *g, NodeId n, uint32_t arg, uint32_t i, double *scale) {
  const Arg *a = node_arg(g, n, arg);
  *scale = 0;
  if (a->kind == ARG_FLOATS && i < a->count)
    *scale = g->floats[a->at + i];
  return a->kind == ARG_NONE || a->kind == ARG_FLOATS;
}

/* A scale counts where it is given, the sizes otherwise, for which the nearest kernel rounds what
 * is exact here. */
static bool read_line(Graph *g, NodeId n, Resized *r, uint32_t i) {
  SymTable *t = &g->syms;
  Line *l = &r->line[i];
  double scale;
  l->in = l->numerator = value_dim(g, r->x, 2 + i);
  l->out = l->denominator = value_dim(g, r->y, 2 + i);
  if (r->corners) {
    l->numerator = sym_sub(t, l->in, 1);
    l->denominator = sym_max(t, sym_sub(t, l->out, 1), 1);
    return true;
  }
  if (!read_scale(g, n, r->bilinear ? 3 : 2, i, &scale))
    return false;
  for (int64_t d = 1; scale != 0 && d <= LARGEST_DENOMINATOR; d++)
    if (sym_from_float(scale * (double)d, &l->denominator) && l->denominator > 0) {
      l->numerator = d;
      return true;
    }
  return scale == 0 && r->bilinear;
}

static bool is_multiple(SymTable *t, const Line *l) {
  SymInt factor = sym_floordiv(t, l->out, l->in);
  return sym_is_const(factor) && sym_mul(t, l->in, factor) == l->out;
}

static bool is_large_image(const Graph *g, ValueId x, ValueId y) {
  return value_rank(g, x) == 4 && value_dtype(g, x) == DTYPE_F32 &&
         sym_is_const(value_dim(g, x, 1)) &&
         type_bytes_upper(g, value_type(g, y)) >= LEAST_ELEMENTS * sizeof(float);
}

static bool read_resized(Graph *g, NodeId n, Resized *r) {
  SymTable *t = &g->syms;
  bool bilinear = node_cget(g, n)->op == OP_UPSAMPLE_BILINEAR2D_VEC;
  *r = (Resized){.x = node_value(g, n, 0), .y = node_result(g, n, 0), .bilinear = bilinear};
  r->corners = bilinear && node_bool(g, n, 2);
  if (!is_large_image(g, r->x, r->y))
    return false;
  for (uint32_t i = 0; i < 2; i++)
    if (!read_line(g, n, r, i))
      return false;
  const Line *h = &r->line[0], *w = &r->line[1];
  if (sym_is_const(h->out) && sym_is_const(w->out))
    return false;
  return r->corners || !is_multiple(t, h) || !is_multiple(t, w);
}

/* --- along one dim --- */

/* The places in x of those of the result, f64 [out]. */
static ValueId places_of(Builder *b, const Resized *r, const Line *l) {
  SymTable *t = &b->g->syms;
  SymInt first = 0, step = l->numerator, by = l->denominator;
  if (r->bilinear && !r->corners) {
    first = sym_sub(t, l->numerator, l->denominator);
    step = sym_mul(t, step, 2);
    by = sym_mul(t, by, 2);
  }
  ValueId at = build(b, OP_ARANGE, A_INT(l->out), A_DTYPE(DTYPE_F64));
  at = build(b, OP_MUL_SCALAR, A_VAL(at), A_INT(step));
  if (first != 0)
    at = build(b, OP_ADD_SCALAR, A_VAL(at), A_INT(first));
  at = build(b, OP_DIV_SCALAR, A_VAL(at), A_INT(by));
  return build(b, OP_CLAMP, A_VAL(at), A_INT(0), A_INT(sym_sub(t, l->in, 1)));
}

static ValueId selected(Builder *b, ValueId x, int64_t dim, ValueId index) {
  return build(b, OP_INDEX_SELECT, A_VAL(x), A_INT(dim), A_VAL(index));
}

static ValueId gathered(Builder *b, ValueId x, int64_t dim, ValueId at) {
  return selected(b, x, dim, build_cast(b, at, DTYPE_I64));
}

static ValueId weighted(Builder *b, ValueId x, ValueId weights, int64_t dim) {
  SymInt dims[] = {value_dim(b->g, x, (uint32_t)dim), 1, 1};
  return build_binary(b, OP_MUL_TENSOR, x, build_view(b, weights, dims, 4 - (uint32_t)dim));
}

/* x of rank 4 with dim `dim` as the result has it; not the last dim. */
static ValueId along(Builder *b, const Resized *r, const Line *l, ValueId x, int64_t dim) {
  if (l->in == l->out && l->numerator == l->denominator)
    return x;
  ValueId at = places_of(b, r, l);
  if (!r->bilinear)
    return gathered(b, x, dim, at);
  ValueId share = build_cast(b, build(b, OP_REMAINDER_SCALAR, A_VAL(at), A_INT(1)), DTYPE_F32),
          other = build(b, OP_RSUB_SCALAR, A_VAL(share), A_INT(1)),
          before = weighted(b, gathered(b, x, dim, at), other, dim),
          behind = weighted(b, gathered(b, x, dim, build_unary(b, OP_CEIL, at)), share, dim);
  return build_binary(b, OP_ADD_TENSOR, before, behind);
}

/* --- in which order --- */

static const int64_t swapped[] = {0, 1, 3, 2}, last[] = {0, 2, 3, 1}, back[] = {0, 3, 1, 2};

static bool has_few_channels(const Graph *g, ValueId x) {
  return value_dim(g, x, 1) < FEW_CHANNELS;
}

static ValueId resized(Builder *b, NodeId n) {
  Resized r;
  if (!read_resized(b->g, n, &r))
    return 0;
  const Line *h = &r.line[0], *w = &r.line[1];
  bool few = has_few_channels(b->g, r.x);
  ValueId columns = along(b, &r, w, build_permute(b, r.x, few ? swapped : last), 2);
  if (few)
    return along(b, &r, h, build_permute(b, columns, swapped), 2);
  return build_permute(b, along(b, &r, h, columns, 1), back);
}

/* Columns, also of rows that are gathered before them. */
static ValueId selected_columns(Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0), columns = node_value(g, n, 2);
  if (!is_large_image(g, x, y) || wrap_dim(node_int(g, n, 1), 4) != 3 ||
      sym_is_const(value_dim(g, y, 3)))
    return 0;
  NodeId first = match_op_once(g, x, OP_INDEX_SELECT);
  if (first && wrap_dim(node_int(g, first, 1), 4) != 2)
    first = 0;
  if (first)
    x = node_value(g, first, 0);
  bool few = has_few_channels(g, x);
  y = selected(b, build_permute(b, x, few ? swapped : last), 2, columns);
  if (few)
    y = build_permute(b, y, swapped);
  if (first)
    y = selected(b, y, few ? 2 : 1, node_value(g, first, 2));
  return few ? y : build_permute(b, y, back);
}

Status pass_gather_pixels(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_UPSAMPLE_BILINEAR2D_VEC, resized, "images"},
                                      {OP_UPSAMPLE_NEAREST2D_VEC, resized, "images"},
                                      {OP_INDEX_SELECT, selected_columns, "gathers"}};
  return pass_rewrite(p, g, rules, COUNT_OF(rules));
}

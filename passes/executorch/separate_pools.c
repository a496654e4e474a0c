/* Max and average pools as maxima or sums of strided copies, along one dim after the other.
 *
 * Why: the kernels of pools take about 14 ns for each element of each window (ExecuTorch 1.4.1,
 * x86-64); as_strided_copy and maximum take 2 ns, add 0.6, and a window of k x k needs 2k of them.
 * 3 x 3 with stride 2 takes a sixth of the time.
 *
 * The copies need memory: a pool is computed in parts of its planes, as many as it takes to need no
 * more than the rest of the program does. Where that is not possible it stays. What the windows of
 * a mean count is summed up in the same way, of a plane of ones, where the size varies. */
#include <math.h>

#include "passes/executorch/liveness.h"
#include "passes/executorch/views.h"
#include "passes/pass.h"

enum {
  WORK_MIN = 150, /* elements of windows for each call of a kernel: 2 us */
  PARTS_MAX = 64,
  KERNEL_MAX = 128,
  PLACES_MAX = 1 << 20 /* of windows in a plane: a table has their divisors */
};

/* One of the two dims that windows have. */
typedef struct Side {
  SymInt in, out;
  int64_t kernel, stride, dilation, padding;
  int64_t behind; /* padding behind the elements, as much as windows need or more */
} Side;

typedef struct Pool {
  NodeId node;
  bool mean;
  SymInt batch;          /* of samples if that varies, else 1 */
  int64_t planes, parts; /* of a sample, or of all */
  Side side[2];
} Pool;

static Side read_side(const Graph *g, NodeId n, uint32_t k, bool mean) {
  ValueId x = node_value(g, n, 0), y = node_result(g, n, 0);
  uint32_t dim = value_rank(g, x) - 2 + k;
  bool ceil_mode = node_bool(g, n, mean ? 4 : 5);
  Side s = {.in = value_dim(g, x, dim), .out = value_dim(g, y, dim)};
  s.kernel = node_entry(g, n, 1, k, 1);
  s.stride = node_entry(g, n, 2, k, s.kernel);
  s.padding = node_entry(g, n, 3, k, 0);
  s.dilation = mean ? 1 : node_entry(g, n, 4, k, 1);
  s.behind = s.padding + (ceil_mode ? s.stride - 1 : 0);
  if (!sym_is_const(s.in))
    return s;
  int64_t end = (s.out - 1) * s.stride + (s.kernel - 1) * s.dilation + 1 - s.padding;
  s.behind = end > s.in ? end - s.in : 0;
  return s;
}

/* All windows of a mean count the same number of elements, whatever the size. */
static bool counts_alike(const Graph *g, NodeId n) {
  bool padded = node_entry(g, n, 3, 0, 0) != 0 || node_entry(g, n, 3, 1, 0) != 0;
  return !node_bool(g, n, 4) && (node_bool(g, n, 5) || !padded);
}

/* Floats, of a constant number of planes, or of samples with such a number. */
static bool takes_type(const Type *t) {
  bool counted = true;
  for (uint32_t i = t->rank == 4; i + 2 < t->rank; i++)
    counted = counted && sym_is_const(t->dims[i]);
  return counted && (t->dtype == DTYPE_F32 || t->dtype == DTYPE_F64) &&
         t->order == ORDER_CONTIGUOUS;
}

static bool read_pool(const Graph *g, NodeId n, Pool *p) {
  OpId op = node_cget(g, n)->op;
  *p = (Pool){.node = n, .mean = op == OP_AVG_POOL2D};
  if (!p->mean && op != OP_MAX_POOL2D_WITH_INDICES)
    return false;
  ValueId x = node_value(g, n, 0);
  if (!p->mean && !node_unused(g, n, 1))
    return false;
  const Type *type = value_type(g, x);
  if (!takes_type(type))
    return false;
  for (uint32_t k = 0; k < 2; k++)
    p->side[k] = read_side(g, n, k, p->mean);
  bool varies = type->rank == 4 && !sym_is_const(type->dims[0]);
  p->batch = varies ? type->dims[0] : 1;
  p->planes = dims_count(type->dims, varies, type->rank - 2);
  const Side *rows = &p->side[0], *columns = &p->side[1];
  int64_t places = sym_upper(&g->syms, rows->out);
  return rows->kernel <= KERNEL_MAX && columns->kernel <= KERNEL_MAX && places <= PLACES_MAX &&
         sym_upper(&g->syms, columns->out) <= PLACES_MAX / (places + 1);
}

static bool pads(const Pool *p) {
  return p->side[0].padding + p->side[0].behind + p->side[1].padding + p->side[1].behind > 0;
}

/* A part of several samples is not in one piece. */
static bool cuts(const Pool *p, int64_t parts) { return parts > 1 && (pads(p) || p->batch != 1); }

/* Of means whose windows count different numbers of elements, depending on the size. */
static bool counts_at_run(const Graph *g, const Pool *p) {
  return p->mean && node_absent(g, p->node, 6) && !counts_alike(g, p->node) &&
         !(sym_is_const(p->side[0].in) && sym_is_const(p->side[1].in));
}

/* Elements beside x and the result; a double, as paddings can make them more than can be counted.
 */
static double extra(const Graph *g, const Pool *p, int64_t parts) {
  const Side *rows = &p->side[0], *columns = &p->side[1];
  const SymTable *t = &g->syms;
  double planes = (double)(p->planes / parts) * (double)sym_upper(t, p->batch) +
                  (double)counts_at_run(g, p),
         height = (double)sym_upper(t, rows->in), width = (double)sym_upper(t, columns->in),
         own = cuts(p, parts) ? planes * height * width : 0,
         high = height + (double)rows->padding + (double)rows->behind,
         narrow = 2 * planes * high * (double)sym_upper(t, columns->out);
  if (!pads(p))
    return own + narrow;
  /* Not padded and narrow ones are not needed at one time. */
  return planes * high * (width + (double)columns->padding + (double)columns->behind) +
         (own > narrow ? own : narrow);
}

/* Whether so many parts take less time than the kernel. */
static bool pays(const Graph *g, const Pool *p, int64_t parts) {
  int64_t rows = p->side[0].kernel, columns = p->side[1].kernel;
  double work = (double)p->planes * (double)sym_upper(&g->syms, p->batch) *
                (double)sym_upper(&g->syms, p->side[0].out) *
                (double)sym_upper(&g->syms, p->side[1].out) * (double)(rows * columns);
  return rows * columns > 1 && work / (double)(parts * 2 * (rows + columns)) >= WORK_MIN;
}

/* The fewest parts that fit into so many bytes; 0: none do. */
static int64_t fitting_parts(const Graph *g, const Pool *p, uint64_t room) {
  double size = (double)dtype_size(value_dtype(g, node_value(g, p->node, 0))),
         rounding = 6 * PLAN_ALIGNMENT;
  for (int64_t parts = 1; parts <= PARTS_MAX; parts++)
    if (p->planes % parts == 0 && pays(g, p, parts) &&
        extra(g, p, parts) * size + rounding <= (double)room)
      return parts;
  return 0;
}

/* --- building --- */

/* Maxima or sums over the windows along one dim of x [planes, height, width]. */
static ValueId along(Builder *b, const Pool *p, ValueId x, uint32_t k, SymInt offset,
                     SymInt planes) {
  const Side *s = &p->side[k];
  SymTable *t = &b->g->syms;
  SymInt height = value_dim(b->g, x, 1), width = value_dim(b->g, x, 2);
  SymInt stride[] = {sym_mul(t, height, width), width, 1}, size[] = {planes, height, width};
  SymInt step = sym_mul(t, stride[1 + k], s->dilation);
  stride[1 + k] = sym_mul(t, stride[1 + k], s->stride);
  size[1 + k] = s->out;
  if (k == 0 && s->kernel == 1 && s->out == height) /* nothing but copies of rows */
    return x;
  ValueId y = 0;
  for (int64_t i = 0; i < s->kernel; i++) {
    ValueId one = build(b, OP_AS_STRIDED_COPY, A_VAL(x), A_INTS(size, 3), A_INTS(stride, 3),
                        A_INT(sym_add(t, offset, sym_mul(t, step, i))));
    y = !i        ? one
        : p->mean ? build(b, OP_ADD_TENSOR, A_VAL(y), A_VAL(one))
                  : build(b, OP_MAXIMUM, A_VAL(y), A_VAL(one));
  }
  return y;
}

/* What a window along one dim counts of its elements at position i, as torch's average pools do. */
static int64_t counted(const Side *s, int64_t i, bool include_pad) {
  int64_t first = i * s->stride - s->padding, last = first + s->kernel;
  last = last < s->in + s->padding ? last : s->in + s->padding;
  if (include_pad)
    return last - first;
  return (last < s->in ? last : s->in) - (first > 0 ? first : 0);
}

/* The same of all windows, [1, height, width]: sums of ones, where elements count, and zeros. */
static ValueId counts_of_ones(Builder *b, const Pool *p, DType dtype) {
  SymTable *t = &b->g->syms;
  SymInt dims[3] = {1}, zeros[4];
  for (uint32_t k = 0; k < 2; k++) {
    const Side *s = &p->side[k];
    int64_t counted_pad = node_bool(b->g, p->node, 5) ? s->padding : 0;
    dims[1 + k] = sym_add(t, s->in, 2 * counted_pad);
    zeros[2 - 2 * k] = s->padding - counted_pad;
    zeros[3 - 2 * k] = s->behind - counted_pad;
  }
  ValueId x = build(b, OP_FULL, A_INTS(dims, 3), A_INT(1), A_DTYPE(dtype));
  x = x ? build(b, OP_CONSTANT_PAD_ND, A_VAL(x), A_INTS(zeros, 4), A_FLOAT(0)) : 0;
  x = x ? along(b, p, x, 1, 0, 1) : 0;
  return x ? along(b, p, x, 0, 0, 1) : 0;
}

/* What sums are divided by, as a number or for each place. */
static ValueId divisors(Builder *b, const Pool *p) {
  NodeId n = p->node;
  DType dtype = value_dtype(b->g, node_value(b->g, n, 0));
  const Side *rows = &p->side[0], *columns = &p->side[1];
  if (!node_absent(b->g, n, 6))
    return build_scalar(b, dtype, (double)node_int(b->g, n, 6));
  bool include_pad = node_bool(b->g, n, 5), equal = true;
  if (counts_at_run(b->g, p))
    return counts_of_ones(b, p, dtype);
  if (!sym_is_const(rows->in) || !sym_is_const(columns->in))
    return build_scalar(b, dtype, (double)(rows->kernel * columns->kernel));
  int64_t count = rows->out * columns->out;
  double *each = ARENA_ARRAY(b->data, double, (size_t)count);
  float *single = ARENA_ARRAY(b->data, float, (size_t)count);
  for (int64_t i = 0; i < count; i++) {
    each[i] = (double)(counted(rows, i / columns->out, include_pad) *
                       counted(columns, i % columns->out, include_pad));
    single[i] = (float)each[i];
    equal &= each[i] == each[0];
  }
  if (equal)
    return build_scalar(b, dtype, each[0]);
  const void *data = dtype == DTYPE_F32 ? (const void *)single : each;
  return build_const(b, dtype, 2, (int64_t[]){rows->out, columns->out}, data);
}

static ValueId part(Builder *b, const Pool *p, ValueId x, int64_t i) {
  const Side *rows = &p->side[0], *columns = &p->side[1];
  SymTable *t = &b->g->syms;
  int64_t planes = p->planes / p->parts;
  SymInt offset = sym_mul(t, sym_mul(t, rows->in, columns->in), i * planes),
         all = sym_mul(t, p->batch, planes);
  if (cuts(p, p->parts)) {
    x = build_slice(b, x, p->batch != 1, i * planes, (i + 1) * planes, 1);
    offset = 0;
  }
  if (p->batch != 1 && x)
    x = build_et_view(b, x, (SymInt[]){all, rows->in, columns->in}, 3);
  if (pads(p) && x)
    x = build(
        b, OP_CONSTANT_PAD_ND, A_VAL(x),
        A_INTS(((SymInt[]){columns->padding, columns->behind, rows->padding, rows->behind}), 4),
        A_FLOAT(p->mean ? 0 : -INFINITY));
  ValueId narrow = x ? along(b, p, x, 1, offset, all) : 0;
  return narrow ? along(b, p, narrow, 0, 0, all) : 0;
}

/* `all` with the planes of part i. */
static ValueId put_part(Builder *b, const Pool *p, ValueId all, ValueId y, int64_t i) {
  int64_t planes = p->planes / p->parts;
  if (p->batch != 1)
    y = build_et_view(b, y, (SymInt[]){p->batch, planes, p->side[0].out, p->side[1].out}, 4);
  return build(b, OP_SLICE_SCATTER, A_VAL(all), A_VAL(y), A_INT(p->batch != 1), A_INT(i * planes),
               A_INT((i + 1) * planes), A_INT(1));
}

/* slice_scatter writes over its operand (OpRow.alias), so that the result is there once. */
static ValueId pooled(Builder *b, const Pool *p) {
  Graph *g = b->g;
  ValueId v = node_value(g, p->node, 0), divisor = p->mean ? divisors(b, p) : 0;
  DType dtype = value_dtype(g, v);
  const Side *rows = &p->side[0], *columns = &p->side[1];
  SymInt from[] = {p->batch, p->planes, rows->in, columns->in},
         to[] = {p->batch, p->planes, rows->out, columns->out};
  uint32_t first = p->batch == 1;
  ValueId x = build_et_view(b, v, from + first, 4 - first), all = 0;
  if (p->parts > 1)
    all = build(b, OP_FULL, A_INTS(to + first, 4 - first), A_INT(0), A_DTYPE(dtype));
  for (int64_t i = 0; i < p->parts && b->status == STATUS_OK; i++) {
    ValueId y = part(b, p, x, i);
    y = p->mean && y ? build(b, OP_DIV_TENSOR, A_VAL(y), A_VAL(divisor)) : y;
    all = p->parts == 1 ? y : put_part(b, p, all, y, i);
  }
  Dims dims = value_dims(g, node_result(g, p->node, 0));
  return build_et_view(b, all, dims.d, dims.rank);
}

/* --- choosing --- */

/* One window that is all of a plane: a reduction. */
static bool is_whole(const Graph *g, const Pool *p) {
  for (uint32_t k = 0; k < 2; k++)
    if (p->side[k].out != 1 || p->side[k].kernel != p->side[k].in || p->side[k].padding)
      return false;
  return !p->mean || node_absent(g, p->node, 6);
}

static ValueId reduced(Builder *b, const Pool *p) {
  ValueId x = node_value(b->g, p->node, 0);
  ArgIn dims = A_INTS(((SymInt[]){-2, -1}), 2);
  return p->mean ? build(b, OP_MEAN_DIM, A_VAL(x), dims, A_BOOL(true))
                 : build(b, OP_AMAX, A_VAL(x), dims, A_BOOL(true));
}

static Status replace(Builder *b, const Pool *p) {
  Graph *g = b->g;
  b->before = p->node;
  b->loc = node_cget(g, p->node)->loc;
  ValueId y = is_whole(g, p) ? reduced(b, p) : pooled(b, p);
  TRY(b->status);
  graph_replace_value(g, node_result(g, p->node, 0), y);
  graph_remove_node(g, p->node);
  return STATUS_OK;
}

static bool has_pools(const Graph *g) {
  Pool p;
  for (FOR_NODES(g, n))
    if (read_pool(g, n, &p))
      return true;
  return false;
}

/* Of positions of maxima, which nothing reads: with the pool they are gone. */
static uint64_t indices_bytes(const Graph *g, const Pool *p) {
  return p->mean ? 0 : type_bytes_upper(g, value_type(g, node_result(g, p->node, 1)));
}

static Status separate(PassContext *c, Graph *g, uint64_t *changed) {
  Liveness live;
  uint64_t need;
  uint32_t position = 0;
  Builder b = builder_make(g, 0, 0);
  b.data = c->scratch;
  TRY(liveness_compute(g, c->scratch, (LivenessOptions){.in_place = true}, &live));
  const uint64_t *use = liveness_in_use(&live, c->scratch, &need);
  for (NodeId n = g->first, next; n; n = next) {
    Pool p;
    next = node_cget(g, n)->next;
    position++;
    if (!read_pool(g, n, &p))
      continue;
    p.parts = fitting_parts(g, &p, need - use[position] + indices_bytes(g, &p));
    if (p.parts || is_whole(g, &p)) {
      TRY(replace(&b, &p));
      ++*changed;
    }
  }
  return STATUS_OK;
}

Status pass_separate_pools(PassContext *c, Graph *g) {
  uint64_t changed = 0;
  if (has_pools(g)) /* what memory is in use takes longer to find out */
    TRY(separate(c, g, &changed));
  pass_count(c, "pools", changed);
  return STATUS_OK;
}

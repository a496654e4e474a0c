/* Convolutions with overlapping windows as matrix products: one as_strided_copy lays the elements
 * of every window into a column ("im2col"), the weight times the columns is the convolution.
 *
 *   x -> constant_pad_nd -> as_strided_copy [C, taps, N, places] -> mm (bmm for groups) -> add bias
 *
 * Why: as in convolution_to_matmul.c. Measured on the wheel's kernels of ExecuTorch 1.4.1: 3 x 3,
 * 16 to 16 channels, 40 x 40, is 23 ms as convolution, while pad and columns take 0.15 ms; a
 * ResNet-8 with all windows gathered went from 290 ms to 0.6 ms. The columns need taps times the
 * memory of x, therefore only where they fit below the peak that other nodes need anyway, and a
 * quarter of it. Halves are the exception: the convolution kernel adds up in halves, and a small
 * U-Net is off by 0.05 then; the products add up in floats.
 *
 * Transposed convolutions stay, and so do symbolic shapes, whose strides would be symbolic. */
#include "ir/builder.h"
#include "passes/executorch/liveness.h"
#include "passes/pass.h"

enum { SPATIAL_MAX = 2, GROWTH = 4 /* the arena may grow by a quarter */ };

typedef struct Windows {
  ValueId x, weight, bias, result;
  uint32_t spatial;
  int64_t batch, in, out, groups, taps, places;
  int64_t kernel[SPATIAL_MAX], size[SPATIAL_MAX]; /* of a window; windows along each dim */
  int64_t stride[SPATIAL_MAX], dilation[SPATIAL_MAX], padding[SPATIAL_MAX];
  uint64_t extra; /* bytes of the padded input and of the columns */
} Windows;

static void read_list(const Graph *g, NodeId n, uint32_t arg, uint32_t count, int64_t *out) {
  uint32_t given = node_list_count(g, n, arg);
  for (uint32_t i = 0; i < count; i++)
    out[i] = node_ints(g, n, arg)[given == 1 ? 0 : i];
}

/* The bytes that are needed meanwhile; false when they cannot be told in 63 bits. */
static bool count_bytes(const Graph *g, Windows *w) {
  uint64_t padded = (uint64_t)(w->batch * w->in), columns, size = dtype_size(value_dtype(g, w->x));
  bool ok = true, pads = false;
  for (uint32_t i = 0; i < w->spatial; i++) {
    pads |= w->padding[i] != 0;
    ok = ok && mul_u64(padded, (uint64_t)(value_dim(g, w->x, 2 + i) + 2 * w->padding[i]), &padded);
  }
  ok = ok && mul_u64((uint64_t)(w->in * w->taps), (uint64_t)(w->batch * w->places), &columns) &&
       mul_u64(columns, size, &columns) && mul_u64(padded, size, &padded) &&
       columns < UINT64_MAX / 8 && padded < UINT64_MAX / 8;
  w->extra = ok ? columns + (pads ? padded : 0) : 0;
  return ok;
}

static bool read_windows(const Graph *g, NodeId n, Windows *w) {
  *w = (Windows){
      .x = node_value(g, n, 0), .weight = node_value(g, n, 1), .bias = node_value(g, n, 2)};
  w->result = node_result(g, n, 0);
  uint32_t rank = value_rank(g, w->x);
  DType dtype = value_dtype(g, w->x);
  if (rank < 3 || rank > 2 + SPATIAL_MAX || node_bool(g, n, 6) || !dtype_is_float(dtype) ||
      !type_is_static(value_type(g, w->x)) || !type_is_static(value_type(g, w->weight)) ||
      !value_is_const(g, w->weight) ||
      (w->bias && (value_dtype(g, w->bias) != dtype || !value_is_const(g, w->bias))) ||
      type_bytes_upper(g, value_type(g, w->x)) > UINT32_MAX ||
      type_bytes_upper(g, value_type(g, w->result)) > UINT32_MAX)
    return false;
  w->spatial = rank - 2;
  w->batch = value_dim(g, w->x, 0);
  w->in = value_dim(g, w->x, 1);
  w->out = value_dim(g, w->weight, 0);
  w->groups = node_int(g, n, 8);
  w->taps = w->places = 1;
  read_list(g, n, 3, w->spatial, w->stride);
  read_list(g, n, 4, w->spatial, w->padding);
  read_list(g, n, 5, w->spatial, w->dilation);
  for (uint32_t i = 0; i < w->spatial; i++) {
    w->kernel[i] = value_dim(g, w->weight, 2 + i);
    w->size[i] = value_dim(g, w->result, 2 + i);
    w->taps *= w->kernel[i];
    w->places *= w->size[i];
  }
  return w->batch > 0 && w->in > 0 && w->out > 0 && w->taps > 0 && w->places > 0 &&
         (w->groups == 1 || w->batch == 1) && count_bytes(g, w);
}

/* A half adds up to few terms without harm. */
static bool loses_precision(const Graph *g, const Windows *w) {
  return dtype_size(value_dtype(g, w->x)) == 2 && w->in / w->groups * w->taps > 16;
}

static ValueId padded(Builder *b, const Windows *w) {
  int64_t pads[2 * SPATIAL_MAX];
  bool any = false;
  for (uint32_t i = 0; i < w->spatial; i++) {
    pads[2 * i] = pads[2 * i + 1] = w->padding[w->spatial - 1 - i];
    any |= pads[2 * i] != 0;
  }
  return any ? build(b, OP_CONSTANT_PAD_ND, A_VAL(w->x), A_INTS(pads, 2 * w->spatial), A_FLOAT(0))
             : w->x;
}

/* [C * taps, N * places] */
static ValueId columns(Builder *b, const Windows *w) {
  ValueId x = padded(b, w);
  if (!x)
    return 0;
  int64_t size[2 + 2 * SPATIAL_MAX] = {w->in}, stride[2 + 2 * SPATIAL_MAX], step = 1;
  uint32_t batch = 1 + w->spatial;
  size[batch] = w->batch;
  for (uint32_t i = w->spatial; i-- > 0;) {
    size[1 + i] = w->kernel[i];
    stride[1 + i] = step * w->dilation[i];
    size[batch + 1 + i] = w->size[i];
    stride[batch + 1 + i] = step * w->stride[i];
    step *= value_dim(b->g, x, 2 + i);
  }
  stride[0] = step;
  stride[batch] = step * w->in;
  uint32_t rank = 2 + 2 * w->spatial;
  return build(b, OP_AS_STRIDED_COPY, A_VAL(x), A_INTS(size, rank), A_INTS(stride, rank), A_INT(0));
}

/* The constant with other dims, its bytes where they are. */
static ValueId reshaped(Graph *g, ValueId v, const SymInt *dims, uint32_t rank) {
  TypeId type = graph_tensor_type(g, value_dtype(g, v), rank, dims, ORDER_CONTIGUOUS);
  return graph_add_constant(g, type, *value_constant(g, v), value_cget(g, v)->name);
}

/* Views have been made free by now: these are too. */
static ValueId seen_as(Builder *b, ValueId v, const SymInt *dims, uint32_t rank) {
  return build(b, OP_ET_VIEW, A_VAL(v), A_INTS(dims, rank));
}

static ValueId product(Builder *b, const Windows *w) {
  ValueId x = columns(b, w);
  int64_t length = w->in / w->groups * w->taps, places = w->batch * w->places;
  if (!x)
    return 0;
  if (w->groups == 1) {
    ValueId weight = reshaped(b->g, w->weight, (SymInt[]){w->out, length}, 2);
    return build(b, OP_MM, A_VAL(weight), A_VAL(seen_as(b, x, (SymInt[]){length, places}, 2)));
  }
  SymInt rows = w->out / w->groups;
  ValueId weight = reshaped(b->g, w->weight, (SymInt[]){w->groups, rows, length}, 3);
  x = seen_as(b, x, (SymInt[]){w->groups, length, places}, 3);
  return seen_as(b, build(b, OP_BMM, A_VAL(weight), A_VAL(x)), (SymInt[]){w->out, places}, 2);
}

static ValueId rewrite(Builder *b, const Windows *w) {
  ValueId y = product(b, w);
  if (w->bias)
    y = build(b, OP_ADD_TENSOR, A_VAL(y), A_VAL(reshaped(b->g, w->bias, (SymInt[]){w->out, 1}, 2)));
  if (w->batch > 1) { /* [M, N, places] */
    y = seen_as(b, y, (SymInt[]){w->out, w->batch, w->places}, 3);
    y = build_permute(b, y, (int64_t[]){1, 0, 2});
  }
  SymInt dims[2 + SPATIAL_MAX];
  if (b->status == STATUS_OK)
    memcpy(dims, value_type(b->g, w->result)->dims, (2 + w->spatial) * sizeof *dims);
  return seen_as(b, y, dims, 2 + w->spatial);
}

/* Bytes in use while each node runs, by position from 1; *peak is the most. */
static uint64_t *bytes_in_use(const Liveness *l, Arena *scratch, uint64_t *peak) {
  uint64_t *use = ARENA_ARRAY(scratch, uint64_t, l->end + 2);
  for (uint32_t i = 0; i < l->span_count; i++) {
    use[l->spans[i].first] += align_up(l->spans[i].size, PLAN_ALIGNMENT);
    use[l->spans[i].last + 1] -= align_up(l->spans[i].size, PLAN_ALIGNMENT);
  }
  *peak = use[0];
  for (uint32_t i = 1; i <= l->end; i++) {
    use[i] += use[i - 1];
    *peak = use[i] > *peak ? use[i] : *peak;
  }
  return use;
}

Status pass_gather_windows(PassContext *p, Graph *g) {
  Liveness live;
  uint64_t peak, changed = 0;
  TRY(liveness_compute(g, p->scratch, true, &live));
  uint64_t *use = bytes_in_use(&live, p->scratch, &peak);
  Builder b = builder_make(g, 0, 0);
  uint32_t position = 0;
  for (NodeId n = g->first, next; n && b.status == STATUS_OK; n = next) {
    next = node_cget(g, n)->next;
    position++;
    Windows w;
    if (node_cget(g, n)->op != OP_CONVOLUTION || !read_windows(g, n, &w) ||
        (!loses_precision(g, &w) && use[position] + w.extra > peak + peak / GROWTH))
      continue;
    b.before = n;
    b.loc = node_cget(g, n)->loc;
    ValueId result = node_result(g, n, 0), value = rewrite(&b, &w);
    if (b.status != STATUS_OK)
      break;
    value_get(g, value)->name = value_cget(g, result)->name;
    graph_replace_uses(g, result, value);
    graph_remove_node(g, n);
    changed++;
  }
  pass_count(p, "convolutions", changed);
  return b.status;
}

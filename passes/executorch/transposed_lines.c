/* Transposed convolutions of lines with many inputs and few outputs, as the decoders of separators
 * and vocoders end: each window of transposed_windows.c multiplies `kernel` elements of x, and all
 * of them are gathered for it. Where there are fewer products than inputs, each element of x is
 * multiplied by all its weights once, and what belongs to one window is added up:
 *
 *   p[j] = w[j] x        y[q] = sum over j of p[j][q - before + j]
 *
 * A decoder of 512 inputs, one output, kernel 16 and stride 8 has 16 rows of products instead of
 * 1,024 rows of windows. */
#include "passes/executorch/transpose.h"
#include "passes/executorch/views.h"
#include "passes/executorch/windows.h"

static bool is_narrow(const Windows *w) {
  const Geometry *y = &w->geometry;
  return w->transposed && y->spatial == 1 && y->batch == 1 && w->work >= PRODUCTS_MIN &&
         w->out * y->kernel[0] <= y->in;
}

/* The weights as [kernel * out, in], of [out, in, kernel]. */
static ValueId matrix(Builder *b, const Windows *w) {
  Graph *g = b->g;
  int64_t in = w->geometry.in, kernel = w->geometry.kernel[0], rows = kernel * w->out;
  const Constant *from = value_constant(g, w->weight);
  size_t size = dtype_size(value_dtype(g, w->weight));
  uint8_t *data = arena_alloc(&g->arena, from->size);
  transpose_matrix(data, from->data, (uint64_t)(w->out * in), (uint64_t)kernel, size);
  return build_const(b, value_dtype(g, w->weight), 2, (const int64_t[]){rows, in}, data);
}

/* [out, windows]: for each element of a window the products of the elements there, added up. */
static ValueId add_products(Builder *b, const Windows *w, ValueId products) {
  const Geometry *y = &w->geometry;
  SymTable *t = &b->g->syms;
  SymInt length = value_dim(b->g, y->x, 2), columns = sym_add(t, y->size[0], y->kernel[0] - 1),
         behind = sym_sub(t, columns, sym_add(t, length, y->before[0]));
  products = build_pad(b, products, 1, y->before[0], max_i64(behind, 0));
  if (b->status != STATUS_OK)
    return 0;
  columns = value_dim(b->g, products, 1);
  SymInt size[] = {w->out, y->size[0]}, stride[] = {columns, 1}, rows = sym_mul(t, w->out, columns);
  ValueId sum = 0;
  for (int64_t j = 0; j < y->kernel[0]; j++) {
    SymInt offset = sym_mul(t, j, sym_add(t, rows, 1));
    ValueId part = build(b, OP_AS_STRIDED_COPY, A_VAL(products), A_INTS(size, 2), A_INTS(stride, 2),
                         A_INT(offset));
    sum = j ? build_binary(b, OP_ADD_TENSOR, sum, part) : part;
  }
  return sum;
}

static void rewrite(Builder *b, NodeId n, Windows *w) {
  Graph *g = b->g;
  const Geometry *y = &w->geometry;
  b->before = n;
  b->loc = node_cget(g, n)->loc;
  int64_t phases = y->phases[0], channels = w->out / phases;
  ValueId bias = w->bias;
  w->bias = 0;
  transposed_constants(g, w);
  SymInt length = value_dim(g, y->x, 2);
  ValueId x = build_et_view(b, y->x, (SymInt[]){y->in, length}, 2),
          products = build_binary(b, OP_MM, matrix(b, w), x), sum = add_products(b, w, products);
  sum = build_et_view(b, sum, (SymInt[]){channels, phases, y->size[0]}, 3);
  sum = build_permute(b, sum, (const int64_t[]){0, 2, 1});
  sum = build_et_view(b, sum, (SymInt[]){1, channels, value_dim(g, w->result, 2)}, 3);
  if (bias)
    sum =
        build_binary(b, OP_ADD_TENSOR, sum, build_et_view(b, bias, (SymInt[]){1, channels, 1}, 3));
  if (b->status != STATUS_OK)
    return;
  ValueId given = node_value(g, n, 0);
  graph_replace_value(g, w->result, sum);
  graph_remove_node(g, n);
  if (given != y->x) /* its padding is ours now */
    graph_remove_node(g, value_def(g, given));
}

Status transposed_lines(Graph *g) {
  Builder b = builder_make(g, 0, 0);
  for (NodeId n = g->first, next; n && b.status == STATUS_OK; n = next) {
    Windows w;
    next = node_cget(g, n)->next;
    if (node_cget(g, n)->op == OP_CONVOLUTION && windows_read(g, n, &w) && is_narrow(&w))
      rewrite(&b, n, &w);
  }
  return b.status;
}

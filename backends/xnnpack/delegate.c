/* What the program gets of a partition that is lowered: the delegate's bytes, its operands, and the
 * constants by the names that the program gives them. */
#include "backends/xnnpack/delegate.h"

#include <xxhash.h>

#include "backends/xnnpack/blob.h"
#include "backends/xnnpack/workspace.h"
#include "ir/transform.h"
#include "support/text.h"

enum { ORDER_TEXT = 3 * 11 + 2 * XNN_MAX_RANK * 11 };

static char *append(char *at, char before, uint32_t number) {
  char digits[10];
  uint32_t count = 0;
  do
    digits[count++] = (char)('0' + number % 10);
  while (number /= 10);
  if (before)
    *at++ = before;
  while (count)
    *at++ = digits[--count];
  return at;
}

/* What of an order goes into names: ":4:16x3:10". Returns its length. */
static size_t order_text(const XnnOrder *o, char text[ORDER_TEXT]) {
  char *at = append(text, ':', o->element);
  for (uint32_t i = 0; i < o->rank; i++)
    at = append(at, i ? 'x' : ':', o->dims[i]);
  for (uint32_t i = 0; i < o->rank; i++)
    at = append(at, i ? 0 : ':', o->perm[i]);
  return (size_t)(at - text);
}

/* The name of a constant in the program: equal bytes in the same order have equal names. */
static const char *key_of(const Graph *g, const XnnData *data, Arena *arena) {
  uint64_t hash[2];
  constant_hash128(value_lazy_constant(g, data->v), 0, hash);
  if (data->order) {
    char text[ORDER_TEXT];
    XXH128_hash_t order = XXH3_128bits(text, order_text(data->order, text));
    hash[0] ^= order.low64;
    hash[1] ^= order.high64;
  }
  return arena_printf(arena, "%016llx%016llx", (unsigned long long)hash[1],
                      (unsigned long long)hash[0]);
}

/* The value whose bytes the program has for a constant of the delegate. */
static ValueId data_value(Graph *g, const XnnData *data) {
  const XnnOrder *o = data->order;
  if (!o)
    return data->v;
  Constant bytes =
      constant_permuted(g, *value_lazy_constant(g, data->v), o->element, o->rank, o->dims, o->perm);
  SymInt dims[XNN_MAX_RANK];
  for (uint32_t i = 0; i < o->rank; i++)
    dims[i] = o->dims[i];
  TypeId type = graph_tensor_type(g, value_dtype(g, data->v), o->rank, dims, ORDER_CONTIGUOUS);
  return graph_add_constant(g, type, bytes, value_cget(g, data->v)->name);
}

/* The transposes that are left, in the order of the nodes. */
static DelegateTranspose *transposes_of(const XnnLowering *l, Arena *arena, uint32_t *count) {
  const XnnTranspose **made =
      ARENA_ARRAY(arena, const XnnTranspose *, (size_t)l->x.value_count + 1);
  DelegateTranspose *items = ARENA_ARRAY(arena, DelegateTranspose, (size_t)l->transpose_count + 1);
  for (uint32_t i = 0; i < l->transpose_count; i++)
    made[l->transposes[i].out] = &l->transposes[i];
  for (uint32_t i = 0; i < l->x.node_count; i++) {
    const XnnNode *node = &l->x.nodes[i];
    if (node->kind != XNN_STATIC_TRANSPOSE)
      continue;
    XnnId out = xnn_result(node);
    const XnnValue *value = &l->x.values[out];
    DelegateTranspose *item = &items[(*count)++];
    StrView name = node_place(l->g, made[out]->node).node;
    if (name.size == 0) /* nameless in the model */
      name = op_schema(node_cget(l->g, made[out]->node)->op)->full;
    *item = (DelegateTranspose){made[out]->what, name,
                                xnn_element_size(value->datatype) *
                                    xnn_dims_count(value->dims, value->rank)};
  }
  return items;
}

/* The bytes of the delegate, with its values in the order for which XNNPACK needs least memory. */
static XnnBlob write_delegate(XnnGraph *x, Graph *g, const char *const *keys,
                              const DelegateTranspose *transposes, uint32_t transpose_count,
                              BackendContext *c) {
  XnnBlob blob = xnn_blob(x, g, keys, transposes, transpose_count, &g->arena);
  c->own = c->own ? c->own : xnn_blobs(c->scratch);
  if (!blob.data)
    return blob;
  XnnBlob *made = xnn_blob_made(c->own, &blob);
  if (made->data)
    return *made;
  XrGraph written;
  if (!xr_read(blob.data, blob.size, c->scratch, &written))
    x->order = xr_value_order(&written, c->scratch);
  *made = x->order ? xnn_blob(x, g, keys, transposes, transpose_count, &g->arena) : blob;
  return *made;
}

void xnn_write_delegate(BackendContext *c, Graph *g, XnnLowering *l, DelegateCode *code) {
  xnn_pass_copies(&l->x, c->scratch);
  xnn_drop_dead(&l->x, c->scratch); /* what nobody reads must not ask for floats */
  xl_fuse(l);
  xnn_drop_dead(&l->x, c->scratch);
  xl_pin_broadcast(l, c->scratch);
  xl_fit_tables(l, c->scratch);
  xl_finish_constants(l);
  const char **keys = ARENA_ARRAY(c->scratch, const char *, (size_t)l->x.data_count + 1);
  for (uint32_t i = 0; i < l->x.data_count; i++)
    keys[i] = key_of(g, &l->x.data[i], c->scratch);
  uint32_t transpose_count = 0;
  const DelegateTranspose *transposes = transposes_of(l, c->scratch, &transpose_count);
  XnnBlob blob = write_delegate(&l->x, g, keys, transposes, transpose_count, c);
  ValueId *inputs = ARENA_ARRAY(c->scratch, ValueId, (size_t)l->input_count + 1),
          *data = ARENA_ARRAY(c->scratch, ValueId, (size_t)l->x.data_count + 1);
  if (l->input_count)
    memcpy(inputs, l->inputs, l->input_count * sizeof *inputs);
  for (uint32_t i = 0; i < l->x.data_count; i++)
    data[i] = data_value(g, &l->x.data[i]);
  *code = (DelegateCode){.blob = blob.data,
                         .blob_size = blob.size,
                         .inputs = inputs,
                         .data = data,
                         .keys = keys,
                         .transposes = transposes,
                         .transpose_count = transpose_count,
                         .input_count = l->input_count,
                         .data_count = l->x.data_count};
}

/* See blob.h. Header and tables: ExecuTorch 1.4.1, backends/xnnpack/runtime/XNNHeader.h and
 * serialization/schema.fbs. Constants are named data of the program: the delegate gives back the
 * memory of its own segment after loading, and XNNPACK keeps pointers to constants. The region that
 * the format has for constants holds a text instead, which nothing refers to: a line for each
 * transpose, the number of a TransposeReason and the name of a node. */
#include "backends/xnnpack/blob.h"

#include <xxhash.h>

#include "pte/flatbuffer.h"
#include "support/number.h"

enum {
  HEADER_SIZE = 32, /* 4 zeros, magic, u16 length, u32 offset and size of the tables, u32 offset and
                       u64 size of constants, 2 zeros */
  HEADER_LENGTH = 30,
  ALIGNMENT = 16
};
#define HEADER_MAGIC "XH00"
#define TABLES_MAGIC "XN01"

enum { GRAPH_VERSION, GRAPH_NODES, GRAPH_VALUES, GRAPH_EXTERNS, GRAPH_INPUTS, GRAPH_OUTPUTS };
enum { GRAPH_CONSTANTS = 8 };
enum { NODE_TYPE, NODE_UNION, NODE_DEBUG_HANDLE, NODE_LIMITS };
enum { LIMIT_LOW, LIMIT_HIGH };
enum { VALUE_TYPE, VALUE_UNION };
enum { VALUE_IS_TENSOR = 1, VALUE_IS_QUANTIZED = 2 };
enum {
  TENSOR_DATATYPE,
  TENSOR_RANK,
  TENSOR_DIMS,
  TENSOR_CONSTANT,
  TENSOR_EXTERNAL,
  TENSOR_FLAGS,
  TENSOR_ID
};
enum { QUANTIZED_TENSOR, QUANTIZED_PARAMETERS_TYPE, QUANTIZED_PARAMETERS };
enum { PER_CHANNEL = 1, PER_TENSOR = 2, PER_TOKEN = 3, PER_GROUP = 4 };
enum { PER_TENSOR_SCALE, PER_TENSOR_ZERO_POINT };
enum { PER_CHANNEL_SCALE, PER_CHANNEL_DIM, PER_CHANNEL_DATA, PER_CHANNEL_COUNT };
enum { PER_TOKEN_DIMS };
enum {
  PER_GROUP_SCALE,
  PER_GROUP_DIM,
  PER_GROUP_SIZE,
  PER_GROUP_SCALE_BF16, /* deprecated */
  PER_GROUP_DATA,
  PER_GROUP_COUNT
};
enum { FLAG_EXTERNAL_INPUT = 1, FLAG_EXTERNAL_OUTPUT = 2 };
enum { DATA_OFFSET, DATA_SIZE, DATA_KEY };

typedef struct Writer {
  FlatBuilder b;
  KeyMap vectors; /* by their numbers: those written */
  KeyMap limits;  /* by the two limits: the tables written */
  const XnnGraph *x;
  Arena scratch;
} Writer;

/* A vector of numbers; values of one shape share theirs. */
static FbRef write_vector(Writer *w, const uint32_t *items, uint32_t count) {
  uint32_t *slot, known = keymap_get(&w->vectors, items, count * sizeof *items, &slot);
  return known ? known : (*slot = fb_vector_u32(&w->b, items, count));
}

static FbRef write_limits(Writer *w, const XnnNode *node) {
  uint32_t bits[] = {float_bits(node->limit_low), float_bits(node->limit_high)};
  uint32_t *slot, known = keymap_get(&w->limits, bits, sizeof bits, &slot);
  if (known)
    return known;
  fb_table_begin(&w->b);
  fb_field_u32(&w->b, LIMIT_LOW, bits[0], 0);
  fb_field_u32(&w->b, LIMIT_HIGH, bits[1], 0);
  return *slot = fb_table_end(&w->b);
}

/* The table of the parameters, and in *form which one it is. Scales of channels and groups are
 * constants like others; the runtime looks at the vector inside the table all the same. */
static FbRef write_parameters(Writer *w, const XnnValue *value, uint8_t *form) {
  FlatBuilder *b = &w->b;
  XnnScheme scheme = xnn_scheme((XnnDatatype)value->datatype);
  bool inside = scheme == XNN_PER_CHANNEL || scheme == XNN_PER_GROUP;
  FbRef empty = inside ? write_vector(w, NULL, 0) : 0;
  fb_table_begin(b);
  switch (scheme) {
  case XNN_PER_TENSOR:
    *form = PER_TENSOR;
    fb_field_u32(b, PER_TENSOR_SCALE, float_bits(value->scale), 0);
    fb_field_i32(b, PER_TENSOR_ZERO_POINT, value->zero_point, 0);
    break;
  case XNN_PER_CHANNEL:
    *form = PER_CHANNEL;
    fb_field_ref(b, PER_CHANNEL_SCALE, empty);
    fb_field_u32(b, PER_CHANNEL_DIM, value->channel_dim, 0);
    fb_field_u32(b, PER_CHANNEL_DATA, value->scales, 0);
    fb_field_u32(b, PER_CHANNEL_COUNT, value->scale_count, 0);
    break;
  case XNN_PER_GROUP:
    *form = PER_GROUP;
    fb_field_ref(b, PER_GROUP_SCALE, empty);
    fb_field_u32(b, PER_GROUP_DIM, value->channel_dim, 0);
    fb_field_u32(b, PER_GROUP_SIZE, value->group_size, 0);
    fb_field_u32(b, PER_GROUP_DATA, value->scales, 0);
    fb_field_u32(b, PER_GROUP_COUNT, value->scale_count, 0);
    break;
  case XNN_PER_TOKEN:
    *form = PER_TOKEN;
    fb_field_u32(b, PER_TOKEN_DIMS, value->nonbatch_dims, 0);
    break;
  case XNN_PLAIN:
    break;
  }
  return fb_table_end(b);
}

static FbRef write_quantized(Writer *w, const XnnValue *value, FbRef tensor) {
  FlatBuilder *b = &w->b;
  uint8_t form = 0;
  FbRef parameters = write_parameters(w, value, &form);
  fb_table_begin(b);
  fb_field_ref(b, QUANTIZED_TENSOR, tensor);
  fb_field_union(b, QUANTIZED_PARAMETERS_TYPE, form, parameters);
  return fb_table_end(b);
}

static FbRef write_value(Writer *w, const XnnValue *value, XnnId id) {
  FlatBuilder *b = &w->b;
  FbRef dims = write_vector(w, value->dims, value->rank);
  uint32_t flags = !value->external  ? 0
                   : value->is_input ? FLAG_EXTERNAL_INPUT
                                     : FLAG_EXTERNAL_OUTPUT;
  fb_table_begin(b);
  fb_field_u16(b, TENSOR_DATATYPE, value->datatype, 0);
  fb_field_u32(b, TENSOR_RANK, value->rank, 0);
  fb_field_ref(b, TENSOR_DIMS, dims);
  fb_field_u32(b, TENSOR_CONSTANT, value->data, 0);
  fb_field_u32(b, TENSOR_EXTERNAL, value->external - 1, 0); /* UINT32_MAX: internal */
  fb_field_u32(b, TENSOR_FLAGS, flags, 0);
  fb_field_u32(b, TENSOR_ID, id, 0);
  FbRef tensor = fb_table_end(b);
  bool quantized = xnn_scheme((XnnDatatype)value->datatype) != XNN_PLAIN;
  if (quantized)
    tensor = write_quantized(w, value, tensor);
  fb_table_begin(b);
  fb_field_union(b, VALUE_TYPE, quantized ? VALUE_IS_QUANTIZED : VALUE_IS_TENSOR, tensor);
  return fb_table_end(b);
}

static FbRef write_node(Writer *w, const XnnNode *node) {
  FlatBuilder *b = &w->b;
  const XnnNodeRow *row = &xnn_node_rows[node->kind];
  FbRef vectors[XNN_MAX_FIELDS] = {0};
  for (uint16_t i = 0; row->fields[i]; i++)
    if (row->fields[i] == 'v')
      vectors[i] = write_vector(w, w->x->ints + node->fields[i], node->vector_count);
  FbRef limits = node->limited ? write_limits(w, node) : 0;
  fb_table_begin(b);
  for (uint16_t i = 0; row->fields[i]; i++)
    if (row->fields[i] == 'v')
      fb_field_ref(b, i, vectors[i]);
    else
      fb_field_u32(b, i, node->fields[i], 0);
  FbRef table = fb_table_end(b);
  fb_table_begin(b);
  fb_field_union(b, NODE_TYPE, row->tag, table);
  fb_field_u32(b, NODE_DEBUG_HANDLE, node->debug_handle, 0);
  fb_field_ref(b, NODE_LIMITS, limits);
  return fb_table_end(b);
}

static FbRef write_constants(Writer *w, const Graph *g, const char *const *keys) {
  const XnnGraph *x = w->x;
  FlatBuilder *b = &w->b;
  FbRef *items = ARENA_ARRAY(&w->scratch, FbRef, (size_t)x->data_count + 1);
  fb_table_begin(b); /* entry 0 stands for "no constant" */
  items[0] = fb_table_end(b);
  for (uint32_t i = 0; i < x->data_count; i++) {
    FbRef key = fb_string(b, sv_from(keys[i]));
    fb_table_begin(b);
    fb_field_u64(b, DATA_OFFSET, UINT64_MAX, 0); /* not in the blob */
    fb_field_u64(b, DATA_SIZE, value_lazy_constant(g, x->data[i].v)->size, 0);
    fb_field_ref(b, DATA_KEY, key);
    items[i + 1] = fb_table_end(b);
  }
  return fb_vector_refs(b, items, x->data_count + 1);
}

static FbRef write_graph(Writer *w, const Graph *g, const char *const *keys) {
  const XnnGraph *x = w->x;
  FlatBuilder *b = &w->b;
  FbRef *values = ARENA_ARRAY(&w->scratch, FbRef, (size_t)x->value_count + 1);
  FbRef *nodes = ARENA_ARRAY(&w->scratch, FbRef, (size_t)x->node_count + 1);
  uint32_t *externs = ARENA_ARRAY(&w->scratch, uint32_t, (size_t)x->value_count + 1), inputs = 0,
           outputs = x->value_count;
  for (XnnId i = 0; i < x->value_count; i++) {
    XnnId id = x->order ? x->order[i] : i;
    values[i] = write_value(w, &x->values[id], id);
    if (x->values[i].external)
      externs[x->values[i].is_input ? inputs++ : outputs--] = i;
  }
  for (uint32_t i = 0; i < x->node_count; i++)
    nodes[i] = write_node(w, &x->nodes[i]);
  FbRef constants = write_constants(w, g, keys), version = fb_string(b, sv_from("1"));
  FbRef value_list = fb_vector_refs(b, values, x->value_count),
        node_list = fb_vector_refs(b, nodes, x->node_count),
        input_list = fb_vector_u32(b, externs, inputs),
        output_list = fb_vector_u32(b, externs + outputs + 1, x->value_count - outputs);
  fb_table_begin(b);
  fb_field_ref(b, GRAPH_VERSION, version);
  fb_field_ref(b, GRAPH_NODES, node_list);
  fb_field_ref(b, GRAPH_VALUES, value_list);
  fb_field_u32(b, GRAPH_EXTERNS, x->extern_count, 0);
  fb_field_ref(b, GRAPH_INPUTS, input_list);
  fb_field_ref(b, GRAPH_OUTPUTS, output_list);
  fb_field_ref(b, GRAPH_CONSTANTS, constants);
  return fb_table_end(b);
}

static uint64_t region_at(uint32_t tables) {
  return align_up((uint64_t)HEADER_SIZE + tables, ALIGNMENT);
}

static void write_header(uint8_t *at, uint32_t tables, uint64_t region) {
  uint16_t length = HEADER_LENGTH;
  uint32_t offset = HEADER_SIZE, constants = (uint32_t)region_at(tables);
  memset(at, 0, HEADER_SIZE);
  memcpy(at + 4, HEADER_MAGIC, 4);
  memcpy(at + 8, &length, 2);
  memcpy(at + 10, &offset, 4);
  memcpy(at + 14, &tables, 4);
  memcpy(at + 18, &constants, 4);
  memcpy(at + 22, &region, 8);
}

static void write_region(StrBuf *out, const DelegateTranspose *transposes, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    strbuf_append_char(out, (char)('0' + transposes[i].what));
    for (size_t k = 0; k < transposes[i].node.size; k++) {
      char c = transposes[i].node.data[k];
      strbuf_append_char(out, c == '\n' ? ' ' : c);
    }
    strbuf_append_char(out, '\n');
  }
}

XnnBlob xnn_blob(const XnnGraph *x, const Graph *g, const char *const *keys,
                 const DelegateTranspose *transposes, uint32_t transpose_count, Arena *arena) {
  Writer w = {.vectors = keymap_make(&w.scratch, g->ctx->names.seed),
              .limits = keymap_make(&w.scratch, g->ctx->names.seed),
              .x = x};
  FlatBuilder *b = &w.b;
  StrBuf region = {0};
  XnnBlob blob = {0};
  fb_init(b);
  FbRef root = write_graph(&w, g, keys);
  b->alignment = ALIGNMENT;
  fb_finish(b, root, TABLES_MAGIC, 0);
  if (!b->overflow) {
    write_region(&region, transposes, transpose_count);
    blob.size = align_up(region_at(b->size) + region.size, ALIGNMENT);
    uint8_t *data = arena_calloc(arena, blob.size, 1);
    write_header(data, b->size, region.size);
    memcpy(data + HEADER_SIZE, fb_bytes(b), b->size);
    if (region.size)
      memcpy(data + region_at(b->size), region.data, region.size);
    blob.data = data;
    blob.tables = b->size;
  }
  strbuf_release(&region);
  fb_release(b);
  arena_release(&w.scratch);
  return blob;
}

XnnBlobs *xnn_blobs(Arena *arena) {
  XnnBlobs *blobs = arena_alloc(arena, sizeof *blobs);
  *blobs = (XnnBlobs){.graphs = keymap_make(arena, 0), .arena = arena};
  return blobs;
}

XnnBlob *xnn_blob_made(XnnBlobs *blobs, const XnnBlob *blob) {
  XXH128_hash_t hash = XXH3_128bits(blob->data + HEADER_SIZE, blob->tables);
  uint32_t *slot, known = keymap_get(&blobs->graphs, &hash, sizeof hash, &slot);
  if (known)
    return &blobs->items[known - 1];
  blobs->items = arena_push(blobs->arena, blobs->items, blobs->count, sizeof *blobs->items);
  blobs->items[blobs->count] = (XnnBlob){0};
  *slot = blobs->count + 1;
  return &blobs->items[blobs->count++];
}

/* See subgraph.h. */
#include "backends/xnnpack/subgraph.h"

const XnnNodeRow xnn_node_rows[XNN_NODE_KINDS] = {
#define XNN_NODE(name, tag, fields) [XNN_##name] = {tag, fields},
#include "backends/xnnpack/nodes.def"
#undef XNN_NODE
};

void xnn_init(XnnGraph *x) { *x = (XnnGraph){0}; }

void xnn_release(XnnGraph *x) {
  xfree(x->values);
  xfree(x->nodes);
  xfree(x->ints);
  xfree(x->data);
}

void xnn_clear(XnnGraph *x) {
  x->value_count = x->node_count = x->int_count = x->data_count = x->extern_count = 0;
  x->debug_handle = 0;
  x->quantizes_at_run = false;
  x->order = NULL;
}

XnnId xnn_value(XnnGraph *x, XnnDatatype datatype, uint32_t rank, const uint32_t *dims) {
  if (rank > XNN_MAX_RANK)
    BUG("a value of rank %u", rank);
  x->values =
      pool_reserve(x->values, &x->value_capacity, (uint64_t)x->value_count + 1, sizeof *x->values);
  XnnValue *value = &x->values[x->value_count];
  *value = (XnnValue){
      .datatype = (uint8_t)datatype, .rank = (uint8_t)rank, .may_be_one = UINT8_MAX, .scale = 1};
  if (rank)
    memcpy(value->dims, dims, rank * sizeof *dims);
  return x->value_count++;
}

XnnId xnn_value_like(XnnGraph *x, XnnDatatype datatype, XnnId like) {
  XnnValue as = x->values[like];
  XnnId made = xnn_value(x, datatype, as.rank, as.dims);
  x->values[made].dynamic = as.dynamic;
  x->values[made].may_be_one = as.may_be_one;
  if (datatype == as.datatype) {
    x->values[made].scale = as.scale;
    x->values[made].zero_point = as.zero_point;
  }
  return made;
}

XnnNode *xnn_add_node(XnnGraph *x, const XnnNode *node) {
  POOL_PUSH(x->nodes, x->node_count, x->node_capacity, *node);
  XnnNode *added = &x->nodes[x->node_count - 1];
  if (!added->debug_handle)
    added->debug_handle = x->debug_handle;
  return added;
}

bool xnn_broadcasts(uint32_t kind) {
  static const XnnNodeKind kinds[] = {XNN_ADD,     XNN_SUBTRACT, XNN_MULTIPLY, XNN_DIV,
                                      XNN_MINIMUM, XNN_MAXIMUM,  XNN_PRELU};
  for (size_t i = 0; i < COUNT_OF(kinds); i++)
    if (kind == kinds[i])
      return true;
  return false;
}

bool xnn_has_dynamic_dims(const XnnGraph *x) {
  bool dynamic = false;
  for (XnnId v = 0; v < x->value_count; v++)
    dynamic |= x->values[v].dynamic != 0;
  return dynamic;
}

/* 1 + the index of a new constant. */
static uint32_t add_data(XnnGraph *x, XnnData data) {
  POOL_PUSH(x->data, x->data_count, x->data_capacity, data);
  return x->data_count;
}

XnnId xnn_constant(XnnGraph *x, XnnDatatype datatype, uint32_t rank, const uint32_t *dims,
                   XnnData data) {
  XnnId id = xnn_value(x, datatype, rank, dims);
  x->values[id].data = add_data(x, data);
  return id;
}

void xnn_make_external(XnnGraph *x, XnnId id, bool is_input) {
  x->values[id].external = ++x->extern_count;
  x->values[id].is_input = is_input;
}

/* --- quantization --- */

XnnScheme xnn_scheme(XnnDatatype datatype) {
  switch (datatype) {
  case XNN_QINT8:
  case XNN_QUINT8:
  case XNN_QINT32:
    return XNN_PER_TENSOR;
  case XNN_QCINT8:
  case XNN_QCINT32:
  case XNN_QCINT4:
    return XNN_PER_CHANNEL;
  case XNN_QBINT4:
    return XNN_PER_GROUP;
  case XNN_QDINT8:
    return XNN_PER_TOKEN;
  case XNN_FP32:
  case XNN_FP16:
  case XNN_INT32:
    break;
  }
  return XNN_PLAIN;
}

static XnnValue *value_of(XnnGraph *x, XnnId id, XnnScheme scheme) {
  XnnValue *value = &x->values[id];
  if (xnn_scheme((XnnDatatype)value->datatype) != scheme)
    BUG("quantization parameters that do not fit the datatype %u", value->datatype);
  return value;
}

XnnId xnn_dynamic(XnnGraph *x, uint32_t rank, const uint32_t *dims, uint32_t nonbatch_dims) {
  XnnId id = xnn_value(x, XNN_QDINT8, rank, dims);
  x->values[id].nonbatch_dims = nonbatch_dims;
  return id;
}

void xnn_set_scale(XnnGraph *x, XnnId id, float scale, int32_t zero_point) {
  XnnValue *value = value_of(x, id, XNN_PER_TENSOR);
  value->scale = scale;
  value->zero_point = zero_point;
}

void xnn_set_channels(XnnGraph *x, XnnId id, uint32_t channel_dim, XnnData scales, uint32_t count) {
  XnnValue *value = value_of(x, id, XNN_PER_CHANNEL);
  value->channel_dim = channel_dim;
  value->scale_count = count;
  value->scales = add_data(x, scales);
}

void xnn_set_groups(XnnGraph *x, XnnId id, uint32_t group_size, XnnData scales, uint32_t count) {
  XnnValue *value = value_of(x, id, XNN_PER_GROUP);
  value->group_size = group_size;
  value->scale_count = count;
  value->scales = add_data(x, scales);
}

/* --- nodes --- */

static bool has_window(XnnNodeKind kind) {
  return kind == XNN_CONV2D || kind == XNN_DEPTHWISE_CONV2D || kind == XNN_CONV_TRANSPOSE2D ||
         kind == XNN_MAX_POOLING2D || kind == XNN_AVG_POOLING2D;
}

static void note_window(XnnGraph *x, const XnnNode *node) {
  bool copies = node->kind == XNN_COPY || node->kind == XNN_CLAMP;
  XnnId in = xnn_operand(node), out = xnn_result(node);
  x->quantizes_at_run |= node->kind == XNN_CONVERT && x->values[in].datatype == XNN_FP32 &&
                         x->values[out].datatype == XNN_FP32;
  x->values[out].follows_window = has_window((XnnNodeKind)node->kind) ||
                                  (copies && x->values[in].follows_window) ||
                                  (x->quantizes_at_run && node->kind == XNN_FULLY_CONNECTED);
}

XnnNode *xnn_node(XnnGraph *x, XnnNodeKind kind, const uint32_t *fields, uint32_t count) {
  const char *layout = xnn_node_rows[kind].fields;
  if (strlen(layout) != count)
    BUG("a node with %u fields instead of '%s'", count, layout);
  XnnNode *node = xnn_add_node(x, &(XnnNode){.kind = (uint8_t)kind});
  memcpy(node->fields, fields, count * sizeof *fields);
  note_window(x, node);
  return node;
}

XnnNode *xnn_take_nodes(XnnGraph *x, uint32_t *count, Arena *scratch) {
  XnnNode *taken = ARENA_ARRAY(scratch, XnnNode, (size_t)x->node_count + 1);
  if (x->node_count)
    memcpy(taken, x->nodes, x->node_count * sizeof *taken);
  *count = x->node_count;
  x->node_count = 0;
  return taken;
}

uint32_t xnn_vector(XnnGraph *x, const uint32_t *items, uint32_t count) {
  x->ints =
      pool_reserve(x->ints, &x->int_capacity, (uint64_t)x->int_count + count + 1, sizeof *x->ints);
  if (count)
    memcpy(x->ints + x->int_count, items, count * sizeof *items);
  x->int_count += count;
  return x->int_count - count;
}

void xnn_pass_copies(XnnGraph *x, Arena *scratch) {
  XnnId *source = ARENA_ARRAY(scratch, XnnId, (size_t)x->value_count + 1);
  for (XnnId i = 0; i < x->value_count; i++)
    source[i] = i;
  for (uint32_t i = 0; i < x->node_count; i++) { /* users come behind what they use */
    XnnNode *node = &x->nodes[i];
    const char *fields = xnn_fields(node);
    for (uint32_t k = 0; fields[k]; k++)
      if ((fields[k] == 'i' || fields[k] == 'b') && node->fields[k] != XNN_NONE)
        node->fields[k] = source[node->fields[k]];
    if (node->kind == XNN_COPY && !x->values[xnn_operand(node)].data)
      source[xnn_result(node)] = xnn_operand(node);
  }
}

/* Whether something that the node writes is used. */
static bool writes_used(const XnnNode *node, const bool *used) {
  const char *fields = xnn_fields(node);
  for (uint32_t i = 0; fields[i]; i++)
    if (fields[i] == 'o' && used[node->fields[i]])
      return true;
  return false;
}

void xnn_drop_dead(XnnGraph *x, Arena *scratch) {
  bool *used = ARENA_ARRAY(scratch, bool, (size_t)x->value_count + 1);
  uint32_t kept = x->node_count;
  for (XnnId i = 0; i < x->value_count; i++)
    used[i] = x->values[i].external && !x->values[i].is_input;
  for (uint32_t i = x->node_count; i-- > 0;) { /* users come behind what they use */
    const XnnNode *node = &x->nodes[i];
    const char *fields = xnn_fields(node);
    if (!writes_used(node, used))
      continue;
    for (uint32_t k = 0; fields[k]; k++)
      if ((fields[k] == 'i' || fields[k] == 'b') && node->fields[k] != XNN_NONE)
        used[node->fields[k]] = true;
    x->nodes[--kept] = *node;
  }
  x->node_count -= kept;
  memmove(x->nodes, x->nodes + kept, x->node_count * sizeof *x->nodes);
}

/* Marks the constants that the value refers to. */
static void mark_data(const XnnGraph *x, XnnId id, uint32_t *place) {
  const XnnValue *value = &x->values[id];
  if (value->data)
    place[value->data] = 1;
  if (value->scales)
    place[value->scales] = 1;
}

void xnn_drop_constants(XnnGraph *x, Arena *scratch) {
  uint32_t *place = ARENA_ARRAY(scratch, uint32_t, (size_t)x->data_count + 1), kept = 0;
  for (uint32_t i = 0; i < x->node_count; i++) {
    const XnnNode *node = &x->nodes[i];
    const char *fields = xnn_fields(node);
    for (uint32_t k = 0; fields[k]; k++)
      if ((fields[k] == 'i' || fields[k] == 'b') && node->fields[k] != XNN_NONE)
        mark_data(x, node->fields[k], place);
  }
  for (uint32_t i = 1; i <= x->data_count; i++)
    if (place[i]) {
      x->data[kept] = x->data[i - 1];
      place[i] = ++kept;
    }
  for (XnnId i = 0; i < x->value_count; i++) {
    XnnValue *value = &x->values[i];
    bool was_constant = value->data != 0;
    value->data = place[value->data];
    value->scales = place[value->scales];
    if (was_constant && !value->data) /* nothing refers to it; plain floats need no parameters */
      value->datatype = XNN_FP32;
  }
  x->data_count = kept;
}

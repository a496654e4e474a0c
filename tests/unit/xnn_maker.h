/* Makes the bytes of XNNPACK delegates, right and wrong ones, without the backend that is tested.
 * The field numbers are those of ExecuTorch 1.4.1, backends/xnnpack/serialization/schema.fbs. */
#ifndef ETC_TESTS_XNN_MAKER_H
#define ETC_TESTS_XNN_MAKER_H

#include "unit.h"

#include "ops/delegate.h"
#include "pte/flatbuffer.h"

enum { MADE_VALUES = 8, MADE_NODES = 4, MADE_CONSTANTS = 4, MADE_DIMS = 7, MADE_FIELDS = 20 };
#define MADE_NONE UINT32_MAX

typedef struct MadeValue {
  uint32_t rank, dims[MADE_DIMS];
  uint32_t constant;  /* index, 0 = none */
  uint32_t external;  /* 1 + index of the argument, 0 = none */
  uint32_t flags;     /* 1 input, 2 output */
  uint32_t datatype;  /* 0: fp32 */
  uint32_t id;        /* 1 + id; 0: the place in the list */
  uint32_t kind;      /* of the union; 0: 1 */
  uint32_t more_rank; /* added to num_dims */
  float scale;        /* of a quantized one (kind 2), 0: none */
  int32_t zero_point;
  bool hollow; /* no table in the union */
  /* Other parameters of a quantized one; form: their table, 0: a scale and a zero point. */
  uint32_t form, channel_dim, group_size, nonbatch_dims, scale_count;
  uint32_t scale_constant; /* 0: the first scale_count of scales, in the table */
  float scales[4];
} MadeValue;

/* A field VEC(k) is vectors[k]. */
#define VEC(k) (0xFFFFFF00u + (k))
typedef struct MadeNode {
  uint32_t tag;
  uint32_t fields[MADE_FIELDS];
  struct {
    uint32_t count, items[MADE_DIMS];
  } vectors[2];
  bool limited, hollow;
  float low, high;
} MadeNode;

/* By default constant k has the key "k<k>" and the size of the value that uses it. */
typedef struct MadeConstant {
  bool in_blob, both, no_name; /* no key; key and offset; empty key */
  uint64_t offset;
  int32_t more_size; /* added to it */
} MadeConstant;

typedef struct Made {
  MadeValue values[MADE_VALUES];
  MadeNode nodes[MADE_NODES];
  MadeConstant constants[MADE_CONSTANTS];
  uint32_t externals; /* 0: as many as there are */
  bool no_values, no_nodes;
  uint32_t region; /* bytes of constants in the blob */
} Made;

#define SHAPE(...)                                                                                 \
  .rank = sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), .dims = {__VA_ARGS__}
#define IN(i, ...)                                                                                 \
  { .external = 1 + (i), .flags = 1, SHAPE(__VA_ARGS__) }
#define OUT(i, ...)                                                                                \
  { .external = 1 + (i), .flags = 2, SHAPE(__VA_ARGS__) }
#define TEMP(...)                                                                                  \
  { SHAPE(__VA_ARGS__) }
#define CONSTANT(k, ...)                                                                           \
  { .constant = (k), SHAPE(__VA_ARGS__) }

static inline uint32_t made_value_count(const Made *m) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < MADE_VALUES; i++)
    if (m->values[i].rank || m->values[i].external || m->values[i].constant || m->values[i].kind)
      count = i + 1;
  return count;
}

static inline unsigned made_element_bits(const MadeValue *v) {
  switch (v->datatype) {
  case 2:
    return 16;
  case 3:
  case 4:
  case 6:
    return 8;
  case 8:
  case 10:
    return 4;
  default:
    return 32;
  }
}

enum { MADE_PER_CHANNEL = 1, MADE_PER_TENSOR = 2, MADE_PER_TOKEN = 3, MADE_PER_GROUP = 4 };

/* The parameters of a quantized value. */
static inline FbRef made_parameters(FlatBuilder *b, const MadeValue *v) {
  uint32_t bits[4], more = v->form == MADE_PER_GROUP;
  memcpy(bits, v->scales, sizeof bits);
  FbRef scales = fb_vector_u32(b, bits, v->scale_constant ? 0 : v->scale_count);
  memcpy(bits, &v->scale, 4);
  fb_table_begin(b);
  if (v->form == 0) {
    fb_field_u32(b, 0, bits[0], 0);
    fb_field_i32(b, 1, v->zero_point, 0);
  } else if (v->form == MADE_PER_TOKEN) {
    fb_field_u32(b, 0, v->nonbatch_dims, 0);
  } else {
    fb_field_ref(b, 0, scales);
    fb_field_u32(b, 1, v->channel_dim, 0);
    if (more)
      fb_field_u32(b, 2, v->group_size, 0);
    fb_field_u32(b, (uint16_t)(2 + 2 * more), v->scale_constant, 0);
    fb_field_u32(b, (uint16_t)(3 + 2 * more), v->scale_count, 0);
  }
  return fb_table_end(b);
}

static inline FbRef made_value(FlatBuilder *b, const MadeValue *v, uint32_t i) {
  FbRef dims = fb_vector_u32(b, v->dims, v->rank);
  fb_table_begin(b);
  fb_field_u16(b, 0, (uint16_t)(v->datatype ? v->datatype : 1), 0);
  fb_field_u32(b, 1, v->rank + v->more_rank, 0);
  fb_field_ref(b, 2, dims);
  fb_field_u32(b, 3, v->constant, 0);
  fb_field_u32(b, 4, v->external - 1, 0);
  fb_field_u32(b, 5, v->flags, 0);
  fb_field_u32(b, 6, v->id ? v->id - 1 : i, 0);
  FbRef table = fb_table_end(b);
  if (v->kind == 2) { /* in a quantized one */
    FbRef parameters = made_parameters(b, v);
    fb_table_begin(b);
    fb_field_ref(b, 0, table);
    if (v->scale != 0 || v->form)
      fb_field_union(b, 1, (uint8_t)(v->form ? v->form : MADE_PER_TENSOR), parameters);
    table = fb_table_end(b);
  }
  fb_table_begin(b);
  fb_field_union(b, 0, (uint8_t)(v->kind ? v->kind : 1), v->hollow ? 0 : table);
  return fb_table_end(b);
}

static inline FbRef made_node(FlatBuilder *b, const MadeNode *n) {
  FbRef vectors[2], limits = 0;
  for (uint32_t i = 0; i < 2; i++)
    vectors[i] = fb_vector_u32(b, n->vectors[i].items, n->vectors[i].count);
  if (n->limited) {
    uint32_t low, high;
    memcpy(&low, &n->low, 4);
    memcpy(&high, &n->high, 4);
    fb_table_begin(b);
    fb_field_u32(b, 0, low, 0);
    fb_field_u32(b, 1, high, 0);
    limits = fb_table_end(b);
  }
  fb_table_begin(b);
  for (uint16_t i = 0; i < MADE_FIELDS; i++)
    if (n->fields[i] == VEC(0) || n->fields[i] == VEC(1))
      fb_field_ref(b, i, vectors[n->fields[i] - VEC(0)]);
    else
      fb_field_u32(b, i, n->fields[i], 0);
  FbRef table = fb_table_end(b);
  fb_table_begin(b);
  fb_field_union(b, 0, (uint8_t)n->tag, n->hollow ? 0 : table);
  fb_field_ref(b, 3, limits);
  return fb_table_end(b);
}

/* Bytes of the value that a constant belongs to. */
static inline uint64_t made_size(const Made *m, uint32_t k) {
  for (uint32_t i = 0; i < MADE_VALUES; i++) {
    const MadeValue *v = &m->values[i];
    if (k && v->scale_constant == k)
      return (uint64_t)v->scale_count * (v->form == MADE_PER_GROUP ? 2 : 4);
    if (v->constant != k)
      continue;
    uint64_t bytes = v->rank ? (v->dims[v->rank - 1] * (uint64_t)made_element_bits(v) + 7) / 8
                             : made_element_bits(v) / 8;
    for (uint32_t d = 0; d + 1 < v->rank; d++)
      bytes *= v->dims[d];
    return bytes;
  }
  return 0;
}

static inline FbRef made_constant(FlatBuilder *b, const Made *m, uint32_t k) {
  const MadeConstant *c = &m->constants[k];
  const char name[] = {'k', (char)('0' + k), 0};
  FbRef key = c->in_blob ? 0 : fb_string(b, sv_from(c->no_name ? "" : name));
  fb_table_begin(b);
  fb_field_u64(b, 0, c->in_blob || c->both ? c->offset : UINT64_MAX, 0);
  fb_field_u64(b, 1, made_size(m, k) + (uint64_t)(int64_t)c->more_size, 0);
  fb_field_ref(b, 2, key);
  return fb_table_end(b);
}

/* The blob, in arena. */
static inline uint8_t *made_blob(const Made *m, Arena *arena, uint64_t *size) {
  FlatBuilder b;
  FbRef values[MADE_VALUES], nodes[MADE_NODES], constants[MADE_CONSTANTS];
  uint32_t value_count = made_value_count(m), node_count = 0, externals = m->externals;
  fb_init(&b);
  for (uint32_t i = 0; i < value_count; i++) {
    values[i] = made_value(&b, &m->values[i], i);
    if (!m->externals && m->values[i].external > externals)
      externals = m->values[i].external;
  }
  for (; node_count < MADE_NODES && m->nodes[node_count].tag; node_count++)
    nodes[node_count] = made_node(&b, &m->nodes[node_count]);
  for (uint32_t k = 0; k < MADE_CONSTANTS; k++)
    constants[k] = made_constant(&b, m, k);
  FbRef value_list = fb_vector_refs(&b, values, value_count),
        node_list = fb_vector_refs(&b, nodes, node_count),
        constant_list = fb_vector_refs(&b, constants, MADE_CONSTANTS);
  fb_table_begin(&b);
  fb_field_ref(&b, 1, m->no_nodes ? 0 : node_list);
  fb_field_ref(&b, 2, m->no_values ? 0 : value_list);
  fb_field_u32(&b, 3, externals, 0);
  fb_field_ref(&b, 8, constant_list);
  FbRef root = fb_table_end(&b);
  b.alignment = 16;
  fb_finish(&b, root, "XN01", 0);
  uint32_t at = 32, length = b.size, region = at + length;
  uint64_t region_size = m->region;
  *size = region + region_size;
  uint8_t *blob = arena_calloc(arena, *size, 1);
  memcpy(blob + 4, "XH00", 4);
  blob[8] = 30;
  memcpy(blob + 10, &at, 4);
  memcpy(blob + 14, &length, 4);
  memcpy(blob + 18, &region, 4);
  memcpy(blob + 22, &region_size, 8);
  memcpy(blob + at, fb_bytes(&b), length);
  fb_release(&b);
  return blob;
}

/* The call that the external values describe. data: of all constants, by their index. */
static inline DelegateCall made_call(const Made *m, Arena *arena, const void *const *data) {
  DelegateCall call = {.fixed = true, .memory = 1 << 24};
  DelegateData *named = ARENA_ARRAY(arena, DelegateData, MADE_CONSTANTS);
  Tensor *tensors = ARENA_ARRAY(arena, Tensor, MADE_VALUES);
  call.blob = made_blob(m, arena, &call.blob_size);
  call.data = named;
  for (uint32_t k = 1; k < MADE_CONSTANTS; k++)
    named[call.data_count++] = (DelegateData){.key = sv_from(arena_printf(arena, "k%u", k)),
                                              .data = data ? data[k] : NULL,
                                              .size = made_size(m, k)};
  for (uint32_t i = 0; i < MADE_VALUES; i++) {
    const MadeValue *v = &m->values[i];
    if (!v->external || v->external > MADE_VALUES)
      continue;
    Tensor *t = &tensors[v->external - 1];
    t->dtype = v->datatype == 2    ? DTYPE_F16
               : v->datatype == 3  ? DTYPE_I8
               : v->datatype == 4  ? (v->scale == 1 && v->flags == 1 ? DTYPE_BOOL : DTYPE_U8)
               : v->datatype == 12 ? DTYPE_I32
                                   : DTYPE_F32;
    t->rank = v->rank;
    for (uint32_t d = 0; d < v->rank; d++)
      t->dims[d] = v->dims[d];
    call.input_count += v->flags == 1;
    call.output_count += v->flags == 2;
  }
  call.inputs = tensors;
  call.outputs = tensors + call.input_count;
  return call;
}

#endif

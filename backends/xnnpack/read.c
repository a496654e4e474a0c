/* See read.h. */
#include "backends/xnnpack/read.h"

#include <math.h>
#include <stddef.h>

#include "pte/flatread.h"
#include "support/number.h"

enum {
  HEADER_SIZE = 30,
  FLATBUFFER_MIN = 8,
  ALIGNMENT = 16 /* of the FlatBuffer in the blob: as the official writer has it */
};

/* Fields in the order of the tables of schema.fbs. A union has two. */
enum {
  GRAPH_VERSION = 0,
  GRAPH_NODES = 1,
  GRAPH_VALUES = 2,
  GRAPH_EXTERNALS = 3,
  GRAPH_INPUTS = 4,
  GRAPH_OUTPUTS = 5,
  GRAPH_CONSTANTS = 8
};
enum { NODE_KIND = 0, NODE_TABLE = 1, NODE_LIMITS = 3 };
enum { VALUE_KIND = 0, VALUE_TABLE = 1, VALUE_PLAIN = 1, VALUE_QUANTIZED = 2 };
enum { QUANTIZED_TENSOR = 0, QUANTIZED_FORM = 1, QUANTIZED_NUMBERS = 2 };
enum { TENSOR_SCALE = 0, TENSOR_ZERO_POINT = 1 };
enum { CHANNEL_SCALES = 0, CHANNEL_DIM = 1, CHANNEL_DATA = 2, CHANNEL_COUNT = 3 };
enum { TOKEN_DIMS = 0 };
enum { GROUP_SCALES = 0, GROUP_DIM = 1, GROUP_SIZE = 2, GROUP_DATA = 4, GROUP_COUNT = 5 };
enum { GROUP_MULTIPLE = 32 }; /* of the elements of a group: what the kernels take at once */
enum {
  TENSOR_DATATYPE = 0,
  TENSOR_RANK = 1,
  TENSOR_DIMS = 2,
  TENSOR_CONSTANT = 3,
  TENSOR_EXTERNAL = 4,
  TENSOR_FLAGS = 5,
  TENSOR_ID = 6
};
enum { CONSTANT_OFFSET = 0, CONSTANT_SIZE = 1, CONSTANT_KEY = 2 };

typedef struct Reader {
  FbReader fb;
  Arena *arena;
  XrGraph *x;
  const char *fault; /* the first */
} Reader;

const XrKindRow xr_kinds[XR_KINDS] = {
#define XR_KIND(name, tag, form, op, traits) [tag] = {#name, XR_FORM_##form, traits, OP_##op},
#include "backends/xnnpack/read.def"
};

const XrDatatypeRow xr_datatypes[XR_DATATYPES] = {
#define XR_DATATYPE(name, number, text, scheme, bits, dtype)                                       \
  [number] = {text, XR_##scheme, bits, DTYPE_##dtype},
#include "backends/xnnpack/read.def"
};

ETC_PRINTF(2, 3) static void fail(Reader *r, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (!r->fault)
    r->fault = arena_vprintf(r->arena, format, args);
  va_end(args);
}

static bool ok(const Reader *r) { return !r->fault && !r->fb.fault; }

/* --- values --- */

/* A vector of integers, one for each dim. Returns how many there are. */
static uint8_t read_vector(Reader *r, FbTable t, uint16_t id, uint32_t out[XR_MAX_RANK],
                           const char *what) {
  FbVector v = fb_vector(t, id, 4);
  if (v.count > XR_MAX_RANK) {
    fail(r, "%s has %u entries, more than %d", what, v.count, XR_MAX_RANK);
    return 0;
  }
  for (uint32_t i = 0; i < v.count; i++)
    out[i] = (uint32_t)fb_item_i32(v, i);
  return (uint8_t)v.count;
}

/* Rows begin with a byte. */
bool xr_value_bytes(const XrValue *v, uint64_t *bytes) {
  uint64_t last = v->rank ? v->dims[v->rank - 1] : 1;
  *bytes = (last * xr_datatype(v->datatype)->bits + 7) / 8;
  for (uint32_t i = 0; i + 1 < v->rank; i++)
    if (!mul_u64(*bytes, v->dims[i], bytes))
      return false;
  return true;
}

uint64_t xr_scale_bytes(const XrValue *v) {
  return (uint64_t)v->scale_count * (v->datatype == XR_QBINT4 ? 2 : 4);
}

static void read_per_tensor(Reader *r, FbTable t, uint32_t id, XrValue *v) {
  int32_t low = v->datatype == XR_QINT8 ? INT8_MIN : 0, high = v->datatype == XR_QINT8 ? INT8_MAX
                                                               : v->datatype == XR_QUINT8
                                                                   ? UINT8_MAX
                                                                   : 0;
  v->scale = fb_f32(t, TENSOR_SCALE, 0);
  v->zero_point = fb_i32(t, TENSOR_ZERO_POINT, 0);
  if (!isnormal(v->scale) || v->scale < 0)
    fail(r, "value %u has the scale %g", id, (double)v->scale);
  if (v->zero_point < low || v->zero_point > high)
    fail(r, "value %u has the zero point %d, and its datatype %d to %d", id, v->zero_point, low,
         high);
}

/* A vector of scales in the table, or a constant with a count of them. */
static void read_scales(FbTable t, uint16_t vector, uint16_t data, uint16_t count, XrValue *v) {
  FbVector scales = fb_vector(t, vector, 4);
  v->scales = fb_u32(t, data, 0);
  v->scale_count = v->scales ? fb_u32(t, count, 0) : scales.count;
  v->scale_bytes = v->scales || !scales.count ? NULL : t.r->data + scales.at;
}

static void read_per_channel(Reader *r, FbTable t, uint32_t id, XrValue *v) {
  v->channel_dim = fb_u32(t, CHANNEL_DIM, 0);
  read_scales(t, CHANNEL_SCALES, CHANNEL_DATA, CHANNEL_COUNT, v);
  if (v->channel_dim >= v->rank)
    fail(r, "value %u has rank %u, and a scale for each element of dim %u", id, v->rank,
         v->channel_dim);
  else if (v->scale_count != v->dims[v->channel_dim])
    fail(r, "value %u has %u scales for dim %u, which has %u elements", id, v->scale_count,
         v->channel_dim, v->dims[v->channel_dim]);
}

static void read_per_group(Reader *r, FbTable t, uint32_t id, XrValue *v) {
  v->group_size = fb_u32(t, GROUP_SIZE, 0);
  read_scales(t, GROUP_SCALES, GROUP_DATA, GROUP_COUNT, v);
  if (v->rank != 2 || fb_u32(t, GROUP_DIM, 0) != 0)
    fail(r, "value %u has rank %u and groups in dim %u", id, v->rank, fb_u32(t, GROUP_DIM, 0));
  else if (v->group_size == 0 || v->group_size % GROUP_MULTIPLE || v->dims[1] % v->group_size)
    fail(r, "value %u has rows of %u elements in groups of %u", id, v->dims[1], v->group_size);
  else if (v->scale_count != (uint64_t)v->dims[0] * (v->dims[1] / v->group_size))
    fail(r, "value %u has %u scales for %u rows of %u groups", id, v->scale_count, v->dims[0],
         v->dims[1] / v->group_size);
}

static void read_per_token(Reader *r, FbTable t, uint32_t id, XrValue *v) {
  v->nonbatch_dims = fb_u32(t, TOKEN_DIMS, 0);
  if (v->nonbatch_dims == 0 || v->nonbatch_dims > v->rank)
    fail(r, "value %u has rank %u, and a scale for its last %u dims", id, v->rank,
         v->nonbatch_dims);
}

static void read_quantization(Reader *r, FbTable quantized, uint32_t id, XrValue *v) {
  FbTable t = fb_table(quantized, QUANTIZED_NUMBERS);
  XrScheme scheme = xr_scheme(v->datatype);
  uint8_t form = fb_u8(quantized, QUANTIZED_FORM, 0);
  if (form != scheme || !fb_present(t)) {
    fail(r, "value %u has the datatype %u and quantization parameters of kind %u", id, v->datatype,
         form);
    return;
  }
  if (scheme == XR_PER_TENSOR)
    read_per_tensor(r, t, id, v);
  else if (scheme == XR_PER_CHANNEL)
    read_per_channel(r, t, id, v);
  else if (scheme == XR_PER_GROUP)
    read_per_group(r, t, id, v);
  else
    read_per_token(r, t, id, v);
}

/* *id: what nodes call the value. */
static void check_read(Reader *r, const XrValue *v, uint32_t id, bool plain) {
  if (!xr_datatype(v->datatype)->bits || (plain && xr_scheme(v->datatype) != XR_PLAIN))
    fail(r, "value %u has the datatype %u", id, v->datatype);
  if (v->flags & ~(uint32_t)(XR_INPUT | XR_OUTPUT))
    fail(r, "value %u has the flags %#x", id, v->flags);
  for (uint32_t i = 0; i < v->rank; i++)
    if (v->dims[i] == 0 || v->dims[i] > INT32_MAX)
      fail(r, "dim %u of value %u is %u", i, id, v->dims[i]);
}

static XrValue read_value(Reader *r, FbTable t, uint32_t *id) {
  uint8_t kind = fb_u8(t, VALUE_KIND, 0);
  FbTable table = fb_table(t, VALUE_TABLE), tensor = table;
  XrValue v = {0};
  if (kind == VALUE_QUANTIZED)
    tensor = fb_table(table, QUANTIZED_TENSOR);
  if ((kind != VALUE_PLAIN && kind != VALUE_QUANTIZED) || !fb_present(tensor)) {
    fail(r, "a value of kind %u%s", kind, fb_present(tensor) ? "" : " without contents");
    return v;
  }
  *id = fb_u32(tensor, TENSOR_ID, 0);
  v.datatype = fb_u16(tensor, TENSOR_DATATYPE, 0);
  v.rank = read_vector(r, tensor, TENSOR_DIMS, v.dims, "the shape of a value");
  v.constant = fb_u32(tensor, TENSOR_CONSTANT, 0);
  v.external = fb_u32(tensor, TENSOR_EXTERNAL, 0);
  v.flags = fb_u32(tensor, TENSOR_FLAGS, 0);
  if (fb_u32(tensor, TENSOR_RANK, 0) != v.rank)
    fail(r, "value %u has %u dims and says %u", *id, v.rank, fb_u32(tensor, TENSOR_RANK, 0));
  check_read(r, &v, *id, kind == VALUE_PLAIN);
  if (kind == VALUE_QUANTIZED && ok(r))
    read_quantization(r, table, *id, &v);
  return v;
}

static void read_values(Reader *r, FbVector tables) {
  XrGraph *x = r->x;
  if (!tables.present)
    fail(r, "there is no list of values");
  x->values = arena_alloc(r->arena, ((size_t)tables.count + 1) * sizeof *x->values);
  bool *taken = ARENA_ARRAY(r->arena, bool, (size_t)tables.count + 1);
  for (uint32_t i = 0; i < tables.count && ok(r); i++) {
    uint32_t id = 0;
    XrValue v = read_value(r, fb_item_table(tables, i), &id);
    if (id >= tables.count || taken[id]) {
      fail(r, "there are %u values, and %s the id %u", tables.count,
           id >= tables.count ? "one has" : "two have", id);
      return;
    }
    taken[id] = true;
    v.position = i;
    x->values[id] = v;
  }
  x->value_count = tables.count;
}

static void read_constants(Reader *r, FbVector tables) {
  XrGraph *x = r->x;
  x->constant_count = tables.count;
  x->constants = ARENA_ARRAY(r->arena, XrConstant, (size_t)tables.count + 1);
  for (uint32_t i = 1; i < tables.count && ok(r); i++) {
    FbTable t = fb_item_table(tables, i);
    XrConstant *c = &x->constants[i];
    *c = (XrConstant){.offset = fb_u64(t, CONSTANT_OFFSET, 0),
                      .size = fb_u64(t, CONSTANT_SIZE, 0),
                      .key = fb_text(t, CONSTANT_KEY)};
    /* The runtime looks for a key that is there, even if it is empty. */
    if (c->key.data && (c->key.size == 0 || c->offset != UINT64_MAX))
      fail(r, "constant %u has %s", i,
           c->key.size ? "a key and a place in the blob" : "an empty key");
    else if (!c->key.data && (c->offset > x->region_size || c->size > x->region_size - c->offset))
      fail(r, "constant %u reaches beyond the constants of the blob", i);
  }
}

/* --- nodes --- */

/* The fields of the table of a form, in their order: i the next operand, V and W vectors, c how
 * long they are; the others are in `places`. Padding is listed clockwise from the top. */
static const char *const layouts[] = {
    [XR_FORM_UNARY] = "iof",
    [XR_FORM_UNARY_NUMBER] = "niof",
    [XR_FORM_BINARY] = "iiof",
    [XR_FORM_PRODUCT] = "iiiof",
    [XR_FORM_CONVOLUTION] = "trblkKsSdDGHgaAiiiof",
    [XR_FORM_POOL] = "trblkKsSdDiof",
    [XR_FORM_POSITION] = "trblkKiopf",
    [XR_FORM_TRANSPOSE] = "cViof",
    [XR_FORM_RESHAPE] = "cViof",
    [XR_FORM_SLICE] = "cVWiof",
    [XR_FORM_PAD] = "VWniof",
    [XR_FORM_RESIZE] = "zZiof",
    [XR_FORM_JOIN] = "xiiiiofi",
};

/* Where a field of 32 bits is kept. */
#define PLACE(field) offsetof(XrNode, field)
static const uint8_t places[128] = {
    ['o'] = PLACE(output),
    ['p'] = PLACE(positions),
    ['f'] = PLACE(flags),
    ['x'] = PLACE(axis),
    ['n'] = PLACE(number),
    ['z'] = PLACE(size[0]),
    ['Z'] = PLACE(size[1]),
    ['t'] = PLACE(window.before[0]),
    ['l'] = PLACE(window.before[1]),
    ['b'] = PLACE(window.after[0]),
    ['r'] = PLACE(window.after[1]),
    ['k'] = PLACE(window.kernel[0]),
    ['K'] = PLACE(window.kernel[1]),
    ['s'] = PLACE(window.stride[0]),
    ['S'] = PLACE(window.stride[1]),
    ['d'] = PLACE(window.dilation[0]),
    ['D'] = PLACE(window.dilation[1]),
    ['a'] = PLACE(window.adjust[0]),
    ['A'] = PLACE(window.adjust[1]),
    ['g'] = PLACE(window.groups),
    ['G'] = PLACE(window.group_in),
    ['H'] = PLACE(window.group_out),
};

/* Two vectors have one length. */
static void read_vectors(Reader *r, XrNode *n, FbTable t, uint16_t id, bool second) {
  uint8_t count = read_vector(r, t, id, second ? n->second : n->first,
                              second ? "its second vector" : "its vector");
  if (second && count != n->vector_count)
    fail(r, "its vectors differ in length");
  n->vector_count = count;
}

static void read_layout(Reader *r, XrNode *n, FbTable t, const char *layout) {
  uint32_t counted = 0, word;
  for (uint16_t id = 0; layout[id]; id++) {
    char letter = layout[id];
    if (letter == 'V' || letter == 'W') {
      read_vectors(r, n, t, id, letter == 'W');
      continue;
    }
    word = fb_u32(t, id, 0);
    if (letter == 'i')
      n->inputs[n->input_count++] = word;
    else if (letter == 'c')
      counted = word;
    else
      memcpy((uint8_t *)n + places[(uint8_t)letter], &word, sizeof word);
  }
  if (layout[0] == 'c' && counted != n->vector_count)
    fail(r, "its vector has %u entries, and it says %u", n->vector_count, counted);
}

static void read_fields(Reader *r, XrNode *n, FbTable t) {
  XrForm form = xr_form(n->kind);
  XrWindow *w = &n->window;
  if (form == XR_FORM_NONE) {
    fail(r, "it is of kind %u, which is not known", n->kind);
    return;
  }
  read_layout(r, n, t, layouts[form]);
  if (form == XR_FORM_JOIN)
    n->input_count = n->kind == XR_Concatenate5 ? 5 : (uint8_t)(n->kind - XR_Concatenate2 + 2);
  for (uint32_t i = 0; i < 2 && form == XR_FORM_POSITION; i++) { /* side by side */
    w->stride[i] = w->kernel[i];
    w->dilation[i] = 1;
  }
}

static void check_ids(Reader *r, const XrNode *n) {
  for (uint8_t i = 0; i < n->input_count; i++) {
    bool optional = i == 2 && xr_has(n->kind, XR_WEIGHTED);
    if (n->inputs[i] >= r->x->value_count && !(optional && n->inputs[i] == XR_NONE))
      fail(r, "operand %u is value %u, and there are %u", i, n->inputs[i], r->x->value_count);
  }
  if (n->output >= r->x->value_count)
    fail(r, "its result is value %u, and there are %u", n->output, r->x->value_count);
  if (n->positions >= r->x->value_count && n->positions != XR_NONE)
    fail(r, "its second result is value %u, and there are %u", n->positions, r->x->value_count);
  if (n->positions == XR_NONE && xr_form(n->kind) == XR_FORM_POSITION)
    fail(r, "it has no second result");
}

static void read_nodes(Reader *r, FbVector tables) {
  XrGraph *x = r->x;
  if (!tables.present)
    fail(r, "there is no list of nodes");
  x->nodes = arena_alloc(r->arena, ((size_t)tables.count + 1) * sizeof *x->nodes);
  for (uint32_t i = 0; i < tables.count && ok(r); i++) {
    FbTable t = fb_item_table(tables, i), limits = fb_table(t, NODE_LIMITS),
            fields = fb_table(t, NODE_TABLE);
    XrNode *n = &x->nodes[i];
    *n = (XrNode){.kind = fb_u8(t, NODE_KIND, 0),
                  .positions = XR_NONE,
                  .limited = fb_present(limits),
                  .low = fb_f32(limits, 0, 0),
                  .high = fb_f32(limits, 1, 0)};
    if (!fb_present(fields))
      fail(r, "it has no contents");
    read_fields(r, n, fields);
    check_ids(r, n);
    if (r->fault)
      r->fault = arena_printf(r->arena, "node %u (%s): %s", i, xr_name(n->kind), r->fault);
  }
  x->node_count = tables.count;
}

/* --- the whole --- */

/* The FlatBuffer in the blob; all of it when there is no header. */
static const char *find_tables(const uint8_t *blob, uint64_t size, XrGraph *x, uint64_t *at,
                               uint64_t *length) {
  *at = 0;
  *length = size;
  if (size >= FLATBUFFER_MIN && memcmp(blob + 4, "XH00", 4) == 0) {
    if (size < HEADER_SIZE)
      return "the header is cut off";
    uint64_t constants = load_u32(blob + 18);
    *at = load_u32(blob + 10);
    *length = load_u32(blob + 14);
    memcpy(&x->region_size, blob + 22, sizeof x->region_size);
    if (*at < HEADER_SIZE || *at > size || *length > size - *at)
      return "the FlatBuffer reaches beyond the blob, or into the header";
    if (*at % ALIGNMENT)
      return "the FlatBuffer is not aligned";
    if (constants < *at + *length || constants > size || x->region_size > size - constants)
      return "the constants reach beyond the blob, or into the FlatBuffer";
    x->region = blob + constants;
  }
  if (*length < FLATBUFFER_MIN)
    return "the FlatBuffer is too short";
  if (memcmp(blob + *at + 4, "XN01", 4) != 0)
    return "the FlatBuffer does not hold the identifier XN01";
  return NULL;
}

const char *xr_read(const uint8_t *blob, uint64_t size, Arena *arena, XrGraph *x) {
  *x = (XrGraph){0};
  uint64_t at, length;
  const char *fault = find_tables(blob, size, x, &at, &length);
  if (fault)
    return fault;
  Reader r = {.fb = fb_reader(blob + at, length), .arena = arena, .x = x};
  FbTable root = fb_root(&r.fb);
  (void)fb_text(root, GRAPH_VERSION);
  (void)fb_vector(root, GRAPH_INPUTS, 4);
  (void)fb_vector(root, GRAPH_OUTPUTS, 4);
  x->external_count = fb_u32(root, GRAPH_EXTERNALS, 0);
  if (x->external_count > XR_MAX_EXTERNALS)
    fail(&r, "it has %u arguments, more than %d", x->external_count, XR_MAX_EXTERNALS);
  read_constants(&r, fb_tables(root, GRAPH_CONSTANTS));
  read_values(&r, fb_tables(root, GRAPH_VALUES));
  if (ok(&r))
    read_nodes(&r, fb_tables(root, GRAPH_NODES));
  if (r.fb.fault)
    return arena_printf(arena, "its FlatBuffer is damaged at byte %u: %s", r.fb.fault_at,
                        r.fb.fault);
  return r.fault;
}

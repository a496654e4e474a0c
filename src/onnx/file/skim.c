/* The first pass over a model (see skim.h).
 *
 * Why not protobuf-c at once: it copies every byte field into the heap, keeps unknown fields,
 * merges messages given twice, cuts strings at a NUL byte and recurses as deep as the file says.
 * Here a file is walked once with the descriptors that protoc-c made of schema/onnx.proto; what
 * passes is written to a thin copy in which each message's length takes five bytes (a padded
 * varint), so that it can be filled in when the message is complete. Weights are skipped by their
 * length: their pages are never touched. The work is linear in the bytes that are not weights. */
#include "onnx/file/skim.h"

enum {
  FIELD_LIMIT = 32, /* all field numbers of the schema but TensorProto.span are below */
  TYPE_LIMIT = 32,
  LENGTH_SIZE = 5,
  VARINT_MAX = 10,
  SPAN_FIELD = 1000, /* TensorProto.span */
  NODE_METADATA = 9, /* NodeProto.metadata_props */
  OUT_START_MIN = 1 << 20,
  OUT_START_MAX = 64 << 20
};

/* What protobuf-c allocates is estimated and limited, since a file of empty messages would take a
 * hundred times its size. Real models take 3 to 12 times the bytes that are not weights. */
enum {
  DECODED_FREE = 64 << 20,
  DECODED_RATIO = 32,
  DECODED_SCANNED_FIELD = 64,
  DECODED_OVERHEAD = 24
};

typedef struct SkimType SkimType;

typedef struct SkimField {
  const ProtobufCFieldDescriptor *descriptor; /* NULL: unknown, left out */
  SkimType *child;                            /* of message fields */
  uint32_t once; /* bit of fields that may come once, shared by the members of a oneof; else 0 */
  WireType wire; /* of one value */
  bool packable; /* repeated numbers may also come as one WIRE_BYTES */
} SkimField;

struct SkimType {
  const ProtobufCMessageDescriptor *descriptor;
  SkimField fields[FIELD_LIMIT];
};

typedef struct SkimDepth {
  uint32_t messages, subgraphs;
} SkimDepth;

typedef struct Skim {
  const uint8_t *base;
  uint64_t size;
  Arena *arena, *scratch;
  DiagSink *sink;
  DiagPlace place;
  SkimType *types;
  uint32_t type_count;
  uint8_t *out;
  size_t out_size, out_capacity;
  OnnxTensorSpan *spans;
  uint32_t span_count;
  uint64_t decoded; /* estimate of what protobuf-c will allocate */
  uint64_t skipped; /* bytes left out */
  Status status;    /* of the fault that ended the walk */
} Skim;

/* --- the types, from the descriptors --- */

static WireType wire_of(ProtobufCType type) {
  switch ((int)type) {
  case PROTOBUF_C_TYPE_FLOAT:
    return WIRE_FIXED32;
  case PROTOBUF_C_TYPE_STRING:
  case PROTOBUF_C_TYPE_BYTES:
  case PROTOBUF_C_TYPE_MESSAGE:
    return WIRE_BYTES;
  case PROTOBUF_C_TYPE_INT32:
  case PROTOBUF_C_TYPE_INT64:
  case PROTOBUF_C_TYPE_UINT32:
  case PROTOBUF_C_TYPE_ENUM:
    return WIRE_VARINT;
  default:
    BUG("schema/onnx.proto has a field of type %d, which skim.c does not know", (int)type);
  }
}

/* A bit of its own for each singular field; one for all members of a oneof, which share the case's
 * offset. */
static uint32_t once_bit(const ProtobufCMessageDescriptor *message, unsigned index) {
  const ProtobufCFieldDescriptor *field = &message->fields[index];
  if (field->label == PROTOBUF_C_LABEL_REPEATED)
    return 0;
  unsigned first = index;
  if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
    for (first = 0; !(message->fields[first].flags & PROTOBUF_C_FIELD_FLAG_ONEOF) ||
                    message->fields[first].quantifier_offset != field->quantifier_offset;)
      first++;
  return UINT32_C(1) << first;
}

static SkimType *skim_type(Skim *s, const ProtobufCMessageDescriptor *message) {
  for (uint32_t i = 0; i < s->type_count; i++)
    if (s->types[i].descriptor == message)
      return &s->types[i];
  if (s->type_count == TYPE_LIMIT || message->n_fields > 32)
    BUG("schema/onnx.proto outgrew the tables of skim.c at %s", message->name);
  SkimType *type = &s->types[s->type_count++];
  type->descriptor = message;
  for (unsigned i = 0; i < message->n_fields; i++) {
    const ProtobufCFieldDescriptor *field = &message->fields[i];
    if (field->id == SPAN_FIELD)
      continue;
    if (field->id >= FIELD_LIMIT)
      BUG("schema/onnx.proto outgrew the tables of skim.c at %s.%s", message->name, field->name);
    SkimField *to = &type->fields[field->id];
    to->descriptor = field;
    to->wire = wire_of(field->type);
    to->packable = field->label == PROTOBUF_C_LABEL_REPEATED && to->wire != WIRE_BYTES;
    to->once = once_bit(message, i);
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
      to->child = skim_type(s, field->descriptor);
  }
  return type;
}

/* --- faults --- */

const char *onnx_other_format(const uint8_t *data, uint64_t size) {
  static const struct {
    uint32_t offset;
    const char *magic, *hint;
  } formats[] = {
      {0, "version https://git-lfs",
       "this is a Git LFS pointer; fetch the model itself with: git lfs pull"},
      {0, "PK\003\004",
       "this is a zip archive; unpack it, or export the PyTorch model with torch.onnx.export"},
      {4, "ORTM", "this is ONNX Runtime's own format; use the .onnx file it was made from"},
      {4, "TFL3",
       "this is a TensorFlow Lite model; convert it to ONNX first, for example with tf2onnx"},
      {4, "FT01",
       "this is a file of tensors (.ptd): give it to its program: --data FILE.ptd; 'etc inspect' "
       "shows what is in it"},
      {8, "{\"", "this is a safetensors file, weights without a model; export the model to ONNX"},
      {4, "ET12", "this is an ExecuTorch program already; see etc inspect"},
      {0, "\x89HDF",
       "this is an HDF5 file; convert the Keras model to ONNX first, for example with tf2onnx"},
      {0, "\x1f\x8b", "this is compressed by gzip; unpack it with gunzip"},
      {0, "\x93NUMPY", "this is a NumPy array, not a model"},
      {0, "GGUF", "this is a GGUF file of llama.cpp; etc needs an ONNX export of the model"},
      {0, "<", "this looks like a web page or XML, not like a downloaded model"},
      {0, "{", "this looks like JSON; etc reads ONNX in its binary form"},
      {0, "ir_version:", "this is ONNX as text; save it in the binary form with onnx.save"},
  };
  for (size_t i = 0; i < COUNT_OF(formats); i++) {
    size_t length = strlen(formats[i].magic);
    if (size >= formats[i].offset + length &&
        memcmp(data + formats[i].offset, formats[i].magic, length) == 0)
      return formats[i].hint;
  }
  return NULL;
}

static const char *short_name(const ProtobufCMessageDescriptor *message) {
  return strncmp(message->name, "onnx.", 5) == 0 ? message->name + 5 : message->name;
}

/* The length of the first line, or of what is shown of it, when the file begins as text; 0. */
static size_t text_line(const uint8_t *data, uint64_t size) {
  enum { LOOKED_AT = 64, SHOWN = 32 };
  size_t line = 0, most = size < LOOKED_AT ? (size_t)size : LOOKED_AT;
  for (size_t i = 0; i < most; i++)
    if ((data[i] < ' ' && !memchr("\t\r\n", data[i], 3)) || data[i] >= 0x7f)
      return 0;
  while (line < most && line < SHOWN && data[line] >= ' ')
    line++;
  return line;
}

/* Always false, so that callers can return it. */
ETC_PRINTF(5, 6)
static bool fault(Skim *s, DiagCode code, const SkimType *type, const uint8_t *at,
                  const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *what = arena_vprintf(s->scratch, format, args);
  va_end(args);
  Diag *d = diag_begin(s->sink, code, s->place);
  what = arena_printf(s->scratch, "byte %llu, in %s: %s", (unsigned long long)(at - s->base),
                      short_name(type->descriptor), what);
  size_t line = text_line(s->base, s->size);
  const char *hint = onnx_other_format(s->base, s->size);
  if (line)
    diag_message(d, "this is not an ONNX model: it begins with the text \"%.*s\"", (int)line,
                 (const char *)s->base);
  else if (hint)
    diag_message(d, "this is not an ONNX model");
  else
    diag_message(d, "not a readable ONNX file: %s", what);
  if ((line || hint) && s->sink->verbose)
    diag_note(d, "%s", what);
  if (hint)
    diag_hint(d, "%s", hint);
  s->status = diag_end(d);
  return false;
}

/* --- output --- */

static uint8_t *reserve(Skim *s, size_t size) {
  if (size > s->out_capacity - s->out_size) {
    size_t capacity = s->out_capacity;
    while (size > capacity - s->out_size)
      capacity *= 2;
    s->out = arena_grow(s->scratch, s->out, s->out_capacity, capacity);
    s->out_capacity = capacity;
  }
  uint8_t *at = s->out + s->out_size;
  s->out_size += size;
  return at;
}

static void put_varint(Skim *s, uint64_t value) {
  do {
    *reserve(s, 1) = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    value >>= 7;
  } while (value);
}

static void put_padded_length(uint8_t *at, uint64_t value) {
  for (int i = 0; i < LENGTH_SIZE; i++)
    at[i] = (uint8_t)((value >> (7 * i) & 0x7f) | (i + 1 < LENGTH_SIZE ? 0x80 : 0));
}

static void put_span(Skim *s, const uint8_t *body, uint64_t size) {
  s->spans = arena_push(s->arena, s->spans, s->span_count, sizeof *s->spans);
  put_varint(s, SPAN_FIELD << 3 | WIRE_VARINT);
  put_varint(s, s->span_count);
  s->spans[s->span_count++] = (OnnxTensorSpan){.offset = (uint64_t)(body - s->base), .size = size};
}

/* --- the walk --- */

static bool check_packed(Skim *s, const SkimType *type, const SkimField *known,
                         const WireField *field) {
  uint64_t count = field->size / 4;
  WireFault wire = WIRE_OK;
  if (known->wire == WIRE_VARINT)
    wire = wire_count_varints(field->payload, field->size, &count);
  else if (field->size % 4 != 0) /* floats, the only fixed width of the schema */
    wire = WIRE_TRUNCATED;
  if (wire != WIRE_OK)
    return fault(s, onnx_wire_code(wire), type, field->payload, "packed field '%s' has %s",
                 known->descriptor->name, wire_fault_text(wire));
  s->decoded += count * sizeof(int64_t);
  return true;
}

static bool check_known(Skim *s, const SkimType *type, const SkimField *known,
                        const WireField *field, uint32_t *seen) {
  const char *name = known->descriptor->name;
  if (known->packable && field->type == WIRE_BYTES)
    return check_packed(s, type, known, field);
  if (field->type != known->wire)
    return fault(s, DIAG_PROTO_WIRE, type, field->start,
                 "field '%s' has wire type %d instead of %d", name, (int)field->type,
                 (int)known->wire);
  if (*seen & known->once)
    return fault(s, DIAG_PROTO_WIRE, type, field->start,
                 "field '%s' is given twice, or together with one that excludes it", name);
  *seen |= known->once;
  if (known->wire == WIRE_BYTES && !known->child) {
    if (known->descriptor->type == PROTOBUF_C_TYPE_STRING && field->size &&
        memchr(field->payload, 0, field->size))
      return fault(s, DIAG_PROTO_WIRE, type, field->payload, "string '%s' has a NUL byte", name);
    s->decoded += field->size + DECODED_OVERHEAD;
  }
  return true;
}

/* Whether an unknown field is TensorProto's data; its wire type is checked then. *is_data is set to
 * true, or left. */
static bool check_tensor_data(Skim *s, const SkimType *type, const WireField *field,
                              bool *is_data) {
  static const struct {
    uint32_t number;
    WireType wire;
  } fields[] = {{TENSOR_FLOAT_DATA, WIRE_FIXED32}, {TENSOR_DOUBLE_DATA, WIRE_FIXED64},
                {TENSOR_INT32_DATA, WIRE_VARINT},  {TENSOR_INT64_DATA, WIRE_VARINT},
                {TENSOR_UINT64_DATA, WIRE_VARINT}, {TENSOR_STRING_DATA, WIRE_BYTES},
                {TENSOR_RAW_DATA, WIRE_BYTES}};
  for (size_t i = 0; i < COUNT_OF(fields); i++) {
    if (field->number != fields[i].number)
      continue;
    if (field->type != fields[i].wire && field->type != WIRE_BYTES)
      return fault(s, DIAG_PROTO_WIRE, type, field->start,
                   "data field %u has wire type %d instead of %d", field->number, (int)field->type,
                   (int)fields[i].wire);
    *is_data = true;
  }
  return true;
}

static bool skim_message(Skim *s, const SkimType *type, WireReader reader, SkimDepth depth);

static bool skim_child(Skim *s, const SkimType *type, const SkimField *known,
                       const WireField *field, SkimDepth depth) {
  depth.messages++;
  /* The main graph counts as well, hence the 1. Functions have no graph of their own. */
  depth.subgraphs += known->child->descriptor == &onnx__graph_proto__descriptor;
  if (depth.subgraphs > SKIM_SUBGRAPH_DEPTH_MAX + 1)
    return fault(s, DIAG_PROTO_DEPTH, type, field->start, "subgraphs nest more than %d deep",
                 SKIM_SUBGRAPH_DEPTH_MAX);
  if (depth.messages > SKIM_MESSAGE_DEPTH_MAX)
    return fault(s, DIAG_PROTO_DEPTH, type, field->start, "messages nest more than %d deep",
                 SKIM_MESSAGE_DEPTH_MAX);
  put_varint(s, (uint64_t)field->number << 3 | WIRE_BYTES);
  reserve(s, LENGTH_SIZE);
  size_t start = s->out_size;
  if (!skim_message(s, known->child, (WireReader){field->payload, field->payload + field->size},
                    depth))
    return false;
  put_padded_length(s->out + start - LENGTH_SIZE, s->out_size - start);
  s->decoded += known->child->descriptor->sizeof_message + DECODED_OVERHEAD + DECODED_SCANNED_FIELD;
  return true;
}

/* Of the metadata of a node only two keys are read (origin.c), which exporters write first in their
 * entries; the rest, often most of a file, is left out unread. */
static bool is_unread(const SkimType *type, const WireField *field) {
  static const char wanted[] = "\x0a\x1apkg.torch.onnx."; /* field 1, of 26 bytes */
  const size_t size = sizeof wanted - 1;
  return type->descriptor == &onnx__node_proto__descriptor && field->number == NODE_METADATA &&
         (field->type != WIRE_BYTES || field->size < size ||
          memcmp(field->payload, wanted, size) != 0);
}

/* One field. *weights is set when it is data of a tensor. */
static bool skim_field(Skim *s, const SkimType *type, const WireField *field, SkimDepth depth,
                       uint32_t *seen, bool *weights) {
  const SkimField *known = field->number < FIELD_LIMIT ? &type->fields[field->number] : NULL;
  uint64_t size = (uint64_t)(field->payload - field->start) + field->size;
  if (known && known->descriptor && !is_unread(type, field)) {
    if (!check_known(s, type, known, field, seen))
      return false;
    if (known->child)
      return skim_child(s, type, known, field, depth);
    memcpy(reserve(s, size), field->start, size);
    s->decoded += DECODED_SCANNED_FIELD;
    return true;
  }
  s->skipped += size;
  if (type->descriptor == &onnx__tensor_proto__descriptor)
    return check_tensor_data(s, type, field, weights);
  return true;
}

static bool skim_message(Skim *s, const SkimType *type, WireReader reader, SkimDepth depth) {
  const uint8_t *body = reader.next;
  uint32_t seen = 0;
  bool weights = false;
  while (reader.next != reader.end) {
    WireField field;
    WireFault wire = wire_next(&reader, &field);
    if (wire != WIRE_OK)
      return fault(s, onnx_wire_code(wire), type, reader.next, "%s", wire_fault_text(wire));
    if (!skim_field(s, type, &field, depth, &seen, &weights))
      return false;
  }
  if (weights)
    put_span(s, body, (uint64_t)(reader.end - body));
  return true;
}

DiagCode onnx_wire_code(WireFault fault) {
  return fault == WIRE_TRUNCATED || fault == WIRE_LENGTH_PAST_END ? DIAG_PROTO_TRUNCATED
                                                                  : DIAG_PROTO_WIRE;
}

static bool check_memory(Skim *s, const SkimType *model) {
  if (s->out_size > INT32_MAX)
    return fault(s, DIAG_PROTO_PARSE, model, s->base, "more than 2 GiB besides the weights");
  if (s->decoded > DECODED_FREE + (s->size - s->skipped) * DECODED_RATIO)
    return fault(s, DIAG_PROTO_PARSE, model, s->base,
                 "messages so empty that reading them would take %llu MiB",
                 (unsigned long long)(s->decoded >> 20));
  return true;
}

Status onnx_skim(OnnxSkim *out, Arena *arena, Arena *scratch, DiagSink *sink, DiagPlace place,
                 const MappedFile *file) {
  const uint8_t *data = file->data;
  uint64_t size = file->size;
  Skim s = {
      .base = data, .size = size, .arena = arena, .scratch = scratch, .sink = sink, .place = place};
  s.types = ARENA_ARRAY(scratch, SkimType, TYPE_LIMIT);
  const SkimType *model = skim_type(&s, &onnx__model_proto__descriptor);
  /* Room for all of a usual model; what is not written to costs no memory. */
  int64_t room = max_i64(OUT_START_MIN, min_i64((int64_t)size, OUT_START_MAX) / 2 * 3);
  s.out_capacity = (size_t)room;
  s.out = arena_alloc(scratch, s.out_capacity);
  if (!skim_message(&s, model, (WireReader){data, data + size}, (SkimDepth){1, 0}) ||
      !check_memory(&s, model))
    return s.status;
  *out = (OnnxSkim){s.out, s.out_size, s.spans, s.span_count};
  return STATUS_OK;
}

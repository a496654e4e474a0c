/* Writes protobuf messages byte by byte, so that tests can make ONNX models that no ONNX library
 * would write.
 *
 *   Proto graph = {0}, model = {0};
 *   proto_string(&graph, 2, "g");
 *   proto_int(&model, 1, 8);
 *   proto_message(&model, 7, &graph);        // graph is emptied
 *   ... model.data, model.size ...
 *   proto_release(&model); */
#ifndef ETC_TESTS_PROTO_WRITER_H
#define ETC_TESTS_PROTO_WRITER_H

#include "support/strbuf.h"

typedef StrBuf Proto;

static inline void proto_release(Proto *p) { strbuf_release(p); }

static inline void proto_raw(Proto *p, const void *data, size_t size) {
  if (size)
    strbuf_append(p, (StrView){data, size});
}
static inline void proto_byte(Proto *p, unsigned byte) { strbuf_append_char(p, (char)byte); }

static inline void proto_varint(Proto *p, uint64_t value) {
  for (; value > 0x7f; value >>= 7)
    proto_byte(p, (value & 0x7f) | 0x80);
  proto_byte(p, (unsigned)value);
}
static inline void proto_tag(Proto *p, uint32_t field, unsigned wire) {
  proto_varint(p, (uint64_t)field << 3 | wire);
}

static inline void proto_int(Proto *p, uint32_t field, int64_t value) {
  proto_tag(p, field, 0);
  proto_varint(p, (uint64_t)value);
}
static inline void proto_float(Proto *p, uint32_t field, float value) {
  proto_tag(p, field, 5);
  proto_raw(p, &value, sizeof value);
}
static inline void proto_double(Proto *p, uint32_t field, double value) {
  proto_tag(p, field, 1);
  proto_raw(p, &value, sizeof value);
}
static inline void proto_bytes(Proto *p, uint32_t field, const void *data, size_t size) {
  proto_tag(p, field, 2);
  proto_varint(p, size);
  proto_raw(p, data, size);
}
static inline void proto_string(Proto *p, uint32_t field, const char *text) {
  proto_bytes(p, field, text, strlen(text));
}
/* Appends child as a field and releases it. */
static inline void proto_message(Proto *p, uint32_t field, Proto *child) {
  proto_bytes(p, field, child->data, child->size);
  strbuf_release(child);
}
/* Packed varints. */
static inline void proto_ints(Proto *p, uint32_t field, const int64_t *values, size_t count) {
  Proto packed = {0};
  for (size_t i = 0; i < count; i++)
    proto_varint(&packed, (uint64_t)values[i]);
  proto_message(p, field, &packed);
}

/* --- ONNX
 * ------------------------------------------------------------------------------------------ */

/* Appends an opset import to a ModelProto (field 8). */
static inline void proto_import(Proto *model, const char *domain, int64_t version) {
  Proto import = {0};
  proto_string(&import, 1, domain);
  proto_int(&import, 2, version);
  proto_message(model, 8, &import);
}
/* A ModelProto of IR version 8 and opset 17 around a GraphProto, which is released. */
static inline Proto proto_model(Proto *graph) {
  Proto model = {0};
  proto_int(&model, 1, 8);
  proto_import(&model, "", 17);
  proto_message(&model, 7, graph);
  return model;
}
/* The start of a TensorProto: dims, data_type, name. */
static inline Proto proto_tensor(int32_t onnx_dtype, const int64_t *dims, size_t rank,
                                 const char *name) {
  Proto tensor = {0};
  for (size_t i = 0; i < rank; i++)
    proto_int(&tensor, 1, dims[i]);
  proto_int(&tensor, 2, onnx_dtype);
  proto_string(&tensor, 8, name);
  return tensor;
}
/* Appends a key and value of external data (field 13) to a TensorProto. */
static inline void proto_external(Proto *tensor, const char *key, const char *value) {
  Proto entry = {0};
  proto_string(&entry, 1, key);
  proto_string(&entry, 2, value);
  proto_message(tensor, 13, &entry);
}

#endif

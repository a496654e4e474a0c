/* The wire format of ONNX files: what is read, and every class of bytes that must be refused. */
#include "unit.h"

#include "onnx/file/model.h"
#include "onnx/file/skim.h"
#include "onnx/file/wire.h"
#include "proto_writer.h"

/* --- wire.h
 * ---------------------------------------------------------------------------------------- */

static WireFault read_varint(const char *bytes, size_t size, unsigned max, uint64_t *value) {
  WireReader reader = {(const uint8_t *)bytes, (const uint8_t *)bytes + size};
  return wire_varint(&reader, max, value);
}

static void test_varint(void **state) {
  uint64_t value = 7;
  assert_int_equal(read_varint("\x00", 1, 10, &value), WIRE_OK);
  assert_int_equal(value, 0);
  assert_int_equal(read_varint("\xac\x02", 2, 10, &value), WIRE_OK);
  assert_int_equal(value, 300);
  assert_int_equal(read_varint("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, 10, &value),
                   WIRE_OK);
  assert_true(value == UINT64_MAX);
  assert_int_equal(read_varint("\x80\x80\x80\x80\x00", 5, 5, &value), WIRE_OK);
  assert_int_equal(value, 0);
}

static void test_varint_faults(void **state) {
  uint64_t value;
  assert_int_equal(read_varint("", 0, 10, &value), WIRE_TRUNCATED);
  assert_int_equal(read_varint("\x80\x80", 2, 10, &value), WIRE_TRUNCATED);
  assert_int_equal(read_varint("\x80\x80\x80\x80\x80\x00", 6, 5, &value), WIRE_VARINT_TOO_LONG);
  assert_int_equal(read_varint("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, 10, &value),
                   WIRE_VARINT_TOO_LONG);
  assert_int_equal(read_varint("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11, 10, &value),
                   WIRE_VARINT_TOO_LONG);
}

static void test_count_varints(void **state) {
  uint64_t count = 0;
  assert_int_equal(wire_count_varints((const uint8_t *)"\x01\x80\x01\x00", 4, &count), WIRE_OK);
  assert_int_equal(count, 3);
  assert_int_equal(wire_count_varints(NULL, 0, &count), WIRE_OK);
  assert_int_equal(count, 0);
  assert_int_equal(wire_count_varints((const uint8_t *)"\x01\x80", 2, &count), WIRE_TRUNCATED);
  const char *eleven = "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01";
  assert_int_equal(wire_count_varints((const uint8_t *)eleven, 11, &count), WIRE_VARINT_TOO_LONG);
}

static void test_fields(void **state) {
  Proto p = {0};
  proto_int(&p, 1, -1);
  proto_float(&p, 2, 1.5f);
  proto_double(&p, 3, 2.5);
  proto_string(&p, 4000, "abc");
  WireReader reader = {(const uint8_t *)p.data, (const uint8_t *)p.data + p.size};
  WireField field;
  assert_int_equal(wire_next(&reader, &field), WIRE_OK);
  assert_true(field.number == 1 && field.type == WIRE_VARINT && field.varint == UINT64_MAX);
  assert_true(field.size == 10 && field.payload == field.start + 1);
  assert_int_equal(wire_next(&reader, &field), WIRE_OK);
  assert_true(field.number == 2 && field.type == WIRE_FIXED32 && field.size == 4);
  assert_int_equal(wire_next(&reader, &field), WIRE_OK);
  assert_true(field.number == 3 && field.type == WIRE_FIXED64 && field.size == 8);
  assert_int_equal(wire_next(&reader, &field), WIRE_OK);
  assert_true(field.number == 4000 && field.type == WIRE_BYTES && field.size == 3);
  assert_memory_equal(field.payload, "abc", 3);
  assert_true(reader.next == reader.end);
  proto_release(&p);
}

/* --- whole models
 * ---------------------------------------------------------------------------------- */

/* Opens the bytes, which must be refused with the code and a message that has the part. Releases p.
 */
static void refuse(Proto *p, DiagCode code, const char *part) {
  Capture c;
  capture_init(&c);
  OnnxModel m;
  Status status =
      onnx_model_open_bytes(&m, &c.sink, "m.onnx", (const uint8_t *)strbuf_cstr(p), p->size);
  assert_int_not_equal(status, STATUS_OK);
  assert_int_equal(c.sink.errors, 1);
  assert_string_equal(diag_row(c.sink.first_error)->id, diag_row(code)->id);
  assert_contains(strbuf_cstr(&c.text), part);
  assert_contains(strbuf_cstr(&c.text), "m.onnx");
  assert_null(m.proto);
  onnx_model_close(&m);
  capture_release(&c);
  proto_release(p);
}

static void accept_model(Proto *p, OnnxModel *m) {
  Capture c;
  capture_init(&c);
  Status status = onnx_model_open_bytes(m, &c.sink, "m.onnx", (const uint8_t *)p->data, p->size);
  if (status != STATUS_OK)
    fail_msg("%s", strbuf_cstr(&c.text));
  assert_int_equal(c.text.size, 0);
  capture_release(&c);
}

static Proto small_graph(void) {
  Proto graph = {0}, node = {0};
  proto_string(&node, 1, "x");
  proto_string(&node, 2, "y");
  proto_string(&node, 4, "Relu");
  proto_message(&graph, 1, &node);
  proto_string(&graph, 2, "g");
  return graph;
}

/* The graph with bytes appended, as a model. */
static Proto with_graph_bytes(const char *bytes, size_t size) {
  Proto graph = small_graph();
  proto_raw(&graph, bytes, size);
  return proto_model(&graph);
}

static void test_small_model(void **state) {
  Proto graph = small_graph(), model = proto_model(&graph);
  OnnxModel m;
  accept_model(&model, &m);
  assert_int_equal(m.opset, 17);
  assert_int_equal(m.ir_version, 8);
  assert_int_equal(m.proto->graph->n_node, 1);
  const Onnx__NodeProto *node = m.proto->graph->node[0];
  assert_string_equal(node->op_type, "Relu");
  assert_null(node->name);
  assert_int_equal(onnx_text(node->name).size, 0);
  onnx_model_close(&m);
  onnx_model_close(&m);
  proto_release(&model);
}

static void test_every_prefix(void **state) {
  Proto graph = small_graph(), model = proto_model(&graph);
  for (size_t size = 0; size < model.size; size++) {
    Capture c;
    capture_init(&c);
    uint8_t *copy = xrealloc(NULL, size ? size : 1); /* so that a read past the end is seen */
    memcpy(copy, model.data, size);
    OnnxModel m;
    assert_int_not_equal(onnx_model_open_bytes(&m, &c.sink, "m", copy, size), STATUS_OK);
    assert_int_equal(c.sink.errors, 1);
    xfree(copy);
    capture_release(&c);
  }
  proto_release(&model);
}

static void test_unknown_fields_are_dropped(void **state) {
  Proto graph = small_graph(), props = {0};
  proto_string(&graph, 10, "documentation");
  proto_string(&props, 1, "key");
  proto_message(&graph, 16, &props);
  proto_int(&graph, 123456, 1);
  Proto model = proto_model(&graph);
  OnnxModel m;
  accept_model(&model, &m);
  assert_int_equal(m.proto->base.n_unknown_fields, 0);
  assert_int_equal(m.proto->graph->base.n_unknown_fields, 0);
  assert_int_equal(m.proto->graph->n_node, 1);
  onnx_model_close(&m);
  proto_release(&model);
}

/* Repeated numbers may come packed, one by one, or mixed; singular ones as any varint of up to ten
 * bytes. */
static void test_encodings(void **state) {
  Proto graph = small_graph(), node = {0}, attribute = {0};
  proto_string(&attribute, 1, "a");
  proto_int(&attribute, 8, 5);
  proto_ints(&attribute, 8, (const int64_t[]){-1, 300}, 2);
  proto_float(&attribute, 7, 1.5f);
  proto_bytes(&attribute, 7, "\0\0\0\x40\0\0\x40\x40", 8); /* 2, 3 */
  proto_raw(&attribute, "\xa0\x01\x87\x80\x00", 5);        /* type = 7, padded to three bytes */
  proto_message(&node, 5, &attribute);
  proto_message(&graph, 1, &node);
  Proto model = proto_model(&graph);
  OnnxModel m;
  accept_model(&model, &m);
  const Onnx__AttributeProto *a = m.proto->graph->node[1]->attribute[0];
  assert_int_equal(a->n_ints, 3);
  assert_true(a->ints[0] == 5 && a->ints[1] == -1 && a->ints[2] == 300);
  assert_int_equal(a->n_floats, 3);
  assert_true(a->floats[0] == 1.5f && a->floats[1] == 2.0f && a->floats[2] == 3.0f);
  assert_int_equal(a->type, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
  onnx_model_close(&m);
  proto_release(&model);
}

#define REFUSE_BYTES(bytes, code, part)                                                            \
  do {                                                                                             \
    Proto p = with_graph_bytes(bytes, sizeof(bytes) - 1);                                          \
    refuse(&p, code, part);                                                                        \
  } while (0)

static void test_truncated(void **state) {
  REFUSE_BYTES("\x08", DIAG_PROTO_TRUNCATED, "cut off");
  REFUSE_BYTES("\x08\x80", DIAG_PROTO_TRUNCATED, "cut off");
  REFUSE_BYTES("\xf8", DIAG_PROTO_TRUNCATED, "cut off");
  REFUSE_BYTES("\xf9\x01\x01\x02", DIAG_PROTO_TRUNCATED, "cut off");
  REFUSE_BYTES("\xfd\x01\x01\x02", DIAG_PROTO_TRUNCATED, "cut off");
}

static void test_long_varints(void **state) {
  REFUSE_BYTES("\xf8\x07\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", DIAG_PROTO_WIRE,
               "more bytes than protobuf allows");
  REFUSE_BYTES("\xf8\x80\x80\x80\x80\x00\x01", DIAG_PROTO_WIRE,
               "more bytes"); /* tag of six bytes */
  REFUSE_BYTES("\x12\x81\x80\x80\x80\x80\x00g", DIAG_PROTO_WIRE, "more bytes");
  REFUSE_BYTES("\xf8\xff\xff\xff\x7f\x01", DIAG_PROTO_WIRE, "more bytes"); /* tag beyond 32 bits */
}

static void test_length_past_end(void **state) {
  REFUSE_BYTES("\x12\x05gggg", DIAG_PROTO_TRUNCATED, "past the end of its message");
  REFUSE_BYTES("\x12\xff\xff\xff\xff\x0fg", DIAG_PROTO_TRUNCATED, "past the end of its message");
  REFUSE_BYTES("\x0a\x02\x22\x05", DIAG_PROTO_TRUNCATED,
               "NodeProto"); /* beyond the node, inside the file */
  REFUSE_BYTES("\xfa\x07\x05x", DIAG_PROTO_TRUNCATED,
               "past the end"); /* an unknown field as well */
}

static void test_wire_types(void **state) {
  REFUSE_BYTES("\x08\x01", DIAG_PROTO_WIRE, "field 'node' has wire type 0 instead of 2");
  REFUSE_BYTES("\x15gggg", DIAG_PROTO_WIRE, "field 'name' has wire type 5 instead of 2");
  REFUSE_BYTES("\x0a\x05\x2a\x03\x1a\x01i", DIAG_PROTO_WIRE,
               "field 'i' has wire type 2 instead of 0");
  REFUSE_BYTES("\x2a\x02\x48\x01", DIAG_PROTO_WIRE, "data field 9 has wire type 0 instead of 2");
  REFUSE_BYTES("\x2a\x02\x20\x01", DIAG_PROTO_WIRE, "data field 4 has wire type 0 instead of 5");
  REFUSE_BYTES("\x0b\x0c", DIAG_PROTO_WIRE, "a group");
  REFUSE_BYTES("\xfc\x07", DIAG_PROTO_WIRE, "a group");
  REFUSE_BYTES("\xfe\x07\x01", DIAG_PROTO_WIRE, "a wire type that protobuf does not define");
  REFUSE_BYTES("\x02\x01g", DIAG_PROTO_WIRE, "field number 0");
}

static void test_packed(void **state) {
  REFUSE_BYTES("\x2a\x04\x0a\x02\x01\x80", DIAG_PROTO_TRUNCATED, "packed field 'dims'");
  REFUSE_BYTES("\x0a\x08\x2a\x06\x3a\x04\x01\x02\x03", DIAG_PROTO_TRUNCATED, "past the end");
  REFUSE_BYTES("\x0a\x07\x2a\x05\x3a\x03\x01\x02\x03", DIAG_PROTO_TRUNCATED,
               "packed field 'floats'");
}

static void test_doubled_fields(void **state) {
  REFUSE_BYTES("\x12\x01h", DIAG_PROTO_WIRE, "field 'name' is given twice");
  REFUSE_BYTES("\x0a\x04\x2a\x02\x2a\x00\x0a\x06\x2a\x04\x2a\x00\x2a\x00", DIAG_PROTO_WIRE,
               "field 't' is given twice");
  /* Both members of Dimension's oneof: input { type { tensor_type { shape { dim { ... } } } } } */
  REFUSE_BYTES("\x5a\x0d\x12\x0b\x0a\x09\x12\x07\x0a\x05\x08\x01\x12\x01N", DIAG_PROTO_WIRE,
               "field 'dim_param' is given twice, or together with one that excludes it");
  Proto graph = small_graph(), again = small_graph(), model = proto_model(&graph);
  proto_message(&model, 7, &again);
  refuse(&model, DIAG_PROTO_WIRE, "field 'graph' is given twice");
}

static void test_nul_in_string(void **state) {
  REFUSE_BYTES("\x0a\x05\x0a\x03x\0y", DIAG_PROTO_WIRE, "string 'input' has a NUL byte");
}

/* --- depth
 * ----------------------------------------------------------------------------------------- */

/* A model whose graph has levels of subgraphs below it. */
static Proto nested_graphs(int levels) {
  Proto graph = small_graph();
  for (int i = 0; i < levels; i++) {
    Proto attribute = {0}, node = {0}, outer = {0};
    proto_message(&attribute, 6, &graph);
    proto_message(&node, 5, &attribute);
    proto_message(&outer, 1, &node);
    graph = outer;
  }
  return proto_model(&graph);
}

static void test_subgraph_depth(void **state) {
  Proto p = nested_graphs(SKIM_SUBGRAPH_DEPTH_MAX - 1);
  OnnxModel m;
  accept_model(&p, &m);
  onnx_model_close(&m);
  proto_release(&p);
  p = nested_graphs(SKIM_SUBGRAPH_DEPTH_MAX);
  accept_model(&p, &m);
  onnx_model_close(&m);
  proto_release(&p);
  p = nested_graphs(SKIM_SUBGRAPH_DEPTH_MAX + 1);
  refuse(&p, DIAG_PROTO_DEPTH, "subgraphs nest more than 32 deep");
}

/* A graph input whose type is a sequence of a sequence of ... : ModelProto, GraphProto,
 * ValueInfoProto and two messages a level. */
static Proto nested_types(int levels) {
  Proto type = {0};
  for (int i = 0; i < levels; i++) {
    Proto sequence = {0}, outer = {0};
    proto_message(&sequence, 1, &type);
    proto_message(&outer, 4, &sequence);
    type = outer;
  }
  Proto graph = small_graph(), input = {0};
  proto_message(&input, 2, &type);
  proto_message(&graph, 11, &input);
  return proto_model(&graph);
}

static void test_message_depth(void **state) {
  Proto p = nested_types(48); /* 3 + 1 + 96 = 100 */
  OnnxModel m;
  accept_model(&p, &m);
  onnx_model_close(&m);
  proto_release(&p);
  p = nested_types(49);
  refuse(&p, DIAG_PROTO_DEPTH, "messages nest more than 100 deep");
  p = nested_types(20000);
  refuse(&p, DIAG_PROTO_DEPTH, "messages nest more than 100 deep");
}

/* --- size
 * ------------------------------------------------------------------------------------------ */

static void test_empty_messages(void **state) {
  Proto graph = {0};
  for (int i = 0; i < 2000000; i++)
    proto_raw(&graph, "\x0a\x00", 2);
  Proto p = proto_model(&graph);
  refuse(&p, DIAG_PROTO_PARSE, "messages so empty");
}

static void test_other_formats(void **state) {
  Proto p = {0};
  refuse(&p, DIAG_FILE_EMPTY, "empty");
  proto_raw(&p, "version https://git-lfs.github.com/spec/v1\n", 43);
  refuse(&p, DIAG_PROTO_WIRE, "git lfs pull");
  proto_raw(&p, "PK\003\004abcdef", 10);
  refuse(&p, DIAG_PROTO_WIRE, "zip archive");
  proto_raw(&p, "<!DOCTYPE html>", 15);
  refuse(&p, DIAG_PROTO_WIRE, "web page");
  proto_raw(&p, "\x30\0\0\0ET12eh00", 12);
  refuse(&p, DIAG_PROTO_WIRE, "ExecuTorch program already");
  proto_raw(&p, "\x1f\x8b\x08\x00", 4);
  refuse(&p, DIAG_PROTO_WIRE, "gunzip");
  proto_raw(&p, "\x93NUMPY\x01\x00", 8);
  refuse(&p, DIAG_PROTO_WIRE, "NumPy array");
  proto_raw(&p, "GGUF\x03\x00\x00\x00", 8);
  refuse(&p, DIAG_PROTO_WIRE, "GGUF");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_varint),
      cmocka_unit_test(test_varint_faults),
      cmocka_unit_test(test_count_varints),
      cmocka_unit_test(test_fields),
      cmocka_unit_test(test_small_model),
      cmocka_unit_test(test_every_prefix),
      cmocka_unit_test(test_unknown_fields_are_dropped),
      cmocka_unit_test(test_encodings),
      cmocka_unit_test(test_truncated),
      cmocka_unit_test(test_long_varints),
      cmocka_unit_test(test_length_past_end),
      cmocka_unit_test(test_wire_types),
      cmocka_unit_test(test_packed),
      cmocka_unit_test(test_doubled_fields),
      cmocka_unit_test(test_nul_in_string),
      cmocka_unit_test(test_subgraph_depth),
      cmocka_unit_test(test_message_depth),
      cmocka_unit_test(test_empty_messages),
      cmocka_unit_test(test_other_formats),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

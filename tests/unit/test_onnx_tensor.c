/* Tensors inside a model file: every field that can hold data, and every disagreement between data,
 * type and shape. */
#include "unit.h"

#include "onnx/file/tensor.h"
#include "proto_writer.h"

enum {
  FLOAT = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
  UINT8 = ONNX__TENSOR_PROTO__DATA_TYPE__UINT8,
  INT8 = ONNX__TENSOR_PROTO__DATA_TYPE__INT8,
  INT16 = ONNX__TENSOR_PROTO__DATA_TYPE__INT16,
  INT32 = ONNX__TENSOR_PROTO__DATA_TYPE__INT32,
  INT64 = ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
  STRING = ONNX__TENSOR_PROTO__DATA_TYPE__STRING,
  BOOL = ONNX__TENSOR_PROTO__DATA_TYPE__BOOL,
  FLOAT16 = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16,
  DOUBLE = ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE,
  UINT32 = ONNX__TENSOR_PROTO__DATA_TYPE__UINT32,
  UINT64 = ONNX__TENSOR_PROTO__DATA_TYPE__UINT64,
  COMPLEX64 = ONNX__TENSOR_PROTO__DATA_TYPE__COMPLEX64,
  BFLOAT16 = ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16,
  FLOAT8 = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT8E4M3FN,
  INT4 = ONNX__TENSOR_PROTO__DATA_TYPE__INT4,
  INT2 = ONNX__TENSOR_PROTO__DATA_TYPE__INT2,
  FLOAT6 = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT6E2M3
};
enum {
  FLOAT_DATA = 4,
  INT32_DATA = 5,
  STRING_DATA = 6,
  INT64_DATA = 7,
  RAW_DATA = 9,
  DOUBLE_DATA = 10,
  UINT64_DATA = 11
};

typedef struct Fixture {
  Proto bytes;
  Capture capture;
  OnnxModel model;
  OnnxTensorView view;
  Status status;
} Fixture;

/* Makes a model with the tensor as its only initializer (releasing it), opens it and views the
 * tensor. */
static void view_tensor(Fixture *f, Proto *tensor) {
  Proto graph = {0};
  proto_message(&graph, 5, tensor);
  f->bytes = proto_model(&graph);
  capture_init(&f->capture);
  f->status = onnx_model_open_bytes(&f->model, &f->capture.sink, "m.onnx",
                                    (const uint8_t *)f->bytes.data, f->bytes.size);
  if (f->status != STATUS_OK)
    return;
  DiagPlace place = DIAG_NOWHERE;
  place.file = SV("m.onnx");
  f->status = onnx_tensor_view(&f->model, f->model.proto->graph->initializer[0], &f->capture.sink,
                               place, &f->view);
}

static void release(Fixture *f) {
  onnx_model_close(&f->model);
  capture_release(&f->capture);
  proto_release(&f->bytes);
}

static void refuse(Proto *tensor, DiagCode code, const char *part) {
  Fixture f;
  view_tensor(&f, tensor);
  assert_int_equal(f.status, diag_row(code)->status);
  assert_int_equal(f.capture.sink.errors, 1);
  assert_string_equal(diag_row(f.capture.sink.first_error)->id, diag_row(code)->id);
  assert_contains(strbuf_cstr(&f.capture.text), part);
  assert_contains(strbuf_cstr(&f.capture.text), "tensor 'w'");
  release(&f);
}

/* The tensor must be viewed as these bytes, in place or not. */
static void accept_bytes(Proto *tensor, const void *bytes, size_t size, bool in_place) {
  Fixture f;
  view_tensor(&f, tensor);
  if (f.status != STATUS_OK)
    fail_msg("%s", strbuf_cstr(&f.capture.text));
  assert_int_equal(f.view.size, size);
  assert_non_null(f.view.data);
  assert_memory_equal(f.view.data, bytes, size);
  assert_int_equal(f.view.file != NULL, in_place);
  if (in_place) {
    assert_ptr_equal(f.view.file, &f.model.file);
    assert_ptr_equal(f.view.data, f.model.file.data + f.view.file_offset);
  }
  OnnxTensorView again;
  assert_int_equal(onnx_tensor_view(&f.model, f.model.proto->graph->initializer[0], &f.capture.sink,
                                    DIAG_NOWHERE, &again),
                   STATUS_OK);
  assert_ptr_equal(again.data, f.view.data);
  release(&f);
}

static Proto tensor_1d(int32_t dtype, int64_t size) { return proto_tensor(dtype, &size, 1, "w"); }

static void test_raw(void **state) {
  static const uint8_t bytes[24] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  Proto t = proto_tensor(FLOAT, (const int64_t[]){2, 3}, 2, "w");
  proto_bytes(&t, RAW_DATA, bytes, 24);
  Fixture f;
  view_tensor(&f, &t);
  assert_int_equal(f.status, STATUS_OK);
  assert_int_equal(f.view.onnx_dtype, FLOAT);
  assert_int_equal(f.view.rank, 2);
  assert_true(f.view.dims[0] == 2 && f.view.dims[1] == 3);
  assert_string_equal(f.model.proto->graph->initializer[0]->name, "w");
  release(&f);
  static const struct {
    int32_t dtype;
    size_t size;
  } cases[] = {{FLOAT, 12}, {UINT8, 3},   {INT8, 3},    {INT16, 6},   {INT32, 12},
               {INT64, 24}, {BOOL, 3},    {DOUBLE, 24}, {FLOAT16, 6}, {BFLOAT16, 6},
               {FLOAT8, 3}, {UINT32, 12}, {UINT64, 24}, {INT4, 2},    {INT2, 1}};
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    t = tensor_1d(cases[i].dtype, 3);
    proto_bytes(&t, RAW_DATA, bytes, cases[i].size);
    accept_bytes(&t, bytes, cases[i].size, true);
    t = tensor_1d(cases[i].dtype, 3);
    proto_bytes(&t, RAW_DATA, bytes, cases[i].size - 1);
    refuse(&t, DIAG_TENSOR_SIZE, "bytes, but the model has");
  }
}

static void test_scalar_and_empty(void **state) {
  Proto t = proto_tensor(INT64, NULL, 0, "w");
  proto_bytes(&t, RAW_DATA, "\1\0\0\0\0\0\0\0", 8);
  accept_bytes(&t, "\1\0\0\0\0\0\0\0", 8, true);
  t = tensor_1d(FLOAT, 0);
  accept_bytes(&t, "", 0, false);
  t = tensor_1d(FLOAT, 0);
  proto_bytes(&t, RAW_DATA, "", 0);
  accept_bytes(&t, "", 0, false);
  t = tensor_1d(INT64, 0);
  proto_bytes(&t, INT64_DATA, "", 0);
  accept_bytes(&t, "", 0, false);
}

static void test_floats(void **state) {
  static const float floats[3] = {1.5f, -2.0f, 0.25f};
  Proto t = tensor_1d(FLOAT, 3);
  proto_bytes(&t, FLOAT_DATA, floats, sizeof floats);
  accept_bytes(&t, floats, sizeof floats, true);
  t = tensor_1d(FLOAT, 3); /* one by one and packed, mixed */
  proto_float(&t, FLOAT_DATA, floats[0]);
  proto_bytes(&t, FLOAT_DATA, floats + 1, 8);
  accept_bytes(&t, floats, sizeof floats, false);
  static const double doubles[2] = {1e300, -0.5};
  t = tensor_1d(DOUBLE, 2);
  proto_bytes(&t, DOUBLE_DATA, doubles, sizeof doubles);
  accept_bytes(&t, doubles, sizeof doubles, true);
  t = tensor_1d(DOUBLE, 2);
  proto_double(&t, DOUBLE_DATA, doubles[0]);
  proto_double(&t, DOUBLE_DATA, doubles[1]);
  accept_bytes(&t, doubles, sizeof doubles, false);
}

static void test_varints(void **state) {
  static const int64_t values[3] = {-1, 0, 100};
  static const int8_t as8[3] = {-1, 0, 100};
  static const int16_t as16[3] = {-1, 0, 100};
  static const int32_t as32[3] = {-1, 0, 100};
  Proto t = tensor_1d(INT64, 3);
  proto_ints(&t, INT64_DATA, values, 3);
  accept_bytes(&t, values, 24, false);
  t = tensor_1d(INT32, 3);
  proto_ints(&t, INT32_DATA, values, 3);
  accept_bytes(&t, as32, 12, false);
  t = tensor_1d(INT16, 3);
  proto_ints(&t, INT32_DATA, values, 3);
  accept_bytes(&t, as16, 6, false);
  t = tensor_1d(INT8, 3);
  for (int i = 0; i < 3; i++)
    proto_int(&t, INT32_DATA, values[i]);
  accept_bytes(&t, as8, 3, false);
  t = tensor_1d(INT32, 1); /* -1 in five bytes, as some writers have it */
  proto_bytes(&t, INT32_DATA, "\xff\xff\xff\xff\x0f", 5);
  accept_bytes(&t, "\xff\xff\xff\xff", 4, false);
}

static void test_unsigned_and_small(void **state) {
  Proto t = tensor_1d(UINT8, 2);
  proto_ints(&t, INT32_DATA, (const int64_t[]){255, 1}, 2);
  accept_bytes(&t, "\xff\x01", 2, false);
  t = tensor_1d(BOOL, 2);
  proto_ints(&t, INT32_DATA, (const int64_t[]){1, 0}, 2);
  accept_bytes(&t, "\x01\x00", 2, false);
  t = tensor_1d(FLOAT16, 1);
  proto_ints(&t, INT32_DATA, (const int64_t[]){0xbc00}, 1);
  accept_bytes(&t, "\x00\xbc", 2, false);
  t = tensor_1d(BFLOAT16, 1);
  proto_ints(&t, INT32_DATA, (const int64_t[]){0xbf80}, 1);
  accept_bytes(&t, "\x80\xbf", 2, false);
  t = tensor_1d(INT4, 3); /* two elements an entry */
  proto_ints(&t, INT32_DATA, (const int64_t[]){0x8f, 7}, 2);
  accept_bytes(&t, "\x8f\x07", 2, false);
  t = tensor_1d(UINT32, 1);
  proto_ints(&t, UINT64_DATA, (const int64_t[]){UINT32_MAX}, 1);
  accept_bytes(&t, "\xff\xff\xff\xff", 4, false);
  t = tensor_1d(UINT64, 1);
  proto_ints(&t, UINT64_DATA, (const int64_t[]){-1}, 1);
  accept_bytes(&t, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, false);
}

static void test_values_out_of_type(void **state) {
  static const struct {
    int32_t dtype;
    uint32_t field;
    int64_t value;
  } cases[] = {{INT8, INT32_DATA, 128},
               {INT8, INT32_DATA, -129},
               {UINT8, INT32_DATA, 256},
               {UINT8, INT32_DATA, -1},
               {INT16, INT32_DATA, 32768},
               {BOOL, INT32_DATA, 2},
               {FLOAT16, INT32_DATA, 65536},
               {INT4, INT32_DATA, 256},
               {UINT32, UINT64_DATA, INT64_C(1) << 32}};
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    Proto t = tensor_1d(cases[i].dtype, 1);
    proto_ints(&t, cases[i].field, &cases[i].value, 1);
    refuse(&t, DIAG_TENSOR_DATA, "out of range of type");
  }
}

static void test_dims(void **state) {
  Proto t = proto_tensor(FLOAT, (const int64_t[]){2, -1}, 2, "w");
  refuse(&t, DIAG_TENSOR_DIMS, "dimension 1 is negative: -1");
  t = proto_tensor(UINT8, (const int64_t[]){INT64_C(1) << 32, INT64_C(1) << 32}, 2, "w");
  refuse(&t, DIAG_TENSOR_DIMS, "overflows");
  t = proto_tensor(UINT8, (const int64_t[]){INT64_MAX, INT64_MAX, 0}, 3, "w");
  refuse(&t, DIAG_TENSOR_DIMS, "overflows");
  t = proto_tensor(DOUBLE, (const int64_t[]){INT64_C(1) << 61}, 1, "w");
  refuse(&t, DIAG_TENSOR_DIMS, "overflows");
  t = tensor_1d(UINT8, INT64_C(1) << 59);
  refuse(&t, DIAG_TENSOR_SIZE, "no data");
  t = tensor_1d(UINT8, INT64_C(1) << 59);
  proto_bytes(&t, INT32_DATA, "\1\2", 2);
  refuse(&t, DIAG_TENSOR_SIZE, "entries of data, but the model has 2");
}

static void test_dtypes(void **state) {
  static const int32_t unknown[] = {0, -1, 29, 1000000};
  for (size_t i = 0; i < COUNT_OF(unknown); i++) {
    Proto t = tensor_1d(unknown[i], 1);
    proto_bytes(&t, RAW_DATA, "\0\0\0\0", 4);
    refuse(&t, DIAG_TENSOR_DTYPE, "unknown data_type");
    assert_int_equal(onnx_dtype_bits(unknown[i]), 0);
  }
  Proto t = {0};
  proto_string(&t, 8, "w");
  refuse(&t, DIAG_TENSOR_DTYPE, "unknown data_type");
  t = tensor_1d(STRING, 1);
  proto_string(&t, STRING_DATA, "x");
  refuse(&t, DIAG_TENSOR_DTYPE, "elements of type string");
  t = tensor_1d(COMPLEX64, 1);
  proto_bytes(&t, RAW_DATA, "12345678", 8);
  refuse(&t, DIAG_TENSOR_DTYPE, "elements of type complex64");
  t = tensor_1d(FLOAT6, 1);
  refuse(&t, DIAG_TENSOR_DTYPE, "elements of type float6e2m3");
  assert_string_equal(onnx_dtype_name(INT4), "int4");
  assert_null(onnx_dtype_name(29));
  assert_null(onnx_dtype_name(-1));
  assert_int_equal(onnx_dtype_bits(INT4), 4);
  assert_int_equal(onnx_dtype_bits(DOUBLE), 64);
}

static void test_two_fields(void **state) {
  Proto t = tensor_1d(FLOAT, 1);
  proto_bytes(&t, RAW_DATA, "\0\0\0\0", 4);
  proto_float(&t, FLOAT_DATA, 1.0f);
  refuse(&t, DIAG_TENSOR_DATA, "data in two fields");
  t = tensor_1d(FLOAT, 1);
  proto_bytes(&t, RAW_DATA, "\0\0\0\0", 4);
  proto_bytes(&t, RAW_DATA, "\1\0\0\0", 4);
  refuse(&t, DIAG_TENSOR_DATA, "raw_data twice");
  t = tensor_1d(FLOAT, 1);
  proto_ints(&t, INT32_DATA, (const int64_t[]){1}, 1);
  refuse(&t, DIAG_TENSOR_DATA, "not for type float");
  t = tensor_1d(INT64, 1);
  proto_string(&t, STRING_DATA, "12345678");
  refuse(&t, DIAG_TENSOR_DATA, "not for type int64");
}

static void test_broken_pieces(void **state) {
  Proto t = tensor_1d(FLOAT, 1);
  proto_bytes(&t, FLOAT_DATA, "\0\0\0\0\0", 5);
  refuse(&t, DIAG_PROTO_TRUNCATED, "its data has");
  t = tensor_1d(INT64, 1);
  proto_bytes(&t, INT64_DATA, "\x80", 1);
  refuse(&t, DIAG_PROTO_TRUNCATED, "its data has");
  t = tensor_1d(INT64, 1);
  proto_bytes(&t, INT64_DATA, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11);
  refuse(&t, DIAG_PROTO_WIRE, "more bytes than protobuf allows");
}

static void test_segment_and_location(void **state) {
  Proto t = tensor_1d(UINT8, 1), segment = {0};
  proto_bytes(&t, RAW_DATA, "a", 1);
  proto_int(&segment, 1, 0);
  proto_message(&t, 3, &segment);
  refuse(&t, DIAG_TENSOR_DATA, "a segment");
  t = tensor_1d(UINT8, 1);
  proto_bytes(&t, RAW_DATA, "a", 1);
  proto_int(&t, 14, 2);
  refuse(&t, DIAG_TENSOR_DATA, "unknown data_location 2");
  t = tensor_1d(UINT8, 1);
  proto_external(&t, "location", "w.bin");
  proto_int(&t, 14, 1);
  refuse(&t, DIAG_EXTERNAL_PATH, "the model has no folder");
}

/* The file's own `span` must not reach the reader's table. */
static void test_foreign_span(void **state) {
  Proto t = tensor_1d(UINT8, 1);
  proto_int(&t, 1000, 77);
  proto_bytes(&t, RAW_DATA, "a", 1);
  accept_bytes(&t, "a", 1, true);
  t = tensor_1d(UINT8, 1);
  proto_int(&t, 1000, 0);
  refuse(&t, DIAG_TENSOR_SIZE, "no data");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_raw),
      cmocka_unit_test(test_scalar_and_empty),
      cmocka_unit_test(test_floats),
      cmocka_unit_test(test_varints),
      cmocka_unit_test(test_unsigned_and_small),
      cmocka_unit_test(test_values_out_of_type),
      cmocka_unit_test(test_dims),
      cmocka_unit_test(test_dtypes),
      cmocka_unit_test(test_two_fields),
      cmocka_unit_test(test_broken_pieces),
      cmocka_unit_test(test_segment_and_location),
      cmocka_unit_test(test_foreign_span),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* .npy files: every element type there and back, what numpy writes, and files that are wrong. */
#include "temp_file.h"

#include "interp/npy.h"

typedef struct NpyTest {
  Capture capture;
  Arena arena;
  char path[64];
} NpyTest;

static void npy_init(NpyTest *t) {
  capture_init(&t->capture);
  t->arena = (Arena){0};
  strcpy(t->path, "/tmp/etc-npy-XXXXXX");
  make_file(t->path);
}
static void npy_release(NpyTest *t) {
  unlink(t->path);
  arena_release(&t->arena);
  capture_release(&t->capture);
}

/* A file of version 1 with that header and count bytes 0, 1, 2, … of data. */
static void write_npy(const NpyTest *t, const char *header, size_t count) {
  uint8_t bytes[512] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
  size_t length = strlen(header);
  assert_true(10 + length + count <= sizeof bytes);
  bytes[8] = (uint8_t)length;
  memcpy(bytes + 10, header, length);
  for (size_t i = 0; i < count; i++)
    bytes[10 + length + i] = (uint8_t)i;
  write_file(t->path, bytes, 10 + length + count);
}

static void test_round_trip(void **state) {
  static const DType dtypes[] = {
      DTYPE_U8,       DTYPE_I8,         DTYPE_I16, DTYPE_I32,  DTYPE_I64,  DTYPE_F16,
      DTYPE_F32,      DTYPE_F64,        DTYPE_C64, DTYPE_BOOL, DTYPE_BF16, DTYPE_F8E5M2,
      DTYPE_F8E4M3FN, DTYPE_F8E5M2FNUZ, DTYPE_U16, DTYPE_U32,  DTYPE_U64,  DTYPE_F8E4M3FNUZ};
  static const uint32_t ranks[] = {0, 1, 3, MAX_RANK};
  uint8_t data[64];
  for (size_t i = 0; i < sizeof data; i++)
    data[i] = (uint8_t)(i * 37 % 2);
  NpyTest t;
  npy_init(&t);
  for (size_t i = 0; i < COUNT_OF(dtypes); i++) {
    for (size_t k = 0; k < COUNT_OF(ranks); k++) {
      Tensor out = {.dtype = dtypes[i], .rank = ranks[k], .data = data};
      for (uint32_t d = 0; d < out.rank; d++)
        out.dims[d] = d < 2 ? 2 : 1;
      NpyArray in;
      assert_int_equal(npy_write(&out, &t.arena, &t.capture.sink, t.path), STATUS_OK);
      assert_int_equal(npy_read(&in, &t.arena, &t.capture.sink, t.path, dtypes[i]), STATUS_OK);
      assert_int_equal(in.tensor.dtype, out.dtype);
      assert_int_equal(in.tensor.rank, out.rank);
      assert_memory_equal(in.tensor.dims, out.dims, out.rank * sizeof *out.dims);
      assert_memory_equal(in.tensor.data, data, tensor_bytes(&out));
      assert_int_equal((uintptr_t)in.tensor.data % 16, 0);
      npy_close(&in);
    }
  }
  npy_release(&t);
}

static void test_converted(void **state) {
  NpyTest t;
  NpyArray a;
  npy_init(&t);
  write_npy(&t, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n", 6);
  assert_int_equal(npy_read(&a, &t.arena, &t.capture.sink, t.path, DTYPE_U8), STATUS_OK);
  assert_memory_equal(a.tensor.data, ((uint8_t[]){0, 2, 4, 1, 3, 5}), 6);
  npy_close(&a);
  write_npy(&t, "{'descr': '>u2', 'fortran_order': False, 'shape': (2,), }\n", 4);
  assert_int_equal(npy_read(&a, &t.arena, &t.capture.sink, t.path, DTYPE_U16), STATUS_OK);
  assert_int_equal(((uint16_t *)a.tensor.data)[1], 0x0203);
  npy_close(&a);
  write_npy(&t, "{'shape': (), 'fortran_order': False, 'descr': \"<V2\"}", 2);
  assert_int_equal(npy_read(&a, &t.arena, &t.capture.sink, t.path, DTYPE_F32), STATUS_OK);
  assert_int_equal(a.tensor.dtype, DTYPE_BF16);
  npy_close(&a);
  npy_release(&t);
}

static void test_refused(void **state) {
  static const struct {
    const char *header;
    size_t bytes;
    const char *why;
  } cases[] = {
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 7, "needs 8 bytes"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 9, "needs 8 bytes"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 4, "not understood"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 4), }", 4,
       "more elements"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775807, 4, 0), }", 0,
       "more elements"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999,), }", 0,
       "not understood"},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1), }",
       1, "not understood"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 8, "element type '|O'"},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4, "not understood"},
      {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }", 4, "not understood"},
      {"{'descr': '<f4', 'fortran_order': False, }", 4, "not understood"},
      {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4,
       "not understood"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", 4, "not understood"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", 4, "not understood"},
      {"", 4, "not understood"},
      {"{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", 3, "neither 0 nor 1"},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    NpyTest t;
    NpyArray a;
    npy_init(&t);
    write_npy(&t, cases[i].header, cases[i].bytes);
    assert_int_equal(npy_read(&a, &t.arena, &t.capture.sink, t.path, DTYPE_F32), STATUS_INVALID);
    assert_contains(strbuf_cstr(&t.capture.text), cases[i].why);
    npy_release(&t);
  }
}

/* Every file that is cut short is refused. */
static void test_truncated(void **state) {
  NpyTest t;
  NpyArray a;
  npy_init(&t);
  Tensor out = {.dtype = DTYPE_I32, .rank = 1, .dims = {4}, .data = (int32_t[]){1, 2, 3, 4}};
  assert_int_equal(npy_write(&out, &t.arena, &t.capture.sink, t.path), STATUS_OK);
  uint8_t whole[256];
  FILE *f = fopen(t.path, "rb");
  size_t size = fread(whole, 1, sizeof whole, f);
  fclose(f);
  assert_int_equal(size, 128 + 16);
  for (size_t cut = 0; cut < size; cut++) {
    write_file(t.path, whole, cut);
    assert_int_not_equal(npy_read(&a, &t.arena, &t.capture.sink, t.path, DTYPE_I32), STATUS_OK);
  }
  npy_release(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_converted),
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_truncated),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

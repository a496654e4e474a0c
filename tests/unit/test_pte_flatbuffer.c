/* The FlatBuffers builder and reader, against each other and against bytes known from the format's
 * description. */
#include "unit.h"

#include "pte/flatbuffer.h"
#include "pte/flatread.h"

/* A table with one field of each kind, wrapped as the root. */
static uint32_t build_sample(FlatBuilder *b, uint32_t gap) {
  fb_init(b);
  static const int32_t ints[] = {1, -2, 3};
  static const int64_t longs[] = {-5, INT64_MAX};
  static const double doubles[] = {0.5};
  FbRef text = fb_string(b, SV("abc")), i32 = fb_vector_i32(b, ints, 3),
        i64 = fb_vector_i64(b, longs, 2);
  FbRef f64 = fb_vector_f64(b, doubles, 1), bytes = fb_vector_bytes(b, (const uint8_t *)"xy", 2, 1);
  fb_table_begin(b);
  fb_field_u32(b, 0, 7, 0);
  FbRef child = fb_table_end(b);
  FbRef children[] = {child, child};
  FbRef vector = fb_vector_refs(b, children, 2);
  fb_table_begin(b);
  fb_field_u8(b, 0, 200, 0);
  fb_field_i32(b, 1, -1, 0);
  fb_field_u64(b, 2, UINT64_C(1) << 40, 0);
  fb_field_f64(b, 3, -0.0, 0.0); /* differs from the default by its bits */
  fb_field_ref(b, 4, text);
  fb_field_ref(b, 5, i32);
  fb_field_ref(b, 6, i64);
  fb_field_ref(b, 7, f64);
  fb_field_ref(b, 8, bytes);
  fb_field_ref(b, 9, vector);
  fb_field_union(b, 10, 3, child);
  fb_field_u32(b, 12, 9, 9); /* the default: left out */
  FbRef root = fb_table_end(b);
  uint8_t *at = fb_finish(b, root, "TEST", gap);
  assert_true((at != NULL) == (gap != 0));
  return b->size;
}

static void test_round_trip(void **state) {
  for (uint32_t gap = 0; gap <= 32; gap += 32) {
    FlatBuilder b;
    uint32_t size = build_sample(&b, gap);
    FbReader r = fb_reader(fb_bytes(&b), size);
    assert_memory_equal(fb_bytes(&b) + 4, "TEST", 4);
    assert_int_equal(size % 8, 0);
    FbTable t = fb_root(&r);
    assert_int_equal(fb_u8(t, 0, 0), 200);
    assert_int_equal(fb_i32(t, 1, 0), -1);
    assert_true(fb_u64(t, 2, 0) == UINT64_C(1) << 40);
    double zero = fb_f64(t, 3, 1.0);
    assert_true(zero == 0.0 && __builtin_signbit(zero));
    assert_true(sv_eq_str(fb_text(t, 4), "abc"));
    FbVector ints = fb_vector(t, 5, 4), longs = fb_vector(t, 6, 8), bytes = fb_vector(t, 8, 1);
    assert_int_equal(ints.count, 3);
    assert_int_equal(fb_item_i32(ints, 1), -2);
    assert_true((int64_t)fb_item_u64(longs, 1) == INT64_MAX);
    assert_int_equal(fb_item_u8(bytes, 1), 'y');
    FbVector children = fb_tables(t, 9);
    assert_int_equal(children.count, 2);
    assert_int_equal(fb_u32(fb_item_table(children, 1), 0, 0), 7);
    assert_int_equal(fb_u8(t, 10, 0), 3);
    assert_int_equal(fb_u32(fb_table(t, 11), 0, 0), 7);
    assert_int_equal(fb_u32(t, 12, 9), 9);
    assert_int_equal(fb_u32(t, 13, 5), 5); /* behind the vtable */
    assert_null(r.fault);
    fb_release(&b);
  }
}

/* Alignment of every object in the file, which readers of other languages rely on. */
static void test_alignment(void **state) {
  FlatBuilder b;
  fb_init(&b);
  FbRef odd = fb_string(&b, SV("x")), aligned = fb_vector_bytes(&b, (const uint8_t *)"y", 1, 64);
  FbRef longs = fb_vector_i64(&b, (const int64_t[]){1}, 1);
  fb_table_begin(&b);
  fb_field_ref(&b, 0, odd);
  fb_field_ref(&b, 1, aligned);
  fb_field_ref(&b, 2, longs);
  fb_field_u64(&b, 3, 1, 0);
  fb_finish(&b, fb_table_end(&b), "TEST", 0);
  FbReader r = fb_reader(fb_bytes(&b), b.size);
  FbTable t = fb_root(&r);
  assert_int_equal(b.size % 64, 0);
  assert_int_equal(fb_vector(t, 1, 1).at % 64, 0);
  assert_int_equal(fb_vector(t, 2, 8).at % 8, 0);
  assert_int_equal(fb_u64(t, 3, 0), 1);
  assert_null(r.fault);
  fb_release(&b);
}

static void test_vtables_are_shared(void **state) {
  FlatBuilder b;
  fb_init(&b);
  for (uint32_t i = 1; i <= 100; i++) {
    fb_table_begin(&b);
    fb_field_u32(&b, i % 2, i, 0);
    fb_table_end(&b);
  }
  assert_int_equal(b.vtable_count, 2);
  assert_int_equal(b.table_count, 100);
  fb_release(&b);
}

/* The smallest table, byte by byte: root offset, identifier, vtable, table. */
static void test_known_bytes(void **state) {
  FlatBuilder b;
  fb_init(&b);
  fb_table_begin(&b);
  fb_field_u32(&b, 1, 0x01020304, 0);
  fb_finish(&b, fb_table_end(&b), "ABCD", 0);
  static const uint8_t expected[] = {16, 0, 0, 0, 'A', 'B', 'C', 'D', 8, 0, 8, 0,
                                     0,  0, 4, 0, 8,   0,   0,   0,   4, 3, 2, 1};
  assert_int_equal(b.size, sizeof expected);
  assert_memory_equal(fb_bytes(&b), expected, sizeof expected);
  fb_release(&b);
}

/* Follows everything in the sample; the reader must survive any bytes. */
static void walk(const uint8_t *data, uint32_t size) {
  FbReader r = fb_reader(data, size);
  FbTable t = fb_root(&r);
  volatile uint64_t sink = 0;
  for (uint16_t id = 0; id < 14; id++) {
    sink += fb_u8(t, id, 0) + fb_u32(t, id, 0) + fb_u64(t, id, 0) + fb_text(t, id).size +
            fb_u32(fb_table(t, id), 0, 0);
    FbVector v = fb_vector(t, id, 8), tables = fb_tables(t, id);
    for (uint32_t i = 0; i < v.count; i++)
      sink += fb_item_u64(v, i);
    for (uint32_t i = 0; i < tables.count; i++)
      sink += fb_u32(fb_item_table(tables, i), 0, 0);
  }
  (void)sink;
}

static void test_damage_is_survived(void **state) {
  FlatBuilder b;
  uint32_t size = build_sample(&b, 0);
  uint8_t *copy = xrealloc(NULL, size);
  for (uint32_t cut = 0; cut < size; cut++) {
    memcpy(copy, fb_bytes(&b), cut); /* of exact size, for the sanitizer */
    uint8_t *exact = xrealloc(NULL, cut ? cut : 1);
    memcpy(exact, copy, cut);
    walk(exact, cut);
    xfree(exact);
  }
  static const uint8_t masks[] = {0x01, 0x80, 0xff};
  for (uint32_t at = 0; at < size; at++)
    for (size_t k = 0; k < COUNT_OF(masks); k++) {
      memcpy(copy, fb_bytes(&b), size);
      copy[at] ^= masks[k];
      walk(copy, size);
    }
  xfree(copy);
  fb_release(&b);
}

static void test_faults_are_named(void **state) {
  FlatBuilder b;
  uint32_t size = build_sample(&b, 0);
  FbReader r = fb_reader(fb_bytes(&b), 4);
  assert_false(fb_present(fb_root(&r)));
  assert_non_null(r.fault);
  FbReader large = fb_reader(fb_bytes(&b), UINT64_C(1) << 31);
  assert_non_null(large.fault);
  /* One table entered more often than a verifying loader allows. */
  FbReader again = fb_reader(fb_bytes(&b), size);
  for (uint32_t i = 0; i < FB_MAX_VISITS; i++)
    assert_true(fb_present(fb_root(&again)));
  assert_false(fb_present(fb_root(&again)));
  assert_non_null(again.fault);
  fb_release(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),         cmocka_unit_test(test_alignment),
      cmocka_unit_test(test_vtables_are_shared), cmocka_unit_test(test_known_bytes),
      cmocka_unit_test(test_damage_is_survived), cmocka_unit_test(test_faults_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

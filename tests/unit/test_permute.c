/* Permuted elements against the definition, in whole and in pieces; places of values as a map. */
#include "ir_graph.h"

#include <stdlib.h>

#include "backends/xnnpack/places.h"
#include "ir/transform.h"
#include "ops/delegate.h"

/* Element `at` of the result, found by counting dimensions. */
static uint64_t source_index(uint32_t rank, const uint32_t *dims, const uint32_t *perm,
                             uint64_t at) {
  uint64_t source[TRANSFORM_MAX_RANK], where[TRANSFORM_MAX_RANK], index = 0;
  for (uint32_t i = rank; i-- > 0; at /= dims[i]) {
    source[perm[i]] = dims[i];
    where[perm[i]] = at % dims[i];
  }
  for (uint32_t i = 0; i < rank; i++)
    index = index * source[i] + where[i];
  return index;
}

static void check(size_t element, uint32_t rank, const uint32_t *dims, const uint32_t *perm,
                  bool keeps) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < rank; i++)
    count *= dims[i];
  uint8_t *from = malloc(count * element + 1), *want = malloc(count * element),
          *got = malloc(count * element), *base = from + 1; /* not aligned */
  for (uint64_t i = 0; i < count * element; i++)
    base[i] = (uint8_t)(i * 7 + i / 251);
  for (uint64_t i = 0; i < count; i++)
    memcpy(want + i * element, base + source_index(rank, dims, perm, i) * element, element);
  Sample sample;
  sample_init(&sample);
  Constant c = constant_permuted(sample.g, (Constant){.data = base, .size = count * element},
                                 (uint32_t)element, rank, dims, perm);
  assert_int_equal(permutation_keeps_order(rank, dims, perm), keeps);
  assert_int_equal(c.transform == NULL, keeps);
  assert_int_equal(c.size, count * element);
  for (uint64_t first = 0; first < count; first += 5)
    constant_read(&c, first * element, (count - first < 5 ? count - first : 5) * element,
                  got + first * element);
  assert_memory_equal(want, got, count * element);
  assert_memory_equal(want, constant_made(&c)->data, count * element);
  sample_release(&sample);
  free(from);
  free(want);
  free(got);
}

static void test_permutations(void **state) {
  static const size_t elements[] = {1, 2, 4, 8};
  for (size_t i = 0; i < COUNT_OF(elements); i++) {
    size_t e = elements[i];
    check(e, 0, (uint32_t[]){1}, (uint32_t[]){0}, true);
    check(e, 2, (uint32_t[]){5, 3}, (uint32_t[]){1, 0}, false);
    check(e, 4, (uint32_t[]){4, 3, 3, 5}, (uint32_t[]){0, 2, 3, 1}, false);
    check(e, 4, (uint32_t[]){1, 3, 2, 6}, (uint32_t[]){1, 2, 3, 0}, false);
    check(e, 4, (uint32_t[]){7, 1, 1, 5}, (uint32_t[]){0, 2, 3, 1}, true);
    check(e, 5, (uint32_t[]){2, 3, 2, 1, 4}, (uint32_t[]){0, 2, 3, 4, 1}, false);
    check(e, 6, (uint32_t[]){2, 3, 2, 3, 2, 3}, (uint32_t[]){5, 4, 3, 2, 1, 0}, false);
    check(e, 3, (uint32_t[]){2, 3, 4}, (uint32_t[]){0, 1, 2}, true);
  }
  check(4, 3, (uint32_t[]){100, 9, 173}, (uint32_t[]){0, 2, 1}, false); /* several threads */
}

/* Columns of a matrix, of one that a transform transposes, and of one that it quantizes. */
static void test_columns(void **state) {
  enum { ROWS = 5, COLUMNS = 7, BEGIN = 2, COUNT = 3 };
  uint16_t numbers[ROWS * COLUMNS], got[ROWS * COUNT];
  const uint64_t sizes[] = {ROWS, COLUMNS};
  for (uint16_t i = 0; i < ROWS * COLUMNS; i++)
    numbers[i] = i;
  Sample sample;
  sample_init(&sample);
  Constant plain = {.data = (const uint8_t *)numbers, .size = sizeof numbers},
           transposed = constant_permuted(sample.g, plain, sizeof *numbers, 2,
                                          (uint32_t[]){ROWS, COLUMNS}, (uint32_t[]){1, 0});
  for (uint32_t k = 0; k < 2; k++) {
    Constant c =
        constant_columns(sample.g, k ? transposed : plain, sizeof *numbers, sizes, BEGIN, COUNT);
    assert_int_equal(c.size, sizeof got);
    constant_read(&c, 0, sizeof got, (uint8_t *)got);
    for (uint32_t r = 0; r < ROWS; r++)
      for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(got[r * COUNT + i], k ? (BEGIN + i) * ROWS + r : r * COLUMNS + BEGIN + i);
    if (k)
      assert_ptr_equal(c.transform->source.data, numbers + BEGIN * ROWS);
  }
  static const float reals[] = {1, 2, 3, 4}, scale = 1;
  Transform codes = {.source = {.data = (const uint8_t *)reals, .size = sizeof reals},
                     .element = sizeof(float),
                     .code = TRANSFORM_INT8,
                     .rank = 2,
                     .dims = {{2, 2, 0}, {2, 1, 0}},
                     .scales = {.data = (const uint8_t *)&scale, .size = sizeof scale},
                     .low = -127,
                     .high = 127};
  int8_t column[2];
  Constant c =
      constant_columns(sample.g, constant_transform(sample.g, &codes), 1, (uint64_t[]){2, 2}, 1, 1);
  constant_read(&c, 0, sizeof column, (uint8_t *)column);
  assert_int_equal(column[0], 2);
  assert_int_equal(column[1], 4);
  sample_release(&sample);
}

static void test_places(void **state) {
  enum { MANY = 1000, STEP = 64 }; /* values that fall on one slot of a small table */
  Places p = {0};
  for (uint32_t round = 0; round < 3; round++) {
    assert_null(places_find(&p, STEP));
    for (uint32_t i = 1; i <= MANY; i++) {
      assert_int_equal(places_make(&p, i * STEP)->plain, 0);
      places_make(&p, i * STEP)->plain = i;
    }
    for (uint32_t i = 1; i <= MANY; i++)
      assert_int_equal(places_find(&p, i * STEP)->plain, i);
    assert_null(places_find(&p, STEP + 1));
    places_clear(&p);
  }
  places_release(&p);
}

/* Compile specs as words, back to the same bytes; and words that are none. */
static void specs_are_words(void **state) {
  static const uint8_t bytes[] = {4, 0, '%', '=', ' ', 'a', 0xff};
  Arena arena = {0};
  StrBuf text = {0};
  delegate_append_spec(&text, &(DelegateSpec){SV("max value"), bytes, sizeof bytes});
  delegate_append_spec(&text, &(DelegateSpec){SV(""), bytes, 0});
  assert_string_equal(strbuf_cstr(&text), "max%20value=%04%00%25%3d%20a%ff =");
  DelegateSpec *specs;
  uint32_t count;
  StrView words = {strbuf_cstr(&text), text.size};
  assert_true(delegate_parse_specs(words, &arena, &specs, &count));
  assert_int_equal(count, 2);
  assert_true(sv_eq_str(specs[0].key, "max value"));
  assert_int_equal(specs[0].size, sizeof bytes);
  assert_memory_equal(specs[0].data, bytes, sizeof bytes);
  assert_int_equal(specs[1].size, 0);
  assert_true(delegate_parse_specs(SV(""), &arena, &specs, &count) && count == 0);
  static const char *const wrong[] = {"a", "a=%", "a=%4", "a=%4g", "a=%FF", "a=1 ", " a=1", "%=1"};
  for (size_t i = 0; i < COUNT_OF(wrong); i++)
    assert_false(delegate_parse_specs(sv_from(wrong[i]), &arena, &specs, &count));
  strbuf_release(&text);
  arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(specs_are_words),
                                     cmocka_unit_test(test_permutations),
                                     cmocka_unit_test(test_columns), cmocka_unit_test(test_places)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

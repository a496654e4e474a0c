/* What a delegate computes and the memory it needs, estimated from small graphs by hand. */
#include "xnn_cases.h"

#include "backends/xnnpack/memory.h"
#include "backends/xnnpack/workspace.h"

typedef struct Expected {
  Made made;
  uint64_t work, packed, workspace;
} Expected;

static void check(const Expected *e) {
  Arena arena = {0};
  DelegateCall call = made_call(&e->made, &arena, NULL);
  XrGraph x;
  assert_null(xr_read(call.blob, call.blob_size, &arena, &x));
  assert_int_equal(xr_work(&x), e->work);
  assert_int_equal(xr_packed(&x), e->packed);
  assert_int_equal(xr_workspace(&x, &arena), e->workspace);
  arena_release(&arena);
}

/* y = x * w^T: a bias and 3 weights for each of 4 channels, padded to 16. */
static void product(void **state) {
  check(&(Expected){{.values = {IN(0, 2, 3), OUT(1, 2, 4), CONSTANT(1, 4, 3)},
                     .nodes = {{PRODUCT, {0, 2, MADE_NONE, 1, 0}}}},
                    .work = 2 * 4 * 3,
                    .packed = 16 * (3 * 4 + 4)});
}

/* Of nibbles, and of bytes: a bias, a scale and a row for each channel. */
static void quantized_product(void **state) {
  Expected e = {{.values = {IN(0, 2, 3),
                            OUT(1, 2, 4),
                            {.kind = 2,
                             .datatype = 8,
                             .form = MADE_PER_CHANNEL,
                             .constant = 1,
                             .scale_constant = 2,
                             .scale_count = 4,
                             SHAPE(4, 3)}},
                 .nodes = {{PRODUCT, {0, 2, MADE_NONE, 1, 0}}}},
                .work = 2 * 4 * 3,
                .packed = 16 * (2 + 4 + 4)};
  check(&e);
  e.made.values[2].datatype = 6;
  e.packed = 16 * (3 + 4 + 4);
  check(&e);
}

/* Two values of 256 bytes live at once; a third takes the place of its operand. */
static void values_between_nodes(void **state) {
  check(&(Expected){{.values = {IN(0, 8, 8), TEMP(8, 8), TEMP(8, 8), TEMP(8, 8), OUT(1, 8, 8)},
                     .nodes = {{SIGMOID, {0, 1, 0}},
                               {SIGMOID, {0, 2, 0}},
                               {SIGMOID, {2, 3, 0}},
                               {ADD, {1, 3, 4, 0}}}},
                    .workspace = 2 * 256});
}

/* Tables of transposes, which take no place of their operand. */
#define TURN(from, to)                                                                             \
  {                                                                                                \
    TRANSPOSE, {2, VEC(0), from, to, 0}, {                                                         \
      {                                                                                            \
        2, { 1, 0 }                                                                                \
      }                                                                                            \
    }                                                                                              \
  }

/* A chain of values of one size: each is placed behind the one before, unless every other one comes
 * first. */
static void chain_of_equal_values(void **state) {
  Made m = {.values = {IN(0, 8, 8), TEMP(8, 8), TEMP(8, 8), TEMP(8, 8), OUT(1, 8, 8)},
            .nodes = {TURN(0, 1), TURN(1, 2), TURN(2, 3), TURN(3, 4)}};
  const uint32_t expected[] = {0, 4, 1, 3, 2};
  Arena arena = {0};
  DelegateCall call = made_call(&m, &arena, NULL);
  XrGraph x;
  assert_null(xr_read(call.blob, call.blob_size, &arena, &x));
  assert_int_equal(xr_workspace(&x, &arena), 3 * 256);
  const uint32_t *order = xr_value_order(&x, &arena);
  assert_non_null(order);
  assert_memory_equal(order, expected, sizeof expected);
  for (uint32_t i = 0; i < 5; i++) /* the same graph with its values in that order */
    x.values[order[i]].position = i;
  assert_int_equal(xr_workspace(&x, &arena), 2 * 256);
  assert_null(xr_value_order(&x, &arena));
  arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(product), cmocka_unit_test(quantized_product),
                                     cmocka_unit_test(values_between_nodes),
                                     cmocka_unit_test(chain_of_equal_values)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* How ops are called in a program, against the argument counts of the real runtime
 * (tests/pte/boxed_args.tsv). */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "pte/call.h"

#define COUNTS ETC_SOURCE_DIR "/tests/pte/boxed_args.tsv"

/* The count that the runtime's kernel wants, -1 when the runtime has no such kernel. */
static long runtime_count(const char *kernel) {
  FILE *f = fopen(COUNTS, "r");
  assert_non_null(f);
  char line[512];
  long count = -1;
  while (count < 0 && fgets(line, sizeof line, f)) {
    char *tab = strchr(line, '\t');
    if (line[0] == '#' || !tab)
      continue;
    *tab = '\0';
    if (strcmp(line, kernel) == 0)
      count = strtol(tab + 1, NULL, 10);
  }
  fclose(f);
  return count;
}

static void test_every_row(void **state) {
  uint32_t rows = 0;
  for (OpId op = OP_OUTPUT + 1; op < op_count(); op++) {
    if (!op_row(op)->out)
      continue;
    long wanted = runtime_count(op_row(op)->out);
    if (wanted < 0)
      fail_msg("the runtime registers no '%s'", op_row(op)->out);
    if ((uint32_t)wanted != call_shape(op).boxed_count)
      fail_msg("'%s' takes %ld arguments, and %u would be given", op_row(op)->out, wanted,
               call_shape(op).boxed_count);
    rows++;
  }
  assert_true(rows > 200);
}

static void test_names(void **state) {
  StrView name, overload;
  call_name(OP_ADD_TENSOR, &name, &overload);
  assert_true(sv_eq_str(name, "aten::add") && sv_eq_str(overload, "out"));
  call_name(OP_COPY_, &name, &overload);
  assert_true(sv_eq_str(name, "aten::copy_") && overload.size == 0);
  call_name(OP_ET_VIEW, &name, &overload);
  assert_true(sv_eq_str(name, "executorch_prim::et_view") && sv_eq_str(overload, "default"));
}

static void test_shapes(void **state) {
  CallShape full = call_shape(OP_FULL), sum = call_shape(OP_SUM_DIM_INTLIST),
            copy = call_shape(OP_COPY_), size = call_shape(OP_SYM_SIZE_INT);
  assert_int_equal(full.arg_count, 2); /* its dtype is that of the out tensor */
  assert_int_equal(sum.arg_count, 4);  /* a reduction's dtype is an argument */
  assert_int_equal(copy.in_place, 0);
  assert_int_equal(copy.out_count, 0);
  assert_false(size.trailing);
  assert_int_equal(call_shape(OP_SPLIT_COPY_TENSOR).out_count, 1); /* one list */
  assert_int_equal(call_shape(OP_MAX_DIM).out_count, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_row), cmocka_unit_test(test_names),
                                     cmocka_unit_test(test_shapes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

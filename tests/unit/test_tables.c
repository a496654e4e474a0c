/* What the tables promise about the tree: a golden test for every pass, documentation for every op
 * and operator, no operator both supported and out of reach. */
#include "unit.h"

#include <stdio.h>
#include <unistd.h>

#include "ir/op.h"
#include "onnx/import.h"
#include "passes/pass.h"

static bool exists(const char *format, const char *stage, const char *name) {
  char path[1024];
  snprintf(path, sizeof path, format, ETC_SOURCE_DIR, stage, name);
  return access(path, R_OK) == 0;
}

/* passes/<folder>/<name>.c, and its test in the folder of the same name. */
static void test_passes(void **state) {
  static const char *const folders[] = {"source", "quantize",   "core",
                                        "edge",   "to_backend", "executorch"};
  assert_true(pass_table_size > 10);
  for (uint32_t i = 0; i < pass_table_size; i++) {
    const PassRow *row = &pass_table[i];
    bool found = false;
    for (size_t k = 0; k < COUNT_OF(folders); k++) {
      if (!exists("%s/passes/%s/%s.c", folders[k], row->name))
        continue;
      found = true;
      if (!exists("%s/tests/passes/%s/%s.etir", folders[k], row->name))
        fail_msg("pass %s has no golden test tests/passes/%s/%s.etir", row->name, folders[k],
                 row->name);
    }
    if (!found)
      fail_msg("pass %s has no file of its name", row->name);
    assert_true(strlen(row->summary) > 10);
  }
}

static void test_ops(void **state) {
  for (unsigned op = OP_OUTPUT + 1; op < op_count(); op++) {
    const OpRow *row = op_row((OpId)op);
    if (!row->doc || !*row->doc || row->doc[strlen(row->doc) - 1] == '.')
      fail_msg("%s: its documentation is missing, or a sentence", row->id);
    if (!row->shape || (!row->kernel && !(row->traits & OP_CONTROL)))
      fail_msg("%s has no shape rule or no reference kernel", row->id);
  }
}

static int order(const char *domain, const char *name, const char *domain2, const char *name2) {
  int d = strcmp(domain, domain2);
  return d ? d : strcmp(name, name2);
}

/* Sorted; each says what it becomes; versions of one operator do not overlap. */
static void test_translators(void **state) {
  for (uint32_t i = 0; onnx_op_row(i); i++) {
    const OnnxOpRow *row = onnx_op_row(i), *next = onnx_op_row(i + 1);
    if (!row->lowering || strlen(row->lowering) < 2)
      fail_msg("%s does not say what it becomes", row->name);
    if (row->until && row->until < row->since)
      fail_msg("%s: versions %d to %d", row->name, row->since, row->until);
    int c = next ? order(row->domain, row->name, next->domain, next->name) : -1;
    if (c > 0)
      fail_msg("%s comes before %s", row->name, next->name);
    if (c == 0 && (row->until == 0 || row->until >= next->since))
      fail_msg("%s: the versions of two rows overlap", row->name);
  }
}

static void test_out_of_reach(void **state) {
  for (uint32_t i = 0; onnx_out_of_reach(i); i++) {
    const OnnxOutOfReach *out = onnx_out_of_reach(i), *next = onnx_out_of_reach(i + 1);
    assert_true(strlen(out->reason) > 10);
    if (next && order(out->domain, out->name, next->domain, next->name) >= 0)
      fail_msg("%s comes before %s", out->name, next->name);
    for (uint32_t k = 0; onnx_op_row(k); k++)
      if (order(out->domain, out->name, onnx_op_row(k)->domain, onnx_op_row(k)->name) == 0)
        fail_msg("%s is supported: its row in out_of_reach.def must go", out->name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_passes),
      cmocka_unit_test(test_ops),
      cmocka_unit_test(test_translators),
      cmocka_unit_test(test_out_of_reach),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

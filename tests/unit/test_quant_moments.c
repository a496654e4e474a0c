/* Second moments over samples: within windows of columns, of rows that are finite, the same however
 * many threads there are. */
#include "ir_graph.h"
#include "temp_file.h"

#include "quant/moments.h"
#include "support/parallel.h"

static const char text[] = "graph @forward level(aten) {\n"
                           "  %0: f32[1, 2] = input \"x\"\n"
                           "  %1: f32[1, 130] = aten::constant_pad_nd(%0, [0, 128], 1.0)\n"
                           "  %2: f32[1, 2] = aten::log(%0)\n"
                           "  output %1 \"y\", %2 \"z\"\n"
                           "}\n";
static const float numbers[8] = {1, -2, 3, 4, 5, -6, 7, -8};

static void test_sums(void **state) {
  char path[] = "/tmp/etc-moments-XXXXXX.npy";
  Sample s;
  sample_parse(&s, text);
  make_npy(path, 4, 2, numbers);
  for (unsigned threads = 1; threads < 4; threads++) {
    float x[4] = {0}, z[4] = {0};
    static float y[130][128];
    memset(y, 0, sizeof y);
    Moments list[] = {
        {s.g->inputs[0], 2, x}, {graph_output(s.g, 0), 130, y[0]}, {graph_output(s.g, 1), 2, z}};
    DataSet *set;
    parallel_set_threads(threads);
    assert_int_equal(dataset_open(&set, s.g, path, (DataShard){0, 1}, &s.capture.sink), STATUS_OK);
    assert_int_equal(moments_run(s.g, list, COUNT_OF(list), set, &s.capture.sink), STATUS_OK);
    dataset_close(set);
    assert_true(x[0] == 84 && x[1] == -76 && x[2] == -76 && x[3] == 120);
    assert_true(y[0][1] == -76 && y[0][127] == 16 && y[127][0] == 16 && y[5][6] == 4);
    assert_true(y[128][0] == 4 && y[129][0] == 4 && y[129][1] == 4 && y[129][2] == 0);
    /* The logarithms of one row are numbers. */
    assert_true(z[0] > 1.20F && z[0] < 1.21F && z[3] > 1.92F && z[3] < 1.93F);
  }
  parallel_set_threads(0);
  unlink(path);
  sample_release(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

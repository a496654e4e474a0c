/* Trials: what rounding of a value does to the outputs, however many threads run them. */
#include "ir_graph.h"
#include "temp_file.h"

#include <math.h>

#include "quant/trial.h"
#include "support/parallel.h"

static const char text[] = "graph @forward level(aten) {\n"
                           "  %0: f32[1, 2] = input \"x\"\n"
                           "  %1: f32[1, 2] = aten::relu(%0)\n"
                           "  %2: f32[1, 2] = aten::neg(%1)\n"
                           "  output %2 \"y\", %1 \"r\"\n"
                           "}\n";
static const float numbers[8] = {1, -2, 3, -4, 5, -6, 7, -8};

static void run(Sample *s, const char *path, unsigned threads, Trial *trials, uint32_t count) {
  DataSet *set;
  parallel_set_threads(threads);
  assert_int_equal(dataset_open(&set, s->g, path, dataset_some(4, 8), &s->capture.sink), STATUS_OK);
  assert_int_equal(trial_run(s->g, trials, count, set, &s->capture.sink), STATUS_OK);
  dataset_close(set);
}

static void test_noise(void **state) {
  char path[] = "/tmp/etc-trial-XXXXXX.npy";
  Sample s;
  sample_parse(&s, text);
  make_npy(path, 4, 2, numbers);
  NodeId relu = value_def(s.g, graph_output(s.g, 1));
  ValueId r = node_result(s.g, relu, 0);
  /* Exact; cut off at 3; in steps of 2, ties to even; an input is left as it is. */
  TrialRounding exact = {r, 1, -128, -128, 127}, narrow = {r, 1, 0, -128, 3},
                coarse = {r, 2, -128, -128, 127}, input = {s.g->inputs[0], 100, 0, 0, 1};
  Trial trials[] = {{&exact, 1, 0}, {&narrow, 1, 0}, {&coarse, 1, 0}, {&input, 1, 0}};
  for (unsigned threads = 1; threads < 4; threads++) {
    run(&s, path, threads, trials, COUNT_OF(trials));
    assert_true(trials[0].noise == 0 && trials[3].noise == 0);
    assert_true(fabs(trials[1].noise - 2 * 20.0 / 84) < 1e-12); /* of both outputs */
    assert_true(fabs(trials[2].noise - 2 * 4.0 / 84) < 1e-12);
  }
  parallel_set_threads(0);
  unlink(path);
  sample_release(&s);
}

enum { TRIAL_SAMPLES = 8 };

static void test_shard(void **state) {
  static const uint64_t totals[] = {0, 1, TRIAL_SAMPLES, TRIAL_SAMPLES + 1, 1000, UINT64_MAX / 2};
  for (unsigned i = 0; i < COUNT_OF(totals); i++) {
    DataShard shard = dataset_some(totals[i], TRIAL_SAMPLES);
    assert_true(shard.index == 0 && shard.count >= 1);
    if (totals[i] <= 1000)
      assert_true((totals[i] + shard.count - 1) / shard.count <= TRIAL_SAMPLES);
  }
  assert_int_equal(dataset_some(TRIAL_SAMPLES, TRIAL_SAMPLES).count, 1);
  assert_int_equal(dataset_some(TRIAL_SAMPLES + 1, TRIAL_SAMPLES).count, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_noise), cmocka_unit_test(test_shard)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Second moments over samples: within windows of columns, of rows that are finite, the same however
 * many threads there are; and samples that are made up. */
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
    Moments list[] = {{.value = s.g->inputs[0], .groups = 1, .columns = 2, .sums = x},
                      {.value = graph_output(s.g, 0), .groups = 1, .columns = 130, .sums = y[0]},
                      {.value = graph_output(s.g, 1), .groups = 1, .columns = 2, .sums = z}};
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

static const char convolutions[] =
    "graph @forward level(aten) {\n"
    "  %0: f32[1, 24] = input \"x\"\n"
    "  %1: f32[1, 2, 3, 4] = aten::view_copy(%0, [1, 2, 3, 4])\n"
    "  %2: f32[2, 1, 2, 2] = const [1, 2, 3, 4, 5, 6, 7, 8]\n"
    "  %3: f32[2, 2, 1, 1] = const [1, 2, 3, 4]\n"
    "  %4: f32[1, 2, 2, 2] = aten::convolution(%1, %2, none, [2, 2], [1, 1], [1, 2], false, "
    "[0, 0], 2)\n"
    "  %5: f32[1, 2, 3, 4] = aten::convolution(%1, %3, none, [1, 1], [0, 0], [1, 1], false, "
    "[0, 0], 1)\n"
    "  %6: f32[1, 12, 2] = aten::view_copy(%0, [1, 12, 2])\n"
    "  output %4 \"y\", %5 \"z\", %6 \"rows\"\n"
    "}\n";

/* Taps of the first one, with stride 2, padding 1, and a dilation of 2 along the columns. */
static float tap_of(const float *x, uint32_t group, uint32_t place, uint32_t tap) {
  int y = (int)(place / 2) * 2 - 1 + (int)(tap / 2),
      c = (int)(place % 2) * 2 - 1 + (int)(tap % 2) * 2;
  return y < 0 || y >= 3 || c < 0 || c >= 4 ? 0 : x[group * 12 + (unsigned)(y * 4 + c)];
}

/* Whether five of twelve different pairs, of a[i * step] and b[i * step], have these sums. */
static bool are_five(const float *a, const float *b, size_t step, const float sums[2]) {
  for (uint32_t mask = 0; mask < 1 << 12; mask++) {
    float own = 0, both = 0, count = 0;
    for (uint32_t k = 0; k < 12; k++)
      if (mask >> k & 1) {
        own += a[k * step] * a[k * step];
        both += a[k * step] * b[k * step];
        count++;
      }
    if (count == 5 && own == sums[0] && both == sums[1])
      return true;
  }
  return false;
}

/* Two convolutions of one operand: windows in two groups, and five of twelve places; and five rows
 * of a matrix. */
static void test_windows(void **state) {
  Sample s;
  float taps[2][4][4] = {{{0}}}, places[2][2] = {{0}}, rows[2][2] = {{0}}, x[24];
  char path[] = "/tmp/etc-moments-XXXXXX.npy";
  DataSet *set;
  uint32_t found = 0;
  for (uint32_t i = 0; i < 24; i++)
    x[i] = (float)(i * 7 % 11) - 4;
  make_npy(path, 1, 24, x);
  sample_parse(&s, convolutions);
  Moments list[] = {{.groups = 2, .columns = 4, .sums = taps[0][0]},
                    {.groups = 1, .columns = 2, .most = 5, .sums = places[0]},
                    {.groups = 1, .columns = 2, .most = 5, .sums = rows[0]}};
  list[2].value = graph_output(s.g, 2);
  for (FOR_NODES(s.g, n))
    if (node_cget(s.g, n)->op == OP_CONVOLUTION) {
      list[found].window = n;
      list[found++].value = node_value(s.g, n, 0);
    }
  assert_int_equal(found, 2);
  assert_int_equal(dataset_open(&set, s.g, path, (DataShard){0, 1}, &s.capture.sink), STATUS_OK);
  assert_int_equal(moments_run(s.g, list, COUNT_OF(list), set, &s.capture.sink), STATUS_OK);
  dataset_close(set);
  for (uint32_t group = 0; group < 2; group++)
    for (uint32_t i = 0; i < 16; i++) {
      float sum = 0;
      for (uint32_t place = 0; place < 4; place++)
        sum += tap_of(x, group, place, i / 4) * tap_of(x, group, place, i % 4);
      assert_true(taps[group][i / 4][i % 4] == sum);
    }
  assert_true(are_five(x, x + 12, 1, places[0]) && places[1][0] == places[0][1]);
  assert_true(are_five(x, x + 1, 2, rows[0]) && rows[1][0] == rows[0][1]);
  unlink(path);
  sample_release(&s);
}

static const char tables[] = "graph @forward level(aten) {\n"
                             "  sym s0 \"length\" in [2, 8]\n"
                             "  sym s1 \"wide\" in [100, 200]\n"
                             "  %0: i64[1, s0] = input \"ids\"\n"
                             "  %1: i32[1, s0] = input \"mask\"\n"
                             "  %2: f32[1, s1] = input \"x\"\n"
                             "  %3: f32[5, 4] = input \"table\"\n"
                             "  %4: i64[s0] = aten::view_copy(%0, [s0])\n"
                             "  %5: f32[s0, 4] = aten::index_select(%3, 0, %4)\n"
                             "  %6: f32[1, s0] = aten::_to_copy(%1, f32, false, none)\n"
                             "  output %5 \"y\", %6 \"m\", %2 \"z\"\n"
                             "}\n";

/* Rows of the table, ones, and normal numbers; lengths are as near to 64 as they may be. */
static void test_made_samples(void **state) {
  Sample s;
  Arena arena = {0};
  MadeSamples made;
  Tensor x[4];
  bool more = true;
  uint32_t count = 0, row_seen = 0;
  double sum = 0, squares = 0, numbers_seen = 0;
  sample_parse(&s, tables);
  made_samples_init(&made, s.g, &arena);
  for (;; count++) {
    assert_int_equal(made_samples_next(&made, &arena, x, &more, &s.capture.sink), STATUS_OK);
    if (!more)
      break;
    assert_int_equal(x[0].dims[1], 8);
    assert_int_equal(x[2].dims[1], 100);
    for (int64_t k = 0; k < 8; k++) {
      int64_t row = tensor_load_int(&x[0], k);
      assert_in_range(row, 0, 4);
      row_seen |= 1u << row;
      assert_int_equal(tensor_load_int(&x[1], k), 1);
    }
    for (int64_t k = 0; k < 100; k++, numbers_seen++) {
      double number = tensor_load(&x[2], k);
      sum += number;
      squares += number * number;
    }
  }
  assert_int_equal(count, 32);
  assert_int_equal(row_seen, 31);
  assert_true(sum / numbers_seen > -0.1 && sum / numbers_seen < 0.1);
  assert_true(squares / numbers_seen > 0.9 && squares / numbers_seen < 1.1);
  arena_release(&arena);
  sample_release(&s);
}

/* Without a data set, the moments are those of the made-up samples. */
static void test_made_up_moments(void **state) {
  Sample s;
  float x[4] = {0}, again[4] = {0};
  sample_parse(&s, text);
  Moments list = {.value = s.g->inputs[0], .groups = 1, .columns = 2, .sums = x}, twice = list;
  twice.sums = again;
  assert_int_equal(moments_run(s.g, &list, 1, NULL, &s.capture.sink), STATUS_OK);
  assert_int_equal(moments_run(s.g, &twice, 1, NULL, &s.capture.sink), STATUS_OK);
  assert_memory_equal(x, again, sizeof x);
  assert_true(x[0] > 10 && x[0] < 60 && x[3] > 10 && x[3] < 60 && x[1] > -20 && x[1] < 20);
  sample_release(&s);
}

static void test_inputs_that_are_too_large(void **state) {
  static const char large[] = "graph @forward level(aten) {\n"
                              "  %0: f32[100000, 100000] = input \"x\"\n"
                              "  output %0 \"y\"\n"
                              "}\n";
  Sample s;
  float x[4] = {0};
  sample_parse(&s, large);
  Moments list = {.value = s.g->inputs[0], .groups = 1, .columns = 2, .sums = x};
  assert_int_not_equal(moments_run(s.g, &list, 1, NULL, &s.capture.sink), STATUS_OK);
  assert_non_null(strstr(strbuf_cstr(&s.capture.text), "input 'x' cannot be made up"));
  sample_release(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sums), cmocka_unit_test(test_windows),
                                     cmocka_unit_test(test_made_samples),
                                     cmocka_unit_test(test_made_up_moments),
                                     cmocka_unit_test(test_inputs_that_are_too_large)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

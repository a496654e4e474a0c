/* Files of statistics: what is written is read back, channels included, and shards add up to what
 * one run over all samples gives. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "quant/stats_file.h"

static const float values[] = {1, -2, 3, 0.125F, 5, -6, -7, 8, NAN, INFINITY, 1e-20F, -1e20F};

static void add(Stats *s, const float *x, uint64_t count) {
  StatsScratch *scratch = stats_scratch_new();
  stats_add(s, scratch, x, count);
  stats_scratch_free(scratch);
  if (s->channels)
    stats_add_channels(s, x, count / s->channels, 1);
}

/* Two values, one of them with channels, of the numbers from `from` on; data and total: of the set.
 */
static void write_file(const char *path, DataShard shard, uint32_t from, uint32_t count,
                       const char *model, const char *second, uint32_t channels, uint64_t data,
                       uint64_t total) {
  StatsEntry entries[2] = {{.name = SV("conv \"out\"")}, {.name = sv_from(second)}};
  StatsFile file = {.head = {.data = data, .total = total, .counted = count / 2, .shard = shard},
                    .entries = entries,
                    .count = 2};
  snprintf(file.head.model, sizeof file.head.model, "%s", model);
  stats_init(&entries[0].stats, channels);
  stats_init(&entries[1].stats, 0);
  for (int i = 0; i < 2; i++)
    add(&entries[i].stats, values + from, count);
  Capture c;
  capture_init(&c);
  assert_int_equal(stats_write(&file, &c.sink, path), STATUS_OK);
  capture_release(&c);
  for (int i = 0; i < 2; i++)
    stats_release(&entries[i].stats);
}

static void assert_file(const StatsFile *a, const StatsFile *b) {
  assert_int_equal(a->count, b->count);
  assert_int_equal(a->head.counted, b->head.counted);
  for (uint32_t i = 0; i < a->count; i++) {
    const Stats *x = &a->entries[i].stats, *y = &b->entries[i].stats;
    assert_true(sv_eq(a->entries[i].name, b->entries[i].name));
    assert_int_equal(x->count, y->count);
    assert_true(x->low == y->low && x->high == y->high);
    for (uint32_t bin = 0; bin < STATS_BINS; bin++)
      assert_int_equal(stats_bin(x, bin), stats_bin(y, bin));
    assert_int_equal(x->channels, y->channels);
    for (uint32_t k = 0; k < x->channels; k++)
      assert_true(x->channel_low[k] == y->channel_low[k] &&
                  x->channel_high[k] == y->channel_high[k]);
  }
}

#define MODEL "0123456789abcdef0123456789abcdef"
#define OTHER "0123456789abcdef0123456789abcdee"

static void test_shards(void **state) {
  char folder[] = "/tmp/etc-stats-XXXXXX", all[64], first[64], second[64], changed[64];
  assert_non_null(mkdtemp(folder));
  snprintf(all, sizeof all, "%s/all", folder);
  snprintf(first, sizeof first, "%s/first", folder);
  snprintf(second, sizeof second, "%s/second", folder);
  snprintf(changed, sizeof changed, "%s/changed", folder);
  write_file(all, (DataShard){0, 1}, 0, 12, MODEL, "y", 2, 77, 6);
  write_file(first, (DataShard){0, 2}, 0, 8, MODEL, "y", 2, 77, 6);
  write_file(second, (DataShard){1, 2}, 8, 4, MODEL, "y", 2, 77, 6);
  Capture c;
  capture_init(&c);
  StatsFile one, sum;
  if (stats_read(&one, &c.sink, all) != STATUS_OK ||
      stats_merge_files(&sum, (const char *[]){second, first}, 2, &c.sink) != STATUS_OK)
    fail_msg("%s", strbuf_cstr(&c.text));
  assert_string_equal(one.head.model, MODEL);
  assert_true(one.head.data == 77 && one.head.total == 6);
  assert_true(one.entries[0].stats.channel_low[0] == -7 &&
              one.entries[0].stats.channel_high[1] == 8);
  assert_file(&one, &sum);
  assert_true(sum.head.shard.index == 0 && sum.head.shard.count == 1);
  stats_file_release(&one);
  stats_file_release(&sum);
  static const struct {
    const char *model, *second, *says;
    DataShard shard;
    uint32_t channels;
    uint64_t data, total;
  } cases[] = {
      {OTHER, "y", "of another model", {1, 2}, 2, 77, 6},
      {MODEL, "z", "has other values", {1, 2}, 2, 77, 6},
      {MODEL, "y", "has other values", {1, 2}, 4, 77, 6},
      {MODEL, "y", "has other values", {1, 2}, 0, 77, 6},
      {MODEL, "y", "of another data set", {1, 2}, 2, 78, 6},
      {MODEL, "y", "of another data set", {1, 2}, 2, 77, 7},
      {MODEL, "y", "of another number", {1, 3}, 2, 77, 6},
      {MODEL, "y", "are both shard 0 of 2", {0, 2}, 2, 77, 6},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    write_file(changed, cases[i].shard, 8, 4, cases[i].model, cases[i].second, cases[i].channels,
               cases[i].data, cases[i].total);
    strbuf_clear(&c.text);
    assert_int_not_equal(stats_merge_files(&sum, (const char *[]){first, changed}, 2, &c.sink),
                         STATUS_OK);
    assert_contains(strbuf_cstr(&c.text), cases[i].says);
  }
  strbuf_clear(&c.text);
  assert_int_not_equal(stats_merge_files(&sum, (const char *[]){second}, 1, &c.sink), STATUS_OK);
  assert_contains(strbuf_cstr(&c.text), "shard 0 of 2 is missing");
  capture_release(&c);
  for (size_t i = 0; i < 4; i++)
    unlink((const char *[]){all, first, second, changed}[i]);
  assert_int_equal(rmdir(folder), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_shards)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Bundles: what is written is read back; damaged ones are refused or read within their bounds. */
#include "temp_file.h"

#include "pte/bundle.h"

typedef struct Fixture {
  Arena arena;
  Capture capture;
  MappedFile program;
  char path[64];
} Fixture;

static void begin(Fixture *f) {
  f->arena = (Arena){0};
  capture_init(&f->capture);
  snprintf(f->path, sizeof f->path, "/tmp/etc-bundle-XXXXXX");
  make_file(f->path);
  assert_int_equal(file_map(&f->program, &f->arena, &f->capture.sink,
                            ETC_SOURCE_DIR "/tests/fuzz/corpus/fuzz_pte/add.pte"),
                   STATUS_OK);
}

static void end(Fixture *f) {
  unlink(f->path);
  file_unmap(&f->program);
  capture_release(&f->capture);
  arena_release(&f->arena);
}

/* Two sets of a method with two inputs, as add.pte has. */
static void write_some(Fixture *f, StrView method, uint32_t input_count) {
  static float values[6] = {1, 2, 3, 4, 5, 6};
  Tensor t = {.dtype = DTYPE_F32, .rank = 2, .dims = {2, 3}, .data = values};
  const Tensor inputs[2] = {t, t};
  BundleCase cases[2] = {{inputs, &t}, {inputs, &t}};
  BundleSuite suite = {method, cases, 2, input_count, 1};
  assert_int_equal(bundle_write(&suite, 1, &f->capture.sink, &f->program, f->path, false),
                   STATUS_OK);
}

static Status check_bytes(Fixture *f, const uint8_t *data, size_t size) {
  BundleFile b;
  PteProgram p;
  TRY(bundle_open_bytes(&b, &f->capture.sink, "bundle", data, size));
  StrBuf text = {0};
  JsonWriter w;
  json_init(&w, &text, false);
  bundle_inspect_text(&b, true, &text);
  bundle_inspect_json(&b, &w);
  strbuf_release(&text);
  volatile uint8_t sum = 0;
  for (uint32_t i = 0; i < b.count; i++)
    for (uint32_t k = 0; k < b.suites[i].count; k++)
      for (uint32_t n = 0; n < b.suites[i].sets[k].input_count; n++)
        for (uint64_t at = 0; at < b.suites[i].sets[k].inputs[n].bytes; at++)
          sum = (uint8_t)(sum + b.suites[i].sets[k].inputs[n].data[at]);
  Status status =
      pte_program_open_bytes(&p, &f->capture.sink, "program", b.program, b.program_size);
  if (status == STATUS_OK) {
    status = bundle_check(&b, &p);
    pte_program_close(&p);
  }
  bundle_close(&b);
  return status;
}

static size_t read_back(Fixture *f, uint8_t *data, size_t capacity) {
  FILE *file = fopen(f->path, "rb");
  size_t size = fread(data, 1, capacity, file);
  fclose(file);
  assert_true(size > 64 && size < capacity);
  return size;
}

static Status check(Fixture *f) {
  uint8_t data[8192];
  return check_bytes(f, data, read_back(f, data, sizeof data));
}

static void test_round_trip(void **state) {
  Fixture f;
  begin(&f);
  write_some(&f, SV("forward"), 2);
  BundleFile b;
  assert_int_equal(bundle_open(&b, &f.capture.sink, f.path), STATUS_OK);
  assert_true(bundle_is(b.file.data, b.file.size));
  assert_int_equal(b.count, 1);
  assert_int_equal(b.suites[0].count, 2);
  const BundledSet *set = &b.suites[0].sets[1];
  assert_int_equal(set->input_count, 2);
  assert_int_equal(set->output_count, 1);
  assert_int_equal(set->inputs[1].kind, BUNDLED_TENSOR);
  assert_int_equal(set->inputs[1].sizes[1], 3);
  assert_int_equal(set->outputs[0].bytes, 24);
  float last;
  memcpy(&last, set->outputs[0].data + 20, 4);
  assert_true(last == 6);
  assert_int_equal(b.program_size, f.program.size);
  assert_memory_equal(b.program, f.program.data, f.program.size);
  bundle_close(&b);
  end(&f);
}

static void test_fits(void **state) {
  Fixture f;
  begin(&f);
  write_some(&f, SV("forward"), 2);
  assert_int_equal(check(&f), STATUS_OK);
  write_some(&f, SV("forward"), 1);
  assert_int_equal(check(&f), STATUS_INVALID);
  write_some(&f, SV("backward"), 2);
  assert_int_equal(check(&f), STATUS_INVALID);
  end(&f);
}

static void test_damaged(void **state) {
  static const uint8_t flips[] = {0x01, 0x80, 0xff};
  Fixture f;
  begin(&f);
  write_some(&f, SV("forward"), 2);
  uint8_t data[8192];
  size_t size = read_back(&f, data, sizeof data);
  for (size_t i = 0; i < size; i++)
    for (size_t k = 0; k < COUNT_OF(flips); k++) {
      data[i] ^= flips[k];
      (void)!check_bytes(&f, data, size);
      data[i] ^= flips[k];
    }
  for (size_t cut = 0; cut < size; cut++) {
    assert_int_not_equal(check_bytes(&f, data, cut), STATUS_OK);
  }
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip), cmocka_unit_test(test_fits),
                                     cmocka_unit_test(test_damaged)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Files of tensors: what is written is read back; damaged files are refused or read within their
 * bounds. */
#include "temp_file.h"

#include "pte/ptd.h"

typedef struct Fixture {
  Arena arena;
  Capture capture;
  Context ctx;
  char path[64];
} Fixture;

static void begin(Fixture *f) {
  f->arena = (Arena){0};
  capture_init(&f->capture);
  context_init(&f->ctx, &f->capture.sink);
  snprintf(f->path, sizeof f->path, "/tmp/etc-ptd-XXXXXX");
  make_file(f->path);
}

static void end(Fixture *f) {
  unlink(f->path);
  context_release(&f->ctx);
  capture_release(&f->capture);
  arena_release(&f->arena);
}

/* Two tensors with the same bytes under one name, and one of other bytes. */
static void write_some(Fixture *f) {
  static const float values[6] = {1, 2, 3, 4, 5, 6};
  SymInt wide[2] = {2, 3}, flat[1] = {6};
  Type a = {.kind = TYPE_TENSOR, .dtype = DTYPE_F32, .rank = 2, .dims = wide},
       b = {.kind = TYPE_TENSOR, .dtype = DTYPE_F32, .rank = 1, .dims = flat};
  NameId name = intern_add(&f->ctx.names, SV("w"));
  PtdWriter w;
  ptd_writer_init(&w, &f->ctx, &f->arena);
  uint32_t first = constant_pool_add(
      &w.pool, (Constant){.data = (const uint8_t *)values, .size = sizeof values});
  uint32_t other = constant_pool_add(
      &w.pool, (Constant){.data = (const uint8_t *)values, .size = sizeof values - 4});
  flat[0] = 5;
  assert_int_equal(ptd_writer_add(&w, first, &a, name), name);
  assert_int_equal(ptd_writer_add(&w, first, &a, name), name);
  assert_int_not_equal(ptd_writer_add(&w, other, &b, name), name);
  ptd_writer_add(&w, other, &b, 0);
  assert_int_equal(ptd_write(&w, &f->capture.sink, f->path, false), STATUS_OK);
  ptd_writer_release(&w);
}

static void test_round_trip(void **state) {
  Fixture f;
  begin(&f);
  write_some(&f);
  PtdFile p;
  assert_int_equal(ptd_open(&p, &f.capture.sink, 1, f.path), STATUS_OK);
  const PtdEntry *a = ptd_find(&p, SV("w")), *b = ptd_find(&p, SV("w.2"));
  assert_non_null(a);
  assert_non_null(b);
  assert_null(ptd_find(&p, SV("v")));
  assert_int_equal(p.count, 2);
  assert_int_equal(a->rank, 2);
  assert_int_equal(a->sizes[1], 3);
  assert_int_equal(a->size, 24);
  assert_int_equal(b->size, 20);
  float last;
  memcpy(&last, a->data + 20, 4);
  assert_true(last == 6);
  ptd_close(&p);
  end(&f);
}

/* Reads all that an accepted file says it has. */
static void read_all(Fixture *f) {
  PtdFile p;
  if (ptd_open(&p, &f->capture.sink, 1, f->path) != STATUS_OK)
    return;
  volatile uint8_t sum = 0;
  for (uint32_t i = 0; i < p.count; i++)
    for (uint64_t k = 0; k < p.entries[i].size; k++)
      sum = (uint8_t)(sum + p.entries[i].data[k]);
  StrBuf text = {0};
  ptd_inspect(&p, true, &text);
  strbuf_release(&text);
  ptd_close(&p);
}

static void test_damaged(void **state) {
  static const uint8_t flips[] = {0x01, 0x80, 0xff};
  Fixture f;
  begin(&f);
  write_some(&f);
  uint8_t data[4096];
  FILE *file = fopen(f.path, "rb");
  size_t size = fread(data, 1, sizeof data, file);
  fclose(file);
  assert_true(size > 64 && size < sizeof data);
  for (size_t i = 0; i < size; i++)
    for (size_t k = 0; k < COUNT_OF(flips); k++) {
      data[i] ^= flips[k];
      write_file(f.path, data, size);
      read_all(&f);
      data[i] ^= flips[k];
    }
  for (size_t i = 4; i < 12; i++) { /* the identifiers of file and extended header */
    PtdFile p;
    data[i] ^= 1;
    write_file(f.path, data, size);
    assert_int_not_equal(ptd_open(&p, &f.capture.sink, 1, f.path), STATUS_OK);
    data[i] ^= 1;
  }
  for (size_t cut = 0; cut < size; cut++) {
    PtdFile p;
    write_file(f.path, data, cut);
    assert_int_not_equal(ptd_open(&p, &f.capture.sink, 1, f.path), STATUS_OK);
  }
  end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
                                     cmocka_unit_test(test_damaged)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

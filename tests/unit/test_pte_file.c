/* Program files: what is emitted reads back as the same graph, byte for byte the same each time;
 * damaged files are refused. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../pte/maker.h"
#include "backends/backend.h"
#include "interp/interp.h"
#include "ir/text.h"
#include "pte/emit.h"
#include "pte/inspect.h"
#include "pte/read.h"
#include "pte/verify_plan.h"

typedef struct Fixture {
  Capture capture;
  Context ctx;
  char folder[64], path[96];
} Fixture;

static int setup(void **state) {
  Fixture *f = xrealloc(NULL, sizeof *f);
  capture_init(&f->capture);
  context_init(&f->ctx, &f->capture.sink);
  f->ctx.readers = &backend_readers;
  snprintf(f->folder, sizeof f->folder, "/tmp/etc-test-XXXXXX");
  assert_non_null(mkdtemp(f->folder));
  snprintf(f->path, sizeof f->path, "%s/program.pte", f->folder);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  Fixture *f = *state;
  unlink(f->path);
  rmdir(f->folder);
  context_release(&f->ctx);
  capture_release(&f->capture);
  xfree(f);
  return 0;
}

static const char *shown(Fixture *f) { return strbuf_cstr(&f->capture.text); }

static void free_graphs(const Maker *m) {
  for (uint32_t i = 0; i < m->count; i++)
    graph_free(m->graphs[i]);
}

/* Emits a sample; the file's bytes in the context's arena. */
static StrView emit_sample(Fixture *f, const Sample *sample) {
  Maker m = {.ctx = &f->ctx};
  sample->make(&m);
  assert_int_equal(pte_emit(m.graphs, m.count, f->ctx.sink, f->path, (EmitOptions){.sync = true}),
                   STATUS_OK);
  free_graphs(&m);
  MappedFile file;
  assert_int_equal(file_map(&file, &f->ctx.arena, f->ctx.sink, f->path), STATUS_OK);
  char *copy = arena_alloc(&f->ctx.arena, file.size);
  memcpy(copy, file.data, file.size);
  StrView bytes = {copy, file.size};
  file_unmap(&file);
  return bytes;
}

static void test_deterministic(void **state) {
  Fixture *f = *state;
  for (size_t i = 0; i < COUNT_OF(samples); i++) {
    StrView first = emit_sample(f, &samples[i]), second = emit_sample(f, &samples[i]);
    if (!sv_eq(first, second))
      fail_msg("'%s' is not the same twice", samples[i].name);
  }
}

/* Reading and emitting again gives the same file, but for the views that became nodes or constants:
 * compared through their text. */
static void print_methods(const PteFile *file, StrBuf *out) {
  for (uint32_t i = 0; i < file->method_count; i++)
    graph_print(file->methods[i], (PrintOptions){0}, out);
}

static void test_round_trip(void **state) {
  Fixture *f = *state;
  for (size_t i = 0; i < COUNT_OF(samples); i++) {
    StrView bytes = emit_sample(f, &samples[i]);
    PteFile first, second;
    assert_int_equal(
        pte_read_bytes(&f->ctx, "first", (const uint8_t *)bytes.data, bytes.size, NULL, &first),
        STATUS_OK);
    for (uint32_t k = 0; k < first.method_count; k++)
      assert_int_equal(pte_verify_plan(first.methods[k]), STATUS_OK);
    assert_int_equal(
        pte_emit(first.methods, first.method_count, f->ctx.sink, f->path, (EmitOptions){0}),
        STATUS_OK);
    assert_int_equal(pte_read(&f->ctx, f->path, NULL, &second), STATUS_OK);
    StrBuf a = {0}, b = {0};
    print_methods(&first, &a);
    print_methods(&second, &b);
    assert_string_equal(strbuf_cstr(&a), strbuf_cstr(&b));
    assert_true(a.size > 50);
    strbuf_release(&a);
    strbuf_release(&b);
    pte_close(&first);
    pte_close(&second);
  }
  assert_string_equal(shown(f), "");
}

static Tensor tensor_f32(Arena *arena, uint32_t rank, const int64_t *dims, const float *data) {
  Tensor t = {.dtype = DTYPE_F32, .rank = rank};
  memcpy(t.dims, dims, rank * sizeof *dims);
  t.capacity = tensor_bytes(&t);
  t.data = arena_alloc(arena, t.capacity);
  memcpy(t.data, data, t.capacity);
  return t;
}

/* x + 2 y, on the planned arena of the file that was read. */
static void test_runs(void **state) {
  Fixture *f = *state;
  StrView bytes = emit_sample(f, &samples[0]);
  PteFile file;
  assert_int_equal(
      pte_read_bytes(&f->ctx, "add", (const uint8_t *)bytes.data, bytes.size, NULL, &file),
      STATUS_OK);
  static const float x[] = {1, 2, 3, 4, 5, 6}, y[] = {10, 0, 10, 0, 10, 0};
  static const int64_t dims[] = {2, 3};
  Tensor in[] = {tensor_f32(&f->ctx.arena, 2, dims, x), tensor_f32(&f->ctx.arena, 2, dims, y)}, out;
  assert_int_equal(interp_run(file.methods[0], in, 2, &f->ctx.arena, &out), STATUS_OK);
  for (int i = 0; i < 6; i++)
    assert_true(((float *)out.data)[i] == x[i] + 2 * y[i]);
  pte_close(&file);
}

static void test_constants_are_shared(void **state) {
  Fixture *f = *state;
  emit_sample(f, &samples[1]);
  PteProgram p;
  assert_int_equal(pte_program_open(&p, f->ctx.sink, f->path), STATUS_OK);
  assert_true(p.has_header);
  /* "no constant", the six floats once for three tensors, the three floats, the empty one */
  assert_int_equal(p.constants.count, 4);
  assert_int_equal(p.segments[0].offset % 128, 0);
  for (uint32_t i = 1; i < p.constants.count; i++)
    assert_int_equal(p.constants.offsets[i] % 16, 0);
  assert_int_equal(p.methods[0].operator_count, 5); /* add is called twice, and there once */
  assert_int_equal(p.methods[0].instruction_count, 6);
  pte_program_close(&p);
}

static void test_large_arena_offset(void **state) {
  Fixture *f = *state;
  Maker m = {.ctx = &f->ctx};
  sample_add(&m);
  Graph *g = m.graphs[0];
  g->storages[1].offset = UINT64_C(0x500000010);
  g->arena_sizes[1] = UINT64_C(0x600000000);
  assert_int_equal(pte_emit(m.graphs, 1, f->ctx.sink, f->path, (EmitOptions){0}), STATUS_OK);
  free_graphs(&m);
  PteProgram p;
  assert_int_equal(pte_program_open(&p, f->ctx.sink, f->path), STATUS_OK);
  assert_true(p.methods[0].values[0].tensor->offset == UINT64_C(0x500000010));
  pte_program_close(&p);
}

static void test_too_large(void **state) {
  Fixture *f = *state;
  Maker m = {.ctx = &f->ctx};
  begin(&m, "forward");
  SymInt dims[] = {INT64_C(1) << 32};
  ValueId x = input(&m, type_of(&m, DTYPE_U8, 1, dims));
  finish(&m, &x, 1);
  assert_int_equal(pte_emit(m.graphs, 1, f->ctx.sink, f->path, (EmitOptions){0}),
                   STATUS_UNSUPPORTED);
  assert_contains(shown(f), "E0507");
  assert_int_equal(access(f->path, F_OK), -1);
  free_graphs(&m);
}

/* More tables than the runtime verifies: refused, not written. */
static void test_too_many_tables(void **state) {
  Fixture *f = *state;
  Maker m = {.ctx = &f->ctx};
  begin(&m, "forward");
  TypeId t = type_of(&m, DTYPE_F32, 1, three);
  ValueId x = input(&m, t);
  for (uint32_t i = 0; i < 200001; i++)
    x = plan(&m, NODE(&m, OP_NEG, t, A_VAL(x)));
  finish(&m, &x, 1);
  assert_int_equal(pte_emit(m.graphs, 1, f->ctx.sink, f->path, (EmitOptions){0}),
                   STATUS_UNSUPPORTED);
  assert_contains(shown(f), "1000000");
  assert_int_equal(access(f->path, F_OK), -1);
  free_graphs(&m);
}

/* --- damage --- */

/* Whatever the bytes are: no crash, and what reads can be walked. */
static void survive(Fixture *f, const uint8_t *data, uint64_t size) {
  PteProgram p;
  if (pte_program_open_bytes(&p, f->ctx.sink, "damaged", data, size) == STATUS_OK) {
    StrBuf text = {0};
    pte_inspect_text(&p, true, &text);
    strbuf_release(&text);
    pte_program_close(&p);
  }
  PteFile file;
  if (pte_read_bytes(&f->ctx, "damaged", data, size, NULL, &file) == STATUS_OK) {
    for (uint32_t i = 0; i < file.method_count; i++)
      if (file.methods[i])
        (void)!pte_verify_plan(file.methods[i]);
    pte_close(&file);
  }
}

static void test_damage_is_survived(void **state) {
  Fixture *f = *state;
  for (size_t i = 0; i < COUNT_OF(samples); i++) {
    StrView good = emit_sample(f, &samples[i]);
    for (size_t size = 0; size < good.size; size += 7) {
      uint8_t *exact = xrealloc(NULL, size ? size : 1); /* of exact size, for the sanitizer */
      memcpy(exact, good.data, size);
      survive(f, exact, size);
      xfree(exact);
    }
    uint8_t *copy = xrealloc(NULL, good.size);
    for (size_t at = 0; at < good.size; at++) {
      memcpy(copy, good.data, good.size);
      copy[at] ^= (uint8_t)(1u << at % 8);
      survive(f, copy, good.size);
      copy[at] = at % 3 ? 0xff : 0x00;
      survive(f, copy, good.size);
    }
    xfree(copy);
    strbuf_clear(&f->capture.text);
  }
}

typedef struct Case {
  const char *says;
  uint32_t at, size; /* bytes to overwrite, or size 0: the file is cut at `at` */
  uint64_t value;
} Case;

static void test_messages(void **state) {
  Fixture *f = *state;
  static const Case cases[] = {
      {"identifier", 4, 4, 0x41414141},        {"fewer than any program", 60, 0, 0},
      {"header is too short", 12, 4, 23},      {"the program needs 1048576", 16, 8, 1 << 20},
      {"the file ends early", 24, 8, 1 << 20}, {"names no place for segments", 24, 8, 0},
      {"the file ends early", 1700, 0, 0},     {"outside of the file", 0, 4, 0x7ffffff0},
  };
  StrView good = emit_sample(f, &samples[1]);
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    uint8_t *copy = arena_alloc(&f->ctx.arena, good.size);
    memcpy(copy, good.data, good.size);
    memcpy(copy + cases[i].at, &cases[i].value, cases[i].size);
    PteProgram p;
    strbuf_clear(&f->capture.text);
    assert_int_not_equal(pte_program_open_bytes(&p, f->ctx.sink, "m.pte", copy,
                                                cases[i].size ? good.size : cases[i].at),
                         STATUS_OK);
    assert_contains(shown(f), cases[i].says);
    assert_contains(shown(f), "m.pte");
  }
}

/* The runtime verifies fields that nobody reads, too. */
static void test_unused_field(void **state) {
  Fixture *f = *state;
  StrView good = emit_sample(f, &samples[1]);
  uint8_t *data = (uint8_t *)arena_alloc(&f->ctx.arena, good.size);
  memcpy(data, good.data, good.size);
  uint32_t root, outside = 0x7ffffff0;
  int32_t soffset;
  uint16_t field;
  memcpy(&root, data, sizeof root);
  memcpy(&soffset, data + root, sizeof soffset);
  memcpy(&field, data + root - soffset + 4 + 2 * PROGRAM_CONSTANT_BUFFER, sizeof field);
  assert_true(field >= 4);
  memcpy(data + root + field, &outside, sizeof outside);
  PteProgram p;
  assert_int_not_equal(pte_program_open_bytes(&p, f->ctx.sink, "m.pte", data, good.size),
                       STATUS_OK);
  assert_contains(shown(f), "a vector lies outside of the file");
}

/* A kernel that the table lacks is named, with the number of its calls. */
static void test_unknown_operator(void **state) {
  Fixture *f = *state;
  StrView good = emit_sample(f, &samples[0]);
  char *name = memmem(good.data, good.size, "aten::add", 9);
  assert_non_null(name);
  memcpy(name, "aten::xyz", 9);
  PteFile file;
  assert_int_equal(
      pte_read_bytes(&f->ctx, "m.pte", (const uint8_t *)good.data, good.size, NULL, &file),
      STATUS_UNSUPPORTED);
  assert_contains(shown(f), "'aten::xyz.out'");
  assert_contains(shown(f), "1 call)");
  PteProgram p; /* inspect does not mind */
  assert_int_equal(
      pte_program_open_bytes(&p, f->ctx.sink, "m.pte", (const uint8_t *)good.data, good.size),
      STATUS_OK);
  pte_program_close(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
      TEST(test_deterministic),        TEST(test_round_trip),         TEST(test_runs),
      TEST(test_constants_are_shared), TEST(test_large_arena_offset), TEST(test_too_large),
      TEST(test_too_many_tables),      TEST(test_damage_is_survived), TEST(test_messages),
      TEST(test_unknown_operator),     TEST(test_unused_field),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

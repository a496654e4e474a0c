/* What a program takes of a device: on sample programs, and on one whose parts lie in each other.
 */
#include "pte_fixture.h"

#include "pte/size.h"

static PteSize sample(Fixture *f, void (*make)(Maker *), const PteNames *names) {
  open_sample(f, make, &f->p);
  return pte_size(&f->p, names, &f->arena);
}

static uint64_t sum(const PteSize *s) {
  uint64_t bytes = 0, layers = 0;
  for (uint32_t i = 0; i < s->part_count; i++)
    bytes += s->parts[i].bytes;
  for (uint32_t i = 0; i < s->layer_count; i++)
    layers += s->layers[i].bytes;
  assert_int_equal(bytes, layers);
  return bytes;
}

/* The sums of all samples are those of their files. */
static void test_sums(void **state) {
  Fixture *f = *state;
  static void (*const makers[])(Maker *) = {
      sample_add,     sample_constants, sample_empty_constant, sample_shapes, sample_dynamic,
      sample_methods, sample_factories, sample_control,        sample_states};
  for (size_t i = 0; i < COUNT_OF(makers); i++) {
    PteSize s = sample(f, makers[i], NULL);
    assert_int_equal(sum(&s), f->p.file.size);
    pte_program_close(&f->p);
  }
}

/* A method alone needs all of its file; of a program with several, the tables and what is its own.
 */
static void test_methods(void **state) {
  Fixture *f = *state;
  PteSize s = sample(f, sample_constants, NULL), own = pte_size_flash(&f->p, NULL, 0, &f->arena);
  assert_int_equal(sum(&own), f->p.file.size);
  assert_memory_equal(own.totals, s.totals, sizeof own.totals);
  pte_program_close(&f->p);
  uint64_t constants = 0;
  s = sample(f, sample_methods, NULL);
  assert_true(f->p.method_count > 1);
  for (uint32_t i = 0; i < f->p.method_count; i++) {
    own = pte_size_flash(&f->p, NULL, i, &f->arena);
    assert_int_equal(sum(&own), f->p.file.size);
    assert_int_equal(own.totals[PTE_PART_PROGRAM], s.totals[PTE_PART_PROGRAM]);
    assert_true(own.totals[PTE_PART_CONSTANT] <= s.totals[PTE_PART_CONSTANT]);
    constants += own.totals[PTE_PART_CONSTANT];
  }
  assert_true(constants >= s.totals[PTE_PART_CONSTANT]);
  pte_program_close(&f->p);
}

/* Data of delegates that no reader knows are of each method. */
static void test_unknown_data(void **state) {
  Fixture *f = *state;
  static uint8_t bytes[1000];
  PteSegment segments[] = {{200, 300}};
  PteMethod methods[2] = {{.name = SV("a")}, {.name = SV("b")}};
  StrView keys[] = {SV("a")};
  uint32_t at[] = {0};
  PteProgram p = {.file = {.data = bytes, .size = sizeof bytes, .fd = -1},
                  .program_size = 150,
                  .methods = methods,
                  .method_count = 2,
                  .segments = segments,
                  .segment_count = 1,
                  .constants.segment = 1,
                  .initial.segment = 1,
                  .named_data = keys,
                  .named_segments = at,
                  .named_data_count = 1};
  for (uint32_t i = 0; i < 2; i++)
    assert_int_equal(pte_size_flash(&p, NULL, i, &f->arena).totals[PTE_PART_DATA], 300);
}

static const PtePart *find(const PteSize *s, PtePartKind kind) {
  for (uint32_t i = 0; i < s->part_count; i++)
    if (s->parts[i].kind == kind)
      return &s->parts[i];
  return NULL;
}

static void test_constants(void **state) {
  Fixture *f = *state;
  PteSize s = sample(f, sample_constants, NULL);
  assert_int_equal(s.totals[PTE_PART_CONSTANT], 36); /* of 84: equal ones are there once */
  assert_int_equal(s.totals[PTE_PART_PROGRAM] + s.totals[PTE_PART_PADDING] + 36, f->p.file.size);
  assert_true(s.layers[0].parts->kind == PTE_PART_PROGRAM);
  assert_int_equal(s.methods[0].arenas[0].bytes, 192);
  assert_int_equal(s.methods[0].arenas[0].peak, 96);
  assert_true(s.methods[0].arenas[0].live_count >= 2);
  pte_program_close(&f->p);
}

static StrView named(void *user, uint32_t method, uint32_t instruction) {
  (void)user;
  (void)method;
  (void)instruction;
  return SV("/first");
}

static StrView no_data(void *user, StrView key) {
  (void)user;
  (void)key;
  return SV("");
}

/* Names of the model take the place of instructions. */
static void test_names(void **state) {
  Fixture *f = *state;
  PteNames names = {.instruction = named, .data = no_data};
  PteSize s = sample(f, sample_constants, &names);
  const PtePart *part = find(&s, PTE_PART_CONSTANT);
  assert_int_equal(part->layer.size, 6);
  assert_memory_equal(part->layer.data, "/first", 6);
  pte_program_close(&f->p);
}

/* Named data that begin within others, or lie within them, and an unused segment. */
static void test_overlaps(void **state) {
  Fixture *f = *state;
  enum { SIZE = 1000 };
  static uint8_t bytes[SIZE];
  PteSegment segments[] = {{200, 300}, {300, 400}, {600, 200}, {350, 50}, {900, 100}};
  StrView keys[] = {SV("a"), SV("b"), SV("c"), SV("d")};
  uint32_t at[] = {0, 1, 2, 3};
  PteProgram p = {.file = {.data = bytes, .size = SIZE, .fd = -1},
                  .program_size = 150,
                  .segments = segments,
                  .segment_count = 5,
                  .constants.segment = 5,
                  .initial.segment = 5,
                  .named_data = keys,
                  .named_segments = at,
                  .named_data_count = 4};
  PteSize s = pte_size(&p, NULL, &f->arena);
  assert_int_equal(sum(&s), SIZE);
  assert_int_equal(s.totals[PTE_PART_PROGRAM], 150);
  assert_int_equal(s.totals[PTE_PART_DATA], 600); /* 200 .. 800 */
  assert_int_equal(s.totals[PTE_PART_UNUSED], 100);
  assert_int_equal(s.totals[PTE_PART_PADDING], 150); /* 150 .. 200, 800 .. 900 */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_sums, setup, teardown),
      cmocka_unit_test_setup_teardown(test_methods, setup, teardown),
      cmocka_unit_test_setup_teardown(test_unknown_data, setup, teardown),
      cmocka_unit_test_setup_teardown(test_constants, setup, teardown),
      cmocka_unit_test_setup_teardown(test_names, setup, teardown),
      cmocka_unit_test_setup_teardown(test_overlaps, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The plan verifier: right plans pass, and each way of being wrong is found, also in large random
 * plans against a slow check of all pairs. */
#include "unit.h"

#include "../pte/maker.h"
#include "backends/backend.h"
#include "pte/verify_plan.h"

typedef struct Fixture {
  Capture capture;
  Context ctx;
  Maker m;
  TypeId t; /* f32[2, 3]: 24 bytes, planned as 32 */
} Fixture;

static int setup(void **state) {
  Fixture *f = xrealloc(NULL, sizeof *f);
  *f = (Fixture){0};
  capture_init(&f->capture);
  context_init(&f->ctx, &f->capture.sink);
  f->ctx.readers = &backend_readers;
  f->m.ctx = &f->ctx;
  begin(&f->m, "forward");
  f->t = type_of(&f->m, DTYPE_F32, 2, two_three);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  Fixture *f = *state;
  graph_free(f->m.g);
  context_release(&f->ctx);
  capture_release(&f->capture);
  xfree(f);
  return 0;
}

static Storage *place(Fixture *f, ValueId v) {
  return &f->m.g->storages[f->m.g->values[v].storage];
}

/* v takes the place of other. */
static ValueId over(Fixture *f, ValueId v, ValueId other) {
  f->m.g->values[v].storage = f->m.g->values[other].storage;
  return v;
}

static void expect(Fixture *f, ValueId output, const char *says) {
  finish(&f->m, &output, 1);
  Status status = pte_verify_plan(f->m.g);
  if (!says) {
    assert_string_equal(strbuf_cstr(&f->capture.text), "");
    assert_int_equal(status, STATUS_OK);
    return;
  }
  assert_int_equal(status, STATUS_INVALID);
  assert_contains(strbuf_cstr(&f->capture.text), says);
}

#define NEG(f, x) NODE(&(f)->m, OP_NEG, (f)->t, A_VAL(x))
#define ADD(f, x, y) NODE(&(f)->m, OP_ADD_TENSOR, (f)->t, A_VAL(x), A_VAL(y), A_INT(1))

static void test_apart(void **state) {
  Fixture *f = *state;
  ValueId x = input(&f->m, f->t), y = plan(&f->m, NEG(f, x)), z = plan(&f->m, NEG(f, y));
  expect(f, over(f, NODE(&f->m, OP_SOFTMAX, f->t, A_VAL(z), A_INT(1), A_BOOL(false)), x),
         NULL); /* x is dead by then */
}

static void test_overlap(void **state) {
  Fixture *f = *state;
  ValueId x = input(&f->m, f->t), y = plan(&f->m, NEG(f, x)), z = plan(&f->m, NEG(f, y));
  place(f, z)->offset =
      place(f, y)->offset + 16; /* over the second half of y, which is used later */
  expect(f, plan(&f->m, ADD(f, y, z)), "overlaps");
}

static void test_in_place(void **state) {
  Fixture *f = *state;
  ValueId x = input(&f->m, f->t), y = over(f, NEG(f, x), x);
  expect(f, over(f, ADD(f, y, y), y), NULL);
}

static void test_in_place_while_needed(void **state) {
  Fixture *f = *state;
  ValueId x = input(&f->m, f->t), y = over(f, NEG(f, x), x);
  expect(f, plan(&f->m, ADD(f, x, y)), "overlaps");
}

static void test_in_place_not_allowed(void **state) {
  Fixture *f = *state;
  ValueId x = input(&f->m, f->t);
  expect(f, over(f, NODE(&f->m, OP_FLIP, f->t, A_VAL(x), A_INTS(((const SymInt[]){1}), 1)), x),
         "overlaps");
}

/* The operand is smaller: broadcast, each of its elements is read after it was written over. */
static void test_in_place_broadcast(void **state) {
  Fixture *f = *state;
  ValueId x = input(&f->m, f->t), small = input(&f->m, type_of(&f->m, DTYPE_F32, 1, three));
  f->m.used += 32;
  expect(f, over(f, ADD(f, x, small), small), "overlaps");
}

/* Elements of another size. */
static void test_in_place_cast(void **state) {
  Fixture *f = *state;
  TypeId wide = type_of(&f->m, DTYPE_F64, 2, two_three);
  ValueId x = input(&f->m, wide);
  expect(f,
         over(f, NODE(&f->m, OP_TO_COPY, f->t, A_VAL(x), A_DTYPE(DTYPE_F32), A_BOOL(false), A_NONE),
              x),
         "overlaps");
}

static void test_view_keeps_base(void **state) {
  Fixture *f = *state;
  ValueId x = input(&f->m, f->t), y = plan(&f->m, NEG(f, x));
  ValueId view = over(
      f, NODE(&f->m, OP_VIEW_COPY, type_of(&f->m, DTYPE_F32, 1, six), A_VAL(y), A_INTS(six, 1)), y);
  ValueId z = over(f, NEG(f, x), y); /* y is dead, but not its view */
  ValueId flat = plan(&f->m, NODE(&f->m, OP_NEG, type_of(&f->m, DTYPE_F32, 1, six), A_VAL(view)));
  ValueId back = over(f, NODE(&f->m, OP_VIEW_COPY, f->t, A_VAL(flat), A_INTS(two_three, 2)), flat);
  expect(f, plan(&f->m, ADD(f, back, z)), "overlaps");
}

static void test_view(void **state) {
  Fixture *f = *state;
  ValueId x = input(&f->m, f->t);
  ValueId view = over(
      f, NODE(&f->m, OP_VIEW_COPY, type_of(&f->m, DTYPE_F32, 1, six), A_VAL(x), A_INTS(six, 1)), x);
  ValueId flat = over(f, NODE(&f->m, OP_NEG, type_of(&f->m, DTYPE_F32, 1, six), A_VAL(view)),
                      view); /* in place: x is dead as well */
  expect(f, over(f, NODE(&f->m, OP_VIEW_COPY, f->t, A_VAL(flat), A_INTS(two_three, 2)), flat),
         NULL);
}

static void test_output_stays(void **state) {
  Fixture *f = *state;
  ValueId x = input(&f->m, f->t), y = plan(&f->m, NEG(f, x)), z = over(f, NEG(f, x), y);
  ValueId outputs[] = {y, z};
  finish(&f->m, outputs, 2);
  assert_int_equal(pte_verify_plan(f->m.g), STATUS_INVALID);
}

static void test_unused_input(void **state) {
  Fixture *f = *state;
  ValueId x = input(&f->m, f->t), unused = over(f, graph_add_input(f->m.g, f->t, 0), x);
  (void)unused; /* both are written before the first instruction */
  expect(f, plan(&f->m, NEG(f, x)), "overlaps");
}

static void test_unused_result(void **state) {
  Fixture *f = *state;
  static const SymInt two[] = {2};
  ValueId x = input(&f->m, f->t);
  NodeId max = graph_add_node(f->m.g, 0, OP_MAX_DIM,
                              (const ArgIn[]){A_VAL(x), A_INT(1), A_BOOL(false)}, 3, 2, 0);
  ValueId values = node_result(f->m.g, max, 0), indices = node_result(f->m.g, max, 1);
  value_set_type(f->m.g, values, type_of(&f->m, DTYPE_F32, 1, two));
  value_set_type(f->m.g, indices, type_of(&f->m, DTYPE_I64, 1, two));
  plan(&f->m, values);
  over(f, indices, values); /* written by the same call, although nobody reads it */
  place(f, values)->size = 16;
  expect(f, values, "overlaps");
}

static void test_outside(void **state) {
  Fixture *f = *state;
  ValueId x = input(&f->m, f->t), y = plan(&f->m, NEG(f, x));
  place(f, y)->offset = 48; /* ends at 80 of 64 */
  expect(f, y, "reaches beyond its arena");
}

static void test_no_such_arena(void **state) {
  Fixture *f = *state;
  ValueId x = input(&f->m, f->t), y = plan(&f->m, NEG(f, x));
  place(f, y)->arena = 2;
  expect(f, y, "an arena that the program does not have");
}

static void test_misaligned(void **state) {
  Fixture *f = *state;
  ValueId x = input(&f->m, f->t), y = plan(&f->m, NEG(f, x));
  place(f, y)->offset += 8;
  f->m.used += 32;
  expect(f, y, "not aligned");
}

static void test_too_small(void **state) {
  Fixture *f = *state;
  ValueId x = input(&f->m, f->t), y = plan(&f->m, NEG(f, x));
  place(f, y)->size = 16;
  expect(f, y, "is too small for its type, of 24 bytes");
}

static void test_not_planned(void **state) {
  Fixture *f = *state;
  ValueId x = input(&f->m, f->t), y = NEG(f, x);
  expect(f, plan(&f->m, NEG(f, y)), "no place");
}

/* The host provides the memory of an output. */
static void test_output_not_planned(void **state) {
  Fixture *f = *state;
  ValueId x = input(&f->m, f->t), y = plan(&f->m, NEG(f, x));
  expect(f, NEG(f, y), NULL);
}

/* Chains of random lifetimes at random places; whether any two overlap is found by comparing all
 * pairs. */
static void test_random(void **state) {
  Fixture *f = *state;
  uint64_t seed = 12345;
  uint32_t right = 0, wrong = 0;
  for (int round = 0; round < 300; round++) {
    Maker m = {.ctx = &f->ctx};
    begin(&m, "forward");
    TypeId t = type_of(&m, DTYPE_F32, 2, two_three);
    ValueId values[40];
    uint32_t last[40], count = 12 + (uint32_t)round % 28,
                       slots = (round % 2 ? 8 : 600) + (uint32_t)round % 20;
    values[0] = input(&m, t);
    last[0] = 0;
    for (uint32_t i = 1; i < count; i++) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      uint32_t from = (uint32_t)(seed >> 33) % i;
      values[i] = plan(&m, NODE(&m, OP_FLIP, t, A_VAL(values[from]),
                                A_INTS(((const SymInt[]){1}), 1))); /* never in place */
      last[from] = last[i] = i;
    }
    last[count - 1] = count;
    finish(&m, &values[count - 1], 1);
    for (uint32_t i = 0; i < count; i++) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      m.g->storages[m.g->values[values[i]].storage].offset = (seed >> 33) % slots * 16;
    }
    m.g->arena_sizes[1] = slots * 16 + 32;
    bool overlap = false;
    for (uint32_t i = 0; i < count; i++)
      for (uint32_t k = 0; k < i; k++) {
        uint64_t a = m.g->storages[m.g->values[values[i]].storage].offset,
                 b = m.g->storages[m.g->values[values[k]].storage].offset;
        overlap |= i <= last[k] && a < b + 32 && b < a + 32;
      }
    strbuf_clear(&f->capture.text);
    bool found = pte_verify_plan(m.g) != STATUS_OK;
    if (found != overlap)
      fail_msg("round %d: overlap %d, found %d", round, overlap, found);
    right += !overlap;
    wrong += overlap;
    graph_free(m.g);
  }
  assert_true(wrong > 50 && right > 50);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(test_apart),
      TEST(test_overlap),
      TEST(test_in_place),
      TEST(test_in_place_while_needed),
      TEST(test_in_place_not_allowed),
      TEST(test_in_place_broadcast),
      TEST(test_in_place_cast),
      TEST(test_view_keeps_base),
      TEST(test_view),
      TEST(test_output_stays),
      TEST(test_unused_input),
      TEST(test_unused_result),
      TEST(test_outside),
      TEST(test_no_such_arena),
      TEST(test_misaligned),
      TEST(test_too_small),
      TEST(test_not_planned),
      TEST(test_output_not_planned),
      TEST(test_random),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

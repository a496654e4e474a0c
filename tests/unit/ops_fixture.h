/* For tests of ops: a graph with a builder, constants from literals, and the evaluation of one
 * node. */
#ifndef ETC_TESTS_OPS_FIXTURE_H
#define ETC_TESTS_OPS_FIXTURE_H

#include "unit.h"

#include <math.h>

#include "interp/interp.h"
#include "ir/builder.h"

typedef struct OpsFixture {
  Capture capture;
  Context ctx;
  Graph *g;
  Builder b;
  Arena arena;
} OpsFixture;

static inline void fixture_init(OpsFixture *f) {
  capture_init(&f->capture);
  context_init(&f->ctx, &f->capture.sink);
  f->g = graph_new(&f->ctx, SV("test"));
  f->b = builder_make(f->g, 0, 0);
  f->arena = (Arena){0};
}
static inline void fixture_release(OpsFixture *f) {
  arena_release(&f->arena);
  graph_free(f->g);
  context_release(&f->ctx);
  capture_release(&f->capture);
}
/* Forgets an expected failure. */
static inline void fixture_clear(OpsFixture *f) {
  f->b.status = STATUS_OK;
  f->capture.sink.errors = 0;
  strbuf_clear(&f->capture.text);
}

#define DIMS(...)                                                                                  \
  (const int64_t[]){__VA_ARGS__},                                                                  \
      (uint32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
#define VALUES(...)                                                                                \
  (const double[]){__VA_ARGS__}, (uint32_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

/* A constant; values repeat when the tensor has more elements. */
static inline ValueId fixture_const(OpsFixture *f, DType dtype, const int64_t *dims, uint32_t rank,
                                    const double *values, uint32_t count) {
  Tensor t = {.dtype = dtype, .rank = rank};
  for (uint32_t i = 0; i < rank; i++)
    t.dims[i] = dims[i];
  t.data = arena_alloc(&f->arena, (size_t)tensor_bytes(&t) + 1);
  for (int64_t i = 0; i < tensor_numel(&t); i++)
    tensor_store(&t, i, values[(uint32_t)i % count]);
  return build_const(&f->b, dtype, rank, dims, t.data);
}
static inline ValueId fixture_input(OpsFixture *f, DType dtype, const SymInt *dims, uint32_t rank) {
  return graph_add_input(f->g, graph_tensor_type(f->g, dtype, rank, dims, ORDER_CONTIGUOUS), 0);
}

/* v must be built, with that type. */
static inline void check_built(OpsFixture *f, ValueId v, DType dtype, const SymInt *dims,
                               uint32_t rank) {
  if (!v)
    fail_msg("refused: %s", strbuf_cstr(&f->capture.text));
  const Type *t = value_type(f->g, v);
  assert_string_equal(dtype_name((DType)t->dtype), dtype_name(dtype));
  assert_int_equal(t->rank, rank);
  for (uint32_t i = 0; i < rank; i++)
    assert_true(t->dims[i] == dims[i]);
}

/* The results of the node that defines v, whose operands are constants. */
static inline Status fixture_try_eval(OpsFixture *f, ValueId v, Tensor *results) {
  return interp_eval_const_node(f->g, value_def(f->g, v), &f->arena, results, &f->capture.sink);
}
static inline const Tensor *fixture_eval(OpsFixture *f, ValueId v) {
  if (!v)
    fail_msg("not built: %s", strbuf_cstr(&f->capture.text));
  Tensor *results = ARENA_ARRAY(&f->arena, Tensor, 64);
  if (fixture_try_eval(f, v, results) != STATUS_OK)
    fail_msg("not evaluated: %s", strbuf_cstr(&f->capture.text));
  return results;
}

static inline void check_tensor(const Tensor *t, DType dtype, const int64_t *dims, uint32_t rank,
                                const double *values, uint32_t count, double tolerance) {
  assert_string_equal(dtype_name(t->dtype), dtype_name(dtype));
  assert_int_equal(t->rank, rank);
  for (uint32_t i = 0; i < rank; i++)
    assert_int_equal(t->dims[i], dims[i]);
  assert_int_equal(tensor_numel(t), count);
  for (uint32_t i = 0; i < count; i++) {
    double got = tensor_load(t, i), want = values[i];
    bool same = got == want || (isnan(got) && isnan(want)) ||
                fabs(got - want) <= tolerance * (1 + fabs(want));
    if (!same)
      fail_msg("element %u is %.9g, expected %.9g", i, got, want);
  }
}
/* check_value(&f, value, dtype, DIMS(...), VALUES(...)): exact up to 1e-6. */
#define check_value(f, v, dtype, ...)                                                              \
  check_tensor(fixture_eval((f), (v)), (dtype), __VA_ARGS__, 1e-6)

/* The build must fail with a message that holds `part`. */
static inline void check_refused(OpsFixture *f, ValueId v, const char *part) {
  assert_int_equal(v, 0);
  assert_contains(strbuf_cstr(&f->capture.text), part);
  fixture_clear(f);
}

/* The kernel of the node must report an error that holds part. */
static inline void check_run_error(OpsFixture *f, ValueId v, const char *part) {
  Tensor results[4];
  assert_int_not_equal(v, 0);
  assert_int_not_equal(fixture_try_eval(f, v, results), STATUS_OK);
  assert_contains(strbuf_cstr(&f->capture.text), part);
  fixture_clear(f);
}

/* Setup and teardown of a test whose state is an OpsFixture, and its row in the list of tests. */
static inline int fixture_setup(void **state) {
  OpsFixture *f = test_malloc(sizeof *f);
  fixture_init(f);
  *state = f;
  return 0;
}

static inline int fixture_teardown(void **state) {
  fixture_release(*state);
  test_free(*state);
  return 0;
}

#define OPS_TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

#endif

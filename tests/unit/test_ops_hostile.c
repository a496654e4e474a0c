/* Every op of the table with arguments made at random from awkward parts: each rule and kernel must
 * give a result or an error, never a crash or undefined behaviour (the sanitizer build runs this
 * too), and whatever a rule accepts its kernel must survive. */
#include "ops_fixture.h"

#include <stdlib.h>

#ifndef ROUNDS
#define ROUNDS 500
#endif
#define RESULT_MAX (1 << 18) /* bytes of a result that is computed */

static uint64_t random_next(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}
static uint32_t pick(uint64_t *state, uint32_t count) {
  return (uint32_t)(random_next(state) % count);
}

static int64_t random_int(uint64_t *state) {
  static const int64_t awkward[] = {INT64_MAX, INT64_MIN, INT32_MAX, INT32_MIN, INT64_C(1) << 40,
                                    -3,        16,        64,        1000};
  uint32_t kind = pick(state, 10);
  return kind > 6   ? 1
         : kind > 0 ? (int64_t)pick(state, 6) - 1
                    : awkward[pick(state, COUNT_OF(awkward))];
}

static double random_float(uint64_t *state) {
  static const double awkward[] = {NAN,  INFINITY, -INFINITY, 1e300, -1e300, 0.0,
                                   -0.0, 0.5,      1.0,       2.0,   -1.5};
  return awkward[pick(state, COUNT_OF(awkward))];
}

static DType random_dtype(uint64_t *state) {
  static const DType dtypes[] = {DTYPE_F32, DTYPE_F32,  DTYPE_F32, DTYPE_I64,  DTYPE_F64,
                                 DTYPE_F16, DTYPE_BF16, DTYPE_U8,  DTYPE_BOOL, DTYPE_I32,
                                 DTYPE_I8,  DTYPE_I16,  DTYPE_U16, DTYPE_U32,  DTYPE_U64};
  return dtypes[pick(state, COUNT_OF(dtypes))];
}

static double tame_float(uint64_t *state) {
  static const double tame[] = {-3, -2, -1.5, -1, -0.5, -0.0, 0, 0.25, 0.5, 1, 2, 3, 5, NAN};
  return tame[pick(state, COUNT_OF(tame) - (pick(state, 4) != 0))];
}

/* A small constant; within one round ranks, dims and dtypes agree more often than not. */
typedef struct Round {
  OpsFixture *f;
  uint64_t *state;
  DType dtype;
  bool tame; /* all tensors are of dtype, with small numbers that any float type holds */
  uint32_t rank;
  int64_t dims[MAX_RANK];
} Round;

static ValueId random_tensor(Round *r) {
  uint64_t *s = r->state;
  DType dtype = pick(s, 8) || r->tame ? r->dtype : random_dtype(s);
  uint32_t rank = pick(s, 4) ? r->rank : pick(s, 6);
  int64_t dims[MAX_RANK] = {0};
  for (uint32_t i = 0; i < rank; i++)
    dims[i] = pick(s, 12) ? r->dims[i] : (int64_t)pick(s, 4);
  double values[8];
  for (uint32_t i = 0; i < COUNT_OF(values); i++)
    values[i] = r->tame ? tame_float(s) : pick(s, 3) ? (double)random_int(s) : random_float(s);
  return fixture_const(r->f, dtype, dims, rank, values, COUNT_OF(values));
}

static ArgIn random_scalar(uint64_t *s) {
  uint32_t kind = pick(s, 3);
  return kind == 0   ? A_INT(random_int(s))
         : kind == 1 ? A_FLOAT(random_float(s))
                     : A_BOOL(pick(s, 2));
}

static ArgIn random_list(Round *r, SchemaType type) {
  uint64_t *s = r->state;
  uint32_t count = pick(s, 4) ? (pick(s, 2) ? r->rank : pick(s, 4)) : pick(s, 20);
  if (type == ST_TENSOR) {
    ValueId *values = ARENA_ARRAY(&r->f->arena, ValueId, count);
    for (uint32_t i = 0; i < count; i++)
      values[i] = random_tensor(r);
    return A_VALS(values, count);
  }
  if (type == ST_FLOAT) {
    double *floats = ARENA_ARRAY(&r->f->arena, double, count);
    for (uint32_t i = 0; i < count; i++)
      floats[i] = random_float(s);
    return A_FLOATS(floats, count);
  }
  SymInt *ints = ARENA_ARRAY(&r->f->arena, SymInt, count);
  for (uint32_t i = 0; i < count; i++)
    ints[i] = pick(s, 2) && i < r->rank ? r->dims[i] : random_int(s);
  return A_INTS(ints, count);
}

static ArgIn random_arg(Round *r, const SchemaArg *arg) {
  static const char *const strings[] = {"none", "tanh", "floor", "trunc", "", "x"};
  uint64_t *s = r->state;
  if ((arg->optional && pick(s, 2)) || (arg->has_default && pick(s, 3) == 0))
    return arg->has_default ? arg->default_value : A_NONE;
  if (arg->list)
    return random_list(r, arg->type);
  switch (arg->type) {
  case ST_TENSOR:
    return A_VAL(random_tensor(r));
  case ST_FLOAT:
    return A_FLOAT(r->tame ? tame_float(s) : random_float(s));
  case ST_BOOL:
    return A_BOOL(pick(s, 2));
  case ST_SCALAR:
    return !r->tame     ? random_scalar(s)
           : pick(s, 2) ? A_FLOAT(tame_float(s))
                        : A_INT((int64_t)pick(s, 6) - 2);
  case ST_STR:
    return A_STR(strings[pick(s, COUNT_OF(strings))]);
  case ST_DTYPE:
    return A_DTYPE(random_dtype(s));
  case ST_INT:
    return A_INT(random_int(s));
  default:
    return A_NONE;
  }
}

/* Whether the node's results are small and static enough to compute. */
static bool small_results(const Graph *g, NodeId n) {
  for (uint32_t i = 0; i < node_cget(g, n)->result_count; i++) {
    const Type *t = value_type(g, node_result(g, n, i));
    if (!type_is_static(t) || type_bytes_upper(g, t) > RESULT_MAX)
      return false;
  }
  return true;
}

/* Numbers of rounds in which the rule accepted the arguments, and in which the kernel ran. */
typedef struct Tally {
  uint32_t accepted, computed;
} Tally;

/* Random arguments rarely make a convolution: operands that fit each other, with now and then an
 * awkward entry. */
static void convolution_args(Round *r, ArgIn *args) {
  uint64_t *s = r->state;
  uint32_t spatial = 1 + pick(s, 3);
  bool transposed = pick(s, 2);
  int64_t groups = 1 + pick(s, 3), a = groups * (1 + pick(s, 2)), b = 1 + pick(s, 3);
  int64_t x[5] = {pick(s, 3), transposed ? a : b * groups}, w[5] = {a, b};
  for (uint32_t i = 0; i < spatial; i++) {
    x[2 + i] = pick(s, 7);
    w[2 + i] = pick(s, 4);
  }
  double values[2] = {1.5, random_float(s)};
  args[0] = A_VAL(fixture_const(r->f, r->dtype, x, 2 + spatial, values, 2));
  args[1] = A_VAL(fixture_const(r->f, r->dtype, w, 2 + spatial, values, 2));
  args[2] = A_NONE;
  for (uint32_t i = 3; i < 8; i++) {
    SymInt *list = ARENA_ARRAY(&r->f->arena, SymInt, 3);
    for (uint32_t k = 0; k < 3; k++)
      list[k] = pick(s, 30) ? pick(s, 3) + (i == 3 || i == 5) : random_int(s);
    args[i] = A_INTS(list, spatial);
  }
  args[6] = A_BOOL(transposed);
  args[8] = A_INT(groups);
}

/* Parameters that lie as the op wants them: one, one a channel, a row or a block. */
static void quantize_args(Round *r, OpId op, ArgIn *args) {
  uint64_t *s = r->state;
  bool unsigned_codes = pick(s, 2), codes = op_has_trait(op, OP_DEQUANTIZE),
       affine = op == OP_DEQUANTIZE_AFFINE,
       channels = op == OP_QUANTIZE_PER_CHANNEL || op == OP_DEQUANTIZE_PER_CHANNEL,
       rows = op == OP_QUANTIZE_PER_TOKEN || op == OP_DEQUANTIZE_PER_TOKEN;
  DType dtype = unsigned_codes ? DTYPE_U8 : DTYPE_I8;
  int64_t x[2] = {2 * (1 + pick(s, 3)), 1 + pick(s, 3)}, parameters[2] = {x[0], x[1]};
  double values[3] = {1.5, 0.25, random_float(s)}, zeros[2] = {1, 3};
  uint32_t rank = channels ? 1 : rows || affine ? 2 : 0, at = affine ? 2 : 1;
  parameters[0] /= affine ? 2 : 1;
  parameters[1] = rows ? 1 : x[1];
  args[0] = A_VAL(fixture_const(r->f, codes ? dtype : DTYPE_F32, x, 2, values, COUNT_OF(values)));
  if (affine) {
    SymInt *blocks = ARENA_ARRAY(&r->f->arena, SymInt, 2);
    blocks[0] = 2, blocks[1] = 1;
    args[1] = A_INTS(blocks, 2);
  }
  args[at] = A_VAL(fixture_const(r->f, DTYPE_F32, parameters, rank, values, 2));
  args[at + 1] = A_VAL(
      fixture_const(r->f, affine ? dtype : DTYPE_I64, parameters, rank, zeros, COUNT_OF(zeros)));
  if (op == OP_QUANTIZE_PER_TENSOR || op == OP_DEQUANTIZE_PER_TENSOR) {
    args[1] = A_FLOAT(pick(s, 4) ? 0.5 : random_float(s));
    args[2] = A_INT(pick(s, 4) ? 3 : random_int(s));
  }
  at += 2;
  if (channels)
    args[at++] = A_INT(pick(s, 4) ? 0 : random_int(s));
  if (affine)
    args[at++] = A_DTYPE(dtype);
  args[at++] = A_INT(unsigned_codes ? 0 : INT8_MIN);
  args[at++] = A_INT(unsigned_codes ? UINT8_MAX : INT8_MAX);
  if (!affine)
    args[at] = A_DTYPE(dtype);
}

static void one_round(OpId op, uint64_t *state, Tally *tally) {
  OpsFixture f;
  fixture_init(&f);
  f.capture.sink.max_errors = 1;
  Round r = {.f = &f, .state = state, .dtype = random_dtype(state), .rank = pick(state, 6)};
  bool square = pick(state, 2); /* what lets products and convolutions fit */
  r.dims[0] = 1 + (int64_t)pick(state, 4);
  for (uint32_t i = 1; i < MAX_RANK; i++)
    r.dims[i] = square ? r.dims[0] : 1 + (int64_t)pick(state, 4);
  const OpSchema *schema = op_schema(op);
  ArgIn args[SCHEMA_MAX_ARGS];
  for (uint32_t i = 0; i < schema->arg_count; i++)
    args[i] = random_arg(&r, &schema->args[i]);
  if (op == OP_CONVOLUTION && pick(state, 8))
    convolution_args(&r, args);
  if (op_has_trait(op, OP_QUANTIZE | OP_DEQUANTIZE) && pick(state, 4))
    quantize_args(&r, op, args);
  f.ctx.fault.text[0] = '\0';
  NodeId n = graph_add_node(f.g, 0, op, args, schema->arg_count,
                            schema->result_list ? 0 : schema->result_count, 0);
  Status status = shape_infer(f.g, n);
  if (status != STATUS_OK) {
    if (!f.ctx.fault.text[0])
      fail_msg("%s refuses without a message", op_row(op)->id);
  } else {
    tally->accepted++;
    if (op_row(op)->check)
      (void)op_row(op)->check(f.g, n, &f.arena);
    Tensor *results = ARENA_ARRAY(&f.arena, Tensor, node_cget(f.g, n)->result_count + 1);
    if (small_results(f.g, n) &&
        interp_eval_const_node(f.g, n, &f.arena, results, &f.capture.sink) == STATUS_OK)
      tally->computed++;
  }
  fixture_release(&f);
}

static void test_every_op(void **unused) {
  (void)unused;
  uint32_t missed = 0, total = 0;
  for (OpId op = OP_OUTPUT + 1; op < op_count(); op++) {
    uint64_t state = op;
    Tally tally = {0};
    if (!op_row(op)->shape || (!op_row(op)->kernel && !op_has_trait(op, OP_CONTROL)))
      fail_msg("%s has no shape rule or no kernel", op_row(op)->id);
    for (uint32_t round = 0; round < ROUNDS; round++)
      one_round(op, &state, &tally);
    bool runs = !op_has_trait(op, OP_RANDOM) && !op_has_trait(op, OP_EFFECT) &&
                !op_has_trait(op, OP_DATA_SHAPE);
    if (getenv("ETC_TEST_TALLY"))
      print_message("%-45s %4u %4u\n", op_row(op)->id, tally.accepted, tally.computed);
    missed += runs && tally.computed == 0;
    total += tally.computed;
  }
  print_message("%u calls computed; %u ops never got arguments that fit\n", total, missed);
  assert_true(missed <= 8);
  assert_true(total > op_count() * ROUNDS / 4);
}

/* The results of an op on tame tensors of that type; NULL where its rule or its kernel refuses. */
static Tensor *tame_results(OpsFixture *f, OpId op, uint64_t *state, DType dtype, uint32_t *count) {
  Round r = {.f = f, .state = state, .dtype = dtype, .tame = true, .rank = 1 + pick(state, 3)};
  bool square = pick(state, 2);
  r.dims[0] = 1 + (int64_t)pick(state, 4);
  for (uint32_t i = 1; i < MAX_RANK; i++)
    r.dims[i] = square ? r.dims[0] : 1 + (int64_t)pick(state, 4);
  const OpSchema *schema = op_schema(op);
  ArgIn args[SCHEMA_MAX_ARGS];
  for (uint32_t i = 0; i < schema->arg_count; i++)
    args[i] = schema->args[i].type == ST_DTYPE ? A_NONE : random_arg(&r, &schema->args[i]);
  NodeId n = graph_add_node(f->g, 0, op, args, schema->arg_count,
                            schema->result_list ? 0 : schema->result_count, 0);
  bool fine = shape_infer(f->g, n) == STATUS_OK && small_results(f->g, n);
  *count = node_cget(f->g, n)->result_count; /* the rule makes those of a list */
  Tensor *results = ARENA_ARRAY(&f->arena, Tensor, *count + 1);
  fine = fine && interp_eval_const_node(f->g, n, &f->arena, results, &f->capture.sink) == STATUS_OK;
  return fine ? results : NULL;
}

static void compare_types(OpId op, uint32_t round, const Tensor *f32, const Tensor *f64) {
  assert_int_equal(tensor_numel(f32), tensor_numel(f64));
  for (int64_t i = 0; i < tensor_numel(f32); i++) {
    double a = tensor_load(f32, i), b = tensor_load(f64, i);
    bool same = a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= 2e-4 * (1 + fabs(b));
    if (!same)
      fail_msg("%s, round %u: element %lld is %.9g in %s and %.9g in %s", op_row(op)->id, round,
               (long long)i, a, dtype_name(f32->dtype), b, dtype_name(f64->dtype));
  }
}

/* Kernels have a function a type: those of f64 compute what those of f32 do. */
static void test_doubles(void **unused) {
  (void)unused;
  uint32_t computed = 0;
  for (OpId op = OP_OUTPUT + 1; op < op_count(); op++) {
    if (op_has_trait(op, OP_RANDOM | OP_CONTROL) || !op_row(op)->kernel)
      continue;
    for (uint32_t round = 0; round < 60; round++) {
      uint64_t state = ((uint64_t)op << 20) + round, other = state;
      OpsFixture f;
      fixture_init(&f);
      uint32_t count, again;
      Tensor *f32 = tame_results(&f, op, &state, DTYPE_F32, &count),
             *f64 = tame_results(&f, op, &other, DTYPE_F64, &again);
      for (uint32_t i = 0; f32 && f64 && i < count; i++)
        compare_types(op, round, &f32[i], &f64[i]);
      computed += f32 && f64;
      fixture_release(&f);
    }
  }
  print_message("%u calls in f32 and f64\n", computed);
  assert_true(computed > 3000);
}

/* More lanes than can be counted through, and nothing in them. */
static void test_empty_lanes(void **unused) {
  (void)unused;
  OpsFixture f;
  fixture_init(&f);
  ValueId x = fixture_const(&f, DTYPE_F32, DIMS(1 << 30, 0, 512), VALUES(0));
  (void)fixture_eval(&f, build(&f.b, OP_SOFTMAX, A_VAL(x), A_INT(1), A_BOOL(false)));
  (void)fixture_eval(&f, build(&f.b, OP_LOG_SOFTMAX, A_VAL(x), A_INT(1), A_BOOL(false)));
  (void)fixture_eval(&f, build(&f.b, OP_CUMSUM, A_VAL(x), A_INT(1)));
  (void)fixture_eval(&f, build(&f.b, OP_FLIP, A_VAL(x), A_INTS((const SymInt[]){1}, 1)));
  fixture_release(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_op),
                                     cmocka_unit_test(test_doubles),
                                     cmocka_unit_test(test_empty_lanes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Quantized values of XNNPACK delegates: what the reader refuses of them, what the interpreter
 * computes on them. Whether the runtime computes the same is tests/pte/run_quantized.py. */
#include <math.h>

#include "xnn_cases.h"

#include "backends/backend.h"
#include "backends/xnnpack/blob.h"

/* --- parameters --- */

/* Parameters that are wrong on their own. */
static void parameters(void **state) {
#define ALONE(...)                                                                                 \
  {                                                                                                \
    .values = { {.kind = 2, __VA_ARGS__} }                                                         \
  }
#define CHANNELS .form = MADE_PER_CHANNEL, .datatype = 6, .constant = 1
#define GROUPS .form = MADE_PER_GROUP, .datatype = 10, .constant = 1
  static const Case cases[] = {
      {"the scale 1.4013e-45", ALONE(SHAPE(2), .datatype = 3, .form = 0, .scale = 1e-45f), {0}},
      {"the scale inf", ALONE(SHAPE(2), .datatype = 3, .scale = INFINITY), {0}},
      {"the scale -1", ALONE(SHAPE(2), .datatype = 3, .scale = -1), {0}},
      {"the zero point 128, and its datatype -128 to 127",
       ALONE(SHAPE(2), .datatype = 3, .scale = 1, .zero_point = 128),
       {0}},
      {"the zero point -1, and its datatype 0 to 255",
       ALONE(SHAPE(2), .datatype = 4, .scale = 1, .zero_point = -1),
       {0}},
      {"the zero point 1, and its datatype 0 to 0",
       ALONE(SHAPE(2), .datatype = 5, .scale = 1, .zero_point = 1),
       {0}},
      {"the datatype 6 and quantization parameters of kind 2",
       ALONE(SHAPE(2), .datatype = 6, .scale = 1),
       {0}},
      {"the datatype 1 and quantization parameters of kind 2",
       ALONE(SHAPE(2), .datatype = 1, .scale = 1),
       {0}},
      {"a scale for each element of dim 2", ALONE(SHAPE(2, 3), CHANNELS, .channel_dim = 2), {0}},
      {"1 scales for dim 0, which has 2 elements",
       ALONE(SHAPE(2, 3), CHANNELS, .scale_count = 1, .scales = {1}),
       {0}},
      {"3 scales for dim 0, which has 2 elements",
       ALONE(SHAPE(2, 3), CHANNELS, .scale_count = 3, .scale_constant = 2),
       {0}},
      {"rank 1 and groups in dim 0", ALONE(SHAPE(64), GROUPS, .group_size = 32), {0}},
      {"groups in dim 1", ALONE(SHAPE(2, 64), GROUPS, .group_size = 32, .channel_dim = 1), {0}},
      {"rows of 64 elements in groups of 0", ALONE(SHAPE(2, 64), GROUPS), {0}},
      {"rows of 64 elements in groups of 16", ALONE(SHAPE(2, 64), GROUPS, .group_size = 16), {0}},
      {"rows of 48 elements in groups of 32", ALONE(SHAPE(2, 48), GROUPS, .group_size = 32), {0}},
      {"3 scales for 2 rows of 2 groups",
       ALONE(SHAPE(2, 64), GROUPS, .group_size = 32, .scale_count = 3),
       {0}},
      {"a scale for its last 0 dims",
       ALONE(SHAPE(2, 3), .datatype = 9, .form = MADE_PER_TOKEN, .nonbatch_dims = 0),
       {0}},
      {"a scale for its last 3 dims",
       ALONE(SHAPE(2, 3), .datatype = 9, .form = MADE_PER_TOKEN, .nonbatch_dims = 3),
       {0}},
      {"the datatype 6, and is not a constant",
       {.values = {{.kind = 2,
                    SHAPE(1, 3),
                    .form = MADE_PER_CHANNEL,
                    .datatype = 6,
                    .scale_count = 1,
                    .scales = {1}}}},
       {0}},
      {"the datatype 5, and is not a constant", ALONE(SHAPE(2), .datatype = 5, .scale = 1), {0}},
      {"the datatype 9, and is a constant",
       ALONE(SHAPE(2, 3), .datatype = 9, .form = MADE_PER_TOKEN, .nonbatch_dims = 1, .constant = 1),
       {0}},
      {"the datatype 9, and is an argument",
       ALONE(SHAPE(2, 3), .datatype = 9, .form = MADE_PER_TOKEN, .nonbatch_dims = 1, .external = 1,
             .flags = 1),
       {0}},
      {"the scale vector of value 0 has 8 bytes, and its constant 12",
       {.values = {{.kind = 2, SHAPE(2, 3), CHANNELS, .scale_count = 2, .scale_constant = 2}},
        .constants = {{0}, {0}, {.more_size = 4}}},
       {0}},
      {"the scale vector of value 0 is constant 9",
       ALONE(SHAPE(2, 3), CHANNELS, .scale_count = 2, .scale_constant = 9),
       {0}},
  };
  TRY_CASES(cases);
}

#define PER_TENSOR(v_datatype, v_external, v_flags, v_scale, ...)                                  \
  {                                                                                                \
    .kind = 2, .datatype = (v_datatype), .external = (v_external), .flags = (v_flags),             \
    .scale = (v_scale), __VA_ARGS__                                                                \
  }
#define ACT_IN(...) PER_TENSOR(3, 1, 1, 0.5f, __VA_ARGS__)
#define ACT_OUT(...) PER_TENSOR(3, 2, 2, 0.5f, __VA_ARGS__)
#define FILTER(v_datatype, v_count, v_dim, ...)                                                    \
  {                                                                                                \
    .kind = 2, .datatype = (v_datatype), .form = MADE_PER_CHANNEL, .constant = 1,                  \
    .scale_constant = 3, .scale_count = (v_count), .channel_dim = (v_dim), __VA_ARGS__             \
  }
#define ROWS(...)                                                                                  \
  { .kind = 2, .datatype = 9, .form = MADE_PER_TOKEN, __VA_ARGS__ }

#define BARE                                                                                       \
  {                                                                                                \
    {                                                                                              \
      PRODUCT, { 0, 2, MADE_NONE, 1, 0 }                                                           \
    }                                                                                              \
  }
#define DYNAMIC                                                                                    \
  {                                                                                                \
    {CONVERT, {0, 3, 0}}, {                                                                        \
      PRODUCT, { 3, 2, MADE_NONE, 1, 0 }                                                           \
    }                                                                                              \
  }

/* Datatypes and parameters of the operands of one node. */
static void quantized_weights(void **state) {
  static const Case cases[] = {
      {NULL,
       {.values = {ACT_IN(SHAPE(2, 6)), ACT_OUT(SHAPE(2, 4)), FILTER(6, 4, 0, SHAPE(4, 6))},
        .nodes = BARE},
       {0}},
      {NULL,
       {.values = {ACT_IN(SHAPE(2, 6)), ACT_OUT(SHAPE(2, 4)), FILTER(8, 4, 0, SHAPE(4, 6))},
        .nodes = BARE},
       {0}},
      {"an odd number of inputs, 5",
       {.values = {ACT_IN(SHAPE(2, 5)), ACT_OUT(SHAPE(2, 4)), FILTER(8, 4, 0, SHAPE(4, 5))},
        .nodes = BARE},
       {0}},
      {NULL, /* floats take it */
       {.values = {IN(0, 2, 5), OUT(1, 2, 4), FILTER(8, 4, 0, SHAPE(4, 5))}, .nodes = BARE},
       {0}},
      {"a transposed filter of nibbles",
       {.values = {ACT_IN(SHAPE(2, 4)), ACT_OUT(SHAPE(2, 4)), FILTER(8, 4, 1, SHAPE(4, 4))},
        .nodes = {{PRODUCT, {0, 2, MADE_NONE, 1, 1}}}},
       {0}},
      {"its scales for dim 1 instead of 0",
       {.values = {ACT_IN(SHAPE(2, 6)), ACT_OUT(SHAPE(2, 4)), FILTER(6, 6, 1, SHAPE(4, 6))},
        .nodes = BARE},
       {0}},
      {"its scales for dim 0 instead of 1",
       {.values = {ACT_IN(SHAPE(2, 6)), ACT_OUT(SHAPE(2, 4)), FILTER(6, 6, 0, SHAPE(6, 4))},
        .nodes = {{PRODUCT, {0, 2, MADE_NONE, 1, 1}}}},
       {0}},
      {"datatypes 4, 6, 0 -> 4",
       {.values = {PER_TENSOR(4, 1, 1, 0.5f, SHAPE(2, 6)), PER_TENSOR(4, 2, 2, 0.5f, SHAPE(2, 4)),
                   FILTER(6, 4, 0, SHAPE(4, 6))},
        .nodes = BARE},
       {0}},
      {"datatypes 3, 6, 0 -> 1",
       {.values = {ACT_IN(SHAPE(2, 6)), OUT(1, 2, 4), FILTER(6, 4, 0, SHAPE(4, 6))}, .nodes = BARE},
       {0}},
  };
  TRY_CASES(cases);
}

static void quantized_filters(void **state) {
  static const Case cases[] = {
      {"the filter has the zero point 3",
       {.values = {ACT_IN(SHAPE(2, 6)), ACT_OUT(SHAPE(2, 4)),
                   PER_TENSOR(3, 0, 0, 1, SHAPE(4, 6), .zero_point = 3, .constant = 1)},
        .nodes = BARE},
       {0}},
      {"the scale of the sums is 256 times that of the result",
       {.values = {ACT_IN(SHAPE(2, 6)), ACT_OUT(SHAPE(2, 4)),
                   PER_TENSOR(3, 0, 0, 256, SHAPE(4, 6), .constant = 1)},
        .nodes = BARE},
       {0}},
      {NULL,
       {.values = {ACT_IN(SHAPE(2, 6)), ACT_OUT(SHAPE(2, 4)),
                   PER_TENSOR(3, 0, 0, 255, SHAPE(4, 6), .constant = 1)},
        .nodes = BARE},
       {0}},
      {"a quantized filter that is not constant",
       {.values = {ACT_IN(SHAPE(2, 6)), ACT_OUT(SHAPE(2, 4)), PER_TENSOR(3, 0, 0, 1, SHAPE(4, 6)),
                   CONSTANT(2, 4, 6)},
        .nodes = {{CONVERT, {3, 2, 0}}, {PRODUCT, {0, 2, MADE_NONE, 1, 0}}}},
       {0}},
      {NULL,
       {.values = {IN(0, 2, 6), OUT(1, 2, 4), FILTER(6, 4, 0, SHAPE(4, 6)),
                   ROWS(SHAPE(2, 6), .nonbatch_dims = 1)},
        .nodes = DYNAMIC},
       {0}},
      {"a scale for its last 2 dims instead of 1",
       {.values = {IN(0, 2, 6), OUT(1, 2, 4), FILTER(6, 4, 0, SHAPE(4, 6)),
                   ROWS(SHAPE(2, 6), .nonbatch_dims = 2)},
        .nodes = DYNAMIC},
       {0}},
      {"datatypes 9, 3, 0 -> 1",
       {.values = {IN(0, 2, 6), OUT(1, 2, 4), PER_TENSOR(3, 0, 0, 1, SHAPE(4, 6), .constant = 1),
                   ROWS(SHAPE(2, 6), .nonbatch_dims = 1)},
        .nodes = DYNAMIC},
       {0}},
      {"datatypes 1, 6, 0 -> 1", /* no convolution takes it */
       {.values = {IN(0, 1, 2, 2, 3), OUT(1, 1, 2, 2, 4), FILTER(6, 4, 0, SHAPE(4, 1, 1, 3))},
        .nodes = {{CONV, {0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 3, 4, 1, 0, 0, 0, 2, MADE_NONE, 1, 0}}}},
       {0}},
  };
  TRY_CASES(cases);
}

static void quantized_nodes(void **state) {
  uint32_t slope;
  memcpy(&slope, &(float){200}, sizeof slope);
  const Case cases[] = {
      {NULL,
       {.values = {ACT_IN(SHAPE(2)), ACT_OUT(SHAPE(2))}, .nodes = {{SIGMOID, {0, 1, 0}}}},
       {0}},
      {"the datatype 3",
       {.values = {ACT_IN(SHAPE(2)), ACT_OUT(SHAPE(2))}, .nodes = {{SOFTMAX, {0, 1, 0}}}},
       {0}},
      {"the scale of the operand is 1 times that of the result, 200 below zero",
       {.values = {ACT_IN(SHAPE(2)), ACT_OUT(SHAPE(2))}, .nodes = {{LEAKY, {slope, 0, 1, 0}}}},
       {0}},
      {NULL,
       {.values = {ACT_IN(SHAPE(2)), PER_TENSOR(3, 2, 2, 0x1p-8f, SHAPE(2))},
        .nodes = {{CONVERT, {0, 1, 0}}}},
       {0}},
      {"the scale of the operand is 129",
       {.values = {PER_TENSOR(3, 1, 1, 129, SHAPE(2)), PER_TENSOR(3, 2, 2, 1, SHAPE(2))},
        .nodes = {{CONVERT, {0, 1, 0}}}},
       {0}},
      {"operand 0 has the scale 0.5 and zero point 0, and the result 0.25 and 0",
       {.values = {ACT_IN(SHAPE(2)), PER_TENSOR(3, 2, 2, 0.25f, SHAPE(1, 2))},
        .nodes = {{.tag = RESHAPE, .fields = {2, VEC(0), 0, 1, 0}, .vectors = {{2, {1, 2}}}}}},
       {0}},
      {"operand 0 has the scale 0.5 and zero point 0, and the result 0.5 and 1",
       {.values = {ACT_IN(SHAPE(2)), ACT_OUT(SHAPE(1, 2), .zero_point = 1)},
        .nodes = {{.tag = RESHAPE, .fields = {2, VEC(0), 0, 1, 0}, .vectors = {{2, {1, 2}}}}}},
       {0}},
      {"the scale of the larger operand is 256",
       {.values = {PER_TENSOR(3, 1, 1, 128, SHAPE(2)), ACT_OUT(SHAPE(2))},
        .nodes = {{ADD, {0, 0, 1, 0}}}},
       {0}},
      {"the scale of the larger operand is 0.0009",
       {.values = {PER_TENSOR(3, 1, 1, 0.0009f, SHAPE(2)), PER_TENSOR(3, 2, 2, 1, SHAPE(2))},
        .nodes = {{ADD, {0, 0, 1, 0}}}},
       {0}},
      {"datatype 3, and the zero point 1 of the second operand",
       {.values = {ACT_IN(SHAPE(2, 2), .zero_point = 1), ACT_OUT(SHAPE(2, 2))},
        .nodes = {{MATMUL, {0, 0, 1, 0}}}},
       {0}},
      {"datatype 2 is not converted to 9",
       {.values = {{.external = 1, .flags = 1, .datatype = 2, SHAPE(2, 6)},
                   ROWS(SHAPE(2, 6), .nonbatch_dims = 1)},
        .nodes = {{CONVERT, {0, 1, 0}}}},
       {0}},
      {"datatype 9 is not converted to 1",
       {.values = {IN(0, 2, 6), OUT(1, 2, 6), ROWS(SHAPE(2, 6), .nonbatch_dims = 1)},
        .nodes = {{CONVERT, {0, 2, 0}}, {CONVERT, {2, 1, 0}}}},
       {0}},
  };
  TRY_CASES(cases);
}

/* --- what is written is read --- */

static void written_parameters(void **state) {
  DiagSink sink;
  Context ctx;
  diag_sink_init(&sink);
  context_init(&ctx, &sink);
  ctx.readers = &backend_readers;
  Graph *g = graph_new(&ctx, SV("forward"));
  static const uint8_t zeros[256];
  const SymInt size = sizeof zeros;
  ValueId v = graph_add_constant_copy(g, graph_tensor_type(g, DTYPE_U8, 1, &size, ORDER_CONTIGUOUS),
                                      zeros, sizeof zeros);
  XnnGraph x;
  xnn_init(&x);
  XnnData data = {.v = v};
  uint32_t dims[] = {4, 64};
  XnnId tensor = xnn_value(&x, XNN_QUINT8, 2, dims), plain = xnn_value(&x, XNN_QINT8, 2, dims),
        row = xnn_dynamic(&x, 2, dims, 1), channel = xnn_constant(&x, XNN_QCINT8, 2, dims, data),
        group = xnn_constant(&x, XNN_QBINT4, 2, dims, data),
        bias = xnn_constant(&x, XNN_QINT32, 1, dims, data);
  xnn_set_scale(&x, tensor, 0.25f, 17);
  xnn_set_channels(&x, channel, 1, data, 64);
  xnn_set_groups(&x, group, 32, data, 8);
  xnn_set_scale(&x, bias, 0.5f, 0);
  const char *keys[] = {"filter", "nibbles", "bias", "scales", "halves"};
  XnnBlob blob = xnn_blob(&x, g, keys, NULL, 0, &ctx.arena);
  XrGraph r;
  assert_null(xr_read(blob.data, blob.size, &ctx.arena, &r));
  assert_int_equal(r.values[tensor].datatype, XR_QUINT8);
  assert_true(r.values[tensor].scale == 0.25f && r.values[tensor].zero_point == 17);
  assert_true(r.values[plain].scale == 1 && r.values[plain].zero_point == 0);
  assert_int_equal(r.values[row].nonbatch_dims, 1);
  assert_int_equal(r.values[channel].channel_dim, 1);
  assert_int_equal(r.values[channel].scale_count, 64);
  assert_true(sv_eq_str(r.constants[r.values[channel].scales].key, "scales"));
  assert_int_equal(r.values[group].group_size, 32);
  assert_true(sv_eq_str(r.constants[r.values[group].scales].key, "halves"));
  assert_true(r.values[bias].scale == 0.5f);
  uint64_t bytes;
  assert_true(xr_value_bytes(&r.values[group], &bytes) && bytes == 4 * 32);
  xnn_release(&x);
  graph_free(g);
  context_release(&ctx);
  diag_sink_release(&sink);
}

/* --- running --- */

enum { MOST = 64 };

typedef struct Run {
  Made m;
  const void *in[2], *constants[MADE_CONSTANTS];
  union {
    int8_t i8[MOST];
    uint8_t u8[MOST];
    float f32[MOST];
  } out;
} Run;

/* Runs a delegate with one output; NULL or the fault. */
static const char *run(Run *r, Arena *arena) {
  DelegateCall call = made_call(&r->m, arena, r->constants);
  for (uint32_t i = 0; i < call.input_count; i++) {
    Tensor *t = (Tensor *)(uintptr_t)&call.inputs[i];
    t->capacity = tensor_bytes(t);
    t->data = (void *)(uintptr_t)r->in[i];
  }
  call.outputs[0].capacity = sizeof r->out;
  call.outputs[0].data = &r->out;
  return reader_xnnpack.run(&call, arena);
}

static void run_right(Run *r) {
  Arena arena = {0};
  const char *fault = run(r, &arena);
  if (fault)
    fail_msg("%s", fault);
  arena_release(&arena);
}

#define EXPECT_BYTES(r, field, ...)                                                                \
  do {                                                                                             \
    const int want_[] = {__VA_ARGS__};                                                             \
    run_right(r);                                                                                  \
    for (size_t i_ = 0; i_ < COUNT_OF(want_); i_++)                                                \
      if ((r)->out.field[i_] != want_[i_])                                                         \
        fail_msg("element %zu is %d instead of %d", i_, (r)->out.field[i_], want_[i_]);            \
  } while (0)
#define EXPECT_FLOATS(r, ...)                                                                      \
  do {                                                                                             \
    const float want_[] = {__VA_ARGS__};                                                           \
    run_right(r);                                                                                  \
    for (size_t i_ = 0; i_ < COUNT_OF(want_); i_++)                                                \
      if (!(fabsf((r)->out.f32[i_] - want_[i_]) <= 1e-5f * fabsf(want_[i_])))                      \
        fail_msg("element %zu is %g instead of %g", i_, (double)(r)->out.f32[i_],                  \
                 (double)want_[i_]);                                                               \
  } while (0)

/* An argument of int8. */
#define BYTES_IN(i, v_scale, v_zero, ...)                                                          \
  PER_TENSOR(3, 1 + (i), 1, v_scale, .zero_point = (v_zero), SHAPE(__VA_ARGS__))
#define BYTES_OUT(i, v_scale, v_zero, ...)                                                         \
  PER_TENSOR(3, 1 + (i), 2, v_scale, .zero_point = (v_zero), SHAPE(__VA_ARGS__))

static void conversions(void **state) {
  static const float reals[] = {0.25f, 0.75f, -0.25f, 1000, -1000, NAN};
  Run from_reals = {
      .m = {.values = {IN(0, 6), BYTES_OUT(1, 0.5f, 1, 6)}, .nodes = {{CONVERT, {0, 1, 0}}}},
      .in = {reals}};
  EXPECT_BYTES(&from_reals, i8, 1, 3, 1, 127, -128, 127); /* halves to the even one */
  static const int8_t bytes[] = {1, 3, -1, -3, 127};
  Run to_reals = {
      .m = {.values = {BYTES_IN(0, 0.5f, 1, 5), OUT(1, 5)}, .nodes = {{CONVERT, {0, 1, 0}}}},
      .in = {bytes}};
  EXPECT_FLOATS(&to_reals, 0, 1, -1, -2, 63);
  Run to_bytes = {.m = {.values = {BYTES_IN(0, 0.5f, 0, 5), BYTES_OUT(1, 1, 0, 5)},
                        .nodes = {{CONVERT, {0, 1, 0}}}},
                  .in = {bytes}};
  EXPECT_BYTES(&to_bytes, i8, 1, 2, 0, -1, 64); /* halves go up */
  Run to_unsigned = {
      .m = {.values = {BYTES_IN(0, 1, 0, 5), PER_TENSOR(4, 2, 2, 1, SHAPE(5), .zero_point = 128)},
            .nodes = {{CONVERT, {0, 1, 0}}}},
      .in = {bytes}};
  EXPECT_BYTES(&to_unsigned, u8, 129, 131, 127, 125, 255);
}

static void by_element(void **state) {
  static const int8_t a[] = {1, -1, 127, -128}, b[] = {0, 0, 127, -128};
  Run sum = {
      .m = {.values = {BYTES_IN(0, 0.5f, 0, 4), BYTES_IN(1, 0.5f, 0, 4), BYTES_OUT(2, 1, 3, 4)},
            .nodes = {{ADD, {0, 1, 2, 0}}}},
      .in = {a, b}};
  EXPECT_BYTES(&sum, i8, 4, 3, 127, -125); /* halves go up */
  sum.m.nodes[0] =
      (MadeNode){.tag = ADD, .fields = {0, 1, 2, 0}, .limited = true, .low = 0, .high = 6};
  EXPECT_BYTES(&sum, i8, 4, 3, 9, 3);
  Run times = {
      .m = {.values = {BYTES_IN(0, 0.5f, 0, 4), BYTES_IN(1, 1, -1, 4), BYTES_OUT(2, 1, 0, 4)},
            .nodes = {{MULTIPLY, {0, 1, 2, 0}}}},
      .in = {a, b}};
  EXPECT_BYTES(&times, i8, 0, 0, 127, 127); /* 0.5 and -0.5 to the even one */
  Run sigmoid = {.m = {.values = {BYTES_IN(0, 1, 0, 4), BYTES_OUT(1, 1.0f / 256, -128, 4)},
                       .nodes = {{SIGMOID, {0, 1, 0}}}},
                 .in = {a}};
  EXPECT_BYTES(&sigmoid, i8, 59, -59, 127, -128);
  uint32_t slope;
  memcpy(&slope, &(float){0.5f}, sizeof slope);
  Run leaky = {.m = {.values = {BYTES_IN(0, 1, 0, 4), BYTES_OUT(1, 1, 0, 4)},
                     .nodes = {{LEAKY, {slope, 0, 1, 0}}}},
               .in = {a}};
  EXPECT_BYTES(&leaky, i8, 1, 0, 127, -64);
  Run clamp = {
      .m = {.values = {BYTES_IN(0, 1, 0, 4), BYTES_OUT(1, 1, 0, 4)},
            .nodes =
                {{.tag = CLAMP, .fields = {0, 1, 0}, .limited = true, .low = -0.4f, .high = 6}}},
      .in = {a}};
  EXPECT_BYTES(&clamp, i8, 1, 0, 6, 0);
}

static void images(void **state) {
  static const int8_t two[] = {-1, 0, 4, 5};
  Run resize = {.m = {.values = {BYTES_IN(0, 1, 0, 1, 1, 4, 1), BYTES_OUT(1, 1, 0, 1, 1, 7, 1)},
                      .nodes = {{RESIZE, {1, 7, 0, 1, 8}}}},
                .in = {two}};
  EXPECT_BYTES(&resize, i8, -1, 0, 0, 2, 4, 5, 5); /* halves go up */
  Run average = {
      .m = {.values = {BYTES_IN(0, 1, 1, 1, 2, 2, 1), BYTES_OUT(1, 0.5f, -3, 1, 1, 1, 1)},
            .nodes = {{GLOBAL, {0, 1, 0x40}}}},
      .in = {two}};
  EXPECT_BYTES(&average, i8, -1); /* (-2 - 1 + 3 + 4) / 4 = 1 */
  Run most = {.m = {.values = {BYTES_IN(0, 1, 1, 1, 2, 2, 1), BYTES_OUT(1, 1, 1, 1, 1, 1, 1)},
                    .nodes = {{MAXPOOL, {0, 0, 0, 0, 2, 2, 1, 1, 1, 1, 0, 1, 0}}}},
              .in = {two}};
  EXPECT_BYTES(&most, i8, 5);
  most.m.nodes[0].limited = true;
  most.m.nodes[0].high = 2;
  EXPECT_BYTES(&most, i8, 3);
  uint32_t one;
  memcpy(&one, &(float){1}, sizeof one);
  Run pad = {.m = {.values = {BYTES_IN(0, 0.5f, 3, 4), BYTES_OUT(1, 0.5f, 3, 6)},
                   .nodes = {{.tag = PAD,
                              .fields = {VEC(0), VEC(1), one, 0, 1, 0},
                              .vectors = {{1, {1}}, {1, {1}}}}}},
             .in = {two}};
  EXPECT_BYTES(&pad, i8, 5, -1, 0, 4, 5, 5);
}

static const float channel_scales[] = {1, 0.5f, 2, 4};

static void products(void **state) {
  static const int8_t x[] = {1, 2}, w[] = {1, 2, 3, -4};
  static const int32_t bias[] = {10, 1};
  Run static_one = {.m = {.values = {BYTES_IN(0, 1, 1, 1, 2),
                                     BYTES_OUT(1, 0.5f, 5, 1, 2),
                                     FILTER(6, 2, 0, SHAPE(2, 2)),
                                     {.kind = 2,
                                      .datatype = 7,
                                      .form = MADE_PER_CHANNEL,
                                      .constant = 2,
                                      .scale_constant = 3,
                                      .scale_count = 2,
                                      SHAPE(2)}},
                          .nodes = {{PRODUCT, {0, 2, 3, 1, 0}}}},
                    .in = {x},
                    .constants = {NULL, w, bias, channel_scales}};
  EXPECT_BYTES(&static_one, i8, 29, 2); /* (2 + 10) / 0.5 + 5, (-4 + 1) * 0.5 / 0.5 + 5 */
  static_one.m.nodes[0].fields[4] = 1;
  static_one.m.values[2].channel_dim = 1;
  EXPECT_BYTES(&static_one, i8, 31, 2); /* of [3 -4] */
  static const float reals[] = {1, 2, 3}, real_bias[] = {4};
  static const uint8_t nibbles[] = {0xf0, 0x89}; /* -8, 7, 1 */
  Run weights = {
      .m = {.values = {IN(0, 1, 3), OUT(1, 1, 1), FILTER(8, 1, 0, SHAPE(1, 3)), CONSTANT(2, 1)},
            .nodes = {{PRODUCT, {0, 2, 3, 1, 0}}}},
      .in = {reals},
      .constants = {NULL, nibbles, real_bias, channel_scales + 1}};
  EXPECT_FLOATS(&weights, 6.5f); /* the bias is scaled, too */
  static const float wide[] = {0, 255};
  static const int8_t w2[] = {1, 2};
  Run rows = {.m = {.values = {IN(0, 1, 2), OUT(1, 1, 1), FILTER(6, 1, 0, SHAPE(1, 2)),
                               ROWS(SHAPE(1, 2), .nonbatch_dims = 1), CONSTANT(2, 1)},
                    .nodes = {{CONVERT, {0, 3, 0}}, {PRODUCT, {3, 2, 4, 1, 0}}}},
              .in = {wide},
              .constants = {NULL, w2, real_bias, channel_scales + 1}};
  EXPECT_FLOATS(&rows, 259);
  static const float rough[] = {100.4f, -154.6f}; /* in steps of 1: 100, -155 */
  rows.in[0] = rough;
  EXPECT_FLOATS(&rows, (100 - 2 * 155) * 0.5f + 4);
}

static void groups(void **state) {
  float x[64] = {255};
  uint8_t nibbles[32];
  static const uint16_t halves[] = {0x3e80, 0x4000}; /* 0.25, 2 */
  memset(nibbles, 0x99, sizeof nibbles);             /* ones */
  x[40] = 51;
  Run r = {.m = {.values = {IN(0, 1, 64),
                            OUT(1, 1, 1),
                            {.kind = 2,
                             .datatype = 10,
                             .form = MADE_PER_GROUP,
                             .constant = 1,
                             .scale_constant = 3,
                             .scale_count = 2,
                             .group_size = 32,
                             SHAPE(1, 64)},
                            ROWS(SHAPE(1, 64), .nonbatch_dims = 1)},
                 .nodes = {{CONVERT, {0, 3, 0}}, {PRODUCT, {3, 2, MADE_NONE, 1, 0}}}},
           .in = {x},
           .constants = {NULL, nibbles, NULL, halves}};
  EXPECT_FLOATS(&r, 255 * 0.25f + 51 * 2);
}

/* Padding is the zero point. */
static void convolutions(void **state) {
  static const int8_t x[] = {3, 4, 5, 6}, ones[] = {1, 1, 1, 1};
  Run r = {.m = {.values = {BYTES_IN(0, 1, 3, 1, 2, 2, 1), BYTES_OUT(1, 1, -1, 1, 3, 3, 1),
                            FILTER(6, 1, 0, SHAPE(1, 2, 2, 1))},
                 .nodes = {{CONV,
                            {1, 1, 1, 1, 2, 2, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 2, MADE_NONE, 1, 0}}}},
           .in = {x},
           .constants = {NULL, ones, NULL, channel_scales}};
  EXPECT_BYTES(&r, i8, -1, 0, 0, 1, 5, 3, 1, 4, 2); /* of 0 1 2 3 */
  Run depthwise = {.m = {.values = {BYTES_IN(0, 1, 3, 1, 1, 1, 4), BYTES_OUT(1, 1, 0, 1, 1, 1, 4),
                                    FILTER(6, 4, 3, SHAPE(1, 1, 1, 4))},
                         .nodes = {{DEPTHWISE, {0, 0, 0, 0, 1, 1, 1, 1,         1, 1,
                                                1, 1, 4, 0, 0, 0, 2, MADE_NONE, 1, 0}}}},
                   .in = {x},
                   .constants = {NULL, ones, NULL, channel_scales}};
  EXPECT_BYTES(&depthwise, i8, 0, 0, 4, 12); /* 0.5 to the even one */
}

static void wrong_scales(void **state) {
  static const int8_t x[] = {1, 2}, w[] = {1, 2, 3, -4};
  static const float zero[] = {1, 0}, large[] = {1, 256};
  Run r = {.m = {.values = {BYTES_IN(0, 1, 1, 1, 2), BYTES_OUT(1, 1, 5, 1, 2),
                            FILTER(6, 2, 0, SHAPE(2, 2))},
                 .nodes = {{PRODUCT, {0, 2, MADE_NONE, 1, 0}}}},
           .in = {x},
           .constants = {NULL, w, NULL, zero}};
  Arena arena = {0};
  assert_contains(run(&r, &arena), "a scale of the filter is not a normal number above zero");
  r.constants[3] = large;
  assert_contains(run(&r, &arena), "256 times that of the result, or more");
  arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parameters),         cmocka_unit_test(quantized_weights),
      cmocka_unit_test(quantized_filters),  cmocka_unit_test(quantized_nodes),
      cmocka_unit_test(written_parameters), cmocka_unit_test(conversions),
      cmocka_unit_test(by_element),         cmocka_unit_test(images),
      cmocka_unit_test(products),           cmocka_unit_test(groups),
      cmocka_unit_test(convolutions),       cmocka_unit_test(wrong_scales),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

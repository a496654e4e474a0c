/* The reader of XNNPACK delegates: one wrong blob for each rule on ids, types, constants and the
 * call, and the rule says so; test_xnnpack_shape.c has those on shapes. */
#include "xnn_cases.h"

#include "backends/xnnpack/subgraph.h"

enum { BAD_OFFSET = 1 << 30 };

/* y = sigmoid(x) */
#define UNARY_VALUES                                                                               \
  { IN(0, 2, 3), OUT(1, 2, 3) }
#define UNARY .values = UNARY_VALUES, .nodes = {{SIGMOID, {0, 1, 0}}}

static void header_and_tables(void **state) {
  static const Case cases[] = {
      {NULL, {UNARY}, {0}},
      {"the header is cut off", {UNARY}, {.cut = 20}},
      {"reaches beyond the blob, or into the header", {UNARY}, {.poke_at = 10, .poke = 8}},
      {"reaches beyond the blob, or into the header", {UNARY}, {.poke_at = 14, .poke = BAD_OFFSET}},
      {"reaches beyond the blob, or into the header", {UNARY}, {.cut = 100}},
      {"constants reach beyond the blob", {UNARY}, {.poke_at = 18, .poke = 33}},
      {"constants reach beyond the blob", {UNARY}, {.poke_at = 18, .poke = BAD_OFFSET}},
      {"constants reach beyond the blob", {UNARY}, {.poke_at = 22, .poke = 1}},
      {"too short", {UNARY}, {.poke_at = 14, .poke = 7}},
      {"too short", {UNARY}, {.cut = 6}},
      {"identifier", {UNARY}, {.poke_at = 36, .poke = 0}},
      {"identifier", {UNARY}, {.poke_at = 4, .poke = 0}}, /* no header: all is the FlatBuffer */
      {"damaged", {UNARY}, {.poke_at = 32, .poke = BAD_OFFSET}},
      {"no list of values", {UNARY, .no_values = true}, {0}},
      {"no list of nodes", {UNARY, .no_nodes = true}, {0}},
      {"5000 arguments", {UNARY, .externals = 5000}, {0}},
  };
  TRY_CASES(cases);
}

/* 8 bytes later, and 8 fewer of them. */
static void alignment(void **state) {
  Arena arena = {0};
  Made m = {UNARY};
  DelegateCall call = made_call(&m, &arena, NULL);
  uint8_t *blob = (uint8_t *)(uintptr_t)call.blob;
  uint32_t at = 40, length;
  memcpy(&length, blob + 14, 4);
  length -= 8;
  memcpy(blob + 10, &at, 4);
  memcpy(blob + 14, &length, 4);
  XrGraph x;
  assert_contains(xr_read(blob, call.blob_size, &arena, &x), "not aligned");
  arena_release(&arena);
}

static void values(void **state) {
  static const Case cases[] = {
      {"a value of kind 3", {.values = {{.kind = 3}}}, {0}},
      {"a value of kind 1 without contents", {.values = {{.kind = 1, .hollow = true}}}, {0}},
      {"the shape of a value has 7 entries", {.values = {IN(0, 1, 1, 1, 1, 1, 1, 1)}}, {0}},
      {"value 0 has 1 dims and says 2",
       {.values = {{.external = 1, .flags = 1, SHAPE(2), .more_rank = 1}}},
       {0}},
      {"value 0 has the datatype 14",
       {.values = {{.external = 1, .flags = 1, SHAPE(2), .datatype = 14}}},
       {0}},
      {"value 0 has the flags 0x4", {.values = {{.flags = 4, SHAPE(2)}}}, {0}},
      {"dim 1 of value 0 is 0", {.values = {IN(0, 2, 0)}}, {0}},
      {"one has the id 7", {.values = {{.id = 8, SHAPE(2)}, TEMP(2)}}, {0}},
      {"two have the id 1", {.values = {{.id = 2, SHAPE(2)}, TEMP(2)}}, {0}},
      {"value 0 has the datatype 3 and quantization parameters of kind 0",
       {.values = {{.kind = 2, SHAPE(2), .datatype = 3}}},
       {0}},
      {"value 1 is marked as an input or output, and is not an argument",
       {.values = {IN(0, 2), {SHAPE(2), .flags = 1}}},
       {0}},
      {"value 1 is argument 0, which another one is",
       {.values = {IN(0, 2), IN(0, 2)}, .externals = 2},
       {0}},
      {"value 0 is argument 3, which there is not",
       {.values = {{.external = 4, .flags = 1, SHAPE(2)}}, .externals = 1},
       {0}},
      {"value 0 is argument 0, an input of the call, and is not marked as one",
       {.values = {{.external = 1, .flags = 3, SHAPE(2)}, IN(1, 2)}},
       {.more_inputs = 1}},
      {"it has 1 arguments, and the call 2 and 0", {.values = {IN(0, 2)}}, {.more_inputs = 1}},
      {"no value is argument 0", {.values = {IN(1, 2)}}, {.more_inputs = 1}},
      {"argument 0 has rank 3, and value 0 rank 2", {UNARY}, {.argument = 1, .rank = 3}},
      {"argument 0 has rank 1, and value 0 rank 2", {UNARY}, {.argument = 1, .rank = 1}},
      {"argument 1 has rank 1, and value 1 rank 2", {UNARY}, {.argument = 2, .rank = 1}},
      {"argument 0 is f64, and value 0 has the datatype 1",
       {UNARY},
       {.argument = 1, .dtype = DTYPE_F64}},
      {"argument 1 is i64, and value 1 has the datatype 1",
       {UNARY},
       {.argument = 2, .dtype = DTYPE_I64}},
      {"dim 0 of argument 0 is 3, and of value 0 2", {UNARY}, {.argument = 1, .dim = 3}},
      {"dim 0 of argument 0 is 1, and of value 0 2", {UNARY}, {.argument = 1, .dim = 1}},
      {"dim 0 of argument 1 is 1, and what is computed for it 2",
       {UNARY},
       {.argument = 2, .dim = 1}},
      {NULL, {UNARY}, {.argument = 2, .dim = XR_UNKNOWN}},
      {"nothing computes argument 1", {.values = UNARY_VALUES}, {0}},
  };
  TRY_CASES(cases);
}

static void constants(void **state) {
  static const Case cases[] = {
      {NULL, {PRODUCT_OF(0, 2, 3, 1, 0)}, {0}},
      {NULL, {PRODUCT_OF(0, 2, MADE_NONE, 1, 0)}, {0}},
      {"constant 1 has a key and a place in the blob",
       {PRODUCT_OF(0, 2, 3, 1, 0), .constants = {{0}, {.both = true}}},
       {0}},
      {"constant 2 has an empty key",
       {PRODUCT_OF(0, 2, 3, 1, 0), .constants = {{0}, {0}, {.no_name = true}}},
       {0}},
      {"constant 1 reaches beyond the constants of the blob",
       {PRODUCT_OF(0, 2, 3, 1, 0), .constants = {{0}, {.in_blob = true}}, .region = 47},
       {0}},
      {"constant 1 reaches beyond the constants of the blob",
       {PRODUCT_OF(0, 2, 3, 1, 0), .constants = {{0}, {.in_blob = true, .offset = UINT64_MAX - 8}},
        .region = 64},
       {0}},
      {"value 0 is too large",
       {.values = {CONSTANT(1, 0x7fffffff, 0x7fffffff, 0x7fffffff), IN(0, 2)}},
       {0}},
      {"value 0 is constant 9, and there are 4", {.values = {CONSTANT(9, 2), IN(0, 2)}}, {0}},
      {"value 2 has 48 bytes, and its constant 52",
       {PRODUCT_OF(0, 2, 3, 1, 0), .constants = {{0}, {.more_size = 4}}},
       {0}},
      {"value 1 is a constant and an argument of the call",
       {.values = {IN(0, 2), {.external = 2, .flags = 2, .constant = 1, SHAPE(2)}}},
       {0}},
      {"the program has no data 'k1', which value 2 needs",
       {PRODUCT_OF(0, 2, 3, 1, 0)},
       {.no_data = true}},
      {"the data 'k1' have 47 bytes instead of 48",
       {PRODUCT_OF(0, 2, 3, 1, 0)},
       {.short_data = true}},
      /* The traps: what the runtime frees while XNNPACK points to it. */
      {NULL, {PRODUCT_OF(0, 2, 3, 1, 0), .constants = {{0}, {.in_blob = true}}, .region = 48}, {0}},
      {"constant value 2 lies in the blob, which is freed",
       {.values = {IN(0, 2), OUT(1, 2), CONSTANT(1, 2)},
        .nodes = {{ADD, {0, 2, 1, 0}}},
        .constants = {{0}, {.in_blob = true}},
        .region = 8},
       {0}},
      {NULL,
       {.values = {IN(0, 2, 3), OUT(1, 2, 4), CONSTANT(1, 3, 4)},
        .nodes = {{MATMUL, {0, 2, 1, 0}}},
        .constants = {{0}, {.in_blob = true}},
        .region = 48},
       {0}},
      {"value 2 is a filter or bias, and another operand too",
       {.values = {IN(0, 3, 3), OUT(1, 3, 3), CONSTANT(1, 3, 3), TEMP(3, 3)},
        .nodes = {{PRODUCT, {0, 2, MADE_NONE, 3, 0}}, {ADD, {3, 2, 1, 0}}}},
       {0}},
      {"its filter is constant and its bias not",
       {.values = {IN(0, 2, 3), OUT(2, 2, 4), CONSTANT(1, 4, 3), IN(1, 4)},
        .nodes = {{PRODUCT, {0, 2, 3, 1, 0}}}},
       {0}},
      {"its filter is not and its bias constant",
       {.values = {IN(0, 2, 3), OUT(2, 2, 4), IN(1, 4, 3), CONSTANT(1, 4)},
        .nodes = {{PRODUCT, {0, 2, 3, 1, 0}}}},
       {0}},
  };
  TRY_CASES(cases);
}

static void nodes(void **state) {
  static const Case cases[] = {
      {"node 0 (?): it is of kind 36, which is not known",
       {.values = UNARY_VALUES, .nodes = {{ATTENTION, {0, 1, 0}}}},
       {0}},
      {"node 0 (?): it is of kind 200", {.values = UNARY_VALUES, .nodes = {{200, {0}}}}, {0}},
      {"it has no contents",
       {.values = UNARY_VALUES, .nodes = {{.tag = SIGMOID, .hollow = true}}},
       {0}},
      {"operand 0 is value 9, and there are 2",
       {.values = UNARY_VALUES, .nodes = {{SIGMOID, {9, 1, 0}}}},
       {0}},
      {"operand 0 is value 4294967295",
       {.values = UNARY_VALUES, .nodes = {{SIGMOID, {MADE_NONE, 1, 0}}}},
       {0}},
      {"its result is value 2", {.values = UNARY_VALUES, .nodes = {{SIGMOID, {0, 2, 0}}}}, {0}},
      {"operand 0, value 2, is used before it is there",
       {.values = {IN(0, 2), OUT(1, 2), TEMP(2)},
        .nodes = {{SIGMOID, {2, 1, 0}}, {SIGMOID, {0, 2, 0}}}},
       {0}},
      {"used before it is there", /* a cycle */
       {.values = {IN(0, 2), OUT(1, 2), TEMP(2), TEMP(2)},
        .nodes = {{SIGMOID, {3, 2, 0}}, {SIGMOID, {2, 3, 0}}, {SIGMOID, {0, 1, 0}}}},
       {0}},
      {"its result, value 1, is there already",
       {.values = UNARY_VALUES, .nodes = {{SIGMOID, {0, 1, 0}}, {SIGMOID, {0, 1, 0}}}},
       {0}},
      {"its result, value 0, is there already",
       {.values = UNARY_VALUES, .nodes = {{SIGMOID, {0, 0, 0}}}},
       {0}},
      {"its result has rank 2, and value 1 rank 1",
       {.values = {IN(0, 2, 3), OUT(1, 6)}, .nodes = {{SIGMOID, {0, 1, 0}}}},
       {0}},
      {"dim 1 of its result is 3, and of value 1 4",
       {.values = {IN(0, 2, 3), OUT(1, 2, 4)}, .nodes = {{SIGMOID, {0, 1, 0}}}},
       {0}},
      {"dim 1 of its result is 3, and of value 1 2",
       {.values = {IN(0, 2, 3), OUT(1, 2, 2)}, .nodes = {{SIGMOID, {0, 1, 0}}}},
       {.varies = true}},
      {"flags 0x2", {.values = UNARY_VALUES, .nodes = {{SIGMOID, {0, 1, 2}}}}, {0}},
      {"it has no limits", {.values = UNARY_VALUES, .nodes = {{CLAMP, {0, 1, 0}}}}, {0}},
      {"limits 1 and 0",
       {.values = UNARY_VALUES,
        .nodes = {{.tag = CLAMP, .fields = {0, 1, 0}, .limited = true, .low = 1}}},
       {0}},
      {"limits 0 and 6", /* ignored there */
       {.values = UNARY_VALUES,
        .nodes = {{.tag = SIGMOID, .fields = {0, 1, 0}, .limited = true, .high = 6}}},
       {0}},
      {"the factor is 0", {.values = UNARY_VALUES, .nodes = {{ELU, {0, 0, 1, 0}}}}, {0}},
      {"the factor is inf",
       {.values = UNARY_VALUES, .nodes = {{LEAKY, {0x7f800000, 0, 1, 0}}}},
       {0}},
  };
  TRY_CASES(cases);
}

#define HALF(v_external, v_flags, ...)                                                             \
  { .external = (v_external), .flags = (v_flags), .datatype = 2, SHAPE(__VA_ARGS__) }
#define WHOLE(v_external, v_flags, ...)                                                            \
  { .external = (v_external), .flags = (v_flags), .datatype = 12, SHAPE(__VA_ARGS__) }

/* Bytes: an argument, quantized with a scale and a zero point. */
#define BYTES_OF(v_datatype, v_external, v_flags, v_scale, v_zero)                                 \
  {                                                                                                \
    .external = (v_external), .flags = (v_flags), .datatype = (v_datatype), .kind = 2,             \
    .scale = (v_scale), .zero_point = (v_zero), SHAPE(2)                                           \
  }
#define BYTES(...) BYTES_OF(4, __VA_ARGS__)
#define SIGNED(...) BYTES_OF(3, __VA_ARGS__)

static void types(void **state) {
  static const Case cases[] = {
      {NULL, {.values = {BYTES(1, 1, 1, 0), OUT(1, 2)}, .nodes = {{CONVERT, {0, 1, 0}}}}, {0}},
      {NULL,
       {.values = {BYTES(1, 1, 0.5f, 0), OUT(1, 2)}, .nodes = {{CONVERT, {0, 1, 0}}}},
       {.argument = 1, .dtype = DTYPE_U8}},
      {"argument 0 is bool", /* which stands for 0 and 1 */
       {.values = {BYTES(1, 1, 0.5f, 0), OUT(1, 2)}, .nodes = {{CONVERT, {0, 1, 0}}}},
       {.argument = 1, .dtype = DTYPE_BOOL}},
      {"argument 0 is bool",
       {.values = {BYTES(1, 1, 1, 3), OUT(1, 2)}, .nodes = {{CONVERT, {0, 1, 0}}}},
       {.argument = 1, .dtype = DTYPE_BOOL}},
      {"the datatype 4",
       {.values = {{.external = 1, .flags = 1, .datatype = 4, SHAPE(2)}, OUT(1, 2)},
        .nodes = {{CONVERT, {0, 1, 0}}}},
       {0}},
      {"argument 1 is bool", /* what is converted may be no boolean */
       {.values = {IN(0, 2), BYTES(2, 2, 1, 0)}, .nodes = {{CONVERT, {0, 1, 0}}}},
       {.argument = 2, .dtype = DTYPE_BOOL}},
      {"argument 0 is i8",
       {.values = {BYTES(1, 1, 1, 0), OUT(1, 2)}, .nodes = {{CONVERT, {0, 1, 0}}}},
       {.argument = 1, .dtype = DTYPE_I8}},
      {NULL,
       {.values = {SIGNED(1, 1, 1, 0), OUT(1, 2)}, .nodes = {{CONVERT, {0, 1, 0}}}},
       {.argument = 1, .dtype = DTYPE_I8}},
      {"argument 0 is bool",
       {.values = {SIGNED(1, 1, 1, 0), OUT(1, 2)}, .nodes = {{CONVERT, {0, 1, 0}}}},
       {.argument = 1, .dtype = DTYPE_BOOL}},
      {"operand 1 has the datatype 2, and the result 1",
       {.values = {IN(0, 2), HALF(2, 1, 2), OUT(2, 2)}, .nodes = {{ADD, {0, 1, 2, 0}}}},
       {0}},
      {NULL, {.values = {IN(0, 2), HALF(2, 2, 2)}, .nodes = {{CONVERT, {0, 1, 0}}}}, {0}},
      {"integers",
       {.values = {WHOLE(1, 1, 2), WHOLE(2, 2, 2)}, .nodes = {{SIGMOID, {0, 1, 0}}}},
       {0}},
      {"integers",
       {.values = {WHOLE(1, 1, 2), WHOLE(2, 2, 2)}, .nodes = {{DIV, {0, 0, 1, 0}}}},
       {0}},
      {NULL,
       {.values = {WHOLE(1, 1, 2), WHOLE(2, 2, 2)}, .nodes = {{ADD, {0, 0, 1, 0}}}},
       {.argument = 2, .dtype = DTYPE_I64}},
      {"argument 0 is i64",
       {.values = {WHOLE(1, 1, 2), WHOLE(2, 2, 2)}, .nodes = {{ADD, {0, 0, 1, 0}}}},
       {.argument = 1, .dtype = DTYPE_I64}},
      {"datatypes 1, 12, 0 -> 1",
       {.values = {IN(0, 2, 3), OUT(1, 2, 4), {.constant = 1, .datatype = 12, SHAPE(4, 3)}},
        .nodes = {{PRODUCT, {0, 2, MADE_NONE, 1, 0}}}},
       {0}},
      {NULL, /* a product may have that, a convolution computes nonsense */
       {.values = {IN(0, 2, 3),
                   OUT(1, 2, 4),
                   {.constant = 1, .datatype = 2, SHAPE(4, 3)},
                   CONSTANT(2, 4)},
        .nodes = {{PRODUCT, {0, 2, 3, 1, 0}}}},
       {0}},
      {"datatypes 1, 2, 1 -> 1",
       {.values = {IN(0, 1, 2, 2, 3),
                   OUT(1, 1, 2, 2, 4),
                   {.constant = 1, .datatype = 2, SHAPE(4, 1, 1, 3)},
                   CONSTANT(2, 4)},
        .nodes = {{CONV, POINTWISE}}},
       {0}},
  };
  TRY_CASES(cases);
}

/* --- the two tables --- */

static bool same_name(const char *upper, const char *camel) {
  for (; *upper; upper++) {
    if (*upper == '_')
      continue;
    char c = *camel++;
    if (*upper != (c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c))
      return false;
  }
  return *camel == '\0';
}

/* Whatever the backend can write is read. */
static void all_kinds_are_known(void **state) {
#define XNN_NODE(name, tag, fields)                                                                \
  if (xr_form(tag) == XR_FORM_NONE || !same_name(#name, xr_name(tag)))                             \
    fail_msg("nodes.def writes %s with the tag %d; add it to read.def, shape.c and run.c", #name,  \
             tag);
#include "backends/xnnpack/nodes.def"
#undef XNN_NODE
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(header_and_tables),   cmocka_unit_test(alignment), cmocka_unit_test(values),
      cmocka_unit_test(constants),           cmocka_unit_test(nodes),     cmocka_unit_test(types),
      cmocka_unit_test(all_kinds_are_known),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Shapes of XNNPACK nodes: what the reader takes, and one wrong node for each rule. */
#include "xnn_cases.h"

static void products(void **state) {
  static const Case cases[] = {
      {"the input has rank 0",
       {.values = {{.external = 1, .flags = 1}, OUT(1, 4), CONSTANT(1, 4, 3)},
        .nodes = {{PRODUCT, {0, 2, MADE_NONE, 1, 0}}}},
       {0}},
      {"rank 0",
       {.values = {{.external = 1, .flags = 1}, {.external = 2, .flags = 2}},
        .nodes = {{SOFTMAX, {0, 1, 0}}}},
       {0}},
      {"a value of too many elements",
       {.values = {IN(0, 0x7fffffff, 1), IN(1, 0x7fffffff), OUT(2, 0x7fffffff, 0x7fffffff)},
        .nodes = {{ADD, {0, 1, 2, 0}}}},
       {0}},
      {"flags 0x2", {PRODUCT_OF(0, 2, 3, 1, 2)}, {0}},
      {"dim 1 of the input is 3 instead of 5", /* the runtime reads out of bounds */
       {.values = {IN(0, 2, 3), OUT(1, 2, 4), CONSTANT(1, 4, 5)},
        .nodes = {{PRODUCT, {0, 2, MADE_NONE, 1, 0}}}},
       {0}},
      {"dim 1 of the input is 3 instead of 4", {PRODUCT_OF(0, 2, 3, 1, 1)}, {0}},
      {"the filter has rank 1",
       {.values = {IN(0, 2, 3), OUT(1, 2, 4), CONSTANT(1, 3)},
        .nodes = {{PRODUCT, {0, 2, MADE_NONE, 1, 0}}}},
       {0}},
      {"dim 0 of the bias is 3 instead of 4",
       {.values = {IN(0, 2, 3), OUT(1, 2, 4), CONSTANT(1, 4, 3), CONSTANT(2, 3)},
        .nodes = {{PRODUCT, {0, 2, 3, 1, 0}}}},
       {0}},
      {"the bias has rank 2",
       {.values = {IN(0, 2, 3), OUT(1, 2, 4), CONSTANT(1, 4, 3), CONSTANT(2, 4, 1)},
        .nodes = {{PRODUCT, {0, 2, 3, 1, 0}}}},
       {0}},
      {"dim 0 of the second operand is 4 instead of 3",
       {.values = {IN(0, 2, 3), IN(1, 4, 3), OUT(2, 2, 4)}, .nodes = {{MATMUL, {0, 1, 2, 0}}}},
       {0}},
      {NULL,
       {.values = {IN(0, 2, 3), IN(1, 4, 3), OUT(2, 2, 4)}, .nodes = {{MATMUL, {0, 1, 2, 1}}}},
       {0}},
      {"flags 0x2",
       {.values = {IN(0, 3, 3), IN(1, 3, 3), OUT(2, 3, 3)}, .nodes = {{MATMUL, {0, 1, 2, 2}}}},
       {0}},
      {"operands of rank 1 and 2",
       {.values = {IN(0, 3), IN(1, 3, 3), OUT(2, 3)}, .nodes = {{MATMUL, {0, 1, 2, 0}}}},
       {0}},
      {"2 and 3 do not broadcast",
       {.values = {IN(0, 2, 2, 3), IN(1, 3, 3, 4), OUT(2, 2, 2, 4)},
        .nodes = {{MATMUL, {0, 1, 2, 0}}}},
       {0}},
      {"2 and 3 do not broadcast",
       {.values = {IN(0, 2), IN(1, 3), OUT(2, 2)}, .nodes = {{ADD, {0, 1, 2, 0}}}},
       {0}},
  };
  TRY_CASES(cases);
}

/* top right bottom left, kernel, stride, dilation, group in, out, groups, adjust, x filter bias y
 * flags */
#define CONV_CASE(kind, x, y, filter, ...)                                                         \
  {                                                                                                \
    .values = {IN x, OUT y, CONSTANT filter, CONSTANT(2, 4)}, .nodes = { {kind, {__VA_ARGS__}} }   \
  }
#define IMAGE (0, 1, 5, 5, 2)
#define FILTER (1, 4, 3, 3, 2)
#define PLAIN_ENDS 0, 2, 3, 1

static void convolutions(void **state) {
  static const Case cases[] = {
      {NULL,
       CONV_CASE(CONV, IMAGE, (1, 1, 3, 3, 4), FILTER, 0, 0, 0, 0, 3, 3, 1, 1, 1, 1, 2, 4, 1, 0, 0,
                 PLAIN_ENDS, 0),
       {0}},
      {NULL,
       CONV_CASE(CONV, IMAGE, (1, 1, 4, 2, 4), FILTER, 0, 1, 1, 0, 3, 3, 1, 2, 1, 1, 2, 4, 1, 0, 0,
                 PLAIN_ENDS, 0),
       {.varies = true, .argument = 2, .dim = 1}},
      {NULL,
       CONV_CASE(CONV, IMAGE, (1, 1, 3, 3, 4), FILTER, 0, 0, 0, 0, 3, 3, 2, 2, 1, 1, 2, 4, 1, 0, 0,
                 PLAIN_ENDS, 4),
       {0}},
      {"padding of its own",
       CONV_CASE(CONV, IMAGE, (1, 1, 3, 3, 4), FILTER, 1, 0, 0, 0, 3, 3, 2, 2, 1, 1, 2, 4, 1, 0, 0,
                 PLAIN_ENDS, 4),
       {0}},
      {"flags 0x8",
       CONV_CASE(CONV, IMAGE, (1, 1, 3, 3, 4), FILTER, 0, 0, 0, 0, 3, 3, 1, 1, 1, 1, 2, 4, 1, 0, 0,
                 PLAIN_ENDS, 8),
       {0}},
      {"a kernel, stride or dilation of 0",
       CONV_CASE(CONV, IMAGE, (1, 1, 3, 3, 4), FILTER, 0, 0, 0, 0, 3, 3, 1, 0, 1, 1, 2, 4, 1, 0, 0,
                 PLAIN_ENDS, 0),
       {0}},
      {"a window of 8589934589 elements",
       CONV_CASE(CONV, IMAGE, (1, 1, 3, 3, 4), FILTER, 0, 0, 0, 0, 3, 3, 1, 1, 1, 0xfffffffe, 2, 4,
                 1, 0, 0, PLAIN_ENDS, 0),
       {0}},
      {"a window of 9 elements in an image of 5",
       CONV_CASE(CONV, IMAGE, (1, 1, 3, 3, 4), FILTER, 0, 0, 0, 0, 3, 3, 1, 1, 4, 1, 2, 4, 1, 0, 0,
                 PLAIN_ENDS, 0),
       {0}},
      {"the input has 2 channels instead of 4",
       CONV_CASE(CONV, IMAGE, (1, 1, 3, 3, 4), FILTER, 0, 0, 0, 0, 3, 3, 1, 1, 1, 1, 2, 2, 2, 0, 0,
                 PLAIN_ENDS, 0),
       {0}},
      {"0 groups of 2 and 4 channels",
       CONV_CASE(CONV, IMAGE, (1, 1, 3, 3, 4), FILTER, 0, 0, 0, 0, 3, 3, 1, 1, 1, 1, 2, 4, 0, 0, 0,
                 PLAIN_ENDS, 0),
       {0}},
      {"dim 0 of the filter is 4 instead of 2",
       CONV_CASE(CONV, IMAGE, (1, 1, 3, 3, 2), FILTER, 0, 0, 0, 0, 3, 3, 1, 1, 1, 1, 2, 2, 1, 0, 0,
                 PLAIN_ENDS, 0),
       {0}},
      {"dim 1 of the filter is 3 instead of 2",
       CONV_CASE(CONV, IMAGE, (1, 1, 4, 3, 4), FILTER, 0, 0, 0, 0, 2, 3, 1, 1, 1, 1, 2, 4, 1, 0, 0,
                 PLAIN_ENDS, 0),
       {0}},
      {"dim 0 of the bias is 4 instead of 6",
       CONV_CASE(CONV, IMAGE, (1, 1, 3, 3, 6), (1, 6, 3, 3, 2), 0, 0, 0, 0, 3, 3, 1, 1, 1, 1, 2, 6,
                 1, 0, 0, PLAIN_ENDS, 0),
       {0}},
      {"an adjustment",
       CONV_CASE(CONV, IMAGE, (1, 1, 3, 3, 4), FILTER, 0, 0, 0, 0, 3, 3, 1, 1, 1, 1, 2, 4, 1, 1, 0,
                 PLAIN_ENDS, 0),
       {0}},
      {"the input has rank 3",
       CONV_CASE(CONV, (0, 5, 5, 2), (1, 1, 3, 3, 4), FILTER, 0, 0, 0, 0, 3, 3, 1, 1, 1, 1, 2, 4, 1,
                 0, 0, PLAIN_ENDS, 0),
       {0}},
  };
  TRY_CASES(cases);
}

static void other_convolutions(void **state) {
  static const Case cases[] = {
      {"its filter or bias is not constant",
       {.values = {IN(0, 1, 2, 2, 3), OUT(2, 1, 2, 2, 4), IN(1, 4, 1, 1, 3), CONSTANT(2, 4)},
        .nodes = {{CONV, POINTWISE}}},
       {0}},
      {NULL,
       CONV_CASE(DEPTHWISE, IMAGE, (1, 1, 3, 3, 4), (1, 1, 3, 3, 4), 0, 0, 0, 0, 3, 3, 1, 1, 1, 1,
                 1, 2, 2, 0, 0, PLAIN_ENDS, 0),
       {0}},
      {"dim 0 of the filter is 4 instead of 1",
       CONV_CASE(DEPTHWISE, IMAGE, (1, 1, 3, 3, 4), (1, 4, 3, 3, 1), 0, 0, 0, 0, 3, 3, 1, 1, 1, 1,
                 1, 2, 2, 0, 0, PLAIN_ENDS, 0),
       {0}},
      {"2 channels a group",
       CONV_CASE(DEPTHWISE, IMAGE, (1, 1, 3, 3, 4), (1, 1, 3, 3, 4), 0, 0, 0, 0, 3, 3, 1, 1, 1, 1,
                 2, 4, 1, 0, 0, PLAIN_ENDS, 0),
       {0}},
      {NULL,
       CONV_CASE(DECONV, IMAGE, (1, 1, 10, 9, 4), FILTER, 1, 1, 1, 1, 3, 3, 2, 2, 1, 1, 2, 4, 1, 1,
                 0, PLAIN_ENDS, 0),
       {0}},
      {"an adjustment of 2 with a stride of 2",
       CONV_CASE(DECONV, IMAGE, (1, 1, 11, 9, 4), FILTER, 1, 1, 1, 1, 3, 3, 2, 2, 1, 1, 2, 4, 1, 2,
                 0, PLAIN_ENDS, 0),
       {0}},
      {"padding takes all",
       CONV_CASE(DECONV, IMAGE, (1, 1, 1, 9, 4), FILTER, 6, 1, 6, 1, 3, 3, 2, 2, 1, 1, 2, 4, 1, 0,
                 0, PLAIN_ENDS, 0),
       {0}},
  };
  TRY_CASES(cases);
}

#define POOL_CASE(kind, x, y, ...)                                                                 \
  {                                                                                                \
    .values = {IN x, OUT y}, .nodes = { {kind, {__VA_ARGS__}} }                                    \
  }

static void pools(void **state) {
  static const Case cases[] = {
      {NULL,
       POOL_CASE(MAXPOOL, IMAGE, (1, 1, 2, 3, 2), 0, 1, 0, 0, 2, 2, 2, 2, 2, 1, 0, 1, 0),
       {0}},
      {"windows of padding only",
       POOL_CASE(AVERAGE, IMAGE, (1, 1, 4, 2, 2), 2, 0, 0, 0, 2, 2, 2, 2, 1, 1, 0, 1, 0),
       {0}},
      {"a dilation",
       POOL_CASE(AVERAGE, IMAGE, (1, 1, 2, 2, 2), 0, 0, 0, 0, 2, 2, 2, 2, 2, 1, 0, 1, 0),
       {0}},
      {"a kernel, stride or dilation of 0",
       POOL_CASE(MAXPOOL, IMAGE, (1, 1, 2, 2, 2), 0, 0, 0, 0, 2, 2, 0, 2, 1, 1, 0, 1, 0),
       {0}},
      {"flags 0x4",
       POOL_CASE(MAXPOOL, IMAGE, (1, 1, 2, 2, 2), 0, 0, 0, 0, 2, 2, 2, 2, 1, 1, 0, 1, 4),
       {0}},
      {"the input has rank 3",
       POOL_CASE(MAXPOOL, (0, 5, 5, 2), (1, 2, 2, 2), 0, 0, 0, 0, 2, 2, 2, 2, 1, 1, 0, 1, 0),
       {0}},
      {NULL, POOL_CASE(GLOBAL, IMAGE, (1, 1, 2), 0, 1, 0), {0}},
      {NULL, POOL_CASE(GLOBAL, IMAGE, (1, 1, 1, 1, 2), 0, 1, 0x40), {0}},
      {"the input has rank 2", POOL_CASE(GLOBAL, (0, 5, 5), (1, 5), 0, 1, 0), {0}},
      {NULL, POOL_CASE(RESIZE, IMAGE, (1, 1, 7, 9, 2), 7, 9, 0, 1, 8), {0}},
      {"a new size of 0", POOL_CASE(RESIZE, IMAGE, (1, 1, 7, 9, 2), 0, 9, 0, 1, 0), {0}},
      {"flags 0xc", POOL_CASE(RESIZE, IMAGE, (1, 1, 7, 9, 2), 7, 9, 0, 1, 12), {0}},
      {"the input has rank 2", POOL_CASE(RESIZE, (0, 5, 5), (1, 7, 9), 7, 9, 0, 1, 0), {0}},
  };
  TRY_CASES(cases);
}

/* Windows of 5 x 1, as a rule, in an image of 5 x 5: maxima, value 1, and where they are, value 2.
 */
#define LONG_WHERE                                                                                 \
  { .argument = 3, .dtype = DTYPE_I64 }
#define POSITION_CASE(where_type, ...)                                                             \
  {                                                                                                \
    .values = {IN(0, 1, 5, 5, 2),                                                                  \
               OUT(1, 1, 1, 5, 2),                                                                 \
               {.external = 3, .flags = 2, .datatype = (where_type), SHAPE(1, 1, 5, 2)}},          \
    .nodes = {                                                                                     \
      {POSITION, {0, 0, 0, 0, __VA_ARGS__}}                                                        \
    }                                                                                              \
  }

static void positions(void **state) {
  static const Case cases[] = {
      {NULL, POSITION_CASE(12, 5, 1, 0, 1, 2, 0), LONG_WHERE},
      {"datatypes 1 and 1 of its results", POSITION_CASE(1, 5, 1, 0, 1, 2, 0), {0}},
      {"windows of one element", POSITION_CASE(12, 1, 1, 0, 1, 2, 0), LONG_WHERE},
      {"its second result is value 7, and there are 3", POSITION_CASE(12, 5, 1, 0, 1, 7, 0),
       LONG_WHERE},
      {"it has no second result", POSITION_CASE(12, 5, 1, 0, 1, MADE_NONE, 0), LONG_WHERE},
      {"datatypes 12 and 12", POSITION_CASE(12, 5, 1, 0, 2, 2, 0), LONG_WHERE},
      {"dim 1 of its result is 2, and of value 1 1", POSITION_CASE(12, 2, 1, 0, 1, 2, 0),
       LONG_WHERE},
      {"nothing uses the maxima, value 1",
       {.values = {IN(0, 1, 5, 5, 2),
                   TEMP(1, 1, 5, 2),
                   {.external = 2, .flags = 2, .datatype = 12, SHAPE(1, 1, 5, 2)}},
        .nodes = {{POSITION, {0, 0, 0, 0, 5, 1, 0, 1, 2, 0}}}},
       {.argument = 2, .dtype = DTYPE_I64}},
  };
  TRY_CASES(cases);
}

#define MOVE_CASE(kind, x, y, first, second, ...)                                                  \
  {                                                                                                \
    .values = {IN x, OUT y}, .nodes = {                                                            \
      {.tag = kind, .fields = {__VA_ARGS__}, .vectors = {{SHAPE_OF first}, {SHAPE_OF second}}}     \
    }                                                                                              \
  }
#define SHAPE_OF(...)                                                                              \
  sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), { __VA_ARGS__ }

static void moves(void **state) {
  static const Case cases[] = {
      {NULL, MOVE_CASE(TRANSPOSE, (0, 2, 3), (1, 3, 2), (1, 0), (0), 2, VEC(0), 0, 1, 0), {0}},
      {"a permutation of 1 dims for rank 2",
       MOVE_CASE(TRANSPOSE, (0, 2, 3), (1, 3, 2), (0), (0), 1, VEC(0), 0, 1, 0),
       {0}},
      {"makes it no permutation",
       MOVE_CASE(TRANSPOSE, (0, 2, 3), (1, 3, 2), (1, 1), (0), 2, VEC(0), 0, 1, 0),
       {0}},
      {"makes it no permutation",
       MOVE_CASE(TRANSPOSE, (0, 2, 3), (1, 3, 2), (1, 32), (0), 2, VEC(0), 0, 1, 0),
       {0}},
      {"its vector has 2 entries, and it says 3",
       MOVE_CASE(TRANSPOSE, (0, 2, 3), (1, 3, 2), (1, 0), (0), 3, VEC(0), 0, 1, 0),
       {0}},
      {"its vector has 7 entries",
       MOVE_CASE(RESHAPE, (0, 1), (1, 1), (1, 1, 1, 1, 1, 1, 1), (0), 7, VEC(0), 0, 1, 0),
       {0}},
      {NULL, MOVE_CASE(RESHAPE, (0, 2, 6), (1, 4, 3), (0, 3), (0), 2, VEC(0), 0, 1, 0), {0}},
      {"12 elements do not make a shape of 5",
       MOVE_CASE(RESHAPE, (0, 2, 6), (1, 2, 5), (0, 5), (0), 2, VEC(0), 0, 1, 0),
       {0}},
      {"12 elements do not make a shape of 13",
       MOVE_CASE(RESHAPE, (0, 2, 6), (1, 13), (13), (0), 1, VEC(0), 0, 1, 0),
       {0}},
      {"a value of too many elements",
       MOVE_CASE(RESHAPE, (0, 2, 6), (1, 13), (0x7fffffff, 0x7fffffff, 0x7fffffff), (0), 3, VEC(0),
                 0, 1, 0),
       {0}},
      {"dim 1 of the new shape is 0",
       MOVE_CASE(RESHAPE, (0, 2, 6), (1, 4, 3), (0, 0), (0), 2, VEC(0), 0, 1, 0),
       {0}},
      {NULL,
       MOVE_CASE(SLICE, (0, 2, 6), (1, 2, 3), (0, 2), (0, 3), 2, VEC(0), VEC(1), 0, 1, 0),
       {0}},
      {"elements up to 7 are taken of dim 1, which has 6",
       MOVE_CASE(SLICE, (0, 2, 6), (1, 2, 3), (0, 4), (0, 3), 2, VEC(0), VEC(1), 0, 1, 0),
       {0}},
      {"nothing is taken of dim 1 from 4 on",
       MOVE_CASE(SLICE, (0, 2, 6), (1, 2, 2), (0, 4), (0, 0), 2, VEC(0), VEC(1), 0, 1, 0),
       {0}},
      {"1 offsets for rank 2",
       MOVE_CASE(SLICE, (0, 2, 6), (1, 2, 3), (0), (1), 1, VEC(0), VEC(1), 0, 1, 0),
       {0}},
      {"its vectors differ in length",
       MOVE_CASE(SLICE, (0, 2, 6), (1, 2, 3), (0, 2), (1), 2, VEC(0), VEC(1), 0, 1, 0),
       {0}},
      {NULL, MOVE_CASE(PAD, (0, 2, 6), (1, 2, 9), (0, 2), (0, 1), VEC(0), VEC(1), 0, 0, 1, 0), {0}},
      {"padding of 1 dims for rank 2",
       MOVE_CASE(PAD, (0, 2, 6), (1, 2, 9), (2), (1), VEC(0), VEC(1), 0, 0, 1, 0),
       {0}},
      {"padding of 0 and 4294967200",
       MOVE_CASE(PAD, (0, 2, 6), (1, 2, 9), (0, 0), (0, 4294967200u), VEC(0), VEC(1), 0, 0, 1, 0),
       {0}},
      {"dim 1 of the result is 2147483653",
       MOVE_CASE(PAD, (0, 2, 6), (1, 2, 9), (0, 0), (0, 0x7fffffff), VEC(0), VEC(1), 0, 0, 1, 0),
       {0}},
      {"axis 2 of rank 2",
       {.values = {IN(0, 2, 6), OUT(1, 2, 12)},
        .nodes = {{JOIN2, {2, 0, 0, MADE_NONE, MADE_NONE, 1, 0}}}},
       {0}},
      {NULL,
       {.values = {IN(0, 2, 6), OUT(1, 2, 12)},
        .nodes = {{JOIN2, {MADE_NONE, 0, 0, MADE_NONE, MADE_NONE, 1, 0}}}},
       {0}},
      {"dim 0 of an operand is 3 instead of 2",
       {.values = {IN(0, 2, 6), OUT(2, 2, 12), IN(1, 3, 6)},
        .nodes = {{JOIN2, {1, 0, 2, MADE_NONE, MADE_NONE, 1, 0}}}},
       {0}},
      {"an operand has rank 1",
       {.values = {IN(0, 2, 6), OUT(2, 2, 12), IN(1, 6)},
        .nodes = {{JOIN2, {1, 0, 2, MADE_NONE, MADE_NONE, 1, 0}}}},
       {0}},
  };
  TRY_CASES(cases);
}

/* --- sizes that are expressions --- */

/* Dim `axis` of all inputs varies, from 1 to its size; `says` is that of the output's. */
typedef struct SizeCase {
  Made made;
  uint32_t axis, out_axis;
  const char *says;
} SizeCase;

static void check_size(const SizeCase *c, Arena *arena, SymTable *syms) {
  DelegateCall call = made_call(&c->made, arena, NULL);
  SymInt size = sym_symbol(syms, SV(""), 1, call.inputs[0].dims[c->axis], false);
  for (uint32_t i = 0; i < call.input_count; i++)
    ((Tensor *)(uintptr_t)call.inputs)[i].dims[c->axis] = size;
  for (uint32_t i = 0; i < call.outputs[0].rank; i++)
    call.outputs[0].dims[i] = DELEGATE_DIM_UNKNOWN;
  call.fixed = false;
  call.syms = syms;
  assert_null(reader_xnnpack.check(&call, arena));
  StrBuf text = {0};
  sym_print(syms, call.outputs[0].dims[c->out_axis], &text);
  assert_string_equal(strbuf_cstr(&text), c->says);
  strbuf_release(&text);
}

/* What is read of a program says by them how its sizes depend on those of the inputs. */
static void expressions(void **state) {
  static const SizeCase cases[] = {
      {{PRODUCT_OF(0, 2, 3, 1, 0)}, 0, 0, "s0"},
      {{PRODUCT_OF(0, 2, 3, 1, 0)}, 0, 1, "4"},
      {{.values = {IN(0, 6, 2), IN(1, 6, 2), OUT(2, 6, 2)}, .nodes = {{ADD, {0, 1, 2, 0}}}},
       0,
       0,
       "s0"},
      {CONV_CASE(CONV, IMAGE, (1, 1, 3, 3, 4), FILTER, 0, 0, 0, 0, 3, 3, 2, 2, 1, 1, 2, 4, 1, 0, 0,
                 PLAIN_ENDS, 4),
       1, 1, "floordiv(s0 + 1, 2)"},
      {CONV_CASE(CONV, IMAGE, (1, 1, 5, 5, 4), FILTER, 1, 1, 1, 1, 3, 3, 1, 1, 1, 1, 2, 4, 1, 0, 0,
                 PLAIN_ENDS, 0),
       2, 2, "s0"},
      {CONV_CASE(DECONV, IMAGE, (1, 1, 10, 9, 4), FILTER, 1, 1, 1, 1, 3, 3, 2, 2, 1, 1, 2, 4, 1, 1,
                 0, PLAIN_ENDS, 0),
       1, 1, "s0*2"},
      {MOVE_CASE(RESHAPE, (0, 2, 6), (1, 4, 3), (0, 3), (0), 2, VEC(0), 0, 1, 0), 0, 0, "s0*2"},
      {MOVE_CASE(PAD, (0, 2, 6), (1, 2, 9), (0, 2), (0, 1), VEC(0), VEC(1), 0, 0, 1, 0), 1, 1,
       "s0 + 3"},
      {MOVE_CASE(TRANSPOSE, (0, 2, 3), (1, 3, 2), (1, 0), (0), 2, VEC(0), 0, 1, 0), 0, 1, "s0"},
      {{.values = {IN(0, 2, 6), OUT(1, 2, 12)},
        .nodes = {{JOIN2, {1, 0, 0, MADE_NONE, MADE_NONE, 1, 0}}}},
       1,
       1,
       "s0*2"},
      {{.values = {IN(0, 2, 6), OUT(1, 2, 12)},
        .nodes = {{JOIN2, {1, 0, 0, MADE_NONE, MADE_NONE, 1, 0}}}},
       0,
       0,
       "s0"},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    Arena arena = {0};
    SymTable syms = {0};
    check_size(&cases[i], &arena, &syms);
    sym_release(&syms);
    arena_release(&arena);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products),           cmocka_unit_test(convolutions),
      cmocka_unit_test(other_convolutions), cmocka_unit_test(pools),
      cmocka_unit_test(positions),          cmocka_unit_test(moves),
      cmocka_unit_test(expressions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

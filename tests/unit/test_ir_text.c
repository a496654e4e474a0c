/* Printing and parsing: what is printed reads back to the same text, elements of constants to the
 * same bits, and text that is wrong is refused where it is wrong. */
#include "ir_graph.h"

#include <float.h>

#include "ir/const_text.h"
#include "temp_file.h"

/* --- elements --- */

static void check_element(DType dtype, uint64_t bits, StrBuf *text) {
  uint8_t in[8], out[8] = {0};
  memcpy(in, &bits, 8);
  strbuf_clear(text);
  if (!element_print(dtype, in, text))
    fail_msg("%s 0x%llx is not printed", dtype_name(dtype), (unsigned long long)bits);
  if (!element_parse(dtype, (StrView){text->data, text->size}, out) ||
      memcmp(in, out, dtype_size(dtype)) != 0)
    fail_msg("%s 0x%llx is printed as '%s', which reads back differently", dtype_name(dtype),
             (unsigned long long)bits, text->data);
}

/* All values of 16 bits, NaNs included. */
static void test_every_short_element(void **state) {
  static const DType dtypes[] = {DTYPE_F16, DTYPE_BF16, DTYPE_I16, DTYPE_U16};
  StrBuf text = {0};
  for (size_t i = 0; i < COUNT_OF(dtypes); i++)
    for (uint32_t bits = 0; bits < 65536; bits++)
      check_element(dtypes[i], bits, &text);
  for (uint32_t bits = 0; bits < 256; bits++) {
    check_element(DTYPE_U8, bits, &text);
    check_element(DTYPE_I8, bits, &text);
  }
  strbuf_release(&text);
}

static void test_wide_elements(void **state) {
  static const DType dtypes[] = {DTYPE_F32, DTYPE_F64, DTYPE_I32, DTYPE_I64, DTYPE_U32, DTYPE_U64};
  static const uint64_t edges[] = {0,
                                   1,
                                   UINT64_MAX,
                                   (uint64_t)1 << 63,
                                   0x80000000,
                                   0x7fffffff,
                                   0x7f800000,
                                   0xff800000,
                                   0x7fc00000,
                                   0x7f800001,
                                   0xffffffff,
                                   0x007fffff,
                                   0x00800000,
                                   0x7ff0000000000000,
                                   0xfff0000000000000,
                                   0x7ff8000000000000,
                                   0x7ff0000000000001,
                                   0x000fffffffffffff};
  StrBuf text = {0};
  uint64_t seed = 1;
  for (size_t d = 0; d < COUNT_OF(dtypes); d++) {
    for (size_t i = 0; i < COUNT_OF(edges); i++)
      check_element(dtypes[d], edges[i], &text);
    for (int i = 0; i < 5000; i++) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      check_element(dtypes[d], seed ^ seed >> 31, &text);
    }
  }
  strbuf_release(&text);
}

static void check_printed(DType dtype, const void *value, const char *expected) {
  StrBuf text = {0};
  assert_true(element_print(dtype, value, &text));
  assert_string_equal(strbuf_cstr(&text), expected);
  strbuf_release(&text);
}

static void test_shortest_decimals(void **state) {
  check_printed(DTYPE_F32, &(float){0.1f}, "0.1");
  check_printed(DTYPE_F32, &(float){-0.0f}, "-0.0");
  check_printed(DTYPE_F32, &(float){16777216.0f}, "16777216.0");
  check_printed(DTYPE_F32, &(float){FLT_MAX}, "3.4028235e+38");
  check_printed(DTYPE_F64, &(double){0.1}, "0.1");
  check_printed(DTYPE_F16, &(uint16_t){0x2e66}, "0.1");
  check_printed(DTYPE_BF16, &(uint16_t){0x3dcd}, "0.1");
  check_printed(DTYPE_BOOL, &(uint8_t){1}, "true");
  check_printed(DTYPE_I8, &(int8_t){-128}, "-128");
}

static void test_bad_elements(void **state) {
  static const struct {
    DType dtype;
    const char *text;
  } bad[] = {{DTYPE_I8, "128"},
             {DTYPE_I8, "-129"},
             {DTYPE_U8, "-1"},
             {DTYPE_U8, "256"},
             {DTYPE_I32, "1.0"},
             {DTYPE_I32, ""},
             {DTYPE_BOOL, "1"},
             {DTYPE_BOOL, "True"},
             {DTYPE_F32, "1e39"},
             {DTYPE_F16, "65520"},
             {DTYPE_F32, "nan(0x7F800000)"},
             {DTYPE_F32, "nan(0x17FC00001)"},
             {DTYPE_F32, "nan(0x7FC00000)"},
             {DTYPE_F32, "nan()"},
             {DTYPE_F32, "0x10"},
             {DTYPE_F32, "infinity"},
             {DTYPE_F32, "--1"},
             {DTYPE_F32, "-nan"},
             {DTYPE_F8E5M2, "1"},
             {DTYPE_C64, "1"},
             {DTYPE_U64, "18446744073709551616"}};
  uint8_t out[8];
  for (size_t i = 0; i < COUNT_OF(bad); i++)
    if (element_parse(bad[i].dtype, sv_from(bad[i].text), out))
      fail_msg("'%s' was taken as %s", bad[i].text, dtype_name(bad[i].dtype));
  StrBuf text = {0};
  assert_false(element_print(DTYPE_BOOL, (uint8_t[]){2}, &text));
  strbuf_release(&text);
}

/* --- round trip --- */

/* Each is printed exactly as it is written. */
static const char *const canonical[] = {
    "graph @forward level(aten) {\n"
    "  output\n"
    "}\n",
    "graph @forward level(aten) {\n"
    "  sym s0 \"batch\" in [1, 8]\n"
    "  sym s1 \"\" in [0, 9223372036854775807] unbacked\n"
    "  constraint s0 >= 2 loc(\"Conv_0\", \"Conv\", 12)\n"
    "  constraint s0 == s1*3 + 1\n"
    "  constraint s0*s1 % 8 == 0\n"
    "  %0: f32[s0, 3] = input \"x\"\n"
    "  %1: i64[] = input none\n"
    "  %2: bool[s0, s1, 4, 4]{channels_last} = input \"\"\n"
    "  %3: f32[s0, 3] = aten::relu(%0) \"r\" loc(\"Relu_0\", \"Relu\", 3, \"body/f\") "
    "from(none, \"Old\", -1) from(\"a\\\"\\\\\\n\\x00\", none, 7)\n"
    "  output %3 \"y\", %0, %3\n"
    "}\n",
    "graph @forward level(aten) {\n"
    "  sym s0 \"n\" in [1, 20000]\n"
    "  sym s1 \"m\" in [1, 8]\n"
    "  range floordiv(s0 - s1, 2)\n"
    "  range (s0)*(s0 - 7)\n"
    "  %0: f32[max(0, -s1 + floordiv(s0 + s1, 2))] = input \"x\"\n"
    "  %1: f32[max(0, -s0*7 + s0*s0)] = input \"y\"\n"
    "  output %0 \"z\"\n"
    "}\n",
    "graph @\"two words\" level(core) {\n"
    "  %0: f32[2, 4] = input \"x\"\n"
    "  %1: f32[4] = const [1.0, -0.5, inf, nan] \"w\"\n"
    "  %2: f32[2, 4] = aten::add.Tensor(%0, %1, 1)\n"
    "  %3: f32[] = const 2.5\n"
    "  %4: f32[2, 4] = aten::mul.Tensor(%2, %3)\n"
    "  %5: i64[0] = const []\n"
    "  %6: bool[2] = const [true, false]\n"
    "  %7: bool[2] = const hex\"0203\"\n"
    "  %8: c64[1] = const hex\"0000803F00000040\"\n"
    "  output %4, %5, %6, %7, %8, %3\n"
    "}\n",
    "graph @args level(aten) {\n"
    "  %0: f32[2, 3, 8, 8] = input \"x\"\n"
    "  %1: i64[2] = input \"i\"\n"
    "  %2: f32[2, 3, 4, 4], %3: i64[2, 3, 4, 4] = aten::max_pool2d_with_indices(%0, [2, 2], [], "
    "[0], "
    "[1], false) \"p\", none\n"
    "  %4: f32[2, 2, 8, 8] = aten::index.Tensor(%0, [none, %1])\n"
    "  %5: f32[2, 3, 8, 8] = aten::gelu(%0, \"tanh\")\n"
    "  %6: f16[2, 3, 8, 8] = aten::_to_copy(%0, f16, false, none)\n"
    "  %7: f32[2, 3, 8, 8] = aten::leaky_relu(%0, 0.01)\n"
    "  %8: f32[2, 3, 8, 8] = aten::leaky_relu(%0, 1)\n"
    "  %9: f32[2, 3, 8, 8] = aten::clamp(%0, -inf, 9.223372036854776e+18)\n"
    "  %10: f32[2, 3, 16, 16] = aten::upsample_nearest2d.vec(%0, none, [2.0, 2.0])\n"
    "  %11: f32[2, 1, 8, 8], %12: f32[2, 2, 8, 8] = aten::split_with_sizes_copy(%0, [1, 2], 1)\n"
    "  %13: f32[2, 3, 8, 8] = aten::relu(%0) tag(2)\n"
    "  %14: f32[2, 3, 2, 8] = aten::slice_copy.Tensor(%0, 2, 1, 3, 1)\n"
    "  output %2 \"y\"\n"
    "}\n",
    "graph @dynamic level(edge) {\n"
    "  sym s0 \"n\" in [1, 8]\n"
    "  %0: f32[s0, 6] = input \"x\"\n"
    "  %1: int(s0) = aten::sym_size.int(%0, 0)\n"
    "  %2: int(s0*2) = executorch_prim::mul.Scalar(%1, 2)\n"
    "  %3: f32[s0*2, 3] = aten::view_copy(%0, [s0*2, 3])\n"
    "  output %3 \"y\"\n"
    "}\n",
    "graph @planned level(executorch) {\n"
    "  arenas [0, 64]\n"
    "  %0: f32[2, 4]@1+0:32 = input \"x\"\n"
    "  %1: f32[2, 4]@1+32:32 = aten::relu(%0) // aten::relu.out\n"
    "  %2: f32[8]@%1 = aten::view_copy(%1, [8]) // no call\n"
    "  %3: f32[8]@1+0:32 = aten::abs(%2) // aten::abs.out\n"
    "  output %3 \"y\"\n"
    "}\n",
};

static void test_canonical_text(void **state) {
  for (size_t i = 0; i < COUNT_OF(canonical); i++) {
    Sample s;
    sample_parse(&s, canonical[i]);
    StrBuf out = {0};
    graph_print(s.g, (PrintOptions){.locations = true}, &out);
    assert_string_equal(strbuf_cstr(&out), canonical[i]);
    strbuf_release(&out);
    sample_release(&s);
  }
}

/* What people write: defaults left out, numbers in any order, comments, several graphs. */
static void test_free_form(void **state) {
  Capture capture;
  Context ctx;
  capture_init(&capture);
  context_init(&ctx, &capture.sink);
  const char *text = "// a comment\n"
                     "graph @a level(aten){%7:f32[2]=input\"x\"\n"
                     "%3:f32[2]=aten::add.Tensor(%7,%7) // alpha is 1\n"
                     "%30: f32[2] = aten::leaky_relu ( %3 )\n\toutput %30}\n"
                     "graph @b level(aten) { output }";
  Graph **graphs;
  uint32_t count;
  assert_int_equal(graph_parse(&ctx, sv_from(text), SV("a.etir"), NULL, &graphs, &count),
                   STATUS_OK);
  assert_int_equal(count, 2);
  StrBuf out = {0};
  graph_print(graphs[0], (PrintOptions){0}, &out);
  assert_string_equal(strbuf_cstr(&out), "graph @a level(aten) {\n"
                                         "  %0: f32[2] = input \"x\"\n"
                                         "  %1: f32[2] = aten::add.Tensor(%0, %0, 1)\n"
                                         "  %2: f32[2] = aten::leaky_relu(%1, 0.01)\n"
                                         "  output %2\n"
                                         "}\n");
  strbuf_clear(&out);
  assert_true(graph_differs(graphs[0], graphs[1], &out));
  assert_contains(strbuf_cstr(&out), "line 1: 'graph @a level(aten) {' and 'graph @b");
  assert_false(graph_differs(graphs[0], graphs[0], &out));
  strbuf_release(&out);
  graph_free(graphs[0]);
  graph_free(graphs[1]);
  context_release(&ctx);
  capture_release(&capture);
}

/* --- large constants --- */

static void add_large_constant(Graph *g, Constant c) {
  ValueId x = graph_add_input(g, f32_type(g, 10, 10), 0);
  ValueId w = graph_add_constant(g, f32_type(g, 10, 10), c, intern_add(&g->ctx->names, SV("w")));
  Builder b = builder_make(g, 0, 0);
  graph_set_outputs(g, (ValueId[]){build(&b, OP_ADD_TENSOR, A_VAL(x), A_VAL(w))}, 1, NULL);
}

static Status parse_again(Sample *s, const char *text, const char *file, const Graph *from,
                          Graph **out) {
  Graph **graphs;
  uint32_t count;
  Status status = graph_parse(&s->ctx, sv_from(text), sv_from(file), from, &graphs, &count);
  *out = count ? graphs[0] : NULL;
  return status;
}

static void test_computed_constant(void **state) {
  Sample s;
  sample_init(&s);
  float values[100];
  for (int i = 0; i < 100; i++)
    values[i] = (float)i / 3;
  add_large_constant(s.g, (Constant){.data = (const uint8_t *)values, .size = sizeof values});
  StrBuf out = {0}, where = {0};
  Graph *again;
  graph_print(s.g, (PrintOptions){0}, &out);
  assert_contains(strbuf_cstr(&out), "const hash(xxh3:");
  assert_int_equal(parse_again(&s, strbuf_cstr(&out), "a.etir", NULL, &again), STATUS_INVALID);
  assert_contains(sample_messages(&s), "print it with full constants");
  assert_int_equal(parse_again(&s, strbuf_cstr(&out), "a.etir", s.g, &again), STATUS_OK);
  assert_false(graph_differs(s.g, again, &where));
  graph_free(again);
  strbuf_clear(&out);
  graph_print(s.g, (PrintOptions){.full_constants = true}, &out);
  assert_contains(strbuf_cstr(&out), "const hex\"");
  assert_int_equal(parse_again(&s, strbuf_cstr(&out), "a.etir", NULL, &again), STATUS_OK);
  assert_false(graph_differs(s.g, again, &where));
  graph_free(again);
  strbuf_release(&out);
  strbuf_release(&where);
  sample_release(&s);
}

typedef struct WeightFile {
  char folder[64], path[96];
  Arena arena;
  MappedFile map;
} WeightFile;

static void weight_file_make(WeightFile *f, DiagSink *sink) {
  float values[200];
  for (int i = 0; i < 200; i++)
    values[i] = (float)i;
  snprintf(f->folder, sizeof f->folder, "/tmp/etc-text-XXXXXX");
  assert_non_null(mkdtemp(f->folder));
  snprintf(f->path, sizeof f->path, "%s/w.bin", f->folder);
  write_file(f->path, values, sizeof values);
  f->arena = (Arena){0};
  assert_int_equal(file_map(&f->map, &f->arena, sink, f->path), STATUS_OK);
}
static void weight_file_remove(WeightFile *f) {
  file_unmap(&f->map);
  unlink(f->path);
  rmdir(f->folder);
  arena_release(&f->arena);
}

/* The parser keeps what it maps; a test gives it back, once a file. */
static void free_with_file(Graph *g) {
  for (ConstId c = 1; c < g->constant_count; c++)
    if (g->constants[c].file)
      file_unmap((MappedFile *)(uintptr_t)g->constants[c].file);
  graph_free(g);
}

static void test_constant_in_file(void **state) {
  Sample s;
  WeightFile f;
  sample_init(&s);
  weight_file_make(&f, &s.capture.sink);
  add_large_constant(s.g, (Constant){f.map.data + 100, 400, &f.map, 100});
  StrBuf out = {0}, where = {0}, beside = {0};
  beside = (StrBuf){0};
  graph_print(s.g, (PrintOptions){.full_constants = true}, &out);
  assert_contains(strbuf_cstr(&out), "w.bin\", 100, 400, xxh3:");
  Graph *again;
  assert_int_equal(parse_again(&s, strbuf_cstr(&out), "a.etir", NULL, &again), STATUS_OK);
  assert_false(graph_differs(s.g, again, &where));
  free_with_file(again);
  /* As the source of constants, the graph's own mapping is taken. */
  assert_int_equal(parse_again(&s, strbuf_cstr(&out), "a.etir", s.g, &again), STATUS_OK);
  assert_ptr_equal(again->constants[1].file, &f.map);
  graph_free(again);
  /* A relative path is looked up beside the text. */
  char *path = strstr(out.data, f.folder);
  strbuf_append(&beside, (StrView){out.data, (size_t)(path - out.data)});
  strbuf_append(&beside, sv_from(path + strlen(f.folder) + 1));
  char text_path[96];
  snprintf(text_path, sizeof text_path, "%s/a.etir", f.folder);
  assert_int_equal(parse_again(&s, strbuf_cstr(&beside), text_path, NULL, &again), STATUS_OK);
  assert_memory_equal(again->constants[1].data, f.map.data + 100, 400);
  free_with_file(again);
  /* Other bytes at that place. */
  char *offset = strstr(out.data, ", 100, ");
  memcpy(offset, ", 104, ", 7);
  assert_int_equal(parse_again(&s, strbuf_cstr(&out), "a.etir", NULL, &again), STATUS_INVALID);
  assert_contains(sample_messages(&s), "has other bytes there than");
  memcpy(offset, ", 999, ", 7);
  assert_int_equal(parse_again(&s, strbuf_cstr(&out), "a.etir", NULL, &again), STATUS_INVALID);
  assert_contains(sample_messages(&s), "beyond the end of its file (800 bytes)");
  strbuf_release(&out);
  strbuf_release(&where);
  strbuf_release(&beside);
  weight_file_remove(&f);
  sample_release(&s);
}

/* --- errors --- */

#define HEAD "graph @f level(aten) {\n%0: f32[2, 3] = input \"x\"\n"

static const struct {
  const char *text, *message; /* "line:column: ... part" as two parts joined by '|' */
} errors[] = {
    {"", "1:1|expected 'graph', found the end of the text"},
    {"grph", "1:1|expected 'graph', found 'grph'"},
    {"graph f", "1:7|expected '@'"},
    {"graph @f level(atem) {", "1:16|expected aten, core, edge or executorch, found 'atem)'"},
    {"graph @f level(aten) {", "1:23|found the end of the text"},
    {"graph @f level(aten) {}", "1:23|expected 'output', found '}'"},
    {"graph @f level(aten) { output } x", "1:33|expected 'graph', found 'x'"},
    {"graph @f level(aten) { output } graph @f level(aten) { output }",
     "1:39|there is already a graph of this name"},
    {HEAD "%0: f32[2] = input none output }", "3:1|%0 is defined twice"},
    {HEAD "%99999: f32[2] = input none output }", "3:1|larger than the text is long"},
    {HEAD "%99999999999999999999: f32[2] = input none output }",
     "3:2|expected the number of a value"},
    {HEAD "%1: f32[2, 3] = aten::relu(%2) output }", "3:28|%2 is used before it is defined"},
    {HEAD "%1: f32[2, 3] = aten::relu(%1) output }", "3:28|%1 is used before it is defined"},
    {HEAD "%1: f32[2, 3] = aten::rely(%0) output }", "3:17|did you mean 'aten::relu'?"},
    {HEAD "%1: f32[2, 3] = aten::relu(%0, 1) output }", "3:32|'aten::relu' has 1 argument"},
    {HEAD "%1: f32[2, 3] = aten::relu() output }",
     "3:28|argument 'self' of 'aten::relu' is missing"},
    {HEAD "%1: f32[2, 3] = aten::relu(none) output }", "3:28|argument 'self' cannot be none"},
    {HEAD "%1: f32[2, 3] = aten::relu(3) output }", "3:28|expected a value, as in %3, found '3)'"},
    {HEAD "%1: f32[2, 3] = aten::gelu(%0, tanh) output }", "3:32|expected a string"},
    {HEAD "%1: f32[2, 4] = aten::relu(%0) output }",
     "3:1|%1 is given as f32[2, 4], but its operands give f32[2, 3]"},
    {HEAD "%1: f32[2, 3], %2: f32[2] = aten::relu(%0) output }",
     "3:1|'aten::relu' has 1 result, not 2"},
    {HEAD "%1: f32[1, 3] = aten::split_copy.Tensor(%0, 1) output }",
     "3:1|the op gives 2 tensors here, not 1"},
    {HEAD "%1: f32[2, 3] = aten::add.Tensor(%0, %0, x) output }", "3:42|expected an integer"},
    {HEAD "%1: f32[2, 3] = aten::add.Tensor(%0, %0, s0) output }", "3:44|the expression goes on"},
    {HEAD "%1: f32[6] = aten::view_copy(%0, 6) output }", "3:34|expected a list"},
    {HEAD "%1: f32[6] = aten::view_copy(%0, [6) output }", "3:36|expected ']'"},
    {HEAD "%1: f32[5] = aten::view_copy(%0, [5]) output }", "3:1|the operands do not fit the op"},
    {HEAD "%1: f64 = input none output }", "3:5|expected a type"},
    {HEAD "%1: f32[-1] = input none output }", "3:9|a dimension cannot be negative"},
    {HEAD "%1: f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1] = input none output }",
     "3:41|a tensor has at most 16 dimensions"},
    {HEAD "%1: f32[2]{channels_last} = input none output }", "3:12|only tensors of 4 dimensions"},
    {HEAD "%1: f32[3] = const [1, 2] output }", "3:25|expected ',', found ']'"},
    {HEAD "%1: f32[1] = const [1, 2] output }", "3:20|the constant has 1 elements by its type"},
    {HEAD "%1: f32[1000000] = const [1] output }",
     "|the constant has 1000000 elements by its type"},
    {HEAD "%1: i8[1] = const [300] output }", "3:20|expected an element of type i8, found '300]'"},
    {HEAD "%1: f32[1] = const hex\"00\" output }", "3:23|4 bytes by its type, so 8 digits"},
    {HEAD "%1: f32[1] = const hex\"0000000g\" output }", "3:30|expected hexadecimal digits"},
    {HEAD "%1: int = const 1 output }", "|the type of a constant is a tensor of known size"},
    {HEAD "%1: f32[9] = const file(\"/nonexistent/w\", 0, 36, xxh3:0123456789abcdef) output }",
     "|a constant needs this file"},
    {HEAD "%1: f32[9] = const file(\"../w\", 0, 36, xxh3:0123456789abcdef) output }",
     "|leaves the folder of the model"},
    {HEAD "%1: f32[9] = const file(\"a\\x00b\", 0, 36, xxh3:0123456789abcdef) output }",
     "|NUL character"},
    {HEAD "%1: f32[9] = const file(\"w\", 0, 35, xxh3:0123456789abcdef) output }",
     "3:25|36 bytes by its type, not 35"},
    {HEAD "%1: f32[9] = const hash(xxh3:0123, 36) output }",
     "3:30|a hash has 16 hexadecimal digits"},
    {"graph @f level(aten) { sym s1 \"n\" in [1, 2] output }", "1:28|expected symbol s0"},
    {"graph @f level(aten) { sym s0 \"n\" in [2, 1] output }", "1:28|the range of a symbol"},
    {"graph @f level(aten) { sym s0 \"n\" in [-1, 1] output }", "1:28|the range of a symbol"},
    {"graph @f level(aten) { constraint 1 < 2 output }", "1:37|expected '==', '>=' or '%'"},
    {"graph @f level(aten) { constraint 4 % 2 == 1 output }", "1:44|expected '0'"},
    {"graph @\"f level(aten) {\n output }", "1:8|the string does not end on its line"},
    {"graph @\"\\q\" level(aten) { output }", "1:8|unknown escape in the string"},
    {HEAD "output %0 \"y\" loc(\"a\", \"b\", 1) }", "3:15|expected '}'"},
    {HEAD "%1: f32[2, 3] = aten::relu(%0) loc(\"a\", \"b\", 99999999999) output }",
     "3:46|the index of an ONNX node is out of range"},
    {HEAD "%1: f32[2, 3]@%0 = aten::relu(%0) output }", "3:15|that value has no place in memory"},
    {HEAD "%1: f32[2, 3]@5000000000+0:8 = aten::relu(%0) output }", "3:15|too large"},
    {HEAD "output %0, }", "3:12|expected '%'"},
};

static int print_case(size_t i, const char *messages) {
  print_error("case %zu: %s\nexpected %s, got\n%s", i, errors[i].text, errors[i].message, messages);
  return 1;
}

static void test_errors(void **state) {
  int wrong = 0;
  for (size_t i = 0; i < COUNT_OF(errors); i++) {
    Sample s;
    Graph *g;
    sample_init(&s);
    Status status = parse_again(&s, errors[i].text, "t.etir", NULL, &g);
    const char *part = strchr(errors[i].message, '|');
    char place[64];
    snprintf(place, sizeof place, "t.etir:%.*s: error[E0401]", (int)(part - errors[i].message),
             errors[i].message);
    if (status == STATUS_OK || (part > errors[i].message && !strstr(sample_messages(&s), place)) ||
        !strstr(sample_messages(&s), part + 1))
      wrong += print_case(i, sample_messages(&s));
    sample_release(&s);
  }
  assert_int_equal(wrong, 0);
}

/* A text cut off anywhere is refused, not read beyond its end. */
static void test_every_prefix(void **state) {
  for (size_t i = 0; i < COUNT_OF(canonical); i++) {
    size_t size = strlen(canonical[i]) - 2; /* without the last brace */
    for (size_t cut = 0; cut <= size; cut++) {
      Sample s;
      Graph **graphs;
      uint32_t count;
      sample_init(&s);
      char *exact = malloc(cut + 1); /* the sanitizer sees a read beyond it */
      memcpy(exact, canonical[i], cut);
      exact = realloc(exact, cut ? cut : 1);
      if (graph_parse(&s.ctx, (StrView){exact, cut}, SV("t"), NULL, &graphs, &count) == STATUS_OK)
        fail_msg("a text of %zu characters was taken: %.*s", cut, (int)cut, canonical[i]);
      assert_true(s.capture.sink.errors > 0);
      free(exact);
      sample_release(&s);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_short_element),
      cmocka_unit_test(test_wide_elements),
      cmocka_unit_test(test_shortest_decimals),
      cmocka_unit_test(test_bad_elements),
      cmocka_unit_test(test_canonical_text),
      cmocka_unit_test(test_free_form),
      cmocka_unit_test(test_computed_constant),
      cmocka_unit_test(test_constant_in_file),
      cmocka_unit_test(test_errors),
      cmocka_unit_test(test_every_prefix),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The op table: every schema is taken apart and put together again, and a few are spelt out, so
 * that the parser cannot be wrong in both directions. */
#include "unit.h"

#include <pthread.h>
#include <stdio.h>

#include "ir/op.h"

/* --- every row --- */

static const char *type_word(SchemaType type) {
  static const char *const words[] = {"Tensor", "int",    "float",      "bool",
                                      "Scalar", "str",    "ScalarType", "MemoryFormat",
                                      "Layout", "Device", "Graph"};
  return words[type];
}

/* The schema without what parsing drops: "SymInt" for int, sizes of lists, alias letters, "*", and
 * defaults. */
static void plain_schema(const OpSchema *s, StrBuf *out) {
  strbuf_printf(out, SV_FMT "(", SV_ARG(s->full));
  for (uint32_t i = 0; i < s->arg_count; i++) {
    const SchemaArg *a = &s->args[i];
    strbuf_printf(out, "%s%s%s%s%s " SV_FMT, i ? ", " : "", type_word(a->type),
                  a->element_optional ? "?" : "", a->list ? "[]" : "", a->optional ? "?" : "",
                  SV_ARG(a->name));
  }
  strbuf_printf(out, ") -> %s", s->result_count == 1 ? "" : "(");
  for (uint32_t i = 0; i < s->result_count; i++)
    strbuf_printf(out, "%s%s%s", i ? ", " : "", type_word(s->results[i]),
                  s->result_list ? "[]" : "");
  strbuf_append(out, s->result_count == 1 ? SV("") : SV(")"));
}

static size_t skip_default(const char *text) {
  size_t depth = 0, at = 0;
  for (; text[at] && (depth || (text[at] != ',' && text[at] != ')')); at++)
    depth += (text[at] == '[') - (text[at] == ']');
  return at;
}

/* The same from the text of the row, by deleting. */
static void plain_text(const char *schema, StrBuf *out) {
  for (const char *p = schema; *p; p++) {
    if (strncmp(p, "*, ", 3) == 0) {
      p += 2;
    } else if (strncmp(p, "SymInt", 6) == 0) {
      strbuf_append(out, SV("int"));
      p += 5;
    } else if (strncmp(p, "(a!)", 4) == 0) {
      p += 3;
    } else if (*p == '=') {
      p += skip_default(p) - 1;
    } else {
      strbuf_append_char(out, *p);
      if (*p == '[')
        p += strspn(p + 1, "0123456789");
    }
  }
}

static void test_every_schema(void **state) {
  StrBuf parsed = {0}, text = {0};
  for (OpId op = OP_OUTPUT + 1; op < op_count(); op++) {
    strbuf_clear(&parsed);
    strbuf_clear(&text);
    plain_schema(op_schema(op), &parsed);
    plain_text(op_row(op)->schema, &text);
    assert_string_equal(strbuf_cstr(&parsed), strbuf_cstr(&text));
  }
  strbuf_release(&parsed);
  strbuf_release(&text);
}

/* A default is given exactly where the text has "=", and fits the argument. */
static void test_every_default(void **state) {
  for (OpId op = OP_OUTPUT + 1; op < op_count(); op++) {
    const OpSchema *s = op_schema(op);
    uint32_t equals = 0, defaults = 0;
    for (const char *p = op_row(op)->schema; *p; p++)
      equals += *p == '=';
    for (uint32_t i = 0; i < s->arg_count; i++) {
      const SchemaArg *a = &s->args[i];
      defaults += a->has_default;
      if (!a->has_default)
        continue;
      ArgKind kind = a->default_value.kind;
      if (kind == ARG_NONE
              ? !a->optional
              : a->list != (kind == ARG_INTS || kind == ARG_FLOATS || kind == ARG_VALUES))
        fail_msg("%s: default of argument %u", op_row(op)->schema, i);
    }
    assert_int_equal(equals, defaults);
  }
}

static void test_every_row(void **state) {
  for (OpId op = OP_OUTPUT + 1; op < op_count(); op++) {
    const OpRow *row = op_row(op);
    const OpSchema *s = op_schema(op);
    uint32_t tensors = 0;
    for (uint32_t i = 0; i < s->arg_count; i++)
      tensors += s->args[i].type == ST_TENSOR;
    if (op_find(s->full) != op)
      fail_msg("%s is not found by its name", row->schema);
    if (row->out && strcmp(op_row(op_find_out(sv_from(row->out)))->out, row->out) != 0)
      fail_msg("%s is not found by its kernel", row->schema);
    if (!row->shape)
      fail_msg("%s has no shape rule", row->schema);
    if (row->alias >> tensors)
      fail_msg("%s: alias names tensor arguments that it does not have", row->schema);
    if (!row->doc)
      fail_msg("%s has no line of prose", row->schema);
    bool stands = false;
    for (int level = 0; level < LEVEL_COUNT; level++)
      stands |= op_allowed_at(op, (Level)level);
    bool needs_kernel = !(row->traits & (OP_VIEW | OP_CONTROL | OP_DELEGATE)); /* no call of one */
    if (!stands || (!row->out && needs_kernel && op_allowed_at(op, LEVEL_EXECUTORCH)))
      fail_msg("%s: levels", row->schema);
  }
}

/* --- spelt out --- */

static void test_convolution(void **state) {
  const OpSchema *s = op_schema(OP_CONVOLUTION);
  assert_int_equal(s->arg_count, 9);
  assert_true(sv_eq_str(s->full, "aten::convolution"));
  assert_int_equal(s->overload.size, 0);
  assert_true(s->args[0].type == ST_TENSOR && !s->args[0].optional);
  assert_true(s->args[2].type == ST_TENSOR && s->args[2].optional && !s->args[2].has_default);
  assert_true(s->args[3].type == ST_INT && s->args[3].list);
  assert_true(s->args[6].type == ST_BOOL && !s->args[6].list);
  assert_int_equal(s->result_count, 1);
  assert_int_equal(op_arg_index(OP_CONVOLUTION, "groups"), 8);
}

static void test_defaults(void **state) {
  const OpSchema *s = op_schema(OP_MAX_POOL2D_WITH_INDICES);
  assert_int_equal(s->result_count, 2);
  assert_false(s->args[1].has_default);
  assert_true(s->args[2].default_value.kind == ARG_INTS && s->args[2].default_value.count == 0);
  assert_true(s->args[3].default_value.count == 1 && s->args[3].default_value.ints[0] == 0);
  assert_true(s->args[4].default_value.count == 1 && s->args[4].default_value.ints[0] == 1);
  assert_true(s->args[5].default_value.kind == ARG_BOOL && s->args[5].default_value.i == 0);
  s = op_schema(OP_LEAKY_RELU);
  assert_true(s->args[1].default_value.kind == ARG_FLOAT && s->args[1].default_value.f == 0.01);
  s = op_schema(OP_GELU);
  assert_true(s->args[1].default_value.kind == ARG_STR &&
              sv_eq_str(s->args[1].default_value.str, "none"));
  s = op_schema(OP_GLU);
  assert_true(s->args[1].default_value.kind == ARG_INT && s->args[1].default_value.i == -1);
}

static void test_lists_and_marks(void **state) {
  const SchemaArg *indices = &op_schema(OP_INDEX_TENSOR)->args[1];
  assert_true(indices->list && indices->element_optional && !indices->optional);
  assert_true(op_schema(OP_COPY_)->args[0].mutated);
  assert_false(op_schema(OP_COPY_)->args[1].mutated);
  assert_true(op_schema(OP_SPLIT_COPY_TENSOR)->result_list);
  assert_int_equal(op_schema(OP_ELSE)->result_count, 0);
  const SchemaArg *sizes = &op_schema(OP_UPSAMPLE_NEAREST2D_VEC)->args[1];
  assert_true(sizes->list && sizes->optional && !sizes->element_optional);
}

static void test_names(void **state) {
  assert_int_equal(op_find(SV("aten::add.Tensor")), OP_ADD_TENSOR);
  assert_int_equal(op_find(SV("aten::add")), OP_NONE);
  assert_int_equal(op_find(SV("")), OP_NONE);
  assert_int_equal(op_find_out(SV("aten::add.out")), OP_ADD_TENSOR);
  assert_int_equal(op_find_out(SV("aten::add.Tensor")), OP_NONE);
  assert_true(op_allowed_at(OP_ADD_TENSOR, LEVEL_EXECUTORCH));
  assert_true(op_has_trait(OP_VIEW_COPY, OP_VIEW));
  assert_false(op_has_trait(OP_ADD_TENSOR, OP_VIEW));
  assert_string_equal(level_name(LEVEL_EXECUTORCH), "executorch");
}

/* --- ops of plug-ins --- */

static Status no_shape(Graph *g, NodeId n) {
  (void)g, (void)n;
  return STATUS_OK;
}

#define CLIP                                                                                       \
  "mine::clip.out(Tensor x, int[] at=[], float limit=1.5, *, Tensor(a!) out, Tensor(b!) rest) -> " \
  "(Tensor(a!), Tensor(b!))"

static char schemas[OP_PLUGIN_MAX + 1][64], kernels[OP_PLUGIN_MAX + 1][32];
static OpRow rows[OP_PLUGIN_MAX + 1];

static void make_rows(void) {
  for (int i = 0; i <= OP_PLUGIN_MAX; i++) {
    snprintf(schemas[i], sizeof schemas[i], "mine::op%d(Tensor x, int k=%d) -> Tensor", i, i);
    snprintf(kernels[i], sizeof kernels[i], "mine::op%d.out", i);
    rows[i] = (OpRow){.schema = schemas[i], .out = kernels[i], .shape = no_shape, .doc = "nothing"};
  }
}

/* Finds the first op again and again while others are added. */
static void *find_again(void *unused) {
  for (int i = 0; i < 10000; i++)
    assert_int_equal(op_find(SV("mine::op0")), OP_PLUGIN);
  return unused;
}

static void *add_all(void *unused) {
  Arena arena = {0};
  for (int i = 0; i < OP_PLUGIN_MAX - 1; i++) /* one is that of CLIP */
    assert_null(op_add(&rows[i], &arena));
  arena_release(&arena);
  return unused;
}

static void test_added(void **state) {
  Arena arena = {0};
  OpId kernel = OP_NONE, again = OP_NONE;
  pthread_t finder, adders[2];
  make_rows();
  uint32_t before = op_count();
  assert_int_equal(before, OP_PLUGIN);
  assert_null(op_add(&rows[0], &arena));
  assert_int_equal(op_count(), before + 1);
  assert_null(op_add_kernel(CLIP, no_shape, &arena, &kernel));
  assert_int_equal(kernel, OP_PLUGIN + 1);
  assert_string_equal(op_row(kernel)->schema,
                      "mine::clip(Tensor x, int[] at=[], float limit=1.5) -> (Tensor, Tensor)");
  assert_string_equal(op_row(kernel)->out, "mine::clip.out");
  pthread_create(&finder, NULL, find_again, NULL);
  for (int i = 0; i < 2; i++) /* the same rows, as two sessions that load one plug-in */
    pthread_create(&adders[i], NULL, add_all, NULL);
  pthread_join(finder, NULL);
  for (int i = 0; i < 2; i++)
    pthread_join(adders[i], NULL);
  assert_int_equal(op_count(), OP_COUNT);
  assert_non_null(strstr(op_add(&rows[OP_PLUGIN_MAX], &arena), "more than 64 ops"));
  assert_non_null(strstr(op_add_kernel("mine::k.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
                                       no_shape, &arena, &kernel),
                         "more than 64 ops"));
  assert_null(op_add_kernel(CLIP, no_shape, &arena, &again)); /* the same as before */
  assert_int_equal(again, OP_PLUGIN + 1);
  OpId op = op_find(SV("mine::op7"));
  assert_int_equal(op, op_find_out(SV("mine::op7.out")));
  assert_string_equal(op_row(op)->id, "mine::op7");
  assert_int_equal(op_schema(op)->args[1].default_value.i, 7);
  assert_true(op_allowed_at(op, LEVEL_ATEN) && op_allowed_at(op, LEVEL_EXECUTORCH));
  arena_release(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_schema), cmocka_unit_test(test_every_default),
      cmocka_unit_test(test_every_row),    cmocka_unit_test(test_convolution),
      cmocka_unit_test(test_defaults),     cmocka_unit_test(test_lists_and_marks),
      cmocka_unit_test(test_names),        cmocka_unit_test(test_added),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

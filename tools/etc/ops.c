/* etc ops: the op table and the list of ONNX operators, as text, JSON or Markdown
 * (docs/reference/operators.md). */
#include "command.h"
#include "support/json.h"

static const DType dtypes_in_order[] = {
    DTYPE_BOOL, DTYPE_U8,   DTYPE_I8,     DTYPE_I16,      DTYPE_I32,        DTYPE_I64,
    DTYPE_F16,  DTYPE_BF16, DTYPE_F32,    DTYPE_F64,      DTYPE_C64,        DTYPE_U16,
    DTYPE_U32,  DTYPE_U64,  DTYPE_F8E5M2, DTYPE_F8E4M3FN, DTYPE_F8E5M2FNUZ, DTYPE_F8E4M3FNUZ};

static void append_dtypes(StrBuf *out, DTypeSet set) {
  if (set == 0)
    strbuf_append(out, SV("any"));
  bool first = true;
  for (size_t i = 0; i < COUNT_OF(dtypes_in_order); i++) {
    if (!dtype_in(dtypes_in_order[i], set))
      continue;
    strbuf_printf(out, "%s%s", first ? "" : " ", dtype_name(dtypes_in_order[i]));
    first = false;
  }
}

static void append_levels(StrBuf *out, OpId op) {
  bool first = true;
  for (int level = 0; level < LEVEL_COUNT; level++) {
    if (!op_allowed_at(op, (Level)level))
      continue;
    strbuf_printf(out, "%s%s", first ? "" : " ", level_name((Level)level));
    first = false;
  }
}

static void append_versions(StrBuf *out, const OnnxOpRow *row) {
  strbuf_printf(out, "%d", row->since);
  if (row->until)
    strbuf_printf(out, "-%d", row->until);
  else
    strbuf_append_char(out, '+');
}

static void print_ir_text(StrBuf *out) {
  for (unsigned op = OP_OUTPUT + 1; op < op_count(); op++) {
    const OpRow *row = op_row((OpId)op);
    strbuf_printf(out, "%-46.*s %-40s ", SV_ARG(op_schema((OpId)op)->full),
                  row->out ? row->out : "-");
    append_dtypes(out, row->dtypes);
    strbuf_append_char(out, '\n');
  }
}

/* The operators that etc translates, then those of plug-ins; NULL past the end. */
static const OnnxOpRow *operator_at(const Registry *r, uint32_t i) {
  uint32_t own = onnx_op_count();
  if (i < own)
    return onnx_op_row(i);
  return i - own < r->translator_count ? &r->translators[i - own]->row : NULL;
}

static void print_onnx_text(const Registry *r, StrBuf *out) {
  const OnnxOpRow *row;
  for (uint32_t i = 0; (row = operator_at(r, i)) != NULL; i++) {
    size_t begin = out->size;
    strbuf_printf(out, "%s%s%s ", row->domain, row->domain[0] ? "." : "", row->name);
    strbuf_pad(out, begin, 34);
    append_versions(out, row);
    strbuf_printf(out, "  %s\n", row->lowering ? row->lowering : "");
  }
}

/* Table cells may not hold a bar. */
static void append_cell(StrBuf *out, const char *text) {
  for (; *text; text++) {
    if (*text == '|')
      strbuf_append_char(out, '\\');
    strbuf_append_char(out, *text);
  }
}

static void print_onnx_markdown(const Registry *r, StrBuf *out) {
  const OnnxOpRow *row;
  strbuf_append(
      out,
      SV("\n## ONNX operators\n\nElement types are those of the first input with which a case of "
         "the "
         "operator was right on the runtime (`tests/conformance/element_types.py`); empty where "
         "no case was at hand. A limit ends in the diagnostic that a model beyond it gets "
         "(`etc explain CODE`).\n\n"
         "| operator | opset | element types | becomes | limits |\n|---|---|---|---|---|\n"));
  for (uint32_t i = 0; (row = operator_at(r, i)) != NULL; i++) {
    const OnnxLimit *limit = onnx_limit(row);
    const char *types = onnx_element_types(row);
    strbuf_printf(out, "| %s%s%s | ", row->domain, row->domain[0] ? "." : "", row->name);
    append_versions(out, row);
    strbuf_printf(out, " | %s | ", types ? types : "");
    append_cell(out, row->lowering ? row->lowering : "");
    strbuf_append(out, SV(" | "));
    if (limit) {
      append_cell(out, limit->text);
      strbuf_printf(out, " (%s)", diag_row(limit->code)->code);
    }
    strbuf_append(out, SV(" |\n"));
  }
}

static void print_markdown(const Registry *r, StrBuf *out) {
  strbuf_append(out, SV("# Operators\n\nMade by `tools/update-docs`.\n\n## Ops of the IR\n\n"
                        "| op | kernel of the runtime | element types | levels | meaning |\n"
                        "|---|---|---|---|---|\n"));
  for (unsigned op = OP_OUTPUT + 1; op < op_count(); op++) {
    const OpRow *row = op_row((OpId)op);
    strbuf_append(out, SV("| `"));
    append_cell(out, row->schema);
    strbuf_printf(out, "` | %s%s%s | ", row->out ? "`" : "", row->out ? row->out : "none",
                  row->out ? "`" : "");
    append_dtypes(out, row->dtypes);
    strbuf_append(out, SV(" | "));
    append_levels(out, (OpId)op);
    strbuf_append(out, SV(" | "));
    append_cell(out, row->doc);
    strbuf_append(out, SV(" |\n"));
  }
  print_onnx_markdown(r, out);
  strbuf_append(out,
                SV("\n## ONNX operators that are not lowered\n\n| operator | why |\n|---|---|\n"));
  for (uint32_t i = 0; onnx_out_of_reach(i); i++) {
    const OnnxOutOfReach *row = onnx_out_of_reach(i);
    strbuf_printf(out, "| %s%s%s | ", row->domain, row->domain[0] ? "." : "", row->name);
    append_cell(out, row->reason);
    strbuf_append(out, SV(" |\n"));
  }
}

static void json_words(JsonWriter *w, const char *key, OpId op, bool levels) {
  json_named_array(w, key);
  if (levels) {
    for (int level = 0; level < LEVEL_COUNT; level++)
      if (op_allowed_at(op, (Level)level))
        json_string(w, sv_from(level_name((Level)level)));
  } else {
    for (size_t i = 0; i < COUNT_OF(dtypes_in_order); i++)
      if (op_row(op)->dtypes == 0 || dtype_in(dtypes_in_order[i], op_row(op)->dtypes))
        json_string(w, sv_from(dtype_name(dtypes_in_order[i])));
  }
  json_close_array(w);
}

static void json_op(JsonWriter *w, OpId op) {
  const OpRow *row = op_row(op);
  json_open_object(w);
  json_named_string(w, "op", op_schema(op)->full);
  json_named_string(w, "schema", sv_from(row->schema));
  json_key(w, "kernel");
  if (row->out)
    json_string(w, sv_from(row->out));
  else
    json_null(w);
  json_words(w, "dtypes", op, false);
  json_words(w, "levels", op, true);
  json_named_string(w, "doc", sv_from(row->doc));
  json_close_object(w);
}

static void json_onnx(JsonWriter *w, const OnnxOpRow *row) {
  json_open_object(w);
  json_named_string(w, "domain", sv_from(row->domain));
  json_named_string(w, "name", sv_from(row->name));
  json_named_int(w, "since", row->since);
  json_key(w, "until");
  if (row->until)
    json_int(w, row->until);
  else
    json_null(w);
  json_named_string(w, "lowering", sv_from(row->lowering ? row->lowering : ""));
  const OnnxLimit *limit = onnx_limit(row);
  const char *types = onnx_element_types(row);
  json_named_string(w, "element_types", sv_from(types ? types : ""));
  json_named_string(w, "limit", sv_from(limit ? limit->text : ""));
  json_close_object(w);
}

static void print_text(const Registry *r, bool onnx_only, StrBuf *out) {
  if (!onnx_only) {
    print_ir_text(out);
    strbuf_append(out, SV("\nONNX operators:\n"));
  }
  print_onnx_text(r, out);
}

static void json_ir(JsonWriter *w) {
  json_named_array(w, "ops");
  for (unsigned op = OP_OUTPUT + 1; op < op_count(); op++)
    json_op(w, (OpId)op);
  json_close_array(w);
}

static void print_json(const Registry *r, bool onnx_only, StrBuf *out) {
  const OnnxOpRow *row;
  JsonWriter w;
  json_init(&w, out, true);
  json_open_object(&w);
  if (!onnx_only)
    json_ir(&w);
  json_named_array(&w, "onnx");
  for (uint32_t i = 0; (row = operator_at(r, i)) != NULL; i++)
    json_onnx(&w, row);
  json_close_array(&w);
  json_close_object(&w);
  strbuf_append_char(out, '\n');
}

int cmd_ops(const CommandLine *line) {
  TRY(expect_arguments(line, 0, ""));
  TRY(command_line_apply(line));
  const Registry *r = &line->session->registry;
  bool onnx_only = command_line_has(line, OPT_ONNX);
  StrBuf text = {0};
  if (command_line_has(line, OPT_JSON))
    print_json(r, onnx_only, &text);
  else if (command_line_has(line, OPT_MARKDOWN) && onnx_only)
    print_onnx_markdown(r, &text);
  else if (command_line_has(line, OPT_MARKDOWN))
    print_markdown(r, &text);
  else
    print_text(r, onnx_only, &text);
  return print_and_release(line, &text);
}

/* See inspect.h. Of textual graphs: inputs and outputs, and how often each op is there. */
#include <stdlib.h>
#include <xxhash.h>

#include "inspect.h"
#include "ir/op.h"
#include "ir/text.h"
#include "support/json.h"

/* --- operators --- */

typedef struct OpCount {
  OpId op;
  uint32_t count;
} OpCount;

static int compare_counts(const void *a, const void *b) {
  const OpCount *x = a, *y = b;
  int order = ORDER(y->count, x->count);
  return order ? order : ORDER(x->op, y->op);
}

/* Those that are there, the most frequent ones first; OP_COUNT at most. */
static uint32_t count_ops(const Graph *g, OpCount counts[OP_COUNT]) {
  uint32_t used = 0;
  for (uint32_t i = 0; i < OP_COUNT; i++)
    counts[i] = (OpCount){(OpId)i, 0};
  for (FOR_NODES(g, n))
    counts[node_cget(g, n)->op].count++;
  for (uint32_t i = 0; i < OP_COUNT; i++)
    if (counts[i].count)
      counts[used++] = counts[i];
  qsort(counts, used, sizeof *counts, compare_counts);
  return used;
}

/* --- text --- */

static void text_value(const Graph *g, const char *title, uint32_t i, StrView name, ValueId v,
                       StrBuf *out) {
  strbuf_printf(out, "  %s %u: ", title, i);
  if (name.size) {
    strbuf_append_within(out, "'", name, "' ");
  }
  type_describe(g, value_type(g, v), out);
  strbuf_append_char(out, '\n');
}

static void text_graph(const Graph *g, StrBuf *out) {
  OpCount counts[OP_COUNT];
  uint32_t count = count_ops(g, counts);
  strbuf_append(out, SV("\nmethod '"));
  strbuf_append_printable(out, graph_name(g));
  strbuf_printf(out, "', level %s, %u node%s\n", level_name(g->level), g->live_nodes,
                g->live_nodes == 1 ? "" : "s");
  for (uint32_t i = 0; i < g->input_count; i++)
    text_value(g, "input", i, value_name(g, g->inputs[i]), g->inputs[i], out);
  for (uint32_t i = 0; i < graph_output_count(g); i++)
    text_value(g, "output", i, graph_output_text(g, i), graph_output(g, i), out);
  strbuf_append(out, count ? SV("  operators:\n") : SV(""));
  for (uint32_t i = 0; i < count; i++)
    strbuf_printf(out, "  %6u  " SV_FMT "\n", counts[i].count,
                  SV_ARG(op_schema(counts[i].op)->full));
}

/* --- JSON --- */

static void json_value(const Graph *g, StrView name, ValueId v, JsonWriter *w) {
  StrBuf type = {0};
  type_describe(g, value_type(g, v), &type);
  json_open_object(w);
  json_named_string(w, "name", name);
  json_named_string(w, "type", sv_from(strbuf_cstr(&type)));
  json_close_object(w);
  strbuf_release(&type);
}

static void json_graph(const Graph *g, JsonWriter *w) {
  OpCount counts[OP_COUNT];
  uint32_t count = count_ops(g, counts);
  json_open_object(w);
  json_named_string(w, "name", graph_name(g));
  json_named_string(w, "level", sv_from(level_name(g->level)));
  json_named_uint(w, "nodes", g->live_nodes);
  json_named_array(w, "inputs");
  for (uint32_t i = 0; i < g->input_count; i++)
    json_value(g, value_name(g, g->inputs[i]), g->inputs[i], w);
  json_close_array(w);
  json_named_array(w, "outputs");
  for (uint32_t i = 0; i < graph_output_count(g); i++)
    json_value(g, graph_output_text(g, i), graph_output(g, i), w);
  json_close_array(w);
  json_named_array(w, "operators");
  for (uint32_t i = 0; i < count; i++) {
    json_open_object(w);
    json_named_string(w, "name", op_schema(counts[i].op)->full);
    json_named_uint(w, "calls", counts[i].count);
    json_close_object(w);
  }
  json_close_array(w);
  json_close_object(w);
}

/* --- a file --- */

static void report(const Session *s, const char *path, bool json, StrBuf *out) {
  if (!json) {
    strbuf_append_within(out, "file: ", sv_from(path), "\n");
    for (uint32_t i = 0; i < s->program.method_count; i++)
      text_graph(s->program.methods[i].graph, out);
    return;
  }
  JsonWriter w;
  json_init(&w, out, true);
  json_open_object(&w);
  json_named_string(&w, "file", sv_from(path));
  json_named_array(&w, "methods");
  for (uint32_t i = 0; i < s->program.method_count; i++)
    json_graph(s->program.methods[i].graph, &w);
  json_close_array(&w);
  json_close_object(&w);
}

/* A session of its own with the graphs; to be freed, whatever *status is. */
static Session *open_graphs(const CommandLine *line, const char *path, const Source *read,
                            EtcStatus *status) {
  const DiagSink *sink = &line->session->sink;
  Session *s = session_new_inner();
  etc_session_on_diagnostic(s, sink->write, sink->write_user);
  s->sink.format = sink->format;
  s->sink.color = sink->color;
  s->sink.verbose = sink->verbose;
  s->sink.quiet = sink->quiet;
  *status = read ? session_share_source(s, read) : session_add_source(s, "forward", path);
  if (*status == ETC_OK)
    *status = session_status(session_import(s, false));
  return s;
}

EtcStatus inspect_graphs(const CommandLine *line, const char *path, const Source *read,
                         StrBuf *out) {
  EtcStatus status;
  Session *s = open_graphs(line, path, read, &status);
  if (status == ETC_OK)
    report(s, read ? read->mapped.path : path, command_line_has(line, OPT_JSON), out);
  etc_session_free(s);
  return status;
}

/* --- facts to compare --- */

static void sheet_value(const Graph *g, const char *what, uint32_t i, StrView name, ValueId v,
                        Sheet *sheet) {
  StrBuf text = {0};
  strbuf_append_char(&text, '\'');
  strbuf_append(&text, name);
  strbuf_append(&text, SV("' "));
  type_describe(g, value_type(g, v), &text);
  sheet_add(sheet, (Fact){.section = FACTS_INTERFACE,
                          .kind = FACT_TEXT,
                          .method = graph_name(g),
                          .name = sv_from(arena_printf(sheet->arena, "%s %u", what, i)),
                          .text = {strbuf_cstr(&text), text.size}});
  strbuf_release(&text);
}

static void sheet_ops(const Graph *g, Sheet *sheet) {
  OpCount counts[OP_COUNT];
  uint32_t count = count_ops(g, counts);
  StrView method = graph_name(g);
  sheet_add(sheet, (Fact){.section = FACTS_OPERATORS,
                          .kind = FACT_TEXT,
                          .method = method,
                          .name = SV("level"),
                          .text = sv_from(level_name(g->level))});
  sheet_add(sheet, (Fact){.section = FACTS_OPERATORS,
                          .kind = FACT_COUNT,
                          .method = method,
                          .name = SV("nodes"),
                          .number = g->live_nodes});
  for (uint32_t i = 0; i < count; i++)
    sheet_add(sheet, (Fact){.section = FACTS_OPERATORS,
                            .kind = FACT_COUNT,
                            .method = method,
                            .name = op_schema(counts[i].op)->full,
                            .number = counts[i].count});
}

/* Named constants that are used, by type; the bytes of all by element type. */
static void sheet_constants(const Graph *g, Sheet *sheet, Sheet *sums) {
  StrView method = graph_name(g);
  for (ValueId v = 1; v < g->value_count; v++) {
    const Constant *c = value_lazy_constant(g, v);
    StrView name = intern_get(&g->ctx->names, g->values[v].name);
    StrBuf type = {0};
    if (!c || !g->values[v].use_count)
      continue;
    type_describe(g, value_type(g, v), &type);
    StrView text = {strbuf_cstr(&type), type.size};
    sheet_add(name.size ? sheet : sums, (Fact){.section = FACTS_CONSTANTS,
                                               .kind = name.size ? FACT_TEXT : FACT_COUNT,
                                               .method = method,
                                               .name = name.size ? name : text,
                                               .number = 1,
                                               .text = text});
    sheet_add(sums, (Fact){.section = FACTS_QUANTIZATION,
                           .kind = FACT_BYTES,
                           .method = method,
                           .name = sv_from(arena_printf(sheet->arena, "constants in %s",
                                                        dtype_name(value_dtype(g, v)))),
                           .number = c->size});
    strbuf_release(&type);
  }
}

static void sheet_graph(const Graph *g, Sheet *sheet) {
  Sheet sums = {.arena = sheet->arena};
  for (uint32_t i = 0; i < g->input_count; i++)
    sheet_value(g, "input", i, value_name(g, g->inputs[i]), g->inputs[i], sheet);
  for (uint32_t i = 0; i < graph_output_count(g); i++)
    sheet_value(g, "output", i, graph_output_text(g, i), graph_output(g, i), sheet);
  sheet_ops(g, sheet);
  sheet_constants(g, sheet, &sums);
  sheet_add_sums(sheet, &sums);
}

EtcStatus graphs_sheet(const CommandLine *line, const char *path, const Source *read,
                       Sheet *sheet) {
  EtcStatus status;
  Session *s = open_graphs(line, path, read, &status);
  sheet->kind = "textual graph";
  if (status == ETC_OK) {
    const MappedFile *file = &s->program.sources[0]->mapped;
    sheet_add(sheet,
              (Fact){.section = FACTS_SIZE,
                     .kind = FACT_BYTES,
                     .name = SV("file"),
                     .number = file->size,
                     .hash = XXH3_64bits_withSeed(file->data, (size_t)file->size, sheet->seed)});
    for (uint32_t i = 0; i < s->program.method_count; i++)
      sheet_graph(s->program.methods[i].graph, sheet);
  }
  etc_session_free(s);
  return status;
}

/* etc print: the graphs of a model as text or as pictures, at any stage. */
#include "command.h"

#include "ir/picture.h"
#include "pipeline/constant_methods.h"

typedef enum Format { FORMAT_TEXT, FORMAT_DOT, FORMAT_MODEL_EXPLORER, FORMAT_COUNT } Format;

static EtcStatus parse_format(const CommandLine *line, Format *format) {
  static const char *const names[FORMAT_COUNT] = {"text", "dot", "model-explorer"};
  const char *name = command_line_value(line, OPT_FORMAT);
  *format = FORMAT_TEXT;
  while (name && *format < FORMAT_COUNT && strcmp(name, names[*format]) != 0)
    (*format)++;
  return *format < FORMAT_COUNT
             ? ETC_OK
             : session_usage(line->session, "--format", "text, dot or model-explorer",
                             "there is no format '%s'", name);
}

static EtcStatus parse_stage(const CommandLine *line, StageId *stage) {
  const char *name = command_line_value(line, OPT_STAGE);
  *stage = STAGE_IMPORT;
  if (!name)
    return ETC_OK;
  *stage = stage_find(sv_from(name));
  if (*stage < STAGE_EMIT)
    return ETC_OK;
  const char *nearest = stage_nearest(sv_from(name));
  return session_usage(line->session, "--stage",
                       nearest && *stage == STAGE_COUNT
                           ? arena_printf(&line->session->arena, "did you mean '%s'?", nearest)
                           : "'etc passes' lists the stages",
                       "there is no graph after a stage '%s'", name);
}

static void print_text(const CommandLine *line, StrBuf *out) {
  session_print(line->session,
                (PrintOptions){.full_constants = line->session->manager.options.full_constants,
                               .locations = !command_line_has(line, OPT_NO_LOCATIONS)},
                out);
}

/* A digraph a method. */
static void print_dot(const Program *program, StrBuf *out) {
  for (uint32_t i = 0; i < program->method_count; i++)
    picture_dot(program->methods[i].graph, out);
}

/* A collection of graphs, one a method. */
static void print_model_explorer(const Program *program, StrBuf *out) {
  JsonWriter w;
  json_init(&w, out, false);
  json_open_object(&w);
  json_named_string(&w, "label", sv_from(program->sources[0]->path));
  json_named_array(&w, "graphs");
  for (uint32_t i = 0; i < program->method_count; i++)
    picture_model_explorer(program->methods[i].graph, &w);
  json_close_array(&w);
  json_close_object(&w);
  strbuf_append_char(out, '\n');
}

static void print_as(const CommandLine *line, Format format, StrBuf *out) {
  if (format == FORMAT_DOT)
    print_dot(&line->session->program, out);
  else if (format == FORMAT_MODEL_EXPLORER)
    print_model_explorer(&line->session->program, out);
  else
    print_text(line, out);
}

int cmd_print(const CommandLine *line) {
  Session *s = line->session;
  StageId stage = STAGE_IMPORT;
  Format format;
  StrBuf text = {0};
  EtcStatus status = parse_format(line, &format);
  if (status == ETC_OK)
    status = command_line_apply(line);
  if (status == ETC_OK)
    status = parse_stage(line, &stage);
  if (status == ETC_OK)
    status = load_model(line, true);
  if (status == ETC_OK && stage != STAGE_IMPORT && s->program.sources[0]->kind == SOURCE_PTE)
    status = session_usage(s, "--stage", "print the model that it was made from",
                           "a program is past all stages");
  if (status == ETC_OK && s->manager.options.stop_after && stage == STAGE_IMPORT)
    stage = STAGE_TO_EXECUTORCH;
  if (status == ETC_OK)
    status = session_status(session_run(s, stage));
  if (status == ETC_OK && format == FORMAT_TEXT)
    session_warn_constants(s);
  if (status == ETC_OK)
    status = refuse_warnings(line);
  session_print_times(s);
  if (status != ETC_OK)
    return (int)status;
  print_as(line, format, &text);
  return write_and_release(line, &text, command_line_value(line, OPT_OPT_OUTPUT));
}

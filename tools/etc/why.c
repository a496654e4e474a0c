/* etc why: the life of an operator or value of a model, up to its place in the program. */
#include "command.h"
#include "pipeline/recipe.h"
#include "pipeline/why.h"

/* The model comes first, unless --method or a recipe names one; then the name, if one is wanted. */
static EtcStatus add_models(const CommandLine *line, uint32_t names) {
  Session *s = line->session;
  if (line->argument_count == names + 1)
    TRY(session_add_source(s, "forward", line->arguments[0]));
  TRY(recipe_apply(s));
  bool fits = line->argument_count == names || line->argument_count == names + 1;
  if (fits && s->program.source_count)
    return ETC_OK;
  return expect_arguments(line, names + 1,
                          names ? "a model and the name of an operator or value" : "a model");
}

static Status tell(const CommandLine *line, bool all, StrBuf *text) {
  Session *s = line->session;
  bool json = command_line_has(line, OPT_JSON);
  if (all)
    return session_why_all(s, json, text);
  return session_why(s, sv_from(line->arguments[line->argument_count - 1]), json, text);
}

int cmd_why(const CommandLine *line) {
  Session *s = line->session;
  bool all = command_line_has(line, OPT_ALL);
  StrBuf text = {0};
  session_trace(s);
  TRY(command_line_apply(line));
  TRY(add_models(line, all ? 0 : 1));
  TRY(session_status(session_import(s, false)));
  TRY(session_status(session_lower_in_memory(s)));
  EtcStatus status = session_status(tell(line, all, &text));
  if (status == ETC_OK)
    return print_and_release(line, &text);
  strbuf_release(&text);
  return (int)status;
}

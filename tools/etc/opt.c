/* etc opt: passes by name, on textual graphs. */
#include "command.h"
#include "ir/verify.h"
#include "pipeline/explain.h"

/* The row of that name that fits the graph's level best: a pass may have rows at several levels. */
static const PassRow *row_for(const Registry *r, const char *name, Level level) {
  const PassRow *accepted = NULL;
  for (uint32_t i = 0; i < r->pass_count; i++) {
    const PassRow *row = r->passes[i];
    if (strcmp(row->name, name) != 0)
      continue;
    if (row->level_in == level)
      return row;
    if (!accepted || manager_accepts(row, level))
      accepted = row;
  }
  return accepted;
}

/* The names in all --pass options, in order; each is checked. */
static EtcStatus parse_passes(const CommandLine *line, PassNames *list) {
  Session *s = line->session;
  for (uint32_t i = 0; i < line->option_count; i++) {
    if (line->options[i].row->id != OPT_OPT_PASS)
      continue;
    const char *at = line->options[i].value;
    list->names = arena_grow(&s->arena, list->names, list->count * sizeof *list->names,
                             (list->count + strlen(at) + 1) * sizeof *list->names);
    while (*at) {
      const char *comma = strchr(at, ',');
      StrView name = {at, comma ? (size_t)(comma - at) : strlen(at)};
      const PassRow *row = registry_pass(&s->registry, name);
      if (!row) {
        const char *nearest = registry_nearest_pass(&s->registry, name);
        return session_usage(s, "--pass",
                             nearest ? arena_printf(&s->arena, "did you mean '%s'?", nearest)
                                     : "'etc passes' lists the passes",
                             "there is no pass '" SV_FMT "'", SV_ARG(name));
      }
      list->names[list->count++] = row->name;
      at += name.size + (comma ? 1 : 0);
    }
  }
  return ETC_OK;
}

static Status run_on(Session *s, Graph *g, const PassNames *list) {
  if (!s->manager.options.verify_never)
    TRY(graph_verify(g, "parsing"));
  s->manager.stopped = false;
  for (uint32_t i = 0; i < list->count; i++)
    TRY(manager_run_pass(&s->manager, g, row_for(&s->registry, list->names[i], g->level)));
  return s->manager.options.verify_never ? STATUS_OK : graph_verify(g, "the last pass");
}

static Status run_passes(Session *s, const PassNames *list) {
  for (uint32_t m = 0; m < s->program.method_count; m++) {
    session_enter(s, &s->program.methods[m]);
    Status status = run_on(s, s->program.methods[m].graph, list);
    session_explain(s);
    TRY(status);
  }
  return STATUS_OK;
}

int cmd_opt(const CommandLine *line) {
  Session *s = line->session;
  PassNames list = {0};
  StrBuf text = {0};
  EtcStatus status = command_line_apply(line);
  if (status == ETC_OK)
    status = parse_passes(line, &list);
  if (status == ETC_OK && line->argument_count == 1 && s->program.source_count == 0) {
    status = session_add_source(s, "forward", line->arguments[0]);
    if (status == ETC_OK && s->program.sources[0]->kind != SOURCE_TEXT)
      status =
          session_usage(s, "", "'etc print MODEL' makes a textual graph",
                        "'etc opt' takes a textual graph (.etir), not '%s'", line->arguments[0]);
  } else if (status == ETC_OK) {
    status = expect_arguments(line, 1, "a textual graph (.etir)");
  }
  if (status == ETC_OK)
    status = session_status(session_import(s, false));
  if (status == ETC_OK)
    status = session_status(run_passes(s, &list));
  if (status == ETC_OK)
    status = refuse_warnings(line);
  session_print_times(s);
  if (status != ETC_OK)
    return (int)status;
  session_print(s,
                (PrintOptions){.full_constants = s->manager.options.full_constants,
                               .locations = !command_line_has(line, OPT_NO_LOCATIONS)},
                &text);
  return write_and_release(line, &text, command_line_value(line, OPT_OPT_OUTPUT));
}

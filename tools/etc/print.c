/* etc print: the graphs of a model as text, at any stage. */
#include "command.h"

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

int cmd_print(const CommandLine *line) {
  Session *s = line->session;
  StageId stage = STAGE_IMPORT;
  StrBuf text;
  EtcStatus status = command_line_apply(line);
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
  if (status == ETC_OK)
    status = refuse_warnings(line);
  session_print_times(s);
  if (status != ETC_OK)
    return (int)status;
  strbuf_init(&text);
  session_print(s,
                (PrintOptions){.full_constants = s->manager.options.full_constants,
                               .locations = !command_line_has(line, OPT_NO_LOCATIONS)},
                &text);
  return write_and_release(line, &text, command_line_value(line, OPT_OPT_OUTPUT));
}

/* The public functions (include/etc/etc.h): a thin cover of the session. */
#include <stdlib.h>

#include "pipeline/recipe.h"
#include "pipeline/settings.h"

const char *etc_version(void) { return ETC_VERSION; }

EtcSession *etc_session_new(void) {
  Session *s = xrealloc(NULL, sizeof *s);
  *s = (Session){0};
  arena_init(&s->arena);
  diag_sink_init(&s->sink);
  context_init(&s->ctx, &s->sink);
  manager_init(&s->manager, &s->sink);
  return s;
}

static void close_source(Source *source) {
  if (!source->open)
    return;
  switch (source->kind) {
  case SOURCE_ONNX:
    onnx_model_close(&source->onnx);
    break;
  case SOURCE_TEXT:
    file_unmap(&source->text);
    break;
  case SOURCE_PTE:
    pte_close(&source->pte);
    break;
  }
}

void etc_session_free(EtcSession *s) {
  if (!s)
    return;
  for (uint32_t i = 0; i < s->method_count; i++)
    if (s->methods[i].source->kind != SOURCE_PTE)
      graph_free(s->methods[i].graph);
  for (uint32_t i = 0; i < s->source_count; i++)
    close_source(s->sources[i]);
  xfree(s->methods);
  xfree(s->sources);
  xfree(s->dims);
  xfree(s->states);
  xfree(s->user_passes);
  manager_release(&s->manager);
  context_release(&s->ctx);
  diag_sink_release(&s->sink);
  arena_release(&s->arena);
  xfree(s);
}

void etc_session_on_diagnostic(EtcSession *s, EtcWrite *write, void *user) {
  s->sink.write = write;
  s->sink.write_user = user;
}

void etc_session_on_output(EtcSession *s, EtcWrite *write, void *user) {
  s->manager.options.print = write;
  s->manager.options.print_user = user;
}

EtcStatus etc_session_set(EtcSession *s, const char *name, const char *value) {
  return session_set(s, sv_from(name), sv_from(value ? value : ""));
}

EtcStatus etc_session_add_method(EtcSession *s, const char *name, const char *path) {
  return session_add_source(s, name, path);
}

static Status lower(Session *s, const char *output) {
  TRY(session_import(s, false));
  TRY(session_run(s, STAGE_TO_EXECUTORCH));
  if (s->manager.stopped)
    return diag_report(&s->sink, DIAG_USAGE, DIAG_NOWHERE,
                       "stopped after pass '%s': nothing is written",
                       s->manager.options.stop_after);
  return session_emit(s, output);
}

EtcStatus etc_lower(EtcSession *s, const char *output) {
  EtcStatus recipe = s->recipe && !s->method_count ? recipe_apply(s, s->recipe) : ETC_OK;
  if (recipe != ETC_OK)
    return recipe;
  if (s->source_count == 0)
    return session_usage(s, "", "name a model, or add methods with --method NAME=MODEL.onnx",
                         "there is no model");
  if (s->method_count)
    return session_usage(s, "", "make a new session for each program",
                         "this session has lowered its program already");
  if (!output || !output[0])
    return session_usage(s, "--output", "add -o OUT.pte", "there is no name for the output");
  Status status = lower(s, output);
  session_print_times(s);
  return session_status(status);
}

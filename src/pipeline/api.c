/* The public functions (include/etc/etc.h): a thin cover of the session. */
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/cache.h"
#include "pipeline/recipe.h"
#include "pipeline/report.h"
#include "pipeline/settings.h"
#include "pipeline/whole_program.h"

const char *etc_version(void) { return ETC_VERSION; }

EtcSession *etc_session_new(void) {
  Session *s = xrealloc(NULL, sizeof *s);
  *s = (Session){0};
  s->cache.mapped.fd = -1;
  arena_init(&s->arena);
  s->program.sqnr = NAN;
  diag_sink_init(&s->sink);
  files_read_init(&s->files);
  s->sink.files = &s->files;
  context_init(&s->ctx, &s->sink);
  facts_init(&s->program.facts);
  manager_init(&s->manager, &s->sink, &s->program.facts);
  registry_init(&s->registry, &s->arena, &s->sink);
  s->ctx.readers = &s->registry.readers;
  s->given = ARENA_ARRAY(&s->arena, int, setting_count);
  return s;
}

static void close_source(Source *source) {
  if (source->open && source->kind == SOURCE_ONNX)
    onnx_model_close(&source->onnx);
  if (source->open && source->kind == SOURCE_PTE)
    pte_close(&source->pte);
  if (source->external_open)
    ptd_close(&source->external);
  if (!source->shared)
    file_unmap(&source->mapped);
}

void etc_session_free(EtcSession *s) {
  if (!s)
    return;
  Program *p = &s->program;
  session_report_release(s);
  for (uint32_t i = 0; i < p->method_count; i++)
    if (p->methods[i].source->kind != SOURCE_PTE)
      graph_free(p->methods[i].graph);
  for (uint32_t i = 0; i < p->source_count; i++)
    close_source(p->sources[i]);
  session_close_lowered(s);
  for (uint32_t i = 0; i < s->layer_count; i++)
    options_release(&s->layers[i]->options);
  file_unmap(&s->cache.mapped);
  strbuf_release(&s->cache.options);
  xfree(p->methods);
  xfree(p->sources);
  xfree(p->constants);
  xfree(p->constant_priorities);
  for (uint32_t i = 0; i < s->resolved_count; i++)
    options_release(s->resolved[i]);
  xfree(s->layers);
  xfree(s->resolved);
  manager_release(&s->manager);
  facts_release(&p->facts);
  context_release(&s->ctx);
  diag_sink_release(&s->sink);
  files_read_release(&s->files);
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

EtcStatus etc_session_set_method(EtcSession *s, const char *method, const char *name,
                                 const char *value) {
  SettingPlace before = s->setting;
  s->setting.layer = session_layer(s, PRIORITY_COMMAND, method);
  EtcStatus status = session_set(s, sv_from(name), sv_from(value ? value : ""));
  s->setting = before;
  return status;
}

EtcStatus etc_session_add_method(EtcSession *s, const char *name, const char *path) {
  return session_add_source(s, name, path);
}

EtcStatus etc_session_add_model(EtcSession *s, const char *method, const char *name,
                                const void *data, size_t size) {
  return session_add_bytes(s, method, name, data, size);
}

static Status lower(Session *s) {
  bool hit;
  TRY(session_run(s, STAGE_IMPORT));
  TRY(session_cache_find(s, &hit));
  if (!hit)
    TRY(session_run(s, STAGE_TO_EXECUTORCH));
  if (s->manager.stopped)
    return diag_report(&s->sink, DIAG_USAGE, DIAG_NOWHERE,
                       "stopped after pass '%s': nothing is written",
                       s->manager.options.stop_after);
  if (s->sink.werror && s->sink.errors)
    return STATUS_INVALID; /* warnings, which were shown as errors */
  return hit ? session_emit_kept(s, s->output) : session_run(s, STAGE_EMIT);
}

EtcStatus etc_lower(EtcSession *s, const char *output) {
  EtcStatus status = recipe_apply(s);
  if (status != ETC_OK)
    return status;
  s->output = output ? arena_strdup(&s->arena, sv_from(output)) : s->output;
  if (s->program.source_count == 0)
    return session_usage(s, "", "name a model, or add methods with --method NAME=MODEL.onnx",
                         "there is no model");
  if (s->program.method_count)
    return session_usage(s, "", "make a new session for each program",
                         "this session has lowered its program already");
  status = session_check_outputs(s, s->output);
  if (status == ETC_OK) {
    status = session_status(lower(s));
    session_print_times(s);
  }
  return status;
}

EtcStatus etc_lower_to(EtcSession *s, EtcWrite *write, void *user) {
  s->deliver = write;
  s->deliver_user = user;
  return etc_lower(s, "-");
}

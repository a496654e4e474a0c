/* The public functions (include/etc/etc.h): a thin cover of the session. */
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/cache.h"
#include "pipeline/recipe.h"
#include "pipeline/report.h"
#include "pipeline/settings.h"
#include "support/parallel.h"

const char *etc_version(void) { return ETC_VERSION; }

/* --- calls --- */

typedef struct Call {
  Session *s;
  SessionCall *run;
  void *user;
  EtcStatus status;
} Call;

static void run_call(void *user) {
  Call *c = user;
  c->status = c->run(c->s, c->user);
}

typedef struct Shortage {
  DiagSink sink;
  char text[80];
} Shortage;

static void report_shortage(void *user) {
  Shortage *m = user;
  (void)diag_report(&m->sink, DIAG_NO_MEMORY, DIAG_NOWHERE, "%s", m->text);
  diag_sink_release(&m->sink);
}

/* All that the session had is free again, so that there is memory for a message; or else there is
 * a shorter one. */
static void tell_shortage(Session *s, size_t failed) {
  Shortage m = {.sink = {.format = s->sink.format,
                         .color = s->sink.color,
                         .write = s->diagnostic,
                         .write_user = s->diagnostic_user}};
  PassProgress *progress = s->manager.options.progress;
  if (progress)
    progress->pass = progress->plugin = NULL;
  memory_message(failed, m.text, sizeof m.text);
  if (memory_scope_run(&s->memory, report_shortage, &m) != 0)
    diag_report_without_memory(&m.sink, DIAG_NO_MEMORY, m.text);
}

EtcStatus session_call(Session *s, SessionCall *run, void *user) {
  Call c = {s, run, user, ETC_OK};
  if (!s)
    return ETC_USAGE;
  if (s->no_memory)
    return ETC_NO_MEMORY;
  if (s->inner || memory_scope() == &s->memory)
    return run(s, user);
  unsigned before = parallel_set_threads(s->threads);
  size_t failed = memory_scope_run(&s->memory, run_call, &c);
  (void)parallel_set_threads(before);
  if (!failed)
    return c.status;
  s->no_memory = true;
  tell_shortage(s, failed);
  return ETC_NO_MEMORY;
}

/* --- sessions --- */

static EtcStatus prepare(Session *s, void *unused) {
  (void)unused;
  s->cache.mapped.fd = -1;
  diag_sink_init(&s->sink);
  files_read_init(&s->files);
  s->sink.files = &s->files;
  context_init(&s->ctx, &s->sink);
  manager_init(&s->manager, &s->sink, &s->program.facts);
  registry_init(&s->registry, &s->arena, &s->sink);
  s->ctx.readers = &s->registry.readers;
  s->given = ARENA_ARRAY(&s->arena, int, setting_count);
  return ETC_OK;
}

Session *session_new_inner(void) {
  Session *s = xcalloc(sizeof *s);
  s->inner = true;
  (void)prepare(s, NULL);
  return s;
}

EtcSession *etc_session_new(void) {
  Session *s = calloc(1, sizeof *s);
  if (!s)
    return NULL;
  memory_scope_init(&s->memory);
  Call c = {.s = s, .run = prepare};
  if (memory_scope_run(&s->memory, run_call, &c) == 0)
    return s;
  free(s);
  return NULL;
}

static void close_source(Source *source) {
  if (source->open && source->kind == SOURCE_ONNX)
    onnx_model_close(&source->onnx);
  if (source->open && source->kind == SOURCE_PTE)
    pte_close(&source->pte);
  if (source->bundled)
    bundle_close(&source->bundle);
  if (source->external_open)
    ptd_close(&source->external);
  if (!source->shared)
    file_unmap(&source->mapped);
}

static EtcStatus release(Session *s, void *unused) {
  (void)unused;
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
  for (int i = 0; i < CACHE_SIDES; i++)
    file_unmap(&s->cache.sides[i].mapped);
  strbuf_release(&s->cache.options);
  xfree(p->methods);
  xfree(p->sources);
  xfree(p->constants);
  xfree(p->constant_priorities);
  for (uint32_t i = 0; i < s->resolved_count; i++)
    options_release(s->resolved[i]);
  xfree(s->layers);
  xfree(s->resolved);
  xfree(s->said);
  manager_release(&s->manager);
  facts_release(&p->facts);
  context_release(&s->ctx);
  diag_sink_release(&s->sink);
  files_read_release(&s->files);
  arena_release(&s->arena);
  return ETC_OK;
}

void etc_session_free(EtcSession *s) {
  if (!s)
    return;
  if (s->inner) {
    (void)release(s, NULL);
    xfree(s);
    return;
  }
  Call c = {.s = s, .run = release};
  if (!s->no_memory)
    (void)memory_scope_run(&s->memory, run_call, &c);
  memory_scope_end(&s->memory);
  free(s);
}

void etc_session_on_diagnostic(EtcSession *s, EtcWrite *write, void *user) {
  if (!s)
    return;
  s->sink.write = s->diagnostic = write;
  s->sink.write_user = s->diagnostic_user = user;
}

void etc_session_on_output(EtcSession *s, EtcWrite *write, void *user) {
  if (!s)
    return;
  s->manager.options.print = write;
  s->manager.options.print_user = user;
}

/* --- options and models --- */

typedef struct Given {
  const char *method, *name, *value;
  const void *data;
  size_t size;
} Given;

EtcStatus session_null(Session *s, const char *what) {
  return session_usage(s, "", "etc/etc.h says which arguments may be NULL",
                       "a caller gives NULL for %s", what);
}

EtcStatus session_check_not_begun(Session *s) {
  if (!s->begun)
    return ETC_OK;
  return session_usage(s, "", "make a new session for each program",
                       "this session has lowered its program, or failed to");
}

/* What is NULL is the name. */
static EtcStatus refuse_null(Session *s, void *user) {
  const Given *g = user;
  return session_null(s, g->name);
}

static EtcStatus set(Session *s, void *user) {
  const Given *g = user;
  if (g->method && !g->method[0])
    return session_usage(s, "", "name a method, or set it for all by etc_session_set",
                         "the name of the method is empty");
  if (!g->name)
    return session_null(s, "the name of an option");
  TRY(session_check_not_begun(s));
  SettingPlace before = s->setting;
  if (g->method)
    s->setting.layer = session_layer(s, PRIORITY_COMMAND, g->method);
  EtcStatus status = session_set(s, sv_from(g->name), sv_from(g->value ? g->value : ""));
  s->setting = before;
  return status;
}

EtcStatus etc_session_set(EtcSession *s, const char *name, const char *value) {
  return session_call(s, set, &(Given){.name = name, .value = value});
}

EtcStatus etc_session_set_method(EtcSession *s, const char *method, const char *name,
                                 const char *value) {
  if (!method)
    return session_call(s, refuse_null, &(Given){.name = "a method"});
  return session_call(s, set, &(Given){.method = method, .name = name, .value = value});
}

static EtcStatus add_source(Session *s, void *user) {
  const Given *g = user;
  if (!g->method || !g->name)
    return session_null(s, "a method or its model");
  TRY(session_check_not_begun(s));
  return session_add_source(s, g->method, g->name);
}

EtcStatus etc_session_add_method(EtcSession *s, const char *name, const char *path) {
  return session_call(s, add_source, &(Given){.method = name, .name = path});
}

static EtcStatus add_bytes(Session *s, void *user) {
  const Given *g = user;
  if (!g->method || !g->name || !g->data)
    return session_null(s, "a method or its model");
  TRY(session_check_not_begun(s));
  return session_add_bytes(s, g->method, g->name, g->data, g->size);
}

EtcStatus etc_session_add_model(EtcSession *s, const char *method, const char *name,
                                const void *data, size_t size) {
  return session_call(s, add_bytes,
                      &(Given){.method = method, .name = name, .data = data, .size = size});
}

/* --- lowering --- */

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
  TRY(session_check_depfile(s, s->output));
  if (s->sink.werror && s->sink.errors)
    return STATUS_INVALID; /* warnings, which were shown as errors */
  return hit ? session_emit_kept(s, s->output) : session_run(s, STAGE_EMIT);
}

static EtcStatus run_lower(Session *s, void *user) {
  const Given *g = user;
  TRY(session_check_not_begun(s));
  s->begun = true; /* from here on: a second call would go on without what failed in this one */
  TRY(recipe_apply(s));
  s->output = g->name ? arena_strdup(&s->arena, sv_from(g->name)) : s->output;
  if (s->program.source_count == 0)
    return session_usage(s, "", "name a model, or add methods with --method NAME=MODEL.onnx",
                         "there is no model");
  EtcStatus status = session_check_outputs(s, s->output);
  if (status == ETC_OK) {
    status = session_status(lower(s));
    session_cache_end(s);
    session_print_times(s);
  }
  return status;
}

EtcStatus etc_lower(EtcSession *s, const char *output) {
  return session_call(s, run_lower, &(Given){.name = output});
}

EtcStatus etc_lower_to(EtcSession *s, EtcWrite *write, void *user) {
  if (!s || !write)
    return session_call(s, refuse_null, &(Given){.name = "the function that gets the program"});
  s->deliver = write;
  s->deliver_user = user;
  return etc_lower(s, "-");
}

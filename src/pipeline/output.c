/* The stage emit: checks, the file of dependencies, the program. */
#include "ir/verify.h"
#include "ops/delegate.h"
#include "pipeline/bundles.h"
#include "pipeline/cache.h"
#include "pipeline/instruction_map.h"
#include "pipeline/report.h"
#include "pipeline/whole_program.h"
#include "pte/emit.h"
#include "support/depfile.h"

static void print_depfile(const Session *s, const char *output, StrBuf *out) {
  Depfile d;
  depfile_begin(&d, s->depfile_target ? s->depfile_target : output);
  for (uint32_t id = 1; id <= s->files.paths.count; id++)
    depfile_add(&d, intern_get(&s->files.paths, id).data);
  depfile_end(&d, out);
}

const char *session_depfile(Session *s, const char *output) {
  return s->depfile           ? s->depfile
         : s->default_depfile ? arena_printf(&s->arena, "%s.d", output)
                              : NULL;
}

Status session_check_depfile(Session *s, const char *output) {
  if (!session_depfile(s, output))
    return STATUS_OK;
  TRY(depfile_check_name(&s->sink, s->depfile_target ? s->depfile_target : output));
  for (uint32_t id = 1; id <= s->files.paths.count; id++)
    TRY(depfile_check_name(&s->sink, intern_get(&s->files.paths, id).data));
  return STATUS_OK;
}

Status session_write_depfile(Session *s, const char *output) {
  const char *path = session_depfile(s, output);
  if (!path)
    return STATUS_OK;
  StrBuf text = {0};
  print_depfile(s, output, &text);
  Status status =
      atomic_file_whole(&s->arena, &s->sink, path, (StrView){strbuf_cstr(&text), text.size});
  strbuf_release(&text);
  return status;
}

static Status check_inputs_unchanged(Session *s) {
  for (uint32_t i = 0; i < s->program.source_count; i++)
    if (s->program.sources[i]->kind == SOURCE_ONNX)
      TRY(file_check_unchanged(&s->program.sources[i]->onnx.file, &s->sink));
  return STATUS_OK;
}

typedef struct Whole {
  Session *s;
  const char *output;
  const InstructionMap *maps;
  bool kept; /* in the cache, which the map comes out of then */
} Whole;

/* Before the program gets its name. */
static Status check_whole(void *user, AtomicFile *file) {
  const Whole *w = user;
  w->s->program.maps = w->maps;
  return session_wants_whole(w->s) ? session_check_whole(w->s, file, w->maps) : STATUS_OK;
}

/* Then, so that none of them is missing where there is a program. */
static Status write_beside(void *user, AtomicFile *file) {
  const Whole *w = user;
  if (w->s->map && !w->kept)
    TRY(instruction_map_write(w->s, w->s->map));
  TRY(bundles_write(w->s, file, w->output));
  TRY(session_report_write(w->s, w->output));
  return session_write_depfile(w->s, w->output);
}

static Status check_method(Session *s, Method *m) {
  Graph *g = m->graph;
  g->banks = m->options->pass.banks;
  g->bank_count = m->options->pass.bank_count;
  g->arena_alignment = m->options->pass.plan_alignment;
  session_enter(s, m);
  TRY(graph_verify_kernels(g));
  if (g->arena_size_count == 0)
    return diag_report(&s->sink, DIAG_PLAN_INVALID, diag_file(m->source->path),
                       "method '" SV_FMT "' has no memory plan", SV_ARG(method_name(m)));
  /* The text of a program that was read is past all stages, and says none. */
  return delegate_check(g, g->stage.size != 0, DIAG_INTERNAL);
}

Status session_check_methods(Session *s) {
  Status status = STATUS_OK;
  manager_enter(&s->manager, STAGE_EMIT);
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    Status one = check_method(s, &s->program.methods[i]);
    status = status == STATUS_OK ? one : status;
  }
  return status;
}

/* To the output, or, where `kept` is not NULL, to that file in the cache. */
static Status write_program(Session *s, Graph *const *graphs, const char *output,
                            const char *kept) {
  InstructionMap *maps =
      ARENA_ARRAY(&s->arena, InstructionMap, (size_t)s->program.method_count + 1);
  const char *external = session_cache_external(s);
  Whole whole = {s, output, maps, kept != NULL};
  return pte_emit(graphs, s->program.method_count, &s->sink, kept ? kept : output,
                  (EmitOptions){.maps = maps,
                                .whole = check_whole,
                                .beside = write_beside,
                                .whole_user = &whole,
                                .external = external ? external : s->external,
                                .deliver = s->deliver,
                                .deliver_user = s->deliver_user,
                                .sync = s->sync,
                                .constants = s->program.constants,
                                .constant_count = s->program.constant_count,
                                .figures = &s->program.written,
                                .progress = s->manager.options.progress
                                                ? &s->manager.options.progress->output
                                                : NULL});
}

/* What the cache holds; the file of dependencies where it was not written with the program. */
static Status deliver(Session *s, const char *output, bool depfile) {
  OutputSet outputs;
  outputs_begin(&outputs, &s->sink);
  Status status = depfile ? session_write_depfile(s, output) : STATUS_OK;
  if (status == STATUS_OK)
    status = session_cache_deliver_sides(s);
  if (status == STATUS_OK)
    status = session_cache_deliver(s, output);
  return outputs_end(&outputs, status);
}

/* A cache must not cost anyone the program: what its folder does not take is written as if there
 * were no cache. */
static Status write_by_cache(Session *s, Graph *const *graphs, const char *output,
                             const char *kept) {
  DiagHold held;
  diag_hold(&s->sink, &held);
  Status status = write_program(s, graphs, output, kept);
  if (status == STATUS_OK)
    status = session_cache_keep(s);
  const char *why = status == STATUS_OK ? NULL : session_cache_fault(s, &held.first_message);
  if (why)
    diag_drop(&held);
  diag_let_go(&held);
  if (why) {
    TRY(session_cache_give_up(s, why));
    return s->sink.werror ? STATUS_INVALID : write_program(s, graphs, output, NULL);
  }
  TRY(status);
  return deliver(s, output, false);
}

Status session_emit(Session *s, const char *output) {
  Graph **graphs = ARENA_ARRAY(&s->arena, Graph *, s->program.method_count);
  TRY(session_check_overwrites(s, output));
  TRY(session_check_methods(s));
  for (uint32_t i = 0; i < s->program.method_count; i++)
    graphs[i] = s->program.methods[i].graph;
  TRY(check_inputs_unchanged(s));
  TRY(session_report_open(s));
  const char *kept = session_cache_path(s);
  return kept ? write_by_cache(s, graphs, output, kept) : write_program(s, graphs, output, NULL);
}

Status session_emit_kept(Session *s, const char *output) {
  TRY(session_check_overwrites(s, output));
  return deliver(s, output, true);
}

/* The stage emit: checks, the file of dependencies, the program. */
#include <sys/stat.h>

#include "ir/verify.h"
#include "ops/delegate.h"
#include "pipeline/instruction_map.h"
#include "pipeline/bundles.h"
#include "pte/emit.h"

/* The output takes the place of what has its name: that must not be something that is being read.
 */
static Status check_output(Session *s, const char *output) {
  struct stat out, in;
  if (stat(output, &out) != 0)
    return STATUS_OK;
  for (uint32_t i = 0; i < s->program.source_count; i++) {
    if (s->program.sources[i]->in_memory || stat(s->program.sources[i]->path, &in) != 0 ||
        in.st_dev != out.st_dev || in.st_ino != out.st_ino)
      continue;
    Diag *d = diag_begin(&s->sink, DIAG_FILE_WRITE, diag_file(output));
    diag_message(d, "'%s' is the model itself", output);
    diag_hint(d, "give the output another name");
    return diag_end(d);
  }
  return STATUS_OK;
}

static void append_make_name(StrBuf *out, const char *path) {
  for (; *path; path++) {
    if (*path == '$')
      strbuf_append_char(out, '$');
    else if (*path == ' ' || *path == '#' || *path == '\\')
      strbuf_append_char(out, '\\');
    strbuf_append_char(out, *path);
  }
}

/* One file that the output depends on, and the empty rule for it. */
static void add_dependency(StrBuf *out, StrBuf *rules, const char *path) {
  strbuf_append(out, SV(" \\\n  "));
  append_make_name(out, path);
  append_make_name(rules, path);
  strbuf_append(rules, SV(":\n"));
}

/* A rule of make, as compilers write it: the output depends on all that was read, and each of those
 * has an empty rule, so that make goes on when one is gone. */
static void print_depfile(const Session *s, const char *output, StrBuf *out) {
  StrBuf rules;
  strbuf_init(&rules);
  append_make_name(out, s->depfile_target ? s->depfile_target : output);
  strbuf_append_char(out, ':');
  for (uint32_t i = 0; i < s->included_count; i++)
    add_dependency(out, &rules, s->included[i]);
  for (uint32_t i = 0; i < s->program.source_count; i++) {
    const Source *source = s->program.sources[i];
    if (source->in_memory)
      continue;
    add_dependency(out, &rules, source->path);
    uint32_t externals = source->kind == SOURCE_ONNX ? source->onnx.locations.count : 0;
    for (uint32_t k = 1; k <= externals; k++)
      if (source->onnx.external[k])
        add_dependency(out, &rules, source->onnx.external[k]->path);
  }
  strbuf_append_char(out, '\n');
  if (rules.size)
    strbuf_append(out, (StrView){rules.data, rules.size});
  strbuf_release(&rules);
}

/* Written first: the output, when it appears, is never without it. */
static Status write_depfile(Session *s, const char *output) {
  const char *path = s->depfile;
  if (!path && s->default_depfile)
    path = arena_printf(&s->arena, "%s.d", output);
  if (!path)
    return STATUS_OK;
  StrBuf text;
  strbuf_init(&text);
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

Status session_emit(Session *s, const char *output) {
  Graph **graphs = ARENA_ARRAY(&s->arena, Graph *, s->program.method_count);
  Status status = check_output(s, output);
  TRY(status);
  manager_enter(&s->manager, STAGE_EMIT);
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    graphs[i] = s->program.methods[i].graph;
    graphs[i]->banks = s->program.methods[i].options->pass.banks;
    graphs[i]->bank_count = s->program.methods[i].options->pass.bank_count;
    session_enter(s, &s->program.methods[i]);
    Status one = graph_verify_kernels(graphs[i]);
    if (one == STATUS_OK && graphs[i]->arena_size_count == 0)
      one = diag_report(&s->sink, DIAG_PLAN_INVALID, diag_file(s->program.methods[i].source->path),
                        "method '" SV_FMT "' has no memory plan",
                        SV_ARG(intern_get(&s->ctx.names, graphs[i]->name)));
    if (one == STATUS_OK)
      one = delegate_check(graphs[i], true, DIAG_INTERNAL);
    status = status == STATUS_OK ? one : status;
  }
  TRY(status);
  TRY(check_inputs_unchanged(s));
  TRY(write_depfile(s, output));
  InstructionMap *maps =
      ARENA_ARRAY(&s->arena, InstructionMap, (size_t)s->program.method_count + 1);
  TRY(pte_emit(graphs, s->program.method_count, &s->sink, output,
               (EmitOptions){.maps = maps,
                             .external = s->external,
                             .deliver = s->deliver,
                             .deliver_user = s->deliver_user,
                             .sync = s->sync,
                             .constants = s->program.constants,
                             .constant_count = s->program.constant_count,
                             .figures = &s->program.written,
                             .progress = s->manager.options.progress
                                             ? &s->manager.options.progress->output
                                             : NULL}));
  s->program.maps = maps;
  TRY(instruction_map_write(s));
  return bundles_write(s, output);
}

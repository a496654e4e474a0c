/* All files that a session writes, by the options that ask for them: no two of one name, and none
 * in the place of what is read. */
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/bundles.h"
#include "pipeline/session.h"
#include "pipeline/whole_program.h"

enum { OUTPUTS_MAX = 5 }; /* besides reports */

typedef struct NamedOutput {
  const char *option, *path;
} NamedOutput;

static bool has_bundle(const Session *s) {
  bool found = false;
  for (uint32_t i = 0; i < s->layer_count; i++)
    found |= s->layers[i]->options.bundle != NULL;
  return found;
}

/* Standard output and what is left out are no files. */
static NamedOutput *list_outputs(Session *s, const char *output, uint32_t *count) {
  NamedOutput all[] = {{"-o", output},
                       {"--map", s->map},
                       {"-MF", session_depfile(s, output)},
                       {"--external-weights", s->external},
                       {"--bundle", has_bundle(s) ? bundles_path(s, output) : NULL}};
  NamedOutput *list = ARENA_ARRAY(&s->arena, NamedOutput, OUTPUTS_MAX + (size_t)s->report_count);
  *count = 0;
  for (uint32_t i = 0; i < COUNT_OF(all); i++)
    if (all[i].path && !path_is_stdin(all[i].path))
      list[(*count)++] = all[i];
  for (uint32_t i = 0; i < s->report_count; i++)
    list[(*count)++] = (NamedOutput){"--report", s->reports[i].path};
  return list;
}

/* A device or pipe: what is written to it takes the place of nothing. */
static bool is_device(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static EtcStatus check_names(Session *s, const char *output) {
  uint32_t count;
  const NamedOutput *list = list_outputs(s, output, &count);
  for (uint32_t i = 1; i < count; i++)
    for (uint32_t k = 0; k < i; k++)
      if (!is_device(list[i].path) && file_same_place(list[i].path, list[k].path))
        return session_usage(s, list[i].option, "give each output a name of its own",
                             "%s and %s would be the same file '%s'", list[k].option,
                             list[i].option, list[i].path);
  return ETC_OK;
}

/* Standard output takes the program alone: what else is written needs a name. */
static EtcStatus check_stdout(Session *s) {
  if (!s->deliver && isatty(STDOUT_FILENO))
    return session_usage(s, "--output", "redirect standard output, or give a file name",
                         "a program is not written to a terminal");
  if (s->depfile && strcmp(s->depfile, "-") == 0)
    return session_usage(s, "--depfile", "add -MF FILE",
                         "program and dependencies would both go to standard output");
  if ((s->map && path_is_stdin(s->map)) || (s->external && path_is_stdin(s->external)))
    return session_usage(s, s->map && path_is_stdin(s->map) ? "--map" : "--external-weights",
                         "give it a file name", "two outputs would go to standard output");
  if (s->default_depfile && !s->depfile)
    return session_usage(s, "--write-depfile", "add -MF FILE",
                         "a program on standard output has no name for a file beside it");
  if (has_bundle(s))
    return session_usage(s, "--bundle", "give the program a file name",
                         "a program on standard output has no name for a bundle beside it");
  return ETC_OK;
}

EtcStatus session_check_cache(Session *s) {
  const char *extra = s->cache.extra_output;
  if (!s->cache.folder || !extra)
    return ETC_OK;
  return session_usage(
      s, "--cache", arena_printf(&s->arena, "leave out --cache or --%s", extra),
      "the cache keeps programs, maps and external weights, and not what --%s adds", extra);
}

EtcStatus session_check_outputs(Session *s, const char *output) {
  if (!output || !output[0])
    return session_usage(s, "--output", "add -o OUT.pte", "there is no name for the output");
  if (sv_has_suffix(sv_from(output), SV(".bpte")))
    return session_usage(s, "--output", "write -o OUT.pte; --bundle writes OUT.bpte beside it",
                         "'%s' is the name of a bundle, not of a program", output);
  if (s->depfile_target && !s->depfile && !s->default_depfile)
    return session_usage(s, "--depfile-target", "add -MD, or -MF FILE",
                         "-MT names the target of a file of dependencies, and none is asked for");
  if (session_wants_whole(s) && is_device(output))
    return session_usage(s, s->budget ? "--budget" : "--size",
                         "name a file, or '-' for standard output",
                         "a device or pipe cannot be looked at before it gets the program");
  TRY(session_check_cache(s));
  EtcStatus status = strcmp(output, "-") == 0 ? check_stdout(s) : ETC_OK;
  return status == ETC_OK ? check_names(s, output) : status;
}

Status session_check_overwrites(Session *s, const char *output) {
  uint32_t count;
  const NamedOutput *list = list_outputs(s, output, &count);
  for (uint32_t i = 0; i < count; i++) {
    const char *read = files_read_path(&s->files, list[i].path);
    if (!read)
      continue;
    Diag *d = diag_begin(&s->sink, DIAG_FILE_WRITE, diag_file(list[i].path));
    diag_message(d, "'%s %s' would take the place of '%s', which is being read", list[i].option,
                 list[i].path, read);
    diag_hint(d, "give %s another name", list[i].option);
    return diag_end(d);
  }
  if (!output || !sv_has_suffix(sv_from(output), SV(".onnx")))
    return STATUS_OK;
  Diag *d = diag_begin(&s->sink, DIAG_FILE_WRITE, diag_file(output));
  diag_message(d, "'%s' is the name of a model, not of a program", output);
  diag_hint(d, "write -o OUT.pte");
  return diag_end(d);
}

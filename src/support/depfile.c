/* See depfile.h. */
#include "support/depfile.h"

/* As GNU make reads names: a backslash stands for itself but before what has to be escaped. */
static void append_make_name(StrBuf *out, const char *path) {
  for (size_t backslashes = 0; *path; path++) {
    bool escaped = strchr(" \t#:", *path) != NULL;
    for (size_t i = 0; escaped && i <= backslashes; i++)
      strbuf_append_char(out, '\\');
    backslashes = *path == '\\' ? backslashes + 1 : 0;
    strbuf_append_char(out, *path);
    if (*path == '$')
      strbuf_append_char(out, '$');
  }
}

Status depfile_check_name(DiagSink *sink, const char *path) {
  const char *fault = strpbrk(path, "\n;=|%");
  size_t size = strlen(path);
  if (!fault && (size == 0 || path[size - 1] != '\\'))
    return STATUS_OK;
  char what[] = {'\'', fault ? *fault : '\\', '\'', '\0'};
  return diag_report(sink, DIAG_DEPFILE_NAME, diag_file(path),
                     "the file of dependencies has a name that Make cannot read: it has %s",
                     !fault           ? "a backslash at its end"
                     : *fault == '\n' ? "a line feed"
                                      : what);
}

void depfile_begin(Depfile *d, const char *target) {
  *d = (Depfile){0};
  append_make_name(&d->rule, target);
  strbuf_append_char(&d->rule, ':');
}

void depfile_add(Depfile *d, const char *path) {
  strbuf_append(&d->rule, SV(" \\\n  "));
  append_make_name(&d->rule, path);
  append_make_name(&d->empty_rules, path);
  strbuf_append(&d->empty_rules, SV(":\n"));
}

void depfile_end(Depfile *d, StrBuf *out) {
  strbuf_append(out, (StrView){strbuf_cstr(&d->rule), d->rule.size});
  strbuf_append_char(out, '\n');
  strbuf_append(out, (StrView){strbuf_cstr(&d->empty_rules), d->empty_rules.size});
  strbuf_release(&d->rule);
  strbuf_release(&d->empty_rules);
}

/* See depfile.h. */
#include "support/depfile.h"

static void append_make_name(StrBuf *out, const char *path) {
  for (; *path; path++) {
    if (*path == '$')
      strbuf_append_char(out, '$');
    else if (*path == ' ' || *path == '#' || *path == '\\')
      strbuf_append_char(out, '\\');
    strbuf_append_char(out, *path);
  }
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

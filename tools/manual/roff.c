/* roff.h: escapes and the few macros that pages need. */
#include "manual/roff.h"
#include "support/text.h"

static void append_char(StrBuf *out, char c) {
  switch (c) {
  case '\\':
    strbuf_append(out, SV("\\e"));
    break;
  case '-':
    strbuf_append(out, SV("\\-"));
    break;
  case '\'':
    strbuf_append(out, SV("\\(aq"));
    break;
  case '`':
    strbuf_append(out, SV("\\(ga"));
    break;
  case '^':
    strbuf_append(out, SV("\\(ha"));
    break;
  case '~':
    strbuf_append(out, SV("\\(ti"));
    break;
  case '"':
    strbuf_append(out, SV("\\(dq"));
    break;
  default:
    strbuf_append_char(out, c);
  }
}

void roff_text(StrBuf *out, StrView text) {
  for (size_t at = 0; at < text.size;) {
    uint32_t code_point = 0;
    bool line_begins = out->size == 0 || strbuf_cstr(out)[out->size - 1] == '\n';
    unsigned size = utf8_decode(text, at, &code_point);
    if (line_begins && text.data[at] == '.')
      strbuf_append(out, SV("\\&"));
    if (size > 1)
      strbuf_printf(out, "\\[u%04X]", (unsigned)code_point);
    else
      append_char(out, text.data[at]);
    at += size ? size : 1;
  }
}

void roff_bold(StrBuf *out, StrView text) {
  strbuf_append(out, SV("\\fB"));
  roff_text(out, text);
  strbuf_append(out, SV("\\fR"));
}

void roff_italic(StrBuf *out, StrView text) {
  strbuf_append(out, SV("\\fI"));
  roff_text(out, text);
  strbuf_append(out, SV("\\fR"));
}

void roff_upper(StrBuf *out, StrView text) {
  for (size_t i = 0; i < text.size; i++) {
    char c = text.data[i];
    append_char(out, to_upper(c));
  }
}

void roff_section(StrBuf *out, StrView title) {
  strbuf_append(out, SV(".SH "));
  roff_upper(out, title);
  strbuf_append_char(out, '\n');
}

void roff_example(StrBuf *out, StrView text) {
  strbuf_append(out, SV(".RS 4\n.nf\n"));
  roff_text(out, text);
  strbuf_append(out, SV(".fi\n.RE\n"));
}

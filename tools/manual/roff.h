/* Text for man(7), as groff and mandoc read it. */
#ifndef ETC_TOOLS_ROFF_H
#define ETC_TOOLS_ROFF_H

#include "support/strbuf.h"

/* Appends text that comes out as it is: quotes, hyphens and backslashes as ASCII has them, other
 * characters by their code points. Line ends stay; a line that would be a request is guarded. */
void roff_text(StrBuf *out, StrView text);
/* The same between font changes, for what is typed. */
void roff_bold(StrBuf *out, StrView text);
void roff_italic(StrBuf *out, StrView text);
/* ASCII, in capitals as titles are. */
void roff_upper(StrBuf *out, StrView text);
/* .SH TITLE */
void roff_section(StrBuf *out, StrView title);
/* Lines as they stand, indented. The text ends with a line end. */
void roff_example(StrBuf *out, StrView text);

/* Appends Markdown as far as docs/ uses it for formats: headings from ##, paragraphs, lists with
 * "-", tables (the first column becomes the term), fenced blocks, `code`, **bold**, links, of which
 * the text stays. The heading # is left out. */
void roff_markdown(StrBuf *out, StrView text);

#endif

/* A growing, always terminated string. */
#ifndef ETC_SUPPORT_STRBUF_H
#define ETC_SUPPORT_STRBUF_H

#include "support/base.h"

typedef struct StrBuf {
  char *data; /* never NULL after the first append; use strbuf_cstr */
  size_t size, capacity;
} StrBuf;

void strbuf_init(StrBuf *buf);
void strbuf_release(StrBuf *buf);
void strbuf_clear(StrBuf *buf);
void strbuf_append(StrBuf *buf, StrView text);
void strbuf_append_char(StrBuf *buf, char c);
void strbuf_printf(StrBuf *buf, const char *format, ...) ETC_PRINTF(2, 3);
/* The text with quotes, backslashes, control characters and invalid UTF-8 escaped (\" \\ \n \xNN), without outer quotes.
 * Safe to print on a terminal and, for text the caller knows to be valid UTF-8, to embed in JSON. */
void strbuf_append_escaped(StrBuf *buf, StrView text);
/* The shortest decimal form that reads back to exactly the same double ("0.1", "1e-05", "inf", "nan", "2.0"). */
void strbuf_append_double(StrBuf *buf, double value);
const char *strbuf_cstr(const StrBuf *buf);

#endif

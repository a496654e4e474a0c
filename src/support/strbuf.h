/* A growing, always terminated string; {0} is an empty one. */
#ifndef ETC_SUPPORT_STRBUF_H
#define ETC_SUPPORT_STRBUF_H

#include <stdarg.h>

#include "support/base.h"

typedef struct StrBuf {
  char *data; /* never NULL after the first append; use strbuf_cstr */
  size_t size, capacity;
} StrBuf;

void strbuf_release(StrBuf *buf);
void strbuf_clear(StrBuf *buf);
void strbuf_append(StrBuf *buf, StrView text);
void strbuf_append_char(StrBuf *buf, char c);
/* Spaces, until `width` bytes or more are behind the first `from`. */
void strbuf_pad(StrBuf *buf, size_t from, size_t width);
void strbuf_printf(StrBuf *buf, const char *format, ...) ETC_PRINTF(2, 3);
void strbuf_vprintf(StrBuf *buf, const char *format, va_list args) ETC_PRINTF(2, 0);
/* The text with double quotes, backslashes, control and direction-changing characters and invalid
 * UTF-8 escaped (\" \\ \n \r \t, all else \xNN a byte), without outer quotes. Safe to print on a
 * terminal. Not for JSON: see json_string. */
void strbuf_append_escaped(StrBuf *buf, StrView text);
/* The exact inverse: takes \" \\ \n \r \t and \xNN back. False on any other escape; what was
 * appended till then stays. */
bool strbuf_append_unescaped(StrBuf *buf, StrView text);
/* As strbuf_append_escaped, but quotes and backslashes stay as they are: for messages, which are
 * read by people only. */
void strbuf_append_printable(StrBuf *buf, StrView text);
/* Appends a printable text between two others, as in "input '", name, "' (". */
void strbuf_append_within(StrBuf *buf, const char *before, StrView text, const char *after);
/* The text as one word of a shell command, always 'in quotes'; as $'\xNN' of bash and zsh where a
 * terminal could act on it. */
void strbuf_append_quoted(StrBuf *buf, StrView text);
/* The text as one word of a shell command: in quotes where it needs them. */
void strbuf_append_word(StrBuf *buf, StrView text);
/* The bytes of the well-formed UTF-8 character at text[at] (1 to 4) and its code point, or 0 when
 * there is none. */
unsigned utf8_decode(StrView text, size_t at, uint32_t *code_point);
/* Whether a terminal or a viewer may act on the character instead of showing it: C0, DEL, C1, line
 * separators, and the direction controls behind CVE-2021-42574. */
bool utf8_is_control(uint32_t code_point);
/* The shortest decimal form that reads back to exactly the same double ("0.1", "1e-05", "inf",
 * "nan", "2.0"). All NaNs print as "nan". The same in every locale. */
void strbuf_append_double(StrBuf *buf, double value);
/* A size in memory for people: "12 bytes", "1.5 KiB", "13.3 MiB". */
void strbuf_append_bytes(StrBuf *buf, uint64_t bytes);
/* "340 ns", "1.7 us", "145.1 ms", "2.5 s" */
void strbuf_append_time(StrBuf *buf, double ns);
const char *strbuf_cstr(const StrBuf *buf);
/* The text, terminated, in the arena; the buffer is released. */
struct Arena;
StrView strbuf_keep(StrBuf *buf, struct Arena *arena);
/* As strbuf_append_word, in the arena. */
const char *shell_word(struct Arena *arena, StrView text);

#endif

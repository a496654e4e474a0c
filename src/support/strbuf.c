/* Growing strings, escaping of text that came from a file, and exact printing of floating-point
 * numbers. */
#include "support/strbuf.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/arena.h"
#include "support/text.h"

void strbuf_release(StrBuf *buf) {
  xfree(buf->data);
  *buf = (StrBuf){0};
}

void strbuf_clear(StrBuf *buf) {
  buf->size = 0;
  if (buf->data)
    buf->data[0] = '\0';
}

const char *strbuf_cstr(const StrBuf *buf) { return buf->data ? buf->data : ""; }

StrView strbuf_keep(StrBuf *buf, Arena *arena) {
  StrView kept = {arena_strdup(arena, (StrView){strbuf_cstr(buf), buf->size}), buf->size};
  strbuf_release(buf);
  return kept;
}

/* Room for extra more bytes and the terminator; a size that overflows is too large for xrealloc. */
static void reserve(StrBuf *buf, size_t extra) {
  size_t needed = extra < SIZE_MAX - buf->size ? buf->size + extra + 1 : SIZE_MAX;
  if (needed <= buf->capacity)
    return;
  size_t grown = buf->capacity < SIZE_MAX / 2 ? buf->capacity * 2 : SIZE_MAX;
  if (grown < 64)
    grown = 64;
  if (grown < needed)
    grown = needed;
  buf->data = xrealloc(buf->data, grown);
  buf->capacity = grown;
}

void strbuf_append(StrBuf *buf, StrView text) {
  reserve(buf, text.size);
  if (text.size)
    memcpy(buf->data + buf->size, text.data, text.size);
  buf->size += text.size;
  buf->data[buf->size] = '\0';
}

void strbuf_append_char(StrBuf *buf, char c) { strbuf_append(buf, (StrView){&c, 1}); }

void strbuf_pad(StrBuf *buf, size_t from, size_t width) {
  while (buf->size < from + width)
    strbuf_append_char(buf, ' ');
}

void strbuf_vprintf(StrBuf *buf, const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  reserve(buf, 128);
  size_t room = buf->capacity - buf->size;
  int size = vsnprintf(buf->data + buf->size, room, format, args);
  if (size < 0)
    BUG("format '%s' cannot be printed", format);
  if ((size_t)size >= room) {
    reserve(buf, (size_t)size);
    vsnprintf(buf->data + buf->size, (size_t)size + 1, format, again);
  }
  va_end(again);
  buf->size += (size_t)size;
}

void strbuf_printf(StrBuf *buf, const char *format, ...) {
  va_list args;
  va_start(args, format);
  strbuf_vprintf(buf, format, args);
  va_end(args);
}

/* RFC 3629: no overlong forms, no surrogates, nothing over U+10FFFF. */
unsigned utf8_decode(StrView text, size_t at, uint32_t *code_point) {
  static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  unsigned char first = (unsigned char)text.data[at];
  unsigned size = first < 0x80   ? 1
                  : first < 0xc0 ? 0
                  : first < 0xe0 ? 2
                  : first < 0xf0 ? 3
                  : first < 0xf8 ? 4
                                 : 0;
  if (size == 0 || size > text.size - at)
    return 0;
  uint32_t value = size == 1 ? first : first & (0x7fu >> size);
  for (unsigned i = 1; i < size; i++) {
    unsigned char next = (unsigned char)text.data[at + i];
    if ((next & 0xc0) != 0x80)
      return 0;
    value = value << 6 | (next & 0x3f);
  }
  if (value < smallest[size] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
    return 0;
  *code_point = value;
  return size;
}

bool utf8_is_control(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || (c >= 0x200e && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static void append_bytes_escaped(StrBuf *buf, StrView bytes) {
  for (size_t i = 0; i < bytes.size; i++)
    strbuf_printf(buf, "\\x%02X", (unsigned char)bytes.data[i]);
}

/* Letter of the two-character escape of c, or 0. */
static char short_escape(char c, bool quotes) {
  switch (c) {
  case '\n':
    return 'n';
  case '\r':
    return 'r';
  case '\t':
    return 't';
  case '"':
  case '\\':
    return quotes ? c : 0;
  default:
    return 0;
  }
}

/* Most of any text: an ASCII character that stands for itself in strings. */
static bool is_plain(char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; }

static void append_escaped(StrBuf *buf, StrView text, bool quotes) {
  size_t plain = 0; /* start of the run that needs no escape */
  for (size_t at = 0; at < text.size;) {
    if (is_plain(text.data[at])) {
      at++;
      continue;
    }
    uint32_t code_point = 0;
    unsigned size = utf8_decode(text, at, &code_point);
    char letter = short_escape(text.data[at], quotes);
    if (size && !letter && !utf8_is_control(code_point)) {
      at += size;
      continue;
    }
    strbuf_append(buf, (StrView){text.data + plain, at - plain});
    size += size == 0; /* one bad byte at a time */
    if (letter) {
      strbuf_append_char(buf, '\\');
      strbuf_append_char(buf, letter);
    } else {
      append_bytes_escaped(buf, (StrView){text.data + at, size});
    }
    at += size;
    plain = at;
  }
  if (plain < text.size)
    strbuf_append(buf, (StrView){text.data + plain, text.size - plain});
}

void strbuf_append_escaped(StrBuf *buf, StrView text) { append_escaped(buf, text, true); }

void strbuf_append_printable(StrBuf *buf, StrView text) { append_escaped(buf, text, false); }

static bool is_printable(StrView text) {
  uint32_t code_point;
  unsigned size;
  for (size_t at = 0; at < text.size; at += size) {
    size = utf8_decode(text, at, &code_point);
    if (!size || utf8_is_control(code_point))
      return false;
  }
  return true;
}

void strbuf_append_within(StrBuf *buf, const char *before, StrView text, const char *after) {
  strbuf_append(buf, sv_from(before));
  strbuf_append_printable(buf, text);
  strbuf_append(buf, sv_from(after));
}

void strbuf_append_quoted(StrBuf *buf, StrView text) {
  bool printable = is_printable(text);
  strbuf_append(buf, printable ? SV("'") : SV("$'"));
  for (size_t at = 0; at < text.size; at++) {
    char c = text.data[at];
    if (c == '\'')
      strbuf_append(buf, printable ? SV("'\\''") : SV("\\'"));
    else if (printable || is_plain(c) || c == '"')
      strbuf_append_char(buf, c);
    else
      append_bytes_escaped(buf, (StrView){&c, 1});
  }
  strbuf_append_char(buf, '\'');
}

void strbuf_append_word(StrBuf *buf, StrView text) {
  static const char plain[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "_-.:/=+,@%";
  bool quote = text.size == 0;
  for (size_t at = 0; at < text.size && !quote; at++)
    quote = !text.data[at] || !strchr(plain, text.data[at]);
  if (quote)
    strbuf_append_quoted(buf, text);
  else
    strbuf_append(buf, text);
}

bool strbuf_append_unescaped(StrBuf *buf, StrView text) {
  for (size_t at = 0; at < text.size; at++) {
    const char *from = text.data + at, *escape = memchr(from, '\\', text.size - at);
    size_t plain = escape ? (size_t)(escape - from) : text.size - at;
    strbuf_append(buf, (StrView){from, plain});
    at += plain;
    if (!escape)
      break;
    if (++at == text.size)
      return false;
    const char *letter = strchr("n\nr\rt\t\"\"\\\\", text.data[at]);
    if (text.data[at] == 'x' && text.size - at > 2) {
      int high = hex_digit(text.data[at + 1]), low = hex_digit(text.data[at + 2]);
      if (high < 0 || low < 0)
        return false;
      strbuf_append_char(buf, (char)(high << 4 | low));
      at += 2;
    } else if (letter && text.data[at] && strchr("nrt\"\\", text.data[at])) {
      strbuf_append_char(buf, letter[1]);
    } else {
      return false;
    }
  }
  return true;
}

void strbuf_append_double(StrBuf *buf, double value) {
  if (isnan(value) || isinf(value)) {
    strbuf_append(buf, isnan(value) ? SV("nan") : value < 0 ? SV("-inf") : SV("inf"));
    return;
  }
  /* 15 digits always survive the way there and back for normal numbers, so fewer are tried for
   * subnormals only. */
  int digits = value != 0 && fabs(value) < DBL_MIN ? 1 : 15;
  char text[40];
  /* For "C" the C library hands out a constant object; nothing is to be freed. */
  locale_t before = uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
  do {
    snprintf(text, sizeof text, "%.*g", digits, value);
  } while (strtod(text, NULL) != value && digits++ < 17);
  uselocale(before);
  strbuf_append(buf, sv_from(text));
  if (!strpbrk(text, ".e"))
    strbuf_append(buf, SV(".0"));
}

void strbuf_append_time(StrBuf *buf, double ns) {
  if (ns < 1e3)
    strbuf_printf(buf, "%.0f ns", ns);
  else if (ns < 1e6)
    strbuf_printf(buf, "%.1f us", ns / 1e3);
  else if (ns < 1e9)
    strbuf_printf(buf, "%.1f ms", ns / 1e6);
  else
    strbuf_printf(buf, "%.1f s", ns / 1e9);
}

void strbuf_append_bytes(StrBuf *buf, uint64_t bytes) {
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) {
    strbuf_printf(buf, "%u byte%s", (unsigned)bytes, bytes == 1 ? "" : "s");
    return;
  }
  /* In tenths, so that no locale has a say; what rounds to 1024.0 is 1.0 of the next unit. */
  unsigned unit = 0;
  uint64_t size = bytes, rest = 0;
  for (; size >= 1024 * 1024; unit++)
    size >>= 10;
  rest = size & 1023;
  uint64_t tenths = (size >> 10) * 10 + (rest * 10 + 512) / 1024;
  if (tenths >= 10240) {
    tenths = 10;
    unit++;
  }
  strbuf_printf(buf, "%u.%u %s", (unsigned)(tenths / 10), (unsigned)(tenths % 10), units[unit]);
}

const char *shell_word(struct Arena *arena, StrView text) {
  StrBuf buf = {0};
  strbuf_append_word(&buf, text);
  return strbuf_keep(&buf, arena).data;
}

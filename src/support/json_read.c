/* See json_read.h. Strict as RFC 8259 is, but numbers are checked only where they are asked for. */
#include "support/json_read.h"

#include "support/strbuf.h"
#include "support/text.h"

enum { MAX_DEPTH = 64 }; /* bits of JsonReader.open */

void json_read_init(JsonReader *r, StrView text, Arena *arena) {
  *r = (JsonReader){.text = text, .arena = arena};
}

bool json_wrong(JsonReader *r, const char *problem) {
  if (!r->problem)
    r->problem = problem;
  return false;
}

void json_read_place(const JsonReader *r, uint32_t *line, uint32_t *column) {
  *line = *column = 1;
  for (size_t i = 0; i < r->at && i < r->text.size; i++) {
    *line += r->text.data[i] == '\n';
    *column = r->text.data[i] == '\n' ? 1 : *column + 1;
  }
}

/* The next character that is no space, which stays; 0 at the end and after a fault. */
static char peek(JsonReader *r) {
  while (r->at < r->text.size && r->text.data[r->at] && strchr(" \t\r\n", r->text.data[r->at]))
    r->at++;
  return r->problem || r->at == r->text.size ? '\0' : r->text.data[r->at];
}

static bool take(JsonReader *r, char wanted) {
  if (peek(r) != wanted)
    return false;
  r->at++;
  return true;
}

/* --- groups --- */

static bool enter(JsonReader *r, bool object) {
  if (r->depth == MAX_DEPTH)
    return json_wrong(r, "it is nested too deeply");
  if (!take(r, object ? '{' : '['))
    return json_wrong(r, object ? "expected an object" : "expected an array");
  r->open = r->open << 1 | object;
  r->depth++;
  r->first = true;
  return true;
}

bool json_enter_object(JsonReader *r) { return enter(r, true); }
bool json_enter_array(JsonReader *r) { return enter(r, false); }

/* To the next member of the innermost group; false where the group ends. */
static bool next(JsonReader *r, bool object) {
  if (r->problem || !r->depth)
    return false;
  bool first = r->first;
  r->first = false;
  if (take(r, object ? '}' : ']')) {
    r->open >>= 1;
    r->depth--;
    return false;
  }
  if (!first && !take(r, ','))
    return json_wrong(r, object ? "expected ',' or '}'" : "expected ',' or ']'");
  return true;
}

bool json_next_key(JsonReader *r, StrView *key) {
  if (!next(r, true) || !json_read_string(r, key))
    return false;
  return take(r, ':') || json_wrong(r, "expected ':' behind the key");
}

bool json_next_item(JsonReader *r) { return next(r, false); }

/* --- strings --- */

/* Four hexadecimal digits. */
static bool read_code_unit(JsonReader *r, uint32_t *out) {
  *out = 0;
  for (int i = 0; i < 4; i++) {
    const char *digits = "0123456789abcdef0123456789ABCDEF";
    char c = r->at < r->text.size ? r->text.data[r->at] : '\0';
    const char *digit = c ? strchr(digits, c) : NULL;
    if (!digit)
      return json_wrong(r, "\\u needs four hexadecimal digits");
    *out = *out << 4 | (uint32_t)((digit - digits) % 16);
    r->at++;
  }
  return true;
}

/* Of \uXXXX, or of two that are a surrogate pair. */
static bool read_code_point(JsonReader *r, uint32_t *out) {
  uint32_t low = 0;
  if (!read_code_unit(r, out))
    return false;
  if (*out < 0xD800 || *out > 0xDFFF)
    return true;
  bool pair = *out < 0xDC00 && r->at + 1 < r->text.size && r->text.data[r->at] == '\\' &&
              r->text.data[r->at + 1] == 'u';
  r->at += pair ? 2 : 0;
  if (!pair || !read_code_unit(r, &low) || low < 0xDC00 || low > 0xDFFF)
    return json_wrong(r, "half of a surrogate pair");
  *out = 0x10000 + ((*out - 0xD800) << 10) + (low - 0xDC00);
  return true;
}

static void append_utf8(StrBuf *out, uint32_t c) {
  if (c < 0x80) {
    strbuf_append_char(out, (char)c);
    return;
  }
  unsigned more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  static const uint32_t leads[] = {0, 0xC0, 0xE0, 0xF0};
  strbuf_append_char(out, (char)(leads[more] | c >> (6 * more)));
  while (more--)
    strbuf_append_char(out, (char)(0x80 | (c >> (6 * more) & 0x3F)));
}

static bool append_escape(JsonReader *r, StrBuf *out) {
  static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
  uint32_t code_point;
  char c = r->at < r->text.size ? r->text.data[r->at] : '\0';
  const char *name = c ? strchr(names, c) : NULL;
  if (name) {
    r->at++;
    strbuf_append_char(out, values[name - names]);
    return true;
  }
  if (c != 'u')
    return json_wrong(r, "there is no such escape");
  r->at++;
  if (!read_code_point(r, &code_point))
    return false;
  append_utf8(out, code_point);
  return true;
}

/* From the first escape at r->at on to the closing quote. */
static bool read_escaped(JsonReader *r, StrView before, StrView *out) {
  StrBuf text = {0};
  bool good = true;
  strbuf_append(&text, before);
  while (good && r->at < r->text.size && r->text.data[r->at] != '"') {
    char c = r->text.data[r->at++];
    if (c == '\\')
      good = append_escape(r, &text);
    else
      strbuf_append_char(&text, c);
  }
  if (good && r->at == r->text.size)
    good = json_wrong(r, "the text has no closing quote");
  r->at++;
  *out = strbuf_keep(&text, r->arena);
  return good;
}

bool json_read_string(JsonReader *r, StrView *out) {
  if (!take(r, '"'))
    return json_wrong(r, "expected a text in quotes");
  size_t from = r->at;
  while (r->at < r->text.size && r->text.data[r->at] != '"' && r->text.data[r->at] != '\\')
    r->at++;
  *out = (StrView){r->text.data + from, r->at - from};
  if (r->at == r->text.size)
    return json_wrong(r, "the text has no closing quote");
  if (r->text.data[r->at] == '\\')
    return read_escaped(r, *out, out);
  r->at++;
  return true;
}

/* --- other values --- */

/* A number or a word. */
static bool read_token(JsonReader *r, StrView *out) {
  (void)peek(r);
  size_t from = r->at;
  while (r->at < r->text.size && r->text.data[r->at] &&
         !strchr(" \t\r\n,:]}[{\"", r->text.data[r->at]))
    r->at++;
  *out = (StrView){r->text.data + from, r->at - from};
  return out->size || json_wrong(r, "expected a value");
}

bool json_read_uint(JsonReader *r, uint64_t *out) {
  StrView token;
  size_t from = r->at;
  if (read_token(r, &token) && text_parse_u64(token, out))
    return true;
  r->at = r->problem ? r->at : from;
  return json_wrong(r, "expected an integer of 0 or more");
}

static bool skip_scalar(JsonReader *r, char c) {
  StrView token;
  double number;
  if (c == '"')
    return json_read_string(r, &token);
  size_t from = r->at;
  if (!read_token(r, &token))
    return false;
  if (sv_eq(token, SV("true")) || sv_eq(token, SV("false")) || sv_eq(token, SV("null")) ||
      text_parse_double(token, &number))
    return true;
  r->at = from;
  return json_wrong(r, "expected a value");
}

bool json_skip(JsonReader *r) {
  unsigned depth = r->depth;
  do {
    StrView key;
    char c = peek(r);
    bool good = c == '{' || c == '[' ? enter(r, c == '{') : skip_scalar(r, c);
    /* To the next value of a group that was entered here. */
    while (good && !r->problem && r->depth > depth)
      if (r->open & 1 ? json_next_key(r, &key) : json_next_item(r))
        break;
  } while (!r->problem && r->depth > depth);
  return !r->problem;
}

bool json_read_end(JsonReader *r) {
  if (!r->problem && (peek(r) || r->depth || r->at < r->text.size))
    return json_wrong(r, "something follows");
  return !r->problem;
}

/* JSON as in RFC 8259. The only state is the depth and whether a comma is due, so that documents of
 * any size stream. */
#include "support/json.h"

#include <inttypes.h>
#include <math.h>

void json_init(JsonWriter *w, StrBuf *out, bool pretty) {
  *w = (JsonWriter){.out = out, .pretty = pretty};
}

static void new_line(JsonWriter *w) {
  strbuf_append_char(w->out, '\n');
  for (unsigned i = 0; i < w->depth; i++)
    strbuf_append(w->out, SV("  "));
}

/* What goes before a value or a key. */
static void separate(JsonWriter *w) {
  if (w->after_key) {
    w->after_key = false;
    return;
  }
  if (w->need_comma)
    strbuf_append_char(w->out, ',');
  if (w->pretty && w->depth)
    new_line(w);
}

static void open_group(JsonWriter *w, char bracket) {
  separate(w);
  strbuf_append_char(w->out, bracket);
  w->depth++;
  w->need_comma = false;
}

static void close_group(JsonWriter *w, char bracket) {
  if (w->depth == 0 || w->after_key)
    BUG("JSON '%c' out of place", bracket);
  w->depth--;
  if (w->pretty && w->need_comma) /* not empty */
    new_line(w);
  strbuf_append_char(w->out, bracket);
  w->need_comma = true;
}

void json_open_object(JsonWriter *w) { open_group(w, '{'); }
void json_close_object(JsonWriter *w) { close_group(w, '}'); }
void json_open_array(JsonWriter *w) { open_group(w, '['); }
void json_close_array(JsonWriter *w) { close_group(w, ']'); }

static void append_code_point(StrBuf *out, uint32_t code_point, StrView bytes) {
  if (code_point == '"' || code_point == '\\') {
    strbuf_append_char(out, '\\');
    strbuf_append(out, bytes);
  } else if (code_point == '\n') {
    strbuf_append(out, SV("\\n"));
  } else if (utf8_is_control(code_point)) { /* all of them are below U+10000 */
    strbuf_printf(out, "\\u%04x", code_point);
  } else {
    strbuf_append(out, bytes);
  }
}

static void append_string(StrBuf *out, StrView value) {
  strbuf_append_char(out, '"');
  for (size_t at = 0; at < value.size;) {
    uint32_t code_point = 0;
    unsigned size = utf8_decode(value, at, &code_point);
    if (size)
      append_code_point(out, code_point, (StrView){value.data + at, size});
    else
      strbuf_append(out, SV("\xEF\xBF\xBD"));
    at += size ? size : 1;
  }
  strbuf_append_char(out, '"');
}

void json_key(JsonWriter *w, const char *key) {
  separate(w);
  append_string(w->out, sv_from(key));
  strbuf_append_char(w->out, ':');
  if (w->pretty)
    strbuf_append_char(w->out, ' ');
  w->after_key = true;
}

void json_string(JsonWriter *w, StrView value) {
  separate(w);
  append_string(w->out, value);
  w->need_comma = true;
}

void json_int(JsonWriter *w, int64_t value) {
  separate(w);
  strbuf_printf(w->out, "%" PRId64, value);
  w->need_comma = true;
}

void json_uint(JsonWriter *w, uint64_t value) {
  separate(w);
  strbuf_printf(w->out, "%" PRIu64, value);
  w->need_comma = true;
}

void json_double(JsonWriter *w, double value) {
  separate(w);
  bool number = isfinite(value);
  if (!number)
    strbuf_append_char(w->out, '"');
  strbuf_append_double(w->out, value);
  if (!number)
    strbuf_append_char(w->out, '"');
  w->need_comma = true;
}

void json_bool(JsonWriter *w, bool value) { json_raw(w, value ? SV("true") : SV("false")); }
void json_null(JsonWriter *w) { json_raw(w, SV("null")); }

void json_raw(JsonWriter *w, StrView json) {
  separate(w);
  strbuf_append(w->out, json);
  w->need_comma = true;
}

#define NAMED(kind, type)                                                                          \
  void json_named_##kind(JsonWriter *w, const char *key, type value) {                             \
    json_key(w, key);                                                                              \
    json_##kind(w, value);                                                                         \
  }
NAMED(string, StrView)
NAMED(int, int64_t)
NAMED(uint, uint64_t)
NAMED(double, double)
NAMED(bool, bool)

void json_named_array(JsonWriter *w, const char *key) {
  json_key(w, key);
  json_open_array(w);
}

void json_named_object(JsonWriter *w, const char *key) {
  json_key(w, key);
  json_open_object(w);
}

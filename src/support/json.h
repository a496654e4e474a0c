/* A streaming JSON writer: the caller opens and closes objects and arrays, commas and indentation
 * are its business. */
#ifndef ETC_SUPPORT_JSON_H
#define ETC_SUPPORT_JSON_H

#include "support/strbuf.h"

typedef struct JsonWriter {
  StrBuf *out;
  unsigned depth;
  bool need_comma, after_key, pretty;
} JsonWriter;

void json_init(JsonWriter *w, StrBuf *out, bool pretty);
void json_open_object(JsonWriter *w);
void json_close_object(JsonWriter *w);
void json_open_array(JsonWriter *w);
void json_close_array(JsonWriter *w);
void json_key(JsonWriter *w, const char *key);
void json_string(JsonWriter *w, StrView value); /* any bytes; invalid UTF-8 becomes U+FFFD */
void json_int(JsonWriter *w, int64_t value);
void json_uint(JsonWriter *w, uint64_t value);
void json_double(JsonWriter *w, double value); /* NaN and infinities as strings */
void json_bool(JsonWriter *w, bool value);
void json_null(JsonWriter *w);
void json_raw(JsonWriter *w, StrView json); /* a whole value that is JSON already */
/* A key and its value. */
void json_named_string(JsonWriter *w, const char *key, StrView value);
void json_named_int(JsonWriter *w, const char *key, int64_t value);
void json_named_uint(JsonWriter *w, const char *key, uint64_t value);
void json_named_double(JsonWriter *w, const char *key, double value);
void json_named_bool(JsonWriter *w, const char *key, bool value);
/* A key, and its array or object opened. */
void json_named_array(JsonWriter *w, const char *key);
void json_named_object(JsonWriter *w, const char *key);

#endif

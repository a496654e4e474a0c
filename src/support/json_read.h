/* Reads JSON value by value, as the caller asks for them; nothing is built up. The first fault ends
 * it: every later call answers as at the end, and `problem` says what is wrong.
 *
 *     json_read_init(&r, text, arena);
 *     json_enter_object(&r);
 *     while (json_next_key(&r, &key))
 *       if (sv_eq(key, SV("name")))
 *         json_read_string(&r, &name);
 *       else
 *         json_skip(&r);
 *     json_read_end(&r);
 */
#ifndef ETC_SUPPORT_JSON_READ_H
#define ETC_SUPPORT_JSON_READ_H

#include "support/arena.h"

typedef struct JsonReader {
  StrView text;
  Arena *arena; /* of strings with escapes */
  size_t at;
  uint64_t open; /* a bit for each open group, the innermost lowest: an object */
  unsigned depth;
  bool first;          /* nothing was read in the innermost group yet */
  const char *problem; /* NULL: none so far */
} JsonReader;

/* The text must outlive the reader and what it gives. */
void json_read_init(JsonReader *r, StrView text, Arena *arena);
/* The next value must be an object or an array. */
bool json_enter_object(JsonReader *r);
bool json_enter_array(JsonReader *r);
/* The next key of the innermost object, whose value is read then; false behind the last one, where
 * the object is left. */
bool json_next_key(JsonReader *r, StrView *key);
/* Whether the innermost array has one more item, which is read then; false behind the last one,
 * where the array is left. */
bool json_next_item(JsonReader *r);
/* The next value, which must be of that kind. */
bool json_read_string(JsonReader *r, StrView *out);
bool json_read_uint(JsonReader *r, uint64_t *out);
/* The next value, whatever it is. */
bool json_skip(JsonReader *r);
/* After the whole value: false if something follows, or went wrong before. */
bool json_read_end(JsonReader *r);
/* Records a fault at the current position, unless there is one already; returns false. */
bool json_wrong(JsonReader *r, const char *problem);
/* The place that was reached, from 1. */
void json_read_place(const JsonReader *r, uint32_t *line, uint32_t *column);

#endif

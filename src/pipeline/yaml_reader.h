/* YAML files of the user, event by event: recipes, budgets, what --quantize-config names. Nothing
 * of a file is built up or expanded, so that nesting ends at the first level that a file of the
 * kind does not have. */
#ifndef ETC_PIPELINE_YAML_READER_H
#define ETC_PIPELINE_YAML_READER_H

#include <yaml.h>

#include "pipeline/session.h"

typedef struct YamlReader {
  Session *s;
  DiagCode code;    /* of what is wrong */
  const char *what; /* "a recipe" */
  StrView file, text;
  yaml_parser_t parser;
  yaml_event_t event; /* the present one */
  bool has_event;
} YamlReader;

/* text: 1 byte to 1 MiB, or that is reported; must live until yaml_close, which is to be called on
 * success. */
EtcStatus yaml_open(YamlReader **out, Session *s, DiagCode code, const char *what, StrView file,
                    StrView text);
/* Of a file. */
static inline StrView yaml_text(const MappedFile *file) {
  return (StrView){(const char *)file->data, (size_t)file->size};
}
void yaml_close(YamlReader *r);
/* The place of the present event, or of what the parser found wrong. */
DiagPlace yaml_place(const YamlReader *r);
/* Reports what is wrong there. hint: NULL: that of the code. */
EtcStatus yaml_wrong(YamlReader *r, const char *hint, const char *format, ...) ETC_PRINTF(3, 4);
/* The next event, in place of the one before. Aliases are refused. */
EtcStatus yaml_next(YamlReader *r);
/* For loops over a mapping or a sequence, from the event that begins it: whether there is one more
 * entry, whose first event is the present one then. False at the end, and where *status, of the
 * entry before, or reading on tells of a fault. The entry must be read to its last event. */
bool yaml_more(YamlReader *r, EtcStatus *status);
/* The text of a scalar, kept; what says what it should be ("a value"). */
EtcStatus yaml_scalar(YamlReader *r, const char *what, StrView *out);
/* From the start of the file to the start of its mapping, which is the present event then.
 * expected: what to say when there is none. */
EtcStatus yaml_begin(YamlReader *r, const char *expected);
/* {NAME: {KEY: VALUE, …}, …} of the key `methods`, which recipes and budgets have: one is called
 * for each, with its mapping as the present event, and reads it to its end. example: such a
 * mapping. */
EtcStatus yaml_methods(YamlReader *r, const char *example, EtcStatus one(void *user, StrView name),
                       void *user);
/* From the end of the mapping to that of the file. */
EtcStatus yaml_end(YamlReader *r);

#endif

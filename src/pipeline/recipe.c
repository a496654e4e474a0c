/* See recipe.h. The events of libyaml are taken one by one, so that nothing of the file is built up
 * or expanded: nesting ends at the first level that a recipe does not have. */
#include "pipeline/recipe.h"

#include <yaml.h>

#include "pipeline/settings.h"

enum { MAX_SIZE = 1 << 20, MAX_KEYS = 64 };

typedef struct Reader {
  Session *s;
  yaml_parser_t parser;
  yaml_event_t event;
  bool has_event;
  StrView file;
  StrView keys[MAX_KEYS];
  uint32_t key_count;
} Reader;

static DiagPlace place_at(const Reader *r, yaml_mark_t mark) {
  DiagPlace place = DIAG_NOWHERE;
  place.file = r->file;
  place.line = (uint32_t)mark.line + 1;
  place.column = (uint32_t)mark.column + 1;
  return place;
}

static EtcStatus wrong(Reader *r, const char *format, ...) ETC_PRINTF(2, 3);
static EtcStatus wrong(Reader *r, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *text = arena_vprintf(&r->s->arena, format, args);
  va_end(args);
  DiagPlace place = place_at(r, r->has_event ? r->event.start_mark : r->parser.problem_mark);
  return session_status(diag_report(&r->s->sink, DIAG_RECIPE, place, "%s", text));
}

/* The next event, in place of the one before. */
static EtcStatus next(Reader *r) {
  if (r->has_event)
    yaml_event_delete(&r->event);
  r->has_event = yaml_parser_parse(&r->parser, &r->event) != 0;
  if (!r->has_event)
    return wrong(r, "%s", r->parser.problem ? r->parser.problem : "this is no YAML");
  if (r->event.type == YAML_ALIAS_EVENT)
    return wrong(r, "aliases are not supported");
  return ETC_OK;
}

/* The text of a scalar, kept; what says what it should be. */
static EtcStatus scalar(Reader *r, const char *what, StrView *out) {
  if (r->event.type != YAML_SCALAR_EVENT)
    return wrong(r, "expected %s", what);
  StrView text = {(const char *)r->event.data.scalar.value, r->event.data.scalar.length};
  if (memchr(text.data, 0, text.size))
    return wrong(r, "%s holds a zero byte", what);
  *out = (StrView){arena_strdup(&r->s->arena, text), text.size};
  return ETC_OK;
}

static EtcStatus set(Reader *r, StrView key, StrView value) {
  r->s->recipe_at = place_at(r, r->event.start_mark);
  EtcStatus status = session_recipe_set(r->s, key, value);
  r->s->recipe_at = DIAG_NOWHERE;
  return status;
}

/* A list of values, each as if the option were given once more. */
static EtcStatus read_list(Reader *r, StrView key) {
  EtcStatus status = next(r);
  while (status == ETC_OK && r->event.type != YAML_SEQUENCE_END_EVENT) {
    StrView value = {0};
    status = scalar(r, "a value", &value);
    if (status == ETC_OK)
      status = set(r, key, value);
    if (status == ETC_OK)
      status = next(r);
  }
  return status;
}

/* The value of a setting: a scalar, or a list that is joined by '+'. */
static EtcStatus read_setting(Reader *r, StrView *value) {
  if (r->event.type != YAML_SEQUENCE_START_EVENT)
    return scalar(r, "a value or a list", value);
  *value = SV("");
  EtcStatus status = next(r);
  while (status == ETC_OK && r->event.type != YAML_SEQUENCE_END_EVENT) {
    StrView one = {0};
    status = scalar(r, "a value", &one);
    if (status == ETC_OK)
      *value = sv_from(arena_printf(&r->s->arena, SV_FMT "%s" SV_FMT, SV_ARG(*value),
                                    value->size ? "+" : "", SV_ARG(one)));
    if (status == ETC_OK)
      status = next(r);
  }
  return status;
}

/* A scalar as --constant takes it: in quotes where the file has some. */
static EtcStatus read_constant(Reader *r, StrBuf *out) {
  StrView text = {0};
  EtcStatus status = scalar(r, "a value", &text);
  bool quoted = status == ETC_OK && r->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
  strbuf_append(out, quoted ? SV("\"") : SV(""));
  if (quoted)
    strbuf_append_escaped(out, text);
  else if (status == ETC_OK)
    strbuf_append(out, text);
  strbuf_append(out, quoted ? SV("\"") : SV(""));
  return status;
}

/* The value of a constant method: a scalar, or a list with commas between its items. */
static EtcStatus read_constants(Reader *r, StrView *value) {
  StrBuf text;
  strbuf_init(&text);
  bool list = r->event.type == YAML_SEQUENCE_START_EVENT, first = true;
  EtcStatus status = list ? next(r) : read_constant(r, &text);
  while (list && status == ETC_OK && r->event.type != YAML_SEQUENCE_END_EVENT) {
    strbuf_append(&text, first ? SV("") : SV(","));
    first = false;
    status = read_constant(r, &text);
    if (status == ETC_OK)
      status = next(r);
  }
  *value =
      (StrView){arena_strdup(&r->s->arena, (StrView){strbuf_cstr(&text), text.size}), text.size};
  strbuf_release(&text);
  return status;
}

/* {KEY: VALUE, …} as KEY=VALUE,… */
static EtcStatus read_settings(Reader *r, StrView *out) {
  *out = SV("");
  EtcStatus status = next(r);
  while (status == ETC_OK && r->event.type != YAML_MAPPING_END_EVENT) {
    StrView key = {0}, value = {0};
    status = scalar(r, "the name of a setting", &key);
    if (status == ETC_OK)
      status = next(r);
    if (status == ETC_OK)
      status = read_setting(r, &value);
    if (status != ETC_OK)
      return status;
    *out = sv_from(arena_printf(&r->s->arena, SV_FMT "%s" SV_FMT "=" SV_FMT, SV_ARG(*out),
                                out->size ? "," : "", SV_ARG(key), SV_ARG(value)));
    status = next(r);
  }
  return status;
}

static EtcStatus read_pair_value(Reader *r, bool backend, bool constant, StrView *value) {
  if (backend && r->event.type == YAML_MAPPING_START_EVENT)
    return read_settings(r, value);
  return constant ? read_constants(r, value) : scalar(r, "a value", value);
}

/* NAME: VALUE pairs, each as NAME=VALUE, or IN:OUT for states, or NAME:SETTINGS for backends. */
static EtcStatus read_pairs(Reader *r, StrView key) {
  bool backend = sv_eq(key, SV("backend")) || sv_eq(key, SV("derive")),
       constant = sv_eq(key, SV("constant"));
  const char *between = backend || sv_eq(key, SV("state")) ? ":" : "=";
  EtcStatus status = next(r);
  while (status == ETC_OK && r->event.type != YAML_MAPPING_END_EVENT) {
    StrView name = {0}, value = {0};
    status = scalar(r, "a name", &name);
    if (status == ETC_OK)
      status = next(r);
    if (status == ETC_OK)
      status = read_pair_value(r, backend, constant, &value);
    if (status != ETC_OK)
      return status;
    const char *text = arena_printf(&r->s->arena, SV_FMT "%s" SV_FMT, SV_ARG(name),
                                    backend && !value.size ? "" : between, SV_ARG(value));
    status = set(r, key, sv_from(text));
    if (status == ETC_OK)
      status = next(r);
  }
  return status;
}

static EtcStatus read_key(Reader *r, StrView *key) {
  EtcStatus status = scalar(r, "the name of an option", key);
  for (uint32_t i = 0; status == ETC_OK && i < r->key_count; i++)
    if (sv_eq(r->keys[i], *key))
      status = wrong(r, "'" SV_FMT "' is there twice", SV_ARG(*key));
  if (status != ETC_OK)
    return status;
  if (r->key_count == MAX_KEYS)
    return wrong(r, "more than %d keys", MAX_KEYS);
  r->keys[r->key_count++] = *key;
  if (sv_eq(*key, SV("constant-methods")))
    *key = SV("constant");
  r->s->recipe_at = place_at(r, r->event.start_mark);
  status = session_recipe_knows(r->s, *key);
  r->s->recipe_at = DIAG_NOWHERE;
  return status;
}

static EtcStatus read_entry(Reader *r) {
  StrView key = {0}, value = {0};
  EtcStatus status = read_key(r, &key);
  if (status == ETC_OK)
    status = next(r);
  if (status != ETC_OK)
    return status;
  if (r->event.type == YAML_SEQUENCE_START_EVENT)
    return read_list(r, key);
  if (r->event.type == YAML_MAPPING_START_EVENT)
    return read_pairs(r, key);
  status = scalar(r, "a value", &value);
  return status == ETC_OK ? set(r, key, value) : status;
}

/* Stream, document, mapping of keys, and the ends of these. */
static EtcStatus read_all(Reader *r) {
  static const yaml_event_type_t begin[] = {YAML_STREAM_START_EVENT, YAML_DOCUMENT_START_EVENT,
                                            YAML_MAPPING_START_EVENT};
  EtcStatus status = ETC_OK;
  for (size_t i = 0; i < COUNT_OF(begin); i++) {
    status = next(r);
    if (status != ETC_OK)
      return status;
    if (r->event.type != begin[i])
      return wrong(r, "a recipe is a mapping of options, as in 'plan: greedy'");
  }
  for (status = next(r); status == ETC_OK && r->event.type != YAML_MAPPING_END_EVENT;) {
    status = read_entry(r);
    if (status == ETC_OK)
      status = next(r);
  }
  if (status == ETC_OK)
    status = next(r); /* the end of the document */
  if (status == ETC_OK)
    status = next(r);
  if (status == ETC_OK && r->event.type != YAML_STREAM_END_EVENT)
    return wrong(r, "a recipe is one document");
  return status;
}

static EtcStatus read_file(Session *s, const MappedFile *file) {
  Reader r = {.s = s, .file = sv_from(file->path)};
  DiagPlace place = DIAG_NOWHERE;
  place.file = r.file;
  if (file->size == 0 || file->size > MAX_SIZE)
    return session_status(
        diag_report(&s->sink, DIAG_RECIPE, place, "a recipe has 1 to %d bytes", MAX_SIZE));
  if (!yaml_parser_initialize(&r.parser))
    return session_status(STATUS_NO_MEMORY);
  yaml_parser_set_input_string(&r.parser, file->data, (size_t)file->size);
  session_recipe_begin(s);
  EtcStatus status = read_all(&r);
  if (r.has_event)
    yaml_event_delete(&r.event);
  yaml_parser_delete(&r.parser);
  return status;
}

EtcStatus recipe_apply(Session *s, const char *path) {
  MappedFile file;
  EtcStatus status = session_status(file_map(&file, &s->arena, &s->sink, path));
  if (status != ETC_OK)
    return status;
  status = read_file(s, &file);
  file_unmap(&file);
  return status;
}

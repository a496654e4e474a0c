/* See yaml_reader.h. */
#include "pipeline/yaml_reader.h"

enum { MAX_SIZE = 1 << 20 };

/* The parser has an offset alone of bytes that are no text, which it reads before it parses. */
static yaml_mark_t problem_mark(const YamlReader *r) {
  if (r->parser.error != YAML_READER_ERROR)
    return r->parser.problem_mark;
  yaml_mark_t mark = {0};
  for (size_t i = 0; i < r->text.size && i < r->parser.problem_offset; i++) {
    bool ends = r->text.data[i] == '\n';
    mark.line += ends;
    mark.column = ends ? 0 : mark.column + 1;
  }
  return mark;
}

DiagPlace yaml_place(const YamlReader *r) {
  yaml_mark_t mark = r->has_event ? r->event.start_mark : problem_mark(r);
  DiagPlace place = DIAG_NOWHERE;
  place.file = r->file;
  place.line = (uint32_t)mark.line + 1;
  place.column = (uint32_t)mark.column + 1;
  return place;
}

EtcStatus yaml_wrong(YamlReader *r, const char *hint, const char *format, ...) {
  Diag *d = diag_begin(&r->s->sink, r->code, yaml_place(r));
  va_list args;
  va_start(args, format);
  diag_vmessage(d, "", format, args);
  va_end(args);
  if (hint)
    diag_hint(d, "%s", hint);
  return session_status(diag_end(d));
}

static void delete_parser(void *block) {
  YamlReader *r = block;
  if (r->has_event)
    yaml_event_delete(&r->event);
  yaml_parser_delete(&r->parser); /* zeros are a parser without anything */
}

EtcStatus yaml_open(YamlReader **out, Session *s, DiagCode code, const char *what, StrView file,
                    StrView text) {
  DiagPlace place = DIAG_NOWHERE;
  place.file = file;
  if (text.size == 0)
    return session_status(diag_report(&s->sink, code, place, "the file is empty"));
  if (text.size > MAX_SIZE)
    return session_status(
        diag_report(&s->sink, code, place, "%s has more than %d bytes", what, MAX_SIZE));
  YamlReader *r = *out = memory_guard(sizeof *r, delete_parser);
  *r = (YamlReader){.s = s, .code = code, .what = what, .file = file, .text = text};
  if (!yaml_parser_initialize(&r->parser))
    memory_fail(sizeof r->parser);
  yaml_parser_set_input_string(&r->parser, (const uint8_t *)text.data, text.size);
  return ETC_OK;
}

void yaml_close(YamlReader *r) {
  delete_parser(r);
  xfree(r);
}

/* What the parser did not understand, with what to do where the reason is known. */
static EtcStatus not_yaml(YamlReader *r) {
  size_t at = r->parser.problem_mark.index;
  char c = at < r->text.size ? r->text.data[at] : 0;
  if (r->parser.error == YAML_READER_ERROR)
    return yaml_wrong(r, "the file is not text in UTF-8 from there on: is it the right file?", "%s",
                      r->parser.problem);
  if (r->parser.error == YAML_SCANNER_ERROR && c == '\t')
    return yaml_wrong(r, "indent with spaces", "a tab where YAML allows only spaces");
  if (r->parser.error == YAML_SCANNER_ERROR && (c == '@' || c == '`'))
    return yaml_wrong(r, "put it in quotes: \"@NAME\"",
                      "in YAML a text without quotes cannot begin with '%c'", c);
  return yaml_wrong(r,
                    "the file is not YAML from there on: look for a bracket, a quote or a colon "
                    "that is missing before it",
                    "%s", r->parser.problem ? r->parser.problem : "this is not YAML");
}

EtcStatus yaml_next(YamlReader *r) {
  if (r->has_event)
    yaml_event_delete(&r->event);
  r->has_event = yaml_parser_parse(&r->parser, &r->event) != 0;
  if (r->parser.error == YAML_MEMORY_ERROR)
    memory_fail(SIZE_MAX);
  if (!r->has_event)
    return not_yaml(r);
  if (r->event.type == YAML_ALIAS_EVENT)
    return yaml_wrong(r, "write the value itself in place of the alias",
                      "aliases are not supported");
  return ETC_OK;
}

bool yaml_more(YamlReader *r, EtcStatus *status) {
  if (*status == ETC_OK)
    *status = yaml_next(r);
  return *status == ETC_OK && r->event.type != YAML_MAPPING_END_EVENT &&
         r->event.type != YAML_SEQUENCE_END_EVENT;
}

/* 010 without quotes: 8 in YAML 1.1, 10 in 1.2. text ends with NUL. */
static bool is_ambiguous_number(const YamlReader *r, const char *text) {
  text += *text == '-' || *text == '+';
  return r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE && text[0] == '0' && text[1] &&
         text[strspn(text, "0123456789")] == '\0';
}

EtcStatus yaml_scalar(YamlReader *r, const char *what, StrView *out) {
  if (r->event.type != YAML_SCALAR_EVENT)
    return yaml_wrong(r, NULL, "expected %s", what);
  StrView text = {(const char *)r->event.data.scalar.value, r->event.data.scalar.length};
  if (memchr(text.data, 0, text.size))
    return yaml_wrong(r, NULL, "%s holds a zero byte", what);
  if (is_ambiguous_number(r, text.data))
    return yaml_wrong(r, "write it without the zero in front, or in quotes",
                      "'" SV_FMT "' is not the same number in all versions of YAML", SV_ARG(text));
  *out = (StrView){arena_strdup(&r->s->arena, text), text.size};
  return ETC_OK;
}

EtcStatus yaml_begin(YamlReader *r, const char *expected) {
  static const yaml_event_type_t begin[] = {YAML_STREAM_START_EVENT, YAML_DOCUMENT_START_EVENT,
                                            YAML_MAPPING_START_EVENT};
  for (size_t i = 0; i < COUNT_OF(begin); i++) {
    TRY(yaml_next(r));
    if (r->event.type != begin[i])
      return yaml_wrong(r, NULL, "%s", expected);
  }
  return ETC_OK;
}

/* what: what should be there. */
static EtcStatus expect_mapping(YamlReader *r, const char *example, const char *what) {
  if (r->event.type == YAML_MAPPING_START_EVENT)
    return ETC_OK;
  return yaml_wrong(r, arena_printf(&r->s->arena, "write 'methods: {forward: %s}'", example),
                    "expected %s", what);
}

EtcStatus yaml_methods(YamlReader *r, const char *example, EtcStatus one(void *user, StrView name),
                       void *user) {
  EtcStatus status = expect_mapping(r, example, "a mapping of methods by name");
  while (yaml_more(r, &status)) {
    StrView name = {0};
    TRY(yaml_scalar(r, "the name of a method", &name));
    TRY(yaml_next(r));
    TRY(expect_mapping(
        r, example, arena_printf(&r->s->arena, "a mapping for method '" SV_FMT "'", SV_ARG(name))));
    status = one(user, name);
  }
  return status;
}

EtcStatus yaml_end(YamlReader *r) {
  EtcStatus status = yaml_next(r); /* the end of the document */
  if (status == ETC_OK)
    status = yaml_next(r);
  if (status == ETC_OK && r->event.type != YAML_STREAM_END_EVENT)
    return yaml_wrong(r, NULL, "%s is one document", r->what);
  return status;
}

/* See quantize_config.h. Events of libyaml are taken one by one, as in recipe.c. */
#include "pipeline/quantize_config.h"

#include <yaml.h>

#include "support/text.h"

enum { MAX_SIZE = 1 << 20 };

typedef struct Reader {
  Session *s;
  yaml_parser_t parser;
  yaml_event_t event;
  bool has_event;
  StrView file;
} Reader;

static EtcStatus wrong(Reader *r, const char *hint, const char *format, ...) ETC_PRINTF(3, 4);
static EtcStatus wrong(Reader *r, const char *hint, const char *format, ...) {
  yaml_mark_t mark = r->has_event ? r->event.start_mark : r->parser.problem_mark;
  DiagPlace place = DIAG_NOWHERE;
  place.file = r->file;
  place.line = (uint32_t)mark.line + 1;
  place.column = (uint32_t)mark.column + 1;
  va_list args;
  va_start(args, format);
  Diag *d = diag_begin(&r->s->sink, DIAG_QUANT_CONFIG, place);
  diag_message(d, "%s", arena_vprintf(&r->s->arena, format, args));
  va_end(args);
  if (hint)
    diag_hint(d, "%s", hint);
  return session_status(diag_end(d));
}

static EtcStatus next(Reader *r) {
  if (r->has_event)
    yaml_event_delete(&r->event);
  r->has_event = yaml_parser_parse(&r->parser, &r->event) != 0;
  return r->has_event ? ETC_OK
                      : wrong(r, NULL, "%s", r->parser.problem ? r->parser.problem : "no YAML");
}

static bool is_event(const Reader *r, yaml_event_type_t type) { return r->event.type == type; }

static EtcStatus scalar(Reader *r, const char *what, StrView *out) {
  if (!is_event(r, YAML_SCALAR_EVENT))
    return wrong(r, NULL, "expected %s", what);
  StrView text = {(const char *)r->event.data.scalar.value, r->event.data.scalar.length};
  if (text.size == 0 || memchr(text.data, 0, text.size) || memchr(text.data, '+', text.size))
    return wrong(r, NULL, "%s is empty, or holds a zero byte or '+'", what);
  *out = (StrView){arena_strdup(&r->s->arena, text), text.size};
  return ETC_OK;
}

static StrView without_overload(StrView full) {
  const char *dot = memchr(full.data, '.', full.size);
  return dot ? (StrView){full.data, (size_t)(dot - full.data)} : full;
}

static StrView without_namespace(StrView name) {
  for (size_t i = 0; i + 1 < name.size; i++)
    if (name.data[i] == ':' && name.data[i + 1] == ':')
      return (StrView){name.data + i + 2, name.size - i - 2};
  return name;
}

/* An op of the IR, or the name of a node. */
static EtcStatus check_term(Reader *r, StrView term) {
  const char *names[OP_COUNT];
  size_t count = 0;
  if (term.size > 1 && term.data[0] == '@')
    return ETC_OK;
  for (unsigned op = OP_OUTPUT + 1; op < OP_COUNT; op++) {
    StrView full = op_schema((OpId)op)->full, plain = without_overload(full);
    if (sv_eq(term, full) || sv_eq(term, plain) || sv_eq(term, without_namespace(full)) ||
        sv_eq(term, without_namespace(plain)))
      return ETC_OK;
    names[count++] = arena_strdup(&r->s->arena, without_namespace(plain));
  }
  int nearest = text_nearest(term, names, count);
  const char *hint = nearest < 0 ? "names of nodes begin with '@'"
                                 : arena_printf(&r->s->arena, "did you mean '%s'?", names[nearest]);
  return wrong(r, hint, "there is no op '" SV_FMT "'", SV_ARG(term));
}

static EtcStatus add_term(Reader *r, StrView *list) {
  StrView term = {0};
  EtcStatus status = scalar(r, "an op or '@' and a name", &term);
  if (status == ETC_OK)
    status = check_term(r, term);
  if (status == ETC_OK)
    *list = sv_from(arena_printf(&r->s->arena, SV_FMT "%s" SV_FMT, SV_ARG(*list),
                                 list->size ? "+" : "", SV_ARG(term)));
  return status;
}

static EtcStatus read_terms(Reader *r, StrView *list) {
  if (!is_event(r, YAML_SEQUENCE_START_EVENT))
    return add_term(r, list);
  EtcStatus status = next(r);
  while (status == ETC_OK && !is_event(r, YAML_SEQUENCE_END_EVENT)) {
    status = add_term(r, list);
    if (status == ETC_OK)
      status = next(r);
  }
  return status;
}

static EtcStatus read_entry(Reader *r, QuantOptions *options) {
  StrView key = {0};
  EtcStatus status = scalar(r, "a key", &key);
  if (status != ETC_OK)
    return status;
  StrView *list = sv_eq(key, SV("float"))         ? &options->floats
                  : sv_eq(key, SV("weight-only")) ? &options->weight_only
                                                  : NULL;
  if (!list)
    return wrong(r, "there are float and weight-only", "there is no key '" SV_FMT "'", SV_ARG(key));
  if (list->size)
    return wrong(r, NULL, "'" SV_FMT "' is there twice", SV_ARG(key));
  status = next(r);
  return status == ETC_OK ? read_terms(r, list) : status;
}

static EtcStatus read_all(Reader *r, QuantOptions *options) {
  static const yaml_event_type_t begin[] = {YAML_STREAM_START_EVENT, YAML_DOCUMENT_START_EVENT,
                                            YAML_MAPPING_START_EVENT};
  EtcStatus status = ETC_OK;
  for (size_t i = 0; i < COUNT_OF(begin); i++) {
    status = next(r);
    if (status != ETC_OK)
      return status;
    if (!is_event(r, begin[i]))
      return wrong(r, NULL, "expected a mapping, as in 'float: [softmax]'");
  }
  for (status = next(r); status == ETC_OK && !is_event(r, YAML_MAPPING_END_EVENT);) {
    status = read_entry(r, options);
    if (status == ETC_OK)
      status = next(r);
  }
  return status;
}

EtcStatus quantize_config_read(Session *s, const char *path, QuantOptions *options) {
  MappedFile file;
  EtcStatus status = session_status(file_map(&file, &s->arena, &s->sink, path));
  if (status != ETC_OK)
    return status;
  Reader r = {.s = s, .file = sv_from(file.path)};
  options->floats = options->weight_only = SV("");
  if (!yaml_parser_initialize(&r.parser)) {
    file_unmap(&file);
    return session_status(STATUS_NO_MEMORY);
  }
  yaml_parser_set_input_string(&r.parser, file.data, (size_t)file.size);
  status = file.size > MAX_SIZE ? wrong(&r, NULL, "more than %d bytes", MAX_SIZE)
                                : read_all(&r, options);
  if (r.has_event)
    yaml_event_delete(&r.event);
  yaml_parser_delete(&r.parser);
  file_unmap(&file);
  return status;
}

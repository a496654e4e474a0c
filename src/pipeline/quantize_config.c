/* See quantize_config.h. */
#include "pipeline/quantize_config.h"

#include "backends/selection.h"
#include "pipeline/settings.h"
#include "pipeline/yaml_reader.h"
#include "support/text.h"

static EtcStatus term_text(YamlReader *r, const char *what, StrView *out) {
  TRY(yaml_scalar(r, what, out));
  const char *fault = out->size == 0                      ? "is missing"
                      : memchr(out->data, '+', out->size) ? "has a '+'"
                                                          : NULL;
  return fault ? yaml_wrong(r, NULL, "%s %s", what, fault) : ETC_OK;
}

/* An op of the IR, an operator of ONNX, or the name of a node. */
static EtcStatus check_term(YamlReader *r, StrView term) {
  const char *names[OPERATORS_MAX + OP_COUNT];
  size_t count = session_operators(names);
  if (term.data[0] == '@')
    return term.size > 1 ? ETC_OK
                         : yaml_wrong(r, "write '@NAME', or '@*' for all nodes",
                                      "the name of a node is missing behind '@'");
  if (session_is_operator(term))
    return ETC_OK;
  for (unsigned op = OP_OUTPUT + 1; op < op_count(); op++) {
    if (selection_names_op(term, (OpId)op))
      return ETC_OK;
    names[count++] = arena_strdup(&r->s->arena, selection_local_name(op_schema((OpId)op)->name));
  }
  const char *nearest = text_nearest(term, names, count);
  const char *hint = nearest ? session_did_you_mean(r->s, nearest)
                             : "'etc ops' lists operators and ops; names of nodes begin with '@'";
  return yaml_wrong(r, hint, "there is no op '" SV_FMT "'", SV_ARG(term));
}

static EtcStatus add_term(YamlReader *r, StrView *list) {
  StrView term = {0};
  TRY(term_text(r, "an op or '@' and a name", &term));
  TRY(check_term(r, term));
  *list = sv_from(arena_printf(&r->s->arena, SV_FMT "%s" SV_FMT, SV_ARG(*list),
                               list->size ? "+" : "", SV_ARG(term)));
  return ETC_OK;
}

static EtcStatus read_terms(YamlReader *r, StrView *list) {
  if (r->event.type != YAML_SEQUENCE_START_EVENT)
    return add_term(r, list);
  EtcStatus status = ETC_OK;
  while (yaml_more(r, &status))
    status = add_term(r, list);
  return status;
}

static EtcStatus read_entry(YamlReader *r, QuantOptions *options) {
  StrView key = {0};
  TRY(term_text(r, "a key", &key));
  StrView *list = sv_eq(key, SV("float"))         ? &options->floats
                  : sv_eq(key, SV("weight-only")) ? &options->weight_only
                                                  : NULL;
  if (!list)
    return yaml_wrong(r, "there are float and weight-only", "there is no key '" SV_FMT "'",
                      SV_ARG(key));
  if (list->size)
    return yaml_wrong(r, "give it once, with a list", "'" SV_FMT "' is there twice", SV_ARG(key));
  TRY(yaml_next(r));
  return read_terms(r, list);
}

static EtcStatus read_all(YamlReader *r, QuantOptions *options) {
  EtcStatus status = yaml_begin(r, "expected a mapping, as in 'float: [add]'");
  while (yaml_more(r, &status))
    status = read_entry(r, options);
  TRY(status);
  return yaml_end(r);
}

EtcStatus quantize_config_read(Session *s, const char *path, QuantOptions *options) {
  MappedFile file;
  YamlReader *r;
  TRY(session_status(file_map(&file, &s->arena, &s->sink, path)));
  options->floats = options->weight_only = SV("");
  EtcStatus status = yaml_open(&r, s, DIAG_QUANT_CONFIG, "a quantization config",
                               sv_from(file.path), yaml_text(&file));
  if (status == ETC_OK) {
    status = read_all(r, options);
    yaml_close(r);
  }
  file_unmap(&file);
  return status;
}

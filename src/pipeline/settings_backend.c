/* --backend NAME:KEY=VALUE,…: which backends, and what they are told. */
#include "backends/selection.h"
#include "onnx/import.h"
#include "pipeline/settings.h"

#include "support/text.h"

static EtcStatus unknown_backend(Session *s, StrView name) {
  const char *hint = session_did_you_mean(s, registry_nearest_backend(&s->registry, name));
  return session_usage(s, "--backend",
                       hint ? hint : "'etc backends' lists the backends; others come with --plugin",
                       "there is no backend '" SV_FMT "'", SV_ARG(name));
}

/* Reports a setting that the backend does not have. */
static EtcStatus find_setting(Session *s, const Backend *backend, StrView key, uint32_t *row) {
  const char *names[BACKEND_MAX_SETTINGS + 1];
  for (*row = 0; backend->settings[*row].name; (*row)++) {
    if (sv_eq_str(key, backend->settings[*row].name))
      return ETC_OK;
    names[*row] = backend->settings[*row].name;
  }
  names[*row] = "whole";
  const char *hint = session_did_you_mean(s, text_nearest(key, names, *row + 1));
  return session_usage(
      s, "--backend",
      hint ? hint
      : backend->plugin
          ? "'etc backends' lists the settings of each backend, and of plug-ins that it is "
            "given"
          : "'etc backends' lists the settings of each backend",
      "backend '%s' has no setting '" SV_FMT "'", backend->name, SV_ARG(key));
}

size_t session_operators(const char *names[OPERATORS_MAX]) {
  size_t count = 0;
  const OnnxOpRow *row;
  while (count < OPERATORS_MAX && (row = onnx_op_row((uint32_t)count)))
    names[count++] = row->name;
  return count;
}

bool session_is_operator(StrView name) {
  const OnnxOpRow *row;
  for (uint32_t i = 0; (row = onnx_op_row(i)); i++)
    if (sv_eq_str(name, row->name))
      return true;
  return false;
}

/* Reports a term that is no operator of ONNX. */
static EtcStatus check_operator(Session *s, const BackendSetting *setting, StrView term) {
  const char *names[OPERATORS_MAX];
  if (session_is_operator(term))
    return ETC_OK;
  const char *hint = session_did_you_mean(s, text_nearest(term, names, session_operators(names)));
  return session_usage(s, "--backend", hint ? hint : "'etc ops --onnx' lists the operators",
                       "%s: there is no operator '" SV_FMT "'", setting->name, SV_ARG(term));
}

static EtcStatus check_nodes(Session *s, const Backend *backend, const BackendSetting *setting,
                             StrView value) {
  StrView rest = value, term;
  while (selection_next(&rest, &term)) {
    if (selection_names_operator(term)) {
      TRY(check_operator(s, setting, term));
      continue;
    }
    if (selection_term_known(backend, term))
      continue;
    const char *hint = session_did_you_mean(s, selection_nearest(backend, term, &s->arena));
    return session_usage(
        s, "--backend", hint ? hint : "'etc help backends' says how ops and nodes are named",
        "%s: backend '%s' takes no op '" SV_FMT "'", setting->name, backend->name, SV_ARG(term));
  }
  return ETC_OK;
}

static EtcStatus check_value(Session *s, const Backend *backend, const BackendSetting *setting,
                             StrView value) {
  uint64_t number;
  if (value.size && setting->kind == SETTING_TEXT)
    return ETC_OK;
  if (value.size && setting->kind == SETTING_NODES)
    return check_nodes(s, backend, setting, value);
  if (setting->kind == SETTING_CHOICE && text_among(value, setting->argument))
    return ETC_OK;
  if (setting->kind == SETTING_NUMBER && text_parse_u64(value, &number) && number >= 1 &&
      number <= UINT32_MAX)
    return ETC_OK;
  return session_usage(
      s, "--backend",
      arena_printf(&s->arena, "write %s:%s=%s", backend->name, setting->name, setting->argument),
      "%s does not take '" SV_FMT "'", setting->name, SV_ARG(value));
}

/* whole, whole=true or whole=false: a setting that all backends have. */
static EtcStatus set_whole(Session *s, BackendChoice *choice, StrView value) {
  choice->whole = value.size == 0 || sv_eq(value, SV("true"));
  if (choice->whole || sv_eq(value, SV("false")))
    return ETC_OK;
  return session_usage(s, "--backend",
                       arena_printf(&s->arena, "write %s:whole", choice->backend->name),
                       "whole does not take '" SV_FMT "'", SV_ARG(value));
}

/* KEY=VALUE */
static EtcStatus set_one(Session *s, BackendChoice *choice, StrView text) {
  const Backend *backend = choice->backend;
  StrView key = text, value = {0};
  uint32_t row;
  (void)session_split(text, '=', &key, &value);
  if (sv_eq(key, SV("whole")))
    return set_whole(s, choice, value);
  TRY(find_setting(s, backend, key, &row));
  TRY(check_value(s, backend, &backend->settings[row], value));
  if (choice->settings[row].size)
    return session_usage(s, "--backend", "give each setting once", "%s is given twice",
                         backend->settings[row].name);
  choice->settings[row] = sv_from(arena_strdup(&s->arena, value));
  return ETC_OK;
}

EtcStatus session_set_backend(Session *s, StrView value) {
  StrView name = value, rest = {0};
  (void)session_split(value, ':', &name, &rest);
  if (sv_eq(value, SV("portable")))
    return ETC_OK; /* the kernels that run what no backend takes */
  BackendChoice choice = {.backend = registry_backend(&s->registry, name)};
  if (!choice.backend)
    return unknown_backend(s, name);
  PassOptions *options = &settings_options(s)->pass;
  for (uint32_t i = 0; i < options->backend_count; i++)
    if (options->backends[i].backend == choice.backend)
      return session_usage(s, "--backend", "give each backend once", "backend '%s' is given twice",
                           choice.backend->name);
  while (rest.size) {
    StrView one = rest, others = {0};
    (void)session_split(rest, ',', &one, &others);
    TRY(set_one(s, &choice, one));
    rest = others;
  }
  BackendChoice *list = ARENA_ARRAY(&s->arena, BackendChoice, options->backend_count + 1u);
  if (options->backend_count)
    memcpy(list, options->backends, options->backend_count * sizeof *list);
  list[options->backend_count++] = choice;
  options->backends = list;
  return ETC_OK;
}

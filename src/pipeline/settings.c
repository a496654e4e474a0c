/* The options of a session by name: one row an option, the same names as on the command line. */
#include "pipeline/settings.h"

#include <stddef.h>

#include "pipeline/budget.h"
#include "pipeline/constant_methods.h"
#include "pipeline/derive.h"
#include "pipeline/max_drop.h"
#include "pipeline/report.h"
#include "support/parallel.h"
#include "support/text.h"

/* How many characters of a hint stay as they are in recipes: a command in quotes, or one. */
static size_t kept_length(const char *hint) {
  const char *end = strncmp(hint, "'etc ", 5) == 0 ? strchr(hint + 1, '\'') : NULL;
  return end ? (size_t)(end - hint) + 1 : 1;
}

/* The hint in the words of a recipe: "--kernels portable" is "kernels: portable" there. */
static const char *recipe_hint(Session *s, const char *hint) {
  StrBuf text = {0};
  while (*hint) {
    size_t length = strncmp(hint, "--", 2) == 0 ? strcspn(hint + 2, " ,.;:)") : 0;
    StrView key = {hint + 2, length};
    if (length && session_is_recipe_key(key)) {
      bool value = hint[2 + length] == ' ';
      strbuf_printf(&text, value ? SV_FMT ":" : "the key " SV_FMT, SV_ARG(key));
      hint += 2 + length;
      continue;
    }
    length = kept_length(hint);
    strbuf_append(&text, (StrView){hint, length});
    hint += length;
  }
  return strbuf_keep(&text, &s->arena).data;
}

/* Whether a recipe is read or set, not the options of a textual graph. */
static bool in_recipe(const Session *s) {
  const Layer *layer = s->setting.layer;
  return s->setting.at.line && (!layer || layer->priority < PRIORITY_FILE);
}

EtcStatus session_usage(Session *s, const char *option, const char *hint, const char *format, ...) {
  DiagPlace place = s->setting.at.line ? s->setting.at : DIAG_NOWHERE;
  place.option = s->setting.at.line ? SV("") : sv_from(option);
  Diag *d = diag_begin(&s->sink, s->setting.at.line ? DIAG_RECIPE : DIAG_USAGE, place);
  va_list args;
  va_start(args, format);
  diag_vmessage(d, "", format, args);
  va_end(args);
  if (!hint && s->setting.at.line)
    hint = "'etc help lower' lists the options";
  if (hint)
    diag_hint(d, "%s", in_recipe(s) ? recipe_hint(s, hint) : hint);
  (void)diag_end(d);
  return ETC_USAGE;
}

EtcStatus session_missing(Session *s, const char *option, const char *hint, const char *what,
                          StrView value) {
  return session_usage(s, option, hint, "'" SV_FMT "': the %s is missing", SV_ARG(value), what);
}

static char *keep(Session *s, StrView text) { return arena_strdup(&s->arena, text); }

MethodOptions *settings_options(Session *s) { return &s->setting.layer->options; }

const char *session_path_in(Session *s, const char *folder, StrView path) {
  if (!folder || !folder[0] || path.data[0] == '/' || sv_eq(path, SV("-")))
    return keep(s, path);
  return arena_printf(&s->arena, "%s" SV_FMT, folder, SV_ARG(path));
}

const char *session_did_you_mean(Session *s, const char *nearest) {
  return nearest ? arena_printf(&s->arena, "did you mean '%s'?", nearest) : NULL;
}

bool session_split(StrView value, char at, StrView *name, StrView *rest) {
  const char *found = value.size ? memchr(value.data, at, value.size) : NULL;
  if (!found)
    return false;
  *name = (StrView){value.data, (size_t)(found - value.data)};
  *rest = (StrView){found + 1, value.size - name->size - 1};
  return name->size != 0;
}

bool session_split_operator(StrView name, StrView *domain, StrView *op) {
  size_t dot = name.size;
  while (dot > 0 && name.data[dot - 1] != '.')
    dot--;
  *op = (StrView){name.data + dot, name.size - dot};
  *domain = (StrView){name.data, dot ? dot - 1 : 0};
  bool has_domain = domain->size > 0;
  if (sv_eq_str(*domain, "ai.onnx"))
    *domain = SV("");
  return has_domain;
}

EtcStatus session_pair(Session *s, const PairForm *form, StrView value, StrView *first,
                       StrView *second) {
  const char *missing = NULL;
  *first = *second = SV("");
  if (!session_split(value, form->at, first, second) && value.size && value.data[0] == form->at)
    missing = form->first;
  else if (second->size == 0)
    missing = form->second;
  return missing ? session_missing(s, form->option, form->hint, missing, value) : ETC_OK;
}

const char *session_path(Session *s, StrView path) {
  const char *known = session_path_in(s, s->setting.folder, path);
  if (s->setting.at.line) {
    DiagNamed *named = ARENA_NEW(&s->arena, DiagNamed);
    *named = (DiagNamed){.path = known, .at = s->setting.at, .next = s->sink.named};
    s->sink.named = named;
  }
  return known;
}

static TextOption text_option(Session *s, StrView text) {
  return (TextOption){.text = sv_from(keep(s, text)),
                      .folder = s->setting.folder ? s->setting.folder : "",
                      .used = ARENA_NEW(&s->arena, bool)};
}

/* What the names mean is known when the model is. */
static EtcStatus set_state(Session *s, StrView value) {
  static const PairForm form = {"--state",
                                "write --state INPUT:OUTPUT or --state INPUT:OUTPUT=FILE.npy",
                                "input", ':', "output"};
  StrView input, output;
  TRY(session_pair(s, &form, value, &input, &output));
  MethodOptions *o = settings_options(s);
  POOL_PUSH(o->states, o->state_count, o->state_capacity, text_option(s, value));
  return ETC_OK;
}

static EtcStatus set_value(Session *s, StrView value) {
  static const PairForm form = {"--value", "write --value INPUT=NUMBER or --value INPUT=FILE.npy",
                                "input", '=', "value"};
  StrView input, text;
  TRY(session_pair(s, &form, value, &input, &text));
  if (!onnx_value_is_number(text))
    value = sv_from(arena_printf(&s->arena, SV_FMT "=%s", SV_ARG(input), session_path(s, text)));
  MethodOptions *o = settings_options(s);
  POOL_PUSH(o->values, o->value_count, o->value_capacity, text_option(s, value));
  return ETC_OK;
}

static EtcStatus set_method(Session *s, StrView value) {
  static const PairForm form = {"--method", "write --method NAME=MODEL.onnx", "name", '=', "model"};
  StrView name, path;
  TRY(session_pair(s, &form, value, &name, &path));
  return session_add_source(s, keep(s, name), session_path(s, path));
}

static EtcStatus number(Session *s, const char *option, StrView value, int64_t lo, int64_t hi,
                        int64_t *out) {
  if (text_parse_i64(value, out) && *out >= lo && *out <= hi)
    return ETC_OK;
  return session_usage(
      s, option,
      arena_printf(&s->arena, "give a number from %lld to %lld", (long long)lo, (long long)hi),
      "%s does not take '" SV_FMT "'", option, SV_ARG(value));
}

static EtcStatus set_model(Session *s, StrView value) {
  const char *method = s->setting.layer->method;
  return session_add_source(s, method ? method : "forward", keep(s, value));
}

static EtcStatus set_threads(Session *s, StrView value) {
  int64_t threads = 0;
  TRY(number(s, "--threads", value, 0, 4096, &threads));
  s->threads = (unsigned)threads;
  (void)parallel_set_threads(s->threads);
  return ETC_OK;
}
static EtcStatus set_bisect_limit(Session *s, StrView value) {
  s->manager.options.bisect = true;
  return number(s, "--bisect-limit", value, -1, UINT32_MAX, &s->manager.options.bisect_limit);
}

/* Libraries of kernels, with commas between them. */
static EtcStatus set_kernels(Session *s, StrView value) {
  bool portable = false, quantized = false;
  while (value.size) {
    StrView name = value, rest = {0};
    (void)session_split(value, ',', &name, &rest);
    value = rest;
    if (!sv_eq(name, SV("portable")) && !sv_eq(name, SV("quantized")))
      return session_usage(s, "--kernels", "the libraries are 'portable' and 'quantized'",
                           "there is no kernel library '" SV_FMT "'", SV_ARG(name));
    portable |= sv_eq(name, SV("portable"));
    quantized |= sv_eq(name, SV("quantized"));
  }
  if (!portable)
    return session_usage(s, "--kernels", "give --kernels portable,quantized",
                         "programs need the kernels of the library 'portable'");
  settings_options(s)->pass.quantized_kernels = quantized;
  return ETC_OK;
}

static EtcStatus set_budget(Session *s, StrView value) {
  return budget_read(s, keep(s, value), &s->budget);
}
/* The position of the value among words, "a|b|c". */
static EtcStatus choose(Session *s, const char *option, StrView value, const char *words,
                        uint32_t *index) {
  if (text_among(value, words)) {
    *index = text_index(value, words);
    return ETC_OK;
  }
  StrBuf list = {0};
  text_append_words(&list, words, " and ");
  EtcStatus status =
      session_usage(s, option, arena_printf(&s->arena, "there are %s", strbuf_cstr(&list)),
                    "%s does not take '" SV_FMT "'", option, SV_ARG(value));
  strbuf_release(&list);
  return status;
}

/* Text or JSON; text when nothing is said. */
static EtcStatus choose_json(Session *s, const char *option, StrView value, bool *json) {
  uint32_t index = 0;
  EtcStatus status = value.size ? choose(s, option, value, "text|json", &index) : ETC_OK;
  *json = index == 1;
  return status;
}
static EtcStatus set_size(Session *s, StrView value) {
  s->size = true;
  return choose_json(s, "--size", value, &s->size_json);
}
static EtcStatus set_depfile_target(Session *s, StrView value) {
  s->depfile_target = keep(s, value);
  return ETC_OK;
}
static EtcStatus set_bundle(Session *s, StrView value) {
  settings_options(s)->bundle = keep(s, value);
  return ETC_OK;
}
static EtcStatus set_explain(Session *s, StrView value) {
  uint32_t form = 0;
  EtcStatus status = value.size ? choose(s, "--explain", value, "text|table|json", &form) : ETC_OK;
  s->sink.explain = form == 0;
  s->explain_table = form == 1;
  s->explain_json = form == 2;
  return status;
}
static EtcStatus set_time_passes(Session *s, StrView value) {
  s->time_passes = true;
  return choose_json(s, "--time-passes", value, &s->time_json);
}
static EtcStatus set_diagnostics(Session *s, StrView value) {
  bool json;
  EtcStatus status = choose_json(s, "--diagnostics", value, &json);
  s->sink.format = json ? DIAG_JSON : DIAG_TEXT;
  return status;
}
/* "auto" is for the command to decide, which knows the terminal. */
static EtcStatus set_color(Session *s, StrView value) {
  uint32_t when = 0;
  EtcStatus status = choose(s, "--color", value, "auto|always|never", &when);
  if (when)
    s->sink.color = when == 1;
  return status;
}

static EtcStatus set_plugin(Session *s, StrView value) {
  return session_status(registry_load(&s->registry, keep(s, value)));
}

/* What an option belongs to: the program, its methods, or the graphs of the methods, which bring it
 * along when they are written as text and read back. */
typedef enum SettingScope { OF_PROGRAM, OF_METHOD, OF_GRAPHS, OF_SOURCE } SettingScope;

/* What stands behind the name. */
typedef enum SettingValue {
  OPTIONAL, /* text, or nothing */
  TEXT,
  PATH, /* read as s->setting.folder knows it; the setter gets it as the present folder does */
  PATH_OR_RANDOM
} SettingValue;

/* What it is to the cache (cache.h). */
typedef enum CacheRole {
  IN_KEY,     /* the program depends on it */
  NOT_IN_KEY, /* … does not, or depends on contents of files, which are in the key anyway */
  BESIDES     /* writes or prints more than the program: not with the cache */
} CacheRole;

typedef struct Setting {
  const char *name;
  EtcStatus (*set)(Session *s, StrView value); /* NULL: flag or path says what it sets */
  SettingValue value;
  SettingScope scope;
  uint32_t bit; /* OptionBit; 0: repeated, or of the program */
  CacheRole cache;
  size_t flag; /* the bool in the session that becomes true */
  size_t path; /* the text in the session that becomes the path of the value */
} Setting;
#define IN_SESSION(field) offsetof(Session, field)

static const Setting settings[] = {
    {"method", set_method, TEXT, .cache = NOT_IN_KEY},
    {"dim", session_set_dim, TEXT, OF_METHOD, 0},
    {"bound", session_set_bound, TEXT, OF_METHOD, 0},
    {"state", set_state, TEXT, OF_METHOD, 0},
    {"bundle", set_bundle, PATH, OF_METHOD, GIVEN_BUNDLE, .cache = BESIDES},
    {"share-state", session_set_share_state, TEXT},
    {"value", set_value, TEXT, OF_METHOD, 0},
    {"custom-op", session_set_custom_op, TEXT},
    {"lowered", session_set_lowered, TEXT},
    {"constant", session_set_constant, TEXT},
    {"derive", session_set_derive, TEXT, OF_METHOD, GIVEN_DERIVE},
    {"pass", session_set_pass, TEXT, OF_GRAPHS, 0},
    {"plan", session_set_plan, TEXT, OF_GRAPHS, GIVEN_PLAN},
    {"fold-limit", session_set_fold_limit, TEXT, OF_GRAPHS, GIVEN_FOLD_LIMIT},
    {"memory", session_set_memory, TEXT, OF_GRAPHS, GIVEN_MEMORY},
    {"max-arena", session_set_max_arena, TEXT, OF_GRAPHS, GIVEN_MAX_ARENA},
    {"kernels", set_kernels, TEXT, OF_GRAPHS, GIVEN_KERNELS},
    {"backend", session_set_backend, TEXT, OF_GRAPHS, GIVEN_BACKENDS},
    {"explain", set_explain, OPTIONAL, .cache = BESIDES},
    {"artifacts", .path = IN_SESSION(artifacts), .value = PATH, .cache = BESIDES},
    {"map", .path = IN_SESSION(map), .value = PATH,
     .cache = NOT_IN_KEY}, /* whether there is one is, see cache.c */
    {"budget", set_budget, PATH, .cache = NOT_IN_KEY},
    {"size", set_size, OPTIONAL, .cache = BESIDES},
    {"depfile", .path = IN_SESSION(depfile), .value = PATH, .cache = NOT_IN_KEY},
    {"depfile-target", set_depfile_target, TEXT, .cache = NOT_IN_KEY},
    {"output", .path = IN_SESSION(output), .value = PATH, .cache = NOT_IN_KEY},
    {"werror", .flag = IN_SESSION(sink.werror)},
    {"allow-linked-data", .flag = IN_SESSION(ctx.linked_data)},
    {"write-depfile", .flag = IN_SESSION(default_depfile), .cache = NOT_IN_KEY},
    {"fsync", .flag = IN_SESSION(sync), .cache = NOT_IN_KEY},
    {"threads", set_threads, TEXT, .cache = NOT_IN_KEY},
    {"print-before", session_set_print_before, TEXT, .cache = BESIDES},
    {"print-after", session_set_print_after, TEXT, .cache = BESIDES},
    {"print-changed", .flag = IN_SESSION(manager.options.print_changed), .cache = BESIDES},
    {"full-constants", .flag = IN_SESSION(manager.options.full_constants)},
    {"stop-after", session_set_stop_after, TEXT},
    {"skip-pass", session_set_skip_pass, TEXT},
    {"bisect-limit", set_bisect_limit, TEXT, .cache = BESIDES},
    {"time-passes", set_time_passes, OPTIONAL, .cache = BESIDES},
    {"roundtrip", .flag = IN_SESSION(manager.options.roundtrip)},
    {"verify-each", .flag = IN_SESSION(manager.options.verify_each)},
    {"no-verify", .flag = IN_SESSION(manager.options.verify_never)},
    {"diagnostics", set_diagnostics, TEXT, .cache = NOT_IN_KEY},
    {"color", set_color, TEXT, .cache = NOT_IN_KEY},
    {"verbose", .flag = IN_SESSION(sink.verbose), .cache = NOT_IN_KEY},
    {"quiet", .flag = IN_SESSION(sink.quiet), .cache = NOT_IN_KEY},
    {"quantize", session_set_quantize, TEXT, OF_GRAPHS, GIVEN_SCHEME},
    {"calibrate", session_set_calibrate, PATH_OR_RANDOM, OF_GRAPHS, GIVEN_DATA,
     .cache = NOT_IN_KEY},
    {"calibrate-method", session_set_calibrate_method, TEXT, OF_GRAPHS, GIVEN_RANGE_METHOD},
    {"quantize-config", session_set_quantize_config, PATH, OF_GRAPHS, GIVEN_QUANTIZE_CONFIG,
     .cache = NOT_IN_KEY},
    {"ranges", session_set_ranges, PATH, OF_GRAPHS, GIVEN_RANGES, .cache = NOT_IN_KEY},
    {"compare", session_set_compare, PATH, OF_GRAPHS, GIVEN_COMPARE, .cache = NOT_IN_KEY},
    {"max-drop", session_set_max_drop, TEXT, OF_GRAPHS, GIVEN_MAX_DROP},
    {"plugin", set_plugin, PATH, .cache = NOT_IN_KEY},
    {"recipe", .path = IN_SESSION(recipe), .value = PATH, .cache = NOT_IN_KEY},
    {"external-weights", .path = IN_SESSION(external), .value = PATH, .cache = NOT_IN_KEY},
    {"data", .path = IN_SESSION(external_data), .value = PATH},
    {"cache", .path = IN_SESSION(cache.folder), .value = PATH, .cache = NOT_IN_KEY},
    {"report", session_set_report, PATH, .cache = BESIDES},
};
/* What only recipes say: the command has an argument for it. */
static const Setting model_setting = {"model", set_model, PATH, OF_SOURCE, 0, .cache = NOT_IN_KEY};

/* --- keys of recipes: the options of 'etc lower' --- */

typedef enum CommandBit {
#define COMMAND(id, name, arguments, summary, description, examples) BIT_##id,
#include "options.def"
  BIT_COUNT
} CommandBit;
#define ON(command) (1u << BIT_##command)
#define EVERY ((1u << BIT_COUNT) - 1)

typedef enum KeyKind { KEY_FLAG, KEY_VALUE, KEY_REPEAT, KEY_CHOICE } KeyKind;

static const struct {
  const char *name;
  KeyKind kind;
  bool known;
  const char *argument;
} options[] = {
#define OPTION(id, commands, long, short, kind, argument, summary)                                 \
  {long, KEY_##kind, ((commands)&ON(lower)) != 0, argument},
#include "options.def"
};

/* -1 for what is no option of 'etc lower', and for what a recipe cannot say. */
static int find_key(StrView name) {
  for (size_t i = 0; i < COUNT_OF(options); i++)
    if (options[i].known && sv_eq_str(name, options[i].name))
      return sv_eq(name, SV("recipe")) || sv_eq(name, SV("help")) ? -1 : (int)i;
  return -1;
}

bool session_is_recipe_key(StrView name) { return find_key(name) >= 0; }

bool session_recipe_repeats(StrView name) {
  int key = find_key(name);
  return key >= 0 && options[key].kind == KEY_REPEAT;
}

bool session_recipe_joins(StrView name) {
  int key = find_key(name);
  return key >= 0 && sv_has_suffix(sv_from(options[key].argument), SV(",..."));
}

/* true and false of an option that needs no value: "" or off. */
static EtcStatus read_switch(Session *s, StrView name, StrView *value, bool *off) {
  int key = find_key(name);
  KeyKind kind = key < 0 ? KEY_VALUE : options[key].kind;
  bool on = sv_eq(*value, SV("true"));
  *off = false;
  if (kind != KEY_FLAG && kind != KEY_CHOICE)
    return ETC_OK;
  *off = sv_eq(*value, SV("false"));
  if (kind == KEY_FLAG && !on && !*off)
    return session_usage(s, arena_printf(&s->arena, "--" SV_FMT, SV_ARG(name)),
                         "write true or false", SV_FMT " does not take '" SV_FMT "'", SV_ARG(name),
                         SV_ARG(*value));
  if (on)
    *value = SV("");
  return ETC_OK;
}

static bool is_path(const Setting *setting, StrView value) {
  return setting->value == PATH ||
         (setting->value == PATH_OR_RANDOM && !sv_eq(value, SV("random")));
}

/* Keeps the option as it was given, unless it is in a list of its own. */
static void say(Session *s, const Setting *setting, StrView value) {
  if (!value.size)
    value = SV("true");
  SaidOption said = {sv_from(arena_printf(&s->arena, "%s=" SV_FMT, setting->name, SV_ARG(value))),
                     setting->bit, setting->scope == OF_GRAPHS};
  MethodOptions *o = settings_options(s);
  if (setting->scope == OF_GRAPHS || (setting->scope == OF_METHOD && setting->bit))
    POOL_PUSH(o->said, o->said_count, o->said_capacity, said);
  else if (setting->scope == OF_PROGRAM && setting->set != set_method && s->setting.at.line)
    POOL_PUSH(s->said, s->said_count, s->said_capacity, said);
}

/* Whether a place that wins over this one has set the option of the program. */
static bool is_overruled(Session *s, const Setting *setting) {
  if (setting->scope != OF_PROGRAM || session_recipe_repeats(sv_from(setting->name)))
    return false;
  size_t row = (size_t)(setting - settings);
  int priority = s->setting.layer->priority + 1;
  if (s->given[row] && s->given[row] < priority)
    return true;
  s->given[row] = priority;
  return false;
}

/* The option for the key of the cache; texts end with NUL. Of a file that is read only the contents
 * count, and which method has it. */
static void tell_cache(Session *s, const Setting *setting, StrView value) {
  const Layer *layer = s->setting.layer;
  if (setting->cache == BESIDES)
    s->cache.extra_output = setting->name;
  if (setting->cache == NOT_IN_KEY)
    value = SV("");
  if (setting->cache == IN_KEY || (setting->cache == NOT_IN_KEY &&
                                   (setting->scope == OF_METHOD || setting->scope == OF_GRAPHS)))
    strbuf_printf(&s->cache.options, "%d %s%c%s%c" SV_FMT "%c", layer->priority,
                  layer->method ? layer->method : "", 0, setting->name, 0, SV_ARG(value), 0);
}

static EtcStatus set(Session *s, const Setting *setting, StrView value) {
  if (setting->set)
    return setting->set(s, value);
  if (setting->flag)
    *(bool *)((char *)s + setting->flag) = true;
  else
    *(const char **)((char *)s + setting->path) = keep(s, value);
  return ETC_OK;
}

static EtcStatus apply(Session *s, const Setting *setting, StrView value) {
  const char *option = arena_printf(&s->arena, "--%s", setting->name);
  if (!s->setting.layer)
    s->setting.layer = session_layer(s, PRIORITY_COMMAND, NULL);
  if (setting->value && value.size == 0)
    return session_usage(s, option, NULL, "%s%s needs a value", s->setting.at.line ? "" : "--",
                         setting->name);
  if (setting->scope == OF_PROGRAM && s->setting.layer->method)
    return session_usage(s, option, "say it outside of the methods", "%s is of the whole program",
                         setting->name);
  if (is_overruled(s, setting))
    return ETC_OK;
  if (is_path(setting, value))
    value = sv_from(session_path(s, value));
  tell_cache(s, setting, value);
  s->setting.overruled = false;
  EtcStatus status = set(s, setting, value);
  if (status != ETC_OK)
    return status;
  if (setting->bit)
    settings_options(s)->given |= setting->bit;
  if (!s->setting.overruled)
    say(s, setting, value);
  return ETC_OK;
}

static const Setting *find_setting(StrView name) {
  for (size_t i = 0; i < COUNT_OF(settings); i++)
    if (sv_eq_str(name, settings[i].name))
      return &settings[i];
  return NULL;
}

EtcStatus session_recipe_knows(Session *s, StrView name) {
  const char *names[COUNT_OF(options) + 1] = {model_setting.name};
  size_t count = 1;
  if (find_key(name) >= 0 || sv_eq_str(name, model_setting.name))
    return ETC_OK;
  for (size_t i = 0; i < COUNT_OF(options); i++)
    if (find_key(sv_from(options[i].name)) >= 0)
      names[count++] = options[i].name;
  const char *hint = session_did_you_mean(s, text_nearest(name, names, count));
  return session_usage(s, "", hint ? hint : "keys are options of 'etc lower', without the dashes",
                       "a recipe has no key '" SV_FMT "'", SV_ARG(name));
}

EtcStatus session_recipe_set(Session *s, StrView name, StrView value) {
  bool off;
  if (sv_eq_str(name, model_setting.name))
    return apply(s, &model_setting, value);
  EtcStatus status = read_switch(s, name, &value, &off);
  if (status != ETC_OK || off)
    return status;
  const Setting *setting = find_setting(name);
  return setting ? apply(s, setting, value) : session_recipe_knows(s, name);
}

EtcStatus session_set_text(Session *s, StrView text, bool *of_program) {
  StrView name, value;
  const Setting *setting = session_split(text, '=', &name, &value) ? find_setting(name) : NULL;
  *of_program =
      setting && (setting->set == session_set_constant || setting->set == session_set_share_state);
  if (*of_program)
    s->setting.layer = session_layer(s, s->setting.layer->priority, NULL);
  if (!setting || (setting->scope != OF_GRAPHS && !*of_program))
    return session_usage(s, "", NULL, "a graph cannot bring the option '" SV_FMT "' along",
                         SV_ARG(text));
  return apply(s, setting, value);
}

EtcStatus session_set(Session *s, StrView name, StrView value) {
  const char *names[COUNT_OF(settings)];
  const Setting *setting = find_setting(name);
  bool off = false;
  if (setting && value.size)
    TRY(read_switch(s, name, &value, &off));
  if (setting)
    return off ? ETC_OK : apply(s, setting, value);
  for (size_t i = 0; i < COUNT_OF(settings); i++)
    names[i] = settings[i].name;
  if (sv_starts_with(name, SV("--")))
    return session_usage(s, keep(s, name), "leave out the dashes",
                         "there is no option '" SV_FMT "'", SV_ARG(name));
  return session_usage(s, keep(s, name),
                       session_did_you_mean(s, text_nearest(name, names, COUNT_OF(names))),
                       "there is no option '" SV_FMT "'", SV_ARG(name));
}

const uint32_t setting_count = COUNT_OF(settings);

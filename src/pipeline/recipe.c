/* See recipe.h. */
#include "pipeline/recipe.h"

#include <errno.h>
#include <strings.h>
#include <unistd.h>

#include "pipeline/constant_methods.h"
#include "pipeline/settings.h"
#include "pipeline/yaml_reader.h"
#include "support/text.h"

enum { MAX_KEYS = 64 };

/* One option that a recipe sets. */
typedef struct Entry {
  const char *method; /* NULL: all */
  StrView key, value;
  DiagPlace at;
} Entry;

typedef struct Reader {
  Session *s;
  YamlReader *yaml;
  StrView keys[MAX_KEYS]; /* of the mapping that is being read */
  uint32_t key_count;
  const char *method; /* whose section it is, or NULL */
  Entry *entries;
  uint32_t entry_count;
} Reader;

/* Keeps what the recipe says; it is set when all of it is known. */
static void add_entry(Reader *r, StrView key, StrView value) {
  ARENA_PUSH(&r->s->arena, r->entries, r->entry_count,
             (Entry){.method = r->method, .key = key, .value = value, .at = yaml_place(r->yaml)});
}

/* A scalar, or a list that is joined. */
static EtcStatus read_joined(Reader *r, const char *between, StrView *value) {
  if (r->yaml->event.type != YAML_SEQUENCE_START_EVENT)
    return yaml_scalar(r->yaml, "a value or a list", value);
  *value = SV("");
  EtcStatus status = ETC_OK;
  while (yaml_more(r->yaml, &status)) {
    StrView one = {0};
    status = yaml_scalar(r->yaml, "a value", &one);
    if (status == ETC_OK)
      *value = sv_from(arena_printf(&r->s->arena, SV_FMT "%s" SV_FMT, SV_ARG(*value),
                                    value->size ? between : "", SV_ARG(one)));
  }
  return status;
}

/* Whether programs differ in what they read the text without quotes as: YAML 1.1 and 1.2 have other
 * words for null and bools, and other numbers (0x10, 0o17, 1_000, 12:30). text ends with NUL. */
static bool is_ambiguous(StrView text) {
  static const char *const words[] = {"null", "~", "", "yes", "no", "on", "off"};
  for (size_t i = 0; i < COUNT_OF(words); i++)
    if (strcasecmp(text.data, words[i]) == 0)
      return true;
  if (strcasecmp(text.data, "true") == 0 || strcasecmp(text.data, "false") == 0)
    return text.data[0] == 'T' || text.data[0] == 'F';
  bool number = strspn(text.data, "+-0123456789") != 0 &&
                strspn(text.data, "+-0123456789abcdefABCDEFxo_:.") == text.size;
  double value;
  return number && !text_parse_double(text, &value);
}

/* A scalar as --constant takes it: in quotes where the file has some, or where a list has text,
 * which --constant takes with all of its commas. */
static EtcStatus read_constant(Reader *r, bool in_list, StrBuf *out) {
  StrView text = {0};
  TRY(yaml_scalar(r->yaml, "a value", &text));
  bool quoted = r->yaml->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
  if (!quoted && is_ambiguous(text))
    return yaml_wrong(r->yaml, "write true, false or a decimal number; text goes in quotes",
                      "'" SV_FMT "' without quotes is not the same value in all versions of YAML",
                      SV_ARG(text));
  if (!quoted && in_list && sv_has_suffix(text, SV(".npy")))
    return yaml_wrong(r->yaml, "write 'NAME: FILE.npy'; in quotes it is text",
                      "'" SV_FMT "': a list has no arrays", SV_ARG(text));
  if (quoted || (in_list && session_constant_is_text(text))) {
    strbuf_append_char(out, '"');
    strbuf_append_escaped(out, text);
    strbuf_append_char(out, '"');
  } else {
    strbuf_append(out, text);
  }
  return ETC_OK;
}

/* The value of a constant method: a scalar, or a list with commas between its items. */
static EtcStatus read_constants(Reader *r, StrView *value) {
  StrBuf text = {0};
  bool list = r->yaml->event.type == YAML_SEQUENCE_START_EVENT, first = true;
  EtcStatus status = list ? ETC_OK : read_constant(r, false, &text);
  while (list && yaml_more(r->yaml, &status)) {
    strbuf_append(&text, first ? SV("") : SV(","));
    first = false;
    status = read_constant(r, true, &text);
  }
  if (status == ETC_OK && list && first)
    status = yaml_wrong(r->yaml, NULL, "a list of a constant method has one value at least");
  *value = strbuf_keep(&text, &r->s->arena);
  return status;
}

/* Whether NAME: {KEY: VALUE, …} may stand below the key. */
static bool has_settings(StrView key) {
  return sv_eq(key, SV("backend")) || sv_eq(key, SV("derive"));
}

/* {KEY: VALUE, …} as KEY=VALUE,… */
static EtcStatus read_settings(Reader *r, StrView *out) {
  *out = SV("");
  EtcStatus status = ETC_OK;
  while (yaml_more(r->yaml, &status)) {
    StrView key = {0}, value = {0};
    TRY(yaml_scalar(r->yaml, "the name of a setting", &key));
    TRY(yaml_next(r->yaml));
    TRY(read_joined(r, "+", &value));
    *out = sv_from(arena_printf(&r->s->arena, SV_FMT "%s" SV_FMT "=" SV_FMT, SV_ARG(*out),
                                out->size ? "," : "", SV_ARG(key), SV_ARG(value)));
  }
  return status;
}

static EtcStatus refuse_list(Reader *r, StrView key, StrView name) {
  if (sv_eq(key, SV("dim")))
    return yaml_wrong(r->yaml, NULL, SV_FMT " takes one size or a range, as in '" SV_FMT ": 1..3'",
                      SV_ARG(name), SV_ARG(name));
  return yaml_wrong(r->yaml, NULL, SV_FMT " takes one value, not a list or a mapping",
                    SV_ARG(name));
}

/* Of NAME: VALUE below key. */
static EtcStatus read_pair_value(Reader *r, StrView key, StrView name, StrView *value) {
  yaml_event_type_t type = r->yaml->event.type;
  if (type == YAML_MAPPING_START_EVENT && has_settings(key))
    return read_settings(r, value);
  if (sv_eq(key, SV("constant")))
    return read_constants(r, value);
  return type == YAML_SEQUENCE_START_EVENT ? refuse_list(r, key, name)
                                           : yaml_scalar(r->yaml, "a value", value);
}

/* NAME: VALUE pairs, each as NAME=VALUE; IN:OUT for states, NAME:SETTINGS for backends, NAME@STAGE
 * for passes. */
static EtcStatus read_pairs(Reader *r, StrView key) {
  bool settings = has_settings(key);
  bool colon = settings || sv_eq(key, SV("state"));
  const char *between = colon ? ":" : sv_eq(key, SV("pass")) ? "@" : "=";
  EtcStatus status = ETC_OK;
  while (yaml_more(r->yaml, &status)) {
    StrView name = {0}, value = {0};
    TRY(yaml_scalar(r->yaml, "a name", &name));
    if (memchr(name.data, between[0], name.size))
      return yaml_wrong(r->yaml, NULL, "'" SV_FMT "' has a '%s', which ends names", SV_ARG(name),
                        between);
    TRY(yaml_next(r->yaml));
    TRY(read_pair_value(r, key, name, &value));
    const char *text = arena_printf(&r->s->arena, SV_FMT "%s" SV_FMT, SV_ARG(name),
                                    settings && !value.size ? "" : between, SV_ARG(value));
    add_entry(r, key, sv_from(text));
  }
  return status;
}

/* Keys that are no options. */
static bool is_structure(StrView key) {
  return sv_eq(key, SV("methods")) || sv_eq(key, SV("include"));
}

/* A list of values, or of mappings of names to values, each as if the option were given once more.
 */
static EtcStatus read_list(Reader *r, StrView key) {
  EtcStatus status = ETC_OK;
  bool some = false;
  while (yaml_more(r->yaml, &status)) {
    StrView value = {0};
    some = true;
    if (r->yaml->event.type == YAML_MAPPING_START_EVENT && !is_structure(key)) {
      TRY(read_pairs(r, key));
      continue;
    }
    TRY(yaml_scalar(r->yaml, "a value", &value));
    add_entry(r, key, value);
  }
  if (status == ETC_OK && !some)
    return yaml_wrong(r->yaml, "leave the key out", SV_FMT " has an empty list", SV_ARG(key));
  return status;
}

static EtcStatus read_key(Reader *r, StrView *key) {
  EtcStatus status = yaml_scalar(r->yaml, "the name of an option", key);
  for (uint32_t i = 0; status == ETC_OK && i < r->key_count; i++)
    if (sv_eq(r->keys[i], *key))
      status = yaml_wrong(r->yaml, NULL, "'" SV_FMT "' is there twice", SV_ARG(*key));
  if (status != ETC_OK)
    return status;
  if (r->key_count == MAX_KEYS)
    return yaml_wrong(r->yaml, NULL, "more than %d keys", MAX_KEYS);
  r->keys[r->key_count++] = *key;
  if (is_structure(*key))
    return r->method ? yaml_wrong(r->yaml, "say it outside of the methods",
                                  SV_FMT " is of the whole recipe", SV_ARG(*key))
                     : ETC_OK;
  if (sv_eq(*key, SV("recipe")))
    return yaml_wrong(r->yaml, "write 'include: FILE.yaml'", "a recipe takes others in by include");
  if (sv_eq(*key, SV("constant-methods")))
    *key = SV("constant");
  r->s->setting.at = yaml_place(r->yaml);
  status = session_recipe_knows(r->s, *key);
  r->s->setting.at = DIAG_NOWHERE;
  return status;
}

/* KEY: VALUE pairs up to the end of a mapping. */
static EtcStatus read_mapping(Reader *r);

static EtcStatus read_method(void *reader, StrView name) {
  Reader *r = reader;
  uint32_t before = r->entry_count;
  r->method = name.data;
  r->key_count = 0;
  EtcStatus status = read_mapping(r);
  r->method = NULL;
  if (status == ETC_OK && r->entry_count == before)
    return yaml_wrong(r->yaml, "give it a model, or leave it out", "method '" SV_FMT "' is empty",
                      SV_ARG(name));
  return status;
}

/* Each method has its own keys, which may be those around it, too. */
static EtcStatus read_methods(Reader *r) {
  StrView outer[MAX_KEYS];
  uint32_t outer_count = r->key_count;
  memcpy(outer, r->keys, outer_count * sizeof *outer);
  EtcStatus status = yaml_methods(r->yaml, "{model: m.onnx}", read_method, r);
  memcpy(r->keys, outer, outer_count * sizeof *outer);
  r->key_count = outer_count;
  return status;
}

static EtcStatus read_value(Reader *r, StrView key) {
  StrView value = {0};
  if (sv_eq(key, SV("methods")))
    return read_methods(r);
  bool list = r->yaml->event.type == YAML_SEQUENCE_START_EVENT,
       pairs = r->yaml->event.type == YAML_MAPPING_START_EVENT,
       repeated = is_structure(key) || session_recipe_repeats(key);
  if (list && repeated)
    return read_list(r, key);
  if (pairs && (repeated || has_settings(key)))
    return read_pairs(r, key);
  if ((list || pairs) && !session_recipe_joins(key))
    return refuse_list(r, key, key);
  TRY(pairs  ? read_settings(r, &value)
      : list ? read_joined(r, ",", &value)
             : yaml_scalar(r->yaml, "a value", &value));
  add_entry(r, key, value);
  return ETC_OK;
}

static EtcStatus read_mapping(Reader *r) {
  EtcStatus status = ETC_OK;
  while (yaml_more(r->yaml, &status)) {
    StrView key = {0};
    TRY(read_key(r, &key));
    TRY(yaml_next(r->yaml));
    status = read_value(r, key);
  }
  return status;
}

static EtcStatus read_all(Reader *r) {
  TRY(yaml_begin(r->yaml, "a recipe is a mapping of options, as in 'plan: greedy'"));
  TRY(read_mapping(r));
  return yaml_end(r->yaml);
}

/* --- setting what was read --- */

/* A recipe, and those that include it. */
typedef struct Chain {
  const char *path;
  const struct Chain *by; /* NULL: the command line names it */
  const Entry *at;
} Chain;

static const char *folder_of(Session *s, const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? arena_strdup(&s->arena, (StrView){path, (size_t)(slash - path) + 1}) : "";
}

static EtcStatus set_entry(Session *s, const Entry *e, const char *folder, int priority) {
  s->setting =
      (SettingPlace){.layer = session_layer(s, priority, e->method), .at = e->at, .folder = folder};
  EtcStatus status = session_recipe_set(s, e->key, e->value);
  s->setting = (SettingPlace){0};
  return status;
}

/* Plug-ins first: other options may name what they bring. */
static EtcStatus set_entries(const Reader *r, const char *folder, int priority) {
  for (int plugins = 1; plugins >= 0; plugins--)
    for (uint32_t i = 0; i < r->entry_count; i++) {
      const Entry *e = &r->entries[i];
      if (sv_eq(e->key, SV("include")) || sv_eq(e->key, SV("plugin")) != (plugins == 1))
        continue;
      TRY(set_entry(r->s, e, folder, priority));
    }
  return ETC_OK;
}

static EtcStatus read_text(Reader *r, StrView file, StrView text) {
  TRY(yaml_open(&r->yaml, r->s, DIAG_RECIPE, "a recipe", file, text));
  EtcStatus status = read_all(r);
  yaml_close(r->yaml);
  return status;
}

static EtcStatus apply_chain(Session *s, const Chain *chain, int *priority);

/* Later ones go before earlier ones, and the recipe before all of them. */
static EtcStatus apply_included(const Reader *r, const Chain *chain, const char *folder,
                                int *priority) {
  for (uint32_t i = r->entry_count; i > 0; i--) {
    const Entry *e = &r->entries[i - 1];
    if (!sv_eq(e->key, SV("include")))
      continue;
    bool shipped = recipe_shipped(e->value) != NULL;
    const char *path = shipped ? e->value.data : session_path_in(r->s, folder, e->value);
    TRY(apply_chain(r->s, &(Chain){path, chain, e}, priority));
  }
  return ETC_OK;
}

static EtcStatus check_chain(Session *s, const Chain *chain, int priority) {
  bool again = false;
  for (const Chain *c = chain->by; c; c = c->by)
    again |= strcmp(c->path, chain->path) == 0 || file_same(c->path, chain->path);
  if (!again && priority < PRIORITY_FILE)
    return ETC_OK;
  Diag *d = diag_begin(&s->sink, DIAG_RECIPE, chain->at->at);
  if (again) {
    diag_message(d, "'%s' includes itself", chain->path);
    diag_hint(d, "leave one of the includes out");
  } else {
    diag_message(d, "'%s' is one recipe more than the %d that can be included", chain->path,
                 PRIORITY_FILE - PRIORITY_RECIPE);
    diag_hint(d, "include each recipe once: it is read each time that it is named");
  }
  return session_status(diag_end(d));
}

/* A name that is neither a recipe that comes with etc nor a file. */
static EtcStatus check_exists(Session *s, const Chain *chain) {
  const char *names[MAX_KEYS];
  size_t count = 0;
  const char *slash = strrchr(chain->path, '/'), *name = slash ? slash + 1 : chain->path;
  if (strchr(name, '.') || access(chain->path, F_OK) == 0)
    return ETC_OK;
  for (const RecipeText *t = recipe_texts; t->name && count < MAX_KEYS; t++)
    names[count++] = t->name;
  const char *nearest = text_nearest(sv_from(name), names, count);
  DiagPlace before = s->setting.at;
  s->setting.at = chain->at ? chain->at->at : DIAG_NOWHERE;
  EtcStatus status = session_usage(s, "--recipe",
                                   nearest ? session_did_you_mean(s, nearest)
                                           : "'etc recipe list' lists the recipes",
                                   "there is no recipe '%s', and no file '%s'", name, chain->path);
  s->setting.at = before;
  return status;
}

/* The place of a file that cannot be read is where it is included. */
static EtcStatus check_readable(Session *s, const Chain *chain) {
  if (!chain->at || access(chain->path, R_OK) == 0)
    return ETC_OK;
  return session_status(diag_report(&s->sink, DIAG_FILE_OPEN, chain->at->at,
                                    "cannot read the recipe '%s': %s", chain->path,
                                    strerror(errno)));
}

static EtcStatus apply_chain(Session *s, const Chain *chain, int *priority) {
  EtcStatus status = check_chain(s, chain, *priority);
  if (status != ETC_OK)
    return status;
  Reader r = {.s = s};
  StrView name = sv_from(chain->path);
  const RecipeText *shipped = recipe_shipped(sv_from(chain->path));
  const char *folder = shipped ? "" : folder_of(s, chain->path);
  MappedFile file;
  if (shipped) {
    status = read_text(&r, name, sv_from(shipped->text));
  } else {
    TRY(check_exists(s, chain));
    TRY(check_readable(s, chain));
    TRY(session_status(file_map(&file, &s->arena, &s->sink, chain->path)));
    status = read_text(&r, name, yaml_text(&file));
    file_unmap(&file);
  }
  if (status == ETC_OK)
    status = set_entries(&r, folder, (*priority)++);
  return status == ETC_OK ? apply_included(&r, chain, folder, priority) : status;
}

EtcStatus recipe_apply(Session *s) {
  int priority = PRIORITY_RECIPE;
  if (!s->recipe || s->recipe_read)
    return ETC_OK;
  s->recipe_read = true;
  return apply_chain(s, &(Chain){s->recipe, NULL, NULL}, &priority);
}

/* --- recipes that come with etc --- */

const RecipeText recipe_texts[] = {
#include "recipes.inc"
    {NULL, NULL},
};

const RecipeText *recipe_shipped(StrView name) {
  for (const RecipeText *t = recipe_texts; t->name; t++)
    if (sv_eq_str(name, t->name))
      return t;
  return NULL;
}

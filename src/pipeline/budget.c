/* See budget.h. Reading the file. */
#include "pipeline/budget.h"

#include "pipeline/settings.h"
#include "pipeline/yaml_reader.h"
#include "support/text.h"

enum { MAX_LIMITS = 64 };

static const struct {
  const char *group, *name;
  BudgetUnit unit;
} keys[BUDGET_KEYS] = {
#define BUDGET_KEY(id, group, name, unit, summary) {group, name, BUDGET_##unit},
#include "pipeline/budget.def"
};

/* What others call a key. */
static const struct {
  const char *word, *key;
} synonyms[] = {{"flash", "file"},   {"size", "file"},     {"weights", "constants"},
                {"sram", "arena"},   {"ram", "arena"},     {"memory", "arena"},
                {"latency", "time"}, {"method", "methods"}};

static const char *const unit_hints[] = {
    [BUDGET_BYTES] = "a size is bytes, or a number with K, M or G: 512K, 1.5M, 4MiB",
    [BUDGET_NUMBER] = "it is an integer, such as 12",
    [BUDGET_DB] = "it is a number of dB, such as 30 or 30dB",
    [BUDGET_MS] = "it is a number of milliseconds with its unit, such as 20ms"};

/* A number and its unit, which may be left out. */
static bool parse_measure(StrView text, StrView unit, double *out) {
  if (sv_has_suffix(text, unit))
    text.size -= unit.size;
  while (text.size && text.data[text.size - 1] == ' ')
    text.size--;
  return text_parse_double(text, out) && *out >= 0 && *out <= 1e15;
}

static bool parse_value(BudgetUnit unit, StrView text, double *out) {
  uint64_t number;
  switch (unit) {
  case BUDGET_BYTES:
    if (!sv_eq(text, SV("0")) && !text_parse_bytes(text, &number))
      return false;
    *out = sv_eq(text, SV("0")) ? 0 : (double)number;
    return true;
  case BUDGET_NUMBER:
    if (!text_parse_u64(text, &number) || number > UINT32_MAX)
      return false;
    *out = (double)number;
    return true;
  case BUDGET_DB:
    return parse_measure(text, SV("dB"), out);
  case BUDGET_MS:
    return sv_has_suffix(text, SV("ms")) && parse_measure(text, SV("ms"), out);
  }
  return false;
}

/* --- keys --- */

static EtcStatus unknown_key(YamlReader *r, StrView key, const char *const *names, size_t count,
                             const char *hint) {
  const char *near = session_did_you_mean(r->s, text_nearest(key, names, count));
  return yaml_wrong(r, near ? near : hint, "a budget has no key '" SV_FMT "'", SV_ARG(key));
}

static EtcStatus unknown_group(YamlReader *r, StrView key, const char *const *names, size_t count) {
  for (size_t i = 0; i < COUNT_OF(synonyms); i++)
    if (sv_eq_str(key, synonyms[i].word))
      return yaml_wrong(r, arena_printf(&r->s->arena, "did you mean '%s'?", synonyms[i].key),
                        "a budget has no key '" SV_FMT "'", SV_ARG(key));
  return unknown_key(r, key, names, count,
                     "there are file, constants, arena, kernels, delegates, outside, sqnr, time "
                     "and methods");
}

/* The first row of a group; BUDGET_KEYS, reported, when there is none. */
static EtcStatus find_group(YamlReader *r, StrView key, BudgetKey *out) {
  const char *names[BUDGET_KEYS];
  size_t count = 0;
  for (*out = 0; *out < BUDGET_KEYS; ++*out) {
    if (sv_eq_str(key, keys[*out].group))
      return ETC_OK;
    if (!count || strcmp(names[count - 1], keys[*out].group) != 0)
      names[count++] = keys[*out].group;
  }
  return unknown_group(r, key, names, count);
}

/* The row of a name within a group, "*" standing for any. */
static EtcStatus find_name(YamlReader *r, BudgetKey group, StrView name, BudgetKey *out) {
  const char *names[BUDGET_KEYS];
  size_t count = 0;
  for (*out = group; *out < BUDGET_KEYS && strcmp(keys[*out].group, keys[group].group) == 0;
       ++*out) {
    if (sv_eq_str(name, keys[*out].name) || strcmp(keys[*out].name, "*") == 0)
      return ETC_OK;
    names[count++] = keys[*out].name;
  }
  return unknown_key(
      r, name, names, count,
      arena_printf(&r->s->arena, "of %s there are %s", keys[group].group,
                   group == BUDGET_KERNELS ? "different and calls" : "count, code and memory"));
}

/* "arena.sram", "prefill: arena.sram" */
static StrView limit_name(Arena *arena, BudgetKey key, StrView name, StrView method) {
  const char *text = keys[key].group;
  if (name.size)
    text = arena_printf(arena, "%s." SV_FMT, text, SV_ARG(name));
  return sv_from(method.size ? arena_printf(arena, SV_FMT ": %s", SV_ARG(method), text) : text);
}

/* method: that it is of; empty: of the program. */
static EtcStatus add_limit(YamlReader *r, Budget *b, BudgetKey key, StrView name, StrView method) {
  StrView text = {0};
  BudgetLimit limit = {.key = key, .method = method, .at = yaml_place(r)};
  limit.name = limit_name(&r->s->arena, key, name, method);
  limit.arena = key == BUDGET_ARENA ? name : SV("");
  for (uint32_t i = 0; i < b->count; i++)
    if (sv_eq(b->limits[i].name, limit.name))
      return yaml_wrong(r, NULL, "'" SV_FMT "' is there twice", SV_ARG(limit.name));
  if (b->count == MAX_LIMITS)
    return yaml_wrong(r, NULL, "more than %d limits", MAX_LIMITS);
  TRY(yaml_scalar(r, "a limit", &text));
  if (!parse_value(keys[key].unit, text, &limit.limit))
    return yaml_wrong(r, unit_hints[keys[key].unit], SV_FMT " does not take '" SV_FMT "'",
                      SV_ARG(limit.name), SV_ARG(text));
  b->limits[b->count++] = limit;
  return ETC_OK;
}

/* {NAME: LIMIT, …} of a group. */
static EtcStatus read_group(YamlReader *r, Budget *b, BudgetKey group, StrView method) {
  EtcStatus status = ETC_OK;
  while (yaml_more(r, &status)) {
    StrView name = {0};
    BudgetKey key = group;
    TRY(yaml_scalar(r, "a name", &name));
    TRY(find_name(r, group, name, &key));
    TRY(yaml_next(r));
    status = add_limit(r, b, key, name, method);
  }
  return status;
}

static EtcStatus read_limits(YamlReader *r, Budget *b, BudgetKey key, StrView method) {
  StrView name = sv_from(keys[key].name);
  if (name.size && r->event.type == YAML_MAPPING_START_EVENT)
    return read_group(r, b, key, method);
  return add_limit(r, b, key, name, method);
}

/* KEY: LIMIT or KEY: {NAME: LIMIT, …} */
static EtcStatus read_key(YamlReader *r, Budget *b, StrView key_text, StrView method) {
  BudgetKey key = 0;
  TRY(find_group(r, key_text, &key));
  TRY(yaml_next(r));
  return read_limits(r, b, key, method);
}

typedef struct MethodReader {
  YamlReader *yaml;
  Budget *budget;
} MethodReader;

static EtcStatus read_method(void *reader, StrView method) {
  const MethodReader *m = reader;
  EtcStatus status = ETC_OK;
  while (yaml_more(m->yaml, &status)) {
    StrView key = {0};
    TRY(yaml_scalar(m->yaml, "a key", &key));
    status = read_key(m->yaml, m->budget, key, method);
  }
  return status;
}

static EtcStatus read_methods(YamlReader *r, Budget *b) {
  MethodReader m = {r, b};
  TRY(yaml_next(r));
  return yaml_methods(r, "{arena: 64K}", read_method, &m);
}

static EtcStatus read_entry(YamlReader *r, Budget *b) {
  StrView key = {0};
  TRY(yaml_scalar(r, "a key", &key));
  if (sv_eq(key, SV("methods")))
    return read_methods(r, b);
  return read_key(r, b, key, SV(""));
}

static EtcStatus read_all(YamlReader *r, Budget *b) {
  EtcStatus status = yaml_begin(r, "a budget is a mapping of limits, as in 'file: 512K'");
  while (yaml_more(r, &status))
    status = read_entry(r, b);
  TRY(status);
  if (b->count == 0)
    return yaml_wrong(r, "add one, as in 'file: 512K'", "the budget has no limit");
  return yaml_end(r);
}

EtcStatus budget_read(Session *s, const char *path, Budget **out) {
  MappedFile file;
  YamlReader *r;
  Budget *b = ARENA_NEW(&s->arena, Budget);
  TRY(session_status(file_map(&file, &s->arena, &s->sink, path)));
  *b = (Budget){.path = path, .limits = ARENA_ARRAY(&s->arena, BudgetLimit, MAX_LIMITS)};
  EtcStatus status =
      yaml_open(&r, s, DIAG_BUDGET_FILE, "a budget", sv_from(path), yaml_text(&file));
  if (status == ETC_OK) {
    status = read_all(r, b);
    yaml_close(r);
  }
  file_unmap(&file);
  *out = b;
  return status;
}

const BudgetLimit *budget_limit(const Budget *b, BudgetKey key, StrView method) {
  for (uint32_t i = 0; b && i < b->count; i++) {
    const BudgetLimit *limit = &b->limits[i];
    if (limit->key == key && (!limit->method.size || sv_eq(limit->method, method)))
      return limit;
  }
  return NULL;
}

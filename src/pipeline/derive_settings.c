/* The settings of --derive llm, see derive.h. */
#include "pipeline/derive_parts.h"
#include "pipeline/settings.h"
#include "support/text.h"

static const struct {
  const char *name, *fallback;
} keys[KEY_COUNT] = {
    [KEY_CONTEXT] = {"context", ""},
    [KEY_PREFILL] = {"prefill", ""},
    [KEY_BOS] = {"bos", ""},
    [KEY_EOS] = {"eos", ""},
    [KEY_TOKENS] = {"tokens", "input_ids"},
    [KEY_MASK] = {"mask", "attention_mask"},
    [KEY_POSITIONS] = {"positions", "position_ids"},
    [KEY_PAST] = {"past", "past_key_values.*"},
    [KEY_PRESENT] = {"present", "present.*"},
    [KEY_LOGITS] = {"logits", "logits"},
};

enum { DEFAULT_PREFILL = 128 };

/* --- settings --- */

static EtcStatus wrong_value(Session *s, const char *key, StrView value) {
  return session_usage(s, "--derive", "write llm:context=2048,prefill=128,bos=1,eos=2",
                       "'" SV_FMT "' is not a value of %s", SV_ARG(value), key);
}

static EtcStatus set_key(Session *s, struct Derive *d, StrView text) {
  const char *names[KEY_COUNT];
  StrView key = text, value = {0};
  (void)session_split(text, '=', &key, &value);
  for (int i = 0; i < KEY_COUNT; i++) {
    names[i] = keys[i].name;
    if (!sv_eq_str(key, keys[i].name))
      continue;
    if (!value.size)
      return wrong_value(s, keys[i].name, value);
    if (d->values[i].size)
      return session_usage(s, "--derive", "give each setting once; ids go in one: eos=1+2",
                           "the setting %s of llm is given twice", keys[i].name);
    d->values[i] = sv_from(arena_strdup(&s->arena, value));
    return ETC_OK;
  }
  const char *hint = session_did_you_mean(s, text_nearest(key, names, KEY_COUNT));
  return session_usage(s, "--derive", hint ? hint : "'etc help lower' tells of --derive",
                       "llm has no setting '" SV_FMT "'", SV_ARG(key));
}

static EtcStatus read_length(Session *s, const struct Derive *d, DeriveKey key, int64_t fallback,
                             int64_t *out) {
  *out = fallback;
  if (!d->values[key].size ||
      (text_parse_i64(d->values[key], out) && *out >= 1 && *out <= DERIVE_LENGTH_MAX))
    return ETC_OK;
  return wrong_value(s, keys[key].name, d->values[key]);
}

EtcStatus derive_ids(Session *s, const struct Derive *d, DeriveKey key, ConstantItem **items,
                     uint32_t *count) {
  StrView rest = d->values[key];
  *items = ARENA_ARRAY(&s->arena, ConstantItem, rest.size + 1);
  for (*count = 0; rest.size;) {
    StrView id = rest, tail = {0};
    (void)session_split(rest, '+', &id, &tail);
    ConstantItem item = {.kind = CONSTANT_INT};
    if (!text_parse_i64(id, &item.i) || item.i < 0)
      return wrong_value(s, keys[key].name, d->values[key]);
    (*items)[(*count)++] = item;
    rest = tail;
  }
  return ETC_OK;
}

static EtcStatus check_settings(Session *s, struct Derive *d) {
  ConstantItem *items;
  uint32_t count = 0;
  if (!d->values[KEY_CONTEXT].size)
    return session_usage(s, "--derive",
                         "write llm:context=N, the tokens that the cache has room for",
                         "the length of the context is missing");
  TRY(read_length(s, d, KEY_CONTEXT, 0, &d->context));
  TRY(read_length(s, d, KEY_PREFILL, min_i64(d->context, DEFAULT_PREFILL), &d->prefill));
  if (d->prefill > d->context)
    return session_usage(s, "--derive", "give prefill a number up to that of context",
                         "prefill (%lld) is above context (%lld)", (long long)d->prefill,
                         (long long)d->context);
  TRY(derive_ids(s, d, KEY_EOS, &items, &count));
  TRY(derive_ids(s, d, KEY_BOS, &items, &count));
  return count > 1 ? wrong_value(s, "bos", d->values[KEY_BOS]) : ETC_OK;
}

EtcStatus session_set_derive(Session *s, StrView value) {
  StrView name = value, rest = {0};
  struct Derive *d = ARENA_NEW(&s->arena, struct Derive);
  *d = (struct Derive){0};
  (void)session_split(value, ':', &name, &rest);
  if (!sv_eq(name, SV("llm")))
    return session_usage(s, "--derive", "there is llm", "--derive knows no '" SV_FMT "'",
                         SV_ARG(name));
  EtcStatus status = ETC_OK;
  while (status == ETC_OK && rest.size) {
    StrView one = rest, tail = {0};
    (void)session_split(rest, ',', &one, &tail);
    status = set_key(s, d, one);
    rest = tail;
  }
  if (status == ETC_OK)
    status = check_settings(s, d);
  for (int i = 0; i < KEY_COUNT; i++)
    if (!d->values[i].size)
      d->values[i] = sv_from(keys[i].fallback);
  settings_options(s)->derive = d;
  return status;
}

/* --- names --- */

Role derive_role(const struct Derive *d, StrView name) {
  StrView stars;
  if (sv_eq(name, d->values[KEY_TOKENS]))
    return ROLE_TOKENS;
  if (sv_eq(name, d->values[KEY_MASK]))
    return ROLE_MASK;
  if (sv_eq(name, d->values[KEY_POSITIONS]) || sv_eq(name, SV("cache_position")))
    return ROLE_POSITIONS;
  return text_match(d->values[KEY_PAST], name, &stars) ? ROLE_PAST : ROLE_NONE;
}

Status derive_missing(Session *s, const struct Derive *d, Role role) {
  bool tokens = role == ROLE_TOKENS;
  return diag_report(&s->sink, DIAG_DERIVE, context_place(&s->ctx),
                     tokens ? "the model has no input '" SV_FMT "' for the tokens"
                            : "no input has a name like '" SV_FMT "'",
                     SV_ARG(d->values[tokens ? KEY_TOKENS : KEY_PAST]));
}

/* Options of the memory plan, --plan, --memory, --max-arena and --share-state, and other sizes:
 * --fold-limit. */
#include "pipeline/settings.h"
#include "support/text.h"

enum { MAX_BANKS = 16 };

/* Cuts off the part before the next comma. */
static bool next_part(StrView *rest, StrView *part) {
  if (rest->size == 0)
    return false;
  const char *comma = memchr(rest->data, ',', rest->size);
  size_t size = comma ? (size_t)(comma - rest->data) : rest->size;
  *part = (StrView){rest->data, size};
  size += comma != NULL;
  *rest = (StrView){rest->data + size, rest->size - size};
  return true;
}

/* --- --plan NAME[:KEY=VALUE,...] --- */

static bool parse_yes(StrView text, bool *out) {
  *out = sv_eq(text, SV("yes"));
  return *out || sv_eq(text, SV("no"));
}

static EtcStatus refuse_plan_key(Session *s, StrView part) {
  const char *hint = "there are inputs=yes|no, outputs=yes|no and align=N, a power of two from 16 "
                     "to 4096";
  return session_usage(s, "--plan", hint, "memory planners do not take '" SV_FMT "'", SV_ARG(part));
}

static bool parse_alignment(StrView text, uint32_t *out) {
  uint64_t align;
  bool good =
      text_parse_u64(text, &align) && align >= 16 && align <= 4096 && (align & (align - 1)) == 0;
  *out = good ? (uint32_t)align : 0;
  return good;
}

/* given: a bit for each key that came before. */
static EtcStatus set_plan_key(Session *s, PassOptions *o, StrView part, unsigned *given) {
  static const char keys[] = "inputs|outputs|align";
  StrView key, value;
  bool planned = true;
  if (!session_split(part, '=', &key, &value) || !text_among(key, keys))
    return refuse_plan_key(s, part);
  uint32_t which = text_index(key, keys);
  if (!(which == 2 ? parse_alignment(value, &o->plan_alignment) : parse_yes(value, &planned)))
    return refuse_plan_key(s, part);
  if (*given >> which & 1)
    return session_usage(s, "--plan", "give each of them once", SV_FMT " is given twice",
                         SV_ARG(key));
  *given |= 1u << which;
  o->host_inputs |= which == 0 && !planned;
  o->host_outputs |= which == 1 && !planned;
  return ETC_OK;
}

static const char *list_planners(Session *s) {
  const Registry *r = &s->registry;
  StrBuf text = {0};
  for (uint32_t i = 0; i < r->planner_count; i++)
    strbuf_printf(&text, "%s%s",
                  i == 0                     ? "there are "
                  : i + 1 < r->planner_count ? ", "
                                             : " and ",
                  r->planners[i]->name);
  strbuf_append(&text, SV("; others come with --plugin"));
  return strbuf_keep(&text, &s->arena).data;
}

EtcStatus session_set_plan(Session *s, StrView value) {
  PassOptions *o = &settings_options(s)->pass;
  StrView name = value, rest = {0}, part;
  session_split(value, ':', &name, &rest);
  const Planner *planner = registry_planner(&s->registry, name);
  if (!planner) {
    const char *hint = session_did_you_mean(s, registry_nearest_planner(&s->registry, name));
    return session_usage(s, "--plan", hint ? hint : list_planners(s),
                         "there is no memory planner '" SV_FMT "'", SV_ARG(name));
  }
  o->planner = planner;
  o->plan_alignment = 0;
  o->host_inputs = o->host_outputs = false;
  unsigned given = 0;
  while (next_part(&rest, &part)) {
    TRY(set_plan_key(s, o, part, &given));
  }
  return ETC_OK;
}

/* --- sizes --- */

static EtcStatus set_bytes(Session *s, const char *option, StrView value, uint64_t *out) {
  if (text_parse_bytes(value, out))
    return ETC_OK;
  return session_usage(s, option,
                       "give 1 byte or more; K, M and G may follow the number: 512K, 64M, 4G",
                       "'" SV_FMT "' is not a size in memory", SV_ARG(value));
}

EtcStatus session_set_max_arena(Session *s, StrView value) {
  return set_bytes(s, "--max-arena", value, &settings_options(s)->pass.max_arena);
}
EtcStatus session_set_fold_limit(Session *s, StrView value) {
  return set_bytes(s, "--fold-limit", value, &settings_options(s)->pass.fold_limit);
}

/* --- --memory NAME=SIZE,... --- */

/* Names are written into the program, between spaces. */
static bool is_bank_name(StrView name) {
  for (size_t i = 0; i < name.size; i++) {
    char c = name.data[i];
    if (!is_letter(c) && (i == 0 || !(is_word(c) || c == '-')))
      return false;
  }
  return name.size > 0 && name.size <= 64;
}

static EtcStatus add_bank(Session *s, MemoryBank *banks, uint32_t count, StrView part) {
  const char *hint = "write --memory NAME=SIZE,NAME=SIZE, as in sram=512K,dram=4M; sizes are bytes "
                     "or have K, M or G";
  StrView name, size;
  MemoryBank bank = {0};
  if (!session_split(part, '=', &name, &size) || !is_bank_name(name) ||
      !text_parse_bytes(size, &bank.size))
    return session_usage(s, "--memory", hint, "'" SV_FMT "' does not give a bank and its size",
                         SV_ARG(part));
  if (count == MAX_BANKS)
    return session_usage(s, "--memory", hint, "there are more than %d banks", MAX_BANKS);
  for (uint32_t i = 0; i < count; i++)
    if (sv_eq(banks[i].name, name))
      return session_usage(s, "--memory", "give each bank a name of its own",
                           "bank '" SV_FMT "' is given twice", SV_ARG(name));
  bank.name = sv_from(arena_strdup(&s->arena, name));
  banks[count] = bank;
  return ETC_OK;
}

EtcStatus session_set_memory(Session *s, StrView value) {
  MemoryBank *banks = ARENA_ARRAY(&s->arena, MemoryBank, MAX_BANKS);
  uint32_t count = 0;
  StrView rest = value, part;
  while (next_part(&rest, &part)) {
    TRY(add_bank(s, banks, count, part));
    count++;
  }
  settings_options(s)->pass.banks = banks;
  settings_options(s)->pass.bank_count = count;
  return ETC_OK;
}

EtcStatus session_set_share_state(Session *s, StrView value) {
  size_t size = s->shared_count * sizeof *s->shared;
  s->shared = arena_grow(&s->arena, s->shared, size, size + sizeof *s->shared);
  s->shared[s->shared_count++] = sv_from(arena_strdup(&s->arena, value));
  return ETC_OK;
}

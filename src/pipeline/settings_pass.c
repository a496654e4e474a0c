/* --pass, --skip-pass, --print-before, --print-after, --stop-after: passes by name. */
#include "pipeline/settings.h"

/* Reports a name that no pass has. */
static EtcStatus find_pass(Session *s, const char *option, StrView name, const PassRow **row) {
  *row = registry_pass(&s->registry, name);
  if (*row)
    return ETC_OK;
  const char *hint = session_did_you_mean(s, registry_nearest_pass(&s->registry, name));
  return session_usage(s, option,
                       hint ? hint : "'etc passes' lists the passes; others come with --plugin",
                       "there is no pass '" SV_FMT "'", SV_ARG(name));
}

/* The first row of that name in the stage. */
static EtcStatus find_before(Session *s, StrView name, StageId stage, const PassRow **out) {
  for (uint32_t i = 0; i < pass_table_size; i++)
    if (pass_table[i].stage == stage && sv_eq_str(name, pass_table[i].name)) {
      *out = &pass_table[i];
      return ETC_OK;
    }
  return session_usage(s, "--pass", "'etc passes' lists the passes of each stage",
                       "stage %s has no pass '" SV_FMT "' of its own", stage_name(stage),
                       SV_ARG(name));
}

/* Behind a stage graphs are at its level, before a pass at that which the pass takes. */
static EtcStatus check_level(Session *s, const AddedPass *added) {
  const PassRow *before = added->before;
  Level level = before ? before->level_in : stage_level(added->stage);
  if (manager_accepts(added->row, level))
    return ETC_OK;
  return session_usage(
      s, "--pass", before ? NULL : "write --pass NAME@STAGE:before-PASS for a place in the stage",
      "%s %s graphs are at level %s, and pass '%s' takes level %s",
      before ? "before pass" : "behind stage", before ? before->name : stage_name(added->stage),
      level_name(level), added->row->name, level_name(added->row->level_in));
}

/* NAME[@STAGE[:before-PASS]] */
EtcStatus session_set_pass(Session *s, StrView value) {
  const StrView before = SV("before-");
  StrView name = value, stage = {0}, place = {0};
  AddedPass added = {0};
  bool staged = session_split(value, '@', &name, &stage);
  bool placed = staged && session_split(stage, ':', &stage, &place);
  EtcStatus status = find_pass(s, "--pass", name, &added.row);
  if (status != ETC_OK)
    return status;
  added.stage = staged ? stage_find(stage) : added.row->stage;
  if (added.stage == STAGE_COUNT || added.stage == STAGE_IMPORT || added.stage == STAGE_EMIT) {
    const char *hint =
        added.stage == STAGE_COUNT ? session_did_you_mean(s, stage_nearest(stage)) : NULL;
    return session_usage(s, "--pass", hint ? hint : "'etc passes' lists the stages",
                         "no passes run at a stage '" SV_FMT "'", SV_ARG(stage));
  }
  if (placed && !sv_starts_with(place, before))
    return session_usage(s, "--pass", "write --pass NAME@STAGE:before-PASS",
                         "'" SV_FMT "' does not say before which pass", SV_ARG(place));
  if (placed) {
    StrView other = {place.data + before.size, place.size - before.size};
    status = find_before(s, other, added.stage, &added.before);
  }
  if (status == ETC_OK)
    status = check_level(s, &added);
  if (status != ETC_OK)
    return status;
  AddedPasses *passes = &settings_options(s)->passes;
  POOL_PUSH(passes->items, passes->count, passes->capacity, added);
  return ETC_OK;
}

static EtcStatus add_pass_name(Session *s, PassNames *list, const char *option, StrView name,
                               bool all) {
  const PassRow *row;
  if (!(all && sv_eq(name, SV("all")))) {
    TRY(find_pass(s, option, name, &row));
    if (list == &s->manager.options.skip && !row->skippable)
      return session_usage(s, option, "'etc passes' shows which may be left out",
                           "pass '%s' cannot be left out", row->name);
  }
  const char **names = ARENA_ARRAY(&s->arena, const char *, (size_t)list->count + 1);
  if (list->count)
    memcpy(names, list->names, list->count * sizeof *names);
  names[list->count++] = arena_strdup(&s->arena, name);
  list->names = names;
  return ETC_OK;
}

EtcStatus session_set_print_before(Session *s, StrView value) {
  return add_pass_name(s, &s->manager.options.print_before, "--print-before", value, true);
}
EtcStatus session_set_print_after(Session *s, StrView value) {
  return add_pass_name(s, &s->manager.options.print_after, "--print-after", value, true);
}
EtcStatus session_set_skip_pass(Session *s, StrView value) {
  return add_pass_name(s, &s->manager.options.skip, "--skip-pass", value, false);
}
EtcStatus session_set_stop_after(Session *s, StrView value) {
  const PassRow *row = NULL;
  EtcStatus status = find_pass(s, "--stop-after", value, &row);
  if (row)
    s->manager.options.stop_after = row->name;
  return status;
}

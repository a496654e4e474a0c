/* Parsing of the command line by the table: --long=VALUE, --long VALUE, -sVALUE, -s VALUE, -MD,
 * -MFVALUE, flags of one letter joined (-qv), "--" ends options, "-" is an argument. Long options
 * are not abbreviated, so that a new option never changes what a script means. */
#include "options.h"

#include <unistd.h>

#include "support/text.h"

#define ON(command) (1u << CMD_##command)
#define EVERY ((1u << CMD_COUNT) - 1)

const CommandRow command_table[CMD_COUNT] = {
#define COMMAND(id, name, arguments, summary, description, examples)                               \
  {name, arguments, summary, description, examples},
#include "options.def"
};

const OptionRow option_table[OPT_COUNT] = {
#define OPTION(id, commands, long, short, kind, argument, summary)                                 \
  {OPT_##id, commands, long, short, KIND_##kind, argument, summary},
#include "options.def"
};

static bool applies(const OptionRow *row, CommandId command) {
  return (row->commands >> command & 1) != 0;
}

static const OptionRow *find_long(CommandId command, StrView name) {
  for (unsigned i = 0; i < OPT_COUNT; i++)
    if (applies(&option_table[i], command) && sv_eq_str(name, option_table[i].long_name))
      return &option_table[i];
  return NULL;
}

/* The option with the longest short name that text begins with. */
static const OptionRow *find_short(CommandId command, StrView text) {
  const OptionRow *found = NULL;
  size_t longest = 0;
  for (unsigned i = 0; i < OPT_COUNT; i++) {
    StrView name = sv_from(option_table[i].short_name);
    if (!applies(&option_table[i], command) || name.size <= longest || !sv_starts_with(text, name))
      continue;
    found = &option_table[i];
    longest = name.size;
  }
  return found;
}

static const char *help_hint(const CommandLine *line) {
  return arena_printf(&line->session->arena, "'etc help %s' lists the options",
                      command_table[line->command].name);
}

/* "--json is an option of etc inspect, diff": of commands that have it; NULL if none has. */
static const char *hint_elsewhere(const CommandLine *line, StrView name) {
  StrBuf commands = {0};
  for (unsigned i = 0; i < OPT_COUNT; i++)
    for (unsigned c = 0; sv_eq_str(name, option_table[i].long_name) && c < CMD_COUNT; c++)
      if (applies(&option_table[i], (CommandId)c))
        strbuf_printf(&commands, "%s %s", commands.size ? "," : "", command_table[c].name);
  const char *hint =
      commands.size ? arena_printf(&line->session->arena, "--" SV_FMT " is an option of etc%s; %s",
                                   SV_ARG(name), strbuf_cstr(&commands), help_hint(line))
                    : NULL;
  strbuf_release(&commands);
  return hint;
}

static EtcStatus unknown_option(const CommandLine *line, const char *given, StrView name) {
  const char *names[OPT_COUNT];
  size_t count = 0;
  for (unsigned i = 0; i < OPT_COUNT; i++)
    if (applies(&option_table[i], line->command))
      names[count++] = option_table[i].long_name;
  Arena *arena = &line->session->arena;
  const char *nearest = text_nearest(name, names, count);
  const char *hint = access(given, F_OK) == 0
                         ? arena_printf(arena, "write ./%s if the file is meant", given)
                     : nearest ? arena_printf(arena, "did you mean --%s?", nearest)
                               : hint_elsewhere(line, name);
  return session_usage(line->session, given, hint ? hint : help_hint(line),
                       "'etc %s' has no option '%s'", command_table[line->command].name, given);
}

static EtcStatus add_option(CommandLine *line, const OptionRow *row, const char *value) {
  if (row->kind == KIND_VALUE || row->kind == KIND_CHOICE)
    for (uint32_t i = 0; i < line->option_count; i++)
      if (line->options[i].row == row)
        return session_usage(line->session,
                             arena_printf(&line->session->arena, "--%s", row->long_name),
                             "give it once", "--%s is given twice", row->long_name);
  line->options[line->option_count++] = (GivenOption){row, value};
  return ETC_OK;
}

/* The name in a long option: "dim" of "--dim" and "--dim=n=1". */
static StrView long_name(const char *given) {
  return (StrView){given + 2, strcspn(given + 2, "=")};
}

/* Whether text is an option of the command, spelt in full: "-o", "--map", "--dim=n=1". */
static bool is_option(const CommandLine *line, const char *text) {
  if (text[0] != '-' || text[1] == 0)
    return false;
  StrView name = sv_from(text + 1);
  if (text[1] != '-') {
    const OptionRow *row = find_short(line->command, name);
    return row && sv_eq_str(name, row->short_name);
  }
  return find_long(line->command, long_name(text)) != NULL;
}

/* An option that takes a value is followed by another option: its value was forgotten. */
static EtcStatus refuse_swallowed(const CommandLine *line, const OptionRow *row, const char *dashed,
                                  const char *next) {
  const char *hint =
      arena_printf(&line->session->arena, "'%s' is an option: write %s=%s if it is the value", next,
                   dashed, next);
  return session_usage(line->session, dashed, hint, "%s needs a value: %s", dashed, row->argument);
}

/* --explain table: the value of an option that may have one stands behind '='. */
static EtcStatus take_choice(CommandLine *line, const OptionRow *row, const char *dashed,
                             const char *attached, const char *next) {
  bool apart = !attached && next && text_among(sv_from(next), row->argument);
  if (!apart || access(next, F_OK) == 0)
    return add_option(line, row, attached ? attached : "");
  return session_usage(line->session, dashed,
                       arena_printf(&line->session->arena, "write %s=%s", dashed, next),
                       "the value of %s stands behind '='", dashed);
}

/* attached: the value after '=' or right behind the letter, NULL when there is none. *used: whether
 * next was taken. */
static EtcStatus take_option(CommandLine *line, const OptionRow *row, const char *attached,
                             const char *next, bool *used) {
  const char *dashed = arena_printf(&line->session->arena, "--%s", row->long_name);
  *used = false;
  switch (row->kind) {
  case KIND_FLAG:
    if (attached)
      return session_usage(line->session, dashed, help_hint(line), "%s takes no value", dashed);
    return add_option(line, row, "");
  case KIND_CHOICE:
    return take_choice(line, row, dashed, attached, next);
  case KIND_VALUE:
  case KIND_REPEAT:
    break;
  }
  *used = !attached;
  if (!attached && next && is_option(line, next))
    return refuse_swallowed(line, row, dashed, next);
  if (!attached)
    attached = next;
  if (!attached || !attached[0])
    return session_usage(line->session, dashed, help_hint(line), "%s needs a value: %s", dashed,
                         row->argument);
  return add_option(line, row, attached);
}

static EtcStatus parse_long(CommandLine *line, const char *given, const char *next, bool *used) {
  StrView name = long_name(given);
  const OptionRow *row = find_long(line->command, name);
  if (!row)
    return unknown_option(line, given, name);
  const char *behind = name.data + name.size;
  return take_option(line, row, *behind == '=' ? behind + 1 : NULL, next, used);
}

static EtcStatus parse_short(CommandLine *line, const char *given, const char *next, bool *used) {
  EtcStatus status = ETC_OK;
  for (StrView rest = sv_from(given + 1); rest.size && status == ETC_OK;) {
    const OptionRow *row = find_short(line->command, rest);
    size_t size = row ? strlen(row->short_name) : 0;
    bool joined = row && row->kind == KIND_FLAG && size == 1;
    if (!row || (row->kind == KIND_FLAG && size < rest.size && !joined))
      return unknown_option(line, given, sv_from(given + 1));
    const char *attached = joined || size == rest.size ? NULL : rest.data + size;
    if (attached && *attached == '=')
      return session_usage(line->session, given,
                           arena_printf(&line->session->arena, "-%s %s, or --%s=%s",
                                        row->short_name, attached + 1, row->long_name,
                                        attached + 1),
                           "the value of a short option stands behind it without '='");
    status = take_option(line, row, attached, next, used);
    rest = (StrView){rest.data + size, joined ? rest.size - size : 0};
  }
  return status;
}

EtcStatus command_line_parse(CommandLine *line, int argc, char **argv) {
  Arena *arena = &line->session->arena;
  bool options = true;
  size_t most = 1;
  for (int i = 0; i < argc; i++)
    most += argv[i][0] == '-' ? strlen(argv[i]) : 0; /* joined flags */
  line->options = ARENA_ARRAY(arena, GivenOption, most);
  line->arguments = ARENA_ARRAY(arena, const char *, (size_t)argc);
  for (int i = 0; i < argc; i++) {
    const char *given = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
    bool used = false;
    EtcStatus status = ETC_OK;
    if (!options || given[0] != '-' || given[1] == '\0')
      line->arguments[line->argument_count++] = given;
    else if (strcmp(given, "--") == 0)
      options = false;
    else
      status = given[1] == '-' ? parse_long(line, given, next, &used)
                               : parse_short(line, given, next, &used);
    if (status != ETC_OK)
      return status;
    i += used;
  }
  line->help = command_line_has(line, OPT_HELP);
  if (command_line_has(line, OPT_JSON) && command_line_has(line, OPT_MARKDOWN))
    return session_usage(line->session, "--md", "give one of them",
                         "--json and --md exclude each other");
  return ETC_OK;
}

const char *command_line_value(const CommandLine *line, OptionId id) {
  for (uint32_t i = 0; i < line->option_count; i++)
    if (line->options[i].row->id == id)
      return line->options[i].value;
  return NULL;
}

/* Options that only the command knows. --diagnostics, --color and --quiet are applied before
 * anything can be wrong. */
static bool is_own(OptionId id) {
  static const OptionId own[] = {
      OPT_OUTPUT,       OPT_OPT_OUTPUT, OPT_RUN_OUTPUT, OPT_STATS_OUTPUT, OPT_INPUT,
      OPT_RUN_METHOD,   OPT_DATA,       OPT_SHARD,      OPT_MERGE,        OPT_STAGE,
      OPT_OPT_PASS,     OPT_JSON,       OPT_EXTRACT,    OPT_MARKDOWN,     OPT_ONNX,
      OPT_RANDOM,       OPT_SEED,       OPT_REPEAT,     OPT_NO_LOCATIONS, OPT_HELP,
      OPT_EMBED_OUTPUT, OPT_HEADER,     OPT_SYMBOL,     OPT_SECTION,      OPT_ALIGN,
      OPT_KERNEL_LIST,  OPT_LICENSES,   OPT_FORMAT,     OPT_PROFILE,      OPT_ALL,
      OPT_RTOL,         OPT_ATOL,       OPT_SIZE_MAP,   OPT_DIAGNOSTICS,  OPT_COLOR,
      OPT_QUIET,
  };
  for (size_t i = 0; i < COUNT_OF(own); i++)
    if (own[i] == id)
      return true;
  return false;
}

static EtcStatus apply_some(const CommandLine *line, bool plugins) {
  for (uint32_t i = 0; i < line->option_count; i++) {
    const GivenOption *given = &line->options[i];
    if (is_own(given->row->id) || (given->row->id == OPT_PLUGIN) != plugins)
      continue;
    TRY(etc_session_set(line->session, given->row->long_name, given->value));
  }
  return ETC_OK;
}

/* Plug-ins first: other options may name what they bring. */
EtcStatus command_line_apply(const CommandLine *line) {
  TRY(apply_some(line, true));
  return apply_some(line, false);
}

CommandId command_find(StrView name) {
  unsigned i = 0;
  while (i < CMD_COUNT && !sv_eq_str(name, command_table[i].name))
    i++;
  return (CommandId)i;
}

const char *command_nearest(StrView name) {
  const char *names[CMD_COUNT];
  for (unsigned i = 0; i < CMD_COUNT; i++)
    names[i] = command_table[i].name;
  return text_nearest(name, names, CMD_COUNT);
}

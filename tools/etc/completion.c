/* etc completion: scripts for shells, made from schema/options.def and the tables of passes,
 * stages, backends, planners, recipes and diagnostics. They do not run etc. */
#include "completion.h"

#include "pipeline/recipe.h"
#include "support/text.h"

typedef void AppendNames(const Session *s, StrBuf *out);

static void add_word(StrBuf *out, StrView word) {
  if (out->size)
    strbuf_append_char(out, ' ');
  strbuf_append(out, word);
}

/* A pass may run in several stages. */
static void add_passes(const Session *s, StrBuf *out) {
  for (uint32_t i = 0; i < s->registry.pass_count; i++) {
    StrView name = sv_from(s->registry.passes[i]->name);
    if (registry_pass(&s->registry, name) == s->registry.passes[i])
      add_word(out, name);
  }
}
static void add_backends(const Session *s, StrBuf *out) {
  for (uint32_t i = 0; i < s->registry.backend_count; i++)
    add_word(out, sv_from(s->registry.backends[i]->name));
}
static void add_planners(const Session *s, StrBuf *out) {
  for (uint32_t i = 0; i < s->registry.planner_count; i++)
    add_word(out, sv_from(s->registry.planners[i]->name));
}
static void add_stages(const Session *s, StrBuf *out) {
  (void)s;
  for (int i = 0; i < STAGE_COUNT; i++)
    add_word(out, sv_from(stage_name((StageId)i)));
}
static void add_recipes(const Session *s, StrBuf *out) {
  (void)s;
  for (const RecipeText *t = recipe_texts; t->name; t++)
    add_word(out, sv_from(t->name));
}
static void add_diagnostics(const Session *s, StrBuf *out) {
  (void)s;
  for (unsigned i = 0; i < DIAG_CODE_COUNT; i++)
    add_word(out, sv_from(diag_row((DiagCode)i)->code));
}
static void add_commands(const Session *s, StrBuf *out) {
  (void)s;
  for (unsigned i = 0; i < CMD_COUNT; i++)
    add_word(out, sv_from(command_table[i].name));
}

/* Whose names an option or a command takes. */
static const struct {
  OptionId id;
  AppendNames *names;
} option_names[] = {
    {OPT_PASS, add_passes},       {OPT_OPT_PASS, add_passes},    {OPT_SKIP_PASS, add_passes},
    {OPT_STOP_AFTER, add_passes}, {OPT_PRINT_AFTER, add_passes}, {OPT_PRINT_BEFORE, add_passes},
    {OPT_BACKEND, add_backends},  {OPT_PLAN, add_planners},      {OPT_STAGE, add_stages},
    {OPT_RECIPE, add_recipes},
};
static const struct {
  CommandId id;
  AppendNames *names;
} command_names[] = {
    {CMD_help, add_commands}, {CMD_explain, add_diagnostics}, {CMD_recipe, add_recipes}};

static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
static bool is_word_char(char c) { return is_lower(c) || is_digit(c) || c == '-'; }

/* The size of the word at the beginning of text that is meant as it stands: lower-case, alone
 * between bars, spaces and braces; what may follow it is in brackets. Else 0. */
static size_t literal_size(StrView text) {
  size_t size = 0;
  while (size < text.size && is_word_char(text.data[size]))
    size++;
  bool ends = size == text.size || strchr("|[ }", text.data[size]);
  return size && is_lower(text.data[0]) && ends ? size : 0;
}

/* The endings in ".pte" and ".{onnx,etir}", which text begins with. */
static void add_suffixes(StrBuf *out, StrView text) {
  bool list = text.size > 1 && text.data[1] == '{';
  for (size_t at = list ? 2 : 1; at < text.size;) {
    size_t size = 0;
    while (at + size < text.size && is_lower(text.data[at + size]))
      size++;
    if (size)
      add_word(out, (StrView){text.data + at, size});
    at += size + 1;
    if (!list || at > text.size || text.data[at - 1] != ',')
      return;
  }
}

/* Reads a usage such as "list | show NAME | check FILE.yaml" or "text|json". */
static Candidates read_usage(Session *s, StrView usage, StrBuf *words) {
  Candidates found = {.suffixes = ""};
  StrBuf suffixes = {0};
  bool word_begins = true;
  for (size_t at = 0; at < usage.size; at++) {
    StrView rest = {usage.data + at, usage.size - at};
    size_t size = word_begins ? literal_size(rest) : 0;
    if (size)
      add_word(words, (StrView){rest.data, size});
    if (rest.data[0] == '.' && rest.size > 1 && (is_lower(rest.data[1]) || rest.data[1] == '{'))
      add_suffixes(&suffixes, rest);
    word_begins = strchr("|{ ", rest.data[0]) != NULL;
  }
  static const char *const any[] = {"FILE", "PATH", "STATS", "N=FILE"};
  for (size_t i = 0; i < COUNT_OF(any); i++)
    found.files = found.files || sv_eq_str(usage, any[i]);
  found.folders = sv_eq(usage, SV("DIR"));
  found.suffixes = strbuf_keep(&suffixes, &s->arena).data;
  return found;
}

static Candidates finish(Session *s, Candidates c, StrBuf *words) {
  c.words = strbuf_keep(words, &s->arena).data;
  return c;
}

Candidates option_candidates(Session *s, const OptionRow *row) {
  StrBuf words = {0};
  Candidates c = read_usage(s, sv_from(row->argument), &words);
  for (size_t i = 0; i < COUNT_OF(option_names); i++)
    if (option_names[i].id == row->id)
      option_names[i].names(s, &words);
  return finish(s, c, &words);
}

/* Of the usage of a command only what is before its options. */
Candidates argument_candidates(Session *s, CommandId command) {
  StrBuf words = {0};
  const char *usage = command_table[command].arguments, *options = strstr(usage, " -");
  StrView before = {usage, options ? (size_t)(options - usage) : strlen(usage)};
  Candidates c = read_usage(s, before, &words);
  for (size_t i = 0; i < COUNT_OF(command_names); i++)
    if (command_names[i].id == command)
      command_names[i].names(s, &words);
  return finish(s, c, &words);
}

int cmd_completion(const CommandLine *line) {
  static const struct {
    const char *shell;
    void (*append)(Session *s, StrBuf *out);
  } scripts[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};
  TRY(expect_arguments(line, 1, "a shell: bash, zsh or fish"));
  for (size_t i = 0; i < COUNT_OF(scripts); i++) {
    if (strcmp(line->arguments[0], scripts[i].shell) != 0)
      continue;
    StrBuf text = {0};
    scripts[i].append(line->session, &text);
    return print_and_release(line, &text);
  }
  return (int)session_usage(line->session, "", "there are bash, zsh and fish",
                            "there are no completions for a shell '%s'", line->arguments[0]);
}

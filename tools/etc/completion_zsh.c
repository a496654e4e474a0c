/* The script for zsh: specifications of _arguments, in single quotes. */
#include "completion.h"

/* In single quotes, with what _arguments reads itself behind a backslash. */
static void append_spec_text(StrBuf *out, const char *text) {
  for (; *text; text++) {
    if (*text == '\'')
      strbuf_append(out, SV("'\\'"));
    else if (strchr("[]:\\", *text))
      strbuf_append_char(out, '\\');
    strbuf_append_char(out, *text);
  }
}

/* A pattern of files: *.pte, or *.(onnx|etir), since *.(pte) would be a glob qualifier. */
static void append_pattern(StrBuf *out, const char *suffixes) {
  bool several = strchr(suffixes, ' ') != NULL;
  strbuf_append(out, several ? SV("*.(") : SV("*."));
  for (const char *at = suffixes; *at; at++)
    strbuf_append_char(out, *at == ' ' ? '|' : *at);
  strbuf_append(out, several ? SV(")") : SV(""));
}

/* NAME=FILE completes files behind the '='. */
static void append_action(StrBuf *out, const char *usage, Candidates c) {
  strbuf_append_char(out, '{');
  if (c.words[0])
    strbuf_printf(out, "compadd -- %s; ", c.words);
  if (strchr(usage, '='))
    strbuf_append(out, SV("compset -P \"*=\"; "));
  if (c.suffixes[0]) {
    strbuf_append(out, SV("_files -g \""));
    append_pattern(out, c.suffixes);
    strbuf_append(out, SV("\"}"));
  } else {
    strbuf_append(out, c.files ? SV("_files}") : c.folders ? SV("_files -/}") : SV("true}"));
  }
}

/* '*--dim=[summary]:USAGE:{action}': '*' may come often, "=-" only as --long=VALUE, "=" also as the
 * next word, and so does "+" with short options. A choice may come without its value ("::"). */
static void append_spec(Session *s, const OptionRow *row, bool is_short, StrBuf *out) {
  bool value = row->kind != KIND_FLAG, choice = row->kind == KIND_CHOICE;
  const char *name = is_short ? row->short_name : row->long_name;
  strbuf_append(out, SV("    '"));
  if (row->kind == KIND_REPEAT)
    strbuf_append_char(out, '*');
  else if (row->short_name[0])
    strbuf_printf(out, "(-%s --%s)", row->short_name, row->long_name);
  strbuf_printf(out, "%s%s%s[", is_short ? "-" : "--", name,
                choice              ? "=-"
                : value && is_short ? "+"
                : value             ? "="
                                    : "");
  append_spec_text(out, row->summary);
  strbuf_append_char(out, ']');
  if (value) {
    strbuf_append(out, choice ? SV("::") : SV(":"));
    append_spec_text(out, row->argument);
    strbuf_append_char(out, ':');
    append_action(out, row->argument, option_candidates(s, row));
  }
  strbuf_append(out, SV("' \\\n"));
}

static void append_command(Session *s, CommandId command, StrBuf *out) {
  const CommandRow *row = &command_table[command];
  strbuf_printf(out, "  %s) _arguments \\\n", row->name);
  for (unsigned i = 0; i < OPT_COUNT; i++) {
    const OptionRow *option = &option_table[i];
    if (!(option->commands >> command & 1))
      continue;
    append_spec(s, option, false, out);
    if (option->short_name[0] && option->kind != KIND_CHOICE)
      append_spec(s, option, true, out);
  }
  Candidates c = argument_candidates(s, command);
  if (has_candidates(c)) {
    strbuf_append(out, SV("    '*:"));
    append_spec_text(out, row->arguments);
    strbuf_append_char(out, ':');
    append_action(out, "", c);
    strbuf_append(out, SV("' \\\n"));
  }
  strbuf_append(out, SV("    ;;\n"));
}

void completion_zsh(Session *s, StrBuf *out) {
  strbuf_append(out, SV("#compdef etc\n# Completion of etc for zsh, made by 'etc completion zsh'.\n"
                        "_etc() {\n  local -a commands\n  if (( CURRENT == 2 )); then\n"
                        "    commands=(\n"));
  for (unsigned i = 0; i < CMD_COUNT; i++) {
    strbuf_printf(out, "      '%s:", command_table[i].name);
    append_spec_text(out, command_table[i].summary);
    strbuf_append(out, SV("'\n"));
  }
  strbuf_append(out, SV("    )\n    _describe command commands\n    return\n  fi\n"
                        "  shift words\n  (( CURRENT-- ))\n  case $words[1] in\n"));
  for (unsigned i = 0; i < CMD_COUNT; i++)
    append_command(s, (CommandId)i, out);
  strbuf_append(out, SV("  esac\n}\n"
                        "if [[ $funcstack[1] = _etc ]]; then _etc \"$@\"; else compdef _etc etc; "
                        "fi\n"));
}

/* The script for bash. It needs bash alone, not the package bash-completion. */
#include "completion.h"

/* bash splits words at '=' as well: `--explain=te` comes as three. _etc_option is the option whose
 * value is completed, with the '=' if there is one. */
static const char head[] =
    "# Completion of etc for bash, made by 'etc completion bash'.\n"
    "_etc_words() { COMPREPLY+=($(compgen -W \"$1\" -- \"$cur\")); }\n"
    "_etc_folders() {\n"
    "  local IFS=$'\\n'\n"
    "  compopt -o filenames 2>/dev/null\n"
    "  COMPREPLY+=($(compgen -d -- \"$cur\"))\n"
    "}\n"
    "_etc_files() { # SUFFIX...; without any, all files\n"
    "  local suffix IFS=$'\\n'\n"
    "  compopt -o filenames 2>/dev/null\n"
    "  [[ $# = 0 ]] && COMPREPLY+=($(compgen -f -- \"$cur\")) && return\n"
    "  COMPREPLY+=($(compgen -d -- \"$cur\"))\n"
    "  for suffix; do COMPREPLY+=($(compgen -f -X \"!*.$suffix\" -- \"$cur\")); done\n"
    "}\n"
    "_etc() {\n"
    "  local cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]} "
    "command=${COMP_WORDS[1]}\n"
    "  COMPREPLY=()\n";

static const char after_commands[] = "  if [[ $cur = '=' ]]; then\n"
                                     "    cur= option=$option=\n"
                                     "  elif [[ $option = '=' ]]; then\n"
                                     "    option=${COMP_WORDS[COMP_CWORD-2]}=\n"
                                     "  fi\n"
                                     "  case $command:$option in\n";

static void append_candidates(StrBuf *out, Candidates c) {
  if (c.words[0])
    strbuf_printf(out, "_etc_words '%s'; ", c.words);
  if (c.suffixes[0])
    strbuf_printf(out, "_etc_files %s; ", c.suffixes);
  else if (c.files)
    strbuf_append(out, SV("_etc_files; "));
  else if (c.folders)
    strbuf_append(out, SV("_etc_folders; "));
}

static void append_value(Session *s, CommandId command, const OptionRow *row, StrBuf *out) {
  if (row->kind == KIND_FLAG)
    return;
  const char *name = command_table[command].name;
  strbuf_printf(out, "  %s:--%s=", name, row->long_name);
  if (row->kind != KIND_CHOICE)
    strbuf_printf(out, "|%s:--%s", name, row->long_name);
  if (row->kind != KIND_CHOICE && row->short_name[0])
    strbuf_printf(out, "|%s:-%s", name, row->short_name);
  strbuf_append(out, SV(") "));
  append_candidates(out, option_candidates(s, row));
  strbuf_append(out, SV("return ;;\n"));
}

static void append_options(CommandId command, StrBuf *out) {
  strbuf_printf(out, "    %s) _etc_words '", command_table[command].name);
  for (unsigned i = 0; i < OPT_COUNT; i++) {
    const OptionRow *row = &option_table[i];
    if (!(row->commands >> command & 1))
      continue;
    strbuf_printf(out, "--%s ", row->long_name);
    if (row->short_name[0])
      strbuf_printf(out, "-%s ", row->short_name);
  }
  strbuf_append(out, SV("' ;;\n"));
}

void completion_bash(Session *s, StrBuf *out) {
  strbuf_append(out, sv_from(head));
  strbuf_append(out, SV("  if [[ $COMP_CWORD = 1 ]]; then\n    _etc_words '"));
  for (unsigned i = 0; i < CMD_COUNT; i++)
    strbuf_printf(out, "%s ", command_table[i].name);
  strbuf_append(out, SV("--help --version'\n    return\n  fi\n"));
  strbuf_append(out, sv_from(after_commands));
  for (unsigned command = 0; command < CMD_COUNT; command++)
    for (unsigned i = 0; i < OPT_COUNT; i++)
      if (option_table[i].commands >> command & 1)
        append_value(s, (CommandId)command, &option_table[i], out);
  strbuf_append(out, SV("  *:*=) _etc_files; return ;; # NAME=FILE\n  esac\n"
                        "  if [[ $cur = -* ]]; then\n    case $command in\n"));
  for (unsigned i = 0; i < CMD_COUNT; i++)
    append_options((CommandId)i, out);
  strbuf_append(out, SV("    esac\n    return\n  fi\n  case $command in\n"));
  for (unsigned i = 0; i < CMD_COUNT; i++) {
    Candidates c = argument_candidates(s, (CommandId)i);
    if (!has_candidates(c))
      continue;
    strbuf_printf(out, "  %s) ", command_table[i].name);
    append_candidates(out, c);
    strbuf_append(out, SV(";;\n"));
  }
  strbuf_append(out, SV("  esac\n}\ncomplete -F _etc etc\n"));
}

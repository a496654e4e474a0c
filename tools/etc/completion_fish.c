/* The script for fish: one line an option. */
#include "completion.h"

static void append_quoted(StrBuf *out, const char *text) {
  strbuf_append_char(out, '\'');
  for (; *text; text++) {
    if (*text == '\'' || *text == '\\')
      strbuf_append_char(out, '\\');
    strbuf_append_char(out, *text);
  }
  strbuf_append_char(out, '\'');
}

/* Files with one of the endings stand before all others. */
static void append_candidates(StrBuf *out, Candidates c) {
  if (!has_candidates(c))
    return;
  strbuf_append(out, SV(" -a '"));
  strbuf_append(out, sv_from(c.words));
  for (const char *at = c.suffixes; *at;) {
    size_t size = strcspn(at, " ");
    strbuf_printf(out, " (__fish_complete_suffix .%.*s)", (int)size, at);
    at += size + (at[size] == ' ');
  }
  strbuf_append(out, c.folders ? SV("(__fish_complete_directories)'") : SV("'"));
}

static void append_option(Session *s, CommandId command, const OptionRow *row, StrBuf *out) {
  strbuf_printf(out, "complete -c etc -n '__etc_command_is %s' -l %s", command_table[command].name,
                row->long_name);
  if (row->short_name[0]) /* -MF is one option, as fish calls it an old-style one */
    strbuf_printf(out, " -%c %s", row->short_name[1] ? 'o' : 's', row->short_name);
  if (row->kind != KIND_FLAG) {
    Candidates c = option_candidates(s, row);
    bool files = c.files || strstr(row->argument, "=FILE");
    strbuf_append(out, row->kind == KIND_CHOICE ? SV(" -f") : files ? SV(" -r -F") : SV(" -x"));
    append_candidates(out, c);
  }
  strbuf_append(out, SV(" -d "));
  append_quoted(out, row->summary);
  strbuf_append_char(out, '\n');
}

void completion_fish(Session *s, StrBuf *out) {
  strbuf_append(out, SV("# Completion of etc for fish, made by 'etc completion fish'.\n"
                        "function __etc_command_is\n"
                        "    set -l words (commandline -opc)\n"
                        "    test (count $words) -ge 2; and test $words[2] = $argv[1]\n"
                        "end\n"
                        "function __etc_argument_of # where no option begins\n"
                        "    __etc_command_is $argv[1]; and not string match -q -- '-*' "
                        "(commandline -ct)\n"
                        "end\n"
                        "function __etc_no_command\n"
                        "    test (count (commandline -opc)) -eq 1\n"
                        "end\n"
                        "complete -c etc -f\n"));
  for (unsigned i = 0; i < CMD_COUNT; i++) {
    strbuf_printf(out, "complete -c etc -n __etc_no_command -a %s -d ", command_table[i].name);
    append_quoted(out, command_table[i].summary);
    strbuf_append_char(out, '\n');
  }
  for (unsigned command = 0; command < CMD_COUNT; command++) {
    Candidates c = argument_candidates(s, (CommandId)command);
    if (has_candidates(c)) {
      strbuf_printf(out, "complete -c etc -n '__etc_argument_of %s'", command_table[command].name);
      append_candidates(out, c);
      strbuf_append_char(out, '\n');
    }
    for (unsigned i = 0; i < OPT_COUNT; i++)
      if (option_table[i].commands >> command & 1)
        append_option(s, (CommandId)command, &option_table[i], out);
  }
}

/* Help texts, made from schema/options.def, and the subcommand that prints them. */
#include "command.h"

enum { COLUMN = 30, WIDTH = 100 };

void help_overview(StrBuf *out) {
  strbuf_append(out, SV("usage: etc COMMAND [OPTION...]\n\n"
                        "Lowers ONNX models to ExecuTorch programs.\n\ncommands:\n"));
  for (unsigned i = 0; i < CMD_COUNT; i++)
    strbuf_printf(out, "  %-15s %s\n", command_table[i].name, command_table[i].summary);
  strbuf_append(out,
                SV("\n'etc help COMMAND' or 'etc COMMAND --help' says more.\n"
                   "exit status: 0 done, 1 the model or the output cannot be made, 2 wrong usage,\n"
                   "70 a fault of etc, 130 interrupted\n"));
}

/* Words, from COLUMN on in each line; the first one goes on at the end of out. */
static void append_wrapped(StrBuf *out, const char *text) {
  size_t at = COLUMN;
  for (const char *word = text; *word;) {
    size_t size = strcspn(word, " ");
    if (at > COLUMN && at + 1 + size > WIDTH) {
      strbuf_append_char(out, '\n');
      strbuf_pad(out, out->size, COLUMN);
      at = COLUMN;
    } else if (at > COLUMN) {
      strbuf_append_char(out, ' ');
      at++;
    }
    strbuf_append(out, (StrView){word, size});
    at += size;
    word += size + strspn(word + size, " ");
  }
}

static void print_option(const OptionRow *row, StrBuf *out) {
  size_t begin = out->size;
  if (row->short_name[0])
    strbuf_printf(out, "  -%s, ", row->short_name);
  else
    strbuf_append(out, SV("      "));
  strbuf_printf(out, "--%s", row->long_name);
  if (row->kind == KIND_CHOICE)
    strbuf_printf(out, "[=%s]", row->argument);
  else if (row->argument[0])
    strbuf_printf(out, " %s", row->argument);
  if (out->size - begin >= COLUMN) {
    strbuf_append_char(out, '\n');
    begin = out->size;
  }
  strbuf_pad(out, begin, COLUMN);
  StrBuf summary = {0};
  strbuf_printf(&summary, "%s%s", row->summary, row->kind == KIND_REPEAT ? " (repeat)" : "");
  append_wrapped(out, strbuf_cstr(&summary));
  strbuf_append_char(out, '\n');
  strbuf_release(&summary);
}

void help_command(CommandId command, StrBuf *out) {
  const CommandRow *row = &command_table[command];
  strbuf_printf(out, "usage: etc %s%s%s\n\n%s\noptions:\n", row->name, row->arguments[0] ? " " : "",
                row->arguments, row->description);
  for (unsigned i = 0; i < OPT_COUNT; i++)
    if (option_table[i].commands >> command & 1)
      print_option(&option_table[i], out);
  strbuf_append(out, SV("\nexamples:\n"));
  for (const char *at = row->examples; *at;) {
    const char *end = strchr(at, '\n');
    strbuf_printf(out, "  etc %.*s\n", (int)(end - at), at);
    at = end + 1;
  }
}

/* docs/reference/commands.md: the texts as they are printed. */
static void help_markdown(StrBuf *out) {
  strbuf_append(out, SV("# Commands\n\nAs `etc help COMMAND` prints them. Made by "
                        "`tools/update-docs`.\n\n```text\n"));
  help_overview(out);
  for (unsigned i = 0; i < CMD_COUNT; i++) {
    strbuf_printf(out, "```\n\n## etc %s\n\n```text\n", command_table[i].name);
    help_command((CommandId)i, out);
  }
  strbuf_append(out, SV("```\n"));
}

int cmd_help(const CommandLine *line) {
  StrBuf text = {0};
  bool markdown = command_line_has(line, OPT_MARKDOWN);
  if (line->argument_count == 0) {
    (markdown ? help_markdown : help_overview)(&text);
    return print_and_release(line, &text);
  }
  TRY(expect_arguments(line, markdown ? 0 : 1, markdown ? "" : "a command"));
  const char *name = line->arguments[0];
  CommandId command = command_find(sv_from(name));
  if (command == CMD_COUNT) {
    const char *nearest = command_nearest(sv_from(name));
    return (int)session_usage(
        line->session, "",
        nearest ? arena_printf(&line->session->arena, "did you mean '%s'?", nearest)
                : "'etc help' lists the commands",
        "etc has no command '%s'", name);
  }
  help_command(command, &text);
  return print_and_release(line, &text);
}

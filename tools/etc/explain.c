/* etc explain: the long text of a diagnostic. */
#include "command.h"
#include "support/text.h"

enum { WIDTH = 78 };

/* Breaks at spaces. */
static void append_wrapped(StrBuf *out, const char *text) {
  size_t column = 0;
  while (*text) {
    const char *end = strchr(text, ' ');
    size_t length = end ? (size_t)(end - text) : strlen(text);
    if (column && column + 1 + length > WIDTH) {
      strbuf_append_char(out, '\n');
      column = 0;
    }
    if (column)
      strbuf_append_char(out, ' ');
    strbuf_append(out, (StrView){text, length});
    column += length + (column ? 1 : 0);
    text += length + (end ? 1 : 0);
  }
  strbuf_append_char(out, '\n');
}

static int list_all(const CommandLine *line) {
  StrBuf text = {0};
  for (unsigned i = 0; i < DIAG_CODE_COUNT; i++) {
    const DiagRow *row = diag_row((DiagCode)i);
    strbuf_printf(&text, "%s  %-22s %s\n", row->code, row->id, row->summary);
  }
  return print_and_release(line, &text);
}

/* Text that Markdown shows as it is, but for code between single quotes. */
static void append_markdown(StrBuf *out, const char *text) {
  for (; *text; text++) {
    if (strchr("\\`*_<>|[]", *text))
      strbuf_append_char(out, '\\');
    strbuf_append_char(out, *text);
  }
}

static void append_markdown_row(StrBuf *out, const DiagRow *row) {
  strbuf_printf(out, "\n### %s\n\n**", row->code);
  append_markdown(out, row->summary);
  strbuf_printf(out, "** (`%s`)\n\n", row->id);
  append_markdown(out, row->explanation);
  strbuf_append_char(out, '\n');
  if (row->hint[0]) {
    strbuf_printf(out, "\nWhat to do: ");
    append_markdown(out, row->hint);
    strbuf_append_char(out, '\n');
  }
}

/* docs/reference/diagnostics.md */
static int print_markdown(const CommandLine *line) {
  StrBuf text = {0};
  strbuf_printf(&text, "%s",
                "# Diagnostics\n\nWhat the codes in messages mean, as `etc explain "
                "CODE` prints it: E an error, W a "
                "warning, I information.\nMade by `tools/update-docs`.\n");
  const char *group = "";
  for (unsigned i = 0; i < DIAG_CODE_COUNT; i++) {
    const DiagRow *row = diag_row((DiagCode)i);
    if (diag_group(row) != group)
      strbuf_printf(&text, "\n## %.2s: %s\n", row->code + 1, diag_group(row));
    group = diag_group(row);
    append_markdown_row(&text, row);
  }
  return print_and_release(line, &text);
}

/* What has the word in its summary: "E0317 DIM_UNBOUND, E0319 …"; NULL. */
static const char *about(Arena *arena, const char *word) {
  enum { SHOWN = 6, SHORTEST = 3 };
  const char *text = NULL;
  uint32_t count = 0;
  for (unsigned i = 0; i < DIAG_CODE_COUNT && strlen(word) >= SHORTEST; i++) {
    const DiagRow *row = diag_row((DiagCode)i);
    if (!strstr(row->summary, word) || ++count > SHOWN)
      continue;
    text = arena_printf(arena, "%s%s%s (%s)", text ? text : "", text ? ", " : "", row->code,
                        row->summary);
  }
  return text && count > SHOWN ? arena_printf(arena, "%s and %u more", text, count - SHOWN) : text;
}

static EtcStatus unknown(const CommandLine *line, const char *given) {
  Session *s = line->session;
  const char *names[2 * DIAG_CODE_COUNT];
  for (unsigned i = 0; i < DIAG_CODE_COUNT; i++) {
    names[2 * i] = diag_row((DiagCode)i)->id;
    names[2 * i + 1] = diag_row((DiagCode)i)->code;
  }
  const char *nearest = text_nearest(sv_from(given), names, COUNT_OF(names));
  const char *found = about(&s->arena, given), *hint = "'etc explain' lists all codes";
  if (nearest)
    hint = arena_printf(&s->arena, "did you mean %s?", nearest);
  else if (found)
    hint = arena_printf(&s->arena, "about that there are: %s", found);
  return session_usage(s, "", hint, "there is no diagnostic '%s'", given);
}

int cmd_explain(const CommandLine *line) {
  if (command_line_has(line, OPT_MARKDOWN)) {
    EtcStatus status = expect_arguments(line, 0, "");
    return status != ETC_OK ? (int)status : print_markdown(line);
  }
  if (line->argument_count == 0)
    return list_all(line);
  TRY(expect_arguments(line, 1, "a code"));
  char *name = arena_strdup(&line->session->arena, sv_from(line->arguments[0]));
  for (char *c = name; *c; c++)
    *c = to_upper(*c);
  DiagCode code;
  if (!diag_find(sv_from(name), &code))
    return (int)unknown(line, line->arguments[0]);
  const DiagRow *row = diag_row(code);
  StrBuf text = {0};
  strbuf_printf(&text, "%s %s: %s\n\n", row->code, row->id, row->summary);
  append_wrapped(&text, row->explanation);
  if (row->hint[0])
    strbuf_printf(&text, "\nhint: %s\n", row->hint);
  return print_and_release(line, &text);
}

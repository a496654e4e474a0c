/* etc-manual FOLDER RECIPES.md IR.md: writes the manual pages into FOLDER/man1 and FOLDER/man5,
 * which exist. A part of the build, not installed. Commands and options are those of
 * schema/options.def, the ops of etc-etir(5) the op table, and what formats mean is the text of
 * docs/. */
#include <stdio.h>

#include "etc/options.h"
#include "etc_revision.h"
#include "manual/roff.h"
#include "pipeline/settings.h"

typedef struct Manual {
  Session *session;
  const char *folder;
  StrBuf page; /* that is being written */
  bool failed;
} Manual;

static void begin_page(Manual *m, const char *name, int section, const char *summary) {
  strbuf_clear(&m->page);
  strbuf_append(&m->page, SV(".TH "));
  roff_upper(&m->page, sv_from(name));
  strbuf_printf(&m->page, " %d \"%s\" \"etc %s\"\n", section, ETC_REVISION_DATE, etc_version());
  roff_section(&m->page, SV("NAME"));
  roff_text(&m->page, sv_from(name));
  strbuf_append(&m->page, SV(" \\- "));
  roff_text(&m->page, sv_from(summary));
  strbuf_append_char(&m->page, '\n');
}

static void end_page(Manual *m, const char *name, int section) {
  Session *s = m->session;
  const char *path = arena_printf(&s->arena, "%s/man%d/%s.%d", m->folder, section, name, section);
  StrView text = {strbuf_cstr(&m->page), m->page.size};
  m->failed |= atomic_file_whole(&s->arena, &s->sink, path, text) != STATUS_OK;
}

static const char *page_of(Manual *m, CommandId command) {
  return arena_printf(&m->session->arena, "etc-%s", command_table[command].name);
}

static void append_see(StrBuf *out, const char *page, int section, const char *end) {
  strbuf_append(out, SV(".BR "));
  roff_text(out, sv_from(page));
  strbuf_printf(out, " (%d)%s\n", section, end);
}

static void append_exit_status(StrBuf *out) {
  roff_section(out, SV("EXIT STATUS"));
  strbuf_append(out, SV("0: done; 1: the model or the output cannot be made; 2: wrong usage; 70: a "
                        "fault of etc; 130: interrupted.\n"));
}

/* -o, --output OUT.pte, as in `etc help`, and the summary below. */
static void append_option(StrBuf *out, const OptionRow *row) {
  strbuf_append(out, SV(".TP\n"));
  if (row->short_name[0]) {
    roff_bold(out, sv_from("-"));
    roff_bold(out, sv_from(row->short_name));
    strbuf_append(out, SV(", "));
  }
  roff_bold(out, SV("--"));
  roff_bold(out, sv_from(row->long_name));
  if (row->argument[0]) {
    strbuf_append(out, row->kind == KIND_CHOICE ? SV("[=") : SV(" "));
    roff_italic(out, sv_from(row->argument));
    strbuf_append(out, row->kind == KIND_CHOICE ? SV("]\n") : SV("\n"));
  } else {
    strbuf_append_char(out, '\n');
  }
  roff_text(out, sv_from(row->summary));
  strbuf_append(out, row->kind == KIND_REPEAT ? SV(" (may come often)\n") : SV("\n"));
}

static void append_examples(StrBuf *out, const char *examples) {
  StrBuf text = {0};
  for (const char *at = examples; *at;) {
    size_t size = strcspn(at, "\n") + 1;
    strbuf_printf(&text, "etc %.*s", (int)size, at);
    at += size;
  }
  roff_section(out, SV("EXAMPLES"));
  roff_example(out, (StrView){strbuf_cstr(&text), text.size});
  strbuf_release(&text);
}

/* A line that begins with an option begins a paragraph; lines that begin with blanks stay as they
 * are. */
static void append_description(StrBuf *out, const char *text) {
  roff_section(out, SV("DESCRIPTION"));
  for (const char *at = text; *at;) {
    size_t size = strcspn(at, "\n") + 1;
    if (at[0] == ' ') {
      const char *end = at;
      while (*end == ' ')
        end += strcspn(end, "\n") + 1;
      roff_example(out, (StrView){at, (size_t)(end - at)});
      at = end;
      continue;
    }
    if (at != text && at[0] == '-' && at[1] == '-')
      strbuf_append(out, SV(".PP\n"));
    roff_text(out, (StrView){at, size});
    at += size;
  }
}

static void write_command(Manual *m, CommandId command) {
  const CommandRow *row = &command_table[command];
  const char *name = page_of(m, command);
  StrBuf *out = &m->page;
  begin_page(m, name, 1, row->summary);
  roff_section(out, SV("SYNOPSIS"));
  strbuf_append(out, SV(".B etc "));
  roff_text(out, sv_from(row->name));
  strbuf_append_char(out, '\n');
  if (row->arguments[0]) {
    roff_text(out, sv_from(row->arguments));
    strbuf_append_char(out, '\n');
  }
  append_description(out, row->description);
  roff_section(out, SV("OPTIONS"));
  for (unsigned i = 0; i < OPT_COUNT; i++)
    if (option_table[i].commands >> command & 1)
      append_option(out, &option_table[i]);
  append_examples(out, row->examples);
  append_exit_status(out);
  roff_section(out, SV("SEE ALSO"));
  append_see(out, "etc", 1, ",");
  append_see(out, "etc-recipe", 5, ",");
  append_see(out, "etc-etir", 5, "");
  end_page(m, name, 1);
}

static void write_overview(Manual *m) {
  StrBuf *out = &m->page;
  begin_page(m, "etc", 1, "lower ONNX models to ExecuTorch programs");
  roff_section(out, SV("SYNOPSIS"));
  strbuf_append(out, SV(".B etc\n.I COMMAND\n[\\fIOPTION\\fR...]\n"));
  roff_section(out, SV("DESCRIPTION"));
  strbuf_append(out, SV("Compiles models in the ONNX format to programs (.pte) that the ExecuTorch "
                        "runtime loads, ahead of time.\nEach command has a page of its own.\n"));
  roff_section(out, SV("COMMANDS"));
  for (unsigned i = 0; i < CMD_COUNT; i++) {
    strbuf_append(out, SV(".TP\n"));
    append_see(out, page_of(m, (CommandId)i), 1, "");
    roff_text(out, sv_from(command_table[i].summary));
    strbuf_append_char(out, '\n');
  }
  append_exit_status(out);
  roff_section(out, SV("ENVIRONMENT"));
  strbuf_append(out, SV(".TP\n.B NO_COLOR\nMessages have no colours when it is set and not empty.\n"
                        ".TP\n.B TMPDIR\nWhere what is piped in or out is kept meanwhile.\n"));
  roff_section(out, SV("SEE ALSO"));
  append_see(out, "etc-recipe", 5, ",");
  append_see(out, "etc-etir", 5, "");
  end_page(m, "etc", 1);
}

static void append_document(Manual *m, const char *path) {
  Session *s = m->session;
  MappedFile file;
  if (file_map(&file, &s->arena, &s->sink, path) != STATUS_OK) {
    m->failed = true;
    return;
  }
  roff_section(&m->page, SV("DESCRIPTION"));
  roff_markdown(&m->page, (StrView){(const char *)file.data, (size_t)file.size});
  file_unmap(&file);
}

static void write_recipe(Manual *m, const char *document) {
  begin_page(m, "etc-recipe", 5, "options of etc in a file");
  append_document(m, document);
  roff_section(&m->page, SV("KEYS"));
  for (unsigned i = 0; i < OPT_COUNT; i++) {
    const OptionRow *row = &option_table[i];
    if (!(row->commands >> CMD_lower & 1) || !session_is_recipe_key(sv_from(row->long_name)))
      continue;
    strbuf_append(&m->page, SV(".TP\n"));
    roff_bold(&m->page, sv_from(row->long_name));
    strbuf_append(&m->page, SV(": "));
    roff_italic(&m->page, row->kind == KIND_FLAG ? SV("true|false") : sv_from(row->argument));
    strbuf_append_char(&m->page, '\n');
    roff_text(&m->page, sv_from(row->summary));
    strbuf_append(&m->page,
                  row->kind == KIND_REPEAT ? SV(" (one, a list or a mapping)\n") : SV("\n"));
  }
  roff_section(&m->page, SV("SEE ALSO"));
  append_see(&m->page, "etc-lower", 1, ",");
  append_see(&m->page, "etc-recipe", 1, "");
  end_page(m, "etc-recipe", 5);
}

static void write_etir(Manual *m, const char *document) {
  begin_page(m, "etc-etir", 5, "graphs of etc as text");
  append_document(m, document);
  roff_section(&m->page, SV("OPS"));
  for (unsigned op = OP_OUTPUT + 1; op < OP_PLUGIN; op++) {
    StrView schema = sv_from(op_row((OpId)op)->schema);
    StrView name = op_schema((OpId)op)->full;
    strbuf_append(&m->page, SV(".TP\n"));
    roff_bold(&m->page, name);
    roff_text(&m->page, (StrView){schema.data + name.size, schema.size - name.size});
    strbuf_append_char(&m->page, '\n');
    roff_text(&m->page, sv_from(op_row((OpId)op)->doc));
    strbuf_append_char(&m->page, '\n');
  }
  roff_section(&m->page, SV("SEE ALSO"));
  append_see(&m->page, "etc-print", 1, ",");
  append_see(&m->page, "etc-opt", 1, "");
  end_page(m, "etc-etir", 5);
}

static void to_stderr(void *user, const char *text, size_t size) {
  (void)user;
  fwrite(text, 1, size, stderr);
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: etc-manual FOLDER RECIPES.md IR.md\n");
    return ETC_USAGE;
  }
  Manual m = {.session = etc_session_new(), .folder = argv[1]};
  etc_session_on_output(m.session, to_stderr, NULL);
  write_overview(&m);
  for (unsigned i = 0; i < CMD_COUNT; i++)
    write_command(&m, (CommandId)i);
  write_recipe(&m, argv[2]);
  write_etir(&m, argv[3]);
  strbuf_release(&m.page);
  etc_session_free(m.session);
  return m.failed ? ETC_FAILED : ETC_OK;
}

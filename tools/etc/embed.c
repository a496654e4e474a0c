/* etc embed: programs as source text that firmware is built with. */
#include <stdio.h>

#include "command.h"
#include "pte/embed.h"
#include "pte/ptd.h"
#include "pte/schema.h"
#include "support/text.h"

enum { SLOW_TO_COMPILE = 2 << 20 }; /* bytes; compilers take a second for one mebibyte */

typedef struct Job {
  Session *session;
  const char *path, *output, *header;
  Embed embed;
  PteProgram program;
  PtdFile data;
} Job;

/* --- options --- */

/* "x.h" of "x.c". */
static const char *default_header(Session *s, const char *output) {
  size_t size = strlen(output);
  while (output[size - 1] != '.')
    size--;
  return arena_printf(&s->arena, SV_FMT "h", SV_ARG(((StrView){output, size})));
}

static EtcStatus set_names(Job *j, const CommandLine *line) {
  Session *s = j->session;
  j->path = line->arguments[0];
  if (path_is_stdin(j->path))
    return session_usage(s, "", "write the program to a file first: its name becomes the array's",
                         "'etc embed' does not read standard input");
  j->output = command_line_value(line, OPT_EMBED_OUTPUT);
  if (!j->output)
    return session_usage(s, "--output", "add -o OUT.c or -o OUT.S",
                         "there is no name for the output");
  if (embed_form(sv_from(j->output), &j->embed.form)) {
    j->header = command_line_value(line, OPT_HEADER);
  } else if (file_is_folder(j->output)) {
    return session_usage(s, "--output",
                         arena_printf(&s->arena, "name a file in it: -o %s/program.c", j->output),
                         "'%s' is a folder", j->output);
  } else {
    return session_usage(s, "--output",
                         "the name ends in .c, .cc, .cpp or .cxx, or in .S for the assembler",
                         "'%s' says neither C nor assembler", j->output);
  }
  if (!j->header)
    j->header = default_header(s, j->output);
  if (strcmp(j->header, j->output) == 0 || file_same(j->header, j->output))
    return session_usage(s, "--header", "give the header another name",
                         "array and header would be the same file");
  return ETC_OK;
}

static EtcStatus set_symbol(Job *j, const char *given) {
  j->embed.symbol = given ? given : embed_symbol(&j->session->arena, sv_from(j->path));
  return embed_is_identifier(sv_from(j->embed.symbol))
             ? ETC_OK
             : session_usage(j->session, "--name",
                             "letters, digits and '_', no digit first, no keyword of C or C++",
                             "'%s' cannot be the name of an array in C", j->embed.symbol);
}

static EtcStatus set_section(Job *j, const char *given) {
  static const char allowed[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._$-";
  j->embed.section = given;
  if (given && (!given[0] || given[strspn(given, allowed)]))
    return session_usage(j->session, "--section", "letters, digits and any of '._$-'",
                         "'%s' cannot be the name of a section", given);
  return ETC_OK;
}

static EtcStatus set_alignment(Job *j, const char *given) {
  uint64_t n;
  if (!given)
    return ETC_OK;
  if (!text_parse_u64(sv_from(given), &n) || n < PTE_TENSOR_ALIGNMENT || n > EMBED_MAX_ALIGNMENT ||
      (n & (n - 1)))
    return session_usage(j->session, "--align", "a power of two from 16 to 4096",
                         "'%s' cannot be the alignment of a program", given);
  j->embed.alignment = n;
  return ETC_OK;
}

static EtcStatus set_options(Job *j, const CommandLine *line) {
  TRY(set_names(j, line));
  TRY(set_symbol(j, command_line_value(line, OPT_SYMBOL)));
  TRY(set_section(j, command_line_value(line, OPT_SECTION)));
  return set_alignment(j, command_line_value(line, OPT_ALIGN));
}

/* --- files --- */

static Status open_input(Job *j) {
  Session *s = j->session;
  if (sv_has_suffix(sv_from(j->path), SV(".ptd"))) {
    TRY(ptd_open(&j->data, &s->sink, s->ctx.names.seed, j->path));
    j->embed.file = &j->data.file;
  } else {
    TRY(pte_program_open(&j->program, &s->sink, j->path));
    j->program.readers = s->ctx.readers;
    j->embed.file = &j->program.file;
    j->embed.program = &j->program;
  }
  if (!j->embed.alignment)
    j->embed.alignment =
        j->embed.program ? embed_alignment(j->embed.program) : PTE_SEGMENT_ALIGNMENT;
  return STATUS_OK;
}

static void close_input(Job *j) {
  if (j->embed.program)
    pte_program_close(&j->program);
  else if (j->embed.file)
    ptd_close(&j->data);
}

static Status refuse_input_as_output(Job *j, const char *output) {
  if (!file_same(j->path, output))
    return STATUS_OK;
  Diag *d = diag_begin(&j->session->sink, DIAG_FILE_WRITE, diag_file(output));
  diag_message(d, "'%s' is the file that is to be embedded", output);
  diag_hint(d, "give the output another name");
  return diag_end(d);
}

/* The array comes last: when it appears, header and dependencies are there. */
static Status write_outputs(Job *j) {
  Session *s = j->session;
  AtomicFile array, header;
  TRY(refuse_input_as_output(j, j->output));
  TRY(refuse_input_as_output(j, j->header));
  TRY(session_check_depfile(s, j->output));
  TRY(atomic_file_open(&array, &s->arena, &s->sink, j->output));
  Status status = atomic_file_open(&header, &s->arena, &s->sink, j->header);
  if (status == STATUS_OK) {
    status = embed_write_header(&j->embed, &s->sink, &header);
    if (status == STATUS_OK) {
      embed_write_array(&j->embed, &array);
      status = file_check_unchanged(j->embed.file, &s->sink);
    }
    if (status == STATUS_OK)
      status = session_write_depfile(s, j->output);
    if (status == STATUS_OK)
      status = atomic_file_commit(&header, false);
    else
      atomic_file_abandon(&header);
  }
  if (status == STATUS_OK)
    return atomic_file_commit(&array, false);
  atomic_file_abandon(&array);
  return status;
}

static void print_summary(const Job *j) {
  StrBuf text = {0};
  if (j->session->sink.quiet)
    return;
  strbuf_append_within(&text, "wrote ", sv_from(j->output), " and ");
  strbuf_append_printable(&text, sv_from(j->header));
  strbuf_printf(&text, "\n  array '%s' of ", j->embed.symbol);
  strbuf_append_bytes(&text, j->embed.file->size);
  strbuf_printf(&text, ", aligned to %llu\n", (unsigned long long)j->embed.alignment);
  if (j->embed.form != EMBED_ASSEMBLER && j->embed.file->size > SLOW_TO_COMPILE)
    strbuf_append(&text, SV("  next: compilers take a second and 100 MB of memory for each "
                            "megabyte of an array; -o OUT.S is assembled at once\n"));
  fwrite(strbuf_cstr(&text), 1, text.size, stderr);
  strbuf_release(&text);
}

int cmd_embed(const CommandLine *line) {
  Job job = {.session = line->session};
  TRY(expect_arguments(line, 1, "a program"));
  TRY(command_line_apply(line));
  TRY(set_options(&job, line));
  EtcStatus status = session_status(open_input(&job));
  if (status == ETC_OK)
    status = session_status(write_outputs(&job));
  if (status == ETC_OK)
    print_summary(&job);
  close_input(&job);
  return (int)status;
}

/* The command `etc`: finds the subcommand, sets up messages, colours and signals. Exit codes: 0
 * done, 1 the model or the output cannot be made, 2 usage, 70 a fault of etc, 130 interrupted. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "command.h"
#include "pipeline/recipe.h"
#include "progress.h"
#include "signals.h"
#include "support/files.h"

static CommandFn *const functions[CMD_COUNT] = {
#define COMMAND(id, name, arguments, summary, description, examples) cmd_##id,
#include "options.def"
};

static bool wants_color(const char *when) {
  if (when && strcmp(when, "auto") != 0)
    return strcmp(when, "always") == 0;
  const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
  return isatty(STDERR_FILENO) && !(none && none[0]) && terminal && strcmp(terminal, "dumb") != 0;
}

/* Options about messages count for messages about options as well, so they are looked up before the
 * command line is parsed. */
static void prepare_messages(Session *s, int argc, char **argv) {
  s->sink.color = wants_color(NULL);
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
    if (strcmp(argv[i], "--diagnostics=json") == 0 ||
        (strcmp(argv[i], "--diagnostics") == 0 && i + 1 < argc && strcmp(argv[i + 1], "json") == 0))
      s->sink.format = DIAG_JSON;
    if (strcmp(argv[i], "--quiet") == 0 || strcmp(argv[i], "-q") == 0)
      s->sink.quiet = true;
  }
}

/* Their values, checked, once the command line is known. */
static EtcStatus apply_message_options(const CommandLine *line) {
  const char *format = command_line_value(line, OPT_DIAGNOSTICS),
             *color = command_line_value(line, OPT_COLOR);
  line->session->sink.quiet |= command_line_has(line, OPT_QUIET); /* as in -qv, too */
  EtcStatus status = format ? etc_session_set(line->session, "diagnostics", format) : ETC_OK;
  if (status == ETC_OK && color && strcmp(color, "auto") != 0)
    status = etc_session_set(line->session, "color", color);
  return status;
}

static EtcStatus unknown_command(Session *s, const char *name) {
  if (name[0] == '-')
    return session_usage(s, "", arena_printf(&s->arena, "write etc COMMAND %s", name),
                         "'%s' is where the command should be", name);
  const char *nearest = command_nearest(sv_from(name));
  const char *hint = nearest ? arena_printf(&s->arena, "did you mean 'etc %s'?", nearest)
                             : "'etc help' lists the commands";
  return session_usage(s, "", hint, "etc has no command '%s'", name);
}

EtcStatus expect_arguments(const CommandLine *line, uint32_t count, const char *what) {
  const CommandRow *row = &command_table[line->command];
  if (line->argument_count == count)
    return ETC_OK;
  const char *usage = arena_printf(&line->session->arena, "usage: etc %s%s%s", row->name,
                                   row->arguments[0] ? " " : "", row->arguments);
  if (line->argument_count < count)
    return session_usage(line->session, "", usage, "'etc %s' needs %s", row->name, what);
  return session_usage(line->session, "", usage, "'etc %s' takes no argument '%s'", row->name,
                       line->arguments[count]);
}

EtcStatus expect_some(const CommandLine *line, const char *what) {
  return line->argument_count ? ETC_OK : expect_arguments(line, 1, what);
}

EtcStatus add_model(const CommandLine *line) {
  Session *s = line->session;
  if (line->argument_count != 1 && (line->argument_count || !s->recipe))
    TRY(expect_arguments(line, 1, "a model"));
  if (line->argument_count)
    TRY(session_add_source(s, "forward", line->arguments[0]));
  TRY(recipe_apply(s));
  return s->program.source_count ? ETC_OK : expect_arguments(line, 1, "a model");
}

EtcStatus load_model(const CommandLine *line, bool allow_pte) {
  TRY(add_model(line));
  return session_status(session_import(line->session, allow_pte));
}

EtcStatus read_stdin(const CommandLine *line, const Source **read) {
  Session *s = line->session;
  TRY(s->program.source_count
          ? session_usage(s, "", "name it once", "standard input can be read only once")
          : session_add_source(s, "forward", "-"));
  *read = s->program.sources[0];
  return ETC_OK;
}

EtcStatus open_program(const CommandLine *line, const char *path, const Source *read,
                       PteProgram *program) {
  DiagSink *sink = &line->session->sink;
  if (!read && path_is_stdin(path))
    TRY(read_stdin(line, &read));
  return session_status(read ? pte_program_open_bytes(program, sink, read->mapped.path,
                                                      read->mapped.data, read->mapped.size)
                             : pte_program_open(program, sink, path));
}

EtcStatus refuse_warnings(const CommandLine *line) {
  const DiagSink *sink = &line->session->sink;
  return sink->werror && sink->errors ? session_status(STATUS_INVALID) : ETC_OK;
}

int print_and_release(const CommandLine *line, StrBuf *text) {
  bool written =
      fwrite(strbuf_cstr(text), 1, text->size, stdout) == text->size && fflush(stdout) == 0;
  int error = errno;
  strbuf_release(text);
  if (written)
    return ETC_OK;
  return (int)session_status(report_stdout(&line->session->sink, error));
}

int write_and_release(const CommandLine *line, StrBuf *text, const char *path) {
  if (!path || strcmp(path, "-") == 0)
    return print_and_release(line, text);
  Session *s = line->session;
  Status status =
      atomic_file_whole(&s->arena, &s->sink, path, (StrView){strbuf_cstr(text), text->size});
  strbuf_release(text);
  return (int)session_status(status);
}

typedef struct Arguments {
  int count;
  char **texts;
} Arguments;

static void to_stderr(void *user, const char *text, size_t size) {
  (void)user;
  fwrite(text, 1, size, stderr);
}

static EtcStatus run(Session *s, void *user) {
  const Arguments *given = user;
  int argc = given->count;
  char **argv = given->texts;
  if (argc < 2) {
    StrBuf text = {0};
    help_overview(&text);
    fwrite(strbuf_cstr(&text), 1, text.size, stderr);
    strbuf_release(&text);
    return ETC_USAGE;
  }
  const char *name = argv[1];
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
    name = "help";
  if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
    name = "version";
  CommandLine line = {.session = s, .command = command_find(sv_from(name))};
  if (line.command == CMD_COUNT)
    return unknown_command(s, name);
  TRY(command_line_parse(&line, argc - 2, argv + 2));
  TRY(apply_message_options(&line));
  if (line.help) {
    StrBuf text = {0};
    help_command(line.command, &text);
    return (EtcStatus)print_and_release(&line, &text);
  }
  return (EtcStatus)functions[line.command](&line);
}

int main(int argc, char **argv) {
  /* Read when the library is loaded (src/ops/gemm.c): products run on our threads, and its own
   * would only spin. */
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  Session *s = etc_session_new();
  if (!s) {
    fputs("etc: out of memory\n", stderr);
    return ETC_FAILED;
  }
  etc_session_on_output(s, to_stderr, NULL);
  s->manager.options.progress = signals_install();
  s->registry.running = &s->manager.options.progress->plugin;
  prepare_messages(s, argc, argv);
  EtcStatus status = session_call(s, run, &(Arguments){argc, argv});
  progress_stop(); /* where memory ran out it still runs */
  etc_session_free(s);
  return status == ETC_NO_MEMORY ? ETC_FAILED : (int)status;
}

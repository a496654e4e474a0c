/* What the files of the subcommands share. Each has one function, cmd_<name>, which returns the
 * exit code. */
#ifndef ETC_TOOLS_COMMAND_H
#define ETC_TOOLS_COMMAND_H

#include "options.h"
#include "pipeline/program.h"

typedef int CommandFn(const CommandLine *line);
#define COMMAND(id, name, arguments, summary, description, examples) CommandFn cmd_##id;
#include "options.def"

/* Reports wrong usage unless there are exactly count arguments; what names them ("a model"). */
EtcStatus expect_arguments(const CommandLine *line, uint32_t count, const char *what);
/* The same for one argument or more. */
EtcStatus expect_some(const CommandLine *line, const char *what);
/* The one argument as a source of the session, if there is one, and what the recipe says. */
EtcStatus add_model(const CommandLine *line);
/* The same, and all graphs read. */
EtcStatus load_model(const CommandLine *line, bool allow_pte);
/* Standard input as a source of the session, whose kind its first bytes tell; it can be read once.
 */
EtcStatus read_stdin(const CommandLine *line, const Source **read);
/* The program at path, '-' being standard input; read: standard input if it has been read, or NULL.
 */
EtcStatus open_program(const CommandLine *line, const char *path, const Source *read,
                       PteProgram *program);
/* With -Werror: an error when there were warnings, which were shown as errors. */
EtcStatus refuse_warnings(const CommandLine *line);
/* Writes to standard output and releases text; 1 with a message when that fails. */
int print_and_release(const CommandLine *line, StrBuf *text);
/* The same to path, when it is whole; NULL: standard output. */
int write_and_release(const CommandLine *line, StrBuf *text, const char *path);

#endif

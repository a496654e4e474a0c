/* The command line as data: rows of schema/options.def, and what was given. */
#ifndef ETC_TOOLS_OPTIONS_H
#define ETC_TOOLS_OPTIONS_H

#include "pipeline/session.h"

typedef enum CommandId {
#define COMMAND(id, name, arguments, summary, description, examples) CMD_##id,
#include "options.def"
  CMD_COUNT
} CommandId;

typedef enum OptionId {
#define OPTION(id, commands, long, short, kind, argument, summary) OPT_##id,
#include "options.def"
  OPT_COUNT
} OptionId;

typedef enum OptionKind { KIND_FLAG, KIND_VALUE, KIND_REPEAT, KIND_CHOICE } OptionKind;

typedef struct CommandRow {
  const char *name, *arguments, *summary, *description, *examples;
} CommandRow;

typedef struct OptionRow {
  OptionId id;
  uint32_t commands; /* bit of each CommandId */
  const char *long_name, *short_name;
  OptionKind kind;
  const char *argument, *summary;
} OptionRow;

extern const CommandRow command_table[CMD_COUNT];
extern const OptionRow option_table[OPT_COUNT];

typedef struct GivenOption {
  const OptionRow *row;
  const char *value; /* "" for flags */
} GivenOption;

/* What was given on the command line, in order. */
typedef struct CommandLine {
  Session *session; /* for messages */
  CommandId command;
  GivenOption *options;
  uint32_t option_count;
  const char **arguments; /* those that are no options */
  uint32_t argument_count;
  bool help;
} CommandLine;

/* Splits argv[0 .. argc) (after the name of the command). Strings are borrowed. Wrong usage is
 * reported: ETC_USAGE. */
EtcStatus command_line_parse(CommandLine *line, int argc, char **argv);
/* The value of an option, "" for a flag that is given, NULL when it is not. */
const char *command_line_value(const CommandLine *line, OptionId id);
static inline bool command_line_has(const CommandLine *line, OptionId id) {
  return command_line_value(line, id) != NULL;
}
/* Hands every option that the library knows to the session (etc_session_set), until one is refused.
 */
EtcStatus command_line_apply(const CommandLine *line);
/* CMD_COUNT when there is no such command. */
CommandId command_find(StrView name);
const char *command_nearest(StrView name);

/* Help texts. */
void help_overview(StrBuf *out);
void help_command(CommandId command, StrBuf *out);

#endif

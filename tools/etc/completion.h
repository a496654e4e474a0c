/* What a shell can offer behind an option or a command, and the scripts that do so. */
#ifndef ETC_TOOLS_COMPLETION_H
#define ETC_TOOLS_COMPLETION_H

#include "command.h"

/* What a value may be. Both texts are words separated by spaces; a suffix has no dot. */
typedef struct Candidates {
  const char *words, *suffixes;
  bool files;   /* of any name */
  bool folders; /* only these */
} Candidates;

/* Of the value of an option, and of the arguments of a command: the words and endings of files in
 * its usage (schema/options.def), and the names that tables have for it. The texts are in the arena
 * of the session. */
Candidates option_candidates(Session *s, const OptionRow *row);
Candidates argument_candidates(Session *s, CommandId command);

static inline bool has_candidates(Candidates c) {
  return c.words[0] || c.suffixes[0] || c.files || c.folders;
}

/* The scripts. */
void completion_bash(Session *s, StrBuf *out);
void completion_zsh(Session *s, StrBuf *out);
void completion_fish(Session *s, StrBuf *out);

#endif

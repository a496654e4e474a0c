/* BUG(): the end of a process that has found a fault of its own.
 *
 * exit rather than abort, so that scripts see the documented code 70 (EX_SOFTWARE of sysexits.h)
 * and fuzzers, which watch for exit, see a finding. Temporary output files are removed first. */
#include "support/files.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *volatile *bug_plugin;

void bug_at(const char *file, int line, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "etc: internal error at %s:%d: ", file, line);
  vfprintf(stderr, format, args);
  va_end(args);
  fputs(bug_plugin && *bug_plugin
            ? "\netc: a plug-in may have broken a rule of the graph; this is not a fault of the "
              "model\n"
            : "\netc: this is not a fault of the model; please report it with the command line\n",
        stderr);
  atomic_file_remove_pending();
  exit(70);
}

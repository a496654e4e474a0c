/* The file of `etc run --profile`. */
#ifndef ETC_TOOLS_RUN_PROFILE_H
#define ETC_TOOLS_RUN_PROFILE_H

#include "command.h"
#include "support/json.h"

typedef struct RunProfile {
  const Graph *g;
  StrBuf text;
  JsonWriter w;
  uint64_t start;    /* ns, when the first node began */
  uint64_t events;   /* in the file */
  uint64_t left_out; /* beyond what a file may hold */
} RunProfile;

/* Begins a trace of g in the trace event format, which Perfetto and chrome://tracing open. */
void profile_begin(RunProfile *p, const Graph *g);
/* An InterpTrace; user is the RunProfile. */
void profile_step(void *user, NodeId n, uint64_t begin, uint64_t end);
/* Ends the trace and writes it to path when `keep`; releases it. Exit status. */
int profile_end(const CommandLine *line, RunProfile *p, const char *path, bool keep);

#endif

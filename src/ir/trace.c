/* See trace.h. */
#include "ir/trace.h"

Trace *trace_new(void) {
  Trace *trace = xrealloc(NULL, sizeof *trace);
  *trace = (Trace){0};
  return trace;
}

void trace_free(Trace *trace) {
  if (trace)
    xfree(trace->events);
  xfree(trace);
}

void trace_add(Trace *trace, TraceEvent event) {
  trace->events = pool_reserve(trace->events, &trace->capacity, (uint64_t)trace->count + 1,
                               sizeof *trace->events);
  event.run = trace->run;
  event.rule = trace->rule;
  event.at = trace->at;
  trace->events[trace->count++] = event;
}

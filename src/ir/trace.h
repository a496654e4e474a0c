/* Trace: what happened to the nodes and values of a graph, in order; recorded only where somebody
 * asks (Context.traced, for `etc why`).
 *
 * The functions of graph.h, the builder and the driver of rewriting (rewrite.h) record; passes know
 * nothing of it. Handles are never used twice within a graph, so that events name what is gone as
 * well. */
#ifndef ETC_IR_TRACE_H
#define ETC_IR_TRACE_H

#include "ir/graph.h"

typedef enum TraceKind {
  TRACE_BUILT,    /* node, with op and loc */
  TRACE_EDITED,   /* node: a rule changed it in place */
  TRACE_REMOVED,  /* node, with results `value` to `to` - 1; what it releases follows */
  TRACE_REPLACED, /* value: its users use `to` from here on */
  TRACE_RELEASED, /* value: `node` was its last user, and was removed or got another argument */
  TRACE_BOUND,    /* import: `name` is the next output of the operator at loc; value 0: no tensor */
  TRACE_READ      /* import: `name` is the next input of the operator at loc; value as above */
} TraceKind;

typedef struct TraceEvent {
  TraceKind kind;
  uint32_t run;     /* of a pass, from 1 (Facts.runs); 0: while importing */
  const char *rule; /* of the Rewriter that changes the graph; NULL outside of rules */
  NodeId at;        /* the node that the rule looks at; 0 outside of rules */
  NodeId node;
  ValueId value, to;
  LocId loc;
  NameId name;
  OpId op;
} TraceEvent;

struct Trace {
  TraceEvent *events;
  uint32_t count, capacity;
  uint32_t run; /* of the events that come: set by the pass manager */
  const char *rule;
  NodeId at; /* these two by the driver of rewriting */
};

/* Adds an event with run, rule and at as they are. */
void trace_add(Trace *trace, TraceEvent event);
/* Adds an event to the trace of the graph, if it has one. */
#define TRACE(g, ...)                                                                              \
  do {                                                                                             \
    if ((g)->trace)                                                                                \
      trace_add((g)->trace, (TraceEvent){__VA_ARGS__});                                            \
  } while (0)

Trace *trace_new(void);
void trace_free(Trace *trace); /* may be NULL */

#endif

/* The life of an operator or a constant of the model: what carried its work, pass by pass, up to
 * the program; found in the trace of the graph (ir/trace.h).
 *
 * A carrier is a node, or a constant, input or state. The first ones are the nodes that import
 * made of the operator. Where a pass takes one away, those that took its place carry on: what its
 * results were replaced by, and where the pass replaced a user of it by something new, that (a
 * batch norm that takes the convolution before it along). What is replaced by a value that was
 * there already goes on in that; what nothing took the place of ends. Nodes that passes add with
 * the location of the operator (copies, conversions) are carriers, too. */
#ifndef ETC_PIPELINE_LIFE_H
#define ETC_PIPELINE_LIFE_H

#include "ir/trace.h"
#include "passes/facts.h"

typedef enum CarrierKind { CARRIER_NODE, CARRIER_VALUE } CarrierKind;

/* Why one is not there any more. */
typedef enum LifeChange {
  LIFE_STAYS,    /* it is in the last graph */
  LIFE_REPLACED, /* something new took its place */
  LIFE_FUSED,    /* something new took the place of what used it, and of it */
  LIFE_EQUAL,    /* another value, which was there already, is the same */
  LIFE_FOLDED,   /* its result is a constant */
  LIFE_DELEGATED,
  LIFE_UNUSED, /* nothing uses it (any more) */
  LIFE_ADDED /* of no carrier's end: a pass put it there for the operator, besides what there was */
} LifeChange;

typedef struct Carrier {
  CarrierKind kind;
  uint32_t id; /* NodeId or ValueId */
  OpId op;     /* of a node, as it was built; those that are gone, too */
  LocId loc;
  uint32_t born;     /* run of a pass in which it became one, from 1; 0: import */
  LifeChange change; /* how it ended */
  uint32_t lost;     /* in which run; of LIFE_STAYS nothing */
  const char *rule;  /* of the pass that ended it, or NULL */
  uint32_t from;     /* 1 + the carrier that it carries on from first; 0: it is one of the first */
  uint32_t next;     /* 1 + the carrier that carries on; 0: none */
  bool equal; /* it was there already, for another operator (LIFE_EQUAL), or continues one that was
               */
} Carrier;

typedef struct Life {
  const Graph *g;
  Carrier *carriers; /* in the order in which they were found */
  uint32_t count;
} Life;

/* What of the model is asked for: an operator by its locations (ascending; one that is inlined
 * several times has several), or else a value. */
typedef struct LifeTarget {
  const LocId *locs;
  uint32_t loc_count;
  ValueId value;
} LifeTarget;

/* The trace of a graph, made ready for looking up; for any number of targets. */
typedef struct LifeIndex LifeIndex;
/* g must have a trace. In arena. */
const LifeIndex *life_index(const Graph *g, Arena *arena);
/* Whether the location is one of the target's. */
bool life_owns(const LifeTarget *target, LocId loc);
/* The events of that kind, TRACE_BUILT or TRACE_BOUND, at the locations of the target, in order:
 * numbers of events in arena. */
uint32_t *life_events(const LifeIndex *x, const LifeTarget *target, TraceKind kind, Arena *arena,
                      uint32_t *count);
#define LIFE_NO_EVENT UINT32_MAX
/* The first TRACE_EDITED of a node, the first TRACE_READ of a name or of a value; LIFE_NO_EVENT. */
uint32_t life_first_edit(const LifeIndex *x, NodeId n);
uint32_t life_first_read(const LifeIndex *x, NameId name);
uint32_t life_first_read_of(const LifeIndex *x, ValueId v);
/* The one behind event i of the same list; of reads of a value with by_value. */
uint32_t life_next_event(const LifeIndex *x, uint32_t i, bool by_value);
/* Follows the target. Everything is in arena. */
Life life_find(const LifeIndex *index, LifeTarget target, Arena *arena);
#endif

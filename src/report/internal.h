/* What the files of the report share. */
#ifndef ETC_REPORT_INTERNAL_H
#define ETC_REPORT_INTERNAL_H

#include "ir/op.h"
#include "report/report.h"

/* Nodes of a stage are numbered: inputs, states, the nodes in order, outputs. */
static inline uint32_t report_first_node(const Graph *g) { return g->input_count + g->state_count; }

/* Write members into the current JSON object; names that are 0 or empty are left out. */
void report_name(JsonWriter *w, const char *key, const Graph *g, NameId name);
void report_type(JsonWriter *w, const Graph *g, const Type *t);
/* A constant as an object. loc, delegate: 0 for none. */
void report_constant(JsonWriter *w, const Graph *g, ValueId v, LocId loc, uint32_t delegate);
/* The array of all nodes of g. */
void report_nodes(JsonWriter *w, const Graph *g);
/* "places": where nodes come from, by LocId, and which delegates and kernels they became. */
void report_places(JsonWriter *w, const Graph *g, Arena *scratch);
/* "memory": arenas, blocks with their lifetimes, and the peak. */
Status report_memory(JsonWriter *w, Graph *g, Arena *scratch);
/* "constants" and "delegates" */
void report_constants(JsonWriter *w, const ReportMethod *m, const Graph *g, Arena *scratch);
void report_delegates(JsonWriter *w, const Graph *g, Arena *scratch);

#endif

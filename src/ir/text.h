/* The textual form, .etir: print and parse round-trip exactly. Grammar: docs/reference/etir.md. */
#ifndef ETC_IR_TEXT_H
#define ETC_IR_TEXT_H

#include "ir/op.h"

typedef struct PrintOptions {
  bool full_constants;    /* large computed constants in full (hex); otherwise by hash, which only
                             parses with a source of constants */
  bool locations;         /* print loc(...) */
  bool pipeline;          /* print the stage, and the options that the graph was lowered with up to
                             there; those of a graph that says no stage are printed anyway */
  const StrView *program; /* options of its program, behind those; program_count of them */
  uint32_t program_count;
} PrintOptions;

void graph_print(const Graph *g, PrintOptions options, StrBuf *out);
/* Prints one node on a line (no newline), for notes and the annotated verifier output. */
void node_print(const Graph *g, NodeId n, StrBuf *out);
void type_print(const Graph *g, const Type *t, StrBuf *out);
/* Prints a type for messages, with the range of each dynamic dim: "f32[batch=1..8, 64]". */
void type_describe(const Graph *g, const Type *t, StrBuf *out);
/* A type whose sizes are known, for messages: "f32[2, 3]"; dtype "" for the shape alone. */
void shape_describe(const char *dtype, const int64_t *dims, uint32_t rank, StrBuf *out);
/* A dim as text for messages ("4", "batch + 1"); lives as long as the graph. */
const char *dim_text(Graph *g, SymInt v);
/* " loc(...) from(...)", each location naming an older one; nothing for 0. */
void loc_print(const Graph *g, LocId id, StrBuf *out);
/* " of [ loc(...), ... ]": what the call of a delegate was made of, if that is known. */
void origin_print(const Graph *g, NodeId call, StrBuf *out);
/* The lines "range EXPR" that g needs. */
void print_proofs(const Graph *g, StrBuf *out);
/* Prints an argument that is no value and no list of values. */
void arg_print(const Graph *g, const Arg *arg, StrBuf *out);

/* Parses a whole file of one or more graphs (methods). constants_from may be NULL; otherwise
 * constants printed by hash are looked up there (round-trip check). file names the text in
 * diagnostics. On success *graphs is an arena array of *count graphs that the caller frees. Large
 * constants in files are mapped again below the folder of `file`, or at the absolute path printed,
 * and checked by size and hash. */
Status graph_parse(Context *ctx, StrView text, StrView file, const Graph *constants_from,
                   Graph ***graphs, uint32_t *count);
/* First difference of two graphs as text, or false when equal (ids may differ). For the round-trip
 * check. */
bool graph_differs(const Graph *a, const Graph *b, StrBuf *where);

#endif

/* What the files of the .etir parser share: parse.c (graphs, statements), parse_arg.c (types,
 * arguments), parse_const.c (constants), parse_loc.c (locations). Not for use outside src/ir. */
#ifndef ETC_IR_PARSER_H
#define ETC_IR_PARSER_H

#include "ir/text.h"
#include "ir/text_lexer.h"

/* A file that the text names. */
typedef struct SourceFile {
  StrView path; /* as written */
  const MappedFile *file;
  struct SourceFile *next;
} SourceFile;

/* Constants of the graph given as constants_from, by what identifies them: open addressing. */
typedef struct KnownConstants {
  const Graph *graph;
  const Constant **slots;
  uint64_t *keys;
  uint32_t slot_count; /* a power of two, 0 = not filled yet */
} KnownConstants;

typedef struct Parser {
  Lexer lex;
  Context *ctx;
  Graph *g;
  Arena arena;     /* for the whole text */
  Arena scratch;   /* for one statement */
  StrBuf text;     /* for one string */
  ValueId *values; /* by number in the text; 0 = not defined */
  uint32_t value_capacity;
  uint32_t *defined; /* the numbers in use, to forget them after each graph */
  uint32_t defined_count, defined_capacity;
  StrView last_loc_text; /* the latest loc(...) as written, with its LocId */
  LocId last_loc;
  SourceFile *files;
  KnownConstants known;
} Parser;

/* A value number that must be defined. */
Status parse_value(Parser *p, ValueId *out);
/* A string or none. The string gets an id; none gives 0. */
Status parse_name(Parser *p, const char *what, NameId *out);
/* An integer or an expression over the graph's symbols. */
Status parse_sym(Parser *p, SymInt *out);
/* loc(...) from(...), or nothing: 0. */
Status parse_loc(Parser *p, LocId *out);
/* of [...], the nodes that a call of a delegate was made of, or nothing. */
Status parse_origin(Parser *p, NodeId call);
Status parse_type(Parser *p, TypeId *out);
/* The arguments of a call, up to ')'. args has room for SCHEMA_MAX_ARGS; lists live in scratch.
 * Those left out have their default. */
Status parse_args(Parser *p, OpId op, ArgIn *args);
/* The data of a constant, as after "const": its bytes, in the graph or a mapped file. */
Status parse_data(Parser *p, TypeId type, Constant *out);

#endif

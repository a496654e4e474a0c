/* Sheets of facts: what is known of a program, a model or a graph, as rows in sections, and what
 * differs between two of them. Whoever reads a file fills a sheet (pte_sheet, onnx_sheet); nothing
 * here knows what the facts mean. */
#ifndef ETC_SUPPORT_SHEET_H
#define ETC_SUPPORT_SHEET_H

#include "support/arena.h"
#include "support/json.h"

/* In the order in which they are shown. */
typedef enum FactSection {
  FACTS_INTERFACE,
  FACTS_SIZE,
  FACTS_MEMORY,
  FACTS_OPERATORS,
  FACTS_DELEGATES,
  FACTS_QUANTIZATION,
  FACTS_CONSTANTS,
  FACT_SECTIONS
} FactSection;

typedef enum FactKind { FACT_COUNT, FACT_BYTES, FACT_TEXT } FactKind;

typedef struct Fact {
  FactSection section;
  FactKind kind;
  StrView method;  /* that it is of, or empty */
  StrView name;    /* within section and method */
  uint64_t number; /* FACT_COUNT, FACT_BYTES */
  StrView text;    /* FACT_TEXT */
  uint64_t hash;   /* of the contents that the fact stands for; 0: it has none */
} Fact;

typedef struct Sheet {
  Arena *arena;
  const char *path, *kind; /* kind: "program", "ONNX model", "textual graph" */
  uint64_t seed;           /* of hashes */
  Fact *facts;
  uint32_t count;
} Sheet;

/* Keeps a copy of the fact and its texts. */
void sheet_add(Sheet *s, Fact fact);
/* Adds the facts of `counted`, in the order of their names; the numbers of one section, method and
 * name as their sum. */
void sheet_add_sums(Sheet *s, const Sheet *counted);

/* A fact that is not the same in both sheets; NULL where it is not there. */
typedef struct FactChange {
  const Fact *before, *after;
} FactChange;

typedef struct SheetDiff {
  const Sheet *before, *after;
  FactChange *changes; /* by section, then in the order of the sheets */
  uint32_t count;
  bool methods; /* there are several: facts are shown with theirs */
} SheetDiff;

/* Facts are the same fact when section, method, name and kind are equal; of several of one name the
 * first is compared with the first. In the arena of `before`. */
SheetDiff sheet_compare(const Sheet *before, const Sheet *after);

/* Append what differs, whatever the names of files and facts hold: text is safe to print on a
 * terminal, Markdown shows names as they are. all: else the first rows of long sections; Markdown
 * has all, long sections folded. */
void sheet_diff_text(const SheetDiff *d, bool all, StrBuf *out);
void sheet_diff_markdown(const SheetDiff *d, StrBuf *out);
void sheet_diff_json(const SheetDiff *d, JsonWriter *w);

#endif

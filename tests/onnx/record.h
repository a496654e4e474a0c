/* What lowering makes of a case, as a line of hashes: NAME, then one for each of record_columns.
 *
 * A hash is of text, from which is left out what depends on the machine: the bytes of constants,
 * all but a few digits of a float, paths. So a line changes when a graph does, where the memory of
 * a tensor is, a node of a delegate, or what etc tells about it; and the first hash that differs
 * says since which stage. */
#ifndef ETC_TESTS_RECORD_H
#define ETC_TESTS_RECORD_H

#include "pipeline/session.h"

typedef enum RecordColumn {
  RECORD_IMPORT,
  RECORD_SOURCE,
  RECORD_CORE,
  RECORD_EDGE,
  RECORD_TO_BACKEND,
  RECORD_TO_EXECUTORCH,
  RECORD_PROGRAM, /* read back, with the nodes of its delegates */
  RECORD_PASSES,  /* what each counted */
  RECORD_TOLD,    /* messages, --explain=json, inspect, size */
  RECORD_REPORT,
  RECORD_COLUMNS
} RecordColumn;

enum { RECORD_DIGITS = 3 }; /* of a hash; a blank is before each */

extern const char *const record_columns[RECORD_COLUMNS];

typedef struct Record {
  const char *folder; /* the paths in it are left out */
  int digits;         /* of floats, that are not left out */
  const char *keep;   /* prefix of files for the texts, or NULL */
  StrBuf texts[RECORD_COLUMNS];
} Record;

void record_init(Record *r, const char *folder, int digits);
void record_release(Record *r);
/* Lowers as session_run does, and keeps the graphs of the stages. */
Status record_run(Record *r, Session *s);
/* After the program was written: passes, messages, the report at that path. */
void record_facts(Record *r, const Session *s, const StrBuf *messages, const char *report);
/* Of the session that read the program, its graph and what is said of it. */
void record_program(Record *r, const Session *s);
/* Appends the line, with a line feed. */
void record_line(Record *r, const char *name, StrBuf *out);

#endif

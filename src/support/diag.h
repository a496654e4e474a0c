/* The one diagnostics path. A diagnostic has a severity, a code (a row of schema/diags.def), a
 * place, a message, notes and a hint; it goes to the sink of the context, which renders it as text
 * or as one JSON object a line, and counts it.
 *
 * Usage:
 *   Diag *d = diag_begin(sink, DIAG_DIM_UNBOUND, place);     // severity and hint come from the row
 *   diag_message(d, "dimension '" SV_FMT "' has no bound", SV_ARG(name));
 *   diag_note(d, "first used by node '%s'", node);
 *   diag_hint(d, "add --dim %s=N or --dim %s=LO..HI", name, name);   // replaces the row's hint
 *   return diag_end(d);                                          // returns the row's Status
 * or in one line: return diag_report(sink, DIAG_X, place, "message", ...);
 *
 * Messages say the error first, lower case, no full stop, subjects in single quotes, one line (a
 * list is one note an item). Control characters and invalid UTF-8 are escaped and long text is cut
 * when it is printed, so names from files go in as they are. A diagnostic that is begun must be
 * ended. Not for use from the bodies of parallel loops. */
#ifndef ETC_SUPPORT_DIAG_H
#define ETC_SUPPORT_DIAG_H

#include "support/arena.h"
#include "support/strbuf.h"

typedef enum DiagSeverity { DIAG_ERROR, DIAG_WARNING, DIAG_INFO } DiagSeverity;

typedef enum DiagCode {
#define DIAG(id, code, severity, status, summary, explanation, hint) DIAG_##id,
#include "diags.def"
#undef DIAG
  DIAG_CODE_COUNT
} DiagCode;

/* Static text of a code. */
typedef struct DiagRow {
  const char *id;   /* DIM_UNBOUND */
  const char *code; /* E0123 */
  DiagSeverity severity;
  Status status;           /* what diag_end returns */
  const char *summary;     /* one line */
  const char *explanation; /* `etc explain`: several sentences */
  const char *hint;        /* default hint or "" */
} DiagRow;
const DiagRow *diag_row(DiagCode code);
/* What codes have in common whose two first digits are these of `row`: "reading .pte programs". */
const char *diag_group(const DiagRow *row);
/* The code of "E0123", "E123", "123" or "DIM_UNBOUND"; false when there is no such code. */
bool diag_find(StrView name, DiagCode *code);

/* Where: any part may be empty/0. file: model or .etir path. node: ONNX node name; op: its type;
 * index: position in the graph
 * (-1 unknown). line/column: textual IR. option: command-line option. */
typedef struct DiagPlace {
  StrView file;
  StrView node;
  StrView op;
  StrView graph;  /* function call chain or subgraph path, empty for the main graph */
  StrView origin; /* module and line of the model's source that the node was exported from */
  int64_t index;
  uint32_t line, column;
  StrView option;
} DiagPlace;
#define DIAG_NOWHERE ((DiagPlace){.index = -1})
DiagPlace diag_file(const char *path); /* a file, nowhere in it */

/* Where a recipe names a file. */
typedef struct DiagNamed {
  const char *path;
  DiagPlace at;
  const struct DiagNamed *next;
} DiagNamed;

typedef enum DiagFormat { DIAG_TEXT, DIAG_JSON } DiagFormat;
typedef void DiagWrite(void *user, const char *text, size_t size);

typedef struct DiagSink {
  Arena arena;
  DiagFormat format;
  bool color;   /* ANSI colours in text */
  bool verbose; /* DIAG_INFO is shown only then */
  bool explain; /* … or, of DIAG_DELEGATE_SUMMARY, then */
  bool quiet;   /* warnings are only counted */
  bool werror;  /* warnings are shown and counted as errors; diag_end says STATUS_OK all the same */
  uint32_t errors, warnings;
  uint32_t max_errors; /* later errors are counted, not shown, and so are warnings; 0 = 64 */
  DiagWrite *write;    /* NULL: stderr */
  void *write_user;
  DiagCode first_error;      /* code of the first error, valid when errors > 0 */
  uint32_t open;             /* diagnostics begun and not ended; the arena is reset when none is */
  struct DiagHold *held;     /* the last diag_hold */
  const char *plugin;        /* whose code runs: a note says it; or NULL */
  struct OutputSet *outputs; /* holds what atomic_file_commit finishes (files.h), or NULL */
  struct FilesRead *files;   /* notes what file_map opens (files.h), or NULL */
  const DiagNamed *named;    /* files that recipes name, the last one first */
} DiagSink;

typedef struct Diag Diag;

/* Diagnostics that wait until it is clear whether they matter. */
typedef struct DiagHold {
  DiagSink *sink;
  struct DiagHold *outer;
  bool codes[DIAG_CODE_COUNT]; /* of the errors among them */
  DiagPlace first_place;       /* of the first error, and what it says */
  StrBuf first_message;
  DiagWrite *write; /* of the sink before, as are the counts */
  void *write_user;
  uint32_t errors, warnings;
  DiagCode first_error;
  StrBuf text;
} DiagHold;

/* Where a recipe names the file that cannot be read, or the file. */
DiagPlace diag_unreadable(const DiagSink *sink, const char *path);
void diag_sink_init(DiagSink *sink);
void diag_sink_init_silent(DiagSink *sink); /* drops its text; errors are counted */
void diag_sink_release(DiagSink *sink);
Diag *diag_begin(DiagSink *sink, DiagCode code, DiagPlace place);
void diag_message(Diag *d, const char *format, ...) ETC_PRINTF(2, 3);
void diag_note(Diag *d, const char *format, ...)
    ETC_PRINTF(2, 3); /* may be called again: one note a call */
void diag_hint(Diag *d, const char *format, ...) ETC_PRINTF(2, 3);
/* A name that is not among those there are: the hint is the nearest of them, if one is near; else
 * false. */
bool diag_hint_nearest(Diag *d, StrView name, const char *const *names, size_t count);
/* The hint is the nearest of the names, if one is near, or a few of them. Without any, the row's
 * hint stays; empty names are left out. */
void diag_hint_names(Diag *d, StrView name, const char *const *names, size_t count);
/* Emits it; returns the Status of the code's row (STATUS_OK for warnings and infos). */
Status diag_end(Diag *d);
Status diag_report(DiagSink *sink, DiagCode code, DiagPlace place, const char *format, ...)
    ETC_PRINTF(4, 5);
/* The same for functions that have their own `...`: the message is `before` as it stands, then the
 * formatted text. */
void diag_vmessage(Diag *d, const char *before, const char *format, va_list args) ETC_PRINTF(3, 0);
Status diag_vreport(DiagSink *sink, DiagCode code, DiagPlace place, const char *before,
                    const char *format, va_list args) ETC_PRINTF(5, 0);
/* An error of up to 100 plain characters, in the format of the sink. */
void diag_report_without_memory(const DiagSink *sink, DiagCode code, const char *message);
/* From now on diagnostics are counted and kept; let_go writes those that drop did not throw away,
 * counts included. Every hold must be let go. */
void diag_hold(DiagSink *sink, DiagHold *hold);
void diag_drop(DiagHold *hold);
void diag_let_go(DiagHold *hold);

#endif

/* The pass manager: everything that is the same for all passes. It checks the level, runs,
 * verifies, prints, checks the round trip through text, counts and times. */
#ifndef ETC_PIPELINE_MANAGER_H
#define ETC_PIPELINE_MANAGER_H

#include "passes/facts.h"
#include "quant/observe.h"

/* Where the pipeline is: for whoever has to report a crash, or to show it to a user who waits, from
 * a handler or a thread. Written before each pass. */
typedef struct PassProgress {
  const char *volatile stage;  /* NULL before the first */
  const char *volatile pass;   /* NULL between passes */
  volatile uint32_t number;    /* of the pass run, from 1 */
  const char *volatile plugin; /* whose code runs; NULL: that of etc */
  WriteProgress output;
  SampleProgress samples; /* of calibration */
} PassProgress;

/* Names of passes; "all" stands for every one. */
typedef struct PassNames {
  const char **names;
  uint32_t count;
} PassNames;

/* --pass NAME@STAGE[:before-PASS] */
typedef struct AddedPass {
  const PassRow *row;
  StageId stage;
  const PassRow *before; /* the first of its name in the stage; NULL: behind all of it */
} AddedPass;

typedef struct AddedPasses {
  AddedPass *items;
  uint32_t count, capacity;
} AddedPasses;

typedef struct ManagerOptions {
  PassOptions pass;
  PassNames print_before, print_after, skip;
  const char *stop_after; /* no pass runs after this one; NULL: all run */
  bool print_changed;     /* after every pass that changed the graph */
  bool full_constants;    /* printed graphs hold all values of their constants */
  bool verify_each;       /* after every pass, not only after every stage */
  bool verify_never;
  bool roundtrip; /* after every pass that changed the text: parse it, print, compare */
  bool bisect;
  int64_t bisect_limit; /* skippable passes with a higher number do not run; -1 runs all and lists
                           them */
  DiagWrite *print;     /* takes what the print_ and bisect options ask for */
  void *print_user;
  PassProgress *progress; /* may be NULL */
} ManagerOptions;

typedef struct Manager {
  ManagerOptions options;
  DiagSink *sink;
  Arena scratch;
  Facts *facts;
  StrBuf checked; /* the text of the last round trip */
  StageId stage;  /* that is running; STAGE_COUNT: none */
  bool stopped;   /* stop_after was reached */
} Manager;

/* facts: where runs of passes, and what they find out, are recorded; the caller's. */
void manager_init(Manager *m, DiagSink *sink, Facts *facts);
void manager_release(Manager *m);

/* Says where the pipeline is, outside of passes. */
void manager_enter(Manager *m, StageId stage);
/* Whether the pass may run on a graph of that level. */
bool manager_accepts(const PassRow *row, Level level);
/* Runs one pass on g and sees to all that the options ask for. Errors: the pass's own; the level
 * does not fit; the verifier or the round trip finds a fault (our own). */
Status manager_run_pass(Manager *m, Graph *g, const PassRow *row);
/* The passes of stage quantize in two parts: those that change values before they are observed, and
 * those that choose parameters and quantize. */
Status manager_prepare_quantize(Manager *m, Graph *g);
Status manager_quantize(Manager *m, Graph *g);
/* The passes of the table that belong to the stage, and those that the user added to it. The graph
 * has the stage's level afterwards and is verified. */
Status manager_run_stage(Manager *m, Graph *g, StageId stage, const AddedPasses *added);

/* The level that graphs have after a stage. */
Level stage_level(StageId stage);
const char *stage_name(StageId stage);
const char *stage_summary(StageId stage);
/* STAGE_COUNT when there is none of that name. */
StageId stage_find(StrView name);
const char *stage_nearest(StrView name); /* NULL when nothing is near */

/* Wall time and node counts of all runs: a table, or a JSON array. */
void manager_print_times(const Manager *m, bool json, StrBuf *out);

#endif

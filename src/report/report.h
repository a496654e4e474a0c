/* Facts about a lowering, gathered while it runs, as JSON and as a page for a browser.
 *
 * After each stage report_stage keeps what the graph of a method is then. When the program is
 * there, report_method writes all of that with the memory plan, the constants and the delegates of
 * the graph that was written. Every fact comes from graphs; docs/reference/report.schema.json
 * describes the result, page/ shows it. */
#ifndef ETC_REPORT_REPORT_H
#define ETC_REPORT_REPORT_H

#include "ir/graph.h"
#include "support/json.h"

/* A constant and the node that used it first. */
typedef struct ReportUser {
  const uint8_t *data; /* its bytes, of computed ones those of the source */
  NameId name;
  LocId loc;
} ReportUser;

/* What is kept of one method. */
typedef struct ReportMethod {
  StrBuf stages; /* objects of the array "stages", as JSON */
  StrBuf last;   /* the nodes of the stage that was kept last, as JSON */
  const char *last_stage;
  ReportUser *users;
  uint32_t user_count, user_capacity;
} ReportMethod;

void report_method_release(ReportMethod *m);

/* Keeps g as it is after the stage; both texts are static. A graph that is as after the stage
 * before is kept as a reference to that. */
void report_stage(ReportMethod *m, const Graph *g, const char *stage, const char *summary);

/* Writes members into the current JSON object: "stages", "places", "inputs", "outputs", "memory",
 * "constants", "delegates". g: after the stage to_executorch, with its memory plan; it is only
 * read. scratch: for what is computed on the way. Errors: those of liveness_compute, which the plan
 * has passed already. */
Status report_method(const ReportMethod *m, Graph *g, JsonWriter *w, Arena *scratch);

/* The page with the facts in it: one file that asks for nothing else. json: what report_method and
 * its callers wrote, any text. */
void report_page(StrView json, StrBuf *out);

#endif

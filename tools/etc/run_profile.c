/* Trace events: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
 * A complete event ("X") a node, its times in microseconds. */
#include "run_profile.h"

#include <stdio.h>

#include "ir/text.h"

/* A loop may run for a long time, and a node have thousands of results. */
#define EVENTS_MAX 1000000
#define TEXT_MAX ((size_t)300 << 20)

/* In digits: not every reader of traces knows exponents, which doubles get after some minutes. */
static void named_time(JsonWriter *w, const char *key, uint64_t ns) {
  char text[32];
  int size = snprintf(text, sizeof text, "%llu.%03u", (unsigned long long)(ns / 1000),
                      (unsigned)(ns % 1000));
  json_key(w, key);
  json_raw(w, (StrView){text, (size_t)size});
}

static const char *category(OpId op) {
  return op_has_trait(op, OP_DELEGATE)  ? "delegate"
         : op_has_trait(op, OP_CONTROL) ? "control flow"
                                        : "node";
}

/* An event, up to its arguments. */
static void open_event(JsonWriter *w, const char *phase, StrView name) {
  json_open_object(w);
  json_named_string(w, "ph", sv_from(phase));
  json_named_string(w, "name", name);
  json_named_uint(w, "pid", 1);
  json_named_uint(w, "tid", 1);
}

/* What a track is called. */
static void track(JsonWriter *w, const char *what, StrView name) {
  open_event(w, "M", sv_from(what));
  json_named_object(w, "args");
  json_named_string(w, "name", name);
  json_close_object(w);
  json_close_object(w);
}

void profile_begin(RunProfile *p, const Graph *g) {
  *p = (RunProfile){.g = g};
  json_init(&p->w, &p->text, false);
  json_open_object(&p->w);
  json_named_string(&p->w, "displayTimeUnit", SV("ms"));
  json_named_array(&p->w, "traceEvents");
  track(&p->w, "process_name", SV("etc run: reference kernels"));
  track(&p->w, "thread_name", graph_name(g));
}

static void types(JsonWriter *w, const Graph *g, NodeId n) {
  const Node *node = node_cget(g, n);
  StrBuf text = {0};
  for (uint32_t i = 0; i < node->result_count; i++) {
    strbuf_append(&text, i ? SV(", ") : SV(""));
    type_print(g, value_type(g, node->first_result + i), &text);
  }
  json_named_string(w, "results", (StrView){text.data, text.size});
  strbuf_release(&text);
}

void profile_step(void *user, NodeId n, uint64_t begin, uint64_t end) {
  RunProfile *p = user;
  const Graph *g = p->g;
  const Node *node = node_cget(g, n);
  const Loc *loc = node->loc ? &g->locs[node->loc] : NULL;
  if (p->events == EVENTS_MAX || p->text.size > TEXT_MAX) {
    p->left_out++;
    return;
  }
  if (p->events++ == 0)
    p->start = begin;
  open_event(&p->w, "X", op_schema(node->op)->full);
  json_named_string(&p->w, "cat", sv_from(category(node->op)));
  named_time(&p->w, "ts", begin - p->start);
  named_time(&p->w, "dur", end - begin);
  json_named_object(&p->w, "args");
  if (loc && loc->name)
    json_named_string(&p->w, "node of the model", intern_get(&g->ctx->names, loc->name));
  types(&p->w, g, n);
  json_close_object(&p->w);
  json_close_object(&p->w);
}

int profile_end(const CommandLine *line, RunProfile *p, const char *path, bool keep) {
  json_close_array(&p->w);
  json_named_object(&p->w, "otherData");
  json_named_uint(&p->w, "events left out", p->left_out);
  json_close_object(&p->w);
  json_close_object(&p->w);
  strbuf_append_char(&p->text, '\n');
  if (keep)
    return write_and_release(line, &p->text, path);
  strbuf_release(&p->text);
  return ETC_OK;
}

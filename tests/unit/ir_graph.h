/* Small graphs for the unit tests of the IR. */
#ifndef ETC_TESTS_IR_GRAPH_H
#define ETC_TESTS_IR_GRAPH_H

#include "unit.h"

#include "ir/builder.h"
#include "ir/text.h"
#include "ir/verify.h"

/* A context whose messages are kept, and one graph. */
typedef struct Sample {
  Capture capture;
  Context ctx;
  Graph *g;
} Sample;

static inline void sample_init(Sample *s) {
  capture_init(&s->capture);
  context_init(&s->ctx, &s->capture.sink);
  s->g = graph_new(&s->ctx, SV("forward"));
}
static inline void sample_release(Sample *s) {
  graph_free(s->g);
  context_release(&s->ctx);
  capture_release(&s->capture);
}
static inline const char *sample_messages(Sample *s) { return strbuf_cstr(&s->capture.text); }

/* The graph of a text; fails the test when it does not parse. */
static inline void sample_parse(Sample *s, const char *text) {
  Graph **graphs;
  uint32_t count;
  capture_init(&s->capture);
  context_init(&s->ctx, &s->capture.sink);
  s->g = NULL;
  if (graph_parse(&s->ctx, sv_from(text), SV("test.etir"), NULL, &graphs, &count) != STATUS_OK)
    fail_msg("%s", sample_messages(s));
  assert_int_equal(count, 1);
  s->g = graphs[0];
}

static inline TypeId f32_type(Graph *g, int64_t rows, int64_t columns) {
  return graph_tensor_type(g, DTYPE_F32, 2, (SymInt[]){rows, columns}, ORDER_CONTIGUOUS);
}

#endif

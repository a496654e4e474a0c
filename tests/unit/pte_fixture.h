/* What tests of written programs share: a context whose messages are captured, and a sample program
 * in a temporary file. */
#ifndef ETC_TESTS_UNIT_PTE_FIXTURE_H
#define ETC_TESTS_UNIT_PTE_FIXTURE_H

#include "temp_file.h"

#include "../pte/maker.h"
#include "backends/backend.h"
#include "pte/emit.h"
#include "pte/program.h"

typedef struct Fixture {
  Capture capture;
  Context ctx;
  Arena arena;
  StrBuf out; /* what the tests print */
  PteProgram p;
  char path[64];
} Fixture;

static inline int setup(void **state) {
  Fixture *f = xrealloc(NULL, sizeof *f);
  *f = (Fixture){.path = "/tmp/etc-test-XXXXXX"};
  capture_init(&f->capture);
  context_init(&f->ctx, &f->capture.sink);
  f->ctx.readers = &backend_readers;
  make_file(f->path);
  *state = f;
  return 0;
}

static inline int teardown(void **state) {
  Fixture *f = *state;
  unlink(f->path);
  strbuf_release(&f->out);
  arena_release(&f->arena);
  context_release(&f->ctx);
  capture_release(&f->capture);
  xfree(f);
  return 0;
}

/* Writes the program and opens it; the test closes p. */
static inline void open_sample(Fixture *f, void (*make)(Maker *), PteProgram *p) {
  Maker m = {.ctx = &f->ctx};
  make(&m);
  assert_int_equal(pte_emit(m.graphs, m.count, f->ctx.sink, f->path, (EmitOptions){0}), STATUS_OK);
  for (uint32_t i = 0; i < m.count; i++)
    graph_free(m.graphs[i]);
  assert_int_equal(pte_program_open(p, f->ctx.sink, f->path), STATUS_OK);
}

#endif

/* Writes the graphs of maker.h as programs into a folder, for run_programs.py. Usage: pte_programs
 * FOLDER */
#include <stdio.h>

#include "maker.h"
#include "backends/backend.h"
#include "pte/emit.h"

static Status write_sample(Context *ctx, const char *folder, const Sample *sample) {
  Maker m = {.ctx = ctx};
  sample->make(&m);
  char *path = arena_printf(&ctx->arena, "%s/%s.pte", folder, sample->name);
  Status status = pte_emit(m.graphs, m.count, ctx->sink, path, (EmitOptions){0});
  for (uint32_t i = 0; i < m.count; i++)
    graph_free(m.graphs[i]);
  return status;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  DiagSink sink;
  Context ctx;
  diag_sink_init(&sink);
  context_init(&ctx, &sink);
  ctx.readers = &backend_readers;
  int failures = 0;
  for (size_t i = 0; i < COUNT_OF(samples); i++)
    failures += write_sample(&ctx, argv[1], &samples[i]) != STATUS_OK;
  context_release(&ctx);
  diag_sink_release(&sink);
  return failures ? 1 : 0;
}

/* See bundles.h. */
#include "pipeline/bundles.h"

#include "interp/interp.h"
#include "pte/bundle.h"
#include "quant/dataset.h"

static Status run_cases(Session *s, const Method *m, DataSet *set, BundleSuite *suite) {
  Graph *g = m->graph;
  Arena states_arena = {0};
  Tensor *states;
  bool more = true;
  Status status = interp_states(g, &states_arena, &states);
  suite->cases = ARENA_ARRAY(&s->arena, BundleCase, dataset_count(set) + 1);
  while (status == STATUS_OK && suite->count < dataset_count(set)) {
    Tensor *inputs = ARENA_ARRAY(&s->arena, Tensor, (size_t)g->input_count + 1);
    Tensor *outputs = ARENA_ARRAY(&s->arena, Tensor, (size_t)suite->output_count + 1);
    status = dataset_next(set, &s->arena, inputs, &more);
    if (status != STATUS_OK || !more)
      break;
    const InterpCall call = {inputs, g->input_count, states, outputs, NULL, NULL};
    status = interp_call(g, &call, &s->arena);
    suite->cases[suite->count++] = (BundleCase){inputs, outputs};
  }
  arena_release(&states_arena);
  return status;
}

Status bundles_prepare(Session *s) {
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    Method *m = &s->program.methods[i];
    DataSet *set;
    if (!m->options->bundle)
      continue;
    session_enter(s, m);
    TRY(dataset_open(&set, m->graph, m->options->bundle, (DataShard){0, 1}, &s->sink));
    m->suite = ARENA_NEW(&s->arena, BundleSuite);
    *m->suite = (BundleSuite){.method = method_name(m),
                              .input_count = m->graph->input_count,
                              .output_count = graph_output_count(m->graph)};
    Status status = run_cases(s, m, set, m->suite);
    dataset_close(set);
    TRY(status);
  }
  return STATUS_OK;
}

const char *bundles_path(Session *s, const char *output) {
  StrView path = sv_from(output), suffix = SV(".pte");
  if (path.size > suffix.size &&
      memcmp(path.data + path.size - suffix.size, suffix.data, suffix.size) == 0)
    path.size -= suffix.size;
  return arena_printf(&s->arena, SV_FMT ".bpte", SV_ARG(path));
}

Status bundles_write(Session *s, AtomicFile *program, const char *output) {
  BundleSuite *suites = ARENA_ARRAY(&s->arena, BundleSuite, s->program.method_count);
  uint32_t count = 0;
  MappedFile bytes;
  for (uint32_t i = 0; i < s->program.method_count; i++)
    if (s->program.methods[i].suite)
      suites[count++] = *s->program.methods[i].suite;
  if (!count)
    return STATUS_OK;
  TRY(atomic_file_view(program, &bytes));
  s->bundle = bundles_path(s, output);
  Status status = bundle_write(suites, count, &s->sink, &bytes, s->bundle, s->sync);
  file_unmap(&bytes);
  return status;
}

/* The fixed list of stages. A recipe says what a stage does, never in which order. */
#include "pipeline/manager.h"

#include "support/text.h"

typedef struct StageRow {
  const char *name;
  Level level;
  const char *summary;
} StageRow;

static const StageRow stages[STAGE_COUNT] = {
    [STAGE_IMPORT] = {"import", LEVEL_ATEN, "read the model into ATen ops, fold what shapes need"},
    [STAGE_SOURCE] = {"source", LEVEL_ATEN, "recover what the exporter spelt out, simplify"},
    [STAGE_QUANTIZE] = {"quantize", LEVEL_ATEN, "annotate, observe, convert"},
    [STAGE_CORE] = {"core", LEVEL_CORE, "decompose to the core ATen set"},
    [STAGE_EDGE] = {"edge", LEVEL_EDGE, "element types that kernels take"},
    [STAGE_TO_BACKEND] = {"to_backend", LEVEL_EDGE, "cut out what backends take"},
    [STAGE_TO_EXECUTORCH] = {"to_executorch", LEVEL_EXECUTORCH, "views, out-variants, memory plan"},
    [STAGE_EMIT] = {"emit", LEVEL_EXECUTORCH,
                    "check against the runtime's kernels, write the program"},
};

Level stage_level(StageId stage) { return stages[stage].level; }
const char *stage_name(StageId stage) { return stages[stage].name; }
const char *stage_summary(StageId stage) { return stages[stage].summary; }

StageId stage_find(StrView name) {
  unsigned i = 0;
  while (i < STAGE_COUNT && !sv_eq_str(name, stages[i].name))
    i++;
  return (StageId)i;
}

const char *stage_nearest(StrView name) {
  const char *names[STAGE_COUNT];
  for (unsigned i = 0; i < STAGE_COUNT; i++)
    names[i] = stages[i].name;
  int nearest = text_nearest(name, names, STAGE_COUNT);
  return nearest < 0 ? NULL : names[nearest];
}

/* What a session can choose from: passes, backends, planners, readers of delegates, translators of
 * operators. Built-in rows and those of plug-ins are registered the same way. */
#ifndef ETC_PIPELINE_REGISTRY_H
#define ETC_PIPELINE_REGISTRY_H

#include "backends/backend.h"
#include "onnx/translate.h"
#include "passes/executorch/planner.h"
#include "passes/pass.h"

/* An option that added rows. */
typedef struct RegistryOption {
  const char *name, *value;
} RegistryOption;

typedef struct Registry {
  Arena *arena; /* of the session */
  DiagSink *sink;
  const PassRow **passes; /* the pipeline in order, then those of plug-ins */
  const Backend **backends;
  const Planner **planners;
  const OnnxTranslator **translators; /* of plug-ins and of --custom-op */
  RegistryOption *options;            /* --plugin and --custom-op, in order */
  DelegateReaders readers;
  uint32_t pass_count, backend_count, planner_count, translator_count, option_count;
  const char *volatile *running; /* of readers, set by the owner; or NULL */
} Registry;

/* Registers what is built in. */
void registry_init(Registry *r, Arena *arena, DiagSink *sink);

/* Loads a plug-in (src/pipeline/plugin.h) and registers its rows. Code stays loaded until the
 * process ends: graphs may hold texts of it. Errors (reported): no shared object, no entry, made
 * for another etc, a row that lacks something, a name that is taken. Nothing is registered then. */
Status registry_load(Registry *r, const char *path);

/* Whether etc itself or an added row translates the operator of t. */
bool registry_translates(const Registry *r, const OnnxTranslator *t);
/* Of --custom-op `text`; both are kept as they are. */
void registry_add_translator(Registry *r, const OnnxTranslator *t, const char *text);

/* The first row of that name; NULL when there is none. */
const PassRow *registry_pass(const Registry *r, StrView name);
const Backend *registry_backend(const Registry *r, StrView name);
const Planner *registry_planner(const Registry *r, StrView name);
/* The nearest name for a message "did you mean", or NULL. */
const char *registry_nearest_pass(const Registry *r, StrView name);
const char *registry_nearest_backend(const Registry *r, StrView name);
const char *registry_nearest_planner(const Registry *r, StrView name);

#endif

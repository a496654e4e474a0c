/* Plug-ins: passes, backends, memory planners, ops and translators of ONNX operators of one's own,
 * in a shared object that `etc lower --plugin FILE.so` loads.
 *
 *   #include <etc/plugin.h>
 *
 *   static Status swap(PassContext *p, Graph *g) { ... }
 *   static const PassRow swapping = {.name = "swap", .run = swap, .stage = STAGE_EDGE,
 *                                    .level_in = LEVEL_EDGE, .level_out = LEVEL_EDGE,
 *                                    .skippable = true, .summary = "..."};
 *   static const PassRow *const passes[] = {&swapping, NULL};
 *   ETC_PLUGIN = {.abi = ETC_PLUGIN_ABI, .name = "swap", .passes = passes};
 *
 * An op is a row as those of schema/ops.def: its schema, the runtime's kernel, a shape rule and,
 * so that `etc run` computes it, a reference kernel. Ops are known to the whole process. A
 * translator builds what an ONNX operator of another domain means, of ops of any kind
 * (onnx/translate.h); it comes before a function of the model with the operator's name.
 *
 * A pass of a plug-in runs where `--pass NAME@STAGE[:before-PASS]` puts it, a backend and a planner
 * when they are chosen by name. A plug-in sees the graph itself (ir/graph.h) and the functions that
 * built-in passes use; these are no stable interface: a plug-in is compiled for one build of etc,
 * and etc refuses it when their headers differ. After each pass of a plug-in the graph is verified.
 */
#ifndef ETC_PLUGIN_H
#define ETC_PLUGIN_H

#include "etc/plugin_abi.h" /* ETC_PLUGIN_ABI: a hash of the headers below */

#include "backends/backend.h"
#include "backends/selection.h"
#include "ir/builder.h"
#include "ir/match.h"
#include "onnx/express.h"
#include "ops/delegate.h"
#include "ops/shape_util.h"
#include "passes/executorch/planner.h"
#include "passes/pass.h"

/* Lists end with NULL; a list that is not needed is NULL. All of it lives as long as the process.
 */
typedef struct EtcPlugin {
  const char *abi;  /* ETC_PLUGIN_ABI */
  const char *name; /* for messages */
  const PassRow *const *passes;
  const Backend *const *backends;
  const DelegateReader *const *readers; /* so that etc checks, runs and shows what a backend made */
  const Planner *const *planners;
  const OpRow *const *ops;
  const OnnxTranslator *const *translators;
} EtcPlugin;

#define ETC_PLUGIN __attribute__((visibility("default"))) const EtcPlugin etc_plugin
extern ETC_PLUGIN;

#endif

/* What a pass sees, and the list of passes.
 *
 * A pass is one function in passes/<stage>/<name>.c, `Status pass_<name>(PassContext *p, Graph
 * *g)`, and one row of passes.def. It neither allocates (but in p->scratch and in the graph) nor
 * keeps anything from one run to the next; the pass manager (src/pipeline/manager.h) checks levels,
 * verifies, prints, times and bisects. What others tell of its work it records (facts.h). */
#ifndef ETC_PASSES_PASS_H
#define ETC_PASSES_PASS_H

#include "ir/rewrite.h"
#include "quant/stats.h"

/* The stages of the pipeline, in order. Passes belong to one of those between import and emit. */
typedef enum StageId {
  STAGE_IMPORT,
  STAGE_SOURCE,
  STAGE_QUANTIZE,
  STAGE_CORE,
  STAGE_EDGE,
  STAGE_TO_BACKEND,
  STAGE_TO_EXECUTORCH,
  STAGE_EMIT,
  STAGE_COUNT
} StageId;

/* How a model is quantized. */
typedef enum QuantScheme {
  QUANT_INT8,             /* weights and activations, ranges from calibration */
  QUANT_INT8_DYNAMIC,     /* weights; activations when the program runs */
  QUANT_INT8_WEIGHT_ONLY, /* weights, which are computed with in f32 */
  QUANT_INT4_WEIGHT_ONLY  /* likewise, with a scale for each block of a channel */
} QuantScheme;

/* Elements of a block, of which XNNPACK accepts multiples; also the default. */
enum { QUANT_BLOCK_LEAST = 32 };

typedef struct QuantOptions {
  QuantScheme scheme;
  const char *data;       /* samples to calibrate with; NULL: none */
  bool made_up;           /* without data: samples are made up (quant/made_samples.h) */
  const char *ranges;     /* statistics of an earlier calibration; NULL: none */
  const char *model_hash; /* of the model that is lowered, for ranges; "" for one that is no ONNX */
  RangeOptions range;     /* method and percentile */
  uint32_t block;         /* elements of a row that share a scale, of int4 */
  const bool *kept;       /* by node, kept_count of them: also not quantized; or NULL */
  uint32_t kept_count;
  StrView floats, weight_only; /* nodes that are quantized less, see backends/selection.h */
} QuantOptions;
/* Whether the scheme makes use of samples. */
static inline bool quantize_calibrates(const QuantOptions *o) {
  return o->scheme == QUANT_INT8 || o->scheme == QUANT_INT4_WEIGHT_ONLY;
}

/* What the user may choose. */
typedef struct PassOptions {
  uint64_t fold_limit; /* bytes a computed constant may have beyond its operands; 0: default of
                          interp/fold.h */
  const struct Planner *planner;  /* NULL: the first of planners */
  uint32_t plan_alignment;        /* of tensors in arenas, a power of two; 0: PLAN_ALIGNMENT */
  bool host_inputs, host_outputs; /* the host provides their memory: they are not planned */
  const MemoryBank *banks;        /* of the device, in order of preference; states lie behind */
  uint32_t bank_count;            /* 0: one arena as large as it must be */
  uint64_t max_arena; /* most bytes of memory that a program may plan; 0: PASS_MAX_ARENA */
  const struct BackendChoice *backends; /* in order of preference */
  uint32_t backend_count;
  bool quantized_kernels;       /* the runtime has the kernels of quantized_decomposed */
  const QuantOptions *quantize; /* NULL: nothing is quantized */
  void (*keep_delegate)(void *user, Graph *part); /* takes the graph of each delegate; or NULL */
  void *keep_user;
} PassOptions;
/* Whether a chosen backend takes quantize and dequantize. */
bool backends_take_quantized(const PassOptions *options);
/* Whether a chosen backend or the runtime's kernels take quantize and dequantize: they stand until
 * both had their choice. */
static inline bool quantized_stands(const PassOptions *options) {
  return options->quantized_kernels || backends_take_quantized(options);
}
/* Whether a chosen backend wants that pass, one FOR_BACKENDS. */
bool backends_want_pass(const PassOptions *options, const char *name);
#define PASS_MAX_ARENA ((uint64_t)2 << 30)
#define PASS_OPTIONS_DEFAULT ((PassOptions){0})

enum { PASS_MAX_STATS = 8 };
typedef struct PassStat {
  const char *name; /* static text: "linears" */
  uint64_t count;
} PassStat;

typedef struct PassContext {
  DiagSink *sink;
  Arena *scratch; /* forgotten after the pass */
  const PassOptions *options;
  struct Facts *facts;          /* facts.h: where to record what others tell */
  const char *volatile *plugin; /* whose code runs, for reports of a crash; may be NULL */
  uint32_t errors;              /* of the sink when that code was entered */
  bool changed;                 /* set by the pass when it changed the graph */
  PassStat stats[PASS_MAX_STATS];
  uint32_t stat_count;
} PassContext;

/* What runs from here on is code of the plug-in; NULL: of etc. Messages name it. */
void pass_enter(PassContext *p, const char *plugin);
/* It returned status; what runs is code of etc again. That a plug-in fails without a message, or
 * reports an error and goes on, is reported as a fault of its `kind` 'name': "pass", "backend". */
Status pass_leave(PassContext *p, const char *kind, const char *name, Status status);

/* Whether a chosen backend that takes quantize and dequantize computes n in integers, or there is
 * none of these. */
bool backends_quantize(PassContext *p, const Graph *g, NodeId n);

/* Adds count to the statistic of that name; sets p->changed when count is not 0. */
void pass_count(PassContext *p, const char *name, uint64_t count);

/* A pass that is a table of rules (ir/rewrite.h); counts what each of them did. */
Status pass_rewrite(PassContext *p, Graph *g, const RewriteRule *rules, uint32_t count);
/* As pass_rewrite, of a Rewriter that says more than the rules; r->counts is set here. */
Status pass_rewriter(PassContext *p, Graph *g, Rewriter *r);

typedef Status PassFn(PassContext *p, Graph *g);

#define PASS(name, stage, in, out, skippable, when, summary) PassFn pass_##name;
#include "passes/passes.def"
#undef PASS

/* Neither name nor run nor summary may be NULL. */
typedef struct PassRow {
  const char *name;
  PassFn *run;
  StageId stage;
  Level level_in;    /* the graph must be at this level */
  Level level_out;   /* and is at this one afterwards */
  bool skippable;    /* the pipeline still gives a right program without it */
  bool for_backends; /* runs when a chosen backend asks for it (Backend.passes) */
  const char *summary;
  const char *plugin; /* the plug-in that has it, set where it is registered; NULL: built in */
} PassRow;
extern const PassRow pass_table[];
extern const uint32_t pass_table_size;
/* The first row of that name, NULL when there is none. */
const PassRow *pass_find(StrView name);

#endif

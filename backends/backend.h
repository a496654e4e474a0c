/* What a backend is: something that runs parts of a graph by code of its own, under a name that the
 * ExecuTorch runtime knows.
 *
 * The pass `delegate` asks a backend which nodes it takes, cuts each partition out of the graph and
 * replaces it by a call of the delegate. It checks what the backend says: a partition whose nodes
 * depend on each other through a node outside cannot be cut out.
 *
 * Partitions with equal code are calls of one delegate where the backend's reader says that it is
 * stateless. */
#ifndef ETC_BACKENDS_BACKEND_H
#define ETC_BACKENDS_BACKEND_H

#include "ops/delegate.h"

/* A value that a rule refuses, or the limit that it passes: "rank" 7. */
typedef enum RefusalKind { REFUSAL_INT, REFUSAL_FLOAT, REFUSAL_TEXT } RefusalKind;
typedef struct RefusalValue {
  const char *name; /* static */
  RefusalKind kind;
  union {
    int64_t i;
    double f;
    StrView text; /* static, interned or in scratch */
  };
} RefusalValue;
#define R_INT(n, x) ((RefusalValue){.name = (n), .kind = REFUSAL_INT, .i = (x)})
#define R_FLOAT(n, x) ((RefusalValue){.name = (n), .kind = REFUSAL_FLOAT, .f = (x)})
#define R_TEXT(n, s) ((RefusalValue){.name = (n), .kind = REFUSAL_TEXT, .text = (s)})
#define R_STR(n, s) R_TEXT(n, sv_from(s))

/* Why a backend does not take a node. Texts are static, values static or in scratch. */
typedef struct Refusal {
  const char *rule;           /* stable name of the rule that refuses it; NULL: nothing does */
  const char *message;        /* what the rule says */
  const RefusalValue *values; /* value_count of them */
  uint32_t value_count;
  const char *advice; /* what would make the node one that is taken; may be empty */
} Refusal;

/* What a backend expects of a partition, in nanoseconds a call; both 0: it does not estimate. */
typedef struct PartitionCost {
  double spent; /* on the call, and on what only the delegate has to move */
  double saved; /* of the time of the portable kernels */
} PartitionCost;

/* What a setting of --backend NAME:KEY=VALUE,… holds. */
typedef enum SettingKind {
  SETTING_NUMBER, /* from 1 */
  SETTING_TEXT,   /* any */
  SETTING_NODES,  /* ops of the backend and nodes of the model: see selection.h */
  SETTING_CHOICE  /* one of the words of the argument, which '|' separates */
} SettingKind;

typedef struct BackendSetting {
  const char *name, *argument, *summary; /* none is NULL, but the name at the end */
  SettingKind kind;
} BackendSetting;

enum { BACKEND_MAX_SETTINGS = 8 };

/* A backend changes what the arrays hold and `own`, no other field. */
typedef struct BackendContext {
  DiagSink *sink;
  Arena *scratch;          /* forgotten after the pass */
  const StrView *settings; /* by row of the backend's settings: what was given, checked; empty where
                              nothing was */
  bool whole;              /* what it leaves out is an error: nothing is too small for it */
  void *own;               /* what the backend keeps from one call to the next; NULL at first */
  Refusal *refusals;       /* by NodeId, of the graph as it came, for nodes that are left out */
  PartitionCost *costs;    /* by the number of the partition, up to the number of nodes */
} BackendContext;

/* The nodes of one partition, in graph order, and the values that leave it. Where the code of a
 * backend has debug handles, those of what is made of nodes[i] are i + 1: --map writes them with
 * the names of the nodes. */
typedef struct Partition {
  const NodeId *nodes;
  uint32_t node_count;
  const ValueId *outputs;
  uint32_t output_count;
} Partition;

/* A partition as bytes. inputs: values from outside that are no constants, in the order in which
 * the delegate takes them; outputs follow in the order of the partition. data: constants of the
 * graph that the delegate finds by key in the named data of the program, keys as DelegateName in
 * ops/delegate.h. All arrays in scratch,
 * blob in the arena of the graph. Arrays, and blob, may be NULL where their number, or blob_size,
 * is 0. */
typedef struct DelegateCode {
  const uint8_t *blob;
  uint64_t blob_size;
  const DelegateSpec *specs; /* the runtime hands them to the backend with the blob */
  const ValueId *inputs, *data;
  const char *const *keys;
  const DelegateTranspose *transposes; /* those in the code */
  uint32_t input_count, data_count, transpose_count, spec_count;
  SymInt guard; /* a size: where it is 0, no result has elements, and the delegate is not called; a
                   constant: it is called always */
} DelegateCode;

/* None may be NULL but settings, passes, quantizes and plugin. */
typedef struct Backend {
  const char *name;               /* of --backend */
  const char *id;                 /* that the runtime registers */
  const char *summary;            /* one line */
  const BackendSetting *settings; /* ends with a row without a name; NULL: none */
  const char *const *passes; /* passes FOR_BACKENDS that it wants; ends with NULL; NULL: none */
  bool quantized;            /* takes quantize and dequantize, which are kept for it */
  bool (*knows)(OpId op);    /* whether there are nodes of that op that it takes */
  /* Sets the tag of each node that the backend takes to the number of its partition, from 1, and
   * refusals of the others. Nodes of a partition lie in the same region. */
  Status (*partition)(BackendContext *c, Graph *g);
  /* Makes the bytes of a partition. The graph is changed by new constants only. */
  Status (*preprocess)(BackendContext *c, Graph *g, const Partition *partition, DelegateCode *code);
  /* Whether the backend computes n in integers when a model is quantized for it: --quantize leaves
   * nodes in floats that no chosen backend computes so. The graph is at LEVEL_ATEN. NULL: all that
   * etc quantizes (passes/quantize/rules.def). For backends that are `quantized`. */
  bool (*quantizes)(const Graph *g, NodeId n);
  const char *plugin; /* the plug-in that has it, set where it is registered; NULL: built in */
} Backend;

/* A backend that the user chose, with the values of its settings. */
typedef struct BackendChoice {
  const Backend *backend;
  StrView settings[BACKEND_MAX_SETTINGS]; /* by row */
  bool whole;                             /* it takes all nodes, or the model is not lowered */
} BackendChoice;

extern const Backend *const backends[];       /* the built-in ones; ends with NULL */
extern const DelegateReaders backend_readers; /* and theirs */

#define BACKEND(name)                                                                              \
  extern const Backend backend_##name;                                                             \
  extern const DelegateReader reader_##name;
#include "backends/backends.def"
#undef BACKEND

#endif

/* ONNX -> ATen-style IR. */
#ifndef ETC_ONNX_IMPORT_H
#define ETC_ONNX_IMPORT_H

#include "ir/graph.h"

typedef struct OnnxModel OnnxModel;           /* file/model.h */
typedef struct OnnxTranslator OnnxTranslator; /* translate.h */

/* --dim NAME=N (lo == hi) or NAME=LO..HI. NAME is an ONNX dim_param, or INPUT:AXIS for a dimension
 * without a name, or for one that has a name and shall have a size of its own. */
typedef struct DimFlag {
  StrView name;
  int64_t lo, hi;
  StrView same; /* --dim NAME=OTHER: the name whose size it has, instead of a range */
  StrView plus; /* with same: the size is the sum of both; not on the command line */
  bool asked;   /* the model is asked which sizes of the range it takes: no warning tells of it */
} DimFlag;

/* --bound NAME=N or NAME:AXIS=N: the upper bound of a size that data decide. NAME is an ONNX value,
 * the output of a node. */
typedef struct BoundFlag {
  StrView name;
  int64_t most;
} BoundFlag;

/* --lowered DOMAIN.OP=FILE.pte: an operator that a program computes. */
typedef struct LoweredOp {
  StrView domain, op; /* domain "": that of ONNX */
  const char *path;
  const Graph *graph; /* at LEVEL_EXECUTORCH; lives as long as what is imported */
  bool *used;         /* set where a node of that operator was met */
} LoweredOp;

/* Where weights of 4 bits in blocks stay codes for a backend, which multiplies them by rows that it
 * quantizes to 8 bits: nowhere, where the model allows those 8 bits, or also where it does not. */
typedef enum BlocksUse { BLOCKS_NEVER, BLOCKS_WHERE_ALLOWED, BLOCKS_ALWAYS } BlocksUse;

typedef struct ImportOptions {
  StrView method; /* name of the graph; "forward" by default */
  const DimFlag *dims;
  uint32_t dim_count;
  const BoundFlag *bounds;
  uint32_t bound_count;
  bool *bounds_used;     /* by index of bounds: set where a size had no other bound */
  const StrView *values; /* --value INPUT=NUMBER or INPUT=FILE.npy: inputs that become constants */
  uint32_t value_count;
  const LoweredOp *lowered;
  uint32_t lowered_count;
  const OnnxTranslator *const *translators; /* of plug-ins and --custom-op */
  uint32_t translator_count;
  const char *volatile *running;               /* while one of them runs: its plug-in; or NULL */
  bool (*is_state)(void *user, StrView input); /* NULL: none. An input that is one stays an input
                                                  even when it has an initializer */
  void *is_state_user;
  uint64_t fold_limit; /* bytes a folded result may have beyond its operands; 0 = the default of
                          fold.h */
  BlocksUse blocks;
  bool whole_caches; /* caches of attention that may hold a window of the past hold all of it */
  DimFlag *left;     /* dim_count ranges: what the model leaves of dims. NULL: nobody asks; else the
                        import is only to learn that, and suggests nothing where a dim has no size */
} ImportOptions;

/* Translates the model's graph into a new graph at LEVEL_ATEN. The model must stay open as long as
 * the graph lives: constants are spans of its files. Functions are inlined, constants and shape
 * arithmetic folded. On failure *out is NULL and everything wrong that could be found at once is
 * reported (all unsupported ops, all unbounded dimensions). */
Status onnx_import(Context *ctx, OnnxModel *model, const ImportOptions *options, Graph **out);

/* The name that stands for the sizes of `name`: itself, or what --dim NAME=OTHER leads to. */
StrView onnx_dim_root(const DimFlag *flags, uint32_t count, StrView name);
/* How the terms of a name that is an expression get sizes; of numbers nobody asks. */
typedef struct DimTerms {
  SymTable *syms;
  bool (*size_of)(void *user, StrView term, SymInt *size);
  void *user;
} DimTerms;
/* The size of a dim by a name that is an expression, as "past + new" of a mask, or as torch writes
 * sizes that follow others: "16*h", "2*(h//2) - 1". A name without operators is a term. False for
 * other names, where a term has no size, and where a divisor is not a number above 0. */
bool onnx_dim_expression(const DimTerms *terms, StrView name, SymInt *out);
/* Whether a dim_param stands for any size and names nothing, as "?" does. Dims of such a name are
 * not equal, unless --dim names it. */
bool onnx_dim_is_nameless(StrView dim_param);
/* The size that a dim_param of digits stands for, as torch writes sizes that can be no other; a
 * term of an expression, too. False for all else, and beyond the sizes that a dimension may have.
 */
bool onnx_dim_number(StrView dim_param, int64_t *size);
/* Whether --value VALUE is for this input. */
bool onnx_value_is_for(StrView value, StrView input);

/* Whether what stands behind INPUT= is a number; else it is a file. */
bool onnx_value_is_number(StrView text);

/* All supported operators, for messages, `etc ops` and docs/reference/operators.md. */
typedef struct OnnxOpRow {
  const char *domain; /* "" is ai.onnx */
  const char *name;
  int since, until;           /* opset versions of its domain, inclusive; until 0 = newest */
  int min_inputs, max_inputs; /* max -1: any number */
  const char *lowering;       /* what it becomes, for the documentation */
} OnnxOpRow;
uint32_t onnx_op_count(void);
const OnnxOpRow *onnx_op_row(uint32_t i); /* NULL past the end; in the order of translators.def */

/* What is refused of an operator, and the diagnostic that says so; NULL: nothing in particular. */
typedef struct OnnxLimit {
  const char *domain, *name;
  DiagCode code;
  const char *text;
} OnnxLimit;
const OnnxLimit *onnx_limit(const OnnxOpRow *row);
/* Element types of its first input with which an operator was seen to be right on the runtime, in
 * words; NULL when that was not measured. */
const char *onnx_element_types(const OnnxOpRow *row);

/* The operators of the standard that are not supported. */
typedef struct OnnxOutOfReach {
  const char *domain, *name, *reason;
} OnnxOutOfReach;
const OnnxOutOfReach *onnx_out_of_reach(uint32_t i); /* NULL past the end */

#endif

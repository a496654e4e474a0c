/* What the files of the importer share; translators see translate.h only. */
#ifndef ETC_ONNX_IMPORT_STATE_H
#define ETC_ONNX_IMPORT_STATE_H

#include "interp/fold.h"
#include "onnx/file/tensor.h"
#include "onnx/sizes.h"
#include "onnx/translate.h"
#include "ops/kernel.h"

enum {
  IMPORT_ROUNDS = 4,           /* imports with narrower dimensions, see bounds.h */
  IMPORT_DEPTH_MAX = 64,       /* function calls and subgraphs within each other */
  IMPORT_INLINED_MAX = 200000, /* nodes of functions and subgraphs: stops 2^n inlining bombs */
  IMPORT_UNSUPPORTED_MAX = 256,
  IMPORT_TRIALS_MAX = 2 /* within each other: more of them would multiply the work again */
};

/* One graph or function body being translated. Frames of subgraphs see the names of their parent;
 * function bodies see only their own. */
struct Frame {
  Frame *parent;               /* lexical, NULL for the main graph and functions */
  Frame *caller;               /* dynamic, NULL for the main graph */
  const Onnx__NodeProto *call; /* function bodies: the calling node, for attribute references */
  const Onnx__FunctionProto *function;
  Onnx__OperatorSetIdProto *const *imports;
  size_t import_count;
  uint32_t id;
  uint32_t depth;
  NameId path; /* for diagnostics */
};

enum { FRAME_MAIN = 1 }; /* id of the frame of the main graph */

typedef struct BindingSlot {
  uint64_t key; /* frame id << 32 | name */
  Binding binding;
  const Onnx__ValueInfoProto *info; /* declared type */
} BindingSlot;

typedef struct Unsupported {
  StrView domain, op;
  int64_t opset;
  uint32_t count;
  DiagPlace first;
} Unsupported;

typedef struct DimName {
  NameId name;
  SymInt value;
  bool known; /* by some dim of an input */
  bool split; /* some dims of that name have sizes of their own: --dim INPUT:AXIS=N */
} DimName;

/* What --value says about an input. */
typedef struct GivenValue {
  StrView text; /* data NULL: nothing */
  bool is_number;
  Tensor array; /* of a number: the shape only */
} GivenValue;

/* Ids of the names of a node: its inputs, then its outputs. Each is asked for several times. */
typedef struct NodeNames {
  const Onnx__NodeProto *node;
  NameId *ids;
  uint32_t capacity;
} NodeNames;

/* What the last nodes of an op were translated by, see operators_find(). */
typedef struct KnownRow {
  StrView domain;
  NameId op;
  int64_t opset;
  const OnnxTranslator *row;
} KnownRow;
enum { KNOWN_ROWS = 64 };

/* What the last masks of the main graph were searched for, see found_rows(). */
typedef struct FoundRows {
  ValueId mask, rows;
} FoundRows;
enum { FOUND_ROWS = 64 };

/* The number of an iteration, which is less than that of the steps; see loop_most(). */
typedef struct LoopNumber {
  SymInt number, below;
  const struct LoopNumber *next; /* of a loop that was begun before */
} LoopNumber;

typedef struct ImportState {
  Fold fold;
  Arena arena;
  BindingSlot *slots; /* what names stand for, from 1 */
  uint32_t slot_count, slot_capacity;
  uint32_t *main_slots; /* by name: the slot of the main graph; 0: none */
  uint32_t main_capacity;
  uint32_t *inner_slots; /* slots of other frames, by open addressing; 0 = free */
  uint32_t inner_capacity, inner_count;
  NodeNames node_names;
  KnownRow known_rows[KNOWN_ROWS];
  FoundRows found_rows[FOUND_ROWS];
  const LoopNumber *loop_numbers; /* the last one first */
  uint32_t frame_count;
  uint32_t inlined; /* nodes of functions and subgraphs so far */
  uint32_t trials;  /* within each other, see control_try */
  bool stopped;     /* they are too many: nothing more is translated or reported */
  Unsupported unsupported[IMPORT_UNSUPPORTED_MAX];
  uint32_t unsupported_count;
  uint32_t assumed; /* bits of operator sets that are not imported, and were told of */
  bool growth_told; /* that caches grow, and the input that says how much of them counts is not read
                     */
  DimName *dims;    /* dim_params seen so far */
  uint32_t dim_count, dim_capacity;
  bool dims_missing;                     /* DIM_UNBOUND */
  bool *flag_used;                       /* by index of options->dims */
  Intern function_names;                 /* "name NUL domain NUL overload" */
  const Onnx__FunctionProto **functions; /* by id of function_names */
  StrBuf function_key;
  Sizes *sizes;         /* NULL: integer inputs are not looked at */
  GivenValue *given;    /* by input of the model */
  uint64_t dense_bytes; /* of sparse tensors, as they are made dense */
  bool failed;
} ImportState;

/* operators.c */
/* The translator of the current node, which is of im->opset of that domain, among those of etc, and
 * among those that were added; NULL: not found. */
const OnnxTranslator *operators_find(Import *im, StrView domain);
const OnnxTranslator *operators_find_added(const Import *im, StrView domain);
/* Unsupported operators are collected, and reported once each. */
void operators_note_unsupported(Import *im, StrView domain, StrView op);
void operators_report_unsupported(Import *im);

/* scope.c */
BindingSlot *scope_slot(Import *im, Frame *frame,
                        NameId name); /* found or made in this very frame */
BindingSlot *scope_find(Import *im, Frame *frame,
                        NameId name); /* looks outwards; NULL when not there */
bool scope_bind(Import *im, NameId name,
                Binding binding); /* in im->frame; false + report when bound already */
NameId import_name(Import *im, const char *text); /* 0 for absent or empty */
/* import_name() of an input (output) of the current node. */
NameId import_input_name(Import *im, uint32_t i);
NameId import_output_name(Import *im, uint32_t i);
void scope_release(ImportState *s);

/* io.c */
Status import_inputs(Import *im, const Onnx__GraphProto *graph);
Status import_initializers(Import *im, const Onnx__GraphProto *graph);
Status import_outputs(Import *im, const Onnx__GraphProto *graph);
void import_declare(Import *im, Onnx__ValueInfoProto *const *infos, size_t count);

/* Dims of an input without a --dim flag get these sizes. */
void import_bind_dims(Import *im, const Onnx__ValueInfoProto *info, const int64_t *dims,
                      uint32_t rank);
/* Whether an input has a dim that goes by this name alone. */
bool import_has_dim(const Onnx__GraphProto *graph, StrView name);
/* The --dim of that name, or NULL. */
const DimFlag *import_dim_flag(const Import *im, StrView name);
/* The shape declared for a name of this frame; false when there is none or a dim is unknown. */
bool import_declared_dims(Import *im, NameId name, Dims *dims);

/* given.c */
Status import_given(Import *im, const Onnx__GraphProto *graph); /* fills state->given */
/* The constant that the input becomes. */
Status import_given_value(Import *im, const Onnx__ValueInfoProto *info, const GivenValue *given,
                          TypeId type, ValueId *out);

/* origin.c */
NameId import_origin(Import *im, const Onnx__NodeProto *node); /* 0: nothing is known */

/* import.c */
void import_nodes(Import *im, Onnx__NodeProto *const *nodes, size_t count);
Binding import_lookup(Import *im, NameId name); /* BIND_NONE when undefined */

/* attribute.c */

bool import_check_attributes(Import *im); /* doubled names, references outside functions */

/* function.c */
Status import_functions(Import *im); /* makes the table; two of one name are an error */
const Onnx__FunctionProto *import_function(Import *im, const Onnx__NodeProto *node);
void import_call(Import *im, const Onnx__FunctionProto *function);

/* lowered.c */
const LoweredOp *import_lowered(const Import *im, StrView domain, StrView op); /* or NULL */
void import_lowered_call(Import *im, const LoweredOp *lowered);

#endif

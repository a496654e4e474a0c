/* What a translator of one ONNX operator sees.
 *
 * A translator is `void translate_x(Import *im)`: it reads inputs and attributes of the current
 * node, builds ATen nodes with im->b (ir/builder.h), and binds each output with out(). It is
 * straight code that a failure passes through: after the first one (import_fail or a shape rule)
 * every builder call, reader and ex_* function returns 0 or its default, out() binds nothing, and
 * value 0 is a scalar as far as ex_rank, ex_dim and shape_of can tell. So look at import_ok only
 * before C code that needs what was checked: a division, an index, an allocation, a loop over what
 * the file says. The driver checks the status afterwards, and that every output the graph uses was
 * bound.
 *
 * im->opset is the version of the node's domain in the model (or function): the op has its meaning
 * at that version. Folding happens while building (interp/fold.h): an op over constants is a
 * constant at once; integer tensors made of shapes have known (maybe symbolic) elements, see
 * in_ints. */
#ifndef ETC_ONNX_TRANSLATE_H
#define ETC_ONNX_TRANSLATE_H

#include "ir/builder.h"
#include "onnx/import.h"

/* Messages of the file, which are in onnx.pb-c.h. */
typedef struct Onnx__GraphProto Onnx__GraphProto;
typedef struct Onnx__NodeProto Onnx__NodeProto;
typedef struct Onnx__SparseTensorProto Onnx__SparseTensorProto;
typedef struct Onnx__TensorProto Onnx__TensorProto;

/* What a name stands for. */
typedef enum BindingKind {
  BIND_NONE,     /* undefined */
  BIND_VALUE,    /* a tensor */
  BIND_SEQUENCE, /* a list of tensors known at compile time */
  BIND_STACK,    /* a list of as many tensors of one shape as dim 0 of `value` has rows */
  BIND_ABSENT,   /* an empty optional */
  BIND_POISON    /* result of a node that failed; users are skipped silently */
} BindingKind;
typedef struct Labels Labels; /* labels.h */
typedef struct Binding {
  BindingKind kind;
  ValueId value;
  const ValueId *items; /* SEQUENCE */
  uint32_t count;
  int32_t packed;       /* VALUE: the ONNX type when the IR has none for it (packed.h), else 0 */
  const Labels *labels; /* VALUE of packed type string: what its elements are indices into */
} Binding;

/* Elements that are known when lowering: those of a tensor live in scratch, those of an attribute
 * as long as the model. at: NULL where nothing is known or given, then count is 0. */
typedef struct Ints {
  const int64_t *at; /* numbers, or sizes that may be symbolic (SymInt) */
  uint32_t count;
} Ints;
typedef struct Floats {
  const float *at;
  uint32_t count;
} Floats;
typedef struct Doubles {
  const double *at;
  uint32_t count;
} Doubles;
typedef struct Texts {
  const StrView *at;
  uint32_t count;
} Texts;

static inline Binding binding_of(ValueId v) { return (Binding){.kind = BIND_VALUE, .value = v}; }

typedef struct Frame Frame; /* one graph or function body being translated; import.c */

typedef struct Import {
  Builder b;
  Graph *g;
  Context *ctx;
  OnnxModel *model;
  const ImportOptions *options;
  const Onnx__NodeProto *node;
  int64_t opset;
  OpId op; /* of the operator's row, see ONNX_OP in translators.def */
  Frame *frame;
  Arena scratch; /* reset after each node of the main graph */
  struct ImportState *state;
} Import;

/* How an operator is translated. Plug-ins have such rows, too; op is for those of etc. */
struct OnnxTranslator {
  OnnxOpRow row;
  void (*translate)(Import *im);
  OpId op;            /* what im->op is while it runs */
  const char *plugin; /* that brought it; NULL: etc itself */
};

/* --- inputs --- */
uint32_t in_count(const Import *im);
/* Input i as a tensor; 0 when absent (name empty or beyond the end) or after a failure. A sequence
 * or empty optional where a tensor is wanted is a failure. The driver has checked the row's minimum
 * of inputs, but an optional-looking empty name can still be there: use in_required for inputs that
 * must be present. */
ValueId in(Import *im, uint32_t i);
ValueId in_required(Import *im, uint32_t i);
Binding in_binding(Import *im, uint32_t i); /* sequences and optionals */
/* The ONNX type of input i when it is one that the IR does not have (packed.h); else 0. */
int32_t in_packed(Import *im, uint32_t i);
/* The elements of integer or bool input i when they are known (constant or shape arithmetic). 0-d
 * gives count 1. */
bool in_ints(Import *im, uint32_t i, Ints *values);
/* in_ints of any value. */
bool value_ints(Import *im, ValueId v, Ints *values);
/* As in_ints, but all elements must be plain numbers; else false. */
bool in_consts(Import *im, uint32_t i, Ints *values);
/* As in_consts, and also the elements of a constant of i32 or i64 that has many. */
bool in_indices(Import *im, uint32_t i, Ints *values);
/* As in_consts of any value. */
bool value_consts(Import *im, ValueId v, Ints *values);
/* Elements of a constant of any real dtype as doubles; false when it is not constant. */
bool value_doubles(Import *im, ValueId v, Doubles *values);
/* Whether the value is a constant that has no other elements than zeros. */
bool all_zero(Import *im, ValueId v);
/* The only element of v; false, and nothing is set, when v has none or several. one_int: of a
 * tensor of integers, which may be a size; one_whole: of any type, if it is an integer; one_const:
 * a number that is known; one_double: of any type. */
bool one_whole(Import *im, ValueId v, SymInt *number);
bool one_int(Import *im, ValueId v, SymInt *number);
bool one_const(Import *im, ValueId v, int64_t *number);
bool one_double(Import *im, ValueId v, double *number);

/* --- outputs --- */
uint32_t out_count(const Import *im);
bool out_wanted(const Import *im, uint32_t i); /* named, hence possibly used */
void out(Import *im, uint32_t i, ValueId v);
void out_sequence(Import *im, uint32_t i, const ValueId *items, uint32_t count); /* copied */
/* A tensor that may be of a packed type. */
void out_tensor(Import *im, uint32_t i, Binding tensor);
/* Whatever a subgraph gave (import_inline). */
void out_binding(Import *im, uint32_t i, Binding binding);
/* The type the model declares for output i (graph output or value_info): false when there is none
 * or a dim is unknown. Symbolic dims by name are the symbols of the inputs. The declared shape is
 * the contract when a shape-like input arrives only at run time. */
bool out_declared_dims(Import *im, uint32_t i, Dims *dims);
/* One dim of it. */
bool out_declared_dim(Import *im, uint32_t i, uint32_t dim, SymInt *size);
/* The greatest size that the model, or a --dim flag for one of its names, allows there; false when
 * nothing does. */
bool out_declared_bound(Import *im, uint32_t i, uint32_t dim, int64_t *bound);
bool out_declared_dtype(Import *im, uint32_t i, DType *dtype);

/* --- attributes: a wrong type is a failure (ATTR_TYPE); references inside functions are resolved
 * --- */
bool attr_has(Import *im, const char *name);
/* Integers that may become sizes and arguments of nodes: the few that cannot (ir/sym.h) are a
 * failure. */
int64_t attr_int(Import *im, const char *name, int64_t otherwise);
int64_t attr_int_required(Import *im, const char *name);
double attr_float(Import *im, const char *name, double otherwise);
double attr_float_required(Import *im, const char *name);
StrView attr_str(Import *im, const char *name, const char *otherwise);
/* The position of a text attribute among names, "a|b|c"; any other text is refused. */
uint32_t attr_choice(Import *im, const char *name, const char *otherwise, const char *names);
/* An element type, as `otherwise` without the attribute or with one of 0; fails for one that the
 * runtime cannot hold. */
DType attr_dtype(Import *im, const char *name, DType otherwise);
/* An integer that stands for yes or no. */
bool attr_flag(Import *im, const char *name, bool otherwise);
/* Fails when one of these attributes is there and not 0. */
void attr_refuse(Import *im, const char *names);
/* false when absent. */
bool attr_ints(Import *im, const char *name, Ints *values);
/* Any integer, for the elements of tensors; false when absent. */
bool attr_exact_int(Import *im, const char *name, int64_t *value);
bool attr_exact_ints(Import *im, const char *name, Ints *values);
bool attr_floats(Import *im, const char *name, Floats *values);
bool attr_doubles(Import *im, const char *name, Doubles *values);   /* the same, in scratch */
bool attr_strs(Import *im, const char *name, Texts *values);        /* in scratch */
const Onnx__TensorProto *attr_tensor(Import *im, const char *name); /* NULL when absent */
const Onnx__SparseTensorProto *attr_sparse(Import *im, const char *name);
const Onnx__GraphProto *attr_graph(Import *im, const char *name);

/* --- helpers --- */
/* Reports at the current node and fails; returns 0, which is false, too. */
ValueId import_fail(Import *im, DiagCode code, const char *format, ...) ETC_PRINTF(3, 4);
bool import_ok(const Import *im);
ValueId import_tensor(Import *im, const Onnx__TensorProto *t,
                      NameId name); /* a constant that borrows the file's bytes */
/* As import_tensor, of packed types and strings, too. */
Binding import_any_tensor(Import *im, const Onnx__TensorProto *t, NameId name);
/* A constant with the elements of a sparse tensor. */
ValueId import_sparse(Import *im, const Onnx__SparseTensorProto *t, NameId name);
/* axis in [-rank, rank) -> [0, rank); fails otherwise. */
uint32_t import_axis(Import *im, int64_t axis, uint32_t rank);
/* An i64 tensor with these elements: a constant when all are numbers; otherwise built so that
 * in_ints of it gives them back. */
ValueId build_syms(Import *im, const SymInt *values, uint32_t count);
/* Translates a subgraph in place: its inputs bound to `inputs`, outer names visible; outputs to
 * *outputs (scratch). For If with a known condition and for unrolled Loop and Scan. false when
 * something in it failed: without a failure of the builder the outputs are poison to pass on. */
bool import_inline(Import *im, const Onnx__GraphProto *graph, const Binding *inputs,
                   uint32_t input_count, Binding *outputs, uint32_t output_count);
static inline const Type *vt(const Import *im, ValueId v) { return value_type(im->g, v); }

#define ONNX(domain, name, since, until, min_inputs, max_inputs, function, lowering)               \
  void function(Import *im);
#define ONNX_OP(domain, name, since, until, min_inputs, max_inputs, function, op, lowering)        \
  void function(Import *im);
#include "onnx/translators.def"
#undef ONNX_OP
#undef ONNX

#endif

/* The graph: SSA nodes and values in flat pools, addressed by 32-bit handles; handle 0 means
 * "none".
 *
 * Invariants
 * - A node is an op of the table (op.h) with one argument per schema argument, in schema order.
 * - A value is a graph input, a state, a constant, or a result of one node. The results of a node
 * are consecutive values.
 * - A state is memory that lives between calls: its value is what the last call left there. Ops
 * with a mutated argument write it; after that, older results that share its memory are stale and
 * not used any more.
 * - An operand *is* a use record; all uses of a value are chained through it.
 * - Nodes are ordered by prev/next; every operand is defined before its user. Node 1 is the output
 * node: not in the order list, its uses are the graph's outputs.
 * - Pointers into pools (node_get, …) die at the next append: fetch again, never store.
 * - Types and argument lists are immutable once made. */
#ifndef ETC_IR_GRAPH_H
#define ETC_IR_GRAPH_H

#include "ir/dtype.h"
#include "ir/sym.h"
#include "support/diag.h"
#include "support/files.h"
#include "support/intern.h"

#define MAX_RANK 16 /* the runtime's limit (pte-format: tensor rank <= 16) */

typedef uint32_t NodeId, ValueId, UseId, TypeId, ConstId, NameId, LocId;
typedef uint16_t OpId; /* enum Op of op.h */

typedef enum Level { LEVEL_ATEN, LEVEL_CORE, LEVEL_EDGE, LEVEL_EXECUTORCH, LEVEL_COUNT } Level;

/* Why a shape rule refused a node. */
typedef struct ShapeFault {
  NodeId node;
  DiagCode code;
  char text[512];
} ShapeFault;

/* What all graphs of a session share. */
typedef struct Context {
  Intern names;
  DiagSink *sink;
  Arena arena;         /* session-long */
  StrView model_path;  /* for diagnostics */
  StrView only_method; /* of programs that are read, if they have it; or "" */
  bool names_only;     /* of one without it, or with several where it is "", only names are read */
  bool linked_data;    /* links may lead to external data */
  bool traced;         /* new graphs have a trace (trace.h) */
  const struct DelegateReaders *readers; /* of delegates (ops/delegate.h); or NULL */
  struct ContextFile *files;             /* mapped: constants of graphs lie in them */
  ShapeFault fault;                      /* of the shape rule that refused a node last */
} Context;
/* The model's file, nowhere in it. */
static inline DiagPlace context_place(const Context *ctx) {
  return (DiagPlace){.file = ctx->model_path, .index = -1};
}
void context_init(Context *ctx, DiagSink *sink);
void context_release(Context *ctx);
/* A file to map, which context_release unmaps. */
MappedFile *context_file(Context *ctx);

/* TENSOR, or a scalar that lives in a value slot of the program while it runs (sym_size, prim ops,
 * _local_scalar_dense). An INT scalar carries the expression it is equal to in dims[0] when rank is
 * 1 (rank 0: unknown). */
typedef enum TypeKind { TYPE_TENSOR, TYPE_INT, TYPE_FLOAT, TYPE_BOOL, TYPE_NONE } TypeKind;
typedef enum DimOrder { ORDER_CONTIGUOUS, ORDER_CHANNELS_LAST } DimOrder;

typedef struct Type {
  uint8_t kind;  /* TypeKind */
  uint8_t dtype; /* DType, TENSOR only */
  uint8_t order; /* DimOrder */
  uint8_t rank;
  const SymInt *dims; /* rank of them, owned by the graph */
} Type;

typedef enum ValueKind {
  VALUE_UNUSED,
  VALUE_INPUT,
  VALUE_CONST,
  VALUE_RESULT,
  VALUE_STATE
} ValueKind;

typedef struct Value {
  TypeId type;
  uint32_t def; /* RESULT: NodeId; CONST: ConstId; INPUT, STATE: position */
  UseId first_use;
  uint32_t use_count;
  NameId name;      /* the ONNX value name, 0 when made by a pass */
  uint32_t storage; /* index of a Storage, 0 = not planned */
  uint16_t kind;    /* ValueKind */
  uint16_t result;  /* RESULT: which */
} Value;

typedef struct Use {
  ValueId value; /* 0: an absent element of a Tensor?[] list */
  NodeId node;
  UseId next, prev; /* other uses of the same value */
} Use;

/* Argument kinds. *S are lists. A Scalar argument is INT, FLOAT or BOOL. */
typedef enum ArgKind {
  ARG_NONE,   /* absent optional */
  ARG_VALUE,  /* at: UseId */
  ARG_VALUES, /* at: first UseId, count */
  ARG_INT,    /* i: SymInt */
  ARG_INTS,   /* at: index into ints, count */
  ARG_FLOAT,  /* f */
  ARG_FLOATS, /* at: index into floats, count */
  ARG_BOOL,   /* i */
  ARG_STR,    /* i: NameId */
  ARG_DTYPE   /* i: DType */
} ArgKind;

typedef struct Arg {
  uint8_t kind;
  uint32_t count;
  union {
    uint32_t at;
    int64_t i;
    double f;
  };
} Arg;

typedef struct Node {
  OpId op;
  uint16_t arg_count, result_count;
  uint32_t first_arg;
  ValueId first_result;
  NodeId prev, next;
  LocId loc;
  uint32_t tag; /* delegate partition; 0 = none */
} Node;

/* Where a node comes from. from: the location it was decomposed or fused from, 0 = none. */
typedef struct Loc {
  NameId name, op_type, scope; /* ONNX node name, op type, function call chain or subgraph path */
  NameId origin;               /* module and line of the model's source; 0 unknown */
  int32_t index;               /* position in its ONNX graph, -1 unknown */
  LocId from;
} Loc;

/* The nodes that a delegate was made of. Debug handle i + 1 in the code of a delegate is of locs[i]
 * (backends/backend.h). */
typedef struct DelegateOrigin {
  NodeId call;
  uint32_t count;
  const LocId *locs;
} DelegateOrigin;

typedef struct Transform Transform; /* transform.h */
typedef struct Trace Trace;         /* trace.h */

/* Bytes of a constant: a span of a mapped file until a pass had to write them. data may be
 * unaligned when in a file. */
typedef struct Constant {
  const uint8_t *data; /* NULL: computed by the transform when needed */
  uint64_t size;
  const MappedFile *file; /* NULL: data lives in an arena */
  uint64_t file_offset;
  Transform *transform; /* NULL: data is there */
} Constant;

/* A place in the planned memory. Values that share one (views, in-place results, bitcasts) name the
 * same base storage with the same offset. */
typedef struct Storage {
  uint32_t arena;  /* memory_id, 1-based */
  uint64_t offset; /* bytes */
  uint64_t size;   /* bytes (upper bound for dynamic shapes) */
  bool enforced;   /* the runtime ends a call where a tensor of dynamic shape would be larger */
} Storage;

/* A memory of the device, which becomes an arena of the program. */
typedef struct MemoryBank {
  StrView name;
  uint64_t size; /* bytes; UINT64_MAX: no limit */
} MemoryBank;

/* Memory that lives between calls. */
typedef struct State {
  ValueId value;   /* of a static tensor type; its name is the state's */
  ConstId initial; /* the contents before the first call; 0 = zeros */
} State;

/* An assumption about symbols that import or a pass made: lhs == rhs, or lhs >= rhs, or lhs % rhs
 * == 0. */
typedef enum ConstraintKind { CONSTRAINT_EQ, CONSTRAINT_GE, CONSTRAINT_DIVISIBLE } ConstraintKind;
typedef struct Constraint {
  ConstraintKind kind;
  SymInt lhs, rhs;
  LocId loc;
} Constraint;

typedef struct Graph {
  Context *ctx;
  NameId name; /* method name */
  Level level;
  StrView stage;          /* of the pipeline, the last that it went through; empty: not recorded */
  const StrView *options; /* NAME=VALUE, what it was lowered with up to there */
  uint32_t option_count;
  SymTable syms;
  Arena arena; /* dims, data of computed constants */
  Node *nodes;
  Value *values;
  Use *uses;
  Arg *args;
  int64_t *ints; /* SymInts */
  double *floats;
  Type *types;
  Constant *constants;
  Loc *locs;
  Storage *storages;
  Constraint *constraints;
  uint32_t node_count, node_capacity, value_count, value_capacity, use_count, use_capacity,
      arg_count, arg_capacity;
  uint32_t int_count, int_capacity, float_count, float_capacity, type_count, type_capacity;
  uint32_t constant_count, constant_capacity, loc_count, loc_capacity, storage_count,
      storage_capacity;
  uint32_t constraint_count, constraint_capacity;
  uint32_t *type_slots, type_slot_count; /* hash-consing of types */
  NodeId first, last;                    /* order list */
  uint32_t live_nodes;
  ValueId *inputs;
  uint32_t input_count, input_capacity;
  const char *dim_flags; /* " --dim n=1..8", for messages about shapes; NULL without dimensions */
  State *states;
  uint32_t state_count, state_capacity;
  Transform *transforms; /* of its constants */
  uint64_t *arena_sizes; /* by memory_id, [0] unused; set by memory planning */
  uint32_t arena_size_count;
  uint64_t arena_excess;   /* bytes that they may be above the least possible, without states;
                              ARENA_UNPROVEN: not known. Not in the text */
  DelegateOrigin *origins; /* of delegates */
  uint32_t origin_count;
  const MemoryBank *banks; /* memory_id 1..bank_count; for the program that is written, or NULL */
  uint32_t bank_count;
  uint32_t arena_alignment; /* that was asked for (--plan), for the program, too; 0: none was */
  uint64_t edits;           /* changes so far of nodes, their order, arguments and types */
  uint64_t verified; /* edits when graph_verify() found no fault last; EDITS_UNVERIFIED: not yet */
  bool in_pass;      /* a pass runs on it, which must not free it */
  Trace *trace;      /* NULL: nobody asks */
  uint32_t traced;   /* of a snapshot: the events so far */
} Graph;

#define NODE_OUTPUT ((NodeId)1)
#define ARENA_UNPROVEN UINT64_MAX
#define EDITS_UNVERIFIED UINT64_MAX

Graph *graph_new(Context *ctx, StrView name);
void graph_free(Graph *g);
/* g as it is now, with the same handles, to be read while g changes. Its pools are in arena; types
 * and data of constants are those of g, which must outlive it. It is not freed. */
const Graph *graph_snapshot(const Graph *g, Arena *arena);
/* Makes g what it was when it was kept: nodes, values and their order. Types, symbols and constants
 * that came since stay, without users. Storages, states and inputs must not have changed. */
void graph_restore(Graph *g, const Graph *kept);

/* The nodes, which are in order, as a graph of its own, which takes `inputs` and gives `outputs`.
 * Types and data of constants are those of g, which must outlive it. */
Graph *graph_part(const Graph *g, const NodeId *nodes, uint32_t node_count, const ValueId *inputs,
                  uint32_t input_count, const ValueId *outputs, uint32_t output_count);

/* Types: equal types have equal ids. dims are copied. */
TypeId graph_tensor_type(Graph *g, DType dtype, uint32_t rank, const SymInt *dims, DimOrder order);
TypeId graph_scalar_type(Graph *g, TypeKind kind, SymInt value, bool known);
static inline const Type *type_get(const Graph *g, TypeId t) { return &g->types[t]; }
/* Upper bound of the bytes of a tensor type, UINT64_MAX on overflow or without a bound. */
uint64_t type_bytes_upper(const Graph *g, const Type *t);
bool type_is_static(const Type *t);

/* Values. */
static inline Node *node_get(Graph *g, NodeId n) { return &g->nodes[n]; }
static inline const Node *node_cget(const Graph *g, NodeId n) { return &g->nodes[n]; }
static inline Value *value_get(Graph *g, ValueId v) { return &g->values[v]; }
static inline const Value *value_cget(const Graph *g, ValueId v) { return &g->values[v]; }
static inline const Type *value_type(const Graph *g, ValueId v) {
  return &g->types[g->values[v].type];
}
static inline DType value_dtype(const Graph *g, ValueId v) {
  return (DType)value_type(g, v)->dtype;
}
static inline uint32_t value_rank(const Graph *g, ValueId v) { return value_type(g, v)->rank; }
/* Whether no dim is other than 1: one element, of any rank. */
static inline bool type_is_single(const Type *t) {
  bool single = true;
  for (uint32_t i = 0; i < t->rank; i++)
    single &= t->dims[i] == 1;
  return single;
}
static inline bool value_is_single(const Graph *g, ValueId v) {
  return type_is_single(value_type(g, v));
}
/* Element type, dims and order are the same: equal types are one. */
static inline bool value_same_type(const Graph *g, ValueId a, ValueId b) {
  return value_cget(g, a)->type == value_cget(g, b)->type;
}
/* A dim of a tensor of that rank, which counts from the end where it is below 0, as ATen's do. */
static inline int64_t wrap_dim(int64_t dim, uint32_t rank) { return dim < 0 ? dim + rank : dim; }
static inline SymInt value_dim(const Graph *g, ValueId v, uint32_t i) {
  return value_type(g, v)->dims[i];
}
static inline bool value_is_const(const Graph *g, ValueId v) {
  return g->values[v].kind == VALUE_CONST;
}
static inline NodeId value_def(const Graph *g, ValueId v) { /* 0 for inputs and constants */
  return g->values[v].kind == VALUE_RESULT ? g->values[v].def : 0;
}
/* The constant, or NULL; its bytes may still have to be computed (transform.h). */
static inline const Constant *value_lazy_constant(const Graph *g, ValueId v) {
  return value_is_const(g, v) ? &g->constants[g->values[v].def] : NULL;
}
/* c with its bytes, which are computed when they are not there. Good as long as the graph. */
const Constant *constant_made(const Constant *c);
/* Bytes [first, first + size) of c, borrowed, so that those of a file stay there. c is not computed
 * by a transform. */
static inline Constant constant_run(Constant c, uint64_t first, uint64_t size) {
  c.data += first;
  c.file_offset += first;
  c.size = size;
  return c;
}
/* The constant with its bytes, or NULL. Of large ones that may be transformed ask
 * value_lazy_constant when the size is enough. */
static inline const Constant *value_constant(const Graph *g, ValueId v) {
  const Constant *c = value_lazy_constant(g, v);
  return c && c->transform ? constant_made(c) : c;
}
/* The dims of a tensor in the making, on the stack: graph pools may move, these do not. */
typedef struct Dims {
  uint32_t rank;
  SymInt d[MAX_RANK];
} Dims;
Dims dims_make(const SymInt *d, uint32_t rank); /* rank <= MAX_RANK */
/* Whether both have the same rank and the same dims. */
bool dims_same(const SymInt *a, uint32_t a_rank, const SymInt *b, uint32_t b_rank);
/* The elements of the dims from `first` on, in front of `end`, which are known: 1 for none. */
int64_t dims_count(const SymInt *dims, uint32_t first, uint32_t end);
Dims value_dims(const Graph *g, ValueId v);
/* The texts of names; empty without one. */
StrView graph_name(const Graph *g);
StrView value_name(const Graph *g, ValueId v);
ValueId graph_add_input(Graph *g, TypeId type, NameId name);
/* initial: a constant with the bytes of the type, or 0 for zeros. */
ValueId graph_add_state(Graph *g, TypeId type, ConstId initial, NameId name);
/* Takes input `position` out of the list of inputs. Nothing may use it. */
void graph_remove_input(Graph *g, uint32_t position);
/* The operand whose memory the results of n are by the meaning of the op (a view without a copy,
 * an operand written in place), 0 for none. */
ValueId node_shared_operand(const Graph *g, NodeId n);
/* The state whose memory a value is: itself, what an op wrote in place, a view without a copy; 0
 * for values that are no state's memory. */
ValueId value_state(const Graph *g, ValueId v);
/* Bytes alone, for graph_add_state: borrowed, they must outlive the graph. */
ConstId graph_add_data(Graph *g, Constant bytes);
/* A constant whose bytes are borrowed (they must outlive the graph: arena of the graph, mapped
 * file). */
ValueId graph_add_constant(Graph *g, TypeId type, Constant bytes, NameId name);
/* A constant whose bytes are copied into the graph's arena. */
ValueId graph_add_constant_copy(Graph *g, TypeId type, const void *data, uint64_t size);
void graph_set_outputs(Graph *g, const ValueId *values, uint32_t count, const NameId *names);
uint32_t graph_output_count(const Graph *g);
ValueId graph_output(const Graph *g, uint32_t i);
NameId graph_output_name(const Graph *g, uint32_t i);        /* the ONNX output name */
StrView graph_output_text(const Graph *g, uint32_t i);       /* the text of it */
int graph_find_output(const Graph *g, StrView name);         /* -1: there is no such output */
void graph_replace_uses(Graph *g, ValueId from, ValueId to); /* all of them, outputs included */
/* The value `to` takes the place of `from`: its users, and its name if it is a result without one.
 */
void graph_replace_value(Graph *g, ValueId from, ValueId to);
/* graph_replace_value for all results of n: by `first` and the values behind it. */
void graph_replace_results(Graph *g, NodeId n, ValueId first);
void value_set_type(Graph *g, ValueId v, TypeId type);

/* Arguments as given to graph_add_node; see the A_* makers below. */
typedef struct ArgIn {
  ArgKind kind;
  uint32_t count;
  union {
    int64_t i;
    double f;
    const ValueId *values;
    const SymInt *ints;
    const double *floats;
    StrView str;
  };
} ArgIn;
#define A_NONE ((ArgIn){.kind = ARG_NONE})
#define A_VAL(v) ((ArgIn){.kind = ARG_VALUE, .i = (v)})
#define A_OPT(v) ((ArgIn){.kind = (v) ? ARG_VALUE : ARG_NONE, .i = (v)}) /* Tensor? */
#define A_VALS(p, n) ((ArgIn){.kind = ARG_VALUES, .count = (n), .values = (p)})
#define A_INT(x) ((ArgIn){.kind = ARG_INT, .i = (x)})
#define A_INTS(p, n) ((ArgIn){.kind = ARG_INTS, .count = (n), .ints = (p)})
#define A_FLOAT(x) ((ArgIn){.kind = ARG_FLOAT, .f = (x)})
#define A_FLOATS(p, n) ((ArgIn){.kind = ARG_FLOATS, .count = (n), .floats = (p)})
#define A_BOOL(x) ((ArgIn){.kind = ARG_BOOL, .i = (x) ? 1 : 0})
#define A_STR(s) ((ArgIn){.kind = ARG_STR, .str = sv_from(s)})
#define A_DTYPE(t) ((ArgIn){.kind = ARG_DTYPE, .i = (t)})

/* Inserts a node before `before` (0 = at the end). Missing trailing arguments get the schema's
 * defaults. result_count results are made with type 0; for the ops of the table use the builder
 * (builder.h), which runs the shape rule. */
NodeId graph_add_node(Graph *g, NodeId before, OpId op, const ArgIn *args, uint32_t arg_count,
                      uint32_t result_count, LocId loc);
/* Removes a node without users; its operands lose the uses. */
void graph_remove_node(Graph *g, NodeId n);
void graph_move_before(Graph *g, NodeId n, NodeId before); /* before 0: to the end */
/* Replaces one argument. Lists may change their length. */
void node_set_arg(Graph *g, NodeId n, uint32_t index, ArgIn arg);
/* The argument as an ArgIn, lists in arena. */
ArgIn node_arg_in(const Graph *g, NodeId n, uint32_t index, Arena *arena);

static inline const Arg *node_arg(const Graph *g, NodeId n, uint32_t i) {
  return &g->args[g->nodes[n].first_arg + i];
}
/* Readers of one argument; the kind must be right (the verifier checks it against the schema). */
ValueId node_value(const Graph *g, NodeId n, uint32_t i); /* 0 when absent */
uint32_t node_list_count(const Graph *g, NodeId n,
                         uint32_t i); /* of VALUES, INTS, FLOATS, BOOLS; 0 when absent */
ValueId node_list_value(const Graph *g, NodeId n, uint32_t i, uint32_t k);
SymInt node_int(const Graph *g, NodeId n, uint32_t i);
const SymInt *node_ints(const Graph *g, NodeId n,
                        uint32_t i); /* node_list_count of them; dies at the next append */
/* Entry k of a list that has one number for all dims or one for each; `otherwise` of an empty one.
 */
int64_t node_entry(const Graph *g, NodeId n, uint32_t i, uint32_t k, int64_t otherwise);
double node_scalar(const Graph *g, NodeId n, uint32_t i); /* INT, FLOAT or BOOL as a double */
bool node_bool(const Graph *g, NodeId n, uint32_t i);
StrView node_str(const Graph *g, NodeId n, uint32_t i);
static inline bool node_absent(const Graph *g, NodeId n, uint32_t i) {
  return node_arg(g, n, i)->kind == ARG_NONE;
}
/* The argument, or `otherwise` where it is absent. */
static inline SymInt node_int_or(const Graph *g, NodeId n, uint32_t i, SymInt otherwise) {
  return node_absent(g, n, i) ? otherwise : node_int(g, n, i);
}
static inline double node_scalar_or(const Graph *g, NodeId n, uint32_t i, double otherwise) {
  return node_absent(g, n, i) ? otherwise : node_scalar(g, n, i);
}
static inline ValueId node_result(const Graph *g, NodeId n, uint32_t i) {
  return g->nodes[n].first_result + i;
}
/* Whether nothing uses the results of n from `first` on. */
bool node_unused(const Graph *g, NodeId n, uint32_t first);

/* Walks of the uses: for (UseId u = first_use(g, v); u; u = g->uses[u].next) … g->uses[u].node */
static inline UseId first_use(const Graph *g, ValueId v) { return g->values[v].first_use; }
/* Whether v has one use, which may be that of an output. */
static inline bool value_used_once(const Graph *g, ValueId v) {
  return g->values[v].use_count == 1;
}
/* Whether v is an output of the graph. */
bool value_is_output(const Graph *g, ValueId v);
/* The node that alone uses v, once; 0 when several do, or none, or v is an output. */
static inline NodeId value_only_user(const Graph *g, ValueId v) {
  NodeId user = value_used_once(g, v) ? g->uses[first_use(g, v)].node : 0;
  return user == NODE_OUTPUT ? 0 : user;
}
/* for (FOR_NODES(g, n)): order list, n may be removed by the body only if next was fetched before.
 */
#define FOR_NODES(g, n)                                                                            \
  NodeId n = (g)->first;                                                                           \
  n;                                                                                               \
  n = (g)->nodes[n].next

/* How many operands an argument has. */
static inline uint32_t arg_operand_count(const Arg *arg) {
  return arg->kind == ARG_VALUE ? 1 : arg->kind == ARG_VALUES ? arg->count : 0;
}
/* body for each operand v of argument i of node n, in order; v is 0 for absent elements of lists.
 */
#define FOR_ARG_OPERANDS(g, n, i, v, body)                                                         \
  for (uint32_t i = 0; i < (g)->nodes[n].arg_count; i++) {                                         \
    const Arg *arg_ = node_arg((g), (n), i);                                                       \
    for (uint32_t k_ = 0, count_ = arg_operand_count(arg_); k_ < count_; k_++) {                   \
      ValueId v = (g)->uses[arg_->at + k_].value;                                                  \
      body                                                                                         \
    }                                                                                              \
  }
/* body for each operand v of node n, likewise. */
#define FOR_OPERANDS(g, n, v, body) FOR_ARG_OPERANDS(g, n, i_, v, body)

LocId graph_add_loc(Graph *g, Loc loc);
DiagPlace graph_place(const Graph *g,
                      LocId loc); /* for diagnostics; texts live as long as the context */
DiagPlace node_place(const Graph *g, NodeId n);
void graph_add_constraint(Graph *g, Constraint c);
/* What the call of a delegate was made of; calls are added in the order of their ids. */
void graph_add_origin(Graph *g, DelegateOrigin origin);
/* What a call was made of; NULL where it is not known, as in a program that was read. */
const DelegateOrigin *delegate_origin(const Graph *g, NodeId call);

#endif

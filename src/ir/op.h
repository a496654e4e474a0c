/* The op table: schema/ops.def compiled. Everything that knows an op by more than its meaning asks
 * here. */
#ifndef ETC_IR_OP_H
#define ETC_IR_OP_H

#include "ir/graph.h"

#define OP_PLUGIN_MAX 64

typedef enum Op {
  OP_NONE,
  OP_OUTPUT, /* the pseudo node 1 */
#define OP(id, ...) OP_##id,
#include "ops.def"
#undef OP
  OP_PLUGIN, /* the first one that was added (op_add) */
  OP_COUNT = OP_PLUGIN + OP_PLUGIN_MAX
} Op;

/* Traits. */
enum {
  OP_ELEMENTWISE = 1 << 0, /* result element i depends on (broadcast) operand elements i only */
  OP_VIEW = 1 << 1,   /* the result holds the operand's bytes unchanged in the same order: may share
                         its memory */
  OP_RANDOM = 1 << 2, /* never folded, never merged */
  OP_EFFECT = 1 << 3, /* writes an operand or has another effect: never removed, never merged, keeps
                         its place */
  OP_PRIM = 1 << 4,   /* works on scalars in value slots: no duplicate out argument when called
                         (executorch_prim and sym ops) */
  OP_COMMUTATIVE = 1 << 5, /* the first two operands may be swapped */
  OP_DATA_SHAPE =
      1 << 6, /* result shape depends on data (nonzero): result types hold unbacked symbols */
  OP_COSTLY = 1 << 7,       /* a result element may take as much work as an operand has elements */
  OP_CONTROL = 1 << 8,      /* a marker of control flow (ir/region.h): no call, but jumps */
  OP_SIGN_BLIND = 1 << 9,   /* integers: the same result bits for signed and unsigned ones of one
                               width (moves, bits, arithmetic modulo the width, equality) */
  OP_SIGN_ORDERS = 1 << 10, /* of integers only the order counts; results are elements, positions
                               or bools */
  OP_DELEGATE = 1 << 11,    /* a call of a delegate: no kernel */
  OP_QUANTIZE = 1 << 12,    /* floats to small integers and scales */
  OP_DEQUANTIZE =
      1 << 13 /* the opposite; never folded for constants, since that would widen weights */
};

typedef struct Kernel Kernel; /* ops/kernel.h */
typedef Status ShapeFn(Graph *g, NodeId n);
typedef Status KernelFn(Kernel *k);
/* NULL when the runtime's kernel takes this call; else why not (static text or text from the
 * arena). Runs at LEVEL_EDGE and later. */
typedef const char *KernelCheckFn(const Graph *g, NodeId n, Arena *arena);

/* May result `result` of node n be written over the memory in which `lies` says that operands do?
 * For ops whose code decides it (calls of delegates). */
typedef bool OverwriteFn(const Graph *g, NodeId n, uint32_t result,
                         bool lies(void *user, ValueId v), void *user, Arena *arena);

typedef struct OpRow {
  const char *id;     /* for messages of faults in etc; that of an added op is its name */
  const char *schema; /* functional ATen schema */
  const char *out;    /* the runtime's registered kernel, "aten::add.out"; NULL: must be gone before
                         LEVEL_EXECUTORCH */
  ShapeFn *shape; /* sets the types of all results from the arguments; reports what does not fit */
  KernelFn *kernel; /* reference kernel */
  DTypeSet dtypes;  /* tensor dtypes the runtime's kernel takes; 0 = any */
  uint32_t traits;
  uint8_t alias;   /* bit i: the runtime's kernel may write its result over tensor argument i (i
                      counts tensor arguments) */
  uint32_t levels; /* bit of each Level at which it may stand; 0 = all when out is set, ATEN only
                      otherwise */
  KernelCheckFn *check;    /* what dtypes cannot say; may be NULL */
  OverwriteFn *overwrites; /* asked in place of alias; may be NULL */
  const char *doc;
} OpRow;
extern const OpRow op_table[OP_PLUGIN];
extern OpRow op_added[OP_PLUGIN_MAX]; /* in the order in which they came */

/* Types of schema arguments. */
typedef enum SchemaType {
  ST_TENSOR,
  ST_INT,
  ST_FLOAT,
  ST_BOOL,
  ST_SCALAR,
  ST_STR,
  ST_DTYPE,
  ST_MEMORY_FORMAT,
  ST_LAYOUT,
  ST_DEVICE
} SchemaType;
typedef struct SchemaArg {
  StrView name;
  SchemaType type;
  bool list;             /* T[] or T[n] */
  bool optional;         /* T? or T[]? */
  bool element_optional; /* Tensor?[] */
  bool mutated;          /* Tensor(a!) */
  bool has_default;
  ArgIn default_value;
} SchemaArg;
#define SCHEMA_MAX_ARGS 24
#define SCHEMA_MAX_RESULTS 4
typedef struct OpSchema {
  StrView name;     /* "aten::add" */
  StrView overload; /* "Tensor", may be empty */
  StrView full;     /* "aten::add.Tensor" */
  uint32_t arg_count, result_count;
  bool result_list; /* one Tensor[] result: as many results as the shape rule says (split) */
  SchemaArg args[SCHEMA_MAX_ARGS];
  SchemaType results[SCHEMA_MAX_RESULTS]; /* ST_TENSOR or scalar */
} OpSchema;

/* Parsed once on first use (thread-safe); a schema that does not parse is a BUG. */
const OpSchema *op_schema(OpId op);
static inline const OpRow *op_row(OpId op) {
  return op < OP_PLUGIN ? &op_table[op] : &op_added[op - OP_PLUGIN];
}
static inline bool op_has_trait(OpId op, uint32_t trait) {
  return (op_row(op)->traits & trait) != 0;
}
/* The ops that there are now: those of the table and, behind them, those that were added. */
uint32_t op_count(void);
/* Adds the op of a plug-in, for all sessions of the process; the row lives as long as that. NULL,
 * also for a row that was added before; else what is wrong with it (static text, or from the
 * arena). Thread-safe. */
const char *op_add(const OpRow *row, Arena *arena);
/* Adds the op that a kernel of the runtime computes, by the kernel's schema, in which the results
 * are tensors that it writes: "my_ops::softclip.out(Tensor x, float limit, *, Tensor(a!) out) ->
 * Tensor(a!)". The text is copied; `shape` is its shape rule; it has no reference kernel. As
 * op_add; sets *op. */
const char *op_add_kernel(const char *schema, ShapeFn *shape, Arena *arena, OpId *op);
/* The traits that such an op may have. */
#define OP_PLUGIN_TRAITS (OP_ELEMENTWISE | OP_RANDOM | OP_COMMUTATIVE | OP_COSTLY)
/* Views that give the numbers of their operand, not others by its bits; false of OP_NONE. */
static inline bool op_keeps_numbers(OpId op) {
  return op_has_trait(op, OP_VIEW) && op != OP_VIEW_COPY_DTYPE;
}
/* "aten::add.Tensor" -> op, OP_NONE when unknown. By kernel name: "aten::add.out". */
OpId op_find(StrView full_name);
OpId op_find_out(StrView kernel_name);
bool op_allowed_at(OpId op, Level level);
/* Index of the named schema argument; BUG when there is none. */
uint32_t op_arg_index(OpId op, const char *name);
const char *level_name(Level level); /* aten, core, edge, executorch */

#endif

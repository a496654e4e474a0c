/* Delegates: calls of code that a backend made, and looking into that code.
 *
 * What lies below the backends needs to know such code: reading a program (which data of the
 * program it finds by name), the interpreter (running it), the report on a program. A backend has a
 * DelegateReader for it; backends/backend.c has the table. A reader may get any bytes. */
#ifndef ETC_OPS_DELEGATE_H
#define ETC_OPS_DELEGATE_H

#include "ops/kernel.h"
#include "support/json.h"

/* Arguments of the op. */
enum {
  DELEGATE_ARG_BACKEND,
  DELEGATE_ARG_KEYS,
  DELEGATE_ARG_BLOB,
  DELEGATE_ARG_DATA,
  DELEGATE_ARG_ARGS,
  DELEGATE_ARG_DTYPES,
  DELEGATE_ARG_RANKS,
  DELEGATE_ARG_SIZES,
  DELEGATE_ARG_SPECS
};

/* Bytes that the program has under a name. */
typedef struct DelegateData {
  StrView key;
  const uint8_t *data; /* not looked at by checks */
  uint64_t size;
} DelegateData;

/* The next word of the argument `keys`, cut off: the name of the data item of its place; empty at
 * the end. */
StrView delegate_next_key(StrView *keys);

/* What a backend wants to be told when the program is loaded: bytes under a key. */
typedef struct DelegateSpec {
  StrView key;
  const uint8_t *data;
  uint32_t size;
} DelegateSpec;

/* The argument `specs`: words KEY=VALUE, in which every byte but printable ASCII is "%" and two hex
 * digits, and so are '%', '=' and the blank. Appends one word. */
void delegate_append_spec(StrBuf *out, const DelegateSpec *spec);
/* All words, in arena. False when one is not of that form. */
bool delegate_parse_specs(StrView text, Arena *arena, DelegateSpec **out, uint32_t *count);

enum { DELEGATE_DIM_UNKNOWN = -1 };

/* A call. Inputs and outputs have their dims in the order of memory, each a size or
 * DELEGATE_DIM_UNKNOWN, or, where there is a table of them, an expression (ir/sym.h); data only
 * when the call is run. */
typedef struct DelegateCall {
  const uint8_t *blob;
  uint64_t blob_size;
  const DelegateData *data;
  const DelegateSpec *specs;
  const Tensor *inputs;
  Tensor *outputs;
  uint32_t data_count, input_count, output_count, spec_count;
  uint64_t memory; /* bytes that running may take */
  bool fixed;      /* the code is for these sizes alone, and not for others as well */
  SymTable *syms;  /* NULL: no dim is an expression; only for readers that take them */
} DelegateCall;

typedef struct DelegateCount {
  const char *what;
  const char *types; /* of what it computes on: "qint8", "fp32 -> qint8" */
  uint64_t count;
} DelegateCount;

/* What a transpose in the code is for: the layout that nodes want a value in, permutes of the model
 * (and layouts with them), or what one node computes. */
typedef enum TransposeReason {
  TRANSPOSE_LAYOUT,
  TRANSPOSE_PERMUTE,
  TRANSPOSE_INSIDE,
  TRANSPOSE_REASONS
} TransposeReason;

typedef struct DelegateTranspose {
  TransposeReason what;
  StrView node;   /* of the model: whose result it is, or which wants it */
  uint64_t bytes; /* at most */
} DelegateTranspose;

/* "2 for layouts: a, b", those of one kind; returns how many there are, and writes nothing for
 * none.
 */
uint32_t delegate_print_transposes(StrBuf *out, const DelegateTranspose *items, uint32_t count,
                                   TransposeReason what);
/* Writes the same members into the current JSON object. */
void delegate_json_transposes(JsonWriter *w, const DelegateTranspose *items, uint32_t count);

/* What is in the code; constants that differ. Memory is an estimate: what the runtime allocates
 * beside the arenas of the program. */
typedef struct DelegateFigures {
  const DelegateCount *nodes; /* most first */
  uint32_t kind_count, transpose_count;
  const DelegateTranspose *transposes; /* NULL: it does not say what they are for */
  uint64_t node_count, constants, constant_bytes;
  uint64_t byte_nodes; /* those that compute on codes of 8 bits */
  uint64_t work;       /* multiply-adds at the upper bounds (ops/work.h) */
  uint64_t packed;     /* bytes, from loading the method on: weights in the order of the kernels */
  uint64_t workspace;  /* bytes, from the first call on; all delegates of a backend share them */
} DelegateFigures;

/* What a call of the code takes: the first input_count arguments are inputs, the others outputs. */
typedef struct DelegateNeeds {
  StrView *keys; /* of the data that it finds in the program, each once */
  uint32_t key_count, input_count;
} DelegateNeeds;

/* Functions return NULL, or what is wrong; all memory comes from arena. They are called through the
 * functions reader_… below. None may be NULL but may_overwrite. Arrays that they give may be NULL
 * where their number is 0; texts in them may not. */
typedef struct DelegateReader {
  const char *id; /* the backend's, in the program */
  /* Asked before anything else of code that is read, and of what a backend of a plug-in writes. */
  const char *(*needs)(const uint8_t *blob, uint64_t size, Arena *arena, DelegateNeeds *out);
  /* All that can be known without running the call; sizes of outputs that were unknown and follow
   * from the code are filled in. */
  const char *(*check)(const DelegateCall *call, Arena *arena);
  /* Checks and runs it. Outputs come with the memory and dims of their largest contents and leave
   * with their real dims. */
  const char *(*run)(const DelegateCall *call, Arena *arena);
  const char *(*describe)(const uint8_t *blob, uint64_t size, Arena *arena, DelegateFigures *out);
  /* May output `output` lie in the memory of input `input`: is that read no more once the code
   * begins to write the output, in whatever order it runs what does not depend on each other?
   * NULL: never. */
  bool (*may_overwrite)(const uint8_t *blob, uint64_t size, uint32_t input, uint32_t output,
                        Arena *arena);
  /* Nothing that one call leaves in a delegate changes the next: calls with equal code may be calls
   * of one delegate, which the runtime initialises once. */
  bool stateless;
  bool expressions; /* check takes dims that are expressions, and fills in such */
  /* Set where it is registered: the plug-in that has it, and where to write that its code runs, for
   * reports of a crash. NULL: it is built in; nobody asks. */
  const char *plugin;
  const char *volatile *running;
} DelegateReader;

/* Call the functions of a reader. What that of a plug-in answers is checked: a fault that they find
 * names the plug-in. */
const char *reader_needs(const DelegateReader *r, const uint8_t *blob, uint64_t size, Arena *arena,
                         DelegateNeeds *out);
const char *reader_check(const DelegateReader *r, const DelegateCall *call, Arena *arena);
const char *reader_run(const DelegateReader *r, const DelegateCall *call, Arena *arena);
const char *reader_describe(const DelegateReader *r, const uint8_t *blob, uint64_t size,
                            Arena *arena, DelegateFigures *out);
bool reader_may_overwrite(const DelegateReader *r, const uint8_t *blob, uint64_t size,
                          uint32_t input, uint32_t output, Arena *arena);

/* The readers that are known (Context.readers): of the backends in backends/backends.def, and in a
 * session of those that plug-ins bring. */
typedef struct DelegateReaders {
  const DelegateReader *const *items;
  uint32_t count;
} DelegateReaders;

/* The reader of backend `id` in `known`, which may be NULL; NULL if it has no reader. */
const DelegateReader *delegate_reader(const DelegateReaders *known, StrView id);

/* May result `result` of call n be written over the memory in which `lies` says that inputs do? */
bool delegate_may_overwrite(const Graph *g, NodeId n, uint32_t result,
                            bool lies(void *user, ValueId v), void *user, Arena *arena);

/* Calls with equal identities are calls of one delegate of a program: the same backend, code,
 * compile specs, and names of the data that it finds in the program. A hash of them; of a backend
 * that is not known to be stateless each call has its own. */
typedef struct DelegateIdentity {
  uint64_t hash[2];
} DelegateIdentity;
/* Of the delegate that call n calls; its code may be no constant in a text that someone wrote. */
DelegateIdentity delegate_identity(const Graph *g, NodeId n);
/* By NodeId: the number of the delegate that a call is one of, from 1 in the order of their first
 * calls; 0 for other nodes. count: of delegates, may be NULL. In `arena`. */
const uint32_t *delegate_numbers(const Graph *g, Arena *arena, uint32_t *count);

/* What is in the code of the call n; false when nobody knows it. */
bool delegate_figures(const Graph *g, NodeId n, Arena *arena, DelegateFigures *out);

/* Of the sizes of the results of call n, which are upper bounds, those that are open: puts numbers
 * and expressions over the sizes of its operands in their place where the code says them, which are
 * not open any more. A wrong code is left to delegate_check. */
void delegate_narrow(Graph *g, NodeId n, SymInt *sizes, bool *open, Arena *arena);

/* Checks all calls in g of backends that are known; faults are reported under code. related: the
 * symbols of g say how sizes depend on each other, as those of a graph that was read back do not;
 * then the calls are checked at some sizes that they can have, too. */
Status delegate_check(const Graph *g, bool related, DiagCode code);
/* What is wrong with call n, as delegate_check finds out, or NULL. */
const char *delegate_fault(const Graph *g, NodeId n, bool related, Arena *arena);

#endif

/* The values of one ExecutionPlan: a tensor for each tensor of the graph, a slot for each scalar
 * that is computed while running, and the constant scalars, lists and strings of the calls, each
 * different one once. */
#ifndef ETC_PTE_VALUE_WRITER_H
#define ETC_PTE_VALUE_WRITER_H

#include "ir/graph.h"
#include "ir/op.h"
#include "pte/constants.h"
#include "pte/flatbuffer.h"
#include "pte/ptd.h"
#include "pte/schema.h"
#include "support/keymap.h"

typedef struct ValueWriter {
  FlatBuilder *b;
  ConstantPool *pool, *initial; /* constants; first contents of states */
  Graph *g;
  Arena *scratch;
  KeyMap known; /* constant scalars, strings and lists; key: kind byte, payload; value: index + 1 */
  KeyMap expressions;      /* SymInt -> index + 1 of the value that holds it while running */
  int32_t *index;          /* by ValueId: index + 1, 0 = not written yet */
  ValueId *same;           /* by ValueId: the value whose tensor it has, 0 = one of its own */
  uint32_t *data_index;    /* by ValueId: data_buffer_idx of constants and their views */
  PtdWriter *external;     /* where constants go, by name; NULL: into the pool */
  uint32_t *external_item; /* by ValueId: item + 1 of constants, and their views, that went there */
  NameId *external_name;   /* by ValueId: what the constant is called */
  FbRef *sizes;            /* by TypeId: its sizes vector */
  NameId *names;           /* by ValueId: of inputs and outputs, 0 for all others */
  FbRef dim_orders[2][MAX_RANK + 1];
  FbRef *values; /* written EValues */
  uint32_t count, capacity;
  Status status; /* first error, reported */
} ValueWriter;

void value_writer_init(ValueWriter *w, FlatBuilder *b, ConstantPool *pool, ConstantPool *initial,
                       Graph *g, Arena *scratch);
void value_writer_release(ValueWriter *w);

/* Index of a value of the graph, written on first use (inputs and constants) or when its node is
 * reached (results). */
int32_t write_value(ValueWriter *w, ValueId v);
/* A number, or the slot of the value that carries the expression. */
int32_t write_int(ValueWriter *w, SymInt value);
int32_t write_bool(ValueWriter *w, bool value);
/* A new scalar that calls write while running. */
int32_t write_slot(ValueWriter *w, PteKind kind);
/* v, not written yet, has the tensor of `as`: one value of the program for both. */
void write_same(ValueWriter *w, ValueId v, ValueId as);
/* Warns of outputs whose tensor has the name of an input, a state or another output. */
void write_check_names(ValueWriter *w);
/* A result that is the same memory and value as another one (in-place ops): no value of its own. */
void write_alias(ValueWriter *w, ValueId v, ValueId same);
/* A view of a constant: another tensor with the same data. */
void write_constant_view(ValueWriter *w, ValueId v, ValueId constant);
bool writes_constant(const ValueWriter *w, ValueId v); /* a constant or a view of one */

/* Index of argument i of node n, as its schema says. */
int32_t write_arg(ValueWriter *w, NodeId n, uint32_t i, const SchemaArg *arg);
int32_t write_tensor_list(ValueWriter *w, const ValueId *items, uint32_t count);

#endif

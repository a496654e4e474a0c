/* Calls of delegates, read back. The bytes of a delegate are its backend's business: of the
 * arguments, those that hold a value already are taken for inputs, the others are its results. */
#include "pte/read_internal.h"

/* The types of the results, as arguments of the node. */
typedef struct ResultTypes {
  SymInt *dtypes, *ranks, *sizes;
  uint32_t count, size_count;
} ResultTypes;

static Status add_result(MethodReader *r, uint32_t index, ResultTypes *types) {
  TypeId id;
  TRY(read_type(r, r->m->values[index].tensor, &id));
  const Type *t = type_get(r->g, id);
  types->dtypes[types->count] = t->dtype;
  types->ranks[types->count++] = t->rank;
  for (uint32_t i = 0; i < t->rank; i++)
    types->sizes[types->size_count++] = t->dims[i];
  return STATUS_OK;
}

static ValueId blob_constant(MethodReader *r, const PteDelegate *delegate) {
  int64_t size = (int64_t)delegate->size;
  Constant bytes = {.data = delegate->data,
                    .size = delegate->size,
                    .file = &r->p->file,
                    .file_offset = (uint64_t)(delegate->data - r->p->file.data)};
  return graph_add_constant(r->g, graph_tensor_type(r->g, DTYPE_U8, 1, &size, ORDER_CONTIGUOUS),
                            bytes, 0);
}

Status read_delegate_call(MethodReader *r, const PteInstruction *in) {
  const PteDelegate *delegate = &r->m->delegates[in->index];
  ValueId *inputs = ARENA_ARRAY(r->scratch, ValueId, in->count);
  uint32_t *results = ARENA_ARRAY(r->scratch, uint32_t, in->count), input_count = 0;
  ResultTypes types = {.dtypes = ARENA_ARRAY(r->scratch, SymInt, in->count),
                       .ranks = ARENA_ARRAY(r->scratch, SymInt, in->count),
                       .sizes = ARENA_ARRAY(r->scratch, SymInt, (size_t)in->count * MAX_RANK)};
  for (uint32_t i = 0; i < in->count; i++) {
    uint32_t index = (uint32_t)in->args[i];
    const PteValue *value = &r->m->values[index];
    if (value->kind != PTE_TENSOR)
      return read_error(r, DIAG_PTE_FIELD, "argument %u of a delegate is no tensor", i);
    if (r->current[index] || pte_is_constant(value->tensor)) {
      TRY(read_tensor(r, index, &inputs[input_count++]));
    } else {
      results[types.count] = index;
      TRY(add_result(r, index, &types));
    }
  }
  ArgIn args[] = {{.kind = ARG_STR, .str = delegate->id},
                  A_STR(""),
                  A_VAL(blob_constant(r, delegate)),
                  A_VALS(NULL, 0),
                  A_VALS(inputs, input_count),
                  A_INTS(types.dtypes, types.count),
                  A_INTS(types.ranks, types.count),
                  A_INTS(types.sizes, types.size_count)};
  NodeId n = graph_add_node(r->g, 0, OP_EXECUTORCH_CALL_DELEGATE, args, COUNT_OF(args), 0, r->loc);
  TRY(op_row(OP_EXECUTORCH_CALL_DELEGATE)->shape(r->g, n));
  for (uint32_t i = 0; i < types.count; i++)
    read_define(r, results[i], node_result(r->g, n, i));
  return STATUS_OK;
}

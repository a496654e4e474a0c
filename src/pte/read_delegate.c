/* Calls of delegates, read back. The bytes of a delegate are its backend's business
 * (ops/delegate.h): of the arguments, those that hold a value already are taken for inputs, the
 * others are its results. */
#include "ops/delegate.h"
#include "pte/read_internal.h"

/* The types of the results, as arguments of the node. */
typedef struct ResultTypes {
  SymInt *dtypes, *ranks, *sizes;
  uint32_t count, size_count;
} ResultTypes;

/* The sizes of a tensor with bounds are known when the delegate has run. */
static Status add_result(MethodReader *r, uint32_t index, ResultTypes *types) {
  const PteTensor *tensor = r->m->values[index].tensor;
  TypeId id;
  TRY(read_type(r, tensor, &id));
  types->dtypes[types->count] = tensor->dtype;
  types->ranks[types->count++] = tensor->rank;
  for (uint32_t i = 0; i < tensor->rank; i++) {
    SymInt size = tensor->sizes[i];
    if (tensor->dynamism != PTE_STATIC && size > 1)
      size = sym_symbol(&r->g->syms, SV(""), 1, size, true);
    types->sizes[types->size_count++] = size;
  }
  return STATUS_OK;
}

/* --- data that the code finds by name --- */

/* The constants of a call, and their keys in one text. */
typedef struct NamedData {
  ValueId *values;
  uint32_t count;
  StrView keys;
} NamedData;

/* Named data i of the program as a constant of the graph. */
static ValueId named_constant(MethodReader *r, uint32_t i) {
  if (r->named_values[i])
    return r->named_values[i];
  const PteSegment *segment = &r->p->segments[r->p->named_segments[i]];
  int64_t size = (int64_t)segment->size;
  Constant bytes = {.data = r->p->file.data + segment->offset,
                    .size = segment->size,
                    .file = &r->p->file,
                    .file_offset = segment->offset};
  TypeId type = graph_tensor_type(r->g, DTYPE_U8, 1, &size, ORDER_CONTIGUOUS);
  return r->named_values[i] = graph_add_constant(r->g, type, bytes, 0);
}

/* Where two data have one key the runtime takes the first. */
static void index_named_data(MethodReader *r) {
  r->named = keymap_make(r->scratch, r->g->ctx->names.seed);
  r->named_values = ARENA_ARRAY(r->scratch, ValueId, r->p->named_data_count);
  for (uint32_t i = 0; i < r->p->named_data_count; i++) {
    StrView key = r->p->named_data[i];
    uint32_t *slot;
    if (key.data && !keymap_get(&r->named, key.data, (uint32_t)key.size, &slot))
      *slot = i + 1;
  }
}

/* Code that many calls share is looked at again for each. */
static Status charge_code(MethodReader *r, uint64_t size) {
  if (size > *r->code_budget)
    return read_error(r, DIAG_PTE_UNSUPPORTED,
                      "the code of its delegates is called more often than any program would");
  *r->code_budget -= size;
  return STATUS_OK;
}

static Status find_data(MethodReader *r, const PteDelegate *delegate, NamedData *out) {
  const DelegateReader *reader = delegate_reader(delegate->id);
  *out = (NamedData){.keys = SV("")};
  if (!reader)
    return STATUS_OK;
  TRY(charge_code(r, delegate->size));
  StrView *keys;
  const char *fault = reader->keys(delegate->data, delegate->size, r->scratch, &keys, &out->count);
  if (fault)
    return read_error(r, DIAG_PTE_DELEGATE, "the code for '" SV_FMT "' is wrong: %s",
                      SV_ARG(delegate->id), fault);
  if (!r->named_values)
    index_named_data(r);
  StrBuf text;
  strbuf_init(&text);
  Status status = STATUS_OK;
  out->values = ARENA_ARRAY(r->scratch, ValueId, (size_t)out->count + 1);
  for (uint32_t i = 0; i < out->count && status == STATUS_OK; i++) {
    uint32_t *slot, found = keymap_get(&r->named, keys[i].data, (uint32_t)keys[i].size, &slot);
    if (!found || memchr(keys[i].data, ' ', keys[i].size))
      status = read_error(r, DIAG_PTE_DELEGATE,
                          "the code for '" SV_FMT "' needs the data '" SV_FMT
                          "', which the program does not have",
                          SV_ARG(delegate->id), SV_ARG(keys[i]));
    else
      out->values[i] = named_constant(r, found - 1);
    strbuf_append(&text, i ? SV(" ") : SV(""));
    strbuf_append(&text, keys[i]);
  }
  out->keys = sv_from(arena_strdup(r->scratch, (StrView){strbuf_cstr(&text), text.size}));
  strbuf_release(&text);
  return status;
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
  NamedData data;
  TRY(find_data(r, delegate, &data));
  for (uint32_t i = 0; i < in->count; i++) {
    uint32_t index = (uint32_t)in->args[i];
    const PteValue *value = &r->m->values[index];
    bool is_input =
        value->kind == PTE_TENSOR && (r->current[index] || pte_is_constant(value->tensor));
    if (value->kind != PTE_TENSOR)
      return read_error(r, DIAG_PTE_FIELD, "argument %u of a delegate is no tensor", i);
    if (is_input && types.count)
      return read_error(r, DIAG_PTE_UNSUPPORTED,
                        "argument %u of a delegate is an input after an output", i);
    if (is_input) {
      TRY(read_tensor(r, index, &inputs[input_count++]));
    } else {
      results[types.count] = index;
      TRY(add_result(r, index, &types));
    }
  }
  ArgIn args[] = {{.kind = ARG_STR, .str = delegate->id},
                  {.kind = ARG_STR, .str = data.keys},
                  A_VAL(blob_constant(r, delegate)),
                  A_VALS(data.values, data.count),
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

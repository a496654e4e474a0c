/* Calls of delegates, read back. The bytes of a delegate are its backend's business
 * (ops/delegate.h). Where nothing is known of the backend, arguments that hold a value already are
 * taken for inputs, and the others for results. */
#include "ops/delegate.h"
#include "ir/builder.h"
#include "pte/read_internal.h"

/* The types of the results, as arguments of the node. */
typedef struct ResultTypes {
  SymInt *dtypes, *ranks, *sizes;
  bool *open; /* by size: it is a bound, since the file does not say more */
  uint32_t count, size_count, open_count;
} ResultTypes;

static Status add_result(MethodReader *r, uint32_t index, ResultTypes *types) {
  const PteTensor *tensor = r->m->values[index].tensor;
  TypeId id;
  if (pte_is_constant(tensor) || (!tensor->memory_id && !bitset_has(&r->outputs, index)))
    return read_error(r, DIAG_PTE_PLAN,
                      "a delegate writes value %u, which is a constant or has no place in memory",
                      index);
  TRY(read_type(r, tensor, &id));
  types->dtypes[types->count] = tensor->dtype;
  types->ranks[types->count++] = tensor->rank;
  for (uint32_t i = 0; i < tensor->rank; i++) {
    bool open = tensor->dynamism != PTE_STATIC && tensor->sizes[i] > 1;
    types->open[types->size_count] = open;
    types->open_count += open;
    types->sizes[types->size_count++] = tensor->sizes[i];
  }
  return STATUS_OK;
}

/* Sizes that are open follow from those of the operands, as the code says, or are known when the
 * delegate has run. */
static Status find_open_sizes(MethodReader *r, NodeId n, ResultTypes *types) {
  Graph *g = r->g;
  if (!types->open_count)
    return STATUS_OK;
  delegate_narrow(g, n, types->sizes, types->open, r->scratch);
  for (uint32_t i = 0; i < types->size_count; i++)
    if (types->open[i])
      types->sizes[i] = sym_symbol(&g->syms, SV(""), 0, types->sizes[i], true);
  node_set_arg(g, n, DELEGATE_ARG_SIZES, A_INTS(types->sizes, types->size_count));
  return shape_run(g, n);
}

/* --- data that the code finds by name --- */

/* The constants of a call, their keys in one text, and how many of its arguments are inputs. */
typedef struct CallData {
  ValueId *values;
  uint32_t count;
  StrView keys;
  uint32_t inputs;
} CallData;

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

/* What the program does not have itself. */
static ValueId external_constant(MethodReader *r, const PtdEntry *e) {
  int64_t size = (int64_t)e->size;
  Constant bytes = {
      .data = e->data, .size = e->size, .file = &r->external->file, .file_offset = e->file_offset};
  TypeId type = graph_tensor_type(r->g, DTYPE_U8, 1, &size, ORDER_CONTIGUOUS);
  return graph_add_constant(r->g, type, bytes, 0);
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

static Status find_named(MethodReader *r, const PteDelegate *delegate, const DelegateNeeds *needs,
                         CallData *out) {
  StrBuf text = {0};
  Status status = STATUS_OK;
  if (!r->named_values)
    index_named_data(r);
  out->values = ARENA_ARRAY(r->scratch, ValueId, (size_t)needs->key_count + 1);
  out->count = needs->key_count;
  for (uint32_t i = 0; i < needs->key_count && status == STATUS_OK; i++) {
    StrView key = needs->keys[i];
    uint32_t *slot, found = keymap_get(&r->named, key.data, (uint32_t)key.size, &slot);
    const PtdEntry *e = !found && r->external ? ptd_find(r->external, key) : NULL;
    if ((!found && !e) || memchr(key.data, ' ', key.size))
      status = read_error(r, DIAG_PTE_DELEGATE,
                          "the code for '" SV_FMT "' needs the data '" SV_FMT
                          "', which the program does not have",
                          SV_ARG(delegate->id), SV_ARG(key));
    else
      out->values[i] = found ? named_constant(r, found - 1) : external_constant(r, e);
    strbuf_append(&text, i ? SV(" ") : SV(""));
    strbuf_append(&text, key);
  }
  out->keys = strbuf_keep(&text, r->scratch);
  return status;
}

static bool holds_value(const MethodReader *r, uint32_t index) {
  const PteValue *value = &r->m->values[index];
  return r->current[index] || (value->kind == PTE_TENSOR && pte_is_constant(value->tensor));
}

static Status find_data(MethodReader *r, const PteInstruction *in, CallData *out) {
  const PteDelegate *delegate = &r->m->delegates[in->index];
  const DelegateReader *reader = delegate_reader(r->g->ctx->readers, delegate->id);
  *out = (CallData){.keys = SV("")};
  if (!reader) {
    while (out->inputs < in->count && holds_value(r, (uint32_t)in->args[out->inputs]))
      out->inputs++;
    return STATUS_OK;
  }
  TRY(charge_code(r, delegate->size));
  DelegateNeeds needs;
  const char *fault = reader_needs(reader, delegate->data, delegate->size, r->scratch, &needs);
  if (fault)
    return read_error(r, DIAG_PTE_DELEGATE, "the code for '" SV_FMT "' is wrong: %s",
                      SV_ARG(delegate->id), fault);
  if (needs.input_count > in->count)
    return read_error(r, DIAG_PTE_DELEGATE,
                      "the code for '" SV_FMT "' takes %u inputs, and its call has %u arguments",
                      SV_ARG(delegate->id), needs.input_count, in->count);
  out->inputs = needs.input_count;
  return find_named(r, delegate, &needs, out);
}

uint32_t read_delegate_inputs(MethodReader *r, const PteInstruction *in) {
  const PteDelegate *delegate = &r->m->delegates[in->index];
  const DelegateReader *reader = delegate_reader(r->g->ctx->readers, delegate->id);
  DelegateNeeds needs;
  if (!reader || delegate->size > *r->code_budget)
    return in->count;
  *r->code_budget -= delegate->size;
  bool wrong = reader_needs(reader, delegate->data, delegate->size, r->scratch, &needs) != NULL;
  return wrong || needs.input_count > in->count ? in->count : needs.input_count;
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

/* As the argument of the node. */
static Status read_specs(MethodReader *r, const PteDelegate *delegate, ArgIn *out) {
  StrBuf text = {0};
  Status status = STATUS_OK;
  for (uint32_t i = 0; i < delegate->spec_count && status == STATUS_OK; i++) {
    const PteSpec *spec = &delegate->specs[i];
    status = charge_code(r, spec->key.size + spec->size);
    if (status == STATUS_OK)
      delegate_append_spec(&text, &(DelegateSpec){spec->key, spec->data, spec->size});
  }
  *out = (ArgIn){.kind = ARG_STR};
  out->str = strbuf_keep(&text, r->scratch);
  return status;
}

Status read_delegate_call(MethodReader *r, const PteInstruction *in) {
  const PteDelegate *delegate = &r->m->delegates[in->index];
  ValueId *inputs = ARENA_ARRAY(r->scratch, ValueId, in->count);
  uint32_t *results = ARENA_ARRAY(r->scratch, uint32_t, in->count), input_count = 0;
  ResultTypes types = {.dtypes = ARENA_ARRAY(r->scratch, SymInt, in->count),
                       .ranks = ARENA_ARRAY(r->scratch, SymInt, in->count),
                       .sizes = ARENA_ARRAY(r->scratch, SymInt, (size_t)in->count * MAX_RANK),
                       .open = ARENA_ARRAY(r->scratch, bool, (size_t)MAX_RANK * in->count)};
  CallData data;
  ArgIn specs;
  TRY(find_data(r, in, &data));
  TRY(read_specs(r, delegate, &specs));
  for (uint32_t i = 0; i < in->count; i++) {
    uint32_t index = (uint32_t)in->args[i];
    if (r->m->values[index].kind != PTE_TENSOR)
      return read_error(r, DIAG_PTE_FIELD, "argument %u of a delegate is not a tensor", i);
    if (i < data.inputs) {
      TRY(read_tensor(r, index, &inputs[input_count++]));
      continue;
    }
    results[types.count] = index;
    TRY(add_result(r, index, &types));
  }
  ArgIn args[] = {{.kind = ARG_STR, .str = delegate->id},
                  {.kind = ARG_STR, .str = data.keys},
                  A_VAL(blob_constant(r, delegate)),
                  A_VALS(data.values, data.count),
                  A_VALS(inputs, input_count),
                  A_INTS(types.dtypes, types.count),
                  A_INTS(types.ranks, types.count),
                  A_INTS(types.sizes, types.size_count),
                  specs};
  NodeId n = graph_add_node(r->g, 0, OP_EXECUTORCH_CALL_DELEGATE, args, COUNT_OF(args), 0, r->loc);
  TRY(shape_run(r->g, n));
  TRY(find_open_sizes(r, n, &types));
  for (uint32_t i = 0; i < types.count; i++)
    read_define(r, results[i], node_result(r->g, n, i));
  return STATUS_OK;
}

/* See read.h. What an operand of a call is in the graph: tensors (with the views that have no
 * instruction), scalars, lists. */
#include "pte/read_internal.h"

Status read_type(MethodReader *r, const PteTensor *t, TypeId *out) {
  SymInt dims[MAX_RANK];
  if (!pte_dtype_known(t->dtype))
    return read_error(r, DIAG_PTE_UNSUPPORTED, "a tensor of type %s", pte_dtype_name(t->dtype));
  for (uint32_t i = 0; i < t->rank; i++) {
    if (t->dim_order[i] != i)
      return read_error(r, DIAG_PTE_UNSUPPORTED, "a tensor whose dim_order is not contiguous");
    dims[i] = t->sizes[i];
  }
  *out = graph_tensor_type(r->g, (DType)t->dtype, t->rank, dims, ORDER_CONTIGUOUS);
  return STATUS_OK;
}

/* Empty tensors may lie anywhere, also where another tensor does: they are found by their type. */
ValueId *read_place(MethodReader *r, const PteTensor *t) {
  uint64_t key[3] = {t->memory_id, t->offset, t->bytes ? 0 : t->dtype + 1u};
  uint32_t *slot;
  keymap_get(&r->places, key, sizeof key, &slot);
  return slot;
}

static void give_storage(MethodReader *r, ValueId v, const PteTensor *t) {
  Graph *g = r->g;
  g->storages = pool_reserve(g->storages, &g->storage_capacity, (uint64_t)g->storage_count + 1,
                             sizeof *g->storages);
  g->storages[g->storage_count] = (Storage){.arena = t->memory_id,
                                            .offset = t->offset,
                                            .size = t->bytes,
                                            .enforced = t->dynamism == PTE_DYNAMIC_BOUND};
  g->values[v].storage = g->storage_count++;
}

void read_define(MethodReader *r, uint32_t index, ValueId v) {
  const PteValue *value = &r->m->values[index];
  bool planned = value->kind == PTE_TENSOR && value->tensor->memory_id;
  read_note(r, index, planned ? value->tensor : NULL, true);
  r->current[index] = r->latest[index] = v;
  r->base[index] = 0;
  if (!planned)
    return;
  give_storage(r, v, value->tensor);
  *read_place(r, value->tensor) = v;
}

static bool same_layout(const PteTensor *t, const PtdEntry *e) {
  return e->is_tensor && e->dtype == t->dtype && e->rank == t->rank &&
         memcmp(e->sizes, t->sizes, t->rank * sizeof *t->sizes) == 0 &&
         memcmp(e->dim_order, t->dim_order, t->rank) == 0;
}

/* A constant that another file has. */
static Status make_external(MethodReader *r, uint32_t index, const PteTensor *t) {
  TypeId type;
  TRY(read_type(r, t, &type));
  const PtdEntry *e = r->external ? ptd_find(r->external, t->name) : NULL;
  if (!e)
    return read_error(r, DIAG_PTE_DATA, "tensor '" SV_FMT "' is in another file%s", SV_ARG(t->name),
                      r->external ? ", and not in the one given" : "");
  if (!same_layout(t, e) || e->size < t->bytes)
    return read_error(r, DIAG_PTE_DATA,
                      "tensor '" SV_FMT "' has another element type or other sizes in the file of "
                      "external data",
                      SV_ARG(t->name));
  Constant c = {
      .data = e->data, .size = t->bytes, .file = &r->external->file, .file_offset = e->file_offset};
  r->current[index] = graph_add_constant(r->g, type, c, intern_add(&r->g->ctx->names, t->name));
  return STATUS_OK;
}

static Status make_constant(MethodReader *r, uint32_t index, const PteTensor *t) {
  TypeId type;
  TRY(read_type(r, t, &type));
  const uint8_t *data = pte_tensor_data(r->p, t);
  Constant c = {.data = data,
                .size = t->bytes,
                .file = &r->p->file,
                .file_offset = (uint64_t)(data - r->p->file.data)};
  r->current[index] = graph_add_constant(r->g, type, c, 0);
  return STATUS_OK;
}

/* Memory that the method reads before anything wrote it: what the call before has left there, or
 * what the file says. */
static Status make_state(MethodReader *r, uint32_t index, const PteTensor *t) {
  Graph *g = r->g;
  TypeId type = 0;
  TRY(read_type(r, t, &type));
  ConstId initial = 0;
  if (t->data) {
    const uint8_t *data = pte_tensor_data(r->p, t);
    initial = graph_add_data(g, (Constant){.data = data,
                                           .size = t->bytes,
                                           .file = &r->p->file,
                                           .file_offset = (uint64_t)(data - r->p->file.data)});
  }
  NameId name = t->name.size ? intern_add(&g->ctx->names, t->name) : 0;
  read_define(r, index, graph_add_state(g, type, initial, name));
  return STATUS_OK;
}

Status read_states(MethodReader *r) {
  for (uint32_t i = 0; i < r->m->value_count; i++) {
    const PteValue *v = &r->m->values[i];
    if (v->kind != PTE_TENSOR || !pte_is_state(v->tensor) || v->tensor->external)
      continue;
    if (r->current[i])
      return read_error(r, DIAG_PTE_PLAN, "value %u is an input with first contents", i);
    if (!*read_place(r, v->tensor))
      TRY(make_state(r, i, v->tensor));
  }
  return STATUS_OK;
}

Status read_memory(MethodReader *r, uint32_t index, ValueId *out) {
  const PteValue *v = &r->m->values[index];
  *out = v->kind == PTE_TENSOR && v->tensor->memory_id ? *read_place(r, v->tensor) : 0;
  return *out ? STATUS_OK
              : read_error(r, DIAG_PTE_UNSUPPORTED,
                           "value %u gets a size, and there is nothing at its place", index);
}

/* A view that costs no instruction, at the place of its operand. */
static ValueId view_of(MethodReader *r, ValueId from, OpId op, ArgIn how, TypeId type) {
  Graph *g = r->g;
  NodeId n = graph_add_node(g, 0, op, (const ArgIn[]){A_VAL(from), how}, 2, 1, r->loc);
  ValueId v = node_result(g, n, 0);
  value_set_type(g, v, type);
  g->values[v].storage = g->values[from].storage;
  return v;
}

static TypeId type_with_dtype(Graph *g, ValueId v, DType dtype) {
  const Type *t = value_type(g, v);
  SymInt dims[MAX_RANK];
  for (uint32_t i = 0; i < t->rank; i++)
    dims[i] = t->dims[i];
  return graph_tensor_type(g, dtype, t->rank, dims, (DimOrder)t->order);
}

/* A tensor that no instruction writes: a view of the tensor that lies at its place. */
static Status make_view(MethodReader *r, uint32_t index, const PteTensor *t) {
  Graph *g = r->g;
  ValueId from = *read_place(r, t);
  if (!from)
    return make_state(r, index, t);
  if (r->current[index] && r->base[index] == from)
    return STATUS_OK;
  TypeId type;
  TRY(read_type(r, t, &type));
  DType dtype = (DType)t->dtype;
  if (dtype_size(value_dtype(g, from)) != dtype_size(dtype))
    return read_error(r, DIAG_PTE_UNSUPPORTED, "value %u reads the bytes of a tensor of %s as %s",
                      index, dtype_name(value_dtype(g, from)), pte_dtype_name(t->dtype));
  if (g->storages[g->values[from].storage].size != t->bytes)
    return read_error(
        r, DIAG_PTE_PLAN,
        "value %u, which no instruction writes, differs in size from the tensor at its place",
        index);
  ValueId v = from;
  if (value_dtype(g, from) != dtype)
    v = view_of(r, from, OP_VIEW_COPY_DTYPE, A_DTYPE(dtype), type_with_dtype(g, from, dtype));
  const Type *wanted = type_get(g, type);
  if (v == from || g->values[v].type != type)
    v = view_of(r, v, OP_VIEW_COPY, A_INTS(wanted->dims, wanted->rank), type);
  read_note(r, index, NULL, false);
  r->current[index] = v;
  r->base[index] = r->latest[index] = from;
  return STATUS_OK;
}

/* A value that was written in one branch only, or in a loop that may have run or not. */
static Status check_written(const MethodReader *r, uint32_t index) {
  return bitset_has(&r->lost, index)
             ? read_error(r, DIAG_PTE_UNSUPPORTED,
                          "value %u is not written on all ways that lead here", index)
             : STATUS_OK;
}

Status read_tensor(MethodReader *r, uint32_t index, ValueId *out) {
  const PteValue *value = &r->m->values[index];
  if (value->kind != PTE_TENSOR)
    return read_error(r, DIAG_PTE_FIELD, "value %u is not a tensor", index);
  const PteTensor *t = value->tensor;
  bool written = r->current[index] && !r->base[index];
  TRY(check_written(r, index));
  if (t->external && t->memory_id)
    return read_error(r, DIAG_PTE_UNSUPPORTED,
                      "value %u is a state with its first contents in another file", index);
  if (!written && t->external)
    TRY(make_external(r, index, t));
  else if (!written && pte_is_constant(t))
    TRY(make_constant(r, index, t));
  else if (!written && t->memory_id)
    TRY(make_view(r, index, t));
  else if (!written)
    return read_error(r, DIAG_PTE_PLAN,
                      "value %u is read, but has neither data nor a place in memory", index);
  *out = r->current[index];
  return STATUS_OK;
}

/* --- scalars --- */

static Status wrong_kind(const MethodReader *r, uint32_t index, const SchemaArg *arg) {
  return read_error(r, DIAG_PTE_FIELD,
                    "value %u is of the wrong kind for argument '" SV_FMT
                    "'; the runtime would abort",
                    index, SV_ARG(arg->name));
}

/* A slot that an instruction writes while running. */
static Status read_slot(MethodReader *r, uint32_t index, const SchemaArg *arg, ArgIn *out) {
  static const SchemaType types[] = {
      [TYPE_INT] = ST_INT, [TYPE_FLOAT] = ST_FLOAT, [TYPE_BOOL] = ST_BOOL};
  ValueId v = r->current[index];
  const Type *t = value_type(r->g, v);
  if (t->kind == TYPE_TENSOR || t->kind == TYPE_NONE ||
      (arg->type != ST_SCALAR && types[t->kind] != arg->type))
    return wrong_kind(r, index, arg);
  *out = A_VAL(v);
  return STATUS_OK;
}

static Status read_dtype(MethodReader *r, const PteValue *value, ArgIn *out) {
  if (value->i < 0 || value->i >= 32 || !pte_dtype_known((uint8_t)value->i))
    return read_error(r, DIAG_PTE_UNSUPPORTED, "scalar type %lld as an argument",
                      (long long)value->i);
  *out = A_DTYPE(value->i);
  return STATUS_OK;
}

/* An argument that etc has as a symbolic integer, which a few numbers cannot be (ir/sym.h). */
static Status read_number(MethodReader *r, int64_t number, SymInt *out) {
  if (sym_from_number(number, out))
    return STATUS_OK;
  return read_error(r, DIAG_PTE_UNSUPPORTED, "the number %lld as an argument", (long long)number);
}

static Status read_int_literal(MethodReader *r, uint32_t index, const SchemaArg *arg, ArgIn *out) {
  const PteValue *value = &r->m->values[index];
  switch (arg->type) {
  case ST_DTYPE:
    return read_dtype(r, value, out);
  case ST_INT:
  case ST_SCALAR:
  case ST_LAYOUT:
  case ST_MEMORY_FORMAT:
  case ST_DEVICE:
    return read_number(r, value->i, &out->i);
  default:
    return wrong_kind(r, index, arg);
  }
}

static Status read_literal(MethodReader *r, uint32_t index, const SchemaArg *arg, ArgIn *out) {
  const PteValue *value = &r->m->values[index];
  bool scalar = arg->type == ST_SCALAR;
  *out = A_INT(0);
  if (value->kind == PTE_INT)
    return read_int_literal(r, index, arg, out);
  if (value->kind == PTE_DOUBLE && (arg->type == ST_FLOAT || scalar))
    *out = A_FLOAT(value->f);
  else if (value->kind == PTE_BOOL && (arg->type == ST_BOOL || scalar))
    *out = A_BOOL(value->i);
  else if (value->kind == PTE_STRING && arg->type == ST_STR && value->text.data)
    *out = (ArgIn){.kind = ARG_STR, .str = value->text};
  else
    return wrong_kind(r, index, arg);
  return STATUS_OK;
}

/* --- lists --- */

static Status read_tensor_list(MethodReader *r, const PteValue *list, ArgIn *out) {
  ValueId *items = ARENA_ARRAY(r->scratch, ValueId, list->count);
  for (uint32_t i = 0; i < list->count; i++) {
    int32_t item = list->indices[i];
    if (item >= 0 && r->m->values[item].kind != PTE_NULL)
      TRY(read_tensor(r, (uint32_t)item, &items[i]));
  }
  *out = A_VALS(items, list->count);
  return STATUS_OK;
}

/* Items that are written while running stand for the expression that they are equal to. */
static Status read_int_list(MethodReader *r, const PteValue *list, ArgIn *out) {
  SymInt *items = ARENA_ARRAY(r->scratch, SymInt, list->count);
  for (uint32_t i = 0; i < list->count; i++) {
    uint32_t index = (uint32_t)list->indices[i];
    ValueId v = r->current[index];
    const Type *t = value_type(r->g, v);
    if (v && (t->kind != TYPE_INT || t->rank != 1))
      return read_error(r, DIAG_PTE_UNSUPPORTED, "a size that depends on the contents of a tensor");
    if (v)
      items[i] = t->dims[0];
    else
      TRY(read_number(r, r->m->values[index].i, &items[i]));
  }
  *out = A_INTS(items, list->count);
  return STATUS_OK;
}

static Status read_list(MethodReader *r, uint32_t index, const SchemaArg *arg, ArgIn *out) {
  const PteValue *value = &r->m->values[index];
  if (arg->type == ST_TENSOR &&
      value->kind == (arg->element_optional ? PTE_OPTIONAL_TENSOR_LIST : PTE_TENSOR_LIST))
    return read_tensor_list(r, value, out);
  if (arg->type == ST_INT && value->kind == PTE_INT_LIST)
    return read_int_list(r, value, out);
  if (arg->type == ST_FLOAT && value->kind == PTE_DOUBLE_LIST) {
    *out = A_FLOATS(value->floats, value->count);
    return STATUS_OK;
  }
  return wrong_kind(r, index, arg);
}

Status read_arg(MethodReader *r, uint32_t index, const SchemaArg *arg, ArgIn *out) {
  *out = A_NONE;
  TRY(check_written(r, index));
  if (r->m->values[index].kind == PTE_NULL)
    return arg->optional ? STATUS_OK : wrong_kind(r, index, arg);
  if (arg->list)
    return read_list(r, index, arg, out);
  if (arg->type == ST_TENSOR) {
    ValueId v;
    TRY(read_tensor(r, index, &v));
    *out = A_VAL(v);
    return STATUS_OK;
  }
  bool slot = r->current[index] != 0 && r->m->values[index].kind != PTE_TENSOR;
  return slot ? read_slot(r, index, arg, out) : read_literal(r, index, arg, out);
}

/* See value_writer.h. Which EValue an argument type wants: pte-format facts of ExecuTorch 1.4.1,
 * runtime/executor/method.cpp and the boxed kernels; the wrong kind aborts the process that runs
 * the program. */
#include "pte/value_writer.h"
#include "support/number.h"

void value_writer_init(ValueWriter *w, FlatBuilder *b, ConstantPool *pool, ConstantPool *initial,
                       Graph *g, Arena *scratch) {
  uint64_t seed = g->ctx->names.seed;
  *w = (ValueWriter){.b = b,
                     .pool = pool,
                     .initial = initial,
                     .g = g,
                     .scratch = scratch,
                     .known = keymap_make(scratch, seed),
                     .expressions = keymap_make(scratch, seed)};
  w->index = ARENA_ARRAY(scratch, int32_t, g->value_count);
  w->data_index = ARENA_ARRAY(scratch, uint32_t, g->value_count);
  w->external_item = ARENA_ARRAY(scratch, uint32_t, g->value_count);
  w->external_name = ARENA_ARRAY(scratch, NameId, g->value_count);
  w->same = ARENA_ARRAY(scratch, ValueId, g->value_count);
  w->sizes = ARENA_ARRAY(scratch, FbRef, g->type_count);
  w->names = ARENA_ARRAY(scratch, NameId, g->value_count);
  for (uint32_t i = 0; i < graph_output_count(g); i++)
    w->names[graph_output(g, i)] = graph_output_name(g, i);
  for (uint32_t i = 0; i < g->input_count; i++)
    w->names[g->inputs[i]] = g->values[g->inputs[i]].name;
  for (uint32_t i = 0; i < g->state_count; i++)
    w->names[g->states[i].value] = g->values[g->states[i].value].name;
}

void value_writer_release(ValueWriter *w) { xfree(w->values); }

/* Ends the EValue of a finished union member. */
static int32_t add(ValueWriter *w, PteKind kind, FbRef member) {
  fb_table_begin(w->b);
  fb_field_union(w->b, EVALUE_TYPE, (uint8_t)kind, member);
  FbRef ref = fb_table_end(w->b);
  w->values = pool_reserve(w->values, &w->capacity, (uint64_t)w->count + 1, sizeof *w->values);
  w->values[w->count] = ref;
  return (int32_t)w->count++;
}

static void too_large(ValueWriter *w, ValueId v, const char *what, int64_t size) {
  NodeId n = value_def(w->g, v);
  DiagPlace place = n ? node_place(w->g, n) : DIAG_NOWHERE;
  StrView name = intern_get(&w->g->ctx->names, w->g->values[v].name);
  Status status = diag_report(w->g->ctx->sink, DIAG_TOO_LARGE, place,
                              "value '" SV_FMT "' has %s %lld, and the format has 32 bits for it",
                              SV_ARG(name), what, (long long)size);
  if (w->status == STATUS_OK)
    w->status = status;
}

/* --- tensors --- */

static FbRef write_sizes(ValueWriter *w, ValueId v) {
  TypeId id = w->g->values[v].type;
  if (w->sizes[id])
    return w->sizes[id];
  const Type *t = type_get(w->g, id);
  int32_t sizes[MAX_RANK];
  for (uint32_t i = 0; i < t->rank; i++) {
    int64_t size = sym_upper(&w->g->syms, t->dims[i]);
    if (size < 0 || size > INT32_MAX)
      too_large(w, v, "a dimension of", size);
    sizes[i] = (int32_t)size;
  }
  return w->sizes[id] = fb_vector_i32(w->b, sizes, t->rank);
}

/* Outermost first: 0 1 2 3, or 0 2 3 1. */
static FbRef write_dim_order(ValueWriter *w, const Type *t) {
  FbRef *known = &w->dim_orders[t->order][t->rank];
  if (*known)
    return *known;
  uint8_t order[MAX_RANK];
  for (uint32_t i = 0; i < t->rank; i++)
    order[i] = (uint8_t)i;
  if (t->order == ORDER_CHANNELS_LAST && t->rank >= 3) {
    memmove(order + 1, order + 2, t->rank - 2);
    order[t->rank - 1] = 1;
  }
  return *known = fb_vector_bytes(w->b, order, t->rank, 1);
}

static FbRef write_allocation(ValueWriter *w, uint32_t storage) {
  if (!storage)
    return 0;
  const Storage *s = &w->g->storages[storage];
  fb_table_begin(w->b);
  fb_field_u32(w->b, ALLOCATION_MEMORY_ID, s->arena, 0);
  fb_field_u32(w->b, ALLOCATION_OFFSET_LOW, (uint32_t)s->offset, 0);
  fb_field_u32(w->b, ALLOCATION_OFFSET_HIGH, (uint32_t)(s->offset >> 32), 0);
  return fb_table_end(w->b);
}

/* A constant in another file, found by its name. */
static FbRef write_external(ValueWriter *w, ValueId v) {
  NameId key = ptd_writer_add(w->external, w->external_item[v] - 1, value_type(w->g, v),
                              w->external_name[v]);
  FbRef name = fb_string(w->b, intern_get(&w->g->ctx->names, key));
  fb_table_begin(w->b);
  fb_field_ref(w->b, EXTRA_NAME, name);
  fb_field_u8(w->b, EXTRA_LOCATION, PTE_EXTERNAL, 0);
  return fb_table_end(w->b);
}

/* Inputs, outputs and states keep their names: the runtime shows them in get_attribute and does
 * nothing else with them. */
static FbRef write_name(ValueWriter *w, ValueId v) {
  if (w->external_item[v])
    return write_external(w, v);
  if (!w->names[v])
    return 0;
  FbRef name = fb_string(w->b, intern_get(&w->g->ctx->names, w->names[v]));
  fb_table_begin(w->b);
  fb_field_ref(w->b, EXTRA_NAME, name);
  return fb_table_end(w->b);
}

/* What a state holds before the first call, zeros too: hosts need not clear the memory. */
static uint32_t initial_data(ValueWriter *w, ValueId v) {
  const State *s = &w->g->states[w->g->values[v].def];
  uint64_t size = type_bytes_upper(w->g, value_type(w->g, v));
  if (size == 0)
    return 0;
  return s->initial ? constant_pool_add(w->initial, w->g->constants[s->initial])
                    : constant_pool_zeros(w->initial, size);
}

static int32_t write_tensor(ValueWriter *w, ValueId v) {
  const Type *t = value_type(w->g, v);
  bool is_state = w->g->values[v].kind == VALUE_STATE;
  uint32_t data = is_state ? initial_data(w, v) : w->data_index[v];
  FbRef sizes = write_sizes(w, v), order = write_dim_order(w, t);
  bool constant = (data && !is_state) || w->external_item[v];
  FbRef allocation = constant ? 0 : write_allocation(w, w->g->values[v].storage);
  FbRef name = write_name(w, v);
  fb_table_begin(w->b);
  fb_field_u8(w->b, TENSOR_SCALAR_TYPE, t->dtype, 0);
  fb_field_ref(w->b, TENSOR_SIZES, sizes);
  fb_field_ref(w->b, TENSOR_DIM_ORDER, order);
  fb_field_u32(w->b, TENSOR_DATA_BUFFER_IDX, data, 0);
  fb_field_ref(w->b, TENSOR_ALLOCATION_INFO, allocation);
  fb_field_u8(w->b, TENSOR_SHAPE_DYNAMISM, type_is_static(t) ? PTE_STATIC : PTE_DYNAMIC_BOUND,
              PTE_STATIC);
  fb_field_ref(w->b, TENSOR_EXTRA_INFO, name);
  return add(w, PTE_TENSOR, fb_table_end(w->b));
}

/* --- scalars --- */

static int32_t write_number(ValueWriter *w, PteKind kind, uint64_t bits) {
  fb_table_begin(w->b);
  if (kind == PTE_BOOL)
    fb_field_u8(w->b, SCALAR_VALUE, bits != 0, 0);
  else if (kind != PTE_NULL)
    fb_field_u64(w->b, SCALAR_VALUE, bits, 0); /* the default 0 and 0.0 have the same bits */
  return add(w, kind, fb_table_end(w->b));
}

/* A key of KeyMap: the kind, then the payload. */
static uint32_t *find_known(ValueWriter *w, PteKind kind, const void *payload, uint32_t size) {
  uint8_t small[64];
  uint8_t *key = size < sizeof small ? small : arena_alloc(w->scratch, (size_t)size + 1);
  key[0] = (uint8_t)kind;
  if (size)
    memcpy(key + 1, payload, size);
  uint32_t *slot;
  keymap_get(&w->known, key, size + 1, &slot);
  return slot;
}

static int32_t known_number(ValueWriter *w, PteKind kind, uint64_t bits) {
  uint32_t *slot = find_known(w, kind, &bits, sizeof bits);
  if (!*slot)
    *slot = (uint32_t)write_number(w, kind, bits) + 1;
  return (int32_t)*slot - 1;
}

static int32_t known_null(ValueWriter *w) { return known_number(w, PTE_NULL, 0); }

static int32_t known_double(ValueWriter *w, double value) {
  return known_number(w, PTE_DOUBLE, double_bits(value));
}

static int32_t write_string(ValueWriter *w, StrView text) {
  if (text.size >= UINT32_MAX)
    BUG("a string argument of %zu bytes", text.size);
  uint32_t *slot = find_known(w, PTE_STRING, text.data, (uint32_t)text.size);
  if (!*slot) {
    FbRef chars = fb_string(w->b, text);
    fb_table_begin(w->b);
    fb_field_ref(w->b, SCALAR_VALUE, chars);
    *slot = (uint32_t)add(w, PTE_STRING, fb_table_end(w->b)) + 1;
  }
  return (int32_t)*slot - 1;
}

/* --- values of the graph --- */

static int32_t write_scalar_slot(ValueWriter *w, ValueId v) {
  const Type *t = value_type(w->g, v);
  PteKind kind = t->kind == TYPE_INT ? PTE_INT : t->kind == TYPE_FLOAT ? PTE_DOUBLE : PTE_BOOL;
  int32_t index = write_number(w, kind, 0);
  if (t->kind == TYPE_INT && t->rank == 1 && !sym_is_const(t->dims[0])) {
    uint32_t *slot;
    if (!keymap_get(&w->expressions, &t->dims[0], sizeof t->dims[0], &slot))
      *slot = (uint32_t)index + 1;
  }
  return index;
}

int32_t write_slot(ValueWriter *w, PteKind kind) { return write_number(w, kind, 0); }

int32_t write_bool(ValueWriter *w, bool value) { return known_number(w, PTE_BOOL, value); }

int32_t write_int(ValueWriter *w, SymInt value) {
  if (sym_is_const(value))
    return known_number(w, PTE_INT, (uint64_t)value);
  uint32_t *slot;
  uint32_t found = keymap_get(&w->expressions, &value, sizeof value, &slot);
  if (!found) {
    StrBuf text = {0};
    sym_print(&w->g->syms, value, &text);
    BUG("no value computes '%s' before it is used", strbuf_cstr(&text));
  }
  return (int32_t)found - 1;
}

void write_same(ValueWriter *w, ValueId v, ValueId as) {
  while (w->same[as])
    as = w->same[as];
  if (v == as)
    return;
  w->same[v] = as;
  if (w->names[v])
    w->names[as] = w->names[v];
}

void write_check_names(ValueWriter *w) {
  const Intern *names = &w->g->ctx->names;
  for (uint32_t i = 0; i < graph_output_count(w->g); i++) {
    ValueId v = graph_output(w->g, i);
    while (w->same[v])
      v = w->same[v];
    NameId name = graph_output_name(w->g, i);
    if (w->names[v] != name)
      (void)diag_report(w->g->ctx->sink, DIAG_OUTPUT_NAME, DIAG_NOWHERE,
                        "output '" SV_FMT "' is the same tensor as '" SV_FMT
                        "', which is its name in the program",
                        SV_ARG(intern_get(names, name)), SV_ARG(intern_get(names, w->names[v])));
  }
}

/* Empty ones stay in the program: there is nothing to find. */
static void add_constant(ValueWriter *w, ValueId v) {
  const Constant *bytes = value_lazy_constant(w->g, v);
  if (!w->external || !bytes->size || value_type(w->g, v)->order != ORDER_CONTIGUOUS) {
    w->data_index[v] = constant_pool_add(w->pool, *bytes);
    return;
  }
  w->external_item[v] = constant_pool_add(&w->external->pool, *bytes) + 1;
  w->external_name[v] = w->g->values[v].name;
}

int32_t write_value(ValueWriter *w, ValueId v) {
  while (w->same[v])
    v = w->same[v];
  if (w->index[v])
    return w->index[v] - 1;
  int32_t index;
  if (value_is_const(w->g, v))
    add_constant(w, v);
  switch ((TypeKind)value_type(w->g, v)->kind) {
  case TYPE_TENSOR:
    index = write_tensor(w, v);
    break;
  case TYPE_NONE:
    index = known_null(w);
    break;
  default:
    index = write_scalar_slot(w, v);
    break;
  }
  w->index[v] = index + 1;
  return index;
}

void write_alias(ValueWriter *w, ValueId v, ValueId same) {
  w->index[v] = write_value(w, same) + 1;
}

bool writes_constant(const ValueWriter *w, ValueId v) {
  return value_is_const(w->g, v) || w->data_index[v] || w->external_item[v];
}

void write_constant_view(ValueWriter *w, ValueId v, ValueId constant) {
  write_value(w, constant);
  w->data_index[v] = w->data_index[constant];
  w->external_item[v] = w->external_item[constant];
  w->external_name[v] = w->external_name[constant];
  write_value(w, v);
}

/* --- lists --- */

/* A list of value indices, by its kind: IntList has items of 64 bits, the tensor lists of 32. */
static int32_t known_index_list(ValueWriter *w, PteKind kind, const int32_t *items,
                                uint32_t count) {
  uint32_t *slot = find_known(w, kind, items, count * 4);
  if (*slot)
    return (int32_t)*slot - 1;
  FbRef vector;
  if (kind == PTE_INT_LIST) {
    int64_t *wide = ARENA_ARRAY(w->scratch, int64_t, count);
    for (uint32_t i = 0; i < count; i++)
      wide[i] = items[i];
    vector = fb_vector_i64(w->b, wide, count);
  } else {
    vector = fb_vector_i32(w->b, items, count);
  }
  fb_table_begin(w->b);
  fb_field_ref(w->b, SCALAR_VALUE, vector);
  *slot = (uint32_t)add(w, kind, fb_table_end(w->b)) + 1;
  return (int32_t)*slot - 1;
}

/* A list of numbers and expressions, or of values that hold sizes while running. */
static int32_t write_int_list(ValueWriter *w, NodeId n, uint32_t i) {
  uint32_t count = node_list_count(w->g, n, i);
  bool values = node_arg(w->g, n, i)->kind == ARG_VALUES;
  int32_t *items = ARENA_ARRAY(w->scratch, int32_t, count);
  for (uint32_t k = 0; k < count; k++)
    items[k] = values ? write_value(w, node_list_value(w->g, n, i, k))
                      : write_int(w, node_ints(w->g, n, i)[k]);
  return known_index_list(w, PTE_INT_LIST, items, count);
}

static int32_t write_float_list(ValueWriter *w, NodeId n, uint32_t i) {
  const Arg *a = node_arg(w->g, n, i);
  const double *items = w->g->floats + a->at;
  uint32_t *slot = find_known(w, PTE_DOUBLE_LIST, items, a->count * (uint32_t)sizeof *items);
  if (!*slot) {
    FbRef vector = fb_vector_f64(w->b, items, a->count);
    fb_table_begin(w->b);
    fb_field_ref(w->b, SCALAR_VALUE, vector);
    *slot = (uint32_t)add(w, PTE_DOUBLE_LIST, fb_table_end(w->b)) + 1;
  }
  return (int32_t)*slot - 1;
}

int32_t write_tensor_list(ValueWriter *w, const ValueId *items, uint32_t count) {
  int32_t *indices = ARENA_ARRAY(w->scratch, int32_t, count);
  for (uint32_t k = 0; k < count; k++)
    indices[k] = write_value(w, items[k]);
  return known_index_list(w, PTE_TENSOR_LIST, indices, count);
}

/* Members are written before the list, as the runtime's loader wants it. */
static int32_t write_value_list(ValueWriter *w, NodeId n, uint32_t i, bool optional) {
  uint32_t count = node_list_count(w->g, n, i);
  int32_t *indices = ARENA_ARRAY(w->scratch, int32_t, count);
  for (uint32_t k = 0; k < count; k++) {
    ValueId v = node_list_value(w->g, n, i, k);
    indices[k] = v ? write_value(w, v) : -1;
  }
  return known_index_list(w, optional ? PTE_OPTIONAL_TENSOR_LIST : PTE_TENSOR_LIST, indices, count);
}

/* --- arguments --- */

static int32_t write_list_arg(ValueWriter *w, NodeId n, uint32_t i, const SchemaArg *arg) {
  switch (arg->type) {
  case ST_TENSOR:
    return write_value_list(w, n, i, arg->element_optional);
  case ST_INT:
    return write_int_list(w, n, i);
  case ST_FLOAT:
    return write_float_list(w, n, i);
  default:
    BUG("argument '" SV_FMT "' is a list of a type without EValue", SV_ARG(arg->name));
  }
}

int32_t write_arg(ValueWriter *w, NodeId n, uint32_t i, const SchemaArg *arg) {
  const Arg *a = node_arg(w->g, n, i);
  if (a->kind == ARG_NONE)
    return known_null(w);
  if (a->kind == ARG_VALUE)
    return write_value(w, node_value(w->g, n, i));
  if (arg->list)
    return write_list_arg(w, n, i, arg);
  switch (arg->type) {
  case ST_FLOAT: /* an Int here would abort the runtime, even for an integer */
    return known_double(w, node_scalar(w->g, n, i));
  case ST_BOOL:
    return known_number(w, PTE_BOOL, node_bool(w->g, n, i));
  case ST_SCALAR:
    if (a->kind == ARG_FLOAT)
      return known_double(w, a->f);
    if (a->kind == ARG_BOOL)
      return known_number(w, PTE_BOOL, a->i != 0);
    return write_int(w, a->i);
  case ST_INT:
    return write_int(w, node_int(w->g, n, i));
  case ST_DTYPE:
  case ST_LAYOUT:
  case ST_DEVICE:
  case ST_MEMORY_FORMAT:
    return known_number(w, PTE_INT, (uint64_t)a->i);
  case ST_STR:
    return write_string(w, node_str(w->g, n, i));
  default:
    BUG("argument '" SV_FMT "' has a type without EValue", SV_ARG(arg->name));
  }
}

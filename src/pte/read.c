/* See read.h. Kernel calls to nodes. */
#include "pte/read.h"

#include "ir/builder.h"
#include "ir/text.h"
#include "pte/call.h"
#include "pte/read_internal.h"

Status read_error(const MethodReader *r, DiagCode code, const char *format, ...) {
  const char *before = arena_printf(
      r->scratch, "method '" SV_FMT "', instruction %u: ", SV_ARG(r->m->name), r->instruction);
  va_list args;
  va_start(args, format);
  Status status = diag_vreport(r->p->sink, code, pte_place(r->p), before, format, args);
  va_end(args);
  return status;
}

/* --- what cannot be read, all of it at once --- */

static Status unknown_operators(const MethodReader *r) {
  uint32_t *calls = ARENA_ARRAY(r->scratch, uint32_t, r->m->operator_count);
  for (uint32_t i = 0; i < r->m->instruction_count; i++)
    if (r->m->instructions[i].kind == PTE_KERNEL_CALL)
      calls[r->m->instructions[i].index]++;
  Status status = STATUS_OK;
  for (uint32_t i = 0; i < r->m->operator_count; i++)
    if (calls[i] && op_find_out(r->m->operators[i]) == OP_NONE)
      status = diag_report(r->p->sink, DIAG_PTE_UNKNOWN_OP, pte_place(r->p),
                           "operator '" SV_FMT "' is not known (method '" SV_FMT "', %u call%s)",
                           SV_ARG(r->m->operators[i]), SV_ARG(r->m->name), calls[i],
                           calls[i] == 1 ? "" : "s");
  return status;
}

static Status unsupported_instructions(const MethodReader *r) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < r->m->instruction_count; i++)
    count += r->m->instructions[i].kind == PTE_FREE_CALL;
  if (!count)
    return STATUS_OK;
  return diag_report(r->p->sink, DIAG_PTE_UNSUPPORTED, pte_place(r->p),
                     "method '" SV_FMT "' frees values (%u instructions)", SV_ARG(r->m->name),
                     count);
}

/* --- calls --- */

/* Whether a dim of the file's tensor agrees with what the shape rule says. A symbolic dim fits any
 * number up to its bound: the rule may know more. It may know less too, since every dim of a tensor
 * with a bound is read as a symbol, those that never change among them. */
static bool same_dim(const MethodReader *r, const PteTensor *t, SymInt file, SymInt rule) {
  if (file == rule || t->dynamism == PTE_DYNAMIC_BOUND)
    return true;
  const SymTable *syms = &r->g->syms;
  return !sym_is_const(rule) && sym_lower(syms, rule) <= file && file <= sym_upper(syms, rule);
}

static Status check_result(MethodReader *r, uint32_t index, ValueId v) {
  const PteTensor *t = r->m->values[index].tensor;
  TypeId id;
  TRY(read_type(r, t, &id));
  const Type *file = type_get(r->g, id), *rule = value_type(r->g, v);
  bool same = file->dtype == rule->dtype && file->rank == rule->rank;
  for (uint32_t i = 0; same && i < file->rank; i++)
    same = same_dim(r, t, file->dims[i], rule->dims[i]);
  if (same && t->memory_id && type_is_static(rule))
    same = type_bytes_upper(r->g, rule) <= t->bytes;
  if (same)
    return STATUS_OK;
  StrBuf text = {0};
  type_print(r->g, rule, &text);
  Status status = read_error(r, DIAG_PTE_FIELD,
                             "value %u has another type or shape than the operator's result, %s",
                             index, strbuf_cstr(&text));
  strbuf_release(&text);
  return status;
}

/* Where result v of n goes. */
static Status write_result(MethodReader *r, NodeId n, uint32_t index, ValueId v) {
  const PteValue *value = &r->m->values[index];
  bool scalar = value_type(r->g, v)->kind != TYPE_TENSOR;
  if (scalar) {
    if (value->kind != PTE_INT && value->kind != PTE_BOOL && value->kind != PTE_DOUBLE)
      return read_error(r, DIAG_PTE_FIELD, "the scalar result goes to value %u, which is none",
                        index);
    read_define(r, index, v);
    return STATUS_OK;
  }
  if (value->kind != PTE_TENSOR)
    return read_error(r, DIAG_PTE_FIELD, "the result goes to value %u, which is not a tensor",
                      index);
  if (pte_is_constant(value->tensor))
    return read_error(r, DIAG_PTE_PLAN, "the result goes to value %u, which is a constant", index);
  if (!value->tensor->memory_id && node_cget(r->g, n)->op != OP_ET_VIEW &&
      !bitset_has(&r->outputs, index))
    return read_error(r, DIAG_PTE_PLAN, "the result goes to value %u, which has no place in memory",
                      index);
  TRY(check_result(r, index, v));
  read_define(r, index, v);
  return STATUS_OK;
}

/* The value indices of the results: from the call's outs, the members of its one list, or the
 * operand written in place. */
static Status result_indices(MethodReader *r, const PteInstruction *in, OpId op,
                             const CallShape *shape, const int32_t **indices, uint32_t *count) {
  *indices = in->args + shape->arg_count;
  *count = shape->out_count;
  if (shape->in_place >= 0) {
    *indices = in->args + (shape->out_count ? shape->arg_count : (uint32_t)shape->in_place);
    *count = op_schema(op)->result_count;
  } else if (op_schema(op)->result_list) {
    const PteValue *list = &r->m->values[in->args[shape->arg_count]];
    if (list->kind != PTE_TENSOR_LIST)
      return read_error(r, DIAG_PTE_FIELD, "the results go to value %d, which is not a tensor list",
                        in->args[shape->arg_count]);
    *indices = list->indices;
    *count = list->count;
  }
  if (*count > UINT16_MAX)
    return read_error(r, DIAG_PTE_UNSUPPORTED, "%u results", *count);
  return STATUS_OK;
}

/* An argument that the out-variant does not have: the dtype, which its out says, or the operand
 * that is its out. */
static Status dropped_arg(MethodReader *r, const PteInstruction *in, const CallShape *shape,
                          uint32_t i, ArgIn *arg) {
  uint32_t index = (uint32_t)in->args[shape->arg_count];
  const PteValue *out = &r->m->values[index];
  *arg = A_NONE;
  if ((int)i == shape->in_place) {
    ValueId self = 0;
    TRY(read_memory(r, index, &self));
    *arg = A_VAL(self);
  } else if (out->kind == PTE_TENSOR && pte_dtype_known(out->tensor->dtype)) {
    *arg = A_DTYPE(out->tensor->dtype);
  }
  return STATUS_OK;
}

/* Which argument of a kernel is the size of its out, or of its last dims; -1: none. */
static int size_argument(OpId op) {
  switch ((enum Op)op) {
  case OP_RESIZE_:
  case OP_FULL:
  case OP_ARANGE:
    return 0;
  case OP_AS_STRIDED_COPY:
  case OP_ET_VIEW:
  case OP_EXPAND_COPY:
  case OP_VIEW_COPY:
  case OP_REPEAT:
  case OP_UPSAMPLE_NEAREST2D_VEC:
  case OP_UPSAMPLE_BILINEAR2D_VEC:
    return 1;
  default:
    return -1;
  }
}

/* An int is no larger than the upper bound of the dim that it gives; `times`: as often as that. */
static void bound_int(MethodReader *r, int32_t index, int32_t size, int32_t times) {
  int32_t *bound = &r->bound[index], most = times > 0 ? size / times : size;
  if (size >= 0 && most < INT32_MAX && (!*bound || most < *bound))
    *bound = most + 1;
}

/* The dim of the result that the first entry of a list of its sizes gives; -1: they do not fit. */
static int32_t first_sized(OpId op, const PteValue *sizes, const PteValue *out) {
  bool last = op == OP_UPSAMPLE_NEAREST2D_VEC || op == OP_UPSAMPLE_BILINEAR2D_VEC;
  int32_t first = (int32_t)out->tensor->rank - (int32_t)sizes->count;
  return sizes->kind == PTE_INT_LIST && (first == 0 || last) ? first : -1;
}

/* Ints that give the result of a call its size: argument `at`. */
static void bound_sizes(MethodReader *r, const PteInstruction *in, OpId op, int at) {
  CallShape shape = call_shape(op);
  if (in->count != shape.boxed_count)
    return;
  const PteValue *sizes = &r->m->values[in->args[at]], *self = &r->m->values[in->args[0]],
                 *out = &r->m->values[in->args[shape.arg_count]];
  if (out->kind != PTE_TENSOR)
    return;
  if (op == OP_ARANGE && out->tensor->rank == 1)
    bound_int(r, in->args[at], out->tensor->sizes[0], 1);
  int32_t first = first_sized(op, sizes, out);
  bool repeats = op == OP_REPEAT && self->kind == PTE_TENSOR && first == 0 &&
                 self->tensor->rank == sizes->count;
  for (uint32_t k = 0; first >= 0 && (repeats || op != OP_REPEAT) && k < sizes->count; k++)
    bound_int(r, sizes->indices[k], out->tensor->sizes[(uint32_t)first + k],
              repeats ? self->tensor->sizes[k] : 1);
}

/* How many elements topk takes: argument 1, and the last dim of its results, which it is called
 * for. */
static void bound_topk(MethodReader *r, const PteInstruction *in) {
  CallShape shape = call_shape(OP_TOPK);
  if (in->count != shape.boxed_count)
    return;
  const PteValue *out = &r->m->values[in->args[shape.arg_count]];
  if (out->kind == PTE_TENSOR && out->tensor->rank)
    bound_int(r, in->args[1], out->tensor->sizes[out->tensor->rank - 1], 1);
}

/* The last argument of a call is what it writes. */
static void find_computed(MethodReader *r) {
  r->computed = ARENA_ARRAY(r->scratch, bool, r->m->value_count);
  for (uint32_t i = 0; i < r->m->instruction_count; i++) {
    const PteInstruction *in = &r->m->instructions[i];
    if (in->kind == PTE_KERNEL_CALL && in->count)
      r->computed[in->args[in->count - 1]] = true;
  }
}

static bool is_constant_int(const MethodReader *r, uint32_t index) {
  return r->m->values[index].kind == PTE_INT && !r->computed[index];
}

enum { ANY_END = 1 << 30 };

/* The end of a slice, argument 3: as far behind its start as the result is long, or, where it may
 * be beyond the dim, anything. */
static void bound_slice(MethodReader *r, const PteInstruction *in) {
  CallShape shape = call_shape(OP_SLICE_COPY_TENSOR);
  if (in->count != shape.boxed_count)
    return;
  const PteValue *self = &r->m->values[in->args[0]], *axis = &r->m->values[in->args[1]],
                 *out = &r->m->values[in->args[shape.arg_count]];
  bool from_0 = is_constant_int(r, (uint32_t)in->args[2]) && r->m->values[in->args[2]].i == 0;
  if (!from_0 || self->kind != PTE_TENSOR || out->kind != PTE_TENSOR || axis->kind != PTE_INT ||
      axis->i < 0 || axis->i >= self->tensor->rank || axis->i >= out->tensor->rank)
    return;
  int32_t length = out->tensor->sizes[axis->i];
  bound_int(r, in->args[3], length < self->tensor->sizes[axis->i] ? length : ANY_END, 1);
}

/* The sizes of pieces: argument 1, and a dim of each result. */
static void bound_pieces(MethodReader *r, const PteInstruction *in) {
  CallShape shape = call_shape(OP_SPLIT_WITH_SIZES_COPY);
  if (in->count != shape.boxed_count)
    return;
  const PteValue *sizes = &r->m->values[in->args[1]], *axis = &r->m->values[in->args[2]],
                 *outs = &r->m->values[in->args[shape.arg_count]];
  if (sizes->kind != PTE_INT_LIST || axis->kind != PTE_INT || outs->kind != PTE_TENSOR_LIST ||
      sizes->count != outs->count)
    return;
  for (uint32_t k = 0; k < outs->count; k++) {
    const PteValue *out = &r->m->values[outs->indices[k]];
    if (out->kind == PTE_TENSOR && axis->i >= 0 && axis->i < out->tensor->rank)
      bound_int(r, sizes->indices[k], out->tensor->sizes[axis->i], 1);
  }
}

/* The largest size, with 1 added, that a call of sym_size gives; 0: it is another call. */
static int32_t measured_size(const MethodReader *r, const PteInstruction *in) {
  if (in->kind != PTE_KERNEL_CALL || in->count != 3 ||
      op_find_out(r->m->operators[in->index]) != OP_SYM_SIZE_INT)
    return 0;
  const PteValue *self = &r->m->values[in->args[0]], *dim = &r->m->values[in->args[1]];
  bool known = self->kind == PTE_TENSOR && dim->kind == PTE_INT && dim->i >= 0 &&
               dim->i < self->tensor->rank && self->tensor->sizes[dim->i] < INT32_MAX;
  return known ? self->tensor->sizes[dim->i] + 1 : 0;
}

/* Those of each int, or a constant, with 1 added; 0: neither. */
static int32_t *largest_sizes(MethodReader *r) {
  int32_t *most = ARENA_ARRAY(r->scratch, int32_t, r->m->value_count);
  for (uint32_t i = 0; i < r->m->value_count; i++)
    if (is_constant_int(r, i) && r->m->values[i].i >= 0 && r->m->values[i].i < INT32_MAX)
      most[i] = (int32_t)r->m->values[i].i + 1;
  for (uint32_t i = 0; i < r->m->instruction_count; i++) {
    const PteInstruction *in = &r->m->instructions[i];
    int32_t size = measured_size(r, in);
    if (size)
      most[in->args[2]] = size;
  }
  return most;
}

/* Memory is planned for the sum of the largest sizes: what is added to the size of a tensor is no
 * larger than the rest. Nothing is larger than a maximum of it. */
static void bound_terms(MethodReader *r) {
  const int32_t *most = largest_sizes(r);
  for (uint32_t i = r->m->instruction_count; i > 0; i--) {
    const PteInstruction *in = &r->m->instructions[i - 1];
    bool scalars = in->kind == PTE_KERNEL_CALL && in->count == 3;
    OpId op = scalars ? op_find_out(r->m->operators[in->index]) : OP_NONE;
    int32_t bound = op == OP_PRIM_ADD || op == OP_PRIM_SYM_MAX ? r->bound[in->args[2]] : 0;
    for (uint32_t k = 0; bound && k < 2; k++) {
      int32_t other = most[in->args[1 - k]];
      if (op == OP_PRIM_SYM_MAX)
        bound_int(r, in->args[k], bound - 1, 1);
      else if (other && other <= bound)
        bound_int(r, in->args[k], bound - other, 1);
    }
  }
}

/* Ints that give a tensor in memory its size: no larger than the tensor's. */
static void find_bounds(MethodReader *r) {
  r->bound = ARENA_ARRAY(r->scratch, int32_t, r->m->value_count);
  find_computed(r);
  for (uint32_t i = 0; i < r->m->instruction_count; i++) {
    const PteInstruction *in = &r->m->instructions[i];
    OpId op = in->kind == PTE_KERNEL_CALL ? op_find_out(r->m->operators[in->index]) : OP_NONE;
    int at = op == OP_NONE ? -1 : size_argument(op);
    if (at >= 0)
      bound_sizes(r, in, op, at);
    else if (op == OP_TOPK)
      bound_topk(r, in);
    else if (op == OP_SLICE_COPY_TENSOR)
      bound_slice(r, in);
    else if (op == OP_SPLIT_WITH_SIZES_COPY)
      bound_pieces(r, in);
  }
  bound_terms(r);
}

/* A number that is read from a tensor and used as a size is a symbol. */
static void expect_size(MethodReader *r, NodeId n, OpId op, int32_t result) {
  Graph *g = r->g;
  ValueId self = op == OP_LOCAL_SCALAR_DENSE ? node_value(g, n, 0) : 0;
  if (!self || !dtype_is_int(value_dtype(g, self)) || !r->bound[result])
    return;
  SymInt size = sym_symbol(&g->syms, SV(""), 0, r->bound[result] - 1, true);
  value_set_type(g, node_result(g, n, 0), graph_scalar_type(g, TYPE_INT, size, true));
}

/* A range whose length is computed from such numbers: no longer than the file's tensor. */
static void expect_length(MethodReader *r, NodeId n, OpId op, int32_t result) {
  const PteValue *out = &r->m->values[result];
  bool unknown = op == OP_ARANGE && node_arg(r->g, n, 0)->kind == ARG_VALUE &&
                 value_type(r->g, node_value(r->g, n, 0))->rank == 0;
  if (!unknown || out->kind != PTE_TENSOR || out->tensor->rank != 1 ||
      out->tensor->dynamism != PTE_DYNAMIC_BOUND || out->tensor->sizes[0] < 0 ||
      !pte_dtype_known(out->tensor->dtype))
    return;
  SymInt length = sym_symbol(&r->g->syms, SV(""), 0, out->tensor->sizes[0], true);
  value_set_type(r->g, node_result(r->g, n, 0),
                 graph_tensor_type(r->g, (DType)out->tensor->dtype, 1, &length, ORDER_CONTIGUOUS));
}

static Status read_kernel_call(MethodReader *r, const PteInstruction *in) {
  OpId op = op_find_out(r->m->operators[in->index]);
  const OpSchema *schema = op_schema(op);
  CallShape shape = call_shape(op);
  if (in->count != shape.boxed_count)
    return read_error(r, DIAG_PTE_FIELD, "'%s' is called with %u arguments, and takes %u",
                      op_row(op)->out, in->count, shape.boxed_count);
  ArgIn args[SCHEMA_MAX_ARGS];
  for (uint32_t i = 0, k = 0; i < schema->arg_count; i++) {
    if (k < shape.arg_count && shape.args[k] == i)
      TRY(read_arg(r, (uint32_t)in->args[k++], &schema->args[i], &args[i]));
    else
      TRY(dropped_arg(r, in, &shape, i, &args[i]));
  }
  const int32_t *results;
  uint32_t count;
  TRY(result_indices(r, in, op, &shape, &results, &count));
  /* The shape rule makes the results of an op with a list of them. */
  NodeId n =
      graph_add_node(r->g, 0, op, args, schema->arg_count, schema->result_list ? 0 : count, r->loc);
  if (count == 1) {
    expect_size(r, n, op, results[0]);
    expect_length(r, n, op, results[0]);
  }
  TRY(shape_run(r->g, n));
  if (node_cget(r->g, n)->result_count != count)
    return read_error(r, DIAG_PTE_FIELD, "%u results are listed, and '%s' gives %u", count,
                      op_row(op)->out, node_cget(r->g, n)->result_count);
  for (uint32_t i = 0; i < count; i++)
    TRY(write_result(r, n, (uint32_t)results[i], node_result(r->g, n, i)));
  return STATUS_OK;
}

/* The result of a branch, as torch.cond hands it on: the runtime makes a value another name of a
 * tensor. It is read as a copy; whether the tensor's place is written again is not checked. */
static Status read_move(MethodReader *r, const PteInstruction *in) {
  ValueId from;
  if (r->m->values[in->args[0]].kind != PTE_TENSOR)
    return read_error(r, DIAG_PTE_UNSUPPORTED, "value %d, which is moved, is not a tensor",
                      in->args[0]);
  TRY(read_tensor(r, (uint32_t)in->args[0], &from));
  NodeId n = graph_add_node(r->g, 0, OP_CLONE, (const ArgIn[]){A_VAL(from), A_NONE}, 2, 1, r->loc);
  TRY(shape_run(r->g, n));
  return write_result(r, n, (uint32_t)in->args[1], node_result(r->g, n, 0));
}

Status read_call(MethodReader *r, uint32_t i) {
  const PteInstruction *in = &r->m->instructions[i];
  bool delegate = in->kind == PTE_DELEGATE_CALL, move = in->kind == PTE_MOVE_CALL;
  StrView text = move       ? SV("MoveCall")
                 : delegate ? r->m->delegates[in->index].id
                            : r->m->operators[in->index];
  NameId name = intern_add(&r->g->ctx->names, text);
  r->instruction = i;
  r->loc = graph_add_loc(r->g, (Loc){.op_type = name, .index = (int32_t)i});
  if (move)
    return read_move(r, in);
  return delegate ? read_delegate_call(r, in) : read_kernel_call(r, in);
}

/* --- inputs, outputs, arenas --- */

/* A dynamic input gets a symbol for each dim whose size is not fixed; without ranges, for each but
 * those bounded by 0 or 1. */
static Status input_type(MethodReader *r, const PteTensor *t, const PteRange *ranges, TypeId *out) {
  TRY(read_type(r, t, out));
  if (t->dynamism == PTE_STATIC)
    return STATUS_OK;
  SymInt dims[MAX_RANK];
  for (uint32_t i = 0; i < t->rank; i++) {
    int64_t lo = ranges ? ranges[i].lo : t->sizes[i] <= 1 ? t->sizes[i] : 0;
    dims[i] = lo == t->sizes[i] ? lo : sym_symbol(&r->g->syms, SV(""), lo, t->sizes[i], false);
  }
  *out = graph_tensor_type(r->g, (DType)t->dtype, t->rank, dims, ORDER_CONTIGUOUS);
  return STATUS_OK;
}

/* The name in the file, or the position. */
static NameId public_name(MethodReader *r, const PteValue *value, const char *stem, uint32_t i) {
  if (value->kind == PTE_TENSOR && value->tensor->name.size)
    return intern_add(&r->g->ctx->names, value->tensor->name);
  return intern_add(&r->g->ctx->names, sv_from(arena_printf(r->scratch, "%s_%u", stem, i)));
}

static Status read_inputs(MethodReader *r) {
  for (uint32_t i = 0; i < r->m->input_count; i++) {
    uint32_t index = (uint32_t)r->m->inputs[i];
    const PteValue *value = &r->m->values[index];
    if (value->kind != PTE_TENSOR)
      return read_error(r, DIAG_PTE_UNSUPPORTED, "input %u is not a tensor", i);
    if (r->current[index] || pte_is_constant(value->tensor))
      return read_error(r, DIAG_PTE_UNSUPPORTED, "input %u is another input, or a constant", i);
    TypeId type;
    TRY(input_type(r, value->tensor, r->m->ranges ? r->m->ranges[i] : NULL, &type));
    read_define(r, index, graph_add_input(r->g, type, public_name(r, value, "input", i)));
  }
  return STATUS_OK;
}

static Status read_outputs(MethodReader *r) {
  ValueId *values = ARENA_ARRAY(r->scratch, ValueId, r->m->output_count);
  NameId *names = ARENA_ARRAY(r->scratch, NameId, r->m->output_count);
  for (uint32_t i = 0; i < r->m->output_count; i++) {
    uint32_t index = (uint32_t)r->m->outputs[i];
    names[i] = public_name(r, &r->m->values[index], "output", i);
    if (r->m->values[index].kind == PTE_TENSOR)
      TRY(read_tensor(r, index, &values[i]));
    else if (r->current[index] && !bitset_has(&r->lost, index))
      values[i] = r->current[index];
    else
      return read_error(r, DIAG_PTE_UNSUPPORTED, "output %u is a constant scalar, not a tensor", i);
  }
  graph_set_outputs(r->g, values, r->m->output_count, names);
  return STATUS_OK;
}

static Status read_graph(MethodReader *r) {
  Status status = unknown_operators(r), other = unsupported_instructions(r);
  TRY(status);
  TRY(other);
  Graph *g = r->g;
  g->arena_size_count = r->m->arena_count;
  g->arena_sizes = ARENA_ARRAY(&g->arena, uint64_t, r->m->arena_count);
  memcpy(g->arena_sizes, r->m->arena_sizes, r->m->arena_count * sizeof *g->arena_sizes);
  TRY(read_inputs(r));
  TRY(read_states(r));
  TRY(read_chain(r));
  TRY(read_outputs(r));
  g->level = LEVEL_EXECUTORCH;
  return STATUS_OK;
}

static Status read_method(Context *ctx, const PteProgram *p, const PteMethod *m, PtdFile *external,
                          ValueId *latest, uint64_t *code_budget, Graph **out) {
  Arena scratch = {0};
  MethodReader r = {.p = p,
                    .m = m,
                    .g = *out = graph_new(ctx, m->name),
                    .scratch = &scratch,
                    .external = external,
                    .latest = latest,
                    .code_budget = code_budget,
                    .places = keymap_make(&scratch, ctx->names.seed)};
  r.current = ARENA_ARRAY(&scratch, ValueId, m->value_count);
  r.base = ARENA_ARRAY(&scratch, ValueId, m->value_count);
  r.lost = bitset_make(&scratch, m->value_count);
  r.outputs = bitset_make(&scratch, m->value_count);
  for (uint32_t i = 0; i < m->output_count; i++)
    bitset_add(&r.outputs, (uint32_t)m->outputs[i]);
  find_bounds(&r);
  Status status = read_graph(&r);
  xfree(r.journal);
  arena_release(&scratch);
  return status;
}

static bool is_wanted(const Context *ctx, const PteProgram *p, const PteMethod *m) {
  StrView only = ctx->only_method;
  return !only.size || sv_eq(m->name, only) || pte_find_method(p, only) == p->method_count;
}

/* Whether none of the methods is the one that is wanted: a graph without nodes has the name of
 * each, so that a method that cannot be read does not hide the others. */
static bool reads_names(const Context *ctx, const PteProgram *p, const PteFile *out) {
  uint32_t methods = 0;
  if (!ctx->names_only || ctx->only_method.size)
    return ctx->names_only && pte_find_method(p, ctx->only_method) == p->method_count;
  for (uint32_t i = 0; i < p->method_count; i++)
    methods += !out->constants[i];
  return methods > 1;
}

static Status read_methods(Context *ctx, PtdFile *external, PteFile *out) {
  Status status = STATUS_OK;
  uint64_t code_budget = pte_code_budget(&out->program);
  out->methods = ARENA_ARRAY(&out->program.arena, Graph *, out->program.method_count);
  out->constants =
      ARENA_ARRAY(&out->program.arena, const ConstantMethod *, out->program.method_count);
  out->latest = ARENA_ARRAY(&out->program.arena, ValueId *, out->program.method_count);
  for (uint32_t i = 0; i < out->program.method_count; i++) {
    const PteMethod *m = &out->program.methods[i];
    out->latest[i] = ARENA_ARRAY(&out->program.arena, ValueId, m->value_count);
    out->constants[i] = read_constant_method(&out->program, m, &out->program.arena);
    out->method_count = i + 1;
  }
  const bool names = reads_names(ctx, &out->program, out);
  for (uint32_t i = 0; i < out->program.method_count; i++) {
    const PteMethod *m = &out->program.methods[i];
    if (out->constants[i] || !is_wanted(ctx, &out->program, m))
      continue;
    if (names) {
      out->methods[i] = graph_new(ctx, m->name);
      continue;
    }
    Status one = read_method(ctx, &out->program, m, external, out->latest[i], &code_budget,
                             &out->methods[i]);
    if (status == STATUS_OK)
      status = one;
  }
  if (status != STATUS_OK)
    pte_close(out);
  return status;
}

Status pte_read(Context *ctx, const char *path, PtdFile *data, PteFile *out) {
  *out = (PteFile){0};
  TRY(pte_program_open(&out->program, ctx->sink, path));
  return read_methods(ctx, data, out);
}

Status pte_read_bytes(Context *ctx, const char *name, const uint8_t *data, uint64_t size,
                      PtdFile *external, PteFile *out) {
  *out = (PteFile){0};
  TRY(pte_program_open_bytes(&out->program, ctx->sink, name, data, size));
  return read_methods(ctx, external, out);
}

void pte_close(PteFile *file) {
  for (uint32_t i = 0; i < file->method_count; i++)
    if (file->methods[i])
      graph_free(file->methods[i]);
  pte_program_close(&file->program);
  *file = (PteFile){.program = {.file = {.fd = -1}}};
}

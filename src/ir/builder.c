/* Building typed nodes; see builder.h. */
#include "ir/builder.h"

#include <stdarg.h>
#include <stdio.h>

#include "ir/trace.h"
#include "support/half.h"
#include "support/number.h"

/* Values of the first list or operand that are missing although the schema requires them. */
static bool operands_present(const OpSchema *schema, const ArgIn *args, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (args[i].kind == ARG_VALUE && args[i].i == 0)
      return false;
    for (uint32_t k = 0;
         args[i].kind == ARG_VALUES && !schema->args[i].element_optional && k < args[i].count; k++)
      if (!args[i].values[k])
        return false;
  }
  return true;
}

Status shape_check_sizes(Graph *g, NodeId n) {
  if (!g->syms.too_large)
    return STATUS_OK;
  g->syms.too_large = false; /* one message; what follows is judged anew */
  return shape_error(g, n, DIAG_SIZE_EXPRESSION,
                     "the sizes that follow from the operands are too long formulas");
}

/* What a tensor argument must be, where it is not; NULL: it is. */
static const char *tensors_wrong(const Graph *g, const Arg *arg, const SchemaArg *s) {
  if (arg->kind == ARG_NONE)
    return s->optional ? NULL : "given: it is required";
  if (arg->kind != (s->list ? ARG_VALUES : ARG_VALUE))
    return s->list ? "a list of tensors" : "a tensor";
  for (uint32_t k = 0; k < arg_operand_count(arg); k++) {
    ValueId v = g->uses[arg->at + k].value;
    if (v ? value_type(g, v)->kind != TYPE_TENSOR : !(s->list ? s->element_optional : s->optional))
      return s->list ? "a list of tensors without gaps" : "a tensor";
  }
  return NULL;
}

/* What a rule of a plug-in leaves out is its fault: a message, the type of a result. */
static Status infer_of_plugin(Graph *g, NodeId n) {
  OpId op = node_cget(g, n)->op;
  StrView name = op_schema(op)->full;
  (void)shape_error(g, n, DIAG_PLUGIN_FAULT,
                    "the shape rule of '" SV_FMT "' failed without a message", SV_ARG(name));
  TRY(op_row(op)->shape(g, n));
  for (uint32_t i = 0; i < node_cget(g, n)->result_count; i++)
    if (value_type(g, node_result(g, n, i))->kind != TYPE_TENSOR)
      return shape_error(g, n, DIAG_PLUGIN_FAULT,
                         "the shape rule of '" SV_FMT "' gives result %u no type", SV_ARG(name), i);
  return STATUS_OK;
}

Status shape_infer(Graph *g, NodeId n) {
  OpId op = node_cget(g, n)->op;
  const OpSchema *schema = op_schema(op);
  for (uint32_t i = 0; i < schema->arg_count; i++) {
    const SchemaArg *s = &schema->args[i];
    const char *wanted = s->type == ST_TENSOR ? tensors_wrong(g, node_arg(g, n, i), s) : NULL;
    if (wanted)
      return shape_error(g, n, DIAG_ARG_RANGE, "argument '" SV_FMT "' must be %s", SV_ARG(s->name),
                         wanted);
  }
  return op < OP_PLUGIN ? op_row(op)->shape(g, n) : infer_of_plugin(g, n);
}

ValueId build_args(Builder *b, OpId op, const ArgIn *args, uint32_t count) {
  if (b->status != STATUS_OK)
    return 0;
  if (op <= OP_OUTPUT || op >= op_count())
    BUG("a node is built of an op that is in no table (%u)", op);
  const OpSchema *schema = op_schema(op);
  if (!operands_present(schema, args, count))
    BUG(SV_FMT " built with an absent operand", SV_ARG(schema->full));
  Graph *g = b->g;
  NodeId n = graph_add_node(g, b->before, op, args, count,
                            schema->result_list ? 0 : schema->result_count, b->loc);
  b->status = shape_infer(g, n);
  if (b->status == STATUS_OK)
    b->status = shape_check_sizes(g, n);
  if (b->status != STATUS_OK) {
    if (!b->quiet)
      shape_report(g);
    graph_remove_node(g, n);
    return 0;
  }
  if (b->fold) {
    ValueId folded = b->fold(b, n);
    if (b->status != STATUS_OK)
      return 0;
    if (folded) {
      for (uint32_t i = 0; i < g->nodes[n].result_count; i++)
        TRACE(g, .kind = TRACE_REPLACED, .value = node_result(g, n, i), .to = folded + i);
      graph_remove_node(g, n);
      return folded;
    }
  }
  return node_result(g, n, 0);
}

/* --- constants --- */

ValueId build_const(Builder *b, DType dtype, uint32_t rank, const int64_t *dims, const void *data) {
  if (b->status != STATUS_OK)
    return 0;
  TypeId type = graph_tensor_type(b->g, dtype, rank, dims, ORDER_CONTIGUOUS);
  return graph_add_constant_copy(b->g, type, data, type_bytes_upper(b->g, type_get(b->g, type)));
}

ValueId build_const_ints(Builder *b, const int64_t *values, uint32_t count) {
  return build_const(b, DTYPE_I64, 1, (int64_t[]){count}, values);
}

ValueId build_scalar_int(Builder *b, DType dtype, int64_t value) {
  uint64_t bits = (uint64_t)value;
  switch (dtype_size(dtype)) {
  case 1:
    return build_const(b, dtype, 0, NULL,
                       &(uint8_t){dtype == DTYPE_BOOL ? value != 0 : (uint8_t)bits});
  case 2:
    if (dtype_is_int(dtype))
      return build_const(b, dtype, 0, NULL, &(uint16_t){(uint16_t)bits});
    break;
  case 4:
    if (dtype_is_int(dtype))
      return build_const(b, dtype, 0, NULL, &(uint32_t){(uint32_t)bits});
    break;
  default:
    if (dtype_is_int(dtype))
      return build_const(b, dtype, 0, NULL, &bits);
    break;
  }
  return build_scalar(b, dtype, (double)value);
}

ValueId build_scalar(Builder *b, DType dtype, double value) {
  switch (dtype) {
  case DTYPE_F32:
    return build_const(b, dtype, 0, NULL, &(float){(float)value});
  case DTYPE_F64:
    return build_const(b, dtype, 0, NULL, &value);
  case DTYPE_F16:
    return build_const(b, dtype, 0, NULL, &(uint16_t){half_from_double(value)});
  case DTYPE_BF16:
    return build_const(b, dtype, 0, NULL, &(uint16_t){bfloat_from_float((float)value)});
  default:
    if (!(value >= -0x1p63 && value < 0x1p63))
      return build_fail(b, DIAG_ARG_RANGE, "constant %g does not fit %s", value, dtype_name(dtype));
    return build_scalar_int(b, dtype, int_clamped(value, INT64_MIN, INT64_MAX));
  }
}

/* --- short forms --- */

ValueId build_unary(Builder *b, OpId op, ValueId x) { return build(b, op, A_VAL(x)); }

ValueId build_binary(Builder *b, OpId op, ValueId x, ValueId y) {
  return build(b, op, A_VAL(x), A_VAL(y));
}

ValueId build_on(Builder *b, NodeId n, const ArgIn *first, uint32_t count) {
  ArgIn args[SCHEMA_MAX_ARGS];
  uint32_t all = node_cget(b->g, n)->arg_count;
  memcpy(args, first, count * sizeof *args);
  for (uint32_t i = count; i < all; i++)
    args[i] = node_arg_in(b->g, n, i, &b->g->arena);
  return build_args(b, node_cget(b->g, n)->op, args, all);
}

ValueId build_again(Builder *b, NodeId n, DType dtype, ValueId operand(void *user, ValueId v),
                    void *user) {
  ArgIn args[SCHEMA_MAX_ARGS];
  Arena lists = {0};
  uint32_t count = node_cget(b->g, n)->arg_count;
  for (uint32_t i = 0; i < count; i++) {
    args[i] = node_arg_in(b->g, n, i, &lists);
    if (args[i].kind == ARG_VALUE)
      args[i].i = operand(user, (ValueId)args[i].i);
    if (args[i].kind == ARG_DTYPE && dtype != DTYPE_NONE)
      args[i].i = dtype;
    if (args[i].kind != ARG_VALUES)
      continue;
    ValueId *values = ARENA_ARRAY(&lists, ValueId, args[i].count);
    for (uint32_t k = 0; k < args[i].count; k++)
      values[k] = operand(user, args[i].values[k]);
    args[i].values = values;
  }
  ValueId first = build_args(b, node_cget(b->g, n)->op, args, count);
  arena_release(&lists);
  return first;
}

ValueId build_cast(Builder *b, ValueId x, DType to) {
  if (b->status != STATUS_OK || value_dtype(b->g, x) == to)
    return x;
  return build(b, OP_TO_COPY, A_VAL(x), A_DTYPE(to));
}

static bool has_dims(const Graph *g, ValueId x, const SymInt *dims, uint32_t rank) {
  const Type *t = value_type(g, x);
  return dims_same(t->dims, t->rank, dims, rank);
}

ValueId build_view(Builder *b, ValueId x, const SymInt *dims, uint32_t rank) {
  if (b->status != STATUS_OK || has_dims(b->g, x, dims, rank))
    return x;
  return build(b, OP_VIEW_COPY, A_VAL(x), A_INTS(dims, rank));
}

ValueId build_view_as(Builder *b, ValueId x, Dims dims) {
  return build_view(b, x, dims.d, dims.rank);
}

ValueId build_expand(Builder *b, ValueId x, const SymInt *dims, uint32_t rank) {
  if (b->status != STATUS_OK || has_dims(b->g, x, dims, rank))
    return x;
  return build(b, OP_EXPAND_COPY, A_VAL(x), A_INTS(dims, rank));
}

ValueId build_permute(Builder *b, ValueId x, const int64_t *perm) {
  if (b->status != STATUS_OK)
    return 0;
  uint32_t rank = value_rank(b->g, x);
  bool identity = true;
  for (uint32_t i = 0; i < rank; i++)
    identity &= perm[i] == i;
  return identity ? x : build(b, OP_PERMUTE_COPY, A_VAL(x), A_INTS(perm, rank));
}

ValueId build_unsqueeze(Builder *b, ValueId x, int64_t dim) {
  if (b->status != STATUS_OK)
    return 0;
  uint32_t rank = value_rank(b->g, x);
  dim = wrap_dim(dim, rank + 1);
  if (dim < 0 || dim > rank || rank + 1 > MAX_RANK)
    return build_fail(b, DIAG_AXIS_RANGE, "cannot insert dimension %lld into a tensor of rank %u",
                      (long long)dim, rank);
  SymInt dims[MAX_RANK];
  for (uint32_t i = 0, k = 0; i <= rank; i++)
    dims[i] = i == dim ? 1 : value_dim(b->g, x, k++);
  return build(b, OP_VIEW_COPY, A_VAL(x), A_INTS(dims, rank + 1));
}

ValueId build_slice(Builder *b, ValueId x, int64_t dim, SymInt start, SymInt end, int64_t step) {
  if (b->status != STATUS_OK)
    return 0;
  const Type *t = value_type(b->g, x);
  if (start == 0 && step == 1 && dim < t->rank && end == t->dims[dim])
    return x;
  return build(b, OP_SLICE_COPY_TENSOR, A_VAL(x), A_INT(dim), A_INT(start), A_INT(end),
               A_INT(step));
}

ValueId build_pad(Builder *b, ValueId x, int64_t dim, SymInt before, SymInt behind) {
  bool floats = b->status == STATUS_OK && dtype_is_float(value_dtype(b->g, x));
  return build_pad_with(b, x, dim, before, behind, floats ? A_FLOAT(0) : A_INT(0));
}

ValueId build_pad_with(Builder *b, ValueId x, int64_t dim, SymInt before, SymInt behind,
                       ArgIn value) {
  SymInt pads[2 * MAX_RANK] = {0};
  if (b->status != STATUS_OK || (before == 0 && behind == 0))
    return x;
  uint32_t rank = value_rank(b->g, x), from_last = rank - 1 - (uint32_t)wrap_dim(dim, rank);
  pads[2 * from_last] = before;
  pads[2 * from_last + 1] = behind;
  return build(b, OP_CONSTANT_PAD_ND, A_VAL(x), A_INTS(pads, 2 * from_last + 2), value);
}

void build_vfail(Builder *b, DiagCode code, const char *hint, const char *format, va_list args) {
  if (b->status != STATUS_OK)
    return;
  b->status = diag_row(code)->status;
  if (b->status == STATUS_OK)
    b->status = STATUS_INTERNAL;
  if (b->quiet)
    return;
  Diag *d = diag_begin(b->g->ctx->sink, code, graph_place(b->g, b->loc));
  diag_vmessage(d, "", format, args);
  if (hint)
    diag_hint(d, "%s", hint);
  (void)diag_end(d);
}

ValueId build_fail(Builder *b, DiagCode code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  build_vfail(b, code, NULL, format, args);
  va_end(args);
  return 0;
}

ValueId build_fail_hint(Builder *b, DiagCode code, const char *hint, const char *format, ...) {
  va_list args;
  va_start(args, format);
  build_vfail(b, code, hint, format, args);
  va_end(args);
  return 0;
}

/* --- shape rules --- */

void result_type(Graph *g, NodeId n, uint32_t i, TypeId type) {
  if (i >= g->nodes[n].result_count)
    BUG("%s has no result %u", op_row(g->nodes[n].op)->id, i);
  value_set_type(g, node_result(g, n, i), type);
}

void result_tensor(Graph *g, NodeId n, uint32_t i, DType dtype, uint32_t rank, const SymInt *dims) {
  result_type(g, n, i, graph_tensor_type(g, dtype, rank, dims, ORDER_CONTIGUOUS));
}

void result_list_size(Graph *g, NodeId n, uint32_t count) {
  if (g->nodes[n].result_count == count)
    return;
  if (g->nodes[n].result_count)
    BUG("%s already has %u results", op_row(g->nodes[n].op)->id, g->nodes[n].result_count);
  ValueId first = g->value_count;
  g->values =
      pool_reserve(g->values, &g->value_capacity, (uint64_t)first + count, sizeof *g->values);
  for (uint32_t i = 0; i < count; i++)
    g->values[first + i] = (Value){.kind = VALUE_RESULT, .def = n, .result = (uint16_t)i};
  g->value_count += count;
  g->nodes[n].first_result = first;
  g->nodes[n].result_count = (uint16_t)count;
}

static void note_operands(const Graph *g, NodeId n, Diag *d) {
  StrBuf text = {0};
  const OpSchema *schema = op_schema(g->nodes[n].op);
  strbuf_printf(&text, SV_FMT "(", SV_ARG(schema->full));
  for (uint32_t i = 0, shown = 0; i < g->nodes[n].arg_count; i++) {
    const Arg *arg = node_arg(g, n, i);
    if (arg->kind != ARG_VALUE || !g->uses[arg->at].value)
      continue;
    const Type *t = value_type(g, g->uses[arg->at].value);
    strbuf_printf(&text, "%s" SV_FMT ": %s[", shown++ ? ", " : "", SV_ARG(schema->args[i].name),
                  dtype_name((DType)t->dtype));
    for (uint32_t k = 0; k < t->rank; k++) {
      strbuf_append(&text, k ? SV(", ") : SV(""));
      sym_print(&g->syms, t->dims[k], &text);
    }
    strbuf_append_char(&text, ']');
  }
  strbuf_append_char(&text, ')');
  diag_note(d, "in %s", strbuf_cstr(&text));
  strbuf_release(&text);
}

Status shape_error(const Graph *g, NodeId n, DiagCode code, const char *format, ...) {
  ShapeFault *fault = &g->ctx->fault;
  va_list args;
  va_start(args, format);
  vsnprintf(fault->text, sizeof fault->text, format, args);
  va_end(args);
  fault->node = n;
  fault->code = code;
  Status status = diag_row(code)->status;
  return status == STATUS_OK ? STATUS_INTERNAL : status;
}

void shape_report(const Graph *g) {
  const ShapeFault *fault = &g->ctx->fault;
  Diag *d = diag_begin(g->ctx->sink, fault->code, node_place(g, fault->node));
  diag_message(d, "%s", fault->text);
  note_operands(g, fault->node, d);
  if (g->dim_flags && fault->code == DIAG_SHAPE_MISMATCH)
    diag_note(d, "the sizes are those of%s", g->dim_flags);
  else if (fault->code == DIAG_SHAPE_MISMATCH)
    diag_hint(d, "the model contradicts itself here: check its weights and the shapes of its "
                 "inputs, or export it again");
  (void)diag_end(d);
}

Status shape_run(Graph *g, NodeId n) {
  Status status = shape_infer(g, n);
  if (status != STATUS_OK)
    shape_report(g);
  return status;
}

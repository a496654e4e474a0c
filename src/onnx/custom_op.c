/* See custom_op.h. */
#include "onnx/custom_op.h"

#include "onnx/file/model.h"
#include "ops/shape_util.h"

/* All results are as the first tensor. */
static Status shape_like_first(Graph *g, NodeId n) {
  const OpSchema *s = op_schema(node_cget(g, n)->op);
  Dims dims = operand_dims(g, n, 0);
  for (uint32_t i = 0; i < s->result_count; i++)
    TRY(shape_result(g, n, i, operand_dtype(g, n, 0), &dims));
  return STATUS_OK;
}

/* --- a node --- */

static bool is_attribute(const SchemaArg *arg) { return arg->type != ST_TENSOR; }

/* Input *at, or for a list all from there on. */
static ArgIn tensor_argument(Import *im, const SchemaArg *arg, uint32_t *at) {
  if (!arg->list) {
    ValueId v = in(im, (*at)++);
    if (!v && !arg->optional)
      import_fail(im, DIAG_INPUT_COUNT, "input %u ('" SV_FMT "') is missing", *at - 1,
                  SV_ARG(arg->name));
    return A_OPT(v);
  }
  uint32_t count = in_count(im) > *at ? in_count(im) - *at : 0;
  ValueId *values = ARENA_ARRAY(&im->scratch, ValueId, (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++)
    values[i] = in_required(im, *at + i);
  *at += count;
  return A_VALS(values, count);
}

static ArgIn list_attribute(Import *im, const SchemaArg *arg, const char *name) {
  Ints ints = {NULL, 0};
  Doubles doubles = {NULL, 0};
  if (arg->type == ST_FLOAT) {
    (void)attr_doubles(im, name, &doubles);
    return A_FLOATS(doubles.at, doubles.count);
  }
  (void)attr_ints(im, name, &ints);
  return A_INTS(ints.at, ints.count);
}

static ArgIn attribute(Import *im, const SchemaArg *arg) {
  const char *name = arena_strdup(&im->scratch, arg->name);
  if (!attr_has(im, name)) {
    if (!arg->has_default && !arg->optional)
      import_fail(im, DIAG_ATTR_MISSING, "attribute '%s' is missing", name);
    return arg->has_default ? arg->default_value : A_NONE;
  }
  if (arg->list)
    return list_attribute(im, arg, name);
  switch (arg->type) {
  case ST_INT:
    return A_INT(attr_int(im, name, 0));
  case ST_BOOL:
    return A_BOOL(attr_flag(im, name, false));
  case ST_STR:
    return (ArgIn){.kind = ARG_STR, .str = attr_str(im, name, "")};
  default:
    return A_FLOAT(attr_float(im, name, 0));
  }
}

/* Nothing that the model says is left out. */
static void check_attributes(Import *im, const OpSchema *s) {
  for (size_t i = 0; i < im->node->n_attribute; i++) {
    StrView name = onnx_text(im->node->attribute[i]->name);
    bool known = false;
    for (uint32_t k = 0; k < s->arg_count; k++)
      known |= is_attribute(&s->args[k]) && sv_eq(s->args[k].name, name);
    if (!known)
      import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                  "attribute '" SV_FMT "' is no argument of the kernel '%s'", SV_ARG(name),
                  op_row(im->op)->out);
  }
}

static void translate_custom(Import *im) {
  const OpSchema *s = op_schema(im->op);
  ArgIn *args = ARENA_ARRAY(&im->scratch, ArgIn, s->arg_count);
  uint32_t input = 0;
  check_attributes(im, s);
  for (uint32_t i = 0; i < s->arg_count; i++)
    args[i] = is_attribute(&s->args[i]) ? attribute(im, &s->args[i])
                                        : tensor_argument(im, &s->args[i], &input);
  if (!import_ok(im))
    return;
  ValueId first = build_args(&im->b, im->op, args, s->arg_count);
  for (uint32_t i = 0; first && i < out_count(im) && i < s->result_count; i++)
    if (out_wanted(im, i))
      out(im, i, first + i);
}

/* --- the operator --- */

/* What a node of ONNX cannot give. */
static const char *argument_fault(const OpSchema *s, Arena *arena) {
  for (uint32_t i = 0; i < s->arg_count; i++) {
    const SchemaArg *arg = &s->args[i];
    bool given = arg->type == ST_TENSOR || arg->type == ST_INT || arg->type == ST_FLOAT ||
                 arg->type == ST_BOOL || arg->type == ST_STR;
    if (!given || (arg->list && (arg->type == ST_BOOL || arg->type == ST_STR)))
      return arena_printf(arena,
                          "argument '" SV_FMT "' is of a type that inputs and attributes do not "
                          "have: those are Tensor, int, float, bool, str, int[], float[], Tensor[]",
                          SV_ARG(arg->name));
  }
  if (s->arg_count == 0 || s->args[0].type != ST_TENSOR || s->args[0].list || s->args[0].optional)
    return "the first argument is no Tensor, from which the results have their shape";
  return NULL;
}

static void count_inputs(const OpSchema *s, OnnxOpRow *row) {
  for (uint32_t i = 0; i < s->arg_count; i++) {
    if (is_attribute(&s->args[i]))
      continue;
    row->min_inputs += !s->args[i].optional && !s->args[i].list;
    row->max_inputs = s->args[i].list || row->max_inputs < 0 ? -1 : row->max_inputs + 1;
  }
}

const char *onnx_custom_op(StrView domain, StrView op, StrView schema, Arena *arena,
                           OnnxTranslator *out) {
  OpId id = OP_NONE;
  const char *fault = op_add_kernel(arena_strdup(arena, schema), shape_like_first, arena, &id);
  if (!fault)
    fault = argument_fault(op_schema(id), arena);
  if (fault)
    return fault;
  *out = (OnnxTranslator){.row = {.domain = arena_strdup(arena, domain),
                                  .name = arena_strdup(arena, op),
                                  .since = 1,
                                  .lowering = op_row(id)->id},
                          .translate = translate_custom,
                          .op = id};
  count_inputs(op_schema(id), &out->row);
  return NULL;
}

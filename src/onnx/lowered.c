/* Operators that are computed by a program which was lowered already: --lowered DOMAIN.OP=FILE.pte.
 * The nodes of its graph, which is at LEVEL_EXECUTORCH, take the place of the operator's node;
 * calls of delegates go through all levels as they are. */
#include "ir/text.h"
#include "onnx/import_state.h"

const LoweredOp *import_lowered(const Import *im, StrView domain, StrView op) {
  for (uint32_t i = 0; i < im->options->lowered_count; i++) {
    const LoweredOp *lowered = &im->options->lowered[i];
    if (sv_eq(lowered->domain, domain) && sv_eq(lowered->op, op))
      return lowered;
  }
  return NULL;
}

/* The program's graph, and what its values are in the graph that is made. */
typedef struct Inlining {
  const LoweredOp *lowered;
  const Graph *from;
  ValueId *values; /* by value of from; 0: not there yet */
} Inlining;

/* What keeps the first node that cannot stand at LEVEL_ATEN from it, and its op; NULL when all can.
 */
static const char *obstacle(const Graph *from, OpId *op) {
  for (FOR_NODES(from, n)) {
    OpId id = *op = node_cget(from, n)->op;
    if (op_has_trait(id, OP_EFFECT | OP_CONTROL))
      return "keeps a state or jumps";
    if (!op_allowed_at(id, LEVEL_ATEN))
      return "exists in programs only";
    for (uint32_t i = 0; i < node_cget(from, n)->result_count; i++) {
      const Type *type = value_type(from, node_result(from, n, i));
      if (!type_is_static(type))
        return "has a result whose size is known at run time only";
      if (type->order != ORDER_CONTIGUOUS)
        return "has a result that is not contiguous";
    }
  }
  return NULL;
}

static TypeId copy_type(Graph *to, const Type *type) {
  return graph_tensor_type(to, (DType)type->dtype, type->rank, type->dims, (DimOrder)type->order);
}

/* Of fixed sizes. */
static bool same_type(const Type *a, const Type *b) {
  return a->dtype == b->dtype && type_is_static(a) && type_is_static(b) &&
         dims_same(a->dims, a->rank, b->dims, b->rank);
}

/* The value of the new graph; constants are made when they are first used. */
static ValueId map_value(Import *im, Inlining *n, ValueId v) {
  if (!v || n->values[v] || !value_is_const(n->from, v))
    return n->values[v];
  Constant bytes = *value_constant(n->from, v);
  TypeId type = copy_type(im->g, value_type(n->from, v));
  return n->values[v] = graph_add_constant(im->g, type, bytes, 0);
}

static ArgIn map_argument(Import *im, Inlining *n, ArgIn arg) {
  if (arg.kind == ARG_VALUE)
    arg.i = map_value(im, n, (ValueId)arg.i);
  if (arg.kind == ARG_VALUES) {
    ValueId *values = ARENA_ARRAY(&im->scratch, ValueId, (size_t)arg.count + 1);
    for (uint32_t i = 0; i < arg.count; i++)
      values[i] = map_value(im, n, arg.values[i]);
    arg.values = values;
  }
  return arg;
}

static void copy_node(Import *im, Inlining *n, NodeId node) {
  Arena *scratch = &im->scratch;
  uint32_t count = node_cget(n->from, node)->arg_count;
  ArgIn *args = ARENA_ARRAY(scratch, ArgIn, (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++)
    args[i] = map_argument(im, n, node_arg_in(n->from, node, i, scratch));
  ValueId first = build_args(&im->b, node_cget(n->from, node)->op, args, count);
  for (uint32_t i = 0; i < node_cget(n->from, node)->result_count && import_ok(im); i++) {
    ValueId result = node_result(n->from, node, i);
    n->values[result] = first + i;
    if (!same_type(value_type(n->from, result), vt(im, first + i)))
      import_fail(im, DIAG_LOWERED_MISMATCH,
                  "result %u of '%s' has another type than in the program", i, n->lowered->path);
  }
}

static void refuse_input(Import *im, Inlining *n, uint32_t i, const Type *want, ValueId have) {
  StrBuf wanted = {0}, had = {0};
  type_print(n->from, want, &wanted);
  type_print(im->g, vt(im, have), &had);
  import_fail(im, DIAG_LOWERED_MISMATCH, "input %u is %s, '%s' takes %s", i, strbuf_cstr(&had),
              n->lowered->path, strbuf_cstr(&wanted));
  strbuf_release(&wanted);
  strbuf_release(&had);
}

static void bind_inputs(Import *im, Inlining *n) {
  for (uint32_t i = 0; i < n->from->input_count && import_ok(im); i++) {
    ValueId given = in_required(im, i), input = n->from->inputs[i];
    if (!import_ok(im))
      return;
    const Type *want = value_type(n->from, input);
    if (!same_type(want, vt(im, given)))
      refuse_input(im, n, i, want, given);
    n->values[input] = given;
  }
}

void import_lowered_call(Import *im, const LoweredOp *lowered) {
  const Graph *from = lowered->graph;
  *lowered->used = true;
  if (in_count(im) != from->input_count || out_count(im) > graph_output_count(from)) {
    import_fail(im, DIAG_LOWERED_MISMATCH,
                "the node has %u input%s and %u output%s, '%s' has %u and %u", in_count(im),
                in_count(im) == 1 ? "" : "s", out_count(im), out_count(im) == 1 ? "" : "s",
                lowered->path, from->input_count, graph_output_count(from));
    return;
  }
  OpId op = OP_NONE;
  const char *why = from->state_count ? "keeps a state" : obstacle(from, &op);
  if (why) {
    StrView name = op == OP_NONE ? SV("method") : op_schema(op)->name;
    import_fail(im, DIAG_LOWERED_MISMATCH,
                "'%s' cannot be a part of another program: its " SV_FMT " %s", lowered->path,
                SV_ARG(name), why);
    return;
  }
  Inlining n = {lowered, from, ARENA_ARRAY(&im->scratch, ValueId, from->value_count)};
  bind_inputs(im, &n);
  for (FOR_NODES(from, node))
    if (import_ok(im))
      copy_node(im, &n, node);
  for (uint32_t i = 0; i < out_count(im) && import_ok(im); i++)
    if (out_wanted(im, i))
      out(im, i, map_value(im, &n, graph_output(from, i)));
}

/* See sizes.h. */
#include "onnx/sizes.h"

#include "ir/solve.h"
#include "onnx/express.h"
#include "onnx/import_state.h"

static bool holds_sizes(DType dtype) { return dtype == DTYPE_I64 || dtype == DTYPE_I32; }

bool sizes_possible(const Onnx__GraphProto *graph) {
  for (size_t i = 0; i < graph->n_input; i++) {
    const Onnx__TypeProto *type = graph->input[i]->type;
    if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
      continue;
    const Onnx__TypeProto__Tensor *t = type->tensor_type;
    if (t->shape && t->shape->n_dim <= 1 && holds_sizes(dtype_from_onnx(t->elem_type)))
      return true;
  }
  return false;
}

void sizes_input(Import *im, ValueId input) {
  Sizes *s = im->state->sizes;
  const Type *t = vt(im, input);
  if (!s || s->stage == SIZES_NOTED || t->rank > 1 || !holds_sizes((DType)t->dtype) ||
      (t->rank && !sym_is_const(t->dims[0])))
    return;
  int64_t count = t->rank ? t->dims[0] : 1;
  if (count > SIZES_ELEMENTS - s->count)
    return;
  StrView name = value_name(im->g, input);
  SymInt contents[SIZES_ELEMENTS];
  for (uint32_t i = 0; i < count; i++) {
    SizeElement *e = &s->elements[s->count++];
    StrView spelled = sv_from(arena_printf(&im->state->arena, SV_FMT "[%u]", SV_ARG(name), i));
    *e = (SizeElement){.input = input, .index = i, .value = e->value};
    if (!e->value)
      e->symbol = sym_symbol(&im->g->syms, spelled, s->least, SIZES_GREATEST, false);
    contents[i] = e->value ? e->value : e->symbol;
  }
  fold_set_contents(&im->state->fold, input, contents, (uint32_t)count);
}

static Status solve(Import *im) {
  Graph *g = im->g;
  Sizes *s = im->state->sizes;
  Dims declared;
  Solution solution;
  for (uint32_t i = 0; i < graph_output_count(g); i++) {
    ValueId v = graph_output(g, i);
    if (!import_declared_dims(im, graph_output_name(g, i), &declared) ||
        declared.rank != value_rank(g, v))
      continue;
    for (uint32_t k = 0; k < declared.rank; k++)
      if (value_dim(g, v, k) != declared.d[k])
        graph_add_constraint(g, (Constraint){CONSTRAINT_EQ, value_dim(g, v, k), declared.d[k], 0});
  }
  TRY(graph_solve(g, &im->state->arena, &solution));
  for (uint32_t i = 0; i < s->count; i++) {
    const SymSizes *z = &solution.sizes[sym_expr(&g->syms, s->elements[i].symbol)->index];
    s->elements[i].value = z->lo == z->hi ? z->lo : 0;
    s->solved |= z->lo == z->hi;
  }
  return STATUS_OK;
}

/* --- with the solution --- */

static bool names_element(const Import *im, SymInt v) {
  if (sym_is_const(v))
    return false;
  const SymExpr *e = sym_expr(&im->g->syms, v);
  const Sizes *s = im->state->sizes;
  bool named = false;
  for (uint32_t i = 0; i < s->count; i++)
    named |= e->kind == SYM_SYMBOL && !s->elements[i].value && s->elements[i].symbol == v;
  for (uint32_t i = 0; i < e->count && !named; i++)
    named = names_element(im, e->terms[i]);
  return named;
}

static bool any_names_element(const Import *im, const SymInt *list, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (names_element(im, list[i]))
      return true;
  return false;
}

static bool node_names_element(const Import *im, NodeId n) {
  const Graph *g = im->g;
  const Node *node = node_cget(g, n);
  for (uint32_t i = 0; i < node->arg_count; i++) {
    const Arg *a = node_arg(g, n, i);
    if ((a->kind == ARG_INT && names_element(im, a->i)) ||
        (a->kind == ARG_INTS && any_names_element(im, node_ints(g, n, i), a->count)))
      return true;
  }
  for (uint32_t i = 0; i < node->result_count; i++) {
    const Type *t = value_type(g, node_result(g, n, i));
    if (any_names_element(im, t->dims, t->rank))
      return true;
  }
  return false;
}

/* Whether nothing that is left depends on an element without a solution; dead nodes go. */
static bool is_settled(Import *im) {
  Graph *g = im->g;
  for (NodeId n = g->last, prev; n; n = prev) {
    prev = node_cget(g, n)->prev;
    if (!op_has_trait(node_cget(g, n)->op, OP_EFFECT) && node_unused(g, n, 0))
      graph_remove_node(g, n);
    else if (node_names_element(im, n))
      return false;
  }
  for (uint32_t i = 0; i < g->constraint_count; i++)
    if (names_element(im, g->constraints[i].lhs) || names_element(im, g->constraints[i].rhs))
      return false;
  return true;
}

/* 1 when an input holds anything else than the solution, else 0: i64 [1]. */
static ValueId deviation(Import *im) {
  const Sizes *s = im->state->sizes;
  ValueId differs = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    const SizeElement *e = &s->elements[i];
    if (!e->value)
      continue;
    ValueId held = ex_rank(im, e->input) ? ex_element(im, e->input, e->index) : e->input;
    ValueId other = ex_with(im, OP_NE_TENSOR, held, (double)e->value);
    differs = differs ? ex_or(im, differs, other) : other;
  }
  return EX_VIEW(im, ex_cast(im, differs, DTYPE_I64), 1);
}

/* Output 0 as the only row of a table, looked up by the deviation: at 1 the kernel fails. */
static Status compare(Import *im) {
  Graph *g = im->g;
  uint32_t count = graph_output_count(g);
  ValueId *values = ARENA_ARRAY(&im->state->arena, ValueId, count);
  NameId *names = ARENA_ARRAY(&im->state->arena, NameId, count);
  for (uint32_t i = 0; i < count; i++) {
    values[i] = graph_output(g, i);
    names[i] = graph_output_name(g, i);
  }
  Dims s = shape_of(im, values[0]), row = {.rank = s.rank + 1, .d = {1}};
  if (row.rank > MAX_RANK)
    return STATUS_UNSUPPORTED;
  memcpy(row.d + 1, s.d, s.rank * sizeof *s.d);
  im->b.fold = NULL; /* it would take the elements for known */
  ValueId at = deviation(im), y = ex_index_select(im, ex_view_as(im, values[0], row), 0, at);
  values[0] = ex_view_as(im, y, s);
  TRY(im->b.status);
  graph_set_outputs(g, values, count, names);
  return STATUS_OK;
}

Status sizes_finish(Import *im) {
  const Sizes *s = im->state->sizes;
  if (!s || s->stage == SIZES_NOTED)
    return STATUS_OK;
  if (s->stage == SIZES_SYMBOLIC)
    return solve(im);
  return is_settled(im) ? compare(im) : STATUS_UNSUPPORTED;
}

/* If, and what If, Loop and Scan share. A condition known when lowering takes one branch; one that
 * is not becomes control flow: both branches are translated in place, between markers
 * (ir/region.h). */
#include "ir/region.h"
#include "onnx/control.h"

bool control_known_bool(Import *im, ValueId v, bool *value) {
  const SymInt *values;
  uint32_t count;
  if (!v || !value_ints(im, v, &values, &count) || count != 1 || !sym_is_const(values[0]))
    return false;
  *value = values[0] != 0;
  return true;
}

ValueId control_condition(Import *im, ValueId v) {
  if (import_ok(im) && value_dtype(im->g, v) != DTYPE_BOOL)
    return import_fail(im, DIAG_INPUT_TYPE, "the condition is %s, not bool",
                       dtype_name(value_dtype(im->g, v)));
  return ex_view(im, v, NULL, 0);
}

const Onnx__GraphProto *control_graph(Import *im, const char *name) {
  const Onnx__GraphProto *graph = attr_graph(im, name);
  if (!graph && import_ok(im))
    import_fail(im, DIAG_ATTR_MISSING, "attribute '%s' is missing", name);
  return graph;
}

void control_poison(Import *im) {
  for (uint32_t i = 0; i < out_count(im); i++)
    out_binding(im, i, (Binding){.kind = BIND_POISON});
}

void control_rollback(Import *im, NodeId last, uint32_t constraints) {
  while (im->g->last != last)
    graph_remove_node(im->g, im->g->last);
  im->g->constraint_count = constraints;
}

/* --- If --- */

/* What both branches give, tensor by tensor: sequences of one length count as their items. */
typedef struct Pairs {
  ValueId *values[2];
  uint32_t count;
} Pairs;

static bool same_kind(const Binding *a, const Binding *b) {
  return a->kind == b->kind && a->packed == b->packed &&
         (a->kind != BIND_SEQUENCE || a->count == b->count);
}

static uint32_t pairs_of(const Binding *a) {
  return a->kind == BIND_VALUE ? 1 : a->kind == BIND_SEQUENCE ? a->count : 0;
}

static bool collect_pairs(Import *im, Binding *const results[2], uint32_t count, Pairs *pairs) {
  uint32_t total = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!same_kind(&results[0][i], &results[1][i])) {
      import_fail(
          im, DIAG_UNSUPPORTED_FEATURE,
          "output %u is a tensor, a sequence or an empty optional by the branch, which needs a "
          "condition known when lowering",
          i);
      return false;
    }
    total += pairs_of(&results[0][i]);
  }
  for (uint32_t k = 0; k < 2; k++) {
    pairs->values[k] = ARENA_ARRAY(&im->scratch, ValueId, total + 1);
    pairs->count = 0;
    for (uint32_t i = 0; i < count; i++)
      for (uint32_t j = 0; j < pairs_of(&results[k][i]); j++)
        pairs->values[k][pairs->count++] =
            results[k][i].kind == BIND_VALUE ? results[k][i].value : results[k][i].items[j];
  }
  return true;
}

static void bind_joined(Import *im, const Binding *results, uint32_t count, ValueId first) {
  for (uint32_t i = 0; i < count && import_ok(im); i++) {
    uint32_t items = pairs_of(&results[i]);
    if (results[i].kind == BIND_VALUE) {
      out_binding(im, i,
                  (Binding){.kind = BIND_VALUE, .value = first, .packed = results[i].packed});
    } else if (results[i].kind == BIND_SEQUENCE) {
      ValueId *values = ARENA_ARRAY(&im->scratch, ValueId, items + 1);
      for (uint32_t k = 0; k < items; k++)
        values[k] = first + k;
      out_sequence(im, i, values, items);
    } else {
      out_binding(im, i, results[i]);
    }
    first += items;
  }
}

static bool same_types(Import *im, const Pairs *pairs) {
  for (uint32_t i = 0; i < pairs->count; i++) {
    const Type *a = vt(im, pairs->values[0][i]), *b = vt(im, pairs->values[1][i]);
    if (a->dtype == b->dtype && a->rank == b->rank)
      continue;
    import_fail(
        im, DIAG_UNSUPPORTED_FEATURE,
        "output %u is %s of rank %u in one branch and %s of rank %u in the other, which needs "
        "a condition known when lowering",
        i, dtype_name((DType)a->dtype), a->rank, dtype_name((DType)b->dtype), b->rank);
    return false;
  }
  return true;
}

static void run_branches(Import *im, ValueId condition, const Onnx__GraphProto *const branches[2]) {
  uint32_t count = out_count(im);
  Binding *results[2];
  Pairs pairs;
  (void)build(&im->b, OP_IF, A_VAL(control_condition(im, condition)));
  for (uint32_t k = 0; k < 2 && import_ok(im); k++) {
    if (k)
      (void)build_args(&im->b, OP_ELSE, NULL, 0);
    results[k] = ARENA_ARRAY(&im->scratch, Binding, count + 1);
    if (!import_inline(im, branches[k], NULL, 0, results[k], count)) {
      control_poison(im);
      return;
    }
  }
  if (!import_ok(im) || !collect_pairs(im, results, count, &pairs) || !same_types(im, &pairs))
    return;
  ValueId first = build(&im->b, OP_ENDIF, A_VALS(pairs.values[0], pairs.count),
                        A_VALS(pairs.values[1], pairs.count));
  bind_joined(im, results[0], count, first);
}

void translate_if(Import *im) {
  ValueId condition = in_required(im, 0);
  const Onnx__GraphProto *branches[] = {control_graph(im, "then_branch"),
                                        control_graph(im, "else_branch")};
  bool value;
  if (!import_ok(im))
    return;
  if (!control_known_bool(im, condition, &value)) {
    run_branches(im, condition, branches);
    return;
  }
  uint32_t count = out_count(im);
  Binding *results = ARENA_ARRAY(&im->scratch, Binding, count + 1);
  if (!import_inline(im, branches[value ? 0 : 1], NULL, 0, results, count)) {
    control_poison(im);
    return;
  }
  for (uint32_t i = 0; i < count; i++)
    out_binding(im, i, results[i]);
}

/* If, and what If, Loop and Scan share. A condition known when lowering takes one branch; one that
 * is not becomes control flow: both branches are translated in place, between markers
 * (ir/region.h). A branch that the sizes of the inputs stop becomes an error of the running
 * program. */
#include "onnx/translate/control.h"
#include "onnx/import_state.h"

bool control_known_bool(Import *im, ValueId v, bool *value) {
  int64_t number;
  if (!one_const(im, v, &number))
    return false;
  *value = number != 0;
  return true;
}

ValueId control_condition(Import *im, ValueId v) {
  if (ex_dtype(im, v) != DTYPE_BOOL)
    return import_fail(im, DIAG_INPUT_TYPE, "the condition is %s, not bool",
                       dtype_name(ex_dtype(im, v)));
  return ex_scalar(im, v);
}

const Onnx__GraphProto *control_graph(Import *im, const char *name) {
  const Onnx__GraphProto *graph = attr_graph(im, name);
  if (!graph)
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

void control_try(Import *im, ControlTrial *trial) {
  ImportState *s = im->state;
  *trial = (ControlTrial){.im = im,
                          .last = im->g->last,
                          .constraints = im->g->constraint_count,
                          .unsupported_count = s->unsupported_count,
                          .unsupported =
                              ARENA_ARRAY(&im->scratch, Unsupported, s->unsupported_count + 1),
                          .failed = s->failed,
                          .stopped_sizes = s->sizes && s->sizes->stopped};
  memcpy(trial->unsupported, s->unsupported, s->unsupported_count * sizeof *s->unsupported);
  diag_hold(im->ctx->sink, &trial->held);
  s->trials++;
}

void control_take_back(ControlTrial *trial) {
  Import *im = trial->im;
  ImportState *s = im->state;
  if (!s->stopped) {
    diag_drop(&trial->held);
    memcpy(s->unsupported, trial->unsupported, trial->unsupported_count * sizeof *s->unsupported);
    s->unsupported_count = trial->unsupported_count;
    s->failed = trial->failed;
    if (s->sizes)
      s->sizes->stopped = trial->stopped_sizes;
  }
  s->trials--;
  diag_let_go(&trial->held);
  control_rollback(im, trial->last, trial->constraints);
  im->b.status = STATUS_OK;
}

ValueId loop_scalar(Import *im, const Onnx__ValueInfoProto *input, ValueId scalar) {
  const Onnx__TypeProto__Tensor *t = input->type ? input->type->tensor_type : NULL;
  return t && t->shape && t->shape->n_dim == 1 ? ex_unsqueeze(im, scalar, 0) : scalar;
}

/* --- If --- */

/* What both branches give, tensor by tensor: sequences of one length count as their items. */
typedef struct Pairs {
  ValueId *values[2];
  uint32_t count;
} Pairs;

static bool same_kind(const Binding *a, const Binding *b) {
  return a->kind == b->kind && a->packed == b->packed && a->kind != BIND_STACK &&
         (a->kind != BIND_SEQUENCE || a->count == b->count);
}

static uint32_t pairs_of(const Binding *a) {
  return a->kind == BIND_VALUE ? 1 : a->kind == BIND_SEQUENCE ? a->count : 0;
}

static bool collect_pairs(Import *im, Binding *const results[2], uint32_t count, Pairs *pairs) {
  uint32_t total = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!same_kind(&results[0][i], &results[1][i]))
      return import_fail(
          im, DIAG_UNSUPPORTED_FEATURE,
          "output %u is a tensor, a sequence or an empty optional by the branch, or a sequence of "
          "unknown length, which needs a condition known when lowering",
          i);
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

static bool same_but_rank(Import *im, ValueId a, ValueId b) {
  return vt(im, a)->rank != vt(im, b)->rank && are_one_element(vt(im, a), vt(im, b));
}

static bool same_types(Import *im, const Pairs *pairs) {
  for (uint32_t i = 0; i < pairs->count; i++) {
    const Type *a = vt(im, pairs->values[0][i]), *b = vt(im, pairs->values[1][i]);
    if (a->dtype == b->dtype && a->rank == b->rank)
      continue;
    return import_fail(
        im, DIAG_UNSUPPORTED_FEATURE,
        "output %u is %s of rank %u in one branch and %s of rank %u in the other, which needs "
        "a condition known when lowering",
        i, dtype_name((DType)a->dtype), a->rank, dtype_name((DType)b->dtype), b->rank);
  }
  return true;
}

/* --- a branch that cannot run --- */

/* Errors that other sizes of the inputs could avoid; the rest is wrong at any size, or a limit of
 * this program. */
static bool is_of_sizes(const DiagHold *held) {
  for (unsigned code = 0; code < DIAG_CODE_COUNT; code++)
    if (held->codes[code] && code != DIAG_SHAPE_MISMATCH && code != DIAG_INPUT_RANK &&
        code != DIAG_AXIS_RANGE && code != DIAG_ARG_RANGE && code != DIAG_ATTR_VALUE)
      return false;
  return held->first_message.size != 0;
}

typedef struct Branch {
  const char *name;
  const Onnx__GraphProto *graph;
  Binding *results;
  bool fine;
  bool fits;        /* no sizes of the inputs stop it; else: */
  const char *node; /* the node that cannot take them */
  const char *why;
} Branch;

static const char *node_text(Import *im, const DiagPlace *place) {
  StrView op = place->op.size ? place->op : SV("node");
  if (!place->node.size)
    return arena_printf(&im->scratch, SV_FMT " %lld", SV_ARG(op), (long long)place->index);
  return arena_printf(&im->scratch, SV_FMT " '" SV_FMT "'", SV_ARG(op), SV_ARG(place->node));
}

/* What a branch that does not fit has to say is dropped, and what it has built. */
static void import_branch(Import *im, Branch *b, uint32_t count) {
  bool failed = im->state->failed;
  uint32_t unsupported = im->state->unsupported_count, constraints = im->g->constraint_count;
  NodeId last = im->g->last;
  DiagHold held;
  b->results = ARENA_ARRAY(&im->scratch, Binding, count + 1);
  diag_hold(im->ctx->sink, &held);
  b->fine = import_inline(im, b->graph, NULL, 0, b->results, count);
  b->fits = b->fine || im->state->stopped || im->state->unsupported_count != unsupported ||
            !is_of_sizes(&held);
  if (!b->fits) {
    b->node = node_text(im, &held.first_place);
    b->why =
        arena_strdup(&im->scratch, (StrView){held.first_message.data, held.first_message.size});
    diag_drop(&held);
    control_rollback(im, last, constraints);
    im->b.status = STATUS_OK;
    im->state->failed = failed;
  }
  diag_let_go(&held);
}

/* Branch k does not fit: the condition is only tested, and the nodes of the other branch come
 * behind that test. */
static void fail_branch(Import *im, NodeId begin, NodeId middle, const Branch *bad, bool is_else) {
  Graph *g = im->g;
  const char *name = arena_printf(&im->scratch, "%s of '" SV_FMT "'", bad->name,
                                  SV_ARG(onnx_text(im->node->name)));
  Diag *d = diag_begin(im->ctx->sink, DIAG_BRANCH_FAILS, graph_place(g, im->b.loc));
  diag_message(d, "%s cannot run with these sizes: a call that takes it ends with an error", name);
  diag_note(d, "%s: %s", bad->node, bad->why);
  (void)diag_end(d);
  const char *message =
      arena_printf(&im->scratch, "%.200s cannot run with the sizes of this program: %.200s: %.400s",
                   name, bad->node, bad->why);
  NodeId first = node_cget(g, begin)->next;
  if (is_else && first != middle)
    graph_move_before(g, middle, first);
  NodeId behind = node_cget(g, middle)->next;
  im->b.before = is_else ? behind : middle;
  (void)build(&im->b, OP_FAIL, A_STR(message));
  im->b.before = behind;
  (void)build(&im->b, OP_ENDIF, A_VALS(NULL, 0), A_VALS(NULL, 0));
  im->b.before = 0;
}

void control_fail_if(Import *im, ValueId condition, const char *message) {
  (void)ex_unary(im, OP_IF, condition);
  (void)build(&im->b, OP_FAIL, A_STR(message));
  (void)build_args(&im->b, OP_ELSE, NULL, 0);
  (void)build(&im->b, OP_ENDIF, A_VALS(NULL, 0), A_VALS(NULL, 0));
}

/* Once more, for the messages of what does not fit. */
static void report_branches(Import *im, const Branch *branches, uint32_t count) {
  for (uint32_t k = 0; k < 2; k++)
    if (!branches[k].fits)
      (void)import_inline(im, branches[k].graph, NULL, 0, branches[k].results, count);
  control_poison(im);
}

/* Exporters write a flag as a scalar in one branch and as a vector of one element in the other; the
 * lower rank becomes the higher one. */
static void level_ranks(Import *im, const Pairs *pairs, NodeId middle) {
  for (uint32_t i = 0; i < pairs->count && import_ok(im); i++) {
    ValueId a = pairs->values[0][i], b = pairs->values[1][i];
    uint32_t low = value_rank(im->g, a) < value_rank(im->g, b) ? 0 : 1;
    if (!same_but_rank(im, a, b))
      continue;
    im->b.before = low ? 0 : middle;
    pairs->values[low][i] = ex_view_as(im, low ? b : a, shape_of(im, low ? a : b));
    im->b.before = 0;
  }
}

static void join_results(Import *im, const Branch *branches, uint32_t count, NodeId middle) {
  Pairs pairs;
  Binding *results[] = {branches[0].results, branches[1].results};
  if (!collect_pairs(im, results, count, &pairs))
    return;
  level_ranks(im, &pairs, middle);
  if (!same_types(im, &pairs))
    return;
  ValueId first = build(&im->b, OP_ENDIF, A_VALS(pairs.values[0], pairs.count),
                        A_VALS(pairs.values[1], pairs.count));
  bind_joined(im, results[0], count, first);
}

/* --- a branch that gives another rank --- */

/* The first output of one element type and two ranks, and not of one element; false when there is
 * none, or an output of two element types. */
static bool find_two_ranks(Import *im, const Pairs *pairs, uint32_t *at) {
  bool found = false;
  for (uint32_t i = 0; i < pairs->count; i++) {
    const Type *a = vt(im, pairs->values[0][i]), *b = vt(im, pairs->values[1][i]);
    if (a->dtype != b->dtype)
      return false;
    bool two = a->rank != b->rank && !same_but_rank(im, pairs->values[0][i], pairs->values[1][i]);
    if (two && !found)
      *at = i;
    found |= two;
  }
  return found;
}

/* Where one branch returns what is there already and the other gives it another rank, what follows
 * was made for the former: exporters write such a branch for the case that they never ran. It
 * becomes an error of the call. */
static bool drop_other_rank(Import *im, NodeId begin, NodeId middle, Branch *branches,
                            uint32_t count, uint32_t constraints, uint32_t *bad) {
  Graph *g = im->g;
  Pairs pairs;
  Binding *results[] = {branches[0].results, branches[1].results};
  uint32_t at = 0;
  bool idle[] = {node_cget(g, begin)->next == middle, g->last == middle};
  if (idle[0] == idle[1] || !collect_pairs(im, results, count, &pairs) ||
      !find_two_ranks(im, &pairs, &at))
    return false;
  *bad = idle[0] ? 1 : 0;
  Branch *b = &branches[*bad];
  b->node = arena_printf(&im->scratch, "output %u", at);
  b->why =
      arena_printf(&im->scratch, "it has rank %u here and rank %u in the other branch",
                   vt(im, pairs.values[*bad][at])->rank, vt(im, pairs.values[1 - *bad][at])->rank);
  b->fine = b->fits = false;
  NodeId end = *bad ? middle : begin;
  for (NodeId n = *bad ? g->last : node_cget(g, middle)->prev; n != end;) {
    NodeId before = node_cget(g, n)->prev;
    graph_remove_node(g, n);
    n = before;
  }
  g->constraint_count = constraints;
  return true;
}

static void run_branches(Import *im, ValueId condition, const Onnx__GraphProto *const graphs[2]) {
  uint32_t count = out_count(im);
  Branch branches[] = {{.name = "then_branch", .graph = graphs[0]},
                       {.name = "else_branch", .graph = graphs[1]}};
  (void)ex_unary(im, OP_IF, control_condition(im, condition));
  if (!import_ok(im))
    return;
  uint32_t constraints = im->g->constraint_count;
  NodeId begin = im->g->last;
  import_branch(im, &branches[0], count);
  (void)build_args(&im->b, OP_ELSE, NULL, 0);
  NodeId middle = im->g->last;
  if (import_ok(im))
    import_branch(im, &branches[1], count);
  if (!import_ok(im))
    return;
  uint32_t bad = branches[0].fits ? 1 : 0;
  if (branches[0].fine && branches[1].fine &&
      !drop_other_rank(im, begin, middle, branches, count, constraints, &bad)) {
    join_results(im, branches, count, middle);
  } else if (branches[1 - bad].fine && !branches[bad].fits) {
    fail_branch(im, begin, middle, &branches[bad], bad == 1);
    for (uint32_t i = 0; i < count && import_ok(im); i++)
      out_binding(im, i, branches[1 - bad].results[i]);
  } else {
    report_branches(im, branches, count);
  }
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

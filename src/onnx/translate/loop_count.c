/* See loop_count.h. What the condition and the counters of the body depend on is translated twice
 * to count the steps, and taken back: first with a symbol for what each counter has moved by so
 * far, which tells how far a step moves it, then with the counters as formulas of the number of the
 * iteration, which proves that and tells the condition. The rest of the body may hold what cannot
 * be translated before the counters are numbers.
 *
 * A condition is taken apart into comparisons that must all hold, each brought to the form
 * d(t) = a * t + b < 0, t the number of the step. With a > 0 it first fails in step
 * max(0, ceil(-b / a)), and one step more has run then. When the first condition is the same
 * comparison one step earlier, d(-1) < 0, the two are one formula: max(0, ceil(-d(-1) / a)) steps,
 * none when it does not hold. */
#include "onnx/translate/loop_count.h"

#include "onnx/file/order.h"
#include "onnx/import_state.h"

enum { COMPARISONS_MAX = 8, CONDITION_DEPTH_MAX = 32 };

typedef struct Comparison {
  SymInt d;   /* holds while d < 0 */
  bool other; /* holds while d != 0 */
} Comparison;

typedef struct Condition {
  Comparison parts[COMPARISONS_MAX];
  uint32_t count;
  bool whole; /* it is all of these and nothing else */
} Condition;

bool loop_is_inner(const SymTable *t, SymInt v, uint32_t symbols) {
  if (sym_is_const(v))
    return false;
  const SymExpr *e = sym_expr(t, v);
  if (e->kind == SYM_SYMBOL)
    return e->index >= symbols;
  for (uint32_t i = 0; i < e->count; i++)
    if (loop_is_inner(t, e->terms[i], symbols))
      return true;
  return false;
}

/* --- numbers of iterations --- */

/* How often the number is in the sum d. */
static int64_t coefficient_of(const SymTable *t, SymInt d, SymInt number) {
  if (d == number)
    return 1;
  if (sym_is_const(d) || sym_expr(t, d)->kind != SYM_SUM)
    return 0;
  const SymExpr *e = sym_expr(t, d);
  for (uint32_t i = 0; i < e->count; i++)
    if (e->terms[i] == number)
      return e->coefficients[i];
  return 0;
}

void loop_number_below(Import *im, SymInt number, SymInt below) {
  LoopNumber *n = ARENA_NEW(&im->state->arena, LoopNumber);
  *n = (LoopNumber){number, below, im->state->loop_numbers};
  im->state->loop_numbers = n;
}

SymInt loop_most(Import *im, SymInt v) {
  SymTable *t = &im->g->syms;
  /* Inner loops are last in, and their numbers of steps may depend on the outer ones. */
  for (const LoopNumber *n = im->state->loop_numbers; n && !sym_is_const(v); n = n->next) {
    int64_t times = coefficient_of(t, v, n->number);
    SymInt last = times > 0 ? sym_sub(t, n->below, 1) : 0;
    v = sym_add(t, v, sym_mul(t, sym_sub(t, last, n->number), times));
  }
  return v;
}

/* --- taking a condition apart --- */

static void add_part(Condition *c, SymInt d, bool other) {
  if (c->count < COMPARISONS_MAX)
    c->parts[c->count++] = (Comparison){d, other};
  else
    c->whole = false;
}

static OpId negation(OpId op) {
  static const OpId pairs[][2] = {{OP_LT_TENSOR, OP_GE_TENSOR},
                                  {OP_LE_TENSOR, OP_GT_TENSOR},
                                  {OP_GT_TENSOR, OP_LE_TENSOR},
                                  {OP_GE_TENSOR, OP_LT_TENSOR},
                                  {OP_EQ_TENSOR, OP_NE_TENSOR}};
  for (size_t i = 0; i < COUNT_OF(pairs); i++)
    if (pairs[i][0] == op)
      return pairs[i][1];
  return OP_NONE;
}

/* Integers below are exact in f16, and larger ones stay larger when they are rounded to it. */
enum { HALF_WHOLE_MAX = 2047 };

/* A known integer, perhaps converted to f16, as a conversion of the model to f16 leaves it. */
static bool compared_number(Import *im, ValueId v, SymInt *number, bool *half) {
  NodeId n = value_def(im->g, v);
  double whole;
  if (one_whole(im, v, number))
    return true;
  *half = value_dtype(im->g, v) == DTYPE_F16;
  if (*half && n && node_cget(im->g, n)->op == OP_TO_COPY)
    return dtype_is_int(value_dtype(im->g, node_value(im->g, n, 0))) &&
           one_whole(im, node_value(im->g, n, 0), number);
  return *half && one_double(im, v, &whole) && sym_from_float(whole, number);
}

static bool is_exact_half(const SymTable *t, SymInt number) {
  return sym_lower(t, number) >= -HALF_WHOLE_MAX && sym_upper(t, number) <= HALF_WHOLE_MAX;
}

/* The numbers that n compares; false: some are not known. */
static bool compared_numbers(Import *im, NodeId n, SymInt *x, SymInt *y) {
  const SymTable *t = &im->g->syms;
  bool half = false;
  return compared_number(im, node_value(im->g, n, 0), x, &half) &&
         compared_number(im, node_value(im->g, n, 1), y, &half) &&
         (!half || is_exact_half(t, *x) || is_exact_half(t, *y));
}

/* False: the node is no comparison of two known numbers. */
static bool add_comparison(Import *im, NodeId n, bool negated, Condition *c) {
  SymTable *t = &im->g->syms;
  OpId op = node_cget(im->g, n)->op;
  SymInt x, y;
  if (negated)
    op = negation(op);
  if (op != OP_LT_TENSOR && op != OP_LE_TENSOR && op != OP_GT_TENSOR && op != OP_GE_TENSOR &&
      op != OP_NE_TENSOR)
    return false;
  if (!compared_numbers(im, n, &x, &y))
    return false;
  bool swap = op == OP_GT_TENSOR || op == OP_GE_TENSOR;
  SymInt d = swap ? sym_sub(t, y, x) : sym_sub(t, x, y);
  if (op == OP_LE_TENSOR || op == OP_GE_TENSOR)
    d = sym_sub(t, d, 1);
  add_part(c, d, op == OP_NE_TENSOR);
  return true;
}

/* A copy of one element in another shape. */
static bool is_bool_copy(const Graph *g, NodeId n) {
  OpId op = node_cget(g, n)->op;
  return (op_has_trait(op, OP_VIEW) || op == OP_CLONE || op == OP_TO_COPY) &&
         value_dtype(g, node_value(g, n, 0)) == DTYPE_BOOL &&
         value_dtype(g, node_result(g, n, 0)) == DTYPE_BOOL;
}

static void take_apart(Import *im, ValueId v, bool negated, Condition *c, uint32_t depth) {
  const Graph *g = im->g;
  bool known;
  NodeId n = value_def(g, v);
  OpId op = n ? node_cget(g, n)->op : OP_NONE;
  if (control_known_bool(im, v, &known)) {
    if (known == negated)
      add_part(c, 0, false); /* never holds */
  } else if (op == OP_NONE || depth > CONDITION_DEPTH_MAX) {
    c->whole = false;
  } else if (is_bool_copy(g, n)) {
    take_apart(im, node_value(g, n, 0), negated, c, depth + 1);
  } else if (op == OP_LOGICAL_NOT) {
    take_apart(im, node_value(g, n, 0), !negated, c, depth + 1);
  } else if (op == (negated ? OP_LOGICAL_OR : OP_LOGICAL_AND)) {
    take_apart(im, node_value(g, n, 0), negated, c, depth + 1);
    take_apart(im, node_value(g, n, 1), negated, c, depth + 1);
  } else if (!add_comparison(im, n, negated, c)) {
    c->whole = false;
  }
}

/* --- steps --- */

/* d = a * number + b, a a plain number and b the same in all steps. */
static bool split(SymTable *t, SymInt d, SymInt number, uint32_t symbols, int64_t *a, SymInt *b) {
  *a = coefficient_of(t, d, number);
  *b = sym_sub(t, d, sym_mul(t, number, *a));
  return *a > -LOOP_COUNTED_MAX && *a < LOOP_COUNTED_MAX && !loop_is_inner(t, *b, symbols);
}

/* `!=` by steps of one towards equality is `<`. */
static bool as_less(SymTable *t, const Comparison *part, int64_t *a, SymInt *b) {
  if (!part->other || (*a == 1 && sym_upper(t, *b) <= 0))
    return true;
  if (*a != -1 || sym_lower(t, *b) < 0)
    return false;
  *a = 1;
  *b = sym_sub(t, 0, *b);
  return true;
}

/* Does this part of the first condition say `before` < 0? */
static bool says(SymTable *t, const Comparison *part, SymInt before) {
  if (!part->other)
    return part->d == before;
  return sym_upper(t, before) <= 0 && (part->d == before || part->d == sym_sub(t, 0, before));
}

/* Marks the parts of the first condition that say the same one step earlier; true for any. */
static bool same_before(SymTable *t, const Condition *first, int64_t a, SymInt b, bool *matched) {
  SymInt before = sym_sub(t, b, a);
  bool any = false;
  for (uint32_t i = 0; i < first->count; i++)
    if (says(t, &first->parts[i], before))
      any = matched[i] = true;
  return any;
}

/* Steps until a * t + b < 0 fails. False: it never ends the loop, or it is not known when; *never
 * tells them apart. */
static bool steps_of(SymTable *t, int64_t a, SymInt b, bool same, SymInt *steps, bool *never) {
  *never = a <= 0 && sym_upper(t, b) < 0;
  if (a <= 0) {
    *steps = 1;
    return sym_lower(t, b) >= 0;
  }
  SymInt more = sym_floordiv(t, sym_sub(t, (same ? 2 : 1) * a - 1, b), a);
  *steps = sym_add(t, sym_max(t, 0, more), same ? 0 : 1);
  return true;
}

static LoopSteps count_steps(Import *im, const Condition *first, const Condition *again,
                             SymInt number, uint32_t symbols) {
  SymTable *t = &im->g->syms;
  LoopSteps s = {.exact = again->whole && first->whole};
  bool matched[COMPARISONS_MAX] = {false};
  for (uint32_t i = 0; i < again->count; i++) {
    int64_t a;
    SymInt b, steps;
    bool never = false;
    bool usable = split(t, again->parts[i].d, number, symbols, &a, &b) &&
                  as_less(t, &again->parts[i], &a, &b);
    bool same = usable && same_before(t, first, a, b, matched);
    if (!usable || !steps_of(t, a, b, same, &steps, &never)) {
      s.exact &= never;
      continue;
    }
    s.most = s.found ? sym_min(t, s.most, steps) : steps;
    s.found = true;
  }
  for (uint32_t i = 0; i < first->count; i++)
    s.exact &= matched[i];
  return s;
}

LoopSteps loop_steps(Import *im, ValueId first, ValueId again, SymInt number, uint32_t symbols) {
  SymTable *t = &im->g->syms;
  Condition before = {.whole = true}, next = {.whole = true};
  bool too_large = t->too_large, saturated = t->saturated;
  t->too_large = t->saturated = false;
  if (first)
    take_apart(im, first, false, &before, 0);
  take_apart(im, again, false, &next, 0);
  LoopSteps s = count_steps(im, &before, &next, number, symbols);
  s.found &= !t->too_large && !t->saturated && sym_upper(t, s.most) <= LOOP_COUNTED_MAX;
  s.exact &= s.found;
  t->too_large = too_large;
  t->saturated = saturated;
  return s;
}

/* --- counters --- */

void counter_assume(Import *im, LoopCounter *c, ValueId state, SymInt number) {
  SymTable *t = &im->g->syms;
  if (!c->known || !import_ok(im))
    return;
  SymInt now = sym_add(t, c->init, sym_mul(t, number, c->step));
  if (sym_lower(t, now) < -COUNTER_MAX || sym_upper(t, now) > COUNTER_MAX)
    c->known = false;
  else
    fold_set_contents(&im->state->fold, state, &now, 1);
}

bool counter_holds(Import *im, const LoopCounter *c, ValueId next, SymInt number) {
  SymTable *t = &im->g->syms;
  SymInt is, wanted = sym_add(t, c->init, sym_mul(t, sym_add(t, number, 1), c->step));
  return !c->known || (one_whole(im, next, &is) && is == wanted);
}

/* --- counting --- */

typedef struct Probe {
  const RunLoop *loop;
  LoopCount *count;
  SymInt number;
  SymInt *moved; /* by counter, 0: as its formula says */
  bool *stays;   /* by counter: no step moves it, as the step of another one */
  uint32_t symbols;
  Onnx__GraphProto body; /* as much of it as counts */
  uint32_t *roots;       /* by output of that: which one of the whole body it is */
} Probe;

/* The part of the body that gives the next condition, and the next value of what may be a counter.
 */
static void begin_probe(Import *im, Probe *p) {
  const RunLoop *loop = p->loop;
  const Onnx__GraphProto *whole = loop->body;
  Arena *arena = &im->scratch;
  size_t roots = 0, nodes = 0;
  const char **names = ARENA_ARRAY(arena, const char *, 1 + (size_t)loop->state_count);
  p->moved = ARENA_ARRAY(arena, SymInt, loop->state_count + 1);
  p->roots = ARENA_ARRAY(arena, uint32_t, 1 + (size_t)loop->state_count);
  p->body = *whole;
  p->body.output = ARENA_ARRAY(arena, Onnx__ValueInfoProto *, 1 + (size_t)loop->state_count);
  p->body.node = ARENA_ARRAY(arena, Onnx__NodeProto *, whole->n_node + 1);
  for (uint32_t k = 0; k <= loop->state_count; k++) {
    if (k && !p->count->counters[k - 1].known)
      continue;
    names[roots] = whole->output[k] ? whole->output[k]->name : NULL;
    p->body.output[roots] = whole->output[k];
    p->roots[roots++] = k;
  }
  const bool *behind = onnx_nodes_behind(whole->node, whole->n_node, names, roots, arena);
  for (size_t i = 0; i < whole->n_node; i++)
    if (behind[i])
      p->body.node[nodes++] = whole->node[i];
  p->body.n_output = roots;
  p->body.n_node = nodes;
}

static void begin_iterations(Import *im, Probe *p, Binding *inputs) {
  const RunLoop *loop = p->loop;
  ValueId *inits = ARENA_ARRAY(&im->scratch, ValueId, loop->state_count + 1);
  uint32_t count = 0;
  for (uint32_t k = 0; k < loop->state_count; k++) {
    inputs[2 + k] = loop->states[k];
    if (loop->states[k].kind == BIND_VALUE && !loop->states[k].packed)
      inits[count++] = loop->states[k].value;
  }
  ValueId first = build(&im->b, OP_LOOP, A_NONE, A_NONE, A_VALS(inits, count));
  if (!import_ok(im))
    return;
  p->number = sym_symbol(&im->g->syms, SV(""), 0, LOOP_COUNTED_MAX - 1, true);
  value_set_type(im->g, first, graph_scalar_type(im->g, TYPE_INT, p->number, true));
  inputs[0] = binding_of(ex_size(im, p->number));
  inputs[1] = binding_of(build_scalar_int(&im->b, DTYPE_BOOL, 1));
  for (uint32_t k = 0; k < loop->state_count; k++)
    if (loop->states[k].kind == BIND_VALUE && !loop->states[k].packed)
      inputs[2 + k].value = ++first;
}

/* One translation of the body. False when it failed. */
static bool translate_probe(Import *im, Probe *p, bool formulas, Binding *outputs) {
  const RunLoop *loop = p->loop;
  uint32_t roots = (uint32_t)p->body.n_output;
  Binding *inputs = ARENA_ARRAY(&im->scratch, Binding, 2 + loop->state_count),
          *results = ARENA_ARRAY(&im->scratch, Binding, roots);
  begin_iterations(im, p, inputs);
  for (uint32_t k = 0; k < loop->state_count && import_ok(im); k++) {
    LoopCounter *c = &p->count->counters[k];
    if (!c->known || formulas || p->stays[k]) {
      counter_assume(im, c, inputs[2 + k].value, p->number);
      continue;
    }
    SymInt by = sym_symbol(&im->g->syms, SV(""), 0, LOOP_COUNTED_MAX - 1, true);
    p->moved[k] = sym_add(&im->g->syms, c->init, by);
    fold_set_contents(&im->state->fold, inputs[2 + k].value, &p->moved[k], 1);
  }
  bool fine = import_inline(im, &p->body, inputs, 2 + loop->state_count, results, roots);
  for (uint32_t i = 0; fine && i < roots; i++)
    outputs[p->roots[i]] = results[i];
  return fine;
}

/* Whether the body hands input i on as output k; last: the node, but Identity, that makes it. */
static bool passes_input_on(const Onnx__GraphProto *body, size_t k, size_t i,
                            const Onnx__NodeProto **last) {
  const char *name = body->output[k] ? body->output[k]->name : NULL;
  *last = NULL;
  for (size_t at = body->n_node; at-- > 0 && !*last;) {
    const Onnx__NodeProto *n = body->node[at];
    if (n->n_output != 1 || !sv_eq(onnx_text(n->output[0]), onnx_text(name)))
      continue;
    if (sv_eq_str(onnx_text(n->op_type), "Identity") && n->n_input == 1)
      name = n->input[0];
    else
      *last = n;
  }
  return !*last && body->input[i] && sv_eq(onnx_text(name), onnx_text(body->input[i]->name));
}

/* How far a step moves each state. */
static bool find_counters(Import *im, Probe *p, Binding *outputs) {
  if (!translate_probe(im, p, false, outputs))
    return false;
  for (uint32_t k = 0; k < p->loop->state_count; k++) {
    LoopCounter *c = &p->count->counters[k];
    SymInt next;
    if (!c->known || p->stays[k])
      continue;
    c->known = outputs[1 + k].kind == BIND_VALUE && one_whole(im, outputs[1 + k].value, &next);
    c->step = c->known ? sym_sub(&im->g->syms, next, p->moved[k]) : 0;
    c->known &= sym_is_const(c->step) && c->step > -COUNTER_STEP_MAX && c->step < COUNTER_STEP_MAX;
  }
  return true;
}

/* False when a counter was none after all: what else was found may depend on it. */
static bool prove_counters(Import *im, Probe *p, const Binding *outputs) {
  bool proven = true;
  for (uint32_t k = 0; k < p->loop->state_count; k++) {
    LoopCounter *c = &p->count->counters[k];
    const Binding *next = &outputs[1 + k];
    if (next->kind == BIND_VALUE && counter_holds(im, c, next->value, p->number))
      continue;
    proven &= !c->known;
    c->known = false;
  }
  return proven;
}

static void prove(Import *im, Probe *p, Binding *outputs) {
  for (uint32_t tries = 0; tries < 3 && !im->state->stopped; tries++) {
    ControlTrial trial;
    control_try(im, &trial);
    bool fine = translate_probe(im, p, true, outputs),
         proven = fine && prove_counters(im, p, outputs);
    if (proven && outputs[0].kind == BIND_VALUE)
      p->count->steps = loop_steps(im, p->loop->condition, outputs[0].value, p->number, p->symbols);
    control_take_back(&trial);
    if (!fine || proven)
      return;
  }
}

/* Does the loop go on as long as it may? */
static bool runs_on(const Onnx__GraphProto *body) {
  const Onnx__NodeProto *last;
  return passes_input_on(body, 0, 1, &last) ||
         (last && sv_eq_str(onnx_text(last->op_type), "Constant"));
}

bool loop_count(Import *im, const RunLoop *loop, LoopCount *count) {
  Binding *outputs = ARENA_ARRAY(&im->scratch, Binding, 1 + (size_t)loop->state_count);
  *count = (LoopCount){ARENA_ARRAY(&im->scratch, LoopCounter, loop->state_count + 1), {0}};
  Probe p = {.loop = loop,
             .count = count,
             .stays = ARENA_ARRAY(&im->scratch, bool, loop->state_count + 1),
             .symbols = im->g->syms.symbol_count};
  if (!import_ok(im) || im->state->trials >= IMPORT_TRIALS_MAX || runs_on(loop->body))
    return false;
  for (uint32_t k = 0; k < loop->state_count; k++) {
    const Binding *state = &loop->states[k];
    LoopCounter *c = &count->counters[k];
    c->known = state->kind == BIND_VALUE && !state->packed &&
               value_dtype(im->g, state->value) != DTYPE_BOOL &&
               one_whole(im, state->value, &c->init);
    const Onnx__NodeProto *last;
    p.stays[k] = c->known && passes_input_on(loop->body, 1 + (size_t)k, 2 + (size_t)k, &last);
  }
  begin_probe(im, &p);
  ControlTrial trial;
  control_try(im, &trial);
  bool fine = find_counters(im, &p, outputs);
  control_take_back(&trial);
  if (fine)
    prove(im, &p, outputs);
  return count->steps.found;
}

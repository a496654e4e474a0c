/* Loops of the running program, see control.h.
 *
 * What a body does to the shapes of its states is known only after it has been translated, and the
 * states must be there before. So the body is translated with what is known so far; when that turns
 * out to be too narrow, all of it is taken back and translated again: with the rows of the
 * collected tensors, without the states that no iteration changes, and with a symbol for each size
 * that changes from one iteration to the next. The range of such a symbol is found in this order:
 * the body keeps a range; the size grows by the same number in each of a known number of
 * iterations; the model declares the shape of the output.
 */
#include <stdio.h>

#include "onnx/translate/control.h"
#include "onnx/data_sizes.h"
#include "onnx/import_state.h"
#include "onnx/translate/loop_count.h"

enum { ATTEMPTS_MAX = 64 };

/* One size of a state. */
typedef struct Size {
  SymInt own;  /* a symbol of the loop; 0: as in the first iteration */
  SymInt step; /* what an iteration adds to it, if `steady` */
  bool steady;
  bool declared; /* its bound is declared: the body may do anything */
} Size;

/* Weights that a model hands from iteration to iteration (as those of TensorFlow do) are kept: the
 * body reads what was there before the loop, and no delegate has to take them as inputs. */
typedef enum Keeping { KEPT_UNTRIED, KEPT, KEPT_NOT } Keeping;

typedef struct Carried {
  ValueId init;
  Size sizes[MAX_RANK];
  Keeping kept; /* each iteration hands the state on as it is: the loop does not carry it */
  bool collects;
  TypeId row; /* of collected tensors, 0 = not known yet; of a state that begins in another type
                 than it has before the loop */
} Carried;

typedef struct Attempt {
  const RunLoop *loop;
  ArgIn trip; /* that of the loop, or what its condition tells */
  ValueId condition;
  LoopCount *counted; /* NULL: the condition tells nothing */
  LoopSteps steps;    /* what the condition of the nodes that were built tells */
  bool miscounted;    /* it is not what was counted */
  Carried *states;    /* carried ones, then collected ones */
  uint32_t count;
  int64_t most;     /* iterations, INT64_MAX = no bound */
  uint32_t symbols; /* how many there were before the loop */
  ValueId *values;  /* of the states: in an iteration, then after it */
  SymInt number;    /* of the iteration */
  ValueId again;    /* condition of the next iteration, 0 = it runs */
  bool narrow;      /* something must be widened */
} Attempt;

static void widen(Import *im, Attempt *a, Size *size, int64_t lo, int64_t hi) {
  size->own = sym_symbol(&im->g->syms, SV(""), max_i64(lo, 0), hi, true);
  a->narrow = true;
}

/* --- bounds --- */

static uint32_t output_of(const Attempt *a, uint32_t k) {
  return a->loop->outputs ? a->loop->outputs[k] : k;
}

/* Greatest size that the output for result k is declared to have there; false when it is not. */
static bool declared_bound(Import *im, const Attempt *a, uint32_t k, uint32_t dim, int64_t *hi) {
  Dims dims;
  if (out_bound(im, output_of(a, k), dim, hi))
    return true;
  if (!out_declared_dims(im, output_of(a, k), &dims) || dim >= dims.rank)
    return false;
  *hi = sym_upper(&im->g->syms, dims.d[dim]);
  return *hi != INT64_MAX;
}

static void no_bound(Import *im, Attempt *a, uint32_t k, uint32_t dim) {
  char what[64];
  if (k < a->loop->state_count)
    snprintf(what, sizeof what, "dim %u of state %u grows in the loop; its size", dim,
             output_of(a, k));
  else
    snprintf(what, sizeof what, "output %u has a row for each iteration; their number",
             output_of(a, k));
  fail_unbounded(im, output_of(a, k), (uint32_t)1 << dim, what);
}

static bool bound_of_growth(const Attempt *a, int64_t init, int64_t step, int64_t *hi) {
  int64_t growth;
  return a->most != INT64_MAX && init != INT64_MAX && mul_i64(max_i64(step, 0), a->most, &growth) &&
         add_i64(init, growth, hi);
}

/* Dim i of state k is `now` in an iteration and `next` in the one after it. */
static void compare_size(Import *im, Attempt *a, uint32_t k, uint32_t i, SymInt now, SymInt next) {
  SymTable *t = &im->g->syms;
  Carried *s = &a->states[k];
  Size *size = &s->sizes[i];
  SymInt init = value_dim(im->g, s->init, i), step = sym_sub(t, next, now);
  int64_t lo = sym_lower(t, init), hi;
  size->steady = sym_is_const(step);
  size->step = step;
  if (next == now || size->declared)
    return;
  if (!size->own) {
    widen(im, a, size, min_i64(lo, sym_lower(t, next)),
          max_i64(sym_upper(t, init), sym_upper(t, next)));
    return;
  }
  if (sym_upper(t, size->own) != INT64_MAX && sym_lower(t, next) >= sym_lower(t, size->own) &&
      sym_upper(t, next) <= sym_upper(t, size->own))
    return;
  if (size->steady && bound_of_growth(a, sym_upper(t, init), step, &hi)) {
    lo = step < 0 ? 0 : lo;
    if (lo < sym_lower(t, size->own) || hi > sym_upper(t, size->own))
      widen(im, a, size, lo, hi);
  } else if (declared_bound(im, a, k, i, &hi)) {
    size->declared = true;
    widen(im, a, size, 0, hi);
  } else {
    no_bound(im, a, k, i);
  }
}

/* --- collected tensors --- */

static void learn_row(Import *im, Attempt *a, uint32_t k, ValueId row) {
  Graph *g = im->g;
  Carried *s = &a->states[k];
  TypeId type = value_get(g, row)->type;
  for (uint32_t i = 0; i < value_rank(g, row); i++)
    if (loop_is_inner(&g->syms, value_dim(g, row, i), a->symbols)) {
      import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                  "dim %u of a row of output %u may differ from iteration to iteration", i,
                  output_of(a, k));
      return;
    }
  if (value_rank(g, row) == MAX_RANK)
    import_fail(im, DIAG_RANK_LIMIT, "output %u would have more than %d dimensions",
                output_of(a, k), MAX_RANK);
  a->narrow |= s->row != type;
  s->row = type;
}

/* A declared number of rows is the most iterations that there can be, if nothing else says. */
static void bound_by_rows(Import *im, Attempt *a) {
  int64_t rows;
  if (a->most != INT64_MAX)
    return;
  for (uint32_t k = a->loop->state_count; k < a->count; k++)
    if (declared_bound(im, a, k, 0, &rows))
      a->most = min_i64(a->most, rows);
  if (a->most == INT64_MAX && a->loop->scan_count)
    no_bound(im, a, a->loop->state_count, 0);
}

/* A tensor of no rows yet, which has room for one an iteration. */
static void begin_collecting(Import *im, Attempt *a, uint32_t k) {
  Carried *s = &a->states[k];
  const Type *row = type_get(im->g, s->row);
  Dims shape = {.rank = row->rank + 1};
  memcpy(shape.d + 1, row->dims, row->rank * sizeof *row->dims);
  if (!s->sizes[0].own)
    s->sizes[0].own = sym_symbol(&im->g->syms, SV(""), 0, a->most, true);
  s->init = ex_filled(im, (DType)row->dtype, shape, 0);
}

/* --- states that begin otherwise --- */

/* Does no iteration read the state, and one that surely runs write it? Exporters make such states
 * of variables that have no value before the loop; they stand there as some number. */
static bool is_unset(Import *im, const Attempt *a, uint32_t k, ValueId next) {
  const Graph *g = im->g;
  const RunLoop *loop = a->loop;
  const Onnx__ValueInfoProto *input = loop->body->input[(loop->numbered ? 2 : 0) + k];
  bool runs = !a->condition && (a->trip.kind == ARG_NONE ||
                                (a->trip.kind == ARG_INT && sym_lower(&g->syms, a->trip.i) >= 1));
  for (uint32_t i = 0; i < value_rank(g, next); i++)
    runs &= !loop_is_inner(&g->syms, value_dim(g, next, i), a->symbols);
  return runs && loop_reads(loop->body, onnx_text(input->name)) == 0;
}

/* In the type that an iteration gives it: a flag or number that begins as a scalar and comes out of
 * the body as a vector of one element, as exporters write them, begins as that vector. */
static void begin_typed(Import *im, Attempt *a, uint32_t k) {
  Carried *s = &a->states[k];
  ValueId given = a->loop->states[k].value;
  const Type *t = type_get(im->g, s->row);
  Dims shape = dims_make(t->dims, t->rank);
  s->init = are_one_element(value_type(im->g, given), t) ? ex_view_as(im, given, shape)
                                                         : ex_filled(im, (DType)t->dtype, shape, 0);
}

/* --- one attempt --- */

/* The state as the iterations see it. */
static Dims shape_of_state(const Graph *g, const Carried *s) {
  Dims shape = value_dims(g, s->init);
  for (uint32_t i = 0; i < shape.rank; i++)
    if (s->sizes[i].own)
      shape.d[i] = s->sizes[i].own;
  return shape;
}

/* Is it a state of the loop that is built? */
static bool is_carried(const Carried *s) { return s->collects ? s->row != 0 : s->kept != KEPT; }

static void begin(Import *im, Attempt *a) {
  ValueId *inits = ARENA_ARRAY(&im->scratch, ValueId, a->count + 1);
  uint32_t known = 0;
  for (uint32_t k = 0; k < a->count && import_ok(im); k++) {
    if (a->states[k].row && a->states[k].collects)
      begin_collecting(im, a, k);
    else if (a->states[k].row)
      begin_typed(im, a, k);
    if (is_carried(&a->states[k]))
      inits[known++] = a->states[k].init;
  }
  ValueId first = build(&im->b, OP_LOOP, a->trip, A_OPT(a->condition), A_VALS(inits, known));
  if (!import_ok(im))
    return;
  a->number = value_type(im->g, first)->dims[0];
  if (sym_upper(&im->g->syms, a->number) >= a->most) {
    a->number = sym_symbol(&im->g->syms, SV(""), 0, max_i64(a->most, 1) - 1, true);
    value_set_type(im->g, first, graph_scalar_type(im->g, TYPE_INT, a->number, true));
  }
  if (a->trip.kind == ARG_INT)
    loop_number_below(im, a->number, a->trip.i);
  known = 0;
  for (uint32_t k = 0; k < a->count; k++) {
    a->values[k] = a->states[k].kept == KEPT ? a->states[k].init : 0;
    if (!is_carried(&a->states[k]))
      continue;
    a->values[k] = first + ++known;
    ex_set_shape(im, a->values[k], shape_of_state(im->g, &a->states[k]));
    if (a->counted && k < a->loop->state_count)
      counter_assume(im, &a->counted->counters[k], a->values[k], a->number);
  }
}

static ValueId slice(Import *im, Attempt *a, const LoopSlice *s) {
  SymInt i = a->number;
  if (!import_ok(im))
    return 0;
  if (s->backwards)
    i = sym_sub(&im->g->syms, sym_sub(&im->g->syms, value_dim(im->g, s->tensor, s->axis), 1), i);
  return ex_pick(im, s->tensor, s->axis, i);
}

static bool translate_body(Import *im, Attempt *a, Binding *outputs) {
  const RunLoop *loop = a->loop;
  uint32_t extra = loop->numbered ? 2 : 0, count = extra + loop->state_count + loop->slice_count;
  Binding *inputs = ARENA_ARRAY(&im->scratch, Binding, count + 1);
  for (uint32_t i = 0; i < count; i++)
    inputs[i].kind = BIND_VALUE;
  if (loop->numbered) {
    inputs[0].value = loop_scalar(im, loop->body->input[0], ex_size(im, a->number));
    inputs[1].value = build_scalar_int(&im->b, DTYPE_BOOL, 1);
    inputs[1].value = loop_scalar(im, loop->body->input[1], inputs[1].value);
  }
  for (uint32_t i = 0; i < loop->state_count; i++)
    inputs[extra + i].value = a->values[i];
  for (uint32_t i = 0; i < loop->slice_count; i++)
    inputs[extra + loop->state_count + i].value = slice(im, a, &loop->slices[i]);
  return import_inline(im, loop->body, inputs, count, outputs,
                       (loop->numbered ? 1 : 0) + loop->state_count + loop->scan_count);
}

static void check_condition(Import *im, Attempt *a, Binding binding) {
  bool value = false;
  if (binding.kind != BIND_VALUE) {
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "the condition is not a tensor");
    return;
  }
  if (a->counted) {
    LoopSteps was = a->counted->steps,
              is = loop_steps(im, a->loop->condition, binding.value, a->number, a->symbols);
    a->steps = is;
    a->miscounted |= is.found != was.found || is.most != was.most || is.exact != was.exact;
    if (is.exact && a->trip.kind == ARG_INT)
      return;
  }
  if (!control_known_bool(im, binding.value, &value) || !value)
    a->again = control_condition(im, binding.value);
}

/* Is the state kept, as the body hands it on as it is? An attempt that carries it finds that out;
 * if the next one, which does not, makes another value of it, it is carried after all. */
static bool check_kept(Attempt *a, Carried *s, ValueId now, ValueId next) {
  bool same = now == next, changes = s->kept == (same ? KEPT_UNTRIED : KEPT);
  if (changes) {
    s->kept = same ? KEPT : KEPT_NOT;
    a->narrow = true;
  }
  return changes || s->kept == KEPT;
}

/* The state begins in the type of `next`, in the next attempt; else that is an error. */
static void change_type(Import *im, Attempt *a, uint32_t k, ValueId next) {
  Graph *g = im->g;
  Carried *s = &a->states[k];
  const Type *from = value_type(g, a->values[k]), *to = value_type(g, next);
  bool same = are_one_element(value_type(g, s->init), to);
  if (s->row || !(same || is_unset(im, a, k, next))) {
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "state %u changes from %s of rank %u to %s of rank %u in the loop", output_of(a, k),
                dtype_name((DType)from->dtype), from->rank, dtype_name((DType)to->dtype), to->rank);
    return;
  }
  s->row = value_get(g, next)->type;
  a->narrow = true;
}

static void check_state(Import *im, Attempt *a, uint32_t k, Binding binding) {
  Graph *g = im->g;
  Carried *s = &a->states[k];
  if (binding.kind != BIND_VALUE || binding.packed) {
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "%s %u of the body is not a tensor of a common type",
                s->collects ? "scan output" : "state", output_of(a, k));
    return;
  }
  if (s->collects) {
    learn_row(im, a, k, binding.value);
    if (import_ok(im) && a->values[k])
      a->values[k] = ex_put_row(im, a->values[k], binding.value, a->number);
    return;
  }
  if (check_kept(a, s, a->values[k], binding.value))
    return;
  const Type *now = value_type(g, a->values[k]), *next = value_type(g, binding.value);
  if (now->dtype != next->dtype || now->rank != next->rank) {
    change_type(im, a, k, binding.value);
    return;
  }
  for (uint32_t i = 0; i < now->rank && import_ok(im); i++)
    compare_size(im, a, k, i, value_dim(g, a->values[k], i), value_dim(g, binding.value, i));
  if (a->counted && !counter_holds(im, &a->counted->counters[k], binding.value, a->number)) {
    a->counted->counters[k].known = false;
    a->miscounted = true;
  }
  a->values[k] = binding.value;
}

/* False when the body failed. */
static bool attempt(Import *im, Attempt *a) {
  uint32_t extra = a->loop->numbered ? 1 : 0;
  Binding *outputs = ARENA_ARRAY(&im->scratch, Binding, extra + a->count + 1);
  a->narrow = a->miscounted = false;
  a->again = 0;
  const LoopNumber *outer = im->state->loop_numbers;
  begin(im, a);
  bool fine = translate_body(im, a, outputs);
  im->state->loop_numbers = outer;
  if (!fine)
    return false;
  if (extra)
    check_condition(im, a, outputs[0]);
  for (uint32_t k = 0; k < a->count && import_ok(im); k++)
    check_state(im, a, k, outputs[extra + k]);
  return true;
}

/* --- the end --- */

/* The exact number of iterations when nothing but it ends the loop; -1 otherwise. */
static SymInt exact_trip(Import *im, const Attempt *a) {
  bool exact = a->trip.kind == ARG_INT && !a->condition && !a->again &&
               sym_lower(&im->g->syms, a->trip.i) >= 0;
  return exact ? a->trip.i : -1;
}

static void end(Import *im, Attempt *a, ValueId *results) {
  Graph *g = im->g;
  SymTable *t = &g->syms;
  SymInt trip = exact_trip(im, a);
  ValueId *next = ARENA_ARRAY(&im->scratch, ValueId, a->count + 1);
  uint32_t carried = 0;
  for (uint32_t k = 0; k < a->count; k++)
    if (is_carried(&a->states[k]))
      next[carried++] = a->values[k];
  ValueId result = build(&im->b, OP_NEXT, A_OPT(a->again), A_VALS(next, carried));
  for (uint32_t k = 0; k < a->count && import_ok(im); k++) {
    const Carried *s = &a->states[k];
    if (!is_carried(s)) {
      results[k] = s->init;
      continue;
    }
    Dims shape = value_dims(g, result);
    for (uint32_t i = 0; i < shape.rank && trip != -1; i++)
      if (s->sizes[i].own && s->collects)
        shape.d[i] = trip;
      else if (s->sizes[i].own && s->sizes[i].steady)
        shape.d[i] = sym_add(t, value_dim(g, s->init, i), sym_mul(t, s->sizes[i].step, trip));
    ex_set_shape(im, result, shape);
    results[k] = result++;
  }
}

static bool begin_states(Import *im, Attempt *a) {
  const RunLoop *loop = a->loop;
  for (uint32_t k = 0; k < a->count; k++) {
    a->states[k].collects = k >= loop->state_count;
    if (a->states[k].collects)
      continue;
    if (loop->states[k].kind != BIND_VALUE || loop->states[k].packed)
      return import_fail(
          im, DIAG_UNSUPPORTED_FEATURE,
          "state %u is not a tensor of a common type, which needs a number of steps that is known "
          "when lowering: where it follows from a dim, give that one size (--dim)",
          output_of(a, k));
    a->states[k].init = loop->states[k].value;
  }
  return true;
}

/* What ends the loop: the number of steps, as the model has it and as its condition tells it, and
 * the conditions where they may end it before. */
static void begin_counting(Import *im, Attempt *a) {
  const RunLoop *loop = a->loop;
  SymTable *t = &im->g->syms;
  a->trip = loop->trip;
  a->condition = loop->condition;
  if (a->counted) {
    const LoopSteps *steps = &a->counted->steps;
    a->most = sym_upper(t, steps->most);
    if (a->trip.kind != ARG_VALUE)
      a->trip = A_INT(a->trip.kind == ARG_INT ? sym_min(t, a->trip.i, steps->most) : steps->most);
    if (a->trip.kind != ARG_VALUE && steps->exact)
      a->condition = 0;
  }
  if (a->trip.kind == ARG_INT)
    a->most = max_i64(sym_upper(t, a->trip.i), 0);
}

/* Attempts until the sizes are wide enough, which then may tell another number of steps. False when
 * the body failed. */
static bool build_widening(Import *im, Attempt *a) {
  NodeId last = im->g->last;
  uint32_t constraints = im->g->constraint_count;
  for (uint32_t tries = 0; import_ok(im); tries++) {
    if (!attempt(im, a))
      return false;
    if ((!a->narrow && !a->miscounted) || !import_ok(im))
      break;
    control_rollback(im, last, constraints);
    if (!a->narrow) {
      a->counted->steps = a->steps;
      break;
    }
    if (tries == ATTEMPTS_MAX)
      import_fail(im, DIAG_UNSUPPORTED_FEATURE, "the sizes of the states change in too many ways");
  }
  return true;
}

/* False when the body failed; *again: once more, with what is counted now. */
static bool build_once(Import *im, const RunLoop *loop, LoopCount *counted, ValueId *results,
                       bool *again) {
  Attempt a = {
      .loop = loop, .counted = counted, .most = INT64_MAX, .symbols = im->g->syms.symbol_count};
  a.count = loop->state_count + loop->scan_count;
  a.states = ARENA_ARRAY(&im->scratch, Carried, a.count + 1);
  a.values = ARENA_ARRAY(&im->scratch, ValueId, a.count + 1);
  *again = false;
  begin_counting(im, &a);
  bound_by_rows(im, &a);
  if (!import_ok(im) || !begin_states(im, &a))
    return true;
  if (!build_widening(im, &a))
    return false;
  *again = a.miscounted && import_ok(im);
  if (!*again && import_ok(im))
    end(im, &a, results);
  return true;
}

/* A wrong count has narrowed the ranges of the counters, too: it is done again with the widest. */
bool loop_build(Import *im, const RunLoop *loop, ValueId *results) {
  LoopCount *counted = loop->counted;
  bool again = true;
  for (uint32_t tries = 0; again && import_ok(im); tries++) {
    if (tries == 1)
      counted->steps = (LoopSteps){.found = true, .most = LOOP_COUNTED_MAX};
    if (counted && (!counted->steps.found || tries > 2))
      counted = NULL;
    if (!build_once(im, loop, counted, results, &again))
      return false;
  }
  return true;
}

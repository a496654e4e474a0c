/* Loop and Scan. Few steps whose number is known when lowering are unrolled, the body is translated
 * once for each; other loops run as loops (run_loop.c). */
#include "ir/match.h"
#include "onnx/translate/loop_count.h"

/* --- steps that Loop and Scan collect --- */

typedef struct Collected {
  ValueId *items; /* LOOP_STEPS_MAX at most */
  uint32_t count;
} Collected;

static Collected *collectors(Import *im, uint32_t count, int64_t steps) {
  Collected *list = ARENA_ARRAY(&im->scratch, Collected, count + 1);
  for (uint32_t i = 0; i < count; i++)
    list[i] = (Collected){ARENA_ARRAY(&im->scratch, ValueId, (size_t)steps + 1), 0};
  return list;
}

static void collect(Import *im, Collected *c, Binding binding) {
  if (binding.kind != BIND_VALUE) {
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "a scan output that is not a tensor");
    return;
  }
  c->items[c->count++] = ex_unsqueeze(im, binding.value, 0);
}

/* The steps one behind the other; none: an empty tensor of the declared shape of output i. */
static ValueId collected(Import *im, const Collected *c, uint32_t i) {
  if (c->count && import_ok(im))
    return ex_cat(im, c->items, c->count, 0);
  Dims dims;
  DType dtype;
  if (!out_declared_dims(im, i, &dims) || !out_declared_dtype(im, i, &dtype))
    return import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                       "the loop has no steps, and output %u no declared shape", i);
  return ex_filled(im, dtype, dims, 0);
}

/* Do these steps of the body make few enough nodes to be unrolled? */
static bool is_small(const Onnx__GraphProto *body, int64_t steps) {
  return steps >= 0 && steps <= LOOP_NODES_MAX &&
         (steps <= 1 || steps * (int64_t)max_i64((int64_t)body->n_node, 1) <= LOOP_NODES_MAX);
}

/* Does the body multiply by matrices, as the cells of recurrent networks do? Unrolled, each step
 * would have weights of its own in the memory of a delegate. */
static bool multiplies(const Onnx__GraphProto *body) {
  for (size_t i = 0; i < body->n_node; i++) {
    StrView op = onnx_text(body->node[i]->op_type);
    if (sv_eq_str(op, "MatMul") || sv_eq_str(op, "Gemm"))
      return true;
  }
  return false;
}

/* --- Loop --- */

typedef struct Loop {
  const Onnx__GraphProto *body;
  uint32_t states, scans;
  ArgIn trip;   /* NONE: no limit */
  int64_t most; /* trip as a number, -1: not known when lowering, or no limit */
  bool tensors; /* all states are tensors: the loop can run as one */
  bool counted; /* the condition told `most`, and must fail after so many steps */
} Loop;

/* The number of iterations as a number, a size, or a scalar of the running program. */
static void read_trip(Import *im, Loop *loop) {
  SymInt steps;
  ValueId trip = in(im, 0);
  if (!trip || !import_ok(im))
    return;
  if (one_int(im, trip, &steps)) {
    steps = sym_is_const(steps) ? max_i64(steps, 0) : steps;
    loop->trip = A_INT(steps);
    loop->most = sym_is_const(steps) ? steps : -1;
    return;
  }
  if (!dtype_is_int(ex_dtype(im, trip)))
    import_fail(im, DIAG_INPUT_TYPE, "the number of steps is %s", dtype_name(ex_dtype(im, trip)));
  else if (value_is_const(im->g, trip)) /* of one element it would be known */
    import_fail(im, DIAG_INPUT_RANK, "the number of steps is not one number");
  else
    loop->trip = A_VAL(ex_unary(im, OP_LOCAL_SCALAR_DENSE, trip));
}

static bool loop_read(Import *im, Loop *loop) {
  *loop = (Loop){.body = control_graph(im, "body"), .trip = A_NONE, .most = -1, .tensors = true};
  if (!import_ok(im))
    return false;
  loop->states = in_count(im) > 2 ? in_count(im) - 2 : 0;
  if (loop->body->n_output < 1 + (size_t)loop->states ||
      loop->body->n_input != 2 + (size_t)loop->states || loop->body->n_output > UINT16_MAX)
    return import_fail(im, DIAG_INPUT_COUNT,
                       "the body has %zu inputs and %zu outputs for %u states", loop->body->n_input,
                       loop->body->n_output, loop->states);
  loop->scans = (uint32_t)loop->body->n_output - 1 - loop->states;
  for (uint32_t i = 0; i < loop->states; i++)
    loop->tensors &= in_binding(im, 2 + i).kind == BIND_VALUE;
  read_trip(im, loop);
  return import_ok(im);
}

/* The inputs of the body before the first step; room for two numbers comes before the states. */
static Binding *loop_inputs(Import *im, const Loop *loop) {
  Binding *inputs = ARENA_ARRAY(&im->scratch, Binding, 2 + loop->states);
  for (uint32_t i = 0; i < loop->states; i++)
    inputs[2 + i] = in_binding(im, 2 + i);
  return inputs;
}

/* One step: states in inputs[2...] are replaced; false when the body has failed. */
static bool loop_step(Import *im, const Loop *loop, int64_t t, Binding *inputs, Binding *outputs,
                      Collected *scans) {
  Onnx__ValueInfoProto *const *declared = loop->body->input;
  inputs[0] = binding_of(loop_scalar(im, declared[0], ex_int(im, t)));
  ValueId condition = build_scalar_int(&im->b, DTYPE_BOOL, 1);
  inputs[1] = binding_of(loop_scalar(im, declared[1], condition));
  if (!import_inline(im, loop->body, inputs, 2 + loop->states, outputs,
                     1 + loop->states + loop->scans))
    return false;
  for (uint32_t i = 0; i < loop->states; i++)
    inputs[2 + i] = outputs[1 + i];
  for (uint32_t i = 0; i < loop->scans; i++)
    collect(im, &scans[i], outputs[1 + loop->states + i]);
  return true;
}

typedef enum Unrolled { UNROLLED, UNROLLED_NOT, UNROLLED_FAILED } Unrolled;

/* Scan output i of a loop without steps: of its declared shape, else with the row that the first
 * step would have. */
static ValueId loop_no_rows(Import *im, const Loop *loop, uint32_t i) {
  Dims dims;
  uint32_t symbols = im->g->syms.symbol_count;
  Collected *scans = collectors(im, loop->scans, 1), none = {0};
  Binding *outputs = ARENA_ARRAY(&im->scratch, Binding, loop->body->n_output);
  ControlTrial trial;
  if (out_declared_dims(im, i, &dims))
    return collected(im, &none, i);
  control_try(im, &trial);
  bool fine = loop_step(im, loop, 0, loop_inputs(im, loop), outputs, scans) && import_ok(im);
  ValueId row = fine ? scans[i - loop->states].items[0] : 0;
  DType dtype = ex_dtype(im, row);
  dims = shape_of(im, row);
  for (uint32_t k = 1; k < dims.rank; k++)
    fine &= !loop_is_inner(&im->g->syms, dims.d[k], symbols);
  control_take_back(&trial);
  if (!fine)
    return collected(im, &none, i);
  dims.d[0] = 0;
  return ex_filled(im, dtype, dims, 0);
}

static void loop_outputs(Import *im, const Loop *loop, const Binding *states, Collected *scans) {
  for (uint32_t i = 0; i < loop->states + loop->scans && import_ok(im); i++)
    if (i < loop->states)
      out_binding(im, i, states[i]);
    else if (out_wanted(im, i))
      out(im, i,
          scans[i - loop->states].count ? collected(im, &scans[i - loop->states], i)
                                        : loop_no_rows(im, loop, i));
}

/* NOT: the condition of some step is known only while running. */
static Unrolled loop_unroll(Import *im, const Loop *loop, bool holds) {
  Collected *scans = collectors(im, loop->scans, min_i64(loop->most, LOOP_STEPS_MAX));
  Binding *inputs = loop_inputs(im, loop),
          *outputs = ARENA_ARRAY(&im->scratch, Binding, loop->body->n_output);
  for (int64_t t = 0; t < loop->most && holds && import_ok(im); t++) {
    if (!loop_step(im, loop, t, inputs, outputs, scans))
      return UNROLLED_FAILED;
    ValueId next = outputs[0].kind == BIND_VALUE ? outputs[0].value : 0;
    if (import_ok(im) && (t + 1 < loop->most || loop->counted) &&
        !control_known_bool(im, next, &holds))
      return UNROLLED_NOT;
  }
  if (loop->counted && loop->most && holds)
    return UNROLLED_NOT;
  loop_outputs(im, loop, inputs + 2, scans);
  return UNROLLED;
}

static RunLoop loop_to_run(Import *im, const Loop *loop, ValueId condition) {
  return (RunLoop){.body = loop->body,
                   .numbered = true,
                   .trip = loop->trip,
                   .condition = condition ? control_condition(im, condition) : 0,
                   .states = loop_inputs(im, loop) + 2,
                   .state_count = loop->states,
                   .scan_count = loop->scans};
}

static void loop_run(Import *im, const RunLoop *run) {
  uint32_t count = run->state_count + run->scan_count;
  ValueId *results = ARENA_ARRAY(&im->scratch, ValueId, count + 1);
  if (loop_build(im, run, results))
    loop_bind(im, run, results);
  else
    control_poison(im);
}

/* Few cells in a row may be one delegate, with the nodes around them. */
enum { CELLS_UNROLLED = 4 };

/* Do the nodes behind `last` pick matrices out of a constant, as of the layers of a model that
 * stand in one? Unrolled, each step has weights that are known. */
static bool picks_matrices(const Graph *g, NodeId last) {
  for (NodeId n = last ? node_cget(g, last)->next : g->first; n; n = node_cget(g, n)->next) {
    OpId op = (OpId)node_cget(g, n)->op;
    if (op == OP_LOOP || match_matrix_product(op))
      continue;
    FOR_OPERANDS(g, n, v, {
      if (value_is_const(g, v) && value_rank(g, v) > 2 && value_dim(g, v, 0) != 1)
        return true;
    });
  }
  return false;
}

/* Are the steps cells of a recurrent network: products by matrices that stay the same, and states
 * that keep their sizes? Then the loop takes no longer than its steps in a row would, and weights
 * are there once. */
static bool is_cell(Import *im, const Loop *loop, const RunLoop *run) {
  if (!loop->tensors || loop->most <= CELLS_UNROLLED || !multiplies(loop->body))
    return false;
  uint32_t count = run->state_count + run->scan_count;
  ValueId *results = ARENA_ARRAY(&im->scratch, ValueId, count);
  NodeId last = im->g->last;
  ControlTrial trial;
  control_try(im, &trial);
  bool cell = loop_build(im, run, results) && import_ok(im) && !picks_matrices(im->g, last);
  for (uint32_t i = 0; i < count && cell; i++)
    cell = i < run->state_count ? value_same_type(im->g, results[i], run->states[i].value)
                                : type_is_static(vt(im, results[i]));
  control_take_back(&trial);
  return cell;
}

/* A loop that ends after few steps by its condition is unrolled, too. */
static bool is_unrolled(const Loop *loop) {
  return is_small(loop->body, loop->most) ||
         (!loop->tensors && loop->most >= 0 && loop->most <= LOOP_STEPS_MAX);
}

/* The number of steps that the condition tells, where it is the smaller one. */
static void read_count(Loop *loop, const LoopSteps *steps) {
  bool smaller = loop->trip.kind == ARG_NONE ||
                 (loop->trip.kind == ARG_INT && loop->most >= 0 && steps->most < loop->most);
  loop->counted = steps->exact && sym_is_const(steps->most) && smaller;
  if (loop->counted)
    loop->most = steps->most;
}

/* Nothing has been built of it yet but scalars that it reads. */
static Unrolled loop_run_counted(Import *im, Loop *loop, ValueId condition) {
  RunLoop run = loop_to_run(im, loop, condition);
  loop_lists(im, &run);
  NodeId last = im->g->last;
  uint32_t constraints = im->g->constraint_count;
  LoopCount count;
  if (loop_count(im, &run, &count)) {
    run.counted = &count;
    read_count(loop, &count.steps);
  }
  Unrolled unrolled = UNROLLED_NOT;
  if (loop->counted && is_unrolled(loop) && !is_cell(im, loop, &run))
    unrolled = loop_unroll(im, loop, true);
  if (unrolled == UNROLLED_NOT) {
    control_rollback(im, last, constraints);
    loop_run(im, &run);
  }
  return unrolled;
}

/* As is_cell, of a loop whose number of steps is known before anything is built. */
static bool is_known_cell(Import *im, const Loop *loop) {
  RunLoop run = loop_to_run(im, loop, 0);
  return is_cell(im, loop, &run);
}

void translate_loop(Import *im) {
  Loop loop;
  bool holds = true;
  ValueId condition = in(im, 1);
  NodeId last = im->g->last;
  uint32_t constraints = im->g->constraint_count;
  if (!loop_read(im, &loop))
    return;
  bool known = !condition || control_known_bool(im, condition, &holds);
  if (known && !holds)
    loop.most = 0;
  Unrolled unrolled = UNROLLED_NOT;
  if (known && is_unrolled(&loop) && !is_known_cell(im, &loop))
    unrolled = loop_unroll(im, &loop, holds);
  if (unrolled == UNROLLED_NOT && import_ok(im)) {
    if (loop.trip.kind != ARG_VALUE) /* which is a node of its own */
      control_rollback(im, last, constraints);
    unrolled = loop_run_counted(im, &loop, known ? 0 : condition);
  }
  if (unrolled == UNROLLED_FAILED)
    control_poison(im);
}

/* --- Scan --- */

typedef struct Scan {
  const Onnx__GraphProto *body;
  uint32_t states, scan_inputs, scan_outputs;
  const int64_t *in_axes, *out_axes, *in_directions, *out_directions; /* NULL: zeros */
} Scan;

static const int64_t *scan_list(Import *im, const char *name, uint32_t wanted) {
  Ints values;
  if (!attr_ints(im, name, &values))
    return NULL;
  if (values.count != wanted)
    import_fail(im, DIAG_ATTR_VALUE, "'%s' has %u entries, not %u", name, values.count, wanted);
  return values.at;
}

/* 1: from the end. */
static const int64_t *scan_directions(Import *im, const char *name, uint32_t count) {
  const int64_t *list = scan_list(im, name, count);
  for (uint32_t i = 0; list && i < count && import_ok(im); i++)
    if (list[i] != 0 && list[i] != 1)
      import_fail(im, DIAG_ATTR_VALUE, "'%s' has entry %lld, not 0 or 1", name, (long long)list[i]);
  return list;
}

/* first: the input where states begin; batched: opset 8 has a batch dim in front. */
static bool scan_read(Import *im, Scan *scan, uint32_t first, bool batched) {
  int64_t scan_inputs = attr_int_required(im, "num_scan_inputs");
  *scan = (Scan){.body = control_graph(im, "body")};
  if (!import_ok(im))
    return false;
  int64_t given = (int64_t)in_count(im) - first;
  if (scan_inputs < 1 || scan_inputs > given || scan->body->n_input != (size_t)given ||
      scan->body->n_output < (size_t)(given - scan_inputs) || scan->body->n_output > UINT16_MAX)
    return import_fail(im, DIAG_ATTR_VALUE,
                       "num_scan_inputs %lld does not fit the node and its body",
                       (long long)scan_inputs);
  scan->scan_inputs = (uint32_t)scan_inputs;
  scan->states = (uint32_t)(given - scan_inputs);
  scan->scan_outputs = (uint32_t)scan->body->n_output - scan->states;
  if (batched) {
    scan->in_directions = scan_directions(im, "directions", scan->scan_inputs);
  } else {
    scan->in_axes = scan_list(im, "scan_input_axes", scan->scan_inputs);
    scan->out_axes = scan_list(im, "scan_output_axes", scan->scan_outputs);
    scan->in_directions = scan_directions(im, "scan_input_directions", scan->scan_inputs);
    scan->out_directions = scan_directions(im, "scan_output_directions", scan->scan_outputs);
  }
  return import_ok(im);
}

/* The slices, and how many there are of each. */
static LoopSlice *scan_slices(Import *im, const Scan *scan, const ValueId *inputs, SymInt *steps) {
  LoopSlice *slices = ARENA_ARRAY(&im->scratch, LoopSlice, scan->scan_inputs);
  for (uint32_t i = 0; i < scan->scan_inputs && import_ok(im); i++) {
    ValueId x = inputs[scan->states + i];
    uint32_t axis = import_axis(im, scan->in_axes ? scan->in_axes[i] : 0, ex_rank(im, x));
    slices[i] = (LoopSlice){x, axis, scan->in_directions && scan->in_directions[i]};
    SymInt length = ex_dim(im, x, axis);
    if (i == 0)
      *steps = length;
    else if (import_ok(im) && sym_known_eq(&im->g->syms, *steps, length) != 1)
      import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                  "scan inputs 0 and %u are not known to have the same number of steps", i);
  }
  return slices;
}

/* Translates the body once for each step; arguments: those of the first one, whose states are
 * replaced. */
static bool scan_unroll(Import *im, const Scan *scan, const LoopSlice *slices, int64_t steps,
                        Binding *arguments, ValueId *results) {
  uint32_t count = scan->states + scan->scan_inputs, outputs = scan->states + scan->scan_outputs;
  Collected *rows = collectors(im, scan->scan_outputs, steps);
  Binding *given = ARENA_ARRAY(&im->scratch, Binding, outputs + 1);
  for (int64_t t = 0; t < steps && import_ok(im); t++) {
    for (uint32_t i = 0; i < scan->scan_inputs; i++) {
      const LoopSlice *s = &slices[i];
      ValueId v = ex_select(im, s->tensor, s->axis, s->backwards ? steps - 1 - t : t);
      arguments[scan->states + i] = binding_of(v);
    }
    if (!import_inline(im, scan->body, arguments, count, given, outputs))
      return false;
    for (uint32_t i = 0; i < outputs; i++)
      if (i >= scan->states)
        collect(im, &rows[i - scan->states], given[i]);
      else if (given[i].kind == BIND_VALUE)
        arguments[i] = binding_of(given[i].value);
      else
        import_fail(im, DIAG_UNSUPPORTED_FEATURE, "state %u of the body is not a tensor", i);
  }
  for (uint32_t i = 0; i < outputs && import_ok(im); i++)
    results[i] = i < scan->states ? arguments[i].value : collected(im, &rows[i - scan->states], i);
  return true;
}

/* The rows of a scan output, which are one behind the other, in its direction and along its axis.
 */
static ValueId scan_arrange(Import *im, const Scan *scan, uint32_t i, ValueId rows) {
  int64_t axis = scan->out_axes ? scan->out_axes[i] : 0;
  if (scan->out_directions && scan->out_directions[i] && import_ok(im))
    rows = ex_flip(im, rows, 0);
  return axis ? ex_move_dim(im, rows, 0, import_axis(im, axis, ex_rank(im, rows))) : rows;
}

/* Runs the body over all steps. inputs: states, then scanned tensors; results: states, then scan
 * outputs. */
static bool scan_run(Import *im, const Scan *scan, const ValueId *inputs, ValueId *results) {
  SymInt steps = 0;
  LoopSlice *slices = scan_slices(im, scan, inputs, &steps);
  Binding *arguments = ARENA_ARRAY(&im->scratch, Binding, scan->states + scan->scan_inputs + 1);
  for (uint32_t i = 0; i < scan->states; i++)
    arguments[i] = binding_of(inputs[i]);
  if (!import_ok(im))
    return true;
  bool unrolled = sym_is_const(steps) && is_small(scan->body, steps) &&
                  (steps <= PRODUCTS_UNROLLED || !multiplies(scan->body));
  const RunLoop loop = {.body = scan->body,
                        .trip = A_INT(steps),
                        .states = arguments,
                        .state_count = scan->states,
                        .slices = slices,
                        .slice_count = scan->scan_inputs,
                        .scan_count = scan->scan_outputs};
  if (unrolled ? !scan_unroll(im, scan, slices, steps, arguments, results)
               : !loop_build(im, &loop, results))
    return false;
  for (uint32_t i = 0; i < scan->scan_outputs && steps != 0 && import_ok(im); i++)
    results[scan->states + i] = scan_arrange(im, scan, i, results[scan->states + i]);
  return true;
}

/* Opset 8: every tensor has a batch dim in front; each batch entry is scanned alone. */
void translate_scan_batched(Import *im) {
  Scan scan;
  if (in(im, 0)) {
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "Scan with sequence lengths is not supported");
    return;
  }
  if (!scan_read(im, &scan, 1, true))
    return;
  uint32_t count = scan.states + scan.scan_inputs, results = scan.states + scan.scan_outputs;
  ValueId x = in_required(im, 1);
  int64_t batch = ex_fixed(im, x, 0);
  if (batch < 1 || batch > LOOP_STEPS_MAX)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "a batch of %lld would be unrolled",
                (long long)batch);
  if (!import_ok(im))
    return;
  Collected *all = collectors(im, results, batch);
  ValueId *inputs = ARENA_ARRAY(&im->scratch, ValueId, count + 1),
          *outputs = ARENA_ARRAY(&im->scratch, ValueId, results + 1);
  for (int64_t n = 0; n < batch && import_ok(im); n++) {
    for (uint32_t i = 0; i < count; i++)
      inputs[i] = ex_select(im, in_required(im, 1 + i), 0, n);
    if (!scan_run(im, &scan, inputs, outputs)) {
      control_poison(im);
      return;
    }
    for (uint32_t i = 0; i < results && import_ok(im); i++)
      collect(im, &all[i], binding_of(outputs[i]));
  }
  for (uint32_t i = 0; i < results && import_ok(im); i++)
    out(im, i, collected(im, &all[i], i));
}

void translate_scan(Import *im) {
  Scan scan;
  if (!scan_read(im, &scan, 0, false))
    return;
  uint32_t count = scan.states + scan.scan_inputs, results = scan.states + scan.scan_outputs;
  ValueId *inputs = ARENA_ARRAY(&im->scratch, ValueId, count + 1),
          *outputs = ARENA_ARRAY(&im->scratch, ValueId, results + 1);
  for (uint32_t i = 0; i < count; i++)
    inputs[i] = in_required(im, i);
  if (!scan_run(im, &scan, inputs, outputs)) {
    control_poison(im);
    return;
  }
  for (uint32_t i = 0; i < results && import_ok(im); i++)
    out(im, i, outputs[i]);
}

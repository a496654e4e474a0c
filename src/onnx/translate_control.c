/* If, Loop, Scan: the subgraphs are translated in place. A condition known when lowering takes one
 * branch; one that is not chooses between the results of both (subgraphs have no effects, so
 * computing both is right). Loops are unrolled: the number of steps must be known, or follow from
 * the declared shape of a scan output. */
#include "onnx/express.h"

enum { LOOP_STEPS_MAX = 4096 };

static bool known_bool(Import *im, ValueId v, bool *value) {
  const SymInt *values;
  uint32_t count;
  if (!v || !value_ints(im, v, &values, &count) || count != 1 || !sym_is_const(values[0]))
    return false;
  *value = values[0] != 0;
  return true;
}

/* The condition as a 0-d tensor. */
static ValueId condition_of(Import *im, ValueId v) {
  if (import_ok(im) && value_dtype(im->g, v) != DTYPE_BOOL)
    return import_fail(im, DIAG_INPUT_TYPE, "the condition is %s, not bool",
                       dtype_name(value_dtype(im->g, v)));
  return ex_view(im, v, NULL, 0);
}

/* a where the condition holds, b elsewhere: two results of equal type. */
static Binding choose(Import *im, ValueId condition, Binding a, Binding b, const char *what,
                      uint32_t i) {
  if (a.kind == BIND_POISON || b.kind == BIND_POISON)
    return (Binding){.kind = BIND_POISON};
  if (a.kind != BIND_VALUE || b.kind != BIND_VALUE) {
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "%s %u is no tensor, which needs a condition known when lowering", what, i);
    return a;
  }
  if (import_ok(im) && a.value != b.value &&
      (value_get(im->g, a.value)->type != value_get(im->g, b.value)->type ||
       a.packed != b.packed)) {
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "%s %u has two shapes or element types, which needs a condition known when "
                "lowering",
                what, i);
    return a;
  }
  if (a.value == b.value)
    return a;
  return (Binding){
      .kind = BIND_VALUE, .value = ex_where(im, condition, a.value, b.value), .packed = a.packed};
}

/* --- If --- */

static const Onnx__GraphProto *required_graph(Import *im, const char *name) {
  const Onnx__GraphProto *graph = attr_graph(im, name);
  if (!graph && import_ok(im))
    import_fail(im, DIAG_ATTR_MISSING, "attribute '%s' is missing", name);
  return graph;
}

void translate_if(Import *im) {
  ValueId condition = in_required(im, 0);
  const Onnx__GraphProto *branches[] = {required_graph(im, "then_branch"),
                                        required_graph(im, "else_branch")};
  if (!import_ok(im))
    return;
  uint32_t count = out_count(im);
  Binding *results[2];
  bool value, known = known_bool(im, condition, &value), sound = true;
  for (uint32_t k = 0; k < 2 && import_ok(im); k++) {
    results[k] = ARENA_ARRAY(&im->scratch, Binding, count + 1);
    if (!known || value == (k == 0))
      sound &= import_inline(im, branches[k], NULL, 0, results[k], count);
  }
  if (!import_ok(im))
    return;
  condition = known ? 0 : condition_of(im, condition);
  for (uint32_t i = 0; i < count && import_ok(im); i++) {
    if (!sound)
      out_binding(im, i, (Binding){.kind = BIND_POISON});
    else if (known)
      out_binding(im, i, results[value ? 0 : 1][i]);
    else
      out_binding(im, i, choose(im, condition, results[0][i], results[1][i], "output", i));
  }
}

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

static void collect(Import *im, Collected *c, Binding binding, int64_t axis) {
  if (binding.kind != BIND_VALUE) {
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "a scan output that is no tensor");
    return;
  }
  uint32_t rank = ex_rank(im, binding.value), dim = axis ? import_axis(im, axis, rank + 1) : 0;
  c->items[c->count++] = ex_unsqueeze(im, binding.value, dim);
}

/* The steps one behind the other; none: an empty tensor of the declared shape of output i. */
static ValueId collected(Import *im, const Collected *c, uint32_t i, int64_t axis) {
  if (c->count && import_ok(im))
    return ex_cat(im, c->items, c->count,
                  axis ? import_axis(im, axis, ex_rank(im, c->items[0])) : 0);
  SymInt dims[MAX_RANK];
  uint32_t rank;
  DType dtype;
  if (!out_declared_dims(im, i, dims, &rank) || !out_declared_dtype(im, i, &dtype))
    return import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                       "the loop has no steps, and output %u no declared shape", i);
  return ex_full(im, dtype, dims, rank, 0);
}

/* --- Loop --- */

typedef struct Loop {
  const Onnx__GraphProto *body;
  uint32_t states, scans;
  int64_t trip;     /* most steps; -1 not known */
  int64_t declared; /* steps by the declared shape of a scan output; -1 none */
} Loop;

static bool loop_read(Import *im, Loop *loop) {
  *loop = (Loop){.body = required_graph(im, "body"), .trip = -1, .declared = -1};
  if (!import_ok(im))
    return false;
  loop->states = in_count(im) > 2 ? in_count(im) - 2 : 0;
  if (loop->body->n_output < 1 + (size_t)loop->states ||
      loop->body->n_input != 2 + (size_t)loop->states || loop->body->n_output > UINT16_MAX) {
    import_fail(im, DIAG_INPUT_COUNT, "the body has %zu inputs and %zu outputs for %u states",
                loop->body->n_input, loop->body->n_output, loop->states);
    return false;
  }
  loop->scans = (uint32_t)loop->body->n_output - 1 - loop->states;
  const int64_t *trip;
  uint32_t count, rank;
  if (!in(im, 0))
    loop->trip = INT64_MAX;
  else if (in_consts(im, 0, &trip, &count) && count == 1)
    loop->trip = max_i64(trip[0], 0);
  for (uint32_t i = 0; i < loop->scans; i++) {
    SymInt dims[MAX_RANK];
    if (out_declared_dims(im, loop->states + i, dims, &rank) && rank && sym_is_const(dims[0]))
      loop->declared = dims[0];
  }
  return import_ok(im);
}

/* How many steps to unroll at most. A declared shape says how often a condition that arrives while
 * running held; without one, the condition is asked in every step (loop_ask). */
static int64_t loop_steps(Import *im, const Loop *loop, bool runtime_condition) {
  if ((loop->trip < 0 || runtime_condition) && loop->declared >= 0)
    return loop->declared;
  if (loop->trip < 0)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "the number of steps is known only while running, and no scan output with a fixed "
                "declared shape tells it");
  return loop->trip;
}

/* The condition of the next step arrives while running: states are kept from then on. */
static ValueId loop_ask(Import *im, const Loop *loop, ValueId active, ValueId next) {
  if (loop->declared >= 0 || !import_ok(im))
    return active;
  if (loop->scans || loop->trip > LOOP_STEPS_MAX)
    return import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                       "the loop's condition is known only while running, and %s",
                       loop->scans ? "scan outputs have no fixed declared shape"
                                   : "there is no bound of the number of steps");
  next = condition_of(im, next);
  return active ? ex_binary(im, OP_LOGICAL_AND, active, next) : next;
}

/* One step: states in inputs[2...] are replaced; false when the body has failed. */
static bool loop_step(Import *im, const Loop *loop, int64_t t, ValueId active, Binding *inputs,
                      Binding *outputs, Collected *scans) {
  ValueId running = active ? active : build_scalar_int(&im->b, DTYPE_BOOL, 1);
  inputs[0] = (Binding){.kind = BIND_VALUE, .value = build_scalar_int(&im->b, DTYPE_I64, t)};
  inputs[1] = (Binding){.kind = BIND_VALUE, .value = running};
  if (!import_inline(im, loop->body, inputs, 2 + loop->states, outputs,
                     1 + loop->states + loop->scans))
    return false;
  for (uint32_t i = 0; i < loop->states; i++)
    inputs[2 + i] =
        active ? choose(im, active, outputs[1 + i], inputs[2 + i], "state", i) : outputs[1 + i];
  for (uint32_t i = 0; i < loop->scans; i++)
    collect(im, &scans[i], outputs[1 + loop->states + i], 0);
  return true;
}

void translate_loop(Import *im) {
  Loop loop;
  bool holds = true, sound = true;
  ValueId condition = in(im, 1), active = 0;
  if (!loop_read(im, &loop))
    return;
  bool runtime = condition && !known_bool(im, condition, &holds);
  int64_t steps = loop_steps(im, &loop, runtime);
  if (runtime)
    active = loop_ask(im, &loop, 0, condition);
  Collected *scans = collectors(im, loop.scans, min_i64(steps, LOOP_STEPS_MAX));
  Binding *inputs = ARENA_ARRAY(&im->scratch, Binding, 2 + loop.states),
          *outputs = ARENA_ARRAY(&im->scratch, Binding, loop.body->n_output);
  for (uint32_t i = 0; i < loop.states; i++)
    inputs[2 + i] = in_binding(im, 2 + i);
  for (int64_t t = 0; t < steps && holds && import_ok(im) && sound; t++) {
    if (t >= LOOP_STEPS_MAX)
      import_fail(im, DIAG_UNSUPPORTED_FEATURE, "more than %d steps would be unrolled",
                  LOOP_STEPS_MAX);
    else
      sound = loop_step(im, &loop, t, active, inputs, outputs, scans);
    if (!sound || !import_ok(im))
      break;
    ValueId next = outputs[0].kind == BIND_VALUE ? outputs[0].value : 0;
    if (next && next != active && !known_bool(im, next, &holds))
      active = loop_ask(im, &loop, active, next);
    if (loop.declared >= 0 && runtime)
      holds = true;
  }
  for (uint32_t i = 0; i < loop.states + loop.scans && import_ok(im); i++)
    if (!sound)
      out_binding(im, i, (Binding){.kind = BIND_POISON});
    else if (i < loop.states)
      out_binding(im, i, inputs[2 + i]);
    else if (out_wanted(im, i))
      out(im, i, collected(im, &scans[i - loop.states], i, 0));
}

/* --- Scan --- */

typedef struct Scan {
  const Onnx__GraphProto *body;
  uint32_t states, scan_inputs, scan_outputs;
  int64_t steps;
  const int64_t *in_axes, *out_axes, *in_directions, *out_directions; /* NULL: zeros */
} Scan;

static const int64_t *scan_list(Import *im, const char *name, uint32_t wanted) {
  const int64_t *values;
  uint32_t count;
  if (!attr_ints(im, name, &values, &count))
    return NULL;
  if (count != wanted)
    import_fail(im, DIAG_ATTR_VALUE, "'%s' has %u entries, not %u", name, count, wanted);
  return values;
}

/* first: the input where states begin; batched: opset 8 has a batch dim in front. */
static bool scan_read(Import *im, Scan *scan, uint32_t first, bool batched) {
  int64_t scan_inputs = attr_int_required(im, "num_scan_inputs");
  *scan = (Scan){.body = required_graph(im, "body")};
  if (!import_ok(im))
    return false;
  int64_t given = (int64_t)in_count(im) - first;
  if (scan_inputs < 1 || scan_inputs > given || scan->body->n_input != (size_t)given ||
      scan->body->n_output < (size_t)(given - scan_inputs) || scan->body->n_output > UINT16_MAX) {
    import_fail(im, DIAG_ATTR_VALUE, "num_scan_inputs %lld does not fit the node and its body",
                (long long)scan_inputs);
    return false;
  }
  scan->scan_inputs = (uint32_t)scan_inputs;
  scan->states = (uint32_t)(given - scan_inputs);
  scan->scan_outputs = (uint32_t)scan->body->n_output - scan->states;
  if (batched) {
    scan->in_directions = scan_list(im, "directions", scan->scan_inputs);
  } else {
    scan->in_axes = scan_list(im, "scan_input_axes", scan->scan_inputs);
    scan->out_axes = scan_list(im, "scan_output_axes", scan->scan_outputs);
    scan->in_directions = scan_list(im, "scan_input_directions", scan->scan_inputs);
    scan->out_directions = scan_list(im, "scan_output_directions", scan->scan_outputs);
  }
  return import_ok(im);
}

/* Runs the body over all steps. inputs: states, then scanned tensors; states are updated, scan
 * outputs go to results. */
static bool scan_run(Import *im, Scan *scan, ValueId *inputs, ValueId *results) {
  uint32_t count = scan->states + scan->scan_inputs;
  uint32_t axes[UINT8_MAX] = {0};
  Binding *arguments = ARENA_ARRAY(&im->scratch, Binding, count + 1),
          *outputs = ARENA_ARRAY(&im->scratch, Binding, scan->states + scan->scan_outputs + 1);
  for (uint32_t i = 0; i < scan->scan_inputs && i < UINT8_MAX && import_ok(im); i++) {
    ValueId x = inputs[scan->states + i];
    axes[i] = import_axis(im, scan->in_axes ? scan->in_axes[i] : 0, ex_rank(im, x));
    scan->steps = ex_fixed(im, x, axes[i]);
  }
  if (import_ok(im) && (scan->steps > LOOP_STEPS_MAX || scan->scan_inputs > UINT8_MAX))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "%lld steps would be unrolled, at most %d are supported", (long long)scan->steps,
                LOOP_STEPS_MAX);
  if (!import_ok(im))
    return true;
  Collected *scans = collectors(im, scan->scan_outputs, scan->steps);
  for (int64_t t = 0; t < scan->steps && import_ok(im); t++) {
    for (uint32_t i = 0; i < count; i++) {
      uint32_t k = i - scan->states;
      ValueId v = inputs[i];
      if (i >= scan->states) {
        bool back = scan->in_directions && scan->in_directions[k];
        v = ex_select(im, v, axes[k], back ? scan->steps - 1 - t : t);
      }
      arguments[i] = (Binding){.kind = BIND_VALUE, .value = v};
    }
    if (!import_inline(im, scan->body, arguments, count, outputs,
                       scan->states + scan->scan_outputs))
      return false;
    for (uint32_t i = 0; i < scan->states + scan->scan_outputs; i++)
      if (i >= scan->states)
        collect(im, &scans[i - scan->states], outputs[i],
                scan->out_axes ? scan->out_axes[i - scan->states] : 0);
      else if (outputs[i].kind == BIND_VALUE)
        inputs[i] = outputs[i].value;
      else
        import_fail(im, DIAG_UNSUPPORTED_FEATURE, "state %u of the body is no tensor", i);
  }
  for (uint32_t i = 0; i < scan->scan_outputs && import_ok(im); i++) {
    Collected *c = &scans[i];
    for (uint32_t k = 0; scan->out_directions && scan->out_directions[i] && k < c->count / 2; k++) {
      ValueId swap = c->items[k];
      c->items[k] = c->items[c->count - 1 - k];
      c->items[c->count - 1 - k] = swap;
    }
    results[i] = collected(im, c, scan->states + i, scan->out_axes ? scan->out_axes[i] : 0);
  }
  return true;
}

static void poison_all(Import *im) {
  for (uint32_t i = 0; i < out_count(im); i++)
    out_binding(im, i, (Binding){.kind = BIND_POISON});
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
  if (import_ok(im) && (batch < 1 || batch > LOOP_STEPS_MAX))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "a batch of %lld would be unrolled",
                (long long)batch);
  if (!import_ok(im))
    return;
  Collected *all = collectors(im, results, batch);
  ValueId *inputs = ARENA_ARRAY(&im->scratch, ValueId, count + 1),
          *outputs = ARENA_ARRAY(&im->scratch, ValueId, scan.scan_outputs + 1);
  for (int64_t n = 0; n < batch && import_ok(im); n++) {
    for (uint32_t i = 0; i < count; i++)
      inputs[i] = ex_select(im, in_required(im, 1 + i), 0, n);
    if (!scan_run(im, &scan, inputs, outputs)) {
      poison_all(im);
      return;
    }
    for (uint32_t i = 0; i < results && import_ok(im); i++)
      collect(im, &all[i],
              (Binding){.kind = BIND_VALUE,
                        .value = i < scan.states ? inputs[i] : outputs[i - scan.states]},
              0);
  }
  for (uint32_t i = 0; i < results && import_ok(im); i++)
    out(im, i, collected(im, &all[i], i, 0));
}

void translate_scan(Import *im) {
  Scan scan;
  if (!scan_read(im, &scan, 0, false))
    return;
  uint32_t count = scan.states + scan.scan_inputs;
  ValueId *inputs = ARENA_ARRAY(&im->scratch, ValueId, count + 1),
          *outputs = ARENA_ARRAY(&im->scratch, ValueId, scan.scan_outputs + 1);
  for (uint32_t i = 0; i < count; i++)
    inputs[i] = in_required(im, i);
  if (!import_ok(im))
    return;
  if (!scan_run(im, &scan, inputs, outputs)) {
    poison_all(im);
    return;
  }
  for (uint32_t i = 0; i < scan.states + scan.scan_outputs && import_ok(im); i++)
    out(im, i, i < scan.states ? inputs[i] : outputs[i - scan.states]);
}

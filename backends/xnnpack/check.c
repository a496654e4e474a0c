/* See check.h. Ids, element types, constants, the arguments of the call; shape.c has the shapes. */
#include "backends/xnnpack/check.h"

#include "support/keymap.h"

bool xr_fail(XrCheck *c, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (!c->fault)
    c->fault = arena_vprintf(c->arena, format, args);
  va_end(args);
  return false;
}

/* --- constants --- */

/* The data that the constants name. */
static void find_data(XrCheck *c) {
  const XrGraph *x = c->x;
  KeyMap keys = keymap_make(c->arena, (uint64_t)(uintptr_t)c->arena); /* no file can know it */
  uint32_t *slot;
  for (uint32_t i = 0; i < c->call->data_count; i++) {
    StrView key = c->call->data[i].key;
    if (!keymap_get(&keys, key.data, (uint32_t)key.size, &slot))
      *slot = i + 1;
  }
  for (uint32_t i = 1; i < x->constant_count; i++) {
    StrView key = x->constants[i].key;
    uint32_t found = key.data ? keymap_get(&keys, key.data, (uint32_t)key.size, &slot) : 0;
    c->data[i] = found ? &c->call->data[found - 1] : NULL;
  }
}

/* Where the runtime would read beyond the data, or find them misplaced. what: "value 3" as whose
 * constant they are. */
static void check_data(XrCheck *c, const char *what, uint32_t id, uint32_t constant,
                       uint64_t bytes) {
  if (constant >= c->x->constant_count) {
    xr_fail(c, "%s %u is constant %u, and there are %u", what, id, constant, c->x->constant_count);
    return;
  }
  const XrConstant *k = &c->x->constants[constant];
  if (k->size != bytes)
    xr_fail(c, "%s %u has %llu bytes, and its constant %llu", what, id, (unsigned long long)bytes,
            (unsigned long long)k->size);
  if (!k->key.data)
    return;
  const DelegateData *data = c->data[constant];
  if (!data)
    xr_fail(c, "the program has no data '" SV_FMT "', which %s %u needs", SV_ARG(k->key), what, id);
  else if (data->size != k->size)
    xr_fail(c, "the data '" SV_FMT "' have %llu bytes instead of %llu", SV_ARG(k->key),
            (unsigned long long)data->size, (unsigned long long)k->size);
}

static void check_constant(XrCheck *c, uint32_t id) {
  const XrValue *v = &c->x->values[id];
  uint64_t bytes;
  if (!xr_value_bytes(v, &bytes))
    xr_fail(c, "value %u is too large", id);
  else
    check_data(c, "value", id, v->constant, bytes);
  if (v->scales)
    check_data(c, "the scale vector of value", id, v->scales, xr_scale_bytes(v));
  if (v->external != XR_NONE)
    xr_fail(c, "value %u is a constant and an argument of the call", id);
}

/* After loading, the runtime gives back the bytes of the delegate, and the data of every value that
 * a product or convolution has packed; pointers to them would dangle. */
static void check_lifetime(XrCheck *c, uint32_t id) {
  const XrValue *v = &c->x->values[id];
  uint8_t uses = c->uses[id];
  if (!v->constant)
    return;
  if (uses & XR_USE_PACKED && uses & ~XR_USE_PACKED)
    xr_fail(c, "value %u is a filter or bias, and another operand too: its bytes are freed", id);
  if (uses & XR_USE_KEPT && !c->x->constants[v->constant].key.data)
    xr_fail(c, "constant value %u lies in the blob, which is freed, and not in named data", id);
}

/* --- values --- */

/* The runtime widens outputs; what a node writes may be no boolean. */
static bool same_type(const XrValue *v, DType dtype, bool is_output) {
  return dtype == xr_datatype(v->datatype)->dtype ||
         (v->datatype == XR_INT32 && dtype == DTYPE_I64 && is_output) ||
         (v->datatype == XR_QUINT8 && dtype == DTYPE_BOOL && !is_output && v->scale == 1 &&
          v->zero_point == 0);
}

/* The tensor of the call that an external value is. */
static const Tensor *argument_of(const XrCheck *c, const XrValue *v) {
  uint32_t i = v->external, inputs = c->call->input_count;
  return i < inputs ? &c->call->inputs[i] : &c->call->outputs[i - inputs];
}

/* The official exporter makes numbers tensors of rank 1; the runtime goes by the argument. */
static bool is_number(const Tensor *t, const XrValue *v) {
  return t->rank == 0 && v->rank == 1 && v->dims[0] == 1;
}

/* Is value id an argument? If so, it is that of one place, on the side that it is marked for. */
static bool check_place(XrCheck *c, uint32_t id, uint32_t *taken) {
  const XrValue *v = &c->x->values[id];
  bool is_input = v->external < c->call->input_count;
  if (v->external == XR_NONE) {
    if (v->flags)
      xr_fail(c, "value %u is marked as an input or output, and is not an argument", id);
    return false;
  }
  if (v->external >= c->x->external_count || taken[v->external]++)
    xr_fail(c, "value %u is argument %u, %s", id, v->external,
            v->external < c->x->external_count ? "which another one is" : "which there is not");
  else if (v->flags != (is_input ? XR_INPUT : XR_OUTPUT))
    xr_fail(c, "value %u is argument %u, an %s of the call, and is not marked as one", id,
            v->external, is_input ? "input" : "output");
  return !c->fault;
}

static void check_external(XrCheck *c, uint32_t id, uint32_t *taken) {
  if (!check_place(c, id, taken))
    return;
  const XrValue *v = &c->x->values[id];
  const Tensor *t = argument_of(c, v);
  bool is_input = v->flags == XR_INPUT;
  if (t->rank != v->rank && !(is_input && is_number(t, v)))
    xr_fail(c, "argument %u has rank %u, and value %u rank %u", v->external, t->rank, id, v->rank);
  else if (!same_type(v, t->dtype, !is_input))
    xr_fail(c, "argument %u is %s, and value %u has the datatype %u", v->external,
            dtype_name(t->dtype), id, v->datatype);
  if (!is_input || c->fault)
    return;
  c->defined[id] = true;
  c->shapes[id].rank = (uint8_t)t->rank;
  for (uint32_t i = 0; i < t->rank; i++) {
    c->shapes[id].dims[i] = t->dims[i];
    if (t->dims[i] == 0 || t->dims[i] > v->dims[i] || (c->call->fixed && t->dims[i] != v->dims[i]))
      xr_fail(c, "dim %u of argument %u is %lld, and of value %u %u", i, v->external,
              (long long)t->dims[i], id, v->dims[i]);
  }
}

static void check_values(XrCheck *c) {
  const XrGraph *x = c->x;
  uint32_t *taken = ARENA_ARRAY(c->arena, uint32_t, (size_t)x->external_count + 1);
  if (x->external_count != c->call->input_count + c->call->output_count)
    xr_fail(c, "it has %u arguments, and the call %u and %u", x->external_count,
            c->call->input_count, c->call->output_count);
  for (uint32_t id = 0; id < x->value_count && !c->fault; id++) {
    const XrValue *v = &x->values[id];
    xr_check_value(c, id);
    check_external(c, id, taken);
    if (!v->constant)
      continue;
    check_constant(c, id);
    c->defined[id] = true;
    c->shapes[id].rank = v->rank;
    for (uint32_t i = 0; i < v->rank; i++)
      c->shapes[id].dims[i] = v->dims[i];
  }
  for (uint32_t i = 0; i < x->external_count && !c->fault; i++)
    if (!taken[i])
      xr_fail(c, "no value is argument %u", i);
}

/* --- element types --- */

static void check_types(XrCheck *c, const XrNode *n) {
  if (xr_has(n->kind, XR_WEIGHTED)) {
    xr_check_weighted(c, n);
    return;
  }
  uint32_t type = xr_type_of(c->x, n->output);
  if (xr_form(n->kind) == XR_FORM_POSITION &&
      (type != XR_FP32 || xr_type_of(c->x, n->positions) != XR_INT32))
    xr_fail(c, "datatypes %u and %u of its results", type, xr_type_of(c->x, n->positions));
  if (n->kind == XR_Convert) {
    xr_check_convert(c, n);
    return;
  }
  for (uint32_t i = 0; i < n->input_count; i++)
    if (xr_type_of(c->x, n->inputs[i]) != type)
      xr_fail(c, "operand %u has the datatype %u, and the result %u", i,
              xr_type_of(c->x, n->inputs[i]), type);
  if (type == XR_INT32 && !xr_has(n->kind, XR_INTEGERS))
    xr_fail(c, "integers");
  else if (xr_scheme(type) != XR_PLAIN)
    xr_check_bytes(c, n);
}

/* --- nodes --- */

/* Which use of its operand i a node makes. */
static uint8_t use_of(const XrCheck *c, const XrNode *n, uint32_t i) {
  if (xr_has(n->kind, XR_WEIGHTED) && i > 0)
    return XR_USE_PACKED;
  if (n->kind == XR_BatchMatrixMultiply && i == 1 && c->x->values[n->inputs[1]].constant)
    return XR_USE_COPIED;
  return XR_USE_KEPT;
}

static void check_weights(XrCheck *c, const XrNode *n) {
  bool product = xr_form(n->kind) == XR_FORM_PRODUCT;
  if (!xr_has(n->kind, XR_WEIGHTED))
    return;
  bool filter = c->x->values[n->inputs[1]].constant != 0, has_bias = n->inputs[2] != XR_NONE,
       bias = has_bias && c->x->values[n->inputs[2]].constant != 0;
  if (!product && (!filter || (has_bias && !bias)))
    xr_fail(c, "its filter or bias is not constant");
  if (product && has_bias && filter != bias)
    xr_fail(c, "its filter is %s and its bias %s: bytes are freed that it needs",
            filter ? "constant" : "not", bias ? "constant" : "not");
}

static void check_node(XrCheck *c, const XrNode *n) {
  for (uint32_t i = 0; i < n->input_count; i++) {
    uint32_t id = n->inputs[i];
    if (id == XR_NONE)
      continue;
    if (!c->defined[id]) {
      xr_fail(c, "operand %u, value %u, is used before it is there", i, id);
      return;
    }
    c->uses[id] |= use_of(c, n, i);
  }
  if (c->defined[n->output]) {
    xr_fail(c, "its result, value %u, is there already", n->output);
    return;
  }
  if (n->limited && (!(n->low <= n->high) || !xr_has(n->kind, XR_LIMITS)))
    xr_fail(c, "limits %g and %g", (double)n->low, (double)n->high);
  check_types(c, n);
  check_weights(c, n);
  if (!c->fault)
    xr_shape(c, n, &c->shapes[n->output]);
  c->defined[n->output] = true;
  if (n->positions == XR_NONE || c->fault)
    return;
  if (c->defined[n->positions])
    xr_fail(c, "its second result, value %u, is there already", n->positions);
  c->shapes[n->positions] = c->shapes[n->output];
  c->defined[n->positions] = true;
}

/* What the graph says of the result id of a node. */
static void check_result(XrCheck *c, uint32_t id) {
  const XrValue *v = &c->x->values[id];
  const XrShape *s = &c->shapes[id];
  if (c->fault)
    return;
  if (v->rank != s->rank) {
    xr_fail(c, "its result has rank %u, and value %u rank %u", s->rank, id, v->rank);
    return;
  }
  for (uint32_t i = 0; i < s->rank; i++) {
    int64_t dim = s->dims[i];
    if (dim > v->dims[i] || (c->call->fixed && dim != v->dims[i]))
      xr_fail(c, "dim %u of its result is %lld, and of value %u %u", i, (long long)dim, id,
              v->dims[i]);
  }
}

/* XNNPACK writes maxima beside their positions, but has no memory for those that nothing uses. */
static void check_maxima(XrCheck *c, const XrNode *n) {
  if (n->positions != XR_NONE && !c->uses[n->output] && c->x->values[n->output].flags != XR_OUTPUT)
    xr_fail(c, "nothing uses the maxima, value %u", n->output);
}

const char *xr_check(XrCheck *c, const XrGraph *x, const DelegateCall *call, Arena *arena) {
  size_t count = (size_t)x->value_count + 1;
  *c = (XrCheck){.x = x,
                 .call = call,
                 .arena = arena,
                 .syms = call->syms ? call->syms : ARENA_NEW(arena, SymTable),
                 .shapes = ARENA_ARRAY(arena, XrShape, count),
                 .defined = ARENA_ARRAY(arena, bool, count),
                 .uses = ARENA_ARRAY(arena, uint8_t, count),
                 .data = ARENA_ARRAY(arena, const DelegateData *, (size_t)x->constant_count + 1)};
  find_data(c);
  check_values(c);
  for (uint32_t i = 0; i < x->node_count && !c->fault; i++) {
    check_node(c, &x->nodes[i]);
    check_result(c, x->nodes[i].output);
    if (x->nodes[i].positions != XR_NONE)
      check_result(c, x->nodes[i].positions);
    if (c->fault)
      return arena_printf(arena, "node %u (%s): %s", i, xr_name(x->nodes[i].kind), c->fault);
  }
  for (uint32_t i = 0; i < x->node_count && !c->fault; i++)
    check_maxima(c, &x->nodes[i]);
  for (uint32_t id = 0; id < x->value_count && !c->fault; id++) {
    if (x->values[id].flags == XR_OUTPUT && !c->defined[id])
      xr_fail(c, "nothing computes argument %u", x->values[id].external);
    check_lifetime(c, id);
  }
  return c->fault;
}

/* Inputs, outputs and known elements of the current node. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "onnx/import_state.h"
#include "ops/kernel.h"
#include "interp/interp.h"
#include "ops/quantized.h"
#include "ops/shape_util.h"

bool import_ok(const Import *im) { return im->b.status == STATUS_OK; }

ValueId import_fail(Import *im, DiagCode code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  build_vfail(&im->b, code, NULL, format, args);
  va_end(args);
  return 0;
}

/* --- inputs --- */

uint32_t in_count(const Import *im) { return (uint32_t)im->node->n_input; }

Binding in_binding(Import *im, uint32_t i) {
  NameId name = import_ok(im) && i < im->node->n_input ? import_input_name(im, i) : 0;
  return name ? import_lookup(im, name) : (Binding){.kind = BIND_ABSENT};
}

ValueId in(Import *im, uint32_t i) {
  Binding binding = in_binding(im, i);
  if (binding.kind == BIND_VALUE)
    return binding.value;
  if (binding.kind == BIND_SEQUENCE || binding.kind == BIND_STACK)
    return import_fail(im, DIAG_INPUT_TYPE, "input %u is a sequence, a tensor is wanted", i);
  return 0;
}

int32_t in_packed(Import *im, uint32_t i) {
  Binding binding = in_binding(im, i);
  return binding.kind == BIND_VALUE ? binding.packed : 0;
}

ValueId in_required(Import *im, uint32_t i) {
  ValueId v = in(im, i);
  if (!v && import_ok(im))
    import_fail(im, DIAG_INPUT_COUNT, "input %u is missing", i);
  return v;
}

/* The elements that are known to be integers, of whatever type. */
static bool value_whole(Import *im, ValueId v, Ints *values) {
  *values = (Ints){0};
  if (import_ok(im) && v)
    values->at = fold_contents(&im->state->fold, im->g, v, &im->scratch, &values->count);
  return values->at != NULL;
}

bool value_ints(Import *im, ValueId v, Ints *values) {
  *values = (Ints){0};
  return import_ok(im) && v && !dtype_is_float(value_dtype(im->g, v)) && value_whole(im, v, values);
}

bool in_ints(Import *im, uint32_t i, Ints *values) { return value_ints(im, in(im, i), values); }

bool in_consts(Import *im, uint32_t i, Ints *values) { return value_consts(im, in(im, i), values); }

bool value_consts(Import *im, ValueId v, Ints *values) {
  if (!value_ints(im, v, values))
    return false;
  for (uint32_t k = 0; k < values->count; k++)
    if (!sym_is_const(values->at[k]))
      return false;
  return true;
}

enum { MOST_NUMBERS = 1 << 24 };

/* The numbers of a constant; NULL when there are too many, or one is not exact. */
static const double *constant_doubles(Import *im, ValueId v, uint32_t *count) {
  Tensor t = interp_constant(im->g, v, &im->scratch);
  int64_t numel = tensor_numel(&t);
  if (numel > MOST_NUMBERS)
    return NULL;
  double *out = ARENA_ARRAY(&im->scratch, double, (size_t)numel + 1);
  for (int64_t i = 0; i < numel; i++) {
    out[i] = tensor_load(&t, i);
    if (t.dtype == DTYPE_I64 && fabs(out[i]) > 0x1p53)
      return NULL;
  }
  *count = (uint32_t)numel;
  return out;
}

/* Likewise of a dequantized constant: tools that quantize a model do so with the operands of Pad,
 * too. */
static const double *dequantized_doubles(Import *im, ValueId v, uint32_t *count) {
  NodeId n = dequantized_constant(im->g, v);
  Dims dims = value_dims(im->g, v);
  int64_t numel = n ? dims_numel(im->g, &dims) : 0; /* a constant's: none is symbolic */
  if (!n || numel > MOST_NUMBERS)
    return NULL;
  float *numbers = ARENA_ARRAY(&im->scratch, float, (size_t)numel + 1);
  double *out = ARENA_ARRAY(&im->scratch, double, (size_t)numel + 1);
  dequantize_constant(im->g, n, numbers);
  for (int64_t i = 0; i < numel; i++)
    out[i] = (double)numbers[i];
  *count = (uint32_t)numel;
  return out;
}

bool in_indices(Import *im, uint32_t i, Ints *values) {
  enum { MOST_INDICES = 1 << 20 };
  ValueId v = in(im, i);
  if (value_consts(im, v, values))
    return true;
  if (!import_ok(im) || !v || !value_is_const(im->g, v) ||
      !dtype_in(value_dtype(im->g, v), DT(I32) | DT(I64)))
    return false;
  Tensor t = interp_constant(im->g, v, &im->scratch);
  int64_t numel = tensor_numel(&t);
  if (numel > MOST_INDICES)
    return false;
  int64_t *indices = ARENA_ARRAY(&im->scratch, int64_t, (size_t)numel + 1);
  for (int64_t k = 0; k < numel; k++)
    indices[k] = tensor_load_int(&t, k);
  *values = (Ints){indices, (uint32_t)numel};
  return true;
}

bool value_doubles(Import *im, ValueId v, Doubles *values) {
  *values = (Doubles){0};
  if (!import_ok(im) || !v || !dtype_in(value_dtype(im->g, v), DTS_REAL_BOOL))
    return false;
  values->at = value_is_const(im->g, v) ? constant_doubles(im, v, &values->count)
                                        : dequantized_doubles(im, v, &values->count);
  return values->at != NULL;
}

bool all_zero(Import *im, ValueId v) {
  Doubles values;
  bool zero = value_doubles(im, v, &values);
  for (uint32_t i = 0; i < values.count && zero; i++)
    zero = values.at[i] == 0;
  return zero;
}

bool one_whole(Import *im, ValueId v, SymInt *number) {
  Ints values;
  if (!value_whole(im, v, &values) || values.count != 1)
    return false;
  *number = values.at[0];
  return true;
}

bool one_int(Import *im, ValueId v, SymInt *number) {
  return v && import_ok(im) && !dtype_is_float(value_dtype(im->g, v)) && one_whole(im, v, number);
}

bool one_const(Import *im, ValueId v, int64_t *number) {
  SymInt size;
  if (!one_int(im, v, &size) || !sym_is_const(size))
    return false;
  *number = size;
  return true;
}

bool one_double(Import *im, ValueId v, double *number) {
  Doubles values;
  if (!value_doubles(im, v, &values) || values.count != 1)
    return false;
  *number = values.at[0];
  return true;
}

/* --- outputs --- */

uint32_t out_count(const Import *im) { return (uint32_t)im->node->n_output; }

bool out_wanted(const Import *im, uint32_t i) {
  return i < im->node->n_output && im->node->output[i] && *im->node->output[i];
}

void out_binding(Import *im, uint32_t i, Binding binding) {
  if (import_ok(im) && out_wanted(im, i))
    scope_bind(im, import_output_name(im, i), binding);
}

void out(Import *im, uint32_t i, ValueId v) {
  if (!v && import_ok(im))
    BUG("output %u of '%s' bound to nothing", i, im->node->op_type ? im->node->op_type : "");
  if (import_ok(im) && out_wanted(im, i) && !value_get(im->g, v)->name)
    value_get(im->g, v)->name = import_output_name(im, i);
  out_binding(im, i, binding_of(v));
}

void out_tensor(Import *im, uint32_t i, Binding tensor) {
  if (tensor.packed)
    out_binding(im, i, tensor);
  else
    out(im, i, tensor.value);
}

void out_sequence(Import *im, uint32_t i, const ValueId *items, uint32_t count) {
  ValueId *copy = ARENA_ARRAY(&im->state->arena, ValueId, count);
  for (uint32_t k = 0; k < count; k++)
    copy[k] = items[k];
  out_binding(im, i, (Binding){.kind = BIND_SEQUENCE, .items = copy, .count = count});
}

/* --- helpers --- */

uint32_t import_axis(Import *im, int64_t axis, uint32_t rank) {
  if (axis < -(int64_t)rank || axis >= (int64_t)rank) {
    import_fail(im, DIAG_AXIS_RANGE, "axis %lld is outside a tensor of rank %u", (long long)axis,
                rank);
    return 0;
  }
  return (uint32_t)wrap_dim(axis, rank);
}

/* One run-time element: a scalar_tensor of a symbolic number, as a tensor of shape [1]. */
static ValueId build_sym(Import *im, SymInt value) {
  if (sym_is_const(value))
    return build_const_ints(&im->b, &value, 1);
  ValueId scalar = build(&im->b, OP_SCALAR_TENSOR, A_INT(value), A_DTYPE(DTYPE_I64));
  return build_view(&im->b, scalar, (SymInt[]){1}, 1);
}

ValueId build_syms(Import *im, const SymInt *values, uint32_t count) {
  bool constant = true;
  for (uint32_t i = 0; i < count; i++)
    constant &= sym_is_const(values[i]);
  if (constant)
    return build_const_ints(&im->b, values, count);
  ValueId *items = ARENA_ARRAY(&im->scratch, ValueId, count);
  for (uint32_t i = 0; i < count; i++)
    items[i] = build_sym(im, values[i]);
  if (count == 1)
    return items[0];
  return build(&im->b, OP_CAT, A_VALS(items, count), A_INT(0));
}

/* See call.h. Sources: torch's schemas of the out-variants, and the argument counts that the 1.4.1
 * runtime checks when it runs a call (tests/pte/boxed_args.tsv). */
#include "pte/call.h"

/* An op whose functional form takes torch's TensorOptions (dtype, layout, device): a factory, which
 * has no tensor argument, or a copy or *_like op, which has a memory format or a dim order beside
 * them. The out tensor says all that, and the out-variant has no such arguments. Reductions with a
 * dtype of their own keep it. */
static bool takes_tensor_options(const OpSchema *s) {
  bool has_tensor = false, has_format = false;
  for (uint32_t i = 0; i < s->arg_count; i++) {
    has_tensor |= s->args[i].type == ST_TENSOR;
    has_format |= s->args[i].type == ST_MEMORY_FORMAT || sv_eq_str(s->args[i].name, "dim_order");
  }
  return !has_tensor || has_format;
}

CallShape call_shape(OpId op) {
  const OpSchema *s = op_schema(op);
  CallShape shape = {.in_place = -1, .trailing = !op_has_trait(op, OP_PRIM)};
  int dtype_arg = -1;
  for (uint32_t i = 0; i < s->arg_count; i++) {
    if (s->args[i].type == ST_DTYPE)
      dtype_arg = (int)i;
    if (s->args[i].mutated)
      shape.in_place = (int)i;
  }
  bool self_is_out = shape.in_place >= 0 && shape.trailing && strchr(op_row(op)->out, '.') != NULL;
  bool drop = dtype_arg >= 0 && takes_tensor_options(s);
  for (uint32_t i = 0; i < s->arg_count; i++)
    if (!(drop && (int)i == dtype_arg) && !(self_is_out && (int)i == shape.in_place))
      shape.args[shape.arg_count++] = (uint8_t)i;
  shape.out_count = shape.in_place >= 0 ? self_is_out : s->result_count;
  shape.boxed_count = shape.arg_count + shape.out_count + (shape.trailing ? 1 : 0);
  return shape;
}

void call_name(OpId op, StrView *name, StrView *overload) {
  StrView full = sv_from(op_row(op)->out);
  const char *dot = memchr(full.data, '.', full.size);
  *name = (StrView){full.data, dot ? (size_t)(dot - full.data) : full.size};
  *overload = dot ? (StrView){dot + 1, full.size - name->size - 1} : SV("");
}

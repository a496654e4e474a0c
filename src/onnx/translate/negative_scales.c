/* Weights whose scales are below 0, which quantization ops do not have. */
#include "onnx/translate/quantized.h"

/* The middle of codes of u8 in a channel: 128, and 127 where 128 has to fit above it. */
static uint8_t middle_of(double scale) { return scale < 0 ? 127 : 128; }

/* The middles as zero points of channels that had scales. */
static ValueId middles(Import *im, ValueId like, const Doubles *scales) {
  int64_t count = scales->count;
  uint8_t *zeros = arena_alloc(&im->g->arena, (size_t)count + 1);
  for (uint32_t i = 0; i < scales->count; i++)
    zeros[i] = middle_of(scales->at[i]);
  return build_const(&im->b, DTYPE_U8, ex_rank(im, like), &count, zeros);
}

bool negative_scales_flipped(Import *im, uint64_t inner, ValueId *x, ValueId *scale,
                             ValueId *zero) {
  const Constant *c = value_constant(im->g, *x);
  Doubles scales;
  if (!c || ex_dtype(im, *x) != DTYPE_I8 || ex_rank(im, *scale) > 1 ||
      !value_doubles(im, *scale, &scales))
    return false;
  uint8_t *codes = arena_alloc(&im->g->arena, c->size + 1);
  bool fits = true;
  for (uint64_t i = 0; i < c->size; i++) {
    double own = scales.at[i / inner % scales.count];
    int code = (int8_t)c->data[i], number = own < 0 ? -code : code;
    fits = fits && number <= INT8_MAX;
    codes[i] = (uint8_t)(number + middle_of(own));
  }
  for (uint64_t i = 0; fits && i < c->size; i++)
    codes[i] = (uint8_t)(codes[i] - middle_of(scales.at[i / inner % scales.count]));
  const Type *t = value_type(im->g, *x);
  TypeId type =
      graph_tensor_type(im->g, fits ? DTYPE_I8 : DTYPE_U8, t->rank, t->dims, ORDER_CONTIGUOUS);
  *zero = fits ? 0 : middles(im, *scale, &scales);
  *x = graph_add_constant(im->g, type, (Constant){.data = codes, .size = c->size}, 0);
  *scale = ex_unary(im, OP_ABS, *scale);
  return import_ok(im);
}

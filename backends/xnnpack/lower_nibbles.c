/* Weights of 4 bits with a scale for each block of a row, as XNNPACK keeps them. */
#include <math.h>

#include "backends/xnnpack/lower.h"
#include "ir/transform.h"
#include "support/half.h"

enum { NIBBLE_ZERO = 8, NIBBLE_MOST = 15, LEAST_BLOCK = 32 };

/* A matrix [outputs, inputs] whose weights have a scale for each block of the inputs. */
typedef struct Blocks {
  const Graph *g;
  const Quantization *q;
  const uint8_t *zeros; /* codes; NULL: all are 0 */
  bool permuted;        /* stored as [inputs, outputs] */
  uint32_t outputs, inputs, count;
} Blocks;

/* The code as XNNPACK stores it, from 0 to 15; larger ones do not fit. */
static unsigned stored_code(const Quantization *q, uint8_t byte) {
  return q->dtype == DTYPE_U8 ? byte : (unsigned)((int8_t)byte + NIBBLE_ZERO);
}

/* Where the parameters of block k of output n are. */
static uint64_t block_at(const Blocks *b, uint32_t n, uint32_t k) {
  return b->permuted ? (uint64_t)k * b->outputs + n : (uint64_t)n * b->count + k;
}

/* The code of a block with that scale as it is stored. XNNPACK's scales are above 0: where one is
 * below, codes are counted from the other end; where it is 0, all are the middle. */
static unsigned block_code(const Blocks *b, float scale, uint8_t byte) {
  unsigned code = scale == 0 ? NIBBLE_ZERO : stored_code(b->q, byte);
  return scale < 0 ? NIBBLE_MOST - code : code;
}

static unsigned block_zero(const Blocks *b, uint64_t at) {
  return block_code(b, xl_scale_at(b->g, b->q, at), b->zeros ? b->zeros[at] : 0);
}

/* The size of a scale in bfloat16, which XNNPACK keeps; 1 where no weight has it. */
static uint16_t block_scale(float scale) {
  return bfloat_from_float(scale == 0 ? 1 : fabsf(scale));
}

/* The scales [outputs, blocks] in bfloat16; 0 when XNNPACK would refuse one. */
static ValueId block_scales(XnnLowering *l, const Blocks *b) {
  uint16_t *to = ARENA_ARRAY(&l->g->arena, uint16_t, (size_t)b->outputs * b->count + 1);
  for (uint32_t n = 0; n < b->outputs; n++)
    for (uint32_t k = 0; k < b->count; k++) {
      float scale = xl_scale_at(b->g, b->q, block_at(b, n, k));
      if (scale != 0 && !isnormal(scale))
        return 0;
      to[(uint64_t)n * b->count + k] = block_scale(scale);
    }
  SymInt dims[] = {b->outputs, b->count};
  TypeId type = graph_tensor_type(l->g, DTYPE_BF16, 2, dims, ORDER_CONTIGUOUS);
  uint64_t size = (uint64_t)b->outputs * b->count * sizeof *to;
  return graph_add_constant(l->g, type, (Constant){.data = (const void *)to, .size = size}, 0);
}

/* (NIBBLE_ZERO - zero point) * scale of each block, [outputs, blocks]; XNN_NONE when all are 0. */
static XnnId block_shifts(XnnLowering *l, const Blocks *b) {
  uint64_t count = (uint64_t)b->outputs * b->count, first = 0;
  while (first < count && block_zero(b, first) == NIBBLE_ZERO)
    first++;
  if (first == count)
    return XNN_NONE;
  float *shifts = ARENA_ARRAY(l->arena, float, (size_t)count + 1);
  for (uint32_t n = 0; n < b->outputs; n++)
    for (uint32_t k = 0; k < b->count; k++) {
      uint64_t at = block_at(b, n, k);
      int shift = NIBBLE_ZERO - (int)block_zero(b, at);
      shifts[(uint64_t)n * b->count + k] =
          (float)shift * bfloat_to_float(block_scale(xl_scale_at(b->g, b->q, at)));
    }
  uint32_t dims[] = {b->outputs, b->count};
  return xl_floats(l, 2, dims, shifts);
}

/* Whether no code has more than 4 bits. */
static bool codes_fit(const Blocks *b, const Constant *codes) {
  if (codes->transform && codes->transform->code != TRANSFORM_COPY)
    return codes->transform->code == TRANSFORM_UNPACK ||
           (codes->transform->low >= -NIBBLE_ZERO && codes->transform->high < NIBBLE_ZERO);
  const Constant *made = constant_made(codes);
  for (uint64_t i = 0; i < made->size; i++)
    if (stored_code(b->q, made->data[i]) > NIBBLE_MOST)
      return false;
  return true;
}

/* The codes, packed while the program is written. False when some have more than 4 bits. */
static bool pack_codes(XnnLowering *l, const Blocks *b, ValueId codes, Constant *out) {
  const Constant *from = value_lazy_constant(l->g, codes);
  CodeBlocks blocks = {.rows = b->outputs,
                       .blocks = b->count,
                       .size = (uint32_t)b->q->block,
                       .permuted = b->permuted,
                       .is_signed = b->q->dtype == DTYPE_I8,
                       .scales = *value_constant(l->g, b->q->scales)};
  if (!codes_fit(b, from))
    return false;
  *out = constant_packed(l->g, *from, &blocks);
  return true;
}

XnnId xl_block_twin(XnnLowering *l, const Quantization *q, ValueId codes, uint32_t rank,
                    const uint32_t *dims, const uint32_t *perm, XnnId *shift) {
  Graph *g = l->g;
  if (rank != 2 || perm[1] != q->axis || q->block % LEAST_BLOCK || dims[1] % q->block)
    return XNN_NONE;
  const Constant *zeros = q->zeros ? value_constant(g, q->zeros) : NULL;
  Blocks b = {.g = g,
              .q = q,
              .zeros = zeros ? zeros->data : NULL,
              .permuted = perm[0] == 1,
              .outputs = dims[0],
              .inputs = dims[1],
              .count = dims[1] / (uint32_t)q->block};
  Constant nibbles;
  if (!pack_codes(l, &b, codes, &nibbles))
    return XNN_NONE;
  ValueId scales = block_scales(l, &b);
  if (!scales)
    return XNN_NONE;
  SymInt packed[] = {b.outputs, b.inputs / 2};
  TypeId type = graph_tensor_type(g, DTYPE_U8, 2, packed, ORDER_CONTIGUOUS);
  ValueId v = graph_add_constant(g, type, nibbles, 0);
  XnnId id = xnn_constant(&l->x, XNN_QBINT4, 2, dims, (XnnData){.v = v});
  xnn_set_groups(&l->x, id, (uint32_t)q->block, (XnnData){.v = scales}, b.outputs * b.count);
  *shift = block_shifts(l, &b);
  return id;
}

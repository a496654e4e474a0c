/* Weights with a scale for each block of a row: of 4 bits, as XNNPACK has them, or of 8, which it
 * has not, and which fuse_blocks.c computes block by block. */
#include <math.h>

#include "backends/xnnpack/lower.h"
#include "ir/transform.h"
#include "support/half.h"

enum { NIBBLE_ZERO = 8, BYTE_ZERO = 128 };
enum { LEAST_NIBBLES = 32, LEAST_BYTES = 16 }; /* of a block; shorter products are slow */

/* A matrix [outputs, inputs] whose weights have a scale for each block of the inputs. */
typedef struct Blocks {
  const Graph *g;
  const Quantization *q;
  const uint8_t *zeros; /* codes; NULL: all are 0 */
  bool permuted;        /* stored as [inputs, outputs] */
  int zero;             /* the middle of the codes from 0 on, NIBBLE_ZERO or BYTE_ZERO */
  uint32_t outputs, inputs, count;
} Blocks;

/* The code from 0 on; larger ones than 15 do not fit in 4 bits. */
static int stored_code(const Blocks *b, uint8_t byte) {
  return b->q->dtype == DTYPE_U8 ? byte : (int8_t)byte + b->zero;
}

/* Where the parameters of block k of output n are. */
static uint64_t block_at(const Blocks *b, uint32_t n, uint32_t k) {
  return b->permuted ? (uint64_t)k * b->outputs + n : (uint64_t)n * b->count + k;
}

/* The code of a block with that scale as it is stored. XNNPACK's scales are above 0: where one is
 * below, codes are counted from the other end; where it is 0, all are the middle. */
static int block_code(const Blocks *b, float scale, uint8_t byte) {
  int code = scale == 0 ? b->zero : stored_code(b, byte);
  return scale < 0 ? 2 * b->zero - 1 - code : code;
}

static int block_zero(const Blocks *b, uint64_t at) {
  return block_code(b, xl_scale_at(b->g, b->q, at), b->zeros ? b->zeros[at] : 0);
}

/* The size of a scale, of 4 bits in bfloat16, which XNNPACK keeps; 1 where no weight has it. */
static float block_scale(const Blocks *b, float scale) {
  float size = scale == 0 ? 1 : fabsf(scale);
  return b->zero == NIBBLE_ZERO ? bfloat_to_float(bfloat_from_float(size)) : size;
}

/* Whether XNNPACK takes all scales. */
static bool scales_fit(const Blocks *b) {
  for (uint64_t i = 0; i < (uint64_t)b->outputs * b->count; i++) {
    float scale = xl_scale_at(b->g, b->q, i);
    if (scale != 0 && !isnormal(scale))
      return false;
  }
  return true;
}

/* The scales [outputs, blocks] in bfloat16. */
static ValueId nibble_scales(XnnLowering *l, const Blocks *b) {
  uint16_t *to = ARENA_ARRAY(&l->g->arena, uint16_t, (size_t)b->outputs * b->count + 1);
  for (uint32_t n = 0; n < b->outputs; n++)
    for (uint32_t k = 0; k < b->count; k++) {
      float scale = xl_scale_at(b->g, b->q, block_at(b, n, k));
      to[(uint64_t)n * b->count + k] = bfloat_from_float(block_scale(b, scale));
    }
  SymInt dims[] = {b->outputs, b->count};
  TypeId type = graph_tensor_type(l->g, DTYPE_BF16, 2, dims, ORDER_CONTIGUOUS);
  uint64_t size = (uint64_t)b->outputs * b->count * sizeof *to;
  return graph_add_constant(l->g, type, (Constant){.data = (const void *)to, .size = size}, 0);
}

/* (middle - zero point) * scale of each block, [outputs, blocks]; XNN_NONE when all are 0. */
static XnnId block_shifts(XnnLowering *l, const Blocks *b) {
  uint64_t count = (uint64_t)b->outputs * b->count, first = 0;
  while (first < count && block_zero(b, first) == b->zero)
    first++;
  if (first == count)
    return XNN_NONE;
  float *shifts = ARENA_ARRAY(l->arena, float, (size_t)count + 1);
  for (uint32_t n = 0; n < b->outputs; n++)
    for (uint32_t k = 0; k < b->count; k++) {
      uint64_t at = block_at(b, n, k);
      int shift = b->zero - block_zero(b, at);
      shifts[(uint64_t)n * b->count + k] =
          (float)shift * block_scale(b, xl_scale_at(b->g, b->q, at));
    }
  uint32_t dims[] = {b->outputs, b->count};
  return xl_floats(l, 2, dims, shifts);
}

/* Whether no code has more than 4 bits. */
static bool codes_fit(const Blocks *b, const Constant *codes) {
  const Transform *t = codes->transform;
  if (t && t->code == TRANSFORM_UNPACK)
    return t->low == (b->q->dtype == DTYPE_U8 ? 0 : -NIBBLE_ZERO);
  if (t && t->code != TRANSFORM_COPY)
    return t->low >= -NIBBLE_ZERO && t->high < NIBBLE_ZERO;
  const Constant *made = constant_made(codes);
  for (uint64_t i = 0; i < made->size; i++)
    if ((unsigned)stored_code(b, made->data[i]) >= 2 * NIBBLE_ZERO)
      return false;
  return true;
}

static CodeBlocks code_blocks(const Blocks *b) {
  return (CodeBlocks){.rows = b->outputs,
                      .blocks = b->count,
                      .size = (uint32_t)b->q->block,
                      .permuted = b->permuted,
                      .is_signed = b->q->dtype == DTYPE_I8,
                      .scales = *value_constant(b->g, b->q->scales)};
}

/* The codes, packed while the program is written. */
static XnnId nibbles_twin(XnnLowering *l, const Blocks *b, const Constant *codes,
                          const uint32_t *dims) {
  CodeBlocks blocks = code_blocks(b);
  SymInt packed[] = {b->outputs, b->inputs / 2};
  TypeId type = graph_tensor_type(l->g, DTYPE_U8, 2, packed, ORDER_CONTIGUOUS);
  ValueId v = graph_add_constant(l->g, type, constant_packed(l->g, *codes, &blocks), 0);
  XnnId id = xnn_constant(&l->x, XNN_QBINT4, 2, dims, (XnnData){.v = v});
  xnn_set_groups(&l->x, id, blocks.size, (XnnData){.v = nibble_scales(l, b)},
                 b->outputs * b->count);
  return id;
}

/* Block k as a filter of its own. */
static XnnId block_filter(XnnLowering *l, const Blocks *b, const Constant *codes, uint32_t k) {
  Graph *g = l->g;
  CodeBlocks blocks = code_blocks(b);
  float *scales = ARENA_ARRAY(&g->arena, float, (size_t)b->outputs + 1);
  for (uint32_t n = 0; n < b->outputs; n++)
    scales[n] = block_scale(b, xl_scale_at(g, b->q, block_at(b, n, k)));
  uint32_t dims[] = {b->outputs, blocks.size};
  SymInt sizes[] = {b->outputs, blocks.size};
  Constant bytes = {.data = (const void *)scales, .size = b->outputs * sizeof *scales};
  ValueId factors = graph_add_constant(
              g, graph_tensor_type(g, DTYPE_F32, 1, sizes, ORDER_CONTIGUOUS), bytes, 0),
          v = graph_add_constant(g, graph_tensor_type(g, DTYPE_I8, 2, sizes, ORDER_CONTIGUOUS),
                                 constant_block(g, *codes, &blocks, k), 0);
  XnnId id = xnn_constant(&l->x, XNN_QCINT8, 2, dims, (XnnData){.v = v});
  xnn_set_channels(&l->x, id, 0, (XnnData){.v = factors}, b->outputs);
  return id;
}

/* Filters of 8 bits, one a block, whose ids follow each other. */
static XnnId bytes_twin(XnnLowering *l, const Blocks *b, const Constant *codes) {
  XnnId first = XNN_NONE;
  for (uint32_t k = 0; k < b->count; k++) {
    XnnId id = block_filter(l, b, codes, k);
    first = k ? first : id;
  }
  return first;
}

XnnId xl_block_twin(XnnLowering *l, const Quantization *q, ValueId codes, uint32_t rank,
                    const uint32_t *dims, const uint32_t *perm, XnnId *shift) {
  Graph *g = l->g;
  if (rank != 2 || perm[1] != q->axis || dims[1] % q->block || q->block < LEAST_BYTES)
    return XNN_NONE;
  const Constant *zeros = q->zeros ? value_constant(g, q->zeros) : NULL;
  Constant from = *value_lazy_constant(g, codes); /* a copy: constants move when one is added */
  Blocks b = {.g = g,
              .q = q,
              .zeros = zeros ? zeros->data : NULL,
              .permuted = perm[0] == 1,
              .zero = NIBBLE_ZERO,
              .outputs = dims[0],
              .inputs = dims[1],
              .count = dims[1] / (uint32_t)q->block};
  if (!scales_fit(&b))
    return XNN_NONE;
  bool nibbles = q->block % LEAST_NIBBLES == 0 && codes_fit(&b, &from);
  b.zero = nibbles ? NIBBLE_ZERO : BYTE_ZERO;
  XnnId id = nibbles ? nibbles_twin(l, &b, &from, dims) : bytes_twin(l, &b, &from);
  *shift = block_shifts(l, &b);
  return id;
}

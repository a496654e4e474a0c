/* Weights with a scale for each block of a row: of 4 bits, as XNNPACK has them, or of 8, which it
 * has not, and which fuse_blocks.c computes block by block. Those with a scale and a zero point for
 * each row are one block. */
#include <math.h>

#include "backends/xnnpack/lower.h"
#include "ir/transform.h"
#include "support/half.h"

enum { NIBBLE_ZERO = 8, BYTE_ZERO = 128 };
enum { LEAST_NIBBLES = 32, LEAST_BYTES = 16 }; /* of a block; shorter products are slow */

/* A matrix [outputs, inputs] whose weights have a scale for each block of the inputs. */
typedef struct Blocks {
  Graph *g;
  const Quantization *q;
  const uint8_t *zeros; /* codes; NULL: all are 0 */
  bool permuted;        /* stored as [inputs, outputs] */
  int zero;             /* the middle of the codes from 0 on, NIBBLE_ZERO or BYTE_ZERO */
  uint32_t outputs, inputs, count, size;
  int16_t *shifts;  /* by block, as its parameters are: what codes are less than they should be */
  float *recodings; /* by block: how its codes are stored */
  int limit;        /* codes are stored from -limit to limit - 1 */
  bool small;       /* of 8 bits, in several blocks: all are stored from -8 to 7 */
} Blocks;

/* The code from 0 on; larger ones than 15 do not fit in 4 bits. */
static int stored_code(const Blocks *b, uint8_t byte) {
  return b->q->dtype == DTYPE_U8 ? byte : (int8_t)byte + b->zero;
}

/* Where the parameters of block k of output n are. */
static uint64_t block_at(const Blocks *b, uint32_t n, uint32_t k) {
  return b->permuted ? (uint64_t)k * b->outputs + n : (uint64_t)n * b->count + k;
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

/* --- the middle of codes --- */

/* The codes of blocks, of bytes from 0 on. */
typedef struct Spans {
  const Blocks *b;
  uint64_t at; /* of the next code */
  uint8_t *least, *most;
} Spans;

/* Of codes that follow each other: of one block, or where those are columns of one each. */
static void widen(Spans *s, uint64_t block, const uint8_t *bytes, uint64_t size) {
  uint8_t flip = s->b->q->dtype == DTYPE_U8 ? 0 : BYTE_ZERO, least = UINT8_MAX, most = 0;
  for (uint64_t i = 0; i < size; i++) {
    uint8_t code = bytes[i] ^ flip;
    least = code < least ? code : least;
    most = code > most ? code : most;
  }
  s->least[block] = s->least[block] < least ? s->least[block] : least;
  s->most[block] = s->most[block] > most ? s->most[block] : most;
}

static void widen_each(Spans *s, uint64_t block, const uint8_t *bytes, uint64_t size) {
  uint8_t flip = s->b->q->dtype == DTYPE_U8 ? 0 : BYTE_ZERO, *least = s->least + block,
          *most = s->most + block;
  for (uint64_t i = 0; i < size; i++) {
    uint8_t code = bytes[i] ^ flip;
    least[i] = code < least[i] ? code : least[i];
    most[i] = code > most[i] ? code : most[i];
  }
}

static void see_codes(void *user, const uint8_t *bytes, uint64_t size) {
  Spans *s = user;
  const Blocks *b = s->b;
  uint64_t line = b->permuted ? b->outputs : b->size;
  for (uint64_t i = 0, step; i < size; i += step, s->at += step) {
    uint64_t index = s->at / line, rest = line - s->at % line;
    step = rest < size - i ? rest : size - i;
    if (b->permuted)
      widen_each(s, index / b->size * line + s->at % line, bytes + i, step);
    else
      widen(s, index, bytes + i, step);
  }
}

static bool any_recoded(const Blocks *b) {
  uint64_t count = (uint64_t)b->outputs * b->count;
  for (uint64_t i = 0; i < count; i++) {
    float scale = xl_scale_at(b->g, b->q, i);
    if (scale < 0 || (scale > 0 && stored_code(b, b->zeros ? b->zeros[i] : 0) != b->zero))
      return true;
  }
  return false;
}

/* XNNPACK's codes are about a fixed middle, and its scales above 0: codes are moved by block, those
 * of a scale below 0 counted from the other end. Where they do not fit so, the block is moved
 * further, by as little as makes them fit, and its shift, times the sum of what it is multiplied
 * by, is added in floats: what rounding to 8 bits changes in that sum is as much larger than the
 * numbers of the block as its shift is. Codes of 4 bits in bytes are multiplied by floats where
 * their blocks could have been nibbles else: they become nibbles, by shifts, without a loss. */
static void recode_block(Blocks *b, uint64_t at, int least, int most) {
  float scale = xl_scale_at(b->g, b->q, at);
  int zero = stored_code(b, b->zeros ? b->zeros[at] : 0), low = least - zero, high = most - zero;
  if (scale == 0)
    return; /* all are the middle */
  if (scale < 0) {
    low = zero - most;
    high = zero - least;
  }
  int shift = low < -b->limit ? low + b->limit : high >= b->limit ? high - b->limit + 1 : 0;
  b->shifts[at] = (int16_t)shift;
  b->small &= low - shift >= -NIBBLE_ZERO && high - shift < NIBBLE_ZERO;
  b->recodings[at] = scale < 0 ? transform_recoding(true, zero + 1 - b->zero - shift)
                               : transform_recoding(false, b->zero - zero - shift);
}

/* Codes that were 4 bits around the middle. */
static bool were_nibbles(const Blocks *b, const Constant *codes) {
  const Transform *t = codes->transform;
  int middle = b->q->dtype == DTYPE_U8 ? BYTE_ZERO : 0;
  return t && t->code == TRANSFORM_UNPACK && t->low == middle - NIBBLE_ZERO;
}

static void recode_blocks(XnnLowering *l, Blocks *b, const Constant *codes) {
  uint64_t count = (uint64_t)b->outputs * b->count;
  b->small = b->zero == BYTE_ZERO && b->count > 1 && b->size % 2 == 0 && were_nibbles(b, codes);
  b->limit = b->small && b->size % LEAST_NIBBLES == 0 ? NIBBLE_ZERO : b->zero;
  b->shifts = ARENA_ARRAY(l->arena, int16_t, (size_t)count + 1);
  b->recodings = ARENA_ARRAY(&b->g->arena, float, (size_t)count + 1);
  if (!any_recoded(b)) {
    for (uint64_t i = 0; i < count; i++)
      b->recodings[i] = xl_scale_at(b->g, b->q, i) == 0 ? 0 : transform_recoding(false, 0);
    return;
  }
  Spans s = {.b = b,
             .least = ARENA_ARRAY(l->arena, uint8_t, (size_t)count + 1),
             .most = ARENA_ARRAY(l->arena, uint8_t, (size_t)count + 1)};
  int before = b->q->dtype == DTYPE_U8 ? 0 : BYTE_ZERO - b->zero; /* of codes that bytes have */
  memset(s.least, UINT8_MAX, count);
  constant_each(codes, see_codes, &s);
  for (uint64_t i = 0; i < count; i++)
    recode_block(b, i, s.least[i] - before, s.most[i] - before);
}

/* shift * scale of each block, [outputs, blocks]; XNN_NONE when all are 0. */
static XnnId block_shifts(XnnLowering *l, const Blocks *b) {
  uint64_t count = (uint64_t)b->outputs * b->count, first = 0;
  while (first < count && b->shifts[first] == 0)
    first++;
  if (first == count)
    return XNN_NONE;
  float *shifts = ARENA_ARRAY(l->arena, float, (size_t)count + 1);
  for (uint32_t n = 0; n < b->outputs; n++)
    for (uint32_t k = 0; k < b->count; k++) {
      uint64_t at = block_at(b, n, k);
      shifts[(uint64_t)n * b->count + k] =
          (float)b->shifts[at] * block_scale(b, xl_scale_at(b->g, b->q, at));
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
  return (CodeBlocks){
      .rows = b->outputs,
      .blocks = b->count,
      .size = b->size,
      .permuted = b->permuted,
      .is_signed = b->q->dtype == DTYPE_I8,
      .recodings = {.data = (const void *)b->recodings,
                    .size = (uint64_t)b->outputs * b->count * sizeof *b->recodings}};
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

/* Block k as a filter of its own, of 4 bits where its codes have no more. */
static XnnId block_filter(XnnLowering *l, const Blocks *b, const Constant *codes, uint32_t k) {
  Graph *g = l->g;
  CodeBlocks blocks = code_blocks(b);
  float *scales = ARENA_ARRAY(&g->arena, float, (size_t)b->outputs + 1);
  for (uint32_t n = 0; n < b->outputs; n++)
    scales[n] = block_scale(b, xl_scale_at(g, b->q, block_at(b, n, k)));
  uint32_t dims[] = {b->outputs, blocks.size};
  SymInt sizes[] = {b->outputs, b->small ? blocks.size / 2 : blocks.size};
  Constant bytes = {.data = (const void *)scales, .size = b->outputs * sizeof *scales};
  ValueId factors = graph_add_constant(
              g, graph_tensor_type(g, DTYPE_F32, 1, sizes, ORDER_CONTIGUOUS), bytes, 0),
          v = graph_add_constant(
              g, graph_tensor_type(g, b->small ? DTYPE_U8 : DTYPE_I8, 2, sizes, ORDER_CONTIGUOUS),
              constant_block(g, *codes, &blocks, k, b->small), 0);
  XnnDatatype datatype = b->small ? XNN_QCINT4 : XNN_QCINT8;
  XnnId id = xnn_constant(&l->x, datatype, 2, dims, (XnnData){.v = v});
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

/* The twin of the matrix with these codes, of 4 bits where they may be and fit. */
static XnnId make_twin(XnnLowering *l, Blocks *b, ValueId codes, bool may_pack,
                       const uint32_t *dims, XnnId *shift) {
  Constant from = *value_lazy_constant(l->g, codes); /* constants move when one is added */
  if (!scales_fit(b))
    return XNN_NONE;
  b->zero = NIBBLE_ZERO;
  bool nibbles = may_pack && b->size % LEAST_NIBBLES == 0 && codes_fit(b, &from);
  b->zero = nibbles ? NIBBLE_ZERO : BYTE_ZERO;
  recode_blocks(l, b, &from);
  XnnId id = nibbles ? nibbles_twin(l, b, &from, dims) : bytes_twin(l, b, &from);
  *shift = block_shifts(l, b);
  return id;
}

static Blocks blocks_of(XnnLowering *l, const Quantization *q, const uint32_t *dims,
                        const uint32_t *perm, uint32_t size) {
  return (Blocks){.g = l->g,
                  .q = q,
                  .permuted = perm[0] == 1,
                  .outputs = dims[0],
                  .inputs = dims[1],
                  .count = dims[1] / size,
                  .size = size};
}

XnnId xl_block_twin(XnnLowering *l, const Quantization *q, ValueId codes, const uint32_t dims[2],
                    const uint32_t perm[2], XnnId *shift) {
  if (perm[1] != q->axis || dims[1] % q->block || q->block < LEAST_BYTES)
    return XNN_NONE;
  Blocks b = blocks_of(l, q, dims, perm, (uint32_t)q->block);
  b.zeros = q->zeros ? value_constant(l->g, q->zeros)->data : NULL;
  return make_twin(l, &b, codes, true, dims, shift);
}

/* Zero points of channels as codes; false where one is no code. */
static bool zeros_as_codes(XnnLowering *l, const Quantization *q, uint32_t channels,
                           const uint8_t **out) {
  const Constant *c = value_constant(l->g, q->zeros);
  uint8_t *zeros = arena_alloc(l->arena, channels + 1);
  for (uint32_t i = 0; i < channels; i++) {
    int64_t zero;
    memcpy(&zero, c->data + i * sizeof zero, sizeof zero);
    if (zero < q->low || zero > q->high)
      return false;
    zeros[i] = (uint8_t)zero;
  }
  *out = zeros;
  return true;
}

XnnId xl_row_twin(XnnLowering *l, const Quantization *q, ValueId codes, const uint32_t dims[2],
                  const uint32_t perm[2], XnnId *shift) {
  if (perm[0] != q->axis || dims[1] < LEAST_BYTES || !q->scales || !q->zeros)
    return XNN_NONE;
  Blocks b = blocks_of(l, q, dims, perm, dims[1]);
  return zeros_as_codes(l, q, dims[0], &b.zeros) ? make_twin(l, &b, codes, false, dims, shift)
                                                 : XNN_NONE;
}

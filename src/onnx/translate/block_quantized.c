/* Matrix products and lookups of com.microsoft over weights of 2, 4 or 8 bits, with scales for
 * blocks of them. The weights stay packed in the program and become real numbers while it runs:
 * one matrix at a time needs memory for that. Where a backend multiplies such weights by rows of
 * 8 bits and the model allows that (accuracy_level 4), they are dequantized blocks, which the
 * backend packs again. */
#include "ir/transform.h"
#include "onnx/translate/quantized.h"
#include "ops/quantized.h"
#include "support/number.h"

/* --- unpacking --- */

/* The numbers of `bits` bits in a tensor of bytes, lowest first, each kind by itself. */
static uint32_t unpack(Import *im, ValueId packed, int64_t bits, ValueId parts[4]) {
  uint32_t count = (uint32_t)(8 / bits);
  if (count == 1)
    parts[0] = packed;
  for (uint32_t i = 0; i < count && count > 1 && import_ok(im); i++) {
    ValueId high =
        i ? build(&im->b, OP_BITWISE_RIGHT_SHIFT_TENSOR_SCALAR, A_VAL(packed), A_INT(i * bits))
          : packed;
    parts[i] = i + 1 == count
                   ? high
                   : build(&im->b, OP_BITWISE_AND_SCALAR, A_VAL(high), A_INT((1 << bits) - 1));
  }
  return count;
}

/* The same in the order of the bytes: the last dim is 8 / bits as large. */
static ValueId blocks_codes(Import *im, ValueId packed, int64_t bits) {
  ValueId parts[4] = {0};
  Dims s = shape_of(im, packed);
  uint32_t count = unpack(im, packed, bits, parts);
  if (count == 1 || !s.rank)
    return packed;
  for (uint32_t i = 0; i < count; i++)
    parts[i] = ex_unsqueeze(im, parts[i], s.rank);
  s.d[s.rank - 1] = sym_mul(&im->g->syms, s.d[s.rank - 1], count);
  return ex_view_as(im, ex_cat(im, parts, count, s.rank), s);
}

/* Known ones are a constant, also where folding would not make one that is so large: backends ask
 * for it. */
ValueId blocks_zeros(Import *im, ValueId packed, int64_t bits) {
  Dims s = shape_of(im, packed);
  if (!import_ok(im) || bits != 4 || !s.rank || !value_is_const(im->g, packed))
    return blocks_codes(im, packed, bits);
  Constant bytes = *value_constant(im->g, packed),
           codes = constant_unpacked(im->g, bytes, 1, bytes.size * 2, false, 0);
  s.d[s.rank - 1] *= 2;
  TypeId type = graph_tensor_type(im->g, DTYPE_U8, s.rank, s.d, ORDER_CONTIGUOUS);
  return graph_add_constant(im->g, type, codes, 0);
}

/* y (f32) less its zero points; 0: the usual one, the middle of the codes. */
static ValueId centred(Import *im, ValueId y, ValueId zeros, int64_t bits) {
  if (zeros)
    return ex_sub(im, y, ex_cast(im, zeros, DTYPE_F32));
  return ex_minus(im, y, (double)(1 << (bits - 1)));
}

/* --- MatMulNBits --- */

static bool power_of_two(int64_t x) { return x > 0 && (x & (x - 1)) == 0; }

static bool read_blocks(Import *im, Blocks *w) {
  w->n = attr_int_required(im, "N");
  w->k = attr_int_required(im, "K");
  w->size = attr_int_required(im, "block_size");
  w->bits = attr_int(im, "bits", 4);
  if (w->bits != 2 && w->bits != 4 && w->bits != 8)
    import_fail(im, DIAG_ATTR_VALUE, "bits is %lld, not 2, 4 or 8", (long long)w->bits);
  else if (!power_of_two(w->size) || w->size < 16 || w->size > 1 << 20)
    import_fail(im, DIAG_ATTR_VALUE, "block_size %lld is not a power of two from 16 on",
                (long long)w->size);
  else if (w->n < 1 || w->k < 1 || w->n > 1 << 30 || w->k > 1 << 30)
    import_fail(im, DIAG_ATTR_VALUE, "N is %lld, K is %lld", (long long)w->n, (long long)w->k);
  if (!import_ok(im))
    return false;
  w->count = (w->k + w->size - 1) / w->size;
  w->bytes = w->size * w->bits / 8;
  w->real_zeros = false;
  return true;
}

/* A constant with as many elements as [rows, columns], given with any dims. */
static ValueId as_matrix(Import *im, ValueId v, const char *what, int64_t rows, int64_t columns) {
  Dims s = shape_of(im, v);
  int64_t have = 1;
  for (uint32_t i = 0; i < s.rank && import_ok(im); i++)
    if (!sym_is_const(s.d[i]) || !mul_i64(have, s.d[i], &have))
      have = -1;
  if (have != rows * columns)
    return import_fail(im, DIAG_SHAPE_MISMATCH, "%s does not have %lld * %lld elements", what,
                       (long long)rows, (long long)columns);
  return EX_VIEW(im, v, rows, columns);
}

/* The weights without what a block has beyond the row, where one block is all of it. */
static ValueId cut_to_row(Import *im, Blocks *w, ValueId packed) {
  if (w->count != 1 || w->k * w->bits % 8 != 0)
    return packed;
  w->size = w->k;
  w->bytes = w->k * w->bits / 8;
  return ex_slice(im, packed, 1, 0, w->bytes);
}

/* Zero points by block [N, blocks], as codes or real numbers, or 0 for the usual one. */
static ValueId read_zeros(Import *im, const Blocks *w) {
  ValueId zeros = in(im, 3);
  if (!zeros)
    return 0;
  if (ex_dtype(im, zeros) != DTYPE_U8)
    return as_matrix(im, zeros, "zero_points", w->n, w->count);
  int64_t row = (w->count * w->bits + 7) / 8;
  zeros = blocks_zeros(im, as_matrix(im, zeros, "zero_points", w->n, row), w->bits);
  return ex_slice(im, zeros, 1, 0, w->count);
}

/* x [.., K] padded to whole blocks, with columns in the order of unpack(): all first numbers of the
 * bytes, all second ones. */
static ValueId by_parts(Import *im, const Blocks *w, ValueId x, int64_t parts) {
  Dims s = shape_of(im, x);
  int64_t padded = w->count * w->size;
  int same =
      s.rank < 1 || s.rank >= MAX_RANK ? 0 : sym_known_eq(&im->g->syms, s.d[s.rank - 1], w->k);
  if (same == 0)
    return import_fail(im, DIAG_SHAPE_MISMATCH, "the last dim of the input is not K = %lld",
                       (long long)w->k);
  if (same < 0) { /* dynamic, where only K fits */
    graph_add_constraint(im->g, (Constraint){CONSTRAINT_EQ, s.d[s.rank - 1], w->k, im->b.loc});
    s.d[s.rank - 1] = w->k;
    x = ex_view_as(im, x, s);
  }
  x = ex_pad(im, x, 0, 0, padded - w->k);
  if (parts == 1)
    return x;
  s.d[s.rank - 1] = padded / parts;
  s.d[s.rank++] = parts;
  ValueId y = ex_move_dim(im, ex_view_as(im, x, s), s.rank - 1, s.rank - 2);
  s.d[--s.rank - 1] = padded;
  return ex_view_as(im, y, s);
}

/* scales or zero points for the elements of [N, parts, blocks, bytes]. */
static ValueId by_block(Import *im, const Blocks *w, ValueId v) {
  return EX_VIEW(im, v, w->n, 1, w->count, 1);
}

/* Real weights [N, parts * blocks * bytes]. */
static ValueId real_weights(Import *im, const Blocks *w) {
  ValueId parts[4] = {0};
  uint32_t count = unpack(im, w->packed, w->bits, parts);
  for (uint32_t i = 0; i < count; i++)
    parts[i] = EX_VIEW(im, parts[i], w->n, 1, w->count, w->bytes);
  ValueId y = ex_cast(im, ex_cat(im, parts, count, 1), DTYPE_F32);
  y = centred(im, y, w->zeros ? by_block(im, w, w->zeros) : 0, w->bits);
  return EX_VIEW(im, ex_mul(im, y, by_block(im, w, w->scales)), w->n, w->count * w->size);
}

/* Real weights [N, K] whose columns are in any group. */
static ValueId grouped_weights(Import *im, const Blocks *w, ValueId groups) {
  ValueId all = EX_VIEW(im, blocks_codes(im, w->packed, w->bits), w->n, w->count * w->size);
  ValueId y = ex_cast(im, ex_slice(im, all, 1, 0, w->k), DTYPE_F32);
  groups = ex_slice(im, groups, 0, 0, w->k);
  y = centred(im, y, w->zeros ? ex_index_select(im, w->zeros, 1, groups) : 0, w->bits);
  return ex_mul(im, y, ex_index_select(im, w->scales, 1, groups));
}

enum {
  ACCURACY_INT8 = 4,
  BACKEND_LEAST = 16,
  BACKEND_BLOCK = 32,
  NIBBLE_ZERO = 8,
  BYTE_ZERO = 128
};

/* Constant codes of 4 bits, two a byte, lower ones first, as a byte each: the code + low. */
static ValueId bytes_of_nibbles(Import *im, const Blocks *w, DType dtype, int8_t low) {
  int64_t columns = w->count * w->size;
  Constant bytes = *value_constant(im->g, w->packed),
           codes = constant_unpacked(im->g, bytes, (uint64_t)w->n, (uint64_t)columns, false, low);
  TypeId type = graph_tensor_type(im->g, dtype, 2, (SymInt[]){w->n, columns}, ORDER_CONTIGUOUS);
  return graph_add_constant(im->g, type, codes, 0);
}

/* The model lets a backend multiply by rows of 8 bits, or --quantize does. With zero points that
 * are real numbers ONNX Runtime 1.31 multiplies floats, whatever accuracy_level says. */
static bool takes_rows_of_bytes(Import *im, const Blocks *w) {
  return im->options->blocks == BLOCKS_ALWAYS ||
         (im->options->blocks == BLOCKS_WHERE_ALLOWED && !w->real_zeros &&
          attr_int(im, "accuracy_level", 0) == ACCURACY_INT8);
}

/* As codes of 4 bits a backend multiplies them by rows of 8 bits only. */
static bool stay_nibbles(Import *im, const Blocks *w) {
  return w->bits == 4 && w->size % BACKEND_BLOCK == 0 && takes_rows_of_bytes(im, w);
}

/* The middle of bytes as the zero point of each block: a constant, also where folding would not
 * make one that is so large, as of the last layer of a language model. */
static ValueId middles(Import *im, const Blocks *w) {
  uint64_t count = (uint64_t)w->n * (uint64_t)w->count;
  uint8_t *zeros = arena_alloc(&im->g->arena, count + 1);
  memset(zeros, BYTE_ZERO, count);
  TypeId type = graph_tensor_type(im->g, DTYPE_U8, 2, (SymInt[]){w->n, w->count}, ORDER_CONTIGUOUS);
  return graph_add_constant(im->g, type, (Constant){.data = zeros, .size = count}, 0);
}

/* zeros: codes, or 0. */
static bool backend_takes(Import *im, const Blocks *w, ValueId zeros) {
  return import_ok(im) && im->options->blocks != BLOCKS_NEVER && w->bits >= 4 &&
         w->size >= BACKEND_LEAST && value_is_const(im->g, w->packed) &&
         value_is_const(im->g, w->scales) && (!zeros || value_is_const(im->g, zeros));
}

/* The weights [N, blocks * size] as blocks that a backend takes, without zero points that are real
 * numbers; 0 when it does not. The last block may have more columns than the operand, which is
 * padded. Codes that are multiplied by floats are bytes around 128; one block a row is a channel.
 */
static ValueId backend_weights(Import *im, const Blocks *w) {
  ValueId zeros = w->real_zeros ? 0 : w->zeros;
  if (!backend_takes(im, w, zeros))
    return 0;
  Quantization q = {.scales = w->scales, .axis = 1, .block = w->size};
  bool channels = w->bits == 4 && w->count == 1 && !zeros;
  if (stay_nibbles(im, w) || channels) {
    q.dtype = DTYPE_I8;
    q.low = -NIBBLE_ZERO;
    q.high = NIBBLE_ZERO - 1;
    q.zeros = zeros ? ex_minus(im, ex_cast(im, zeros, DTYPE_I8), NIBBLE_ZERO) : 0;
    ValueId codes = bytes_of_nibbles(im, w, DTYPE_I8, -NIBBLE_ZERO);
    if (!stay_nibbles(im, w)) {
      q.scales = EX_VIEW(im, w->scales, w->n);
      q.axis = q.block = 0;
    }
    return build_dequantize(&im->b, codes, &q);
  }
  int8_t shift = w->bits == 4 ? BYTE_ZERO - NIBBLE_ZERO : 0;
  q.dtype = DTYPE_U8;
  q.high = UINT8_MAX;
  q.zeros = zeros ? ex_plus(im, zeros, shift) : middles(im, w);
  ValueId codes = shift ? bytes_of_nibbles(im, w, DTYPE_U8, shift) : w->packed;
  return build_dequantize(&im->b, codes, &q);
}

/* x rounded to 8 bits a row. */
static ValueId rows_of_bytes(Import *im, ValueId x) {
  Quantization q = build_rows(&im->b, x);
  return build_dequantize(&im->b, build_quantize(&im->b, x, &q), &q);
}

/* What zero points that are real numbers, as HQQ has them, add to a product whose codes are around
 * their middle: of each block the sum of the operand times (middle - zero point) * scale. */
static ValueId product_of_zeros(Import *im, const Blocks *w, ValueId x, ValueId zeros) {
  Dims s = shape_of(im, x);
  s.d[s.rank - 1] = w->count;
  s.d[s.rank++] = w->size;
  ValueId sums = ex_sum(im, ex_view_as(im, x, s), s.rank - 1, false);
  ValueId from_middle = ex_unary(im, OP_NEG, centred(im, zeros, 0, w->bits));
  return ex_linear(im, sums, ex_mul(im, from_middle, w->scales), 0);
}

ValueId blocks_linear(Import *im, const Blocks *w, ValueId x, ValueId bias) {
  ValueId weights = backend_weights(im, w);
  x = by_parts(im, w, x, weights ? 1 : 8 / w->bits);
  if (!weights)
    return ex_linear(im, x, real_weights(im, w), bias);
  bool round = takes_rows_of_bytes(im, w) && !stay_nibbles(im, w);
  ValueId y = ex_linear(im, round ? rows_of_bytes(im, x) : x, weights, bias);
  if (w->real_zeros && import_ok(im))
    y = ex_add(im, y, product_of_zeros(im, w, x, ex_cast(im, w->zeros, DTYPE_F32)));
  return y;
}

/* Whether each block of columns is a group, in order, as quantizers write that do not sort columns.
 */
static bool groups_are_blocks(Import *im, const Blocks *w, ValueId groups) {
  const Constant *c = import_ok(im) ? value_constant(im->g, groups) : NULL;
  bool same = c && ex_dtype(im, groups) == DTYPE_I32 && c->size / sizeof(int32_t) >= (uint64_t)w->k;
  for (int64_t i = 0; i < w->k && same; i++)
    same = (int32_t)load_u32(c->data + (uint64_t)i * sizeof(int32_t)) == i / w->size;
  return same;
}

void translate_matmul_nbits(Import *im) {
  Blocks w;
  ValueId x = in_required(im, 0), packed = in_required(im, 1), scales = in_required(im, 2),
          groups = in(im, 4), bias = in(im, 5);
  if (!read_blocks(im, &w))
    return;
  if (attr_flag(im, "weight_prepacked", false))
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "weights prepacked for a GPU are not supported");
  if (ex_dtype(im, packed) != DTYPE_U8)
    import_fail(im, DIAG_INPUT_TYPE, "the weights are %s, not u8",
                dtype_name(ex_dtype(im, packed)));
  if (groups && (ex_rank(im, groups) != 1 || !sym_is_const(ex_dim(im, groups, 0)) ||
                 ex_dim(im, groups, 0) < w.k))
    import_fail(im, DIAG_SHAPE_MISMATCH, "g_idx does not have K = %lld entries", (long long)w.k);
  if (groups && groups_are_blocks(im, &w, groups))
    groups = 0;
  w.packed = cut_to_row(im, &w, as_matrix(im, packed, "B", w.n, w.count * w.bytes));
  w.scales = ex_cast(im, as_matrix(im, scales, "scales", w.n, w.count), DTYPE_F32);
  DType dtype = ex_dtype(im, x);
  x = ex_cast(im, x, DTYPE_F32);
  bias = bias ? ex_cast(im, bias, DTYPE_F32) : 0;
  w.zeros = read_zeros(im, &w);
  w.real_zeros = w.zeros && ex_dtype(im, w.zeros) != DTYPE_U8;
  ValueId y = groups ? ex_linear(im, x, grouped_weights(im, &w, groups), bias)
                     : blocks_linear(im, &w, x, bias);
  out(im, 0, ex_cast(im, y, dtype));
}

/* --- MatMulBnb4 --- */

/* The numbers that 4 bits stand for in the two types of bitsandbytes, for a largest one of 1. */
static const float fp4[16] = {
    0,     0.0052083333F,  0.6666667F,  1,  0.33333333F,  0.5F,  0.16666667F,  0.25F,
    -0.0F, -0.0052083333F, -0.6666667F, -1, -0.33333333F, -0.5F, -0.16666667F, -0.25F};
static const float nf4[16] = {-1,           -0.69619280F, -0.52507305F,  -0.39491749F,
                              -0.28444138F, -0.18477343F, -0.091050036F, 0,
                              0.079580300F, 0.16093020F,  0.24611230F,   0.33791524F,
                              0.44070983F,  0.56261700F,  0.72295684F,   1};

/* The pairs of numbers that bytes stand for, whose upper half comes first: one row is looked up for
 * two weights. */
static ValueId bnb4_pairs(Import *im, const float numbers[16]) {
  float pairs[256][2];
  for (uint32_t i = 0; i < 256; i++) {
    pairs[i][0] = numbers[i >> 4];
    pairs[i][1] = numbers[i & 15];
  }
  return build_const(&im->b, DTYPE_F32, 2, (int64_t[]){256, 2}, pairs);
}

/* [N, K] */
static ValueId bnb4_weights(Import *im, const Blocks *w, ValueId packed, ValueId largest) {
  int64_t all = w->n * w->k, blocks = (all + w->size - 1) / w->size, bytes = (all + 1) / 2,
          kind = attr_int(im, "quant_type", -1);
  if (kind < 0 || kind > 1)
    return import_fail(im, DIAG_ATTR_VALUE, "quant_type is %lld, not 0 or 1", (long long)kind);
  packed = EX_VIEW(im, as_matrix(im, packed, "B", 1, bytes), bytes);
  largest = as_matrix(im, largest, "absmax", blocks, 1);
  ValueId table = bnb4_pairs(im, kind ? nf4 : fp4);
  ValueId real = ex_binary(im, OP_EMBEDDING, table, ex_cast(im, packed, DTYPE_I32));
  real = ex_slice(im, EX_VIEW(im, real, bytes * 2), 0, 0, all);
  real = ex_pad(im, real, 0, 0, blocks * w->size - all);
  largest = ex_cast(im, largest, DTYPE_F32);
  real = ex_mul(im, EX_VIEW(im, real, blocks, w->size), largest);
  real = ex_slice(im, EX_VIEW(im, real, blocks * w->size), 0, 0, all);
  return EX_VIEW(im, real, w->n, w->k);
}

void translate_matmul_bnb4(Import *im) {
  Blocks w;
  ValueId x = in_required(im, 0), packed = in_required(im, 1), largest = in_required(im, 2);
  if (!read_blocks(im, &w))
    return;
  DType dtype = ex_dtype(im, x);
  ValueId weights = bnb4_weights(im, &w, packed, largest);
  x = ex_cast(im, x, DTYPE_F32);
  bool transposed = attr_flag(im, "transB", true);
  ValueId y = transposed ? ex_linear(im, x, weights, 0) : ex_matmul(im, x, weights);
  out(im, 0, ex_cast(im, y, dtype));
}

/* --- GatherBlockQuantized --- */

static ValueId rows(Import *im, ValueId table, ValueId flat) {
  ValueId list[] = {flat};
  return build(&im->b, OP_INDEX_TENSOR, A_VAL(table), A_VALS(list, 1));
}

typedef struct Table {
  ValueId codes, scales, zeros; /* codes and zeros are bytes of the lowest code first */
  int64_t columns, bits, size, blocks;
  double zero; /* where there are no zeros */
} Table;

static void check_table(Import *im, const Table *t) {
  if (ex_rank(im, t->codes) != 2 || ex_rank(im, t->scales) != 2 ||
      import_axis(im, attr_int(im, "gather_axis", 0), 2) != 0 ||
      import_axis(im, attr_int(im, "quantize_axis", 1), 2) != 1)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "only rows of a matrix with blocks along the columns can be gathered");
  else if (t->size < 16 || t->size > 1 << 20 || !power_of_two(t->size) ||
           (t->bits != 2 && t->bits != 4 && t->bits != 8))
    import_fail(im, DIAG_ATTR_VALUE, "block_size %lld, bits %lld", (long long)t->size,
                (long long)t->bits);
}

/* Rows of an odd number of codes, each of which ends with a whole byte. */
static Constant pack_rows(Import *im, const Constant *codes, int64_t rows, int64_t columns,
                          unsigned more) {
  int64_t wide = (columns + 1) / 2;
  uint8_t *packed = arena_alloc(&im->g->arena, (size_t)(rows * wide) + 1);
  memset(packed, 0, (size_t)(rows * wide));
  for (int64_t i = 0; i < rows * columns; i++) {
    int64_t k = i % columns;
    unsigned code = (codes->data[i] + more) & 15U;
    packed[i / columns * wide + k / 2] |= (uint8_t)(code << (k % 2 ? 4 : 0));
  }
  return (Constant){.data = packed, .size = (uint64_t)(rows * wide)};
}

/* A constant matrix of int4 or uint4, of which import made a byte each, as nibbles again: those of
 * int4 are 8 more. Codes of the same sign have their zero points moved likewise. */
static ValueId as_nibbles(Import *im, ValueId v) {
  int64_t rows = ex_fixed(im, v, 0), columns = ex_fixed(im, v, 1), wide = (columns + 1) / 2;
  if (import_ok(im) && !value_is_const(im->g, v))
    return import_fail(im, DIAG_UNSUPPORTED_FEATURE, "a table of 4 bits must be a constant");
  if (!import_ok(im))
    return 0;
  bool is_signed = ex_dtype(im, v) == DTYPE_I8;
  bool even = columns % 2 == 0 && rows * columns <= UINT32_MAX && rows > 0 && columns > 0;
  Constant packed =
      even ? constant_nibbles(im->g, *value_lazy_constant(im->g, v), 1, (uint32_t)(rows * columns),
                              false, is_signed)
           : pack_rows(im, value_constant(im->g, v), rows, columns, is_signed ? NIBBLE_ZERO : 0);
  TypeId type = graph_tensor_type(im->g, DTYPE_U8, 2, (SymInt[]){rows, wide}, ORDER_CONTIGUOUS);
  return graph_add_constant(im->g, type, packed, 0);
}

/* Bytes have the middle of the codes as their usual zero point, the types of 4 bits 0. */
static bool read_table(Import *im, Table *t) {
  *t = (Table){.codes = in_required(im, 0),
               .scales = in_required(im, 2),
               .zeros = in(im, 3),
               .size = attr_int(im, "block_size", 128),
               .bits = attr_int(im, "bits", 4)};
  bool nibbles = import_ok(im) && in_packed(im, 0);
  check_table(im, t);
  if (import_ok(im) && !nibbles && ex_dtype(im, t->codes) != DTYPE_U8)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "data of type %s is not supported",
                dtype_name(ex_dtype(im, t->codes)));
  int64_t wide = ex_fixed(im, t->codes, 1);
  t->blocks = ex_fixed(im, t->scales, 1);
  if (!import_ok(im))
    return false;
  t->columns = nibbles ? wide : wide * (8 / t->bits);
  t->zero = nibbles && ex_dtype(im, t->codes) == DTYPE_U8 ? 0 : 1 << (t->bits - 1);
  if (wide > INT32_MAX || t->blocks > INT32_MAX ||
      (t->columns + t->size - 1) / t->size != t->blocks)
    import_fail(im, DIAG_SHAPE_MISMATCH, "%lld blocks of %lld do not make %lld columns a row",
                (long long)t->blocks, (long long)t->size, (long long)t->columns);
  if (nibbles && import_ok(im)) {
    t->codes = as_nibbles(im, t->codes);
    t->zeros = t->zeros ? as_nibbles(im, t->zeros) : 0;
  }
  return import_ok(im);
}

/* Only the rows that are looked up become real numbers. */
void translate_gather_block_quantized(Import *im) {
  Table t;
  ValueId index = in_required(im, 1);
  if (!read_table(im, &t))
    return;
  Dims at = shape_of(im, index);
  index = ex_flat(im, ex_cast(im, index, DTYPE_I64));
  SymInt count = ex_dim(im, index, 0);
  int64_t all = t.blocks * t.size;
  ValueId y = blocks_codes(im, rows(im, t.codes, index), t.bits);
  y = ex_cast(im, ex_slice(im, y, 1, 0, t.columns), DTYPE_F32);
  y = EX_VIEW(im, ex_pad(im, y, 0, 0, all - t.columns), count, t.blocks, t.size);
  if (t.zeros) {
    ValueId zeros = blocks_codes(im, rows(im, t.zeros, index), t.bits);
    zeros = ex_cast(im, ex_slice(im, zeros, 1, 0, t.blocks), DTYPE_F32);
    y = ex_sub(im, y, EX_VIEW(im, zeros, count, t.blocks, 1));
  } else if (t.zero != 0) {
    y = ex_minus(im, y, t.zero);
  }
  DType dtype = ex_dtype(im, t.scales);
  ValueId factor = ex_cast(im, rows(im, t.scales, index), DTYPE_F32);
  y = ex_mul(im, y, EX_VIEW(im, factor, count, t.blocks, 1));
  y = ex_cast(im, ex_slice(im, EX_VIEW(im, y, count, all), 1, 0, t.columns), dtype);
  at.d[at.rank++] = t.columns;
  out(im, 0, ex_view_as(im, y, at));
}

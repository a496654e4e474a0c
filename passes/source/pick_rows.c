/* Of a dequantized table, codes are picked, and the scales and zero points that belong to them:
 * dequantizing a table costs more than all that is done with it, and its floats are larger. */
#include "passes/source/pick_rows.h"

#include "ir/transform.h"
#include "ops/quantized.h"

enum { NIBBLE = 4, NIBBLE_ZERO = 1 << (NIBBLE - 1), NIBBLE_MASK = (1 << NIBBLE) - 1 };

bool picks_rows(const Graph *g, NodeId n) {
  OpId op = node_cget(g, n)->op;
  return op == OP_EMBEDDING || (op == OP_INDEX_SELECT && node_int(g, n, 1) == 0) ||
         (op == OP_INDEX_TENSOR && node_list_count(g, n, 1) == 1);
}

/* The same entries of another table. */
static ValueId picked(Builder *b, NodeId n, ValueId table) {
  return build_on(b, n, &A_VAL(table), 1);
}

/* v with more dims behind, of size 1, up to that rank. */
static ValueId widened(Builder *b, ValueId v, uint32_t rank) {
  SymInt dims[MAX_RANK];
  if (b->status != STATUS_OK)
    return 0;
  uint32_t own = value_rank(b->g, v);
  for (uint32_t i = 0; i < rank; i++)
    dims[i] = i < own ? value_dim(b->g, v, i) : 1;
  return build_view(b, v, dims, rank);
}

/* --- a scale for each row --- */

/* Zero points as floats. */
static ValueId float_zeros(Builder *b, ValueId zeros) {
  const Constant *c = value_constant(b->g, zeros);
  int64_t count = (int64_t)(c->size / sizeof(int64_t)), zero;
  float *floats = ARENA_ARRAY(&b->g->arena, float, (size_t)count + 1);
  for (int64_t i = 0; i < count; i++) {
    memcpy(&zero, c->data + (size_t)i * sizeof zero, sizeof zero);
    floats[i] = (float)zero;
  }
  return build_const(b, DTYPE_F32, 1, &count, floats);
}

/* Picked rows, less picked zero points, times picked scales. */
static ValueId pick_by_row(Builder *b, NodeId n, const Quantization *q, ValueId codes) {
  if (node_cget(b->g, n)->op == OP_EMBEDDING || !picks_rows(b->g, n) || q->axis != 0)
    return 0; /* an embedding picks rows, and scales are no rows */
  ValueId rows = picked(b, n, codes), scales = picked(b, n, q->scales),
          y = build_cast(b, rows, DTYPE_F32);
  uint32_t rank = b->status == STATUS_OK ? value_rank(b->g, rows) : 0;
  if (q->zeros) {
    ValueId zeros = picked(b, n, float_zeros(b, q->zeros));
    y = build(b, OP_SUB_TENSOR, A_VAL(y), A_VAL(widened(b, zeros, rank)), A_INT(1));
  }
  return build(b, OP_MUL_TENSOR, A_VAL(y), A_VAL(widened(b, scales, rank)));
}

/* --- a scale for each block of a row --- */

/* Codes of 4 bits or fewer, of which import made a byte each, two in a byte again; those with a
 * sign are 8 more. */
static ValueId as_nibbles(Graph *g, ValueId codes, bool is_signed) {
  SymInt dims[] = {value_dim(g, codes, 0), value_dim(g, codes, 1) / 2};
  Constant packed = constant_nibbles(g, *value_lazy_constant(g, codes), 1,
                                     (uint32_t)(dims[0] * dims[1] * 2), false, is_signed);
  return graph_add_constant(g, graph_tensor_type(g, DTYPE_U8, 2, dims, ORDER_CONTIGUOUS), packed,
                            0);
}

/* Both codes of each byte, in their order, as another dim. */
static ValueId unpacked(Builder *b, ValueId bytes) {
  uint32_t rank = b->status == STATUS_OK ? value_rank(b->g, bytes) : 0;
  ValueId low = build(b, OP_BITWISE_AND_SCALAR, A_VAL(bytes), A_INT(NIBBLE_MASK)),
          high = build(b, OP_BITWISE_RIGHT_SHIFT_TENSOR_SCALAR, A_VAL(bytes), A_INT(NIBBLE));
  ValueId parts[] = {build_unsqueeze(b, low, rank), 0};
  parts[1] = build_unsqueeze(b, high, rank);
  return build(b, OP_CAT, A_VALS(parts, 2), A_INT(rank));
}

/* Whether the codes, which are a matrix, fit and fill nibbles. */
static bool are_nibbles(const Graph *g, const Quantization *q, ValueId codes) {
  int64_t least = q->dtype == DTYPE_I8 ? -NIBBLE_ZERO : 0;
  SymInt rows = value_dim(g, codes, 0), columns = value_dim(g, codes, 1);
  return q->low >= least && q->high <= least + NIBBLE_MASK && columns % 2 == 0 && rows > 0 &&
         columns > 0 && rows <= UINT32_MAX / columns;
}

static ValueId pick_blocks(Builder *b, NodeId n, const Quantization *q, ValueId codes) {
  Graph *g = b->g;
  ValueId y = node_result(g, n, 0);
  uint32_t rank = value_rank(g, y);
  SymInt whole[MAX_RANK], split[MAX_RANK + 1];
  if (!picks_rows(g, n) || value_rank(g, codes) != 2 || q->axis != 1 || rank + 2 > MAX_RANK)
    return 0;
  for (uint32_t i = 0; i < rank; i++)
    whole[i] = split[i] = value_dim(g, y, i);
  split[rank - 1] = whole[rank - 1] / q->block;
  split[rank] = q->block;
  bool nibbles = are_nibbles(g, q, codes), is_signed = q->dtype == DTYPE_I8;
  ValueId table = nibbles ? as_nibbles(g, codes, is_signed) : codes, x = picked(b, n, table);
  x = build_view(b, nibbles ? unpacked(b, x) : x, split, rank + 1);
  x = build_cast(b, x, DTYPE_F32);
  if (nibbles && is_signed)
    x = build(b, OP_SUB_TENSOR, A_VAL(x), A_VAL(build_scalar(b, DTYPE_F32, NIBBLE_ZERO)), A_INT(1));
  if (q->zeros) {
    ValueId zeros = build_cast(b, picked(b, n, q->zeros), DTYPE_F32);
    x = build(b, OP_SUB_TENSOR, A_VAL(x), A_VAL(widened(b, zeros, rank + 1)), A_INT(1));
  }
  ValueId scales = picked(b, n, q->scales), wide = widened(b, scales, rank + 1);
  return build_view(b, build(b, OP_MUL_TENSOR, A_VAL(x), A_VAL(wide)), whole, rank);
}

ValueId pick_codes(Builder *b, NodeId n) {
  Graph *g = b->g;
  NodeId def = dequantized_constant(g, node_value(g, n, 0));
  if (!def)
    return 0;
  Quantization q = quantization_of(g, def);
  ValueId codes = node_value(g, def, 0);
  if (q.block)
    return pick_blocks(b, n, &q, codes);
  return q.scales ? pick_by_row(b, n, &q, codes) : build_dequantize(b, picked(b, n, codes), &q);
}

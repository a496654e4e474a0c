/* Reads weights of integers as exporters spell them: conversions of constants to i32, and their
 * zero points subtracted. */
#include "passes/source/integer_weights.h"

#include "ir/match.h"

ValueId integer_uncast(const Graph *g, ValueId v) {
  for (NodeId n; (n = match_op(g, v, OP_TO_COPY));)
    if (dtype_is_int(value_dtype(g, node_value(g, n, 0))))
      v = node_value(g, n, 0);
    else
      break;
  return v;
}

/* v is a constant, or one of u8 or i8 made wider. */
static bool constant_behind(const Graph *g, ValueId v, ValueId *constant) {
  *constant = integer_uncast(g, v);
  DTypeSet types = DT(U8) | DT(I8) | (*constant == v ? DT(I32) : 0);
  return value_is_const(g, *constant) && dtype_in(value_dtype(g, *constant), types);
}

/* v[first..first + count] of type u8, i8 or i32. */
static void read_ints(const Graph *g, ValueId v, uint64_t first, uint64_t count, int32_t *out) {
  DType dtype = value_dtype(g, v);
  const uint8_t *data = value_constant(g, v)->data + first * dtype_size(dtype);
  if (dtype == DTYPE_I32)
    memcpy(out, data, count * sizeof *out);
  for (uint64_t i = 0; i < count && dtype == DTYPE_U8; i++)
    out[i] = data[i];
  for (uint64_t i = 0; i < count && dtype == DTYPE_I8; i++)
    out[i] = (int8_t)data[i];
}

static uint64_t count_of(const Graph *g, ValueId v) {
  return value_lazy_constant(g, v)->size / dtype_size(value_dtype(g, v));
}

static bool zero_fits(const Graph *g, ValueId zero, ValueId weights) {
  uint32_t rank = value_rank(g, weights);
  uint64_t count = count_of(g, zero);
  return count == 1 ||
         (rank && value_rank(g, zero) >= 1 && value_dim(g, weights, rank - 1) == (SymInt)count &&
          value_dim(g, zero, value_rank(g, zero) - 1) == (SymInt)count);
}

bool integer_weights_read(const Graph *g, ValueId v, IntegerWeights *w) {
  NodeId sub = match_op(g, v, OP_SUB_TENSOR);
  w->zero = 0;
  if (!constant_behind(g, sub ? node_value(g, sub, 0) : v, &w->codes) ||
      (sub && !constant_behind(g, node_value(g, sub, 1), &w->zero)) ||
      (sub && !zero_fits(g, w->zero, w->codes)))
    return false;
  w->count = count_of(g, w->codes);
  return true;
}

bool integer_weights_get(const Graph *g, const IntegerWeights *w, uint64_t first, uint64_t count,
                         int32_t *out) {
  int32_t zeros[INTEGER_RUN];
  uint64_t columns = w->zero ? count_of(g, w->zero) : 0;
  bool fits = true;
  read_ints(g, w->codes, first, count, out);
  for (uint64_t i = 0, run; i < count && columns; i += run) {
    uint64_t column = columns > 1 ? (first + i) % columns : 0;
    run = min_u64(min_u64(count - i, INTEGER_RUN), columns > 1 ? columns - column : INTEGER_RUN);
    read_ints(g, w->zero, column, columns > 1 ? run : 1, zeros);
    for (uint64_t k = 0; k < run; k++) {
      int64_t number = (int64_t)out[i + k] - zeros[columns > 1 ? k : 0];
      fits = fits && number >= INT32_MIN && number <= INT32_MAX;
      out[i + k] = (int32_t)number;
    }
  }
  return fits;
}

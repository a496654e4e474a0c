/* See work.h. */
#include "ops/work.h"

#include "ops/delegate.h"

uint64_t work_times(uint64_t a, uint64_t b) { return mul_u64(a, b, &a) ? a : UINT64_MAX; }

uint64_t work_plus(uint64_t a, uint64_t b) { return add_u64(a, b, &a) ? a : UINT64_MAX; }

uint32_t work_percent(uint64_t part, uint64_t whole) {
  if (part == 0 || whole == 0)
    return 0;
  if (part >= whole)
    return 100;
  while (whole > UINT64_MAX / 200) { /* so that nothing overflows below */
    part >>= 1;
    whole >>= 1;
  }
  uint64_t percent = (200 * part + whole) / (2 * whole);
  return percent < 1 ? 1 : percent > 99 ? 99 : (uint32_t)percent;
}

static uint64_t elements(const Graph *g, ValueId v) {
  const Type *t = value_type(g, v);
  uint64_t bytes = type_bytes_upper(g, t);
  return bytes == UINT64_MAX ? bytes : bytes / dtype_size((DType)t->dtype);
}

static uint64_t dim_upper(const Graph *g, ValueId v, uint32_t i) {
  int64_t size = sym_upper(&g->syms, value_dim(g, v, i));
  return size > 0 ? (uint64_t)size : 0;
}

/* Each element of the result sums up one row of the left operand. */
static uint64_t product_work(const Graph *g, NodeId n, uint32_t left) {
  ValueId v = node_value(g, n, left);
  uint32_t rank = value_rank(g, v);
  return rank ? work_times(elements(g, node_result(g, n, 0)), dim_upper(g, v, rank - 1)) : 0;
}

/* Each element of the result, or of the operand of a transposed one, meets the weights of its
 * group. */
static uint64_t convolution_work(const Graph *g, NodeId n) {
  bool transposed = node_bool(g, n, op_arg_index(OP_CONVOLUTION, "transposed"));
  ValueId weight = node_value(g, n, 1);
  uint64_t work = elements(g, transposed ? node_value(g, n, 0) : node_result(g, n, 0));
  for (uint32_t i = 1; i < value_rank(g, weight); i++)
    work = work_times(work, dim_upper(g, weight, i));
  return work;
}

static uint64_t delegate_work(const Graph *g, NodeId n) {
  DelegateFigures figures;
  Arena arena = {0};
  uint64_t work = delegate_figures(g, n, &arena, &figures) ? figures.work : 0;
  arena_release(&arena);
  return work;
}

uint64_t node_work(const Graph *g, NodeId n) {
  switch (g->nodes[n].op) {
  case OP_MM:
  case OP_BMM:
  case OP_LINEAR:
  case OP_MATMUL:
  case OP_MIXED_LINEAR:
    return product_work(g, n, 0);
  case OP_ADDMM:
    return product_work(g, n, 1);
  case OP_CONVOLUTION:
    return convolution_work(g, n);
  case OP_EXECUTORCH_CALL_DELEGATE:
    return delegate_work(g, n);
  default:
    return 0;
  }
}

/* Calls of delegates: the types of the results are arguments, nothing else is known about them. */
#include "ops/kernel.h"
#include "ops/ops.h"
#include "ops/shape_util.h"

enum { ARG_DTYPES = 5, ARG_RANKS, ARG_SIZES, RESULTS_MAX = 4096 };

Status shape_call_delegate(Graph *g, NodeId n) {
  uint32_t count = node_list_count(g, n, ARG_DTYPES), sizes = node_list_count(g, n, ARG_SIZES),
           have = node_cget(g, n)->result_count, at = 0;
  if (count != node_list_count(g, n, ARG_RANKS) || count > RESULTS_MAX || (have && have != count))
    return bad_shape(g, n, "%u element types for %u ranks and %u results", count,
                     node_list_count(g, n, ARG_RANKS), have);
  result_list_size(g, n, count);
  for (uint32_t i = 0; i < count; i++) {
    SymInt dtype = node_ints(g, n, ARG_DTYPES)[i], rank = node_ints(g, n, ARG_RANKS)[i];
    if (dtype < 0 || dtype >= DTYPE_NONE || rank < 0 || rank > MAX_RANK || rank > sizes - at)
      return bad_shape(g, n, "result %u has no possible type", i);
    SymInt dims[MAX_RANK];
    memcpy(dims, node_ints(g, n, ARG_SIZES) + at, (size_t)rank * sizeof *dims);
    at += (uint32_t)rank;
    for (uint32_t k = 0; k < rank; k++)
      if (sym_lower(&g->syms, dims[k]) < 0)
        return bad_shape(g, n, "result %u has a negative size", i);
    result_tensor(g, n, i, (DType)dtype, (uint32_t)rank, dims);
  }
  if (at != sizes)
    return bad_shape(g, n, "%u sizes are left over", sizes - at);
  return STATUS_OK;
}

Status kern_call_delegate(Kernel *k) {
  return kernel_error(k, "delegates do not run on the reference interpreter");
}

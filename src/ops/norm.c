/* Normalisations: shape rules with the exact shapes of the secondary results, and what the runtime
 * refuses beyond element types (kernels/portable/cpu/util/normalization_ops_util.cpp of
 * ExecuTorch 1.4.1). Reference kernels: norm_kernels.c. */
#include "ops/norm.h"

#include "ops/ops.h"
#include "ops/shape_util.h"

static Status float_input(Graph *g, NodeId n, uint32_t min_rank, Dims *d) {
  DType dtype = operand_dtype(g, n, 0);
  *d = operand_dims(g, n, 0);
  if (!dtype_is_float(dtype))
    return bad_dtype(g, n, "the input is %s, expected a float type", dtype_name(dtype));
  if (d->rank < min_rank)
    return bad_shape(g, n, "the input has rank %u, expected at least %u", d->rank, min_rank);
  return STATUS_OK;
}

static Status float_parameter(Graph *g, NodeId n, uint32_t i, uint32_t rank) {
  ValueId v = node_value(g, n, i);
  StrView name = arg_name(g, n, i);
  if (value_rank(g, v) != rank)
    return bad_shape(g, n, "'" SV_FMT "' has rank %u, expected %u", SV_ARG(name), value_rank(g, v),
                     rank);
  if (!dtype_is_float(value_dtype(g, v)))
    return bad_dtype(g, n, "'" SV_FMT "' is %s, expected a float type", SV_ARG(name),
                     dtype_name(value_dtype(g, v)));
  return STATUS_OK;
}

/* Checks that tensor argument i, when given, is a vector of `size` floats. */
static Status vector(Graph *g, NodeId n, uint32_t i, SymInt size) {
  ValueId v = node_value(g, n, i);
  if (!v)
    return STATUS_OK;
  TRY(float_parameter(g, n, i, 1));
  return shape_equal(g, n, value_dim(g, v, 0), size,
                     "entries of a parameter and channels of the input");
}

static Status results3(Graph *g, NodeId n, const Dims *first, const Dims *others) {
  DType dtype = operand_dtype(g, n, 0);
  TRY(shape_result(g, n, 0, dtype, first));
  TRY(shape_result(g, n, 1, dtype, others));
  return shape_result(g, n, 2, dtype, others);
}

Status shape_native_batch_norm_legit_no_training(Graph *g, NodeId n) {
  Dims d, empty = {.rank = 1};
  TRY(float_input(g, n, 1, &d));
  SymInt channels = d.d[d.rank > 1 ? 1 : 0];
  for (uint32_t i = 1; i <= 4; i++)
    TRY(vector(g, n, i, channels));
  return results3(g, n, &d, &empty);
}

Status shape_native_batch_norm_legit(Graph *g, NodeId n) {
  Dims d, stats = {.rank = 1};
  TRY(float_input(g, n, 2, &d));
  stats.d[0] = d.d[1];
  for (uint32_t i = 1; i <= 2; i++)
    TRY(vector(g, n, i, d.d[1]));
  if (!arg_flag(g, n, 3))
    return bad_arg(g, n, "argument 'training' must be true: there are no stored statistics");
  return results3(g, n, &d, &stats);
}

Status shape_native_group_norm(Graph *g, NodeId n) {
  Dims d;
  SymInt batch, channels, area;
  int64_t groups;
  TRY(float_input(g, n, 2, &d));
  TRY(arg_int(g, n, 3, &batch));
  TRY(arg_int(g, n, 4, &channels));
  TRY(arg_int(g, n, 5, &area));
  TRY(arg_const_int(g, n, 6, &groups));
  TRY(shape_equal(g, n, d.d[0], batch, "dimension 0 of the input and 'N'"));
  TRY(shape_equal(g, n, d.d[1], channels, "dimension 1 of the input and 'C'"));
  Dims inner = dims_make(d.d + 2, d.rank - 2);
  TRY(shape_equal(g, n, dims_numel(g, &inner), area, "the elements of a channel and 'HxW'"));
  if (groups < 1 || (sym_is_const(channels) && channels % groups))
    return bad_arg(g, n, "argument 'group' (%lld) must divide the number of channels",
                   (long long)groups);
  for (uint32_t i = 1; i <= 2; i++)
    TRY(vector(g, n, i, d.d[1]));
  Dims stats = {.rank = 2, .d = {d.d[0], groups}};
  return results3(g, n, &d, &stats);
}

/* Weight or bias of a layer norm: exactly the normalised dims. */
static Status layer_norm_param(Graph *g, NodeId n, uint32_t i, const IntList *shape) {
  ValueId v = node_value(g, n, i);
  if (!v)
    return STATUS_OK;
  TRY(float_parameter(g, n, i, shape->count));
  for (uint32_t k = 0; k < shape->count; k++)
    TRY(shape_equal(g, n, value_dim(g, v, k), shape->v[k],
                    "dimensions of a parameter and 'normalized_shape'"));
  return STATUS_OK;
}

Status shape_native_layer_norm(Graph *g, NodeId n) {
  Dims d;
  IntList shape;
  TRY(float_input(g, n, 1, &d));
  TRY(arg_int_list(g, n, 1, &shape));
  if (shape.count == 0 || shape.count > d.rank)
    return bad_shape(g, n, "'normalized_shape' has %u entries, expected 1 to %u", shape.count,
                     d.rank);
  Dims stats = d;
  uint32_t lead = d.rank - shape.count;
  for (uint32_t k = 0; k < shape.count; k++) {
    TRY(shape_equal(g, n, d.d[lead + k], shape.v[k],
                    "trailing dimensions of the input and 'normalized_shape'"));
    stats.d[lead + k] = 1;
  }
  TRY(layer_norm_param(g, n, 2, &shape));
  TRY(layer_norm_param(g, n, 3, &shape));
  return results3(g, n, &d, &stats);
}

const char *check_norm(const Graph *g, NodeId n, Arena *arena) {
  (void)arena;
  const OpSchema *schema = op_schema(node_cget(g, n)->op);
  DType dtype = value_dtype(g, node_value(g, n, 0));
  for (uint32_t i = 1; i < schema->arg_count; i++) {
    ValueId v = schema->args[i].type == ST_TENSOR ? node_value(g, n, i) : 0;
    if (v && value_dtype(g, v) != dtype)
      return "a parameter has another element type than the input";
  }
  return NULL;
}

void layer_norm_row(const Graph *g, NodeId n, int64_t *lower, int64_t *upper) {
  *lower = *upper = 1;
  for (uint32_t i = 0; i < node_list_count(g, n, 1); i++) {
    SymInt d = node_ints(g, n, 1)[i];
    if (!mul_i64(*lower, sym_lower(&g->syms, d), lower))
      *lower = INT64_MAX;
    if (!mul_i64(*upper, sym_upper(&g->syms, d), upper))
      *upper = INT64_MAX;
  }
}

bool layer_norm_is_garbage(const Graph *g, NodeId n) {
  DType dtype = value_dtype(g, node_value(g, n, 0));
  int64_t lower, upper;
  layer_norm_row(g, n, &lower, &upper);
  return dtype_size(dtype) == 2 &&
         (upper >= LAYER_NORM_LONG_ROW ||
          (dtype == DTYPE_F16 && node_scalar(g, n, 4) <= F16_ROUNDS_TO_0));
}

/* Before a program is made of the graph the pass stabilize_norms is still to come, and backends
 * have layer norms of their own. */
const char *check_layer_norm(const Graph *g, NodeId n, Arena *arena) {
  if (g->level == LEVEL_EXECUTORCH && layer_norm_is_garbage(g, n))
    return "its results are garbage for rows of 256 elements and more of f16 and bf16, and for "
           "equal elements of f16 where eps is 0 in f16";
  return check_norm(g, n, arena);
}

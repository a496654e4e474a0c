/* Convolution: shape rule, and what the runtime refuses beyond element types
 * (check_convolution_args in kernels/portable/cpu/util/ kernel_ops_util.cpp of ExecuTorch 1.4.1).
 * The rule takes 1 to 3 spatial dims; 3 must be decomposed before the kernel. Reference kernel:
 * convolution_kernel.c. */
#include "ops/ops.h"
#include "ops/shape_util.h"

enum { INPUT, WEIGHT, BIAS, STRIDE, PADDING, DILATION, TRANSPOSED, OUTPUT_PADDING, GROUPS };

typedef struct ConvArgs {
  uint32_t spatial; /* number of spatial dims */
  SymInt stride[3], padding[3], dilation[3], output_padding[3];
  bool transposed;
  int64_t groups;
} ConvArgs;

/* Entry of a list argument, which must be a constant not below min. */
static Status conv_list(Graph *g, NodeId n, uint32_t i, uint32_t count, int64_t min, SymInt *out) {
  TRY(arg_spatial(g, n, i, count, i == OUTPUT_PADDING ? 0 : -1, out));
  StrView name = arg_name(g, n, i);
  for (uint32_t k = 0; k < count; k++)
    if (!sym_is_const(out[k]) || out[k] < min)
      return bad_arg(g, n, "argument '" SV_FMT "' must be at least %d in each dimension",
                     SV_ARG(name), (int)min);
  return STATUS_OK;
}

static Status conv_args(Graph *g, NodeId n, uint32_t rank, ConvArgs *a) {
  a->spatial = rank - 2;
  TRY(conv_list(g, n, STRIDE, a->spatial, 1, a->stride));
  TRY(conv_list(g, n, PADDING, a->spatial, 0, a->padding));
  TRY(conv_list(g, n, DILATION, a->spatial, 1, a->dilation));
  TRY(conv_list(g, n, OUTPUT_PADDING, a->spatial, 0, a->output_padding));
  a->transposed = arg_flag(g, n, TRANSPOSED);
  TRY(arg_const_int(g, n, GROUPS, &a->groups));
  if (a->groups < 1)
    return bad_arg(g, n, "argument 'groups' must be at least 1");
  for (uint32_t k = 0; a->transposed && k < a->spatial; k++)
    if (a->output_padding[k] >= max_i64(a->stride[k], a->dilation[k]))
      return bad_arg(g, n, "output_padding must be smaller than stride or dilation in dimension %u",
                     k);
  return STATUS_OK;
}

/* Checks the channels; *out is the number of result channels. */
static Status conv_channels(Graph *g, NodeId n, const ConvArgs *a, SymInt in, const Dims *w,
                            SymInt *out) {
  if (sym_is_const(w->d[0]) && w->d[0] % a->groups)
    return bad_shape(g, n, "dimension 0 of 'weight' (%lld) is not divisible by groups (%lld)",
                     (long long)w->d[0], (long long)a->groups);
  if (sym_is_const(w->d[0]) && w->d[0] < a->groups)
    return bad_shape(g, n, "dimension 0 of 'weight' is smaller than groups");
  SymInt times = sym_mul(&g->syms, w->d[1], a->groups);
  *out = a->transposed ? times : w->d[0];
  return shape_equal(g, n, in, a->transposed ? w->d[0] : times,
                     "channels of 'input' and of 'weight'");
}

static Status conv_size(Graph *g, NodeId n, const ConvArgs *a, uint32_t k, SymInt in, SymInt kernel,
                        SymInt *out) {
  SymTable *t = &g->syms;
  TRY(shape_at_least(g, n, kernel, 1, "the size of the kernel"));
  if (!a->transposed) {
    Window w = {.in = in,
                .kernel = kernel,
                .stride = a->stride[k],
                .dilation = a->dilation[k],
                .pad_begin = a->padding[k],
                .pad_end = a->padding[k]};
    return shape_window(g, n, &w, out);
  }
  SymInt span = sym_add(t, sym_mul(t, a->dilation[k], sym_sub(t, kernel, 1)), 1);
  SymInt reach = sym_mul(t, sym_sub(t, in, 1), a->stride[k]);
  SymInt cut = sym_mul(t, a->padding[k], 2);
  *out = sym_sub(t, sym_add(t, sym_add(t, reach, span), a->output_padding[k]), cut);
  return shape_at_least(g, n, *out, 1, "a spatial dimension of the result");
}

Status shape_convolution(Graph *g, NodeId n) {
  ConvArgs a;
  ValueId input = node_value(g, n, INPUT), weight = node_value(g, n, WEIGHT),
          bias = node_value(g, n, BIAS);
  Dims x = value_dims(g, input), w = value_dims(g, weight);
  if (x.rank < 3 || x.rank > 5)
    return bad_shape(g, n, "'input' has rank %u, expected 3 to 5", x.rank);
  if (w.rank != x.rank)
    return bad_shape(g, n, "'weight' has rank %u, expected %u", w.rank, x.rank);
  if (value_dtype(g, input) != value_dtype(g, weight))
    return bad_dtype(g, n, "'input' is %s and 'weight' is %s, expected one type",
                     dtype_name(value_dtype(g, input)), dtype_name(value_dtype(g, weight)));
  TRY(conv_args(g, n, x.rank, &a));
  Dims out = {.rank = x.rank, .d = {x.d[0]}};
  TRY(conv_channels(g, n, &a, x.d[1], &w, &out.d[1]));
  if (bias) {
    if (value_rank(g, bias) != 1)
      return bad_shape(g, n, "'bias' has rank %u, expected 1", value_rank(g, bias));
    TRY(shape_equal(g, n, value_dim(g, bias, 0), out.d[1],
                    "entries of 'bias' and channels of the result"));
  }
  for (uint32_t k = 0; k < a.spatial; k++)
    TRY(conv_size(g, n, &a, k, x.d[2 + k], w.d[2 + k], &out.d[2 + k]));
  return shape_result(g, n, 0, value_dtype(g, input), &out);
}

const char *check_convolution(const Graph *g, NodeId n, Arena *arena) {
  (void)arena;
  if (value_rank(g, node_value(g, n, INPUT)) > 4)
    return "convolutions with three spatial dimensions have no kernel";
  ValueId bias = node_value(g, n, BIAS);
  if (bias && value_dtype(g, bias) != value_dtype(g, node_value(g, n, INPUT)))
    return "the bias has another element type than the input";
  return NULL;
}

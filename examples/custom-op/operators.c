/* Two operators of com.example, which neither ONNX nor ExecuTorch has.
 *
 * Blend(x, y, amount) is made of ops that the runtime has: x + amount * (y - x).
 * SoftClip(x, limit) = limit * tanh(x / limit) becomes an op of its own, my_ops::softclip, whose
 * kernel is linked into the runtime (kernel.cpp). */
#include <etc/plugin.h>

#include <math.h>

/* --- the op --- */

/* The result has the shape of x. */
static Status shape(Graph *g, NodeId n) {
  Dims dims = operand_dims(g, n, 0);
  if (operand_dtype(g, n, 0) != DTYPE_F32)
    return bad_dtype(g, n, "softclip takes float32");
  return shape_result_dims(g, n, &dims);
}

/* What the kernel of the runtime computes: for `etc run`, calibration and constants. */
static Status compute(Kernel *k) {
  const Tensor *x = kernel_tensor(k, 0);
  const float *from = x->data, limit = (float)kernel_scalar(k, 1);
  float *to = k->results[0]->data;
  for (int64_t i = 0; i < tensor_numel(x); i++)
    to[i] = limit * tanhf(from[i] / limit);
  return STATUS_OK;
}

static const OpRow softclip = {.schema = "my_ops::softclip(Tensor x, float limit) -> Tensor",
                               .out = "my_ops::softclip.out",
                               .shape = shape,
                               .kernel = compute,
                               .dtypes = DT(F32),
                               .traits = OP_ELEMENTWISE,
                               .doc = "limit * tanh(x / limit)"};
static const OpRow *const ops[] = {&softclip, NULL};

/* --- the operators --- */

static void translate_softclip(Import *im) {
  double limit = attr_float(im, "limit", 1);
  ValueId x = in_required(im, 0);
  if (limit > 0)
    out(im, 0, build(&im->b, op_find(SV("my_ops::softclip")), A_VAL(x), A_FLOAT(limit)));
  else
    import_fail(im, DIAG_ATTR_VALUE, "limit is %g, which is not above 0", limit);
}

static void translate_blend(Import *im) {
  ValueId x = in_required(im, 0), y = in_required(im, 1);
  ValueId difference = ex_times(im, ex_sub(im, y, x), attr_float(im, "amount", 0.5));
  out(im, 0, ex_add(im, x, difference));
}

static const OnnxTranslator soft_clip = {.row = {.domain = "com.example",
                                                 .name = "SoftClip",
                                                 .since = 1,
                                                 .min_inputs = 1,
                                                 .max_inputs = 1,
                                                 .lowering = "my_ops::softclip"},
                                         .translate = translate_softclip};
static const OnnxTranslator blend = {.row = {.domain = "com.example",
                                             .name = "Blend",
                                             .since = 1,
                                             .min_inputs = 2,
                                             .max_inputs = 2,
                                             .lowering = "sub, mul, add"},
                                     .translate = translate_blend};
static const OnnxTranslator *const translators[] = {&soft_clip, &blend, NULL};

ETC_PLUGIN = {.abi = ETC_PLUGIN_ABI, .name = "operators", .ops = ops, .translators = translators};

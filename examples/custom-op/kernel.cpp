// The kernel my_ops::softclip.out, as ExecuTorch registers kernels of one's own.
#include <executorch/extension/kernel_util/make_boxed_from_unboxed_functor.h>
#include <executorch/runtime/kernel/kernel_includes.h>

#include <cmath>

using executorch::aten::Tensor;
using executorch::runtime::KernelRuntimeContext;

static Tensor &softclip_out(KernelRuntimeContext &context, const Tensor &x, double limit, Tensor &out) {
  ET_KERNEL_CHECK(context, executorch::runtime::resize_tensor(out, x.sizes()) == executorch::runtime::Error::Ok, InvalidArgument,
                  out);
  const float *in = x.const_data_ptr<float>();
  float *to = out.mutable_data_ptr<float>();
  const float most = static_cast<float>(limit);
  for (ssize_t i = 0; i < x.numel(); i++)
    to[i] = most * std::tanh(in[i] / most);
  return out;
}

EXECUTORCH_LIBRARY(my_ops, "softclip.out", softclip_out);

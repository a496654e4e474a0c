// A host as it is on a device: the program is an array in flash, and all memory is static, sized by the header of 'etc embed'. It has no
// heap and no file system; what it needs of ExecuTorch is executorch_core and the kernels that 'etc inspect --kernels' lists.
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include <executorch/runtime/core/data_loader.h>
#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>
#include <executorch/runtime/core/hierarchical_allocator.h>
#include <executorch/runtime/core/memory_allocator.h>
#include <executorch/runtime/executor/memory_manager.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/runtime.h>

#include "model.h"

namespace {

using executorch::aten::Tensor;
using executorch::aten::TensorImpl;
using namespace executorch::runtime;

// Reads the program where it is: constants stay in flash. extension/data_loader/buffer_data_loader.h of the sources does the same.
class ArrayLoader final : public DataLoader {
 public:
  Result<FreeableBuffer> load(size_t offset, size_t size, const SegmentInfo&) const override {
    if (!within(offset, size))
      return Error::InvalidArgument;
    return FreeableBuffer(model_pte + offset, size, nullptr);
  }
  Error load_into(size_t offset, size_t size, const SegmentInfo&, void* buffer) const override {
    if (!within(offset, size))
      return Error::InvalidArgument;
    std::memcpy(buffer, model_pte + offset, size);
    return Error::Ok;
  }
  Result<size_t> size() const override { return sizeof model_pte; }

 private:
  static bool within(size_t offset, size_t size) { return offset <= sizeof model_pte && size <= sizeof model_pte - offset; }
};

// One array for each bank of --memory. On a device each has a section of its own: __attribute__((section(".dtcm"))).
alignas(MODEL_PTE_ARENA_ALIGNMENT) uint8_t sram[MODEL_PTE_FORWARD_ARENA_1];
alignas(MODEL_PTE_ARENA_ALIGNMENT) uint8_t dram[MODEL_PTE_FORWARD_ARENA_2];
static_assert(MODEL_PTE_FORWARD_ARENAS == 2, "an array for each arena");

alignas(16) uint8_t method_memory[MODEL_PTE_FORWARD_METHOD_BYTES];
alignas(16) uint8_t temp_memory[MODEL_PTE_FORWARD_TEMP_BYTES];

float x[MODEL_PTE_FORWARD_INPUT_0_BYTES / sizeof(float)];

const char* failed; // what, and the runtime's reason
Error reason;

bool check(const char* what, Error error) {
  failed = what;
  reason = error;
  return error == Error::Ok;
}

bool set_input(Method& method) {
  executorch::aten::SizesType sizes[] = MODEL_PTE_FORWARD_INPUT_0_SIZES;
  executorch::aten::DimOrderType order[] = MODEL_PTE_FORWARD_INPUT_0_DIM_ORDER;
  executorch::aten::StridesType strides[MODEL_PTE_FORWARD_INPUT_0_RANK];
  if (!check("dim order", dim_order_to_stride(sizes, order, MODEL_PTE_FORWARD_INPUT_0_RANK, strides)))
    return false;
  TensorImpl tensor(static_cast<executorch::aten::ScalarType>(MODEL_PTE_FORWARD_INPUT_0_TYPE), MODEL_PTE_FORWARD_INPUT_0_RANK, sizes, x, order,
                    strides);
  return check("input", method.set_input(Tensor(&tensor), 0)); // copies x into the arena
}

bool run() {
  static ArrayLoader loader;
  Result<Program> program = Program::load(&loader);
  if (!check("program", program.error()))
    return false;
  Span<uint8_t> arenas[] = {{sram, sizeof sram}, {dram, sizeof dram}};
  HierarchicalAllocator planned({arenas, MODEL_PTE_FORWARD_ARENAS});
  MemoryAllocator method_allocator(sizeof method_memory, method_memory), temp_allocator(sizeof temp_memory, temp_memory);
  MemoryManager memory(&method_allocator, &planned, &temp_allocator);
  Result<Method> method = program->load_method(MODEL_PTE_FORWARD_NAME, &memory);
  if (!check("method", method.error()) || !set_input(*method) || !check("execute", method->execute()))
    return false;
  const float* y = method->get_output(0).toTensor().const_data_ptr<float>();
  for (size_t i = 0; i < MODEL_PTE_FORWARD_OUTPUT_0_BYTES / sizeof(float); i++)
    std::printf("%.9g\n", static_cast<double>(y[i]));
  return true;
}

} // namespace

int main() {
  runtime_init();
  for (size_t i = 0; i < sizeof x / sizeof x[0]; i++)
    x[i] = static_cast<float>(i % 7) / 7 - 0.5f;
  if (run())
    return 0;
  std::printf("%s: error 0x%" PRIx32 "\n", failed, static_cast<uint32_t>(reason));
  return 1;
}

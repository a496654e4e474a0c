// What the runtime takes of its allocators while it loads a method, and at most of the temporary one: for runtime_memory.py.
#include <cstdlib>
#include <cstring>

#include <executorch/runtime/core/data_loader.h>
#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>
#include <executorch/runtime/core/exec_aten/util/tensor_dimension_limit.h>
#include <executorch/runtime/executor/memory_manager.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/runtime.h>

using namespace executorch::runtime;

namespace {

class Bytes final : public DataLoader {
 public:
  Bytes(const void* data, size_t size) : data_(static_cast<const char*>(data)), size_(size) {}
  Result<FreeableBuffer> load(size_t offset, size_t size, const SegmentInfo&) const override {
    return FreeableBuffer(data_ + offset, size, nullptr);
  }
  Error load_into(size_t offset, size_t size, const SegmentInfo&, void* buffer) const override {
    std::memcpy(buffer, data_ + offset, size);
    return Error::Ok;
  }
  Result<size_t> size() const override { return size_; }

 private:
  const char* data_;
  size_t size_;
};

constexpr size_t kRoom = 1 << 20;
alignas(16) uint8_t method_room[kRoom], temp_room[kRoom];

class Peak final : public MemoryAllocator {
 public:
  Peak() : MemoryAllocator(kRoom, temp_room) {}
  void* allocate(size_t size, size_t alignment) override {
    void* got = MemoryAllocator::allocate(size, alignment);
    peak = used_size() > peak ? used_size() : peak;
    return got;
  }
  size_t peak = 0;
};

Error set_zeros(Method& method, const MethodMeta& meta, size_t input) {
  static char zeros[1 << 16];
  Result<TensorInfo> info = meta.input_tensor_meta(input);
  if (!info.ok() || info->nbytes() > sizeof zeros)
    return Error::InvalidArgument;
  auto* sizes = const_cast<executorch::aten::SizesType*>(info->sizes().data());
  auto* order = const_cast<executorch::aten::DimOrderType*>(info->dim_order().data());
  executorch::aten::StridesType strides[kTensorDimensionLimit];
  Error error = dim_order_to_stride(sizes, order, info->sizes().size(), strides);
  executorch::aten::TensorImpl tensor(info->scalar_type(), static_cast<ssize_t>(info->sizes().size()), sizes, zeros, order, strides);
  return error == Error::Ok ? method.set_input(executorch::aten::Tensor(&tensor), input) : error;
}

} // namespace

// The error of the runtime, 0 for none. execute: with zeros for all inputs.
extern "C" uint32_t measure(const void* data, size_t size, const char* name, bool execute, size_t* method_bytes, size_t* temp_bytes) {
  runtime_init();
  Bytes loader(data, size);
  Result<Program> program = Program::load(&loader);
  if (!program.ok())
    return static_cast<uint32_t>(program.error());
  Result<MethodMeta> meta = program->method_meta(name);
  if (!meta.ok())
    return static_cast<uint32_t>(meta.error());
  Span<uint8_t> arenas[16];
  size_t count = meta->num_memory_planned_buffers();
  for (size_t i = 0; i < count && i < 16; i++) {
    size_t bytes = static_cast<size_t>(meta->memory_planned_buffer_size(i).get());
    arenas[i] = {static_cast<uint8_t*>(std::calloc(bytes + 1, 1)), bytes};
  }
  HierarchicalAllocator planned({arenas, count});
  MemoryAllocator method_allocator(kRoom, method_room);
  Peak temp;
  MemoryManager memory(&method_allocator, &planned, &temp);
  Error error = Error::Ok;
  {
    Result<Method> method = program->load_method(name, &memory);
    error = method.ok() ? Error::Ok : method.error();
    *method_bytes = method_allocator.used_size();
    if (error == Error::Ok && execute) {
      for (size_t i = 0; i < meta->num_inputs() && error == Error::Ok; i++)
        error = set_zeros(*method, *meta, i);
      error = error == Error::Ok ? method->execute() : error;
    }
    *temp_bytes = temp.peak;
  }
  for (size_t i = 0; i < count && i < 16; i++)
    std::free(arenas[i].data());
  return static_cast<uint32_t>(error);
}

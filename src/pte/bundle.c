/* See bundle.h. */
#include "pte/bundle.h"

#include "pte/flatbuffer.h"
#include "pte/schema.h"

enum { PROGRAM_ALIGNMENT = 32, SCHEMA_VERSION = 2 };

static FbRef write_bytes(FlatBuilder *b, const uint8_t *data, uint64_t size, uint32_t alignment) {
  if (size <= FB_MAX_SIZE)
    return fb_vector_bytes(b, data, (uint32_t)size, alignment);
  b->overflow = true;
  return 0;
}

static FbRef write_tensor(FlatBuilder *b, const Tensor *t) {
  int32_t sizes[MAX_RANK];
  uint8_t order[MAX_RANK];
  for (uint32_t i = 0; i < t->rank && i < MAX_RANK; i++) {
    b->overflow |= t->dims[i] > INT32_MAX;
    sizes[i] = (int32_t)t->dims[i];
    order[i] = (uint8_t)i;
  }
  uint64_t bytes = (uint64_t)tensor_numel(t) * dtype_size(t->dtype);
  FbRef size = fb_vector_i32(b, sizes, t->rank), at = fb_vector_bytes(b, order, t->rank, 1);
  FbRef data = write_bytes(b, t->data, bytes, PTE_TENSOR_ALIGNMENT);
  fb_table_begin(b);
  fb_field_u8(b, BUNDLED_SCALAR_TYPE, (uint8_t)t->dtype, 0);
  fb_field_ref(b, BUNDLED_SIZES, size);
  fb_field_ref(b, BUNDLED_DATA, data);
  fb_field_ref(b, BUNDLED_DIM_ORDER, at);
  FbRef tensor = fb_table_end(b);
  fb_table_begin(b);
  fb_field_union(b, BUNDLED_TYPE, BUNDLED_TENSOR, tensor);
  return fb_table_end(b);
}

static FbRef write_tensors(FlatBuilder *b, const Tensor *tensors, uint32_t count, Arena *arena) {
  FbRef *refs = ARENA_ARRAY(arena, FbRef, (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++)
    refs[i] = write_tensor(b, &tensors[i]);
  return fb_vector_refs(b, refs, count);
}

static FbRef write_suite(FlatBuilder *b, const BundleSuite *suite, Arena *arena) {
  FbRef *cases = ARENA_ARRAY(arena, FbRef, (size_t)suite->count + 1);
  for (uint32_t i = 0; i < suite->count; i++) {
    FbRef inputs = write_tensors(b, suite->cases[i].inputs, suite->input_count, arena);
    FbRef outputs = write_tensors(b, suite->cases[i].outputs, suite->output_count, arena);
    fb_table_begin(b);
    fb_field_ref(b, SET_INPUTS, inputs);
    fb_field_ref(b, SET_OUTPUTS, outputs);
    cases[i] = fb_table_end(b);
  }
  FbRef name = fb_string(b, suite->method), list = fb_vector_refs(b, cases, suite->count);
  fb_table_begin(b);
  fb_field_ref(b, SUITE_METHOD, name);
  fb_field_ref(b, SUITE_SETS, list);
  return fb_table_end(b);
}

static Status write_file(FlatBuilder *b, Arena *arena, DiagSink *sink, const char *path,
                         bool sync) {
  if (b->overflow)
    return diag_report(sink, DIAG_TOO_LARGE, DIAG_NOWHERE,
                       "the program with its test cases is larger than 2 GiB");
  AtomicFile file;
  TRY(atomic_file_open(&file, arena, sink, path));
  atomic_file_write(&file, fb_bytes(b), b->size);
  return atomic_file_commit(&file, sync);
}

Status bundle_write(const BundleSuite *suites, uint32_t count, DiagSink *sink,
                    const MappedFile *program, const char *path, bool sync) {
  Arena arena = {0};
  FlatBuilder b;
  fb_init(&b);
  b.alignment = PROGRAM_ALIGNMENT;
  FbRef *refs = ARENA_ARRAY(&arena, FbRef, (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++)
    refs[i] = write_suite(&b, &suites[i], &arena);
  FbRef list = fb_vector_refs(&b, refs, count);
  FbRef bytes = write_bytes(&b, program->data, program->size, PROGRAM_ALIGNMENT);
  fb_table_begin(&b);
  fb_field_u32(&b, BUNDLE_VERSION, SCHEMA_VERSION, 0);
  fb_field_ref(&b, BUNDLE_SUITES, list);
  fb_field_ref(&b, BUNDLE_PROGRAM, bytes);
  FbRef root = fb_table_end(&b);
  fb_finish(&b, root, BUNDLE_IDENTIFIER, 0);
  Status status = write_file(&b, &arena, sink, path, sync);
  fb_release(&b);
  arena_release(&arena);
  return status;
}

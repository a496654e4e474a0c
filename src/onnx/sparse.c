/* Sparse initializers and constants. The runtime has dense tensors only, so that they are made
 * dense when they are read.
 *
 * Source: SparseTensorProto in onnx.proto. The elements that are not 0 are a list; their indices
 * are as many numbers (places in row-major order) or as many rows of one index for each dim. */
#include "onnx/import_state.h"
#include "onnx/file/tensor.h"
#include "onnx/file/weights.h"

/* A few bytes of a file can stand for a tensor of any size: all of them together may take this. */
enum { DENSE_FREE = 64 << 20, DENSE_RATIO = 64 };

typedef struct Sparse {
  const Onnx__SparseTensorProto *proto;
  OnnxTensorView values, indices;
  uint64_t elements, width; /* of the dense tensor; bytes of one */
} Sparse;

static bool sparse_fails(Import *im, const Sparse *s, const char *why) {
  return import_fail(im, DIAG_SPARSE, "sparse tensor '" SV_FMT "': %s",
                     SV_ARG(onnx_sparse_name(s->proto)), why);
}

static bool view(Import *im, const Onnx__TensorProto *t, OnnxTensorView *out) {
  im->b.status = onnx_tensor_view(im->model, t, im->ctx->sink, graph_place(im->g, im->b.loc), out);
  return import_ok(im);
}

static bool check_parts(Import *im, Sparse *s) {
  const Onnx__SparseTensorProto *t = s->proto;
  if (!t->values || !t->indices)
    return sparse_fails(im, s, "values or indices are missing");
  if (!view(im, t->values, &s->values) || !view(im, t->indices, &s->indices))
    return false;
  const OnnxTensorView *at = &s->indices;
  if (dtype_from_onnx(s->values.onnx_dtype) == DTYPE_NONE)
    return sparse_fails(im, s, "its element type is not supported");
  if (at->onnx_dtype != ONNX__TENSOR_PROTO__DATA_TYPE__INT64)
    return sparse_fails(im, s, "its indices are not int64");
  if (t->n_dims == 0 || t->n_dims > MAX_RANK)
    return sparse_fails(im, s, "its rank is not supported");
  bool rows = at->rank == 2 && (uint64_t)at->dims[1] == t->n_dims;
  if (s->values.rank != 1 || (at->rank != 1 && !rows) || at->dims[0] != s->values.dims[0])
    return sparse_fails(im, s, "values and indices do not have shapes that belong together");
  return true;
}

static bool check_size(Import *im, Sparse *s) {
  uint64_t bytes, *all = &im->state->dense_bytes;
  s->elements = 1;
  s->width = dtype_size(dtype_from_onnx(s->values.onnx_dtype));
  for (size_t i = 0; i < s->proto->n_dims; i++) {
    if (s->proto->dims[i] < 0)
      return sparse_fails(im, s, "a dim is negative");
    if (!mul_u64(s->elements, (uint64_t)s->proto->dims[i], &s->elements))
      return sparse_fails(im, s, "the product of its dims overflows 64 bits");
  }
  if (!mul_u64(s->elements, s->width, &bytes) || !add_u64(*all, bytes, all) ||
      *all > DENSE_FREE + DENSE_RATIO * onnx_file_bytes(im->model))
    return sparse_fails(im, s, "as a dense tensor it would be too large for a file of this size");
  return true;
}

/* The place of element i; false where an index is out of bounds. */
static bool place_of(const Sparse *s, uint64_t i, uint64_t *place) {
  const OnnxTensorView *at = &s->indices;
  int64_t index;
  *place = 0;
  if (at->rank == 1) {
    memcpy(&index, at->data + 8 * i, 8);
    *place = (uint64_t)index;
    return index >= 0 && *place < s->elements;
  }
  for (size_t d = 0; d < s->proto->n_dims; d++) {
    memcpy(&index, at->data + 8 * (i * s->proto->n_dims + d), 8);
    if (index < 0 || index >= s->proto->dims[d])
      return false;
    *place = *place * (uint64_t)s->proto->dims[d] + (uint64_t)index;
  }
  return true;
}

ValueId import_sparse(Import *im, const Onnx__SparseTensorProto *t, NameId name) {
  Sparse s = {.proto = t};
  if (!import_ok(im) || !check_parts(im, &s) || !check_size(im, &s))
    return 0;
  uint64_t size = s.elements * s.width;
  uint8_t *dense = arena_alloc(&im->g->arena, size);
  memset(dense, 0, size);
  for (uint64_t i = 0; i < (uint64_t)s.values.dims[0]; i++) {
    uint64_t place;
    if (!place_of(&s, i, &place))
      return sparse_fails(im, &s, "an index is out of bounds");
    memcpy(dense + place * s.width, s.values.data + i * s.width, s.width);
  }
  TypeId type = graph_tensor_type(im->g, dtype_from_onnx(s.values.onnx_dtype), (uint32_t)t->n_dims,
                                  t->dims, ORDER_CONTIGUOUS);
  return graph_add_constant(im->g, type, (Constant){.data = dense, .size = size}, name);
}

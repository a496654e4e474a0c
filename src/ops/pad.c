/* Padding: with a constant (any rank), by reflection or by repeating the border (the last 1, 2 or 3
 * dims).
 *
 * Pads are listed from the last dim on, begin before end, as torch has them. Negative constant pads
 * crop; the runtime's kernel does not take those, so they must be gone before the edge level. */
#include "ops/move.h"
#include "ops/ops.h"
#include "ops/shape_util.h"

/* --- shape rules --- */

Status shape_constant_pad_nd(Graph *g, NodeId n) {
  IntList pad;
  DType kind;
  SymTable *t = &g->syms;
  TRY(arg_int_list(g, n, 1, &pad));
  TRY(arg_scalar_kind(g, n, 2, &kind));
  Dims dims = operand_dims(g, n, 0);
  if (pad.count % 2 != 0 || pad.count / 2 > dims.rank)
    return bad_arg(g, n, "%u pads for a tensor of rank %u", pad.count, dims.rank);
  for (uint32_t i = 0; i < pad.count / 2; i++) {
    SymInt *d = &dims.d[dims.rank - 1 - i];
    *d = sym_add(t, *d, sym_add(t, pad.v[2 * i], pad.v[2 * i + 1]));
    TRY(shape_at_least(g, n, *d, 0, "a dimension after padding"));
  }
  return shape_result_dims(g, n, &dims);
}

typedef struct PadKind {
  uint32_t dims;
  bool reflect;
} PadKind;

static PadKind pad_kind(OpId op) {
  switch (op) {
  case OP_REFLECTION_PAD1D:
    return (PadKind){1, true};
  case OP_REFLECTION_PAD2D:
    return (PadKind){2, true};
  case OP_REFLECTION_PAD3D:
    return (PadKind){3, true};
  case OP_REPLICATION_PAD1D:
    return (PadKind){1, false};
  case OP_REPLICATION_PAD2D:
    return (PadKind){2, false};
  case OP_REPLICATION_PAD3D:
    return (PadKind){3, false};
  default:
    BUG("op %u is not padding", op);
  }
}

Status shape_pad_nd(Graph *g, NodeId n) {
  PadKind kind = pad_kind(node_cget(g, n)->op);
  IntList pad;
  SymTable *t = &g->syms;
  TRY(arg_int_list(g, n, 1, &pad));
  Dims dims = operand_dims(g, n, 0);
  if (pad.count != 2 * kind.dims)
    return bad_arg(g, n, "%u pads for %u dimensions", pad.count, kind.dims);
  if (dims.rank != kind.dims + 1 && dims.rank != kind.dims + 2)
    return bad_shape(g, n, "rank %u, must be %u or %u", dims.rank, kind.dims + 1, kind.dims + 2);
  for (uint32_t i = 0; i < kind.dims; i++) {
    SymInt *d = &dims.d[dims.rank - 1 - i];
    TRY(shape_at_least(g, n, *d, 1, "a dimension to pad from its own elements"));
    SymInt size = *d;
    for (uint32_t end = 0; end < 2; end++) {
      SymInt p = pad.v[2 * i + end];
      if (sym_lower(t, p) < 0)
        return bad_arg(g, n, "a negative pad: crop with a slice");
      if (kind.reflect)
        TRY(shape_at_least(g, n, sym_sub(t, size, 1), p,
                           "the size less one of a reflected dimension"));
      *d = sym_add(t, *d, p);
    }
  }
  return shape_result_dims(g, n, &dims);
}

/* --- what the runtime's kernels refuse --- */

const char *check_constant_pad_nd(const Graph *g, NodeId n, Arena *arena) {
  bool literal = node_arg(g, n, 1)->kind == ARG_INTS;
  for (uint32_t i = 0; literal && i < node_list_count(g, n, 1); i++) {
    SymInt pad = node_ints(g, n, 1)[i];
    if (sym_is_const(pad) ? pad < 0 : sym_lower(&g->syms, pad) < 0)
      return "a pad is (or may be) negative: the kernel does not crop";
  }
  if (!scalar_fits(g, n, 2, value_dtype(g, node_value(g, n, 0))))
    return "the value is out of range for the element type";
  return check_contiguous(g, n, arena);
}

/* --- kernels --- */

/* Sizes of the result and of what is moved, and where that begins on both sides. */
static Status pad_geometry(Kernel *k, const Tensor *self, int64_t *dims, int64_t *inner,
                           MoveSide *dst, MoveSide *src) {
  const KernelArg *pad = &k->args[1];
  uint32_t pairs = pad->kind == ARG_INTS ? pad->count / 2 : 0;
  unsigned element = dtype_size(self->dtype);
  if (pairs > self->rank || (pad->kind == ARG_INTS && pad->count % 2 != 0))
    return kernel_error(k, "%u pads for rank %u", pad->count, self->rank);
  for (uint32_t i = 0; i < self->rank; i++) {
    uint32_t pair = self->rank - 1 - i;
    int64_t lo = pair < pairs ? pad->ints[2 * pair] : 0;
    int64_t hi = pair < pairs ? pad->ints[2 * pair + 1] : 0, size = self->dims[i];
    if (lo < -size || hi < -size || !add_i64(size, lo, &dims[i]) || !add_i64(dims[i], hi, &dims[i]))
      return kernel_error(k, "pads %lld and %lld for a dim of size %lld", (long long)lo,
                          (long long)hi, (long long)size);
    inner[i] = max_i64(0, size + min_i64(lo, 0) + min_i64(hi, 0));
    if (inner[i] > 0) {
      move_offset(dst, element, max_i64(lo, 0), dst->strides[i]);
      move_offset(src, element, max_i64(-lo, 0), src->strides[i]);
    }
  }
  return STATUS_OK;
}

Status kern_constant_pad_nd(Kernel *k) {
  const Tensor *self = kernel_tensor(k, 0);
  TRY(kernel_expect_dtype(k, self));
  Tensor *out = k->results[0];
  int64_t dims[MAX_RANK], inner[MAX_RANK];
  unsigned element = dtype_size(out->dtype);
  MoveSide dst = move_side(out), src = move_side(self);
  TRY(pad_geometry(k, self, dims, inner, &dst, &src));
  TRY(kernel_expect(k, 0, self->rank, dims));
  double storage = 0;
  Tensor value = {.dtype = out->dtype, .data = &storage, .capacity = sizeof storage};
  if (k->args[2].kind == ARG_FLOAT)
    tensor_store(&value, 0, k->args[2].f);
  else
    tensor_store_int(&value, 0, k->args[2].i);
  /* Offsets are only all in bounds when there is something to move. */
  bool any = true, whole = true;
  for (uint32_t i = 0; i < self->rank; i++) {
    any &= inner[i] > 0;
    whole &= inner[i] == dims[i];
  }
  if (!whole)
    move_fill(element, out->data, &storage, tensor_numel(out));
  if (any)
    move_elements(element, self->rank, inner, dst, src);
  return STATUS_OK;
}

/* Source index of each index of a dim that is padded by pads[0] before it and pads[1] behind it. */
static Status pad_map(Kernel *k, bool reflect, int64_t size, const int64_t pads[2], int64_t out,
                      int64_t **map) {
  int64_t total, lo = pads[0], hi = pads[1];
  if (lo < 0 || hi < 0 || size < 1 || (reflect && (lo >= size || hi >= size)) ||
      !add_i64(size, lo, &total) || !add_i64(total, hi, &total) || total != out)
    return kernel_error(k, "pads %lld and %lld do not make %lld of %lld", (long long)lo,
                        (long long)hi, (long long)out, (long long)size);
  *map = arena_calloc(k->scratch, (size_t)out, sizeof **map);
  for (int64_t i = 0; i < out; i++) {
    int64_t at = i - lo;
    if (at < 0)
      at = reflect ? -at : 0;
    if (at >= size)
      at = reflect ? 2 * (size - 1) - at : size - 1;
    (*map)[i] = at;
  }
  return STATUS_OK;
}

static void pad_row(size_t element, char *to, const char *from, const int64_t *map, int64_t count) {
  for (int64_t i = 0; i < count;) {
    int64_t run = 1;
    while (i + run < count && map[i + run] == map[i] + run)
      run++;
    memcpy(to + (size_t)i * element, from + (size_t)map[i] * element, (size_t)run * element);
    i += run;
  }
}

Status kern_pad_nd(Kernel *k) {
  PadKind kind = pad_kind(k->op);
  const Tensor *self = kernel_tensor(k, 0);
  TRY(kernel_expect_dtype(k, self));
  Tensor *out = k->results[0];
  const KernelArg *pad = &k->args[1];
  if (pad->kind != ARG_INTS || pad->count != 2 * kind.dims || self->rank < kind.dims ||
      self->rank != out->rank)
    return kernel_error(k, "%u pads for rank %u", pad->count, self->rank);
  int64_t in_size[3] = {1, 1, 1}, out_size[3] = {1, 1, 1}; /* last dim first */
  int64_t *map[3] = {NULL, &(int64_t){0}, &(int64_t){0}};
  int64_t planes = 1;
  for (uint32_t i = 0; i < self->rank; i++) {
    uint32_t d = self->rank - 1 - i;
    if (i >= kind.dims && self->dims[d] != out->dims[d])
      return kernel_error(k, "dim %u of operand and result differ", d);
    if (i >= kind.dims) {
      planes *= self->dims[d];
      continue;
    }
    in_size[i] = self->dims[d];
    out_size[i] = out->dims[d];
    TRY(pad_map(k, kind.reflect, in_size[i], &pad->ints[2 * i], out_size[i], &map[i]));
  }
  size_t element = dtype_size(out->dtype);
  char *to = out->data;
  for (int64_t row = 0; row < planes * out_size[2] * out_size[1]; row++) {
    int64_t plane = row / (out_size[2] * out_size[1]);
    int64_t z = map[2][row / out_size[1] % out_size[2]], y = map[1][row % out_size[1]];
    int64_t at = ((plane * in_size[2] + z) * in_size[1] + y) * in_size[0];
    pad_row(element, to, (const char *)self->data + (size_t)at * element, map[0], out_size[0]);
    to += (size_t)out_size[0] * element;
  }
  return STATUS_OK;
}

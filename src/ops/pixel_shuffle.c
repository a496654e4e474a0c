/* pixel_shuffle and pixel_unshuffle: blocks of r x r pixels against r * r channels (torch's order,
 * channel-major). */
#include "ops/move.h"
#include "ops/ops.h"
#include "ops/shape_util.h"

enum { FACTOR_MAX = 1 << 15 };

/* --- shape rules --- */

static Status read_factor(Graph *g, NodeId n, Dims *dims, int64_t *factor) {
  TRY(arg_const_int(g, n, 1, factor));
  *dims = operand_dims(g, n, 0);
  if (dims->rank < 3)
    return bad_shape(g, n, "rank %u, must be at least 3", dims->rank);
  if (*factor < 1 || *factor > FACTOR_MAX)
    return bad_arg(g, n, "the factor %lld is out of range", (long long)*factor);
  return STATUS_OK;
}

/* size / by, which must come out even. */
static Status exact_quotient(Graph *g, NodeId n, SymInt size, int64_t by, const char *what,
                             SymInt *out) {
  SymInt rest = sym_mod(&g->syms, size, by);
  if (sym_is_const(rest) && rest != 0) {
    const char *text = dim_text(g, size);
    return bad_shape(g, n, "%s, %s, cannot be divided by %lld", what, text, (long long)by);
  }
  if (rest != 0)
    shape_assume(g, n, CONSTRAINT_DIVISIBLE, size, by);
  *out = sym_floordiv(&g->syms, size, by);
  return STATUS_OK;
}

Status shape_pixel_shuffle(Graph *g, NodeId n) {
  Dims dims;
  int64_t r;
  TRY(read_factor(g, n, &dims, &r));
  SymInt *d = &dims.d[dims.rank - 3];
  TRY(exact_quotient(g, n, d[0], r * r, "the number of channels", &d[0]));
  d[1] = sym_mul(&g->syms, d[1], r);
  d[2] = sym_mul(&g->syms, d[2], r);
  return shape_result_dims(g, n, &dims);
}

Status shape_pixel_unshuffle(Graph *g, NodeId n) {
  Dims dims;
  int64_t r;
  TRY(read_factor(g, n, &dims, &r));
  SymInt *d = &dims.d[dims.rank - 3];
  d[0] = sym_mul(&g->syms, d[0], r * r);
  TRY(exact_quotient(g, n, d[1], r, "the height", &d[1]));
  TRY(exact_quotient(g, n, d[2], r, "the width", &d[2]));
  return shape_result_dims(g, n, &dims);
}

/* --- kernels --- */

static bool divisible(const int64_t *d, int64_t r, bool shuffles) {
  return shuffles ? d[0] % (r * r) == 0 : d[1] % r == 0 && d[2] % r == 0;
}

/* Moves between wide [planes, c, r, r, h, w] and deep [planes, c, h, r, w, r]; shuffle goes from
 * the first to the second. */
static Status shuffle(Kernel *k, bool shuffles) {
  const Tensor *self = kernel_tensor(k, 0);
  TRY(kernel_expect_dtype(k, self));
  int64_t r = k->args[1].i, dims[MAX_RANK];
  uint32_t rank = self->rank;
  if (rank < 3 || r < 1 || r > FACTOR_MAX)
    return kernel_error(k, "rank %u, factor %lld", rank, (long long)r);
  memcpy(dims, self->dims, rank * sizeof dims[0]);
  int64_t *d = &dims[rank - 3];
  if (!divisible(d, r, shuffles))
    return kernel_error(k, "the dims cannot be divided by %lld", (long long)r);
  int64_t c = shuffles ? d[0] / (r * r) : d[0];
  int64_t h = shuffles ? d[1] : d[1] / r, w = shuffles ? d[2] : d[2] / r;
  d[0] = shuffles ? c : c * r * r;
  d[1] = shuffles ? h * r : h;
  d[2] = shuffles ? w * r : w;
  TRY(kernel_expect(k, 0, rank, dims));
  int64_t count[6] = {dims_count(dims, 0, rank - 3), c, r, r, h, w}, area = h * w;
  MoveSide wide = {shuffles ? self->data : k->results[0]->data,
                   {c * r * r * area, r * r * area, r * area, area, w, 1}};
  MoveSide deep = {shuffles ? k->results[0]->data : self->data,
                   {c * r * r * area, r * r * area, w * r, 1, r * w * r, r}};
  move_elements(dtype_size(self->dtype), 6, count, shuffles ? deep : wide, shuffles ? wide : deep);
  return STATUS_OK;
}

Status kern_pixel_shuffle(Kernel *k) { return shuffle(k, true); }

Status kern_pixel_unshuffle(Kernel *k) { return shuffle(k, false); }

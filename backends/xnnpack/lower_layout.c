/* In which layout a node is computed that takes both; see lower.h. */
#include "backends/xnnpack/lower.h"

/* Whether v can be an operand in NHWC of a node whose result has that rank: it has the rank itself,
 * or is a constant that has one dim less, or one element. */
static bool fits(XnnLowering *l, ValueId v, uint32_t rank) {
  uint32_t own = value_rank(l->g, v);
  return own == rank || (value_is_const(l->g, v) && (own + 1 == rank || xl_elements(l, v) == 1));
}

bool xl_prefer_nhwc(XnnLowering *l, const ValueId *operands, uint32_t count, ValueId y) {
  uint64_t to_nhwc = 0, to_plain = 0; /* elements to be transposed */
  if (!xl_has_layouts(l->g, y))
    return false;
  for (uint32_t i = 0; i < count; i++) {
    ValueId v = operands[i];
    if (!fits(l, v, value_rank(l->g, y)))
      return false;
    if (value_is_const(l->g, v))
      continue;
    if (!xl_has_nhwc(l, v))
      to_nhwc += xl_elements(l, v);
    else if (!xl_has_plain(l, v))
      to_plain += xl_elements(l, v);
  }
  return to_nhwc < to_plain;
}

XnnId xl_nhwc_operand(XnnLowering *l, ValueId v, uint32_t rank) {
  uint32_t own = value_rank(l->g, v);
  if (own == rank)
    return xl_nhwc(l, v);
  if (xl_elements(l, v) == 1)
    return xl_plain(l, v);
  /* The first dim, of size 1, is not written. */
  uint32_t dims[XNN_MAX_RANK], perm[XNN_MAX_RANK];
  for (uint32_t i = 0; i < own; i++) {
    perm[i] = (i + 1) % own;
    dims[i] = xl_dim(l, v, perm[i]);
  }
  return xl_permuted_constant(l, v, own, dims, perm, false);
}

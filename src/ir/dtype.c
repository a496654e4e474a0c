/* Names, sizes and promotion of element types. Promotion is torch's lattice (c10/core/ScalarType.h,
 * promoteTypes) restricted to the types programs use; the runtime's promoteTypes is the same one.
 */
#include "ir/dtype.h"

static const struct {
  const char *name;
  unsigned size;
} DTYPES[DTYPE_NONE + 1] = {
    [DTYPE_U8] = {"u8", 1},
    [DTYPE_I8] = {"i8", 1},
    [DTYPE_I16] = {"i16", 2},
    [DTYPE_I32] = {"i32", 4},
    [DTYPE_I64] = {"i64", 8},
    [DTYPE_F16] = {"f16", 2},
    [DTYPE_F32] = {"f32", 4},
    [DTYPE_F64] = {"f64", 8},
    [DTYPE_C64] = {"c64", 8},
    [DTYPE_BOOL] = {"bool", 1},
    [DTYPE_BF16] = {"bf16", 2},
    [DTYPE_F8E5M2] = {"f8e5m2", 1},
    [DTYPE_F8E4M3FN] = {"f8e4m3fn", 1},
    [DTYPE_F8E5M2FNUZ] = {"f8e5m2fnuz", 1},
    [DTYPE_F8E4M3FNUZ] = {"f8e4m3fnuz", 1},
    [DTYPE_U16] = {"u16", 2},
    [DTYPE_U32] = {"u32", 4},
    [DTYPE_U64] = {"u64", 8},
};

unsigned dtype_size(DType t) { return (unsigned)t < COUNT_OF(DTYPES) ? DTYPES[t].size : 0; }

const char *dtype_name(DType t) {
  return (unsigned)t < COUNT_OF(DTYPES) && DTYPES[t].name ? DTYPES[t].name : "none";
}

bool dtype_from_name(StrView name, DType *out) {
  for (unsigned t = 0; t < COUNT_OF(DTYPES); t++)
    if (DTYPES[t].name && sv_eq_str(name, DTYPES[t].name)) {
      *out = (DType)t;
      return true;
    }
  return false;
}

static DType promote_ints(DType a, DType b) {
  if ((a == DTYPE_U8 && b == DTYPE_I8) || (a == DTYPE_I8 && b == DTYPE_U8))
    return DTYPE_I16;
  if (a == DTYPE_U8)
    return b;
  if (b == DTYPE_U8)
    return a;
  return a > b ? a : b; /* i8 < i16 < i32 < i64 by number */
}

DType dtype_promote(DType a, DType b) {
  const DTypeSet real = DTS_REAL_BOOL;
  if (a == b)
    return a;
  if (!dtype_in(a, real) || !dtype_in(b, real))
    return DTYPE_NONE;
  if (a == DTYPE_BOOL)
    return b;
  if (b == DTYPE_BOOL)
    return a;
  bool float_a = dtype_is_float(a), float_b = dtype_is_float(b);
  if (float_a != float_b)
    return float_a ? a : b;
  if (float_a) /* f32 also for the pair f16, bf16 */
    return a == DTYPE_F64 || b == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
  return promote_ints(a, b);
}

/* Element types. The numbers are ExecuTorch's ScalarType
 * (runtime/core/portable_type/scalar_type.h), so that emission is a copy. */
#ifndef ETC_IR_DTYPE_H
#define ETC_IR_DTYPE_H

#include "support/base.h"

typedef enum DType {
  DTYPE_U8 = 0,
  DTYPE_I8 = 1,
  DTYPE_I16 = 2,
  DTYPE_I32 = 3,
  DTYPE_I64 = 4,
  DTYPE_F16 = 5,
  DTYPE_F32 = 6,
  DTYPE_F64 = 7,
  DTYPE_C64 = 9,
  DTYPE_BOOL = 11,
  DTYPE_BF16 = 15,
  DTYPE_F8E5M2 = 23,
  DTYPE_F8E4M3FN = 24,
  DTYPE_F8E5M2FNUZ = 25,
  DTYPE_F8E4M3FNUZ = 26,
  DTYPE_U16 = 27,
  DTYPE_U32 = 28,
  DTYPE_U64 = 29,
  DTYPE_NONE = 31
} DType;

/* Sets of dtypes: bit d for dtype number d. */
typedef uint32_t DTypeSet;
#define DT(name) ((DTypeSet)1 << DTYPE_##name)
#define DTS_FLOAT (DT(F32) | DT(F64) | DT(F16) | DT(BF16))
#define DTS_INT (DT(U8) | DT(I8) | DT(I16) | DT(I32) | DT(I64))
#define DTS_UNSIGNED                                                                               \
  (DT(U16) | DT(U32) | DT(U64))        /* types that most kernels of the runtime refuse */
#define DTS_REAL (DTS_FLOAT | DTS_INT) /* torch's REALHBF16 */
#define DTS_REAL_BOOL (DTS_REAL | DT(BOOL))
#define DTS_FLOAT8 (DT(F8E5M2) | DT(F8E4M3FN) | DT(F8E5M2FNUZ) | DT(F8E4M3FNUZ))
#define DTS_BYTES (DTS_REAL_BOOL | DTS_UNSIGNED | DTS_FLOAT8) /* what byte-moving kernels take */

static inline DTypeSet dtype_bit(DType t) { return (DTypeSet)1 << t; }
static inline bool dtype_in(DType t, DTypeSet set) { return (set >> t & 1) != 0; }
static inline bool dtype_is_float(DType t) { return dtype_in(t, DTS_FLOAT); }
static inline bool dtype_is_half(DType t) { return dtype_in(t, DT(F16) | DT(BF16)); }
static inline bool dtype_is_int(DType t) { return dtype_in(t, DTS_INT | DTS_UNSIGNED); }
static inline bool dtype_is_unsigned(DType t) { return dtype_in(t, DTS_UNSIGNED | DT(U8)); }

unsigned dtype_size(DType t);    /* bytes an element; 0 for DTYPE_NONE */
const char *dtype_name(DType t); /* "f32", "i64", "bool", …: the names of the textual IR */
bool dtype_from_name(StrView name, DType *out);
/* torch's promotion of two tensor dtypes (0-d tensors take full part, as in the runtime's kernels);
 * unsigned 16/32/64 only with themselves (DTYPE_NONE otherwise). */
DType dtype_promote(DType a, DType b);

#endif

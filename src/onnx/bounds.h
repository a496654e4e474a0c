/* Ranges of dimensions between imports.
 *
 * What the shape rules assume about symbolic dimensions (a size as large as a kernel, two sizes
 * equal) may rule out sizes that --dim allows. The model is then imported once more with the ranges
 * that are left, so that everything derived from them is derived from the same ranges. */
#ifndef ETC_ONNX_BOUNDS_H
#define ETC_ONNX_BOUNDS_H

#include "ir/solve.h"
#include "onnx/import.h"

/* What narrowed a flag. */
typedef struct Narrowed {
  Loc lo_loc, hi_loc;
  bool lo, hi;
} Narrowed;

typedef struct Bounds {
  Arena arena;
  const ImportOptions *given;
  ImportOptions options; /* with the flags as they are now */
  DimFlag *flags;
  Narrowed *narrowed; /* by flag */
} Bounds;

void bounds_init(Bounds *b, const ImportOptions *options);
void bounds_release(Bounds *b);
/* Solves the constraints of an imported graph; *again: a flag was narrowed, import once more. */
Status bounds_narrow(Bounds *b, Graph *g, bool *again);
/* Puts the constraints in their simplest form, and reports what was narrowed and, with -v, all that
 * is known about the dimensions. */
Status bounds_finish(Bounds *b, Graph *g);

#endif

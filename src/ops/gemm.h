/* Matrix products of the reference kernels: OpenBLAS for floats where its headers were found at
 * build time and its library is found at run time, own loops otherwise and for integers. */
#ifndef ETC_OPS_GEMM_H
#define ETC_OPS_GEMM_H

#include "ops/kernel.h"

/* c = alpha * op(a) op(b) + beta * c; op(a) is [m, k], op(b) is [k, n], c is [m, n], all row-major
 * with the given leading dims. With beta 0 the old c is not read. dtype: f32, f64 or i64 (then only
 * alpha 1 and beta 0 or 1; sums wrap). */
typedef struct Gemm {
  DType dtype;
  bool trans_a, trans_b;
  int64_t m, n, k;
  double alpha, beta;
  const void *a, *b;
  int64_t lda, ldb;
  void *c;
  int64_t ldc;
  bool own_loops; /* the same sums on every machine, which OpenBLAS has only for one kind of CPU */
} Gemm;
/* Uses all threads, inside of a parallel loop one. The result does not depend on their number. */
void gemm(const Gemm *g);

#endif

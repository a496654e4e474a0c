/* gemm.h: the call into CBLAS, and a plain loop for what it does not have.
 *
 * OpenBLAS is opened by the first product that can use it: loading it takes 3 ms and starts threads
 * that spin, and most models are lowered without any product. */
#include "ops/gemm.h"

#include <limits.h>

#include "support/parallel.h"
#include "support/number.h"

#ifdef ETC_HAVE_BLAS
#include <cblas.h>
#include <dlfcn.h>
#include <pthread.h>

/* One library for the process, which stays loaded. All pointers are set, or none is. */
static struct {
  pthread_once_t once;
  bool loaded;
  __typeof__(&cblas_sgemm) sgemm;
  __typeof__(&cblas_dgemm) dgemm;
  __typeof__(&openblas_get_num_threads) get_threads;
  __typeof__(&openblas_set_num_threads) set_threads;
} blas = {.once = PTHREAD_ONCE_INIT};

/* POSIX has dlsym return functions as object pointers, which C cannot convert. */
static bool find_symbol(void *library, const char *name, void *function) {
  void *found = dlsym(library, name);
  memcpy(function, &found, sizeof found);
  return found != NULL;
}

static void load_blas(void) {
  static const char *const names[] = {"libopenblas.so.0", "libopenblas.so"};
  void *library = NULL;
  for (size_t i = 0; i < COUNT_OF(names) && !library; i++)
    library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  blas.loaded = library && find_symbol(library, "cblas_sgemm", &blas.sgemm) &&
                find_symbol(library, "cblas_dgemm", &blas.dgemm) &&
                find_symbol(library, "openblas_get_num_threads", &blas.get_threads) &&
                find_symbol(library, "openblas_set_num_threads", &blas.set_threads);
}

static bool have_blas(void) {
  pthread_once(&blas.once, load_blas);
  return blas.loaded;
}
#endif

void gemm_serial(void) {
#ifdef ETC_HAVE_BLAS
  if (have_blas())
    blas.set_threads(1);
#endif
}

/* --- own loops: rows in parallel, the innermost loop along a row of b where b is not transposed
 * --- */

#define OWN_ROWS(name, T, ACC, FACTOR)                                                             \
  static void name(const Gemm *g, int64_t i) {                                                     \
    const T *a = g->a, *b = g->b;                                                                  \
    T *c = (T *)g->c + i * g->ldc;                                                                 \
    const ACC beta = FACTOR(g->beta), alpha = FACTOR(g->alpha);                                    \
    for (int64_t j = 0; j < g->n; j++)                                                             \
      c[j] = g->beta == 0 ? 0 : (T)(beta * (ACC)c[j]);                                             \
    if (g->trans_b) {                                                                              \
      for (int64_t j = 0; j < g->n; j++) {                                                         \
        ACC sum = 0;                                                                               \
        for (int64_t k = 0; k < g->k; k++)                                                         \
          sum += (ACC)a[g->trans_a ? k * g->lda + i : i * g->lda + k] * (ACC)b[j * g->ldb + k];    \
        c[j] = (T)((ACC)c[j] + alpha * sum);                                                       \
      }                                                                                            \
      return;                                                                                      \
    }                                                                                              \
    for (int64_t k = 0; k < g->k; k++) {                                                           \
      const ACC x = alpha * (ACC)a[g->trans_a ? k * g->lda + i : i * g->lda + k];                  \
      const T *row = b + k * g->ldb;                                                               \
      for (int64_t j = 0; j < g->n; j++)                                                           \
        c[j] = (T)((ACC)c[j] + x * (ACC)row[j]);                                                   \
    }                                                                                              \
  }
#define WHOLE(factor) (uint64_t) int_clamped(factor, INT64_MIN, INT64_MAX)
OWN_ROWS(row_f32, float, float, (float))
OWN_ROWS(row_f64, double, double, (double))
OWN_ROWS(row_i64, int64_t, uint64_t, WHOLE)

static void own_body(void *user, size_t begin, size_t end) {
  const Gemm *g = user;
  for (size_t i = begin; i < end; i++) {
    if (g->dtype == DTYPE_F32)
      row_f32(g, (int64_t)i);
    else if (g->dtype == DTYPE_F64)
      row_f64(g, (int64_t)i);
    else
      row_i64(g, (int64_t)i);
  }
}

static void own_gemm(const Gemm *g) {
  Gemm copy = *g;
  size_t grain = (size_t)(65536 / (g->n * max_i64(g->k, 1) + 1)) + 1;
  parallel_for((size_t)g->m, grain, own_body, &copy);
}

#ifdef ETC_HAVE_BLAS
/* Leading dims must not be below the row length, even of empty matrices. */
static bool blas_takes(const Gemm *g) {
  return (g->dtype == DTYPE_F32 || g->dtype == DTYPE_F64) && g->k > 0 && g->m <= INT_MAX &&
         g->n <= INT_MAX && g->k <= INT_MAX && g->lda <= INT_MAX && g->ldb <= INT_MAX &&
         g->ldc <= INT_MAX;
}

static void blas_gemm(const Gemm *g) {
  CBLAS_TRANSPOSE ta = g->trans_a ? CblasTrans : CblasNoTrans,
                  tb = g->trans_b ? CblasTrans : CblasNoTrans;
  int m = (int)g->m, n = (int)g->n, k = (int)g->k, lda = (int)g->lda, ldb = (int)g->ldb,
      ldc = (int)g->ldc;
  if (g->dtype == DTYPE_F32)
    blas.sgemm(CblasRowMajor, ta, tb, m, n, k, (float)g->alpha, g->a, lda, g->b, ldb,
               (float)g->beta, g->c, ldc);
  else
    blas.dgemm(CblasRowMajor, ta, tb, m, n, k, g->alpha, g->a, lda, g->b, ldb, g->beta, g->c, ldc);
}
#endif

void gemm(const Gemm *g) {
  if (g->m == 0 || g->n == 0)
    return;
#ifdef ETC_HAVE_BLAS
  if (blas_takes(g) && have_blas()) {
    /* Inside of a parallel loop the library stays as gemm_serial has set it. */
    if (!g->serial && !parallel_inside() && blas.get_threads() != (int)parallel_threads())
      blas.set_threads((int)parallel_threads());
    blas_gemm(g);
    return;
  }
#endif
  own_gemm(g);
}

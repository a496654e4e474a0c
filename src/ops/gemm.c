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
#include <pthread.h>
#include <sys/mman.h>

#include "support/shared_object.h"

/* One library for the process, which stays loaded. All pointers are set, or none is. */
static struct {
  pthread_once_t once;
  bool loaded;
  __typeof__(&cblas_sgemm) sgemm;
  __typeof__(&cblas_dgemm) dgemm;
  __typeof__(&openblas_set_num_threads) set_threads;
} blas = {.once = PTHREAD_ONCE_INIT};

/* OpenBLAS takes 128 MiB of addresses for each thread that multiplies (0.3.21, BUFFER_SIZE), and
 * asks for them again and again where the system refuses (ulimit -v). */
static bool has_room(void) {
  const size_t size = ((size_t)parallel_threads() + 1) << 27;
  void *room =
      mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED)
    return false;
  munmap(room, size);
  return true;
}

static void load_blas(void) {
  static const char *const names[] = {"libopenblas.so.0", "libopenblas.so"};
  void *library = NULL;
  const char *why;
  for (size_t i = 0; i < COUNT_OF(names) && !library && has_room(); i++)
    library = shared_object_open(names[i], &why);
  blas.loaded = library && shared_object_function(library, "cblas_sgemm", &blas.sgemm) &&
                shared_object_function(library, "cblas_dgemm", &blas.dgemm) &&
                shared_object_function(library, "openblas_set_num_threads", &blas.set_threads);
  if (blas.loaded)
    blas.set_threads(1); /* its threads spin when they have nothing to do; ours wait */
}

static bool have_blas(void) {
  pthread_once(&blas.once, load_blas);
  return blas.loaded;
}
#endif

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

#ifdef ETC_HAVE_BLAS
enum { PART_MULTIPLE = 64, PARTS_MAX = 16, PART_WORK = 1 << 21 };

/* A product that is cut into parts along its rows or its columns. */
typedef struct Parts {
  const Gemm *whole;
  bool columns;
  int64_t size; /* of a part */
} Parts;

static void parts_body(void *user, size_t begin, size_t end) {
  const Parts *p = user;
  int64_t size = dtype_size(p->whole->dtype);
  for (int64_t i = (int64_t)begin; i < (int64_t)end; i++) {
    Gemm g = *p->whole;
    int64_t at = i * p->size;
    if (p->columns) {
      g.n = min_i64(p->size, g.n - at);
      g.b = (const char *)g.b + at * (g.trans_b ? g.ldb : 1) * size;
      g.c = (char *)g.c + at * size;
    } else {
      g.m = min_i64(p->size, g.m - at);
      g.a = (const char *)g.a + at * (g.trans_a ? 1 : g.lda) * size;
      g.c = (char *)g.c + at * g.ldc * size;
    }
    blas_gemm(&g);
  }
}

/* The parts follow from the sizes alone, so that the result does not depend on the threads. */
static void blas_parts(const Gemm *g) {
  Parts p = {.whole = g, .columns = g->n > g->m};
  int64_t length = p.columns ? g->n : g->m;
  int64_t each =
      (int64_t)int_clamped((double)g->m * (double)g->n * (double)g->k / PART_WORK, 1, PARTS_MAX);
  p.size = (int64_t)align_up((uint64_t)((length + each - 1) / each), PART_MULTIPLE);
  parallel_for((size_t)((length + p.size - 1) / p.size), 1, parts_body, &p);
}
#endif

void gemm(const Gemm *g) {
  if (g->m == 0 || g->n == 0)
    return;
#ifdef ETC_HAVE_BLAS
  if (!g->own_loops && blas_takes(g) && have_blas()) {
    blas_parts(g);
    return;
  }
#endif
  own_gemm(g);
}

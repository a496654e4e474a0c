/* Products in parts: right for every transposition, and the same bits on any number of threads. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ops/gemm.h"
#include "support/parallel.h"

static void check_product(int64_t m, int64_t n, int64_t k, bool trans_a, bool trans_b) {
  Arena arena = {0};
  float *a = ARENA_ARRAY(&arena, float, (size_t)(m * k)),
        *b = ARENA_ARRAY(&arena, float, (size_t)(n * k)),
        *one = ARENA_ARRAY(&arena, float, (size_t)(m * n)),
        *three = ARENA_ARRAY(&arena, float, (size_t)(m * n));
  for (int64_t i = 0; i < m * k; i++)
    a[i] = (float)(i * 7919 % 201 - 100) / 64;
  for (int64_t i = 0; i < n * k; i++)
    b[i] = (float)(i * 104729 % 211 - 105) / 64;
  for (int64_t i = 0; i < m * n; i++)
    one[i] = three[i] = (float)(i % 17);
  Gemm g = {.dtype = DTYPE_F32,
            .trans_a = trans_a,
            .trans_b = trans_b,
            .m = m,
            .n = n,
            .k = k,
            .alpha = 1,
            .beta = 1,
            .a = a,
            .b = b,
            .lda = trans_a ? m : k,
            .ldb = trans_b ? k : n,
            .ldc = n};
  g.c = one;
  parallel_set_threads(1);
  gemm(&g);
  g.c = three;
  parallel_set_threads(3);
  gemm(&g);
  assert_memory_equal(one, three, (size_t)(m * n) * sizeof *one);
  for (int64_t i = 0; i < m * n; i += 1 + m * n / 997) {
    int64_t row = i / n, column = i % n;
    double sum = (double)(i % 17);
    for (int64_t t = 0; t < k; t++)
      sum += (double)a[trans_a ? t * m + row : row * k + t] *
             (double)b[trans_b ? column * k + t : t * n + column];
    assert_true(fabs(sum - (double)one[i]) <= 1e-4 * (fabs(sum) + 1));
  }
  arena_release(&arena);
}

static void test_products(void **state) {
  static const int64_t sizes[][3] = {{3, 5, 7},      {300, 700, 64}, {700, 300, 64},
                                     {1, 5000, 900}, {5000, 1, 900}, {65, 2100, 129},
                                     {257, 257, 257}};
  for (size_t i = 0; i < COUNT_OF(sizes); i++)
    for (unsigned form = 0; form < 4; form++)
      check_product(sizes[i][0], sizes[i][1], sizes[i][2], form & 1, form & 2);
}

/* Sums in order, bit by bit. */
static void test_own_loops(void **state) {
  enum { M = 3, N = 5, K = 129 };
  float a[M * K], b[K * N], c[M * N];
  for (int i = 0; i < M * K; i++)
    a[i] = (float)(i * 7919 % 201 - 100) / 63;
  for (int i = 0; i < K * N; i++)
    b[i] = (float)(i * 104729 % 211 - 105) / 61;
  gemm(&(Gemm){.dtype = DTYPE_F32,
               .m = M,
               .n = N,
               .k = K,
               .alpha = 1,
               .a = a,
               .b = b,
               .c = c,
               .lda = K,
               .ldb = N,
               .ldc = N,
               .own_loops = true});
  for (int i = 0; i < M * N; i++) {
    float sum = 0;
    for (int t = 0; t < K; t++)
      sum += a[i / N * K + t] * b[t * N + i % N];
    assert_memory_equal(&sum, &c[i], sizeof sum);
  }
}

static rlim_t addresses_in_use(void) {
  unsigned long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  assert_non_null(f);
  assert_int_equal(fscanf(f, "%lu", &pages), 1);
  fclose(f);
  return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* With 200 MiB of addresses left OpenBLAS would ask for its buffer for ever. First of all tests, as
 * a process decides once how it multiplies. */
static void test_little_room(void **state) {
  int status;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    struct rlimit limit;
    limit.rlim_cur = limit.rlim_max = addresses_in_use() + (200 << 20);
    if (setrlimit(RLIMIT_AS, &limit) != 0)
      _exit(2);
    alarm(30);
    check_product(64, 64, 64, false, false);
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_little_room),
                                     cmocka_unit_test(test_products),
                                     cmocka_unit_test(test_own_loops)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

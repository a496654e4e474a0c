/* Parallel loops: every index once, the same chunks for any number of threads, nesting, callers on
 * several threads, fork. */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/parallel.h"

enum { COUNT = 10007 };

static void add_one(void *user, size_t begin, size_t end) {
  atomic_int *seen = user;
  for (size_t i = begin; i < end; i++)
    atomic_fetch_add(&seen[i], 1);
}

static void check_once(size_t count, size_t grain) {
  atomic_int *seen = calloc(count + 1, sizeof *seen);
  parallel_for(count, grain, add_one, seen);
  for (size_t i = 0; i < count; i++)
    assert_int_equal(atomic_load(&seen[i]), 1);
  assert_int_equal(atomic_load(&seen[count]), 0);
  free(seen);
}

static void test_every_index_once(void **state) {
  static const size_t counts[] = {0, 1, 2, 255, 256, 257, COUNT};
  for (unsigned threads = 0; threads <= 5; threads++) {
    parallel_set_threads(threads);
    assert_true(parallel_threads() == threads || (threads == 0 && parallel_threads() > 0));
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
      check_once(counts[i], 0);
      check_once(counts[i], 1);
      check_once(counts[i], 100);
      check_once(counts[i], SIZE_MAX);
    }
  }
}

static void note_end(void *user, size_t begin, size_t end) { ((size_t *)user)[begin] = end; }

static void test_chunks_do_not_depend_on_threads(void **state) {
  size_t *one = calloc(COUNT, sizeof *one), *four = calloc(COUNT, sizeof *four);
  parallel_set_threads(1);
  parallel_for(COUNT, 3, note_end, one);
  parallel_set_threads(4);
  parallel_for(COUNT, 3, note_end, four);
  assert_memory_equal(one, four, COUNT * sizeof *one);
  /* No chunk but the last is smaller than the grain. */
  memset(one, 0, COUNT * sizeof *one);
  parallel_for(COUNT, 1000, note_end, one);
  for (size_t i = 0; i < COUNT; i++)
    assert_true(one[i] == 0 || one[i] == COUNT || one[i] - i >= 1000);
  free(one);
  free(four);
}

static void nested(void *user, size_t begin, size_t end) {
  for (size_t i = begin; i < end; i++)
    parallel_for(50, 1, add_one, (atomic_int *)user + i * 50);
}

static void test_nested(void **state) {
  static atomic_int seen[2500];
  parallel_set_threads(3);
  parallel_for(50, 1, nested, seen);
  for (size_t i = 0; i < COUNT_OF(seen); i++)
    assert_int_equal(atomic_load(&seen[i]), 1);
}

static void *caller(void *user) {
  for (int i = 0; i < 50; i++)
    parallel_for(1000, 1, add_one, user);
  return NULL;
}

static void test_callers_on_several_threads(void **state) {
  static atomic_int seen[3][1000];
  pthread_t threads[3];
  parallel_set_threads(3);
  for (int i = 0; i < 3; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, caller, seen[i]), 0);
  for (int i = 0; i < 3; i++)
    assert_int_equal(pthread_join(threads[i], NULL), 0);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 1000; j++)
      assert_int_equal(atomic_load(&seen[i][j]), 50);
}

static void test_fork(void **state) {
  static atomic_int seen[1000];
  parallel_set_threads(3);
  check_once(COUNT, 1);
  pid_t child = fork();
  if (child == 0) {
    alarm(20); /* a loop that waits for threads which fork has not copied would hang */
    parallel_for(1000, 1, add_one, seen);
    for (int i = 0; i < 1000; i++)
      if (atomic_load(&seen[i]) != 1)
        _exit(1);
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_index_once),
      cmocka_unit_test(test_chunks_do_not_depend_on_threads),
      cmocka_unit_test(test_nested),
      cmocka_unit_test(test_callers_on_several_threads),
      cmocka_unit_test(test_fork),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Lowering when there is no memory: the n-th request fails, for each n that comes. The linker puts
 * the functions here in the place of malloc, calloc and realloc (-Wl,--wrap). */
#include "unit.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "etc/etc.h"

#define DATA ETC_SOURCE_DIR "/tests/cli/data/"

/* --- requests --- */

static atomic_ulong requests, failing; /* failing: number of the first one that does; 0: none */
static atomic_bool lasting;            /* and so do all behind it */

static bool fails(void) {
  unsigned long number = atomic_fetch_add(&requests, 1) + 1, first = atomic_load(&failing);
  return first && (lasting ? number >= first : number == first);
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size) { return fails() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t count, size_t size) {
  return fails() ? NULL : __real_calloc(count, size);
}
void *__wrap_realloc(void *old, size_t size) { return fails() ? NULL : __real_realloc(old, size); }

/* --- what is lowered --- */

typedef struct Case {
  const char *name, *model;
  const char *const *options; /* pairs, NULL at the end */
} Case;

/* "@/" begins paths in the folder of the test. */
static const char *const portable[] = {"dim", "batch=1..4", NULL};
static const char *const xnnpack[] = {"dim", "batch=3", "backend", "xnnpack:min-ops=1", NULL};
static const char *const outputs[] = {"recipe",    "xnnpack",    "report",  "@/r.html",
                                      "artifacts", "@/stages",   "depfile", "@/x.d",
                                      "map",       "@/map.json", NULL};
static const char *const quantized[] = {"calibrate", DATA "calib/relu_deflated.npz",
                                        "quantize",  "int8",
                                        "backend",   "xnnpack:min-ops=1",
                                        "threads",   "3",
                                        "report",    "@/r.html",
                                        "dim",       "batch=1",
                                        NULL};
static const char *const wrong[] = {"diagnostics", "json", NULL};

static const Case cases[] = {
    {"portable", DATA "relu.onnx", portable}, {"xnnpack", DATA "relu.onnx", xnnpack},
    {"outputs", DATA "why.onnx", outputs},    {"quantized", DATA "relu.onnx", quantized},
    {"external", DATA "external.onnx", NULL}, {"decoder", DATA "decoder.onnx", NULL},
    {"refused", DATA "unknown.onnx", wrong},
};

/* --- one run --- */

typedef struct Said {
  char text[1 << 14]; /* no memory is asked for */
  size_t size;
} Said;

static Said said;

static void keep(void *user, const char *text, size_t size) {
  Said *to = user;
  assert_true(size < sizeof to->text - to->size);
  memcpy(to->text + to->size, text, size);
  to->size += size;
  to->text[to->size] = '\0';
}

static const char *in_folder(const char *folder, const char *value, char path[256]) {
  if (strncmp(value, "@/", 2) != 0)
    return value;
  snprintf(path, 256, "%s/%s", folder, value + 2);
  return path;
}

static EtcStatus prepare(EtcSession *s, const Case *c, const char *folder) {
  EtcStatus status = ETC_OK;
  char path[256];
  etc_session_on_diagnostic(s, keep, &said);
  for (const char *const *o = c->options; o && *o && status == ETC_OK; o += 2)
    status = etc_session_set(s, o[0], in_folder(folder, o[1], path));
  return status == ETC_OK ? etc_session_add_method(s, "forward", c->model) : status;
}

static EtcStatus lower(const Case *c, const char *folder) {
  char path[256];
  said.size = 0;
  said.text[0] = '\0';
  EtcSession *s = etc_session_new();
  if (!s)
    return ETC_NO_MEMORY;
  EtcStatus status = prepare(s, c, folder);
  if (status == ETC_OK)
    status = etc_lower(s, in_folder(folder, "@/x.pte", path));
  if (status == ETC_NO_MEMORY) {
    assert_contains(said.text, "E0117");
    assert_contains(said.text, "out of memory");
    assert_int_equal(etc_session_set(s, "plan", "naive"), ETC_NO_MEMORY);
    assert_int_equal(etc_lower(s, path), ETC_NO_MEMORY);
  }
  etc_session_free(s);
  return status;
}

/* --- what a run leaves --- */

static bool is_mapped(const char *part) {
  char line[1024];
  bool found = false;
  FILE *maps = fopen("/proc/self/maps", "r");
  assert_non_null(maps);
  while (fgets(line, sizeof line, maps))
    found |= strstr(line, part) != NULL;
  fclose(maps);
  return found;
}

/* Removes what is in the folder. Files beside the program come before it, each as a whole; returns
 * whether the program was there. */
static bool clear(const char *folder) {
  bool program = false;
  char path[600];
  DIR *list = opendir(folder);
  for (struct dirent *e; list && (e = readdir(list));) {
    if (e->d_name[0] == '.')
      continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (e->d_type == DT_DIR) {
      (void)clear(path);
      assert_int_equal(rmdir(path), 0);
      continue;
    }
    assert_null(strstr(e->d_name, ".tmp-")); /* never half of a file */
    program |= strcmp(e->d_name, "x.pte") == 0;
    assert_int_equal(unlink(path), 0);
  }
  if (list)
    closedir(list);
  return program;
}

/* --- all requests of each case --- */

enum { RUNS_MAX = 300 };

static unsigned long count_requests(const Case *c, const char *folder, EtcStatus *status) {
  atomic_store(&failing, 0);
  (void)lower(c, folder); /* what is made once in a process */
  (void)clear(folder);
  atomic_store(&requests, 0);
  *status = lower(c, folder);
  return atomic_load(&requests);
}

static void fail_each(const Case *c, const char *folder) {
  EtcStatus whole;
  unsigned long count = count_requests(c, folder, &whole), failed = 0;
  unsigned files = open_descriptors();
  bool written = clear(folder);
  assert_true(written == (whole == ETC_OK));
  assert_true(count > 20);
  unsigned long step = 1 + count / RUNS_MAX; /* sanitizers ask for more */
  for (unsigned long n = 1; n <= count; n += n <= 100 ? 1 : step)
    for (int all = 0; all < 2; all++) {
      atomic_store(&lasting, all != 0);
      atomic_store(&requests, 0);
      atomic_store(&failing, n);
      EtcStatus status = lower(c, folder);
      atomic_store(&failing, 0);
      if (clear(folder))
        fail_msg("%s, request %lu of %lu: there is a program", c->name, n, count);
      if (status != ETC_NO_MEMORY)
        fail_msg("%s, request %lu of %lu: status %d\n%s", c->name, n, count, (int)status,
                 said.text);
      assert_int_equal(open_descriptors(), files);
      assert_false(is_mapped(c->model));
      failed++;
    }
  print_message("%s: status %d after %lu requests; %lu runs without memory\n", c->name, (int)whole,
                count, failed);
  assert_int_equal(lower(c, folder), whole);
  assert_true(clear(folder) == written);
}

static void test_lower(void **state) {
  char folder[] = "/tmp/etc-no-memory-XXXXXX";
  assert_non_null(mkdtemp(folder));
  for (size_t i = 0; i < COUNT_OF(cases); i++)
    fail_each(&cases[i], folder);
  assert_int_equal(rmdir(folder), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_lower)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Files: what is refused as an input, external data that tries to leave its folder, output that
 * appears whole or not. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/files.h"

typedef struct Fixture {
  char folder[64];
  Arena arena;
  Capture capture;
} Fixture;

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
  (void)st, (void)flag, (void)ftw;
  return remove(path);
}

static int set_up(void **state) {
  Fixture *f = calloc(1, sizeof *f);
  snprintf(f->folder, sizeof f->folder, "/tmp/etc-test-XXXXXX");
  assert_non_null(mkdtemp(f->folder));
  f->arena = (Arena){0};
  capture_init(&f->capture);
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  Fixture *f = *state;
  nftw(f->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
  arena_release(&f->arena);
  capture_release(&f->capture);
  free(f);
  return 0;
}

static char *path_in(Fixture *f, const char *name) {
  return arena_printf(&f->arena, "%s/%s", f->folder, name);
}

static void put(Fixture *f, const char *name, const char *text) {
  FILE *out = fopen(path_in(f, name), "wb");
  assert_non_null(out);
  fputs(text, out);
  assert_int_equal(fclose(out), 0);
}

/* The text of a file, or NULL if there is none. */
static char *get(Fixture *f, const char *name) {
  FILE *in = fopen(path_in(f, name), "rb");
  if (!in)
    return NULL;
  char *text = arena_calloc(&f->arena, 1, 1 << 16);
  size_t size = fread(text, 1, (1 << 16) - 1, in);
  assert_true(size < 1 << 16);
  fclose(in);
  return text;
}

static unsigned count_entries(Fixture *f) {
  unsigned count = 0;
  char *command = arena_printf(&f->arena, "ls -A '%s'", f->folder);
  FILE *list = popen(command, "r");
  assert_non_null(list);
  for (int c; (c = fgetc(list)) != EOF;)
    count += c == '\n';
  pclose(list);
  return count;
}

static void expect_map(Fixture *f, const char *path, Status status, const char *code) {
  MappedFile file;
  strbuf_clear(&f->capture.text);
  assert_int_equal(file_map(&file, &f->arena, &f->capture.sink, path), status);
  assert_contains(strbuf_cstr(&f->capture.text), code);
  assert_int_equal(file.fd, -1);
}

static void test_map(void **state) {
  Fixture *f = *state;
  MappedFile file;
  put(f, "a", "hello");
  assert_int_equal(file_map(&file, &f->arena, &f->capture.sink, path_in(f, "a")), STATUS_OK);
  assert_int_equal(file.size, 5);
  assert_memory_equal(file.data, "hello", 5);
  assert_string_equal(file.path, path_in(f, "a"));
  assert_int_equal(file_check_unchanged(&file, &f->capture.sink), STATUS_OK);
  put(f, "a", "hello, longer");
  assert_int_equal(file_check_unchanged(&file, &f->capture.sink), STATUS_IO);
  assert_contains(strbuf_cstr(&f->capture.text), "E0108");
  file_unmap(&file);
  assert_int_equal(file.fd, -1);
  assert_int_equal(file_map(&file, &f->arena, &f->capture.sink, path_in(f, "a")), STATUS_OK);
  struct timespec later[2] = {{.tv_sec = 1}, {.tv_sec = 1}}; /* same size, other time */
  assert_int_equal(utimensat(AT_FDCWD, path_in(f, "a"), later, 0), 0);
  assert_int_equal(file_check_unchanged(&file, &f->capture.sink), STATUS_IO);
  file_unmap(&file);
  file_unmap(&file);
  put(f, "empty", "");
  assert_int_equal(file_map(&file, &f->arena, &f->capture.sink, path_in(f, "empty")), STATUS_OK);
  assert_int_equal(file.size, 0);
  file_unmap(&file);
}

static void test_map_refuses(void **state) {
  Fixture *f = *state;
  alarm(20); /* a FIFO opened the wrong way blocks for ever */
  expect_map(f, path_in(f, "missing"), STATUS_IO, "E0102");
  expect_map(f, f->folder, STATUS_IO, "E0103");
  assert_int_equal(mkfifo(path_in(f, "fifo"), 0600), 0);
  expect_map(f, path_in(f, "fifo"), STATUS_IO, "E0104");
  expect_map(f, "/dev/zero", STATUS_IO, "E0104");
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s/s", f->folder);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  expect_map(f, path_in(f, "s"), STATUS_IO, "E0104");
  close(fd);
  alarm(0);
}

static void beneath_with(Fixture *f, StrView relative, bool links, Status status,
                         const char *expected) {
  MappedFile file;
  strbuf_clear(&f->capture.text);
  DiagPlace place = DIAG_NOWHERE;
  place.node = SV("weight");
  assert_int_equal(file_map_beneath(&file, &f->arena, &f->capture.sink, path_in(f, "m/model.onnx"),
                                    relative, links, place),
                   status);
  if (status == STATUS_OK) {
    assert_int_equal(file.size, strlen(expected));
    assert_memory_equal(file.data, expected, file.size);
  } else {
    assert_contains(strbuf_cstr(&f->capture.text), expected);
    assert_contains(strbuf_cstr(&f->capture.text), "weight");
  }
  file_unmap(&file);
}

static void beneath(Fixture *f, StrView relative, Status status, const char *expected) {
  beneath_with(f, relative, false, status, expected);
}

static void make_external(Fixture *f) {
  assert_int_equal(mkdir(path_in(f, "m"), 0700), 0);
  assert_int_equal(mkdir(path_in(f, "m/sub"), 0700), 0);
  put(f, "secret", "secret");
  put(f, "m/w.bin", "weights");
  put(f, "m/sub/v.bin", "values");
  put(f, "m/twice", "linked");
  assert_int_equal(link(path_in(f, "m/twice"), path_in(f, "m/hard")), 0);
  assert_int_equal(symlink("../secret", path_in(f, "m/out")), 0);
  assert_int_equal(symlink("w.bin", path_in(f, "m/in")), 0);
  assert_int_equal(symlink(f->folder, path_in(f, "m/dirlink")), 0);
  assert_int_equal(mkfifo(path_in(f, "m/fifo"), 0600), 0);
}

/* What --allow-linked-data permits, and what it does not. */
static void check_links(Fixture *f) {
  beneath(f, SV("hard"), STATUS_INVALID, "--allow-linked-data");
  beneath(f, SV("out"), STATUS_INVALID, "--allow-linked-data");
  beneath_with(f, SV("hard"), true, STATUS_OK, "linked");
  beneath_with(f, SV("out"), true, STATUS_OK, "secret");
  beneath_with(f, SV("in"), true, STATUS_OK, "weights");
  beneath_with(f, SV("dirlink/secret"), true, STATUS_OK, "secret");
  beneath_with(f, SV("fifo"), true, STATUS_INVALID, "not a regular file");
  beneath_with(f, SV("../secret"), true, STATUS_INVALID, "leaves the folder");
  beneath_with(f, SV("/etc/passwd"), true, STATUS_INVALID, "is absolute");
}

static void check_beneath(Fixture *f) {
  check_links(f);
  beneath(f, SV("w.bin"), STATUS_OK, "weights");
  beneath(f, SV("./w.bin"), STATUS_OK, "weights");
  beneath(f, SV("sub/v.bin"), STATUS_OK, "values");
  beneath(f, SV("sub//./v.bin"), STATUS_OK, "values");
  beneath(f, SV("..w.bin"), STATUS_IO, "E0102");
  beneath(f, SV("nothing"), STATUS_IO, "E0102");
  beneath(f, SV("w.bin/x"), STATUS_IO, "E0102");
  beneath(f, SV(""), STATUS_INVALID, "is empty");
  beneath(f, SV("../secret"), STATUS_INVALID, "leaves the folder");
  beneath(f, SV("sub/../../secret"), STATUS_INVALID, "leaves the folder");
  beneath(f, SV("sub/../w.bin"), STATUS_INVALID, "leaves the folder");
  beneath(f, SV(".."), STATUS_INVALID, "leaves the folder");
  beneath(f, SV("/etc/passwd"), STATUS_INVALID, "is absolute");
  beneath(f, SV("w.bin\0x"), STATUS_INVALID, "NUL");
  beneath(f, SV("out"), STATUS_INVALID, "symbolic link");
  beneath(f, SV("in"), STATUS_INVALID, "symbolic link");
  beneath(f, SV("fifo"), STATUS_INVALID, "not a regular file");
  beneath(f, SV("sub"), STATUS_INVALID, "not a regular file");
  beneath(f, SV("hard"), STATUS_INVALID, "hard links");
}

static void test_beneath(void **state) {
  Fixture *f = *state;
  alarm(20);
  make_external(f);
  check_beneath(f);
  beneath(f, SV("dirlink/secret"), STATUS_INVALID, "symbolic link");
  char *many = arena_calloc(&f->arena, 1, 10001);
  memset(many, 'a', 10000);
  beneath(f, sv_from(many), STATUS_INVALID, "too long");
  memset(many, 'a', 300);
  many[300] = '\0';
  beneath(f, sv_from(many), STATUS_IO, "E0102");
  alarm(0);
}

/* From here on openat2 fails as on a kernel before 5.6. */
static bool forbid_openat2(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {COUNT_OF(filter), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
         syscall(SYS_openat2, -1, "", NULL, 0) == -1 && errno == ENOSYS;
}

static void test_beneath_on_old_kernel(void **state) {
  Fixture *f = *state;
  make_external(f);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    if (!forbid_openat2())
      _exit(77);
    check_beneath(
        f); /* a failure leaves by the test runner of the child, with another status than 0 */
    beneath(f, SV("dirlink/secret"), STATUS_IO, "Not a directory");
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    print_message("skipped: no seccomp filter can be set here\n");
    skip();
  }
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static Status write_parts(Fixture *f, const char *name, const char *a, const char *b, bool sync) {
  AtomicFile file;
  TRY(atomic_file_open(&file, &f->arena, &f->capture.sink, path_in(f, name)));
  atomic_file_write(&file, a, strlen(a));
  atomic_file_pad(&file, 8);
  atomic_file_write(&file, b, strlen(b));
  assert_int_equal(file.offset, 8 + strlen(b));
  return atomic_file_commit(&file, sync);
}

static void test_commit(void **state) {
  Fixture *f = *state;
  assert_int_equal(write_parts(f, "out", "abcdefgh", "ij", true), STATUS_OK);
  assert_string_equal(get(f, "out"), "abcdefghij");
  assert_int_equal(write_parts(f, "out", "ABCDEFGH", "", false), STATUS_OK);
  assert_string_equal(get(f, "out"), "ABCDEFGH");
  assert_int_equal(count_entries(f), 1);
}

static void test_not_there_before_commit(void **state) {
  Fixture *f = *state;
  AtomicFile file;
  put(f, "old", "old");
  assert_int_equal(atomic_file_open(&file, &f->arena, &f->capture.sink, path_in(f, "old")),
                   STATUS_OK);
  atomic_file_write(&file, "new", 3);
  assert_string_equal(get(f, "old"), "old");
  assert_int_equal(count_entries(f), 2);
  atomic_file_abandon(&file);
  assert_int_equal(count_entries(f), 1);
  assert_string_equal(get(f, "old"), "old");
  assert_int_equal(atomic_file_commit(&file, false), STATUS_IO);
  assert_int_equal(atomic_file_open(&file, &f->arena, &f->capture.sink, path_in(f, "new")),
                   STATUS_OK);
  atomic_file_remove_pending();
  assert_int_equal(count_entries(f), 1);
  atomic_file_abandon(&file);
}

/* What is written can be looked at before it has its name. */
static void test_view(void **state) {
  Fixture *f = *state;
  AtomicFile file;
  MappedFile view;
  const char *const paths[] = {path_in(f, "new"), "-"};
  for (size_t i = 0; i < COUNT_OF(paths); i++) {
    assert_int_equal(atomic_file_open(&file, &f->arena, &f->capture.sink, paths[i]), STATUS_OK);
    atomic_file_write(&file, "abc", 3);
    atomic_file_pad(&file, 5);
    assert_int_equal(atomic_file_view(&file, &view), STATUS_OK);
    assert_int_equal(view.size, 5);
    assert_memory_equal(view.data, "abc\0", 5);
    file_unmap(&view);
    atomic_file_abandon(&file);
    assert_int_equal(count_entries(f), 0);
  }
  assert_int_equal(atomic_file_open(&file, &f->arena, &f->capture.sink, "/dev/null"), STATUS_OK);
  atomic_file_write(&file, "abc", 3);
  assert_int_equal(atomic_file_view(&file, &view), STATUS_IO);
  atomic_file_abandon(&file);
}

static void test_large_and_padded(void **state) {
  Fixture *f = *state;
  AtomicFile file;
  enum { SIZE = 3 << 20 };
  uint8_t *data = arena_alloc(&f->arena, SIZE);
  for (size_t i = 0; i < SIZE; i++)
    data[i] = (uint8_t)(i * 2654435761u >> 13);
  assert_int_equal(atomic_file_open(&file, &f->arena, &f->capture.sink, path_in(f, "big")),
                   STATUS_OK);
  uint64_t at = 0;
  for (size_t step = 1; at + step < SIZE; step = step * 3 / 2 + 1) {
    atomic_file_write(&file, data + at, step);
    at += step;
  }
  atomic_file_write(&file, data + at, SIZE - at);
  atomic_file_pad(&file, SIZE + 100000);
  assert_int_equal(atomic_file_commit(&file, false), STATUS_OK);
  MappedFile back;
  assert_int_equal(file_map(&back, &f->arena, &f->capture.sink, path_in(f, "big")), STATUS_OK);
  assert_int_equal(back.size, SIZE + 100000);
  assert_memory_equal(back.data, data, SIZE);
  for (size_t i = SIZE; i < back.size; i++)
    assert_int_equal(back.data[i], 0);
  file_unmap(&back);
}

/* Copies of ranges, by the kernel and (from a closed descriptor) by hand, between buffered writes.
 */
static void check_copy(Fixture *f, const MappedFile *from, const char *name) {
  AtomicFile file;
  assert_int_equal(atomic_file_open(&file, &f->arena, &f->capture.sink, path_in(f, name)),
                   STATUS_OK);
  atomic_file_write(&file, "head", 4);
  atomic_file_copy(&file, from, 1000, 1 << 20);
  atomic_file_copy(&file, from, 5, 10);
  atomic_file_copy(&file, from, from->size, 0);
  atomic_file_write(&file, "tail", 4);
  assert_int_equal(file.offset, 4 + (1 << 20) + 10 + 4);
  assert_int_equal(atomic_file_commit(&file, false), STATUS_OK);
  MappedFile back;
  assert_int_equal(file_map(&back, &f->arena, &f->capture.sink, path_in(f, name)), STATUS_OK);
  assert_int_equal(back.size, 18 + (1 << 20));
  assert_memory_equal(back.data, "head", 4);
  assert_memory_equal(back.data + 4, from->data + 1000, 1 << 20);
  assert_memory_equal(back.data + 4 + (1 << 20), from->data + 5, 10);
  assert_memory_equal(back.data + 14 + (1 << 20), "tail", 4);
  file_unmap(&back);
}

static void test_copy(void **state) {
  Fixture *f = *state;
  AtomicFile file;
  MappedFile from;
  assert_int_equal(atomic_file_open(&file, &f->arena, &f->capture.sink, path_in(f, "from")),
                   STATUS_OK);
  for (uint32_t i = 0; i < 1 << 19; i++)
    atomic_file_write(&file, &i, sizeof i);
  assert_int_equal(atomic_file_commit(&file, false), STATUS_OK);
  assert_int_equal(file_map(&from, &f->arena, &f->capture.sink, path_in(f, "from")), STATUS_OK);
  check_copy(f, &from, "kernel");
  int fd = from.fd;
  from.fd = -1;
  check_copy(f, &from, "hand");
  from.fd = fd;
  /* A source cut short meanwhile is reported, not read past its end. */
  assert_int_equal(truncate(path_in(f, "from"), 4096), 0);
  assert_int_equal(atomic_file_open(&file, &f->arena, &f->capture.sink, path_in(f, "cut")),
                   STATUS_OK);
  atomic_file_copy(&file, &from, 0, 1 << 20);
  assert_int_equal(atomic_file_commit(&file, false), STATUS_IO);
  assert_contains(strbuf_cstr(&f->capture.text), "E0108");
  assert_null(get(f, "cut"));
  file_unmap(&from);
}

/* A large file is copied by the kernel, a small one from its mapping (test_copy). */
static void test_copy_of_large(void **state) {
  Fixture *f = *state;
  enum { SIZE = FILE_KEPT_MAX + (1 << 20), COPIED = 9 << 20 };
  AtomicFile file;
  MappedFile from, back;
  int fd = open(path_in(f, "large"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  assert_true(fd >= 0);
  assert_int_equal(ftruncate(fd, SIZE), 0);
  for (uint32_t at = 0; at < COPIED + 8192; at += 4096 + 4)
    assert_int_equal(pwrite(fd, &at, sizeof at, at), sizeof at);
  close(fd);
  assert_int_equal(file_map(&from, &f->arena, &f->capture.sink, path_in(f, "large")), STATUS_OK);
  assert_int_equal(atomic_file_open(&file, &f->arena, &f->capture.sink, path_in(f, "out")),
                   STATUS_OK);
  atomic_file_copy(&file, &from, 1000, COPIED);
  assert_int_equal(atomic_file_commit(&file, false), STATUS_OK);
  assert_int_equal(file_map(&back, &f->arena, &f->capture.sink, path_in(f, "out")), STATUS_OK);
  assert_int_equal(back.size, COPIED);
  assert_memory_equal(back.data, from.data + 1000, COPIED);
  file_unmap(&back);
  file_unmap(&from);
}

static void test_targets(void **state) {
  Fixture *f = *state;
  AtomicFile file;
  assert_int_equal(atomic_file_open(&file, &f->arena, &f->capture.sink, path_in(f, "no/out")),
                   STATUS_IO);
  assert_contains(strbuf_cstr(&f->capture.text), "E0106");
  assert_int_equal(atomic_file_open(&file, &f->arena, &f->capture.sink, f->folder), STATUS_IO);
  assert_contains(strbuf_cstr(&f->capture.text), "E0103");
  atomic_file_write(&file, "x", 1); /* harmless after a failed open */
  atomic_file_abandon(&file);
  assert_int_equal(count_entries(f), 0);
}

/* What is no regular file is written to, not replaced. A pipe of our own plays the part of
 * /dev/null, so that a fault in this place cannot cost the machine a device. */
static void test_pipe_is_written_to(void **state) {
  Fixture *f = *state;
  AtomicFile file;
  struct stat st;
  char text[16] = {0};
  assert_int_equal(mkfifo(path_in(f, "pipe"), 0600), 0);
  int reader = open(path_in(f, "pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  assert_true(reader >= 0);
  assert_int_equal(atomic_file_open(&file, &f->arena, &f->capture.sink, path_in(f, "pipe")),
                   STATUS_OK);
  atomic_file_write(&file, "through", 7);
  assert_int_equal(atomic_file_commit(&file, true), STATUS_OK);
  assert_int_equal(read(reader, text, sizeof text), 7);
  assert_string_equal(text, "through");
  close(reader);
  assert_int_equal(stat(path_in(f, "pipe"), &st), 0);
  assert_true(S_ISFIFO(st.st_mode));
  assert_int_equal(count_entries(f), 1);
}

static void test_link_and_mode_stay(void **state) {
  Fixture *f = *state;
  struct stat st;
  put(f, "real", "old");
  assert_int_equal(chmod(path_in(f, "real"), 0640), 0);
  assert_int_equal(symlink("real", path_in(f, "link")), 0);
  assert_int_equal(write_parts(f, "link", "12345678", "9", false), STATUS_OK);
  assert_string_equal(get(f, "real"), "123456789");
  assert_int_equal(lstat(path_in(f, "link"), &st), 0);
  assert_true(S_ISLNK(st.st_mode));
  assert_int_equal(stat(path_in(f, "real"), &st), 0);
  assert_int_equal(st.st_mode & 07777, 0640);
  assert_int_equal(count_entries(f), 2);
}

static void test_long_name(void **state) {
  Fixture *f = *state;
  char name[NAME_MAX + 1];
  memset(name, 'n', NAME_MAX);
  name[NAME_MAX] = '\0';
  assert_int_equal(write_parts(f, name, "12345678", "", false), STATUS_OK);
  assert_string_equal(get(f, name), "12345678");
  assert_int_equal(count_entries(f), 1);
}

/* A full disk, played by a limit on the size of files: an error, the old file, no temporary. */
static void test_no_room(void **state) {
  Fixture *f = *state;
  put(f, "out", "old");
  struct rlimit before, small;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  small = before;
  small.rlim_cur = 100000;
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  AtomicFile file;
  Status status = atomic_file_open(&file, &f->arena, &f->capture.sink, path_in(f, "out"));
  atomic_file_pad(&file, 1000000);
  Status committed = atomic_file_commit(&file, false);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  assert_int_equal(status, STATUS_OK);
  assert_int_equal(committed, STATUS_IO);
  assert_contains(strbuf_cstr(&f->capture.text), "E0106");
  assert_int_equal(f->capture.sink.errors, 1);
  assert_string_equal(get(f, "out"), "old");
  assert_int_equal(count_entries(f), 1);
}

static void on_signal(int number) {
  atomic_file_remove_pending();
  _exit(128 + number);
}

static void test_killed_while_writing(void **state) {
  Fixture *f = *state;
  put(f, "out", "old");
  pid_t child = fork();
  if (child == 0) {
    AtomicFile file;
    signal(SIGTERM, on_signal);
    if (atomic_file_open(&file, &f->arena, &f->capture.sink, path_in(f, "out")) != STATUS_OK)
      _exit(1);
    atomic_file_pad(&file, 1 << 20);
    raise(SIGTERM);
    _exit(2);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(WEXITSTATUS(status), 128 + SIGTERM);
  assert_string_equal(get(f, "out"), "old");
  assert_int_equal(count_entries(f), 1);
}

/* Each file once, in the order of opening, with the version of the first time. */
static void test_files_read(void **state) {
  Fixture *f = *state;
  DiagSink *sink = &f->capture.sink;
  FilesRead files;
  MappedFile file;
  files_read_init(&files);
  sink->files = &files;
  put(f, "b", "two");
  put(f, "a", "one");
  static const char *const opened[] = {"b", "a", "b"};
  for (size_t i = 0; i < COUNT_OF(opened); i++) {
    assert_int_equal(file_map(&file, &f->arena, sink, path_in(f, opened[i])), STATUS_OK);
    file_unmap(&file);
  }
  assert_int_equal(
      file_map_beneath(&file, &f->arena, sink, path_in(f, "m"), SV("a"), false, DIAG_NOWHERE),
      STATUS_OK);
  file_unmap(&file);
  file_note(sink, path_in(f, "missing"));
  file_note(sink, f->folder);
  assert_int_equal(files.paths.count, 3);
  assert_string_equal(intern_get(&files.paths, 1).data, path_in(f, "b"));
  assert_string_equal(intern_get(&files.paths, 2).data, path_in(f, "a"));
  assert_string_equal(intern_get(&files.paths, 3).data, f->folder);
  assert_int_equal(files_read_unchanged(&files, sink), STATUS_OK);
  put(f, "a", "three");
  assert_int_equal(files_read_unchanged(&files, sink), STATUS_IO);
  assert_contains(strbuf_cstr(&f->capture.text), "E0108");
  files_read_release(&files);
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      FILE_TEST(test_map),
      FILE_TEST(test_files_read),
      FILE_TEST(test_map_refuses),
      FILE_TEST(test_beneath),
      FILE_TEST(test_beneath_on_old_kernel),
      FILE_TEST(test_commit),
      FILE_TEST(test_not_there_before_commit),
      FILE_TEST(test_view),
      FILE_TEST(test_large_and_padded),
      FILE_TEST(test_copy),
      FILE_TEST(test_copy_of_large),
      FILE_TEST(test_targets),
      FILE_TEST(test_pipe_is_written_to),
      FILE_TEST(test_link_and_mode_stay),
      FILE_TEST(test_long_name),
      FILE_TEST(test_no_room),
      FILE_TEST(test_killed_while_writing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

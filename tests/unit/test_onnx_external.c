/* Weights in files beside the model: what is read, and every way out of the folder or the file that
 * must be refused. */
#include "temp_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "onnx/file/tensor.h"
#include "proto_writer.h"

enum { UINT8 = ONNX__TENSOR_PROTO__DATA_TYPE__UINT8, PATH_SIZE = 256 };

/* A folder with model.onnx to be written, w.bin ("0123456789") and sub/w.bin. */
typedef struct Folder {
  char path[PATH_SIZE / 2], model[PATH_SIZE];
} Folder;

static void in_folder(const Folder *folder, const char *name, char *path) {
  snprintf(path, PATH_SIZE, "%s/%s", folder->path, name);
}

static int setup(void **state) {
  Folder *folder = xrealloc(NULL, sizeof *folder);
  char path[PATH_SIZE];
  snprintf(folder->path, sizeof folder->path, "/tmp/etc-test-XXXXXX");
  assert_non_null(mkdtemp(folder->path));
  in_folder(folder, "model.onnx", folder->model);
  in_folder(folder, "w.bin", path);
  write_file(path, "0123456789", 10);
  in_folder(folder, "sub", path);
  assert_int_equal(mkdir(path, 0700), 0);
  in_folder(folder, "sub/w.bin", path);
  write_file(path, "abcdef", 6);
  *state = folder;
  return 0;
}

static void remove_tree(const char *path) {
  DIR *dir = opendir(path);
  assert_non_null(dir);
  for (struct dirent *entry; (entry = readdir(dir));) {
    char child[PATH_SIZE * 2];
    struct stat st;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
      continue;
    snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
    if (lstat(child, &st) == 0 && S_ISDIR(st.st_mode))
      remove_tree(child);
    else
      unlink(child);
  }
  closedir(dir);
  rmdir(path);
}

static int teardown(void **state) {
  Folder *folder = *state;
  remove_tree(folder->path);
  xfree(folder);
  return 0;
}

/* Appends to the graph a uint8 tensor of size elements whose data_location is EXTERNAL; keys and
 * values alternate up to NULL. */
static void add_tensor(Proto *graph, int64_t size, const char *const *entries) {
  Proto tensor = proto_tensor(UINT8, &size, 1, "w");
  for (; *entries; entries += 2)
    proto_external(&tensor, entries[0], entries[1]);
  proto_int(&tensor, 14, 1);
  proto_message(graph, 5, &tensor);
}

static void write_model(const Folder *folder, Proto *graph) {
  Proto model = proto_model(graph);
  write_file(folder->model, model.data, model.size);
  proto_release(&model);
}

static void open_model(const Folder *folder, OnnxModel *m, Capture *c) {
  capture_init(c);
  if (onnx_model_open(m, &c->sink, folder->model) != STATUS_OK)
    fail_msg("%s", strbuf_cstr(&c->text));
}

static Status view(OnnxModel *m, size_t index, Capture *c, OnnxTensorView *out) {
  DiagPlace place = DIAG_NOWHERE;
  place.file = SV("model.onnx");
  return onnx_tensor_view(m, m->proto->graph->initializer[index], &c->sink, place, out);
}

/* One tensor with these entries must be viewed as the text. */
static void accept_entries(const Folder *folder, const char *const *entries, const char *text) {
  Proto graph = {0};
  add_tensor(&graph, (int64_t)strlen(text), entries);
  write_model(folder, &graph);
  OnnxModel m;
  Capture c;
  OnnxTensorView v;
  open_model(folder, &m, &c);
  if (view(&m, 0, &c, &v) != STATUS_OK)
    fail_msg("%s", strbuf_cstr(&c.text));
  assert_int_equal(v.size, strlen(text));
  assert_memory_equal(v.data, text, strlen(text));
  if (v.size) {
    assert_ptr_equal(v.data, v.file->data + v.file_offset);
    assert_true(v.file != &m.file);
  }
  onnx_model_close(&m);
  capture_release(&c);
}

static void refuse_sized(const Folder *folder, int64_t size, const char *const *entries,
                         DiagCode code, const char *part) {
  Proto graph = {0};
  add_tensor(&graph, size, entries);
  write_model(folder, &graph);
  OnnxModel m;
  Capture c;
  OnnxTensorView v;
  open_model(folder, &m, &c);
  assert_int_equal(view(&m, 0, &c, &v), diag_row(code)->status);
  assert_int_equal(c.sink.errors, 1);
  if (c.sink.first_error != code)
    fail_msg("expected %s, got %s", diag_row(code)->id, strbuf_cstr(&c.text));
  assert_contains(strbuf_cstr(&c.text), part);
  onnx_model_close(&m);
  capture_release(&c);
}

#define ENTRIES(...) ((const char *const[]){__VA_ARGS__, NULL})
#define ACCEPT(text, ...) accept_entries(*state, ENTRIES(__VA_ARGS__), text)
#define REFUSE(code, part, ...) refuse_sized(*state, 4, ENTRIES(__VA_ARGS__), code, part)

static void test_read(void **state) {
  ACCEPT("0123456789", "location", "w.bin");
  ACCEPT("0123", "location", "w.bin");
  ACCEPT("3456", "location", "w.bin", "offset", "3", "length", "4");
  ACCEPT("6789", "offset", "6", "location", "w.bin", "checksum", "0123abcd");
  ACCEPT("bcd", "location", "sub/w.bin", "offset", "1");
  ACCEPT("bcd", "location", "./sub/w.bin", "offset", "1");
  ACCEPT("", "location", "w.bin", "offset", "10", "length", "0");
}

static void test_range(void **state) {
  REFUSE(DIAG_EXTERNAL_RANGE, "'w.bin' has 10 bytes", "location", "w.bin", "offset", "7");
  REFUSE(DIAG_EXTERNAL_RANGE, "'w.bin' has 10 bytes", "location", "w.bin", "offset",
         "18446744073709551615");
  REFUSE(DIAG_EXTERNAL_RANGE, "has 10 bytes", "location", "w.bin", "offset", "9223372036854775807",
         "length", "4");
  REFUSE(DIAG_EXTERNAL_RANGE, "negative offset -4", "location", "w.bin", "offset", "-4");
  REFUSE(DIAG_EXTERNAL_RANGE, "negative length -1", "location", "w.bin", "length", "-1");
  REFUSE(DIAG_EXTERNAL_RANGE, "need 4 bytes", "location", "w.bin", "length", "3");
  REFUSE(DIAG_EXTERNAL_RANGE, "need 4 bytes", "location", "w.bin", "length", "5");
  refuse_sized(*state, INT64_C(1) << 59, ENTRIES("location", "w.bin"), DIAG_EXTERNAL_RANGE,
               "has 10 bytes");
}

static void test_keys(void **state) {
  REFUSE(DIAG_EXTERNAL_KEY, "no location", "offset", "0");
  refuse_sized(*state, 4, (const char *const[]){NULL}, DIAG_EXTERNAL_KEY, "no location");
  REFUSE(DIAG_EXTERNAL_KEY, "unknown key 'basepath'", "location", "w.bin", "basepath", "/etc");
  REFUSE(DIAG_EXTERNAL_KEY, "'location' twice", "location", "w.bin", "location", "sub/w.bin");
  REFUSE(DIAG_EXTERNAL_KEY, "'offset' twice", "location", "w.bin", "offset", "0", "offset", "1");
  REFUSE(DIAG_EXTERNAL_KEY, "not a number", "location", "w.bin", "offset", "0x4");
  REFUSE(DIAG_EXTERNAL_KEY, "not a number", "location", "w.bin", "offset", "");
  REFUSE(DIAG_EXTERNAL_KEY, "not a number", "location", "w.bin", "length", "4 ");
  REFUSE(DIAG_EXTERNAL_KEY, "not a number", "location", "w.bin", "offset", "99999999999999999999");
}

static void test_locations(void **state) {
  REFUSE(DIAG_EXTERNAL_PATH, "is empty", "location", "");
  REFUSE(DIAG_EXTERNAL_PATH, "absolute", "location", "/etc/passwd");
  REFUSE(DIAG_EXTERNAL_PATH, "leaves", "location", "../w.bin");
  REFUSE(DIAG_EXTERNAL_PATH, "leaves", "location", "sub/../w.bin");
  REFUSE(DIAG_EXTERNAL_PATH, "leaves", "location", "..");
  REFUSE(DIAG_EXTERNAL_PATH, "drive", "location", "C:\\w.bin");
  REFUSE(DIAG_EXTERNAL_PATH, "backslashes", "location", "sub\\w.bin");
  REFUSE(DIAG_EXTERNAL_PATH, "memory of ONNX Runtime", "location", "*/_ORT_MEM_ADDR_/*", "offset",
         "140737488355328");
  REFUSE(DIAG_EXTERNAL_PATH, "not a regular file", "location", "sub");
  REFUSE(DIAG_EXTERNAL_PATH, "not a regular file", "location", ".");
  REFUSE(DIAG_FILE_OPEN, "none.bin", "location", "none.bin");
  REFUSE(DIAG_FILE_OPEN, "none/w.bin", "location", "none/w.bin");
}

static void test_special_files(void **state) {
  char from[PATH_SIZE], to[PATH_SIZE];
  in_folder(*state, "link.bin", to);
  assert_int_equal(symlink("w.bin", to), 0);
  REFUSE(DIAG_EXTERNAL_PATH, "symbolic link", "location", "link.bin");
  in_folder(*state, "linked", to);
  assert_int_equal(symlink("sub", to), 0);
  REFUSE(DIAG_EXTERNAL_PATH, "symbolic link", "location", "linked/w.bin");
  in_folder(*state, "out", to);
  assert_int_equal(symlink("/etc", to), 0);
  REFUSE(DIAG_EXTERNAL_PATH, "symbolic link", "location", "out/passwd");
  in_folder(*state, "fifo", to);
  assert_int_equal(mkfifo(to, 0600), 0);
  REFUSE(DIAG_EXTERNAL_PATH, "not a regular file", "location", "fifo");
  in_folder(*state, "w.bin", from);
  in_folder(*state, "hard.bin", to);
  assert_int_equal(link(from, to), 0);
  REFUSE(DIAG_EXTERNAL_PATH, "hard links", "location", "hard.bin");
}

static void test_data_twice(void **state) {
  Proto graph = {0}, tensor = proto_tensor(UINT8, (const int64_t[]){4}, 1, "w");
  proto_external(&tensor, "location", "w.bin");
  proto_bytes(&tensor, 9, "abcd", 4);
  proto_int(&tensor, 14, 1);
  proto_message(&graph, 5, &tensor);
  write_model(*state, &graph);
  OnnxModel m;
  Capture c;
  OnnxTensorView v;
  open_model(*state, &m, &c);
  assert_int_equal(view(&m, 0, &c, &v), STATUS_INVALID);
  assert_int_equal(c.sink.first_error, DIAG_TENSOR_DATA);
  onnx_model_close(&m);
  capture_release(&c);
}

/* A file a tensor, each used twice: mapped once, and not all of them kept open. */
static void test_many_files(void **state) {
  enum { FILES = 400 };
  Proto graph = {0};
  for (int i = 0; i < 2 * FILES; i++) {
    char name[32], path[PATH_SIZE];
    snprintf(name, sizeof name, "w%d", i % FILES);
    in_folder(*state, name, path);
    if (i < FILES)
      write_file(path, name, strlen(name));
    add_tensor(&graph, (int64_t)strlen(name), ENTRIES("location", name));
  }
  write_model(*state, &graph);
  unsigned before = open_descriptors();
  OnnxModel m;
  Capture c;
  open_model(*state, &m, &c);
  for (size_t i = 0; i < 2 * FILES; i++) {
    OnnxTensorView first, v;
    char name[32];
    snprintf(name, sizeof name, "w%zu", i % FILES);
    assert_int_equal(view(&m, i, &c, &v), STATUS_OK);
    assert_memory_equal(v.data, name, strlen(name));
    assert_int_equal(view(&m, i % FILES, &c, &first), STATUS_OK);
    assert_ptr_equal(first.file, v.file);
  }
  assert_true(open_descriptors() < before + FILES / 2);
  onnx_model_close(&m);
  assert_int_equal(open_descriptors(), before);
  capture_release(&c);
}

/* 5 GB of holes: offsets beyond 32 bits, without reading them. */
static void test_large_file(void **state) {
  char path[PATH_SIZE];
  in_folder(*state, "large.bin", path);
  int fd = open(path, O_CREAT | O_RDWR | O_EXCL, 0600);
  assert_true(fd >= 0);
  const int64_t end = INT64_C(5) << 30;
  if (ftruncate(fd, end) != 0) {
    close(fd);
    fail_msg("the file system of /tmp has no sparse files of 5 GB");
  }
  assert_int_equal(pwrite(fd, "tail", 4, end - 4), 4);
  close(fd);
  ACCEPT("tail", "location", "large.bin", "offset", "5368709116", "length", "4");
  Proto graph = {0};
  add_tensor(&graph, INT64_C(3) << 30, ENTRIES("location", "large.bin", "offset", "4096"));
  write_model(*state, &graph);
  OnnxModel m;
  Capture c;
  OnnxTensorView v;
  open_model(*state, &m, &c);
  assert_int_equal(view(&m, 0, &c, &v), STATUS_OK);
  assert_true(v.size == UINT64_C(3) << 30 && v.file_offset == 4096);
  onnx_model_close(&m);
  capture_release(&c);
}

/* A model of more than 4 GB in one file, all but the ends a hole. */
static void test_large_model(void **state) {
  const Folder *folder = *state;
  const uint64_t size = UINT64_C(5) << 30;
  Proto tensor = proto_tensor(UINT8, (const int64_t[]){(int64_t)size}, 1, "w");
  proto_tag(&tensor, 9, 2);
  proto_varint(&tensor, size);
  Proto graph = {0}, model = {0};
  proto_tag(&graph, 5, 2);
  proto_varint(&graph, tensor.size + size);
  proto_raw(&graph, tensor.data, tensor.size);
  proto_int(&model, 1, 8);
  proto_import(&model, "", 17);
  proto_tag(&model, 7, 2);
  proto_varint(&model, graph.size + size);
  proto_raw(&model, graph.data, graph.size);
  write_file(folder->model, model.data, model.size);
  assert_int_equal(truncate(folder->model, (off_t)(model.size + size)), 0);
  OnnxModel m;
  Capture c;
  OnnxTensorView v;
  open_model(folder, &m, &c);
  assert_int_equal(view(&m, 0, &c, &v), STATUS_OK);
  assert_true(v.size == size && v.file_offset == model.size);
  assert_int_equal(v.data[size - 1], 0);
  assert_true(m.arena.total < 1 << 20);
  onnx_model_close(&m);
  capture_release(&c);
  proto_release(&tensor);
  proto_release(&graph);
  proto_release(&model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_read, setup, teardown),
      cmocka_unit_test_setup_teardown(test_range, setup, teardown),
      cmocka_unit_test_setup_teardown(test_keys, setup, teardown),
      cmocka_unit_test_setup_teardown(test_locations, setup, teardown),
      cmocka_unit_test_setup_teardown(test_special_files, setup, teardown),
      cmocka_unit_test_setup_teardown(test_data_twice, setup, teardown),
      cmocka_unit_test_setup_teardown(test_many_files, setup, teardown),
      cmocka_unit_test_setup_teardown(test_large_file, setup, teardown),
      cmocka_unit_test_setup_teardown(test_large_model, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Data sets: every form that arrays come in, their division into samples and shards, and files that
 * are wrong; observation and files of statistics. */
#include "ir_graph.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <zlib.h>

#include "quant/dataset.h"
#include "quant/stats_file.h"
#include "support/parallel.h"
#include "temp_file.h"

/* --- making files --- */

typedef struct Bytes {
  uint8_t data[1 << 14];
  size_t size;
} Bytes;

static void put(Bytes *b, const void *data, size_t size) {
  assert_true(b->size + size <= sizeof b->data);
  memcpy(b->data + b->size, data, size);
  b->size += size;
}
static void put_number(Bytes *b, uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; i++, value >>= 8)
    put(b, &(uint8_t){(uint8_t)value}, 1);
}

/* An .npy file. */
static Bytes npy(const char *descr, const char *shape, const void *data, size_t size) {
  Bytes b = {.size = 0};
  char header[128];
  int length = snprintf(header, sizeof header,
                        "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", descr, shape);
  put(&b, "\x93NUMPY\x01\x00", 8);
  put_number(&b, (uint64_t)length, 2);
  put(&b, header, (size_t)length);
  put(&b, data, size);
  return b;
}

typedef enum ZipForm { ZIP_STORED, ZIP_DEFLATED, ZIP_64 } ZipForm;

typedef struct ZipMaker {
  Bytes out, directory;
  uint32_t entries;
} ZipMaker;

static void zip_add(ZipMaker *z, const char *name, const Bytes *content, ZipForm form) {
  Bytes packed = *content;
  uint32_t crc = (uint32_t)crc32(0, content->data, (uInt)content->size);
  if (form == ZIP_DEFLATED) {
    z_stream s = {0};
    assert_int_equal(deflateInit2(&s, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    s.next_in = (Bytef *)(uintptr_t)content->data;
    s.avail_in = (uInt)content->size;
    s.next_out = packed.data;
    s.avail_out = sizeof packed.data;
    assert_int_equal(deflate(&s, Z_FINISH), Z_STREAM_END);
    packed.size = s.total_out;
    deflateEnd(&s);
  }
  uint64_t at = z->out.size, extra = form == ZIP_64 ? 20 : 0;
  uint64_t packed_size = form == ZIP_64 ? UINT32_MAX : packed.size;
  uint64_t size = form == ZIP_64 ? UINT32_MAX : content->size;
  for (unsigned central = 0; central < 2; central++) {
    Bytes *b = central ? &z->directory : &z->out;
    put_number(b, central ? 0x02014b50 : 0x04034b50, 4);
    if (central)
      put_number(b, 45, 2);
    put_number(b, 45, 2); /* version */
    put_number(b, 0, 2);  /* flags */
    put_number(b, form == ZIP_DEFLATED ? 8 : 0, 2);
    put_number(b, 0, 4); /* time */
    put_number(b, crc, 4);
    put_number(b, packed_size, 4);
    put_number(b, size, 4);
    put_number(b, strlen(name), 2);
    put_number(b, extra, 2);
    if (central) {
      put_number(b, 0, 10); /* comment, disk, attributes */
      put_number(b, at, 4);
    }
    put(b, name, strlen(name));
    if (extra) {
      put_number(b, 1, 2);
      put_number(b, 16, 2);
      put_number(b, content->size, 8);
      put_number(b, packed.size, 8);
    }
  }
  put(&z->out, packed.data, packed.size);
  z->entries++;
}

static const Bytes *zip_end(ZipMaker *z) {
  uint64_t at = z->out.size;
  put(&z->out, z->directory.data, z->directory.size);
  put_number(&z->out, 0x06054b50, 4);
  put_number(&z->out, 0, 4);
  put_number(&z->out, z->entries, 2);
  put_number(&z->out, z->entries, 2);
  put_number(&z->out, z->directory.size, 4);
  put_number(&z->out, at, 4);
  put_number(&z->out, 0, 2);
  return &z->out;
}

/* --- the fixture --- */

typedef struct DataTest {
  Sample sample; /* a graph, with a sink */
  char folder[64], path[128];
} DataTest;

static void data_init(DataTest *t, const char *text) {
  sample_parse(&t->sample, text);
  strcpy(t->folder, "/tmp/etc-data-XXXXXX");
  assert_non_null(mkdtemp(t->folder));
}

static void data_write(DataTest *t, const char *name, const void *data, size_t size) {
  snprintf(t->path, sizeof t->path, "%s/%s", t->folder, name);
  write_file(t->path, data, size);
}

static void data_release(DataTest *t) {
  char command[96];
  snprintf(command, sizeof command, "rm -r '%s'", t->folder);
  assert_int_equal(system(command), 0);
  sample_release(&t->sample);
}

static const char graph_xy[] = "graph @forward level(aten) {\n"
                               "  sym s0 \"batch\" in [1, 8]\n"
                               "  %0: f32[s0, 2] = input \"x\"\n"
                               "  %1: i64[s0] = input \"y\"\n"
                               "  %2: f32[s0, 2] = aten::relu(%0)\n"
                               "  output %2 \"z\", %1 \"w\"\n"
                               "}\n";
static const char graph_x[] = "graph @forward level(aten) {\n"
                              "  %0: f32[1, 2] = input \"x\"\n"
                              "  %1: f32[1, 2] = aten::relu(%0) \"r\"\n"
                              "  %2: f32[1, 2] = aten::neg(%1)\n"
                              "  output %2 \"z\"\n"
                              "}\n";

static const float numbers[8] = {1, -2, 3, -4, 5, -6, 7, -8};
static const int32_t integers[4] = {10, -20, 30, -40};

static Status open_data(DataTest *t, const char *path, DataShard shard, DataSet **set) {
  return dataset_open(set, t->sample.g, path, shard, &t->sample.capture.sink);
}

/* Reads all samples of a shard; sample k of the set has x = numbers[2k..] and y = integers[k]. */
static void check_samples(DataTest *t, const char *path, DataShard shard, bool with_y) {
  DataSet *set;
  Arena arena = {0};
  Tensor in[2];
  bool more = true;
  if (open_data(t, path, shard, &set) != STATUS_OK)
    fail_msg("%s", strbuf_cstr(&t->sample.capture.text));
  assert_int_equal(dataset_total(set), 4);
  uint64_t k = shard.index, count = 0;
  for (;; k += shard.count, count++) {
    assert_int_equal(dataset_next(set, &arena, in, &more), STATUS_OK);
    if (!more)
      break;
    assert_int_equal(in[0].rank, 2);
    assert_int_equal(in[0].dims[0], 1);
    assert_memory_equal(in[0].data, numbers + 2 * k, 2 * sizeof *numbers);
    if (!with_y)
      continue;
    assert_int_equal(in[1].dtype, DTYPE_I64);
    assert_int_equal(in[1].dims[0], 1);
    assert_int_equal(((int64_t *)in[1].data)[0], integers[k]);
  }
  assert_int_equal(count, dataset_count(set));
  assert_true(k >= 4 && k < 4 + shard.count);
  dataset_close(set);
  arena_release(&arena);
}

static void test_archives(void **state) {
  DataTest t;
  data_init(&t, graph_xy);
  Bytes x = npy("<f4", "(4, 2)", numbers, sizeof numbers),
        y = npy("<i4", "(4,)", integers, sizeof integers);
  for (unsigned form = 0; form <= ZIP_64; form++) {
    ZipMaker z = {.entries = 0};
    zip_add(&z, "labels.npy", &y, (ZipForm)form);
    zip_add(&z, "y.npy", &y, ZIP_STORED);
    zip_add(&z, "x.npy", &x, (ZipForm)form);
    const Bytes *file = zip_end(&z);
    data_write(&t, "a.npz", file->data, file->size);
    check_samples(&t, t.path, (DataShard){0, 1}, true);
    for (uint32_t n = 2; n < 7; n++)
      for (uint32_t i = 0; i < n; i++)
        check_samples(&t, t.path, (DataShard){i, n}, true);
  }
  data_release(&t);
}

/* A sample axis of its own, big-endian numbers, a file an input, a file a sample. */
static void test_forms(void **state) {
  DataTest t;
  data_init(&t, graph_x);
  Bytes x = npy("<f4", "(4, 2)", numbers, sizeof numbers);
  data_write(&t, "x.npy", x.data, x.size);
  check_samples(&t, t.path, (DataShard){0, 1}, false);
  check_samples(&t, t.folder, (DataShard){1, 2}, false);
  x = npy("<f4", "(4, 1, 2)", numbers, sizeof numbers);
  data_write(&t, "x.npy", x.data, x.size);
  check_samples(&t, t.path, (DataShard){0, 1}, false);
  uint8_t swapped[sizeof numbers];
  for (size_t i = 0; i < sizeof numbers; i++)
    swapped[i] = ((const uint8_t *)numbers)[i ^ 3];
  x = npy(">f4", "(4, 2)", swapped, sizeof swapped);
  data_write(&t, "x.npy", x.data, x.size);
  check_samples(&t, t.path, (DataShard){0, 1}, false);
  unlink(t.path);
  static const char *const shapes[] = {"(1, 2)", "(2,)", "(1, 1, 2)", "(1, 2)"};
  for (unsigned k = 0; k < 4; k++) {
    char name[] = "sample0.npy";
    name[6] = (char)('0' + k);
    x = npy("<f4", shapes[k], numbers + 2 * (size_t)k, 8);
    data_write(&t, name, x.data, x.size);
  }
  check_samples(&t, t.folder, (DataShard){0, 1}, false);
  check_samples(&t, t.folder, (DataShard){2, 3}, false);
  data_release(&t);
}

/* Samples of zeros beside single numbers: W0844, unless those vary. */
static void test_constant(void **state) {
  static const float zeros[8];
  for (unsigned vary = 0; vary < 2; vary++) {
    DataTest t;
    data_init(&t, "graph @forward level(aten) {\n  %0: f32[1, 2] = input \"x\"\n"
                  "  %1: f32[1] = input \"y\"\n  output %0, %1\n}\n");
    Bytes x = npy("<f4", "(4, 2)", zeros, 32), y = npy("<f4", "(4,)", vary ? numbers : zeros, 16);
    ZipMaker z = {.entries = 0};
    zip_add(&z, "x.npy", &x, ZIP_STORED);
    zip_add(&z, "y.npy", &y, ZIP_STORED);
    const Bytes *file = zip_end(&z);
    data_write(&t, "a.npz", file->data, file->size);
    DataSet *set;
    Arena arena = {0};
    Tensor in[2];
    assert_int_equal(open_data(&t, t.path, (DataShard){0, 1}, &set), STATUS_OK);
    for (bool more = true; more;)
      assert_int_equal(dataset_next(set, &arena, in, &more), STATUS_OK);
    dataset_warn_constant(set);
    const char *text = strbuf_cstr(&t.sample.capture.text);
    assert_int_equal(strstr(text, "'x' are 0 in all samples") != NULL, !vary);
    assert_null(strstr(text, "'y'"));
    dataset_close(set);
    arena_release(&arena);
    data_release(&t);
  }
}

static void check_refused(DataTest *t, const char *path, const char *why) {
  DataSet *set;
  Arena arena = {0};
  Tensor in[2];
  bool more = true;
  strbuf_clear(&t->sample.capture.text);
  Status status = open_data(t, path, (DataShard){0, 1}, &set);
  while (status == STATUS_OK && more)
    status = dataset_next(set, &arena, in, &more);
  assert_int_not_equal(status, STATUS_OK);
  if (why)
    assert_contains(strbuf_cstr(&t->sample.capture.text), why);
  dataset_close(set);
  arena_release(&arena);
}

static void test_refused_arrays(void **state) {
  static const float nan_data[8] = {1, 2, 3, NAN}, infinite[8] = {0, 0, 0, 0, -INFINITY};
  static const struct {
    const char *descr, *shape;
    const void *data;
    size_t size;
    const char *why;
  } cases[] = {
      {"<f4", "(4, 2)", nan_data, 32, "has NaN in sample 1, at element 1"},
      {"<f4", "(4, 2)", infinite, 32, "has infinity in sample 2, at element 0"},
      {"<f4", "(4, 2)", numbers, 28, "needs 32 bytes by its shape, and has 28"},
      {"<f4", "(2, 4)", numbers, 32, "the samples are f32[2, 4], input 'x' takes f32[1, 2]"},
      {"<f4", "(8,)", numbers, 32, "the samples are f32[8], input 'x' takes f32[1, 2]"},
      {"<f4", "(0, 2)", numbers, 0, "has no samples"},
      {"<f8", "(2, 2)", numbers, 32, "the samples are f64[2, 2], input 'x' takes f32[1, 2]"},
      {"|O", "(4, 2)", numbers, 32, "element type '|O'"},
      {"|u1", "(16, 2)", numbers, 32, "the samples are u8[16, 2], input 'x' takes f32[1, 2]"},
      {"<f4", "(-1, 2)", numbers, 32, "the header is not understood"},
      {"<f4", "(4611686018427387904, 2)", numbers, 32, "more elements than memory"},
  };
  for (unsigned form = 0; form < 3; form++)
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
      DataTest t;
      data_init(&t, graph_x);
      Bytes x = npy(cases[i].descr, cases[i].shape, cases[i].data, cases[i].size);
      if (form == 0) {
        data_write(&t, "x.npy", x.data, x.size);
      } else {
        ZipMaker z = {.entries = 0};
        zip_add(&z, "x.npy", &x, form == 1 ? ZIP_STORED : ZIP_DEFLATED);
        const Bytes *file = zip_end(&z);
        data_write(&t, "x.npz", file->data, file->size);
      }
      check_refused(&t, t.path, cases[i].why);
      data_release(&t);
    }
}

static void test_refused_sets(void **state) {
  DataTest t;
  data_init(&t, graph_xy);
  Bytes x = npy("<f4", "(4, 2)", numbers, sizeof numbers),
        y = npy("<i4", "(2,)", integers, sizeof integers / 2);
  check_refused(&t, t.folder, "has no .npz and no .npy");
  data_write(&t, "x.npy", x.data, x.size);
  check_refused(&t, t.path, "holds one array, and the model has 2 inputs");
  check_refused(&t, t.folder, "'y.npy' is the file of an input");
  data_write(&t, "y.npy", y.data, y.size);
  check_refused(&t, t.folder, "array 'y' has 2 samples, array 'x' has 4");
  ZipMaker z = {.entries = 0};
  zip_add(&z, "x.npy", &x, ZIP_STORED);
  zip_add(&z, "why.npy", &y, ZIP_STORED);
  const Bytes *file = zip_end(&z);
  data_write(&t, "a.npz", file->data, file->size);
  check_refused(&t, t.path, "there is 'why'");
  check_refused(&t, t.folder, "has .npz and .npy files");
  check_refused(&t, "/nonexistent/a.npz", "cannot open");
  data_write(&t, "b.npz", "PK\3\4 and more", 13);
  check_refused(&t, t.path, "no directory");
  data_write(&t, "b.npz", "something else", 14);
  check_refused(&t, t.path, "neither an .npz nor an .npy");
  data_release(&t);
}

/* Sizes that an entry cannot have, entries in the same place, and names that are there twice. */
static void test_bombs(void **state) {
  DataTest t;
  data_init(&t, graph_x);
  Bytes x = npy("<f4", "(4, 2)", numbers, sizeof numbers);
  ZipMaker z = {.entries = 0};
  zip_add(&z, "x.npy", &x, ZIP_DEFLATED);
  for (unsigned b = 0; b < 4; b++)
    z.directory.data[24 + b] = 0x7f; /* 2 GB of 100 bytes */
  const Bytes *file = zip_end(&z);
  data_write(&t, "x.npz", file->data, file->size);
  check_refused(&t, t.path, "bytes cannot be of");
  z = (ZipMaker){.entries = 0};
  zip_add(&z, "x.npy", &x, ZIP_DEFLATED);
  Bytes once = z.directory;
  put(&z.directory, once.data, once.size);
  z.entries++;
  file = zip_end(&z);
  data_write(&t, "x.npz", file->data, file->size);
  check_refused(&t, t.path, "overlap");
  z = (ZipMaker){.entries = 0};
  zip_add(&z, "x.npy", &x, ZIP_DEFLATED);
  zip_add(&z, "x.npy", &x, ZIP_DEFLATED);
  file = zip_end(&z);
  data_write(&t, "x.npz", file->data, file->size);
  check_refused(&t, t.path, "is there twice");
  data_release(&t);
}

/* Every file that is cut short is refused; with any one byte changed it is refused or gives the
 * same samples: checksums see to the data. */
static void test_damaged(void **state) {
  for (unsigned form = 0; form <= ZIP_64; form++) {
    DataTest t;
    data_init(&t, graph_x);
    Bytes x = npy("<f4", "(4, 2)", numbers, sizeof numbers);
    ZipMaker z = {.entries = 0};
    zip_add(&z, "x.npy", &x, (ZipForm)form);
    const Bytes *file = zip_end(&z);
    for (size_t size = 0; size < file->size; size++) {
      data_write(&t, "x.npz", file->data, size);
      check_refused(&t, t.path, NULL);
    }
    for (size_t at = 0; at < file->size; at++) {
      Bytes changed = *file;
      changed.data[at] ^= 0x55;
      data_write(&t, "x.npz", changed.data, changed.size);
      DataSet *set;
      Arena arena = {0};
      Tensor in;
      bool more = true;
      Status status = open_data(&t, t.path, (DataShard){0, 1}, &set);
      for (size_t k = 0; status == STATUS_OK && more; k++) {
        status = dataset_next(set, &arena, &in, &more);
        if (status == STATUS_OK && more && k < 3) /* the last is compared before it is given */
          assert_true(k < 4 && in.capacity == 8);
        if (status == STATUS_OK && more && k == 3)
          assert_memory_equal(in.data, numbers + 6, 8);
      }
      dataset_close(set);
      arena_release(&arena);
    }
    data_release(&t);
  }
}

/* --- observation --- */

static void observe_all(DataTest *t, DataShard shard, unsigned threads, StatsFile *out) {
  DataSet *set;
  uint32_t count;
  Graph *g = t->sample.g;
  *out = (StatsFile){.head = {.model = "0123456789abcdef0123456789abcdef", .shard = shard}};
  out->arena = (Arena){0};
  assert_int_equal(open_data(t, t->path, shard, &set), STATUS_OK);
  ValueId *values = observe_values(g, &out->arena, &count);
  StrView *names = stats_names(g, values, count, &out->arena);
  Stats *stats = ARENA_ARRAY(&out->arena, Stats, count);
  parallel_set_threads(threads);
  assert_int_equal(observe(g, values, count, set, stats, NULL, &t->sample.capture.sink), STATUS_OK);
  out->head.total = dataset_total(set);
  out->head.counted = dataset_count(set);
  out->head.data = dataset_hash(set);
  out->count = count;
  out->entries = ARENA_ARRAY(&out->arena, StatsEntry, count);
  for (uint32_t i = 0; i < count; i++)
    out->entries[i] = (StatsEntry){names[i], stats[i]};
  dataset_close(set);
}

static void read_whole(const char *path, Bytes *out) {
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  out->size = fread(out->data, 1, sizeof out->data, f);
  fclose(f);
}

static void write_numbers(DataTest *t) {
  Bytes x = npy("<f4", "(4, 2)", numbers, sizeof numbers);
  data_write(t, "x.npy", x.data, x.size);
}

static void test_observe(void **state) {
  DataTest t;
  StatsFile f;
  data_init(&t, graph_x);
  write_numbers(&t);
  observe_all(&t, (DataShard){0, 1}, 1, &f);
  assert_int_equal(f.count, 3);
  assert_true(sv_eq_str(f.entries[0].name, "x"));
  assert_true(sv_eq_str(f.entries[1].name, "r"));
  static const float low[] = {-8, 0, -7}, high[] = {7, 7, 0};
  for (uint32_t i = 0; i < 3; i++) {
    assert_int_equal(f.entries[i].stats.count, 8);
    assert_true(f.entries[i].stats.low == low[i] && f.entries[i].stats.high == high[i]);
  }
  stats_file_release(&f);
  data_release(&t);
}

/* One file, however many threads and shards. */
static void test_shards(void **state) {
  static const uint32_t counts[] = {1, 2, 7, 64};
  DataTest t;
  StatsFile f;
  static char names[64][128];
  const char *paths[64];
  Bytes first, other;
  data_init(&t, graph_x);
  write_numbers(&t);
  DiagSink *sink = &t.sample.capture.sink;
  for (uint32_t i = 0; i < 64; i++) {
    snprintf(names[i], sizeof names[i], "%s/stats%u", t.folder, i);
    paths[i] = names[i];
  }
  observe_all(&t, (DataShard){0, 1}, 2, &f);
  assert_int_equal(stats_write(&f, sink, paths[0]), STATUS_OK);
  read_whole(paths[0], &first);
  stats_file_release(&f);
  for (unsigned c = 0; c < COUNT_OF(counts); c++) {
    uint32_t n = counts[c];
    for (uint32_t i = 0; i < n; i++) {
      observe_all(&t, (DataShard){i, n}, 1 + i % 3, &f);
      assert_int_equal(stats_write(&f, sink, paths[n - 1 - i]), STATUS_OK);
      stats_file_release(&f);
    }
    if (n > 1) { /* one is missing, one is there twice */
      assert_int_equal(stats_merge_files(&f, paths, n - 1, sink), STATUS_INVALID);
      assert_contains(strbuf_cstr(&t.sample.capture.text), "shard 0 of");
      const char *twice[2] = {paths[0], paths[0]};
      strbuf_clear(&t.sample.capture.text);
      assert_int_equal(stats_merge_files(&f, twice, 2, sink), STATUS_INVALID);
      assert_contains(strbuf_cstr(&t.sample.capture.text), "are both shard");
      strbuf_clear(&t.sample.capture.text);
    }
    assert_int_equal(stats_merge_files(&f, paths, n, sink), STATUS_OK);
    assert_int_equal(stats_write(&f, sink, paths[0]), STATUS_OK);
    stats_file_release(&f);
    read_whole(paths[0], &other);
    assert_int_equal(other.size, first.size);
    assert_memory_equal(other.data, first.data, first.size);
  }
  data_release(&t);
}

static void test_match(void **state) {
  DataTest t;
  StatsFile f;
  const Stats *found[3];
  data_init(&t, graph_x);
  write_numbers(&t);
  observe_all(&t, (DataShard){0, 1}, 1, &f);
  DiagSink *sink = &t.sample.capture.sink;
  Graph *g = t.sample.g;
  uint32_t count;
  ValueId *values = observe_values(g, &f.arena, &count);
  f.path = "s";
  assert_int_equal(stats_match(&f, g, values, 3, found, sink), STATUS_OK);
  assert_ptr_equal(found[2], &f.entries[2].stats);
  assert_int_equal(stats_of_model(&f, "another", sink), STATUS_INVALID);
  assert_contains(strbuf_cstr(&t.sample.capture.text), "of another model");
  f.head.shard = (DataShard){0, 2};
  assert_int_equal(stats_of_model(&f, f.head.model, sink), STATUS_INVALID);
  assert_contains(strbuf_cstr(&t.sample.capture.text), "is shard 0 of 2 alone");
  f.head.shard = (DataShard){0, 1};
  assert_int_equal(stats_of_model(&f, f.head.model, sink), STATUS_OK);
  f.entries[1].name = SV("q");
  assert_int_equal(stats_match(&f, g, values, 3, found, sink), STATUS_INVALID);
  assert_contains(strbuf_cstr(&t.sample.capture.text), "no statistics of value 'r'");
  stats_file_release(&f);
  data_release(&t);
}

/* Files of statistics that are cut short or changed are refused, or say the same. */
static void test_damaged_stats(void **state) {
  DataTest t;
  StatsFile f;
  Bytes whole;
  data_init(&t, graph_x);
  write_numbers(&t);
  observe_all(&t, (DataShard){0, 1}, 1, &f);
  DiagSink *sink = &t.sample.capture.sink;
  assert_int_equal(stats_write(&f, sink, t.path), STATUS_OK);
  stats_file_release(&f);
  read_whole(t.path, &whole);
  for (size_t size = 0; size < whole.size; size++) {
    data_write(&t, "x.npy", whole.data, size);
    assert_int_not_equal(stats_read(&f, sink, t.path), STATUS_OK);
  }
  for (size_t at = 0; at < whole.size; at++)
    for (unsigned bit = 0; bit < 8; bit++) {
      Bytes changed = whole;
      changed.data[at] ^= (uint8_t)(1u << bit);
      data_write(&t, "x.npy", changed.data, changed.size);
      if (stats_read(&f, sink, t.path) == STATUS_OK)
        stats_file_release(&f);
    }
  data_release(&t);
}

/* Values without a name, and names that are there twice, get names of their own. */
static void test_names(void **state) {
  DataTest t;
  data_init(&t, "graph @forward level(aten) {\n"
                "  %0: f32[2] = input \"a\"\n"
                "  %1: f32[2] = aten::relu(%0) \"a\"\n"
                "  %2: f32[2] = aten::relu(%1) loc(\"n\", \"Relu\", 3)\n"
                "  %3: f32[2] = aten::relu(%2) loc(\"n\", \"Relu\", 3)\n"
                "  %4: f32[2] = aten::relu(%3) \"a~2\"\n"
                "  output %4 \"y\"\n"
                "}\n");
  Arena arena = {0};
  uint32_t count;
  ValueId *values = observe_values(t.sample.g, &arena, &count);
  StrView *names = stats_names(t.sample.g, values, count, &arena);
  assert_int_equal(count, 5);
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < i; k++)
      assert_false(sv_eq(names[i], names[k]));
  assert_true(sv_eq_str(names[0], "a") && sv_eq_str(names[1], "a~2"));
  assert_true(sv_eq_str(names[2], "n/3 Relu aten::relu"));
  arena_release(&arena);
  data_release(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_archives),       cmocka_unit_test(test_forms),
      cmocka_unit_test(test_refused_arrays), cmocka_unit_test(test_refused_sets),
      cmocka_unit_test(test_constant),       cmocka_unit_test(test_bombs),
      cmocka_unit_test(test_damaged),        cmocka_unit_test(test_observe),
      cmocka_unit_test(test_shards),         cmocka_unit_test(test_match),
      cmocka_unit_test(test_damaged_stats),  cmocka_unit_test(test_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Any bytes as a data set: as an .npz or .npy file of a model with two inputs, all samples read;
 * and as a file of statistics, which is read, merged and taken ranges from.
 *
 * Seeds: tests/cli/data/calib, and files of statistics of small models. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ir/text.h"
#include "quant/dataset.h"
#include "quant/stats_file.h"

enum { SAMPLES_MAX = 64, RANGES_MAX = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void drop(void *user, const char *text, size_t size) {
  (void)user;
  (void)text;
  (void)size;
}

static void read_samples(const Graph *g, const char *path, DiagSink *sink) {
  DataSet *set;
  Arena arena = {0};
  Tensor in[2];
  bool more = true;
  if (dataset_open(&set, g, path, (DataShard){0, 2}, sink) != STATUS_OK)
    return;
  for (unsigned i = 0; i < SAMPLES_MAX && more; i++) {
    if (dataset_next(set, &arena, in, &more) != STATUS_OK)
      break;
    arena_reset(&arena);
  }
  arena_release(&arena);
  dataset_close(set);
}

static void read_statistics(const char *path, DiagSink *sink) {
  StatsFile file;
  if (stats_merge_files(&file, &path, 1, sink) != STATUS_OK)
    return;
  for (uint32_t i = 0; i < file.count && i < RANGES_MAX; i++)
    for (unsigned method = 0; method < 8; method++) {
      RangeOptions o = {.method = (RangeMethod)(method / 2),
                        .percentile = 99,
                        .qmin = -128,
                        .qmax = 127,
                        .symmetric = method % 2};
      stats_range(&file.entries[i].stats, &o);
    }
  stats_file_release(&file);
}

static void run(const Graph *g, const char *path, DiagSink *sink) {
  read_samples(g, path, sink);
  read_statistics(path, sink);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char text[] = "graph @forward level(aten) {\n"
                             "  sym s0 \"batch\" in [1, 4]\n"
                             "  %0: f32[s0, 4] = input \"x\"\n"
                             "  %1: i64[s0] = input \"labels\"\n"
                             "  output %0 \"z\", %1 \"w\"\n"
                             "}\n";
  DiagSink sink;
  Context ctx;
  Graph **graphs;
  uint32_t count;
  char path[32];
  diag_sink_init(&sink);
  sink.write = drop;
  context_init(&ctx, &sink);
  int fd = memfd_create("data", 0);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  if (fd >= 0 && write(fd, data, size) == (ssize_t)size &&
      graph_parse(&ctx, sv_from(text), SV("fuzz"), NULL, &graphs, &count) == STATUS_OK) {
    run(graphs[0], path, &sink);
    graph_free(graphs[0]);
  }
  if (fd >= 0)
    close(fd);
  context_release(&ctx);
  diag_sink_release(&sink);
  return 0;
}

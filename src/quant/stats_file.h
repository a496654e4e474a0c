/* Statistics of all values of a model in a file: what `etc calibrate` writes and --ranges reads.
 *
 * The file is text and the same for the same model, samples and version. A value is named as in the
 * model, one without a name after the node that makes it. */
#ifndef ETC_QUANT_STATS_FILE_H
#define ETC_QUANT_STATS_FILE_H

#include "onnx/file/model.h"
#include "quant/observe.h"

/* What a file is about. Files of shards agree in all but shard and counted. */
typedef struct StatsHead {
  char model[33];          /* hash of the model's files, hexadecimal */
  uint64_t data;           /* dataset_hash */
  uint64_t total, counted; /* samples of the data set, and those that were run */
  DataShard shard;         /* {0, 1}: all of it */
} StatsHead;

typedef struct StatsEntry {
  StrView name;
  Stats stats;
} StatsEntry;

typedef struct StatsFile {
  StatsHead head;
  StatsEntry *entries; /* in the order of the graph */
  uint32_t count;
  const char *path; /* that it was read from, for messages */
  Arena arena;
} StatsFile;

/* The hash of a model: the bytes of its file and of the external data that it names. Errors
 * (reported): external data that cannot be read. */
Status stats_model_hash(OnnxModel *model, char hash[33]);
/* The names under which the statistics of those values are kept: one a value, no two equal. */
StrView *stats_names(const Graph *g, const ValueId *values, uint32_t count, Arena *arena);

/* Whether writing to path loses nothing but statistics: it holds some, is empty, a device, or not
 * there. */
bool stats_may_replace(const char *path);
/* Writes a file to path, which appears when whole. */
Status stats_write(const StatsFile *file, DiagSink *sink, const char *path);
/* Reads path. Errors (reported): those of file_map; no such file of this version, or a damaged one.
 * On success stats_file_release frees it. */
Status stats_read(StatsFile *file, DiagSink *sink, const char *path);
void stats_file_release(StatsFile *file);

/* Reads the shards in count files, one after the other, and adds them up in out. Errors (reported):
 * those of stats_read; files of another model or data set than the first, shards that are there
 * twice or missing. On success stats_file_release frees out. */
Status stats_merge_files(StatsFile *out, const char *const *paths, uint32_t count, DiagSink *sink);
/* Whether the statistics are whole, and of the model of that hash. Errors (reported): another
 * model, a shard. */
Status stats_of_model(const StatsFile *file, const char *hash, DiagSink *sink);
/* The statistics of those values of g; pointers into file. Error (reported): a value without. */
Status stats_match(const StatsFile *file, const Graph *g, const ValueId *values, uint32_t count,
                   const Stats **out, DiagSink *sink);

#endif

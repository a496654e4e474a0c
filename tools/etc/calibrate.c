/* etc calibrate: statistics of all values of a model over a data set, or a shard of it, and shards
 * merged. */
#include <inttypes.h>
#include <stdio.h>

#include "command.h"
#include "pipeline/settings.h"
#include "progress.h"
#include "quant/stats_file.h"
#include "run_dims.h"
#include "support/text.h"

/* I/N, I below N. */
static EtcStatus read_shard(const CommandLine *line, DataShard *shard) {
  const char *text = command_line_value(line, OPT_SHARD);
  *shard = (DataShard){0, 1};
  if (!text)
    return ETC_OK;
  const char *slash = strchr(text, '/');
  uint64_t index, count;
  if (slash && text_parse_u64((StrView){text, (size_t)(slash - text)}, &index) &&
      text_parse_u64(sv_from(slash + 1), &count) && index < count && count <= UINT32_MAX) {
    *shard = (DataShard){(uint32_t)index, (uint32_t)count};
    return ETC_OK;
  }
  return session_usage(line->session, "--shard", "write 0/4 to 3/4 for four shards",
                       "'%s' does not say which shard of how many", text);
}

static EtcStatus need(const CommandLine *line, OptionId id, const char *what, const char **out) {
  *out = command_line_value(line, id);
  if (*out)
    return ETC_OK;
  const char *name = arena_printf(&line->session->arena, "--%s", option_table[id].long_name);
  const char *hint =
      arena_printf(&line->session->arena, "add %s %s", name, option_table[id].argument);
  return session_usage(line->session, name, hint, "'etc calibrate' needs %s", what);
}

/* --- merging --- */

static void say_written(const Session *s, const char *output, uint64_t samples) {
  if (!s->sink.quiet && s->sink.format == DIAG_TEXT)
    fprintf(stderr, "wrote %s, ranges from %" PRIu64 " sample%s\n", output, samples,
            samples == 1 ? "" : "s");
}

static Status merge(Session *s, const char *const *paths, uint32_t count, const char *output) {
  StatsFile merged;
  TRY(stats_merge_files(&merged, paths, count, &s->sink));
  Status status = stats_write(&merged, &s->sink, output);
  if (status == STATUS_OK)
    say_written(s, output, merged.head.counted);
  stats_file_release(&merged);
  return status;
}

static EtcStatus run_merge(const CommandLine *line, const char *output) {
  static const OptionId others[] = {OPT_DATA, OPT_SHARD};
  for (size_t i = 0; i < COUNT_OF(others); i++)
    if (command_line_has(line, others[i]))
      return session_usage(line->session, "--merge", "leave one of them out",
                           "--merge goes without --%s", option_table[others[i]].long_name);
  EtcStatus status = expect_some(line, "files of statistics");
  if (status == ETC_OK)
    status = session_status(merge(line->session, line->arguments, line->argument_count, output));
  return status;
}

/* --- collecting --- */

static Status collect(Session *s, Method *m, DataSet *set, const char *output, DataShard shard) {
  Graph *g = m->graph;
  StatsFile file = {.head = {.shard = shard}};
  uint32_t count = 0;
  SampleProgress *progress =
      s->manager.options.progress ? &s->manager.options.progress->samples : NULL;
  Source *source = s->program.sources[0];
  TRY(stats_model_hash(&source->onnx, file.head.model));
  file.head.data = dataset_hash(set);
  file.head.total = dataset_total(set);
  file.head.counted = dataset_count(set);
  ValueId *values = observe_values(g, &file.arena, &count);
  StrView *names = stats_names(g, values, count, &file.arena);
  Stats *stats = ARENA_ARRAY(&file.arena, Stats, count);
  file.entries = ARENA_ARRAY(&file.arena, StatsEntry, count);
  Status status = observe(g, values, count, set, stats, progress, &s->sink);
  file.count = count;
  for (uint32_t i = 0; i < count; i++)
    file.entries[i] = (StatsEntry){.name = names[i], .stats = stats[i]};
  if (status == STATUS_OK)
    dataset_warn_constant(set);
  if (status == STATUS_OK)
    status = file_check_unchanged(&source->onnx.file, &s->sink);
  if (status == STATUS_OK)
    status = stats_write(&file, &s->sink, output);
  stats_file_release(&file);
  return status;
}

static EtcStatus load(const CommandLine *line, const char *data, Method **method) {
  Session *s = line->session;
  TRY(expect_arguments(line, 1, "a model"));
  TRY(session_add_source(s, "forward", line->arguments[0]));
  if (s->program.sources[0]->kind != SOURCE_ONNX)
    return session_usage(s, "", "calibrate the .onnx", "'%s' is not an ONNX model",
                         line->arguments[0]);
  TRY(dims_from_data(line, s->program.sources[0], data));
  TRY(session_status(session_import(s, false)));
  TRY(session_status(session_run(s, STAGE_SOURCE)));
  TRY(session_status(session_prepare_ranges(s)));
  return session_status(session_method(s, SV(""), method));
}

static EtcStatus run_collect(const CommandLine *line, const char *output) {
  Session *s = line->session;
  Method *method = NULL;
  DataSet *set = NULL;
  DataShard shard;
  const char *data;
  TRY(need(line, OPT_DATA, "data", &data));
  TRY(read_shard(line, &shard));
  TRY(command_line_apply(line));
  /* Better said now than after all samples. */
  AtomicFile probe;
  TRY(session_status(atomic_file_open(&probe, &s->arena, &s->sink, output)));
  atomic_file_abandon(&probe);
  progress_start(line);
  EtcStatus status = load(line, data, &method);
  if (status == ETC_OK) {
    manager_enter(&s->manager, STAGE_QUANTIZE);
    s->ctx.model_path = source_name(method->source);
    status = session_status(dataset_open(&set, method->graph, data, shard, &s->sink));
  }
  if (status == ETC_OK)
    status = session_status(collect(s, method, set, output, shard));
  progress_stop();
  if (status == ETC_OK)
    say_written(s, output, dataset_count(set));
  dataset_close(set);
  return status;
}

int cmd_calibrate(const CommandLine *line) {
  const char *output;
  TRY(need(line, OPT_STATS_OUTPUT, "a name for the statistics", &output));
  if (!stats_may_replace(output))
    return (int)session_usage(line->session, "--output", "give the statistics another name",
                              "'%s' is there and does not hold statistics", output);
  return (int)(command_line_has(line, OPT_MERGE) ? run_merge(line, output)
                                                 : run_collect(line, output));
}

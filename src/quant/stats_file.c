/* Lines of words: a head, then for each value its name, extremes and the pages of its bins, and
 * "end" with the number of values, so that a file that was cut short shows. */
#include "quant/stats_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "interp/npy.h"
#include "ir/op.h"
#include "support/number.h"
#include "support/text.h"

#define KIND "etc-statistics "
#define MAGIC KIND "1"

/* --- the model --- */

Status stats_model_hash(OnnxModel *model, char hash[33]) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, model->file.data, (size_t)model->file.size);
  for (uint32_t i = 1; i <= model->locations.count; i++)
    if (model->external[i])
      XXH3_128bits_update(&state, model->external[i]->data, (size_t)model->external[i]->size);
  XXH128_hash_t digest = XXH3_128bits_digest(&state);
  snprintf(hash, 33, "%016" PRIx64 "%016" PRIx64, digest.high64, digest.low64);
  return STATUS_OK;
}

/* What the value is called before equal names are told apart. */
static char *base_name(const Graph *g, ValueId v, Arena *arena) {
  StrView name = value_name(g, v);
  if (name.size)
    return arena_strdup(arena, name);
  NodeId n = value_def(g, v);
  if (!n)
    return arena_printf(arena, "input %u", value_cget(g, v)->def);
  const Loc *loc = &g->locs[node_cget(g, n)->loc];
  StrView node = intern_get(&g->ctx->names, loc->name),
          op = intern_get(&g->ctx->names, loc->op_type);
  return arena_printf(arena, SV_FMT "/%d " SV_FMT " " SV_FMT, SV_ARG(node), (int)loc->index,
                      SV_ARG(op), SV_ARG(op_schema(node_cget(g, n)->op)->full));
}

StrView *stats_names(const Graph *g, const ValueId *values, uint32_t count, Arena *arena) {
  StrView *names = ARENA_ARRAY(arena, StrView, count);
  Intern seen;
  intern_init(&seen);
  uint32_t *times = ARENA_ARRAY(arena, uint32_t, 2 * (size_t)count + 1); /* by id */
  for (uint32_t i = 0; i < count; i++) {
    const char *base = base_name(g, values[i], arena), *name = base;
    uint32_t id = intern_add(&seen, sv_from(base));
    while (id && times[id]++) {
      name = arena_printf(arena, "%s~%u", base, times[id]);
      id = intern_find(&seen, sv_from(name)) ? id : 0;
    }
    if (name != base)
      times[intern_add(&seen, sv_from(name))]++;
    names[i] = sv_from(name);
  }
  intern_release(&seen);
  return names;
}

/* --- writing --- */

static void print_float(StrBuf *out, float value) {
  strbuf_append_char(out, ' ');
  strbuf_append_double(out, (double)value);
}

static void print_page(StrBuf *out, const Stats *s, uint32_t page) {
  uint32_t begin = page * STATS_PAGE_BINS, end = begin + STATS_PAGE_BINS, first = begin;
  while (first < end && stats_bin(s, first) == 0)
    first++;
  while (end > first && stats_bin(s, end - 1) == 0)
    end--;
  if (first == end)
    return;
  strbuf_printf(out, "bins %u", first);
  for (uint32_t b = first; b < end; b++)
    strbuf_printf(out, " %" PRIu64, stats_bin(s, b));
  strbuf_append_char(out, '\n');
}

static void print_entry(StrBuf *out, const StatsEntry *e) {
  const Stats *s = &e->stats;
  strbuf_append(out, SV("value "));
  strbuf_append_escaped(out, e->name);
  strbuf_printf(out, "\ncount %" PRIu64, s->count);
  print_float(out, s->low);
  print_float(out, s->high);
  if (s->channels)
    strbuf_printf(out, "\nchannels %u", s->channels);
  for (uint32_t c = 0; c < s->channels; c++) {
    print_float(out, s->channel_low[c]);
    print_float(out, s->channel_high[c]);
  }
  strbuf_append_char(out, '\n');
  for (uint32_t p = 0; p < STATS_PAGES; p++)
    if (s->page[p])
      print_page(out, s, p);
}

bool stats_may_replace(const char *path) {
  char head[sizeof KIND] = "";
  struct stat st;
  if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
    return true;
  FILE *file = fopen(path, "rb");
  size_t size = file ? fread(head, 1, sizeof head - 1, file) : 0;
  if (file)
    fclose(file);
  return size == sizeof head - 1 && strcmp(head, KIND) == 0;
}

Status stats_write(const StatsFile *file, DiagSink *sink, const char *path) {
  Arena arena = {0};
  AtomicFile out;
  StrBuf text = {0};
  const StatsHead *h = &file->head;
  strbuf_printf(&text, MAGIC "\nmodel %s\ndata %016" PRIx64 "\nsamples %" PRIu64 " %" PRIu64 "\n",
                h->model, h->data, h->total, h->counted);
  strbuf_printf(&text, "shard %u %u\n", h->shard.index, h->shard.count);
  Status status = atomic_file_open(&out, &arena, sink, path);
  for (uint32_t i = 0; i < file->count && status == STATUS_OK; i++) {
    print_entry(&text, &file->entries[i]);
    atomic_file_write(&out, text.data, text.size);
    strbuf_clear(&text);
  }
  if (status == STATUS_OK) {
    strbuf_printf(&text, "end %u\n", file->count);
    atomic_file_write(&out, text.data, text.size);
    status = atomic_file_commit(&out, false);
  }
  strbuf_release(&text);
  arena_release(&arena);
  return status;
}

/* --- reading --- */

typedef struct StatsReader {
  const char *at, *end;
  uint32_t line; /* the number of the last that was read */
  StrView rest;  /* of that line */
} StatsReader;

static bool next_line(StatsReader *r) {
  if (r->at == r->end)
    return false;
  const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
  if (!newline)
    return false;
  r->rest = (StrView){r->at, (size_t)(newline - r->at)};
  r->at = newline + 1;
  r->line++;
  return true;
}

/* The next word of the line. */
static bool next_word(StatsReader *r, StrView *word) {
  StrView *rest = &r->rest;
  size_t size = 0;
  while (size < rest->size && rest->data[size] != ' ')
    size++;
  *word = (StrView){rest->data, size};
  size_t used = size < rest->size ? size + 1 : size;
  *rest = (StrView){rest->data + used, rest->size - used};
  return size > 0;
}

static bool take_word(StatsReader *r, const char *expected) {
  StatsReader before = *r;
  StrView word;
  if (next_word(r, &word) && sv_eq_str(word, expected))
    return true;
  *r = before;
  return false;
}

/* Digits alone, as most of the file is. */
static bool take_number(StatsReader *r, uint64_t most, uint64_t *out) {
  StrView word;
  return next_word(r, &word) && text_parse_u64(word, out) && *out <= most;
}

static bool take_float(StatsReader *r, float *out) {
  StrView word;
  double value;
  if (!next_word(r, &word) || !text_parse_double(word, &value))
    return false;
  *out = (float)value;
  return !isnan(value) && (double)*out == value;
}

static bool take_hex(StatsReader *r, char *out, size_t digits) {
  StrView word;
  if (!next_word(r, &word) || word.size != digits)
    return false;
  for (size_t i = 0; i < digits; i++)
    if (!memchr("0123456789abcdef", word.data[i], 16)) /* as they are written */
      return false;
  memcpy(out, word.data, digits);
  out[digits] = '\0';
  return true;
}

static bool line_of(StatsReader *r, const char *word) { return next_line(r) && take_word(r, word); }

static bool read_head(StatsReader *r, StatsHead *h) {
  char data[17];
  uint64_t index, count;
  if (!next_line(r) || !sv_eq_str(r->rest, MAGIC) || !line_of(r, "model") ||
      !take_hex(r, h->model, 32) || !line_of(r, "data") || !take_hex(r, data, 16) ||
      !line_of(r, "samples") || !take_number(r, UINT64_MAX, &h->total) ||
      !take_number(r, h->total, &h->counted) || !line_of(r, "shard") ||
      !take_number(r, UINT32_MAX, &index) || !take_number(r, UINT32_MAX, &count) || index >= count)
    return false;
  h->data = strtoull(data, NULL, 16);
  h->shard = (DataShard){(uint32_t)index, (uint32_t)count};
  return true;
}

static bool read_bins(StatsReader *r, Stats *s, uint64_t *sum) {
  uint64_t bin, values;
  if (!take_number(r, STATS_BINS - 1, &bin))
    return false;
  uint64_t end = (bin / STATS_PAGE_BINS + 1) * STATS_PAGE_BINS;
  for (; r->rest.size; bin++) {
    if (bin == end || !take_number(r, UINT64_MAX, &values) || !add_u64(*sum, values, sum))
      return false;
    stats_set_bin(s, (uint32_t)bin, values);
  }
  return true;
}

static bool read_channels(StatsReader *r, Stats *s) {
  uint64_t channels;
  float low = s->low, high = s->high;
  uint64_t count = s->count;
  if (!take_number(r, r->rest.size / 4 + 1, &channels) || channels == 0 || s->channels)
    return false;
  stats_init(s, (uint32_t)channels);
  s->low = low;
  s->high = high;
  s->count = count;
  for (uint32_t c = 0; c < channels; c++)
    if (!take_float(r, &s->channel_low[c]) || !take_float(r, &s->channel_high[c]))
      return false;
  return r->rest.size == 0;
}

/* The lines of one value after its name. */
static bool read_stats(StatsReader *r, Stats *s) {
  uint64_t sum = 0;
  if (!next_line(r) || !take_word(r, "count") || !take_number(r, UINT64_MAX, &s->count) ||
      !take_float(r, &s->low) || !take_float(r, &s->high))
    return false;
  for (StatsReader before = *r; next_line(r); before = *r) {
    bool good = true;
    if (s->page_count == 0 && take_word(r, "channels"))
      good = read_channels(r, s);
    else if (take_word(r, "bins"))
      good = read_bins(r, s, &sum);
    else {
      *r = before;
      break;
    }
    if (!good)
      return false;
  }
  return sum == s->count && (s->low <= s->high || (isinf(s->low) && isinf(s->high)));
}

static bool read_value(StatsReader *r, StatsFile *file, uint32_t *capacity) {
  StrBuf name = {0};
  if (file->count == *capacity) {
    uint32_t more = *capacity ? 2 * *capacity : 64;
    file->entries = arena_grow(&file->arena, file->entries, *capacity * sizeof *file->entries,
                               more * sizeof *file->entries);
    *capacity = more;
  }
  StatsEntry *e = &file->entries[file->count++];
  stats_init(&e->stats, 0);
  bool good = strbuf_append_unescaped(&name, r->rest);
  e->name = strbuf_keep(&name, &file->arena);
  return good && read_stats(r, &e->stats);
}

static bool read_file(StatsReader *r, StatsFile *file) {
  uint32_t capacity = 0;
  uint64_t count;
  if (!read_head(r, &file->head))
    return false;
  while (next_line(r)) {
    if (take_word(r, "end"))
      return take_number(r, UINT32_MAX, &count) && count == file->count && r->at == r->end;
    if (!take_word(r, "value") || !read_value(r, file, &capacity))
      return false;
  }
  return false;
}

Status stats_read(StatsFile *file, DiagSink *sink, const char *path) {
  MappedFile mapped;
  *file = (StatsFile){.path = path};
  Status status = file_map(&mapped, &file->arena, sink, path);
  if (status == STATUS_OK) {
    const char *text = (const char *)mapped.data;
    StatsReader r = {.at = text, .end = mapped.size ? text + mapped.size : text};
    if (!read_file(&r, file)) {
      Diag *d = diag_begin(sink, DIAG_STATS_FORMAT, diag_file(path));
      if (r.line <= 1)
        diag_message(d, "this is not a file of statistics, or one of another version");
      else
        diag_message(d, "the file of statistics is damaged at line %u", r.line);
      if (npy_is_array(mapped.data, mapped.size))
        diag_hint(d, "samples are for --calibrate, or for --data of 'etc calibrate'");
      status = diag_end(d);
    }
    file_unmap(&mapped);
  }
  if (status != STATUS_OK)
    stats_file_release(file);
  return status;
}

void stats_file_release(StatsFile *file) {
  for (uint32_t i = 0; i < file->count; i++)
    stats_release(&file->entries[i].stats);
  file->count = 0;
  arena_release(&file->arena);
}

/* --- merging --- */

static Status merge_error(DiagSink *sink, DiagCode code, const char *path, const char *text) {
  Diag *d = diag_begin(sink, code, diag_file(path));
  diag_message(d, "'%s' %s", path, text);
  return diag_end(d);
}

static Status check_same(const StatsFile *first, const StatsFile *file, const char *path,
                         DiagSink *sink) {
  const StatsHead *a = &first->head, *b = &file->head;
  if (strcmp(a->model, b->model) != 0)
    return merge_error(sink, DIAG_STATS_MODEL, path, "is of another model than the files before");
  if (a->data != b->data || a->total != b->total)
    return merge_error(sink, DIAG_STATS_MODEL, path,
                       "is of another data set than the files before");
  if (a->shard.count != b->shard.count)
    return merge_error(sink, DIAG_STATS_SHARDS, path,
                       "is of another number of shards than the files before");
  bool same = first->count == file->count;
  for (uint32_t i = 0; same && i < first->count; i++)
    same = sv_eq(first->entries[i].name, file->entries[i].name) &&
           first->entries[i].stats.channels == file->entries[i].stats.channels;
  return same ? STATUS_OK
              : merge_error(sink, DIAG_STATS_MODEL, path,
                            "has other values than the files before: the model was calibrated "
                            "with other options");
}

/* keys: number of a shard << 32 | the file that it is in. Each shard is there once. */
static Status check_shards(uint64_t *keys, const char *const *paths, uint32_t count,
                           uint32_t shards, DiagSink *sink) {
  qsort(keys, count, sizeof *keys, compare_u64);
  for (uint32_t i = 1; i < count; i++) {
    if (keys[i - 1] >> 32 != keys[i] >> 32)
      continue;
    const char *path = paths[(uint32_t)keys[i]];
    Diag *d = diag_begin(sink, DIAG_STATS_SHARDS, diag_file(path));
    diag_message(d, "'%s' and '%s' are both shard %u of %u", paths[(uint32_t)keys[i - 1]], path,
                 (uint32_t)(keys[i] >> 32), shards);
    return diag_end(d);
  }
  uint32_t there = 0;
  while (there < count && keys[there] >> 32 == there)
    there++;
  if (there == shards)
    return STATUS_OK;
  Diag *d = diag_begin(sink, DIAG_STATS_SHARDS, diag_file(paths[0]));
  diag_message(d, "shard %u of %u is missing", there, shards);
  return diag_end(d);
}

static void add_file(StatsFile *out, const StatsFile *file) {
  out->head.counted += file->head.counted;
  for (uint32_t i = 0; i < out->count; i++)
    stats_merge(&out->entries[i].stats, &file->entries[i].stats);
}

static Status merge_paths(StatsFile *out, const char *const *paths, uint32_t count,
                          DiagSink *sink) {
  TRY(stats_read(out, sink, paths[0]));
  uint64_t *keys = ARENA_ARRAY(&out->arena, uint64_t, count);
  keys[0] = (uint64_t)out->head.shard.index << 32;
  for (uint32_t k = 1; k < count; k++) {
    StatsFile file;
    TRY(stats_read(&file, sink, paths[k]));
    Status status = check_same(out, &file, paths[k], sink);
    if (status == STATUS_OK)
      add_file(out, &file);
    keys[k] = (uint64_t)file.head.shard.index << 32 | k;
    stats_file_release(&file);
    TRY(status);
  }
  TRY(check_shards(keys, paths, count, out->head.shard.count, sink));
  out->head.shard = (DataShard){0, 1};
  return STATUS_OK;
}

Status stats_merge_files(StatsFile *out, const char *const *paths, uint32_t count, DiagSink *sink) {
  *out = (StatsFile){0};
  Status status = merge_paths(out, paths, count, sink);
  if (status != STATUS_OK)
    stats_file_release(out);
  return status;
}

/* --- use --- */

Status stats_of_model(const StatsFile *file, const char *hash, DiagSink *sink) {
  const StatsHead *h = &file->head;
  const char *path = file->path;
  if (strcmp(h->model, hash) != 0)
    return merge_error(sink, DIAG_STATS_MODEL, path, "is of another model");
  if (h->shard.count == 1)
    return STATUS_OK;
  Diag *d = diag_begin(sink, DIAG_STATS_SHARDS, diag_file(path));
  diag_message(d, "'%s' is shard %u of %u alone", path, h->shard.index, h->shard.count);
  diag_hint(d, "merge all shards with --merge of 'etc calibrate'");
  return diag_end(d);
}

Status stats_match(const StatsFile *file, const Graph *g, const ValueId *values, uint32_t count,
                   const Stats **out, DiagSink *sink) {
  Arena arena = {0};
  Intern names;
  intern_init(&names);
  uint32_t all_count, *entry = ARENA_ARRAY(&arena, uint32_t, (size_t)file->count + 1);
  for (uint32_t i = 0; i < file->count; i++)
    entry[intern_add(&names, file->entries[i].name)] = i;
  /* Equal names are told apart by their order among all values, so all are named. */
  ValueId *all = observe_values(g, &arena, &all_count);
  StrView *all_names = stats_names(g, all, all_count, &arena);
  uint32_t *of_value = ARENA_ARRAY(&arena, uint32_t, g->value_count);
  for (uint32_t i = 0; i < all_count; i++)
    of_value[all[i]] = i + 1;
  Status status = STATUS_OK;
  for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
    uint32_t at = of_value[values[i]];
    uint32_t id = at ? intern_find(&names, all_names[at - 1]) : 0;
    if (id) {
      out[i] = &file->entries[entry[id]].stats;
      continue;
    }
    Diag *d = diag_begin(sink, DIAG_STATS_GAP, diag_file(file->path));
    StrView name = at ? all_names[at - 1] : SV("");
    diag_message(d, "'%s' has no statistics of value '" SV_FMT "'", file->path, SV_ARG(name));
    status = diag_end(d);
  }
  intern_release(&names);
  arena_release(&arena);
  return status;
}

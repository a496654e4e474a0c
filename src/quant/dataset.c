/* See dataset.h. Files are looked at twice: their directories and headers when the set is opened,
 * which says how many samples there are, and their data in order. */
#include "quant/dataset.h"

#include <inttypes.h>
#include <math.h>
#include <xxhash.h>

#include "interp/npy.h"
#include "ir/text.h"
#include "quant/archive.h"
#include "quant/dataset_files.h"

enum { SAMPLE_MAX = INT32_MAX };
#define NO_ITEM UINT32_MAX

/* The array of one input in an open file. */
typedef struct Reader {
  Archive archive;
  ArchiveStream *stream;
  const char *label, *path; /* for messages */
  NpyHead head;
  Tensor sample;          /* dtype and dims as in the file; capacity: bytes of a sample there */
  uint64_t samples, next; /* number that the stream is at */
  bool repeated;          /* a scalar, the same for all samples: its value is in sample.data */
} Reader;

/* What was read of an input of floats. */
typedef struct Seen {
  bool any, several /* elements a sample */, varies;
  double first;
} Seen;

/* A file, or one file an input. */
typedef struct Item {
  const char *const *paths;
  bool each; /* paths by input, not one for all */
  uint64_t first, samples;
} Item;

struct DataSet {
  const Graph *g;
  DiagSink *sink;
  Arena arena, open_arena; /* open_arena: of the open item */
  const char *path;
  DataShard shard;
  bool sequence; /* a folder of files that follow each other */
  Item *items;
  uint32_t item_count, item_capacity, open_item;
  Reader *readers;
  Seen *seen; /* by input */
  uint64_t total, next;
  XXH3_state_t *hash; /* while all is scanned */
  uint64_t digest;
};

static const Type *input_type(const DataSet *s, uint32_t i) {
  return value_type(s->g, s->g->inputs[i]);
}
static StrView input_name(const DataSet *s, uint32_t i) {
  return value_name(s->g, s->g->inputs[i]);
}

static Diag *data_begin(const DataSet *s, DiagCode code, const char *path) {
  return diag_begin(s->sink, code, diag_file(path));
}

/* --- shapes --- */

/* Whether sizes are those of the dims of type from `from` on. */
static bool dims_fit(const Graph *g, const Type *type, uint32_t from, const int64_t *sizes) {
  for (uint32_t d = from; d < type->rank; d++) {
    int64_t size = sizes[d - from];
    if (size < sym_lower(&g->syms, type->dims[d]) || size > sym_upper(&g->syms, type->dims[d]))
      return false;
  }
  return true;
}

/* Rows that a sample takes of the first axis: 0 when it has none, or no samples. */
static int64_t rows_of(const Graph *g, const Type *type) {
  int64_t low = type->rank ? sym_lower(&g->syms, type->dims[0]) : 0;
  return low <= 1 && type->rank && sym_upper(&g->syms, type->dims[0]) >= 1 ? 1 : low;
}

static bool fits_whole(const DataSet *s, uint32_t i, const NpyHead *head) {
  const Type *type = input_type(s, i);
  return head->rank == type->rank && dims_fit(s->g, type, 0, head->dims);
}

/* How the array divides into samples; dims of a sample are those of the input. */
static bool divide(const DataSet *s, uint32_t i, bool whole, Reader *r) {
  const Graph *g = s->g;
  const Type *type = input_type(s, i);
  const NpyHead *head = &r->head;
  int64_t rows = rows_of(g, type);
  const int64_t *rest = head->dims + (head->rank == type->rank);
  r->sample.rank = type->rank;
  r->samples = 1;
  if (whole || (type->rank == 0 && head->rank == 0)) {
    r->repeated = !whole;
    memcpy(r->sample.dims, head->dims, sizeof head->dims);
    return true;
  }
  if (head->rank == type->rank + 1u) { /* a sample axis of its own */
    memcpy(r->sample.dims, head->dims + 1, type->rank * sizeof *head->dims);
    r->samples = (uint64_t)head->dims[0];
    return dims_fit(g, type, 0, head->dims + 1);
  }
  if (rows < 1 || (head->rank != type->rank && (head->rank + 1u != type->rank || rows != 1)) ||
      !dims_fit(g, type, 1, rest))
    return false;
  r->sample.dims[0] = rows;
  memcpy(r->sample.dims + 1, rest, (type->rank - 1u) * sizeof *rest);
  r->samples = head->rank == type->rank ? (uint64_t)(head->dims[0] / rows) : 1;
  return head->rank != type->rank || head->dims[0] % rows == 0;
}

/* Rows that do not come out even: the input takes several of them a sample. */
static bool rows_left(const DataSet *s, uint32_t i, const NpyHead *head, int64_t *rows) {
  const Type *type = input_type(s, i);
  *rows = rows_of(s->g, type);
  return *rows > 1 && head->rank == type->rank && dims_fit(s->g, type, 1, head->dims + 1) &&
         head->dims[0] % *rows != 0;
}

/* Whether the samples are the input's with dimensions joined, as flattened images are. */
static bool are_flattened(const DataSet *s, uint32_t i, const NpyHead *head) {
  const Type *type = input_type(s, i);
  int64_t have = 1, want = 1;
  for (uint32_t d = 1; d < head->rank; d++)
    if (!mul_i64(have, head->dims[d], &have))
      return false;
  for (uint32_t d = 0; d < type->rank; d++)
    if (!sym_is_const(type->dims[d]) || !mul_i64(want, type->dims[d], &want))
      return false;
  return head->rank > 1 && head->rank < type->rank && have == want;
}

/* Whether the samples are images with the channels last, and the input has them first. */
static bool are_channels_last(const DataSet *s, uint32_t i, const NpyHead *head) {
  const Type *type = input_type(s, i);
  bool differ = false;
  if (head->rank != type->rank || head->rank < 3)
    return false;
  for (uint32_t d = 1; d < head->rank; d++) {
    int64_t have = head->dims[d == 1 ? head->rank - 1 : d - 1];
    if (!sym_is_const(type->dims[d]) || type->dims[d] != have)
      return false;
    differ |= head->dims[d] != have;
  }
  return differ;
}

static Status report_array(const DataSet *s, uint32_t i, const Reader *r, DiagCode code) {
  StrBuf have = {0}, want = {0};
  shape_describe(dtype_name(r->head.dtype), r->head.dims, r->head.rank, &have);
  type_describe(s->g, input_type(s, i), &want);
  int64_t rows;
  Diag *d = data_begin(s, code, r->path);
  if (code == DIAG_DATA_SHAPE && rows_left(s, i, &r->head, &rows))
    diag_message(d,
                 "input '" SV_FMT "' takes %" PRId64 " rows a call, and %" PRId64
                 " are no multiple of that",
                 SV_ARG(input_name(s, i)), rows, r->head.dims[0]);
  else
    diag_message(d, "the samples are %s, input '" SV_FMT "' takes %s", strbuf_cstr(&have),
                 SV_ARG(input_name(s, i)), strbuf_cstr(&want));
  if (code == DIAG_DATA_TYPE)
    npy_hint_conversion(d, r->head.dtype, (DType)input_type(s, i)->dtype);
  else if (are_flattened(s, i, &r->head))
    diag_hint(d, "reshape the samples to the sizes of the input, behind the axis that counts them");
  else if (are_channels_last(s, i, &r->head))
    diag_hint(d, "the input has its channels first: numpy.moveaxis(array, -1, 1)");
  Status status = diag_end(d);
  strbuf_release(&have);
  strbuf_release(&want);
  return status;
}

static Status shape_reader(const DataSet *s, uint32_t i, bool whole, Reader *r) {
  if (!divide(s, i, whole, r))
    return report_array(s, i, r, DIAG_DATA_SHAPE);
  uint64_t bytes = dtype_size(r->head.dtype);
  for (uint32_t d = 0; d < r->sample.rank; d++)
    if (!mul_u64(bytes, (uint64_t)r->sample.dims[d], &bytes) || bytes > SAMPLE_MAX)
      return report_array(s, i, r, DIAG_DATA_SHAPE);
  r->sample.dtype = r->head.dtype;
  r->sample.capacity = bytes;
  return STATUS_OK;
}

/* --- types --- */

/* Whether an integer type holds all numbers of another. */
static bool widens(DType from, DType to) {
  bool from_unsigned = dtype_is_unsigned(from), to_unsigned = dtype_is_unsigned(to);
  unsigned from_size = dtype_size(from), to_size = dtype_size(to);
  return dtype_is_int(from) && dtype_is_int(to) &&
         (from_unsigned == to_unsigned ? from_size <= to_size
                                       : from_unsigned && from_size < to_size);
}

static Status check_type(const DataSet *s, uint32_t i, Reader *r) {
  DType want = (DType)input_type(s, i)->dtype;
  if (r->head.dtype != want && !widens(r->head.dtype, want)) {
    bool shape = fits_whole(s, i, &r->head) || divide(s, i, false, r);
    return report_array(s, i, r, shape ? DIAG_DATA_TYPE : DIAG_DATA_SHAPE);
  }
  if (!r->head.fortran || r->head.rank < 2)
    return STATUS_OK;
  Diag *d = data_begin(s, DIAG_DATA_TYPE, r->path);
  diag_message(d, "array '" SV_FMT "' is in Fortran order, in which samples are interleaved",
               SV_ARG(input_name(s, i)));
  diag_hint(d, "save numpy.ascontiguousarray(...) of it");
  return diag_end(d);
}

/* --- arrays --- */

static Status report_missing(const DataSet *s, uint32_t i, const Archive *archive) {
  StrView name = input_name(s, i);
  Diag *d = data_begin(s, DIAG_DATA_ARRAY, archive->file.path);
  if (archive->count == 1 && archive->entries[0].name.size == 0) {
    diag_message(d, "an .npy file holds one array, and the model has %u inputs", s->g->input_count);
    diag_hint(d, "save the arrays in one .npz file, or NAME.npy for each input in a folder");
    return diag_end(d);
  }
  diag_message(d, "there is no array for input '" SV_FMT "'", SV_ARG(name));
  for (uint32_t k = 0; k < archive->count && k < 16; k++) {
    StrView each = archive->entries[k].name; /* the array x is the file x.npy in it */
    if (sv_has_suffix(each, SV(".npy")))
      each.size -= strlen(".npy");
    diag_note(d, "there is '" SV_FMT "'", SV_ARG(each));
  }
  return diag_end(d);
}

static Status open_reader(DataSet *s, const Item *item, uint32_t i, Reader *r) {
  StrView name = input_name(s, i);
  r->path = item->paths[item->each ? i : 0];
  r->label = arena_strdup(&s->open_arena, name);
  TRY(archive_open(&r->archive, &s->open_arena, s->sink, r->path));
  const ArchiveEntry *entry = archive_find(&r->archive, name);
  if (!entry || (entry->name.size == 0 && !item->each && s->g->input_count > 1))
    return report_missing(s, i, &r->archive);
  TRY(archive_stream_open(&r->stream, &r->archive, entry, r->label, s->sink));
  TRY(archive_stream_head(r->stream, (DType)input_type(s, i)->dtype, &s->open_arena, &r->head));
  TRY(check_type(s, i, r));
  if (s->hash) {
    uint64_t key[4] = {i, entry->size, entry->checked ? entry->crc : 0, r->head.dtype};
    XXH3_64bits_update(s->hash, key, sizeof key);
    XXH3_64bits_update(s->hash, r->head.dims, sizeof r->head.dims);
  }
  return STATUS_OK;
}

static void close_item(DataSet *s) {
  for (uint32_t i = 0; i < s->g->input_count; i++) {
    archive_stream_close(s->readers[i].stream);
    archive_close(&s->readers[i].archive);
    s->readers[i] = (Reader){.archive.file.fd = -1};
  }
  arena_reset(&s->open_arena);
  s->open_item = NO_ITEM;
}

/* All inputs have as many samples, scalars that are repeated aside. */
static Status count_samples(const DataSet *s, uint64_t *samples) {
  uint32_t first = NO_ITEM;
  *samples = 1;
  for (uint32_t i = 0; i < s->g->input_count; i++) {
    const Reader *r = &s->readers[i];
    if (r->repeated)
      continue;
    if (first == NO_ITEM) {
      first = i;
      *samples = r->samples;
    } else if (r->samples != *samples) {
      Diag *d = data_begin(s, DIAG_DATA_SAMPLES, r->path);
      diag_message(d, "array '" SV_FMT "' has %" PRIu64 " samples, array '" SV_FMT "' has %" PRIu64,
                   SV_ARG(input_name(s, i)), r->samples, SV_ARG(input_name(s, first)), *samples);
      return diag_end(d);
    }
  }
  return STATUS_OK;
}

static Status open_item(DataSet *s, uint32_t index, uint64_t *samples) {
  const Item *item = &s->items[index];
  close_item(s);
  s->open_item = index;
  bool whole = s->sequence;
  for (uint32_t i = 0; i < s->g->input_count; i++) {
    TRY(open_reader(s, item, i, &s->readers[i]));
    whole = whole && fits_whole(s, i, &s->readers[i].head);
  }
  for (uint32_t i = 0; i < s->g->input_count; i++)
    TRY(shape_reader(s, i, whole, &s->readers[i]));
  return count_samples(s, samples);
}

/* --- files --- */

static void add_item(DataSet *s, const char *const *paths, bool each) {
  POOL_PUSH(s->items, s->item_count, s->item_capacity, (Item){.paths = paths, .each = each});
}

static void add_file(DataSet *s, const char *path) {
  const char **paths = ARENA_ARRAY(&s->arena, const char *, 1);
  *paths = path;
  add_item(s, paths, false);
}

/* A file for each input, when all are there; NULL otherwise. */
static const char *const *files_by_input(DataSet *s, const FolderNames *npy) {
  uint32_t count = s->g->input_count;
  const char **paths = ARENA_ARRAY(&s->arena, const char *, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    const char *name = folder_file_of(&s->arena, input_name(s, i));
    if (!folder_has(npy, name))
      return NULL;
    paths[i] = arena_printf(&s->arena, "%s/%s", s->path, name);
  }
  return paths;
}

static Status find_in_folder(DataSet *s, const FolderNames *npz, const FolderNames *npy) {
  if (npz->count && npy->count) {
    Diag *d = data_begin(s, DIAG_DATA_SAMPLES, s->path);
    diag_message(d, "the folder has .npz and .npy files: '%s' and '%s'", npz->names[0],
                 npy->names[0]);
    diag_hint(d, "name one of the files, or keep files of one kind in the folder");
    return diag_end(d);
  }
  const char *const *by_input = npy->count ? files_by_input(s, npy) : NULL;
  if (by_input) {
    add_item(s, by_input, true);
    return STATUS_OK;
  }
  if (npy->count && s->g->input_count != 1) {
    Diag *d = data_begin(s, DIAG_DATA_ARRAY, s->path);
    diag_message(d, "the folder does not have a file NAME.npy for each of %u inputs",
                 s->g->input_count);
    for (uint32_t i = 0; i < s->g->input_count && i < 16; i++)
      diag_note(d, "'%s' is the file of an input", folder_file_of(&s->arena, input_name(s, i)));
    return diag_end(d);
  }
  const FolderNames *names = npz->count ? npz : npy;
  s->sequence = true;
  for (uint32_t i = 0; i < names->count; i++)
    add_file(s, arena_printf(&s->arena, "%s/%s", s->path, names->names[i]));
  return STATUS_OK;
}

static Status find_files(DataSet *s) {
  if (!file_is_folder(s->path)) {
    add_file(s, s->path);
    return STATUS_OK;
  }
  FolderNames npz = {0}, npy = {0};
  Status status = folder_list(s->path, &s->arena, s->sink, &npz, &npy);
  if (status == STATUS_OK)
    status = find_in_folder(s, &npz, &npy);
  xfree(npz.names);
  xfree(npy.names);
  return status;
}

/* --- the set --- */

static Status scan(DataSet *s) {
  TRY(find_files(s));
  for (uint32_t k = 0; k < s->item_count; k++) {
    Item *item = &s->items[k];
    TRY(open_item(s, k, &item->samples));
    item->first = s->total;
    if (!add_u64(s->total, item->samples, &s->total)) {
      Diag *d = data_begin(s, DIAG_DATA_SAMPLES, s->path);
      diag_message(d, "'%s' has more samples than 64 bits count", s->path);
      return diag_end(d);
    }
  }
  if (s->total)
    return STATUS_OK;
  Diag *d = data_begin(s, DIAG_DATA_SAMPLES, s->path);
  if (s->item_count || !file_is_folder(s->path)) {
    diag_message(d, "'%s' has no samples", s->path);
    return diag_end(d);
  }
  diag_message(d, "folder '%s' has no .npz and no .npy", s->path);
  if (s->g->input_count)
    diag_hint(d, "put %s with samples along its first axis into it, or .npz files",
              folder_file_of(&s->arena, input_name(s, 0)));
  return diag_end(d);
}

Status dataset_open(DataSet **out, const Graph *g, const char *path, DataShard shard,
                    DiagSink *sink) {
  DataSet *s = xrealloc(NULL, sizeof *s);
  *s = (DataSet){.g = g, .sink = sink, .shard = shard, .next = shard.index, .open_item = NO_ITEM};
  s->path = arena_strdup(&s->arena, sv_from(path));
  s->readers = ARENA_ARRAY(&s->arena, Reader, g->input_count + 1);
  s->seen = ARENA_ARRAY(&s->arena, Seen, g->input_count + 1);
  for (uint32_t i = 0; i < g->input_count; i++)
    s->readers[i].archive.file.fd = -1;
  XXH3_state_t hash;
  XXH3_64bits_reset(&hash);
  s->hash = &hash;
  Status status = scan(s);
  s->digest = XXH3_64bits_digest(&hash);
  s->hash = NULL;
  close_item(s);
  *out = s;
  if (status != STATUS_OK) {
    dataset_close(s);
    *out = NULL;
  }
  return status;
}

void dataset_close(DataSet *set) {
  if (!set)
    return;
  close_item(set);
  xfree(set->items);
  arena_release(&set->open_arena);
  arena_release(&set->arena);
  xfree(set);
}

uint64_t dataset_total(const DataSet *set) { return set->total; }
uint64_t dataset_count(const DataSet *set) {
  const DataShard *shard = &set->shard;
  return set->total / shard->count + (set->total % shard->count > shard->index);
}
uint64_t dataset_hash(const DataSet *set) { return set->digest; }

/* --- samples --- */

static bool all_finite(const Tensor *t, int64_t *at) {
  int64_t count = tensor_numel(t);
  if (t->dtype == DTYPE_F32) {
    const uint32_t *bits = t->data;
    uint32_t wrong = 0;
    for (int64_t i = 0; i < count; i++)
      wrong |= (bits[i] & 0x7f800000) == 0x7f800000;
    if (!wrong)
      return true;
  }
  for (*at = 0; *at < count; ++*at)
    if (!isfinite(tensor_load(t, *at)))
      return false;
  return true;
}

static Status check_values(const DataSet *s, uint32_t i, uint64_t number, const Tensor *t) {
  int64_t at = 0;
  const char *what = NULL;
  if (dtype_is_float(t->dtype) && !all_finite(t, &at))
    what = isnan(tensor_load(t, at)) ? "NaN" : "infinity";
  for (; t->dtype == DTYPE_BOOL && at < tensor_numel(t) && !what; at++)
    what = ((const uint8_t *)t->data)[at] > 1 ? "a bool that is neither 0 nor 1" : NULL;
  if (!what)
    return STATUS_OK;
  const Reader *r = &s->readers[i];
  Diag *d = data_begin(s, DIAG_DATA_VALUE, r->path);
  diag_message(d, "array '%s' has %s in sample %" PRIu64 ", at element %" PRId64, r->label, what,
               number, at);
  return diag_end(d);
}

static void look_at(Seen *seen, const Tensor *t) {
  int64_t count = tensor_numel(t);
  if (!dtype_is_float(t->dtype) || count == 0)
    return;
  if (!seen->any)
    seen->first = tensor_load(t, 0);
  seen->any = true;
  seen->several |= count > 1;
  for (int64_t i = 0; i < count && !seen->varies; i++)
    seen->varies = tensor_load(t, i) != seen->first;
}

void dataset_warn_constant(const DataSet *set) {
  for (uint32_t i = 0; i < set->g->input_count; i++)
    if (set->seen[i].varies)
      return;
  for (uint32_t i = 0; i < set->g->input_count; i++)
    if (set->seen[i].several)
      (void)diag_report(set->sink, DIAG_DATA_CONSTANT, diag_file(set->path),
                        "all elements of input '" SV_FMT "' are %g in all samples",
                        SV_ARG(input_name(set, i)), set->seen[i].first);
}

static void widen(const Tensor *from, DType dtype, Arena *arena, Tensor *to) {
  *to = *from;
  to->dtype = dtype;
  to->capacity = tensor_bytes(to);
  to->data = arena_alloc(arena, (size_t)to->capacity);
  for (int64_t i = 0; i < tensor_numel(from); i++)
    tensor_store_int(to, i, tensor_load_int(from, i));
}

static Status read_sample(DataSet *s, uint32_t i, uint64_t number, Arena *arena, Tensor *out) {
  Reader *r = &s->readers[i];
  Tensor t = r->sample;
  DType want = (DType)input_type(s, i)->dtype;
  if (r->repeated && number > 0 && r->next > 0)
    t.data = r->sample.data;
  else {
    uint64_t skipped = r->repeated ? 0 : (number - r->next) * t.capacity;
    TRY(archive_stream_skip(r->stream, skipped));
    t.data = arena_alloc(r->repeated ? &s->open_arena : arena, (size_t)t.capacity);
    TRY(archive_stream_read(r->stream, t.data, t.capacity));
    r->sample.data = r->repeated ? t.data : NULL;
    r->next = number + 1;
    if (r->head.big_endian)
      npy_swap_bytes(&t);
    TRY(check_values(s, i, number, &t));
    look_at(&s->seen[i], &t);
  }
  if (t.dtype != want)
    widen(&t, want, arena, out);
  else
    *out = t;
  return STATUS_OK;
}

/* The item that has the sample, sought from item k on. */
static uint32_t find_item(const DataSet *set, uint32_t k, uint64_t sample) {
  while (sample - set->items[k].first >= set->items[k].samples)
    k++;
  return k;
}

void dataset_refused(const DataSet *set, uint64_t k) {
  uint64_t sample = set->shard.index + k * set->shard.count;
  const Item *item = &set->items[find_item(set, 0, sample)];
  Diag *d = data_begin(set, DIAG_DATA_VALUE, item->paths[0]);
  diag_message(d, "the model does not run on sample %" PRIu64, sample - item->first);
  diag_hint(d, "give values that the model takes, as an index within its table");
  (void)diag_end(d);
}

Status dataset_next(DataSet *set, Arena *arena, Tensor *tensors, bool *more) {
  *more = false;
  if (set->next >= set->total)
    return STATUS_OK;
  uint64_t next = set->next;
  set->next = set->total; /* so it stays when an error or lack of memory ends the reading */
  uint32_t k = find_item(set, set->open_item == NO_ITEM ? 0 : set->open_item, next);
  uint64_t samples = set->items[k].samples;
  if (k != set->open_item)
    TRY(open_item(set, k, &samples));
  if (samples != set->items[k].samples) {
    Diag *d = data_begin(set, DIAG_FILE_CHANGED, set->items[k].paths[0]);
    diag_message(d, "'%s' has changed since it was opened", set->items[k].paths[0]);
    return diag_end(d);
  }
  for (uint32_t i = 0; i < set->g->input_count; i++)
    TRY(read_sample(set, i, next - set->items[k].first, arena, &tensors[i]));
  if (!add_u64(next, set->shard.count, &set->next))
    set->next = UINT64_MAX;
  *more = true;
  return STATUS_OK;
}

DataShard dataset_some(uint64_t total, uint32_t most) {
  uint64_t apart = (total + most - 1) / most;
  return (DataShard){0, apart < 1 ? 1 : apart > UINT32_MAX ? UINT32_MAX : (uint32_t)apart};
}

Status dataset_open_some(DataSet **out, const Graph *g, const char *path, uint32_t most,
                         DiagSink *sink) {
  DataSet *all = NULL;
  TRY(dataset_open(&all, g, path, (DataShard){0, 1}, sink));
  DataShard some = dataset_some(dataset_total(all), most);
  dataset_close(all);
  return dataset_open(out, g, path, some, sink);
}

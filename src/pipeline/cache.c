/* See cache.h. */
#include "pipeline/cache.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "pipeline/instruction_map.h"
#include "pipeline/summary.h"
#include "quant/dataset.h"
#include "source_hash.h"

enum { HASH_CHARS = 32, MAX_ENTRY = 1 << 16 };

static const StrView side_names[] = {[CACHE_MAP] = {"map", 3}, [CACHE_EXTERNAL] = {"external", 8}};
static const char *const side_endings[] = {[CACHE_MAP] = "json", [CACHE_EXTERNAL] = "ptd"};

/* The file that the user wants; NULL: none. */
static const char *side_output(const Session *s, int side) {
  return side == CACHE_MAP ? s->map : s->external;
}

/* --- the key --- */

static void append_hash(StrBuf *out, const void *data, uint64_t size) {
  XXH128_hash_t h = XXH3_128bits(size ? data : "", (size_t)size);
  strbuf_printf(out, "%016" PRIx64 "%016" PRIx64, h.high64, h.low64);
}

/* Texts may hold anything but NUL, which ends each. */
static void append_text(StrBuf *out, StrView text) {
  strbuf_append(out, text);
  strbuf_append_char(out, '\0');
}

static Status append_file(Session *s, StrBuf *out, const char *path) {
  MappedFile file;
  Arena arena = {0};
  Status status = file_map(&file, &arena, &s->sink, path);
  if (status == STATUS_OK) {
    append_hash(out, file.data, file.size);
    file_unmap(&file);
  }
  arena_release(&arena);
  return status;
}

/* Samples are read late, and may be a folder of files, whose names say their order. */
static Status append_samples(Session *s, StrBuf *out, const char *path) {
  const char **files;
  uint32_t count;
  TRY(dataset_files(path, &s->arena, &s->sink, &files, &count));
  append_text(out, file_is_folder(path) ? SV("folder") : SV("file"));
  for (uint32_t i = 0; i < count; i++) {
    const char *slash = strrchr(files[i], '/');
    if (file_is_folder(path))
      append_text(out, sv_from(slash ? slash + 1 : files[i]));
    TRY(append_file(s, out, files[i]));
  }
  return STATUS_OK;
}

/* Methods may have their models in common, so that each is told with its own. */
static Status append_sources(Session *s, StrBuf *out) {
  for (uint32_t i = 0; i < s->program.source_count; i++) {
    const Source *source = s->program.sources[i];
    append_text(out, sv_from(source->method));
    strbuf_printf(out, "%d ", (int)source->kind);
    if (source->in_memory)
      append_hash(out, source->mapped.data, source->mapped.size);
    else
      TRY(append_file(s, out, source->path));
  }
  return STATUS_OK;
}

/* Those that were not set as text, by the library, have no other trace. */
static void append_constants(const Session *s, StrBuf *out) {
  for (uint32_t i = 0; i < s->program.constant_count; i++) {
    append_text(out, s->program.constants[i].name);
    constant_method_print(&s->program.constants[i], out);
    strbuf_append_char(out, '\0');
  }
}

static bool is_source(const Session *s, const char *path) {
  for (uint32_t i = 0; i < s->program.source_count; i++)
    if (!s->program.sources[i]->in_memory && strcmp(s->program.sources[i]->path, path) == 0)
      return true;
  return false;
}

/* Other files that were read till now, in order, and those that stages to come will read. */
static Status append_files(Session *s, StrBuf *out) {
  for (uint32_t id = 1; id <= s->files.paths.count; id++) {
    const char *path = intern_get(&s->files.paths, id).data;
    if (!file_is_folder(path) && !is_source(s, path)) /* folders are of samples */
      TRY(append_file(s, out, path));
  }
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    const MethodOptions *o = s->program.methods[i].options;
    const QuantOptions *q = &o->quantize;
    strbuf_printf(out, "method %u", i);
    append_text(out, q->data ? SV(" samples") : q->made_up ? SV(" random") : SV(""));
    if (q->data)
      TRY(append_samples(s, out, q->data));
    append_text(out, o->compare ? SV(" compared") : SV(""));
    if (o->compare)
      TRY(append_samples(s, out, o->compare));
    append_text(out, q->ranges ? SV(" ranges") : SV(""));
    if (q->ranges)
      TRY(append_file(s, out, q->ranges));
  }
  return STATUS_OK;
}

static Status make_key(Session *s) {
  StrBuf text = {0}, key = {0};
  append_text(&text, SV("etc " ETC_VERSION " " ETC_SOURCE_HASH));
  strbuf_append(&text, (StrView){s->cache.options.data, s->cache.options.size});
  for (int i = 0; i < CACHE_SIDES; i++)
    append_text(&text, side_output(s, i) ? side_names[i] : SV(""));
  append_constants(s, &text);
  Status status = append_sources(s, &text);
  if (status == STATUS_OK)
    status = append_files(s, &text);
  append_hash(&key, text.data, text.size);
  s->cache.program = arena_printf(&s->arena, "%s/%s.pte", s->cache.folder, strbuf_cstr(&key));
  s->cache.entry = arena_printf(&s->arena, "%s/%s.txt", s->cache.folder, strbuf_cstr(&key));
  for (int i = 0; i < CACHE_SIDES; i++)
    if (side_output(s, i))
      s->cache.sides[i].path =
          arena_printf(&s->arena, "%s/%s.%s", s->cache.folder, strbuf_cstr(&key), side_endings[i]);
  s->cache.files = s->files.paths.count;
  strbuf_release(&text);
  strbuf_release(&key);
  return status;
}

/* --- entries --- */

static Status damaged(Session *s, const char *path, const char *why) {
  Diag *d = diag_begin(&s->sink, DIAG_CACHE_DAMAGED, diag_file(path));
  diag_message(d, "an entry of the cache is damaged: %s", why);
  diag_hint(d, "remove '%s' and run again: the program is lowered anew", s->cache.entry);
  return diag_end(d);
}

/* A file of the cache, which is none of those that the program is made from. */
static Status map_own(Session *s, MappedFile *file, const char *path) {
  s->sink.files = NULL;
  Status status = file_map(file, &s->arena, &s->sink, path);
  s->sink.files = &s->files;
  return status;
}

/* The rest of the line that begins with name and a space, and the text after it. */
static bool take_line(StrView *text, StrView name, StrView *value) {
  const char *end = text->size ? memchr(text->data, '\n', text->size) : NULL;
  size_t size = end ? (size_t)(end - text->data) : 0;
  if (size <= name.size || !sv_starts_with(*text, name) || text->data[name.size] != ' ')
    return false;
  *value = (StrView){text->data + name.size + 1, size - name.size - 1};
  *text = (StrView){end + 1, text->size - size - 1};
  return true;
}

static bool take_hash(StrView *text, StrView name, StrView *hash) {
  return take_line(text, name, hash) && hash->size == HASH_CHARS;
}

typedef struct Hashes {
  StrView program, sides[CACHE_SIDES];
} Hashes;

/* The text without its first line, "check HASH", which is the hash of the rest; and the hashes of
 * the program and of what is kept beside it out of the lines behind it. */
static bool read_entry(const Session *s, StrView text, Hashes *hashes, StrView *summary) {
  StrView check;
  StrBuf expected = {0};
  bool whole = text.size < MAX_ENTRY && take_line(&text, SV("check"), &check);
  if (whole)
    append_hash(&expected, text.data, text.size);
  whole = whole && sv_eq_str(check, strbuf_cstr(&expected)) &&
          take_hash(&text, SV("program"), &hashes->program);
  for (int i = 0; i < CACHE_SIDES; i++)
    whole = whole && (!side_output(s, i) || take_hash(&text, side_names[i], &hashes->sides[i]));
  strbuf_release(&expected);
  *summary = text;
  return whole;
}

static bool has_hash(const MappedFile *file, StrView hash) {
  StrBuf own = {0};
  append_hash(&own, file->data, file->size);
  bool same = sv_eq_str(hash, strbuf_cstr(&own));
  strbuf_release(&own);
  return same;
}

static Status read_sides(Session *s, const Hashes *hashes) {
  for (int i = 0; i < CACHE_SIDES; i++) {
    CacheSide *side = &s->cache.sides[i];
    if (!side->path)
      continue;
    TRY(map_own(s, &side->mapped, side->path));
    if (!has_hash(&side->mapped, hashes->sides[i]))
      return damaged(s, side->path,
                     i == CACHE_MAP ? "the map is not the one that was kept"
                                    : "the weights are not those that were kept");
  }
  return STATUS_OK;
}

static Status read_kept(Session *s) {
  MappedFile file;
  Hashes hashes = {0};
  StrView summary;
  if (file_is_folder(s->cache.entry))
    return damaged(s, s->cache.entry, "it is a folder");
  TRY(map_own(s, &file, s->cache.entry));
  if (file.size >= MAX_ENTRY) {
    file_unmap(&file);
    return damaged(s, s->cache.entry, "its text is longer than any that is written");
  }
  StrView text = {arena_strdup(&s->arena, (StrView){(const char *)file.data, (size_t)file.size}),
                  (size_t)file.size};
  file_unmap(&file);
  if (!read_entry(s, text, &hashes, &summary) || !session_summary_read(s, summary))
    return damaged(s, s->cache.entry, "its text is not the one that was written");
  if (file_is_folder(s->cache.program))
    return damaged(s, s->cache.program, "it is a folder");
  TRY(map_own(s, &s->cache.mapped, s->cache.program));
  if (!has_hash(&s->cache.mapped, hashes.program))
    return damaged(s, s->cache.program, "the program is not the one that was kept");
  return read_sides(s, &hashes);
}

static Status not_kept(Session *s, const char *why) {
  return diag_report(&s->sink, DIAG_CACHE_READ_ONLY, diag_file(s->cache.folder),
                     "the program is not kept in the cache '%s': %s", s->cache.folder, why);
}

/* *made: it is there now; one that cannot be made keeps nothing. */
static Status make_folder(Session *s, bool *made) {
  const char *folder = s->cache.folder;
  *made = s->cache.made = mkdir(folder, 0777) == 0;
  int error = errno;
  *made = *made || file_is_folder(folder);
  if (*made)
    return STATUS_OK;
  if (error == EEXIST) {
    Diag *d = diag_begin(&s->sink, DIAG_FILE_WRITE, diag_file(folder));
    diag_message(d, "the cache '%s' is a file, not a folder", folder);
    diag_hint(d, "give --cache a folder; it is made when it is not there");
    return diag_end(d);
  }
  return not_kept(s, arena_printf(&s->arena, "cannot make the folder: %s", strerror(error)));
}

void session_cache_end(const Session *s) {
  if (s->cache.made)
    (void)rmdir(s->cache.folder);
}

static Status check_writable(Session *s) {
  s->cache.writable = access(s->cache.folder, W_OK) == 0;
  return s->cache.writable ? STATUS_OK : not_kept(s, strerror(errno));
}

static bool is_there(const Session *s) {
  bool all = access(s->cache.entry, F_OK) == 0 && access(s->cache.program, F_OK) == 0;
  for (int i = 0; i < CACHE_SIDES; i++)
    all = all && (!s->cache.sides[i].path || access(s->cache.sides[i].path, F_OK) == 0);
  return all;
}

Status session_cache_find(Session *s, bool *hit) {
  *hit = false;
  if (!s->cache.folder)
    return STATUS_OK;
  bool made;
  TRY(make_folder(s, &made));
  if (!made)
    return STATUS_OK;
  TRY(make_key(s));
  s->cache.warnings = s->sink.warnings;
  if (!is_there(s))
    return check_writable(s);
  TRY(read_kept(s));
  TRY(files_read_unchanged(&s->files, &s->sink));
  *hit = s->cache.hit = true;
  return STATUS_OK;
}

/* Every file that was read must be a part of the key; if one is not, the program is not kept. */
const char *session_cache_path(const Session *s) {
  bool same = s->sink.warnings == s->cache.warnings && s->files.paths.count == s->cache.files;
  return s->cache.writable && same ? s->cache.program : NULL;
}

const char *session_cache_external(const Session *s) {
  return session_cache_path(s) ? s->cache.sides[CACHE_EXTERNAL].path : NULL;
}

static void append_hash_line(StrBuf *text, StrView name, const MappedFile *file) {
  strbuf_append(text, name);
  strbuf_append_char(text, ' ');
  append_hash(text, file->data, file->size);
  strbuf_append_char(text, '\n');
}

static Status keep_sides(Session *s, StrBuf *text) {
  for (int i = 0; i < CACHE_SIDES; i++) {
    CacheSide *side = &s->cache.sides[i];
    if (!side->path)
      continue;
    if (i == CACHE_MAP)
      TRY(instruction_map_write(s, side->path));
    TRY(map_own(s, &side->mapped, side->path));
    append_hash_line(text, side_names[i], &side->mapped);
  }
  return STATUS_OK;
}

Status session_cache_keep(Session *s) {
  StrBuf text = {0}, whole = {0};
  TRY(files_read_unchanged(&s->files, &s->sink));
  TRY(map_own(s, &s->cache.mapped, s->cache.program));
  append_hash_line(&text, SV("program"), &s->cache.mapped);
  Status status = keep_sides(s, &text);
  session_summary_write(s, &text);
  strbuf_append(&whole, SV("check "));
  append_hash(&whole, text.data, text.size);
  strbuf_append_char(&whole, '\n');
  strbuf_append(&whole, (StrView){text.data, text.size});
  if (status == STATUS_OK)
    status =
        atomic_file_whole(&s->arena, &s->sink, s->cache.entry, (StrView){whole.data, whole.size});
  strbuf_release(&text);
  strbuf_release(&whole);
  return status;
}

const char *session_cache_fault(Session *s, const StrBuf *message) {
  const char *text = arena_strdup(&s->arena, (StrView){message->data, message->size});
  StrView key = sv_from(s->cache.entry);
  const char *entry = arena_strdup(&s->arena, (StrView){key.data, key.size - strlen("txt")});
  return strstr(text, entry) ? text : NULL;
}

Status session_cache_give_up(Session *s, const char *why) {
  s->cache.writable = false;
  return not_kept(s, why);
}

Status session_cache_deliver_sides(Session *s) {
  for (int i = 0; i < CACHE_SIDES; i++) {
    AtomicFile out;
    const MappedFile *kept = &s->cache.sides[i].mapped;
    if (!s->cache.sides[i].path)
      continue;
    TRY(atomic_file_open(&out, &s->arena, &s->sink, side_output(s, i)));
    atomic_file_copy(&out, kept, 0, kept->size);
    TRY(atomic_file_commit(&out, s->sync));
  }
  return STATUS_OK;
}

Status session_cache_deliver(Session *s, const char *output) {
  AtomicFile out;
  TRY(atomic_file_open(&out, &s->arena, &s->sink, output));
  out.deliver = s->deliver;
  out.deliver_user = s->deliver_user;
  atomic_file_copy(&out, &s->cache.mapped, 0, s->cache.mapped.size);
  return atomic_file_commit(&out, s->sync);
}

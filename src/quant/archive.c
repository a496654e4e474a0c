/* See archive.h. Directories are read from the mapping; data by pread into a buffer, so that a
 * large file does not stay in memory. */
#include "quant/archive.h"
#include "support/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

enum {
  END_SIZE = 22, /* of the end of the central directory, without its comment */
  LOCATOR_SIZE = 20,
  END64_SIZE = 56,
  CENTRAL_SIZE = 46,
  LOCAL_SIZE = 30,
  COMMENT_MAX = 65535,
  FLAG_ENCRYPTED = 1,
  STORED = 0,
  DEFLATED = 8,
  DEFLATE_RATIO_MAX = 1032, /* two bits name a copy of 258 bytes */
  BUFFER_SIZE = 1 << 16,
  HEADER_MAX = 1 << 16 /* of an .npy */
};

static Status archive_error(DiagSink *sink, const char *path, const char *format, ...)
    ETC_PRINTF(3, 4);
static Status archive_error(DiagSink *sink, const char *path, const char *format, ...) {
  va_list args;
  va_start(args, format);
  Status status = diag_vreport(sink, DIAG_DATA_ARCHIVE, diag_file(path), "", format, args);
  va_end(args);
  return status;
}

static uint64_t little(const uint8_t *at, unsigned bytes) {
  uint64_t value = 0;
  while (bytes--)
    value = value << 8 | at[bytes];
  return value;
}

/* --- the directory --- */

/* Where the central directory is. */
typedef struct Directory {
  uint64_t at, size, entries;
} Directory;

/* The record at the end, behind which a comment may stand that may look like one. */
static const uint8_t *find_end(const MappedFile *file) {
  for (uint64_t comment = 0; comment <= COMMENT_MAX && comment + END_SIZE <= file->size;
       comment++) {
    const uint8_t *at = file->data + file->size - END_SIZE - comment;
    if (little(at, 4) == 0x06054b50 && little(at + 20, 2) == comment)
      return at;
  }
  return NULL;
}

/* False when a record of zip64 is announced and is not there. */
static bool read_end64(const MappedFile *file, const uint8_t *end, Directory *d, uint64_t *limit) {
  uint64_t end_at = (uint64_t)(end - file->data);
  if (end_at < LOCATOR_SIZE || little(end - LOCATOR_SIZE, 4) != 0x07064b50)
    return d->at != UINT32_MAX && d->size != UINT32_MAX && d->entries != UINT16_MAX;
  uint64_t at = little(end - LOCATOR_SIZE + 8, 8);
  if (at > end_at - LOCATOR_SIZE || end_at - LOCATOR_SIZE - at < END64_SIZE ||
      little(file->data + at, 4) != 0x06064b50)
    return false;
  const uint8_t *record = file->data + at;
  *d = (Directory){.entries = little(record + 32, 8),
                   .size = little(record + 40, 8),
                   .at = little(record + 48, 8)};
  *limit = at;
  return little(record + 16, 4) == 0 && little(record + 24, 8) == d->entries;
}

static bool find_directory(const MappedFile *file, Directory *d) {
  const uint8_t *end = find_end(file);
  if (!end)
    return false;
  *d = (Directory){
      .entries = little(end + 10, 2), .size = little(end + 12, 4), .at = little(end + 16, 4)};
  uint64_t limit = (uint64_t)(end - file->data), directory_end;
  if (little(end + 4, 2) != 0 || !read_end64(file, end, d, &limit))
    return false;
  return add_u64(d->at, d->size, &directory_end) && directory_end <= limit &&
         d->entries <= d->size / CENTRAL_SIZE;
}

/* Sizes and offset that do not fit their 32 bits are in an extra field, in this order. */
static bool read_extra64(const uint8_t *extra, uint64_t size, ArchiveEntry *e) {
  uint64_t *fields[3] = {&e->size, &e->packed, &e->header};
  while (size >= 4) {
    uint64_t id = little(extra, 2), length = little(extra + 2, 2);
    if (length > size - 4)
      return false;
    const uint8_t *at = extra + 4, *end = at + length;
    for (unsigned i = 0; id == 1 && i < COUNT_OF(fields); i++) {
      if (*fields[i] != UINT32_MAX)
        continue;
      if (end - at < 8)
        return false;
      *fields[i] = little(at, 8);
      at += 8;
    }
    if (id == 1)
      return true;
    extra = end;
    size -= 4 + length;
  }
  return true;
}

/* The local header has the name once more; the data begin behind it. */
static bool read_local(const MappedFile *file, uint64_t limit, ArchiveEntry *e) {
  if (e->header > limit || limit - e->header < LOCAL_SIZE)
    return false;
  const uint8_t *local = file->data + e->header;
  uint64_t name = little(local + 26, 2), extra = little(local + 28, 2);
  if (little(local, 4) != 0x04034b50 || name != e->name.size ||
      limit - e->header - LOCAL_SIZE < name + extra ||
      memcmp(local + LOCAL_SIZE, e->name.data, name) != 0)
    return false;
  e->data = e->header + LOCAL_SIZE + name + extra;
  return e->packed <= limit - e->data;
}

static bool sizes_possible(const ArchiveEntry *e) {
  uint64_t most;
  if (e->method == STORED)
    return e->size == e->packed;
  return !mul_u64(e->packed, DEFLATE_RATIO_MAX, &most) || e->size <= most;
}

static Status read_entries(Archive *a, const Directory *d, DiagSink *sink) {
  const char *path = a->file.path;
  const uint8_t *at = a->file.data + d->at, *end = at + d->size;
  for (uint32_t i = 0; i < a->count; i++) {
    ArchiveEntry *e = &a->entries[i];
    if (end - at < CENTRAL_SIZE || little(at, 4) != 0x02014b50)
      return archive_error(sink, path, "the directory of the archive is damaged");
    uint64_t name = little(at + 28, 2), extra = little(at + 30, 2), comment = little(at + 32, 2);
    if ((uint64_t)(end - at) - CENTRAL_SIZE < name + extra + comment)
      return archive_error(sink, path, "the directory of the archive is damaged");
    *e = (ArchiveEntry){.name = {(const char *)at + CENTRAL_SIZE, (size_t)name},
                        .header = little(at + 42, 4),
                        .packed = little(at + 20, 4),
                        .size = little(at + 24, 4),
                        .crc = (uint32_t)little(at + 16, 4),
                        .method = (uint16_t)little(at + 10, 2),
                        .checked = true};
    if (little(at + 8, 2) & FLAG_ENCRYPTED)
      return archive_error(sink, path, "'" SV_FMT "' is encrypted", SV_ARG(e->name));
    if (!read_extra64(at + CENTRAL_SIZE + name, extra, e) || !read_local(&a->file, d->at, e))
      return archive_error(sink, path, "'" SV_FMT "' is not where the directory says",
                           SV_ARG(e->name));
    if (!sizes_possible(e))
      return archive_error(sink, path, "'" SV_FMT "': %" PRIu64 " bytes cannot be of %" PRIu64,
                           SV_ARG(e->name), e->size, e->packed);
    at += CENTRAL_SIZE + name + extra + comment;
  }
  return STATUS_OK;
}

static int by_position(const void *a, const void *b) {
  uint64_t x = (*(const ArchiveEntry *const *)a)->header,
           y = (*(const ArchiveEntry *const *)b)->header;
  return ORDER(x, y);
}

static int by_name(const void *a, const void *b) {
  return text_compare((*(const ArchiveEntry *const *)a)->name,
                      (*(const ArchiveEntry *const *)b)->name);
}

/* No two entries share bytes of the file, or a name. */
static Status check_apart(const Archive *a, Arena *arena, DiagSink *sink) {
  const ArchiveEntry **sorted = ARENA_ARRAY(arena, const ArchiveEntry *, a->count);
  for (uint32_t i = 0; i < a->count; i++)
    sorted[i] = &a->entries[i];
  qsort(sorted, a->count, sizeof *sorted, by_position);
  for (uint32_t i = 1; i < a->count; i++)
    if (sorted[i - 1]->data + sorted[i - 1]->packed > sorted[i]->header)
      return archive_error(sink, a->file.path, "'" SV_FMT "' and '" SV_FMT "' overlap",
                           SV_ARG(sorted[i - 1]->name), SV_ARG(sorted[i]->name));
  qsort(sorted, a->count, sizeof *sorted, by_name);
  for (uint32_t i = 1; i < a->count; i++)
    if (sv_eq(sorted[i - 1]->name, sorted[i]->name))
      return archive_error(sink, a->file.path, "'" SV_FMT "' is there twice",
                           SV_ARG(sorted[i]->name));
  return STATUS_OK;
}

static Status read_directory(Archive *a, Arena *arena, DiagSink *sink) {
  const MappedFile *file = &a->file;
  if (file->size >= 6 && memcmp(file->data, "\x93NUMPY", 6) == 0) {
    a->entries = ARENA_NEW(arena, ArchiveEntry);
    *a->entries = (ArchiveEntry){.name = SV(""), .packed = file->size, .size = file->size};
    a->count = 1;
    return STATUS_OK;
  }
  Directory d;
  if (file->size < 4 || (memcmp(file->data, "PK", 2) != 0))
    return archive_error(sink, file->path, "this is neither an .npz nor an .npy file");
  if (!find_directory(file, &d) || d.entries > UINT32_MAX)
    return archive_error(sink, file->path,
                         "the archive has no directory, or a damaged one; it may be cut short");
  a->count = (uint32_t)d.entries;
  a->entries = ARENA_ARRAY(arena, ArchiveEntry, a->count);
  TRY(read_entries(a, &d, sink));
  return check_apart(a, arena, sink);
}

Status archive_open(Archive *archive, Arena *arena, DiagSink *sink, const char *path) {
  *archive = (Archive){.file.fd = -1};
  TRY(file_map(&archive->file, arena, sink, path));
  Status status = read_directory(archive, arena, sink);
  if (status != STATUS_OK)
    archive_close(archive);
  return status;
}

void archive_close(Archive *archive) { file_unmap(&archive->file); }

const ArchiveEntry *archive_find(const Archive *archive, StrView name) {
  for (uint32_t i = 0; i < archive->count; i++) {
    StrView entry = archive->entries[i].name;
    if (entry.size == 0 || (entry.size == name.size + 4 && sv_starts_with(entry, name) &&
                            memcmp(entry.data + name.size, ".npy", 4) == 0))
      return &archive->entries[i];
  }
  return NULL;
}

/* --- data --- */

struct ArchiveStream {
  const Archive *archive;
  const ArchiveEntry *entry;
  const char *label;
  DiagSink *sink;
  uint64_t at;   /* next packed byte, from the start of the data */
  uint64_t left; /* bytes still to come out */
  uint32_t crc;
  bool skipped; /* the checksum cannot be compared */
  z_stream zip; /* of deflated entries */
  uint8_t buffer[BUFFER_SIZE];
};

static void *zip_alloc(void *unused, unsigned count, unsigned size) {
  (void)unused;
  return xmalloc((size_t)count * size);
}

static void zip_free(void *unused, void *p) {
  (void)unused;
  xfree(p);
}

Status archive_stream_open(ArchiveStream **out, const Archive *archive, const ArchiveEntry *entry,
                           const char *label, DiagSink *sink) {
  *out = NULL;
  if (entry->method != STORED && entry->method != DEFLATED)
    return archive_error(sink, archive->file.path,
                         "array '%s' is compressed by method %u; stored and deflated are read",
                         label, entry->method);
  ArchiveStream *s = xrealloc(NULL, sizeof *s);
  memset(s, 0, offsetof(ArchiveStream, buffer));
  s->archive = archive;
  s->entry = entry;
  s->label = label;
  s->sink = sink;
  s->left = entry->size;
  s->zip.zalloc = zip_alloc;
  s->zip.zfree = zip_free;
  if (entry->method == DEFLATED && inflateInit2(&s->zip, -MAX_WBITS) != Z_OK) {
    xfree(s);
    return archive_error(sink, archive->file.path, "there is too little memory to inflate '%s'",
                         label);
  }
  *out = s;
  return STATUS_OK;
}

void archive_stream_close(ArchiveStream *stream) {
  if (!stream)
    return;
  if (stream->entry->method == DEFLATED)
    inflateEnd(&stream->zip);
  xfree(stream);
}

static Status damaged(const ArchiveStream *s, const char *what) {
  return archive_error(s->sink, s->archive->file.path, "array '%s': %s", s->label, what);
}

/* Up to size packed bytes; *got is 0 only at the end of the entry. */
static Status read_packed(ArchiveStream *s, void *to, uint64_t size, size_t *got) {
  uint64_t left = s->entry->packed - s->at;
  size_t wanted = (size_t)(size < left ? size : left);
  *got = 0;
  if (wanted == 0)
    return STATUS_OK;
  ssize_t count;
  do
    count = pread(s->archive->file.fd, to, wanted, (off_t)(s->entry->data + s->at));
  while (count < 0 && errno == EINTR);
  if (count < 0)
    return damaged(s, strerror(errno));
  if (count == 0)
    return damaged(s, "the file has become shorter");
  s->at += (uint64_t)count;
  *got = (size_t)count;
  return STATUS_OK;
}

static Status read_stored(ArchiveStream *s, uint8_t *to, uint64_t size) {
  while (size) {
    size_t got;
    TRY(read_packed(s, to, size, &got));
    to += got;
    size -= got;
  }
  return STATUS_OK;
}

static Status read_deflated(ArchiveStream *s, uint8_t *to, uint64_t size) {
  while (size) {
    if (s->zip.avail_in == 0) {
      size_t got;
      TRY(read_packed(s, s->buffer, BUFFER_SIZE, &got));
      s->zip.next_in = s->buffer;
      s->zip.avail_in = (uInt)got;
    }
    uInt room = (uInt)(size < UINT32_MAX ? size : UINT32_MAX);
    s->zip.next_out = to;
    s->zip.avail_out = room;
    int result = inflate(&s->zip, Z_NO_FLUSH);
    uInt made = room - s->zip.avail_out;
    to += made;
    size -= made;
    if ((result != Z_OK && result != Z_STREAM_END) || (result == Z_STREAM_END && size))
      return damaged(s, "the compressed data are damaged or end too early");
  }
  return STATUS_OK;
}

/* A deflated entry whose last bytes are out has nothing more to give. */
static Status check_end(ArchiveStream *s) {
  if (s->left || !s->entry->checked || s->skipped)
    return STATUS_OK;
  return s->crc == s->entry->crc ? STATUS_OK : damaged(s, "the checksum does not match");
}

static Status read_bytes(ArchiveStream *s, void *to, uint64_t size) {
  if (size > s->left)
    return damaged(s, "it ends too early");
  TRY(s->entry->method == STORED ? read_stored(s, to, size) : read_deflated(s, to, size));
  s->left -= size;
  for (uint64_t done = 0; s->entry->checked && !s->skipped && done < size;) {
    uInt part = (uInt)(size - done < UINT32_MAX ? size - done : UINT32_MAX);
    s->crc = (uint32_t)crc32(s->crc, (const uint8_t *)to + done, part);
    done += part;
  }
  return STATUS_OK;
}

Status archive_stream_read(ArchiveStream *stream, void *to, uint64_t size) {
  TRY(read_bytes(stream, to, size));
  return check_end(stream);
}

Status archive_stream_skip(ArchiveStream *stream, uint64_t size) {
  uint8_t passed[8192];
  if (stream->entry->method == STORED && size <= stream->left) {
    stream->skipped = stream->skipped || size;
    stream->at += size;
    stream->left -= size;
    size = 0;
  }
  while (size) {
    uint64_t part = size < sizeof passed ? size : sizeof passed;
    TRY(read_bytes(stream, passed, part));
    size -= part;
  }
  return check_end(stream);
}

/* --- headers --- */

static Status head_error(const ArchiveStream *s, const char *format, ...) ETC_PRINTF(2, 3);
static Status head_error(const ArchiveStream *s, const char *format, ...) {
  DiagPlace place = diag_file(s->archive->file.path);
  StrBuf before = {0};
  strbuf_printf(&before, "array '%s' ", s->label);
  va_list args;
  va_start(args, format);
  Status status = diag_vreport(s->sink, DIAG_NPY_FORMAT, place, strbuf_cstr(&before), format, args);
  va_end(args);
  strbuf_release(&before);
  return status;
}

Status archive_stream_head(ArchiveStream *stream, DType expected, Arena *arena, NpyHead *head) {
  const ArchiveEntry *entry = stream->entry;
  uint8_t preamble[NPY_PREAMBLE] = {0};
  TRY(archive_stream_read(stream, preamble, entry->size < NPY_PREAMBLE ? 0 : NPY_PREAMBLE));
  uint64_t at = npy_data_at(preamble);
  if (at < NPY_PREAMBLE || at > HEADER_MAX || at > entry->size)
    return head_error(stream, "has no header of a .npy file, or a damaged one");
  uint8_t *header = arena_alloc(arena, (size_t)at);
  memcpy(header, preamble, sizeof preamble);
  TRY(archive_stream_read(stream, header + sizeof preamble, at - sizeof preamble));
  const char *path = stream->archive->file.path;
  if (entry->name.size)
    path = arena_printf(arena, "%s: " SV_FMT, path, SV_ARG(entry->name));
  TRY(npy_read_head(header, at, expected, path, stream->sink, head));
  if (head->bytes != entry->size - at)
    return head_error(stream, "needs %" PRIu64 " bytes by its shape, and has %" PRIu64, head->bytes,
                      entry->size - at);
  return STATUS_OK;
}

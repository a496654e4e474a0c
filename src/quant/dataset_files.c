/* The files of a data set: those of a folder, and the first one that has an input. See dataset.h.
 */
#include "quant/dataset_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "quant/archive.h"
#include "quant/dataset.h"
#include "support/text.h"

static int by_text(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void close_folder(void *block) {
  DIR **hold = block;
  if (*hold)
    closedir(*hold);
}

Status folder_list(const char *path, Arena *arena, DiagSink *sink, FolderNames *npz,
                   FolderNames *npy) {
  DIR **hold = memory_guard(sizeof *hold, close_folder), *folder = *hold = opendir(path);
  if (!folder) {
    xfree(hold);
    return diag_report(sink, DIAG_FILE_OPEN, diag_file(path), "cannot read folder '%s': %s", path,
                       strerror(errno));
  }
  for (struct dirent *entry; (entry = readdir(folder));) {
    StrView name = sv_from(entry->d_name);
    FolderNames *names = sv_has_suffix(name, SV(".npz"))   ? npz
                         : sv_has_suffix(name, SV(".npy")) ? npy
                                                           : NULL;
    if (!names || name.data[0] == '.')
      continue;
    POOL_PUSH(names->names, names->count, names->capacity, arena_strdup(arena, name));
  }
  close_folder(hold);
  xfree(hold);
  file_note(sink, path); /* its time of change is that of its list of files */
  if (npz->count)
    qsort(npz->names, npz->count, sizeof *npz->names, by_text);
  if (npy->count)
    qsort(npy->names, npy->count, sizeof *npy->names, by_text);
  return STATUS_OK;
}

bool folder_has(const FolderNames *names, const char *name) {
  return bsearch(&name, names->names, names->count, sizeof *names->names, by_text) != NULL;
}

char *folder_file_of(Arena *arena, StrView name) {
  char *stem = arena_strdup(arena, name);
  for (char *c = stem; *c; c++)
    *c = text_file_char(*c);
  return arena_printf(arena, "%s.npy", stem);
}

/* The first file that has the array of an input. */
static Status first_file(const char *path, StrView input, Arena *arena, DiagSink *sink,
                         const char **file) {
  FolderNames npz = {0}, npy = {0};
  *file = path;
  if (!file_is_folder(path))
    return STATUS_OK;
  TRY(folder_list(path, arena, sink, &npz, &npy));
  const char *own = folder_file_of(arena, input), *name = npz.count ? npz.names[0] : NULL;
  if (npy.count && !npz.count)
    name = folder_has(&npy, own) ? own : npy.names[0];
  *file = name ? arena_printf(arena, "%s/%s", path, name) : NULL;
  xfree(npz.names);
  xfree(npy.names);
  return STATUS_OK;
}

static Status peek(const Archive *archive, StrView input, Arena *arena, DiagSink *sink,
                   NpyHead *head, bool *found) {
  ArchiveStream *stream;
  const ArchiveEntry *entry = archive_find(archive, input);
  if (!entry)
    return STATUS_OK;
  TRY(archive_stream_open(&stream, archive, entry, arena_strdup(arena, input), sink));
  Status status = archive_stream_head(stream, DTYPE_NONE, arena, head);
  archive_stream_close(stream);
  *found = status == STATUS_OK;
  return status;
}

Status dataset_peek(const char *path, StrView input, Arena *arena, DiagSink *sink, NpyHead *head,
                    bool *found) {
  const char *file;
  Archive archive;
  *found = false;
  TRY(first_file(path, input, arena, sink, &file));
  if (!file)
    return STATUS_OK;
  TRY(archive_open(&archive, arena, sink, file));
  Status status = peek(&archive, input, arena, sink, head, found);
  archive_close(&archive);
  return status;
}

Status dataset_files(const char *path, Arena *arena, DiagSink *sink, const char ***files,
                     uint32_t *count) {
  FolderNames npz = {0}, npy = {0};
  if (file_is_folder(path))
    TRY(folder_list(path, arena, sink, &npz, &npy));
  *files = ARENA_ARRAY(arena, const char *, (size_t)npz.count + npy.count + 1);
  *count = 0;
  for (uint32_t i = 0; i < npz.count; i++)
    (*files)[(*count)++] = arena_printf(arena, "%s/%s", path, npz.names[i]);
  for (uint32_t i = 0; i < npy.count; i++)
    (*files)[(*count)++] = arena_printf(arena, "%s/%s", path, npy.names[i]);
  if (!file_is_folder(path))
    (*files)[(*count)++] = path;
  xfree(npz.names);
  xfree(npy.names);
  return STATUS_OK;
}

/* Read-only mappings of regular files.
 *
 * The file is opened without blocking and looked at before anything else, so that a FIFO or a
 * device named by a model can neither hang nor feed the compiler. For external data the kernel
 * resolves the path below the model's folder (openat2, Linux 5.6); where it cannot (older kernel,
 * seccomp), each component is opened with O_NOFOLLOW. Checking the text of a path alone is not
 * enough: CVE-2024-27318 and CVE-2026-27489 of ONNX got past such checks by other spellings and by
 * links. */
#include "support/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/text.h"

enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

static int64_t change_time(const struct stat *st) {
  return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* --- what the system gave --- */

struct FileHold {
  int fd; /* -1: none */
  void *data;
  size_t size;
};

static void close_hold(void *block) {
  FileHold *hold = block;
  if (hold->data)
    munmap(hold->data, hold->size);
  if (hold->fd >= 0)
    close(hold->fd);
}

/* Made before anything is opened, so that nothing can be lost. */
static FileHold *new_hold(void) {
  FileHold *hold = memory_guard(sizeof *hold, close_hold);
  hold->fd = -1;
  return hold;
}

static void let_go(FileHold *hold) {
  if (hold)
    close_hold(hold);
  xfree(hold);
}

bool file_map_bytes(MappedFile *file, int fd, int flags) {
  errno = EFBIG;
  file->hold = file->hold ? file->hold : new_hold();
  void *data =
      file->size <= SIZE_MAX ? mmap(NULL, (size_t)file->size, PROT_READ, flags, fd, 0) : MAP_FAILED;
  if (data == MAP_FAILED)
    return false;
  file->hold->size = (size_t)file->size;
  file->data = file->hold->data = data;
  return true;
}

void file_close_descriptor(MappedFile *file) {
  if (file->fd >= 0)
    close(file->fd);
  file->fd = file->hold->fd = -1;
}

/* Maps the open descriptor of the hold, which is let go on failure. st was read from it. */
static Status map_descriptor(MappedFile *file, DiagSink *sink, FileHold *hold,
                             const struct stat *st, char *path, DiagPlace place) {
  *file = (MappedFile){.fd = hold->fd,
                       .hold = hold,
                       .path = path,
                       .size = (uint64_t)st->st_size,
                       .changed_ns = change_time(st)};
  if (file->size == 0 || file_map_bytes(file, hold->fd, MAP_PRIVATE))
    return STATUS_OK;
  int error = errno;
  file_unmap(file);
  return diag_report(sink, DIAG_FILE_OPEN, place, "cannot map '%s': %s", path, strerror(error));
}

/* --- the list of what was read --- */

void files_read_init(FilesRead *files) {
  *files = (FilesRead){0};
  intern_init(&files->paths);
}

void files_read_release(FilesRead *files) {
  intern_release(&files->paths);
  xfree(files->versions);
}

static void note(DiagSink *sink, const char *path, const struct stat *st) {
  FilesRead *files = sink->files;
  if (!files || intern_find(&files->paths, sv_from(path)))
    return;
  uint32_t id = intern_add(&files->paths, sv_from(path));
  files->versions =
      pool_reserve(files->versions, &files->capacity, (uint64_t)id + 1, sizeof *files->versions);
  files->versions[id] = (struct FileVersion){(uint64_t)st->st_size, (uint64_t)st->st_dev,
                                             (uint64_t)st->st_ino, change_time(st)};
}

void file_note(DiagSink *sink, const char *path) {
  struct stat st;
  if (stat(path, &st) == 0)
    note(sink, path, &st);
}

const char *files_read_path(const FilesRead *files, const char *path) {
  struct stat st;
  if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
    return NULL;
  for (uint32_t id = 1; id <= files->paths.count; id++)
    if (files->versions[id].inode == (uint64_t)st.st_ino &&
        files->versions[id].device == (uint64_t)st.st_dev)
      return intern_get(&files->paths, id).data;
  return NULL;
}

static Status report_changed(DiagSink *sink, const char *path) {
  return diag_report(sink, DIAG_FILE_CHANGED, diag_file(path),
                     "'%s' changed while it was being read", path);
}

Status files_read_unchanged(const FilesRead *files, DiagSink *sink) {
  for (uint32_t id = 1; id <= files->paths.count; id++) {
    const char *path = intern_get(&files->paths, id).data;
    struct stat st;
    if (stat(path, &st) != 0 || (uint64_t)st.st_size != files->versions[id].size ||
        change_time(&st) != files->versions[id].changed_ns)
      return report_changed(sink, path);
  }
  return STATUS_OK;
}

/* --- mapping --- */

static Status report_irregular(DiagSink *sink, const struct stat *st, const char *path,
                               DiagPlace place) {
  if (S_ISDIR(st->st_mode))
    return diag_report(sink, DIAG_FILE_IS_DIRECTORY, place, "'%s' is a folder", path);
  const char *kind = S_ISFIFO(st->st_mode)   ? "a pipe"
                     : S_ISSOCK(st->st_mode) ? "a socket"
                                             : "a device";
  return diag_report(sink, DIAG_FILE_NOT_REGULAR, place, "'%s' is %s, not a regular file", path,
                     kind);
}

/* Whether name is nearer to word than best is; of equally near ones the first in the alphabet. */
static bool is_nearer(StrView word, const char *name, const char *best) {
  const char *ahead[] = {best, name}, *behind[] = {name, best};
  if (!*best)
    return text_nearest(word, &name, 1) != NULL;
  return text_nearest(word, ahead, 2) == name ||
         (strcmp(name, best) < 0 && text_nearest(word, behind, 2) == name);
}

enum { SHORT_NAME = 3 };

/* The hint of d: the file beside path whose name is nearest to it. Of short names all are near. */
static void hint_neighbour(Diag *d, const char *path) {
  const char *slash = strrchr(path, '/');
  int prefix = slash ? (int)(slash + 1 - path) : 0;
  char folder[PATH_MAX], best[NAME_MAX + 1] = "";
  if (strcspn(path + prefix, ".") < SHORT_NAME ||
      snprintf(folder, sizeof folder, "%.*s.", prefix, path) >= (int)sizeof folder)
    return;
  DIR *open_folder = opendir(folder);
  if (!open_folder)
    return;
  for (struct dirent *entry; (entry = readdir(open_folder));)
    if (entry->d_name[0] != '.' && is_nearer(sv_from(path + prefix), entry->d_name, best))
      snprintf(best, sizeof best, "%s", entry->d_name);
  closedir(open_folder);
  if (*best)
    diag_hint(d, "did you mean '%.*s%s'?", prefix, path, best);
}

static Status report_unreadable(DiagSink *sink, const char *path, int error) {
  Diag *d = diag_begin(sink, DIAG_FILE_OPEN, diag_unreadable(sink, path));
  diag_message(d, "cannot open '%s': %s", path, strerror(error));
  if (error == ENOENT)
    hint_neighbour(d, path);
  return diag_end(d);
}

Status file_map(MappedFile *file, Arena *arena, DiagSink *sink, const char *path) {
  DiagPlace place = diag_file(path);
  char *copy = arena_strdup(arena, sv_from(path));
  *file = (MappedFile){.fd = -1, .path = copy};
  FileHold *hold = new_hold();
  struct stat st;
  hold->fd = open(path, OPEN_FLAGS);
  if (hold->fd < 0 || fstat(hold->fd, &st) != 0) {
    int error = errno;
    let_go(hold);
    if (error == ENXIO) /* a socket */
      return diag_report(sink, DIAG_FILE_NOT_REGULAR, place, "'%s' is not a regular file", path);
    return report_unreadable(sink, path, error);
  }
  if (!S_ISREG(st.st_mode)) {
    let_go(hold);
    return report_irregular(sink, &st, path, place);
  }
  note(sink, path, &st);
  return map_descriptor(file, sink, hold, &st, copy, place);
}

void file_of_bytes(MappedFile *file, Arena *arena, const char *name, const uint8_t *data,
                   uint64_t size) {
  *file = (MappedFile){
      .data = data, .size = size, .fd = -1, .path = arena_strdup(arena, sv_from(name))};
}

/* --- standard input --- */

int file_temporary(void) {
  const char *folder = getenv("TMPDIR");
  char path[PATH_MAX];
  if (!folder || !folder[0])
    folder = "/tmp";
  int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0)
    return fd;
  int size = snprintf(path, sizeof path, "%s/etc-XXXXXX", folder);
  if (size < 0 || (size_t)size >= sizeof path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  fd = mkostemp(path, O_CLOEXEC); /* a file system that has no files without names */
  if (fd >= 0)
    (void)unlink(path);
  return fd;
}

static bool write_all(int fd, const char *data, size_t size) {
  while (size) {
    ssize_t written = write(fd, data, size);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return false;
    data += written;
    size -= (size_t)written;
  }
  return true;
}

static bool copy_stdin(int to) {
  char buffer[1 << 16];
  for (;;) {
    ssize_t got = read(STDIN_FILENO, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return got == 0;
    if (!write_all(to, buffer, (size_t)got))
      return false;
  }
}

Status file_map_stdin(MappedFile *file, Arena *arena, DiagSink *sink) {
  struct stat st;
  *file = (MappedFile){.fd = -1, .path = arena_strdup(arena, SV("<stdin>"))};
  DiagPlace place = diag_file(file->path);
  bool direct =
      fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode) && lseek(STDIN_FILENO, 0, SEEK_CUR) == 0;
  FileHold *hold = new_hold();
  hold->fd = direct ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : file_temporary();
  if (hold->fd >= 0 && (direct || copy_stdin(hold->fd)) && fstat(hold->fd, &st) == 0)
    return map_descriptor(file, sink, hold, &st, file->path, place);
  int error = errno;
  let_go(hold);
  return diag_report(sink, DIAG_FILE_OPEN, place, "cannot read standard input%s: %s",
                     direct ? "" : " into a temporary file", strerror(error));
}

/* --- external data --- */

/* Why a relative path is refused by its text alone, or NULL. */
static const char *path_fault(StrView relative) {
  if (relative.size == 0)
    return "is empty";
  if (memchr(relative.data, '\0', relative.size))
    return "holds a NUL character";
  if (relative.data[0] == '/')
    return "is absolute";
  if (relative.size >= PATH_MAX)
    return "is too long";
  for (size_t at = 0; at < relative.size;) {
    const char *slash = memchr(relative.data + at, '/', relative.size - at);
    size_t end = slash ? (size_t)(slash - relative.data) : relative.size;
    if (sv_eq((StrView){relative.data + at, end - at}, SV("..")))
      return "leaves the folder of the model";
    at = end + 1;
  }
  return NULL;
}

/* Opens each folder on the way without following links. path is changed while walking. */
static int open_by_components(int folder, char *path) {
  int at = dup(folder);
  for (char *part = path; at >= 0;) {
    part += strspn(part, "/");
    char *slash = strchr(part, '/');
    bool is_last = !slash || slash[strspn(slash, "/")] == '\0';
    int flags = is_last && !slash ? OPEN_FLAGS : O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    if (slash)
      *slash = '\0';
    int next = openat(at, part, flags | O_NOFOLLOW);
    int error = errno;
    close(at);
    errno = error;
    at = next;
    if (is_last)
      break;
    part = slash + 1;
  }
  return at;
}

/* A descriptor of path below folder, or -1 and errno. */
static int open_beneath(int folder, char *path, bool links) {
  struct open_how how = {.flags = OPEN_FLAGS,
                         .resolve =
                             links ? RESOLVE_NO_MAGICLINKS : RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
  long fd = syscall(SYS_openat2, folder, path, &how, sizeof how);
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EAGAIN))
    return (int)fd;
  return links ? openat(folder, path, OPEN_FLAGS) : open_by_components(folder, path);
}

/* The part of path before its last component, "." if there is none; with the last slash when it is
 * the root. */
static char *folder_of(Arena *arena, const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash)
    return arena_strdup(arena, SV("."));
  return arena_strdup(arena, (StrView){path, slash == path ? 1 : (size_t)(slash - path)});
}

static Status report_link(DiagSink *sink, DiagPlace place, const char *what) {
  Diag *d = diag_begin(sink, DIAG_EXTERNAL_PATH, place);
  diag_message(d, "%s", what);
  diag_hint(d, "--allow-linked-data permits links; or copy the data file itself into the model's "
               "folder (cp -L resolves links)");
  return diag_end(d);
}

static Status report_open_beneath(DiagSink *sink, Arena *arena, DiagPlace place, const char *name,
                                  int error) {
  if (error == ELOOP || error == EXDEV)
    return report_link(sink, place,
                       arena_printf(arena,
                                    "external data '%s' is reached over a symbolic link or leaves "
                                    "the folder",
                                    name));
  if (error == ENXIO)
    return diag_report(sink, DIAG_EXTERNAL_PATH, place, "external data '%s' is not a regular file",
                       name);
  return diag_report(sink, DIAG_FILE_OPEN, place, "cannot open external data '%s': %s", name,
                     strerror(error));
}

/* Regular, and with one name only: a hard link would be a way out of the folder that no path shows.
 */
static Status check_external(DiagSink *sink, Arena *arena, DiagPlace place, const char *name,
                             bool links, const struct stat *st) {
  if (!S_ISREG(st->st_mode))
    return diag_report(sink, DIAG_EXTERNAL_PATH, place, "external data '%s' is not a regular file",
                       name);
  if (st->st_nlink != 1 && !links)
    return report_link(sink, place,
                       arena_printf(arena, "external data '%s' has %llu hard links", name,
                                    (unsigned long long)st->st_nlink));
  return STATUS_OK;
}

static Status report_path(DiagSink *sink, DiagPlace place, StrView path, const char *fault) {
  Diag *d = diag_begin(sink, DIAG_EXTERNAL_PATH, place);
  diag_message(d, "the path of external data '" SV_FMT "' %s", SV_ARG(path), fault);
  if (sv_has_suffix(place.file, SV(".etir")))
    diag_hint(d, "run 'etc print' in the folder of that file, and keep the text there");
  return diag_end(d);
}

Status file_map_beneath(MappedFile *file, Arena *arena, DiagSink *sink, const char *base_path,
                        StrView relative, bool links, DiagPlace place) {
  *file = (MappedFile){.fd = -1};
  const char *fault = path_fault(relative);
  if (fault)
    return report_path(sink, place, relative, fault);
  char *name = arena_strdup(arena, relative), *walk = arena_strdup(arena, relative);
  char *folder = folder_of(arena, base_path);
  file->path = arena_printf(arena, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, name);
  FileHold *hold = new_hold();
  struct stat st;
  Status status;
  int folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = errno;
  if (folder_fd >= 0) {
    hold->fd = open_beneath(folder_fd, walk, links);
    error = errno;
    close(folder_fd);
  }
  if (folder_fd < 0)
    status = diag_report(sink, DIAG_FILE_OPEN, place, "cannot open the folder '%s': %s", folder,
                         strerror(error));
  else if (hold->fd < 0)
    status = report_open_beneath(sink, arena, place, name, error);
  else if (fstat(hold->fd, &st) != 0)
    status = report_open_beneath(sink, arena, place, name, errno);
  else
    status = check_external(sink, arena, place, name, links, &st);
  if (status != STATUS_OK) {
    let_go(hold);
    return status;
  }
  note(sink, file->path, &st);
  return map_descriptor(file, sink, hold, &st, file->path, place);
}

Status file_check_unchanged(const MappedFile *file, DiagSink *sink) {
  struct stat st;
  if (file->fd < 0 || (fstat(file->fd, &st) == 0 && (uint64_t)st.st_size == file->size &&
                       change_time(&st) == file->changed_ns))
    return STATUS_OK;
  return report_changed(sink, file->path);
}

static bool fetch(const MappedFile *file, uint64_t offset, uint64_t size) {
#ifdef MADV_POPULATE_READ
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), begin = offset / page * page;
  return madvise((void *)(uintptr_t)(file->data + begin), offset + size - begin,
                 MADV_POPULATE_READ) == 0;
#else
  (void)file, (void)offset, (void)size;
  return false;
#endif
}

/* Fetching and dropping takes as long as hashing what is there: a file of no great size is fetched
 * once, and stays. */
bool file_fetch_pages(const MappedFile *file, uint64_t offset, uint64_t size) {
  atomic_bool *fetched = (atomic_bool *)(uintptr_t)&file->fetched; /* a note, no change to a file */
  if (!file->data || file->size > FILE_KEPT_MAX)
    return file->data && fetch(file, offset, size);
  if (!atomic_load(fetched) && fetch(file, 0, file->size))
    atomic_store(fetched, true);
  return atomic_load(fetched);
}

void file_drop_pages(const MappedFile *file, uint64_t offset, uint64_t size) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), end = (offset + size) / page * page;
  offset = align_up(offset, page);
  if (file->data && offset < end && file->size > FILE_KEPT_MAX)
    (void)madvise((void *)(uintptr_t)(file->data + offset), end - offset, MADV_DONTNEED);
}

void file_unmap(MappedFile *file) {
  let_go(file->hold);
  *file = (MappedFile){.fd = -1, .path = file->path};
}

bool file_same_place(const char *a, const char *b) {
  if (strcmp(a, b) == 0 || file_same(a, b))
    return true;
  const char *x = strrchr(a, '/'), *y = strrchr(b, '/');
  if (strcmp(x ? x + 1 : a, y ? y + 1 : b) != 0)
    return false;
  char folders[2][PATH_MAX];
  int sizes[] = {snprintf(folders[0], PATH_MAX, "%.*s.", (int)(x ? x + 1 - a : 0), a),
                 snprintf(folders[1], PATH_MAX, "%.*s.", (int)(y ? y + 1 - b : 0), b)};
  return sizes[0] < PATH_MAX && sizes[1] < PATH_MAX && file_same(folders[0], folders[1]);
}

bool file_is_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool file_same(const char *a, const char *b) {
  struct stat x, y;
  return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

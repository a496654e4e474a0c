/* Read-only mappings of regular files.
 *
 * The file is opened without blocking and looked at before anything else, so that a FIFO or a
 * device named by a model can neither hang nor feed the compiler. For external data the kernel
 * resolves the path below the model's folder (openat2, Linux 5.6); where it cannot (older kernel,
 * seccomp), each component is opened with O_NOFOLLOW. Checking the text of a path alone is not
 * enough: CVE-2024-27318 and CVE-2026-27489 of ONNX got past such checks by other spellings and by
 * links. */
#include "support/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

static DiagPlace place_of(const char *path) {
  DiagPlace place = DIAG_NOWHERE;
  place.file = sv_from(path);
  return place;
}

static int64_t change_time(const struct stat *st) {
  return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* Maps the open descriptor, which is closed on failure. st was read from it. */
static Status map_descriptor(MappedFile *file, DiagSink *sink, int fd, const struct stat *st,
                             char *path, DiagPlace place) {
  *file = (MappedFile){
      .fd = fd, .path = path, .size = (uint64_t)st->st_size, .changed_ns = change_time(st)};
  if (file->size == 0)
    return STATUS_OK;
  void *data =
      file->size <= SIZE_MAX ? mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  if (data == MAP_FAILED) {
    int error = errno;
    close(fd);
    *file = (MappedFile){.fd = -1, .path = path};
    return diag_report(sink, DIAG_FILE_OPEN, place, "cannot map '%s': %s", path, strerror(error));
  }
  file->data = data;
  return STATUS_OK;
}

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

Status file_map(MappedFile *file, Arena *arena, DiagSink *sink, const char *path) {
  DiagPlace place = place_of(path);
  char *copy = arena_strdup(arena, sv_from(path));
  *file = (MappedFile){.fd = -1, .path = copy};
  struct stat st;
  int fd = open(path, OPEN_FLAGS);
  if (fd < 0 || fstat(fd, &st) != 0) {
    int error = errno;
    if (fd >= 0)
      close(fd);
    if (error == ENXIO) /* a socket */
      return diag_report(sink, DIAG_FILE_NOT_REGULAR, place, "'%s' is not a regular file", path);
    return diag_report(sink, DIAG_FILE_OPEN, place, "cannot open '%s': %s", path, strerror(error));
  }
  if (!S_ISREG(st.st_mode)) {
    close(fd);
    return report_irregular(sink, &st, path, place);
  }
  return map_descriptor(file, sink, fd, &st, copy, place);
}

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

/* A descriptor of path below folder with no link followed, or -1 and errno. */
static int open_beneath(int folder, char *path) {
  struct open_how how = {.flags = OPEN_FLAGS, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
  long fd = syscall(SYS_openat2, folder, path, &how, sizeof how);
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EAGAIN))
    return (int)fd;
  return open_by_components(folder, path);
}

/* The part of path before its last component, "." if there is none; with the last slash when it is
 * the root. */
static char *folder_of(Arena *arena, const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash)
    return arena_strdup(arena, SV("."));
  return arena_strdup(arena, (StrView){path, slash == path ? 1 : (size_t)(slash - path)});
}

static Status report_open_beneath(DiagSink *sink, DiagPlace place, const char *name, int error) {
  if (error == ELOOP || error == EXDEV)
    return diag_report(sink, DIAG_EXTERNAL_PATH, place,
                       "external data '%s' is reached over a symbolic link or leaves the folder",
                       name);
  if (error == ENXIO)
    return diag_report(sink, DIAG_EXTERNAL_PATH, place, "external data '%s' is not a regular file",
                       name);
  return diag_report(sink, DIAG_FILE_OPEN, place, "cannot open external data '%s': %s", name,
                     strerror(error));
}

/* Regular, and with one name only: a hard link would be a way out of the folder that no path shows.
 */
static Status check_external(DiagSink *sink, DiagPlace place, const char *name,
                             const struct stat *st) {
  if (!S_ISREG(st->st_mode))
    return diag_report(sink, DIAG_EXTERNAL_PATH, place, "external data '%s' is not a regular file",
                       name);
  if (st->st_nlink != 1)
    return diag_report(sink, DIAG_EXTERNAL_PATH, place, "external data '%s' has %llu hard links",
                       name, (unsigned long long)st->st_nlink);
  return STATUS_OK;
}

Status file_map_beneath(MappedFile *file, Arena *arena, DiagSink *sink, const char *base_path,
                        StrView relative, DiagPlace place) {
  *file = (MappedFile){.fd = -1};
  const char *fault = path_fault(relative);
  if (fault)
    return diag_report(sink, DIAG_EXTERNAL_PATH, place, "the path of external data '" SV_FMT "' %s",
                       SV_ARG(relative), fault);
  char *name = arena_strdup(arena, relative), *walk = arena_strdup(arena, relative);
  char *folder = folder_of(arena, base_path);
  file->path = arena_printf(arena, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, name);
  int folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_fd < 0)
    return diag_report(sink, DIAG_FILE_OPEN, place, "cannot open the folder '%s': %s", folder,
                       strerror(errno));
  struct stat st;
  int fd = open_beneath(folder_fd, walk), error = errno;
  close(folder_fd);
  if (fd < 0)
    return report_open_beneath(sink, place, name, error);
  Status status = fstat(fd, &st) == 0 ? check_external(sink, place, name, &st)
                                      : report_open_beneath(sink, place, name, errno);
  if (status != STATUS_OK) {
    close(fd);
    return status;
  }
  return map_descriptor(file, sink, fd, &st, file->path, place);
}

Status file_check_unchanged(const MappedFile *file, DiagSink *sink) {
  struct stat st;
  if (file->fd < 0 || (fstat(file->fd, &st) == 0 && (uint64_t)st.st_size == file->size &&
                       change_time(&st) == file->changed_ns))
    return STATUS_OK;
  return diag_report(sink, DIAG_FILE_CHANGED, place_of(file->path),
                     "'%s' changed while it was being read", file->path);
}

void file_unmap(MappedFile *file) {
  if (file->data)
    munmap((void *)(uintptr_t)file->data, file->size);
  if (file->fd >= 0)
    close(file->fd);
  *file = (MappedFile){.fd = -1, .path = file->path};
}

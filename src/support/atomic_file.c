/* Output that is there whole or not at all: a temporary file in the folder of the target, renamed
 * at the end (rename(2) replaces in one step). The list of pending temporaries is a fixed array of
 * path buffers whose state is one atomic word each, so that a signal handler, BUG() and whoever
 * has run out of memory can remove the files without a lock. */
#include "support/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  BUFFER_SIZE = 1 << 18,
  PENDING_MAX = 16,
  COPY_MIN = 1 << 16,
  WRITE_MAX = 1 << 30,
  COPY_MAX = 1 << 26,
  PAGES_MAX = 1 << 22
};

typedef enum SlotState { SLOT_FREE, SLOT_FILLING, SLOT_LIVE } SlotState;

/* State of the process, because a signal handler gets no argument. */
static struct {
  atomic_int state; /* SlotState */
  char path[PATH_MAX];
} pending[PENDING_MAX];

static int pending_add(const char *path) {
  size_t size = strlen(path) + 1;
  for (int i = 0; i < PENDING_MAX && size <= PATH_MAX; i++) {
    int expected = SLOT_FREE;
    if (!atomic_compare_exchange_strong(&pending[i].state, &expected, SLOT_FILLING))
      continue;
    memcpy(pending[i].path, path, size);
    atomic_store(&pending[i].state, SLOT_LIVE);
    return i;
  }
  return -1;
}

static void pending_drop(int slot) {
  if (slot >= 0)
    atomic_store(&pending[slot].state, SLOT_FREE);
}

/* What is to be closed and removed unless the file is finished. */
typedef struct OutputHold {
  int fd;   /* -1: none */
  int slot; /* in the list of pending files, of one that is there; -1: none */
} OutputHold;

static void close_hold(void *block) {
  OutputHold *hold = block;
  if (hold->fd >= 0)
    close(hold->fd);
  if (hold->slot >= 0)
    (void)unlink(pending[hold->slot].path);
  pending_drop(hold->slot);
}

void atomic_file_remove_pending(void) {
  int error = errno;
  for (int i = 0; i < PENDING_MAX; i++)
    if (atomic_load(&pending[i].state) == SLOT_LIVE)
      (void)unlink(pending[i].path);
  errno = error;
}

Status report_stdout(DiagSink *sink, int error) {
  Diag *d = diag_begin(sink, DIAG_FILE_WRITE, DIAG_NOWHERE);
  diag_message(d, "cannot write to standard output: %s", strerror(error));
  diag_hint(
      d,
      "check what standard output is connected to: a full disk, a program that ended, or nothing");
  return diag_end(d);
}

/* Reports a failure once; later writes do nothing. */
static void fail(AtomicFile *file, DiagCode code, const char *what, int error) {
  if (!file->failed && file->is_stdout)
    (void)report_stdout(file->sink, error);
  else if (!file->failed)
    (void)diag_report(file->sink, code, diag_file(file->path), "cannot %s '%s': %s", what,
                      file->path, strerror(error));
  file->failed = true;
}

static void close_and_remove(AtomicFile *file) {
  if (file->hold)
    close_hold(file->hold);
  xfree(file->hold);
  file->hold = NULL;
  file->temporary = NULL;
  xfree(file->buffer);
  file->buffer = NULL;
  file->buffered = 0;
}

/* Where a chain of links leads whose end is not there yet: it stays a link then, too. */
static char *follow_links(Arena *arena, char *path) {
  enum { MAX_LINKS = 40 };
  char link[PATH_MAX];
  for (int i = 0; i < MAX_LINKS; i++) {
    ssize_t size = readlink(path, link, sizeof link);
    if (size <= 0 || (size_t)size == sizeof link)
      return path;
    const char *slash = strrchr(path, '/');
    int folder = slash && link[0] != '/' ? (int)(slash + 1 - path) : 0;
    path = arena_printf(arena, "%.*s%.*s", folder, path, (int)size, link);
  }
  return path;
}

/* Where the output goes and what is there now. */
static Status look_at_target(AtomicFile *file, Arena *arena, bool *direct) {
  char resolved[PATH_MAX];
  struct stat st;
  *direct = false;
  file->target = realpath(file->path, resolved) ? arena_strdup(arena, sv_from(resolved))
                                                : follow_links(arena, file->path);
  if (stat(file->target, &st) != 0)
    return STATUS_OK; /* a new file, or a fault that opening will report */
  if (S_ISDIR(st.st_mode))
    return diag_report(file->sink, DIAG_FILE_IS_DIRECTORY, diag_file(file->path),
                       "the output '%s' is a folder", file->path);
  *direct = !S_ISREG(st.st_mode);
  const char *read = file->sink->files ? files_read_path(file->sink->files, file->target) : NULL;
  if (read) {
    Diag *d = diag_begin(file->sink, DIAG_FILE_WRITE, diag_file(file->path));
    diag_message(d, "'%s' would take the place of '%s', which is being read", file->path, read);
    diag_hint(d, "give the output another name");
    return diag_end(d);
  }
  file->mode = st.st_mode & 07777;
  if (!*direct && access(file->target, W_OK) != 0)
    return diag_report(file->sink, DIAG_FILE_WRITE, diag_file(file->path),
                       "cannot replace '%s': %s", file->path, strerror(errno));
  return STATUS_OK;
}

/* "folder/name.tmp-PID-N"; a name too long for the additions is shortened, since it may be as long
 * as a name can be. */
static char *temporary_name(const AtomicFile *file, Arena *arena, unsigned n) {
  const char *slash = strrchr(file->target, '/');
  size_t folder = slash ? (size_t)(slash + 1 - file->target) : 0,
         name = strlen(file->target + folder);
  StrView kept = {file->target, folder + (name < 200 ? name : 200)};
  return arena_printf(arena, SV_FMT ".tmp-%ld-%u", SV_ARG(kept), (long)getpid(), n);
}

static int open_temporary(AtomicFile *file, Arena *arena) {
  for (unsigned n = 0; n < 1000; n++) {
    char *name = temporary_name(file, arena, n);
    int slot = pending_add(name);
    if (slot < 0) {
      errno = strlen(name) < PATH_MAX ? EMFILE : ENAMETOOLONG;
      return -1;
    }
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) { /* no allocation before the hold has it */
      file->temporary = name;
      file->hold->slot = slot;
      return fd;
    }
    int error = errno;
    pending_drop(slot);
    errno = error;
    if (error != EEXIST)
      return -1;
  }
  return -1;
}

/* The descriptor to write to, or -1 and errno, in the hold. */
static Status open_output(AtomicFile *file, Arena *arena, const char *path) {
  bool direct;
  file->is_stdout = strcmp(path, "-") == 0;
  file->path = arena_strdup(arena, file->is_stdout ? SV("<stdout>") : sv_from(path));
  if (file->is_stdout) {
    file->target = file->path;
    file->hold->fd = file_temporary();
    return STATUS_OK;
  }
  TRY(look_at_target(file, arena, &direct));
  file->hold->fd =
      direct ? open(file->target, O_WRONLY | O_CLOEXEC | O_NOCTTY) : open_temporary(file, arena);
  return STATUS_OK;
}

/* error: the errno of opening it. */
static Status report_open(const AtomicFile *file, int error) {
  const char *slash = strrchr(file->target, '/');
  Diag *d = diag_begin(file->sink, DIAG_FILE_WRITE, diag_file(file->path));
  diag_message(d, "cannot make the output '%s': %s", file->path, strerror(error));
  if (error == ENOENT && slash)
    diag_hint(d, "make its folder first: mkdir -p '%.*s'", (int)(slash - file->target),
              file->target);
  return diag_end(d);
}

Status atomic_file_open(AtomicFile *file, Arena *arena, DiagSink *sink, const char *path) {
  *file = (AtomicFile){.sink = sink, .failed = true};
  file->hold = memory_guard(sizeof *file->hold, close_hold);
  *file->hold = (OutputHold){.fd = -1, .slot = -1};
  Status status = open_output(file, arena, path);
  if (status == STATUS_OK && file->hold->fd < 0)
    status = report_open(file, errno);
  if (status == STATUS_OK)
    file->buffer = xmalloc(BUFFER_SIZE);
  else
    close_and_remove(file);
  file->failed = status != STATUS_OK;
  return status;
}

static void write_to(AtomicFile *file, int fd, const uint8_t *data, uint64_t size) {
  while (size > 0 && !file->failed) {
    ssize_t written = write(fd, data, size < WRITE_MAX ? size : WRITE_MAX);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0) {
      fail(file, DIAG_FILE_WRITE, "write", written < 0 ? errno : EIO);
      return;
    }
    data += written;
    size -= (uint64_t)written;
  }
}

static void write_through(AtomicFile *file, const uint8_t *data, uint64_t size) {
  write_to(file, file->hold->fd, data, size);
}

/* All that was written, now that it is whole; the buffer is empty. */
static void copy_to_stdout(AtomicFile *file) {
  for (uint64_t at = 0; at < file->offset && !file->failed;) {
    ssize_t got = pread(file->hold->fd, file->buffer, BUFFER_SIZE, (off_t)at);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      fail(file, DIAG_FILE_WRITE, "copy to", got < 0 ? errno : EIO);
    else if (file->deliver)
      file->deliver(file->deliver_user, (const char *)file->buffer, (size_t)got);
    else
      write_to(file, STDOUT_FILENO, file->buffer, (uint64_t)got);
    at += got > 0 ? (uint64_t)got : 0;
  }
}

static void flush_buffer(AtomicFile *file) {
  write_through(file, file->buffer, file->buffered);
  file->buffered = 0;
}

static void advance(AtomicFile *file, uint64_t size) {
  file->offset += size;
  if (file->progress)
    file->progress->written = file->offset;
}

void atomic_file_write(AtomicFile *file, const void *data, uint64_t size) {
  if (file->failed || size == 0)
    return;
  advance(file, size);
  if (size > BUFFER_SIZE - file->buffered)
    flush_buffer(file);
  if (size >= BUFFER_SIZE) {
    write_through(file, data, size);
    return;
  }
  memcpy(file->buffer + file->buffered, data, size);
  file->buffered += size;
}

void atomic_file_pad(AtomicFile *file, uint64_t to_offset) {
  static const uint8_t zeros[4096];
  if (!file->failed && to_offset < file->offset)
    BUG("padding to %llu, behind %llu", (unsigned long long)to_offset,
        (unsigned long long)file->offset);
  while (!file->failed && file->offset < to_offset) {
    uint64_t rest = to_offset - file->offset;
    atomic_file_write(file, zeros, rest < sizeof zeros ? rest : sizeof zeros);
  }
}

/* Writes from the mapping of a small file, whose pages stay there; returns how many bytes it did.
 * Of a large one they would have to come and go: the kernel's copy is faster. */
static uint64_t write_pages(AtomicFile *file, const MappedFile *from, uint64_t offset,
                            uint64_t size) {
  uint64_t done = 0;
  while (done < size && !file->failed && from->size <= FILE_KEPT_MAX) {
    uint64_t part = size - done < PAGES_MAX ? size - done : PAGES_MAX;
    if (file_check_unchanged(from, file->sink) != STATUS_OK) {
      file->failed = true;
      break;
    }
    if (!file_fetch_pages(from, offset + done, part))
      break;
    write_through(file, from->data + offset + done, part);
    done += part;
    advance(file, part);
  }
  return done;
}

/* Lets the kernel copy; returns how many bytes it did before it could or would not go on. */
static uint64_t copy_in_kernel(AtomicFile *file, const MappedFile *from, uint64_t offset,
                               uint64_t size) {
  off_t at = (off_t)offset;
  uint64_t done = 0;
  while (done < size) {
    uint64_t rest = size - done;
    ssize_t copied =
        copy_file_range(from->fd, &at, file->hold->fd, NULL, rest < COPY_MAX ? rest : COPY_MAX, 0);
    if (copied < 0 && errno == EINTR)
      continue;
    if (copied <= 0)
      break;
    done += (uint64_t)copied;
    advance(file, (uint64_t)copied);
  }
  return done;
}

void atomic_file_copy(AtomicFile *file, const MappedFile *from, uint64_t offset, uint64_t size) {
  if (offset > from->size || size > from->size - offset)
    BUG("copying %llu bytes at %llu of %llu", (unsigned long long)size, (unsigned long long)offset,
        (unsigned long long)from->size);
  uint64_t done = 0;
  if (size >= COPY_MIN && from->fd >= 0 && !file->failed) {
    flush_buffer(file);
    done = write_pages(file, from, offset, size);
    if (!file->failed)
      done += copy_in_kernel(file, from, offset + done, size - done);
  }
  /* Other file system, a pipe, or an end that has moved: the rest, if any, goes by write. */
  if (done < size && !file->failed && file_check_unchanged(from, file->sink) != STATUS_OK)
    file->failed = true;
  atomic_file_write(file, from->data + offset + done, size - done);
}

Status atomic_file_view(AtomicFile *file, MappedFile *out) {
  *out = (MappedFile){.fd = -1, .path = file->path, .size = file->offset};
  if (!file->failed)
    flush_buffer(file);
  if (file->failed)
    return STATUS_IO;
  if (file_map_bytes(out, file->hold->fd, MAP_SHARED))
    return STATUS_OK;
  int error = errno;
  file_unmap(out);
  return diag_report(file->sink, DIAG_FILE_OPEN, diag_file(file->path), "cannot map '%s': %s",
                     file->path, strerror(error));
}

/* Makes the rename itself durable. Failure is no fault of the file, which is whole. */
static void sync_folder(const AtomicFile *file) {
  char folder[PATH_MAX];
  const char *slash = strrchr(file->target, '/');
  size_t size = slash ? (size_t)(slash + 1 - file->target) : 2;
  if (size >= sizeof folder)
    return;
  memcpy(folder, slash ? file->target : "./", size);
  folder[size] = '\0';
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) {
    (void)fsync(fd);
    close(fd);
  }
}

/* Closing can report a write that failed late (quota, network). */
static void finish_descriptor(AtomicFile *file, bool sync) {
  if (!file->failed && file->temporary && file->mode && fchmod(file->hold->fd, file->mode) != 0)
    fail(file, DIAG_FILE_WRITE, "set the permissions of", errno);
  if (!file->failed && file->temporary && sync && fsync(file->hold->fd) != 0)
    fail(file, DIAG_FILE_WRITE, "sync", errno);
  int fd = file->hold->fd;
  file->hold->fd = -1;
  if (close(fd) != 0 && !file->failed)
    fail(file, DIAG_FILE_WRITE, "write", errno);
}

typedef struct HeldOutput {
  AtomicFile file;
  bool sync;
} HeldOutput;

/* What the file holds is the set's from now on. */
static Status hold_output(OutputSet *set, AtomicFile *file, bool sync) {
  HeldOutput held = {*file, sync};
  held.file.path = arena_strdup(&set->arena, sv_from(file->path));
  held.file.target = arena_strdup(&set->arena, sv_from(file->target));
  if (file->temporary)
    held.file.temporary = arena_strdup(&set->arena, sv_from(file->temporary));
  ARENA_PUSH(&set->arena, set->items, set->count, held);
  file->hold = NULL;
  file->buffer = NULL;
  return STATUS_OK;
}

Status atomic_file_commit(AtomicFile *file, bool sync) {
  if (!file->hold)
    return STATUS_IO;
  if (!file->failed)
    flush_buffer(file);
  if (!file->failed && file->sink->outputs)
    return hold_output(file->sink->outputs, file, sync);
  if (!file->failed && file->is_stdout)
    copy_to_stdout(file);
  finish_descriptor(file, sync);
  if (!file->failed && file->temporary) {
    if (rename(file->temporary, file->target) == 0) {
      pending_drop(file->hold->slot);
      file->hold->slot = -1;
    } else {
      fail(file, DIAG_FILE_RENAME, "give the finished output its name", errno);
    }
  }
  if (!file->failed && sync && !file->is_stdout)
    sync_folder(file);
  close_and_remove(file);
  return file->failed ? STATUS_IO : STATUS_OK;
}

void atomic_file_abandon(AtomicFile *file) {
  close_and_remove(file);
  file->failed = true;
}

void outputs_begin(OutputSet *set, DiagSink *sink) {
  *set = (OutputSet){.sink = sink};
  sink->outputs = set;
}

Status outputs_end(OutputSet *set, Status status) {
  set->sink->outputs = NULL;
  for (uint32_t i = 0; i < set->count; i++)
    if (status == STATUS_OK)
      status = atomic_file_commit(&set->items[i].file, set->items[i].sync);
    else
      atomic_file_abandon(&set->items[i].file);
  arena_release(&set->arena);
  return status;
}

Status atomic_file_whole(Arena *arena, DiagSink *sink, const char *path, StrView content) {
  AtomicFile file;
  TRY(atomic_file_open(&file, arena, sink, path));
  atomic_file_write(&file, content.data, content.size);
  return atomic_file_commit(&file, false);
}

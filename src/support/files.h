/* Files in: mapped read-only. Files out: written beside the target and renamed when whole. */
#ifndef ETC_SUPPORT_FILES_H
#define ETC_SUPPORT_FILES_H

#include <stdatomic.h>

#include "support/diag.h"
#include "support/intern.h"

/* The files that were read, each once, in the order of their first opening, with the version that
 * was opened then: what an output depends on. file_map and file_map_beneath note what they open in
 * the list of their sink, so that no reader can forget to; file_note is for what is not mapped. */
typedef struct FilesRead {
  Intern paths; /* ids from 1 */
  struct FileVersion {
    uint64_t size, device, inode;
    int64_t changed_ns;
  } * versions; /* by id */
  uint32_t capacity;
} FilesRead;

void files_read_init(FilesRead *files);
void files_read_release(FilesRead *files);
/* A file or folder that is read by other means; nothing happens when it does not exist. */
void file_note(DiagSink *sink, const char *path);
/* Whether all are still what they were when they were first opened; else FILE_CHANGED is reported.
 */
Status files_read_unchanged(const FilesRead *files, DiagSink *sink);

/* The path by which the file was read that `path` leads to, or NULL: no output may take its place.
 */
const char *files_read_path(const FilesRead *files, const char *path);

/* A read-only mapping of a whole regular file. An empty file has size 0 and data pointing at
 * nothing. */
typedef struct FileHold FileHold;
typedef struct MappedFile {
  const uint8_t *data;
  uint64_t size;
  FileHold *hold;      /* the mapping and the descriptor; NULL: the bytes are somebody else's */
  int fd;              /* kept open so that ranges can be copied by the kernel; -1 when closed */
  char *path;          /* as given, owned by the arena passed to map */
  int64_t changed_ns;  /* time of last change when it was opened */
  atomic_bool fetched; /* all pages are there, see file_fetch_pages */
} MappedFile;

/* Maps path. Errors (reported): missing, directory, unreadable, not a regular file (FIFO, device).
 */
Status file_map(MappedFile *file, Arena *arena, DiagSink *sink, const char *path);
/* The same of bytes in memory, which must outlive it; name stands for the path. */
void file_of_bytes(MappedFile *file, Arena *arena, const char *name, const uint8_t *data,
                   uint64_t size);
/* Standard input, as far as it is not read yet: a regular file is mapped as it is, anything else is
 * copied to a temporary file first. Its path is "<stdin>". */
Status file_map_stdin(MappedFile *file, Arena *arena, DiagSink *sink);
/* A descriptor for reading and writing of a temporary file without a name, which is gone when it is
 * closed; -1 and errno when there can be none. In TMPDIR, or /tmp. */
int file_temporary(void);
/* As file_map, but relative is looked up below the folder of base_path and may not leave it: no
 * absolute path, no "..", no NUL, no symbolic link in any component, regular files with one link
 * only. With links, symbolic links are followed wherever they lead, but for those of /proc, and
 * hard links permitted. For ONNX external data. */
Status file_map_beneath(MappedFile *file, Arena *arena, DiagSink *sink, const char *base_path,
                        StrView relative, bool links, DiagPlace place);
/* Whether the file still has the size and time of last change that it had when mapped; else
 * FILE_CHANGED is reported. Reading a mapping beyond an end that has moved raises SIGBUS, which the
 * command turns into the same message. */
Status file_check_unchanged(const MappedFile *file, DiagSink *sink);
/* Brings in the pages of these bytes at once, which is faster than one by one as they are touched:
 * for those that are all read next. False where the system cannot, or the file has become shorter.
 */
enum { FILE_KEPT_MAX = 1 << 26 }; /* bytes of a file that is fetched once, and stays */
bool file_fetch_pages(const MappedFile *file, uint64_t offset, uint64_t size);
/* Pages of these bytes, of a large file, count as this process's no more, though the mapping stays
 * as it is: for those that were read and are not needed soon. */
void file_drop_pages(const MappedFile *file, uint64_t offset, uint64_t size);
/* Gives up the descriptor; the mapping stays. */
void file_close_descriptor(MappedFile *file);
/* Maps file->size bytes of fd; false and errno when the system cannot. For atomic_file_view. */
bool file_map_bytes(MappedFile *file, int fd, int flags);
void file_unmap(MappedFile *file);
bool file_is_folder(const char *path);
/* Whether both paths lead to one file that exists. */
bool file_same(const char *a, const char *b);
/* Whether both paths lead to one file, or would if it were made: equal names in one folder. */
bool file_same_place(const char *a, const char *b);

/* How far an output is, for whoever shows it. */
typedef struct WriteProgress {
  volatile uint64_t written, total; /* bytes; total is 0 before it is known */
} WriteProgress;

/* A file that appears under its name only when commit succeeds; until then it is PATH.tmp-PID-N in
 * the same folder and is removed by abandon, and by the signal handler of the command
 * (atomic_file_remove_pending is async-signal-safe). A symbolic link at path is followed and stays.
 * An existing file keeps its permissions; one that was read (FilesRead) is not replaced. A device
 * or pipe (/dev/null, /dev/stdout) is written to directly. "-" is standard output: it gets nothing
 * before commit, which copies a temporary file to it. */
typedef struct AtomicFile {
  WriteProgress *progress; /* may be NULL */
  struct OutputHold *hold; /* the descriptor and the pending file; NULL: not open */
  uint64_t offset;         /* bytes written so far */
  char *path, *target,
      *temporary;  /* target: path without symbolic links; temporary: NULL for a device or pipe */
  unsigned mode;   /* permissions of the file to be replaced; 0 = new file */
  uint8_t *buffer; /* small writes are gathered */
  size_t buffered;
  DiagSink *sink;
  /* With "-": takes the bytes at commit, in order and in pieces, in place of standard output; set
   * after opening, or NULL. */
  void (*deliver)(void *user, const char *data, size_t size);
  void *deliver_user;
  bool is_stdout;
  bool failed; /* a write failed and was reported; later writes do nothing, commit returns STATUS_IO
                */
} AtomicFile;

Status atomic_file_open(AtomicFile *file, Arena *arena, DiagSink *sink, const char *path);
void atomic_file_write(AtomicFile *file, const void *data, uint64_t size);
void atomic_file_pad(AtomicFile *file, uint64_t to_offset); /* zeros up to an absolute offset */
/* size bytes of from at offset, from the mapping where its pages can be fetched at once, else by
 * copy_file_range: it copies page by page, twice where the two places in the files lie differently
 * in their pages, as they nearly always do. */
void atomic_file_copy(AtomicFile *file, const MappedFile *from, uint64_t offset, uint64_t size);
/* What was written so far, mapped; to be unmapped before commit or abandon. Not for a device or
 * pipe that is written to directly. Errors: a write that failed, which was reported;
 * DIAG_FILE_OPEN. */
Status atomic_file_view(AtomicFile *file, MappedFile *out);
/* Flushes, optionally fsyncs file and folder, renames. On any failure the temporary file is gone
 * and the error reported. */
Status atomic_file_commit(AtomicFile *file, bool sync);
/* Outputs that belong together appear together: files that are committed between the two calls wait
 * under their temporary names. With STATUS_OK outputs_end renames them in the order of their
 * commits, which can still fail with the status of a commit; with any other status it removes them,
 * and returns that. One set at a time for each sink. */
typedef struct OutputSet {
  DiagSink *sink;
  Arena arena;
  struct HeldOutput *items;
  uint32_t count;
} OutputSet;
void outputs_begin(OutputSet *set, DiagSink *sink);
Status outputs_end(OutputSet *set, Status status);
void atomic_file_abandon(AtomicFile *file);
/* All of a file at once: opened, written and committed. */
Status atomic_file_whole(Arena *arena, DiagSink *sink, const char *path, StrView content);
void atomic_file_remove_pending(void);
/* That a write to standard output failed. */
Status report_stdout(DiagSink *sink, int error);

#endif

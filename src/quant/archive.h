/* Bytes of the arrays in a file, front to back, a buffer at a time: an .npz, which is a zip
 * archive, or an .npy file, which is like an archive with one stored entry.
 *
 * Facts: PKWARE's APPNOTE.TXT 6.3.10 (records, zip64), RFC 1951 (deflate). Sizes come from the
 * central directory and are checked against the file; entries that overlap, or claim more than
 * deflate can hold, are refused, and no more is ever inflated than is asked for. */
#ifndef ETC_QUANT_ARCHIVE_H
#define ETC_QUANT_ARCHIVE_H

#include "interp/npy.h"
#include "support/files.h"

typedef struct ArchiveEntry {
  StrView name;    /* with ".npy"; empty for the entry of an .npy file */
  uint64_t header; /* where its local header begins, and its data */
  uint64_t data, packed, size;
  uint32_t crc;
  uint16_t method; /* of zip: 0 stored, 8 deflated */
  bool checked;    /* crc is known */
} ArchiveEntry;

typedef struct Archive {
  MappedFile file;
  ArchiveEntry *entries; /* in the order of the file's directory, in the arena of archive_open */
  uint32_t count;
} Archive;

/* Opens path. Errors (reported): those of file_map; neither zip nor .npy; directories that are
 * damaged or in several volumes; entries that overlap. Entries of other methods are listed. */
Status archive_open(Archive *archive, Arena *arena, DiagSink *sink, const char *path);
void archive_close(Archive *archive);
/* The entry of that name and ".npy", NULL when there is none; of an .npy file its entry. */
const ArchiveEntry *archive_find(const Archive *archive, StrView name);

/* Reads one entry. */
typedef struct ArchiveStream ArchiveStream;
/* label names the array in messages and must outlive the stream, as must archive. Errors
 * (reported): an entry that is encrypted or packed by another method than deflate. */
Status archive_stream_open(ArchiveStream **out, const Archive *archive, const ArchiveEntry *entry,
                           const char *label, DiagSink *sink);
void archive_stream_close(ArchiveStream *stream); /* may be NULL */
/* Reads the header of the .npy that the entry is; to be called first. expected: as for npy_read.
 * Errors (reported): of npy_read_head; a header of more than 64 KiB; sizes that disagree. */
Status archive_stream_head(ArchiveStream *stream, DType expected, Arena *arena, NpyHead *head);
/* The next size bytes; at the end of the entry its checksum is compared. Errors (reported): the
 * entry ends before, its data are damaged, the file cannot be read. */
Status archive_stream_read(ArchiveStream *stream, void *to, uint64_t size);
/* Passes over size bytes. Of a stored entry they are not read, and the checksum not compared. */
Status archive_stream_skip(ArchiveStream *stream, uint64_t size);

#endif

/* The .npz and .npy files of a folder; for dataset.c. */
#ifndef ETC_QUANT_DATASET_FILES_H
#define ETC_QUANT_DATASET_FILES_H

#include "support/diag.h"

/* File names without the folder, sorted. */
typedef struct FolderNames {
  const char **names; /* of xrealloc, the texts in an arena */
  uint32_t count, capacity;
} FolderNames;

/* Adds what is in the folder, hidden files aside. Errors (reported): it cannot be read. */
Status folder_list(const char *path, Arena *arena, DiagSink *sink, FolderNames *npz,
                   FolderNames *npy);
bool folder_has(const FolderNames *names, const char *name);
/* NAME.npy for the input NAME, as `etc run --output` names files. */
char *folder_file_of(Arena *arena, StrView name);

#endif

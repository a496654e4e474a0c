/* Files that tests make. */
#ifndef ETC_TESTS_TEMP_FILE_H
#define ETC_TESTS_TEMP_FILE_H

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Makes an empty file of a name that nothing has: path ends in XXXXXX, which it replaces. */
static inline void make_file(char *path) {
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
}

static inline void write_file(const char *path, const void *data, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

#endif

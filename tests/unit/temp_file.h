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

/* Makes an .npy file of floats, [rows, columns]; path ends in XXXXXX.npy, as in make_file. */
static inline void make_npy(char *path, unsigned rows, unsigned columns, const float *numbers) {
  char header[96];
  int size = snprintf(header, sizeof header,
                      "{'descr': '<f4', 'fortran_order': False, 'shape': (%u, %u), }\n", rows,
                      columns),
      fd = mkstemps(path, 4);
  assert_true(fd >= 0 && size < (int)sizeof header);
  uint8_t start[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)size, 0};
  FILE *f = fdopen(fd, "wb");
  assert_non_null(f);
  fwrite(start, 1, sizeof start, f);
  fwrite(header, 1, (size_t)size, f);
  fwrite(numbers, sizeof *numbers, (size_t)rows * columns, f);
  assert_int_equal(fclose(f), 0);
}

#endif

/*
 * accuracy LOGITS.npy LABELS.npy: prints the share of rows whose largest value stands at the
 * label's place.
 *
 * The demo's judge, and a small example of how to read what `etc run` writes: LOGITS is float32 [N,
 * C], LABELS is int64 [N], both in C order. No Python and no library is needed. Format:
 * numpy.lib.format, versions 1.0 to 3.0 (magic, two version bytes, a 2- or 4-byte little-endian
 * header length, then a Python dictionary as text, then the values).
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HEADER = 4096, MAX_RANK = 2, MAX_ELEMENTS = 1 << 28 };

typedef struct Array {
  size_t dims[MAX_RANK]; /* unused places are 1 */
  int rank;
  size_t count; /* the product of dims */
  void *values; /* owned by the caller; free() it */
} Array;

static int fail(const char *path, const char *why) {
  fprintf(stderr, "accuracy: %s: %s\n", path, why);
  return -1;
}

/* Reads magic, version and dictionary; leaves the file at the first value. */
static int read_header(FILE *file, const char *path, char header[static MAX_HEADER]) {
  unsigned char lead[12];
  if (fread(lead, 1, 10, file) != 10 || memcmp(lead, "\x93NUMPY", 6) != 0)
    return fail(path, "not a .npy file");
  size_t length = lead[8] | (size_t)lead[9] << 8;
  if (lead[6] > 1) {
    if (fread(lead + 10, 1, 2, file) != 2)
      return fail(path, "the header is cut short");
    length |= (size_t)lead[10] << 16 | (size_t)lead[11] << 24;
  }
  if (length >= MAX_HEADER)
    return fail(path, "the header is too long");
  if (fread(header, 1, length, file) != length)
    return fail(path, "the header is cut short");
  header[length] = '\0';
  return 0;
}

static int parse_shape(const char *path, const char *header, Array *array) {
  const char *at = strstr(header, "'shape'");
  at = at ? strchr(at, '(') : NULL;
  if (!at)
    return fail(path, "the header has no shape");
  array->rank = 0;
  array->count = 1;
  array->dims[0] = array->dims[1] = 1;
  for (at++; *at != '\0' && *at != ')';) {
    char *end = NULL;
    unsigned long long dim = strtoull(at, &end, 10);
    if (end == at || array->rank == MAX_RANK)
      return fail(path, "expected one or two dimensions");
    if (dim > MAX_ELEMENTS || (dim != 0 && array->count > MAX_ELEMENTS / dim))
      return fail(path, "too many values");
    array->dims[array->rank++] = (size_t)dim;
    array->count *= (size_t)dim;
    at = end + strspn(end, ", ");
  }
  return 0;
}

static int load(const char *path, const char *type, size_t element_size, int rank, Array *array) {
  char header[MAX_HEADER];
  int status = -1;
  FILE *file = fopen(path, "rb");
  if (!file)
    return fail(path, "cannot be opened");
  if (read_header(file, path, header) || parse_shape(path, header, array))
    goto out;
  if (!strstr(header, type) || !strstr(header, "'fortran_order': False") || array->rank != rank) {
    fail(path, "expected logits as float32 [N, C] and labels as int64 [N], in C order");
    goto out;
  }
  array->values = calloc(array->count ? array->count : 1, element_size);
  if (!array->values)
    fail(path, "out of memory");
  else if (fread(array->values, element_size, array->count, file) != array->count)
    fail(path, "the values are cut short");
  else
    status = 0;
out:
  fclose(file);
  return status;
}

static size_t count_hits(const Array *logits, const Array *labels) {
  size_t hits = 0, classes = logits->dims[1];
  const int64_t *label = labels->values;
  for (size_t row = 0; row < labels->count; row++) {
    const float *values = (const float *)logits->values + row * classes;
    size_t best = 0;
    for (size_t c = 1; c < classes; c++)
      if (values[c] > values[best])
        best = c;
    hits += label[row] == (int64_t)best;
  }
  return hits;
}

int main(int argc, char **argv) {
  Array logits = {0}, labels = {0};
  int exit_code = 1;
  if (argc != 3) {
    fputs("usage: accuracy LOGITS.npy LABELS.npy\n", stderr);
    return 2;
  }
  if (load(argv[1], "'<f4'", sizeof(float), 2, &logits) == 0 &&
      load(argv[2], "'<i8'", sizeof(int64_t), 1, &labels) == 0) {
    if (logits.dims[0] != labels.count || labels.count == 0 || logits.dims[1] == 0) {
      fail(argv[1], "does not hold one row for each label");
    } else {
      size_t hits = count_hits(&logits, &labels);
      printf("accuracy %.2f %% (%zu of %zu images)\n", 100.0 * (double)hits / (double)labels.count,
             hits, labels.count);
      exit_code = 0;
    }
  }
  free(logits.values);
  free(labels.values);
  return exit_code;
}

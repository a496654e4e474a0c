/* Bundles: a program together with inputs and expected outputs for its methods (.bpte), which the
 * runtime's own test code runs and compares. A FlatBuffer with identifier BP08 that holds the
 * program as bytes. Source: ExecuTorch 1.4.1,
 * devtools/bundled_program/{schema,bundled_program.cpp}.
 */
#ifndef ETC_PTE_BUNDLE_H
#define ETC_PTE_BUNDLE_H

#include "ops/kernel.h"
#include "pte/program.h"
#include "support/json.h"

/* --- writing --- */

typedef struct BundleCase {
  const Tensor *inputs, *outputs;
} BundleCase;

/* The calls of one method, in order. */
typedef struct BundleSuite {
  StrView method;
  BundleCase *cases;
  uint32_t count, input_count, output_count;
} BundleSuite;

/* Writes the program with the suites to path. Errors (reported): those of files; DIAG_TOO_LARGE. */
Status bundle_write(const BundleSuite *suites, uint32_t count, DiagSink *sink,
                    const MappedFile *program, const char *path, bool sync);

/* --- reading --- */

typedef enum BundledKind { /* union codes of the format */
                           BUNDLED_NONE,
                           BUNDLED_TENSOR,
                           BUNDLED_INT,
                           BUNDLED_BOOL,
                           BUNDLED_DOUBLE,
                           BUNDLED_KIND_COUNT
} BundledKind;

typedef struct BundledValue {
  BundledKind kind;
  uint8_t dtype, rank; /* of tensors; the scalar type may be one that DType does not have */
  int32_t sizes[MAX_RANK];
  const uint8_t *dim_order;
  const uint8_t *data; /* bytes of it, of any alignment */
  uint64_t bytes;      /* what the sizes make */
  int64_t i;           /* INT, BOOL */
  double f;
} BundledValue;

/* One test set. Without expected outputs it is there to be run only. */
typedef struct BundledSet {
  BundledValue *inputs, *outputs;
  uint32_t input_count, output_count;
} BundledSet;

typedef struct BundledSuite {
  StrView method;
  BundledSet *sets;
  uint32_t count;
} BundledSuite;

typedef struct BundleFile {
  Arena arena;
  MappedFile file;
  DiagSink *sink;
  BundledSuite *suites;
  uint32_t count, version;
  const uint8_t *program; /* its bytes; not looked at */
  uint64_t program_size;
} BundleFile;

/* Whether the bytes begin like a bundle. */
bool bundle_is(const uint8_t *data, uint64_t size);
/* Whether the file is one by its name or its first bytes. */
bool bundle_is_file(const char *path);
/* Maps and checks path: each offset, size and count is checked, so that users need no checks of
 * their own; the test sets may still not fit the program. Errors are reported (DIAG_BUNDLE, those
 * of file_map), and nothing need be closed then. */
Status bundle_open(BundleFile *b, DiagSink *sink, const char *path);
/* Checks a bundle in memory, which must outlive it; name stands for the path in diagnostics. */
Status bundle_open_bytes(BundleFile *b, DiagSink *sink, const char *name, const uint8_t *data,
                         uint64_t size);
void bundle_close(BundleFile *b);

/* Whether the test sets fit the program, which is the one within: methods, numbers of values, their
 * kinds, element types, sizes and dim orders. The runtime checks few of these, and reads beyond the
 * values of a set that has too few. All faults are reported (DIAG_BUNDLE). */
Status bundle_check(const BundleFile *b, const PteProgram *p);

/* Appends what is in it, without the program. all: every test set. */
void bundle_inspect_text(const BundleFile *b, bool all, StrBuf *out);
/* The test sets, as an array; not the program. */
void bundle_inspect_json(const BundleFile *b, JsonWriter *w);

#endif

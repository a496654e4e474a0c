/* Bundles: a program together with inputs and expected outputs for its methods (.bpte), which the
 * runtime's own test code runs and compares. A FlatBuffer with identifier BP08 that holds the
 * program as bytes. Source: ExecuTorch 1.4.1, devtools/bundled_program/schema. */
#ifndef ETC_PTE_BUNDLE_H
#define ETC_PTE_BUNDLE_H

#include "ops/kernel.h"
#include "support/files.h"

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

#endif

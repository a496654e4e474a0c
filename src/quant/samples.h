/* Runs something on each sample of a data set, on several threads. */
#ifndef ETC_QUANT_SAMPLES_H
#define ETC_QUANT_SAMPLES_H

#include "quant/dataset.h"

/* How far it is, for whoever shows it: samples. */
typedef struct SampleProgress {
  volatile uint64_t done, total; /* total is 0 before it is known */
} SampleProgress;

/* What a thread works with. */
typedef struct SampleWorker {
  const struct SampleLoop *loop;
  void *own;     /* own_size bytes of the user's */
  Arena arena;   /* of one sample */
  DiagSink sink; /* drops its text: a failed sample runs again to report */
  Tensor *inputs;
  uint64_t sample;
  Status status;
} SampleWorker;

/* What is done with the samples. All functions but run may be NULL. */
typedef struct SampleLoop {
  uint32_t input_count;
  size_t own_size; /* of SampleWorker.own, zeros at first */
  void *user;
  /* Computes what is wanted of a sample; again: of one that failed, for its messages alone. */
  Status (*run)(SampleWorker *w, DiagSink *sink, bool again);
  /* Adds that to what samples before gave: called in their order, one at a time. */
  void (*add)(SampleWorker *w);
  /* Frees what is in `own`, when no sample is left. */
  void (*end)(SampleWorker *w);
} SampleLoop;

/* Runs the samples that set has left, on up to parallel_threads() threads, each with one sample at
 * a time. Errors, reported to sink: of the data set, and of the run on the first sample that fails.
 */
Status samples_run(const SampleLoop *loop, DataSet *set, SampleProgress *progress, DiagSink *sink);

#endif

/* What a reference kernel sees: its arguments resolved to tensors and numbers, its results
 * allocated.
 *
 * All tensors are dense and contiguous in row-major order, aligned to 16 bytes. A result never
 * overlaps an operand (the caller sees to it). Kernels define the meaning of the op as the
 * runtime's kernel has it (not torch's, where the two differ, see the op's doc) on every dtype of
 * the row; double arithmetic for f64, float for the rest, i64 for integers. */
#ifndef ETC_OPS_KERNEL_H
#define ETC_OPS_KERNEL_H

#include "ir/op.h"

typedef struct Tensor {
  DType dtype;
  uint32_t rank;
  int64_t dims[MAX_RANK];
  void *data;
  uint64_t capacity; /* bytes of data */
} Tensor;
int64_t tensor_numel(const Tensor *t);
uint64_t tensor_bytes(const Tensor *t);

typedef struct KernelArg {
  ArgKind kind; /* a run-time scalar value arrives as INT, FLOAT or BOOL */
  uint32_t count;
  union {
    int64_t i;
    double f;
    Tensor *tensor;       /* VALUE */
    Tensor **tensors;     /* VALUES; NULL elements for absent ones */
    const int64_t *ints;  /* INTS, BOOLS */
    const double *floats; /* FLOATS */
    StrView str;
  };
} KernelArg;

struct Kernel {
  OpId op;
  const KernelArg *args; /* schema order */
  uint32_t arg_count;
  Tensor **results; /* shapes set from the result types; data allocated */
  uint32_t result_count;
  KernelArg scalar_result; /* for ops that return a scalar: the kernel fills it */
  Arena *scratch;
  uint64_t memory; /* bytes that the kernel may still ask for; 0 where nothing is known of it */
  DiagSink *sink;
  DiagPlace place;
  const struct DelegateReaders *readers; /* of delegates; may be NULL */
  bool as_runtime; /* a call of a program: faults of the runtime's kernel are part of its meaning */
  bool folds;      /* results go into a program: they must be the same on every machine */
};

/* Tensor argument i; NULL where an optional one is absent. */
static inline const Tensor *kernel_tensor(const Kernel *k, uint32_t i) {
  return k->args[i].kind == ARG_VALUE ? k->args[i].tensor : NULL;
}
/* Calls the kernel of the op, which relies on tensors where the schema has them: that is looked at
 * first. */
Status kernel_run(Kernel *k);
double kernel_scalar(const Kernel *k, uint32_t i); /* INT, FLOAT or BOOL */
/* Data-dependent result: gives result i its real dims; they must fit its capacity. */
Status kernel_resize(Kernel *k, uint32_t i, uint32_t rank, const int64_t *dims);
/* Reports DIAG_RUN_KERNEL at the node. */
Status kernel_error(Kernel *k, const char *format, ...) ETC_PRINTF(2, 3);

/* One element as double / int64 (any real dtype, bool included; unsigned 64 wraps), and back with
 * the runtime's conversion (float to int truncates, saturating instead of undefined). */
double tensor_load(const Tensor *t, int64_t i);
void tensor_store(Tensor *t, int64_t i, double value);
int64_t tensor_load_int(const Tensor *t, int64_t i);
void tensor_store_int(Tensor *t, int64_t i, int64_t value);

/* Row-major strides in elements; 0 where dims broadcast against `to` (rank aligned on the right;
 * to_rank entries). */
void strides_of(const Tensor *t, int64_t *strides);
void strides_broadcast(const Tensor *t, uint32_t to_rank, const int64_t *to_dims, int64_t *strides);

#endif

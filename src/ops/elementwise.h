/* The loop of all elementwise reference kernels.
 *
 * A job names up to three operands, the type to compute in and a function over plain arrays of that
 * type. The loop walks the result in blocks, converts and broadcasts each operand into a small
 * buffer (or hands over its memory when that is already in the right form), calls the function and
 * converts the block into the result. One function an op and compute type serves all dtypes and
 * shapes. */
#ifndef ETC_OPS_ELEMENTWISE_H
#define ETC_OPS_ELEMENTWISE_H

#include "ops/kernel.h"

#define EW_BLOCK 1024 /* elements */
#define EW_INPUTS 3

/* What a block buffer holds: float, double, int64_t, or uint8_t that is 0 or 1. */
typedef enum EwType { EW_F32, EW_F64, EW_I64, EW_BOOL } EwType;

typedef struct EwOperand {
  const Tensor *tensor; /* NULL: the scalar below */
  EwType type;          /* of the buffer that the function gets */
  double f;             /* scalar for float buffers */
  int64_t i;            /* scalar for the others */
} EwOperand;

typedef struct EwJob EwJob;
/* Computes count results from count elements of each operand. false: a value it must refuse
 * (integer division by zero). */
typedef bool EwFn(const EwJob *job, const void *const *in, void *out, size_t count);

struct EwJob {
  EwFn *fn;
  EwOperand in[EW_INPUTS];
  uint32_t in_count;
  EwType out_type; /* of the buffer that the function fills */
  Tensor *out;     /* the operands broadcast to its dims */
  double f[4];     /* parameters of fn */
  int64_t i[2];
  bool is_unsigned; /* EW_I64 buffers hold u64 */
  bool flags[2];
};

/* Buffer type to compute in for values of this dtype: f64 in double, other floats in float, the
 * rest in i64. */
EwType ew_type(DType dtype);
EwOperand ew_tensor(const Tensor *t, EwType type);
/* Scalar argument i of the kernel. */
EwOperand ew_scalar(const Kernel *k, uint32_t i, EwType type);
/* Runs the job; false when a call of fn returned false. */
bool ew_run(const EwJob *job);

/* count elements of t, from element at on and stride apart, converted into a buffer of the type. */
void ew_load(const Tensor *t, EwType type, int64_t at, int64_t stride, void *buffer, size_t count);
/* Converts all elements; both tensors have as many. */
void tensor_convert(const Tensor *from, Tensor *to);
/* Dtype to compute heavy ops of this operand in: f64, f32 for the other floats, i64. */
DType compute_dtype(DType dtype);
/* t in the given dtype: its own data when it has it, else converted into scratch memory. data is
 * NULL when t is. */
Tensor kernel_in_dtype(Kernel *k, const Tensor *t, DType dtype);
/* Memory to compute result i in the given dtype: the result's own, or scratch. kernel_store_result
 * converts it when done. */
Tensor kernel_result_in_dtype(Kernel *k, uint32_t i, DType dtype);
void kernel_store_result(Kernel *k, uint32_t i, const Tensor *computed);

/* A row of an op's functions by compute type; NULL where there is none. */
typedef struct EwRow {
  OpId op;
  EwFn *f32, *f64, *i64;
} EwRow;
EwFn *ew_find(const EwRow *rows, size_t count, OpId op, EwType type);

/* Defines a function over arrays of type T: X is an expression of a (operand 0), b, c, and job. */
#define EW_DEFINE1(name, T, R, X)                                                                  \
  static bool name(const EwJob *job, const void *const *in, void *out, size_t count) {             \
    const T *pa = in[0];                                                                           \
    R *po = out;                                                                                   \
    (void)job;                                                                                     \
    for (size_t n = 0; n < count; n++) {                                                           \
      const T a = pa[n];                                                                           \
      po[n] = (R)(X);                                                                              \
    }                                                                                              \
    return true;                                                                                   \
  }
#define EW_DEFINE2(name, T, R, X)                                                                  \
  static bool name(const EwJob *job, const void *const *in, void *out, size_t count) {             \
    const T *pa = in[0], *pb = in[1];                                                              \
    R *po = out;                                                                                   \
    (void)job;                                                                                     \
    for (size_t n = 0; n < count; n++) {                                                           \
      const T a = pa[n], b = pb[n];                                                                \
      po[n] = (R)(X);                                                                              \
    }                                                                                              \
    return true;                                                                                   \
  }

#endif

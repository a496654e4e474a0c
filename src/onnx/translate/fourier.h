/* Transforms of rows, for DFT and STFT.
 *
 * A transform of a known length N is a product with a constant matrix; of a long one that is
 * N1 * N2, two smaller products with a factor for each number between them, as in the algorithm of
 * Cooley and Tukey, each of N * (N1 + N2) instead of N * N multiplications. A length that varies
 * has a matrix that is computed in each call, or a convolution of a fixed length. */
#ifndef ETC_ONNX_FOURIER_H
#define ETC_ONNX_FOURIER_H

#include "onnx/express.h"

enum { FOURIER_MATRIX_MAX = 1 << 23 }; /* elements of a matrix */

typedef struct Fourier {
  SymInt in;     /* entries of the transformed dim */
  SymInt length; /* of the transform */
  SymInt out;    /* entries of the result */
  bool inverse, onesided;
  uint32_t in_parts, out_parts; /* 1 real, 2 complex */
} Fourier;

/* Two factors of the length, first <= second. */
typedef struct FourierSplit {
  int64_t first, second;
} FourierSplit;

/* Complex numbers, as two tensors of f64. */
typedef struct Complex {
  ValueId real, imaginary;
} Complex;

/* a * b, which broadcast. */
Complex complex_times(Import *im, Complex a, Complex b);
/* The factors nearest to each other. */
void fourier_factors(int64_t length, FourierSplit *split);
/* Whether the length is known and has factors by which two products take less time than one. */
bool fourier_split(const Fourier *f, FourierSplit *split);
/* Where element i of a row that is transformed by parts is taken, [length]: place(second, first) of
 * the place (first, second) of the row. */
ValueId fourier_order(Import *im, const FourierSplit *split);
/* The transform of rows [R, length * in_parts] in that order: [R, out * out_parts]. All f64. */
ValueId fourier_by_parts(Import *im, ValueId rows, const Fourier *f, const FourierSplit *split);
/* Rows [R, in * in_parts] as fourier_by_parts takes them: as long as the transform, in its order,
 * for half a spectrum the whole one. */
ValueId fourier_arranged(Import *im, ValueId rows, const Fourier *f, const FourierSplit *split);

/* Whether a transform of a length that varies takes less time by chirps than as a product with a
 * matrix that is computed in each call. */
bool fourier_chirps_pay(Import *im, const Fourier *f, SymInt rows);
/* The transform of rows [R, in * in_parts], [R, out * out_parts]. All f64. */
ValueId fourier_by_chirps(Import *im, ValueId rows, const Fourier *f);

#endif

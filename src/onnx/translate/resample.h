/* Resampling of one axis, as the ONNX operator Resize defines it (document and reference
 * implementation of onnx 1.20: neighbours beyond the border take its value), with the roundings of
 * ONNX Runtime where it has the same definition. */
#ifndef ETC_ONNX_RESAMPLE_H
#define ETC_ONNX_RESAMPLE_H

#include "onnx/express.h"

typedef enum ResampleMode { RESAMPLE_NEAREST, RESAMPLE_LINEAR, RESAMPLE_CUBIC } ResampleMode;

typedef enum Coordinates {
  COORD_HALF_PIXEL,
  COORD_HALF_PIXEL_SYMMETRIC,
  COORD_PYTORCH_HALF_PIXEL,
  COORD_ALIGN_CORNERS,
  COORD_ASYMMETRIC,
  COORD_TF_CROP,
  COORD_TF_HALF_PIXEL /* tf_half_pixel_for_nn */
} Coordinates;

typedef enum Rounding {
  ROUND_PREFER_FLOOR,
  ROUND_PREFER_CEIL,
  ROUND_FLOOR,
  ROUND_CEIL,
  ROUND_BY_SCALE /* up where the axis shrinks, else down: opset 10 leaves it open, so does ONNX
                    Runtime */
} Rounding;

typedef struct Resample {
  ResampleMode mode;
  Coordinates coordinates;
  Rounding rounding;
  double cubic_a, extrapolation;
  bool exclude_outside, antialias;
} Resample;

typedef struct ResampleAxis {
  uint32_t axis;
  SymInt in, out;
  ValueId scale;      /* 0-d f64: constant, or computed at run time */
  ValueId begin, end; /* of the region of interest, 0-d f64; COORD_TF_CROP only */
} ResampleAxis;

/* x with one axis resampled. x is f32 or f64 unless the mode is nearest. */
ValueId resample_axis(Import *im, const Resample *r, const ResampleAxis *a, ValueId x);

#endif

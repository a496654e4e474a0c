/* Between which numbers the elements of a value are, whatever the inputs: boxes that are clipped to
 * the image stay within it, and so does what is computed of their corners.
 *
 * Sizes that data decide are bounded by it. It leaves aside NaN, and integers that overflow: a size
 * that is read is checked against its bound in each call. */
#ifndef ETC_ONNX_DATA_RANGE_H
#define ETC_ONNX_DATA_RANGE_H

#include "onnx/translate.h"

typedef struct DataRange {
  double lo, hi; /* infinite: not known */
} DataRange;

DataRange data_range(Import *im, ValueId v);

#endif

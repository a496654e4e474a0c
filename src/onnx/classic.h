/* What the operators of ai.onnx.ml share: they compute in f32 whatever the type of their input. */
#ifndef ETC_ONNX_CLASSIC_H
#define ETC_ONNX_CLASSIC_H

#include "onnx/express.h"

/* Input i as f32. */
ValueId classic_input(Import *im, uint32_t i);
/* A constant vector or matrix of these numbers. */
ValueId classic_floats(Import *im, const float *values, uint32_t rank, const int64_t *dims);
/* The scores [N, C] after the attribute post_transform: NONE, LOGISTIC or SOFTMAX. */
ValueId classic_transformed(Import *im, ValueId scores);
/* The attribute `name`, a list of whole numbers, as labels: those at index [N]. Strings are
 * refused. */
ValueId classic_labels(Import *im, const char *name, ValueId index, uint32_t *count);

#endif

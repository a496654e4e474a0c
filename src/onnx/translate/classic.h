/* What the operators of ai.onnx.ml share. ONNX Runtime is the reference where the standard is
 * vague (version 1.31, core/providers/cpu/ml). But for trees they compute in f32 whatever the type
 * of their input. */
#ifndef ETC_ONNX_CLASSIC_H
#define ETC_ONNX_CLASSIC_H

#include "onnx/express.h"

/* Samples [N, features]: a vector is one sample. Fails for other ranks. */
ValueId classic_rows(Import *im, ValueId x);
/* The samples of input 0, as f32 [N, features]. */
ValueId classic_samples(Import *im);
/* A constant vector or matrix of these numbers. */
ValueId classic_floats(Import *im, const float *values, uint32_t rank, const int64_t *dims);

/* --- scores --- */

typedef enum PostTransform {
  POST_NONE,
  POST_LOGISTIC,
  POST_SOFTMAX,
  POST_SOFTMAX_ZERO,
  POST_PROBIT
} PostTransform;
/* The attribute post_transform; fails for an unknown one. */
PostTransform post_read(Import *im);
/* Scores [N, C] after it. */
ValueId post_apply(Import *im, PostTransform post, ValueId scores);
/* A single score after post: only PROBIT changes it. */
ValueId post_single(Import *im, PostTransform post, ValueId score);
/* One score [N, 1] for both of two classes, as two: that of the second class, after what is missing
 * to 1 (complement) or its negative. */
ValueId post_two(Import *im, PostTransform post, ValueId score, bool complement);

/* --- labels of classes --- */

typedef struct Classes {
  uint32_t count;
  const int64_t *numbers; /* of strings: indices into labels */
  const Labels *labels;   /* NULL: numbers */
} Classes;
/* The attribute of integers or classlabels_strings, which has precedence; fails without both. */
bool classes_read(Import *im, const char *numbers, Classes *classes);
/* Notes that scores in the order of the labels take the place of maps. */
void classes_note(Import *im, const Classes *classes);
/* Binds output 0 to the labels of the classes at index [N]. */
void classes_out(Import *im, const Classes *classes, ValueId index);
/* Binds output 0 to the label of the second class where the bools [N] hold, else of the first. */
void classes_out_two(Import *im, const Classes *classes, ValueId second);

#endif

/* Tensors of strings, which the runtime does not have. Class labels are the strings of most models;
 * a tensor of them becomes one of indices (i64) into a list of different labels, which the binding
 * of its name remembers. Operators that move elements move the indices. */
#ifndef ETC_ONNX_LABELS_H
#define ETC_ONNX_LABELS_H

#include "onnx/translate.h"

struct Labels {
  uint32_t count;
  const StrView *names; /* all different */
};

/* The list of the different strings of `values`, in the order of their first occurrence; it lives
 * as long as the import, the strings belong to the model. codes[i] is the index of values[i]. */
const Labels *labels_make(Import *im, const StrView *values, uint32_t count, int64_t *codes);
/* The elements of a tensor of strings, in scratch; false after a failure. */
bool tensor_texts(Import *im, const Onnx__TensorProto *t, Texts *texts);
/* A tensor of strings as a constant of indices. */
ValueId labels_tensor(Import *im, const Onnx__TensorProto *t, const Labels **labels);
/* The labels of input i; NULL when it is no tensor of strings. */
const Labels *in_labels(Import *im, uint32_t i);
/* Binds output 0 to indices into `labels`; NULL: to numbers. */
void out_labels(Import *im, ValueId index, const Labels *labels);
enum { LABELS_SHOWN = 64 };
/* Appends the first of them for a message, each with its index if wanted. */
void labels_list(StrBuf *text, const Labels *labels, bool numbered);
/* Warns that output `name` of the graph gives indices, and lists the labels. */
void labels_warn(Import *im, StrView name, const Labels *labels);

#endif

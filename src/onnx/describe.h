/* What an ONNX file declares, as text or JSON, for `etc inspect`: nothing is imported. */
#ifndef ETC_ONNX_DESCRIBE_H
#define ETC_ONNX_DESCRIBE_H

#include "onnx/file/model.h"
#include "support/json.h"

/* File, versions, weights, inputs, outputs, operators. Safe to print on a terminal. */
void onnx_describe_text(const OnnxModel *m, StrBuf *out);
/* The same as members of an object that is open. */
void onnx_describe_json(const OnnxModel *m, JsonWriter *w);

#endif

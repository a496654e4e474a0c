/* What an ONNX file declares, as text or JSON, for `etc inspect`: nothing is imported. */
#ifndef ETC_ONNX_DESCRIBE_H
#define ETC_ONNX_DESCRIBE_H

#include "onnx/file/model.h"
#include "support/json.h"
#include "support/sheet.h"

/* File, versions, weights, inputs, outputs, operators. Safe to print on a terminal. */
void onnx_describe_text(const OnnxModel *m, StrBuf *out);
/* Writes the same members into the current JSON object. */
void onnx_describe_json(const OnnxModel *m, JsonWriter *w);
/* Adds what is known of the model, to be compared with another: initializers of the main graph by
 * name and contents, nodes as they are counted above. Errors (reported): what onnx_tensor_view
 * reports of weights; strings are not looked at. */
Status onnx_sheet(OnnxModel *m, DiagSink *sink, Sheet *sheet);

#endif

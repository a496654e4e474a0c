/* What to give for dims of inputs that have no size: `--dim` flags that fit together.
 *
 * The model is imported once with a range for each such dim, which shows which of them must be
 * equal and what else the model wants of them; then with the sizes found, to see whether they fit.
 */
#ifndef ETC_ONNX_SUGGEST_H
#define ETC_ONNX_SUGGEST_H

#include "onnx/file/model.h"
#include "onnx/import.h"

typedef struct DimSuggestion {
  StrView name;   /* as in --dim */
  int64_t size;   /* a placeholder */
  uint32_t equal; /* the first one that must have the same size, perhaps itself */
} DimSuggestion;

typedef struct DimSuggestions {
  DimSuggestion *dims; /* in the order of the inputs */
  uint32_t count;
  bool fits; /* the model was imported with these sizes */
} DimSuggestions;

/* All in arena. Nothing is reported. */
void suggest_dims(Context *ctx, OnnxModel *model, const ImportOptions *options, Arena *arena,
                  DimSuggestions *out);
/* " --dim batch=1 --dim 'a b=2'", quoted for a shell where that is needed. */
void suggest_flags(const DimSuggestions *s, StrBuf *out);
/* E0317 for the dims that have no size: where they are, which must be equal, and the flags. */
Status suggest_report(Context *ctx, OnnxModel *model, const ImportOptions *options);
/* "f32[batch, 3, ?]". */
void onnx_append_type(StrBuf *out, const Onnx__ValueInfoProto *value);
/* "'x' (f32[batch, 3, ?])". */
void onnx_append_value(StrBuf *out, const Onnx__ValueInfoProto *value);

#endif

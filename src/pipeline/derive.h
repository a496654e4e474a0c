/* --derive llm: an exported decoder becomes forward(tokens, start_pos) -> logits, the method that
 * runners of language models call. */
#ifndef ETC_PIPELINE_DERIVE_H
#define ETC_PIPELINE_DERIVE_H

#include "pipeline/session.h"

/* llm, or llm:KEY=VALUE,… Wrong usage is reported. */
EtcStatus session_set_derive(Session *s, StrView value);
/* Before a model is imported: adds the sizes of its dims to the options of its method, where --dim
 * does not give them. */
Status derive_dims(Session *s, MethodOptions *options, const Onnx__GraphProto *graph);
/* After the import: the methods, and the constant methods that are not given. */
Status derive_run(Session *s);

#endif

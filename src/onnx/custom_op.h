/* --custom-op DOMAIN.OP=SCHEMA: operators that a kernel of the user's runtime computes. */
#ifndef ETC_ONNX_CUSTOM_OP_H
#define ETC_ONNX_CUSTOM_OP_H

#include "onnx/translate.h"

/* Makes the translator of an operator of that domain: its inputs are the tensors among the
 * arguments of the kernel's schema (op_add_kernel), its attributes the others, by name; results
 * have the shape and element type of the first tensor. All texts are copied to arena, in which the
 * translator is, too. Returns NULL, or what is wrong with the schema. */
const char *onnx_custom_op(StrView domain, StrView op, StrView schema, Arena *arena,
                           OnnxTranslator *out);

#endif

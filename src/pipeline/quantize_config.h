/* --quantize-config: which nodes are quantized otherwise than the scheme says, in a YAML file.
 *
 *     float: [add, "@*_head"]      # stay in floats
 *     weight-only: "@encoder*"         # quantized weights, computed in floats
 *
 * A term is an op of the IR, with or without namespace and overload, an operator of ONNX, or behind
 * '@' the name of a node of the model, in which one '*' stands for any text. */
#ifndef ETC_PIPELINE_QUANTIZE_CONFIG_H
#define ETC_PIPELINE_QUANTIZE_CONFIG_H

#include "pipeline/session.h"

/* Reads path into options; texts in the session's arena. Reported with line and column: what is no
 * YAML, other keys, ops that there are not. */
EtcStatus quantize_config_read(Session *s, const char *path, QuantOptions *options);

#endif

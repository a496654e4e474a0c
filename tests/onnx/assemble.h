/* ONNX models from lines of text, so that a broken model is a few readable lines and needs no
 * Python:
 *
 *   in x float[1,3,8,8]
 *   init w float[4,3,3,3]
 *   node conv1 Conv x w -> y group=i:0
 *   out y float
 *
 * Lines (words are separated by blanks; # starts a comment):
 *   ir N                             ir_version, 8 without this line
 *   opset [DOMAIN] N                 17 of "" without any such line; `opset none` imports nothing
 *   in|out|info NAME [TYPE[DIMS]]    a DIM is a number, a name (name:2 names one "2") or ?;
 *                                    TYPE alone has no shape, `seq:TYPE` is a sequence of tensors
 *   init NAME TYPE[DIMS] [DATA]      an initializer; DATA as in attributes, =zeros without
 *   sparse NAME DIMS [VALUES [INDICES]]   a sparse initializer: 2,3 float[1]=5 int64[1]=0
 *   node NAME [DOMAIN:]OP IN.. -> OUT.. [ATTR..]
 *   graph NAME ... end               a subgraph, for attributes g:NAME
 *   function [DOMAIN:]NAME IN.. -> OUT.. ... end
 *   repeat VAR FROM TO ... done      the lines again and again, with {VAR}, {VAR+1}, {VAR-1}
 *                                    replaced
 *   raw HEX                          these bytes instead of a whole model; may be empty
 *   cut N                            the last N bytes of the model are missing
 *
 * ATTR: NAME=i:1 f:0.5 s:text is:1,2 fs:1,2 ss:a,b t:TYPE[DIMS]DATA g:GRAPH ref:NAME
 * DATA: =zeros =1,2,3 (the elements) =bytes:N (N zero bytes) =none =ext:KEY:VALUE,KEY:VALUE..
 * TYPE: float int64 ... or a number.
 * Words: "" is the empty word, \xNN a byte, {a*1000} a thousand a. */
#ifndef ETC_TESTS_ONNX_ASSEMBLE_H
#define ETC_TESTS_ONNX_ASSEMBLE_H

#include "support/strbuf.h"

/* Appends the bytes of the model to *model. False, with *error filled, when a line is not
 * understood: a fault of the test. */
bool onnx_assemble(StrView text, StrBuf *model, StrBuf *error);

#endif

/* Values of constants as text: what the printer and the parser share. Not for use outside src/ir.
 *
 * Small constants are written element by element, so that people can read and write them; numbers
 * are the shortest decimals that read back to the same bits. */
#ifndef ETC_IR_CONST_TEXT_H
#define ETC_IR_CONST_TEXT_H

#include "ir/graph.h"

/* Constants up to this many bytes are printed element by element. */
#define CONST_INLINE_MAX 64

/* One element of a real dtype (not c64, not the 8-bit floats): "1", "-0.5", "true", "inf",
 * "nan(0x7FC00001)". False, and nothing printed, when the dtype or the bits have no such form (a
 * bool that is neither 0 nor 1). */
bool element_print(DType dtype, const uint8_t *bytes, StrBuf *out);
/* The exact inverse; text without blanks around it. Writes dtype_size bytes. False when the text is
 * no such element or does not fit the dtype. */
bool element_parse(DType dtype, StrView text, uint8_t *bytes);
/* A double as in the arguments of nodes: always readable as a floating-point number, bits kept. */
void float_print(double value, StrBuf *out);
bool float_parse(StrView text, double *value);

/* XXH3, 64 bits, of the bytes of a constant. */
uint64_t constant_hash(const Constant *c);

#endif

/* Constant methods of a program: --constant NAME=VALUE. */
#ifndef ETC_PIPELINE_CONSTANT_METHODS_H
#define ETC_PIPELINE_CONSTANT_METHODS_H

#include "pipeline/session.h"

/* Reads NAME=VALUE: a number, true, false, FILE.npy, text, or several of one type with commas
 * between them. In quotes everything is text. Wrong usage is reported. */
EtcStatus session_set_constant(Session *s, StrView value);
/* Whether one value without quotes is text, and neither a number nor a bool, nor one of those that
 * are refused (nan, what does not fit 64 bits, 0x10). */
bool session_constant_is_text(StrView word);
/* Adds a method with these outputs, which are kept as they are. */
EtcStatus session_add_constant(Session *s, StrView name, const ConstantItem *items, uint32_t count);
/* The constant method of that name, or NULL. */
const ConstantMethod *session_find_constant(const Session *s, StrView name);
/* After the import: no method has the name of a constant one. */
Status session_check_constants(Session *s);
/* constant=NAME=VALUE as --constant takes it, in arena; empty for what it cannot say, such as
 * arrays, which it takes from files. */
StrView session_constant_text(const ConstantMethod *m, Arena *arena);
/* Those that the options of a textual graph cannot say, as comments. */
void session_print_constants(const Session *s, StrBuf *out);
/* Warns of them, for who writes a text that is to be lowered. */
void session_warn_constants(Session *s);

#endif

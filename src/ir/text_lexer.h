/* Reading of .etir text by characters: words, numbers, strings, and messages with line and column.
 * Not for use outside src/ir.
 *
 * All functions skip blanks, line ends and comments (// to the end of the line) before they look.
 * The lexer never goes back and knows no tokens: what a run of characters is, the caller's place in
 * the grammar says. Lines are counted when a message needs them. */
#ifndef ETC_IR_TEXT_LEXER_H
#define ETC_IR_TEXT_LEXER_H

#include "support/diag.h"

typedef struct Lexer {
  const char *begin, *at, *end;
  StrView file; /* for messages */
  DiagSink *sink;
} Lexer;

void lexer_skip(Lexer *l);
/* Whether the text goes on with these characters; if so, consumes them. */
bool lexer_accept(Lexer *l, const char *characters);
/* Whether the text goes on with this whole word; if so, consumes it: "input" not from "inputs". */
bool lexer_accept_word(Lexer *l, const char *word);
/* The next character, 0 at the end. */
char lexer_peek(Lexer *l);
/* [A-Za-z_][A-Za-z0-9_]*, empty when there is none. */
StrView lexer_word(Lexer *l);
/* A name of the op table: a word that may hold "::" and ".". */
StrView lexer_op_name(Lexer *l);
/* A number, true, false, inf, nan or nan(0x...): all that element_parse takes, and other words. */
StrView lexer_element(Lexer *l);

/* Reports IR_PARSE at a place of the text. "expected X" goes on with what is there instead. */
Status lexer_error(const Lexer *l, const char *at, const char *format, ...) ETC_PRINTF(3, 4);
Status lexer_expected(Lexer *l, const char *what);
Status lexer_expect(Lexer *l, const char *characters);
Status lexer_u64(Lexer *l, const char *what, uint64_t *out);
Status lexer_i64(Lexer *l, const char *what, int64_t *out);
/* "%7": the number of a value, and where it stands, for messages. */
Status lexer_value(Lexer *l, const char **at, uint64_t *number);
/* "text" on one line, escapes taken back; appended to out. */
Status lexer_string(Lexer *l, const char *what, StrBuf *out);
/* The characters between the quotes of a string without escapes (hex"..."). */
Status lexer_raw_string(Lexer *l, StrView *out);

#endif

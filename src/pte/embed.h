/* A program, or its external data, as source text that firmware is built with: an array of C or C++
 * or a section of assembler that holds the bytes of the file, and a header that says how large they
 * are and how much memory each method needs, so that a host can have all of it as static arrays.
 *
 * What the runtime asks of the memory is from ExecuTorch 1.4.1: program.cpp (the program begins at
 * a multiple of 16), hierarchical_allocator.h (buffer I is for memory id I + 1). */
#ifndef ETC_PTE_EMBED_H
#define ETC_PTE_EMBED_H

#include "pte/program.h"

typedef enum EmbedForm { EMBED_C, EMBED_CPP, EMBED_ASSEMBLER } EmbedForm;

enum { EMBED_MAX_ALIGNMENT = 4096 };

typedef struct Embed {
  const MappedFile *file;    /* what is embedded */
  const PteProgram *program; /* the same, decoded; NULL: external data (.ptd) */
  EmbedForm form;
  const char *symbol;  /* of the array, a C identifier; macros begin with it in capitals */
  const char *section; /* where the bytes go; NULL: with other constants */
  uint64_t alignment;  /* of the first byte: a power of two */
} Embed;

/* The form by the suffix of an output: .c; .cc, .cpp or .cxx; .S or .s. False for others. */
bool embed_form(StrView output, EmbedForm *form);
/* Whether text can name a variable in C and C++: an identifier of ASCII and no keyword. */
bool embed_is_identifier(StrView text);
/* Text as a part of an identifier: each character of ASCII that none has is "_", other bytes are
 * two hexadecimal digits, so that names in other letters stay apart. In arena. */
char *embed_word(Arena *arena, StrView text);
/* The name of the file at path as an identifier, "model_pte" of "build/model.pte": an embed_word
 * with "_" before a digit at the front. In arena. */
char *embed_symbol(Arena *arena, StrView path);
/* The alignment that the segments of the program were laid out for: the largest power of two that
 * all of their places in the file are multiples of, from 16 to 128. */
uint64_t embed_alignment(const PteProgram *p);

/* The array, or its section. The text of an array is written in pieces, it takes no memory; for the
 * assembler the text names the file by the path that it was opened with. Errors are kept in out. */
void embed_write_array(const Embed *e, AtomicFile *out);
/* The header. Reports DIAG_EMBED where two methods would have the same macros. */
Status embed_write_header(const Embed *e, DiagSink *sink, AtomicFile *out);

/* --- for both --- */

/* Appends text as a string literal, which can stand in a comment, too. */
void embed_append_string(StrBuf *out, StrView text);
/* Appends the line that says what the file is and where it comes from. */
void embed_append_origin(const Embed *e, StrBuf *out);

#endif

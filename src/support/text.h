/* Small text helpers: kinds of characters, nearest spelling, strict number parsing. */
#ifndef ETC_SUPPORT_TEXT_H
#define ETC_SUPPORT_TEXT_H

#include "support/arena.h"
#include "support/strbuf.h"

/* In ASCII, whatever the locale. */
static inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
static inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
/* A character of a word, as an identifier is one: but for digits, one that begins it, too. */
static inline bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_'; }
static inline char to_upper(char c) { return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c; }
/* c if names of files may have it anywhere, else '_'. */
char text_file_char(char c);

/* Damerau-Levenshtein distance (adjacent transpositions cost one), cut off: returns limit + 1 when
 * larger than limit. Texts over 64 bytes are compared by their first 64. */
unsigned text_distance(StrView a, StrView b, unsigned limit);
/* In the order of their bytes, a shorter one before what it begins: below, at or above 0. */
int text_compare(StrView a, StrView b);
/* The candidate nearest to word within distance 2, the first of equals; else the one that word
 * abbreviates, "out" for "output"; NULL: no candidate is near. Case is ignored. */
const char *text_nearest(StrView word, const char *const *candidates, size_t count);
/* The whole view as a decimal integer / floating number; false on anything else, overflow included.
 */
bool text_parse_i64(StrView text, int64_t *out);
bool text_parse_u64(StrView text, uint64_t *out);
bool text_parse_double(StrView text, double *out);
/* Whether it is written as text_parse_double takes it, however large the number is. */
bool text_is_number(StrView text);
/* The value of a hexadecimal digit; -1 for anything else. */
int hex_digit(char c);
/* A size in memory above 0: bytes, or a number, which may have a fraction, with K, M or G (KiB,
 * MiB, GiB) for 2^10, 2^20 or 2^30: "512K", "1.5 MiB". False for anything else, 2^63 and more
 * included.
 */
bool text_parse_bytes(StrView text, uint64_t *out);

/* Whether text is pattern, whose first '*', if it has one, stands for any text: *star. */
bool text_match(StrView pattern, StrView text, StrView *star);
/* The pattern with star in place of its first '*', in arena; the pattern itself without one. */
StrView text_fill(Arena *arena, StrView pattern, StrView star);

/* Takes the first of words, "a|b|c", off. */
StrView text_next_word(const char **words);
/* The position of a text among words, "a|b|c"; their number when it is not among them. */
uint32_t text_index(StrView text, const char *words);
bool text_among(StrView text, const char *words);
/* "a, b or c", with `last` before the last one. */
void text_append_words(StrBuf *text, const char *words, const char *last);

#endif

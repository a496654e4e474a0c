/* Nearest spelling by optimal string alignment distance (Damerau-Levenshtein without substring
 * edits after a transposition), and number parsing that takes the whole text or nothing, in the C
 * locale whatever the program set. */
#include "support/text.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <stdlib.h>

#include "support/number.h"

enum { TEXT_MAX = 64, NUMBER_MAX = 512 };

static unsigned min_unsigned(unsigned a, unsigned b) { return a < b ? a : b; }

unsigned text_distance(StrView a, StrView b, unsigned limit) {
  unsigned before[TEXT_MAX + 1], last[TEXT_MAX + 1], row[TEXT_MAX + 1];
  size_t na = a.size < TEXT_MAX ? a.size : TEXT_MAX, nb = b.size < TEXT_MAX ? b.size : TEXT_MAX;
  for (size_t j = 0; j <= nb; j++)
    before[j] = last[j] = (unsigned)j;
  for (size_t i = 1; i <= na; i++) {
    row[0] = (unsigned)i;
    unsigned best = row[0];
    for (size_t j = 1; j <= nb; j++) {
      bool same = a.data[i - 1] == b.data[j - 1];
      row[j] = min_unsigned(last[j - 1] + !same, min_unsigned(last[j], row[j - 1]) + 1);
      if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] && a.data[i - 2] == b.data[j - 1])
        row[j] = min_unsigned(row[j], before[j - 2] + 1);
      best = min_unsigned(best, row[j]);
    }
    if (best > limit) /* each step, a transposition over two rows too, costs at least one */
      return limit + 1;
    memcpy(before, last, sizeof before);
    memcpy(last, row, sizeof last);
  }
  return last[nb] > limit ? limit + 1 : last[nb];
}

static StrView lower(StrView text, char buffer[TEXT_MAX]) {
  size_t size = text.size < TEXT_MAX ? text.size : TEXT_MAX;
  for (size_t i = 0; i < size; i++)
    buffer[i] = (char)tolower((unsigned char)text.data[i]);
  return (StrView){buffer, size};
}

int text_compare(StrView a, StrView b) {
  size_t shorter = a.size < b.size ? a.size : b.size;
  int order = shorter ? memcmp(a.data, b.data, shorter) : 0;
  return order ? order : ORDER(a.size, b.size);
}

/* The candidate that word abbreviates: the shortest that begins with it, if all others that do
 * begin with that one; NULL where there are several, or word has fewer than three letters. */
static const char *abbreviated(StrView word, const char *const *candidates, size_t count) {
  char buffer[TEXT_MAX], shortest_buffer[TEXT_MAX];
  const char *shortest = NULL;
  for (size_t i = 0; i < count && word.size > 2; i++)
    if (sv_starts_with(lower(sv_from(candidates[i]), buffer), word) &&
        (!shortest || strlen(candidates[i]) < strlen(shortest)))
      shortest = candidates[i];
  for (size_t i = 0; i < count && shortest; i++) {
    StrView candidate = lower(sv_from(candidates[i]), buffer);
    if (sv_starts_with(candidate, word) &&
        !sv_starts_with(candidate, lower(sv_from(shortest), shortest_buffer)))
      return NULL;
  }
  return shortest;
}

const char *text_nearest(StrView word, const char *const *candidates, size_t count) {
  char word_buffer[TEXT_MAX], candidate_buffer[TEXT_MAX];
  unsigned limit = 2, best = limit + 1;
  StrView wanted = lower(word, word_buffer);
  const char *nearest = NULL;
  for (size_t i = 0; i < count && best > 0; i++) {
    StrView candidate = lower(sv_from(candidates[i]), candidate_buffer);
    unsigned distance = text_distance(wanted, candidate, limit);
    /* Short words are near to many others: more than half of both must be kept. */
    if (distance < best && 2 * distance < wanted.size && 2 * distance < candidate.size) {
      best = distance;
      nearest = candidates[i];
    }
  }
  return nearest ? nearest : abbreviated(wanted, candidates, count);
}

char text_file_char(char c) { return is_word(c) || (c && strchr(".-+@", c)) ? c : '_'; }

bool text_parse_u64(StrView text, uint64_t *out) {
  uint64_t value = 0;
  for (size_t i = 0; i < text.size; i++) {
    if (!is_digit(text.data[i]) || !mul_u64(value, 10, &value) ||
        !add_u64(value, (uint64_t)(text.data[i] - '0'), &value))
      return false;
  }
  if (text.size == 0)
    return false;
  *out = value;
  return true;
}

bool text_parse_i64(StrView text, int64_t *out) {
  bool negative = text.size > 0 && text.data[0] == '-';
  uint64_t magnitude;
  if (!text_parse_u64((StrView){text.data + negative, text.size - negative}, &magnitude))
    return false;
  if (magnitude > (uint64_t)INT64_MAX + negative)
    return false;
  *out = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
  return true;
}

static size_t skip_digits(StrView text, size_t at) {
  while (at < text.size && is_digit(text.data[at]))
    at++;
  return at;
}

/* -?(inf|nan|(D+.?D*|.D+)([eE][+-]?D+)?) */
bool text_is_number(StrView text) {
  size_t at = text.size > 0 && text.data[0] == '-';
  StrView rest = {text.data + at, text.size - at};
  if (sv_eq(rest, SV("inf")) || sv_eq(rest, SV("nan")))
    return true;
  size_t begin = at, digits;
  at = skip_digits(text, at);
  digits = at - begin;
  if (at < text.size && text.data[at] == '.') {
    begin = at + 1;
    at = skip_digits(text, begin);
    digits += at - begin;
  }
  if (digits == 0)
    return false;
  if (at < text.size && (text.data[at] == 'e' || text.data[at] == 'E')) {
    at++;
    at += at < text.size && (text.data[at] == '+' || text.data[at] == '-');
    begin = at;
    at = skip_digits(text, at);
    if (at == begin)
      return false;
  }
  return at == text.size;
}

bool text_parse_double(StrView text, double *out) {
  char buffer[NUMBER_MAX];
  if (text.size >= sizeof buffer || !text_is_number(text))
    return false;
  memcpy(buffer, text.data, text.size);
  buffer[text.size] = '\0';
  /* For "C" the C library hands out a constant object; nothing is to be freed. */
  locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  errno = 0;
  double value = strtod_l(buffer, NULL, c_locale);
  bool overflow = errno == ERANGE && (value > 1 || value < -1);
  if (overflow)
    return false;
  *out = value;
  return true;
}

/* The factor of the unit at the end of text, which is cut off with the blanks before it; 1: none.
 */
static uint64_t cut_unit(StrView *text) {
  static const char units[] = "KMG";
  StrView rest = *text;
  bool binary = sv_has_suffix(rest, SV("iB"));
  rest.size -= binary ? 2 : 0;
  int last = rest.size ? toupper((unsigned char)rest.data[rest.size - 1]) : 0;
  const char *unit = last ? memchr(units, last, 3) : NULL;
  if (!unit)
    return 1;
  for (rest.size--; rest.size && rest.data[rest.size - 1] == ' ';)
    rest.size--;
  *text = rest;
  return (uint64_t)1024 << (10 * (unit - units));
}

int hex_digit(char c) {
  if (is_digit(c))
    return c - '0';
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool text_parse_bytes(StrView text, uint64_t *out) {
  uint64_t factor = cut_unit(&text);
  double number;
  if (text_parse_u64(text, out))
    return mul_u64(*out, factor, out) && *out > 0 && *out <= INT64_MAX;
  if (factor == 1 || !text_parse_double(text, &number) || !(number > 0))
    return false;
  *out = uint_clamped(number * (double)factor);
  return *out > 0 && *out < INT64_MAX;
}

bool text_match(StrView pattern, StrView text, StrView *star) {
  const char *at = pattern.size ? memchr(pattern.data, '*', pattern.size) : NULL;
  *star = (StrView){0};
  if (!at)
    return sv_eq(pattern, text);
  StrView head = {pattern.data, (size_t)(at - pattern.data)};
  StrView tail = {at + 1, pattern.size - head.size - 1};
  if (text.size < head.size + tail.size || !sv_starts_with(text, head) ||
      !sv_eq(tail, (StrView){text.data + text.size - tail.size, tail.size}))
    return false;
  *star = (StrView){text.data + head.size, text.size - head.size - tail.size};
  return true;
}

StrView text_fill(Arena *arena, StrView pattern, StrView star) {
  const char *at = pattern.size ? memchr(pattern.data, '*', pattern.size) : NULL;
  if (!at)
    return pattern;
  StrView head = {pattern.data, (size_t)(at - pattern.data)};
  StrView tail = {at + 1, pattern.size - head.size - 1};
  return sv_from(
      arena_printf(arena, SV_FMT SV_FMT SV_FMT, SV_ARG(head), SV_ARG(star), SV_ARG(tail)));
}

/* --- words in one text, "a|b|c" --- */

StrView text_next_word(const char **words) {
  size_t size = strcspn(*words, "|");
  StrView word = {*words, size};
  *words += size + ((*words)[size] != '\0');
  return word;
}

uint32_t text_index(StrView text, const char *words) {
  uint32_t i = 0;
  while (*words && !sv_eq(text, text_next_word(&words)))
    i++;
  return i;
}

bool text_among(StrView text, const char *words) {
  return text_index(text, words) < text_index(SV("|"), words);
}

void text_append_words(StrBuf *text, const char *words, const char *last) {
  for (uint32_t i = 0; *words; i++) {
    StrView word = text_next_word(&words);
    strbuf_append(text, !i ? SV("") : *words ? SV(", ") : sv_from(last));
    strbuf_append(text, word);
  }
}

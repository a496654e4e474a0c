/* See text_lexer.h. */
#include "ir/text_lexer.h"

#include "support/text.h"

static bool begins_word(char c) { return is_word(c) && !is_digit(c); }

void lexer_skip(Lexer *l) {
  for (; l->at < l->end; l->at++) {
    char c = *l->at;
    if (c == '/' && l->end - l->at > 1 && l->at[1] == '/') {
      const char *line = memchr(l->at, '\n', (size_t)(l->end - l->at));
      l->at = (line ? line : l->end) - 1;
    } else if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
      return;
    }
  }
}

bool lexer_accept(Lexer *l, const char *characters) {
  lexer_skip(l);
  size_t size = strlen(characters);
  if ((size_t)(l->end - l->at) < size || memcmp(l->at, characters, size) != 0)
    return false;
  l->at += size;
  return true;
}

bool lexer_accept_word(Lexer *l, const char *word) {
  lexer_skip(l);
  size_t size = strlen(word), rest = (size_t)(l->end - l->at);
  if (rest < size || memcmp(l->at, word, size) != 0 || (rest > size && is_word(l->at[size])))
    return false;
  l->at += size;
  return true;
}

char lexer_peek(Lexer *l) {
  lexer_skip(l);
  return l->at < l->end ? *l->at : '\0';
}

static StrView take_run(Lexer *l, const char *others) {
  const char *start = l->at;
  while (l->at < l->end && (is_word(*l->at) || (*l->at && strchr(others, *l->at))))
    l->at++;
  return (StrView){start, (size_t)(l->at - start)};
}

StrView lexer_word(Lexer *l) {
  if (!begins_word(lexer_peek(l)))
    return (StrView){l->at, 0};
  return take_run(l, "");
}

StrView lexer_op_name(Lexer *l) {
  if (!begins_word(lexer_peek(l)))
    return (StrView){l->at, 0};
  return take_run(l, ":.");
}

StrView lexer_element(Lexer *l) {
  lexer_skip(l);
  StrView run = take_run(l, ".+-");
  if (!sv_eq_str(run, "nan") || l->at >= l->end || *l->at != '(')
    return run;
  l->at++;
  take_run(l, "");
  if (l->at < l->end && *l->at == ')')
    l->at++;
  return (StrView){run.data, (size_t)(l->at - run.data)};
}

Status lexer_error(const Lexer *l, const char *at, const char *format, ...) {
  DiagPlace place = DIAG_NOWHERE;
  place.file = l->file;
  place.line = place.column = 1;
  for (const char *p = l->begin; p < at; p++) {
    place.column = *p == '\n' ? 1 : place.column + 1;
    place.line += *p == '\n';
  }
  va_list args;
  va_start(args, format);
  Status status = diag_vreport(l->sink, DIAG_IR_PARSE, place, "", format, args);
  va_end(args);
  return status;
}

Status lexer_expected(Lexer *l, const char *what) {
  lexer_skip(l);
  const char *end = l->at;
  while (end < l->end && end - l->at < 24 && *end != '\n' && *end != ' ')
    end++;
  if (l->at == l->end)
    return lexer_error(l, l->at, "expected %s, found the end of the text", what);
  return lexer_error(l, l->at, "expected %s, found '%.*s'", what, (int)(end - l->at), l->at);
}

Status lexer_expect(Lexer *l, const char *characters) {
  char what[16] = "'";
  if (lexer_accept(l, characters))
    return STATUS_OK;
  size_t size = strlen(characters);
  if (size > sizeof what - 3)
    BUG("'%s' is too long", characters);
  memcpy(what + 1, characters, size);
  what[size + 1] = '\'';
  return lexer_expected(l, what);
}

/* Digits with an optional minus sign. */
static StrView take_integer(Lexer *l) {
  lexer_skip(l);
  const char *start = l->at, *at = l->at;
  if (at < l->end && *at == '-')
    at++;
  while (at < l->end && is_digit(*at))
    at++;
  return (StrView){start, (size_t)(at - start)};
}

Status lexer_u64(Lexer *l, const char *what, uint64_t *out) {
  StrView digits = take_integer(l);
  if (!text_parse_u64(digits, out))
    return lexer_expected(l, what);
  l->at += digits.size;
  return STATUS_OK;
}

Status lexer_i64(Lexer *l, const char *what, int64_t *out) {
  StrView digits = take_integer(l);
  if (!text_parse_i64(digits, out))
    return lexer_expected(l, what);
  l->at += digits.size;
  return STATUS_OK;
}

Status lexer_value(Lexer *l, const char **at, uint64_t *number) {
  lexer_skip(l);
  *at = l->at;
  TRY(lexer_expect(l, "%"));
  return lexer_u64(l, "the number of a value", number);
}

Status lexer_raw_string(Lexer *l, StrView *out) {
  if (lexer_peek(l) != '"')
    return lexer_expected(l, "a string");
  const char *start = l->at + 1, *p = start;
  for (; p < l->end && *p != '"' && *p != '\n'; p++)
    p += *p == '\\' && l->end - p > 1;
  if (p >= l->end || *p != '"')
    return lexer_error(l, l->at, "the string does not end on its line");
  l->at = p + 1;
  *out = (StrView){start, (size_t)(p - start)};
  return STATUS_OK;
}

Status lexer_string(Lexer *l, const char *what, StrBuf *out) {
  StrView raw;
  if (lexer_peek(l) != '"')
    return lexer_expected(l, what);
  const char *start = l->at;
  TRY(lexer_raw_string(l, &raw));
  return strbuf_append_unescaped(out, raw) ? STATUS_OK
                                           : lexer_error(l, start, "unknown escape in the string");
}

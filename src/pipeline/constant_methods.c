/* See constant_methods.h. */
#include "pipeline/constant_methods.h"

#include <math.h>
#include <strings.h>

#include "interp/npy.h"
#include "pipeline/settings.h"
#include "support/text.h"

enum { MAX_NAME = 4096, MAX_ITEMS = 1 << 16 };

static const char *const kind_names[] = {[CONSTANT_INT] = "an integer",
                                         [CONSTANT_FLOAT] = "a float",
                                         [CONSTANT_BOOL] = "a bool",
                                         [CONSTANT_TEXT] = "text",
                                         [CONSTANT_TENSOR] = "an array"};

const ConstantMethod *session_find_constant(const Session *s, StrView name) {
  for (uint32_t i = 0; i < s->program.constant_count; i++)
    if (sv_eq(s->program.constants[i].name, name))
      return &s->program.constants[i];
  return NULL;
}

static EtcStatus wrong(Session *s, const char *hint, const char *text) {
  return session_usage(s, "--constant", hint, "%s", text);
}

/* Runtimes read the text of a program as UTF-8. */
static bool is_utf8(StrView text) {
  uint32_t code;
  for (size_t i = 0, size; i < text.size; i += size)
    if (!(size = utf8_decode(text, i, &code)))
      return false;
  return true;
}

static bool are_utf8(const ConstantItem *items, uint32_t count) {
  bool are = true;
  for (uint32_t i = 0; i < count; i++)
    are = are && (items[i].kind != CONSTANT_TEXT || is_utf8(items[i].text));
  return are;
}

EtcStatus session_add_constant(Session *s, StrView name, const ConstantItem *items,
                               uint32_t count) {
  if (name.size == 0 || name.size > MAX_NAME)
    return wrong(s, "write --constant NAME=VALUE", "a constant method needs a name");
  if (count == 0)
    return wrong(
        s, "give one value at least",
        arena_printf(&s->arena, "constant method '" SV_FMT "' has no value", SV_ARG(name)));
  if (!is_utf8(name) || !are_utf8(items, count))
    return wrong(
        s, "write it in UTF-8",
        arena_printf(&s->arena, "constant method '" SV_FMT "' is not UTF-8", SV_ARG(name)));
  Program *p = &s->program;
  const ConstantMethod *known = session_find_constant(s, name);
  int priority = s->setting.layer ? s->setting.layer->priority : PRIORITY_COMMAND;
  s->setting.overruled = known && p->constant_priorities[known - p->constants] < priority;
  if (s->setting.overruled)
    return ETC_OK;
  if (known)
    return wrong(
        s, "give each method a name of its own",
        arena_printf(&s->arena, "constant method '" SV_FMT "' is given twice", SV_ARG(name)));
  uint32_t capacity = p->constant_capacity;
  p->constant_priorities =
      pool_reserve(p->constant_priorities, &capacity, (uint64_t)p->constant_count + 1, sizeof(int));
  p->constants = pool_reserve(p->constants, &p->constant_capacity, (uint64_t)p->constant_count + 1,
                              sizeof *p->constants);
  p->constant_priorities[p->constant_count] = priority;
  p->constants[p->constant_count++] = (ConstantMethod){
      .name = {arena_strdup(&s->arena, name), name.size}, .items = items, .count = count};
  return ETC_OK;
}

/* --- one value --- */

/* Ends at a comma, or at the end of the text. */
static StrView bare_word(StrView text) {
  const char *comma = text.size ? memchr(text.data, ',', text.size) : NULL;
  StrView word = {text.data, comma ? (size_t)(comma - text.data) : text.size};
  while (word.size && word.data[0] == ' ')
    word = (StrView){word.data + 1, word.size - 1};
  while (word.size && word.data[word.size - 1] == ' ')
    word.size--;
  return word;
}

static bool is_digits(StrView text) {
  size_t at = text.size && text.data[0] == '-';
  for (size_t i = at; i < text.size; i++)
    if (!is_digit(text.data[i]))
      return false;
  return text.size > at;
}

/* Numbers that no constant is: nan, inf, .nan of YAML, 1e400. */
static bool is_not_finite(StrView text) {
  static const char *const names[] = {"nan", "inf", "infinity"};
  while (text.size && (text.data[0] == '-' || text.data[0] == '+' || text.data[0] == '.'))
    text = (StrView){text.data + 1, text.size - 1};
  for (size_t i = 0; i < COUNT_OF(names); i++)
    if (text.size == strlen(names[i]) && strncasecmp(text.data, names[i], text.size) == 0)
      return true;
  double value;
  return text_is_number(text) && !(text_parse_double(text, &value) && isfinite(value));
}

static bool is_hexadecimal(StrView text) {
  size_t at = 2;
  if (text.size < 3 || text.data[0] != '0' || (text.data[1] != 'x' && text.data[1] != 'X'))
    return false;
  while (at < text.size && hex_digit(text.data[at]) >= 0)
    at++;
  return at == text.size;
}

/* Numbers and bools of other languages, which nobody means as text. */
static bool is_foreign(StrView word) {
  bool sign = word.size && (word.data[0] == '-' || word.data[0] == '+');
  StrView rest = {word.data + sign, word.size - sign};
  return text_among(word, "True|TRUE|False|FALSE") || is_hexadecimal(rest) ||
         (sign && word.data[0] == '+' && text_is_number(rest));
}

/* TEXT where the word is nothing else. */
static ConstantItem read_word(StrView word) {
  ConstantItem item = {.kind = CONSTANT_TEXT, .text = word};
  if (text_parse_i64(word, &item.i))
    item.kind = CONSTANT_INT;
  else if (sv_eq(word, SV("true")) || sv_eq(word, SV("false")))
    item = (ConstantItem){.kind = CONSTANT_BOOL, .i = word.data[0] == 't'};
  else if (text_parse_double(word, &item.f))
    item.kind = CONSTANT_FLOAT;
  return item;
}

static EtcStatus check_word(Session *s, StrView name, StrView word) {
  if (is_foreign(word))
    return session_usage(
        s, "--constant", "write true, false or a decimal number; text goes in quotes",
        "constant method '" SV_FMT "': '" SV_FMT "' is no number or bool as etc reads them",
        SV_ARG(name), SV_ARG(word));
  if (is_digits(word) && read_word(word).kind != CONSTANT_INT)
    return session_usage(s, "--constant", "in quotes it is text",
                         "constant method '" SV_FMT "': " SV_FMT " does not fit 64 bits",
                         SV_ARG(name), SV_ARG(word));
  if (is_not_finite(word))
    return session_usage(s, "--constant", "in quotes it is text",
                         "constant method '" SV_FMT "': '" SV_FMT "' is not a finite number",
                         SV_ARG(name), SV_ARG(word));
  return ETC_OK;
}

static EtcStatus read_file(Session *s, StrView path, ConstantItem *item) {
  NpyArray array;
  Status status = npy_read(&array, &s->arena, &s->sink, session_path(s, path), DTYPE_F32);
  if (status != STATUS_OK)
    return session_status(status);
  uint64_t size = tensor_bytes(&array.tensor);
  uint8_t *data = arena_alloc(&s->arena, (size_t)size + 1);
  int64_t *dims = ARENA_ARRAY(&s->arena, int64_t, array.tensor.rank);
  bool fits = size != 0;
  memcpy(data, array.tensor.data, (size_t)size);
  for (uint32_t i = 0; i < array.tensor.rank; i++) {
    dims[i] = array.tensor.dims[i];
    fits &= dims[i] <= INT32_MAX;
  }
  *item = (ConstantItem){.kind = CONSTANT_TENSOR,
                         .dtype = array.tensor.dtype,
                         .rank = array.tensor.rank,
                         .dims = dims,
                         .bytes = {.data = data, .size = size}};
  npy_close(&array);
  return fits ? ETC_OK
              : session_usage(s, "--constant", "a program can hold neither of them",
                              "'" SV_FMT "' has no elements, or a dimension above 2^31 - 1",
                              SV_ARG(path));
}

/* --- lists --- */

typedef struct Items {
  Session *s;
  StrView name;
  ConstantItem *items;
  uint32_t count, capacity;
} Items;

static EtcStatus add_item(Items *l, ConstantItem item) {
  if (l->count && l->items[0].kind != item.kind)
    return session_usage(l->s, "--constant", "values of one list have one type",
                         "constant method '" SV_FMT "' begins with %s, and value %u is %s",
                         SV_ARG(l->name), kind_names[l->items[0].kind], l->count + 1,
                         kind_names[item.kind]);
  if (l->count == MAX_ITEMS)
    return session_usage(l->s, "--constant", "put them into a .npy file",
                         "constant method '" SV_FMT "' has more than %d values", SV_ARG(l->name),
                         MAX_ITEMS);
  if (l->count == l->capacity) {
    uint32_t capacity = l->capacity ? 2 * l->capacity : 4;
    ConstantItem *items = ARENA_ARRAY(&l->s->arena, ConstantItem, capacity);
    if (l->count)
      memcpy(items, l->items, l->count * sizeof *items);
    l->items = items;
    l->capacity = capacity;
  }
  l->items[l->count++] = item;
  return ETC_OK;
}

/* Text in quotes at the start of *rest, with its escapes read. */
static EtcStatus read_quoted(Items *l, StrView *rest, ConstantItem *item) {
  char quote = rest->data[0];
  size_t end = 1;
  while (end < rest->size && rest->data[end] != quote)
    end += rest->data[end] == '\\' ? 2 : 1;
  StrBuf text = {0};
  EtcStatus status = ETC_OK;
  if (end >= rest->size || !strbuf_append_unescaped(&text, (StrView){rest->data + 1, end - 1}))
    status = session_usage(l->s, "--constant", "escapes are \\\" \\\\ \\n \\r \\t and \\xNN",
                           "constant method '" SV_FMT "' has text without an end, or an escape "
                           "that is unknown",
                           SV_ARG(l->name));
  else if (text.size && memchr(text.data, 0, text.size))
    status =
        session_usage(l->s, "--constant", "put the bytes into a .npy file",
                      "constant method '" SV_FMT "' has text with a zero byte", SV_ARG(l->name));
  else
    *item = (ConstantItem){.kind = CONSTANT_TEXT, .text = strbuf_keep(&text, &l->s->arena)};
  strbuf_release(&text);
  if (status == ETC_OK)
    *rest = (StrView){rest->data + end + 1, rest->size - end - 1};
  return status;
}

static StrView skip_blanks(StrView text) {
  while (text.size && text.data[0] == ' ')
    text = (StrView){text.data + 1, text.size - 1};
  return text;
}

static EtcStatus read_next(Items *l, StrView *rest) {
  ConstantItem item = {0};
  *rest = skip_blanks(*rest);
  EtcStatus status = ETC_OK;
  if (rest->size && (rest->data[0] == '"' || rest->data[0] == '\'')) {
    status = read_quoted(l, rest, &item);
  } else {
    StrView word = bare_word(*rest);
    size_t used = (size_t)(word.data + word.size - rest->data);
    status = check_word(l->s, l->name, word);
    item = read_word(word);
    *rest = (StrView){rest->data + used, rest->size - used};
  }
  if (status == ETC_OK)
    status = add_item(l, item);
  *rest = skip_blanks(*rest);
  if (status == ETC_OK && rest->size && rest->data[0] != ',')
    status = session_usage(l->s, "--constant", "write a comma between two values",
                           "constant method '" SV_FMT "': '" SV_FMT "' follows a value",
                           SV_ARG(l->name), SV_ARG(*rest));
  return status;
}

static EtcStatus read_list(Items *l, StrView text) {
  EtcStatus status = read_next(l, &text);
  while (status == ETC_OK && text.size) {
    text = (StrView){text.data + 1, text.size - 1};
    status = read_next(l, &text);
  }
  return status;
}

bool session_constant_is_text(StrView word) {
  return !is_digits(word) && !is_not_finite(word) && !is_foreign(word) &&
         read_word(word).kind == CONSTANT_TEXT;
}

/* Bare text holds commas of its own: only numbers and bools make lists. */
static bool is_bare_text(StrView text) {
  if (text.size && (text.data[0] == '"' || text.data[0] == '\''))
    return false;
  return session_constant_is_text(bare_word(text));
}

EtcStatus session_set_constant(Session *s, StrView value) {
  static const PairForm form = {"--constant", "write --constant NAME=VALUE", "name", '=', "value"};
  Items list = {.s = s};
  StrView text;
  TRY(session_pair(s, &form, value, &list.name, &text));
  EtcStatus status;
  ConstantItem item = {.kind = CONSTANT_TEXT, .text = text};
  if (sv_has_suffix(text, SV(".npy"))) {
    status = read_file(s, text, &item);
    status = status == ETC_OK ? add_item(&list, item) : status;
  } else if (is_bare_text(text)) {
    item.text.data = arena_strdup(&s->arena, text);
    status = add_item(&list, item);
  } else {
    status = read_list(&list, text);
  }
  return status == ETC_OK ? session_add_constant(s, list.name, list.items, list.count) : status;
}

/* --- with the other methods --- */

Status session_check_constants(Session *s) {
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    StrView name = graph_name(s->program.methods[i].graph);
    if (!session_find_constant(s, name))
      continue;
    (void)session_usage(s, "--constant", "give the constant method another name",
                        "a method and a constant method have the name '" SV_FMT "'", SV_ARG(name));
    return STATUS_USAGE;
  }
  return STATUS_OK;
}

/* --- in textual graphs --- */

static bool can_be_said(const ConstantItem *item) {
  if (item->kind == CONSTANT_TEXT)
    return !item->text.size || !memchr(item->text.data, 0, item->text.size);
  return item->kind != CONSTANT_TENSOR && (item->kind != CONSTANT_FLOAT || isfinite(item->f));
}

StrView session_constant_text(const ConstantMethod *m, Arena *arena) {
  if (m->count > MAX_ITEMS || memchr(m->name.data, '=', m->name.size))
    return SV("");
  for (uint32_t i = 0; i < m->count; i++)
    if (!can_be_said(&m->items[i]) || m->items[i].kind != m->items[0].kind)
      return SV("");
  StrBuf text = {0};
  strbuf_printf(&text, "constant=" SV_FMT "=", SV_ARG(m->name));
  constant_method_print(m, &text);
  return strbuf_keep(&text, arena);
}

/* Whether the text of the graphs leaves it out. */
static bool is_left_out(const Session *s, const ConstantMethod *m) {
  Arena scratch = {0};
  bool said = s->program.method_count && session_constant_text(m, &scratch).size;
  arena_release(&scratch);
  return !said;
}

void session_print_constants(const Session *s, StrBuf *out) {
  bool first = true;
  for (uint32_t i = 0; i < s->program.constant_count; i++) {
    const ConstantMethod *m = &s->program.constants[i];
    if (!is_left_out(s, m))
      continue;
    strbuf_append(out, first && out->size ? SV("\n") : SV(""));
    strbuf_append(out, SV("// constant method \""));
    strbuf_append_escaped(out, m->name);
    strbuf_append(out, SV("\": "));
    constant_method_print(m, out);
    strbuf_append_char(out, '\n');
    first = false;
  }
}

void session_warn_constants(Session *s) {
  for (uint32_t i = 0; i < s->program.constant_count; i++) {
    const ConstantMethod *m = &s->program.constants[i];
    if (is_left_out(s, m))
      (void)diag_report(&s->sink, DIAG_CONSTANT_LEFT_OUT, DIAG_NOWHERE,
                        "the text has constant method '" SV_FMT
                        "' as a comment only: what is made of it has no such method",
                        SV_ARG(m->name));
  }
}

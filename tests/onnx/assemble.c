/* Text to ONNX bytes; the language is described in assemble.h. Field numbers are those of
 * schema/onnx.proto (ONNX 1.23). */
#include "assemble.h"

#include <stdlib.h>

#include "proto_writer.h"
#include "support/arena.h"
#include "support/text.h"

enum { MAX_SCOPES = 4, MAX_WORDS = 4096 };

typedef struct Scope {
  bool function;
  StrView name;
  Proto body;
} Scope;

typedef struct NamedGraph {
  struct NamedGraph *next;
  StrView name;
  Proto bytes;
} NamedGraph;

typedef struct Assembler {
  Arena arena;
  StrBuf *error;
  Proto model, graph, functions, imports, raw;
  Scope scopes[MAX_SCOPES];
  uint32_t depth;
  NamedGraph *graphs;
  int64_t ir, cut;
  bool has_opset, is_raw;
} Assembler;

typedef struct Line {
  StrView words[MAX_WORDS];
  uint32_t count;
} Line;

static bool wrong(Assembler *a, const char *what, StrView word) {
  if (!a->error->size)
    strbuf_printf(a->error, "%s: '" SV_FMT "'", what, SV_ARG(word));
  return false;
}

static bool starts(StrView text, const char *prefix) {
  return sv_starts_with(text, sv_from(prefix));
}

static StrView after(StrView text, size_t n) { return (StrView){text.data + n, text.size - n}; }

/* Cuts *text at the first `c`; the part before it is returned. */
static StrView cut_at(StrView *text, char c) {
  const char *at = text->size ? memchr(text->data, c, text->size) : NULL;
  StrView head = at ? (StrView){text->data, (size_t)(at - text->data)} : *text;
  *text = at ? after(*text, head.size + 1) : (StrView){text->data + text->size, 0};
  return head;
}

/* --- words --- */

static int hex(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* \xNN, {c*N} and "" replaced. */
static StrView decode(Assembler *a, StrView word) {
  if (sv_eq_str(word, "\"\""))
    return (StrView){"", 0};
  StrBuf out = {0};
  for (size_t i = 0; i < word.size; i++) {
    StrView rest = after(word, i);
    if (rest.size >= 4 && starts(rest, "\\x") && hex(rest.data[2]) >= 0 && hex(rest.data[3]) >= 0) {
      strbuf_append_char(&out, (char)(hex(rest.data[2]) << 4 | hex(rest.data[3])));
      i += 3;
    } else if (rest.size >= 5 && rest.data[0] == '{' && rest.data[2] == '*') {
      StrView number = after(rest, 3);
      number = cut_at(&number, '}');
      int64_t times = 0;
      if (!text_parse_i64(number, &times) || times > 1 << 26)
        wrong(a, "not a number of repetitions", number);
      for (int64_t k = 0; k < times && times <= 1 << 26; k++)
        strbuf_append_char(&out, rest.data[1]);
      i += 3 + number.size;
    } else {
      strbuf_append_char(&out, word.data[i]);
    }
  }
  StrView copy = {arena_strdup(&a->arena, (StrView){strbuf_cstr(&out), out.size}), out.size};
  strbuf_release(&out);
  return copy;
}

static void split(Assembler *a, StrView line, Line *out) {
  out->count = 0;
  while (line.size && out->count < MAX_WORDS) {
    StrView word = cut_at(&line, ' ');
    if (word.size && word.data[0] == '#')
      return;
    if (word.size)
      out->words[out->count++] = decode(a, word);
  }
}

static void add_string(Proto *p, uint32_t field, StrView text) {
  proto_bytes(p, field, text.data, text.size);
}

/* --- types and tensors --- */

static bool type_number(Assembler *a, StrView name, int64_t *number) {
  static const char *const names[] = {"undefined",  "float",   "uint8",  "int8",   "uint16",
                                      "int16",      "int32",   "int64",  "string", "bool",
                                      "float16",    "double",  "uint32", "uint64", "complex64",
                                      "complex128", "bfloat16"};
  for (size_t i = 0; i < COUNT_OF(names); i++)
    if (sv_eq_str(name, names[i])) {
      *number = (int64_t)i;
      return true;
    }
  return text_parse_i64(name, number) || wrong(a, "unknown type", name);
}

/* TYPE[DIMS] and what follows. */
static bool split_type(Assembler *a, StrView *text, int64_t *type, StrView *dims, bool *has_dims) {
  const char *open = memchr(text->data, '[', text->size), *eq = memchr(text->data, '=', text->size);
  *has_dims = open && (!eq || open < eq);
  *dims = (StrView){"", 0};
  StrView name;
  if (*has_dims) {
    name = cut_at(text, '[');
    *dims = cut_at(text, ']');
  } else {
    size_t size = eq ? (size_t)(eq - text->data) : text->size;
    name = (StrView){text->data, size};
    *text = after(*text, size);
  }
  return type_number(a, name, type);
}

static void add_element(Proto *raw, int64_t type, StrView text) {
  double real = 0;
  int64_t whole = 0;
  bool is_whole = text_parse_i64(text, &whole);
  if (!text_parse_double(text, &real))
    real = (double)whole;
  float single = (float)real;
  if (type == 1)
    proto_raw(raw, &single, 4);
  else if (type == 11)
    proto_raw(raw, &real, 8);
  else
    proto_raw(raw, is_whole ? &whole : &(int64_t){0},
              type == 7 || type == 13 ? 8
              : type == 6             ? 4
                                      : 1);
}

static uint64_t type_size(int64_t type) {
  static const uint8_t sizes[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 8, 16, 2};
  return type >= 0 && type < (int64_t)sizeof sizes ? sizes[type] : 0;
}

static void add_external(Proto *tensor, StrView keys) {
  while (keys.size) {
    StrView value = cut_at(&keys, ','), key = cut_at(&value, ':');
    Proto entry = {0};
    add_string(&entry, 1, key);
    add_string(&entry, 2, value);
    proto_message(tensor, 13, &entry);
  }
  proto_int(tensor, 14, 1);
}

static void add_zeros(Proto *tensor, uint64_t size) {
  proto_tag(tensor, 9, 2);
  proto_varint(tensor, size);
  for (uint64_t i = 0; i < size; i++)
    proto_byte(tensor, 0);
}

/* The body of a TensorProto. numel is of the dims, for =zeros. */
static bool add_data(Assembler *a, Proto *tensor, int64_t type, int64_t numel, StrView data) {
  int64_t size = 0;
  if (!data.size || sv_eq_str(data, "=zeros")) {
    add_zeros(tensor, (uint64_t)numel * type_size(type));
  } else if (starts(data, "=bytes:")) {
    if (!text_parse_i64(after(data, 7), &size))
      return wrong(a, "not a number of bytes", data);
    add_zeros(tensor, (uint64_t)size);
  } else if (starts(data, "=ext:")) {
    add_external(tensor, after(data, 5));
  } else if (!sv_eq_str(data, "=none")) {
    Proto raw = {0};
    for (data = after(data, 1); data.size;)
      add_element(&raw, type, cut_at(&data, ','));
    proto_message(tensor, 9, &raw);
  }
  return true;
}

/* spec is TYPE[DIMS], data what follows it. */
static bool add_tensor(Assembler *a, Proto *to, uint32_t field, StrView name, StrView spec,
                       StrView data) {
  Proto tensor = {0};
  int64_t type = 0, numel = 1;
  StrView dims;
  bool has_dims;
  if (!split_type(a, &spec, &type, &dims, &has_dims))
    return false;
  while (dims.size) {
    StrView word = cut_at(&dims, ',');
    int64_t dim = 0;
    if (!text_parse_i64(word, &dim))
      return wrong(a, "not a dimension", word);
    proto_int(&tensor, 1, dim);
    if (!mul_i64(numel, dim, &numel) || numel > 1 << 26)
      numel = 0;
  }
  proto_int(&tensor, 2, type);
  add_string(&tensor, 8, name);
  if (!add_data(a, &tensor, type, numel < 0 ? 0 : numel, spec.size ? spec : data))
    return false;
  proto_message(to, field, &tensor);
  return true;
}

static bool add_sparse(Assembler *a, Proto *to, const Line *line) {
  Proto sparse = {0};
  StrView dims = line->words[2];
  bool fine = line->count < 4 || add_tensor(a, &sparse, 1, line->words[1], line->words[3], SV(""));
  fine = fine && (line->count < 5 || add_tensor(a, &sparse, 2, SV(""), line->words[4], SV("")));
  while (fine && dims.size) {
    StrView word = cut_at(&dims, ',');
    int64_t dim = 0;
    fine = text_parse_i64(word, &dim) || wrong(a, "not a dimension", word);
    proto_int(&sparse, 3, dim);
  }
  proto_message(to, 15, &sparse);
  return fine;
}

static bool add_value_info(Assembler *a, Proto *to, uint32_t field, const Line *line) {
  Proto info = {0};
  add_string(&info, 1, line->words[1]);
  if (line->count > 2) {
    StrView spec = line->words[2], dims;
    bool sequence = starts(spec, "seq:"), has_dims;
    spec = after(spec, sequence ? 4 : 0);
    int64_t number;
    if (!split_type(a, &spec, &number, &dims, &has_dims))
      return false;
    Proto type = {0}, tensor = {0}, shape = {0};
    proto_int(&tensor, 1, number);
    while (dims.size) {
      StrView word = cut_at(&dims, ',');
      int64_t dim;
      Proto d = {0};
      if (text_parse_i64(word, &dim))
        proto_int(&d, 1, dim);
      else if (!sv_eq_str(word, "?"))
        add_string(&d, 2, after(word, starts(word, "name:") ? 5 : 0));
      proto_message(&shape, 1, &d);
    }
    if (has_dims)
      proto_message(&tensor, 2, &shape);
    else
      proto_release(&shape);
    if (sequence) {
      Proto inner = {0}, elements = {0};
      proto_message(&inner, 1, &tensor);
      proto_message(&elements, 1, &inner);
      proto_message(&type, 4, &elements);
    } else {
      proto_message(&type, 1, &tensor);
    }
    proto_message(&info, 2, &type);
  }
  proto_message(to, field, &info);
  return true;
}

/* --- nodes --- */

static bool add_list(Proto *attribute, uint32_t field, char kind, StrView list) {
  while (list.size) {
    StrView word = cut_at(&list, ',');
    int64_t whole = 0;
    double real = 0;
    if (kind == 's') {
      add_string(attribute, field, word);
    } else if (kind == 'i') {
      if (!text_parse_i64(word, &whole))
        return false;
      proto_int(attribute, field, whole);
    } else {
      if (!text_parse_double(word, &real))
        return false;
      proto_float(attribute, field, (float)real);
    }
  }
  return true;
}

static bool add_graph_value(Assembler *a, Proto *attribute, StrView name) {
  for (const NamedGraph *g = a->graphs; g; g = g->next)
    if (sv_eq(g->name, name)) {
      proto_bytes(attribute, 6, g->bytes.data, g->bytes.size);
      return true;
    }
  return wrong(a, "unknown graph", name);
}

/* NAME=KIND:VALUE, or NAME=-KIND:VALUE without the field that tells the type. */
static bool add_attribute(Assembler *a, Proto *node, StrView word) {
  static const struct {
    const char *prefix;
    uint32_t field, type;
  } kinds[] = {{"f:", 2, 1},  {"i:", 3, 2},  {"s:", 4, 3},  {"t:", 5, 4},   {"g:", 6, 5},
               {"fs:", 7, 6}, {"is:", 8, 7}, {"ss:", 9, 8}, {"ref:", 21, 0}};
  StrView value = word, name = cut_at(&value, '=');
  Proto attribute = {0};
  bool typed = !starts(value, "-");
  value = after(value, typed ? 0 : 1);
  add_string(&attribute, 1, name);
  for (size_t i = 0; i < COUNT_OF(kinds); i++) {
    if (!starts(value, kinds[i].prefix))
      continue;
    char kind = kinds[i].prefix[0];
    value = after(value, strlen(kinds[i].prefix));
    bool fine = kind == 't'   ? add_tensor(a, &attribute, 5, SV(""), value, SV(""))
                : kind == 'g' ? add_graph_value(a, &attribute, value)
                : kinds[i].type == 3 || kind == 'r'
                    ? (add_string(&attribute, kinds[i].field, value), true)
                    : add_list(&attribute, kinds[i].field, kind, value);
    if (!fine)
      break;
    if (kinds[i].type && typed)
      proto_int(&attribute, 20, kinds[i].type);
    proto_message(node, 5, &attribute);
    return true;
  }
  proto_release(&attribute);
  return wrong(a, "not an attribute", word);
}

static StrView domain_of(StrView *name) {
  if (!memchr(name->data, ':', name->size))
    return (StrView){"", 0};
  return cut_at(name, ':');
}

static Scope *scope(Assembler *a) { return a->depth ? &a->scopes[a->depth - 1] : NULL; }

static bool add_node(Assembler *a, const Line *line) {
  if (line->count < 3)
    return wrong(a, "a node needs a name and an op", line->words[0]);
  Proto node = {0};
  StrView op = line->words[2], domain = domain_of(&op);
  uint32_t field = 1;
  for (uint32_t i = 3; i < line->count; i++) {
    StrView word = line->words[i];
    if (sv_eq_str(word, "->"))
      field = 2;
    else if (field == 2 && word.size && memchr(word.data, '=', word.size)) {
      if (!add_attribute(a, &node, word))
        return false;
    } else
      add_string(&node, field, word);
  }
  add_string(&node, 3, line->words[1]);
  add_string(&node, 4, op);
  if (domain.size)
    add_string(&node, 7, domain);
  Scope *s = scope(a);
  proto_message(s ? &s->body : &a->graph, s && s->function ? 7 : 1, &node);
  return true;
}

/* --- lines --- */

static void add_import(Proto *to, uint32_t field, const char *domain, int64_t version) {
  Proto import = {0};
  proto_string(&import, 1, domain);
  proto_int(&import, 2, version);
  proto_message(to, field, &import);
}

static bool open_scope(Assembler *a, const Line *line) {
  if (a->depth == MAX_SCOPES || line->count < 2)
    return wrong(a, "too deep, or no name", line->words[0]);
  Scope *s = &a->scopes[a->depth++];
  StrView name = line->words[1], domain = domain_of(&name);
  *s = (Scope){.function = sv_eq_str(line->words[0], "function"), .name = name};
  add_string(&s->body, s->function ? 1 : 2, name);
  if (!s->function)
    return true;
  add_string(&s->body, 10, domain);
  add_import(&s->body, 9, "", 17);
  uint32_t field = 4;
  for (uint32_t i = 2; i < line->count; i++) {
    if (sv_eq_str(line->words[i], "->"))
      field = 5;
    else
      add_string(&s->body, field, line->words[i]);
  }
  return true;
}

static bool close_scope(Assembler *a, const Line *line) {
  Scope *s = scope(a);
  if (!s)
    return wrong(a, "nothing to end", line->words[0]);
  a->depth--;
  if (s->function) {
    proto_message(&a->functions, 25, &s->body);
    return true;
  }
  NamedGraph *g = ARENA_NEW(&a->arena, NamedGraph);
  *g = (NamedGraph){a->graphs, s->name, s->body};
  a->graphs = g;
  return true;
}

static bool add_opset(Assembler *a, const Line *line) {
  a->has_opset = true;
  if (line->count == 2 && sv_eq_str(line->words[1], "none"))
    return true;
  int64_t version = 0;
  if (line->count < 2 || !text_parse_i64(line->words[line->count - 1], &version))
    return wrong(a, "no version", line->words[0]);
  const char *domain = line->count > 2 ? arena_strdup(&a->arena, line->words[1]) : "";
  Scope *s = scope(a);
  add_import(s ? &s->body : &a->imports, s ? 9 : 8, domain, version);
  return true;
}

static bool add_raw(Assembler *a, const Line *line) {
  a->is_raw = true;
  StrView digits = line->count > 1 ? line->words[1] : (StrView){"", 0};
  for (size_t i = 0; i + 1 < digits.size; i += 2)
    proto_byte(&a->raw, (unsigned)(hex(digits.data[i]) << 4 | hex(digits.data[i + 1])));
  return true;
}

static bool assemble_line(Assembler *a, const Line *line) {
  StrView word = line->words[0];
  Scope *s = scope(a);
  Proto *body = s ? &s->body : &a->graph;
  if (sv_eq_str(word, "node"))
    return add_node(a, line);
  if (sv_eq_str(word, "graph") || sv_eq_str(word, "function"))
    return open_scope(a, line);
  if (sv_eq_str(word, "end"))
    return close_scope(a, line);
  if (sv_eq_str(word, "opset"))
    return add_opset(a, line);
  if (sv_eq_str(word, "raw"))
    return add_raw(a, line);
  if (line->count < 2)
    return wrong(a, "a word is missing", word);
  if (sv_eq_str(word, "ir"))
    return text_parse_i64(line->words[1], &a->ir) || wrong(a, "no number", line->words[1]);
  if (sv_eq_str(word, "cut"))
    return text_parse_i64(line->words[1], &a->cut) || wrong(a, "no number", line->words[1]);
  if (sv_eq_str(word, "in"))
    return add_value_info(a, body, 11, line);
  if (sv_eq_str(word, "out"))
    return add_value_info(a, body, 12, line);
  if (sv_eq_str(word, "info"))
    return add_value_info(a, body, 13, line);
  if (sv_eq_str(word, "init") && line->count > 2)
    return add_tensor(a, body, 5, line->words[1], line->words[2],
                      line->count > 3 ? line->words[3] : SV(""));
  if (sv_eq_str(word, "sparse") && line->count > 2)
    return add_sparse(a, body, line);
  return wrong(a, "unknown line", word);
}

/* --- repetition --- */

static bool assemble_text(Assembler *a, StrView text, uint32_t depth);

static void replace(StrBuf *out, StrView text, StrView variable, int64_t value) {
  for (size_t i = 0; i < text.size; i++) {
    StrView rest = after(text, i);
    size_t n = variable.size + 1;
    bool here = rest.size > n + 1 && rest.data[0] == '{' &&
                memcmp(rest.data + 1, variable.data, variable.size) == 0;
    int64_t add = here && starts(after(rest, n), "+1}")   ? 1
                  : here && starts(after(rest, n), "-1}") ? -1
                                                          : 0;
    if (here && (add || rest.data[n] == '}')) {
      strbuf_printf(out, "%lld", (long long)(value + add));
      i += n + (add ? 2 : 0);
    } else {
      strbuf_append_char(out, text.data[i]);
    }
  }
}

/* The lines up to the `done` that belongs to a repeat just read. */
static StrView block(StrView *rest) {
  const char *begin = rest->data;
  uint32_t open = 1;
  while (rest->size) {
    const char *at = rest->data;
    StrView line = cut_at(rest, '\n');
    open += starts(line, "repeat ");
    open -= starts(line, "done");
    if (!open)
      return (StrView){begin, (size_t)(at - begin)};
  }
  return (StrView){begin, (size_t)(rest->data - begin)};
}

static bool repeat(Assembler *a, const Line *line, StrView body, uint32_t depth) {
  int64_t from = 0, to = 0;
  if (line->count != 4 || !text_parse_i64(line->words[2], &from) ||
      !text_parse_i64(line->words[3], &to) || depth > 4)
    return wrong(a, "repeat VAR FROM TO", line->words[0]);
  for (int64_t i = from; i <= to; i++) {
    StrBuf text = {0};
    replace(&text, body, line->words[1], i);
    bool fine = assemble_text(a, (StrView){strbuf_cstr(&text), text.size}, depth + 1);
    strbuf_release(&text);
    if (!fine)
      return false;
  }
  return true;
}

static bool assemble_text(Assembler *a, StrView text, uint32_t depth) {
  Line *line = xrealloc(NULL, sizeof *line);
  bool fine = true;
  while (fine && text.size) {
    split(a, cut_at(&text, '\n'), line);
    if (!line->count)
      continue;
    if (sv_eq_str(line->words[0], "repeat")) {
      StrView body = block(&text);
      fine = repeat(a, line, body, depth);
    } else {
      fine = assemble_line(a, line);
    }
  }
  xfree(line);
  return fine && !a->error->size;
}

bool onnx_assemble(StrView text, StrBuf *model, StrBuf *error) {
  Assembler a = {.error = error, .ir = 8};
  a.arena = (Arena){0};
  proto_string(&a.graph, 2, "test");
  bool fine = assemble_text(&a, text, 0);
  if (!a.has_opset)
    proto_import(&a.imports, "", 17);
  proto_int(&a.model, 1, a.ir);
  proto_raw(&a.model, a.imports.data, a.imports.size);
  proto_message(&a.model, 7, &a.graph);
  proto_raw(&a.model, a.functions.data, a.functions.size);
  const Proto *bytes = a.is_raw ? &a.raw : &a.model;
  size_t cut = (size_t)(a.cut < 0 || (uint64_t)a.cut > bytes->size ? 0 : a.cut);
  proto_raw(model, bytes->data, bytes->size - cut);
  for (NamedGraph *g = a.graphs; g; g = g->next)
    proto_release(&g->bytes);
  proto_release(&a.model);
  proto_release(&a.functions);
  proto_release(&a.imports);
  proto_release(&a.raw);
  arena_release(&a.arena);
  return fine;
}

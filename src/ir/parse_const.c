/* Constants: elements, bytes in hex, spans of files, and references by hash. A file is believed
 * only when the bytes of the span have the hash that the text says, so that a text and a model that
 * do not belong together are noticed, and so that a text gets nothing out of a file but what it
 * knows. */
#include <unistd.h>

#include "ir/const_text.h"
#include "ir/parser.h"
#include "ir/transform.h"
#include "support/hash.h"
#include "support/text.h"

/* --- constants of another graph --- */

static uint64_t known_key(const Constant *c) {
  return c->file ? hash_mix64(c->file_offset, c->size) : hash_mix64(constant_hash(c), c->size);
}

static void known_add(KnownConstants *k, const Constant *c) {
  if (c->size <= CONST_INLINE_MAX)
    return;
  uint64_t key = known_key(c);
  uint32_t slot = (uint32_t)key & (k->slot_count - 1);
  while (k->slots[slot])
    slot = (slot + 1) & (k->slot_count - 1);
  k->slots[slot] = c;
  k->keys[slot] = key;
}

/* Of a transform that is printed as one, the scales may be neither in a file nor in the text. */
static void known_fill(Parser *p) {
  KnownConstants *k = &p->known;
  k->slot_count = hash_slots(k->graph->constant_count);
  k->slots = ARENA_ARRAY(&p->arena, const Constant *, k->slot_count);
  k->keys = ARENA_ARRAY(&p->arena, uint64_t, k->slot_count);
  for (ConstId i = 1; i < k->graph->constant_count; i++) {
    const Constant *c = &k->graph->constants[i];
    if (!c->transform || !c->transform->source.file)
      known_add(k, c);
    else if (transform_has_scales(c->transform))
      known_add(k, &c->transform->scales);
  }
}

/* The constant that wanted describes: of a file when wanted.file is set (by its path), else one in
 * memory with that hash. NULL when there is none. */
static const Constant *known_find(Parser *p, uint64_t key, StrView path, uint64_t size) {
  KnownConstants *k = &p->known;
  if (!k->graph)
    return NULL;
  if (!k->slot_count)
    known_fill(p);
  for (uint32_t slot = (uint32_t)key & (k->slot_count - 1); k->slots[slot];
       slot = (slot + 1) & (k->slot_count - 1)) {
    const Constant *c = k->slots[slot];
    if (k->keys[slot] == key && c->size == size &&
        (c->file ? path.data && sv_eq_str(path, c->file->path) : !path.data))
      return c;
  }
  return NULL;
}

/* --- files --- */

/* Relative paths are looked up below the folder of the text, else below the current one. */
static Status map_source(Parser *p, StrView path, MappedFile *file, DiagPlace place) {
  Arena *arena = &p->ctx->arena;
  char *terminated = arena_strdup(arena, path);
  if (strlen(terminated) != path.size)
    return diag_report(p->ctx->sink, DIAG_EXTERNAL_PATH, place, "a path holds a NUL character");
  Status status;
  if (path.size && path.data[0] == '/') {
    status = file_map(file, arena, p->ctx->sink, terminated);
  } else {
    const char *text_file = arena_strdup(&p->arena, p->lex.file);
    const char *slash = strrchr(text_file, '/');
    int folder = slash ? (int)(slash - text_file) + 1 : 0;
    const char *beside = arena_printf(&p->arena, "%.*s%s", folder, text_file, terminated);
    const char *base = access(beside, F_OK) == 0 ? text_file : ".";
    status = file_map_beneath(file, arena, p->ctx->sink, base, path, p->ctx->linked_data, place);
  }
  if (status == STATUS_OK)
    file->path = terminated; /* prints as it was read */
  return status;
}

/* Mapped files stay: constants of the graphs point into them for as long as the context lives. */
static Status find_source(Parser *p, const char *at, StrView path, const MappedFile **out) {
  for (SourceFile *f = p->files; f; f = f->next)
    if (sv_eq(f->path, path)) {
      *out = f->file;
      return STATUS_OK;
    }
  DiagPlace place = DIAG_NOWHERE;
  place.file = p->lex.file;
  MappedFile *file = context_file(p->ctx);
  Status status = map_source(p, path, file, place);
  if (status != STATUS_OK) {
    (void)lexer_error(&p->lex, at, "a constant needs this file");
    return status;
  }
  SourceFile *entry = ARENA_NEW(&p->arena, SourceFile);
  *entry = (SourceFile){sv_from(file->path), file, p->files};
  p->files = entry;
  *out = file;
  return STATUS_OK;
}

static Status parse_hash(Parser *p, uint64_t *out) {
  Lexer *l = &p->lex;
  TRY(lexer_expect(l, "xxh3"));
  TRY(lexer_expect(l, ":"));
  StrView digits = lexer_element(l);
  uint64_t value = 0;
  bool ok = digits.size == 16;
  for (size_t i = 0; ok && i < digits.size; i++) {
    const char *hex = "0123456789abcdef", *digit = memchr(hex, digits.data[i], 16);
    ok = digit != NULL; /* as it is printed: no capitals */
    value = ok ? value << 4 | (uint64_t)(digit - hex) : 0;
  }
  if (!ok)
    return lexer_error(l, digits.data, "a hash has 16 hexadecimal digits");
  *out = value;
  return STATUS_OK;
}

static Status parse_file(Parser *p, uint64_t bytes, Constant *out) {
  Lexer *l = &p->lex;
  TRY(lexer_expect(l, "("));
  const char *at = l->at;
  strbuf_clear(&p->text);
  TRY(lexer_string(l, "the path of a file", &p->text));
  StrView path = {arena_strdup(&p->scratch, (StrView){strbuf_cstr(&p->text), p->text.size}),
                  p->text.size};
  uint64_t offset = 0, size = 0, hash = 0, end;
  TRY(lexer_expect(l, ","));
  TRY(lexer_u64(l, "an offset", &offset));
  TRY(lexer_expect(l, ","));
  TRY(lexer_u64(l, "a size", &size));
  TRY(lexer_expect(l, ","));
  TRY(parse_hash(p, &hash));
  TRY(lexer_expect(l, ")"));
  if (size != bytes)
    return lexer_error(l, at, "the constant has %llu bytes by its type, not %llu",
                       (unsigned long long)bytes, (unsigned long long)size);
  const Constant *known = known_find(p, hash_mix64(offset, size), path, size);
  if (known && known->file_offset == offset) {
    *out = *known;
    return STATUS_OK;
  }
  const MappedFile *file = NULL;
  TRY(find_source(p, at, path, &file));
  if (!add_u64(offset, size, &end) || end > file->size)
    return lexer_error(l, at, "the constant reaches beyond the end of its file (%llu bytes)",
                       (unsigned long long)file->size);
  *out = (Constant){.data = file->data + offset, .size = size, .file = file, .file_offset = offset};
  if (constant_hash(out) != hash)
    return lexer_error(l, at,
                       "'%s' has other bytes there than when the text was written: lower the "
                       "model again with --artifacts",
                       file->path);
  return STATUS_OK;
}

static Status parse_reference(Parser *p, uint64_t bytes, Constant *out) {
  Lexer *l = &p->lex;
  const char *at = l->at;
  uint64_t hash = 0, size = 0;
  TRY(lexer_expect(l, "("));
  TRY(parse_hash(p, &hash));
  TRY(lexer_expect(l, ","));
  TRY(lexer_u64(l, "a size", &size));
  TRY(lexer_expect(l, ")"));
  const Constant *known = known_find(p, hash_mix64(hash, size), (StrView){0}, size);
  if (!known || size != bytes)
    return lexer_error(l, at, "the values of this constant are not in the text%s",
                       p->known.graph ? "" : "; print it with full constants");
  *out = *known;
  return STATUS_OK;
}

/* --- values in the text --- */

static Status parse_hex(Parser *p, uint64_t bytes, Constant *out) {
  Lexer *l = &p->lex;
  const char *at = l->at;
  StrView digits;
  TRY(lexer_raw_string(l, &digits));
  if (digits.size % 2 || digits.size / 2 != bytes)
    return lexer_error(l, at, "the constant has %llu bytes by its type, so %llu digits",
                       (unsigned long long)bytes, (unsigned long long)bytes * 2);
  uint8_t *data = arena_alloc(&p->g->arena, bytes);
  for (uint64_t i = 0; i < bytes; i++) {
    int high = hex_digit(digits.data[2 * i]), low = hex_digit(digits.data[2 * i + 1]);
    if (high < 0 || low < 0)
      return lexer_error(l, digits.data + 2 * i, "expected hexadecimal digits");
    data[i] = (uint8_t)(high << 4 | low);
  }
  *out = (Constant){.data = data, .size = bytes};
  return STATUS_OK;
}

static Status parse_element(Parser *p, DType dtype, uint8_t *to) {
  Lexer *l = &p->lex;
  StrView text = lexer_element(l);
  if (element_parse(dtype, text, to))
    return STATUS_OK;
  l->at = text.data;
  char what[48] = "an element of type ";
  const char *name = dtype_name(dtype);
  memcpy(what + strlen(what), name, strlen(name) + 1);
  return lexer_expected(l, what);
}

static Status parse_elements(Parser *p, const Type *type, uint64_t bytes, Constant *out) {
  Lexer *l = &p->lex;
  lexer_skip(l);
  const char *at = l->at;
  DType dtype = (DType)type->dtype;
  bool list = type->rank > 0;
  uint64_t count = bytes / dtype_size(dtype);
  if (count > (uint64_t)(l->end - l->at))
    return lexer_error(l, at, "the constant has %llu elements by its type",
                       (unsigned long long)count);
  uint8_t *data = arena_alloc(&p->g->arena, bytes);
  if (list)
    TRY(lexer_expect(l, "["));
  for (uint64_t i = 0; i < count; i++) {
    if (i)
      TRY(lexer_expect(l, ","));
    TRY(parse_element(p, dtype, data + i * dtype_size(dtype)));
  }
  if (list && !lexer_accept(l, "]"))
    return lexer_error(l, at, "the constant has %llu elements by its type, expected ']' after them",
                       (unsigned long long)count);
  *out = (Constant){.data = data, .size = bytes};
  return STATUS_OK;
}

/* --- transforms --- */

/* Bytes without a type: "SIZE, DATA". */
static Status parse_bytes(Parser *p, Constant *out) {
  Lexer *l = &p->lex;
  uint64_t bytes = 0;
  TRY(lexer_expect(l, ","));
  TRY(lexer_u64(l, "a size", &bytes));
  TRY(lexer_expect(l, ","));
  if (lexer_accept_word(l, "file"))
    return parse_file(p, bytes, out);
  if (lexer_accept_word(l, "hash"))
    return parse_reference(p, bytes, out);
  TRY(lexer_expect(l, "hex"));
  return parse_hex(p, bytes, out);
}

static Status parse_number(Parser *p, const char *what, int8_t *out) {
  const char *at = p->lex.at;
  int64_t number = 0;
  TRY(lexer_i64(&p->lex, what, &number));
  if (number < INT8_MIN || number > INT8_MAX)
    return lexer_error(&p->lex, at, "codes are from -128 to 127");
  *out = (int8_t)number;
  return STATUS_OK;
}

/* What quantizes floats. */
static Status parse_quantizer(Parser *p, Transform *t) {
  t->element = sizeof(float);
  t->finite = lexer_accept_word(&p->lex, "finite");
  TRY(parse_number(p, "the lowest code", &t->low));
  TRY(lexer_expect(&p->lex, ".."));
  return parse_number(p, "the highest code", &t->high);
}

static Status parse_code(Parser *p, Transform *t) {
  Lexer *l = &p->lex;
  if (lexer_accept_word(l, "copy")) {
    uint64_t element = 0;
    TRY(lexer_u64(l, "the bytes of an element", &element));
    t->element = element > 8 ? 0 : (uint32_t)element;
    return STATUS_OK;
  }
  bool eight = lexer_accept_word(l, "int8");
  if (eight || lexer_accept_word(l, "int4")) {
    t->code = eight ? TRANSFORM_INT8 : TRANSFORM_INT4;
    return parse_quantizer(p, t);
  }
  bool unpacks = lexer_accept_word(l, "unpack"), recodes = lexer_accept_word(l, "recode");
  if (!unpacks && !recodes && !lexer_accept_word(l, "repack"))
    return lexer_expected(l, "copy, int8, int4, unpack, repack or recode");
  t->code = unpacks ? TRANSFORM_UNPACK : recodes ? TRANSFORM_RECODE : TRANSFORM_REPACK;
  t->element = 1;
  t->twos_complement = lexer_accept_word(l, "twos");
  t->nibbles = unpacks || (!recodes && lexer_accept_word(l, "nibbles"));
  return unpacks ? parse_number(p, "what is added", &t->low) : STATUS_OK;
}

/* Sizes, strides, strides of the scales: each ", 64x9x32". */
static Status parse_dims(Parser *p, Transform *t) {
  Lexer *l = &p->lex;
  for (uint32_t what = 0; what < (transform_has_scales(t) ? 3 : 2); what++) {
    uint32_t count = 0;
    TRY(lexer_expect(l, ","));
    do {
      uint64_t number = 0;
      if (count == TRANSFORM_MAX_RANK)
        return lexer_error(l, l->at, "a transform has 8 dims at most");
      TRY(lexer_u64(l, "a size or stride", &number));
      TransformDim *d = &t->dims[count++];
      *(what == 0 ? &d->size : what == 1 ? &d->stride : &d->scale) = number;
    } while (lexer_accept(l, "x"));
    if (what && count != t->rank)
      return lexer_error(l, l->at, "expected %u strides", t->rank);
    t->rank = count;
  }
  return STATUS_OK;
}

static Status parse_transform(Parser *p, uint64_t bytes, Constant *out) {
  Lexer *l = &p->lex;
  const char *at = l->at;
  Transform t = {.element = 0};
  TRY(lexer_expect(l, "("));
  TRY(parse_code(p, &t));
  TRY(parse_dims(p, &t));
  if (transform_has_scales(&t))
    TRY(parse_bytes(p, &t.scales));
  TRY(parse_bytes(p, &t.source));
  TRY(lexer_expect(l, ")"));
  const char *fault = transform_fault(&t);
  if (fault)
    return lexer_error(l, at, "%s", fault);
  if (transform_bytes(&t) != bytes)
    return lexer_error(l, at, "the constant has %llu bytes by its type, not %llu",
                       (unsigned long long)bytes, (unsigned long long)transform_bytes(&t));
  *out = constant_transform(p->g, &t);
  return STATUS_OK;
}

Status parse_data(Parser *p, TypeId id, Constant *out) {
  Lexer *l = &p->lex;
  Type type = *type_get(p->g, id);
  uint64_t bytes = type_bytes_upper(p->g, &type);
  if (type.kind != TYPE_TENSOR || !type_is_static(&type) || bytes == UINT64_MAX)
    return lexer_error(l, l->at, "the type of a constant is a tensor of known size");
  if (lexer_accept_word(l, "file"))
    return parse_file(p, bytes, out);
  if (lexer_accept_word(l, "hash"))
    return parse_reference(p, bytes, out);
  if (lexer_accept_word(l, "hex"))
    return parse_hex(p, bytes, out);
  if (lexer_accept_word(l, "transform"))
    return parse_transform(p, bytes, out);
  return parse_elements(p, &type, bytes, out);
}

/* The .npy format: magic, version, length of a header that is a Python dictionary, the numbers.
 * Facts: numpy/lib/format.py of NumPy 1.26 (its "Format Version 1.0" to "3.0"). The header is
 * parsed strictly: the three keys, each once, and nothing else. */
#include "interp/npy.h"

#include <inttypes.h>
#include <stdio.h>

#include "support/text.h"

typedef struct ParsedHeader {
  StrView descr;
  bool fortran, have_descr, have_order, have_shape;
  uint32_t rank;
  int64_t dims[MAX_RANK];
} ParsedHeader;

typedef struct Cursor {
  const char *at, *end;
} Cursor;

static void skip_space(Cursor *c) {
  while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t'))
    c->at++;
}

static bool take(Cursor *c, char expected) {
  skip_space(c);
  if (c->at == c->end || *c->at != expected)
    return false;
  c->at++;
  return true;
}

static bool take_word(Cursor *c, StrView word) {
  skip_space(c);
  if (!sv_starts_with((StrView){c->at, (size_t)(c->end - c->at)}, word))
    return false;
  c->at += word.size;
  return true;
}

static bool take_string(Cursor *c, StrView *out) {
  skip_space(c);
  if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
    return false;
  char quote = *c->at++;
  const char *begin = c->at;
  while (c->at < c->end && *c->at != quote && *c->at != '\\')
    c->at++;
  *out = (StrView){begin, (size_t)(c->at - begin)};
  return take(c, quote);
}

static bool take_shape(Cursor *c, ParsedHeader *h) {
  if (!take(c, '('))
    return false;
  while (!take(c, ')')) {
    skip_space(c);
    const char *begin = c->at;
    while (c->at < c->end && is_digit(*c->at))
      c->at++;
    StrView digits = {begin, (size_t)(c->at - begin)};
    if (h->rank == MAX_RANK || !text_parse_i64(digits, &h->dims[h->rank]))
      return false;
    h->rank++;
    skip_space(c);
    if (c->at < c->end && *c->at != ')' && !take(c, ','))
      return false;
  }
  return true;
}

static bool take_field(Cursor *c, ParsedHeader *h) {
  StrView key;
  if (!take_string(c, &key) || !take(c, ':'))
    return false;
  if (sv_eq(key, SV("descr")) && !h->have_descr) {
    h->have_descr = true;
    return take_string(c, &h->descr);
  }
  if (sv_eq(key, SV("fortran_order")) && !h->have_order) {
    h->have_order = true;
    h->fortran = take_word(c, SV("True"));
    return h->fortran || take_word(c, SV("False"));
  }
  if (sv_eq(key, SV("shape")) && !h->have_shape) {
    h->have_shape = true;
    return take_shape(c, h);
  }
  return false;
}

static bool parse_header(StrView text, ParsedHeader *h) {
  Cursor c = {text.data, text.data + text.size};
  *h = (ParsedHeader){0};
  if (!take(&c, '{'))
    return false;
  while (!take(&c, '}')) {
    if (!take_field(&c, h))
      return false;
    skip_space(&c);
    if (c.at < c.end && *c.at != '}' && !take(&c, ','))
      return false;
  }
  skip_space(&c);
  return c.at == c.end && h->have_descr && h->have_order && h->have_shape;
}

/* numpy's names. The first row of a dtype is the one that is written. */
typedef struct NpyType {
  const char *descr; /* without the byte order */
  DType dtype;
} NpyType;
static const NpyType npy_types[] = {
    {"b1", DTYPE_BOOL},       {"i1", DTYPE_I8},        {"u1", DTYPE_U8},     {"i2", DTYPE_I16},
    {"u2", DTYPE_U16},        {"i4", DTYPE_I32},       {"u4", DTYPE_U32},    {"i8", DTYPE_I64},
    {"u8", DTYPE_U64},        {"f2", DTYPE_F16},       {"f4", DTYPE_F32},    {"f8", DTYPE_F64},
    {"c8", DTYPE_C64},        {"V2", DTYPE_BF16},      {"V1", DTYPE_F8E5M2}, {"V1", DTYPE_F8E4M3FN},
    {"V1", DTYPE_F8E5M2FNUZ}, {"V1", DTYPE_F8E4M3FNUZ}};

static bool is_raw(DType t) { return t == DTYPE_BF16 || dtype_in(t, DTS_FLOAT8); }

static bool type_of(StrView descr, DType expected, DType *out, bool *big_endian) {
  *big_endian = false;
  if (sv_eq(descr, SV("bfloat16"))) {
    *out = DTYPE_BF16;
    return true;
  }
  if (descr.size && strchr("<>=|", descr.data[0])) {
    *big_endian = descr.data[0] == '>';
    descr = (StrView){descr.data + 1, descr.size - 1};
  }
  for (size_t i = 0; i < COUNT_OF(npy_types); i++) {
    if (!sv_eq_str(descr, npy_types[i].descr))
      continue;
    *out = npy_types[i].dtype;
    bool bytes = is_raw(*out) || *out == DTYPE_U16 || *out == DTYPE_U8;
    if (bytes && is_raw(expected) && dtype_size(expected) == dtype_size(*out))
      *out = expected;
    return true;
  }
  return false;
}

static Status npy_error(DiagSink *sink, const char *path, const char *format, ...) ETC_PRINTF(3, 4);
static Status npy_error(DiagSink *sink, const char *path, const char *format, ...) {
  va_list args;
  va_start(args, format);
  Status status = diag_vreport(sink, DIAG_NPY_FORMAT, diag_file(path), "", format, args);
  va_end(args);
  return status;
}

static Status not_an_array(const uint8_t *bytes, uint64_t size, DiagSink *sink, const char *path) {
  if (size < 4 || memcmp(bytes, "PK\x03\x04", 4) != 0)
    return npy_error(sink, path, "this is not a .npy file");
  Diag *d = diag_begin(sink, DIAG_NPY_FORMAT, diag_file(path));
  diag_message(d, "this is an archive of arrays (.npz), where one array is wanted");
  diag_hint(d, "save that array alone, by numpy.save");
  return diag_end(d);
}

static Status no_tensor_type(const ParsedHeader *h, DiagSink *sink, const char *path) {
  Diag *d = diag_begin(sink, DIAG_NPY_FORMAT, diag_file(path));
  diag_message(d, "a tensor cannot have numpy's element type '" SV_FMT "'",
               (int)min_i64((int64_t)h->descr.size, 40), h->descr.data);
  diag_hint(d, "convert the array to numbers or booleans with numpy.ndarray.astype");
  return diag_end(d);
}

void npy_hint_conversion(Diag *d, DType given, DType wanted) {
  if (wanted == DTYPE_BF16) {
    diag_hint(d,
              "numpy has no bfloat16: give the bit patterns as uint16, or convert the array with "
              "numpy.ndarray.astype(ml_dtypes.bfloat16)");
    return;
  }
  bool scaled = dtype_in(wanted, DTS_FLOAT) && dtype_in(given, DT(U8) | DT(I8));
  for (size_t i = 0; i < COUNT_OF(npy_types); i++) {
    const char *descr = npy_types[i].descr;
    if (npy_types[i].dtype != wanted || is_raw(wanted))
      continue;
    const char *kind = *descr == 'f'   ? "float"
                       : *descr == 'i' ? "int"
                       : *descr == 'u' ? "uint"
                       : *descr == 'c' ? "complex"
                                       : NULL;
    const char *how = scaled ? ", and scale it as the training did" : "";
    if (kind)
      diag_hint(d, "convert the array with numpy.ndarray.astype('%s%d')%s", kind,
                8 * (descr[1] - '0'), how);
    else
      diag_hint(d, "convert the array with numpy.ndarray.astype('bool')");
    return;
  }
}

bool npy_is_array(const uint8_t *bytes, uint64_t size) {
  return (size >= 4 && memcmp(bytes, "PK\x03\x04", 4) == 0) ||
         (size >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0);
}

uint64_t npy_data_at(const uint8_t *preamble) {
  if (memcmp(preamble, "\x93NUMPY", 6) != 0)
    return 0;
  uint64_t length = preamble[8] | (uint64_t)preamble[9] << 8;
  if (preamble[6] == 1)
    return 10 + length;
  return 12 + (length | (uint64_t)preamble[10] << 16 | (uint64_t)preamble[11] << 24);
}

/* Finds the header and parses it. */
static Status parse_file(const uint8_t *bytes, uint64_t size, DiagSink *sink, const char *path,
                         ParsedHeader *h, uint64_t *data_at) {
  if (size < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
    return not_an_array(bytes, size, sink, path);
  if (bytes[6] < 1 || bytes[6] > 3)
    return npy_error(sink, path, ".npy version %u is not known", bytes[6]);
  uint64_t begin = bytes[6] > 1 ? 12 : 10;
  uint8_t preamble[NPY_PREAMBLE] = {0};
  memcpy(preamble, bytes, size < begin ? size : begin);
  *data_at = npy_data_at(preamble);
  if (size < begin || *data_at > size)
    return npy_error(sink, path, "the file ends in its header");
  StrView text = {(const char *)bytes + begin, (size_t)(*data_at - begin)};
  if (!parse_header(text, h))
    return npy_error(sink, path,
                     "the header is not understood, or the array has more than %d dimensions",
                     MAX_RANK);
  return STATUS_OK;
}

Status npy_read_head(const uint8_t *bytes, uint64_t size, DType expected, const char *path,
                     DiagSink *sink, NpyHead *head) {
  ParsedHeader h;
  *head = (NpyHead){0};
  TRY(parse_file(bytes, size, sink, path, &h, &head->data_at));
  if (!type_of(h.descr, expected, &head->dtype, &head->big_endian))
    return no_tensor_type(&h, sink, path);
  head->rank = h.rank;
  head->fortran = h.fortran;
  memcpy(head->dims, h.dims, sizeof head->dims);
  head->bytes = dtype_size(head->dtype);
  bool empty = false;
  for (uint32_t i = 0; i < h.rank; i++) {
    empty |= h.dims[i] == 0;
    if (!mul_u64(head->bytes, (uint64_t)max_i64(h.dims[i], 1), &head->bytes) ||
        head->bytes > INT64_MAX)
      return npy_error(sink, path, "the shape has more elements than memory can hold");
  }
  if (empty)
    head->bytes = 0;
  return STATUS_OK;
}

void npy_swap_bytes(Tensor *t) {
  unsigned size =
      t->dtype == DTYPE_C64 ? 4 : dtype_size(t->dtype); /* of a part of a complex number */
  uint8_t *data = t->data;
  for (uint64_t at = 0; at + size <= t->capacity; at += size)
    for (unsigned k = 0; k < size / 2; k++) {
      uint8_t byte = data[at + k];
      data[at + k] = data[at + size - 1 - k];
      data[at + size - 1 - k] = byte;
    }
}

/* Column-major from to row-major to. */
static void reorder(const Tensor *t, const uint8_t *from, uint8_t *to) {
  unsigned size = dtype_size(t->dtype);
  int64_t count = tensor_numel(t), index[MAX_RANK] = {0}, strides[MAX_RANK], stride = 1;
  for (uint32_t i = 0; i < t->rank; i++) {
    strides[i] = stride;
    stride *= t->dims[i];
  }
  for (int64_t i = 0; i < count; i++) {
    int64_t at = 0;
    for (uint32_t d = 0; d < t->rank; d++)
      at += index[d] * strides[d];
    memcpy(to + i * size, from + at * size, size);
    for (uint32_t d = t->rank; d-- > 0 && ++index[d] == t->dims[d];)
      index[d] = 0;
  }
}

static bool bools_are_clean(const uint8_t *data, uint64_t count) {
  uint8_t all = 0;
  for (uint64_t i = 0; i < count; i++)
    all |= data[i];
  return all <= 1;
}

/* The numbers as tensors have them: in place where the file has them so. */
static void load_data(NpyArray *a, Arena *arena, const uint8_t *data, bool fortran,
                      bool big_endian) {
  Tensor *t = &a->tensor;
  t->data = (void *)(uintptr_t)data; /* read only, see npy.h */
  bool fortran_differs = fortran && t->rank > 1;
  if (!fortran_differs && !big_endian && (uintptr_t)data % 16 == 0)
    return;
  t->data = arena_alloc(arena, (size_t)t->capacity);
  if (fortran_differs)
    reorder(t, data, t->data);
  else
    memcpy(t->data, data, (size_t)t->capacity);
  if (big_endian)
    npy_swap_bytes(t);
}

static Status read_mapped(NpyArray *a, Arena *arena, DiagSink *sink, const char *path,
                          DType expected) {
  NpyHead head;
  Tensor *t = &a->tensor;
  TRY(npy_read_head(a->file.data, a->file.size, expected, path, sink, &head));
  t->dtype = head.dtype;
  t->rank = head.rank;
  memcpy(t->dims, head.dims, sizeof t->dims);
  const uint8_t *data = a->file.data + head.data_at;
  uint64_t left = a->file.size - head.data_at;
  if (head.bytes != left)
    return npy_error(sink, path, "the shape needs %" PRIu64 " bytes, the file has %" PRIu64,
                     head.bytes, left);
  t->capacity = head.bytes;
  if (t->dtype == DTYPE_BOOL && !bools_are_clean(data, head.bytes))
    return npy_error(sink, path, "a bool is neither 0 nor 1");
  load_data(a, arena, data, head.fortran, head.big_endian);
  return STATUS_OK;
}

Status npy_read(NpyArray *array, Arena *arena, DiagSink *sink, const char *path, DType expected) {
  *array = (NpyArray){.file.fd = -1};
  TRY(file_map(&array->file, arena, sink, path));
  Status status = read_mapped(array, arena, sink, path, expected);
  if (status != STATUS_OK)
    npy_close(array);
  return status;
}

void npy_close(NpyArray *array) { file_unmap(&array->file); }

static const char *descr_of(DType dtype) {
  for (size_t i = 0; i < COUNT_OF(npy_types); i++)
    if (npy_types[i].dtype == dtype)
      return npy_types[i].descr;
  BUG("no .npy type for %s", dtype_name(dtype));
}

Status npy_write(const Tensor *t, Arena *arena, DiagSink *sink, const char *path) {
  StrBuf header = {0};
  strbuf_printf(&header, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                dtype_size(t->dtype) == 1 ? '|' : '<', descr_of(t->dtype));
  for (uint32_t i = 0; i < t->rank; i++)
    strbuf_printf(&header, "%" PRId64 "%s", t->dims[i],
                  i + 1 < t->rank ? ", "
                  : t->rank == 1  ? ","
                                  : "");
  strbuf_append(&header, SV("), }"));
  /* The numbers begin at a multiple of 64; the header ends with a newline. */
  while ((10 + header.size + 1) % 64)
    strbuf_append_char(&header, ' ');
  strbuf_append_char(&header, '\n');
  const uint8_t preamble[10] = {
      0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)header.size, (uint8_t)(header.size >> 8)};
  AtomicFile file;
  Status status = atomic_file_open(&file, arena, sink, path);
  if (status == STATUS_OK) {
    atomic_file_write(&file, preamble, sizeof preamble);
    atomic_file_write(&file, header.data, header.size);
    atomic_file_write(&file, t->data, tensor_bytes(t));
    status = atomic_file_commit(&file, false);
  }
  strbuf_release(&header);
  return status;
}

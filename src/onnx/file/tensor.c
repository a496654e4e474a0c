/* The bytes of a tensor (see tensor.h).
 *
 * The message that protobuf-c made has no data fields; the span that skim.c left leads to the
 * message in the file, whose fields are walked once more here: first to see which data it has and
 * how much, then, only if something must be converted, to convert it. Nothing is allocated before
 * the amount of data in the file was compared with what dims and type need.
 *
 * Source: the comments of TensorProto in onnx.proto of ONNX 1.23 say which typed field holds which
 * element type. */
#include "onnx/file/tensor.h"

#include <stdarg.h>
#include <stdio.h>

#include "onnx/file/external.h"
#include "onnx/file/skim.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "raw data is used in place, so the host must be little-endian");

typedef struct DtypeRow {
  const char *name;
  DType dtype;      /* NONE: the IR does not have it */
  uint8_t bits;     /* 0: no view */
  uint8_t field;    /* the typed field that holds it */
  int64_t min, max; /* of an entry of a varint field; any value fits when both are 0 */
} DtypeRow;

#define ONNX(name) ONNX__TENSOR_PROTO__DATA_TYPE__##name
static const DtypeRow dtypes[] = {
    [ONNX(UNDEFINED)] = {"undefined", DTYPE_NONE, 0, 0, 0, 0},
    [ONNX(FLOAT)] = {"float", DTYPE_F32, 32, TENSOR_FLOAT_DATA, 0, 0},
    [ONNX(UINT8)] = {"uint8", DTYPE_U8, 8, TENSOR_INT32_DATA, 0, UINT8_MAX},
    [ONNX(INT8)] = {"int8", DTYPE_I8, 8, TENSOR_INT32_DATA, INT8_MIN, INT8_MAX},
    [ONNX(UINT16)] = {"uint16", DTYPE_U16, 16, TENSOR_INT32_DATA, 0, UINT16_MAX},
    [ONNX(INT16)] = {"int16", DTYPE_I16, 16, TENSOR_INT32_DATA, INT16_MIN, INT16_MAX},
    [ONNX(INT32)] = {"int32", DTYPE_I32, 32, TENSOR_INT32_DATA, 0, 0},
    [ONNX(INT64)] = {"int64", DTYPE_I64, 64, TENSOR_INT64_DATA, 0, 0},
    [ONNX(STRING)] = {"string", DTYPE_NONE, 0, TENSOR_STRING_DATA, 0, 0},
    [ONNX(BOOL)] = {"bool", DTYPE_BOOL, 8, TENSOR_INT32_DATA, 0, 1},
    [ONNX(FLOAT16)] = {"float16", DTYPE_F16, 16, TENSOR_INT32_DATA, 0, UINT16_MAX},
    [ONNX(DOUBLE)] = {"double", DTYPE_F64, 64, TENSOR_DOUBLE_DATA, 0, 0},
    [ONNX(UINT32)] = {"uint32", DTYPE_U32, 32, TENSOR_UINT64_DATA, 0, UINT32_MAX},
    [ONNX(UINT64)] = {"uint64", DTYPE_U64, 64, TENSOR_UINT64_DATA, 0, 0},
    [ONNX(COMPLEX64)] = {"complex64", DTYPE_NONE, 0, TENSOR_FLOAT_DATA, 0, 0},
    [ONNX(COMPLEX128)] = {"complex128", DTYPE_NONE, 0, TENSOR_DOUBLE_DATA, 0, 0},
    [ONNX(BFLOAT16)] = {"bfloat16", DTYPE_BF16, 16, TENSOR_INT32_DATA, 0, UINT16_MAX},
    [ONNX(FLOAT8E4M3FN)] = {"float8e4m3fn", DTYPE_F8E4M3FN, 8, TENSOR_INT32_DATA, 0, UINT8_MAX},
    [ONNX(FLOAT8E4M3FNUZ)] = {"float8e4m3fnuz", DTYPE_F8E4M3FNUZ, 8, TENSOR_INT32_DATA, 0,
                              UINT8_MAX},
    [ONNX(FLOAT8E5M2)] = {"float8e5m2", DTYPE_F8E5M2, 8, TENSOR_INT32_DATA, 0, UINT8_MAX},
    [ONNX(FLOAT8E5M2FNUZ)] = {"float8e5m2fnuz", DTYPE_F8E5M2FNUZ, 8, TENSOR_INT32_DATA, 0,
                              UINT8_MAX},
    [ONNX(UINT4)] = {"uint4", DTYPE_NONE, 4, TENSOR_INT32_DATA, 0, UINT8_MAX},
    [ONNX(INT4)] = {"int4", DTYPE_NONE, 4, TENSOR_INT32_DATA, 0, UINT8_MAX},
    [ONNX(FLOAT4E2M1)] = {"float4e2m1", DTYPE_NONE, 4, TENSOR_INT32_DATA, 0, UINT8_MAX},
    [ONNX(FLOAT8E8M0)] = {"float8e8m0", DTYPE_NONE, 8, TENSOR_INT32_DATA, 0, UINT8_MAX},
    [ONNX(UINT2)] = {"uint2", DTYPE_NONE, 2, TENSOR_INT32_DATA, 0, UINT8_MAX},
    [ONNX(INT2)] = {"int2", DTYPE_NONE, 2, TENSOR_INT32_DATA, 0, UINT8_MAX},
    [ONNX(FLOAT6E2M3)] = {"float6e2m3", DTYPE_NONE, 0, TENSOR_INT32_DATA, 0, 0},
    [ONNX(FLOAT6E3M2)] = {"float6e3m2", DTYPE_NONE, 0, TENSOR_INT32_DATA, 0, 0},
};

static const uint8_t no_bytes[1];

static const DtypeRow *dtype_row(int32_t onnx_dtype) {
  return onnx_dtype >= 0 && (size_t)onnx_dtype < COUNT_OF(dtypes) ? &dtypes[onnx_dtype] : NULL;
}

DType dtype_from_onnx(int32_t onnx_dtype) {
  const DtypeRow *row = dtype_row(onnx_dtype);
  return row ? row->dtype : DTYPE_NONE;
}

uint32_t onnx_dtype_bits(int32_t onnx_dtype) {
  const DtypeRow *row = dtype_row(onnx_dtype);
  return row ? row->bits : 0;
}

const char *onnx_dtype_name(int32_t onnx_dtype) {
  const DtypeRow *row = dtype_row(onnx_dtype);
  return row ? row->name : NULL;
}

/* One request for a view: what every step below needs. */
typedef struct ViewJob {
  OnnxModel *model;
  const Onnx__TensorProto *proto;
  const DtypeRow *row;
  TensorPlace at;
  uint64_t elements, size;
} ViewJob;

Status tensor_fault(const TensorPlace *at, DiagCode code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  Status status = diag_vreport(at->sink, code, at->place, at->what, format, args);
  va_end(args);
  return status;
}

/* --- type and shape --- */

static Status check_dtype(ViewJob *job) {
  int32_t dtype = job->proto->data_type;
  job->row = dtype_row(dtype);
  if (!job->row || !job->proto->has_data_type || dtype == ONNX(UNDEFINED))
    return tensor_fault(&job->at, DIAG_TENSOR_DTYPE, " has the unknown data_type %d", (int)dtype);
  if (job->row->bits == 0)
    return tensor_fault(&job->at, DIAG_TENSOR_DTYPE, " has elements of type %s", job->row->name);
  return STATUS_OK;
}

/* Dimensions of 0 do not hide others whose product overflows: strides are made of all of them. */
static Status check_dims(ViewJob *job) {
  const Onnx__TensorProto *t = job->proto;
  int64_t product = 1;
  bool empty = false;
  if (t->n_dims > UINT32_MAX)
    return tensor_fault(&job->at, DIAG_TENSOR_DIMS, " has %zu dimensions", t->n_dims);
  for (size_t i = 0; i < t->n_dims; i++) {
    if (t->dims[i] < 0)
      return tensor_fault(&job->at, DIAG_TENSOR_DIMS, ": dimension %zu is negative: %lld", i,
                          (long long)t->dims[i]);
    empty |= t->dims[i] == 0;
    if (t->dims[i] != 0 && !mul_i64(product, t->dims[i], &product))
      return tensor_fault(&job->at, DIAG_TENSOR_DIMS,
                          ": the product of its dimensions overflows 64 bits");
  }
  job->elements = empty ? 0 : (uint64_t)product;
  uint64_t bits;
  if (!mul_u64(job->elements, job->row->bits, &bits) || bits > INT64_MAX)
    return tensor_fault(&job->at, DIAG_TENSOR_DIMS, ": its size in bytes overflows 64 bits");
  job->size = (bits + 7) / 8;
  return STATUS_OK;
}

/* --- data in the model file --- */

/* The data fields of one message: raw, or entries of one typed field in a number of pieces. */
typedef struct DataFields {
  unsigned present;     /* bit per field number */
  const uint8_t *bytes; /* raw data, or the only piece of a typed field */
  uint64_t bytes_size;
  uint64_t entries, pieces; /* of the typed field */
  bool raw_twice;
} DataFields;

static uint64_t fixed_width(uint32_t field) {
  return field == TENSOR_FLOAT_DATA ? 4 : field == TENSOR_DOUBLE_DATA ? 8 : 0;
}

static bool is_data_field(uint32_t number) {
  return (number >= TENSOR_FLOAT_DATA && number <= TENSOR_INT64_DATA) ||
         (number >= TENSOR_RAW_DATA && number <= TENSOR_UINT64_DATA);
}

static WireFault add_piece(DataFields *data, const WireField *field) {
  data->present |= 1U << field->number;
  if (field->number == TENSOR_RAW_DATA && data->bytes)
    data->raw_twice = true;
  data->bytes = field->payload;
  data->bytes_size = field->size;
  data->pieces++;
  if (field->number == TENSOR_RAW_DATA || field->number == TENSOR_STRING_DATA)
    return WIRE_OK;
  uint64_t count = 1, width = fixed_width(field->number);
  WireFault fault = WIRE_OK;
  if (field->type == WIRE_BYTES && width != 0) {
    count = field->size / width;
    fault = field->size % width == 0 ? WIRE_OK : WIRE_TRUNCATED;
  } else if (field->type == WIRE_BYTES) {
    fault = wire_count_varints(field->payload, field->size, &count);
  }
  data->entries += count;
  return fault;
}

static WireReader span_reader(const ViewJob *job, const OnnxTensorSpan *span) {
  const uint8_t *body = job->model->file.data + span->offset;
  return (WireReader){body, body + span->size};
}

static WireField checked_field(WireReader *reader) {
  WireField field;
  if (wire_next(reader, &field) != WIRE_OK)
    BUG("a field that was checked cannot be read");
  return field;
}

/* The fields were checked by skim.c, but for the insides of packed ones. */
static Status find_fields(const ViewJob *job, const OnnxTensorSpan *span, DataFields *data) {
  *data = (DataFields){0};
  WireReader reader = span_reader(job, span);
  while (reader.next != reader.end) {
    WireField field;
    WireFault fault = wire_next(&reader, &field);
    if (fault == WIRE_OK && is_data_field(field.number))
      fault = add_piece(data, &field);
    if (fault != WIRE_OK)
      return tensor_fault(&job->at, onnx_wire_code(fault), ": its data has %s",
                          wire_fault_text(fault));
  }
  return STATUS_OK;
}

static Status check_fields(const ViewJob *job, const DataFields *data) {
  if (data->present & (data->present - 1))
    return tensor_fault(&job->at, DIAG_TENSOR_DATA, " has data in two fields");
  if (data->raw_twice)
    return tensor_fault(&job->at, DIAG_TENSOR_DATA, " has raw_data twice");
  if (data->present == 0 || data->present == 1U << TENSOR_RAW_DATA) {
    if (data->bytes_size == job->size)
      return STATUS_OK;
    return tensor_fault(&job->at, DIAG_TENSOR_SIZE,
                        ": its type and shape need %llu bytes, but the model has %llu",
                        (unsigned long long)job->size, (unsigned long long)data->bytes_size);
  }
  if (data->present != 1U << job->row->field)
    return tensor_fault(&job->at, DIAG_TENSOR_DATA,
                        " has its data in a field that is not for type %s", job->row->name);
  uint64_t needed = job->row->bits < 8 ? job->size : job->elements;
  if (data->entries != needed)
    return tensor_fault(&job->at, DIAG_TENSOR_SIZE,
                        ": its shape needs %llu entries of data, but the model has %llu",
                        (unsigned long long)needed, (unsigned long long)data->entries);
  return STATUS_OK;
}

/* --- typed data --- */

/* An entry of int32_data is a 32-bit number however many bytes it was written with, as in
 * protobuf's own readers. */
static Status put_entry(const ViewJob *job, uint64_t raw, uint8_t *to, unsigned width) {
  const DtypeRow *row = job->row;
  int64_t value = (int64_t)raw;
  if (row->field == TENSOR_INT32_DATA)
    value = (int32_t)(uint32_t)raw;
  bool limited = row->min != 0 || row->max != 0;
  if (limited && (value < row->min || value > row->max))
    return tensor_fault(&job->at, DIAG_TENSOR_DATA,
                        " has the value %lld, which is out of range of type %s", (long long)value,
                        row->name);
  memcpy(to, &value, width); /* the low bytes, on a little-endian host */
  return STATUS_OK;
}

/* One piece of the typed field; *to moves behind what was written. */
static Status convert_piece(const ViewJob *job, const WireField *field, uint8_t **to) {
  unsigned width = job->row->bits < 8 ? 1 : job->row->bits / 8U;
  if (fixed_width(field->number) != 0) {
    if (field->size)
      memcpy(*to, field->payload, field->size);
    *to += field->size;
    return STATUS_OK;
  }
  WireReader reader = {field->payload, field->payload + field->size};
  while (reader.next != reader.end) {
    uint64_t value;
    if (wire_varint(&reader, 10, &value) != WIRE_OK)
      BUG("a varint that was counted cannot be read");
    TRY(put_entry(job, value, *to, width));
    *to += width;
  }
  return STATUS_OK;
}

static Status convert(const ViewJob *job, OnnxTensorSpan *span) {
  uint8_t *bytes = arena_alloc(&job->model->arena, job->size), *to = bytes;
  WireReader reader = span_reader(job, span);
  while (reader.next != reader.end) {
    WireField field = checked_field(&reader);
    if (field.number == job->row->field)
      TRY(convert_piece(job, &field, &to));
  }
  span->decoded = bytes;
  span->decoded_size = job->size;
  return STATUS_OK;
}

/* --- the view --- */

static void view_mapping(OnnxTensorView *out, const MappedFile *file, const uint8_t *data) {
  out->data = data;
  out->file = file;
  out->file_offset = (uint64_t)(data - file->data);
}

static Status view_inline(const ViewJob *job, OnnxTensorSpan *span, OnnxTensorView *out) {
  if (!span->decoded) {
    DataFields data;
    TRY(find_fields(job, span, &data));
    TRY(check_fields(job, &data));
    if (job->size == 0)
      return STATUS_OK;
    bool in_place = data.present == 1U << TENSOR_RAW_DATA ||
                    (data.pieces == 1 && fixed_width(job->row->field) != 0);
    if (in_place) {
      view_mapping(out, &job->model->file, data.bytes);
      return STATUS_OK;
    }
    TRY(convert(job, span));
  }
  if (span->decoded_size != job->size)
    BUG("two tensors share a span");
  out->data = span->decoded;
  return STATUS_OK;
}

static Status view_external(const ViewJob *job, const OnnxTensorSpan *span, OnnxTensorView *out) {
  if (span)
    return tensor_fault(&job->at, DIAG_TENSOR_DATA,
                        " has data both in the model and in an external file");
  const MappedFile *file;
  uint64_t offset;
  TRY(onnx_external_find(job->model, job->proto, job->size, &job->at, &file, &offset));
  if (job->size)
    view_mapping(out, file, file->data + offset);
  return STATUS_OK;
}

/* Where the data is; NULL: the message has none. */
static OnnxTensorSpan *span_of(const ViewJob *job) {
  if (!job->proto->has_span)
    return NULL;
  if (job->proto->span >= job->model->span_count)
    BUG("a tensor of another model");
  return &job->model->spans[job->proto->span];
}

static Status view_data(const ViewJob *job, OnnxTensorView *out) {
  const Onnx__TensorProto *t = job->proto;
  OnnxTensorSpan *span = span_of(job);
  if (t->segment)
    return tensor_fault(&job->at, DIAG_TENSOR_DATA, " is a segment of a tensor");
  if (t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
    return view_external(job, span, out);
  if (t->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__DEFAULT)
    return tensor_fault(&job->at, DIAG_TENSOR_DATA, " has the unknown data_location %d",
                        (int)t->data_location);
  if (!span && job->size)
    return tensor_fault(&job->at, DIAG_TENSOR_SIZE, " has no data");
  return span ? view_inline(job, span, out) : STATUS_OK;
}

enum { NAME_SHOWN = 200, WHAT_SIZE = NAME_SHOWN + 32 };

static void say_what(const Onnx__TensorProto *t, char what[WHAT_SIZE]) {
  StrView name = onnx_text(t->name);
  snprintf(what, WHAT_SIZE, name.size ? "tensor '%.*s'" : "a tensor without a name%.*s",
           (int)min_i64((int64_t)name.size, NAME_SHOWN), name.data);
}

Status onnx_tensor_view(OnnxModel *m, const Onnx__TensorProto *t, DiagSink *sink, DiagPlace place,
                        OnnxTensorView *out) {
  char what[WHAT_SIZE];
  say_what(t, what);
  ViewJob job = {.model = m, .proto = t, .at = {sink, place, what}};
  TRY(check_dtype(&job));
  TRY(check_dims(&job));
  *out = (OnnxTensorView){.onnx_dtype = t->data_type,
                          .rank = (uint32_t)t->n_dims,
                          .dims = t->dims,
                          .data = no_bytes,
                          .size = job.size};
  return view_data(&job, out);
}

/* --- strings --- */

static Status check_strings(const ViewJob *job, const DataFields *data) {
  unsigned other = data->present & ~(1U << TENSOR_STRING_DATA);
  if (other || job->proto->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__DEFAULT)
    return tensor_fault(&job->at, DIAG_TENSOR_DATA,
                        " has its data in a field that is not for type string");
  if (data->pieces == job->elements && job->elements < UINT32_MAX / sizeof(StrView))
    return STATUS_OK;
  return tensor_fault(&job->at, DIAG_TENSOR_SIZE,
                      ": its shape needs %llu entries of data, but the model has %llu",
                      (unsigned long long)job->elements, (unsigned long long)data->pieces);
}

Status onnx_tensor_strings(OnnxModel *m, const Onnx__TensorProto *t, DiagSink *sink,
                           DiagPlace place, Arena *arena, StrView **values, uint32_t *count) {
  char what[WHAT_SIZE];
  say_what(t, what);
  ViewJob job = {.model = m, .proto = t, .row = &dtypes[ONNX(STRING)], .at = {sink, place, what}};
  DataFields data = {0};
  const OnnxTensorSpan none = {0}, *span = span_of(&job) ? span_of(&job) : &none;
  TRY(check_dims(&job));
  TRY(find_fields(&job, span, &data));
  TRY(check_strings(&job, &data));
  *values = ARENA_ARRAY(arena, StrView, job.elements + 1);
  *count = 0;
  WireReader reader = span_reader(&job, span);
  while (reader.next != reader.end) {
    WireField field = checked_field(&reader);
    if (field.number == TENSOR_STRING_DATA)
      (*values)[(*count)++] = (StrView){(const char *)field.payload, field.size};
  }
  return STATUS_OK;
}

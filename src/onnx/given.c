/* Inputs that the user gives a value (--value INPUT=NUMBER|FILE.npy): they become constants. Each
 * is looked for among the inputs before these are made, since the sizes of an array are those of
 * its input's dimensions, whose names other inputs may have as well. */
#include "interp/npy.h"
#include "ir/text.h"
#include "onnx/import_state.h"
#include "support/number.h"
#include "support/text.h"

bool onnx_value_is_for(StrView value, StrView input) {
  return value.size > input.size && sv_starts_with(value, input) && value.data[input.size] == '=';
}

static DiagPlace option_place(const Import *im) {
  DiagPlace place = context_place(im->ctx);
  place.option = SV("--value");
  return place;
}

static Status report_unknown(Import *im, const Onnx__GraphProto *graph, StrView value) {
  const char **names = ARENA_ARRAY(&im->state->arena, const char *, graph->n_input + 1);
  const char *equals = memchr(value.data, '=', value.size);
  StrView name = {value.data, equals ? (size_t)(equals - value.data) : value.size};
  for (size_t i = 0; i < graph->n_input; i++)
    names[i] = onnx_text(graph->input[i]->name).data;
  Diag *d = diag_begin(im->ctx->sink, DIAG_VALUE_UNKNOWN, option_place(im));
  diag_message(d, "the model has no input '" SV_FMT "'", SV_ARG(name));
  diag_hint_names(d, name, names, graph->n_input);
  return diag_end(d);
}

/* --- arrays --- */

/* One element of whatever type the input has, with as many dims of size 1. */
bool onnx_value_is_number(StrView text) {
  double number;
  return text_parse_double(text, &number) || sv_eq(text, SV("true")) || sv_eq(text, SV("false"));
}

static Status read_array(Import *im, const Onnx__ValueInfoProto *info, GivenValue *given) {
  const Onnx__TypeProto__Tensor *type = onnx_tensor_type(info);
  given->is_number = onnx_value_is_number(given->text);
  given->array.rank = type && type->shape ? (uint32_t)type->shape->n_dim : 0;
  for (uint32_t k = 0; k < given->array.rank && k < MAX_RANK; k++)
    given->array.dims[k] = 1;
  if (given->is_number)
    return STATUS_OK;
  NpyArray file;
  const char *path = arena_strdup(&im->state->arena, given->text);
  DType expected = type ? dtype_from_onnx(type->elem_type) : DTYPE_NONE;
  TRY(npy_read(&file, &im->state->arena, im->ctx->sink, path, expected));
  given->array = file.tensor;
  uint64_t bytes = tensor_bytes(&file.tensor);
  given->array.data = arena_alloc(&im->g->arena, (size_t)bytes);
  if (bytes)
    memcpy(given->array.data, file.tensor.data, (size_t)bytes);
  npy_close(&file);
  return STATUS_OK;
}

static Status report_twice(Import *im, StrView name) {
  Diag *d = diag_begin(im->ctx->sink, DIAG_USAGE, option_place(im));
  diag_message(d, "input '" SV_FMT "' is given two values", SV_ARG(name));
  diag_hint(d, "give each input one value");
  return diag_end(d);
}

/* The value that is for one input; a second one is an error. */
static Status find_value(Import *im, const Onnx__GraphProto *graph, StrView value) {
  for (size_t i = 0; i < graph->n_input; i++) {
    StrView name = onnx_text(graph->input[i]->name);
    GivenValue *given = &im->state->given[i];
    if (!name.size || !onnx_value_is_for(value, name))
      continue;
    if (given->text.data)
      return report_twice(im, name);
    given->text = (StrView){value.data + name.size + 1, value.size - name.size - 1};
    TRY(read_array(im, graph->input[i], given));
    import_bind_dims(im, graph->input[i], given->array.dims, given->array.rank);
    return STATUS_OK;
  }
  return report_unknown(im, graph, value);
}

Status import_given(Import *im, const Onnx__GraphProto *graph) {
  Status status = STATUS_OK;
  im->state->given = ARENA_ARRAY(&im->state->arena, GivenValue, graph->n_input + 1);
  for (uint32_t i = 0; i < im->options->value_count; i++) {
    Status one = find_value(im, graph, im->options->values[i]);
    status = status == STATUS_OK ? one : status;
  }
  return status;
}

/* --- constants --- */

static Status mismatch(Import *im, const Onnx__ValueInfoProto *info, TypeId type,
                       const GivenValue *given, const char *why) {
  StrBuf text = {0};
  type_describe(im->g, type_get(im->g, type), &text);
  Diag *d = diag_begin(im->ctx->sink, DIAG_VALUE_MISMATCH, option_place(im));
  diag_message(d, "input '" SV_FMT "' is %s: '" SV_FMT "' %s", SV_ARG(onnx_text(info->name)),
               strbuf_cstr(&text), SV_ARG(given->text), why);
  if (im->g->dim_flags)
    diag_note(d, "the sizes are those of%s", im->g->dim_flags);
  strbuf_release(&text);
  return diag_end(d);
}

static const char *shape_text(Import *im, const Tensor *t) {
  StrBuf text = {0};
  shape_describe("has the shape ", t->dims, t->rank, &text);
  return strbuf_keep(&text, &im->state->arena).data;
}

static bool store_integer(Tensor *t, StrView text) {
  const DTypeSet without_sign = DT(U8) | DT(U16) | DT(U32) | DT(U64) | DT(BOOL);
  int64_t value;
  uint64_t large;
  double real;
  if (t->dtype == DTYPE_BOOL && (sv_eq(text, SV("true")) || sv_eq(text, SV("false"))))
    value = sv_eq(text, SV("true"));
  else if (t->dtype == DTYPE_U64 && text_parse_u64(text, &large))
    return memcpy(t->data, &large, sizeof large) != NULL;
  else if (!text_parse_i64(text, &value) &&
           !(text_parse_double(text, &real) && fabs(real) < 0x1p53 && int_exact(real, &value)))
    return false;
  if (value < 0 && dtype_in(t->dtype, without_sign))
    return false;
  tensor_store_int(t, 0, value);
  return tensor_load_int(t, 0) == value;
}

/* Rounded to the nearest number of the type; what is beyond it is refused. */
static bool store_float(Tensor *t, StrView text) {
  double value;
  if (!text_parse_double(text, &value))
    return false;
  tensor_store(t, 0, value);
  double stored = tensor_load(t, 0);
  if (!isfinite(value))
    return isnan(value) ? isnan(stored) != 0 : stored == value;
  return fabs(stored - value) <= fabs(value) / 8;
}

static bool store_number(Tensor *t, StrView text) {
  return dtype_in(t->dtype, DTS_INT | DT(U16) | DT(U32) | DT(U64) | DT(BOOL))
             ? store_integer(t, text)
             : store_float(t, text);
}

Status import_given_value(Import *im, const Onnx__ValueInfoProto *info, const GivenValue *given,
                          TypeId type, ValueId *out) {
  Type t = *type_get(im->g, type);
  Tensor array = given->array;
  uint64_t number[2] = {0};
  bool same = array.rank == t.rank;
  for (uint32_t i = 0; same && i < t.rank; i++)
    same = t.dims[i] == array.dims[i];
  if (!same && given->is_number)
    return mismatch(im, info, type, given, "is one number; give an array as FILE.npy");
  if (!same)
    return mismatch(im, info, type, given, shape_text(im, &array));
  if (given->is_number) {
    array.dtype = (DType)t.dtype;
    array.data = number;
    array.capacity = sizeof number;
    if (!store_number(&array, given->text))
      return mismatch(im, info, type, given, "is not a value of this type");
  } else if (array.dtype != t.dtype) {
    return mismatch(im, info, type, given, "holds elements of another type");
  }
  *out = graph_add_constant_copy(im->g, type, array.data, tensor_bytes(&array));
  return STATUS_OK;
}

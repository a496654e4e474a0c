/* External data: what the model says about it is believed only after it was checked (see
 * external.h).
 *
 * Source of the keys: the comment of TensorProto.external_data in onnx.proto of ONNX 1.23 and
 * docs/ExternalData.md. Without a length, the tensor's own size counts. That the file lies in the
 * model's folder and is reached through no link is file_map_beneath's work; here the text itself is
 * refused when it means something else on another system. */
#include "onnx/file/external.h"

#include "support/text.h"

/* Exporters of big models write one file a tensor. Descriptors beyond these are closed: the mapping
 * stays, only the copy inside the kernel is lost for them. */
enum { DESCRIPTORS_KEPT = 128 };

typedef struct ExternalData {
  StrView location;
  uint64_t offset, length;
  bool has_length;
} ExternalData;

static Status parse_size(StrView key, StrView value, const TensorPlace *at, uint64_t *out) {
  int64_t number;
  if (text_parse_i64(value, &number) && number < 0)
    return tensor_fault(at, DIAG_EXTERNAL_RANGE,
                        ": external data has the negative " SV_FMT " " SV_FMT, SV_ARG(key),
                        SV_ARG(value));
  if (!text_parse_u64(value, out))
    return tensor_fault(at, DIAG_EXTERNAL_KEY,
                        ": external data has the " SV_FMT " '" SV_FMT "', which is not a number",
                        SV_ARG(key), SV_ARG(value));
  return STATUS_OK;
}

static Status parse_entries(const Onnx__TensorProto *t, const TensorPlace *at, ExternalData *to) {
  static const char *const keys[] = {"location", "offset", "length", "checksum"};
  unsigned seen = 0;
  *to = (ExternalData){0};
  for (size_t i = 0; i < t->n_external_data; i++) {
    StrView key = onnx_text(t->external_data[i]->key),
            value = onnx_text(t->external_data[i]->value);
    unsigned k = 0;
    while (k < COUNT_OF(keys) && !sv_eq_str(key, keys[k]))
      k++;
    if (k == COUNT_OF(keys))
      return tensor_fault(at, DIAG_EXTERNAL_KEY, ": external data has the unknown key '" SV_FMT "'",
                          SV_ARG(key));
    if (seen & 1U << k)
      return tensor_fault(at, DIAG_EXTERNAL_KEY, ": external data has the key '%s' twice", keys[k]);
    seen |= 1U << k;
    if (k == 0)
      to->location = value;
    else if (k == 1)
      TRY(parse_size(key, value, at, &to->offset));
    else if (k == 2)
      TRY(parse_size(key, value, at, &to->length));
  }
  to->has_length = seen & 1U << 2;
  if (!(seen & 1U))
    return tensor_fault(at, DIAG_EXTERNAL_KEY, ": external data has no location");
  return STATUS_OK;
}

/* A line end in a name would begin a rule of its own in a dependency file. */
static bool has_control(StrView text) {
  for (size_t i = 0; i < text.size; i++)
    if ((unsigned char)text.data[i] < ' ')
      return true;
  return false;
}

static Status check_location(StrView location, const TensorPlace *at) {
  const char *why = NULL;
  if (location.size == 0)
    why = "is empty";
  else if (sv_starts_with(location, SV("*/_ORT_MEM_ADDR_/*")))
    why = "is an address in the memory of ONNX Runtime";
  else if (location.data[0] == '/')
    why = "is an absolute path";
  else if (location.size > 1 && location.data[1] == ':')
    why = "is a path with a drive of Windows";
  else if (memchr(location.data, '\\', location.size))
    why = "has backslashes, which ONNX does not use";
  else if (has_control(location))
    why = "has control characters";
  if (!why)
    return STATUS_OK;
  return tensor_fault(at, DIAG_EXTERNAL_PATH, ": the location of external data, '" SV_FMT "', %s",
                      SV_ARG(location), why);
}

static Status open_location(OnnxModel *m, StrView location, const TensorPlace *at,
                            MappedFile **out) {
  uint32_t id = intern_find(&m->locations, location);
  if (id == 0) {
    MappedFile *file = ARENA_NEW(&m->arena, MappedFile);
    TRY(file_map_beneath(file, &m->arena, at->sink, m->file.path, location, m->linked_data,
                         at->place));
    id = intern_add(&m->locations, location);
    m->external = arena_push(&m->arena, m->external, id - 1, sizeof *m->external);
    m->external[id - 1] = file;
    if (id > DESCRIPTORS_KEPT)
      file_close_descriptor(file);
  }
  *out = m->external[id - 1];
  return STATUS_OK;
}

Status onnx_external_find(OnnxModel *m, const Onnx__TensorProto *t, uint64_t needed,
                          const TensorPlace *at, const MappedFile **file, uint64_t *offset) {
  ExternalData data;
  TRY(parse_entries(t, at, &data));
  TRY(check_location(data.location, at));
  if (data.has_length && data.length != needed)
    return tensor_fault(
        at, DIAG_EXTERNAL_RANGE,
        ": its type and shape need %llu bytes, but its external data has the length %llu",
        (unsigned long long)needed, (unsigned long long)data.length);
  if (!m->from_file) {
    Diag *d = diag_begin(at->sink, DIAG_EXTERNAL_PATH, at->place);
    diag_message(d, "%s: its external data '" SV_FMT "' cannot be found: the model has no folder",
                 at->what, SV_ARG(data.location));
    diag_hint(d, "give the path of the model, and not its bytes or standard input");
    return diag_end(d);
  }
  MappedFile *mapped;
  TRY(open_location(m, data.location, at, &mapped));
  uint64_t end;
  if (!add_u64(data.offset, needed, &end) || end > mapped->size)
    return tensor_fault(at, DIAG_EXTERNAL_RANGE,
                        ": external data is %llu bytes from offset %llu, but '" SV_FMT
                        "' has %llu bytes",
                        (unsigned long long)needed, (unsigned long long)data.offset,
                        SV_ARG(data.location), (unsigned long long)mapped->size);
  *file = mapped;
  *offset = data.offset;
  return STATUS_OK;
}

/* Attributes of the current node, references to a calling node's attributes resolved. */
#include "onnx/import_state.h"
#include "support/text.h"

static const Onnx__AttributeProto *find_in(Onnx__AttributeProto *const *attributes, size_t count,
                                           const char *name) {
  for (size_t i = 0; i < count; i++)
    if (sv_eq(onnx_text(attributes[i]->name), sv_from(name)))
      return attributes[i];
  return NULL;
}

/* A reference names an attribute of the node that called the function; the function may have a
 * default for it. */
static const Onnx__AttributeProto *resolve(const Frame *frame, const Onnx__AttributeProto *a) {
  while (a && a->ref_attr_name && *a->ref_attr_name) {
    while (frame && !frame->function)
      frame = frame->parent;
    if (!frame)
      return NULL;
    const char *name = a->ref_attr_name;
    a = find_in(frame->call->attribute, frame->call->n_attribute, name);
    if (!a)
      return find_in(frame->function->attribute_proto, frame->function->n_attribute_proto, name);
    frame = frame->caller;
  }
  return a;
}

static const Onnx__AttributeProto *import_attribute(Import *im, const char *name) {
  if (im->b.status != STATUS_OK)
    return NULL;
  return resolve(im->frame, find_in(im->node->attribute, im->node->n_attribute, name));
}

bool import_check_attributes(Import *im) {
  const Onnx__NodeProto *node = im->node;
  if (node->n_attribute > 1000)
    import_fail(im, DIAG_ATTR_VALUE, "node has %zu attributes", node->n_attribute);
  const Frame *frame = im->frame;
  while (frame && !frame->function)
    frame = frame->parent;
  for (size_t i = 0; i < node->n_attribute && import_ok(im); i++) {
    const Onnx__AttributeProto *a = node->attribute[i];
    if (!a->name || !*a->name)
      import_fail(im, DIAG_ATTR_VALUE, "attribute %zu has no name", i);
    else if (find_in(node->attribute, i, a->name))
      import_fail(im, DIAG_ATTR_TWICE, "attribute '%s' is given twice", a->name);
    else if (a->ref_attr_name && *a->ref_attr_name && !frame)
      import_fail(im, DIAG_ATTR_VALUE,
                  "attribute '%s' refers to '%s' of a caller, but the node is in no function",
                  a->name, a->ref_attr_name);
  }
  return import_ok(im);
}

#define ATTR(kind) ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__##kind

static const char *type_text(Onnx__AttributeProto__AttributeType type) {
  static const char *const names[] = {"undefined", "float",   "int",    "string",
                                      "tensor",    "graph",   "floats", "ints",
                                      "strings",   "tensors", "graphs", "sparse tensor"};
  return (size_t)type < COUNT_OF(names) ? names[type] : "another type";
}

/* Lists may be empty: they pass unless a value of another type is there. */
static bool value_of_type(const Onnx__AttributeProto *a,
                          Onnx__AttributeProto__AttributeType wanted) {
  switch ((int)wanted) {
  case ATTR(FLOAT):
    return a->has_f;
  case ATTR(INT):
    return a->has_i;
  case ATTR(STRING):
    return a->has_s;
  case ATTR(TENSOR):
    return a->t != NULL;
  case ATTR(GRAPH):
    return a->g != NULL;
  case ATTR(SPARSE_TENSOR):
    return a->sparse_tensor != NULL;
  default:
    return !a->has_f && !a->has_i && !a->has_s && !a->t && !a->g && !a->sparse_tensor;
  }
}

/* The attribute with the wanted type. Files without the type field (old exporters) are told by the
 * field that is set. */
static const Onnx__AttributeProto *typed(Import *im, const char *name,
                                         Onnx__AttributeProto__AttributeType wanted) {
  const Onnx__AttributeProto *a = import_attribute(im, name);
  if (!a)
    return NULL;
  if (a->has_type && a->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED &&
      a->type != wanted) {
    import_fail(im, DIAG_ATTR_TYPE, "attribute '%s' is %s, not %s", name, type_text(a->type),
                type_text(wanted));
    return NULL;
  }
  if ((!a->has_type || !a->type) && !value_of_type(a, wanted)) {
    import_fail(im, DIAG_ATTR_TYPE, "attribute '%s' has no type and no value that is %s", name,
                type_text(wanted));
    return NULL;
  }
  return a;
}

bool attr_has(Import *im, const char *name) { return import_attribute(im, name) != NULL; }

/* Whether the number can be a size or an argument (ir/sym.h); reports one that cannot. */
static bool usable(Import *im, const char *name, int64_t number) {
  SymInt unused;
  if (sym_from_number(number, &unused))
    return true;
  return import_fail(im, DIAG_ATTR_VALUE, "attribute '%s' holds %lld, which is not supported there",
                     name, (long long)number);
}

bool attr_exact_int(Import *im, const char *name, int64_t *value) {
  const Onnx__AttributeProto *a = typed(im, name, ATTR(INT));
  *value = a ? a->i : 0;
  return a != NULL;
}

int64_t attr_int(Import *im, const char *name, int64_t otherwise) {
  int64_t value;
  return attr_exact_int(im, name, &value) && usable(im, name, value) ? value : otherwise;
}

static void require(Import *im, const char *name) {
  if (import_ok(im) && !attr_has(im, name))
    import_fail(im, DIAG_ATTR_MISSING, "attribute '%s' is missing", name);
}

int64_t attr_int_required(Import *im, const char *name) {
  require(im, name);
  return attr_int(im, name, 0);
}

double attr_float(Import *im, const char *name, double otherwise) {
  const Onnx__AttributeProto *a = typed(im, name, ATTR(FLOAT));
  return a ? (double)a->f : otherwise;
}

double attr_float_required(Import *im, const char *name) {
  require(im, name);
  return attr_float(im, name, 0);
}

/* Empty bytes have no data in protobuf-c. */
static StrView bytes_view(ProtobufCBinaryData bytes) {
  return bytes.len ? (StrView){(const char *)bytes.data, bytes.len} : SV("");
}

StrView attr_str(Import *im, const char *name, const char *otherwise) {
  const Onnx__AttributeProto *a = typed(im, name, ATTR(STRING));
  return a ? bytes_view(a->s) : sv_from(otherwise);
}

uint32_t attr_choice(Import *im, const char *name, const char *otherwise, const char *names) {
  StrView given = attr_str(im, name, otherwise);
  if (text_among(given, names))
    return text_index(given, names);
  StrBuf text = {0};
  text_append_words(&text, names, " or ");
  import_fail(im, DIAG_ATTR_VALUE, "%s is '" SV_FMT "', not %s", name, SV_ARG(given),
              strbuf_cstr(&text));
  strbuf_release(&text);
  return 0;
}

bool attr_flag(Import *im, const char *name, bool otherwise) {
  return attr_int(im, name, otherwise) != 0;
}

DType attr_dtype(Import *im, const char *name, DType otherwise) {
  int64_t code = attr_int(im, name, 0);
  if (code == 0 || !import_ok(im))
    return otherwise;
  bool is_code = code > 0 && code < 100;
  DType dtype = is_code ? dtype_from_onnx((int32_t)code) : DTYPE_NONE;
  const char *text = is_code ? onnx_dtype_name((int32_t)code) : NULL;
  if (dtype == DTYPE_NONE)
    import_fail(im, DIAG_ATTR_VALUE, "%s is %s, which the runtime does not have", name,
                text ? text : "unknown");
  return dtype;
}

void attr_refuse(Import *im, const char *names) {
  while (*names) {
    const char *name = arena_strdup(&im->scratch, text_next_word(&names));
    if (attr_flag(im, name, false))
      import_fail(im, DIAG_UNSUPPORTED_FEATURE, "%s is not supported", name);
  }
}

bool attr_exact_ints(Import *im, const char *name, Ints *values) {
  const Onnx__AttributeProto *a = typed(im, name, ATTR(INTS));
  *values = (Ints){0};
  if (!a)
    return false;
  if (a->n_ints > UINT32_MAX / 16)
    return import_fail(im, DIAG_ATTR_VALUE, "attribute '%s' has %zu elements", name, a->n_ints);
  *values = (Ints){a->ints, (uint32_t)a->n_ints};
  return true;
}

bool attr_ints(Import *im, const char *name, Ints *values) {
  bool given = attr_exact_ints(im, name, values);
  for (uint32_t i = 0; i < values->count; i++)
    if (!usable(im, name, values->at[i]))
      return false;
  return given;
}

bool attr_floats(Import *im, const char *name, Floats *values) {
  const Onnx__AttributeProto *a = typed(im, name, ATTR(FLOATS));
  bool fits = a && a->n_floats < UINT32_MAX / 16;
  *values = (Floats){a ? a->floats : NULL, fits ? (uint32_t)a->n_floats : 0};
  return a != NULL;
}

bool attr_doubles(Import *im, const char *name, Doubles *values) {
  Floats floats;
  bool given = attr_floats(im, name, &floats);
  double *wide = ARENA_ARRAY(&im->scratch, double, (uint64_t)floats.count + 1);
  for (uint32_t i = 0; i < floats.count; i++)
    wide[i] = (double)floats.at[i];
  *values = (Doubles){wide, floats.count};
  return given;
}

bool attr_strs(Import *im, const char *name, Texts *values) {
  const Onnx__AttributeProto *a = typed(im, name, ATTR(STRINGS));
  *values = (Texts){0};
  if (!a || a->n_strings > UINT32_MAX / 64)
    return false;
  StrView *texts = ARENA_ARRAY(&im->scratch, StrView, a->n_strings);
  for (size_t i = 0; i < a->n_strings; i++)
    texts[i] = bytes_view(a->strings[i]);
  *values = (Texts){texts, (uint32_t)a->n_strings};
  return true;
}

const Onnx__TensorProto *attr_tensor(Import *im, const char *name) {
  const Onnx__AttributeProto *a = typed(im, name, ATTR(TENSOR));
  return a ? a->t : NULL;
}

const Onnx__SparseTensorProto *attr_sparse(Import *im, const char *name) {
  const Onnx__AttributeProto *a = typed(im, name, ATTR(SPARSE_TENSOR));
  return a ? a->sparse_tensor : NULL;
}

const Onnx__GraphProto *attr_graph(Import *im, const char *name) {
  const Onnx__AttributeProto *a = typed(im, name, ATTR(GRAPH));
  return a ? a->g : NULL;
}

/* Constant and Identity. */
#include "onnx/express.h"
#include "onnx/labels.h"

static void constant_strings(Import *im, Texts texts, bool scalar) {
  int64_t *codes = ARENA_ARRAY(&im->scratch, int64_t, (uint64_t)texts.count + 1);
  const Labels *labels = labels_make(im, texts.at, texts.count, codes);
  ValueId index = scalar ? ex_int(im, codes[0]) : build_const_ints(&im->b, codes, texts.count);
  out_labels(im, index, labels);
}

/* Exactly one of value, sparse_value, value_int, value_ints, value_float, value_floats,
 * value_string, value_strings. */
void translate_constant(Import *im) {
  const Onnx__TensorProto *tensor = attr_tensor(im, "value");
  const Onnx__SparseTensorProto *sparse = attr_sparse(im, "sparse_value");
  Ints ints;
  Floats floats;
  Texts texts;
  int64_t number;
  if (tensor)
    out_tensor(im, 0, import_any_tensor(im, tensor, 0));
  else if (sparse)
    out(im, 0, import_sparse(im, sparse, 0));
  else if (attr_exact_int(im, "value_int", &number))
    out(im, 0, ex_int(im, number));
  else if (attr_exact_ints(im, "value_ints", &ints))
    out(im, 0, build_const_ints(&im->b, ints.at, ints.count));
  else if (attr_has(im, "value_float"))
    out(im, 0, build_scalar(&im->b, DTYPE_F32, attr_float(im, "value_float", 0)));
  else if (attr_floats(im, "value_floats", &floats))
    out(im, 0, build_const(&im->b, DTYPE_F32, 1, (int64_t[]){floats.count}, floats.at));
  else if (attr_has(im, "value_string"))
    constant_strings(im, (Texts){(StrView[]){attr_str(im, "value_string", "")}, 1}, true);
  else if (attr_strs(im, "value_strings", &texts))
    constant_strings(im, texts, false);
  else
    import_fail(im, DIAG_ATTR_MISSING, "the constant has no attribute with its value");
}

void translate_identity(Import *im) {
  Binding binding = in_binding(im, 0);
  if (binding.kind != BIND_VALUE && binding.kind != BIND_NONE)
    out_binding(im, 0, binding);
  else
    out(im, 0, in_required(im, 0));
}

/* See packed.h. Source for the formats of small floats: onnx.proto of ONNX 1.23
 * (TensorProto.DataType) and the page "Float stored in 8 bits" of its documentation. */
#include "onnx/packed.h"

#include <math.h>

#include "ir/transform.h"
#include "onnx/express.h"
#include "onnx/import_state.h"
#include "support/text.h"

typedef struct SmallType {
  int32_t onnx_dtype;
  uint8_t bits;
  bool is_signed;                   /* integers */
  uint8_t exponent, mantissa, bias; /* floats; mantissa 0 and no sign: a power of 2 */
  bool fn, infinite, one_zero;      /* NaN only with all bits set; has infinities; NaN is -0 */
} SmallType;

#define ONNX(name) ONNX__TENSOR_PROTO__DATA_TYPE__##name
static const SmallType types[] = {
    {ONNX(INT4), 4, .is_signed = true},
    {ONNX(UINT4), 4},
    {ONNX(INT2), 2, .is_signed = true},
    {ONNX(UINT2), 2},
    {ONNX(FLOAT4E2M1), 4, .exponent = 2, .mantissa = 1, .bias = 1},
    {ONNX(FLOAT8E8M0), 8, .exponent = 8, .bias = 127},
    {ONNX(FLOAT8E4M3FN), 8, .exponent = 4, .mantissa = 3, .bias = 7, .fn = true},
    {ONNX(FLOAT8E5M2), 8, .exponent = 5, .mantissa = 2, .bias = 15, .infinite = true},
    {ONNX(FLOAT8E4M3FNUZ), 8, .exponent = 4, .mantissa = 3, .bias = 8, .one_zero = true},
    {ONNX(FLOAT8E5M2FNUZ), 8, .exponent = 5, .mantissa = 2, .bias = 16, .one_zero = true},
};
#undef ONNX

static const SmallType *find_type(int32_t onnx_dtype) {
  for (size_t i = 0; i < COUNT_OF(types); i++)
    if (types[i].onnx_dtype == onnx_dtype)
      return &types[i];
  return NULL;
}

/* --- integers --- */

enum { UNPACKED_LATER = 1 << 10 }; /* elements that are worth a transform */

DType packed_storage(int32_t onnx_dtype) {
  const SmallType *t = find_type(onnx_dtype);
  if (!t || dtype_from_onnx(onnx_dtype) != DTYPE_NONE)
    return DTYPE_NONE;
  return t->is_signed ? DTYPE_I8 : DTYPE_U8;
}

Constant packed_elements(Import *im, const OnnxTensorView *view) {
  const SmallType *t = find_type(view->onnx_dtype);
  uint64_t count = (uint64_t)dims_count(view->dims, 0, view->rank), per_byte = 8U / t->bits;
  if (count >= UNPACKED_LATER && t->bits == 4)
    return constant_unpacked(im->g,
                             (Constant){.data = view->data,
                                        .size = view->size,
                                        .file = view->file,
                                        .file_offset = view->file_offset},
                             1, count, t->is_signed, t->is_signed ? -8 : 0);
  uint8_t *out = arena_alloc(&im->g->arena, count + 1);
  unsigned mask = (1U << t->bits) - 1U, sign = t->is_signed ? 1U << (t->bits - 1) : 0;
  for (uint64_t i = 0; i < count; i++) {
    unsigned raw = view->data[i / per_byte] >> (i % per_byte * t->bits) & mask;
    out[i] = (uint8_t)((raw ^ sign) - sign);
  }
  return (Constant){.data = out, .size = count};
}

bool packed_limits(int32_t onnx_dtype, double *low, double *high) {
  const SmallType *t = find_type(onnx_dtype);
  if (!t || t->exponent)
    return false;
  double span = ldexp(1, t->bits - t->is_signed);
  *low = t->is_signed ? -span : 0;
  *high = span - 1;
  return true;
}

/* --- which operators --- */

typedef struct Taker {
  const char *ops;
  bool moves; /* their output has the type of their first input */
  enum { ANY_PACKED, NUMBERS, STRINGS } types;
} Taker;

static const Taker takers[] = {
    {"Cast|DequantizeLinear|GatherBlockQuantized|QuantizeLinear", false, NUMBERS},
    {"Shape|Size", false, ANY_PACKED},
    {"LabelEncoder", false, STRINGS},
    {"Flatten|Identity|Reshape|Squeeze|Transpose|Unsqueeze", true, ANY_PACKED},
    {"ArrayFeatureExtractor|Expand|Gather|GatherElements|GatherND|Slice|Tile", true, STRINGS}};

static const Taker *find_taker(const Import *im, int32_t onnx_dtype) {
  bool strings = onnx_dtype == ONNX__TENSOR_PROTO__DATA_TYPE__STRING;
  for (size_t i = 0; i < COUNT_OF(takers); i++)
    if (text_among(onnx_text(im->node->op_type), takers[i].ops))
      return takers[i].types == (strings ? NUMBERS : STRINGS) ? NULL : &takers[i];
  return NULL;
}

bool packed_inputs_fit(Import *im) {
  for (uint32_t i = 0; i < in_count(im); i++)
    if (in_packed(im, i) && !find_taker(im, in_packed(im, i)))
      return import_fail(im, DIAG_TENSOR_DTYPE,
                         "input '%s' has element type %s, of which %s is not supported",
                         im->node->input[i], onnx_dtype_name(in_packed(im, i)), im->node->op_type);
  return true;
}

void packed_outputs(Import *im) {
  Binding from = in_binding(im, 0);
  if (!from.packed || !import_ok(im) || !find_taker(im, from.packed)->moves || !out_wanted(im, 0))
    return;
  Binding *to = &scope_slot(im, im->frame, import_output_name(im, 0))->binding;
  to->packed = from.packed;
  to->labels = from.labels;
}

/* --- floats --- */

int32_t small_float_input(Import *im, uint32_t i) {
  ValueId v = in(im, i);
  int32_t packed = in_packed(im, i);
  if (!import_ok(im) || !v)
    return 0;
  for (size_t k = 0; k < COUNT_OF(types); k++) {
    DType dtype = dtype_from_onnx(types[k].onnx_dtype);
    if (types[k].exponent && (packed ? types[k].onnx_dtype == packed
                                     : dtype != DTYPE_NONE && dtype == value_dtype(im->g, v)))
      return types[k].onnx_dtype;
  }
  return 0;
}

static float small_float(const SmallType *t, unsigned code) {
  unsigned magnitude_bits = (unsigned)t->exponent + t->mantissa,
           fraction_mask = (1U << t->mantissa) - 1U,
           magnitude = code & ((1U << magnitude_bits) - 1U), exponent = magnitude >> t->mantissa,
           fraction = magnitude & fraction_mask, top = (1U << t->exponent) - 1U;
  if (!t->mantissa) /* a power of 2 */
    return code == top ? NAN : ldexpf(1, (int)code - t->bias);
  bool negative = code >> magnitude_bits != 0;
  if ((t->fn && magnitude == (1U << magnitude_bits) - 1U) ||
      (t->one_zero && negative && !magnitude) || (t->infinite && exponent == top && fraction))
    return NAN;
  float value = t->infinite && exponent == top ? INFINITY
                : exponent                     ? ldexpf((float)(fraction | (fraction_mask + 1U)),
                                                        (int)exponent - t->bias - t->mantissa)
                                               : ldexpf((float)fraction, 1 - t->bias - t->mantissa);
  return negative ? -value : value;
}

ValueId decode_small_float(Import *im, ValueId v, int32_t onnx_dtype) {
  const SmallType *t = find_type(onnx_dtype);
  float values[256];
  int64_t count = (int64_t)1 << t->bits;
  for (unsigned code = 0; code < (unsigned)count; code++)
    values[code] = small_float(t, code);
  if (value_dtype(im->g, v) != DTYPE_U8)
    v = build(&im->b, OP_VIEW_COPY_DTYPE, A_VAL(v), A_DTYPE(DTYPE_U8));
  ValueId codes = ex_cast(im, v, DTYPE_I64),
          table = build_const(&im->b, DTYPE_F32, 1, &count, values);
  return ex_look_up(im, table, codes);
}

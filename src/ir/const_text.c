/* Elements of constants as text, see const_text.h. Formats: IEEE 754 binary16/32/64, bfloat16. */
#include "ir/const_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

#include "support/half.h"
#include "support/number.h"
#include "support/text.h"

/* --- floating point --- */

typedef struct FloatFormat {
  unsigned digits; /* decimals that always survive text -> value -> text */
  uint64_t sign, exponent, nan;
} FloatFormat;

static bool float_format(DType dtype, FloatFormat *out) {
  switch (dtype) {
  case DTYPE_F16:
    *out = (FloatFormat){3, 0x8000, 0x7c00, 0x7e00};
    return true;
  case DTYPE_BF16:
    *out = (FloatFormat){2, 0x8000, 0x7f80, 0x7fc0};
    return true;
  case DTYPE_F32:
    *out = (FloatFormat){6, 0x80000000, 0x7f800000, 0x7fc00000};
    return true;
  case DTYPE_F64:
    *out = (FloatFormat){15, (uint64_t)1 << 63, 0x7ff0000000000000, 0x7ff8000000000000};
    return true;
  default:
    return false;
  }
}

static double number_of_bits(DType dtype, uint64_t bits) {
  switch (dtype) {
  case DTYPE_F16:
    return (double)half_to_float((uint16_t)bits);
  case DTYPE_BF16:
    return (double)bfloat_to_float((uint16_t)bits);
  case DTYPE_F32:
    return (double)float_of_bits((uint32_t)bits);
  default:
    return double_of_bits(bits);
  }
}

/* Rounds to nearest even. bfloat16 goes through float, which rounds twice; printing tries what it
 * prints, so only text written by hand can meet that. */
static uint64_t float_to_bits(DType dtype, double value) {
  switch (dtype) {
  case DTYPE_F16:
    return half_from_double(value);
  case DTYPE_BF16:
    return bfloat_from_float((float)value);
  case DTYPE_F32:
    return float_bits((float)value);
  default:
    return double_bits(value);
  }
}

/* The shortest decimal whose nearest value of the format is this one. The text and its reading use
 * one locale, whichever it is; strbuf_append_double writes in the C locale. */
static void print_finite(DType dtype, uint64_t bits, unsigned digits, StrBuf *out) {
  double exact = number_of_bits(dtype, bits), value = exact;
  char text[40];
  for (; dtype != DTYPE_F64 && digits <= 9; digits++) {
    snprintf(text, sizeof text, "%.*g", (int)digits, exact);
    value = strtod(text, NULL);
    if (float_to_bits(dtype, value) == bits)
      break;
    value = exact;
  }
  strbuf_append_double(out, value);
}

static void print_float_bits(DType dtype, const FloatFormat *f, uint64_t bits, StrBuf *out) {
  uint64_t magnitude = bits & ~f->sign;
  if (bits == f->nan)
    strbuf_append(out, SV("nan"));
  else if (magnitude > f->exponent)
    strbuf_printf(out, "nan(0x%llX)", (unsigned long long)bits);
  else if (magnitude == f->exponent)
    strbuf_append(out, bits & f->sign ? SV("-inf") : SV("inf"));
  else
    print_finite(dtype, bits, f->digits, out);
}

static bool parse_hex(StrView text, uint64_t *out) {
  uint64_t value = 0;
  if (text.size == 0 || text.size > 16)
    return false;
  for (size_t i = 0; i < text.size; i++) {
    int digit = hex_digit(text.data[i]);
    if (digit < 0)
      return false;
    value = value << 4 | (uint64_t)digit;
  }
  *out = value;
  return true;
}

/* nan(0x...) must hold the bits of a NaN of the format, so that each value has one spelling. */
static bool parse_nan_bits(const FloatFormat *f, StrView text, uint64_t *bits) {
  const StrView open = SV("nan(0x");
  if (!sv_starts_with(text, open) || text.data[text.size - 1] != ')')
    return false;
  StrView digits = {text.data + open.size, text.size - open.size - 1};
  return parse_hex(digits, bits) && *bits <= (f->sign | (f->sign - 1)) &&
         (*bits & ~f->sign) > f->exponent && *bits != f->nan;
}

static bool parse_float_bits(DType dtype, const FloatFormat *f, StrView text, uint64_t *bits) {
  if (sv_eq_str(text, "nan")) {
    *bits = f->nan;
    return true;
  }
  if (parse_nan_bits(f, text, bits))
    return true;
  double value;
  bool negative = sv_starts_with(text, SV("-"));
  StrView magnitude = {text.data + negative, text.size - negative};
  if (sv_eq_str(magnitude, "inf")) {
    *bits = f->exponent | (negative ? f->sign : 0);
    return true;
  }
  if (magnitude.size == 0 || !(is_digit(magnitude.data[0]) || magnitude.data[0] == '.'))
    return false;
  if (!text_parse_double(text, &value))
    return false;
  *bits = float_to_bits(dtype, value);
  return (*bits & f->exponent) != f->exponent; /* a number too large is not taken for infinity */
}

void float_print(double value, StrBuf *out) {
  FloatFormat f = {0};
  (void)float_format(DTYPE_F64, &f);
  print_float_bits(DTYPE_F64, &f, float_to_bits(DTYPE_F64, value), out);
}

bool float_parse(StrView text, double *value) {
  FloatFormat f = {0};
  uint64_t bits;
  (void)float_format(DTYPE_F64, &f);
  if (!parse_float_bits(DTYPE_F64, &f, text, &bits))
    return false;
  *value = number_of_bits(DTYPE_F64, bits);
  return true;
}

/* --- elements; the host is little-endian, as the files are --- */

bool element_print(DType dtype, const uint8_t *bytes, StrBuf *out) {
  unsigned size = dtype_size(dtype);
  uint64_t bits = 0;
  FloatFormat f;
  memcpy(&bits, bytes, size);
  if (float_format(dtype, &f)) {
    print_float_bits(dtype, &f, bits, out);
    return true;
  }
  if (dtype == DTYPE_BOOL && bits <= 1) {
    strbuf_append(out, bits ? SV("true") : SV("false"));
    return true;
  }
  if (!dtype_is_int(dtype))
    return false;
  if (dtype_is_unsigned(dtype))
    strbuf_printf(out, "%llu", (unsigned long long)bits);
  else
    strbuf_printf(out, "%lld", (long long)((int64_t)(bits << (64 - 8 * size)) >> (64 - 8 * size)));
  return true;
}

static bool parse_int_bits(DType dtype, StrView text, uint64_t *bits) {
  unsigned width = 8 * dtype_size(dtype);
  if (dtype_is_unsigned(dtype))
    return text_parse_u64(text, bits) && (width == 64 || *bits >> width == 0);
  int64_t value;
  if (!text_parse_i64(text, &value))
    return false;
  *bits = (uint64_t)value;
  return width == 64 ||
         (value >= -((int64_t)1 << (width - 1)) && value < (int64_t)1 << (width - 1));
}

bool element_parse(DType dtype, StrView text, uint8_t *bytes) {
  uint64_t bits = 0;
  FloatFormat f;
  bool ok = false;
  if (float_format(dtype, &f)) {
    ok = parse_float_bits(dtype, &f, text, &bits);
  } else if (dtype == DTYPE_BOOL) {
    bits = sv_eq_str(text, "true");
    ok = bits || sv_eq_str(text, "false");
  } else if (dtype_is_int(dtype)) {
    ok = parse_int_bits(dtype, text, &bits);
  }
  if (ok)
    memcpy(bytes, &bits, dtype_size(dtype));
  return ok;
}

uint64_t constant_hash(const Constant *c) {
  c = constant_made(c);
  return XXH3_64bits(c->data, (size_t)c->size);
}

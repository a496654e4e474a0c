/* Bit-level conversions (IEEE 754-2019, binary16; bfloat16 is the upper half of binary32). Done on
 * integers, so that the result depends neither on the rounding mode nor on the compiler's _Float16.
 */
#include "support/half.h"

#include "support/number.h"

float half_to_float(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 0x1f,
           fraction = bits & 0x3ff;
  if (exponent == 0x1f)
    return float_of_bits(sign | 0x7f800000 | fraction << 13);
  if (exponent)
    return float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
  float magnitude = (float)fraction * 0x1p-24f; /* exact: at most 10 bits */
  return float_of_bits(sign | float_bits(magnitude));
}

/* value without its last count bits (1 to 63), rounded to nearest, ties to even. */
static uint64_t shift_round(uint64_t value, unsigned count) {
  uint64_t half = (uint64_t)1 << (count - 1), rest = value & (2 * half - 1), kept = value >> count;
  return kept + (rest > half || (rest == half && (kept & 1)));
}

uint16_t half_from_double(double value) {
  uint64_t bits = double_bits(value);
  uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
  int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
  uint64_t fraction = bits & 0xfffffffffffff;
  if (exponent == 1024) /* a NaN keeps its upper bits and becomes quiet */
    return sign | 0x7c00 | (fraction ? 0x200 | (uint16_t)(fraction >> 42) : 0);
  if (exponent > 15)
    return sign | 0x7c00;
  if (exponent < -25) /* below half of the smallest subnormal */
    return sign;
  if (exponent < -14) { /* the unit of a subnormal is 2^-24 */
    uint64_t significand = (uint64_t)1 << 52 | fraction;
    return sign | (uint16_t)shift_round(significand, (unsigned)(28 - exponent));
  }
  /* A carry out of the fraction raises the exponent, up to infinity, as it should. */
  return sign | (uint16_t)(((uint64_t)(exponent + 15) << 10) + shift_round(fraction, 42));
}

/* Widening to double is exact, so there is one rounding only. */
uint16_t half_from_float(float value) { return half_from_double((double)value); }

float bfloat_to_float(uint16_t bits) { return float_of_bits((uint32_t)bits << 16); }

uint16_t bfloat_from_float(float value) {
  uint32_t bits = float_bits(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)shift_round(bits, 16);
}

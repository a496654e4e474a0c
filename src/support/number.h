/* Floats as integers, their bits, and the order and divisors of integers. A cast of a float is
 * undefined for NaN and for what the integer type does not hold, so every conversion in the project
 * is one of these (tools/lint). */
#ifndef ETC_SUPPORT_NUMBER_H
#define ETC_SUPPORT_NUMBER_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Truncated; NaN gives 0, and what is out of range the nearest bound. */
static inline int64_t int_clamped(double number, int64_t least, int64_t most) {
  if (number != number)
    return 0;
  if (number <= (double)least)
    return least;
  return number >= (double)most ? most : (int64_t)number;
}

/* number as an integer, rounded towards 0 and limited to the range of uint64; NaN is 0. */
static inline uint64_t uint_clamped(double number) {
  return !(number > 0) ? 0 : number >= 0x1p64 ? UINT64_MAX : (uint64_t)number;
}

/* The integer that number is; false for fractions, NaN, infinity and what int64 does not hold. */
static inline bool int_exact(double number, int64_t *out) {
  bool fits = number >= -0x1p63 && number < 0x1p63 && number == trunc(number);
  *out = fits ? (int64_t)number : 0;
  return fits;
}

/* The bits of a float, and the float of bits. */
static inline uint32_t float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
static inline float float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
static inline uint64_t double_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
static inline double double_of_bits(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* A number in bytes of any alignment. */
static inline uint16_t load_u16(const uint8_t *at) {
  uint16_t value;
  memcpy(&value, at, sizeof value);
  return value;
}
static inline uint32_t load_u32(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return value;
}
static inline uint64_t load_u64(const uint8_t *at) {
  uint64_t value;
  memcpy(&value, at, sizeof value);
  return value;
}
/* Float i of bytes of any alignment. */
static inline float float_at(const uint8_t *data, uint64_t i) {
  float value;
  memcpy(&value, data + i * sizeof value, sizeof value);
  return value;
}

/* The nearest integer, ties to even, of a number below 2^22 in magnitude (double: 2^51). Adding the
 * constant rounds; unlike calls of nearbyint, compilers vectorize that. */
static inline float round_small_f32(float x) { return (x + 0x1.8p23F) - 0x1.8p23F; }
static inline double round_small_f64(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

/* The greatest common divisor, at least 0; that of 0 and b is b. */
static inline int64_t greatest_divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

/* For qsort: uint32_t in ascending order. */
static inline int compare_u32(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

/* The order of two uint64_t, for qsort and bsearch. */
static inline int compare_u64(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

#endif

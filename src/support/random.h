/* Numbers that look random, the same on every machine for the same start. */
#ifndef ETC_SUPPORT_RANDOM_H
#define ETC_SUPPORT_RANDOM_H

#include <math.h>
#include <stdint.h>

/* splitmix64 (Vigna, public domain): the state steps by a constant, the output is a mix of it. */
static inline uint64_t random_bits(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

/* In [0, 1), a float32 number. */
static inline double random_unit(uint64_t *state) {
  return (double)(random_bits(state) >> 40) * 0x1p-24;
}

/* Of the normal distribution with mean 0 and variance 1 (Box-Muller). */
static inline double random_normal(uint64_t *state) {
  const double two_pi = 6.28318530717958647693;
  double radius = sqrt(-2.0 * log(1.0 - random_unit(state)));
  return radius * cos(two_pi * random_unit(state));
}

#endif

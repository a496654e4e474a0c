/* The time that something takes. */
#ifndef ETC_SUPPORT_CLOCK_H
#define ETC_SUPPORT_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since some moment, which only go up. */
static inline uint64_t clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The seconds since clock_ns() was `begin`. */
static inline double clock_seconds_since(uint64_t begin) {
  return 1e-9 * (double)(clock_ns() - begin);
}

#endif

/* The words every other file uses: status, checked sizes, string views, bug reports.
 *
 * A Status only says whether to go on. The message, its place and its hint go to the diagnostic
 * sink at the point that knows them (diag.h). Nothing here allocates. */
#ifndef ETC_SUPPORT_BASE_H
#define ETC_SUPPORT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ETC_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define ETC_NORETURN __attribute__((noreturn))
/* On a type only clang knows the attribute; an ignored Status is an error there. Say (void) where
 * it is meant. */
#if defined(__clang__)
#define ETC_MUST_USE __attribute__((warn_unused_result))
#else
#define ETC_MUST_USE
#endif
/* -1, 0 or 1, as qsort wants it: the lesser first. */
#define ORDER(a, b) ((a) < (b) ? -1 : (a) > (b))
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

typedef enum ETC_MUST_USE Status {
  STATUS_OK = 0,
  STATUS_INVALID,     /* the input is wrong; a diagnostic says where */
  STATUS_UNSUPPORTED, /* the input is right but cannot be lowered; a diagnostic says why */
  STATUS_IO,          /* a file could not be read or written */
  STATUS_NO_MEMORY,   /* an allocation failed or would pass a limit */
  STATUS_INTERNAL,    /* our own fault */
  STATUS_USAGE        /* an option or argument is wrong; a diagnostic says which */
} Status;

/* Returns early with the status of expr, a Status or EtcStatus, unless it is OK, which is 0. */
#define TRY(expr)                                                                                  \
  do {                                                                                             \
    __typeof__(expr) try_status_ = (expr);                                                         \
    if (try_status_ != 0)                                                                          \
      return try_status_;                                                                          \
  } while (0)

/* Our own fault: prints the place and the message to stderr and exits with 70 (EX_SOFTWARE). Never
 * for input. */
ETC_NORETURN void bug_at(const char *file, int line, const char *format, ...) ETC_PRINTF(3, 4);
/* Where the plug-in is named whose code runs, as a fault may be its own; or NULL. */
extern const char *volatile *bug_plugin;
#define BUG(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)

/* a * b and a + b; false when the result does not fit. *out is untouched then. */
static inline bool mul_u64(uint64_t a, uint64_t b, uint64_t *out) {
  uint64_t r;
  if (__builtin_mul_overflow(a, b, &r))
    return false;
  *out = r;
  return true;
}
static inline bool add_u64(uint64_t a, uint64_t b, uint64_t *out) {
  uint64_t r;
  if (__builtin_add_overflow(a, b, &r))
    return false;
  *out = r;
  return true;
}
static inline bool mul_i64(int64_t a, int64_t b, int64_t *out) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r))
    return false;
  *out = r;
  return true;
}
static inline bool add_i64(int64_t a, int64_t b, int64_t *out) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r))
    return false;
  *out = r;
  return true;
}
static inline int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max_i64(int64_t a, int64_t b) { return a > b ? a : b; }
static inline uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }
/* value rounded up to a multiple of alignment (a power of two); value must be below 2^63. */
static inline uint64_t align_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

/* A borrowed run of bytes, not necessarily terminated. */
typedef struct StrView {
  const char *data;
  size_t size;
} StrView;

#define SV(literal) ((StrView){"" literal, sizeof(literal) - 1})
/* For printf: at most a mebibyte is printed, since a precision is an int. */
#define SV_FMT "%.*s"
#define SV_ARG(v) sv_precision(v), (v).data

static inline int sv_precision(StrView v) { return v.size < 1 << 20 ? (int)v.size : 1 << 20; }
static inline StrView sv_from(const char *terminated) {
  return (StrView){terminated, strlen(terminated)};
}
static inline bool sv_eq(StrView a, StrView b) {
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}
static inline bool sv_eq_str(StrView a, const char *b) { return sv_eq(a, sv_from(b)); }
static inline bool sv_starts_with(StrView a, StrView prefix) {
  return a.size >= prefix.size && memcmp(a.data, prefix.data, prefix.size) == 0;
}
/* Whether a ends so, with something before it: ".onnx" alone is a name without an ending. */
static inline bool sv_has_suffix(StrView a, StrView suffix) {
  return a.size > suffix.size &&
         memcmp(a.data + a.size - suffix.size, suffix.data, suffix.size) == 0;
}

#endif

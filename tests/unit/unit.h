/* What every unit test includes: cmocka with the headers that it wants before it, and a sink that
 * keeps what it shows. */
#ifndef ETC_TESTS_UNIT_H
#define ETC_TESTS_UNIT_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/diag.h"

/* A sink whose output is in text. Usage: Capture c; capture_init(&c); f(&c.sink); ...
 * capture_release(&c); */
typedef struct Capture {
  DiagSink sink;
  StrBuf text;
} Capture;

static inline void capture_write(void *user, const char *text, size_t size) {
  strbuf_append(user, (StrView){text, size});
}
static inline void capture_init(Capture *capture) {
  diag_sink_init(&capture->sink);
  capture->text = (StrBuf){0};
  capture->sink.write = capture_write;
  capture->sink.write_user = &capture->text;
}
static inline void capture_release(Capture *capture) {
  diag_sink_release(&capture->sink);
  strbuf_release(&capture->text);
}

/* A number below `below`, the same ones after the same seed in *state, which is not 0
 * (xorshift64, Marsaglia 2003). */
static inline uint32_t draw_below(uint64_t *state, uint32_t below) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return (uint32_t)(*state >> 11) % below;
}

/* Counts the file descriptors of the process and a few entries more: to compare with a later count.
 */
static inline unsigned open_descriptors(void) {
  unsigned count = 0;
  DIR *folder = opendir("/proc/self/fd");
  assert_non_null(folder);
  while (readdir(folder))
    count++;
  closedir(folder);
  return count;
}

#define assert_contains(text, part)                                                                \
  do {                                                                                             \
    if (!strstr((text), (part)))                                                                   \
      fail_msg("'%s' is not in:\n%s", (part), (text));                                             \
  } while (0)

#endif

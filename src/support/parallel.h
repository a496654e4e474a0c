/* A small thread pool: one parallel loop at a time, results joined by index, so that they do not
 * depend on the number of threads. */
#ifndef ETC_SUPPORT_PARALLEL_H
#define ETC_SUPPORT_PARALLEL_H

#include "support/base.h"

typedef void ParallelBody(void *user, size_t begin, size_t end);

/* How many threads later loops of the calling thread may have; 0 = number of online cores. Returns
 * what it was before. */
unsigned parallel_set_threads(unsigned threads);
/* Threads that a loop begun here may have: 1 inside of another one. */
unsigned parallel_threads(void);
/* Runs body over [0, count) in chunks of at least grain elements, on up to parallel_threads()
 * threads; returns when all are done. Nested calls run serially. */
void parallel_for(size_t count, size_t grain, ParallelBody *body, void *user);

#endif

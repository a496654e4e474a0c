/* A pool of threads that lives as long as the process, made on the first loop that can use it.
 *
 * The chunks of a loop follow from its count and grain alone, never from the number of threads: a
 * body that sums over its chunk gives the same bits on every machine. Threads take chunks from one
 * counter, so uneven chunks even out. The pool is the one state here: threads are a property of the
 * process. Workers block all signals, so that handlers run on the program's own threads; after fork
 * the child starts with an empty pool. */
#include "support/parallel.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "support/memory.h"

enum { THREADS_MAX = 256, CHUNKS_MAX = 256 };

typedef struct Loop {
  ParallelBody *body;
  void *user;
  size_t count, chunk;
  MemoryScope *scope; /* of the caller */
  atomic_size_t next;
  atomic_size_t failed; /* size of a request for memory that failed, or 0 */
} Loop;

typedef struct Pool {
  pthread_mutex_t mutex;
  pthread_cond_t work, done;
  unsigned workers;    /* threads started */
  unsigned wanted;     /* workers that may join the loop at hand */
  unsigned inside;     /* workers in the loop at hand */
  uint64_t generation; /* number of loops so far */
  Loop *loop;          /* the one at hand; written while no worker is inside */
} Pool;

#define POOL_EMPTY                                                                                 \
  {                                                                                                \
    .mutex = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER,                          \
    .done = PTHREAD_COND_INITIALIZER                                                               \
  }

static Pool pool = POOL_EMPTY;
static pthread_mutex_t loop_mutex =
    PTHREAD_MUTEX_INITIALIZER;                /* held by the caller of the running loop */
static _Thread_local unsigned chosen_threads; /* 0 = online cores */
static _Thread_local bool inside_loop;

unsigned parallel_set_threads(unsigned threads) {
  unsigned before = chosen_threads;
  chosen_threads = threads < THREADS_MAX ? threads : THREADS_MAX;
  return before;
}

/* Asked once: the answer comes from a file in /sys, which takes longer than a small loop. */
static unsigned online_cores(void) {
  static atomic_uint cores;
  unsigned known = atomic_load(&cores);
  if (known)
    return known;
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  known = online < 1 ? 1 : online > THREADS_MAX ? THREADS_MAX : (unsigned)online;
  atomic_store(&cores, known);
  return known;
}

unsigned parallel_threads(void) {
  unsigned threads = inside_loop ? 1 : chosen_threads;
  return threads ? threads : online_cores();
}

static void take_chunks(void *user) {
  Loop *l = user;
  for (size_t begin; (begin = atomic_fetch_add(&l->next, l->chunk)) < l->count;)
    l->body(l->user, begin, l->count - begin < l->chunk ? l->count : begin + l->chunk);
}

/* Runs chunks of [0, count) till none is left, or memory has run out on some thread. */
static void run_chunks(Loop *l) {
  bool before = inside_loop;
  inside_loop = true;
  size_t failed = memory_try(take_chunks, l);
  if (failed) {
    atomic_store(&l->failed, failed);
    atomic_store(&l->next, l->count);
  }
  inside_loop = before;
}

static void *worker(void *unused) {
  (void)unused;
  uint64_t seen = 0;
  pthread_mutex_lock(&pool.mutex);
  for (;;) {
    while (pool.generation == seen || pool.wanted == 0) {
      seen = pool.generation;
      pthread_cond_wait(&pool.work, &pool.mutex);
    }
    seen = pool.generation;
    pool.wanted--;
    pool.inside++;
    pthread_mutex_unlock(&pool.mutex);
    memory_set_scope(pool.loop->scope);
    run_chunks(pool.loop);
    pthread_mutex_lock(&pool.mutex);
    if (--pool.inside == 0)
      pthread_cond_signal(&pool.done);
  }
  return NULL;
}

static void forget_pool(void) {
  pool = (Pool)POOL_EMPTY;
  loop_mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  inside_loop = false;
}

static void watch_fork(void) { (void)pthread_atfork(NULL, NULL, forget_pool); }

/* Starts threads till there are wanted; with fewer the loop is slower, not wrong. The mutex is
 * held. */
static void start_workers(unsigned wanted) {
  static pthread_once_t fork_watched = PTHREAD_ONCE_INIT;
  pthread_once(&fork_watched, watch_fork);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  for (pthread_t thread; pool.workers < wanted; pool.workers++)
    if (pthread_create(&thread, &attributes, worker, NULL) != 0)
      break;
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void run_on_pool(Loop *loop, unsigned helpers) {
  pthread_mutex_lock(&pool.mutex);
  start_workers(helpers);
  pool.loop = loop;
  pool.wanted = helpers;
  pool.generation++;
  pthread_cond_broadcast(&pool.work);
  pthread_mutex_unlock(&pool.mutex);

  run_chunks(loop);

  pthread_mutex_lock(&pool.mutex);
  pool.wanted = 0; /* who comes now would find nothing */
  while (pool.inside > 0)
    pthread_cond_wait(&pool.done, &pool.mutex);
  pthread_mutex_unlock(&pool.mutex);
}

void parallel_for(size_t count, size_t grain, ParallelBody *body, void *user) {
  if (count == 0)
    return;
  size_t chunk = (count - 1) / CHUNKS_MAX + 1;
  if (chunk < grain)
    chunk = grain;
  size_t chunks = (count - 1) / chunk + 1;
  unsigned threads = parallel_threads();
  if (threads > chunks)
    threads = (unsigned)chunks;
  Loop loop = {.body = body, .user = user, .count = count, .chunk = chunk, .scope = memory_scope()};
  /* A second program thread that comes while a loop runs works alone rather than wait. */
  if (threads > 1 && !inside_loop && pthread_mutex_trylock(&loop_mutex) == 0) {
    run_on_pool(&loop, threads - 1);
    pthread_mutex_unlock(&loop_mutex);
  } else {
    run_chunks(&loop);
  }
  if (loop.failed)
    memory_fail(loop.failed);
}

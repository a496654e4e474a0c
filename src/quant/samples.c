/* See samples.h. */
#include "quant/samples.h"

#include <pthread.h>

#include "support/parallel.h"

/* The loop as the threads share it, under the lock. */
typedef struct Shared {
  const SampleLoop *loop;
  DataSet *set;
  SampleProgress *progress;
  pthread_mutex_t lock;
  pthread_cond_t added;
  uint64_t samples, done; /* taken, and finished */
  bool failed, data_failed;
  SampleWorker *workers;
} Shared;

typedef struct Thread {
  Shared *s;
  SampleWorker *w;
} Thread;

/* False behind the last sample, and when something failed. */
static bool take_sample(Shared *s, SampleWorker *w) {
  bool more = false;
  arena_reset(&w->arena);
  memory_lock(&s->lock);
  w->inputs = ARENA_ARRAY(&w->arena, Tensor, s->loop->input_count + 1);
  if (!s->failed && dataset_next(s->set, &w->arena, w->inputs, &more) != STATUS_OK) {
    s->data_failed = s->failed = true;
    more = false;
    pthread_cond_broadcast(&s->added);
  }
  w->sample = s->samples;
  s->samples += more;
  memory_unlock(&s->lock);
  return more;
}

/* Adds the results of the sample, if the loop adds: in the order of the samples, so that it waits
 * for those before. */
static void finish_sample(Shared *s, SampleWorker *w) {
  pthread_mutex_lock(&s->lock);
  if (w->status != STATUS_OK)
    s->failed = true;
  while (s->loop->add && !s->failed && s->done < w->sample)
    pthread_cond_wait(&s->added, &s->lock);
  if (s->loop->add && !s->failed)
    s->loop->add(w);
  s->done++;
  if (s->progress)
    s->progress->done++;
  pthread_cond_broadcast(&s->added);
  pthread_mutex_unlock(&s->lock);
}

static void run_samples(void *user) {
  const Thread *t = user;
  SampleWorker *w = t->w;
  diag_sink_init_silent(&w->sink);
  while (w->status == STATUS_OK && take_sample(t->s, w)) {
    w->status = w->loop->run(w, &w->sink, false);
    finish_sample(t->s, w);
  }
  if (w->loop->end)
    w->loop->end(w);
  diag_sink_release(&w->sink);
}

/* Without memory for a sample, those behind it do not wait for it. */
static void give_up(Shared *s) {
  pthread_mutex_lock(&s->lock);
  s->failed = true;
  pthread_cond_broadcast(&s->added);
  pthread_mutex_unlock(&s->lock);
}

static void work(void *user, size_t begin, size_t end) {
  Shared *s = user;
  for (size_t i = begin; i < end; i++) {
    size_t failed = memory_try(run_samples, &(Thread){s, &s->workers[i]});
    if (failed) {
      give_up(s);
      memory_fail(failed);
    }
  }
}

/* The first sample that failed runs once more, for its messages. Samples before it were all taken
 * before it, so that it is the same one each time. */
static Status report_failure(Shared *s, unsigned workers, DiagSink *sink) {
  SampleWorker *first = NULL;
  for (unsigned i = 0; i < workers; i++)
    if (s->workers[i].status != STATUS_OK && (!first || s->workers[i].sample < first->sample))
      first = &s->workers[i];
  if (!first)
    return s->data_failed ? STATUS_INVALID : STATUS_OK;
  if (s->data_failed)
    return first->status;
  Status again = s->loop->run(first, sink, true);
  if (again != STATUS_OK)
    dataset_refused(s->set, first->sample);
  return again == STATUS_OK ? first->status : again;
}

Status samples_run(const SampleLoop *loop, DataSet *set, SampleProgress *progress, DiagSink *sink) {
  Arena arena = {0};
  Shared s = {.loop = loop, .set = set, .progress = progress};
  uint64_t samples = dataset_count(set);
  unsigned workers = parallel_threads();
  if (workers > samples)
    workers = samples ? (unsigned)samples : 1;
  s.workers = ARENA_ARRAY(&arena, SampleWorker, workers);
  for (unsigned i = 0; i < workers; i++)
    s.workers[i] = (SampleWorker){.loop = loop, .own = arena_calloc(&arena, 1, loop->own_size)};
  pthread_mutex_init(&s.lock, NULL);
  pthread_cond_init(&s.added, NULL);
  if (progress)
    progress->total = samples;
  parallel_for(workers, 1, work, &s);
  Status status = report_failure(&s, workers, sink);
  for (unsigned i = 0; i < workers; i++)
    arena_release(&s.workers[i].arena);
  pthread_cond_destroy(&s.added);
  pthread_mutex_destroy(&s.lock);
  arena_release(&arena);
  return status;
}

/* See progress.h. A thread draws, since the passes know nothing of terminals; a mutex keeps its
 * line and messages apart. */
#include "progress.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_MS = 500, REDRAW_MS = 100 };
#define ERASE "\r\033[K"

/* There is one terminal; a signal handler has to reach it. */
static struct {
  pthread_mutex_t mutex;
  pthread_cond_t stop;
  pthread_t thread;
  const PassProgress *state;
  bool running, stopping;
  volatile sig_atomic_t drawn;
} progress = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void put(const char *text, size_t size) {
  ssize_t written = write(STDERR_FILENO, text, size);
  (void)written; /* what is only for looking at may be lost */
}

void progress_erase(void) {
  if (progress.drawn)
    put(ERASE, sizeof ERASE - 1);
  progress.drawn = 0;
}

static void draw(const PassProgress *state) {
  char text[256];
  const char *stage = state->stage, *pass = state->pass;
  uint64_t written = state->output.written, total = state->output.total;
  int size = 0;
  if (!stage)
    return;
  if (total)
    size = snprintf(text, sizeof text, ERASE "etc: %s, %u %% written", stage,
                    (unsigned)(written < total ? (double)written / (double)total * 100 : 100));
  else if (state->samples.total)
    size =
        snprintf(text, sizeof text, ERASE "etc: %s, sample %llu of %llu", stage,
                 (unsigned long long)state->samples.done, (unsigned long long)state->samples.total);
  else
    size =
        snprintf(text, sizeof text, ERASE "etc: %s%s%s", stage, pass ? ", " : "", pass ? pass : "");
  progress.drawn = 1;
  if (size > 0 && (size_t)size < sizeof text)
    put(text, (size_t)size);
}

static struct timespec later(struct timespec from, long ms) {
  long ns = from.tv_nsec + ms * 1000000;
  return (struct timespec){from.tv_sec + ns / 1000000000, ns % 1000000000};
}

static void *redraw(void *unused) {
  (void)unused;
  struct timespec next;
  clock_gettime(CLOCK_MONOTONIC, &next);
  next = later(next, FIRST_MS);
  pthread_mutex_lock(&progress.mutex);
  while (!progress.stopping) {
    if (pthread_cond_timedwait(&progress.stop, &progress.mutex, &next) != ETIMEDOUT)
      continue;
    draw(progress.state);
    next = later(next, REDRAW_MS);
  }
  pthread_mutex_unlock(&progress.mutex);
  return NULL;
}

/* For messages, which take the place of the line. */
static void write_message(void *user, const char *text, size_t size) {
  (void)user;
  pthread_mutex_lock(&progress.mutex);
  progress_erase();
  fwrite(text, 1, size, stderr);
  pthread_mutex_unlock(&progress.mutex);
}

static bool can_draw(const Session *s) {
  const char *terminal = getenv("TERM");
  return isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0 && !s->sink.quiet &&
         s->sink.format == DIAG_TEXT && s->manager.options.progress;
}

void progress_start(const CommandLine *line) {
  Session *s = line->session;
  pthread_condattr_t clock;
  sigset_t all, before;
  if (!can_draw(s))
    return;
  progress.state = s->manager.options.progress;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&progress.stop, &clock);
  pthread_condattr_destroy(&clock);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  progress.running = pthread_create(&progress.thread, NULL, redraw, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!progress.running)
    return;
  etc_session_on_diagnostic(s, write_message, NULL);
  etc_session_on_output(s, write_message, NULL);
}

void progress_stop(void) {
  if (!progress.running)
    return;
  pthread_mutex_lock(&progress.mutex);
  progress.stopping = true;
  progress_erase();
  pthread_cond_signal(&progress.stop);
  pthread_mutex_unlock(&progress.mutex);
  pthread_join(progress.thread, NULL);
  progress.running = false;
}

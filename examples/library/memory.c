/* Model and program in memory, each session in a thread of its own: memory MODEL.onnx DIM
 * OUT.pte...
 *
 * The model is read once; OUT number N gets the program for DIM=N. Messages are gathered and shown
 * with the program that they are about. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <etc/etc.h>

typedef struct Bytes {
  char *data;
  size_t size;
} Bytes;

typedef struct Job {
  const Bytes *model; /* shared: sessions only read it */
  char option[128];   /* DIM=N */
  const char *out;
  Bytes program, messages;
  EtcStatus status;
  pthread_t thread;
} Job;

/* An EtcWrite: user is the Bytes that grow. */
static void append(void *user, const char *data, size_t size) {
  Bytes *b = user;
  b->data = realloc(b->data, b->size + size + 1);
  if (!b->data)
    abort();
  memcpy(b->data + b->size, data, size);
  b->size += size;
}

static void *lower(void *argument) {
  Job *job = argument;
  EtcSession *s = etc_session_new();
  etc_session_on_diagnostic(s, append, &job->messages);
  job->status = etc_session_set(s, "threads", "1");
  if (job->status == ETC_OK)
    job->status = etc_session_set(s, "dim", job->option);
  /* The model's bytes must stay until the session is freed; its name is for messages. */
  if (job->status == ETC_OK)
    job->status = etc_session_add_model(s, "forward", "model", job->model->data, job->model->size);
  if (job->status == ETC_OK)
    job->status = etc_lower_to(s, append, &job->program);
  etc_session_free(s);
  return NULL;
}

static int read_file(const char *path, Bytes *to) {
  FILE *f = fopen(path, "rb");
  if (!f)
    return 0;
  char piece[65536];
  size_t got;
  while ((got = fread(piece, 1, sizeof piece, f)))
    append(to, piece, got);
  int ok = !ferror(f);
  fclose(f);
  return ok;
}

static int write_file(const char *path, const Bytes *from) {
  FILE *f = fopen(path, "wb");
  if (!f)
    return 0;
  int ok = fwrite(from->data, 1, from->size, f) == from->size;
  return fclose(f) == 0 && ok;
}

/* Shows what the thread of a job has left, and writes its program. */
static int finish(Job *job) {
  pthread_join(job->thread, NULL);
  fprintf(stderr, "%s: ", job->option);
  fwrite(job->messages.data, 1, job->messages.size, stderr);
  int ok = job->status == ETC_OK && write_file(job->out, &job->program);
  if (ok)
    fprintf(stderr, "%zu bytes\n", job->program.size);
  free(job->program.data);
  free(job->messages.data);
  return ok;
}

int main(int argc, char **argv) {
  Bytes model = {0};
  if (argc < 4 || !read_file(argv[1], &model)) {
    fprintf(stderr, "usage: memory MODEL.onnx DIM OUT.pte...\n");
    return ETC_USAGE;
  }
  int count = argc - 3, good = 0;
  Job *jobs = calloc((size_t)count, sizeof *jobs);
  if (!jobs)
    return ETC_FAILED;
  for (int i = 0; i < count; i++) {
    jobs[i] = (Job){.model = &model, .out = argv[3 + i]};
    snprintf(jobs[i].option, sizeof jobs[i].option, "%.100s=%d", argv[2], i + 1);
    if (pthread_create(&jobs[i].thread, NULL, lower, &jobs[i]) != 0)
      abort();
  }
  for (int i = 0; i < count; i++)
    good += finish(&jobs[i]);
  free(jobs);
  free(model.data);
  return good == count ? ETC_OK : ETC_FAILED;
}

/* Runs `etc lower` on broken models and demands a decent refusal: exit 1 (2 for wrong usage), the
 * code and the words that the case asks for, nothing in the message that a terminal would act on,
 * no output and no temporary file, little time and memory. The cases are text (bad/, written in
 * assemble.h), so that no Python and no ONNX package is needed.
 *
 *   bad_models ETC [--sanitized] [-k PART_OF_NAME] FILE.txt... runs the cases of the files
 *   bad_models ETC --update FILE.txt...                        writes what was said to FILE.said
 *   bad_models --write FOLDER FILE...                          writes their models as NAME.onnx
 * (seeds for fuzzing)
 *
 * A case begins with `== NAME` and has the lines of a model and of these:
 *   expect CODE           this code is reported (repeat)        says TEXT    these words too
 * (repeat) never TEXT            and not these                         ok           instead of
 * expect: lowers, exit 0 args WORD...          more arguments of `etc lower` file NAME BYTES, link
 * NAME TARGET, hard NAME TARGET, fifo NAME, folder NAME      beside the model The model is
 * m/model.onnx, the output goes to out/; ../secret of the model is a file of 4096 bytes.
 *
 * Besides, FILE.said has all that etc said of each case, so that a message that changes shows in
 * the difference of it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "assemble.h"
#include "support/arena.h"
#include "support/diag.h"
#include "support/text.h"

enum {
  MAX_TEXTS = 24,
  CPU_SECONDS = 2,
  CPU_SECONDS_SANITIZED = 60,
  WALL_SECONDS = 100,
  RESIDENT_KB = 200 << 10,
  SHOWN_MAX = 64 << 10
};

typedef struct Case {
  StrView name;
  StrBuf model; /* text, then bytes */
  StrView expect[MAX_TEXTS], says[MAX_TEXTS], never[MAX_TEXTS], files[MAX_TEXTS], args[MAX_TEXTS];
  uint32_t expect_count, says_count, never_count, file_count, arg_count;
  bool ok;
} Case;

typedef struct Runner {
  const char *etc, *filter, *write;
  bool sanitized, update;
  StrBuf known, said; /* FILE.said as it is, and what was said now */
  unsigned passed, failed;
  Arena arena;
} Runner;

static StrView next_line(StrView *text) {
  const char *at = memchr(text->data, '\n', text->size);
  size_t size = at ? (size_t)(at - text->data) : text->size;
  StrView line = {text->data, size};
  size_t skip = at ? size + 1 : size;
  *text = (StrView){text->data + skip, text->size - skip};
  return line;
}

static bool word_is(StrView line, const char *word, StrView *rest) {
  size_t size = strlen(word);
  if (!sv_starts_with(line, sv_from(word)) || (line.size > size && line.data[size] != ' '))
    return false;
  *rest =
      line.size > size ? (StrView){line.data + size + 1, line.size - size - 1} : (StrView){"", 0};
  return true;
}

static void keep(StrView *list, uint32_t *count, StrView text) {
  if (*count < MAX_TEXTS)
    list[(*count)++] = text;
}

static void read_line(Case *c, StrView line) {
  StrView rest;
  if (word_is(line, "expect", &rest))
    keep(c->expect, &c->expect_count, rest);
  else if (word_is(line, "says", &rest))
    keep(c->says, &c->says_count, rest);
  else if (word_is(line, "never", &rest))
    keep(c->never, &c->never_count, rest);
  else if (word_is(line, "args", &rest))
    keep(c->args, &c->arg_count, rest);
  else if (word_is(line, "ok", &rest))
    c->ok = true;
  else if (word_is(line, "file", &rest) || word_is(line, "link", &rest) ||
           word_is(line, "hard", &rest) || word_is(line, "fifo", &rest) ||
           word_is(line, "folder", &rest))
    keep(c->files, &c->file_count, line);
  else {
    strbuf_append(&c->model, line);
    strbuf_append_char(&c->model, '\n');
  }
}

/* --- the folder of a case --- */

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where) {
  (void)info;
  (void)kind;
  (void)where;
  return remove(path);
}

static bool write_bytes(const char *path, const char *data, size_t size) {
  FILE *f = fopen(path, "wb");
  return f && (size == 0 || fwrite(data, 1, size, f) == size) && fclose(f) == 0;
}

static bool make_file(Runner *r, const char *top, StrView line) {
  char kind = line.data[1]; /* fIle lInk hArd fIfo fOlder */
  bool is_link = line.data[0] == 'l', is_fifo = sv_starts_with(line, SV("fifo"));
  StrView words = {memchr(line.data, ' ', line.size), 0};
  words.data++;
  words.size = (size_t)(line.data + line.size - words.data);
  const char *space = memchr(words.data, ' ', words.size);
  StrView name = {words.data, space ? (size_t)(space - words.data) : words.size};
  StrView value = {space ? space + 1 : "", space ? words.size - name.size - 1 : 0};
  const char *path = arena_printf(&r->arena, "%s/m/" SV_FMT, top, SV_ARG(name));
  const char *target = arena_strdup(&r->arena, value);
  int64_t bytes = 0;
  if (is_link)
    return symlink(target, path) == 0;
  if (is_fifo)
    return mkfifo(path, 0600) == 0;
  if (kind == 'o')
    return mkdir(path, 0700) == 0;
  if (kind == 'a')
    return link(arena_printf(&r->arena, "%s/m/%s", top, target), path) == 0;
  return text_parse_i64(value, &bytes) && write_bytes(path, "", 0) && truncate(path, bytes) == 0;
}

static bool make_folder(Runner *r, const Case *c, const char *top) {
  bool fine =
      mkdir(arena_printf(&r->arena, "%s/m", top), 0700) == 0 &&
      mkdir(arena_printf(&r->arena, "%s/out", top), 0700) == 0 &&
      write_bytes(arena_printf(&r->arena, "%s/secret", top), "", 0) &&
      truncate(arena_printf(&r->arena, "%s/secret", top), 4096) == 0 &&
      write_bytes(arena_printf(&r->arena, "%s/m/model.onnx", top), c->model.data, c->model.size);
  for (uint32_t i = 0; i < c->file_count && fine; i++)
    fine = make_file(r, top, c->files[i]);
  return fine;
}

static unsigned entries(const char *path) {
  unsigned count = 0;
  DIR *d = opendir(path);
  while (d && readdir(d))
    count++;
  if (d)
    closedir(d);
  return count - 2;
}

/* --- the command --- */

static void limit(int which, rlim_t value) {
  (void)setrlimit(which, &(struct rlimit){value, value});
}

static void run_child(Runner *r, const Case *c, const char *top) {
  const char *const always[] = {r->etc, "lower", "m/model.onnx", "-o", "out/model.pte"};
  char *argv[8 + MAX_TEXTS * 2] = {0};
  uint32_t count = 0;
  while (count < COUNT_OF(always)) {
    argv[count] = arena_strdup(&r->arena, sv_from(always[count]));
    count++;
  }
  for (uint32_t i = 0; i < c->arg_count; i++) {
    char *words = arena_strdup(&r->arena, c->args[i]), *save = NULL;
    for (char *w = strtok_r(words, " ", &save); w && count < COUNT_OF(argv) - 1;
         w = strtok_r(NULL, " ", &save))
      argv[count++] = w;
  }
  int fd = chdir(top) == 0 ? open("shown", O_CREAT | O_WRONLY, 0600) : -1;
  if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
    _exit(126);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, (rlim_t)(r->sanitized ? CPU_SECONDS_SANITIZED : CPU_SECONDS) + 1);
  if (!r->sanitized)
    limit(RLIMIT_AS, (rlim_t)4 << 30); /* the threads of BLAS reserve much; resident is checked */
  alarm(WALL_SECONDS);
  execv(r->etc, argv);
  _exit(127);
}

static void complain(Runner *r, const Case *c, bool *fine, const char *format, ...)
    ETC_PRINTF(4, 5);
static void complain(Runner *r, const Case *c, bool *fine, const char *format, ...) {
  va_list args;
  va_start(args, format);
  printf("FAIL " SV_FMT ": %s\n", SV_ARG(c->name), arena_vprintf(&r->arena, format, args));
  va_end(args);
  *fine = false;
}

static bool holds(const StrBuf *text, StrView part) {
  return memmem(strbuf_cstr(text), text->size, part.data, part.size) != NULL;
}

static void check_shown(Runner *r, const Case *c, const StrBuf *shown, bool *fine) {
  StrView text = {strbuf_cstr(shown), shown->size};
  for (uint32_t i = 0; i < c->expect_count; i++)
    if (!holds(shown, c->expect[i]))
      complain(r, c, fine, "no " SV_FMT, SV_ARG(c->expect[i]));
  for (uint32_t i = 0; i < c->says_count; i++)
    if (!holds(shown, c->says[i]))
      complain(r, c, fine, "does not say '" SV_FMT "'", SV_ARG(c->says[i]));
  for (uint32_t i = 0; i < c->never_count; i++)
    if (holds(shown, c->never[i]))
      complain(r, c, fine, "says '" SV_FMT "'", SV_ARG(c->never[i]));
  if (text.size > SHOWN_MAX)
    complain(r, c, fine, "%zu bytes of messages", text.size);
  for (size_t at = 0; at < text.size;) {
    uint32_t point = 0;
    unsigned bytes = utf8_decode(text, at, &point);
    if (!bytes || (utf8_is_control(point) && point != '\n')) {
      complain(r, c, fine, "byte %zu of the message is not printable", at);
      break;
    }
    at += bytes;
  }
}

/* 2 where the case is wrong usage by the code that it expects. */
static int wanted_exit(const Case *c) {
  DiagCode code;
  if (c->ok)
    return 0;
  return c->expect_count && diag_find(c->expect[0], &code) && diag_row(code)->status == STATUS_USAGE
             ? 2
             : 1;
}

static void check_end(Runner *r, const Case *c, int status, const struct rusage *used, bool *fine) {
  int wanted = wanted_exit(c);
  if (WIFSIGNALED(status))
    complain(r, c, fine, "ended by signal %d", WTERMSIG(status));
  else if (WEXITSTATUS(status) != wanted)
    complain(r, c, fine, "exit %d, not %d", WEXITSTATUS(status), wanted);
  double seconds = (double)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) +
                   1e-6 * (double)(used->ru_utime.tv_usec + used->ru_stime.tv_usec);
  if (seconds > (r->sanitized ? CPU_SECONDS_SANITIZED : CPU_SECONDS))
    complain(r, c, fine, "took %.1f s of processor time", seconds);
  if (!r->sanitized && used->ru_maxrss > RESIDENT_KB)
    complain(r, c, fine, "took %ld MB", used->ru_maxrss >> 10);
}

static void read_shown(Runner *r, const char *top, StrBuf *shown) {
  FILE *f = fopen(arena_printf(&r->arena, "%s/shown", top), "rb");
  char buffer[4096];
  size_t got;
  while (f && (got = fread(buffer, 1, sizeof buffer, f)) > 0)
    strbuf_append(shown, (StrView){buffer, got});
  if (f)
    fclose(f);
}

static void check_said(Runner *r, const Case *c, const StrBuf *shown, bool *fine) {
  size_t begin = r->said.size;
  strbuf_printf(&r->said, "\n== " SV_FMT "\n%s", SV_ARG(c->name), strbuf_cstr(shown));
  strbuf_append(&r->said, SV("\n== "));
  if (!r->update && !strstr(strbuf_cstr(&r->known), r->said.data + begin))
    complain(r, c, fine, "its .said knows other messages");
  r->said.size -= 4; /* what the next case begins with, too */
  r->said.data[r->said.size] = '\0';
}

static void check_folders(Runner *r, const Case *c, const char *top, bool *fine) {
  unsigned out = entries(arena_printf(&r->arena, "%s/out", top));
  if (out != (c->ok ? 1 : 0))
    complain(r, c, fine, "%u files in the output folder", out);
  unsigned beside = entries(arena_printf(&r->arena, "%s/m", top));
  if (beside != c->file_count + 1)
    complain(r, c, fine, "%u files beside the model, not %u", beside, c->file_count + 1);
}

static bool run_case(Runner *r, const Case *c) {
  char top[] = "/tmp/etc-bad-XXXXXX";
  bool fine = true;
  if (!mkdtemp(top) || !make_folder(r, c, top)) {
    complain(r, c, &fine, "cannot make its files: %s", strerror(errno));
    return false;
  }
  fflush(stdout);
  pid_t child = fork();
  if (child == 0)
    run_child(r, c, top);
  int status = 0;
  struct rusage used;
  if (child < 0 || wait4(child, &status, 0, &used) != child) {
    complain(r, c, &fine, "cannot run: %s", strerror(errno));
    return false;
  }
  StrBuf shown = {0};
  read_shown(r, top, &shown);
  check_end(r, c, status, &used, &fine);
  check_shown(r, c, &shown, &fine);
  check_said(r, c, &shown, &fine);
  check_folders(r, c, top, &fine);
  if (!fine || getenv("ETC_SHOW"))
    printf("---- " SV_FMT "\n%.4000s----\n", SV_ARG(c->name), strbuf_cstr(&shown));
  strbuf_release(&shown);
  (void)nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  return fine;
}

/* --- files of cases --- */

static void finish_case(Runner *r, Case *c) {
  StrBuf bytes = {0}, error = {0};
  bool fine = true;
  bool wanted = c->name.size && (!r->filter || strstr(arena_strdup(&r->arena, c->name), r->filter));
  if (wanted) {
    if (!onnx_assemble((StrView){strbuf_cstr(&c->model), c->model.size}, &bytes, &error))
      complain(r, c, &fine, "the test is wrong: %s", strbuf_cstr(&error));
    else if (!r->write && !c->ok && !c->expect_count)
      complain(r, c, &fine, "the test expects nothing");
    strbuf_release(&c->model);
    c->model = bytes;
    if (fine && r->write)
      fine = write_bytes(arena_printf(&r->arena, "%s/" SV_FMT ".onnx", r->write, SV_ARG(c->name)),
                         bytes.data, bytes.size);
    else if (fine)
      fine = run_case(r, c);
    r->passed += fine;
    r->failed += !fine;
  }
  strbuf_release(&c->model);
  strbuf_release(&error);
  arena_reset(&r->arena);
}

static bool read_text(const char *path, StrBuf *out) {
  FILE *f = fopen(path, "rb");
  char buffer[4096];
  size_t got;
  if (!f) {
    printf("cannot read %s: %s\n", path, strerror(errno));
    return false;
  }
  while ((got = fread(buffer, 1, sizeof buffer, f)) > 0)
    strbuf_append(out, (StrView){buffer, got});
  fclose(f);
  return true;
}

static void run_cases(Runner *r, StrView rest) {
  Case c = {0};
  while (rest.size) {
    StrView line = next_line(&rest), name;
    if (word_is(line, "==", &name)) {
      finish_case(r, &c);
      c = (Case){.name = name};
    } else {
      read_line(&c, line);
    }
  }
  finish_case(r, &c);
}

/* Each case in FILE.said begins with an empty line, and ends before that of the next one. */
static bool run_file(Runner *r, const char *path) {
  StrBuf text = {0}, said = {0};
  strbuf_clear(&r->known);
  strbuf_clear(&r->said);
  strbuf_printf(&said, "%.*s.said", (int)(strlen(path) - 4), path);
  bool fine = read_text(path, &text);
  if (fine && !r->update && !r->write) {
    fine = read_text(strbuf_cstr(&said), &r->known);
    strbuf_append(&r->known, SV("\n== "));
  }
  if (fine)
    run_cases(r, (StrView){strbuf_cstr(&text), text.size});
  if (fine && r->update)
    fine = write_bytes(strbuf_cstr(&said), strbuf_cstr(&r->said), r->said.size);
  strbuf_release(&text);
  strbuf_release(&said);
  return fine;
}

int main(int argc, char **argv) {
  Runner r = {.etc = argc > 1 ? argv[1] : NULL};
  int i = 2;
  bool fine = argc > 2;
  if (fine && strcmp(argv[1], "--write") == 0)
    r.write = argv[i++];
  for (; fine && i < argc; i++) {
    if (strcmp(argv[i], "--sanitized") == 0)
      r.sanitized = true;
    else if (strcmp(argv[i], "--update") == 0)
      r.update = true;
    else if (strcmp(argv[i], "-k") == 0 && i + 1 < argc)
      r.filter = argv[++i];
    else
      fine = run_file(&r, argv[i]);
  }
  arena_release(&r.arena);
  strbuf_release(&r.known);
  strbuf_release(&r.said);
  printf("bad models: %u passed, %u failed, 0 skipped\n", r.passed, r.failed);
  return fine && r.passed && !r.failed ? 0 : 1;
}

/* The numbers of models, compared with those of a reference: files that pack_cases.py wrote.
 *
 *   cases [--backend BACKEND] [--quantize SCHEME] [-k PART_OF_NAME] [--keep FOLDER] [--nodes FILE]
 * [--record FILE] [--update] FILE.gz...
 *
 * Each case is run by the reference interpreter as it was imported, and as the program that
 * lowering it gives, read back from its file. Cases that must be refused name the code of the
 * diagnostic. What the programs call is compared with the file of --nodes, what lowering makes
 * of each case at every stage with the hashes in that of --record (record.h); --update writes both
 * (record.sh does it for all). With --quantize the first inputs of a case are the samples; values
 * are not compared then, and a case may be refused. --keep writes the models, and with --record the
 * texts of the hashes, to be compared with those of another build. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "interp/interp.h"
#include "interp/npy.h"
#include "onnx/file/tensor.h"
#include "onnx/translate.h"
#include "ops/delegate.h"
#include "backends/backend.h"
#include "pipeline/session.h"
#include "record.h"
#include "support/text.h"

enum { TENSORS_MAX = 32, SETTINGS_MAX = 8 };

typedef struct Reader {
  const uint8_t *at, *end;
} Reader;

typedef struct Case {
  char name[128], refused[16];
  double rtol, atol, codes;
  bool unlike; /* quantized here: values are not those of the reference */
  char settings[SETTINGS_MAX][2][128];
  uint32_t setting_count;
  StrView model;
} Case;

/* A file with a line a case: what it held, and the lines of this run. */
typedef struct Lines {
  const char *path; /* NULL: not wanted */
  StrBuf known, written;
} Lines;

typedef struct Options {
  const char *backend, *quantize, *part, *keep;
  char folder[64];
  bool update;
  int64_t every; /* of so many cases one is run */
  Lines nodes, records;
} Options;

_Noreturn static void broken(const char *what) {
  fprintf(stderr, "cases: %s\n", what);
  exit(2);
}

/* --- the file --- */

static const uint8_t *take(Reader *r, size_t size) {
  if ((size_t)(r->end - r->at) < size)
    broken("the file is cut off; pack_cases.py writes it");
  r->at += size;
  return r->at - size;
}

static uint32_t take_u32(Reader *r) {
  uint32_t value;
  memcpy(&value, take(r, sizeof value), sizeof value);
  return value;
}

static double take_double(Reader *r) {
  double value;
  memcpy(&value, take(r, sizeof value), sizeof value);
  return value;
}

static StrView take_text(Reader *r) {
  uint32_t size = take_u32(r);
  return (StrView){(const char *)take(r, size), size};
}

static void take_word(Reader *r, char *out, size_t capacity) {
  StrView text = take_text(r);
  if (text.size >= capacity)
    broken("a word is too long");
  memcpy(out, text.data, text.size);
  out[text.size] = '\0';
}

/* The data in arena, where they are aligned. */
static Tensor take_tensor(Reader *r, Arena *arena) {
  uint8_t number = *take(r, 1), rank = *take(r, 1);
  Tensor t = {.dtype = dtype_from_onnx(number), .rank = rank};
  if (t.dtype == DTYPE_NONE || rank > COUNT_OF(t.dims))
    broken("a tensor of a type that etc has not");
  memcpy(t.dims, take(r, sizeof(int64_t) * rank), sizeof(int64_t) * rank);
  t.capacity = tensor_bytes(&t);
  t.data = arena_alloc(arena, t.capacity);
  memcpy(t.data, take(r, t.capacity), t.capacity);
  return t;
}

static uint32_t take_tensors(Reader *r, Arena *arena, Tensor *out) {
  uint32_t count = take_u32(r);
  if (count > TENSORS_MAX)
    broken("too many tensors");
  for (uint32_t i = 0; i < count; i++)
    out[i] = take_tensor(r, arena);
  return count;
}

static Case take_case(Reader *r) {
  Case c = {0};
  take_word(r, c.name, sizeof c.name);
  take_word(r, c.refused, sizeof c.refused);
  c.rtol = take_double(r);
  c.atol = take_double(r);
  c.codes = take_double(r);
  c.setting_count = take_u32(r);
  if (c.setting_count > SETTINGS_MAX)
    broken("too many settings");
  for (uint32_t i = 0; i < c.setting_count; i++)
    for (int k = 0; k < 2; k++)
      take_word(r, c.settings[i][k], sizeof c.settings[i][k]);
  c.model = take_text(r);
  return c;
}

/* --- comparison --- */

static bool near(const Case *c, DType dtype, double got, double want) {
  if (got == want || (isnan(got) && isnan(want)))
    return true;
  double least = dtype == DTYPE_F16 ? 4e-3 : dtype == DTYPE_BF16 ? 3e-2 : 0;
  return fabs(got - want) <= fmax(c->atol, least) + fmax(c->rtol, least) * fabs(want);
}

static double largest(const Tensor *t) {
  double most = 0;
  for (int64_t i = 0, n = tensor_numel(t); i < n; i++)
    most = isfinite(tensor_load(t, i)) ? fmax(most, fabs(tensor_load(t, i))) : most;
  return most;
}

/* A share `codes` of the elements may differ by one code: integers by one, floats by a 50th of the
 * largest. */
static bool same_values(const Case *c, const Tensor *got, const Tensor *want, StrBuf *why) {
  int64_t n = tensor_numel(want), left = (int64_t)ceil(c->codes * (double)n);
  bool ints = dtype_is_int(want->dtype) || want->dtype == DTYPE_BOOL;
  double code = !left ? 0 : ints ? 1 : largest(want) / 50;
  for (int64_t i = 0; i < n; i++) {
    double g = tensor_load(got, i), w = tensor_load(want, i);
    bool fine =
        ints ? tensor_load_int(got, i) == tensor_load_int(want, i) : near(c, want->dtype, g, w);
    if (!fine && !(fabs(g - w) <= code && left-- > 0)) {
      strbuf_printf(why, "element %" PRId64 " is %.9g instead of %.9g", i, g, w);
      return false;
    }
  }
  return true;
}

static bool same_tensors(const Case *c, const Tensor *got, const Tensor *want, uint32_t count,
                         StrBuf *why) {
  for (uint32_t i = 0; i < count; i++) {
    bool dims = got[i].rank == want[i].rank &&
                !memcmp(got[i].dims, want[i].dims, sizeof(int64_t) * want[i].rank);
    if (got[i].dtype != want[i].dtype || !dims) {
      strbuf_printf(why, "output %u has another type or shape", i);
      return false;
    }
    if (!c->unlike && !same_values(c, &got[i], &want[i], why))
      return false;
  }
  return true;
}

/* --- one case --- */

static void append(void *user, const char *text, size_t size) {
  strbuf_append(user, (StrView){text, size});
}

/* The runs of the case, which *at begins with, on the graph. */
static bool run_all(const Case *c, Reader at, Graph *g, StrBuf *why) {
  bool fine = true;
  for (uint32_t runs = take_u32(&at); runs && fine; runs--) {
    Arena arena = {0};
    Tensor inputs[TENSORS_MAX], wanted[TENSORS_MAX], got[TENSORS_MAX] = {0};
    uint32_t input_count = take_tensors(&at, &arena, inputs);
    uint32_t count = take_tensors(&at, &arena, wanted);
    if (graph_output_count(g) != count || g->input_count != input_count) {
      strbuf_printf(why, "%u inputs and %u outputs", g->input_count, graph_output_count(g));
      fine = false;
    } else {
      fine = interp_run(g, inputs, input_count, &arena, got) == STATUS_OK &&
             same_tensors(c, got, wanted, count, why);
    }
    arena_release(&arena);
  }
  return fine;
}

static void skip_runs(Reader *r) {
  Arena arena = {0};
  Tensor unused[TENSORS_MAX];
  for (uint32_t groups = 2 * take_u32(r); groups; groups--)
    take_tensors(r, &arena, unused);
  arena_release(&arena);
}

static const char *report_path(const Options *o, char path[128]) {
  snprintf(path, 128, "%s/report.json", o->folder);
  return path;
}

/* All that can be told while a program is made goes to text, or into the report. */
static bool tell_all(EtcSession *s, const Options *o, StrBuf *text) {
  char path[128];
  s->manager.options.print = append;
  s->manager.options.print_user = text;
  s->explain_json = s->explain_table = s->sink.explain = s->sink.verbose = true;
  return etc_session_set(s, "report", report_path(o, path)) == ETC_OK;
}

static const char *samples_path(const Options *o, char path[128]) {
  snprintf(path, 128, "%s/samples", o->folder);
  return path;
}

static bool set_quantize(EtcSession *s, const Options *o) {
  char path[128];
  return etc_session_set(s, "quantize", o->quantize) == ETC_OK &&
         (strcmp(o->quantize, "int8") != 0 ||
          etc_session_set(s, "calibrate", samples_path(o, path)) == ETC_OK);
}

static EtcSession *new_session(const Case *c, const Options *o, const char *path, StrBuf *text,
                               bool lowers) {
  EtcSession *s = etc_session_new();
  etc_session_on_diagnostic(s, append, text);
  bool fine = etc_session_add_method(s, "forward", path) == ETC_OK;
  for (uint32_t i = 0; i < c->setting_count && lowers; i++)
    fine &= etc_session_set(s, c->settings[i][0], c->settings[i][1]) == ETC_OK;
  if (o->backend && lowers)
    fine &= etc_session_set(s, "backend", o->backend) == ETC_OK;
  if (o->quantize && lowers)
    fine &= set_quantize(s, o);
  if (o->records.path && lowers)
    fine &= tell_all(s, o, text);
  if (!fine)
    strbuf_append(text, SV("; a setting is refused"));
  s->sync = false;
  return s;
}

/* Of a file in the folder of --keep. */
static const char *kept_path(const Case *c, const Options *o, const char *suffix, char path[256]) {
  snprintf(path, 256, "%s/%s%s", o->keep, c->name, suffix);
  for (char *at = path + strlen(o->keep) + 1; *at; at++)
    *at = *at == '/' || *at == ' ' ? '_' : *at;
  return path;
}

/* --- what a program calls --- */

static void list_kernels(const PteMethod *m, Arena *arena, StrBuf *out) {
  uint32_t *calls = ARENA_ARRAY(arena, uint32_t, m->operator_count);
  memset(calls, 0, sizeof *calls * m->operator_count);
  for (uint32_t i = 0; i < m->instruction_count; i++)
    if (m->instructions[i].kind == PTE_KERNEL_CALL)
      calls[m->instructions[i].index]++;
  for (uint32_t i = 0; i < m->operator_count; i++)
    strbuf_printf(out, "; %u " SV_FMT, calls[i], SV_ARG(m->operators[i]));
}

static void list_nodes(const PteMethod *m, Arena *arena, StrBuf *out) {
  for (uint32_t i = 0; i < m->delegate_count; i++) {
    const PteDelegate *d = &m->delegates[i];
    DelegateFigures f = {0};
    const DelegateReader *reader = delegate_reader(&backend_readers, d->id);
    const char *fault = reader ? reader->describe(d->data, d->size, arena, &f) : "no reader";
    strbuf_printf(out, "; delegate of%s%s", fault ? " " : "", fault ? fault : "");
    for (uint32_t k = 0; k < f.kind_count; k++)
      strbuf_printf(out, "%s %u %s %s", k ? "," : "", (unsigned)f.nodes[k].count, f.nodes[k].what,
                    f.nodes[k].types);
  }
}

/* Whether the file has the line; why: what is wrong where it has not. */
static bool is_known(Lines *lines, const Options *o, const StrBuf *line) {
  strbuf_append(&lines->written, (StrView){line->data + 1, line->size - 1});
  return o->update || strstr(strbuf_cstr(&lines->known), strbuf_cstr(line));
}

/* Whether the line of the case in the file of nodes is that of the program; NAME; CALLS.. */
static bool same_nodes(const Case *c, Options *o, const PteMethod *m, StrBuf *why) {
  Arena arena = {0};
  StrBuf line = {0};
  strbuf_printf(&line, "\n%s", c->name);
  list_kernels(m, &arena, &line);
  list_nodes(m, &arena, &line);
  strbuf_append(&line, SV("\n"));
  bool fine = is_known(&o->nodes, o, &line);
  if (!fine)
    strbuf_printf(why, "the program calls others than %s says:%s", o->nodes.path,
                  strbuf_cstr(&line));
  strbuf_release(&line);
  arena_release(&arena);
  return fine;
}

/* The columns in which the line differs from that of the same case. */
static void name_columns(const StrBuf *known, const StrBuf *line, size_t name_size, StrBuf *why) {
  const size_t width = RECORD_DIGITS + 1;
  char *head = strndup(line->data, name_size);
  const char *old = strstr(strbuf_cstr(known), head), *new = line->data;
  free(head);
  for (unsigned i = 0; old && i < RECORD_COLUMNS; i++)
    if (memcmp(old + name_size + i * width, new + name_size + i *width, width) != 0)
      strbuf_printf(why, " %s", record_columns[i]);
}

static bool same_record(const Case *c, Options *o, Record *r, StrBuf *why) {
  StrBuf line = {0};
  char prefix[256];
  if (o->keep) {
    kept_path(c, o, "", prefix);
    r->keep = prefix;
  }
  strbuf_append_char(&line, '\n');
  record_line(r, c->name, &line);
  bool fine = is_known(&o->records, o, &line);
  if (!fine) {
    strbuf_printf(why, "others than %s knows:", o->records.path);
    name_columns(&o->records.known, &line, strlen(c->name) + 2, why);
  }
  strbuf_release(&line);
  return fine;
}

static bool run_program(const Case *c, Options *o, Reader runs, const char *path, Record *r,
                        StrBuf *why) {
  EtcSession *s = new_session(c, o, path, why, false);
  bool fine =
      session_import(s, true) == STATUS_OK && run_all(c, runs, s->program.methods[0].graph, why);
  if (fine && o->nodes.path)
    fine = same_nodes(c, o, &s->program.sources[0]->pte.program.methods[0], why);
  if (fine && o->records.path)
    record_program(r, s);
  etc_session_free(s);
  return fine;
}

static void write_model(const char *path, StrView model) {
  FILE *f = fopen(path, "wb");
  if (!f || fwrite(model.data, 1, model.size, f) != model.size || fclose(f))
    broken(strerror(errno));
}

static void remove_samples(const Options *o) {
  char folder[128], path[512];
  DIR *d = opendir(samples_path(o, folder));
  for (const struct dirent *e; d && (e = readdir(d));) {
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    unlink(path);
  }
  if (d)
    closedir(d);
  rmdir(folder);
}

/* So that a case which writes none of them does not find those of the one before. */
static void remove_files(const Options *o) {
  static const char *const names[] = {"model.onnx", "model.pte", "report.json"};
  char path[128];
  for (size_t i = 0; i < COUNT_OF(names); i++) {
    snprintf(path, sizeof path, "%s/%s", o->folder, names[i]);
    unlink(path);
  }
}

static void remove_folder(const Options *o) {
  remove_files(o);
  remove_samples(o);
  rmdir(o->folder);
}

/* The first inputs as arrays, by their names in the model. */
static void write_samples(const Case *c, const Options *o, Reader runs, const char *model) {
  Options plain = *o;
  char folder[128];
  StrBuf text = {0};
  Arena arena = {0};
  Tensor inputs[TENSORS_MAX];
  plain.quantize = plain.records.path = NULL;
  EtcSession *s = new_session(c, &plain, model, &text, true);
  remove_samples(o);
  if (mkdir(samples_path(o, folder), 0700) != 0)
    broken(strerror(errno));
  uint32_t count = take_u32(&runs) ? take_tensors(&runs, &arena, inputs) : 0;
  if (session_import(s, false) == STATUS_OK)
    for (uint32_t i = 0; i < count && i < s->program.methods[0].graph->input_count; i++) {
      const Graph *g = s->program.methods[0].graph;
      StrView name = intern_get(&s->ctx.names, value_cget(g, g->inputs[i])->name);
      const char *path = arena_printf(&arena, "%s/" SV_FMT ".npy", folder, SV_ARG(name));
      if (npy_write(&inputs[i], &arena, &s->sink, path) != STATUS_OK)
        broken(path);
    }
  etc_session_free(s);
  arena_release(&arena);
  strbuf_release(&text);
}

static bool is_refused(const Case *c, Status status, const StrBuf *text) {
  char code[32];
  snprintf(code, sizeof code, "error[%s]", c->refused);
  return status != STATUS_OK && strstr(strbuf_cstr(text), code);
}

/* Right as imported, or refused; then lowered, and right as a program. */
static bool check(const Case *c, Options *o, Reader runs, StrBuf *why) {
  char model[128], program[128], report[128];
  snprintf(model, sizeof model, "%s/model.onnx", o->folder);
  snprintf(program, sizeof program, "%s/model.pte", o->folder);
  remove_files(o);
  write_model(model, c->model);
  StrBuf text = {0};
  Record record;
  record_init(&record, o->folder, o->quantize ? 2 : 4);
  if (o->quantize)
    write_samples(c, o, runs, model);
  EtcSession *s = new_session(c, o, model, &text, true);
  const char *stage = "imported";
  Status status = session_import(s, false);
  bool fine =
      status == STATUS_OK && (c->refused[0] || run_all(c, runs, s->program.methods[0].graph, why));
  if (fine) {
    stage = "lowered";
    status = record_run(&record, s);
    status = status == STATUS_OK ? session_emit(s, program) : status;
    fine = status == STATUS_OK && !c->refused[0] && run_program(c, o, runs, program, &record, why);
  }
  fine = c->refused[0] ? is_refused(c, status, &text) : fine || (c->unlike && status != STATUS_OK);
  if (fine && o->records.path) {
    record_facts(&record, s, &text, report_path(o, report));
    fine = same_record(c, o, &record, why);
  }
  if (!fine)
    strbuf_printf(why, " (%s) %s", stage, o->records.path ? "" : strbuf_cstr(&text));
  etc_session_free(s);
  record_release(&record);
  strbuf_release(&text);
  return fine;
}

static void run_file(Reader r, Options *o, uint32_t *passed, uint32_t *failed) {
  if (memcmp(take(&r, 8), "ETCCASES", 8) != 0)
    broken("this is not a file of pack_cases.py");
  for (uint32_t count = take_u32(&r); count; count--) {
    Case c = take_case(&r);
    if (o->backend && c.codes > 0) { /* its integer nodes round at other places than the model */
      c.codes = 0.4;
      c.rtol = 0.02;
    }
    c.unlike = o->quantize != NULL;
    Reader runs = r;
    skip_runs(&r);
    if ((o->part && !strstr(c.name, o->part)) || count % o->every)
      continue;
    if (o->keep) {
      char path[256];
      write_model(kept_path(&c, o, ".onnx", path), c.model);
    }
    StrBuf why = {0};
    bool fine = check(&c, o, runs, &why);
    if (!fine)
      printf("FAIL %s: %s\n", c.name, strbuf_cstr(&why));
    *(fine ? passed : failed) += 1;
    strbuf_release(&why);
  }
}

static Reader unpack(const char *path, StrBuf *out) {
  gzFile f = gzopen(path, "rb");
  static char part[1 << 16];
  int n = -1;
  while (f && (n = gzread(f, part, sizeof part)) > 0)
    strbuf_append(out, (StrView){part, (size_t)n});
  if (!f || n < 0)
    broken(path);
  gzclose(f);
  const uint8_t *data = (const uint8_t *)strbuf_cstr(out);
  return (Reader){data, data + out->size};
}

/* The file begins with an empty line, so that each line is between two line feeds. */
static void read_lines(Lines *lines) {
  static char part[1 << 14];
  FILE *f = fopen(lines->path, "rb");
  if (!f)
    broken(lines->path);
  for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;)
    strbuf_append(&lines->known, (StrView){part, n});
  fclose(f);
}

static void end_lines(Lines *lines, const Options *o) {
  if (lines->path && o->update)
    write_model(lines->path, (StrView){strbuf_cstr(&lines->written), lines->written.size});
  strbuf_release(&lines->known);
  strbuf_release(&lines->written);
}

/* Takes the option at argv[*i], and its value, if there is one. */
static bool take_option(Options *o, int argc, char **argv, int *i) {
  const char *name = argv[*i];
  const char **value = !strcmp(name, "--backend")    ? &o->backend
                       : !strcmp(name, "--quantize") ? &o->quantize
                       : !strcmp(name, "-k")         ? &o->part
                       : !strcmp(name, "--keep")     ? &o->keep
                       : !strcmp(name, "--nodes")    ? &o->nodes.path
                       : !strcmp(name, "--record")   ? &o->records.path
                                                     : NULL;
  bool every = !strcmp(name, "--every");
  if ((value || every) && *i + 1 == argc)
    broken("an option wants a value");
  if (value)
    *value = argv[++*i];
  else if (every && (!text_parse_i64(sv_from(argv[++*i]), &o->every) || o->every < 1))
    broken("--every wants a number");
  else if (!strcmp(name, "--update"))
    o->update = true;
  else
    return every;
  return true;
}

int main(int argc, char **argv) {
  Options o = {.folder = "/tmp/etc-cases-XXXXXX", .every = 1};
  Lines *const files[] = {&o.nodes, &o.records};
  uint32_t passed = 0, failed = 0, begin = 1;
  if (!mkdtemp(o.folder))
    broken(strerror(errno));
  for (int i = 1; i < argc && argv[i][0] == '-'; i++, begin = (uint32_t)i)
    if (!take_option(&o, argc, argv, &i))
      broken(argv[i]);
  for (size_t i = 0; i < COUNT_OF(files); i++) {
    strbuf_append_char(&files[i]->written, '\n');
    if (files[i]->path && !o.update)
      read_lines(files[i]);
  }
  for (int i = (int)begin; i < argc; i++) {
    StrBuf bytes = {0};
    run_file(unpack(argv[i], &bytes), &o, &passed, &failed);
    strbuf_release(&bytes);
  }
  for (size_t i = 0; i < COUNT_OF(files); i++)
    end_lines(files[i], &o);
  remove_folder(&o);
  printf("cases: %u passed, %u failed, 0 skipped\n", passed, failed);
  return failed || !passed;
}

/* See run_bundle.h. */
#include "run_bundle.h"

#include <math.h>

#include "interp/interp.h"
#include "ir/text.h"
#include "support/text.h"

typedef struct SetRun {
  const CommandLine *line;
  const Source *source;
  const PteMethod *method;
  double rtol, atol;
  uint32_t sets, differ;
  StrBuf text;
} SetRun;

bool runs_test_sets(const CommandLine *line) {
  return line->session->program.sources[0]->bundled && !command_line_has(line, OPT_INPUT) &&
         !command_line_has(line, OPT_RANDOM);
}

/* --- comparing --- */

/* Of an output: the element that is off most, where one is by more than it may. */
typedef struct Difference {
  bool found;
  int64_t element;
  double got, expected, largest; /* the largest difference of two finite elements */
} Difference;

/* Not finite elements are close where they are equal or both NaN. */
static bool is_close(double got, double expected, const SetRun *run) {
  if (got == expected || (isnan(got) && isnan(expected)))
    return true;
  double off = fabs(got - expected);
  return isfinite(off) && off <= run->atol + fabs(run->rtol * got);
}

static Difference compare_floats(const Tensor *got, const Tensor *expected, const SetRun *run) {
  Difference d = {0};
  double worst = -1;
  int64_t count = tensor_numel(got);
  for (int64_t i = 0; i < count; i++) {
    double a = tensor_load(got, i), b = tensor_load(expected, i), off = fabs(a - b);
    bool close = is_close(a, b, run);
    if (isfinite(off) && off > d.largest)
      d.largest = off;
    double rank = isfinite(off) ? off : INFINITY;
    if (close || rank <= worst)
      continue;
    worst = rank;
    d.found = true;
    d.element = i;
    d.got = a;
    d.expected = b;
  }
  return d;
}

static Difference compare_bytes(const Tensor *got, const Tensor *expected) {
  Difference d = {0};
  unsigned size = dtype_size(got->dtype);
  int64_t count = tensor_numel(got);
  for (int64_t i = 0; i < count && !d.found; i++) {
    size_t at = (size_t)i * size;
    if (memcmp((const uint8_t *)got->data + at, (const uint8_t *)expected->data + at, size) == 0)
      continue;
    d = (Difference){.found = true, .element = i};
    d.got = tensor_load(got, i);
    d.expected = tensor_load(expected, i);
  }
  return d;
}

static bool same_shape(const Tensor *a, const Tensor *b) {
  return a->dtype == b->dtype && a->rank == b->rank &&
         memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

static void append_shape(StrBuf *out, const Tensor *t) {
  shape_describe(dtype_name(t->dtype), t->dims, t->rank, out);
}

/* Says of the first output that differs how it does; else how far all are off. */
static bool compare_outputs(SetRun *run, const Tensor *got, const Tensor *expected,
                            uint32_t count) {
  double largest = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!same_shape(&got[i], &expected[i])) {
      strbuf_printf(&run->text, "DIFFERS: output %u is ", i);
      append_shape(&run->text, &got[i]);
      strbuf_append(&run->text, SV(", expected "));
      append_shape(&run->text, &expected[i]);
      return false;
    }
    bool floats =
        got[i].dtype == DTYPE_F32 || got[i].dtype == DTYPE_F64 || got[i].dtype == DTYPE_F16;
    Difference d =
        floats ? compare_floats(&got[i], &expected[i], run) : compare_bytes(&got[i], &expected[i]);
    if (d.found) {
      strbuf_printf(&run->text, "DIFFERS: output %u, element %lld is %.9g, expected %.9g", i,
                    (long long)d.element, d.got, d.expected);
      return false;
    }
    largest = fmax(largest, d.largest);
  }
  strbuf_append(&run->text, SV("ok"));
  if (largest > 0)
    strbuf_printf(&run->text, ", largest difference %.3g", largest);
  return true;
}

/* --- running --- */

static void no_tensor(SetRun *run, const char *what, uint32_t i) {
  (void)!diag_report(&run->line->session->sink, DIAG_PTE_UNSUPPORTED, diag_file(run->source->path),
                     "method '" SV_FMT "': %s %u is not a tensor", SV_ARG(run->method->name), what,
                     i);
}

/* Copies, as the bytes of the file lie anywhere. */
static Status make_tensors(SetRun *run, const char *what, const BundledValue *values,
                           uint32_t count, Arena *arena, Tensor **tensors) {
  *tensors = ARENA_ARRAY(arena, Tensor, (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++) {
    const BundledValue *v = &values[i];
    if (v->kind != BUNDLED_TENSOR || !pte_dtype_known(v->dtype)) {
      no_tensor(run, what, i);
      return STATUS_UNSUPPORTED;
    }
    Tensor *t = &(*tensors)[i];
    *t = (Tensor){.dtype = (DType)v->dtype, .rank = v->rank, .capacity = v->bytes};
    for (uint32_t k = 0; k < v->rank; k++)
      t->dims[k] = v->sizes[k];
    t->data = arena_alloc(arena, (size_t)v->bytes + 1);
    memcpy(t->data, v->data, (size_t)v->bytes);
  }
  return STATUS_OK;
}

static Status run_set(SetRun *run, Graph *g, const BundledSet *set, Tensor *states, Arena *arena) {
  Tensor *inputs, *expected;
  Tensor *outputs = ARENA_ARRAY(arena, Tensor, (size_t)graph_output_count(g) + 1);
  TRY(make_tensors(run, "input", set->inputs, set->input_count, arena, &inputs));
  TRY(make_tensors(run, "expected output", set->outputs, set->output_count, arena, &expected));
  const InterpCall call = {inputs, set->input_count, states, outputs, NULL, NULL};
  TRY(interp_call(g, &call, arena));
  if (!set->output_count)
    strbuf_append(&run->text, SV("ran, expected outputs are not in it"));
  else if (!compare_outputs(run, outputs, expected, set->output_count))
    run->differ++;
  return STATUS_OK;
}

/* The sets are one series of calls, as of a program that the runtime has loaded once. */
static Status run_suite(SetRun *run, Graph *g, const BundledSuite *suite) {
  Arena arena = {0}, first = {0};
  Tensor *states;
  Status status = interp_states(g, &first, &states);
  for (uint32_t i = 0; i < suite->count && status == STATUS_OK; i++) {
    arena_reset(&arena);
    strbuf_append(&run->text, SV("method '"));
    strbuf_append_printable(&run->text, suite->method);
    strbuf_printf(&run->text, "', test set %u: ", i);
    status = run_set(run, g, &suite->sets[i], states, &arena);
    strbuf_append(&run->text, status == STATUS_OK ? SV("\n") : SV("FAILED\n"));
    run->sets++;
  }
  arena_release(&first);
  arena_release(&arena);
  return status;
}

/* Constant methods have nothing to run. */
static Status run_suites(SetRun *run, const char *only) {
  const BundleFile *b = &run->source->bundle;
  const PteFile *pte = &run->source->pte;
  Status status = STATUS_OK;
  for (uint32_t i = 0; i < b->count; i++) {
    const BundledSuite *suite = &b->suites[i];
    uint32_t index = pte_find_method(&pte->program, suite->method);
    if ((only && !sv_eq(suite->method, sv_from(only))) || !pte->methods[index])
      continue;
    run->method = &pte->program.methods[index];
    Status one = run_suite(run, pte->methods[index], suite);
    status = status == STATUS_OK ? one : status;
  }
  return status;
}

/* --- options --- */

static EtcStatus read_tolerance(const CommandLine *line, OptionId id, double fallback,
                                double *out) {
  const char *text = command_line_value(line, id), *name = option_table[id].long_name;
  *out = fallback;
  if (!text || (text_parse_double(sv_from(text), out) && *out >= 0 && isfinite(*out)))
    return ETC_OK;
  return session_usage(line->session, arena_printf(&line->session->arena, "--%s", name),
                       "give a number, such as 1e-4", "--%s does not take '%s'", name, text);
}

static EtcStatus refuse_options(const CommandLine *line) {
  static const OptionId others[] = {OPT_RUN_OUTPUT, OPT_REPEAT, OPT_PROFILE, OPT_SEED};
  for (size_t i = 0; i < COUNT_OF(others); i++) {
    const char *name = option_table[others[i]].long_name;
    if (command_line_has(line, others[i]))
      return session_usage(line->session, arena_printf(&line->session->arena, "--%s", name),
                           "add --input or --random to run the program on others",
                           "--%s does not go with the test sets of a bundle", name);
  }
  return ETC_OK;
}

static EtcStatus find_sets(const CommandLine *line, const BundleFile *b, const char *only) {
  for (uint32_t i = 0; i < b->count; i++)
    if (b->suites[i].count && (!only || sv_eq(b->suites[i].method, sv_from(only))))
      return ETC_OK;
  return session_usage(line->session, only ? "--method" : "",
                       "add --input or --random to run the program on others",
                       "the bundle has no test sets%s%s%s", only ? " of method '" : "",
                       only ? only : "", only ? "'" : "");
}

static Status report_differences(const SetRun *run) {
  if (!run->differ)
    return STATUS_OK;
  return diag_report(&run->line->session->sink, DIAG_RUN_BUNDLE, diag_file(run->source->path),
                     "%u of %u test sets differ from what is expected", run->differ, run->sets);
}

int run_bundle(const CommandLine *line, const Source *source) {
  const char *only = command_line_value(line, OPT_RUN_METHOD);
  SetRun run = {.line = line, .source = source};
  TRY(refuse_options(line));
  TRY(read_tolerance(line, OPT_RTOL, 1e-5, &run.rtol));
  TRY(read_tolerance(line, OPT_ATOL, 1e-8, &run.atol));
  TRY(find_sets(line, &source->bundle, only));
  TRY(session_status(bundle_check(&source->bundle, &source->pte.program)));
  Status ran = run_suites(&run, only);
  int printed = print_and_release(line, &run.text);
  Status differ = report_differences(&run);
  EtcStatus status = session_status(ran == STATUS_OK ? differ : ran);
  return status != ETC_OK ? (int)status : printed;
}

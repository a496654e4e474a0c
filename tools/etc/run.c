/* etc run: one method on the reference interpreter, arrays in and out; several calls when inputs
 * are given several times. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "command.h"
#include "interp/interp.h"
#include "interp/npy.h"
#include "ir/text.h"
#include "run_bundle.h"
#include "run_constant.h"
#include "run_dims.h"
#include "run_profile.h"
#include "run_random.h"
#include "support/clock.h"
#include "support/text.h"

enum { REPEAT_MAX = 1000000 }; /* each call's time is kept */

/* The values of one input: one a call, or one for all calls. */
typedef struct InputArrays {
  NpyArray *items;
  uint32_t count;
} InputArrays;

typedef struct Arrays {
  InputArrays *inputs; /* by input of the graph */
  Tensor *tensors;     /* the same, of the present call */
  uint32_t count, calls;
} Arrays;

/* --- inputs --- */

/* Index of the input that a name or position means, or -1. Names go first. */
static int find_input(const Graph *g, StrView name) {
  for (uint32_t i = 0; i < g->input_count; i++)
    if (name.size && sv_eq(name, value_name(g, g->inputs[i])))
      return (int)i;
  uint64_t position;
  if (text_parse_u64(name, &position) && position < g->input_count)
    return (int)position;
  return -1;
}

/* NAME=FILE, which check_arguments saw to; names and files may hold '=' themselves: the first one
 * that ends a known name counts. */
static int split_input(const Graph *g, const char *value, StrView *name, const char **path) {
  const char *first = strchr(value, '=');
  for (const char *at = first; at; at = strchr(at + 1, '=')) {
    *name = (StrView){value, (size_t)(at - value)};
    *path = at + 1;
    int index = find_input(g, *name);
    if (index >= 0)
      return index;
  }
  *name = (StrView){value, (size_t)(first - value)};
  *path = first + 1;
  return -1;
}

static void append_input(const Graph *g, uint32_t i, StrBuf *out) {
  strbuf_printf(out, "%u ", i);
  StrView name = value_name(g, g->inputs[i]);
  if (name.size) {
    strbuf_append_within(out, "'", name, "' ");
  }
  type_describe(g, value_type(g, g->inputs[i]), out);
}

static EtcStatus unknown_input(Session *s, const Graph *g, StrView name) {
  const char **names = ARENA_ARRAY(&s->arena, const char *, g->input_count);
  for (uint32_t i = 0; i < g->input_count; i++)
    names[i] = arena_strdup(&s->arena, value_name(g, g->inputs[i]));
  DiagPlace place = DIAG_NOWHERE;
  place.option = SV("--input");
  Diag *d = diag_begin(&s->sink, DIAG_RUN_INPUT_UNKNOWN, place);
  diag_message(d, "the method has no input '" SV_FMT "'", SV_ARG(name));
  for (uint32_t i = 0; i < g->input_count && i < 16; i++) {
    StrBuf text = {0};
    append_input(g, i, &text);
    diag_note(d, "input %s", strbuf_cstr(&text));
    strbuf_release(&text);
  }
  if (!diag_hint_nearest(d, name, names, g->input_count))
    diag_hint(d, "name an input as listed, or by its position");
  return session_status(diag_end(d));
}

static EtcStatus read_input(Session *s, const Graph *g, Arrays *arrays, const char *value) {
  StrView name = {0};
  const char *path = NULL;
  int index = split_input(g, value, &name, &path);
  if (index < 0)
    return unknown_input(s, g, name);
  DType expected = value_dtype(g, g->inputs[index]);
  InputArrays *input = &arrays->inputs[index];
  NpyArray array;
  Status status = npy_read(&array, &s->arena, &s->sink, path, expected);
  if (status != STATUS_OK)
    return session_status(status);
  size_t size = input->count * sizeof *input->items;
  input->items = arena_grow(&s->arena, input->items, size, size + sizeof *input->items);
  input->items[input->count++] = array;
  arrays->calls = input->count > arrays->calls ? input->count : arrays->calls;
  return ETC_OK;
}

/* An unsigned number, or fallback when the option is not given. */
static EtcStatus read_number(const CommandLine *line, OptionId id, uint64_t fallback,
                             uint64_t least, uint64_t most, uint64_t *out) {
  const char *text = command_line_value(line, id), *option = option_table[id].long_name;
  *out = fallback;
  if (!text || (text_parse_u64(sv_from(text), out) && *out >= least && *out <= most))
    return ETC_OK;
  return session_usage(line->session, arena_printf(&line->session->arena, "--%s", option),
                       arena_printf(&line->session->arena,
                                    "give a number from %" PRIu64 " to %" PRIu64, least, most),
                       "--%s does not take '%s'", option, text);
}

static EtcStatus read_seed(const CommandLine *line, uint64_t *seed) {
  return read_number(line, OPT_SEED, 0, 0, UINT32_MAX, seed);
}

/* What --random makes for the inputs that are not given. */
static EtcStatus fill_inputs(const CommandLine *line, const Graph *g, Arrays *arrays) {
  uint64_t seed;
  EtcStatus status = read_seed(line, &seed);
  for (uint32_t i = 0; i < g->input_count && status == ETC_OK; i++) {
    if (arrays->inputs[i].count)
      continue;
    NpyArray *array = ARENA_NEW(&line->session->arena, NpyArray);
    array->file.fd = -1;
    status = random_input(line->session, g, i, seed, &array->tensor);
    arrays->inputs[i] = (InputArrays){.items = array, .count = status == ETC_OK};
  }
  return status;
}

/* Each once, or once a call. */
static EtcStatus check_counts(Session *s, const Graph *g, const Arrays *arrays) {
  for (uint32_t i = 0; i < g->input_count; i++) {
    uint32_t count = arrays->inputs[i].count;
    if (count != 1 && count != arrays->calls)
      return session_usage(s, "--input", "give it once, for all calls, or once a call",
                           "input '" SV_FMT "' is given %u times, another one %u times",
                           SV_ARG(value_name(g, g->inputs[i])), count, arrays->calls);
  }
  return ETC_OK;
}

/* All that are missing, each with what it has to be. */
static EtcStatus check_all_given(Session *s, const Graph *g, const Arrays *arrays) {
  EtcStatus status = ETC_OK;
  for (uint32_t i = 0; i < g->input_count; i++) {
    if (arrays->inputs[i].count)
      continue;
    StrBuf text = {0};
    append_input(g, i, &text);
    DiagPlace place = DIAG_NOWHERE;
    place.option = SV("--input");
    Diag *d = diag_begin(&s->sink, DIAG_RUN_INPUT_MISSING, place);
    diag_message(d, "there is no value for input %s", strbuf_cstr(&text));
    StrView name = value_name(g, g->inputs[i]);
    strbuf_clear(&text);
    if (name.size)
      strbuf_append_word(&text, name);
    else
      strbuf_printf(&text, "%u", i);
    diag_hint(d, "add --input %s=FILE.npy", strbuf_cstr(&text));
    status = session_status(diag_end(d));
    strbuf_release(&text);
  }
  return status;
}

static EtcStatus read_inputs(const CommandLine *line, const Graph *g, Arrays *arrays) {
  Session *s = line->session;
  arrays->count = g->input_count;
  arrays->calls = 1;
  arrays->inputs = ARENA_ARRAY(&s->arena, InputArrays, g->input_count);
  arrays->tensors = ARENA_ARRAY(&s->arena, Tensor, g->input_count);
  for (uint32_t i = 0; i < line->option_count; i++) {
    if (line->options[i].row->id != OPT_INPUT)
      continue;
    TRY(read_input(s, g, arrays, line->options[i].value));
  }
  TRY(command_line_has(line, OPT_RANDOM) ? fill_inputs(line, g, arrays)
                                         : check_all_given(s, g, arrays));
  return check_counts(s, g, arrays);
}

/* --- outputs --- */

/* The rule is in the help text of the command. */
static char *file_stem(Session *s, const Graph *g, uint32_t i) {
  StrView name = graph_output_text(g, i);
  if (name.size == 0)
    return arena_printf(&s->arena, "output_%u", i);
  if (name.size > 200)
    name.size = 200;
  char *stem = arena_strdup(&s->arena, name);
  for (size_t k = 0; k < name.size; k++)
    stem[k] = text_file_char(name.data[k]);
  if (stem[0] == '.')
    stem[0] = '_';
  return stem;
}

static bool is_taken(char **stems, uint32_t count, const char *stem) {
  for (uint32_t i = 0; i < count; i++)
    if (strcmp(stems[i], stem) == 0)
      return true;
  return false;
}

static Status make_folder(Session *s, const char *folder) {
  if (mkdir(folder, 0777) != 0 && errno != EEXIST)
    return diag_report(&s->sink, DIAG_FILE_WRITE, DIAG_NOWHERE, "cannot make folder '%s': %s",
                       folder, strerror(errno));
  return STATUS_OK;
}

static Status write_outputs(Session *s, const Graph *g, const Tensor *outputs, const char *folder) {
  uint32_t count = graph_output_count(g);
  char **stems = ARENA_ARRAY(&s->arena, char *, count);
  TRY(make_folder(s, folder));
  for (uint32_t i = 0; i < count; i++) {
    char *stem = file_stem(s, g, i);
    stems[i] = stem;
    for (unsigned n = 2; is_taken(stems, i, stems[i]); n++)
      stems[i] = arena_printf(&s->arena, "%s-%u", stem, n);
    TRY(npy_write(&outputs[i], &s->arena, &s->sink,
                  arena_printf(&s->arena, "%s/%s.npy", folder, stems[i])));
  }
  return STATUS_OK;
}

static void append_statistics(StrBuf *out, const Tensor *t) {
  double low = INFINITY, high = -INFINITY, sum = 0;
  int64_t count = tensor_numel(t), numbers = 0;
  for (int64_t i = 0; i < count; i++) {
    double value = tensor_load(t, i);
    if (isnan(value))
      continue;
    low = value < low ? value : low;
    high = value > high ? value : high;
    sum += value;
    numbers++;
  }
  if (numbers)
    strbuf_printf(out, "  min %.6g max %.6g mean %.6g", low, high, sum / (double)numbers);
  if (numbers < count)
    strbuf_printf(out, "  NaN %" PRId64, count - numbers);
}

static void print_outputs(const Graph *g, const Tensor *outputs, StrBuf *out) {
  for (uint32_t i = 0; i < graph_output_count(g); i++) {
    const Tensor *t = &outputs[i];
    StrView name = graph_output_text(g, i);
    if (name.size)
      strbuf_append_printable(out, name);
    else
      strbuf_printf(out, "output_%u", i);
    strbuf_append(out, SV("  "));
    shape_describe(dtype_name(t->dtype), t->dims, t->rank, out);
    if (dtype_in(t->dtype, DTS_REAL_BOOL))
      append_statistics(out, t);
    strbuf_append_char(out, '\n');
  }
}

/* What is done with the outputs of a call, and the time that the calls take. */
typedef struct Results {
  const char *folder; /* where outputs are written; NULL: they are printed */
  StrBuf *text;
  bool dropped; /* they are of a run that is only timed */
  double seconds;
  RunProfile *profile; /* NULL: none is asked for */
} Results;

/* Call k, with its outputs in arena. */
static Status call_method(Session *s, Graph *g, const Arrays *arrays, uint32_t k, Tensor *states,
                          Arena *arena, Results *results) {
  const char *folder = results->folder;
  StrBuf *text = results->text;
  Tensor *outputs = ARENA_ARRAY(arena, Tensor, graph_output_count(g));
  for (uint32_t i = 0; i < arrays->count; i++) {
    const InputArrays *input = &arrays->inputs[i];
    arrays->tensors[i] = input->items[input->count == 1 ? 0 : k].tensor;
  }
  const InterpCall call = {.inputs = arrays->tensors,
                           .input_count = arrays->count,
                           .states = states,
                           .outputs = outputs,
                           .trace = results->profile ? profile_step : NULL,
                           .trace_user = results->profile};
  uint64_t begin = clock_ns();
  TRY(interp_call(g, &call, arena));
  results->seconds += clock_seconds_since(begin);
  if (results->dropped)
    return STATUS_OK;
  if (arrays->calls > 1 && folder)
    folder = arena_printf(arena, "%s/%u", folder, k);
  if (folder)
    return write_outputs(s, g, outputs, folder);
  if (arrays->calls > 1)
    strbuf_printf(text, "call %u\n", k);
  print_outputs(g, outputs, text);
  return STATUS_OK;
}

/* All calls, from the first contents of the states on. */
static Status run_once(Session *s, Graph *g, const Arrays *arrays, Results *results) {
  Arena arena = {0}, first = {0};
  Tensor *states;
  Status status = interp_states(g, &first, &states);
  for (uint32_t k = 0; k < arrays->calls && status == STATUS_OK; k++) {
    arena_reset(&arena);
    status = call_method(s, g, arrays, k, states, &arena, results);
  }
  arena_release(&first);
  arena_release(&arena);
  return status;
}

static int compare_times(const void *a, const void *b) {
  const double *x = a, *y = b;
  return ORDER(*x, *y);
}

static void print_repeated(double *seconds, uint64_t count, StrBuf *out) {
  qsort(seconds, count, sizeof *seconds, compare_times);
  strbuf_printf(out, "%" PRIu64 " runs: min %.3f ms, median %.3f ms, max %.3f ms\n", count,
                1e3 * seconds[0], 1e3 * (seconds[(count - 1) / 2] + seconds[count / 2]) / 2,
                1e3 * seconds[count - 1]);
}

static EtcStatus run_method(const CommandLine *line, Graph *g, const Arrays *arrays) {
  Session *s = line->session;
  const char *folder = command_line_value(line, OPT_RUN_OUTPUT);
  uint64_t repeat;
  TRY(read_number(line, OPT_REPEAT, 1, 1, REPEAT_MAX, &repeat));
  StrBuf text = {0};
  const char *profile_path = command_line_value(line, OPT_PROFILE);
  RunProfile profile;
  if (profile_path)
    profile_begin(&profile, g);
  double *seconds = ARENA_ARRAY(&s->arena, double, repeat);
  Status status = folder && arrays->calls > 1 ? make_folder(s, folder) : STATUS_OK;
  for (uint64_t i = 0; i < repeat && status == STATUS_OK; i++) {
    Results results = {.folder = folder,
                       .text = &text,
                       .dropped = i > 0,
                       .profile = profile_path ? &profile : NULL};
    status = run_once(s, g, arrays, &results);
    seconds[i] = results.seconds;
  }
  if (status == STATUS_OK && command_line_has(line, OPT_REPEAT))
    print_repeated(seconds, repeat, &text);
  int64_t code = session_status(status);
  if (profile_path)
    code = max_i64(code, profile_end(line, &profile, profile_path, status == STATUS_OK));
  if (text.size)
    return (EtcStatus)max_i64(print_and_release(line, &text), code);
  strbuf_release(&text);
  return (EtcStatus)code;
}

/* Of the method that is run; the first one where that is not known yet. */
static const Source *chosen_source(const CommandLine *line) {
  const Program *p = &line->session->program;
  const char *name = command_line_value(line, OPT_RUN_METHOD);
  for (uint32_t i = 0; name && i < p->source_count; i++)
    if (strcmp(p->sources[i]->method, name) == 0)
      return p->sources[i];
  return p->sources[0];
}

static EtcStatus check_seed(const CommandLine *line) {
  uint64_t seed;
  TRY(read_seed(line, &seed));
  if (!command_line_has(line, OPT_SEED) || command_line_has(line, OPT_RANDOM))
    return ETC_OK;
  return session_usage(line->session, "--seed", "add --random, or leave out --seed",
                       "a seed is for the values of --random");
}

static EtcStatus refuse_tolerances(const CommandLine *line) {
  if (runs_test_sets(line) ||
      !(command_line_has(line, OPT_RTOL) || command_line_has(line, OPT_ATOL)))
    return ETC_OK;
  return session_usage(line->session, "--rtol", "leave out --rtol and --atol",
                       "tolerances are for the test sets of a bundle (.bpte)");
}

static EtcStatus load(const CommandLine *line) {
  Session *s = line->session;
  TRY(add_model(line));
  const Source *source = chosen_source(line);
  if (source->kind == SOURCE_ONNX)
    TRY(dims_from_arrays(line, source));
  const char *method = command_line_value(line, OPT_RUN_METHOD);
  s->ctx.only_method = sv_from(method ? method : "");
  s->ctx.names_only = true;
  TRY(session_status(session_import(s, true)));
  return refuse_tolerances(line);
}

static EtcStatus check_input(const CommandLine *line, const char *value) {
  const char *end = strrchr(value, '=');
  if (end && end[1])
    return ETC_OK;
  return session_usage(
      line->session, "--input",
      "write --input NAME=FILE.npy, with the name or the position of the input",
      end ? "'%s': the file is missing" : "'%s' does not say which input it is for", value);
}

/* Before a model is read: -i without a name or a file, and -o y.npy or -o -, which would make
 * folders of that name. */
static EtcStatus check_arguments(const CommandLine *line) {
  for (uint32_t i = 0; i < line->option_count; i++)
    if (line->options[i].row->id == OPT_INPUT)
      TRY(check_input(line, line->options[i].value));
  const char *folder = command_line_value(line, OPT_RUN_OUTPUT);
  bool standard = folder && strcmp(folder, "-") == 0;
  if (!standard &&
      (!folder || !sv_has_suffix(sv_from(folder), SV(".npy")) || file_is_folder(folder)))
    return ETC_OK;
  return session_usage(line->session, "--output",
                       "give the name of a folder: each output gets a file in it, NAME.npy",
                       standard ? "'%s' is standard output" : "'%s' is the name of a file", folder);
}

int cmd_run(const CommandLine *line) {
  Session *s = line->session;
  Method *method = NULL;
  Arrays arrays = {0};
  TRY(command_line_apply(line));
  TRY(check_arguments(line));
  TRY(check_seed(line));
  TRY(load(line));
  if (runs_test_sets(line))
    return run_bundle(line, s->program.sources[0]);
  const char *name = command_line_value(line, OPT_RUN_METHOD);
  const ConstantMethod *constant = name ? session_find_constant(s, sv_from(name)) : NULL;
  if (constant)
    return (int)run_constant(line, constant);
  if (session_method(s, sv_from(name ? name : ""), &method) != STATUS_OK)
    return (int)ETC_USAGE;
  EtcStatus status = read_inputs(line, method->graph, &arrays);
  if (status == ETC_OK)
    status = refuse_warnings(line);
  if (status == ETC_OK) {
    s->ctx.model_path = source_name(method->source);
    status = run_method(line, method->graph, &arrays);
  }
  for (uint32_t i = 0; i < arrays.count; i++)
    for (uint32_t k = 0; k < arrays.inputs[i].count; k++)
      npy_close(&arrays.inputs[i].items[k]);
  return (int)status;
}

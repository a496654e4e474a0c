/* The way of a program through the stages: files in, graphs, file out. */
#include "pipeline/session.h"
#include "pipeline/constant_methods.h"
#include "pipeline/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ir/verify.h"
#include "ops/delegate.h"
#include "pipeline/derive.h"
#include "pipeline/max_drop.h"
#include "pipeline/states.h"
#include "pte/emit.h"

EtcStatus session_status(Status status) {
  switch (status) {
  case STATUS_OK:
    return ETC_OK;
  case STATUS_USAGE:
    return ETC_USAGE;
  case STATUS_INTERNAL:
    return ETC_INTERNAL;
  default:
    return ETC_FAILED;
  }
}

static DiagPlace file_place(const char *path) {
  DiagPlace place = DIAG_NOWHERE;
  place.file = sv_from(path);
  return place;
}

/* --- sources --- */

static bool has_suffix(const char *path, const char *suffix) {
  size_t length = strlen(path), tail = strlen(suffix);
  return length > tail && strcmp(path + length - tail, suffix) == 0;
}

/* A .pte has "ET12" at byte 4. */
static bool starts_like_pte(const char *path) {
  char bytes[8] = {0};
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  bool whole = fd >= 0 && read(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes;
  if (fd >= 0)
    close(fd);
  return whole && memcmp(bytes + 4, "ET12", 4) == 0;
}

static bool is_stdin(const char *path) { return strcmp(path, "-") == 0; }

StrView source_name(const Source *source) {
  return is_stdin(source->path) ? SV("<stdin>") : sv_from(source->path);
}

/* Standard input has no name to go by: text has no control characters, an ONNX model begins with
 * some. */
static SourceKind kind_of_bytes(const uint8_t *data, uint64_t size) {
  if (size >= 8 && memcmp(data + 4, "ET12", 4) == 0)
    return SOURCE_PTE;
  for (uint64_t i = 0; i < size && i < 64; i++)
    if (data[i] < ' ' && data[i] != '\n' && data[i] != '\t' && data[i] != '\r')
      return SOURCE_ONNX;
  return SOURCE_TEXT;
}

/* By name, else by the first bytes. What cannot be read counts as ONNX, whose reader says why. */
static SourceKind kind_of(const char *path) {
  if (has_suffix(path, ".etir"))
    return SOURCE_TEXT;
  if (has_suffix(path, ".pte") || (!has_suffix(path, ".onnx") && starts_like_pte(path)))
    return SOURCE_PTE;
  return SOURCE_ONNX;
}

static EtcStatus find_kind(Session *s, Source *source) {
  if (!is_stdin(source->path)) {
    source->kind = kind_of(source->path);
    return ETC_OK;
  }
  for (uint32_t i = 0; i < s->source_count; i++)
    if (is_stdin(s->sources[i]->path))
      return session_usage(s, "--method", "give the path of the other model",
                           "standard input is the model of two methods");
  manager_enter(&s->manager, STAGE_IMPORT);
  EtcStatus status = session_status(file_map_stdin(&source->mapped, &s->arena, &s->sink));
  if (status != ETC_OK)
    return status;
  source->kind = kind_of_bytes(source->mapped.data, source->mapped.size);
  if (source->mapped.size == 0)
    status = session_status(diag_report(&s->sink, DIAG_FILE_EMPTY, file_place(source->mapped.path),
                                        "standard input is empty"));
  return status;
}

static void append_source(Session *s, Source *source) {
  s->sources = pool_reserve(s->sources, &s->source_capacity, (uint64_t)s->source_count + 1,
                            sizeof *s->sources);
  s->sources[s->source_count++] = source;
}

EtcStatus session_share_source(Session *s, const Source *read) {
  Source *source = ARENA_NEW(&s->arena, Source);
  *source = (Source){.method = read->method,
                     .path = read->path,
                     .kind = read->kind,
                     .mapped = read->mapped,
                     .shared = true};
  append_source(s, source);
  return ETC_OK;
}

EtcStatus session_add_source(Session *s, const char *method, const char *path) {
  if (method[0] == '\0' || path[0] == '\0')
    return session_usage(s, "--method", "write --method NAME=MODEL",
                         "a method needs a name and a model");
  for (uint32_t i = 0; i < s->source_count; i++)
    if (strcmp(s->sources[i]->method, method) == 0)
      return s->recipe_at.line && i < s->own_sources
                 ? ETC_OK
                 : session_usage(s, "--method", "give each method a name of its own",
                                 "method '%s' is given twice", method);
  Source *source = ARENA_NEW(&s->arena, Source);
  source->method = arena_strdup(&s->arena, sv_from(method));
  source->path = arena_strdup(&s->arena, sv_from(path));
  source->mapped.fd = -1;
  EtcStatus status = find_kind(s, source);
  if (status != ETC_OK)
    return status;
  append_source(s, source);
  return ETC_OK;
}

static void add_method(Session *s, const Source *source, Graph *g) {
  s->methods = pool_reserve(s->methods, &s->method_capacity, (uint64_t)s->method_count + 1,
                            sizeof *s->methods);
  s->methods[s->method_count++] = (Method){.graph = g, .source = source};
}

/* Whether an input of the model has the dimension that a --dim flag names: by dim_param, or
 * INPUT:AXIS. */
static bool has_dimension(const Onnx__GraphProto *graph, StrView name) {
  for (size_t i = 0; i < graph->n_input; i++) {
    const Onnx__ValueInfoProto *input = graph->input[i];
    StrView input_name = onnx_text(input->name);
    if (sv_starts_with(name, input_name) && name.size > input_name.size &&
        name.data[input_name.size] == ':')
      return true;
    const Onnx__TypeProto *type = input->type;
    bool is_tensor = type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    const Onnx__TensorShapeProto *shape = is_tensor ? type->tensor_type->shape : NULL;
    for (size_t d = 0; shape && d < shape->n_dim; d++)
      if (shape->dim[d]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
          sv_eq(onnx_text(shape->dim[d]->dim_param), name))
        return true;
  }
  return false;
}

/* Whether a flag is for the model: by a dimension of it, or by one that has its size. */
static bool needs_flag(const Session *s, const Onnx__GraphProto *graph, StrView name) {
  bool found = has_dimension(graph, name);
  for (uint32_t i = 0; i < s->dim_count && !found; i++)
    found = s->dims[i].same.size && has_dimension(graph, s->dims[i].name) &&
            (sv_eq(s->dims[i].same, name) ||
             sv_eq(onnx_dim_root(s->dims, s->dim_count, s->dims[i].name), name));
  return found;
}

/* The flags for one model. Of several models each has dimensions of its own; a flag must then fit
 * one of them at least. */
static const DimFlag *flags_of(Session *s, const Source *source, uint32_t *count) {
  *count = s->dim_count;
  if (s->source_count == 1)
    return s->dims;
  DimFlag *flags = ARENA_ARRAY(&s->arena, DimFlag, s->dim_count);
  *count = 0;
  for (uint32_t i = 0; i < s->dim_count; i++) {
    if (!needs_flag(s, source->onnx.proto->graph, s->dims[i].name))
      continue;
    flags[(*count)++] = s->dims[i];
    s->dims_used[i] = true;
  }
  return flags;
}

/* The same of --value. */
static const StrView *values_of(Session *s, const Source *source, uint32_t *count) {
  const Onnx__GraphProto *graph = source->onnx.proto->graph;
  *count = s->value_count;
  if (s->source_count == 1)
    return s->values;
  StrView *values = ARENA_ARRAY(&s->arena, StrView, s->value_count);
  *count = 0;
  for (uint32_t i = 0; i < s->value_count; i++)
    for (size_t k = 0; k < graph->n_input; k++)
      if (onnx_value_is_for(s->values[i], onnx_text(graph->input[k]->name))) {
        values[(*count)++] = s->values[i];
        s->values_used[i] = true;
        break;
      }
  return values;
}

static Status check_values_used(Session *s) {
  Status status = STATUS_OK;
  for (uint32_t i = 0; s->source_count > 1 && i < s->value_count; i++)
    if (!s->values_used[i])
      status = diag_report(&s->sink, DIAG_VALUE_UNKNOWN, DIAG_NOWHERE,
                           "no model has the input of --value " SV_FMT, SV_ARG(s->values[i]));
  return status;
}

static Status check_dims_used(Session *s) {
  Status status = STATUS_OK;
  for (uint32_t i = 0; s->source_count > 1 && i < s->dim_count; i++) {
    if (s->dims_used[i])
      continue;
    Diag *d = diag_begin(&s->sink, DIAG_DIM_UNKNOWN_FLAG, DIAG_NOWHERE);
    diag_message(d, "no input of any model has a dimension called '" SV_FMT "'",
                 SV_ARG(s->dims[i].name));
    status = diag_end(d);
  }
  return status;
}

Status session_open_onnx(Session *s, const Source *source, OnnxModel *out) {
  if (!is_stdin(source->path))
    return onnx_model_open(out, &s->sink, source->path);
  return onnx_model_open_bytes(out, &s->sink, source->mapped.path, source->mapped.data,
                               source->mapped.size);
}

static Status import_onnx(Session *s, Source *source) {
  TRY(session_open_onnx(s, source, &source->onnx));
  source->onnx.linked_data = s->ctx.linked_data;
  source->open = true;
  TRY(derive_dims(s, source->onnx.proto->graph));
  ImportOptions options = {.method = sv_from(source->method),
                           .is_state = states_name,
                           .is_state_user = s,
                           .fold_limit = s->manager.options.pass.fold_limit};
  options.dims = flags_of(s, source, &options.dim_count);
  options.bounds = s->bounds;
  options.bound_count = s->bound_count;
  options.bounds_used = s->bounds_used;
  options.values = values_of(s, source, &options.value_count);
  Graph *g = NULL;
  TRY(onnx_import(&s->ctx, &source->onnx, &options, &g));
  add_method(s, source, g);
  if (s->manager.options.verify_never)
    return STATUS_OK;
  return graph_verify(g, stage_name(STAGE_IMPORT));
}

static Status import_text(Session *s, Source *source) {
  if (!is_stdin(source->path))
    TRY(file_map(&source->mapped, &s->arena, &s->sink, source->path));
  source->open = true;
  StrView text = {(const char *)source->mapped.data, (size_t)source->mapped.size};
  StrView name = sv_from(source->mapped.path);
  Graph **graphs = NULL;
  uint32_t count = 0;
  TRY(graph_parse(&s->ctx, text, name, NULL, &graphs, &count));
  for (uint32_t i = 0; i < count; i++)
    add_method(s, source, graphs[i]);
  if (count == 0)
    return diag_report(&s->sink, DIAG_IR_PARSE, file_place(source->mapped.path),
                       "the file has no graph");
  return STATUS_OK;
}

static Status import_pte(Session *s, Source *source) {
  if (is_stdin(source->path))
    TRY(pte_read_bytes(&s->ctx, source->mapped.path, source->mapped.data, source->mapped.size,
                       &source->pte));
  else
    TRY(pte_read(&s->ctx, source->path, &source->pte));
  source->open = true;
  for (uint32_t i = 0; i < source->pte.method_count; i++) {
    const ConstantMethod *constant = source->pte.constants[i];
    if (!constant)
      add_method(s, source, source->pte.methods[i]);
    else if (session_add_constant(s, constant->name, constant->items, constant->count) != ETC_OK)
      return STATUS_INVALID;
  }
  return STATUS_OK;
}

static Status import_source(Session *s, Source *source, bool allow_pte) {
  s->ctx.model_path = source_name(source);
  if (source->kind == SOURCE_TEXT)
    return import_text(s, source);
  if (source->kind == SOURCE_ONNX)
    return import_onnx(s, source);
  if (allow_pte)
    return import_pte(s, source);
  return diag_report(&s->sink, DIAG_PTE_UNSUPPORTED, file_place(source->path),
                     "a program cannot be lowered again");
}

static bool same_name(const Session *s, uint32_t a, uint32_t b) {
  return s->methods[a].graph->name == s->methods[b].graph->name;
}

/* Textual files bring names of their own. */
static Status check_method_names(Session *s) {
  for (uint32_t i = 1; i < s->method_count; i++)
    for (uint32_t k = 0; k < i; k++)
      if (same_name(s, i, k))
        return diag_report(&s->sink, DIAG_NAME_TWICE, file_place(s->methods[i].source->path),
                           "two methods have the name '" SV_FMT "'",
                           SV_ARG(intern_get(&s->ctx.names, s->methods[i].graph->name)));
  return STATUS_OK;
}

/* --- stages --- */

static Status write_artifact(Session *s, StageId stage) {
  if (!s->artifacts)
    return STATUS_OK;
  if (mkdir(s->artifacts, 0777) != 0 && errno != EEXIST)
    return diag_report(&s->sink, DIAG_FILE_WRITE, file_place(s->artifacts),
                       "cannot make folder '%s': %s", s->artifacts, strerror(errno));
  const char *path =
      arena_printf(&s->arena, "%s/%02d-%s.etir", s->artifacts, (int)stage + 1, stage_name(stage));
  StrBuf text;
  strbuf_init(&text);
  session_print(s, (PrintOptions){.full_constants = true, .locations = true}, &text);
  AtomicFile file;
  Status status = atomic_file_open(&file, &s->arena, &s->sink, path);
  if (status == STATUS_OK) {
    atomic_file_write(&file, text.data, text.size);
    status = atomic_file_commit(&file, false);
  }
  strbuf_release(&text);
  return status;
}

/* Only ONNX models have dimensions to fix: those of the others are what they are. */
static Status check_dims_wanted(Session *s) {
  if (s->dim_count == 0)
    return STATUS_OK;
  for (uint32_t i = 0; i < s->source_count; i++)
    if (s->sources[i]->kind == SOURCE_ONNX)
      return STATUS_OK;
  DiagPlace place = DIAG_NOWHERE;
  place.option = SV("--dim");
  Diag *d = diag_begin(&s->sink, DIAG_USAGE, place);
  diag_message(d, "'" SV_FMT "' is no ONNX model: its dimensions are fixed or bounded already",
               SV_ARG(source_name(s->sources[0])));
  diag_hint(d, "give --dim when the .onnx is lowered or printed");
  return diag_end(d);
}

Status session_import(Session *s, bool allow_pte) {
  Status status = STATUS_OK;
  TRY(check_dims_wanted(s));
  manager_enter(&s->manager, STAGE_IMPORT);
  s->dims_used = ARENA_ARRAY(&s->arena, bool, s->dim_count);
  s->bounds_used = ARENA_ARRAY(&s->arena, bool, s->bound_count + 1);
  s->values_used = ARENA_ARRAY(&s->arena, bool, s->value_count);
  for (uint32_t i = 0; i < s->source_count; i++) {
    Status one = import_source(s, s->sources[i], allow_pte);
    status = status == STATUS_OK ? one : status;
  }
  Status bounds = session_check_bounds(s, status == STATUS_OK);
  TRY(status);
  TRY(bounds);
  TRY(check_dims_used(s));
  TRY(check_values_used(s));
  TRY(check_method_names(s));
  TRY(derive_run(s));
  TRY(session_check_constants(s));
  TRY(states_bind(s));
  return write_artifact(s, STAGE_IMPORT);
}

/* Graphs from text begin at the first stage that raises their level. */
static bool is_past(const Method *m, StageId stage) {
  if (m->source->kind == SOURCE_ONNX)
    return false;
  Level level = m->graph->level;
  return level > LEVEL_ATEN && level >= stage_level(stage) && stage != STAGE_TO_BACKEND;
}

static Status run_stage(Session *s, Method *m, StageId stage) {
  const PassRow **extra = ARENA_ARRAY(&s->arena, const PassRow *, s->user_pass_count);
  uint32_t count = 0;
  for (uint32_t i = 0; i < s->user_pass_count; i++)
    if (s->user_passes[i].stage == stage)
      extra[count++] = s->user_passes[i].row;
  s->ctx.model_path = source_name(m->source);
  if (stage == STAGE_QUANTIZE)
    TRY(session_begin_quantize(s, m));
  if (stage == STAGE_QUANTIZE && s->max_drop > 0)
    TRY(session_find_kept(s, m->graph));
  return manager_run_stage(&s->manager, m->graph, stage, extra, count);
}

Status session_run(Session *s, StageId last) {
  TRY(session_check_quantize(s));
  for (int stage = STAGE_SOURCE; stage <= (int)last && stage < STAGE_EMIT; stage++) {
    Status status = STATUS_OK;
    for (uint32_t i = 0; i < s->method_count; i++) {
      if (is_past(&s->methods[i], (StageId)stage))
        continue;
      Status one = run_stage(s, &s->methods[i], (StageId)stage);
      status = status == STATUS_OK ? one : status;
    }
    TRY(status);
    if (s->manager.stopped)
      return STATUS_OK;
    if (stage == STAGE_TO_EXECUTORCH)
      states_place(s);
    TRY(write_artifact(s, (StageId)stage));
  }
  return STATUS_OK;
}

/* --- output --- */

/* The output takes the place of what has its name: that must not be something that is being read.
 */
static Status check_output(Session *s, const char *output) {
  struct stat out, in;
  if (stat(output, &out) != 0)
    return STATUS_OK;
  for (uint32_t i = 0; i < s->source_count; i++) {
    if (stat(s->sources[i]->path, &in) != 0 || in.st_dev != out.st_dev || in.st_ino != out.st_ino)
      continue;
    Diag *d = diag_begin(&s->sink, DIAG_FILE_WRITE, file_place(output));
    diag_message(d, "'%s' is the model itself", output);
    diag_hint(d, "give the output another name");
    return diag_end(d);
  }
  return STATUS_OK;
}

static void append_make_name(StrBuf *out, const char *path) {
  for (; *path; path++) {
    if (*path == '$')
      strbuf_append_char(out, '$');
    else if (*path == ' ' || *path == '#' || *path == '\\')
      strbuf_append_char(out, '\\');
    strbuf_append_char(out, *path);
  }
}

/* A rule of make, as compilers write it: the output depends on all that was read, and each of those
 * has an empty rule, so that make goes on when one is gone. */
static void print_depfile(const Session *s, const char *output, StrBuf *out) {
  StrBuf rules;
  strbuf_init(&rules);
  append_make_name(out, s->depfile_target ? s->depfile_target : output);
  strbuf_append_char(out, ':');
  if (s->recipe) {
    strbuf_append_char(out, ' ');
    append_make_name(out, s->recipe);
    append_make_name(&rules, s->recipe);
    strbuf_append(&rules, SV(":\n"));
  }
  for (uint32_t i = 0; i < s->source_count; i++) {
    const Source *source = s->sources[i];
    if (is_stdin(source->path))
      continue;
    strbuf_append(out, SV(" \\\n  "));
    append_make_name(out, source->path);
    append_make_name(&rules, source->path);
    strbuf_append(&rules, SV(":\n"));
    uint32_t externals = source->kind == SOURCE_ONNX ? source->onnx.locations.count : 0;
    for (uint32_t k = 1; k <= externals; k++) {
      if (!source->onnx.external[k])
        continue;
      strbuf_append(out, SV(" \\\n  "));
      append_make_name(out, source->onnx.external[k]->path);
      append_make_name(&rules, source->onnx.external[k]->path);
      strbuf_append(&rules, SV(":\n"));
    }
  }
  strbuf_append_char(out, '\n');
  if (rules.size)
    strbuf_append(out, (StrView){rules.data, rules.size});
  strbuf_release(&rules);
}

/* Written first: the output, when it appears, is never without it. */
static Status write_depfile(Session *s, const char *output) {
  const char *path = s->depfile;
  if (!path && s->default_depfile)
    path = arena_printf(&s->arena, "%s.d", output);
  if (!path)
    return STATUS_OK;
  StrBuf text;
  strbuf_init(&text);
  print_depfile(s, output, &text);
  AtomicFile file;
  Status status = atomic_file_open(&file, &s->arena, &s->sink, path);
  if (status == STATUS_OK) {
    atomic_file_write(&file, text.data, text.size);
    status = atomic_file_commit(&file, false);
  }
  strbuf_release(&text);
  return status;
}

static Status check_inputs_unchanged(Session *s) {
  for (uint32_t i = 0; i < s->source_count; i++)
    if (s->sources[i]->kind == SOURCE_ONNX)
      TRY(file_check_unchanged(&s->sources[i]->onnx.file, &s->sink));
  return STATUS_OK;
}

Status session_emit(Session *s, const char *output) {
  Graph **graphs = ARENA_ARRAY(&s->arena, Graph *, s->method_count);
  Status status = check_output(s, output);
  TRY(status);
  manager_enter(&s->manager, STAGE_EMIT);
  for (uint32_t i = 0; i < s->method_count; i++) {
    graphs[i] = s->methods[i].graph;
    s->ctx.model_path = source_name(s->methods[i].source);
    Status one = graph_verify_kernels(graphs[i]);
    if (one == STATUS_OK && graphs[i]->arena_size_count == 0)
      one = diag_report(&s->sink, DIAG_PLAN_INVALID, file_place(s->methods[i].source->path),
                        "method '" SV_FMT "' has no memory plan",
                        SV_ARG(intern_get(&s->ctx.names, graphs[i]->name)));
    if (one == STATUS_OK)
      one = delegate_check(graphs[i], true, DIAG_INTERNAL);
    status = status == STATUS_OK ? one : status;
  }
  TRY(status);
  TRY(check_inputs_unchanged(s));
  TRY(write_depfile(s, output));
  return pte_emit(graphs, s->method_count, &s->sink, output,
                  (EmitOptions){.sync = s->sync,
                                .constants = s->constants,
                                .constant_count = s->constant_count,
                                .figures = &s->written,
                                .progress = s->manager.options.progress
                                                ? &s->manager.options.progress->output
                                                : NULL});
}

/* --- for the command --- */

void session_print_times(const Session *s) {
  const ManagerOptions *o = &s->manager.options;
  if (!s->time_passes || !o->print)
    return;
  StrBuf text;
  strbuf_init(&text);
  manager_print_times(&s->manager, s->time_json, &text);
  o->print(o->print_user, text.data, text.size);
  strbuf_release(&text);
}

void session_print(const Session *s, PrintOptions options, StrBuf *out) {
  for (uint32_t i = 0; i < s->method_count; i++) {
    if (i)
      strbuf_append_char(out, '\n');
    graph_print(s->methods[i].graph, options, out);
  }
  session_print_constants(s, out);
}

Status session_method(Session *s, StrView name, Method **out) {
  StrBuf list;
  strbuf_init(&list);
  *out = NULL;
  for (uint32_t i = 0; i < s->method_count; i++) {
    StrView each = intern_get(&s->ctx.names, s->methods[i].graph->name);
    if (name.size ? sv_eq(each, name) : s->method_count == 1)
      *out = &s->methods[i];
    strbuf_append(&list, i ? SV(", ") : SV(""));
    strbuf_append_printable(&list, each);
  }
  for (uint32_t i = 0; i < s->constant_count; i++) {
    strbuf_append(&list, list.size ? SV(", ") : SV(""));
    strbuf_append_printable(&list, s->constants[i].name);
  }
  Status status = STATUS_OK;
  if (!*out) {
    DiagPlace place = DIAG_NOWHERE;
    place.option = SV("--method");
    Diag *d = diag_begin(&s->sink, DIAG_USAGE, place);
    if (name.size)
      diag_message(d, "there is no method '" SV_FMT "'", SV_ARG(name));
    else
      diag_message(d, "the program has %u methods, and none is chosen",
                   s->method_count + s->constant_count);
    diag_hint(d, "the methods are: %s", strbuf_cstr(&list));
    status = diag_end(d);
  }
  strbuf_release(&list);
  return status;
}

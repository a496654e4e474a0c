/* The files of a session, and the stage import: files in, graphs out. */
#include <fcntl.h>
#include <unistd.h>

#include "ir/verify.h"
#include "pipeline/constant_methods.h"
#include "pipeline/derive.h"
#include "pipeline/settings.h"
#include "pipeline/states.h"

/* --- sources --- */

/* A .pte has its identifier at byte 4, and so has a bundle. */
static bool starts_like_pte(const uint8_t *data, uint64_t size) {
  return size >= 8 && (memcmp(data + 4, PTE_IDENTIFIER, 4) == 0 || bundle_is(data, size));
}

static bool is_pte(const char *path) {
  uint8_t bytes[8];
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  bool whole = fd >= 0 && read(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes;
  if (fd >= 0)
    close(fd);
  return whole && starts_like_pte(bytes, sizeof bytes);
}

bool path_is_stdin(const char *path) { return strcmp(path, "-") == 0; }

StrView source_name(const Source *source) {
  return path_is_stdin(source->path) ? SV("<stdin>") : sv_from(source->path);
}

/* Every textual graph has that word, which other text is told from it by. */
static bool mentions_graph(const uint8_t *data, uint64_t size) {
  return size > 0 && memmem(data, (size_t)size, "graph", 5) != NULL;
}

/* Standard input has no name to go by: text has no control characters, an ONNX model begins with
 * some. Other text is left to the reader of ONNX models, which says what it is not. */
static SourceKind kind_of_bytes(const uint8_t *data, uint64_t size) {
  if (starts_like_pte(data, size))
    return SOURCE_PTE;
  for (uint64_t i = 0; i < size && i < 64; i++)
    if (data[i] < ' ' && data[i] != '\n' && data[i] != '\t' && data[i] != '\r')
      return SOURCE_ONNX;
  return mentions_graph(data, size) ? SOURCE_TEXT : SOURCE_ONNX;
}

SourceKind source_kind(const char *path) {
  StrView name = sv_from(path);
  if (sv_has_suffix(name, SV(".etir")))
    return SOURCE_TEXT;
  if (sv_has_suffix(name, SV(".pte")) || sv_has_suffix(name, SV(".bpte")) ||
      (!sv_has_suffix(name, SV(".onnx")) && is_pte(path)))
    return SOURCE_PTE;
  return SOURCE_ONNX;
}

static EtcStatus find_kind(Session *s, Source *source) {
  source->in_memory = path_is_stdin(source->path);
  if (!source->in_memory) {
    source->kind = source_kind(source->path);
    return ETC_OK;
  }
  for (uint32_t i = 0; i < s->program.source_count; i++)
    if (path_is_stdin(s->program.sources[i]->path))
      return session_usage(s, "--method", "give the path of the other model",
                           "standard input is the model of two methods");
  manager_enter(&s->manager, STAGE_IMPORT);
  EtcStatus status = session_status(file_map_stdin(&source->mapped, &s->arena, &s->sink));
  if (status != ETC_OK)
    return status;
  source->kind = kind_of_bytes(source->mapped.data, source->mapped.size);
  if (source->mapped.size == 0) {
    file_unmap(&source->mapped);
    status = session_status(diag_report(&s->sink, DIAG_FILE_EMPTY, diag_file(source->mapped.path),
                                        "standard input is empty"));
  }
  return status;
}

static void append_source(Session *s, Source *source) {
  POOL_PUSH(s->program.sources, s->program.source_count, s->program.source_capacity, source);
}

EtcStatus session_share_source(Session *s, const Source *read) {
  Source *source = ARENA_NEW(&s->arena, Source);
  *source = (Source){.method = read->method,
                     .path = read->path,
                     .kind = read->kind,
                     .mapped = read->mapped,
                     .in_memory = true,
                     .shared = true};
  append_source(s, source);
  return ETC_OK;
}

/* A source without its contents; NULL in *out where one that wins is there already. */
static EtcStatus new_source(Session *s, const char *method, const char *path, Source **out) {
  *out = NULL;
  if (method[0] == '\0')
    return session_usage(s, "--method", "write --method NAME=MODEL", "a method needs a name");
  if (path[0] == '\0')
    return session_usage(s, "", "give the path of a file; is a variable of the shell empty?",
                         "the name of the model is empty");
  int priority = s->setting.layer ? s->setting.layer->priority : PRIORITY_COMMAND;
  for (uint32_t i = 0; i < s->program.source_count; i++)
    if (strcmp(s->program.sources[i]->method, method) == 0)
      return s->program.sources[i]->priority < priority
                 ? ETC_OK
                 : session_usage(s, "--method", "give each method a name of its own",
                                 "method '%s' is given twice", method);
  Source *source = *out = ARENA_NEW(&s->arena, Source);
  source->priority = priority;
  source->method = arena_strdup(&s->arena, sv_from(method));
  source->path = arena_strdup(&s->arena, sv_from(path));
  source->mapped.fd = -1;
  return ETC_OK;
}

EtcStatus session_add_source(Session *s, const char *method, const char *path) {
  Source *source;
  EtcStatus status = new_source(s, method, path, &source);
  if (status == ETC_OK && source)
    status = find_kind(s, source);
  if (status == ETC_OK && source)
    append_source(s, source);
  return status;
}

EtcStatus session_add_bytes(Session *s, const char *method, const char *name, const void *data,
                            size_t size) {
  Source *source;
  EtcStatus status = new_source(s, method, name, &source);
  if (status != ETC_OK || !source)
    return status;
  source->mapped =
      (MappedFile){.data = data, .size = size, .path = (char *)(uintptr_t)source->path, .fd = -1};
  source->in_memory = source->shared = true;
  source->kind = kind_of_bytes(data, size);
  if (size == 0) {
    Diag *d = diag_begin(&s->sink, DIAG_FILE_EMPTY, diag_file(name));
    diag_message(d, "the model has no bytes");
    diag_hint(d, "give the bytes of an .onnx file");
    return session_status(diag_end(d));
  }
  append_source(s, source);
  return ETC_OK;
}

StrView method_name(const Method *m) { return graph_name(m->graph); }

static void add_method(Session *s, Source *source, Graph *g, MethodOptions *options) {
  Program *p = &s->program;
  p->methods = pool_reserve(p->methods, &p->method_capacity, (uint64_t)p->method_count + 1,
                            sizeof *p->methods);
  p->methods[p->method_count++] =
      (Method){.graph = g, .source = source, .options = options, .sqnr = NAN, .worst = ""};
}

void session_enter(Session *s, const Method *m) {
  s->ctx.model_path = source_name(m->source);
  s->manager.options.pass = m->options->pass;
  s->manager.options.pass.keep_delegate = s->artifacts ? session_keep_delegate : NULL;
  s->manager.options.pass.keep_user = s;
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
    const Onnx__TypeProto__Tensor *type = onnx_tensor_type(input);
    const Onnx__TensorShapeProto *shape = type ? type->shape : NULL;
    for (size_t d = 0; shape && d < shape->n_dim; d++)
      if (name.size && sv_eq(onnx_dim_param(shape->dim[d]), name))
        return true;
  }
  return false;
}

/* Whether a flag is for the model: by a dimension of it, or by one that has its size. */
static bool needs_flag(Session *s, const MethodOptions *o, const Onnx__GraphProto *graph,
                       StrView name) {
  bool found = has_dimension(graph, name);
  for (uint32_t i = 0; i < o->dim_count && !found; i++) {
    const DimFlag *flag = &o->dims[i].flag;
    found = flag->same.size && has_dimension(graph, flag->name) &&
            (sv_eq(flag->same, name) || sv_eq(options_dim_root(&s->arena, o, flag->name), name));
  }
  return found;
}

/* Of several models each has dimensions of its own: options for all methods then go to those that
 * they fit. An option for one method is that of its model, which reports what it does not have. */
static void dims_for(Session *s, const Source *source, const MethodOptions *o,
                     ImportOptions *import) {
  DimFlag *flags = ARENA_ARRAY(&s->arena, DimFlag, (size_t)o->dim_count + 1);
  for (uint32_t i = 0; i < o->dim_count; i++) {
    if (s->program.source_count > 1 &&
        !needs_flag(s, o, source->onnx.proto->graph, o->dims[i].flag.name))
      continue;
    flags[import->dim_count++] = o->dims[i].flag;
    *o->dims[i].used = true;
  }
  import->dims = flags;
}

static bool has_input(const Onnx__GraphProto *graph, StrView value) {
  for (size_t i = 0; i < graph->n_input; i++)
    if (onnx_value_is_for(value, onnx_text(graph->input[i]->name)))
      return true;
  return false;
}

/* The same of --value. */
static void values_for(Session *s, const Source *source, const MethodOptions *o,
                       ImportOptions *import) {
  StrView *values = ARENA_ARRAY(&s->arena, StrView, (size_t)o->value_count + 1);
  for (uint32_t i = 0; i < o->value_count; i++) {
    StrView text = o->values[i].text;
    if (s->program.source_count > 1 && !has_input(source->onnx.proto->graph, text))
      continue;
    values[import->value_count++] = text;
    *o->values[i].used = true;
  }
  import->values = values;
}

static BoundFlag *bounds_for(Session *s, const MethodOptions *o) {
  BoundFlag *flags = ARENA_ARRAY(&s->arena, BoundFlag, (size_t)o->bound_count + 1);
  for (uint32_t i = 0; i < o->bound_count; i++)
    flags[i] = o->bounds[i].flag;
  return flags;
}

Status session_open_onnx(Session *s, const Source *source, OnnxModel *out) {
  if (!source->in_memory)
    return onnx_model_open(out, &s->sink, source->path);
  return onnx_model_open_bytes(out, &s->sink, source->mapped.path, source->mapped.data,
                               source->mapped.size);
}

/* All schemes but that of int8 weights multiply by rows of 8 bits where weights are quantized. */
static BlocksUse blocks_use(const PassOptions *o) {
  if (!backends_take_quantized(o))
    return BLOCKS_NEVER;
  bool wanted = o->quantize && o->quantize->scheme != QUANT_INT8_WEIGHT_ONLY;
  return wanted ? BLOCKS_ALWAYS : BLOCKS_WHERE_ALLOWED;
}

static Status import_onnx(Session *s, Source *source) {
  TRY(session_open_onnx(s, source, &source->onnx));
  source->onnx.linked_data = s->ctx.linked_data;
  source->open = true;
  MethodOptions *o = session_resolve(s, sv_from(source->method));
  TRY(derive_dims(s, o, source->onnx.proto->graph));
  StatesSearch states = {s, o};
  ImportOptions import = {.method = sv_from(source->method),
                          .is_state = states_name,
                          .is_state_user = &states,
                          .fold_limit = o->pass.fold_limit,
                          .blocks = blocks_use(&o->pass),
                          .whole_caches = o->derive != NULL,
                          .lowered = s->lowered_ops,
                          .lowered_count = s->lowered_count,
                          .translators = s->registry.translators,
                          .translator_count = s->registry.translator_count,
                          .running = s->registry.running,
                          .bounds = bounds_for(s, o),
                          .bound_count = o->bound_count,
                          .bounds_used = ARENA_ARRAY(&s->arena, bool, (size_t)o->bound_count + 1)};
  dims_for(s, source, o, &import);
  values_for(s, source, o, &import);
  Graph *g = NULL;
  Status status = onnx_import(&s->ctx, &source->onnx, &import, &g);
  for (uint32_t i = 0; i < o->bound_count; i++)
    *o->bounds[i].used |= import.bounds_used[i];
  TRY(status);
  add_method(s, source, g, o);
  if (s->manager.options.verify_never)
    return STATUS_OK;
  return graph_verify(g, stage_name(STAGE_IMPORT));
}

static Status unknown_stage(Session *s, const Source *source, const Graph *g) {
  const char *near = stage_nearest(g->stage);
  Diag *d = diag_begin(&s->sink, DIAG_IR_PARSE, diag_file(source->mapped.path));
  diag_message(d, "a textual graph is not one after a stage '" SV_FMT "'", SV_ARG(g->stage));
  diag_hint(d, "%s", near ? session_did_you_mean(s, near) : "'etc passes' lists the stages");
  return diag_end(d);
}

/* What the graph was lowered with up to its stage, so that it goes on to the same program. It keeps
 * those that are its own. */
static Status take_options(Session *s, const Source *source, Graph *g) {
  const char *method = arena_strdup(&s->arena, graph_name(g));
  SettingPlace before = s->setting;
  s->setting = (SettingPlace){.layer = session_layer(s, PRIORITY_FILE, method), .folder = ""};
  s->setting.at = DIAG_NOWHERE;
  s->setting.at.file = source_name(source);
  s->setting.at.line = s->setting.at.column = 1;
  EtcStatus status = ETC_OK;
  Layer *layer = s->setting.layer;
  StrView *own = ARENA_ARRAY(&g->arena, StrView, (size_t)g->option_count + 1);
  uint32_t count = 0;
  for (uint32_t i = 0; i < g->option_count && status == ETC_OK; i++) {
    bool of_program;
    s->setting.layer = layer;
    status = session_set_text(s, g->options[i], &of_program);
    if (!of_program)
      own[count++] = g->options[i];
  }
  g->options = own;
  g->option_count = count;
  s->setting = before;
  StageId stage = stage_find(g->stage);
  if (g->stage.size && stage >= STAGE_EMIT)
    return unknown_stage(s, source, g);
  if (g->stage.size && stage_level(stage) != g->level)
    return diag_report(&s->sink, DIAG_IR_PARSE, diag_file(source->mapped.path),
                       "a graph of level %s cannot be one after the stage '" SV_FMT "'",
                       level_name(g->level), SV_ARG(g->stage));
  return status == ETC_OK ? STATUS_OK : STATUS_INVALID;
}

/* All graphs of the file, which belong to the program from here on. */
static Status add_text_methods(Session *s, Source *source, Graph **graphs, uint32_t count) {
  Status status = STATUS_OK;
  for (uint32_t i = 0; i < count; i++) {
    Status one = take_options(s, source, graphs[i]);
    status = status == STATUS_OK ? one : status;
    add_method(s, source, graphs[i],
               session_resolve(s, intern_get(&s->ctx.names, graphs[i]->name)));
  }
  return status;
}

static Status import_text(Session *s, Source *source) {
  if (!source->in_memory)
    TRY(file_map(&source->mapped, &s->arena, &s->sink, source->path));
  source->open = true;
  StrView text = {(const char *)source->mapped.data, (size_t)source->mapped.size};
  StrView name = sv_from(source->mapped.path);
  Graph **graphs = NULL;
  uint32_t count = 0;
  TRY(graph_parse(&s->ctx, text, name, NULL, &graphs, &count));
  TRY(add_text_methods(s, source, graphs, count));
  if (count == 0)
    return diag_report(&s->sink, DIAG_IR_PARSE, diag_file(source->mapped.path),
                       "the file has no graph");
  return STATUS_OK;
}

/* The program of a bundle is read where it lies. */
static Status read_bundle(Session *s, Source *source, PtdFile *external) {
  BundleFile *b = &source->bundle;
  const MappedFile *bytes = &source->mapped;
  if (source->in_memory)
    TRY(bundle_open_bytes(b, &s->sink, bytes->path, bytes->data, bytes->size));
  else
    TRY(bundle_open(b, &s->sink, source->path));
  source->bundled = true;
  s->ctx.names_only = false; /* its test sets are of several methods */
  return pte_read_bytes(&s->ctx, b->file.path, b->program, b->program_size, external, &source->pte);
}

static Status read_pte(Session *s, Source *source, PtdFile *external) {
  const MappedFile *bytes = &source->mapped;
  if (source->in_memory ? bundle_is(bytes->data, bytes->size) : bundle_is_file(source->path))
    return read_bundle(s, source, external);
  if (source->in_memory)
    return pte_read_bytes(&s->ctx, bytes->path, bytes->data, bytes->size, external, &source->pte);
  return pte_read(&s->ctx, source->path, external, &source->pte);
}

/* The names that the method has for its arenas, as the option that gave them. */
static void keep_banks(Graph *g, const PteMethod *m) {
  StrBuf text = {0};
  for (uint32_t i = 0; i < m->bank_count; i++)
    strbuf_printf(&text, "%s" SV_FMT "=%llu", i ? "," : "memory=", SV_ARG(m->banks[i].name),
                  (unsigned long long)m->banks[i].size);
  StrView *option = ARENA_NEW(&g->arena, StrView);
  *option = strbuf_keep(&text, &g->arena);
  g->options = option;
  g->option_count = m->bank_count != 0;
}

static Status import_pte(Session *s, Source *source) {
  PtdFile *external = s->external_data ? &source->external : NULL;
  if (external)
    TRY(ptd_open(external, &s->sink, s->ctx.names.seed, s->external_data));
  source->external_open = external != NULL;
  TRY(read_pte(s, source, external));
  source->open = true;
  for (uint32_t i = 0; i < source->pte.method_count; i++) {
    const ConstantMethod *constant = source->pte.constants[i];
    Graph *g = source->pte.methods[i];
    if (!constant && !g)
      continue;
    if (g) {
      keep_banks(g, &source->pte.program.methods[i]);
      add_method(s, source, g, session_resolve(s, graph_name(g)));
    } else if (session_add_constant(s, constant->name, constant->items, constant->count) != ETC_OK)
      return STATUS_INVALID;
  }
  states_find_shared(s);
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
  if (!source->in_memory) /* a name alone says .pte, too */
    TRY(file_map(&source->mapped, &s->arena, &s->sink, source->path));
  Diag *d = diag_begin(&s->sink, DIAG_PTE_UNSUPPORTED, diag_file(source->path));
  diag_message(d, "'" SV_FMT "' is a program already", SV_ARG(source_name(source)));
  diag_hint(d, "lower the .onnx that it was made from; 'etc inspect' shows what is in it");
  return diag_end(d);
}

static bool same_name(const Session *s, uint32_t a, uint32_t b) {
  return s->program.methods[a].graph->name == s->program.methods[b].graph->name;
}

/* Textual files bring names of their own. */
static Status check_method_names(Session *s) {
  for (uint32_t i = 1; i < s->program.method_count; i++)
    for (uint32_t k = 0; k < i; k++)
      if (same_name(s, i, k))
        return diag_report(&s->sink, DIAG_NAME_TWICE, diag_file(s->program.methods[i].source->path),
                           "two methods have the name '" SV_FMT "'",
                           SV_ARG(graph_name(s->program.methods[i].graph)));
  return STATUS_OK;
}

/* Only ONNX models have dimensions to fix: those of the others are what they are. */
static Status check_dims_wanted(Session *s) {
  uint32_t dims = 0;
  for (uint32_t i = 0; i < s->layer_count; i++)
    dims += s->layers[i]->options.dim_count;
  for (uint32_t i = 0; i < s->program.source_count; i++)
    if (s->program.sources[i]->kind == SOURCE_ONNX)
      return STATUS_OK;
  if (dims == 0 || s->program.source_count == 0)
    return STATUS_OK;
  DiagPlace place = DIAG_NOWHERE;
  place.option = SV("--dim");
  Diag *d = diag_begin(&s->sink, DIAG_USAGE, place);
  diag_message(d, "'" SV_FMT "' is not an ONNX model: its dimensions are fixed or bounded already",
               SV_ARG(source_name(s->program.sources[0])));
  diag_hint(d, "give --dim when the .onnx is lowered or printed");
  return diag_end(d);
}

Status session_import(Session *s, bool allow_pte) {
  Status status = STATUS_OK;
  TRY(check_dims_wanted(s));
  manager_enter(&s->manager, STAGE_IMPORT);
  TRY(session_open_lowered(s));
  for (uint32_t i = 0; i < s->program.source_count; i++) {
    Status one = import_source(s, s->program.sources[i], allow_pte);
    status = status == STATUS_OK ? one : status;
  }
  Status bounds = session_check_bounds(s, status == STATUS_OK);
  if (status != STATUS_OK)
    session_name_unused_dims(s);
  TRY(status);
  TRY(bounds);
  TRY(session_check_used(s));
  TRY(session_check_lowered(s));
  TRY(check_method_names(s));
  TRY(derive_run(s));
  TRY(session_check_constants(s));
  TRY(states_bind(s));
  s->program.next = STAGE_SOURCE;
  return STATUS_OK;
}

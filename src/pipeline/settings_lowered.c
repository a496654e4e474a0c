/* --lowered DOMAIN.OP=FILE.pte: programs that compute operators of the models. */
#include "pipeline/settings.h"

EtcStatus session_set_lowered(Session *s, StrView value) {
  StrView name, path;
  if (!session_split(value, '=', &name, &path) || path.size == 0)
    return session_usage(s, "--lowered", "write --lowered DOMAIN.OP=FILE.pte",
                         "--lowered " SV_FMT ": an operator and a program are needed",
                         SV_ARG(value));
  name = sv_from(arena_strdup(&s->arena, name));
  LoweredFile file = {.path = session_path(s, path)};
  (void)session_split_operator(name, &file.domain, &file.op);
  for (uint32_t i = 0; i < s->lowered_count; i++)
    if (sv_eq(s->lowered[i].op, file.op) && sv_eq(s->lowered[i].domain, file.domain))
      return session_usage(s, "--lowered", "give each operator one program",
                           "operator '" SV_FMT "' is given twice", SV_ARG(name));
  s->lowered = arena_push(&s->arena, s->lowered, s->lowered_count, sizeof file);
  s->lowered[s->lowered_count++] = file;
  return ETC_OK;
}

/* The only method, or forward. */
static Status method_of(Session *s, const LoweredFile *file, const Graph **out) {
  const Graph *found = NULL, *forward = NULL;
  uint32_t count = 0;
  for (uint32_t i = 0; i < file->file.method_count; i++) {
    const Graph *g = file->file.methods[i];
    if (!g)
      continue;
    found = g;
    count++;
    if (sv_eq_str(graph_name(g), "forward"))
      forward = g;
  }
  *out = count == 1 ? found : forward;
  if (*out)
    return STATUS_OK;
  Diag *d = diag_begin(&s->sink, DIAG_LOWERED_MISMATCH, diag_file(file->path));
  diag_message(d, "the program has %u methods, and none is called 'forward'", count);
  diag_hint(d, "lower the method alone: the only method of a program may have any name");
  return diag_end(d);
}

Status session_open_lowered(Session *s) {
  s->lowered_ops = ARENA_ARRAY(&s->arena, LoweredOp, (size_t)s->lowered_count + 1);
  for (uint32_t i = 0; i < s->lowered_count; i++) {
    LoweredFile *file = &s->lowered[i];
    s->ctx.model_path = sv_from(file->path);
    TRY(pte_read(&s->ctx, file->path, NULL, &file->file));
    file->open = true;
    s->lowered_ops[i] = (LoweredOp){
        .domain = file->domain, .op = file->op, .path = file->path, .used = &file->used};
    TRY(method_of(s, file, &s->lowered_ops[i].graph));
  }
  return STATUS_OK;
}

/* "com.acme.Encoder" */
static const char *whole_name(Session *s, StrView domain, StrView op) {
  bool known = domain.size && !sv_eq_str(domain, "ai.onnx");
  return known ? arena_printf(&s->arena, SV_FMT "." SV_FMT, SV_ARG(domain), SV_ARG(op))
               : arena_strdup(&s->arena, op);
}

/* Of the main graphs. */
static void hint_operators(Session *s, Diag *d, const char *name) {
  const char **names = NULL;
  uint32_t count = 0;
  for (uint32_t i = 0; i < s->program.source_count; i++) {
    const Source *source = s->program.sources[i];
    if (source->kind != SOURCE_ONNX || !source->open)
      continue;
    const Onnx__GraphProto *graph = source->onnx.proto->graph;
    for (size_t k = 0; k < graph->n_node; k++)
      ARENA_PUSH(
          &s->arena, names, count,
          whole_name(s, onnx_text(graph->node[k]->domain), onnx_text(graph->node[k]->op_type)));
  }
  diag_hint_names(d, sv_from(name), names, count);
}

Status session_check_lowered(Session *s) {
  Status status = STATUS_OK;
  for (uint32_t i = 0; i < s->lowered_count; i++) {
    const LoweredFile *file = &s->lowered[i];
    if (file->used)
      continue;
    const char *name = whole_name(s, file->domain, file->op);
    Diag *d = diag_begin(&s->sink, DIAG_LOWERED_UNUSED, diag_file(file->path));
    diag_message(d, "no node has the operator '%s'", name);
    hint_operators(s, d, name);
    status = diag_end(d);
  }
  return status;
}

void session_close_lowered(Session *s) {
  for (uint32_t i = 0; i < s->lowered_count; i++)
    if (s->lowered[i].open)
      pte_close(&s->lowered[i].file);
}

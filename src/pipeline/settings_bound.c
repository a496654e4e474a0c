/* --bound NAME=N or NAME:AXIS=N: upper bounds of sizes that data decide. */
#include "pipeline/settings.h"

#include "support/text.h"

enum { DEPTH_MAX = 16, NAMES_MAX = 4096 };

EtcStatus session_set_bound(Session *s, StrView value) {
  BoundFlag flag = {.most = 0};
  size_t at = settings_number_at(value);
  const char *hint = "write --bound NAME=N or --bound NAME:AXIS=N";
  if (at < 2 || at == value.size)
    return session_missing(s, "--bound", hint, at == 1 ? "name" : "size", value);
  if (!text_parse_i64((StrView){value.data + at, value.size - at}, &flag.most))
    return session_usage(s, "--bound", hint, "'" SV_FMT "' does not end in a size", SV_ARG(value));
  if (flag.most < 1 || flag.most > INT32_MAX)
    return session_usage(s, "--bound", "a bound is 1 or more, and below 2^31",
                         "'" SV_FMT "' is an impossible bound", SV_ARG(value));
  flag.name = sv_from(arena_strdup(&s->arena, (StrView){value.data, at - 1}));
  MethodOptions *o = settings_options(s);
  for (uint32_t i = 0; i < o->bound_count; i++)
    if (sv_eq(o->bounds[i].flag.name, flag.name))
      return session_usage(s, "--bound", "give each bound once",
                           "the bound of '" SV_FMT "' is given twice", SV_ARG(flag.name));
  POOL_PUSH(o->bounds, o->bound_count, o->bound_capacity,
            (BoundOption){flag, ARENA_NEW(&s->arena, bool)});
  return ETC_OK;
}

/* Names of values that bounds may name: those of nodes, also in subgraphs and functions. */
typedef struct Names {
  const char *list[NAMES_MAX];
  size_t count;
} Names;

static void add_nodes(Names *names, Onnx__NodeProto *const *nodes, size_t count, uint32_t depth) {
  for (size_t i = 0; i < count && depth < DEPTH_MAX; i++) {
    for (size_t k = 0; k < nodes[i]->n_output && names->count < NAMES_MAX; k++)
      names->list[names->count++] = nodes[i]->output[k] ? nodes[i]->output[k] : "";
    for (size_t k = 0; k < nodes[i]->n_attribute; k++) {
      const Onnx__GraphProto *body = nodes[i]->attribute[k]->g;
      if (body)
        add_nodes(names, body->node, body->n_node, depth + 1);
    }
  }
}

static void add_models(Session *s, Names *names) {
  for (uint32_t i = 0; i < s->program.source_count; i++) {
    const Source *source = s->program.sources[i];
    const Onnx__ModelProto *model = source->open ? source->onnx.proto : NULL;
    if (!model)
      continue;
    if (model->graph)
      add_nodes(names, model->graph->node, model->graph->n_node, 0);
    for (size_t k = 0; k < model->n_functions; k++)
      add_nodes(names, model->functions[k]->node, model->functions[k]->n_node, 0);
  }
}

/* The flag without its axis. */
static StrView flag_stem(StrView flag) {
  size_t end = flag.size;
  while (end > 0 && is_digit(flag.data[end - 1]))
    end--;
  bool axis = end > 1 && end < flag.size && flag.data[end - 1] == ':';
  return axis ? (StrView){flag.data, end - 1} : flag;
}

static bool is_named(const Names *names, StrView flag) {
  StrView bare = flag_stem(flag);
  for (size_t i = 0; i < names->count; i++)
    if (sv_eq_str(flag, names->list[i]) || sv_eq_str(bare, names->list[i]))
      return true;
  return names->count == NAMES_MAX;
}

static Status check_bound(Session *s, const Names *names, const BoundOption *bound, bool imported) {
  StrView flag = bound->flag.name;
  bool named = is_named(names, flag);
  if (*bound->used || (named && !imported))
    return STATUS_OK;
  Diag *d = diag_begin(&s->sink, named ? DIAG_BOUND_UNUSED : DIAG_BOUND_UNKNOWN,
                       session_option_place(s, "--bound"));
  diag_message(d,
               named ? "--bound " SV_FMT "=%lld: the sizes of this value have bounds without it"
                     : "--bound " SV_FMT "=%lld: no node has an output of this name",
               SV_ARG(flag), (long long)bound->flag.most);
  if (!named)
    (void)diag_hint_nearest(d, flag_stem(flag), names->list, names->count);
  return diag_end(d);
}

Status session_check_bounds(Session *s, bool imported) {
  Names *names = NULL;
  Status status = STATUS_OK;
  for (uint32_t i = 0; i < s->layer_count; i++) {
    const MethodOptions *o = &s->layers[i]->options;
    for (uint32_t k = 0; k < o->bound_count; k++) {
      if (!names)
        add_models(s, names = ARENA_NEW(&s->arena, Names));
      Status one = check_bound(s, names, &o->bounds[k], imported);
      status = status == STATUS_OK ? one : status;
    }
  }
  return status;
}

/* See inspect.h. Whether a model lowers is found by lowering it in a session of its own, up to the
 * program that is not written; dims without a size get sizes that are examples. */
#include "inspect.h"

#include "onnx/describe.h"
#include "onnx/suggest.h"
#include "pipeline/derive.h"
#include "pipeline/recipe.h"
#include "support/json.h"

/* One look at one model. */
typedef struct Inspection {
  const CommandLine *line;
  const char *path;
  const Source *read; /* or NULL */
  bool json;
  Arena arena;
  DimFlag *derived; /* by --derive of the recipe: nothing is suggested for them */
  uint32_t derived_count;
  DimSuggestions dims;
  StrBuf messages; /* of lowering it */
  bool lowers;
  bool unbounded; /* what is missing is a size that only data decide: --bound */
} Inspection;

static void keep_message(void *user, const char *text, size_t size) {
  strbuf_append(user, (StrView){text, size});
}

/* The dims that were given, and what plug-ins translate. */
static ImportOptions given_options(Inspection *i) {
  const Registry *r = &i->line->session->registry;
  const MethodOptions *own = session_own(i->line->session);
  uint32_t count = own->dim_count;
  DimFlag *flags = ARENA_ARRAY(&i->arena, DimFlag, count + i->derived_count);
  if (count)
    memcpy(flags, options_dim_flags(&i->arena, own), count * sizeof *flags);
  for (uint32_t k = 0; k < i->derived_count; k++)
    if (!options_dim(own, i->derived[k].name))
      flags[count++] = i->derived[k];
  return (ImportOptions){.dims = flags,
                         .dim_count = count,
                         .translators = r->translators,
                         .translator_count = r->translator_count,
                         .running = r->running};
}

static const char *flag_text(Inspection *i, const DimFlag *flag) {
  return options_dim_text(&i->arena, flag);
}

/* Lowering finds the same sizes by itself; all of o that is not kept ends with its session. */
static void take_derived(Inspection *i, Session *with, MethodOptions *o, const OnnxModel *model) {
  uint32_t given = o->dim_count;
  if (derive_dims(with, o, model->proto->graph) != STATUS_OK)
    return;
  i->derived = ARENA_ARRAY(&i->arena, DimFlag, o->dim_count - given);
  for (uint32_t k = given; k < o->dim_count; k++) {
    DimFlag flag = o->dims[k].flag;
    flag.name = sv_from(arena_strdup(&i->arena, flag.name));
    flag.same = sv_from(arena_strdup(&i->arena, flag.same));
    flag.plus = sv_from(arena_strdup(&i->arena, flag.plus));
    i->derived[i->derived_count++] = flag;
  }
}

/* The dims of a recipe, as if they were given. */
static EtcStatus take_recipe(Inspection *i, const OnnxModel *model) {
  Session *s = i->line->session, *with;
  if (!s->recipe)
    return ETC_OK;
  with = session_new_inner();
  with->sink.format = s->sink.format;
  EtcStatus status = etc_session_set(with, "recipe", s->recipe);
  if (status == ETC_OK)
    status = recipe_apply(with);
  MethodOptions *o = session_resolve(with, SV("forward"));
  const MethodOptions *own = session_own(s);
  for (uint32_t k = 0; k < o->dim_count && status == ETC_OK; k++)
    if (!options_dim(own, o->dims[k].flag.name))
      status = etc_session_set(s, "dim", flag_text(i, &o->dims[k].flag));
  if (status == ETC_OK)
    take_derived(i, with, o, model);
  etc_session_free(with);
  return status;
}

/* Lowers the model with the dims that were given and those that are suggested. */
static void try_lowering(Inspection *i) {
  Session *s = i->line->session;
  const MethodOptions *own = session_own(s);
  Session *trial = session_new_inner();
  etc_session_on_diagnostic(trial, keep_message, &i->messages);
  trial->sink.format = i->json ? DIAG_JSON : DIAG_TEXT;
  trial->sink.quiet = !s->sink.verbose;
  trial->ctx.linked_data = s->ctx.linked_data;
  for (uint32_t k = 0; k < s->registry.option_count; k++)
    (void)etc_session_set(trial, s->registry.options[k].name, s->registry.options[k].value);
  for (uint32_t k = 0; k < own->dim_count; k++)
    (void)etc_session_set(trial, "dim", flag_text(i, &own->dims[k].flag));
  for (uint32_t k = 0; k < i->dims.count; k++)
    (void)etc_session_set(trial, "dim",
                          flag_text(i, &(DimFlag){.name = i->dims.dims[k].name,
                                                  .lo = i->dims.dims[k].size,
                                                  .hi = i->dims.dims[k].size}));
  EtcStatus status = i->read ? session_share_source(trial, i->read)
                             : etc_session_add_method(trial, "forward", i->path);
  if (status == ETC_OK && s->recipe)
    status = etc_session_set(trial, "recipe", s->recipe);
  if (status == ETC_OK)
    status = recipe_apply(trial);
  if (status == ETC_OK)
    status = session_status(session_import(trial, false));
  if (status == ETC_OK)
    status = session_status(session_run(trial, STAGE_TO_EXECUTORCH));
  if (status == ETC_OK)
    status = session_status(session_check_methods(trial));
  i->lowers = status == ETC_OK;
  i->unbounded = trial->sink.errors && trial->sink.first_error == DIAG_SIZE_UNBOUND;
  etc_session_free(trial);
}

/* " --bound 'y=N'", as the message of what failed says. */
static void append_bounds(Inspection *i, StrBuf *out) {
  const char *from = strstr(strbuf_cstr(&i->messages), " --bound "), *to = NULL;
  for (const char *at = from; at && (at = strstr(at, "=N'")) != NULL; at += 3)
    to = memchr(from, '\n', (size_t)(at - from)) ? to : at + 3;
  if (to)
    strbuf_append(out, (StrView){from, (size_t)(to - from)});
}

/* The model's path without its folder, its suffix becomes .pte. */
static const char *program_name(const Inspection *i) {
  const char *slash = strrchr(i->path, '/'), *name = slash ? slash + 1 : i->path,
             *dot = strrchr(name, '.');
  size_t length = dot && dot != name ? (size_t)(dot - name) : strlen(name);
  return i->read ? "model.pte"
                 : arena_printf(&i->line->session->arena, "%.*s.pte", (int)length, name);
}

/* "etc lower m.onnx --dim batch=1 -o m.pte" */
static void append_command(Inspection *i, StrBuf *out) {
  const MethodOptions *own = session_own(i->line->session);
  strbuf_append(out, i->path[0] == '-' && i->path[1] ? SV("etc lower ./") : SV("etc lower "));
  strbuf_append_word(out, sv_from(i->path));
  if (i->line->session->recipe) {
    strbuf_append(out, SV(" --recipe "));
    strbuf_append_word(out, sv_from(i->line->session->recipe));
  }
  if (i->line->session->ctx.linked_data)
    strbuf_append(out, SV(" --allow-linked-data"));
  const Registry *r = &i->line->session->registry;
  for (uint32_t k = 0; k < r->option_count; k++) {
    strbuf_printf(out, " --%s ", r->options[k].name);
    strbuf_append_word(out, sv_from(r->options[k].value));
  }
  for (uint32_t k = 0; k < own->dim_count; k++) {
    strbuf_append(out, SV(" --dim "));
    strbuf_append_word(out, sv_from(flag_text(i, &own->dims[k].flag)));
  }
  suggest_flags(&i->dims, out);
  if (i->unbounded)
    append_bounds(i, out);
  const char *program = program_name(i);
  strbuf_append(out, program[0] == '-' ? SV(" -o ./") : SV(" -o "));
  strbuf_append_word(out, sv_from(program));
}

/* Dims of a size of their own. */
static uint32_t free_dims(const Inspection *i) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < i->dims.count; k++)
    count += i->dims.dims[k].equal == k;
  return count;
}

static void text_verdict(Inspection *i, StrBuf *out) {
  if (!i->lowers)
    strbuf_append(out, SV("does not lower:\n"));
  if (!i->lowers || i->line->session->sink.verbose)
    strbuf_append(out, sv_from(strbuf_cstr(&i->messages)));
  strbuf_append(out, i->lowers      ? SV("lowers with:\n  ")
                     : i->unbounded ? SV("once that bound is given (N is yours to choose):\n  ")
                                    : SV("once that is solved:\n  "));
  append_command(i, out);
  strbuf_append_char(out, '\n');
  if (free_dims(i) > 1)
    strbuf_append(out,
                  SV("  (the sizes are examples, chosen one by one: what runs may need others, "
                     "as where one is the sum of two)\n"));
}

/* The messages are objects, one a line. */
static void json_messages(Inspection *i, JsonWriter *w) {
  const char *text = strbuf_cstr(&i->messages);
  json_named_array(w, "messages");
  while (*text) {
    size_t size = strcspn(text, "\n");
    json_raw(w, (StrView){text, size});
    text += size + (text[size] == '\n');
  }
  json_close_array(w);
}

static void json_verdict(Inspection *i, JsonWriter *w) {
  json_named_array(w, "dims");
  for (uint32_t k = 0; k < i->dims.count; k++) {
    const DimSuggestion *d = &i->dims.dims[k];
    json_open_object(w);
    json_named_string(w, "name", d->name);
    json_named_uint(w, "example", (uint64_t)d->size);
    json_named_string(w, "equal", i->dims.dims[d->equal].name);
    json_close_object(w);
  }
  json_close_array(w);
  json_named_bool(w, "lowers", i->lowers);
  json_messages(i, w);
  StrBuf command = {0};
  append_command(i, &command);
  json_named_string(w, "command", sv_from(strbuf_cstr(&command)));
  strbuf_release(&command);
}

static void report(Inspection *i, const OnnxModel *model, StrBuf *out) {
  if (!i->json) {
    onnx_describe_text(model, out);
    text_verdict(i, out);
    return;
  }
  JsonWriter w;
  json_init(&w, out, true);
  json_open_object(&w);
  onnx_describe_json(model, &w);
  json_verdict(i, &w);
  json_close_object(&w);
}

EtcStatus inspect_model(const CommandLine *line, const char *path, const Source *read,
                        StrBuf *out) {
  Session *s = line->session;
  Inspection i = {
      .line = line, .path = path, .read = read, .json = command_line_has(line, OPT_JSON)};
  OnnxModel model;
  TRY(session_status(read ? session_open_onnx(s, read, &model)
                          : onnx_model_open(&model, &s->sink, path)));
  EtcStatus status = take_recipe(&i, &model);
  ImportOptions options = given_options(&i);
  if (status == ETC_OK) {
    suggest_dims(&s->ctx, &model, &options, &i.arena, &i.dims);
    try_lowering(&i);
    report(&i, &model, out);
  }
  strbuf_release(&i.messages);
  arena_release(&i.arena);
  onnx_model_close(&model);
  return status;
}

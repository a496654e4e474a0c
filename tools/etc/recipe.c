/* etc recipe: what comes with etc, and what a recipe of one's own means. */
#include <errno.h>
#include <unistd.h>

#include "command.h"
#include "pipeline/recipe.h"
#include "pipeline/settings.h"
#include "support/text.h"

/* Its first lines, which are comments, up to the end of the first sentence. */
static void append_summary(StrBuf *out, const char *text) {
  while (*text == '#') {
    size_t size = strcspn(text, "\n"), begin = strspn(text, "# ");
    StrView line = {text + begin, size - begin};
    const char *dot = line.size ? memchr(line.data, '.', line.size) : NULL;
    strbuf_append_char(out, ' ');
    strbuf_append(out, (StrView){line.data, dot ? (size_t)(dot - line.data) : line.size});
    if (dot)
      return;
    text += size + (text[size] == '\n');
  }
}

static void print_list(StrBuf *out) {
  for (const RecipeText *t = recipe_texts; t->name; t++) {
    strbuf_printf(out, "%-14s", t->name);
    append_summary(out, t->text);
    strbuf_append_char(out, '\n');
  }
}

static EtcStatus show(const CommandLine *line, const char *name, StrBuf *out) {
  const RecipeText *t = recipe_shipped(sv_from(name));
  if (t) {
    strbuf_append(out, sv_from(t->text));
    return ETC_OK;
  }
  const char *names[64];
  size_t count = 0;
  for (t = recipe_texts; t->name && count < COUNT_OF(names); t++)
    names[count++] = t->name;
  const char *nearest = text_nearest(sv_from(name), names, count);
  const char *hint = access(name, F_OK) == 0 ? "'etc recipe check FILE' says what a file sets"
                     : nearest               ? session_did_you_mean(line->session, nearest)
                                             : "'etc recipe list' lists the recipes";
  return session_usage(line->session, "", hint, "no recipe '%s' comes with etc", name);
}

static void print_said(const SaidOption *said, uint32_t count, StrBuf *out) {
  for (uint32_t i = 0; i < count; i++)
    strbuf_printf(out, "  " SV_FMT "\n", SV_ARG(said[i].text));
}

static void print_options(Arena *arena, const MethodOptions *o, StrBuf *out) {
  for (uint32_t i = 0; i < o->dim_count; i++)
    strbuf_printf(out, "  dim=%s\n", options_dim_text(arena, &o->dims[i].flag));
  for (uint32_t i = 0; i < o->state_count; i++)
    strbuf_printf(out, "  state=" SV_FMT "\n", SV_ARG(o->states[i].text));
  for (uint32_t i = 0; i < o->value_count; i++)
    strbuf_printf(out, "  value=" SV_FMT "\n", SV_ARG(o->values[i].text));
  for (uint32_t i = 0; i < o->bound_count; i++)
    strbuf_printf(out, "  bound=" SV_FMT "=%lld\n", SV_ARG(o->bounds[i].flag.name),
                  (long long)o->bounds[i].flag.most);
  print_said(o->said, o->said_count, out);
}

/* what: the key of the recipe. path NULL: none is named. */
static EtcStatus check_file(Session *s, const char *what, const char *path) {
  if (!path || path_is_stdin(path) || access(path, R_OK) == 0)
    return ETC_OK;
  return session_status(diag_report(&s->sink, DIAG_FILE_OPEN, diag_unreadable(&s->sink, path),
                                    "cannot read '%s' of '%s': %s", path, what, strerror(errno)));
}

static EtcStatus check_files(Session *s, const char *model, const MethodOptions *o) {
  const struct {
    const char *what, *path;
  } files[] = {{"model", model},
               {"calibrate", o->quantize.data},
               {"ranges", o->quantize.ranges},
               {"compare", o->compare},
               {"bundle", o->bundle}};
  EtcStatus status = ETC_OK;
  for (size_t i = 0; i < COUNT_OF(files); i++) {
    EtcStatus one = check_file(s, files[i].what, files[i].path);
    status = status == ETC_OK ? one : status;
  }
  return status;
}

static EtcStatus print_method(Session *s, const Source *source, StrBuf *out) {
  const MethodOptions *o = session_resolve(s, sv_from(source->method));
  strbuf_printf(out, "method '%s' from %s\n", source->method, source->path);
  print_options(&s->arena, o, out);
  return check_files(s, source->path, o);
}

/* Whether a section before layer i is of the same method. */
static bool is_printed(const Session *s, uint32_t i) {
  for (uint32_t k = 0; k < i; k++)
    if (s->layers[k]->method && strcmp(s->layers[k]->method, s->layers[i]->method) == 0)
      return true;
  return false;
}

/* Sections of methods whose models come with the command line. */
static void print_sections(Session *s, StrBuf *out) {
  for (uint32_t i = 0; i < s->layer_count; i++) {
    const char *method = s->layers[i]->method;
    if (!method || is_printed(s, i))
      continue;
    strbuf_printf(out, "method '%s' of any model\n", method);
    print_options(&s->arena, session_resolve(s, sv_from(method)), out);
  }
}

/* The options of a method that no model of the recipe has are for one that is given with it. */
static EtcStatus check(const CommandLine *line, const char *path, StrBuf *out) {
  Session *s = line->session;
  TRY(etc_session_set(s, "recipe", path));
  TRY(recipe_apply(s));
  EtcStatus status = session_check_cache(s);
  if (s->said_count)
    strbuf_append(out, SV("the program\n"));
  print_said(s->said, s->said_count, out);
  for (uint32_t i = 0; i < s->program.source_count; i++) {
    EtcStatus one = print_method(s, s->program.sources[i], out);
    status = status == ETC_OK ? one : status;
  }
  if (s->program.source_count)
    return status;
  strbuf_append(out, SV("any model\n"));
  const MethodOptions *o = session_resolve(s, SV("forward"));
  print_options(&s->arena, o, out);
  print_sections(s, out);
  EtcStatus files = check_files(s, NULL, o);
  return status == ETC_OK ? files : status;
}

int cmd_recipe(const CommandLine *line) {
  const char *what = line->argument_count ? line->arguments[0] : "";
  bool list = strcmp(what, "list") == 0,
       known = list || strcmp(what, "show") == 0 || strcmp(what, "check") == 0;
  TRY(command_line_apply(line));
  if (!what[0])
    TRY(expect_arguments(line, 1, "list, show NAME or check FILE.yaml"));
  if (!known)
    TRY(session_usage(line->session, "", "write list, show NAME or check FILE.yaml",
                      "'etc recipe' does not know '%s'", what));
  TRY(expect_arguments(line, list ? 1 : 2, list ? "" : "a recipe"));
  EtcStatus status = ETC_OK;
  StrBuf text = {0};
  if (list)
    print_list(&text);
  else if (strcmp(what, "show") == 0)
    status = show(line, line->arguments[1], &text);
  else
    status = check(line, line->arguments[1], &text);
  int printed = print_and_release(line, &text);
  return status != ETC_OK ? (int)status : printed;
}

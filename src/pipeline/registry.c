/* See registry.h. */
#include "pipeline/registry.h"

#include <unistd.h>

#include "pipeline/plugin.h"
#include "support/files.h"
#include "support/shared_object.h"
#include "support/text.h"

enum { NAMES_MAX = 256 };

/* Appends row to a list in the arena. */
#define APPEND(r, list, count, row)                                                                \
  ((list) =                                                                                        \
       arena_grow((r)->arena, (list), (count) * sizeof *(list), ((count) + 1) * sizeof *(list)),   \
   (list)[(count)++] = (row))

void registry_init(Registry *r, Arena *arena, DiagSink *sink) {
  *r = (Registry){.arena = arena, .sink = sink};
  for (uint32_t i = 0; i < pass_table_size; i++)
    APPEND(r, r->passes, r->pass_count, &pass_table[i]);
  for (const Backend *const *b = backends; *b; b++)
    APPEND(r, r->backends, r->backend_count, *b);
  for (const Planner *p = builtin_planners; p->name; p++)
    APPEND(r, r->planners, r->planner_count, p);
  r->readers = backend_readers;
}

/* --- by name --- */

#define DEFINE_FIND(kind, Type, list, number)                                                      \
  const Type *registry_##kind(const Registry *r, StrView name) {                                   \
    for (uint32_t i = 0; i < r->number; i++)                                                       \
      if (sv_eq_str(name, r->list[i]->name))                                                       \
        return r->list[i];                                                                         \
    return NULL;                                                                                   \
  }                                                                                                \
  const char *registry_nearest_##kind(const Registry *r, StrView name) {                           \
    const char *names[NAMES_MAX];                                                                  \
    uint32_t count = r->number < NAMES_MAX ? r->number : NAMES_MAX;                                \
    for (uint32_t i = 0; i < count; i++)                                                           \
      names[i] = r->list[i]->name;                                                                 \
    return text_nearest(name, names, count);                                                       \
  }

DEFINE_FIND(pass, PassRow, passes, pass_count)
DEFINE_FIND(backend, Backend, backends, backend_count)
DEFINE_FIND(planner, Planner, planners, planner_count)

/* --- translators --- */

static bool same_operator(const OnnxOpRow *a, const OnnxOpRow *b) {
  return strcmp(a->domain, b->domain) == 0 && strcmp(a->name, b->name) == 0;
}

bool registry_translates(const Registry *r, const OnnxTranslator *t) {
  const OnnxOpRow *row;
  for (uint32_t i = 0; (row = onnx_op_row(i)) != NULL; i++)
    if (same_operator(row, &t->row))
      return true;
  for (uint32_t i = 0; i < r->translator_count; i++)
    if (same_operator(&r->translators[i]->row, &t->row))
      return true;
  return false;
}

static void add_option(Registry *r, const char *name, const char *value) {
  RegistryOption option = {name, value};
  APPEND(r, r->options, r->option_count, option);
}

void registry_add_translator(Registry *r, const OnnxTranslator *t, const char *text) {
  APPEND(r, r->translators, r->translator_count, t);
  add_option(r, "custom-op", text);
}

/* --- plug-ins --- */

/* A plug-in while its rows are looked at. */
typedef struct Loading {
  Registry *r;
  const char *path;
  const EtcPlugin *plugin;
} Loading;

static Status refuse(const Loading *l, const char *format, ...) ETC_PRINTF(2, 3);
static Status refuse(const Loading *l, const char *format, ...) {
  va_list args;
  va_start(args, format);
  Status status = diag_vreport(l->r->sink, DIAG_PLUGIN, diag_file(l->path), "", format, args);
  va_end(args);
  return status;
}

static Status refuse_twice(const Loading *l, const char *what, const char *name) {
  Diag *d = diag_begin(l->r->sink, DIAG_PLUGIN, diag_file(l->path));
  diag_message(d, "there is a %s '%s' already", what, name);
  diag_hint(d, "give the %s another name, or give the plug-in once", what);
  return diag_end(d);
}

static Status refuse_object(const Loading *l, const char *why) {
  Diag *d = diag_begin(l->r->sink, DIAG_PLUGIN, diag_file(l->path));
  diag_message(d, "the plug-in cannot be loaded: %s", why);
  if (!shared_object_loader())
    diag_hint(d, "use an etc that is linked with libc, such as that of the Debian package");
  else if (access(l->path, F_OK) != 0)
    diag_hint(d, "check the path");
  else
    diag_hint(d, "compile the plug-in as a shared object for this machine (-shared -fPIC); this "
                 "file is not one, or libraries that it needs are missing");
  return diag_end(d);
}

static Status refuse_build(const Loading *l) {
  Diag *d = diag_begin(l->r->sink, DIAG_PLUGIN, diag_file(l->path));
  diag_message(d, "the plug-in was compiled for another build of etc");
  diag_hint(d, "compile it against the headers that were installed with this etc");
  return diag_end(d);
}

/* Names go into options, where they are ended by '@', ':' and ','. */
static bool is_name(const char *name) {
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
  return name && name[0] && strlen(name) < 64 && strspn(name, allowed) == strlen(name);
}

/* Words that options take beside the names of rows: --print-after all, --backend portable. */
static Status refuse_word(const Loading *l, const char *what, const char *name) {
  Diag *d = diag_begin(l->r->sink, DIAG_PLUGIN, diag_file(l->path));
  diag_message(d, "no %s can have the name '%s', which means something else in options", what,
               name);
  diag_hint(d, "give the %s another name", what);
  return diag_end(d);
}

static Status check_pass(const Loading *l, const PassRow *row) {
  if (!is_name(row->name))
    return refuse(l, "a pass has no name of lower-case letters, digits, '_' and '-'");
  if (strcmp(row->name, "all") == 0)
    return refuse_word(l, "pass", row->name);
  if (!row->run || !row->summary)
    return refuse(l, "pass '%s' has no function or no summary", row->name);
  if (row->stage <= STAGE_IMPORT || row->stage >= STAGE_EMIT || row->level_in >= LEVEL_COUNT ||
      row->level_out != row->level_in)
    return refuse(l, "pass '%s' belongs to no stage, or changes the level of graphs", row->name);
  if (registry_pass(l->r, sv_from(row->name)))
    return refuse_twice(l, "pass", row->name);
  return STATUS_OK;
}

static Status check_settings(const Loading *l, const Backend *b) {
  uint32_t count = 0;
  for (; b->settings && b->settings[count].name; count++) {
    const BackendSetting *one = &b->settings[count];
    if (!one->argument || !one->summary)
      return refuse(l, "setting '%s' of backend '%s' lacks its argument or summary", one->name,
                    b->name);
    if (strcmp(one->name, "whole") == 0)
      return refuse_word(l, "setting", one->name);
    for (uint32_t i = 0; i < count; i++)
      if (strcmp(b->settings[i].name, one->name) == 0)
        return refuse_twice(l, "setting", one->name);
  }
  if (count > BACKEND_MAX_SETTINGS)
    return refuse(l, "backend '%s' has more than %d settings", b->name, BACKEND_MAX_SETTINGS);
  return STATUS_OK;
}

static Status check_backend(const Loading *l, const Backend *b) {
  if (!is_name(b->name) || !b->id || !b->id[0])
    return refuse(l, "a backend has no name of lower-case letters, or no id");
  if (strcmp(b->name, "portable") == 0)
    return refuse_word(l, "backend", b->name);
  const char *missing = !b->summary      ? "summary"
                        : !b->knows      ? "function knows"
                        : !b->partition  ? "function partition"
                        : !b->preprocess ? "function preprocess"
                                         : NULL;
  if (missing)
    return refuse(l, "backend '%s' lacks its %s", b->name, missing);
  TRY(check_settings(l, b));
  for (uint32_t i = 0; b->passes && b->passes[i]; i++)
    if (!registry_pass(l->r, sv_from(b->passes[i])))
      return refuse(l, "backend '%s' wants a pass '%s', which there is not", b->name, b->passes[i]);
  if (registry_backend(l->r, sv_from(b->name)))
    return refuse_twice(l, "backend", b->name);
  return STATUS_OK;
}

static Status check_planner(const Loading *l, const Planner *p) {
  if (!is_name(p->name) || !p->summary || !p->place)
    return refuse(l, "a planner has no name of lower-case letters, no summary or no function");
  if (registry_planner(l->r, sv_from(p->name)))
    return refuse_twice(l, "planner", p->name);
  return STATUS_OK;
}

/* Appends a copy of row, which names the plug-in. */
#define APPEND_OWN(l, Type, list, count, row)                                                      \
  do {                                                                                             \
    Type *own = ARENA_NEW((l)->r->arena, Type);                                                    \
    *own = *(row);                                                                                 \
    own->plugin = (l)->plugin->name;                                                               \
    APPEND((l)->r, (l)->r->list, (l)->r->count, own);                                              \
  } while (0)

static Status add_pass(const Loading *l, const PassRow *row) {
  TRY(check_pass(l, row));
  APPEND_OWN(l, PassRow, passes, pass_count, row);
  return STATUS_OK;
}

static Status add_backend(const Loading *l, const Backend *backend) {
  TRY(check_backend(l, backend));
  static const BackendSetting no_settings[] = {{0}};
  Backend complete = *backend;
  if (!backend->settings)
    complete.settings = no_settings;
  APPEND_OWN(l, Backend, backends, backend_count, &complete);
  return STATUS_OK;
}

static Status add_planner(const Loading *l, const Planner *planner) {
  TRY(check_planner(l, planner));
  APPEND_OWN(l, Planner, planners, planner_count, planner);
  return STATUS_OK;
}

static Status add_reader(const Loading *l, const DelegateReader *reader) {
  if (!reader->id || !reader->id[0])
    return refuse(l, "a reader of delegates lacks its id");
  const char *missing = !reader->needs      ? "needs"
                        : !reader->check    ? "check"
                        : !reader->run      ? "run"
                        : !reader->describe ? "describe"
                                            : NULL;
  if (missing)
    return refuse(l, "the reader of delegates of '%s' lacks its function %s", reader->id, missing);
  if (delegate_reader(&l->r->readers, sv_from(reader->id)))
    return refuse(l, "there is a reader of delegates of '%s' already", reader->id);
  DelegateReaders *known = &l->r->readers;
  const DelegateReader **items =
      ARENA_ARRAY(l->r->arena, const DelegateReader *, (size_t)known->count + 1);
  memcpy(items, known->items, known->count * sizeof *items);
  DelegateReader *own = ARENA_NEW(l->r->arena, DelegateReader);
  *own = *reader;
  own->plugin = l->plugin->name;
  own->running = l->r->running;
  items[known->count++] = own;
  known->items = items;
  return STATUS_OK;
}

static Status check_translator(const Loading *l, const OnnxTranslator *t) {
  const OnnxOpRow *row = &t->row;
  if (!row->domain || !row->name || !row->name[0])
    return refuse(l, "a translator lacks the domain or the name of its operator");
  if (!t->translate)
    return refuse(l, "the translator of '%s' lacks its function translate", row->name);
  if (row->since < 1 || (row->until && row->until < row->since) || row->min_inputs < 0)
    return refuse(l, "the translator of '%s' has versions or a number of inputs that cannot be",
                  row->name);
  if (registry_translates(l->r, t))
    return refuse(l, "there is a translator of '%s' already", row->name);
  return STATUS_OK;
}

static Status add_translator(const Loading *l, const OnnxTranslator *translator) {
  TRY(check_translator(l, translator));
  APPEND_OWN(l, OnnxTranslator, translators, translator_count, translator);
  return STATUS_OK;
}

/* Ops come last: they stay known when something else is refused. */
static Status add_op(const Loading *l, const OpRow *row) {
  const char *fault = op_add(row, l->r->arena);
  return fault ? refuse(l, "%s", fault) : STATUS_OK;
}

static Status add_rows(const Loading *l) {
  const EtcPlugin *plugin = l->plugin;
  for (uint32_t i = 0; plugin->passes && plugin->passes[i]; i++)
    TRY(add_pass(l, plugin->passes[i]));
  for (uint32_t i = 0; plugin->backends && plugin->backends[i]; i++)
    TRY(add_backend(l, plugin->backends[i]));
  for (uint32_t i = 0; plugin->planners && plugin->planners[i]; i++)
    TRY(add_planner(l, plugin->planners[i]));
  for (uint32_t i = 0; plugin->readers && plugin->readers[i]; i++)
    TRY(add_reader(l, plugin->readers[i]));
  for (uint32_t i = 0; plugin->translators && plugin->translators[i]; i++)
    TRY(add_translator(l, plugin->translators[i]));
  for (uint32_t i = 0; plugin->ops && plugin->ops[i]; i++)
    TRY(add_op(l, plugin->ops[i]));
  return STATUS_OK;
}

Status registry_load(Registry *r, const char *path) {
  Loading l = {.r = r, .path = path};
  Registry before = *r;
  /* Names without a slash would be looked for in the folders of the system. */
  const char *file = strchr(path, '/') ? path : arena_printf(r->arena, "./%s", path);
  const char *why;
  void *object = shared_object_open(file, &why);
  if (!object)
    return refuse_object(&l, why);
  l.plugin = shared_object_variable(object, "etc_plugin");
  if (!l.plugin)
    return refuse(&l, "the shared object has no 'etc_plugin': it is not a plug-in of etc");
  if (!l.plugin->abi || strcmp(l.plugin->abi, ETC_PLUGIN_ABI) != 0)
    return refuse_build(&l);
  if (!l.plugin->name || !l.plugin->name[0])
    return refuse(&l, "the plug-in has no name");
  Status status = add_rows(&l);
  if (status == STATUS_OK)
    add_option(r, "plugin", arena_strdup(r->arena, sv_from(path)));
  else
    *r = before;
  file_note(r->sink, path);
  return status;
}

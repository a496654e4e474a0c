/* See model_names.h. Reading the file of --map; instruction_map.c writes it. */
#include "pipeline/model_names.h"

#include "support/json_read.h"
#include "support/keymap.h"

typedef struct MapReader {
  Session *s;
  const PteProgram *p;
  const char *path;
  JsonReader json;
  StrView **names; /* by method and instruction: a node of the model */
  KeyMap data;     /* by key of named data: item + 1 */
  StrView *items;
  uint32_t item_count;
  bool other; /* what is wrong is that it does not fit p */
} MapReader;

/* What is said of one instruction. */
typedef struct MapLine {
  uint64_t index;
  StrView call, node;
} MapLine;

static StrView call_of(const PteMethod *m, const PteInstruction *in) {
  if (in->kind == PTE_KERNEL_CALL)
    return m->operators[in->index];
  return in->kind == PTE_DELEGATE_CALL ? SV("delegate") : SV("jump");
}

static DiagPlace place_of(const MapReader *r) {
  DiagPlace place = diag_file(r->path);
  json_read_place(&r->json, &place.line, &place.column);
  return place;
}

/* The map is of another program than p. */
static bool is_other(MapReader *r, const char *format, ...) ETC_PRINTF(2, 3);
static bool is_other(MapReader *r, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *why = arena_vprintf(&r->s->arena, format, args);
  va_end(args);
  r->other |= !r->json.problem;
  return json_wrong(&r->json, why);
}

/* The first node with a name stands for all of them. */
static void read_nodes(MapReader *r, StrView *first) {
  StrView key, name;
  (void)json_enter_array(&r->json);
  while (json_next_item(&r->json)) {
    (void)json_enter_object(&r->json);
    while (json_next_key(&r->json, &key))
      if (!sv_eq(key, SV("name")))
        (void)json_skip(&r->json);
      else if (json_read_string(&r->json, &name) && !first->size)
        *first = name;
  }
}

static bool read_line(MapReader *r, MapLine *line) {
  StrView key;
  *line = (MapLine){0};
  (void)json_enter_object(&r->json);
  while (json_next_key(&r->json, &key)) {
    if (sv_eq(key, SV("index")))
      (void)json_read_uint(&r->json, &line->index);
    else if (sv_eq(key, SV("call")))
      (void)json_read_string(&r->json, &line->call);
    else if (sv_eq(key, SV("nodes")))
      read_nodes(r, &line->node);
    else
      (void)json_skip(&r->json);
  }
  return !r->json.problem;
}

/* As `etc lower --size` names it: of a delegate the backend, too. */
static StrView name_of(const MapReader *r, const PteMethod *m, const PteInstruction *in,
                       StrView node) {
  return in->kind == PTE_DELEGATE_CALL
             ? delegate_label(&r->s->arena, m->delegates[in->index].id, node)
             : node;
}

/* The lines of the method are those of its instructions, in order. */
static void read_instructions(MapReader *r, uint32_t method) {
  const PteMethod *m = &r->p->methods[method];
  MapLine line;
  uint32_t count = 0;
  unsigned depth = r->json.depth;
  r->names[method] = ARENA_ARRAY(&r->s->arena, StrView, (size_t)m->instruction_count + 1);
  (void)json_enter_array(&r->json);
  for (; json_next_item(&r->json) && read_line(r, &line); count++) {
    if (count == m->instruction_count)
      break;
    if (line.index != count) {
      (void)json_wrong(&r->json, "its instructions are not in order");
      return;
    }
    const PteInstruction *in = &m->instructions[count];
    if (!sv_eq(line.call, call_of(m, in))) {
      (void)is_other(r,
                     "its instruction %u of '" SV_FMT "' is '" SV_FMT "', here it is '" SV_FMT "'",
                     count, SV_ARG(m->name), SV_ARG(line.call), SV_ARG(call_of(m, in)));
      return;
    }
    r->names[method][count] = name_of(r, m, in, line.node);
  }
  if (!r->json.problem && (count != m->instruction_count || r->json.depth != depth))
    (void)is_other(r, "method '" SV_FMT "' has %u instructions here", SV_ARG(m->name),
                   m->instruction_count);
}

/* {"name": …, "instructions": […]}, in this order. */
static void read_method(MapReader *r) {
  StrView key, name = {0};
  (void)json_enter_object(&r->json);
  if (!json_next_key(&r->json, &key) || !sv_eq(key, SV("name")) ||
      !json_read_string(&r->json, &name)) {
    (void)json_wrong(&r->json, "expected the name of a method");
    return;
  }
  uint32_t method = pte_find_method(r->p, name);
  if (method == r->p->method_count) {
    (void)is_other(r, "it has a method '" SV_FMT "'", SV_ARG(name));
    return;
  }
  while (json_next_key(&r->json, &key))
    if (sv_eq(key, SV("instructions")))
      read_instructions(r, method);
    else
      (void)json_skip(&r->json);
}

/* {"key": …, "name": …} of a constant of a delegate. */
static void read_data(MapReader *r) {
  StrView member, key = {0}, name = {0};
  uint32_t *slot;
  (void)json_enter_object(&r->json);
  while (json_next_key(&r->json, &member))
    if (sv_eq(member, SV("key")))
      (void)json_read_string(&r->json, &key);
    else if (sv_eq(member, SV("name")))
      (void)json_read_string(&r->json, &name);
    else
      (void)json_skip(&r->json);
  if (!key.size || key.size > UINT32_MAX ||
      keymap_get(&r->data, key.data, (uint32_t)key.size, &slot))
    return;
  ARENA_PUSH(&r->s->arena, r->items, r->item_count, name);
  *slot = r->item_count;
}

static void read_all(MapReader *r) {
  StrView key;
  (void)json_enter_object(&r->json);
  while (json_next_key(&r->json, &key)) {
    bool methods = sv_eq(key, SV("methods"));
    if (!methods && !sv_eq(key, SV("data"))) {
      (void)json_skip(&r->json);
      continue;
    }
    (void)json_enter_array(&r->json);
    while (json_next_item(&r->json))
      (methods ? read_method : read_data)(r);
  }
  (void)json_read_end(&r->json);
}

/* Constant methods have no instructions, and no place in a map. */
static void check_complete(MapReader *r) {
  for (uint32_t i = 0; i < r->p->method_count; i++)
    if (!r->names[i] && r->p->methods[i].instruction_count)
      (void)is_other(r, "it has no method '" SV_FMT "'", SV_ARG(r->p->methods[i].name));
}

static StrView instruction_name(void *user, uint32_t method, uint32_t instruction) {
  const MapReader *r = user;
  return r->names[method] ? r->names[method][instruction] : SV("");
}

static StrView data_name(void *user, StrView key) {
  MapReader *r = user;
  uint32_t *slot, item = keymap_get(&r->data, key.data, (uint32_t)key.size, &slot);
  return item ? r->items[item - 1] : SV("");
}

Status map_names_read(Session *s, const char *path, const PteProgram *p, PteNames *out) {
  MappedFile file;
  MapReader *r = ARENA_NEW(&s->arena, MapReader);
  TRY(file_map(&file, &s->arena, &s->sink, path));
  *r = (MapReader){.s = s,
                   .p = p,
                   .path = path,
                   .names = ARENA_ARRAY(&s->arena, StrView *, (size_t)p->method_count + 1),
                   .data = keymap_make(&s->arena, s->ctx.names.seed)};
  /* Names outlive the file. */
  const char *text = arena_strdup(&s->arena, (StrView){(const char *)file.data, file.size});
  json_read_init(&r->json, (StrView){text, file.size}, &s->arena);
  file_unmap(&file);
  read_all(r);
  check_complete(r);
  *out = (PteNames){r, instruction_name, data_name};
  if (!r->json.problem)
    return STATUS_OK;
  return diag_report(&s->sink, DIAG_MAP_FILE, place_of(r), "%s: %s",
                     r->other ? "this is the map of another program" : "this is not a map",
                     r->json.problem);
}

/* See whole_program.h. The program is read back, so that a budget sees what `etc size` sees; what
 * the model calls things is known from the graphs that it was made of. */
#include "pipeline/whole_program.h"

#include <math.h>

#include "ops/delegate.h"
#include "pipeline/budget.h"
#include "pipeline/budget_time.h"
#include "support/keymap.h"

typedef struct Names {
  Session *s;
  const InstructionMap *maps;
  KeyMap data; /* by key of named data: item + 1 */
  StrView *items;
  uint32_t count, capacity;
} Names;

static StrView first_name(const Graph *g, const LocId *locs, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    StrView name = graph_place(g, locs[i]).node;
    if (name.size)
      return name;
  }
  return SV("");
}

/* "XnnpackBackend from /stem/Conv" */
static StrView delegate_name(const Names *names, const Graph *g, NodeId call) {
  const DelegateOrigin *origin = delegate_origin(g, call);
  StrView name = origin ? first_name(g, origin->locs, origin->count) : SV("");
  if (!name.size)
    return name;
  return sv_from(arena_printf(&names->s->arena, SV_FMT " from " SV_FMT,
                              SV_ARG(node_str(g, call, DELEGATE_ARG_BACKEND)), SV_ARG(name)));
}

/* The node of the model that the instruction is of. */
static StrView instruction_name(void *user, uint32_t method, uint32_t instruction) {
  const Names *names = user;
  if (method >= names->s->program.method_count || instruction >= names->maps[method].count)
    return SV("");
  const Graph *g = names->s->program.methods[method].graph;
  NodeId n = names->maps[method].nodes[instruction];
  if (!n)
    return SV("");
  return op_has_trait(node_cget(g, n)->op, OP_DELEGATE) ? delegate_name(names, g, n)
                                                        : node_place(g, n).node;
}

static StrView data_name(void *user, StrView key) {
  Names *names = user;
  uint32_t *slot, item = keymap_get(&names->data, key.data, (uint32_t)key.size, &slot);
  return item ? names->items[item - 1] : SV("");
}

/* The names of the constants that the call finds by key. */
static void add_data(Names *names, const Graph *g, NodeId call) {
  Arena *arena = &names->s->arena;
  StrView keys = node_str(g, call, DELEGATE_ARG_KEYS);
  uint32_t count = node_list_count(g, call, DELEGATE_ARG_DATA);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t *slot;
    ValueId v = node_list_value(g, call, DELEGATE_ARG_DATA, i);
    StrView key = delegate_next_key(&keys), name = intern_get(&g->ctx->names, g->values[v].name);
    if (!name.size || keymap_get(&names->data, key.data, (uint32_t)key.size, &slot))
      continue;
    names->items = arena_push(arena, names->items, names->count, sizeof *names->items);
    names->items[names->count++] = name;
    *slot = names->count;
  }
}

static Names names_of(Session *s, const InstructionMap *maps) {
  Names names = {.s = s, .maps = maps, .data = keymap_make(&s->arena, s->ctx.names.seed)};
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    const Graph *g = s->program.methods[i].graph;
    for (FOR_NODES(g, n))
      if (op_has_trait(g->nodes[n].op, OP_DELEGATE))
        add_data(&names, g, n);
  }
  return names;
}

static void show_size(Session *s, const PteProgram *p, const PteSize *size) {
  StrBuf text;
  strbuf_init(&text);
  if (s->size_json) {
    JsonWriter w;
    json_init(&w, &text, true);
    json_open_object(&w);
    pte_size_json(p, size, &w);
    json_close_object(&w);
    strbuf_append_char(&text, '\n');
  } else {
    pte_size_text(p, size, s->sink.verbose, &text);
  }
  s->manager.options.print(s->manager.options.print_user, strbuf_cstr(&text), text.size);
  strbuf_release(&text);
}

static Status check_budget(Session *s, const PteProgram *p, const PteSize *size,
                           const PteNames *names) {
  BudgetMeasures measures = {.sqnr = s->program.sqnr,
                             .worst = isnan(s->program.sqnr) ? "no output of floats was compared"
                                                             : s->program.worst};
  BudgetResult result;
  measures.time = program_time(&s->program, &s->arena, &measures.slow);
  if (budget_check(s, s->budget, p, size, names, &measures, &result) != ETC_OK)
    return STATUS_USAGE;
  return budget_report(s, &result);
}

static Status look(Session *s, const PteProgram *p, const InstructionMap *maps) {
  Names names = names_of(s, maps);
  PteNames model = {&names, instruction_name, data_name};
  PteSize size = pte_size(p, &model, &s->arena);
  if (s->size && s->manager.options.print)
    show_size(s, p, &size);
  return s->budget ? check_budget(s, p, &size, &model) : STATUS_OK;
}

bool session_wants_whole(const Session *s) { return s->budget || s->size; }

Status session_check_whole(Session *s, AtomicFile *file, const InstructionMap *maps) {
  MappedFile view;
  PteProgram p;
  TRY(atomic_file_view(file, &view));
  Status status = pte_program_open_bytes(&p, &s->sink, file->path, view.data, view.size);
  if (status == STATUS_OK) {
    p.readers = s->ctx.readers;
    status = look(s, &p, maps);
    pte_program_close(&p);
  }
  file_unmap(&view);
  return status;
}

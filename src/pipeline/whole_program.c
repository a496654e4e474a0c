/* See whole_program.h. The program is read back, so that a budget sees what `etc size` sees, with
 * the names of the model. */
#include "pipeline/whole_program.h"

#include "pipeline/budget.h"
#include "pipeline/budget_time.h"
#include "pipeline/model_names.h"

static void show_size(Session *s, const PteProgram *p, const PteSize *size) {
  StrBuf text = {0};
  if (s->size_json) {
    JsonWriter w;
    json_init(&w, &text, s->sink.format != DIAG_JSON);
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
  BudgetResult result;
  uint32_t count = s->program.method_count;
  BudgetMeasures *measures = ARENA_ARRAY(&s->arena, BudgetMeasures, count);
  for (uint32_t i = 0; i < count; i++) {
    const Method *m = &s->program.methods[i];
    measures[i] = (BudgetMeasures){.sqnr = m->sqnr, .worst = m->worst};
    measures[i].time = method_time(m->graph, &s->arena, &measures[i].slow);
  }
  const BudgetSubject of = {p, size, names, measures, count};
  if (budget_check(s, s->budget, &of, &result) != ETC_OK)
    return STATUS_USAGE;
  return budget_report(s, &result);
}

static Status look(Session *s, const PteProgram *p, const InstructionMap *maps) {
  PteNames model = model_names(s, maps);
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

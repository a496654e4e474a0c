/* etc size: what a program takes of flash and of SRAM. */
#include "command.h"
#include "pipeline/budget.h"
#include "pipeline/model_names.h"
#include "pte/size.h"

static void print(const CommandLine *line, const PteProgram *p, const PteSize *size,
                  const BudgetResult *budget, StrBuf *out) {
  Session *s = line->session;
  if (!command_line_has(line, OPT_JSON)) {
    pte_size_text(p, size, s->sink.verbose, out);
    if (budget) {
      strbuf_append(out, SV("budget:\n"));
      budget_text(budget, out);
    }
    return;
  }
  JsonWriter w;
  json_init(&w, out, true);
  json_open_object(&w);
  pte_size_json(p, size, &w);
  if (budget)
    budget_json(budget, &w);
  json_close_object(&w);
  strbuf_append_char(out, '\n');
}

/* Measures the program, and holds it against the budget, if there is one. */
static EtcStatus measure(const CommandLine *line, const PteProgram *p, PteSize *size,
                         BudgetResult *budget) {
  Session *s = line->session;
  const char *map = command_line_value(line, OPT_SIZE_MAP);
  PteNames model;
  EtcStatus status = ETC_OK;
  if (map)
    status = session_status(map_names_read(s, map, p, &model));
  if (status != ETC_OK)
    return status;
  *size = pte_size(p, map ? &model : NULL, &s->arena);
  const BudgetSubject of = {.program = p, .size = size, .names = map ? &model : NULL};
  return s->budget ? budget_check(s, s->budget, &of, budget) : ETC_OK;
}

int cmd_size(const CommandLine *line) {
  Session *s = line->session;
  PteProgram program;
  TRY(expect_arguments(line, 1, "a program"));
  TRY(command_line_apply(line));
  TRY(open_program(line, line->arguments[0], NULL, &program));
  program.readers = s->ctx.readers;
  BudgetResult budget = {0};
  PteSize size;
  StrBuf text = {0};
  EtcStatus status = measure(line, &program, &size, &budget);
  if (status == ETC_OK)
    print(line, &program, &size, s->budget ? &budget : NULL, &text);
  pte_program_close(&program);
  int printed = print_and_release(line, &text);
  if (status != ETC_OK)
    return (int)status;
  return budget.over ? ETC_FAILED : printed;
}

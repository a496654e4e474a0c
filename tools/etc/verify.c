/* etc verify: everything about a program that can be checked without running it. */
#include <inttypes.h>

#include "command.h"
#include "ir/verify.h"
#include "ops/delegate.h"
#include "pte/inspect.h"
#include "pte/verify_plan.h"

/* Every method is looked at, also after a fault in an earlier one. */
static Status verify_methods(Session *s, StrBuf *out) {
  Status status = STATUS_OK;
  const PteFile *pte = &s->sources[0]->pte;
  for (uint32_t i = 0; i < s->method_count; i++) {
    Graph *g = s->methods[i].graph;
    Status one = graph_verify(g, "reading");
    if (one == STATUS_OK)
      one = graph_verify_kernels(g);
    if (one == STATUS_OK)
      one = pte_verify_plan(g);
    if (one == STATUS_OK)
      one = delegate_check(g, false, DIAG_PTE_DELEGATE);
    status = status == STATUS_OK ? one : status;
    const PteMemory memory = pte_method_memory(&pte->program.methods[i]);
    strbuf_append(out, SV("method '"));
    strbuf_append_printable(out, intern_get(&s->ctx.names, g->name));
    strbuf_printf(out, "': %u operations, arena %" PRIu64 " bytes: %s\n", g->live_nodes,
                  memory.arena, one == STATUS_OK ? "ok" : "NOT ok");
  }
  return status;
}

int cmd_verify(const CommandLine *line) {
  Session *s = line->session;
  EtcStatus status = expect_arguments(line, 1, "a program");
  if (status == ETC_OK)
    status = session_add_source(s, "forward", line->arguments[0]);
  if (status == ETC_OK) {
    s->sources[0]->kind = SOURCE_PTE; /* whatever its name is */
    status = session_status(session_import(s, true));
  }
  if (status != ETC_OK)
    return (int)status;
  StrBuf text;
  strbuf_init(&text);
  status = session_status(verify_methods(s, &text));
  int printed = print_and_release(line, &text);
  return status != ETC_OK ? (int)status : printed;
}

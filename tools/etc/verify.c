/* etc verify: everything about programs that can be checked without running it. */
#include <inttypes.h>

#include "command.h"
#include "ir/verify.h"
#include "ops/delegate.h"
#include "pte/inspect.h"
#include "pte/verify_plan.h"

/* All that can be wrong with it was found when it was read. */
static void print_constant(const ConstantMethod *m, StrBuf *out) {
  strbuf_append(out, SV("method '"));
  strbuf_append_printable(out, m->name);
  strbuf_printf(out, "': %u constant%s: ok\n", m->count, m->count == 1 ? "" : "s");
}

/* Every method is looked at, also after a fault in an earlier one. */
static Status verify_methods(PteFile *pte, const Context *ctx, StrBuf *out) {
  Status status = STATUS_OK;
  for (uint32_t i = 0; i < pte->method_count; i++) {
    if (pte->constants[i]) {
      print_constant(pte->constants[i], out);
      continue;
    }
    Graph *g = pte->methods[i];
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
    strbuf_append_printable(out, intern_get(&ctx->names, g->name));
    strbuf_printf(out, "': %u operation%s, arena %" PRIu64 " bytes: %s\n", g->live_nodes,
                  g->live_nodes == 1 ? "" : "s", memory.arena, one == STATUS_OK ? "ok" : "NOT ok");
  }
  return status;
}

/* "-" is standard input, which is mapped then. */
static Status read_program(Session *s, const char *path, MappedFile *mapped, PtdFile *external,
                           PteFile *pte) {
  s->ctx.model_path = sv_from(path);
  if (strcmp(path, "-") != 0)
    return pte_read(&s->ctx, path, external, pte);
  TRY(file_map_stdin(mapped, &s->arena, &s->sink));
  s->ctx.model_path = sv_from(mapped->path);
  return pte_read_bytes(&s->ctx, mapped->path, mapped->data, mapped->size, external, pte);
}

/* named: with the name of the file before its methods. */
static Status verify_file(Session *s, const char *path, bool named, StrBuf *out) {
  PteFile pte;
  MappedFile mapped = {.fd = -1};
  PtdFile external;
  Status status = STATUS_OK;
  if (s->external_data)
    TRY(ptd_open(&external, &s->sink, s->ctx.names.seed, s->external_data));
  status = read_program(s, path, &mapped, s->external_data ? &external : NULL, &pte);
  if (status == STATUS_OK) {
    if (named) {
      strbuf_append_printable(out, s->ctx.model_path);
      strbuf_append(out, SV(":\n"));
    }
    status = verify_methods(&pte, &s->ctx, out);
    pte_close(&pte);
  }
  if (mapped.fd >= 0)
    file_unmap(&mapped);
  if (s->external_data)
    ptd_close(&external);
  return status;
}

int cmd_verify(const CommandLine *line) {
  EtcStatus status = expect_some(line, "a program");
  if (status == ETC_OK)
    status = command_line_apply(line);
  if (status != ETC_OK)
    return (int)status;
  StrBuf text;
  strbuf_init(&text);
  for (uint32_t i = 0; i < line->argument_count; i++) {
    EtcStatus one = session_status(
        verify_file(line->session, line->arguments[i], line->argument_count > 1, &text));
    status = status == ETC_OK ? one : status;
  }
  int printed = print_and_release(line, &text);
  return status != ETC_OK ? (int)status : printed;
}

/* etc verify: everything about programs that can be checked without running it. */
#include <inttypes.h>

#include "command.h"
#include "ir/verify.h"
#include "ops/delegate.h"
#include "pte/bundle.h"
#include "pte/inspect.h"
#include "pte/verify_plan.h"

/* All that can be wrong with it was found when it was read. */
static void print_constant(const ConstantMethod *m, StrBuf *out) {
  strbuf_append(out, SV("method '"));
  strbuf_append_printable(out, m->name);
  strbuf_printf(out, "': %u constant%s: ok\n", m->count, m->count == 1 ? "" : "s");
}

/* Every method is looked at, also after a fault in an earlier one. */
static Status verify_methods(PteFile *pte, StrBuf *out) {
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
    strbuf_append_printable(out, graph_name(g));
    strbuf_printf(out, "': %u operation%s, arena %" PRIu64 " bytes: %s\n", g->live_nodes,
                  g->live_nodes == 1 ? "" : "s", memory.arena, one == STATUS_OK ? "ok" : "NOT ok");
  }
  return status;
}

static void print_sets(const BundleFile *b, bool good, StrBuf *out) {
  uint32_t sets = 0;
  for (uint32_t i = 0; i < b->count; i++)
    sets += b->suites[i].count;
  strbuf_printf(out, "%u test set%s: %s\n", sets, sets == 1 ? "" : "s", good ? "ok" : "NOT ok");
}

static Status verify_read(Session *s, PteFile *pte, const BundleFile *bundle, bool named,
                          StrBuf *out) {
  if (named) {
    strbuf_append_printable(out, s->ctx.model_path);
    strbuf_append(out, SV(":\n"));
  }
  Status status = verify_methods(pte, out);
  if (!bundle)
    return status;
  Status sets = bundle_check(bundle, &pte->program);
  print_sets(bundle, sets == STATUS_OK, out);
  return status == STATUS_OK ? sets : status;
}

/* bytes: those of the file, which were mapped. */
static Status verify_bytes(Session *s, const MappedFile *bytes, PtdFile *external, bool named,
                           StrBuf *out) {
  PteFile pte;
  BundleFile bundle;
  const uint8_t *data = bytes->data;
  uint64_t size = bytes->size;
  bool bundled = bundle_is(data, size) || sv_has_suffix(sv_from(bytes->path), SV(".bpte"));
  if (bundled) {
    TRY(bundle_open_bytes(&bundle, &s->sink, bytes->path, data, size));
    data = bundle.program;
    size = bundle.program_size;
  }
  s->ctx.model_path = sv_from(bytes->path);
  Status status = pte_read_bytes(&s->ctx, bytes->path, data, size, external, &pte);
  if (status == STATUS_OK) {
    status = verify_read(s, &pte, bundled ? &bundle : NULL, named, out);
    pte_close(&pte);
  }
  if (bundled)
    bundle_close(&bundle);
  return status;
}

/* named: with the name of the file before its methods. */
static Status verify_file(Session *s, const char *path, bool named, StrBuf *out) {
  MappedFile mapped;
  PtdFile external;
  if (s->external_data)
    TRY(ptd_open(&external, &s->sink, s->ctx.names.seed, s->external_data));
  s->ctx.model_path = sv_from(path);
  Status status = strcmp(path, "-") == 0 ? file_map_stdin(&mapped, &s->arena, &s->sink)
                                         : file_map(&mapped, &s->arena, &s->sink, path);
  if (status == STATUS_OK) {
    status = verify_bytes(s, &mapped, s->external_data ? &external : NULL, named, out);
    file_unmap(&mapped);
  }
  if (s->external_data)
    ptd_close(&external);
  return status;
}

int cmd_verify(const CommandLine *line) {
  TRY(expect_some(line, "a program"));
  TRY(command_line_apply(line));
  EtcStatus status = ETC_OK;
  StrBuf text = {0};
  for (uint32_t i = 0, read = 0; i < line->argument_count; i++)
    if (path_is_stdin(line->arguments[i]) && read++)
      return (int)session_usage(line->session, "", "name it once",
                                "standard input can be read only once");
  for (uint32_t i = 0; i < line->argument_count; i++) {
    EtcStatus one = session_status(
        verify_file(line->session, line->arguments[i], line->argument_count > 1, &text));
    status = status == ETC_OK ? one : status;
  }
  int printed = print_and_release(line, &text);
  return status != ETC_OK ? (int)status : printed;
}

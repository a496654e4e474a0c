/* Any bytes as .etir text. What parses is verified, printed and parsed again: the second text must
 * be the first. What does not parse must be refused with a message.
 *
 * Seeds are the .etir goldens (tools/fuzz-smoke gathers them) and the graphs of the official cases
 * (seeds.py). */
#include "backends/backend.h"
#include "ir/text.h"
#include "ir/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void drop(void *user, const char *text, size_t size) {
  (void)user;
  (void)text;
  (void)size;
}

static void check_round_trip(Context *ctx, const Graph *g) {
  StrBuf text = {0}, where = {0};
  Graph **again;
  uint32_t count;
  graph_print(g, (PrintOptions){.locations = true, .full_constants = true}, &text);
  StrView view = {strbuf_cstr(&text), text.size};
  if (graph_parse(ctx, view, SV("printed.etir"), NULL, &again, &count) != STATUS_OK || count != 1)
    BUG("printed text does not parse:\n%s", strbuf_cstr(&text));
  if (graph_differs(g, again[0], &where))
    BUG("not the same after a round trip: %s", strbuf_cstr(&where));
  graph_free(again[0]);
  strbuf_release(&text);
  strbuf_release(&where);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  DiagSink sink;
  Context ctx;
  Graph **graphs;
  uint32_t count;
  diag_sink_init(&sink);
  sink.write = drop;
  context_init(&ctx, &sink);
  ctx.readers = &backend_readers;
  StrView text = {(const char *)data, size};
  if (graph_parse(&ctx, text, SV("fuzz.etir"), NULL, &graphs, &count) == STATUS_OK) {
    for (uint32_t i = 0; i < count; i++) {
      check_round_trip(&ctx, graphs[i]);
      (void)graph_verify_kernels(graphs[i]);
    }
    for (uint32_t i = 0; i < count; i++)
      graph_free(graphs[i]);
  } else if (sink.errors == 0) {
    BUG("a text was refused without a word");
  }
  context_release(&ctx);
  diag_sink_release(&sink);
  return 0;
}

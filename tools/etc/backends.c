/* etc backends: what --backend knows. */
#include "command.h"
#include "backends/backend.h"

static void print_backend(const Backend *b, StrBuf *text) {
  strbuf_printf(text, "%-10s %s\n", b->name, b->summary);
  for (const BackendSetting *s = b->settings; s->name; s++) {
    size_t begin = text->size;
    strbuf_printf(text, "  %s:%s=%s", b->name, s->name, s->argument);
    strbuf_printf(text, "%*s %s\n", (int)(begin + 27 > text->size ? begin + 27 - text->size : 0),
                  "", s->summary);
  }
}

int cmd_backends(const CommandLine *line) {
  TRY(expect_arguments(line, 0, ""));
  TRY(command_line_apply(line));
  StrBuf text = {0};
  strbuf_printf(&text, "%-10s %s\n", "portable",
                "The kernels of the runtime, which run what no backend takes");
  const Registry *r = &line->session->registry;
  for (uint32_t i = 0; i < r->backend_count; i++)
    print_backend(r->backends[i], &text);
  return print_and_release(line, &text);
}

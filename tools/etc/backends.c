/* etc backends: what --backend knows. */
#include "command.h"
#include "backends/backend.h"

int cmd_backends(const CommandLine *line) {
  EtcStatus status = expect_arguments(line, 0, "");
  if (status != ETC_OK)
    return (int)status;
  StrBuf text;
  strbuf_init(&text);
  for (const Backend *const *b = backends; *b; b++)
    strbuf_printf(&text, "%-10s %s\n", (*b)->name, (*b)->summary);
  return print_and_release(line, &text);
}

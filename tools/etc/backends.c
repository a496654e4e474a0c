/* etc backends: what --backend knows. */
#include "command.h"
#include "pipeline/settings.h"

int cmd_backends(const CommandLine *line) {
  EtcStatus status = expect_arguments(line, 0, "");
  if (status != ETC_OK)
    return (int)status;
  StrBuf text;
  strbuf_init(&text);
  for (const BackendRow *row = backend_rows; row->name; row++)
    strbuf_printf(&text, "%-10s %s%s\n", row->name, row->summary,
                  row->available ? "" : " (not available yet)");
  return print_and_release(line, &text);
}

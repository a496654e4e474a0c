/* etc version: of etc and of the formats on both sides; the licences of what is in the binary. */
#include "command.h"
#include "etc_revision.h"

static const struct {
  const char *title, *text;
} licenses[] = {
#include "etc_licenses.inc"
};

static void print_licenses(StrBuf *out) {
  for (size_t i = 0; i < COUNT_OF(licenses); i++) {
    strbuf_printf(out, "%s--- %s ---\n\n", i ? "\n" : "", licenses[i].title);
    strbuf_append(out, sv_from(licenses[i].text));
  }
}

static void print_versions(StrBuf *out) {
  strbuf_printf(out,
                "etc %s (" ETC_REVISION ", " ETC_REVISION_DATE ")\n"
                "reads ONNX: IR version up to %d, opset %d to %d\n"
                "writes ExecuTorch programs: for runtime 1.4.1\n"
                "matrix products of the interpreter: %s\n",
                etc_version(), ONNX_IR_VERSION_NEWEST, ONNX_OPSET_OLDEST, ONNX_OPSET_NEWEST,
#if defined ETC_HAVE_BLAS && !defined ETC_STATIC_BINARY
                "OpenBLAS"
#else
                "built in"
#endif
  );
}

int cmd_version(const CommandLine *line) {
  TRY(expect_arguments(line, 0, ""));
  StrBuf text = {0};
  if (command_line_has(line, OPT_LICENSES))
    print_licenses(&text);
  else
    print_versions(&text);
  return print_and_release(line, &text);
}

/* etc version: of etc and of the formats on both sides. */
#include "command.h"
#include "etc_revision.h"

int cmd_version(const CommandLine *line) {
  EtcStatus status = expect_arguments(line, 0, "");
  if (status != ETC_OK)
    return (int)status;
  StrBuf text;
  strbuf_init(&text);
  strbuf_printf(&text,
                "etc %s (" ETC_REVISION ", " ETC_REVISION_DATE ")\n"
                "reads ONNX: IR version up to %d, opset %d to %d\n"
                "writes ExecuTorch programs: for runtime 1.4.1\n"
                "matrix products of the interpreter: %s\n",
                etc_version(), ONNX_IR_VERSION_NEWEST, ONNX_OPSET_OLDEST, ONNX_OPSET_NEWEST,
#ifdef ETC_HAVE_BLAS
                "OpenBLAS"
#else
                "built in"
#endif
  );
  return print_and_release(line, &text);
}

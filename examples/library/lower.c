/* Lowers a model with libetc: lower MODEL.onnx OUT.pte [NAME=SIZE...]. Messages go to standard
 * error. */
#include <stdio.h>

#include <etc/etc.h>

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: lower MODEL.onnx OUT.pte [NAME=SIZE...]\n");
    return ETC_USAGE;
  }
  EtcSession *session = etc_session_new();
  EtcStatus status = etc_session_add_method(session, "forward", argv[1]);
  for (int i = 3; i < argc && status == ETC_OK; i++)
    status = etc_session_set(session, "dim", argv[i]);
  if (status == ETC_OK)
    status = etc_lower(session, argv[2]);
  etc_session_free(session);
  if (status == ETC_OK)
    printf("%s (etc %s)\n", argv[2], etc_version());
  return (int)status;
}

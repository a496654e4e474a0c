/* See run_constant.h. */
#include "run_constant.h"

#include <errno.h>
#include <sys/stat.h>

#include "interp/npy.h"

static Status write_item(Session *s, const ConstantItem *item, const char *stem) {
  if (item->kind == CONSTANT_TEXT)
    return atomic_file_whole(&s->arena, &s->sink, arena_printf(&s->arena, "%s.txt", stem),
                             item->text);
  bool truth = item->i != 0;
  int64_t number = item->i;
  double real = item->f;
  Tensor t = {.dtype = DTYPE_I64, .data = &number, .capacity = sizeof number};
  if (item->kind == CONSTANT_BOOL)
    t = (Tensor){.dtype = DTYPE_BOOL, .data = &truth, .capacity = sizeof truth};
  if (item->kind == CONSTANT_FLOAT)
    t = (Tensor){.dtype = DTYPE_F64, .data = &real, .capacity = sizeof real};
  if (item->kind == CONSTANT_TENSOR) {
    t = (Tensor){.dtype = item->dtype, .rank = item->rank, .capacity = item->bytes.size};
    t.data = arena_alloc(&s->arena, (size_t)item->bytes.size + 1);
    memcpy(t.data, item->bytes.data, (size_t)item->bytes.size);
    if (item->rank)
      memcpy(t.dims, item->dims, item->rank * sizeof *t.dims);
  }
  return npy_write(&t, &s->arena, &s->sink, arena_printf(&s->arena, "%s.npy", stem));
}

static Status write_items(Session *s, const ConstantMethod *m, const char *folder) {
  if (mkdir(folder, 0777) != 0 && errno != EEXIST)
    return diag_report(&s->sink, DIAG_FILE_WRITE, DIAG_NOWHERE, "cannot make folder '%s': %s",
                       folder, strerror(errno));
  for (uint32_t i = 0; i < m->count; i++)
    TRY(write_item(s, &m->items[i], arena_printf(&s->arena, "%s/output_%u", folder, i)));
  return STATUS_OK;
}

EtcStatus run_constant(const CommandLine *line, const ConstantMethod *m) {
  if (command_line_has(line, OPT_PROFILE))
    return session_usage(line->session, "--profile", "leave it out",
                         "a constant method runs no kernels");
  Session *s = line->session;
  if (command_line_has(line, OPT_INPUT))
    return session_usage(s, "--input", "leave --input out", "method '" SV_FMT "' has no inputs",
                         SV_ARG(m->name));
  const char *folder = command_line_value(line, OPT_RUN_OUTPUT);
  if (folder)
    return session_status(write_items(s, m, folder));
  StrBuf text = {0};
  for (uint32_t i = 0; i < m->count; i++) {
    strbuf_printf(&text, "output_%u  ", i);
    constant_item_print(&m->items[i], &text);
    strbuf_append_char(&text, '\n');
  }
  return (EtcStatus)print_and_release(line, &text);
}

/* What a session tells others: its graphs as text, its times, its methods by name. */
#include "pipeline/session.h"

#include "pipeline/constant_methods.h"

EtcStatus session_status(Status status) {
  switch (status) {
  case STATUS_OK:
    return ETC_OK;
  case STATUS_USAGE:
    return ETC_USAGE;
  case STATUS_INTERNAL:
    return ETC_INTERNAL;
  default:
    return ETC_FAILED;
  }
}

DiagPlace session_option_place(const Session *s, const char *option) {
  DiagPlace place = DIAG_NOWHERE;
  if (s->program.source_count == 1)
    place.file = source_name(s->program.sources[0]);
  place.option = sv_from(option);
  return place;
}

void session_print_times(const Session *s) {
  const ManagerOptions *o = &s->manager.options;
  if (!s->time_passes || !o->print)
    return;
  StrBuf text = {0};
  manager_print_times(&s->manager, s->time_json, &text);
  o->print(o->print_user, text.data, text.size);
  strbuf_release(&text);
}

/* The options of the whole program that a textual graph has to bring along, in arena. */
static StrView *program_texts(const Session *s, Arena *arena, uint32_t *count) {
  const Program *p = &s->program;
  StrView *texts = ARENA_ARRAY(arena, StrView, (size_t)s->shared_count + p->constant_count + 1);
  *count = 0;
  for (uint32_t i = 0; i < s->shared_count; i++)
    texts[(*count)++] = sv_from(arena_printf(arena, "share-state=" SV_FMT, SV_ARG(s->shared[i])));
  for (uint32_t i = 0; i < p->constant_count; i++) {
    StrView text = session_constant_text(&p->constants[i], arena);
    if (text.size)
      texts[(*count)++] = text;
  }
  return texts;
}

void session_print(const Session *s, PrintOptions options, StrBuf *out) {
  Arena scratch = {0};
  options.program = program_texts(s, &scratch, &options.program_count);
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    if (i)
      strbuf_append_char(out, '\n');
    graph_print(s->program.methods[i].graph, options, out);
    options.program_count = 0; /* the first method has brought them along */
  }
  session_print_constants(s, out);
  arena_release(&scratch);
}

Status session_method(Session *s, StrView name, Method **out) {
  StrBuf list = {0};
  *out = NULL;
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    StrView each = graph_name(s->program.methods[i].graph);
    if (name.size ? sv_eq(each, name) : s->program.method_count == 1)
      *out = &s->program.methods[i];
    strbuf_append(&list, i ? SV(", ") : SV(""));
    strbuf_append_printable(&list, each);
  }
  for (uint32_t i = 0; i < s->program.constant_count; i++) {
    strbuf_append(&list, list.size ? SV(", ") : SV(""));
    strbuf_append_printable(&list, s->program.constants[i].name);
  }
  Status status = STATUS_OK;
  if (!*out) {
    DiagPlace place = DIAG_NOWHERE;
    place.option = SV("--method");
    Diag *d = diag_begin(&s->sink, DIAG_USAGE, place);
    if (name.size)
      diag_message(d, "there is no method '" SV_FMT "'", SV_ARG(name));
    else if (s->program.method_count)
      diag_message(d, "the program has %u methods, and none is chosen", s->program.method_count);
    else
      diag_message(d, "the program has constant methods only, and none is chosen");
    diag_hint(d, "the methods are: %s", strbuf_cstr(&list));
    status = diag_end(d);
  }
  strbuf_release(&list);
  return status;
}

/* See record.h. */
#include "record.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/backend.h"
#include "backends/xnnpack/read.h"
#include "pte/inspect.h"
#include "pte/size.h"

enum { BYTES_DIGITS = 16 }; /* words of so many hexadecimal digits are hashes of bytes */

const char *const record_columns[RECORD_COLUMNS] = {[RECORD_IMPORT] = "import",
                                                    [RECORD_SOURCE] = "source",
                                                    [RECORD_CORE] = "core",
                                                    [RECORD_EDGE] = "edge",
                                                    [RECORD_TO_BACKEND] = "to_backend",
                                                    [RECORD_TO_EXECUTORCH] = "to_executorch",
                                                    [RECORD_PROGRAM] = "program",
                                                    [RECORD_PASSES] = "passes",
                                                    [RECORD_TOLD] = "told",
                                                    [RECORD_REPORT] = "report"};

void record_init(Record *r, const char *folder, int digits) {
  *r = (Record){.folder = folder, .digits = digits};
  for (unsigned i = 0; i < RECORD_COLUMNS; i++)
    r->texts[i] = (StrBuf){0};
}

void record_release(Record *r) {
  for (unsigned i = 0; i < RECORD_COLUMNS; i++)
    strbuf_release(&r->texts[i]);
}

/* --- graphs and what is known of them --- */

Status record_run(Record *r, Session *s) {
  static const StageId stages[] = {STAGE_IMPORT, STAGE_SOURCE,     STAGE_CORE,
                                   STAGE_EDGE,   STAGE_TO_BACKEND, STAGE_TO_EXECUTORCH};
  for (size_t i = 0; i < COUNT_OF(stages); i++) {
    TRY(session_run(s, stages[i]));
    session_print(s, (PrintOptions){.locations = true}, &r->texts[RECORD_IMPORT + i]);
  }
  return STATUS_OK;
}

static void append_file(StrBuf *out, const char *path) {
  static char part[1 << 14];
  FILE *f = fopen(path, "rb");
  for (size_t n; f && (n = fread(part, 1, sizeof part, f)) > 0;)
    strbuf_append(out, (StrView){part, n});
  if (f)
    fclose(f);
}

void record_facts(Record *r, const Session *s, const StrBuf *messages, const char *report) {
  const Facts *f = &s->program.facts;
  for (uint32_t i = 0; i < f->run_count; i++) {
    const PassRun *run = &f->runs[i];
    strbuf_printf(&r->texts[RECORD_PASSES], "%s %u -> %u", run->row->name, run->nodes_before,
                  run->nodes_after);
    for (uint32_t k = 0; k < run->stat_count; k++)
      strbuf_printf(&r->texts[RECORD_PASSES], ", %" PRIu64 " %s", (uint64_t)run->stats[k].count,
                    run->stats[k].name);
    strbuf_append_char(&r->texts[RECORD_PASSES], '\n');
  }
  strbuf_append(&r->texts[RECORD_TOLD], (StrView){messages->data, messages->size});
  append_file(&r->texts[RECORD_REPORT], report);
  const char *begin = strstr(strbuf_cstr(&r->texts[RECORD_REPORT]), "\"program\"");
  if (begin) /* after the version of etc */
    memset(r->texts[RECORD_REPORT].data, ' ', (size_t)(begin - r->texts[RECORD_REPORT].data));
}

/* --- delegates --- */

static void list(StrBuf *out, const char *name, const uint32_t *items, uint32_t count) {
  strbuf_printf(out, " %s", name);
  for (uint32_t i = 0; i < count; i++)
    strbuf_printf(out, " %u", items[i]);
}

static void append_value(StrBuf *out, const XrValue *v, uint64_t constant_bytes) {
  strbuf_printf(out, "%u: %u", v->position, v->datatype);
  list(out, "dims", v->dims, v->rank);
  strbuf_printf(out,
                " constant %u of %" PRIu64 " external %u flags %u scale %g zero %d axis %u group "
                "%u nonbatch %u scales %u\n",
                v->constant, constant_bytes, v->external, v->flags, (double)v->scale, v->zero_point,
                v->channel_dim, v->group_size, v->nonbatch_dims, v->scale_count);
}

static void append_node(StrBuf *out, const XrNode *n) {
  const XrWindow *w = &n->window;
  strbuf_printf(out, "%s", xr_name(n->kind));
  list(out, "of", n->inputs, n->input_count);
  strbuf_printf(out, " to %u %u flags %u axis %u", n->output, n->positions, n->flags, n->axis);
  list(out, "size", n->size, 2);
  strbuf_printf(out, " from %g to %g, %g", (double)n->low, (double)n->high, (double)n->number);
  list(out, "first", n->first, XR_MAX_RANK);
  list(out, "second", n->second, XR_MAX_RANK);
  list(out, "before", w->before, 2);
  list(out, "after", w->after, 2);
  list(out, "kernel", w->kernel, 2);
  list(out, "stride", w->stride, 2);
  list(out, "dilation", w->dilation, 2);
  list(out, "adjust", w->adjust, 2);
  strbuf_printf(out, " groups %u %u %u\n", w->groups, w->group_in, w->group_out);
}

static void append_delegate(StrBuf *out, const PteDelegate *d) {
  XrGraph x;
  Arena arena = {0};
  if (!xr_read(d->data, d->size, &arena, &x)) {
    for (uint32_t i = 0; i < x.value_count; i++)
      append_value(out, &x.values[i], x.constants[x.values[i].constant].size);
    for (uint32_t i = 0; i < x.node_count; i++)
      append_node(out, &x.nodes[i]);
  }
  arena_release(&arena);
}

void record_program(Record *r, const Session *s) {
  StrBuf *out = &r->texts[RECORD_PROGRAM], *told = &r->texts[RECORD_TOLD];
  PteProgram *p = &s->program.sources[0]->pte.program;
  session_print(s, (PrintOptions){0}, out);
  for (uint32_t i = 0; i < p->methods[0].delegate_count; i++)
    append_delegate(out, &p->methods[0].delegates[i]);
  Arena arena = {0};
  JsonWriter w;
  p->readers = &backend_readers;
  pte_inspect_text(p, true, told);
  pte_inspect_json(p, told);
  PteSize size = pte_size(p, NULL, &arena);
  pte_size_text(p, &size, true, told);
  pte_size_text(p, &size, false, told);
  json_init(&w, told, false);
  json_open_object(&w);
  pte_size_json(p, &size, &w);
  json_close_object(&w);
  arena_release(&arena);
}

/* --- the line --- */

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }

/* A word without what depends on the machine. */
static void append_word(const Record *r, StrView word, StrBuf *out) {
  char *end;
  size_t hex = strspn(word.data, "0123456789abcdef"), digits = strspn(word.data, "0123456789.");
  if (hex >= BYTES_DIGITS)
    return;
  double number = strtod(word.data, &end);
  bool is_float = digits < word.size || memchr(word.data, '.', word.size);
  if (is_float && digits && (size_t)(end - word.data) >= word.size)
    strbuf_printf(out, "%.*g", r->digits, number);
  else
    strbuf_append(out, word);
}

/* How much of text begins with something that is left out: a path, or bytes as a list. */
static size_t left_out(const Record *r, StrView text, bool bytes) {
  StrView folder = sv_from(r->folder);
  if (sv_starts_with(text, folder))
    return folder.size;
  return bytes && sv_starts_with(text, SV("const [")) ? strcspn(text.data, "]") : 0;
}

static void append_stable(const Record *r, StrView text, StrBuf *out) {
  bool bytes = false; /* within the line of a value of bytes, such as the weights of a delegate */
  for (size_t at = 0, size; at < text.size; at += size) {
    StrView rest = {text.data + at, text.size - at};
    bytes = rest.data[0] != '\n' && (bytes || sv_starts_with(rest, SV(": u8[")));
    size = left_out(r, rest, bytes);
    if (size)
      continue;
    while (size < rest.size && is_word(rest.data[size]))
      size++;
    if (size)
      append_word(r, (StrView){rest.data, size}, out);
    else
      strbuf_append_char(out, rest.data[size++]);
  }
}

static uint64_t hash(const StrBuf *text) { /* FNV-1a */
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < text->size; i++)
    h = (h ^ (uint8_t)text->data[i]) * 0x100000001b3u;
  return h;
}

static void keep(const Record *r, unsigned column, const StrBuf *text) {
  StrBuf path = {0};
  strbuf_printf(&path, "%s.%s", r->keep, record_columns[column]);
  FILE *f = fopen(strbuf_cstr(&path), "wb");
  if (!f || fwrite(strbuf_cstr(text), 1, text->size, f) != text->size || fclose(f))
    perror(strbuf_cstr(&path));
  strbuf_release(&path);
}

void record_line(Record *r, const char *name, StrBuf *out) {
  strbuf_printf(out, "%s", name);
  for (unsigned i = 0; i < RECORD_COLUMNS; i++) {
    StrBuf stable = {0};
    append_stable(r, (StrView){strbuf_cstr(&r->texts[i]), r->texts[i].size}, &stable);
    uint64_t h = hash(&stable);
    strbuf_printf(out, " %0*x", RECORD_DIGITS,
                  (unsigned)((h ^ h >> 32) % (1u << 4 * RECORD_DIGITS)));
    if (r->keep)
      keep(r, i, &stable);
    strbuf_release(&stable);
  }
  strbuf_append_char(out, '\n');
}

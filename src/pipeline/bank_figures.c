/* See bank_figures.h. */
#include "pipeline/bank_figures.h"

#include <inttypes.h>
#include <stdio.h>

/* That of the name, which is added when it is new; NULL when there is no room for it. */
static BankFigure *figure_of(BankFigures *f, StrView name) {
  for (uint32_t i = 0; i < f->count; i++)
    if (sv_eq_str(name, f->items[i].name))
      return &f->items[i];
  if (f->count == BANK_FIGURES_MAX || name.size >= sizeof f->items->name)
    return NULL;
  BankFigure *one = &f->items[f->count++];
  *one = (BankFigure){0};
  memcpy(one->name, name.data, name.size);
  return one;
}

void bank_figures_add(BankFigures *f, const Graph *g) {
  for (uint32_t i = 1; g->bank_count && i < g->arena_size_count; i++) {
    bool named = i <= g->bank_count;
    uint64_t limit = named ? g->banks[i - 1].size : UINT64_MAX;
    BankFigure *one = figure_of(f, named ? g->banks[i - 1].name : SV("states"));
    if (!one)
      continue;
    one->bytes += g->arena_sizes[i];
    one->limit = limit > one->limit ? limit : one->limit;
    one->methods++;
  }
}

void bank_figures_text(const BankFigures *f, StrBuf *out) {
  for (uint32_t i = 0; i < f->count; i++) {
    const BankFigure *one = &f->items[i];
    strbuf_printf(out, "%s%s ", i ? ", " : "", one->name);
    strbuf_append_bytes(out, one->bytes);
    if (one->methods > 1) { /* each has the capacity for itself */
      strbuf_printf(out, " in %u methods", one->methods);
    } else if (one->limit != UINT64_MAX) {
      strbuf_append(out, SV(" of "));
      strbuf_append_bytes(out, one->limit);
    }
  }
}

void bank_figures_json(const BankFigures *f, JsonWriter *w) {
  if (!f->count)
    return;
  json_named_array(w, "banks");
  for (uint32_t i = 0; i < f->count; i++) {
    const BankFigure *one = &f->items[i];
    json_open_object(w);
    json_named_string(w, "name", sv_from(one->name));
    json_named_uint(w, "bytes", one->bytes);
    if (one->limit != UINT64_MAX)
      json_named_uint(w, "limit", one->limit);
    json_named_uint(w, "methods", one->methods);
    json_close_object(w);
  }
  json_close_array(w);
}

/* The name of a bank has neither spaces nor "=" (settings_memory.c). */
void bank_figures_write(const BankFigures *f, StrBuf *out) {
  for (uint32_t i = 0; i < f->count; i++)
    strbuf_printf(out, " %s=%" PRIu64 "/%" PRIu64 "/%u", f->items[i].name, f->items[i].bytes,
                  f->items[i].limit, f->items[i].methods);
}

bool bank_figures_read(BankFigures *f, const char *text) {
  f->count = 0;
  while (*text == ' ') {
    if (f->count == BANK_FIGURES_MAX)
      return false;
    BankFigure *one = &f->items[f->count++];
    int used = 0;
    if (sscanf(text, " %64[^ =]=%" SCNu64 "/%" SCNu64 "/%u%n", one->name, &one->bytes, &one->limit,
               &one->methods, &used) != 4)
      return false;
    text += used;
  }
  return *text == '\0';
}

/* See size.h. The report as text and as JSON. */
#include "pte/size.h"

#include "pte/inspect_internal.h"

enum { MAX_LAYERS = 12, MAX_LIVE = 5, MAX_WHATS = 3 }; /* without `all` */

/* "     9600    0.1 %  " */
static void text_share(StrBuf *out, uint64_t bytes, uint64_t whole) {
  strbuf_printf(out, "  %12llu  %5.1f %%  ", (unsigned long long)bytes,
                whole ? 100.0 * (double)bytes / (double)whole : 0.0);
}

static void text_layer(StrBuf *out, const PteProgram *p, const PteLayer *layer, bool all) {
  const PtePart *first = layer->parts;
  text_share(out, layer->bytes, p->file.size);
  if (p->method_count > 1) {
    strbuf_append_printable(out, p->methods[first->method].name);
    strbuf_append(out, SV(": "));
  }
  strbuf_append_printable(out, first->layer.size ? first->layer : SV("not used by an instruction"));
  uint32_t shown = layer->count < MAX_WHATS ? layer->count : MAX_WHATS;
  if (first->kind == PTE_PART_DATA && !all) /* keys, mostly hashes */
    shown = 0;
  for (uint32_t i = 0; i < shown; i++) {
    strbuf_append(out, i ? SV(", ") : SV(": "));
    strbuf_append_printable(out, first[i].what);
  }
  if (shown && shown < layer->count)
    strbuf_printf(out, " and %u more", layer->count - shown);
  strbuf_append_char(out, '\n');
}

/* Those that are not of the program as a whole. */
static bool is_layer(const PteLayer *layer) {
  PtePartKind kind = layer->parts->kind;
  return kind != PTE_PART_PROGRAM && kind != PTE_PART_PADDING;
}

static void text_flash(StrBuf *out, const PteProgram *p, const PteSize *size, bool all) {
  uint32_t shown = 0, count = 0;
  strbuf_append(out, SV("flash: "));
  inspect_append_bytes(out, p->file.size);
  strbuf_append_char(out, '\n');
  for (PtePartKind k = 0; k < PTE_PART_KINDS; k++) {
    if (!size->totals[k])
      continue;
    text_share(out, size->totals[k], p->file.size);
    strbuf_printf(out, "%s\n", pte_part_name(k));
  }
  if (size->external)
    strbuf_printf(out, "  %12llu  besides, in a file of their own: constants\n",
                  (unsigned long long)size->external);
  for (uint32_t i = 0; i < size->layer_count; i++) {
    if (!is_layer(&size->layers[i]))
      continue;
    if (count++ >= MAX_LAYERS && !all)
      continue;
    strbuf_append(out, shown++ ? SV("") : SV("by layer, the largest first:\n"));
    text_layer(out, p, &size->layers[i], all);
  }
  if (shown < count)
    strbuf_printf(out, "  %u more layers (-v)\n", count - shown);
}

static void text_arena(StrBuf *out, const PteArena *a, bool all) {
  uint32_t shown = all || a->live_count < MAX_LIVE ? a->live_count : MAX_LIVE;
  strbuf_printf(out, "  arena %u", a->id);
  if (a->bank) {
    strbuf_append_within(out, " '", a->bank->name, "'");
  }
  strbuf_append(out, SV(": "));
  inspect_append_bytes(out, a->bytes);
  if (a->bank && a->bank->size != UINT64_MAX) {
    strbuf_append(out, SV(" of "));
    strbuf_append_bytes(out, a->bank->size);
  }
  if (a->live_count) {
    strbuf_printf(out, "; %llu in use at ", (unsigned long long)a->peak);
    strbuf_append_printable(out, a->at);
  }
  strbuf_append_char(out, '\n');
  for (uint32_t i = 0; i < shown; i++) {
    text_share(out, a->live[i].bytes, a->bytes);
    strbuf_append_printable(out, a->live[i].name);
    strbuf_append_char(out, '\n');
  }
  if (shown < a->live_count)
    strbuf_printf(out, "  %u more tensors (-v)\n", a->live_count - shown);
}

static void text_allocations(StrBuf *out, const PteMethodSize *m) {
  if (m->packed || m->workspace) {
    strbuf_append(out, SV("  delegates allocate besides, estimated: packed weights "));
    strbuf_append_bytes(out, m->packed);
    strbuf_append(out, SV(", workspace "));
    strbuf_append_bytes(out, m->workspace);
    strbuf_append_char(out, '\n');
  }
  if (m->unknown)
    strbuf_printf(out, "  what %u delegates allocate besides is not known\n", m->unknown);
}

void pte_size_text(const PteProgram *p, const PteSize *size, bool all, StrBuf *out) {
  strbuf_append_within(out, "file: ", sv_from(p->file.path), "\n");
  text_flash(out, p, size, all);
  for (uint32_t i = 0; i < size->method_count; i++) {
    const PteMethodSize *m = &size->methods[i];
    if (!m->arena_count && !m->packed && !m->workspace && !m->unknown)
      continue;
    strbuf_append_within(out, "SRAM of method '", m->name, "'\n");
    for (uint32_t k = 0; k < m->arena_count; k++)
      text_arena(out, &m->arenas[k], all);
    text_allocations(out, m);
  }
}

/* --- JSON --- */

/* A part of the file, or a tensor in an arena. */
static void json_place(JsonWriter *w, StrView name, uint64_t offset, uint64_t bytes) {
  json_open_object(w);
  json_named_string(w, "name", name);
  json_named_uint(w, "offset", offset);
  json_named_uint(w, "bytes", bytes);
  json_close_object(w);
}

static void json_layer(JsonWriter *w, const PteProgram *p, const PteLayer *layer) {
  json_open_object(w);
  json_named_string(w, "layer", layer->parts->layer);
  json_named_string(w, "kind", sv_from(pte_part_name(layer->parts->kind)));
  uint32_t method = layer->parts->method; /* 0 of a program without methods, too */
  json_named_string(w, "method", method < p->method_count ? p->methods[method].name : SV(""));
  json_named_uint(w, "bytes", layer->bytes);
  json_named_array(w, "parts");
  for (uint32_t i = 0; i < layer->count; i++)
    json_place(w, layer->parts[i].what, layer->parts[i].offset, layer->parts[i].bytes);
  json_close_array(w);
  json_close_object(w);
}

static void json_flash(JsonWriter *w, const PteProgram *p, const PteSize *size) {
  static const char *const keys[] = {"program_bytes",       "constant_bytes",      "state_bytes",
                                     "delegate_code_bytes", "delegate_data_bytes", "unused_bytes",
                                     "padding_bytes"};
  json_named_object(w, "flash");
  json_named_uint(w, "bytes", p->file.size);
  for (PtePartKind k = 0; k < PTE_PART_KINDS; k++)
    json_named_uint(w, keys[k], size->totals[k]);
  json_named_uint(w, "external_bytes", size->external);
  json_named_array(w, "layers");
  for (uint32_t i = 0; i < size->layer_count; i++)
    if (is_layer(&size->layers[i]))
      json_layer(w, p, &size->layers[i]);
  json_close_array(w);
  json_close_object(w);
}

static void json_arena(JsonWriter *w, const PteArena *a) {
  json_open_object(w);
  json_named_uint(w, "id", a->id);
  if (a->bank) {
    json_named_string(w, "bank", a->bank->name);
    json_named_uint(w, "bank_bytes", a->bank->size);
  }
  json_named_uint(w, "bytes", a->bytes);
  json_named_uint(w, "peak_bytes", a->peak);
  json_named_string(w, "peak_at", a->live_count ? a->at : SV(""));
  json_named_array(w, "tensors");
  for (uint32_t i = 0; i < a->live_count; i++)
    json_place(w, a->live[i].name, a->live[i].offset, a->live[i].bytes);
  json_close_array(w);
  json_close_object(w);
}

void pte_size_json(const PteProgram *p, const PteSize *size, JsonWriter *w) {
  json_named_string(w, "file", sv_from(p->file.path));
  json_flash(w, p, size);
  json_named_array(w, "methods");
  for (uint32_t i = 0; i < size->method_count; i++) {
    const PteMethodSize *m = &size->methods[i];
    json_open_object(w);
    json_named_string(w, "name", m->name);
    json_named_array(w, "arenas");
    for (uint32_t k = 0; k < m->arena_count; k++)
      json_arena(w, &m->arenas[k]);
    json_close_array(w);
    json_named_uint(w, "packed_bytes_estimate", m->packed);
    json_named_uint(w, "workspace_bytes_estimate", m->workspace);
    json_named_uint(w, "unknown_delegates", m->unknown);
    json_close_object(w);
  }
  json_close_array(w);
}

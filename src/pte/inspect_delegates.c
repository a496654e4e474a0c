/* What the report on a program says of its delegates: what is in their code, as far as the
 * backend's reader knows it. */
#include "ops/delegate.h"
#include "ops/work.h"
#include "pte/inspect_internal.h"

const char *inspect_delegate(const PteProgram *p, const PteDelegate *d, uint64_t *budget,
                             Arena *arena, DelegateFigures *out) {
  const DelegateReader *reader = delegate_reader(p->readers, d->id);
  *out = (DelegateFigures){0};
  if (!reader)
    return "the backend is not known";
  if (d->size > *budget)
    return "many delegates share their code, which is not shown for all";
  *budget -= d->size;
  return reader_describe(reader, d->data, d->size, arena, out);
}

DelegateTotals delegate_totals(const PteProgram *p, const PteMethod *m, uint64_t budget) {
  DelegateTotals t = {0};
  Arena arena = {0};
  for (uint32_t i = 0; i < m->delegate_count; i++) {
    DelegateFigures f;
    t.code = work_plus(t.code, m->delegates[i].size);
    if (inspect_delegate(p, &m->delegates[i], &budget, &arena, &f)) {
      t.unknown++;
      continue;
    }
    t.nodes = work_plus(t.nodes, f.node_count);
    t.byte_nodes = work_plus(t.byte_nodes, f.byte_nodes);
    t.transposes = work_plus(t.transposes, f.transpose_count);
    t.constant_bytes = work_plus(t.constant_bytes, f.constant_bytes);
    t.work = work_plus(t.work, f.work);
    t.packed = work_plus(t.packed, f.packed);
    t.workspace = f.workspace > t.workspace ? f.workspace : t.workspace;
    arena_reset(&arena);
  }
  arena_release(&arena);
  return t;
}

static void text_figures(StrBuf *out, const DelegateFigures *f) {
  strbuf_printf(out, "    %llu node%s, %u transpose%s among them; %llu constant%s, %llu bytes\n",
                (unsigned long long)f->node_count, f->node_count == 1 ? "" : "s",
                f->transpose_count, f->transpose_count == 1 ? "" : "s",
                (unsigned long long)f->constants, f->constants == 1 ? "" : "s",
                (unsigned long long)f->constant_bytes);
  if (f->byte_nodes)
    strbuf_printf(out, "    on 8 bits: %llu of the nodes\n", (unsigned long long)f->byte_nodes);
  for (uint32_t kind = 0; kind < TRANSPOSE_REASONS && f->transposes; kind++) {
    StrBuf line = {0};
    if (delegate_print_transposes(&line, f->transposes, f->transpose_count, kind))
      strbuf_printf(out, "    transposes: %s\n", strbuf_cstr(&line));
    strbuf_release(&line);
  }
  for (uint32_t i = 0; i < f->kind_count; i++)
    strbuf_printf(out, "    %6llu  %s %s\n", (unsigned long long)f->nodes[i].count,
                  f->nodes[i].what, f->nodes[i].types);
}

enum { SPECS_SHOWN = 16, SPEC_BYTES_SHOWN = 64 };

static bool is_text(const PteSpec *spec) {
  for (uint32_t i = 0; i < spec->size; i++)
    if (spec->data[i] < ' ' || spec->data[i] > '~')
      return false;
  return spec->size != 0;
}

/* The bytes of a spec that are shown: as text, or in hex. */
static void append_value(StrBuf *out, const PteSpec *spec) {
  uint32_t shown = spec->size < SPEC_BYTES_SHOWN ? spec->size : SPEC_BYTES_SHOWN;
  if (is_text(spec))
    strbuf_append(out, (StrView){(const char *)spec->data, shown});
  for (uint32_t i = 0; i < shown && !is_text(spec); i++)
    strbuf_printf(out, "%s%02x", i ? " " : "", spec->data[i]);
}

static void text_specs(StrBuf *out, const PteDelegate *d) {
  for (uint32_t i = 0; i < d->spec_count && i < SPECS_SHOWN; i++) {
    const PteSpec *spec = &d->specs[i];
    const char *quote = is_text(spec) ? "'" : "";
    strbuf_append(out, SV("    compile spec '"));
    strbuf_append_escaped(out, spec->key);
    strbuf_printf(out, "': %u byte%s%s%s", spec->size, spec->size == 1 ? "" : "s",
                  spec->size ? ", " : "", quote);
    append_value(out, spec);
    strbuf_printf(out, "%s%s\n", spec->size > SPEC_BYTES_SHOWN ? "..." : "", quote);
  }
}

static void json_specs(JsonWriter *w, const PteDelegate *d) {
  json_named_uint(w, "compile_specs", d->spec_count);
  json_named_array(w, "specs");
  for (uint32_t i = 0; i < d->spec_count && i < SPECS_SHOWN; i++) {
    StrBuf value = {0};
    append_value(&value, &d->specs[i]);
    json_open_object(w);
    json_named_string(w, "key", d->specs[i].key);
    json_named_uint(w, "bytes", d->specs[i].size);
    json_named_string(w, is_text(&d->specs[i]) ? "text" : "hex",
                      (StrView){strbuf_cstr(&value), value.size});
    json_close_object(w);
    strbuf_release(&value);
  }
  json_close_array(w);
}

void text_delegates(StrBuf *out, const PteProgram *p, const PteMethod *m, const uint32_t *calls,
                    uint64_t *budget) {
  Arena arena = {0};
  for (uint32_t i = 0; i < m->delegate_count; i++) {
    const PteDelegate *d = &m->delegates[i];
    DelegateFigures figures;
    strbuf_append(out, SV("  delegate '"));
    strbuf_append_escaped(out, d->id);
    strbuf_printf(out, "': %llu bytes, %u compile specs", (unsigned long long)d->size,
                  d->spec_count);
    if (calls[i] != 1)
      strbuf_printf(out, ", called %u times", calls[i]);
    strbuf_append_char(out, '\n');
    text_specs(out, d);
    const char *fault = inspect_delegate(p, d, budget, &arena, &figures);
    if (fault)
      strbuf_printf(out, "    %s\n", fault);
    else
      text_figures(out, &figures);
    arena_reset(&arena);
  }
  arena_release(&arena);
}

static void json_figures(JsonWriter *w, const DelegateFigures *f) {
  json_named_uint(w, "nodes", f->node_count);
  json_named_uint(w, "nodes_on_8_bits", f->byte_nodes);
  json_named_uint(w, "transposes", f->transpose_count);
  if (f->transposes)
    delegate_json_transposes(w, f->transposes, f->transpose_count);
  json_named_uint(w, "constants", f->constants);
  json_named_uint(w, "constant_bytes", f->constant_bytes);
  json_named_uint(w, "multiply_adds", f->work);
  json_named_uint(w, "packed_bytes_estimate", f->packed);
  json_named_uint(w, "workspace_bytes_estimate", f->workspace);
  json_named_array(w, "kinds");
  for (uint32_t i = 0; i < f->kind_count; i++) {
    json_open_object(w);
    json_named_string(w, "name", sv_from(f->nodes[i].what));
    json_named_string(w, "types", sv_from(f->nodes[i].types));
    json_named_uint(w, "nodes", f->nodes[i].count);
    json_close_object(w);
  }
  json_close_array(w);
}

void json_delegates(JsonWriter *w, const PteProgram *p, const PteMethod *m, const uint32_t *calls,
                    uint64_t *budget) {
  Arena arena = {0};
  json_named_array(w, "delegates");
  for (uint32_t i = 0; i < m->delegate_count; i++) {
    const PteDelegate *d = &m->delegates[i];
    DelegateFigures figures;
    json_open_object(w);
    json_named_string(w, "id", d->id);
    json_named_uint(w, "calls", calls[i]);
    json_named_uint(w, "bytes", d->size);
    json_specs(w, d);
    const char *fault = inspect_delegate(p, d, budget, &arena, &figures);
    if (fault)
      json_named_string(w, "fault", sv_from(fault));
    else
      json_figures(w, &figures);
    json_close_object(w);
    arena_reset(&arena);
  }
  json_close_array(w);
  arena_release(&arena);
}

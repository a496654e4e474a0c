/* See sheet.h. What differs as text, Markdown and JSON. */
#include <math.h>

#include "support/sheet.h"

enum { CELLS = 4, NAME_MAX = 60, ROWS_MAX = 16 /* without `all`, or in sight */ };

static const char *section_name(FactSection section) {
  static const char *const names[] = {[FACTS_INTERFACE] = "inputs and outputs",
                                      [FACTS_SIZE] = "size",
                                      [FACTS_MEMORY] = "memory",
                                      [FACTS_OPERATORS] = "operators",
                                      [FACTS_DELEGATES] = "delegates",
                                      [FACTS_QUANTIZATION] = "element types",
                                      [FACTS_CONSTANTS] = "constants"};
  return names[section];
}

static const Fact *any(const FactChange *c) { return c->before ? c->before : c->after; }

static bool is_text(const FactChange *c) { return any(c)->kind == FACT_TEXT; }

/* What the fact is not there for counts as 0. */
static int64_t difference(const FactChange *c) {
  uint64_t before = c->before ? c->before->number : 0, after = c->after ? c->after->number : 0;
  return (int64_t)(after - before);
}

/* Whether there is a change in per cent. */
static bool percent(const FactChange *c, double *out) {
  *out = 0;
  if (is_text(c) || !c->before || !c->after || !c->before->number)
    return false;
  *out = 100.0 * (double)difference(c) / (double)c->before->number;
  return true;
}

static bool same_number(const FactChange *c) {
  return c->before && c->after && c->before->number == c->after->number;
}

/* Name, before, after, change, each in a buffer of its own. */
typedef struct Cells {
  StrBuf cells[CELLS];
} Cells;

static void cells_release(Cells *c) {
  for (int i = 0; i < CELLS; i++)
    strbuf_release(&c->cells[i]);
}

/* short_bytes: sizes in KiB, MiB and so on. */
static void append_fact(StrBuf *out, const Fact *f, bool short_bytes) {
  if (!f)
    strbuf_append_char(out, '-');
  else if (f->kind == FACT_TEXT)
    strbuf_append_printable(out, f->text);
  else if (f->kind == FACT_BYTES && short_bytes)
    strbuf_append_bytes(out, f->number);
  else
    strbuf_printf(out, "%llu", (unsigned long long)f->number);
}

static void append_change(StrBuf *out, const FactChange *c) {
  double share;
  if (!c->before || !c->after)
    strbuf_append(out, c->after ? SV("added") : SV("removed"));
  else if (same_number(c) && c->before->hash != c->after->hash)
    strbuf_append(out, SV("other contents"));
  if (is_text(c) || same_number(c) || !c->before || !c->after)
    return;
  strbuf_printf(out, "%+lld", (long long)difference(c));
  if (percent(c, &share))
    strbuf_printf(out, " (%+.1f %%)", share);
}

static void fill_cells(const SheetDiff *d, const FactChange *c, bool short_bytes, Cells *out) {
  const Fact *f = any(c);
  for (int i = 0; i < CELLS; i++)
    strbuf_clear(&out->cells[i]);
  if (d->methods && f->method.size) {
    strbuf_append_printable(&out->cells[0], f->method);
    strbuf_append(&out->cells[0], SV(": "));
  }
  strbuf_append_printable(&out->cells[0], f->name);
  append_fact(&out->cells[1], c->before, short_bytes);
  append_fact(&out->cells[2], c->after, short_bytes);
  append_change(&out->cells[3], c);
}

/* --- text --- */

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

typedef struct Widths {
  size_t name, before, after;
} Widths;

/* Numbers stand under each other; texts, which are long, follow one another. */
static Widths widths_of(const SheetDiff *d, uint32_t first, uint32_t end, Cells *cells) {
  Widths w = {0};
  for (uint32_t i = first; i < end; i++) {
    fill_cells(d, &d->changes[i], false, cells);
    w.name = larger(w.name, cells->cells[0].size < NAME_MAX ? cells->cells[0].size : NAME_MAX);
    if (is_text(&d->changes[i]))
      continue;
    w.before = larger(w.before, cells->cells[1].size);
    w.after = larger(w.after, cells->cells[2].size);
  }
  return w;
}

static void append_right(StrBuf *out, const StrBuf *cell, size_t width) {
  for (size_t i = cell->size; i < width; i++)
    strbuf_append_char(out, ' ');
  strbuf_append(out, sv_from(strbuf_cstr(cell)));
}

static void text_row(const FactChange *c, const Cells *cells, Widths w, StrBuf *out) {
  bool text = is_text(c);
  strbuf_append(out, SV("  "));
  size_t from = out->size;
  strbuf_append(out, sv_from(strbuf_cstr(&cells->cells[0])));
  strbuf_pad(out, from, w.name);
  strbuf_append(out, SV("  "));
  append_right(out, &cells->cells[1], text ? 0 : w.before);
  strbuf_append(out, SV(" -> "));
  append_right(out, &cells->cells[2], text ? 0 : w.after);
  strbuf_append(out, cells->cells[3].size ? SV("  ") : SV(""));
  strbuf_append(out, sv_from(strbuf_cstr(&cells->cells[3])));
  strbuf_append_char(out, '\n');
}

/* The end of the section that begins with change i. */
static uint32_t section_end(const SheetDiff *d, uint32_t i) {
  FactSection section = any(&d->changes[i])->section;
  while (i < d->count && any(&d->changes[i])->section == section)
    i++;
  return i;
}

void sheet_diff_text(const SheetDiff *d, bool all, StrBuf *out) {
  Cells cells = {0};
  for (uint32_t i = 0, end; i < d->count; i = end) {
    end = section_end(d, i);
    uint32_t shown = all || end - i <= ROWS_MAX ? end : i + ROWS_MAX;
    Widths w = widths_of(d, i, shown, &cells);
    strbuf_printf(out, "%s:\n", section_name(any(&d->changes[i])->section));
    for (; i < shown; i++) {
      fill_cells(d, &d->changes[i], false, &cells);
      text_row(&d->changes[i], &cells, w, out);
    }
    if (shown < end)
      strbuf_printf(out, "  %u more (-v)\n", end - shown);
  }
  cells_release(&cells);
}

/* --- Markdown --- */

/* As code, so that nothing in a name is markup; in a table '|' ends a cell even there. */
static void append_code(StrBuf *out, StrView text) {
  strbuf_append_char(out, '`');
  for (size_t i = 0; i < text.size; i++)
    if (text.data[i] == '`')
      strbuf_append_char(out, '\'');
    else
      strbuf_printf(out, text.data[i] == '|' ? "\\%c" : "%c", text.data[i]);
  strbuf_append_char(out, '`');
}

static void append_cell(StrBuf *out, const FactChange *c, const Cells *cells, int i) {
  StrView text = sv_from(strbuf_cstr(&cells->cells[i]));
  bool code = i == 0 || (is_text(c) && i < 3 && (i == 1 ? c->before : c->after));
  strbuf_append(out, SV(" "));
  if (code)
    append_code(out, text);
  else
    strbuf_append(out, text);
  strbuf_append(out, SV(" |"));
}

static void append_path(StrBuf *out, const char *path) {
  StrBuf text = {0};
  strbuf_append_printable(&text, sv_from(path));
  append_code(out, (StrView){strbuf_cstr(&text), text.size});
  strbuf_release(&text);
}

void sheet_diff_markdown(const SheetDiff *d, StrBuf *out) {
  Cells cells = {0};
  strbuf_append(out, SV("### "));
  append_path(out, d->before->path);
  strbuf_append(out, SV(" → "));
  append_path(out, d->after->path);
  strbuf_append(out, d->count ? SV("\n") : SV("\n\nNothing differs.\n"));
  for (uint32_t i = 0, end; i < d->count; i = end) {
    end = section_end(d, i);
    const char *name = section_name(any(&d->changes[i])->section);
    bool folded = end - i > ROWS_MAX;
    if (folded)
      strbuf_printf(out, "\n<details><summary>%s: %u changes</summary>\n", name, end - i);
    strbuf_printf(out, "\n| %s | before | after | change |\n|---|---:|---:|---:|\n", name);
    for (; i < end; i++) {
      fill_cells(d, &d->changes[i], true, &cells);
      strbuf_append_char(out, '|');
      for (int k = 0; k < CELLS; k++)
        append_cell(out, &d->changes[i], &cells, k);
      strbuf_append_char(out, '\n');
    }
    strbuf_append(out, folded ? SV("\n</details>\n") : SV(""));
  }
  cells_release(&cells);
}

/* --- JSON --- */

static void json_side(JsonWriter *w, const char *key, const Fact *f) {
  json_key(w, key);
  if (!f)
    json_null(w);
  else if (f->kind == FACT_TEXT)
    json_string(w, f->text);
  else
    json_uint(w, f->number);
}

static void json_change(JsonWriter *w, const FactChange *c) {
  static const char *const units[] = {
      [FACT_COUNT] = "count", [FACT_BYTES] = "bytes", [FACT_TEXT] = "text"};
  const Fact *f = any(c);
  double share;
  json_open_object(w);
  json_named_string(w, "section", sv_from(section_name(f->section)));
  json_named_string(w, "method", f->method);
  json_named_string(w, "name", f->name);
  json_named_string(w, "unit", sv_from(units[f->kind]));
  json_side(w, "before", c->before);
  json_side(w, "after", c->after);
  if (!is_text(c)) {
    json_named_int(w, "change", difference(c));
  }
  if (percent(c, &share)) {
    json_named_double(w, "percent", round(share * 10) / 10);
  }
  json_named_bool(w, "other_contents", c->before && c->after && c->before->hash != c->after->hash);
  json_close_object(w);
}

void sheet_diff_json(const SheetDiff *d, JsonWriter *w) {
  json_open_object(w);
  json_named_string(w, "before", sv_from(d->before->path));
  json_named_string(w, "after", sv_from(d->after->path));
  json_named_string(w, "kind", sv_from(d->before->kind));
  json_named_bool(w, "equal", d->count == 0);
  json_named_array(w, "changes");
  for (uint32_t i = 0; i < d->count; i++)
    json_change(w, &d->changes[i]);
  json_close_array(w);
  json_close_object(w);
}

/* See budget.h. The table of limits. */
#include "pipeline/budget.h"
#include "support/number.h"

static const BudgetUnit units[BUDGET_KEYS] = {
#define BUDGET_KEY(id, group, name, unit, summary) BUDGET_##unit,
#include "pipeline/budget.def"
};
static const char *const unit_names[] = {
    [BUDGET_BYTES] = "bytes", [BUDGET_NUMBER] = "count", [BUDGET_DB] = "dB", [BUDGET_MS] = "ms"};

static bool is_unit(const BudgetRow *row, BudgetUnit unit) {
  return units[row->limit->key] == unit;
}

static bool is_whole(const BudgetRow *row) {
  return is_unit(row, BUDGET_BYTES) || is_unit(row, BUDGET_NUMBER);
}

/* "1.5 MiB", "12", "30.0 dB", "0.25 ms" */
static void append_value(StrBuf *out, const BudgetRow *row, double value) {
  if (is_unit(row, BUDGET_BYTES))
    strbuf_append_bytes(out, uint_clamped(value));
  else if (is_unit(row, BUDGET_NUMBER))
    strbuf_printf(out, "%.0f", value);
  else
    strbuf_printf(out,
                  value < 0.1  ? "%.3g %s"
                  : value < 10 ? "%.2f %s"
                               : "%.1f %s",
                  value, unit_names[units[row->limit->key]]);
}

enum { NAME_WIDTH = 18, NAME_WIDTH_MAX = 48, VALUE_WIDTH = 12, OVER_WIDTH = 18 };

/* That of the longest name, within limits. */
static size_t name_width(const BudgetResult *r) {
  size_t width = NAME_WIDTH;
  for (uint32_t i = 0; i < r->budget->count; i++) {
    size_t own = r->rows[i].limit->name.size + 1;
    width = own > width ? own : width;
  }
  return width < NAME_WIDTH_MAX ? width : NAME_WIDTH_MAX;
}

static void text_row(const BudgetRow *row, size_t width, StrBuf *out) {
  bool least = is_unit(row, BUDGET_DB);
  size_t from = out->size;
  strbuf_append_printable(out, row->limit->name);
  strbuf_append_char(out, ' ');
  strbuf_pad(out, from, width);
  from = out->size;
  append_value(out, row, row->limit->limit);
  strbuf_pad(out, from, VALUE_WIDTH);
  from = out->size;
  if (row->known)
    append_value(out, row, row->actual);
  else
    strbuf_append_char(out, '?');
  strbuf_pad(out, from, VALUE_WIDTH);
  from = out->size;
  if (row->over) {
    append_value(out, row,
                 least ? row->limit->limit - row->actual : row->actual - row->limit->limit);
    strbuf_append(out, least ? SV(" below") : SV(" over"));
  } else {
    strbuf_append(out, row->known ? SV("ok") : SV("not known"));
  }
  if (row->why[0] && (row->over || !row->known)) {
    strbuf_pad(out, from, OVER_WIDTH);
    strbuf_append(out, sv_from(row->why));
  }
}

void budget_text(const BudgetResult *r, StrBuf *out) {
  size_t from = out->size, width = name_width(r);
  strbuf_append(out, SV("limit"));
  strbuf_pad(out, from, width);
  strbuf_append(out, SV("allowed     actual\n"));
  for (uint32_t i = 0; i < r->budget->count; i++) {
    text_row(&r->rows[i], width, out);
    strbuf_append_char(out, '\n');
  }
}

static void json_value(JsonWriter *w, const char *key, const BudgetRow *row, double value) {
  json_key(w, key);
  if (is_whole(row))
    json_uint(w, uint_clamped(value));
  else
    json_double(w, value);
}

void budget_json(const BudgetResult *r, JsonWriter *w) {
  json_named_array(w, "budget");
  for (uint32_t i = 0; i < r->budget->count; i++) {
    const BudgetRow *row = &r->rows[i];
    json_open_object(w);
    json_named_string(w, "limit", row->limit->name);
    if (row->limit->method.size)
      json_named_string(w, "method", row->limit->method);
    json_value(w, "allowed", row, row->limit->limit);
    if (row->known) {
      json_value(w, "actual", row, row->actual);
    } else {
      json_key(w, "actual");
      json_null(w);
    }
    json_named_string(w, "unit", sv_from(unit_names[units[row->limit->key]]));
    json_named_bool(w, "over", row->over);
    json_named_string(w, "why", sv_from(row->why));
    json_close_object(w);
  }
  json_close_array(w);
}

/* Each line of the table as a note. */
static void note_table(const BudgetResult *r, Diag *d) {
  StrBuf text = {0};
  budget_text(r, &text);
  const char *line = strbuf_cstr(&text);
  while (*line) {
    size_t size = strcspn(line, "\n");
    diag_note(d, "%.*s", (int)size, line);
    line += size + (line[size] == '\n');
  }
  strbuf_release(&text);
}

/* Whether what is missed is the SQNR alone, which a raised limit would miss by more. */
static bool only_sqnr(const BudgetResult *r) {
  bool only = true;
  for (uint32_t i = 0; i < r->budget->count; i++)
    only &= !r->rows[i].over || is_unit(&r->rows[i], BUDGET_DB);
  return only;
}

Status budget_report(Session *s, const BudgetResult *r) {
  if (!r->over && !r->unknown && !s->sink.verbose)
    return STATUS_OK;
  const char *more = r->budget->count == 1 ? "" : "s";
  Diag *d = diag_begin(&s->sink,
                       r->over      ? DIAG_BUDGET
                       : r->unknown ? DIAG_BUDGET_UNKNOWN
                                    : DIAG_BUDGET_HELD,
                       diag_file(r->budget->path));
  if (r->over)
    diag_message(d, "the program misses %u of %u limit%s", r->over, r->budget->count, more);
  else if (r->unknown)
    diag_message(d, "%u of %u limit%s could not be checked", r->unknown, r->budget->count, more);
  else
    diag_message(d, "the program is within its %u limit%s", r->budget->count, more);
  note_table(r, d);
  if (r->over && only_sqnr(r))
    diag_hint(d, "lower sqnr, or keep the worst nodes in floats: --max-drop does so, and "
                 "'etc quantize-report' measures each");
  return diag_end(d);
}

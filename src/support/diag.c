/* Diagnostics: rows of schema/diags.def, and the two ways to print them.
 *
 * A diagnostic is gathered whole and written with one call, so that lines of two processes on one
 * terminal do not mix. Everything that may come from a file is escaped where it is printed and cut
 * to a length that a reader can take. */
#include "support/diag.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "support/json.h"
#include "support/text.h"

enum { DEFAULT_MAX_ERRORS = 64, MESSAGE_MAX = 2000, NAME_MAX_SHOWN = 200 };

static const DiagRow rows[] = {
#define DIAG(id, code, severity, status, summary, explanation, hint)                               \
  {#id, code, DIAG_##severity, status, summary, explanation, hint},
#include "diags.def"
#undef DIAG
};

static const struct {
  const char *digits, *title;
} groups[] = {
#define DIAG(id, code, severity, status, summary, explanation, hint)
#define DIAG_GROUP(digits, title) {digits, title},
#include "diags.def"
#undef DIAG
};

typedef struct Note {
  struct Note *next;
  const char *text;
} Note;

struct Diag {
  DiagSink *sink;
  DiagCode code;
  DiagPlace place;
  bool shown; /* else only counted: nothing is formatted */
  const char *message, *hint;
  Note *notes, **notes_end;
};

const DiagRow *diag_row(DiagCode code) {
  if ((unsigned)code >= DIAG_CODE_COUNT)
    BUG("diagnostic %d", (int)code);
  return &rows[code];
}

const char *diag_group(const DiagRow *row) {
  for (size_t i = 0; i < COUNT_OF(groups); i++)
    if (memcmp(groups[i].digits, row->code + 1, 2) == 0)
      return groups[i].title;
  BUG("code %s has no group", row->code);
}

/* Whether the name is the number of the code, with its letter or without, leading zeros or not. */
static bool is_number_of(StrView name, const char *code) {
  int64_t number, wanted;
  if (name.size && name.data[0] == code[0])
    name = (StrView){name.data + 1, name.size - 1};
  return text_parse_i64(name, &number) && text_parse_i64(sv_from(code + 1), &wanted) &&
         number == wanted;
}

bool diag_find(StrView name, DiagCode *code) {
  for (unsigned i = 0; i < DIAG_CODE_COUNT; i++) {
    if (is_number_of(name, rows[i].code) || sv_eq_str(name, rows[i].id)) {
      *code = (DiagCode)i;
      return true;
    }
  }
  return false;
}

void diag_sink_init(DiagSink *sink) { *sink = (DiagSink){0}; }

static void drop_text(void *user, const char *text, size_t size) {
  (void)user;
  (void)text;
  (void)size;
}

void diag_sink_init_silent(DiagSink *sink) { *sink = (DiagSink){.write = drop_text}; }

void diag_sink_release(DiagSink *sink) { arena_release(&sink->arena); }

static void write_text(const DiagSink *sink, const char *text, size_t size) {
  if (sink->write)
    sink->write(sink->write_user, text, size);
  else
    fwrite(text, 1, size, stderr);
}

static void write_out(const DiagSink *sink, const StrBuf *out) {
  write_text(sink, strbuf_cstr(out), out->size);
}

void diag_report_without_memory(const DiagSink *sink, DiagCode code, const char *message) {
  char line[256];
  const DiagRow *row = diag_row(code);
  int size =
      sink->format == DIAG_JSON
          ? snprintf(line, sizeof line,
                     "{\"severity\":\"error\",\"code\":\"%s\",\"id\":\"%s\",\"message\":\"%s\"}\n",
                     row->code, row->id, message)
          : snprintf(line, sizeof line, "etc: error[%s]: %s\n", row->code, message);
  if (size > 0 && (size_t)size < sizeof line)
    write_text(sink, line, (size_t)size);
}

static DiagSeverity severity_of(const DiagSink *sink, DiagCode code) {
  DiagSeverity severity = rows[code].severity;
  return severity == DIAG_WARNING && sink->werror ? DIAG_ERROR : severity;
}

/* Counts the diagnostic; whether it is to be shown. */
static bool count(DiagSink *sink, DiagCode code) {
  uint32_t limit = sink->max_errors ? sink->max_errors : DEFAULT_MAX_ERRORS;
  switch (severity_of(sink, code)) {
  case DIAG_ERROR:
    if (sink->errors == 0)
      sink->first_error = code;
    sink->errors += sink->errors < UINT32_MAX;
    return sink->errors <= limit;
  case DIAG_WARNING:
    sink->warnings += sink->warnings < UINT32_MAX;
    return !sink->quiet && sink->warnings <= limit;
  case DIAG_INFO:
    break;
  }
  return sink->verbose || (sink->explain && code == DIAG_DELEGATE_SUMMARY);
}

DiagPlace diag_file(const char *path) {
  DiagPlace place = DIAG_NOWHERE;
  place.file = sv_from(path);
  return place;
}

DiagPlace diag_unreadable(const DiagSink *sink, const char *path) {
  for (const DiagNamed *n = sink->named; n; n = n->next)
    if (strcmp(n->path, path) == 0)
      return n->at;
  return diag_file(path);
}

Diag *diag_begin(DiagSink *sink, DiagCode code, DiagPlace place) {
  const DiagRow *row = diag_row(code);
  Diag *d = ARENA_NEW(&sink->arena, Diag);
  *d = (Diag){
      .sink = sink, .code = code, .place = place, .message = row->summary, .hint = row->hint};
  d->notes_end = &d->notes;
  d->shown = count(sink, code);
  sink->open++;
  return d;
}

void diag_vmessage(Diag *d, const char *before, const char *format, va_list args) {
  if (!d->shown)
    return;
  d->message = arena_vprintf(&d->sink->arena, format, args);
  if (before[0])
    d->message = arena_printf(&d->sink->arena, "%s%s", before, d->message);
}

void diag_message(Diag *d, const char *format, ...) {
  va_list args;
  va_start(args, format);
  diag_vmessage(d, "", format, args);
  va_end(args);
}

void diag_note(Diag *d, const char *format, ...) {
  if (!d->shown)
    return;
  va_list args;
  va_start(args, format);
  Note *note = ARENA_NEW(&d->sink->arena, Note);
  note->text = arena_vprintf(&d->sink->arena, format, args);
  *d->notes_end = note;
  d->notes_end = &note->next;
  va_end(args);
}

void diag_hint(Diag *d, const char *format, ...) {
  if (!d->shown)
    return;
  va_list args;
  va_start(args, format);
  d->hint = arena_vprintf(&d->sink->arena, format, args);
  va_end(args);
}

bool diag_hint_nearest(Diag *d, StrView name, const char *const *names, size_t count) {
  const char *nearest = text_nearest(name, names, count);
  if (!nearest || !nearest[0])
    return false;
  diag_hint(d, "did you mean '%s'?", nearest);
  return true;
}

void diag_hint_names(Diag *d, StrView name, const char *const *names, size_t count) {
  enum { NAMES_LISTED = 6 };
  const char *listed[NAMES_LISTED];
  size_t known = 0;
  if (diag_hint_nearest(d, name, names, count))
    return;
  StrBuf text = {0};
  for (size_t i = 0; i < count; i++) {
    bool again = names[i][0] == '\0'; /* methods may have inputs of one name */
    for (size_t k = 0; k < known && k < NAMES_LISTED; k++)
      again |= strcmp(listed[k], names[i]) == 0;
    if (again)
      continue;
    if (known < NAMES_LISTED) {
      listed[known] = names[i];
      strbuf_printf(&text, "%s'%s'", known ? ", " : "", names[i]);
    }
    known++;
  }
  if (known > NAMES_LISTED)
    strbuf_printf(&text, " and %zu more", known - NAMES_LISTED);
  if (known)
    diag_hint(d, known > 1 ? "there are %s" : "there is %s", strbuf_cstr(&text));
  strbuf_release(&text);
}

/* The nearest position at or before at where a character of UTF-8 starts. */
static size_t character_start(StrView text, size_t at) {
  while (at > 0 && at < text.size && ((unsigned char)text.data[at] & 0xc0) == 0x80)
    at--;
  return at;
}

/* Escaped; of a text over limit bytes the first three quarters and the last of what fits, since a
 * message often says what is wrong behind a name that may be long. */
static void append_cut(StrBuf *out, StrView text, size_t limit) {
  if (text.size <= limit) {
    strbuf_append_printable(out, text);
    return;
  }
  size_t head = character_start(text, limit * 3 / 4),
         tail = character_start(text, text.size - limit / 4);
  strbuf_append_printable(out, (StrView){text.data, head});
  strbuf_append(out, SV(" ... "));
  strbuf_append_printable(out, (StrView){text.data + tail, text.size - tail});
}

static void append_name(StrBuf *out, const char *before, StrView name, const char *after) {
  strbuf_append(out, sv_from(before));
  append_cut(out, name, NAME_MAX_SHOWN);
  strbuf_append(out, sv_from(after));
}

static const char *severity_name(DiagSeverity severity) {
  static const char *const names[] = {"error", "warning", "info"};
  return names[severity];
}

/* "file:line:column: " or "etc: ". */
static void text_origin(StrBuf *out, const DiagPlace *place) {
  if (place->file.size == 0) {
    strbuf_append(out, SV("etc: "));
    return;
  }
  append_cut(out, place->file, MESSAGE_MAX);
  if (place->line)
    strbuf_printf(out, ":%" PRIu32, place->line);
  if (place->line && place->column)
    strbuf_printf(out, ":%" PRIu32, place->column);
  strbuf_append(out, SV(": "));
}

/* "  at node 'conv1' (Conv, node 12)". */
static void text_node(StrBuf *out, const DiagPlace *place) {
  bool more = place->op.size || place->index >= 0;
  strbuf_append(out, SV("  at "));
  if (place->node.size)
    append_name(out, "node '", place->node, "'");
  else
    strbuf_append(out, SV("an unnamed node"));
  if (more)
    strbuf_append(out, SV(" ("));
  append_name(out, "", place->op, "");
  if (place->index >= 0)
    strbuf_printf(out, "%snode %" PRId64, place->op.size ? ", " : "", place->index);
  if (more)
    strbuf_append(out, SV(")"));
}

/* "  at node 'conv1' (Conv, node 12) in 'body'". */
static void text_place(StrBuf *out, const DiagPlace *place) {
  bool has_node = place->node.size || place->op.size || place->index >= 0;
  if (has_node)
    text_node(out, place);
  if (place->graph.size)
    append_name(out, has_node ? " in '" : "  in '", place->graph, "'");
  if (has_node || place->graph.size)
    strbuf_append_char(out, '\n');
  if (place->origin.size)
    append_name(out, "  note: the node comes from ", place->origin, "\n");
  if (place->option.size)
    append_name(out, "  at option ", place->option, "\n");
}

static void text_line(StrBuf *out, const char *label, const char *text) {
  strbuf_append(out, sv_from(label));
  append_cut(out, sv_from(text), MESSAGE_MAX);
  strbuf_append_char(out, '\n');
}

static void render_text(const Diag *d, StrBuf *out) {
  static const char *const colors[] = {"\033[1;31m", "\033[1;35m", "\033[1;36m"};
  const DiagRow *row = &rows[d->code];
  DiagSeverity severity = severity_of(d->sink, d->code);
  bool color = d->sink->color;
  text_origin(out, &d->place);
  strbuf_append(out, sv_from(color ? colors[severity] : ""));
  strbuf_printf(out, "%s[%s]:%s ", severity_name(severity), row->code, color ? "\033[0m" : "");
  append_cut(out, sv_from(d->message), MESSAGE_MAX);
  strbuf_append(out, severity == row->severity ? SV("\n") : SV(" [-Werror]\n"));
  text_place(out, &d->place);
  for (const Note *note = d->notes; note; note = note->next)
    text_line(out, "  note: ", note->text);
  if (d->hint[0])
    text_line(out, "  hint: ", d->hint);
}

static void json_member(JsonWriter *w, const char *key, StrView value) {
  json_named_string(w, key, value);
}

static void render_json(const Diag *d, StrBuf *out) {
  const DiagRow *row = &rows[d->code];
  const DiagPlace *place = &d->place;
  JsonWriter w;
  json_init(&w, out, false);
  json_open_object(&w);
  json_member(&w, "severity", sv_from(severity_name(severity_of(d->sink, d->code))));
  json_member(&w, "code", sv_from(row->code));
  json_member(&w, "id", sv_from(row->id));
  json_member(&w, "message", sv_from(d->message));
  json_member(&w, "file", place->file);
  json_member(&w, "node", place->node);
  json_member(&w, "op", place->op);
  json_member(&w, "graph", place->graph);
  if (place->origin.size)
    json_member(&w, "origin", place->origin);
  json_named_int(&w, "index", place->index);
  json_named_uint(&w, "line", place->line);
  json_named_uint(&w, "column", place->column);
  json_member(&w, "option", place->option);
  json_named_array(&w, "notes");
  for (const Note *note = d->notes; note; note = note->next)
    json_string(&w, sv_from(note->text));
  json_close_array(&w);
  json_member(&w, "hint", sv_from(d->hint));
  json_close_object(&w);
  strbuf_append_char(out, '\n');
}

static void note_held(DiagHold *hold, DiagCode code, DiagPlace place, StrView message) {
  hold->codes[code] = true;
  if (hold->first_message.size)
    return;
  hold->first_place = place;
  strbuf_append(&hold->first_message, message);
}

Status diag_end(Diag *d) {
  DiagSink *sink = d->sink;
  Status status = rows[d->code].status;
  if (sink->plugin)
    diag_note(d, "reported in code of the plug-in '%s'", sink->plugin);
  if (sink->held && rows[d->code].severity == DIAG_ERROR)
    note_held(sink->held, d->code, d->place, sv_from(d->message));
  if (d->shown) {
    StrBuf out = {0};
    if (sink->format == DIAG_JSON)
      render_json(d, &out);
    else
      render_text(d, &out);
    write_out(sink, &out);
    strbuf_release(&out);
  }
  if (--sink->open == 0)
    arena_reset(&sink->arena);
  return status;
}

Status diag_vreport(DiagSink *sink, DiagCode code, DiagPlace place, const char *before,
                    const char *format, va_list args) {
  Diag *d = diag_begin(sink, code, place);
  diag_vmessage(d, before, format, args);
  return diag_end(d);
}

Status diag_report(DiagSink *sink, DiagCode code, DiagPlace place, const char *format, ...) {
  va_list args;
  va_start(args, format);
  Status status = diag_vreport(sink, code, place, "", format, args);
  va_end(args);
  return status;
}

static void keep_text(void *user, const char *text, size_t size) {
  DiagHold *hold = user;
  strbuf_append(&hold->text, (StrView){text, size});
}

void diag_hold(DiagSink *sink, DiagHold *hold) {
  *hold = (DiagHold){.sink = sink,
                     .write = sink->write,
                     .write_user = sink->write_user,
                     .errors = sink->errors,
                     .warnings = sink->warnings,
                     .first_error = sink->first_error,
                     .outer = sink->held};
  sink->held = hold;
  sink->write = keep_text;
  sink->write_user = hold;
}

void diag_drop(DiagHold *hold) {
  hold->sink->errors = hold->errors;
  hold->sink->warnings = hold->warnings;
  hold->sink->first_error = hold->first_error;
  strbuf_clear(&hold->text);
  strbuf_clear(&hold->first_message);
  memset(hold->codes, 0, sizeof hold->codes);
}

void diag_let_go(DiagHold *hold) {
  hold->sink->write = hold->write;
  hold->sink->write_user = hold->write_user;
  hold->sink->held = hold->outer;
  for (unsigned code = 0; hold->outer && code < DIAG_CODE_COUNT; code++)
    if (hold->codes[code])
      note_held(hold->outer, (DiagCode)code, hold->first_place,
                (StrView){hold->first_message.data, hold->first_message.size});
  strbuf_release(&hold->first_message);
  if (hold->text.size)
    write_out(hold->sink, &hold->text);
  strbuf_release(&hold->text);
}

/* Markdown of docs/ as man(7), a block at a time. */
#include "manual/roff.h"

typedef struct Blocks {
  StrView rest; /* lines not read yet */
  StrBuf *out;
} Blocks;

static StrView first_line(StrView text) {
  const char *end = text.size ? memchr(text.data, '\n', text.size) : NULL;
  return (StrView){text.data, end ? (size_t)(end - text.data) : text.size};
}

/* The next line, without its end, is read. */
static StrView take_line(Blocks *b) {
  StrView line = first_line(b->rest);
  size_t used = line.size + (line.size < b->rest.size);
  b->rest = (StrView){b->rest.data + used, b->rest.size - used};
  return line;
}

static StrView trimmed(StrView text) {
  while (text.size && text.data[0] == ' ')
    text = (StrView){text.data + 1, text.size - 1};
  while (text.size && text.data[text.size - 1] == ' ')
    text.size--;
  return text;
}

/* Where mark is in text from at on; text.size without one. */
static size_t find(StrView text, size_t at, StrView mark) {
  while (at < text.size && !sv_starts_with((StrView){text.data + at, text.size - at}, mark))
    at++;
  return at;
}

/* [TEXT](PLACE): the size of all of it, and *label; 0 for another bracket. */
static size_t link_size(StrView text, StrView *label) {
  if (text.data[0] != '[')
    return 0;
  size_t middle = find(text, 0, SV("](")), end = find(text, middle, SV(")"));
  if (end == text.size)
    return 0;
  *label = (StrView){text.data + 1, middle - 1};
  return end + 1;
}

/* `code`, **bold**, links and \| of tables. */
static void append_inline(StrBuf *out, StrView text) {
  for (size_t at = 0; at < text.size;) {
    StrView rest = {text.data + at, text.size - at}, label;
    StrView mark = sv_starts_with(rest, SV("**")) ? SV("**") : SV("`");
    size_t end = sv_starts_with(rest, mark) ? find(rest, mark.size, mark) : rest.size;
    size_t link = end == rest.size ? link_size(rest, &label) : 0;
    if (end < rest.size) {
      roff_bold(out, (StrView){rest.data + mark.size, end - mark.size});
      at += end + mark.size;
    } else if (link) {
      roff_text(out, label);
      at += link;
    } else {
      uint32_t code_point = 0;
      size_t skip = sv_starts_with(rest, SV("\\|"));
      unsigned size = utf8_decode(rest, skip, &code_point);
      size = size ? size : 1;
      roff_text(out, (StrView){rest.data + skip, size});
      at += skip + size;
    }
  }
}

static bool is_item(StrView line) { return sv_starts_with(line, SV("- ")); }
static bool is_fence(StrView line) { return sv_starts_with(trimmed(line), SV("```")); }
static bool is_row(StrView line) { return sv_starts_with(line, SV("|")); }
static bool is_heading(StrView line) { return sv_starts_with(line, SV("#")); }

/* Up to a blank line or another block. Spans may go over the ends of lines. */
static void read_paragraph(Blocks *b) {
  StrBuf text = {0};
  do {
    strbuf_append(&text, trimmed(take_line(b)));
    strbuf_append_char(&text, '\n');
  } while (first_line(b->rest).size && !is_item(first_line(b->rest)) &&
           !is_fence(first_line(b->rest)) && !is_row(first_line(b->rest)) &&
           !is_heading(first_line(b->rest)));
  append_inline(b->out, (StrView){strbuf_cstr(&text), text.size});
  strbuf_release(&text);
}

static void read_item(Blocks *b) {
  strbuf_append(b->out, SV(".IP \\(bu 3\n"));
  b->rest = (StrView){b->rest.data + 2, b->rest.size - 2};
  read_paragraph(b);
}

/* The first paragraph of a section needs no macro. */
static bool section_begins(const StrBuf *out) {
  size_t at = out->size > 1 ? out->size - 1 : 0;
  while (at > 0 && strbuf_cstr(out)[at - 1] != '\n')
    at--;
  return sv_starts_with((StrView){strbuf_cstr(out) + at, out->size - at}, SV(".SH "));
}

static void read_fenced(Blocks *b) {
  StrBuf text = {0};
  take_line(b);
  while (b->rest.size && !is_fence(first_line(b->rest))) {
    strbuf_append(&text, take_line(b));
    strbuf_append_char(&text, '\n');
  }
  take_line(b);
  strbuf_append(b->out, section_begins(b->out) ? SV("") : SV(".PP\n"));
  roff_example(b->out, (StrView){strbuf_cstr(&text), text.size});
  strbuf_release(&text);
}

/* The next cell of a row, which begins with '|'. */
static StrView take_cell(StrView *row) {
  size_t end = 1;
  while (end < row->size && !(row->data[end] == '|' && row->data[end - 1] != '\\'))
    end++;
  StrView cell = trimmed((StrView){row->data + 1, end - 1});
  *row = (StrView){row->data + end, row->size - end};
  return cell;
}

static void read_table(Blocks *b) {
  take_line(b); /* the names of the columns, and the line below */
  take_line(b);
  while (is_row(first_line(b->rest))) {
    StrView row = trimmed(take_line(b));
    strbuf_append(b->out, SV(".TP\n"));
    append_inline(b->out, take_cell(&row));
    strbuf_append_char(b->out, '\n');
    for (const char *between = ""; row.size > 1; between = "; ") {
      strbuf_append(b->out, sv_from(between));
      append_inline(b->out, take_cell(&row));
    }
    strbuf_append_char(b->out, '\n');
  }
}

static void read_heading(Blocks *b) {
  StrView line = take_line(b);
  size_t level = 0;
  while (level < line.size && line.data[level] == '#')
    level++;
  StrView title = trimmed((StrView){line.data + level, line.size - level});
  if (level == 1)
    return;
  roff_section(b->out, title);
}

void roff_markdown(StrBuf *out, StrView text) {
  Blocks b = {.rest = text, .out = out};
  while (b.rest.size) {
    StrView line = first_line(b.rest);
    if (trimmed(line).size == 0) {
      take_line(&b);
    } else if (is_heading(line)) {
      read_heading(&b);
    } else if (is_fence(line)) {
      read_fenced(&b);
    } else if (is_row(line)) {
      read_table(&b);
    } else if (is_item(line)) {
      read_item(&b);
    } else {
      strbuf_append(out, section_begins(out) ? SV("") : SV(".PP\n"));
      read_paragraph(&b);
    }
  }
}

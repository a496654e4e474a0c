/* See embed.h. The names, and the bytes of the program; embed_header.c has the header. */
#include "pte/embed.h"

#include "pte/schema.h"
#include "support/text.h"

enum { BYTES_A_LINE = 32, BYTES_IN_MEMORY = 1 << 20 };

bool embed_form(StrView output, EmbedForm *form) {
  static const struct {
    const char *suffix;
    EmbedForm form;
  } forms[] = {{".c", EMBED_C},     {".cc", EMBED_CPP},      {".cpp", EMBED_CPP},
               {".cxx", EMBED_CPP}, {".S", EMBED_ASSEMBLER}, {".s", EMBED_ASSEMBLER}};
  for (size_t i = 0; i < COUNT_OF(forms); i++)
    if (sv_has_suffix(output, sv_from(forms[i].suffix))) {
      *form = forms[i].form;
      return true;
    }
  return false;
}

/* --- names --- */

/* Of C23 and C++23, sorted. main is no keyword, but no variable may have its name either. */
static const char *const keywords[] = {"_Alignas",
                                       "_Alignof",
                                       "_Atomic",
                                       "_BitInt",
                                       "_Bool",
                                       "_Complex",
                                       "_Decimal128",
                                       "_Decimal32",
                                       "_Decimal64",
                                       "_Generic",
                                       "_Imaginary",
                                       "_Noreturn",
                                       "_Static_assert",
                                       "_Thread_local",
                                       "alignas",
                                       "alignof",
                                       "and",
                                       "and_eq",
                                       "asm",
                                       "auto",
                                       "bitand",
                                       "bitor",
                                       "bool",
                                       "break",
                                       "case",
                                       "catch",
                                       "char",
                                       "char16_t",
                                       "char32_t",
                                       "char8_t",
                                       "class",
                                       "co_await",
                                       "co_return",
                                       "co_yield",
                                       "compl",
                                       "concept",
                                       "const",
                                       "const_cast",
                                       "consteval",
                                       "constexpr",
                                       "constinit",
                                       "continue",
                                       "decltype",
                                       "default",
                                       "delete",
                                       "do",
                                       "double",
                                       "dynamic_cast",
                                       "else",
                                       "enum",
                                       "explicit",
                                       "export",
                                       "extern",
                                       "false",
                                       "float",
                                       "for",
                                       "friend",
                                       "goto",
                                       "if",
                                       "inline",
                                       "int",
                                       "long",
                                       "main",
                                       "mutable",
                                       "namespace",
                                       "new",
                                       "noexcept",
                                       "not",
                                       "not_eq",
                                       "nullptr",
                                       "operator",
                                       "or",
                                       "or_eq",
                                       "private",
                                       "protected",
                                       "public",
                                       "register",
                                       "reinterpret_cast",
                                       "requires",
                                       "restrict",
                                       "return",
                                       "short",
                                       "signed",
                                       "sizeof",
                                       "static",
                                       "static_assert",
                                       "static_cast",
                                       "struct",
                                       "switch",
                                       "template",
                                       "this",
                                       "thread_local",
                                       "throw",
                                       "true",
                                       "try",
                                       "typedef",
                                       "typeid",
                                       "typename",
                                       "typeof",
                                       "typeof_unqual",
                                       "union",
                                       "unsigned",
                                       "using",
                                       "virtual",
                                       "void",
                                       "volatile",
                                       "wchar_t",
                                       "while",
                                       "xor",
                                       "xor_eq"};

bool embed_is_identifier(StrView text) {
  for (size_t i = 0; i < text.size; i++)
    if (!is_word(text.data[i]) || (i == 0 && is_digit(text.data[i])))
      return false;
  for (size_t i = 0; i < COUNT_OF(keywords); i++)
    if (sv_eq_str(text, keywords[i]))
      return false;
  return text.size > 0;
}

char *embed_word(Arena *arena, StrView text) {
  char *word = arena_alloc(arena, 2 * text.size + 1), *to = word;
  for (size_t i = 0; i < text.size; i++) {
    unsigned char c = (unsigned char)text.data[i];
    if (c < 0x80) {
      *to++ = is_word((char)c) ? (char)c : '_';
      continue;
    }
    *to++ = "0123456789abcdef"[c >> 4];
    *to++ = "0123456789abcdef"[c & 15];
  }
  *to = 0;
  return word;
}

char *embed_symbol(Arena *arena, StrView path) {
  size_t begin = path.size;
  while (begin && path.data[begin - 1] != '/')
    begin--;
  StrView name = {path.data + begin, path.size - begin};
  bool prefix = name.size == 0 || is_digit(name.data[0]);
  return arena_printf(arena, "%s%s", prefix ? "_" : "", embed_word(arena, name));
}

void embed_append_string(StrBuf *out, StrView text) {
  strbuf_append_char(out, '"');
  for (size_t i = 0; i < text.size; i++) {
    unsigned char c = (unsigned char)text.data[i];
    /* '*' could begin or end a comment, '?' a trigraph. */
    if (c < ' ' || c > '~' || strchr("\"\\*?", c))
      strbuf_printf(out, "\\%03o", c);
    else
      strbuf_append_char(out, (char)c);
  }
  strbuf_append_char(out, '"');
}

void embed_append_origin(const Embed *e, StrBuf *out) {
  strbuf_append(out, SV("/* Made by etc " ETC_VERSION " of "));
  embed_append_string(out, sv_from(e->file->path));
  strbuf_append(out, SV(": do not edit. */\n"));
}

uint64_t embed_alignment(const PteProgram *p) {
  uint64_t alignment = PTE_SEGMENT_ALIGNMENT;
  bool any = false;
  for (uint32_t i = 0; i < p->segment_count; i++) {
    any |= p->segments[i].size > 0;
    while (p->segments[i].size && p->segments[i].offset % alignment)
      alignment /= 2;
  }
  return any && alignment > PTE_TENSOR_ALIGNMENT ? alignment : PTE_TENSOR_ALIGNMENT;
}

/* --- the array --- */

/* One line of numbers. Every byte of the text counts: compilers take about a second and 100 MB of
 * memory for a megabyte of the program. */
static void write_line(AtomicFile *out, const uint8_t *data, uint64_t size) {
  char line[BYTES_A_LINE * 4 + 1];
  size_t length = 0;
  for (uint64_t i = 0; i < size; i++) {
    unsigned byte = data[i];
    if (byte >= 100)
      line[length++] = (char)('0' + byte / 100);
    if (byte >= 10)
      line[length++] = (char)('0' + byte / 10 % 10);
    line[length++] = (char)('0' + byte % 10);
    line[length++] = ',';
  }
  line[length++] = '\n';
  atomic_file_write(out, line, length);
}

static void write_text(AtomicFile *out, StrBuf *text) {
  atomic_file_write(out, strbuf_cstr(text), text->size);
  strbuf_release(text);
}

/* The declaration goes before: const arrays of C++ are local to their file without. */
static void write_numbers(const Embed *e, AtomicFile *out) {
  unsigned long long size = (unsigned long long)e->file->size;
  bool cpp = e->form == EMBED_CPP;
  StrBuf text = {0};
  embed_append_origin(e, &text);
  strbuf_printf(&text, "extern %sconst unsigned char %s[%llu];\n\n%s(%llu) ", cpp ? "\"C\" " : "",
                e->symbol, size, cpp ? "alignas" : "_Alignas", (unsigned long long)e->alignment);
  if (e->section)
    strbuf_printf(&text, "__attribute__((section(\"%s\"))) ", e->section);
  strbuf_printf(&text, "const unsigned char %s[%llu] = {\n", e->symbol, size);
  write_text(out, &text);
  for (uint64_t at = 0; at < e->file->size; at += BYTES_A_LINE) {
    uint64_t rest = e->file->size - at;
    write_line(out, e->file->data + at, rest < BYTES_A_LINE ? rest : BYTES_A_LINE);
    if (at && at % BYTES_IN_MEMORY == 0)
      file_drop_pages(e->file, at - BYTES_IN_MEMORY, BYTES_IN_MEMORY);
  }
  atomic_file_write(out, "};\n", 3);
}

/* For GNU as and clang, on every machine with ELF. A file that has another size by the time it is
 * assembled is an error: the header would be wrong. */
static void write_section(const Embed *e, AtomicFile *out) {
  unsigned long long size = (unsigned long long)e->file->size;
  StrBuf text = {0};
  embed_append_origin(e, &text);
  strbuf_append(&text, SV("\t.section "));
  if (e->section)
    strbuf_append(&text, sv_from(e->section));
  else
    strbuf_printf(&text, ".rodata.%s", e->symbol);
  strbuf_printf(&text,
                ",\"a\",%%progbits\n\t.balign %llu\n\t.global %s\n\t.type %s, %%object\n"
                "\t.size %s, %llu\n%s:\n\t.incbin ",
                (unsigned long long)e->alignment, e->symbol, e->symbol, e->symbol, size, e->symbol);
  embed_append_string(&text, sv_from(e->file->path));
  strbuf_printf(&text,
                "\n\t.if (. - %s) != %llu\n"
                "\t.error \"the embedded file has changed: run etc embed again\"\n\t.endif\n"
                "\t.section .note.GNU-stack,\"\",%%progbits\n",
                e->symbol, size);
  write_text(out, &text);
}

void embed_write_array(const Embed *e, AtomicFile *out) {
  if (e->form == EMBED_ASSEMBLER)
    write_section(e, out);
  else
    write_numbers(e, out);
}

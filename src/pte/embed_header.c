/* See embed.h. The header: one macro for each number that a host needs before the program is
 * loaded.
 *
 * Macros of the program are PREFIX_WHAT, those of a method PREFIX_METHOD_WHAT. No WHAT of a method
 * ends in "_" and another WHAT, so that two methods have the same macro only where their names are
 * the same as identifiers, which is checked. */
#include "pte/embed.h"

#include <math.h>

#include "pte/inspect_internal.h"
#include "pte/runtime_memory.h"
#include "support/keymap.h"
#include "support/text.h"

enum { PIECE = 1 << 16, MAX_METHOD_NAME = 200 /* a part of many macros */ };

typedef struct HeaderWriter {
  const Embed *e;
  AtomicFile *out;
  Arena arena;
  StrBuf text;        /* what is not written yet */
  const char *prefix; /* of all macros */
} HeaderWriter;

/* Names and numbers of a program can be as many as the file has bytes. */
static void write_pieces(HeaderWriter *w, size_t least) {
  if (w->text.size < least)
    return;
  atomic_file_write(w->out, strbuf_cstr(&w->text), w->text.size);
  strbuf_clear(&w->text);
}

/* Text as a word, in capitals. */
static char *macro_name(Arena *arena, StrView text) {
  char *name = embed_word(arena, text);
  for (char *c = name; *c; c++)
    *c = to_upper(*c);
  return name;
}

static void define(HeaderWriter *w, const char *macro, uint64_t value) {
  strbuf_printf(&w->text, "#define %s_%s %llu\n", w->prefix, macro, (unsigned long long)value);
}

/* --- memory --- */

/* An arena of any method: the largest of all, and the bank of the first method that names it. */
typedef struct SharedArena {
  uint64_t bytes;
  const MemoryBank *bank;
} SharedArena;

/* By memory id; [0] unused. */
static SharedArena *shared_arenas(const PteProgram *p, Arena *arena, uint32_t *count) {
  *count = 1;
  for (uint32_t i = 0; i < p->method_count; i++)
    *count = p->methods[i].arena_count > *count ? p->methods[i].arena_count : *count;
  SharedArena *shared = ARENA_ARRAY(arena, SharedArena, *count);
  for (uint32_t i = 0; i < p->method_count; i++) {
    const PteMethod *m = &p->methods[i];
    for (uint32_t k = 1; k < m->arena_count; k++) {
      if (m->arena_sizes[k] > shared[k].bytes)
        shared[k].bytes = m->arena_sizes[k];
      if (k <= m->bank_count && !shared[k].bank)
        shared[k].bank = &m->banks[k - 1];
    }
  }
  return shared;
}

/* What tensors begin at multiples of as far as their offsets tell: the largest power of two from 16
 * to 128; those at 0 say nothing. */
static uint64_t offset_alignment(const PteProgram *p) {
  uint64_t alignment = PTE_SEGMENT_ALIGNMENT;
  bool any = false;
  for (uint32_t i = 0; i < p->method_count; i++)
    for (uint32_t k = 0; k < p->methods[i].value_count; k++) {
      const PteValue *v = &p->methods[i].values[k];
      if (v->kind != PTE_TENSOR || !v->tensor->memory_id || !v->tensor->offset)
        continue;
      any = true;
      while (v->tensor->offset % alignment)
        alignment /= 2;
    }
  return any && alignment > PTE_TENSOR_ALIGNMENT ? alignment : PTE_TENSOR_ALIGNMENT;
}

/* What an arena must begin at a multiple of: what the file says, or else what its offsets do. */
static uint64_t arena_alignment(const PteProgram *p) {
  uint64_t asked = 0;
  for (uint32_t i = 0; i < p->method_count; i++)
    asked = p->methods[i].arena_alignment > asked ? p->methods[i].arena_alignment : asked;
  return asked >= PTE_TENSOR_ALIGNMENT ? asked : offset_alignment(p);
}

/* method: with "_" behind it, or "". */
static void write_arena(HeaderWriter *w, const char *method, uint32_t arena, uint64_t bytes,
                        const MemoryBank *bank) {
  strbuf_printf(&w->text, "#define %s_%sARENA_%u %llu", w->prefix, method, arena,
                (unsigned long long)bytes);
  if (bank) {
    strbuf_append(&w->text, SV(" /* bank "));
    embed_append_string(&w->text, bank->name);
    strbuf_printf(&w->text, " of %llu bytes */", (unsigned long long)bank->size);
  }
  strbuf_append_char(&w->text, '\n');
  write_pieces(w, PIECE);
}

/* The arena that the states are in; 0: the program has no states. */
static uint32_t state_arena(const PteProgram *p) {
  for (uint32_t i = 0; i < p->method_count; i++)
    for (uint32_t k = 0; k < p->methods[i].value_count; k++) {
      const PteValue *v = &p->methods[i].values[k];
      if (v->kind == PTE_TENSOR && pte_is_state(v->tensor))
        return v->tensor->memory_id;
    }
  return 0;
}

static void write_memory(HeaderWriter *w, const PteProgram *p) {
  uint32_t count;
  const SharedArena *shared = shared_arenas(p, &w->arena, &count);
  strbuf_append(&w->text,
                SV("\n/* Memory for the tensors of any one method: arena I is for memory id I, "
                   "buffer I - 1 of a\n * HierarchicalAllocator. Each begins at a multiple of the "
                   "alignment; one of 0 bytes is unused. */\n"));
  define(w, "ARENA_ALIGNMENT", arena_alignment(p));
  define(w, "ARENAS", count - 1);
  for (uint32_t i = 1; i < count; i++)
    write_arena(w, "", i, shared[i].bytes, shared[i].bank);
  if (state_arena(p))
    strbuf_printf(
        &w->text,
        "/* Arena %u has the states: nothing else may write there between calls, and all "
        "methods are given\n * the same one. Loading a method writes the first contents of "
        "its states. */\n",
        state_arena(p));
}

/* --- methods --- */

static void write_lists(HeaderWriter *w, const char *macro, const PteTensor *t) {
  strbuf_printf(&w->text, "#define %s_%s_SIZES {", w->prefix, macro);
  for (uint32_t i = 0; i < t->rank; i++)
    strbuf_printf(&w->text, "%s%d", i ? ", " : "", (int)t->sizes[i]);
  strbuf_printf(&w->text, "}\n#define %s_%s_DIM_ORDER {", w->prefix, macro);
  for (uint32_t i = 0; i < t->rank; i++)
    strbuf_printf(&w->text, "%s%d", i ? ", " : "", (int)t->dim_order[i]);
  strbuf_append(&w->text, SV("}\n"));
}

/* "f32[1, 3], dynamic up to these sizes, in arena 1". */
static void append_tensor(StrBuf *out, const PteTensor *t) {
  strbuf_append_char(out, '[');
  for (uint32_t i = 0; i < t->rank; i++)
    strbuf_printf(out, "%s%d", i ? ", " : "", t->sizes[i]);
  strbuf_append_char(out, ']');
  if (t->name.size) {
    strbuf_append(out, SV(" "));
    embed_append_string(out, t->name);
  }
  if (t->dynamism != PTE_STATIC)
    strbuf_append(out, SV(", dynamic up to these sizes"));
  if (t->memory_id)
    strbuf_printf(out, ", in arena %u", t->memory_id);
  else
    strbuf_append(out, pte_is_constant(t) ? SV(", constant") : SV(", in memory of the host"));
}

static void write_tensor(HeaderWriter *w, const char *macro, const PteTensor *t) {
  strbuf_printf(&w->text, "#define %s_%s_BYTES %llu\n", w->prefix, macro,
                (unsigned long long)t->bytes);
  strbuf_printf(&w->text, "#define %s_%s_TYPE %u\n", w->prefix, macro, t->dtype);
  strbuf_printf(&w->text, "#define %s_%s_RANK %u\n", w->prefix, macro, t->rank);
  if (t->rank)
    write_lists(w, macro, t);
}

/* What a method without instructions returns, where C has a literal for it. */
static void write_constant(HeaderWriter *w, const char *macro, const PteValue *v) {
  bool literal = v->kind == PTE_STRING || (v->kind == PTE_DOUBLE && isfinite(v->f)) ||
                 ((v->kind == PTE_INT || v->kind == PTE_BOOL) && v->i != INT64_MIN);
  if (!literal)
    return;
  strbuf_printf(&w->text, "#define %s_%s_VALUE ", w->prefix, macro);
  if (v->kind == PTE_STRING) {
    embed_append_string(&w->text, v->text);
  } else {
    strbuf_append_char(&w->text, '(');
    if (v->kind == PTE_DOUBLE)
      strbuf_append_double(&w->text, v->f);
    else
      strbuf_printf(&w->text, "%lld", (long long)v->i);
    strbuf_append_char(&w->text, ')');
  }
  strbuf_append_char(&w->text, '\n');
}

static void write_value(HeaderWriter *w, const char *macro, const PteValue *v, bool constant) {
  strbuf_printf(&w->text, "/* %s", inspect_kind(v));
  if (v->kind == PTE_TENSOR)
    append_tensor(&w->text, v->tensor);
  strbuf_append(&w->text, SV(" */\n"));
  if (v->kind == PTE_TENSOR)
    write_tensor(w, macro, v->tensor);
  else if (constant)
    write_constant(w, macro, v);
  write_pieces(w, PIECE);
}

/* title: "INPUT" or "OUTPUT". */
static void write_values(HeaderWriter *w, const char *method, const char *title, const PteMethod *m,
                         const int32_t *indices, uint32_t count) {
  strbuf_printf(&w->text, "#define %s_%s_%sS %u\n", w->prefix, method, title, count);
  StrBuf macro = {0};
  for (uint32_t i = 0; i < count; i++) {
    strbuf_clear(&macro);
    strbuf_printf(&macro, "%s_%s_%u", method, title, i);
    write_value(w, strbuf_cstr(&macro), &m->values[indices[i]], m->instruction_count == 0);
  }
  strbuf_release(&macro);
}

static void write_by_word(HeaderWriter *w, const char *method, const char *what, uint64_t bytes32,
                          uint64_t bytes64) {
  strbuf_printf(&w->text, "#define %s_%s%s (sizeof(void *) == 4 ? %llu : %llu)\n", w->prefix,
                method, what, (unsigned long long)bytes32, (unsigned long long)bytes64);
}

static void write_runtime_memory(HeaderWriter *w, const PteMethod *m, const char *method) {
  RuntimeMemory m32 = pte_runtime_memory(m, 4), m64 = pte_runtime_memory(m, 8);
  write_by_word(w, method, "METHOD_BYTES", m32.method, m64.method);
  write_by_word(w, method, "TEMP_BYTES", m32.temp, m64.temp);
}

static void write_method(HeaderWriter *w, const PteMethod *m, const char *name) {
  strbuf_append(&w->text, SV("\n/* Method "));
  embed_append_string(&w->text, m->name);
  strbuf_printf(&w->text, ". */\n#define %s_%s_NAME ", w->prefix, name);
  embed_append_string(&w->text, m->name);
  strbuf_printf(&w->text, "\n#define %s_%s_ARENAS %u\n", w->prefix, name,
                m->arena_count ? m->arena_count - 1 : 0);
  const char *before = arena_printf(&w->arena, "%s_", name);
  for (uint32_t i = 1; i < m->arena_count; i++)
    write_arena(w, before, i, m->arena_sizes[i], i <= m->bank_count ? &m->banks[i - 1] : NULL);
  write_runtime_memory(w, m, before);
  write_values(w, name, "INPUT", m, m->inputs, m->input_count);
  write_values(w, name, "OUTPUT", m, m->outputs, m->output_count);
}

/* The name of method i in macros, which is added to known. */
static Status method_macro(HeaderWriter *w, DiagSink *sink, KeyMap *known, uint32_t i, char **out) {
  const PteProgram *p = w->e->program;
  StrView name = p->methods[i].name;
  if (name.size > MAX_METHOD_NAME)
    return diag_report(sink, DIAG_EMBED, pte_place(p),
                       "the name of method %u has %zu bytes, too many for macros", i, name.size);
  uint32_t *slot;
  *out = macro_name(&w->arena, name);
  uint32_t before = keymap_get(known, *out, (uint32_t)strlen(*out), &slot);
  if (before)
    return diag_report(sink, DIAG_EMBED, pte_place(p),
                       "the macros of methods '" SV_FMT "' and '" SV_FMT
                       "' would both begin with %s_%s",
                       SV_ARG(p->methods[before - 1].name), SV_ARG(name), w->prefix, *out);
  *slot = i + 1;
  return STATUS_OK;
}

static Status write_methods(HeaderWriter *w, DiagSink *sink) {
  const PteProgram *p = w->e->program;
  KeyMap known = keymap_make(&w->arena, (uint64_t)(uintptr_t)p); /* no file can know the address */
  strbuf_append(
      &w->text,
      SV("\n/* What the runtime takes to load a method, of the method allocator and of the "
         "temporary one, is METHOD_BYTES\n * and TEMP_BYTES: for version 1.4.1 with portable "
         "kernels; backends take more of their own. */\n"));
  define(w, "METHODS", p->method_count);
  for (uint32_t i = 0; i < p->method_count; i++) {
    char *name = NULL;
    TRY(method_macro(w, sink, &known, i, &name));
    write_method(w, &p->methods[i], name);
  }
  return STATUS_OK;
}

/* --- all of it --- */

static void write_declaration(HeaderWriter *w) {
  const Embed *e = w->e;
  embed_append_origin(e, &w->text);
  strbuf_printf(&w->text, "#ifndef %s_H\n#define %s_H\n\n", w->prefix, w->prefix);
  define(w, "SIZE", e->file->size);
  define(w, "ALIGNMENT", e->alignment);
  strbuf_printf(&w->text,
                "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
                "extern const unsigned char %s[%s_SIZE];\n"
                "#ifdef __cplusplus\n}\n#endif\n",
                e->symbol, w->prefix);
}

static Status write_header(HeaderWriter *w, DiagSink *sink) {
  const PteProgram *p = w->e->program;
  write_declaration(w);
  if (p) {
    write_memory(w, p);
    TRY(write_methods(w, sink));
  }
  strbuf_append(&w->text, SV("\n#endif\n"));
  write_pieces(w, 0);
  return STATUS_OK;
}

Status embed_write_header(const Embed *e, DiagSink *sink, AtomicFile *out) {
  HeaderWriter w = {.e = e, .out = out};
  w.prefix = macro_name(&w.arena, sv_from(e->symbol));
  Status status = write_header(&w, sink);
  strbuf_release(&w.text);
  arena_release(&w.arena);
  return status;
}

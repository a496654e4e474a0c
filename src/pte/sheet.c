/* The facts of a program that two of them are compared by, see inspect.h. */
#include <xxhash.h>

#include "ir/constant_method.h"
#include "pte/inspect_internal.h"
#include "pte/read_internal.h"
#include "pte/size.h"

typedef struct Filler {
  const PteProgram *p;
  Sheet *sheet;
  Arena *arena;
  Sheet sums; /* what is counted */
  StrView method;
} Filler;

static void add_text(Filler *f, FactSection section, const char *name, StrBuf *text) {
  sheet_add(f->sheet, (Fact){.section = section,
                             .kind = FACT_TEXT,
                             .method = f->method,
                             .name = sv_from(name),
                             .text = {strbuf_cstr(text), text->size}});
  strbuf_release(text);
}

static void add_number(Filler *f, FactSection section, FactKind kind, const char *name,
                       uint64_t number) {
  sheet_add(f->sheet, (Fact){.section = section,
                             .kind = kind,
                             .method = f->method,
                             .name = sv_from(name),
                             .number = number});
}

static void count(Filler *f, FactSection section, FactKind kind, StrView name, uint64_t number) {
  sheet_add(
      &f->sums,
      (Fact){
          .section = section, .kind = kind, .method = f->method, .name = name, .number = number});
}

/* --- inputs and outputs --- */

/* "'x' f32[1..8, 4]": by position, as the runtime has them. */
static void add_values(Filler *f, const char *what, const PteMethod *m, const int32_t *indices,
                       uint32_t value_count, PteRange *const *ranges) {
  for (uint32_t i = 0; i < value_count; i++) {
    const PteValue *v = &m->values[indices[i]];
    StrBuf text = {0};
    if (v->kind == PTE_TENSOR && v->tensor->name.size) {
      strbuf_append_char(&text, '\'');
      strbuf_append(&text, v->tensor->name);
      strbuf_append(&text, SV("' "));
    }
    inspect_append_value(&text, v, ranges ? ranges[i] : NULL);
    add_text(f, FACTS_INTERFACE, arena_printf(f->arena, "%s %u", what, i), &text);
  }
}

static void add_states(Filler *f, const PteMethod *m) {
  for (uint32_t i = 0; i < m->value_count; i++) {
    StrBuf text = {0};
    if (!inspect_is_state(&m->values[i]))
      continue;
    inspect_append_value(&text, &m->values[i], NULL);
    add_text(f, FACTS_INTERFACE,
             arena_printf(f->arena, "state '" SV_FMT "'", SV_ARG(m->values[i].tensor->name)),
             &text);
  }
}

/* --- memory, operators, delegates --- */

static void add_memory(Filler *f, const PteMethod *m, const PteMethodSize *size) {
  for (uint32_t i = 0; i < size->arena_count; i++) {
    const PteArena *a = &size->arenas[i];
    const char *name =
        a->bank ? arena_printf(f->arena, "arena %u '" SV_FMT "'", a->id, SV_ARG(a->bank->name))
                : arena_printf(f->arena, "arena %u", a->id);
    add_number(f, FACTS_MEMORY, FACT_BYTES, name, a->bytes);
  }
  add_number(f, FACTS_MEMORY, FACT_BYTES, "in use at once", pte_method_memory(m).live_peak);
  add_number(f, FACTS_MEMORY, FACT_BYTES, "packed weights of delegates, estimated", size->packed);
  add_number(f, FACTS_MEMORY, FACT_BYTES, "workspace of delegates, estimated", size->workspace);
}

static void add_operators(Filler *f, const PteMethod *m) {
  MethodFigures figures = method_figures(m, f->arena);
  add_number(f, FACTS_OPERATORS, FACT_COUNT, "instructions", m->instruction_count);
  add_number(f, FACTS_OPERATORS, FACT_COUNT, "kernel calls", figures.kinds[PTE_KERNEL_CALL]);
  add_number(f, FACTS_OPERATORS, FACT_COUNT, "different kernels", figures.used);
  for (uint32_t i = 0; i < figures.used; i++)
    count(f, FACTS_OPERATORS, FACT_COUNT, m->operators[figures.order[i]],
          figures.calls[figures.order[i]]);
  add_number(f, FACTS_DELEGATES, FACT_COUNT, "delegate calls", figures.kinds[PTE_DELEGATE_CALL]);
}

static void add_delegate(Filler *f, const PteDelegate *d, uint64_t *budget) {
  DelegateFigures figures;
  StrView id = inspect_clip(d->id);
  count(f, FACTS_DELEGATES, FACT_COUNT, id, 1);
  if (inspect_delegate(f->p, d, budget, f->arena, &figures))
    return;
  count(f, FACTS_DELEGATES, FACT_COUNT,
        sv_from(arena_printf(f->arena, SV_FMT " nodes", SV_ARG(id))), figures.node_count);
  count(f, FACTS_DELEGATES, FACT_COUNT,
        sv_from(arena_printf(f->arena, SV_FMT " transposes", SV_ARG(id))), figures.transpose_count);
  count(f, FACTS_QUANTIZATION, FACT_COUNT,
        sv_from(arena_printf(f->arena, SV_FMT " nodes on 8 bits", SV_ARG(id))), figures.byte_nodes);
  for (uint32_t i = 0; i < figures.kind_count; i++)
    count(f, FACTS_DELEGATES, FACT_COUNT,
          sv_from(arena_printf(f->arena, SV_FMT " %s %s", SV_ARG(id), figures.nodes[i].what,
                               figures.nodes[i].types)),
          figures.nodes[i].count);
}

static void add_method(Filler *f, const PteMethod *m, const MethodDims *dims,
                       const PteMethodSize *size, uint64_t *budget) {
  const ConstantMethod *constant = read_constant_method(f->p, m, f->arena);
  f->method = m->name;
  if (constant) {
    StrBuf text = {0};
    constant_method_print(constant, &text);
    add_text(f, FACTS_INTERFACE, "value", &text);
    return;
  }
  add_values(f, "input", m, m->inputs, m->input_count, dims->inputs);
  add_values(f, "output", m, m->outputs, m->output_count, dims->outputs);
  add_states(f, m);
  add_memory(f, m, size);
  add_operators(f, m);
  for (uint32_t i = 0; i < m->delegate_count; i++)
    add_delegate(f, &m->delegates[i], budget);
}

/* --- the file --- */

static uint64_t hash_parts(const Filler *f, const PteSize *size, PtePartKind kind) {
  uint64_t hash = f->sheet->seed;
  for (uint32_t i = 0; i < size->part_count; i++)
    if (size->parts[i].kind == kind && kind != PTE_PART_PADDING)
      hash = XXH3_64bits_withSeed(f->p->file.data + size->parts[i].offset,
                                  (size_t)size->parts[i].bytes, hash);
  return hash;
}

static void add_size(Filler *f, const PteSize *size) {
  sheet_add(f->sheet, (Fact){.section = FACTS_SIZE,
                             .kind = FACT_BYTES,
                             .name = SV("file"),
                             .number = f->p->file.size,
                             .hash = XXH3_64bits_withSeed(f->p->file.data, (size_t)f->p->file.size,
                                                          f->sheet->seed)});
  for (PtePartKind k = 0; k < PTE_PART_KINDS; k++)
    sheet_add(f->sheet, (Fact){.section = FACTS_SIZE,
                               .kind = FACT_BYTES,
                               .name = sv_from(pte_part_name(k)),
                               .number = size->totals[k],
                               .hash = hash_parts(f, size, k)});
  add_number(f, FACTS_SIZE, FACT_BYTES, "constants in a file of their own", size->external);
}

/* A named one as it is, others by their type. */
static void add_constant(Filler *f, const PteValue *v) {
  const PteTensor *t = v->tensor;
  StrBuf type = {0};
  inspect_append_value(&type, v, NULL);
  StrView text = {strbuf_cstr(&type), type.size};
  f->method = SV("");
  count(f, FACTS_QUANTIZATION, FACT_BYTES,
        sv_from(arena_printf(f->arena, "constants in %s", pte_dtype_name(t->dtype))), t->bytes);
  if (!t->name.size)
    count(f, FACTS_CONSTANTS, FACT_COUNT, sv_from(arena_strdup(f->arena, text)), 1);
  else
    sheet_add(f->sheet,
              (Fact){.section = FACTS_CONSTANTS,
                     .kind = FACT_TEXT,
                     .name = t->name,
                     .text = text,
                     .hash = t->external ? 0
                                         : XXH3_64bits_withSeed(pte_tensor_data(f->p, t),
                                                                (size_t)t->bytes, f->sheet->seed)});
  strbuf_release(&type);
}

/* Each index of data, and each name of data in another file, once. */
static void add_constants(Filler *f) {
  Bitset seen = bitset_make(f->arena, f->p->constants.count);
  KeyMap names = keymap_make(f->arena, f->sheet->seed);
  for (uint32_t i = 0; i < f->p->method_count; i++)
    for (uint32_t k = 0; k < f->p->methods[i].value_count; k++) {
      const PteValue *v = &f->p->methods[i].values[k];
      uint32_t *slot;
      if (v->kind != PTE_TENSOR || !pte_is_constant(v->tensor))
        continue;
      if (v->tensor->external) {
        StrView name = v->tensor->name;
        if (keymap_get(&names, name.data, (uint32_t)name.size, &slot))
          continue;
        *slot = 1;
      } else {
        if (bitset_has(&seen, v->tensor->data))
          continue;
        bitset_add(&seen, v->tensor->data);
      }
      add_constant(f, v);
    }
  f->method = SV("");
  add_number(f, FACTS_CONSTANTS, FACT_COUNT, "data of delegates", f->p->named_data_count);
}

void pte_sheet(const PteProgram *p, Sheet *sheet) {
  uint64_t budget = pte_code_budget(p);
  Arena arena = {0};
  Filler f = {.p = p, .sheet = sheet, .arena = &arena, .sums = {.arena = &arena}};
  PteSize size = pte_size(p, NULL, &arena);
  const MethodDims *dims = program_dims(p, &arena);
  add_size(&f, &size);
  for (uint32_t i = 0; i < p->method_count; i++)
    add_method(&f, &p->methods[i], &dims[i], &size.methods[i], &budget);
  add_constants(&f);
  sheet_add_sums(sheet, &f.sums);
  arena_release(&arena);
}

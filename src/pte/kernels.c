/* See kernels.h. */
#include "pte/kernels.h"

#include <stdlib.h>

#include "pte/inspect_internal.h"
#include "support/text.h"

/* --- sets of pairs --- */

typedef struct Pair {
  StrView first, second;
} Pair;

static PairSet pair_set(Arena *arena) {
  return (PairSet){.seen = keymap_make(arena, (uint64_t)(uintptr_t)arena)};
}

static StrView kept(Arena *arena, StrView text) {
  return (StrView){arena_strdup(arena, text), text.size};
}

static void pair_add(PairSet *s, StrView first, StrView second) {
  StrBuf key = {0};
  uint32_t *slot;
  strbuf_append(&key, first);
  strbuf_append_char(&key, '\0');
  strbuf_append(&key, second);
  if (keymap_get(&s->seen, strbuf_cstr(&key), (uint32_t)key.size, &slot) == 0) {
    *slot = 1;
    POOL_PUSH(s->pairs, s->count, s->capacity,
              (Pair){kept(s->seen.arena, first), kept(s->seen.arena, second)});
  }
  strbuf_release(&key);
}

static int compare_pairs(const void *a, const void *b) {
  const Pair *x = a, *y = b;
  int order = text_compare(x->first, y->first);
  return order ? order : text_compare(x->second, y->second);
}

static void pair_sort(PairSet *s) {
  if (s->count)
    qsort(s->pairs, s->count, sizeof *s->pairs, compare_pairs);
}

/* The first pair of a sorted set whose first text is not before text. */
static uint32_t pair_find(const PairSet *s, StrView text) {
  uint32_t begin = 0, end = s->count;
  while (begin < end) {
    uint32_t middle = begin + (end - begin) / 2;
    if (text_compare(s->pairs[middle].first, text) < 0)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

/* The end of the pairs that have the same first text as pair `begin`. */
static uint32_t pair_group(const PairSet *s, uint32_t begin) {
  uint32_t end = begin + 1;
  while (end < s->count && sv_eq(s->pairs[begin].first, s->pairs[end].first))
    end++;
  return end;
}

/* --- collecting --- */

void kernel_list_init(KernelList *l) {
  *l = (KernelList){0};
  l->operators = l->keys = l->dtypes = l->backends = pair_set(&l->arena);
}

void kernel_list_release(KernelList *l) {
  PairSet *sets[] = {&l->operators, &l->keys, &l->dtypes, &l->backends};
  for (size_t i = 0; i < COUNT_OF(sets); i++)
    xfree(sets[i]->pairs);
  arena_release(&l->arena);
}

/* The tensor that stands for an argument: of a list the first one, as the runtime's build tool has
 * it; NULL where there is none. */
static const PteTensor *tensor_of(const PteMethod *m, int32_t value) {
  const PteValue *v = &m->values[value];
  if (v->kind == PTE_TENSOR)
    return v->tensor;
  if (v->kind != PTE_TENSOR_LIST && v->kind != PTE_OPTIONAL_TENSOR_LIST)
    return NULL;
  for (uint32_t i = 0; i < v->count; i++)
    if (v->indices[i] >= 0 && m->values[v->indices[i]].kind == PTE_TENSOR)
      return m->values[v->indices[i]].tensor;
  return NULL;
}

/* "v1/6;0,1|6;0,1": element type and dim order of each tensor; "v1" without tensors. */
static void add_call(KernelList *l, const PteMethod *m, const PteInstruction *call, StrBuf *key) {
  StrView name = m->operators[call->index];
  const char *before = "/";
  strbuf_clear(key);
  strbuf_append(key, SV("v1"));
  for (uint32_t i = 0; i < call->count; i++) {
    const PteTensor *t = tensor_of(m, call->args[i]);
    if (!t)
      continue;
    strbuf_printf(key, "%s%u;", before, t->dtype);
    before = "|";
    for (uint32_t k = 0; k < t->rank; k++)
      strbuf_printf(key, "%s%u", k ? "," : "", t->dim_order[k]);
    pair_add(&l->dtypes, name, sv_from(pte_dtype_name(t->dtype)));
  }
  pair_add(&l->keys, name, (StrView){strbuf_cstr(key), key->size});
}

static void add_method(KernelList *l, const PteMethod *m, StrView path) {
  StrBuf key = {0};
  for (uint32_t i = 0; i < m->operator_count; i++)
    pair_add(&l->operators, m->operators[i], path);
  for (uint32_t i = 0; i < m->delegate_count; i++)
    pair_add(&l->backends, m->delegates[i].id, path);
  for (uint32_t i = 0; i < m->instruction_count; i++)
    if (m->instructions[i].kind == PTE_KERNEL_CALL)
      add_call(l, m, &m->instructions[i], &key);
  strbuf_release(&key);
}

void kernel_list_add(KernelList *l, const PteProgram *p) {
  for (uint32_t i = 0; i < p->method_count; i++)
    add_method(l, &p->methods[i], sv_from(p->file.path));
}

static void sort_all(KernelList *l) {
  pair_sort(&l->operators);
  pair_sort(&l->keys);
  pair_sort(&l->dtypes);
  pair_sort(&l->backends);
}

/* Names of kernels and backends as there are: plain in YAML, and no code in CMake. */
static bool is_plain(StrView text) {
  for (size_t i = 0; i < text.size; i++) {
    char c = text.data[i];
    if (!is_word(c) && c != '.' && c != ':')
      return false;
  }
  return text.size > 0;
}

/* --- YAML --- */

static void yaml_text(StrBuf *out, StrView text) {
  JsonWriter w;
  json_init(&w, out, false);
  json_string(&w, text);
}

/* Names with "::" mean nothing else in YAML, unless they could be numbers: 12:30 is 750. */
static void yaml_name(StrBuf *out, StrView name) {
  if (is_plain(name) && is_letter(name.data[0]) && name.data[name.size - 1] != ':' &&
      memchr(name.data, ':', name.size))
    strbuf_append(out, name);
  else
    yaml_text(out, name);
}

static void yaml_keys(const PairSet *keys, StrBuf *out) {
  strbuf_append(out, keys->count ? SV("et_kernel_metadata:\n") : SV("et_kernel_metadata: {}\n"));
  for (uint32_t i = 0, end; i < keys->count; i = end) {
    end = pair_group(keys, i);
    strbuf_append(out, SV("  "));
    yaml_name(out, keys->pairs[i].first);
    strbuf_append(out, SV(":\n"));
    for (uint32_t k = i; k < end; k++) {
      strbuf_append(out, SV("  - "));
      strbuf_append(out, keys->pairs[k].second);
      strbuf_append_char(out, '\n');
    }
  }
}

static void yaml_operators(const PairSet *operators, StrBuf *out) {
  strbuf_append(out, operators->count ? SV("operators:\n") : SV("operators: {}\n"));
  for (uint32_t i = 0, end; i < operators->count; i = end) {
    end = pair_group(operators, i);
    strbuf_append(out, SV("  "));
    yaml_name(out, operators->pairs[i].first);
    strbuf_append(out, SV(":\n    debug_info:\n"));
    for (uint32_t k = i; k < end; k++) {
      strbuf_append(out, SV("    - "));
      yaml_text(out, operators->pairs[k].second);
      strbuf_append_char(out, '\n');
    }
    strbuf_append(out, SV("    include_all_overloads: false\n    is_root_operator: true\n"
                          "    is_used_for_training: true\n"));
  }
}

void kernel_list_yaml(KernelList *l, StrBuf *out) {
  sort_all(l);
  strbuf_append(out, SV("build_features: []\ncustom_classes: []\n"));
  yaml_keys(&l->keys, out);
  strbuf_append(out, SV("include_all_non_op_selectives: false\ninclude_all_operators: false\n"
                        "kernel_metadata: {}\n"));
  yaml_operators(&l->operators, out);
}

/* --- CMake --- */

/* An operator as a comment: "aten::add.out: f32, i64". */
static void cmake_operator(StrBuf *out, StrView name, const PairSet *dtypes) {
  const char *before = ": ";
  strbuf_append(out, SV("#   "));
  strbuf_append_escaped(out, name);
  uint32_t i = pair_find(dtypes, name);
  for (; i < dtypes->count && sv_eq(dtypes->pairs[i].first, name); i++) {
    strbuf_append(out, sv_from(before));
    strbuf_append(out, dtypes->pairs[i].second);
    before = ", ";
  }
  strbuf_append_char(out, '\n');
}

static bool is_of(StrView name, const char *library) {
  return strcmp(is_plain(name) ? operator_library(name) : "other", library) == 0;
}

/* The kernels of a library; false: there are none. */
static bool cmake_library(const KernelList *l, const char *library, const char *title,
                          StrBuf *out) {
  bool any = false;
  for (uint32_t i = 0; i < l->operators.count; i = pair_group(&l->operators, i)) {
    if (!is_of(l->operators.pairs[i].first, library))
      continue;
    if (!any)
      strbuf_append(out, sv_from(title));
    any = true;
    cmake_operator(out, l->operators.pairs[i].first, &l->dtypes);
  }
  return any;
}

static void cmake_portable(const KernelList *l, StrBuf *out) {
  const char *before = "set(EXECUTORCH_SELECT_OPS_LIST \"";
  if (!cmake_library(l, "portable",
                     "\n# Portable kernels, with the element types of their calls:\n", out)) {
    strbuf_append(out, SV("\n# It calls no portable kernels: executorch_kernels need not be "
                          "linked.\n"));
    return;
  }
  for (uint32_t i = 0; i < l->operators.count; i = pair_group(&l->operators, i)) {
    if (!is_of(l->operators.pairs[i].first, "portable"))
      continue;
    strbuf_printf(out, "%s" SV_FMT, before, SV_ARG(l->operators.pairs[i].first));
    before = ",";
  }
  strbuf_append(out,
                SV("\")\n# To build them for these element types only, name one program in place "
                   "of the list, in\n# EXECUTORCH_SELECT_OPS_MODEL, with "
                   "EXECUTORCH_ENABLE_DTYPE_SELECTIVE_BUILD.\n"));
}

static void cmake_backends(const KernelList *l, StrBuf *out) {
  static const struct {
    const char *id, *option;
  } options[] = {{"CoreMLBackend", "EXECUTORCH_BUILD_COREML"},
                 {"EthosUBackend", "EXECUTORCH_BUILD_ARM_BAREMETAL"},
                 {"MPSBackend", "EXECUTORCH_BUILD_MPS"},
                 {"OpenvinoBackend", "EXECUTORCH_BUILD_OPENVINO"},
                 {"QnnBackend", "EXECUTORCH_BUILD_QNN"},
                 {"VgfBackend", "EXECUTORCH_BUILD_VGF"},
                 {"VulkanBackend", "EXECUTORCH_BUILD_VULKAN"},
                 {"XnnpackBackend", "EXECUTORCH_BUILD_XNNPACK"}};
  if (l->backends.count)
    strbuf_append(out, SV("\n# Backends:\n"));
  for (uint32_t i = 0; i < l->backends.count; i = pair_group(&l->backends, i)) {
    StrView id = l->backends.pairs[i].first;
    strbuf_append(out, SV("#   "));
    strbuf_append_escaped(out, id);
    strbuf_append_char(out, '\n');
    for (size_t k = 0; k < COUNT_OF(options); k++)
      if (sv_eq_str(id, options[k].id))
        strbuf_printf(out, "set(%s ON)\n", options[k].option);
  }
}

void kernel_list_cmake(KernelList *l, StrBuf *out) {
  sort_all(l);
  strbuf_append(out, SV("# Made by etc " ETC_VERSION
                        ": what programs need of the runtime. include() it before "
                        "add_subdirectory(executorch).\n"));
  cmake_portable(l, out);
  if (cmake_library(l, "quantized", "\n# Quantized kernels:\n", out))
    strbuf_append(out, SV("set(EXECUTORCH_BUILD_KERNELS_QUANTIZED ON)\n"));
  if (cmake_library(l, "llm", "\n# Kernels for language models:\n", out))
    strbuf_append(out, SV("set(EXECUTORCH_BUILD_KERNELS_LLM ON)\n"));
  (void)cmake_library(l, "other", "\n# Kernels of no library of the runtime:\n", out);
  (void)cmake_library(l, "", "\n# Kernels that the runtime itself always has:\n", out);
  cmake_backends(l, out);
}

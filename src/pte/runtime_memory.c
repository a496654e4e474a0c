/* See runtime_memory.h. */
#include "pte/runtime_memory.h"

enum {
  EVALUE = 16,         /* a 64-bit payload and a tag */
  SIZE = 4,            /* a size or stride of a tensor */
  TOPK_ELEMENT = 16,   /* a value and its 64-bit index */
  FREEABLE_BUFFER = 24 /* and two words */
};

/* A MemoryAllocator: a pointer that advances. Sums saturate: counts come from a file. */
typedef struct Bump {
  uint64_t used, word;
} Bump;

static void take(Bump *b, uint64_t count, uint64_t size, uint64_t alignment) {
  uint64_t bytes;
  b->used = b->used < UINT64_MAX / 2 ? align_up(b->used, alignment) : UINT64_MAX;
  if (!mul_u64(count, size, &bytes) || !add_u64(b->used, bytes, &b->used))
    b->used = UINT64_MAX;
}

/* count structs of that many pointers each. */
static void take_words(Bump *b, uint64_t count, uint64_t words) {
  take(b, count, words * b->word, b->word);
}

static void take_tensor(Bump *b, const PteTensor *t) {
  if (t->dynamism != PTE_STATIC) { /* sizes and dim order of its own, to change */
    take(b, t->rank, SIZE, SIZE);
    take(b, t->rank, 1, 1);
  }
  take(b, t->rank, SIZE, SIZE); /* strides */
  take_words(b, 1, 8);          /* TensorImpl */
}

static void take_value(Bump *b, const PteValue *v) {
  switch (v->kind) {
  case PTE_TENSOR:
    take_tensor(b, v->tensor);
    break;
  case PTE_INT_LIST: /* EValue*, int64_t, BoxedEvalueList */
    take_words(b, v->count, 1);
    take(b, v->count, 8, 8);
    take_words(b, 1, 3);
    break;
  case PTE_TENSOR_LIST: /* Tensor, EValue*, BoxedEvalueList */
    take_words(b, v->count, 2);
    take_words(b, 1, 3);
    break;
  case PTE_OPTIONAL_TENSOR_LIST: /* EValue*, optional<Tensor>, BoxedEvalueList */
    take_words(b, v->count, 3);
    take_words(b, 1, 3);
    break;
  case PTE_STRING:
  case PTE_BOOL_LIST:
  case PTE_DOUBLE_LIST: /* ArrayRef */
    take_words(b, 1, 2);
    break;
  default: /* all in the EValue */
    break;
  }
}

static uint64_t external_constants(const PteMethod *m) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < m->value_count; i++) {
    const PteTensor *t = m->values[i].kind == PTE_TENSOR ? m->values[i].tensor : NULL;
    count += t && t->external && !t->memory_id;
  }
  return count;
}

static void take_values(Bump *b, const PteMethod *m) {
  uint64_t external = external_constants(m);
  take(b, m->value_count, EVALUE, 8);
  take(b, m->input_count, 1, 1); /* which inputs are set */
  if (external)                  /* a key and a FreeableBuffer each */
    take(b, external, align_up(FREEABLE_BUFFER + 3 * b->word, 8), 8);
  for (uint32_t i = 0; i < m->value_count; i++)
    take_value(b, &m->values[i]);
}

static uint64_t method_bytes(const PteMethod *m, unsigned word) {
  Bump b = {.word = word};
  take_values(&b, m);
  take(&b, m->delegate_count, FREEABLE_BUFFER + 4 * b.word, 8); /* BackendDelegate */
  for (uint32_t i = 0; i < m->delegate_count; i++)
    take_words(&b, m->delegates[i].spec_count, 3); /* CompileSpec */
  take_words(&b, 1, 4);                            /* Chain */
  take_words(&b, m->instruction_count, 1);         /* functions */
  take_words(&b, m->instruction_count, 2);         /* spans of arguments */
  for (uint32_t i = 0; i < m->instruction_count; i++) {
    PteInstructionKind kind = m->instructions[i].kind;
    if (kind == PTE_KERNEL_CALL || kind == PTE_DELEGATE_CALL)
      take_words(&b, m->instructions[i].count, 1);
  }
  return b.used;
}

/* While a call is resolved: a TensorMeta for each argument, and the dim orders of tensors. */
static uint64_t resolve_bytes(const PteMethod *m, const PteInstruction *call, unsigned word) {
  Bump b = {.word = word};
  take_words(&b, call->count, 3);
  for (uint32_t i = 0; i < call->count; i++) {
    const PteValue *v = &m->values[call->args[i]];
    if (v->kind == PTE_TENSOR)
      take(&b, v->tensor->rank, 1, 1);
  }
  return b.used;
}

/* The one portable kernel with temporary memory: a queue along the dim that it searches, here the
 * largest one. */
static uint64_t topk_bytes(const PteMethod *m, const PteInstruction *call) {
  if (!sv_eq_str(m->operators[call->index], "aten::topk.values") || call->count == 0 ||
      m->values[call->args[0]].kind != PTE_TENSOR)
    return 0;
  const PteTensor *t = m->values[call->args[0]].tensor;
  int32_t largest = 1;
  for (uint32_t i = 0; i < t->rank; i++)
    largest = t->sizes[i] > largest ? t->sizes[i] : largest;
  return (uint64_t)largest * TOPK_ELEMENT;
}

RuntimeMemory pte_runtime_memory(const PteMethod *m, unsigned word) {
  RuntimeMemory memory = {.method = method_bytes(m, word)};
  for (uint32_t i = 0; i < m->instruction_count; i++) {
    const PteInstruction *call = &m->instructions[i];
    if (call->kind != PTE_KERNEL_CALL)
      continue;
    uint64_t resolve = resolve_bytes(m, call, word), topk = topk_bytes(m, call);
    uint64_t most = resolve > topk ? resolve : topk;
    memory.temp = most > memory.temp ? most : memory.temp;
  }
  return memory;
}

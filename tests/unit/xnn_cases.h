/* Cases of delegates, right and wrong ones: what the reader must say of each. */
#ifndef ETC_TESTS_XNN_CASES_H
#define ETC_TESTS_XNN_CASES_H

#include "xnn_maker.h"

#include "backends/backend.h"
#include "backends/xnnpack/check.h"

/* What is changed after the blob was made. */
typedef struct Spoil {
  uint32_t poke_at, poke; /* u32 of the blob; poke_at 0: none */
  uint32_t cut;           /* bytes that are left; 0: all */
  uint32_t argument;      /* 1 + index of the argument whose tensor changes */
  uint32_t rank;          /* its rank, if not 0 */
  int64_t dim;            /* its first dim, if not 0 */
  DType dtype;            /* its type, if not 0 (u8) */
  uint32_t more_inputs;
  bool no_data, short_data;
  bool varies; /* not for these sizes alone */
} Spoil;

typedef struct Case {
  const char *says; /* NULL: nothing is wrong */
  Made made;
  Spoil spoil;
} Case;

static inline const char *verdict(const Case *c, Arena *arena) {
  DelegateCall call = made_call(&c->made, arena, NULL);
  const Spoil *s = &c->spoil;
  if (s->poke_at)
    memcpy((uint8_t *)(uintptr_t)call.blob + s->poke_at, &s->poke, 4);
  if (s->cut)
    call.blob_size = s->cut;
  if (s->argument) {
    Tensor *t = (Tensor *)(uintptr_t)call.inputs + s->argument - 1;
    t->rank = s->rank ? s->rank : t->rank;
    t->dims[0] = s->dim ? s->dim : t->dims[0];
    t->dtype = s->dtype ? s->dtype : t->dtype;
  }
  call.input_count += s->more_inputs;
  call.fixed = !s->varies;
  if (s->no_data)
    call.data_count = 0;
  if (s->short_data)
    ((DelegateData *)(uintptr_t)call.data)->size--;
  return reader_xnnpack.check(&call, arena);
}

static inline void try_cases(const Case *cases, size_t count) {
  for (size_t i = 0; i < count; i++) {
    Arena arena = {0};
    const char *fault = verdict(&cases[i], &arena);
    if (!cases[i].says && fault)
      fail_msg("case %zu is right: %s", i, fault);
    if (cases[i].says && !fault)
      fail_msg("case %zu is taken for right: %s", i, cases[i].says);
    if (cases[i].says)
      assert_contains(fault, cases[i].says);
    arena_release(&arena);
  }
}
#define TRY_CASES(cases) try_cases((cases), COUNT_OF(cases))

/* Union tags. */
enum {
  ADD = 1,
  PRODUCT = 2,
  SOFTMAX = 3,
  SIGMOID = 4,
  TRANSPOSE = 5,
  CLAMP = 6,
  CONV = 7,
  DIV = 8,
  RESIZE = 9,
  PAD = 10,
  POSITION = 21,
  AVERAGE = 11,
  MINIMUM = 12,
  DEPTHWISE = 13,
  MAXPOOL = 14,
  MULTIPLY = 15,
  CONVERT = 18,
  GLOBAL = 19,
  RESHAPE = 20,
  ELU = 29,
  LEAKY = 25,
  JOIN2 = 32,
  SLICE = 35,
  ATTENTION = 36,
  MATMUL = 37,
  DECONV = 39
};

/* y = x W (+ b): values 0 x, 1 y, 2 filter, 3 bias. */
#define PRODUCT_VALUES                                                                             \
  { IN(0, 2, 3), OUT(1, 2, 4), CONSTANT(1, 4, 3), CONSTANT(2, 4) }
#define PRODUCT_OF(...) .values = PRODUCT_VALUES, .nodes = {{PRODUCT, {__VA_ARGS__}}}

/* A convolution of 1 x 2 x 2 x 3 with kernel 1: values 0 x, 1 y, 2 filter, 3 bias. */
#define POINTWISE                                                                                  \
  { 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 3, 4, 1, 0, 0, 0, 2, 3, 1, 0 }

#endif

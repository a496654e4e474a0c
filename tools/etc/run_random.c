/* See run_random.h. Numbers start from the seed and the position of the input, so that an input
 * keeps its values when others are given. */
#include "run_random.h"

#include "support/random.h"

enum { BYTES_MAX = INT32_MAX, INTEGERS = 10 };

static EtcStatus refuse(Session *s, const Graph *g, uint32_t i, const char *why) {
  StrView name = value_name(g, g->inputs[i]);
  return session_usage(s, "--random", "give it with --input",
                       "input %u '" SV_FMT "' cannot be made up: %s", i, SV_ARG(name), why);
}

/* False when there are too many bytes, among them those of dims without a bound. */
static bool shape_of(const Graph *g, ValueId v, Tensor *out) {
  const Type *t = value_type(g, v);
  uint64_t bytes = dtype_size(t->dtype);
  *out = (Tensor){.dtype = t->dtype, .rank = t->rank};
  for (uint32_t d = 0; d < t->rank; d++) {
    out->dims[d] = sym_upper(&g->syms, t->dims[d]);
    if (!mul_u64(bytes, (uint64_t)out->dims[d], &bytes))
      return false;
  }
  out->capacity = bytes;
  return bytes <= BYTES_MAX;
}

EtcStatus random_input(Session *s, const Graph *g, uint32_t i, uint64_t seed, Tensor *out) {
  const Type *t = value_type(g, g->inputs[i]);
  uint64_t state = seed * 0x100000001b3u + i;
  if (t->kind != TYPE_TENSOR || !dtype_in(t->dtype, DTS_REAL_BOOL | DTS_UNSIGNED))
    return refuse(s, g, i, "its type has no random values");
  if (!shape_of(g, g->inputs[i], out))
    return refuse(s, g, i, "it has more than 2 GiB, or no bound");
  out->data = arena_alloc(&s->arena, out->capacity);
  int64_t count = tensor_numel(out);
  for (int64_t k = 0; k < count; k++) {
    uint64_t bits = random_bits(&state) >> 11; /* 53 bits */
    if (dtype_is_float(t->dtype))
      tensor_store(out, k, (double)bits * 0x1p-52 - 1);
    else
      tensor_store_int(out, k, (int64_t)(bits % (t->dtype == DTYPE_BOOL ? 2 : INTEGERS)));
  }
  return ETC_OK;
}

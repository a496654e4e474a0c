/* See permute.h. */
#include "support/permute.h"

#include "support/parallel.h"

enum { GRAIN = 1 << 16 }; /* elements that are worth a thread */

Permutation permutation_make(size_t element, uint32_t rank, const uint32_t *dims,
                             const uint32_t *perm) {
  Permutation p = {.element = element};
  uint64_t source[PERMUTE_MAX_RANK];
  if (rank > PERMUTE_MAX_RANK)
    BUG("%u dimensions to permute", rank);
  for (uint32_t i = 0; i < rank; i++)
    source[perm[i]] = dims[i];
  for (uint32_t i = 0; i < rank; i++) {
    uint64_t stride = element;
    for (uint32_t k = perm[i] + 1; k < rank; k++)
      stride *= source[k];
    if (dims[i] == 1)
      continue;
    if (p.rank && p.strides[p.rank - 1] == dims[i] * stride) {
      p.dims[p.rank - 1] *= dims[i];
      p.strides[p.rank - 1] = stride;
    } else {
      p.dims[p.rank] = dims[i];
      p.strides[p.rank++] = stride;
    }
  }
  if (p.rank == 0) {
    p.dims[0] = 1;
    p.strides[0] = element;
    p.rank = 1;
  }
  return p;
}

bool permutation_keeps_order(const Permutation *p) { return p->rank == 1; }

#define GATHER(type)                                                                               \
  for (uint64_t i = 0; i < count; i++)                                                             \
  memcpy(to + i * sizeof(type), from + i * stride, sizeof(type))

/* Elements that are `stride` bytes apart. */
static void gather(const uint8_t *from, uint64_t stride, uint64_t count, size_t element,
                   uint8_t *to) {
  if (stride == element)
    memcpy(to, from, count * element);
  else if (element == 1)
    GATHER(uint8_t);
  else if (element == 2)
    GATHER(uint16_t);
  else if (element == 4)
    GATHER(uint32_t);
  else
    GATHER(uint64_t);
}

void permute_range(const Permutation *p, const uint8_t *from, uint64_t first, uint64_t count,
                   uint8_t *to) {
  uint32_t last = p->rank - 1;
  uint64_t at[PERMUTE_MAX_RANK], offset = 0;
  for (uint32_t i = p->rank; i-- > 0; first /= p->dims[i]) {
    at[i] = first % p->dims[i];
    offset += at[i] * p->strides[i];
  }
  while (count) {
    uint64_t row = p->dims[last] - at[last];
    row = row < count ? row : count;
    gather(from + offset, p->strides[last], row, p->element, to);
    to += row * p->element;
    count -= row;
    at[last] += row;
    offset += row * p->strides[last];
    for (uint32_t i = last; i > 0 && at[i] == p->dims[i]; i--) {
      offset -= at[i] * p->strides[i];
      at[i] = 0;
      at[i - 1]++;
      offset += p->strides[i - 1];
    }
  }
}

typedef struct Permuting {
  const Permutation *p;
  const uint8_t *from;
  uint64_t first;
  uint8_t *to;
} Permuting;

static void permute_chunk(void *user, size_t begin, size_t end) {
  Permuting *j = user;
  permute_range(j->p, j->from, j->first + begin, end - begin, j->to + begin * j->p->element);
}

void permute(const Permutation *p, const uint8_t *from, uint64_t first, uint64_t count,
             uint8_t *to) {
  parallel_for(count, GRAIN, permute_chunk, &(Permuting){p, from, first, to});
}

uint64_t permutation_count(const Permutation *p) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < p->rank; i++)
    count *= p->dims[i];
  return count;
}

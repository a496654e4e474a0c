/* See transform.h. */
#include "ir/transform.h"

#include <xxhash.h>

#include "ir/transform_run.h"

uint64_t transform_count(const Transform *t) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < t->rank; i++)
    count *= t->dims[i].size;
  return count;
}

uint64_t transform_bytes(const Transform *t) {
  uint64_t count = transform_count(t);
  return t->code == TRANSFORM_COPY ? count * t->element
         : transform_is_packed(t)  ? count / 2
                                   : count;
}

/* Whether the largest index by these strides is below count. */
static bool reaches(uint64_t size, uint64_t stride, uint64_t *end, uint64_t count) {
  uint64_t step;
  return mul_u64(size - 1, stride, &step) && add_u64(*end, step, end) && *end < count;
}

static const char *dims_fault(const Transform *t) {
  uint64_t source = 0, scale = 0, count = 1, sources = t->source.size / t->element,
           scales = transform_has_scales(t) ? t->scales.size / sizeof(float) : 1;
  if (t->nibbles && !mul_u64(sources, 2, &sources))
    return "the sizes of a transform are 0 or too large";
  if (t->source.transform || t->scales.transform)
    return "the source of a transform is a transform itself";
  if (sources == 0 || scales == 0)
    return "a transform of nothing";
  for (uint32_t i = 0; i < t->rank; i++) {
    TransformDim d = t->dims[i];
    if (d.size == 0 || !mul_u64(count, d.size, &count) || count > UINT64_MAX / 8)
      return "the sizes of a transform are 0 or too large";
    if (!reaches(d.size, d.stride, &source, sources))
      return "a transform reads beyond the end of its source";
    if (!reaches(d.size, d.scale, &scale, scales))
      return "a transform reads beyond the end of its scales";
  }
  return count <= sources ? NULL : "a transform has more elements than its source";
}

/* Of transforms that quantize floats. */
static const char *codes_fault(const Transform *t) {
  if (t->element != sizeof(float))
    return "codes are made of f32";
  if (t->low > t->high)
    return "the lowest code is above the highest";
  bool fits = t->low >= -8 && t->high <= 7;
  return t->code == TRANSFORM_INT8 || fits ? NULL : "codes of 4 bits are from -8 to 7";
}

static const char *nibbles_fault(const Transform *t) {
  if (t->element != 1)
    return "nibbles are in bytes";
  if (t->code == TRANSFORM_RECODE)
    return t->nibbles ? "codes of 8 bits are no nibbles" : NULL;
  return t->nibbles || t->code == TRANSFORM_REPACK ? NULL : "what is unpacked is nibbles";
}

const char *transform_fault(const Transform *t) {
  if (t->rank == 0 || t->rank > TRANSFORM_MAX_RANK)
    return "a transform has 1 to 8 dims";
  if (t->element != 1 && t->element != 2 && t->element != 4 && t->element != 8)
    return "elements of a transform have 1, 2, 4 or 8 bytes";
  bool quantizes = t->code == TRANSFORM_INT8 || t->code == TRANSFORM_INT4;
  bool copies = t->code == TRANSFORM_COPY && !t->nibbles;
  const char *fault = quantizes ? codes_fault(t) : copies ? NULL : nibbles_fault(t);
  if (fault)
    return fault;
  if (transform_is_packed(t) && t->dims[t->rank - 1].size % 2)
    return "packed codes are an even number in each row";
  return dims_fault(t);
}

/* --- making --- */

/* What t computes, not made yet and of no graph. */
static Transform transform_like(const Transform *t) {
  Transform like = {.source = t->source,
                    .element = t->element,
                    .code = t->code,
                    .rank = t->rank,
                    .scales = t->scales,
                    .low = t->low,
                    .high = t->high,
                    .finite = t->finite,
                    .nibbles = t->nibbles,
                    .twos_complement = t->twos_complement};
  memcpy(like.dims, t->dims, sizeof t->dims);
  return like;
}

Constant constant_transform(Graph *g, const Transform *t) {
  const char *fault = transform_fault(t);
  if (fault)
    BUG("%s", fault);
  Transform *kept = ARENA_NEW(&g->arena, Transform);
  *kept = transform_like(t);
  kept->next = g->transforms;
  g->transforms = kept;
  return (Constant){.size = transform_bytes(kept), .transform = kept};
}

/* The dims of t as rank dims of these sizes, which divide them; false when they do not. */
static bool split_dims(const Transform *t, uint32_t rank, const uint64_t *sizes,
                       TransformDim *out) {
  uint32_t at = rank;
  for (uint32_t i = t->rank; i-- > 0;) {
    TransformDim d = t->dims[i];
    uint64_t inner = 1;
    while (inner < d.size && at > 0 && sizes[at - 1] && d.size / inner % sizes[at - 1] == 0) {
      at--;
      out[at] = (TransformDim){sizes[at], inner * d.stride, inner * d.scale};
      inner *= sizes[at];
    }
    if (inner != d.size)
      return false;
  }
  for (; at > 0 && sizes[at - 1] == 1; at--)
    out[at - 1] = (TransformDim){1, 0, 0};
  return at == 0;
}

bool permutation_keeps_order(uint32_t rank, const uint32_t *dims, const uint32_t *perm) {
  uint32_t last = 0;
  for (uint32_t i = 0; i < rank; i++) {
    if (dims[i] == 1)
      continue;
    if (perm[i] < last)
      return false;
    last = perm[i];
  }
  return true;
}

/* What gives `from` as it is, by dims of these sizes; without a transform between. */
static Transform straight_transform(Constant from, uint32_t element, uint32_t rank,
                                    const uint64_t *sizes) {
  TransformDim dims[TRANSFORM_MAX_RANK] = {0};
  Transform t = {.source = from, .element = element, .rank = rank};
  if (from.transform && !transform_is_packed(from.transform) &&
      split_dims(from.transform, rank, sizes, dims)) {
    t = transform_like(from.transform);
    t.rank = rank;
  } else {
    t.source = *constant_made(&from);
    uint64_t stride = 1;
    for (uint32_t i = rank; i-- > 0; stride *= sizes[i])
      dims[i] = (TransformDim){sizes[i], stride, 0};
  }
  memcpy(t.dims, dims, sizeof dims);
  return t;
}

Constant constant_permuted(Graph *g, Constant from, uint32_t element, uint32_t rank,
                           const uint32_t *dims, const uint32_t *perm) {
  uint64_t sizes[TRANSFORM_MAX_RANK];
  TransformDim permuted[TRANSFORM_MAX_RANK];
  if (rank > TRANSFORM_MAX_RANK)
    BUG("%u dimensions to permute", rank);
  for (uint32_t i = 0; i < rank; i++)
    sizes[perm[i]] = dims[i];
  if (from.size == 0 || permutation_keeps_order(rank, dims, perm))
    return from;
  Transform t = straight_transform(from, element, rank, sizes);
  for (uint32_t i = 0; i < rank; i++)
    permuted[i] = t.dims[perm[i]];
  memcpy(t.dims, permuted, rank * sizeof *permuted);
  return constant_transform(g, &t);
}

Constant constant_unpacked(Graph *g, Constant packed, uint64_t rows, uint64_t columns,
                           bool twos_complement, int8_t low) {
  Transform t = {.source = packed,
                 .element = 1,
                 .code = TRANSFORM_UNPACK,
                 .rank = 2,
                 .dims = {{rows, align_up(columns, 2), 0}, {columns, 1, 0}},
                 .low = low,
                 .nibbles = true,
                 .twos_complement = twos_complement};
  return constant_transform(g, &t);
}

static bool recodes_nothing(const Constant *recodings) {
  const float none = transform_recoding(false, 0);
  for (uint64_t i = 0; i < recodings->size; i += sizeof none)
    if (memcmp(recodings->data + i, &none, sizeof none) != 0)
      return false;
  return true;
}

/* Codes of those sizes as a transform that repacks them, still without recodings. */
static Transform repacked(const Constant *from, bool is_signed, uint32_t rank,
                          const uint64_t *sizes) {
  const Transform *old = from->transform;
  TransformDim dims[TRANSFORM_MAX_RANK];
  Transform t = {.element = 1, .twos_complement = is_signed};
  if (old && (old->code == TRANSFORM_UNPACK || old->code == TRANSFORM_COPY) &&
      split_dims(old, rank, sizes, dims)) {
    t = transform_like(old);
    t.twos_complement = old->code == TRANSFORM_UNPACK ? old->twos_complement : is_signed;
    t.low = 0;
  } else {
    t.source = *constant_made(from);
    uint64_t stride = 1;
    for (uint32_t i = rank; i-- > 0; stride *= sizes[i])
      dims[i] = (TransformDim){sizes[i], stride, 0};
  }
  t.code = TRANSFORM_REPACK;
  t.rank = rank;
  memcpy(t.dims, dims, rank * sizeof *dims);
  return t;
}

Constant constant_packed(Graph *g, Constant from, const CodeBlocks *b) {
  uint64_t sizes[] = {b->rows, b->blocks, b->size};
  uint32_t dims[] = {b->rows, b->blocks * b->size}, perm[] = {1, 0};
  if (b->permuted)
    from = constant_permuted(g, from, 1, 2, dims, perm);
  bool as_they_are = recodes_nothing(&b->recodings);
  if (from.transform && from.transform->code == TRANSFORM_INT8 && as_they_are) {
    Transform t = transform_like(from.transform);
    t.code = TRANSFORM_INT4;
    if (!transform_fault(&t))
      return constant_transform(g, &t);
  }
  Transform t = repacked(&from, b->is_signed, COUNT_OF(sizes), sizes);
  if (as_they_are && t.nibbles && !t.twos_complement && transform_in_order(&t))
    return t.source;
  t.scales = b->recodings;
  t.dims[0].scale = b->permuted ? 1 : b->blocks;
  t.dims[1].scale = b->permuted ? b->rows : 1;
  return constant_transform(g, &t);
}

Constant constant_nibbles(Graph *g, Constant from, uint32_t rows, uint32_t size, bool permuted,
                          bool is_signed) {
  float *recodings = ARENA_ARRAY(&g->arena, float, (size_t)rows + 1);
  for (uint32_t i = 0; i < rows; i++)
    recodings[i] = transform_recoding(false, 0);
  return constant_packed(g, from,
                         &(CodeBlocks){.rows = rows,
                                       .blocks = 1,
                                       .size = size,
                                       .permuted = permuted,
                                       .is_signed = is_signed,
                                       .recodings = {.data = (const void *)recodings,
                                                     .size = rows * sizeof *recodings}});
}

static Constant from_byte(Constant c, uint64_t first) {
  return constant_run(c, first, c.size - first);
}

Constant constant_columns(Graph *g, Constant from, uint32_t element, const uint64_t sizes[2],
                          uint64_t begin, uint64_t count) {
  if (from.transform && from.transform->code != TRANSFORM_COPY)
    from = *constant_made(&from);
  Transform t = straight_transform(from, element, 2, sizes);
  t.source = from_byte(t.source, begin * t.dims[1].stride * element);
  t.dims[1].size = count;
  return constant_transform(g, &t);
}

Constant constant_block(Graph *g, Constant from, const CodeBlocks *b, uint32_t i, bool packed) {
  uint64_t rows = b->rows, row = (uint64_t)b->blocks * b->size,
           first = (uint64_t)i * b->size * (b->permuted ? rows : 1),
           scale = (uint64_t)i * (b->permuted ? rows : 1) * sizeof(float);
  Transform t = {.element = 1,
                 .code = packed ? TRANSFORM_REPACK : TRANSFORM_RECODE,
                 .rank = 2,
                 .dims = {{rows, row, b->blocks}, {b->size, 1, 0}},
                 .scales = b->recodings,
                 .twos_complement = packed || b->is_signed};
  const Transform *old = from.transform;
  if (packed && !b->permuted && old && old->code == TRANSFORM_UNPACK && transform_in_order(old)) {
    t.source = old->source; /* as they were before they were bytes */
    t.nibbles = true;
    t.twos_complement = old->twos_complement;
    first /= 2;
  } else {
    t.source = *constant_made(&from);
  }
  if (b->permuted) {
    t.dims[0] = (TransformDim){rows, 1, 1};
    t.dims[1] = (TransformDim){b->size, rows, 0};
  }
  t.source = from_byte(t.source, first);
  t.scales = from_byte(t.scales, scale);
  return constant_transform(g, &t);
}

/* --- reading --- */

const Constant *constant_made(const Constant *c) {
  Transform *t = c->transform;
  if (!t)
    return c;
  Constant *made = atomic_load(&t->made), *none = NULL;
  if (made)
    return made;
  made = xrealloc(NULL, sizeof *made + c->size);
  uint8_t *bytes = (uint8_t *)(made + 1);
  *made = (Constant){.data = bytes, .size = c->size};
  transform_run(t, 0, c->size, bytes);
  if (atomic_compare_exchange_strong(&t->made, &none, made))
    return made;
  xfree(made); /* another thread was first */
  return none;
}

void transforms_release(Transform *first) {
  for (; first; first = first->next)
    xfree(atomic_load(&first->made));
}

void constant_read(const Constant *c, uint64_t first, uint64_t size, uint8_t *to) {
  const Constant *made = c->transform ? atomic_load(&c->transform->made) : c;
  if (size == 0)
    return;
  if (made)
    memcpy(to, made->data + first, size);
  else
    transform_run(c->transform, first, size, to);
}

enum { DROPPED = 1 << 20 }; /* bytes for which the call is worth it */

void constant_fetch_pages(const Constant *c) {
  if (c->file)
    (void)file_fetch_pages(c->file, c->file_offset, c->size);
}

void constant_drop_pages(const Constant *c) {
  if (c->file && c->size >= DROPPED)
    file_drop_pages(c->file, c->file_offset, c->size);
}

void constant_each(const Constant *c, void body(void *user, const uint8_t *bytes, uint64_t size),
                   void *user) {
  const Constant *made = c->transform ? atomic_load(&c->transform->made) : c;
  if (made) {
    body(user, made->data, c->size);
    return;
  }
  uint64_t piece = transform_piece(c->transform);
  piece = piece < c->size ? piece : c->size;
  uint8_t *bytes = xrealloc(NULL, piece + 1);
  for (uint64_t at = 0; at < c->size; at += piece) {
    uint64_t size = c->size - at < piece ? c->size - at : piece;
    transform_run(c->transform, at, size, bytes);
    body(user, bytes, size);
  }
  xfree(bytes);
  constant_drop_pages(&c->transform->source);
}

static bool same_span(const Constant *a, const Constant *b) {
  return a->size == b->size && (a->size == 0 || (a->data && a->data == b->data));
}

static bool same_transform(const Transform *a, const Transform *b) {
  return a == b ||
         (a->code == b->code && a->element == b->element && a->rank == b->rank &&
          a->low == b->low && a->high == b->high && a->finite == b->finite &&
          a->nibbles == b->nibbles && a->twos_complement == b->twos_complement &&
          same_span(&a->source, &b->source) &&
          memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0 &&
          a->scales.size == b->scales.size &&
          (a->scales.size == 0 || memcmp(a->scales.data, b->scales.data, a->scales.size) == 0));
}

/* Piece by piece: neither must be held as a whole. */
static bool same_pieces(const Constant *a, const Constant *b) {
  uint64_t piece = TRANSFORM_PIECE < a->size ? TRANSFORM_PIECE : a->size;
  uint8_t *bytes = xrealloc(NULL, 2 * piece + 1);
  bool same = true;
  for (uint64_t at = 0; same && at < a->size; at += piece) {
    uint64_t size = a->size - at < piece ? a->size - at : piece;
    constant_read(a, at, size, bytes);
    constant_read(b, at, size, bytes + piece);
    same = memcmp(bytes, bytes + piece, size) == 0;
  }
  xfree(bytes);
  return same;
}

bool constant_same(const Constant *a, const Constant *b) {
  if (a->size != b->size)
    return false;
  if (a->transform && b->transform && same_transform(a->transform, b->transform))
    return true;
  if (a->transform || b->transform)
    return same_pieces(a, b);
  return a->size == 0 || a->data == b->data || memcmp(a->data, b->data, a->size) == 0;
}

bool constant_repeats(const Constant *c, uint64_t element) {
  return !c->transform && c->size >= element &&
         memcmp(c->data, c->data + element, c->size - element) == 0;
}

static void hash_piece(void *user, const uint8_t *bytes, uint64_t size) {
  (void)XXH3_128bits_update(user, bytes, (size_t)size);
}

void constant_hash128(const Constant *c, uint64_t seed, uint64_t out[2]) {
  XXH128_hash_t h;
  if (c->transform) {
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    (void)XXH3_128bits_reset_withSeed(&state, seed);
    constant_each(c, hash_piece, &state);
    h = XXH3_128bits_digest(&state);
  } else {
    constant_fetch_pages(c);
    h = XXH3_128bits_withSeed(c->data, (size_t)c->size, seed);
    constant_drop_pages(c);
  }
  out[0] = h.low64;
  out[1] = h.high64;
}

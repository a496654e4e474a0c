/* The values of transforms: ranges of the result, on all threads. */
#include <float.h>
#include <math.h>

#include "ir/transform_run.h"
#include "support/number.h"
#include "support/parallel.h"

enum { LANES = 64, TILE = 64, AHEAD = 16, CACHE_LINE = 64, LINE = 256, GRAIN = 1 << 16 };

/* --- codes --- */

static void codes_of(const Transform *t, const float *x, const float *scales, uint32_t count,
                     uint8_t *to) {
  float low = (float)t->low, high = (float)t->high, most = t->finite ? FLT_MAX : INFINITY;
  for (uint32_t i = 0; i < count; i++) {
    float real = fabsf(x[i]) <= most ? x[i] : 0, y = real / scales[i];
    y = y == y ? y : 0;
    y = y > low ? y : low;
    y = y < high ? y : high;
    to[i] = (uint8_t)(int8_t)(int)round_small_f32(y);
  }
}

/* Codes of 4 bits, each in its own byte, as the numbers from t->low on that they stand for. */
static void unpacked(const Transform *t, uint32_t count, uint8_t *codes) {
  uint8_t flip = t->twos_complement ? 8 : 0;
  for (uint32_t i = 0; i < count; i++)
    codes[i] = (uint8_t)(((codes[i] & 15) ^ flip) + t->low);
}

/* The number that a recoding, which is not 0, adds to codes. */
static int added_by(float recoding) {
  float size = fabsf(recoding);
  return size < 2 ? (int)((size - 1) / TRANSFORM_RECODING_STEP) : 0;
}

/* Codes of 4 bits with one recoding for all; run_nibbles adds 8 again when it packs them. A loop
 * that compilers vectorize. */
static void repacked_alike(const Transform *t, float recoding, uint32_t count, uint8_t *codes) {
  uint8_t flip = (uint8_t)((t->twos_complement ? 8 : 0) ^ (recoding < 0 ? 15 : 0)),
          move = (uint8_t)(added_by(recoding) - 8);
  for (uint32_t i = 0; i < count; i++)
    codes[i] = (uint8_t)(((codes[i] & 15) ^ flip) + move);
  if (recoding == 0)
    memset(codes, 0, count);
}

static void repacked(const Transform *t, const float *recodings, uint32_t count, uint8_t *codes) {
  for (uint32_t i = 0; i < count; i++)
    repacked_alike(t, recodings[i], 1, codes + i);
}

static void recoded(const Transform *t, const float *recodings, uint32_t count, uint8_t *codes) {
  uint8_t flip = t->twos_complement ? 0 : 0x80;
  for (uint32_t i = 0; i < count; i++) {
    int code = (codes[i] ^ flip ^ (recodings[i] < 0 ? 0xFF : 0)) + added_by(recodings[i]);
    codes[i] = recodings[i] == 0 ? 0 : (uint8_t)code;
  }
}

/* --- walking --- */

/* The dims of a transform, without those of size 1, and contiguous neighbours merged. */
typedef struct Walk {
  const Transform *t;
  size_t out; /* bytes of an element of the result; those of 4 bits count as one */
  uint32_t rank;
  uint32_t fast; /* the dim along which the source is contiguous, when the last is not; else rank */
  uint64_t row;  /* elements of the result for each index of dim `fast`, or 1 */
  TransformDim dims[TRANSFORM_MAX_RANK];
} Walk;

static Walk walk_make(const Transform *t) {
  Walk w = {.t = t, .out = t->code == TRANSFORM_COPY ? t->element : 1, .row = 1};
  for (uint32_t i = 0; i < t->rank; i++) {
    TransformDim d = t->dims[i], *last = w.rank ? &w.dims[w.rank - 1] : NULL;
    if (d.size == 1)
      continue;
    if (last && last->stride == d.size * d.stride && last->scale == d.size * d.scale)
      *last = (TransformDim){last->size * d.size, d.stride, d.scale};
    else
      w.dims[w.rank++] = d;
  }
  if (w.rank == 0)
    w.dims[w.rank++] = (TransformDim){1, 1, 0};
  w.fast = w.rank;
  for (uint32_t i = 0; i + 1 < w.rank && w.dims[w.rank - 1].stride != 1; i++)
    if (w.dims[i].stride == 1)
      w.fast = i;
  for (uint32_t i = w.fast + 1; i < w.rank; i++)
    w.row *= w.dims[i].size;
  return w;
}

/* Where an element of the result comes from; how far it is from the end of its line. */
typedef struct Place {
  uint64_t source, scale, rest;
} Place;

static Place place_of(const Walk *w, uint64_t element) {
  Place p = {0, 0, 0};
  for (uint32_t i = w->rank; i-- > 0; element /= w->dims[i].size) {
    uint64_t at = element % w->dims[i].size;
    p.source += at * w->dims[i].stride;
    p.scale += at * w->dims[i].scale;
    if (i + 1 == w->rank)
      p.rest = w->dims[i].size - at;
  }
  return p;
}

#define GATHER(type)                                                                               \
  for (uint64_t i = 0; i < count; i++)                                                             \
  memcpy(to + i * sizeof(type), from + i * stride * sizeof(type), sizeof(type))

/* count elements that are stride elements apart. */
static void gather(const uint8_t *from, uint64_t stride, uint64_t count, size_t element,
                   uint8_t *to) {
  if (stride == 1)
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

#define SPREAD(type)                                                                               \
  for (uint32_t i = 0; i < count; i++)                                                             \
  memcpy(to + i * step, from + i * sizeof(type), sizeof(type))

/* The opposite of gather: count contiguous elements to places that are step bytes apart. */
static void spread(const uint8_t *from, uint32_t count, size_t element, uint8_t *to, size_t step) {
  if (element == 1)
    SPREAD(uint8_t);
  else if (element == 2)
    SPREAD(uint16_t);
  else if (element == 4)
    SPREAD(uint32_t);
  else
    SPREAD(uint64_t);
}

/* count elements of 4 bits from element `at` on, stride elements apart, as bytes. */
static void gather_nibbles(const uint8_t *from, uint64_t at, uint64_t stride, uint64_t count,
                           uint8_t *to) {
  if (stride == 1 && at % 2 == 0) { /* whole bytes; compilers vectorize it */
    from += at / 2;
    for (uint64_t i = 0; i < count / 2; i++) {
      to[2 * i] = from[i] & 15;
      to[2 * i + 1] = from[i] >> 4;
    }
    if (count % 2)
      to[count - 1] = from[count / 2] & 15;
    return;
  }
  for (uint64_t i = 0; i < count; i++, at += stride)
    to[i] = from[at / 2] >> (at % 2 ? 4 : 0) & 15;
}

/* Where a run of elements comes from, and what it is scaled by. */
typedef struct Strided {
  uint64_t source, stride; /* elements: the first one, and from one to the next */
  const float *scales;     /* of each element; not read where the transform has none */
  bool alike;              /* all have scales[0] */
} Strided;

/* count elements of the result, LINE at most. */
static void compute(const Transform *t, const Strided *s, uint32_t count, uint8_t *to) {
  const uint8_t *from = t->source.data + s->source * t->element;
  if (t->code == TRANSFORM_INT8 || t->code == TRANSFORM_INT4) {
    float x[LINE];
    gather(from, s->stride, count, sizeof *x, (uint8_t *)x);
    codes_of(t, x, s->scales, count, to);
    return;
  }
  if (t->nibbles)
    gather_nibbles(t->source.data, s->source, s->stride, count, to);
  else
    gather(from, s->stride, count, t->element, to);
  if (t->code == TRANSFORM_UNPACK)
    unpacked(t, count, to);
  else if (t->code == TRANSFORM_REPACK && s->alike)
    repacked_alike(t, s->scales[0], count, to);
  else if (t->code == TRANSFORM_REPACK)
    repacked(t, s->scales, count, to);
  else if (t->code == TRANSFORM_RECODE)
    recoded(t, s->scales, count, to);
}

/* Elements of one line. */
static void run_line(const Walk *w, Place p, uint64_t count, uint8_t *to) {
  const Transform *t = w->t;
  TransformDim d = w->dims[w->rank - 1];
  if (t->code == TRANSFORM_COPY) {
    gather(t->source.data + p.source * t->element, d.stride, count, t->element, to);
    return;
  }
  float scales[LINE];
  bool alike = d.scale == 0;
  for (uint64_t at = 0; at < count; at += LINE) {
    uint32_t n = (uint32_t)(count - at < LINE ? count - at : LINE),
             own = alike && t->code == TRANSFORM_REPACK ? 1 : n;
    if (transform_has_scales(t) && (at == 0 || !alike))
      gather(t->scales.data + (p.scale + at * d.scale) * sizeof *scales, d.scale, own,
             sizeof *scales, (uint8_t *)scales);
    compute(t, &(Strided){p.source + at * d.stride, d.stride, scales, alike}, n, to + at);
  }
}

/* Elements of every index of the last dim in [0, count), for `rows` indices of the fast dim each.
 * What comes AHEAD of them is fetched early: the strides are too long for the hardware. */
static void fill_tile(const Walk *w, Place p, uint32_t rows, uint32_t count, uint8_t *tile) {
  const Transform *t = w->t;
  uint64_t stride = w->dims[w->rank - 1].stride, ahead = AHEAD * stride * t->element;
  uint64_t fast = w->dims[w->fast].scale, last = w->dims[w->rank - 1].scale;
  size_t line = TILE * w->out;
  float scales[LANES];
  uint8_t lanes[LANES];
  for (uint32_t k = 0; k < count; k++) {
    uint64_t at = p.source + k * stride;
    const uint8_t *from = t->source.data + at * t->element;
    for (size_t i = 0; !t->nibbles && k + AHEAD < p.rest && i < rows * t->element; i += CACHE_LINE)
      __builtin_prefetch(from + ahead + i);
    if (t->code == TRANSFORM_COPY) {
      spread(from, rows, t->element, tile + k * w->out, line);
      continue;
    }
    if (transform_has_scales(t) && (k == 0 || last))
      gather(t->scales.data + (p.scale + k * last) * sizeof *scales, fast, rows, sizeof *scales,
             (uint8_t *)scales);
    compute(t, &(Strided){at, 1, scales, fast == 0}, rows, lanes);
    spread(lanes, rows, 1, tile + k, line);
  }
}

/* LANES indices of the fast dim or fewer by TILE of the last dim: a cache line of the source is
 * read once, and one of the result written once. to: the first element; rows are w->row elements
 * apart.
 */
static void run_tile(const Walk *w, Place p, uint32_t rows, uint32_t count, uint8_t *to) {
  uint8_t tile[LANES * TILE * sizeof(uint64_t)];
  fill_tile(w, p, rows, count, tile);
  for (uint32_t i = 0; i < rows; i++)
    memcpy(to + i * w->row * w->out, tile + i * TILE * w->out, count * w->out);
}

/* Whole rows from element `first` on, which begins one; all within one run of the fast dim. */
static void run_rows(const Walk *w, uint64_t first, uint64_t rows, uint8_t *to) {
  uint64_t line = w->dims[w->rank - 1].size;
  for (uint64_t r = 0; r < rows; r += LANES)
    for (uint64_t at = 0; at < w->row; at += line)
      for (uint64_t k = 0; k < line; k += TILE) {
        uint64_t element = r * w->row + at + k;
        run_tile(w, place_of(w, first + element), (uint32_t)(rows - r < LANES ? rows - r : LANES),
                 (uint32_t)(line - k < TILE ? line - k : TILE), to + element * w->out);
      }
}

static void run(const Walk *w, uint64_t first, uint64_t count, uint8_t *to) {
  while (count) {
    uint64_t done;
    if (w->fast < w->rank && first % w->row == 0 && count >= w->row) {
      uint64_t rows = w->dims[w->fast].size - first / w->row % w->dims[w->fast].size;
      rows = rows < count / w->row ? rows : count / w->row;
      run_rows(w, first, rows, to);
      done = rows * w->row;
    } else {
      Place p = place_of(w, first);
      done = p.rest < count ? p.rest : count;
      run_line(w, p, done, to);
    }
    first += done;
    count -= done;
    to += done * w->out;
  }
}

/* --- on all threads --- */

typedef struct Job {
  Walk w;
  uint64_t first, end, unit, origin; /* elements; chunks are counted in units from the origin */
  uint8_t *to;
} Job;

static void run_chunk(void *user, size_t begin, size_t end) {
  const Job *j = user;
  uint64_t from = j->origin + begin * j->unit, until = j->origin + end * j->unit;
  from = from < j->first ? j->first : from;
  until = until > j->end ? j->end : until;
  run(&j->w, from, until - from, j->to + (from - j->first) * j->w.out);
}

static void run_elements(const Transform *t, uint64_t first, uint64_t count, uint8_t *to) {
  Job j = {.w = walk_make(t), .first = first, .end = first + count, .to = to};
  j.unit = j.w.row;
  j.origin = first / j.unit * j.unit;
  uint64_t grain = GRAIN / j.unit, least = j.w.fast < j.w.rank ? LANES : 1;
  parallel_for((j.end - j.origin + j.unit - 1) / j.unit, grain > least ? grain : least, run_chunk,
               &j);
}

uint64_t transform_piece(const Transform *t) {
  Walk w = walk_make(t);
  uint64_t most = TRANSFORM_PIECE / w.out, pair = w.row % 2 ? 2 * w.row : w.row;
  uint64_t elements = pair <= most ? most / pair * pair : most;
  return transform_is_packed(t) ? elements / 2 : elements * w.out;
}

/* Bytes of codes, two in each. */
static void run_nibbles(const Transform *t, uint64_t first, uint64_t size, uint8_t *to) {
  uint64_t most = TRANSFORM_PIECE / 2;
  uint8_t *codes = xrealloc(NULL, 2 * (size < most ? size : most) + 1);
  for (uint64_t at = 0; at < size; at += most) {
    uint64_t n = size - at < most ? size - at : most;
    run_elements(t, 2 * (first + at), 2 * n, codes);
    for (uint64_t i = 0; i < n; i++)
      to[at + i] = (uint8_t)((codes[2 * i] + 8) & 15) | (uint8_t)((codes[2 * i + 1] + 8) << 4);
  }
  xfree(codes);
}

/* --- blocks of nibbles --- */

enum { BLOCK_DIMS = 3 }; /* rows, blocks of a row, codes of a block */

bool transform_in_order(const Transform *t) {
  uint64_t stride = 1;
  for (uint32_t i = t->rank; i-- > 0; stride *= t->dims[i].size)
    if (t->dims[i].size > 1 && t->dims[i].stride != stride)
      return false;
  return stride == t->source.size / t->element * (t->nibbles ? 2 : 1);
}

/* Whether the bytes are those of the source but for what a recoding does to all codes of a block.
 */
static bool repacks_bytes(const Transform *t) {
  return t->code == TRANSFORM_REPACK && t->nibbles && t->rank == BLOCK_DIMS &&
         t->dims[BLOCK_DIMS - 1].scale == 0 && transform_in_order(t);
}

typedef struct BlockJob {
  const Transform *t;
  uint64_t first, end; /* bytes */
  uint8_t *to;
} BlockJob;

static float block_recoding(const Transform *t, uint64_t block) {
  uint64_t blocks = t->dims[1].size;
  uint64_t at = block / blocks * t->dims[0].scale + block % blocks * t->dims[1].scale;
  float recoding;
  memcpy(&recoding, t->scales.data + at * sizeof recoding, sizeof recoding);
  return recoding;
}

/* Eight bytes at a time: blocks are too short for vectors of unknown length. No nibble leaves its
 * limits by what is added, so that one sum of words is that of all nibbles. */
static void recode_bytes(const uint8_t *from, uint64_t size, uint8_t flip, int move, uint8_t *to) {
  const uint64_t ones = 0x0101010101010101;
  uint64_t i = 0, word, added = (uint64_t)(0x11 * (int64_t)move);
  for (; i + sizeof word <= size; i += sizeof word) {
    memcpy(&word, from + i, sizeof word);
    word = (word ^ ones * flip) + ones * added;
    memcpy(to + i, &word, sizeof word);
  }
  for (; i < size; i++)
    to[i] = (uint8_t)((from[i] ^ flip) + added);
}

static void repack_blocks(void *user, size_t begin, size_t end) {
  const BlockJob *j = user;
  uint64_t bytes = j->t->dims[BLOCK_DIMS - 1].size / 2;
  uint8_t flip = j->t->twos_complement ? 0x88 : 0;
  for (uint64_t block = j->first / bytes + begin; block < j->first / bytes + end; block++) {
    uint64_t at = block * bytes < j->first ? j->first : block * bytes,
             until = (block + 1) * bytes > j->end ? j->end : (block + 1) * bytes;
    float recoding = block_recoding(j->t, block);
    if (recoding == 0)
      memset(j->to + (at - j->first), 0x88, until - at);
    else
      recode_bytes(j->t->source.data + at, until - at, recoding < 0 ? flip ^ 0xFF : flip,
                   added_by(recoding), j->to + (at - j->first));
  }
}

static void run_blocks(const Transform *t, uint64_t first, uint64_t size, uint8_t *to) {
  BlockJob j = {t, first, first + size, to};
  uint64_t bytes = t->dims[BLOCK_DIMS - 1].size / 2;
  parallel_for((j.end + bytes - 1) / bytes - first / bytes, GRAIN / bytes + 1, repack_blocks, &j);
}

void transform_run(const Transform *t, uint64_t first, uint64_t size, uint8_t *to) {
  uint64_t e = t->code == TRANSFORM_COPY ? t->element : 1;
  if (repacks_bytes(t)) {
    run_blocks(t, first, size, to);
  } else if (transform_is_packed(t)) {
    run_nibbles(t, first, size, to);
  } else if (first % e == 0 && size % e == 0) {
    run_elements(t, first / e, size / e, to);
  } else { /* parts of elements */
    uint64_t from = first / e, count = (first + size + e - 1) / e - from;
    uint8_t *whole = xrealloc(NULL, count * e);
    run_elements(t, from, count, whole);
    memcpy(to, whole + first % e, size);
    xfree(whole);
  }
}

/* Constants that are computed from another one when somebody reads them: permuted, quantized, both,
 * or codes of 4 bits in another form. Weights stay in the mapped file until the program is written,
 * in pieces, on all threads; whoever needs all values at once gets them by constant_made
 * (value_constant does that).
 *
 * Element i of the result is an element of the source, and for codes one of the scales: both are
 * found by strides, so that a permutation of a quantized constant is again one transform. */
#ifndef ETC_IR_TRANSFORM_H
#define ETC_IR_TRANSFORM_H

#include <stdatomic.h>

#include "ir/graph.h"

enum { TRANSFORM_MAX_RANK = 8, TRANSFORM_PIECE = 1 << 20 };

typedef enum TransformCode {
  TRANSFORM_COPY,   /* elements of 1, 2, 4 or 8 bytes as they are */
  TRANSFORM_INT8,   /* f32 / scale, rounded to even, between low and high; NaN becomes 0 */
  TRANSFORM_INT4,   /* the same + 8, two in a byte, the low nibble first */
  TRANSFORM_UNPACK, /* nibbles of the source as bytes: each + low */
  TRANSFORM_REPACK, /* nibbles two in a byte, recoded by block (transform_recoding) */
  TRANSFORM_RECODE  /* bytes less 128, recoded likewise */
} TransformCode;

/* What TRANSFORM_REPACK and _RECODE do to codes n, from 0 to 15 or 255, in the place of a scale: 1
 * leaves them as they are, -1 counts them from the other end (15 - n, 255 - n), 0 makes all of them
 * the middle, 8 or 128. What exceeds 1 or -1, in steps, is added; results stay within the limits.
 */
#define TRANSFORM_RECODING_STEP (1 / 1024.0F)
static inline float transform_recoding(bool flip, int move) {
  return (flip ? -1 : 1) * (1 + (float)move * TRANSFORM_RECODING_STEP);
}

typedef struct TransformDim {
  uint64_t size, stride; /* of the source, in elements */
  uint64_t scale;        /* stride of the scales; 0: the same for the whole dim */
} TransformDim;

struct Transform {
  Constant source;  /* its bytes are there; may be unaligned */
  uint32_t element; /* bytes of an element of the source */
  TransformCode code;
  uint32_t rank; /* 1 at least; sizes are not 0 */
  TransformDim dims[TRANSFORM_MAX_RANK];
  Constant scales; /* f32; normal numbers above 0, for TRANSFORM_REPACK and _RECODE recodings */
  int8_t low, high;
  bool finite;          /* infinities become 0, too */
  bool nibbles;         /* the source has two elements in a byte, the low one first */
  bool twos_complement; /* codes of the source are in two's complement: n is code + 8, or + 128 */
  Transform *next;      /* of the graph */
  _Atomic(Constant *) made; /* NULL: nobody needed it yet */
};

/* The constant that t describes; the graph keeps a copy of t. */
Constant constant_transform(Graph *g, const Transform *t);
/* Whether permuted dims leave the order of elements as it is. Dim i of the result, of size dims[i],
 * is dim perm[i] of the source. */
bool permutation_keeps_order(uint32_t rank, const uint32_t *dims, const uint32_t *perm);
/* from with its elements in the order of permuted dims: from itself when the order stays, else a
 * transform, of the source of from when that is one. */
Constant constant_permuted(Graph *g, Constant from, uint32_t element, uint32_t rank,
                           const uint32_t *dims, const uint32_t *perm);
/* Columns [begin, begin + count) of a matrix of these sizes, whose elements have so many bytes. */
Constant constant_columns(Graph *g, Constant from, uint32_t element, const uint64_t sizes[2],
                          uint64_t begin, uint64_t count);
/* Rows of codes of 4 bits, two in a byte, the low one first, as a byte each: n + low; with
 * twos_complement they are in two's complement, n is code + 8. A row of packed ends with a whole
 * byte. */
Constant constant_unpacked(Graph *g, Constant packed, uint64_t rows, uint64_t columns,
                           bool twos_complement, int8_t low);

/* A matrix of codes that are recoded by block of a row. */
typedef struct CodeBlocks {
  uint32_t rows, blocks, size; /* blocks in a row; codes in a block, an even number */
  bool permuted;               /* codes are [blocks * size, rows], recodings [blocks, rows] */
  bool is_signed;              /* codes are from -8 or -128 on, else from 0 on */
  Constant recodings;          /* f32 */
} CodeBlocks;

/* The codes, of a byte each, as TRANSFORM_REPACK stores them, signed ones + 8: rows of two in a
 * byte. from itself, before it was unpacked, when it is that. */
Constant constant_packed(Graph *g, Constant from, const CodeBlocks *b);
/* The same of a whole matrix [rows, size] whose codes stay as they are; size is even. */
Constant constant_nibbles(Graph *g, Constant from, uint32_t rows, uint32_t size, bool permuted,
                          bool is_signed);
/* Block i of each row of codes of 8 bits, as TRANSFORM_RECODE stores them; packed: as
 * TRANSFORM_REPACK does, of codes from -8 to 7 or, without a sign, around 128. */
Constant constant_block(Graph *g, Constant from, const CodeBlocks *b, uint32_t i, bool packed);
/* Whether constants are two codes in a byte; whether they have scales. */
static inline bool transform_is_packed(const Transform *t) {
  return t->code == TRANSFORM_INT4 || t->code == TRANSFORM_REPACK;
}
static inline bool transform_has_scales(const Transform *t) {
  return t->code != TRANSFORM_COPY && t->code != TRANSFORM_UNPACK;
}
/* The constant whose bytes those of c are, or are computed of. */
static inline const Constant *constant_source(const Constant *c) {
  return c->transform ? &c->transform->source : c;
}
/* Why a transform of unknown origin cannot be read, or NULL. */
const char *transform_fault(const Transform *t);
uint64_t transform_count(const Transform *t); /* of elements */
uint64_t transform_bytes(const Transform *t); /* of the result */

/* Bytes [first, first + size) of a constant, computed on all threads where they are not there. */
void constant_read(const Constant *c, uint64_t first, uint64_t size, uint8_t *to);
/* Hands all bytes over in order, in pieces of at most TRANSFORM_PIECE those that are computed. */
void constant_each(const Constant *c, void body(void *user, const uint8_t *bytes, uint64_t size),
                   void *user);
/* Equal bytes; computes none where both are the same transform. */
bool constant_same(const Constant *a, const Constant *b);
/* All elements, of that many bytes, are the same; there is one, and they need not be computed. */
bool constant_repeats(const Constant *c, uint64_t element);
/* XXH3 of all bytes. */
void constant_hash128(const Constant *c, uint64_t seed, uint64_t out[2]);
/* Pages of a mapped file that are all read next. */
void constant_fetch_pages(const Constant *c);
/* Pages of a mapped file that were read and are not needed soon; of small constants they stay. */
void constant_drop_pages(const Constant *c);
void transforms_release(Transform *first); /* the bytes that were made */

#endif

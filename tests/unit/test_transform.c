/* Transforms of constants against the definition: in whole, in pieces, on any number of threads, of
 * transforms again, and what a transform of unknown origin is refused for. */
#include "ir_graph.h"

#include <math.h>
#include <stdlib.h>

#include "ir/transform.h"
#include "support/parallel.h"

enum { MOST = 1 << 21 };

typedef struct Env {
  Capture capture;
  Context ctx;
  Graph *g;
  float *floats, *scales, *recodings; /* not aligned */
  void *memory[2];
} Env;

static float number_at(uint32_t i) {
  static const float odd[] = {NAN, INFINITY, -INFINITY, 0.0F, -0.0F, 3e38F, 1e-40F, 2.5F, 3.5F};
  uint32_t h = i * 2654435761u;
  return i % 97 < COUNT_OF(odd) ? odd[i % 97] : (float)(int32_t)h * 0x1p-26F;
}

static void setup(Env *e) {
  capture_init(&e->capture);
  context_init(&e->ctx, &e->capture.sink);
  e->g = graph_new(&e->ctx, SV("f"));
  for (int i = 0; i < 2; i++)
    e->memory[i] = malloc(MOST * sizeof(float) + 2);
  e->floats = (float *)(void *)((char *)e->memory[0] + 2);
  e->scales = (float *)(void *)((char *)e->memory[1] + 2);
  e->recodings = malloc(MOST * sizeof(float));
  for (uint32_t i = 0; i < MOST; i++) {
    float x = number_at(i), scale = 0.01F + (float)(i % 1000) * 0.003F;
    memcpy((char *)e->floats + i * sizeof x, &x, sizeof x);
    memcpy((char *)e->scales + i * sizeof x, &scale, sizeof x);
    e->recodings[i] = (float)(i % 3) - 1;
  }
}

static void teardown(Env *e) {
  parallel_set_threads(0);
  graph_free(e->g);
  context_release(&e->ctx);
  capture_release(&e->capture);
  free(e->memory[0]);
  free(e->memory[1]);
  free(e->recodings);
}

static int code_of(const Transform *t, uint64_t source, uint64_t scale) {
  float x, s;
  memcpy(&x, t->source.data + source * sizeof x, sizeof x);
  memcpy(&s, t->scales.data + scale * sizeof s, sizeof s);
  if (isnan(x) || (t->finite && isinf(x)))
    return 0;
  return (int)fmin(fmax(nearbyint((double)(x / s)), t->low), t->high);
}

/* A code of 4 bits of the source as it is stored there. */
static unsigned stored_at(const Transform *t, uint64_t source) {
  unsigned byte = t->source.data[t->nibbles ? source / 2 : source];
  return ((t->nibbles && source % 2 ? byte >> 4 : byte) & 15) ^ (t->twos_complement ? 8 : 0);
}

static float recoding_at(const Transform *t, uint64_t at) {
  float recoding;
  memcpy(&recoding, t->scales.data + at * sizeof recoding, sizeof recoding);
  return recoding;
}

static int move_of(float recoding) {
  return recoding > 0 ? (int)(recoding * 1024) - 1024 : (int)(-recoding * 1024) - 1024;
}

static unsigned repacked_at(const Transform *t, uint64_t source, uint64_t scale) {
  float recoding = recoding_at(t, scale);
  int n = (int)stored_at(t, source);
  return (unsigned)(recoding == 0 ? 8 : (recoding < 0 ? 15 - n : n) + move_of(recoding));
}

static uint8_t recoded_at(const Transform *t, uint64_t source, uint64_t scale) {
  float recoding = recoding_at(t, scale);
  int code = t->twos_complement ? (int8_t)t->source.data[source] : t->source.data[source] - 128;
  return (uint8_t)(recoding == 0 ? 0 : (recoding < 0 ? -1 - code : code) + move_of(recoding));
}

/* The bytes by the definition, one element at a time. */
static uint8_t *expected(const Transform *t) {
  uint64_t count = transform_count(t);
  uint8_t *out = calloc(count, 8);
  for (uint64_t i = 0; i < count; i++) {
    uint64_t rest = i, source = 0, scale = 0;
    for (uint32_t k = t->rank; k-- > 0; rest /= t->dims[k].size) {
      source += rest % t->dims[k].size * t->dims[k].stride;
      scale += rest % t->dims[k].size * t->dims[k].scale;
    }
    if (t->code == TRANSFORM_COPY)
      memcpy(out + i * t->element, t->source.data + source * t->element, t->element);
    else if (t->code == TRANSFORM_INT8)
      out[i] = (uint8_t)code_of(t, source, scale);
    else if (t->code == TRANSFORM_UNPACK)
      out[i] = (uint8_t)((int)stored_at(t, source) + t->low);
    else if (t->code == TRANSFORM_RECODE)
      out[i] = recoded_at(t, source, scale);
    else if (t->code == TRANSFORM_REPACK)
      out[i / 2] |= (uint8_t)(repacked_at(t, source, scale) << (i % 2 ? 4 : 0));
    else
      out[i / 2] |= (uint8_t)((code_of(t, source, scale) + 8) << (i % 2 ? 4 : 0));
  }
  return out;
}

static uint8_t joined[MOST * sizeof(uint64_t)];
static uint64_t joined_size;

static void join(void *user, const uint8_t *bytes, uint64_t size) {
  (void)user;
  memcpy(joined + joined_size, bytes, size);
  joined_size += size;
}

static void check(Env *e, const Transform *t) {
  uint8_t *want = expected(t), *part = malloc(transform_bytes(t));
  assert_null(transform_fault(t));
  for (unsigned threads = 1; threads <= 4; threads += 3) {
    parallel_set_threads(threads);
    Constant c = constant_transform(e->g, t);
    assert_int_equal(c.size, transform_bytes(t));
    joined_size = 0;
    constant_each(&c, join, NULL);
    assert_int_equal(joined_size, c.size);
    assert_memory_equal(joined, want, c.size);
    for (uint64_t at = 0, size = 1; at < c.size; at += size, size = size * 3 + 1) {
      size = c.size - at < size ? c.size - at : size;
      constant_read(&c, at, size, part);
      assert_memory_equal(part, want + at, size);
    }
    uint64_t a[2], b[2];
    Constant plain = {.data = want, .size = c.size};
    constant_hash128(&c, 5, a);
    constant_hash128(&plain, 5, b);
    assert_true(a[0] == b[0] && a[1] == b[1]);
    assert_true(constant_same(&c, &plain));
    assert_null(atomic_load(&c.transform->made)); /* nothing was made whole so far */
    assert_memory_equal(constant_made(&c)->data, want, c.size);
    assert_ptr_equal(constant_made(&c), constant_made(&c));
    want[c.size - 1] ^= 16;
    assert_false(constant_same(&c, &plain));
    want[c.size - 1] ^= 16;
  }
  free(want);
  free(part);
}

static Transform codes(const Env *e, TransformCode code) {
  return (Transform){.source = {.data = (const void *)e->floats, .size = MOST * sizeof(float)},
                     .element = sizeof(float),
                     .code = code,
                     .scales = {.data = (const void *)e->scales, .size = MOST * sizeof(float)},
                     .low = code == TRANSFORM_INT4 ? -8 : -127,
                     .high = code == TRANSFORM_INT4 ? 7 : 127,
                     .finite = code == TRANSFORM_INT4};
}

static void with_dims(Transform *t, uint32_t rank, const TransformDim *dims) {
  t->rank = rank;
  memcpy(t->dims, dims, rank * sizeof *dims);
}

/* Nibbles as bytes, and packed in another way, with scales below 0 and of 0. */
static void check_nibbles(Env *e, Transform t) {
  TransformDim dims[TRANSFORM_MAX_RANK];
  memcpy(dims, t.dims, sizeof dims);
  for (uint32_t i = 0; i < t.rank; i++)
    t.dims[i].scale = 0;
  t.code = TRANSFORM_UNPACK;
  t.element = 1;
  t.nibbles = true;
  t.low = -8;
  for (int twos_complement = 0; twos_complement < 2; twos_complement++, t.low = 0) {
    t.twos_complement = twos_complement;
    check(e, &t);
  }
  memcpy(t.dims, dims, sizeof dims);
  t.scales = (Constant){.data = (const void *)e->recodings, .size = MOST * sizeof(float)};
  t.code = TRANSFORM_REPACK;
  for (int nibbles = 0; nibbles < 2; nibbles++, t.twos_complement = !t.twos_complement) {
    t.nibbles = nibbles;
    if (!transform_fault(&t))
      check(e, &t);
  }
  t.code = TRANSFORM_RECODE;
  t.nibbles = false;
  for (int twos_complement = 0; twos_complement < 2; twos_complement++) {
    t.twos_complement = twos_complement;
    check(e, &t);
  }
}

static void test_values(void **state) {
  static const struct {
    uint32_t rank;
    TransformDim dims[4];
  } shapes[] = {
      {1, {{4002, 1, 0}}},
      {1, {{1234, 1, 1}}},
      {2, {{300, 700, 1}, {700, 1, 0}}},            /* by rows */
      {2, {{700, 1, 1}, {300, 700, 0}}},            /* transposed, by output channels */
      {2, {{700, 1, 0}, {300, 700, 1}}},            /* transposed, by input channels */
      {2, {{1500, 1, 1}, {1390, 1500, 0}}},         /* several pieces */
      {3, {{65, 27, 1}, {9, 1, 0}, {4, 9, 0}}},     /* a filter, channels last */
      {3, {{90, 256, 8}, {8, 32, 1}, {32, 1, 0}}},  /* blocks */
      {3, {{90, 1, 8}, {8, 2880, 1}, {32, 90, 0}}}, /* blocks, transposed */
      {4, {{1, 0, 0}, {6, 70, 2}, {7, 10, 0}, {10, 1, 0}}},
      {4, {{5, 1, 3}, {7, 5, 0}, {3, 105, 1}, {6, 35, 0}}},
      {2, {{3, 100000, 1}, {2, 7, 5}}}, /* no dim is contiguous */
  };
  Env e;
  setup(&e);
  for (size_t i = 0; i < COUNT_OF(shapes); i++) {
    Transform t = codes(&e, TRANSFORM_INT8);
    with_dims(&t, shapes[i].rank, shapes[i].dims);
    check(&e, &t);
    t.finite = true;
    check(&e, &t);
    t = codes(&e, TRANSFORM_INT4);
    with_dims(&t, shapes[i].rank, shapes[i].dims);
    if (!transform_fault(&t))
      check(&e, &t);
    check_nibbles(&e, t);
    for (uint32_t element = 1; element <= 4; element *= 2) {
      t = (Transform){.source = t.source, .element = element};
      with_dims(&t, shapes[i].rank, shapes[i].dims);
      for (uint32_t k = 0; k < t.rank; k++)
        t.dims[k].scale = 0;
      check(&e, &t);
    }
  }
  teardown(&e);
}

/* A permuted transform is one transform, of the same source, with the bytes of two. */
static void test_permuted(void **state) {
  static const uint32_t dims[] = {8, 3, 5, 6}, perm[] = {0, 2, 3, 1}; /* of [8, 6, 3, 5] */
  Env e;
  setup(&e);
  Transform t = codes(&e, TRANSFORM_INT8);
  with_dims(&t, 3, (TransformDim[]){{1, 0, 0}, {8, 90, 1}, {90, 1, 0}});
  Constant c = constant_transform(e.g, &t), made = *constant_made(&c);
  Constant one = constant_permuted(e.g, c, 1, 4, dims, perm),
           two = constant_permuted(e.g, made, 1, 4, dims, perm);
  assert_ptr_equal(one.transform->source.data, t.source.data);
  assert_ptr_equal(two.transform->source.data, made.data);
  assert_memory_equal(constant_made(&one)->data, constant_made(&two)->data, one.size);
  assert_true(constant_same(&one, &two));
  assert_false(constant_same(&one, &c));
  Constant again =
      constant_permuted(e.g, one, 1, 4, (uint32_t[]){8, 6, 3, 5}, (uint32_t[]){0, 3, 1, 2});
  assert_memory_equal(constant_made(&again)->data, made.data, made.size);
  Constant kept = constant_permuted(e.g, c, 1, 3, (uint32_t[]){8, 1, 90}, (uint32_t[]){1, 0, 2});
  assert_ptr_equal(kept.transform, c.transform);
  Constant odd = constant_permuted(e.g, c, 1, 2, (uint32_t[]){60, 12}, (uint32_t[]){1, 0});
  assert_ptr_equal(odd.transform->source.data, made.data); /* dims that cut across */
  teardown(&e);
}

/* A matrix of 48 codes in 2 rows of 3 blocks: packed again from any form it is the same bytes. */
static void test_packed(void **state) {
  static const float signs[] = {1, -1, 0, 1, 1, -1};
  Env e;
  setup(&e);
  uint8_t packed[24], bytes[48], transposed[48], inverted[24];
  float ones[6], flat[6];
  for (uint32_t i = 0; i < 24; i++) {
    packed[i] = (uint8_t)(i * 37 + 5);
    for (uint32_t k = 0; k < 2; k++) {
      uint32_t at = 2 * i + k, code = packed[i] >> 4 * k & 15;
      bytes[at] = (uint8_t)(code - 8);
      transposed[at % 24 * 2 + at / 24] = bytes[at];
    }
    inverted[i] = signs[i / 4] == 0 ? 0x88 : signs[i / 4] < 0 ? (uint8_t)~packed[i] : packed[i];
  }
  for (uint32_t i = 0; i < 6; i++) {
    ones[i] = transform_recoding(false, 0);
    flat[i % 3 * 2 + i / 3] = signs[i];
  }
  Constant from = {.data = packed, .size = sizeof packed};
  CodeBlocks b = {.rows = 2,
                  .blocks = 3,
                  .size = 8,
                  .is_signed = true,
                  .recodings = {.data = (const void *)ones, .size = sizeof ones}};
  Constant unpacked = constant_unpacked(e.g, from, 1, 48, false, -8), plain = unpacked;
  plain = (Constant){.data = bytes, .size = sizeof bytes};
  assert_memory_equal(constant_made(&unpacked)->data, bytes, sizeof bytes);
  assert_ptr_equal(constant_packed(e.g, unpacked, &b).data, packed); /* nothing to do */
  Constant again = constant_packed(e.g, plain, &b);
  assert_memory_equal(constant_made(&again)->data, packed, sizeof packed);
  b.recodings.data = (const void *)signs;
  again = constant_packed(e.g, unpacked, &b);
  assert_ptr_equal(again.transform->source.data, packed);
  assert_memory_equal(constant_made(&again)->data, inverted, sizeof inverted);
  check(&e, again.transform);
  plain.data = transposed;
  b.permuted = true;
  b.recodings.data = (const void *)flat;
  again = constant_packed(e.g, plain, &b);
  assert_ptr_equal(again.transform->source.data, transposed);
  assert_memory_equal(constant_made(&again)->data, inverted, sizeof inverted);
  teardown(&e);
}

/* Blocks that are moved, a word at a time and by element: from codes 4 to 11 up, down, and counted
 * from the other end. */
static void test_moved(void **state) {
  static const int moves[] = {4, -4, 0, 3, -3};
  Env e;
  setup(&e);
  enum { BLOCKS = COUNT_OF(moves), SIZE = 18, COUNT = 2 * BLOCKS * SIZE };
  uint8_t packed[COUNT / 2], bytes[COUNT], wanted[COUNT / 2] = {0};
  float recodings[2 * BLOCKS];
  memset(packed, 0, sizeof packed);
  for (int i = 0; i < 2 * BLOCKS; i++)
    recodings[i] = transform_recoding(i < BLOCKS, moves[i % BLOCKS]);
  for (int i = 0; i < COUNT; i++) {
    int code = 4 + i * 5 % 8, block = i / SIZE, nibble = i % 2 * 4;
    bytes[i] = (uint8_t)code;
    packed[i / 2] |= (uint8_t)(code << nibble);
    wanted[i / 2] |=
        (uint8_t)(((block < BLOCKS ? 15 - code : code) + moves[block % BLOCKS]) << nibble);
  }
  Constant from = {.data = packed, .size = sizeof packed};
  CodeBlocks b = {.rows = 2,
                  .blocks = BLOCKS,
                  .size = SIZE,
                  .recodings = {.data = (const void *)recodings, .size = sizeof recodings}};
  Constant c = constant_packed(e.g, constant_unpacked(e.g, from, 1, COUNT, false, 0), &b);
  assert_memory_equal(constant_made(&c)->data, wanted, sizeof wanted);
  c = constant_packed(e.g, (Constant){.data = bytes, .size = sizeof bytes}, &b);
  assert_memory_equal(constant_made(&c)->data, wanted, sizeof wanted);
  teardown(&e);
}

/* Each row ends with a whole byte. */
static void test_unpacked_rows(void **state) {
  static const uint8_t packed[] = {0x21, 0xF3, 0x87, 0xF9};
  static const uint8_t wanted[] = {1, 2, 3, 7, (uint8_t)-8, (uint8_t)-7};
  Env e;
  setup(&e);
  Constant c =
      constant_unpacked(e.g, (Constant){.data = packed, .size = sizeof packed}, 2, 3, true, -8);
  for (uint32_t i = 0; i < 6; i++)
    assert_int_equal((int8_t)constant_made(&c)->data[i], (int8_t)wanted[i]);
  teardown(&e);
}

static void test_faults(void **state) {
  static const struct {
    uint32_t rank;
    TransformDim dims[2];
    const char *says;
  } wrong[] = {
      {0, {{1, 1, 0}}, "1 to 8 dims"},
      {9, {{1, 1, 0}}, "1 to 8 dims"},
      {2, {{2, 1, 0}, {0, 1, 0}}, "are 0"},
      {2, {{UINT64_MAX / 2, 0, 0}, {4, 0, 0}}, "too large"},
      {1, {{MOST + 1, 1, 0}}, "end of its source"},
      {2, {{2, UINT64_MAX, 0}, {2, UINT64_MAX, 0}}, "end of its source"},
      {1, {{3, UINT64_MAX / 2 + 1, 0}}, "end of its source"},
      {1, {{2, 1, MOST}}, "end of its scales"},
      {2, {{MOST, 1, 0}, {2, 0, 0}}, "more elements"},
  };
  Env e;
  setup(&e);
  for (size_t i = 0; i < COUNT_OF(wrong); i++) {
    Transform t = codes(&e, TRANSFORM_INT8);
    memcpy(t.dims, wrong[i].dims, sizeof wrong[i].dims);
    t.rank = wrong[i].rank;
    assert_non_null(transform_fault(&t));
    assert_contains(transform_fault(&t), wrong[i].says);
  }
  Transform t = codes(&e, TRANSFORM_INT4);
  with_dims(&t, 1, (TransformDim[]){{3, 1, 0}});
  assert_contains(transform_fault(&t), "even number");
  t = codes(&e, TRANSFORM_INT8);
  with_dims(&t, 1, (TransformDim[]){{3, 1, 0}});
  t.element = 2;
  assert_contains(transform_fault(&t), "of f32");
  t.element = 3;
  assert_contains(transform_fault(&t), "1, 2, 4 or 8");
  t = codes(&e, TRANSFORM_INT4);
  with_dims(&t, 1, (TransformDim[]){{4, 1, 0}});
  t.low = -9;
  assert_contains(transform_fault(&t), "from -8 to 7");
  t = codes(&e, TRANSFORM_UNPACK);
  with_dims(&t, 1, (TransformDim[]){{3, 1, 0}});
  assert_contains(transform_fault(&t), "in bytes");
  t.element = 1;
  assert_contains(transform_fault(&t), "is nibbles");
  t.code = TRANSFORM_REPACK;
  assert_contains(transform_fault(&t), "even number");
  t.code = TRANSFORM_RECODE;
  t.nibbles = true;
  assert_contains(transform_fault(&t), "no nibbles");
  teardown(&e);
}

/* Blocks of codes that lie by rows, and by columns, taken one by one. */
static void test_blocks(void **state) {
  (void)state;
  Env e;
  setup(&e);
  enum { ROWS = 5, BLOCKS = 3, SIZE = 4, COLUMNS = BLOCKS * SIZE };
  uint8_t bytes[ROWS * COLUMNS];
  float scales[ROWS * BLOCKS];
  for (int i = 0; i < ROWS * COLUMNS; i++)
    bytes[i] = (uint8_t)(i * 37);
  for (int i = 0; i < ROWS * BLOCKS; i++)
    scales[i] = i % 3 == 1 ? 0 : transform_recoding(i % 3 == 0, i - 7);
  Constant from = {.data = bytes, .size = sizeof bytes};
  for (int permuted = 0; permuted < 2; permuted++)
    for (uint32_t k = 0; k < BLOCKS; k++) {
      CodeBlocks b = {.rows = ROWS,
                      .blocks = BLOCKS,
                      .size = SIZE,
                      .permuted = permuted,
                      .is_signed = permuted,
                      .recodings = {.data = (const void *)scales, .size = sizeof scales}};
      Constant c = constant_block(e.g, from, &b, k, false);
      assert_int_equal(c.size, ROWS * SIZE);
      for (uint32_t i = 0; i < ROWS * SIZE; i++) {
        uint32_t row = i / SIZE, column = k * SIZE + i % SIZE;
        uint8_t byte = bytes[permuted ? column * ROWS + row : row * COLUMNS + column];
        float scale = scales[permuted ? k * ROWS + row : row * BLOCKS + k];
        int code = permuted ? (int8_t)byte : byte - 128;
        code = scale == 0 ? 0 : (scale < 0 ? -1 - code : code) + move_of(scale);
        assert_int_equal((int8_t)constant_made(&c)->data[i], (int8_t)code);
      }
    }
  teardown(&e);
}

/* Blocks of codes of 4 bits, two in a byte: as they were before they were bytes, and of bytes. */
static void test_blocks_of_nibbles(void **state) {
  (void)state;
  Env e;
  setup(&e);
  enum { ROWS = 5, BLOCKS = 3, SIZE = 6, COLUMNS = BLOCKS * SIZE };
  uint8_t nibbles[ROWS * COLUMNS / 2], bytes[ROWS * COLUMNS], codes[ROWS * COLUMNS];
  float recodings[ROWS * BLOCKS];
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    codes[i] = (uint8_t)(4 + i * 5 % 8);
    bytes[i] = (uint8_t)(120 + codes[i]);
    nibbles[i / 2] = (uint8_t)(i % 2 ? nibbles[i / 2] | codes[i] << 4 : codes[i]);
  }
  for (int i = 0; i < ROWS * BLOCKS; i++)
    recodings[i] = i % 4 == 1 ? 0 : transform_recoding(i % 3 == 0, i % 9 - 4);
  Constant packed = {.data = nibbles, .size = sizeof nibbles},
           made = {.data = bytes, .size = sizeof bytes};
  CodeBlocks b = {.rows = ROWS,
                  .blocks = BLOCKS,
                  .size = SIZE,
                  .recodings = {.data = (const void *)recodings, .size = sizeof recodings}};
  for (int unpacked = 0; unpacked < 2; unpacked++)
    for (uint32_t k = 0; k < BLOCKS; k++) {
      Constant from = unpacked ? constant_unpacked(e.g, packed, ROWS, COLUMNS, false, 120) : made,
               c = constant_block(e.g, from, &b, k, true);
      assert_int_equal(c.size, ROWS * SIZE / 2);
      assert_int_equal(c.transform->nibbles, unpacked);
      const Constant *got = constant_made(&c);
      for (uint32_t i = 0; i < ROWS * SIZE; i++) {
        uint32_t row = i / SIZE, n = codes[row * COLUMNS + k * SIZE + i % SIZE];
        float recoding = recodings[row * BLOCKS + k];
        int code = recoding == 0 ? 8 : (int)(recoding < 0 ? 15 - n : n) + move_of(recoding);
        assert_int_equal(got->data[i / 2] >> (i % 2 ? 4 : 0) & 15, code);
      }
    }
  teardown(&e);
}

static void test_repeats(void **state) {
  (void)state;
  static const uint8_t bytes[] = {1, 2, 1, 2, 1, 2};
  const Constant c = {.data = bytes, .size = sizeof bytes}, empty = {.size = 0};
  assert_true(constant_repeats(&c, 2));
  assert_true(constant_repeats(&c, sizeof bytes));
  assert_false(constant_repeats(&c, 1));
  assert_false(constant_repeats(&c, 3));
  assert_false(constant_repeats(&c, 8));
  assert_false(constant_repeats(&empty, 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_values),
                                     cmocka_unit_test(test_permuted),
                                     cmocka_unit_test(test_packed),
                                     cmocka_unit_test(test_moved),
                                     cmocka_unit_test(test_unpacked_rows),
                                     cmocka_unit_test(test_blocks),
                                     cmocka_unit_test(test_blocks_of_nibbles),
                                     cmocka_unit_test(test_repeats),
                                     cmocka_unit_test(test_faults)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

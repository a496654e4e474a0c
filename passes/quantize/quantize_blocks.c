/* int4-weight-only: weights of products become 4 bits with a scale for each block of inputs, chosen
 * for the least squared error. */
#include <math.h>

#include "ir/match.h"
#include "ops/quantized.h"
#include "passes/pass.h"

enum {
  INT4_BLOCK = 32,
  INT4_LOW = -8,
  INT4_HIGH = 7,
  INT4_TRIES = 48 /* scales that are tried */
};

/* Scales lie in bfloat16 in the delegates that take such blocks. */
static float as_bfloat(float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000U;
  memcpy(&number, &bits, sizeof number);
  return number;
}

static float code_of(float x, float scale) {
  float code = rintf(x / scale);
  return code < INT4_LOW ? INT4_LOW : code > INT4_HIGH ? INT4_HIGH : code;
}

static double squared_error(const float *x, float scale) {
  double sum = 0;
  for (uint32_t i = 0; i < INT4_BLOCK; i++) {
    double error = (double)x[i] - (double)(code_of(x[i], scale) * scale);
    sum += error * error;
  }
  return sum;
}

/* The scale of a block with the least error: its extreme may be cut off. */
static float block_scale(const float *x) {
  float most = 0, best = 0;
  double least = INFINITY;
  for (uint32_t i = 0; i < INT4_BLOCK; i++)
    most = fmaxf(most, fabsf(x[i]));
  if (!(most >= 0x1p-100F) || !isfinite(most))
    return 1;
  for (uint32_t i = 0; i < INT4_TRIES; i++) {
    float scale = as_bfloat(most / (5.0F + 0.1F * (float)i));
    double error = squared_error(x, scale);
    if (error < least)
      least = error, best = scale;
  }
  return best;
}

/* A matrix of floats, [outputs, inputs] or turned. */
typedef struct Matrix {
  ValueId constant;
  bool turned;
  uint64_t rows, columns;
} Matrix;

/* Whether v is one that can be cut into blocks. */
static bool match_matrix(const Graph *g, ValueId v, Matrix *m) {
  NodeId permute = match_op(g, v, OP_PERMUTE_COPY);
  *m = (Matrix){.constant = permute ? node_value(g, permute, 0) : v, .turned = permute != 0};
  if (!value_is_const(g, m->constant) || value_dtype(g, v) != DTYPE_F32 || value_rank(g, v) != 2 ||
      (permute && node_ints(g, permute, 1)[0] % 2 == 0))
    return false;
  m->rows = (uint64_t)value_dim(g, v, 0);
  m->columns = (uint64_t)value_dim(g, v, 1);
  return m->columns && m->columns % INT4_BLOCK == 0;
}

/* Block i of the rows. */
static void load_block(const Graph *g, const Matrix *m, uint64_t i, float *x) {
  const uint8_t *from = value_constant(g, m->constant)->data;
  uint64_t blocks = m->columns / INT4_BLOCK, row = i / blocks, column = i % blocks * INT4_BLOCK;
  for (uint32_t k = 0; k < INT4_BLOCK; k++) {
    uint64_t at = m->turned ? (column + k) * m->rows + row : row * m->columns + column + k;
    memcpy(&x[k], from + at * sizeof *x, sizeof *x);
  }
}

static ValueId weight_of_blocks(Builder *b, const Matrix *m) {
  Graph *g = b->g;
  uint64_t rows = m->rows, columns = m->columns, blocks = columns / INT4_BLOCK;
  int8_t *codes = arena_alloc(&g->arena, (size_t)(rows * columns) + 1);
  float *scales = ARENA_ARRAY(&g->arena, float, (size_t)(rows * blocks) + 1), x[INT4_BLOCK];
  for (uint64_t i = 0; i < rows * blocks; i++) {
    load_block(g, m, i, x);
    scales[i] = block_scale(x);
    for (uint32_t k = 0; k < INT4_BLOCK; k++) {
      float code = code_of(x[k], scales[i]);
      codes[i * INT4_BLOCK + k] = code == code ? (int8_t)code : 0;
    }
  }
  SymInt dims[] = {(SymInt)rows, (SymInt)columns}, scale_dims[] = {(SymInt)rows, (SymInt)blocks};
  TypeId type = graph_tensor_type(g, DTYPE_I8, 2, dims, ORDER_CONTIGUOUS),
         scale_type = graph_tensor_type(g, DTYPE_F32, 2, scale_dims, ORDER_CONTIGUOUS);
  Quantization q = {
      .dtype = DTYPE_I8, .low = INT4_LOW, .high = INT4_HIGH, .axis = 1, .block = INT4_BLOCK};
  ValueId v = graph_add_constant(g, type, (Constant){.data = (void *)codes, .size = rows * columns},
                                 value_cget(g, m->constant)->name);
  q.scales = graph_add_constant(
      g, scale_type,
      (Constant){.data = (const void *)scales, .size = rows * blocks * sizeof *scales}, 0);
  return build_dequantize(b, v, &q);
}

Status pass_quantize_blocks(PassContext *p, Graph *g) {
  Builder b = builder_make(g, 0, 0);
  uint64_t made = 0;
  if (!p->options->quantize || p->options->quantize->scheme != QUANT_INT4_WEIGHT_ONLY)
    return STATUS_OK;
  for (NodeId n = g->first; n && b.status == STATUS_OK; n = node_cget(g, n)->next) {
    Matrix m;
    if (node_cget(g, n)->op != OP_LINEAR || !match_matrix(g, node_value(g, n, 1), &m))
      continue;
    b.before = n;
    b.loc = node_cget(g, n)->loc;
    ValueId w = weight_of_blocks(&b, &m);
    if (w)
      node_set_arg(g, n, 1, A_VAL(w));
    made++;
  }
  pass_count(p, "weights", made);
  return b.status;
}

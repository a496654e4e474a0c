/* What LSTM, GRU and RNN share. Each is unrolled: the projections of all steps' inputs are one
 * matrix product a direction, then every step adds its recurrent part.
 *
 * Weights per direction: w [gates * H, I], r [gates * H, H], the biases [gates * H]. Lengths of
 * sequences are a mask [B, 1] a step: a finished sequence keeps its state and yields zeros; since
 * the backward direction walks the same positions from the end, its sequences begin where they
 * end. */
#ifndef ETC_ONNX_RECURRENT_H
#define ETC_ONNX_RECURRENT_H

#include "onnx/express.h"

enum {
  RECURRENT_STEPS_MAX = 4096, /* unrolled steps, both directions together */
  RECURRENT_ACTIVATIONS = 3   /* most functions of one direction (LSTM: f, g, h) */
};

typedef struct RnnActivation {
  StrView name;
  double alpha, beta;
} RnnActivation;

typedef struct Recurrent {
  ValueId x; /* [S, B, I], or [B, S, I] with layout 1 */
  uint32_t gates, directions;
  SymInt length;         /* S */
  int64_t steps, hidden; /* steps: upper bound of S, and how many are unrolled */
  SymInt batch;
  bool layout;    /* batch first */
  bool reverse;   /* direction 0 runs backwards */
  bool quantized; /* DynamicQuantizeLSTM: weights are turned over, inputs 8 to 11 say how they are
                     quantized, and what they multiply is quantized as it comes */
  double clip;    /* 0: none */
  DType dtype;
  ValueId *active; /* per step [B, 1] bool, NULL when all sequences are full */
  RnnActivation activations[2 * RECURRENT_ACTIVATIONS];
} Recurrent;

/* One direction. */
typedef struct RnnDirection {
  uint32_t index;
  bool backward;
  ValueId w, r;                             /* [gates * H, I], [gates * H, H] */
  ValueId w_bias, r_bias;                   /* [gates * H], 0 when absent */
  ValueId w_scale, w_zero, r_scale, r_zero; /* of quantized weights */
  const RnnActivation *f;
} RnnDirection;

/* Reads attributes, x, w, r, and lengths; count: activations a direction, with these defaults. */
bool recurrent_read(Import *im, uint32_t gates, const char *const *defaults, uint32_t count,
                    Recurrent *rnn);
RnnDirection recurrent_direction(Import *im, const Recurrent *rnn, uint32_t d, uint32_t count);
/* Initial state of a direction from input i, [B, H]; 0 when absent. */
ValueId recurrent_initial(Import *im, const Recurrent *rnn, uint32_t i, uint32_t d);
ValueId recurrent_zeros(Import *im, const Recurrent *rnn);
/* x w' + bias of every step: steps values [B, rows of w], in scratch. */
ValueId *recurrent_project(Import *im, const Recurrent *rnn, ValueId w, ValueId bias);
/* The same with the weights of a direction of a quantized operator. */
ValueId *recurrent_project_quantized(Import *im, const Recurrent *rnn, const RnnDirection *dir,
                                     ValueId bias);
/* Rows [first, first + count) of H gates of a weight or bias. */
ValueId recurrent_gates(Import *im, const Recurrent *rnn, ValueId weights, uint32_t first,
                        uint32_t count);
/* base + h r'; r_t is r transposed, h 0 stands for zeros. */
ValueId recurrent_add(Import *im, ValueId base, ValueId h, ValueId r_t);
/* Equal parts of [B, count * H] along dim 1. */
void recurrent_split(Import *im, const Recurrent *rnn, ValueId x, uint32_t count, ValueId *parts);
/* The activation, after clipping. */
ValueId recurrent_activate(Import *im, const Recurrent *rnn, const RnnActivation *f, ValueId x);
/* New state where the step is active, the old one elsewhere (0: zeros). */
ValueId recurrent_keep(Import *im, const Recurrent *rnn, int64_t step, ValueId fresh, ValueId old);
/* Binds output 0 (pieces[step * directions + d], each [B, H]) and a state output. */
void recurrent_out_steps(Import *im, const Recurrent *rnn, ValueId *pieces);
void recurrent_out_state(Import *im, const Recurrent *rnn, uint32_t i, const ValueId *states);

#endif

/* What LSTM, GRU and RNN share.
 *
 * The products with the inputs of all steps are one matrix product a direction, ahead of the steps.
 * The steps are a loop of the running program, whose states are h (and c) and the rows of y, so
 * that time and nothing else grows with their number; very few are unrolled. Both directions run in
 * the same loop: iteration k is step k of the one and step S - 1 - k of the other, whose inputs are
 * brought into that order before, and its rows of y back into theirs after it. Directions that
 * differ in more than their weights, or have many weights, are two loops.
 *
 * Lengths of sequences are a mask: a finished sequence keeps its state and yields zeros; since the
 * backward direction walks the same positions from the end, its sequences begin where they end. An
 * empty sequence ends with states of zeros, whatever its initial ones are, as in ONNX Runtime.
 *
 * A value of the steps is [B, n] for one direction and [2, B, n] for two. */
#ifndef ETC_ONNX_RECURRENT_H
#define ETC_ONNX_RECURRENT_H

#include "onnx/translate/control.h"

enum {
  RECURRENT_TOGETHER = 1 << 20, /* most bytes of recurrent weights of directions in one loop */
  RECURRENT_ACTIVATIONS = 3     /* most functions of one direction (LSTM: f, g, h) */
};

typedef struct RnnActivation {
  StrView name;
  OpId op; /* all of it, or OP_NONE */
  double alpha, beta;
} RnnActivation;

typedef struct Recurrent {
  ValueId x; /* [S, B, I] */
  uint32_t gates, directions;
  SymInt length, batch; /* S, B */
  int64_t hidden;
  bool layout;    /* batch first in the model */
  bool reverse;   /* direction 0 runs backwards */
  bool quantized; /* DynamicQuantizeLSTM: weights are transposed, inputs 8 to 11 say how they are
                     quantized, and what they multiply is quantized as it comes */
  double clip;    /* 0: none */
  DType dtype;
  ValueId active;          /* [S, B, 1] bool, 0 when all sequences are full */
  ValueId begun;           /* [B, 1] bool, 0 when no sequence is empty */
  uint32_t function_count; /* a direction */
  RnnActivation activations[2 * RECURRENT_ACTIVATIONS];
} Recurrent;

/* Directions that run together, and what their steps use. */
typedef struct RnnPart {
  const Recurrent *rnn;
  uint32_t first, count; /* directions */
  const RnnActivation *f;
  ValueId r_t, hidden_t, hidden_bias; /* recurrent weights [H, n] or [2, H, n], see the cells */
  ValueId product_bias;               /* hidden_bias as a part of a product with r_t, 0 for none */
  ValueId r_scale, r_zero;            /* of quantized weights */
  ValueId peephole[3];                /* i, o, f of LSTM, 0 when absent */
  bool coupled;                       /* input_forget of LSTM: f = 1 - i */
  bool linear_first;                  /* linear_before_reset of GRU */
} RnnPart;

/* An operator. */
typedef struct RnnKind {
  uint32_t gates, states;
  uint32_t function_count;
  const char *functions[RECURRENT_ACTIVATIONS]; /* defaults */
  /* Reads the weights of the part, and makes the products with the inputs: rows [S, B, n] or
   * [S, 2, B, n]. */
  ValueId (*prepare)(Import *im, RnnPart *part);
  /* One step with its row of the products: replaces the states, which may be 0 for zeros. */
  void (*step)(Import *im, const RnnPart *part, ValueId row, ValueId states[2]);
} RnnKind;

/* Translates the current node. */
void recurrent_translate(Import *im, const RnnKind *kind);

/* --- for recurrent_translate --- */

bool recurrent_read(Import *im, const RnnKind *kind, Recurrent *rnn);
/* x with its steps in reverse order. */
ValueId recurrent_reversed(Import *im, const Recurrent *rnn, ValueId x);

/* --- for prepare --- */

/* Input i of a direction: its entry of the first dim; 0 when absent. */
ValueId recurrent_input(Import *im, uint32_t i, uint32_t direction);

/* Gates of the recurrent weights (input 2) as the second operand of recurrent_times. */
ValueId recurrent_weights(Import *im, const RnnPart *part, uint32_t first, uint32_t count);
/* A gate of a [directions, n] input, to be added to a value of the steps; 0 when absent. */
ValueId recurrent_rows(Import *im, const RnnPart *part, uint32_t i, uint32_t gate);
/* The products with the inputs, and the biases (input 3) but the recurrent ones from gate `own` on.
 */
ValueId recurrent_project(Import *im, const RnnPart *part, uint32_t own);

/* --- for steps --- */

/* base + h w; base 0 or h 0 stand for zeros, not both. */
ValueId recurrent_times(Import *im, ValueId base, ValueId h, ValueId w);
/* Gate i of x along its last dim. */
ValueId recurrent_gate(Import *im, const Recurrent *rnn, ValueId x, uint32_t first, uint32_t count);
/* All `count` gates of x. */
void recurrent_split(Import *im, const Recurrent *rnn, ValueId x, uint32_t count, ValueId *parts);
/* Function i, after clipping. */
ValueId recurrent_activate(Import *im, const RnnPart *part, uint32_t i, ValueId x);
ValueId recurrent_unclipped(Import *im, const RnnPart *part, uint32_t i, ValueId x);

#endif

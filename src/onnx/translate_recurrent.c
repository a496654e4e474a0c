/* LSTM, GRU, RNN: equations of the operator documents; unrolling and layouts are in recurrent.h. */
#include "onnx/quantized.h"
#include "onnx/recurrent.h"

static ValueId transposed(Import *im, ValueId m) { return EX_PERMUTE(im, m, 1, 0); }

static ValueId sum_of(Import *im, ValueId a, ValueId b) { return a && b ? ex_add(im, a, b) : 0; }

static ValueId *pieces_of(Import *im, const Recurrent *rnn) {
  return ARENA_ARRAY(&im->scratch, ValueId, (size_t)rnn->steps * rnn->directions + 1);
}

/* Position of the k-th step of a direction. */
static int64_t position(const Recurrent *rnn, const RnnDirection *dir, int64_t k) {
  return dir->backward ? rnn->steps - 1 - k : k;
}

/* --- RNN --- */

static ValueId rnn_direction(Import *im, const Recurrent *rnn, uint32_t d, ValueId *pieces) {
  RnnDirection dir = recurrent_direction(im, rnn, d, 1);
  ValueId *x = recurrent_project(im, rnn, dir.w, sum_of(im, dir.w_bias, dir.r_bias));
  ValueId h = recurrent_initial(im, rnn, 5, d), r_t = transposed(im, dir.r);
  for (int64_t k = 0; k < rnn->steps && import_ok(im); k++) {
    int64_t t = position(rnn, &dir, k);
    ValueId next = recurrent_activate(im, rnn, dir.f, recurrent_add(im, x[t], h, r_t));
    pieces[t * rnn->directions + d] = recurrent_keep(im, rnn, t, next, 0);
    h = recurrent_keep(im, rnn, t, next, h);
  }
  return h ? h : recurrent_zeros(im, rnn);
}

void translate_rnn(Import *im) {
  Recurrent rnn;
  if (!recurrent_read(im, 1, (const char *const[]){"Tanh"}, 1, &rnn))
    return;
  ValueId *pieces = pieces_of(im, &rnn), states[2] = {0};
  for (uint32_t d = 0; d < rnn.directions; d++)
    states[d] = rnn_direction(im, &rnn, d, pieces);
  recurrent_out_steps(im, &rnn, pieces);
  recurrent_out_state(im, &rnn, 1, states);
}

/* --- GRU: gates z, r, h --- */

typedef struct Gru {
  bool linear_first; /* linear_before_reset */
  ValueId gates_t, hidden_t, hidden_bias;
} Gru;

static ValueId gru_hidden(Import *im, const Gru *gru, ValueId x, ValueId h, ValueId reset) {
  if (!gru->linear_first)
    return recurrent_add(im, x, ex_mul(im, reset, h), gru->hidden_t);
  ValueId linear = gru->hidden_bias ? recurrent_add(im, gru->hidden_bias, h, gru->hidden_t)
                                    : ex_binary(im, OP_MM, h, gru->hidden_t);
  return ex_add(im, x, ex_mul(im, reset, linear));
}

static ValueId gru_direction(Import *im, const Recurrent *rnn, uint32_t d, ValueId *pieces) {
  RnnDirection dir = recurrent_direction(im, rnn, d, 2);
  Gru gru = {.linear_first = attr_int(im, "linear_before_reset", 0) != 0,
             .gates_t = transposed(im, recurrent_gates(im, rnn, dir.r, 0, 2)),
             .hidden_t = transposed(im, recurrent_gates(im, rnn, dir.r, 2, 1))};
  ValueId own = recurrent_gates(im, rnn, dir.w_bias, 2, 1),
          recurrent = recurrent_gates(im, rnn, dir.r_bias, 2, 1);
  if (gru.linear_first)
    gru.hidden_bias = recurrent;
  ValueId *gates = recurrent_project(im, rnn, recurrent_gates(im, rnn, dir.w, 0, 2),
                                     sum_of(im, recurrent_gates(im, rnn, dir.w_bias, 0, 2),
                                            recurrent_gates(im, rnn, dir.r_bias, 0, 2)));
  ValueId *hidden = recurrent_project(im, rnn, recurrent_gates(im, rnn, dir.w, 2, 1),
                                      gru.linear_first ? own : sum_of(im, own, recurrent));
  ValueId h = recurrent_initial(im, rnn, 5, d);
  h = h ? h : recurrent_zeros(im, rnn);
  for (int64_t k = 0; k < rnn->steps && import_ok(im); k++) {
    int64_t t = position(rnn, &dir, k);
    ValueId zr[2];
    recurrent_split(im, rnn,
                    recurrent_activate(im, rnn, dir.f, recurrent_add(im, gates[t], h, gru.gates_t)),
                    2, zr);
    ValueId fresh =
        recurrent_activate(im, rnn, dir.f + 1, gru_hidden(im, &gru, hidden[t], h, zr[1]));
    ValueId next = ex_add(im, fresh, ex_mul(im, zr[0], ex_sub(im, h, fresh)));
    pieces[t * rnn->directions + d] = recurrent_keep(im, rnn, t, next, 0);
    h = recurrent_keep(im, rnn, t, next, h);
  }
  return h;
}

void translate_gru(Import *im) {
  Recurrent rnn;
  if (!recurrent_read(im, 3, (const char *const[]){"Sigmoid", "Tanh"}, 2, &rnn))
    return;
  ValueId *pieces = pieces_of(im, &rnn), states[2] = {0};
  for (uint32_t d = 0; d < rnn.directions; d++)
    states[d] = gru_direction(im, &rnn, d, pieces);
  recurrent_out_steps(im, &rnn, pieces);
  recurrent_out_state(im, &rnn, 1, states);
}

/* --- LSTM: gates i, o, f, c --- */

typedef struct Lstm {
  bool coupled;        /* input_forget: f = 1 - i */
  ValueId peephole[3]; /* i, o, f; [H], 0 when absent */
} Lstm;

static Lstm lstm_read(Import *im, const Recurrent *rnn, uint32_t d) {
  Lstm lstm = {.coupled = attr_int(im, "input_forget", 0) != 0};
  ValueId peepholes = in(im, 7);
  if (!peepholes)
    return lstm;
  ValueId row = ex_select(im, peepholes, 0, d);
  for (uint32_t i = 0; i < 3; i++)
    lstm.peephole[i] = recurrent_gates(im, rnn, row, i, 1);
  return lstm;
}

static ValueId peep(Import *im, ValueId gate, ValueId weight, ValueId cell) {
  return cell ? ex_add(im, gate, ex_mul(im, weight, cell)) : gate;
}

/* Gate values from their sums [B, 4H]: gate[0..2] = i, o (a sum still when there are peepholes), f;
 * gate[3] = c. Without peepholes i, o and f are activated as one tensor. */
static void lstm_gates(Import *im, const Recurrent *rnn, const RnnDirection *dir, const Lstm *lstm,
                       ValueId sums, ValueId cell, ValueId gate[4]) {
  if (lstm->peephole[0]) {
    recurrent_split(im, rnn, sums, 4, gate);
    for (uint32_t i = 0; i < 3; i += 2)
      gate[i] = recurrent_activate(im, rnn, dir->f, peep(im, gate[i], lstm->peephole[i], cell));
  } else {
    ValueId three = ex_slice(im, sums, 1, 0, 3 * rnn->hidden);
    recurrent_split(im, rnn, recurrent_activate(im, rnn, dir->f, three), 3, gate);
    gate[3] = ex_slice(im, sums, 1, 3 * rnn->hidden, 4 * rnn->hidden);
  }
  gate[3] = recurrent_activate(im, rnn, dir->f + 1, gate[3]);
  if (lstm->coupled)
    gate[2] = ex_binary(im, OP_SUB_TENSOR, ex_number(im, gate[0], 1), gate[0]);
}

static void lstm_direction(Import *im, const Recurrent *rnn, uint32_t d, ValueId *pieces,
                           ValueId *last_h, ValueId *last_c) {
  RnnDirection dir = recurrent_direction(im, rnn, d, 3);
  Lstm lstm = lstm_read(im, rnn, d);
  ValueId bias = sum_of(im, dir.w_bias, dir.r_bias);
  ValueId *x = rnn->quantized ? recurrent_project_quantized(im, rnn, &dir, bias)
                              : recurrent_project(im, rnn, dir.w, bias);
  ValueId h = recurrent_initial(im, rnn, 5, d), c = recurrent_initial(im, rnn, 6, d),
          r_t = rnn->quantized ? dir.r : transposed(im, dir.r);
  Recurrent unclipped = *rnn; /* as ONNX Runtime does: the gates' inputs are clipped, h's is not */
  unclipped.clip = 0;
  for (int64_t k = 0; k < rnn->steps && import_ok(im); k++) {
    int64_t t = position(rnn, &dir, k);
    ValueId gate[4] = {0};
    ValueId sums = !rnn->quantized ? recurrent_add(im, x[t], h, r_t)
                   : h             ? quantized_dynamic(im, h, r_t, dir.r_scale, dir.r_zero, x[t])
                                   : x[t];
    lstm_gates(im, rnn, &dir, &lstm, sums, c, gate);
    ValueId cell = ex_mul(im, gate[0], gate[3]);
    if (c)
      cell = ex_add(im, ex_mul(im, gate[2], c), cell);
    if (lstm.peephole[0])
      gate[1] = recurrent_activate(im, rnn, dir.f, peep(im, gate[1], lstm.peephole[1], cell));
    ValueId next = ex_mul(im, gate[1], recurrent_activate(im, &unclipped, dir.f + 2, cell));
    pieces[t * rnn->directions + d] = recurrent_keep(im, rnn, t, next, 0);
    h = recurrent_keep(im, rnn, t, next, h);
    c = recurrent_keep(im, rnn, t, cell, c);
  }
  *last_h = h ? h : recurrent_zeros(im, rnn);
  *last_c = c ? c : recurrent_zeros(im, rnn);
}

void translate_lstm(Import *im) {
  Recurrent rnn;
  if (!recurrent_read(im, 4, (const char *const[]){"Sigmoid", "Tanh", "Tanh"}, 3, &rnn))
    return;
  ValueId *pieces = pieces_of(im, &rnn), h[2] = {0}, c[2] = {0};
  for (uint32_t d = 0; d < rnn.directions; d++)
    lstm_direction(im, &rnn, d, pieces, &h[d], &c[d]);
  recurrent_out_steps(im, &rnn, pieces);
  recurrent_out_state(im, &rnn, 1, h);
  recurrent_out_state(im, &rnn, 2, c);
}

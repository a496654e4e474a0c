/* LSTM, GRU, RNN: equations of the operator documents; what surrounds the steps is in
 * recurrent_parts.h. */
#include "onnx/translate/quantized.h"
#include "onnx/translate/recurrent_parts.h"

/* --- RNN --- */

static ValueId prepare_rnn(Import *im, RnnPart *part) {
  part->r_t = recurrent_weights(im, part, 0, 1);
  return recurrent_project(im, part, 1);
}

static void step_rnn(Import *im, const RnnPart *part, ValueId row, ValueId states[2]) {
  states[0] = recurrent_activate(im, part, 0, recurrent_times(im, row, states[0], part->r_t));
}

void translate_rnn(Import *im) {
  static const RnnKind kind = {1, 1, 1, {"Tanh"}, prepare_rnn, step_rnn};
  recurrent_translate(im, &kind);
}

/* --- GRU: gates z, r, h --- */

enum { GRU_RESET = 2, GRU_GATES };

static ValueId prepare_gru(Import *im, RnnPart *part) {
  part->linear_first = attr_flag(im, "linear_before_reset", false);
  if (!part->linear_first) {
    part->r_t = recurrent_weights(im, part, 0, GRU_RESET);
    part->hidden_t = recurrent_weights(im, part, GRU_RESET, 1);
    return recurrent_project(im, part, GRU_GATES);
  }
  part->r_t = recurrent_weights(im, part, 0, GRU_GATES);
  part->hidden_bias = recurrent_rows(im, part, 3, GRU_GATES + GRU_RESET);
  if (part->hidden_bias && part->count == 1) { /* the product takes one for all gates */
    const SymInt others[] = {GRU_RESET * part->rnn->hidden};
    part->product_bias =
        ex_cat2(im, ex_full(im, part->rnn->dtype, others, 1, 0), part->hidden_bias, 0);
  }
  return recurrent_project(im, part, GRU_RESET);
}

/* The sums of gates z and r, and that of h when it can be made before them: its part of `row`, and
 * the recurrent one. */
static ValueId gru_sums(Import *im, const RnnPart *part, ValueId row, ValueId h, ValueId *linear) {
  const Recurrent *rnn = part->rnn;
  *linear = 0;
  if (!part->linear_first)
    return recurrent_times(im, recurrent_gate(im, rnn, row, 0, GRU_RESET), h, part->r_t);
  if (!h)
    return row;
  ValueId product = recurrent_times(im, part->product_bias, h, part->r_t);
  *linear = recurrent_gate(im, rnn, product, GRU_RESET, 1);
  return ex_add(im, product, row);
}

static void step_gru(Import *im, const RnnPart *part, ValueId row, ValueId states[2]) {
  const Recurrent *rnn = part->rnn;
  ValueId h = states[0], linear, gates[GRU_GATES];
  ValueId sums = recurrent_activate(im, part, 0, gru_sums(im, part, row, h, &linear));
  recurrent_split(im, rnn, sums, part->linear_first ? GRU_GATES : GRU_RESET, gates);
  ValueId fresh = recurrent_gate(im, rnn, row, GRU_RESET, 1);
  if (!part->linear_first && h)
    fresh = recurrent_times(im, fresh, ex_mul(im, gates[1], h), part->hidden_t);
  if (part->hidden_bias && !linear)
    linear = part->hidden_bias;
  else if (part->hidden_bias && !part->product_bias)
    linear = ex_add(im, linear, part->hidden_bias);
  if (linear)
    fresh = ex_add(im, fresh, ex_mul(im, gates[1], linear));
  fresh = recurrent_activate(im, part, 1, fresh);
  ValueId kept = h ? ex_mul(im, gates[0], ex_sub(im, h, fresh)) : ex_mul(im, gates[0], fresh);
  states[0] = h ? ex_add(im, fresh, kept) : ex_sub(im, fresh, kept);
}

void translate_gru(Import *im) {
  static const RnnKind kind = {GRU_GATES, 1, 2, {"Sigmoid", "Tanh"}, prepare_gru, step_gru};
  recurrent_translate(im, &kind);
}

/* --- LSTM: gates i, o, f, c --- */

enum { LSTM_GATES = 4 };

static ValueId prepare_lstm(Import *im, RnnPart *part) {
  part->coupled = attr_flag(im, "input_forget", false);
  for (uint32_t i = 0; i < 3; i++)
    part->peephole[i] = recurrent_rows(im, part, 7, i);
  if (part->rnn->quantized) {
    part->r_t = recurrent_input(im, 2, part->first);
    part->r_scale = recurrent_input(im, 10, part->first);
    part->r_zero = recurrent_input(im, 11, part->first);
  } else {
    part->r_t = recurrent_weights(im, part, 0, LSTM_GATES);
  }
  return recurrent_project(im, part, LSTM_GATES);
}

static ValueId peep(Import *im, ValueId gate, ValueId weight, ValueId cell) {
  return cell ? ex_add(im, gate, ex_mul(im, weight, cell)) : gate;
}

/* Gate values from their sums: gate[0..2] = i, o (a sum still when there are peepholes), f; gate[3]
 * = c. Without peepholes all are activated as one tensor, which is faster than to take apart those
 * that need it. */
static void lstm_gates(Import *im, const RnnPart *part, ValueId sums, ValueId cell,
                       ValueId gate[LSTM_GATES]) {
  const Recurrent *rnn = part->rnn;
  if (part->peephole[0]) {
    recurrent_split(im, rnn, sums, LSTM_GATES, gate);
    for (uint32_t i = 0; i < 3; i += 2)
      gate[i] = recurrent_activate(im, part, 0, peep(im, gate[i], part->peephole[i], cell));
  } else {
    recurrent_split(im, rnn, recurrent_activate(im, part, 0, sums), LSTM_GATES, gate);
    gate[3] = recurrent_gate(im, rnn, sums, 3, 1);
  }
  gate[3] = recurrent_activate(im, part, 1, gate[3]);
  if (part->coupled)
    gate[2] = ex_sub(im, ex_number(im, gate[0], 1), gate[0]);
}

static void step_lstm(Import *im, const RnnPart *part, ValueId row, ValueId states[2]) {
  ValueId h = states[0], c = states[1], gate[LSTM_GATES] = {0}, sums = row;
  if (!part->rnn->quantized)
    sums = recurrent_times(im, row, h, part->r_t);
  else if (h)
    sums = quantized_dynamic(im, h, part->r_t, part->r_scale, part->r_zero, row);
  lstm_gates(im, part, sums, c, gate);
  ValueId cell = ex_mul(im, gate[0], gate[3]);
  if (c)
    cell = ex_add(im, ex_mul(im, gate[2], c), cell);
  if (part->peephole[0])
    gate[1] = recurrent_activate(im, part, 0, peep(im, gate[1], part->peephole[1], cell));
  /* As ONNX Runtime does: what the gates take is clipped, what h takes is not. */
  states[0] = ex_mul(im, gate[1], recurrent_unclipped(im, part, 2, cell));
  states[1] = cell;
}

void translate_lstm(Import *im) {
  static const RnnKind kind = {LSTM_GATES,   2,        3, {"Sigmoid", "Tanh", "Tanh"},
                               prepare_lstm, step_lstm};
  recurrent_translate(im, &kind);
}

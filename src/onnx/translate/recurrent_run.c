/* The steps of recurrent operators as a loop, or unrolled; see recurrent_parts.h. */
#include "onnx/translate/recurrent_parts.h"

typedef struct Steps {
  const RnnKind *kind;
  const RnnPart *part;
  ValueId rows, active; /* of all steps, in the order in which they run; active may be 0 */
  ValueId states[2];
  bool collects; /* y is wanted */
  ValueId y;     /* h of all steps */
} Steps;

/* The states after a step: those of a finished sequence stay. */
static void step(Import *im, Steps *s, ValueId row, ValueId active) {
  ValueId before[] = {s->states[0], s->states[1]};
  s->kind->step(im, s->part, row, s->states);
  for (uint32_t i = 0; i < s->kind->states && active; i++)
    s->states[i] =
        ex_where(im, active, s->states[i], before[i] ? before[i] : ex_number(im, s->states[i], 0));
}

/* --- unrolled --- */

static void unroll(Import *im, Steps *s) {
  const Recurrent *rnn = s->part->rnn;
  ValueId rows[PRODUCTS_UNROLLED] = {0};
  for (int64_t t = 0; t < rnn->length && import_ok(im); t++) {
    ValueId active = s->active ? ex_select(im, s->active, 0, t) : 0;
    step(im, s, ex_select(im, s->rows, 0, t), active);
    rows[t] = ex_unsqueeze(im, s->states[0], 0);
  }
  s->y = ex_cat(im, rows, (uint32_t)rnn->length, 0);
}

/* --- as a loop --- */

/* dims of h of all steps, of which there are `length`. */
static Dims collected_shape(const RnnPart *part, SymInt length) {
  Dims shape = {.d = {length}, .rank = 1};
  if (part->count > 1)
    shape.d[shape.rank++] = part->count;
  shape.d[shape.rank++] = part->rnn->batch;
  shape.d[shape.rank++] = part->rnn->hidden;
  return shape;
}

static void run(Import *im, Steps *s) {
  const Recurrent *rnn = s->part->rnn;
  SymTable *t = &im->g->syms;
  uint32_t states = s->kind->states, count = states + s->collects;
  ValueId values[3] = {0};
  SymInt rows = sym_symbol(t, SV(""), 0, sym_upper(t, rnn->length), true);
  for (uint32_t i = 0; i < states; i++) {
    Dims shape = collected_shape(s->part, 0);
    values[i] =
        s->states[i] ? s->states[i] : ex_full(im, rnn->dtype, shape.d + 1, shape.rank - 1, 0);
  }
  if (s->collects)
    values[states] = ex_filled(im, rnn->dtype, collected_shape(s->part, 0), 0);
  ValueId first = build(&im->b, OP_LOOP, A_INT(rnn->length), A_OPT(0), A_VALS(values, count));
  if (!import_ok(im))
    return;
  SymInt number = value_type(im->g, first)->dims[0];
  for (uint32_t i = 0; i < count; i++)
    values[i] = first + 1 + i;
  if (s->collects)
    ex_set_shape(im, values[states], collected_shape(s->part, rows));
  memcpy(s->states, values, states * sizeof *values);
  ValueId active = s->active ? ex_pick(im, s->active, 0, number) : 0;
  step(im, s, ex_pick(im, s->rows, 0, number), active);
  memcpy(values, s->states, states * sizeof *values);
  if (s->collects)
    values[states] = ex_put_row(im, values[states], values[0], number);
  first = build(&im->b, OP_NEXT, A_OPT(0), A_VALS(values, count));
  for (uint32_t i = 0; i < states; i++)
    s->states[i] = first + i;
  s->y = s->collects ? first + states : 0;
  if (s->collects)
    ex_set_shape(im, s->y, collected_shape(s->part, rnn->length));
}

/* --- what surrounds the steps --- */

/* Initial state of the part from input i; 0 when absent. */
static ValueId initial(Import *im, const RnnPart *part, uint32_t i) {
  ValueId state = in(im, i);
  const Recurrent *rnn = part->rnn;
  if (!state)
    return 0;
  if (rnn->layout)
    state = EX_PERMUTE(im, state, 1, 0, 2);
  if (rnn->begun)
    state = ex_where(im, rnn->begun, state, ex_number(im, state, 0));
  return part->count > 1 ? state : ex_select(im, state, 0, part->first);
}

/* The mask in the order in which the steps run. */
static ValueId active_of(Import *im, const RnnPart *part, bool backward) {
  const Recurrent *rnn = part->rnn;
  if (!rnn->active || (part->count == 1 && !backward))
    return rnn->active;
  ValueId reversed = recurrent_reversed(im, rnn, rnn->active);
  if (part->count == 1)
    return reversed;
  reversed = ex_unsqueeze(im, reversed, 1);
  return ex_cat2(im, ex_unsqueeze(im, rnn->active, 1), reversed, 1);
}

/* h of all steps as the part has it, as [S, directions, B, H] in the order of the steps. */
static ValueId arranged(Import *im, const RnnPart *part, ValueId y, bool backward) {
  const Recurrent *rnn = part->rnn;
  if (part->count == 1) {
    y = backward ? recurrent_reversed(im, rnn, y) : y;
    return EX_VIEW(im, y, rnn->length, 1, rnn->batch, rnn->hidden);
  }
  if (rnn->length == 1)
    return y;
  /* Of rows 2t and 2t + 1 for both directions, the one and 2 (S - 1 - t) + 1. */
  SymInt rows = sym_mul(&im->g->syms, rnn->length, 2), last = sym_sub(&im->g->syms, rows, 1);
  ValueId even = EX_VIEW(im, ex_times(im, ex_arange(im, rnn->length), 2), rnn->length, 1),
          order = ex_cat2(im, even, ex_sub(im, ex_size(im, last), even), 1);
  y = EX_VIEW(im, y, rows, rnn->batch, rnn->hidden);
  y = ex_index_select(im, y, 0, EX_VIEW(im, order, rows));
  return EX_VIEW(im, y, rnn->length, 2, rnn->batch, rnn->hidden);
}

/* Runs the steps of a part: y and the states come as […, directions, B, H]. */
static void run_part(Import *im, const RnnKind *kind, RnnPart *part, ValueId *y, ValueId *states) {
  const Recurrent *rnn = part->rnn;
  bool backward = rnn->reverse || part->first == 1;
  Steps s = {.kind = kind, .part = part, .collects = out_wanted(im, 0)};
  s.rows = kind->prepare(im, part);
  s.active = active_of(im, part, backward);
  for (uint32_t i = 0; i < kind->states; i++)
    s.states[i] = initial(im, part, 5 + i);
  if (sym_is_const(rnn->length) && rnn->length <= PRODUCTS_UNROLLED)
    unroll(im, &s);
  else
    run(im, &s);
  if (s.collects && s.active)
    s.y = ex_where(im, s.active, s.y, ex_number(im, s.y, 0));
  if (s.collects)
    *y = arranged(im, part, s.y, backward);
  for (uint32_t i = 0; i < kind->states && import_ok(im); i++)
    states[i] = EX_VIEW(im, s.states[i], part->count, rnn->batch, rnn->hidden);
}

/* Do the directions run in one loop? Then they differ in nothing but their weights, which are few
 * enough to stay in a cache of the second level: a step reads all of them. */
static bool together(const Recurrent *rnn) {
  uint64_t bytes = dtype_size(rnn->dtype) * 2 * rnn->gates, hidden = (uint64_t)rnn->hidden;
  if (!mul_u64(bytes, hidden, &bytes) || !mul_u64(bytes, hidden, &bytes) ||
      bytes > RECURRENT_TOGETHER)
    return false;
  const RnnActivation *f = rnn->activations;
  if (rnn->directions == 1 || rnn->quantized)
    return false;
  for (uint32_t i = 0; i < rnn->function_count; i++) {
    const RnnActivation *g = &f[rnn->function_count + i];
    if (!sv_eq(f[i].name, g->name) || f[i].alpha != g->alpha || f[i].beta != g->beta)
      return false;
  }
  return true;
}

void recurrent_translate(Import *im, const RnnKind *kind) {
  Recurrent rnn;
  ValueId y[2] = {0}, states[2][2] = {{0}}, outputs[2] = {0};
  if (!recurrent_read(im, kind, &rnn))
    return;
  uint32_t count = together(&rnn) ? 2 : 1, parts = rnn.directions / count;
  for (uint32_t i = 0; i < parts; i++) {
    RnnPart part = {.rnn = &rnn,
                    .first = i,
                    .count = count,
                    .f = rnn.activations + (size_t)i * rnn.function_count};
    run_part(im, kind, &part, &y[i], outputs);
    states[0][i] = outputs[0];
    states[1][i] = outputs[1];
  }
  if (out_wanted(im, 0)) {
    ValueId all = ex_cat(im, y, parts, 1);
    out(im, 0, rnn.layout ? EX_PERMUTE(im, all, 2, 0, 1, 3) : all);
  }
  for (uint32_t i = 0; i < kind->states; i++) {
    if (!out_wanted(im, 1 + i))
      continue;
    ValueId last = ex_cat(im, states[i], parts, 0);
    out(im, 1 + i, rnn.layout ? EX_PERMUTE(im, last, 1, 0, 2) : last);
  }
}

/* What recurrent operators read, and the parts that their steps are made of; see
 * recurrent_parts.h. */
#include "onnx/translate/recurrent_parts.h"

#include <strings.h>

#include "onnx/translate/quantized.h"

typedef struct ActivationRow {
  const char *name;
  OpId op;          /* all of it, or OP_NONE */
  bool alpha, beta; /* takes one */
  double alpha_default, beta_default;
} ActivationRow;

static const ActivationRow activation_rows[] = {
    {"Affine", OP_NONE, true, true, 1, 0},
    {"Elu", OP_NONE, true, false, 1, 0},
    {"HardSigmoid", OP_NONE, true, true, (double)0.2f, 0.5},
    {"LeakyRelu", OP_NONE, true, false, (double)0.01f, 0},
    {"Relu", OP_RELU, false, false, 0, 0},
    {"ScaledTanh", OP_NONE, true, true, 1, 1},
    {"Sigmoid", OP_SIGMOID, false, false, 0, 0},
    {"Softplus", OP_SOFTPLUS, false, false, 0, 0},
    {"Softsign", OP_NONE, false, false, 0, 0},
    {"Tanh", OP_TANH, false, false, 0, 0},
    {"ThresholdedRelu", OP_NONE, true, false, 1, 0},
};

static const ActivationRow *activation_row(StrView name) {
  for (size_t i = 0; i < COUNT_OF(activation_rows); i++)
    if (strlen(activation_rows[i].name) == name.size &&
        strncasecmp(activation_rows[i].name, name.data, name.size) == 0)
      return &activation_rows[i];
  return NULL;
}

/* Names, and alphas and betas in the order of the functions that take one. */
static void read_activations(Import *im, const char *const *defaults, Recurrent *rnn) {
  Texts names;
  Floats alphas, betas;
  uint32_t alpha = 0, beta = 0;
  bool named = attr_strs(im, "activations", &names);
  attr_floats(im, "activation_alpha", &alphas);
  attr_floats(im, "activation_beta", &betas);
  uint32_t count = rnn->function_count, wanted = count * rnn->directions;
  if (named && names.count < wanted) {
    import_fail(im, DIAG_ATTR_VALUE, "%u activations are given, %u are needed", names.count,
                wanted);
    return;
  }
  for (uint32_t i = 0; i < wanted && import_ok(im); i++) {
    RnnActivation *f = &rnn->activations[i];
    const ActivationRow *row = activation_row(named ? names.at[i] : sv_from(defaults[i % count]));
    if (!row) {
      import_fail(im, DIAG_ATTR_VALUE, "'" SV_FMT "' is not an activation of recurrent operators",
                  SV_ARG(names.at[i]));
      return;
    }
    f->name = sv_from(row->name);
    f->op = row->op;
    f->alpha = row->alpha && alpha < alphas.count ? (double)alphas.at[alpha++] : row->alpha_default;
    f->beta = row->beta && beta < betas.count ? (double)betas.at[beta++] : row->beta_default;
  }
}

static void read_sizes(Import *im, ValueId w, ValueId r, Recurrent *rnn) {
  uint32_t wide = rnn->quantized ? 2 : 1; /* the dim of the gates */
  rnn->dtype = ex_dtype(im, rnn->x);
  rnn->length = ex_dim(im, rnn->x, rnn->layout ? 1 : 0);
  rnn->batch = ex_dim(im, rnn->x, rnn->layout ? 0 : 1);
  rnn->hidden = ex_fixed(im, r, 3 - wide);
  int64_t declared = attr_int(im, "hidden_size", rnn->hidden);
  if (declared != rnn->hidden)
    import_fail(im, DIAG_ATTR_VALUE, "hidden_size is %lld, but R has %lld", (long long)declared,
                (long long)rnn->hidden);
  if (ex_dim(im, r, 0) != rnn->directions || ex_dim(im, w, 0) != rnn->directions ||
      ex_dim(im, r, wide) != rnn->gates * rnn->hidden ||
      ex_dim(im, w, wide) != rnn->gates * rnn->hidden)
    import_fail(im, DIAG_SHAPE_MISMATCH, "W or R do not fit %u directions of %u gates of size %lld",
                rnn->directions, rnn->gates, (long long)rnn->hidden);
  if (sym_upper(&im->g->syms, rnn->length) < 1)
    import_fail(im, DIAG_SHAPE_MISMATCH, "the sequence has no steps");
}

static bool read_shapes(Import *im, Recurrent *rnn) {
  ValueId w = in_required(im, 1), r = in_required(im, 2);
  rnn->x = in_required(im, 0);
  if (ex_rank(im, rnn->x) != 3 || ex_rank(im, w) != 3 || ex_rank(im, r) != 3)
    import_fail(im, DIAG_INPUT_RANK, "X, W and R have ranks %u, %u and %u, not 3",
                ex_rank(im, rnn->x), ex_rank(im, w), ex_rank(im, r));
  else
    read_sizes(im, w, r, rnn);
  if (rnn->layout)
    rnn->x = EX_PERMUTE(im, rnn->x, 1, 0, 2);
  return import_ok(im);
}

/* Whether the lengths are known to be such ones. */
static bool lengths_within(Import *im, ValueId lengths, SymInt least, SymInt most) {
  SymTable *t = &im->g->syms;
  Ints values;
  if (!value_ints(im, lengths, &values))
    return false;
  for (uint32_t i = 0; i < values.count; i++)
    if (sym_known_le(t, least, values.at[i]) != 1 || sym_known_le(t, values.at[i], most) != 1)
      return false;
  return true;
}

static void read_lengths(Import *im, Recurrent *rnn) {
  ValueId lengths = in(im, 4);
  if (!lengths || lengths_within(im, lengths, rnn->length, rnn->length))
    return;
  if (rnn->quantized)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "sequences end early, and what is quantized behind their ends is not defined");
  ValueId row = EX_VIEW(im, ex_cast(im, lengths, DTYPE_I64), 1, rnn->batch, 1);
  ValueId step = EX_VIEW(im, ex_arange(im, rnn->length), rnn->length, 1, 1);
  rnn->active = ex_lt(im, step, row);
  if (lengths_within(im, lengths, 1, INT32_MAX))
    return;
  ValueId each = EX_VIEW(im, row, rnn->batch, 1);
  rnn->begun = ex_with(im, OP_GT_TENSOR, each, 0);
}

bool recurrent_read(Import *im, const RnnKind *kind, Recurrent *rnn) {
  *rnn = (Recurrent){.layout = attr_flag(im, "layout", false),
                     .gates = kind->gates,
                     .function_count = kind->function_count,
                     .quantized = in_count(im) > 8};
  for (uint32_t i = 8; rnn->quantized && i <= 10; i += 2) /* the scales of both weights */
    in_required(im, i);
  enum {
    FORWARD,
    REVERSE,
    BOTH
  } direction = attr_choice(im, "direction", "forward", "forward|reverse|bidirectional");
  rnn->directions = direction == BOTH ? 2 : 1;
  rnn->reverse = direction == REVERSE;
  rnn->clip = attr_float(im, "clip", 0);
  read_activations(im, kind->functions, rnn);
  if (read_shapes(im, rnn))
    read_lengths(im, rnn);
  return import_ok(im);
}

/* --- weights and the products with the inputs --- */

ValueId recurrent_input(Import *im, uint32_t i, uint32_t direction) {
  return in(im, i) ? ex_select(im, in(im, i), 0, direction) : 0;
}

/* Entries [first, first + count) of H of a weight or bias; 0 when that is absent. */
static ValueId gates_of(Import *im, const Recurrent *rnn, ValueId weights, uint32_t first,
                        uint32_t count) {
  return weights ? ex_slice(im, weights, 0, first * rnn->hidden, (first + count) * rnn->hidden) : 0;
}

/* Element d of `items` for each direction of the part: as they are, or [2, ...] of two. */
static ValueId of_directions(Import *im, const RnnPart *part, ValueId *items) {
  for (uint32_t d = 0; d < part->count && part->count > 1; d++)
    items[d] = ex_unsqueeze(im, items[d], 0);
  return ex_cat(im, items, part->count, 0);
}

ValueId recurrent_weights(Import *im, const RnnPart *part, uint32_t first, uint32_t count) {
  ValueId items[2] = {0};
  for (uint32_t d = 0; d < part->count; d++)
    items[d] = EX_PERMUTE(
        im, gates_of(im, part->rnn, recurrent_input(im, 2, part->first + d), first, count), 1, 0);
  return of_directions(im, part, items);
}

ValueId recurrent_rows(Import *im, const RnnPart *part, uint32_t i, uint32_t gate) {
  ValueId items[2] = {0};
  if (!in(im, i))
    return 0;
  for (uint32_t d = 0; d < part->count; d++) {
    items[d] = gates_of(im, part->rnn, recurrent_input(im, i, part->first + d), gate, 1);
    if (part->count > 1)
      items[d] = ex_unsqueeze(im, items[d], 0);
  }
  return of_directions(im, part, items);
}

/* What the projection of direction d adds. */
static ValueId bias_of(Import *im, const Recurrent *rnn, uint32_t d, uint32_t own) {
  ValueId biases = recurrent_input(im, 3, d);
  if (!biases)
    return 0;
  ValueId w_bias = gates_of(im, rnn, biases, 0, rnn->gates),
          r_bias = gates_of(im, rnn, biases, rnn->gates, rnn->gates);
  if (own == rnn->gates)
    return ex_add(im, w_bias, r_bias);
  ValueId of_state = gates_of(im, rnn, r_bias, 0, own),
          added = ex_add(im, gates_of(im, rnn, w_bias, 0, own), of_state);
  return ex_cat2(im, added, gates_of(im, rnn, w_bias, own, rnn->gates - own), 0);
}

ValueId recurrent_reversed(Import *im, const Recurrent *rnn, ValueId x) {
  SymInt last = sym_sub(&im->g->syms, rnn->length, 1);
  if (rnn->length == 1)
    return x;
  ValueId step = ex_arange(im, rnn->length);
  return ex_index_select(im, x, 0, ex_sub(im, ex_size(im, last), step));
}

static ValueId project_direction(Import *im, const RnnPart *part, uint32_t d, uint32_t own) {
  const Recurrent *rnn = part->rnn;
  SymInt rows = sym_mul(&im->g->syms, rnn->length, rnn->batch);
  ValueId x = d || rnn->reverse ? recurrent_reversed(im, rnn, rnn->x) : rnn->x,
          w = recurrent_input(im, 1, d), bias = bias_of(im, rnn, d, own);
  x = EX_VIEW(im, x, rows, ex_dim(im, x, 2));
  if (rnn->quantized)
    return quantized_dynamic(im, x, w, recurrent_input(im, 8, d), recurrent_input(im, 9, d), bias);
  return ex_linear(im, x, w, bias);
}

ValueId recurrent_project(Import *im, const RnnPart *part, uint32_t own) {
  const Recurrent *rnn = part->rnn;
  ValueId items[2] = {0};
  for (uint32_t d = 0; d < part->count; d++) {
    ValueId rows = project_direction(im, part, part->first + d, own);
    items[d] = part->count > 1 ? EX_VIEW(im, rows, rnn->length, 1, rnn->batch, ex_dim(im, rows, 1))
                               : EX_VIEW(im, rows, rnn->length, rnn->batch, ex_dim(im, rows, 1));
  }
  return ex_cat(im, items, part->count, 1);
}

/* --- parts of a step --- */

ValueId recurrent_times(Import *im, ValueId base, ValueId h, ValueId w) {
  if (!h)
    return base;
  bool one = ex_rank(im, h) == 2;
  if (one && base)
    return build(&im->b, OP_ADDMM, A_VAL(base), A_VAL(h), A_VAL(w));
  ValueId product = ex_binary(im, one ? OP_MM : OP_BMM, h, w);
  return base ? ex_add(im, product, base) : product;
}

ValueId recurrent_gate(Import *im, const Recurrent *rnn, ValueId x, uint32_t first,
                       uint32_t count) {
  return ex_slice(im, x, ex_rank(im, x) - 1, first * rnn->hidden, (first + count) * rnn->hidden);
}

void recurrent_split(Import *im, const Recurrent *rnn, ValueId x, uint32_t count, ValueId *parts) {
  bool fixed = import_ok(im) && type_is_static(vt(im, x)) && !value_is_const(im->g, x);
  ValueId first = fixed ? build(&im->b, OP_SPLIT_COPY_TENSOR, A_VAL(x), A_INT(rnn->hidden),
                                A_INT(ex_rank(im, x) - 1))
                        : 0;
  for (uint32_t i = 0; i < count; i++)
    parts[i] = first ? first + i : recurrent_gate(im, rnn, x, i, 1);
}

static ValueId scaled(Import *im, ValueId x, double factor, double shift) {
  return ex_plus(im, ex_times(im, x, factor), shift);
}

ValueId recurrent_unclipped(Import *im, const RnnPart *part, uint32_t i, ValueId x) {
  const RnnActivation *f = &part->f[i];
  if (f->op != OP_NONE)
    return ex_unary(im, f->op, x);
  if (sv_eq_str(f->name, "Affine"))
    return scaled(im, x, f->alpha, f->beta);
  if (sv_eq_str(f->name, "ScaledTanh"))
    return ex_times(im, ex_unary(im, OP_TANH, ex_times(im, x, f->beta)), f->alpha);
  if (sv_eq_str(f->name, "HardSigmoid"))
    return ex_clamp(im, scaled(im, x, f->alpha, f->beta), 0, 1);
  if (sv_eq_str(f->name, "LeakyRelu"))
    return build(&im->b, OP_LEAKY_RELU, A_VAL(x), A_FLOAT(f->alpha));
  if (sv_eq_str(f->name, "Elu"))
    return build(&im->b, OP_ELU, A_VAL(x), A_FLOAT(f->alpha));
  if (sv_eq_str(f->name, "Softsign"))
    return ex_div(im, x, ex_plus(im, ex_unary(im, OP_ABS, x), 1));
  ValueId above = ex_with(im, OP_GE_TENSOR, x, f->alpha); /* ThresholdedRelu */
  return ex_where(im, above, x, ex_number(im, x, 0));
}

ValueId recurrent_activate(Import *im, const RnnPart *part, uint32_t i, ValueId x) {
  double clip = part->rnn->clip;
  return recurrent_unclipped(im, part, i, clip > 0 ? ex_clamp(im, x, -clip, clip) : x);
}

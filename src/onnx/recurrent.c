/* Shared parts of the recurrent operators; see recurrent.h. */
#include "onnx/recurrent.h"

#include <strings.h>

#include "onnx/quantized.h"

typedef struct ActivationRow {
  const char *name;
  bool alpha, beta; /* takes one */
  double alpha_default, beta_default;
} ActivationRow;

static const ActivationRow activation_rows[] = {
    {"Affine", true, true, 1, 0},
    {"Elu", true, false, 1, 0},
    {"HardSigmoid", true, true, (double)0.2f, 0.5},
    {"LeakyRelu", true, false, (double)0.01f, 0},
    {"Relu", false, false, 0, 0},
    {"ScaledTanh", true, true, 1, 1},
    {"Sigmoid", false, false, 0, 0},
    {"Softplus", false, false, 0, 0},
    {"Softsign", false, false, 0, 0},
    {"Tanh", false, false, 0, 0},
    {"ThresholdedRelu", true, false, 1, 0},
};

static const ActivationRow *activation_row(StrView name) {
  for (size_t i = 0; i < COUNT_OF(activation_rows); i++)
    if (strlen(activation_rows[i].name) == name.size &&
        strncasecmp(activation_rows[i].name, name.data, name.size) == 0)
      return &activation_rows[i];
  return NULL;
}

/* Names, and alphas and betas in the order of the functions that take one. */
static void read_activations(Import *im, const char *const *defaults, uint32_t count,
                             Recurrent *rnn) {
  StrView *names = NULL;
  const float *alphas = NULL, *betas = NULL;
  uint32_t given = 0, alpha_count = 0, beta_count = 0, alpha = 0, beta = 0;
  bool named = attr_strs(im, "activations", &names, &given);
  attr_floats(im, "activation_alpha", &alphas, &alpha_count);
  attr_floats(im, "activation_beta", &betas, &beta_count);
  uint32_t wanted = count * rnn->directions;
  if (named && given < wanted) {
    import_fail(im, DIAG_ATTR_VALUE, "%u activations are given, %u are needed", given, wanted);
    return;
  }
  for (uint32_t i = 0; i < wanted && import_ok(im); i++) {
    RnnActivation *f = &rnn->activations[i];
    const ActivationRow *row = activation_row(named ? names[i] : sv_from(defaults[i % count]));
    if (!row) {
      import_fail(im, DIAG_ATTR_VALUE, "'" SV_FMT "' is no activation of recurrent operators",
                  SV_ARG(names[i]));
      return;
    }
    f->name = sv_from(row->name);
    f->alpha = row->alpha && alpha < alpha_count ? (double)alphas[alpha++] : row->alpha_default;
    f->beta = row->beta && beta < beta_count ? (double)betas[beta++] : row->beta_default;
  }
}

static bool read_shapes(Import *im, uint32_t gates, Recurrent *rnn) {
  ValueId w = in_required(im, 1), r = in_required(im, 2);
  rnn->x = in_required(im, 0);
  if (!import_ok(im))
    return false;
  if (value_rank(im->g, rnn->x) != 3 || value_rank(im->g, w) != 3 || value_rank(im->g, r) != 3) {
    import_fail(im, DIAG_INPUT_RANK, "X, W and R have ranks %u, %u and %u, not 3",
                value_rank(im->g, rnn->x), value_rank(im->g, w), value_rank(im->g, r));
    return false;
  }
  rnn->gates = gates;
  rnn->dtype = value_dtype(im->g, rnn->x);
  rnn->length = ex_dim(im, rnn->x, rnn->layout ? 1 : 0);
  rnn->steps = sym_is_const(rnn->length) ? rnn->length : sym_upper(&im->g->syms, rnn->length);
  rnn->batch = ex_dim(im, rnn->x, rnn->layout ? 0 : 1);
  uint32_t wide = rnn->quantized ? 2 : 1; /* the dim of the gates */
  rnn->hidden = ex_fixed(im, r, 3 - wide);
  int64_t declared = attr_int(im, "hidden_size", rnn->hidden);
  if (import_ok(im) && declared != rnn->hidden)
    import_fail(im, DIAG_ATTR_VALUE, "hidden_size is %lld, but R has %lld", (long long)declared,
                (long long)rnn->hidden);
  if (import_ok(im) &&
      (value_dim(im->g, r, 0) != rnn->directions || value_dim(im->g, w, 0) != rnn->directions ||
       value_dim(im->g, r, wide) != gates * rnn->hidden ||
       value_dim(im->g, w, wide) != gates * rnn->hidden))
    import_fail(im, DIAG_SHAPE_MISMATCH, "W or R do not fit %u directions of %u gates of size %lld",
                rnn->directions, gates, (long long)rnn->hidden);
  if (import_ok(im) && rnn->steps < 1)
    import_fail(im, DIAG_SHAPE_MISMATCH, "the sequence has no steps");
  if (import_ok(im) && rnn->steps > RECURRENT_STEPS_MAX / rnn->directions)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "%lld steps would be unrolled, at most %d are supported",
                (long long)(rnn->steps * rnn->directions), RECURRENT_STEPS_MAX);
  return import_ok(im);
}

static bool all_full(Import *im, ValueId lengths, int64_t steps) {
  const SymInt *values;
  uint32_t count;
  if (!value_ints(im, lengths, &values, &count))
    return false;
  for (uint32_t i = 0; i < count; i++)
    if (values[i] != steps)
      return false;
  return true;
}

/* Element t of dim `axis` for every t, that dim dropped; one kernel when the shape is fixed (the
 * split kernel does not resize its results). */
static ValueId *each_step(Import *im, const Recurrent *rnn, ValueId x, uint32_t axis) {
  ValueId *items = ARENA_ARRAY(&im->scratch, ValueId, (size_t)rnn->steps + 1);
  uint32_t rank = ex_rank(im, x);
  SymInt dims[MAX_RANK];
  for (uint32_t i = 0, k = 0; i < rank; i++)
    if (i != axis)
      dims[k++] = value_dim(im->g, x, i);
  ValueId first = 0;
  if (import_ok(im) && rnn->steps > 1 && type_is_static(vt(im, x)) && !value_is_const(im->g, x))
    first = build(&im->b, OP_SPLIT_COPY_TENSOR, A_VAL(x), A_INT(1), A_INT(axis));
  for (int64_t t = 0; t < rnn->steps && import_ok(im); t++) {
    ValueId item = first ? first + (ValueId)t : ex_slice(im, x, axis, t, t + 1);
    items[t] = ex_view(im, item, dims, rank - 1);
  }
  return items;
}

/* A sequence whose length varies runs at its upper bound: filled up with zeros, which the masks
 * keep out of the states. */
static void fill_up(Import *im, Recurrent *rnn) {
  SymInt missing = sym_sub(&im->g->syms, rnn->steps, rnn->length);
  SymInt pads[] = {0, 0, 0, rnn->layout ? missing : 0, 0, missing}; /* from the last dim on */
  if (import_ok(im) && missing != 0)
    rnn->x = build(&im->b, OP_CONSTANT_PAD_ND, A_VAL(rnn->x), A_INTS(pads, rnn->layout ? 4 : 6),
                   A_FLOAT(0));
}

static void read_lengths(Import *im, Recurrent *rnn) {
  ValueId lengths = in(im, 4);
  bool varies = !sym_is_const(rnn->length);
  if (!import_ok(im) || (!varies && (!lengths || all_full(im, lengths, rnn->steps))))
    return;
  if (lengths && rnn->quantized)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE,
                "sequences end early, and what is quantized behind their ends is not defined");
  ValueId row = lengths ? EX_VIEW(im, ex_cast(im, lengths, DTYPE_I64), 1, rnn->batch, 1)
                        : build_syms(im, &rnn->length, 1, true);
  ValueId step = EX_VIEW(im, ex_arange(im, rnn->steps), rnn->steps, 1, 1);
  rnn->active = each_step(im, rnn, ex_binary(im, OP_LT_TENSOR, step, row), 0);
}

bool recurrent_read(Import *im, uint32_t gates, const char *const *defaults, uint32_t count,
                    Recurrent *rnn) {
  *rnn = (Recurrent){
      .layout = attr_int(im, "layout", 0) != 0, .directions = 1, .quantized = in_count(im) > 8};
  StrView direction = attr_str(im, "direction", "forward");
  if (sv_eq_str(direction, "bidirectional"))
    rnn->directions = 2;
  else if (sv_eq_str(direction, "reverse"))
    rnn->reverse = true;
  else if (!sv_eq_str(direction, "forward"))
    import_fail(im, DIAG_ATTR_VALUE,
                "direction is '" SV_FMT "', not forward, reverse or bidirectional",
                SV_ARG(direction));
  rnn->clip = attr_float(im, "clip", 0);
  read_activations(im, defaults, count, rnn);
  if (!read_shapes(im, gates, rnn))
    return false;
  read_lengths(im, rnn);
  fill_up(im, rnn);
  return import_ok(im);
}

RnnDirection recurrent_direction(Import *im, const Recurrent *rnn, uint32_t d, uint32_t count) {
  ValueId biases = in(im, 3);
  RnnDirection dir = {.index = d,
                      .backward = rnn->reverse || d == 1,
                      .w = ex_select(im, in(im, 1), 0, d),
                      .r = ex_select(im, in(im, 2), 0, d),
                      .f = rnn->activations + (size_t)d * count};
  if (biases && import_ok(im)) {
    ValueId both = ex_select(im, biases, 0, d);
    int64_t size = rnn->gates * rnn->hidden;
    dir.w_bias = ex_slice(im, both, 0, 0, size);
    dir.r_bias = ex_slice(im, both, 0, size, 2 * size);
  }
  ValueId *quantized[] = {&dir.w_scale, &dir.w_zero, &dir.r_scale, &dir.r_zero};
  for (uint32_t i = 0; i < COUNT_OF(quantized) && rnn->quantized; i++)
    *quantized[i] = in(im, 8 + i) ? ex_select(im, in(im, 8 + i), 0, d) : 0;
  return dir;
}

ValueId recurrent_initial(Import *im, const Recurrent *rnn, uint32_t i, uint32_t d) {
  ValueId state = in(im, i);
  return state ? ex_select(im, state, rnn->layout ? 1 : 0, d) : 0;
}

ValueId recurrent_zeros(Import *im, const Recurrent *rnn) {
  return ex_full(im, rnn->dtype, (SymInt[]){rnn->batch, rnn->hidden}, 2, 0);
}

static ValueId all_rows(Import *im, const Recurrent *rnn) {
  SymInt rows = sym_mul(&im->g->syms, rnn->steps, rnn->batch);
  return EX_VIEW(im, rnn->x, rows, ex_dim(im, rnn->x, 2));
}

/* The rows of y, one for each row of all_rows, by step. Those of a step lie together, unless the
 * batch comes first: then they are cut out as they are. */
static ValueId *rows_by_step(Import *im, const Recurrent *rnn, ValueId y) {
  bool together = !rnn->layout || rnn->batch == 1;
  if (!together || !sym_is_const(rnn->batch) || !import_ok(im)) {
    SymInt outer = rnn->layout ? rnn->batch : rnn->steps,
           inner = rnn->layout ? rnn->steps : rnn->batch;
    return each_step(im, rnn, EX_VIEW(im, y, outer, inner, ex_dim(im, y, 1)), rnn->layout ? 1 : 0);
  }
  ValueId *items = ARENA_ARRAY(&im->scratch, ValueId, (size_t)rnn->steps + 1), first = 0;
  if (rnn->steps > 1 && !value_is_const(im->g, y))
    first = build(&im->b, OP_SPLIT_COPY_TENSOR, A_VAL(y), A_INT(rnn->batch), A_INT(0));
  for (int64_t t = 0; t < rnn->steps && import_ok(im); t++)
    items[t] =
        first ? first + (ValueId)t : ex_slice(im, y, 0, t * rnn->batch, (t + 1) * rnn->batch);
  return items;
}

ValueId *recurrent_project(Import *im, const Recurrent *rnn, ValueId w, ValueId bias) {
  ValueId x = all_rows(im, rnn);
  return rows_by_step(
      im, rnn, import_ok(im) ? build(&im->b, OP_LINEAR, A_VAL(x), A_VAL(w), A_OPT(bias)) : 0);
}

ValueId *recurrent_project_quantized(Import *im, const Recurrent *rnn, const RnnDirection *dir,
                                     ValueId bias) {
  return rows_by_step(
      im, rnn, quantized_dynamic(im, all_rows(im, rnn), dir->w, dir->w_scale, dir->w_zero, bias));
}

ValueId recurrent_gates(Import *im, const Recurrent *rnn, ValueId weights, uint32_t first,
                        uint32_t count) {
  return weights ? ex_slice(im, weights, 0, first * rnn->hidden, (first + count) * rnn->hidden) : 0;
}

ValueId recurrent_add(Import *im, ValueId base, ValueId h, ValueId r_t) {
  if (!h)
    return base;
  return import_ok(im) ? build(&im->b, OP_ADDMM, A_VAL(base), A_VAL(h), A_VAL(r_t)) : 0;
}

void recurrent_split(Import *im, const Recurrent *rnn, ValueId x, uint32_t count, ValueId *parts) {
  bool fixed = import_ok(im) && type_is_static(vt(im, x)) && !value_is_const(im->g, x);
  ValueId first =
      fixed ? build(&im->b, OP_SPLIT_COPY_TENSOR, A_VAL(x), A_INT(rnn->hidden), A_INT(1)) : 0;
  for (uint32_t i = 0; i < count; i++)
    parts[i] = first ? first + i : ex_slice(im, x, 1, i * rnn->hidden, (i + 1) * rnn->hidden);
}

static ValueId scaled(Import *im, ValueId x, double factor, double shift) {
  return ex_with(im, OP_ADD_TENSOR, ex_with(im, OP_MUL_TENSOR, x, factor), shift);
}

ValueId recurrent_activate(Import *im, const Recurrent *rnn, const RnnActivation *f, ValueId x) {
  if (rnn->clip > 0)
    x = ex_clamp(im, x, -rnn->clip, rnn->clip);
  if (!import_ok(im))
    return 0;
  if (sv_eq_str(f->name, "Tanh"))
    return ex_unary(im, OP_TANH, x);
  if (sv_eq_str(f->name, "Sigmoid"))
    return ex_unary(im, OP_SIGMOID, x);
  if (sv_eq_str(f->name, "Relu"))
    return ex_unary(im, OP_RELU, x);
  if (sv_eq_str(f->name, "Softplus"))
    return ex_unary(im, OP_SOFTPLUS, x);
  if (sv_eq_str(f->name, "Affine"))
    return scaled(im, x, f->alpha, f->beta);
  if (sv_eq_str(f->name, "ScaledTanh"))
    return ex_with(im, OP_MUL_TENSOR, ex_unary(im, OP_TANH, ex_with(im, OP_MUL_TENSOR, x, f->beta)),
                   f->alpha);
  if (sv_eq_str(f->name, "HardSigmoid"))
    return ex_clamp(im, scaled(im, x, f->alpha, f->beta), 0, 1);
  if (sv_eq_str(f->name, "LeakyRelu"))
    return build(&im->b, OP_LEAKY_RELU, A_VAL(x), A_FLOAT(f->alpha));
  if (sv_eq_str(f->name, "Elu"))
    return build(&im->b, OP_ELU, A_VAL(x), A_FLOAT(f->alpha));
  if (sv_eq_str(f->name, "Softsign"))
    return ex_div(im, x, ex_with(im, OP_ADD_TENSOR, ex_unary(im, OP_ABS, x), 1));
  ValueId above = ex_with(im, OP_GE_TENSOR, x, f->alpha); /* ThresholdedRelu */
  return ex_where(im, above, x, ex_number(im, x, 0));
}

ValueId recurrent_keep(Import *im, const Recurrent *rnn, int64_t step, ValueId fresh, ValueId old) {
  if (!rnn->active)
    return fresh;
  return ex_where(im, rnn->active[step], fresh, old ? old : ex_number(im, fresh, 0));
}

void recurrent_out_steps(Import *im, const Recurrent *rnn, ValueId *pieces) {
  int64_t count = rnn->steps * rnn->directions;
  if (!out_wanted(im, 0) || !import_ok(im))
    return;
  for (int64_t i = 0; i < count && rnn->layout; i++)
    pieces[i] = EX_VIEW(im, pieces[i], rnn->batch, 1, rnn->hidden);
  ValueId all = ex_cat(im, pieces, (uint32_t)count, rnn->layout ? 1 : 0);
  if (rnn->layout)
    all = EX_VIEW(im, all, rnn->batch, rnn->steps, rnn->directions, rnn->hidden);
  else
    all = EX_VIEW(im, all, rnn->steps, rnn->directions, rnn->batch, rnn->hidden);
  out(im, 0, ex_slice(im, all, rnn->layout ? 1 : 0, 0, rnn->length));
}

void recurrent_out_state(Import *im, const Recurrent *rnn, uint32_t i, const ValueId *states) {
  ValueId items[2] = {0};
  if (!out_wanted(im, i))
    return;
  SymInt first = rnn->layout ? rnn->batch : 1, second = rnn->layout ? 1 : rnn->batch;
  for (uint32_t d = 0; d < rnn->directions; d++)
    items[d] = EX_VIEW(im, states[d], first, second, rnn->hidden);
  out(im, i, ex_cat(im, items, rnn->directions, rnn->layout ? 1 : 0));
}

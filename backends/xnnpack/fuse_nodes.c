/* Which nodes XNNPACK computes on integers, and what they want. Limits: measured on the XNNPACK of
 * ExecuTorch 1.4.1. */
#include <math.h>

#include "backends/xnnpack/fuse.h"
#include "ir/transform.h"

static bool is_operand(const XnnNode *n, uint32_t i) {
  char field = xnn_fields(n)[i];
  return (field == 'i' || field == 'b') && n->fields[i] != XNN_NONE;
}

static bool is_join(const XnnNode *n) {
  return n->kind == XNN_CONCATENATE2 || n->kind == XNN_CONCATENATE3 ||
         n->kind == XNN_CONCATENATE4 || n->kind == XNN_CONCATENATE5;
}

/* The node that takes codes, and gives out as codes for the floats that it gave. */
bool xf_give(Fuse *f, const XnnNode *n, XnnId out) {
  XnnNode copy = *n;
  copy.fields[strcspn(xnn_fields(n), "o")] = out;
  f->codes[xnn_result(n)] = out;
  xf_emit(f, &copy);
  if (n->kind == XNN_STATIC_TRANSPOSE)
    f->l->transposes[f->transpose[xnn_result(n)] - 1].out = out;
  return true;
}

/* --- moves --- */

bool xf_moves(const XnnNode *n) {
  switch (n->kind) {
  case XNN_CLAMP:
  case XNN_COPY:
  case XNN_MAX_POOLING2D:
  case XNN_STATIC_CONSTANT_PAD:
  case XNN_STATIC_RESHAPE:
  case XNN_STATIC_SLICE:
  case XNN_STATIC_TRANSPOSE:
    return true;
  default:
    return is_join(n);
  }
}

/* As a conversion computes it. */
static float number_of_code(const Fuse *f, XnnId codes, int32_t code) {
  const XnnValue *value = &f->x->values[codes];
  return (float)(code - value->zero_point) * value->scale;
}

/* The limits hold for every code anyway. */
static bool limits_nothing(const Fuse *f, const XnnNode *n, XnnId codes) {
  return n->limit_low <= number_of_code(f, codes, INT8_MIN) &&
         n->limit_high >= number_of_code(f, codes, INT8_MAX);
}

static bool may_limit(const XnnNode *n) {
  return n->kind == XNN_CONV2D || n->kind == XNN_DEPTHWISE_CONV2D ||
         n->kind == XNN_CONV_TRANSPOSE2D || n->kind == XNN_FULLY_CONNECTED || n->kind == XNN_ADD ||
         n->kind == XNN_SUBTRACT || n->kind == XNN_MULTIPLY;
}

/* The number that has the code to which the limit is quantized: XNNPACK rounds it together with the
 * zero point, which moves ties. */
static float on_grid(const Fuse *f, XnnId codes, float limit) {
  float scale = f->x->values[codes].scale, step = rintf(limit / scale);
  return isfinite(step) && isfinite(step * scale) ? step * scale : limit;
}

/* Limits become a part of the node before them, if nothing else uses its result. */
static bool limit(Fuse *f, const XnnNode *n, XnnId codes) {
  XnnNode *last = f->x->node_count ? &f->x->nodes[f->x->node_count - 1] : NULL;
  XnnId in = n->fields[0], out = xnn_result(n);
  if (limits_nothing(f, n, codes)) {
    f->codes[out] = codes;
    return true;
  }
  bool alone = last && may_limit(last) && !last->limited && xnn_result(last) == codes &&
               f->uses[in] == 1 && !f->has_floats[in];
  if (!alone)
    return false;
  last->limited = true;
  last->limit_low = on_grid(f, codes, n->limit_low);
  last->limit_high = on_grid(f, codes, n->limit_high);
  f->codes[out] = codes;
  return true;
}

/* All operands of a join as codes of one kind: their own, or the one that is wanted. */
static bool join(Fuse *f, const XnnNode *n, XnnNode *made) {
  XnnId as = XNN_NONE, wanted = f->wanted[xnn_result(n)];
  bool same = true;
  for (uint32_t i = 0; xnn_fields(n)[i]; i++) {
    if (!is_operand(n, i))
      continue;
    XnnId codes = xf_operand(f, n->fields[i]);
    if (codes == XNN_NONE)
      return false;
    as = as == XNN_NONE ? codes : as;
    same = same && xf_same_codes(f, as, codes);
    made->fields[i] = codes;
  }
  if (same)
    return true;
  if (wanted >= WANT_FLOATS)
    return false;
  for (uint32_t i = 0; xnn_fields(n)[i]; i++) {
    if (!is_operand(n, i) || xf_same_codes(f, made->fields[i], wanted))
      continue;
    XnnId moved = xf_codes_like(f, made->fields[i], wanted);
    xf_requantize(f, made->fields[i], moved);
    made->fields[i] = moved;
  }
  return true;
}

/* Whether the limits are numbers that codes stand for, or beyond all of these: the limited numbers
 * have codes, too. ReLU is such a limit. */
static bool limits_to_codes(const Fuse *f, const XnnNode *n, XnnId codes) {
  float least = number_of_code(f, codes, INT8_MIN), most = number_of_code(f, codes, INT8_MAX);
  return n->limit_low < most && n->limit_high > least &&
         (n->limit_low <= least || on_grid(f, codes, n->limit_low) == n->limit_low) &&
         (n->limit_high >= most || on_grid(f, codes, n->limit_high) == n->limit_high);
}

/* Limits on codes are rounded to a code: of the quantization that the result is wanted in that is
 * what quantizing does with them, of another one it is not. Where floats are wanted, as by a
 * product whose operand was not quantized again, the limits have to be exact. */
static bool clamp(Fuse *f, const XnnNode *n, XnnNode *made) {
  XnnId wanted = f->wanted[xnn_result(n)], codes = made->fields[0];
  if (limits_nothing(f, n, codes))
    return limit(f, n, codes);
  if (wanted >= WANT_FLOATS && limits_to_codes(f, n, codes))
    wanted = codes;
  if (wanted >= WANT_FLOATS ||
      !(on_grid(f, wanted, n->limit_low) < on_grid(f, wanted, n->limit_high)))
    return false;
  made->limit_low = on_grid(f, wanted, n->limit_low);
  made->limit_high = on_grid(f, wanted, n->limit_high);
  if (!xf_same_codes(f, codes, wanted)) {
    made->fields[0] = xf_codes_like(f, codes, wanted);
    xf_requantize(f, codes, made->fields[0]);
  } else if (limit(f, n, codes)) {
    return true;
  }
  return xf_give(f, made, xf_codes_like(f, xnn_result(n), wanted));
}

static bool same_dims(const XnnValue *a, const XnnValue *b) {
  return a->rank == b->rank && a->dynamic == 0 && b->dynamic == 0 &&
         memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

/* Reshapes of reshapes, which had nodes between them before those were fused, start from what the
 * first one takes; one back to that is nothing. */
static bool reshape(Fuse *f, const XnnNode *n, XnnNode *made) {
  uint32_t at = (uint32_t)strcspn(xnn_fields(n), "i");
  XnnId out = xnn_result(n), before = n->fields[at];
  if (f->uses[out] < f->uses[before]) /* what limits one limits the other */
    f->uses[out] = f->uses[before];
  XnnId in = made->fields[at];
  if (f->reshaped_from[in] != XNN_NONE)
    made->fields[at] = in = f->reshaped_from[in];
  if (same_dims(&f->x->values[in], &f->x->values[out])) {
    f->codes[out] = in;
    return true;
  }
  XnnId codes = xf_codes_like(f, out, in);
  if (f->x->values[out].origin) /* no dim varies */
    f->reshaped_from[codes] = in;
  return xf_give(f, made, codes);
}

bool xf_move(Fuse *f, const XnnNode *n) {
  if (!xf_moves(n))
    return false;
  XnnNode made = *n;
  if (!join(f, n, &made))
    return false;
  XnnId first = xnn_operand(&made);
  if (n->kind == XNN_CLAMP)
    return clamp(f, n, &made);
  if (n->kind == XNN_STATIC_RESHAPE)
    return reshape(f, n, &made);
  return xf_give(f, &made, xf_codes_like(f, xnn_result(n), first));
}

/* --- others --- */

static double scale_of(const Fuse *f, XnnId v) { return (double)f->x->values[v].scale; }

/* The ratios of scales for which XNNPACK's kernels of sums and products of codes are made. */
static bool ratio_fits(const Fuse *f, const XnnNode *n, const XnnNode *made, XnnId out) {
  bool sum = n->kind == XNN_ADD || n->kind == XNN_SUBTRACT, product = n->kind == XNN_MULTIPLY;
  if (!sum && !product && n->kind != XNN_BATCH_MATRIX_MULTIPLY)
    return true; /* nodes whose first fields may be no operands */
  double a = scale_of(f, made->fields[0]), b = scale_of(f, made->fields[1]), y = scale_of(f, out);
  if (sum)
    return fmax(a, b) / y >= 0x1p-10 && fmax(a, b) / y < 0x1p8;
  return (!product || a * b / y >= 0x1p-16) && a * b / y < 0x1p8;
}

/* The codes that an operand may have: from *first on, one after the other. */
static int codes_of(const Fuse *f, XnnId codes, int *first) {
  enum { SOME = 32 }; /* with scales in powers of two, as many of these end in ties as of all */
  const XnnValue *value = &f->x->values[codes];
  const Constant *c = value->data ? value_constant(f->l->g, f->x->data[value->data - 1].v) : NULL;
  bool number = c && constant_repeats(c, 1);
  *first = number ? (int8_t)c->data[0] : 0;
  return number ? 1 : SOME;
}

static double number_of(const Fuse *f, XnnId codes, int code) {
  const XnnValue *value = &f->x->values[codes];
  return (code - value->zero_point) * (double)value->scale;
}

enum { FEW_TIES = 64 };

/* Whether sums lie in the middle between two codes for more than one of FEW_TIES: those of one
 * number and of a result in steps of 2/255, or with scales that are powers of two. XNNPACK rounds
 * these up, quantize half of them down. */
static bool ends_in_ties(const Fuse *f, const XnnNode *n, const XnnNode *made, XnnId out) {
  if (n->kind != XNN_ADD && n->kind != XNN_SUBTRACT)
    return false;
  XnnId x = made->fields[0], y = made->fields[1];
  double step = scale_of(f, out), sign = n->kind == XNN_ADD ? 1 : -1;
  int first_x, first_y, ties = 0;
  int count_x = codes_of(f, x, &first_x), count_y = codes_of(f, y, &first_y);
  for (int i = 0; i < count_x; i++)
    for (int j = 0; j < count_y; j++) {
      double sum = number_of(f, x, first_x + i) + sign * number_of(f, y, first_y + j);
      ties += fabs(sum / step - floor(sum / step) - 0.5) < 0x1p-10;
    }
  return ties * FEW_TIES > count_x * count_y;
}

/* Which operand of the node may be a constant of one number. */
static bool takes_number(const XnnNode *n, uint32_t i) {
  return n->kind == XNN_MULTIPLY || (n->kind == XNN_DIV && i == 1);
}

/* The codes of a value, or of a constant of one number (xf_number). */
static XnnId codes_or_number(Fuse *f, XnnId v) {
  XnnId codes = xf_operand(f, v);
  return codes == XNN_NONE ? xf_number(f, v) : codes;
}

/* XNNPACK sums codes in memory beside the values, as much as the first call wants: no later call
 * gets more, as it does for all other nodes (reshape_reduce_operator of its static-reduce.c). */
static bool outgrows_sums(const Fuse *f, const XnnNode *n) {
  return n->kind == XNN_GLOBAL_AVG_POOLING2D && f->x->values[xnn_result(n)].dynamic != 0;
}

/* Operands and result each with a quantization of their own. */
static bool compute_each(Fuse *f, const XnnNode *n) {
  XnnNode made = *n;
  XnnId out = xnn_result(n), wanted = f->wanted[out];
  for (uint32_t i = 0; xnn_fields(n)[i]; i++)
    if (is_operand(n, i) &&
        (made.fields[i] = takes_number(n, i) ? codes_or_number(f, n->fields[i])
                                             : xf_operand(f, n->fields[i])) == XNN_NONE)
      return false;
  if (n->kind == XNN_BATCH_MATRIX_MULTIPLY && f->x->values[made.fields[1]].zero_point != 0)
    return false;
  if (outgrows_sums(f, n))
    return false;
  return ratio_fits(f, n, &made, wanted) && !ends_in_ties(f, n, &made, wanted) &&
         xf_give(f, &made, xf_codes_like(f, out, wanted));
}

/* The result has the quantization of the operand, and is brought to the wanted one. */
static bool compute_alike(Fuse *f, const XnnNode *n) {
  uint32_t at = (uint32_t)strcspn(xnn_fields(n), "i");
  XnnNode made = *n;
  made.fields[at] = xf_operand(f, n->fields[at]);
  return made.fields[at] != XNN_NONE &&
         xf_give(f, &made, xf_codes_like(f, xnn_result(n), made.fields[at]));
}

/* Computed on codes element by element, each operand and the result with parameters of its own. Not
 * leaky ReLU, whose slopes XNNPACK rounds to multiples of 1/256, so that up to 16 % of the codes
 * are off by one: between conversions, of which XNNPACK makes a table, it is exact. */
static bool is_each(uint8_t kind) {
  static const bool kinds[] = {
      [XNN_ABS] = true,
      [XNN_ADD] = true,
      [XNN_CEILING] = true,
      [XNN_BATCH_MATRIX_MULTIPLY] = true,
      [XNN_COS] = true,
      [XNN_DIV] = true,
      [XNN_ELU] = true,
      [XNN_EXP] = true,
      [XNN_FLOOR] = true,
      [XNN_GELU] = true,
      [XNN_HARDSWISH] = true,
      [XNN_GLOBAL_AVG_POOLING2D] = true,
      [XNN_LOG] = true,
      [XNN_MULTIPLY] = true,
      [XNN_NEGATE] = true,
      [XNN_SIGMOID] = true,
      [XNN_RECIPROCAL_SQUARE_ROOT] = true,
      [XNN_SIN] = true,
      [XNN_SQUARE] = true,
      [XNN_SUBTRACT] = true,
      [XNN_SQUARE_ROOT] = true,
      [XNN_TANH] = true,
  };
  return kind < COUNT_OF(kinds) && kinds[kind];
}

/* Times ones, which repeat elements (lower_image.c): the codes stay what they are. */
static bool repeat(Fuse *f, const XnnNode *n) {
  XnnNode made = *n;
  if (n->kind != XNN_MULTIPLY || !f->x->values[n->fields[1]].data ||
      (made.fields[0] = xf_operand(f, n->fields[0])) == XNN_NONE ||
      (made.fields[1] = codes_or_number(f, n->fields[1])) == XNN_NONE)
    return false;
  int code;
  return codes_of(f, made.fields[1], &code) == 1 && number_of(f, made.fields[1], code) == 1 &&
         xf_give(f, &made, xf_codes_like(f, xnn_result(n), made.fields[0]));
}

bool xf_compute(Fuse *f, const XnnNode *n) {
  if (f->wanted[xnn_result(n)] >= WANT_FLOATS)
    return repeat(f, n);
  if (is_each(n->kind))
    return compute_each(f, n);
  switch (n->kind) {
  case XNN_CONV2D:
  case XNN_CONV_TRANSPOSE2D:
  case XNN_DEPTHWISE_CONV2D:
  case XNN_FULLY_CONNECTED:
    return xf_compute_product(f, n);
  case XNN_STATIC_RESIZE_BILINEAR2D:
    return compute_alike(f, n);
  default:
    return false;
  }
}

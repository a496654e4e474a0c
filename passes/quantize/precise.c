/* What a logarithm is taken of stays in floats, back to the function before it: a spectrum spans
 * more than 8 bits, and what is small in it counts as much as what is large.
 *
 * So does what something is divided by: what is small beside the range would be 0, and the quotient
 * infinite. Sums, products of elements and moves on the way to it are computed in floats, and
 * products of matrices where nothing but these are behind them. */
#include "passes/quantize/precise.h"

#include "passes/quantize/roles.h"

bool precise_makes_spectrum(const Precise *p, NodeId n) {
  bool any = false;
  for (uint32_t i = 0; i < node_cget(p->g, n)->result_count; i++)
    any = any || p->spectral[node_result(p->g, n, i)];
  return any && quant_spectrum(p->g, n) == SPECTRUM_STEP;
}

DivisorPart precise_divisor(const Precise *p, NodeId n) {
  DivisorPart part = DIVISOR_NONE;
  for (uint32_t i = 0; i < node_cget(p->g, n)->result_count; i++) {
    DivisorPart of = (DivisorPart)p->divisor[node_result(p->g, n, i)];
    part = of > part ? of : part;
  }
  return part;
}

static void mark(Precise *p, ValueId v, DivisorPart part) {
  if (p->divisor[v] < part)
    p->divisor[v] = (uint8_t)part;
}

/* What the operands of n are, if its results are part of a divisor. */
static DivisorPart part_before(const Precise *p, NodeId n, DivisorPart part) {
  switch (quant_role(p->g, n)) {
  case ROLE_ARITHMETIC:
  case ROLE_CLAMP:
  case ROLE_JOIN:
  case ROLE_MOVE:
    return part;
  default:
    break;
  }
  switch (node_cget(p->g, n)->op) {
  case OP_ABS:
  case OP_MEAN_DIM:
  case OP_SQRT:
  case OP_SUM_DIM_INTLIST:
    return part ? DIVISOR_WITHIN : DIVISOR_NONE;
  default:
    return DIVISOR_NONE;
  }
}

static void mark_divisors(Precise *p, NodeId n) {
  OpId op = node_cget(p->g, n)->op;
  if (op == OP_DIV_TENSOR)
    mark(p, node_value(p->g, n, 1), DIVISOR_WHOLE);
  else if (op == OP_RECIPROCAL || op == OP_RSQRT)
    mark(p, node_value(p->g, n, 0), DIVISOR_WHOLE);
  DivisorPart part = part_before(p, n, precise_divisor(p, n));
  if (part == DIVISOR_NONE)
    return;
  FOR_OPERANDS(p->g, n, v, {
    if (v && (part == DIVISOR_WHOLE || value_only_user(p->g, v)))
      mark(p, v, part);
  })
}

Precise find_precise(const Graph *g, Arena *arena) {
  Precise p = {.g = g,
               .spectral = ARENA_ARRAY(arena, bool, g->value_count),
               .divisor = ARENA_ARRAY(arena, uint8_t, g->value_count)};
  for (NodeId n = g->last; n; n = node_cget(g, n)->prev) {
    if (quant_spectrum(g, n) == SPECTRUM_LOGARITHM || precise_makes_spectrum(&p, n))
      FOR_OPERANDS(g, n, v, p.spectral[v] = true;)
    mark_divisors(&p, n);
  }
  return p;
}

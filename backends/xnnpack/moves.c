/* See moves.h. */
#include "backends/xnnpack/moves.h"

#include "backends/xnnpack/lower.h"

Moves moves_none(const Graph *g, ValueId v) {
  Moves m = {.from = v, .rank = (uint8_t)value_rank(g, v)};
  for (uint32_t i = 0; i < m.rank; i++) {
    m.begin[i] = m.count;
    if (value_dim(g, v, i) != 1)
      m.factors[m.count++] = (MoveFactor){value_dim(g, v, i), (uint8_t)i, 0};
  }
  m.begin[m.rank] = m.count;
  return m;
}

void moves_permute(Moves *m, const uint32_t *perm) {
  Moves old = *m;
  m->permuted = true;
  m->count = 0;
  for (uint32_t i = 0; i < m->rank; i++) {
    m->begin[i] = m->count;
    for (uint32_t k = old.begin[perm[i]]; k < old.begin[perm[i] + 1]; k++)
      m->factors[m->count++] = old.factors[k];
  }
}

/* Makes two of factor i: `outer` of it, and what is left. */
static bool cut_factor(Moves *m, uint32_t i, int64_t outer) {
  if (m->count == MOVES_FACTORS)
    return false;
  MoveFactor whole = m->factors[i];
  for (uint32_t k = 0; k < m->count; k++)
    m->factors[k].part += m->factors[k].dim == whole.dim && m->factors[k].part > whole.part;
  memmove(m->factors + i + 1, m->factors + i, (m->count - i) * sizeof *m->factors);
  m->factors[i].size = outer;
  m->factors[i + 1].size = whole.size / outer;
  m->factors[i + 1].part = whole.part + 1;
  m->count++;
  return true;
}

/* Takes factors from `at` on until they make up the dim `wanted`. */
static bool take_dim(Moves *m, Graph *g, SymInt wanted, uint32_t *at) {
  for (SymInt product = 1; product != wanted;) {
    if (*at == m->count)
      return false;
    SymInt size = m->factors[*at].size;
    if (sym_is_const(wanted)) {
      if (!sym_is_const(size) || product < 1 || wanted % product != 0)
        return false;
      int64_t rest = wanted / product;
      if (size > rest && (rest < 2 || size % rest != 0 || !cut_factor(m, *at, rest)))
        return false;
    }
    product = sym_mul(&g->syms, product, m->factors[*at].size);
    ++*at;
  }
  return true;
}

bool moves_view(Moves *m, Graph *g, ValueId y) {
  uint32_t at = 0, rank = value_rank(g, y);
  if (rank > XNN_MAX_RANK)
    return false;
  for (uint32_t i = 0; i < rank; i++) {
    m->begin[i] = (uint8_t)at;
    if (!take_dim(m, g, value_dim(g, y, i), &at))
      return false;
  }
  m->rank = (uint8_t)rank;
  m->begin[rank] = (uint8_t)at;
  return at == m->count;
}

/* Orders factors by their place in memory. */
static uint32_t place_of(const MoveFactor *f, uint32_t rank, bool nhwc) {
  uint32_t dim = nhwc ? xl_nhwc_axis(f->dim, rank) : f->dim;
  return dim * (MOVES_FACTORS + 1) + f->part;
}

MoveRoute moves_route(const Moves *m, Graph *g, bool from_nhwc, bool to_nhwc) {
  MoveRoute route = {.rank = 0};
  uint32_t rank = value_rank(g, m->from), wanted[MOVES_FACTORS], count = 0;
  for (uint32_t i = 0; i < m->rank; i++) {
    uint32_t dim = !to_nhwc || i == 0 ? i : i + 1 == m->rank ? 1 : i + 1;
    for (uint32_t k = m->begin[dim]; k < m->begin[dim + 1]; k++)
      wanted[count++] = k;
  }
  /* position[i]: where memory has wanted[i]. */
  uint32_t position[MOVES_FACTORS], run[MOVES_FACTORS], runs = 0;
  for (uint32_t i = 0; i < count; i++) {
    position[i] = 0;
    for (uint32_t k = 0; k < count; k++)
      position[i] += place_of(&m->factors[k], rank, from_nhwc) <
                     place_of(&m->factors[wanted[i]], rank, from_nhwc);
  }
  /* Runs that memory has in a row are one dim. */
  SymInt sizes[MOVES_FACTORS];
  for (uint32_t i = 0; i < count; i++) {
    SymInt size = m->factors[wanted[i]].size;
    if (i && position[i] == position[i - 1] + 1) {
      sizes[runs - 1] = sym_mul(&g->syms, sizes[runs - 1], size);
      continue;
    }
    run[runs] = position[i];
    sizes[runs++] = size;
  }
  route.rank = runs;
  for (uint32_t i = 0; i < runs; i++) {
    for (uint32_t k = 0; k < runs; k++)
      route.perm[i] += run[k] < run[i];
    route.dims[route.perm[i]] = sizes[i];
  }
  return route;
}

/* --- costs --- */

uint64_t moves_elements(const Graph *g, ValueId v) {
  const uint64_t most = (uint64_t)1 << 40;
  uint64_t count = 1;
  for (uint32_t i = 0; i < value_rank(g, v); i++) {
    int64_t upper = sym_upper(&g->syms, value_dim(g, v, i));
    if (upper > 0)
      count = count > most / (uint64_t)upper ? most : count * (uint64_t)upper;
  }
  return count;
}

/* Measured on x86: a tenth of a nanosecond for an element, and what is added for narrow tiles, of 2
 * to 16 elements, falls with their width. A transpose costs a little by itself. */
enum { TURN = 640, WIDE = 10, NARROW = 100, SMALL_BLOCK = 240 };

uint64_t transpose_cost(uint64_t elements, uint64_t narrow) {
  return TURN + elements * (WIDE + NARROW / (narrow ? narrow : 1));
}

static uint64_t route_cost(const MoveRoute *route, Graph *g, uint64_t elements) {
  if (route->rank <= 1)
    return 0;
  if (route->rank > XNN_MAX_RANK)
    return UINT64_MAX / 4;
  uint32_t last = route->rank - 1;
  int64_t in = sym_upper(&g->syms, route->dims[last]),
          out = sym_upper(&g->syms, route->dims[route->perm[last]]), narrow = in < out ? in : out;
  if (narrow < 1)
    narrow = 1;
  if (route->perm[last] == last)
    return TURN + elements * (WIDE + SMALL_BLOCK / (uint64_t)narrow);
  return transpose_cost(elements, (uint64_t)narrow);
}

static uint64_t direct_cost(const Moves *m, Graph *g, bool from_nhwc, bool to_nhwc) {
  MoveRoute route = moves_route(m, g, from_nhwc, to_nhwc);
  return route_cost(&route, g, moves_elements(g, m->from));
}

/* From NHWC to plain, the steps there, and back. */
static uint64_t plain_cost(const Moves *m, Graph *g, bool from_nhwc, bool to_nhwc) {
  uint64_t cost = direct_cost(m, g, false, false);
  Moves before = moves_none(g, m->from);
  if (from_nhwc)
    cost += direct_cost(&before, g, true, false);
  if (to_nhwc)
    cost += TURN + moves_elements(g, m->from) * WIDE;
  return cost;
}

bool moves_through_plain(const Moves *m, Graph *g, bool from_nhwc, bool to_nhwc) {
  return (from_nhwc || to_nhwc) && m->permuted &&
         plain_cost(m, g, from_nhwc, to_nhwc) < direct_cost(m, g, from_nhwc, to_nhwc);
}

uint64_t moves_cost(const Moves *m, Graph *g, bool from_nhwc, bool to_nhwc) {
  return moves_through_plain(m, g, from_nhwc, to_nhwc) ? plain_cost(m, g, from_nhwc, to_nhwc)
                                                       : direct_cost(m, g, from_nhwc, to_nhwc);
}

/* Values that stay in a permuted order of memory, as views and permutations leave them. Nodes that
 * compute each element or row for itself work in that order, and their results have it too; their
 * other operands are brought into it. The transpose is made only when a node needs the value in its
 * own order. Axes of size 1 in memory that no dim of the value is stored at
 * are carried along until then. */
#include "backends/xnnpack/lower.h"

uint32_t xl_dynamic_dim_count(const Graph *g, ValueId v) {
  uint32_t dynamic = 0;
  for (uint32_t i = 0; i < value_rank(g, v); i++)
    dynamic += !sym_is_const(value_dim(g, v, i));
  return dynamic;
}

bool xl_is_unmerged(const Permuted *t, uint32_t rank) {
  for (uint32_t i = 0; i < rank; i++)
    if (t->more[i])
      return true;
  return false;
}

uint32_t xl_whole_axis(XnnLowering *l, const Permuted *t, uint32_t i) {
  if (t->more[i] && xl_ok(l)) {
    l->blame = t->view;
    xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", i), R_INT("varying-dims", t->more[i] + 1),
              R_INT("supported", 1));
  }
  return t->axis[i];
}

void xl_move_entries(Permuted *t, uint32_t from, uint32_t to) {
  uint32_t count = XNN_MAX_RANK - (from > to ? from : to);
  memmove(t->axis + to, t->axis + from, count * sizeof *t->axis);
  memmove(t->more + to, t->more + from, count * sizeof *t->more);
  memmove(t->part + to, t->part + from, count * sizeof *t->part);
}

void xl_push_axes(const Permuted *t, uint32_t i, uint32_t *perm, uint32_t *count) {
  for (uint32_t k = 0; k <= t->more[i]; k++)
    perm[(*count)++] = t->axis[i] + k;
}

/* Whether dim i of the value is dim i + skip of id, and the axes before are extra. */
static bool is_lead(XnnLowering *l, const Permuted *t, uint32_t rank) {
  uint32_t skip = xl_rank(l, t->id) - rank;
  if (xl_is_unmerged(t, rank))
    return false;
  for (uint32_t i = 0; i < rank; i++)
    if (t->axis[i] != i + skip)
      return false;
  return true;
}

static bool is_straight(XnnLowering *l, const Permuted *t, uint32_t rank) {
  return xl_rank(l, t->id) == rank && is_lead(l, t, rank);
}

bool xl_is_extra_axis(const Permuted *t, uint32_t rank, uint32_t axis) {
  for (uint32_t i = 0; i < rank; i++)
    if (axis >= t->axis[i] && axis <= t->axis[i] + t->more[i])
      return false;
  return true;
}

void xl_add_axis(XnnLowering *l, Permuted *t, uint32_t rank) {
  uint32_t ones[XNN_MAX_RANK] = {1, 1, 1, 1, 1, 1}, dims[XNN_MAX_RANK] = {1};
  if (xl_rank(l, t->id) == XNN_MAX_RANK)
    xl_refuse(l, XNN_RULE_RANK_LIMIT, R_INT("rank", XNN_MAX_RANK + 1));
  if (!xl_ok(l))
    return;
  XnnValue from = l->x.values[t->id];
  memcpy(dims + 1, from.dims, from.rank * sizeof *dims);
  XnnId wide = xl_temp(l, from.rank + 1u, dims);
  xl_binary(l, XNN_MULTIPLY, t->id, xl_ones(l, from.rank + 1u, ones), wide);
  t->id = wide;
  for (uint32_t i = 0; i < rank; i++)
    t->axis[i]++;
}

void xl_permute_axes(XnnLowering *l, Permuted *t, const uint32_t *perm, uint32_t rank) {
  uint32_t dims[XNN_MAX_RANK];
  bool same = true;
  for (uint32_t i = 0; i < rank && xl_ok(l); i++) {
    dims[i] = l->x.values[t->id].dims[perm[i]];
    same &= perm[i] == i;
  }
  if (same || !xl_ok(l))
    return;
  XnnId moved = xl_temp(l, rank, dims);
  xl_transpose(l, t->id, perm, rank, moved);
  t->id = moved;
}

/* Without the last two dims of 1 before the last dim. */
static void drop_axes(XnnLowering *l, Permuted *t) {
  if (!xl_ok(l))
    return;
  XnnValue from = l->x.values[t->id];
  from.dims[from.rank - 3] = from.dims[from.rank - 1];
  XnnId out = xl_temp(l, from.rank - 2u, from.dims);
  if (!xl_ok(l))
    return;
  l->x.values[out].dynamic = UINT8_MAX; /* some are: values of fixed size are not kept permuted */
  XNN_ADD_NODE(&l->x, XNN_GLOBAL_AVG_POOLING2D, t->id, out, 0);
  t->id = out;
}

XnnId xl_straight(XnnLowering *l, Permuted t, uint32_t rank) {
  uint32_t perm[XNN_MAX_RANK] = {0}, count = 0;
  for (uint32_t i = 0; i < rank; i++)
    (void)xl_whole_axis(l, &t, i);
  if ((xl_rank(l, t.id) - rank) % 2)
    xl_add_axis(l, &t, rank);
  uint32_t stored = xl_rank(l, t.id);
  for (; count + 1 < rank; count++)
    perm[count] = t.axis[count];
  for (uint32_t a = 0; a < stored; a++)
    if (xl_is_extra_axis(&t, rank, a))
      perm[count++] = a;
  if (rank)
    perm[count] = t.axis[rank - 1];
  xl_permute_axes(l, &t, perm, stored);
  for (; stored > rank; stored -= 2)
    drop_axes(l, &t);
  return t.id;
}

XnnId xl_result_permuted(XnnLowering *l, ValueId y, Permuted t) {
  if (!xl_ok(l))
    return XNN_NONE;
  if (is_straight(l, &t, value_rank(l->g, y)))
    return xl_result(l, y);
  XnnValue like = l->x.values[t.id];
  for (uint32_t i = 0; i < value_rank(l->g, y); i++) {
    bool varies = !sym_is_const(value_dim(l->g, y, i));
    if (!t.more[i])
      like.dims[t.axis[i]] = xl_dim(l, y, i);
    for (uint32_t a = t.axis[i]; varies && a <= (uint32_t)t.axis[i] + t.more[i]; a++)
      like.dynamic |= (uint8_t)(1U << a);
  }
  t.id = xl_temp_of(l, &like);
  xl_set_permuted(l, y, t);
  return t.id;
}

/* --- operands --- */

Permuted xl_any_order(XnnLowering *l, ValueId x) {
  if (!xl_has_permuted(l, x) && xl_has_nhwc(l, x))
    return (Permuted){.id = xl_nhwc(l, x), .axis = {0, 3, 1, 2}};
  Permuted t = xl_permuted(l, x);
  if (xl_rank(l, t.id) == 4 && !xl_is_unmerged(&t, 4))
    return t;
  return (Permuted){.id = xl_plain(l, x), .axis = {0, 1, 2, 3}};
}

Permuted xl_rows(XnnLowering *l, ValueId x) {
  uint32_t rank = value_rank(l->g, x), perm[XNN_MAX_RANK], count = 0;
  Permuted t = xl_permuted(l, x);
  if (rank && t.more[rank - 1]) {
    (void)xl_plain(l, x);
    t = xl_permuted(l, x);
  }
  uint32_t stored = xl_rank(l, t.id);
  if (!xl_ok(l) || rank == 0 || t.axis[rank - 1] == stored - 1)
    return t;
  for (uint32_t a = 0; a < stored; a++)
    if (xl_is_extra_axis(&t, rank, a))
      perm[count++] = a;
  for (uint32_t i = 0; i < rank; i++) {
    uint8_t to = (uint8_t)count;
    xl_push_axes(&t, i, perm, &count);
    t.axis[i] = to;
  }
  xl_permute_axes(l, &t, perm, stored);
  xl_set_permuted(l, x, t);
  return t;
}

bool xl_common_order(XnnLowering *l, const ValueId *operands, uint32_t count, uint32_t rank,
                     Permuted *t) {
  uint64_t most = 0, largest = 0;
  uint32_t stored = 0;
  for (uint32_t i = 0; i < count; i++) {
    ValueId v = operands[i];
    if (is_constant_or_codes(l->g, v))
      continue;
    uint64_t elements = xl_elements(l, v);
    largest = elements > largest ? elements : largest;
    if (!xl_has_permuted(l, v))
      continue;
    Permuted own = xl_permuted(l, v);
    bool wider = xl_rank(l, own.id) > stored;
    stored = wider ? xl_rank(l, own.id) : stored;
    if (value_rank(l->g, v) == rank && (elements > most || (elements == most && wider))) {
      most = elements;
      *t = own;
    }
  }
  return most && most == largest && xl_rank(l, t->id) == stored;
}

/* A constant, whose elements are put in order while the program is written. */
static XnnId constant_in_order(XnnLowering *l, ValueId v, const Permuted *t, uint32_t rank) {
  uint32_t own = value_rank(l->g, v), stored = xl_rank(l, t->id), count = 0, skip = rank - own;
  if (xl_elements(l, v) == 1 || is_lead(l, t, rank))
    return xl_plain(l, v);
  uint32_t dims[XNN_MAX_RANK], perm[XNN_MAX_RANK], wide[XNN_MAX_RANK] = {1, 1, 1, 1, 1, 1};
  for (uint32_t i = 0; i < own; i++)
    if (xl_dim(l, v, i) != 1)
      (void)xl_whole_axis(l, t, skip + i);
  for (uint32_t a = 0; a < stored; a++)
    for (uint32_t i = 0; i < own; i++)
      if (t->axis[skip + i] == a) {
        perm[count] = i;
        wide[a] = dims[count++] = xl_dim(l, v, i);
      }
  XnnId id = xl_permuted_constant(l, v, own, dims, perm, false);
  if (xl_ok(l)) {
    XnnValue *value = &l->x.values[id];
    value->rank = (uint8_t)stored;
    memcpy(value->dims, wide, sizeof wide);
  }
  return id;
}

static bool same_axes(const Permuted *a, const Permuted *b, uint32_t rank) {
  return memcmp(a->axis, b->axis, rank) == 0 && memcmp(a->more, b->more, rank) == 0;
}

/* The permutation that brings the axes of t into the order `like`, whose first `skip` dims the
 * operand does not have. A dim stored at one axis cannot go where `like` has several, unless its
 * size is 1. */
static void order_like(XnnLowering *l, ValueId v, const Permuted *t, const Permuted *like,
                       uint32_t skip, uint32_t *perm) {
  uint32_t own = value_rank(l->g, v), stored = xl_rank(l, like->id), left = 0, taken = 0;
  for (uint32_t i = 0; i < own; i++) {
    uint32_t to = like->axis[skip + i], parts = t->more[i] + 1u;
    if (t->more[i] != like->more[skip + i] && value_dim(l->g, v, i) != 1)
      (void)xl_whole_axis(l, t->more[i] ? t : like, t->more[i] ? i : skip + i);
    for (uint32_t k = 0; k < parts && to + k < stored; k++) {
      perm[to + k] = t->axis[i] + k;
      taken |= 1u << (to + k);
    }
  }
  for (uint32_t a = 0; a < stored && xl_ok(l); a++) {
    if (taken >> a & 1)
      continue;
    while (!xl_is_extra_axis(t, own, left))
      left++;
    perm[a] = left++;
  }
}

/* Later uses find v in this order, too, unless v is stored unmerged and t is not: merging is what
 * they may not support. */
static void keep_order(XnnLowering *l, ValueId v, Permuted t, const Permuted *like) {
  uint32_t own = value_rank(l->g, v);
  Permuted before;
  bool keeps =
      xl_was_permuted(l, v, &before) && xl_is_unmerged(&before, own) && !xl_is_unmerged(&t, own);
  if (!xl_ok(l) || keeps)
    return;
  memcpy(t.axis, like->axis, sizeof t.axis);
  xl_set_permuted(l, v, t);
}

XnnId xl_in_order(XnnLowering *l, ValueId v, Permuted like, uint32_t rank) {
  uint32_t own = value_rank(l->g, v), stored = xl_rank(l, like.id), skip = rank - own;
  if (!xl_ok(l))
    return XNN_NONE;
  if (is_constant_or_codes(l->g, v))
    return constant_in_order(l, v, &like, rank);
  Permuted t;
  if (own == rank && xl_was_permuted(l, v, &t) && xl_rank(l, t.id) == stored &&
      same_axes(&t, &like, rank))
    return t.id;
  if (!xl_is_unmerged(&like, rank) || !xl_was_permuted(l, v, &t) || !xl_is_unmerged(&t, own))
    t = xl_permuted(l, v);
  if (is_lead(l, &like, rank) && is_straight(l, &t, own))
    return t.id;
  while (xl_ok(l) && xl_rank(l, t.id) < stored)
    xl_add_axis(l, &t, own);
  uint32_t perm[XNN_MAX_RANK] = {0};
  order_like(l, v, &t, &like, skip, perm);
  xl_permute_axes(l, &t, perm, stored);
  if (own == rank)
    keep_order(l, v, t, &like);
  return t.id;
}

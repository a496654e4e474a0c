/* Views with two or more dynamic dims. XNNPACK's reshape infers one size at most, so:
 *
 *   a dim of 1 is added by broadcasting: a product with a one of higher rank,
 *   a dim of known size is split into slices, which are put behind each other along a new dim,
 *   two dims of known size are joined by slices along the one, put behind each other along the
 *   other, two dims of 1 go as the mean over them,
 *   dynamic dims that are merged are stored unmerged (places.h), until a view splits them again.
 *
 * The order of the dims in memory, and extra axes of size 1, stay as they come (Permuted) until a
 * node needs the value contiguous: heads that are split, transposed, transposed back and merged are
 * then transposed once, and an axis that one view leaves over is the one that the next view adds.
 */
#include "backends/xnnpack/lower.h"

enum { MAX_PIECES = 64 };

/* A value on its way from one view to the other. */
typedef struct View {
  Permuted t;
  uint32_t rank;
  SymInt dims[XNN_MAX_RANK + 1];
} View;

/* --- dims that vary --- */

/* Dims of two values in a row, with the same product. */
typedef struct Group {
  uint32_t x_count, y_count; /* 0: there are no such within the limit of parts */
  SymInt size;
} Group;

/* The fewest dims of x from i on, and of y from k on. */
static Group next_group(Graph *g, ValueId x, uint32_t i, ValueId y, uint32_t k) {
  SymInt have = 1;
  for (uint32_t a = 1; a <= PERMUTED_PARTS && i + a <= value_rank(g, x); a++) {
    have = sym_mul(&g->syms, have, value_dim(g, x, i + a - 1));
    SymInt want = 1;
    for (uint32_t b = 1; b <= PERMUTED_PARTS && k + b <= value_rank(g, y); b++) {
      want = sym_mul(&g->syms, want, value_dim(g, y, k + b - 1));
      if (want == have)
        return (Group){a, b, want};
    }
  }
  return (Group){0};
}

static uint32_t dynamic_dims(const Graph *g, ValueId v, uint32_t from, uint32_t count) {
  uint32_t dynamic = 0;
  for (uint32_t i = from; i < from + count; i++)
    dynamic += !sym_is_const(value_dim(g, v, i));
  return dynamic;
}

static bool varies(const Graph *g, ValueId v, uint32_t from, uint32_t count) {
  return count > 1 && dynamic_dims(g, v, from, count) > 0;
}

DynamicDims xl_dynamic_dims(Graph *g, ValueId x, ValueId y) {
  DynamicDims found = {0};
  Group group;
  for (uint32_t i = 0, k = 0; i < value_rank(g, x) && k < value_rank(g, y);
       i += group.x_count, k += group.y_count) {
    group = next_group(g, x, i, y, k);
    if (!group.x_count)
      return found;
    if (varies(g, x, i, group.x_count) && group.y_count == 1) {
      found.joins = true;
      found.joined = group.size;
    }
    if (varies(g, y, k, group.y_count) && group.x_count == 1) {
      found.splits = true;
      found.several = dynamic_dims(g, y, k, group.y_count) > 1;
      found.split = group.size;
    }
  }
  return found;
}

bool xl_is_dynamic_view(XnnLowering *l, ValueId x, ValueId y) {
  if (xl_dynamic_dim_count(l->g, y) > 1)
    return true;
  DynamicDims found = xl_dynamic_dims(l->g, x, y);
  return found.joins && xl_split_of(l, found.joined);
}

XnnSplit *xl_split_of(const XnnLowering *l, SymInt size) {
  for (uint32_t i = 0; i < l->split_count; i++)
    if (l->splits[i].size == size)
      return &l->splits[i];
  return NULL;
}

/* Whether v has a dim of that size behind dims of the product `before`. */
static bool has_dim(Graph *g, ValueId v, SymInt before, SymInt size) {
  SymInt product = 1;
  for (uint32_t i = 0; i < value_rank(g, v); i++) {
    if (product == before && value_dim(g, v, i) == size)
      return true;
    product = sym_mul(&g->syms, product, value_dim(g, v, i));
  }
  return false;
}

bool xl_keeps_unmerged(XnnLowering *l, ValueId x, ValueId y) {
  bool unmerged = false;
  if (!xl_has_permuted(l, x))
    return false;
  Permuted t = xl_permuted(l, x);
  SymInt before = 1;
  for (uint32_t i = 0; i < value_rank(l->g, x); i++) {
    if (t.more[i] && !has_dim(l->g, y, before, value_dim(l->g, x, i)))
      return false;
    unmerged |= t.more[i] > 0;
    before = sym_mul(&l->g->syms, before, value_dim(l->g, x, i));
  }
  return unmerged;
}

/* --- steps of a view --- */

static void insert_one(XnnLowering *l, View *v, uint32_t at) {
  if (v->rank == XNN_MAX_RANK)
    xl_refuse(l, XNN_RULE_RANK_LIMIT, R_INT("rank", XNN_MAX_RANK + 1));
  uint32_t axis = 0, stored = xl_rank(l, v->t.id);
  while (axis < stored && !xl_is_extra_axis(&v->t, v->rank, axis))
    axis++;
  if (axis == stored) {
    xl_add_axis(l, &v->t, v->rank);
    axis = 0;
  }
  if (!xl_ok(l))
    return;
  xl_move_entries(&v->t, at, at + 1);
  memmove(v->dims + at + 1, v->dims + at, (v->rank - at) * sizeof *v->dims);
  v->t.axis[at] = (uint8_t)axis;
  v->t.more[at] = 0;
  v->dims[at] = 1;
  v->rank++;
}

/* A dim of 1, or one that is part of another now. */
static void remove_dim(View *v, uint32_t at) {
  v->rank--;
  xl_move_entries(&v->t, at + 1, at);
  memmove(v->dims + at, v->dims + at + 1, (v->rank - at) * sizeof *v->dims);
}

/* `size` elements of dim `from` in each piece; the pieces one behind the other along dim `to`. */
static void move_pieces(XnnLowering *l, View *v, uint32_t from, uint32_t to, uint32_t size) {
  uint32_t count = (uint32_t)v->dims[from] / size, axis = xl_whole_axis(l, &v->t, from),
           target = xl_whole_axis(l, &v->t, to);
  XnnId pieces[MAX_PIECES];
  if (count > MAX_PIECES)
    xl_refuse(l, XNN_RULE_PIECES, R_INT("pieces", count), R_INT("most", MAX_PIECES));
  if (!xl_ok(l))
    return;
  XnnValue whole = l->x.values[v->t.id];
  whole.dims[axis] = size;
  for (uint32_t i = 0; i < count; i++) {
    pieces[i] = xl_temp_of(l, &whole);
    xl_slice(l, v->t.id, axis, i * size, size, pieces[i]);
  }
  whole.dims[target] *= count;
  XnnId out = xl_temp_of(l, &whole);
  xl_concatenate(l, pieces, count, target, out);
  v->t.id = out;
  v->dims[from] = size;
  v->dims[to] *= count;
}

/* Makes dim `at`, of v known, the first of several. */
static void split(XnnLowering *l, View *v, uint32_t at, uint32_t outer) {
  insert_one(l, v, at);
  if (xl_ok(l))
    move_pieces(l, v, at + 1, at, (uint32_t)v->dims[at + 1] / outer);
}

static void join(XnnLowering *l, View *v, uint32_t at) {
  move_pieces(l, v, at, at + 1, 1);
  remove_dim(v, at);
}

/* Splits a dim that is stored unmerged into two, the first of that size. */
static bool part_dim(XnnLowering *l, View *v, uint32_t at, SymInt size) {
  SymInt product = 1, rest = 1;
  uint32_t count = 0, more = v->t.more[at];
  while (count < more && product != size)
    product = sym_mul(&l->g->syms, product, v->t.part[at][count++]);
  if (product != size)
    return false;
  for (uint32_t i = count; i <= more; i++)
    rest = sym_mul(&l->g->syms, rest, v->t.part[at][i]);
  if (v->rank == XNN_MAX_RANK)
    return xl_refuse(l, XNN_RULE_RANK_LIMIT, R_INT("rank", XNN_MAX_RANK + 1));
  xl_move_entries(&v->t, at, at + 1);
  memmove(v->dims + at + 1, v->dims + at, (v->rank - at) * sizeof *v->dims);
  v->rank++;
  v->t.more[at] = (uint8_t)(count - 1);
  v->t.more[at + 1] = (uint8_t)(more - count);
  v->t.axis[at + 1] = (uint8_t)(v->t.axis[at] + count);
  memmove(v->t.part[at + 1], v->t.part[at + 1] + count, (more + 1 - count) * sizeof(SymInt));
  v->dims[at] = size;
  v->dims[at + 1] = rest;
  return true;
}

/* Brings the axes of dim at + 1 behind those of dim `at`. */
static void make_adjacent(XnnLowering *l, View *v, uint32_t at) {
  Permuted *t = &v->t;
  uint32_t perm[XNN_MAX_RANK], count = 0, stored = xl_rank(l, t->id), place[XNN_MAX_RANK] = {0};
  for (uint32_t a = 0; a < stored; a++) {
    if (a >= t->axis[at + 1] && a <= t->axis[at + 1] + t->more[at + 1])
      continue;
    perm[count++] = a;
    if (a == t->axis[at] + t->more[at])
      xl_push_axes(t, at + 1, perm, &count);
  }
  for (uint32_t k = 0; k < count; k++)
    place[perm[k]] = k;
  xl_permute_axes(l, t, perm, count);
  for (uint32_t i = 0; i < v->rank; i++)
    t->axis[i] = (uint8_t)place[t->axis[i]];
}

/* Merges dims `at` and at + 1 into one that is stored unmerged, if that, or one more, is of the
 * size. */
static bool merge_dims(XnnLowering *l, View *v, uint32_t at, SymInt size) {
  if (at + 1 >= v->rank || v->t.more[at] + v->t.more[at + 1] + 2 > PERMUTED_PARTS)
    return false;
  SymTable *syms = &l->g->syms;
  SymInt product = sym_mul(syms, v->dims[at], v->dims[at + 1]);
  bool three = at + 2 < v->rank && v->t.more[at] + v->t.more[at + 1] + 3 <= PERMUTED_PARTS &&
               sym_mul(syms, product, v->dims[at + 2]) == size;
  if (product != size && !three)
    return false;
  make_adjacent(l, v, at);
  Permuted *t = &v->t;
  if (!t->more[at])
    t->part[at][0] = v->dims[at];
  if (!t->more[at + 1])
    t->part[at + 1][0] = v->dims[at + 1];
  memcpy(t->part[at] + t->more[at] + 1, t->part[at + 1], (t->more[at + 1] + 1u) * sizeof(SymInt));
  t->more[at] = (uint8_t)(t->more[at] + t->more[at + 1] + 1);
  t->view = l->node;
  remove_dim(v, at + 1);
  v->dims[at] = product;
  return true;
}

/* One step towards that: known sizes, and dims that are next to each other. */
static bool change_dim(XnnLowering *l, View *v, uint32_t at, SymInt size) {
  SymInt has = v->dims[at], next = at + 1 < v->rank ? v->dims[at + 1] : 0;
  if (v->t.more[at] && part_dim(l, v, at, size))
    return true;
  if (has > size && sym_const_divides(size, has))
    split(l, v, at, (uint32_t)size);
  else if (next == 1)
    remove_dim(v, at + 1);
  else if (next && sym_const_divides(has, size) && sym_const_divides(next, size / has))
    join(l, v, at);
  else
    return merge_dims(l, v, at, size);
  return true;
}

/* Makes dim `at` of v `size`, or the first of several; false when there is no way. */
static bool make_dim(XnnLowering *l, View *v, uint32_t at, SymInt size) {
  while (xl_ok(l) && (at == v->rank || v->dims[at] != size)) {
    if (at < v->rank && v->dims[at] == 1)
      remove_dim(v, at);
    else if (size == 1)
      insert_one(l, v, at);
    else if (at == v->rank || !change_dim(l, v, at, size))
      return false;
  }
  return xl_ok(l);
}

/* The operand as it is stored, or in NHWC where the dims that y merges are consecutive there. */
static Permuted operand(XnnLowering *l, ValueId x, ValueId y) {
  uint32_t rank = value_rank(l->g, x);
  if (xl_has_permuted(l, x) || xl_has_plain(l, x) || !xl_has_layouts(l->g, x) ||
      !(xl_has_nhwc(l, x) || xl_in_nhwc(l, y)) || !xl_dynamic_dims(l->g, x, y).joins)
    return xl_permuted(l, x);
  Permuted t = {.id = xl_nhwc(l, x)};
  for (uint32_t i = 0; i < rank; i++)
    t.axis[i] = (uint8_t)xl_nhwc_axis(i, rank);
  return t;
}

void xl_dynamic_view(XnnLowering *l, ValueId x, ValueId y) {
  Graph *g = l->g;
  View v = {.t = operand(l, x, y), .rank = value_rank(g, x)};
  uint32_t most = v.rank > value_rank(g, y) ? v.rank : value_rank(g, y);
  if (most > XNN_MAX_RANK) {
    xl_refuse(l, XNN_RULE_RANK_LIMIT, R_INT("rank", most));
    return;
  }
  for (uint32_t i = 0; i < v.rank && xl_ok(l); i++)
    v.dims[i] = value_dim(g, x, i);
  for (uint32_t i = 0; i < value_rank(g, y) && xl_ok(l); i++) {
    if (make_dim(l, &v, i, value_dim(g, y, i)))
      continue;
    if (l->alone && xl_dynamic_dims(g, x, y).splits) { /* it may be stored so already */
      (void)xl_result(l, y);
      return;
    }
    xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", i),
              R_INT("varying-dims", xl_dynamic_dim_count(g, y)));
  }
  while (v.rank > value_rank(g, y))
    remove_dim(&v, v.rank - 1);
  const XnnJoin *join = xl_join_of(l, l->node);
  xl_set_permuted(l, y, v.t);
  if (join && !join->late)
    xl_set_plain(l, y, xl_joined(l, v.t, y));
}

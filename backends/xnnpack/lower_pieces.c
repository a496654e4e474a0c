/* Elements chosen along one dim by numbers that are known: strided slices, selections, flips, and
 * pads that repeat what is inside. Each is a row of runs of positions, which are cut out one by one
 * and joined. */
#include <inttypes.h>

#include "backends/xnnpack/lower.h"

enum { MAX_RUNS = 160, MAX_ROWS = 16, MAX_STEP = 16, MAX_EDGE = 64, MAX_REPEATS = 1 << 16 };

/* Positions begin, begin + step, … of a dim. */
typedef struct Run {
  uint32_t begin, step, count;
} Run;
typedef struct RunList {
  Run runs[MAX_RUNS];
  uint32_t count; /* more than MAX_RUNS: too many */
  uint32_t positions;
} RunList;

/* A value on its way: its dims in the layout that it is in. */
typedef struct Piece {
  XnnId id;
  uint32_t rank;
  SymInt dims[XNN_MAX_RANK];
} Piece;

/* Its size along the axis is known. */
static bool open_piece(XnnLowering *l, const Piece *p, uint32_t axis) {
  return sym_is_const(p->dims[axis]) || xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", axis));
}

static Piece cut(XnnLowering *l, const Piece *p, uint32_t axis, uint32_t begin, uint32_t count) {
  Piece part = *p;
  part.dims[axis] = count;
  part.id = xl_sym_temp(l, part.rank, part.dims);
  xl_slice(l, p->id, axis, begin, count, part.id);
  return part;
}

static Piece pad_end(XnnLowering *l, const Piece *p, uint32_t axis, uint32_t count) {
  Piece part = *p;
  XnnPad pad = {.dims = p->dims, .rank = p->rank};
  pad.after[axis] = count;
  part.dims[axis] += count;
  part.id = xl_sym_temp(l, part.rank, part.dims);
  xl_pad(l, p->id, &pad, part.id);
  return part;
}

/* Every step-th position: groups of `step` positions, of which the first is kept. */
static Piece strided(XnnLowering *l, const Piece *p, uint32_t axis, Run run) {
  uint32_t here = xl_upper(l, p->dims[axis]) - run.begin;
  uint64_t wanted = (uint64_t)run.count * run.step;
  Piece part = cut(l, p, axis, run.begin, wanted < here ? (uint32_t)wanted : here);
  if (wanted > here)
    part = pad_end(l, &part, axis, (uint32_t)(wanted - here));
  SymInt groups[] = {1, run.count, run.step, 1};
  for (uint32_t i = 0; i < p->rank; i++)
    if (i != axis)
      groups[i < axis ? 0 : 3] = sym_mul(&l->g->syms, groups[i < axis ? 0 : 3], p->dims[i]);
  Piece grouped = {.id = xl_sym_temp(l, 4, groups), .rank = 4};
  memcpy(grouped.dims, groups, sizeof groups);
  xl_reshape(l, part.id, groups, 4, grouped.id);
  Piece first = cut(l, &grouped, 2, 0, 1);
  part.dims[axis] = run.count;
  part.id = xl_sym_temp(l, part.rank, part.dims);
  xl_reshape(l, first.id, part.dims, part.rank, part.id);
  return part;
}

static void add_run(RunList *list, Run run) {
  if (list->count < MAX_RUNS)
    list->runs[list->count] = run;
  list->count += list->count <= MAX_RUNS;
  list->positions += run.count;
}

/* One more position, in the last run if it goes on there. What lies between the positions of a run
 * is copied with them, so that steps have a limit. */
static void add_position(RunList *list, uint32_t position) {
  Run *last = list->count && list->count <= MAX_RUNS ? &list->runs[list->count - 1] : NULL;
  if (last && last->count == 1 && position > last->begin && position - last->begin <= MAX_STEP)
    last->step = position - last->begin;
  if (!last || last->step == 0 ||
      position != (uint64_t)last->begin + (uint64_t)last->step * last->count) {
    add_run(list, (Run){position, 0, 1});
    return;
  }
  last->count++;
  list->positions++;
}

static Piece take(XnnLowering *l, const Piece *p, uint32_t axis, const RunList *list) {
  XnnId ids[MAX_RUNS];
  if (list->count == 0 || list->count > MAX_RUNS)
    xl_refuse(l, XNN_RULE_PIECES, R_INT("most", MAX_RUNS));
  if (!xl_ok(l) || !open_piece(l, p, axis))
    return *p;
  for (uint32_t i = 0; i < list->count && xl_ok(l); i++) {
    Run run = list->runs[i];
    ids[i] = run.step <= 1 ? cut(l, p, axis, run.begin, run.count).id : strided(l, p, axis, run).id;
  }
  Piece all = *p;
  all.dims[axis] = list->positions;
  if (!xl_ok(l))
    return all;
  all.id = list->count == 1 ? ids[0] : xl_sym_temp(l, all.rank, all.dims);
  if (list->count > 1)
    xl_concatenate(l, ids, list->count, axis, all.id);
  return all;
}

/* x in the layout of the node that makes y. */
static Piece piece_of(XnnLowering *l, ValueId x, ValueId y, bool *nhwc) {
  Piece p = {.rank = value_rank(l->g, x)};
  *nhwc = xl_in_nhwc(l, y);
  if (p.rank == 0 || p.rank > XNN_MAX_RANK)
    xl_refuse(l, XNN_RULE_RANK, R_INT("rank", p.rank));
  for (uint32_t i = 0; i < p.rank && xl_ok(l); i++)
    p.dims[*nhwc ? xl_nhwc_axis(i, p.rank) : i] = value_dim(l->g, x, i);
  p.id = *nhwc ? xl_nhwc(l, x) : xl_plain(l, x);
  return p;
}

static void finish(XnnLowering *l, const Piece *p, bool nhwc, ValueId y) {
  if (nhwc)
    xl_set_nhwc(l, y, p->id);
  else
    xl_set_plain(l, y, p->id);
}

static void take_one(XnnLowering *l, ValueId x, uint32_t axis, const RunList *list, ValueId y) {
  bool nhwc;
  Piece p = piece_of(l, x, y, &nhwc);
  p = take(l, &p, nhwc ? xl_nhwc_axis(axis, p.rank) : axis, list);
  finish(l, &p, nhwc, y);
}

/* --- the operators --- */

void xl_strided_slice(XnnLowering *l, ValueId x, uint32_t axis, int64_t begin, int64_t step,
                      ValueId y) {
  RunList list = {.count = 0};
  if (!sym_is_const(value_dim(l->g, y, axis)) || step > INT32_MAX) {
    xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", axis));
    return;
  }
  add_run(&list, (Run){(uint32_t)begin, (uint32_t)step, xl_dim(l, y, axis)});
  take_one(l, x, axis, &list, y);
}

/* What lies before the slice, the slice, what lies behind it. */
void lower_slice_scatter(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), src = node_value(g, n, 1), y = node_result(g, n, 0);
  uint32_t axis = xl_axis(node_int(g, n, 2), value_rank(g, x)), count = 0;
  SymInt extent = value_dim(g, x, axis), begin = node_int_or(g, n, 3, 0),
         size = value_dim(g, src, axis);
  if (!sym_is_const(extent) || !sym_is_const(begin) || !sym_is_const(size) || begin < 0 ||
      begin + size > extent) {
    xl_refuse(l, XNN_RULE_VARYING, R_INT("dim", axis));
    return;
  }
  if (node_int(g, n, 5) != 1) {
    xl_refuse(l, XNN_RULE_PIECES, R_INT("step", node_int(g, n, 5)));
    return;
  }
  bool nhwc;
  Piece whole = piece_of(l, x, y, &nhwc), slice = piece_of(l, src, y, &nhwc);
  uint32_t at = nhwc ? xl_nhwc_axis(axis, whole.rank) : axis, first = (uint32_t)begin,
           end = (uint32_t)(begin + size), last = (uint32_t)extent;
  XnnId ids[3];
  if (first > 0)
    ids[count++] = cut(l, &whole, at, 0, first).id;
  ids[count++] = slice.id;
  if (end < last)
    ids[count++] = cut(l, &whole, at, end, last - end).id;
  if (!xl_ok(l))
    return;
  whole.id = count == 1 ? slice.id : xl_sym_temp(l, whole.rank, whole.dims);
  if (count > 1)
    xl_concatenate(l, ids, count, at, whole.id);
  finish(l, &whole, nhwc, y);
}

/* Are entries of the axis whole pieces of memory? The kernel copies those as fast where few of them
 * follow each other, and a node for each would make the program grow with their number. */
static bool outermost(const Graph *g, ValueId x, uint32_t axis) {
  for (uint32_t i = 0; i < axis; i++)
    if (value_dim(g, x, i) != 1)
      return false;
  return true;
}

void lower_index_select(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  ValueId x = node_value(g, n, 0), index = node_value(g, n, 2), y = node_result(g, n, 0);
  if (value_rank(g, x) == 0 || !value_is_const(g, index) || value_dtype(g, index) != DTYPE_I64) {
    xl_refuse(l, XNN_RULE_RUNTIME_WEIGHTS, R_STR("argument", "index"));
    return;
  }
  uint32_t axis = xl_axis(node_int(g, n, 1), value_rank(g, x)), extent = xl_dim(l, x, axis);
  RunList list = {.count = 0};
  for (uint64_t i = 0; i < xl_elements(l, index) && list.count <= MAX_RUNS && xl_ok(l); i++) {
    int64_t position;
    memcpy(&position, value_constant(g, index)->data + i * sizeof position, sizeof position);
    if (position < 0 || position >= extent)
      xl_refuse(l, XNN_RULE_ATTRIBUTE, R_INT("index", position));
    add_position(&list, (uint32_t)position);
  }
  bool scattered = 2 * (uint64_t)list.count > xl_elements(l, index);
  if (scattered && list.count > MAX_ROWS && outermost(g, x, axis))
    xl_refuse(l, XNN_RULE_PIECES, R_INT("most", MAX_ROWS));
  take_one(l, x, axis, &list, y);
}

void lower_flip(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  bool nhwc;
  Piece p = piece_of(l, node_value(g, n, 0), node_result(g, n, 0), &nhwc);
  for (uint32_t i = 0; i < node_list_count(g, n, 1) && xl_ok(l); i++) {
    uint32_t dim = xl_axis(node_ints(g, n, 1)[i], p.rank),
             axis = nhwc ? xl_nhwc_axis(dim, p.rank) : dim;
    RunList list = {.count = 0};
    for (uint32_t k = xl_upper(l, p.dims[axis]); k > 0 && list.count <= MAX_RUNS; k--)
      add_position(&list, k - 1);
    p = take(l, &p, axis, &list);
  }
  finish(l, &p, nhwc, node_result(g, n, 0));
}

static bool fits_pad(SymInt pad, SymInt extent, bool reflects) {
  return sym_is_const(pad) && pad >= 0 && pad <= MAX_EDGE && (!reflects || pad < extent);
}

/* Reflection at the borders, or what is there again. Pads from the last dim, before and after in
 * turn. */
void lower_inside_pad(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  OpId op = node_cget(g, n)->op;
  bool nhwc, reflects = op == OP_REFLECTION_PAD1D || op == OP_REFLECTION_PAD2D ||
                        op == OP_REFLECTION_PAD3D;
  Piece p = piece_of(l, node_value(g, n, 0), node_result(g, n, 0), &nhwc);
  for (uint32_t i = 0; i < node_list_count(g, n, 1) / 2 && xl_ok(l); i++) {
    SymInt before = node_ints(g, n, 1)[2 * i], after = node_ints(g, n, 1)[2 * i + 1];
    uint32_t dim = p.rank - 1 - i, axis = nhwc ? xl_nhwc_axis(dim, p.rank) : dim;
    if (!open_piece(l, &p, axis) || (before == 0 && after == 0))
      continue;
    if (!fits_pad(before, p.dims[axis], reflects) || !fits_pad(after, p.dims[axis], reflects)) {
      xl_refuse(l, XNN_RULE_PIECES, R_INT("dim", dim), R_INT("most", MAX_EDGE));
      return;
    }
    uint32_t extent = xl_upper(l, p.dims[axis]);
    RunList list = {.count = 0};
    for (uint32_t k = (uint32_t)before; k > 0; k--)
      add_position(&list, reflects ? k : 0);
    add_run(&list, (Run){0, 1, extent});
    for (uint32_t k = 1; k <= (uint32_t)after; k++)
      add_run(&list, (Run){extent - 1 - (reflects ? k : 0), 1, 1});
    p = take(l, &p, axis, &list);
  }
  finish(l, &p, nhwc, node_result(g, n, 0));
}

/* The whole dim `times` times: [outer, 1, n, inner] times ones of [1, times, 1, 1]. */
static Piece repeated(XnnLowering *l, const Piece *p, uint32_t axis, uint32_t times) {
  SymInt split[] = {1, 1, p->dims[axis], 1}, grown[4];
  uint32_t shape[] = {1, times, 1, 1};
  for (uint32_t i = 0; i < p->rank; i++)
    if (i != axis)
      split[i < axis ? 0 : 3] = sym_mul(&l->g->syms, split[i < axis ? 0 : 3], p->dims[i]);
  memcpy(grown, split, sizeof grown);
  grown[1] = times;
  XnnId one = xl_sym_temp(l, 4, split), many = xl_sym_temp(l, 4, grown);
  xl_reshape(l, p->id, split, 4, one);
  xl_binary(l, XNN_MULTIPLY, one, xl_ones(l, 4, shape), many);
  Piece all = *p;
  all.dims[axis] = sym_mul(&l->g->syms, p->dims[axis], times);
  all.id = xl_sym_temp(l, all.rank, all.dims);
  xl_reshape(l, many, all.dims, all.rank, all.id);
  return all;
}

void lower_repeat(XnnLowering *l, NodeId n) {
  Graph *g = l->g;
  bool nhwc;
  Piece p = piece_of(l, node_value(g, n, 0), node_result(g, n, 0), &nhwc);
  const SymInt *times = node_ints(g, n, 1);
  if (node_list_count(g, n, 1) != p.rank)
    xl_refuse(l, XNN_RULE_RANK, R_INT("rank", p.rank), R_INT("repeats", node_list_count(g, n, 1)));
  for (uint32_t i = 0; i < p.rank && xl_ok(l); i++) {
    if (times[i] == 1)
      continue;
    if (!sym_is_const(times[i]) || times[i] < 1 || times[i] > MAX_REPEATS)
      xl_refuse(l, XNN_RULE_EXPANSION, R_INT("dim", i), R_INT("most", MAX_REPEATS));
    else
      p = repeated(l, &p, nhwc ? xl_nhwc_axis(i, p.rank) : i, (uint32_t)times[i]);
  }
  finish(l, &p, nhwc, node_result(g, n, 0));
}

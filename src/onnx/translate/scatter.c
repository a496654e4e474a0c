/* Scatter, ScatterElements, ScatterND, TensorScatter: writing by index.
 *
 * The runtime scatters by replacing or adding only. For min and max the updates are sorted, so that
 * the extreme one of each element is written last. With mul, and for types that the kernel does not
 * sort, the writes are done a step at a time: read the elements, combine, write them back. */
#include "onnx/express.h"

enum { SCATTER_UNROLLED = 1024 }; /* steps; more of them, or a number that varies, are a loop */

/* The op that combines for attribute reduction; OP_NONE replaces, OP_ADD_TENSOR adds. */
static OpId scatter_reduction(Import *im) {
  static const OpId ops[] = {OP_NONE, OP_ADD_TENSOR, OP_MUL_TENSOR, OP_MAXIMUM, OP_MINIMUM};
  return ops[attr_choice(im, "reduction", "none", "none|add|mul|max|min")];
}

/* The current one of the updates, and what they are put in. */
typedef struct ScatterStep {
  SymInt number; /* in a loop that of its iteration, which is known only while running */
  bool in_loop;
  ValueId x;
} ScatterStep;

/* Row `number` of a dim, which stays as one of size 1. A loop, whose dim may have none, reads it by
 * an index: that it has rows is no condition then. */
static ValueId step_row(Import *im, const ScatterStep *s, ValueId x, uint32_t axis) {
  if (s->in_loop)
    return ex_index_select(im, x, axis, EX_VIEW(im, ex_size(im, s->number), 1));
  return ex_slice(im, x, axis, s->number, s->number + 1);
}

/* Does all steps, of which `step` makes one: x with what it writes. */
static ValueId scatter_steps(Import *im, ValueId x, SymInt steps,
                             ValueId step(Import *im, const void *user, const ScatterStep *s),
                             const void *user) {
  if (sym_is_const(steps) && steps <= SCATTER_UNROLLED) {
    for (int64_t i = 0; i < steps && import_ok(im); i++)
      x = step(im, user, &(ScatterStep){.number = i, .x = x});
    return x;
  }
  ValueId loop = build(&im->b, OP_LOOP, A_INT(steps), A_OPT(0), A_VALS(&x, 1));
  if (!import_ok(im))
    return 0;
  SymInt number = value_type(im->g, loop)->dims[0];
  x = step(im, user, &(ScatterStep){.number = number, .in_loop = true, .x = loop + 1});
  return build(&im->b, OP_NEXT, A_OPT(0), A_VALS(&x, 1));
}

/* The kernel writes in the order of the updates. */
static ValueId scatter_sorted(Import *im, ValueId x, uint32_t axis, ValueId index, ValueId updates,
                              OpId op) {
  ValueId sorted = ex_topk(im, updates, ex_dim(im, updates, axis), axis, op == OP_MINIMUM);
  ValueId at = ex_gather(im, index, axis, sorted ? sorted + 1 : 0);
  return ex_binary(im, op, x, ex_scatter(im, x, axis, at, sorted));
}

/* Whether updates are sorted: steps of them meet each other. */
static bool is_sorted(const Import *im, OpId op, ValueId updates, SymInt steps) {
  return op != OP_MUL_TENSOR && steps != 0 && steps != 1 &&
         dtype_in(ex_dtype(im, updates), DTS_REAL);
}

typedef struct Scatter {
  OpId op;
  uint32_t axis;  /* ScatterElements */
  uint32_t tuple; /* ScatterND: dims that a tuple of indices names */
  ValueId index, updates;
} Scatter;

/* Updates at one index of axis cannot meet each other, so they are combined together. */
static ValueId combine_elements(Import *im, const void *user, const ScatterStep *s) {
  const Scatter *a = user;
  ValueId at = step_row(im, s, a->index, a->axis), update = step_row(im, s, a->updates, a->axis);
  ValueId merged = ex_binary(im, a->op, ex_gather(im, s->x, a->axis, at), update);
  return ex_scatter(im, s->x, a->axis, at, merged);
}

static ValueId scatter_combined(Import *im, ValueId x, const Scatter *a) {
  SymInt steps = ex_dim(im, a->index, a->axis);
  if (is_sorted(im, a->op, a->updates, steps))
    return scatter_sorted(im, x, a->axis, a->index, a->updates, a->op);
  return scatter_steps(im, x, steps, combine_elements, a);
}

/* Writes or adds rows of axis at the entries of a vector. */
static ValueId put_rows(Import *im, ValueId x, uint32_t axis, ValueId rows, ValueId updates,
                        bool add) {
  ValueId list[MAX_RANK] = {0};
  list[axis] = rows;
  return build(&im->b, OP_INDEX_PUT, A_VAL(x), A_VALS(list, axis + 1), A_VAL(updates), A_BOOL(add));
}

/* There is one update for each index. */
static bool check_updates(Import *im, ValueId index, ValueId updates) {
  Dims i = shape_of(im, index), u = shape_of(im, updates);
  if (i.rank != u.rank)
    return import_fail(im, DIAG_SHAPE_MISMATCH, "the updates have rank %u, the indices %u", u.rank,
                       i.rank);
  for (uint32_t k = 0; k < i.rank && import_ok(im); k++) {
    int same = sym_known_eq(&im->g->syms, i.d[k], u.d[k]);
    if (same == 0)
      import_fail(im, DIAG_SHAPE_MISMATCH, "dim %u of the updates is not that of the indices", k);
    else if (same < 0)
      graph_add_constraint(im->g, (Constraint){CONSTRAINT_EQ, i.d[k], u.d[k], im->b.loc});
  }
  return import_ok(im);
}

void translate_scatter_elements(Import *im) {
  ValueId x = in_required(im, 0), index = in_required(im, 1), updates = in_required(im, 2);
  OpId op = scatter_reduction(im);
  uint32_t axis = import_axis(im, attr_int(im, "axis", 0), ex_rank(im, x));
  if (ex_rank(im, index) != ex_rank(im, x))
    import_fail(im, DIAG_INPUT_RANK, "the indices have rank %u, the data %u", ex_rank(im, index),
                ex_rank(im, x));
  if (!check_updates(im, index, updates))
    return;
  bool plain = op == OP_NONE || op == OP_ADD_TENSOR;
  ValueId rows = plain ? ex_row_index(im, x, axis, index) : 0;
  if (rows) {
    out(im, 0, put_rows(im, x, axis, rows, updates, op == OP_ADD_TENSOR));
    return;
  }
  index = ex_wrap_index(im, index, ex_dim(im, x, axis));
  if (plain)
    out(im, 0,
        build(&im->b, op == OP_NONE ? OP_SCATTER_SRC : OP_SCATTER_ADD, A_VAL(x), A_INT(axis),
              A_VAL(index), A_VAL(updates)));
  else
    out(im, 0, scatter_combined(im, x, &(Scatter){op, axis, 0, index, updates}));
}

/* --- ScatterND --- */

static ValueId put(Import *im, ValueId x, ValueId indices, uint32_t tuple, ValueId values,
                   bool add) {
  ValueId list[MAX_RANK] = {0};
  for (uint32_t k = 0; k < tuple; k++)
    list[k] = ex_component(im, indices, k);
  return build(&im->b, OP_INDEX_PUT, A_VAL(x), A_VALS(list, tuple), A_VAL(values), A_BOOL(add));
}

/* Rows of the dims that a tuple names, by the number of the row. */
static ValueId put_sorted(Import *im, ValueId x, ValueId indices, uint32_t tuple, ValueId updates,
                          const Dims *tuples, OpId op) {
  Dims s = shape_of(im, x);
  Dims rows = {2, {tuples->d[0], shape_product(im, s.d + tuple, s.rank - tuple)}};
  ValueId number = 0;
  for (uint32_t k = 0; k < tuple && import_ok(im); k++) {
    ValueId at = ex_wrap_index(im, ex_component(im, indices, k), s.d[k]);
    number = number ? ex_add(im, ex_mul(im, number, ex_size(im, s.d[k])), at) : at;
  }
  number = ex_along_axis(im, ex_flat(im, number), 0, 2);
  updates = ex_view_as(im, updates, rows);
  ValueId index = ex_expand(im, number, rows.d, rows.rank),
          y = scatter_sorted(im, ex_rows(im, x, tuple), 0, index, updates, op);
  return ex_view_as(im, y, s);
}

static ValueId combine_tuple(Import *im, const void *user, const ScatterStep *s) {
  const Scatter *a = user;
  ValueId one = step_row(im, s, a->index, 0), update = step_row(im, s, a->updates, 0);
  ValueId list[MAX_RANK] = {0};
  for (uint32_t k = 0; k < a->tuple; k++)
    list[k] = ex_component(im, one, k);
  ValueId old = build(&im->b, OP_INDEX_TENSOR, A_VAL(s->x), A_VALS(list, a->tuple));
  return put(im, s->x, one, a->tuple, ex_binary(im, a->op, old, update), false);
}

/* One tuple after the other: they may name the same element. */
static ValueId put_combined(Import *im, ValueId x, ValueId indices, uint32_t tuple, ValueId updates,
                            OpId op) {
  Dims at = shape_of(im, indices), from = shape_of(im, updates),
       tuples = {2, {shape_product(im, at.d, at.rank - 1), tuple}}, rows = {1, {tuples.d[0]}};
  if (is_sorted(im, op, updates, tuples.d[0]))
    return put_sorted(im, x, indices, tuple, updates, &tuples, op);
  for (uint32_t i = at.rank - 1; i < from.rank; i++)
    rows.d[rows.rank++] = from.d[i];
  Scatter a = {.op = op, .tuple = tuple};
  a.index = ex_view_as(im, indices, tuples);
  a.updates = ex_view_as(im, updates, rows);
  return scatter_steps(im, x, tuples.d[0], combine_tuple, &a);
}

void translate_scatter_nd(Import *im) {
  ValueId x = in_required(im, 0), indices = in_required(im, 1), updates = in_required(im, 2);
  OpId op = scatter_reduction(im);
  Dims at = shape_of(im, indices);
  SymInt tuple = at.rank ? at.d[at.rank - 1] : -1;
  if (!sym_is_const(tuple) || tuple < 1 || tuple > ex_rank(im, x) ||
      ex_rank(im, updates) + 1 < at.rank) {
    import_fail(im, DIAG_SHAPE_MISMATCH,
                "indices of rank %u and updates of rank %u do not fit a tensor of rank %u", at.rank,
                ex_rank(im, updates), ex_rank(im, x));
    return;
  }
  if (op == OP_NONE || op == OP_ADD_TENSOR)
    out(im, 0, put(im, x, indices, (uint32_t)tuple, updates, op == OP_ADD_TENSOR));
  else
    out(im, 0, put_combined(im, x, indices, (uint32_t)tuple, updates, op));
}

/* --- TensorScatter --- */

/* The update of batch b goes to write_indices[b] + (0, 1, …) of the axis; circular: modulo its
 * size. */
void translate_tensor_scatter(Import *im) {
  ValueId x = in_required(im, 0), update = in_required(im, 1), write = in(im, 2);
  bool circular = attr_choice(im, "mode", "linear", "linear|circular") == 1;
  Dims s = shape_of(im, x), u = shape_of(im, update);
  uint32_t axis = import_axis(im, attr_int(im, "axis", -2), s.rank);
  if (u.rank != s.rank || axis == 0)
    import_fail(im, DIAG_SHAPE_MISMATCH, "the update does not fit, or the axis is the batch");
  ValueId at = ex_along_axis(im, ex_arange(im, u.d[axis]), axis, s.rank);
  if (write)
    at = ex_add(im, at, ex_along_axis(im, ex_cast(im, write, DTYPE_I64), 0, s.rank));
  if (circular)
    at = ex_floor_mod(im, at, ex_size(im, s.d[axis]));
  at = ex_expand(im, at, u.d, u.rank);
  out(im, 0, ex_scatter(im, x, axis, at, update));
}

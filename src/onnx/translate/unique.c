/* Unique: numbers are sorted by topk, and equal ones stand side by side. For rows there is no
 * kernel that sorts them: all are compared with each other, which takes memory that grows with the
 * square of their number. */
#include "onnx/express.h"

enum { ROWS_MAX = 8192, NUMBERS_MAX = 1 << 24 };

typedef struct Unique {
  ValueId rows; /* [n, m]: entry i is row i */
  SymInt n, m;
  ValueId first;    /* [n] i64: where an equal entry stands first */
  ValueId is_first; /* [n] bool */
  ValueId count;    /* [n] i64: entries equal to this one */
  ValueId rank;     /* [n] i64: place of the entry's value in the result */
} Unique;

/* Entries of v, along its first dim. index_select refuses to take none of no entries. */
static ValueId taken(Import *im, const Unique *u, ValueId v, ValueId index) {
  if (sym_lower(&im->g->syms, u->n) >= 1 || !import_ok(im))
    return ex_index_select(im, v, 0, index);
  return build(&im->b, OP_INDEX_TENSOR, A_VAL(v), A_VALS(&index, 1));
}

static ValueId as_i64(Import *im, ValueId v) { return ex_cast(im, v, DTYPE_I64); }

/* The kernels write in the order of the entries: from the last to the first, the first one stays.
 */
static void sort_numbers(Import *im, Unique *u) {
  ValueId numbers = ex_flat(im, u->rows), every = ex_arange(im, u->n);
  if (ex_dtype(im, numbers) == DTYPE_BOOL)
    numbers = as_i64(im, numbers);
  ValueId sorted = ex_topk(im, numbers, u->n, 0, false),
          before = ex_at_least(im, ex_minus(im, every, 1), 0),
          previous = taken(im, u, sorted, before), steps = ex_ne(im, sorted, previous);
  if (dtype_is_float(ex_dtype(im, numbers))) /* NaN is last, and differs from itself */
    steps = ex_and(im, steps, ex_eq(im, previous, previous));
  ValueId group = build(&im->b, OP_CUMSUM, A_VAL(as_i64(im, steps)), A_INT(0));
  ValueId none = ex_full(im, DTYPE_I64, &u->n, 1, 0), one = ex_full(im, DTYPE_I64, &u->n, 1, 1);
  u->rank = ex_scatter(im, none, 0, sorted ? sorted + 1 : 0, group);
  ValueId back = ex_flip(im, u->rank, 0),
          firsts = ex_scatter(im, none, 0, back, ex_flip(im, every, 0)),
          counts = build(&im->b, OP_SCATTER_ADD, A_VAL(none), A_INT(0), A_VAL(u->rank), A_VAL(one));
  u->first = taken(im, u, firsts, u->rank);
  u->is_first = ex_eq(im, u->first, every);
  u->count = taken(im, u, counts, u->rank);
}

/* Rows compared with each other: element [i, k, j] of op(rows[i], rows[k]). */
static ValueId compare(Import *im, const Unique *u, OpId op) {
  ValueId others = EX_VIEW(im, u->rows, 1, u->n, u->m);
  return ex_binary(im, op, EX_VIEW(im, u->rows, u->n, 1, u->m), others);
}

static void compare_rows(Import *im, Unique *u) {
  ValueId equal = compare(im, u, OP_EQ_TENSOR);
  equal = as_i64(im, ex_reduce_one(im, OP_AMIN, equal, 2, false));
  u->count = ex_sum(im, equal, 1, false);
  u->first = ex_argmax(im, equal, 1, false);
  u->is_first = ex_eq(im, u->first, ex_arange(im, u->n));
}

/* Is row k before row i, [i, k]? The first elements that differ decide. */
static ValueId row_before(Import *im, const Unique *u) {
  ValueId greater = compare(im, u, OP_GT_TENSOR);
  if (u->m != 1) {
    ValueId differ = as_i64(im, compare(im, u, OP_NE_TENSOR));
    greater = ex_gather(im, greater, 2, ex_argmax(im, differ, 2, true));
  }
  return EX_VIEW(im, greater, u->n, u->n);
}

/* As many different rows are smaller. */
static void sort_rows(Import *im, Unique *u) {
  ValueId first = ex_along_axis(im, u->is_first, 1, 2),
          before = ex_and(im, row_before(im, u), first);
  u->rank = ex_sum(im, as_i64(im, before), 1, false);
}

/* As many different values came before. */
static void keep_order(Import *im, Unique *u) {
  ValueId order = build(&im->b, OP_CUMSUM, A_VAL(as_i64(im, u->is_first)), A_INT(0));
  u->rank = ex_minus(im, taken(im, u, order, u->first), 1);
}

/* First positions of the values in the order of the result: as many as there are values. */
static ValueId result_order(Import *im, const Unique *u) {
  ValueId empty = ex_full(im, DTYPE_I64, &u->n, 1, 0),
          order = ex_scatter(im, empty, 0, u->rank, u->first);
  ValueId total = ex_sum(im, as_i64(im, u->is_first), 0, false);
  ValueId slots = ex_unary(im, OP_NONZERO, ex_lt(im, ex_arange(im, u->n), total));
  return taken(im, u, order, ex_flat(im, slots));
}

/* Of rows, none is an error of the call. */
static void check_entries(Import *im, const Unique *u, SymInt all) {
  const SymTable *t = &im->g->syms;
  int most = u->m == 1 ? NUMBERS_MAX : ROWS_MAX;
  if (sym_upper(t, all) < 1 || sym_upper(t, u->n) > most)
    import_fail(im, DIAG_UNSUPPORTED_FEATURE, "Unique takes 1 to %d entries", most);
  else if (u->m != 1 && sym_lower(t, all) < 1)
    graph_add_constraint(im->g, (Constraint){CONSTRAINT_GE, all, 1, im->b.loc});
}

/* Outputs that a kind of Unique has: the values, where they are first, which one each entry is, and
 * how often each is there; -1 for one that it does not have. */
static void unique(Import *im, bool sorted, const int outputs[4]) {
  ValueId x = in_required(im, 0);
  Dims s = shape_of(im, x);
  bool flat = !attr_has(im, "axis");
  uint32_t axis = flat ? 0 : import_axis(im, attr_int(im, "axis", 0), s.rank);
  SymInt all = shape_product(im, s.d, s.rank);
  if (flat) {
    s = (Dims){1, {all}};
    x = ex_flat(im, x);
  }
  Unique u = {.n = s.d[axis], .m = 1};
  for (uint32_t i = 0; i < s.rank; i++)
    u.m = i == axis ? u.m : sym_mul(&im->g->syms, u.m, s.d[i]);
  check_entries(im, &u, all);
  u.rows = EX_VIEW(im, ex_move_dim(im, x, axis, 0), u.n, u.m);
  if (u.m == 1)
    sort_numbers(im, &u);
  else
    compare_rows(im, &u);
  if (!sorted)
    keep_order(im, &u);
  else if (u.m != 1)
    sort_rows(im, &u);
  ValueId order = result_order(im, &u);
  ValueId entries = axis == 0 ? taken(im, &u, x, order) : ex_index_select(im, x, axis, order),
          counts = taken(im, &u, u.count, order), found[] = {entries, order, u.rank, counts};
  for (uint32_t i = 0; i < COUNT_OF(found); i++)
    if (outputs[i] >= 0)
      out(im, (uint32_t)outputs[i], found[i]);
}

void translate_unique(Import *im) {
  unique(im, attr_flag(im, "sorted", true), (const int[]){0, 1, 2, 3});
}

void translate_microsoft_unique(Import *im) { unique(im, false, (const int[]){0, -1, 1, 2}); }

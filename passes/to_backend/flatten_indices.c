/* Elements and rows at tuples of indices, by one index each:
 *   x[i, j]      ->  x.view(n * m, ...)[flat],  flat = (0, m, 2m, ...)[i] + (0, 1, ..., m - 1)[j]
 *   x[i, j] = y, x[i, j] += y  likewise
 *   x[i] = y     ->  cat(x, y)[from],  from = 0, 1, ..., n - 1 with from[i] = n, n + 1, ...
 * Why: index.Tensor with one index copies rows, 14 ns each and what memcpy takes; with several it
 * finds each element by divisions, 17 ns for each index, and so does index_put (ExecuTorch 1.4.1).
 * Indices are looked up in tables, since that counts negative ones from the end and ends the call
 * where one is out of bounds. */
#include "ir/builder.h"
#include "passes/pass.h"

/* Times in ns, measured on x86-64. */
enum {
  TIME_ELEMENT = 17, /* of an element, for each index of its tuple */
  TIME_LOOK_UP = 5,  /* of an index in a table, and adding what is found */
  TIME_ROW = 14,     /* of a row that is copied */
  TIME_COUNT = 2,    /* of a number of a table that counts up */
  TIME_CALLS = 2000, /* of the further kernel calls */
  ELEMENTS_A_NS = 4, /* that are copied in rows */
  COPY_MAX = 1 << 20 /* elements that x and y may have to be joined */
};

typedef struct Indexed {
  ValueId x, values;    /* values: 0 where x is read */
  ValueId at[MAX_RANK]; /* of the first dims of x */
  uint32_t tuple, rank; /* how many; rank of x */
  bool add;
  int64_t tuples;           /* how many are expected */
  int64_t row, rows, names; /* elements of a row; at most so many rows, and entries of all dims */
} Indexed;

static bool count_rows(const Graph *g, Indexed *r) {
  const SymTable *t = &g->syms;
  r->row = r->rows = 1;
  for (uint32_t i = 0; i < r->rank; i++) {
    SymInt size = value_dim(g, r->x, i);
    int64_t most = sym_upper(t, size);
    bool named = i < r->tuple;
    if ((!named && !sym_is_const(size)) ||
        !mul_i64(named ? r->rows : r->row, most, named ? &r->rows : &r->row))
      return false;
    r->names += named ? most : 0;
  }
  return r->row > 0 && r->rows > 0;
}

/* Rows are written into what the caller passes, as caches are, in which the calls that write few
 * rows count: those that are not named are copied. */
static bool writes_operand(const Graph *g, const Indexed *r) {
  return r->values && !r->add && !value_def(g, r->x) && !value_is_const(g, r->x);
}

/* Tuples are as many as the largest index has entries, for the others are broadcast. Where their
 * number varies, the mean of its bounds is expected. */
static bool count_tuples(const Graph *g, Indexed *r) {
  for (uint32_t k = 0; k < r->tuple; k++) {
    int64_t least = 1, most = 1;
    for (uint32_t i = 0; i < value_rank(g, r->at[k]); i++) {
      SymInt size = value_dim(g, r->at[k], i);
      if (!mul_i64(least, sym_lower(&g->syms, size), &least) ||
          !mul_i64(most, sym_upper(&g->syms, size), &most) || most >= INT32_MAX)
        return false;
    }
    r->tuples = max_i64(r->tuples, writes_operand(g, r) ? least : (least + most) / 2);
  }
  return r->tuples > 0 && r->rows < INT32_MAX && r->row < INT32_MAX;
}

static bool read_indexed(const Graph *g, NodeId n, Indexed *r) {
  bool put = node_cget(g, n)->op == OP_INDEX_PUT;
  *r = (Indexed){.x = node_value(g, n, 0),
                 .values = put ? node_value(g, n, 2) : 0,
                 .tuple = node_list_count(g, n, 1),
                 .add = put && node_bool(g, n, 3)};
  r->rank = value_rank(g, r->x);
  for (uint32_t k = 0; k < r->tuple; k++) {
    r->at[k] = node_list_value(g, n, 1, k);
    if (!r->at[k] || value_dtype(g, r->at[k]) != DTYPE_I64)
      return false;
  }
  return count_rows(g, r) && count_tuples(g, r);
}

/* x[at] along the first dim, with the dims `to`; only an index of one dim copies rows. */
static ValueId rows_at(Builder *b, ValueId x, ValueId at, Dims to) {
  Dims dims = value_dims(b->g, at);
  SymInt all = sym_product(&b->g->syms, dims.d, dims.rank);
  ValueId index = dims.rank == 1 ? at : build_view(b, at, &all, 1),
          y = build(b, OP_INDEX_TENSOR, A_VAL(x), A_VALS(&index, 1));
  return dims.rank == 1 ? y : build_view_as(b, y, to);
}

/* 0, step, 2 * step, ...: size of them. */
static ValueId count_up(Builder *b, SymInt size, SymInt step) {
  if (!sym_is_const(step)) { /* which arange does not take */
    ValueId places = build(b, OP_ARANGE, A_INT(size), A_DTYPE(DTYPE_I64)),
            by = build(b, OP_SCALAR_TENSOR, A_INT(step), A_DTYPE(DTYPE_I64));
    return build_binary(b, OP_MUL_TENSOR, places, by);
  }
  SymInt end = sym_mul(&b->g->syms, size, step);
  return build(b, OP_ARANGE_START_STEP, A_INT(0), A_INT(end), A_INT(step), A_DTYPE(DTYPE_I64));
}

/* The place of an entry of a dim, looked up by its index. */
static ValueId looked_up(Builder *b, SymInt size, SymInt step, ValueId at) {
  return rows_at(b, count_up(b, size, step), at, value_dims(b->g, at));
}

static ValueId flat_index(Builder *b, const Indexed *r) {
  SymTable *t = &b->g->syms;
  Dims dims = value_dims(b->g, r->x);
  ValueId flat = 0;
  for (uint32_t k = 0; k < r->tuple; k++) {
    SymInt step = sym_product(t, dims.d + k + 1, r->tuple - k - 1);
    ValueId place = looked_up(b, dims.d[k], step, r->at[k]);
    flat = flat ? build(b, OP_ADD_TENSOR, A_VAL(flat), A_VAL(place), A_INT(1)) : place;
  }
  return flat;
}

/* x with the dims that a tuple names as one. */
static ValueId as_rows(Builder *b, const Indexed *r) {
  Dims dims = value_dims(b->g, r->x);
  Dims rows = {.d = {sym_product(&b->g->syms, dims.d, r->tuple)}, .rank = 1};
  for (uint32_t i = r->tuple; i < dims.rank; i++)
    rows.d[rows.rank++] = dims.d[i];
  return build_view_as(b, r->x, rows);
}

/* Whether tuples as one index take less time, where a row takes that long then. */
static bool flat_pays(const Indexed *r, double row_time) {
  double many = (double)r->tuples, now = many * (double)r->row * TIME_ELEMENT * r->tuple,
         then = many * (TIME_LOOK_UP * r->tuple + row_time) + (double)r->names * TIME_COUNT +
                TIME_CALLS;
  return then < now;
}

static ValueId read_rows(Builder *b, NodeId n) {
  Indexed r;
  if (!read_indexed(b->g, n, &r))
    return 0;
  Dims dims = value_dims(b->g, node_result(b->g, n, 0));
  if (r.tuple == 1)
    return value_rank(b->g, r.at[0]) > 1 ? rows_at(b, r.x, r.at[0], dims) : 0;
  if (!flat_pays(&r, TIME_ROW + (double)r.row / ELEMENTS_A_NS))
    return 0;
  ValueId rows = as_rows(b, &r), flat = flat_index(b, &r);
  return rows_at(b, rows, flat, dims);
}

/* There is a row of values for each entry of the index, and copying all rows takes less time. */
static bool replaces_rows(Graph *g, const Indexed *r) {
  Dims dims = value_dims(g, r->at[0]), values = value_dims(g, r->values);
  SymInt count = sym_product(&g->syms, dims.d, dims.rank);
  if (r->add || value_dtype(g, r->values) != value_dtype(g, r->x) ||
      dims.rank + r->rank - 1 > MAX_RANK)
    return false;
  for (uint32_t i = 1; i < r->rank; i++)
    dims.d[dims.rank++] = value_dim(g, r->x, i);
  double elements = (double)r->row, many = (double)r->tuples, all = (double)r->rows + many,
         now = many * elements * TIME_ELEMENT,
         then = many * TIME_ELEMENT + (double)r->rows * TIME_ROW +
                all * (TIME_COUNT + 2 * elements / ELEMENTS_A_NS) + TIME_CALLS;
  int64_t most = sym_upper(&g->syms, count);
  return dims_same(dims.d, dims.rank, values.d, values.rank) && then < now && most < INT32_MAX &&
         elements * (double)(r->rows + most) <= COPY_MAX;
}

static ValueId put_rows(Builder *b, const Indexed *r) {
  Graph *g = b->g;
  Dims dims = value_dims(g, r->x), at = value_dims(g, r->at[0]);
  SymInt rows = dims.d[0], more = sym_product(&g->syms, at.d, at.rank),
         end = sym_add(&g->syms, rows, more);
  dims.d[0] = more;
  ValueId index = build_view(b, r->at[0], &more, 1), values = build_view_as(b, r->values, dims);
  ValueId own = build(b, OP_ARANGE, A_INT(rows), A_DTYPE(DTYPE_I64)),
          put =
              build(b, OP_ARANGE_START_STEP, A_INT(rows), A_INT(end), A_INT(1), A_DTYPE(DTYPE_I64)),
          from = build(b, OP_INDEX_PUT, A_VAL(own), A_VALS(&index, 1), A_VAL(put), A_BOOL(false));
  ValueId both[] = {r->x, values}, all = build(b, OP_CAT, A_VALS(both, 2), A_INT(0));
  return build(b, OP_INDEX_TENSOR, A_VAL(all), A_VALS(&from, 1));
}

static ValueId write_rows(Builder *b, NodeId n) {
  Graph *g = b->g;
  Indexed r;
  if (!read_indexed(g, n, &r))
    return 0;
  if (r.tuple == 1)
    return replaces_rows(g, &r) ? put_rows(b, &r) : 0;
  if (!flat_pays(&r, TIME_ELEMENT * (double)r.row))
    return 0;
  Indexed flat = r;
  flat.x = as_rows(b, &r);
  flat.at[0] = flat_index(b, &r);
  flat.tuple = 1;
  flat.rank = value_rank(g, flat.x);
  ValueId y = replaces_rows(g, &flat) ? put_rows(b, &flat)
                                      : build(b, OP_INDEX_PUT, A_VAL(flat.x), A_VALS(flat.at, 1),
                                              A_VAL(r.values), A_BOOL(r.add));
  return build_view_as(b, y, value_dims(g, r.x));
}

Status pass_flatten_indices(PassContext *p, Graph *g) {
  static const RewriteRule rules[] = {{OP_INDEX_TENSOR, read_rows, "reads"},
                                      {OP_INDEX_PUT, write_rows, "writes"}};
  return pass_rewrite(p, g, rules, COUNT_OF(rules));
}

/* Folding while building, see fold.h: elements that are known although they may be symbolic. */
#include "interp/fold_known.h"

#include <math.h>

#include "interp/interp.h"

void fold_set_contents(Fold *f, ValueId v, const SymInt *values, uint32_t count) {
  if (v >= f->capacity) {
    uint32_t old = f->capacity, wanted = v + 1;
    f->contents = pool_reserve(f->contents, &f->capacity, wanted, sizeof *f->contents);
    memset(f->contents + old, 0, (f->capacity - old) * sizeof *f->contents);
  }
  SymInt *copy = ARENA_ARRAY(&f->arena, SymInt, count + 1);
  if (count)
    memcpy(copy, values, count * sizeof *copy);
  f->contents[v] = copy;
}

/* Exporters compute some sizes in floats. */
static bool is_whole_float(DType t) { return t == DTYPE_F16 || t == DTYPE_F32 || t == DTYPE_F64; }

/* Elements of a small static tensor type that can hold sizes. */
static bool small_type(const Type *t, uint32_t *count) {
  DType dtype = (DType)t->dtype;
  if (t->kind != TYPE_TENSOR ||
      !(dtype_is_int(dtype) || dtype == DTYPE_BOOL || is_whole_float(dtype)) || dtype == DTYPE_U64)
    return false;
  uint64_t n = 1;
  for (uint32_t i = 0; i < t->rank; i++)
    if (!sym_is_const(t->dims[i]) || !mul_u64(n, (uint64_t)t->dims[i], &n) || n > FOLD_CONTENTS_MAX)
      return false;
  *count = (uint32_t)n;
  return true;
}

const SymInt *fold_contents(Fold *f, const Graph *g, ValueId v, Arena *arena, uint32_t *count) {
  if (!small_type(value_type(g, v), count))
    return NULL;
  if (!value_is_const(g, v))
    return v < f->capacity ? f->contents[v] : NULL;
  Tensor t = interp_constant(g, v, arena);
  SymInt *values = ARENA_ARRAY(arena, SymInt, *count + 1);
  for (uint32_t i = 0; i < *count; i++) {
    bool is_float = is_whole_float(t.dtype);
    double value = is_float ? tensor_load(&t, i) : 0;
    if (fabs(value) > (double)sym_exact_max(DTYPE_F32) || (value == 0 && signbit(value)) ||
        !(is_float ? sym_from_float(value, &values[i])
                   : sym_from_number(tensor_load_int(&t, i), &values[i])))
      return NULL;
  }
  return values;
}

typedef struct Known {
  Fold *f;
  Graph *g;
  NodeId n;
  uint32_t count; /* of the result */
  SymInt *out;    /* all of them are written where the result is known */
} Known;

static const SymInt *operand(Known *k, uint32_t arg, uint32_t *count) {
  const Arg *a = node_arg(k->g, k->n, arg);
  return a->kind == ARG_VALUE && k->g->uses[a->at].value
             ? fold_contents(k->f, k->g, k->g->uses[a->at].value, &k->f->scratch, count)
             : NULL;
}

static bool known_copy(Known *k) {
  uint32_t count;
  const SymInt *x = operand(k, 0, &count);
  if (!x || count != k->count)
    return false;
  memcpy(k->out, x, count * sizeof *x);
  return true;
}

/* What v is a view of. */
static ValueId unviewed(const Graph *g, ValueId v) {
  DType dtype = value_dtype(g, v);
  NodeId n = value_def(g, v);
  while (n && op_has_trait(node_cget(g, n)->op, OP_VIEW) && value_dtype(g, v) == dtype)
    n = value_def(g, v = node_value(g, n, 0));
  return v;
}

enum { STEPS_MAX = 8 };

/* A computation of sizes in floats, of its last step to its first. */
typedef struct Steps {
  SymStepKind kinds[STEPS_MAX];
  bool minus[STEPS_MAX];
  Tensor by[STEPS_MAX]; /* of one element, or of one for each size */
  uint32_t count;
  const SymInt *sizes;
} Steps;

static bool step_kind(const Graph *g, NodeId n, SymStepKind *kind, bool *minus) {
  OpId op = node_cget(g, n)->op;
  *minus = op == OP_SUB_TENSOR;
  *kind = op == OP_MUL_TENSOR ? SYM_TIMES : op == OP_DIV_TENSOR ? SYM_OVER : SYM_PLUS;
  if (op == OP_ADD_TENSOR || op == OP_SUB_TENSOR)
    return node_arg(g, n, 2)->kind == ARG_INT && node_int(g, n, 2) == 1;
  return op == OP_MUL_TENSOR || op == OP_DIV_TENSOR;
}

/* The step that makes *v, which becomes the value that it is made of. */
static bool add_step(Known *k, Steps *s, ValueId *v) {
  Graph *g = k->g;
  NodeId n = value_def(g, *v);
  uint32_t i = s->count;
  if (!n || i == STEPS_MAX || !step_kind(g, n, &s->kinds[i], &s->minus[i]))
    return false;
  OpId op = node_cget(g, n)->op;
  bool swap =
      (op == OP_MUL_TENSOR || op == OP_ADD_TENSOR) && value_is_const(g, node_value(g, n, 0));
  ValueId by = node_value(g, n, !swap);
  if (!value_is_const(g, by) || value_dtype(g, by) != value_dtype(g, *v))
    return false;
  s->by[i] = interp_constant(g, by, &k->f->scratch);
  int64_t given = tensor_numel(&s->by[i]);
  s->count++;
  *v = unviewed(g, node_value(g, n, swap));
  return given == 1 || given == k->count;
}

/* Back to where sizes are known. */
static bool find_steps(Known *k, Steps *s) {
  uint32_t count;
  ValueId v = unviewed(k->g, node_value(k->g, k->n, 0));
  s->count = 0;
  while (!(s->sizes = fold_contents(k->f, k->g, v, &k->f->scratch, &count)))
    if (!add_step(k, s, &v))
      return false;
  return count == k->count && s->count;
}

/* Sizes that floats compute of sizes and numbers, rounded, as exporters write scales and numbers of
 * windows. */
static bool known_computed(Known *k, SymRounding rounding) {
  DType dtype = value_dtype(k->g, node_value(k->g, k->n, 0));
  Steps s;
  if (!is_whole_float(dtype) || !find_steps(k, &s))
    return false;
  for (uint32_t i = 0; i < k->count; i++) {
    SymStep steps[STEPS_MAX];
    for (uint32_t j = 0; j < s.count; j++) {
      const Tensor *by = &s.by[s.count - 1 - j];
      double number = tensor_load(by, tensor_numel(by) == 1 ? 0 : i);
      steps[j] = (SymStep){s.kinds[s.count - 1 - j], s.minus[s.count - 1 - j] ? -number : number};
    }
    if (!sym_computed(&k->g->syms, s.sizes[i], steps, s.count, dtype, rounding, &k->out[i]))
      return false;
  }
  return true;
}

static bool known_unary(Known *k) {
  if (!known_copy(k))
    return false;
  for (uint32_t i = 0; i < k->count; i++)
    k->out[i] = fold_unary(&k->g->syms, node_cget(k->g, k->n)->op, k->out[i]);
  return true;
}

static bool known_cast(Known *k) {
  DType to = value_dtype(k->g, node_result(k->g, k->n, 0)),
        from = value_dtype(k->g, node_value(k->g, k->n, 0));
  if (to == DTYPE_BOOL)
    return known_unary(k);
  return (dtype_is_int(from) || is_whole_float(from) || from == DTYPE_BOOL) &&
         (to == DTYPE_I64 || to == DTYPE_I32 || is_whole_float(to)) &&
         (known_copy(k) || (dtype_is_int(to) && known_computed(k, SYM_TRUNC)));
}

static bool known_scalar(Known *k) {
  const Arg *a = node_arg(k->g, k->n, 0);
  DType dtype = value_dtype(k->g, node_result(k->g, k->n, 0));
  if (a->kind != ARG_INT || (dtype != DTYPE_I64 && dtype != DTYPE_I32 && !is_whole_float(dtype)))
    return false;
  k->out[0] = a->i;
  return true;
}

/* A row: what the dims from the concatenated one on have. */
static bool known_cat(Known *k) {
  const Type *to = value_type(k->g, node_result(k->g, k->n, 0));
  int64_t axis = wrap_dim(node_int(k->g, k->n, 1), to->rank);
  uint32_t rows = 1, at = 0;
  for (int64_t d = 0; d < axis; d++)
    rows *= (uint32_t)to->dims[d];
  uint32_t width = rows ? k->count / rows : 0;
  for (uint32_t i = 0; rows && i < node_list_count(k->g, k->n, 0); i++) {
    uint32_t count;
    const SymInt *x =
        fold_contents(k->f, k->g, node_list_value(k->g, k->n, 0, i), &k->f->scratch, &count);
    uint32_t part = x ? count / rows : 0;
    if (!x || at + part > width)
      return false;
    for (uint32_t r = 0; r < rows; r++)
      memcpy(k->out + r * width + at, x + r * part, part * sizeof *x);
    at += part;
  }
  return at == width;
}

/* Which entries of a dim are picked: index[j], or without an index start + j * step. */
typedef struct Pick {
  int64_t axis, start, step;
  const SymInt *index;
  uint32_t index_count;
} Pick;

static bool read_pick(Known *k, OpId op, uint32_t rank, Pick *p) {
  *p = (Pick){.step = 1};
  if (op == OP_FLIP && node_list_count(k->g, k->n, 1) != 1)
    return false;
  p->axis = wrap_dim(op == OP_FLIP ? node_ints(k->g, k->n, 1)[0] : node_int(k->g, k->n, 1), rank);
  if (op == OP_FLIP)
    p->start = p->step = -1;
  if (op == OP_INDEX_SELECT)
    p->index = operand(k, 2, &p->index_count);
  if (op == OP_SELECT_COPY_INT)
    p->start = node_int(k->g, k->n, 2);
  if (op == OP_SLICE_COPY_TENSOR) {
    p->start = node_int_or(k->g, k->n, 2, 0);
    p->step = node_int(k->g, k->n, 4);
  }
  return sym_is_const(p->start) && sym_is_const(p->step) && (op != OP_INDEX_SELECT || p->index);
}

/* slice, select, index_select and flip: of each run of `size` entries along a dim the picked ones.
 */
static bool known_pick(Known *k) {
  uint32_t count;
  OpId op = node_cget(k->g, k->n)->op;
  const SymInt *x = operand(k, 0, &count);
  const Type *from = value_type(k->g, node_value(k->g, k->n, 0)),
             *to = value_type(k->g, node_result(k->g, k->n, 0));
  Pick p;
  if (!x || !count || from->rank == 0 || !read_pick(k, op, from->rank, &p))
    return false;
  uint32_t size = (uint32_t)from->dims[p.axis],
           picked = op == OP_SELECT_COPY_INT ? 1 : (uint32_t)to->dims[p.axis],
           inner = (uint32_t)dims_count(from->dims, (uint32_t)p.axis + 1, from->rank);
  if (p.index && p.index_count != picked)
    return false;
  if (p.start < 0)
    p.start += size;
  for (uint32_t i = 0; i < k->count; i++) {
    uint32_t j = i / inner % picked;
    int64_t at = p.index ? p.index[j] : p.start + (int64_t)j * p.step;
    if (at < 0 || at >= size)
      return false;
    k->out[i] = x[(i / inner / picked * size + (uint32_t)at) * inner + i % inner];
  }
  return true;
}

static bool known_permute(Known *k) {
  uint32_t count, strides[MAX_RANK + 1] = {0};
  const SymInt *x = operand(k, 0, &count);
  const Type *from = value_type(k->g, node_value(k->g, k->n, 0)),
             *to = value_type(k->g, node_result(k->g, k->n, 0));
  if (!x || count != k->count)
    return false;
  strides[from->rank] = 1;
  for (uint32_t d = from->rank; d-- > 0;)
    strides[d] = strides[d + 1] * (uint32_t)from->dims[d];
  for (uint32_t i = 0; i < count; i++) {
    uint32_t rest = i, at = 0;
    for (uint32_t d = to->rank; d-- > 0; rest /= (uint32_t)to->dims[d]) {
      int64_t source = node_ints(k->g, k->n, 1)[d];
      at += rest % (uint32_t)to->dims[d] * strides[(source < 0 ? source + from->rank : source) + 1];
    }
    k->out[i] = x[at];
  }
  return true;
}

/* The places that scatter or index_put write to, if one number names each. */
static const SymInt *written_places(Known *k, bool by_rows, uint32_t *count) {
  if (!by_rows)
    return operand(k, 2, count);
  ValueId rows = node_list_count(k->g, k->n, 1) == 1 ? node_list_value(k->g, k->n, 1, 0) : 0;
  return rows && dtype_is_int(value_dtype(k->g, rows))
             ? fold_contents(k->f, k->g, rows, &k->f->scratch, count)
             : NULL;
}

static bool write_size(Known *k, SymInt at, SymInt with, bool add) {
  if (!sym_is_const(at) || at < -(int64_t)k->count || at >= k->count)
    return false;
  SymInt *to = &k->out[wrap_dim(at, k->count)];
  *to = add ? sym_add(&k->g->syms, *to, with) : with;
  return true;
}

/* scatter, scatter_add and index_put into a list: so exporters replace one size of a shape. */
static bool known_scatter(Known *k) {
  OpId op = node_cget(k->g, k->n)->op;
  bool by_rows = op == OP_INDEX_PUT,
       add = by_rows ? node_bool(k->g, k->n, 3) : op == OP_SCATTER_ADD, known = true;
  uint32_t updates, places;
  if (value_rank(k->g, node_result(k->g, k->n, 0)) != 1)
    return false;
  const SymInt *update = operand(k, by_rows ? 2 : 3, &updates),
               *place = written_places(k, by_rows, &places);
  if (!update || !place || (updates != places && updates != 1) || !known_copy(k))
    return false;
  for (uint32_t i = 0; i < places && known; i++)
    known = write_size(k, place[i], update[updates == 1 ? 0 : i], add);
  return known;
}

/* Element i of an operand broadcast to the result; only a single element or the same count
 * broadcasts here. */
static bool binary_operands(Known *k, const SymInt **a, const SymInt **b, uint32_t *na,
                            uint32_t *nb) {
  *a = operand(k, 0, na);
  *b = operand(k, 1, nb);
  return *a && *b && (*na == k->count || *na == 1) && (*nb == k->count || *nb == 1);
}

static bool known_binary(Known *k) {
  const SymInt *a, *b;
  uint32_t na, nb;
  if (!binary_operands(k, &a, &b, &na, &nb))
    return false;
  for (uint32_t i = 0; i < k->count; i++) {
    SymInt x = a[na == 1 ? 0 : i], y = b[nb == 1 ? 0 : i];
    if (!fold_binary(k->g, k->n, x, y, &k->out[i]))
      return false;
  }
  return true;
}

/* An operand with as many elements as the result, or one for all. */
static const SymInt *broadcast(Known *k, uint32_t arg, uint32_t *count) {
  const SymInt *x = operand(k, arg, count);
  return x && (*count == k->count || *count == 1) ? x : NULL;
}

static bool known_where(Known *k) {
  uint32_t nc, na, nb;
  const SymInt *c = broadcast(k, 0, &nc), *a = broadcast(k, 1, &na), *b = broadcast(k, 2, &nb);
  if (!c || !a || !b)
    return false;
  for (uint32_t i = 0; i < k->count; i++) {
    SymInt yes = a[na == 1 ? 0 : i], no = b[nb == 1 ? 0 : i];
    k->out[i] = fold_choice(&k->g->syms, c[nc == 1 ? 0 : i], yes, no);
  }
  return true;
}

/* Limits all elements of the result by an operand of clamp: none, a number, or a tensor. */
static bool limit(Known *k, uint32_t arg, SymInt of(SymTable *t, SymInt a, SymInt b)) {
  if (node_absent(k->g, k->n, arg))
    return true;
  SymInt number;
  const SymInt *by = &number;
  uint32_t count = 1;
  if (node_arg(k->g, k->n, arg)->kind == ARG_VALUE)
    by = broadcast(k, arg, &count);
  else if (!sym_from_float(node_scalar(k->g, k->n, arg), &number))
    return false;
  for (uint32_t i = 0; by && i < k->count; i++)
    k->out[i] = of(&k->g->syms, k->out[i], by[count == 1 ? 0 : i]);
  return by;
}

/* Where the limits are the wrong way round, the upper one. */
static bool known_clamp(Known *k) {
  return known_copy(k) && limit(k, 1, sym_max) && limit(k, 2, sym_min);
}

static bool known_fill(Known *k) {
  uint32_t count;
  const SymInt *x = operand(k, 0, &count);
  if (!x || count != 1)
    return known_copy(k);
  for (uint32_t i = 0; i < k->count; i++)
    k->out[i] = x[0];
  return true;
}

/* All elements of a list as one. An empty one has a product only. */
static bool known_reduced(Known *k, SymInt of(SymTable *t, SymInt a, SymInt b)) {
  uint32_t count;
  const SymInt *x = operand(k, 0, &count);
  if (!x || k->count != 1 || value_rank(k->g, node_value(k->g, k->n, 0)) > 1 ||
      (!count && of != sym_mul))
    return false;
  k->out[0] = count ? x[0] : 1;
  for (uint32_t i = 1; i < count; i++)
    k->out[0] = of(&k->g->syms, k->out[0], x[i]);
  return true;
}

static bool known_least(Known *k) { return known_reduced(k, sym_min); }
static bool known_greatest(Known *k) { return known_reduced(k, sym_max); }
static bool known_prod(Known *k) { return known_reduced(k, sym_mul); }

static bool known_floor(Known *k) { return known_copy(k) || known_computed(k, SYM_FLOOR); }
static bool known_ceil(Known *k) { return known_copy(k) || known_computed(k, SYM_CEIL); }

/* The same bytes, other numbers. */
static bool never_known(Known *k) {
  (void)k;
  return false;
}

typedef bool KnownFn(Known *k);

/* The function that finds known elements of the result of n; NULL: not for this op. */
static KnownFn *known_by(const Graph *g, NodeId n) {
  static KnownFn *const rows[OP_COUNT] = {
      [OP_TO_COPY] = known_cast,
      [OP_FLOOR] = known_floor,
      [OP_CLONE] = known_copy,
      [OP_CEIL] = known_ceil,
      [OP_ROUND] = known_copy,
      [OP_SCALAR_TENSOR] = known_scalar,
      [OP_CAT] = known_cat,
      [OP_SLICE_COPY_TENSOR] = known_pick,
      [OP_SELECT_COPY_INT] = known_pick,
      [OP_INDEX_SELECT] = known_pick,
      [OP_FLIP] = known_pick,
      [OP_PERMUTE_COPY] = known_permute,
      [OP_SCATTER_SRC] = known_scatter,
      [OP_SCATTER_ADD] = known_scatter,
      [OP_INDEX_PUT] = known_scatter,
      [OP_WHERE_SELF] = known_where,
      [OP_CLAMP] = known_clamp,
      [OP_CLAMP_TENSOR] = known_clamp,
      [OP_NEG] = known_unary,
      [OP_ABS] = known_unary,
      [OP_SIGN] = known_unary,
      [OP_LOGICAL_NOT] = known_unary,
      [OP_EXPAND_COPY] = known_fill,
      [OP_AMAX] = known_greatest,
      [OP_AMIN] = known_least,
      [OP_PROD] = known_prod,
      [OP_PROD_DIM_INT] = known_prod,
      [OP_VIEW_COPY_DTYPE] = never_known,
  };
  const Node *node = node_cget(g, n);
  if (rows[node->op])
    return rows[node->op];
  if (op_has_trait(node->op, OP_VIEW))
    return known_copy;
  return op_has_trait(node->op, OP_ELEMENTWISE) && node->arg_count >= 2 ? known_binary : NULL;
}

/* Whether elements of this type hold all these numbers exactly. */
static bool all_fit(const SymTable *t, DType dtype, const SymInt *values, uint32_t count) {
  if (dtype == DTYPE_I64)
    return true;
  int64_t most = sym_exact_max(dtype), least = -most;
  if (dtype == DTYPE_BOOL) {
    most = 1;
    least = 0;
  } else if (dtype_is_int(dtype)) {
    bool negative = !dtype_is_unsigned(dtype);
    most = ((int64_t)1 << (8 * dtype_size(dtype) - negative)) - 1;
    least = negative ? -most - 1 : 0;
  }
  for (uint32_t i = 0; i < count; i++)
    if (sym_lower(t, values[i]) < least || sym_upper(t, values[i]) > most)
      return false;
  return true;
}

/* One known element needs no kernel but the one that makes a tensor of it: what computed it from
 * other tensors of sizes is left without users. */
static ValueId from_size(Builder *b, NodeId n, SymInt size) {
  const Type t = *value_type(b->g, node_result(b->g, n, 0));
  SymInt dims[MAX_RANK];
  OpId op = node_cget(b->g, n)->op;
  if (op == OP_SCALAR_TENSOR || op_has_trait(op, OP_VIEW) || t.dtype == DTYPE_BOOL)
    return 0;
  for (uint32_t i = 0; i < t.rank; i++)
    dims[i] = 1;
  ValueId v = build(b, OP_SCALAR_TENSOR, A_INT(size), A_DTYPE(t.dtype));
  return t.rank ? build_view(b, v, dims, t.rank) : v;
}

enum { CONDITIONS_MAX = 64 }; /* more are a mask, of which no size is made */

ValueId fold_known(Fold *f, Builder *b, NodeId n) {
  Graph *g = b->g;
  ValueId result = node_result(g, n, 0);
  KnownFn *known_elements = known_by(g, n);
  uint32_t count;
  if (!known_elements || node_cget(g, n)->result_count != 1 ||
      !small_type(value_type(g, result), &count))
    return 0;
  arena_reset(&f->scratch);
  Known k = {f, g, n, count, arena_alloc(&f->scratch, ((size_t)count + 1) * sizeof(SymInt))};
  g->syms.saturated = false;
  bool known = known_elements(&k) && !g->syms.saturated;
  if (g->syms.too_large) { /* not known, then */
    g->syms.too_large = false;
    return 0;
  }
  if (!known || !all_fit(&g->syms, value_dtype(g, result), k.out, count))
    return 0;
  bool constant = true;
  for (uint32_t i = 0; i < count; i++)
    constant &= sym_is_const(k.out[i]);
  if (!constant && count > CONDITIONS_MAX && value_dtype(g, result) == DTYPE_BOOL)
    return 0;
  if (!constant) {
    fold_set_contents(f, result, k.out, count);
    return count == 1 ? from_size(b, n, k.out[0]) : 0;
  }
  TypeId type = value_get(g, result)->type;
  const Type *t = type_get(g, type);
  Tensor data = {.dtype = (DType)t->dtype, .rank = 1, .dims = {count}};
  data.data = arena_alloc(&f->scratch, tensor_bytes(&data) + 1);
  data.capacity = tensor_bytes(&data);
  for (uint32_t i = 0; i < count; i++)
    tensor_store_int(&data, i, k.out[i]);
  return graph_add_constant_copy(g, type, data.data, tensor_bytes(&data));
}

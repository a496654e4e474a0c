/* See inspect_internal.h. The live peak as a function of the dims of the inputs.
 *
 * The file has bounds, and ranges of the inputs if it is one of ours. Read back as graphs (read.h)
 * it has a symbol for each dim of a dynamic input, and sizes of values are expressions over them.
 * Each symbol is set to a few sizes, the others stay at their bounds unless the constraints that
 * the shape rules found tie them to it; a size that breaks a constraint is left out, and with it
 * dims that can only have one size. A size that is known only while running counts with its bound.
 */
#include "ir/solve.h"
#include "pte/inspect_internal.h"
#include "pte/read.h"

enum {
  MAX_CURVES = 16,
  MAX_DIMS = 32,       /* that are tried */
  MAX_ROUNDS = 8,      /* of constraints that follow from each other */
  MAX_TERMS = 1 << 20, /* of all expressions, written out: each is computed often */
  UNITS = DIM_SAMPLES - 1
};

typedef struct DimReader {
  const PteMethod *m;
  Graph *g;
  const ValueId *latest;
  Arena *arena; /* of the result */
  Arena scratch;
  PteSpans spans;
  PteSpan *copy;
  SymInt *differences; /* by constraint: of the sides of an equation */
  bool *ignored;       /* by constraint: does not even hold at the bounds */
  int64_t *values;     /* by symbol */
  bool *settled;       /* by symbol: given, or follows from those */
  bool *done;          /* by symbol: in the result */
  uint32_t *moves;     /* by symbol: the sizes at which it was equal to the one looked at */
  InputDim *dims;      /* by symbol; input + 1, 0 = of no input */
} DimReader;

static bool method_is_dynamic(const PteMethod *m) {
  for (uint32_t i = 0; i < m->input_count; i++) {
    const PteValue *v = &m->values[m->inputs[i]];
    if (v->kind == PTE_TENSOR && v->tensor->dynamism != PTE_STATIC)
      return true;
  }
  return false;
}

/* --- sizes --- */

static void reset(DimReader *r) {
  for (uint32_t i = 0; i < r->g->syms.symbol_count; i++) {
    r->values[i] = sym_upper(&r->g->syms, sym_symbol_by_index(&r->g->syms, i));
    r->settled[i] = false;
  }
}

static bool evaluate(const DimReader *r, const Constraint *c, int64_t *lhs, int64_t *rhs) {
  return sym_eval(&r->g->syms, c->lhs, r->values, lhs) &&
         sym_eval(&r->g->syms, c->rhs, r->values, rhs);
}

/* Gives a symbol that is still at its bound another value. */
static bool follow(DimReader *r, SymInt v, int64_t value) {
  if (sym_is_const(v))
    return false;
  const SymExpr *e = sym_expr(&r->g->syms, v);
  if (e->kind != SYM_SYMBOL || r->settled[e->index] || value < e->lo || value > e->hi)
    return false;
  r->settled[e->index] = true;
  r->values[e->index] = value;
  return true;
}

/* Lets a term of a sum that should be 0 take up what it exceeds that by. */
static bool take_up(DimReader *r, const SymExpr *sum, uint32_t term, int64_t excess) {
  int64_t now, factor = sum->coefficients[term];
  return factor && excess % factor == 0 &&
         sym_eval(&r->g->syms, sum->terms[term], r->values, &now) &&
         add_i64(now, -(excess / factor), &now) && follow(r, sum->terms[term], now);
}

/* Makes an equation hold: a side that is a symbol becomes the other side ("total == past + new"),
 * else a symbol in the sum changes ("a + 1 == b + 1"). */
static bool follow_equation(DimReader *r, uint32_t constraint, int64_t lhs, int64_t rhs) {
  const Constraint *c = &r->g->constraints[constraint];
  SymInt difference = r->differences[constraint];
  int64_t excess;
  if (follow(r, c->rhs, lhs) || follow(r, c->lhs, rhs))
    return true;
  if (sym_is_const(difference) || sym_expr(&r->g->syms, difference)->kind != SYM_SUM ||
      !sym_eval(&r->g->syms, difference, r->values, &excess) || excess == INT64_MIN)
    return false;
  const SymExpr *sum = sym_expr(&r->g->syms, difference);
  for (uint32_t i = 0; i < sum->count; i++)
    if (take_up(r, sum, i, excess))
      return true;
  return false;
}

/* Whether the constraints hold, once the symbols that can follow have done so. */
static bool settle(DimReader *r) {
  const Graph *g = r->g;
  for (uint32_t round = 0; round < MAX_ROUNDS; round++) {
    bool holds = true;
    for (uint32_t i = 0; i < g->constraint_count; i++) {
      const Constraint *c = &g->constraints[i];
      int64_t lhs, rhs;
      if (r->ignored[i])
        continue;
      if (!evaluate(r, c, &lhs, &rhs))
        return false;
      if (constraint_holds(c->kind, lhs, rhs))
        continue;
      holds = false;
      if (c->kind != CONSTRAINT_EQ || !follow_equation(r, i, lhs, rhs))
        return false;
    }
    if (holds)
      return true;
  }
  return false;
}

/* Bytes of a value; never more than the file has room for. */
static uint64_t bytes_at(const DimReader *r, uint32_t index) {
  const PteTensor *t = r->m->values[index].tensor;
  ValueId v = r->latest[index];
  if (t->dynamism == PTE_STATIC || !v)
    return t->bytes;
  const Type *type = value_type(r->g, v);
  uint64_t bytes = pte_dtype_size(t->dtype);
  for (uint32_t i = 0; i < type->rank; i++) {
    int64_t dim;
    if (!sym_eval(&r->g->syms, type->dims[i], r->values, &dim))
      return t->bytes;
    if (dim <= 0)
      return 0;
    if (!mul_u64(bytes, (uint64_t)dim, &bytes))
      return t->bytes;
  }
  return bytes < t->bytes ? bytes : t->bytes;
}

static uint64_t peak_at(DimReader *r) {
  for (uint32_t i = 0; i < r->spans.count; i++) {
    r->copy[i] = r->spans.spans[i];
    r->copy[i].size = bytes_at(r, r->copy[i].value);
  }
  Arena arena = {0};
  PteSpans spans = r->spans;
  spans.spans = r->copy;
  uint64_t peak = spans_live_peak(spans, &arena);
  arena_release(&arena);
  return peak;
}

/* --- one dim --- */

/* Whether the peaks lie on a line; all differences fit, as peaks are sums of sizes in memory. */
static void find_line(DimCurve *c) {
  uint32_t last = c->count - 1;
  if (c->count < 3 || c->peaks[last] > INT64_MAX / 2 || c->peaks[0] > INT64_MAX / 2)
    return;
  int64_t rise = (int64_t)c->peaks[last] - (int64_t)c->peaks[0], run = c->sizes[last] - c->sizes[0];
  if (rise % run)
    return;
  c->factor = rise / run;
  c->linear = true;
  int64_t product;
  if (!mul_i64(c->factor, c->sizes[0], &product))
    c->linear = false;
  else
    c->constant = (int64_t)c->peaks[0] - product;
  for (uint32_t i = 0; i < c->count && c->linear; i++)
    c->linear = mul_i64(c->factor, c->sizes[i], &product) &&
                c->peaks[i] == (uint64_t)(c->constant + product);
}

static void add_size(DimReader *r, uint32_t symbol, int64_t size, DimCurve *c) {
  reset(r);
  r->values[symbol] = size;
  r->settled[symbol] = true;
  if (!settle(r))
    return;
  c->sizes[c->count] = size;
  c->peaks[c->count++] = peak_at(r);
  for (uint32_t i = 0; i < r->g->syms.symbol_count; i++)
    r->moves[i] += r->values[i] == size && (i == symbol || r->dims[i].input);
}

static bool find_curve(DimReader *r, uint32_t symbol, DimCurve *c) {
  uint32_t symbols = r->g->syms.symbol_count;
  int64_t bound = sym_upper(&r->g->syms, sym_symbol_by_index(&r->g->syms, symbol)), before = 0;
  *c = (DimCurve){.at = r->dims[symbol]};
  c->at.input--;
  memset(r->moves, 0, symbols * sizeof *r->moves);
  for (int64_t k = 0; k <= UNITS; k++) {
    int64_t size = bound / UNITS * k + bound % UNITS * k / UNITS;
    size = size ? size : 1;
    if (size > before)
      add_size(r, symbol, size, c);
    before = size;
  }
  r->done[symbol] = true;
  if (c->count < 2)
    return false;
  c->equal = ARENA_ARRAY(r->arena, InputDim, symbols);
  for (uint32_t i = 0; i < symbols; i++)
    if (i != symbol && !r->done[i] && r->moves[i] == c->count) {
      r->done[i] = true;
      c->equal[c->equal_count++] = (InputDim){r->dims[i].input - 1, r->dims[i].dim};
    }
  find_line(c);
  return true;
}

/* --- a method --- */

static uint64_t terms_of(const DimReader *r, SymInt v) {
  return sym_is_const(v) ? 1 : sym_expr(&r->g->syms, v)->size;
}

static uint64_t count_terms(const DimReader *r) {
  uint64_t terms = 0;
  for (uint32_t i = 0; i < r->spans.count; i++) {
    const Type *t = value_type(r->g, r->latest[r->spans.spans[i].value]);
    for (uint32_t k = 0; k < t->rank; k++)
      terms += terms_of(r, t->dims[k]);
  }
  for (uint32_t i = 0; i < r->g->constraint_count; i++)
    terms += MAX_ROUNDS *
             (terms_of(r, r->g->constraints[i].lhs) + terms_of(r, r->g->constraints[i].rhs));
  return terms;
}

static void find_dims(DimReader *r) {
  const Graph *g = r->g;
  for (uint32_t i = 0; i < g->input_count; i++) {
    const Type *t = value_type(g, g->inputs[i]);
    for (uint32_t k = 0; k < t->rank; k++)
      if (!sym_is_const(t->dims[k]))
        r->dims[sym_expr(&g->syms, t->dims[k])->index] = (InputDim){i + 1, k};
  }
}

static void prepare_constraints(DimReader *r) {
  reset(r);
  for (uint32_t i = 0; i < r->g->constraint_count; i++) {
    const Constraint *c = &r->g->constraints[i];
    int64_t lhs, rhs;
    r->ignored[i] = !evaluate(r, c, &lhs, &rhs) || !constraint_holds(c->kind, lhs, rhs);
    if (c->kind == CONSTRAINT_EQ)
      r->differences[i] = sym_sub(&r->g->syms, c->lhs, c->rhs);
  }
}

/* --- ranges --- */

/* Of one value of the graph; its dims as the instructions leave them. Inputs of size 0 are seldom
 * meant where the file does not say where a range begins; results may well be empty. */
static PteRange *ranges_of(const DimReader *r, const Solution *s, ValueId v) {
  const Type *t = value_type(r->g, v);
  PteRange *ranges = ARENA_ARRAY(r->arena, PteRange, (size_t)t->rank + 1);
  for (uint32_t i = 0; i < t->rank; i++) {
    SymInt dim = t->dims[i];
    ranges[i] = (PteRange){sym_lower(&r->g->syms, dim), sym_upper(&r->g->syms, dim)};
    if (sym_is_const(dim))
      continue;
    const SymExpr *e = sym_expr(&r->g->syms, dim);
    if (e->kind == SYM_SYMBOL)
      ranges[i] = (PteRange){s->sizes[e->index].lo, s->sizes[e->index].hi};
    bool guessed = e->kind == SYM_SYMBOL && r->dims[e->index].input && !r->m->ranges;
    ranges[i].lo = max_i64(ranges[i].lo, guessed && ranges[i].hi >= 1);
  }
  return ranges;
}

static void find_ranges(DimReader *r, MethodDims *out) {
  Solution s;
  uint32_t outputs = graph_output_count(r->g);
  if (r->g->input_count != r->m->input_count || outputs != r->m->output_count ||
      graph_solve(r->g, &r->scratch, &s) != STATUS_OK)
    return;
  out->inputs = ARENA_ARRAY(r->arena, PteRange *, (size_t)r->g->input_count + 1);
  out->outputs = ARENA_ARRAY(r->arena, PteRange *, (size_t)outputs + 1);
  for (uint32_t i = 0; i < r->g->input_count; i++)
    out->inputs[i] = r->m->ranges ? r->m->ranges[i] : ranges_of(r, &s, r->g->inputs[i]);
  for (uint32_t i = 0; i < outputs; i++)
    out->outputs[i] = ranges_of(r, &s, graph_output(r->g, i));
}

static void method_dims(DimReader *r, MethodDims *out) {
  uint32_t symbols = r->g->syms.symbol_count, tried = 0;
  r->spans = method_spans(r->m, &r->scratch);
  if (count_terms(r) > MAX_TERMS) {
    out->fault = "its sizes are too many, or too long expressions";
    return;
  }
  r->copy = ARENA_ARRAY(&r->scratch, PteSpan, r->spans.count);
  r->ignored = ARENA_ARRAY(&r->scratch, bool, r->g->constraint_count);
  r->differences = ARENA_ARRAY(&r->scratch, SymInt, r->g->constraint_count);
  r->values = ARENA_ARRAY(&r->scratch, int64_t, symbols);
  r->settled = ARENA_ARRAY(&r->scratch, bool, symbols);
  r->done = ARENA_ARRAY(&r->scratch, bool, symbols);
  r->moves = ARENA_ARRAY(&r->scratch, uint32_t, symbols);
  r->dims = ARENA_ARRAY(&r->scratch, InputDim, symbols);
  find_dims(r);
  find_ranges(r, out);
  prepare_constraints(r);
  out->curves = ARENA_ARRAY(r->arena, DimCurve, MAX_CURVES);
  for (uint32_t i = 0; i < symbols; i++) {
    if (!r->dims[i].input || r->done[i])
      continue;
    if (tried++ >= MAX_DIMS || out->count >= MAX_CURVES)
      out->left_out++;
    else
      out->count += find_curve(r, i, &out->curves[out->count]);
  }
}

static void drop(void *user, const char *text, size_t size) {
  (void)user;
  (void)text;
  (void)size;
}

static void read_dims(const PteProgram *p, Arena *arena, MethodDims *out) {
  DiagSink sink;
  Context ctx;
  PteFile file;
  diag_sink_init(&sink);
  sink.write = drop; /* inspect shows also what cannot be read back */
  context_init(&ctx, &sink);
  ctx.readers = p->readers;
  if (pte_read_bytes(&ctx, p->file.path, p->file.data, p->file.size, NULL, &file) != STATUS_OK) {
    for (uint32_t i = 0; i < p->method_count; i++)
      out[i].fault = out[i].dynamic ? diag_row(sink.first_error)->summary : NULL;
  } else {
    for (uint32_t i = 0; i < p->method_count; i++) {
      DimReader r = {
          .m = &p->methods[i], .g = file.methods[i], .latest = file.latest[i], .arena = arena};
      if (out[i].dynamic)
        method_dims(&r, &out[i]);
      arena_release(&r.scratch);
    }
    pte_close(&file);
  }
  context_release(&ctx);
  diag_sink_release(&sink);
}

const MethodDims *program_dims(const PteProgram *p, Arena *arena) {
  MethodDims *out = ARENA_ARRAY(arena, MethodDims, p->method_count);
  bool any = false;
  for (uint32_t i = 0; i < p->method_count; i++) {
    any |= out[i].dynamic = method_is_dynamic(&p->methods[i]);
    out[i].inputs = p->methods[i].ranges; /* also where no more can be read */
  }
  if (any)
    read_dims(p, arena, out);
  return out;
}

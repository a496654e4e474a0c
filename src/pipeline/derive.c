/* See derive.h.
 *
 * The cache is memory for the largest length, a state for each past input. A call writes the rows
 * of its tokens at start_pos, and attends to the rows before their end: past and new length are
 * symbols, start_pos gives the past one its value. So a prefill of many tokens and the step of one
 * are calls of one method, and a host may go back to an earlier position. Mask, positions and cache
 * positions follow from the two lengths. */
#include <inttypes.h>

#include "ir/builder.h"
#include "ir/match.h"
#include "ir/verify.h"
#include "pipeline/derive_parts.h"
#include "support/text.h"

typedef struct Deriver {
  Session *s;
  const struct Derive *d;
  Graph *g;
  Builder start;     /* inserts before the nodes of the model */
  SymInt past, rows; /* lengths before the call and of its tokens */
  ValueId indices;   /* start_pos, start_pos + 1, … */
} Deriver;

static Status refuse(const Deriver *x, const char *format, ...) ETC_PRINTF(2, 3);
static Status refuse(const Deriver *x, const char *format, ...) {
  va_list args;
  va_start(args, format);
  Status status =
      diag_vreport(&x->s->sink, DIAG_DERIVE, context_place(x->g->ctx), "", format, args);
  va_end(args);
  return status;
}

static int find_input(const Deriver *x, Role role) {
  for (uint32_t i = 0; i < x->g->input_count; i++)
    if (derive_role(x->d, value_name(x->g, x->g->inputs[i])) == role)
      return (int)i;
  return -1;
}

/* Past and new length, by the shapes of the inputs. */
static Status find_lengths(Deriver *x) {
  Graph *g = x->g;
  int tokens = find_input(x, ROLE_TOKENS), past = find_input(x, ROLE_PAST);
  if (past < 0)
    return derive_missing(x->s, x->d, ROLE_PAST);
  ValueId ids = g->inputs[tokens], cache = g->inputs[past];
  const Type *t = value_type(g, ids);
  if (t->rank != 2 || t->dims[0] != 1 || (t->dtype != DTYPE_I64 && t->dtype != DTYPE_I32))
    return refuse(x, "input '" SV_FMT "' is not i64[1, n] or i32[1, n]",
                  SV_ARG(x->d->values[KEY_TOKENS]));
  x->rows = t->dims[1];
  if (sym_lower(&g->syms, x->rows) > 1)
    return refuse(x,
                  "input '" SV_FMT "' takes %lld tokens at least, and generating hands over one; "
                  "give its dim the size 1, or a range that begins with 1",
                  SV_ARG(x->d->values[KEY_TOKENS]), (long long)sym_lower(&g->syms, x->rows));
  x->past = -1;
  for (uint32_t i = 0; i < value_rank(g, cache); i++) {
    SymInt dim = value_dim(g, cache, i);
    if (!sym_is_const(dim) && sym_expr(&g->syms, dim)->kind == SYM_SYMBOL)
      x->past = dim;
  }
  if (sym_is_const(x->past))
    return refuse(x, "input '" SV_FMT "' has no dim that grows",
                  SV_ARG(value_name(g, g->inputs[past])));
  return STATUS_OK;
}

/* What follows from neither tokens nor start_pos could only be a constant, as the flag of merged
 * decoders that says whether there are caches. */
static Status check_inputs(const Deriver *x) {
  for (uint32_t i = 0; i < x->g->input_count; i++) {
    StrView name = value_name(x->g, x->g->inputs[i]);
    if (derive_role(x->d, name) != ROLE_NONE)
      continue;
    Diag *d = diag_begin(&x->s->sink, DIAG_DERIVE, context_place(x->g->ctx));
    diag_message(d, "input '" SV_FMT "' does not follow from start_pos", SV_ARG(name));
    if (value_dtype(x->g, x->g->inputs[i]) == DTYPE_BOOL)
      diag_hint(d, "--value %s=1 makes it a constant", shell_word(&x->s->arena, name));
    return diag_end(d);
  }
  return STATUS_OK;
}

static SymInt end_of(Deriver *x) { return sym_add(&x->g->syms, x->past, x->rows); }

/* Runners hand over tokens of 64 bits. */
static Status widen_tokens(Deriver *x) {
  Graph *g = x->g;
  uint32_t position = (uint32_t)find_input(x, ROLE_TOKENS);
  ValueId narrow = g->inputs[position];
  Type t = *value_type(g, narrow);
  if (t.dtype == DTYPE_I64)
    return STATUS_OK;
  TypeId wide = graph_tensor_type(g, DTYPE_I64, t.rank, t.dims, ORDER_CONTIGUOUS);
  ValueId tokens = graph_add_input(g, wide, value_cget(g, narrow)->name);
  ValueId made = build_cast(&x->start, tokens, (DType)t.dtype);
  TRY(x->start.status);
  graph_replace_uses(g, narrow, made);
  graph_remove_input(g, position);
  return STATUS_OK;
}

/* start_pos and what it says. */
static Status add_start(Deriver *x) {
  Graph *g = x->g;
  SymInt one = 1;
  NameId name = intern_add(&g->ctx->names, SV("start_pos"));
  ValueId input =
      graph_add_input(g, graph_tensor_type(g, DTYPE_I64, 1, &one, ORDER_CONTIGUOUS), name);
  ValueId number = build(&x->start, OP_LOCAL_SCALAR_DENSE, A_VAL(input));
  TRY(x->start.status);
  value_set_type(g, number, graph_scalar_type(g, TYPE_INT, x->past, true));
  x->indices = build(&x->start, OP_ARANGE_START_STEP, A_INT(x->past), A_INT(end_of(x)), A_INT(1),
                     A_DTYPE(DTYPE_I64));
  return x->start.status;
}

enum { POSITION_STEPS_MAX = 16 };

/* The rows of the constant table that n reads at v; -1: of none. */
static int64_t table_rows(const Graph *g, NodeId n, ValueId v) {
  int64_t rows = -1;
  FOR_ARG_OPERANDS(g, n, i, w, {
    int64_t dim = w == v ? match_selected_dim(g, n, i, k_) : -1;
    ValueId table = dim >= 0 ? node_value(g, n, 0) : 0;
    if (table && value_is_const(g, table) && dim < value_rank(g, table))
      rows = value_dim(g, table, (uint32_t)dim);
  })
  return rows;
}

/* A table that is read at the positions, of which v has `more` than they are, has a row for each.
 */
static Status check_tables(const Deriver *x, ValueId v, int64_t more, uint32_t steps) {
  const Graph *g = x->g;
  Status status = STATUS_OK;
  for (UseId u = first_use(g, v); u && steps && status == STATUS_OK; u = g->uses[u].next) {
    NodeId n = g->uses[u].node;
    OpId op = (OpId)node_cget(g, n)->op;
    int64_t rows = table_rows(g, n, v), context = sym_upper(&g->syms, x->past) + 1;
    ValueId other = 0;
    double number;
    if (rows >= 0 && rows < context + more) {
      Diag *d = diag_begin(&x->s->sink, DIAG_DERIVE, node_place(g, n));
      diag_message(d, "the table of positions has %" PRId64 " rows, not %" PRId64, rows,
                   context + more);
      diag_hint(d, "give at most --derive llm:context=%" PRId64, rows - more);
      return diag_end(d);
    }
    if (op == OP_ADD_TENSOR)
      other = node_value(g, n, 0) == v ? node_value(g, n, 1) : node_value(g, n, 0);
    if (op_has_trait(op, OP_VIEW) || op == OP_TO_COPY || op == OP_EXPAND_COPY)
      status = check_tables(x, node_result(g, n, 0), more, steps - 1);
    else if (other && match_number(g, other, &number) && number >= 0 && number < INT32_MAX)
      status = check_tables(x, node_result(g, n, 0), more + int_clamped(number, 0, INT32_MAX),
                            steps - 1);
  }
  return status;
}

/* An input that is a function of the two lengths. */
static Status replace_input(Deriver *x, uint32_t position, Role role) {
  Graph *g = x->g;
  ValueId in = g->inputs[position], made;
  Type t = *value_type(g, in);
  SymInt dims[MAX_RANK];
  memcpy(dims, t.dims, t.rank * sizeof *dims);
  SymInt want = role == ROLE_MASK ? end_of(x) : x->rows;
  if (t.rank < 1 || t.rank > 2 || dims[t.rank - 1] != want || (t.rank == 2 && dims[0] != 1))
    return refuse(x, "input '" SV_FMT "' does not have the shape [1, %s]",
                  SV_ARG(value_name(g, g->inputs[position])), role == ROLE_MASK ? "past + n" : "n");
  if (role == ROLE_MASK) {
    made = build(&x->start, OP_FULL, A_INTS(dims, t.rank), A_INT(1), A_DTYPE(t.dtype));
  } else {
    TRY(check_tables(x, in, 0, POSITION_STEPS_MAX));
    made = build_cast(&x->start, x->indices, (DType)t.dtype);
    made = build_view(&x->start, made, dims, t.rank);
  }
  TRY(x->start.status);
  graph_replace_uses(g, in, made);
  graph_remove_input(g, position);
  return STATUS_OK;
}

/* The output that belongs to a past input, or -1. */
static int find_present(const Deriver *x, StrView past) {
  StrView stars;
  (void)text_match(x->d->values[KEY_PAST], past, &stars);
  return graph_find_output(x->g, text_fill(&x->s->arena, x->d->values[KEY_PRESENT], stars));
}

/* The rows that present appends to past: the node is cat([past, rows], axis); 0 if it is not. */
static ValueId appended(const Graph *g, ValueId past, ValueId present, uint32_t *axis) {
  NodeId n = value_def(g, present);
  if (!n || node_cget(g, n)->op != OP_CAT || node_list_count(g, n, 0) != 2 ||
      node_list_value(g, n, 0, 0) != past || !value_used_once(g, past))
    return 0;
  *axis = (uint32_t)wrap_dim(node_int(g, n, 1), value_rank(g, past));
  return node_list_value(g, n, 0, 1);
}

/* Models of float16 whose inputs and outputs stayed float32 convert the past on the way in and the
 * present on the way out, which loses nothing: the cache has their type within. Leaves the
 * conversion of the past without a use. */
static void skip_conversions(Graph *g, ValueId *past, ValueId *present) {
  NodeId in = value_only_user(g, *past), out = value_def(g, *present);
  if (!in || !out || node_cget(g, in)->op != OP_TO_COPY || node_cget(g, out)->op != OP_TO_COPY)
    return;
  ValueId inner = node_result(g, in, 0), made = node_value(g, out, 0);
  DType type = value_dtype(g, inner);
  if (value_dtype(g, *past) != DTYPE_F32 || type != value_dtype(g, made) ||
      (type != DTYPE_F16 && type != DTYPE_BF16))
    return;
  *past = inner;
  *present = made;
}

/* present becomes the first rows of a state, after those of this call were written there. */
static Status make_cache(Deriver *x, uint32_t position) {
  Graph *g = x->g;
  ValueId past = g->inputs[position];
  NameId name = value_cget(g, past)->name;
  int output = find_present(x, value_name(g, past));
  ValueId present = output < 0 ? 0 : graph_output(g, (uint32_t)output);
  if (present)
    skip_conversions(g, &past, &present);
  uint32_t axis = 0;
  ValueId rows = present ? appended(g, past, present, &axis) : 0;
  if (output < 0)
    return refuse(x, "input '" SV_FMT "' has no output like '" SV_FMT "'",
                  SV_ARG(value_name(g, g->inputs[position])), SV_ARG(x->d->values[KEY_PRESENT]));
  Type t = *value_type(g, past);
  if (!rows || t.dims[axis] != x->past || value_dim(g, rows, axis) != x->rows)
    return refuse(x, "output '" SV_FMT "' is not the past with the rows of the tokens appended",
                  SV_ARG(graph_output_text(g, (uint32_t)output)));
  SymInt dims[MAX_RANK];
  memcpy(dims, t.dims, t.rank * sizeof *dims);
  dims[axis] = sym_upper(&g->syms, end_of(x));
  for (uint32_t i = 0; i < t.rank; i++)
    if (!sym_is_const(dims[i]))
      return refuse(x, "dim %u of input '" SV_FMT "' has no size; give it by --dim %s:%u=N", i,
                    SV_ARG(value_name(g, g->inputs[position])),
                    shell_word(&x->s->arena, value_name(g, g->inputs[position])), i);
  TypeId type = graph_tensor_type(g, (DType)t.dtype, t.rank, dims, ORDER_CONTIGUOUS);
  ValueId state = graph_add_state(g, type, 0, name);
  NodeId cat = value_def(g, present);
  Builder b = builder_make(g, cat, node_cget(g, cat)->loc);
  ValueId at[MAX_RANK] = {0};
  at[axis] = x->indices;
  ValueId written = build(&b, OP_INDEX_PUT_, A_VAL(state), A_VALS(at, axis + 1), A_VAL(rows));
  ValueId all = build_slice(&b, written, axis, 0, end_of(x), 1);
  TRY(b.status);
  graph_replace_uses(g, present, all);
  graph_remove_node(g, cat);
  if (value_def(g, past))
    graph_remove_node(g, value_def(g, past));
  graph_remove_input(g, position);
  return STATUS_OK;
}

static Status change_inputs(Deriver *x) {
  for (uint32_t i = 0; i < x->g->input_count;) {
    Role role = derive_role(x->d, value_name(x->g, x->g->inputs[i]));
    if (role == ROLE_MASK || role == ROLE_POSITIONS)
      TRY(replace_input(x, i, role));
    else if (role == ROLE_PAST)
      TRY(make_cache(x, i));
    else
      i++;
  }
  return STATUS_OK;
}

/* Runners sample from the logits of the last token; raise_slices computes only those. Some models
 * have no others: [1, 1, vocabulary] or [1, vocabulary]. */
static Status last_logits(Deriver *x, uint32_t output, ValueId *out) {
  Graph *g = x->g;
  ValueId logits = *out = graph_output(g, output);
  if (value_rank(g, logits) == 2 && value_dim(g, logits, 0) == 1)
    return STATUS_OK;
  if (value_rank(g, logits) != 3 ||
      (value_dim(g, logits, 1) != x->rows && value_dim(g, logits, 1) != 1))
    return refuse(x, "output '" SV_FMT "' is not [1, n, vocabulary]",
                  SV_ARG(x->d->values[KEY_LOGITS]));
  Builder b = builder_make(g, 0, 0);
  *out = build(&b, OP_SELECT_COPY_INT, A_VAL(logits), A_INT(1), A_INT(-1));
  return b.status;
}

static Status set_outputs(Deriver *x, int64_t *vocabulary) {
  Graph *g = x->g;
  int output = graph_find_output(g, x->d->values[KEY_LOGITS]);
  ValueId out = 0;
  if (output < 0)
    return refuse(x, "there is no output '" SV_FMT "'", SV_ARG(x->d->values[KEY_LOGITS]));
  NameId name = graph_output_name(g, (uint32_t)output);
  TRY(last_logits(x, (uint32_t)output, &out));
  *vocabulary = sym_upper(&g->syms, value_dim(g, out, 1));
  graph_set_outputs(g, &out, 1, &name);
  return STATUS_OK;
}

static Status derive_method(Session *s, const Method *m, int64_t *vocabulary, bool *dynamic) {
  Graph *g = m->graph;
  Deriver x = {.s = s, .d = m->options->derive, .g = g, .start = builder_make(g, g->first, 0)};
  TRY(find_lengths(&x));
  TRY(check_inputs(&x));
  TRY(widen_tokens(&x));
  TRY(add_start(&x));
  TRY(change_inputs(&x));
  TRY(set_outputs(&x, vocabulary));
  *dynamic = !sym_is_const(x.rows);
  struct Derive *found = ARENA_NEW(&s->arena, struct Derive);
  *found = *x.d;
  found->prefill = sym_upper(&g->syms, x.rows); /* what --dim and the model leave of them */
  found->context = sym_upper(&g->syms, x.past) + 1;
  m->options->derive = found;
  return graph_verify(g, "deriving");
}

/* --- constant methods --- */

static EtcStatus add_constant(Session *s, const char *name, ConstantItem item) {
  if (session_find_constant(s, sv_from(name)))
    return ETC_OK;
  ConstantItem *copy = ARENA_NEW(&s->arena, ConstantItem);
  *copy = item;
  return session_add_constant(s, sv_from(name), copy, 1);
}

static EtcStatus add_ids(Session *s, const struct Derive *d, int64_t vocabulary, const char *name,
                         DeriveKey key) {
  ConstantItem *items;
  uint32_t count;
  EtcStatus status = derive_ids(s, d, key, &items, &count);
  if (status != ETC_OK || !count || session_find_constant(s, sv_from(name)))
    return status;
  for (uint32_t i = 0; i < count; i++)
    if (items[i].i >= vocabulary)
      return session_usage(s, "--derive", "ids begin with 0; give those of the model's tokenizer",
                           "id %" PRId64 " of %s is not in the vocabulary of %" PRId64 " tokens",
                           items[i].i, name, vocabulary);
  return session_add_constant(s, sv_from(name), items, count);
}

static EtcStatus add_constants(Session *s, const struct Derive *d, int64_t vocabulary,
                               bool dynamic) {
  const struct {
    const char *name;
    ConstantItem item;
  } rows[] = {
      {"get_vocab_size", {.kind = CONSTANT_INT, .i = vocabulary}},
      {"get_max_seq_len", {.kind = CONSTANT_INT, .i = dynamic ? d->prefill : 1}},
      {"get_max_context_len", {.kind = CONSTANT_INT, .i = d->context}},
      {"use_kv_cache", {.kind = CONSTANT_BOOL, .i = true}},
      {"use_sdpa_with_kv_cache", {.kind = CONSTANT_BOOL, .i = false}},
      {"enable_dynamic_shape", {.kind = CONSTANT_BOOL, .i = dynamic}},
  };
  for (size_t i = 0; i < COUNT_OF(rows); i++)
    TRY(add_constant(s, rows[i].name, rows[i].item));
  TRY(add_ids(s, d, vocabulary, "get_bos_id", KEY_BOS));
  return add_ids(s, d, vocabulary, "get_eos_ids", KEY_EOS);
}

Status derive_run(Session *s) {
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    const Method *m = &s->program.methods[i];
    int64_t vocabulary = 0;
    bool dynamic = false;
    Deriver x = {.s = s, .d = m->options->derive, .g = m->graph};
    if (!x.d || m->source->kind != SOURCE_ONNX)
      continue;
    s->ctx.model_path = source_name(m->source);
    if (find_input(&x, ROLE_TOKENS) < 0)
      return derive_missing(s, x.d, ROLE_TOKENS);
    TRY(derive_method(s, m, &vocabulary, &dynamic));
    if (add_constants(s, m->options->derive, vocabulary, dynamic) != ETC_OK)
      return STATUS_INVALID;
  }
  return STATUS_OK;
}

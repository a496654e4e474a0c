/* See suggest.h. */
#include "onnx/suggest.h"

#include "ir/solve.h"
#include "onnx/file/tensor.h"
#include "onnx/translate.h"
#include "onnx/file/weights.h"
#include "support/text.h"

enum {
  MAX_DIMS = 512,
  MAX_ROUNDS = 8,
  MAX_NOTES = 12,
  MAX_PLACES = 4,
  IMAGE = 224,
  OTHER = 32,
  ALONE_MAX = 6, /* most dims of which each is tried alone */
  NODES_MAX = 20000
};

/* Sizes that are tried for all dims but batches when the first guess does not fit; the last ones
 * are for sound, a second of which has often 16,000 samples. */
static const int64_t others[] = {1, 8, 16, 64, 128, 224, 256, 512, 1024, 4096, 16000};

/* Of lists, whose elements stand for the dims of an image or of a value. */
static const int64_t lengths[] = {2, 3, 4};

typedef struct Dim {
  StrView name;
  const Onnx__ValueInfoProto *input; /* the first place */
  size_t axis;
} Dim;

typedef struct Suggester {
  Context *ctx;
  OnnxModel *model;
  const ImportOptions *options;
  Arena *arena;
  Dim *dims;
  uint32_t count;
  DimSuggestions *out;
  Intern initializers;
  StrView name;      /* of the dim that is looked at: no term of itself */
  SymTable *numbers; /* of its terms */
  DimFlag *flags;    /* those given, then one a dim */
  DimFlag *left;     /* of them, by an import */
} Suggester;

/* --- which dims --- */

/* As --dim names it: by dim_param if that is a name, else INPUT:AXIS. */
static StrView name_of(Arena *arena, const Onnx__ValueInfoProto *input, size_t axis) {
  StrView param = onnx_dim_param(onnx_tensor_type(input)->shape->dim[axis]);
  if (!onnx_dim_is_nameless(param))
    return param;
  return sv_from(arena_printf(arena, SV_FMT ":%zu", SV_ARG(onnx_text(input->name)), axis));
}

/* Whether a flag gives that dim: by its dim_param, even one that is no name, or by its place. */
static bool is_given(const ImportOptions *o, const Onnx__ValueInfoProto *input, size_t axis,
                     Arena *arena) {
  StrView param = onnx_dim_param(onnx_tensor_type(input)->shape->dim[axis]);
  const char *place = arena_printf(arena, SV_FMT ":%zu", SV_ARG(onnx_text(input->name)), axis);
  for (uint32_t i = 0; i < o->dim_count; i++)
    if ((param.size && sv_eq(o->dims[i].name, param)) || sv_eq_str(o->dims[i].name, place))
      return true;
  return false;
}

static void add_dim(Suggester *s, const Onnx__ValueInfoProto *input, size_t axis) {
  StrView name = name_of(s->arena, input, axis);
  if (is_given(s->options, input, axis, s->arena))
    return;
  for (uint32_t i = 0; i < s->count; i++)
    if (sv_eq(s->dims[i].name, name))
      return;
  ARENA_PUSH(s->arena, s->dims, s->count, (Dim){name, input, axis});
}

/* Whether a term of a name that is an expression gets its size elsewhere: a symbol stands for it.
 */
static bool has_size(void *user, StrView term, SymInt *size) {
  const Suggester *s = user;
  bool found = false;
  for (uint32_t i = 0; i < s->options->dim_count && !found; i++)
    found = sv_eq(s->options->dims[i].name, term);
  for (uint32_t i = 0; i < s->count && !found; i++)
    found = sv_eq(s->dims[i].name, term) && !sv_eq(term, s->name);
  *size = sym_symbol(s->numbers, term, 1, INT32_MAX, false);
  return found;
}

/* Leaves out the dims that are expressions in others, or numbers. */
static void drop_expressions(Suggester *s) {
  SymTable numbers = {0};
  DimTerms terms = {&numbers, has_size, s};
  s->numbers = &numbers;
  uint32_t kept = 0;
  SymInt size;
  for (uint32_t i = 0; i < s->count; i++) {
    s->name = s->dims[i].name;
    if (!onnx_dim_expression(&terms, s->name, &size))
      s->dims[kept++] = s->dims[i];
  }
  s->count = kept;
  sym_release(&numbers);
}

static void find_dims(Suggester *s) {
  const Onnx__GraphProto *graph = s->model->proto->graph;
  for (size_t i = 0; i < graph->n_input && s->count < MAX_DIMS; i++) {
    const Onnx__TypeProto__Tensor *t = onnx_tensor_type(graph->input[i]);
    if (!t || !t->shape || t->shape->n_dim > MAX_RANK ||
        onnx_is_initializer(&s->initializers, graph->input[i]->name))
      continue;
    for (size_t axis = 0; axis < t->shape->n_dim && s->count < MAX_DIMS; axis++)
      if (!onnx_dim_is_known(t->shape->dim[axis]))
        add_dim(s, graph->input[i], axis);
  }
  drop_expressions(s);
}

/* --- sizes --- */

static bool mentions(StrView name, const char *word) {
  size_t length = strlen(word);
  for (size_t i = 0; i + length <= name.size; i++)
    if (memcmp(name.data + i, word, length) == 0)
      return true;
  return false;
}

static bool is_batch(const Dim *d) { return mentions(d->name, "batch") || d->axis == 0; }

/* A list of numbers, such as a size that the model is given, is no batch after all. */
static bool is_list(const Dim *d) {
  return onnx_tensor_type(d->input)->shape->n_dim == 1 && !mentions(d->name, "batch");
}

/* Height or width: two dims side by side have no size. */
static bool is_image(const Dim *d) {
  const Onnx__TensorShapeProto *shape = onnx_tensor_type(d->input)->shape;
  return shape->n_dim == 4 && !onnx_dim_is_known(shape->dim[2]) &&
         ((d->axis >= 2 && !onnx_dim_is_known(shape->dim[3])) ||
          (d->axis < 3 && !onnx_dim_is_known(shape->dim[1]) && onnx_dim_is_known(shape->dim[3])));
}

static int64_t guess(const Dim *d) { return is_batch(d) ? 1 : is_image(d) ? IMAGE : OTHER; }

/* An import that leaves no trace; *graph may be NULL. Whether it went well; *unsupported: it would
 * not with any sizes. What is said of a part of ONNX may be true for some sizes alone, as of a loop
 * that takes no steps. */
static bool try_import(Suggester *s, Graph **graph, bool *unsupported) {
  ImportOptions options = *s->options;
  DiagSink *sink = s->ctx->sink;
  DiagHold hold;
  Graph *g = NULL;
  options.dims = s->flags;
  options.dim_count += s->count;
  options.left = s->left;
  diag_hold(sink, &hold);
  sink->errors = 0;
  Status status = onnx_import(s->ctx, s->model, &options, &g);
  *unsupported = sink->errors && sink->first_error != DIAG_UNSUPPORTED_FEATURE &&
                 diag_row(sink->first_error)->status == STATUS_UNSUPPORTED;
  diag_drop(&hold);
  diag_let_go(&hold);
  if (graph)
    *graph = g;
  else if (g)
    graph_free(g);
  return status == STATUS_OK;
}

/* The dim whose symbol v is; count when v is an expression. */
static uint32_t dim_of(const Suggester *s, const Graph *g, SymInt v) {
  uint32_t i = 0;
  if (sym_is_const(v) || sym_expr(&g->syms, v)->kind != SYM_SYMBOL)
    return s->count;
  StrView name = sv_from(sym_expr(&g->syms, v)->name);
  while (i < s->count && !sv_eq(s->dims[i].name, name))
    i++;
  return i;
}

static void join(DimSuggestion *dims, uint32_t count, uint32_t a, uint32_t b) {
  uint32_t first = dims[a].equal < dims[b].equal ? dims[a].equal : dims[b].equal,
           last = dims[a].equal < dims[b].equal ? dims[b].equal : dims[a].equal;
  for (uint32_t i = 0; i < count; i++)
    if (dims[i].equal == last)
      dims[i].equal = first;
}

static bool set_value(const Graph *g, SymInt v, int64_t size, int64_t *values) {
  if (sym_is_const(v) || sym_expr(&g->syms, v)->kind != SYM_SYMBOL ||
      size < sym_lower(&g->syms, v) || size > sym_upper(&g->syms, v))
    return false;
  values[sym_expr(&g->syms, v)->index] = size;
  return true;
}

/* Changes a term of a sum that should be 0. */
static bool take_up(const Graph *g, SymInt sum, int64_t excess, int64_t *values) {
  if (sym_is_const(sum) || sym_expr(&g->syms, sum)->kind != SYM_SUM)
    return false;
  const SymExpr *e = sym_expr(&g->syms, sum);
  for (uint32_t i = e->count; i-- > 0;) {
    int64_t factor = e->coefficients[i], now;
    if (factor && excess % factor == 0 && sym_eval(&g->syms, e->terms[i], values, &now) &&
        add_i64(now, -(excess / factor), &now) && set_value(g, e->terms[i], now, values))
      return true;
  }
  return false;
}

/* Lets a relation hold that does not, where one symbol can follow the others. */
static void follow(Graph *g, const Constraint *c, int64_t *values) {
  int64_t lhs, rhs;
  if (!sym_eval(&g->syms, c->lhs, values, &lhs) || !sym_eval(&g->syms, c->rhs, values, &rhs) ||
      constraint_holds(c->kind, lhs, rhs))
    return;
  if (c->kind == CONSTRAINT_DIVISIBLE) {
    if (rhs > 0 && !set_value(g, c->lhs, lhs - lhs % rhs, values))
      (void)set_value(g, c->lhs, lhs - lhs % rhs + rhs, values);
    return;
  }
  if (set_value(g, c->rhs, lhs, values) || set_value(g, c->lhs, rhs, values))
    return;
  if (lhs >= 0 && rhs >= 0)
    (void)take_up(g, sym_sub(&g->syms, c->lhs, c->rhs), lhs - rhs, values);
}

/* Whether an equation says that two dims are equal. */
static bool equal_dims(const Suggester *s, Graph *g, const Constraint *c, uint32_t *a,
                       uint32_t *b) {
  SymInt sum = c->kind == CONSTRAINT_EQ ? sym_sub(&g->syms, c->lhs, c->rhs) : 0;
  if (sym_is_const(sum) || sym_expr(&g->syms, sum)->kind != SYM_SUM)
    return false;
  const SymExpr *e = sym_expr(&g->syms, sum);
  if (e->count != 2 || e->constant ||
      !(e->coefficients[0] == 1 ? e->coefficients[1] == -1
                                : e->coefficients[0] == -1 && e->coefficients[1] == 1))
    return false;
  *a = dim_of(s, g, e->terms[0]);
  *b = dim_of(s, g, e->terms[1]);
  return *a < s->count && *b < s->count;
}

/* Sizes near the guesses for which the relations of the graph hold, as far as that is easy. */
static void settle(Suggester *s, Graph *g) {
  uint32_t symbols = g->syms.symbol_count;
  int64_t *values = ARENA_ARRAY(s->arena, int64_t, (size_t)symbols + 1);
  for (uint32_t i = 0; i < s->count; i++) {
    const DimFlag *left = &s->left[s->options->dim_count + i];
    int64_t *size = &s->out->dims[i].size;
    *size = *size < left->lo ? left->lo : *size > left->hi ? left->hi : *size;
  }
  for (uint32_t i = 0; i < symbols; i++) {
    SymInt v = sym_symbol_by_index(&g->syms, i);
    uint32_t dim = dim_of(s, g, v);
    values[i] = dim < s->count ? s->out->dims[dim].size : sym_upper(&g->syms, v);
  }
  for (uint32_t round = 0; round < MAX_ROUNDS; round++)
    for (uint32_t i = 0; i < g->constraint_count; i++)
      follow(g, &g->constraints[i], values);
  for (uint32_t i = 0; i < symbols; i++) {
    uint32_t dim = dim_of(s, g, sym_symbol_by_index(&g->syms, i));
    if (dim < s->count)
      s->out->dims[dim].size = values[i];
  }
  for (uint32_t i = 0; i < g->constraint_count; i++) {
    uint32_t a, b;
    if (equal_dims(s, g, &g->constraints[i], &a, &b))
      join(s->out->dims, s->count, a, b);
  }
}

static void set_flags(Suggester *s, bool range) {
  for (uint32_t i = 0; i < s->count; i++) {
    int64_t size = s->out->dims[i].size;
    s->flags[s->options->dim_count + i] = range ? (DimFlag){s->dims[i].name, 1, size < 4 ? 4 : size}
                                                : (DimFlag){s->dims[i].name, size, size};
  }
}

/* Gives dim i the size that is tried. */
static void set_size(Suggester *s, uint32_t i, int64_t size) {
  DimFlag *flag = &s->flags[s->options->dim_count + i];
  flag->lo = flag->hi = size;
}

/* Tries the other sizes for the dim `alone` while the rest are 1, as a state beside samples has a
 * batch that no name tells; alone == count: for all dims but batches. */
static void try_others(Suggester *s, uint32_t alone, bool *unsupported) {
  for (size_t k = 0; k < COUNT_OF(others) && !s->out->fits && !*unsupported; k++) {
    for (uint32_t i = 0; i < s->count; i++)
      if (!is_batch(&s->dims[i]))
        set_size(s, i, alone == i || alone == s->count ? others[k] : 1);
    s->out->fits = try_import(s, NULL, unsupported);
  }
}

/* Tries the lengths for all lists, while the rest stay as they were guessed. */
static void try_lengths(Suggester *s, bool *unsupported) {
  bool lists = false;
  for (uint32_t i = 0; i < s->count; i++)
    lists |= is_list(&s->dims[i]);
  for (size_t k = 0; k < COUNT_OF(lengths) && lists && !s->out->fits && !*unsupported; k++) {
    for (uint32_t i = 0; i < s->count; i++)
      if (is_list(&s->dims[i]))
        set_size(s, i, lengths[k]);
    s->out->fits = try_import(s, NULL, unsupported);
  }
}

static void find_sizes(Suggester *s) {
  Graph *g = NULL;
  bool unsupported = false;
  set_flags(s, true);
  if (try_import(s, &g, &unsupported)) {
    settle(s, g);
    graph_free(g);
  }
  set_flags(s, false);
  s->out->fits = try_import(s, NULL, &unsupported);
  if (s->model->proto->graph->n_node > NODES_MAX)
    return;
  try_lengths(s, &unsupported);
  try_others(s, s->count, &unsupported);
  for (uint32_t i = 0; i < s->count && s->count <= ALONE_MAX; i++)
    if (!is_batch(&s->dims[i]))
      try_others(s, i, &unsupported);
  for (uint32_t i = 0; i < s->count && s->out->fits; i++)
    s->out->dims[i].size = s->flags[s->options->dim_count + i].lo;
}

static void suggest(Suggester *s) {
  onnx_initializer_names(s->model, &s->initializers);
  find_dims(s);
  *s->out = (DimSuggestions){.dims = ARENA_ARRAY(s->arena, DimSuggestion, (size_t)s->count + 1),
                             .count = s->count};
  uint32_t given = s->options->dim_count;
  s->flags = ARENA_ARRAY(s->arena, DimFlag, (size_t)given + s->count + 1);
  s->left = ARENA_ARRAY(s->arena, DimFlag, (size_t)given + s->count + 1);
  if (given)
    memcpy(s->flags, s->options->dims, given * sizeof *s->flags);
  for (uint32_t i = 0; i < s->count; i++)
    s->out->dims[i] = (DimSuggestion){s->dims[i].name, guess(&s->dims[i]), i};
  if (s->count)
    find_sizes(s);
}

void suggest_dims(Context *ctx, OnnxModel *model, const ImportOptions *options, Arena *arena,
                  DimSuggestions *out) {
  Suggester s = {.ctx = ctx, .model = model, .options = options, .arena = arena, .out = out};
  suggest(&s);
  intern_release(&s.initializers);
}

/* --- text --- */

void suggest_flags(const DimSuggestions *s, StrBuf *out) {
  StrBuf flag = {0};
  for (uint32_t i = 0; i < s->count; i++) {
    strbuf_clear(&flag);
    strbuf_append(&flag, s->dims[i].name);
    strbuf_printf(&flag, "=%lld", (long long)s->dims[i].size);
    strbuf_append(out, SV(" --dim "));
    strbuf_append_word(out, sv_from(strbuf_cstr(&flag)));
  }
  strbuf_release(&flag);
}

void onnx_append_type(StrBuf *out, const Onnx__ValueInfoProto *value) {
  const Onnx__TypeProto__Tensor *t = onnx_tensor_type(value);
  if (!t) {
    strbuf_append(out, SV("no tensor"));
    return;
  }
  DType dtype = dtype_from_onnx(t->elem_type);
  const char *name = dtype == DTYPE_NONE ? onnx_dtype_name(t->elem_type) : dtype_name(dtype);
  strbuf_append(out, sv_from(name ? name : "?"));
  strbuf_append(out, t->shape ? SV("[") : SV(" of any shape"));
  for (size_t i = 0; t->shape && i < t->shape->n_dim; i++) {
    const Onnx__TensorShapeProto__Dimension *d = t->shape->dim[i];
    strbuf_append(out, i ? SV(", ") : SV(""));
    if (onnx_dim_is_known(d))
      strbuf_printf(out, "%lld", (long long)d->dim_value);
    else
      strbuf_append_printable(out, onnx_dim_param(d).size ? onnx_dim_param(d) : SV("?"));
  }
  strbuf_append(out, t->shape ? SV("]") : SV(""));
}

void onnx_append_value(StrBuf *out, const Onnx__ValueInfoProto *value) {
  strbuf_append_within(out, "'", onnx_text(value->name), "' (");
  onnx_append_type(out, value);
  strbuf_append_char(out, ')');
}

/* "input 'x' (f32[batch, 4]) axis 0, input 'y' (…) axis 1" */
static void append_places(const Suggester *s, uint32_t dim, StrBuf *out) {
  const Onnx__GraphProto *graph = s->model->proto->graph;
  uint32_t places = 0;
  for (size_t i = 0; i < graph->n_input; i++) {
    const Onnx__TypeProto__Tensor *t = onnx_tensor_type(graph->input[i]);
    bool skip = !t || !t->shape || onnx_is_initializer(&s->initializers, graph->input[i]->name);
    for (size_t axis = 0; !skip && axis < t->shape->n_dim && axis < MAX_RANK; axis++) {
      if (onnx_dim_is_known(t->shape->dim[axis]) ||
          !sv_eq(name_of(s->arena, graph->input[i], axis), s->dims[dim].name))
        continue;
      if (places++ >= MAX_PLACES)
        continue;
      strbuf_append(out, places > 1 ? SV(", input ") : SV("input "));
      onnx_append_value(out, graph->input[i]);
      strbuf_printf(out, " axis %zu", axis);
    }
  }
  if (places > MAX_PLACES)
    strbuf_printf(out, " and %u more", places - MAX_PLACES);
}

/* "'s15' = 's89' must be equal: input …". */
static void note_group(const Suggester *s, uint32_t first, Diag *d) {
  StrBuf text = {0};
  uint32_t members = 0;
  for (uint32_t i = first; i < s->count; i++) {
    if (s->out->dims[i].equal != first)
      continue;
    strbuf_append(&text, members++ ? SV(" = '") : SV("'"));
    strbuf_append_printable(&text, s->dims[i].name);
    strbuf_append_char(&text, '\'');
  }
  strbuf_append(&text, members > 1 ? SV(" must be equal: ") : SV(": "));
  append_places(s, first, &text);
  diag_note(d, "%s", strbuf_cstr(&text));
  strbuf_release(&text);
}

static void report_message(const Suggester *s, Diag *d) {
  StrBuf text = {0};
  strbuf_append(&text, SV("input "));
  onnx_append_value(&text, s->dims[0].input);
  diag_message(d, "%s: axis %zu '" SV_FMT "' has no size%s", strbuf_cstr(&text), s->dims[0].axis,
               SV_ARG(s->dims[0].name),
               s->count > 1 ? arena_printf(s->arena, ", and %u more have none", s->count - 1) : "");
  strbuf_release(&text);
}

Status suggest_report(Context *ctx, OnnxModel *model, const ImportOptions *options) {
  Arena arena = {0};
  StrBuf flags = {0};
  DimSuggestions out;
  Suggester s = {.ctx = ctx, .model = model, .options = options, .arena = &arena, .out = &out};
  suggest(&s);
  Diag *d = diag_begin(ctx->sink, DIAG_DIM_UNBOUND, context_place(ctx));
  if (s.count) {
    report_message(&s, d);
    uint32_t notes = 0;
    for (uint32_t i = 0; i < s.count && s.count > 1 && notes < MAX_NOTES; i++)
      if (out.dims[i].equal == i) {
        note_group(&s, i, d);
        notes++;
      }
    suggest_flags(&out, &flags);
    diag_hint(d, "add%s (sizes are examples; LO..HI gives a range)", strbuf_cstr(&flags));
  }
  Status status = diag_end(d);
  intern_release(&s.initializers);
  strbuf_release(&flags);
  arena_release(&arena);
  return status;
}

/* See states.h.
 *
 * A state of fixed size is a state value of the graph in place of the input, and a copy_ of the
 * output into it at the end. One that grows (past length s, present length s + 1) is memory for the
 * largest size together with a number, its length: at the start of a call the length is read and
 * the memory is made a tensor of that size, at the end of the new size. Both need no more of the
 * runtime than kernels; nothing depends on what a host does with shapes between calls.
 *
 * All that a call returns or writes into a state is computed before the first state is written. */
#include "pipeline/states.h"

#include "interp/npy.h"
#include "ir/builder.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "pipeline/settings.h"
#include "support/text.h"

/* The number that several states which grow together share. It is named after the first of them in
 * the order of the alphabet, so that methods whose states have the same names have the same
 * lengths, whatever the dims are called. */
typedef struct Length {
  SymInt before, after; /* a symbol, and what it becomes */
  int64_t initial;
  ValueId state;
  StrView first; /* that state */
} Length;

typedef struct Write {
  ValueId state;        /* as it is at the start of the call */
  uint32_t output;      /* position of what is written */
  ValueId value;        /* that; in the end */
  NameId name;          /* of the state */
  const Length *length; /* NULL: the size is fixed */
} Write;

typedef struct Binder {
  Session *s;
  Graph *g;
  Builder start; /* inserts before the nodes of the model */
  Builder end;
  Length *lengths;
  Write *writes;
  bool *is_state; /* by output: not returned any more */
  uint32_t length_count, write_count, capacity;
} Binder;

/* One way to read IN:OUT[=FILE], whose parts may hold ':' and '=' themselves. */
typedef struct Pair {
  StrView in, out, file;
} Pair;

/* --- names --- */

/* Does the pair name an input of g, and with it an output? */
static bool fits(Session *s, const Graph *g, Pair pair, bool *input_found) {
  bool found = false;
  for (uint32_t i = 0; i < g->input_count && !found; i++) {
    StrView stars;
    if (!text_match(pair.in, value_name(g, g->inputs[i]), &stars))
      continue;
    *input_found = true;
    found = graph_find_output(g, text_fill(&s->arena, pair.out, stars)) >= 0;
  }
  return found;
}

/* Calls f for every way to read the flag, until it says true. */
static bool each_pair(StrView text, bool f(void *user, Pair pair), void *user) {
  for (size_t i = 1; i < text.size; i++) {
    if (text.data[i] != ':')
      continue;
    Pair pair = {.in = {text.data, i}, .out = {text.data + i + 1, text.size - i - 1}};
    StrView rest = pair.out;
    if (f(user, pair))
      return true;
    for (size_t k = 1; k < rest.size; k++)
      if (rest.data[k] == '=') {
        pair.out.size = k;
        pair.file = (StrView){rest.data + k + 1, rest.size - k - 1};
        if (f(user, pair))
          return true;
      }
  }
  return false;
}

typedef struct Search {
  Session *s;
  const Graph *g;
  Pair found;      /* both names fit */
  Pair input_only; /* an input is named, and no output */
} Search;

static bool try_pair(void *user, Pair pair) {
  Search *search = user;
  bool input_found = false;
  if (fits(search->s, search->g, pair, &input_found)) {
    search->found = pair;
    return true;
  }
  if (input_found && (!search->input_only.in.size || pair.file.size))
    search->input_only = pair;
  return false;
}

static bool names_input(void *user, Pair pair) {
  StrView stars;
  return text_match(pair.in, *(const StrView *)user, &stars);
}

bool states_name(void *user, StrView input) {
  const MethodOptions *o = ((const StatesSearch *)user)->options;
  for (uint32_t i = 0; i < o->state_count; i++)
    if (each_pair(o->states[i].text, names_input, &input))
      return true;
  return false;
}

/* Of the inputs or outputs of all methods. */
static void hint_name(Session *s, Diag *d, StrView name, bool inputs) {
  uint64_t most = 0;
  for (uint32_t m = 0; m < s->program.method_count; m++)
    most +=
        s->program.methods[m].graph->input_count + graph_output_count(s->program.methods[m].graph);
  const char **names = ARENA_ARRAY(&s->arena, const char *, most);
  size_t count = 0;
  for (uint32_t m = 0; m < s->program.method_count; m++) {
    const Graph *g = s->program.methods[m].graph;
    uint32_t here = inputs ? g->input_count : graph_output_count(g);
    for (uint32_t i = 0; i < here; i++)
      names[count++] =
          arena_strdup(&s->arena, inputs ? value_name(g, g->inputs[i]) : graph_output_text(g, i));
  }
  diag_hint_names(d, name, names, count);
}

/* Whether a method has a state of that name, which --state or --derive made of an input before. */
static bool is_state(const Session *s, StrView name) {
  bool is = false;
  for (uint32_t m = 0; m < s->program.method_count; m++) {
    const Graph *g = s->program.methods[m].graph;
    StrView stars;
    for (uint32_t i = 0; i < g->state_count; i++)
      is = is || text_match(name, value_name(g, g->states[i].value), &stars);
  }
  return is;
}

static Status report_twice(Session *s, DiagPlace place, StrView name) {
  Diag *d = diag_begin(&s->sink, DIAG_USAGE, place);
  diag_message(d, "input '" SV_FMT "' is a state already", SV_ARG(name));
  diag_hint(d, "name each input in one --state; --derive makes states of the caches itself");
  return diag_end(d);
}

/* A flag that fits no method. input: an input of that name exists. */
static Status report_unknown(Session *s, StrView text, Pair pair) {
  DiagPlace place = session_option_place(s, "--state");
  bool output = pair.in.size != 0;
  StrView name = pair.out;
  if (!output) {
    const char *colon = memchr(text.data, ':', text.size);
    name = (StrView){text.data, (size_t)(colon - text.data)};
  }
  if (!output && is_state(s, name))
    return report_twice(s, place, name);
  Diag *d = diag_begin(&s->sink, DIAG_STATE_UNKNOWN, place);
  const char *what = output ? "output" : "input";
  if (s->program.method_count == 1)
    diag_message(d, "the model has no %s '" SV_FMT "'", what, SV_ARG(name));
  else if (output)
    diag_message(d, "no model with an input '" SV_FMT "' has an output '" SV_FMT "'",
                 SV_ARG(pair.in), SV_ARG(name));
  else
    diag_message(d, "no model has an input '" SV_FMT "'", SV_ARG(name));
  hint_name(s, d, name, !output);
  return diag_end(d);
}

/* --- types --- */

static void append_type(const Graph *g, ValueId v, StrView name, StrBuf *out) {
  strbuf_append_within(out, "'", name, "' (");
  type_describe(g, value_type(g, v), out);
  strbuf_append_char(out, ')');
}

static Status mismatch(Binder *b, ValueId in, uint32_t output, const char *why, const char *hint) {
  StrBuf text = {0};
  append_type(b->g, in, value_name(b->g, in), &text);
  strbuf_append(&text, SV(" and its output "));
  append_type(b->g, graph_output(b->g, output), graph_output_text(b->g, output), &text);
  Diag *d = diag_begin(&b->s->sink, DIAG_STATE_MISMATCH, context_place(b->g->ctx));
  diag_message(d, "state %s: %s", strbuf_cstr(&text), why);
  if (hint)
    diag_hint(d, "%s", hint);
  strbuf_release(&text);
  return diag_end(d);
}

static const char *symbol_name(const Graph *g, SymInt v) {
  const SymExpr *e = sym_is_const(v) ? NULL : sym_expr(&g->syms, v);
  return e && e->kind == SYM_SYMBOL && e->name && e->name[0] ? e->name : "NAME";
}

/* Looks for the one axis that grows; -1 when the size is fixed. */
static Status find_growth(Binder *b, ValueId in, uint32_t output, int *axis) {
  Graph *g = b->g;
  ValueId out = graph_output(g, output);
  const Type *t = value_type(g, in), *u = value_type(g, out);
  *axis = -1;
  if (u->kind != TYPE_TENSOR || t->dtype != u->dtype || t->rank != u->rank)
    return mismatch(b, in, output, "they have different element types or ranks",
                    "pair it with an output of its element type and rank");
  for (uint32_t i = 0; i < t->rank; i++) {
    SymInt before = t->dims[i], after = u->dims[i];
    bool same = before == after;
    if (same && sym_is_const(before))
      continue;
    const char *name = symbol_name(g, same ? before : after),
               *hint = arena_printf(&b->s->arena, "fix it with --dim %s=N",
                                    shell_word(&b->s->arena, sv_from(name)));
    if (same)
      return mismatch(b, in, output,
                      arena_printf(&b->s->arena, "dim %u is symbolic and does not grow", i), hint);
    if (sym_is_const(before) || sym_expr(&g->syms, before)->kind != SYM_SYMBOL)
      return mismatch(b, in, output, arena_printf(&b->s->arena, "dim %u differs", i),
                      "a dimension may grow when it has a range (--dim NAME=0..N)");
    if (*axis >= 0)
      return mismatch(b, in, output, "more than one dimension grows",
                      arena_printf(&b->s->arena, "fix all but one: --dim %s=N",
                                   shell_word(&b->s->arena, sv_from(name))));
    if (sym_upper(&g->syms, after) > INT32_MAX || sym_upper(&g->syms, before) > INT32_MAX)
      return mismatch(b, in, output, arena_printf(&b->s->arena, "dim %u has no upper bound", i),
                      "bound it with --dim NAME=LO..HI, or export a cache of fixed size");
    *axis = (int)i;
  }
  return STATUS_OK;
}

/* --- first contents --- */

/* The array in a file, which must have the type of the state but for the axis that grows. */
static Status read_initial(Binder *b, Pair pair, ValueId in, int axis, NpyArray *array) {
  Graph *g = b->g;
  Session *s = b->s;
  const char *path = arena_strdup(&s->arena, pair.file);
  TRY(npy_read(array, &s->arena, &s->sink, path, value_dtype(g, in)));
  const Type *t = value_type(g, in);
  bool same = array->tensor.dtype == t->dtype && array->tensor.rank == t->rank;
  for (uint32_t i = 0; same && i < t->rank; i++) {
    int64_t size = array->tensor.dims[i];
    const SymTable *syms = &g->syms;
    same = (int)i == axis
               ? size >= sym_lower(syms, t->dims[i]) && size <= sym_upper(syms, t->dims[i])
               : size == t->dims[i];
  }
  if (same)
    return STATUS_OK;
  StrBuf text = {0};
  append_type(g, in, value_name(g, in), &text);
  Diag *d = diag_begin(&s->sink, DIAG_STATE_MISMATCH, diag_file(path));
  diag_message(d, "the array does not fit the state %s", strbuf_cstr(&text));
  strbuf_clear(&text);
  shape_describe(dtype_name(array->tensor.dtype), array->tensor.dims, array->tensor.rank, &text);
  diag_note(d, "the array is %s", strbuf_cstr(&text));
  strbuf_release(&text);
  npy_close(array);
  return diag_end(d);
}

/* The bytes of the file, copied, at the start of a buffer of `size` bytes. */
static ConstId initial_data(Binder *b, const NpyArray *array, uint64_t size) {
  uint8_t *data = arena_calloc(&b->g->arena, (size_t)size, 1);
  uint64_t bytes = tensor_bytes(&array->tensor);
  if (bytes)
    memcpy(data, array->tensor.data, (size_t)bytes);
  return graph_add_data(b->g, (Constant){.data = data, .size = size});
}

/* What the model itself gives: the initializer of the same name, 0 for none. */
static ConstId initializer_of(const Graph *g, ValueId in) {
  const Value *input = value_cget(g, in);
  for (ValueId v = 1; v < g->value_count && input->name; v++)
    if (g->values[v].kind == VALUE_CONST && g->values[v].name == input->name &&
        g->values[v].type == input->type)
      return g->values[v].def;
  return 0;
}

/* --- the graph --- */

/* Makes the length that belongs to a symbol. */
static Status add_length(Binder *b, const Length *length) {
  Graph *g = b->g;
  ConstId data = 0;
  if (length->initial) {
    int64_t *copy = ARENA_NEW(&g->arena, int64_t);
    *copy = length->initial;
    data = graph_add_data(g, (Constant){.data = (uint8_t *)copy, .size = sizeof *copy});
  }
  Length *l = &b->lengths[b->length_count++];
  *l = *length;
  TypeId type = graph_tensor_type(g, DTYPE_I64, 0, NULL, ORDER_CONTIGUOUS);
  l->state = graph_add_state(g, type, data, 0);
  ValueId number = build(&b->start, OP_LOCAL_SCALAR_DENSE, A_VAL(l->state));
  TRY(b->start.status);
  value_set_type(g, number, graph_scalar_type(g, TYPE_INT, l->before, true));
  return STATUS_OK;
}

/* The length of a state: one for all states that grow with its symbol. */
static Status find_length(Binder *b, ValueId in, uint32_t output, uint32_t axis, int64_t initial,
                          const Length **length) {
  Graph *g = b->g;
  SymInt before = value_dim(g, in, axis), after = value_dim(g, graph_output(g, output), axis);
  StrView name = value_name(g, in);
  for (uint32_t i = 0; i < b->length_count; i++) {
    Length *known = &b->lengths[i];
    if (known->before != before)
      continue;
    if (known->after != after)
      return mismatch(b, in, output, "it grows by another amount than a state of the same length",
                      NULL);
    if (known->initial != initial)
      return mismatch(b, in, output, "its first length is not that of the states it grows with",
                      "give all of them first contents of one length");
    if (text_compare(name, known->first) < 0)
      known->first = name;
    *length = known;
    return STATUS_OK;
  }
  *length = &b->lengths[b->length_count];
  return add_length(b,
                    &(Length){.before = before, .after = after, .initial = initial, .first = name});
}

static Status bind_growing(Binder *b, ValueId in, uint32_t output, uint32_t axis,
                           const NpyArray *array) {
  Graph *g = b->g;
  Type t = *value_type(g, in);
  SymInt dims[MAX_RANK];
  memcpy(dims, t.dims, t.rank * sizeof *dims);
  int64_t initial = array ? array->tensor.dims[axis] : sym_lower(&g->syms, dims[axis]);
  const Length *length = NULL;
  TRY(find_length(b, in, output, axis, initial, &length));
  int64_t most = sym_upper(&g->syms, value_dim(g, graph_output(g, output), axis));
  dims[axis] = max_i64(most, sym_upper(&g->syms, dims[axis]));
  TypeId type = graph_tensor_type(g, (DType)t.dtype, t.rank, dims, ORDER_CONTIGUOUS);
  uint64_t bytes = type_bytes_upper(g, type_get(g, type));
  if (bytes == UINT64_MAX)
    return mismatch(b, in, output, "it needs more memory than can be addressed", NULL);
  ConstId data = array ? initial_data(b, array, bytes) : 0;
  NameId name = value_cget(g, in)->name;
  ValueId state = graph_add_state(g, type, data, name);
  ValueId past = build(&b->start, OP_RESIZE_, A_VAL(state), A_INTS(t.dims, t.rank));
  TRY(b->start.status);
  graph_replace_uses(g, in, past);
  b->writes[b->write_count++] =
      (Write){.state = past, .output = output, .name = name, .length = length};
  return STATUS_OK;
}

static Status bind_fixed(Binder *b, ValueId in, uint32_t output, const NpyArray *array) {
  Graph *g = b->g;
  uint64_t bytes = type_bytes_upper(g, value_type(g, in));
  ConstId data = array ? initial_data(b, array, bytes) : initializer_of(g, in);
  NameId name = value_cget(g, in)->name;
  ValueId state = graph_add_state(g, value_cget(g, in)->type, data, name);
  graph_replace_uses(g, in, state);
  b->writes[b->write_count++] = (Write){.state = state, .output = output, .name = name};
  return STATUS_OK;
}

static Status bind_one(Binder *b, Pair pair, uint32_t input, uint32_t output) {
  Graph *g = b->g;
  ValueId in = g->inputs[input];
  NpyArray array;
  int axis;
  if (b->is_state[output])
    return mismatch(b, in, output, "the output belongs to another state already", NULL);
  TRY(find_growth(b, in, output, &axis));
  bool given = pair.file.size != 0;
  if (given)
    TRY(read_initial(b, pair, in, axis, &array));
  Status status = axis >= 0 ? bind_growing(b, in, output, (uint32_t)axis, given ? &array : NULL)
                            : bind_fixed(b, in, output, given ? &array : NULL);
  if (given)
    npy_close(&array);
  TRY(status);
  b->is_state[output] = true;
  graph_remove_input(g, input);
  return STATUS_OK;
}

static Status bind_option(Binder *b, const TextOption *option) {
  Search search = {.s = b->s, .g = b->g};
  if (!each_pair(option->text, try_pair, &search))
    return STATUS_OK;
  *option->used = true;
  for (uint32_t i = 0; i < b->g->input_count;) {
    StrView stars;
    Pair pair = search.found;
    bool match = text_match(pair.in, value_name(b->g, b->g->inputs[i]), &stars);
    int output = match ? graph_find_output(b->g, text_fill(&b->s->arena, pair.out, stars)) : -1;
    pair.file = text_fill(&b->s->arena, pair.file, stars);
    if (pair.file.size)
      pair.file = sv_from(session_path_in(b->s, option->folder, pair.file));
    if (output >= 0)
      TRY(bind_one(b, pair, i, (uint32_t)output));
    else
      i++;
  }
  return STATUS_OK;
}

/* --- the writes --- */

/* A value that is a state's memory, as it is before anything is written there. */
static ValueId keep(Binder *b, ValueId v) {
  return value_state(b->g, v) ? build(&b->end, OP_CLONE, A_VAL(v)) : v;
}

static Status write_states(Binder *b) {
  Graph *g = b->g;
  ValueId *numbers = ARENA_ARRAY(&b->s->arena, ValueId, b->length_count);
  for (uint32_t i = 0; i < b->write_count; i++)
    if (b->writes[i].value != b->writes[i].state)
      b->writes[i].value = keep(b, b->writes[i].value);
  for (uint32_t i = 0; i < b->length_count; i++)
    numbers[i] =
        build(&b->end, OP_FULL, A_INTS(NULL, 0), A_INT(b->lengths[i].after), A_DTYPE(DTYPE_I64));
  for (uint32_t i = 0; i < b->write_count && b->end.status == STATUS_OK; i++) {
    const Type *t = value_type(g, b->writes[i].value);
    if (b->writes[i].length)
      b->writes[i].state =
          build(&b->end, OP_RESIZE_, A_VAL(b->writes[i].state), A_INTS(t->dims, t->rank));
  }
  for (uint32_t i = 0; i < b->write_count; i++)
    if (b->writes[i].value != b->writes[i].state)
      build(&b->end, OP_COPY_, A_VAL(b->writes[i].state), A_VAL(b->writes[i].value));
  for (uint32_t i = 0; i < b->length_count; i++)
    build(&b->end, OP_COPY_, A_VAL(b->lengths[i].state), A_VAL(numbers[i]));
  return b->end.status;
}

/* The outputs that are left, and the writes. */
static Status finish_method(Binder *b) {
  Graph *g = b->g;
  for (uint32_t i = 0; i < b->write_count; i++)
    b->writes[i].value = graph_output(g, b->writes[i].output);
  uint32_t count = 0, all = graph_output_count(g);
  ValueId *values = ARENA_ARRAY(&b->s->arena, ValueId, all);
  NameId *names = ARENA_ARRAY(&b->s->arena, NameId, all);
  for (uint32_t i = 0; i < all; i++) {
    if (b->is_state[i])
      continue;
    names[count] = graph_output_name(g, i);
    values[count++] = keep(b, graph_output(g, i));
  }
  TRY(b->end.status);
  graph_set_outputs(g, values, count, names);
  return write_states(b);
}

/* Names the lengths, and notes what grows with what. */
static void name_lengths(Binder *b, BoundStates *bound) {
  Graph *g = b->g;
  for (uint32_t i = 0; i < b->length_count; i++) {
    const Length *l = &b->lengths[i];
    StrView first = l->first.size ? l->first : sv_from(symbol_name(g, l->before));
    const char *name = arena_printf(&b->s->arena, SV_FMT STATE_LENGTH, SV_ARG(first));
    g->values[l->state].name = intern_add(&g->ctx->names, sv_from(name));
  }
  for (uint32_t i = 0; i < b->write_count; i++) {
    const Write *w = &b->writes[i];
    NameId length = w->length ? value_cget(g, w->length->state)->name : 0;
    bound->items[bound->count++] = (BoundState){.g = g, .name = w->name, .length = length};
  }
}

static Status bind_method(Session *s, const Method *m, BoundStates *bound) {
  Graph *g = m->graph;
  const MethodOptions *o = m->options;
  Binder b = {.s = s, .g = g, .start = builder_make(g, g->first, 0), .end = builder_make(g, 0, 0)};
  b.lengths = ARENA_ARRAY(&s->arena, Length, g->input_count);
  b.writes = ARENA_ARRAY(&s->arena, Write, g->input_count);
  b.is_state = ARENA_ARRAY(&s->arena, bool, graph_output_count(g));
  Status status = STATUS_OK;
  for (uint32_t i = 0; i < o->state_count; i++) {
    Status one = bind_option(&b, &o->states[i]);
    status = status == STATUS_OK ? one : status;
  }
  TRY(status);
  name_lengths(&b, bound);
  return b.write_count ? finish_method(&b) : STATUS_OK;
}

static Status report_level(Session *s, const Graph *g) {
  Diag *d = diag_begin(&s->sink, DIAG_STATE_UNKNOWN, context_place(&s->ctx));
  diag_message(d, "states cannot be declared any more at level %s", level_name(g->level));
  diag_hint(d, "give --state together with the .onnx, or a textual graph of level aten");
  return diag_end(d);
}

/* An option that fits no method: the nearest that it comes to. */
static Status check_used(Session *s, const TextOption *option) {
  Pair input_only = {0};
  if (*option->used)
    return STATUS_OK;
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    Search search = {.s = s, .g = s->program.methods[i].graph};
    if (!each_pair(option->text, try_pair, &search) && search.input_only.in.size)
      input_only = search.input_only;
  }
  return report_unknown(s, option->text, input_only);
}

Status states_bind(Session *s) {
  Status status = STATUS_OK;
  BoundStates bound = {0};
  uint32_t inputs = 0;
  for (uint32_t i = 0; i < s->program.method_count; i++)
    inputs += s->program.methods[i].graph->input_count;
  bound.items = ARENA_ARRAY(&s->arena, BoundState, inputs);
  for (uint32_t i = 0; i < s->program.method_count; i++) {
    const Method *m = &s->program.methods[i];
    if (m->options->state_count == 0)
      continue;
    s->ctx.model_path = source_name(m->source);
    if (m->graph->level != LEVEL_ATEN)
      return report_level(s, m->graph);
    Status one = bind_method(s, m, &bound);
    if (one == STATUS_OK)
      one = graph_verify(m->graph, "binding states");
    status = status == STATUS_OK ? one : status;
  }
  TRY(status);
  status = states_check_growth(s, &bound);
  for (uint32_t i = 0; i < s->layer_count; i++)
    for (uint32_t k = 0; k < s->layers[i]->options.state_count; k++) {
      Status one = check_used(s, &s->layers[i]->options.states[k]);
      status = status == STATUS_OK ? one : status;
    }
  return status;
}

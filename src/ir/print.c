/* Graph to text. The grammar is in docs/reference/etir.md; parse.c reads what is written here.
 *
 * Values are numbered in the order in which they appear: inputs, then each constant right before
 * its first user, then results. Nothing in the text depends on handles, so equal graphs give equal
 * text. A broken graph prints too (the verifier shows it): handles out of range become %?. */
#include "ir/const_text.h"
#include "ir/text.h"
#include "ir/transform.h"
#include "support/text.h"

typedef struct Printer {
  const Graph *g;
  StrBuf *out;
  PrintOptions options;
  uint32_t *number; /* by value: its number + 1, 0 = not yet defined */
  uint32_t *owner;  /* by storage: number of the first value there + 1 */
  uint32_t next;
} Printer;

/* --- words --- */

static void put(Printer *p, const char *text) { strbuf_append(p->out, sv_from(text)); }

static void put_unsigned(StrBuf *out, uint64_t value) {
  char digits[20];
  size_t at = sizeof digits;
  do
    digits[--at] = (char)('0' + value % 10);
  while (value /= 10);
  strbuf_append(out, (StrView){digits + at, sizeof digits - at});
}

static void put_int(StrBuf *out, int64_t value) {
  if (value < 0)
    strbuf_append_char(out, '-');
  put_unsigned(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static void put_sym(const Graph *g, SymInt value, StrBuf *out) {
  if (sym_is_const(value))
    put_int(out, value);
  else if ((uint64_t)(value - SYM_BAND) < g->syms.count)
    sym_print(&g->syms, value, out);
  else
    strbuf_append_char(out, '?');
}

static void put_string(StrBuf *out, StrView text) {
  strbuf_append_char(out, '"');
  strbuf_append_escaped(out, text);
  strbuf_append_char(out, '"');
}

/* A name that may be absent. */
static void put_name(Printer *p, NameId name) {
  if (name)
    put_string(p->out, intern_get(&p->g->ctx->names, name));
  else
    put(p, "none");
}

static void put_value(Printer *p, ValueId v) {
  if (v == 0) {
    put(p, "none");
  } else if (v >= p->g->value_count || !p->number[v]) {
    put(p, "%?");
  } else {
    put(p, "%");
    put_unsigned(p->out, p->number[v] - 1);
  }
}

/* --- types and places --- */

const char *dim_text(Graph *g, SymInt v) {
  StrBuf text = {0};
  sym_print_named(&g->syms, v, &text);
  return strbuf_keep(&text, &g->arena).data;
}

void type_print(const Graph *g, const Type *t, StrBuf *out) {
  static const char *const scalars[] = {
      [TYPE_INT] = "int", [TYPE_FLOAT] = "float", [TYPE_BOOL] = "bool", [TYPE_NONE] = "none"};
  if (t->kind != TYPE_TENSOR) {
    strbuf_append(out, sv_from(t->kind <= TYPE_NONE ? scalars[t->kind] : "?"));
    if (t->rank == 0)
      return;
    strbuf_append_char(out, '(');
    put_sym(g, t->dims[0], out);
    strbuf_append_char(out, ')');
    return;
  }
  strbuf_append(out, sv_from(dtype_name((DType)t->dtype)));
  strbuf_append_char(out, '[');
  for (uint32_t i = 0; i < t->rank; i++) {
    strbuf_append(out, i ? SV(", ") : SV(""));
    put_sym(g, t->dims[i], out);
  }
  strbuf_append_char(out, ']');
  if (t->order == ORDER_CHANNELS_LAST)
    strbuf_append(out, SV("{channels_last}"));
}

/* "@1+1024:4096" for the first value of a storage, "@%5" for those that share it. */
static void put_storage(Printer *p, uint32_t storage, uint32_t number) {
  if (!storage)
    return;
  put(p, "@");
  if (storage >= p->g->storage_count) {
    put(p, "?");
  } else if (p->owner[storage]) {
    put(p, "%");
    put_unsigned(p->out, p->owner[storage] - 1);
  } else {
    const Storage *s = &p->g->storages[storage];
    p->owner[storage] = number + 1;
    put_unsigned(p->out, s->arena);
    put(p, "+");
    put_unsigned(p->out, s->offset);
    put(p, ":");
    put_unsigned(p->out, s->size);
  }
}

/* "%3: f32[2]@1+0:16" */
static void put_definition(Printer *p, ValueId v) {
  const Value *value = value_cget(p->g, v);
  if (!p->number[v])
    p->number[v] = ++p->next;
  put_value(p, v);
  put(p, ": ");
  if (value->type < p->g->type_count)
    type_print(p->g, type_get(p->g, value->type), p->out);
  else
    put(p, "?");
  put_storage(p, value->storage, p->number[v] - 1);
}

static void put_loc(Printer *p, LocId id) {
  if (p->options.locations)
    loc_print(p->g, id, p->out);
}

/* --- constants --- */

static bool put_elements(const Constant *c, const Type *t, StrBuf *out) {
  unsigned size = dtype_size((DType)t->dtype);
  size_t before = out->size;
  bool ok = size && c->size % size == 0 && (t->rank || c->size == size);
  strbuf_append(out, t->rank ? SV("[") : SV(""));
  for (uint64_t at = 0; ok && at < c->size; at += size) {
    strbuf_append(out, at ? SV(", ") : SV(""));
    ok = element_print((DType)t->dtype, c->data + at, out);
  }
  strbuf_append(out, t->rank ? SV("]") : SV(""));
  if (!ok) {
    out->size = before;
    out->data[before] = '\0';
  }
  return ok;
}

static void put_hex(const Constant *c, StrBuf *out) {
  static const char digits[] = "0123456789ABCDEF";
  strbuf_append(out, SV("hex\""));
  for (uint64_t i = 0; i < c->size; i++) {
    char pair[2] = {digits[c->data[i] >> 4], digits[c->data[i] & 15]};
    strbuf_append(out, (StrView){pair, 2});
  }
  strbuf_append_char(out, '"');
}

static void put_file(Printer *p, const Constant *c) {
  put(p, "file(");
  put_string(p->out, sv_from(c->file->path));
  strbuf_printf(p->out, ", %llu, %llu, xxh3:%016llx)", (unsigned long long)c->file_offset,
                (unsigned long long)c->size, (unsigned long long)constant_hash(c));
}

static void put_hash(const Constant *c, StrBuf *out) {
  strbuf_printf(out, "hash(xxh3:%016llx, %llu)", (unsigned long long)constant_hash(c),
                (unsigned long long)c->size);
}

/* A constant without a type of its own: what a transform reads. */
static void put_bytes(Printer *p, const Constant *c) {
  if (c->file)
    put_file(p, c);
  else if (c->size > CONST_INLINE_MAX && !p->options.full_constants)
    put_hash(c, p->out);
  else
    put_hex(c, p->out);
}

static void put_code(StrBuf *out, const Transform *t) {
  static const char *const names[] = {"copy", "int8", "int4", "unpack", "repack", "recode"};
  strbuf_append(out, sv_from(names[t->code]));
  if (t->code == TRANSFORM_COPY)
    strbuf_printf(out, " %u", t->element);
  else if (t->code <= TRANSFORM_INT4)
    strbuf_printf(out, "%s %d..%d", t->finite ? " finite" : "", t->low, t->high);
  else
    strbuf_printf(out, "%s%s", t->twos_complement ? " twos" : "",
                  t->code == TRANSFORM_REPACK && t->nibbles ? " nibbles" : "");
  if (t->code == TRANSFORM_UNPACK)
    strbuf_printf(out, " %d", t->low);
}

/* "transform(int8 -127..127, 64x9x32, 288x1x9, 1x0x0, SCALES, 73728, SOURCE)", see
 * docs/reference/etir.md. */
static void put_transform(Printer *p, const Transform *t) {
  static const char *const strides[] = {", ", "x"};
  strbuf_append(p->out, SV("transform("));
  put_code(p->out, t);
  for (uint32_t what = 0; what < (transform_has_scales(t) ? 3 : 2); what++)
    for (uint32_t i = 0; i < t->rank; i++) {
      const TransformDim *d = &t->dims[i];
      put(p, strides[i > 0]);
      put_unsigned(p->out, what == 0 ? d->size : what == 1 ? d->stride : d->scale);
    }
  strbuf_append(p->out, SV(", "));
  if (transform_has_scales(t)) {
    strbuf_printf(p->out, "%llu, ", (unsigned long long)t->scales.size);
    put_bytes(p, &t->scales);
    strbuf_append(p->out, SV(", "));
  }
  strbuf_printf(p->out, "%llu, ", (unsigned long long)t->source.size);
  put_bytes(p, &t->source);
  strbuf_append(p->out, SV(")"));
}

static void put_data(Printer *p, const Constant *c, const Type *t) {
  if (c->transform && c->size > CONST_INLINE_MAX &&
      (c->transform->source.file || p->options.full_constants)) {
    put_transform(p, c->transform);
    return;
  }
  c = constant_made(c);
  if (c->size > CONST_INLINE_MAX && c->file)
    put_file(p, c);
  else if (c->size > CONST_INLINE_MAX && !p->options.full_constants)
    put_hash(c, p->out);
  else if (c->size > CONST_INLINE_MAX || !put_elements(c, t, p->out))
    put_hex(c, p->out);
}

static void put_constant(Printer *p, ValueId v) {
  put(p, "  ");
  put_definition(p, v);
  put(p, " = const ");
  put_data(p, value_lazy_constant(p->g, v), value_type(p->g, v));
  if (value_cget(p->g, v)->name) {
    put(p, " ");
    put_name(p, value_cget(p->g, v)->name);
  }
  put(p, "\n");
}

/* --- arguments --- */

static ValueId operand(const Graph *g, UseId u) {
  return u < g->use_count ? g->uses[u].value : UINT32_MAX;
}

static void put_list_element(Printer *p, const Arg *arg, uint32_t i) {
  const Graph *g = p->g;
  if (arg->kind == ARG_VALUES)
    put_value(p, operand(g, arg->at + i));
  else if (arg->kind == ARG_INTS)
    put_sym(g, g->ints[arg->at + i], p->out);
  else
    float_print(g->floats[arg->at + i], p->out);
}

static void put_arg(Printer *p, const Arg *arg) {
  const Graph *g = p->g;
  switch ((ArgKind)arg->kind) {
  case ARG_NONE:
    put(p, "none");
    return;
  case ARG_VALUE:
    put_value(p, operand(g, arg->at));
    return;
  case ARG_INT:
    put_sym(g, arg->i, p->out);
    return;
  case ARG_FLOAT:
    float_print(arg->f, p->out);
    return;
  case ARG_BOOL:
    put(p, arg->i ? "true" : "false");
    return;
  case ARG_STR:
    put_string(p->out, intern_get(&g->ctx->names, (NameId)arg->i));
    return;
  case ARG_DTYPE:
    put(p, dtype_name((DType)arg->i));
    return;
  case ARG_VALUES:
  case ARG_INTS:
  case ARG_FLOATS:
    put(p, "[");
    for (uint32_t i = 0; i < arg->count; i++) {
      put(p, i ? ", " : "");
      put_list_element(p, arg, i);
    }
    put(p, "]");
    return;
  }
  put(p, "?");
}

void arg_print(const Graph *g, const Arg *arg, StrBuf *out) {
  put_arg(&(Printer){.g = g, .out = out}, arg);
}

/* --- nodes --- */

static bool result_named(const Graph *g, const Node *node) {
  for (uint32_t i = 0; i < node->result_count; i++)
    if (value_cget(g, node->first_result + i)->name)
      return true;
  return false;
}

static void put_result_names(Printer *p, const Node *node) {
  if (!result_named(p->g, node))
    return;
  for (uint32_t i = 0; i < node->result_count; i++) {
    put(p, i ? ", " : " ");
    put_name(p, value_cget(p->g, node->first_result + i)->name);
  }
}

/* What the program will do for the node, as a comment: nothing, or a call of a kernel. */
static void put_kernel(Printer *p, const Node *node) {
  const Graph *g = p->g;
  const OpRow *row = op_row(node->op);
  if (g->level != LEVEL_EXECUTORCH || !row->out)
    return;
  const Arg *first = &g->args[node->first_arg];
  uint32_t to = node->result_count ? value_cget(g, node->first_result)->storage : 0;
  ValueId from = node->arg_count && first->kind == ARG_VALUE ? operand(g, first->at) : 0;
  if ((row->traits & OP_VIEW) && to && to < g->storage_count && from && from < g->value_count &&
      value_cget(g, from)->storage == to && type_is_static(value_type(g, node->first_result))) {
    put(p, " // no call");
    return;
  }
  put(p, " // ");
  put(p, row->out);
}

static void put_node(Printer *p, NodeId n) {
  const Node *node = node_cget(p->g, n);
  for (uint32_t i = 0; i < node->result_count; i++) {
    put(p, i ? ", " : "");
    put_definition(p, node->first_result + i);
  }
  put(p, node->result_count ? " = " : "");
  if (node->op <= OP_OUTPUT || node->op >= op_count()) {
    put(p, "?");
    return;
  }
  strbuf_append(p->out, op_schema(node->op)->full);
  put(p, "(");
  for (uint32_t i = 0; i < node->arg_count; i++) {
    put(p, i ? ", " : "");
    put_arg(p, node_arg(p->g, n, i));
  }
  put(p, ")");
  put_result_names(p, node);
  if (node->tag)
    strbuf_printf(p->out, " tag(%u)", node->tag);
  put_loc(p, node->loc);
  if (p->options.locations && op_has_trait(node->op, OP_DELEGATE))
    origin_print(p->g, n, p->out);
  put_kernel(p, node);
}

/* Calls each for the constants among the operands of node n that have no number yet. */
static void define_constants(Printer *p, NodeId n, void each(Printer *, ValueId)) {
  const Graph *g = p->g;
  const Node *node = node_cget(g, n);
  for (uint32_t i = 0; i < node->arg_count; i++) {
    const Arg *arg = node_arg(g, n, i);
    for (uint32_t k = 0; k < arg_operand_count(arg); k++) {
      ValueId v = operand(g, arg->at + k);
      if (v && v < g->value_count && !p->number[v] && value_is_const(g, v))
        each(p, v);
    }
  }
}

/* --- graphs --- */

static void put_header(Printer *p) {
  static const char *const relations[] = {
      [CONSTRAINT_EQ] = " == ", [CONSTRAINT_GE] = " >= ", [CONSTRAINT_DIVISIBLE] = " % "};
  const Graph *g = p->g;
  for (uint32_t i = 0; i < g->syms.symbol_count; i++) {
    const SymExpr *s = sym_expr(&g->syms, sym_symbol_by_index(&g->syms, i));
    strbuf_printf(p->out, "  sym s%u ", i);
    put_string(p->out, sv_from(s->name));
    strbuf_printf(p->out, " in [%lld, %lld]%s\n", (long long)s->lo, (long long)s->hi,
                  s->unbacked ? " unbacked" : "");
  }
  print_proofs(g, p->out);
  for (uint32_t i = 0; i < g->constraint_count; i++) {
    const Constraint *c = &g->constraints[i];
    put(p, "  constraint ");
    put_sym(g, c->lhs, p->out);
    put(p, relations[c->kind]);
    put_sym(g, c->rhs, p->out);
    put(p, c->kind == CONSTRAINT_DIVISIBLE ? " == 0" : "");
    put_loc(p, c->loc);
    put(p, "\n");
  }
  for (uint32_t i = 0; i < g->arena_size_count; i++) {
    put(p, i ? ", " : "  arenas [");
    put_unsigned(p->out, g->arena_sizes[i]);
    put(p, i + 1 == g->arena_size_count ? "]\n" : "");
  }
}

static void put_inputs(Printer *p) {
  for (uint32_t i = 0; i < p->g->input_count; i++) {
    put(p, "  ");
    put_definition(p, p->g->inputs[i]);
    put(p, " = input ");
    put_name(p, value_cget(p->g, p->g->inputs[i])->name);
    put(p, "\n");
  }
}

static void put_states(Printer *p) {
  const Graph *g = p->g;
  for (uint32_t i = 0; i < g->state_count; i++) {
    const State *s = &g->states[i];
    put(p, "  ");
    put_definition(p, s->value);
    put(p, " = state ");
    put_name(p, value_cget(g, s->value)->name);
    if (s->initial) {
      put(p, " init ");
      put_data(p, &g->constants[s->initial], value_type(g, s->value));
    }
    put(p, "\n");
  }
}

static void put_outputs(Printer *p) {
  put(p, "  output");
  for (uint32_t i = 0; i < graph_output_count(p->g); i++) {
    put(p, i ? ", " : " ");
    put_value(p, graph_output(p->g, i));
    NameId name = graph_output_name(p->g, i);
    if (name) {
      put(p, " ");
      put_name(p, name);
    }
  }
  put(p, "\n");
}

/* @forward, or @"any text". */
static void put_graph_name(Printer *p) {
  StrView name = graph_name(p->g);
  bool plain = name.size > 0 && !is_digit(name.data[0]);
  for (size_t i = 0; i < name.size; i++)
    plain &= is_word(name.data[i]);
  put(p, "@");
  if (plain)
    strbuf_append(p->out, name);
  else
    put_string(p->out, name);
}

static Printer printer_make(const Graph *g, PrintOptions options, StrBuf *out, Arena *arena) {
  return (Printer){.g = g,
                   .out = out,
                   .options = options,
                   .number = ARENA_ARRAY(arena, uint32_t, g->value_count),
                   .owner = ARENA_ARRAY(arena, uint32_t, g->storage_count)};
}

/* after(core) options("plan=naive", "backend=xnnpack") */
static void put_pipeline(Printer *p) {
  const Graph *g = p->g;
  bool with_own = p->options.pipeline || !g->stage.size;
  uint32_t own = with_own ? g->option_count : 0, all = own + p->options.program_count;
  if (p->options.pipeline && g->stage.size)
    strbuf_printf(p->out, " after(" SV_FMT ")", SV_ARG(g->stage));
  for (uint32_t i = 0; i < all; i++) {
    put(p, i ? ", " : " options(");
    put_string(p->out, i < own ? g->options[i] : p->options.program[i - own]);
  }
  if (all)
    put(p, ")");
}

void graph_print(const Graph *g, PrintOptions options, StrBuf *out) {
  Arena arena = {0};
  Printer p = printer_make(g, options, out, &arena);
  put(&p, "graph ");
  put_graph_name(&p);
  strbuf_printf(out, " level(%s)", level_name(g->level));
  put_pipeline(&p);
  put(&p, " {\n");
  put_header(&p);
  put_inputs(&p);
  put_states(&p);
  uint32_t steps = 0; /* a broken order list may be a circle */
  for (NodeId n = g->first; n && steps++ < g->node_count; n = g->nodes[n].next) {
    define_constants(&p, n, put_constant);
    put(&p, "  ");
    put_node(&p, n);
    put(&p, "\n");
  }
  define_constants(&p, NODE_OUTPUT, put_constant);
  put_outputs(&p);
  put(&p, "}\n");
  arena_release(&arena);
}

static void number_value(Printer *p, ValueId v) {
  if (!p->number[v])
    p->number[v] = ++p->next;
}

/* The numbers are those of the whole graph, so that a message and a dump agree. */
void node_print(const Graph *g, NodeId n, StrBuf *out) {
  Arena arena = {0};
  Printer p = printer_make(g, (PrintOptions){0}, out, &arena);
  for (uint32_t i = 0; i < g->input_count; i++)
    number_value(&p, g->inputs[i]);
  for (uint32_t i = 0; i < g->state_count; i++)
    number_value(&p, g->states[i].value);
  uint32_t steps = 0;
  for (NodeId at = g->first; at && at != n && steps++ < g->node_count; at = g->nodes[at].next) {
    define_constants(&p, at, number_value);
    for (uint32_t i = 0; i < g->nodes[at].result_count; i++)
      number_value(&p, g->nodes[at].first_result + i);
  }
  define_constants(&p, n, number_value);
  if (n == NODE_OUTPUT)
    put_outputs(&p);
  else
    put_node(&p, n);
  arena_release(&arena);
}

/* --- comparison --- */

static StrView next_line(StrView *rest) {
  const char *end = memchr(rest->data, '\n', rest->size);
  size_t size = end ? (size_t)(end - rest->data) : rest->size;
  StrView line = {rest->data, size};
  size += end != NULL;
  *rest = (StrView){rest->data + size, rest->size - size};
  return line;
}

bool graph_differs(const Graph *a, const Graph *b, StrBuf *where) {
  StrBuf texts[2] = {{0}};
  const Graph *graphs[2] = {a, b};
  StrView rest[2];
  for (int i = 0; i < 2; i++) {
    graph_print(graphs[i], (PrintOptions){.locations = true}, &texts[i]);
    rest[i] = (StrView){strbuf_cstr(&texts[i]), texts[i].size};
  }
  bool differs = !sv_eq(rest[0], rest[1]);
  for (uint32_t line = 1; differs && (rest[0].size || rest[1].size); line++) {
    StrView x = next_line(&rest[0]), y = next_line(&rest[1]);
    if (sv_eq(x, y))
      continue;
    strbuf_printf(where, "line %u: '" SV_FMT "' and '" SV_FMT "'", line, SV_ARG(x), SV_ARG(y));
    break;
  }
  strbuf_release(&texts[0]);
  strbuf_release(&texts[1]);
  return differs;
}

/* Text to graphs, see text.h; the grammar is in docs/reference/etir.md. One statement is read to
 * its end before anything of it enters the graph. The first error ends the parse.
 *
 * Types that the text gives are compared with what the shape rules compute. Rules that make symbols
 * of their own (sizes known only while running) are handed the types first and keep the symbols. */
#include "ir/builder.h"
#include "ir/parser.h"
#include "ir/verify.h"
#include "support/text.h"

#define MAX_GRAPHS 1024
#define MAX_OPTIONS 256
#define MAX_ARENAS 256
#define MAX_RESULTS 65535
#define MAX_CONSTRAINTS 16384 /* each is compared with all before it */

/* One result before its "=". */
typedef struct Definition {
  const char *at;
  uint32_t number;
  TypeId type;
  uint32_t storage;
} Definition;

typedef struct Statement {
  const char *at;
  Definition *results;
  uint32_t count;
} Statement;

/* --- value numbers --- */

static void define_value(Parser *p, uint32_t number, ValueId v) {
  POOL_PUSH(p->defined, p->defined_count, p->defined_capacity, number);
  p->values[number] = v;
}

/* A number for a new value. It is smaller than the text is long, so the table is no larger than
 * that. */
static Status parse_new_number(Parser *p, uint32_t *out) {
  Lexer *l = &p->lex;
  const char *at;
  uint64_t number;
  TRY(lexer_value(l, &at, &number));
  if (number > (uint64_t)(l->end - l->begin) || number > UINT32_MAX / 2)
    return lexer_error(l, at, "value number %llu is larger than the text is long",
                       (unsigned long long)number);
  if (number >= p->value_capacity) {
    uint32_t before = p->value_capacity;
    p->values = pool_reserve(p->values, &p->value_capacity, number + 1, sizeof *p->values);
    memset(p->values + before, 0, (p->value_capacity - before) * sizeof *p->values);
  }
  if (p->values[number])
    return lexer_error(l, at, "%%%llu is defined twice", (unsigned long long)number);
  *out = (uint32_t)number;
  return STATUS_OK;
}

static void forget_values(Parser *p) {
  for (uint32_t i = 0; i < p->defined_count; i++)
    p->values[p->defined[i]] = 0;
  p->defined_count = 0;
}

/* --- places in memory --- */

static Status parse_u32(Parser *p, const char *what, uint32_t *out) {
  uint64_t value;
  lexer_skip(&p->lex);
  const char *at = p->lex.at;
  TRY(lexer_u64(&p->lex, what, &value));
  if (value > UINT32_MAX)
    return lexer_error(&p->lex, at, "%s is too large", what);
  *out = (uint32_t)value;
  return STATUS_OK;
}

/* After "@": arena+offset:size, or the value whose place it is. */
static Status parse_storage(Parser *p, uint32_t *out) {
  Lexer *l = &p->lex;
  Graph *g = p->g;
  const char *at = l->at;
  if (lexer_peek(l) == '%') {
    ValueId v = 0;
    TRY(parse_value(p, &v));
    *out = value_get(g, v)->storage;
    return *out ? STATUS_OK : lexer_error(l, at, "that value has no place in memory");
  }
  Storage s = {0};
  TRY(parse_u32(p, "the number of an arena", &s.arena));
  TRY(lexer_expect(l, "+"));
  TRY(lexer_u64(l, "an offset", &s.offset));
  TRY(lexer_expect(l, ":"));
  TRY(lexer_u64(l, "a size", &s.size));
  g->storages = pool_reserve(g->storages, &g->storage_capacity, (uint64_t)g->storage_count + 1,
                             sizeof *g->storages);
  *out = g->storage_count++;
  g->storages[*out] = s;
  return STATUS_OK;
}

/* "%3: f32[2]@1+0:16, %4: …" up to "=". */
static Status parse_definitions(Parser *p, Statement *s) {
  Lexer *l = &p->lex;
  do {
    if (s->count == MAX_RESULTS)
      return lexer_error(l, l->at, "more than %d results", MAX_RESULTS);
    if (!(s->count & (s->count - 1)))
      s->results = arena_grow(&p->scratch, s->results, s->count * sizeof *s->results,
                              (s->count ? 2 * (size_t)s->count : 1) * sizeof *s->results);
    lexer_skip(l);
    Definition *d = &s->results[s->count++];
    *d = (Definition){.at = l->at};
    TRY(parse_new_number(p, &d->number));
    TRY(lexer_expect(l, ":"));
    TRY(parse_type(p, &d->type));
    if (lexer_accept(l, "@"))
      TRY(parse_storage(p, &d->storage));
  } while (lexer_accept(l, ","));
  return lexer_expect(l, "=");
}

static void place_value(Parser *p, const Definition *d, ValueId v, NameId name) {
  Value *value = value_get(p->g, v);
  value->storage = d->storage;
  value->name = name;
  define_value(p, d->number, v);
}

/* --- headers --- */

static Status parse_symbol(Parser *p) {
  Lexer *l = &p->lex;
  lexer_skip(l);
  const char *at = l->at;
  StrView word = lexer_word(l);
  uint64_t index = 0;
  if (word.size < 2 || word.data[0] != 's' ||
      !text_parse_u64((StrView){word.data + 1, word.size - 1}, &index) ||
      index != p->g->syms.symbol_count)
    return lexer_error(l, at, "expected symbol s%u: symbols are numbered in order",
                       p->g->syms.symbol_count);
  strbuf_clear(&p->text);
  TRY(lexer_string(l, "the name of the symbol", &p->text));
  if (!lexer_accept_word(l, "in"))
    return lexer_expected(l, "'in'");
  int64_t lo = 0, hi = 0;
  TRY(lexer_expect(l, "["));
  TRY(lexer_i64(l, "the lower bound", &lo));
  TRY(lexer_expect(l, ","));
  TRY(lexer_i64(l, "the upper bound", &hi));
  TRY(lexer_expect(l, "]"));
  if (lo < 0 || hi < lo)
    return lexer_error(l, at, "the range of a symbol is 0 <= lower bound <= upper bound");
  bool unbacked = lexer_accept_word(l, "unbacked");
  sym_symbol(&p->g->syms, (StrView){strbuf_cstr(&p->text), p->text.size}, lo, hi, unbacked);
  return STATUS_OK;
}

static Status parse_constraint(Parser *p) {
  Lexer *l = &p->lex;
  Constraint c = {.kind = CONSTRAINT_EQ};
  if (p->g->constraint_count == MAX_CONSTRAINTS)
    return lexer_error(l, l->at, "more than %d constraints", MAX_CONSTRAINTS);
  TRY(parse_sym(p, &c.lhs));
  if (lexer_accept(l, ">="))
    c.kind = CONSTRAINT_GE;
  else if (lexer_accept(l, "%"))
    c.kind = CONSTRAINT_DIVISIBLE;
  else if (!lexer_accept(l, "=="))
    return lexer_expected(l, "'==', '>=' or '%'");
  TRY(parse_sym(p, &c.rhs));
  if (c.kind == CONSTRAINT_DIVISIBLE) {
    TRY(lexer_expect(l, "=="));
    TRY(lexer_expect(l, "0"));
  }
  TRY(parse_loc(p, &c.loc));
  graph_add_constraint(p->g, c);
  return STATUS_OK;
}

static Status parse_arenas(Parser *p) {
  Lexer *l = &p->lex;
  uint64_t sizes[MAX_ARENAS];
  uint32_t count = 0;
  TRY(lexer_expect(l, "["));
  do {
    if (count == MAX_ARENAS)
      return lexer_error(l, l->at, "more than %d arenas", MAX_ARENAS);
    TRY(lexer_u64(l, "the size of an arena", &sizes[count++]));
  } while (lexer_accept(l, ","));
  TRY(lexer_expect(l, "]"));
  p->g->arena_sizes = ARENA_ARRAY(&p->g->arena, uint64_t, count);
  memcpy(p->g->arena_sizes, sizes, count * sizeof *sizes);
  p->g->arena_size_count = count;
  return STATUS_OK;
}

/* --- nodes --- */

static Status unknown_op(Parser *p, StrView name) {
  const char *names[OP_COUNT];
  uint32_t count = 0;
  for (OpId op = OP_OUTPUT + 1; op < op_count(); op++)
    names[count++] = arena_strdup(&p->scratch, op_schema(op)->full);
  const char *nearest = text_nearest(name, names, count);
  return lexer_error(&p->lex, name.data, "no op is called '" SV_FMT "'%s%s%s", SV_ARG(name),
                     nearest ? "; did you mean '" : "", nearest ? nearest : "",
                     nearest ? "'?" : "");
}

/* Whether a computed type is the given one but for symbols that the rule has just made, which are
 * those from `fresh` on. */
static bool type_agrees(const Graph *g, const Type *given, const Type *computed, uint32_t fresh) {
  if (given->kind != computed->kind || given->dtype != computed->dtype ||
      given->rank != computed->rank)
    return false;
  for (uint32_t i = 0; i < given->rank; i++) {
    if (given->dims[i] == computed->dims[i])
      continue;
    if (sym_is_const(computed->dims[i]) || sym_is_const(given->dims[i]))
      return false;
    const SymExpr *e = sym_expr(&g->syms, computed->dims[i]);
    if (e->kind != SYM_SYMBOL || e->index < fresh)
      return false;
  }
  return true;
}

static Status type_error(Parser *p, const Definition *d, const Type *computed) {
  StrBuf text = {0};
  type_print(p->g, type_get(p->g, d->type), &text);
  strbuf_append(&text, SV(", but its operands give "));
  type_print(p->g, computed, &text);
  Status status = lexer_error(&p->lex, d->at, "%%%u is given as %s", d->number, strbuf_cstr(&text));
  strbuf_release(&text);
  return status;
}

/* Runs the shape rule and compares. What the rule assumes of symbols is dropped: the text says what
 * is assumed, in the form to which import brought it. */
static Status type_results(Parser *p, const Statement *s, NodeId n) {
  Graph *g = p->g;
  const OpRow *row = op_row(node_cget(g, n)->op);
  uint32_t fresh = g->syms.symbol_count, constraints = g->constraint_count;
  for (uint32_t i = 0; i < node_cget(g, n)->result_count; i++)
    value_set_type(g, node_result(g, n, i), s->results[i].type);
  if (row->shape && (shape_infer(g, n) != STATUS_OK || shape_check_sizes(g, n) != STATUS_OK)) {
    shape_report(g);
    return lexer_error(&p->lex, s->at, "the operands do not fit the op");
  }
  g->constraint_count = constraints;
  if (node_cget(g, n)->result_count != s->count)
    return lexer_error(&p->lex, s->at, "the op gives %u tensors here, not %u",
                       node_cget(g, n)->result_count, s->count);
  for (uint32_t i = 0; i < s->count; i++) {
    const Definition *d = &s->results[i];
    ValueId v = node_result(g, n, i);
    if (!type_agrees(g, type_get(g, d->type), value_type(g, v), fresh))
      return type_error(p, d, value_type(g, v));
    value_set_type(g, v, d->type);
  }
  return STATUS_OK;
}

static Status parse_result_names(Parser *p, uint32_t count, NameId *names) {
  Lexer *l = &p->lex;
  lexer_skip(l);
  const char *at = l->at;
  bool named = lexer_peek(l) == '"' || lexer_accept_word(l, "none");
  l->at = at;
  if (!named)
    return STATUS_OK;
  for (uint32_t i = 0; i < count; i++) {
    if (i)
      TRY(lexer_expect(l, ","));
    TRY(parse_name(p, "the name of a result", &names[i]));
  }
  return STATUS_OK;
}

static Status parse_tag(Parser *p, uint32_t *tag) {
  Lexer *l = &p->lex;
  if (!lexer_accept_word(l, "tag"))
    return STATUS_OK;
  TRY(lexer_expect(l, "("));
  TRY(parse_u32(p, "a tag", tag));
  return lexer_expect(l, ")");
}

static Status parse_node(Parser *p, const Statement *s) {
  Lexer *l = &p->lex;
  Graph *g = p->g;
  StrView name = lexer_op_name(l);
  if (!name.size)
    return lexer_expected(l, "the name of an op, as in aten::relu");
  OpId op = op_find(name);
  if (op == OP_NONE)
    return unknown_op(p, name);
  const OpSchema *schema = op_schema(op);
  if (!schema->result_list && schema->result_count != s->count)
    return lexer_error(l, s->at, "'" SV_FMT "' has %u result%s, not %u", SV_ARG(name),
                       schema->result_count, schema->result_count == 1 ? "" : "s", s->count);
  ArgIn args[SCHEMA_MAX_ARGS];
  NameId *names = ARENA_ARRAY(&p->scratch, NameId, s->count);
  uint32_t tag = 0;
  LocId loc = 0;
  TRY(parse_args(p, op, args));
  TRY(parse_result_names(p, s->count, names));
  TRY(parse_tag(p, &tag));
  TRY(parse_loc(p, &loc));
  uint32_t results = op_has_trait(op, OP_CONTROL) ? s->count
                     : schema->result_list        ? 0
                                                  : schema->result_count;
  NodeId n = graph_add_node(g, 0, op, args, schema->arg_count, results, loc);
  node_get(g, n)->tag = tag;
  TRY(parse_origin(p, n));
  TRY(type_results(p, s, n));
  for (uint32_t i = 0; i < s->count; i++)
    place_value(p, &s->results[i], node_result(g, n, i), names[i]);
  return STATUS_OK;
}

/* --- statements --- */

static Status parse_input(Parser *p, const Statement *s) {
  NameId name = 0;
  TRY(parse_name(p, "the name of the input, or none", &name));
  place_value(p, &s->results[0], graph_add_input(p->g, s->results[0].type, name), name);
  return STATUS_OK;
}

/* name [ "init" data ] */
static Status parse_state(Parser *p, const Statement *s) {
  Graph *g = p->g;
  TypeId type = s->results[0].type;
  NameId name = 0;
  ConstId initial = 0;
  TRY(parse_name(p, "the name of the state, or none", &name));
  if (lexer_accept_word(&p->lex, "init")) {
    Constant data = {0};
    TRY(parse_data(p, type, &data));
    initial = graph_add_data(g, data);
  }
  place_value(p, &s->results[0], graph_add_state(g, type, initial, name), name);
  return STATUS_OK;
}

static Status parse_constant(Parser *p, const Statement *s) {
  Constant data = {0};
  NameId name = 0;
  TRY(parse_data(p, s->results[0].type, &data));
  ValueId v = graph_add_constant(p->g, s->results[0].type, data, 0);
  if (lexer_peek(&p->lex) == '"')
    TRY(parse_name(p, "a name", &name));
  place_value(p, &s->results[0], v, name);
  return STATUS_OK;
}

static Status parse_outputs(Parser *p) {
  Lexer *l = &p->lex;
  ValueId *values = NULL;
  NameId *names = NULL;
  uint32_t count = 0, capacity = 0;
  while (lexer_peek(l) == '%' || count) {
    if (count == capacity) {
      uint32_t grown = capacity ? 2 * capacity : 8;
      values = arena_grow(&p->scratch, values, count * sizeof *values, grown * sizeof *values);
      names = arena_grow(&p->scratch, names, count * sizeof *names, grown * sizeof *names);
      capacity = grown;
    }
    names[count] = 0;
    TRY(parse_value(p, &values[count]));
    if (lexer_peek(l) == '"')
      TRY(parse_name(p, "the name of the output", &names[count]));
    count++;
    if (!lexer_accept(l, ","))
      break;
  }
  graph_set_outputs(p->g, values, count, names);
  return STATUS_OK;
}

static Status parse_statement(Parser *p, bool *is_end) {
  Lexer *l = &p->lex;
  lexer_skip(l);
  Statement s = {.at = l->at};
  if (lexer_accept_word(l, "sym"))
    return parse_symbol(p);
  if (lexer_accept_word(l, "range"))
    return parse_sym(p, &(SymInt){0}); /* that it was made is all that counts */
  if (lexer_accept_word(l, "constraint"))
    return parse_constraint(p);
  if (lexer_accept_word(l, "arenas"))
    return parse_arenas(p);
  if (lexer_accept_word(l, "output")) {
    TRY(parse_outputs(p));
    *is_end = true;
    return lexer_expect(l, "}");
  }
  if (lexer_peek(l) != '%') {
    if (lexer_peek(l) == '}')
      return lexer_expected(l, "'output'");
    return parse_node(p, &s);
  }
  TRY(parse_definitions(p, &s));
  if (s.count == 1 && lexer_accept_word(l, "input"))
    return parse_input(p, &s);
  if (s.count == 1 && lexer_accept_word(l, "state"))
    return parse_state(p, &s);
  if (s.count == 1 && lexer_accept_word(l, "const"))
    return parse_constant(p, &s);
  return parse_node(p, &s);
}

/* --- graphs --- */

static Status parse_graph_name(Parser *p, StrView *out) {
  Lexer *l = &p->lex;
  TRY(lexer_expect(l, "@"));
  if (lexer_peek(l) != '"') {
    *out = lexer_word(l);
    return out->size ? STATUS_OK : lexer_expected(l, "the name of the graph");
  }
  strbuf_clear(&p->text);
  TRY(lexer_string(l, "the name of the graph", &p->text));
  *out = (StrView){strbuf_cstr(&p->text), p->text.size};
  return STATUS_OK;
}

static Status parse_level(Parser *p, Level *out) {
  Lexer *l = &p->lex;
  if (!lexer_accept_word(l, "level"))
    return lexer_expected(l, "'level'");
  TRY(lexer_expect(l, "("));
  StrView word = lexer_word(l);
  for (unsigned level = 0; level < LEVEL_COUNT; level++)
    if (sv_eq_str(word, level_name((Level)level))) {
      *out = (Level)level;
      return lexer_expect(l, ")");
    }
  l->at = word.data;
  return lexer_expected(l, "aten, core, edge or executorch");
}

/* after(STAGE), or nothing */
static Status parse_stage(Parser *p) {
  Lexer *l = &p->lex;
  if (!lexer_accept_word(l, "after"))
    return STATUS_OK;
  TRY(lexer_expect(l, "("));
  StrView word = lexer_word(l);
  if (!word.size)
    return lexer_expected(l, "the name of a stage");
  p->g->stage = (StrView){arena_strdup(&p->g->arena, word), word.size};
  return lexer_expect(l, ")");
}

/* options("NAME=VALUE", …), or nothing */
static Status parse_options(Parser *p) {
  Lexer *l = &p->lex;
  Graph *g = p->g;
  StrView *list = NULL;
  if (!lexer_accept_word(l, "options"))
    return STATUS_OK;
  TRY(lexer_expect(l, "("));
  do {
    if (g->option_count == MAX_OPTIONS)
      return lexer_expected(l, "')' after so many options");
    strbuf_clear(&p->text);
    TRY(lexer_string(l, "an option", &p->text));
    list = arena_grow(&g->arena, list, g->option_count * sizeof *list,
                      (g->option_count + 1) * sizeof *list);
    StrView text = {strbuf_cstr(&p->text), p->text.size};
    list[g->option_count++] = (StrView){arena_strdup(&g->arena, text), text.size};
    g->options = list;
  } while (lexer_accept(l, ","));
  return lexer_expect(l, ")");
}

/* The graph is in the array of the caller, who frees it, as soon as it exists. */
static Status parse_graph(Parser *p, Graph **graphs, uint32_t *count) {
  Lexer *l = &p->lex;
  if (!lexer_accept_word(l, "graph"))
    return lexer_expected(l, "'graph'");
  StrView name;
  lexer_skip(l);
  const char *at = l->at;
  TRY(parse_graph_name(p, &name));
  if (*count == MAX_GRAPHS)
    return lexer_error(l, at, "more than %d graphs", MAX_GRAPHS);
  p->g = graphs[(*count)++] = graph_new(p->ctx, name);
  for (uint32_t i = 0; i + 1 < *count; i++)
    if (graphs[i]->name == p->g->name)
      return lexer_error(l, at, "there is already a graph of this name");
  p->last_loc = 0;
  TRY(parse_level(p, &p->g->level));
  TRY(parse_stage(p));
  TRY(parse_options(p));
  TRY(lexer_expect(l, "{"));
  for (bool is_end = false; !is_end;) {
    TRY(parse_statement(p, &is_end));
    arena_reset(&p->scratch);
  }
  forget_values(p);
  return graph_verify(p->g, NULL);
}

static Status parse_all(Parser *p, Graph **graphs, uint32_t *count) {
  do
    TRY(parse_graph(p, graphs, count));
  while (lexer_peek(&p->lex));
  if (p->lex.at < p->lex.end)
    return lexer_expected(&p->lex, "'graph'");
  return STATUS_OK;
}

Status graph_parse(Context *ctx, StrView text, StrView file, const Graph *constants_from,
                   Graph ***graphs, uint32_t *count) {
  Parser p = {.ctx = ctx, .known = {.graph = constants_from}};
  p.lex = (Lexer){.begin = text.data,
                  .at = text.data,
                  .end = text.data + text.size,
                  .file = file,
                  .sink = ctx->sink};
  *graphs = ARENA_ARRAY(&ctx->arena, Graph *, MAX_GRAPHS);
  *count = 0;
  Status status = parse_all(&p, *graphs, count);
  while (status != STATUS_OK && *count > 0)
    graph_free((*graphs)[--*count]);
  strbuf_release(&p.text);
  arena_release(&p.scratch);
  arena_release(&p.arena);
  xfree(p.values);
  xfree(p.defined);
  return status;
}

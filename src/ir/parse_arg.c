/* Types and arguments of nodes. The schema of the op says what an argument may be, so "1" is an
 * int, a float or a Scalar by its place. */
#include "ir/const_text.h"
#include "ir/parser.h"

/* Longest text of one symbolic expression: multiplying out a hostile one takes time that grows
 * faster than its length. */
#define SYM_TEXT_MAX 4096

Status parse_value(Parser *p, ValueId *out) {
  Lexer *l = &p->lex;
  const char *at;
  uint64_t number;
  TRY(lexer_value(l, &at, &number));
  if (number >= p->value_capacity || !p->values[number])
    return lexer_error(l, at, "%%%llu is used before it is defined", (unsigned long long)number);
  *out = p->values[number];
  return STATUS_OK;
}

Status parse_name(Parser *p, const char *what, NameId *out) {
  *out = 0;
  if (lexer_accept_word(&p->lex, "none"))
    return STATUS_OK;
  strbuf_clear(&p->text);
  TRY(lexer_string(&p->lex, what, &p->text));
  *out = intern_add(&p->ctx->names, (StrView){strbuf_cstr(&p->text), p->text.size});
  return STATUS_OK;
}

Status parse_sym(Parser *p, SymInt *out) {
  Lexer *l = &p->lex;
  lexer_skip(l);
  const char *start = l->at, *end = l->end;
  if (end - start > SYM_TEXT_MAX)
    end = start + SYM_TEXT_MAX;
  if (sym_parse(&p->g->syms, &l->at, end, out))
    return STATUS_OK;
  if (l->at == start || start == end)
    return lexer_expected(l, "an integer or an expression over declared symbols");
  return lexer_error(l, l->at,
                     "the expression goes on with no number, declared symbol or "
                     "floordiv, mod, min, max");
}

/* --- types --- */

static Status parse_scalar_type(Parser *p, TypeKind kind, TypeId *out) {
  SymInt value = 0;
  bool known = lexer_accept(&p->lex, "(");
  if (known) {
    TRY(parse_sym(p, &value));
    TRY(lexer_expect(&p->lex, ")"));
  }
  *out = graph_scalar_type(p->g, kind, value, known);
  return STATUS_OK;
}

static Status parse_tensor_type(Parser *p, DType dtype, TypeId *out) {
  Lexer *l = &p->lex;
  SymInt dims[MAX_RANK];
  uint32_t rank = 0;
  if (!lexer_accept(l, "]")) {
    do {
      lexer_skip(l);
      const char *at = l->at;
      if (rank == MAX_RANK)
        return lexer_error(l, at, "a tensor has at most %d dimensions", MAX_RANK);
      TRY(parse_sym(p, &dims[rank]));
      if (sym_upper(&p->g->syms, dims[rank++]) < 0)
        return lexer_error(l, at, "a dimension cannot be negative");
    } while (lexer_accept(l, ","));
    TRY(lexer_expect(l, "]"));
  }
  DimOrder order = ORDER_CONTIGUOUS;
  if (lexer_accept(l, "{")) {
    const char *at = l->at;
    if (!lexer_accept_word(l, "channels_last"))
      return lexer_expected(l, "channels_last");
    TRY(lexer_expect(l, "}"));
    if (rank != 4)
      return lexer_error(l, at, "only tensors of 4 dimensions can be channels_last");
    order = ORDER_CHANNELS_LAST;
  }
  *out = graph_tensor_type(p->g, dtype, rank, dims, order);
  return STATUS_OK;
}

Status parse_type(Parser *p, TypeId *out) {
  Lexer *l = &p->lex;
  DType dtype;
  StrView word = lexer_word(l);
  if (dtype_from_name(word, &dtype) && lexer_accept(l, "["))
    return parse_tensor_type(p, dtype, out);
  if (sv_eq_str(word, "int"))
    return parse_scalar_type(p, TYPE_INT, out);
  if (sv_eq_str(word, "float"))
    return parse_scalar_type(p, TYPE_FLOAT, out);
  if (sv_eq_str(word, "bool"))
    return parse_scalar_type(p, TYPE_BOOL, out);
  l->at = word.data;
  return lexer_expected(l, "a type, as in f32[2, 3], int or bool");
}

/* --- arguments --- */

static Status parse_bool(Parser *p, bool *out) {
  *out = lexer_accept_word(&p->lex, "true");
  if (*out || lexer_accept_word(&p->lex, "false"))
    return STATUS_OK;
  return lexer_expected(&p->lex, "true or false");
}

static Status parse_float(Parser *p, double *out) {
  Lexer *l = &p->lex;
  StrView text = lexer_element(l);
  if (float_parse(text, out))
    return STATUS_OK;
  l->at = text.data;
  return lexer_expected(l, "a number");
}

/* A Scalar: a float when it is written as one. */
static Status parse_scalar(Parser *p, ArgIn *out) {
  Lexer *l = &p->lex;
  bool is_true = lexer_accept_word(l, "true");
  if (is_true || lexer_accept_word(l, "false")) {
    *out = A_BOOL(is_true);
    return STATUS_OK;
  }
  StrView text = lexer_element(l);
  bool looks_float = false;
  double value;
  for (size_t i = 0; i < text.size; i++)
    looks_float |= strchr(".en", text.data[i]) != NULL;
  if (looks_float && float_parse(text, &value)) {
    *out = A_FLOAT(value);
    return STATUS_OK;
  }
  l->at = text.data;
  SymInt number;
  TRY(parse_sym(p, &number));
  *out = A_INT(number);
  return STATUS_OK;
}

static Status parse_dtype(Parser *p, ArgIn *out) {
  Lexer *l = &p->lex;
  DType dtype;
  StrView word = lexer_word(l);
  if (!dtype_from_name(word, &dtype)) {
    l->at = word.data;
    return lexer_expected(l, "an element type, as in f32");
  }
  *out = A_DTYPE(dtype);
  return STATUS_OK;
}

static Status parse_string_arg(Parser *p, ArgIn *out) {
  NameId name;
  if (lexer_peek(&p->lex) != '"')
    return lexer_expected(&p->lex, "a string");
  TRY(parse_name(p, "a string", &name));
  *out = (ArgIn){.kind = ARG_STR, .str = intern_get(&p->ctx->names, name)};
  return STATUS_OK;
}

static Status parse_single(Parser *p, const SchemaArg *s, ArgIn *out) {
  Lexer *l = &p->lex;
  if (lexer_peek(l) == '%' && s->type <= ST_SCALAR) {
    ValueId v = 0;
    TRY(parse_value(p, &v));
    *out = A_VAL(v);
    return STATUS_OK;
  }
  SymInt number = 0;
  double real = 0;
  bool flag = false;
  switch (s->type) {
  case ST_TENSOR:
    break;
  case ST_INT:
  case ST_MEMORY_FORMAT:
  case ST_LAYOUT:
  case ST_DEVICE:
    TRY(parse_sym(p, &number));
    *out = A_INT(number);
    return STATUS_OK;
  case ST_FLOAT:
    TRY(parse_float(p, &real));
    *out = A_FLOAT(real);
    return STATUS_OK;
  case ST_BOOL:
    TRY(parse_bool(p, &flag));
    *out = A_BOOL(flag);
    return STATUS_OK;
  case ST_SCALAR:
    return parse_scalar(p, out);
  case ST_STR:
    return parse_string_arg(p, out);
  case ST_DTYPE:
    return parse_dtype(p, out);
  }
  return lexer_expected(l, "a value, as in %3");
}

static Status parse_value_list(Parser *p, const SchemaArg *s, ArgIn *out) {
  ValueId *values = NULL;
  uint32_t count = 0;
  do {
    values = arena_push(&p->scratch, values, count, sizeof *values);
    values[count] = 0;
    if (!s->element_optional || !lexer_accept_word(&p->lex, "none"))
      TRY(parse_value(p, &values[count]));
    count++;
  } while (lexer_accept(&p->lex, ","));
  *out = A_VALS(values, count);
  return STATUS_OK;
}

static Status parse_int_list(Parser *p, ArgIn *out) {
  SymInt *ints = NULL;
  uint32_t count = 0;
  do {
    ints = arena_push(&p->scratch, ints, count, sizeof *ints);
    TRY(parse_sym(p, &ints[count++]));
  } while (lexer_accept(&p->lex, ","));
  *out = A_INTS(ints, count);
  return STATUS_OK;
}

static Status parse_float_list(Parser *p, ArgIn *out) {
  double *floats = NULL;
  uint32_t count = 0;
  do {
    floats = arena_push(&p->scratch, floats, count, sizeof *floats);
    TRY(parse_float(p, &floats[count++]));
  } while (lexer_accept(&p->lex, ","));
  *out = A_FLOATS(floats, count);
  return STATUS_OK;
}

static ArgIn empty_list(SchemaType type) {
  switch (type) {
  case ST_TENSOR:
    return A_VALS(NULL, 0);
  case ST_FLOAT:
    return A_FLOATS(NULL, 0);
  default:
    return A_INTS(NULL, 0);
  }
}

static Status parse_list(Parser *p, const SchemaArg *s, ArgIn *out) {
  Lexer *l = &p->lex;
  if (!lexer_accept(l, "["))
    return lexer_expected(l, "a list, as in [1, 2]");
  if (lexer_accept(l, "]")) {
    *out = empty_list(s->type);
    return STATUS_OK;
  }
  if (s->type == ST_TENSOR || lexer_peek(l) == '%')
    TRY(parse_value_list(p, s, out));
  else if (s->type == ST_FLOAT)
    TRY(parse_float_list(p, out));
  else
    TRY(parse_int_list(p, out));
  return lexer_expect(l, "]");
}

static Status parse_arg(Parser *p, const SchemaArg *s, ArgIn *out) {
  Lexer *l = &p->lex;
  lexer_skip(l);
  const char *at = l->at;
  if (lexer_accept_word(l, "none")) {
    *out = A_NONE;
    return s->optional
               ? STATUS_OK
               : lexer_error(l, at, "argument '" SV_FMT "' cannot be none", SV_ARG(s->name));
  }
  return s->list ? parse_list(p, s, out) : parse_single(p, s, out);
}

Status parse_args(Parser *p, OpId op, ArgIn *args) {
  Lexer *l = &p->lex;
  const OpSchema *schema = op_schema(op);
  TRY(lexer_expect(l, "("));
  uint32_t count = 0;
  if (lexer_peek(l) != ')') {
    do {
      lexer_skip(l);
      if (count == schema->arg_count)
        return lexer_error(l, l->at, "'" SV_FMT "' has %u argument%s", SV_ARG(schema->full), count,
                           count == 1 ? "" : "s");
      TRY(parse_arg(p, &schema->args[count], &args[count]));
      count++;
    } while (lexer_accept(l, ","));
  }
  const char *at = l->at;
  TRY(lexer_expect(l, ")"));
  for (; count < schema->arg_count; count++) {
    if (!schema->args[count].has_default)
      return lexer_error(l, at, "argument '" SV_FMT "' of '" SV_FMT "' is missing",
                         SV_ARG(schema->args[count].name), SV_ARG(schema->full));
    args[count] = schema->args[count].default_value;
  }
  return STATUS_OK;
}

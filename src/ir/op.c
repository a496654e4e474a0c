/* Parsing of the ATen schema strings of the op table, once, and look-up by name. */
#include "ir/op_internal.h"
#include "support/text.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define NAME_SLOTS 2048 /* a power of two, several times OP_COUNT */

/* A slot is written after all that it leads to, so that threads which find it can read that. */
typedef _Atomic OpId Slot;

OpRow op_added[OP_PLUGIN_MAX];
static OpSchema schemas[OP_COUNT];
static Slot by_name[NAME_SLOTS], by_out[NAME_SLOTS];
static _Atomic uint32_t added_count;
static pthread_once_t parsed = PTHREAD_ONCE_INIT;

typedef struct Cursor {
  const char *at;
  const char *expected, *fault; /* what was not there first, and where; NULL: all is well */
} Cursor;

/* Keeps the first fault, and goes on at the end of the text, where nothing more is found. */
static void expected(Cursor *c, const char *what) {
  if (!c->expected) {
    c->expected = what;
    c->fault = c->at;
  }
  c->at += strlen(c->at);
}

static void skip_spaces(Cursor *c) {
  while (*c->at == ' ')
    c->at++;
}

static bool accept(Cursor *c, const char *token) {
  skip_spaces(c);
  size_t size = strlen(token);
  if (strncmp(c->at, token, size) != 0)
    return false;
  c->at += size;
  return true;
}

static void expect(Cursor *c, const char *token) {
  if (!accept(c, token))
    expected(c, token);
}

static StrView word(Cursor *c) {
  skip_spaces(c);
  const char *start = c->at;
  while (is_word(*c->at))
    c->at++;
  return (StrView){start, (size_t)(c->at - start)};
}

static SchemaType parse_base_type(Cursor *c) {
  static const struct {
    const char *name;
    SchemaType type;
  } types[] = {{"Tensor", ST_TENSOR}, {"SymInt", ST_INT},       {"int", ST_INT},
               {"float", ST_FLOAT},   {"bool", ST_BOOL},        {"Scalar", ST_SCALAR},
               {"str", ST_STR},       {"ScalarType", ST_DTYPE}, {"MemoryFormat", ST_MEMORY_FORMAT},
               {"Layout", ST_LAYOUT}, {"Device", ST_DEVICE}};
  StrView name = word(c);
  for (size_t i = 0; i < COUNT_OF(types); i++)
    if (sv_eq_str(name, types[i].name))
      return types[i].type;
  c->at = name.data;
  expected(c, "a type");
  return ST_TENSOR;
}

/* Base type, then any of (a!), ?, [n]. */
static void parse_type(Cursor *c, SchemaArg *arg) {
  arg->type = parse_base_type(c);
  for (;;) {
    if (accept(c, "(")) {
      word(c);
      arg->mutated = accept(c, "!");
      expect(c, ")");
    } else if (accept(c, "?")) {
      arg->optional = true;
    } else if (accept(c, "[")) {
      word(c);
      expect(c, "]");
      arg->list = true;
      arg->element_optional = arg->optional;
      arg->optional = false;
    } else {
      return;
    }
  }
}

static ArgIn parse_number(Cursor *c, const SchemaArg *arg) {
  const char *end = c->at + strcspn(c->at, ",)]");
  double value;
  if (!text_parse_double((StrView){c->at, (size_t)(end - c->at)}, &value)) {
    expected(c, "a number");
    return A_INT(0);
  }
  bool fraction = false;
  for (const char *p = c->at; p < end; p++)
    fraction |= *p == '.' || *p == 'e';
  c->at = end;
  if (arg->type == ST_FLOAT || fraction)
    return A_FLOAT(value);
  ArgIn whole = A_INT(0);
  if (!sym_from_float(value, &whole.i))
    expected(c, "a number that a size can be");
  return whole;
}

/* Defaults of a list argument: "[]" or, as in ATen, one number for all elements ("int[2]
 * padding=0"). Spelled as one element: the kernels take lists of length 1 for every spatial dim. */
static ArgIn parse_list_default(Cursor *c, const SchemaArg *arg) {
  static const int64_t zero[] = {0}, one[] = {1};
  if (accept(c, "[")) {
    if (accept(c, "]"))
      return arg->type == ST_TENSOR  ? A_VALS(NULL, 0)
             : arg->type == ST_FLOAT ? A_FLOATS(NULL, 0)
                                     : A_INTS(NULL, 0);
    ArgIn first = parse_number(c, arg);
    expect(c, "]");
    return A_INTS(first.i ? one : zero, 1);
  }
  ArgIn all = parse_number(c, arg);
  return A_INTS(all.i ? one : zero, 1);
}

static ArgIn parse_default(Cursor *c, const SchemaArg *arg) {
  if (accept(c, "None"))
    return A_NONE;
  if (accept(c, "True"))
    return A_BOOL(true);
  if (accept(c, "False"))
    return A_BOOL(false);
  if (arg->list)
    return parse_list_default(c, arg);
  if (accept(c, "\"")) {
    StrView text = word(c);
    expect(c, "\"");
    return (ArgIn){.kind = ARG_STR, .str = text};
  }
  return parse_number(c, arg);
}

static void parse_args(Cursor *c, OpSchema *s) {
  expect(c, "(");
  if (accept(c, ")"))
    return;
  do {
    if (accept(c, "*"))
      continue;
    if (s->arg_count == SCHEMA_MAX_ARGS) {
      expected(c, "no more arguments");
      return;
    }
    SchemaArg *arg = &s->args[s->arg_count++];
    parse_type(c, arg);
    arg->name = word(c);
    if (accept(c, "=")) {
      arg->has_default = true;
      arg->default_value = parse_default(c, arg);
    }
  } while (accept(c, ","));
  expect(c, ")");
}

static void parse_result(Cursor *c, OpSchema *s) {
  SchemaArg type = {0};
  parse_type(c, &type);
  word(c); /* an optional name */
  if (s->result_count == SCHEMA_MAX_RESULTS) {
    expected(c, "no more results");
    return;
  }
  s->result_list = type.list;
  s->results[s->result_count++] = type.type;
}

SchemaFault op_parse_schema(const char *text, OpSchema *s) {
  Cursor c = {.at = text};
  size_t name = strcspn(text, "(");
  s->full = (StrView){text, name};
  const char *dot = memchr(text, '.', name);
  s->name = (StrView){text, dot ? (size_t)(dot - text) : name};
  s->overload = dot ? (StrView){dot + 1, (size_t)(text + name - dot - 1)} : SV("");
  c.at = text + name;
  parse_args(&c, s);
  expect(&c, "->");
  if (!accept(&c, "(")) {
    parse_result(&c, s);
  } else if (!accept(&c, ")")) {
    do
      parse_result(&c, s);
    while (accept(&c, ","));
    expect(&c, ")");
  }
  if (*c.at)
    expected(&c, "the end");
  return (SchemaFault){c.expected, c.fault};
}

static uint32_t name_hash(StrView name) {
  uint32_t h = 2166136261u; /* FNV-1a: the names are ours */
  for (size_t i = 0; i < name.size; i++)
    h = (h ^ (uint8_t)name.data[i]) * 16777619u;
  return h & (NAME_SLOTS - 1);
}

static void slots_add(Slot *slots, StrView name, OpId op) {
  uint32_t slot = name_hash(name);
  while (atomic_load_explicit(&slots[slot], memory_order_relaxed))
    slot = (slot + 1) & (NAME_SLOTS - 1);
  atomic_store_explicit(&slots[slot], op, memory_order_release);
}

static void parse_all(void) {
  for (OpId op = OP_OUTPUT + 1; op < OP_PLUGIN; op++) {
    SchemaFault fault = op_parse_schema(op_table[op].schema, &schemas[op]);
    if (fault.expected)
      BUG("schema '%s': expected '%s' at '%s'", op_table[op].schema, fault.expected, fault.at);
    slots_add(by_name, schemas[op].full, op);
    if (op_table[op].out)
      slots_add(by_out, sv_from(op_table[op].out), op);
  }
}

const OpSchema *op_schema(OpId op) {
  pthread_once(&parsed, parse_all);
  return &schemas[op];
}

void op_publish(const OpRow *row, const OpSchema *schema) {
  pthread_once(&parsed, parse_all);
  uint32_t count = added_count;
  OpId op = (OpId)(OP_PLUGIN + count);
  op_added[count] = *row;
  schemas[op] = *schema;
  slots_add(by_name, schema->full, op);
  slots_add(by_out, sv_from(row->out), op);
  added_count = count + 1;
}

uint32_t op_count(void) { return OP_PLUGIN + atomic_load(&added_count); }

OpId op_find(StrView full_name) {
  pthread_once(&parsed, parse_all);
  OpId op;
  for (uint32_t slot = name_hash(full_name);
       (op = atomic_load_explicit(&by_name[slot], memory_order_acquire)) != OP_NONE;
       slot = (slot + 1) & (NAME_SLOTS - 1))
    if (sv_eq(schemas[op].full, full_name))
      return op;
  return OP_NONE;
}

OpId op_find_out(StrView kernel_name) {
  pthread_once(&parsed, parse_all);
  OpId op;
  for (uint32_t slot = name_hash(kernel_name);
       (op = atomic_load_explicit(&by_out[slot], memory_order_acquire)) != OP_NONE;
       slot = (slot + 1) & (NAME_SLOTS - 1))
    if (sv_eq_str(kernel_name, op_row(op)->out))
      return op;
  return OP_NONE;
}

bool op_allowed_at(OpId op, Level level) {
  uint32_t levels = op_row(op)->levels;
  if (!levels)
    levels = op_row(op)->out ? (1u << LEVEL_COUNT) - 1 : 1u << LEVEL_ATEN;
  return op == OP_OUTPUT || (levels >> level & 1) != 0;
}

uint32_t op_arg_index(OpId op, const char *name) {
  const OpSchema *s = op_schema(op);
  for (uint32_t i = 0; i < s->arg_count; i++)
    if (sv_eq_str(s->args[i].name, name))
      return i;
  BUG("%s has no argument '%s'", op_row(op)->schema, name);
}

const char *level_name(Level level) {
  static const char *const names[LEVEL_COUNT] = {"aten", "core", "edge", "executorch"};
  return names[level];
}

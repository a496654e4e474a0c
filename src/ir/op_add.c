/* Ops that are no rows of the table: of plug-ins, and of kernels that --custom-op names. */
#include "ir/op_internal.h"

#include <stdio.h>

#include "support/memory.h"
#include "support/text.h"

enum { SCHEMA_LENGTH = 512, ID_LENGTH = 64 };

/* Of the process, in the order in which they came; under `adding`. */
static const OpRow *rows[OP_PLUGIN_MAX];
static char ids[OP_PLUGIN_MAX][ID_LENGTH];
static struct {
  OpRow row;
  char text[SCHEMA_LENGTH]; /* as it was given */
  char schema[SCHEMA_LENGTH], kernel[SCHEMA_LENGTH];
} kernels[OP_PLUGIN_MAX];
static uint32_t row_count, kernel_count;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

static size_t word_end(StrView text, size_t at) {
  while (at < text.size && is_word(text.data[at]))
    at++;
  return at;
}

/* "namespace::name" or "namespace::name.overload". */
static bool is_full_name(StrView name) {
  size_t space = word_end(name, 0), local = space + 2;
  if (!space || name.size <= local || memcmp(name.data + space, "::", 2) != 0)
    return false;
  size_t end = word_end(name, local);
  if (end == local || end == name.size)
    return end != local;
  return name.data[end] == '.' && end + 1 < name.size && word_end(name, end + 1) == name.size;
}

static const char *fault_text(const char *schema, SchemaFault fault, Arena *arena) {
  const char *quote = is_letter(fault.expected[0]) ? "" : "'";
  return arena_printf(arena, "schema '%s': expected %s%s%s%s%s'", schema, quote, fault.expected,
                      quote, fault.at[0] ? " at '" : " at the end of '",
                      fault.at[0] ? fault.at : schema);
}

/* What is wrong with a schema; NULL: nothing. */
static const char *schema_fault(const char *text, OpSchema *s, Arena *arena) {
  SchemaFault fault = op_parse_schema(text, s);
  if (fault.expected)
    return fault_text(text, fault, arena);
  if (!is_full_name(s->full))
    return arena_printf(arena, "schema '%s' does not begin with NAMESPACE::NAME", text);
  for (uint32_t i = 0; i < s->arg_count; i++)
    if (s->args[i].mutated)
      return arena_printf(
          arena, "schema '%s': argument '" SV_FMT "' is written, which only ops of etc may do",
          text, SV_ARG(s->args[i].name));
  for (uint32_t i = 0; i < s->result_count; i++)
    if (s->results[i] != ST_TENSOR || s->result_list)
      return arena_printf(arena, "schema '%s': a result is not one tensor", text);
  return s->result_count ? NULL : arena_printf(arena, "schema '%s' has no result", text);
}

static const char *row_fault(const OpRow *row, OpSchema *s, Arena *arena) {
  if (!row->schema)
    return "an op has no schema";
  const char *fault = schema_fault(row->schema, s, arena);
  if (fault)
    return fault;
  if (!row->shape || !row->doc)
    return arena_printf(arena, "op '" SV_FMT "' lacks its %s", SV_ARG(s->full),
                        row->shape ? "line of prose (doc)" : "function shape");
  if (!row->out || !is_full_name(sv_from(row->out)))
    return arena_printf(arena, "op '" SV_FMT "' does not name the kernel of the runtime (out)",
                        SV_ARG(s->full));
  if (row->traits & ~(uint32_t)OP_PLUGIN_TRAITS)
    return arena_printf(arena, "op '" SV_FMT "' has a trait that only ops of etc may have",
                        SV_ARG(s->full));
  if (op_find(s->full))
    return arena_printf(arena, "there is an op '" SV_FMT "' already", SV_ARG(s->full));
  if (op_find_out(sv_from(row->out)))
    return arena_printf(arena, "there is an op with the kernel '%s' already", row->out);
  return NULL;
}

static const char *add_row(const OpRow *row, Arena *arena) {
  for (uint32_t i = 0; i < row_count; i++)
    if (rows[i] == row)
      return NULL;
  OpSchema schema = {0};
  const char *fault = row_fault(row, &schema, arena);
  if (fault)
    return fault;
  if (row_count == OP_PLUGIN_MAX)
    return arena_printf(arena, "there are more than %d ops beside those of etc", OP_PLUGIN_MAX);
  OpRow own = *row;
  own.id = ids[row_count];
  snprintf(ids[row_count], ID_LENGTH, SV_FMT, SV_ARG(schema.full));
  op_publish(&own, &schema);
  rows[row_count++] = row;
  return NULL;
}

const char *op_add(const OpRow *row, Arena *arena) {
  memory_lock(&adding);
  const char *fault = add_row(row, arena);
  memory_unlock(&adding);
  return fault;
}

/* --- kernels by their schema --- */

/* The "*" behind which a schema lists the tensors that a kernel writes; NULL: not found. */
static const char *find_star(const char *text) {
  for (const char *at = strchr(text, '*'); at; at = strchr(at + 1, '*'))
    if (at[1 + strspn(at + 1, " ")] == ',')
      return at;
  return NULL;
}

/* The schema of the op that a kernel computes: the arguments before the star, and as many tensors
 * as come behind it. */
static const char *functional(const char *text, const OpSchema *s, char *schema, Arena *arena) {
  const char *star = find_star(text);
  uint32_t written = 0;
  for (uint32_t i = 0; i < s->arg_count; i++)
    written += s->args[i].mutated && s->args[i].type == ST_TENSOR && !s->args[i].list;
  if (!star || !written || written != s->result_count)
    return arena_printf(arena,
                        "schema '%s' is not that of a kernel, which writes its results: "
                        "NAME.out(…, *, Tensor(a!) out) -> Tensor(a!)",
                        text);
  size_t length = (size_t)(star - text), name = s->name.size, open = s->full.size;
  while (length > open + 1 && (text[length - 1] == ' ' || text[length - 1] == ','))
    length--;
  static const char *const results[SCHEMA_MAX_RESULTS] = {
      "Tensor", "(Tensor, Tensor)", "(Tensor, Tensor, Tensor)", "(Tensor, Tensor, Tensor, Tensor)"};
  int size = snprintf(schema, SCHEMA_LENGTH, "%.*s%.*s) -> %s", (int)name, text,
                      (int)(length - open), text + open, results[written - 1]);
  return size < SCHEMA_LENGTH ? NULL : arena_printf(arena, "schema '%s' is too long", text);
}

static const char *add_kernel(const char *text, ShapeFn *shape, Arena *arena, OpId *op) {
  OpSchema s = {0};
  for (uint32_t i = 0; i < kernel_count; i++)
    if (strcmp(kernels[i].text, text) == 0) {
      *op = op_find_out(sv_from(kernels[i].kernel));
      return NULL;
    }
  SchemaFault wrong = op_parse_schema(text, &s);
  if (wrong.expected)
    return fault_text(text, wrong, arena);
  if (kernel_count == OP_PLUGIN_MAX || strlen(text) >= SCHEMA_LENGTH)
    return arena_printf(arena, "schema '%s' is too long, or one of more than %d", text,
                        OP_PLUGIN_MAX);
  OpRow *row = &kernels[kernel_count].row;
  char *schema = kernels[kernel_count].schema, *kernel = kernels[kernel_count].kernel;
  const char *fault = functional(text, &s, schema, arena);
  if (fault)
    return fault;
  snprintf(kernel, SCHEMA_LENGTH, SV_FMT, SV_ARG(s.full));
  snprintf(kernels[kernel_count].text, SCHEMA_LENGTH, "%s", text);
  *row = (OpRow){.schema = schema, .out = kernel, .shape = shape, .doc = "a kernel of --custom-op"};
  fault = add_row(row, arena);
  if (fault)
    return fault;
  kernel_count++;
  *op = op_find_out(sv_from(kernel));
  return NULL;
}

const char *op_add_kernel(const char *schema, ShapeFn *shape, Arena *arena, OpId *op) {
  memory_lock(&adding);
  const char *fault = add_kernel(schema, shape, arena, op);
  memory_unlock(&adding);
  return fault;
}

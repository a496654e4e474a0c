/* See inspect.h. The report as JSON; inspect_text.c has it as text. */
#include "pte/inspect.h"

#include "pte/inspect_internal.h"
#include "pte/runtime_memory.h"
#include "support/json.h"

const char *const inspect_instruction_names[PTE_INSTRUCTION_KIND_COUNT] = {
    [PTE_KERNEL_CALL] = "kernel_calls",
    [PTE_DELEGATE_CALL] = "delegate_calls",
    [PTE_MOVE_CALL] = "moves",
    [PTE_JUMP_FALSE_CALL] = "jumps",
    [PTE_FREE_CALL] = "frees"};
static const char *const kind_names[PTE_KIND_COUNT] = {
    "none",   "null",     "int",        "bool",      "float",       "tensor",
    "string", "int list", "float list", "bool list", "tensor list", "optional tensor list"};

const char *inspect_kind(const PteValue *v) {
  return v->kind == PTE_TENSOR ? pte_dtype_name(v->tensor->dtype) : kind_names[v->kind];
}

double inspect_gap_percent(PteMemory m) {
  return m.live_peak ? 100.0 * (double)(m.arena - m.live_peak) / (double)m.live_peak : 0.0;
}

uint64_t inspect_gap(PteMemory m) { return m.arena > m.live_peak ? m.arena - m.live_peak : 0; }

StrView inspect_clip(StrView name) {
  enum { MOST = 128 };
  return (StrView){name.data, name.size < MOST ? name.size : MOST};
}

bool inspect_is_state(const PteValue *v) {
  return v->kind == PTE_TENSOR && pte_is_state(v->tensor);
}

/* The members that describe a value, in an object that is open. */
static void json_value(JsonWriter *w, const PteValue *v) {
  json_named_string(w, "kind", sv_from(v->kind == PTE_TENSOR ? "tensor" : inspect_kind(v)));
  if (v->kind != PTE_TENSOR)
    return;
  json_named_string(w, "name", v->tensor->name);
  json_named_string(w, "dtype", sv_from(inspect_kind(v)));
  json_named_array(w, "sizes");
  for (uint32_t k = 0; k < v->tensor->rank; k++)
    json_int(w, v->tensor->sizes[k]);
  json_close_array(w);
  json_key(w, "dynamic"); /* sizes are upper bounds */
  json_bool(w, v->tensor->dynamism != PTE_STATIC);
  json_named_uint(w, "bytes", v->tensor->bytes);
}

/* [lo, hi] of each dim. */
static void json_ranges(JsonWriter *w, const PteRange *ranges, uint32_t rank) {
  json_named_array(w, "ranges");
  for (uint32_t k = 0; k < rank; k++) {
    json_open_array(w);
    json_int(w, ranges[k].lo);
    json_int(w, ranges[k].hi);
    json_close_array(w);
  }
  json_close_array(w);
}

static void json_values(JsonWriter *w, const char *key, const PteMethod *m, const int32_t *indices,
                        uint32_t count, PteRange *const *ranges) {
  json_named_array(w, key);
  for (uint32_t i = 0; i < count; i++) {
    json_open_object(w);
    const PteValue *v = &m->values[indices[i]];
    json_value(w, v);
    if (v->kind == PTE_TENSOR && v->tensor->dynamism != PTE_STATIC && ranges && ranges[i])
      json_ranges(w, ranges[i], v->tensor->rank);
    json_close_object(w);
  }
  json_close_array(w);
}

static void json_states(JsonWriter *w, const PteMethod *m) {
  json_named_array(w, "states");
  for (uint32_t i = 0; i < m->value_count; i++) {
    if (!inspect_is_state(&m->values[i]))
      continue;
    json_open_object(w);
    json_value(w, &m->values[i]);
    json_named_uint(w, "arena", m->values[i].tensor->memory_id);
    json_named_uint(w, "offset", m->values[i].tensor->offset);
    json_close_object(w);
  }
  json_close_array(w);
}

static void json_dim(JsonWriter *w, InputDim at) {
  json_named_uint(w, "input", at.input);
  json_named_uint(w, "dim", at.dim);
}

static void json_curve(JsonWriter *w, const DimCurve *c) {
  json_open_object(w);
  json_dim(w, c->at);
  json_named_array(w, "equal");
  for (uint32_t i = 0; i < c->equal_count; i++) {
    json_open_object(w);
    json_dim(w, c->equal[i]);
    json_close_object(w);
  }
  json_close_array(w);
  json_named_array(w, "sizes");
  for (uint32_t i = 0; i < c->count; i++)
    json_int(w, c->sizes[i]);
  json_close_array(w);
  json_named_array(w, "live_peak_bytes");
  for (uint32_t i = 0; i < c->count; i++)
    json_uint(w, c->peaks[i]);
  json_close_array(w);
  if (c->linear) {
    json_named_object(w, "linear");
    json_named_int(w, "constant", c->constant);
    json_named_int(w, "factor", c->factor);
    json_close_object(w);
  }
  json_close_object(w);
}

/* Members of "memory" that only a method with dynamic inputs has. */
static void json_dims(JsonWriter *w, const MethodDims *d) {
  if (!d->dynamic)
    return;
  if (d->fault)
    json_named_string(w, "by_dim_fault", sv_from(d->fault));
  json_named_array(w, "by_dim");
  for (uint32_t i = 0; i < d->count; i++)
    json_curve(w, &d->curves[i]);
  json_close_array(w);
  json_named_uint(w, "by_dim_left_out", d->left_out);
}

/* By the bits of a pointer. */
static void json_runtime(JsonWriter *w, const PteMethod *m) {
  RuntimeMemory words4 = pte_runtime_memory(m, 4), words8 = pte_runtime_memory(m, 8);
  json_named_uint(w, "method_allocator_bytes_32", words4.method);
  json_named_uint(w, "method_allocator_bytes_64", words8.method);
  json_named_uint(w, "temp_allocator_bytes_32", words4.temp);
  json_named_uint(w, "temp_allocator_bytes_64", words8.temp);
}

static void json_memory(JsonWriter *w, const PteMethod *m, PteMemory memory, const MethodDims *dims,
                        DelegateTotals delegates) {
  json_named_object(w, "memory");
  json_named_array(w, "arenas");
  for (uint32_t i = 1; i < m->arena_count; i++)
    json_uint(w, m->arena_sizes[i]);
  json_close_array(w);
  if (m->bank_count) {
    json_named_array(w, "banks");
    for (uint32_t i = 0; i < m->bank_count; i++) {
      json_open_object(w);
      json_named_string(w, "name", m->banks[i].name);
      json_named_uint(w, "size", m->banks[i].size);
      json_close_object(w);
    }
    json_close_array(w);
  }
  json_named_uint(w, "arena_bytes", memory.arena);
  json_named_uint(w, "live_peak_bytes", memory.live_peak);
  json_named_uint(w, "gap_bytes", inspect_gap(memory));
  json_named_double(w, "gap_percent", inspect_gap(memory) ? inspect_gap_percent(memory) : 0.0);
  json_named_uint(w, "packed_bytes_estimate", delegates.packed);
  json_named_uint(w, "workspace_bytes_estimate", delegates.workspace);
  json_runtime(w, m);
  json_dims(w, dims);
  json_close_object(w);
}

static void json_operators(JsonWriter *w, const PteMethod *m, const MethodFigures *f) {
  json_named_array(w, "operators");
  for (uint32_t i = 0; i < f->used; i++) {
    json_open_object(w);
    json_named_string(w, "name", m->operators[f->order[i]]);
    json_named_uint(w, "calls", f->calls[f->order[i]]);
    json_close_object(w);
  }
  json_close_array(w);
}

/* The values of a constant method, tensors by their type as the other outputs. */
static void json_constants_of(JsonWriter *w, const PteMethod *m) {
  if (m->input_count || m->instruction_count)
    return;
  json_named_array(w, "constants");
  for (uint32_t i = 0; i < m->output_count; i++) {
    const PteValue *v = &m->values[m->outputs[i]];
    switch (v->kind) {
    case PTE_INT:
      json_int(w, v->i);
      break;
    case PTE_BOOL:
      json_bool(w, v->i != 0);
      break;
    case PTE_DOUBLE:
      json_double(w, v->f);
      break;
    case PTE_STRING:
      json_string(w, v->text);
      break;
    default:
      json_string(w, sv_from(inspect_kind(v)));
      break;
    }
  }
  json_close_array(w);
}

static void json_method(JsonWriter *w, const PteProgram *p, const PteMethod *m,
                        const MethodDims *dims, uint64_t *budget, Arena *arena) {
  MethodFigures f = method_figures(m, arena);
  json_open_object(w);
  json_named_string(w, "name", m->name);
  json_values(w, "inputs", m, m->inputs, m->input_count, dims->inputs);
  json_values(w, "outputs", m, m->outputs, m->output_count, dims->outputs);
  json_constants_of(w, m);
  json_states(w, m);
  json_named_uint(w, "values", m->value_count);
  json_named_object(w, "instructions");
  json_named_uint(w, "count", m->instruction_count);
  for (PteInstructionKind k = PTE_KERNEL_CALL; k < PTE_INSTRUCTION_KIND_COUNT; k++)
    json_named_uint(w, inspect_instruction_names[k], f.kinds[k]);
  json_close_object(w);
  json_memory(w, m, f.memory, dims, delegate_totals(p, m, *budget));
  json_operators(w, m, &f);
  json_delegates(w, p, m, f.delegate_calls, budget);
  json_close_object(w);
}

static void json_file(JsonWriter *w, const PteProgram *p) {
  json_named_string(w, "file", sv_from(p->file.path));
  json_named_uint(w, "file_bytes", p->file.size);
  json_named_uint(w, "program_bytes", p->program_size);
  json_named_uint(w, "version", p->version);
  json_named_bool(w, "extended_header", p->has_header);
  json_named_array(w, "segments");
  for (uint32_t i = 0; i < p->segment_count; i++) {
    json_open_object(w);
    json_named_uint(w, "offset", p->segments[i].offset);
    json_named_uint(w, "bytes", p->segments[i].size);
    json_named_bool(w, "constants", i == p->constants.segment);
    json_named_bool(w, "states", i == p->initial.segment);
    json_close_object(w);
  }
  json_close_array(w);
}

static void json_constants(JsonWriter *w, const PteProgram *p, Arena *arena) {
  ProgramFigures f = program_figures(p, arena);
  json_named_object(w, "constants");
  json_named_uint(w, "tensors", f.constant_tensors);
  json_named_uint(w, "bytes", f.constant_bytes);
  json_named_uint(w, "unique", f.unique_constants);
  json_named_uint(w, "unique_bytes", f.unique_bytes);
  if (f.external_tensors) {
    json_named_uint(w, "external_tensors", f.external_tensors);
    json_named_uint(w, "external_bytes", f.external_bytes);
  }
  json_close_object(w);
  json_named_array(w, "libraries");
  const char *names[MAX_LIBRARIES];
  uint32_t count = program_libraries(p, names);
  for (uint32_t i = 0; i < count; i++)
    json_string(w, sv_from(names[i]));
  json_close_array(w);
  json_named_array(w, "named_data");
  for (uint32_t i = 0; i < p->named_data_count; i++)
    json_string(w, p->named_data[i]);
  json_close_array(w);
}

void pte_inspect_json(const PteProgram *p, StrBuf *out) {
  uint64_t budget = pte_code_budget(p);
  Arena arena = {0};
  JsonWriter w;
  json_init(&w, out, true);
  json_open_object(&w);
  json_file(&w, p);
  json_constants(&w, p, &arena);
  json_named_array(&w, "methods");
  const MethodDims *dims = program_dims(p, &arena);
  for (uint32_t i = 0; i < p->method_count; i++)
    json_method(&w, p, &p->methods[i], &dims[i], &budget, &arena);
  json_close_array(&w);
  json_close_object(&w);
  arena_release(&arena);
}

/* See inspect.h. The two forms of the report. */
#include "pte/inspect.h"

#include "pte/inspect_internal.h"
#include "support/json.h"

static const char *const instruction_names[] = {[PTE_KERNEL_CALL] = "kernel_calls",
                                                [PTE_DELEGATE_CALL] = "delegate_calls",
                                                [PTE_MOVE_CALL] = "moves",
                                                [PTE_JUMP_FALSE_CALL] = "jumps",
                                                [PTE_FREE_CALL] = "frees"};
static const char *const kind_names[PTE_KIND_COUNT] = {
    "none",   "null",     "int",        "bool",      "float",       "tensor",
    "string", "int list", "float list", "bool list", "tensor list", "optional tensor list"};

enum { MAX_EQUAL_SHOWN = 2 };

static const char *kind_of(const PteValue *v) {
  return v->kind == PTE_TENSOR ? pte_dtype_name(v->tensor->dtype) : kind_names[v->kind];
}

static double gap_percent(PteMemory m) {
  return m.live_peak ? 100.0 * (double)(m.arena - m.live_peak) / (double)m.live_peak : 0.0;
}

/* An arena smaller than what is in use at once is a fault of the plan; the gap is 0 then, and
 * verify tells. */
static uint64_t gap_bytes(PteMemory m) { return m.arena > m.live_peak ? m.arena - m.live_peak : 0; }

/* --- text --- */

/* "f32[<=8, 4]", "int". */
static void text_value(StrBuf *out, const PteValue *v) {
  strbuf_append(out, sv_from(kind_of(v)));
  if (v->kind != PTE_TENSOR)
    return;
  const PteTensor *t = v->tensor;
  strbuf_append_char(out, '[');
  for (uint32_t i = 0; i < t->rank; i++)
    strbuf_printf(out, "%s%s%d", i ? ", " : "", t->dynamism == PTE_STATIC ? "" : "<=", t->sizes[i]);
  strbuf_append_char(out, ']');
}

static void text_values(StrBuf *out, const char *title, const PteMethod *m, const int32_t *indices,
                        uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const PteValue *v = &m->values[indices[i]];
    strbuf_printf(out, "  %s %u: ", title, i);
    if (v->kind == PTE_TENSOR && v->tensor->name.size) {
      strbuf_append_char(out, '\'');
      strbuf_append_printable(out, v->tensor->name);
      strbuf_append(out, SV("' "));
    }
    text_value(out, v);
    strbuf_append_char(out, '\n');
  }
}

static bool is_state(const PteValue *v) { return v->kind == PTE_TENSOR && pte_is_state(v->tensor); }

static void text_states(StrBuf *out, const PteMethod *m) {
  for (uint32_t i = 0, count = 0; i < m->value_count; i++) {
    const PteValue *v = &m->values[i];
    if (!is_state(v))
      continue;
    strbuf_printf(out, "  state %u: ", count++);
    if (v->tensor->name.size) {
      strbuf_append_char(out, '\'');
      strbuf_append_printable(out, v->tensor->name);
      strbuf_append(out, SV("' "));
    }
    text_value(out, v);
    strbuf_printf(out, ", %llu bytes at %llu of arena %u\n", (unsigned long long)v->tensor->bytes,
                  (unsigned long long)v->tensor->offset, v->tensor->memory_id);
  }
}

static void text_memory(StrBuf *out, const PteMethod *m, PteMemory memory) {
  for (uint32_t i = 1; i < m->arena_count; i++)
    strbuf_printf(out, "  arena %u: %llu bytes\n", i, (unsigned long long)m->arena_sizes[i]);
  strbuf_printf(out, "  live peak: %llu bytes at least; gap %llu bytes (%.1f %%)\n",
                (unsigned long long)memory.live_peak, (unsigned long long)gap_bytes(memory),
                gap_bytes(memory) ? gap_percent(memory) : 0.0);
}

static void text_dim(StrBuf *out, const PteMethod *m, InputDim at) {
  const PteTensor *t = m->values[m->inputs[at.input]].tensor;
  strbuf_printf(out, "input %u ", at.input);
  if (t->name.size) {
    strbuf_append_char(out, '\'');
    strbuf_append_printable(out, t->name);
    strbuf_append(out, SV("' "));
  }
  strbuf_printf(out, "dim %u", at.dim);
}

static void text_curve(StrBuf *out, const PteMethod *m, const DimCurve *c) {
  strbuf_append(out, SV("    "));
  text_dim(out, m, c->at);
  for (uint32_t i = 0; i < c->equal_count && i < MAX_EQUAL_SHOWN; i++) {
    strbuf_append(out, SV(" = "));
    text_dim(out, m, c->equal[i]);
  }
  if (c->equal_count > MAX_EQUAL_SHOWN)
    strbuf_printf(out, " = %u more", c->equal_count - MAX_EQUAL_SHOWN);
  for (uint32_t i = 0; i < c->count; i++)
    strbuf_printf(out, "%s%lld -> %llu%s", i ? ", " : ": ", (long long)c->sizes[i],
                  (unsigned long long)c->peaks[i], i ? "" : " bytes");
  if (c->linear && c->factor)
    strbuf_printf(out, "; at these %lld + %lld * dim", (long long)c->constant,
                  (long long)c->factor);
  strbuf_append_char(out, '\n');
}

static void text_dims(StrBuf *out, const PteMethod *m, const MethodDims *d) {
  if (d->fault)
    strbuf_printf(out, "  live peak by input dim: not known: %s\n", d->fault);
  if (d->count)
    strbuf_append(out, SV("  live peak by input dim, the others at their bounds or what "
                          "follows (the arenas stay as they are):\n"));
  for (uint32_t i = 0; i < d->count; i++)
    text_curve(out, m, &d->curves[i]);
  if (d->left_out)
    strbuf_printf(out, "    %u more dims\n", d->left_out);
}

static void text_method(StrBuf *out, const PteMethod *m, const MethodDims *dims, uint64_t *budget,
                        Arena *arena) {
  MethodFigures f = method_figures(m, arena);
  strbuf_append(out, SV("\nmethod '"));
  strbuf_append_escaped(out, m->name);
  strbuf_append(out, SV("'\n"));
  text_values(out, "input", m, m->inputs, m->input_count);
  text_values(out, "output", m, m->outputs, m->output_count);
  text_states(out, m);
  strbuf_printf(out, "  %u values, %u instructions", m->value_count, m->instruction_count);
  const char *before = ": ";
  for (PteInstructionKind k = PTE_KERNEL_CALL; k < PTE_INSTRUCTION_KIND_COUNT; k++)
    if (f.kinds[k]) {
      strbuf_printf(out, "%s%u %s", before, f.kinds[k], instruction_names[k]);
      before = ", ";
    }
  strbuf_append_char(out, '\n');
  text_memory(out, m, f.memory);
  text_dims(out, m, dims);
  text_delegates(out, m, budget);
  strbuf_append(out, f.used ? SV("  operators:\n") : SV(""));
  for (uint32_t i = 0; i < f.used; i++) {
    strbuf_printf(out, "  %6u  ", f.calls[f.order[i]]);
    strbuf_append_escaped(out, m->operators[f.order[i]]);
    strbuf_append_char(out, '\n');
  }
}

static void text_libraries(StrBuf *out, const PteProgram *p) {
  const char *names[MAX_LIBRARIES];
  uint32_t count = program_libraries(p, names);
  strbuf_append(out, SV("operator libraries:"));
  for (uint32_t i = 0; i < count; i++)
    strbuf_printf(out, " %s", names[i]);
  strbuf_append(out, count ? SV("\n") : SV(" none\n"));
}

void pte_inspect_text(const PteProgram *p, StrBuf *out) {
  uint64_t budget = pte_code_budget(p);
  Arena arena;
  arena_init(&arena);
  ProgramFigures f = program_figures(p, &arena);
  strbuf_append(out, SV("file: "));
  strbuf_append_escaped(out, sv_from(p->file.path));
  strbuf_printf(out, ", %llu bytes, version %u\n", (unsigned long long)p->file.size, p->version);
  strbuf_printf(out, "program: %llu bytes, %s\n", (unsigned long long)p->program_size,
                p->has_header ? "extended header" : "no extended header");
  for (uint32_t i = 0; i < p->segment_count; i++)
    strbuf_printf(out, "segment %u: %llu bytes at %llu%s\n", i,
                  (unsigned long long)p->segments[i].size,
                  (unsigned long long)p->segments[i].offset,
                  i == p->constant_segment  ? " (constants)"
                  : i == p->initial_segment ? " (states)"
                                            : "");
  strbuf_printf(out, "constants: %u tensors, %llu bytes; %u different, %llu bytes\n",
                f.constant_tensors, (unsigned long long)f.constant_bytes, f.unique_constants,
                (unsigned long long)f.unique_bytes);
  text_libraries(out, p);
  for (uint32_t i = 0; i < p->named_data_count; i++) {
    strbuf_append(out, SV("named data: '"));
    strbuf_append_escaped(out, p->named_data[i]);
    strbuf_append(out, SV("'\n"));
  }
  const MethodDims *dims = program_dims(p, &arena);
  for (uint32_t i = 0; i < p->method_count; i++)
    text_method(out, &p->methods[i], &dims[i], &budget, &arena);
  arena_release(&arena);
}

/* --- JSON --- */

/* The members that describe a value, in an object that is open. */
static void json_value(JsonWriter *w, const PteValue *v) {
  json_named_string(w, "kind", sv_from(v->kind == PTE_TENSOR ? "tensor" : kind_of(v)));
  if (v->kind != PTE_TENSOR)
    return;
  json_named_string(w, "name", v->tensor->name);
  json_named_string(w, "dtype", sv_from(kind_of(v)));
  json_key(w, "sizes");
  json_open_array(w);
  for (uint32_t k = 0; k < v->tensor->rank; k++)
    json_int(w, v->tensor->sizes[k]);
  json_close_array(w);
  json_key(w, "dynamic"); /* sizes are upper bounds */
  json_bool(w, v->tensor->dynamism != PTE_STATIC);
  json_named_uint(w, "bytes", v->tensor->bytes);
}

static void json_values(JsonWriter *w, const char *key, const PteMethod *m, const int32_t *indices,
                        uint32_t count) {
  json_key(w, key);
  json_open_array(w);
  for (uint32_t i = 0; i < count; i++) {
    json_open_object(w);
    json_value(w, &m->values[indices[i]]);
    json_close_object(w);
  }
  json_close_array(w);
}

static void json_states(JsonWriter *w, const PteMethod *m) {
  json_key(w, "states");
  json_open_array(w);
  for (uint32_t i = 0; i < m->value_count; i++) {
    if (!is_state(&m->values[i]))
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
  json_key(w, "equal");
  json_open_array(w);
  for (uint32_t i = 0; i < c->equal_count; i++) {
    json_open_object(w);
    json_dim(w, c->equal[i]);
    json_close_object(w);
  }
  json_close_array(w);
  json_key(w, "sizes");
  json_open_array(w);
  for (uint32_t i = 0; i < c->count; i++)
    json_int(w, c->sizes[i]);
  json_close_array(w);
  json_key(w, "live_peak_bytes");
  json_open_array(w);
  for (uint32_t i = 0; i < c->count; i++)
    json_uint(w, c->peaks[i]);
  json_close_array(w);
  if (c->linear) {
    json_key(w, "linear");
    json_open_object(w);
    json_key(w, "constant");
    json_int(w, c->constant);
    json_key(w, "factor");
    json_int(w, c->factor);
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
  json_key(w, "by_dim");
  json_open_array(w);
  for (uint32_t i = 0; i < d->count; i++)
    json_curve(w, &d->curves[i]);
  json_close_array(w);
  json_named_uint(w, "by_dim_left_out", d->left_out);
}

static void json_memory(JsonWriter *w, const PteMethod *m, PteMemory memory,
                        const MethodDims *dims) {
  json_key(w, "memory");
  json_open_object(w);
  json_key(w, "arenas");
  json_open_array(w);
  for (uint32_t i = 1; i < m->arena_count; i++)
    json_uint(w, m->arena_sizes[i]);
  json_close_array(w);
  json_named_uint(w, "arena_bytes", memory.arena);
  json_named_uint(w, "live_peak_bytes", memory.live_peak);
  json_named_uint(w, "gap_bytes", gap_bytes(memory));
  json_key(w, "gap_percent");
  json_double(w, gap_bytes(memory) ? gap_percent(memory) : 0.0);
  json_dims(w, dims);
  json_close_object(w);
}

static void json_operators(JsonWriter *w, const PteMethod *m, const MethodFigures *f) {
  json_key(w, "operators");
  json_open_array(w);
  for (uint32_t i = 0; i < f->used; i++) {
    json_open_object(w);
    json_named_string(w, "name", m->operators[f->order[i]]);
    json_named_uint(w, "calls", f->calls[f->order[i]]);
    json_close_object(w);
  }
  json_close_array(w);
}

static void json_method(JsonWriter *w, const PteMethod *m, const MethodDims *dims, uint64_t *budget,
                        Arena *arena) {
  MethodFigures f = method_figures(m, arena);
  json_open_object(w);
  json_named_string(w, "name", m->name);
  json_values(w, "inputs", m, m->inputs, m->input_count);
  json_values(w, "outputs", m, m->outputs, m->output_count);
  json_states(w, m);
  json_named_uint(w, "values", m->value_count);
  json_key(w, "instructions");
  json_open_object(w);
  json_named_uint(w, "count", m->instruction_count);
  for (PteInstructionKind k = PTE_KERNEL_CALL; k < PTE_INSTRUCTION_KIND_COUNT; k++)
    json_named_uint(w, instruction_names[k], f.kinds[k]);
  json_close_object(w);
  json_memory(w, m, f.memory, dims);
  json_operators(w, m, &f);
  json_delegates(w, m, budget);
  json_close_object(w);
}

static void json_file(JsonWriter *w, const PteProgram *p) {
  json_named_string(w, "file", sv_from(p->file.path));
  json_named_uint(w, "file_bytes", p->file.size);
  json_named_uint(w, "program_bytes", p->program_size);
  json_named_uint(w, "version", p->version);
  json_key(w, "extended_header");
  json_bool(w, p->has_header);
  json_key(w, "segments");
  json_open_array(w);
  for (uint32_t i = 0; i < p->segment_count; i++) {
    json_open_object(w);
    json_named_uint(w, "offset", p->segments[i].offset);
    json_named_uint(w, "bytes", p->segments[i].size);
    json_key(w, "constants");
    json_bool(w, i == p->constant_segment);
    json_key(w, "states");
    json_bool(w, i == p->initial_segment);
    json_close_object(w);
  }
  json_close_array(w);
}

static void json_constants(JsonWriter *w, const PteProgram *p, Arena *arena) {
  ProgramFigures f = program_figures(p, arena);
  json_key(w, "constants");
  json_open_object(w);
  json_named_uint(w, "tensors", f.constant_tensors);
  json_named_uint(w, "bytes", f.constant_bytes);
  json_named_uint(w, "unique", f.unique_constants);
  json_named_uint(w, "unique_bytes", f.unique_bytes);
  json_close_object(w);
  json_key(w, "libraries");
  json_open_array(w);
  const char *names[MAX_LIBRARIES];
  uint32_t count = program_libraries(p, names);
  for (uint32_t i = 0; i < count; i++)
    json_string(w, sv_from(names[i]));
  json_close_array(w);
  json_key(w, "named_data");
  json_open_array(w);
  for (uint32_t i = 0; i < p->named_data_count; i++)
    json_string(w, p->named_data[i]);
  json_close_array(w);
}

void pte_inspect_json(const PteProgram *p, StrBuf *out) {
  uint64_t budget = pte_code_budget(p);
  Arena arena;
  arena_init(&arena);
  JsonWriter w;
  json_init(&w, out, true);
  json_open_object(&w);
  json_file(&w, p);
  json_constants(&w, p, &arena);
  json_key(&w, "methods");
  json_open_array(&w);
  const MethodDims *dims = program_dims(p, &arena);
  for (uint32_t i = 0; i < p->method_count; i++)
    json_method(&w, &p->methods[i], &dims[i], &budget, &arena);
  json_close_array(&w);
  json_close_object(&w);
  arena_release(&arena);
}

/* See inspect.h. The report as text: one screen, or with all segments, keys, operators and
 * delegates. */
#include "pte/inspect.h"
#include "pte/inspect_internal.h"
#include "pte/read_internal.h"
#include "pte/runtime_memory.h"

enum {
  MAX_EQUAL_SHOWN = 2,
  /* without `all`: */
  MAX_VALUES = 16, /* inputs, outputs, states */
  MAX_OPERATORS = 12,
  MAX_DIMS_SHOWN = 4
};

void inspect_append_bytes(StrBuf *out, uint64_t bytes) {
  strbuf_printf(out, "%llu bytes", (unsigned long long)bytes);
  if (bytes < 1024)
    return;
  strbuf_append(out, SV(" ("));
  strbuf_append_bytes(out, bytes);
  strbuf_append_char(out, ')');
}

/* --- values --- */

void inspect_append_value(StrBuf *out, const PteValue *v, const PteRange *ranges) {
  strbuf_append(out, sv_from(inspect_kind(v)));
  if (v->kind != PTE_TENSOR)
    return;
  const PteTensor *t = v->tensor;
  strbuf_append_char(out, '[');
  for (uint32_t i = 0; i < t->rank; i++) {
    PteRange r = ranges ? ranges[i] : (PteRange){t->sizes[i] > 1 ? 0 : t->sizes[i], t->sizes[i]};
    bool fixed = t->dynamism == PTE_STATIC || r.lo == r.hi;
    strbuf_append(out, i ? SV(", ") : SV(""));
    if (!fixed)
      strbuf_printf(out, "%lld..", (long long)r.lo);
    strbuf_printf(out, "%lld", (long long)(t->dynamism == PTE_STATIC ? t->sizes[i] : r.hi));
  }
  strbuf_append_char(out, ']');
}

static void text_name(StrBuf *out, const PteValue *v) {
  if (v->kind != PTE_TENSOR || !v->tensor->name.size)
    return;
  strbuf_append_within(out, "'", v->tensor->name, "' ");
}

static void text_rest(StrBuf *out, const char *what, uint32_t count, uint32_t shown) {
  if (count > shown)
    strbuf_printf(out, "  %u more %s (-v)\n", count - shown, what);
}

/* The inputs or outputs of a method. */
typedef struct ValueList {
  const char *one, *several; /* "input", "inputs" */
  const int32_t *indices;
  uint32_t count;
  PteRange *const *ranges; /* by position; NULL: not known */
} ValueList;

static void text_values(StrBuf *out, const PteMethod *m, const ValueList *list, bool all) {
  uint32_t shown = all || list->count < MAX_VALUES ? list->count : MAX_VALUES;
  for (uint32_t i = 0; i < shown; i++) {
    const PteValue *v = &m->values[list->indices[i]];
    strbuf_printf(out, "  %s %u: ", list->one, i);
    text_name(out, v);
    inspect_append_value(out, v, list->ranges ? list->ranges[i] : NULL);
    strbuf_append_char(out, '\n');
  }
  text_rest(out, list->several, list->count, shown);
}

static void text_states(StrBuf *out, const PteMethod *m, bool all) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < m->value_count; i++) {
    const PteValue *v = &m->values[i];
    if (!inspect_is_state(v))
      continue;
    if (count++ >= MAX_VALUES && !all)
      continue;
    strbuf_printf(out, "  state %u: ", count - 1);
    text_name(out, v);
    inspect_append_value(out, v, NULL);
    strbuf_printf(out, ", %llu bytes at %llu of arena %u\n", (unsigned long long)v->tensor->bytes,
                  (unsigned long long)v->tensor->offset, v->tensor->memory_id);
  }
  text_rest(out, "states", count, all ? count : MAX_VALUES);
}

/* --- memory --- */

static void text_memory(StrBuf *out, const PteMethod *m, PteMemory memory, DelegateTotals d) {
  for (uint32_t i = 1; i < m->arena_count; i++) {
    strbuf_printf(out, "  arena %u", i);
    if (i <= m->bank_count) {
      strbuf_append_within(out, " '", m->banks[i - 1].name, "'");
    }
    strbuf_append(out, SV(": "));
    inspect_append_bytes(out, m->arena_sizes[i]);
    if (i <= m->bank_count) {
      strbuf_append(out, SV(" of "));
      strbuf_append_bytes(out, m->banks[i - 1].size);
    }
    strbuf_append_char(out, '\n');
  }
  strbuf_append(out, SV("  in use at once: "));
  inspect_append_bytes(out, memory.live_peak);
  strbuf_printf(out, " at least; the arenas have %llu bytes (%.1f %%) more\n",
                (unsigned long long)inspect_gap(memory),
                inspect_gap(memory) ? inspect_gap_percent(memory) : 0.0);
  if (!d.packed && !d.workspace)
    return;
  strbuf_append(out, SV("  memory with delegates: about "));
  strbuf_append_bytes(out, memory.arena + d.packed + d.workspace);
  strbuf_append(out, SV(", as the arenas leave out packed weights of about "));
  strbuf_append_bytes(out, d.packed);
  strbuf_append(out, SV(" and a workspace of about "));
  strbuf_append_bytes(out, d.workspace);
  strbuf_append(out, SV(" (estimates)\n"));
}

static void text_runtime(StrBuf *out, const PteMethod *m) {
  RuntimeMemory words4 = pte_runtime_memory(m, 4), words8 = pte_runtime_memory(m, 8);
  strbuf_printf(
      out,
      "  runtime: method allocator %llu bytes, temporary allocator %llu; with pointers of "
      "32 bits %llu and %llu%s\n",
      (unsigned long long)words8.method, (unsigned long long)words8.temp,
      (unsigned long long)words4.method, (unsigned long long)words4.temp,
      m->delegate_count ? "; backends take more" : "");
}

static void text_dim(StrBuf *out, const PteMethod *m, InputDim at) {
  strbuf_printf(out, "input %u ", at.input);
  text_name(out, &m->values[m->inputs[at.input]]);
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

static void text_dims(StrBuf *out, const PteMethod *m, const MethodDims *d, bool all) {
  uint32_t shown = all || d->count < MAX_DIMS_SHOWN ? d->count : MAX_DIMS_SHOWN;
  if (d->fault)
    strbuf_printf(out, "  in use at once by input dim: not known: %s\n", d->fault);
  if (d->count)
    strbuf_append(out, SV("  in use at once by input dim, the others at their bounds or what "
                          "follows (the arenas stay as they are):\n"));
  for (uint32_t i = 0; i < shown; i++)
    text_curve(out, m, &d->curves[i]);
  if (d->left_out + d->count > shown)
    strbuf_printf(out, "    %u more dims\n", d->left_out + d->count - shown);
}

/* "1 value", "2 values"; of "kernel_calls" "2 kernel calls". */
static void text_count(StrBuf *out, uint64_t count, const char *plural) {
  size_t size = strlen(plural);
  strbuf_printf(out, "%llu ", (unsigned long long)count);
  for (size_t i = 0; i < (count == 1 ? size - 1 : size); i++)
    strbuf_append_char(out, plural[i] == '_' ? ' ' : plural[i]);
}

/* --- instructions --- */

static void text_instructions(StrBuf *out, const PteMethod *m, const MethodFigures *f) {
  const char *before = ": ";
  strbuf_append(out, SV("  "));
  text_count(out, m->value_count, "values");
  strbuf_append(out, SV(", "));
  text_count(out, m->instruction_count, "instructions");
  for (PteInstructionKind k = PTE_KERNEL_CALL; k < PTE_INSTRUCTION_KIND_COUNT; k++)
    if (f->kinds[k]) {
      strbuf_append(out, sv_from(before));
      text_count(out, f->kinds[k], inspect_instruction_names[k]);
      before = ", ";
    }
  strbuf_append_char(out, '\n');
}

static void text_operators(StrBuf *out, const PteMethod *m, const MethodFigures *f, bool all) {
  uint32_t shown = all || f->used < MAX_OPERATORS ? f->used : MAX_OPERATORS;
  strbuf_append(out, f->used ? SV("  operators:\n") : SV(""));
  for (uint32_t i = 0; i < shown; i++) {
    strbuf_printf(out, "  %6u  ", f->calls[f->order[i]]);
    strbuf_append_escaped(out, m->operators[f->order[i]]);
    strbuf_append_char(out, '\n');
  }
  text_rest(out, "operators", f->used, shown);
}

static void text_totals(StrBuf *out, const PteMethod *m, uint32_t calls, DelegateTotals d) {
  if (!m->delegate_count)
    return;
  strbuf_printf(out, "  delegates: %u, ", m->delegate_count);
  if (calls != m->delegate_count)
    strbuf_printf(out, "called %u times, ", calls);
  strbuf_append(out, SV("code of "));
  strbuf_append_bytes(out, d.code);
  strbuf_append(out, SV("; "));
  text_count(out, d.nodes, "nodes");
  strbuf_append(out, SV(", "));
  text_count(out, d.transposes, "transposes");
  strbuf_append(out, SV(" among them, constants of "));
  strbuf_append_bytes(out, d.constant_bytes);
  if (d.unknown)
    strbuf_printf(out, "; %u of unknown contents", d.unknown);
  strbuf_append_char(out, '\n');
  if (d.byte_nodes)
    strbuf_printf(out, "  on 8 bits: %llu of the nodes\n", (unsigned long long)d.byte_nodes);
}

/* A constant method is a line: its values, or the types of tensors. */
static void text_constant(StrBuf *out, const ConstantMethod *m, bool first) {
  strbuf_append(out, first ? SV("\n") : SV(""));
  strbuf_append(out, SV("constant method '"));
  strbuf_append_escaped(out, m->name);
  strbuf_append(out, SV("': "));
  constant_method_print(m, out);
  strbuf_append_char(out, '\n');
}

static void text_method(StrBuf *out, const PteProgram *p, const PteMethod *m,
                        const MethodDims *dims, uint64_t *budget, Arena *arena, bool all) {
  MethodFigures f = method_figures(m, arena);
  DelegateTotals totals = delegate_totals(p, m, *budget);
  strbuf_append(out, SV("\nmethod '"));
  strbuf_append_escaped(out, m->name);
  strbuf_append(out, SV("'\n"));
  const ValueList inputs = {"input", "inputs", m->inputs, m->input_count, dims->inputs},
                  outputs = {"output", "outputs", m->outputs, m->output_count, dims->outputs};
  text_values(out, m, &inputs, all);
  text_values(out, m, &outputs, all);
  text_states(out, m, all);
  text_instructions(out, m, &f);
  text_memory(out, m, f.memory, totals);
  if (all)
    text_runtime(out, m);
  text_dims(out, m, dims, all);
  if (all)
    text_delegates(out, p, m, f.delegate_calls, budget);
  else
    text_totals(out, m, f.kinds[PTE_DELEGATE_CALL], totals);
  text_operators(out, m, &f, all);
}

/* --- the file --- */

static void text_libraries(StrBuf *out, const PteProgram *p) {
  const char *names[MAX_LIBRARIES];
  uint32_t count = program_libraries(p, names);
  strbuf_append(out, SV("operator libraries:"));
  for (uint32_t i = 0; i < count; i++)
    strbuf_printf(out, " %s", names[i]);
  strbuf_append(out, count ? SV("\n") : SV(" none\n"));
}

static void text_segments(StrBuf *out, const PteProgram *p) {
  for (uint32_t i = 0; i < p->segment_count; i++)
    strbuf_printf(out, "segment %u: %llu bytes at %llu%s\n", i,
                  (unsigned long long)p->segments[i].size,
                  (unsigned long long)p->segments[i].offset,
                  i == p->constants.segment ? " (constants)"
                  : i == p->initial.segment ? " (states)"
                                            : "");
  for (uint32_t i = 0; i < p->named_data_count; i++) {
    strbuf_append(out, SV("named data: '"));
    strbuf_append_escaped(out, p->named_data[i]);
    strbuf_append(out, SV("'\n"));
  }
}

static uint64_t named_bytes(const PteProgram *p) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < p->named_data_count; i++)
    bytes += p->segments[p->named_segments[i]].size;
  return bytes;
}

static void text_file(StrBuf *out, const PteProgram *p, Arena *arena) {
  ProgramFigures f = program_figures(p, arena);
  strbuf_append(out, SV("file: "));
  strbuf_append_escaped(out, sv_from(p->file.path));
  strbuf_append(out, SV(", "));
  inspect_append_bytes(out, p->file.size);
  strbuf_printf(out, ", schema version %u\nprogram: ", p->version);
  inspect_append_bytes(out, p->program_size);
  strbuf_append(out, p->has_header ? SV(", extended header") : SV(", no extended header"));
  if (p->segment_count)
    strbuf_printf(out, ", %u segment%s", p->segment_count, p->segment_count == 1 ? "" : "s");
  strbuf_printf(out, "\nconstants: %u tensor%s, ", f.constant_tensors,
                f.constant_tensors == 1 ? "" : "s");
  inspect_append_bytes(out, f.constant_bytes);
  strbuf_printf(out, "; %u different, ", f.unique_constants);
  inspect_append_bytes(out, f.unique_bytes);
  strbuf_append_char(out, '\n');
  if (f.external_tensors) {
    strbuf_printf(out, "constants in a file of their own (.ptd): %u tensor%s, ", f.external_tensors,
                  f.external_tensors == 1 ? "" : "s");
    inspect_append_bytes(out, f.external_bytes);
    strbuf_append_char(out, '\n');
  }
  if (p->named_data_count) {
    strbuf_printf(out, "data of delegates: %u, ", p->named_data_count);
    inspect_append_bytes(out, named_bytes(p));
    strbuf_append_char(out, '\n');
  }
  text_libraries(out, p);
}

void pte_inspect_text(const PteProgram *p, bool all, StrBuf *out) {
  uint64_t budget = pte_code_budget(p);
  Arena arena = {0};
  text_file(out, p, &arena);
  if (all)
    text_segments(out, p);
  const MethodDims *dims = program_dims(p, &arena);
  bool last_constant = false;
  for (uint32_t i = 0; i < p->method_count; i++) {
    const ConstantMethod *constant = read_constant_method(p, &p->methods[i], &arena);
    if (constant) {
      text_constant(out, constant, i == 0 || !last_constant);
      last_constant = true;
      continue;
    }
    last_constant = false;
    text_method(out, p, &p->methods[i], &dims[i], &budget, &arena, all);
  }
  arena_release(&arena);
}

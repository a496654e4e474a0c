/* See program.h. One ExecutionPlan: names, operators, instructions, delegates, arenas. */
#include "pte/banks.h"
#include "pte/program_internal.h"
#include "pte/ranges.h"

enum {
  MAX_NAME = 4096,        /* bytes of a method or delegate name: ours, a sane bound for messages */
  MAX_OPERATOR_NAME = 99, /* the runtime's kernel key */
  MAX_ARENAS = 1 << 16
};

/* A required name. */
static StrView decode_name(Decoder *d, FbTable t, uint16_t id, const char *what) {
  StrView name = fb_text(t, id);
  if (d->reader.fault)
    return SV("");
  if (!name.data)
    decode_error(d, DIAG_PTE_FIELD, "%s is missing", what);
  else if (name.size > MAX_NAME)
    decode_error(d, DIAG_PTE_FIELD, "%s is longer than %d bytes", what, MAX_NAME);
  else
    return name;
  return SV("");
}

static void decode_operators(Decoder *d, FbVector v, PteMethod *m) {
  m->operator_count = v.count;
  m->operators = ARENA_ARRAY(&d->p->arena, StrView, v.count);
  for (uint32_t i = 0; i < v.count && !d->reader.fault; i++) {
    FbTable t = fb_item_table(v, i);
    StrView name = fb_text(t, OPERATOR_NAME), overload = fb_text(t, OPERATOR_OVERLOAD);
    if (!name.data || name.size + overload.size + 1 > MAX_OPERATOR_NAME) {
      if (!d->reader.fault)
        decode_error(d, DIAG_PTE_FIELD, "operator %u has %s", i,
                     name.data ? "a name that is too long" : "no name");
      continue;
    }
    const char *dot = overload.size ? "." : "";
    m->operators[i] = sv_from(
        arena_printf(&d->p->arena, SV_FMT "%s" SV_FMT, SV_ARG(name), dot, SV_ARG(overload)));
  }
}

/* Bytes of the delegate's blob: inline in the FlatBuffer, or a segment. */
static void decode_blob(Decoder *d, FbTable processed, PteDelegate *delegate, uint32_t i) {
  uint32_t index = fb_u32(processed, PROCESSED_INDEX, 0);
  if (fb_u8(processed, PROCESSED_LOCATION, PTE_DATA_INLINE) == PTE_DATA_SEGMENT) {
    if (index >= d->p->segment_count) {
      decode_error(d, DIAG_PTE_RANGE, "delegate %u is in segment %u, and there are %u", i, index,
                   d->p->segment_count);
      return;
    }
    delegate->data = d->p->file.data + d->p->segments[index].offset;
    delegate->size = d->p->segments[index].size;
    return;
  }
  FbVector all = fb_tables(fb_root(&d->reader), PROGRAM_BACKEND_DELEGATE_DATA);
  if (index >= all.count) {
    decode_error(d, DIAG_PTE_RANGE, "delegate %u has the inline data %u, and there are %u", i,
                 index, all.count);
    return;
  }
  FbVector bytes = fb_vector(fb_item_table(all, index), INLINE_DATA, 1);
  delegate->data = d->p->file.data + bytes.at;
  delegate->size = bytes.count;
}

static void decode_specs(Decoder *d, FbVector specs, PteDelegate *delegate) {
  delegate->spec_count = specs.count;
  delegate->specs = ARENA_ARRAY(&d->p->arena, PteSpec, specs.count);
  for (uint32_t i = 0; i < specs.count && !d->reader.fault; i++) {
    FbTable spec = fb_item_table(specs, i);
    StrView key = fb_text(spec, COMPILE_SPEC_KEY);
    FbVector value = fb_vector(spec, COMPILE_SPEC_VALUE, 1);
    if (d->reader.fault)
      break;
    delegate->specs[i] =
        (PteSpec){key.data ? key : SV(""), d->p->file.data + value.at, value.count};
  }
}

static void decode_delegates(Decoder *d, FbVector v, PteMethod *m) {
  if (!v.present && !d->reader.fault)
    decode_error(d, DIAG_PTE_FIELD, "delegates is missing");
  m->delegate_count = v.count;
  m->delegates = ARENA_ARRAY(&d->p->arena, PteDelegate, v.count);
  for (uint32_t i = 0; i < v.count && !d->reader.fault; i++) {
    FbTable t = fb_item_table(v, i), processed = fb_table(t, DELEGATE_PROCESSED);
    m->delegates[i].id = decode_name(d, t, DELEGATE_ID, "a delegate's id");
    decode_specs(d, fb_tables(t, DELEGATE_COMPILE_SPECS), &m->delegates[i]);
    if (fb_present(processed))
      decode_blob(d, processed, &m->delegates[i], i);
    else if (!d->reader.fault)
      decode_error(d, DIAG_PTE_FIELD, "delegate %u has no processed data", i);
  }
}

static void decode_arenas(Decoder *d, FbVector v, PteMethod *m) {
  if (!v.present && !d->reader.fault)
    decode_error(d, DIAG_PTE_FIELD, "non_const_buffer_sizes is missing");
  if (v.count > MAX_ARENAS) {
    decode_error(d, DIAG_PTE_RANGE, "there are %u arenas, more than %d", v.count, MAX_ARENAS);
    return;
  }
  m->arena_count = v.count ? v.count : 1;
  m->arena_sizes = ARENA_ARRAY(&d->p->arena, uint64_t, m->arena_count);
  for (uint32_t i = 1; i < v.count; i++) {
    int64_t size = (int64_t)fb_item_u64(v, i);
    if (size < 0)
      decode_error(d, DIAG_PTE_FIELD, "arena %u has the size %lld", i, (long long)size);
    else
      m->arena_sizes[i] = (uint64_t)size;
  }
}

/* --- instructions --- */

/* Readers walk a list for each argument that names it: bounds the sum, which few long lists and
 * many calls could make huge. */
static void charge_lists(Decoder *d, const PteMethod *m, const int32_t *args, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t length = m->values[args[i]].count;
    if (length > d->uses) {
      decode_error(d, DIAG_PTE_FLATBUFFER, "its lists are used more often than any program would");
      return;
    }
    d->uses -= length;
  }
}

static void decode_call(Decoder *d, FbTable t, const PteMethod *m, PteInstruction *in, uint32_t i) {
  bool kernel = in->kind == PTE_KERNEL_CALL;
  uint32_t limit = kernel ? m->operator_count : m->delegate_count;
  in->index = fb_i32(t, CALL_INDEX, 0);
  if (in->index < 0 || (uint32_t)in->index >= limit)
    decode_error(d, DIAG_PTE_RANGE, "instruction %u calls %s %d, and there are %u", i,
                 kernel ? "operator" : "delegate", in->index, limit);
  FbVector args = fb_vector(t, CALL_ARGS, 4);
  in->args = decode_indices(d, args, 0, m->value_count, "an instruction's args");
  in->count = in->args ? args.count : 0;
  charge_lists(d, m, in->args, in->count);
}

static void decode_small(Decoder *d, FbTable t, const PteMethod *m, PteInstruction *in,
                         uint32_t i) {
  int32_t *args = ARENA_ARRAY(&d->p->arena, int32_t, 2);
  in->args = args;
  in->count = in->kind == PTE_MOVE_CALL ? 2 : 1;
  args[0] = fb_i32(t, MOVE_FROM, 0); /* JUMP_CONDITION and FREE_VALUE have the same id */
  if (in->kind == PTE_MOVE_CALL)
    args[1] = fb_i32(t, MOVE_TO, 0);
  if (in->kind == PTE_JUMP_FALSE_CALL)
    in->index = fb_i32(t, JUMP_DESTINATION, 0);
  for (uint32_t k = 0; k < in->count; k++)
    if (args[k] < 0 || (uint32_t)args[k] >= m->value_count) {
      decode_error(d, DIAG_PTE_RANGE, "instruction %u names value %d, and there are %u", i, args[k],
                   m->value_count);
      args[k] = 0;
    }
}

static void decode_instruction(Decoder *d, FbTable t, const PteMethod *m, PteInstruction *in,
                               uint32_t i) {
  uint8_t kind = fb_u8(t, INSTRUCTION_ARGS_TYPE, 0);
  FbTable args = fb_table(t, INSTRUCTION_ARGS);
  if (d->reader.fault)
    return;
  if (kind == PTE_CALL_NONE || kind >= PTE_INSTRUCTION_KIND_COUNT || !fb_present(args)) {
    decode_error(d, DIAG_PTE_FIELD, "instruction %u has the kind %u%s", i, kind,
                 fb_present(args) ? "" : " and no contents");
    return;
  }
  in->kind = (PteInstructionKind)kind;
  if (kind == PTE_KERNEL_CALL || kind == PTE_DELEGATE_CALL)
    decode_call(d, args, m, in, i);
  else
    decode_small(d, args, m, in, i);
}

static void decode_chain(Decoder *d, FbVector chains, PteMethod *m) {
  if (d->reader.fault)
    return;
  if (chains.count != 1) {
    decode_error(d, chains.count ? DIAG_PTE_UNSUPPORTED : DIAG_PTE_FIELD,
                 "there are %u chains instead of one", chains.count);
    return;
  }
  FbTable chain = fb_item_table(chains, 0);
  FbVector v = fb_tables(chain, CHAIN_INSTRUCTIONS);
  skim_chain(chain);
  if (!v.present && !d->reader.fault)
    decode_error(d, DIAG_PTE_FIELD, "the chain has no instructions field");
  m->instruction_count = v.count;
  m->instructions = ARENA_ARRAY(&d->p->arena, PteInstruction, v.count);
  for (uint32_t i = 0; i < v.count && !d->reader.fault; i++)
    decode_instruction(d, fb_item_table(v, i), m, &m->instructions[i], i);
}

/* Inputs or outputs of the method. */
static int32_t *decode_ends(Decoder *d, FbVector v, const PteMethod *m, const char *what,
                            uint32_t *count) {
  if (!v.present && !d->reader.fault)
    decode_error(d, DIAG_PTE_FIELD, "%s is missing", what);
  int32_t *indices = decode_indices(d, v, 0, m->value_count, what);
  *count = indices ? v.count : 0;
  charge_lists(d, m, indices, *count);
  return indices;
}

void decode_method(Decoder *d, FbTable plan, PteMethod *m) {
  d->method = (StrView){NULL, 0};
  m->name = d->method = decode_name(d, plan, PLAN_NAME, "a method's name");
  FbVector values = fb_tables(plan, PLAN_VALUES), operators = fb_tables(plan, PLAN_OPERATORS),
           delegates = fb_tables(plan, PLAN_DELEGATES);
  if (!values.present && !d->reader.fault)
    decode_error(d, DIAG_PTE_FIELD, "values is missing");
  StrView inputs, outputs;
  skim_plan(plan, &inputs, &outputs);
  decode_arenas(d, fb_vector(plan, PLAN_NON_CONST_BUFFER_SIZES, 8), m);
  if (m->arena_count)
    decode_values(d, values, m);
  decode_operators(d, operators, m);
  decode_delegates(d, delegates, m);
  m->inputs = decode_ends(d, fb_vector(plan, PLAN_INPUTS, 4), m, "inputs", &m->input_count);
  m->outputs = decode_ends(d, fb_vector(plan, PLAN_OUTPUTS, 4), m, "outputs", &m->output_count);
  if (d->status == STATUS_OK && !d->reader.fault) {
    m->ranges = ranges_parse(inputs, m, &d->p->arena);
    m->banks =
        banks_parse(outputs, m->arena_count - 1, &d->p->arena, &m->bank_count, &m->arena_alignment);
  }
  decode_chain(d, fb_tables(plan, PLAN_CHAINS), m);
}

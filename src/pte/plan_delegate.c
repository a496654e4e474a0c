/* Delegates: their bytes, the data that they find by name, and their calls. */
#include "ops/delegate.h"
#include "pte/plan_internal.h"

/* What a backend made is right; a call in a text that someone wrote need not be. */
static void refuse(PlanWriter *p, NodeId n, const char *what, StrView name) {
  p->values.status = diag_report(p->g->ctx->sink, DIAG_IR_VERIFY, node_place(p->g, n),
                                 "%s '" SV_FMT "'", what, SV_ARG(name));
}

/* The constants that the delegate finds by name: one word of keys each. */
static void write_named(PlanWriter *p, NodeId n) {
  StrView keys = node_str(p->g, n, DELEGATE_ARG_KEYS);
  for (uint32_t i = 0; i < node_list_count(p->g, n, DELEGATE_ARG_DATA); i++) {
    const Constant *bytes =
        value_lazy_constant(p->g, node_list_value(p->g, n, DELEGATE_ARG_DATA, i));
    StrView key = delegate_next_key(&keys);
    if (!bytes || key.size == 0) {
      refuse(p, n, "each of the delegate's data must be a constant with a name; the names are",
             node_str(p->g, n, DELEGATE_ARG_KEYS));
      return;
    }
    if (!segments_add_named(p->segments, key, *bytes)) {
      refuse(p, n, "delegates find two different constants by the name", key);
      return;
    }
  }
}

static FbRef write_specs(PlanWriter *p, NodeId n) {
  DelegateSpec *specs;
  uint32_t count;
  if (!delegate_parse_specs(node_str(p->g, n, DELEGATE_ARG_SPECS), p->scratch, &specs, &count))
    BUG("the compile specs of a delegate are no KEY=VALUE words");
  FbRef *refs = ARENA_ARRAY(p->scratch, FbRef, (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++) {
    FbRef key = fb_string(p->b, specs[i].key),
          value = fb_vector_bytes(p->b, specs[i].data, specs[i].size, 1);
    fb_table_begin(p->b);
    fb_field_ref(p->b, COMPILE_SPEC_KEY, key);
    fb_field_ref(p->b, COMPILE_SPEC_VALUE, value);
    refs[i] = fb_table_end(p->b);
  }
  return fb_vector_refs(p->b, refs, count);
}

/* Calls of equal code are calls of one delegate, which the runtime loads once. */
static int32_t write_delegate(PlanWriter *p, NodeId n) {
  const Constant *blob = value_constant(p->g, node_value(p->g, n, DELEGATE_ARG_BLOB));
  if (!blob) {
    refuse(p, n, "the code must be a constant, for backend",
           node_str(p->g, n, DELEGATE_ARG_BACKEND));
    return 0;
  }
  write_named(p, n); /* of each call: no two constants may have one name */
  DelegateIdentity identity = delegate_identity(p->g, n);
  uint32_t *slot, known = keymap_get(&p->delegate_index, &identity, sizeof identity, &slot);
  if (known)
    return (int32_t)known - 1;
  uint32_t segment = segments_add_blob(p->segments, *blob);
  FbRef id = fb_string(p->b, node_str(p->g, n, DELEGATE_ARG_BACKEND));
  fb_table_begin(p->b);
  fb_field_u8(p->b, PROCESSED_LOCATION, PTE_DATA_SEGMENT, 0);
  fb_field_u32(p->b, PROCESSED_INDEX, segment, 0);
  FbRef processed = fb_table_end(p->b), specs = write_specs(p, n);
  fb_table_begin(p->b);
  fb_field_ref(p->b, DELEGATE_ID, id);
  fb_field_ref(p->b, DELEGATE_PROCESSED, processed);
  fb_field_ref(p->b, DELEGATE_COMPILE_SPECS, specs);
  p->delegates[p->delegate_count++] = fb_table_end(p->b);
  *slot = p->delegate_count;
  return (int32_t)p->delegate_count - 1;
}

/* A DelegateCall: the inputs, then the outputs. */
void plan_delegate_call(PlanWriter *p, NodeId n) {
  uint32_t inputs = node_list_count(p->g, n, DELEGATE_ARG_ARGS),
           outputs = node_cget(p->g, n)->result_count;
  int32_t *args = ARENA_ARRAY(p->scratch, int32_t, (size_t)inputs + outputs + 1);
  for (uint32_t i = 0; i < inputs; i++)
    args[i] = write_value(&p->values, node_list_value(p->g, n, DELEGATE_ARG_ARGS, i));
  for (uint32_t i = 0; i < outputs; i++) {
    plan_check_written(p, n, node_result(p->g, n, i));
    args[inputs + i] = write_value(&p->values, node_result(p->g, n, i));
  }
  int32_t index = write_delegate(p, n);
  plan_add_call(p, PTE_DELEGATE_CALL, index, args, inputs + outputs);
}

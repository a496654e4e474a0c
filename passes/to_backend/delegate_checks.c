/* See delegate_checks.h. */
#include "passes/to_backend/delegate_checks.h"

#include "ir/region.h"
#include "ir/verify.h"

#include <inttypes.h>

/* Far more than any program has, and little enough to be read up to its end. */
#define MAX_CODE ((uint64_t)1 << 40)

Status delegation_fault(const Delegation *d, const char *format, ...) {
  const char *plugin = d->backend->plugin;
  const char *before = plugin ? arena_printf(d->p->scratch, "backend '%s' of plug-in '%s' ",
                                             d->backend->name, plugin)
                              : arena_printf(d->p->scratch, "backend '%s' ", d->backend->name);
  va_list args;
  va_start(args, format);
  Status status = diag_vreport(d->p->sink, plugin ? DIAG_PLUGIN_FAULT : DIAG_INTERNAL, DIAG_NOWHERE,
                               before, format, args);
  va_end(args);
  return status;
}

/* --- both functions --- */

Before delegation_before(const Delegation *d) { return (Before){d->c, d->g->edits}; }

static Status check_unchanged(const Delegation *d, const char *function, uint64_t edits) {
  if (d->g->edits == edits)
    return STATUS_OK;
  return delegation_fault(d, "changes the graph in %s()", function);
}

/* What a backend was given is ours; only what is in it is for the backend to change. */
static Status check_context(const Delegation *d, const BackendContext *given,
                            const char *function) {
  const BackendContext *c = &d->c;
  if (c->refusals == given->refusals && c->costs == given->costs && c->scratch == given->scratch &&
      c->sink == given->sink && c->settings == given->settings && c->whole == given->whole)
    return STATUS_OK;
  return delegation_fault(d, "changes a field of its context in %s() other than 'own'", function);
}

static Status check_before(const Delegation *d, const char *function, const Before *before) {
  TRY(check_context(d, &before->context, function));
  return check_unchanged(d, function, before->edits);
}

/* --- partition() --- */

/* Partitions have numbers up to that of the nodes, and each lies in one region. */
static Status check_tags(const Delegation *d) {
  const Graph *g = d->g;
  Regions regions;
  NodeId at = 0;
  if (regions_find(g, d->p->scratch, &regions, &at))
    return delegation_fault(d, "broke the control flow of the graph");
  NodeId *scopes = ARENA_ARRAY(d->p->scratch, NodeId, (size_t)g->node_count + 1);
  bool *seen = ARENA_ARRAY(d->p->scratch, bool, (size_t)g->node_count + 1);
  for (FOR_NODES(g, n)) {
    uint32_t tag = g->nodes[n].tag;
    NodeId scope = regions.any ? regions.scope[n] : 0;
    StrView op = op_schema(g->nodes[n].op)->full;
    if (tag > g->node_count)
      return delegation_fault(
          d, "puts '" SV_FMT "' into partition %" PRIu32 " of a graph of %" PRIu32 " nodes",
          SV_ARG(op), tag, g->live_nodes);
    if (!tag)
      continue;
    if (op_has_trait(g->nodes[n].op, OP_CONTROL) || op_has_trait(g->nodes[n].op, OP_DELEGATE) ||
        (seen[tag] && scopes[tag] != scope))
      return delegation_fault(d,
                              "has '" SV_FMT "' in partition %" PRIu32
                              ", which is control flow, a delegate or of another region",
                              SV_ARG(op), tag);
    seen[tag] = true;
    scopes[tag] = scope;
  }
  return STATUS_OK;
}

/* Whether v is defined, and is a constant or not. */
static bool is_value(const Graph *g, ValueId v, bool constant) {
  return v && v < g->value_count && g->values[v].kind != VALUE_UNUSED &&
         value_is_const(g, v) == constant;
}

/* Each node that is left out has a reason that can be shown. */
static Status check_refusals(Delegation *d) {
  const Graph *g = d->g;
  for (FOR_NODES(g, n)) {
    Refusal *r = &d->c.refusals[n];
    if (g->nodes[n].tag || op_has_trait(g->nodes[n].op, OP_CONTROL))
      continue;
    if (!r->rule)
      *r = (Refusal){.rule = "unsaid", .message = "the backend gives no reason"};
    bool complete = r->message && (r->values || !r->value_count);
    for (uint32_t i = 0; complete && i < r->value_count; i++)
      complete = r->values[i].name != NULL;
    if (!complete)
      return delegation_fault(
          d, "refuses '" SV_FMT "' by rule '%s' without a message, or by values without names",
          SV_ARG(op_schema(g->nodes[n].op)->full), r->rule);
    if (!r->advice)
      r->advice = "";
  }
  return STATUS_OK;
}

Status delegation_check_partitions(Delegation *d, const Before *before) {
  if (!d->backend->plugin)
    return STATUS_OK;
  TRY(check_before(d, "partition", before));
  TRY(check_tags(d));
  return check_refusals(d);
}

/* --- preprocess() --- */

static bool is_input(const DelegateCode *code, ValueId v) {
  uint32_t i = 0;
  while (i < code->input_count && code->inputs[i] != v)
    i++;
  return i < code->input_count;
}

/* What comes from outside is an input. */
static Status check_operands(const Delegation *d, const Partition *part, const DelegateCode *code) {
  const Graph *g = d->g;
  uint32_t tag = delegation_tag(d, part->nodes[0]);
  for (uint32_t i = 0; i < part->node_count; i++)
    FOR_OPERANDS(g, part->nodes[i], v, {
      NodeId def = v ? value_def(g, v) : 0;
      bool outside = v && !value_is_const(g, v) && !(def && delegation_tag(d, def) == tag);
      if (outside && !is_input(code, v))
        return delegation_fault(d,
                                "does not name the operand of '" SV_FMT
                                "' as an input of partition %" PRIu32
                                ", though it comes from outside",
                                SV_ARG(op_schema(g->nodes[part->nodes[i]].op)->full), tag);
    })
  return STATUS_OK;
}

/* Bytes that are not there end the process here, while code of the plug-in counts as running. */
static void touch(const uint8_t *data, uint64_t size) {
  if (size)
    (void)*(const volatile uint8_t *)(data + size - 1);
}

static Status check_data(const Delegation *d, const DelegateCode *code) {
  const Graph *g = d->g;
  for (uint32_t i = 0; i < code->data_count; i++) {
    if (!code->data || !is_value(g, code->data[i], true))
      return delegation_fault(d, "names a value as data %" PRIu32 " that is not a constant", i);
    StrView key = code->keys && code->keys[i] ? sv_from(code->keys[i]) : SV("");
    if (key.size == 0 || memchr(key.data, ' ', key.size))
      return delegation_fault(d, "gives data %" PRIu32 " no key of one word", i);
  }
  return STATUS_OK;
}

static Status check_lists(const Delegation *d, const DelegateCode *code) {
  if (code->transpose_count && !code->transposes)
    return delegation_fault(d, "has no transposes where it counts %" PRIu32, code->transpose_count);
  if (code->spec_count && !code->specs)
    return delegation_fault(d, "has no compile specs where it counts %" PRIu32, code->spec_count);
  for (uint32_t i = 0; i < code->spec_count; i++) {
    if (code->specs[i].size && !code->specs[i].data)
      return delegation_fault(d, "has no bytes for compile spec '" SV_FMT "'",
                              SV_ARG(code->specs[i].key));
    touch(code->specs[i].data, code->specs[i].size);
  }
  return STATUS_OK;
}

/* Inputs are values from outside. */
static Status check_code(const Delegation *d, const Partition *part, const DelegateCode *code) {
  const Graph *g = d->g;
  uint32_t tag = delegation_tag(d, part->nodes[0]);
  if (code->blob_size && !code->blob)
    return delegation_fault(d, "has no bytes for partition %" PRIu32, tag);
  if (code->blob_size > MAX_CODE)
    return delegation_fault(d, "says that the code of partition %" PRIu32 " has %" PRIu64 " bytes",
                            tag, code->blob_size);
  touch(code->blob, code->blob_size);
  for (uint32_t i = 0; i < code->input_count; i++) {
    bool known = code->inputs && is_value(g, code->inputs[i], false);
    NodeId def = known ? value_def(g, code->inputs[i]) : 0;
    if (!known || (def && delegation_tag(d, def) == tag))
      return delegation_fault(d,
                              "names a value as input %" PRIu32 " of partition %" PRIu32
                              " that is a constant or does not come from outside",
                              i, tag);
  }
  TRY(check_lists(d, code));
  TRY(check_operands(d, part, code));
  return check_data(d, code);
}

static Status check_tag(const Delegation *d, NodeId n) {
  if (d->g->nodes[n].tag == delegation_tag(d, n))
    return STATUS_OK;
  return delegation_fault(d, "changes the partition of '" SV_FMT "' in preprocess()",
                          SV_ARG(op_schema(d->g->nodes[n].op)->full));
}

Status delegation_check_code(const Delegation *d, const Before *before, const Partition *part,
                             const DelegateCode *code) {
  if (!d->backend->plugin)
    return STATUS_OK;
  TRY(check_before(d, "preprocess", before));
  for (uint32_t i = 0; i < part->node_count; i++)
    TRY(check_tag(d, part->nodes[i]));
  if (d->p->plugin)
    *d->p->plugin = d->backend->plugin;
  Status status = check_code(d, part, code);
  if (d->p->plugin)
    *d->p->plugin = NULL;
  return status;
}

Status delegation_check_call(const Delegation *d, NodeId call) {
  const char *fault = d->backend->plugin ? delegate_fault(d->g, call, true, d->p->scratch) : NULL;
  return fault ? delegation_fault(d, "made code that is wrong: %s", fault) : STATUS_OK;
}

Status delegation_check_end(const Delegation *d) {
  if (!d->backend->plugin)
    return STATUS_OK;
  for (FOR_NODES(d->g, n))
    TRY(check_tag(d, n));
  if (graph_verify(d->g, d->backend->name) != STATUS_OK)
    return delegation_fault(d, "left a graph that breaks the rules of its level");
  return STATUS_OK;
}

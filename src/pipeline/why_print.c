/* What `etc why` prints: text for people, one JSON object a line for tools. */
#include <inttypes.h>

#include "ir/op.h"
#include "pipeline/explain.h"
#include "pipeline/why_internal.h"
#include "support/json.h"

enum { SHOWN = 8 };

static const struct {
  const char *key, *text; /* text: behind what changed, and before what it became */
} changes[] = {
    [LIFE_STAYS] = {"edited", " changed in place"},
    [LIFE_REPLACED] = {"replaced", " became "},
    [LIFE_FUSED] = {"fused", " went into "},
    [LIFE_EQUAL] = {"equal", " is the same as "},
    [LIFE_FOLDED] = {"folded", " was computed: a constant"},
    [LIFE_DELEGATED] = {"delegated", " went into a delegate"},
    [LIFE_UNUSED] = {"unused", " was removed: nothing uses it any more"},
    [LIFE_ADDED] = {"added", ""},
};

static const struct {
  const char *key, *one, *many; /* many: with a number before it */
} ends[WHY_ENDS] = {
    [WHY_DELEGATE] = {"delegate", "in a delegate", "delegates"},
    [WHY_KERNEL] = {"kernel", "a kernel call", "kernel calls"},
    [WHY_CONTROL] = {"control", "control flow", "marks of control flow"},
    [WHY_VIEW] = {"view", "a view (no instruction)", "views (no instruction)"},
    [WHY_CONSTANT] = {"constant", "a constant", "constants"},
    [WHY_INPUT] = {"input", "an input of the program", "inputs of the program"},
    [WHY_STATE] = {"state", "a state of the program", "states of the program"},
};

static uint32_t count_ends(const Why *w, WhyEndKind kind) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < w->end_count; i++)
    count += w->ends[i].kind == kind;
  return count;
}

/* Why there is nothing of it in the program. */
typedef enum Absence { ABSENT_IMPORT, ABSENT_FOLDED, ABSENT_REMOVED } Absence;
static const struct {
  const char *key, *text;
} absences[] = {
    [ABSENT_IMPORT] = {"import", "not in the program: what it says is known since import"},
    [ABSENT_FOLDED] = {"folded", "not in the program: computed while compiling"},
    [ABSENT_REMOVED] = {"removed", "not in the program: nothing there uses it"},
};

static Absence absence_of(Why *w) {
  bool folded = false, later = w->t.target.value && !why_readers(w)[0];
  for (uint32_t i = 0; i < w->change_count; i++) {
    folded |= w->changes[i].change == LIFE_FOLDED;
    later |= w->changes[i].run != 0;
  }
  if (folded)
    return ABSENT_FOLDED;
  return later ? ABSENT_REMOVED : ABSENT_IMPORT;
}

/* --- the pass delegate --- */

/* The run of the pass `delegate` on this method, from 1; 0: there was none. */
static uint32_t delegate_run(const Why *w) {
  const Facts *f = &w->s->program.facts;
  for (uint32_t i = f->run_count; i > 0; i--)
    if (strcmp(f->runs[i - 1].row->name, "delegate") == 0 &&
        sv_eq(f->runs[i - 1].method, method_name(w->t.method)))
      return i;
  return 0;
}

static bool same_refusal(const WhyFact *a, const WhyFact *b) {
  return a->backend == b->backend && a->node->op == b->node->op && a->delegate == b->delegate &&
         a->node->refusal.rule == b->node->refusal.rule;
}

/* How many facts are like fact i; 0 when an earlier one is. */
static uint32_t count_like(const Why *w, uint32_t i) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < w->fact_count; k++) {
    if (!same_refusal(&w->facts[k], &w->facts[i]))
      continue;
    if (k < i)
      return 0;
    count++;
  }
  return count;
}

/* --- text --- */

static void begin_line(StrBuf *out, const char *label) { strbuf_printf(out, "  %-14s", label); }

static void text_fate(Why *w, StrBuf *out) {
  const char *comma = "";
  begin_line(out, "fate");
  for (unsigned kind = 0; kind < WHY_ENDS; kind++) {
    uint32_t count = count_ends(w, kind);
    if (count > 1)
      strbuf_printf(out, "%s%" PRIu32 " %s", comma, count, ends[kind].many);
    else if (count)
      strbuf_printf(out, "%s%s", comma, ends[kind].one);
    comma = count ? ", " : comma;
  }
  if (!w->end_count)
    strbuf_append(out, sv_from(absences[absence_of(w)].text));
  strbuf_append_char(out, '\n');
}

static void text_head(Why *w, StrBuf *out) {
  if (w->t.loc) {
    DiagPlace place = graph_place(w->g, w->t.loc);
    strbuf_append(out, place.node.size ? SV("'") : SV("an unnamed node"));
    strbuf_append_printable(out, place.node);
    strbuf_append(out, place.node.size ? SV("' (") : SV(" ("));
    strbuf_append_printable(out, place.op);
    if (place.index >= 0)
      strbuf_printf(out, ", node %" PRId64, place.index);
    strbuf_append_char(out, ')');
    if (place.graph.size) {
      strbuf_append(out, SV(" in "));
      strbuf_append_printable(out, place.graph);
    }
  } else {
    strbuf_append_printable(out, sv_from(why_value_name(w, w->t.target.value, &w->arena)));
  }
  if (w->s->program.method_count > 1) {
    strbuf_append_within(out, " of method '", method_name(w->t.method), "'");
  }
  strbuf_append_char(out, '\n');
}

static void text_names(Why *w, StrBuf *out) {
  const char *readers = why_readers(w);
  if (w->t.loc && graph_place(w->g, w->t.loc).origin.size) {
    begin_line(out, "origin");
    strbuf_append_printable(out, graph_place(w->g, w->t.loc).origin);
    strbuf_append_char(out, '\n');
  }
  if (!readers[0])
    return;
  begin_line(out, "read by");
  strbuf_append_printable(out, sv_from(readers));
  strbuf_append_char(out, '\n');
}

/* A node or value that import made of it, or that was there for another operator. */
static void text_first(Why *w, const Carrier *c, StrBuf *out) {
  bool constant = c->kind == CARRIER_VALUE && value_is_const(w->g, c->id);
  strbuf_append(out, c->equal && !constant ? SV("the same as ") : SV(""));
  strbuf_append(out, constant ? SV("constant ") : SV(""));
  if (c->kind == CARRIER_VALUE)
    strbuf_append_printable(out, sv_from(why_value_name(w, c->id, &w->arena)));
  else
    strbuf_append(out, op_schema(c->op)->full);
  if (c->kind == CARRIER_NODE && c->equal) {
    strbuf_append(out, SV(", of "));
    strbuf_append_printable(out, sv_from(why_loc_name(w->g, c->loc, &w->arena)));
  }
}

/* What import made of it. */
static void text_import(Why *w, StrBuf *out) {
  const char *comma = "";
  uint32_t shown = 0;
  begin_line(out, "import");
  for (uint32_t i = 0; i < w->life.count && shown <= SHOWN; i++) {
    const Carrier *c = &w->life.carriers[i];
    if (c->from || c->born)
      continue;
    strbuf_append(out, sv_from(comma));
    comma = ", ";
    if (shown++ == SHOWN)
      strbuf_append(out, SV("..."));
    else
      text_first(w, c, out);
  }
  strbuf_append(out, shown ? SV("\n") : SV("no tensor of its own\n"));
}

static const char *change_text(Why *w, const WhyChange *c) {
  if (c->change == LIFE_FOLDED && c->constant)
    return " went into a computed constant";
  if (c->change == LIFE_UNUSED && !c->run)
    return why_readers(w)[0] ? " was read while importing: no tensor uses it"
                             : " is read by nothing";
  return changes[c->change].text;
}

static void text_change(Why *w, const WhyChange *c, StrBuf *out) {
  bool names_next =
      c->change == LIFE_REPLACED || c->change == LIFE_FUSED || c->change == LIFE_EQUAL;
  strbuf_append(out, c->change == LIFE_ADDED ? SV("added ") : SV(""));
  if (c->count > 1)
    strbuf_printf(out, "%" PRIu32 " ", c->count);
  strbuf_append_printable(out, sv_from(c->what));
  strbuf_append(out, sv_from(change_text(w, c)));
  if (names_next && c->became)
    strbuf_append_printable(out, sv_from(c->became));
  if (c->of[0]) {
    strbuf_append(out, SV(", of "));
    strbuf_append_printable(out, sv_from(c->of));
  }
  strbuf_append_char(out, '\n');
}

static void begin_run(const Why *w, uint32_t run, const char *rule, StrBuf *out) {
  const PassRun *r = run ? &w->s->program.facts.runs[run - 1] : NULL;
  begin_line(out, r ? stage_name(r->stage) : "import");
  if (!r)
    return;
  strbuf_append(out, sv_from(r->row->name));
  if (rule)
    strbuf_printf(out, " (%s)", rule);
  strbuf_append(out, SV(": "));
}

static void text_fact(const Why *w, uint32_t i, StrBuf *out) {
  const WhyFact *f = &w->facts[i];
  const Refusal *r = &f->node->refusal;
  uint32_t count = count_like(w, i);
  if (!count)
    return;
  begin_line(out, "to_backend");
  strbuf_printf(out, "delegate: %s %s ", f->backend->backend->name,
                f->delegate ? "takes" : "leaves");
  if (count > 1)
    strbuf_printf(out, "%" PRIu32 " ", count);
  strbuf_append(out, op_schema(f->node->op)->full);
  if (f->delegate) {
    const PartitionCost *cost = &f->delegate->cost;
    strbuf_printf(out, " into delegate %" PRIu32 " (%" PRIu32 " node%s)", f->number,
                  f->delegate->node_count, f->delegate->node_count == 1 ? "" : "s");
    if (cost->spent > 0 || cost->saved > 0) {
      strbuf_append(out, SV(", estimated to save "));
      strbuf_append_time(out, cost->saved);
      strbuf_append(out, SV(" and to cost "));
      strbuf_append_time(out, cost->spent);
      strbuf_append(out, SV(" a call"));
    }
    strbuf_append_char(out, '\n');
    return;
  }
  strbuf_printf(out, " (%s): %s%s", r->rule, r->message, r->value_count ? ": " : "");
  StrBuf values = {0};
  explain_append_values(&values, r);
  strbuf_append_printable(out, (StrView){values.data, values.size});
  strbuf_release(&values);
  strbuf_append_char(out, '\n');
  if (r->advice[0]) {
    begin_line(out, "");
    strbuf_printf(out, "to do: %s\n", r->advice);
  }
}

static void text_facts(const Why *w, StrBuf *out) {
  for (uint32_t i = 0; i < w->fact_count; i++)
    text_fact(w, i, out);
  if (!w->t.method->options->pass.backend_count && count_ends(w, WHY_KERNEL)) {
    begin_line(out, "to_backend");
    strbuf_append(out, SV("no backend is named: --backend NAME ('etc backends' lists them)\n"));
  }
}

static void text_changes(Why *w, StrBuf *out) {
  uint32_t delegate = delegate_run(w);
  bool told = false;
  for (uint32_t i = 0; i < w->change_count; i++) {
    const WhyChange *c = &w->changes[i];
    if (!told && c->run >= delegate) {
      text_facts(w, out);
      told = true;
    }
    if (c->run == delegate && w->fact_count && c->change != LIFE_UNUSED)
      continue;
    begin_run(w, c->run, c->rule, out);
    text_change(w, c, out);
  }
  if (!told)
    text_facts(w, out);
}

static void text_end(const WhyEnd *e, StrBuf *out) {
  switch (e->kind) {
  case WHY_DELEGATE:
    strbuf_printf(out, "instruction %" PRIu32 ": delegate %" PRIu32 ", %s", e->instruction,
                  e->delegate, e->what);
    break;
  case WHY_KERNEL:
  case WHY_CONTROL:
    if (!e->instruction_count)
      strbuf_printf(out, "%s, no instruction", e->what);
    else if (e->instruction_count == 1)
      strbuf_printf(out, "instruction %" PRIu32 ": %s", e->instruction, e->what);
    else
      strbuf_printf(out, "instructions %" PRIu32 " to %" PRIu32 ": %s", e->instruction,
                    e->instruction + e->instruction_count - 1, e->what);
    break;
  case WHY_CONSTANT:
    strbuf_printf(out, "constant %s, %s", e->what, e->form);
    break;
  default:
    strbuf_printf(out, "%s, no instruction", e->what);
    break;
  }
  strbuf_append_char(out, '\n');
}

static void text_memory(Why *w, const WhyMemory *m, StrBuf *out) {
  strbuf_append_printable(out, sv_from(why_value_name(w, m->value, &w->arena)));
  strbuf_printf(out, ": arena %" PRIu32 "%s%s%s, offset %" PRIu64 ", %" PRIu64 " bytes, ",
                m->storage.arena, m->bank[0] ? " (" : "", m->bank, m->bank[0] ? ")" : "",
                m->storage.offset, m->storage.size);
  strbuf_printf(out, strcmp(m->from, m->to) == 0 ? "%s" : "%s to %s", m->from, m->to);
  strbuf_append_char(out, '\n');
  if (m->in_place) {
    begin_line(out, "");
    strbuf_append_within(out, "in the place of its operand ",
                         sv_from(why_value_name(w, m->in_place, &w->arena)), "\n");
  }
  if (!m->sharing_count)
    return;
  begin_line(out, "");
  strbuf_append(out, SV("shares bytes, at other times, with "));
  for (uint32_t i = 0; i < m->sharing_listed; i++) {
    strbuf_append(out, i ? SV(", ") : SV(""));
    strbuf_append_printable(out, sv_from(why_value_name(w, m->sharing[i], &w->arena)));
  }
  if (m->sharing_count > m->sharing_listed)
    strbuf_printf(out, " and %" PRIu32 " more", m->sharing_count - m->sharing_listed);
  strbuf_append_char(out, '\n');
}

static void text_more(StrBuf *out, uint32_t count) {
  if (count <= SHOWN)
    return;
  begin_line(out, "");
  strbuf_printf(out, "%" PRIu32 " more\n", count - SHOWN);
}

void why_print_text(Why *w, StrBuf *out) {
  text_head(w, out);
  text_fate(w, out);
  text_names(w, out);
  text_import(w, out);
  text_changes(w, out);
  for (uint32_t i = 0; i < w->end_count && i < SHOWN; i++) {
    begin_line(out, i ? "" : "program");
    text_end(&w->ends[i], out);
  }
  text_more(out, w->end_count);
  for (uint32_t i = 0; i < w->memory_count && i < SHOWN; i++) {
    begin_line(out, i ? "" : "memory");
    text_memory(w, &w->memory[i], out);
  }
  text_more(out, w->memory_count);
}

/* --- JSON --- */

static void json_names(Why *w, JsonWriter *j) {
  json_named_string(j, "method", method_name(w->t.method));
  if (w->t.loc) {
    DiagPlace place = graph_place(w->g, w->t.loc);
    json_named_string(j, "node", place.node);
    json_named_string(j, "op", place.op);
    json_named_int(j, "index", place.index);
    json_named_string(j, "scope", place.graph);
    json_named_string(j, "origin", place.origin);
  } else {
    json_named_string(j, "value", intern_get(&w->s->ctx.names, w->t.name));
  }
  json_named_array(j, "outputs");
  for (uint32_t i = 0; i < w->output_count; i++)
    json_string(j, intern_get(&w->s->ctx.names, w->outputs[i]));
  json_close_array(j);
}

static void json_fate(Why *w, JsonWriter *j) {
  json_named_array(j, "fate");
  for (unsigned kind = 0; kind < WHY_ENDS; kind++)
    if (count_ends(w, kind))
      json_string(j, sv_from(ends[kind].key));
  if (!w->end_count)
    json_string(j, sv_from(absences[absence_of(w)].key));
  json_close_array(j);
}

static void json_changes(const Why *w, JsonWriter *j) {
  json_named_array(j, "changes");
  for (uint32_t i = 0; i < w->change_count; i++) {
    const WhyChange *c = &w->changes[i];
    const PassRun *run = c->run ? &w->s->program.facts.runs[c->run - 1] : NULL;
    json_open_object(j);
    json_named_string(j, "stage", sv_from(run ? stage_name(run->stage) : "import"));
    if (run)
      json_named_string(j, "pass", sv_from(run->row->name));
    if (c->rule)
      json_named_string(j, "rule", sv_from(c->rule));
    json_named_string(j, "change", sv_from(changes[c->change].key));
    json_named_string(j, "what", sv_from(c->what));
    if (c->became)
      json_named_string(j, "became", sv_from(c->became));
    if (c->of[0])
      json_named_string(j, "of", sv_from(c->of));
    json_named_uint(j, "count", c->count);
    json_close_object(j);
  }
  json_close_array(j);
}

static void json_fact(const WhyFact *f, JsonWriter *j) {
  const Refusal *r = &f->node->refusal;
  json_open_object(j);
  json_named_string(j, "backend", sv_from(f->backend->backend->name));
  json_named_string(j, "aten", op_schema(f->node->op)->full);
  if (f->delegate) {
    json_named_uint(j, "delegate", f->number);
    json_named_uint(j, "delegate_nodes", f->delegate->node_count);
    json_named_double(j, "spent_ns", f->delegate->cost.spent);
    json_named_double(j, "saved_ns", f->delegate->cost.saved);
  } else {
    json_named_string(j, "rule", sv_from(r->rule));
    json_named_string(j, "message", sv_from(r->message));
    json_named_object(j, "values");
    explain_json_values(j, r);
    json_close_object(j);
    json_named_string(j, "advice", sv_from(r->advice));
  }
  json_close_object(j);
}

static void json_end(const WhyEnd *e, JsonWriter *j) {
  json_open_object(j);
  json_named_string(j, "kind", sv_from(ends[e->kind].key));
  json_named_string(j, "what", sv_from(e->what));
  if (e->instruction_count) {
    json_named_uint(j, "instruction", e->instruction);
    json_named_uint(j, "instructions", e->instruction_count);
  }
  if (e->delegate)
    json_named_uint(j, "delegate", e->delegate);
  if (e->form)
    json_named_string(j, "form", sv_from(e->form));
  json_close_object(j);
}

/* Its name as it is; of an unnamed value what it is a result of. */
static StrView plain_name(Why *w, ValueId v) {
  NameId name = value_cget(w->g, v)->name;
  return name ? intern_get(&w->s->ctx.names, name) : sv_from(why_value_name(w, v, &w->arena));
}

static void json_memory(Why *w, const WhyMemory *m, JsonWriter *j) {
  json_open_object(j);
  json_named_string(j, "value", plain_name(w, m->value));
  json_named_uint(j, "arena", m->storage.arena);
  json_named_string(j, "bank", sv_from(m->bank));
  json_named_uint(j, "offset", m->storage.offset);
  json_named_uint(j, "bytes", m->storage.size);
  json_named_string(j, "from", sv_from(m->from));
  json_named_string(j, "to", sv_from(m->to));
  if (m->in_place)
    json_named_string(j, "in_place_of", plain_name(w, m->in_place));
  json_named_array(j, "shares_with");
  for (uint32_t i = 0; i < m->sharing_listed; i++)
    json_string(j, plain_name(w, m->sharing[i]));
  json_close_array(j);
  json_close_object(j);
}

void why_print_json(Why *w, StrBuf *out) {
  JsonWriter j;
  json_init(&j, out, false);
  json_open_object(&j);
  json_names(w, &j);
  json_fate(w, &j);
  json_changes(w, &j);
  json_named_array(&j, "backends");
  for (uint32_t i = 0; i < w->fact_count; i++)
    json_fact(&w->facts[i], &j);
  json_close_array(&j);
  json_named_array(&j, "program");
  for (uint32_t i = 0; i < w->end_count; i++)
    json_end(&w->ends[i], &j);
  json_close_array(&j);
  json_named_array(&j, "memory");
  for (uint32_t i = 0; i < w->memory_count; i++)
    json_memory(w, &w->memory[i], &j);
  json_close_array(&j);
  json_close_object(&j);
  strbuf_append_char(out, '\n');
}

void why_print_left_out(const Onnx__NodeProto *node, bool json, StrBuf *out) {
  if (json) {
    JsonWriter j;
    json_init(&j, out, false);
    json_open_object(&j);
    json_named_string(&j, "node", onnx_text(node->name));
    json_named_string(&j, "op", onnx_text(node->op_type));
    json_named_array(&j, "fate");
    json_string(&j, SV("left_out"));
    json_close_array(&j);
    json_close_object(&j);
    strbuf_append_char(out, '\n');
    return;
  }
  strbuf_append_within(out, "'", onnx_text(node->name), "' (");
  strbuf_append_printable(out, onnx_text(node->op_type));
  strbuf_append(out, SV(")\n"));
  begin_line(out, "fate");
  strbuf_append(out, SV("not in the program: the branch or function that it is in never runs\n"));
}

/* See report.h: what is kept after each stage, and all of a method at the end. */
#include "ir/transform.h"
#include "report/internal.h"

void report_method_release(ReportMethod *m) {
  strbuf_release(&m->stages);
  strbuf_release(&m->last);
  xfree(m->users);
}

static void keep_user(ReportMethod *m, const Graph *g, ValueId v, LocId loc) {
  m->users =
      pool_reserve(m->users, &m->user_capacity, (uint64_t)m->user_count + 1, sizeof *m->users);
  m->users[m->user_count++] =
      (ReportUser){constant_source(value_lazy_constant(g, v))->data, value_cget(g, v)->name, loc};
}

static void keep_users(ReportMethod *m, const Graph *g) {
  for (FOR_NODES(g, n)) {
    LocId loc = g->nodes[n].loc;
    FOR_OPERANDS(g, n, v, {
      if (v && loc && value_is_const(g, v) && !op_has_trait(g->nodes[n].op, OP_DELEGATE))
        keep_user(m, g, v, loc);
    })
  }
}

static bool same_text(const StrBuf *a, const StrBuf *b) {
  return a->size == b->size && memcmp(strbuf_cstr(a), strbuf_cstr(b), a->size) == 0;
}

void report_stage(ReportMethod *m, const Graph *g, const char *stage, const char *summary) {
  JsonWriter w;
  StrBuf nodes = {0};
  json_init(&w, &nodes, false);
  report_nodes(&w, g);
  if (m->stages.size)
    strbuf_append_char(&m->stages, ',');
  json_init(&w, &m->stages, false);
  json_open_object(&w);
  json_named_string(&w, "name", sv_from(stage));
  json_named_string(&w, "summary", sv_from(summary));
  json_named_string(&w, "level", sv_from(level_name(g->level)));
  if (m->last_stage && same_text(&nodes, &m->last)) {
    json_named_string(&w, "same_as", sv_from(m->last_stage));
    strbuf_release(&nodes);
  } else {
    json_key(&w, "nodes");
    json_raw(&w, (StrView){strbuf_cstr(&nodes), nodes.size});
    strbuf_release(&m->last);
    m->last = nodes;
    m->last_stage = stage;
    keep_users(m, g);
  }
  json_close_object(&w);
}

/* "inputs" or "outputs" */
static void write_ends(JsonWriter *w, const Graph *g, bool outputs) {
  uint32_t count = outputs ? graph_output_count(g) : g->input_count;
  json_named_array(w, outputs ? "outputs" : "inputs");
  for (uint32_t i = 0; i < count; i++) {
    ValueId v = outputs ? graph_output(g, i) : g->inputs[i];
    json_open_object(w);
    report_name(w, "name", g, outputs ? graph_output_name(g, i) : value_cget(g, v)->name);
    json_key(w, "type");
    report_type(w, g, value_type(g, v));
    if (value_type(g, v)->kind == TYPE_TENSOR)
      json_named_uint(w, "bytes", type_bytes_upper(g, value_type(g, v)));
    json_close_object(w);
  }
  json_close_array(w);
}

Status report_method(const ReportMethod *m, Graph *g, JsonWriter *w, Arena *scratch) {
  json_named_array(w, "stages");
  if (m->stages.size)
    json_raw(w, (StrView){m->stages.data, m->stages.size});
  json_close_array(w);
  write_ends(w, g, false);
  write_ends(w, g, true);
  report_places(w, g, scratch);
  TRY(report_memory(w, g, scratch));
  report_constants(w, m, g, scratch);
  report_delegates(w, g, scratch);
  return STATUS_OK;
}

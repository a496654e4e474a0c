/* The memory plan over time: each piece of an arena with the nodes whose results lie there, and the
 * instruction at which most is in use. */
#include "passes/executorch/liveness.h"
#include "report/internal.h"

/* A storage that is used. Time is that of liveness.h: 0 inputs, then the nodes. */
typedef struct Block {
  uint32_t first, last, storage;
  ValueId value; /* the first that lies there */
} Block;

typedef struct Plan {
  Graph *g;
  Liveness live;
  Block *blocks;
  uint32_t count;
  uint32_t *of; /* by storage: its block + 1 */
  uint64_t peak;
  uint32_t peak_at;
} Plan;

static void add_value(Plan *p, ValueId v) {
  const Graph *g = p->g;
  uint32_t storage = value_cget(g, v)->storage, span = p->live.span_of[v];
  if (!storage || !span)
    return;
  bool state = span > p->live.span_count;
  Span s = state ? (Span){.first = 0, .last = p->live.end} : p->live.spans[span - 1];
  if (!p->of[storage]) {
    p->blocks[p->count] = (Block){s.first, s.last, storage, v};
    p->of[storage] = ++p->count;
  }
  Block *b = &p->blocks[p->of[storage] - 1];
  b->first = s.first < b->first ? s.first : b->first;
  b->last = s.last > b->last ? s.last : b->last;
}

static void find_blocks(Plan *p, Arena *scratch) {
  Graph *g = p->g;
  p->of = ARENA_ARRAY(scratch, uint32_t, (size_t)g->storage_count + 1);
  p->blocks = ARENA_ARRAY(scratch, Block, (size_t)g->storage_count + 1);
  for (uint32_t i = 0; i < g->input_count; i++)
    add_value(p, g->inputs[i]);
  for (uint32_t i = 0; i < g->state_count; i++)
    add_value(p, g->states[i].value);
  for (FOR_NODES(g, n))
    for (uint32_t i = 0; i < g->nodes[n].result_count; i++)
      add_value(p, node_result(g, n, i));
}

static void find_peak(Plan *p, Arena *scratch) {
  uint64_t *change = ARENA_ARRAY(scratch, uint64_t, (size_t)p->live.end + 2), live = 0;
  for (uint32_t i = 0; i < p->count; i++) {
    uint64_t size = p->g->storages[p->blocks[i].storage].size;
    change[p->blocks[i].first] += size;
    change[p->blocks[i].last + 1] -= size;
  }
  for (uint32_t t = 0; t <= p->live.end; t++) {
    live += change[t];
    if (live > p->peak) {
      p->peak = live;
      p->peak_at = t;
    }
  }
}

static void write_arenas(JsonWriter *w, const Graph *g) {
  json_named_array(w, "arenas");
  for (uint32_t i = 1; i < g->arena_size_count; i++) {
    json_open_object(w);
    json_named_uint(w, "id", i);
    json_named_uint(w, "bytes", g->arena_sizes[i]);
    if (g->bank_count)
      json_named_string(w, "name", i <= g->bank_count ? g->banks[i - 1].name : SV("states"));
    if (i <= g->bank_count && g->banks[i - 1].size != UINT64_MAX)
      json_named_uint(w, "limit", g->banks[i - 1].size);
    json_close_object(w);
  }
  json_close_array(w);
}

/* The number of the node that makes v, as in the stages. */
static uint32_t maker(const Graph *g, const uint32_t *position, ValueId v) {
  const Value *value = value_cget(g, v);
  if (value->kind == VALUE_RESULT)
    return report_first_node(g) + position[value->def];
  return value->kind == VALUE_STATE ? g->input_count + value->def : value->def;
}

static void write_blocks(JsonWriter *w, const Plan *p, const uint32_t *position) {
  const Graph *g = p->g;
  json_named_array(w, "blocks");
  for (uint32_t i = 0; i < p->count; i++) {
    const Block *b = &p->blocks[i];
    const Storage *s = &g->storages[b->storage];
    json_open_object(w);
    json_named_uint(w, "arena", s->arena);
    json_named_uint(w, "offset", s->offset);
    json_named_uint(w, "bytes", s->size);
    json_named_uint(w, "first", b->first);
    json_named_uint(w, "last", b->last);
    json_named_uint(w, "node", maker(g, position, b->value));
    report_name(w, "name", g, value_cget(g, b->value)->name);
    json_key(w, "type");
    report_type(w, g, value_type(g, b->value));
    json_close_object(w);
  }
  json_close_array(w);
}

static void write_peak(JsonWriter *w, const Plan *p) {
  json_named_object(w, "peak");
  json_named_uint(w, "at", p->peak_at);
  json_named_uint(w, "bytes", p->peak);
  json_named_array(w, "blocks");
  for (uint32_t i = 0; i < p->count; i++)
    if (p->blocks[i].first <= p->peak_at && p->peak_at <= p->blocks[i].last)
      json_uint(w, i);
  json_close_array(w);
  json_close_object(w);
}

Status report_memory(JsonWriter *w, Graph *g, Arena *scratch) {
  Plan p = {.g = g};
  TRY(liveness_compute(g, scratch, (LivenessOptions){0}, &p.live));
  uint32_t *position = ARENA_ARRAY(scratch, uint32_t, g->node_count), next = 0;
  for (FOR_NODES(g, n))
    position[n] = next++;
  find_blocks(&p, scratch);
  find_peak(&p, scratch);
  json_named_object(w, "memory");
  json_named_uint(w, "end", p.live.end);
  write_arenas(w, g);
  write_blocks(w, &p, position);
  write_peak(w, &p);
  json_close_object(w);
  return STATUS_OK;
}

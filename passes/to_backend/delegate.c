/* Cuts out of the graph what backends take, and puts calls of their delegates there.
 *
 * The nodes of a partition need not follow each other: before they are cut out, the graph is put
 * into an order in which they do. Nodes that write an operand stay behind its readers. */
#include "backends/backend.h"
#include "ir/builder.h"
#include "passes/to_backend/explain.h"

#include <inttypes.h>

typedef struct Delegation {
  PassContext *p;
  Graph *g;
  const Backend *backend;
  BackendContext c;
  uint32_t tags; /* partitions are 1 … tags */
} Delegation;

/* --- order --- */

/* A unit is a partition, or one node outside of all. */
typedef struct Units {
  uint32_t *of;    /* by NodeId, from 0 */
  uint32_t *place; /* by unit: position of its first node, which decides between units that are
                      ready */
  uint32_t count;
} Units;

typedef void EdgeFn(void *data, uint32_t from, uint32_t to);

/* Calls f for each dependency between two units: definition to use, and reader to writer. */
static void edges_of(Graph *g, const Units *u, NodeId n, EdgeFn *f, void *data) {
  FOR_OPERANDS(g, n, v, {
    NodeId def = v ? value_def(g, v) : 0;
    if (def && u->of[def] != u->of[n])
      f(data, u->of[def], u->of[n]);
  })
  const OpSchema *schema = op_schema(g->nodes[n].op);
  for (uint32_t i = 0; i < schema->arg_count; i++) {
    ValueId v = schema->args[i].mutated ? node_value(g, n, i) : 0;
    for (UseId use = v ? first_use(g, v) : 0; use; use = g->uses[use].next) {
      NodeId reader = g->uses[use].node;
      if (reader != NODE_OUTPUT && reader != n && u->of[reader] != u->of[n])
        f(data, u->of[reader], u->of[n]);
    }
  }
}

typedef struct EdgeLists {
  uint32_t *pending; /* by unit: edges into it */
  uint32_t *first;   /* by unit, and one more: where its edges begin in `to` */
  uint32_t *to;
  uint32_t *filled; /* by unit */
} EdgeLists;

static void count_edge(void *data, uint32_t from, uint32_t to) {
  EdgeLists *e = data;
  e->pending[to]++;
  e->first[from + 1]++;
}

static void add_edge(void *data, uint32_t from, uint32_t to) {
  EdgeLists *e = data;
  e->to[e->first[from] + e->filled[from]++] = to;
}

static Units find_units(Delegation *d) {
  Graph *g = d->g;
  Arena *a = d->p->scratch;
  Units u = {.of = ARENA_ARRAY(a, uint32_t, g->node_count)};
  uint32_t *by_tag = ARENA_ARRAY(a, uint32_t, (size_t)d->tags + 1), position = 0;
  u.place = ARENA_ARRAY(a, uint32_t, (size_t)g->live_nodes + 1);
  for (FOR_NODES(g, n)) {
    uint32_t tag = g->nodes[n].tag;
    if (tag && by_tag[tag])
      u.of[n] = by_tag[tag] - 1;
    else
      u.place[u.of[n] = u.count++] = position;
    if (tag)
      by_tag[tag] = u.of[n] + 1;
    position++;
  }
  return u;
}

/* A heap of units by place. */
static void heap_push(uint32_t *heap, uint32_t *size, const uint32_t *place, uint32_t unit) {
  uint32_t i = (*size)++;
  for (; i && place[heap[(i - 1) / 2]] > place[unit]; i = (i - 1) / 2)
    heap[i] = heap[(i - 1) / 2];
  heap[i] = unit;
}

static uint32_t heap_pop(uint32_t *heap, uint32_t *size, const uint32_t *place) {
  uint32_t top = heap[0], last = heap[--*size], i = 0;
  for (uint32_t child; (child = 2 * i + 1) < *size; i = child) {
    child += child + 1 < *size && place[heap[child + 1]] < place[heap[child]];
    if (place[last] <= place[heap[child]])
      break;
    heap[i] = heap[child];
  }
  heap[i] = last;
  return top;
}

/* Between two markers of control flow nodes may be put into another order. */
static void chain_markers(Graph *g, const Units *u, EdgeFn *f, void *data) {
  NodeId marker = 0, before = 0;
  for (FOR_NODES(g, n)) {
    if (marker && u->of[marker] != u->of[n])
      f(data, u->of[marker], u->of[n]);
    if (op_has_trait(g->nodes[n].op, OP_CONTROL)) {
      for (NodeId k = before; k && k != marker; k = g->nodes[k].prev)
        if (u->of[k] != u->of[n])
          f(data, u->of[k], u->of[n]);
      marker = n;
    }
    before = n;
  }
}

static void all_edges(Graph *g, const Units *u, EdgeFn *f, void *data) {
  for (FOR_NODES(g, n))
    edges_of(g, u, n, f, data);
  chain_markers(g, u, f, data);
}

/* Puts the nodes of each partition behind each other. */
static Status make_contiguous(Delegation *d) {
  Graph *g = d->g;
  Arena *a = d->p->scratch;
  Units u = find_units(d);
  EdgeLists e = {.pending = ARENA_ARRAY(a, uint32_t, (size_t)u.count + 1),
                 .first = ARENA_ARRAY(a, uint32_t, (size_t)u.count + 2),
                 .filled = ARENA_ARRAY(a, uint32_t, (size_t)u.count + 1)};
  all_edges(g, &u, count_edge, &e);
  for (uint32_t i = 1; i <= u.count; i++)
    e.first[i] += e.first[i - 1];
  e.to = ARENA_ARRAY(a, uint32_t, (size_t)e.first[u.count] + 1);
  all_edges(g, &u, add_edge, &e);
  uint32_t *heap = ARENA_ARRAY(a, uint32_t, (size_t)u.count + 1), size = 0, placed = 0;
  uint32_t *rank = ARENA_ARRAY(a, uint32_t, (size_t)u.count + 1);
  for (uint32_t i = 0; i < u.count; i++)
    if (e.pending[i] == 0)
      heap_push(heap, &size, u.place, i);
  while (size) {
    uint32_t unit = heap_pop(heap, &size, u.place);
    rank[unit] = placed++;
    for (uint32_t i = e.first[unit]; i < e.first[unit + 1]; i++)
      if (--e.pending[e.to[i]] == 0)
        heap_push(heap, &size, u.place, e.to[i]);
  }
  if (placed < u.count)
    return diag_report(d->p->sink, DIAG_INTERNAL, DIAG_NOWHERE,
                       "backend '%s' made partitions that depend on each other", d->backend->name);
  uint32_t *first = ARENA_ARRAY(a, uint32_t, (size_t)u.count + 2);
  NodeId *order = ARENA_ARRAY(a, NodeId, (size_t)g->live_nodes + 1);
  for (FOR_NODES(g, n))
    first[rank[u.of[n]] + 1]++;
  for (uint32_t i = 1; i <= u.count; i++)
    first[i] += first[i - 1];
  for (FOR_NODES(g, n))
    order[first[rank[u.of[n]]]++] = n;
  for (uint32_t i = 0, count = g->live_nodes; i < count; i++)
    graph_move_before(g, order[i], 0);
  return STATUS_OK;
}

/* --- calls --- */

static bool leaves(const Graph *g, ValueId v, uint32_t tag) {
  for (UseId u = first_use(g, v); u; u = g->uses[u].next) {
    NodeId user = g->uses[u].node;
    if (user == NODE_OUTPUT || g->nodes[user].tag != tag)
      return true;
  }
  return false;
}

/* The call before node `before`; its results are the outputs of the partition. */
static NodeId add_call(Delegation *d, const Partition *part, const DelegateCode *code,
                       NodeId before) {
  Graph *g = d->g;
  Arena *a = d->p->scratch;
  int64_t size = (int64_t)code->blob_size;
  ValueId blob = graph_add_constant(g, graph_tensor_type(g, DTYPE_U8, 1, &size, ORDER_CONTIGUOUS),
                                    (Constant){.data = code->blob, .size = code->blob_size}, 0);
  StrBuf keys;
  strbuf_init(&keys);
  for (uint32_t i = 0; i < code->data_count; i++)
    strbuf_printf(&keys, "%s%s", i ? " " : "", code->keys[i]);
  SymInt *dtypes = ARENA_ARRAY(a, SymInt, (size_t)part->output_count + 1),
         *ranks = ARENA_ARRAY(a, SymInt, (size_t)part->output_count + 1),
         *sizes = ARENA_ARRAY(a, SymInt, (size_t)part->output_count * MAX_RANK + 1);
  uint32_t dims = 0;
  for (uint32_t i = 0; i < part->output_count; i++) {
    const Type *t = value_type(g, part->outputs[i]);
    dtypes[i] = t->dtype;
    ranks[i] = t->rank;
    for (uint32_t k = 0; k < t->rank; k++)
      sizes[dims++] = t->dims[k];
  }
  Builder b = builder_make(g, before, g->nodes[part->nodes[0]].loc);
  ArgIn key_text = {.kind = ARG_STR, .str = {strbuf_cstr(&keys), keys.size}};
  ValueId first = build(&b, OP_EXECUTORCH_CALL_DELEGATE, A_STR(d->backend->id), key_text,
                        A_VAL(blob), A_VALS(code->data, code->data_count),
                        A_VALS(code->inputs, code->input_count), A_INTS(dtypes, part->output_count),
                        A_INTS(ranks, part->output_count), A_INTS(sizes, dims));
  strbuf_release(&keys);
  return first ? value_def(g, first) : 0;
}

static Status cut_out(Delegation *d, NodeId first, uint32_t tag) {
  Graph *g = d->g;
  Arena *a = d->p->scratch;
  uint32_t count = 0, results = 0;
  NodeId n = first;
  for (; n && g->nodes[n].tag == tag; n = g->nodes[n].next, count++)
    results += g->nodes[n].result_count;
  NodeId *nodes = ARENA_ARRAY(a, NodeId, (size_t)count + 1);
  ValueId *outputs = ARENA_ARRAY(a, ValueId, (size_t)results + 1);
  Partition part = {.nodes = nodes, .outputs = outputs};
  for (n = first; part.node_count < count; n = g->nodes[n].next) {
    nodes[part.node_count++] = n;
    for (uint32_t i = 0; i < g->nodes[n].result_count; i++)
      if (leaves(g, node_result(g, n, i), tag))
        outputs[part.output_count++] = node_result(g, n, i);
  }
  DelegateCode code;
  TRY(d->backend->preprocess(&d->c, g, &part, &code));
  explain_code(d->p, g, d->backend, tag, &code);
  NodeId call = add_call(d, &part, &code, first);
  if (!call)
    return STATUS_INTERNAL;
  for (uint32_t i = 0; i < part.output_count; i++)
    graph_replace_value(g, outputs[i], node_result(g, call, i));
  while (count)
    graph_remove_node(g, nodes[--count]);
  return STATUS_OK;
}

static Status delegate(Delegation *d) {
  Graph *g = d->g;
  uint32_t partitions = 0, nodes = 0;
  TRY(d->backend->partition(&d->c, g));
  for (FOR_NODES(g, n))
    d->tags = g->nodes[n].tag > d->tags ? g->nodes[n].tag : d->tags;
  explain_delegation(d->p, g, d->backend, d->c.refusals);
  if (d->tags == 0)
    return STATUS_OK;
  TRY(make_contiguous(d));
  for (NodeId n = g->first, before = 0; n; n = before ? g->nodes[before].next : g->first) {
    uint32_t tag = g->nodes[n].tag;
    if (!tag) {
      before = n;
      continue;
    }
    uint32_t live = g->live_nodes;
    TRY(cut_out(d, n, tag));
    nodes += live + 1 - g->live_nodes;
    partitions++;
  }
  pass_count(d->p, "delegates", partitions);
  pass_count(d->p, "nodes in them", nodes);
  return STATUS_OK;
}

Status pass_delegate(PassContext *p, Graph *g) {
  if (p->sink->explain && p->options && p->options->backend_count == 0)
    explain_no_backend(p, g);
  for (uint32_t i = 0; p->options && i < p->options->backend_count; i++) {
    const BackendChoice *choice = &p->options->backends[i];
    Delegation d = {.p = p, .g = g, .backend = choice->backend};
    d.c = (BackendContext){.sink = p->sink,
                           .scratch = p->scratch,
                           .settings = choice->settings,
                           .refusals = ARENA_ARRAY(p->scratch, Refusal, g->node_count)};
    TRY(delegate(&d));
  }
  return STATUS_OK;
}

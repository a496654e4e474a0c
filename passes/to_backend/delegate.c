/* Cuts the partitions of backends out of the graph, and puts calls of their delegates there.
 *
 * The nodes of a partition need not follow each other: before they are cut out, the graph is put
 * into an order in which they do. Nodes that write an operand stay behind its readers. */
#include "passes/to_backend/delegate_checks.h"

#include "ir/builder.h"
#include "ir/size_source.h"

#include <inttypes.h>

/* --- order --- */

/* A unit is a partition, or one node outside of all. */
typedef struct Units {
  uint32_t *of;    /* by NodeId, from 0 */
  uint32_t *place; /* by unit: position of its first node, which decides between units that are
                      ready */
  uint32_t count;
  SizeSources sizes;
} Units;

typedef void EdgeFn(void *data, uint32_t from, uint32_t to);

/* Calls f for each dependency between two units: definition to use, of values and of sizes, and
 * reader to writer. */
static void edges_of(Graph *g, Units *u, NodeId n, EdgeFn *f, void *data) {
  FOR_OPERANDS(g, n, v, {
    NodeId def = v ? value_def(g, v) : 0;
    if (def && u->of[def] != u->of[n])
      f(data, u->of[def], u->of[n]);
  })
  size_sources_of(&u->sizes, n);
  for (uint32_t i = 0; i < u->sizes.count; i++)
    if (u->of[u->sizes.found[i]] != u->of[n])
      f(data, u->of[u->sizes.found[i]], u->of[n]);
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
  Units u = {.of = ARENA_ARRAY(a, uint32_t, g->node_count), .sizes = size_sources(g, a)};
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

static void all_edges(Graph *g, Units *u, EdgeFn *f, void *data) {
  for (FOR_NODES(g, n))
    edges_of(g, u, n, f, data);
  chain_markers(g, u, f, data);
}

/* By unit that is not placed: one that it waits for and that is not placed either, plus 1. */
typedef struct Waiting {
  const uint32_t *pending;
  uint32_t *on;
} Waiting;

static void note_waiting(void *data, uint32_t from, uint32_t to) {
  Waiting *w = data;
  if (w->pending[from] && w->pending[to])
    w->on[to] = from + 1;
}

static NodeId node_of_unit(const Graph *g, const Units *u, uint32_t unit) {
  NodeId n = g->first;
  while (u->of[n] != unit)
    n = g->nodes[n].next;
  return n;
}

/* Units that wait for each other are a circle, in which there is a partition. */
static Status refuse_circle(const Delegation *d, Units *u, const uint32_t *pending) {
  Graph *g = d->g;
  Waiting w = {pending, ARENA_ARRAY(d->p->scratch, uint32_t, u->count)};
  all_edges(g, u, note_waiting, &w);
  uint32_t unit = 0;
  while (!pending[unit])
    unit++;
  for (uint32_t i = 0; i < u->count; i++) /* into the circle */
    unit = w.on[unit] - 1;
  uint32_t tag;
  while (!(tag = g->nodes[node_of_unit(g, u, unit)].tag))
    unit = w.on[unit] - 1;
  NodeId cause = node_of_unit(g, u, w.on[unit] - 1);
  return delegation_fault(d,
                          "made partitions that depend on each other: partition %" PRIu32
                          " waits for '" SV_FMT "', and this for partition %" PRIu32,
                          tag, SV_ARG(op_schema(g->nodes[cause].op)->full), tag);
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
    return refuse_circle(d, &u, e.pending);
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

static bool leaves(const Delegation *d, ValueId v, uint32_t tag) {
  const Graph *g = d->g;
  for (UseId u = first_use(g, v); u; u = g->uses[u].next) {
    NodeId user = g->uses[u].node;
    if (user == NODE_OUTPUT || delegation_tag(d, user) != tag)
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
  StrBuf keys = {0};
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
  StrBuf specs = {0};
  for (uint32_t i = 0; i < code->spec_count; i++)
    delegate_append_spec(&specs, &code->specs[i]);
  ArgIn spec_text = {.kind = ARG_STR, .str = {strbuf_cstr(&specs), specs.size}};
  Builder b = builder_make(g, before, g->nodes[part->nodes[0]].loc);
  ArgIn key_text = {.kind = ARG_STR, .str = {strbuf_cstr(&keys), keys.size}};
  ValueId first = build(&b, OP_EXECUTORCH_CALL_DELEGATE, A_STR(d->backend->id), key_text,
                        A_VAL(blob), A_VALS(code->data, code->data_count),
                        A_VALS(code->inputs, code->input_count), A_INTS(dtypes, part->output_count),
                        A_INTS(ranks, part->output_count), A_INTS(sizes, dims), spec_text);
  strbuf_release(&keys);
  strbuf_release(&specs);
  return first ? value_def(g, first) : 0;
}

/* Puts the call into a branch that is taken unless the guard is 0, with tensors of no elements in
 * the other one. Gives the node whose results are those of the partition. */
static NodeId guard_call(Delegation *d, NodeId call, SymInt guard) {
  Graph *g = d->g;
  uint32_t count = g->nodes[call].result_count;
  ValueId *called = ARENA_ARRAY(d->p->scratch, ValueId, count),
          *empty = ARENA_ARRAY(d->p->scratch, ValueId, count);
  Builder b = builder_make(g, call, g->nodes[call].loc);
  ValueId size = build(&b, OP_SCALAR_TENSOR, A_INT(guard), A_DTYPE(DTYPE_I64));
  (void)build(&b, OP_IF, A_VAL(build(&b, OP_NE_SCALAR, A_VAL(size), A_INT(0))));
  b.before = g->nodes[call].next;
  (void)build_args(&b, OP_ELSE, NULL, 0);
  for (uint32_t i = 0; i < count; i++) {
    called[i] = node_result(g, call, i);
    const Type *t = value_type(g, called[i]);
    empty[i] = build(&b, OP_FULL, A_INTS(t->dims, t->rank), A_INT(0), A_DTYPE(t->dtype));
  }
  ValueId joined = build(&b, OP_ENDIF, A_VALS(called, count), A_VALS(empty, count));
  return joined ? value_def(g, joined) : 0;
}

/* Hands the partition as a graph of its own to who asked for it. */
static void keep_graph(const Delegation *d, const Partition *part, const DelegateCode *code) {
  const PassOptions *o = d->p->options;
  if (!o->keep_delegate)
    return;
  Graph *own = graph_part(d->g, part->nodes, part->node_count, code->inputs, code->input_count,
                          part->outputs, part->output_count);
  o->keep_delegate(o->keep_user, own);
  graph_free(own);
}

/* For maps from instructions to nodes of the model. */
static void keep_origin(Graph *g, NodeId call, const Partition *part) {
  LocId *locs = ARENA_ARRAY(&g->arena, LocId, (size_t)part->node_count + 1);
  for (uint32_t i = 0; i < part->node_count; i++)
    locs[i] = g->nodes[part->nodes[i]].loc;
  graph_add_origin(g, (DelegateOrigin){call, part->node_count, locs});
}

static Status cut_out(Delegation *d, NodeId first, uint32_t tag) {
  Graph *g = d->g;
  Arena *a = d->p->scratch;
  uint32_t count = 0, results = 0;
  NodeId n = first;
  for (; n && delegation_tag(d, n) == tag; n = g->nodes[n].next, count++)
    results += g->nodes[n].result_count;
  NodeId *nodes = ARENA_ARRAY(a, NodeId, (size_t)count + 1);
  ValueId *outputs = ARENA_ARRAY(a, ValueId, (size_t)results + 1);
  Partition part = {.nodes = nodes, .outputs = outputs};
  for (n = first; part.node_count < count; n = g->nodes[n].next) {
    nodes[part.node_count++] = n;
    for (uint32_t i = 0; i < g->nodes[n].result_count; i++)
      if (leaves(d, node_result(g, n, i), tag))
        outputs[part.output_count++] = node_result(g, n, i);
  }
  DelegateCode code = {0};
  Before before = delegation_before(d);
  pass_enter(d->p, d->backend->plugin);
  Status status = d->backend->preprocess(&d->c, g, &part, &code);
  TRY(pass_leave(d->p, "backend", d->backend->name, status));
  TRY(delegation_check_code(d, &before, &part, &code));
  DelegateFact *fact = facts_add_delegate(d->p->facts, d->fact, g, &part, &code, d->c.costs[tag]);
  keep_graph(d, &part, &code);
  NodeId call = add_call(d, &part, &code, first);
  if (!call)
    return STATUS_INTERNAL;
  fact->call = call;
  keep_origin(g, call, &part);
  NodeId made = sym_is_const(code.guard) ? call : guard_call(d, call, code.guard);
  if (!made)
    return STATUS_INTERNAL;
  for (uint32_t i = 0; i < part.output_count; i++)
    graph_replace_value(g, outputs[i], node_result(g, made, i));
  while (count)
    graph_remove_node(g, nodes[--count]);
  return delegation_check_call(d, call);
}

enum { LEFT_NAMED = 16 };

/* Lists what is left to the portable kernels. */
static Status check_whole(const Delegation *d) {
  const Graph *g = d->g;
  uint32_t left = 0;
  for (FOR_NODES(g, n))
    left += !g->nodes[n].tag && !op_has_trait(g->nodes[n].op, OP_DELEGATE);
  if (!left)
    return STATUS_OK;
  Diag *diag = diag_begin(d->p->sink, DIAG_DELEGATE_NOT_WHOLE, DIAG_NOWHERE);
  diag_message(diag, "%s leaves %" PRIu32 " of %" PRIu32 " nodes of '" SV_FMT "'", d->backend->name,
               left, g->live_nodes, SV_ARG(graph_name(g)));
  uint32_t named = 0;
  for (FOR_NODES(g, n)) {
    if (g->nodes[n].tag || op_has_trait(g->nodes[n].op, OP_DELEGATE) || named++ >= LEFT_NAMED)
      continue;
    const Refusal *r = &d->c.refusals[n];
    StrView name = node_place(g, n).node, op = op_schema(g->nodes[n].op)->full;
    diag_note(diag, "'" SV_FMT "' (" SV_FMT ")%s%s", SV_ARG(name), SV_ARG(op), r->rule ? ": " : "",
              r->rule ? r->message : "");
  }
  if (left > LEFT_NAMED)
    diag_note(diag, "%" PRIu32 " more", left - LEFT_NAMED);
  return diag_end(diag);
}

static void keep_tags(Delegation *d) {
  const Graph *g = d->g;
  uint32_t *tags = ARENA_ARRAY(d->p->scratch, uint32_t, (size_t)g->node_count + 1);
  for (FOR_NODES(g, n)) {
    tags[n] = g->nodes[n].tag;
    d->tags = tags[n] > d->tags ? tags[n] : d->tags;
  }
  d->tag_of = tags;
  d->tag_count = g->node_count;
}

static Status delegate(Delegation *d) {
  Graph *g = d->g;
  uint32_t partitions = 0, nodes = 0;
  Before before = delegation_before(d);
  pass_enter(d->p, d->backend->plugin);
  Status status = d->backend->partition(&d->c, g);
  TRY(pass_leave(d->p, "backend", d->backend->name, status));
  TRY(delegation_check_partitions(d, &before));
  keep_tags(d);
  d->fact = facts_add_backend(d->p->facts, d->run, d->backend, d->c.refusals);
  if (d->c.whole)
    TRY(check_whole(d));
  if (d->tags == 0)
    return STATUS_OK;
  TRY(make_contiguous(d));
  for (NodeId n = g->first, last = 0; n; n = last ? g->nodes[last].next : g->first) {
    uint32_t tag = delegation_tag(d, n);
    if (!tag) {
      last = n;
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
  uint32_t backend_count = p->options ? p->options->backend_count : 0;
  DelegationFact *run = facts_add_delegation(p->facts, g, backend_count);
  for (uint32_t i = 0; i < backend_count; i++) {
    const BackendChoice *choice = &p->options->backends[i];
    Delegation d = {.p = p, .g = g, .run = run, .backend = choice->backend};
    d.c = (BackendContext){.sink = p->sink,
                           .scratch = p->scratch,
                           .settings = choice->settings,
                           .whole = choice->whole,
                           .refusals = ARENA_ARRAY(p->scratch, Refusal, g->node_count),
                           .costs =
                               ARENA_ARRAY(p->scratch, PartitionCost, (size_t)g->node_count + 1)};
    TRY(delegate(&d));
    TRY(delegation_check_end(&d));
  }
  facts_count_kernels(p->facts, run);
  return STATUS_OK;
}

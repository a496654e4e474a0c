/* See facts.h. */
#include "passes/facts.h"

#include "ops/work.h"

void facts_release(Facts *f) {
  xfree(f->runs);
  xfree(f->delegations);
  arena_release(&f->arena);
}

PassRun *facts_add_run(Facts *f) {
  f->runs = pool_reserve(f->runs, &f->run_capacity, (uint64_t)f->run_count + 1, sizeof *f->runs);
  return &f->runs[f->run_count++];
}

DelegationFact *facts_add_delegation(Facts *f, const Graph *g, uint32_t backend_count) {
  f->delegations = pool_reserve(f->delegations, &f->delegation_capacity,
                                (uint64_t)f->delegation_count + 1, sizeof *f->delegations);
  DelegationFact *d = &f->delegations[f->delegation_count++];
  *d = (DelegationFact){.graph = g,
                        .node_count = g->live_nodes,
                        .backends = ARENA_ARRAY(&f->arena, BackendFact, backend_count)};
  return d;
}

static Refusal keep_refusal(Arena *arena, Refusal r) {
  RefusalValue *values = ARENA_ARRAY(arena, RefusalValue, r.value_count);
  for (uint32_t i = 0; i < r.value_count; i++) {
    values[i] = r.values[i];
    if (values[i].kind == REFUSAL_TEXT)
      values[i].text.data = arena_strdup(arena, values[i].text);
  }
  r.values = values;
  return r;
}

BackendFact *facts_add_backend(Facts *f, DelegationFact *d, const Backend *backend,
                               const Refusal *refusals) {
  const Graph *g = d->graph;
  NodeFact *nodes = ARENA_ARRAY(&f->arena, NodeFact, g->live_nodes);
  BackendFact *b = &d->backends[d->backend_count++];
  *b = (BackendFact){.backend = backend, .nodes = nodes};
  for (FOR_NODES(g, n)) {
    const Node *node = &g->nodes[n];
    uint64_t work = node_work(g, n);
    b->work = work_plus(b->work, work);
    if (node->tag || (refusals[n].rule && !op_has_trait(node->op, OP_DELEGATE)))
      nodes[b->node_count++] = (NodeFact){
          n,         node->loc, node->op,
          node->tag, work,      node->tag ? (Refusal){0} : keep_refusal(&f->arena, refusals[n])};
  }
  return b;
}

DelegateFact *facts_add_delegate(Facts *f, BackendFact *b, const Graph *g,
                                 const Partition *partition, const DelegateCode *code,
                                 PartitionCost cost) {
  b->delegates = arena_push(&f->arena, b->delegates, b->delegate_count, sizeof *b->delegates);
  DelegateFact *d = &b->delegates[b->delegate_count++];
  DelegateTranspose *transposes = ARENA_ARRAY(&f->arena, DelegateTranspose, code->transpose_count);
  *d = (DelegateFact){.partition = g->nodes[partition->nodes[0]].tag,
                      .node_count = partition->node_count,
                      .input_count = code->input_count,
                      .output_count = partition->output_count,
                      .cost = cost,
                      .transposes = transposes,
                      .transpose_count = code->transpose_count};
  for (uint32_t i = 0; i < code->transpose_count; i++) {
    transposes[i] = code->transposes[i];
    d->transposed_bytes += transposes[i].bytes;
  }
  return d;
}

void facts_count_kernels(Facts *f, DelegationFact *d) {
  uint32_t *counts = ARENA_ARRAY(&f->arena, uint32_t, OP_COUNT);
  for (FOR_NODES(d->graph, n))
    if (!op_has_trait(d->graph->nodes[n].op, OP_DELEGATE))
      counts[d->graph->nodes[n].op]++;
  d->kernels = counts;
}

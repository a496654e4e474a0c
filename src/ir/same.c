/* See same.h. */
#include "ir/same.h"

#include "support/hash.h"
#include "support/number.h"

static uint32_t arg_hash(const Graph *g, uint32_t h, const Arg *arg, ValueKeyFn *key, void *user) {
  h = hash_mix(h, (uint64_t)arg->kind << 32 | arg->count);
  switch ((ArgKind)arg->kind) {
  case ARG_VALUE:
    return hash_mix(h, key(user, g->uses[arg->at].value));
  case ARG_VALUES:
    for (uint32_t i = 0; i < arg->count; i++)
      h = hash_mix(h, key(user, g->uses[arg->at + i].value));
    return h;
  case ARG_INTS:
    for (uint32_t i = 0; i < arg->count; i++)
      h = hash_mix(h, (uint64_t)g->ints[arg->at + i]);
    return h;
  case ARG_FLOATS:
    for (uint32_t i = 0; i < arg->count; i++)
      h = hash_mix(h, double_bits(g->floats[arg->at + i]));
    return h;
  case ARG_NONE:
    return h;
  case ARG_INT:
  case ARG_FLOAT:
  case ARG_BOOL:
  case ARG_STR:
  case ARG_DTYPE:
    return hash_mix(h, (uint64_t)arg->i);
  }
  return h;
}

uint32_t same_hash(const Graph *g, NodeId n, ValueKeyFn *key, void *user) {
  const Node *node = node_cget(g, n);
  uint32_t h = hash_mix(0, node->op);
  for (uint32_t i = 0; i < node->arg_count; i++)
    h = arg_hash(g, h, node_arg(g, n, i), key, user);
  return h;
}

static bool arg_same(const Graph *g, const Arg *a, const Arg *b, ValueKeyFn *key, void *user) {
  if (a->kind != b->kind || a->count != b->count)
    return false;
  uint32_t uses = arg_operand_count(a);
  for (uint32_t i = 0; i < uses; i++)
    if (key(user, g->uses[a->at + i].value) != key(user, g->uses[b->at + i].value))
      return false;
  if (uses || a->kind == ARG_NONE || a->kind == ARG_VALUES)
    return true;
  if (a->kind == ARG_INTS)
    return !a->count || memcmp(g->ints + a->at, g->ints + b->at, a->count * sizeof *g->ints) == 0;
  if (a->kind == ARG_FLOATS)
    return !a->count ||
           memcmp(g->floats + a->at, g->floats + b->at, a->count * sizeof *g->floats) == 0;
  return a->i == b->i; /* FLOAT too: compared as bits */
}

bool same_nodes(const Graph *g, NodeId a, NodeId b, ValueKeyFn *key, void *user) {
  const Node *x = node_cget(g, a), *y = node_cget(g, b);
  if (x->op != y->op || x->result_count != y->result_count)
    return false;
  for (uint32_t i = 0; i < x->arg_count; i++)
    if (!arg_same(g, node_arg(g, a, i), node_arg(g, b, i), key, user))
      return false;
  return true;
}

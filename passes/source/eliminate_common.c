/* Common subexpressions: of two nodes with the same op, operands and arguments the first stays. One
 * walk in order with a hash table; operands are compared by value, small constants by content, so
 * chains merge in one go. A node that alone uses an operand equals no other: most nodes of a chain
 * are not even put into the table. Nodes on the two sides of a marker of control flow are never
 * merged, nor those that read memory on the two sides of a node that may write there (they have
 * different epochs). */
#include "ir/same.h"
#include "passes/pass.h"
#include "support/hash.h"

enum { CONTENT_MAX = 256 }; /* bytes of a constant compared by content; larger ones by their span */

typedef struct Table {
  Graph *g;
  uint64_t *slots;         /* hash << 32 | node: most misses are seen without a look at the node */
  uint32_t *epochs;        /* by NodeId: of effects where it reads what is written, else of jumps */
  bool *left_out;          /* by NodeId: not in the table, as it alone uses an operand */
  uint32_t size;           /* power of two */
  uint32_t effects, jumps; /* so far: nodes with an effect, and those among them that do more than
                              write an operand */
  bool *written;           /* by ValueId: memory that a node writes */
  ValueId *same;           /* by ValueId of a constant: the first constant equal to it */
  ValueId *constants;
  uint32_t constants_size;
} Table;

static uint32_t constant_hash(const Graph *g, ValueId v) {
  const Constant *c = value_lazy_constant(g, v);
  uint32_t h = hash_mix(value_cget(g, v)->type, c->size);
  if (c->transform)
    return hash_mix(h, (uint64_t)(uintptr_t)c->transform);
  if (c->size > CONTENT_MAX)
    return hash_mix(h, (uint64_t)(uintptr_t)c->data);
  for (uint64_t i = 0; i < c->size; i++)
    h = hash_mix(h, c->data[i]);
  return h;
}

static bool constant_equal(const Graph *g, ValueId a, ValueId b) {
  const Constant *x = value_lazy_constant(g, a), *y = value_lazy_constant(g, b);
  if (!value_same_type(g, a, b) || x->size != y->size)
    return false;
  if (x->transform || y->transform)
    return x->transform == y->transform;
  return x->data == y->data || (x->size <= CONTENT_MAX && memcmp(x->data, y->data, x->size) == 0);
}

/* The representative of a value: itself, or the first equal constant. */
static ValueId canonical(Table *t, ValueId v) {
  if (!v || !value_is_const(t->g, v))
    return v;
  if (t->same[v])
    return t->same[v];
  uint32_t slot = constant_hash(t->g, v) & (t->constants_size - 1);
  while (t->constants[slot] && !constant_equal(t->g, t->constants[slot], v))
    slot = (slot + 1) & (t->constants_size - 1);
  if (!t->constants[slot])
    t->constants[slot] = v;
  return t->same[v] = t->constants[slot];
}

static uint64_t key_of(void *table, ValueId v) { return canonical(table, v); }

/* Whether n alone uses an operand that is no constant. All constants are looked at, to be merged.
 */
static bool is_only_user(Table *t, NodeId n) {
  bool only = false;
  FOR_OPERANDS(t->g, n, v, {
    if (v && value_is_const(t->g, v))
      (void)canonical(t, v);
    else
      only |= v && value_used_once(t->g, v);
  })
  return only;
}

/* Numbers that are read from equal tensors are equal, but each is a symbol of its own: nodes that
 * have a size of one need the node that reads it. */
static bool same_results(const Graph *g, NodeId a, NodeId b) {
  uint32_t count = node_cget(g, a)->result_count;
  for (uint32_t i = 0; i < count; i++)
    if (!value_same_type(g, node_result(g, a, i), node_result(g, b, i)))
      return false;
  return true;
}

/* The earlier node equal to n, or 0 after n was put into the table. */
static NodeId find(Table *t, NodeId n) {
  uint32_t h = hash_mix(t->epochs[n], same_hash(t->g, n, key_of, t));
  uint32_t slot = h & (t->size - 1);
  for (; t->slots[slot]; slot = (slot + 1) & (t->size - 1)) {
    NodeId other = (NodeId)t->slots[slot];
    if (t->slots[slot] >> 32 == h && t->epochs[other] == t->epochs[n] &&
        same_nodes(t->g, other, n, key_of, t) && same_results(t->g, other, n))
      return other;
  }
  t->slots[slot] = (uint64_t)h << 32 | n;
  return 0;
}

/* The results of `earlier` get more users: whoever alone used one does so no longer. */
static void put_only_users(Table *t, NodeId earlier) {
  for (uint32_t i = 0; i < node_cget(t->g, earlier)->result_count; i++) {
    ValueId v = node_result(t->g, earlier, i);
    NodeId user = value_only_user(t->g, v);
    if (!t->left_out[user])
      continue;
    t->left_out[user] = false;
    (void)find(t, user);
  }
}

/* What a node writes, and what may be the same memory: its results. */
static void find_written(Table *t) {
  for (NodeId n = t->g->first; n; n = node_cget(t->g, n)->next) {
    if (!op_has_trait(node_cget(t->g, n)->op, OP_EFFECT))
      continue;
    ValueId operand = node_shared_operand(t->g, n);
    if (operand)
      t->written[operand] = true;
    else
      FOR_OPERANDS(t->g, n, v, t->written[v] = true;)
    for (uint32_t i = 0; i < node_cget(t->g, n)->result_count; i++)
      t->written[node_result(t->g, n, i)] = true;
  }
}

static bool reads_written(const Table *t, NodeId n) {
  bool reads = false;
  FOR_OPERANDS(t->g, n, v, reads |= t->written[v];)
  return reads;
}

static void count_effect(Table *t, NodeId n) {
  bool effect = op_has_trait(node_cget(t->g, n)->op, OP_EFFECT);
  t->effects += effect;
  t->jumps += effect && !node_shared_operand(t->g, n);
}

/* The earlier node equal to n, the next in order, or 0. */
static NodeId visit(Table *t, NodeId n) {
  if (t->effects) /* they are zeros */
    t->epochs[n] = reads_written(t, n) ? t->effects : t->jumps;
  t->left_out[n] = is_only_user(t, n);
  return t->left_out[n] ? 0 : find(t, n);
}

/* Lets users of a constant that equals an earlier one use that. */
static uint64_t merge_constants(const Table *t) {
  uint64_t merged = 0;
  for (ValueId v = 1; v < t->g->value_count; v++)
    if (t->same[v] && t->same[v] != v && value_cget(t->g, v)->use_count) {
      graph_replace_uses(t->g, v, t->same[v]);
      merged++;
    }
  return merged;
}

Status pass_eliminate_common(PassContext *p, Graph *g) {
  Table t = {
      .g = g, .size = hash_slots(g->live_nodes), .constants_size = hash_slots(g->constant_count)};
  t.slots = ARENA_ARRAY(p->scratch, uint64_t, t.size);
  t.epochs = ARENA_ARRAY(p->scratch, uint32_t, g->node_count);
  t.left_out = ARENA_ARRAY(p->scratch, bool, g->node_count);
  t.written = ARENA_ARRAY(p->scratch, bool, g->value_count);
  t.same = ARENA_ARRAY(p->scratch, ValueId, g->value_count);
  t.constants = ARENA_ARRAY(p->scratch, ValueId, t.constants_size);
  find_written(&t);
  uint64_t merged = 0;
  for (NodeId n = g->first, next; n; n = next) {
    next = node_cget(g, n)->next;
    count_effect(&t, n);
    if (op_has_trait(node_cget(g, n)->op, OP_RANDOM | OP_EFFECT | OP_DATA_SHAPE))
      continue;
    NodeId earlier = visit(&t, n);
    if (!earlier)
      continue;
    put_only_users(&t, earlier);
    graph_replace_results(g, n, node_result(g, earlier, 0));
    graph_remove_node(g, n);
    merged++;
  }
  pass_count(p, "nodes merged", merged);
  pass_count(p, "constants merged", merge_constants(&t));
  return STATUS_OK;
}

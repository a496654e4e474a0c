/* See repeat.h. */
#include "backends/xnnpack/repeat.h"

#include "backends/xnnpack/lower.h"
#include "ir/same.h"
#include "ir/transform.h"
#include "support/hash.h"
#include "support/keymap.h"
#include "support/number.h"

#include <stdlib.h>

enum {
  FEW_USES = 64,   /* of a value that copies grow along */
  SAMPLE = 64,     /* bytes at the beginning, middle and end of a constant, for its hash */
  SPAN_FACTOR = 64 /* nodes that are looked at for paths out of copies and back, a node of the
                      graph; beyond, repeat_divide finds what depends on itself */
};

typedef struct Finder {
  const Graph *g;
  Arena *arena;
  const uint32_t *partitions;
  uint32_t *kind; /* by NodeId: the first node that it is equal to but for activations; 0: none */
  NodeId *next;   /* by NodeId: the next of its kind */
  uint32_t *at;   /* by NodeId: position in the graph */
  ValueId *same;  /* by ValueId of constants: the first with the same type and bytes */
  bool *used;     /* by NodeId: in a repeat */
  uint32_t *copy; /* by NodeId: 1 + which of the copies that grow it is in; 0: none */
  uint32_t *slot; /* by NodeId: which node of that copy */
  NodeId *rows;   /* rows[slot * copies + copy] */
  uint32_t copies, size;
  uint32_t *stamp, *depth; /* by NodeId: for split_rows */
  uint32_t *seen, *order;  /* by ValueId: for signature */
  uint32_t round;
  uint64_t span;   /* nodes that split_rows may still look at */
  uint64_t growth; /* nodes that copies may still grow to, in all */
  Repeat *items;
  uint32_t count;
} Finder;

/* --- what is equal --- */

static uint32_t sample(const Constant *c, uint32_t h) {
  uint8_t bytes[SAMPLE];
  uint64_t size = c->size < SAMPLE ? c->size : SAMPLE;
  const uint64_t from[] = {0, (c->size - size) / 2, c->size - size};
  for (uint32_t i = 0; i < COUNT_OF(from); i++) {
    constant_read(c, from[i], size, bytes);
    for (uint64_t k = 0; k < size; k++)
      h = hash_mix(h, bytes[k]);
  }
  return h;
}

static bool same_constant(const Graph *g, ValueId a, ValueId b) {
  return value_same_type(g, a, b) &&
         constant_same(value_lazy_constant(g, a), value_lazy_constant(g, b));
}

/* A table of constants by type and bytes. */
typedef struct ConstantTable {
  ValueId *values;
  uint32_t *hashes;
  uint32_t size; /* a power of two */
} ConstantTable;

static ValueId first_same(const Graph *g, ConstantTable *t, ValueId v) {
  const Constant *c = value_lazy_constant(g, v);
  uint32_t h = sample(c, hash_mix(value_cget(g, v)->type, c->size)), at = h & (t->size - 1);
  while (t->values[at] && (t->hashes[at] != h || !same_constant(g, t->values[at], v)))
    at = (at + 1) & (t->size - 1);
  if (!t->values[at])
    t->values[at] = v;
  t->hashes[at] = h;
  return t->values[at];
}

static void find_same_constants(Finder *f) {
  const Graph *g = f->g;
  ConstantTable t = {.size = hash_slots(g->constant_count)};
  t.values = ARENA_ARRAY(f->arena, ValueId, t.size);
  t.hashes = ARENA_ARRAY(f->arena, uint32_t, t.size);
  for (FOR_NODES(g, n)) {
    FOR_OPERANDS(g, n, v, {
      if (v && f->partitions[n] && value_is_const(g, v) && !f->same[v])
        f->same[v] = first_same(g, &t, v);
    })
  }
}

/* Weights count by what they are, activations by their type. */
static uint64_t key_of(void *finder, ValueId v) {
  const Finder *f = finder;
  if (!v)
    return 0;
  if (is_constant_or_codes(f->g, v))
    return (uint64_t)1 << 32 | (value_is_const(f->g, v) ? f->same[v] : v);
  return (uint64_t)2 << 32 | value_cget(f->g, v)->type;
}

static bool same_kind(Finder *f, NodeId a, NodeId b) {
  const Graph *g = f->g;
  if (f->partitions[a] != f->partitions[b] || !same_nodes(g, a, b, key_of, f))
    return false;
  for (uint32_t i = 0; i < node_cget(g, a)->result_count; i++)
    if (!value_same_type(g, node_result(g, a, i), node_result(g, b, i)))
      return false;
  return true;
}

static void find_kinds(Finder *f) {
  const Graph *g = f->g;
  uint32_t size = hash_slots(g->live_nodes), position = 0;
  NodeId *table = ARENA_ARRAY(f->arena, NodeId, size);
  NodeId *last = ARENA_ARRAY(f->arena, NodeId, size);
  uint32_t *hashes = ARENA_ARRAY(f->arena, uint32_t, size);
  for (FOR_NODES(g, n)) {
    f->at[n] = position++;
    if (!f->partitions[n])
      continue;
    uint32_t h = hash_mix(f->partitions[n], same_hash(g, n, key_of, f)), at = h & (size - 1);
    while (table[at] && (hashes[at] != h || !same_kind(f, table[at], n)))
      at = (at + 1) & (size - 1);
    if (table[at])
      f->next[last[at]] = n;
    else
      table[at] = n;
    last[at] = n;
    hashes[at] = h;
    f->kind[n] = table[at];
  }
}

/* Bytes of the weights of n that XNNPACK packs. */
static uint64_t weights_of(const Graph *g, NodeId n) {
  XnnWork work = xl_work(node_cget(g, n)->op);
  uint64_t bytes = 0;
  if (work != XNN_WORK_PRODUCT && work != XNN_WORK_WINDOW)
    return 0;
  FOR_OPERANDS(g, n, v, {
    NodeId codes = v ? dequantized_constant(g, v) : 0;
    const Constant *c = v ? value_lazy_constant(g, codes ? node_value(g, codes, 0) : v) : NULL;
    bytes += c ? c->size : 0;
  })
  return bytes;
}

/* --- growing --- */

static bool is_free(const Finder *f, NodeId n) { return f->kind[n] && !f->used[n] && !f->copy[n]; }

/* Operand v of a node of a copy as the place that it has in the copy; 0: from outside. */
static uint64_t inside(const Finder *f, uint32_t copy, ValueId v) {
  NodeId def = v ? value_def(f->g, v) : 0;
  return def && f->copy[def] == copy + 1
             ? (uint64_t)(f->slot[def] + 1) << 32 | (v - node_result(f->g, def, 0))
             : 0;
}

/* Whether the node of a row has its operands from the same places in a copy as in the first. */
static bool operands_match(const Finder *f, uint32_t slot, uint32_t copy) {
  const Graph *g = f->g;
  NodeId a = f->rows[slot * f->copies], b = f->rows[slot * f->copies + copy];
  for (uint32_t i = 0; i < node_cget(g, a)->arg_count; i++) {
    const Arg *x = node_arg(g, a, i), *y = node_arg(g, b, i);
    for (uint32_t k = 0; k < arg_operand_count(x); k++)
      if (inside(f, 0, g->uses[x->at + k].value) != inside(f, copy, g->uses[y->at + k].value))
        return false;
  }
  return true;
}

static uint32_t inner_uses(const Finder *f, NodeId n, uint32_t copy) {
  uint32_t uses = 0;
  for (uint32_t i = 0; i < node_cget(f->g, n)->result_count; i++)
    for (UseId u = first_use(f->g, node_result(f->g, n, i)); u; u = f->g->uses[u].next)
      uses += f->copy[f->g->uses[u].node] == copy + 1;
  return uses;
}

/* Whether the row lies in each copy as in the first: its operands, and those of its users. */
static bool row_fits(const Finder *f, uint32_t slot) {
  const Graph *g = f->g;
  NodeId lead = f->rows[slot * f->copies];
  uint32_t uses = inner_uses(f, lead, 0);
  for (uint32_t c = 1; c < f->copies; c++) {
    if (!operands_match(f, slot, c) || inner_uses(f, f->rows[slot * f->copies + c], c) != uses)
      return false;
    for (uint32_t i = 0; i < node_cget(g, lead)->result_count && uses; i++)
      for (UseId u = first_use(g, node_result(g, lead, i)); u; u = g->uses[u].next)
        if (f->copy[g->uses[u].node] == 1 && !operands_match(f, f->slot[g->uses[u].node], c))
          return false;
  }
  return true;
}

/* Adds the row behind the last one, which holds a node for each copy already. */
static bool add_row(Finder *f) {
  const NodeId *row = f->rows + (size_t)f->size * f->copies;
  uint32_t placed = 0;
  for (; placed < f->copies && is_free(f, row[placed]); placed++) {
    f->copy[row[placed]] = placed + 1;
    f->slot[row[placed]] = f->size;
  }
  if (placed == f->copies && row_fits(f, f->size)) {
    f->size++;
    return true;
  }
  while (placed)
    f->copy[row[--placed]] = 0;
  return false;
}

/* Which operand of its node a use is. */
static uint32_t position_of(const Graph *g, UseId use) {
  uint32_t before = 0;
  NodeId n = g->uses[use].node;
  for (uint32_t i = 0; i < node_cget(g, n)->arg_count; i++) {
    const Arg *arg = node_arg(g, n, i);
    uint32_t count = arg_operand_count(arg);
    if (count && use >= arg->at && use < arg->at + count)
      return before + use - arg->at;
    before += count;
  }
  return before;
}

/* The user of v that is what `like` is for its operand; 0: none. */
static NodeId user_like(const Finder *f, ValueId v, UseId like) {
  const Graph *g = f->g;
  uint32_t position = position_of(g, like);
  for (UseId u = first_use(g, v); u; u = g->uses[u].next) {
    NodeId user = g->uses[u].node;
    if (user != NODE_OUTPUT && is_free(f, user) && f->kind[user] == f->kind[g->uses[like].node] &&
        position_of(g, u) == position)
      return user;
  }
  return 0;
}

static bool few_uses(const Finder *f, uint32_t slot, uint32_t result) {
  for (uint32_t c = 0; c < f->copies; c++) {
    NodeId n = f->rows[slot * f->copies + c];
    if (value_cget(f->g, node_result(f->g, n, result))->use_count > FEW_USES)
      return false;
  }
  return true;
}

/* Adds what uses result `result` of a row in the same way in all copies. */
static void grow_to_users(Finder *f, uint32_t slot, uint32_t result) {
  const Graph *g = f->g;
  ValueId v = node_result(g, f->rows[slot * f->copies], result);
  for (UseId u = first_use(g, v); u; u = g->uses[u].next) {
    NodeId user = g->uses[u].node, *row = f->rows + (size_t)f->size * f->copies;
    if (user == NODE_OUTPUT || !is_free(f, user))
      continue;
    row[0] = user;
    bool all = true;
    for (uint32_t c = 1; c < f->copies && all; c++) {
      row[c] = user_like(f, node_result(g, f->rows[slot * f->copies + c], result), u);
      all = row[c] != 0;
    }
    if (all)
      add_row(f);
  }
}

/* Adds what computes the operands of a row, where it is equal in all copies. */
static void grow_to_operands(Finder *f, uint32_t slot) {
  const Graph *g = f->g;
  const NodeId *users = f->rows + (size_t)slot * f->copies;
  for (uint32_t i = 0; i < node_cget(g, users[0])->arg_count; i++)
    for (uint32_t k = 0; k < arg_operand_count(node_arg(g, users[0], i)); k++) {
      NodeId *row = f->rows + (size_t)f->size * f->copies;
      bool all = true;
      for (uint32_t c = 0; c < f->copies && all; c++) {
        ValueId v = g->uses[node_arg(g, users[c], i)->at + k].value;
        row[c] = v ? value_def(g, v) : 0;
        all = row[c] && is_free(f, row[c]) && f->kind[row[c]] == f->kind[row[0]] &&
              f->partitions[row[c]] == f->partitions[users[0]];
      }
      if (all)
        add_row(f);
    }
}

/* Adds what follows the rows from `ahead` on. */
static void grow_ahead(Finder *f, uint32_t ahead) {
  for (; ahead < f->size; ahead++)
    for (uint32_t i = 0; i < node_cget(f->g, f->rows[ahead * f->copies])->result_count; i++)
      if (few_uses(f, ahead, i))
        grow_to_users(f, ahead, i);
}

/* Removes the views at the end: they are for what follows, and where that is another copy it shall
 * have them itself, so that copies return one value. */
static void drop_last_views(Finder *f) {
  for (uint32_t s = f->size; s--;) {
    NodeId *row = f->rows + (size_t)s * f->copies;
    if (s == 0 || xl_work(node_cget(f->g, row[0])->op) != XNN_WORK_VIEW || inner_uses(f, row[0], 0))
      continue;
    f->size--;
    const NodeId *last = f->rows + (size_t)f->size * f->copies;
    for (uint32_t c = 0; c < f->copies; c++) {
      f->copy[row[c]] = 0;
      f->slot[last[c]] = s;
      row[c] = last[c];
    }
  }
}

/* What follows comes first: a copy shall begin where its operands come from the copy before. */
static void grow(Finder *f) {
  grow_ahead(f, 0);
  drop_last_views(f);
  for (uint32_t back = 0; back < f->size; back++) {
    uint32_t before = f->size;
    grow_to_operands(f, back);
    grow_ahead(f, before);
  }
}

/* --- what grew --- */

/* Of each node of a copy: how often the longest path to it, from a node of the copy, leaves it. */
static void find_depths(Finder *f, uint32_t copy) {
  const Graph *g = f->g;
  NodeId first = f->rows[copy], last = first;
  for (uint32_t s = 1; s < f->size; s++) {
    NodeId n = f->rows[s * f->copies + copy];
    first = f->at[n] < f->at[first] ? n : first;
    last = f->at[n] > f->at[last] ? n : last;
  }
  f->round++;
  uint64_t length = f->at[last] - f->at[first] + 1;
  bool short_enough = length <= f->span;
  f->span -= short_enough ? length : 0;
  for (NodeId n = first; n && short_enough; n = n == last ? 0 : g->nodes[n].next) {
    bool own = f->copy[n] == copy + 1;
    uint32_t depth = own;
    FOR_OPERANDS(g, n, v, {
      NodeId def = v ? value_def(g, v) : 0;
      if (def && f->stamp[def] == f->round && f->partitions[def] == f->partitions[first]) {
        uint32_t through = f->depth[def] + (own && f->copy[def] != copy + 1 && f->depth[def]);
        depth = through > depth ? through : depth;
      }
    })
    f->stamp[n] = f->round;
    f->depth[n] = depth;
  }
}

/* Numbers the rows, from 0, so that no path between two nodes of a copy and a number leaves them.
 * Returns how many numbers there are. */
static uint32_t split_rows(Finder *f, uint32_t *number) {
  uint32_t count = 1;
  for (uint32_t c = 0; c < f->copies; c++) {
    find_depths(f, c);
    if (f->stamp[f->rows[c]] != f->round)
      continue; /* too long */
    count = 0;
    Arena scratch = {0};
    KeyMap numbers = keymap_make(&scratch, f->g->ctx->names.seed);
    for (uint32_t s = 0; s < f->size; s++) {
      uint32_t key[2] = {number[s], f->depth[f->rows[s * f->copies + c]]}, *slot;
      if (!keymap_get(&numbers, key, sizeof key, &slot))
        *slot = ++count;
      number[s] = *slot - 1;
    }
    arena_release(&scratch);
  }
  return count;
}

/* The places of a copy, by position in the graph. */
static void sort_copy(Finder *f, uint32_t copy, uint64_t *sorted) {
  for (uint32_t s = 0; s < f->size; s++)
    sorted[s] = (uint64_t)f->at[f->rows[s * f->copies + copy]] << 32 | s;
  qsort(sorted, f->size, sizeof *sorted, compare_u64);
}

static bool leaves(const Finder *f, ValueId v, uint32_t copy) {
  for (UseId u = first_use(f->g, v); u; u = f->g->uses[u].next)
    if (f->g->uses[u].node == NODE_OUTPUT || f->copy[f->g->uses[u].node] != copy + 1)
      return true;
  return false;
}

/* What growing did not compare: the order of the nodes, which operands from outside are one value,
 * and which results leave the copy. */
static uint32_t signature(Finder *f, uint32_t copy, const uint64_t *sorted) {
  const Graph *g = f->g;
  uint32_t h = 0, values = 0;
  f->round++;
  for (uint32_t s = 0; s < f->size; s++)
    h = hash_mix(h, (uint32_t)sorted[s]);
  for (uint32_t s = 0; s < f->size; s++) {
    NodeId n = f->rows[s * f->copies + copy];
    FOR_OPERANDS(g, n, v, {
      if (v && !inside(f, copy, v) && !is_constant_or_codes(g, v)) {
        if (f->seen[v] != f->round) {
          f->seen[v] = f->round;
          f->order[v] = values++;
        }
        h = hash_mix(h, f->order[v]);
      }
    })
    for (uint32_t i = 0; i < node_cget(g, n)->result_count; i++)
      h = hash_mix(h, leaves(f, node_result(g, n, i), copy));
  }
  return h;
}

/* The signature that most copies have, of equally many that of the first copy. */
static uint32_t most_common(const Finder *f, const uint32_t *items) {
  uint32_t best = 0, most = 0;
  uint64_t *sorted = ARENA_ARRAY(f->arena, uint64_t, f->copies);
  for (uint32_t i = 0; i < f->copies; i++)
    sorted[i] = (uint64_t)items[i] << 32 | i;
  qsort(sorted, f->copies, sizeof *sorted, compare_u64);
  for (uint32_t begin = 0, end; begin < f->copies; begin = end) {
    for (end = begin; end < f->copies && sorted[end] >> 32 == sorted[begin] >> 32; end++)
      ;
    uint32_t first = (uint32_t)sorted[begin], equal = end - begin;
    if (equal > most || (equal == most && first < best)) {
      most = equal;
      best = first;
    }
  }
  return items[best];
}

/* Makes a repeat of the rows that there are, of those copies that are alike in everything. */
static void keep_repeat(Finder *f, uint64_t least) {
  uint64_t weights = 0;
  for (uint32_t s = 0; s < f->size; s++)
    weights += weights_of(f->g, f->rows[s * f->copies]);
  if (weights * (f->copies - 1) < least)
    return;
  uint64_t *sorted = ARENA_ARRAY(f->arena, uint64_t, f->size);
  uint32_t *signatures = ARENA_ARRAY(f->arena, uint32_t, f->copies), copies = 0;
  for (uint32_t c = 0; c < f->copies; c++) {
    sort_copy(f, c, sorted);
    signatures[c] = signature(f, c, sorted);
  }
  uint32_t common = most_common(f, signatures);
  for (uint32_t c = 0; c < f->copies; c++)
    copies += signatures[c] == common;
  if (weights * (copies - 1) < least)
    return;
  NodeId *nodes = ARENA_ARRAY(f->arena, NodeId, (size_t)copies * f->size);
  uint32_t at = 0;
  for (uint32_t c = 0; c < f->copies; c++) {
    if (signatures[c] != common)
      continue;
    sort_copy(f, c, sorted);
    for (uint32_t s = 0; s < f->size; s++) {
      NodeId n = f->rows[(uint32_t)sorted[s] * f->copies + c];
      f->used[n] = true;
      nodes[at++] = n;
    }
  }
  f->items[f->count++] = (Repeat){.partition = f->partitions[nodes[0]],
                                  .nodes = nodes,
                                  .copies = copies,
                                  .size = f->size,
                                  .saved = weights * (copies - 1)};
}

static void release_rows(Finder *f, const NodeId *rows, uint32_t size) {
  for (size_t i = 0; i < (size_t)size * f->copies; i++)
    f->copy[rows[i]] = 0;
}

/* The rows by their number. first: where those of a number begin, count + 1 of them. */
static uint32_t *rows_by_number(Finder *f, const uint32_t *number, uint32_t count,
                                uint32_t *first) {
  uint32_t *rows = ARENA_ARRAY(f->arena, uint32_t, f->size),
           *at = ARENA_ARRAY(f->arena, uint32_t, count);
  for (uint32_t s = 0; s < f->size; s++)
    first[number[s] + 1]++;
  for (uint32_t i = 0; i < count; i++)
    first[i + 1] += first[i];
  for (uint32_t s = 0; s < f->size; s++)
    rows[first[number[s]] + at[number[s]]++] = s;
  return rows;
}

/* Keeps what grew, in pieces that do not depend on themselves. */
static void keep_rows(Finder *f, uint64_t least) {
  uint32_t grown = f->size, *number = ARENA_ARRAY(f->arena, uint32_t, f->size),
           count = split_rows(f, number), *first = ARENA_ARRAY(f->arena, uint32_t, count + 1),
           *rows = rows_by_number(f, number, count, first);
  size_t row = f->copies * sizeof *f->rows;
  NodeId *all = ARENA_ARRAY(f->arena, NodeId, (size_t)grown * f->copies);
  memcpy(all, f->rows, grown * row);
  release_rows(f, all, grown);
  for (uint32_t i = 0; i < count; i++) {
    f->size = 0;
    for (uint32_t k = first[i]; k < first[i + 1]; k++) {
      uint32_t s = rows[k];
      memcpy(f->rows + (size_t)f->size * f->copies, all + (size_t)s * f->copies, row);
      for (uint32_t c = 0; c < f->copies; c++) {
        f->copy[all[s * f->copies + c]] = c + 1;
        f->slot[all[s * f->copies + c]] = f->size;
      }
      f->size++;
    }
    keep_repeat(f, least);
    release_rows(f, f->rows, f->size);
  }
}

/* Grows copies from the nodes of one kind. What grows in vain may do so from many leads: together
 * they may grow to a number of nodes that is linear in the graph. */
static void grow_from(Finder *f, NodeId lead, uint64_t least) {
  f->copies = f->size = 0;
  if (f->growth == 0)
    return;
  for (NodeId n = lead; n; n = f->next[n])
    if (is_free(f, n))
      f->rows[f->copies++] = n;
  if (f->copies < 2 || !add_row(f))
    return;
  grow(f);
  uint64_t grown = (uint64_t)f->size * f->copies;
  f->growth -= grown < f->growth ? grown : f->growth;
  keep_rows(f, least);
}

uint32_t repeat_find(const Graph *g, const uint32_t *partitions, uint64_t least, Arena *arena,
                     const Repeat **out) {
  Finder f = {.g = g, .arena = arena, .partitions = partitions};
  f.kind = ARENA_ARRAY(arena, uint32_t, g->node_count);
  f.next = ARENA_ARRAY(arena, NodeId, g->node_count);
  f.at = ARENA_ARRAY(arena, uint32_t, g->node_count);
  f.used = ARENA_ARRAY(arena, bool, g->node_count);
  f.copy = ARENA_ARRAY(arena, uint32_t, g->node_count);
  f.slot = ARENA_ARRAY(arena, uint32_t, g->node_count);
  f.stamp = ARENA_ARRAY(arena, uint32_t, g->node_count);
  f.depth = ARENA_ARRAY(arena, uint32_t, g->node_count);
  f.same = ARENA_ARRAY(arena, ValueId, g->value_count);
  f.seen = ARENA_ARRAY(arena, uint32_t, g->value_count);
  f.order = ARENA_ARRAY(arena, uint32_t, g->value_count);
  f.rows = ARENA_ARRAY(arena, NodeId, (size_t)g->live_nodes * 2 + 1);
  f.items = ARENA_ARRAY(arena, Repeat, (size_t)g->live_nodes + 1);
  f.span = f.growth = (uint64_t)SPAN_FACTOR * g->live_nodes;
  find_same_constants(&f);
  find_kinds(&f);
  for (FOR_NODES(g, n))
    if (f.kind[n] == n && f.next[n] && weights_of(g, n))
      grow_from(&f, n, least);
  *out = f.items;
  return f.count;
}

/* See order.h. Depth-first search over the nodes in the order of the file: a node is placed when
 * all that it depends on is. */
#include "onnx/file/order.h"

typedef struct Name {
  uint32_t producer; /* node + 1 */
  uint32_t hidden;   /* how many subgraphs around define it */
} Name;

/* A list of nodes and which of them each depends on. */
typedef struct Order {
  Arena arena;
  Intern names;
  Onnx__NodeProto *const *nodes;
  uint32_t count;
  Name *by_name;
  uint32_t name_capacity;
  uint32_t *begin; /* by node: its first dependency */
  uint32_t *needs, need_count, need_capacity;
} Order;

typedef enum Mark { NOT_SEEN, ON_STACK, PLACED } Mark;

/* The record of a name; NULL for none. Good until the next one is made. */
static Name *name_of(Order *o, const char *text) {
  if (!text || !*text)
    return NULL;
  uint32_t id = intern_add(&o->names, sv_from(text)), before = o->name_capacity;
  o->by_name = pool_reserve(o->by_name, &o->name_capacity, (uint64_t)id + 1, sizeof *o->by_name);
  memset(o->by_name + before, 0, (o->name_capacity - before) * sizeof *o->by_name);
  return &o->by_name[id];
}

static void add_use(Order *o, const char *text) {
  const Name *name = name_of(o, text);
  if (!name || name->hidden || !name->producer)
    return;
  POOL_PUSH(o->needs, o->need_count, o->need_capacity, name->producer - 1);
}

/* Names that a subgraph defines are its own: they hide those around it. */
static void hide(Order *o, const char *text, bool begin) {
  Name *name = name_of(o, text);
  if (name)
    name->hidden += begin ? 1 : UINT32_MAX;
}

static void hide_defined(Order *o, const Onnx__GraphProto *graph, bool begin) {
  for (size_t i = 0; i < graph->n_input; i++)
    hide(o, graph->input[i]->name, begin);
  for (size_t i = 0; i < graph->n_initializer; i++)
    hide(o, graph->initializer[i]->name, begin);
  for (size_t i = 0; i < graph->n_sparse_initializer; i++) {
    const Onnx__TensorProto *values = graph->sparse_initializer[i]->values;
    hide(o, values ? values->name : NULL, begin);
  }
  for (size_t i = 0; i < graph->n_node; i++)
    for (size_t k = 0; k < graph->node[i]->n_output; k++)
      hide(o, graph->node[i]->output[k], begin);
}

/* What the subgraphs of a node use from outside counts as its inputs. */
static void add_uses(Order *o, const Onnx__NodeProto *node) {
  for (size_t i = 0; i < node->n_input; i++)
    add_use(o, node->input[i]);
  for (size_t i = 0; i < node->n_attribute; i++) {
    const Onnx__GraphProto *graph = node->attribute[i]->g;
    if (!graph)
      continue;
    hide_defined(o, graph, true);
    for (size_t k = 0; k < graph->n_node; k++)
      add_uses(o, graph->node[k]);
    for (size_t k = 0; k < graph->n_output; k++)
      add_use(o, graph->output[k]->name);
    hide_defined(o, graph, false);
  }
}

static void order_init(Order *o, Onnx__NodeProto *const *nodes, size_t count) {
  *o = (Order){.nodes = nodes, .count = (uint32_t)count};
  intern_init(&o->names);
  o->begin = ARENA_ARRAY(&o->arena, uint32_t, count + 1);
  for (uint32_t i = 0; i < count; i++)
    for (size_t k = 0; k < nodes[i]->n_output; k++) {
      Name *name = name_of(o, nodes[i]->output[k]);
      if (name && !name->producer)
        name->producer = i + 1;
    }
  for (uint32_t i = 0; i < count; i++) {
    o->begin[i] = o->need_count;
    add_uses(o, nodes[i]);
  }
  o->begin[count] = o->need_count;
}

static void order_release(Order *o) {
  xfree(o->by_name);
  xfree(o->needs);
  intern_release(&o->names);
  arena_release(&o->arena);
}

typedef struct Search {
  uint8_t *marks;  /* by node */
  uint32_t *next;  /* by node: the first dependency that was not looked at */
  uint32_t *stack; /* nodes whose dependencies are being placed */
  uint32_t *placed, placed_count;
} Search;

static Search search_make(Order *o) {
  Search s = {.marks = ARENA_ARRAY(&o->arena, uint8_t, o->count),
              .next = ARENA_ARRAY(&o->arena, uint32_t, o->count),
              .stack = ARENA_ARRAY(&o->arena, uint32_t, o->count),
              .placed = ARENA_ARRAY(&o->arena, uint32_t, o->count)};
  memcpy(s.next, o->begin, o->count * sizeof *s.next);
  return s;
}

/* Places node `from` and all that it needs. */
static void place(const Order *o, Search *s, uint32_t from) {
  uint32_t depth = 0, *next = s->next;
  s->stack[depth++] = from;
  s->marks[from] = ON_STACK;
  while (depth) {
    uint32_t node = s->stack[depth - 1];
    while (next[node] < o->begin[node + 1] && s->marks[o->needs[next[node]]] != NOT_SEEN)
      next[node]++;
    if (next[node] < o->begin[node + 1]) {
      uint32_t needed = o->needs[next[node]];
      s->marks[needed] = ON_STACK;
      s->stack[depth++] = needed;
    } else {
      s->marks[node] = PLACED;
      s->placed[s->placed_count++] = node;
      depth--;
    }
  }
}

static bool is_sorted(const Order *o) {
  for (uint32_t i = 0; i < o->count; i++)
    for (uint32_t k = o->begin[i]; k < o->begin[i + 1]; k++)
      if (o->needs[k] >= i)
        return false;
  return true;
}

static void keep_place(KeyMap *moved, const Onnx__NodeProto *node, uint32_t place) {
  uint32_t *slot;
  (void)keymap_get(moved, &node, sizeof node, &slot);
  *slot = place + 1;
}

size_t onnx_node_place(OnnxModel *model, const Onnx__NodeProto *node, size_t sorted) {
  uint32_t *slot;
  uint32_t place = model->moved.count ? keymap_get(&model->moved, &node, sizeof node, &slot) : 0;
  return place ? place - 1 : sorted;
}

/* Whether some nodes depend on each other, which then cannot all be behind what they need. */
static bool has_circle(const Order *o, const Search *s) {
  bool circle = false;
  uint32_t *position = s->next; /* by node: it is not needed any more */
  for (uint32_t i = 0; i < o->count; i++)
    position[s->placed[i]] = i;
  for (uint32_t i = 0; i < o->count; i++)
    for (uint32_t k = o->begin[i]; k < o->begin[i + 1]; k++)
      circle |= position[o->needs[k]] >= position[i];
  return circle;
}

/* The first node that gets another place; *circle is set when some depend on each other. */
static const Onnx__NodeProto *sort_list(Onnx__NodeProto **nodes, size_t count, KeyMap *moved,
                                        bool *circle) {
  Order o;
  const Onnx__NodeProto *first = NULL;
  order_init(&o, nodes, count);
  if (!is_sorted(&o)) {
    Search s = search_make(&o);
    Onnx__NodeProto **sorted = ARENA_ARRAY(&o.arena, Onnx__NodeProto *, count);
    for (uint32_t i = 0; i < count; i++)
      if (s.marks[i] == NOT_SEEN)
        place(&o, &s, i);
    for (uint32_t i = 0; i < count; i++) {
      sorted[i] = nodes[s.placed[i]];
      if (s.placed[i] == i)
        continue;
      first = first ? first : nodes[i];
      keep_place(moved, sorted[i], s.placed[i]);
    }
    memcpy(nodes, sorted, count * sizeof *nodes);
    *circle |= has_circle(&o, &s);
  }
  order_release(&o);
  return first;
}

/* The list, and those of the subgraphs of its nodes. */
static void sort_all(OnnxModel *m, Onnx__NodeProto **nodes, size_t count, SortedNodes *s) {
  const Onnx__NodeProto *first =
      count < UINT32_MAX ? sort_list(nodes, count, &m->moved, &s->circle) : NULL;
  s->first = s->first ? s->first : first;
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < nodes[i]->n_attribute; k++) {
      Onnx__GraphProto *graph = nodes[i]->attribute[k]->g;
      if (graph)
        sort_all(m, graph->node, graph->n_node, s);
    }
}

SortedNodes onnx_sort_nodes(OnnxModel *model) {
  Onnx__ModelProto *proto = model->proto;
  SortedNodes s = {.first = NULL};
  model->moved = keymap_make(&model->arena, (uint64_t)(uintptr_t)model); /* no file knows it */
  sort_all(model, proto->graph->node, proto->graph->n_node, &s);
  for (size_t i = 0; i < proto->n_functions; i++)
    sort_all(model, proto->functions[i]->node, proto->functions[i]->n_node, &s);
  return s;
}

/* --- what names depend on --- */

const bool *onnx_nodes_behind(Onnx__NodeProto *const *nodes, size_t count, const char *const *names,
                              size_t name_count, Arena *arena) {
  Order o;
  bool *behind = ARENA_ARRAY(arena, bool, count + 1);
  order_init(&o, nodes, count);
  for (size_t i = 0; i < name_count; i++) {
    const Name *name = name_of(&o, names[i]);
    if (name && name->producer)
      behind[name->producer - 1] = true;
  }
  for (size_t i = count; i-- > 0;)
    for (uint32_t k = o.begin[i]; behind[i] && k < o.begin[i + 1]; k++)
      behind[o.needs[k]] = true;
  order_release(&o);
  return behind;
}

/* --- circles --- */

/* Marks with parents what can be reached from `at`, breadth first, until `at` is reached. */
static bool find_circle(const Order *o, uint32_t at, uint32_t *parent, uint32_t *queue) {
  uint32_t head = 0, tail = 0;
  for (queue[tail++] = at; head < tail; head++) {
    uint32_t node = queue[head];
    for (uint32_t k = o->begin[node]; k < o->begin[node + 1]; k++) {
      uint32_t needed = o->needs[k];
      if (parent[needed])
        continue;
      parent[needed] = node + 1;
      queue[tail++] = needed;
      if (needed == at)
        return true;
    }
  }
  return false;
}

static void append_node(StrBuf *text, const Onnx__NodeProto *node) {
  StrView name = onnx_text(node->name);
  if (!name.size && node->n_output)
    name = onnx_text(node->output[0]);
  strbuf_printf(text, "%s'" SV_FMT "'", text->size ? ", " : "", SV_ARG(name));
}

const char *onnx_node_circle(Onnx__NodeProto *const *nodes, size_t count, size_t at, Arena *arena) {
  enum { NAMES_MAX = 16 };
  Order o;
  StrBuf text = {0};
  const char *circle = NULL;
  order_init(&o, nodes, count);
  uint32_t *parent = ARENA_ARRAY(&o.arena, uint32_t, count);
  uint32_t *queue = ARENA_ARRAY(&o.arena, uint32_t, count + 1);
  if (find_circle(&o, (uint32_t)at, parent, queue)) {
    uint32_t node = (uint32_t)at, names = 0;
    do {
      append_node(&text, nodes[node]);
      node = parent[node] - 1;
    } while (node != at && ++names < NAMES_MAX);
    if (node == at)
      append_node(&text, nodes[at]);
    else
      strbuf_append(&text, SV(", ..."));
    circle = strbuf_keep(&text, arena).data;
  }
  order_release(&o);
  return circle;
}

/* See liveness.h.
 *
 * In place: the op table says (OpRow.alias) over which tensor operands the runtime's kernel may
 * write its result. That is done when the operand is not read later, has the dims and the element
 * size of the result (with another element size a kernel that works in parallel would overtake
 * itself), and no other operand lies in the same memory unless the same holds for it. Graph inputs
 * are no exception: the memory of an input is used for other values after its last use anyway, so
 * hosts must set inputs before every run, as with any program that plans its inputs. Nothing is
 * written over a state but by the ops that say so.
 *
 * Control flow: a marker's results lie where its operands were copied to (legalize_control.c), and
 * what a loop uses from outside it stays until the loop ends. */
#include "passes/executorch/liveness.h"

#include "ir/region.h"
#include "support/bitset.h"

typedef struct LivenessBuilder {
  Graph *g;
  Liveness *l;
  uint32_t *parent; /* by value: a value of the same memory, itself for the base; 0: no memory */
  uint32_t *first, *last; /* of bases */
  uint64_t *size;         /* of bases */
  Regions regions;
  uint32_t *position; /* by node */
  Bitset host;        /* values in memory of the host */
} LivenessBuilder;

static ValueId find(LivenessBuilder *b, ValueId v) {
  while (b->parent[v] != v) {
    b->parent[v] = b->parent[b->parent[v]];
    v = b->parent[v];
  }
  return v;
}

/* What a size is divided by, if that is not known to be above 0; else 0. */
static SymInt unsafe_divisor(const SymTable *t, SymInt size) {
  const SymExpr *e = sym_expr(t, size);
  return e->kind == SYM_FLOORDIV && sym_lower(t, e->terms[1]) < 1 ? e->terms[1] : 0;
}

/* Whether the range of some symbol in v begins at 0. */
static bool has_empty_dim(const SymTable *t, SymInt v) {
  if (sym_is_const(v))
    return false;
  const SymExpr *e = sym_expr(t, v);
  bool found = e->kind == SYM_SYMBOL && e->lo < 1;
  for (uint32_t i = 0; i < e->count && !found; i++)
    found = has_empty_dim(t, e->terms[i]);
  return found;
}

static void hint_at_divisor(Diag *d, const SymTable *t, SymInt divisor) {
  if (has_empty_dim(t, divisor))
    diag_hint(d, "what it is divided by may be 0: give --dim ranges that begin at 1");
  else if (divisor)
    diag_hint(d, "what it is divided by is not known to be above 0: give one of these dims a fixed "
                 "size by --dim");
}

static Status no_bound(const Graph *g, DiagPlace place, StrView name, uint32_t dim, SymInt size) {
  StrBuf text = {0};
  sym_print_named(&g->syms, size, &text);
  Diag *d = diag_begin(g->ctx->sink, DIAG_DIM_UNBOUND, place);
  diag_message(d,
               "dimension %u ('%s') of value '" SV_FMT "' has no upper bound, so its memory cannot "
               "be planned",
               dim, strbuf_cstr(&text), SV_ARG(name));
  strbuf_release(&text);
  hint_at_divisor(d, &g->syms, unsafe_divisor(&g->syms, size));
  return diag_end(d);
}

static Status no_size(const Graph *g, ValueId v) {
  const Type *t = value_type(g, v);
  NodeId def = value_def(g, v);
  DiagPlace place = def ? node_place(g, def) : graph_place(g, 0);
  StrView name = intern_get(&g->ctx->names, g->values[v].name);
  for (uint32_t i = 0; i < t->rank; i++) {
    if (sym_is_const(t->dims[i]) || sym_upper(&g->syms, t->dims[i]) < INT64_MAX)
      continue;
    return no_bound(g, place, name, i, t->dims[i]);
  }
  return diag_report(g->ctx->sink, DIAG_TOO_LARGE, place,
                     "value '" SV_FMT "' needs more memory than can be addressed", SV_ARG(name));
}

/* A value with memory of its own. */
static Status begin(LivenessBuilder *b, ValueId v, uint32_t position) {
  const Type *t = value_type(b->g, v);
  if (t->kind != TYPE_TENSOR || bitset_has(&b->host, v))
    return STATUS_OK;
  uint64_t size = type_bytes_upper(b->g, t);
  if (size > INT64_MAX - PLAN_ALIGNMENT)
    return no_size(b->g, v);
  b->parent[v] = v;
  b->first[v] = b->last[v] = position;
  b->size[v] = size;
  return STATUS_OK;
}

/* A value in the memory of base. What is known of its size may be less than of the base's: other
 * dims, other bounds of their product. */
static Status share(LivenessBuilder *b, ValueId v, ValueId base) {
  uint64_t size = type_bytes_upper(b->g, value_type(b->g, v));
  if (size > INT64_MAX - PLAN_ALIGNMENT)
    return no_size(b->g, v);
  b->parent[v] = base;
  b->size[base] = size > b->size[base] ? size : b->size[base];
  return STATUS_OK;
}

/* n, at that position, reads v: v stays to the end of each loop around n that begins after v. */
static void use(LivenessBuilder *b, NodeId n, ValueId v, uint32_t position) {
  const Regions *r = &b->regions;
  if (!v || !b->parent[v])
    return;
  ValueId base = find(b, v);
  for (NodeId scope = r->any && n != NODE_OUTPUT ? r->scope[n] : 0; scope; scope = r->scope[scope])
    if (node_cget(b->g, scope)->op == OP_LOOP && b->position[scope] > b->first[base])
      position = b->position[r->partner[scope]];
  if (position > b->last[base])
    b->last[base] = position;
}

/* a and b are one piece of memory from now on. */
static void join(LivenessBuilder *b, ValueId x, ValueId y) {
  if (!b->parent[x] || !b->parent[y])
    return;
  x = find(b, x);
  y = find(b, y);
  if (b->first[x] > b->first[y]) {
    ValueId later = x;
    x = y;
    y = later;
  }
  b->parent[y] = x;
  b->last[x] = b->last[x] > b->last[y] ? b->last[x] : b->last[y];
  b->size[x] = b->size[x] > b->size[y] ? b->size[x] : b->size[y];
}

/* The results of a marker lie where its operands do. */
static void join_marked(LivenessBuilder *b, NodeId n) {
  Graph *g = b->g;
  const Node *node = node_cget(g, n);
  bool loop = node->op == OP_LOOP;
  uint32_t first = loop ? 1 : 0, list = loop ? 2 : node->op == OP_NEXT ? 1 : 0;
  for (uint32_t k = 0; first + k < node->result_count; k++) {
    ValueId result = node->first_result + first + k, operand = node_list_value(g, n, list, k);
    if (node->op == OP_NEXT) {
      ValueId state = node_result(g, b->regions.partner[n], 1 + k);
      if (b->parent[operand] == operand) /* a copy, which keeps to the bound of the state */
        b->size[operand] = 0;
      join(b, operand, state);
    }
    join(b, result, operand);
    if (node->op == OP_ENDIF)
      join(b, result, node_list_value(g, n, 1, k));
  }
}

static Status define_results(LivenessBuilder *b, NodeId n, uint32_t position) {
  const Node *node = node_cget(b->g, n);
  ValueId shared = node_shared_operand(b->g, n);
  for (uint32_t i = 0; i < node->result_count; i++) {
    ValueId v = node->first_result + i;
    if (!shared)
      TRY(begin(b, v, position));
    else if (value_type(b->g, v)->kind == TYPE_TENSOR && b->parent[shared])
      TRY(share(b, v, find(b, shared)));
  }
  return STATUS_OK;
}

static Status walk(LivenessBuilder *b) {
  Graph *g = b->g;
  uint32_t position = 0;
  for (uint32_t i = 0; i < g->input_count; i++)
    TRY(begin(b, g->inputs[i], 0));
  for (uint32_t i = 0; i < g->state_count; i++)
    TRY(begin(b, g->states[i].value, 0));
  for (FOR_NODES(g, n))
    b->position[n] = ++position;
  for (FOR_NODES(g, n)) {
    FOR_OPERANDS(g, n, v, { use(b, n, v, b->position[n]); })
    TRY(define_results(b, n, b->position[n]));
    if (op_has_trait(node_cget(g, n)->op, OP_CONTROL))
      join_marked(b, n);
  }
  b->l->end = position + 1;
  for (uint32_t i = 0; i < graph_output_count(g); i++)
    use(b, NODE_OUTPUT, graph_output(g, i), b->l->end);
  return STATUS_OK;
}

static bool same_extent(const Graph *g, ValueId a, ValueId b) {
  const Type *s = value_type(g, a), *t = value_type(g, b);
  return s->order == t->order && dtype_size((DType)s->dtype) == dtype_size((DType)t->dtype) &&
         dims_same(s->dims, s->rank, t->dims, t->rank);
}

/* How many arguments before this one are tensors or lists of them. */
static uint32_t tensors_before(OpId op, uint32_t arg) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < arg; i++)
    count += op_schema(op)->args[i].type == ST_TENSOR;
  return count;
}

bool liveness_may_overwrite(const Graph *g, NodeId n, ValueId result,
                            bool lies(void *user, ValueId v), void *user) {
  uint8_t alias = op_row(node_cget(g, n)->op)->alias;
  FOR_ARG_OPERANDS(g, n, i, v, {
    if (!v || !lies(user, v))
      continue;
    uint32_t tensor = tensors_before(node_cget(g, n)->op, i);
    bool allowed = node_arg(g, n, i)->kind == ARG_VALUE && tensor < 8 && (alias >> tensor & 1);
    if (!allowed || !same_extent(g, v, result))
      return false;
  })
  return true;
}

typedef struct InMemory {
  LivenessBuilder *b;
  ValueId base;
} InMemory;

static bool lies_in_memory(void *user, ValueId v) {
  const InMemory *m = user;
  return m->b->parent[v] && find(m->b, v) == m->base;
}

/* Whether the result may be written over the memory of `base`. */
static bool may_overwrite(LivenessBuilder *b, NodeId n, ValueId base, ValueId result) {
  InMemory memory = {b, base};
  return liveness_may_overwrite(b->g, n, result, lies_in_memory, &memory);
}

/* Lets the first result of n be written over an operand that dies there. */
static bool overwrite(LivenessBuilder *b, NodeId n, uint32_t position) {
  Graph *g = b->g;
  const Node *node = node_cget(g, n);
  ValueId result = node->first_result;
  if (!op_row(node->op)->alias || !node->result_count || !b->parent[result] ||
      find(b, result) != result || b->size[result] == 0)
    return false;
  FOR_OPERANDS(g, n, v, {
    if (!v || !b->parent[v])
      continue;
    ValueId base = find(b, v);
    if (b->last[base] != position || base == result || g->values[base].kind == VALUE_STATE ||
        !may_overwrite(b, n, base, result))
      continue;
    b->parent[result] = base;
    b->last[base] = b->last[result];
    b->size[base] = b->size[result] > b->size[base] ? b->size[result] : b->size[base];
    return true;
  })
  return false;
}

/* The span of the memory that v is in, where it has none yet. */
static void number_span(LivenessBuilder *b, ValueId v) {
  Liveness *l = b->l;
  ValueId base = b->parent[v] ? find(b, v) : 0;
  if (!base || b->g->values[base].kind == VALUE_STATE || l->span_of[base])
    return;
  l->spans[l->span_count] =
      (Span){.size = b->size[base], .first = b->first[base], .last = b->last[base]};
  l->span_of[base] = ++l->span_count;
}

/* Spans are numbered as values appear in the graph: what handles they have is chance, and other in
 * a graph that was read from text. */
static void collect(LivenessBuilder *b, Arena *arena) {
  Liveness *l = b->l;
  const Graph *g = b->g;
  uint32_t count = 0;
  for (ValueId v = 1; v < g->value_count; v++)
    count += b->parent[v] == v && g->values[v].kind != VALUE_STATE;
  l->spans = ARENA_ARRAY(arena, Span, count);
  for (uint32_t i = 0; i < g->input_count; i++)
    number_span(b, g->inputs[i]);
  for (FOR_NODES(g, n))
    for (uint32_t i = 0; i < g->nodes[n].result_count; i++)
      number_span(b, node_result(g, n, i));
  for (ValueId v = 1; v < g->value_count; v++)
    number_span(b, v);
  for (uint32_t i = 0; i < g->state_count; i++)
    l->span_of[g->states[i].value] = l->span_count + 1 + i;
  for (ValueId v = 1; v < g->value_count; v++)
    if (b->parent[v])
      l->span_of[v] = l->span_of[find(b, v)];
}

static Bitset find_host(const Graph *g, Arena *arena, LivenessOptions options) {
  Bitset host = bitset_make(arena, g->value_count);
  for (uint32_t i = 0; options.host_inputs && i < g->input_count; i++)
    bitset_add(&host, g->inputs[i]);
  for (uint32_t i = 0; options.host_outputs && i < graph_output_count(g); i++)
    bitset_add(&host, graph_output(g, i));
  return host;
}

Status liveness_compute(Graph *g, Arena *arena, LivenessOptions options, Liveness *out) {
  uint32_t values = g->value_count;
  *out = (Liveness){.span_of = ARENA_ARRAY(arena, uint32_t, values)};
  LivenessBuilder b = {.g = g,
                       .l = out,
                       .parent = ARENA_ARRAY(arena, uint32_t, values),
                       .first = ARENA_ARRAY(arena, uint32_t, values),
                       .last = ARENA_ARRAY(arena, uint32_t, values),
                       .size = ARENA_ARRAY(arena, uint64_t, values),
                       .position = ARENA_ARRAY(arena, uint32_t, g->node_count),
                       .host = find_host(g, arena, options)};
  NodeId at;
  const char *wrong = regions_find(g, arena, &b.regions, &at);
  if (wrong)
    BUG("the marker %s", wrong);
  TRY(walk(&b));
  uint32_t position = 0;
  for (FOR_NODES(g, n)) {
    position++;
    if (options.in_place)
      out->in_place += overwrite(&b, n, position);
  }
  collect(&b, arena);
  return STATUS_OK;
}

uint64_t liveness_bound(const Liveness *l, uint64_t alignment, Arena *arena) {
  uint64_t *begins = ARENA_ARRAY(arena, uint64_t, (size_t)l->end + 2);
  uint64_t *ends = ARENA_ARRAY(arena, uint64_t, (size_t)l->end + 2);
  for (uint32_t i = 0; i < l->span_count; i++) {
    uint64_t size = align_up(l->spans[i].size, alignment);
    begins[l->spans[i].first] += size;
    ends[l->spans[i].last + 1] += size;
  }
  uint64_t live = 0, most = 0;
  for (uint32_t t = 0; t <= l->end; t++) {
    live = live + begins[t] - ends[t];
    most = live > most ? live : most;
  }
  return most;
}

uint64_t *liveness_in_use(const Liveness *l, Arena *scratch, uint64_t *peak) {
  uint64_t *use = ARENA_ARRAY(scratch, uint64_t, l->end + 2);
  for (uint32_t i = 0; i < l->span_count; i++) {
    use[l->spans[i].first] += align_up(l->spans[i].size, PLAN_ALIGNMENT);
    use[l->spans[i].last + 1] -= align_up(l->spans[i].size, PLAN_ALIGNMENT);
  }
  *peak = use[0];
  for (uint32_t i = 1; i <= l->end; i++) {
    use[i] += use[i - 1];
    *peak = use[i] > *peak ? use[i] : *peak;
  }
  return use;
}

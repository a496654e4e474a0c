/* The types of a graph, and dims alone: each type stands once in its pool, so that equal types have
 * one handle. */
#include "ir/graph.h"
#include "ir/text.h"
#include "support/hash.h"

static uint32_t type_hash(const Type *t) {
  uint32_t h =
      hash_mix((uint32_t)t->kind, (uint64_t)t->dtype << 16 | (uint64_t)t->order << 8 | t->rank);
  for (uint32_t i = 0; i < t->rank; i++)
    h = hash_mix(h, (uint64_t)t->dims[i]);
  return h;
}

static bool type_equal(const Type *a, const Type *b) {
  return a->kind == b->kind && a->dtype == b->dtype && a->order == b->order &&
         dims_same(a->dims, a->rank, b->dims, b->rank);
}

static void type_slots_grow(Graph *g) {
  uint32_t count = g->type_slot_count ? g->type_slot_count * 2 : 256;
  uint32_t *slots = xrealloc(NULL, count * sizeof *slots);
  memset(slots, 0, count * sizeof *slots);
  for (TypeId t = 1; t < g->type_count; t++) {
    uint32_t slot = type_hash(&g->types[t]) & (count - 1);
    while (slots[slot])
      slot = (slot + 1) & (count - 1);
    slots[slot] = t;
  }
  xfree(g->type_slots);
  g->type_slots = slots;
  g->type_slot_count = count;
}

static TypeId type_intern(Graph *g, Type wanted) {
  if (g->type_count * 2 >= g->type_slot_count)
    type_slots_grow(g);
  uint32_t mask = g->type_slot_count - 1, slot = type_hash(&wanted) & mask;
  for (; g->type_slots[slot]; slot = (slot + 1) & mask)
    if (type_equal(&g->types[g->type_slots[slot]], &wanted))
      return g->type_slots[slot];
  SymInt *dims = ARENA_ARRAY(&g->arena, SymInt, wanted.rank);
  if (wanted.rank)
    memcpy(dims, wanted.dims, wanted.rank * sizeof *dims);
  g->types =
      pool_reserve(g->types, &g->type_capacity, (uint64_t)g->type_count + 1, sizeof *g->types);
  TypeId id = g->type_count++;
  g->types[id] = wanted;
  g->types[id].dims = dims;
  g->type_slots[slot] = id;
  return id;
}

TypeId graph_tensor_type(Graph *g, DType dtype, uint32_t rank, const SymInt *dims, DimOrder order) {
  if (rank > MAX_RANK)
    BUG("tensor of rank %u", rank);
  return type_intern(g, (Type){.kind = TYPE_TENSOR,
                               .dtype = (uint8_t)dtype,
                               .order = (uint8_t)order,
                               .rank = (uint8_t)rank,
                               .dims = dims});
}

TypeId graph_scalar_type(Graph *g, TypeKind kind, SymInt value, bool known) {
  return type_intern(
      g, (Type){.kind = (uint8_t)kind, .dtype = DTYPE_NONE, .rank = known ? 1 : 0, .dims = &value});
}

uint64_t type_bytes_upper(const Graph *g, const Type *t) {
  if (t->kind != TYPE_TENSOR)
    return 0;
  uint64_t bytes = dtype_size((DType)t->dtype);
  bool overflow = false;
  for (uint32_t i = 0; i < t->rank; i++) {
    int64_t dim = sym_upper(&g->syms, t->dims[i]);
    if (dim <= 0)
      return 0;
    if (dim == INT64_MAX || !mul_u64(bytes, (uint64_t)dim, &bytes))
      overflow = true;
  }
  return overflow || bytes > INT64_MAX ? UINT64_MAX : bytes;
}

Dims dims_make(const SymInt *d, uint32_t rank) {
  Dims dims = {.rank = rank};
  if (rank)
    memcpy(dims.d, d, rank * sizeof *d);
  return dims;
}

bool dims_same(const SymInt *a, uint32_t a_rank, const SymInt *b, uint32_t b_rank) {
  return a_rank == b_rank && (a_rank == 0 || memcmp(a, b, a_rank * sizeof *a) == 0);
}

int64_t dims_count(const SymInt *dims, uint32_t first, uint32_t end) {
  uint64_t n = 1; /* unsigned: an empty tensor may have other dims of any size */
  for (uint32_t i = first; i < end; i++)
    n *= (uint64_t)dims[i];
  return (int64_t)n;
}

Dims value_dims(const Graph *g, ValueId v) {
  return dims_make(value_type(g, v)->dims, value_rank(g, v));
}

bool type_is_static(const Type *t) {
  for (uint32_t i = 0; i < t->rank; i++)
    if (!sym_is_const(t->dims[i]))
      return false;
  return true;
}

void shape_describe(const char *dtype, const int64_t *dims, uint32_t rank, StrBuf *out) {
  strbuf_printf(out, "%s[", dtype);
  for (uint32_t i = 0; i < rank; i++)
    strbuf_printf(out, "%s%lld", i ? ", " : "", (long long)dims[i]);
  strbuf_append_char(out, ']');
}

void type_describe(const Graph *g, const Type *t, StrBuf *out) {
  if (t->kind != TYPE_TENSOR) {
    type_print(g, t, out);
    return;
  }
  strbuf_append(out, sv_from(dtype_name((DType)t->dtype)));
  strbuf_append_char(out, '[');
  for (uint32_t i = 0; i < t->rank; i++) {
    StrBuf dim = {0};
    sym_print_named(&g->syms, t->dims[i], &dim);
    strbuf_append(out, i ? SV(", ") : SV(""));
    strbuf_append_printable(out, (StrView){strbuf_cstr(&dim), dim.size});
    if (!sym_is_const(t->dims[i]))
      strbuf_printf(out, "=%lld..%lld", (long long)sym_lower(&g->syms, t->dims[i]),
                    (long long)sym_upper(&g->syms, t->dims[i]));
    strbuf_release(&dim);
  }
  strbuf_append_char(out, ']');
}

/* Small planned graphs, built by hand. Each tests one thing about program files; the same ones are
 * written for the real runtime (programs.c) and read back (tests/unit/test_pte_file.c). */
#ifndef ETC_TESTS_PTE_MAKER_H
#define ETC_TESTS_PTE_MAKER_H

#include "ir/builder.h"

typedef struct Maker {
  Context *ctx;
  Graph *g;         /* the method being built */
  uint64_t used;    /* bytes of its arena 1 */
  Graph *graphs[2]; /* finished methods; the user frees them */
  uint32_t count;
} Maker;

static inline void begin(Maker *m, const char *method) {
  m->g = graph_new(m->ctx, sv_from(method));
  m->g->level = LEVEL_EXECUTORCH;
  m->used = 0;
}

/* Gives a value its own place in arena 1. */
static inline ValueId plan(Maker *m, ValueId v) {
  Graph *g = m->g;
  uint64_t size = align_up(type_bytes_upper(g, value_type(g, v)), 16);
  g->storages =
      pool_reserve(g->storages, &g->storage_capacity, g->storage_count + 1, sizeof *g->storages);
  g->storages[g->storage_count] = (Storage){.arena = 1, .offset = m->used, .size = size};
  m->used += size;
  g->values[v].storage = g->storage_count++;
  return v;
}

static inline TypeId type_of(Maker *m, DType dtype, uint32_t rank, const SymInt *dims) {
  return graph_tensor_type(m->g, dtype, rank, dims, ORDER_CONTIGUOUS);
}

static inline ValueId input(Maker *m, TypeId type) {
  return plan(m, graph_add_input(m->g, type, 0));
}

/* A node with one result of a given type, not planned yet. */
static inline ValueId node(Maker *m, OpId op, TypeId type, const ArgIn *args, uint32_t count) {
  NodeId n = graph_add_node(m->g, 0, op, args, count, 1, 0);
  ValueId v = node_result(m->g, n, 0);
  value_set_type(m->g, v, type);
  return v;
}
#define NODE(m, op, type, ...)                                                                     \
  node((m), (op), (type), (const ArgIn[]){__VA_ARGS__}, COUNT_OF(((const ArgIn[]){__VA_ARGS__})))

static inline ValueId constant(Maker *m, DType dtype, uint32_t rank, const SymInt *dims,
                               const void *data) {
  TypeId type = type_of(m, dtype, rank, dims);
  return graph_add_constant_copy(m->g, type, data, type_bytes_upper(m->g, type_get(m->g, type)));
}

static inline void finish(Maker *m, const ValueId *outputs, uint32_t count) {
  NameId names[8] = {0};
  graph_set_outputs(m->g, outputs, count, names);
  m->g->arena_sizes = ARENA_ARRAY(&m->g->arena, uint64_t, 2);
  m->g->arena_sizes[1] = m->used;
  m->g->arena_size_count = 2;
  m->graphs[m->count++] = m->g;
}

static const SymInt two_three[] = {2, 3}, three[] = {3}, six[] = {6}, empty[] = {0, 3};

/* x + y * 2: no constant, hence no header and no segment. */
static inline void sample_add(Maker *m) {
  begin(m, "forward");
  TypeId t = type_of(m, DTYPE_F32, 2, two_three);
  ValueId x = input(m, t), y = input(m, t);
  ValueId z = plan(m, NODE(m, OP_ADD_TENSOR, t, A_VAL(x), A_VAL(y), A_INT(2)));
  finish(m, &z, 1);
}

/* relu(x + c) + d * gelu(c as [2,3]): constants shared by content, an elided view of a constant,
 * in-place relu, a string. */
static inline void sample_constants(Maker *m) {
  static const float c[] = {1, -2, 3, -4, 5, -6}, d[] = {10, 20, 30};
  begin(m, "forward");
  TypeId t = type_of(m, DTYPE_F32, 2, two_three);
  ValueId x = input(m, t), flat = constant(m, DTYPE_F32, 1, six, c),
          same = constant(m, DTYPE_F32, 2, two_three, c);
  ValueId scale = constant(m, DTYPE_F32, 1, three, d),
          nothing = constant(m, DTYPE_F32, 2, empty, NULL);
  ValueId view = NODE(m, OP_VIEW_COPY, t, A_VAL(flat), A_INTS(two_three, 2));
  ValueId sum = plan(m, NODE(m, OP_ADD_TENSOR, t, A_VAL(x), A_VAL(same), A_INT(1)));
  ValueId relu = NODE(m, OP_RELU, t, A_VAL(sum));
  m->g->values[relu].storage = m->g->values[sum].storage;
  ValueId gelu = plan(m, NODE(m, OP_GELU, t, A_VAL(view), A_STR("tanh")));
  ValueId product = plan(m, NODE(m, OP_MUL_TENSOR, t, A_VAL(gelu), A_VAL(scale)));
  ValueId all[] = {relu, nothing};
  ValueId cat = plan(m, NODE(m, OP_CAT, t, A_VALS(all, 2), A_INT(0)));
  ValueId out = plan(m, NODE(m, OP_ADD_TENSOR, t, A_VAL(cat), A_VAL(product), A_INT(1)));
  finish(m, &out, 1);
}

/* Only a constant of size zero: its segment must not be empty. */
static inline void sample_empty_constant(Maker *m) {
  begin(m, "forward");
  TypeId t = type_of(m, DTYPE_F32, 2, two_three);
  ValueId x = input(m, t), nothing = constant(m, DTYPE_F32, 2, empty, NULL);
  ValueId all[] = {nothing, x};
  ValueId out = plan(m, NODE(m, OP_CAT, t, A_VALS(all, 2), A_INT(0)));
  finish(m, &out, 1);
}

/* A reshape without instruction, several results, a list of results, null elements in a list, ints
 * and bools as arguments. */
static inline void sample_shapes(Maker *m) {
  static const SymInt one_two[] = {2, 1}, two[] = {2};
  begin(m, "forward");
  TypeId t = type_of(m, DTYPE_F32, 2, two_three), column = type_of(m, DTYPE_F32, 2, one_two);
  ValueId x = input(m, type_of(m, DTYPE_F32, 1, six)),
          picks = input(m, type_of(m, DTYPE_I64, 1, two));
  ValueId view = NODE(m, OP_VIEW_COPY, t, A_VAL(x), A_INTS(two_three, 2));
  m->g->values[view].storage = m->g->values[x].storage;
  NodeId split = graph_add_node(m->g, 0, OP_SPLIT_COPY_TENSOR,
                                (const ArgIn[]){A_VAL(view), A_INT(1), A_INT(1)}, 3, 3, 0);
  for (uint32_t i = 0; i < 3; i++) {
    value_set_type(m->g, node_result(m->g, split, i), column);
    plan(m, node_result(m->g, split, i));
  }
  NodeId max = graph_add_node(m->g, 0, OP_MAX_DIM,
                              (const ArgIn[]){A_VAL(view), A_INT(1), A_BOOL(true)}, 3, 2, 0);
  value_set_type(m->g, node_result(m->g, max, 0), column);
  value_set_type(m->g, node_result(m->g, max, 1), type_of(m, DTYPE_I64, 2, one_two));
  plan(m, node_result(m->g, max, 0));
  plan(m, node_result(m->g, max, 1));
  ValueId indices[] = {0, picks};
  ValueId index = plan(m, NODE(m, OP_INDEX_TENSOR, type_of(m, DTYPE_F32, 2, (const SymInt[]){2, 2}),
                               A_VAL(view), A_VALS(indices, 2)));
  ValueId outputs[] = {node_result(m->g, split, 2), node_result(m->g, max, 0),
                       node_result(m->g, max, 1), index};
  finish(m, outputs, 4);
}

/* [n, 4] reshaped to [2 n, 2] while running, n <= 8. */
static inline void sample_dynamic(Maker *m) {
  begin(m, "forward");
  Graph *g = m->g;
  SymInt n = sym_symbol(&g->syms, SV("n"), 1, 8, false), n2 = sym_mul(&g->syms, n, 2);
  SymInt in_dims[] = {n, 4}, out_dims[] = {n2, 2};
  TypeId in = type_of(m, DTYPE_F32, 2, in_dims), out = type_of(m, DTYPE_F32, 2, out_dims);
  ValueId x = input(m, in);
  ValueId exp = plan(m, NODE(m, OP_EXP, in, A_VAL(x)));
  ValueId size =
      NODE(m, OP_SYM_SIZE_INT, graph_scalar_type(g, TYPE_INT, n, true), A_VAL(x), A_INT(0));
  NODE(m, OP_PRIM_MUL, graph_scalar_type(g, TYPE_INT, n2, true), A_VAL(size), A_INT(2));
  ValueId view = NODE(m, OP_ET_VIEW, out, A_VAL(exp), A_INTS(out_dims, 2));
  ValueId neg = plan(m, NODE(m, OP_NEG, out, A_VAL(view)));
  finish(m, &neg, 1);
}

/* Two methods that share a constant; the arena sizes differ. */
static inline void sample_methods(Maker *m) {
  static const float c[] = {1, 2, 3};
  for (uint32_t k = 0; k < 2; k++) {
    begin(m, k ? "twice" : "forward");
    TypeId t = type_of(m, DTYPE_F32, 1, three);
    ValueId x = input(m, t), shift = constant(m, DTYPE_F32, 1, three, c);
    ValueId y = plan(m, NODE(m, OP_ADD_TENSOR, t, A_VAL(x), A_VAL(shift), A_INT(1)));
    if (k)
      y = plan(m, NODE(m, OP_MUL_SCALAR, t, A_VAL(y), A_FLOAT(2)));
    finish(m, &y, 1);
  }
}

/* Factories and casts, whose out-variants have no dtype. */
static inline void sample_factories(Maker *m) {
  begin(m, "forward");
  TypeId f = type_of(m, DTYPE_F32, 1, three), i = type_of(m, DTYPE_I64, 1, three);
  ValueId x = input(m, f);
  ValueId range = plan(m, NODE(m, OP_ARANGE, i, A_INT(3), A_DTYPE(DTYPE_I64)));
  ValueId cast =
      plan(m, NODE(m, OP_TO_COPY, f, A_VAL(range), A_DTYPE(DTYPE_F32), A_BOOL(false), A_NONE));
  ValueId full = plan(m, NODE(m, OP_FULL, f, A_INTS(three, 1), A_FLOAT(0.5), A_DTYPE(DTYPE_F32)));
  ValueId sum = plan(m, NODE(m, OP_ADD_TENSOR, f, A_VAL(cast), A_VAL(full), A_INT(1)));
  ValueId out = plan(m, NODE(m, OP_MUL_TENSOR, f, A_VAL(x), A_VAL(sum)));
  finish(m, &out, 1);
}

/* Three times: y + x when c holds, -y otherwise; what markers hand on lies in one place. */
static inline NodeId marker(Maker *m, OpId op, const ArgIn *args, uint32_t arg_count,
                            uint32_t results) {
  return graph_add_node(m->g, 0, op, args, arg_count, results, 0);
}

static inline ValueId at_place(Maker *m, ValueId v, TypeId type, ValueId of) {
  value_set_type(m->g, v, type);
  m->g->values[v].storage = m->g->values[of].storage;
  return v;
}

static inline void sample_control(Maker *m) {
  begin(m, "forward");
  Graph *g = m->g;
  TypeId t = type_of(m, DTYPE_F32, 1, three);
  ValueId x = input(m, t), c = input(m, type_of(m, DTYPE_BOOL, 0, NULL));
  ValueId first = plan(m, NODE(m, OP_CLONE, t, A_VAL(x), A_NONE));
  NodeId loop = marker(m, OP_LOOP, (const ArgIn[]){A_INT(3), A_NONE, A_VALS(&first, 1)}, 3, 2);
  SymInt i = sym_symbol(&g->syms, SV(""), 0, 2, true);
  value_set_type(g, node_result(g, loop, 0), graph_scalar_type(g, TYPE_INT, i, true));
  ValueId y = at_place(m, node_result(g, loop, 1), t, first);
  marker(m, OP_IF, (const ArgIn[]){A_VAL(c)}, 1, 0);
  ValueId sum = plan(m, NODE(m, OP_ADD_TENSOR, t, A_VAL(y), A_VAL(x), A_INT(1)));
  marker(m, OP_ELSE, NULL, 0, 0);
  ValueId negative = at_place(m, NODE(m, OP_NEG, t, A_VAL(y)), t, sum);
  NodeId joined = marker(m, OP_ENDIF, (const ArgIn[]){A_VALS(&sum, 1), A_VALS(&negative, 1)}, 2, 1);
  ValueId result = at_place(m, node_result(g, joined, 0), t, sum);
  ValueId next = at_place(m, NODE(m, OP_CLONE, t, A_VAL(result), A_NONE), t, first);
  NodeId end = marker(m, OP_NEXT, (const ArgIn[]){A_NONE, A_VALS(&next, 1)}, 2, 1);
  ValueId last = at_place(m, node_result(g, end, 0), t, first);
  finish(m, &last, 1);
}

/* A state in arena 2, at the given offset. */
static inline ValueId make_state(Maker *m, TypeId type, ConstId initial, uint64_t offset) {
  Graph *g = m->g;
  ValueId v = plan(m, graph_add_state(g, type, initial, 0));
  g->storages[g->values[v].storage].arena = 2;
  g->storages[g->values[v].storage].offset = offset;
  return v;
}

/* A result in the memory of a state. */
static inline ValueId in_state(Maker *m, ValueId v, ValueId state) {
  m->g->values[v].storage = m->g->values[state].storage;
  return v;
}

/* A state of zeros, one with first contents, and one that grows by three elements a call. */
static inline void sample_states(Maker *m) {
  static const float first[] = {1, 2, 3};
  begin(m, "forward");
  Graph *g = m->g;
  SymInt s = sym_symbol(&g->syms, SV("past"), 0, 6, false), more = sym_add(&g->syms, s, 3),
         nine = 9;
  TypeId t = type_of(m, DTYPE_F32, 1, three), one = type_of(m, DTYPE_I64, 0, NULL);
  TypeId past = type_of(m, DTYPE_F32, 1, &s), grown = type_of(m, DTYPE_F32, 1, &more);
  ValueId x = input(m, t), length = make_state(m, one, 0, 0), zeros = make_state(m, t, 0, 16);
  ConstId data =
      graph_add_data(g, (Constant){.data = (const uint8_t *)first, .size = sizeof first});
  ValueId given = make_state(m, t, data, 32);
  ValueId memory = make_state(m, type_of(m, DTYPE_F32, 1, &nine), 0, 48);
  ValueId n =
      NODE(m, OP_LOCAL_SCALAR_DENSE, graph_scalar_type(g, TYPE_INT, s, true), A_VAL(length));
  NODE(m, OP_PRIM_ADD, graph_scalar_type(g, TYPE_INT, more, true), A_VAL(n), A_INT(3));
  ValueId old = in_state(m, NODE(m, OP_RESIZE_, past, A_VAL(memory), A_INTS(&s, 1)), memory);
  ValueId sum = plan(m, NODE(m, OP_ADD_TENSOR, t, A_VAL(x), A_VAL(zeros), A_INT(1)));
  ValueId product = plan(m, NODE(m, OP_MUL_TENSOR, t, A_VAL(sum), A_VAL(given)));
  ValueId all = plan(m, NODE(m, OP_CAT, grown, A_VALS(((ValueId[]){old, x}), 2), A_INT(0)));
  ValueId count = plan(m, NODE(m, OP_FULL, one, A_INTS(NULL, 0), A_INT(more), A_DTYPE(DTYPE_I64)));
  ValueId new = in_state(m, NODE(m, OP_RESIZE_, grown, A_VAL(old), A_INTS(&more, 1)), memory);
  in_state(m, NODE(m, OP_COPY_, grown, A_VAL(new), A_VAL(all), A_BOOL(false)), memory);
  in_state(m, NODE(m, OP_COPY_, t, A_VAL(zeros), A_VAL(sum), A_BOOL(false)), zeros);
  in_state(m, NODE(m, OP_COPY_, t, A_VAL(given), A_VAL(product), A_BOOL(false)), given);
  in_state(m, NODE(m, OP_COPY_, one, A_VAL(length), A_VAL(count), A_BOOL(false)), length);
  finish(m, (ValueId[]){product, all}, 2);
  uint64_t *sizes = ARENA_ARRAY(&g->arena, uint64_t, 3);
  sizes[1] = g->arena_sizes[1];
  sizes[2] = 96;
  g->arena_sizes = sizes;
  g->arena_size_count = 3;
}

typedef struct Sample {
  const char *name;
  void (*make)(Maker *m);
} Sample;
static const Sample samples[] = {{"add", sample_add},
                                 {"constants", sample_constants},
                                 {"empty_constant", sample_empty_constant},
                                 {"shapes", sample_shapes},
                                 {"dynamic", sample_dynamic},
                                 {"methods", sample_methods},
                                 {"factories", sample_factories},
                                 {"control", sample_control},
                                 {"states", sample_states}};

#endif

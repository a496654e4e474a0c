/* See plan_constant.h. The layout is that of exir's constant methods (ExecuTorch 1.4.1): one value
 * an output, a chain without instructions, no arenas. */
#include "pte/plan_constant.h"

#include "pte/schema.h"

static FbRef write_tensor(FlatBuilder *b, ConstantPool *pool, const ConstantItem *item) {
  int32_t sizes[MAX_RANK];
  uint8_t order[MAX_RANK];
  for (uint32_t i = 0; i < item->rank && i < MAX_RANK; i++) {
    sizes[i] = (int32_t)item->dims[i];
    order[i] = (uint8_t)i;
  }
  uint32_t data = constant_pool_add(pool, item->bytes);
  FbRef size_vector = fb_vector_i32(b, sizes, item->rank);
  FbRef order_vector = fb_vector_bytes(b, order, item->rank, 1);
  fb_table_begin(b);
  fb_field_u8(b, TENSOR_SCALAR_TYPE, (uint8_t)item->dtype, 0);
  fb_field_ref(b, TENSOR_SIZES, size_vector);
  fb_field_ref(b, TENSOR_DIM_ORDER, order_vector);
  fb_field_u32(b, TENSOR_DATA_BUFFER_IDX, data, 0);
  return fb_table_end(b);
}

static FbRef write_item(FlatBuilder *b, ConstantPool *pool, const ConstantItem *item) {
  static const PteKind kinds[] = {[CONSTANT_INT] = PTE_INT,
                                  [CONSTANT_FLOAT] = PTE_DOUBLE,
                                  [CONSTANT_BOOL] = PTE_BOOL,
                                  [CONSTANT_TEXT] = PTE_STRING,
                                  [CONSTANT_TENSOR] = PTE_TENSOR};
  FbRef text = item->kind == CONSTANT_TEXT ? fb_string(b, item->text) : 0, member;
  if (item->kind == CONSTANT_TENSOR) {
    member = write_tensor(b, pool, item);
  } else {
    fb_table_begin(b);
    if (item->kind == CONSTANT_INT)
      fb_field_u64(b, SCALAR_VALUE, (uint64_t)item->i, 0);
    else if (item->kind == CONSTANT_FLOAT)
      fb_field_f64(b, SCALAR_VALUE, item->f, 0.0);
    else if (item->kind == CONSTANT_BOOL)
      fb_field_u8(b, SCALAR_VALUE, item->i != 0, 0);
    else
      fb_field_ref(b, SCALAR_VALUE, text);
    member = fb_table_end(b);
  }
  fb_table_begin(b);
  fb_field_union(b, EVALUE_TYPE, (uint8_t)kinds[item->kind], member);
  return fb_table_end(b);
}

static FbRef write_chain(FlatBuilder *b, FbRef no_indices, FbRef no_tables) {
  fb_table_begin(b);
  fb_field_ref(b, CHAIN_INPUTS, no_indices);
  fb_field_ref(b, CHAIN_OUTPUTS, no_indices);
  fb_field_ref(b, CHAIN_INSTRUCTIONS, no_tables);
  return fb_table_end(b);
}

FbRef plan_constant(FlatBuilder *b, ConstantPool *pool, const ConstantMethod *m, Arena *scratch) {
  static const int64_t no_arena[1] = {0}; /* entry 0 is a placeholder */
  FbRef *items = ARENA_ARRAY(scratch, FbRef, m->count);
  int32_t *indices = ARENA_ARRAY(scratch, int32_t, m->count);
  for (uint32_t i = 0; i < m->count; i++) {
    items[i] = write_item(b, pool, &m->items[i]);
    indices[i] = (int32_t)i;
  }
  FbRef no_indices = fb_vector_i32(b, NULL, 0), no_tables = fb_vector_refs(b, NULL, 0);
  FbRef chain = write_chain(b, no_indices, no_tables);
  FbRef chains = fb_vector_refs(b, &chain, 1), values = fb_vector_refs(b, items, m->count);
  FbRef outputs = fb_vector_i32(b, indices, m->count), arenas = fb_vector_i64(b, no_arena, 1);
  FbRef name = fb_string(b, m->name);
  fb_table_begin(b);
  fb_field_ref(b, PLAN_NAME, name);
  fb_field_ref(b, PLAN_VALUES, values);
  fb_field_ref(b, PLAN_INPUTS, no_indices);
  fb_field_ref(b, PLAN_OUTPUTS, outputs);
  fb_field_ref(b, PLAN_CHAINS, chains);
  fb_field_ref(b, PLAN_OPERATORS, no_tables);
  fb_field_ref(b, PLAN_DELEGATES, no_tables);
  fb_field_ref(b, PLAN_NON_CONST_BUFFER_SIZES, arenas);
  return fb_table_end(b);
}

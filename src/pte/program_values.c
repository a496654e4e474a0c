/* See program.h. The values of a method. */
#include "pte/program_internal.h"
#include "support/number.h"

static void value_error(Decoder *d, uint32_t index, DiagCode code, const char *what) {
  decode_error(d, code, "value %u %s", index, what);
}

/* Sizes and dim order; false after an error. */
static bool decode_shape(Decoder *d, FbTable t, PteTensor *out, uint32_t index) {
  FbVector sizes = fb_vector(t, TENSOR_SIZES, 4), order = fb_vector(t, TENSOR_DIM_ORDER, 1);
  if (d->reader.fault)
    return false;
  if (!sizes.present || !order.present || sizes.count > MAX_RANK || order.count != sizes.count) {
    value_error(
        d, index, DIAG_PTE_FIELD,
        "has no sizes or dim_order, or they differ in length, or it has more than 16 dimensions");
    return false;
  }
  out->rank = (uint8_t)sizes.count;
  out->bytes = pte_dtype_size(out->dtype);
  uint32_t seen = 0;
  bool overflow = false, zero = false;
  for (uint32_t i = 0; i < sizes.count; i++) {
    out->sizes[i] = fb_item_i32(sizes, i);
    out->dim_order[i] = fb_item_u8(order, i);
    if (out->sizes[i] < 0 || out->dim_order[i] >= sizes.count || (seen >> out->dim_order[i] & 1)) {
      value_error(d, index, DIAG_PTE_FIELD,
                  "has a negative size, or a dim_order that is not a permutation");
      return false;
    }
    seen |= 1u << out->dim_order[i];
    zero |= out->sizes[i] == 0;
    overflow |= !mul_u64(out->bytes, (uint64_t)out->sizes[i], &out->bytes);
  }
  if (zero)
    out->bytes = 0;
  if (!zero && (overflow || out->bytes > INT64_MAX)) {
    value_error(d, index, DIAG_PTE_FIELD, "has more bytes than 63 bits can count");
    return false;
  }
  return true;
}

/* A constant must lie in the constant segment, a planned tensor in its arena and its first contents
 * in their segment. */
static void check_place(Decoder *d, const PteMethod *m, const PteTensor *t, uint32_t index) {
  const PteProgram *p = d->p;
  uint64_t end;
  if (t->memory_id && (t->memory_id >= m->arena_count || !add_u64(t->offset, t->bytes, &end) ||
                       end > m->arena_sizes[t->memory_id]))
    decode_error(d, DIAG_PTE_PLAN,
                 "value %u (%llu bytes at %llu of arena %u) does not lie in an arena of the method",
                 index, (unsigned long long)t->bytes, (unsigned long long)t->offset, t->memory_id);
  if (!t->data || t->external)
    return;
  bool constant = pte_is_constant(t);
  const PteContents *contents = constant ? &p->constants : &p->initial;
  if (t->data >= contents->count || contents->segment >= p->segment_count ||
      !add_u64(contents->offsets[t->data], t->bytes, &end) ||
      end > p->segments[contents->segment].size)
    decode_error(d, DIAG_PTE_RANGE,
                 "value %u has the data %u, which does not lie in the %s segment", index, t->data,
                 constant ? "constant" : "mutable data");
}

static void decode_allocation(Decoder *d, FbTable t, PteTensor *out, uint32_t index) {
  if (!fb_present(t))
    return;
  out->memory_id = fb_u32(t, ALLOCATION_MEMORY_ID, 0);
  out->offset =
      (uint64_t)fb_u32(t, ALLOCATION_OFFSET_HIGH, 0) << 32 | fb_u32(t, ALLOCATION_OFFSET_LOW, 0);
  if (!out->memory_id && !d->reader.fault)
    value_error(d, index, DIAG_PTE_PLAN, "is planned into arena 0, which does not exist");
}

static void decode_tensor(Decoder *d, FbTable t, const PteMethod *m, PteValue *value,
                          uint32_t index) {
  PteTensor *out = ARENA_NEW(&d->p->arena, PteTensor);
  value->tensor = out;
  out->dtype = fb_u8(t, TENSOR_SCALAR_TYPE, 0);
  out->dynamism = fb_u8(t, TENSOR_SHAPE_DYNAMISM, PTE_STATIC);
  if (!pte_dtype_size(out->dtype)) {
    decode_error(d, DIAG_PTE_FIELD, "value %u has the scalar type %u, which does not exist", index,
                 out->dtype);
    return;
  }
  if (out->dynamism > PTE_DYNAMIC_BOUND) {
    value_error(d, index, DIAG_PTE_UNSUPPORTED,
                "has a shape without upper bound, which the runtime refuses");
    return;
  }
  if (fb_i32(t, TENSOR_STORAGE_OFFSET, 0) != 0) {
    value_error(d, index, DIAG_PTE_UNSUPPORTED, "has a storage offset, which the runtime refuses");
    return;
  }
  if (!decode_shape(d, t, out, index))
    return;
  out->data = fb_u32(t, TENSOR_DATA_BUFFER_IDX, 0);
  decode_allocation(d, fb_table(t, TENSOR_ALLOCATION_INFO), out, index);
  FbTable extra = fb_table(t, TENSOR_EXTRA_INFO);
  out->external = fb_u8(extra, EXTRA_LOCATION, 0) != 0;
  out->name = fb_text(extra, EXTRA_NAME);
  skim_tensor(t, extra);
  if (!decode_charge(d, out->name.size))
    out->name = (StrView){NULL, 0};
  if (!d->reader.fault)
    check_place(d, m, out, index);
}

/* --- lists --- */

static void decode_index_list(Decoder *d, FbTable t, const PteMethod *m, PteValue *value) {
  bool wide = value->kind == PTE_INT_LIST;
  FbVector v = fb_vector(t, SCALAR_VALUE, wide ? 8 : 4);
  if (!wide) {
    value->indices = decode_indices(d, v, value->kind == PTE_OPTIONAL_TENSOR_LIST ? -1 : 0,
                                    m->value_count, "a tensor list");
    value->count = value->indices ? v.count : 0;
    return;
  }
  if (!decode_charge(d, v.count))
    return;
  int32_t *items = ARENA_ARRAY(&d->p->arena, int32_t, v.count);
  for (uint32_t i = 0; i < v.count; i++) {
    uint64_t item = fb_item_u64(v, i);
    if (item >= m->value_count) {
      decode_error(d, DIAG_PTE_RANGE, "an int list names value %lld, and there are %u",
                   (long long)item, m->value_count);
      return;
    }
    items[i] = (int32_t)item;
  }
  value->indices = items;
  value->count = v.count;
}

static void decode_plain_list(Decoder *d, FbTable t, PteValue *value) {
  bool floats = value->kind == PTE_DOUBLE_LIST;
  FbVector v = fb_vector(t, SCALAR_VALUE, floats ? 8 : 1);
  if (!decode_charge(d, v.count))
    return;
  double *f = ARENA_ARRAY(&d->p->arena, double, floats ? v.count : 0);
  uint8_t *b = ARENA_ARRAY(&d->p->arena, uint8_t, floats ? 0 : v.count);
  for (uint32_t i = 0; i < v.count; i++) {
    if (floats)
      f[i] = double_of_bits(fb_item_u64(v, i));
    else
      b[i] = fb_item_u8(v, i) != 0;
  }
  value->count = v.count;
  if (floats)
    value->floats = f;
  else
    value->bools = b;
}

/* The contents of a value whose kind is known. */
static void decode_contents(Decoder *d, FbTable t, const PteMethod *m, PteValue *value,
                            uint32_t index) {
  switch (value->kind) {
  case PTE_INT:
    value->i = (int64_t)fb_u64(t, SCALAR_VALUE, 0);
    break;
  case PTE_BOOL:
    value->i = fb_u8(t, SCALAR_VALUE, 0) != 0;
    break;
  case PTE_DOUBLE:
    value->f = fb_f64(t, SCALAR_VALUE, 0);
    break;
  case PTE_STRING:
    value->text = fb_text(t, SCALAR_VALUE);
    break;
  case PTE_TENSOR:
    decode_tensor(d, t, m, value, index);
    break;
  case PTE_DOUBLE_LIST:
  case PTE_BOOL_LIST:
    decode_plain_list(d, t, value);
    break;
  case PTE_INT_LIST:
  case PTE_TENSOR_LIST:
  case PTE_OPTIONAL_TENSOR_LIST:
    decode_index_list(d, t, m, value);
    break;
  case PTE_NONE:
  case PTE_NULL:
  case PTE_KIND_COUNT:
    break;
  }
}

static void decode_value(Decoder *d, FbTable evalue, const PteMethod *m, PteValue *value,
                         uint32_t index) {
  uint8_t kind = fb_u8(evalue, EVALUE_TYPE, PTE_NONE);
  FbTable t = fb_table(evalue, EVALUE_VALUE);
  value->kind = PTE_NULL;
  if (d->reader.fault)
    return;
  if (kind == PTE_NONE || kind >= PTE_KIND_COUNT || !fb_present(t)) {
    decode_error(d, DIAG_PTE_FIELD, "value %u has the kind %u%s", index, kind,
                 fb_present(t) ? "" : " and no contents");
    return;
  }
  value->kind = (PteKind)kind;
  decode_contents(d, t, m, value, index);
}

/* Members of lists: Ints for int lists; tensors that stand before a tensor list, as the runtime's
 * loader reads them then. */
static void check_lists(Decoder *d, const PteMethod *m) {
  for (uint32_t i = 0; i < m->value_count; i++) {
    const PteValue *v = &m->values[i];
    bool optional = v->kind == PTE_OPTIONAL_TENSOR_LIST,
         tensors = optional || v->kind == PTE_TENSOR_LIST;
    if (!tensors && v->kind != PTE_INT_LIST)
      continue;
    for (uint32_t k = 0; k < v->count; k++) {
      int32_t item = v->indices[k];
      PteKind kind = item < 0 ? PTE_NULL : m->values[item].kind;
      bool good = tensors ? kind == PTE_TENSOR || (optional && kind == PTE_NULL) : kind == PTE_INT;
      if (!good || (tensors && item >= 0 && (uint32_t)item >= i)) {
        decode_error(
            d, DIAG_PTE_FIELD,
            "value %u is a list whose item %u is value %d, of the wrong kind or behind the list", i,
            k, item);
        break;
      }
    }
  }
}

void decode_values(Decoder *d, FbVector values, PteMethod *m) {
  m->value_count = values.count;
  m->values = ARENA_ARRAY(&d->p->arena, PteValue, values.count);
  for (uint32_t i = 0; i < values.count && !d->reader.fault; i++)
    decode_value(d, fb_item_table(values, i), m, &m->values[i], i);
  if (!d->reader.fault)
    check_lists(d, m);
}

/* See options.h. */
#include "pipeline/options.h"

#define ADD(o, list, count, capacity, item)                                                        \
  ((o)->list =                                                                                     \
       pool_reserve((o)->list, &(o)->capacity, (uint64_t)(o)->count + 1, sizeof *(o)->list),       \
   (o)->list[(o)->count++] = (item))

void options_release(MethodOptions *o) {
  xfree(o->dims);
  xfree(o->bounds);
  xfree(o->states);
  xfree(o->values);
  xfree(o->passes.items);
  xfree(o->said);
}

/* Whether two texts NAME<between>REST name the same thing. */
static bool same_name(StrView a, StrView b, char between) {
  const char *end = memchr(a.data, between, a.size);
  size_t size = end ? (size_t)(end - a.data) + 1 : a.size;
  return b.size >= size && memcmp(a.data, b.data, size) == 0;
}

/* Whether one of the first `count` names the same thing as `other`, which then has its use. */
static bool has_text(const TextOption *list, uint32_t count, const TextOption *other,
                     char between) {
  for (uint32_t i = 0; i < count; i++)
    if (same_name(list[i].text, other->text, between))
      return *other->used = true;
  return false;
}

const DimFlag *options_dim(const MethodOptions *o, StrView name) {
  for (uint32_t i = 0; i < o->dim_count; i++)
    if (sv_eq(o->dims[i].flag.name, name))
      return &o->dims[i].flag;
  return NULL;
}

static bool has_dim(const MethodOptions *o, const DimOption *other) {
  return options_dim(o, other->flag.name) && (*other->used = true);
}

static bool has_bound(const MethodOptions *o, const BoundOption *other) {
  for (uint32_t i = 0; i < o->bound_count; i++)
    if (sv_eq(o->bounds[i].flag.name, other->flag.name))
      return *other->used = true;
  return false;
}

void options_add_dim(MethodOptions *o, DimFlag flag, bool *used) {
  ADD(o, dims, dim_count, dim_capacity, ((DimOption){flag, used}));
}

DimFlag *options_dim_flags(Arena *arena, const MethodOptions *o) {
  DimFlag *flags = ARENA_ARRAY(arena, DimFlag, (size_t)o->dim_count + 1);
  for (uint32_t i = 0; i < o->dim_count; i++)
    flags[i] = o->dims[i].flag;
  return flags;
}

const char *options_dim_text(Arena *arena, const DimFlag *flag) {
  if (flag->same.size)
    return arena_printf(arena, SV_FMT "=" SV_FMT, SV_ARG(flag->name), SV_ARG(flag->same));
  return flag->lo == flag->hi && flag->lo
             ? arena_printf(arena, SV_FMT "=%lld", SV_ARG(flag->name), (long long)flag->lo)
             : arena_printf(arena, SV_FMT "=%lld..%lld", SV_ARG(flag->name), (long long)flag->lo,
                            (long long)flag->hi);
}

StrView options_dim_root(Arena *arena, const MethodOptions *o, StrView name) {
  return onnx_dim_root(options_dim_flags(arena, o), o->dim_count, name);
}

static void merge_lists(MethodOptions *o, const MethodOptions *below) {
  uint32_t states = o->state_count, values = o->value_count;
  for (uint32_t i = 0; i < below->dim_count; i++)
    if (!has_dim(o, &below->dims[i]))
      ADD(o, dims, dim_count, dim_capacity, below->dims[i]);
  for (uint32_t i = 0; i < below->bound_count; i++)
    if (!has_bound(o, &below->bounds[i]))
      ADD(o, bounds, bound_count, bound_capacity, below->bounds[i]);
  for (uint32_t i = 0; i < below->state_count; i++)
    if (!has_text(o->states, states, &below->states[i], ':'))
      ADD(o, states, state_count, state_capacity, below->states[i]);
  for (uint32_t i = 0; i < below->value_count; i++)
    if (!has_text(o->values, values, &below->values[i], '='))
      ADD(o, values, value_count, value_capacity, below->values[i]);
  for (uint32_t i = 0; i < below->passes.count; i++)
    ADD(&o->passes, items, count, capacity, below->passes.items[i]);
}

static void merge_quantize(MethodOptions *o, const MethodOptions *below, uint32_t take) {
  const QuantOptions *q = &below->quantize;
  if (take & GIVEN_SCHEME) {
    o->quantize.scheme = q->scheme;
    o->quantize.block = q->block;
  }
  if (take & GIVEN_DATA)
    o->quantize.data = q->data;
  if (take & GIVEN_RANGES)
    o->quantize.ranges = q->ranges;
  if (take & GIVEN_RANGE_METHOD)
    o->quantize.range = q->range;
  if (take & GIVEN_QUANTIZE_CONFIG) {
    o->quantize.floats = q->floats;
    o->quantize.weight_only = q->weight_only;
  }
  if (take & GIVEN_COMPARE)
    o->compare = below->compare;
  if (take & GIVEN_MAX_DROP)
    o->max_drop = below->max_drop;
}

const char *options_samples(const MethodOptions *o) {
  return o->compare ? o->compare : o->quantize.data;
}

void options_merge(MethodOptions *o, const MethodOptions *below) {
  uint32_t take = below->given & ~o->given;
  if (take & GIVEN_KERNELS)
    o->pass.quantized_kernels = below->pass.quantized_kernels;
  if (take & GIVEN_FOLD_LIMIT)
    o->pass.fold_limit = below->pass.fold_limit;
  if (take & GIVEN_PLAN) {
    o->pass.planner = below->pass.planner;
    o->pass.plan_alignment = below->pass.plan_alignment;
    o->pass.host_inputs = below->pass.host_inputs;
    o->pass.host_outputs = below->pass.host_outputs;
  }
  if (take & GIVEN_BUNDLE)
    o->bundle = below->bundle;
  if (take & GIVEN_MEMORY) {
    o->pass.banks = below->pass.banks;
    o->pass.bank_count = below->pass.bank_count;
  }
  if (take & GIVEN_MAX_ARENA)
    o->pass.max_arena = below->pass.max_arena;
  if (take & GIVEN_BACKENDS) {
    o->pass.backends = below->pass.backends;
    o->pass.backend_count = below->pass.backend_count;
  }
  if (take & GIVEN_DERIVE)
    o->derive = below->derive;
  merge_quantize(o, below, take);
  merge_lists(o, below);
  for (uint32_t i = 0; i < below->said_count; i++)
    if (!below->said[i].bit || (below->said[i].bit & take))
      ADD(o, said, said_count, said_capacity, below->said[i]);
  o->given |= below->given;
}

/* See options.h. */
#include "pipeline/options.h"

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
  POOL_PUSH(o->dims, o->dim_count, o->dim_capacity, (DimOption){flag, used});
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
      POOL_PUSH(o->dims, o->dim_count, o->dim_capacity, below->dims[i]);
  for (uint32_t i = 0; i < below->bound_count; i++)
    if (!has_bound(o, &below->bounds[i]))
      POOL_PUSH(o->bounds, o->bound_count, o->bound_capacity, below->bounds[i]);
  for (uint32_t i = 0; i < below->state_count; i++)
    if (!has_text(o->states, states, &below->states[i], ':'))
      POOL_PUSH(o->states, o->state_count, o->state_capacity, below->states[i]);
  for (uint32_t i = 0; i < below->value_count; i++)
    if (!has_text(o->values, values, &below->values[i], '='))
      POOL_PUSH(o->values, o->value_count, o->value_capacity, below->values[i]);
  for (uint32_t i = 0; i < below->passes.count; i++)
    POOL_PUSH(o->passes.items, o->passes.count, o->passes.capacity, below->passes.items[i]);
}

/* The fields of each bit. */
#define FIELD(bit, field)                                                                          \
  { GIVEN_##bit, offsetof(MethodOptions, field), sizeof(((MethodOptions *)0)->field) }
static const struct {
  uint32_t bit;
  size_t at, size;
} fields[] = {
    FIELD(KERNELS, pass.quantized_kernels),
    FIELD(FOLD_LIMIT, pass.fold_limit),
    FIELD(PLAN, pass.planner),
    FIELD(PLAN, pass.plan_alignment),
    FIELD(PLAN, pass.host_inputs),
    FIELD(PLAN, pass.host_outputs),
    FIELD(BUNDLE, bundle),
    FIELD(MEMORY, pass.banks),
    FIELD(MEMORY, pass.bank_count),
    FIELD(MAX_ARENA, pass.max_arena),
    FIELD(BACKENDS, pass.backends),
    FIELD(BACKENDS, pass.backend_count),
    FIELD(DERIVE, derive),
    FIELD(SCHEME, quantize.scheme),
    FIELD(SCHEME, quantize.block),
    FIELD(DATA, quantize.data),
    FIELD(DATA, quantize.made_up),
    FIELD(RANGES, quantize.ranges),
    FIELD(RANGE_METHOD, quantize.range),
    FIELD(QUANTIZE_CONFIG, quantize.floats),
    FIELD(QUANTIZE_CONFIG, quantize.weight_only),
    FIELD(COMPARE, compare),
    FIELD(MAX_DROP, max_drop),
};
#undef FIELD

const char *options_samples(const MethodOptions *o) {
  return o->compare ? o->compare : o->quantize.data;
}

void options_merge(MethodOptions *o, const MethodOptions *below) {
  uint32_t take = below->given & ~o->given;
  for (size_t i = 0; i < COUNT_OF(fields); i++)
    if (take & fields[i].bit)
      memcpy((char *)o + fields[i].at, (const char *)below + fields[i].at, fields[i].size);
  merge_lists(o, below);
  for (uint32_t i = 0; i < below->said_count; i++)
    if (!below->said[i].bit || (below->said[i].bit & take))
      POOL_PUSH(o->said, o->said_count, o->said_capacity, below->said[i]);
  o->given |= below->given;
}

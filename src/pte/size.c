/* See size.h. */
#include "pte/size.h"

#include <stdlib.h>

#include "ops/delegate.h"
#include "pte/inspect_internal.h"
#include "support/bitset.h"
#include "support/keymap.h"
#include "support/text.h"

typedef struct Sizer {
  const PteProgram *p;
  const PteNames *names;
  Arena *arena;
  PtePart *parts; /* may overlap until they are cut */
  uint32_t count;
  uint32_t first, end; /* the methods whose parts are wanted */
} Sizer;

static bool is_wanted(const Sizer *s, uint32_t method) {
  return method >= s->first && method < s->end;
}

const char *pte_part_name(PtePartKind kind) {
  static const char *const names[] = {
      [PTE_PART_PROGRAM] = "program",    [PTE_PART_CONSTANT] = "constants",
      [PTE_PART_STATE] = "states",       [PTE_PART_CODE] = "delegate code",
      [PTE_PART_DATA] = "delegate data", [PTE_PART_UNUSED] = "unused segments",
      [PTE_PART_PADDING] = "padding"};
  return names[kind];
}

static void add_part(Sizer *s, PtePart part) {
  if (part.bytes == 0)
    return;
  ARENA_PUSH(s->arena, s->parts, s->count, part);
}

/* --- names --- */

static StrView instruction_name(const Sizer *s, uint32_t method, uint32_t index) {
  const PteMethod *m = &s->p->methods[method];
  const PteInstruction *in = &m->instructions[index];
  StrView name = s->names ? s->names->instruction(s->names->user, method, index) : SV("");
  if (name.size)
    return name;
  StrView call = in->kind == PTE_KERNEL_CALL     ? m->operators[in->index]
                 : in->kind == PTE_DELEGATE_CALL ? m->delegates[in->index].id
                                                 : SV("control flow");
  return sv_from(
      arena_printf(s->arena, SV_FMT " (instruction %u)", SV_ARG(inspect_clip(call)), index));
}

/* Of a position of PteSpan. */
static StrView position_name(const Sizer *s, uint32_t method, uint32_t position) {
  if (position < 2)
    return SV("inputs");
  uint32_t index = position - 2;
  return index < s->p->methods[method].instruction_count ? instruction_name(s, method, index)
                                                         : SV("outputs");
}

static StrView type_text(Arena *arena, const PteValue *v) {
  StrBuf text = {0};
  inspect_append_value(&text, v, NULL);
  return strbuf_keep(&text, arena);
}

/* --- flash --- */

static uint64_t offset_of(const PteProgram *p, const uint8_t *data) {
  return (uint64_t)(data - p->file.data);
}

static void add_tensors(Sizer *s, uint32_t method) {
  const PteMethod *m = &s->p->methods[method];
  const uint32_t *first = method_first_uses(m, s->arena);
  for (uint32_t i = 0; i < m->value_count; i++) {
    const PteTensor *t = m->values[i].kind == PTE_TENSOR ? m->values[i].tensor : NULL;
    if (!t || t->data == 0 || t->external)
      continue;
    bool constant = pte_is_constant(t);
    add_part(s, (PtePart){.kind = constant ? PTE_PART_CONSTANT : PTE_PART_STATE,
                          .method = method,
                          .offset = offset_of(s->p, pte_tensor_data(s->p, t)),
                          .bytes = t->bytes,
                          .what = t->name.size ? t->name : type_text(s->arena, &m->values[i]),
                          .layer = constant ? position_name(s, method, first[i])
                                            : SV("first contents")});
  }
}

/* What the data of a key are: those of a constant of a delegate. */
typedef struct DataUser {
  uint32_t method, delegate, place;
} DataUser;

typedef struct DataUsers {
  KeyMap keys; /* item + 1 */
  DataUser *items;
  uint32_t count;
} DataUsers;

static void add_users(Sizer *s, DataUsers *users, uint32_t method, uint32_t delegate,
                      const DelegateNeeds *needs) {
  for (uint32_t i = 0; i < needs->key_count; i++) {
    uint32_t *slot;
    StrView key = needs->keys[i];
    if (users->count == s->p->named_data_count ||
        keymap_get(&users->keys, key.data, (uint32_t)key.size, &slot))
      continue;
    users->items[users->count++] = (DataUser){method, delegate, i + 1};
    *slot = users->count;
  }
}

/* number: of the delegate. budget: bytes of code that may still be looked at. */
static void add_code(Sizer *s, DataUsers *users, uint32_t method, const PteDelegate *d,
                     uint32_t number, uint64_t *budget) {
  const DelegateReader *reader = delegate_reader(s->p->readers, d->id);
  DelegateNeeds needs = {0};
  if (is_wanted(s, method))
    add_part(s, (PtePart){.kind = PTE_PART_CODE,
                          .method = method,
                          .offset = offset_of(s->p, d->data),
                          .bytes = d->size,
                          .what = d->id,
                          .layer = sv_from(arena_printf(s->arena, "delegate %u", number))});
  if (!reader || d->size > *budget)
    return;
  *budget -= d->size;
  if (!reader_needs(reader, d->data, d->size, s->arena, &needs))
    add_users(s, users, method, number, &needs);
}

/* Delegates are counted from 1, over all methods, as `etc inspect` does. Of data that several use,
 * the first user is kept: one of a wanted method, if there is any. */
static void add_codes(Sizer *s, DataUsers *users, bool wanted, uint64_t *budget) {
  uint32_t number = 0;
  for (uint32_t i = 0; i < s->p->method_count; i++) {
    const PteMethod *m = &s->p->methods[i];
    for (uint32_t k = 0; k < m->delegate_count; k++) {
      number++;
      if (is_wanted(s, i) == wanted)
        add_code(s, users, i, &m->delegates[k], number, budget);
    }
  }
}

static void add_named_data(Sizer *s, DataUsers *users) {
  const PteProgram *p = s->p;
  for (uint32_t i = 0; i < p->named_data_count; i++) {
    uint32_t *slot;
    StrView key = p->named_data[i];
    const PteSegment *segment = &p->segments[p->named_segments[i]];
    uint32_t user = keymap_get(&users->keys, key.data, (uint32_t)key.size, &slot);
    if (user && !is_wanted(s, users->items[user - 1].method))
      continue;
    PtePart part = {.kind = PTE_PART_DATA,
                    .offset = segment->offset,
                    .bytes = segment->size,
                    .what = key,
                    .layer = s->names ? s->names->data(s->names->user, key) : SV("")};
    if (user)
      part.method = users->items[user - 1].method;
    if (user && !part.layer.size)
      part.layer =
          sv_from(arena_printf(s->arena, "delegate %u, constant %u",
                               users->items[user - 1].delegate, users->items[user - 1].place));
    add_part(s, part);
  }
}

/* Those that are also named above belong to what names them: see compare_places. */
static void add_segments(Sizer *s) {
  const PteProgram *p = s->p;
  Bitset named = bitset_make(s->arena, p->segment_count + 1);
  bitset_add(&named, p->constants.segment);
  bitset_add(&named, p->initial.segment);
  for (uint32_t i = 0; i < p->named_data_count; i++)
    bitset_add(&named, p->named_segments[i]);
  for (uint32_t i = 0; i < p->segment_count; i++)
    if (!bitset_has(&named, i))
      add_part(s, (PtePart){.kind = PTE_PART_UNUSED,
                            .offset = p->segments[i].offset,
                            .bytes = p->segments[i].size,
                            .layer = sv_from(arena_printf(s->arena, "segment %u", i))});
}

/* At one place the larger first, then in the order of kinds. */
static int compare_places(const void *a, const void *b) {
  const PtePart *x = a, *y = b;
  int order = ORDER(x->offset, y->offset);
  order = order ? order : ORDER(y->bytes, x->bytes);
  order = order ? order : ORDER(x->kind, y->kind);
  order = order ? order : ORDER(x->method, y->method);
  order = order ? order : text_compare(x->layer, y->layer);
  return order ? order : text_compare(x->what, y->what);
}

/* What lies between parts: tables of the program, or padding. */
static void add_gap(PtePart *tables, PtePart *padding, uint64_t program, uint64_t from,
                    uint64_t to) {
  uint64_t within = from < program ? (to < program ? to : program) - from : 0;
  tables->bytes += within;
  padding->bytes += to - from - within;
}

/* Makes each byte of the file belong to one part. */
static void cut_parts(Sizer *s) {
  PtePart tables = {.kind = PTE_PART_PROGRAM}, padding = {.kind = PTE_PART_PADDING};
  uint64_t at = 0, program = s->p->program_size;
  uint32_t kept = 0;
  if (s->count)
    qsort(s->parts, s->count, sizeof *s->parts, compare_places);
  for (uint32_t i = 0; i < s->count; i++) {
    PtePart part = s->parts[i];
    uint64_t end = part.offset + part.bytes;
    if (end <= at)
      continue;
    if (part.offset > at)
      add_gap(&tables, &padding, program, at, part.offset);
    else
      part.offset = at;
    part.bytes = end - part.offset;
    s->parts[kept++] = part;
    at = end;
  }
  add_gap(&tables, &padding, program, at, s->p->file.size);
  s->count = kept;
  add_part(s, tables);
  add_part(s, padding);
}

static int compare_owners(const PtePart *x, const PtePart *y) {
  int order = ORDER(x->kind, y->kind);
  order = order ? order : ORDER(x->method, y->method);
  return order ? order : text_compare(x->layer, y->layer);
}

static int compare_parts(const void *a, const void *b) {
  const PtePart *x = a, *y = b;
  int order = compare_owners(x, y);
  return order ? order : ORDER(x->offset, y->offset);
}

static int compare_layers(const void *a, const void *b) {
  const PteLayer *x = a, *y = b;
  int order = ORDER(y->bytes, x->bytes);
  return order ? order : ORDER(x->parts, y->parts);
}

static void group_parts(Sizer *s, PteSize *size) {
  qsort(s->parts, s->count, sizeof *s->parts, compare_parts);
  size->parts = s->parts;
  size->part_count = s->count;
  size->layers = ARENA_ARRAY(s->arena, PteLayer, s->count);
  for (uint32_t i = 0; i < s->count; i++) {
    const PtePart *part = &s->parts[i];
    size->totals[part->kind] += part->bytes;
    if (!i || compare_owners(part - 1, part) != 0)
      size->layers[size->layer_count++] = (PteLayer){.parts = part};
    PteLayer *layer = &size->layers[size->layer_count - 1];
    layer->count++;
    layer->bytes += part->bytes;
  }
  qsort(size->layers, size->layer_count, sizeof *size->layers, compare_layers);
}

/* Of each name once. */
static uint64_t external_bytes(const Sizer *s) {
  KeyMap names = keymap_make(s->arena, (uint64_t)(uintptr_t)s->p);
  uint64_t bytes = 0;
  for (uint32_t i = s->first; i < s->end; i++)
    for (uint32_t k = 0; k < s->p->methods[i].value_count; k++) {
      const PteValue *v = &s->p->methods[i].values[k];
      uint32_t *slot;
      if (v->kind != PTE_TENSOR || !v->tensor->external ||
          keymap_get(&names, v->tensor->name.data, (uint32_t)v->tensor->name.size, &slot))
        continue;
      *slot = 1;
      if (!add_u64(bytes, v->tensor->bytes, &bytes))
        return UINT64_MAX;
    }
  return bytes;
}

/* --- SRAM --- */

static int compare_live(const void *a, const void *b) {
  const PteLive *x = a, *y = b;
  int order = ORDER(y->bytes, x->bytes);
  order = order ? order : ORDER(x->offset, y->offset);
  return order ? order : text_compare(x->name, y->name);
}

/* spans: those of the arena, in order of place. An input that is only read through a view has ended
 * where the view begins. */
static StrView span_name(const Sizer *s, uint32_t method, const PteSpan *spans, uint32_t i) {
  const PteMethod *m = &s->p->methods[method];
  const PteSpan *span = &spans[i], *before = i ? span - 1 : NULL;
  bool view = before && before->begin == 1 && before->end + 1 == span->begin &&
              before->offset == span->offset && before->size == span->size;
  StrView name = m->values[span->value].tensor->name;
  if (!name.size && view)
    name = m->values[before->value].tensor->name;
  return name.size ? name : position_name(s, method, span->begin);
}

/* spans: those of the arena. */
static PteArena size_arena(const Sizer *s, uint32_t method, uint32_t id, const PteSpan *spans,
                           uint32_t count) {
  const PteMethod *m = &s->p->methods[method];
  PtePeak peak = spans_peak(spans, count, s->arena);
  PteArena out = {.id = id,
                  .bytes = m->arena_sizes[id],
                  .bank = id <= m->bank_count ? &m->banks[id - 1] : NULL,
                  .peak = peak.bytes,
                  .at = position_name(s, method, peak.at),
                  .live = ARENA_ARRAY(s->arena, PteLive, (size_t)count + 1)};
  for (uint32_t i = 0; i < count; i++)
    if (spans[i].begin <= peak.at && spans[i].end >= peak.at)
      out.live[out.live_count++] =
          (PteLive){span_name(s, method, spans, i), align_up(spans[i].size, PTE_TENSOR_ALIGNMENT),
                    spans[i].offset};
  qsort(out.live, out.live_count, sizeof *out.live, compare_live);
  return out;
}

/* budget: bytes of delegates' code that may still be looked at. */
static PteMethodSize size_method(const Sizer *s, uint32_t method, uint64_t *budget) {
  const PteMethod *m = &s->p->methods[method];
  DelegateTotals totals = delegate_totals(s->p, m, *budget);
  *budget -= totals.code < *budget ? totals.code : *budget;
  PteMethodSize out = {.name = m->name,
                       .arenas = ARENA_ARRAY(s->arena, PteArena, (size_t)m->arena_count + 1),
                       .packed = totals.packed,
                       .workspace = totals.workspace,
                       .unknown = totals.unknown};
  PteSpans all = method_spans(m, s->arena);
  spans_merge(&all, s->arena);
  uint32_t first = 0;
  for (uint32_t id = 1; id < m->arena_count; id++) {
    uint32_t end = first;
    while (end < all.count && all.spans[end].arena == id)
      end++;
    out.arenas[out.arena_count++] = size_arena(s, method, id, all.spans + first, end - first);
    first = end;
  }
  return out;
}

static PteSize size_flash(Sizer *s) {
  PteSize size = {0};
  bool all = s->first == 0 && s->end == s->p->method_count;
  uint64_t budget = pte_code_budget(s->p);
  DataUsers users = {.keys = keymap_make(s->arena, (uint64_t)(uintptr_t)s->p),
                     .items = ARENA_ARRAY(s->arena, DataUser, (size_t)s->p->named_data_count + 1)};
  for (uint32_t i = s->first; i < s->end; i++)
    add_tensors(s, i);
  add_codes(s, &users, true, &budget);
  add_codes(s, &users, false, &budget);
  add_named_data(s, &users);
  if (all)
    add_segments(s);
  cut_parts(s);
  group_parts(s, &size);
  size.external = external_bytes(s);
  return size;
}

PteSize pte_size(const PteProgram *p, const PteNames *names, Arena *arena) {
  Sizer s = {.p = p, .names = names, .arena = arena, .end = p->method_count};
  PteSize size = size_flash(&s);
  size.methods = ARENA_ARRAY(arena, PteMethodSize, p->method_count);
  size.method_count = p->method_count;
  uint64_t budget = pte_code_budget(p);
  for (uint32_t i = 0; i < p->method_count; i++)
    size.methods[i] = size_method(&s, i, &budget);
  return size;
}

PteSize pte_size_flash(const PteProgram *p, const PteNames *names, uint32_t method, Arena *arena) {
  Sizer s = {.p = p, .names = names, .arena = arena, .first = method, .end = method + 1};
  return size_flash(&s);
}

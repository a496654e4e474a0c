/* The reader of delegates of XNNPACK (ops/delegate.h): which data they need, whether they are
 * right, what is in them; run.c runs them. */
#include <stdlib.h>

#include "backends/backend.h"
#include "backends/xnnpack/check.h"
#include "backends/xnnpack/memory.h"
#include "backends/xnnpack/run.h"
#include "support/keymap.h"

static bool is_new(KeyMap *seen, StrView key) {
  uint32_t *slot;
  if (keymap_get(seen, key.data, (uint32_t)key.size, &slot))
    return false;
  *slot = 1;
  return true;
}

static const char *needs(const uint8_t *blob, uint64_t size, Arena *arena, DelegateNeeds *out) {
  XrGraph x;
  const char *fault = xr_read(blob, size, arena, &x);
  if (fault)
    return fault;
  KeyMap seen = keymap_make(arena, (uint64_t)(uintptr_t)arena); /* no file can know it */
  *out = (DelegateNeeds){.keys = ARENA_ARRAY(arena, StrView, (size_t)x.constant_count + 1)};
  for (uint32_t i = 1; i < x.constant_count; i++)
    if (x.constants[i].key.data && is_new(&seen, x.constants[i].key))
      out->keys[out->key_count++] = x.constants[i].key;
  for (uint32_t id = 0; id < x.value_count; id++)
    out->input_count += x.values[id].external != XR_NONE && x.values[id].flags == XR_INPUT;
  return NULL;
}

static const char *check(const DelegateCall *call, Arena *arena) {
  XrGraph x;
  XrCheck c;
  const char *fault = xr_read(call->blob, call->blob_size, arena, &x);
  fault = fault ? fault : xr_check(&c, &x, call, arena);
  if (fault)
    return fault;
  for (uint32_t id = 0; id < x.value_count; id++) {
    const XrValue *v = &x.values[id];
    if (v->flags != XR_OUTPUT)
      continue;
    Tensor *t = &call->outputs[v->external - call->input_count];
    for (uint32_t i = 0; i < t->rank; i++) {
      int64_t dim = c.shapes[id].dims[i];
      if (t->dims[i] == XR_UNKNOWN)
        t->dims[i] = dim;
      else if (dim >= 0 && dim != t->dims[i])
        xr_fail(&c, "dim %u of argument %u is %lld, and what is computed for it %lld", i,
                v->external, (long long)t->dims[i], (long long)dim);
    }
  }
  return c.fault;
}

/* --- what is in it --- */

static int most_first(const void *a, const void *b) {
  const DelegateCount *x = a, *y = b;
  if (x->count != y->count)
    return x->count < y->count ? 1 : -1;
  int order = strcmp(x->what, y->what);
  return order ? order : strcmp(x->types, y->types);
}

/* Its kind, and the datatypes of its first operand, its filter and its result, as one number. */
static uint32_t node_key(const XrGraph *x, const XrNode *n) {
  uint32_t in = n->input_count ? xr_type_of(x, n->inputs[0]) : 0,
           filter = xr_has(n->kind, XR_WEIGHTED) ? xr_type_of(x, n->inputs[1]) : 0,
           out = xr_type_of(x, n->output);
  return (uint32_t)n->kind << 24 | (in & 0xFF) << 16 | (filter & 0xFF) << 8 | (out & 0xFF);
}

/* "qint8", "fp32 -> qint8", "fp32, filter qcint8". A filter of integers for integers is not named:
 * it has a scale for each channel, or one, as the file has it. */
static const char *datatypes_text(uint32_t key, Arena *arena) {
  uint32_t in = key >> 16 & 0xFF, filter = key >> 8 & 0xFF, out = key & 0xFF;
  bool expected = !filter || filter == in || (in == XR_QINT8 && filter == XR_QCINT8);
  const char *with = expected ? "" : arena_printf(arena, ", filter %s", xr_datatype(filter)->name);
  return in == out ? arena_printf(arena, "%s%s", xr_datatype(in)->name, with)
                   : arena_printf(arena, "%s%s -> %s", xr_datatype(in)->name, with,
                                  xr_datatype(out)->name);
}

static int by_key(const void *a, const void *b) {
  const uint32_t *x = a, *y = b;
  return ORDER(*x, *y);
}

static void count_nodes(const XrGraph *x, Arena *arena, DelegateFigures *out) {
  uint32_t *keys = ARENA_ARRAY(arena, uint32_t, (size_t)x->node_count + 1), last = 0;
  DelegateCount *counts = ARENA_ARRAY(arena, DelegateCount, (size_t)x->node_count + 1);
  for (uint32_t i = 0; i < x->node_count; i++)
    keys[i] = node_key(x, &x->nodes[i]);
  qsort(keys, x->node_count, sizeof *keys, by_key);
  for (uint32_t i = 0; i < x->node_count; i++) {
    if (!i || keys[i] != last)
      counts[out->kind_count++] =
          (DelegateCount){.what = xr_name(keys[i] >> 24), .types = datatypes_text(keys[i], arena)};
    last = keys[i];
    counts[out->kind_count - 1].count++;
  }
  qsort(counts, out->kind_count, sizeof *counts, most_first);
  out->nodes = counts;
}

/* On codes of 8 bits; conversions compute nothing, and booleans are codes that nobody quantized. */
static bool computes_on_bytes(const XrGraph *x, const XrNode *n) {
  const XrValue *in = n->input_count ? &x->values[n->inputs[0]] : NULL;
  if (!in || n->kind == XR_Convert)
    return false;
  bool is_bool = in->datatype == XR_QUINT8 && in->scale == 1 && in->zero_point == 0;
  return in->datatype == XR_QDINT8 || (xr_is_byte(in->datatype) && !is_bool);
}

/* What the transposes are for, as far as the region of the blob says it: see blob.c. A region of
 * another kind is not handled here. */
static const DelegateTranspose *transposes_of(const XrGraph *x, uint32_t count, Arena *arena) {
  StrView text = {(const char *)x->region, x->region_size};
  DelegateTranspose *items = ARENA_ARRAY(arena, DelegateTranspose, (size_t)count + 1);
  for (uint32_t i = 0; i < count; i++) {
    size_t size = 0;
    while (size < text.size && text.data[size] != '\n')
      size++;
    if (size == 0 || size == text.size || text.data[0] < '0' ||
        text.data[0] >= '0' + TRANSPOSE_REASONS)
      return NULL;
    items[i].what = (TransposeReason)(text.data[0] - '0');
    items[i].node = (StrView){text.data + 1, size - 1};
    text = (StrView){text.data + size + 1, text.size - size - 1};
  }
  return text.size ? NULL : items;
}

static const char *describe(const uint8_t *blob, uint64_t size, Arena *arena,
                            DelegateFigures *out) {
  XrGraph x;
  *out = (DelegateFigures){0};
  const char *fault = xr_read(blob, size, arena, &x);
  if (fault)
    return fault;
  for (uint32_t i = 0; i < x.node_count; i++) {
    out->transpose_count += x.nodes[i].kind == XR_StaticTranspose;
    out->byte_nodes += computes_on_bytes(&x, &x.nodes[i]);
  }
  out->transposes = transposes_of(&x, out->transpose_count, arena);
  out->node_count = x.node_count;
  count_nodes(&x, arena, out);
  KeyMap seen = keymap_make(arena, (uint64_t)(uintptr_t)arena);
  for (uint32_t i = 1; i < x.constant_count; i++) {
    if (x.constants[i].key.data && !is_new(&seen, x.constants[i].key))
      continue;
    out->constants++;
    out->constant_bytes += x.constants[i].size;
  }
  out->work = xr_work(&x);
  out->packed = xr_packed(&x);
  out->workspace = xr_workspace(&x, arena);
  return NULL;
}

/* --- in place --- */

static XrValue *external_value(const XrGraph *x, uint32_t external, uint32_t flags, uint32_t *id) {
  for (*id = 0; *id < x->value_count; ++*id)
    if (x->values[*id].external == external && x->values[*id].flags == flags)
      return &x->values[*id];
  return NULL;
}

/* The output depends on every node that reads the input. Nodes stand behind those that they need;
 * where they do not, too few are found to come before the output. */
static bool may_overwrite(const uint8_t *blob, uint64_t size, uint32_t input, uint32_t output,
                          Arena *arena) {
  XrGraph x;
  DelegateNeeds found;
  uint32_t from, to;
  if (needs(blob, size, arena, &found) || xr_read(blob, size, arena, &x) ||
      !external_value(&x, input, XR_INPUT, &from) ||
      !external_value(&x, found.input_count + output, XR_OUTPUT, &to))
    return false;
  bool *wanted = ARENA_ARRAY(arena, bool, (size_t)x.value_count + 1);
  for (uint32_t i = x.node_count; i-- > 0;) {
    const XrNode *n = &x.nodes[i];
    bool makes = n->output == to || n->positions == to,
         before = wanted[n->output] || (n->positions != XR_NONE && wanted[n->positions]);
    for (uint32_t k = 0; k < n->input_count; k++) {
      if (n->inputs[k] == from && !before)
        return false;
      if (n->inputs[k] != XR_NONE)
        wanted[n->inputs[k]] |= before || makes;
    }
  }
  return true;
}

const DelegateReader reader_xnnpack = {.id = "XnnpackBackend",
                                       .needs = needs,
                                       .check = check,
                                       .run = xr_run,
                                       .describe = describe,
                                       .may_overwrite = may_overwrite,
                                       .stateless = true,
                                       .expressions = true};

/* See flatread.h. The layout rules are those of flatbuffers.dev, "FlatBuffers internals". */
#include "pte/flatread.h"
#include "support/number.h"

#define TOO_MANY_TABLES "it has more than 1,000,000 tables, the runtime's limit"

FbReader fb_reader(const uint8_t *data, uint64_t size) {
  FbReader r = {.data = data, .size = (uint32_t)size};
  if (size > INT32_MAX)
    r = (FbReader){.data = data, .fault = "it is larger than 2 GiB"};
  return r;
}

static bool fault(FbReader *r, uint64_t at, const char *what) {
  if (!r->fault) {
    r->fault = what;
    r->fault_at = at > UINT32_MAX ? UINT32_MAX : (uint32_t)at;
  }
  return false;
}

/* Whether size bytes at `at` are inside and aligned. */
static bool inside(FbReader *r, uint64_t at, uint64_t size, uint32_t alignment, const char *what) {
  if (r->fault)
    return false;
  if (at > r->size || size > r->size - at || at % alignment != 0)
    return fault(r, at, what);
  return true;
}

/* The table at an offset, its vtable checked. */
static FbTable enter(FbReader *r, uint64_t at) {
  FbTable none = {.r = r};
  if (!inside(r, at, 4, 4, "a table lies outside of the file or is not aligned"))
    return none;
  if (++r->visits > FB_MAX_VISITS) {
    fault(r, at, TOO_MANY_TABLES);
    return none;
  }
  int64_t vtable = (int64_t)at - (int32_t)load_u32(r->data + (uint32_t)at);
  if (vtable < 0 ||
      !inside(r, (uint64_t)vtable, 4, 2, "a vtable lies outside of the file or is not aligned")) {
    fault(r, at, "a vtable lies outside of the file");
    return none;
  }
  FbTable t = {.r = r, .at = (uint32_t)at, .vtable = (uint32_t)vtable};
  t.vtable_size = load_u16(r->data + t.vtable);
  t.size = load_u16(r->data + t.vtable + 2);
  if (t.vtable_size < 4 || t.vtable_size % 2 != 0 ||
      !inside(r, t.vtable, t.vtable_size, 2, "a vtable is cut off") || t.size < 4 ||
      !inside(r, t.at, t.size, 4, "a table is cut off")) {
    fault(r, at, "a vtable has a wrong size");
    return none;
  }
  return t;
}

FbTable fb_root(FbReader *r) {
  if (!inside(r, 0, 8, 1, "it is shorter than a FlatBuffer"))
    return (FbTable){.r = r};
  return enter(r, load_u32(r->data + 0));
}

/* Place of a field of size bytes, 0 when absent. */
static uint32_t locate(FbTable t, uint16_t id, uint32_t size) {
  if (!t.at || t.r->fault)
    return 0;
  uint32_t entry = 4 + 2 * (uint32_t)id;
  if (entry + 2 > t.vtable_size)
    return 0;
  uint16_t offset = load_u16(t.r->data + t.vtable + entry);
  if (offset == 0)
    return 0;
  if (offset < 4 || offset + size > t.size || (t.at + offset) % size != 0) {
    fault(t.r, t.at, "a field lies outside of its table or is not aligned");
    return 0;
  }
  return t.at + offset;
}

uint8_t fb_u8(FbTable t, uint16_t id, uint8_t fallback) {
  uint32_t at = locate(t, id, 1);
  return at ? t.r->data[at] : fallback;
}
uint16_t fb_u16(FbTable t, uint16_t id, uint16_t fallback) {
  uint32_t at = locate(t, id, 2);
  return at ? load_u16(t.r->data + at) : fallback;
}
uint32_t fb_u32(FbTable t, uint16_t id, uint32_t fallback) {
  uint32_t at = locate(t, id, 4);
  return at ? load_u32(t.r->data + at) : fallback;
}
int32_t fb_i32(FbTable t, uint16_t id, int32_t fallback) {
  return (int32_t)fb_u32(t, id, (uint32_t)fallback);
}
uint64_t fb_u64(FbTable t, uint16_t id, uint64_t fallback) {
  uint32_t at = locate(t, id, 8);
  return at ? load_u64(t.r->data + at) : fallback;
}
float fb_f32(FbTable t, uint16_t id, float fallback) {
  uint32_t at = locate(t, id, 4);
  float value = fallback;
  if (at)
    memcpy(&value, t.r->data + at, 4);
  return value;
}
double fb_f64(FbTable t, uint16_t id, double fallback) {
  uint32_t at = locate(t, id, 8);
  if (!at)
    return fallback;
  return double_of_bits(load_u64(t.r->data + at));
}

/* What a reference at `at` points to: a position in the file, 0 on a fault. */
static uint64_t follow(FbReader *r, uint32_t at) {
  uint32_t offset = load_u32(r->data + at);
  if (offset == 0 || offset > INT32_MAX) {
    fault(r, at, "a reference points nowhere");
    return 0;
  }
  return (uint64_t)at + offset;
}

FbTable fb_table(FbTable t, uint16_t id) {
  uint32_t at = locate(t, id, 4);
  uint64_t target = at ? follow(t.r, at) : 0;
  return target ? enter(t.r, target) : (FbTable){.r = t.r};
}

FbVector fb_vector(FbTable t, uint16_t id, uint32_t element_size) {
  FbVector none = {.r = t.r};
  uint32_t at = locate(t, id, 4);
  uint64_t target = at ? follow(t.r, at) : 0;
  if (!target || !inside(t.r, target, 4, 4, "a vector lies outside of the file or is not aligned"))
    return none;
  uint32_t count = load_u32(t.r->data + (uint32_t)target);
  if (!inside(t.r, target + 4, (uint64_t)count * element_size, count ? element_size : 1,
              "a vector is cut off or not aligned"))
    return none;
  return (FbVector){.r = t.r, .at = (uint32_t)target + 4, .count = count, .present = true};
}

FbVector fb_tables(FbTable t, uint16_t id) {
  FbVector v = fb_vector(t, id, 4);
  if (v.count <= FB_MAX_VISITS)
    return v;
  fault(t.r, v.at, TOO_MANY_TABLES);
  return (FbVector){.r = t.r};
}

StrView fb_text(FbTable t, uint16_t id) {
  FbVector v = fb_vector(t, id, 1);
  if (!v.present)
    return (StrView){NULL, 0};
  if (!inside(t.r, (uint64_t)v.at + v.count, 1, 1, "a string is cut off"))
    return (StrView){NULL, 0};
  if (t.r->data[v.at + v.count] != 0) {
    fault(t.r, v.at, "a string has no NUL at its end");
    return (StrView){NULL, 0};
  }
  return (StrView){(const char *)t.r->data + v.at, v.count};
}

static uint32_t item(FbVector v, uint32_t i, uint32_t size) {
  if (i >= v.count)
    BUG("element %u of %u", i, v.count);
  return v.at + i * size;
}
uint8_t fb_item_u8(FbVector v, uint32_t i) { return v.r->data[item(v, i, 1)]; }
int32_t fb_item_i32(FbVector v, uint32_t i) { return (int32_t)load_u32(v.r->data + item(v, i, 4)); }
uint64_t fb_item_u64(FbVector v, uint32_t i) { return load_u64(v.r->data + item(v, i, 8)); }
FbTable fb_item_table(FbVector v, uint32_t i) {
  uint32_t at = item(v, i, 4);
  uint64_t target = follow(v.r, at);
  return target ? enter(v.r, target) : (FbTable){.r = v.r};
}

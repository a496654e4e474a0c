/* See ptd.h. */
#include "pte/flatread.h"
#include "pte/program.h"
#include "pte/ptd.h"
#include "pte/schema.h"
#include "support/json.h"
#include "support/number.h"

typedef struct PtdReader {
  PtdFile *p;
  DiagSink *sink;
  FbReader fb;
  PteSegment *segments;
  uint32_t segment_count;
  uint64_t base;   /* of the segments */
  uint64_t budget; /* bytes of keys that may still be looked at */
} PtdReader;

static Status ptd_error(const PtdReader *r, const char *format, ...) ETC_PRINTF(2, 3);
static Status ptd_error(const PtdReader *r, const char *format, ...) {
  va_list args;
  va_start(args, format);
  Status status = diag_vreport(r->sink, DIAG_PTD, diag_file(r->p->file.path), "", format, args);
  va_end(args);
  return status;
}

bool ptd_is(const uint8_t *data, uint64_t size) {
  return size >= 8 && memcmp(data + 4, PTD_IDENTIFIER, 4) == 0;
}

static Status read_header(PtdReader *r) {
  const MappedFile *f = &r->p->file;
  uint32_t length = 0;
  if (!ptd_is(f->data, f->size))
    return ptd_error(r, "the file does not hold the identifier " PTD_IDENTIFIER
                        " of a file of tensors");
  const uint8_t *header = f->data + PTE_HEADER_AT;
  if (f->size >= PTE_HEADER_AT + PTD_HEADER_SIZE)
    memcpy(&length, header + 4, 4);
  if (length < PTD_HEADER_SIZE || memcmp(header, PTD_HEADER_MAGIC, 4) != 0)
    return ptd_error(r, "the extended header is missing or cut short");
  uint64_t offset = load_u64(header + 8), size = load_u64(header + 16), end;
  r->base = load_u64(header + 24);
  if (!add_u64(offset, size, &end) || end > f->size || r->base > f->size)
    return ptd_error(r, "its parts reach beyond the end of the file");
  r->fb = fb_reader(f->data, end);
  return STATUS_OK;
}

static Status read_segments(PtdReader *r, FbVector v) {
  r->segment_count = v.count;
  r->segments = ARENA_ARRAY(&r->p->arena, PteSegment, (size_t)v.count + 1);
  for (uint32_t i = 0; i < v.count; i++) {
    FbTable t = fb_item_table(v, i);
    uint64_t end;
    r->segments[i].size = fb_u64(t, SEGMENT_SIZE, 0);
    if (!add_u64(r->base, fb_u64(t, SEGMENT_OFFSET, 0), &r->segments[i].offset) ||
        !add_u64(r->segments[i].offset, r->segments[i].size, &end) || end > r->p->file.size)
      return ptd_error(r, "segment %u reaches beyond the end of the file", i);
  }
  return STATUS_OK;
}

static Status read_layout(PtdReader *r, FbTable t, PtdEntry *e, uint32_t index) {
  FbVector sizes = fb_vector(t, LAYOUT_SIZES, 4), order = fb_vector(t, LAYOUT_DIM_ORDER, 1);
  uint64_t bytes;
  if (r->fb.fault)
    return STATUS_OK; /* reported by the caller */
  if (sizes.count > MAX_RANK || order.count != sizes.count)
    return ptd_error(r, "entry %u has more than %d dimensions, or a dim_order of another length",
                     index, MAX_RANK);
  e->is_tensor = true;
  e->dtype = fb_u8(t, LAYOUT_SCALAR_TYPE, 0);
  e->rank = (uint8_t)sizes.count;
  for (uint32_t i = 0; i < sizes.count; i++) {
    e->sizes[i] = fb_item_i32(sizes, i);
    e->dim_order[i] = fb_item_u8(order, i);
  }
  if (!pte_tensor_bytes(e->dtype, e->rank, e->sizes, e->dim_order, &bytes) || bytes > e->size)
    return ptd_error(r, "entry %u has sizes that its %llu bytes cannot be", index,
                     (unsigned long long)e->size);
  return STATUS_OK;
}

static Status read_entry(PtdReader *r, FbTable t, uint32_t index) {
  PtdEntry *e = &r->p->entries[index];
  uint32_t segment = fb_u32(t, PTD_SEGMENT, 0), *slot;
  e->key = fb_text(t, PTD_KEY);
  if (r->fb.fault)
    return STATUS_OK;
  if (!e->key.data || segment >= r->segment_count)
    return ptd_error(r, "entry %u has no key, or is in segment %u of %u", index, segment,
                     r->segment_count);
  if (e->key.size > r->budget)
    return ptd_error(r, "its keys are longer than the file can hold: one is shared too often");
  r->budget -= e->key.size;
  e->size = r->segments[segment].size;
  e->file_offset = r->segments[segment].offset;
  e->data = r->p->file.data + e->file_offset;
  if (!keymap_get(&r->p->keys, e->key.data, (uint32_t)e->key.size, &slot))
    *slot = index + 1;
  FbTable layout = fb_table(t, PTD_LAYOUT);
  return fb_present(layout) ? read_layout(r, layout, e, index) : STATUS_OK;
}

static Status read_file(PtdReader *r) {
  TRY(read_header(r));
  FbTable root = fb_root(&r->fb);
  FbVector segments = fb_tables(root, PTD_SEGMENTS), entries = fb_tables(root, PTD_ENTRIES);
  if (!r->fb.fault)
    TRY(read_segments(r, segments));
  r->budget = r->p->file.size;
  r->p->count = r->fb.fault ? 0 : entries.count;
  r->p->entries = ARENA_ARRAY(&r->p->arena, PtdEntry, (size_t)r->p->count + 1);
  for (uint32_t i = 0; i < r->p->count && !r->fb.fault; i++)
    TRY(read_entry(r, fb_item_table(entries, i), i));
  return r->fb.fault ? ptd_error(r, "%s (at byte %u)", r->fb.fault, r->fb.fault_at) : STATUS_OK;
}

Status ptd_open(PtdFile *p, DiagSink *sink, uint64_t seed, const char *path) {
  *p = (PtdFile){0};
  p->keys = keymap_make(&p->arena, seed);
  Status status = file_map(&p->file, &p->arena, sink, path);
  PtdReader r = {.p = p, .sink = sink};
  if (status == STATUS_OK)
    status = read_file(&r);
  if (status != STATUS_OK)
    ptd_close(p);
  return status;
}

void ptd_close(PtdFile *p) {
  file_unmap(&p->file);
  arena_release(&p->arena);
  *p = (PtdFile){.file = {.fd = -1}};
}

const PtdEntry *ptd_find(PtdFile *p, StrView key) {
  uint32_t *slot;
  if (!key.data || key.size > UINT32_MAX)
    return NULL;
  uint32_t found = keymap_get(&p->keys, key.data, (uint32_t)key.size, &slot);
  return found ? &p->entries[found - 1] : NULL;
}

enum { MAX_SHOWN = 16 };

void ptd_inspect(const PtdFile *p, bool all, StrBuf *out) {
  strbuf_append(out, SV("file: "));
  strbuf_append_printable(out, sv_from(p->file.path));
  strbuf_printf(out, ", %llu bytes, %u entries\n", (unsigned long long)p->file.size, p->count);
  uint32_t shown = all || p->count < MAX_SHOWN ? p->count : MAX_SHOWN;
  for (uint32_t i = 0; i < shown; i++) {
    const PtdEntry *e = &p->entries[i];
    strbuf_append(out, SV("  '"));
    strbuf_append_printable(out, e->key);
    strbuf_append(out, e->is_tensor ? SV("' ") : SV("'"));
    for (uint32_t k = 0; e->is_tensor && k < e->rank; k++)
      strbuf_printf(out, "%s%s%d", k ? "" : pte_dtype_name(e->dtype), k ? ", " : "[", e->sizes[k]);
    strbuf_append(out, e->is_tensor && e->rank ? SV("]") : SV(""));
    if (e->is_tensor && !e->rank)
      strbuf_printf(out, "%s[]", pte_dtype_name(e->dtype));
    strbuf_printf(out, ", %llu bytes\n", (unsigned long long)e->size);
  }
  if (shown < p->count)
    strbuf_printf(out, "  %u more entries (-v)\n", p->count - shown);
}

void ptd_inspect_json(const PtdFile *p, StrBuf *out) {
  JsonWriter w;
  json_init(&w, out, true);
  json_open_object(&w);
  json_named_string(&w, "file", sv_from(p->file.path));
  json_named_uint(&w, "file_bytes", p->file.size);
  json_named_array(&w, "entries");
  for (const PtdEntry *e = p->entries; e < p->entries + p->count; e++) {
    json_open_object(&w);
    json_named_string(&w, "key", e->key);
    json_named_uint(&w, "bytes", e->size);
    if (e->is_tensor) {
      json_named_string(&w, "dtype", sv_from(pte_dtype_name(e->dtype)));
      json_named_array(&w, "sizes");
      for (uint32_t k = 0; k < e->rank; k++)
        json_int(&w, e->sizes[k]);
      json_close_array(&w);
    }
    json_close_object(&w);
  }
  json_close_array(&w);
  json_close_object(&w);
}

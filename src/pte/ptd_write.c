/* See ptd.h. Equal bytes are one segment, which several tensors may name. */
#include "pte/flatbuffer.h"
#include "pte/flatread.h"
#include "pte/ptd.h"
#include "pte/schema.h"

void ptd_writer_init(PtdWriter *w, Context *ctx, Arena *arena) {
  *w = (PtdWriter){.ctx = ctx,
                   .arena = arena,
                   .layouts = keymap_make(arena, ctx->names.seed),
                   .keys = keymap_make(arena, ctx->names.seed)};
  constant_pool_init(&w->pool, ctx->names.seed);
}

void ptd_writer_release(PtdWriter *w) {
  constant_pool_release(&w->pool);
  xfree(w->tensors);
}

/* The name, or with a number behind it, so that no tensor has it yet. */
static NameId free_key(PtdWriter *w, NameId name) {
  StrView stem = intern_get(&w->ctx->names, name);
  StrView key = stem.size ? stem : SV("constant");
  uint32_t *slot;
  for (uint32_t i = stem.size ? 2 : 1; keymap_get(&w->keys, key.data, (uint32_t)key.size, &slot);
       i++)
    key =
        sv_from(arena_printf(w->arena, SV_FMT ".%u", SV_ARG(stem.size ? stem : SV("constant")), i));
  *slot = 1;
  return intern_add(&w->ctx->names, key);
}

NameId ptd_writer_add(PtdWriter *w, uint32_t item, const Type *t, NameId name) {
  PtdTensor tensor;
  uint32_t *slot;
  memset(&tensor, 0, sizeof tensor); /* it is a key: padding counts */
  tensor.item = item;
  tensor.dtype = t->dtype;
  tensor.rank = t->rank;
  for (uint32_t i = 0; i < t->rank && i < MAX_RANK; i++) {
    tensor.sizes[i] = (int32_t)t->dims[i];
    tensor.dim_order[i] = (uint8_t)i;
  }
  uint32_t known = keymap_get(&w->layouts, &tensor, sizeof tensor, &slot);
  if (known)
    return w->tensors[known - 1].key;
  *slot = w->count + 1;
  tensor.key = free_key(w, name);
  POOL_PUSH(w->tensors, w->count, w->capacity, tensor);
  return tensor.key;
}

static FbRef write_entry(PtdWriter *w, FlatBuilder *b, const PtdTensor *t) {
  FbRef sizes = fb_vector_i32(b, t->sizes, t->rank);
  FbRef order = fb_vector_bytes(b, t->dim_order, t->rank, 1);
  fb_table_begin(b);
  fb_field_u8(b, LAYOUT_SCALAR_TYPE, t->dtype, 0);
  fb_field_ref(b, LAYOUT_SIZES, sizes);
  fb_field_ref(b, LAYOUT_DIM_ORDER, order);
  FbRef layout = fb_table_end(b), key = fb_string(b, intern_get(&w->ctx->names, t->key));
  fb_table_begin(b);
  fb_field_ref(b, PTD_KEY, key);
  fb_field_u32(b, PTD_SEGMENT, t->item - 1, 0);
  fb_field_ref(b, PTD_LAYOUT, layout);
  return fb_table_end(b);
}

static FbRef write_root(PtdWriter *w, FlatBuilder *b) {
  FbRef *entries = ARENA_ARRAY(w->arena, FbRef, (size_t)w->count + 1);
  FbRef *segments = ARENA_ARRAY(w->arena, FbRef, w->pool.count);
  for (uint32_t i = 0; i < w->count; i++)
    entries[i] = write_entry(w, b, &w->tensors[i]);
  for (uint32_t i = 1; i < w->pool.count; i++) {
    fb_table_begin(b);
    fb_field_u64(b, SEGMENT_OFFSET, constant_pool_offset(&w->pool, i), 0);
    fb_field_u64(b, SEGMENT_SIZE, w->pool.items[i].bytes.size, 0);
    segments[i - 1] = fb_table_end(b);
  }
  FbRef list = fb_vector_refs(b, segments, w->pool.count - 1);
  FbRef named = fb_vector_refs(b, entries, w->count);
  fb_table_begin(b);
  fb_field_u32(b, PTD_VERSION, 0, 0);
  fb_field_ref(b, PTD_SEGMENTS, list);
  fb_field_ref(b, PTD_ENTRIES, named);
  return fb_table_end(b);
}

static Status write_bytes(PtdWriter *w, FlatBuilder *b, uint8_t *header, DiagSink *sink,
                          const char *path, bool sync) {
  uint32_t length = PTD_HEADER_SIZE;
  uint64_t gap = PTD_HEADER_ROOM, size = b->size - gap,
           base = align_up(b->size, PTE_SEGMENT_ALIGNMENT), data = constant_pool_size(&w->pool);
  memcpy(header, PTD_HEADER_MAGIC, 4);
  memcpy(header + 4, &length, 4);
  memcpy(header + 8, &gap, 8);
  memcpy(header + 16, &size, 8);
  memcpy(header + 24, &base, 8);
  memcpy(header + 32, &data, 8);
  AtomicFile file;
  TRY(atomic_file_open(&file, w->arena, sink, path));
  atomic_file_write(&file, fb_bytes(b), b->size);
  atomic_file_pad(&file, base);
  constant_pool_write(&w->pool, &file);
  return atomic_file_commit(&file, sync);
}

Status ptd_write(PtdWriter *w, DiagSink *sink, const char *path, bool sync) {
  FlatBuilder b;
  fb_init(&b);
  FbRef root = write_root(w, &b);
  b.alignment = PTE_TENSOR_ALIGNMENT;
  uint8_t *header = fb_finish(&b, root, PTD_IDENTIFIER, PTD_HEADER_ROOM);
  Status status = STATUS_OK;
  if (b.overflow || !header || b.table_count > FB_MAX_VISITS)
    status = diag_report(sink, DIAG_TOO_LARGE, DIAG_NOWHERE,
                         "the file of external weights has too many tensors");
  else
    status = write_bytes(w, &b, header, sink, path, sync);
  fb_release(&b);
  return status;
}

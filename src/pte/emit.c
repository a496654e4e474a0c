/* The file around the plans: FlatBuffer with the extended header, then one segment with all
 * constants and one with what states hold at first, each only when it is not empty. Source of the
 * layout: ExecuTorch 1.4.1, exir/_serialize/_program.py and runtime/executor/program.cpp. */
#include "pte/emit.h"

#include "pte/constants.h"
#include "pte/flatbuffer.h"
#include "pte/flatread.h"
#include "pte/plan_constant.h"
#include "pte/plan_writer.h"
#include "pte/ptd.h"
#include "pte/schema.h"

typedef struct Emitter {
  FlatBuilder b;
  ConstantPool pool, initial; /* constants; first contents of states */
  SegmentList segments;       /* of delegates */
  PtdWriter external;         /* constants in a file of their own */
  Arena scratch;
  DiagSink *sink;
  uint64_t segment_size; /* bytes of all segments */
  EmitFigures figures;
} Emitter;

/* Where the segment of the states starts, counted from the first segment. */
static uint64_t initial_at(const Emitter *e) {
  return align_up(constant_pool_size(&e->pool), PTE_SEGMENT_ALIGNMENT);
}

/* Bytes of the constants and states. */
static uint64_t pool_bytes(const Emitter *e) {
  uint64_t initial = constant_pool_size(&e->initial);
  return initial ? initial_at(e) + initial : constant_pool_size(&e->pool);
}

static FbRef write_segment(Emitter *e, uint64_t offset, uint64_t size) {
  fb_table_begin(&e->b);
  fb_field_u64(&e->b, SEGMENT_OFFSET, offset, 0);
  fb_field_u64(&e->b, SEGMENT_SIZE, size, 0);
  return fb_table_end(&e->b);
}

/* Constants and states, where there are any; both when there are delegates, whose segments
 * follow. */
static FbRef write_segments(Emitter *e) {
  const SegmentList *list = &e->segments;
  uint64_t constants = constant_pool_size(&e->pool), initial = constant_pool_size(&e->initial);
  FbRef *segments = ARENA_ARRAY(&e->scratch, FbRef, (size_t)SEGMENTS_FIRST + list->count);
  uint32_t count = 0;
  if (constants || list->count)
    segments[count++] = write_segment(e, 0, constants);
  if (initial || list->count)
    segments[count++] = write_segment(e, initial ? initial_at(e) : 0, initial);
  for (uint32_t i = 0; i < list->count; i++)
    segments[count++] = write_segment(e, list->items[i].offset, list->items[i].bytes.size);
  return fb_vector_refs(&e->b, segments, count);
}

/* What delegates find by name; 0 when there is none. */
static FbRef write_named_data(Emitter *e) {
  const SegmentList *list = &e->segments;
  if (!list->named)
    return 0;
  FbRef *refs = ARENA_ARRAY(&e->scratch, FbRef, list->named);
  uint32_t count = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    if (!list->items[i].key)
      continue;
    FbRef key = fb_string(&e->b, sv_from(list->items[i].key));
    fb_table_begin(&e->b);
    fb_field_ref(&e->b, NAMED_KEY, key);
    fb_field_u32(&e->b, NAMED_SEGMENT, SEGMENTS_FIRST + i, 0);
    refs[count++] = fb_table_end(&e->b);
  }
  return fb_vector_refs(&e->b, refs, count);
}

/* Where the items of a pool are. One offset at least: without it the loader takes the program for
 * one of an older format. */
static FbRef write_offsets(Emitter *e, const ConstantPool *pool, uint32_t segment) {
  int64_t *offsets = ARENA_ARRAY(&e->scratch, int64_t, pool->count);
  for (uint32_t i = 1; i < pool->count; i++)
    offsets[i] = (int64_t)constant_pool_offset(pool, i);
  FbRef vector = fb_vector_i64(&e->b, offsets, pool->count);
  fb_table_begin(&e->b);
  fb_field_u32(&e->b, SUBSEGMENT_INDEX, segment, 0);
  fb_field_ref(&e->b, SUBSEGMENT_OFFSETS, vector);
  return fb_table_end(&e->b);
}

static FbRef write_program(Emitter *e, const FbRef *plans, uint32_t count) {
  bool others = e->segments.count != 0;
  FbRef constants = write_offsets(e, &e->pool, 0), initial = 0;
  if (constant_pool_size(&e->initial)) {
    bool second = constant_pool_size(&e->pool) || others;
    FbRef offsets = write_offsets(e, &e->initial, second ? 1 : 0);
    initial = fb_vector_refs(&e->b, &offsets, 1);
  }
  FbRef segments = write_segments(e), named = write_named_data(e);
  FbRef none = fb_vector_refs(&e->b, NULL, 0);
  FbRef vector = fb_vector_refs(&e->b, plans, count);
  fb_table_begin(&e->b);
  fb_field_u32(&e->b, PROGRAM_VERSION, 0, 0);
  fb_field_ref(&e->b, PROGRAM_EXECUTION_PLAN, vector);
  fb_field_ref(&e->b, PROGRAM_CONSTANT_BUFFER, none);
  fb_field_ref(&e->b, PROGRAM_BACKEND_DELEGATE_DATA, none);
  fb_field_ref(&e->b, PROGRAM_SEGMENTS, segments);
  fb_field_ref(&e->b, PROGRAM_CONSTANT_SEGMENT, constants);
  fb_field_ref(&e->b, PROGRAM_MUTABLE_DATA_SEGMENTS, initial);
  fb_field_ref(&e->b, PROGRAM_NAMED_DATA, named);
  return fb_table_end(&e->b);
}

static void write_header(uint8_t *at, uint64_t program, uint64_t base, uint64_t segments) {
  uint32_t length = PTE_HEADER_SIZE;
  memcpy(at, PTE_HEADER_MAGIC, 4);
  memcpy(at + 4, &length, 4);
  memcpy(at + 8, &program, 8);
  memcpy(at + 16, &base, 8);
  memcpy(at + 24, &segments, 8);
}

static Status check_limits(const Emitter *e) {
  if (e->b.overflow)
    return diag_report(e->sink, DIAG_TOO_LARGE, DIAG_NOWHERE,
                       "the program without its weights is larger than 2 GiB");
  if (e->b.table_count > FB_MAX_VISITS)
    return diag_report(e->sink, DIAG_TOO_LARGE, DIAG_NOWHERE,
                       "the program has %u tables, and the runtime loads %d at most (3 for a "
                       "tensor, 2 for an instruction)",
                       e->b.table_count, FB_MAX_VISITS);
  return STATUS_OK;
}

/* The program appears last, behind the constants and the files beside it, or none of them does. */
static Status finish(Emitter *e, AtomicFile *file, EmitOptions options) {
  if (options.figures)
    *options.figures = e->figures;
  OutputSet outputs;
  outputs_begin(&outputs, e->sink);
  Status status = options.whole ? options.whole(options.whole_user, file) : STATUS_OK;
  if (status == STATUS_OK && options.external)
    status = ptd_write(&e->external, e->sink, options.external, options.sync);
  if (status == STATUS_OK && options.beside)
    status = options.beside(options.whole_user, file);
  if (status == STATUS_OK)
    status = atomic_file_commit(file, options.sync);
  else
    atomic_file_abandon(file);
  return outputs_end(&outputs, status);
}

/* A program without segments needs no header. */
static Status write_file(Emitter *e, const char *path, uint8_t *header, EmitOptions options) {
  uint64_t segments = e->segment_size, program = e->b.size;
  uint64_t base = align_up(program, PTE_SEGMENT_ALIGNMENT);
  e->figures.file_bytes = segments ? base + segments : program;
  if (segments)
    write_header(header, program, base, segments);
  AtomicFile file;
  TRY(atomic_file_open(&file, &e->scratch, e->sink, path));
  file.progress = options.progress;
  file.deliver = options.deliver;
  file.deliver_user = options.deliver_user;
  if (options.progress)
    options.progress->total = base + segments;
  atomic_file_write(&file, fb_bytes(&e->b), program);
  if (segments) {
    atomic_file_pad(&file, base);
    constant_pool_write(&e->pool, &file);
  }
  if (constant_pool_size(&e->initial)) {
    atomic_file_pad(&file, base + initial_at(e));
    constant_pool_write(&e->initial, &file);
  }
  segments_write(&e->segments, &file, base);
  return finish(e, &file, options);
}

static void count_weights(Emitter *e) {
  e->figures.weight_bytes = constant_pool_size(&e->pool) + constant_pool_size(&e->initial) +
                            constant_pool_size(&e->external.pool);
  for (uint32_t i = 0; i < e->segments.count; i++) {
    const Segment *segment = &e->segments.items[i];
    e->figures.weight_bytes += segment->key && !segment->shared ? segment->bytes.size : 0;
  }
}

static Status emit(Emitter *e, Graph *const *methods, uint32_t count, const char *path,
                   EmitOptions options) {
  uint32_t all = count + options.constant_count;
  FbRef *plans = ARENA_ARRAY(&e->scratch, FbRef, all);
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t k = 0; k < i; k++)
      if (methods[k]->name == methods[i]->name)
        BUG("two methods of one name");
    PlanData data = {&e->pool,
                     &e->initial,
                     &e->segments,
                     &e->figures,
                     options.maps ? &options.maps[i] : NULL,
                     options.external ? &e->external : NULL};
    TRY(plan_write(&e->b, data, methods[i], &e->scratch, &plans[i]));
  }
  for (uint32_t i = count; i < all; i++)
    plans[i] = plan_constant(&e->b, &e->pool, &options.constants[i - count], &e->scratch);
  e->segment_size = segments_place(&e->segments, &e->pool, pool_bytes(e));
  count_weights(e);
  FbRef root = write_program(e, plans, all);
  e->b.alignment = PTE_TENSOR_ALIGNMENT;
  uint8_t *header = fb_finish(&e->b, root, PTE_IDENTIFIER, e->segment_size ? PTE_HEADER_SIZE : 0);
  TRY(check_limits(e));
  return write_file(e, path, header, options);
}

Status pte_emit(Graph *const *methods, uint32_t count, DiagSink *sink, const char *path,
                EmitOptions options) {
  if (count == 0)
    BUG("a program without methods");
  Emitter e = {.sink = sink};
  fb_init(&e.b);
  constant_pool_init(&e.pool, methods[0]->ctx->names.seed);
  constant_pool_init(&e.initial, methods[0]->ctx->names.seed);
  ptd_writer_init(&e.external, methods[0]->ctx, &e.scratch);
  segments_init(&e.segments, &e.scratch, methods[0]->ctx->names.seed);
  Status status = emit(&e, methods, count, path, options);
  segments_release(&e.segments);
  ptd_writer_release(&e.external);
  arena_release(&e.scratch);
  constant_pool_release(&e.pool);
  constant_pool_release(&e.initial);
  fb_release(&e.b);
  return status;
}

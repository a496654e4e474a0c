/* See program.h. The file level: extended header, segments, the table Program. */
#include "pte/program.h"

#include "pte/bundle.h"
#include "pte/program_internal.h"
#include "pte/ptd.h"
#include "support/keymap.h"
#include "support/number.h"

enum { MAX_LIST_USES = 1 << 28 };

void decode_error(Decoder *d, DiagCode code, const char *format, ...) {
  const char *before =
      d->method.data ? arena_printf(&d->p->arena, "method '" SV_FMT "': ", SV_ARG(d->method)) : "";
  va_list args;
  va_start(args, format);
  Status status = diag_vreport(d->p->sink, code, pte_place(d->p), before, format, args);
  va_end(args);
  if (d->status == STATUS_OK)
    d->status = status;
}

bool decode_charge(Decoder *d, uint64_t count) {
  if (count <= d->budget) {
    d->budget -= count;
    return true;
  }
  decode_error(d, DIAG_PTE_FLATBUFFER,
               "its lists are longer than the file can hold: a vector is shared too often");
  d->budget = 0;
  return false;
}

int32_t *decode_indices(Decoder *d, FbVector v, int32_t lowest, uint32_t limit, const char *what) {
  if (!v.present || !decode_charge(d, v.count))
    return NULL;
  int32_t *items = ARENA_ARRAY(&d->p->arena, int32_t, v.count);
  for (uint32_t i = 0; i < v.count; i++) {
    items[i] = fb_item_i32(v, i);
    if (items[i] < lowest || (items[i] >= 0 && (uint32_t)items[i] >= limit)) {
      decode_error(d, DIAG_PTE_RANGE, "%s: entry %u is %d, and there are %u", what, i, items[i],
                   limit);
      return NULL;
    }
  }
  return items;
}

static Status file_error(PteProgram *p, DiagCode code, const char *what, uint64_t a, uint64_t b) {
  return diag_report(p->sink, code, pte_place(p), "%s (%llu, %llu)", what, (unsigned long long)a,
                     (unsigned long long)b);
}

static Status ends_early(PteProgram *p, uint64_t needed) {
  return diag_report(p->sink, DIAG_PTE_TRUNCATED, pte_place(p),
                     "the file ends early: the program needs %llu bytes, the file has %llu",
                     (unsigned long long)needed, (unsigned long long)p->file.size);
}

/* A file that is no program: says what it seems to be. */
static Status no_program(PteProgram *p) {
  Diag *d = diag_begin(p->sink, DIAG_PTE_HEADER, pte_place(p));
  StrView path = sv_from(p->file.path);
  if (p->file.size == 0) {
    diag_message(d, "the file is empty");
  } else if (sv_has_suffix(path, SV(".onnx"))) {
    diag_message(d, "this is an ONNX model, not a program");
    diag_hint(d, "'etc lower' makes a program of it, 'etc inspect' shows what is in it");
  } else if (sv_has_suffix(path, SV(".etir"))) {
    diag_message(d, "this is a textual graph, not a program");
    diag_hint(d, "'etc print' shows it, 'etc lower' makes a program of it");
  } else if (bundle_is(p->file.data, p->file.size)) {
    diag_message(d, "this is a program with test sets (.bpte), not a program alone");
    diag_hint(d, "'etc inspect', 'etc run', 'etc verify' and 'etc print' read it");
  } else if (ptd_is(p->file.data, p->file.size)) {
    diag_message(d, "this is a file of tensors (.ptd), not a program");
    diag_hint(d, "give it to its program: --data FILE.ptd; 'etc inspect' shows what is in it");
  } else {
    diag_message(d, "this is neither a program (.pte) nor an ONNX model: it does not hold the "
                    "identifier " PTE_IDENTIFIER);
    diag_hint(d, "'etc lower' makes a program of an ONNX model");
  }
  return diag_end(d);
}

/* Identifier and extended header. *base: file offset of the segments. */
static Status read_header(PteProgram *p, uint64_t *base) {
  const uint8_t *data = p->file.data;
  if (p->file.size < 8 || memcmp(data + 4, PTE_IDENTIFIER, 4) != 0)
    return no_program(p);
  if (p->file.size < PTE_FILE_MIN)
    return diag_report(p->sink, DIAG_PTE_TRUNCATED, pte_place(p),
                       "the file has %llu bytes, fewer than any program",
                       (unsigned long long)p->file.size);
  p->program_size = p->file.size;
  const uint8_t *header = data + PTE_HEADER_AT;
  if (memcmp(header, PTE_HEADER_MAGIC, 4) != 0)
    return STATUS_OK;
  uint32_t length;
  memcpy(&length, header + 4, 4);
  if (length < PTE_HEADER_MIN)
    return file_error(p, DIAG_PTE_HEADER, "the extended header is too short (bytes, minimum)",
                      length, PTE_HEADER_MIN);
  p->has_header = true;
  p->program_size = load_u64(header + 8);
  *base = load_u64(header + 16);
  uint64_t size = length >= PTE_HEADER_SIZE ? load_u64(header + 24) : 0, end;
  if (p->program_size > p->file.size)
    return ends_early(p, p->program_size);
  if (*base && !add_u64(*base, size, &end))
    return ends_early(p, UINT64_MAX);
  if (*base && end > p->file.size)
    return ends_early(p, end);
  return STATUS_OK;
}

static void decode_segments(Decoder *d, FbVector v, uint64_t base) {
  PteProgram *p = d->p;
  p->segment_count = p->constants.segment = p->initial.segment = v.count;
  p->segments = ARENA_ARRAY(&p->arena, PteSegment, v.count);
  for (uint32_t i = 0; i < v.count; i++) {
    FbTable t = fb_item_table(v, i);
    PteSegment *s = &p->segments[i];
    uint64_t offset = fb_u64(t, SEGMENT_OFFSET, 0), end;
    s->size = fb_u64(t, SEGMENT_SIZE, 0);
    if (s->size && !base)
      decode_error(d, DIAG_PTE_HEADER,
                   "segment %u has data, but the header names no place for segments", i);
    else if (!add_u64(base, offset, &s->offset) || !add_u64(s->offset, s->size, &end) ||
             end > p->file.size)
      decode_error(d, DIAG_PTE_TRUNCATED, "segment %u reaches beyond the end of the file", i);
    else
      continue;
    *s = (PteSegment){0};
  }
}

/* Offsets in a segment, which matters when there are `least` of them or more. */
static void decode_contents(Decoder *d, FbTable t, const char *what, uint32_t least,
                            PteContents *contents) {
  FbVector v = fb_vector(t, SUBSEGMENT_OFFSETS, 8);
  uint32_t segment = fb_u32(t, SUBSEGMENT_INDEX, 0), segments = d->p->segment_count;
  if (!decode_charge(d, v.count))
    return;
  contents->count = v.count;
  contents->offsets = ARENA_ARRAY(&d->p->arena, uint64_t, v.count);
  for (uint32_t i = 0; i < v.count; i++)
    contents->offsets[i] = fb_item_u64(v, i);
  if (v.count < least)
    return;
  if (segment >= segments)
    decode_error(d, DIAG_PTE_RANGE, "the %s are in segment %u, and there are %u", what, segment,
                 segments);
  else
    contents->segment = segment;
}

/* Place 0 means: no constant. */
static void decode_constants(Decoder *d, FbTable t) {
  if (fb_vector(t, SUBSEGMENT_OFFSETS, 8).count == 0 && !d->reader.fault)
    decode_error(d, DIAG_PTE_FIELD,
                 "constant_segment has no offsets: the runtime takes the program for one of an "
                 "older format");
  else
    decode_contents(d, t, "constants", 2, &d->p->constants);
}

/* The runtime reads the first of them only. */
static void decode_initial(Decoder *d, FbVector tables) {
  if (tables.count)
    decode_contents(d, fb_item_table(tables, 0), "contents of states", 0, &d->p->initial);
}

static void decode_named_data(Decoder *d, FbVector v) {
  PteProgram *p = d->p;
  p->named_data_count = v.count;
  p->named_data = ARENA_ARRAY(&p->arena, StrView, v.count);
  p->named_segments = ARENA_ARRAY(&p->arena, uint32_t, v.count);
  for (uint32_t i = 0; i < v.count; i++) {
    FbTable t = fb_item_table(v, i);
    p->named_data[i] = fb_text(t, NAMED_KEY);
    uint32_t segment = fb_u32(t, NAMED_SEGMENT, 0);
    if (segment >= p->segment_count)
      decode_error(d, DIAG_PTE_RANGE, "named data %u is in segment %u, and there are %u", i,
                   segment, p->segment_count);
    else
      p->named_segments[i] = segment;
  }
}

/* The runtime takes the first of two methods of one name. */
static void check_method_names(Decoder *d) {
  KeyMap names =
      keymap_make(&d->p->arena, (uint64_t)(uintptr_t)d->p); /* an address no file can know */
  for (uint32_t i = 0; i < d->p->method_count; i++) {
    StrView name = d->p->methods[i].name;
    uint32_t *slot;
    if (!name.data)
      continue;
    if (keymap_get(&names, name.data, (uint32_t)name.size, &slot))
      decode_error(d, DIAG_PTE_FIELD, "two methods have the name '" SV_FMT "'", SV_ARG(name));
    *slot = 1;
  }
}

static void decode_methods(Decoder *d, FbVector plans) {
  PteProgram *p = d->p;
  p->method_count = plans.count;
  p->methods = ARENA_ARRAY(&p->arena, PteMethod, plans.count);
  for (uint32_t i = 0; i < plans.count && !d->reader.fault; i++)
    decode_method(d, fb_item_table(plans, i), &p->methods[i]);
  d->method = (StrView){NULL, 0};
  check_method_names(d);
}

static Status decode_program(PteProgram *p) {
  uint64_t base = 0;
  TRY(read_header(p, &base));
  Decoder d = {.p = p,
               .reader = fb_reader(p->file.data, p->program_size),
               .budget = p->program_size,
               .uses = p->program_size < MAX_LIST_USES / 16 ? p->program_size * 16 : MAX_LIST_USES};
  FbTable root = fb_root(&d.reader);
  p->version = fb_u32(root, PROGRAM_VERSION, 0);
  FbVector plans = fb_tables(root, PROGRAM_EXECUTION_PLAN),
           segments = fb_tables(root, PROGRAM_SEGMENTS);
  if (!plans.present && !d.reader.fault)
    decode_error(&d, DIAG_PTE_FIELD, "execution_plan is missing");
  decode_segments(&d, segments, base);
  decode_constants(&d, fb_table(root, PROGRAM_CONSTANT_SEGMENT));
  decode_initial(&d, fb_tables(root, PROGRAM_MUTABLE_DATA_SEGMENTS));
  decode_named_data(&d, fb_tables(root, PROGRAM_NAMED_DATA));
  skim_program(root);
  if (d.status == STATUS_OK)
    decode_methods(&d, plans);
  if (d.reader.fault && d.status == STATUS_OK) {
    d.method = (StrView){NULL, 0};
    decode_error(&d, DIAG_PTE_FLATBUFFER, "%s (at byte %u)", d.reader.fault, d.reader.fault_at);
  }
  return d.status;
}

/* mapped: of mapping the file, which a failure leaves without bytes. */
static Status finish_open(PteProgram *p, Status mapped) {
  Status status = mapped == STATUS_OK ? decode_program(p) : mapped;
  if (status != STATUS_OK)
    pte_program_close(p);
  return status;
}

uint32_t pte_find_method(const PteProgram *p, StrView name) {
  uint32_t i = 0;
  while (i < p->method_count && !sv_eq(p->methods[i].name, name))
    i++;
  return i;
}

Status pte_program_open(PteProgram *p, DiagSink *sink, const char *path) {
  *p = (PteProgram){.sink = sink};
  return finish_open(p, file_map(&p->file, &p->arena, sink, path));
}

Status pte_program_open_bytes(PteProgram *p, DiagSink *sink, const char *name, const uint8_t *data,
                              uint64_t size) {
  *p = (PteProgram){.sink = sink};
  file_of_bytes(&p->file, &p->arena, name, data, size);
  return finish_open(p, STATUS_OK);
}

void pte_program_close(PteProgram *p) {
  file_unmap(&p->file);
  arena_release(&p->arena);
  *p = (PteProgram){.file = {.fd = -1}};
}

const uint8_t *pte_tensor_data(const PteProgram *p, const PteTensor *t) {
  const PteContents *contents = pte_is_constant(t) ? &p->constants : &p->initial;
  return p->file.data + p->segments[contents->segment].offset + contents->offsets[t->data];
}

/* ExecuTorch's ScalarType (runtime/core/portable_type/scalar_type.h). */
static const struct {
  const char *name;
  unsigned size;
} scalar_types[] = {
    {"u8", 1},         {"i8", 1},         {"i16", 2},      {"i32", 4},     {"i64", 8},
    {"f16", 2},        {"f32", 4},        {"f64", 8},      {"c32", 4},     {"c64", 8},
    {"c128", 16},      {"bool", 1},       {"qint8", 1},    {"quint8", 1},  {"qint32", 4},
    {"bf16", 2},       {"quint4x2", 1},   {"quint2x4", 1}, {"bits1x8", 1}, {"bits2x4", 1},
    {"bits4x2", 1},    {"bits8", 1},      {"bits16", 2},   {"f8e5m2", 1},  {"f8e4m3fn", 1},
    {"f8e5m2fnuz", 1}, {"f8e4m3fnuz", 1}, {"u16", 2},      {"u32", 4},     {"u64", 8}};

unsigned pte_dtype_size(uint8_t dtype) {
  return dtype < COUNT_OF(scalar_types) ? scalar_types[dtype].size : 0;
}

bool pte_tensor_bytes(uint8_t dtype, uint8_t rank, const int32_t *sizes, const uint8_t *dim_order,
                      uint64_t *bytes) {
  uint32_t seen = 0;
  *bytes = pte_dtype_size(dtype);
  for (uint32_t i = 0; i < rank; i++) {
    if (sizes[i] < 0 || dim_order[i] >= rank || (seen >> dim_order[i] & 1) ||
        !mul_u64(*bytes, (uint64_t)sizes[i], bytes))
      return false;
    seen |= 1u << dim_order[i];
  }
  return pte_dtype_size(dtype) != 0;
}

const char *pte_dtype_name(uint8_t dtype) {
  return dtype < COUNT_OF(scalar_types) ? scalar_types[dtype].name : "?";
}
bool pte_dtype_known(uint8_t dtype) {
  return dtype < COUNT_OF(scalar_types) && ((DTS_BYTES | DT(C64)) >> dtype & 1) != 0;
}
